"""A recording in another format: messages as they are between recordings of messages, else what they say.

The result appears under its name when it is whole; until then it lies in a hidden folder beside it, and the recording
that is read is never written over.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from navsense import messages, sinks
from navsense.errors import NavsenseError, SinkError, Where
from navsense.messages.base import AGE
from navsense.messages.cdr import encode
from navsense.series import Reading, Slab
from navsense.sinks import sources, tables
from navsense.sinks.base import Recording, os_error
from navsense.sinks.load import load
from navsense.sinks.meta import damage
from navsense.sinks.read import MessageReader
from navsense.sinks.records import DamagedError
from navsense.sinks.rosbag import bag_folder, take_place
from navsense.sinks.transfer import checked, transfer
from navsense.world import MountedSensor

CONTAINERS = (".mcap", ".bag", ".db3", "")
"""Suffixes of recordings of ROS messages; without one, the folder of a bag of ROS 2 with MCAP in it."""

FOLDERS = (".csv", ".euroc")

READ = "see what it holds with: navsense info"
"""What to do about a recording of which nothing is read."""

SEVERAL = (".npz", ".parquet")
"""Suffixes of recordings that hold several runs."""


@dataclass
class Converted:
    """What was written: where, how many messages or rows of sensors, and what could not be carried, a line each."""

    path: Path
    count: int
    noun: str
    lost: list[str] = field(default_factory=list)


def suffix_of(path: Path) -> str:
    """Return what tells the format of a path: its suffix, `.gz.mcap` whole, none for a folder's name."""
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in sinks.SINKS else path.suffix.lower()


def convert(path: str | os.PathLike[str], out: str | os.PathLike[str], *, run: int | None = None) -> Converted:
    """Write the recording `path` to `out` in the format of its suffix.

    Between `.mcap`, `.bag`, `.db3` and the folder of a bag of ROS 2 (no suffix: with MCAP in it) messages go over as
    they are, of unknown types too. `run` chooses one of several. Raises `SinkError` for what cannot be read or written,
    and where `out` is `path`.
    """
    source, target = Path(path), Path(out)
    try:
        _check(source, target)
        if sources.is_container(source) and suffix_of(target) in CONTAINERS:
            if run is not None:
                raise SinkError("--run", run, allowed="is of .npz and .parquet: a recording of messages holds one run")
            return _as_they_are(source, target)
        return _said(source, target, run)
    except OSError as error:
        raise os_error(source, error, "read") from error


def place_of(target: Path) -> Path:
    """Return the file or folder that a recording of this name is."""
    if suffix_of(target) in FOLDERS:
        return tables.folder_of(target)
    return bag_folder(target) if suffix_of(target) == ".db3" else target


def _check(source: Path, target: Path) -> None:
    """Raise `SinkError` where a recording cannot be written to `target`, or that would be over what is read."""
    if suffix_of(target) in CONTAINERS:
        checked(target)
    else:
        sinks.check(target)
    place = place_of(target).resolve()
    read = {source.resolve(), sources.folder_of(source).resolve()}
    if source.suffix.lower() in FOLDERS and not source.exists():
        read.add(tables.folder_of(source).resolve())
    if any(one == place or one in place.parents or place in one.parents for one in read):
        raise SinkError("a recording cannot be converted onto itself", str(target), remedy="name another output")


def _as_they_are(source: Path, target: Path) -> Converted:
    """Carry messages."""
    with sources.opened(source) as found:
        if isinstance(found, sources.McapSource) and suffix_of(target) == ".mcap" and found.profile != sources.OLD:
            count = found.total()  # all are read: a damaged one is not handed on
            with hidden(target) as part:
                shutil.copyfile(source, part)
                part.replace(target)
            return Converted(target, count, "messages")
        count, lost = transfer(found, target)
        return Converted(place_of(target), count, "messages", lost)


@contextmanager
def hidden(target: Path) -> Iterator[Path]:
    """Yield a place for a recording in a hidden folder beside its own; errors speak of the target."""
    folder = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.part")
    try:
        folder.mkdir()
    except OSError as error:
        raise os_error(target, error) from error
    try:
        yield folder / target.name
    except NavsenseError as error:
        if error.where is not None and Path(error.where.path).parent == folder:
            error.where = Where(str(target), error.where.line)
        raise
    except OSError as error:
        raise os_error(target, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _said(source: Path, target: Path, run: int | None) -> Converted:
    """Write what a recording says, as readings and truth."""
    if sources.is_container(source):
        with sources.opened(source) as found:
            reader = MessageReader(found)
            if run is not None and [run] != list(reader.recording.runs):
                raise SinkError("run", run, allowed=f"must be {reader.recording.runs[0]}, the only one")
            made = _written(reader.recording, reader.slabs(), target, str(source))
            made.lost += reader.left
            return made
    loaded = load(source)
    if run is not None:
        loaded = loaded.of_run(run)
    if len(loaded.runs) > 1 and suffix_of(target) not in SEVERAL:
        raise SinkError(
            f"a {suffix_of(target) or 'bag'} holds one run",
            len(loaded.runs),
            where=Where(str(source)),
            remedy="choose one with --run, or write .npz or .parquet",
        )
    try:
        recording = loaded.recording()
    except DamagedError as error:
        raise damage(source, error) from error
    return _written(recording, loaded.slabs(), target, str(source))


def _written(recording: Recording, slabs: Iterator[Slab], target: Path, name: str) -> Converted:
    """Write slabs to a recording; a folder with MCAP in it by way of its file."""
    suffix = suffix_of(target)
    lost = Lost(recording, suffix)
    count, found = 0, False
    place = place_of(target)
    with hidden(target if suffix else target.with_name(f"{target.name}.mcap")) as part:
        with sinks.open(part, recording) as sink:
            for slab in slabs:
                lost.note(slab)
                count += sum(reading.clock_error.size for reading in slab.readings.values())
                found = found or bool(slab.readings or slab.truth or slab.current)
                sink.write(slab)
            if not found:
                raise SinkError(
                    "holds no message that is read as a reading or as truth", where=Where(name), remedy=READ
                )
        made = place_of(part)
        if not suffix:
            with sources.opened(part) as messages_of:
                transfer(messages_of, target)
        elif made.is_dir():
            take_place(made, place, part.with_name("old"))
        else:
            made.replace(place)
    return Converted(place, count, "rows", lost.lines())


class Lost:
    """What a format has no place for, told as it comes by."""

    def __init__(self, recording: Recording, suffix: str) -> None:
        """Start with nothing."""
        self._suffix = suffix
        self._sensors = {sensor.name: sensor for sensor in recording.world.sensors}
        self._found: dict[str, list[str]] = {}
        self._dropped: dict[str, int] = {}
        self._truth = 0

    def note(self, slab: Slab) -> None:
        """Look at a slab."""
        if self._suffix in (*SEVERAL, ".csv"):
            return
        for name, reading in slab.readings.items():
            if self._suffix == ".euroc" and reading.type != "imu":
                self._found[name] = ["all of it"]
                continue
            gone = int((~reading.emitted).sum())
            self._dropped[name] = self._dropped.get(name, 0) + gone
            if name not in self._found and reading.time.size:
                self._found[name] = self._missing(self._sensors[name], reading)
        self._truth += len(slab.truth)

    def _missing(self, sensor: MountedSensor, reading: Reading) -> list[str]:
        """Return the arrays of a reading for which the format has no place."""
        if self._suffix == ".euroc":
            kept = {"angular_velocity", "linear_acceleration"}
            hidden_too = ["ideal values"] if reading.truth else []
            return [*(name for name in reading.arrays if name not in kept), *hidden_too]
        if self._suffix not in CONTAINERS:
            return ["ideal values", "hidden errors"] if reading.truth or reading.errors else []
        told = told_by(sensor, reading)
        constant = ["the constant part of hidden errors"] if any(n.endswith("_turn_on") for n in reading.errors) else []
        return [*(name for name in reading.arrays if name not in told), *constant]

    def lines(self) -> list[str]:
        """Return what was lost, a line each."""
        lines = [f"{name}: {', '.join(what)}" for name, what in self._found.items() if what]
        lines += [f"{name}: {count} rows that were dropped" for name, count in self._dropped.items() if count]
        if self._truth and self._suffix == ".euroc":
            lines.append("truth of links but for the pose and velocity of the first IMU")
        elif self._truth and self._suffix not in (*CONTAINERS, *SEVERAL, ".csv"):
            lines.append("truth of links")
            lines.append("heading of the world's axes and its water, which no recording holds: taken for 0 and none")
        return lines


def told_by(sensor: MountedSensor, reading: Reading) -> Sequence[str]:
    """Return the arrays of a reading that its messages say."""
    about = messages.about(reading)
    rows = {name: array[:1] for name, array in reading.arrays.items()}
    if about is not None:
        rows[AGE] = reading.time[:1] - about[:1]
    found: list[str] = ["time_of_validity"] if about is not None else []
    for beside in messages.topics_beside(sensor):
        message = messages.for_sensor(sensor, "reading", beside)
        raw = encode(message, reading.true_stamp[:1], rows)
        found += messages.arrays_of(sensor, raw.view(message.layout.dtype())[:, 0], "reading", beside)
    return found
