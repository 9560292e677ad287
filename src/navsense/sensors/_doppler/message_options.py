"""What messages of a Doppler instrument go by, and change no number of: whose they are, their topics and frames."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from navsense.pose import Pose
from navsense.sensors._doppler.validation import validate_counts
from navsense.validation import validate_types

MAX_CLOUD_POINTS = 1000
"""Points of one beam in a point cloud, as `libdsros_ros_dvl` has them."""


class MessageDialect(StrEnum):
    """Whose messages a DVL sends, and whose documented rules hold for it under `classic`."""

    OWN = "own"
    UUV = "uuv"
    DSROS = "dsros"
    GZ = "gz"


@dataclass(frozen=True)
class DvlMessageOptions:
    """Topics, frames and numbers beside the sensor's own; empty where there is none.

    `ranges_topic` is a whole topic, else the ranges are on the sensor's own with `_ranges` behind it. A point cloud is
    in `pointcloud_frame`, in which the frame of the velocity has the pose `pointcloud_pose`, of `cloud_points` a beam.
    `beam_frames` name the beams, `beam_ids` number them, from 0 where nothing is said. Raises `SensorError`.
    """

    ranges_topic: str = ""
    pointcloud_frame: str = ""
    pointcloud_pose: Pose = Pose()
    cloud_points: int = 2
    beam_frames: tuple[str, ...] = ()
    beam_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a number of points that is none."""
        validate_counts(("points of a beam in the point cloud", self.cloud_points, 1, MAX_CLOUD_POINTS))
        validate_types(self, "of what a DVL sends")
        for name in ("beam_frames", "beam_ids"):
            object.__setattr__(self, name, tuple(vars(self)[name]))
