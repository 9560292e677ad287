"""Names of the axes and beams of an array."""

from __future__ import annotations

from navsense.sensors.adcp import Adcp
from navsense.world import MountedSensor

EARTH, SHIP, INSTRUMENT = ("east", "north", "up"), ("forward", "left", "up"), ("x", "y", "z")
"""Local level axes of the earth, of a levelled vehicle, and axes of an instrument or of a world."""

ADCP_AXES = {"earth": EARTH, "ship": SHIP}
"""Axes by the `coordinates` of an ADCP."""

ADCP_VECTORS = frozenset(("velocity", "relative_velocity", "bottom_velocity"))
"""Arrays of an ADCP in its `coordinates`."""

PER_BEAM = frozenset(("bottom_range", "bottom_percent_good"))
"""Arrays with one value per beam and no "beam" in their names."""

BOTTOM_OUTCOMES = ("some beams", "rejected", "too few beams", "all beams")
"""Outcomes of the bottom pings of an ADCP, in order."""


def list_axis_labels(
    sensor_type: str, array: str, count: int, sensor: MountedSensor | None, *, per_beam: bool = False
) -> list[str]:
    """Return the names of the `count` values in a row of an array; `per_beam` is true for one value per beam."""
    if count == 1:
        return [""]
    if array == "bottom_solutions" and count == len(BOTTOM_OUTCOMES):
        return list(BOTTOM_OUTCOMES)
    if per_beam or "beam" in array or array in PER_BEAM:
        return [f"beam {beam + 1}" for beam in range(count)]
    if count != len(INSTRUMENT):
        return [str(number + 1) for number in range(count)]
    if sensor_type == "navsat" and array == "velocity":
        return list(EARTH)
    if sensor is not None and isinstance(sensor.spec, Adcp) and array in ADCP_VECTORS:
        return list(ADCP_AXES.get(sensor.spec.coordinates.value, INSTRUMENT))
    return list(INSTRUMENT)
