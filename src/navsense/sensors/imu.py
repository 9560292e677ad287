"""IMU: angular velocity, specific force and orientation of the sensor's frame.

    angular_velocity     = omega_s + errors
    linear_acceleration  = rotation_ws^-1 (a_w - g_w(p, t)) + errors         specific force: gravity included
    orientation          = rotation_rs = rotation_wr^-1 rotation_ws          no noise

omega_s and a_w are those of the sensor's own point: with the sensor off the link's origin by r, a_w holds the
centripetal and tangential terms ``alpha x r + omega x (omega x r)`` (see `motion.mounted`). r is the reference frame of
the orientation. Source: gz-sensors' ImuSensor, SDF 1.12 `imu.sdf`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.motion.base import Motion
from navsense.noise.channel import NEUTRAL, Noise
from navsense.noise.channels import Channels, ChannelState
from navsense.rotation import multiply, rotate
from navsense.sensors.apply import apply
from navsense.sensors.base import Measured, Output
from navsense.series import Reading
from navsense.streams import Process
from navsense.ticks import Ticks
from navsense.typing import AnyArray, FloatArray, Quaternion, Quaternions, Vectors

UNIT_TOLERANCE = 1e-6
"""How far the length of a quaternion may be from 1."""


@kernel
def _perfect(
    rotation_ws: Quaternions,
    acceleration_w: Vectors,
    gravity_w: Vectors,
    angular_velocity_s: Vectors,
    force: Vectors,
    rate: Vectors,
) -> None:
    """Write rotation_ws^-1 (acceleration_w - gravity_w) (n, 3) m/s^2, and the angular velocity (n, 3) rad/s."""
    for i in range(force.shape[0]):
        w, x, y, z = rotation_ws[i, 0], -rotation_ws[i, 1], -rotation_ws[i, 2], -rotation_ws[i, 3]
        fx = acceleration_w[i, 0] - gravity_w[i, 0]
        fy = acceleration_w[i, 1] - gravity_w[i, 1]
        fz = acceleration_w[i, 2] - gravity_w[i, 2]
        force[i, 0], force[i, 1], force[i, 2] = rotate(w, x, y, z, fx, fy, fz)
        rate[i, 0], rate[i, 1], rate[i, 2] = (
            angular_velocity_s[i, 0],
            angular_velocity_s[i, 1],
            angular_velocity_s[i, 2],
        )


@kernel
def _relative(reference: FloatArray, rotation_ws: Quaternions, out: Quaternions) -> None:
    """Write rotation_wr^-1 rotation_ws (n, 4) for the reference rotation_wr (4,)."""
    w, x, y, z = reference[0], -reference[1], -reference[2], -reference[3]
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = multiply(
            w, x, y, z, rotation_ws[i, 0], rotation_ws[i, 1], rotation_ws[i, 2], rotation_ws[i, 3]
        )


def unit_rows(orientation: Quaternions) -> Quaternions:
    """Return the quaternions (n, 4); raise `SensorError` where a row is not of unit length."""
    rows = np.asarray(orientation, dtype=np.float64)
    lengths = np.sqrt(np.sum(rows * rows, axis=-1))
    off = np.nonzero(~(np.abs(lengths - 1.0) <= UNIT_TOLERANCE))[0]
    if off.size:
        raise SensorError(f"orientation of row {int(off[0])}", rows[off[0]].tolist(), allowed="must be of length 1")
    return rows


@dataclass(frozen=True, eq=False)
class ImuState:
    """This serial number now: the channels of each triad."""

    angular_velocity: ChannelState
    linear_acceleration: ChannelState


@dataclass(frozen=True)
class Imu:
    """Data sheet of an IMU: the noise of each axis of the sensor's frame, rad/s and m/s^2.

    `orientation` false leaves the orientation out of the reading. `reference` is the rotation (w x y z) that takes
    coordinates of the orientation's reference frame to world coordinates; None is the sensor's own frame at t = 0.
    """

    angular_velocity_x: Noise = NEUTRAL
    angular_velocity_y: Noise = NEUTRAL
    angular_velocity_z: Noise = NEUTRAL
    linear_acceleration_x: Noise = NEUTRAL
    linear_acceleration_y: Noise = NEUTRAL
    linear_acceleration_z: Noise = NEUTRAL
    orientation: bool = True
    reference: Quaternion | None = None

    def __post_init__(self) -> None:
        """Refuse a reference that is no rotation."""
        if self.reference is not None:
            length = math.hypot(*self.reference)
            if len(self.reference) != 4 or not abs(length - 1.0) <= UNIT_TOLERANCE:
                allowed = "must be four numbers w x y z of length 1"
                raise SensorError("reference", self.reference, allowed=allowed, remedy="use navsense.pose.normalised")

    type: ClassVar[str] = "imu"
    group: ClassVar[Literal["all", "vertical"]] = "all"
    tolerance: ClassVar[float] = 1e-12

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: orientation (n, 4), angular_velocity (n, 3), linear_acceleration (n, 3)."""
        triads = (Output("angular_velocity", 3, "rad/s"), Output("linear_acceleration", 3, "m/s^2"))
        return (Output("orientation", 4, "1", "orientation"), *triads) if self.orientation else triads

    @cached_property
    def _rate(self) -> Channels:
        axes = (self.angular_velocity_x, self.angular_velocity_y, self.angular_velocity_z)
        return Channels(("angular_velocity.x", "angular_velocity.y", "angular_velocity.z"), axes)

    @cached_property
    def _force(self) -> Channels:
        axes = (self.linear_acceleration_x, self.linear_acceleration_y, self.linear_acceleration_z)
        return Channels(("linear_acceleration.x", "linear_acceleration.y", "linear_acceleration.z"), axes)

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each array."""
        return {"angular_velocity": self._rate.noises, "linear_acceleration": self._force.noises}

    def processes(self) -> tuple[Process, ...]:
        """Return the random processes of the six axes, angular velocity first."""
        return self._rate.processes + self._force.processes

    def init(self, draws: FloatArray) -> ImuState:
        """Return this serial number's turn-on biases and drifts."""
        first = sum(process.initial for process in self._rate.processes)
        return ImuState(self._rate.init(draws[:first]), self._force.init(draws[first:]))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return orientation (n, 4), angular velocity (n, 3) rad/s and specific force (n, 3) m/s^2 without errors."""
        time = ticks.time
        truth = motion.at(time)
        force, rate = (
            np.empty((3, len(ticks))).T,
            np.empty((3, len(ticks))).T,
        )  # an axis side by side, as noise takes it
        gravity_w = environment.gravity.at(truth.position_w, time)
        _perfect(truth.rotation_wb, truth.acceleration_w, gravity_w, truth.angular_velocity_b, force, rate)
        triads = {"angular_velocity": rate, "linear_acceleration": force}
        if not self.orientation:
            return triads
        reference = np.array(self.reference) if self.reference else motion.at(np.zeros(1)).rotation_wb[0]
        orientation = np.empty((len(ticks), 4))
        _relative(reference, truth.rotation_wb, orientation)
        return {"orientation": orientation, **triads}

    def measure(
        self, state: ImuState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[ImuState, Measured]:
        """Return the new state and the readings with their slow errors; the orientation has none."""
        split = self._rate.depth
        index, rate = ticks.index, ticks.rate
        gyro, omega, omega_slow = self._rate.apply(
            state.angular_velocity, index, rate, ideal["angular_velocity"], draws[:split]
        )
        accelerometer, force, force_slow = self._force.apply(
            state.linear_acceleration, index, rate, ideal["linear_acceleration"], draws[split:]
        )
        arrays = {"angular_velocity": omega, "linear_acceleration": force}
        if self.orientation:
            arrays = {"orientation": ideal["orientation"], **arrays}
        slow = {"angular_velocity": omega_slow, "linear_acceleration": force_slow}
        turn_on = {"angular_velocity": gyro.turn_on, "linear_acceleration": accelerometer.turn_on}
        return ImuState(gyro, accelerometer), Measured(arrays, slow, turn_on=turn_on)

    def apply(
        self,
        time: FloatArray,
        angular_velocity: Vectors,
        linear_acceleration: Vectors,
        orientation: Quaternions | None = None,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> Reading:
        """Return this sheet's errors on one's own arrays: rad/s and specific force in m/s^2, (n, 3) each, time (n,) s.

        Without an orientation (n, 4) the reading has none. Raises `SensorError`.
        """
        given = {"angular_velocity": angular_velocity, "linear_acceleration": linear_acceleration}
        if orientation is not None:
            given["orientation"] = unit_rows(orientation)
        spec = replace(self, orientation=orientation is not None)
        return apply(spec, time, given, seed=seed, run=run, name=name, clock=clock)

    def neutral(self) -> Imu:
        """Return the same sheet without errors."""
        return Imu(orientation=self.orientation, reference=self.reference)

    @classmethod
    def witness(cls) -> Imu:
        """Return a sheet in which every parameter acts: figures of the order of a small robot's part."""
        gyro = Noise(
            mean=1e-4,
            stddev=3e-3,
            bias_mean=2e-3,
            bias_stddev=8e-3,
            dynamic_bias_stddev=4e-5,
            dynamic_bias_correlation_time=100.0,
            precision=1e-4,
            minimum=-0.7,
            maximum=0.4,
        )
        accelerometer = Noise(
            mean=1e-3,
            stddev=4e-2,
            bias_mean=5e-2,
            bias_stddev=0.2,
            dynamic_bias_stddev=6e-3,
            dynamic_bias_correlation_time=300.0,
            precision=1e-2,
            minimum=-4.5,
            maximum=10.0,
        )
        tilted = (0.5, 0.5, 0.5, 0.5)
        return cls(gyro, gyro, gyro, accelerometer, accelerometer, accelerometer, reference=tilted)
