"""The contract of a stream, the URLs that address streams, and their registry.

A stream is another program that receives the time slices of a run (`Publisher`), or that sends the states that a run
follows (`Subscriber`). The address of a stream is a URL:

    SCHEME://HOST:PORT/PATH?OPTION=VALUE

Each module of a stream declares one or more `Stream`s. `navsense.streams.STREAMS` lists those of navsense. Other
packages declare theirs under the entry point `navsense.streams`; the name of the entry point is the scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from navsense.core.errors import FieldError, MotionError, RecordingError, Where
from navsense.core.plugins import load_plugin
from navsense.environment.current.adjustment import ChangeValue
from navsense.environment.current.gauss_markov import AnyGaussMarkovProcess
from navsense.recordings.info import RecordedRun, RecordingWriter
from navsense.streams.current import CurrentSubscriber
from navsense.streams.subscriber import RUN_OPTIONS, DrivenFrame, Subscriber
from navsense.world import MountedSensor, World

LOOPBACK = "127.0.0.1"
"""Host of a URL that names none: only programs of this machine can connect."""


@dataclass(frozen=True)
class StreamUrl:
    """The parts of a URL.

    text: the complete URL, for messages.
    scheme: in lower case.
    host: `LOOPBACK` if the URL has no host.
    port: None if the URL has no port.
    path: with its slash; "" if the URL has no path.
    options: the query.

    >>> url = ns.streams.StreamUrl("pd0+tcp://:1033", "pd0+tcp", port=1033)
    >>> url.host, url.with_port(1034)
    ('127.0.0.1', 'pd0+tcp://127.0.0.1:1034')
    """

    text: str
    scheme: str
    host: str = LOOPBACK
    port: int | None = None
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def with_port(self, port: int) -> str:
        """Return the text of the URL with its host and another port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return urlsplit(self.text)._replace(netloc=f"{host}:{port}").geturl()


class Pace(Protocol):
    """The pace of a run in real time, which a stream can change.

    speed: simulated seconds per second of real time.
    is_paused: true while the run waits.

    >>> pace: ns.streams.Pace = ns.simulation.real_time.RealTimeLimiter(2.0)
    >>> pace.is_paused = True  # until another thread sets it to False
    >>> pace.speed, pace.is_paused
    (2.0, True)
    """

    speed: float
    is_paused: bool


class SupportsRunChanges(Protocol):
    """What a stream can change of a run while it goes on: from the next time slice on.

    All methods can be called in any thread, take any unambiguous ending of the full name of a sensor, and check their
    arguments at once. They raise `NavsenseError` for an invalid request. `simulation.run_controls.RunControls` has
    their documentation.

    sensors: the sensors, with the changes that act.
    has_adjustable_current: true if `set_current` can change the current of the world.

    >>> session = ns.simulate(world, 1.0).session
    >>> controls: ns.streams.SupportsRunChanges = ns.simulation.run_controls.RunControls(session)
    >>> controls.switch("compass", on=False)
    >>> controls.is_on("compass")
    False
    """

    @property
    def sensors(self) -> tuple[MountedSensor, ...]:
        """The sensors."""
        ...

    @property
    def has_adjustable_current(self) -> bool:
        """True if the current can be changed."""
        ...

    def is_on(self, name: str) -> bool:
        """Return whether a sensor is on."""
        ...

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a sensor on or off."""
        ...

    def set(self, name: str, array: str, value: float) -> None:
        """Set an adjustable array."""
        ...

    def get_rate(self, name: str) -> float:
        """Return the highest rate (Hz) at which a sensor publishes."""
        ...

    def set_rate(self, name: str, rate: float) -> None:
        """Set the highest rate (Hz) at which a sensor publishes."""
        ...

    def get_process(self, name: str) -> AnyGaussMarkovProcess:
        """Return a process of the current: "speed", "horizontal_angle" or "vertical_angle"."""
        ...

    def set_current(self, values: Mapping[str, ChangeValue]) -> None:
        """Set properties of the current."""
        ...


class Publisher(RecordingWriter):
    """Publishes the time slices of a run.

    - `write` never waits for a subscriber. It raises `RecordingError` if the publisher is closed.
    - `close` delivers the queues of the subscribers that still read, and disconnects. A second call does nothing.
    - `abort` disconnects at once.

    url: with the host, and with the port that the system assigned for port 0.
    """

    url: str

    @property
    def subscriber_count(self) -> int:
        """The number of subscribers so far; 0 if the stream does not know them."""
        return 0

    def wait_for_subscriber(self) -> None:
        """Wait for the first subscriber, for the time that the URL gives. A stream that does not wait does nothing."""

    def attach_pace(self, pace: Pace | None) -> None:
        """Get the pace of the run, None for a run as fast as possible. A stream without controls does nothing."""

    def attach_controls(self, controls: SupportsRunChanges) -> None:
        """Get the controls of the run, before its first time slice. A stream without services does nothing."""

    def salvage(self) -> None:
        """Close: what was published stays published."""
        self.close()


@dataclass(frozen=True, eq=False)
class Stream:
    """Another program that a batch run can publish to.

    scheme: of its URLs, in lower case.
    name: the name in messages.
    url_format: the form of its URLs, for error texts and help: "pd0+tcp://HOST:PORT".
    open_publisher: connects or listens, and returns the publisher. Raises `RecordingError`.
    options: the names of the options that a URL can have.
    check: raises `RecordingError` if a URL is invalid, or the stream cannot publish a world. Opens no connection.
    is_live: a run that publishes to it runs in real time, unless the caller gives a speed.
    open_subscriber: connects, and returns the subscriber of the states of a frame. Raises `MotionError`. None: the
        stream sends no states.
    motion_options: the names of the options that a URL of a motion can have.
    motion_format: the form of these URLs.
    open_current: connects, and returns the subscriber of a current. Raises `FieldError`. None: the stream sends none.

    >>> stream = ns.streams.list_streams()[0]
    >>> stream.scheme, stream.url_format
    ('pd0+tcp', 'pd0+tcp://HOST:PORT')
    """

    scheme: str
    name: str
    url_format: str
    open_publisher: Callable[[StreamUrl, RecordedRun], Publisher]
    options: tuple[str, ...] = ()
    check: Callable[[StreamUrl, World | None], None] = lambda *_: None
    is_live: bool = False
    open_subscriber: Callable[[StreamUrl, DrivenFrame], Subscriber] | None = None
    motion_options: tuple[str, ...] = ()
    motion_format: str = ""
    open_current: Callable[[StreamUrl], CurrentSubscriber] | None = None


ENTRY_POINTS = "navsense.streams"
"""Group of the entry points of streams in other packages."""

_STREAMS: dict[str, Stream] = {}
"""Scheme -> stream."""


def register_stream(stream: Stream) -> None:
    """Register a stream; it replaces an earlier stream with the same scheme.

    >>> stream = ns.streams.STREAMS[0]  # or your own
    >>> ns.streams.register_stream(stream)
    >>> stream in ns.streams.list_streams()
    True
    """
    _STREAMS[stream.scheme] = stream


def list_streams() -> list[Stream]:
    """Return all registered streams.

    >>> [stream.scheme for stream in ns.streams.list_streams()]
    ['pd0+tcp', 'pd6+tcp', 'wl+tcp', 'nmea+tcp', 'foxglove', 'gazebo', 'gz', 'ros1', 'ros2', 'ros2+zenoh']
    """
    return list(_STREAMS.values())


def find_stream(scheme: str, where: Where) -> Stream:
    """Return the stream of a scheme; the package that declares it is imported. Raises `RecordingError`."""
    if scheme not in _STREAMS:
        for entry in entry_points(group=ENTRY_POINTS, name=scheme):
            register_stream(load_plugin(entry, Stream, "stream", "must be a Stream", RecordingError))
    if scheme not in _STREAMS:
        allowed = f"must be one of {', '.join(_STREAMS)}"
        raise RecordingError("scheme of the URL", scheme, where=where, allowed=allowed)
    return _STREAMS[scheme]


def parse_url(text: str, *, is_motion: bool = False) -> tuple[Stream, StreamUrl]:
    """Return the parts of the URL of an output or of a motion, and its stream. Raises `RecordingError`."""
    where = Where(text)
    if "://" not in text:
        raise RecordingError("URL without //", where=where, allowed="must be SCHEME://HOST:PORT")
    try:
        parts = urlsplit(text)
        host = parts.hostname or LOOPBACK
    except ValueError as error:
        raise RecordingError(f"invalid URL: {error}", where=where, allowed="must be SCHEME://HOST:PORT") from error
    stream = find_stream(parts.scheme or text.partition(":")[0], where)
    try:
        port = parts.port
    except ValueError as error:
        port_text, allowed = parts.netloc.rpartition(":")[2], "must be a number from 0 to 65535; 0 selects a free port"
        raise RecordingError("port", port_text, where=where, allowed=allowed) from error
    if parts.username is not None or parts.fragment:
        allowed = f"must be {stream.motion_format if is_motion else stream.url_format}"
        raise RecordingError("URL with a user name or a fragment", where=where, allowed=allowed)
    values = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(values)
    if len(options) < len(values):
        names = [name for name, _ in values]
        name = next(name for name in names if names.count(name) > 1)
        raise RecordingError("option of the URL", name, where=where, allowed="must be given once")
    known = (*stream.motion_options, *RUN_OPTIONS) if is_motion else stream.options
    for option in options:
        if option not in known:
            allowed = f"must be one of {', '.join(known)}" if known else "the stream has no options"
            raise RecordingError("option of the URL", option, where=where, allowed=allowed)
    return stream, StreamUrl(text, parts.scheme, host, port, parts.path, options)


def is_live(text: str) -> bool:
    """Return True for the URL of a live system, which a run publishes to in real time. Raises `RecordingError`.

    >>> ns.streams.is_live("foxglove://127.0.0.1:8765"), ns.streams.is_live("nmea+tcp://127.0.0.1:10110")
    (True, False)
    """
    return parse_url(text)[0].is_live


def check_url(text: str, world: World | None = None) -> None:
    """Raise `RecordingError` if a URL is invalid, or its stream cannot publish a world. Opens no connection.

    >>> ns.streams.check_url("pd0+tcp://127.0.0.1:16000")
    >>> try:
    ...     ns.streams.check_url("pd9+tcp://127.0.0.1:16000")
    ... except ns.NavsenseError as error:
    ...     print(str(error).partition(",")[0])
    pd9+tcp://127.0.0.1:16000: scheme of the URL: pd9+tcp; must be one of pd0+tcp
    """
    stream, url = parse_url(text)
    stream.check(url, world)


def open_publisher(text: str, recorded_run: RecordedRun) -> Publisher:
    """Open the publisher of a URL. Raises `RecordingError` if the URL is invalid or the stream cannot be opened.

    >>> session = ns.simulate(ns.testing.example_world(("dvl", ns.sensors.Dvl.example_spec())), 0.1).session
    >>> recorded_run = ns.recordings.make_recorded_run(session)
    >>> publisher = ns.streams.open_publisher("nmea+tcp://127.0.0.1:0?wait=0", recorded_run)
    >>> publisher.url.startswith("nmea+tcp://127.0.0.1:")  # with the port that the system assigned
    True
    >>> publisher.close()
    """
    stream, url = parse_url(text)
    return stream.open_publisher(url, recorded_run)


def open_subscriber(text: str, frame: DrivenFrame) -> Subscriber:
    """Connect to the live system of a URL and return the subscriber of the states of a frame.

    Raises `MotionError` if the URL is invalid, if the stream sends no states, or if the connection fails.

    >>> try:
    ...     ns.streams.open_subscriber("foxglove://127.0.0.1:8765", ns.streams.DrivenFrame("robot::base_link"))
    ... except ns.NavsenseError as error:
    ...     print(str(error).partition(";")[0])
    foxglove://127.0.0.1:8765: scheme of the motion: foxglove
    """
    try:
        stream, url = parse_url(text, is_motion=True)
    except RecordingError as error:
        where = error.where or Where(text)
        raise MotionError(error.what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error
    if stream.open_subscriber is None:
        schemes = [other.scheme for other in list_streams() if other.open_subscriber is not None]
        allowed = f"sends no states; must be one of {', '.join(schemes)}" if schemes else "sends no states"
        raise MotionError("scheme of the motion", stream.scheme, allowed=allowed, where=Where(text))
    return stream.open_subscriber(url, frame)


def open_current(text: str) -> CurrentSubscriber:
    """Connect to the live system of a URL and return the subscriber of the velocity of the water.

    Raises `FieldError` if the URL is invalid, if the stream sends no current, or if the connection fails.

    >>> try:
    ...     ns.streams.open_current("foxglove://127.0.0.1:8765")
    ... except ns.NavsenseError as error:
    ...     print(str(error).partition(";")[0])
    foxglove://127.0.0.1:8765: scheme of the current: foxglove
    """
    try:
        stream, url = parse_url(text, is_motion=True)
    except RecordingError as error:
        where = error.where or Where(text)
        raise FieldError(error.what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error
    if stream.open_current is None:
        schemes = [other.scheme for other in list_streams() if other.open_current is not None]
        allowed = f"sends no current; must be one of {', '.join(schemes)}"
        raise FieldError("scheme of the current", stream.scheme, allowed=allowed, where=Where(text))
    return stream.open_current(url)
