"""Where a link was lately, between the instants of its truth.

    q(t) = q_k exp(w dt + a dt^2 / 2),   p(t) = p_k + v dt + acceleration dt^2 / 2,   dt = t - t_k >= 0

from the last row k at or before t, w and a in the link's own frame: off by the jerk's dt^3 / 6. What comes after a row
is never asked for, so that a record cut anywhere gives the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from navsense.errors import RecordingError
from navsense.rotation import multiply_arrays
from navsense.series import Truth
from navsense.typing import FloatArray, Quaternions, Times, Vectors

TRUTH_ARRAYS = ("position", "orientation", "velocity", "angular_velocity", "acceleration", "angular_acceleration")


@dataclass(eq=False)
class LinkHistory:
    """The truth of one link over the last `keep` seconds."""

    duration: float
    time: Times = field(default_factory=lambda: np.empty(0), init=False)
    arrays: dict[str, FloatArray] = field(default_factory=dict, init=False)

    def add(self, truth: Truth, start: float) -> None:
        """Take the rows that follow those known; forget what nobody asks for who asks from `start` (s) on."""
        if not truth.time.size:
            return
        first = int(np.searchsorted(self.time, start - self.duration, side="right")) - 1
        old = slice(max(first, 0), None)
        for name in TRUTH_ARRAYS:
            new = getattr(truth, name)
            self.arrays[name] = np.concatenate((self.arrays[name][old], new)) if name in self.arrays else new
        self.time = np.concatenate((self.time[old], truth.time))

    def at(self, instant: Times) -> tuple[Vectors, Quaternions]:
        """Return places (n, 3) m and attitudes (n, 4), link to world, at instants (n,) s. Raises `RecordingError`."""
        row = np.searchsorted(self.time, instant, side="right") - 1
        if instant.size and (not self.time.size or int(row.min()) < 0):
            raise RecordingError("truth of a link (s)", float(instant.min()), allowed="must begin before the reading")
        dt = (instant - self.time[row])[:, None]
        place = self.arrays["position"][row] + self.arrays["velocity"][row] * dt
        place += 0.5 * self.arrays["acceleration"][row] * dt * dt
        vector = self.arrays["angular_velocity"][row] * dt + 0.5 * self.arrays["angular_acceleration"][row] * dt * dt
        return place, apply_rotation_vectors(self.arrays["orientation"][row], vector)


def apply_rotation_vectors(quaternions: Quaternions, vectors: Vectors) -> Quaternions:
    """Return attitudes (n, 4) turned on by rotation vectors (n, 3) rad of their own frame."""
    angle = np.sqrt((vectors * vectors).sum(axis=1))
    share = np.where(angle < 1e-8, 0.5, np.sin(0.5 * angle) / np.maximum(angle, 1e-8))
    parts = (np.cos(0.5 * angle), *(share[:, None] * vectors).T)
    return multiply_arrays(quaternions, np.stack(parts, axis=-1))


def heading_quaternion(heading: float) -> FloatArray:
    """Return the rotation (4,) from the world's axes to east, north, up where x is `heading` (rad) from east."""
    return np.array((math.cos(0.5 * heading), 0.0, 0.0, math.sin(0.5 * heading)))
