"""Residuals of readings, and a test of the declared standard deviation of their white noise.

The white residual e is the residual r without the errors that vary slowly or with the ideal reading::

    r_k = y_k - x_k                                     residual: reading minus ideal reading
    e_k = r_k - bias_k - a - G x_k                      bias_k: recorded; a, G: by least squares, G a row per axis
    s^2 = 1/N sum_j (e_(2j+1) - e_2j)^2 / 2             variance of the white residual, from N pairs of rows
    sigma^2 = stddev^2 + noise_density^2 rate + precision^2 / 12 + outlier_probability outlier_stddev^2

Residuals of angles are wrapped to +-180 degrees; those of latitude and longitude are in metres. Biases cancel in the
differences of the pairs. N s^2 / sigma^2 is chi-squared with N degrees of freedom for Gaussian noise. With outliers,
s^2 / sigma^2 is taken as normal with variance (2 + excess / 2) / N. `excess` is the excess kurtosis of the mixture. A
recording without defects fails the test once in a million channels.

The test skips channels with fewer than 50 pairs of consecutive valid samples, with a clipped sample, and with a
rounding step of more than twice the standard deviation. It skips noise without a constant standard deviation: that of
DVLs, of ADCPs, and of filtered, averaged or vibrating IMUs. Rows with faults are left out. Orientations are w x y z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.core.geodesy import ECCENTRICITY_2, SEMI_MAJOR
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, BoolArray, FloatArray
from navsense.noise.specification import NO_NOISE, Noise
from navsense.report.labels import list_axis_labels
from navsense.sensors.base import HasIndirectNoise
from navsense.sensors.dvl import Dvl
from navsense.sensors.imu import Imu
from navsense.world import MountedSensor

FALSE_ALARMS = 1e-6
"""Probability that a channel with the declared noise fails the test."""

NORMAL_BOUND = 4.891638475
"""Standard deviations of a normal variate outside which both tails together have the probability `FALSE_ALARMS`."""

MIN_ROWS = 100
"""Samples that the fit of the white residual needs. The noise test needs half as many pairs."""

MAX_ROUNDING = 2.0
"""Largest rounding step, in standard deviations, of a rounded signal that is still white."""

TESTED_TYPES = frozenset(("imu", "magnetometer", "altimeter", "air_pressure", "depth", "navsat", "range"))
"""Types whose white noise has a constant standard deviation."""

EULER_ANGLES = ("roll", "pitch", "yaw")
"""Angles of an orientation."""

DISPLACEMENTS = {"latitude": "north of the mean", "longitude": "east of the mean"}
"""Readings in metres from the mean ideal value."""

WATER_MODE = 2.0
"""`velocity_mode` of a velocity through the water."""

MIN_ANGLE = 1e-9
"""rad: smaller angles of an orientation are rounding errors, and 0."""


@dataclass(frozen=True, eq=False)
class ResidualChannel:
    """One axis of one array of a sensor, in the rows (n,) that were emitted.

    label, reading_label: axis of the residual and of the reading. Those of an orientation are x, y, z and its angles.
    time: (n,) s.
    reading, ideal, residual: (n,) in `unit`; NaN without a value.
    bias: (n,), the recorded bias; 0 if it is not recorded.
    white_residual: (n,), the residual without bias; without constant, scale and cross-axis errors if `is_fitted`. NaN
        where a fault acts.
    noise: the declared noise; NO_NOISE without one.
    rate: Hz.
    """

    label: str
    reading_label: str
    unit: str
    time: FloatArray
    reading: FloatArray
    ideal: FloatArray
    residual: FloatArray
    bias: FloatArray
    white_residual: FloatArray
    noise: Noise
    rate: float

    @property
    def declared_stddev(self) -> float:
        """Declared standard deviation of one sample; 0 without declared noise."""
        return math.sqrt(compute_white_variance(self.noise, self.rate))

    @property
    def is_fitted(self) -> bool:
        """True if the white residual is without constant, scale and cross-axis errors: from `MIN_ROWS` rows on."""
        return int(np.count_nonzero(np.isfinite(self.white_residual))) >= MIN_ROWS


def compute_white_variance(noise: Noise, rate: float) -> float:
    """Return sigma^2, the declared variance of one sample at a rate (Hz): white noise, rounding and outliers."""
    variance = noise.white_stddev(rate) ** 2 + noise.precision**2 / 12.0
    return variance + noise.outlier_probability * noise.outlier_stddev**2


@dataclass(frozen=True)
class NoiseTest:
    """Measured and declared standard deviation of white residuals, and the bounds of the ratio of the variances."""

    measured_stddev: float
    declared_stddev: float
    min_ratio: float
    max_ratio: float

    @property
    def ratio(self) -> float:
        """Measured variance divided by the declared variance."""
        return (self.measured_stddev / self.declared_stddev) ** 2

    @property
    def passes(self) -> bool:
        """True if the ratio is within its bounds."""
        return self.min_ratio <= self.ratio <= self.max_ratio


def is_through_water(reading: Reading) -> BoolArray:
    """Return the rows (n,) in which a DVL reports its velocity through the water."""
    mode = reading.arrays.get("velocity_mode")
    if reading.type != "dvl" or mode is None:
        return np.zeros(reading.time.size, dtype=np.bool_)
    return np.asarray(np.asarray(mode) == WATER_MODE)


def get_ideal_array(reading: Reading, array: str) -> AnyArray | None:
    """Return the ideal values that an array is compared with, or None if they are not recorded.

    Rows through the water are NaN if the ideal velocity through the water is not recorded.
    """
    ideal = reading.ideal.get(array)
    if ideal is None or array != "velocity" or not (rows := is_through_water(reading)).any():
        return ideal
    water = reading.ideal.get("water_velocity")
    return np.asarray(np.where(rows[:, None], np.nan if water is None else water, ideal))


def make_channels(reading: Reading, array: str, sensor: MountedSensor | None) -> list[ResidualChannel]:
    """Return the channels of one array of a sensor; none if it is not numeric or its ideal values are not recorded."""
    measured, ideal = reading.arrays[array], get_ideal_array(reading, array)
    if ideal is None or measured.dtype.kind != "f" or measured.ndim > 2 or ideal.shape != measured.shape:
        return []
    rows = np.asarray(reading.emitted)
    time = reading.time[rows]
    if not time.size:
        return []
    measured, ideal = measured[rows].reshape(time.size, -1), ideal[rows].reshape(time.size, -1)
    unit, measured, ideal, residual = _convert_for_display(reading, array, measured, ideal)
    labels = list_axis_labels(reading.type, array, residual.shape[1], sensor)
    reading_labels = EULER_ANGLES if array == "orientation" else (DISPLACEMENTS.get(array, ""),) if unit == "m" else ()
    noises = list_declared_noises(sensor, array, unit)
    interval = float(np.median(np.diff(time))) if time.size > 1 else 1.0
    rate = sensor.rate if sensor else 1.0 / interval
    residual = np.where(reading.valid[rows][:, None], residual, math.nan)
    bias = np.zeros_like(residual)
    if array in reading.bias and array != "orientation":
        recorded = np.asarray(reading.bias[array])[rows].reshape(time.size, -1)
        bias = np.nan_to_num(recorded) if recorded.shape == measured.shape else bias
    has_fault = np.zeros(time.size, dtype=np.bool_)
    for flags in reading.fault.values():
        has_fault |= flags[rows]
    white_residual = _remove_constant_and_scale(np.where(has_fault[:, None], math.nan, residual - bias), ideal)
    return [
        ResidualChannel(
            label=labels[axis],
            reading_label=reading_labels[axis] if axis < len(reading_labels) else labels[axis],
            unit=unit,
            time=time,
            reading=measured[:, axis],
            ideal=ideal[:, axis],
            residual=residual[:, axis],
            bias=bias[:, axis],
            white_residual=white_residual[:, axis],
            noise=noises[axis] if axis < len(noises) else NO_NOISE,
            rate=rate,
        )
        for axis in range(residual.shape[1])
    ]


def list_declared_noises(sensor: MountedSensor | None, array: str, unit: str) -> Sequence[Noise]:
    """Return the declared noise of each channel of an array in a unit.

    Empty if its deviation is not constant, has limits that cannot be tested, or has another unit than the array.
    """
    if sensor is None:
        return ()
    spec, noises = sensor.spec, sensor.spec.noise().get(array, ())
    if isinstance(spec, HasIndirectNoise) and array in spec.noise_quantities:
        has_limits = any(math.isfinite(noise.minimum) or math.isfinite(noise.maximum) for noise in noises)
        # NavSat: its noise is in metres, its reading in rad, so the two compare only if metres are shown. Limits act on
        # the distance from the world's origin, which is not known here.
        return () if has_limits or spec.noise_quantities[array].unit != unit else noises
    if isinstance(spec, Dvl) and array == "beam_velocity":
        track = spec.bottom
        return () if track.per_speed or track.reference_rate or spec.echo_strength else noises
    return noises


def _convert_for_display(
    reading: Reading, array: str, measured: FloatArray, ideal: FloatArray
) -> tuple[str, FloatArray, FloatArray, FloatArray]:
    """Return unit, reading, ideal reading and residual (n, axes) of an array as the report shows them."""
    unit = reading.unit.get(array, "")
    if array == "orientation" and measured.shape[1] == 4:
        angles = (to_euler_angles(measured), to_euler_angles(ideal), compute_rotation_vectors(ideal, measured))
        measured, ideal, residual = (np.where(np.abs(angle) < MIN_ANGLE, 0.0, angle) for angle in angles)
        return "rad", measured, ideal, residual
    if array == "course":
        return unit, measured, ideal, np.asarray((measured - ideal + math.pi) % (2.0 * math.pi) - math.pi)
    if array in ("latitude", "longitude") and unit == "rad":
        start = float(np.nanmean(ideal))
        latitude = float(np.nanmean(reading.ideal["latitude"])) if "latitude" in reading.ideal else 0.0
        root = math.sqrt(1.0 - ECCENTRICITY_2 * math.sin(latitude) ** 2)
        metres = SEMI_MAJOR * (math.cos(latitude) / root if array == "longitude" else (1.0 - ECCENTRICITY_2) / root**3)
        return "m", metres * (measured - start), metres * (ideal - start), metres * (measured - ideal)
    return unit, measured, ideal, measured - ideal


def to_euler_angles(orientation: FloatArray) -> FloatArray:
    """Return roll, pitch and yaw (n, 3) rad of orientations w x y z: rotations about fixed x, then y, then z."""
    w, x, y, z = orientation.T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack((roll, pitch, yaw), axis=1)


def compute_rotation_vectors(start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the rotation vectors (n, 3) rad from orientations `start` to `end` (n, 4) w x y z, in the axes of `start`.

    They are 2 atan2(|v|, |s|) v / |v| with (s, v) = start^-1 end.
    """
    w, v = start[:, :1], start[:, 1:]
    a, b = end[:, :1], end[:, 1:]
    scalar = w * a + np.sum(v * b, axis=1, keepdims=True)
    vector = w * b - a * v - np.cross(v, b)
    vector = np.where(scalar < 0.0, -vector, vector)
    size = np.sqrt(np.sum(vector**2, axis=1, keepdims=True))
    angle = 2.0 * np.arctan2(size, np.abs(scalar))
    return np.asarray(vector * np.where(size > 0.0, angle / np.where(size > 0.0, size, 1.0), 2.0))


def _remove_constant_and_scale(residual: FloatArray, ideal: FloatArray) -> FloatArray:
    """Return residuals (n, k) without their least-squares fit by a constant and the ideal values (n, m).

    A residual with fewer than `MIN_ROWS` rows is returned as it is.
    """
    white = residual.copy()
    columns = np.column_stack((np.ones(ideal.shape[0]), ideal))
    has_ideal = np.asarray(np.isfinite(columns).all(axis=1))
    last_rows, basis = np.zeros(0, dtype=np.bool_), columns
    for axis in range(residual.shape[1]):
        rows = has_ideal & np.isfinite(residual[:, axis])
        if np.count_nonzero(rows) < MIN_ROWS:
            continue
        if not np.array_equal(rows, last_rows):  # axes mostly have the same rows, and so the same basis
            last_rows, basis = rows, _normalise_columns(columns[rows])
        # The normal equations are small for any number of rows; columns that depend on each other get the least fit.
        coefficients, *_ = np.linalg.lstsq(basis.T @ basis, basis.T @ residual[rows, axis], rcond=1e-12)
        white[rows, axis] = residual[rows, axis] - basis @ coefficients
    return white


def _normalise_columns(columns: FloatArray) -> FloatArray:
    """Return a constant and the columns (n, m) that change, with mean 0 and standard deviation 1."""
    mean, stddev = columns.mean(axis=0), columns.std(axis=0)
    changes = stddev > 1e-12 * np.maximum(np.abs(mean), 1e-30)
    return np.column_stack((np.ones(columns.shape[0]), (columns[:, changes] - mean[changes]) / stddev[changes]))


def compute_pair_variance(values: FloatArray) -> tuple[float, int]:
    """Return s^2 and N of values (n,), from the rows 2j and 2j + 1 that are both finite."""
    pairs = values[: values.size // 2 * 2].reshape(-1, 2)
    steps = pairs[:, 1] - pairs[:, 0]
    steps = steps[np.isfinite(steps)]
    return (0.5 * float(np.mean(steps**2)) if steps.size else math.nan), int(steps.size)


def check_noise(channel: ResidualChannel, sensor: MountedSensor | None) -> NoiseTest | str:
    """Return the test of a channel's white noise, or the reason why it does not apply."""
    declared, noise = channel.declared_stddev, channel.noise
    if sensor is None:
        return "the recording has no specification of the sensor; name the world with --world"
    spec = sensor.spec
    if spec.type not in TESTED_TYPES:
        return f"the standard deviation of the type {spec.type} is not constant"
    if declared == 0.0 or not noise.has_white_noise:
        return "no white noise is declared"
    if isinstance(spec, Imu) and (spec.bandwidth or spec.vibration or spec.averaged):
        return "the IMU filters, averages or vibrates, so its noise is not white"
    if noise.precision > MAX_ROUNDING * noise.white_stddev(channel.rate):
        return "the rounding step is larger than twice the noise"
    if bool(((channel.reading <= noise.minimum) | (channel.reading >= noise.maximum)).any()):
        return "samples are at a limit of the range"
    variance, count = compute_pair_variance(channel.white_residual)
    if count < MIN_ROWS // 2:
        return f"there are fewer than {MIN_ROWS // 2} pairs of consecutive valid samples"
    return NoiseTest(
        math.sqrt(variance), declared, *compute_ratio_bounds(count, compute_excess_kurtosis(noise, channel.rate))
    )


def compute_excess_kurtosis(noise: Noise, rate: float) -> float:
    """Return the excess kurtosis of white noise with outliers."""
    if not noise.has_outliers:
        return 0.0
    p, variance = noise.outlier_probability, noise.white_stddev(rate) ** 2
    outlier_variance = variance + noise.outlier_stddev**2
    mean = (1.0 - p) * variance + p * outlier_variance
    return 3.0 * ((1.0 - p) * variance**2 + p * outlier_variance**2) / mean**2 - 3.0


def compute_ratio_bounds(count: int, excess: float) -> tuple[float, float]:
    """Return the bounds of s^2 / sigma^2 of `count` pairs for the probability `FALSE_ALARMS`."""
    from scipy.special import chdtri

    if excess > 0.0:
        half_width = NORMAL_BOUND * math.sqrt((2.0 + 0.5 * excess) / count)
        return max(0.0, 1.0 - half_width), 1.0 + half_width
    tail = 0.5 * FALSE_ALARMS  # chdtri(n, p) is exceeded with the probability p
    return float(chdtri(count, 1.0 - tail)) / count, float(chdtri(count, tail)) / count


def normalise_residuals(reading: Reading, array: str, labels: Sequence[str]) -> Mapping[str, FloatArray]:
    """Return residuals divided by the reported standard deviations, by axis; none without a covariance."""
    covariance, ideal = reading.arrays.get(f"{array}_covariance"), get_ideal_array(reading, array)
    if covariance is None or ideal is None or covariance.ndim != 3:
        return {}
    rows = np.asarray(reading.emitted & reading.valid)
    normalised = {}
    for axis, label in enumerate(labels):
        variance = covariance[rows, axis, axis]
        stddev = np.sqrt(np.where(variance > 0.0, variance, math.nan))
        normalised[label] = (reading.arrays[array][rows, axis] - ideal[rows, axis]) / stddev
    return normalised
