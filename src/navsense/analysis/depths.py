"""What a depth sensor takes the water around it for, read back from its pressure p and the depth d that it makes of it.

    Unesco            g(latitude) = N(p) / d - 1.092e-6 p, N the polynomial of UNESCO 44, p in dbar; X = sin^2 latitude
                      is the positive root of 2.36e-5 X^2 + 5.2788e-3 X + 1 = g / 9.780318
    Saunders          5.25e-3 X = 1 - 5.92e-3 - 2.21e-6 p - d / p
    ConstantDensity   rho = p / (d g)

There is no chance in it: what a figure may be off by is the rounding of doubles, as the solution stretches it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from navsense.analysis.estimates import DIGITS, Estimate, Moved, MovedTerm
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.pose import Pose
from navsense.sensors.base import Sensor
from navsense.sensors.depth import Depth

DIVE = 2000.0
"""m below the world's origin, where the sensor is read."""


def deep() -> Motion:
    """Return a place deep in the water."""
    return Stationary(Pose((0.0, 0.0, -DIVE)))


def _assuming(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with what it assumes alone, its pressure absolute and its air's as it says."""
    if not isinstance(spec, Depth) or spec.assumed is None:
        return ()
    return (replace(spec.without_errors(), assumed=spec.assumed),)


def _latitude(x: float, slope: float) -> tuple[float, float]:
    """Return the latitude (rad) of X, and what rounding makes of it: a number near 1 grows with X by `slope`."""
    latitude = math.asin(math.sqrt(x))
    return latitude, 4.0 * DIGITS / (slope * abs(math.sin(2.0 * latitude)))


def assumption(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the latitude or the density of the water that is assumed."""
    sheet = moved.sheet
    if not isinstance(sheet, Depth):
        return
    zero = 0.0 if sheet.gauge else sheet.surface_pressure
    p = (float(moved.arrays["pressure"][0]) - zero) / 1e4
    d = float(moved.arrays["depth"][0])
    if isinstance(sheet.assumed, ConstantDensity):
        declared, found = sheet.assumed.density, 1e4 * p / (d * sheet.assumed.gravity)
        yield "depth", Estimate("assumed density", declared, found, 4.0 * DIGITS * declared, unit="kg/m^3")
    elif isinstance(sheet.assumed, Unesco):
        gravity = p * (9.72659 - p * (2.2512e-5 - p * (2.279e-10 - p * 1.82e-15))) / d - 1.092e-6 * p
        rest = gravity / 9.780318 - 1.0
        x = 2.0 * rest / (5.2788e-3 + math.sqrt(5.2788e-3**2 + 4.0 * 2.36e-5 * rest))
        found, error = _latitude(x, 5.2788e-3)
        yield "depth", Estimate("assumed latitude", abs(sheet.assumed.latitude), found, error, unit="rad")
    elif isinstance(sheet.assumed, Saunders):
        found, error = _latitude((1.0 - 5.92e-3 - 2.21e-6 * p - d / p) / 5.25e-3, 5.25e-3)
        yield "depth", Estimate("assumed latitude", abs(sheet.assumed.latitude), found, error, unit="rad")


TERMS: tuple[MovedTerm, ...] = (MovedTerm("assumption", assumption, 1, _assuming, deep),)
"""How what a depth sensor assumes is measured."""
