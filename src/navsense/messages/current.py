"""The velocity of the water at one place as `geometry_msgs/msg/TwistStamped`, as the UUV Simulator publishes it.

Linear velocity (m/s) along the axes of the frame `world`; the angular part is zero. The stamp is true time. That of
several depths is `dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity`, as DAVE publishes it but for the axes: depths
(m, downwards) and velocities, here in the frame `world` too, where DAVE has them along north and east.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.messages.truth import WORLD_FRAME
from navsense.typing import AnyArray, IntArray

TYPE = "geometry_msgs/msg/TwistStamped"

LAYERS_TYPE = "dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity"


def _fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
    write_stamps(rows, stamp, GLOBAL_TIME)
    rows["twist.linear"] = arrays["velocity"]


def make_layout() -> MessageLayout:
    """Return how velocities become messages; its one array is `velocity` (n, 3) m/s, world frame."""
    return MessageLayout(TYPE, build_layout(TYPE, {"header.frame_id": WORLD_FRAME}), _fill)


def make_layers_layout(depths: tuple[float, ...]) -> MessageLayout:
    """Return how velocities at `depths` (m) become messages; their one array is `velocity` (n, layer, 3) m/s."""
    count = len(depths)
    arrays = {"depths": count, "velocities": count}

    def fill(rows: AnyArray, stamp: IntArray, given: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, GLOBAL_TIME)
        rows["depths"] = depths
        for layer in range(count):
            rows[f"velocities.{layer}"] = given["velocity"][:, layer]

    return MessageLayout(LAYERS_TYPE, build_layout(LAYERS_TYPE, {"header.frame_id": WORLD_FRAME}, arrays), fill)


def extract_velocity(rows: AnyArray) -> AnyArray:
    """Return the velocities (n, 3) m/s that messages say. The inverse of `message`."""
    found: AnyArray = rows["twist.linear"]
    return found


def extract_layer_velocity(rows: AnyArray, count: int) -> AnyArray:
    """Return the velocities (n, layer, 3) m/s of `count` depths that messages say. The inverse of `layers`."""
    return np.stack([rows[f"velocities.{layer}"] for layer in range(count)], axis=1)
