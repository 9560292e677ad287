"""The contract of a sensor, for the sensors of navsense and of users.

    processes(spec)                            -> its random processes, with the draws of each at the start and per tick
    init(spec, draws)                          -> state          once per run: each run simulates another instrument
    ideal(spec, motion, environment, ticks)    -> ideal values and signals, one row per tick
    measure(spec, state, ticks, ideal, draws)  -> (state, Measurement)   pure, one row per tick

`motion` is that of the sensor's frame: its `rotation_wb` is rotation_ws.
The spec is a frozen dataclass of the sensor, so the four functions are its methods. No sensor owns a random generator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np

from navsense.core.errors import NavsenseError, SensorError
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import make_all_true
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, Quaternion, Times
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.specification import Noise

Equivariance = Literal["invariant", "orientation", "vertical"]
EQUIVARIANCES: tuple[str, ...] = get_args(Equivariance)


@dataclass(frozen=True)
class Output:
    """An array of a reading.

    name, unit: of the array.
    axes: 0 for a scalar, whose array is (n,). Several numbers are the shape of a row, (3, 3) for a matrix.
    equivariance: how the array changes if the world is rotated: "invariant" (sensor coordinates), "orientation" (a
        quaternion sensor to reference) or "vertical" (a scalar along the vertical, unchanged by rotations about it).

    Raises `SensorError` for axes below 0 and another equivariance.

    >>> ns.sensors.Output("field", 3, "T").shape
    (3,)
    """

    name: str
    axes: int | tuple[int, ...]
    unit: str
    equivariance: Equivariance = "invariant"

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the axes and the equivariance."""
        if min(self.axes if isinstance(self.axes, tuple) else (self.axes,), default=0) < 0:
            raise SensorError(f"axes of the array {self.name}", self.axes, allowed="must be >= 0")
        if self.equivariance not in EQUIVARIANCES:
            what, allowed = f"equivariance of the array {self.name}", f"must be one of {', '.join(EQUIVARIANCES)}"
            raise SensorError(what, self.equivariance, allowed=allowed)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row: () for a scalar."""
        if isinstance(self.axes, tuple):
            return self.axes
        return (self.axes,) if self.axes else ()

    @property
    def size(self) -> int:
        """The number of values in a row."""
        return math.prod(self.shape)


class Measurement(NamedTuple):
    """The result of `measure` for n ticks.

    arrays[name]: the measured values, (n, axes); scalars (n,).
    bias[name]: turn-on bias plus drift at each tick, (n, axes).
    valid: false where the values are invalid, (n,). None: all are valid.
    emitted: false where no sample is published, (n,). None: all are published.
    turn_on_bias[name]: the constant part of the bias of this instrument, (axes,); scalars ().
    fault[kind]: true where an injected fault acts, (n,). A sensor leaves it empty; fault injection fills it.

    >>> measurement = ns.sensors.Measurement({"speed": np.zeros(3)}, {"speed": np.zeros(3)})
    >>> measurement.valid is None  # all values are valid
    True
    """

    arrays: Mapping[str, AnyArray]
    bias: Mapping[str, AnyArray]
    valid: BoolArray | None = None
    emitted: BoolArray | None = None
    turn_on_bias: Mapping[str, FloatArray] = MappingProxyType({})
    fault: Mapping[str, BoolArray] = MappingProxyType({})


def check_measurement(outputs: Sequence[Output], measurement: Measurement, count: int, owner: str = "") -> None:
    """Check that the arrays of `count` ticks and their biases have the names and shapes of the outputs.

    Raises `SensorError` with the array and its owner.
    """
    shapes = {output.name: (count, *output.shape) for output in outputs}
    for name in shapes.keys() - measurement.arrays.keys():
        raise SensorError(f"array {name} of `measure`{owner}", "missing", allowed="must have all arrays of `outputs`")
    for group, arrays in (("array", measurement.arrays), ("bias", measurement.bias)):
        for name, array in arrays.items():
            what, shape = f"{group} {name} of `measure`{owner}", np.shape(array)
            if name not in shapes:
                raise SensorError(what, "unknown", allowed=f"must be one of {', '.join(shapes)}")
            if shape != shapes[name]:
                allowed = f"must have the shape {shapes[name]}, as `outputs` declares"
                remedy = "return [:, 0] of it, or declare one axis" if shape == (*shapes[name], 1) else ""
                raise SensorError(what, f"shape {shape}", allowed=allowed, remedy=remedy)


def check_ideal_values(outputs: Sequence[Output], ideal: Mapping[str, AnyArray], count: int, owner: str = "") -> None:
    """Check that the ideal values of the outputs at `count` ticks are arrays of float64 with the shapes of the outputs.

    Raises `SensorError` with the array and its owner.
    """
    for output in outputs:
        if output.name in ideal:
            array, shape = ideal[output.name], (count, *output.shape)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
                what = f"ideal value {output.name} of `ideal`{owner}"
                value = f"{array.dtype if isinstance(array, np.ndarray) else type(array).__name__} {np.shape(array)}"
                raise SensorError(what, value, allowed=f"must be an array of float64 with the shape {shape}")


def repeat_rows(rows: Mapping[str, FloatArray], count: int) -> dict[str, AnyArray]:
    """Return each row (axes,) as `count` equal rows (count, axes), read-only, that take no memory."""
    if count != 1:
        return {name: np.broadcast_to(row, (count, *row.shape)) for name, row in rows.items()}
    views: dict[str, AnyArray] = {name: row[None] for name, row in rows.items()}
    for view in views.values():
        view.setflags(write=False)
    return views


NO_PHYSICAL_EFFECT: Mapping[str, bool] = MappingProxyType({"no_physical_effect": True})
"""Metadata of a field that is no parameter of the physical model and has no element in files.

Examples are options of messages, the dialect (which selects rules only under classic), and lists for descriptions.
"""

TEMPERATURE = "temperature"
"""Name of the signal (K) for temperature coefficients, and of its values among the ideal values."""


def uses_current(spec: Any) -> bool:
    """Return True if a sensor's ideal values depend on the water's current."""
    return isinstance(spec, UsesCurrent) and spec.uses_current


def get_max_age(spec: Any) -> float:
    """Return the largest time (s) from the time of validity of a reading to the reading."""
    return float(spec.max_age) if isinstance(spec, HasMaxAge) else 0.0


def list_adjustable_arrays(spec: Sensor) -> tuple[str, ...]:
    """Return the names of the arrays that can be set during a run; none without `SupportsAdjustment`."""
    if not isinstance(spec, SupportsAdjustment):
        return ()
    names = []
    for output in spec.outputs:
        try:
            spec.adjust(output.name, 0.0)
        except NavsenseError:
            continue
        names.append(output.name)
    return tuple(names)


def list_signals(spec: Any) -> tuple[str, ...]:
    """Return the names of the world's signals that a sensor uses; none without `UsesSignals`."""
    return tuple(spec.signals) if isinstance(spec, UsesSignals) else ()


def describe_spec(spec: Any, rate: float) -> tuple[str, ...]:
    """Return the description of a spec at a rate (Hz) without its noise: by its `describe`, else its fields."""
    return tuple(spec.describe(rate)) if isinstance(spec, HasDescription) else describe_fields(spec)


def describe_fields(spec: Any) -> tuple[str, ...]:
    """Return the fields of a specification other than noise that differ from their defaults."""
    values = ((field, getattr(spec, field.name)) for field in fields(spec)) if is_dataclass(spec) else ()
    return tuple(
        f"{field.name}: {_format_field_value(value)}"
        for field, value in values
        if not isinstance(value, Noise) and field.name != "classic" and value != field.default
    )


def _format_field_value(value: object) -> str:
    if is_dataclass(value):
        return ", ".join(f"{field.name} {_format_field_value(getattr(value, field.name))}" for field in fields(value))
    if isinstance(value, tuple) and any(map(is_dataclass, value)):
        return "; ".join(map(_format_field_value, value))
    return str(value.value if isinstance(value, Enum) else value)


def evaluate_signals(spec: UsesSignals, environment: Environment, time: Times) -> dict[str, AnyArray]:
    """Return the signals (n,) of a sensor at instants (n,) s, by name.

    Raises `FieldError` if the world does not have a signal.
    """
    return {name: environment.signal(name, time) for name in spec.signals}


def get_flags(measurement: Measurement, count: int) -> dict[str, BoolArray]:
    """Return `valid` and `emitted` (n,) of `count` ticks; all true if the sensor does not set them."""
    everything = make_all_true((count,))
    return {
        "valid": everything if measurement.valid is None else measurement.valid,
        "emitted": everything if measurement.emitted is None else measurement.emitted,
    }


@dataclass(frozen=True)
class OpaqueSensor:
    """A sensor without a specification that this version can read. It measures nothing.

    Its `type`, the arrays of its readings (`outputs`) and the standard deviation of the white noise of one sample of
    each axis of an array (`deviations`) are known. `stored` is the JSON text of the specification if a recording
    holds one.
    """

    type: str
    outputs: tuple[Output, ...]
    deviations: tuple[tuple[str, tuple[float, ...]], ...] = ()
    stored: str = ""

    __repr__, _repr_html_ = format_spec, format_spec_html

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the white noise of each axis of each array that has some."""
        return {name: tuple(Noise(stddev=stddev) for stddev in axes) for name, axes in self.deviations}


class Sensor(Protocol):
    """A sensor type with its specification: a frozen dataclass.

    type: the SDF type.
    rotation_invariance: rotations of the world, with its fields and vehicles, that leave the readings unchanged.
        `testing.check_sensor` checks it.
    invariance_tolerance: relative tolerance of this check.

    >>> [kind.type for kind in ns.sensors.SENSORS]
    ['imu', 'magnetometer', 'altimeter', 'air_pressure', 'navsat', 'depth', 'range', 'dvl', 'adcp', 'camera']
    """

    type: ClassVar[str]
    invariance_tolerance: ClassVar[float]

    @property
    def rotation_invariance(self) -> Literal["all", "vertical"]:
        """All rotations, or those about the vertical; a class variable if it is the same for all specs."""
        ...

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading, in order."""
        ...

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each noisy array, for covariances and descriptions."""
        ...

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes, in the order of the draws of `init` and `measure`."""
        ...

    def init(self, draws: FloatArray) -> Any:
        """Return the state of an instrument; `draws` (m,) are the initial draws of each process in order."""
        ...

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the ideal values, (n, axes) by name, and the inputs of the errors such as signals.

        `motion` is that of the sensor's frame.
        """
        ...

    def measure(
        self, state: Any, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[Any, Measurement]:
        """Return the new state and the measurement.

        ideal: all that the method `ideal` returns, ideal values and signals. With scheduled faults also their offsets
            `NAME_off`, if the sensor has `source_arrays`.
        draws: (d, n), a row for each draw per tick, in order.
        """
        ...

    def without_errors(self) -> Sensor:
        """Return the same spec without errors."""
        ...

    @classmethod
    def example_spec(cls) -> Sensor:
        """Return a spec in which all fields are active; the tests check that each one changes the output."""
        ...


def check_members(kind: type[Sensor]) -> None:
    """Raise `SensorError` if a sensor class lacks a member of `Sensor`."""
    members = [name for name in (*Sensor.__annotations__, *vars(Sensor)) if not name.startswith("_")]
    missing = [name for name in members if name not in dir(kind)]
    if missing:
        remedy = "see docs/how-to/adding-a-sensor.md"
        raise SensorError("class of a sensor", kind.__name__, allowed=f"lacks {', '.join(missing)}", remedy=remedy)


@runtime_checkable
class SupportsAdjustment(Protocol):
    """A sensor with a parameter that can change during a run."""

    def adjust(self, name: str, value: float) -> Sensor:
        """Return the spec with `value` for the array `name` from now on; its processes stay the same.

        Raises `SensorError` for an array or a value that cannot be set.
        """
        ...


@runtime_checkable
class UsesSignals(Protocol):
    """A sensor that uses signals of the world."""

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of the signals that the spec requires."""
        ...


@runtime_checkable
class HasIndirectNoise(Protocol):
    """A sensor with outputs that have another unit than their noise, such as angles with noise in metres."""

    @property
    def noise_quantities(self) -> Mapping[str, Output]:
        """Name and unit of the quantities that the noise acts on, by the name of the output."""
        ...

    def compute_errors(self, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
        """Return reading minus ideal (n,) of these outputs, in the unit of their noise."""
        ...


@runtime_checkable
class HasDescription(Protocol):
    """A sensor that describes its parameters other than noise."""

    def describe(self, rate: float) -> Sequence[str]:
        """Return the lines of the description at a rate (Hz)."""
        ...


@runtime_checkable
class HasWarnings(Protocol):
    """A sensor that reports unusual parameters or mountings as warnings."""

    def find_warnings(self, rotation_ws: Quaternion, /) -> Sequence[tuple[str, str]]:
        """Return warnings and their reasons; `rotation_ws` is the initial rotation of the sensor to the world."""
        ...


@runtime_checkable
class UsesRayCasting(Protocol):
    """A sensor that casts rays among the bodies of the world."""

    @property
    def own_hull(self) -> bool:
        """True if its rays hit the bodies of its own model too."""
        ...


@runtime_checkable
class UsesCurrent(Protocol):
    """A sensor that may depend on the water's current."""

    @property
    def uses_current(self) -> bool:
        """True if its ideal values depend on the current."""
        ...


@runtime_checkable
class HasMaxAge(Protocol):
    """A sensor whose time of validity is before the reading, such as a sensor that waits for an echo."""

    @property
    def max_age(self) -> float:
        """The largest time (s) from the time of validity to the reading."""
        ...


@runtime_checkable
class HasCatalogueParts(Protocol):
    """A sensor type with parts in the catalogue."""

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> Sensor:
        """Return the spec of a part. Raises `UnknownNameError`, and `SensorError` for a part of another type."""
        ...
