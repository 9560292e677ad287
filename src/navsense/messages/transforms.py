"""Poses between frames as `tf2_msgs/msg/TFMessage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navsense.messages.base import GLOBAL_TIME
from navsense.messages.cdr import MessageLayout, build_layout, write_quaternions, write_stamps, write_vectors
from navsense.typing import AnyArray, IntArray

TYPE = "tf2_msgs/msg/TFMessage"


def make_layout(frames: Sequence[tuple[str, str]]) -> MessageLayout:
    """Return how k transforms, `frames` as (parent, child), become one message an instant.

    Its arrays are `position` (n, k, 3) m and `orientation` (n, k, 4) w x y z, each of the child in its parent.
    """
    texts = {}
    for i, (parent, child) in enumerate(frames):
        texts[f"transforms.{i}.header.frame_id"] = parent
        texts[f"transforms.{i}.child_frame_id"] = child

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        for i in range(len(frames)):
            path = f"transforms.{i}"
            write_stamps(rows, stamp, GLOBAL_TIME, path + ".header.stamp")
            write_vectors(rows, path + ".transform.translation", arrays["position"][:, i])
            write_quaternions(rows, path + ".transform.rotation", arrays["orientation"][:, i])

    return MessageLayout(TYPE, build_layout(TYPE, texts, {"transforms": len(frames)}), fill)
