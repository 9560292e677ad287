"""Results of a run: named arrays with unit, frame and time.

Times are float64 seconds since the start of the run. A stamp is the sensor's clock in integer nanoseconds. It is
computed on request: ``stamp = epoch 10^9 + round((time + clock_error) 10^9)``. Messages of a DVL and an ADCP have the
time of validity in the place of `time` (`messages.base.compute_stamps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from navsense.core.errors import ClockError, NavsenseError, SimulationError, UnknownNameError
from navsense.core.names import get_short_name, make_type_error, suggest_name
from navsense.core.panels import Panel
from navsense.core.summaries import Summary, format_summary, format_summary_html
from navsense.core.text import format_count
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Times, Vector
from navsense.core.validation import check_number, validate_types

NANOSECONDS = 1e9

LONGEST_TIME = 6e9
"""Largest difference (s) between a stamp and the start of the run."""


def make_read_only(array: AnyArray) -> AnyArray:
    """Make an array, and the arrays of which it is a view, read-only. Return the array."""
    base: object = array
    while isinstance(base, np.ndarray):
        base.setflags(False)  # type: ignore[call-arg]  # twice as quick as by its name
        base = base.base
    return array


def make_all_read_only(arrays: Iterable[AnyArray]) -> None:
    """Make arrays, and the arrays of which they are views, read-only."""
    for array in arrays:
        make_read_only(array)


@lru_cache(maxsize=64)
def make_all_true(shape: tuple[int, ...]) -> BoolArray:
    """Return a read-only array of True that takes no memory."""
    return np.broadcast_to(np.True_, shape)


def to_nanoseconds(epoch: int, seconds: FloatArray) -> IntArray:
    """Return integer nanoseconds of `seconds` (any shape, s) after the integer second `epoch`, rounded to the nearest.

    Raises `ClockError` if they exceed 64 bits: more than some 200 years.
    """
    if seconds.size and not np.abs(seconds).max() < LONGEST_TIME:
        worst = float(seconds.flat[int(np.argmax(~(np.abs(seconds) < LONGEST_TIME)))])
        raise ClockError("time of a stamp (s)", worst, allowed=f"must be of absolute value below {LONGEST_TIME:g} s")
    scaled = np.asarray(seconds * NANOSECONDS)
    nanoseconds: IntArray = np.rint(scaled, out=scaled).astype(np.int64)
    nanoseconds += epoch * 1_000_000_000
    return nanoseconds


def to_nanosecond(epoch: int, seconds: float) -> int:
    """Return one time as `to_nanoseconds` does, ten times faster."""
    return round(seconds * NANOSECONDS) + epoch * 1_000_000_000


@dataclass(frozen=True, eq=False)
class Truth:
    """Ground truth of one link: arrays (time, axis) without a run axis, because truth is the same in all runs.

    position (m), orientation (w x y z, body to world), velocity (m/s), acceleration (m/s^2) in the world frame;
    angular_velocity (rad/s), angular_acceleration (rad/s^2) in the link's own frame. Read-only.

    >>> truth = run.truth["quadrotor"]  # of the canonical link
    >>> truth.position.shape, truth.orientation[0].round(3)
    ((100, 3), array([ 1.   , -0.002, -0.003, -0.   ]))
    """

    name: str
    time: Times
    position: FloatArray
    orientation: FloatArray
    velocity: FloatArray
    angular_velocity: FloatArray
    acceleration: FloatArray
    angular_acceleration: FloatArray
    epoch: int = 0

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<Truth of {self.name}: {', '.join(TRUTH_ARRAYS)}; {format_count(self.time.size, 'instant')}>"

    @property
    def stamp(self) -> IntArray:
        """The true time of each row, integer nanoseconds."""
        return to_nanoseconds(self.epoch, self.time)

    def select_rows(self, first: int, stop: int) -> Truth:
        """Return rows first to stop - 1, as views."""
        arrays = {name: getattr(self, name)[first:stop] for name in TRUTH_ARRAYS}
        return Truth(self.name, self.time[first:stop], **arrays, epoch=self.epoch)


TRUTH_ARRAYS = (
    "position",
    "orientation",
    "velocity",
    "angular_velocity",
    "acceleration",
    "angular_acceleration",
)
"""The arrays of a `Truth`, in order."""


@dataclass(frozen=True, eq=False)
class Layers:
    """The water's velocity (*runs, time, layer, 3) m/s, world frame, at `depths` (m) below the surface; its topic."""

    topic: str
    depths: tuple[float, ...]
    velocity: FloatArray

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<Layers on {self.topic}: velocity at {format_count(len(self.depths), 'depth')}>"


@dataclass(frozen=True, eq=False)
class Current:
    """The water's velocity (*runs, time, 3) m/s, world frame, at `position` (m) and `time` (time,) s, with its topic.

    `layers` is the velocity above and below that position at the same instants; None if it is not recorded.
    """

    topic: str
    position: Vector
    time: Times
    velocity: FloatArray
    epoch: int = 0
    layers: Layers | None = None

    def __repr__(self) -> str:
        """Return a short description."""
        place = " ".join(f"{part:g}" for part in self.position)
        return f"<Current on {self.topic} at {place} m: velocity; {self.time.size} instants>"

    @property
    def stamp(self) -> IntArray:
        """The true time of each row, integer nanoseconds."""
        return to_nanoseconds(self.epoch, self.time)

    def select_rows(self, first: int, stop: int) -> Current:
        """Return rows first to stop - 1 of time, as views."""
        layers = self.layers and replace(self.layers, velocity=self.layers.velocity[..., first:stop, :, :])
        return replace(self, time=self.time[first:stop], velocity=self.velocity[..., first:stop, :], layers=layers)

    def select_run_by_index(self, index: int) -> Current:
        """Return the current of one of the runs, by its index on the axis of the runs, as views."""
        layers = self.layers and replace(self.layers, velocity=self.layers.velocity[index])
        return replace(self, velocity=self.velocity[index], layers=layers)


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Raise `NavsenseError` for a value that is not one of the choices."""
    if value not in choices:
        allowed, remedy = f"must be one of {', '.join(choices)}", suggest_name(str(value), choices)
        raise NavsenseError(what, value, allowed=allowed, remedy=remedy)


def check_run_index(index: int, count: int) -> int:
    """Return an index on the axis of `count` runs. Raises `NavsenseError` if it is outside."""
    if not 0 <= index < count:
        raise NavsenseError("run_index", index, allowed=f"must be from 0 to {count - 1}")
    return index


def is_quaternion(name: str) -> bool:
    """Return True if rows of 4 numbers of the array with this name are quaternions."""
    return name.endswith("orientation")


def list_component_names(shape: Sequence[int], *, quaternion: bool = False) -> list[str]:
    """Return the names of the components of rows with this shape.

    They are x, y, z of a vector, w, x, y, z of a quaternion, and numbers from 0 of any other array. A scalar has the
    name "".
    """
    letters = "xyz" if tuple(shape) == (3,) else "wxyz" if quaternion and tuple(shape) == (4,) else ""
    return list(letters) or [".".join(map(str, indices)) for indices in np.ndindex(*shape)]


ARRAY_GROUPS = ("arrays", "ideal", "bias", "turn_on_bias", "fault")
"""The attributes of a `Reading` that hold arrays by name."""

FAULT_BITS: Mapping[str, int] = {"dropout": 1, "stuck": 2, "bias": 4, "spike": 8, "lost_lock": 16}
"""The kinds of injected faults of a sensor, each with its bit in a fault message."""


class Rows(Mapping[str, AnyArray]):
    """Views of some rows of arrays by name, created on access."""

    __slots__ = ("_arrays", "_rows")

    def __init__(self, arrays: Mapping[str, AnyArray], rows: tuple[slice, ...]) -> None:
        """Store the rows."""
        self._arrays, self._rows = arrays, rows

    def __getitem__(self, name: str) -> AnyArray:
        """Return the rows of one array. Raises KeyError."""
        return self._arrays[name][self._rows]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._arrays)


def _format_row(array: AnyArray, index: tuple[int, ...]) -> str:
    """Return the row of an array at an index (*runs, time)."""
    if not array.size:
        return ""
    row = np.ravel(array[index])
    text = " ".join(f"{value:.6g}" for value in row[:MAX_ROW_VALUES].tolist())
    return text + " ..." * (row.size > MAX_ROW_VALUES)


MAX_ROW_VALUES = 4
"""Largest number of values of a row that a description of a reading shows."""


@dataclass(frozen=True, eq=False)
class Reading(Mapping[str, AnyArray]):
    """The readings of one sensor: `reading["field"]`, `reading.ideal["field"]`, `reading.bias["field"]`.

    arrays[name]: the measured values, (*runs, time, axis).
    ideal[name]: the values of an instrument without errors, (time, axis). The array has run axes only if
        `ideal_in_runs` is true: the runs differ by a random water current.
    bias[name]: the bias at each sample, turn-on bias plus drift, (*runs, time, axis). Injected faults are not included.
    turn_on_bias[name]: the constant part of the bias, (*runs, time, axis). `bias - turn_on_bias` is the drift.
    fault[kind]: true where an injected fault of this kind acts, (*runs, time). The kinds are those of `FAULT_BITS`.
        Empty if the sensor has no fault injection.
    time: true time of each sample, (time,) s.
    clock_error: the error of the sensor's clock, (*runs, time) s.
    valid: false where the values are invalid, (*runs, time).
    emitted: false where the sensor published no sample, (*runs, time).
    arrival: true time at which the receiver gets the sample, (*runs, time) s.
    arrival_after_latency: `arrival` of a sensor with latency; None without latency, where `arrival` is `time`.
    unit[name]: unit of each array.

    >>> imu = run["imu"]
    >>> imu["angular_velocity"].shape, imu.unit["angular_velocity"]
    ((1000, 3), 'rad/s')
    >>> error = imu["angular_velocity"] - imu.ideal["angular_velocity"]
    >>> error.shape == imu.bias["angular_velocity"].shape
    True
    """

    name: str
    type: str
    frame: str
    unit: Mapping[str, str]
    time: Times
    clock_error: FloatArray
    arrays: Mapping[str, AnyArray]
    ideal: Mapping[str, AnyArray]
    bias: Mapping[str, AnyArray]
    valid: BoolArray
    emitted: BoolArray
    epoch: int = 0
    arrival_after_latency: FloatArray | None = None
    ideal_in_runs: bool = False
    turn_on_bias: Mapping[str, AnyArray] = field(default_factory=dict)
    fault: Mapping[str, AnyArray] = field(default_factory=dict)

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        title = f"{self.name}: {self.type}, {format_count(self.time.size, 'sample')}"
        run = (0,) * (self.clock_error.ndim - 1)
        is_shown = (self.valid & self.emitted)[run]  # a DVL has no velocity before the first echo
        index = (*run, int(is_shown.argmax()) if is_shown.size else 0)
        rows = [
            (name, array.shape, self.unit.get(name, ""), _format_row(array, index))
            for name, array in self.arrays.items()
        ]
        return Summary("Reading", title, ("array", "shape", "unit", "first valid row"), rows)

    def __getitem__(self, name: str) -> AnyArray:
        """Return one array by its name. Raises `UnknownNameError`."""
        try:
            return self.arrays[name]
        except KeyError:
            allowed = f"must be one of {', '.join(self.arrays)}"
            remedy = suggest_name(str(name), self.arrays)
            raise UnknownNameError("array", str(name), allowed=allowed, remedy=remedy) from None
        except TypeError:
            raise make_type_error("array", name) from None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the arrays."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self.arrays)

    @property
    def arrival(self) -> FloatArray:
        """The true time (*runs, time) s at which each row arrives: without latency the time of the row."""
        return (
            np.broadcast_to(self.time, self.clock_error.shape)
            if self.arrival_after_latency is None
            else self.arrival_after_latency
        )

    @property
    def ideal_run_shape(self) -> tuple[int, ...]:
        """The lengths of the run axes of the ideal values."""
        return self.clock_error.shape[:-1] if self.ideal_in_runs else ()

    @property
    def stamp(self) -> IntArray:
        """The reading of the sensor's clock at the tick of each row, in integer nanoseconds."""
        return to_nanoseconds(self.epoch, self.time + self.clock_error)

    @property
    def true_stamp(self) -> IntArray:
        """The true time of each row, integer nanoseconds."""
        return to_nanoseconds(self.epoch, self.time)

    def list_panels(self, names: Sequence[str] = (), run_index: int = 0, title: str = "") -> list[Panel]:
        """Return the arrays of one run for a figure; `run_index` is an index on the axis of the runs."""
        has_runs = self.clock_error.ndim > 1
        index: tuple[int, ...] = (check_run_index(run_index, self.clock_error.shape[0]),) if has_runs else ()
        emitted, valid = self.emitted[index], self.valid[index]
        panels = []
        for name in names or self.arrays:
            array = self[name][index].astype(np.float64)
            components = list_component_names(array.shape[1:], quaternion=is_quaternion(name))
            values = np.where(valid[:, None], array.reshape(self.time.size, len(components)), np.nan)[emitted]
            ideal = self.ideal.get(name)
            if ideal is not None:
                ideal = (ideal[index] if self.ideal_in_runs else ideal).reshape(self.time.size, len(components))
            faults = {kind: mask[index] for kind, mask in self.fault.items() if mask[index].any()}
            time, unit = self.time[emitted], self.unit.get(name, "")
            bands = list_component_names(array.shape[2:]) if array.ndim == 3 else ()
            panels.append(Panel(name, unit, time, values, components, self.time, ideal, faults, title, bands))
        return [panel for panel in panels if panel.values.size]

    def plot(self, *names: str, run_index: int = 0) -> Any:
        """Return a figure of matplotlib with an axis for each array, or for each array in `names`.

        Lines are the components, dashed lines the ideal values. Invalid values and missing samples are gaps, and spans
        of injected faults are shaded. A notebook shows the figure.

        run_index: index of the run on the axis of the runs.

        >>> run["imu"].plot("angular_velocity").savefig("imu.png")

        Raises `NavsenseError` if matplotlib is not installed (extra `picture`), `UnknownNameError` for an unknown
        array.
        """
        from navsense.plots import draw_panels

        return draw_panels(self.list_panels(names, run_index), self.name)

    def to_pandas(self, index: str = "time", *, groups: Sequence[str] = ("arrays",)) -> Any:
        """Return a data frame of pandas with a column for each component, such as `angular_velocity.x`.

        index: "time", the true time (s), or "stamp", that of the sensor's clock as dates in UTC. Several runs have an
            index of two levels, `run_index` on the axis of the runs and the time.
        groups: "arrays", "ideal", "bias", "turn_on_bias" and "fault". Columns of all but the first have the group as
            prefix, as in `ideal.angular_velocity.x`.

        The columns `valid` and `emitted` are the last. `attrs["units"]` has the unit of each column.

        >>> run["imu"].to_pandas()["angular_velocity.x"].size
        1000

        Raises `NavsenseError` if pandas is not installed (extra `pandas`), and for an unknown index or group.
        """
        return _make_data_frame(self, index, groups)

    def select_rows(self, first: int, stop: int) -> Reading:
        """Return rows first to stop - 1 of time, as views."""
        if first == 0 and stop == self.time.size:
            return self
        rows = slice(first, stop)
        index = (*(slice(None),) * (self.clock_error.ndim - 1), rows)
        # A live step makes a reading per sensor. Without `__init__` this is faster.
        part = object.__new__(Reading)
        part.__dict__.update(
            self.__dict__,
            time=self.time[rows],
            clock_error=self.clock_error[index],
            arrays=Rows(self.arrays, index),
            ideal=Rows(self.ideal, index if self.ideal_in_runs else (rows,)),
            bias=Rows(self.bias, index),
            turn_on_bias=Rows(self.turn_on_bias, index),
            fault=Rows(self.fault, index) if self.fault else self.fault,
            valid=self.valid[index],
            emitted=self.emitted[index],
            arrival_after_latency=None if self.arrival_after_latency is None else self.arrival_after_latency[index],
        )
        return part

    def select_run_by_index(self, index: int) -> Reading:
        """Return the reading of one of the runs, by its index on the axis of the runs, as views."""

        def select(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
            return {name: array[index] for name, array in arrays.items()}

        arrival = self.arrival_after_latency
        return replace(
            self,
            clock_error=self.clock_error[index],
            arrays=select(self.arrays),
            ideal=select(self.ideal) if self.ideal_in_runs else self.ideal,
            bias=select(self.bias),
            turn_on_bias=select(self.turn_on_bias),
            fault=select(self.fault),
            valid=self.valid[index],
            emitted=self.emitted[index],
            arrival_after_latency=None if arrival is None else arrival[index],
            ideal_in_runs=False,
        )


def _make_data_frame(reading: Reading, index: str, groups: Sequence[str]) -> Any:
    """Return the data frame of `Reading.to_pandas`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise NavsenseError("a data frame needs pandas", remedy="pip install 'navsense[pandas]'") from error
    check_choice("index of a data frame", index, ("time", "stamp"))
    rows, columns, units = reading.clock_error.shape, dict[str, AnyArray](), dict[str, str]()
    for group in groups:
        check_choice("group of arrays", group, ARRAY_GROUPS)
        axes = len(rows) if group != "ideal" or reading.ideal_in_runs else 1
        for name, array in getattr(reading, group).items():
            shape = array.shape[axes:]
            labels = list_component_names(shape, quaternion=is_quaternion(name))
            for indices, label in zip(np.ndindex(*shape), labels, strict=True):
                column = ".".join(filter(None, (group if group != "arrays" else "", name, label)))
                columns[column] = np.broadcast_to(array[(..., *indices)], rows).ravel()
                units[column] = reading.unit.get(name, "")
    columns |= {"valid": reading.valid.ravel(), "emitted": reading.emitted.ravel()}
    instants: Any = np.broadcast_to(reading.time, rows).ravel()
    if index == "stamp":
        instants = pd.to_datetime(reading.stamp.ravel(), unit="ns", utc=True)
    labels = pd.Index(instants, name=index)
    if len(rows) > 1:
        numbers = np.broadcast_to(np.arange(rows[0])[:, None], rows).ravel()
        labels = pd.MultiIndex.from_arrays([numbers, instants], names=("run_index", index))
    frame = pd.DataFrame(columns, index=labels)
    frame.attrs.update(sensor=reading.name, frame=reading.frame, units=units)
    return frame


def join_readings(parts: Sequence[Reading]) -> Reading:
    """Join consecutive readings of one sensor. An array that a part does not have is left out."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("time", "clock_error", "valid", "emitted")
    }
    for group in ARRAY_GROUPS:
        named = [getattr(part, group) for part in parts]
        names = [name for name in named[0] if all(name in arrays for arrays in named)]
        columns[group] = {name: np.concatenate([arrays[name] for arrays in named]) for name in names}
    has_delay = any(part.arrival_after_latency is not None for part in parts)
    arrival_after_latency = np.concatenate([part.arrival for part in parts]) if has_delay else None
    return replace(parts[0], **columns, arrival_after_latency=arrival_after_latency)


ON = "on"
"""Property of a `RunChange` that switches a sensor."""

RATE = "rate"
"""Property of a `RunChange`: the rate (Hz) at which a sensor publishes."""

CURRENT = "current"
"""Name of a `RunChange` of the water's current."""


@dataclass(frozen=True)
class RunChange:
    """A change of a sensor or of the current while a run goes on.

    time: s, true time >= 0. The change acts on samples at or after it.
    name: the full name of the sensor, or any unambiguous ending of it; "current" for the water's current.
    property: "on", "rate" (Hz), or the name of an adjustable array, such as "vertical_reference". Of the current:
        "velocity" (m/s, x y z of the world), "PROCESS.mean" or "PROCESS.model". PROCESS is "speed" (m/s),
        "horizontal_angle" (rad) or "vertical_angle" (rad).
    value: the new value: True or False of "on", else a number or a tuple of numbers.

    Raises `SimulationError` for a value of a wrong type and for an invalid time. A run checks the name and the value.

    >>> changes = [ns.RunChange(0.5, "compass", "on", False), ns.RunChange(0.5, "imu", "rate", 100.0)]
    >>> result = ns.record(world, "flight.npz", duration=1.0, changes=changes)
    >>> [change.property for change in ns.open("flight.npz").changes]
    ['on', 'rate']
    """

    time: float
    name: str
    property: str
    value: bool | float | tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the fields, and store numbers of any type as floats."""
        validate_types(self, "of a change", error=SimulationError)
        check_number("time of a change (s)", self.time, 0.0, error=SimulationError, field="time")
        value = self.value
        if isinstance(value, bool | np.bool_):
            plain: bool | float | tuple[float, ...] = bool(value)
        else:
            plain = tuple(map(float, value)) if isinstance(value, tuple | list) else float(value)
        object.__setattr__(self, "time", float(self.time))
        object.__setattr__(self, "value", plain)


@dataclass(frozen=True, eq=False)
class TimeSlice:
    """All data of one interval of simulated time, `start` <= t < `end` (s): the unit in which files are written.

    changes: those of the run that act from this time slice on, in order.

    >>> time_slice = next(run.slices())
    >>> time_slice.start, len(time_slice.readings)
    (0.0, 5)
    """

    start: float
    end: float
    readings: Mapping[str, Reading] = field(default_factory=dict)
    truth: Mapping[str, Truth] = field(default_factory=dict)
    current: Current | None = None
    changes: tuple[RunChange, ...] = ()


def summarize_readings(kind: str, title: str, readings: Mapping[str, Reading]) -> Summary:
    """Return the description of a container of readings: a row for each sensor."""
    rows = [
        (name, reading.type, format_count(reading.time.size, "sample"), ", ".join(reading.arrays))
        for name, reading in readings.items()
    ]
    return Summary(kind, title, ("sensor", "type", "samples", "arrays"), rows)


PANELS_PER_SENSOR = 3
"""Largest number of arrays of a sensor in the figure of several sensors."""


def list_panels(readings: Mapping[str, Reading], names: Sequence[str], run_index: int) -> list[Panel]:
    """Return the first arrays of the sensors, or of the sensors with these names, for a figure."""
    panels = []
    for name in names or readings:
        reading = readings[name]
        arrays = [array for array in reading if "covariance" not in array][:PANELS_PER_SENSOR]
        panels += reading.list_panels(arrays, run_index, get_short_name(reading.name))
    return panels
