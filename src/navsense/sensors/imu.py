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
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.compiled import kernel
from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.motion.base import Motion
from navsense.motion.foreseen import is_foreseen
from navsense.noise.channel import NEUTRAL, Noise, witness
from navsense.noise.channels import Channels, ChannelState
from navsense.rotation import multiply, rotate
from navsense.sensors.apply import apply
from navsense.sensors.base import TEMPERATURE, Measured, Output, warmth
from navsense.series import Reading, frozen
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
    reference: FloatArray,
    channels: FloatArray,
    orientation: Quaternions,
) -> None:
    """Write angular velocity rad/s and rotation_ws^-1 (acceleration_w - gravity_w) m/s^2 into channels (6, n).

    And rotation_wr^-1 rotation_ws into orientation (n, 4), or (0, 4), for the reference rotation_wr (4,).
    """
    rw, rx, ry, rz = reference[0], -reference[1], -reference[2], -reference[3]
    orients = orientation.shape[0] > 0
    for i in range(channels.shape[1]):
        w, x, y, z = rotation_ws[i, 0], rotation_ws[i, 1], rotation_ws[i, 2], rotation_ws[i, 3]
        fx = acceleration_w[i, 0] - gravity_w[i, 0]
        fy = acceleration_w[i, 1] - gravity_w[i, 1]
        fz = acceleration_w[i, 2] - gravity_w[i, 2]
        for axis in range(3):
            channels[axis, i] = angular_velocity_s[i, axis]
        channels[3, i], channels[4, i], channels[5, i] = rotate(w, -x, -y, -z, fx, fy, fz)
        if orients:
            w, x, y, z = multiply(rw, rx, ry, rz, w, x, y, z)
            orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3] = w, x, y, z


@lru_cache(maxsize=256)
def _noted(motion: Motion) -> FloatArray:
    return motion.at(np.zeros(1)).rotation_wb[0]


def _start(motion: Motion) -> FloatArray:
    """Return rotation_ws at t = 0, noted once where the motion is known beforehand."""
    return _noted(motion) if is_foreseen(motion) else motion.at(np.zeros(1)).rotation_wb[0]


def triads(channels: AnyArray) -> dict[str, AnyArray]:
    """Return the six channels (n, 6) or (6,) as the two arrays (n, 3) or (3,) of a reading."""
    rows = channels.T
    return {"angular_velocity": rows[:3].T, "linear_acceleration": rows[3:].T}


def unit_rows(orientation: Quaternions) -> Quaternions:
    """Return the quaternions (n, 4); raise `SensorError` where a row is not of unit length."""
    rows = np.asarray(orientation, dtype=np.float64)
    lengths = np.sqrt(np.sum(rows * rows, axis=-1))
    off = np.nonzero(~(np.abs(lengths - 1.0) <= UNIT_TOLERANCE))[0]
    if off.size:
        raise SensorError(f"orientation of row {int(off[0])}", rows[off[0]].tolist(), allowed="must be of length 1")
    return rows


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
    def _channels(self) -> Channels:
        gyroscope = (self.angular_velocity_x, self.angular_velocity_y, self.angular_velocity_z)
        accelerometer = (self.linear_acceleration_x, self.linear_acceleration_y, self.linear_acceleration_z)
        names = tuple(f"{triad}.{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz")
        return Channels(names, gyroscope + accelerometer)

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each array."""
        noises = self._channels.noises
        return {"angular_velocity": noises[:3], "linear_acceleration": noises[3:]}

    def processes(self) -> tuple[Process, ...]:
        """Return the random processes of the six axes, angular velocity first."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> ChannelState:
        """Return this serial number's turn-on biases and slow errors."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return orientation (n, 4), angular velocity (n, 3) rad/s and specific force (n, 3) m/s^2 without errors."""
        time, count = ticks.time, len(ticks)
        truth = motion.at(time)
        gravity_w = environment.gravity.at(truth.position_w, time)
        seen = (truth.rotation_wb, truth.acceleration_w, frozen(gravity_w), truth.angular_velocity_b)
        reference = np.zeros(4)
        if self.orientation:
            reference = _start(motion) if self.reference is None else np.array(self.reference)
        channels, orientation = np.empty((6, count)), np.empty((count if self.orientation else 0, 4))
        _perfect(*seen, frozen(reference), channels, orientation)
        found = {**triads(channels.T), **warmth(environment, time, needed=self._channels.warms)}
        return {"orientation": orientation, **found} if self.orientation else found

    def measure(
        self, state: ChannelState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[ChannelState, Measured]:
        """Return the new state and the readings with their slow errors; the orientation has none."""
        given = (ideal["angular_velocity"], ideal["linear_acceleration"])
        state, values, slow = self._channels.apply(state, ticks, draws, *given, temperature=ideal.get(TEMPERATURE))
        arrays = {"orientation": ideal["orientation"]} if self.orientation else {}
        return state, Measured({**arrays, **triads(values)}, triads(slow), turn_on=triads(state.turn_on))

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
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return this sheet's errors on one's own arrays: rad/s and specific force in m/s^2, (n, 3) each, time (n,) s.

        Without an orientation (n, 4) the reading has none. Raises `SensorError`.
        """
        given = {"angular_velocity": angular_velocity, "linear_acceleration": linear_acceleration}
        if orientation is not None:
            given["orientation"] = unit_rows(orientation)
        spec = replace(self, orientation=orientation is not None)
        return apply(spec, time, given, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    def neutral(self) -> Imu:
        """Return the same sheet without errors."""
        return Imu(orientation=self.orientation, reference=self.reference)

    @classmethod
    def witness(cls) -> Imu:
        """Return a sheet in which every parameter acts: figures of the order of a small robot's part."""
        gyro, accelerometer = witness(3e-3, minimum=-0.7, maximum=0.4), witness(4e-2, minimum=-4.5, maximum=10.0)
        tilted = (0.5, 0.5, 0.5, 0.5)
        return cls(gyro, gyro, gyro, accelerometer, accelerometer, accelerometer, reference=tilted)
