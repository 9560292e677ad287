"""The velocity of the water at one place as `geometry_msgs/msg/TwistStamped`, as the UUV Simulator publishes it.

Linear velocity (m/s) along the axes of the frame `world`; the angular part is zero. The stamp is true time.
"""

from __future__ import annotations

from collections.abc import Mapping

from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.truth import WORLD
from navsense.typing import AnyArray, IntArray

TYPE = "geometry_msgs/msg/TwistStamped"


def _fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    set_stamp(rows, stamp, GLOBAL_TIME)
    rows["twist.linear"] = arrays["velocity"]


def message() -> Message:
    """Return how velocities become messages; its one array is `velocity` (n, 3) m/s, world frame."""
    return Message(TYPE, layout(TYPE, {"header.frame_id": WORLD}), _fill)
