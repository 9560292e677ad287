"""What one Doppler instrument sends, into a file as it would be logged, or to whoever connects to a TCP port.

    NAME[.SENSOR][.FRAME].pd0   NAME[.SENSOR].pd6   NAME[.SENSOR].wl.json   NAME[.SENSOR].nmea
    pd0+tcp://HOST:PORT?sensor=SENSOR&frame=FRAME&wait=SECONDS            and so pd6+tcp, wl+tcp, nmea+tcp

SENSOR is a sensor's full name or the end of it, needed where there are several; FRAME one of beam, instrument, ship,
earth. Every ensemble, ping or sentence stands for itself: a file is written under its own name, each block is with the
system before the next is made, and a block that could not be written whole is taken back.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qsl

from navsense.devices.ensembles import Frame
from navsense.devices.outputs import FORMATS, Format
from navsense.devices.told import Instrument
from navsense.errors import SinkError, Where
from navsense.series import Slab
from navsense.sinks.base import Recording, check_target, os_error
from navsense.sinks.mcap import check_head
from navsense.sinks.serve import Server
from navsense.sinks.whole import failed
from navsense.world import MountedSensor, World

WAIT = 30.0
"""s that a run waits for the first client."""

PORT = re.compile(r"(?P<form>\w+)\+tcp:/+(?P<host>\[[^\]]*\]|[^:/?]*):(?P<port>[^/?]*)/?(?:\?(?P<query>.*))?")
"""A port as it is written, or as a path has it, with one slash less."""


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


def address(path: Path) -> Address:
    """Return what the address of a port says. Raises `SinkError`."""
    where = Where(str(path))
    found = PORT.fullmatch(str(path))
    if found is None:
        raise SinkError("no address of a port", where=where, allowed="must be FORMAT+tcp://HOST:PORT")
    names = {suffix.split(".")[1]: suffix for suffix in FORMATS}
    if found["form"] not in names:
        raise SinkError("format of a port", found["form"], where=where, allowed=f"must be one of {', '.join(names)}")
    port = found["port"]
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
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


def _of_file(path: Path, world: World) -> tuple[Format, MountedSensor, str]:
    """Return the format, the sensor and the coordinates that a file's name asks for. Raises `SinkError`."""
    suffix = suffix_of(path)
    form, words = FORMATS[suffix], path.name[: -len(suffix)].split(".")[1:]
    frame = words.pop().lower() if form.has_frames and words and words[-1].lower() in list(Frame) else ""
    could = [sensor for sensor in world.sensors if isinstance(sensor.spec, form.kinds)]
    named = next((word for word in words[::-1] if any(_matches(sensor, word) for sensor in could)), "")
    how = f"{path.name.split('.')[0]}.SENSOR{suffix}, by its full name or the end of it"
    return form, _chosen(world, form, named, Where(str(path)), how), frame


class DeviceSink:
    """Writes what one instrument sends to a file."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Choose the sensor and open the file. Raises `SinkError` where either cannot be."""
        check_head(path, recording, "a device's log")
        check_target(path)
        form, sensor, frame = _of_file(path, recording.world)
        self._source = Source(recording, form, sensor, frame)
        self._path, self._size, self._open = path, 0, True
        try:
            # Unbuffered: what was written is with the system at once, and survives the death of this process.
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise os_error(path, error) from error

    def __enter__(self) -> Self:
        """Return this sink."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close; what was written stays."""
        if kind is None:
            self.close()
        else:
            self.abort()

    def write(self, slab: Slab) -> None:
        """Write what the instrument told in a slab. Raises `SinkError` where it cannot be kept."""
        if not self._open:
            raise failed(self._path)
        data = memoryview(self._source.bytes_of(slab))
        try:
            while data:
                done = self._file.write(data)
                data = data[done:]
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

    def abort(self) -> None:
        """Close the file, keeping what was written; never raises."""
        self._open = False
        with contextlib.suppress(OSError):
            self._file.close()


class PortSink:
    """Serves what one instrument sends to whoever connects."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Choose the sensor, listen, and wait for the first client as long as was asked. Raises `SinkError`."""
        check_head(path, recording, "a device's port")
        said, where = address(path), Where(str(path))
        form = FORMATS[said.suffix]
        if said.frame and (not form.has_frames or said.frame not in list(Frame)):
            allowed = f"must be one of {', '.join(Frame)}" if form.has_frames else f"{form.name} has none to choose"
            raise SinkError("frame", said.frame, where=where, allowed=allowed)
        sensor = _chosen(recording.world, form, said.sensor, where, "?sensor=SENSOR behind the port")
        self._source = Source(recording, form, sensor, said.frame)
        self._path, self._open = path, True
        self._server = Server(said.host, said.port, where)
        try:
            self._server.wait(said.wait)
        except BaseException:
            self._server.abort()
            raise

    @property
    def port(self) -> int:
        """Return the port that is served."""
        return self._server.port

    def __enter__(self) -> Self:
        """Return this sink."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Send what waits to be sent and close."""
        self.close()

    def write(self, slab: Slab) -> None:
        """Send what the instrument told in a slab to all clients; waits for none of them."""
        if not self._open:
            raise failed(self._path)
        self._server.send(self._source.bytes_of(slab))

    def close(self) -> None:
        """Send what waits to be sent, to clients that read, and close."""
        self._open = False
        self._server.close()

    def abort(self) -> None:
        """Close without waiting; never raises."""
        self._open = False
        self._server.abort()


class Source:
    """One instrument's bytes, slab after slab."""

    def __init__(self, recording: Recording, form: Format, sensor: MountedSensor, frame: str) -> None:
        """Begin the format. Raises `SinkError` where it does not hold the instrument."""
        self._instrument = Instrument(recording.world, sensor)
        self._encode = form.begin(self._instrument, frame)

    def bytes_of(self, slab: Slab) -> bytes:
        """Return what the instrument told in a slab. Raises `SinkError`."""
        self._instrument.see(slab.truth, slab.start)
        reading = slab.readings.get(self._instrument.sensor.name)
        return b"" if reading is None else self._encode(self._instrument.tell(reading))
