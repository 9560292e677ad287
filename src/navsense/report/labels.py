"""Names of the axes and beams of an array, and the ideal reading that a reading is compared with.

A DVL that has lost the bottom reports its velocity through the water (`velocity_mode` 2) in the same array as its
velocity over the bottom. The ideal DVL may still have the bottom. Its velocity then differs by the current, so the
reading is compared with the ideal velocity through the water.
"""

from __future__ import annotations

import numpy as np

from navsense.core.series import Reading
from navsense.core.typing import AnyArray, BoolArray
from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

EARTH, SHIP, INSTRUMENT = ("east", "north", "up"), ("forward", "left", "up"), ("x", "y", "z")
"""Axes of the world, of a levelled vehicle, and of an instrument."""

ADCP_AXES = {"earth": EARTH, "ship": SHIP}
"""Axes by the `coordinates` of an ADCP."""

ADCP_VECTORS = frozenset(("velocity", "relative_velocity", "bottom_velocity"))
"""Arrays of an ADCP in its `coordinates`."""

PER_BEAM = frozenset(("bottom_range", "bottom_percent_good"))
"""Arrays with one value per beam and no "beam" in their names."""

BOTTOM_OUTCOMES = ("some beams", "rejected", "too few beams", "all beams")
"""Outcomes of the bottom pings of an ADCP, in order."""

WATER_MODE = 2.0
"""`velocity_mode` of a velocity through the water."""


def axis_labels(sensor_type: str, array: str, count: int, sensor: MountedSensor | None) -> list[str]:
    """Return the names of the `count` values in a row of an array."""
    if count == 1:
        return [""]
    if array == "bottom_solutions" and count == len(BOTTOM_OUTCOMES):
        return list(BOTTOM_OUTCOMES)
    if "beam" in array or array in PER_BEAM:
        return [f"beam {beam + 1}" for beam in range(count)]
    if count != len(INSTRUMENT):
        return [str(number + 1) for number in range(count)]
    if sensor_type == "navsat" and array == "velocity":
        return list(EARTH)
    if sensor is not None and isinstance(sensor.spec, Adcp) and array in ADCP_VECTORS:
        return list(ADCP_AXES.get(sensor.spec.coordinates.value, INSTRUMENT))
    return list(INSTRUMENT)


def is_through_water(reading: Reading) -> BoolArray:
    """Return the rows (n,) in which a DVL reports its velocity through the water."""
    mode = reading.arrays.get("velocity_mode")
    if reading.type != "dvl" or mode is None:
        return np.zeros(reading.time.size, dtype=np.bool_)
    return np.asarray(np.asarray(mode) == WATER_MODE)


def ideal_array(reading: Reading, array: str) -> AnyArray | None:
    """Return the ideal values that an array is compared with, or None if they are not recorded.

    Rows through the water are NaN if the ideal velocity through the water is not recorded.
    """
    ideal = reading.ideal.get(array)
    if ideal is None or array != "velocity" or not (rows := is_through_water(reading)).any():
        return ideal
    water = reading.ideal.get("water_velocity")
    return np.asarray(np.where(rows[:, None], np.nan if water is None else water, ideal))
