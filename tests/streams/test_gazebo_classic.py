"""The stream of Gazebo Classic: a recorded session of a real gzserver, and a real one where it is installed.

The recorded session is that of `tests/oracles/gazebo-classic/README.md`. Its messages are decoded by protobuf, with the
descriptors of Gazebo 11. NAVSENSE_GZSERVER is the root folder of a Debian 11 with Gazebo 11, for the real server.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import resource
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense import streams
from navsense.core.errors import MotionError, RecordingError
from navsense.core.pose import conjugate, multiply, rotate
from navsense.motion.base import LogContext
from navsense.recordings.gazebo import NumberedEncoder
from navsense.recordings.gazebo_poses import iterate_fields
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.streams import StampedState
from navsense.streams.gazebo_classic import entity_info
from navsense.streams.gazebo_classic import node as node_module
from navsense.streams.gazebo_classic import publisher as publisher_module
from navsense.streams.gazebo_classic import subscriber as subscriber_module
from navsense.streams.gazebo_classic.link_pose import LinkPose
from navsense.streams.gazebo_classic.node import ClassicSubscription, ClassicTopic
from navsense.streams.gazebo_classic.packet import (
    decode_link_data,
    decode_packet,
    decode_poses,
    decode_publish,
    decode_subscribe,
)
from tests.streams.gazebo_classic_server import (
    HOST,
    ORACLES,
    TYPES,
    GazeboServer,
    GazeboSubscription,
    frame,
    load_session,
    packet,
    read_frame,
    split_frames,
)
from tests.streams.network_namespace import network_namespace

POSES, LINK, IMU = "/gazebo/field/pose/info", "/gazebo/field/robot::base", "/gazebo/field/robot/base/imu/imu"
RESPONSE = "/gazebo/field/response"
FRAME = streams.DrivenFrame("robot::base", LogContext(model="robot"))

WORLD = """\
<sdf version="1.12">
  <world name="field">
    <model name="robot">
      <pose>0 0 3 0 0 0.3</pose>
      <link name="base">
        <sensor name="imu" type="imu"><update_rate>100</update_rate></sensor>
        <sensor name="mag" type="magnetometer"><update_rate>50</update_rate></sensor>
        <sensor name="alt" type="altimeter"><update_rate>20</update_rate></sensor>
      </link>
    </model>
  </world>
</sdf>
"""
TOPIC = "/world/field/model/robot/link/base/sensor"

pytestmark = [pytest.mark.timeout(120)]
motion = pytest.mark.requirement("LIV-4", "LIV-7")


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    before = set(threading.enumerate())
    with network_namespace():
        yield
    until = time.monotonic() + 10.0
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


class Session:
    """The recorded session: the bytes of each connection in order, and its messages."""

    def __init__(self) -> None:
        self.chunks = load_session()
        data = {topic: b"".join(one.data for one in self.chunks if one.topic == topic) for topic in ("", *TOPICS)}
        self.frames = {topic: split_frames(data[topic]) for topic in data}
        self.publishers = TYPES["Publishers"].FromString(TYPES["Packet"].FromString(self.frames[""][2]).serialized_data)
        self.topics = {publish.topic: publish.msg_type for publish in self.publishers.publisher}
        self.link_data = [TYPES["LinkData"].FromString(one) for one in self.frames[LINK]]
        self.poses = [TYPES["PosesStamped"].FromString(one) for one in self.frames[POSES]]
        self.imu = [TYPES["IMU"].FromString(one) for one in self.frames[IMU]]

    def count_states(self) -> int:
        """Return the number of `LinkData` after the first pose, which starts the states."""
        first = stamp_of(self.poses[0].time)
        return sum(stamp_of(one.time) > first for one in self.link_data)

    def get_info(self) -> Any:
        """Return the answer to the request for the model."""
        return TYPES["Response"].FromString(self.frames[RESPONSE][0])

    def play(self, server: GazeboServer, topics: tuple[str, ...] = (LINK, POSES)) -> None:
        """Send the recorded bytes."""
        for topic in topics:
            server.wait(lambda topic=topic: bool(server.connections.get(topic)))  # type: ignore[misc]
        for chunk in self.chunks:
            if chunk.topic in topics:
                server.send(chunk.topic, chunk.data)


TOPICS = (POSES, LINK, IMU, RESPONSE)


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


@pytest.fixture
def server(session: Session) -> Iterator[GazeboServer]:
    server = GazeboServer(session.topics)
    server.answers["entity_info", "robot"] = session.get_info()
    yield server
    server.close()


def stamp_of(message: Any) -> int:
    """Return a time in ns."""
    return int(message.sec) * 10**9 + int(message.nsec)


def vector(message: Any) -> tuple[float, float, float]:
    return (message.x, message.y, message.z)


def pose_of(message: Any) -> ns.Pose:
    q = message.orientation
    return ns.Pose(vector(message.position), (q.w, q.x, q.y, q.z))


def receive(subscriber: streams.Subscriber, count: int) -> list[StampedState]:
    """Return the next states."""
    states: list[StampedState] = []
    until = time.monotonic() + 20.0
    while len(states) < count and time.monotonic() < until:
        states += subscriber.receive(0.2)
    assert len(states) >= count
    return states


def wait_until(is_done: Callable[[], bool]) -> None:
    """Wait for a condition."""
    until = time.monotonic() + 20.0
    while not is_done():
        assert time.monotonic() < until
        time.sleep(0.005)


def wait_for_error(subscriber: streams.Subscriber) -> str:
    """Return the error that ends the states."""
    try:
        for _ in range(100):
            subscriber.receive(0.2)
    except MotionError as error:
        return str(error)
    return "no error"


def open_motion(server: GazeboServer, query: str = "") -> streams.Subscriber:
    return streams.open_subscriber(f"gazebo://{HOST}:{server.port}{query}", FRAME)


def distance(a: ns.Pose, b: ns.Pose) -> tuple[float, float]:
    """Return the distance (m) and the angle (rad) between two poses."""
    turn = multiply(conjugate(a.rotation), b.rotation)
    return math.dist(a.position, b.position), 2.0 * math.hypot(*turn[1:])


@motion
def test_each_physics_step_is_a_state(session: Session, server: GazeboServer) -> None:
    """The velocities are those of Gazebo, the poses too: between two poses of Gazebo, 17 steps are integrated."""
    with open_motion(server, "?model=robot&link=base") as subscriber:
        session.play(server)
        # The first pose of Gazebo starts the states.
        first = stamp_of(session.poses[0].time)
        expected = [one for one in session.link_data if stamp_of(one.time) > first]
        states = receive(subscriber, len(expected))
    assert [one.stamp for one in states] == [stamp_of(one.time) for one in expected]
    assert set(np.diff([one.stamp for one in states])) == {1_000_000}
    for state, link_data in zip((one.state for one in states), expected, strict=True):
        assert state.velocity == vector(link_data.linear_velocity)
        assert state.angular_velocity == vector(link_data.angular_velocity)
        assert (state.frame, state.acceleration) == ("world", None)
    poses = {one.stamp: one.state.pose for one in states}
    errors = []
    for message in session.poses[1:]:
        by_name = {one.name: pose_of(one) for one in message.pose}
        if (stamp := stamp_of(message.time)) in poses:
            errors.append(distance(poses[stamp], by_name["robot"] @ by_name["robot::base"]))
    assert len(errors) > 50
    # The rounding of Gazebo's own poses: 2^-44 m at a height of 300 m, and some of 2^-52.
    assert np.max(errors, axis=0)[0] < 2.0**-42
    assert np.max(errors, axis=0)[1] < 1e-14


@motion
def test_gyro_of_the_states_is_that_of_gazebo(session: Session, server: GazeboServer) -> None:
    """Gazebo's IMU rotates the same angular velocity. Its attitude is that of the step or of one up to 2 ms away.

    The step of the message itself gives up to 1e-5 rad/s.
    """
    with open_motion(server) as subscriber:
        session.play(server)
        states = {one.stamp: one.state for one in receive(subscriber, session.count_states())}
    differences = []
    for message in session.imu:
        stamp = stamp_of(message.stamp)
        near = [states[time_] for step in range(-2, 3) if (time_ := stamp + step * 1_000_000) in states]
        if stamp in states and len(near) == 5:
            omega, measured = states[stamp].angular_velocity, vector(message.angular_velocity)
            assert omega is not None
            differences.append(min(math.dist(rotate(conjugate(one.pose.rotation), omega), measured) for one in near))
    assert len(differences) > 90
    assert max(differences) < 1e-13


@motion
def test_without_an_answer_the_centre_of_mass_is_not_known(
    session: Session, server: GazeboServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(entity_info, "ANSWER_TIMEOUT", 0.1)
    server.answers.clear()
    with open_motion(server) as subscriber:
        session.play(server)
        receive(subscriber, session.count_states())
    assert "Gazebo does not answer; its centre of mass is not known" in caplog.text


@motion
def test_without_centre_of_mass_the_position_is_corrected_smoothly(session: Session) -> None:
    """The error of one step is w^2 c h^2 / 2, about 1.4e-7 m. No correction moves the link by much more in a step."""
    poses = {
        stamp_of(message.time): next(pose_of(one) for one in message.pose if one.name == "robot")
        @ next(pose_of(one) for one in message.pose if one.name == "robot::base")
        for message in session.poses
    }
    first = min(poses)
    link = LinkPose(first, poses[first].position, poses[first].rotation)
    jumps = []
    for message in session.link_data:
        if (stamp := stamp_of(message.time)) > first:
            before, velocity = link.position, vector(message.linear_velocity)
            link.step(stamp, velocity, vector(message.angular_velocity))
            jumps.append(math.dist(link.position, np.add(before, np.multiply(1e-3, velocity))))
            if stamp in poses:
                link.correct(stamp, poses[stamp].position, poses[stamp].rotation)
    assert 1e-6 < link.largest_error.distance < 5e-6
    assert link.largest_error.angle < 1e-14
    assert 1e-7 < max(jumps) < 3e-7


@motion
def test_changed_bytes_are_errors_of_values(session: Session) -> None:
    """No message ends the thread of the node by another exception."""
    random = np.random.default_rng(1)
    names = frozenset((b"robot", b"robot::base"))
    decoders: list[tuple[Callable[[bytes], object], bytes]] = [
        (decode_link_data, session.frames[LINK][0]),
        (lambda data: decode_poses(data, names), session.frames[POSES][0]),
        (decode_packet, session.frames[""][2]),
        (decode_publish, session.publishers.publisher[0].SerializeToString()),
        (decode_subscribe, TYPES["Subscribe"](topic="a", host="b", port=1, msg_type="c").SerializeToString()),
    ]
    failures = 0
    for decode, message in decoders:
        for _ in range(400):
            data = bytearray(message)
            for index in random.integers(len(data), size=random.integers(1, 4)):
                data[index] = random.integers(256)
            try:
                decode(bytes(data[: random.integers(1, len(data) + 1)]))
            except ValueError:
                failures += 1
    assert failures > 500


@motion
def test_vectors_of_old_versions_are_read() -> None:
    """`Vector3d` has the numbers 2 to 4 in `vector3d.proto` of old versions of Gazebo."""
    time_, name = b"\x0a\x04\x08\x01\x10\x02", b"\x12\x01r"
    old = b"".join(bytes([tag]) + struct.pack("<d", value) for tag, value in ((17, 1.0), (25, 2.0), (33, 3.0)))
    data = time_ + name + b"\x1a\x1b" + old + b"\x22\x1b" + old
    assert decode_link_data(data) == (1_000_000_002, (1.0, 2.0, 3.0), (1.0, 2.0, 3.0))


@motion
@pytest.mark.parametrize("query", ["?type=gazebo.msgs.PosesStamped", ""])
def test_poses_alone_are_states_without_velocity(
    query: str,
    session: Session,
    server: GazeboServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A link without an IMU has no `LinkData`: after a time, a note says that its poses alone are used."""
    monkeypatch.setattr(subscriber_module, "LINK_DATA_TIMEOUT", 0.0)
    if not query:
        del server.publishers[LINK]
    with open_motion(server, query) as subscriber:
        session.play(server, (POSES,))
        states = receive(subscriber, len(session.poses))
    for received, message in zip(states, session.poses, strict=True):
        by_name = {one.name: pose_of(one) for one in message.pose}
        assert received.stamp == stamp_of(message.time)
        assert received.state == ns.State(by_name["robot"] @ by_name["robot::base"])
    assert ("so its poses alone are used" in caplog.text) == (not query)


@motion
def test_link_at_rest_starts_at_the_pose_of_the_answer(session: Session, server: GazeboServer) -> None:
    """Gazebo sends no poses of a model at rest."""
    with open_motion(server) as subscriber:
        server.wait(lambda: bool(server.connections.get(LINK)))
        zero = TYPES["Vector3d"](x=0, y=0, z=0)
        for i in range(600):
            time_ = TYPES["Time"](sec=2, nsec=i * 1_000_000)
            message = TYPES["LinkData"](time=time_, name="robot::base", linear_velocity=zero, angular_velocity=zero)
            server.send(LINK, frame(message.SerializeToString()))
        states = receive(subscriber, 500)
    assert {one.state.pose for one in states} == {states[0].state.pose}
    assert distance(states[0].state.pose, read_answer(session)) < (1e-12, 1e-12)


def read_answer(session: Session) -> ns.Pose:
    """Return the pose of the link in the answer, by the field numbers of `model.proto` and `link.proto`."""
    model = dict_of(session.get_info().serialized_data)
    link = next(one for one in map(dict_of, model[6]) if one[2] == [b"robot::base"])
    pose, own_pose = (pose_of(TYPES["Pose"].FromString(one)) for one in (model[4][0], link[9][0]))
    return pose @ own_pose


def dict_of(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message by number."""
    fields: dict[int, list[Any]] = {}
    for tag, value in iterate_fields(data):
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def edit(message: Any, **values: float) -> bytes:
    """Return a frame with a message in which numbers are replaced: `angular_velocity__x`."""
    copy = type(message)()
    copy.CopyFrom(message)
    for path, value in values.items():
        target = copy
        *parents, name = path.split("__")
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, name, value)
    return frame(copy.SerializeToString())


def play_edited(session: Session, server: GazeboServer, change: Callable[[int, Any], list[bytes]]) -> None:
    """Send the first pose, then 300 `LinkData`, each replaced by others."""
    server.wait(lambda: bool(server.connections.get(LINK)) and bool(server.connections.get(POSES)))
    first = stamp_of(session.poses[0].time)
    server.send(POSES, frame(session.frames[POSES][0]))
    after = [one for one in session.link_data if stamp_of(one.time) >= first][:300]
    time.sleep(0.1)
    for i, message in enumerate(after):
        for data in change(i, message):
            server.send(LINK, data)


@motion
@pytest.mark.parametrize(
    ("change", "count", "text"),
    [
        pytest.param(
            lambda i, one: [edit(one, **({"angular_velocity__x": math.nan} if i in (50, 51) else {}))],
            297,
            "of topic /gazebo/field/robot::base sent angular velocity (nan,",
            id="nan",
        ),
        pytest.param(
            lambda i, one: [edit(one, **({"linear_velocity__y": 1e30} if i == 50 else {}))],
            298,
            "sent velocities (",
            id="large",
        ),
        pytest.param(
            lambda i, one: [frame(b"\x0a\x50" if i == 50 else one.SerializeToString())],
            298,
            "sent a field is truncated; the message is ignored",
            id="truncated",
        ),
        pytest.param(
            lambda i, one: [frame(one.time.SerializeToString() if i == 50 else one.SerializeToString())],
            298,
            "sent a message without a time",
            id="other type",
        ),
        pytest.param(
            lambda i, one: [] if 50 <= i < 60 else [edit(one)],
            289,
            "link robot::base: 10 physics steps missing before",
            id="missing",
        ),
        pytest.param(lambda i, one: [edit(one)] * 2, 299, "messages with the stamp of the one before", id="twice"),
    ],
)
def test_invalid_messages_are_warned_about_once(
    change: Callable[[int, Any], list[bytes]],
    count: int,
    text: str,
    session: Session,
    server: GazeboServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with open_motion(server) as subscriber:
        play_edited(session, server, change)
        states = receive(subscriber, count)
        assert subscriber.receive(0.1) == []
    assert len(states) == count
    assert caplog.text.count(text) == 1


@motion
def test_clock_that_jumps_back_starts_again(
    session: Session, server: GazeboServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Gazebo sets the time to 0 at a reset of the world."""
    with open_motion(server) as subscriber:
        session.play(server)
        before = receive(subscriber, session.count_states())
        server.send(LINK, frame(session.frames[LINK][0]))
        time.sleep(0.1)
        session.play(server)
        after = receive(subscriber, 900)
    assert after[0].stamp < before[-1].stamp
    assert "the clock jumps back by 1" in caplog.text or "the clock jumps back by 0.9" in caplog.text
    poses = {one.stamp: one.state.pose for one in before}
    assert max(distance(poses[one.stamp], one.state.pose) for one in after if one.stamp in poses) < (1e-12, 1e-12)


@motion
def test_pose_of_the_time_before_a_jump_does_not_start_the_new_time(session: Session, server: GazeboServer) -> None:
    """A pose that still waits for its step when the clock jumps back belongs to the time before."""
    early = TYPES["PosesStamped"]()
    early.CopyFrom(session.poses[20])
    next(one for one in early.pose if one.name == "robot").position.z += 5.0
    stamp = stamp_of(early.time)
    first = stamp_of(session.poses[0].time)
    steps = [one for one in session.link_data if first <= stamp_of(one.time)]
    before = [one for one in steps if stamp_of(one.time) < stamp]
    with open_motion(server) as subscriber:
        assert isinstance(subscriber, subscriber_module.GazeboClassicSubscriber)
        server.wait(lambda: bool(server.connections.get(LINK)) and bool(server.connections.get(POSES)))
        server.send(POSES, frame(session.frames[POSES][0]))
        wait_until(lambda: first in subscriber._poses)
        server.send(LINK, b"".join(frame(one.SerializeToString()) for one in before))
        states = receive(subscriber, len(before) - 1)
        server.send(POSES, frame(early.SerializeToString()))
        wait_until(lambda: stamp in subscriber._poses)
        server.send(LINK, b"".join(frame(one.SerializeToString()) for one in steps[: len(before) + 10]))
        wait_until(lambda: len(subscriber._link_data) == len(before) + 10)
        server.send(POSES, frame(session.frames[POSES][19]))
        after = receive(subscriber, 1)
    expected = {one.stamp: one.state.pose for one in states}
    assert after[0].stamp in expected
    assert distance(after[0].state.pose, expected[after[0].stamp]) < (1e-12, 1e-12)


@motion
def test_orientation_of_zero_and_jump_of_the_link(
    session: Session, server: GazeboServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A pose that Gazebo sets by hand is taken over at once."""
    message = TYPES["PosesStamped"]()
    message.CopyFrom(session.poses[4])
    next(one for one in message.pose if one.name == "robot").position.z += 5.0
    stamp = stamp_of(message.time)
    broken = TYPES["PosesStamped"]()
    broken.CopyFrom(session.poses[3])
    q = next(one for one in broken.pose if one.name == "robot").orientation
    q.w = q.x = q.y = q.z = 0.0
    with open_motion(server) as subscriber:
        play_edited(session, server, lambda i, one: [edit(one)] if stamp_of(one.time) <= stamp else [])
        states = receive(subscriber, 10)
        while states[-1].stamp < stamp:
            states += subscriber.receive(0.2)
        for poses in (broken, broken, message):
            server.send(POSES, frame(poses.SerializeToString()))
        time.sleep(0.3)
        last = next(one for one in session.link_data if stamp_of(one.time) == stamp + 1_000_000)
        server.send(LINK, frame(last.SerializeToString()))
        (after,) = receive(subscriber, 1)
    assert caplog.text.count("sent an orientation of length 0; the message is ignored") == 1
    assert "the pose jumps at" in caplog.text
    assert after.state.pose.position[2] - states[-1].state.pose.position[2] == pytest.approx(5.0, abs=0.03)


@motion
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "sent b'GET / HT' instead of the size of a frame"),
        (b"ffffffff", "sent a frame of 4294967295 bytes"),
        (b"00000010abc", "has disconnected within a frame"),
        (b"", "has disconnected"),
    ],
)
def test_broken_connection_of_the_publisher_ends_the_states(
    data: bytes, problem: str, session: Session, server: GazeboServer
) -> None:
    with open_motion(server) as subscriber:
        play_edited(session, server, lambda i, one: [edit(one)])
        server.send(LINK, data)
        server.disconnect(LINK)
        error = wait_for_error(subscriber)
    assert f"link robot::base: the publisher {HOST}:{server.peer_port} of topic {LINK} {problem}" in error


@motion
def test_lost_master_ends_the_states(server: GazeboServer) -> None:
    with open_motion(server) as subscriber:
        for node in list(server.nodes):
            node.shutdown(socket.SHUT_RDWR)
        assert "link robot::base: the master has closed the connection" in wait_for_error(subscriber)


@motion
def test_publisher_of_another_type_is_an_error(server: GazeboServer) -> None:
    server.publishers[LINK].msg_type = "gazebo.msgs.Pose"
    with open_motion(server) as subscriber:
        assert f"of topic {LINK} sends gazebo.msgs.Pose, not gazebo.msgs.LinkData" in wait_for_error(subscriber)


@motion
def test_second_publisher_is_ignored(session: Session, server: GazeboServer, caplog: pytest.LogCaptureFixture) -> None:
    with open_motion(server) as subscriber:
        server.wait(lambda: bool(server.connections.get(LINK)))
        other = TYPES["Publish"](topic=LINK, msg_type="gazebo.msgs.LinkData", host=HOST, port=9)
        server.send_to_nodes("publisher_advertise", other)
        server.send_to_nodes("publisher_advertise", other)
        session.play(server)
        receive(subscriber, 950)
    text = f"publisher {HOST}:9 of topic {LINK} is ignored: {HOST}:{server.peer_port} publishes the topic too"
    assert caplog.text.count(text) == 1


@contextlib.contextmanager
def address_without_answer() -> Iterator[int]:
    """Yield a port at which the system completes no connection: the backlog of its socket is full."""
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(3):
            peer = opened.enter_context(socket.socket())
            peer.setblocking(False)
            peer.connect_ex((HOST, port))
        yield port


@motion
def test_peer_that_does_not_answer_delays_no_other_topic(
    session: Session, server: GazeboServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node connects without blocking. A timeout of 60 s would exceed the deadline of the states."""
    monkeypatch.setattr(node_module, "PEER_TIMEOUT", 60.0)
    with address_without_answer() as port, open_motion(server) as subscriber:
        assert isinstance(subscriber, subscriber_module.GazeboClassicSubscriber)
        lost: list[str] = []
        subscriber._node.subscribe(ClassicSubscription("/silent", "gazebo.msgs.IMU", lambda _: None, lost.append))
        publisher = TYPES["Publish"](topic="/silent", msg_type="gazebo.msgs.IMU", host=HOST, port=port)
        server.send_to_nodes("publisher_advertise", publisher)
        session.play(server)
        receive(subscriber, session.count_states())
        assert lost == []


@motion
def test_name_of_a_host_is_looked_up_outside_the_thread_of_the_node(
    session: Session, server: GazeboServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The addresses are tried in turn: nothing listens at the first one."""
    is_released, look_up = threading.Event(), socket.getaddrinfo

    def find(host: str, port: int, *arguments: int, **options: int) -> list[Any]:
        if host != "simulator":
            return look_up(host, port, *arguments, **options)
        if options["flags"] & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no number")
        assert is_released.wait(20.0)
        with socket.create_server((HOST, 0)) as unused:
            free = unused.getsockname()[1]
        return look_up(HOST, free, **options) + look_up(HOST, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)
    monkeypatch.setattr(node_module, "PEER_TIMEOUT", 60.0)
    server.publishers[POSES].host = "simulator"
    with open_motion(server) as subscriber:
        assert isinstance(subscriber, subscriber_module.GazeboClassicSubscriber)
        server.wait(lambda: bool(server.connections.get(LINK)))
        session.play(server, (LINK,))
        until = time.monotonic() + 20.0
        while len(subscriber._link_data) < len(session.link_data) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(subscriber._link_data) == len(session.link_data)
        is_released.set()
        server.wait(lambda: bool(server.connections.get(POSES)))
        session.play(server, (POSES,))
        receive(subscriber, session.count_states())


@motion
@pytest.mark.parametrize(
    ("host", "port", "problem"),
    [
        (HOST, 0, "its port 0 is not a number from 1 to 65535"),
        (HOST, 1, "connection refused"),
        ("simulator.invalid", 1, ""),
        ("a" * 300, 1, ""),
    ],
)
def test_publisher_that_cannot_be_reached_ends_the_states(
    host: str, port: int, problem: str, server: GazeboServer
) -> None:
    server.publishers[LINK].host, server.publishers[LINK].port = host, port
    with open_motion(server) as subscriber:
        error = wait_for_error(subscriber)
    assert f"link robot::base: the publisher {host}:{port} of topic {LINK} does not answer: {problem}" in error


@motion
def test_publisher_without_an_answer_ends_the_states(server: GazeboServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "PEER_TIMEOUT", 0.1)
    with address_without_answer() as port:
        server.publishers[LINK].port = port
        with open_motion(server) as subscriber:
            assert "does not answer: no answer within 0.1 s" in wait_for_error(subscriber)


@motion
def test_failed_thread_of_the_node_ends_the_states_and_is_logged(
    session: Session, server: GazeboServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`close` still logs what was not exact."""
    with open_motion(server) as subscriber:
        assert isinstance(subscriber, subscriber_module.GazeboClassicSubscriber)
        subscriber._node.advertise([topic := ClassicTopic("/slow", "gazebo.msgs.IMU", dropped=3)])
        monkeypatch.setattr(subscriber, "put", None)
        session.play(server)
        assert "the connections have ended: TypeError" in wait_for_error(subscriber)
        subscriber._node._thread.join(20.0)
    assert "the thread of the node has failed" in caplog.text
    assert f"topic {topic.name}: 3 messages dropped for slow subscribers" in caplog.text


@motion
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?frame=base", "option of the URL: frame; must be one of topic, type, model, link"),
        ("?type=gazebo.msgs.Pose", "option type: gazebo.msgs.Pose; must be gazebo.msgs.LinkData or"),
        ("?link=", "option link: is empty"),
        ("?link=hand", "link in Gazebo: robot::hand; must be one of robot::base, robot::arm"),
        ("?model=nobody", "model in Gazebo: nobody; must be one of "),
        ("?topic=~/poses", f"topic of the poses: ~/poses; must be one of {POSES}, /gazebo/field/pose/local/info"),
        ("?link=arm&type=gazebo.msgs.LinkData", f"topic of the link: /gazebo/field/robot::arm; must be one of {LINK}"),
        ("/path", "path of the URL: /path; must be empty"),
    ],
)
def test_invalid_urls_of_a_motion(
    query: str, problem: str, server: GazeboServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber_module, "NAMESPACE_TIMEOUT", 0.1)
    monkeypatch.setattr(entity_info, "ANSWER_TIMEOUT", 0.5)
    server.answers["entity_info", "nobody"] = TYPES["Response"](
        id=1, request="entity_info", response="nonexistent", type="error"
    )
    with pytest.raises(MotionError) as error:
        open_motion(server, query)
    assert str(error.value).startswith(f"gazebo://{HOST}:{server.port}")
    assert problem in str(error.value)


@motion
def test_server_that_still_loads_its_world(server: GazeboServer, session: Session) -> None:
    publisher = server.publishers.pop(POSES)
    server.namespaces = []
    opened: list[streams.Subscriber] = []

    def add_world() -> None:
        server.wait(lambda: bool(server.nodes))
        time.sleep(0.2)
        server.publishers[POSES] = publisher
        server.send_to_nodes("topic_namespace_add", TYPES["GzString"](data="field"))
        server.send_to_nodes("publisher_add", publisher)

    thread = threading.Thread(target=add_world)
    thread.start()
    opened.append(open_motion(server))
    thread.join()
    session.play(server)
    with opened[0]:
        receive(opened[0], 950)


@pytest.mark.requirement("LIV-4")
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "does not answer: connection refused; start it: gzserver WORLD"),
        (b"", "has not sent its version and its topics within 0.3 s"),
        (b"HTTP/1.1 400 Bad Request", "is no master of Gazebo Classic: it sent b'HTTP/1.1' instead of the size"),
        (frame(b"\x08\x01"), "is no master of Gazebo Classic: it sent a packet without a type or content"),
    ],
)
def test_program_that_is_no_master(
    answer: bytes | None, problem: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "CONNECT_TIMEOUT", 0.3)
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        threads: list[threading.Thread] = []
        held: list[socket.socket] = []

        def serve() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                connection.sendall(3 * answer if answer else b"")
                held.append(connection)

        if answer is None:
            listener.close()
        else:
            threads.append(threading.Thread(target=serve))
            threads[0].start()
        for open_stream in (
            lambda: streams.open_subscriber(f"gazebo://{HOST}:{port}", FRAME),
            lambda: streams.open_publisher(f"gazebo://{HOST}:{port}", make_recorded_run(run.session)),
        ):
            with pytest.raises(ns.NavsenseError) as error:
                open_stream()
            assert f"master of Gazebo Classic: {HOST}:{port}; {problem}" in str(error.value)
        for thread in threads:
            thread.join()
        for connection in held:
            connection.close()


@motion
@pytest.mark.parametrize("version", ["gazebo 9.19", "ignition 6"])
def test_master_of_another_version(version: str, session: Session) -> None:
    """The protocol did not change from Gazebo 2 on. The version is logged."""
    server = GazeboServer(session.topics, version)
    server.answers["entity_info", "robot"] = session.get_info()
    try:
        if version.startswith("gazebo"):
            with open_motion(server) as subscriber:
                session.play(server)
                receive(subscriber, 950)
        else:
            with pytest.raises(MotionError, match="it sent the version ignition 6"):
                open_motion(server)
    finally:
        server.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ns.World:
    path = tmp_path_factory.mktemp("field") / "field.sdf"
    path.write_text(WORLD, encoding="utf-8")
    return ns.load(path)


@pytest.fixture(scope="module")
def run(world: ns.World) -> Run:
    return ns.simulate(world, 2.0, seed=3, epoch=1000)


def publish(
    server: GazeboServer, run: Run, kinds: dict[str, str], query: str = ""
) -> tuple[streams.Publisher, dict[str, list[bytes]]]:
    """Publish a run to subscribers of topics; return the closed publisher and the messages of each topic."""
    publisher = streams.open_publisher(f"gazebo://{HOST}:{server.port}?wait=0{query}", make_recorded_run(run.session))
    server.wait(lambda: all(f"{TOPIC}/{kind}" in server.publishers for kind in kinds))
    subscriptions = {kind: GazeboSubscription(server.publishers[f"{TOPIC}/{kind}"]) for kind in kinds}
    until = time.monotonic() + 10.0
    while publisher.subscriber_count < len(kinds) and time.monotonic() < until:
        time.sleep(0.01)
    received: dict[str, list[bytes]] = {kind: [] for kind in kinds}

    def read(kind: str) -> None:
        while (data := read_frame(subscriptions[kind].connection)) is not None:
            received[kind].append(data)
        subscriptions[kind].connection.close()

    threads = [threading.Thread(target=read, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for time_slice in run.slices():
        publisher.write(time_slice)
    publisher.close()
    for thread in threads:
        thread.join(20.0)
    return publisher, received


@pytest.mark.requirement("LIV-4", "MAG-5", "ALT-4")
@pytest.mark.compiled
def test_published_messages_are_those_of_gazebo_11(server: GazeboServer, run: Run) -> None:
    kinds = {"imu/imu": "IMU", "mag/magnetometer": "Magnetometer", "alt/altimeter": "Altimeter"}
    _, received = publish(server, run, kinds)
    imu, mag, alt = ([TYPES[kind].FromString(data) for data in received[topic]] for topic, kind in kinds.items())
    assert [len(imu), len(mag), len(alt)] == [200, 100, 40]
    readings = [run[name] for name in ("imu", "mag", "alt")]
    assert [stamp_of(one.stamp) for one in imu] == readings[0].stamp.tolist()
    assert [stamp_of(one.time) for one in mag] == readings[1].stamp.tolist()
    assert {one.entity_name for one in imu} == {"robot::base::imu"}
    assert [vector(one.angular_velocity) for one in imu] == [*map(tuple, readings[0]["angular_velocity"].tolist())]
    assert [vector(one.linear_acceleration) for one in imu] == [
        *map(tuple, readings[0]["linear_acceleration"].tolist())
    ]
    q = readings[0]["orientation"].tolist()
    assert [(one.orientation.w, *vector(one.orientation)) for one in imu] == [*map(tuple, q)]
    assert [vector(one.field_tesla) for one in mag] == [*map(tuple, readings[1]["field"].tolist())]
    for name in ("vertical_position", "vertical_velocity", "vertical_reference"):
        assert [getattr(one, name) for one in alt] == readings[2][name].tolist()
    # The topics have ended at the master.
    server.wait(lambda: not any(topic.startswith("/world") for topic in server.publishers))


@pytest.mark.requirement("LIV-4", "MAG-5", "ALT-4")
@pytest.mark.compiled
def test_published_messages_of_the_design_documents(server: GazeboServer, run: Run, tmp_path: Path) -> None:
    """The bytes are those of the `.gazebo.mcap` recording."""
    from mcap.reader import make_reader

    kinds = {"mag/magnetometer": "Magnetometer", "alt/altimeter": "Altimeter"}
    _, received = publish(server, run, kinds, "&messages=document")
    run.save(tmp_path / "run.gazebo.mcap")
    with (tmp_path / "run.gazebo.mcap").open("rb") as file:
        recorded: dict[str, list[bytes]] = {}
        for _, channel, message in make_reader(file).iter_messages():
            recorded.setdefault(channel.topic, []).append(message.data)
    assert {f"{TOPIC}/{kind}": messages for kind, messages in received.items()} == recorded
    assert len(received["mag/magnetometer"]) == 100


@pytest.mark.requirement("LIV-4", "LIV-8")
@pytest.mark.compiled
def test_topic_without_subscribers_is_not_encoded(
    server: GazeboServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = []

    class Encoder(NumberedEncoder):
        def encode(self, reading: Any) -> Any:
            encoded.append(reading.name)
            return super().encode(reading)

    monkeypatch.setattr(publisher_module, "NumberedEncoder", Encoder)
    publish(server, run, {"alt/altimeter": "Altimeter"})
    assert set(encoded) == {"robot::base::alt"}


@pytest.mark.requirement("LIV-4")
@pytest.mark.compiled
def test_slow_subscriber_loses_its_oldest_messages(
    server: GazeboServer, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "MAX_QUEUE_BYTES", 20_000)
    monkeypatch.setattr(node_module, "STALL_TIMEOUT", 0.2)
    publisher = streams.open_publisher(f"gazebo://{HOST}:{server.port}?wait=0", make_recorded_run(run.session))
    topic = f"{TOPIC}/imu/imu"
    server.wait(lambda: topic in server.publishers)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    publish_message = server.publishers[topic]
    slow.connect((HOST, publish_message.port))
    with slow, caplog.at_level(logging.INFO):
        subscribe = TYPES["Subscribe"](topic=topic, host=HOST, port=1, msg_type="gazebo.msgs.IMU")
        slow.sendall(packet("sub", subscribe))
        while not publisher.subscriber_count:
            time.sleep(0.01)
        began = time.monotonic()
        for _ in range(200):
            for time_slice in run.slices():
                publisher.write(time_slice)
        assert time.monotonic() - began < 20.0
        publisher.close()
    assert caplog.text.count("is too slow; its oldest messages are dropped") == 1
    assert f"topic {topic}: " in caplog.text
    assert "messages dropped for slow subscribers" in caplog.text


@contextlib.contextmanager
def no_free_files() -> Iterator[None]:
    """Limit the files of this process to those that are open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as opened:
        used = [opened.enter_context(socket.socket()) for _ in range(16)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used[-1].fileno() + 1, limits[1]))
        try:
            with contextlib.suppress(OSError):
                while True:  # numbers of files that were closed in between
                    opened.enter_context(socket.socket())
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.requirement("LIV-4")
def test_node_without_files_does_not_spin(
    server: GazeboServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The system has no file for another connection: the next attempt comes after a pause, and may succeed then."""
    attempts, accept = [], socket.socket.accept

    def count(listener: socket.socket) -> tuple[socket.socket, Any]:
        attempts.append(listener)
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", count)
    monkeypatch.setattr(node_module, "ACCEPT_PAUSE", 1e6)
    node = node_module.ClassicNode((HOST, server.port), HOST, name="gazebo://")
    client = socket.socket()
    try:
        with no_free_files():
            client.connect((HOST, node.port))
            while "too many open files" not in caplog.text:
                time.sleep(0.01)
            for _ in range(50):  # turns of the thread of the node
                node._wake()
                time.sleep(0.001)
            assert attempts.count(node._listener) == 1
        node._accept_time = time.monotonic()
        client.sendall(b"garbage!")
        client.settimeout(20.0)
        assert client.recv(1) == b""
    finally:
        client.close()
        node.stop()
    assert caplog.text.count("connections of subscribers are not accepted: too many open files") == 1


@pytest.mark.requirement("LIV-4")
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"garbage!garbage", "is disconnected: it sent b'garbage!' instead of the size of a frame"),
        (frame(b"\x12\x02hi"), "is disconnected: it sent a packet without a type or content"),
        ("nobody", "is disconnected: it sent a request for topic nobody, which is not published here"),
        ("type", "is disconnected: it sent a request for gazebo.msgs.IMU from topic"),
        (b"0000", "has disconnected within a frame"),
        (None, "did not name a topic within 0.3 s and is disconnected"),
    ],
)
def test_invalid_subscribers_are_disconnected(
    data: bytes | str | None,
    text: str,
    server: GazeboServer,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(node_module, "PEER_TIMEOUT", 0.3)
    topic = f"{TOPIC}/alt/altimeter"
    with streams.open_publisher(f"gazebo://{HOST}:{server.port}?wait=0", make_recorded_run(run.session)):
        server.wait(lambda: topic in server.publishers)
        publish_message = server.publishers[topic]
        if data == "nobody":
            publish_message = TYPES["Publish"](
                topic="nobody", msg_type="x", host=HOST, port=server.publishers[topic].port
            )
        if isinstance(data, str):
            peer = GazeboSubscription(publish_message, "gazebo.msgs.IMU").connection
        else:
            peer = socket.create_connection((HOST, publish_message.port))
            peer.sendall(data or b"")
            if data == b"0000":
                peer.shutdown(socket.SHUT_WR)
        with peer:
            peer.settimeout(20.0)
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(10) == b""
    assert f"{HOST}:{peer_port(text, caplog)}" in caplog.text
    assert text in caplog.text


def peer_port(text: str, caplog: pytest.LogCaptureFixture) -> str:
    """Return the port of the peer in the warning with a text."""
    line = next(one for one in caplog.messages if text in one)
    return line.partition(f"subscriber {HOST}:")[2].split()[0]


@pytest.mark.requirement("LIV-4")
@pytest.mark.compiled
def test_topic_of_another_type_is_an_error(server: GazeboServer, run: Run) -> None:
    """A gzserver would end with an exception."""
    topic = f"{TOPIC}/mag/magnetometer"
    server.publishers[topic] = TYPES["Publish"](topic=topic, msg_type="gazebo.msgs.Pose", host=HOST, port=9)
    with pytest.raises(RecordingError, match=f"topic {topic} of type gazebo.msgs.Magnetometer; is published at"):
        streams.open_publisher(f"gazebo://{HOST}:{server.port}?wait=0", make_recorded_run(run.session))


@pytest.mark.requirement("LIV-4")
@pytest.mark.compiled
def test_lost_master_ends_the_run(server: GazeboServer, run: Run) -> None:
    publisher = streams.open_publisher(f"gazebo://{HOST}:{server.port}?wait=0", make_recorded_run(run.session))
    server.wait(lambda: bool(server.nodes))
    server.nodes[0].shutdown(socket.SHUT_RDWR)
    with pytest.raises(RecordingError, match="the master has closed the connection"):  # noqa: PT012
        for _ in range(200):
            publisher.write(next(run.slices()))
            time.sleep(0.01)
    publisher.abort()


@pytest.mark.requirement("LIV-4")
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?messages=gazebo12", "option messages: gazebo12; must be one of gazebo11, document"),
        ("?host=0.0.0.0", "option host: 0.0.0.0; must be an address of this machine"),
        ("?wait=x", "wait (s): x; must be a number from 0 to 1e6"),
        ("/path", "path of the URL: /path; must be empty"),
    ],
)
def test_invalid_urls_of_an_output(query: str, problem: str, world: ns.World) -> None:
    with pytest.raises(RecordingError) as error:
        streams.check_url(f"gazebo://{HOST}:1{query}", world)
    assert problem in str(error.value)


@motion
def test_integration_repeats_constant_rotation() -> None:
    """A step of ODE turns by atan(w h / 2) * 2, and its error per step is w^3 h^3 / 12."""
    pose = LinkPose(0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0))
    for i in range(1, 1001):
        # The origin moves around the centre of mass, which is at rest.
        x, y, _ = rotate(turn_of(i), (0.5, 0.0, 0.0))
        pose.step(i * 1_000_000, (3.0 * y, -3.0 * x, 0.0), (0.0, 0.0, 3.0))
    assert distance(ns.Pose(pose.position, pose.rotation), ns.Pose((0.5, 0.0, 0.0)) @ turned(1000)) < (1e-13, 1e-13)


def turn_of(step: int) -> tuple[float, float, float, float]:
    half = step * math.atan(0.0015)
    return (math.cos(half), 0.0, 0.0, math.sin(half))


def turned(step: int) -> ns.Pose:
    return ns.Pose((0.0, 0.0, 0.0), turn_of(step)) @ ns.Pose((-0.5, 0.0, 0.0))


ROOT_FOLDER = os.environ.get("NAVSENSE_GZSERVER", "")
WORLD_FILE = "root/navsense.sdf"


def command(*arguments: str) -> list[str]:
    """Return the command of a program of Gazebo on loopback."""
    variables = ("GAZEBO_IP=127.0.0.1", "IGN_IP=127.0.0.1", "GAZEBO_MASTER_URI=http://127.0.0.1:11345", "HOME=/root")
    return ["chroot", ROOT_FOLDER, "env", "GAZEBO_MODEL_DATABASE_URI=", *variables, *arguments]


@pytest.mark.requirement("LIV-4", "LIV-7", "MAG-5", "ALT-4")
@pytest.mark.compiled
@pytest.mark.skipif(
    not ROOT_FOLDER, reason="needs Gazebo 11: NAVSENSE_GZSERVER, the root folder of a Debian 11 with it"
)
def test_real_gzserver(run: Run, world: ns.World) -> None:
    """A real gzserver sends each step and equal poses, `gz topic` reads all messages, and the server stays alive."""
    Path(ROOT_FOLDER, WORLD_FILE).write_bytes((ORACLES / "world.sdf").read_bytes())
    with subprocess.Popen(
        command("gzserver", WORLD_FILE), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until = time.monotonic() + 20.0
            while True:
                try:
                    subscriber = streams.open_subscriber("gazebo://", FRAME)
                    break
                except MotionError:
                    assert time.monotonic() < until
                    time.sleep(0.2)
            with subscriber:
                states = receive(subscriber, 1500)
            assert set(np.diff([one.stamp for one in states])) == {1_000_000}
            assert isinstance(subscriber, subscriber_module.GazeboClassicSubscriber)
            assert subscriber.largest_error < (1e-12, 1e-12)
            topic = f"{TOPIC}/alt/altimeter"
            with streams.open_publisher("gazebo://?wait=10", make_recorded_run(run.session)) as publisher:
                listed = subprocess.run(
                    command("gz", "topic", "-l"), capture_output=True, text=True, check=True, timeout=30
                ).stdout
                echo = subprocess.Popen(
                    command("gz", "topic", "-e", topic, "-d", "8"),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                publisher.wait_for_subscriber()
                for time_slice in run.slices():
                    publisher.write(time_slice)
            output, _ = echo.communicate(timeout=30)
            assert topic in listed.splitlines()
            assert output.count("vertical_position") == run["alt"].time.size
            assert f"vertical_position: {run['alt']['vertical_position'][0]:g}" in output
            with streams.open_subscriber("gazebo://?type=gazebo.msgs.PosesStamped", FRAME) as subscriber:
                receive(subscriber, 20)
            assert process.poll() is None
        finally:
            process.terminate()
