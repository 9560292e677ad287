"""A recording in memory, and its conversion from and to time slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.names import NameDict
from navsense.core.pose import Pose
from navsense.core.readings import (
    ARRAY_GROUPS,
    TRUTH_ARRAYS,
    Current,
    Reading,
    RunChange,
    TimeSlice,
    Truth,
    join_readings,
    list_panels,
    summarize_readings,
)
from navsense.core.summaries import Summary, format_summary, format_summary_html
from navsense.core.text import format_count
from navsense.faults.injection import Faults
from navsense.noise.specification import Noise
from navsense.plots import draw_panels
from navsense.recordings.info import DURATION_KEY, WORLD_JSON_KEY, RecordedRun
from navsense.recordings.run_changes import CHANGES_KEY, change_from_json
from navsense.recordings.world_json import (
    RECORDED_MOTION,
    RecordedWorld,
    format_note,
    make_opaque_sensor,
    world_from_json,
)
from navsense.sensors import AirPressure, Altimeter, Depth, Imu, Magnetometer, NavSat
from navsense.sensors.base import Output, Sensor
from navsense.world import Link, Model, MountedSensor, World

SLICE_ROWS = 100_000
"""Approximate number of rows of all sensors in one time slice."""

SPEC_CLASSES: Mapping[str, type[Any]] = {
    kind.type: kind for kind in (AirPressure, Altimeter, Depth, Imu, Magnetometer, NavSat)
}
"""Sensors whose specification can be made from their type alone."""


@dataclass(frozen=True, eq=False)
class Dataset(Mapping[str, Reading]):
    """A recording in memory: full sensor name -> `Reading`.

    truth: link name -> `Truth`.
    metadata: what the recording stores about its run, sensors and links.
    current: the water's velocity, or None.

    A name can be any unambiguous ending of a full name: `recording["imu"]`. In `truth` a model's name refers to its
    canonical link. Other names raise `UnknownNameError`.

    >>> run.save("flight.npz")
    >>> recording = ns.open("flight.npz")
    >>> recording["imu"]["linear_acceleration"].shape, recording.runs
    ((1000, 3), [0])
    >>> recording.world.sensor("imu").rate
    1000.0
    """

    readings: Mapping[str, Reading]
    truth: Mapping[str, Truth]
    metadata: Mapping[str, Any]
    current: Current | None = None

    def __post_init__(self) -> None:
        """Accept endings of names."""
        object.__setattr__(self, "readings", NameDict(self.readings, "sensor"))
        object.__setattr__(self, "truth", NameDict(self.truth, "link", list_canonical_links(self.metadata, self.truth)))

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        runs = f"{len(self.runs)} runs, " * (len(self.runs) > 1)
        title = f"{self.metadata['world']}: {runs}{format_count(len(self), 'sensor')}"
        return summarize_readings("Dataset", title, self.readings)

    def __getitem__(self, name: str) -> Reading:
        """Return the readings of one sensor by its name. Raises `UnknownNameError`."""
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the sensors' names."""
        return iter(self.readings)

    def __len__(self) -> int:
        """Return the number of sensors."""
        return len(self.readings)

    def plot(self, *names: str, run: int | None = None) -> Any:
        """Return a figure of matplotlib with the first three arrays of each sensor, or of each sensor in `names`.

        run: the number of the run. Default: the first one. See `Reading.plot` for the lines, and for all arrays.

        >>> run.save("flight.npz")
        >>> ns.open("flight.npz").plot("imu", "compass").savefig("run.png")

        Raises `NavsenseError` if matplotlib is not installed (extra `picture`), `UnknownNameError` for an unknown
        sensor.
        """
        part = self if run is None else self.select_run(run)
        return draw_panels(list_panels(part.readings, names, 0), f"{self.metadata['world']}, run {part.runs[0]}")

    @property
    def runs(self) -> Sequence[int]:
        """The numbers of the runs."""
        return [int(run) for run in self.metadata["runs"]]

    @property
    def changes(self) -> tuple[RunChange, ...]:
        """What services have switched and set during the run, in order of time. Raises `DamagedError`.

        `ns.record(world, path, changes=recording.changes)` repeats the run, with its other arguments.
        """
        return tuple(map(change_from_json, self.metadata.get(CHANGES_KEY, ())))

    @property
    def world(self) -> World:
        """The world of the recording, as much of it as the recording holds. Raises `DamagedError`."""
        return self.recorded_world.world

    def make_recorded_run(self) -> RecordedRun:
        """Return the world and the run of the recording. Raises `DamagedError` if its metadata is damaged."""
        duration = self.metadata.get(DURATION_KEY)
        return RecordedRun(
            self.recorded_world.world,
            int(self.metadata["epoch"]),
            int(self.metadata["seed"]),
            math.inf if duration is None else float(duration),
            tuple(self.runs),
            stored_topics=self.recorded_world.topics,
        )

    @cached_property
    def recorded_world(self) -> RecordedWorld:
        """The world of the recording with its topics and notes. Raises `DamagedError`."""
        data = self.metadata.get(WORLD_JSON_KEY)
        stored = None if data is None else world_from_json(data)
        if stored is not None:
            return stored
        notes = () if data is None else (format_note(data),)
        return RecordedWorld(infer_world_from_metadata(self), has_world_json=False, notes=notes)

    def select_run(self, number: int) -> Dataset:
        """Return one of several runs by its number. Raises `RecordingError` for an unknown number."""
        if number not in self.runs:
            numbers = ", ".join(map(str, self.runs[:8])) + (", ..." if len(self.runs) > 8 else "")
            raise RecordingError("run", number, allowed=f"must be one of {numbers}")
        index = self.runs.index(number)
        readings = {name: select_run_by_index(reading, index) for name, reading in self.readings.items()}
        current = self.current
        if current is not None and current.velocity.ndim == 3:
            current = current.select_run_by_index(index)
        return Dataset(readings, self.truth, {**self.metadata, "runs": [number]}, current)

    def iter_slices(self) -> Iterator[TimeSlice]:
        """Yield the recording in time slices."""
        parts: list[Reading | Truth | Current] = [*self.readings.values(), *self.truth.values()]
        parts += [self.current] if self.current is not None else []
        times = [part.time for part in parts if part.time.size]
        if not times:
            return
        first, last = min(float(t[0]) for t in times), max(float(t[-1]) for t in times)
        count = 1 + sum(time.size for time in times) // SLICE_ROWS
        edges = np.linspace(first, last, count + 1)
        edges[-1] = np.nextafter(last, np.inf)
        changes = self.changes
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield replace(cut_time_slice(self.readings, self.truth, self.current, start, end), changes=changes)
            changes = ()


def list_canonical_links(metadata: Mapping[str, Any], links: Container[str]) -> dict[str, str]:
    """Return the canonical link of each model in the metadata of a recording, if it is one of `links`."""
    world = metadata.get(WORLD_JSON_KEY)
    models = world.get("models") if isinstance(world, Mapping) else None
    entries = [model for model in models if isinstance(model, Mapping)] if isinstance(models, list) else []
    names = ((str(model.get("name")), str(model.get("canonical_link"))) for model in entries)
    return {model: link for model, link in names if link in links}


LinkSelection = Callable[[World], Iterable[str]]
"""Returns the names of links of a world."""


def select_links(metadata: Mapping[str, Any], select: LinkSelection) -> list[str] | None:
    """Return the links that `select` returns, of those with truth; None if the recording does not store its world."""
    data = metadata.get(WORLD_JSON_KEY)
    stored = None if data is None else world_from_json(data)
    return None if stored is None else [link for link in select(stored.world) if link in metadata["links"]]


RowsT = TypeVar("RowsT", Reading, Truth, Current)


def cut_time_slice(
    readings: Mapping[str, Reading], truths: Mapping[str, Truth], current: Current | None, start: float, end: float
) -> TimeSlice:
    """Return the rows with start <= t < end (s), as views."""

    def select(rows: RowsT) -> RowsT:
        first, stop = np.searchsorted(rows.time, (start, end))
        return rows.select_rows(int(first), int(stop))

    return TimeSlice(
        start,
        end,
        {name: select(reading) for name, reading in readings.items()},
        {name: select(truth) for name, truth in truths.items()},
        None if current is None else select(current),
    )


def select_run_by_index(reading: Reading, index: int) -> Reading:
    """Return the readings of one run; readings without a run axis are returned as they are."""
    if reading.clock_error.ndim == 1:
        return reading

    groups: dict[str, Any] = {
        group: {name: array[index] for name, array in getattr(reading, group).items()}
        for group in ARRAY_GROUPS
        if group != "ideal" or reading.ideal_in_runs
    }
    return replace(
        reading,
        clock_error=reading.clock_error[index],
        valid=reading.valid[index],
        emitted=reading.emitted[index],
        arrival_after_latency=None if reading.arrival_after_latency is None else reading.arrival_after_latency[index],
        ideal_in_runs=False,
        **groups,
    )


def infer_world_from_metadata(recording: Dataset) -> World:
    """Return the world as far as the metadata of the sensors describes it."""
    sensor_metadata = {name: recording.metadata["sensors"].get(name, {}) for name in recording.readings}
    link_of = {
        name: str(data.get("link") or name.rpartition("::")[0] or "base") for name, data in sensor_metadata.items()
    }
    links = list(dict.fromkeys([*recording.truth, *link_of.values()]))
    # The metadata does not have the poses of links: each link becomes a model.
    models = tuple(
        Model(link, (Link(link),), link, motion=RECORDED_MOTION if link in recording.truth else None) for link in links
    )
    sensors = tuple(
        MountedSensor(
            name,
            _make_spec(reading, sensor_metadata[name]),
            link_of[name],
            link_of[name],
            _estimate_rate(reading),
            Pose(rotation=tuple(sensor_metadata[name].get("mounting", (1.0, 0.0, 0.0, 0.0)))),
            "/" + name.replace("::", "/"),
            reading.frame,
            faults=Faults(recorded=bool(reading.fault)),
        )
        for name, reading in recording.readings.items()
    )
    return World(str(recording.metadata["world"]), models, sensors)


def _estimate_rate(reading: Reading) -> float:
    """Return the rate (Hz) from the first two rows; 1 without them."""
    step = float(reading.time[1] - reading.time[0]) if reading.time.size > 1 else 1.0
    return float(f"{1.0 / step:.9g}") if step > 0.0 else 1.0


def _make_spec(reading: Reading, sensor_metadata: Mapping[str, Any]) -> Sensor:
    """Return a specification with the recorded white noise, or an opaque sensor with the arrays of the reading."""
    noise = {
        key: [Noise(stddev=float(stddev)) for stddev in axes] for key, axes in sensor_metadata.get("noise", {}).items()
    }
    if reading.type in SPEC_CLASSES:
        prefixes = {"magnetometer": {"field": ""}, "imu": {key: f"{key}_" for key in noise}}.get(reading.type, {})
        channels = {
            prefix + axis: axis_noise
            for key, prefix in prefixes.items()
            for axis, axis_noise in zip("xyz", noise.get(key, []), strict=False)
        }
        spec: Sensor = SPEC_CLASSES[reading.type](**channels)
        return replace(spec, orientation="orientation" in reading) if isinstance(spec, Imu) else spec
    axes = reading.clock_error.ndim
    outputs = [Output(name, array.shape[axes:], reading.unit[name]) for name, array in reading.arrays.items()]
    return make_opaque_sensor(reading.type, outputs)


def collect(time_slices: Iterable[TimeSlice]) -> tuple[dict[str, Reading], dict[str, Truth], Current | None]:
    """Join consecutive time slices. Return readings by sensor, truth by link, and the current."""
    readings: dict[str, list[Reading]] = {}
    truths: dict[str, list[Truth]] = {}
    currents: list[Current] = []
    for time_slice in time_slices:
        for name, reading in time_slice.readings.items():
            readings.setdefault(name, []).append(reading)
        for name, truth in time_slice.truth.items():
            truths.setdefault(name, []).append(truth)
        currents += [time_slice.current] if time_slice.current is not None else []
    # Remove the slices of a sensor or link when they are joined, so that memory holds only one of these twice.
    return (
        {name: join_readings(readings.pop(name)) for name in list(readings)},
        {name: _join_truths(truths.pop(name)) for name in list(truths)},
        _join_currents(currents),
    )


def _join_truths(parts: Sequence[Truth]) -> Truth:
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("time", *TRUTH_ARRAYS)
    }
    return replace(parts[0], **arrays)


def _join_currents(parts: Sequence[Current]) -> Current | None:
    if not parts:
        return None
    layers = parts[0].layers
    if layers is not None:
        velocities = [part.layers.velocity for part in parts if part.layers is not None]
        layers = replace(layers, velocity=np.concatenate(velocities))
    time, velocity = np.concatenate([p.time for p in parts]), np.concatenate([p.velocity for p in parts])
    return replace(parts[0], time=time, velocity=velocity, layers=layers)
