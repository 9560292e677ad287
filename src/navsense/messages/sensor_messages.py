"""What a module of `messages` declares about the messages of its sensor type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from navsense.core.pose import Pose
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, Times
from navsense.messages.base import SeriesKind
from navsense.messages.cdr import EncoderMaker, MessageEncoder, MessageRows
from navsense.messages.repack import MessageShape
from navsense.world import MountedSensor

GazeboEncoder = Callable[[MountedSensor, Reading, int], list[bytes]]
"""Returns Gazebo's messages of the published samples, numbered from the last argument."""


@dataclass(frozen=True, eq=False)
class SensorMessages:
    """The messages of one sensor type. The functions of `messages` with the same names call these.

    `messages` imports the module of a type by name, so only `SENSOR_MESSAGES` refers to its `MESSAGES`.

    make_encoder: returns the encoder of the main message of a series.
    extract_arrays: returns the arrays in messages of a series and companion: the inverse of the encoders.
    gz_type: full name of Gazebo's message; "" without one.
    encode_gz_messages: returns Gazebo's messages.
    gazebo_classic_type: full name of the message of Gazebo Classic; "" without one.
    encode_gazebo_classic_messages: returns the messages of Gazebo Classic, which have no number.
    gazebo_11_type: full name of the message that Gazebo 11 itself reads; "" without one.
    encode_gazebo_11_messages: returns these messages, which have no number.
    list_companions: returns the companions of a series: further messages of the same sample, by topic suffix.
    time_of_validity: returns the times of validity (n,) s of a reading; None if they are the times of the reading.
    list_frames: returns the frames in the messages that differ from the sensor's, with their pose in it.
    list_world_frames: returns the frames fixed in the world that its description names, with their pose in the world.
    make_marker_encoder: returns the encoder of the markers of its beams; None for a sensor without beams.
    series_arrays: the arrays of the ideal values and of the biases, if these are not all arrays of the reading.
    find_unreadable_arrays: returns the arrays that messages of a shape hold in another way, with the reason.
    """

    make_encoder: EncoderMaker
    extract_arrays: Callable[[MountedSensor, MessageRows, SeriesKind, str], dict[str, AnyArray]]
    gz_type: str = ""
    encode_gz_messages: GazeboEncoder = lambda *_: []
    gazebo_classic_type: str = ""
    encode_gazebo_classic_messages: GazeboEncoder = lambda *_: []
    gazebo_11_type: str = ""
    encode_gazebo_11_messages: GazeboEncoder = lambda *_: []
    list_companions: Callable[[MountedSensor, SeriesKind], Mapping[str, EncoderMaker]] = lambda *_: {}
    time_of_validity: Callable[[Reading], Times] | None = None
    list_frames: Callable[[MountedSensor], Mapping[str, Pose]] = lambda _: {}
    list_world_frames: Callable[[MountedSensor], Mapping[str, Pose]] = lambda _: {}
    make_marker_encoder: Callable[[MountedSensor], MessageEncoder] | None = None
    series_arrays: Mapping[SeriesKind, tuple[str, ...]] = field(default_factory=dict)
    find_unreadable_arrays: Callable[[MessageShape], Mapping[str, str]] = lambda _: {}
