"""The stream of ROS 1: a master and subscribers from the specification, and the programs of Debian's ROS 1."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag1 import Reader

import navsense as ns
from navsense import streams
from navsense.core.errors import RecordingError
from navsense.core.readings import TimeSlice
from navsense.environment.current import GaussMarkovCurrent, UuvGaussMarkovProcess
from navsense.messages import cdr
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.sensors import Altimeter
from navsense.simulation.run_controls import RunControls
from navsense.streams.ros1 import master as master_module
from navsense.streams.ros1 import node as node_module
from navsense.streams.ros1 import publisher as publisher_module
from navsense.streams.ros1 import services
from navsense.streams.services import RequestKind
from navsense.streams.warning_log import MAX_WARNINGS
from navsense.testing import example_world
from navsense.world import CurrentTopic
from tests.streams.ros1_peers import RosMaster, RosServiceClient, RosSubscriber, pack_header, request_topic

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "examples" / "quadrotor.sdf"
EPOCH = 1_700_000_000
DURATION = 2.0

PREFIX = "/world/field/model/quadrotor/"
IMU = PREFIX + "link/base_link/sensor/imu/imu"
FIX = PREFIX + "model/mast/link/board/sensor/gps/navsat"

MD5 = {
    "sensor_msgs/Imu": "6a62c6daae103f4ff57a132d6f95cec2",
    "sensor_msgs/NavSatFix": "2d3a8cd499b9b4a0249fb98fd05cfa48",
    "rosgraph_msgs/Clock": "a9c97c1d230cfc112e270351a944ee47",
    "tf2_msgs/TFMessage": "94810edda583a504dfda3829e70d7eec",
}
"""Sums that the generated Python types of ROS Noetic have in `_md5sum` (Debian's python3-sensor-msgs and others)."""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300), pytest.mark.requirement("LIV-2")]


@pytest.fixture
def master() -> Iterator[RosMaster]:
    master = RosMaster()
    yield master
    master.close()


@pytest.fixture(autouse=True)
def check_threads() -> Iterator[None]:
    """Check that a closed publisher leaves no thread."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 10.0
    while (left := set(threading.enumerate()) - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [thread.name for thread in left if thread.name.startswith("navsense")]


@pytest.fixture(scope="module")
def run() -> Run:
    return ns.simulate(ns.load(WORLD), DURATION, seed=3, epoch=EPOCH)


def open_publisher(master: RosMaster, run: Run, query: str = "?wait=0") -> publisher_module.Ros1Publisher:
    """Return a publisher of a run."""
    url = f"ros1://127.0.0.1:{master.port}{query}"
    publisher = streams.open_publisher(url, make_recorded_run(run.session))
    assert isinstance(publisher, publisher_module.Ros1Publisher)
    return publisher


def split(run: Run, step: float = 0.05) -> Iterator[TimeSlice]:
    """Return the time slices of a run in real time."""
    return iter(run.session.compute_slices(step))


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def read_bag(path: Path) -> dict[str, list[bytes]]:
    """Return the messages of a bag by topic, in order."""
    messages: dict[str, list[bytes]] = {}
    with Reader(path) as reader:
        for connection, _, data in reader.messages():
            messages.setdefault(connection.topic, []).append(bytes(data))
    return messages


def test_messages_equal_those_of_a_bag(master: RosMaster, run: Run, tmp_path: Path) -> None:
    """All topics, byte by byte: those that are registered at the start, and those of the truth that follow.

    As in roscpp, `seq` of a header counts the messages that a topic with subscribers sends.
    """
    run.save(tmp_path / "run.bag")
    expected = read_bag(tmp_path / "run.bag")
    with open_publisher(master, run) as publisher:
        slices = split(run)
        node = master.find_node(IMU)
        first = {topic: RosSubscriber(node, topic) for topic in master.list_topics()}
        wait_for(lambda: publisher.subscriber_count == len(first))
        publisher.write(next(slices))
        wait_for(lambda: len(master.list_topics()) >= len(expected) - 1)
        later = {topic: RosSubscriber(node, topic) for topic in master.list_topics() if topic not in first}
        wait_for(lambda: publisher.subscriber_count == len(first) + len(later))
        for time_slice in slices:
            publisher.write(time_slice)
    received = {topic: subscriber.finish() for topic, subscriber in (first | later).items()}
    assert {"/clock", "/tf", "/tf_static", IMU, FIX} <= set(first)
    assert {"/truth/quadrotor", IMU + "/ideal"} <= set(later)
    for topic in first:
        assert received[topic] == expected[topic], topic
        assert len(expected[topic]) == 1 or topic != "/tf_static"
    for topic in later:
        count = len(received[topic])
        assert 0 < count < len(expected[topic]), topic
        assert [message[:4] for message in received[topic]] == [seq.to_bytes(4, "little") for seq in range(count)]
        assert [message[4:] for message in received[topic]] == [message[4:] for message in expected[topic][-count:]]


def test_clock_of_another_node_is_left_alone(master: RosMaster, run: Run) -> None:
    """A simulator that publishes /clock keeps it: a second clock would move the time of all nodes back and forth."""
    master.registerPublisher("/gazebo", "/clock", "rosgraph_msgs/Clock", "http://127.0.0.1:1/")
    with open_publisher(master, run) as publisher:
        for time_slice in split(run):
            publisher.write(time_slice)
        assert set(master.publishers["/clock"]) == {"/gazebo"}
        assert master.find_node(IMU)


def test_imu_message_has_the_layout_of_the_specification(master: RosMaster, run: Run) -> None:
    """Decoded by hand: uint32 seq, stamp, frame_id, quaternion, 9 covariances, angular velocity, ..."""
    with open_publisher(master, run) as publisher:
        subscriber = RosSubscriber(master.find_node(IMU), IMU)
        for time_slice in split(run):
            publisher.write(time_slice)
    messages, reading = subscriber.finish(), run["imu"]
    assert len(messages) == reading.time.size
    for index in (0, 1, len(messages) - 1):
        seq, seconds, nanoseconds, size = struct.unpack_from("<IIII", messages[index])
        assert (seq, seconds * 10**9 + nanoseconds) == (index, int(reading.stamp[index]))
        assert messages[index][16 : 16 + size].decode() == "quadrotor::base_link::imu"
        numbers = np.frombuffer(messages[index], "<f8", offset=16 + size)
        assert numbers.size == 4 + 9 + 3 + 9 + 3 + 9
        assert np.array_equal(numbers[13:16], reading.arrays["angular_velocity"][index])
        assert np.array_equal(numbers[25:28], reading.arrays["linear_acceleration"][index])


def test_header_names_type_md5sum_definition_and_latching(master: RosMaster, run: Run) -> None:
    with open_publisher(master, run, "?wait=0&node=quad"):
        for topic in (IMU, FIX, "/clock", "/tf", "/tf_static"):
            subscriber = RosSubscriber(master.find_node(topic), topic)
            header, kind = subscriber.header, master.types[topic]
            assert (header["type"], header["md5sum"], header["topic"]) == (kind, MD5[kind], topic)
            assert (header["callerid"], header["latching"]) == ("/quad", "1" if topic == "/tf_static" else "0")
            assert header["message_definition"].count("\n") > 3 or topic == "/clock"
            subscriber.leave()


@pytest.mark.parametrize(
    ("topic", "kind", "md5", "problem"),
    [
        (IMU, "sensor_msgs/Imu", "0" * 32, "is sensor_msgs/Imu with md5sum 6a62c6daae103f4ff57a132d6f95cec2, not"),
        (IMU, "std_msgs/String", MD5["sensor_msgs/Imu"], "not std_msgs/String"),
        ("/nothing", "*", "*", "topic /nothing is not published by /navsense_"),
    ],
)
def test_subscriber_of_another_type_gets_an_error(
    master: RosMaster, run: Run, caplog: pytest.LogCaptureFixture, topic: str, kind: str, md5: str, problem: str
) -> None:
    with open_publisher(master, run) as publisher:
        with socket.create_connection(request_topic(master.find_node(IMU), IMU), timeout=20.0) as connection:
            fields = {"callerid": "/curious", "topic": topic, "md5sum": md5, "type": kind}
            connection.sendall(pack_header(fields))
            received = bytearray()
            while data := connection.recv(1 << 16):
                received += data
        assert problem.encode() in received
        assert received[8:14] == b"error="
        assert publisher.subscriber_count == 0
    assert any("client /curious at 127.0.0.1:" in text and topic in text for text in caplog.messages)


def test_late_subscriber_of_a_latched_topic_gets_its_last_message(master: RosMaster, run: Run) -> None:
    with open_publisher(master, run) as publisher:
        for time_slice in split(run):
            publisher.write(time_slice)
        subscribers = [RosSubscriber(master.find_node("/tf_static"), topic) for topic in ("/tf_static", IMU)]
    static, imu = (subscriber.finish() for subscriber in subscribers)
    assert (len(static), len(imu)) == (1, 0)
    assert b"quadrotor::rotor_0" in static[0]


def test_message_with_a_latency_is_sent_at_its_arrival(master: RosMaster, run: Run) -> None:
    """The receiver has a latency of about 0.1 s: a message waits for its arrival in a later time slice."""
    fix, late = run["gps"], 0
    with open_publisher(master, run) as publisher:
        subscriber = RosSubscriber(master.find_node(FIX), FIX)
        for time_slice in split(run):
            publisher.write(time_slice)
            arrived = int((fix.arrival <= time_slice.end).sum())
            late += arrived < int((fix.time < time_slice.end).sum())
            wait_for(lambda count=arrived: len(subscriber.messages) >= count)  # type: ignore[misc]
            time.sleep(0.01)
            assert len(subscriber.messages) == arrived
    assert len(subscriber.finish()) == fix.time.size
    assert late > 5


@pytest.mark.parametrize("widths", [(7, 7, 7), (7, 9, 7)])
def test_messages_are_taken_in_order_of_arrival(widths: tuple[int, ...]) -> None:
    """Blocks of one topic whose latencies change their order, of one size and of several. Equal times keep theirs."""
    arrivals = ([3, 1, 2, 9], [2, 8, 5, 5], [4, 4])
    topic = node_module.Ros1Topic("/t", "x/Y", "", "")
    publication = publisher_module._Publication(topic)
    rows: list[tuple[int, bytes]] = []
    for width, times in zip(widths, arrivals, strict=True):
        block = np.full((len(times), width), len(rows), dtype=np.uint8) + np.arange(len(times), dtype=np.uint8)[:, None]
        publication.add(np.array(times, dtype=np.uint64), block)
        rows += [(at, row.tobytes()) for at, row in zip(times, block, strict=True)]
    expected = sorted(rows, key=lambda one: one[0])
    taken, counts = [], []
    for end in (0, 2, 4, 4, 5, None, None):
        packets = publication.take(end)
        taken.append(b"".join(packet.data for packet in packets))
        counts.append(sum(packet.messages for packet in packets))
    assert counts == [0, 3, 3, 0, 2, 2, 0]
    assert b"".join(taken) == b"".join(row for _, row in expected)
    assert taken[1] == b"".join(row for at, row in expected if at <= 2)


def test_topic_without_subscribers_is_not_encoded(master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: Counter[str] = Counter()
    encode = cdr.encode

    def count(encoder: Any, stamp: Any, arrays: Any) -> Any:
        encoded[encoder.type] += stamp.size
        return encode(encoder, stamp, arrays)

    monkeypatch.setattr(publisher_module, "encode", count)
    with open_publisher(master, run) as publisher:
        subscriber = RosSubscriber(master.find_node(FIX), FIX)
        for time_slice in split(run):
            publisher.write(time_slice)
    subscriber.finish()
    assert encoded == {"tf2_msgs/msg/TFMessage": 1, "sensor_msgs/msg/NavSatFix": run["gps"].time.size}


def test_slow_subscriber_loses_its_oldest_messages(
    master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it receives is complete messages in order; the dropped ones are counted. Others receive everything."""
    monkeypatch.setattr(node_module, "MAX_QUEUE_BYTES", 100_000)
    long = ns.simulate(ns.load(WORLD), 40.0, seed=3, epoch=EPOCH)
    publisher = open_publisher(master, long)
    slow = RosSubscriber(master.find_node(IMU), IMU, receive_buffer=4096)
    other = RosSubscriber(master.find_node(IMU), FIX)
    slow.reads.clear()
    sizes = []
    for time_slice in split(long):
        publisher.write(time_slice)
        sizes.append(max((peer.size for peer in publisher._node._list_subscribers()), default=0))
    slow.reads.set()
    publisher.close()
    messages, count = slow.finish(), long["imu"].time.size
    numbers = [struct.unpack_from("<I", message)[0] for message in messages]
    assert max(sizes) <= 100_000
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (0, count - 1)
    assert len(other.finish()) == long["gps"].time.size
    dropped = re.search(rf"topic {IMU}: ([\d,]+) messages dropped for slow subscribers", caplog.text)
    assert dropped is not None
    assert int(dropped[1].replace(",", "")) == count - len(messages) > 0
    assert "subscriber /test_subscriber at 127.0.0.1:" in caplog.text
    assert "is too slow; its oldest messages are dropped" in caplog.text


def test_close_does_not_wait_for_a_subscriber_that_does_not_read(
    master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "STALL_TIMEOUT", 0.3)
    long = ns.simulate(ns.load(WORLD), 40.0, seed=3, epoch=EPOCH)
    publisher = open_publisher(master, long)
    stalled = RosSubscriber(master.find_node(IMU), IMU, receive_buffer=4096)
    stalled.is_leaving = True
    stalled.reads.clear()
    for time_slice in split(long):
        publisher.write(time_slice)
    start = time.monotonic()
    publisher.close()
    assert time.monotonic() - start < 5.0
    assert f"subscriber /test_subscriber at 127.0.0.1:{stalled.socket.getsockname()[1]} of topic {IMU}" in caplog.text
    assert "did not receive all data" in caplog.text
    assert re.search(rf"topic {IMU}: [\d,]+ messages dropped", caplog.text)
    stalled.leave()
    stalled.reads.set()


HALF_HEADER = pack_header({"callerid": "/x", "topic": IMU})[:-3]
GARBAGE = {
    "half header": (HALF_HEADER, "has disconnected within its header or request"),
    "huge header": (b"\xff\xff\xff\x7f" + b"x" * 100, "a header of 2147483647 bytes"),
    "long field": (struct.pack("<II", 8, 900) + b"abcd", "a field of the header is longer than the header"),
    "field without =": (struct.pack("<II", 8, 4) + b"abcd", "a field of the header without ="),
    "other protocol": (b"GET / HTTP/1.1\r\n\r\n", "a header of 542393671 bytes"),
    "request without length": (b"POST / HTTP/1.1\r\n\r\n", "no valid Content-Length"),
    "request without XML": (b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", "the body is not valid XML-RPC"),
    "half request": (b"POST / HTTP/1.1\r\nContent-Length: 40\r\n\r\nabcd", "within its header or request"),
    "endless request": (b"POST / HTTP/1.1\r\n" + b"a" * 200_000, "a request of more than 131072 bytes"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_a_warning_and_affects_no_subscriber(
    master: RosMaster, run: Run, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    data, problem = GARBAGE[name]
    with open_publisher(master, run) as publisher:
        subscriber = RosSubscriber(master.find_node(IMU), IMU)
        address = request_topic(master.find_node(IMU), IMU)
        with socket.create_connection(address, timeout=20.0) as connection:
            own = connection.getsockname()[1]
            with contextlib.suppress(OSError):  # the node disconnects before it has read an endless request
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            wait_for(lambda: f"peer 127.0.0.1:{own} " in caplog.text)
        for time_slice in split(run):
            publisher.write(time_slice)
        assert len(publisher._node._peers) == 1
    assert problem in next(text for text in caplog.messages if f"peer 127.0.0.1:{own} " in text)
    assert len(subscriber.finish()) == run["imu"].time.size


def test_peer_that_sends_nothing_is_disconnected(
    master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "HANDSHAKE_TIMEOUT", 0.1)
    with open_publisher(master, run) as publisher:
        with socket.create_connection(request_topic(master.find_node(IMU), IMU), timeout=20.0) as connection:
            connection.sendall(HALF_HEADER)
            assert connection.recv(100) == b""
        assert not publisher._node._peers
    assert "did not send a complete header or request in time" in caplog.text


def test_connections_and_warnings_are_limited(
    master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "MAX_CONNECTIONS", 8)
    with open_publisher(master, run) as publisher:
        address = request_topic(master.find_node(IMU), IMU)
        connections = [socket.create_connection(address, timeout=20.0) for _ in range(40)]
        assert [connection.recv(1) for connection in connections[8:]] == [b""] * 32
        assert len(publisher._node._peers) <= 8
        for connection in connections:
            connection.close()
    warnings = [text for text in caplog.messages if "8 connections are open" in text]
    assert len(warnings) == MAX_WARNINGS
    assert caplog.text.count("further warnings are not logged") == 1


def test_slave_api(master: RosMaster, run: Run) -> None:
    with open_publisher(master, run, "?wait=0&node=quad") as publisher:
        subscriber = RosSubscriber(master.find_node(IMU), IMU)
        node: Any = xmlrpc.client.ServerProxy(master.find_node(IMU))
        publisher.write(next(split(run)))
        wait_for(lambda: len(subscriber.messages) == 50)
        assert node.getMasterUri("/t")[2] == master.uri
        assert [IMU, "sensor_msgs/Imu"] in node.getPublications("/t")[2]
        assert node.getSubscriptions("/t") == [1, "", []]
        number, who, direction, transport, topic, is_open, _ = node.getBusInfo("/t")[2][0]
        assert (who, direction, transport, topic, is_open) == ("/test_subscriber", "o", "TCPROS", IMU, True)
        statistics = {one[0]: one[2] for one in node.getBusStats("/t")[2][0]}
        assert [one[::2] for one in statistics[IMU]] == [[number, 50]]
        assert node.requestTopic("/t", IMU, [["UDPROS", "", 1, 1, 1500]])[0] == -1
        assert node.requestTopic("/t", "/nothing", [["TCPROS"]])[0] == -1
        assert node.requestTopic("/t")[0] == -1
        assert node.requestTopic("/t", IMU, 3)[0] == -1
        with pytest.raises(xmlrpc.client.Fault, match="method 'fly' is not supported"):
            node.fly("/t")
    subscriber.finish()


def test_shutdown_by_the_master_ends_the_output(master: RosMaster, run: Run) -> None:
    """`rosnode kill`, and the master if another node gets the same name."""
    with open_publisher(master, run) as publisher:
        slices = split(run)
        publisher.write(next(slices))
        xmlrpc.client.ServerProxy(master.find_node(IMU)).shutdown("/master", "new node registered with same name")
        with pytest.raises(RecordingError, match="the node was shut down: new node registered with same name"):
            publisher.write(next(slices))


@pytest.mark.parametrize("end", ["close", "abort"])
def test_end_unregisters_all_topics(master: RosMaster, run: Run, end: str) -> None:
    publisher = open_publisher(master, run)
    publisher.write(next(split(run)))
    wait_for(lambda: "/truth/quadrotor" in master.list_topics())
    getattr(publisher, end)()
    assert master.list_topics() == []
    registered = {call[2] for call in master.calls if call[0] == "registerPublisher"}
    assert registered == {call[2] for call in master.calls if call[0] == "unregisterPublisher"}


class FixedPace:
    """The pace of a run."""

    speed, is_paused = 1.0, False


def test_service_pauses_the_run(master: RosMaster, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Requests of one byte, and responses: a byte, then a text with its length."""
    pace, service = FixedPace(), "/quad/pause"
    with open_publisher(master, run, "?wait=0&node=quad") as publisher:
        publisher.attach_pace(pace)
        wait_for(lambda: service in master.services)
        address = master.services[service]
        client = RosServiceClient(address, service, "09fb03525b03e7ea1fd3992bafd87e16", persistent="1")
        assert client.header == {
            "callerid": "/quad",
            "md5sum": "09fb03525b03e7ea1fd3992bafd87e16",
            "type": "std_srvs/SetBool",
            "request_type": "std_srvs/SetBoolRequest",
            "response_type": "std_srvs/SetBoolResponse",
        }
        assert client.call(b"\1") == (True, b"\1\6\0\0\0paused")
        assert pace.is_paused
        assert client.call(b"\0") == (True, b"\1\7\0\0\0running")
        assert not pace.is_paused
        assert client.call(b"abc") == (False, b"3 bytes; std_srvs/SetBool has 1")
        assert client.call(b"\1")[0]
        client.socket.close()
        once = RosServiceClient(address, service)
        assert once.call(b"\0")[0]
        assert once.is_closed()
        assert RosServiceClient(address, service, probe="1").is_closed()
        other = RosServiceClient(address, service, md5="0" * 32)
        assert other.header["error"].startswith("service /quad/pause is std_srvs/SetBool with md5sum 09fb03525b")
        unknown = RosServiceClient(address, "/quad/fly")
        assert unknown.header == {"error": "service /quad/fly is not offered by /quad"}
        assert other.is_closed()
        assert unknown.is_closed()
        large = RosServiceClient(address, service)
        large.socket.sendall(b"\xff\xff\xff\x7f")
        assert large.is_closed()
        wait_for(lambda: not publisher._node._peers)
    assert master.services == {}
    assert "client /client at 127.0.0.1:" in caplog.text
    assert "a request of 2147483647 bytes to service /quad/pause" in caplog.text


REQUEST_MD5 = {
    "uuv_sensor_ros_plugins_msgs/ChangeSensorState": ("bool on", "74983d2ffe4877de8ae30b7a94625c41"),
    "uuv_world_ros_plugins_msgs/SetCurrentVelocity": (
        "float64 velocity\nfloat64 horizontal_angle\nfloat64 vertical_angle",
        "44059aaf9c13a2ec083fad30e8a17ee3",
    ),
    "response": ("bool success", "358e233cde0c8a8bcfea4ce193f8fc15"),
}
"""Definitions and the MD5 sums that rosserial generated for the Arduino: github.com/Natalnet/nboat, `ros_lib`."""


def test_services_have_the_definitions_of_the_uuv_simulator() -> None:
    for text, md5 in REQUEST_MD5.values():
        assert hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() == md5
    velocity = services.TYPES[RequestKind.VELOCITY]
    assert (velocity.request, velocity.response) == (REQUEST_MD5[velocity.name][0], REQUEST_MD5["response"][0])
    assert services.CHANGE_SENSOR_STATE.request == REQUEST_MD5[services.CHANGE_SENSOR_STATE.name][0]


@pytest.mark.requirement("LIV-8", "CUR-1")
def test_services_change_the_run(master: RosMaster, caplog: pytest.LogCaptureFixture) -> None:
    """Requests as bytes: the altimeter, rates, switches of two types, and the current."""
    world = example_world(("altimeter", Altimeter()))
    current = GaussMarkovCurrent(UuvGaussMarkovProcess(0.3, 0.0, 1.0), *[UuvGaussMarkovProcess()] * 2)
    world = replace(world, environment=replace(world.environment, current=current))
    world = replace(world, current_topic=CurrentTopic("/hydrodynamics/current_velocity"))
    run = ns.simulate(world, 0.1, seed=3, epoch=EPOCH)
    controls, text = RunControls(run.session), b"\1\3\0\0\0off"

    def call(service: str, request: bytes, md5: str = "*") -> tuple[bool, bytes]:
        wait_for(lambda: service in master.services)
        client = RosServiceClient(master.services[service], service, md5)
        assert "error" not in client.header
        result = client.call(request)
        assert client.is_closed()
        return result

    with open_publisher(master, run, "?wait=0&node=auv") as publisher:
        publisher.attach_controls(controls)
        assert call("/altimeter/change_state", b"\0") == (True, text)
        assert call("/altimeter/change_state", b"\0", services.CHANGE_SENSOR_STATE.md5) == (True, text)
        assert call("/altimeter/set_rate", struct.pack("<d", 10.0))[1][:1] == b"\1"
        assert call("/altimeter/set_reference_altitude", struct.pack("<d", 2.5))[1][:1] == b"\1"
        refused = call("/altimeter/set_reference_altitude", struct.pack("<d", math.inf))
        assert refused[0]
        assert refused[1][:1] == b"\0"
        assert b"must be a finite height" in refused[1]
        assert call("/altimeter/set_rate", b"abc") == (
            False,
            b"3 bytes; uuv_gazebo_ros_plugins_msgs/SetFloat has 8",
        )
        prefix = "/hydrodynamics/set_current_"
        assert call(prefix + "velocity", struct.pack("<3d", 0.5, 0.25, 0.125)) == (True, b"\1")
        assert call(prefix + "velocity", struct.pack("<3d", 1.5, 0.0, 0.0)) == (True, b"\0")
        assert call(prefix + "horz_angle", struct.pack("<d", -0.5)) == (True, b"\1")
        assert call(prefix + "vert_angle", struct.pack("<d", math.nan)) == (True, b"\0")
        assert call(prefix + "velocity_model", struct.pack("<5d", 0.5, -0.5, 2.0, 0.0625, 0.5)) == (True, b"\1")
        model = call("/hydrodynamics/get_current_velocity_model", b"")
        assert struct.unpack("<5d", model[1]) == (0.5, 0.0, 2.0, 0.0625, 0.5)
        angle = call("/hydrodynamics/get_current_horz_angle_model", b"")
        assert struct.unpack("<5d", angle[1]) == (-0.5, -1.0, 1.0, 0.0, 0.0)
    assert [(change.property, change.value) for change in controls.take(1.0)] == [
        ("on", False),
        ("rate", 10.0),
        ("vertical_reference", 2.5),
        ("speed.mean", 0.5),
        ("vertical_angle.mean", 0.125),
        ("horizontal_angle.mean", -0.5),
        ("speed.model", (0.5, 0.0, 2.0, 0.0625, 0.5)),
    ]
    assert "sent an invalid request to service /altimeter/set_rate" in caplog.text


def test_missing_master_is_an_error_with_its_remedy(run: Run) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(RecordingError) as error:
        ns.record(run.session.world, f"ros1://127.0.0.1:{port}", 1.0)
    assert str(error.value) == (
        f"ros1://127.0.0.1:{port}: ROS master: 127.0.0.1:{port}; does not answer: connection refused; start it: roscore"
    )


NUMBER = b"<methodResponse><params><param><value><int>3</int></value></param></params></methodResponse>"

ANSWERS = {
    "nothing": (b"", "the answer ends too early"),
    "garbage": (b"\0\1\2\3" * 1000 + b"\r\n\r\n", "an HTTP message has no valid Content-Length"),
    "not found": (b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", "not HTTP with status 200"),
    "no XML": (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "the body is not valid XML-RPC"),
    "other result": (
        b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(NUMBER), NUMBER),
        "the result is not (code, text, value)",
    ),
    "endless": (b"HTTP/1.0 200 OK\r\n" + b"a" * 3_000_000, "the answer has more than"),
    "silence": (None, "no answer in time"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answer_that_is_not_of_a_master_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(master_module, "CALL_TIMEOUT", 0.3)
    monkeypatch.setattr(master_module.Master.call, "__kwdefaults__", {"timeout": 0.5})
    monkeypatch.setattr("navsense.streams.ros1.xmlrpc.MAX_RESPONSE_BYTES", 1_000_000)
    answer, problem = ANSWERS[name]

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            try:
                if answer is None:
                    for _ in range(40):
                        connection.send(b"H")
                        time.sleep(0.05)
                else:
                    connection.sendall(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        start = time.monotonic()
        with pytest.raises(RecordingError, match=f"does not answer.*{re.escape(problem)}"):
            streams.open_publisher(f"ros1://127.0.0.1:{listener.getsockname()[1]}", make_recorded_run(run.session))
        assert time.monotonic() - start < 4.0
        thread.join()


def test_master_that_vanishes_gets_all_topics_when_it_is_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The connected subscriber receives everything, and the run does not wait."""
    monkeypatch.setattr(master_module, "CHECK_PERIOD", 0.05)
    first = RosMaster()
    publisher = open_publisher(first, run)
    subscriber = RosSubscriber(first.find_node(IMU), IMU)
    first.close()
    wait_for(lambda: "the master does not answer" in caplog.text)
    start = time.monotonic()
    for time_slice in split(run):
        publisher.write(time_slice)
    assert time.monotonic() - start < 5.0
    second = RosMaster(first.port)
    wait_for(lambda: {IMU, "/tf_static", "/truth/quadrotor"} <= set(second.list_topics()))
    wait_for(lambda: "the master answers again" in caplog.text)
    publisher.close()
    assert second.list_topics() == []
    second.close()
    assert len(subscriber.finish()) == run["imu"].time.size
    assert caplog.text.count("the master does not answer") == 1


def test_close_without_master_names_the_topic(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(master_module, "CHECK_PERIOD", 100.0)
    master = RosMaster()
    publisher = open_publisher(master, run)
    master.close()
    publisher.close()
    assert re.search(r"the master does not answer: connection refused; /\S+ is not unregistered", caplog.text)


def test_other_publisher_of_a_topic_is_a_warning(master: RosMaster, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    for topic, kind in ((FIX, "sensor_msgs/NavSatFix"), (IMU, "std_msgs/String"), ("/tf", "tf2_msgs/TFMessage")):
        master.registerPublisher("/gazebo", topic, kind, "http://127.0.0.1:1/")
    open_publisher(master, run).close()
    assert f"/gazebo publishes topic {IMU} too, and 1 other topic" in caplog.text
    assert f"topic {IMU} is sensor_msgs/Imu, but others know std_msgs/String" in caplog.text
    assert "topic /tf " not in caplog.text


def test_node_that_a_remote_master_cannot_reach_is_a_warning(
    master: RosMaster, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publisher_module, "is_loopback", lambda _: False)
    open_publisher(master, run).close()
    assert "the node listens on 127.0.0.1, where other machines cannot subscribe; add ?host=ADDRESS" in caplog.text
    caplog.clear()
    with open_publisher(master, run, "?wait=0&host=127.0.0.2"):
        assert master.find_node(IMU).startswith("http://127.0.0.2:")
        assert request_topic(master.find_node(IMU), IMU)[0] == "127.0.0.2"
    assert "listens" not in caplog.text


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.5", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("a.b", False)],
)
def test_loopback_addresses(host: str, expected: bool) -> None:
    assert publisher_module.is_loopback(host) == expected


def test_stamps_below_zero_are_sent_as_zero(master: RosMaster, caplog: pytest.LogCaptureFixture) -> None:
    """ROS 1 has unsigned times. The clock of the autopilot is behind at the start of the run."""
    early = ns.simulate(ns.load(WORLD), 0.2, seed=0, epoch=0)
    stamp = early["imu"].stamp
    with open_publisher(master, early) as publisher:
        subscriber = RosSubscriber(master.find_node(IMU), IMU)
        for time_slice in split(early):
            publisher.write(time_slice)
    stamps = [struct.unpack_from("<II", message, 4) for message in subscriber.finish()]
    assert stamp.min() < 0
    assert [seconds * 10**9 + nanoseconds for seconds, nanoseconds in stamps] == np.maximum(stamp, 0).tolist()
    assert caplog.text.count(f"topic {IMU} has stamps below 0") == 1


def test_run_waits_for_the_first_subscriber(master: RosMaster, tmp_path: Path) -> None:
    """`wait` in the URL, and the messages of the command next to a bag."""
    subscribers: list[RosSubscriber] = []

    def subscribe() -> None:
        wait_for(lambda: "/tf_static" in master.list_topics())
        subscribers.append(RosSubscriber(master.find_node(IMU), IMU))

    thread = threading.Thread(target=subscribe)
    thread.start()
    outputs = [f"ros1://127.0.0.1:{master.port}?wait=30", tmp_path / "run.bag"]
    ns.record(ns.load(WORLD), outputs, 1.0, seed=3, epoch=EPOCH, speed=20.0)
    thread.join()
    assert subscribers[0].finish() == read_bag(tmp_path / "run.bag")[IMU]


def test_missing_subscriber_is_a_warning(master: RosMaster, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with open_publisher(master, run, "?wait=0.01") as publisher:
        publisher.wait_for_subscriber()
    assert "no subscriber connected within 0.01 s; the run continues" in caplog.text
    assert "no subscriber connected" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ros1://127.0.0.1:11311/robot", "path of the URL: /robot; must be empty"),
        ("ros1://127.0.0.1:0", "port of the ROS master: 0; must be a number from 1 to 65535"),
        ("ros1://?wait=soon", "wait (s): soon; must be a number from 0 to 1e6"),
        ("ros1://?node=9-x", "option node: 9-x; must be a name of ROS: letters, digits, _ and /"),
        ("ros1://?host=0.0.0.0", "option host: 0.0.0.0; must be an address of this machine that subscribers can reach"),
        ("ros1://?host=192.0.2.1", "option host: 192.0.2.1; must be a name or an address of this machine"),
    ],
)
def test_invalid_options_are_errors(run: Run, url: str, problem: str) -> None:
    with pytest.raises(RecordingError) as error:
        ns.record(run.session.world, url, 0.1)
    assert str(error.value) == f"{url}: {problem}"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the outputs of `ros1_session.sh`: a run with roscore, rostopic, rosnode and rosbag."""
    programs = ("roscore", "rostopic", "rosnode", "rosservice", "rosbag")
    missing = [name for name in programs if not shutil.which(name, path="/usr/bin")]
    if missing:
        pytest.skip(f"needs Debian's {', '.join(missing)}")
    script, folder = Path(__file__).with_name("ros1_session.sh"), tmp_path_factory.mktemp("session")
    unshare = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a network namespace: unshare --map-root-user --net")
    subprocess.run([*unshare, "bash", str(script), sys.executable, str(WORLD), str(folder)], check=True, timeout=200.0)
    return folder


def test_rostopic_and_rosnode_list_the_topics(session: Path) -> None:
    topics = (session / "list.txt").read_text().split()
    assert {"/clock", "/tf", "/tf_static", IMU, FIX} <= set(topics)
    info = (session / "info.txt").read_text()
    assert "Type: sensor_msgs/Imu" in info
    assert "* /quad (http://127.0.0.1:" in info
    node = (session / "node.txt").read_text()
    assert f" * {IMU} [sensor_msgs/Imu]" in node
    assert f" * topic: {IMU}\n    * to: /record_" in node
    assert "direction: outbound" in node
    assert "xmlrpc reply from http://127.0.0.1:" in (session / "ping.txt").read_text()
    assert not set(topics) - {"/rosout", "/rosout_agg"} & set((session / "after.txt").read_text().split())


def test_rostopic_echo_prints_messages(session: Path) -> None:
    """The run is in real time, with 1000 messages a second."""
    echo = (session / "echo.txt").read_text()
    assert 'frame_id: "quadrotor::base_link::imu"' in echo
    assert re.search(r"linear_acceleration: \n  x: \S+\n  y: \S+\n  z: \d", echo)
    rates = re.findall(r"average rate: (\S+)", (session / "hz.txt").read_text())
    assert 900.0 < float(rates[-1]) < 1100.0


def test_rosservice_pauses_the_run(session: Path) -> None:
    """While it is paused, rostopic gets no message in 2 s."""
    services = (session / "service.txt").read_text()
    assert services.splitlines()[0] == "std_srvs/SetBool"
    assert re.findall(r'success: True\s+message: "(\w+)"', services) == ["paused", "running"] * 2
    assert "stamp" not in (session / "paused.txt").read_text()


@pytest.mark.requirement("LIV-8")
def test_rosservice_switches_and_sets_sensors(session: Path) -> None:
    """The recording has the changes with their times, and the altimeter publishes nothing in between."""
    calls = (session / "changes.txt").read_text()
    assert calls.splitlines()[0] == "std_srvs/SetBool"
    assert re.findall(r"success: (\w+)", calls) == ["True", "True", "False", "True"]
    recording = ns.open(session / "run.bag")
    off, reference, on = recording.changes
    name = "quadrotor::base_link::altimeter"
    assert (off.name, off.property, off.value) == (name, "on", False)
    assert (reference.name, reference.property, reference.value) == (name, "vertical_reference", 2.5)
    assert (on.name, on.property, on.value) == (name, "on", True)
    time = recording[name].time
    assert not ((time >= off.time) & (time < on.time)).any()
    assert time[0] < off.time < on.time < time[-1]
    assert set(recording[name]["vertical_reference"][time >= on.time].tolist()) == {2.5}


def test_rospy_gets_the_simulated_time_and_late_static_transforms(session: Path) -> None:
    assert EPOCH < float((session / "time.txt").read_text()) < EPOCH + 600.0
    assert 'child_frame_id: "quadrotor::rotor_0"' in (session / "static.txt").read_text()


def test_rosbag_records_the_messages_of_a_bag(session: Path) -> None:
    """Byte by byte as in the bag that the same run wrote, in order and with their definitions.

    rosbag has a queue of 100 messages for each topic, and loses messages on a busy machine. Another test shows that a
    subscriber gets all of them. `seq`, the first four bytes of a header, counts the messages that were sent.
    """
    altimeter = PREFIX + "link/base_link/sensor/altimeter/altimeter"
    recorded, expected = (
        {
            topic: [message[4:] if topic in (IMU, FIX, altimeter) else message for message in messages]
            for topic, messages in read_bag(session / name).items()
        }
        for name in ("live.bag", "run.bag")
    )
    assert set(recorded) == {IMU, FIX, altimeter, "/clock", "/tf", "/tf_static"}
    for topic, messages in recorded.items():
        first, known = expected[topic].index(messages[0]), set(messages)
        complete = expected[topic][first : expected[topic].index(messages[-1]) + 1]
        assert messages == [message for message in complete if message in known], topic
        assert len(messages) > 0.5 * len(complete), topic
    assert len(recorded[IMU]) > 4000
    with Reader(session / "live.bag") as live, Reader(session / "run.bag") as own:
        definitions = [
            {one.topic: (one.msgtype, one.digest, one.msgdef) for one in bag.connections} for bag in (live, own)
        ]
    assert all(definitions[0][topic] == definitions[1][topic] for topic in recorded)
