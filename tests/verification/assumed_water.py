"""What depth and range sensors assume of the water, computed from their readings.

A depth sensor reads a pressure p and computes a depth d:

    Unesco            g(latitude) = N(p) / d - 1.092e-6 p, N the polynomial of UNESCO 44, p in dbar; X = sin^2 latitude
                      is the positive root of 2.36e-5 X^2 + 5.2788e-3 X + 1 = g / 9.780318
    Saunders          5.25e-3 X = 1 - 5.92e-3 - 2.21e-6 p - d / p
    ConstantDensity   rho = p / (d g)

A range sensor measures along a level ray through water with the sound speed c:

    sound speed       c0 = c reading / ideal

Nothing here is random: the error is the rounding of doubles, amplified by the solution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from navsense.core.pose import Pose
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.sensors.base import Sensor
from navsense.sensors.depth import Depth
from navsense.sensors.range import Fan, Range
from tests.verification.estimates import ROUNDING, Estimate, MotionTerm, MotionTrial

DEPTH_SENSOR_DEPTH = 2000.0
"""Depth (m) of the depth sensor below the world origin."""

RANGE_SENSOR_DEPTH = 50.0
"""Depth (m) of the range sensor: less than the distance to the shell around it."""


def make_underwater_motion(depth: float = RANGE_SENSOR_DEPTH) -> Motion:
    """Return a stationary pose in the water with x level."""
    return Stationary(Pose((0.0, 0.0, -depth)))


def _make_depth_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with only its assumption: absolute pressure, and its own pressure at the surface."""
    if not isinstance(spec, Depth) or spec.assumed is None:
        return ()
    return (replace(spec.without_errors(), assumed=spec.assumed),)


def _make_range_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with only its assumption and a level ray."""
    if not isinstance(spec, Range) or spec.sound is None or spec.sound.speed is None:
        return ()
    return (replace(spec.without_errors(), sound=spec.sound, beam=Fan()),)


def _compute_latitude(x: float, slope: float) -> tuple[float, float]:
    """Return the latitude (rad) of X and its rounding error. `slope` is the derivative of the number near 1 by X."""
    latitude = math.asin(math.sqrt(x))
    return latitude, 4.0 * ROUNDING / (slope * abs(math.sin(2.0 * latitude)))


def estimate_depth_assumption(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the latitude or the density of the water that a depth sensor assumes."""
    spec = trial.spec
    if not isinstance(spec, Depth):
        return
    zero = 0.0 if spec.gauge else spec.surface_pressure
    p = (float(trial.arrays["pressure"][0]) - zero) / 1e4
    d = float(trial.arrays["depth"][0])
    if isinstance(spec.assumed, ConstantDensity):
        declared, density = spec.assumed.density, 1e4 * p / (d * spec.assumed.gravity)
        yield "depth", Estimate("assumed density", declared, density, 4.0 * ROUNDING * declared, unit="kg/m^3")
    elif isinstance(spec.assumed, Unesco):
        gravity = p * (9.72659 - p * (2.2512e-5 - p * (2.279e-10 - p * 1.82e-15))) / d - 1.092e-6 * p
        rest = gravity / 9.780318 - 1.0
        x = 2.0 * rest / (5.2788e-3 + math.sqrt(5.2788e-3**2 + 4.0 * 2.36e-5 * rest))
        latitude, error = _compute_latitude(x, 5.2788e-3)
        yield "depth", Estimate("assumed latitude", abs(spec.assumed.latitude), latitude, error, unit="rad")
    elif isinstance(spec.assumed, Saunders):
        latitude, error = _compute_latitude((1.0 - 5.92e-3 - 2.21e-6 * p - d / p) / 5.25e-3, 5.25e-3)
        yield "depth", Estimate("assumed latitude", abs(spec.assumed.latitude), latitude, error, unit="rad")


def estimate_sound_speed(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the speed of sound that a range sensor assumes."""
    spec, water = trial.spec, trial.environment.water
    if not isinstance(spec, Range) or spec.sound is None or spec.sound.speed is None or water is None:
        return
    declared, true = spec.sound.speed, float(water.sound_speed_at(np.array([RANGE_SENSOR_DEPTH]))[0])
    speed = true * float(trial.arrays["range"][0]) / float(trial.ideal["range"][0])
    yield "range", Estimate("sound speed", declared, speed, 4.0 * ROUNDING * declared, unit="m/s")


TERMS: tuple[MotionTerm, ...] = (
    MotionTerm(
        "assumption",
        estimate_depth_assumption,
        1,
        _make_depth_specs,
        lambda: make_underwater_motion(DEPTH_SENSOR_DEPTH),
    ),
    MotionTerm("sound", estimate_sound_speed, 1, _make_range_specs, make_underwater_motion),
)
"""The estimators of the water properties that depth and range sensors assume."""
