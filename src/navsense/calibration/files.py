"""Readings of a magnetometer out of files: recordings of navsense, ROS bags of anybody, CSV.

    samples = ns.calibration.read("drive.mcap", topic="/imu/mag", attitude="/odom")
    ns.calibration.known_attitude(samples.field, samples.rotation_ws)

`rotation_ws` takes sensor coordinates to world coordinates. In a recording of navsense the truth is taken at the true
time of each reading, in a bag the attitude at its stamp; between two samples it turns evenly. Rows without a number, or
without an attitude, are left out and counted in `notes`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from navsense.calibration import _attitude, _bags, _tables
from navsense.calibration.units import UNITS, believable
from navsense.errors import CalibrationError, Where
from navsense.inputs import decimal
from navsense.pose import from_rpy
from navsense.sinks.load import Loaded, load
from navsense.typing import BoolArray, FloatArray, Quaternions, Vectors

RECORDINGS = (".npz", ".parquet")
"""Suffixes of recordings that are read back as what they were made from."""

FUSED = "an Imu's orientation is of use only where it was not made from this magnetometer"
"""What to think of before an orientation is taken for an attitude."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What a file holds for a calibration.

    field (n, 3) in `unit`, None for numbers without one; rotation_ws (n, 4) w x y z, sensor to world, None where no
    attitude was asked for; noise, the deviation of one sample that the file declares, in `unit`, 0 where it declares
    none; `source` and `attitude` say where they are from, `notes` what was left out; `exact` where the attitude is a
    simulation's own.
    """

    field: Vectors
    rotation_ws: Quaternions | None
    unit: str | None
    noise: float
    source: str
    attitude: str
    notes: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True, eq=False)
class _Found:
    """What a format gives: field (n, 3), rotation_ws (n, 4) or None, unit, noise, where from; rows may hold NaN."""

    field: FloatArray
    rotation: FloatArray | None
    unit: str | None
    noise: float
    source: str
    attitude: str = "none"
    notes: tuple[str, ...] = ()
    exact: bool = False


def read(
    path: str | os.PathLike[str],
    *,
    sensor: str | None = None,
    attitude: str = "none",
    unit: str | None = None,
    mounting: Sequence[float] | None = None,
    run: int = 0,
) -> Samples:
    """Return the readings of one magnetometer in a file, and its attitude.

    `sensor` is a sensor's full name, a topic, or three columns `mx,my,mz`; needed where there are several. `attitude`
    is "none", "truth" (of a recording of navsense; a CSV's own columns), an IMU's name, a topic (`sensor_msgs/Imu`,
    `nav_msgs/Odometry`, `PoseStamped`, ...), `/tf` or `/tf:FRAME`, or four columns `qw,qx,qy,qz`. `unit` is that of the
    numbers or "none", tesla unless the file says otherwise. `mounting` is the sensor's roll, pitch, yaw (rad) on the
    body that the attitude is of, where the file does not say it. `run` counts the runs of a recording from 0.
    Raises `CalibrationError`, `SinkError`.
    """
    path = Path(path)
    turn = _turn(mounting)
    suffix = path.suffix.lower()
    if _bags.is_bag(path):
        found = _from_bag(path, sensor, attitude, turn)
    elif suffix in RECORDINGS:
        found = _from_recording(path, sensor, attitude, turn, run)
    elif suffix in _tables.SUFFIXES:
        found = _from_table(path, sensor, attitude, turn)
    else:
        known = ", ".join((*RECORDINGS, *_bags.SUFFIXES, *_tables.SUFFIXES))
        where = Where(str(path))
        raise CalibrationError(
            "suffix", path.suffix, where=where, allowed=f"must be one of {known}, or a ROS 2 bag's folder"
        )
    return _cleaned(path, found, unit)


def strength_in(text: str, unit: str | None) -> float:
    """Return a strength such as `48.3uT` in the unit of readings, or in the unit where the text has none.

    Raises `CalibrationError` for what is no number, has an unknown unit, or one where the readings have none.
    """
    number = text.rstrip("TGmun ")
    given = text[len(number) :].strip() or unit
    value = decimal(number)
    if value is None or (given is not None and given not in UNITS):
        raise CalibrationError("strength", text, allowed=f"must be a number, or one with a unit of {', '.join(UNITS)}")
    if given == unit:
        if unit is not None and not believable(value * UNITS[unit]):
            remedy = f"give it with its unit, as 48.3uT: the readings are in {unit}"
            raise CalibrationError(f"strength ({unit})", text, allowed="is no field of the earth", remedy=remedy)
        return value
    if unit is None or given is None:
        raise CalibrationError("strength", text, allowed="must have no unit where the readings have none")
    return value * UNITS[given] / UNITS[unit]


def _turn(mounting: Sequence[float] | None) -> FloatArray | None:
    """Return a mounting, roll, pitch, yaw (rad), as a quaternion (4,)."""
    if mounting is None:
        return None
    angles = [float(angle) for angle in mounting]
    if len(angles) != 3 or not all(math.isfinite(angle) for angle in angles):
        raise CalibrationError("mounting", str(mounting), allowed="must be roll, pitch and yaw")
    return np.array(from_rpy(*angles))


def _cleaned(path: Path, found: _Found, unit: str | None) -> Samples:
    """Return what a format gave without the rows that hold no number."""
    notes = list(found.notes)
    keep: BoolArray = np.asarray(np.isfinite(found.field).all(axis=1))
    if not keep.all():
        notes.append(f"{keep.size - np.count_nonzero(keep)} of {keep.size} readings hold no number and are left out")
    turns = found.rotation
    if turns is not None:
        known = np.isfinite(turns).all(axis=1)
        if (keep & ~known).any():
            notes.append(
                f"{np.count_nonzero(keep & ~known)} of {keep.size} readings have no attitude near them and are left out"
            )
        if not known.any():
            remedy = "check that both were stamped by one clock, or that both were recorded"
            raise CalibrationError(
                "no reading has an attitude at its instant", found.attitude, where=Where(str(path)), remedy=remedy
            )
        keep = np.logical_and(keep, known)
        turns = np.ascontiguousarray(turns[keep])
    if unit and found.unit and unit != found.unit:
        notes.append(f"the file says {found.unit}; taken as {unit}, as asked")
    field: Vectors = np.ascontiguousarray(found.field[keep])
    named = unit or found.unit or "T"
    source = f"{field.shape[0]} readings, {found.source}"
    return Samples(
        field,
        turns,
        None if named == "none" else named,
        found.noise,
        source,
        found.attitude,
        tuple(notes),
        found.exact,
    )


def _from_bag(path: Path, name: str | None, attitude: str, mounting: FloatArray | None) -> _Found:
    """Return what a bag holds."""
    with _bags.opened(path) as bag:
        topic, series, field = _bags.field_of(bag, name)
        turns, said = (None, "none") if attitude == "none" else _bags.attitude_of(bag, attitude, series, mounting)
    unit = "T" if topic.type == _bags.MAGNETIC else None
    notes = (FUSED,) if _bags.IMU in said else ()
    source, exact = f"{topic.name} ({topic.type})", attitude == "truth"
    return _Found(field, turns, unit, _bags.declared(series), source, said, notes, exact)


def _from_table(path: Path, names: str | None, attitude: str, mounting: FloatArray | None) -> _Found:
    """Return what a CSV file holds."""
    table = _tables.read(path, names, attitude)
    turns, said = table.attitude, "none"
    if turns is not None:
        finite = np.isfinite(turns).all(axis=1)
        turns = turns.copy()
        turns[finite] = _bags.unit(turns[finite], "table")
        turns = turns if mounting is None else _attitude.products(turns, mounting)
        said = f"columns {', '.join(table.columns[3:])}"
    return _Found(table.field, turns, table.unit, 0.0, f"columns {', '.join(table.columns[:3])}", said)


def _from_recording(path: Path, name: str | None, attitude: str, mounting: FloatArray | None, run: int) -> _Found:
    """Return what a recording of navsense holds."""
    loaded = load(path)
    where = Where(str(path))
    named = _picked(loaded, name, where)
    reading, head = loaded[named], loaded.meta["sensors"][named]
    field = reading["field"]
    usable = reading.valid & reading.emitted
    if field.ndim == 3:
        if not 0 <= run < field.shape[0]:
            raise CalibrationError("run", run, where=where, allowed=f"must be from 0 to {field.shape[0] - 1}")
        field, usable = field[run], usable[run]
    field = np.where(usable[:, None], field, math.nan)
    noise = math.sqrt(float(np.mean(np.square(head.get("noise", {}).get("field", (0.0,))))))
    turns, said = None, "none"
    if attitude != "none":
        turns, said = _recorded_attitude(loaded, named, attitude, mounting, where)
    return _Found(field, turns, "T", noise, f"{named} (magnetometer)", said, exact=attitude == "truth")


def _picked(loaded: Loaded, name: str | None, where: Where) -> str:
    """Return the name of the magnetometer that is meant."""
    names = [one for one, reading in loaded.items() if reading.type == "magnetometer"]
    listed = ", ".join(names) or "none: it holds " + (", ".join(loaded) or "nothing")
    if name is not None and name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    if name is None and names:
        raise CalibrationError(
            "several magnetometers", listed, where=where, remedy=f"name one with --sensor {names[0]}"
        )
    what, value = ("no magnetometer in this recording", None) if name is None else ("magnetometer", name)
    raise CalibrationError(what, value, where=where, allowed=f"must be one of {listed}")


def _recorded_attitude(
    loaded: Loaded, sensor: str, attitude: str, mounting: FloatArray | None, where: Where
) -> tuple[Quaternions, str]:
    """Return rotation_ws (n, 4) of a recorded sensor by the truth of its link, or by an IMU on it, and who says so."""
    heads: Mapping[str, Any] = loaded.meta["sensors"]
    link = str(heads[sensor].get("link", sensor.rpartition("::")[0]))
    mount = mounting if mounting is not None else _mounting(heads[sensor], sensor, where)
    time = loaded[sensor].time
    if attitude == "truth":
        if link not in loaded.truth:
            remedy = "record with truth, or name an IMU with --attitude"
            raise CalibrationError("no truth of the link in this recording", link, where=where, remedy=remedy)
        truth = loaded.truth[link]
        turns, _ = _attitude.at(truth.time, truth.orientation, time)
        return _attitude.products(turns, mount), f"truth of {link}, through the sensor's mounting"
    named = [one for one, head in heads.items() if "orientation" in head["arrays"]]
    if attitude not in named:
        allowed = f"must be truth, none, or an IMU with orientation: {', '.join(named) or 'there is none'}"
        raise CalibrationError("--attitude", attitude, where=where, allowed=allowed)
    if heads[attitude].get("link") != link:
        raise CalibrationError(
            "--attitude", attitude, where=where, allowed=f"must be on the magnetometer's link, {link}"
        )
    body = _mounting(heads[attitude], attitude, where)
    inner = _attitude.products(_attitude.inverse(body), mount)
    reading = loaded[attitude]
    orientation = reading["orientation"] if reading["orientation"].ndim == 2 else reading["orientation"][0]
    turns, _ = _attitude.at(reading.time, orientation, time)
    return _attitude.products(turns, inner), f"orientation of {attitude}"


def _mounting(head: Mapping[str, Any], name: str, where: Where) -> FloatArray:
    """Return how a sensor stands on its link (4,), as the recording has it."""
    if "mounting" not in head:
        remedy = "give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 where it is aligned with its link"
        raise CalibrationError("the recording does not say how the sensor is mounted", name, where=where, remedy=remedy)
    return np.array(head["mounting"], dtype=np.float64)
