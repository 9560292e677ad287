"""Directions to try, spread evenly."""

from __future__ import annotations

import math

import numpy as np

from navsense.typing import Vectors


def half_sphere(count: int) -> Vectors:
    """Return `count` unit vectors (n, 3) spread evenly over a half sphere: a spiral of the golden angle."""
    number = np.arange(count)
    z = 1.0 - (number + 0.5) / count
    angle = number * (math.pi * (3.0 - math.sqrt(5.0)))
    flat = np.sqrt(1.0 - z * z)
    return np.column_stack([flat * np.cos(angle), flat * np.sin(angle), z])
