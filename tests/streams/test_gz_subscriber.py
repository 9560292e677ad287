"""Subscriber of Gazebo transport: a simulator written from the specification publishes poses that become states.

All tests with a network run in a namespace of their own, or are skipped.
"""

from __future__ import annotations

import errno
import math
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import navsense as ns
from navsense import streams
from navsense.core.errors import MotionError, Where
from navsense.core.pose import Pose
from navsense.messages.gz import encode_packed
from navsense.motion import Replay
from navsense.motion.base import LogContext
from navsense.recordings.recorded_motion import load_motion
from navsense.streams.gz import directory as directory_module
from navsense.streams.gz import services as services_module
from navsense.streams.gz import subscriber as subscriber_module
from navsense.streams.gz.directory import Directory, find_address_problem
from navsense.streams.gz.discovery import Advert, DiscoveryMessage, MessageType
from navsense.streams.gz.poses import Entity, EntityDecoder, Target, TargetError, find_chain_in_scene, make_decoder
from navsense.streams.gz.run_services import make_handler
from navsense.streams.gz.services import GzService, ServiceError, ServiceServer, request_service
from navsense.streams.gz.settings import read_settings
from navsense.streams.gz.subscriber import read_query
from navsense.streams.services import RequestKind, RunService
from navsense.streams.stream import parse_url
from navsense.streams.subscriber import DrivenFrame, StampedState, Subscriber
from tests.recordings.test_gazebo_poses import GZ, GazeboMessages, make_scene, set_frames, set_pose, set_stamp
from tests.streams.network_namespace import network_namespace

zmq = pytest.importorskip("zmq", reason="needs pyzmq (pip install 'navsense[gz]')")
from tests.streams.gz_peer import (  # noqa: E402 it needs pyzmq
    DEADLINE,
    HEARTBEAT,
    NEW_CONNECTION,
    Simulator,
    wait_until,
)

pytestmark = [pytest.mark.timeout(200), pytest.mark.requirement("LIV-3")]

ROOT = Pose.from_rpy((0.2, 0.1, -0.3), 0.1, 0.2, 0.3)
FRAME = DrivenFrame("robot::base", LogContext(model="robot", root=ROOT))
URL = "gz://?partition=sea&wait=60&topic=/model/robot/pose"
TOPIC = "@/sea@/model/robot/pose"


@pytest.fixture
def network() -> Iterator[None]:
    with network_namespace():
        yield


@pytest.fixture
def simulator(network: None) -> Iterator[Simulator]:
    simulator = Simulator(TOPIC)
    yield simulator
    simulator.close()


def receive(subscriber: Subscriber, count: int) -> list[StampedState]:
    received: list[StampedState] = []
    end = time.monotonic() + DEADLINE
    while len(received) < count:
        assert time.monotonic() < end, f"{len(received)} of {count} states"
        received += subscriber.receive(0.1)
    return received


def make_message(k: int, name: str = "robot") -> bytes:
    message = make_scene(k, ("ground", name))
    set_pose(message.pose[1], (0.5 * k, 1.0, -2.0), (math.cos(k), 0.0, math.sin(k), 0.0))
    data: bytes = message.SerializeToString()
    return data


def messages_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.requirement("LIV-7")
def test_states_are_the_poses_of_a_recording_of_the_topic(simulator: Simulator, tmp_path: Path) -> None:
    """With the pose of the canonical link in the model, and with statistics in the messages."""
    scenes = [make_message(k) for k in range(20)]
    with streams.open_subscriber(URL, FRAME) as subscriber:
        simulator.wait_for_subscriber()
        wait_until(lambda: NEW_CONNECTION in simulator.peer.kinds)
        for k, data in enumerate(scenes):
            simulator.publish(data, *([bytes(16)] if k % 2 else []))
        received = receive(subscriber, 20)
    motion = load_motion(GZ.write(tmp_path / "r.mcap", "/model/robot/pose", "Pose_V", scenes), FRAME.context)
    assert isinstance(motion, Replay)
    block = motion.at(motion.trajectory.knots)
    stamps = np.array([state.stamp for state in received])
    np.testing.assert_array_equal((stamps - stamps[0]) / 1e9, motion.trajectory.knots)
    assert stamps[0] == 3 * 10**9
    np.testing.assert_allclose([one.state.pose.position for one in received], block.position_w, rtol=0, atol=1e-14)
    signs = np.sign(np.einsum("ij,ij->i", [one.state.pose.rotation for one in received], block.rotation_wb))
    rotations = signs[:, None] * [one.state.pose.rotation for one in received]
    np.testing.assert_allclose(rotations, block.rotation_wb, rtol=0, atol=1e-14)
    assert {one.state.velocity for one in received} == {None}


def test_pose_without_root_is_bitwise_that_of_the_message(simulator: Simulator) -> None:
    with streams.open_subscriber(URL, DrivenFrame("robot::base", LogContext(model="robot"))) as subscriber:
        simulator.wait_for_subscriber()
        simulator.publish(make_message(3))
        (received,) = receive(subscriber, 1)
    assert received.state == ns.State(Pose((1.5, 1.0, -2.0), (math.cos(3), 0.0, math.sin(3), 0.0)))


def make_late_message() -> bytes:
    message = make_scene(1, ("ground", "robot"))
    message.header.stamp.sec = 2**62
    data: bytes = message.SerializeToString()
    return data


GARBAGE = {
    "garbage": (b"\xff\xff\xff", "an integer is truncated"),
    "truncated": (make_message(1)[:-3], "a field is truncated"),
    "zero quaternion": (make_message(0).replace(struct.pack("<d", 1.0), bytes(8)), "is zero or not finite"),
    "nan": (make_message(2).replace(struct.pack("<d", -2.0), struct.pack("<d", math.nan)), "is not finite"),
    "stamp": (make_late_message(), "does not fit into 64 bits"),
    "no entity": (make_message(1, "rover"), "no entity robot"),
    "empty": (b"", "no entity robot"),
}


def test_invalid_messages_are_warnings_and_the_next_one_is_read(
    simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """Each cause is logged once, with the topic and the peer or the entities."""
    with streams.open_subscriber(URL, FRAME) as subscriber:
        simulator.wait_for_subscriber()
        simulator.publish(make_message(0))
        for data, _ in 50 * [GARBAGE["garbage"]] + 3 * list(GARBAGE.values()):
            simulator.publish(data)
        simulator.publisher.send_multipart([TOPIC.encode(), b"x"])
        simulator.publisher.send_multipart([TOPIC.encode(), b"x", b"y", b"gz.msgs.IMU"])
        for k in (5, 6):
            simulator.publish(make_message(k))
        stamps: list[int] = []
        while 6 * 10**9 not in stamps:
            stamps += [one.stamp for one in receive(subscriber, 1)]
    assert stamps[0] == 3 * 10**9
    texts = messages_of(caplog)
    assert all("topic /model/robot/pose" in text for text in texts)
    assert sum("is not a valid gz.msgs.Pose_V: an integer is truncated" in text for text in texts) == 1
    assert sum("is zero or not finite; it is ignored" in text for text in texts) == 1
    assert sum("invalid messages ignored" in text for text in texts) == 1
    assert sum("is ignored" in text and "gz.msgs.IMU" in text for text in texts) <= 1
    assert sum("no entity robot" in text for text in texts) == 1
    assert len(texts) <= 6


@pytest.mark.parametrize("name", GARBAGE)
def test_invalid_message_is_an_error_of_the_decoder(name: str) -> None:
    data, problem = GARBAGE[name]
    decoder = EntityDecoder(Target("robot"), None, is_list=True)
    with pytest.raises(ValueError, match=problem):
        decoder.decode(data)


def test_publisher_that_vanishes_and_comes_back_is_used_again(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With BYE at once, without it after the time of silence."""
    monkeypatch.setattr(directory_module, "SILENCE", 3600.0)
    with streams.open_subscriber(URL, FRAME) as subscriber:
        simulator.wait_for_subscriber()
        simulator.publish(make_message(1))
        receive(subscriber, 1)
        for k in (2, 3):
            simulator.close(is_silent=k == 3)
            if k == 3:
                monkeypatch.setattr(directory_module, "SILENCE", 0.1)
            wait_until(lambda k=k: sum("has vanished" in text for text in messages_of(caplog)) == k - 1)  # type: ignore[misc]
            monkeypatch.setattr(directory_module, "SILENCE", 3600.0)
            simulator = Simulator(TOPIC)
            simulator.wait_for_subscriber()
            simulator.publish(make_message(k))
            assert receive(subscriber, 1)[0].stamp == 3 * 10**9 + k * 5 * 10**8
        simulator.close()


def test_entity_that_never_comes_is_a_warning(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `Pose` has one entity."""
    monkeypatch.setattr(subscriber_module, "QUIET_TIME", 3600.0)
    simulator.type = "gz.msgs.Pose"
    with streams.open_subscriber(URL, FRAME) as subscriber:
        simulator.wait_for_subscriber()
        for stamp in (1, 2):
            simulator.publish(make_pose("robot", stamp, (0.0, 0.0, 0.0)).SerializeToString())
        receive(subscriber, 1)
        assert not messages_of(caplog)
        monkeypatch.setattr(subscriber_module, "QUIET_TIME", 0.01)
        time.sleep(0.02)
        simulator.publish(make_pose("arm", 3, (0.0, 0.0, 0.0)).SerializeToString())
        wait_until(lambda: bool(messages_of(caplog)))
    assert messages_of(caplog)[0].endswith("topic /model/robot/pose: no message of robot for 0.01 s; waiting for it")


def test_second_publisher_and_another_type_are_warnings(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    with streams.open_subscriber(URL, FRAME) as subscriber:
        simulator.wait_for_subscriber()
        second, third = Simulator(TOPIC), Simulator(TOPIC, "gz.msgs.IMU")
        try:
            wait_until(lambda: len(messages_of(caplog)) == 2)
            second.publish(make_message(7))
            third.publish(make_message(8))
            simulator.publish(make_message(1))
            assert [one.stamp for one in receive(subscriber, 1)] == [35 * 10**8]
            count = simulator.peer.kinds.count(HEARTBEAT)
            wait_until(lambda: simulator.peer.kinds.count(HEARTBEAT) >= count + 6)  # two of each other process
        finally:
            second.close()
            third.close()
        texts = sorted(messages_of(caplog))
    assert f"two publishers: {simulator.address} is used; {second.address} is another node and ignored" in "".join(
        texts
    )
    assert f"process {third.peer.process} publishes the type gz.msgs.IMU; it is ignored" in "".join(texts)
    assert len(texts) == 2


def test_close_releases_every_file_and_thread(simulator: Simulator) -> None:
    process = psutil.Process()
    for count in range(3):
        with streams.open_subscriber(URL, FRAME):
            pass
        if not count:
            before = process.num_fds(), threading.active_count()
    # A socket of an earlier test can close in the meantime.
    wait_until(lambda: process.num_fds() <= before[0] and threading.active_count() <= before[1])


def test_missing_topic_is_an_error_with_those_that_are_there(simulator: Simulator) -> None:
    url = "gz://?partition=sea&wait=2.5&version=11&topic=/odometry"
    with pytest.raises(MotionError) as error:
        streams.open_subscriber(url, FRAME)
    assert str(error.value) == (
        f"{url}: no publisher of topic /odometry; none in the partition sea within 2.5 s; topics with poses: "
        "/model/robot/pose; start the simulator with IGN_IP=127.0.0.1 and IGN_PARTITION=sea"
    )
    # Without a wait, the topic of the other partition may be known already.
    others = r"topics with poses: (none|@/sea@/model/robot/pose); start"
    with pytest.raises(MotionError, match=rf"no topic with poses; none in the partition lake within 0 s; {others}"):
        streams.open_subscriber("gz://?partition=lake&wait=0", FRAME)
    with pytest.raises(MotionError, match=r"type of topic /model/robot/pose: gz.msgs.Pose_V; must be Odometry; omit"):
        streams.open_subscriber(f"{URL}&type=Odometry", FRAME)


def test_topic_without_states_is_an_error(network: None) -> None:
    simulator = Simulator(TOPIC, "gz.msgs.IMU")
    try:
        with pytest.raises(MotionError, match=r"gz.msgs.IMU; must be gz.msgs.Pose_V, .*; name another topic"):
            streams.open_subscriber(URL, FRAME)
    finally:
        simulator.close()


def test_address_that_is_not_on_loopback_is_not_used(network: None, caplog: pytest.LogCaptureFixture) -> None:
    simulator = Simulator(TOPIC, address="tcp://192.168.1.5:1234")
    try:
        with pytest.raises(MotionError, match="no publisher"):
            streams.open_subscriber(URL.replace("wait=60", "wait=2.5"), FRAME)
    finally:
        simulator.close()
    (text,) = messages_of(caplog)
    assert "tcp://192.168.1.5:1234 is not on loopback, as 127.0.0.1 is; set GZ_IP=127.0.0.1" in text


@pytest.mark.parametrize(
    "address",
    ["", "tcp://127.0.0.1", "ipc://x", "tcp://127.0.0.1:99999", "tcp://0.0.0.0:1", "tcp://a:1", "tcp://["],
)
def test_invalid_address_is_a_problem(address: str) -> None:
    assert "is not tcp://HOST:PORT" in find_address_problem(address, "127.0.0.1")


def test_directory_is_bounded_and_forgets_silent_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "MAX_ADVERTS", 5)
    monkeypatch.setattr(directory_module, "MAX_PROCESSES", 3)
    directory = Directory("127.0.0.1", Where("gz://"))
    for k in range(20):
        advert = Advert(f"@/p@/{k}", "tcp://127.0.0.1:1", f"process {k % 4}", "n", type="gz.msgs.Pose")
        message = DiscoveryMessage(10, MessageType.ADVERTISE, advert.process, advert.name, advert=advert)
        directory.update(message, "127.0.0.1")
    assert len(directory.list_adverts()) == 5
    directory.update(DiscoveryMessage(10, MessageType.BYE, "process 0"), "127.0.0.1")
    assert {advert.process for advert in directory.list_adverts()} == {"process 1", "process 2"}
    monkeypatch.setattr(directory_module, "SILENCE", -1.0)
    assert not directory.list_adverts()


def test_process_beyond_the_limit_takes_the_place_of_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then its topics are not listed: they would never expire."""
    monkeypatch.setattr(directory_module, "MAX_PROCESSES", 1)
    directory = Directory("127.0.0.1", Where("gz://"))

    def advertise(process: str) -> list[str]:
        advert = Advert("@/p@/a", "tcp://127.0.0.1:1", process, "n", type="gz.msgs.Pose")
        directory.update(DiscoveryMessage(10, MessageType.ADVERTISE, process, advert.name, advert=advert), "127.0.0.1")
        with monkeypatch.context() as context:
            context.setattr(directory_module, "SILENCE", 3600.0)
            return [advert.process for advert in directory.list_adverts()]

    assert advertise("first") == ["first"]
    assert advertise("second") == ["first"]
    monkeypatch.setattr(directory_module, "SILENCE", -1.0)
    assert advertise("second") == ["second"]


@pytest.mark.parametrize(
    ("scope", "host", "is_listed"), [(0, "127.0.0.1", False), (1, "127.0.0.1", True), (1, "10.0.0.7", False)]
)
def test_scope_of_a_topic_is_respected(scope: int, host: str, is_listed: bool) -> None:
    directory = Directory("10.0.0.5", Where("gz://"))
    advert = Advert("@/p@/a", "tcp://10.0.0.7:1", "p", "n", scope, "gz.msgs.Pose")
    directory.update(DiscoveryMessage(10, MessageType.ADVERTISE, "p", advert.name, advert=advert), host)
    assert bool(directory.list_adverts()) == is_listed


# Decoding. The messages are those of protobuf.


def decode(kind: str, target: Target, *messages: Any) -> list[tuple[int | None, ns.State]]:
    decoder = make_decoder(kind, target, None)
    results = [decoder.decode(message.SerializeToString()) for message in messages]
    return [result for result in results if result is not None]


def make_pose(name: str, stamp: int, position: tuple[float, float, float], parent: str = "") -> Any:
    pose = GZ.make("Pose")
    pose.name = name
    set_stamp(pose.header, stamp)
    set_frames(pose.header, parent, name)
    set_pose(pose, position, (0.6, 0.0, 0.0, 0.8))
    return pose


def test_messages_with_one_entity_are_selected_by_name() -> None:
    """The entities of the first step are those to select from."""
    messages = [
        make_pose(name, stamp, (x, 0.0, 0.0))
        for stamp in (1, 2, 3)
        for x, name in enumerate(("robot::base", "robot", "other"), start=10 * stamp)
    ]
    results = decode("Pose", Target("robot"), *messages)
    assert [(stamp, state.pose.position[0]) for stamp, state in results] == [(2, 21.0), (3, 31.0)]


@pytest.mark.parametrize("kind", ["Pose", "Pose_V"])
def test_link_is_the_product_of_the_poses_from_the_model_on(kind: str) -> None:
    """Names of PosePublisher are scoped, and the parent is in the header."""
    target = Target("robot", "arm")
    rows = [
        ("robot", (1.0, 2.0, 0.0), "world"),
        ("robot::arm", (1.0, 0.0, 0.5), "robot"),
        ("robot::leg", (9.0, 9.0, 9.0), "robot"),
    ]
    messages = [[make_pose(name, stamp, position, parent) for name, position, parent in rows] for stamp in (1, 2)]
    if kind == "Pose_V":
        vectors = []
        for poses in messages:
            vector = GZ.make("Pose_V")
            vector.pose.extend(poses)
            vectors.append(vector)
        results = decode(kind, target, *vectors)
        assert [stamp for stamp, _ in results] == [1, 2]
    else:
        results = decode(kind, target, *(pose for poses in messages for pose in poses))
        assert [stamp for stamp, _ in results] == [2]
    # A rotation of 2 atan2(0.8, 0.6) about z has the cosine -0.28 and the sine 0.96.
    np.testing.assert_allclose(results[-1][1].pose.position, (1.0 - 0.28, 2.0 + 0.96, 0.5), rtol=0, atol=1e-15)
    np.testing.assert_allclose(results[-1][1].pose.rotation, (-0.28, 0.0, 0.0, 0.96), rtol=0, atol=1e-15)


def test_link_whose_model_has_no_pose_is_an_error() -> None:
    vector = GZ.make("Pose_V")
    vector.pose.append(make_pose("robot::arm", 1, (1.0, 0.0, 0.0), "robot"))
    with pytest.raises(TargetError, match=r"the pose of robot::arm is relative to robot, which has no pose"):
        decode("Pose_V", Target("robot", "arm"), vector)
    with pytest.raises(TargetError, match="the parent of arm is unknown without the service"):
        decode("Pose_V", Target("robot", "arm"), make_scene(1, ("robot", "arm")))


def encode_named(number: int, name_number: int, id_number: int, name: str, identity: int, *parts: bytes) -> bytes:
    body = (
        bytes([name_number << 3 | 2, len(name)]) + name.encode() + bytes([id_number << 3, identity]) + b"".join(parts)
    )
    return bytes([number << 3 | 2, len(body)]) + body


def make_scene_info() -> bytes:
    """Return a `Scene` with a nested model: world / other / arm, world / robot / base, gripper / arm."""
    arm = encode_named(7, 3, 2, "arm", 12)
    gripper = encode_named(12, 2, 3, "gripper", 11, arm)
    robot = encode_named(9, 2, 3, "robot", 8, encode_named(7, 3, 2, "base", 9), gripper)
    return encode_named(9, 2, 3, "other", 20, encode_named(7, 3, 2, "arm", 21)) + robot


@pytest.mark.parametrize(
    ("model", "link", "numbers"),
    [
        ("robot", "", [8]),
        ("robot::gripper", "", [8, 11]),
        ("robot", "base", [8, 9]),
        ("robot", "gripper::arm", [8, 11, 12]),
        ("robot::gripper", "arm", [8, 11, 12]),
        ("other", "arm", [20, 21]),
    ],
)
def test_scene_has_the_entities_from_the_model_to_the_link(model: str, link: str, numbers: list[int]) -> None:
    chain = find_chain_in_scene(make_scene_info(), Target(model, link))
    assert [entity.number for entity in chain] == numbers


def test_entity_that_is_created_anew_is_found_again(
    network: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It has another number in the scene and in the messages."""
    monkeypatch.setattr(subscriber_module, "SCENE_INTERVAL", 0.2)
    simulator, numbers = Simulator("@/sea@/world/demo/dynamic_pose/info"), [9, 9, 7]
    settings = read_settings(parse_url("gz://?partition=sea")[1])
    server = ServiceServer(zmq, settings, "127.0.0.1", simulator.peer.process, Where("gz://"))

    def answer(_data: bytes) -> bytes:
        return encode_named(9, 2, 3, "robot", numbers.pop(0))

    server.add(GzService("@/sea@/world/demo/scene/info", "gz.msgs.Empty", "gz.msgs.Scene", answer))
    try:
        with streams.open_subscriber("gz://?partition=sea&topic=world/demo/dynamic_pose/info", FRAME) as subscriber:
            simulator.wait_for_subscriber()
            end = time.monotonic() + DEADLINE
            while not (received := subscriber.receive(0.1)):
                assert time.monotonic() < end
                simulator.publish(make_scene(1).SerializeToString())
    finally:
        server.close()
        simulator.close()
    assert received[0].state == ns.State(Pose((3.0, 3.0, 0.0)) @ ROOT)  # the second robot has the number 7
    assert not numbers
    assert any("no entity robot; waiting for it" in text for text in messages_of(caplog))


def test_scene_without_an_answer_keeps_the_entity_and_delays_nothing(
    network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another entity has the same local name. The service has ended, and the receiver does not wait for it."""
    simulator = Simulator("@/sea@/world/demo/dynamic_pose/info")
    settings = read_settings(parse_url("gz://?partition=sea")[1])
    server = ServiceServer(zmq, settings, "127.0.0.1", simulator.peer.process, Where("gz://"))
    scene = encode_named(9, 2, 3, "robot", 7)
    server.add(GzService("@/sea@/world/demo/scene/info", "gz.msgs.Empty", "gz.msgs.Scene", lambda _: scene))
    url, names = "gz://?partition=sea&wait=3600&topic=world/demo/dynamic_pose/info", ("ground", "other", "robot")
    try:
        with streams.open_subscriber(url, FRAME) as subscriber:
            assert isinstance(subscriber, subscriber_module.GzSubscriber)
            server.close()
            monkeypatch.setattr(subscriber_module, "SERVICE_TIMEOUT", 3600.0)
            simulator.wait_for_subscriber()
            simulator.publish(make_scene(1, names).SerializeToString())  # this robot has the number 6
            wait_until(lambda: subscriber._scene_thread is not None)
            simulator.publish(make_scene(2, names).SerializeToString())
            simulator.publish(make_scene(3, (*names, "robot")).SerializeToString())
            assert [one.stamp for one in receive(subscriber, 1)] == [45 * 10**8]
            thread = subscriber._scene_thread
            assert thread is not None
            assert thread.is_alive()
        assert not thread.is_alive()
    finally:
        server.close()
        simulator.close()


@pytest.mark.parametrize(("model", "link"), [("rover", ""), ("robot", "arm"), ("robot", "gripper"), ("base", "")])
def test_scene_without_the_entity_is_an_error_with_its_entities(model: str, link: str) -> None:
    with pytest.raises(TargetError, match="the scene has no") as error:
        find_chain_in_scene(make_scene_info(), Target(model, link))
    assert {"other", "robot"} <= set(error.value.entities)


def test_deep_scene_is_an_error() -> None:
    scene = b""
    for _ in range(60):
        body = b"\x12\x01a" + scene
        size = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 127 | 128, len(body) >> 7])
        scene = b"\x62" + size + body
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        find_chain_in_scene(b"\x4a" + scene[1:], Target("::".join(["a"] * 50)))


def test_entity_of_a_scene_is_found_by_its_number() -> None:
    """Local names repeat: the entity of another model has the same name."""
    chain = (Entity("robot", 6), Entity("arm", 7, pose=Pose((0.0, 0.0, 5.0))))
    message = make_scene(2, ("arm", "robot", "robot", "arm"))
    results = [
        EntityDecoder(Target("robot", "arm", root=ROOT), chain, is_list=True).decode(message.SerializeToString())
    ]
    assert results == [(4 * 10**9, ns.State(Pose((10.0, 5.0, 0.0))))]
    static = make_scene(2, ("arm", "robot", "robot"))
    result = EntityDecoder(Target("robot", "arm"), chain, is_list=True).decode(static.SerializeToString())
    assert result == (4 * 10**9, ns.State(Pose((4.0, 2.0, 5.0))))


@pytest.mark.parametrize("package", ["gz.msgs", "ignition.msgs"])
def test_odometry_has_the_twist_in_the_axes_of_the_body(package: str) -> None:
    message = GazeboMessages(package).make("Odometry")
    set_stamp(message.header, 7)
    set_frames(message.header, "robot/odom", "robot/base_footprint")
    set_pose(message.pose, (1.0, 2.0, 3.0), (0.6, 0.0, 0.0, 0.8))
    message.twist.linear.x, message.twist.angular.z = 0.25, -0.5
    ((stamp, state),) = decode("Odometry", Target("robot", root=ROOT), message)
    assert (stamp, state.frame, state.angular_frame) == (7, "body", None)
    assert (state.velocity, state.angular_velocity) == ((0.25, 0.0, 0.0), (0.0, 0.0, -0.5))
    assert state.pose == Pose((1.0, 2.0, 3.0), (0.6, 0.0, 0.0, 0.8))
    with pytest.raises(TargetError, match="no frame base"):
        decode("Odometry", Target("robot", frame="base"), message)
    message.ClearField("twist")
    ((_, state),) = decode("Odometry", Target("robot"), message)
    assert (state.velocity, state.angular_velocity) == (None, None)


@pytest.mark.parametrize("package", ["gz.msgs", "ignition.msgs"])
def test_odometry_with_covariance_has_the_same_pose_and_twist(package: str) -> None:
    message = GazeboMessages(package).make("OdometryWithCovariance")
    set_stamp(message.header, 7)
    set_frames(message.header, "robot/odom", "robot/base_footprint")
    set_pose(message.pose_with_covariance.pose, (1.0, 2.0, 3.0), (0.6, 0.0, 0.0, 0.8))
    message.pose_with_covariance.covariance.data.extend(36 * [0.5])
    twist = message.twist_with_covariance
    twist.twist.linear.x, twist.twist.angular.z = 0.25, -0.5
    twist.covariance.data.extend(36 * [0.25])
    ((stamp, state),) = decode("OdometryWithCovariance", Target("robot", root=ROOT), message)
    pose = Pose((1.0, 2.0, 3.0), (0.6, 0.0, 0.0, 0.8))
    assert stamp == 7
    assert state == ns.State(pose, (0.25, 0.0, 0.0), angular_velocity=(0.0, 0.0, -0.5), frame="body")


def test_twist_of_the_model_is_moved_to_the_canonical_link() -> None:
    """A turn of w about z moves a frame at x = r with w r along y."""
    message = GZ.make("Odometry")
    set_frames(message.header, "odom", "robot")
    set_pose(message.pose, (1.0, 0.0, 0.0))
    message.twist.linear.x, message.twist.angular.z = 2.0, 0.5
    root = Pose((3.0, 0.0, 0.0), (0.6, 0.0, 0.0, 0.8))
    ((_, state),) = decode("Odometry", Target("robot", root=root), message)
    assert state.pose.position == (4.0, 0.0, 0.0)
    np.testing.assert_allclose(state.pose.rotation, (0.6, 0.0, 0.0, 0.8), rtol=0, atol=1e-15)
    # (2, 1.5, 0) in axes that are turned by an angle with the cosine -0.28 and the sine 0.96.
    expected = (-0.28 * 2.0 + 0.96 * 1.5, -0.96 * 2.0 - 0.28 * 1.5, 0.0)
    np.testing.assert_allclose(state.velocity, expected, rtol=0, atol=1e-15)  # type: ignore[arg-type]
    np.testing.assert_allclose(state.angular_velocity, (0.0, 0.0, 0.5), rtol=0, atol=1e-16)  # type: ignore[arg-type]


def test_message_without_a_stamp_has_none() -> None:
    message = make_scene(1, ("robot",))
    message.ClearField("header")
    assert [stamp for stamp, _ in decode("Pose_V", Target("robot"), message)] == [None]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", Target("robot", root=ROOT)),
        ("?model=rov", Target("rov", root=ROOT)),
        ("?link=robot::arm", Target("robot", "arm")),
        ("?model=rov&link=arm", Target("rov", "arm")),
        ("?frame=robot::arm", Target("robot", frame="robot::arm", root=ROOT)),
    ],
)
def test_options_select_the_entity(query: str, expected: Target) -> None:
    assert read_query(parse_url(f"gz://{query}", "motion")[1], FRAME)[1].target == expected


@pytest.mark.parametrize(
    ("query", "problem"),
    [("?topics=a", "option of the URL: topics"), ("?world=a/b", "world: a/b"), ("?version=16", "version: 16")],
)
def test_invalid_url_is_an_error_of_the_motion(query: str, problem: str) -> None:
    with pytest.raises(MotionError, match=problem):
        streams.open_subscriber(f"gz://{query}", FRAME)


# Services.

BOOLEAN = "gz.msgs.Boolean"


@pytest.fixture
def server(network: None) -> Iterator[ServiceServer]:
    server = ServiceServer(
        zmq, read_settings(parse_url("gz://?partition=p")[1]), "127.0.0.1", "process", Where("gz://")
    )
    yield server
    server.close()


def request(name: str, data: bytes = b"", timeout: float = DEADLINE) -> bytes:
    settings = read_settings(parse_url("gz://?partition=p")[1])
    return request_service(zmq, settings, f"@/p@/{name}", "Boolean", Where("gz://"), data=data, timeout=timeout)


def test_service_answers_or_says_that_it_failed(server: ServiceServer, caplog: pytest.LogCaptureFixture) -> None:
    """A handler that raises does not end the thread."""

    def handle(data: bytes) -> bytes | None:
        if data == b"bad":
            raise ValueError("it is bad")
        if data == b"broken":
            raise RuntimeError("it is broken")
        return None if data == b"none" else data[::-1]

    server.add(GzService("@/p@/turn", BOOLEAN, BOOLEAN, handle))
    assert request("turn", b"abc") == b"cba"
    for data in (b"bad", b"broken", b"none", b"bad"):
        with pytest.raises(ServiceError, match="the service has failed"):
            request("turn", data)
    assert request("turn", bytes(100_000) + b"a") == b"a" + bytes(100_000)
    texts = messages_of(caplog)
    assert len(texts) == 2
    assert "service @/p@/turn: request of tcp://127.0.0.1:" in texts[0]
    assert texts[0].endswith(": it is bad")
    assert texts[1].endswith("service @/p@/turn failed: RuntimeError('it is broken')")


@pytest.mark.parametrize("part", ["connect", "send"])
def test_error_of_a_socket_ends_one_request_only(
    server: ServiceServer, part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the service and the peer."""
    send = services_module.try_send

    def fail(*_: object) -> None:
        raise zmq.ZMQError(errno.EMFILE)

    def fail_to_send(zmq_module: Any, opened: Any, frames: list[bytes]) -> bool:
        if len(frames) == 6:  # a response
            fail()
        return send(zmq_module, opened, frames)

    server.add(GzService("@/p@/turn", BOOLEAN, BOOLEAN, lambda data: data[::-1]))
    with monkeypatch.context() as context:
        if part == "connect":
            context.setattr(ServiceServer, "_connect", fail)
        else:
            context.setattr(services_module, "try_send", fail_to_send)
        with pytest.raises(ServiceError, match="no response within"):
            request("turn", b"abc", timeout=0.5)
    assert request("turn", b"abc") == b"cba"
    (text,) = messages_of(caplog)
    assert "service @/p@/turn: no response to tcp://127.0.0.1:" in text
    assert text.endswith("ZMQError('Too many open files')")


def test_services_that_cannot_receive_send_bye(
    server: ServiceServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has an error, and other programs do not see them any more."""

    def fail() -> None:
        raise zmq.ZMQError(zmq.ENOTSOCK)

    server.add(GzService("@/p@/turn", BOOLEAN, BOOLEAN, lambda data: data))
    assert request("turn", b"ab") == b"ab"
    monkeypatch.setattr(server, "_send_responses", fail)
    with pytest.raises(ServiceError):
        request("turn", timeout=1.0)
    wait_until(lambda: not server._thread.is_alive())
    with pytest.raises(ServiceError, match="no process has the service"):
        request("turn", timeout=0.3)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == "gz://: the services have ended"
    assert record.exc_info is not None


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.requirement("LIV-8")
def test_values_of_a_request_are_those_of_protobuf(is_packed: bool) -> None:
    values = (0.5, -1.0, 2.0, 0.0, 1e-3)
    data = encode_packed(1, values) if is_packed else b"".join(b"\x09" + struct.pack("<d", value) for value in values)
    received: list[Sequence[float]] = []

    def change(numbers: Sequence[float]) -> str | tuple[float, ...]:
        received.append(numbers)
        return "" if numbers else values

    request_type, response_type, handler = make_handler(RunService("/a", RequestKind.MODEL, change))
    assert (request_type, response_type) == ("gz.msgs.Double_V", "gz.msgs.Boolean")
    assert handler(data) == b"\x10\x01"
    assert received == [list(values)]
    with pytest.raises(ValueError, match="2 values; the service has 5"):
        handler(encode_packed(1, values[:2]))
    request_type, response_type, handler = make_handler(RunService("/a", RequestKind.GET_MODEL, change))
    assert (request_type, response_type) == ("gz.msgs.Empty", "gz.msgs.Double_V")
    assert handler(b"") == encode_packed(1, values)


def test_missing_service_is_an_error(server: ServiceServer) -> None:
    with pytest.raises(ServiceError, match=r"no process has the service within 0\.3 s"):
        request("missing", timeout=0.3)


def test_garbage_to_a_service_is_a_warning_for_each_cause(
    server: ServiceServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(GzService("@/p@/turn", BOOLEAN, BOOLEAN, lambda data: data))
    context = zmq.Context()
    stranger = context.socket(zmq.ROUTER)
    stranger.setsockopt(zmq.ROUTER_MANDATORY, 1)
    stranger.connect(server._address)
    name, identity = b"@/p@/turn", server._socket_id.encode()
    frames = [name, b"tcp://10.1.2.3:5", b"id", b"node", b"number", b"", BOOLEAN.encode(), BOOLEAN.encode()]
    requests = [
        [b"x"],
        frames[:5],
        [b"@/p@/other", *frames[1:]],
        [*frames[:6], b"gz.msgs.Int32", frames[7]],
        frames,
    ]
    try:
        for message in 5 * requests:
            end = time.monotonic() + DEADLINE
            while True:
                try:
                    stranger.send_multipart([identity, *message])
                    break
                except zmq.ZMQError:
                    assert time.monotonic() < end
                    time.sleep(0.01)
        wait_until(lambda: len(messages_of(caplog)) >= 4)
        assert request("turn", b"ab") == b"ab"
    finally:
        context.destroy(linger=0)
    texts = "\n".join(messages_of(caplog))
    for problem in (
        "a request has 2 frames, not 9",
        "names an unknown service",
        "requests gz.msgs.Int32 -> gz.msgs.Boolean, the service is gz.msgs.Boolean -> gz.msgs.Boolean",
        "no response: the address tcp://10.1.2.3:5 is not on loopback",
    ):
        assert texts.count(problem) == 1
    assert server._peers.keys() <= {peer for peer in server._peers if peer.startswith("tcp://127.0.0.1:")}
