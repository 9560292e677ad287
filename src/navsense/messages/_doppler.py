"""Columns of a Doppler velocity log's messages: what a series has, as formats say what is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.messages.base import AGE, SECOND, Part, clock_of, frame_of, sheet_of
from navsense.messages.cdr import set_stamp
from navsense.pose import Pose, multiply, rotate
from navsense.sensors.doppler import LEAST_BEAMS
from navsense.sensors.dvl import Dvl, Mode
from navsense.typing import AnyArray, FloatArray, IntArray
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
            Pose(rotate(turn, beam.position), multiply(turn, beam.rotation)) for beam in self.sheet.beams.beams
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
        return or_zero(self.column(name)).astype(np.int64)

    @cached_property
    def mode(self) -> IntArray:
        """What the velocity is against (n,); where nothing is said of it, the bottom if that is met."""
        if "velocity_mode" in self.arrays:
            return self.whole("velocity_mode")
        met = np.isfinite(self.beams("beam_velocity")).sum(axis=1) >= LEAST_BEAMS
        bottom = met & (self.instrument.sheet.bottom_mode is not Mode.NEVER)
        return np.where(np.isnan(self.column("velocity", 3)[:, 0]), NONE, np.where(bottom, BOTTOM, WATER))

    def tracked(self, bottom: str, water: str) -> FloatArray:
        """Return one array (n, k) of the track that gave the velocity."""
        through = self.mode == WATER
        if not through.any():
            return self.beams(bottom)
        return np.where(through[:, None], self.beams(water), self.beams(bottom))

    @cached_property
    def beam_velocity(self) -> FloatArray:
        """Velocities (n, k) m/s along the beams."""
        return self.tracked("beam_velocity", "water_beam_velocity")

    @cached_property
    def beam_variance(self) -> FloatArray:
        """Variances (n, k) m^2/s^2 of the velocities along the beams."""
        return self.stated(self.tracked("beam_deviation", "water_beam_deviation") ** 2, self.beam_velocity)

    @cached_property
    def beam_range(self) -> FloatArray:
        """Slant ranges (n, k) m."""
        return self.beams("beam_range")

    @cached_property
    def range_variance(self) -> FloatArray:
        """Variances (n, k) m^2 of the ranges."""
        return self.stated(np.full(self.beam_range.shape, self.instrument.range_variance), self.beam_range)

    @cached_property
    def good(self) -> IntArray:
        """How many beams (n,) are good; where nothing is said of it, those that have a velocity."""
        if "num_good_beams" in self.arrays:
            return self.whole("num_good_beams")
        count: IntArray = np.isfinite(self.beam_velocity).sum(axis=1)
        return count

    @property
    def points(self) -> FloatArray:
        """Return where the beams end (n, k, 3) m."""
        places = np.array([pose.position for pose in self.instrument.poses])
        return places + self.beam_range[:, :, None] * self.instrument.axes

    def covariance(self, name: str = "velocity") -> FloatArray:
        """Return a velocity's covariance (n, 9) m^2/s^2, row by row."""
        return self.stated(self.column(f"{name}_covariance", 9), self.column(name, 3)[:, :1])

    def stated(self, variance: FloatArray, value: FloatArray) -> FloatArray:
        """Return a variance as this series states it: 0 where it has none, and -1 where the value is not known."""
        own = variance if self.instrument.part == "reading" else np.zeros(variance.shape)
        return np.where(np.isnan(value) | np.isnan(own), UNKNOWN, own)

    @property
    def age(self) -> IntArray:
        """Return how long after its time of validity (n,) ns a ping was told."""
        return np.rint(or_zero(self.column(AGE)) * SECOND).astype(np.int64)


def or_zero(value: FloatArray) -> FloatArray:
    """Return the value, 0 where it is not known."""
    return np.where(np.isnan(value), 0.0, value)


def known(value: FloatArray) -> FloatArray:
    """Return the value, -1 where it is not known."""
    return np.where(np.isnan(value), UNKNOWN, value)
