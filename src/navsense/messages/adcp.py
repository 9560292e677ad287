"""ADCP readings as `ds_sensor_msgs/msg/Adcp`, as a companion message with all arrays, and as Gazebo's messages.

The main message follows `libdsros_ros_dvl`. Each cell has one velocity of the water (m/s) in the axes of
`coordinate_mode`; in beam coordinates, it has one vector along each of four beams. Axes of beam and instrument
coordinates are those of the header frame; axes of ship and earth coordinates are level. Unknown values are NaN; biases
are always NaN. The cell size is rounded to whole metres. Lengths are along the axis of the instrument; in the dialect
of Woods Hole they are along the beam, as in its plug-in.

The companion `_ensemble` holds all arrays as `navsense_msgs/msg/Adcp`, ordered by cell, then by beam.

Gazebo has no message for a profile. Each cell is a `gz.msgs.DVLVelocityTracking` of a water mass at the distance of the
cell, with the velocity of the sensor relative to it. Header stamps are the time of validity on the sensor's clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from navsense.core.pose import Pose, conjugate, ensure_unit, rotate
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, FloatArray, IntArray
from navsense.messages import generic
from navsense.messages.base import (
    AGE,
    NANOSECONDS_PER_SECOND,
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    require_spec,
)
from navsense.messages.cdr import EncoderMaker, MessageEncoder, build_layout, write_stamps
from navsense.messages.dvl import (
    GZ_TYPE,
    MESSAGE_BEAMS,
    REFERENCE_SHIP,
    get_transducer_type,
    make_source_uuid,
    time_of_validity,
)
from navsense.messages.gz import encode_doubles, encode_header, encode_int, encode_nested, list_emitted_rows
from navsense.messages.markers import INVALID, WATER, make_beam_encoder
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import CoordinateSystem, MessageDialect
from navsense.sensors.doppler.specification import WATER_TRACK
from navsense.world import MountedSensor

TYPE = "ds_sensor_msgs/msg/Adcp"

REFERENCE_EARTH = 1
"""Value of Gazebo's `DVLKinematicEstimate.ReferenceType`: world axes."""


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frame of the instrument's axes in the sensor's frame.

    Raises `RecordingError` for a specification of another sensor type.
    """
    return {get_frame_id(sensor): Pose(rotation=conjugate(ensure_unit(require_spec(sensor, Adcp).reference)))}


def _compute_vectors(spec: Adcp, arrays: Mapping[str, AnyArray], count: int) -> FloatArray:
    """Return the velocities (n, cell, 1, 3) m/s of the water, or (n, cell, 4, 3) along each of four beams."""
    cells, beams = int(spec.cells.count), len(spec.beams.beams)
    if spec.coordinates is not CoordinateSystem.BEAM:
        velocity: FloatArray = np.full((count, cells, 1, 3), math.nan)
        if "velocity" in arrays:
            velocity[:, :, 0] = np.asarray(arrays["velocity"]).reshape(count, cells, 3)
        return velocity
    vectors: FloatArray = np.full((count, cells, MESSAGE_BEAMS, 3), math.nan)
    if "beam_velocity" in arrays:
        along = np.asarray(arrays["beam_velocity"]).reshape(count, cells, beams)
        first = slice(min(MESSAGE_BEAMS, beams))
        vectors[:, :, first] = -along[:, :, first, None] * spec.beam_direction[first]
    return vectors


def make_encoder(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `ds_sensor_msgs/msg/Adcp`.

    Raises `RecordingError` for a specification of another sensor type.
    """
    spec, clock = require_spec(sensor, Adcp), get_clock_name(sensor)
    cells, vectors_per_cell = int(spec.cells.count), MESSAGE_BEAMS if spec.coordinates is CoordinateSystem.BEAM else 1
    lengths = {f"vel_bin_beams.{m}.velocity_bin_beam": vectors_per_cell for m in range(cells)}
    lengths["vel_bin_beams"] = cells
    slant = spec.beams.janus_cosines[0] if spec.dialect is MessageDialect.DSROS else 1.0
    size, first = spec.cells.size / slant, spec.cells.first_distance / slant
    constants = {
        **make_source_uuid(sensor),
        "coordinate_mode": list(CoordinateSystem).index(spec.coordinates),
        "adcp_type": get_transducer_type(spec),
        "cells": cells,
        "cell_depth": min(round(size), 0xFFFF),
        "bin0_distance": first,
        **{f"beam_unit_vec.{k}": axis for k, axis in enumerate(spec.beam_direction[:MESSAGE_BEAMS])},
    }

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        delay = np.nan_to_num(arrays[AGE]) if AGE in arrays else np.zeros(stamp.size)
        write_stamps(rows, stamp, clock)
        write_stamps(rows, stamp + np.rint(delay * NANOSECONDS_PER_SECOND).astype(np.int64), clock, "ds_header.io_time")
        vectors = _compute_vectors(spec, arrays, stamp.size)
        for m in range(cells):
            for k in range(vectors_per_cell):
                rows[f"vel_bin_beams.{m}.velocity_bin_beam.{k}"] = vectors[:, m, k]

    layout = build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}, lengths)
    return MessageEncoder(TYPE, layout.with_constants(constants), fill)


def list_companions(sensor: MountedSensor, series_kind: SeriesKind) -> Mapping[str, EncoderMaker]:
    """Return the companion message with all arrays.

    Raises `RecordingError` for a specification of another sensor type.
    """
    require_spec(sensor, Adcp)
    return {"_ensemble": generic.make_encoder} if series_kind != "bias" else {}


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in companion messages, which hold all of them. The main messages are not read."""
    return generic.extract_arrays(sensor, rows, series_kind, companion) if companion else {}


def _encode_velocity(reference: int, velocity: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s."""
    return encode_int(1, reference) + encode_nested(2, encode_doubles(2, velocity))


def _encode_beam(number: int, slant: float, axis: Sequence[float], along: float) -> bytes:
    """Return `DVLBeamState` of one beam in one cell; only its number for a bad beam."""
    if math.isnan(along):
        return encode_int(1, number)
    velocity = encode_nested(2, _encode_velocity(REFERENCE_SHIP, [along * part for part in axis]))
    return encode_int(1, number) + velocity + encode_nested(3, encode_doubles(1, (slant,))) + encode_int(6, 1)


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` messages of the emitted rows, one per cell, numbered from `sequence`."""
    spec, frame = require_spec(sensor, Adcp), get_frame_id(sensor)
    stamps = compute_stamps(reading, get_clock_name(sensor), time_of_validity(reading)).tolist()
    reference = REFERENCE_EARTH if spec.coordinates is CoordinateSystem.EARTH else REFERENCE_SHIP
    water_velocity = reading.arrays["relative_velocity" if spec.motion_compensated else "velocity"]
    velocity, along = (-water_velocity).tolist(), reading.arrays["beam_velocity"].tolist()
    axes, slants = spec.beam_direction.tolist(), spec.beams.janus_cosines
    messages: list[bytes] = []
    for row in list_emitted_rows(reading):
        for m, distance in enumerate(spec.cell_distance.tolist()):
            out = encode_nested(1, encode_header(stamps[row], frame, sequence + len(messages)))
            out += encode_int(2, 1 + get_transducer_type(spec))
            out += encode_nested(3, encode_int(1, WATER_TRACK) + encode_nested(2, encode_doubles(1, (distance,))))
            if not math.isnan(velocity[row][m][0]):
                out += encode_nested(4, _encode_velocity(reference, velocity[row][m]))
            for k, slant in enumerate(slants):
                out += encode_nested(5, _encode_beam(k, distance / slant, axes[k], along[row][m][k]))
            messages.append(out)
    return messages


def make_marker_encoder(sensor: MountedSensor) -> MessageEncoder:
    """Return the encoder of a line along each beam. Raises `RecordingError` for another sensor type."""
    spec = require_spec(sensor, Adcp)
    cell_ends = (spec.cell_distance + 0.5 * spec.cells.size)[:, None] / np.array(spec.beams.janus_cosines)

    def compute_beams(count: int, arrays: Mapping[str, AnyArray]) -> tuple[FloatArray, IntArray]:
        velocity = arrays.get("beam_velocity", np.full((count, *cell_ends.shape), math.nan))
        is_valid = np.isfinite(velocity.reshape(count, *cell_ends.shape))
        is_water = is_valid.any(axis=1)
        last_ends = np.where(is_valid, cell_ends, 0.0).max(axis=1)
        return np.where(is_water, last_ends, cell_ends[-1]), np.where(is_water, WATER, INVALID)

    transducers = np.array([rotate(spec.reference, beam.position) for beam in spec.beams.beams])
    return make_beam_encoder(sensor, transducers, spec.beam_direction, compute_beams, spec.duration)


MESSAGES = SensorMessages(
    make_encoder,
    extract_arrays,
    GZ_TYPE,
    encode_gz_messages,
    list_companions=list_companions,
    time_of_validity=time_of_validity,
    list_frames=list_frames,
    make_marker_encoder=make_marker_encoder,
)
