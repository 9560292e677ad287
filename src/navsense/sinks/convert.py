"""A recording in another format: messages as they are between recordings of messages, else what they say.

The result appears under its name when it is whole; until then it lies in a hidden folder beside it, and the recording
that is read is never written over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from navsense import inputs, outputs, sinks
from navsense.errors import SinkError, Where
from navsense.messages.base import SEC_MAX
from navsense.messages.schemas import CURRENT
from navsense.series import Slab
from navsense.sinks import sources
from navsense.sinks.base import FOLDERS, LAYOUT, Recording, os_error, storage_path, to_path
from navsense.sinks.device import ADDRESS
from navsense.sinks.load import load
from navsense.sinks.lost import CONTAINERS, Lost, suffix_of
from navsense.sinks.meta import damage
from navsense.sinks.read import MessageReader
from navsense.sinks.records import DamagedError
from navsense.sinks.transfer import checked, hidden, transfer
from navsense.sinks.world_json import has_place, notes_about

READ = "see what it holds with: navsense info"
"""What to do about a recording of which nothing is read."""

SEVERAL = (".npz", ".parquet")
"""Suffixes of recordings that hold several runs."""


@dataclass
class Converted:
    """What was written: where, how many messages, rows or readings, and what could not be carried, a line each.

    `notes` are about what this version of navsense cannot read of the recording's world.
    """

    path: Path
    count: int
    noun: str
    lost: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def convert(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    run: int | None = None,
    epoch: int | None = None,
    ros: str | None = None,
) -> Converted:
    """Write the recording `path` to `out` in the format of its suffix.

    Between `.mcap`, `.bag`, `.db3` and the folder of a bag of ROS 2 (no suffix: with MCAP in it) messages go over as
    they are, of unknown types too. `run` chooses one of several; with `epoch`, the integer second at which `out` begins
    in place of that of `path`, the conversion uses readings and truth. So it does with `ros`, the ROS 2 distribution of
    the definitions in `out`: "jazzy" (also for later distributions) or "humble". Raises `SinkError` for what
    cannot be read or written, and where `out` is `path`.
    """
    source, target = to_path(path), to_path(out)
    try:
        if epoch is not None and not 0 <= epoch <= SEC_MAX:
            raise SinkError("--epoch", epoch, allowed=f"must be an integer of seconds from 0 to {SEC_MAX}")
        if ADDRESS.fullmatch(str(out)):
            remedy = "name a file; what is sent to a port comes from: navsense run"
            raise SinkError("a recording is converted into a file, not an address", str(out), remedy=remedy)
        with inputs.collect_inputs():
            inputs.add_input(source)
            inputs.add_input(sources.folder_of(source))
            if source.suffix.lower() in FOLDERS and not source.exists():
                inputs.add_input(storage_path(source))
            _check(target)
            if sources.is_container(source) and suffix_of(target) in CONTAINERS and epoch is None and ros is None:
                if run is not None:
                    allowed = "is of .npz and .parquet: a recording of messages holds one run"
                    raise SinkError("--run", run, allowed=allowed)
                return _as_they_are(source, target)
            return _convert_readings(source, target, run, epoch, ros or CURRENT)
    except OSError as error:
        raise os_error(source, error, "read") from error


def _check(target: Path) -> None:
    """Raise `SinkError` where a recording cannot be written to `target`, or that would be over what is read."""
    sinks.check_name(target)
    if suffix_of(target) in CONTAINERS:
        outputs.check_not_input(sinks.place(target))
        checked(target)
    else:
        sinks.check(target)


def _as_they_are(source: Path, target: Path) -> Converted:
    """Carry messages."""
    with sources.opened(source) as found:
        notes = notes_about(found.about.get(LAYOUT))
        if isinstance(found, sources.McapSource) and suffix_of(target) == ".mcap" and found.profile != sources.OLD:
            count = found.total()  # all are read: a damaged one is not handed on
            with hidden(target) as work:
                part = work.folder / target.name
                shutil.copyfile(source, part)
                work.commit(part)
            return Converted(target, count, "messages", notes=notes)
        count, lost = transfer(found, target)
        return Converted(sinks.place(target), count, "messages", lost, notes)


def _dated(recording: Recording, slabs: Iterator[Slab], epoch: int | None) -> tuple[Recording, Iterator[Slab]]:
    """Return a recording and its slabs as if it had begun at an epoch (s); as they are without one."""
    if epoch is None:
        return recording, slabs
    return replace(recording, epoch=epoch), (_moved(slab, epoch) for slab in slabs)


def _moved(slab: Slab, epoch: int) -> Slab:
    """Return a slab of another epoch (s)."""
    return replace(
        slab,
        readings={name: replace(reading, epoch=epoch) for name, reading in slab.readings.items()},
        truth={name: replace(truth, epoch=epoch) for name, truth in slab.truth.items()},
        current=None if slab.current is None else replace(slab.current, epoch=epoch),
    )


def _convert_readings(source: Path, target: Path, run: int | None, epoch: int | None, ros: str) -> Converted:
    """Write what a recording says, as readings and truth."""
    if sources.is_container(source):
        with sources.opened(source) as found:
            reader = MessageReader(found)
            if run is not None and [run] != list(reader.recording.runs):
                raise SinkError("run", run, allowed=f"must be {reader.recording.runs[0]}, the only one")
            world = reader.recording.world
            if not (world.sensors or world.models or world.environment.current):
                raise _nothing(source)
            lost = Lost(reader.recording, target, placed=has_place(sources.layout_of(found) or {}))
            head = replace(reader.recording, ros=ros)
            made = _written(*_dated(head, reader.slabs(), epoch), target, source, lost)
            made.lost += reader.left
            made.notes = reader.stored.notes
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
        recording = replace(loaded.recording(), ros=ros)
    except DamagedError as error:
        raise damage(source, error) from error
    lost = Lost(recording, target, placed=has_place(loaded.meta.get(LAYOUT, {})))
    made = _written(*_dated(recording, loaded.slabs(), epoch), target, source, lost)
    made.notes = loaded.stored.notes
    return made


def _nothing(source: Path) -> SinkError:
    """Return the error of a recording of which nothing is read."""
    what = "holds no message that is read as a reading or as truth"
    return SinkError(what, where=Where(str(source)), remedy=READ)


def _written(recording: Recording, slabs: Iterator[Slab], target: Path, source: Path, lost: Lost) -> Converted:
    """Write slabs to a recording; a folder with MCAP in it by way of its file."""
    suffix, found = suffix_of(target), False
    place = sinks.place(target)
    inner = target if suffix else target.with_name(f"{target.name}.mcap")
    with hidden(target, inner) as work:
        part = work.folder / inner.name
        with sinks.open(part, recording) as sink:
            for slab in slabs:
                lost.note(slab)
                found = found or bool(slab.readings or slab.truth or slab.current)
                sink.write(slab)
            if not found:
                raise _nothing(source)
        made = sinks.place(part)
        if not suffix:
            with sources.opened(part) as messages_of:
                transfer(messages_of, target)
        else:
            work.commit(made)
    return Converted(place, lost.count, lost.noun, lost.lines())
