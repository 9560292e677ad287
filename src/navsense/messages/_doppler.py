"""Columns of a Doppler velocity log's messages: what a series has, as formats say what is not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.kernels import kernel
from navsense.messages.base import AGE, NANOSECONDS_PER_SECOND, SeriesKind, get_clock_name, get_frame_id, require_spec
from navsense.messages.cdr import write_stamps
from navsense.pose import Pose, ensure_unit, multiply, rotate
from navsense.sensors.doppler import MIN_BEAMS
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray
from navsense.world import MountedSensor

UNKNOWN = -1.0
"""What stands for a variance that is not known, and in `uuv` for an altitude or a range."""

NONE, BOTTOM, WATER = 0, 1, 2
"""Values of `velocity_mode`; the latter two are `TargetType` in Gazebo too."""


@dataclass(frozen=True)
class DvlMessageInfo:
    """What the messages of one sensor have in common: its sheet and names, beams (k,) in the frame of the velocity."""

    sensor: MountedSensor
    series_kind: SeriesKind

    @cached_property
    def spec(self) -> Dvl:
        """The data sheet. Raises `RecordingError` where it is another sensor's."""
        return require_spec(self.sensor, Dvl)

    @property
    def strings(self) -> dict[str, str]:
        """Return the frame of the header."""
        return {"header.frame_id": get_frame_id(self.sensor)}

    @cached_property
    def poses(self) -> tuple[Pose, ...]:
        """Transducers, x along the beam."""
        turn = self.spec.reference
        return tuple(
            Pose(rotate(turn, beam.position), ensure_unit(multiply(turn, beam.rotation)))
            for beam in self.spec.beams.beams
        )

    @cached_property
    def axes(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams."""
        turn = self.spec.reference
        return np.array([rotate(turn, (x, y, z)) for x, y, z in self.spec.beams.axes.tolist()])

    @cached_property
    def beam_ids(self) -> tuple[int, ...]:
        """Numbers of the beams; those without one are counted."""
        given, count = self.spec.message_options.beam_ids, len(self.poses)
        return (*given, *range(len(given), count))[:count]

    @cached_property
    def beam_frames(self) -> tuple[str, ...]:
        """Frames that the beams are called by; empty for those without a name."""
        given, count = self.spec.message_options.beam_frames, len(self.poses)
        return (*given, *[""] * (count - len(given)))[:count]

    @property
    def range_variance(self) -> float:
        """Return what is stated of the variance of a range (m^2)."""
        return self.spec.range.white_stddev(self.sensor.rate) ** 2 if self.series_kind == "reading" else 0.0

    def make_series(self, arrays: Mapping[str, AnyArray], count: int) -> DvlSeries:
        """Return the columns of one series of `count` rows."""
        return DvlSeries(self, arrays, count)

    def write_stamps(self, rows: AnyArray, stamp: IntArray, *paths: str) -> None:
        """Write stamps (n,) ns at the paths."""
        for path in paths:
            write_stamps(rows, stamp, get_clock_name(self.sensor), path)


@dataclass(frozen=True, eq=False)
class DvlSeries:
    """The columns of n rows of k beams as messages have them; NaN where a series has no such array."""

    info: DvlMessageInfo
    arrays: Mapping[str, AnyArray]
    count: int

    def has(self, *names: str) -> bool:
        """Tell whether the series has any of the arrays."""
        return any(name in self.arrays for name in names)

    def get_column(self, name: str, *axes: int) -> FloatArray:
        """Return one array (n, *axes)."""
        shape = (self.count, *axes)
        found = self.arrays.get(name)
        return np.full(shape, math.nan) if found is None else np.asarray(found, dtype=np.float64).reshape(shape)

    def get_beam_column(self, name: str) -> FloatArray:
        """Return one array (n, k) with a number for each beam."""
        return self.get_column(name, len(self.info.poses))

    def get_integers(self, name: str) -> IntArray:
        """Return one array (n,) of whole numbers, 0 where it is not known."""
        out = np.empty(self.count, dtype=np.int64)
        _write_integers(self.get_column(name), out)
        return out

    @cached_property
    def mode(self) -> IntArray:
        """What the velocity is against (n,); where nothing is said of it, the bottom if that is met."""
        if "velocity_mode" in self.arrays:
            return self.get_integers("velocity_mode")
        met = count_known(self.get_beam_column("beam_velocity")) >= MIN_BEAMS
        bottom = met & (self.info.spec.bottom_mode is not TrackMode.NEVER)
        return np.where(np.isnan(self.get_column("velocity", 3)[:, 0]), NONE, np.where(bottom, BOTTOM, WATER))

    @cached_property
    def is_water(self) -> BoolArray | None:
        """Where the velocity is through the water (n, 1); None where it never is."""
        found = self.mode == WATER
        return found[:, None] if found.any() else None

    def select_track(self, bottom: str, water: str) -> FloatArray:
        """Return one array (n, k) of the track that gave the velocity."""
        if self.is_water is None:
            return self.get_beam_column(bottom)
        return np.where(self.is_water, self.get_beam_column(water), self.get_beam_column(bottom))

    @cached_property
    def beam_velocity(self) -> FloatArray:
        """Velocities (n, k) m/s along the beams."""
        return self.select_track("beam_velocity", "water_beam_velocity")

    @cached_property
    def beam_variance(self) -> FloatArray:
        """Variances (n, k) m^2/s^2 of the velocities along the beams."""
        return self.report_variance(
            lambda: self.select_track("beam_deviation", "water_beam_deviation") ** 2, self.beam_velocity
        )

    @cached_property
    def beam_range(self) -> FloatArray:
        """Slant ranges (n, k) m."""
        return self.get_beam_column("beam_range")

    @cached_property
    def range_variance(self) -> FloatArray:
        """Variances (n, k) m^2 of the ranges."""
        return self.report_variance(lambda: self.info.range_variance, self.beam_range)

    @cached_property
    def good_beam_count(self) -> IntArray:
        """How many beams (n,) are good; where nothing is said of it, those that have a velocity."""
        if "num_good_beams" in self.arrays:
            return self.get_integers("num_good_beams")
        return count_known(self.beam_velocity)

    @property
    def beam_ends(self) -> FloatArray:
        """Return where the beams end (n, k, 3) m."""
        places = np.array([pose.position for pose in self.info.poses])
        return places + self.beam_range[:, :, None] * self.info.axes

    def covariance(self, name: str = "velocity") -> FloatArray:
        """Return a velocity's covariance (n, 9) m^2/s^2, row by row."""
        found = self.report_variance(lambda: self.get_column(f"{name}_covariance", 9), self.get_column(name, 3)[:, :1])
        return found if found.shape[1] == 9 else np.repeat(found, 9, axis=1)

    def report_variance(self, variance: Callable[[], FloatArray | float], value: FloatArray) -> FloatArray:
        """Return a variance as this series states it: 0 where it has none, and -1 where the value is not known.

        It is one number, or one of each value, or several (n, m) of one value (n, 1).
        """
        own = variance() if self.info.series_kind == "reading" else 0.0
        if isinstance(own, float):
            return np.where(np.isnan(value), UNKNOWN, own)
        out = np.empty(own.shape)
        _write_variances(own, value, out)
        return out

    @property
    def age(self) -> IntArray:
        """Return how long after its time of validity (n,) ns a ping was told."""
        return np.rint(nan_to_zero(self.get_column(AGE)) * NANOSECONDS_PER_SECOND).astype(np.int64)


@kernel
def _write_variances(variance: FloatArray, value: FloatArray, out: FloatArray) -> None:
    """Write variances (n, m), -1 where one or its value is not known."""
    step = 1 if value.shape[1] > 1 else 0
    for i in range(variance.shape[0]):
        for j in range(variance.shape[1]):
            is_known = not (math.isnan(variance[i, j]) or math.isnan(value[i, j * step]))
            out[i, j] = variance[i, j] if is_known else UNKNOWN


@kernel
def _write_integers(values: FloatArray, out: IntArray) -> None:
    """Write whole numbers (n,), 0 for what is not known."""
    for i in range(values.shape[0]):
        out[i] = 0 if math.isnan(values[i]) else int(values[i])


def count_known(values: FloatArray) -> IntArray:
    """Return how many beams (n,) have a value (n, k)."""
    out = np.empty(values.shape[0], dtype=np.int64)
    _write_counts(values, out)
    return out


@kernel
def _write_counts(values: FloatArray, out: IntArray) -> None:
    """Write how many numbers (n,) of each row (n, k) are finite."""
    for i in range(values.shape[0]):
        found = 0
        for j in range(values.shape[1]):
            if math.isfinite(values[i, j]):
                found += 1
        out[i] = found


def nan_to_zero(value: FloatArray) -> FloatArray:
    """Return the value, 0 where it is not known."""
    return np.where(np.isnan(value), 0.0, value)


def nan_to_unknown(value: FloatArray) -> FloatArray:
    """Return the value, -1 where it is not known."""
    return np.where(np.isnan(value), UNKNOWN, value)
