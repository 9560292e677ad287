"""What the axes of an array are called, and the truth that a reading is held against.

A Doppler log that has lost the bottom tells its velocity through the water (`velocity_mode` 2) in the same array. A
perfect instrument may still have the bottom: then its velocity is of something else, by the current.
"""

from __future__ import annotations

import numpy as np

from navsense.sensors.adcp import Adcp
from navsense.series import Reading
from navsense.typing import AnyArray, BoolArray
from navsense.world import MountedSensor

EARTH, SHIP, OWN = ("east", "north", "up"), ("forward", "left", "up"), ("x", "y", "z")
"""Axes of the world, of a vehicle made level, and of an instrument."""

CALLED = {"earth": EARTH, "ship": SHIP}
"""Axes by the `coordinates` of a current profiler's sheet."""

TURNED = frozenset(("velocity", "relative_velocity", "bottom_velocity"))
"""Arrays of a current profiler that are told in its `coordinates`."""

BY_BEAM = frozenset(("bottom_range", "bottom_percent_good"))
"""Arrays of a number for each beam whose names do not say so."""

OUTCOMES = ("some beams", "rejected", "too few beams", "all beams")
"""What becomes of a current profiler's pings for the bottom, in order."""

WATER = 2.0
"""`velocity_mode` of a velocity through the water."""


def axes_of(kind: str, name: str, sensor: MountedSensor | None) -> tuple[str, ...]:
    """Return what the three axes of an array of a kind of sensor are called."""
    if kind == "navsat" and name == "velocity":
        return EARTH
    if sensor is not None and isinstance(sensor.spec, Adcp) and name in TURNED:
        return CALLED.get(sensor.spec.coordinates.value, OWN)
    return OWN


def labels_of(kind: str, name: str, count: int, sensor: MountedSensor | None) -> list[str]:
    """Return what the `count` numbers in a row of an array of a kind of sensor are called."""
    if count == 1:
        return [""]
    if name == "bottom_solutions" and count == len(OUTCOMES):
        return list(OUTCOMES)
    if "beam" in name or name in BY_BEAM:
        return [f"beam {beam + 1}" for beam in range(count)]
    return list(axes_of(kind, name, sensor)) if count == len(OWN) else [str(number + 1) for number in range(count)]


def through_water(reading: Reading) -> BoolArray:
    """Return on which rows (n,) the velocity of a Doppler log is through the water."""
    mode = reading.arrays.get("velocity_mode")
    if reading.type != "dvl" or mode is None:
        return np.zeros(reading.time.size, dtype=np.bool_)
    return np.asarray(np.asarray(mode) == WATER)


def truth_of(reading: Reading, name: str) -> AnyArray | None:
    """Return what a perfect instrument would have said of what the reading is of; None where that is not recorded.

    Rows through the water whose true velocity is not recorded are NaN.
    """
    true = reading.ideal.get(name)
    if true is None or name != "velocity" or not (rows := through_water(reading)).any():
        return true
    water = reading.ideal.get("water_velocity")
    return np.asarray(np.where(rows[:, None], np.nan if water is None else water, true))
