"""What a range sensor takes the speed of sound for, read back from a level ray through water of a known one, c.

    c0 = c reading / ideal

There is no chance in it: what it may be off by is the rounding of doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from navsense.analysis.estimates import DIGITS, Estimate, Moved, MovedTerm
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.pose import Pose
from navsense.sensors.base import Sensor
from navsense.sensors.range import Fan, Range

BELOW = 50.0
"""m below the world's origin, where the sensor is read: less than what surrounds it is away."""


def under_water() -> Motion:
    """Return a place in the water, from which x is level."""
    return Stationary(Pose((0.0, 0.0, -BELOW)))


def _assuming(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with what it assumes alone, and a level ray."""
    if not isinstance(spec, Range) or spec.sound is None or spec.sound.speed is None:
        return ()
    return (replace(spec.without_errors(), sound=spec.sound, beam=Fan()),)


def assumption(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the speed of sound that is assumed."""
    sheet, water = moved.sheet, moved.environment.water
    if not isinstance(sheet, Range) or sheet.sound is None or sheet.sound.speed is None or water is None:
        return
    declared, true = sheet.sound.speed, float(water.sound_speed_at(np.array([BELOW]))[0])
    found = true * float(moved.arrays["range"][0]) / float(moved.ideal["range"][0])
    yield "range", Estimate("sound speed", declared, found, 4.0 * DIGITS * declared, unit="m/s")


TERMS: tuple[MovedTerm, ...] = (MovedTerm("sound", assumption, 1, _assuming, under_water),)
"""How what a range sensor assumes is measured."""
