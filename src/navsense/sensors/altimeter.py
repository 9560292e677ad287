"""Altimeter: the sensor's height above a reference, and its vertical velocity.

    vertical_position  = z(t) - reference(t) + errors
    vertical_velocity  = v_z(t) + errors
    vertical_reference = reference(t)

z and v are the position and velocity of the sensor in the world frame, lever arm included; vertical is the world's z.
The reference is a fixed height above the world's origin, or the ideal height of the sensor at the start. With a period
P the sensor takes it again at the first sample at or after each n P. A bias injected into the reference changes the
height with the opposite sign. Height and velocity have one noise channel each.
Source: Gazebo's design of an altimeter sensor; gz-sensors' `AltimeterSensor`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import NOT_IN_FILE, in_file
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import MAX_TICKS, Ticks
from navsense.core.typing import AnyArray, FloatArray, IntArray, Vectors
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.faults.schedule import OFFSET_SUFFIX
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.user_arrays import check_rows, check_time, make_ticks, simulate_readings

CHANNELS = ("vertical_position", "vertical_velocity")
REFERENCE = "vertical_reference"
INITIAL = "initial"
"""SDF's keyword for the initial height of the sensor."""

ROUNDING_TOLERANCE = 1e-9
"""Relative tolerance within which a period is a whole number of samples."""


@kernel
def _write_reset_ticks(index: IntArray, samples: float, out: IntArray) -> None:
    """Write the last tick at or before each index that is the first one at or after a multiple of `samples` ticks."""
    for i in range(index.shape[0]):
        n = math.floor(index[i] / samples)
        tick = math.ceil(n * samples)
        if tick > index[i]:  # the quotient was rounded up
            tick = math.ceil((n - 1) * samples)
        elif math.ceil((n + 1) * samples) <= index[i]:  # or down
            tick = math.ceil((n + 1) * samples)
        out[i] = tick


@kernel
def _look_up_heights(index: IntArray, reset_ticks: IntArray, position_w: Vectors, out: FloatArray) -> int:
    """Write z (n,) m at the ticks `reset_ticks`; NaN for ticks that are not in `index`. Return the number of these."""
    row, missing = 0, 0
    for i in range(index.shape[0]):
        while index[row] < reset_ticks[i]:
            row += 1
        if index[row] == reset_ticks[i]:
            out[i] = position_w[row, 2]
        else:
            out[i] = math.nan
            missing += 1
    return missing


@kernel
def _compute_outputs(
    position_w: Vectors, velocity_w: Vectors, reference: FloatArray, height: FloatArray, rate: FloatArray
) -> None:
    """Write z minus the reference (n,) m, and the vertical velocity (n,) m/s."""
    for i in range(height.shape[0]):
        height[i] = position_w[i, 2] - reference[i]
        rate[i] = velocity_w[i, 2]


@dataclass(frozen=True)
class ZeroReference:
    """A reference at the sensor's own initial height, updated every `period` (s); infinite: never.

    Raises `SensorError` for a period that is not above zero.

    >>> ns.sensors.Altimeter(reference=ns.sensors.ZeroReference(period=10.0)).reference
    ZeroReference(period=10.0)
    """

    period: float = math.inf

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the period."""
        period = _to_float(self.period)
        if not period > 0.0:
            remedy = "omit it for a constant reference"
            what = "period of an altimeter's reference (s)"
            raise SensorError(what, self.period, allowed="must be > 0", remedy=remedy)
        object.__setattr__(self, "period", period)

    def __str__(self) -> str:
        """Return the text of a description."""
        return "initial height of the sensor" + (f" and every {self.period:g} s" if self.period < math.inf else "")

    def find_reset_ticks(self, ticks: Ticks) -> IntArray:
        """Return the ticks (n,) of the last updates of the reference; each tick itself for a period below a sample."""
        out = np.zeros(len(ticks), dtype=np.int64)
        samples = max(self.period * ticks.rate, 1.0)
        if samples < MAX_TICKS:
            rounded = round(samples)
            _write_reset_ticks(
                ticks.index, float(rounded) if abs(samples - rounded) <= ROUNDING_TOLERANCE * samples else samples, out
            )
        return out


def _to_float(value: object) -> float:
    """Return a real number as a float; NaN for an invalid or too large number."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def _check_height(value: object) -> float:
    """Return a height (m). Raises `SensorError` for an invalid number."""
    height = _to_float(value)
    if not math.isfinite(height):
        allowed = f'must be a finite height in metres, or "{INITIAL}"'
        remedy = "give one number; 0 is the height of the world's origin"
        raise SensorError("reference of an altimeter (m)", value, allowed=allowed, remedy=remedy)
    return height


@dataclass(frozen=True)
class Altimeter:
    """Specification of an altimeter.

    vertical_position: noise of the height, m.
    vertical_velocity: noise of the vertical velocity, m/s.
    reference: height in the world (m), a `ZeroReference`, or "initial" for `ZeroReference()`.
    classic: true for Gazebo's rule: the reference is the height at the start.

    >>> ns.sensors.Altimeter(vertical_position=ns.Noise(stddev=0.1), reference="initial").reference
    ZeroReference()
    """

    vertical_position: Noise = NO_NOISE
    vertical_velocity: Noise = NO_NOISE
    reference: float | ZeroReference | Literal["initial"] = field(default=0.0, metadata=in_file("navsense:reference"))
    classic: bool = field(default=False, metadata=NOT_IN_FILE)

    type: ClassVar[str] = "altimeter"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12
    fault_input_arrays: ClassVar[tuple[str, ...]] = (REFERENCE,)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the reference."""
        if isinstance(self.reference, str) and self.reference == INITIAL:
            object.__setattr__(self, "reference", ZeroReference())
        elif not isinstance(self.reference, ZeroReference):
            object.__setattr__(self, "reference", _check_height(self.reference))
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading, (n,) each: height above the reference m, velocity m/s, reference m."""
        units = {"vertical_position": "m", "vertical_velocity": "m/s", REFERENCE: "m"}
        return tuple(Output(name, 0, unit, "vertical") for name, unit in units.items())

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(CHANNELS, (self.vertical_position, self.vertical_velocity))

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return the reference of the height, m."""
        reference = self.effective_reference
        return (f"reference: {reference if isinstance(reference, ZeroReference) else f'{reference:g} m'}",)

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of height and velocity."""
        return {"vertical_position": (self.vertical_position,), "vertical_velocity": (self.vertical_velocity,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the two channels, height first."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on biases and dynamic biases."""
        return self._channels.init(draws)

    @property
    def effective_reference(self) -> float | ZeroReference:
        """The reference in force: a height in the world (m), or a `ZeroReference`."""
        return ZeroReference() if self.classic or isinstance(self.reference, str) else self.reference

    def _compute_reference(self, motion: Motion, ticks: Ticks, position_w: Vectors) -> FloatArray:
        """Return the reference (n,) m in force at each tick; `position_w` (n, 3) is that of the sensor at the ticks."""
        reference = self.effective_reference
        if not isinstance(reference, ZeroReference):
            return np.full(len(ticks), reference, dtype=np.float64)
        reset_ticks, height = reference.find_reset_ticks(ticks), np.empty(len(ticks))
        earlier: set[int] = set()
        if _look_up_heights(ticks.index, reset_ticks, position_w, height):
            earlier = set(reset_ticks[np.isnan(height)].tolist())
        for tick in earlier:
            height[reset_ticks == tick] = motion.at(np.array([tick / ticks.rate])).position_w[0, 2]
        if not earlier.issuperset(reset_ticks[-1:].tolist()):
            motion.at(reset_ticks[-1:] / ticks.rate)  # one instant: a motion without memory stores it for later blocks
        return height

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return height above the reference m, vertical velocity m/s and reference m without errors, (n,) each."""
        motion_block = motion.at(ticks.time)
        height, rate = np.empty(len(ticks)), np.empty(len(ticks))
        reference = self._compute_reference(motion, ticks, motion_block.position_w)
        _compute_outputs(motion_block.position_w, motion_block.velocity_w, reference, height, rate)
        ideal = {"vertical_position": height, "vertical_velocity": rate, REFERENCE: reference}
        return {**ideal, **evaluate_signals(self, environment, ticks.time)}

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the measured values with their biases; the reference has no bias."""
        channels = (ideal[name] for name in CHANNELS)
        state, values, bias = self._channels.apply(state, ticks, draws, *channels, temperature=ideal.get(TEMPERATURE))
        arrays, reference = {name: values[:, i] for i, name in enumerate(CHANNELS)}, ideal[REFERENCE]
        offset = ideal.get(f"{REFERENCE}{OFFSET_SUFFIX}")
        if offset is not None:
            arrays[CHANNELS[0]], reference = arrays[CHANNELS[0]] - offset, reference + offset
        biases = {name: bias[:, i] for i, name in enumerate(CHANNELS)}
        turn_on = {name: state.turn_on[i] for i, name in enumerate(CHANNELS)}
        return state, Measurement({**arrays, REFERENCE: reference}, biases, turn_on_bias=turn_on)

    def adjust(self, name: str, value: float) -> Altimeter:
        """Return the spec with the reference `value` (m) from now on; only "vertical_reference" can be set.

        Raises `SensorError`.
        """
        if name != REFERENCE:
            raise SensorError("adjustable array of an altimeter", name, allowed=f"must be {REFERENCE}")
        return replace(self, reference=_check_height(value), classic=False)

    def apply(
        self,
        time: FloatArray,
        height: FloatArray,
        vertical_velocity: FloatArray,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return readings with the errors of this spec for your own heights and vertical velocities.

        height, vertical_velocity: (n,) in the world, m and m/s.
        time: (n,) s.
        temperature: (n,) K.

        A `ZeroReference` takes the height of the first row at or after each of its instants. They count from the first
        row. Raises `SensorError`.
        """
        time = check_time(time)
        rows = check_rows("height", height, time.shape)
        reference = self.effective_reference
        if isinstance(reference, ZeroReference):
            reset_ticks = reference.find_reset_ticks(make_ticks(time))
            references = rows[np.searchsorted(reset_ticks, reset_ticks)]
        else:
            references = np.full(time.size, reference, dtype=np.float64)
        ideal = {"vertical_position": rows - references, "vertical_velocity": vertical_velocity, REFERENCE: references}
        return simulate_readings(self, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    def without_errors(self) -> Altimeter:
        """Return the same spec without errors."""
        return Altimeter(reference=self.reference, classic=self.classic)

    @classmethod
    def example_spec(cls) -> Altimeter:
        """Return a spec in which every field is active: values similar to a small barometric part."""
        noise = make_example_noise(0.1)
        position = replace(noise, minimum=-0.4, maximum=0.4)
        velocity = replace(noise, minimum=-1.0, maximum=1.0)
        return cls(position, velocity, ZeroReference(0.5))
