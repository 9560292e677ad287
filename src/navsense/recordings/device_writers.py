"""The output of one Doppler instrument in a device format, to a file or to the clients of a TCP port.

    NAME[.SENSOR][.FRAME].pd0   NAME[.SENSOR].pd6   NAME[.SENSOR].wl.json   NAME[.SENSOR].nmea
    pd0+tcp://HOST:PORT?sensor=SENSOR&frame=FRAME&wait=SECONDS            and so pd6+tcp, wl+tcp, nmea+tcp

SENSOR is the full name of a sensor or the end of it, required if several sensors fit. FRAME is beam, instrument, ship
or earth. A file is written under its own name, because each ensemble, ping or sentence can be read alone. A block that
cannot be written completely is removed.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import numpy as np

from navsense.core import atomic
from navsense.core.errors import RecordingError, Where
from navsense.core.series import Reading, TimeSlice
from navsense.devices import encoders
from navsense.devices.encoders import DeviceFormat, Pd0Coordinates
from navsense.devices.logs import summarise_log
from navsense.devices.measurement import DopplerInstrument
from navsense.recordings.base import (
    WriterBase,
    add_path_to_errors,
    check_target,
    closed_error,
    open_for_reading,
    os_error,
    write_all,
)
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import Capability, Format, missing_groups
from navsense.recordings.header import RecordingHeader, RecordingSummary, SummaryEntry
from navsense.recordings.mcap.writer import check_header
from navsense.recordings.tcp_server import TcpServer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import MountedSensor, World

LOG = logging.getLogger(__name__)
"""Logs the address of a port and the number of bytes sent."""

CONNECT_TIMEOUT = 30.0
"""Time (s) that a run waits for the first client."""

PORT_PATTERN = re.compile(r"(?P<form>\w+)\+tcp:/+(?P<host>\[[^\]]*\]|[^:/?]*):(?P<port>[^/?]*)/?(?:\?(?P<query>.*))?")
"""Address of a port as a text, and as a path, which has one slash less."""

ADDRESS_PATTERN = re.compile(r"[\w.-]+\+\w+:.*|[\w.-]{2,}:/.*")
"""An address of any scheme; a path has one slash less."""


class PortAddress(NamedTuple):
    """The address of a port: suffix of the device format, host, port and options."""

    suffix: str
    host: str
    port: int
    sensor: str
    frame: str
    timeout: float


def is_port_address(path: Path) -> bool:
    """Return True if a path is the address of a port."""
    return PORT_PATTERN.fullmatch(str(path)) is not None


def format_url(path: Path) -> str:
    """Return the text of an address, with the slash that a path loses, or of another path."""
    return re.sub(r":/+", "://", str(path), count=1) if ADDRESS_PATTERN.fullmatch(str(path)) else str(path)


def parse_address(path: Path) -> PortAddress:
    """Return the parts of the address of a port. Raises `RecordingError`."""
    where = Where(format_url(path))
    found = PORT_PATTERN.fullmatch(str(path))
    names = {suffix.split(".")[1]: suffix for suffix in encoders.FORMATS}
    if found is None:
        allowed = f"a port is FORMAT+tcp://HOST:PORT, FORMAT one of {', '.join(names)}"
        raise RecordingError("no address of a port", where=where, allowed=allowed)
    if found["form"] not in names:
        raise RecordingError(
            "format of a port", found["form"], where=where, allowed=f"must be one of {', '.join(names)}"
        )
    port = found["port"]
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 1 << 16):
        raise RecordingError(
            "port", port, where=where, allowed="must be a number from 0 to 65535; 0 for any that is free"
        )
    options = {"sensor": "", "frame": "", "wait": str(CONNECT_TIMEOUT)}
    for key, value in parse_qsl(found["query"] or "", keep_blank_values=True):
        if key not in options:
            raise RecordingError("option of a port", key, where=where, allowed=f"must be one of {', '.join(options)}")
        options[key] = value
    try:
        wait = float(options["wait"])
    except ValueError:
        wait = -1.0
    if not 0.0 <= wait <= 1e6:
        raise RecordingError("wait (s)", options["wait"], where=where, allowed="must be a number from 0 to 1e6")
    host = found["host"].strip("[]") or "127.0.0.1"
    return PortAddress(names[found["form"]], host, int(port), options["sensor"], options["frame"], wait)


def device_suffix(path: Path) -> str:
    """Return the suffix of a file in a device format; "" for another file."""
    return next((suffix for suffix in encoders.FORMATS if path.name.lower().endswith(suffix)), "")


def _matches(sensor: MountedSensor, name: str) -> bool:
    return sensor.name == name or sensor.name.endswith(f"::{name}")


def _select_sensor(world: World, form: DeviceFormat, name: str, where: Where, hint: str) -> MountedSensor:
    """Return the named or the only sensor of a device format. Raises `RecordingError`, which lists the candidates."""
    candidates = [sensor for sensor in world.sensors if isinstance(sensor.spec, form.spec_types)]
    kinds = " or ".join(kind.__name__.upper() for kind in form.spec_types)
    if not candidates:
        remedy = f"give the world a {kinds}, or record another format"
        raise RecordingError(f"the world has no {kinds}, which {form.name} is of", where=where, remedy=remedy)
    found = [sensor for sensor in candidates if _matches(sensor, name)] if name else candidates
    if len(found) == 1:
        return found[0]
    names = ", ".join(sensor.name for sensor in candidates)
    what = "sensor" if name else f"{form.name} is of one instrument, and the world has {len(candidates)}"
    raise RecordingError(what, name or None, where=where, allowed=f"they are {names}", remedy=f"name it: {hint}")


def _find_sensor_name(words: Sequence[str], sensors: Sequence[MountedSensor]) -> str:
    """Return the last words that are the name of a sensor, or the end of one; "" for none. Names can contain dots."""
    spans = (".".join(words[first:end]) for end in range(len(words), 0, -1) for first in range(end))
    return next((span for span in spans if any(_matches(sensor, span) for sensor in sensors)), "")


def resolve_log(path: Path, world: World) -> tuple[DeviceFormat, MountedSensor, str]:
    """Return the format, the sensor and the coordinates in the name of a file. Raises `RecordingError`."""
    suffix, where = device_suffix(path), Where(str(path))
    form, words = encoders.FORMATS[suffix], path.name[: -len(suffix)].split(".")[1:]
    frame = words.pop().lower() if form.has_frames and words and words[-1].lower() in list(Pd0Coordinates) else ""
    candidates = [sensor for sensor in world.sensors if isinstance(sensor.spec, form.spec_types)]
    how = f"{path.name.split('.')[0]}.SENSOR{suffix}, by its full name or the end of it"
    named, other = _find_sensor_name(words, candidates), _find_sensor_name(words, world.sensors)
    if candidates and other and not named:
        names = ", ".join(sensor.name for sensor in candidates)
        what = f"names a sensor that {form.name} is not of"
        raise RecordingError(
            what, other, where=where, allowed=f"those that it is of are {names}", remedy=f"name it: {how}"
        )
    behind = ".".join(words).rpartition(named)[2].strip(".") if named else ""
    if behind:
        allowed = (
            f"must be one of {', '.join(Pd0Coordinates)}" if form.has_frames else f"{form.name} has none to choose"
        )
        raise RecordingError(
            "frame behind the sensor's name", behind, where=where, allowed=allowed, remedy=f"name it: {how}"
        )
    return form, _select_sensor(world, form, named, where, how), frame


def resolve_port(path: Path, world: World) -> tuple[PortAddress, DeviceFormat, MountedSensor]:
    """Return the address of a port, its device format and its sensor. Raises `RecordingError`."""
    address, where = parse_address(path), Where(format_url(path))
    form = encoders.FORMATS[address.suffix]
    if address.frame and (not form.has_frames or address.frame not in list(Pd0Coordinates)):
        allowed = (
            f"must be one of {', '.join(Pd0Coordinates)}" if form.has_frames else f"{form.name} has none to choose"
        )
        raise RecordingError("frame", address.frame, where=where, allowed=allowed)
    return address, form, _select_sensor(world, form, address.sensor, where, "?sensor=SENSOR behind the port")


class DeviceLogWriter(WriterBase):
    """Writes the output of one instrument to a file."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Find the sensor and open the file. Raises `RecordingError` if either fails."""
        check_header(path, recording, "a device's log")
        check_target(path)
        form, sensor, frame = resolve_log(path, recording.world)
        self._encoder = InstrumentEncoder(recording, form, sensor, frame)
        self._path, self._size, self._is_open = path, 0, True
        try:
            # The file has no buffer, so a killed process loses nothing.
            self._file = atomic.open_in_place(path)
        except OSError as error:
            raise os_error(path, error) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Write the output of the instrument in a time slice. Raises `RecordingError` if this fails."""
        if not self._is_open:
            raise closed_error(self._path)
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
                raise os_error(self._path, error) from error
            raise

    def close(self) -> None:
        """Close the file. Raises `RecordingError` if this fails."""
        self._is_open = False
        try:
            self._file.close()
        except OSError as error:
            raise os_error(self._path, error) from error

    def salvage(self) -> None:
        """Close the file and keep its content."""
        self.abort()

    def abort(self) -> None:
        """Close the file and keep its content. Never raises."""
        self._is_open = False
        with contextlib.suppress(OSError):
            self._file.close()


class DevicePortWriter(WriterBase):
    """Sends the output of one instrument to the clients of a TCP port."""

    def __init__(self, path: Path, recording: RecordingHeader) -> None:
        """Find the sensor, listen, and wait for the first client. Raises `RecordingError`."""
        check_header(path, recording, "a device's port")
        address, form, sensor = resolve_port(path, recording.world)
        where = Where(format_url(path))
        self._encoder = InstrumentEncoder(recording, form, sensor, address.frame)
        self._is_open = True
        self._server = TcpServer(address.host, address.port, where)
        self._server.name = PORT_PATTERN.sub(lambda found: _replace_port(found, self.port), where.path)
        LOG.info("%s: serves all clients", self._server.name)
        try:
            self._server.wait(address.timeout)
        except BaseException:
            self._server.abort()
            raise

    @property
    def port(self) -> int:
        """The number of the port."""
        return self._server.port

    def write(self, time_slice: TimeSlice) -> None:
        """Send the output of the instrument in a time slice to all clients, without waiting for them."""
        if not self._is_open:
            raise closed_error(self._server.name)
        self._server.send(self._encoder.encode(time_slice))

    def close(self) -> None:
        """Send the queues of clients that make progress, and close."""
        was_open, self._is_open = self._is_open, False
        self._server.close()
        if was_open:
            count, sent = self._server.client_count, self._server.sent_bytes
            clients = f"{count} client{'s' * (count != 1)}"
            what = f"sent {sent} bytes to {clients}" if count else "sent nothing: no client connected"
            LOG.info("%s: %s", self._server.name, what)

    def salvage(self) -> None:
        """Send the queues of clients that make progress, and close."""
        self.close()

    def abort(self) -> None:
        """Close at once. Never raises."""
        self._is_open = False
        self._server.abort()


def _replace_port(found: re.Match[str], port: int) -> str:
    """Replace the port in an address: port 0 becomes the port that the system assigned."""
    text, first = found[0], found.start()
    return f"{text[: found.start('port') - first]}{port}{text[found.end('port') - first :]}"


def _fill_missing_arrays(reading: Reading, sensor: MountedSensor) -> Reading:
    """Return a reading with all outputs of a sensor; outputs that a recording of messages lacks are NaN."""
    count = reading.time.size
    blank = {one.name: np.full((count, *one.shape), np.nan) for one in sensor.spec.outputs if one.name not in reading}
    return replace(reading, arrays={**blank, **reading.arrays}) if blank else reading


class InstrumentEncoder:
    """The bytes of one instrument."""

    def __init__(self, recording: RecordingHeader, form: DeviceFormat, sensor: MountedSensor, frame: str) -> None:
        """Create the encoder. Raises `RecordingError` if the format cannot hold the instrument."""
        self._instrument, self._form = DopplerInstrument(recording.world, sensor), form.name
        self._encode_samples = form.make_encoder(self._instrument, frame)
        self._has_pose, self._end_time = False, -math.inf

    def encode(self, time_slice: TimeSlice) -> bytes:
        """Return the bytes of a time slice. Raises `RecordingError`."""
        sensor = self._instrument.sensor
        # Messages arrive late: truth can come in an earlier time slice than the readings of the same time.
        self._instrument.add_truth(time_slice.truth, min(time_slice.start, self._end_time))
        self._has_pose = self._has_pose or sensor.link in time_slice.truth
        reading = time_slice.readings.get(sensor.name)
        if reading is None:
            return b""
        self._end_time = float(reading.time[-1]) if reading.time.size else self._end_time
        if not self._has_pose and reading.emitted.any():
            remedy = "write a recording with the truth of links"
            what = f"where link {sensor.link!r} is and how it stands, which {self._form} of {sensor.name!r} tells"
            raise RecordingError(what, "unknown", remedy=remedy)
        return self._encode_samples(self._instrument.sample(_fill_missing_arrays(reading, sensor)))


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


def _refuse(path: Path) -> Dataset:
    remedy = "read it with navsense.devices, or see what it holds with: navsense info"
    raise RecordingError("is the output of an instrument, not a recording", where=Where(str(path)), remedy=remedy)


def summarize(path: Path) -> RecordingSummary:
    """Return what the log of an instrument holds. The entire file is read. Raises `RecordingError`."""
    with open_for_reading(path) as file:
        data = file.read()
    with add_path_to_errors(path):
        log = summarise_log(device_suffix(path), data)
    meta = {"coordinates": ", ".join(log.coordinates)} if log.coordinates else {}
    meta |= {"skipped": log.skipped} if log.skipped else {}
    entries = tuple(SummaryEntry(*entry) for entry in log.entries)
    first, last = (int(log.stamps.min()), int(log.stamps.max())) if log.stamps.size else (None, None)
    name = encoders.FORMATS[device_suffix(path)].name
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
        read=_refuse,
        open_writer=DeviceLogWriter,
        summarize=summarize,
        unit="record",
        check_target=check_log,
        list_sensors=lambda header, target: [resolve_log(target, header.world)[1].name],
        list_lost=lambda _header, _sensor, reading: [
            f"all that {device_format.name} has no field for",
            *missing_groups(capabilities, reading),
        ],
        list_needed=list_needed,
        needs_origin=True,
    )


FORMATS = tuple(_make_format(suffix, one) for suffix, one in encoders.FORMATS.items())
"""The formats of the logs of instruments, which hold one sensor each."""
