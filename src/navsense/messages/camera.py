"""Cameras as `sensor_msgs/msg/CameraInfo` and `gz.msgs.CameraInfo`: the intrinsics of an image that is not rendered.

The distortion model is `plumb_bob` with k1, k2, p1, p2, k3. The rectification matrix is the identity. There is no
binning and no region of interest. The frame is the optical frame, if the sensor has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from navsense.core.pose import Pose
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, IntArray
from navsense.messages.base import SeriesKind, compute_stamps, get_clock_name, get_frame_id, require_spec
from navsense.messages.cdr import MessageEncoder, MessageRows, build_layout, write_stamps
from navsense.messages.gz import encode_header, encode_int, encode_nested, encode_packed, list_emitted_rows
from navsense.messages.repack import MessageShape
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.camera import Camera
from navsense.world import MountedSensor

TYPE = "sensor_msgs/msg/CameraInfo"
GZ_TYPE = "gz.msgs.CameraInfo"

PLUMB_BOB = "plumb_bob"
"""Name of the distortion model."""

RECTIFICATION = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
"""Rectification matrix: the identity, as in Gazebo."""

COEFFICIENT_COUNT = 5
"""Number of coefficients of this model."""

FIELDS: Mapping[str, str] = {"intrinsic_matrix": "k", "projection_matrix": "p", "distortion": "d"}
"""Array of a reading -> its field in the message."""


def get_optical_frame(sensor: MountedSensor) -> str:
    """Return the frame of the messages of a camera."""
    return get_frame_id(sensor) if sensor.optical_frame is None else sensor.optical_frame.name


def make_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/CameraInfo`.

    Raises `RecordingError` for a specification of another sensor type.
    """
    require_spec(sensor, Camera)
    clock = get_clock_name(sensor)
    strings = {"header.frame_id": get_optical_frame(sensor), "distortion_model": PLUMB_BOB}
    layout = build_layout(TYPE, strings, {"d": COEFFICIENT_COUNT})

    def fill(rows: MessageRows, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        write_stamps(rows, stamp, clock)
        for name, field in FIELDS.items():
            rows[field] = arrays[name].reshape(stamp.shape[0], -1)
        rows["width"], rows["height"] = arrays["image_size"][:, 0], arrays["image_size"][:, 1]

    return MessageEncoder(TYPE, layout.with_constants({"r": RECTIFICATION}), fill)


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.CameraInfo` messages of the emitted rows, numbered from `sequence`."""
    frame, rows = get_optical_frame(sensor), list_emitted_rows(reading)
    stamps = compute_stamps(reading, get_clock_name(sensor)).tolist()
    return [
        encode_nested(1, encode_header(stamps[row], frame, sequence + i)) + _encode_values(reading, row)
        for i, row in enumerate(rows)
    ]


def _encode_values(reading: Reading, row: int) -> bytes:
    """Return the fields of one message after its header."""
    width, height = (int(size) for size in reading["image_size"][row])
    k, p = (reading[name][row].ravel().tolist() for name in ("intrinsic_matrix", "projection_matrix"))
    distortion = encode_nested(4, encode_packed(2, reading["distortion"][row].tolist()))
    out = encode_int(2, width) + encode_int(3, height) + distortion
    out += encode_nested(5, encode_packed(1, k)) + encode_nested(6, encode_packed(1, p))
    return out + encode_packed(7, RECTIFICATION)


def extract_arrays(rows: MessageRows) -> dict[str, AnyArray]:
    """Return the arrays in messages: the inverse of `make_encoder`."""
    count = rows.shape[0]
    coefficients = np.zeros((count, COEFFICIENT_COUNT))
    if "d" in (rows.dtype.names or ()):
        values = rows["d"].reshape(count, -1)
        # Other programs write no coefficient, four, or those of a model with more, which this array cannot hold.
        coefficients[:, : values.shape[1]] = values if values.shape[1] <= COEFFICIENT_COUNT else math.nan
    return {
        "intrinsic_matrix": rows["k"].reshape(count, 3, 3),
        "projection_matrix": rows["p"].reshape(count, 3, 4),
        "distortion": coefficients,
        "image_size": np.stack([rows["width"], rows["height"]], axis=1).astype(np.float64),
    }


def find_unreadable_arrays(shape: MessageShape) -> Mapping[str, str]:
    """Return `distortion` with the reason for messages with the coefficients of another model than plumb_bob."""
    model = shape.strings.get("distortion_model", "")
    if model in ("", PLUMB_BOB) or not shape.lengths.get("d", 0):
        return {}
    return {"distortion": f"distortion_model: {model}; must be {PLUMB_BOB}"}


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the optical frame of a camera with its pose in the sensor's frame; none without one."""
    return {} if sensor.optical_frame is None else {sensor.optical_frame.name: sensor.optical_frame.pose}


MESSAGES = SensorMessages(
    make_encoder,
    lambda _sensor, rows, _series_kind, _companion: extract_arrays(rows),
    GZ_TYPE,
    encode_gz_messages,
    list_frames=list_frames,
    find_unreadable_arrays=find_unreadable_arrays,
)
