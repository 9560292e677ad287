"""The stream of ROS 2 on Zenoh: a plain subscriber of Zenoh, and zenoh-ros2-sdk, which is independent of navsense.

All of them use TCP on loopback and search for nothing. The threads of Zenoh outlive a network namespace.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense import streams
from navsense.core.errors import MotionError, RecordingError
from navsense.messages.schemas import DEFINITIONS, HUMBLE
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.streams import DrivenFrame, StampedState, Subscriber

pytest.importorskip("zenoh", reason="needs eclipse-zenoh (pip install 'navsense[ros2]')")

from navsense.streams.ros2 import zenoh_topics
from navsense.streams.ros2.subscriber import Ros2Subscriber
from tests.streams.zenoh_router import ZenohClient, ZenohPublisher, ZenohRouter

WORLD = Path(__file__).resolve().parents[2] / "examples" / "quadrotor.sdf"
EPOCH = 1_700_000_000
IMU = "world/field/model/quadrotor/link/base_link/sensor/imu/imu"
IMU_KIND = "sensor_msgs::msg::dds_::Imu_/RIHS01_7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300), pytest.mark.requirement("LIV-6")]


@pytest.fixture(scope="module")
def run() -> Run:
    return ns.simulate(ns.load(WORLD), 1.0, seed=3, epoch=EPOCH)


@pytest.fixture
def router() -> Iterator[ZenohRouter]:
    router = ZenohRouter()
    yield router
    router.close()


def open_publisher(router: ZenohRouter, run: Run, query: str = "domain=5&wait=0") -> streams.Publisher:
    return streams.open_publisher(f"ros2+zenoh://:{router.port}?{query}", make_recorded_run(run.session))


def publish(run: Run, publisher: streams.Publisher) -> None:
    for time_slice in run.session.compute_slices(0.05):
        publisher.write(time_slice)
        time.sleep(0.002)


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_keys_attachments_and_tokens_are_those_of_rmw_zenoh(router: ZenohRouter, run: Run) -> None:
    """The forms of the design document of rmw_zenoh."""
    with open_publisher(router, run, "domain=5&node=auv/sensors&wait=20") as publisher:
        client = ZenohClient(router.port, f"5/{IMU}/*/*")
        publisher.wait_for_subscriber()
        assert publisher.subscriber_count == 1
        publish(run, publisher)
        tokens = [token.split("/") for token in router.list_tokens()]
    wait_until(lambda: len(client.samples) == 1000)
    client.close()
    assert {key for key, _, _ in client.samples} == {f"5/{IMU}/{IMU_KIND}"}
    values = np.frombuffer(client.samples[-1][1], "<f8", 12, offset=len(client.samples[-1][1]) - 12 * 8)
    assert values[:3].tolist() == run["imu"]["linear_acceleration"][-1].tolist()
    attachments = [struct.unpack("<qqB16s", attachment) for _, _, attachment in client.samples]
    assert [number for number, *_ in attachments] == list(range(1000))
    assert {(size, gid) for _, _, size, gid in attachments} == {(16, attachments[0][3])}
    assert all(abs(stamp - time.time_ns()) < 60 * 10**9 for _, stamp, _, _ in attachments)
    (session,) = {token[2] for token in tokens}
    assert ["@ros2_lv", "5", session, "0", "0", "NN", "%", "%auv", "sensors"] in tokens
    topics = {token[9]: token for token in tokens if token[5] == "MP"}
    head = ["%auv", "sensors", f"%{IMU.replace('/', '%')}", *IMU_KIND.split("/"), "::,10:,:,:,,"]
    assert topics[head[2]][7:] == head
    assert topics["%tf_static"][-1] == ":1:,1:,:,:,,"
    assert not {"%clock", "%tf", "%truth%quadrotor"} - set(topics)


def store_definitions(folder: Path) -> None:
    """Let zenoh-ros2-sdk read the definitions of messages from a folder; its own source is on the internet."""
    from zenoh_ros2_sdk.message_registry import get_registry

    for message_type, definition in DEFINITIONS.items():
        file = folder / f"{message_type}.msg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(definition + "\n", encoding="utf-8")
    get_registry().messages_dir = folder
    get_registry()._loaded_types.clear()  # its list outlives the session that has the types


def test_zenoh_ros2_sdk_decodes_a_run(router: ZenohRouter, run: Run, tmp_path: Path) -> None:
    """Its key, its type hash and its decoding; a late subscriber gets the latched topic."""
    sdk = pytest.importorskip("zenoh_ros2_sdk", reason="needs zenoh-ros2-sdk")
    from zenoh_ros2_sdk.qos import QosDurability, QosProfile

    store_definitions(tmp_path)
    imu: list[Any] = []
    transforms: list[Any] = []
    options = {"domain_id": 5, "router_port": router.port}
    with open_publisher(router, run, "domain=5&wait=20") as publisher:
        sdk.ROS2Subscriber(f"/{IMU}", "sensor_msgs/msg/Imu", imu.append, **options)
        latched = QosProfile(durability=QosDurability.TRANSIENT_LOCAL, history_depth=1)
        sdk.ROS2Subscriber("/tf_static", "tf2_msgs/msg/TFMessage", transforms.append, qos=latched, **options)
        publisher.wait_for_subscriber()
        publish(run, publisher)
        wait_until(lambda: len(imu) == 1000 and bool(transforms))
    sdk.ZenohSession.get_instance().close()
    rates = [(one.angular_velocity.x, one.angular_velocity.y, one.angular_velocity.z) for one in imu]
    np.testing.assert_array_equal(rates, run["imu"]["angular_velocity"])
    stamps = [one.header.stamp.sec * 10**9 + one.header.stamp.nanosec for one in imu]
    assert stamps == run["imu"].stamp.tolist()
    assert [one.child_frame_id for one in transforms[0].transforms][:2] == ["quadrotor::rotor_0", "quadrotor::rotor_1"]


def test_missing_router_is_an_error(run: Run) -> None:
    router = ZenohRouter()
    router.close()
    with pytest.raises(RecordingError, match=r"router of Zenoh: 127\.0\.0\.1:\d+; does not answer: .*; start it: "):
        open_publisher(router, run)


def test_router_that_stops_does_not_stop_the_run(router: ZenohRouter, run: Run) -> None:
    client = ZenohClient(router.port, f"5/{IMU}/*/*")
    with open_publisher(router, run, "domain=5&wait=20") as publisher:
        publisher.wait_for_subscriber()
        for number, time_slice in enumerate(run.session.compute_slices(0.05)):
            publisher.write(time_slice)
            if number == 5:
                router.close()
    client.close()


def test_humble_is_an_error(router: ZenohRouter, run: Run) -> None:
    with pytest.raises(RecordingError, match="distribution of ROS: humble; must be jazzy"):
        streams.open_publisher(f"ros2+zenoh://:{router.port}", make_recorded_run(run.session, ros=HUMBLE))


def test_run_without_subscription_continues(router: ZenohRouter, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), open_publisher(router, run, "wait=0.05") as publisher:
        publisher.wait_for_subscriber()
        publish(run, publisher)
    assert caplog.messages[-1].endswith("no program subscribed")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ros2+zenoh://127.0.0.1:0", "port of the router: 0; must be a number from 1 to 65535"),
        ("ros2+zenoh://127.0.0.1/a", "path of the URL: /a; must be empty"),
        ("ros2+zenoh://?domain=x", "domain: x; must be a number from 0 to 232"),
        ("ros2+zenoh://?node=1a", "option node: 1a; must be a name of ROS 2"),
    ],
)
def test_invalid_url_is_an_error(url: str, problem: str) -> None:
    with pytest.raises(RecordingError) as error:
        streams.check_url(url)
    assert str(error.value).startswith(f"{url}: {problem}")


STORE = get_typestore(Stores.ROS2_JAZZY)
STAMPED, STAMPED_KIND = "geometry_msgs/msg/PoseStamped", "geometry_msgs::msg::dds_::PoseStamped_/RIHS01_00"


def build_pose(second: int, x: float) -> bytes:
    """Return a message that rosbags serialises."""
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](second, 7)
    position = types["geometry_msgs/msg/Point"](x, 2.0, 3.0)
    rotation = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.6, 0.8)
    pose = types["geometry_msgs/msg/Pose"](position, rotation)
    message = types[STAMPED](types["std_msgs/msg/Header"](stamp, "odom"), pose)
    return bytes(STORE.serialize_cdr(message, STAMPED))


def take(subscriber: Subscriber, count: int) -> list[StampedState]:
    states: list[StampedState] = []
    until = time.monotonic() + 20.0
    while len(states) < count:
        assert time.monotonic() < until, states
        states += subscriber.receive(0.1)
    return states


@pytest.mark.requirement("LIV-7")
def test_states_of_a_topic_are_received(router: ZenohRouter, caplog: pytest.LogCaptureFixture) -> None:
    """Of one publisher at a time. Invalid messages and losses are warnings."""
    publishers = [ZenohPublisher(router.port, 5, "/auv/pose", STAMPED_KIND)]
    url = f"ros2+zenoh://:{router.port}?domain=5&topic=/auv/pose"
    with streams.open_subscriber(url, DrivenFrame("robot::base_link")) as subscriber:
        wait_until(lambda: publishers[0].has_readers)
        publishers[0].send(*(build_pose(second, 0.1 * second) for second in range(1, 6)), b"garbage")
        publishers[0].number += 3
        publishers[0].send(build_pose(6, 0.6))
        states = take(subscriber, 6)
        assert [state.stamp for state in states] == [second * 10**9 + 7 for second in range(1, 7)]
        pose = ns.Pose((0.1 * 4, 2.0, 3.0), (0.8, 0.0, 0.0, 0.6))
        assert states[3].state.pose == pose
        assert states[3].state.velocity is None
        publishers.append(ZenohPublisher(router.port, 5, "/auv/pose", STAMPED_KIND, "%/%auv/filter"))
        wait_until(lambda: len(subscriber._topics.list_publishers()) == 2)  # type: ignore[attr-defined]
        wait_until(lambda: publishers[1].has_readers)
        publishers[1].send(build_pose(7, 0.7))
        wait_until(lambda: "node /sim and node /auv/filter publish it" in caplog.text)
        publishers[0].close()
        wait_until(lambda: len(subscriber._topics.list_publishers()) == 1)  # type: ignore[attr-defined]
        publishers[1].send(build_pose(8, 0.8))
        assert take(subscriber, 1)[0].stamp == 8 * 10**9 + 7
    publishers[1].close()
    assert "topic /auv/pose: node /sim sent a message with the encapsulation 6761, not little-endian CDR" in caplog.text
    assert "topic /auv/pose: messages are lost on the network" in caplog.text


@pytest.mark.requirement("LIV-7")
def test_one_of_two_known_publishers_is_followed_after_the_other(
    router: ZenohRouter, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tokens before the first message do not tell which publisher sent it."""
    monkeypatch.setattr(zenoh_topics, "SILENCE", 0.2)
    publishers = [ZenohPublisher(router.port, 5, "/auv/pose", STAMPED_KIND, f"%/%/{name}") for name in ("a", "b")]
    url = f"ros2+zenoh://:{router.port}?domain=5&topic=/auv/pose"
    with streams.open_subscriber(url, DrivenFrame("robot::base_link")) as subscriber:
        wait_until(lambda: len(subscriber._topics.list_publishers()) == 2)  # type: ignore[attr-defined]
        wait_until(lambda: all(one.has_readers for one in publishers))
        publishers[0].send(build_pose(1, 0.1))
        assert take(subscriber, 1)[0].stamp == 10**9 + 7
        publishers[1].send(build_pose(2, 0.2))
        wait_until(lambda: "publish it" in caplog.text)
        publishers[0].close()
        time.sleep(0.4)
        publishers[1].send(build_pose(3, 0.3))
        assert take(subscriber, 1)[0].stamp == 3 * 10**9 + 7
    publishers[1].close()


def test_unexpected_error_in_a_thread_of_zenoh_ends_the_states(
    router: ZenohRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyError("internal")

    monkeypatch.setattr(Ros2Subscriber, "_put_sample", crash)
    publisher = ZenohPublisher(router.port, 5, "/auv/pose", STAMPED_KIND)
    url = f"ros2+zenoh://:{router.port}?domain=5&topic=/auv/pose"
    with streams.open_subscriber(url, DrivenFrame("robot::base_link")) as subscriber:
        wait_until(lambda: publisher.has_readers)
        publisher.send(build_pose(1, 0.1))
        with pytest.raises(MotionError, match="topic /auv/pose: KeyError: 'internal'"):
            take(subscriber, 1)
    publisher.close()


@pytest.mark.requirement("LIV-7")
def test_zenoh_ros2_sdk_publishes_the_states(
    router: ZenohRouter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its node, key, attachments and serialisation."""
    sdk = pytest.importorskip("zenoh_ros2_sdk", reason="needs zenoh-ros2-sdk")
    store_definitions(tmp_path)
    options = {"domain_id": 5, "router_port": router.port, "node_name": "sim", "namespace": "/auv"}
    publisher = sdk.ROS2Publisher("/pose", STAMPED, **options)
    url, count = f"ros2+zenoh://:{router.port}?domain=5", 0
    with caplog.at_level(logging.INFO), streams.open_subscriber(url, DrivenFrame("robot::base_link")) as subscriber:
        states: list[StampedState] = []
        until = time.monotonic() + 20.0
        while not states:  # until the publisher knows the subscriber
            assert time.monotonic() < until
            count += 1
            message = STORE.deserialize_cdr(build_pose(count, 0.1 * count), STAMPED)
            publisher.publish(header=message.header, pose=message.pose)  # type: ignore[attr-defined]
            states += subscriber.receive(0.05)
    sdk.ZenohSession.get_instance().close()
    first = states[0].stamp // 10**9
    assert states[0].stamp == first * 10**9 + 7
    assert states[0].state.pose == ns.Pose((0.1 * first, 2.0, 3.0), (0.8, 0.0, 0.0, 0.6))
    assert "topic /pose: subscribed to node /auv/sim" in caplog.text


@pytest.mark.requirement("LIV-7")
def test_missing_topic_and_router_of_a_motion_are_errors(router: ZenohRouter) -> None:
    publisher = ZenohPublisher(router.port, 5, "/auv/pose", STAMPED_KIND)
    url = f"ros2+zenoh://:{router.port}?domain=5&topic=/odom&wait=0.5"
    found = r"topics that were found: /auv/pose \(geometry_msgs/msg/PoseStamped\)"
    with pytest.raises(MotionError, match=rf"topic /odom: no publisher in domain 5 within 0\.5 s; {found}; start"):
        streams.open_subscriber(url, DrivenFrame("robot::base_link"))
    publisher.close()
    router.close()
    with pytest.raises(MotionError, match=r"router of Zenoh: 127\.0\.0\.1:\d+; does not answer: .*; start it: "):
        streams.open_subscriber(url, DrivenFrame("robot::base_link"))
