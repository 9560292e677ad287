"""A recording of any format as the report sees it: one run's readings and truth, and the sheets behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs, recordings
from navsense.clock import Clock
from navsense.errors import NavsenseError, RecordingError, Where
from navsense.faults import list_faults
from navsense.recordings import message_reader
from navsense.recordings.base import to_path
from navsense.recordings.dataset import collect, select_run
from navsense.recordings.mcap.records import DamagedError
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.series import Current, Reading, Truth
from navsense.world import MountedSensor, Note, World

WORLD_SUFFIXES = (".sdf", ".world")
"""Of files that may be the world of a recording beside them."""

_WORLD = inputs.FileKind("world", RecordingError, "must be a world file")

LARGEST_WORLD = 1 << 22
"""Bytes of a file beside a recording that is looked into for the world's name."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """One run of a recording: readings and truth by name, the water's current; `sensors` are the sheets by name.

    `world` is the file's that the recording was made of, where that is known: the ground is in it. `exact`
    says whether the sheets are those that were recorded: else they are guessed, or the world's. `planned`
    are the injected faults that the recording lists, with the keys of `navsense.faults`. `stationary` are the warnings
    about models that could move and had no motion.
    """

    path: str
    name: str
    readings: Mapping[str, Reading]
    truth: Mapping[str, Truth]
    current: Current | None
    sensors: Mapping[str, MountedSensor]
    tracks: Mapping[str, str]
    about: Mapping[str, Any]
    world: World | None = None
    notes: tuple[str, ...] = ()
    planned: tuple[Mapping[str, Any], ...] = ()
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    exact: bool = False
    stationary: tuple[Note, ...] = ()

    @property
    def span(self) -> tuple[float, float]:
        """Return the first and last instant (s) of anything."""
        every = [*(r.time for r in self.readings.values()), *(t.time for t in self.truth.values())]
        times = [time for time in every if time.size]
        return min((float(t[0]) for t in times), default=0.0), max((float(t[-1]) for t in times), default=0.0)


def recording_of(path: str, world: str | None = None, *, expand_xacro: bool = False) -> Recorded:
    """Return what a recording holds of its first run; `world` names the file that it was made of.

    Without `world`, a world file of that name in the recording's folder is used; it never runs xacro. Raises
    `RecordingError` if `path` is not a recording, and the errors of `navsense.load` for `world`.
    """
    file = to_path(path)
    if message_reader.is_message_recording(file):
        found = _of_messages(file)
    else:
        found = _of_arrays(file)
    if not found.readings and not found.truth:
        raise RecordingError(
            "holds no readings and no truth", where=Where(path), remedy="look at it with: navsense info"
        )
    return _with_world(found, file, world, expand_xacro=expand_xacro)


def _of_arrays(file: Path) -> Recorded:
    """Return what a recording of arrays holds."""
    loaded = recordings.open(file)
    told: World | None = None
    clocks: Mapping[str, Clock] = {}
    notes: tuple[str, ...] = ()
    try:
        stored = loaded.stored
        told, clocks, notes = stored.world if stored.topics else None, stored.clocks, stored.notes
    except DamagedError as error:
        notes = (str(error),)
    current = loaded.current
    if current is not None and current.velocity.ndim > 2:
        current = current.of_run(0)
    readings = {name: select_run(reading, 0) for name, reading in loaded.readings.items()}
    return Recorded(
        str(file),
        str(loaded.metadata["world"]),
        readings,
        loaded.truth,
        current,
        {sensor.name: sensor for sensor in told.sensors} if told else {},
        tracks_in(told, loaded.truth),
        {key: loaded.metadata.get(key) for key in ("seed", "runs", "version", "duration_asked", "epoch")},
        notes=notes,
        planned=_planned(loaded.metadata.get("faults", [])),
        clocks=clocks,
        exact=told is not None,
        stationary=find_stationary_models(told),
    )


def _of_messages(file: Path) -> Recorded:
    """Return what a recording of messages holds."""
    with message_reader.open_messages(file) as source:
        reader = ReadingAssembler(source)
        readings, truth, current = collect(reader.iter_slices())
        left, planned = reader.losses, source.metadata.get("faults", "[]")
    told, recording = reader.world, reader.header
    about = {"seed": recording.seed, "runs": list(recording.runs), "epoch": recording.epoch}
    return Recorded(
        str(file),
        told.name,
        readings,
        truth,
        current,
        {sensor.name: sensor for sensor in told.sensors},
        tracks_in(told, truth),
        {**about, "duration_asked": recording.duration if np.isfinite(recording.duration) else None},
        notes=(*reader.stored.notes, *left),
        planned=_planned(planned),
        clocks=reader.stored.clocks,
        exact=reader.time_base.has_rates,
        stationary=find_stationary_models(told),
    )


def _planned(listed: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the faults that a recording lists, those left out that do not say whose they are and from when on."""
    try:
        listed = inputs.parse_json(listed) if isinstance(listed, str) else listed
    except ValueError:
        return ()
    known = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(one for one in known if {"of", "kind", "start"} <= set(one))


def find_stationary_models(told: World | None) -> tuple[Note, ...]:
    """Return the warnings about models of a world that could move and have no motion."""
    return tuple(note for note in told.notes if note.model) if told else ()


def tracks_in(told: World | None, truth: Mapping[str, Truth]) -> dict[str, str]:
    """Return the links whose way is drawn, by what they are called: of each model its canonical one, where known."""
    known = {model.name: model.canonical_link for model in told.models} if told else {}
    out: dict[str, str] = {}
    for link in truth:
        model = link.partition("::")[0]
        if known.get(model) == link:
            out[model] = link
        else:
            out.setdefault(model, link)
    return out


def _with_world(found: Recorded, file: Path, named: str | None, *, expand_xacro: bool) -> Recorded:
    """Return the recording with its world: the one named, else the one of its name beside it."""
    from navsense.sdf import load as load_world

    if named is not None:
        world = load_world(named, expand_xacro=expand_xacro)
        lost = sorted(set(found.readings) - {sensor.name for sensor in world.sensors})
        if lost:
            allowed = f"has no sensor {lost[0]}, which the recording has"
            raise RecordingError("the world", named, allowed=allowed, remedy="name the file that it was recorded from")
        return _in(found, world)
    beside = _beside(file, found.name)
    if beside is None:
        return found
    try:
        world = load_world(str(beside))
    except NavsenseError as error:
        return replace(found, notes=(*found.notes, f"the world {beside} beside it cannot be read: {error}"))
    if not set(found.readings) <= {sensor.name for sensor in world.sensors}:
        return found
    return replace(_in(found, world), notes=(*found.notes, f"the ground is that of {beside}"))


def _in(found: Recorded, world: World) -> Recorded:
    """Return the recording with its world, which has the sheets of clocks, and the faults, that it does not tell."""
    clocks = {**{clock.name: clock for clock in world.clocks}, **found.clocks}
    if found.exact:
        return replace(found, world=world, clocks=clocks)
    sensors = {sensor.name: sensor for sensor in world.sensors if sensor.name in found.readings}
    found = replace(found, tracks=tracks_in(world, found.truth), planned=found.planned or tuple(list_faults(world)))
    return replace(found, name=world.name, world=world, clocks=clocks, sensors=sensors)


def _beside(file: Path, name: str) -> Path | None:
    """Return the file beside a recording with a world of this name; None where there is none, or several."""
    pattern = re.compile(rf"""<world\s[^>]*\bname\s*=\s*["']{re.escape(name)}["']""")
    found = []
    for near in sorted(file.resolve().parent.iterdir()):
        if near.suffix.lower() not in WORLD_SUFFIXES:
            continue
        try:
            text = inputs.read_bytes(str(near), _WORLD, LARGEST_WORLD).decode(errors="replace")
        except RecordingError:
            continue
        if pattern.search(text):
            found.append(near)
    return found[0] if len(found) == 1 else None
