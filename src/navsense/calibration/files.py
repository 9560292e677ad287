"""Readings of a magnetometer out of files: recordings of navsense, ROS bags of anybody, CSV.

    samples = ns.calibration.read("drive.mcap", topic="/imu/mag", attitude="/odom")
    ns.calibration.known_attitude(samples.field, samples.rotation_ws)

`rotation_ws` takes sensor coordinates to world coordinates. In a recording of navsense the truth is taken at the true
time of each reading, in a bag the attitude at its stamp; between two samples it turns evenly. Rows without a number, or
without an attitude, are left out and counted in `notes`; an option that the file has no use for is an error.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from navsense import recordings
from navsense.calibration import _attitude, _bags, _tables
from navsense.calibration.ellipsoid import ellipsoid
from navsense.calibration.known_attitude import ATTITUDE_STDDEV, known_attitude
from navsense.calibration.picture import NORMAL_MEDIAN, residuals
from navsense.calibration.result import Calibration
from navsense.calibration.units import STRONGEST_FIELD, WEAKEST_FIELD, believable, likely
from navsense.errors import CalibrationError, Where
from navsense.factors.arguments import UNITS
from navsense.inputs import parse_decimal
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.pose import from_rpy
from navsense.recordings.base import check_target
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import Capability, Format, format_of_recording, list_formats, list_suffixes
from navsense.typing import BoolArray, FloatArray, IntArray, Quaternions, Times, Vectors

LARGEST_STDDEV = 45.0
"""Degrees that an attitude may be said to be off by; beyond, it is none."""

MOST = 0.5
"""Part of the readings that may lie between two attitudes that are too far apart."""

LOUDER = 3.0
"""Times the declared noise that residuals have to be for a note."""

OUTLYING = 5.0
"""Deviations of most readings beyond which one is an outlier."""

TURNED = 5.0
"""Degrees that a soft iron may turn the field by before the mounting is doubted: entries off symmetry by 0.17."""

_STRENGTH = re.compile(r"([^a-zA-Z]*(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]*)")
_POWERS = {name: round(math.log10(factor)) for name, factor in UNITS.items()}

FUSED = "an Imu's orientation is of use only where it was not made from this magnetometer"
"""What to think of before an orientation is taken for an attitude."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What a file holds for a calibration.

    field (n, 3) in `unit`, None for numbers without one; rotation_ws (n, 4) w x y z, sensor to world, None where no
    attitude was asked for; noise, the deviation of one sample that the file declares, in `unit`, 0 where it declares
    none; `source` and `attitude` say where they are from, `notes` what was left out or guessed; `exact` where the
    attitude is a simulation's own. row (n,) is which of the file's readings each is, counted from 0: those that are not
    among them were left out. time (n,) s is the true time in a recording of navsense, the stamp since the epoch in a
    bag (to 0.24 us, what a float holds of it), None in a table.
    """

    field: Vectors
    rotation_ws: Quaternions | None
    unit: str | None
    noise: float
    source: str
    attitude: str
    row: IntArray
    time: Times | None
    notes: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True, eq=False)
class _Found:
    """What a format gives: field (n, 3), time or None, attitude or None, unit, noise, source; rows may hold NaN."""

    field: FloatArray
    time: FloatArray | None
    attitude: _attitude.Attitude | None
    unit: str | None
    noise: float
    source: str
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

    `sensor` is a sensor's name or a topic, whole or what it ends in where one alone does, or three columns `mx,my,mz`
    (`mag1` for `mag1_x,mag1_y,mag1_z`); needed where there are several. `attitude` is "none", "truth" (of
    a recording of navsense; a CSV's own columns), an IMU's name, a topic (`sensor_msgs/Imu`, `nav_msgs/Odometry`,
    `PoseStamped`, ...), `/tf` or `/tf:FRAME`, or four columns `qw,qx,qy,qz`. `unit` is that of the numbers or "none",
    tesla unless the file says otherwise. `mounting` is the sensor's roll, pitch, yaw (rad) on the body that the
    attitude is of, where the file does not say it. `run` counts the runs of a recording from 0.
    Raises `CalibrationError`, `RecordingError`.
    """
    path = Path(path)
    turn = _turn(mounting)
    recording_format = None if path.is_file() and path.suffix.lower() in _tables.SUFFIXES else format_of_recording(path)
    _check_use(path, recording_format, attitude, mounting, run)
    if path.is_dir() if recording_format is None else recording_format.holds_messages:
        found = _from_bag(path, sensor, attitude, turn)
    elif recording_format is not None:
        found = _from_recording(path, sensor, attitude, turn, run)
    elif path.suffix.lower() in _tables.SUFFIXES:
        found = _from_table(path, sensor, attitude, turn)
    else:
        known = ", ".join(dict.fromkeys((*list_suffixes(), *_tables.SUFFIXES)))
        where = Where(str(path))
        raise CalibrationError(
            "suffix", path.suffix, where=where, allowed=f"must be one of {known}, or a ROS 2 bag's folder"
        )
    return _cleaned(path, found, unit)


def strength_in(text: str, unit: str | None) -> float:
    """Return a strength such as `48.3uT` in the unit of readings; the number itself where either has no unit.

    Raises `CalibrationError` for what is no number, or has an unknown unit.
    """
    number, named = _parts(text)
    given, value = named or unit, parse_decimal(number)
    if value is None or (given is not None and given not in UNITS):
        raise CalibrationError("strength", text, allowed=f"must be a number, or one with a unit of {', '.join(UNITS)}")
    if given is None:
        return value
    exact = Decimal(number.strip())
    if not believable(float(exact.scaleb(_POWERS[given]))):
        low, high = (f"{limit / UNITS[given]:.6g}" for limit in (WEAKEST_FIELD, STRONGEST_FIELD))
        meant = " or ".join(f"{number.strip()}{one}" for one in likely(value))
        remedy = f"is {meant} meant?" if meant else ""
        if not named:
            remedy = f"give it with its unit, as {meant or '48.3uT'}: the readings are in {unit}"
        allowed = f"must be from {low} to {high} {given}, as the earth's field is"
        raise CalibrationError("strength", text, allowed=allowed, remedy=remedy)
    return float(exact.scaleb(_POWERS[given] - _POWERS[unit or given]))


def _parts(text: str) -> tuple[str, str]:
    """Return number and unit of a strength, either of them empty where there is none."""
    parts = _STRENGTH.fullmatch(text.strip().replace("µ", "u").replace("μ", "u"))
    return (parts[1], parts[2]) if parts else ("", "")


def calibrated(
    samples: Samples, *, strength: str | None, soft_iron: bool, attitude_stddev: float | None
) -> tuple[Calibration, tuple[str, ...]]:
    """Return what `navsense calibrate` makes of samples and its options, and notes; errors speak of the options.

    Readings without a unit, counts of a converter, are calibrated to the unit that `strength` has.
    Raises `CalibrationError`.
    """
    known = None if strength is None else strength_in(strength, samples.unit)
    named = _parts(strength)[1] if strength is not None and samples.unit is None else ""
    within, off = None if named else known, stddev_of(attitude_stddev, samples)
    try:
        if samples.rotation_ws is None:
            result = ellipsoid(samples.field, unit=samples.unit, strength=within, soft_iron=soft_iron)
        else:
            result = known_attitude(
                samples.field,
                samples.rotation_ws,
                unit=samples.unit,
                strength=within,
                soft_iron=soft_iron,
                attitude_stddev=off,
            )
    except CalibrationError as error:
        error.what, error.allowed, error.remedy = map(in_options, (error.what, error.allowed, error.remedy))
        raise
    notes = (*louder(samples, result), *turned(result))
    if named:
        notes = (*notes, f"the readings have no unit; what is calibrated is in {named}")
        result = replace(result, strength=known)
    return result, notes


def turned(result: Calibration) -> tuple[str, ...]:
    """Return the note on the rotation R of the soft iron S = R P, P symmetric and positive; none without attitude.

    A sensor that is mounted otherwise than was said has its wrong turn there.
    """
    if result.direction is None:
        return ()
    left, _, right = np.linalg.svd(result.soft_iron)
    turn = left @ right
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        return ()
    angle = math.degrees(math.atan2(length, float(np.trace(turn)) - 1.0))
    about = ", ".join(f"{value:.2f}" for value in axis / length)
    note = f"the soft iron turns the field by {angle:.2g} deg about ({about}) in the sensor"
    if angle > TURNED:
        note += (
            ", more than iron does: is the mounting right, and the attitude that of this sensor's body?"
            " What is calibrated is turned back by as much"
        )
    return (note,)


def in_options(text: str) -> str:
    """Return a text about arguments as one about the command's options."""
    text = re.sub(r'\bunit="?(\w+)"?', r"--unit \1", text).replace("--unit None", "--unit none")
    return re.sub(r"\bthe attitude's own attitude_stddev\b|\battitude_stddev\b", "--attitude-stddev", text)


def check_output(path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
    """Raise `CalibrationError` or `RecordingError` where no file of these suffixes can be written at `path`."""
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise CalibrationError("output", str(path), allowed=f"must be a name that ends in {', '.join(suffixes)}")
    check_target(target)
    was_there = target.exists()
    try:
        with target.open("ab"):
            pass
        if not was_there:
            target.unlink()
    except OSError as error:
        remedy = "choose a place that you may write to"
        raise CalibrationError(
            "output", error.strerror or str(error), where=Where(str(target)), remedy=remedy
        ) from error


def stddev_of(degrees: float | None, samples: Samples) -> float:
    """Return what attitudes are off by (rad), of `--attitude-stddev`. Raises `CalibrationError` for what cannot be."""
    if degrees is None:
        return 0.0 if samples.exact else ATTITUDE_STDDEV
    allowed = f"must be from 0 to {LARGEST_STDDEV:g} degrees"
    if samples.rotation_ws is None:
        allowed = "is of an attitude: name one with --attitude"
    elif 0.0 <= degrees <= LARGEST_STDDEV:
        return math.radians(degrees)
    raise CalibrationError("--attitude-stddev", degrees, allowed=allowed)


def louder(samples: Samples, result: Calibration) -> tuple[str, ...]:
    """Return the note that residuals are larger than the noise that a file declares, none where they are not.

    It names outliers where most readings are no noisier than declared, and few make the residuals large.
    """
    times = result.residual_stddev / samples.noise if samples.noise > 0.0 else 0.0
    if times <= LOUDER:
        return ()
    note = f"the residuals are {times:.3g} times the noise that the file declares, {samples.noise:.3g}"
    note += f" {samples.unit}" if samples.unit else ""
    left = np.abs(residuals(samples.field, result, samples.rotation_ws))
    usual = float(np.median(left)) / NORMAL_MEDIAN
    far = np.flatnonzero((left.reshape(samples.row.size, -1) > OUTLYING * max(usual, samples.noise)).any(axis=1))
    if usual <= LOUDER * samples.noise and far.size:
        note += (
            f"; {far.size} of {samples.row.size} readings lie more than {OUTLYING:g} times the others' noise off, row"
            f" {samples.row[far[0]]} of the file first: outliers, leave them out and calibrate again"
        )
    return (note,)


def _check_use(
    path: Path, recording_format: Format | None, attitude: str, mounting: Sequence[float] | None, run: int
) -> None:
    """Raise `CalibrationError` for an option that there is no use for."""
    where = Where(str(path))
    if mounting is not None and attitude == "none":
        raise CalibrationError("mounting", where=where, allowed="is of an attitude: name one with --attitude")
    if run != 0 and (recording_format is None or Capability.RUNS not in recording_format.capabilities):
        several = list_suffixes(one for one in list_formats() if Capability.RUNS in one.capabilities)
        allowed = f"must be 0: only recordings of navsense ({', '.join(several)}) hold several runs"
        raise CalibrationError("run", run, where=where, allowed=allowed)


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
    turns = None
    if found.attitude is not None:
        notes += [*found.attitude.notes, *_unknown(path, found.attitude, keep)]
        keep = np.logical_and(keep, found.attitude.why == _attitude.KNOWN)
        turns = np.ascontiguousarray(found.attitude.rotation[keep])
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
        "none" if found.attitude is None else found.attitude.said,
        np.flatnonzero(keep),
        None if found.time is None else np.ascontiguousarray(found.time[keep]),
        tuple(notes),
        found.exact,
    )


def _unknown(path: Path, attitude: _attitude.Attitude, keep: BoolArray) -> list[str]:
    """Return notes on readings (n,) that have no attitude.

    Raises `CalibrationError` where none has one, or where most lie between attitudes too far apart: one that was
    sampled so slowly is not known in the rest either, where it may have turned all the way round.
    """
    angle = f"{math.degrees(_attitude.FARTHEST_TURN):.3g} deg"
    reasons = {
        _attitude.APART: ("have no attitude near them", "check that both were stamped by one clock, and both recorded"),
        _attitude.TURNED: (
            f"lie between two attitudes that are more than {angle} apart",
            "turn slower, or record the attitude more often",
        ),
    }
    counts = {why: int(np.count_nonzero(keep & (attitude.why == why))) for why in reasons}
    count = np.count_nonzero(keep)
    if count and (sum(counts.values()) == count or counts[_attitude.TURNED] > MOST * count):
        what, remedy = reasons[max(counts, key=lambda why: counts[why])]
        raise CalibrationError(
            f"{sum(counts.values())} of {count} readings have no attitude at their instants",
            attitude.said,
            where=Where(str(path)),
            allowed=f"{max(counts.values())} of them {what}",
            remedy=remedy,
        )
    return [
        f"{counts[why]} of {keep.size} readings {what} and are left out" + f"; {remedy}" * (why == _attitude.TURNED)
        for why, (what, remedy) in reasons.items()
        if counts[why]
    ]


def _from_bag(path: Path, name: str | None, attitude: str, mounting: FloatArray | None) -> _Found:
    """Return what a bag holds."""
    with _bags.opened(path) as bag:
        topic, series, field = _bags.field_of(bag, name)
        turns = None if attitude == "none" else _bags.attitude_of(bag, attitude, series, mounting)
    unit = "T" if topic.type == _bags.MAGNETIC else None
    notes = (FUSED,) if turns is not None and _bags.IMU in turns.said else ()
    source, exact = f"{topic.name} ({topic.type})", attitude == "truth"
    return _Found(
        field, series.stamp / NANOSECONDS_PER_SECOND, turns, unit, _bags.declared(series), source, notes, exact
    )


def _from_table(path: Path, names: str | None, attitude: str, mounting: FloatArray | None) -> _Found:
    """Return what a CSV file holds."""
    table = _tables.read(path, names, attitude)
    source, found = f"columns {', '.join(table.columns[:3])}", None
    note = f"mounting guessed: columns do not say which body's attitude they hold; {_attitude.GUESSED}"
    if table.attitude is not None:
        said = f"columns {', '.join(table.columns[3:])}"
        turns = _bags.unit(table.attitude, said, Where(str(path)))
        why = np.where(np.isfinite(turns).all(axis=1), _attitude.KNOWN, _attitude.APART)
        turns = turns if mounting is None else _attitude.products(turns, mounting)
        found = _attitude.Attitude(turns, why, said, (note,) if mounting is None else ())
    return _Found(table.field, None, found, table.unit, 0.0, source)


def _from_recording(path: Path, name: str | None, attitude: str, mounting: FloatArray | None, run: int) -> _Found:
    """Return what a recording of navsense holds."""
    loaded = recordings.open(path)
    where = Where(str(path))
    named = _picked(loaded, name, where)
    reading, head = loaded[named], loaded.metadata["sensors"][named]
    field = reading["field"]
    usable = reading.valid & reading.emitted
    count = field.shape[0] if field.ndim == 3 else 1
    if not 0 <= run < count:
        allowed = f"must be from 0 to {count - 1}" if count > 1 else "must be 0: it holds one run"
        raise CalibrationError("run", run, where=where, allowed=allowed)
    if field.ndim == 3:
        field, usable = field[run], usable[run]
    field = np.where(usable[:, None], field, math.nan)
    noise = math.sqrt(float(np.mean(np.square(head.get("noise", {}).get("field", (0.0,))))))
    turns = None
    if attitude != "none":
        turns = _recorded_attitude(loaded, named, attitude, mounting, run, where)
    source = f"{named} (magnetometer)"
    return _Found(field, np.asarray(reading.time), turns, "T", noise, source, exact=attitude == "truth")


def _picked(loaded: Dataset, name: str | None, where: Where) -> str:
    """Return the name of the magnetometer that is meant."""
    names = [one for one, reading in loaded.items() if reading.type == "magnetometer"]
    listed = ", ".join(names) or "none: it holds " + (", ".join(loaded) or "nothing")
    if name is not None and (whole := _whole(name, names)):
        return whole
    if name is None and len(names) == 1:
        return names[0]
    if name is None and names:
        remedy = f"name one with --sensor {names[0]}"
        raise CalibrationError(f"several magnetometers: {listed}", where=where, remedy=remedy)
    what, value = ("no magnetometer in this recording", None) if name is None else ("magnetometer", name)
    raise CalibrationError(what, value, where=where, allowed=f"must be one of {listed}")


def _whole(name: str, names: Sequence[str]) -> str:
    """Return the full name of a sensor that is named whole or by what its name alone ends in, else nothing."""
    ending = [one for one in names if one.endswith(f"::{name}")]
    if name in names:
        return name
    return ending[0] if len(ending) == 1 else ""


def _recorded_attitude(
    loaded: Dataset, sensor: str, attitude: str, mounting: FloatArray | None, run: int, where: Where
) -> _attitude.Attitude:
    """Return rotation_ws of a recorded sensor by the truth of its link, or by an IMU on it."""
    heads: Mapping[str, Any] = loaded.metadata["sensors"]
    link = str(heads[sensor].get("link", sensor.rpartition("::")[0]))
    mount = mounting if mounting is not None else _mounting(heads[sensor], sensor, where)
    time = loaded[sensor].time
    if attitude == "truth":
        if link not in loaded.truth:
            remedy = "record with truth, or name an IMU with --attitude"
            raise CalibrationError("no truth of the link in this recording", link, where=where, remedy=remedy)
        truth = loaded.truth[link]
        turns, why = _attitude.at(truth.time, truth.orientation, time)
        said = f"truth of {link}, through the sensor's mounting"
        return _attitude.Attitude(_attitude.products(turns, mount), why, said)
    named = [one for one, head in heads.items() if "orientation" in head["arrays"]]
    attitude = _whole(attitude, named) or attitude
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
    orientation = reading["orientation"] if reading["orientation"].ndim == 2 else reading["orientation"][run]
    turns, why = _attitude.at(reading.time, orientation, time)
    return _attitude.Attitude(_attitude.products(turns, inner), why, f"orientation of {attitude}")


def _mounting(head: Mapping[str, Any], name: str, where: Where) -> FloatArray:
    """Return how a sensor stands on its link (4,), as the recording has it."""
    if "mounting" not in head:
        remedy = "give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 where it is aligned with its link"
        raise CalibrationError("the recording does not say how the sensor is mounted", name, where=where, remedy=remedy)
    return np.array(head["mounting"], dtype=np.float64)
