"""What a recording of one format loses in another, told as its slabs come by, and how much of it is carried.

| to | sensors | rows | of a sensor not |
|---|---|---|---|
| `.npz`, `.parquet`, `.csv` | all | all | |
| messages of ROS | all | that were emitted | arrays without a field, the constant part of hidden errors |
| Gazebo's messages | of types that it knows | that were emitted | ideal values, hidden errors |
| `.euroc` | IMUs | that were emitted and have numbers | orientation, ideal values, hidden errors of all but the first |
| what a device sends | one | that were emitted | ideal values, hidden errors, all that the format has no field for |

The last two list no faults on purpose. A row that was not emitted was dropped where `FAULT` says so; any other told
nothing, as a DVL's between its pings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from navsense import messages, recordings
from navsense.devices.encoders import FORMATS
from navsense.faults import list_faults
from navsense.messages import generic
from navsense.messages.base import AGE
from navsense.messages.cdr import encode
from navsense.recordings.base import RecordingHeader
from navsense.recordings.device_writers import resolve_log
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.series import Reading, TimeSlice
from navsense.typing import BoolArray
from navsense.world import MountedSensor

MESSAGE_FORMATS = (".mcap", ".bag", ".db3", "")
"""Suffixes of recordings of ROS messages; without one, the folder of a bag of ROS 2 with MCAP in it."""

LOSSLESS_FORMATS = (".npz", ".parquet", ".csv")
"""Suffixes of recordings that lose nothing."""

DEVICE_ARRAYS = (
    "velocity",
    "beam_velocity",
    "beam_range",
    "altitude",
    "sound_speed",
    "water_velocity",
    "water_beam_velocity",
)
"""Arrays of a DVL that device formats tell of, and not all messages."""

EUROC = ".euroc"
GAZEBO = ".gz.mcap"

EUROC_ARRAYS = ("angular_velocity", "linear_acceleration")
"""What EuRoC has of an IMU."""

DROPPED, NO_OUTPUT, DROPPED_OR_NO_OUTPUT, NOT_A_NUMBER = (
    "was dropped",
    "told nothing",
    "was dropped or told nothing",
    "was without a number",
)
"""What a row did that is not carried, one of `DROPPED_OR_NO_OUTPUT` where nothing says which."""


def format_suffix(path: Path) -> str:
    """Return what tells the format of a path: its suffix, `.gz.mcap` whole, none for a folder's name."""
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in recordings.WRITERS else path.suffix.lower()


class ConversionLosses:
    """What a format has no place for, and how many rows it has taken."""

    def __init__(self, recording: RecordingHeader, target: Path, *, has_origin: bool = True) -> None:
        """Start with nothing; `placed` false where the recording does not say how its world stands on earth.

        Raises `SinkError` where a device's log is not of one of its sensors.
        """
        self._suffix, self._has_origin = format_suffix(target), has_origin
        self._sensors = {sensor.name: sensor for sensor in recording.world.sensors}
        self._device_format = FORMATS[self._suffix].name if self._suffix in FORMATS else ""
        self._sensor_names = self._list_supported_sensors(recording, target)
        self._lost_arrays: dict[str, list[str]] = {}
        self._lost_rows: dict[tuple[str, str], int] = {}
        self._faults = bool(list_faults(recording.world))
        self._missing_arrays: list[str] = []
        self._truth = self._current = False
        self.count = 0

    def _list_supported_sensors(self, recording: RecordingHeader, target: Path) -> list[str]:
        """Return the names of the sensors for which the format has a place."""
        if self._device_format:
            return [resolve_log(target, recording.world)[1].name]
        has_place = {EUROC: lambda spec: spec.type == "imu", GAZEBO: messages.has_gz}.get(self._suffix, lambda _: True)
        return [name for name, sensor in self._sensors.items() if has_place(sensor.spec)]

    @property
    def unit(self) -> str:
        """Return what is counted."""
        return "rows" if self._suffix in LOSSLESS_FORMATS else "readings"

    def add(self, time_slice: TimeSlice) -> None:
        """Look at a slab."""
        for name, reading in time_slice.readings.items():
            self._add_reading(name, reading)
        self._truth = self._truth or bool(time_slice.truth)
        self._current = self._current or time_slice.current is not None

    def _add_reading(self, name: str, reading: Reading) -> None:
        """Look at the rows of one sensor."""
        if self._suffix in LOSSLESS_FORMATS:
            self.count += reading.clock_error.size
            return
        if name not in self._sensor_names:
            self._lost_arrays[name] = ["all of it"]
            return
        blank = _find_invalid(reading) if self._suffix == EUROC else np.zeros_like(reading.emitted)
        self.count += int((reading.emitted & ~blank).sum())
        for did, rows in {
            **_find_unpublished(self._sensors[name], reading),
            NOT_A_NUMBER: reading.emitted & blank,
        }.items():
            self._lost_rows[did, name] = self._lost_rows.get((did, name), 0) + int(rows.sum())
        if name not in self._lost_arrays and reading.time.size:
            self._lost_arrays[name] = self._find_lost_arrays(self._sensors[name], reading)

    def _find_lost_arrays(self, sensor: MountedSensor, reading: Reading) -> list[str]:
        """Return the arrays of a reading for which the format has no place."""
        if self._suffix in MESSAGE_FORMATS:
            told = encoded_arrays(sensor, reading)
            words = ["turn-on biases"] if reading.turn_on_bias else []
            return [*(name for name in reading.arrays if name not in told), *words]
        arrays = [name for name in reading.arrays if self._suffix == EUROC and name not in EUROC_ARRAYS]
        ideal = ["ideal values"] if reading.ideal else []
        is_first = self._suffix == EUROC and sensor.name == self._sensor_names[0]
        errors = ["biases"] if reading.bias and not is_first else []
        fields = [f"all that {self._device_format} has no field for"] if self._device_format else []
        self._missing_arrays = [
            name for name in _list_device_arrays(sensor) if self._device_format and name not in reading
        ]
        return [*arrays, *fields, *ideal, *errors]

    def format_lines(self) -> list[str]:
        """Return what was lost, a line each."""
        lines = [f"{name}: {', '.join(what)}" for name, what in self._lost_arrays.items() if what]
        for one in (DROPPED, NO_OUTPUT, DROPPED_OR_NO_OUTPUT, NOT_A_NUMBER):
            lines += [
                f"{name}: {_format_rows(n, did)}" for (did, name), n in self._lost_rows.items() if did == one and n
            ]
        if self._suffix in (*MESSAGE_FORMATS, *LOSSLESS_FORMATS):
            return lines
        if self._missing_arrays:
            lines.append(
                f"{self._sensor_names[0]}: {', '.join(self._missing_arrays)}: not in the recording, and so not known"
            )
        if self._truth:
            but = " but for the pose and velocity of the first IMU" if self._suffix == EUROC else ""
            lines.append(f"truth of links{but}")
        if self._current:
            lines.append("the water's velocity")
        if self._faults and self._suffix != GAZEBO:
            lines.append("the list of faults on purpose")
        if self._device_format and not self._has_origin:
            lines.append("the heading of the world's axes and its water, which the recording does not say: 0 and none")
        return lines


def _list_device_arrays(sensor: MountedSensor) -> list[str]:
    """Return the arrays of a DVL that device formats tell of."""
    spec = sensor.spec
    if not isinstance(spec, Dvl):
        return []
    return [name for name in DEVICE_ARRAYS if spec.water_mode is not TrackMode.NEVER or not name.startswith("water_")]


def _format_rows(count: int, reason: str) -> str:
    """Return how many rows were lost, and why."""
    return f"1 row that {reason}" if count == 1 else f"{count} rows that {reason.replace('was ', 'were ')}"


def _find_unpublished(sensor: MountedSensor, reading: Reading) -> Mapping[str, BoolArray]:
    """Return the rows that were not emitted, by what they did."""
    if not reading.fault:
        return {DROPPED_OR_NO_OUTPUT if sensor.faults.has_faults else NO_OUTPUT: ~reading.emitted}
    dropped = reading.fault["dropout"]
    return {DROPPED: ~reading.emitted & dropped, NO_OUTPUT: ~reading.emitted & ~dropped}


def _find_invalid(reading: Reading) -> BoolArray:
    """Return the rows (n,) of an IMU that have no number."""
    sound = [np.isfinite(reading.arrays[name]).all(axis=1) for name in EUROC_ARRAYS if name in reading.arrays]
    return np.asarray(~np.logical_and.reduce(sound))


def encoded_arrays(sensor: MountedSensor, reading: Reading) -> Sequence[str]:
    """Return the arrays of a reading that its messages say."""
    about = messages.time_of_validity(reading)
    rows = {name: array[:1] for name, array in reading.arrays.items()}
    if about is not None:
        rows[AGE] = reading.time[:1] - about[:1]
    found: list[str] = ["time_of_validity"] if about is not None else []
    for beside in messages.list_companion_topics(sensor):
        message = messages.make_layout(sensor, "reading", beside)
        raw = encode(message, reading.true_stamp[:1], rows)
        own = raw.view(message.layout.dtype())[:, 0]
        is_generic = message.type.startswith(generic.PACKAGE)
        found += messages.extract_arrays(sensor, own, "reading", beside, is_generic=is_generic)
    return found
