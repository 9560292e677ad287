"""Messages of a Doppler velocity log back as its arrays: the inverse of `dvl`.

That of all arrays (`PING`) gives each with all its bits, and stands before the others. Where it is not, as in
recordings of other programs, the messages of the dialect say what they have: none has the error velocity, the long-term
velocity, which beams are valid, or the beams of the track that did not give the velocity; those of four beams have no
fifth. Variances of -1, and in `uuv` altitudes and ranges, are not known: NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from navsense.messages import generic
from navsense.messages._doppler import BOTTOM, NONE, UNKNOWN, WATER, Instrument
from navsense.messages.base import Part
from navsense.sensors.base import OpaqueSensor
from navsense.sensors.doppler import TRUE, Dialect
from navsense.sensors.dvl import Mode
from navsense.typing import AnyArray, FloatArray
from navsense.world import MountedSensor

PING = "_ping"
"""What stands behind the topic of the message of all arrays."""

HIDDEN: Mapping[Part, tuple[str, ...]] = {
    "ideal": (*TRUE, "sound_speed", "time_of_validity"),
    "bias": ("beam_range", "beam_velocity"),
}
"""The arrays that truth has, and hidden errors."""

FOUR = 4


def told(value: AnyArray) -> FloatArray:
    """Return numbers, NaN where -1 says that they are not known."""
    number = np.asarray(value, dtype=np.float64)
    return np.where(number == UNKNOWN, math.nan, number)


def _widened(value: AnyArray, count: int) -> FloatArray:
    """Return the numbers (n, 4) of the first beams as (n, count), NaN for those behind them."""
    out: FloatArray = np.full((value.shape[0], count), math.nan)
    known = min(count, FOUR)
    out[:, :known] = value[:, :known]
    return out


def _by_track(mode: AnyArray, velocity: FloatArray, variance: FloatArray) -> dict[str, AnyArray]:
    """Return velocities along the beams (n, k) and their deviations, under the names of the track that gave them."""
    through, deviation = (mode == WATER)[:, None], np.sqrt(told(variance))
    pairs = (("beam_velocity", velocity), ("beam_deviation", deviation))
    bottom = {name: np.where(through, math.nan, value) for name, value in pairs}
    water = {f"water_{name}": np.where(through, value, math.nan) for name, value in pairs}
    return {**bottom, **water}


def _four(rows: AnyArray, count: int, words: tuple[str, str, str, str]) -> dict[str, AnyArray]:
    """Return the arrays of a message of four beams, whose fields of beams, course and sound have these words."""
    velocity, variance, sound, mode = words[0], words[1], words[2], rows["velocity_mode"].astype(np.float64)
    course = rows["course_gnd"]
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": told(rows["velocity_covar"]).reshape(-1, 3, 3),
        "altitude": rows["altitude"],
        "course": np.radians(course) if words[3] == "degrees" else course,
        "speed": rows["speed_gnd"],
        "beam_range": _widened(rows["range"], count),
        "num_good_beams": rows["num_good_beams"].astype(np.float64),
        "velocity_mode": mode,
        "sound_speed": rows[sound].astype(np.float64),
        **_by_track(mode, _widened(rows[velocity], count), _widened(rows[variance], count)),
    }


def _uuv(rows: AnyArray, own: Instrument) -> dict[str, AnyArray]:
    """Return the arrays of the UUV Simulator's message, which does not say what its velocity is against."""
    beams = [f"beams.{i}" for i in range(len(own.poses))]
    velocity, variance, distance = (
        np.stack([rows[f"{beam}.{name}"] for beam in beams], axis=1)
        for name in ("velocity", "velocity_covariance", "range")
    )
    track = WATER if own.sheet.bottom_mode is Mode.NEVER else BOTTOM
    mode = np.where(np.isnan(rows["velocity"][:, 0]), NONE, track).astype(np.float64)
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": told(rows["velocity_covariance"]).reshape(-1, 3, 3),
        "altitude": told(rows["altitude"]),
        "beam_range": told(distance),
        "velocity_mode": mode,
        "num_good_beams": np.isfinite(velocity).sum(axis=1).astype(np.float64),
        **_by_track(mode, velocity, variance),
    }


def _water(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return what stands in the message of the velocity through the water beside one over the bottom."""
    return {
        "water_velocity": rows["velocity"],
        "water_velocity_covariance": told(rows["velocity_covar"]).reshape(-1, 3, 3),
        "water_beam_velocity": _widened(rows["beam_velocity"], count),
        "water_beam_deviation": np.sqrt(told(_widened(rows["beam_velocity_covar"], count))),
    }


def _range_validity(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the range validity in a `Ranges3D` message; empty for another number of beams."""
    paths = [f"ranges.{i}.range_validity" for i in range(count)]
    if any(path not in (rows.dtype.names or ()) for path in paths):
        return {}
    return {"range_validity": np.stack([rows[path] for path in paths], axis=1).astype(np.float64)}


def _every(sensor: MountedSensor, rows: AnyArray, part: Part) -> dict[str, AnyArray]:
    """Return what stands in the message of all arrays; nothing where it is of more or fewer beams than are known of."""
    widths = {output.name: output.size for output in sensor.spec.outputs if output.axes}
    names = rows.dtype.names or ()
    if any(rows[name].shape[1:] != (width,) for name, width in widths.items() if name in names):
        return {}
    return generic.arrays(sensor, rows, part, PING)


def arrays(sensor: MountedSensor, rows: AnyArray, part: Part, beside: str) -> dict[str, AnyArray]:
    """Return the arrays in companion messages of a DVL: `_ping`, `_water` and the ranges of `dsros`."""
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    own = Instrument(sensor, part)
    count, dialect = len(own.poses), own.sheet.dialect
    if beside == PING:
        found = _every(sensor, rows, part)
    elif beside == "_water":
        found = _water(rows, count)
    elif beside and dialect is Dialect.DSROS:
        found = _range_validity(rows, count)
    elif beside:
        found = {}
    elif dialect is Dialect.UUV:
        found = _uuv(rows, own)
    elif dialect is Dialect.DSROS:
        found = _four(rows, count, ("raw_velocity", "raw_velocity_covar", "speed_sound", "degrees"))
    else:
        found = _four(rows, count, ("beam_velocity", "beam_velocity_covar", "sound_speed", "rad"))
    kept = HIDDEN.get(part, tuple(found))
    return {name: array for name, array in found.items() if name in kept}
