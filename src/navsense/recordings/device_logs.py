"""Logs of one Doppler instrument in a device format: what the instrument sends, as a file.

    NAME[.SENSOR][.FRAME].pd0   NAME[.SENSOR].pd6   NAME[.SENSOR].wl.json   NAME[.SENSOR].nmea

SENSOR is the full name of a sensor or the end of it. It is required if several sensors fit. FRAME is beam, instrument,
ship or earth. A file has its final name from the start: the ensembles, pings or sentences of an incomplete file can be
read. A block that cannot be written completely is removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from navsense.core import atomic
from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.devices import format_encoders
from navsense.devices.format_encoders import DeviceFormat
from navsense.devices.instrument_encoder import InstrumentEncoder, check_coordinates, select_sensor
from navsense.devices.logs import summarize_log
from navsense.recordings.base import (
    add_path_to_errors,
    check_recorded_run,
    make_closed_error,
    make_os_error,
    open_for_reading,
    write_all,
)
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import Capability, Format, list_missing_groups
from navsense.recordings.info import RecordedRun, RecordingSummary, RecordingWriter, SummaryEntry
from navsense.sensors.doppler import CoordinateSystem
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import MountedSensor, World


def find_device_suffix(path: Path) -> str:
    """Return the suffix of a file in a device format; "" for another file."""
    return next((suffix for suffix in format_encoders.FORMATS if path.name.lower().endswith(suffix)), "")


def _find_sensor_name(words: Sequence[str], sensors: Sequence[MountedSensor]) -> str:
    """Return the last words that name a sensor; "" if no words do. A name can contain dots."""
    spans = (".".join(words[first:end]) for end in range(len(words), 0, -1) for first in range(end))
    return next((span for span in spans if any(f"::{sensor.name}".endswith(f"::{span}") for sensor in sensors)), "")


def resolve_log(path: Path, world: World) -> tuple[DeviceFormat, MountedSensor, str]:
    """Return the format, the sensor and the coordinates in the name of a file. Raises `RecordingError`."""
    suffix, where = find_device_suffix(path), Where(str(path))
    device_format, words = format_encoders.FORMATS[suffix], path.name[: -len(suffix)].split(".")[1:]
    has_frame = device_format.has_coordinates and words and words[-1].lower() in list(CoordinateSystem)
    frame = words.pop().lower() if has_frame else ""
    candidates = [sensor for sensor in world.sensors if isinstance(sensor.spec, device_format.spec_types)]
    hint = f"{path.name.split('.')[0]}.SENSOR{suffix} with the name of the sensor or its end"
    name = _find_sensor_name(words, candidates)
    if candidates and not name and (sensor_name := _find_sensor_name(words, world.sensors)):
        what = f"{device_format.name} does not support the sensor"
        allowed = f"must be one of {', '.join(sensor.name for sensor in candidates)}"
        raise RecordingError(what, sensor_name, where=where, allowed=allowed, remedy=f"write {hint}")
    if name:
        check_coordinates(device_format, ".".join(words).rpartition(name)[2].strip("."), where, f"write {hint}")
    return device_format, select_sensor(world, device_format, name, where, hint), frame


class DeviceLogWriter(RecordingWriter):
    """Writes the output of one instrument to a file."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Find the sensor and open the file. Raises `RecordingError` if either fails."""
        check_recorded_run(path, recorded_run, "a device's log")
        device_format, sensor, frame = resolve_log(path, recorded_run.world)
        self._encoder = InstrumentEncoder(recorded_run.world, device_format, sensor, frame)
        self._path, self._size, self._is_open = path, 0, True
        try:
            # The file has no buffer, so a killed process loses nothing.
            self._file = atomic.open_in_place(path)
        except OSError as error:
            raise make_os_error(path, error) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Write the output of the instrument in a time slice. Raises `RecordingError` if this fails."""
        if not self._is_open:
            raise make_closed_error(self._path)
        with add_path_to_errors(self._path):
            data = self._encoder.encode(time_slice)
        try:
            write_all(self._file, data)
            self._size = self._file.tell()
        except BaseException as error:
            self._is_open = False
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            self.abort()
            if isinstance(error, OSError):
                raise make_os_error(self._path, error) from error
            raise

    def close(self) -> None:
        """Close the file. Raises `RecordingError` if this fails."""
        self._is_open = False
        try:
            self._file.close()
        except OSError as error:
            raise make_os_error(self._path, error) from error

    def abort(self) -> None:
        """Close the file and keep its content. Never raises."""
        self._is_open = False
        with contextlib.suppress(OSError):
            self._file.close()


DVL_ARRAYS = (
    "velocity",
    "beam_velocity",
    "beam_range",
    "altitude",
    "sound_speed",
    "water_velocity",
    "water_beam_velocity",
)
"""Arrays of a DVL that device formats have fields for."""


def _raise_not_readable(path: Path) -> Dataset:
    remedy = f"list its contents with: navsense info {path}"
    raise RecordingError("is the output of an instrument, not a recording", where=Where(str(path)), remedy=remedy)


def summarize(path: Path) -> RecordingSummary:
    """Return what the log of an instrument holds. The entire file is read. Raises `RecordingError`."""
    with open_for_reading(path) as file:
        data = file.read()
    with add_path_to_errors(path):
        log = summarize_log(find_device_suffix(path), data)
    meta = {"coordinates": ", ".join(log.coordinates)} if log.coordinates else {}
    meta |= {"skipped": log.skipped} if log.skipped else {}
    entries = tuple(SummaryEntry(*entry) for entry in log.entries)
    first, last = (int(log.stamps.min()), int(log.stamps.max())) if log.stamps.size else (None, None)
    name = format_encoders.FORMATS[find_device_suffix(path)].name
    return RecordingSummary(str(path), name, len(data), first, last, entries, meta)


def list_needed(sensor: MountedSensor) -> Sequence[str]:
    """Return the arrays of a DVL that device formats have fields for; none of another sensor."""
    spec = sensor.spec
    if not isinstance(spec, Dvl):
        return ()
    return [name for name in DVL_ARRAYS if spec.water_mode is not TrackMode.NEVER or not name.startswith("water_")]


def _make_format(suffix: str, device_format: DeviceFormat) -> Format:
    capabilities = frozenset((Capability.INVALID,))

    def check_log(path: Path, world: World | None) -> None:
        if world is not None:
            resolve_log(path, world)

    return Format(
        name=device_format.name,
        suffixes=(suffix,),
        capabilities=capabilities,
        read=_raise_not_readable,
        open_writer=DeviceLogWriter,
        summarize=summarize,
        unit="record",
        check_path=check_log,
        list_sensors=lambda recorded_run, target: [resolve_log(target, recorded_run.world)[1].name],
        list_lost=lambda _header, _sensor, reading: [
            f"all that {device_format.name} has no field for",
            *list_missing_groups(capabilities, reading),
        ],
        list_needed=list_needed,
        needs_heading=True,
    )


FORMATS = tuple(_make_format(suffix, device_format) for suffix, device_format in format_encoders.FORMATS.items())
"""The formats of the logs of instruments, which hold one sensor each."""
