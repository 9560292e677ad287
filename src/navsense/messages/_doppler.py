"""Columns of a Doppler velocity log's messages: what a series has, as formats say what is not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.compiled import kernel
from navsense.messages.base import AGE, SECOND, Part, clock_of, frame_of, sheet_of
from navsense.messages.cdr import set_stamp
from navsense.pose import Pose, multiply, rotate, unit
from navsense.sensors.doppler import LEAST_BEAMS
from navsense.sensors.dvl import Dvl, Mode
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray
from navsense.world import MountedSensor

UNKNOWN = -1.0
"""What stands for a variance that is not known, and in `uuv` for an altitude or a range."""

NONE, BOTTOM, WATER = 0, 1, 2
"""Values of `velocity_mode`; the latter two are `TargetType` in Gazebo too."""


@dataclass(frozen=True)
class Instrument:
    """What the messages of one sensor have in common: its sheet and names, beams (k,) in the frame of the velocity."""

    sensor: MountedSensor
    part: Part

    @cached_property
    def sheet(self) -> Dvl:
        """The data sheet. Raises `SinkError` where it is another sensor's."""
        return sheet_of(self.sensor, Dvl)

    @property
    def texts(self) -> dict[str, str]:
        """Return the frame of the header."""
        return {"header.frame_id": frame_of(self.sensor)}

    @cached_property
    def poses(self) -> tuple[Pose, ...]:
        """Transducers, x along the beam."""
        turn = self.sheet.reference
        return tuple(
            Pose(rotate(turn, beam.position), unit(multiply(turn, beam.rotation))) for beam in self.sheet.beams.beams
        )

    @cached_property
    def axes(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams."""
        turn = self.sheet.reference
        return np.array([rotate(turn, (x, y, z)) for x, y, z in self.sheet.beams.axes.tolist()])

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the beams; those without one are counted."""
        given, count = self.sheet.names.beam_ids, len(self.poses)
        return (*given, *range(len(given), count))[:count]

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Frames that the beams are called by; empty for those without a name."""
        given, count = self.sheet.names.beam_frames, len(self.poses)
        return (*given, *[""] * (count - len(given)))[:count]

    @property
    def range_variance(self) -> float:
        """Return what is stated of the variance of a range (m^2)."""
        return self.sheet.range.deviation(self.sensor.rate) ** 2 if self.part == "reading" else 0.0

    def series(self, arrays: Mapping[str, AnyArray], count: int) -> Series:
        """Return the columns of one series of `count` rows."""
        return Series(self, arrays, count)

    def stamp(self, rows: AnyArray, stamp: IntArray, *paths: str) -> None:
        """Write stamps (n,) ns at the paths."""
        for path in paths:
            set_stamp(rows, stamp, clock_of(self.sensor), path)


@dataclass(frozen=True, eq=False)
class Series:
    """The columns of n rows of k beams as messages have them; NaN where a series has no such array."""

    instrument: Instrument
    arrays: Mapping[str, AnyArray]
    count: int

    def has(self, *names: str) -> bool:
        """Tell whether the series has any of the arrays."""
        return any(name in self.arrays for name in names)

    def column(self, name: str, *axes: int) -> FloatArray:
        """Return one array (n, *axes)."""
        shape = (self.count, *axes)
        found = self.arrays.get(name)
        return np.full(shape, math.nan) if found is None else np.asarray(found, dtype=np.float64).reshape(shape)

    def beams(self, name: str) -> FloatArray:
        """Return one array (n, k) with a number for each beam."""
        return self.column(name, len(self.instrument.poses))

    def whole(self, name: str) -> IntArray:
        """Return one array (n,) of whole numbers, 0 where it is not known."""
        out = np.empty(self.count, dtype=np.int64)
        _round(self.column(name), out)
        return out

    @cached_property
    def mode(self) -> IntArray:
        """What the velocity is against (n,); where nothing is said of it, the bottom if that is met."""
        if "velocity_mode" in self.arrays:
            return self.whole("velocity_mode")
        met = heard(self.beams("beam_velocity")) >= LEAST_BEAMS
        bottom = met & (self.instrument.sheet.bottom_mode is not Mode.NEVER)
        return np.where(np.isnan(self.column("velocity", 3)[:, 0]), NONE, np.where(bottom, BOTTOM, WATER))

    @cached_property
    def through(self) -> BoolArray | None:
        """Where the velocity is through the water (n, 1); None where it never is."""
        found = self.mode == WATER
        return found[:, None] if found.any() else None

    def tracked(self, bottom: str, water: str) -> FloatArray:
        """Return one array (n, k) of the track that gave the velocity."""
        if self.through is None:
            return self.beams(bottom)
        return np.where(self.through, self.beams(water), self.beams(bottom))

    @cached_property
    def beam_velocity(self) -> FloatArray:
        """Velocities (n, k) m/s along the beams."""
        return self.tracked("beam_velocity", "water_beam_velocity")

    @cached_property
    def beam_variance(self) -> FloatArray:
        """Variances (n, k) m^2/s^2 of the velocities along the beams."""
        return self.stated(lambda: self.tracked("beam_deviation", "water_beam_deviation") ** 2, self.beam_velocity)

    @cached_property
    def beam_range(self) -> FloatArray:
        """Slant ranges (n, k) m."""
        return self.beams("beam_range")

    @cached_property
    def range_variance(self) -> FloatArray:
        """Variances (n, k) m^2 of the ranges."""
        return self.stated(lambda: self.instrument.range_variance, self.beam_range)

    @cached_property
    def good(self) -> IntArray:
        """How many beams (n,) are good; where nothing is said of it, those that have a velocity."""
        if "num_good_beams" in self.arrays:
            return self.whole("num_good_beams")
        return heard(self.beam_velocity)

    @property
    def points(self) -> FloatArray:
        """Return where the beams end (n, k, 3) m."""
        places = np.array([pose.position for pose in self.instrument.poses])
        return places + self.beam_range[:, :, None] * self.instrument.axes

    def covariance(self, name: str = "velocity") -> FloatArray:
        """Return a velocity's covariance (n, 9) m^2/s^2, row by row."""
        found = self.stated(lambda: self.column(f"{name}_covariance", 9), self.column(name, 3)[:, :1])
        return found if found.shape[1] == 9 else np.repeat(found, 9, axis=1)

    def stated(self, variance: Callable[[], FloatArray | float], value: FloatArray) -> FloatArray:
        """Return a variance as this series states it: 0 where it has none, and -1 where the value is not known.

        It is one number, or one of each value, or several (n, m) of one value (n, 1).
        """
        own = variance() if self.instrument.part == "reading" else 0.0
        if isinstance(own, float):
            return np.where(np.isnan(value), UNKNOWN, own)
        out = np.empty(own.shape)
        _state(own, value, out)
        return out

    @property
    def age(self) -> IntArray:
        """Return how long after its time of validity (n,) ns a ping was told."""
        return np.rint(or_zero(self.column(AGE)) * SECOND).astype(np.int64)


@kernel
def _state(variance: FloatArray, value: FloatArray, out: FloatArray) -> None:
    """Write variances (n, m), -1 where one or its value is not known."""
    step = 1 if value.shape[1] > 1 else 0
    for i in range(variance.shape[0]):
        for j in range(variance.shape[1]):
            is_known = not (math.isnan(variance[i, j]) or math.isnan(value[i, j * step]))
            out[i, j] = variance[i, j] if is_known else UNKNOWN


@kernel
def _round(values: FloatArray, out: IntArray) -> None:
    """Write whole numbers (n,), 0 for what is not known."""
    for i in range(values.shape[0]):
        out[i] = 0 if math.isnan(values[i]) else int(values[i])


def heard(values: FloatArray) -> IntArray:
    """Return how many beams (n,) have a value (n, k)."""
    out = np.empty(values.shape[0], dtype=np.int64)
    _count(values, out)
    return out


@kernel
def _count(values: FloatArray, out: IntArray) -> None:
    """Write how many numbers (n,) of each row (n, k) are finite."""
    for i in range(values.shape[0]):
        found = 0
        for j in range(values.shape[1]):
            if math.isfinite(values[i, j]):
                found += 1
        out[i] = found


def or_zero(value: FloatArray) -> FloatArray:
    """Return the value, 0 where it is not known."""
    return np.where(np.isnan(value), 0.0, value)


def known(value: FloatArray) -> FloatArray:
    """Return the value, -1 where it is not known."""
    return np.where(np.isnan(value), UNKNOWN, value)
