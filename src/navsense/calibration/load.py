"""Magnetometer readings from files: recordings of navsense, ROS bags of any source, CSV.

    samples = ns.calibration.read("drive.mcap", sensor="/imu/mag", attitude="/odom")
    ns.calibration.known_attitude(samples.field, samples.rotation_ws)

`rotation_ws` takes sensor coordinates to world coordinates. In a recording of navsense, the true attitude is taken at
the true time of each reading; in a bag, the attitude at the stamp of the reading. Attitudes are interpolated with
constant angular velocity. Rows without a valid reading or attitude are left out and counted in `notes`. An option that
does not apply to the file is an error.
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
from navsense.calibration import _attitude, _bags, csv_columns
from navsense.calibration._attitude import AttitudeSeries
from navsense.calibration.ellipsoid import ellipsoid
from navsense.calibration.known_attitude import (
    ATTITUDE_STDDEV,
    compute_rotation_angle,
    find_nearest_rotation,
    known_attitude,
)
from navsense.calibration.picture import NORMAL_MEDIAN, compute_residuals
from navsense.calibration.result import Calibration
from navsense.calibration.units import (
    MAX_FIELD,
    MIN_FIELD,
    POWERS,
    convert_field,
    format_field,
    is_plausible_strength,
    list_plausible_units,
    normalize_unit,
)
from navsense.calibration.verdict import format_vector
from navsense.core.errors import CalibrationError, UnknownNameError, Where
from navsense.core.names import resolve_name, suggest_name
from navsense.core.pose import from_rpy
from navsense.core.rotation import multiply_arrays
from navsense.core.summaries import Summary, format_summary_html, format_title
from navsense.core.text import format_count, parse_decimal
from navsense.core.typing import BoolArray, FloatArray, IntArray, Quaternions, Times, Vectors
from navsense.core.units import MAGNETIC_FIELD_UNITS
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.recordings.base import check_output_file, to_path
from navsense.recordings.dataset import Dataset, select_run_by_index
from navsense.recordings.format import Capability, Format, find_format_of_recording, list_formats, list_suffixes
from navsense.recordings.quantities import FIELD_TYPES, QUANTITIES

MAX_ATTITUDE_STDDEV = 45.0
"""Largest standard deviation of the attitude (deg)."""

MAX_FAST_SHARE = 0.5
"""Largest share of readings between attitudes that are too far apart."""

MAX_NOISE_RATIO = 3.0
"""Residuals relative to the declared noise above which there is a note."""

OUTLIER_STDDEVS = 5.0
"""Residual of an outlier in standard deviations of most readings."""

MAX_IRON_ROTATION = 5.0
"""Rotation of the field by a soft iron (deg) above which the mounting is doubtful: asymmetry of the entries of 0.17."""

FUSED_NOTE = "the orientation of an Imu is useful only if it does not depend on this magnetometer"
"""Note on an orientation from sensor fusion."""

_STRENGTH = re.compile(r"([^a-zA-Z]*(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]*)")

NO_UNIT = "none"
"""Name of the unit of numbers without a unit."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Magnetometer readings of a file, with attitudes if requested.

    field: (n, 3) in `unit`, sensor frame.
    rotation_ws: (n, 4) w x y z, sensor to world, or None.
    unit: None for numbers without a unit.
    noise: standard deviation of a reading as declared in the file, in `unit`, 0 if not declared.
    source, attitude: description of their origin.
    row: (n,), number of each reading in the file, from 0.
    time: (n,) in s: true time in a recording of navsense, stamp since the epoch in a bag (to 0.24 us), None in a table.
    notes: on rows that were left out, and on assumptions.
    exact: True if the attitude is the truth of a simulation.

    >>> samples = ns.calibration.read("drive.npz", attitude="truth", unit="nT")
    >>> samples.field.shape, samples.rotation_ws.shape, samples.unit
    ((599, 3), (599, 4), 'nT')
    >>> samples.calibrate().verdict.ok
    True
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

    __repr__, _repr_html_ = format_title, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        title = f"from {self.source}; attitude: {self.attitude}"
        strength = np.sqrt((self.field**2).sum(axis=1))
        rows = [
            (name, *(f"{value:.6g}" for value in (values.min(), values.mean(), values.max())))
            for name, values in zip(("x", "y", "z", "length"), (*self.field.T, strength), strict=True)
            if values.size
        ]
        unit = f" ({self.unit})" if self.unit else ""
        return Summary("Samples", title, ("field", f"minimum{unit}", f"mean{unit}", f"maximum{unit}"), rows)

    def calibrate(self, *, strength: float | None = None, soft_iron: bool = True) -> Calibration:
        """Return the calibration in the unit of the readings: by their attitude, or by an ellipsoid if there is none.

        strength: of the local magnetic field, in the unit of the readings.
        soft_iron: False estimates scale and bias only.

        The standard deviation of the attitude is 0.5 degrees, or 0 for the truth of a simulation. Raises
        `CalibrationError`.
        """
        return _calibrate(self, strength=strength, soft_iron=soft_iron, stddev=_attitude_stddev(None, self))


@dataclass(frozen=True, eq=False)
class _FileContents:
    """Contents of a file before invalid rows are removed: field (n, 3), attitude, declared unit and noise."""

    field: FloatArray
    time: FloatArray | None
    attitude: AttitudeSeries | None
    unit: str | None
    noise: float
    source: str
    notes: tuple[str, ...] = ()
    exact: bool = False


def read(
    path: str | os.PathLike[str],
    *,
    sensor: str | None = None,
    attitude: str | None = None,
    unit: str | None = None,
    file_unit: str | None = None,
    mounting: Sequence[float] | None = None,
    run: int = 0,
) -> Samples:
    """Read the readings of one magnetometer in a file, and its attitude.

    sensor: name of a sensor, a topic, or an unambiguous ending of one; in CSV, three columns `mx,my,mz`, or `mag1` for
        `mag1_x,mag1_y,mag1_z`. Required if there are several.
    attitude: None or "none"; "truth" (of a recording of navsense, or the attitude columns of a CSV); name of an IMU;
        topic of type `sensor_msgs/Imu`, `nav_msgs/Odometry`, `PoseStamped`, ...; `/tf` or `/tf:FRAME`; four columns
        `qw,qx,qy,qz`.
    unit: of the returned readings: "T", "mT", "uT", "nT", "G", "mG", or "none" for the numbers as they are in the
        file. Default: the unit in the file.
    file_unit: of the numbers in the file, if the file has a wrong unit or none. Default: the unit in the file, else
        `unit`, else tesla. With "none" the readings have no unit.
    mounting: roll, pitch, yaw (rad) of the sensor on the body of the attitude, if not in the file.
    run: number of a run in a recording, from 0.

    >>> samples = ns.calibration.read("drive.npz", sensor="compass", attitude="truth", unit="nT")
    >>> samples.unit, samples.source
    ('nT', '599 readings, robot::arm::compass (magnetometer)')

    Raises `CalibrationError`, `RecordingError`.
    """
    path, attitude = to_path(path), "none" if attitude is None else attitude
    unit, file_unit = normalize_unit(unit), normalize_unit(file_unit)
    rotation_bs = _to_quaternion(mounting)
    is_table = not path.is_dir() and path.suffix.lower() in csv_columns.SUFFIXES
    recording_format = None if is_table else find_format_of_recording(path)
    if not is_table and recording_format is None and not path.is_dir():
        suffixes = ", ".join(dict.fromkeys((*list_suffixes(), *csv_columns.SUFFIXES)))
        allowed = f"must be one of {suffixes}, or the folder of a ROS 2 bag"
        raise CalibrationError("suffix", path.suffix, where=Where(str(path)), allowed=allowed)
    try:
        _check_unit("unit", unit)
        _check_unit("file_unit", file_unit)
        _check_options(recording_format, attitude, mounting, run)
        if is_table:
            contents = _read_table(path, sensor, attitude, rotation_bs)
        elif recording_format is None or recording_format.open_messages:
            contents = _read_bag(path, sensor, attitude, rotation_bs)
        else:
            contents = _read_recording(path, sensor, attitude, rotation_bs, run)
        return _select_valid_rows(contents, unit, file_unit)
    except CalibrationError as error:
        error.where = error.where or Where(str(path))
        raise


def _check_unit(option: str, unit: str | None) -> None:
    names = (*MAGNETIC_FIELD_UNITS, NO_UNIT)
    if unit is not None and unit not in names:
        remedy = suggest_name(str(unit), names)
        raise CalibrationError(option, unit, allowed=f"must be one of {', '.join(names)}", remedy=remedy)


def parse_strength(text: str, unit: str | None) -> float:
    """Return a strength such as `48.3uT` in the unit of the readings; the number itself if either has no unit.

    Raises `CalibrationError` for an invalid number, an unknown unit and an implausible strength.
    """
    number, own_unit = _split_unit(text)
    given, value = own_unit or unit, parse_decimal(number)
    if value is None or (given is not None and given not in MAGNETIC_FIELD_UNITS):
        allowed = f"must be a number, or one with a unit of {', '.join(MAGNETIC_FIELD_UNITS)}"
        raise CalibrationError("strength", text, allowed=allowed)
    if given is None:
        return value
    exact = Decimal(number.strip())
    if not is_plausible_strength(float(exact.scaleb(POWERS[given]))):
        low, high = (f"{limit / MAGNETIC_FIELD_UNITS[given]:.6g}" for limit in (MIN_FIELD, MAX_FIELD))
        guess = " or ".join(f"{number.strip()}{name}" for name in list_plausible_units(value))
        remedy = f"write {guess}" if guess else ""
        if not own_unit:
            remedy = f"give it with its unit, as {guess or '48.3uT'}: the readings are in {unit}"
        allowed = f"must be from {low} to {high} {given}, as the earth's field is"
        raise CalibrationError("strength", text, allowed=allowed, remedy=remedy)
    return float(exact.scaleb(POWERS[given] - POWERS[unit or given]))


def _split_unit(text: str) -> tuple[str, str]:
    """Return number and unit of a strength. Either can be empty."""
    parts = _STRENGTH.fullmatch(normalize_unit(text.strip()))
    return (parts[1], parts[2]) if parts else ("", "")


def _calibrate(samples: Samples, *, strength: float | None, soft_iron: bool, stddev: float) -> Calibration:
    """Return the calibration of samples; `stddev` is the standard deviation of their attitude (rad)."""
    if samples.rotation_ws is None:
        return ellipsoid(samples.field, unit=samples.unit, strength=strength, soft_iron=soft_iron)
    return known_attitude(
        samples.field,
        samples.rotation_ws,
        unit=samples.unit,
        strength=strength,
        soft_iron=soft_iron,
        attitude_stddev=stddev,
    )


def calibrate_samples(
    samples: Samples, *, strength: str | None, soft_iron: bool, attitude_stddev: float | None
) -> tuple[Calibration, tuple[str, ...]]:
    """Return calibration and notes of `navsense calibrate`. Errors name the options of the command.

    attitude_stddev is in degrees. Readings without a unit are calibrated to the unit of `strength`. Raises
    `CalibrationError`.
    """
    value = None if strength is None else parse_strength(strength, samples.unit)
    target_unit = _split_unit(strength)[1] if strength is not None and samples.unit is None else ""
    known, stddev = None if target_unit else value, _attitude_stddev(attitude_stddev, samples)
    try:
        result = _calibrate(samples, strength=known, soft_iron=soft_iron, stddev=stddev)
    except CalibrationError as error:
        error.what, error.allowed, error.remedy = map(use_option_names, (error.what, error.allowed, error.remedy))
        raise
    notes = (*list_noise_notes(samples, result), *list_rotation_notes(result))
    if target_unit:
        notes = (*notes, f"the readings have no unit; the calibrated field is in {target_unit}")
        result = replace(result, strength=value)
    return result, notes


def list_rotation_notes(result: Calibration) -> tuple[str, ...]:
    """Return a note on the rotation R of a soft iron S = R P, with P symmetric and positive; none without attitude.

    An error of the mounting appears as such a rotation.
    """
    if result.direction is None:
        return ()
    angle, axis = compute_rotation_angle(find_nearest_rotation(result.soft_iron))
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        return ()
    angle = math.degrees(angle)
    note = f"the soft iron turns the field by {angle:.2g} deg about {format_vector(axis / length, '.2f')} in the sensor"
    if angle > MAX_IRON_ROTATION:
        note += (
            ", more than iron does: check the mounting, and that the attitude is that of this sensor's body."
            " The calibrated field is rotated back by the same angle"
        )
    return (note,)


def use_option_names(text: str) -> str:
    """Return a text with the names of Python arguments replaced by options of the command."""
    text = re.sub(r'\bunit="?(\w+)"?', r"--unit \1", text).replace("--unit None", "--unit none")
    return re.sub(r"\battitude_stddev\b", "--attitude-stddev", text)


def check_calibration_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
    """Raise `CalibrationError` or `RecordingError` unless `path` has one of these suffixes and can be written."""
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        raise CalibrationError("output", str(path), allowed=f"must be a name that ends in {', '.join(suffixes)}")
    check_output_file(target)
    existed = target.exists()
    try:
        with target.open("ab"):
            pass
        if not existed:
            target.unlink()
    except OSError as error:
        what, remedy = error.strerror or str(error), "choose a folder that is writable"
        raise CalibrationError("output", what, where=Where(str(target)), remedy=remedy) from error


def _attitude_stddev(degrees: float | None, samples: Samples) -> float:
    """Return the standard deviation of the attitude (rad). Raises `CalibrationError` for an invalid option."""
    if degrees is None:
        return 0.0 if samples.exact else ATTITUDE_STDDEV
    allowed = f"must be from 0 to {MAX_ATTITUDE_STDDEV:g} degrees"
    if samples.rotation_ws is None:
        allowed = "requires an attitude: name one with --attitude"
    elif 0.0 <= degrees <= MAX_ATTITUDE_STDDEV:
        return math.radians(degrees)
    raise CalibrationError("--attitude-stddev", degrees, allowed=allowed)


def list_noise_notes(samples: Samples, result: Calibration) -> tuple[str, ...]:
    """Return a note if the residuals are larger than the noise that the file declares.

    It names outliers if most residuals agree with the declared noise, and a few of them are large.
    """
    ratio = result.residual_stddev / samples.noise if samples.noise > 0.0 else 0.0
    if ratio <= MAX_NOISE_RATIO:
        return ()
    noise = format_field(samples.noise, samples.unit)
    note = f"the residuals are {ratio:.3g} times the noise that the file declares, {noise}"
    residuals = np.abs(compute_residuals(samples.field, result, samples.rotation_ws))
    usual = float(np.median(residuals)) / NORMAL_MEDIAN
    limit = OUTLIER_STDDEVS * max(usual, samples.noise)
    outliers = np.flatnonzero((residuals.reshape(samples.row.size, -1) > limit).any(axis=1))
    if usual <= MAX_NOISE_RATIO * samples.noise and outliers.size:
        note += (
            f"; {outliers.size} of {samples.row.size} readings have residuals above {OUTLIER_STDDEVS:g} times the noise"
            f" of the others, row {samples.row[outliers[0]]} of the file first: leave out these outliers and calibrate"
            " again"
        )
    return (note,)


def _check_options(recording_format: Format | None, attitude: str, mounting: Sequence[float] | None, run: int) -> None:
    """Raise `CalibrationError` for an option that does not apply."""
    if mounting is not None and attitude == "none":
        raise CalibrationError("mounting", allowed="requires an attitude: name one with --attitude")
    if run != 0 and (recording_format is None or Capability.RUNS not in recording_format.capabilities):
        suffixes = list_suffixes(one for one in list_formats() if Capability.RUNS in one.capabilities)
        allowed = f"must be 0: only recordings of navsense ({', '.join(suffixes)}) hold several runs"
        raise CalibrationError("run", run, allowed=allowed)


def _to_quaternion(mounting: Sequence[float] | None) -> FloatArray | None:
    """Return the quaternion (4,) of a mounting: roll, pitch, yaw (rad)."""
    if mounting is None:
        return None
    angles = [float(angle) for angle in mounting]
    if len(angles) != 3 or not all(math.isfinite(angle) for angle in angles):
        raise CalibrationError("mounting", str(mounting), allowed="must be roll, pitch and yaw, finite numbers")
    return np.array(from_rpy(*angles))


def _select_valid_rows(contents: _FileContents, unit: str | None, file_unit: str | None) -> Samples:
    """Return the rows with a valid reading and, if requested, a valid attitude."""
    notes = list(contents.notes)
    keep: BoolArray = np.asarray(np.isfinite(contents.field).all(axis=1))
    if not keep.all():
        notes.append(f"{keep.size - np.count_nonzero(keep)} of {keep.size} readings are invalid and are left out")
    rotation = None
    if contents.attitude is not None:
        notes += [*contents.attitude.notes, *_list_missing_attitude_notes(contents.attitude, keep)]
        keep = np.logical_and(keep, contents.attitude.status == _attitude.AVAILABLE)
        rotation = np.ascontiguousarray(contents.attitude.rotation[keep])
    if file_unit and contents.unit and file_unit != contents.unit:
        notes.append(f"the given unit {file_unit} replaces the unit of the file, {contents.unit}")
    field: Vectors = np.ascontiguousarray(contents.field[keep])
    given = file_unit or contents.unit or unit or "T"
    unit, noise = unit or given, contents.noise
    if NO_UNIT in (unit, given):
        unit = NO_UNIT
    elif unit != given:
        field, noise = convert_field(field, given, unit), float(convert_field(noise, given, unit))
    return Samples(
        field=field,
        rotation_ws=rotation,
        unit=None if unit == NO_UNIT else unit,
        noise=noise,
        source=f"{format_count(field.shape[0], 'reading')}, {contents.source}",
        attitude="none" if contents.attitude is None else contents.attitude.source,
        row=np.flatnonzero(keep),
        time=None if contents.time is None else np.ascontiguousarray(contents.time[keep]),
        notes=tuple(notes),
        exact=contents.exact,
    )


def _list_missing_attitude_notes(attitude: AttitudeSeries, keep: BoolArray) -> list[str]:
    """Return notes on readings (n,) without attitude.

    Raises `CalibrationError` if all readings lack one, or if most are between attitudes that are too far apart: the
    others may then be wrong by full turns.
    """
    angle = f"{math.degrees(_attitude.MAX_ROTATION):.3g} deg"
    problems = {
        _attitude.NO_SAMPLE_NEAR: (
            "have no attitude near them",
            "check that one clock stamps both, and that both were recorded",
        ),
        _attitude.FAST_ROTATION: (
            f"lie between two attitudes that are more than {angle} apart",
            "turn slower, or record the attitude more often",
        ),
    }
    counts = {status: int(np.count_nonzero(keep & (attitude.status == status))) for status in problems}
    total = np.count_nonzero(keep)
    if total and (sum(counts.values()) == total or counts[_attitude.FAST_ROTATION] > MAX_FAST_SHARE * total):
        problem, remedy = problems[max(counts, key=lambda status: counts[status])]
        raise CalibrationError(
            f"{sum(counts.values())} of {total} readings have no attitude at their time",
            attitude.source,
            allowed=f"{max(counts.values())} of them {problem}",
            remedy=remedy,
        )
    return [
        f"{counts[status]} of {keep.size} readings {problem} and are left out"
        + f"; {remedy}" * (status == _attitude.FAST_ROTATION)
        for status, (problem, remedy) in problems.items()
        if counts[status]
    ]


def _read_bag(path: Path, name: str | None, attitude: str, mounting: FloatArray | None) -> _FileContents:
    with _bags.open_bag(path) as bag:
        topic = _bags.select_topic(bag, name, FIELD_TYPES, "magnetometer", "--sensor")
        field = _bags.read_topic(bag, topic, QUANTITIES[topic.type].field, "xyz")
        series = None if attitude == "none" else _bags.read_attitude(bag, attitude, field, mounting)
    return _FileContents(
        field.values,
        field.stamp / NANOSECONDS_PER_SECOND,
        series,
        unit="T" if topic.type == _bags.MAGNETIC else None,
        noise=_bags.read_declared_stddev(field),
        source=f"{topic.name} ({topic.type})",
        notes=(FUSED_NOTE,) if series is not None and _bags.IMU in series.source else (),
        exact=attitude == "truth",
    )


def _read_table(path: Path, names: str | None, attitude: str, mounting: FloatArray | None) -> _FileContents:
    values, unit, columns = csv_columns.read_csv(path, names, attitude)
    series = None
    if attitude != "none":
        source = f"columns {', '.join(columns[3:])}"
        rotation = _bags.normalize(values[:, 3:], source)
        status = np.where(np.isfinite(rotation).all(axis=1), _attitude.AVAILABLE, _attitude.NO_SAMPLE_NEAR)
        notes: tuple[str, ...] = ()
        if mounting is None:
            notes = (f"mounting assumed: columns do not name the body of the attitude; {_attitude.ASSUMED_ALIGNED}",)
        else:
            rotation = multiply_arrays(rotation, mounting)
        series = AttitudeSeries(rotation, status, source, notes)
    return _FileContents(values[:, :3], None, series, unit, 0.0, f"columns {', '.join(columns[:3])}")


def _read_recording(
    path: Path, name: str | None, attitude: str, mounting: FloatArray | None, run: int
) -> _FileContents:
    dataset = recordings.open(path)
    sensor = _select_magnetometer(dataset, name)
    reading, head = dataset[sensor], dataset.metadata["sensors"][sensor]
    runs = reading["field"].shape[0] if reading["field"].ndim == 3 else 1
    if not 0 <= run < runs:
        allowed = f"must be from 0 to {runs - 1}" if runs > 1 else "must be 0: it holds one run"
        raise CalibrationError("run", run, allowed=allowed)
    reading = select_run_by_index(reading, run)
    field = np.where((reading.valid & reading.emitted)[:, None], reading["field"], math.nan)
    noise = math.sqrt(float(np.mean(np.square(head.get("noise", {}).get("field", (0.0,))))))
    series = None if attitude == "none" else _read_recorded_attitude(dataset, sensor, attitude, mounting, run)
    source = f"{sensor} (magnetometer)"
    return _FileContents(field, np.asarray(reading.time), series, "T", noise, source, exact=attitude == "truth")


def _select_magnetometer(dataset: Dataset, name: str | None) -> str:
    """Return the full name of the magnetometer with this name, or of the only one."""
    names = [sensor for sensor, reading in dataset.items() if reading.type == "magnetometer"]
    listed = ", ".join(names)
    if not names:
        allowed = f"it holds {', '.join(dataset) or 'nothing'}"
        raise CalibrationError("no magnetometer in this recording", allowed=allowed)
    if name is not None:
        return resolve_name(name, names, "--sensor", error=CalibrationError)
    if len(names) > 1:
        raise CalibrationError(f"several magnetometers: {listed}", remedy=f"name one with --sensor {names[0]}")
    return names[0]


def _read_recorded_attitude(
    dataset: Dataset, sensor: str, attitude: str, mounting: FloatArray | None, run: int
) -> AttitudeSeries:
    """Return the attitude of a recorded sensor from the truth of its link, or from an IMU on the link."""
    heads: Mapping[str, Any] = dataset.metadata["sensors"]
    link = str(heads[sensor].get("link", sensor.rpartition("::")[0]))
    rotation_bs = mounting if mounting is not None else _read_mounting(heads[sensor], sensor)
    time = dataset[sensor].time
    if attitude == "truth":
        if link not in dataset.truth:
            remedy = "record with truth, or name an IMU with --attitude"
            raise CalibrationError("no truth of the link in this recording", link, remedy=remedy)
        truth = dataset.truth[link]
        rotation, status = _attitude.interpolate(truth.time, truth.orientation, time)
        source = f"truth of {link}, through the sensor's mounting"
        return AttitudeSeries(multiply_arrays(rotation, rotation_bs), status, source)
    imus = [name for name, head in heads.items() if "orientation" in head["arrays"]]
    try:
        attitude = resolve_name(attitude, imus, "IMU")
    except UnknownNameError as error:
        allowed = f"must be truth, none, or an IMU with orientation: {', '.join(imus) or 'the recording has none'}"
        remedy = suggest_name(attitude, ("truth", "none", *imus))
        raise CalibrationError("--attitude", attitude, allowed=allowed, remedy=remedy) from error
    if heads[attitude].get("link") != link:
        allowed = f"must be on the magnetometer's link, {link}"
        raise CalibrationError("--attitude", attitude, allowed=allowed)
    rotation_bi = _read_mounting(heads[attitude], attitude)
    rotation_is = multiply_arrays(_attitude.invert(rotation_bi), rotation_bs)
    reading = select_run_by_index(dataset[attitude], run)
    rotation, status = _attitude.interpolate(reading.time, reading["orientation"], time)
    return AttitudeSeries(multiply_arrays(rotation, rotation_is), status, f"orientation of {attitude}")


def _read_mounting(head: Mapping[str, Any], name: str) -> FloatArray:
    """Return the quaternion (4,) from a sensor to its link in a recording."""
    if "mounting" not in head:
        remedy = "give it with --mounting ROLL PITCH YAW in degrees, 0 0 0 if it is aligned with its link"
        raise CalibrationError("no mounting of the sensor in this recording", name, remedy=remedy)
    return np.array(head["mounting"], dtype=np.float64)
