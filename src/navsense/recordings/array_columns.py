"""Readings, truth and current as named arrays with one column per component: what npz, Parquet and CSV share.

    time clock_error arrival valid emitted    ARRAY.AXIS    ideal.ARRAY.AXIS    bias.ARRAY.AXIS    ...

An axis is x, y, z of a vector, w, x, y, z of a quaternion, and a number of any other array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from navsense.core.errors import RecordingError, Where
from navsense.core.readings import (
    ARRAY_GROUPS,
    TRUTH_ARRAYS,
    Current,
    Layers,
    Reading,
    RunChange,
    Truth,
    list_component_names,
)
from navsense.core.typing import AnyArray, Times
from navsense.recordings import metadata
from navsense.recordings.info import RecordedRun


class ArrayComponent(NamedTuple):
    """One component of an array.

    column: its name in a table.
    group: the attribute of `Reading` that holds the array; "truth" of a link or the current.
    name: the name of the array.
    indices: the place of the component in one row of the array.
    shape: the shape of one row of the array.
    """

    column: str
    group: str
    name: str
    indices: tuple[int, ...]
    shape: tuple[int, ...]


def list_components(group: str, name: str, shape: Sequence[int], *, quaternion: bool = False) -> list[ArrayComponent]:
    """Return the components of an array whose rows have this shape."""
    prefix = name if group in ("arrays", "truth") else f"{group}.{name}"
    labels = list_component_names(shape, quaternion=quaternion)
    return [
        ArrayComponent(f"{prefix}.{label}" if label else prefix, group, name, indices, tuple(shape))
        for indices, label in zip(np.ndindex(*shape), labels, strict=True)
    ]


def list_sensor_components(sensor_metadata: Mapping[str, Any]) -> tuple[ArrayComponent, ...]:
    """Return the components of all arrays in the metadata of a sensor."""
    return tuple(
        component
        for group in ARRAY_GROUPS
        for name, shape in sensor_metadata[group].items()
        for component in list_components(group, name, shape, quaternion=name in sensor_metadata["quaternions"])
    )


TRUTH_COMPONENTS = tuple(
    component
    for name in TRUTH_ARRAYS
    for component in list_components(
        "truth", name, (4 if name == "orientation" else 3,), quaternion=name == "orientation"
    )
)
"""The components of the truth of a link."""


def list_current_components(current_metadata: Mapping[str, Any]) -> list[ArrayComponent]:
    """Return the components of the water's velocity, and of its layers if the current has layers."""
    layers = (
        list_components("truth", "layers", (len(current_metadata["layers"]["depths"]), 3))
        if "layers" in current_metadata
        else []
    )
    return [*list_components("truth", "velocity", (3,)), *layers]


def select_component(array: AnyArray, indices: tuple[int, ...]) -> AnyArray:
    """Return one component of each row, a view."""
    index: tuple[Any, ...] = (..., *indices)
    component: AnyArray = array[index]
    return component


def join_components(
    components: Iterable[ArrayComponent], read_column: Callable[[ArrayComponent], AnyArray]
) -> dict[str, dict[str, AnyArray]]:
    """Return group -> name -> array of columns, each of the shape of the rows (*runs, time)."""
    groups: dict[str, dict[str, AnyArray]] = {}
    for component in components:
        values, arrays = read_column(component), groups.setdefault(component.group, {})
        if component.name not in arrays:
            arrays[component.name] = np.empty((*values.shape, *component.shape), dtype=values.dtype)
        select_component(arrays[component.name], component.indices)[...] = values
    return groups


def make_reading(
    name: str,
    sensor_metadata: Mapping[str, Any],
    time: Times,
    columns: Mapping[str, AnyArray],
    groups: Mapping[str, Mapping[str, AnyArray]],
) -> Reading:
    """Return a reading from its columns clock_error, valid, emitted and arrival, and its groups of arrays."""
    return Reading(
        name=name,
        type=sensor_metadata["type"],
        frame=sensor_metadata["frame"],
        unit=sensor_metadata["unit"],
        time=time,
        clock_error=columns["clock_error"],
        valid=columns["valid"],
        emitted=columns["emitted"],
        epoch=sensor_metadata["epoch"],
        arrival_after_latency=columns["arrival"] if sensor_metadata["latency"] else None,
        ideal_in_runs=sensor_metadata["ideal_in_runs"],
        **{group: groups.get(group, {}) for group in ARRAY_GROUPS},
    )


def make_truth(name: str, time: Times, arrays: Mapping[str, AnyArray], epoch: int) -> Truth:
    """Return the truth of a link from its arrays."""
    return Truth(name=name, time=time, epoch=epoch, **arrays)


def make_current(current_metadata: Mapping[str, Any], time: Times, arrays: Mapping[str, AnyArray]) -> Current:
    """Return the water's velocity from its arrays `velocity` and `layers`."""
    layers = None
    if "layers" in current_metadata:
        depths = tuple(float(depth) for depth in current_metadata["layers"]["depths"])
        layers = Layers(current_metadata["layers"]["topic"], depths, arrays["layers"])
    return Current(
        current_metadata["topic"],
        tuple(current_metadata["position"]),
        time,
        arrays["velocity"],
        current_metadata["epoch"],
        layers,
    )


class EntryMetadata:
    """The metadata of the sensors, links and current that a writer has received."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Start without an entry."""
        self._path, self._recorded_run = path, recorded_run
        self.sensors: dict[str, dict[str, Any]] = {}
        self.links: list[str] = []
        self.current: dict[str, Any] | None = None
        self.changes: list[RunChange] = []

    def add_reading(self, name: str, reading: Reading) -> dict[str, Any]:
        """Add a sensor, and return its metadata. Raises `RecordingError` if its arrays, shapes or runs changed."""
        sensor_metadata = metadata.make_sensor_metadata(self._recorded_run, name, reading)
        if self.sensors.setdefault(name, sensor_metadata) != sensor_metadata:
            raise self.make_changed_error(name)
        return sensor_metadata

    def make_changed_error(self, name: str) -> RecordingError:
        """Return the error of a sensor whose arrays are not those of its first rows."""
        what = f"sensor {name!r} changed its arrays, their types, their shapes or its runs"
        return RecordingError(what, where=Where(str(self._path)))

    def add_truth(self, name: str) -> None:
        """Add a link."""
        if name not in self.links:
            self.links.append(name)

    def add_current(self, current: Current) -> dict[str, Any]:
        """Add the current, and return its metadata."""
        self.current = metadata.make_current_metadata(current)
        return self.current

    def count(self) -> int:
        """Return the number of sensors, links, currents (0 or 1) and changes."""
        return len(self.sensors) + len(self.links) + (self.current is not None) + len(self.changes)

    def format(self) -> str:
        """Return the metadata of the recording so far."""
        return metadata.format_metadata(self._recorded_run, self.sensors, self.links, self.current, self.changes)


class ArrayEntry(NamedTuple):
    """A sensor, a link or the current: "reading", "truth" or "current"; its name; its label and type in `info`."""

    kind: str
    name: str
    label: str
    type: str


def list_entries(meta: Mapping[str, Any]) -> Iterator[ArrayEntry]:
    """Yield the sensors, links and current in the metadata of a recording."""
    for name, sensor_metadata in meta["sensors"].items():
        yield ArrayEntry("reading", name, name, str(sensor_metadata["type"]))
    for name in meta["links"]:
        yield ArrayEntry("truth", name, f"truth/{name}", "truth")
    if meta.get("current"):
        yield ArrayEntry("current", meta["current"]["topic"], "current", "current")
