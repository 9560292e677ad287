"""Reading less truth, what of it is white, and whether that is as large as declared.

    r_k = y_k - x_k                                     residual; of angles the shortest way round, of places in metres
    f_k = r_k - slow_k - a - G x_k                      slow: the recorded error; a, G: the best constant and gain
    s^2 = 1/N sum_j (f_(2j+1) - f_2j)^2 / 2             white part, of N pairs of neighbours that share no row
    sigma^2 = stddev^2 + noise_density^2 rate + precision^2 / 12 + outlier_probability outlier_stddev^2

What is slow leaves the pairs' differences, so that N s^2 / sigma^2 is chi-squared of N degrees of freedom where the
noise is Gaussian; with outliers s^2 / sigma^2 is taken as normal of variance (2 + excess / 2) / N, `excess` being the
kurtosis of the mixture above 3. A sound recording leaves the bounds once in a million channels.

Steps of rounding of more than twice the deviation are not tested, nor are noises whose deviation is not one number:
those of a Doppler log, of a filtered or shaken IMU, of what is clipped at its limits. Rows on which faults act are left
out. Orientations are told w x y z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.noise.channel import NEUTRAL, Noise
from navsense.report.frames import labels_of, truth_of
from navsense.sensors.base import HasIndirectNoise
from navsense.sensors.imu import Imu
from navsense.series import Reading
from navsense.typing import BoolArray, FloatArray
from navsense.world import MountedSensor

FALSE_ALARMS = 1e-6
"""How often a channel whose noise is as declared is reported."""

NORMAL_BOUND = 4.891638475
"""Deviations of a normal variate that both tails of `FALSE_ALARMS` together lie beyond."""

FEWEST = 100
"""Rows below which nothing is said of a noise."""

COARSE = 2.0
"""Steps of rounding in a deviation from which on what is rounded is not white any more."""

ONE_NUMBER = frozenset(("imu", "magnetometer", "altimeter", "air_pressure", "depth", "navsat", "range"))
"""Types whose white noise has one deviation whatever they measure."""

TURNS = ("roll", "pitch", "yaw")
"""What the axes of an orientation are called."""

EARTH = 6371e3
"""m: mean radius, by which small angles of a place become metres."""


@dataclass(frozen=True, eq=False)
class Channel:
    """One axis of one array of a sensor at the rows `time` (n,) s that were emitted; `unit` is of all its values.

    `reading`, `truth`, `residual`, `slow` (0 where it is not recorded) and `white` (n,), NaN where there is no number;
    `noise` is its declared one, NEUTRAL where it has none; `rate` in Hz.
    """

    label: str
    unit: str
    time: FloatArray
    reading: FloatArray
    truth: FloatArray
    residual: FloatArray
    slow: FloatArray
    white: FloatArray
    noise: Noise
    rate: float

    @property
    def declared(self) -> float:
        """Return the declared deviation of one sample, 0 where none is declared."""
        noise = self.noise
        white = noise.white_stddev(self.rate) ** 2 + noise.precision**2 / 12.0
        return math.sqrt(white + noise.outlier_probability * noise.outlier_stddev**2)


@dataclass(frozen=True)
class Verdict:
    """Whether a white part is as large as declared: its deviation, the declared one, bounds of the variances' ratio."""

    measured: float
    declared: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """Return the measured variance over the declared one."""
        return (self.measured / self.declared) ** 2

    @property
    def holds(self) -> bool:
        """Return true where the ratio is within its bounds."""
        return self.low <= self.ratio <= self.high


def channels_of(reading: Reading, name: str, sensor: MountedSensor | None) -> list[Channel]:
    """Return the channels of one array of a sensor; none where the truth of it is not recorded, or is no number."""
    told, true = reading.arrays[name], truth_of(reading, name)
    if true is None or told.dtype.kind != "f" or told.ndim > 2 or true.shape != told.shape:
        return []
    rows = np.asarray(reading.emitted)
    time = reading.time[rows]
    if not time.size:
        return []
    given, wanted = told[rows].reshape(time.size, -1), true[rows].reshape(time.size, -1)
    slow = _slow(reading, name, rows, given)
    labels = list(TURNS) if name == "orientation" else labels_of(reading.type, name, given.shape[1], sensor)
    noises = sensor.spec.noise().get(name, ()) if sensor else ()
    if sensor and isinstance(sensor.spec, HasIndirectNoise) and name in sensor.spec.noise_quantities:
        noises = ()
    unit, shown, ideal, residual = _kind(reading, name, given, wanted)
    rate = sensor.rate if sensor else _rate(time)
    residual = np.where(reading.valid[rows][:, None], residual, math.nan)
    struck = _struck(reading, rows)
    white = _white(np.where(struck[:, None], math.nan, residual - slow), ideal)
    return [
        Channel(
            labels[axis],
            unit,
            time,
            shown[:, axis],
            ideal[:, axis],
            residual[:, axis],
            slow[:, axis] if slow.shape[1] > axis else np.zeros(time.size),
            white[:, axis],
            noises[axis] if axis < len(noises) else NEUTRAL,
            rate,
        )
        for axis in range(residual.shape[1])
    ]


def _rate(time: FloatArray) -> float:
    """Return the rate (Hz) of instants."""
    return 1.0 / float(np.median(np.diff(time))) if time.size > 1 else 1.0


def _slow(reading: Reading, name: str, rows: BoolArray, given: FloatArray) -> FloatArray:
    """Return the recorded slow error of an array, 0 where there is none."""
    slow = reading.bias.get(name)
    if slow is None or name == "orientation":
        return np.zeros_like(given[:, :3] if name == "orientation" else given)
    found = np.asarray(slow)[rows].reshape(given.shape[0], -1)
    return np.nan_to_num(found) if found.shape == given.shape else np.zeros_like(given)


def _struck(reading: Reading, rows: BoolArray) -> BoolArray:
    """Return on which rows (n,) a fault acts: what they are off by is no noise."""
    acts = np.zeros(int(np.count_nonzero(rows)), dtype=np.bool_)
    for kind in reading.fault.values():
        acts |= kind[rows]
    return acts


def _kind(
    reading: Reading, name: str, given: FloatArray, wanted: FloatArray
) -> tuple[str, FloatArray, FloatArray, FloatArray]:
    """Return unit, reading, truth and residual (n, axes) of an array as it is shown."""
    unit = reading.unit.get(name, "")
    if name == "orientation" and given.shape[1] == 4:
        return "rad", angles(given), angles(wanted), turn(wanted, given)
    if name == "course":
        return unit, given, wanted, np.asarray((given - wanted + math.pi) % (2.0 * math.pi) - math.pi)
    if name in ("latitude", "longitude") and unit == "rad":
        start = float(np.nanmean(wanted))
        metres = EARTH * (math.cos(_latitude(reading)) if name == "longitude" else 1.0)
        return "m", metres * (given - start), metres * (wanted - start), metres * (given - wanted)
    return unit, given, wanted, given - wanted


def _latitude(reading: Reading) -> float:
    """Return the mean latitude (rad) of a sensor's truth."""
    return float(np.nanmean(reading.ideal["latitude"])) if "latitude" in reading.ideal else 0.0


def angles(attitude: FloatArray) -> FloatArray:
    """Return roll, pitch and yaw (n, 3) rad of attitudes w x y z: turns about x, then y, then z of the reference."""
    w, x, y, z = attitude.T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack((roll, pitch, yaw), axis=1)


def turn(base: FloatArray, turned: FloatArray) -> FloatArray:
    """Return the rotation vectors (n, 3) rad from attitudes `base` to attitudes `turned`, in the axes of the first."""
    w, v = base[:, :1], base[:, 1:]
    a, b = turned[:, :1], turned[:, 1:]
    scalar = w * a + np.sum(v * b, axis=1, keepdims=True)
    vector = w * b - a * v - np.cross(v, b)
    vector = np.where(scalar < 0.0, -vector, vector)
    size = np.sqrt(np.sum(vector**2, axis=1, keepdims=True))
    angle = 2.0 * np.arctan2(size, np.abs(scalar))
    return np.asarray(vector * np.where(size > 0.0, angle / np.where(size > 0.0, size, 1.0), 2.0))


def _white(rest: FloatArray, truth: FloatArray) -> FloatArray:
    """Return residuals (n, k) without the best constant and gain on the truth's axes (n, m)."""
    out = rest.copy()
    columns = np.column_stack((np.ones(truth.shape[0]), truth))
    known = np.asarray(np.isfinite(columns).all(axis=1))
    last, basis = np.zeros(0, dtype=np.bool_), columns
    for axis in range(rest.shape[1]):
        rows = known & np.isfinite(rest[:, axis])
        if np.count_nonzero(rows) < FEWEST:
            continue
        if not np.array_equal(rows, last):
            last, basis = rows, _basis(columns[rows])
        found, *_ = np.linalg.lstsq(basis.T @ basis, basis.T @ rest[rows, axis], rcond=1e-12)
        out[rows, axis] = rest[rows, axis] - basis @ found
    return out


def _basis(columns: FloatArray) -> FloatArray:
    """Return a constant and those columns (n, m) that change, without their mean and of deviation 1."""
    centre, size = columns.mean(axis=0), columns.std(axis=0)
    moving = size > 1e-12 * np.maximum(np.abs(centre), 1e-30)
    return np.column_stack((np.ones(columns.shape[0]), (columns[:, moving] - centre[moving]) / size[moving]))


def deviation_of_pairs(values: FloatArray) -> tuple[float, int]:
    """Return s^2 and N of values (n,): pairs of rows 2j and 2j + 1 that are both numbers."""
    even = values[: values.size // 2 * 2].reshape(-1, 2)
    steps = even[:, 1] - even[:, 0]
    steps = steps[np.isfinite(steps)]
    return (0.5 * float(np.mean(steps**2)) if steps.size else math.nan), int(steps.size)


def verdict_of(channel: Channel, sensor: MountedSensor | None) -> Verdict | None:
    """Return whether a channel's white noise is as declared; None where that cannot be said."""
    declared = channel.declared
    if sensor is None or declared == 0.0 or not channel.noise.has_white_noise or sensor.spec.type not in ONE_NUMBER:
        return None
    noise = channel.noise
    if noise.precision > COARSE * noise.white_stddev(channel.rate) or not _constant(sensor):
        return None
    clipped = (channel.reading <= noise.minimum) | (channel.reading >= noise.maximum)
    square, count = deviation_of_pairs(np.where(clipped, math.nan, channel.white))
    if count < FEWEST // 2 or bool(clipped.any()):
        return None
    low, high = bounds_of(count, excess_of(noise, channel.rate))
    return Verdict(math.sqrt(square), declared, low, high)


def _constant(sensor: MountedSensor) -> bool:
    """Return whether the noise of a sensor is white and of one deviation: no filter, no vibration beside it."""
    spec = sensor.spec
    return not (isinstance(spec, Imu) and (spec.bandwidth or spec.vibration or spec.averaged))


def excess_of(noise: Noise, rate: float) -> float:
    """Return the kurtosis above 3 of white noise with outliers."""
    if not noise.has_outliers:
        return 0.0
    share, inner = noise.outlier_probability, noise.white_stddev(rate) ** 2
    outer = inner + noise.outlier_stddev**2
    mean = (1.0 - share) * inner + share * outer
    return 3.0 * ((1.0 - share) * inner**2 + share * outer**2) / mean**2 - 3.0


def bounds_of(count: int, excess: float) -> tuple[float, float]:
    """Return the bounds of s^2 / sigma^2 of `count` pairs that are left once in a million channels."""
    from scipy.special import chdtri

    if excess > 0.0:
        wide = NORMAL_BOUND * math.sqrt((2.0 + 0.5 * excess) / count)
        return max(0.0, 1.0 - wide), 1.0 + wide
    half = 0.5 * FALSE_ALARMS
    return float(chdtri(count, 1.0 - half)) / count, float(chdtri(count, half)) / count


def normalised(reading: Reading, name: str, labels: Sequence[str]) -> Mapping[str, FloatArray]:
    """Return residuals over the deviations that readings state, by what axes are called; none without a covariance."""
    stated, true = reading.arrays.get(f"{name}_covariance"), truth_of(reading, name)
    if stated is None or true is None or stated.ndim != 3:
        return {}
    rows = np.asarray(reading.emitted & reading.valid)
    out = {}
    for axis, label in enumerate(labels):
        size = np.sqrt(np.where(stated[rows, axis, axis] > 0.0, stated[rows, axis, axis], math.nan))
        out[label] = (reading.arrays[name][rows, axis] - true[rows, axis]) / size
    return out
