"""Readings of a current profiler as `ds_sensor_msgs/msg/Adcp`, all of them beside it, and as Gazebo's messages.

On the sensor's own topic, as `libdsros_ros_dvl` has it: for each cell one velocity of the water (m/s), in the axes of
`coordinate_mode`; or, where that is the beams', for each of four beams the part of it along the beam, as a vector. In
the first two modes and of the beams the axes are those of the header's frame, in the other two level ones. What is not
known is NaN. The length of a cell is a whole number of metres there, rounded. Lengths are along the instrument's
axis; in the dialect of Woods Hole along the beam, as its plug-in has them. Hidden errors have no message of their own
and are NaN.

All arrays are beside it (`_ensemble`), as `navsense_msgs/msg/Adcp`, row by row: cell after cell, beam after beam.

Gazebo has no message of a profile. Each cell is a `gz.msgs.DVLVelocityTracking` of a water mass as far away as the
cell: velocities of the sensor against it. In both, a header's stamp is the time of validity by the sensor's clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from uuid import NAMESPACE_URL, uuid5

import numpy as np

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
from navsense.messages.cdr import MessageLayout, build_layout, write_stamps
from navsense.messages.gz import encode_doubles, encode_header, encode_int, encode_nested, list_emitted_rows
from navsense.pose import Pose, conjugate, ensure_unit
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import CoordinateSystem, MessageDialect, Transducer
from navsense.series import Reading
from navsense.typing import AnyArray, FloatArray, IntArray, Times
from navsense.world import MountedSensor

TYPE = "ds_sensor_msgs/msg/Adcp"
GZ_TYPE = "gz.msgs.DVLVelocityTracking"

MESSAGE_BEAMS = 4
"""Beams of the message."""

TARGET_WATER_MASS, REFERENCE_EARTH, REFERENCE_SHIP = 2, 1, 2
"""Values of `TargetType` and of `ReferenceType` in Gazebo."""


def time_of_validity(reading: Reading) -> Times:
    """Return the instants (n,) s that a reading is about: those of validity, its own where there is none."""
    validity = reading.arrays["time_of_validity"]
    return np.where(np.isfinite(validity), validity, reading.time)


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frame of the instrument's axes, posed in the sensor's own. `SinkError` for another kind of sheet."""
    return {get_frame_id(sensor): Pose(rotation=conjugate(ensure_unit(require_spec(sensor, Adcp).reference)))}


def _is_phased(spec: Adcp) -> int:
    """Return 1 for a phased array and 0 for pistons."""
    return int(spec.transducer is Transducer.PHASED_ARRAY)


def _cell_geometry(spec: Adcp) -> tuple[float, float]:
    """Return length of a cell and distance of the first one's centre (m), as the dialect has them."""
    slant = spec.beams.slant_cosines[0] if spec.dialect is MessageDialect.DSROS else 1.0
    return spec.cells.size / slant, spec.cells.first_distance / slant


def _compute_vectors(spec: Adcp, arrays: Mapping[str, AnyArray], count: int) -> FloatArray:
    """Return the velocities (n, cell, 1 or 4, 3) m/s of the water, or of its part along each of four beams."""
    cells, beams = int(spec.cells.count), len(spec.beams.beams)
    if spec.coordinates is not CoordinateSystem.BEAM:
        found: FloatArray = np.full((count, cells, 1, 3), math.nan)
        if "velocity" in arrays:
            found[:, :, 0] = np.asarray(arrays["velocity"]).reshape(count, cells, 3)
        return found
    vectors: FloatArray = np.full((count, cells, MESSAGE_BEAMS, 3), math.nan)
    if "beam_velocity" in arrays:
        along = np.asarray(arrays["beam_velocity"]).reshape(count, cells, beams)
        shown = min(MESSAGE_BEAMS, beams)
        vectors[:, :, :shown] = -along[:, :, :shown, None] * spec.beam_direction[:shown]
    return vectors


def make_layout(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageLayout:
    """Return how profiles or the true ones become messages. `SinkError` for a sheet of another kind."""
    spec, clock = require_spec(sensor, Adcp), get_clock_name(sensor)
    cells, each = int(spec.cells.count), MESSAGE_BEAMS if spec.coordinates is CoordinateSystem.BEAM else 1
    lengths = {"vel_bin_beams": cells} | {f"vel_bin_beams.{m}.velocity_bin_beam": each for m in range(cells)}
    size, first = _cell_geometry(spec)
    fixed = {
        "ds_header.source_uuid": list(uuid5(NAMESPACE_URL, sensor.name).bytes),
        "coordinate_mode": list(CoordinateSystem).index(spec.coordinates),
        "adcp_type": _is_phased(spec),
        "cells": cells,
        "cell_depth": min(round(size), 0xFFFF),
        "bin0_distance": first,
        **{f"beam_unit_vec.{k}": axis for k, axis in enumerate(spec.beam_direction[:MESSAGE_BEAMS])},
    }

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        age = np.nan_to_num(arrays[AGE]) if AGE in arrays else np.zeros(stamp.size)
        write_stamps(rows, stamp, clock)
        write_stamps(rows, stamp + np.rint(age * NANOSECONDS_PER_SECOND).astype(np.int64), clock, "ds_header.io_time")
        vectors = _compute_vectors(spec, arrays, stamp.size)
        for m in range(cells):
            for k in range(each):
                rows[f"vel_bin_beams.{m}.velocity_bin_beam.{k}"] = vectors[:, m, k]

    return MessageLayout(
        TYPE, build_layout(TYPE, {"header.frame_id": get_frame_id(sensor)}, lengths).with_values(fixed), fill
    )


def list_companions(
    sensor: MountedSensor, series_kind: SeriesKind
) -> Mapping[str, Callable[[MountedSensor, SeriesKind], MessageLayout]]:
    """Return all arrays as one message beside the profile. `SinkError` for a sheet of another kind."""
    require_spec(sensor, Adcp)
    return {"_ensemble": generic.make_layout} if series_kind != "bias" else {}


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return what the messages beside the sensor's own say, which hold all arrays; those of its own are not read."""
    return generic.extract_arrays(sensor, rows, series_kind, companion) if companion else {}


def _relative_velocity(reading: Reading, spec: Adcp) -> FloatArray:
    """Return the sensor's velocities (n, cell, 3) m/s against the water of each cell."""
    found: FloatArray = -reading.arrays["relative_velocity" if spec.motion_compensated else "velocity"]
    return found


def _encode_velocity(reference: int, velocity: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s."""
    return encode_int(1, reference) + encode_nested(2, encode_doubles(2, velocity))


def _encode_beam(number: int, slant: float, axis: Sequence[float], along: float) -> bytes:
    """Return `DVLBeamState` of one beam in one cell: nothing but its number where it is not good."""
    if math.isnan(along):
        return encode_int(1, number)
    velocity = encode_nested(2, _encode_velocity(REFERENCE_SHIP, [along * series_kind for series_kind in axis]))
    return encode_int(1, number) + velocity + encode_nested(3, encode_doubles(1, (slant,))) + encode_int(6, 1)


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` of a reading, one a cell, numbered from `sequence` on."""
    spec, frame = require_spec(sensor, Adcp), get_frame_id(sensor)
    shown = compute_stamps(reading, get_clock_name(sensor), time_of_validity(reading)).tolist()
    reference = REFERENCE_EARTH if spec.coordinates is CoordinateSystem.EARTH else REFERENCE_SHIP
    against, along = _relative_velocity(reading, spec).tolist(), reading.arrays["beam_velocity"].tolist()
    axes, slants = spec.beam_direction.tolist(), spec.beams.slant_cosines
    found: list[bytes] = []
    for row in list_emitted_rows(reading):
        for m, distance in enumerate(spec.cell_distance.tolist()):
            out = encode_nested(1, encode_header(shown[row], frame, sequence + len(found))) + encode_int(
                2, 1 + _is_phased(spec)
            )
            out += encode_nested(3, encode_int(1, TARGET_WATER_MASS) + encode_nested(2, encode_doubles(1, (distance,))))
            if not math.isnan(against[row][m][0]):
                out += encode_nested(4, _encode_velocity(reference, against[row][m]))
            for k, slant in enumerate(slants):
                out += encode_nested(5, _encode_beam(k, distance / slant, axes[k], along[row][m][k]))
            found.append(out)
    return found
