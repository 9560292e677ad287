"""Magnetometer: the world's magnetic field in the sensor's frame, plus the noise of three channels.

    field_s = rotation_ws^-1 B_w(p, t) + errors

p is the sensor's own position, rotation_ws takes sensor coordinates to world coordinates, B_w is in tesla. The noise
of each axis acts after the rotation. Source: Gazebo's design of a magnetometer sensor; gz-sensors' model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channel import NEUTRAL, Noise, witness
from navsense.noise.channels import Channels, ChannelState
from navsense.rotation import rotate
from navsense.sensors.apply import apply
from navsense.sensors.base import TEMPERATURE, Measured, Output, warmth
from navsense.series import Reading
from navsense.streams import Process
from navsense.ticks import Ticks
from navsense.typing import AnyArray, FloatArray, Quaternions, Vectors


@kernel
def _into_sensor(rotation_ws: Quaternions, field_w: Vectors, out: Vectors) -> None:
    """Write rotation_ws^-1 field_w (n, 3)."""
    for i in range(out.shape[0]):
        w, x, y, z = rotation_ws[i, 0], -rotation_ws[i, 1], -rotation_ws[i, 2], -rotation_ws[i, 3]
        out[i, 0], out[i, 1], out[i, 2] = rotate(w, x, y, z, field_w[i, 0], field_w[i, 1], field_w[i, 2])


@dataclass(frozen=True)
class Magnetometer:
    """Data sheet of a magnetometer: the noise of each axis of the sensor's frame, tesla."""

    x: Noise = NEUTRAL
    y: Noise = NEUTRAL
    z: Noise = NEUTRAL

    type: ClassVar[str] = "magnetometer"
    group: ClassVar[Literal["all", "vertical"]] = "all"
    tolerance: ClassVar[float] = 1e-12

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the one array of a reading: field (n, 3) T in the sensor's frame."""
        return (Output("field", 3, "T"),)

    @cached_property
    def _field(self) -> Channels:
        return Channels(("field.x", "field.y", "field.z"), (self.x, self.y, self.z))

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each array."""
        return {"field": self._field.noises}

    def processes(self) -> tuple[Process, ...]:
        """Return the random processes of the three axes."""
        return self._field.processes

    def init(self, draws: FloatArray) -> ChannelState:
        """Return this serial number's turn-on biases and drifts."""
        return self._field.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the field (n, 3) T at the sensor, in its frame."""
        time = ticks.time
        truth = motion.at(time)
        field = np.empty((3, len(ticks))).T  # an axis side by side, as noise takes it
        _into_sensor(truth.rotation_wb, environment.magnetic_field.at(truth.position_w, time), field)
        return {"field": field, **warmth(environment, time, needed=self._field.warms)}

    def measure(
        self, state: ChannelState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[ChannelState, Measured]:
        """Return the new state and the noisy field (n, 3) T with its slow error."""
        state, field, slow = self._field.apply(state, ticks, draws, ideal["field"], temperature=ideal.get(TEMPERATURE))
        return state, Measured({"field": field}, {"field": slow}, turn_on={"field": state.turn_on})

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
    ) -> Reading:
        """Return this sheet's errors on one's own field (n, 3) T in the sensor's frame, time (n,) s.

        Raises `SensorError`.
        """
        return apply(self, time, {"field": field}, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    def neutral(self) -> Magnetometer:
        """Return the same sheet without errors."""
        return Magnetometer()

    @classmethod
    def witness(cls) -> Magnetometer:
        """Return a sheet in which every parameter acts: figures of the order of a phone's part, not of a real one."""
        x = witness(3e-7, minimum=-2e-6, maximum=3.5e-5)
        y = witness(3e-7, minimum=-2e-5, maximum=2.7e-5)
        z = witness(3e-7, minimum=-4.6e-5, maximum=-3.1e-5)
        return cls(x, y, z)
