"""Gazebo transport: a peer written from the specification receives what the `.gz.mcap` recording has.

All tests with discovery run in a network namespace of their own, or are skipped.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from mcap.reader import make_reader

import navsense as ns
from navsense import streams
from navsense.core.errors import RecordingError
from navsense.recordings import gazebo
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.streams.gz import discovery as discovery_module
from navsense.streams.gz import node as node_module
from navsense.streams.gz.publisher import GzPublisher
from navsense.streams.gz.settings import Settings, read_settings
from navsense.streams.gz.versions import get_package
from navsense.streams.stream import parse_url
from tests.streams.network_namespace import network_namespace

zmq = pytest.importorskip("zmq", reason="needs pyzmq (pip install 'navsense[gz]')")
from tests.streams.gz_peer import (  # noqa: E402 it needs pyzmq
    ADVERTISE,
    DEADLINE,
    HEARTBEAT,
    SUBSCRIBE,
    Discovery,
    GzPeer,
    wait_until,
)

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(200), pytest.mark.requirement("LIV-3")]

WORLD = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <model name="auv">
      <link name="base">
        <sensor name="imu" type="imu">
          <update_rate>200</update_rate>
          <imu><angular_velocity><x><noise type="gaussian"><stddev>0.01</stddev></noise></x></angular_velocity></imu>
        </sensor>
        <sensor name="alt" type="altimeter">
          <update_rate>20</update_rate> <navsense:latency><fixed>0.32</fixed></navsense:latency>
        </sensor>
        <sensor name="dvl" type="dvl"><update_rate>5</update_rate><dvl><max>20</max></dvl></sensor>
      </link>
    </model>
  </world>
</sdf>
"""

PREFIX = "@/sea@/world/sea/model/auv/link/base/sensor"
IMU, ALTIMETER, DVL = f"{PREFIX}/imu/imu", f"{PREFIX}/alt/altimeter", f"{PREFIX}/dvl/dvl"


@pytest.fixture
def network() -> Iterator[None]:
    with network_namespace():
        yield


@pytest.fixture
def peer(network: None) -> Iterator[GzPeer]:
    peer = GzPeer()
    yield peer
    peer.close()


@pytest.fixture(autouse=True)
def check_threads() -> Iterator[None]:
    """Check that a closed publisher leaves no thread, of Python or of ZeroMQ, and no open file."""
    process = psutil.Process()
    before = process.num_threads()
    yield
    wait_until(lambda: process.num_threads() <= before)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ns.World:
    path = tmp_path_factory.mktemp("sea") / "sea.sdf"
    path.write_text(WORLD, encoding="utf-8")
    return ns.load(path)


@pytest.fixture(scope="module")
def run(world: ns.World) -> Run:
    return ns.simulate(world, 2.0, seed=3, epoch=1000)


def open_publisher(run: Run) -> GzPublisher:
    publisher = streams.open_publisher("gz://?wait=0&partition=sea", make_recorded_run(run.session))
    assert isinstance(publisher, GzPublisher)
    return publisher


def subscribe(publisher: streams.Publisher, peer: GzPeer, *topics: str) -> None:
    """Subscribe, and wait until the publisher has the subscriptions."""
    count = publisher.subscriber_count + len(topics)
    for topic in topics:
        peer.subscribe(topic)
    wait_until(lambda: publisher.subscriber_count == count)


def has_subscribers(publisher: GzPublisher, name: str) -> bool:
    """Return True if a topic has subscribers, after reading the subscriptions that have arrived."""
    publisher._node.update_subscribers()
    return publisher._node.topics[name].has_subscribers


def list_slices(run: Run, length: float = 0.05) -> list[ns.core.readings.TimeSlice]:
    """Return the run in time slices of a length (s)."""
    ends = [n * length for n in range(round(run.session.duration / length) + 1)]
    return [cut_time_slice(run.readings, run.truth, None, start, end) for start, end in itertools.pairwise(ends)]


def read_recording(run: Run, folder: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return the log times and bytes of the `.gz.mcap` recording by topic."""
    path = folder / "run.gz.mcap"
    run.save(path)
    found: dict[str, list[tuple[int, bytes]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            found.setdefault(channel.topic, []).append((message.log_time, message.data))
    return found


def test_messages_are_those_of_the_recording(run: Run, peer: GzPeer, tmp_path: Path) -> None:
    with open_publisher(run) as publisher:
        wait_until(lambda: len(peer.adverts) == 4)
        subscribe(publisher, peer, IMU, ALTIMETER, DVL)
        for time_slice in list_slices(run):
            publisher.write(time_slice)
    recording = read_recording(run, tmp_path)
    received = peer.receive_count(sum(map(len, recording.values())))
    address = publisher.url.partition("?")[0].replace("gz://", "tcp://").encode()
    assert {frames[1] for frames in received} == {address}
    types = {advert.topic: advert.type for advert in peer.adverts.values()}
    assert types.pop("@/sea@/clock") == "gz.msgs.Clock"
    assert types == {IMU: "gz.msgs.IMU", ALTIMETER: "gz.msgs.Altimeter", DVL: "gz.msgs.DVLVelocityTracking"}
    assert {f"@/sea@{topic}" for topic in recording} == set(types)
    for topic, rows in recording.items():
        mine = [frames for frames in received if frames[0].decode() == f"@/sea@{topic}"]
        assert [frames[2] for frames in mine] == [data for _, data in rows]
        assert {frames[3].decode() for frames in mine} == {types[f"@/sea@{topic}"]}
        assert {len(frames) for frames in mine} == {4}
    assert len(received) > 2.0 * (200 + 20 + 5) - 10


def test_message_is_sent_at_its_time_of_arrival(run: Run, peer: GzPeer, tmp_path: Path) -> None:
    """The altimeter has a latency of 0.32 s: 64 messages of the IMU come before its first one."""
    recording = read_recording(run, tmp_path)
    slices = list_slices(run)[:20]
    rows = sorted(
        (log_time, data)
        for topic, count in ((IMU, 200), (ALTIMETER, 20))
        for log_time, data in recording[topic.rpartition("@")[2]][:count]
    )
    with open_publisher(run) as publisher:
        subscribe(publisher, peer, IMU, ALTIMETER)
        for time_slice in slices:
            publisher.write(time_slice)
        sent = [data for log_time, data in rows if log_time <= 1e9 * (1000 + slices[-1].end) + 1]
        received = peer.receive_count(len(sent))
        assert [frames[2] for frames in received] == sent
        assert 200 < len(sent) < len(rows)
    received += peer.receive_count(len(rows) - len(sent))
    assert [frames[2] for frames in received] == [data for _, data in rows]
    assert [frames[0].decode() for frames in received].index(ALTIMETER) >= 64


def test_topic_without_subscribers_is_not_encoded(
    run: Run, peer: GzPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that nobody receives are numbered too."""
    calls: list[str] = []
    original = gazebo.NumberedEncoder.encode

    def encode(self: gazebo.NumberedEncoder, reading: ns.core.readings.Reading) -> object:
        calls.append(reading.type)
        return original(self, reading)

    monkeypatch.setattr(gazebo.NumberedEncoder, "encode", encode)
    slices = list_slices(run)
    with open_publisher(run) as publisher:
        for time_slice in slices[:10]:
            publisher.write(time_slice)
        assert not calls
        subscribe(publisher, peer, IMU, DVL)
        for time_slice in slices[10:30]:
            publisher.write(time_slice)
        assert set(calls) == {"imu", "dvl"}
        calls.clear()
        received = peer.receive_count(200)
        peer.unsubscribe(IMU)
        wait_until(lambda: not has_subscribers(publisher, IMU))
        for time_slice in slices[30:]:
            publisher.write(time_slice)
        assert set(calls) == {"dvl"}
    recording = read_recording(run, tmp_path)
    last = recording[DVL.rpartition("@")[2]][-1][1]
    while last not in [frames[2] for frames in received]:
        received += peer.receive_count(1)
    imu = [data for _, data in recording[IMU.rpartition("@")[2]]]
    assert [frames[2] for frames in received if frames[0].decode() == IMU] == imu[100:300]
    dvl = [data for _, data in recording[DVL.rpartition("@")[2]]]
    mine = [frames[2] for frames in received if frames[0].decode() == DVL]
    assert mine
    assert mine == dvl[-len(mine) :]


def test_subscriber_that_vanishes_is_noticed(run: Run, network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says neither END_CONNECTION nor BYE: its connection ends."""
    with open_publisher(run) as publisher:
        peer = GzPeer()
        subscribe(publisher, peer, IMU)
        publisher.write(list_slices(run)[0])
        assert has_subscribers(publisher, IMU)
        monkeypatch.setattr(peer, "send", lambda *_, **__: None)
        peer.close()
        wait_until(lambda: not has_subscribers(publisher, IMU))


def test_topic_is_advertised_when_it_is_asked_for(run: Run, peer: GzPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other one. There is one heartbeat, at the start."""
    monkeypatch.setattr(discovery_module, "HEARTBEAT_INTERVAL", 3600.0)
    with open_publisher(run):
        wait_until(lambda: all(peer.count_adverts(topic) == 1 for topic in (IMU, ALTIMETER, DVL)))
        for topic in ("@/other@/imu", IMU):
            peer.send(SUBSCRIBE, sub={"topic": topic})
        wait_until(lambda: peer.count_adverts(IMU) == 2)
    advert = peer.adverts[IMU]
    assert (advert.scope, len(advert.process)) == (2, 36)
    wait_until(lambda: peer.goodbyes == {advert.process})
    assert [peer.count_adverts(topic) for topic in (IMU, ALTIMETER, DVL)] == [2, 1, 1]


def test_every_heartbeat_has_all_topics(run: Run, peer: GzPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library has one each second."""
    assert discovery_module.HEARTBEAT_INTERVAL == 1.0
    monkeypatch.setattr(discovery_module, "HEARTBEAT_INTERVAL", 0.05)
    with open_publisher(run):
        wait_until(lambda: len(peer.adverts) == 4)
        count = peer.kinds.count(HEARTBEAT)
        wait_until(lambda: peer.kinds.count(HEARTBEAT) >= count + 3)
        kinds = list(peer.kinds)
    heartbeats = [index for index, kind in enumerate(kinds) if kind == HEARTBEAT]
    for start, end in list(itertools.pairwise(heartbeats))[-2:]:
        assert kinds[start + 1 : end] == [ADVERTISE] * 4


def test_other_version_of_the_protocol_is_a_warning_once(
    run: Run, peer: GzPeer, caplog: pytest.LogCaptureFixture
) -> None:
    other = GzPeer(version=9)
    try:
        with open_publisher(run):
            for _ in range(5):
                other.send(HEARTBEAT)
                other.send(SUBSCRIBE, sub={"topic": IMU})
            wait_until(lambda: bool(caplog.records))
            other.send(SUBSCRIBE, sub={"topic": IMU})
            count = peer.kinds.count(ADVERTISE)
            peer.send(SUBSCRIBE, sub={"topic": IMU})  # handled after those of the other version
            wait_until(lambda: peer.kinds.count(ADVERTISE) > count)
    finally:
        other.close()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    expected = f"process {other.process} at 127.0.0.1 has version 9 of the protocol, not 10; it is ignored"
    assert expected in caplog.text


def test_subscriber_without_the_type_is_a_warning_once(
    run: Run, peer: GzPeer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with the type sends NEW_CONNECTION to the process of the publisher."""
    monkeypatch.setattr(node_module, "REGISTRATION_TIMEOUT", 3600.0)
    slices = list_slices(run)
    with open_publisher(run) as publisher:
        subscribe(publisher, peer, ALTIMETER)
        wait_until(lambda: bool(publisher._node._discovery.registered_topics))
        monkeypatch.setattr(peer, "_send_connection", lambda *_: None)
        monkeypatch.setattr(node_module, "REGISTRATION_TIMEOUT", 0.1)
        subscribe(publisher, peer, IMU)
        publisher.write(slices[0])
        wait_until(lambda: has_subscribers(publisher, IMU) and bool(caplog.records))
        for time_slice in slices[1:10]:
            publisher.write(time_slice)
    (record,) = caplog.records
    expected = f"a subscriber of {IMU} may expect another type than gz.msgs.IMU; choose ?version= of the subscriber"
    assert record.getMessage().endswith(expected)


GARBAGE = [
    (b"", b""),
    (b"", b"\1"),
    (b"hello", b"\7\0"),  # length of an older version: with its own two bytes
    (b"\xff" * 40, None),
    (b"\x1a\x05ab", None),
    (b"\x12\x01a", None),  # the version is a text
    (b"\x2a\x02\x08", None),
    (b"\x1a\x02\xff\xfe\x10\x0a", None),  # the process is no text
    (b"\x10\x0a", None),  # no process
    (b"\x20\x02\x10\x0a\x1a\x01a\x32\x03\x0a\x01\xff", None),  # the topic is no text
    (b"\x20\x02\x10\x0a\x1a\x01a\x28\x01\x30\x01", None),  # numbers for messages
    (os.urandom(60_000), None),
]


def test_garbage_datagrams_are_a_warning_once(run: Run, network: None, caplog: pytest.LogCaptureFixture) -> None:
    """The discovery still works afterwards."""
    with open_publisher(run):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            for body, prefix in 3 * GARBAGE:
                data = (struct.pack("<H", len(body)) if prefix is None else prefix) + body
                sender.sendto(data, ("239.255.0.7", 10317))
        wait_until(lambda: bool(caplog.records))
        peer = GzPeer()
        try:
            peer.subscribe(IMU)
        finally:
            peer.close()
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 1
    assert re.search(r"a datagram of 127\.0\.0\.1:\d+ is not a discovery message: ", texts[0])


@pytest.mark.parametrize(("body", "prefix"), GARBAGE)
def test_garbage_datagram_is_an_error_of_the_parser(body: bytes, prefix: bytes | None) -> None:
    data = (struct.pack("<H", len(body)) if prefix is None else prefix) + body
    try:
        message = discovery_module.parse_datagram(data)
    except ValueError:
        return
    assert (message.process, message.topic, message.publisher) == ("a", "", "")


def test_discovery_message_is_read() -> None:
    message = Discovery(version=10, process_uuid="p", type=SUBSCRIBE, sub={"topic": "@/a@/b"}, flags={"no_relay": True})
    body = message.SerializeToString()
    parsed = discovery_module.parse_datagram(struct.pack("<H", len(body)) + body)
    assert parsed == discovery_module.DiscoveryMessage(10, SUBSCRIBE, "p", "@/a@/b", is_not_for_relays=True)


def test_garbage_on_the_port_of_the_messages_is_a_warning_once(
    run: Run, peer: GzPeer, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither bytes that are no ZeroMQ, nor a frame of 2^60 bytes, nor connections without a byte disturb others."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(55, b"\0")
    ready = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
    data = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\1\1\1\1", os.urandom(1000), greeting + ready + b"\2" + b"\x0f" * 8)
    with open_publisher(run) as publisher:
        address = ("127.0.0.1", int(publisher.url.partition("?")[0].rpartition(":")[2]))
        connections = []
        for one in data:
            connections.append(socket.create_connection(address))
            connections[-1].sendall(one)
        wait_until(lambda: publisher.subscriber_count > 0 or bool(caplog.records))
        publisher.write(list_slices(run)[0])
        assert not any(topic.has_subscribers for topic in publisher._node.topics.values())
        subscribe(publisher, peer, IMU)
        for time_slice in list_slices(run):
            publisher.write(time_slice)
    assert len(peer.receive_count(400)) == 400
    for connection in connections:
        connection.close()
    (record,) = caplog.records
    assert record.getMessage().endswith("a program that is not a node of Gazebo transport has connected; it is ignored")


@pytest.fixture
def slow_peer(network: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[GzPeer]:
    """Return a peer that does not read, with small queues on both sides."""
    monkeypatch.setenv("GZ_TRANSPORT_SNDHWM", "2000")
    monkeypatch.setattr(node_module, "CLOSE_TIMEOUT", 0.3)
    slow = GzPeer()
    slow.subscriber.rcvhwm = 10
    yield slow
    slow.close()


def test_slow_subscriber_loses_messages_and_delays_nobody(
    run: Run, slow_peer: GzPeer, peer: GzPeer, caplog: pytest.LogCaptureFixture
) -> None:
    """Another subscriber receives every message."""
    received: list[int] = []
    count, size = 20_000, 3000  # 60 MB, more than the buffers of the sockets; ZeroMQ may count 1000 more as unread

    def receive() -> None:
        end = time.monotonic() + DEADLINE
        while len(received) < count and time.monotonic() < end:
            if (frames := peer.receive(0.1)) is not None:
                received.append(int(frames[2][:8]))

    def is_received(number: int) -> bool:
        return len(received) >= number

    with open_publisher(run) as publisher:
        subscribe(publisher, slow_peer, IMU)
        subscribe(publisher, peer, IMU)
        reading = threading.Thread(target=receive)
        reading.start()
        topic = publisher._node.topics[IMU]
        for first in range(0, count, 500):
            publisher._node.send([(topic, b"%08d" % n + bytes(size - 8)) for n in range(first, first + 500)])
            wait_until(partial(is_received, first + 500))
        reading.join()
    assert received == list(range(count))
    assert publisher._node.overflow_count > 0
    texts = [record.getMessage().partition("partition=sea: ")[2] for record in caplog.records]
    assert texts[0] == f"the queue of a subscriber of {IMU} is full; it loses messages"
    assert re.fullmatch(r"the queue of a subscriber was full \d+ times?; it lost messages", texts[1])
    assert len(texts) == 2


def test_queue_of_a_slow_subscriber_is_bounded(run: Run, slow_peer: GzPeer) -> None:
    process = psutil.Process()
    with open_publisher(run) as publisher:
        subscribe(publisher, slow_peer, IMU)
        messages = [(publisher._node.topics[IMU], bytes(3000))] * 1000
        memory = []
        for _ in range(100):  # 300 MB
            publisher._node.send(messages)
            memory.append(process.memory_info().rss)
        assert publisher._node.overflow_count > 0
    assert memory[-1] - memory[20] < 10e6


@pytest.fixture
def other_network(network: None) -> str:
    """Add a network with two ends, and return the address of the first."""
    added = subprocess.run(
        ["ip", "link", "add", "one", "type", "veth", "peer", "name", "two"], check=False, capture_output=True
    )
    if added.returncode:
        pytest.skip(f"needs a second network interface: {added.stderr.decode().strip()}")
    for command in ("addr add 10.9.8.1/24 dev one", "link set one up", "link set two up"):
        subprocess.run(["ip", *command.split()], check=True)
    return "10.9.8.1"


def listen_to_group(address: str) -> socket.socket:
    """Return a socket that receives the datagrams of discovery that are sent on the network of an address."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.setsockopt(socket.IPPROTO_IP, discovery_module.IP_MULTICAST_ALL, 0)
    listener.bind(("239.255.0.7", 10317))
    membership = socket.inet_aton("239.255.0.7") + socket.inet_aton(address)
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    listener.settimeout(DEADLINE)
    return listener


def test_default_is_loopback_only(
    run: Run, other_network: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is sent on the other network, to the group or to a relay, and nothing is read from there."""
    monkeypatch.setenv("GZ_RELAY", "10.9.8.2")
    with listen_to_group(other_network) as outside, listen_to_group("127.0.0.1") as inside, open_publisher(run):
        addresses = {one.laddr.ip for one in psutil.Process().net_connections("inet")}
        assert addresses == {"127.0.0.1", "239.255.0.7"}
        for _ in range(9):  # two heartbeats
            assert inside.recv(1000)
        outside.setblocking(False)
        with pytest.raises(BlockingIOError):
            outside.recv(1000)
        outside.settimeout(DEADLINE)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(other_network))
            sender.sendto(b"garbage", ("239.255.0.7", 10317))
        assert outside.recv(1000) == b"garbage"
        for _ in range(5):  # another heartbeat
            assert inside.recv(1000)
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(": ")[2] for text in texts] == [
        "relays are ignored, as other machines cannot reach 127.0.0.1; name another host"
    ]


def test_named_host_is_the_only_network(run: Run, other_network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `GZ_IP` of another network, the discovery and the messages are there, and a relay gets the datagrams."""
    monkeypatch.setenv("GZ_IP", other_network)
    monkeypatch.setenv("GZ_RELAY", "127.0.0.5")
    relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    relay.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    relay.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    relay.bind(("127.0.0.5", 10317))
    relay.settimeout(DEADLINE)
    with (
        listen_to_group(other_network) as outside,
        listen_to_group("127.0.0.1") as inside,
        relay,
        open_publisher(run) as publisher,
    ):
        assert publisher.url.startswith("gz://10.9.8.1:")
        assert HEARTBEAT in {Discovery.FromString(outside.recv(1000)[2:]).type for _ in range(2)}
        assert Discovery.FromString(relay.recv(1000)[2:]).flags.relay
        for _ in range(9):  # two heartbeats
            assert outside.recv(1000)
        inside.setblocking(False)
        with pytest.raises(BlockingIOError):
            inside.recv(1000)


def test_close_releases_every_file(run: Run, peer: GzPeer) -> None:
    process = psutil.Process()
    before = process.num_fds()
    for end in ("close", "abort"):
        publisher = open_publisher(run)
        publisher.write(list_slices(run)[0])
        getattr(publisher, end)()
        wait_until(lambda: process.num_fds() <= before)  # files of an earlier test can close in the meantime


def test_run_waits_for_the_first_subscriber(run: Run, peer: GzPeer, caplog: pytest.LogCaptureFixture) -> None:
    subscribing = threading.Thread(target=lambda: peer.subscribe(IMU))
    subscribing.start()
    with streams.open_publisher("gz://?partition=sea&wait=60", make_recorded_run(run.session)) as publisher:
        publisher.wait_for_subscriber()
        assert publisher.subscriber_count == 1
    subscribing.join()
    assert not caplog.records
    with streams.open_publisher("gz://?partition=sea&wait=0.1", make_recorded_run(run.session)) as publisher:
        publisher.wait_for_subscriber()
    assert "no subscriber within 0.1 s; the run continues" in caplog.text


def test_port_and_partition_are_options(run: Run, peer: GzPeer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"gz://localhost:{port}?partition=a/b/&wait=0"
    with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
        assert publisher.url == url
        wait_until(lambda: len(peer.adverts) == 4)
        assert {advert.address for advert in peer.adverts.values()} == {f"tcp://127.0.0.1:{port}"}
        assert peer.adverts.pop("@/a/b@/clock").type == "gz.msgs.Clock"
        assert all(topic.startswith("@/a/b@/world") for topic in peer.adverts)
        with pytest.raises(RecordingError, match=rf"port is in use: 127.0.0.1:{port}"):
            streams.open_publisher(url, make_recorded_run(run.session))


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("192.0.2.1", r"cannot be served: cannot assign requested address: 192\.0\.2\.1:0"),
        ("0.0.0.0", r"host: 0\.0\.0\.0; must be an IPv4 address of this machine"),  # noqa: S104
        ("239.255.0.7", "host"),
        ("[::1]", "host: ::1; must be an IPv4 address"),
        ("a..b", "host"),
    ],
)
def test_host_must_be_an_address_of_this_machine(run: Run, network: None, host: str, problem: str) -> None:
    with pytest.raises(RecordingError, match=problem):
        streams.open_publisher(f"gz://{host}?wait=0", make_recorded_run(run.session))


def settings(query: str, **environment: str) -> Settings:
    return read_settings(parse_url(f"gz://{query}")[1], environment)


def test_settings_come_from_the_url_then_from_the_environment() -> None:
    default = settings("")
    assert (default.version, default.host, default.port) == (15, "127.0.0.1", 0)
    assert (default.group, default.discovery_port, default.service_discovery_port) == ("239.255.0.7", 10317, 10318)
    assert default.partition.startswith(f"{socket.gethostname()}:")
    assert default.make_topic("/a").startswith(f"@/{socket.gethostname()}:")
    variables = {
        "PARTITION": "p",
        "IP": "10.0.0.1",
        "RELAY": "10.0.1.1:10.0.2.1",
        "DISCOVERY_MULTICAST_IP": "239.1.2.3",
        "DISCOVERY_MSG_PORT": "20000",
        "DISCOVERY_SRV_PORT": "20001",
        "TRANSPORT_SNDHWM": "7",
        "TRANSPORT_TOPIC_STATISTICS": "1",
    }
    for query, prefix in (("", "GZ_"), ("?version=12", "GZ_"), ("?version=11", "IGN_")):
        read = settings(query, **{f"{prefix}{name}": text for name, text in variables.items()})
        assert (read.partition, read.host, read.relays) == ("p", "10.0.0.1", ("10.0.1.1", "10.0.2.1"))
        assert (read.group, read.discovery_port, read.queue_messages) == ("239.1.2.3", 20000, 7)
        assert (read.service_discovery_port, read.has_statistics) == (20001, True)
        other = "IGN_" if prefix == "GZ_" else "GZ_"
        assert settings(f"127.0.0.1{query}", **{f"{other}{name}": text for name, text in variables.items()}).host == (
            "127.0.0.1"
        )
    assert settings("127.0.0.2?partition=q", GZ_IP="10.0.0.1", GZ_PARTITION="p").host == "127.0.0.2"
    assert settings("127.0.0.2?partition=q", GZ_PARTITION="p").make_topic("/t") == "@/q@/t"
    assert settings("?partition=", GZ_PARTITION="p").make_topic("/t") == "@@/t"


@pytest.mark.parametrize(
    ("query", "environment", "problem"),
    [
        ("?version=10", {}, "version: 10; must be a whole number from 11 to 15"),
        ("?version=eleven", {}, "version: eleven; must be a whole number"),
        ("?version=16", {}, "version: 16"),
        ("?partition=a@b", {}, "partition: a@b; must not contain"),
        ("?partition=/", {}, "partition: /"),
        ("/world", {}, "path of the URL: /world; must be empty"),
        ("?wait=-1", {}, "wait"),
        ("", {"GZ_PARTITION": "a b"}, "partition: a b"),
        ("", {"GZ_DISCOVERY_MSG_PORT": "0"}, "GZ_DISCOVERY_MSG_PORT: 0; must be a whole number from 1 to 65535"),
        ("", {"GZ_TRANSPORT_SNDHWM": "-1"}, "GZ_TRANSPORT_SNDHWM: -1"),
        ("", {"GZ_DISCOVERY_MULTICAST_IP": "10.0.0.1"}, "GZ_DISCOVERY_MULTICAST_IP: 10.0.0.1; must be a multicast"),
        ("", {"GZ_RELAY": "10.0.0.1:x"}, "GZ_RELAY: x; must be an IPv4 address"),
        ("?version=11", {"IGN_RELAY": "x"}, "IGN_RELAY: x"),
        (
            "",
            {"GZ_TRANSPORT_USERNAME": "a", "GZ_TRANSPORT_PASSWORD": "b"},
            "GZ_TRANSPORT_USERNAME and GZ_TRANSPORT_PASSWORD: authentication is not supported; unset both",
        ),
        ("", {"GZ_TRANSPORT_IMPLEMENTATION": "Zenoh"}, "GZ_TRANSPORT_IMPLEMENTATION: Zenoh; must be zeromq"),
    ],
)
def test_invalid_setting_is_an_error(query: str, environment: dict[str, str], problem: str) -> None:
    with pytest.raises(RecordingError) as error:
        settings(query, **environment)
    assert str(error.value).startswith(f"gz://{query}: {problem}")


def test_version_selects_types_and_the_form_of_an_imu(run: Run, world: ns.World) -> None:
    (imu,) = (sensor for sensor in world.sensors if sensor.spec.type == "imu")
    encoded = {}
    for version in range(11, 16):
        package = get_package(version)
        sensors = [sensor.spec.type for sensor in world.sensors if package.has_message(sensor.spec)]
        assert sensors == (["imu", "altimeter"] if version == 11 else ["imu", "altimeter", "dvl"])
        encoder = gazebo.NumberedEncoder(package, imu)
        assert encoder.type == ("ignition.msgs.IMU" if version == 11 else "gz.msgs.IMU")
        encoded[version] = [data for *_, data in encoder.encode(run["imu"])]
    assert encoded[11] == encoded[12] != encoded[13] == encoded[14] == encoded[15]


def test_world_without_messages_in_a_version_is_an_error(world: ns.World) -> None:
    dvl = dataclasses.replace(world, sensors=tuple(one for one in world.sensors if one.spec.type == "dvl"))
    streams.check_url("gz://?version=12", dvl)
    with pytest.raises(RecordingError, match=r"no sensor has a message in ignition\.msgs; must have one of imu, "):
        streams.check_url("gz://?version=11", dvl)


def test_statistics_are_a_fifth_frame(run: Run, network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their protocol has the version 110."""
    monkeypatch.setenv("GZ_TRANSPORT_TOPIC_STATISTICS", "1")
    peer = GzPeer(version=110)
    try:
        with open_publisher(run) as publisher:
            subscribe(publisher, peer, IMU)
            for time_slice in list_slices(run)[:4]:
                publisher.write(time_slice)
        received = peer.receive_count(40)
        numbers = [struct.unpack("<QQ", frames[4]) for frames in received]
        assert [number for _, number in numbers] == list(range(40))
        stamps = [stamp for stamp, _ in numbers]
        assert stamps == sorted(stamps)
    finally:
        peer.close()


def test_relayed_message_goes_to_the_group(run: Run, peer: GzPeer) -> None:
    """One with the flag `no_relay` in the group is the message of the other network."""
    with open_publisher(run):
        wait_until(lambda: bool(peer.adverts))
        other = Discovery(version=10, process_uuid="far", type=HEARTBEAT, flags={"relay": True}).SerializeToString()
        peer.send_datagram(other)
        wait_until(lambda: any(b"far" in data and data[2:] != other for data in peer.datagrams))
    (forwarded,) = (data[2:] for data in peer.datagrams if b"far" in data and data[2:] != other)
    flags = Discovery.FromString(forwarded).flags
    assert (flags.relay, flags.no_relay) == (False, True)
