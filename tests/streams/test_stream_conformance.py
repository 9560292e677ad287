"""Every stream delivers all samples to its subscribers, waits for none of them, and releases its resources."""

from __future__ import annotations

import dataclasses
import json
import runpy
import socket
import sys
import threading
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import psutil
import pytest

import navsense as ns
from navsense import streams
from navsense.core.errors import RecordingError
from navsense.recordings.info import RecordedRun, make_recorded_run
from navsense.runner.run import Run
from navsense.streams import Publisher, Stream, register_stream
from navsense.streams import stream as stream_module
from tests.streams.foxglove_client import FoxgloveClient
from tests.streams.gazebo_classic_server import GazeboServer, GazeboSubscription, read_frame
from tests.streams.network_namespace import network_namespace
from tests.streams.ros1_peers import RosMaster, RosSubscriber

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "json_udp.py"
JSON_UDP: Stream = runpy.run_path(str(EXAMPLE))["STREAM"]

DVL = '<sensor name="dvl" type="dvl"><update_rate>50</update_rate><dvl><max>20</max></dvl></sensor>'
IMU = '<sensor name="imu" type="imu"><update_rate>50</update_rate></sensor>'
"""The sensor of the world: Gazebo Classic has no message for a DVL."""

WORLD = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <model name="bed">
      <static>true</static> <pose>0 0 -8 0 0 0</pose>
      <link name="ground"><collision name="c"><geometry><plane/></geometry></collision></link>
    </model>
    <model name="auv">
      <link name="base">
        {sensor}
      </link>
    </model>
  </world>
</sdf>
"""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400), pytest.mark.requirement("REC-1")]


class Subscriber(Protocol):
    """A subscriber of one stream.

    connects: True if it connects to the publisher, False if the publisher sends to its port.
    received: the samples so far, as bytes; complete after `finish`.
    """

    connects: bool
    received: bytearray

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        """Return a URL at which the publisher does not wait for its first subscriber."""
        ...

    @staticmethod
    def find_port(url: str) -> int:
        """Return the port of the publisher, or that to which it sends."""
        ...

    def finish(self) -> None:
        """Wait until everything is received that was published before `close`."""
        ...


class TcpSubscriber:
    """Reads a TCP connection in a thread, until the publisher closes it."""

    connects = True

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:0?wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        return int(url.partition("?")[0].rpartition(":")[2])

    def __init__(self, url: str) -> None:
        self.received, self.is_leaving = bytearray(), False
        host, _, port = url.partition("://")[2].partition("?")[0].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60.0)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self) -> None:
        with self.socket:
            try:
                while block := self.socket.recv(1 << 16):
                    self.received += block
            except ConnectionResetError:
                assert self.is_leaving

    def leave(self) -> None:
        """Close the connection in both directions."""
        self.is_leaving = True
        self.socket.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self.thread.join(60.0)
        assert not self.thread.is_alive()


class UdpSubscriber:
    """Receives datagrams in a thread. The publisher sends to the port of the subscriber."""

    connects = False

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:{udp_port()}"

    @staticmethod
    def find_port(url: str) -> int:
        return int(url.partition("?")[0].rpartition(":")[2])

    def __init__(self, url: str) -> None:
        self.received = bytearray()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", int(url.rpartition(":")[2])))
        self.socket.settimeout(0.5)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self) -> None:
        with self.socket:
            while True:
                try:
                    self.received += self.socket.recv(1 << 16) + b"\n"
                except TimeoutError:
                    if self.ending.is_set():
                        return

    def finish(self) -> None:
        self.ending.set()
        self.thread.join(60.0)
        assert not self.thread.is_alive()


class FoxgloveSubscriber:
    """A client of the WebSocket protocol of Foxglove, which receives the messages of one DVL."""

    connects = True

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:0?wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        return int(url.partition("?")[0].rpartition(":")[2])

    def __init__(self, url: str) -> None:
        self.received = bytearray()
        self.client = FoxgloveClient(url)
        self.client.subscribe([topic for topic in self.client.topics if topic.endswith("/dvl")])
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self) -> None:
        for message in self.client:
            self.received += message.data

    def leave(self) -> None:
        """Close the connection."""
        self.client.close()

    def finish(self) -> None:
        self.thread.join(60.0)
        assert not self.thread.is_alive()


class Ros1Subscriber:
    """A subscriber of the topic of one DVL. It finds the publisher through a master of the test."""

    connects = True
    master: RosMaster

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:{Ros1Subscriber.master.port}?wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        nodes = Ros1Subscriber.master.publishers["/clock"]
        return int(next(iter(nodes.values())).rstrip("/").rpartition(":")[2])

    def __init__(self, url: str) -> None:
        topic = next(topic for topic in self.master.list_topics() if topic.endswith("/dvl"))
        self.subscriber = RosSubscriber(self.master.find_node(topic), topic)

    @property
    def received(self) -> bytearray:
        return bytearray(b"".join(self.subscriber.messages))

    def leave(self) -> None:
        """Disconnect."""
        self.subscriber.leave()

    def finish(self) -> None:
        self.subscriber.finish()


class GazeboSubscriber:
    """A subscriber of the topic of one IMU. It finds the publisher through a master of the test."""

    connects = True
    server: GazeboServer

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:{GazeboSubscriber.server.port}?wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        GazeboSubscriber.server.wait(lambda: bool(GazeboSubscriber.server.publishers))
        return int(next(iter(GazeboSubscriber.server.publishers.values())).port)

    def __init__(self, url: str) -> None:
        self.find_port(url)
        (publish,) = self.server.publishers.values()
        self.received = bytearray()
        self.subscription = GazeboSubscription(publish)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self) -> None:
        while (data := read_frame(self.subscription.connection)) is not None:
            self.received += data
        self.subscription.connection.close()

    def leave(self) -> None:
        """Disconnect."""
        self.subscription.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self.thread.join(60.0)
        assert not self.thread.is_alive()


class GzSubscriber:
    """A peer of Gazebo transport, which receives the messages of one DVL."""

    connects = True

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:0?wait=0&partition=sea"

    @staticmethod
    def find_port(url: str) -> int:
        return int(url.partition("?")[0].rpartition(":")[2])

    def __init__(self, url: str) -> None:
        from tests.streams.gz_peer import GzPeer, wait_until

        self.received, self.is_leaving = bytearray(), False
        self.peer = GzPeer()
        wait_until(lambda: len(self.peer.adverts) == 2)
        (self.advert,) = (advert for advert in self.peer.adverts.values() if not advert.topic.endswith("/clock"))
        self.peer.subscribe(self.advert.topic)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        """Receive until the publisher has said goodbye, and the queue is empty."""
        while not self.is_leaving:
            frames = self.peer.receive(0.5)
            if frames is not None:
                self.received += frames[2]
            elif self.advert.process in self.peer.goodbyes:
                break
        self.peer.close()

    def leave(self) -> None:
        """Close the connection."""
        self.is_leaving = True
        self.finish()

    def finish(self) -> None:
        self.thread.join(60.0)
        assert not self.thread.is_alive()


class Ros2Subscriber:
    """A reader of the topic of one DVL on Cyclone DDS. Publishers have UDP ports, which the domain determines."""

    connects = True

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}?domain=7&wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        from tests.streams.ros2_peers import compute_discovery_port

        return compute_discovery_port(7)

    def __init__(self, url: str) -> None:
        from tests.streams.ros2_peers import Ros2Peer

        self.peer, self.received = Ros2Peer(7), bytearray()
        self.topic, message_type = self.peer.find_topic("/dvl")
        self.peer.read_topic(self.topic, message_type)

    def leave(self) -> None:
        """Leave the domain."""
        self.peer.close()

    def finish(self) -> None:
        if self.peer.is_open:
            self.received += b"".join(self.peer.take(self.topic))
            self.peer.close()


class ZenohSubscriber:
    """A subscriber of Zenoh to the topic of one DVL, through the router of the test."""

    connects = True
    router: Any

    @staticmethod
    def make_url(scheme: str, host: str) -> str:
        return f"{scheme}://{host}:{ZenohSubscriber.router.port}?domain=7&wait=0"

    @staticmethod
    def find_port(url: str) -> int:
        return int(ZenohSubscriber.router.port)

    def __init__(self, url: str) -> None:
        from tests.streams.zenoh_router import ZenohClient

        self.client = ZenohClient(self.router.port, "7/**/dvl/*/*")

    @property
    def received(self) -> bytearray:
        return bytearray(b"".join(data for _, data, _ in self.client.samples))

    def leave(self) -> None:
        """Disconnect."""
        self.client.close()

    def finish(self) -> None:
        count = -1
        while count < len(self.client.samples):
            count = len(self.client.samples)
            time.sleep(0.3)
        self.client.close()


def free_port(kind: socket.SocketKind) -> int:
    """Return a port that no program uses."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


RosSubscribers = Ros1Subscriber | Ros2Subscriber | ZenohSubscriber

AnySubscriber = TcpSubscriber | UdpSubscriber | FoxgloveSubscriber | GazeboSubscriber | GzSubscriber | RosSubscribers

SUBSCRIBERS: dict[str, type[AnySubscriber]] = {
    "pd0+tcp": TcpSubscriber,
    "pd6+tcp": TcpSubscriber,
    "wl+tcp": TcpSubscriber,
    "nmea+tcp": TcpSubscriber,
    "json+udp": UdpSubscriber,
    "foxglove": FoxgloveSubscriber,
    "gazebo": GazeboSubscriber,
    "gz": GzSubscriber,
    "ros1": Ros1Subscriber,
    "ros2": Ros2Subscriber,
    "ros2+zenoh": ZenohSubscriber,
}
"""Scheme -> subscriber."""


@pytest.fixture(params=[pytest.param(one, id=one.scheme) for one in (*streams.STREAMS, JSON_UDP)])
def stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stream]:
    """Return each stream of navsense, and that of the example. Some have a master, or a network of their own."""
    monkeypatch.setattr(stream_module, "_STREAMS", dict(stream_module._STREAMS))
    stream: Stream = request.param
    register_stream(stream)
    if stream.scheme == "gz":
        pytest.importorskip("zmq", reason="needs pyzmq (pip install 'navsense[gz]')")
        with network_namespace():
            yield stream
    elif stream.scheme == "ros2":
        pytest.importorskip("cyclonedds", reason="needs cyclonedds (pip install 'navsense[ros2]')")
        with network_namespace():
            yield stream
    elif stream.scheme == "ros2+zenoh":
        pytest.importorskip("zenoh", reason="needs eclipse-zenoh (pip install 'navsense[ros2]')")
        from tests.streams.zenoh_router import ZenohRouter

        ZenohSubscriber.router = ZenohRouter()  # TCP on loopback: the threads of Zenoh outlive a namespace
        yield stream
        ZenohSubscriber.router.close()
    elif stream.scheme == "gazebo":
        GazeboSubscriber.server = GazeboServer()
        yield stream
        GazeboSubscriber.server.close()
    elif stream.scheme == "ros1":
        Ros1Subscriber.master = RosMaster()
        yield stream
        Ros1Subscriber.master.close()
    else:
        yield stream


class Runs:
    """A world with one sensor, and runs of it."""

    def __init__(self, folder: Path, sensor: str) -> None:
        path = folder / "sea.sdf"
        path.write_text(WORLD.format(sensor=sensor), encoding="utf-8")
        self.world = ns.load(path)

    @cached_property
    def run(self) -> Run:
        """A short run: its 80 datagrams fit into the buffer of a socket."""
        return ns.simulate(self.world, 1.6, seed=3, epoch=1000)

    @cached_property
    def long_run(self) -> Run:
        """A run with more samples than the buffers of a socket hold."""
        return ns.simulate(self.world, 1600.0, seed=3, epoch=1000, truth_rate=1.0)


@pytest.fixture(scope="module")
def dvl_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("dvl"), DVL)


@pytest.fixture(scope="module")
def imu_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("imu"), IMU)


@pytest.fixture
def runs(stream: Stream, dvl_runs: Runs, imu_runs: Runs) -> Runs:
    """Return the runs of a world with a sensor that the stream publishes."""
    return imu_runs if stream.scheme == "gazebo" else dvl_runs


@pytest.fixture
def world(dvl_runs: Runs) -> ns.World:
    return dvl_runs.world


@pytest.fixture
def run(runs: Runs) -> Run:
    return runs.run


@pytest.fixture
def long_run(runs: Runs) -> Run:
    return runs.long_run


def count_samples(run: Run) -> int:
    """Return the number of samples of the only sensor."""
    (reading,) = run.values()
    return int(reading.emitted.sum())


def uses_tcp(stream: Stream) -> bool:
    """True if subscribers connect to a TCP port of the publisher."""
    return is_server(stream) and not stream.scheme.startswith("ros2")


def is_server(stream: Stream) -> bool:
    """True if subscribers connect to the publisher, False if it sends to their port."""
    return SUBSCRIBERS[stream.scheme].connects


def make_url(stream: Stream, host: str = "127.0.0.1") -> str:
    """Return a URL at which the publisher does not wait for its first subscriber."""
    return SUBSCRIBERS[stream.scheme].make_url(stream.scheme, host)


def find_port(stream: Stream, publisher: Publisher) -> int:
    """Return the port of a publisher, or that to which it sends."""
    return SUBSCRIBERS[stream.scheme].find_port(publisher.url)


def udp_port() -> int:
    return free_port(socket.SOCK_DGRAM)


def subscribe(stream: Stream, publisher: Publisher, count: int = 1) -> list[AnySubscriber]:
    """Return subscribers that are connected."""
    subscribers = [SUBSCRIBERS[stream.scheme](publisher.url) for _ in range(count)]
    until = time.monotonic() + 20.0
    while is_server(stream) and publisher.subscriber_count < count:
        assert time.monotonic() < until
        time.sleep(0.005)
    return subscribers


@pytest.fixture(autouse=True)
def check_threads() -> Iterator[None]:
    """Check that a closed publisher leaves no thread."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 10.0
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


def test_every_stream_has_a_subscriber() -> None:
    assert {stream.scheme for stream in streams.STREAMS} < set(SUBSCRIBERS)


def test_subscribers_receive_every_sample(stream: Stream, run: Run) -> None:
    """The samples do not depend on how the run is cut into time slices."""
    received = []
    for slices in (list(run.slices()), [piece for one in run.slices() for piece in halve(one)]):
        with streams.open_publisher(make_url(stream), make_recorded_run(run.session)) as publisher:
            subscribers = subscribe(stream, publisher, 2 if is_server(stream) else 1)
            for time_slice in slices:
                publisher.write(time_slice)
        for subscriber in subscribers:
            subscriber.finish()
            received.append(bytes(subscriber.received))
    assert len(received[0]) > 50 * count_samples(run)
    assert set(received) == {received[0]}
    if stream.scheme == "json+udp":
        stamps = [json.loads(line)["stamp"] for line in received[0].splitlines()]
        assert stamps == run["dvl"].stamp[run["dvl"].emitted].tolist()


def halve(time_slice: ns.core.readings.TimeSlice) -> Iterator[ns.core.readings.TimeSlice]:
    """Yield the halves of a time slice."""
    middle = 0.5 * (time_slice.start + time_slice.end)
    for start, end in ((time_slice.start, middle), (middle, time_slice.end)):
        parts = {}
        for field in ("readings", "truth"):
            series = getattr(time_slice, field)
            parts[field] = {
                name: one.select_rows(int((one.time < start).sum()), int((one.time < end).sum()))
                for name, one in series.items()
            }
        yield dataclasses.replace(time_slice, start=start, end=end, current=None, **parts)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the subscriber that does not read is disconnected
def test_publisher_does_not_wait_for_a_subscriber_that_does_not_read(stream: Stream, long_run: Run) -> None:
    """A blocked publisher would never end; the other subscribers receive everything."""
    if stream.scheme == "ros2":
        pytest.skip("tests/streams/test_ros2.py has a reader that does not take")
    publisher = streams.open_publisher(make_url(stream), make_recorded_run(long_run.session))
    stalled = socket.socket(socket.AF_INET, socket.SOCK_STREAM if is_server(stream) else socket.SOCK_DGRAM)
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    address = ("127.0.0.1", find_port(stream, publisher))
    (stalled.connect if is_server(stream) else stalled.bind)(address)
    subscribers = subscribe(stream, publisher) if is_server(stream) else []

    def publish() -> None:
        for time_slice in long_run.slices():
            publisher.write(time_slice)

    writer = threading.Thread(target=publish)
    with stalled:
        writer.start()
        writer.join(120.0)
        assert not writer.is_alive()
        publisher.close()
    for subscriber in subscribers:
        subscriber.finish()
        assert len(subscriber.received) > 50 * count_samples(long_run)


def test_disconnected_subscriber_does_not_affect_others(stream: Stream, run: Run) -> None:
    slices = list(run.slices())
    with streams.open_publisher(make_url(stream), make_recorded_run(run.session)) as publisher:
        if is_server(stream):
            staying, leaving = subscribe(stream, publisher, 2)
            assert not isinstance(leaving, UdpSubscriber)
            leaving.leave()
        for time_slice in slices:
            publisher.write(time_slice)
    if is_server(stream):
        staying.finish()
        leaving.finish()
        assert len(staying.received) > 50 * count_samples(run)


def test_host_defaults_to_loopback(stream: Stream, run: Run) -> None:
    with streams.open_publisher(make_url(stream, host=""), make_recorded_run(run.session)) as publisher:
        _, url = streams.stream.parse_url(publisher.url)
        assert url.host == "127.0.0.1"
        if uses_tcp(stream):
            connections = psutil.Process().net_connections(kind="inet")
            listening = [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]
            port = find_port(stream, publisher)
            assert [address.ip for address in listening if address.port == port] == ["127.0.0.1"]


def test_closed_publisher_releases_its_port_and_rejects_writes(stream: Stream, run: Run) -> None:
    for end in ("close", "abort"):
        publisher = streams.open_publisher(make_url(stream), make_recorded_run(run.session))
        port = find_port(stream, publisher)
        getattr(publisher, end)()
        publisher.close()
        publisher.abort()
        with pytest.raises(RecordingError, match="closed"):
            publisher.write(next(run.slices()))
        kind = socket.SOCK_STREAM if uses_tcp(stream) else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))


def test_check_opens_no_connection(stream: Stream, runs: Runs) -> None:
    kind = socket.SOCK_STREAM if is_server(stream) else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        port = "" if stream.scheme == "ros2" else f":{taken.getsockname()[1]}"
        streams.check_url(f"{stream.scheme}://127.0.0.1{port}", runs.world)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("{}://127.0.0.1:70000", "port: 70000; must be a number from 0 to 65535"),
        ("{}://127.0.0.1:9x", "port: 9x; must be a number from 0 to 65535"),
        ("{}:127.0.0.1:5000", "URL without //; must be SCHEME://HOST:PORT"),
        ("{}:/127.0.0.1:5000", "URL without //"),
        ("{}://[::1:5000", "invalid URL"),
        ("{}://user@127.0.0.1:5000", "user name"),
        ("{}://127.0.0.1:5000#a", "fragment"),
        ("{}://127.0.0.1:5000?colour=red", "option of the URL: colour; must be one of "),
    ],
)
def test_invalid_url_is_an_error_that_names_it(stream: Stream, runs: Runs, url: str, problem: str) -> None:
    url = url.format(stream.scheme)
    with pytest.raises(RecordingError) as error:
        ns.record(runs.world, url, 0.1)
    assert str(error.value).startswith(f"{url}: ")
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("{}://127.0.0.1", "port"),
        ("{}://127.0.0.1:5000?sensor=nobody", "sensor: nobody; must be one of auv::base::dvl"),
    ],
)
def test_url_without_its_port_or_sensor_is_an_error(stream: Stream, world: ns.World, url: str, problem: str) -> None:
    if "sensor" not in stream.options:
        pytest.skip("publishes all sensors, and has a default port")
    url = url.format(stream.scheme)
    with pytest.raises(RecordingError) as error:
        ns.record(world, url, 0.1)
    assert str(error.value).startswith(f"{url}: ")
    assert problem in str(error.value)


def test_world_without_a_supported_sensor_is_an_error(stream: Stream, world: ns.World) -> None:
    """The error comes before a connection is opened."""
    if stream.scheme in ("foxglove", "ros1", "ros2", "ros2+zenoh"):
        pytest.skip("publishes a world without a sensor")
    empty = dataclasses.replace(world, sensors=())
    with pytest.raises(RecordingError, match=r"requires a DVL|sensor"):
        streams.open_publisher(make_url(stream), RecordedRun(empty))


def test_duplicate_output_is_an_error(stream: Stream, runs: Runs) -> None:
    url = f"{stream.scheme}://127.0.0.1:5000"
    with pytest.raises(ns.NavsenseError, match="must be different files, folders and URLs"):
        ns.record(runs.world, [url, url], 0.1)


def test_stream_of_another_package_is_found_by_its_scheme(world: ns.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_STREAMS", dict(stream_module._STREAMS))
    entries = [SimpleNamespace(name="json+udp", load=lambda: JSON_UDP, dist=None, value="json_udp:STREAM")]
    monkeypatch.setattr(stream_module, "entry_points", lambda group, name: entries if name == "json+udp" else [])
    subscriber = UdpSubscriber(f"json+udp://127.0.0.1:{udp_port()}")
    port = subscriber.socket.getsockname()[1]
    ns.record(world, f"json+udp://127.0.0.1:{port}", 1.0, seed=3)
    subscriber.finish()
    emitted = ns.simulate(world, 1.0, seed=3)["dvl"].emitted
    assert 40 < len(subscriber.received.splitlines()) == emitted.sum()


def test_package_without_its_stream_is_an_error_that_names_it(world: ns.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_STREAMS", dict(stream_module._STREAMS))
    package = SimpleNamespace(name="broken")
    entries = [SimpleNamespace(name="x+y", load=lambda: 3, dist=package, value="broken:STREAM")]
    monkeypatch.setattr(stream_module, "entry_points", lambda group, name: entries)
    with pytest.raises(RecordingError, match="stream 'x\\+y' of package broken: is 3; must be a Stream; repair"):
        ns.record(world, "x+y://:1", 0.1)


def test_unknown_scheme_is_an_error_that_lists_the_schemes(world: ns.World) -> None:
    with pytest.raises(RecordingError, match=r"^gopher://a:1: scheme of the URL: gopher; must be one of pd0\+tcp, "):
        ns.record(world, "gopher://a:1", 0.1)


def test_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stream_module, "_STREAMS", dict(stream_module._STREAMS))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.startswith("50 samples, the last: {'sensor': 'box::base::imu'")
