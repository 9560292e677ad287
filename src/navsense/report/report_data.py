"""A recording of any format as the report needs it: readings and truth of one run, and the specs of the sensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from navsense import recordings
from navsense.clock import Clock
from navsense.core import inputs
from navsense.core.errors import DamagedError, NavsenseError, RecordingError, Where
from navsense.core.names import shorten_names
from navsense.core.readings import Current, Reading, Truth
from navsense.fault_file import list_faults
from navsense.recordings import message_recordings
from navsense.recordings.base import to_path
from navsense.recordings.dataset import collect, select_run_by_index
from navsense.recordings.info import DURATION_KEY
from navsense.recordings.reading_assembler import open_readings
from navsense.recordings.summary import read_summary
from navsense.world import MountedSensor, Note, World

WORLD_SUFFIXES = (".sdf", ".world")
"""Suffixes of files that can be the world of a recording in the same folder."""

_WORLD = inputs.FileKind("world", RecordingError, "must be a world file")

MAX_WORLD_BYTES = 1 << 22
"""Larger files in the folder of a recording are not searched for the world."""


@dataclass(frozen=True, eq=False)
class ReportData:
    """One run of a recording.

    path, name: of the recording and of its world
    readings, truth: by sensor and link name
    current: the water current
    sensors: specs by name; `has_recorded_specs` is false if they are inferred, or come from `sdf_world`
    tracks: model -> link whose track is drawn
    metadata: seed, runs and requested duration, as in recordings; None for an unknown value
    has_true_time: false if times are stamps, as in recordings of other programs
    sdf_world: the world from an SDF file, with its surfaces, which recordings do not contain; None without a file
    notes: what could not be read from the recording or its world
    clocks: specs by name, those of the recording before those of `sdf_world`
    heading: angle (rad) from east to the world's x axis; None if it is unknown
    scheduled_faults: the injected faults that the recording lists, with the keys of `navsense.fault_file`
    world_warnings: warnings about models with actuators and without a motion, and about unread plug-ins of sensors
    """

    path: str
    name: str
    readings: Mapping[str, Reading]
    truth: Mapping[str, Truth]
    current: Current | None
    sensors: Mapping[str, MountedSensor]
    tracks: Mapping[str, str]
    metadata: Mapping[str, Any]
    sdf_world: World | None = None
    notes: tuple[str, ...] = ()
    scheduled_faults: tuple[Mapping[str, Any], ...] = ()
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    heading: float | None = None
    has_recorded_specs: bool = False
    has_true_time: bool = True
    world_warnings: tuple[Note, ...] = ()

    @property
    def span(self) -> tuple[float, float]:
        """First and last time (s) of any reading or truth."""
        parts: list[Reading | Truth] = [*self.readings.values(), *self.truth.values()]
        times = [part.time for part in parts if part.time.size]
        return min((float(t[0]) for t in times), default=0.0), max((float(t[-1]) for t in times), default=0.0)

    @cached_property
    def short_names(self) -> Mapping[str, str]:
        """Shortest unique ending of each name of a sensor, a clock or a subject of a scheduled fault."""
        clocks = {sensor.clock for sensor in self.sensors.values() if sensor.clock}
        return shorten_names({*self.readings, *clocks, *(str(fault["of"]) for fault in self.scheduled_faults)})


def read_report_data(path: str, world: str | World | None = None, *, expand_xacro: bool = False) -> ReportData:
    """Return the first run of a recording; `world` is the world that was simulated, or its path.

    The default is the only world file in the folder of the recording that has a world of the recorded name. It never
    runs xacro.
    Raises `RecordingError` if `path` is not a recording, and the errors of `navsense.load` for `world`.
    """
    file = to_path(path)
    # `recordings.open` reads messages as well. But its `Dataset` has no notes about topics, and cannot tell a recorded
    # world from an inferred one (`RecordedWorld.has_world_json`).
    data = _read_messages(file) if message_recordings.is_message_recording(file) else _read_arrays(file)
    if not data.readings and not data.truth:
        raise RecordingError(
            "contains no readings and no truth",
            where=Where(path),
            remedy=f"list its contents with: navsense info {path}",
        )
    return _add_world_file(data, file, world, expand_xacro=expand_xacro)


def _read_arrays(file: Path) -> ReportData:
    recording = recordings.open(file)
    world: World | None = None
    clocks: Mapping[str, Clock] = {}
    notes: tuple[str, ...] = ()
    try:
        clocks, notes = recording.recorded_world.clocks, recording.recorded_world.notes
        if recording.recorded_world.has_world_json:
            world = recording.world
    except DamagedError as error:
        notes = (str(error),)
    current = recording.current
    if current is not None and current.velocity.ndim > 2:
        current = current.select_run_by_index(0)
    metadata = {key: recording.metadata.get(key) for key in ("seed", "runs", DURATION_KEY)}
    # A EuRoC folder has no true time and no specs, so its reader returns no "program", even if navsense wrote it. Its
    # seed is 0 if another program wrote it.
    has_navsense_metadata = recording.metadata.get("program") == "navsense"
    if not has_navsense_metadata:
        metadata["seed"] = read_summary(file).metadata.get("seed")
    return _build_report_data(
        file,
        {name: select_run_by_index(reading, 0) for name, reading in recording.readings.items()},
        recording.truth,
        world,
        name=str(recording.metadata["world"]),
        current=current,
        metadata=metadata,
        notes=notes,
        scheduled_faults=_parse_faults(recording.metadata.get("faults", [])),
        clocks=clocks,
        has_recorded_specs=world is not None and has_navsense_metadata,
        has_true_time=has_navsense_metadata,
    )


def _read_messages(file: Path) -> ReportData:
    with open_readings(file) as assembler:
        readings, truth, current = collect(assembler.iter_slices())
    metadata = assembler.reader.metadata
    recorded_run = assembler.recorded_run
    return _build_report_data(
        file,
        readings,
        truth,
        assembler.world,
        name=assembler.world.name if "world" in metadata else file.name,
        current=current,
        metadata={
            "seed": metadata.get("seed"),
            "runs": list(recorded_run.runs),
            DURATION_KEY: recorded_run.requested_duration,
        },
        notes=(*assembler.recorded_world.notes, *assembler.topic_notes),
        scheduled_faults=_parse_faults(metadata.get("faults", "[]")),
        clocks=assembler.recorded_world.clocks,
        has_recorded_specs=assembler.recorded_world.has_world_json,
        has_true_time=assembler.reader.is_navsense,
    )


def _build_report_data(
    file: Path,
    readings: Mapping[str, Reading],
    truth: Mapping[str, Truth],
    world: World | None,
    *,
    has_recorded_specs: bool,
    has_true_time: bool,
    **fields: Any,
) -> ReportData:
    """Return a recording with the sensors and tracks of its recorded or inferred world, without `sdf_world`.

    The times of a recording of another program are stamps, unless a format of another package returns clock
    errors (`navsense.formats`).
    """
    return ReportData(
        path=str(file),
        has_recorded_specs=has_recorded_specs,
        heading=world.environment.heading if world and has_recorded_specs else None,
        readings=readings,
        truth=truth,
        sensors={sensor.name: sensor for sensor in world.sensors} if world else {},
        tracks=select_tracks(world, truth),
        has_true_time=has_true_time or any(reading.clock_error.any() for reading in readings.values()),
        # Of all notes, only the warnings about stationary models have the name of a model.
        world_warnings=tuple(note for note in world.notes if note.model or note.subject == "plugin") if world else (),
        **fields,
    )


def _parse_faults(listed: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the listed faults that have a name, a kind and a start."""
    try:
        listed = inputs.parse_json(listed) if isinstance(listed, str) else listed
    except ValueError:
        return ()
    faults = [fault for fault in listed if isinstance(fault, dict)] if isinstance(listed, list) else []
    return tuple(fault for fault in faults if {"of", "kind", "start"} <= set(fault))


def select_tracks(world: World | None, truth: Mapping[str, Truth]) -> dict[str, str]:
    """Return the link whose track is drawn of each model: the canonical link if it is known, else the first one."""
    canonical = {model.name: model.canonical_link for model in world.models} if world else {}
    tracks: dict[str, str] = {}
    for link in truth:
        model = link.partition("::")[0]
        if canonical.get(model) == link:
            tracks[model] = link
        else:
            tracks.setdefault(model, link)
    return tracks


def _add_world_file(data: ReportData, file: Path, source: str | World | None, *, expand_xacro: bool) -> ReportData:
    """Return the recording with the source world, else with that of a file in the folder of the recording."""
    from navsense.sdf import load as load_world

    if source is not None:
        world = source if isinstance(source, World) else load_world(source, expand_xacro=expand_xacro)
        missing = sorted(set(data.readings) - {sensor.name for sensor in world.sensors})
        if missing:
            value = source if isinstance(source, str) else world.name
            allowed = f"has no sensor {missing[0]}, which the recording has"
            remedy = "omit --world, or name the file that it was recorded from"
            raise RecordingError("the world", value, allowed=allowed, remedy=remedy)
        return _merge_world(data, world)
    world_path = _find_world_file(file, data.name)
    if world_path is None:
        return data
    try:
        world = load_world(str(world_path))
    except NavsenseError as error:
        return replace(data, notes=(*data.notes, f"the world {world_path.name} cannot be read: {error}"))
    if not set(data.readings) <= {sensor.name for sensor in world.sensors}:
        return data
    return replace(_merge_world(data, world), notes=(*data.notes, f"world file: {world_path.name}"))


def _merge_world(data: ReportData, world: World) -> ReportData:
    """Return the recording with a world. What is recorded takes precedence over the clocks, specs and faults of it."""
    clocks = {**{clock.name: clock for clock in world.clocks}, **data.clocks}
    if data.has_recorded_specs:
        return replace(data, sdf_world=world, clocks=clocks)
    return replace(
        data,
        name=world.name,
        sdf_world=world,
        heading=world.environment.heading,
        clocks=clocks,
        sensors={sensor.name: sensor for sensor in world.sensors if sensor.name in data.readings},
        tracks=select_tracks(world, data.truth),
        scheduled_faults=data.scheduled_faults or tuple(list_faults(world)),
    )


def _find_world_file(file: Path, name: str) -> Path | None:
    """Return the file in the folder of a recording that has a world of this name; None for none or several."""
    pattern = re.compile(rf"""<world\s[^>]*\bname\s*=\s*["']{re.escape(name)}["']""")
    matches = []
    folder = file.resolve().parent if file.is_symlink() else file.parent
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in WORLD_SUFFIXES:
            continue
        try:
            text = inputs.read_bytes(str(path), _WORLD, MAX_WORLD_BYTES).decode(errors="replace")
        except RecordingError:
            continue
        if pattern.search(text):
            matches.append(path)
    return matches[0] if len(matches) == 1 else None
