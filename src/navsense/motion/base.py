"""What a motion is: a function of time that gives the truth of one frame.

Symbols: world frame w, moving frame b. `rotation_wb` takes coordinates of b to coordinates of w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from navsense.typing import FloatArray, Quaternions, Times, Vectors


@dataclass(frozen=True, init=False)
class MotionBlock:
    """Truth of one frame at n instants, one row an instant.

    position_w (n, 3) m; rotation_wb (n, 4) w x y z; velocity_w (n, 3) m/s; angular_velocity_b (n, 3) rad/s;
    acceleration_w (n, 3) m/s^2 (of the frame's origin, gravity not included); angular_acceleration_b (n, 3) rad/s^2.
    Truth is read-only: the arrays are so from here on.
    """

    position_w: Vectors
    rotation_wb: Quaternions
    velocity_w: Vectors
    angular_velocity_b: Vectors
    acceleration_w: Vectors
    angular_acceleration_b: Vectors

    def __init__(
        self,
        position_w: Vectors,
        rotation_wb: Quaternions,
        velocity_w: Vectors,
        angular_velocity_b: Vectors,
        acceleration_w: Vectors,
        angular_acceleration_b: Vectors,
    ) -> None:
        """Close the arrays to writing, and keep them: all at once, as a live step makes a block for each instant."""
        linear = (position_w, rotation_wb, velocity_w)
        for array in (*linear, angular_velocity_b, acceleration_w, angular_acceleration_b):
            array.setflags(False)  # type: ignore[call-arg]  # twice as quick as by its name
        own = self.__dict__
        own["position_w"], own["rotation_wb"], own["velocity_w"] = linear
        own["angular_velocity_b"], own["acceleration_w"] = angular_velocity_b, acceleration_w
        own["angular_acceleration_b"] = angular_acceleration_b

    @property
    def arrays(self) -> tuple[Vectors, Quaternions, Vectors, Vectors, Vectors, Vectors]:
        """Return the six arrays, in the order of the fields."""
        return (
            self.position_w,
            self.rotation_wb,
            self.velocity_w,
            self.angular_velocity_b,
            self.acceleration_w,
            self.angular_acceleration_b,
        )


def empty_arrays(count: int) -> tuple[FloatArray, ...]:
    """Return the six arrays of a block of `count` rows, to be filled."""
    vectors, quaternions = (count, 3), (count, 4)
    before = (np.empty(vectors), np.empty(quaternions), np.empty(vectors))
    return (*before, np.empty(vectors), np.empty(vectors), np.empty(vectors))


@runtime_checkable
class Motion(Protocol):
    """A source of truth for one frame."""

    @property
    def end(self) -> float:
        """Last instant (s) at which the motion is defined; `math.inf` where it never ends."""
        ...

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at the instants `time` (n,) s, in any order. A row depends on its own instant alone.

        Raises `MotionError` for an instant below 0 or past `end`.
        """
        ...
