"""IMU: angular velocity, specific force and orientation of the sensor's frame.

    omega       = omega_s + rotation_ws^-1 omega_e
    force       = rotation_ws^-1 (a_w + 2 omega_e x v_w - g_w(p, t))         specific force: gravity included
    orientation = rotation_rs = rotation_wr^-1 rotation_ws                   no noise

omega_s, v_w and a_w are those of the sensor's position: for a sensor at r in its link, a_w includes the centripetal and
tangential terms ``alpha x r + omega x (omega x r)`` (see `motion.derived`). r is the reference frame of the
orientation. omega_e is the earth's rate, with `earth_rotation` only; gravity includes its centrifugal part. `averaged`
gives the means of omega and force over (t_(k-1), t_k] instead, see `_interval_means`.

    angular_velocity    = channels((I + M_g) omega' + G force')
    linear_acceleration = channels((I + M_a) force')
    omega', force'      = omega, force after the low-pass, plus the lines of vibration after it

M are misalignments, G is the g-sensitivity; `channels` is `Noise`, its gain first. The low-pass (see `_low_pass`) acts
before the noise, because the white noise of a datasheet is that of the output. Lines of vibration (see `_vibration`)
are neither part of the motion nor of the ideal values. Sources: gz-sensors' ImuSensor, SDF 1.12 `imu.sdf`; M and G:
Groves 2013, Principles of GNSS, Inertial, and Multisensor Integrated Navigation Systems, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.geodesy import EARTH_RATE, compute_earth_rate_w
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading, make_read_only
from navsense.core.rotation import cross, multiply, rotate
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray, Quaternion, Quaternions, Vectors
from navsense.core.validation import MAX_MAGNITUDE, check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.derived import is_known_ahead
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.noise.terms import stationary_stddev
from navsense.sensors._cross_axis import make_matrix, mix_axes
from navsense.sensors._interval_means import average_intervals
from navsense.sensors._low_pass import compute_stiffness, filter_rows
from navsense.sensors._vibration import Vibration, add_lines, make_lines
from navsense.sensors.base import TEMPERATURE, Measurement, Output, describe_fields, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.part_noise import make_noise
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings

UNIT_TOLERANCE = 1e-6
"""Tolerance of the length of a unit quaternion."""

NO_ORIGIN = "the world has no place on earth, which earth_rotation requires"
REMEDY = "give <spherical_coordinates> in the world, or Environment(origin=Origin(...))"

NO_MISALIGNMENT = (0.0,) * 6
"""No misalignment."""

NO_G_SENSITIVITY = (0.0,) * 9
"""No g-sensitivity."""

MAX_MISALIGNMENT = 1.0
"""Misalignments are below this angle (rad), up to which the small-angle form holds."""

AVERAGING_TIME = 100.0
"""Seconds over which a gyroscope is averaged to resolve the earth's rate."""


@kernel
def _compute_ideal(
    rotation_ws: Quaternions,
    acceleration_w: Vectors,
    gravity_w: Vectors,
    angular_velocity_s: Vectors,
    reference: FloatArray,
    channels: FloatArray,
    orientation: Quaternions,
) -> None:
    """Write angular velocity rad/s and rotation_ws^-1 (acceleration_w - gravity_w) m/s^2 to channels (6, n).

    Also write rotation_wr^-1 rotation_ws to orientation (n, 4), or (0, 4), for the reference rotation_wr (4,).
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


@kernel
def _add_earth_rotation(earth: FloatArray, rotation_ws: Quaternions, velocity_w: Vectors, channels: FloatArray) -> None:
    """Add the earth's rate (3,) rad/s and the Coriolis acceleration 2 omega_e x v to channels (6, n)."""
    ex, ey, ez = earth[0], earth[1], earth[2]
    for i in range(channels.shape[1]):
        w, x, y, z = rotation_ws[i, 0], -rotation_ws[i, 1], -rotation_ws[i, 2], -rotation_ws[i, 3]
        ox, oy, oz = rotate(w, x, y, z, ex, ey, ez)
        cx, cy, cz = cross(2.0 * ex, 2.0 * ey, 2.0 * ez, velocity_w[i, 0], velocity_w[i, 1], velocity_w[i, 2])
        cx, cy, cz = rotate(w, x, y, z, cx, cy, cz)
        channels[0, i], channels[1, i], channels[2, i] = channels[0, i] + ox, channels[1, i] + oy, channels[2, i] + oz
        channels[3, i], channels[4, i], channels[5, i] = channels[3, i] + cx, channels[4, i] + cy, channels[5, i] + cz


def _evaluate_initial_rotation(motion: Motion) -> FloatArray:
    rotation_ws: FloatArray = motion.at(np.zeros(1)).rotation_wb[0]
    return rotation_ws


_cached_initial_rotation = lru_cache(maxsize=256)(_evaluate_initial_rotation)


def _get_initial_rotation(motion: Motion) -> FloatArray:
    """Return rotation_ws at t = 0; cached for a motion that is known ahead."""
    hashable: Any = motion  # a motion that is known ahead can be hashed
    return _cached_initial_rotation(hashable) if is_known_ahead(motion) else _evaluate_initial_rotation(motion)


def split_triads(channels: AnyArray) -> dict[str, AnyArray]:
    """Return the six channels (n, 6) or (6,) as the two arrays (n, 3) or (3,) of a reading."""
    rows = channels.T
    return {"angular_velocity": rows[:3].T, "linear_acceleration": rows[3:].T}


def check_unit_quaternions(orientation: Quaternions) -> Quaternions:
    """Return the quaternions (n, 4). Raises `SensorError` for a row that is not of unit length."""
    rows = np.asarray(orientation, dtype=np.float64)
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.sum(rows * rows, axis=-1))
    invalid = np.nonzero(~(np.abs(lengths - 1.0) <= UNIT_TOLERANCE))[0]
    if invalid.size:
        row = int(invalid[0])
        raise SensorError(f"orientation of row {row}", rows[row].tolist(), allowed="must be of length 1")
    return rows


class ImuState(NamedTuple):
    """The state of an instrument: its noise, and the memory of its low-pass (6, 3), (0, 3) without one."""

    noise: NoiseState
    filter_state: FloatArray


@dataclass(frozen=True)
class Imu:
    """Specification of an IMU. Raises `SensorError` for invalid values.

    angular_velocity_x, angular_velocity_y, angular_velocity_z: noise of each axis of the sensor frame, rad/s.
    linear_acceleration_x, linear_acceleration_y, linear_acceleration_z: noise of each axis of the sensor frame, m/s^2.
    orientation: false for a reading without orientation.
    reference: rotation (w x y z) from the reference frame of the orientation to the world frame. None: the reference
        frame is the sensor frame at t = 0.
    averaged: sample k is the mean over the last sampling interval, so that the sum of the increments is the motion.
        Sample 0 has no interval; it is not published.
    bandwidth: cut-off frequency of a second-order Butterworth low-pass, Hz; 0 for none.
    vibration: spectral lines in addition to the motion.
    angular_velocity_misalignment, linear_acceleration_misalignment: small angles xy xz yx yz zx zy of M in I + M, rad.
        The angle xy is the share of y that the x axis measures.
    g_sensitivity: matrix, row by row, from specific force to an error of the angular velocity, rad/s per m/s^2.
    earth_rotation: true if the IMU measures the rotation of the earth, in a world with an origin.

    >>> time = np.arange(200) / 200.0  # s
    >>> still = np.tile([0.0, 0.0, 9.81], (200, 1))
    >>> reading = ns.sensors.Imu.from_part("stim300").apply(time, np.zeros((200, 3)), still, seed=7)
    >>> reading["angular_velocity"].shape
    (200, 3)
    """

    angular_velocity_x: Noise = field(default=NO_NOISE, metadata=in_file("x", container="angular_velocity"))
    angular_velocity_y: Noise = field(default=NO_NOISE, metadata=in_file("y", container="angular_velocity"))
    angular_velocity_z: Noise = field(default=NO_NOISE, metadata=in_file("z", container="angular_velocity"))
    linear_acceleration_x: Noise = field(default=NO_NOISE, metadata=in_file("x", container="linear_acceleration"))
    linear_acceleration_y: Noise = field(default=NO_NOISE, metadata=in_file("y", container="linear_acceleration"))
    linear_acceleration_z: Noise = field(default=NO_NOISE, metadata=in_file("z", container="linear_acceleration"))
    orientation: bool = field(default=True, metadata=in_file("enable_orientation"))
    reference: Quaternion | None = field(default=None, metadata=in_file("orientation_reference_frame"))
    averaged: bool = field(default=False, metadata=in_file("navsense:averaged"))
    bandwidth: float = field(
        default=0.0, metadata=in_file("navsense:bandwidth", minimum=0.0, magnitude_below=MAX_MAGNITUDE)
    )
    vibration: tuple[Vibration, ...] = field(default=(), metadata=in_file("navsense:vibration"))
    angular_velocity_misalignment: tuple[float, ...] = field(
        default=NO_MISALIGNMENT,
        metadata=in_file("navsense:angular_velocity_misalignment", magnitude_below=MAX_MISALIGNMENT),
    )
    linear_acceleration_misalignment: tuple[float, ...] = field(
        default=NO_MISALIGNMENT,
        metadata=in_file("navsense:linear_acceleration_misalignment", magnitude_below=MAX_MISALIGNMENT),
    )
    g_sensitivity: tuple[float, ...] = field(
        default=NO_G_SENSITIVITY, metadata=in_file("navsense:g_sensitivity", magnitude_below=MAX_MAGNITUDE)
    )
    earth_rotation: bool = field(default=False, metadata=in_file("navsense:earth_rotation"))

    type: ClassVar[str] = "imu"
    invariance_tolerance: ClassVar[float] = 1e-12

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the reference and the numbers."""
        if self.reference is not None:
            object.__setattr__(self, "reference", check_numbers("reference", self.reference, 4))
            if not abs(math.hypot(*self.reference) - 1.0) <= UNIT_TOLERANCE:
                allowed = "must be four numbers w x y z of length 1"
                raise SensorError("reference", self.reference, allowed=allowed, remedy="divide by its length")
        check_numbers("bandwidth (Hz)", (self.bandwidth,), 1)
        if self.bandwidth < 0.0:
            raise SensorError("bandwidth (Hz)", self.bandwidth, allowed="must be >= 0; 0 for no limit")
        for name in ("angular_velocity_misalignment", "linear_acceleration_misalignment"):
            angles = check_numbers(f"{name} (rad)", getattr(self, name), 6, magnitude_below=MAX_MISALIGNMENT)
            object.__setattr__(self, name, angles)
        object.__setattr__(self, "g_sensitivity", check_numbers("g_sensitivity", self.g_sensitivity, 9))
        lines = tuple(self.vibration) if isinstance(self.vibration, Iterable) else (self.vibration,)
        for line in lines:
            if not isinstance(line, Vibration):
                raise SensorError("vibration", repr(line), allowed="must be a tuple of Vibration, () for none")
        object.__setattr__(self, "vibration", lines)
        validate_types(self)

    @property
    def rotation_invariance(self) -> Literal["all", "vertical"]:
        """The rotations of the world that leave the readings unchanged: about the vertical, with `earth_rotation`."""
        return "vertical" if self.earth_rotation else "all"

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading: orientation (n, 4), angular_velocity (n, 3), linear_acceleration (n, 3)."""
        triads = (Output("angular_velocity", 3, "rad/s"), Output("linear_acceleration", 3, "m/s^2"))
        return (Output("orientation", 4, "1", "orientation"), *triads) if self.orientation else triads

    @cached_property
    def _channels(self) -> NoiseChannels:
        gyroscope = (self.angular_velocity_x, self.angular_velocity_y, self.angular_velocity_z)
        accelerometer = (self.linear_acceleration_x, self.linear_acceleration_y, self.linear_acceleration_z)
        names = tuple(f"{triad}.{axis}" for triad in ("angular_velocity", "linear_acceleration") for axis in "xyz")
        return NoiseChannels(names, gyroscope + accelerometer)

    @cached_property
    def _mixing_matrix(self) -> FloatArray | None:
        """((I + M_g, G), (0, I + M_a)) (6, 6); None for the identity."""
        matrix = np.eye(6)
        for first, angles in ((0, self.angular_velocity_misalignment), (3, self.linear_acceleration_misalignment)):
            xy, xz, yx, yz, zx, zy = angles
            matrix[first : first + 3, first : first + 3] += make_matrix((0.0, xy, xz, yx, 0.0, yz, zx, zy, 0.0))
        matrix[:3, 3:] = make_matrix(self.g_sensitivity)
        return None if np.array_equal(matrix, np.eye(6)) else matrix

    @cached_property
    def _vibration_lines(self) -> FloatArray:
        return make_lines(self.vibration, self.bandwidth)

    @cached_property
    def _has_noise_only(self) -> bool:
        """True if the channels act on the ideal values directly."""
        return not (self.bandwidth or self.vibration) and self._mixing_matrix is None

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return the fields other than noise, and a warning if the earth's rate is missing."""
        is_rate_missing = not self.earth_rotation and resolves_earth_rate(self, rate)
        lines = {
            "orientation: not measured": not self.orientation,
            "samples: mean of each sampling interval": self.averaged,
            "earth rotation: measured": self.earth_rotation,
            "warning: resolves the earth's rate (7.3e-5 rad/s), which requires earth_rotation": is_rate_missing,
        }
        if self.reference is not None:
            # Without digits of rounding errors: 0 and not 4e-17, nor -0.
            numbers = " ".join(f"{round(number, 9) + 0.0:g}" for number in self.reference)
            lines[f"reference of the orientation, to the world (w x y z): {numbers}"] = True
        spec = replace(self, orientation=True, averaged=False, earth_rotation=False, reference=None)
        return (*describe_fields(spec), *(line for line, applies in lines.items() if applies))

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each axis of each array."""
        noises = self._channels.noises
        return {"angular_velocity": noises[:3], "linear_acceleration": noises[3:]}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the six axes, angular velocity first."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> ImuState:
        """Return the biases of an instrument, and a low-pass before its first sample."""
        return ImuState(self._channels.init(draws), np.full((6 if self.bandwidth else 0, 3), np.nan))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return orientation (n, 4), angular velocity (n, 3) rad/s and specific force (n, 3) m/s^2 without errors.

        Raises `SensorError` for `earth_rotation` in a world without a place on earth.
        """
        time, count = ticks.time, len(ticks)
        motion_block = motion.at(time)
        gravity_w = environment.gravity.at(motion_block.position_w, time)
        state = (
            motion_block.rotation_wb,
            motion_block.acceleration_w,
            make_read_only(gravity_w),
            motion_block.angular_velocity_b,
        )
        reference = np.zeros(4)
        if self.orientation:
            reference = _get_initial_rotation(motion) if self.reference is None else np.array(self.reference)
        channels, orientation = np.empty((6, count)), np.empty((count if self.orientation else 0, 4))
        _compute_ideal(*state, make_read_only(reference), channels, orientation)
        if self.averaged or self.earth_rotation:
            self._add_earth_and_average(motion, environment, ticks, motion_block, channels)
        ideal = {**split_triads(channels.T), **evaluate_signals(self, environment, time)}
        return {"orientation": orientation, **ideal} if self.orientation else ideal

    def _add_earth_and_average(
        self, motion: Motion, environment: Environment, ticks: Ticks, motion_block: MotionBlock, channels: FloatArray
    ) -> None:
        """Add the rotation of the earth, and compute means over intervals, in the channels (6, n) of a block."""
        earth = np.zeros(3)
        if self.earth_rotation:
            if environment.origin is None:
                raise SensorError("earth_rotation", True, allowed=NO_ORIGIN, remedy=REMEDY)
            earth[:] = compute_earth_rate_w(environment.origin)
            _add_earth_rotation(earth, motion_block.rotation_wb, motion_block.velocity_w, channels)
        if self.averaged and len(ticks):
            average_intervals(motion, environment.gravity, earth, ticks, motion_block, channels)

    def measure(
        self, state: ImuState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[ImuState, Measurement]:
        """Return the new state and the measured values with their biases; the orientation has no bias."""
        triads, filter_state = (ideal["angular_velocity"], ideal["linear_acceleration"]), state.filter_state
        if not self._has_noise_only:
            triads, filter_state = self._filter_and_mix(state, ticks, triads)
        temperature = ideal.get(TEMPERATURE)
        noise, values, bias = self._channels.apply(state.noise, ticks, draws, *triads, temperature=temperature)
        arrays = {"orientation": ideal["orientation"]} if self.orientation else {}
        emitted = ticks.index > 0 if self.averaged else None
        measured = Measurement(
            {**arrays, **split_triads(values)}, split_triads(bias), None, emitted, split_triads(noise.turn_on)
        )
        return ImuState(noise, filter_state), measured

    def _filter_and_mix(
        self, state: ImuState, ticks: Ticks, triads: tuple[Vectors, Vectors]
    ) -> tuple[tuple[Vectors, Vectors], FloatArray]:
        """Return both triads (n, 3) before the channels, and the new memory of the low-pass."""
        rows, filter_state = np.empty((6, len(ticks))), state.filter_state.copy()
        rows[:3], rows[3:] = triads[0].T, triads[1].T
        if self.bandwidth:
            stiffness, last_tick = compute_stiffness(self.bandwidth), state.noise.last_tick
            filter_rows(stiffness, ticks.index, ticks.rate, last_tick, filter_state, rows)
        if self.vibration:
            add_lines(
                self._vibration_lines, ticks.nominal_step / ticks.rate if self.averaged else 0.0, ticks.time, rows
            )
        if self._mixing_matrix is not None:
            rows, aligned = np.empty(rows.shape), rows
            mix_axes(self._mixing_matrix, aligned, rows)
        return (rows[:3].T, rows[3:].T), filter_state

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
        """Return readings with the errors of this spec for your own arrays.

        angular_velocity: (n, 3) rad/s, sensor frame.
        linear_acceleration: specific force (n, 3) m/s^2, sensor frame.
        time: (n,) s. Vibration starts with the first row.
        orientation: (n, 4) w x y z; None for a reading without an orientation.

        Raises `SensorError`, also for a spec with `averaged` or `earth_rotation`, which define the ideal values.
        """
        for option in ("averaged", "earth_rotation"):
            if getattr(self, option):
                allowed = "computes ideal values from a motion; your own arrays are the ideal values"
                remedy = f"include it in the arrays, and use dataclasses.replace(spec, {option}=False)"
                raise SensorError(option, True, allowed=allowed, remedy=remedy)
        ideal = {"angular_velocity": angular_velocity, "linear_acceleration": linear_acceleration}
        if orientation is not None:
            rows = check_rows("orientation", orientation, (check_time(time).size, 4))
            ideal["orientation"] = check_unit_quaternions(rows)
        spec = replace(self, orientation=orientation is not None)
        return simulate_readings(spec, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> Imu:
        """Return the spec of a part of the catalogue, see `catalogue.part_noise`.

        `temperature` enables its temperature coefficients. Raises `UnknownNameError`, `SensorError`.
        """
        part = load_part(name)
        wx, wy, wz = make_noise(part, "angular_velocity", temperature=temperature)
        ax, ay, az = make_noise(part, "linear_acceleration", temperature=temperature)
        return cls(wx, wy, wz, ax, ay, az)

    def without_errors(self) -> Imu:
        """Return the same spec without errors."""
        names = ("orientation", "reference", "averaged", "earth_rotation")
        return Imu(**{name: getattr(self, name) for name in names})

    @classmethod
    def example_spec(cls) -> Imu:
        """Return a spec in which every field is active: values similar to a small robot's part."""
        gyro = make_example_noise(3e-3, minimum=-0.7, maximum=0.4)
        accelerometer = make_example_noise(4e-2, minimum=-4.5, maximum=10.0)
        return cls(
            *(gyro, gyro, gyro, accelerometer, accelerometer, accelerometer),
            reference=(0.5, 0.5, 0.5, 0.5),
            averaged=True,
            bandwidth=80.0,
            vibration=(
                Vibration(133.0, (1.0, 2.0, 3.0), (0.05, 0.1, 0.2), 0.3),
                Vibration(21.0, (0.3, 0.2, 0.1), (0.03, 0.02, 0.01), 1.0),
            ),
            angular_velocity_misalignment=(0.01, -0.02, 0.03, -0.01, 0.02, -0.03),
            linear_acceleration_misalignment=(-0.02, 0.01, 0.03, 0.02, -0.01, 0.03),
            g_sensitivity=(1e-3, 2e-3, -3e-3, 3e-3, -1e-3, 2e-3, 2e-3, 1e-3, -2e-3),
            earth_rotation=True,
        )


def resolves_earth_rate(spec: Imu, rate: float) -> bool:
    """Return True if the declared noise of a gyroscope sampled at `rate` (Hz) resolves the earth's rate.

    This is the case if the root sum of squares of mean, turn-on bias, dynamic bias, flicker and 100 s of white noise of
    an axis is below 7.3e-5 rad/s (15 deg/h). An axis without errors is ideal and does not count.
    """
    return any(
        noise != NO_NOISE and _estimate_uncertainty(noise, rate) < EARTH_RATE
        for noise in spec.noise()["angular_velocity"]
    )


def _estimate_uncertainty(noise: Noise, rate: float) -> float:
    """Return the uncertainty (rad/s) of the mean of an axis over `AVERAGING_TIME`, sampled at `rate` (Hz)."""
    dynamic_bias = stationary_stddev(noise.dynamic_bias_stddev, noise.dynamic_bias_correlation_time)
    white = noise.white_density(rate) / math.sqrt(AVERAGING_TIME)
    return math.hypot(noise.mean, noise.bias_mean, noise.bias_stddev, dynamic_bias, noise.bias_instability, white)
