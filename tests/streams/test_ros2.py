"""The stream of ROS 2: a subscriber on Fast DDS, with types of its generator, and readers on Cyclone DDS.

    apt-get install --no-install-recommends libfastrtps-dev fastddsgen g++

Each test runs in a network namespace of its own, or is skipped.
"""

from __future__ import annotations

import importlib.util
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

import navsense as ns
from navsense import streams
from navsense.core.errors import RecordingError
from navsense.core.typing import ByteArray
from navsense.messages.cdr import MessageEncoder, encode
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.streams.ros2 import naming, publisher
from navsense.streams.ros2 import url as ros2_url
from tests.streams.network_namespace import network_namespace

pytest.importorskip("cyclonedds", reason="needs cyclonedds (pip install 'navsense[ros2]')")

from cyclonedds.core import DDSException
from cyclonedds.qos import Policy

from tests.streams.ros2_peers import FastDdsPeer, Ros2Peer, build_fastdds_peer, wait_for

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "examples" / "quadrotor.sdf"
EPOCH = 1_700_000_000
DURATION = 2.0
DOMAIN = 7

PREFIX = "/world/field/model/quadrotor/"
IMU = PREFIX + "link/base_link/sensor/imu/imu"
FIX = PREFIX + "model/mast/link/board/sensor/gps/navsat"

TYPE_HASHES = {
    "sensor_msgs::msg::dds_::Imu_": "RIHS01_7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b",
    "nav_msgs::msg::dds_::Odometry_": "RIHS01_3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0",
}
"""Hashes that rosbags has for ROS 2 Jazzy."""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300), pytest.mark.requirement("LIV-6")]


@pytest.fixture(scope="module")
def run() -> Run:
    return ns.simulate(ns.load(WORLD), DURATION, seed=3, epoch=EPOCH)


@pytest.fixture(scope="module")
def expected(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    """Return the messages of an `.mcap` of the run by topic."""
    path = tmp_path_factory.mktemp("run") / "run.mcap"
    run.save(path)
    messages: dict[str, list[bytes]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            messages.setdefault(channel.topic, []).append(message.data)
    return messages


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    with network_namespace():
        yield


def open_publisher(run: Run, query: str = "wait=0") -> publisher.Ros2Publisher:
    opened = streams.open_publisher(f"ros2://?domain={DOMAIN}&{query}", make_recorded_run(run.session))
    assert isinstance(opened, publisher.Ros2Publisher)
    return opened


def publish(run: Run, opened: streams.Publisher, delay: float = 0.0) -> None:
    for time_slice in run.session.compute_slices(0.05):
        opened.write(time_slice)
        time.sleep(delay)


def read_stamps(values: list[list[str]]) -> list[int]:
    return [int(seconds) * 10**9 + int(nanoseconds) for seconds, nanoseconds, *_ in values]


def test_fast_dds_decodes_a_run_and_its_node(network: None, run: Run, request: pytest.FixtureRequest) -> None:
    """The values, the node with its writers, the type hashes and the policies, seen by another implementation."""
    program = build_fastdds_peer(request.config)
    topics = [f"Imu:{IMU}", f"NavSatFix:{FIX}", "Clock:/clock", "TFMessage:/tf", "Odometry:/truth/quadrotor"]
    with (
        FastDdsPeer(program, DOMAIN, topics) as subscriber,
        open_publisher(run, "node=auv/sensors&wait=60") as opened,
        FastDdsPeer(program, DOMAIN, ["TFMessage:/tf_static"]) as late,
    ):
        lines = subscriber.lines
        opened.wait_for_subscriber()
        wait_for(lambda: opened.subscriber_count == 5)
        assert opened.url == f"ros2://127.0.0.1?domain={DOMAIN}&node=auv/sensors&wait=60"
        wait_for(lambda: bool(lines["node"]))
        time.sleep(0.2)  # Fast DDS matches the writers too
        publish(run, opened, 0.005)
        wait_for(lambda: len(lines["Clock"]) == 200)
        wait_for(lambda: bool(late.lines["TFMessage"]))
        wait_for(lambda: len(lines["node"]) == 2)
        opened.close()
        wait_for(lambda: any(values[0] != "0" for values in lines["participant"]))
        subscriber.finish()
    assert not lines["lost"]
    assert ["0", "enclave=/;"] in lines["participant"]  # the other subscriber is a participant, too
    imu, gps = run["imu"], run["gps"]
    assert read_stamps(lines["Imu"]) == imu.stamp.tolist()
    assert {values[2] for values in lines["Imu"]} == {"quadrotor::base_link::imu"}
    numbers = np.array([values[3:9] for values in lines["Imu"]], dtype=np.float64)
    np.testing.assert_array_equal(numbers, np.hstack((imu["angular_velocity"], imu["linear_acceleration"])))
    fixes = lines["NavSatFix"]
    assert len(fixes) == int(gps.emitted.sum()) == 10
    latitudes = [float(values[3]) for values in fixes]
    np.testing.assert_allclose(latitudes, np.degrees(gps["latitude"][gps.emitted]), rtol=1e-15, atol=0.0)
    assert read_stamps(lines["Clock"])[0] == EPOCH * 10**9
    assert lines["TFMessage"][-1][:3] == ["1", "world", "quadrotor::base_link"]
    truth = run.truth["quadrotor::base_link"].position
    assert [float(value) for value in lines["TFMessage"][-1][3:6]] == truth[-1].tolist()
    assert late.lines["TFMessage"][0][:3] == ["10", "quadrotor::base_link", "quadrotor::rotor_0"]
    check_graph(lines["node"], lines["writer"])


def check_graph(nodes: list[list[str]], writers: list[list[str]]) -> None:
    """Check the node that a participant tells, and its writers."""
    assert [node[1:4] for node in nodes] == [["/auv", "sensors", "0"]] * 2
    found = {values[1]: values[2:] for values in writers if values[0] == "0"}
    own = {guid for guid, values in found.items() if values[0] == "ros_discovery_info"}
    assert set(nodes[1][4:]) == set(found) - own
    assert all(guid.startswith(nodes[0][0][:24]) for guid in found)
    by_topic = {values[0]: values[1:] for values in found.values()}
    assert by_topic["ros_discovery_info"][0] == "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"
    for topic, (kind, reliable, latched, *user_data) in by_topic.items():
        assert reliable == "reliable=1"
        assert latched == f"latched={int(topic in ('ros_discovery_info', 'rt/tf_static'))}"
        assert (topic == "ros_discovery_info") != bool(user_data)
        if kind in TYPE_HASHES:
            assert user_data == [f"typehash={TYPE_HASHES[kind]};"]
    assert by_topic[f"rt{IMU}"][0] == "sensor_msgs::msg::dds_::Imu_"
    assert "rt/truth/quadrotor" in by_topic


def test_messages_equal_those_of_an_mcap(network: None, run: Run, expected: dict[str, list[bytes]]) -> None:
    """Byte by byte, up to the padding to words."""
    peer = Ros2Peer(DOMAIN)
    topics = {
        IMU: "sensor_msgs/msg/Imu",
        FIX: "sensor_msgs/msg/NavSatFix",
        "/clock": "rosgraph_msgs/msg/Clock",
        "/tf": "tf2_msgs/msg/TFMessage",
    }
    for topic, message_type in topics.items():
        peer.read_topic(topic, message_type)
    with open_publisher(run) as opened:
        wait_for(lambda: opened.subscriber_count == len(topics))
        publish(run, opened)
        assert opened.subscriber_count == len(topics)
    for topic in topics:
        padded = [data + bytes(-len(data) % 4) for data in expected[topic]]
        assert peer.take(topic) == padded, topic
    peer.close()


def test_topics_without_subscriptions_are_not_encoded(network: None, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []

    def count(encoder: MessageEncoder, *rest: Any) -> ByteArray:
        encoded.append(encoder.type)
        return encode(encoder, *rest)

    monkeypatch.setattr(publisher, "encode", count)
    with open_publisher(run) as opened:
        peer = Ros2Peer(DOMAIN)
        peer.read_topic(FIX, "sensor_msgs/msg/NavSatFix")
        wait_for(lambda: opened.subscriber_count == 1)
        publish(run, opened)
    assert encoded[0] == "tf2_msgs/msg/TFMessage"
    assert set(encoded[1:]) == {"sensor_msgs/msg/NavSatFix"}
    peer.close()


def test_reader_that_does_not_take_does_not_delay_others(network: None, run: Run) -> None:
    """A reliable reader with a full history stops to confirm. The run goes on, and the other reader gets everything."""
    stalled, peer = Ros2Peer(DOMAIN), Ros2Peer(DOMAIN)
    policies = (Policy.Reliability.Reliable(0), Policy.History.KeepAll, Policy.ResourceLimits(5, 1, 5))
    stalled.read_topic(IMU, "sensor_msgs/msg/Imu", *policies)
    peer.read_topic(IMU, "sensor_msgs/msg/Imu")
    opened = open_publisher(run)
    wait_for(lambda: opened.subscriber_count == 2)
    received, start = 0, time.monotonic()
    for time_slice in run.session.compute_slices(0.05):
        opened.write(time_slice)
        received += len(peer.take(IMU))
        time.sleep(0.002)
    opened.close()
    assert time.monotonic() - start < 8.0
    assert received + len(peer.take(IMU)) == 2000
    assert len(stalled.take(IMU)) < 100
    stalled.close()
    peer.close()


def test_clock_of_another_publisher_is_left_alone(network: None, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """As soon as it is found, and until it leaves."""
    simulator, peer = Ros2Peer(DOMAIN), Ros2Peer(DOMAIN)
    simulator.write_topic("/clock", "rosgraph_msgs/msg/Clock")
    peer.read_topic("/clock", "rosgraph_msgs/msg/Clock")
    with open_publisher(run) as opened:
        wait_for(lambda: opened.subscriber_count == 1 and bool(opened._node.list_publishers()))
        slices = run.session.compute_slices(0.05)
        opened.write(next(slices))
        simulator.close()
        wait_for(lambda: not opened._node.list_publishers())
        for time_slice in slices:
            opened.write(time_slice)
    stamps = [message[4:12] for message in peer.take("/clock")]
    assert 0 < len(stamps) < 200
    assert stamps[-1] == np.array([EPOCH + 1, 990_000_000], dtype="<u4").tobytes()
    assert caplog.text.count("publishes /clock; this run does not") == 1
    peer.close()


def test_reader_that_dies_is_noticed(network: None, run: Run) -> None:
    with open_publisher(run) as opened:
        peer = Ros2Peer(DOMAIN)
        peer.read_topic(IMU, "sensor_msgs/msg/Imu")
        wait_for(lambda: opened._writers[IMU].has_readers)
        peer.close()
        wait_for(lambda: not opened._writers[IMU].has_readers)
        assert opened.subscriber_count == 1


def test_garbage_and_half_messages_do_not_stop_the_run(network: None, run: Run) -> None:
    """Datagrams to the ports of the participant: noise, and the start of a message of discovery."""
    peer = Ros2Peer(DOMAIN)
    peer.read_topic(IMU, "sensor_msgs/msg/Imu")
    generator = np.random.default_rng(1)
    with open_publisher(run) as opened, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        wait_for(lambda: opened.subscriber_count == 1)
        header = b"RTPS\x02\x03\x01\x0f" + bytes(12)
        for port in range(7400 + 250 * DOMAIN, 7400 + 250 * DOMAIN + 20):
            for size in (0, 3, 30, 300, 1400):
                noise = generator.integers(0, 256, size, dtype=np.uint8).tobytes()
                for data in (noise, header + noise, header + b"\x15\x05\x2c\x00" + noise):
                    sender.sendto(data, ("127.0.0.1", port))
        publish(run, opened, 0.002)
    assert len(peer.take(IMU)) == 2000
    peer.close()


def test_error_of_the_library_is_one_of_this_output(network: None, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other outputs of the run go on after a `RecordingError`."""
    with open_publisher(run) as opened:

        def announce() -> None:
            raise DDSException(-1, "no memory")

        monkeypatch.setattr(opened._node, "announce", announce)
        with pytest.raises(RecordingError, match=r"DDSException: .*no memory"):
            publish(run, opened)


def test_run_waits_for_a_subscription(network: None, caplog: pytest.LogCaptureFixture) -> None:
    """A recording begins with the first subscription, and logs what it sent."""
    peer = Ros2Peer(DOMAIN)
    start = threading.Timer(0.5, peer.read_topic, ("/clock", "rosgraph_msgs/msg/Clock"))
    start.start()
    with caplog.at_level(logging.INFO):
        ns.record(ns.load(WORLD), f"ros2://?domain={DOMAIN}", 0.5)
    assert len(peer.take("/clock")) == 50
    assert "publishes 9 topics in domain 7" in caplog.text
    assert caplog.messages[-1].endswith("sent 51 messages in 1 subscription")
    start.join()
    peer.close()


def test_run_without_subscription_continues(network: None, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), open_publisher(run, "wait=0.05") as opened:
        opened.wait_for_subscriber()
        publish(run, opened)
    assert "no program subscribed within 0.05 s; the run continues" in caplog.text
    assert caplog.messages[-1].endswith("no program subscribed")


def test_domain_of_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    _, url = streams.stream.parse_url("ros2://")
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    assert ros2_url.parse_domain(url) == 0
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    assert ros2_url.parse_domain(url) == 42
    assert ros2_url.parse_domain(streams.stream.parse_url("ros2://?domain=3")[1]) == 3
    monkeypatch.setenv("ROS_DOMAIN_ID", "x")
    with pytest.raises(RecordingError, match="ROS_DOMAIN_ID: x; must be a number from 0 to 232"):
        streams.check_url("ros2://")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ros2://127.0.0.1:5000", "port of the URL: 5000; must be omitted"),
        ("ros2://127.0.0.1/a", "path of the URL: /a; must be empty"),
        ("ros2://0.0.0.0", "address of this machine: 0.0.0.0; must be an IPv4 address"),
        ("ros2://[::1]", "address of this machine: ::1; must be an IPv4 address"),
        ("ros2://?domain=233", "domain: 233; must be a number from 0 to 232"),
        ("ros2://?domain=-1", "domain: -1; must be a number from 0 to 232"),
        ("ros2://?node=a-b", "option node: a-b; must be a name of ROS 2"),
        ("ros2://?wait=x", "wait (s): x; must be a number"),
    ],
)
def test_invalid_url_is_an_error(url: str, problem: str) -> None:
    with pytest.raises(RecordingError) as error:
        streams.check_url(url)
    assert str(error.value).startswith(f"{url}: {problem}")


def test_address_of_another_machine_is_an_error(network: None, run: Run) -> None:
    with pytest.raises(RecordingError, match=r"^ros2://192\.0\.2\.9\?wait=0: address of this machine: 192\.0\.2\.9; "):
        streams.open_publisher("ros2://192.0.2.9?wait=0", make_recorded_run(run.session))


def test_missing_library_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RecordingError, match=r"ros2 needs cyclonedds; pip install 'navsense\[ros2\]'"):
        streams.check_url("ros2://")


def test_names_are_those_of_ros_2() -> None:
    """The examples of the design article, and what the parts of a name can be."""
    assert naming.format_dds_topic("/foo") == "rt/foo"
    assert naming.format_dds_type("std_msgs/msg/String") == "std_msgs::msg::dds_::String_"
    assert naming.split_node_name("/talker") == ("/", "talker")
    assert naming.split_node_name("/a/b/talker") == ("/a/b", "talker")
    assert naming.is_valid_topic("/a/_b1")
    assert not naming.is_valid_topic("/a/1b")
    assert not naming.is_valid_topic("/a-b")
