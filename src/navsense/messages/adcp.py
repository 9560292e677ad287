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
from navsense.messages.base import AGE, SECOND, Part, clock_of, frame_of, sheet_of, stamps
from navsense.messages.cdr import Message, layout, set_stamp
from navsense.messages.gz import doubles, header, integer, nested, rows_of
from navsense.pose import Pose, conjugate, unit
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import Coordinates, Dialect
from navsense.sensors.dvl import Transducer
from navsense.series import Reading
from navsense.typing import AnyArray, FloatArray, IntArray, Times
from navsense.world import MountedSensor

TYPE = "ds_sensor_msgs/msg/Adcp"
GZ_TYPE = "gz.msgs.DVLVelocityTracking"

FOUR = 4
"""Beams of the message."""

WATER_MASS, ON_EARTH, WITH_SENSOR = 2, 1, 2
"""Values of `TargetType` and of `ReferenceType` in Gazebo."""


def about(reading: Reading) -> Times:
    """Return the instants (n,) s that a reading is about: those of validity, its own where there is none."""
    validity = reading.arrays["time_of_validity"]
    return np.where(np.isfinite(validity), validity, reading.time)


def frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frame of the instrument's axes, posed in the sensor's own. `SinkError` for another kind of sheet."""
    return {frame_of(sensor): Pose(rotation=conjugate(unit(sheet_of(sensor, Adcp).reference)))}


def _is_phased(sheet: Adcp) -> int:
    """Return 1 for a phased array and 0 for pistons."""
    return int(sheet.transducer is Transducer.PHASED_ARRAY)


def _lengths(sheet: Adcp) -> tuple[float, float]:
    """Return length of a cell and distance of the first one's centre (m), as the dialect has them."""
    slant = sheet.beams.slants[0] if sheet.dialect is Dialect.DSROS else 1.0
    return sheet.cells.size / slant, sheet.cells.first / slant


def _vectors(sheet: Adcp, arrays: Mapping[str, AnyArray], count: int) -> FloatArray:
    """Return the velocities (n, cell, 1 or 4, 3) m/s of the water, or of its part along each of four beams."""
    cells, beams = int(sheet.cells.count), len(sheet.beams.beams)
    if sheet.coordinates is not Coordinates.BEAM:
        found: FloatArray = np.full((count, cells, 1, 3), math.nan)
        if "velocity" in arrays:
            found[:, :, 0] = np.asarray(arrays["velocity"]).reshape(count, cells, 3)
        return found
    vectors: FloatArray = np.full((count, cells, FOUR, 3), math.nan)
    if "beam_velocity" in arrays:
        along = np.asarray(arrays["beam_velocity"]).reshape(count, cells, beams)
        shown = min(FOUR, beams)
        vectors[:, :, :shown] = -along[:, :, :shown, None] * sheet.beam_direction[:shown]
    return vectors


def message(sensor: MountedSensor, _part: Part) -> Message:
    """Return how profiles or the true ones become messages. `SinkError` for a sheet of another kind."""
    sheet, clock = sheet_of(sensor, Adcp), clock_of(sensor)
    cells, each = int(sheet.cells.count), FOUR if sheet.coordinates is Coordinates.BEAM else 1
    lengths = {"vel_bin_beams": cells} | {f"vel_bin_beams.{m}.velocity_bin_beam": each for m in range(cells)}
    size, first = _lengths(sheet)
    fixed = {
        "ds_header.source_uuid": list(uuid5(NAMESPACE_URL, sensor.name).bytes),
        "coordinate_mode": list(Coordinates).index(sheet.coordinates),
        "adcp_type": _is_phased(sheet),
        "cells": cells,
        "cell_depth": min(round(size), 0xFFFF),
        "bin0_distance": first,
        **{f"beam_unit_vec.{k}": axis for k, axis in enumerate(sheet.beam_direction[:FOUR])},
    }

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        age = np.nan_to_num(arrays[AGE]) if AGE in arrays else np.zeros(stamp.size)
        set_stamp(rows, stamp, clock)
        set_stamp(rows, stamp + np.rint(age * SECOND).astype(np.int64), clock, "ds_header.io_time")
        vectors = _vectors(sheet, arrays, stamp.size)
        for m in range(cells):
            for k in range(each):
                rows[f"vel_bin_beams.{m}.velocity_bin_beam.{k}"] = vectors[:, m, k]

    return Message(TYPE, layout(TYPE, {"header.frame_id": frame_of(sensor)}, lengths).holding(fixed), fill)


def companions(sensor: MountedSensor, part: Part) -> Mapping[str, Callable[[MountedSensor, Part], Message]]:
    """Return all arrays as one message beside the profile. `SinkError` for a sheet of another kind."""
    sheet_of(sensor, Adcp)
    return {"_ensemble": generic.message} if part != "bias" else {}


def arrays(sensor: MountedSensor, rows: AnyArray, part: Part, beside: str) -> dict[str, AnyArray]:
    """Return what the messages beside the sensor's own say, which hold all arrays; those of its own are not read."""
    return generic.arrays(sensor, rows, part, beside) if beside else {}


def _against(reading: Reading, sheet: Adcp) -> FloatArray:
    """Return the sensor's velocities (n, cell, 3) m/s against the water of each cell."""
    found: FloatArray = -reading.arrays["relative_velocity" if sheet.removes_motion else "velocity"]
    return found


def _gz_velocity(reference: int, velocity: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s."""
    return integer(1, reference) + nested(2, doubles(2, velocity))


def _gz_beam(number: int, slant: float, axis: Sequence[float], along: float) -> bytes:
    """Return `DVLBeamState` of one beam in one cell: nothing but its number where it is not good."""
    if math.isnan(along):
        return integer(1, number)
    velocity = nested(2, _gz_velocity(WITH_SENSOR, [along * part for part in axis]))
    return integer(1, number) + velocity + nested(3, doubles(1, (slant,))) + integer(6, 1)


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` of a reading, one a cell, numbered from `sequence` on."""
    sheet, frame = sheet_of(sensor, Adcp), frame_of(sensor)
    shown = stamps(reading, clock_of(sensor), about(reading)).tolist()
    reference = ON_EARTH if sheet.coordinates is Coordinates.EARTH else WITH_SENSOR
    against, along = _against(reading, sheet).tolist(), reading.arrays["beam_velocity"].tolist()
    axes, slants = sheet.beam_direction.tolist(), sheet.beams.slants
    found: list[bytes] = []
    for row in rows_of(reading):
        for m, distance in enumerate(sheet.cell_distance.tolist()):
            out = nested(1, header(shown[row], frame, sequence + len(found))) + integer(2, 1 + _is_phased(sheet))
            out += nested(3, integer(1, WATER_MASS) + nested(2, doubles(1, (distance,))))
            if not math.isnan(against[row][m][0]):
                out += nested(4, _gz_velocity(reference, against[row][m]))
            for k, slant in enumerate(slants):
                out += nested(5, _gz_beam(k, distance / slant, axes[k], along[row][m][k]))
            found.append(out)
    return found
