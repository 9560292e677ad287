"""What one Doppler instrument sends, into a file as it would be logged, or to whoever connects to a TCP port.

    NAME[.SENSOR][.FRAME].pd0   NAME[.SENSOR].pd6   NAME[.SENSOR].wl.json   NAME[.SENSOR].nmea
    pd0+tcp://HOST:PORT?sensor=SENSOR&frame=FRAME&wait=SECONDS            and so pd6+tcp, wl+tcp, nmea+tcp

SENSOR is a sensor's full name or the end of it, needed where there are several; FRAME one of beam, instrument, ship,
earth. Every ensemble, ping or sentence stands for itself: a file is written under its own name, each block is with the
system before the next is made, and a block that could not be written whole is taken back.
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

from navsense import outputs
from navsense.devices.ensembles import Frame
from navsense.devices.outputs import FORMATS, Format
from navsense.devices.told import Instrument
from navsense.errors import SinkError, Where
from navsense.series import Reading, Slab
from navsense.sinks.base import Ending, Recording, add_path_to_errors, check_target, failed, os_error, pour
from navsense.sinks.mcap import check_head
from navsense.sinks.serve import Server
from navsense.world import MountedSensor, World

LOG = logging.getLogger(__name__)
"""Told where a port is served, and what was sent."""

WAIT = 30.0
"""s that a run waits for the first client."""

PORT = re.compile(r"(?P<form>\w+)\+tcp:/+(?P<host>\[[^\]]*\]|[^:/?]*):(?P<port>[^/?]*)/?(?:\?(?P<query>.*))?")
"""A port as it is written, or as a path has it, with one slash less."""


ADDRESS = re.compile(r"[\w.-]+\+\w+:.*|[\w.-]{2,}:/.*")
"""What begins as an address does, of a port or of something else; a path has one slash less."""


class Address(NamedTuple):
    """A port to serve: its format's suffix, where, and what was asked for."""

    suffix: str
    host: str
    port: int
    sensor: str
    frame: str
    wait: float


def is_port(path: Path) -> bool:
    """Return whether a path is the address of a port."""
    return PORT.fullmatch(str(path)) is not None


def url(path: Path) -> str:
    """Return an address as it was written, with the slash that a path has not kept; another path as it is."""
    return re.sub(r":/+", "://", str(path), count=1) if ADDRESS.fullmatch(str(path)) else str(path)


def address(path: Path) -> Address:
    """Return what the address of a port says. Raises `SinkError`."""
    where = Where(url(path))
    found = PORT.fullmatch(str(path))
    names = {suffix.split(".")[1]: suffix for suffix in FORMATS}
    if found is None:
        allowed = f"a port is FORMAT+tcp://HOST:PORT, FORMAT one of {', '.join(names)}"
        raise SinkError("no address of a port", where=where, allowed=allowed)
    if found["form"] not in names:
        raise SinkError("format of a port", found["form"], where=where, allowed=f"must be one of {', '.join(names)}")
    port = found["port"]
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 1 << 16):
        raise SinkError("port", port, where=where, allowed="must be a number from 0 to 65535; 0 for any that is free")
    said = {"sensor": "", "frame": "", "wait": str(WAIT)}
    for key, value in parse_qsl(found["query"] or "", keep_blank_values=True):
        if key not in said:
            raise SinkError("option of a port", key, where=where, allowed=f"must be one of {', '.join(said)}")
        said[key] = value
    try:
        wait = float(said["wait"])
    except ValueError:
        wait = -1.0
    if not 0.0 <= wait <= 1e6:
        raise SinkError("wait (s)", said["wait"], where=where, allowed="must be a number from 0 to 1e6")
    host = found["host"].strip("[]") or "127.0.0.1"
    return Address(names[found["form"]], host, int(port), said["sensor"], said["frame"], wait)


def suffix_of(path: Path) -> str:
    """Return the suffix of a file of a device format, "" for another file."""
    return next((suffix for suffix in FORMATS if path.name.lower().endswith(suffix)), "")


def _matches(sensor: MountedSensor, name: str) -> bool:
    """Return whether a sensor is meant by a name: its own, or the end of it."""
    return sensor.name == name or sensor.name.endswith(f"::{name}")


def _chosen(world: World, form: Format, named: str, where: Where, how: str) -> MountedSensor:
    """Return the sensor that is meant. Raises `SinkError`, which lists those that could be."""
    could = [sensor for sensor in world.sensors if isinstance(sensor.spec, form.kinds)]
    kinds = " or ".join(kind.__name__.upper() for kind in form.kinds)
    if not could:
        remedy = f"give the world a {kinds}, or record another format"
        raise SinkError(f"the world has no {kinds}, which {form.name} is of", where=where, remedy=remedy)
    meant = [sensor for sensor in could if _matches(sensor, named)] if named else could
    if len(meant) == 1:
        return meant[0]
    names = ", ".join(sensor.name for sensor in could)
    what = "sensor" if named else f"{form.name} is of one instrument, and the world has {len(could)}"
    raise SinkError(what, named or None, where=where, allowed=f"they are {names}", remedy=f"name it: {how}")


def _named(words: Sequence[str], sensors: Sequence[MountedSensor]) -> str:
    """Return the last words that are a sensor's name, which may have dots in it, or the end of one; "" for none."""
    spans = (".".join(words[first:end]) for end in range(len(words), 0, -1) for first in range(end))
    return next((span for span in spans if any(_matches(sensor, span) for sensor in sensors)), "")


def meant(path: Path, world: World) -> tuple[Format, MountedSensor, str]:
    """Return the format, the sensor and the coordinates that a file's name asks for. Raises `SinkError`."""
    suffix, where = suffix_of(path), Where(str(path))
    form, words = FORMATS[suffix], path.name[: -len(suffix)].split(".")[1:]
    frame = words.pop().lower() if form.has_frames and words and words[-1].lower() in list(Frame) else ""
    could = [sensor for sensor in world.sensors if isinstance(sensor.spec, form.kinds)]
    how = f"{path.name.split('.')[0]}.SENSOR{suffix}, by its full name or the end of it"
    named, other = _named(words, could), _named(words, world.sensors)
    if could and other and not named:
        names = ", ".join(sensor.name for sensor in could)
        what = f"names a sensor that {form.name} is not of"
        raise SinkError(what, other, where=where, allowed=f"those that it is of are {names}", remedy=f"name it: {how}")
    behind = ".".join(words).rpartition(named)[2].strip(".") if named else ""
    if behind:
        allowed = f"must be one of {', '.join(Frame)}" if form.has_frames else f"{form.name} has none to choose"
        raise SinkError(
            "frame behind the sensor's name", behind, where=where, allowed=allowed, remedy=f"name it: {how}"
        )
    return form, _chosen(world, form, named, where, how), frame


def served(path: Path, world: World) -> tuple[Address, Format, MountedSensor]:
    """Return what the address of a port says, and the format and the sensor that it asks for. Raises `SinkError`."""
    said, where = address(path), Where(url(path))
    form = FORMATS[said.suffix]
    if said.frame and (not form.has_frames or said.frame not in list(Frame)):
        allowed = f"must be one of {', '.join(Frame)}" if form.has_frames else f"{form.name} has none to choose"
        raise SinkError("frame", said.frame, where=where, allowed=allowed)
    return said, form, _chosen(world, form, said.sensor, where, "?sensor=SENSOR behind the port")


class DeviceSink(Ending):
    """Writes what one instrument sends to a file."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Choose the sensor and open the file. Raises `SinkError` where either cannot be."""
        check_head(path, recording, "a device's log")
        check_target(path)
        form, sensor, frame = meant(path, recording.world)
        self._source = Source(recording, form, sensor, frame)
        self._path, self._size, self._open = path, 0, True
        try:
            # Unbuffered: what was written is with the system at once, and survives the death of this process.
            self._file = outputs.open_in_place(path)
        except OSError as error:
            raise os_error(path, error) from error

    def write(self, slab: Slab) -> None:
        """Write what the instrument told in a slab. Raises `SinkError` where it cannot be kept."""
        if not self._open:
            raise failed(self._path)
        with add_path_to_errors(self._path):
            data = self._source.bytes_of(slab)
        try:
            pour(self._file, data)
            self._size = self._file.tell()
        except BaseException as error:
            self._open = False
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            self.abort()
            if isinstance(error, OSError):
                raise os_error(self._path, error) from error
            raise

    def close(self) -> None:
        """Close the file. Raises `SinkError` where that fails."""
        self._open = False
        try:
            self._file.close()
        except OSError as error:
            raise os_error(self._path, error) from error

    def keep(self) -> None:
        """Close the file; what was written stays."""
        self.abort()

    def abort(self) -> None:
        """Close the file, keeping what was written; never raises."""
        self._open = False
        with contextlib.suppress(OSError):
            self._file.close()


class PortSink(Ending):
    """Serves what one instrument sends to whoever connects."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Choose the sensor, listen, and wait for the first client as long as was asked. Raises `SinkError`."""
        check_head(path, recording, "a device's port")
        said, form, sensor = served(path, recording.world)
        where = Where(url(path))
        self._source = Source(recording, form, sensor, said.frame)
        self._open = True
        self._server = Server(said.host, said.port, where)
        self._server.name = PORT.sub(lambda found: _with_port(found, self.port), where.path)
        LOG.info("%s: sends to whoever connects", self._server.name)
        try:
            self._server.wait(said.wait)
        except BaseException:
            self._server.abort()
            raise

    @property
    def port(self) -> int:
        """Return the port that is served."""
        return self._server.port

    def write(self, slab: Slab) -> None:
        """Send what the instrument told in a slab to all clients; waits for none of them."""
        if not self._open:
            raise failed(self._server.name)
        self._server.send(self._source.bytes_of(slab))

    def close(self) -> None:
        """Send what waits to be sent, to clients that read, and close."""
        was_open, self._open = self._open, False
        self._server.close()
        if was_open:
            count, sent = self._server.count, self._server.sent
            what = f"sent {sent} bytes to {count} client{'s' * (count != 1)}" if count else "sent nothing: nobody came"
            LOG.info("%s: %s", self._server.name, what)

    def keep(self) -> None:
        """Send what waits to be sent and close."""
        self.close()

    def abort(self) -> None:
        """Close without waiting; never raises."""
        self._open = False
        self._server.abort()


def _with_port(found: re.Match[str], port: int) -> str:
    """Return the address of a port with the number that it got."""
    whole, first = found[0], found.start()
    return f"{whole[: found.start('port') - first]}{port}{whole[found.end('port') - first :]}"


def _filled(reading: Reading, sensor: MountedSensor) -> Reading:
    """Return a reading with all of a sensor's arrays: what a recording of messages does not have is NaN."""
    count = reading.time.size
    blank = {one.name: np.full((count, *one.shape), np.nan) for one in sensor.spec.outputs if one.name not in reading}
    return replace(reading, arrays={**blank, **reading.arrays}) if blank else reading


class Source:
    """One instrument's bytes, slab after slab."""

    def __init__(self, recording: Recording, form: Format, sensor: MountedSensor, frame: str) -> None:
        """Begin the format. Raises `SinkError` where it does not hold the instrument."""
        self._instrument, self._form = Instrument(recording.world, sensor), form.name
        self._encode = form.begin(self._instrument, frame)
        self._placed, self._until = False, -math.inf

    def bytes_of(self, slab: Slab) -> bytes:
        """Return what the instrument told in a slab. Raises `SinkError`."""
        sensor = self._instrument.sensor
        # Messages arrive late: a slab of them may hold truth, and readings of long before come in a later one.
        self._instrument.see(slab.truth, min(slab.start, self._until))
        self._placed = self._placed or sensor.link in slab.truth
        reading = slab.readings.get(sensor.name)
        if reading is None:
            return b""
        self._until = float(reading.time[-1]) if reading.time.size else self._until
        if not self._placed and reading.emitted.any():
            remedy = "write a recording with the truth of links"
            what = f"where link {sensor.link!r} is and how it stands, which {self._form} of {sensor.name!r} tells"
            raise SinkError(what, "unknown", remedy=remedy)
        return self._encode(self._instrument.tell(_filled(reading, sensor)))
