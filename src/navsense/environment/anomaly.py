"""An anomaly of the magnetic field: for a while it is another by a constant vector, everywhere (T, world frame).

    B(x, t) += b   for start <= t < end

A wreck passed, a motor that runs in the neighbourhood, a storm: what upsets a compass though the compass is well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from navsense.errors import FieldError
from navsense.pose import rotate
from navsense.typing import Quaternion, Times, Vector, Vectors


@dataclass(frozen=True)
class Anomaly:
    """A field `field_w` (T) beside the world's from `start` to `end` (s, true time).

    Raises `FieldError` for a value that is not finite, and times that are none.
    """

    field_w: Vector
    start: float
    end: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what is no anomaly."""
        if not all(math.isfinite(part) for part in self.field_w):
            raise FieldError("field of an anomaly (T)", self.field_w, allowed="must be finite")
        if not (math.isfinite(self.start) and self.end > self.start):
            allowed = "must be from a finite time to a later one"
            raise FieldError("times of an anomaly (s)", (self.start, self.end), allowed=allowed)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the field (n, 3) T at `time` (n,) s."""
        out = np.zeros((position_w.shape[0], 3))
        out[(time >= self.start) & (time < self.end)] = self.field_w
        return out

    def rotate(self, rotation: Quaternion) -> Anomaly:
        """Return the anomaly with its field turned by `rotation`."""
        return replace(self, field_w=rotate(rotation, self.field_w))
