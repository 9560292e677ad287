"""Messages of a Doppler velocity log back as its arrays: the inverse of `dvl`.

That of all arrays (`PING_SUFFIX`) gives each with all its bits, and stands before the others. Where it is not, as in
recordings of other programs, the messages of the dialect say what they have: none has the error velocity, the long-term
velocity, which beams are valid, or the beams of the track that did not give the velocity; those of four beams have no
fifth. Variances of -1, and in `uuv` altitudes and ranges, are not known: NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from navsense.messages import generic
from navsense.messages._doppler import BOTTOM, NONE, UNKNOWN, WATER, DvlMessageInfo
from navsense.messages.base import SeriesKind
from navsense.sensors.base import OpaqueSensor
from navsense.sensors.doppler import IDEAL_OUTPUTS, MessageDialect
from navsense.sensors.dvl import TrackMode
from navsense.typing import AnyArray, FloatArray
from navsense.world import MountedSensor

PING_SUFFIX = "_ping"
"""What stands behind the topic of the message of all arrays."""

SERIES_ARRAYS: Mapping[SeriesKind, tuple[str, ...]] = {
    "ideal": (*IDEAL_OUTPUTS, "sound_speed", "time_of_validity"),
    "bias": ("beam_range", "beam_velocity"),
}
"""The arrays that truth has, and hidden errors."""

MESSAGE_BEAMS = 4


def unknown_to_nan(value: AnyArray) -> FloatArray:
    """Return numbers, NaN where -1 says that they are not known."""
    number = np.asarray(value, dtype=np.float64)
    return np.where(number == UNKNOWN, math.nan, number)


def _pad_beams(value: AnyArray, count: int) -> FloatArray:
    """Return the numbers (n, 4) of the first beams as (n, count), NaN for those behind them."""
    out: FloatArray = np.full((value.shape[0], count), math.nan)
    known = min(count, MESSAGE_BEAMS)
    out[:, :known] = value[:, :known]
    return out


def _split_by_track(mode: AnyArray, velocity: FloatArray, variance: FloatArray) -> dict[str, AnyArray]:
    """Return velocities along the beams (n, k) and their deviations, under the names of the track that gave them."""
    through, deviation = (mode == WATER)[:, None], np.sqrt(unknown_to_nan(variance))
    pairs = (("beam_velocity", velocity), ("beam_deviation", deviation))
    bottom = {name: np.where(through, math.nan, value) for name, value in pairs}
    water = {f"water_{name}": np.where(through, value, math.nan) for name, value in pairs}
    return {**bottom, **water}


def _extract_four_beams(rows: AnyArray, count: int, names: tuple[str, str, str, str]) -> dict[str, AnyArray]:
    """Return the arrays of a message of four beams, whose fields of beams, course and sound have these words."""
    velocity, variance, sound, mode = names[0], names[1], names[2], rows["velocity_mode"].astype(np.float64)
    course = rows["course_gnd"]
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": unknown_to_nan(rows["velocity_covar"]).reshape(-1, 3, 3),
        "altitude": rows["altitude"],
        "course": np.radians(course) if names[3] == "degrees" else course,
        "speed": rows["speed_gnd"],
        "beam_range": _pad_beams(rows["range"], count),
        "num_good_beams": rows["num_good_beams"].astype(np.float64),
        "velocity_mode": mode,
        "sound_speed": rows[sound].astype(np.float64),
        **_split_by_track(mode, _pad_beams(rows[velocity], count), _pad_beams(rows[variance], count)),
    }


def _extract_uuv(rows: AnyArray, info: DvlMessageInfo) -> dict[str, AnyArray]:
    """Return the arrays of the UUV Simulator's message, which does not say what its velocity is against."""
    beams = [f"beams.{i}" for i in range(len(info.poses))]
    velocity, variance, distance = (
        np.stack([rows[f"{beam}.{name}"] for beam in beams], axis=1)
        for name in ("velocity", "velocity_covariance", "range")
    )
    track = WATER if info.spec.bottom_mode is TrackMode.NEVER else BOTTOM
    mode = np.where(np.isnan(rows["velocity"][:, 0]), NONE, track).astype(np.float64)
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": unknown_to_nan(rows["velocity_covariance"]).reshape(-1, 3, 3),
        "altitude": unknown_to_nan(rows["altitude"]),
        "beam_range": unknown_to_nan(distance),
        "velocity_mode": mode,
        "num_good_beams": np.isfinite(velocity).sum(axis=1).astype(np.float64),
        **_split_by_track(mode, velocity, variance),
    }


def _extract_water(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return what stands in the message of the velocity through the water beside one over the bottom."""
    return {
        "water_velocity": rows["velocity"],
        "water_velocity_covariance": unknown_to_nan(rows["velocity_covar"]).reshape(-1, 3, 3),
        "water_beam_velocity": _pad_beams(rows["beam_velocity"], count),
        "water_beam_deviation": np.sqrt(unknown_to_nan(_pad_beams(rows["beam_velocity_covar"], count))),
    }


def _extract_range_validity(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the range validity in a `Ranges3D` message; empty for another number of beams."""
    paths = [f"ranges.{i}.range_validity" for i in range(count)]
    if any(path not in (rows.dtype.names or ()) for path in paths):
        return {}
    return {"range_validity": np.stack([rows[path] for path in paths], axis=1).astype(np.float64)}


def _extract_all(sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind) -> dict[str, AnyArray]:
    """Return what stands in the message of all arrays; nothing where it is of more or fewer beams than are known of."""
    widths = {output.name: output.size for output in sensor.spec.outputs if output.axes}
    names = rows.dtype.names or ()
    if any(rows[name].shape[1:] != (width,) for name, width in widths.items() if name in names):
        return {}
    return generic.extract_arrays(sensor, rows, series_kind, PING_SUFFIX)


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in companion messages of a DVL: `_ping`, `_water` and the ranges of `dsros`."""
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    info = DvlMessageInfo(sensor, series_kind)
    count, dialect = len(info.poses), info.spec.dialect
    if companion == PING_SUFFIX:
        found = _extract_all(sensor, rows, series_kind)
    elif companion == "_water":
        found = _extract_water(rows, count)
    elif companion and dialect is MessageDialect.DSROS:
        found = _extract_range_validity(rows, count)
    elif companion:
        found = {}
    elif dialect is MessageDialect.UUV:
        found = _extract_uuv(rows, info)
    elif dialect is MessageDialect.DSROS:
        found = _extract_four_beams(rows, count, ("raw_velocity", "raw_velocity_covar", "speed_sound", "degrees"))
    else:
        found = _extract_four_beams(rows, count, ("beam_velocity", "beam_velocity_covar", "sound_speed", "rad"))
    kept = SERIES_ARRAYS.get(series_kind, tuple(found))
    return {name: array for name, array in found.items() if name in kept}
