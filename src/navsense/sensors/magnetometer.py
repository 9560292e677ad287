"""Magnetometer: the world's magnetic field in the sensor's frame, distorted by iron and currents; three channels.

    ideal field = rotation_ws^-1 B_w(p, t)
    field       = channels(S ideal field + (hard_iron + field_per_ampere i(t)))

p is the sensor's position, rotation_ws rotates sensor coordinates to world coordinates, B_w is in tesla. The motion is
that of the sensor's frame, so its `rotation_wb` is rotation_ws. S is the soft iron, which rotates and scales the
world's field. i is the current of the motors, the world's signal "motor_current" (A). The attribute `field_per_ampere`
of the spec is the magnetic field per ampere (T/A); in files it has the name `motor_current`. Hard iron and the field of
the motors are fixed in the sensor's frame, and S does not act on them. `channels` applies the model of `Noise` to each
axis of the sensor's frame.

Sources: Gazebo's design of a magnetometer sensor; gz-sensors' model; hard and soft iron: Freescale AN4246; current: the
compass compensation of PX4 and Paparazzi, a vector times the current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading, make_read_only
from navsense.core.rotation import rotate_rows_inverse
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray, Vector, Vectors
from navsense.core.validation import MAX_MAGNITUDE, check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors._cross_axis import IDENTITY, make_matrix, mix_axes
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.part_noise import make_noise
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings

MOTOR_CURRENT = "motor_current"
"""Name of the signal (A) of the motors' current, and of its values among the ideal values."""

ZERO_VECTOR: Vector = (0.0, 0.0, 0.0)
"""The zero vector."""

_NO_CURRENT: FloatArray = make_read_only(np.empty(0))


@kernel
def _add_fixed_field(
    hard_iron: FloatArray, field_per_ampere: FloatArray, current: FloatArray, axes: FloatArray
) -> None:
    """Add the field (T) of hard iron and motors to the axes (3, n); current (n,) A, (0,) without one."""
    for axis in range(axes.shape[0]):
        values, iron, per_ampere = axes[axis], hard_iron[axis], field_per_ampere[axis]
        if current.shape[0] == 0:
            for k in range(values.shape[0]):
                values[k] = values[k] + iron
        else:
            for k in range(values.shape[0]):
                values[k] = values[k] + (iron + per_ampere * current[k])


@dataclass(frozen=True)
class Magnetometer:
    """Specification of a magnetometer. Raises `SensorError` for invalid values.

    x, y, z: noise of each axis of the sensor frame, T.
    hard_iron: field fixed to the sensor, sensor frame, T.
    soft_iron: matrix, row by row, that multiplies the field of the world in the sensor frame.
    field_per_ampere: magnetic field of the motors' wires per ampere, sensor frame, T/A. It multiplies the world's
        signal "motor_current" (A).

    >>> noise = ns.Noise(stddev=15e-9)  # T
    >>> compass = ns.sensors.Magnetometer(noise, noise, noise, hard_iron=(4e-7, -2e-7, 6e-7))
    >>> ns.sensors.Magnetometer.from_part("rm3100").x.noise_density > 0.0
    True
    """

    x: Noise = NO_NOISE
    y: Noise = NO_NOISE
    z: Noise = NO_NOISE
    hard_iron: Vector = field(
        default=ZERO_VECTOR, metadata=in_file("navsense:hard_iron", magnitude_below=MAX_MAGNITUDE)
    )
    soft_iron: tuple[float, ...] = field(
        default=IDENTITY, metadata=in_file("navsense:soft_iron", magnitude_below=MAX_MAGNITUDE)
    )
    field_per_ampere: Vector = field(
        default=ZERO_VECTOR, metadata=in_file("navsense:motor_current", magnitude_below=MAX_MAGNITUDE)
    )

    type: ClassVar[str] = "magnetometer"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "all"
    invariance_tolerance: ClassVar[float] = 1e-12

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, count in (("hard_iron", 3), ("soft_iron", 9), ("field_per_ampere", 3)):
            object.__setattr__(self, name, check_numbers(name, getattr(self, name), count))
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The one array of a reading: field (n, 3) T in the sensor's frame."""
        return (Output("field", 3, "T"),)

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("field.x", "field.y", "field.z"), (self.x, self.y, self.z))

    @cached_property
    def _distortion(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Soft iron (3, 3), hard iron (3,) T and field per ampere (3,) T/A; None if they have no effect."""
        if (self.hard_iron, self.soft_iron, self.field_per_ampere) == (ZERO_VECTOR, IDENTITY, ZERO_VECTOR):
            return None
        return make_matrix(self.soft_iron), np.array(self.hard_iron), np.array(self.field_per_ampere)

    @property
    def _uses_motor_current(self) -> bool:
        """True if the spec has a field per ampere."""
        return self.field_per_ampere != ZERO_VECTOR

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        needed = {TEMPERATURE: self._channels.needs_temperature, MOTOR_CURRENT: self._uses_motor_current}
        return tuple(name for name, is_needed in needed.items() if is_needed)

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each array."""
        return {"field": self._channels.noises}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the three axes."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the state of an instrument at t = 0, see `NoiseState`."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the field (n, 3) T in the sensor's frame, and the signals.

        Raises `FieldError` if the world does not have a required signal.
        """
        time = ticks.time
        motion_block = motion.at(time)
        field = np.empty((3, len(ticks))).T  # each axis contiguous: `NoiseChannels.apply` copies nothing
        field_w = environment.magnetic_field.at(motion_block.position_w, time)
        rotate_rows_inverse(motion_block.rotation_wb, field_w, field)
        return {"field": field, **evaluate_signals(self, environment, time)}

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state, and the measured field (n, 3) T with its bias; `ideal` also has the signals."""
        total = ideal["field"] if self._distortion is None else self._distort_field(self._distortion, ideal)
        state, field, bias = self._channels.apply(state, ticks, draws, total, temperature=ideal.get(TEMPERATURE))
        return state, Measurement({"field": field}, {"field": bias}, turn_on_bias={"field": state.turn_on})

    def _distort_field(
        self, distortion: tuple[FloatArray, FloatArray, FloatArray], ideal: Mapping[str, AnyArray]
    ) -> Vectors:
        """Return the field (n, 3) T with soft iron, hard iron and the field of the motors."""
        soft_iron, hard_iron, field_per_ampere = distortion
        ideal_axes: FloatArray = np.ascontiguousarray(ideal["field"].T)
        axes = np.empty(ideal_axes.shape)
        # Read-only inputs, so that each kernel is compiled for one type of array.
        mix_axes(soft_iron, make_read_only(ideal_axes), axes)
        current = make_read_only(ideal[MOTOR_CURRENT]) if self._uses_motor_current else _NO_CURRENT
        _add_fixed_field(hard_iron, field_per_ampere, current, axes)
        return axes.T

    def apply(
        self,
        time: FloatArray,
        field: Vectors,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
        motor_current: FloatArray | None = None,
    ) -> Reading:
        """Return readings with the errors of this spec for your own field (n, 3) T in the sensor's frame, time (n,) s.

        motor_current: current of the motors, (n,) A; required if the `field_per_ampere` of the spec is not 0.
        The other arguments are those of `user_arrays.simulate_readings`. Raises `SensorError`.
        """
        ideal: dict[str, AnyArray] = {"field": field}
        if motor_current is not None:
            current = check_rows(MOTOR_CURRENT, motor_current, check_time(time).shape)
        if self._uses_motor_current:
            if motor_current is None:
                allowed = "must be given: the field_per_ampere of the spec is not 0"
                remedy = "give the current of the motors (A), or set the field_per_ampere of the spec to 0"
                raise SensorError(MOTOR_CURRENT, None, allowed=allowed, remedy=remedy)
            ideal[MOTOR_CURRENT] = current
        return simulate_readings(self, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> Magnetometer:
        """Return the spec of a part of the catalogue, see `catalogue.part_noise`.

        `temperature` enables its temperature coefficients. Raises `UnknownNameError`, `SensorError`.
        """
        x, y, z = make_noise(load_part(name), "field", temperature=temperature)
        return cls(x, y, z)

    def without_errors(self) -> Magnetometer:
        """Return the same spec without errors."""
        return Magnetometer()

    @classmethod
    def example_spec(cls) -> Magnetometer:
        """Return a spec in which every field is active: values similar to a phone's part, not of a real one."""
        x = make_example_noise(3e-7, minimum=-2e-6, maximum=3.5e-5)
        y = make_example_noise(3e-7, minimum=-2e-5, maximum=2.7e-5)
        z = make_example_noise(3e-7, minimum=-4.6e-5, maximum=-3.1e-5)
        return cls(
            *(x, y, z),
            hard_iron=(3e-6, -2e-6, 4e-6),
            soft_iron=(1.1, 0.05, -0.03, 0.04, 0.95, 0.02, -0.06, 0.07, 0.9),
            field_per_ampere=(2e-7, -3e-7, 4e-7),
        )
