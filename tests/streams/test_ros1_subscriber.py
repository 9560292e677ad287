"""The motion of ROS 1 topics: publishers from the specification, and the programs of Debian's ROS 1.

rosbags serialises the messages, so the layouts are not those of navsense.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import xmlrpc.client
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import navsense as ns
from navsense import streams
from navsense.core.errors import FieldError, MotionError, Where
from navsense.motion import CommandLimits, Drive, attach, velocity_commands
from navsense.motion.base import LogContext
from navsense.motion.driven import state_row
from navsense.motion.velocity_commands import CommandedLink
from navsense.recordings.recorded_motion import load_motion
from navsense.streams import DrivenFrame, StampedState, Subscriber
from navsense.streams import ros_stamps as stamps_module
from navsense.streams.ros1 import master as master_module
from navsense.streams.ros1 import subscriber_node as subscriber_node_module
from navsense.streams.ros1 import subscription as subscription_module
from navsense.streams.ros1.master import Master, MasterError, Registration
from navsense.streams.ros1.md5 import CLOCK_MD5, CURRENT_MD5, MOTION_MD5
from navsense.streams.ros1.node import Ros1Node, Ros1Topic
from navsense.streams.ros1.subscriber import Ros1Subscriber
from navsense.streams.ros1.subscription import Subscription
from navsense.streams.ros_messages import MOTION_TYPES
from tests.streams.network_namespace import network_namespace
from tests.streams.ros1_peers import RosMaster, RosPublisher

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(120), pytest.mark.requirement("LIV-7")]

ROOT_POSE = ns.Pose((0.1, -0.2, 0.3), (0.5, 0.5, -0.5, 0.5))
FRAME = DrivenFrame("robot::base_link", LogContext(model="robot", root=ROOT_POSE))
SECOND = 10**9

STORE = get_typestore(Stores.ROS1_NOETIC)
ENTITIES = "string[] name\ngeometry_msgs/Pose[] pose\ngeometry_msgs/Twist[] twist\n"
DEFINITIONS = {
    "gazebo_msgs/msg/ModelStates": ENTITIES,
    "gazebo_msgs/msg/LinkStates": ENTITIES,
    "tf/msg/tfMessage": "geometry_msgs/TransformStamped[] transforms\n",
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms\n",
}
for _name, _definition in DEFINITIONS.items():
    if _name not in STORE.fielddefs:
        STORE.register(get_types_from_msg(_definition, _name))
TYPES = STORE.types
ODOMETRY, POSE, STAMPED = "nav_msgs/Odometry", "geometry_msgs/Pose", "geometry_msgs/PoseStamped"
MODELS, LINKS, TF = "gazebo_msgs/ModelStates", "gazebo_msgs/LinkStates", "tf2_msgs/TFMessage"


@pytest.fixture(autouse=True)
def namespace() -> Iterator[None]:
    """Run each test in a network namespace of its own, and check that it leaves no thread."""
    before = set(threading.enumerate())
    with network_namespace():
        yield
    until = time.monotonic() + 10.0
    while (left := set(threading.enumerate()) - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


@pytest.fixture
def master() -> Iterator[RosMaster]:
    master = RosMaster()
    yield master
    master.close()


@pytest.fixture
def publish(master: RosMaster) -> Iterator[Callable[..., RosPublisher]]:
    """Return a function that starts a publisher."""
    publishers: list[RosPublisher] = []

    def start(kind: str, topic: str = "/odom", **options: Any) -> RosPublisher:
        md5 = options.pop("md5", None) or MOTION_MD5.get(kind, CLOCK_MD5)
        publishers.append(RosPublisher(master, topic, kind, md5, **options))
        return publishers[-1]

    yield start
    for publisher in publishers:
        publisher.vanish()


def subscribe(master: RosMaster, query: str = "?topic=/odom", frame: DrivenFrame = FRAME) -> Subscriber:
    return streams.open_subscriber(f"ros1://127.0.0.1:{master.port}{query}", frame)


def wait_for(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def take(subscriber: Subscriber, count: int) -> list[StampedState]:
    """Return the next states of a subscriber."""
    states: list[StampedState] = []
    until = time.monotonic() + 10.0
    while len(states) < count:
        assert time.monotonic() < until, states
        states += subscriber.receive(0.1)
    return states


def take_error(subscriber: Subscriber) -> str:
    """Return the error that ends the states of a subscriber."""
    with pytest.raises(MotionError) as error:
        take(subscriber, 1_000_000)
    return str(error.value).partition(": ")[2]


def make(name: str, *values: Any) -> Any:
    return TYPES[name](*values)


def vector(values: Any) -> Any:
    return make("geometry_msgs/msg/Vector3", *map(float, values))


def header(stamp: int, frame: str) -> Any:
    time_of = make("builtin_interfaces/msg/Time", stamp // SECOND, stamp % SECOND)
    return make("std_msgs/msg/Header", 7, time_of, frame)


def pose(values: Any) -> Any:
    """Return a pose of x y z and w x y z."""
    x, y, z, qw, qx, qy, qz = map(float, values)
    quaternion = make("geometry_msgs/msg/Quaternion", qx, qy, qz, qw)
    return make("geometry_msgs/msg/Pose", make("geometry_msgs/msg/Point", x, y, z), quaternion)


def twist(values: Any) -> Any:
    return make("geometry_msgs/msg/Twist", vector(values[:3]), vector(values[3:]))


def transform(stamp: int, values: Any, child: str = "base_link", parent: str = "odom") -> Any:
    message = pose(values)
    value = make("geometry_msgs/msg/Transform", vector(values[:3]), message.orientation)
    return make("geometry_msgs/msg/TransformStamped", header(stamp, parent), child, value)


def build(kind: str, stamp: int, values: Any, velocity: Any = (0.0,) * 6) -> bytes:
    """Return a message with a pose and a twist, which has a stamp if its type has one."""
    covariance, noise = np.zeros(36), np.arange(36.0)
    models = ["ground", "robot", "other"]
    others = [pose((9, 9, 9, 1, 0, 0, 0)), pose(values), pose((8, 8, 8, 1, 0, 0, 0))]
    twists = [twist((9.0,) * 6), twist(velocity), twist((8.0,) * 6)]
    content: dict[str, Callable[[], tuple[Any, ...]]] = {
        ODOMETRY: lambda: (
            header(stamp, "odom"),
            "base_link",
            make("geometry_msgs/msg/PoseWithCovariance", pose(values), noise),
            make("geometry_msgs/msg/TwistWithCovariance", twist(velocity), covariance),
        ),
        POSE: lambda: (pose(values).position, pose(values).orientation),
        STAMPED: lambda: (header(stamp, "map"), pose(values)),
        "geometry_msgs/PoseWithCovarianceStamped": lambda: (
            header(stamp, "map"),
            make("geometry_msgs/msg/PoseWithCovariance", pose(values), noise),
        ),
        "geometry_msgs/TransformStamped": lambda: (header(stamp, "odom"), "base_link", transform(0, values).transform),
        TF: lambda: ([transform(stamp, values), transform(stamp, (5, 5, 5, 1, 0, 0, 0), "camera", "base_link")],),
        MODELS: lambda: (models, others, twists),
        LINKS: lambda: (["ground::l", "robot::base_link", "robot::arm"], others, twists),
    }
    content["tf/tfMessage"] = content[TF]
    return encode(kind, make(kind.replace("/", "/msg/"), *content[kind]()))


def encode(kind: str, message: Any) -> bytes:
    return bytes(STORE.serialize_ros1(message, kind.replace("/", "/msg/")))


def draw(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return poses with unit quaternions and twists (count, 13)."""
    rows = np.random.default_rng(5).normal(size=(count, 13))
    rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
    return rows


QUERIES = {TF: "&frame=base_link", "tf/tfMessage": "&frame=/base_link"}


@pytest.mark.parametrize("kind", [kind for kind in MOTION_TYPES if MOTION_TYPES[kind].kind != "commands"])
def test_states_are_the_values_of_the_messages(
    master: RosMaster, publish: Callable[..., RosPublisher], kind: str
) -> None:
    """Bitwise, with the stamps of the messages, or of /clock without them."""
    has_stamp, rows = MOTION_TYPES[kind].has_stamp, draw(20)
    stamps = [3 * SECOND + 1_000_007 * index for index in range(len(rows))]
    clock = None if has_stamp else publish("rosgraph_msgs/Clock", "/clock")
    publisher = publish(kind)
    with subscribe(master, f"?topic=/odom{QUERIES.get(kind, '')}") as subscriber:
        wait_for(lambda: publisher.headers and (clock is None or clock.headers))
        states = []
        for stamp, row in zip(stamps, rows, strict=True):
            if clock is not None:
                clock.send(struct.pack("<II", stamp // SECOND, stamp % SECOND))
                wait_for(lambda at=stamp: subscriber._stamps.clock.time == at)  # type: ignore[misc, attr-defined]
            publisher.send(build(kind, stamp, row[:7], row[7:]))
            states += take(subscriber, 1)
    assert [one.stamp for one in states] == stamps
    for one, row in zip(states, rows, strict=True):
        sent = ns.Pose(tuple(row[:3].tolist()), tuple(row[3:7].tolist()))
        assert one.state.pose == (sent @ ROOT_POSE if kind == MODELS else sent)
        if kind in (ODOMETRY, MODELS, LINKS):
            assert one.state.velocity == tuple(row[7:10].tolist())
            assert one.state.angular_velocity == tuple(row[10:].tolist())
            assert (one.state.frame, one.state.angular_frame) == ("body" if kind == ODOMETRY else "world", None)
        else:
            assert one.state.velocity is one.state.angular_velocity is None
    assert publisher.headers[0]["topic"] == "/odom"
    assert master.subscribers == {topic: {} for topic in master.subscribers}


@pytest.mark.parametrize("kind", [kind for kind in MOTION_TYPES if kind.replace("/", "/msg/") in TYPES])
def test_md5_sums_are_those_of_rosbags(kind: str) -> None:
    assert STORE.generate_msgdef(kind.replace("/", "/msg/"), ros_version=1)[1] == MOTION_MD5[kind]


@pytest.mark.parametrize("kind", [ODOMETRY, STAMPED, TF])
def test_poses_equal_those_of_a_recorded_topic(
    master: RosMaster, publish: Callable[..., RosPublisher], tmp_path: Path, kind: str
) -> None:
    """The same messages in a bag. Their quaternions have any length."""
    rows = draw(30)
    rows[:, 3:7] = [1.0, 0.0, 0.0, 0.0] + 0.1 * rows[:, 3:7]
    rows[:, 3:7] *= np.linspace(0.3, 1.7, 30)[:, None]
    messages = [build(kind, (index + 1) * 10**7, row[:7], row[7:]) for index, row in enumerate(rows)]
    with Writer(tmp_path / "odom.bag") as writer:
        md5 = MOTION_MD5[kind]
        definition = STORE.generate_msgdef(kind.replace("/", "/msg/"), ros_version=1)[0]
        connection = writer.add_connection("/odom", kind.replace("/", "/msg/"), msgdef=definition, md5sum=md5)
        for index, message in enumerate(messages):
            writer.write(connection, index * 10**7, message)
    motion = load_motion(f"{tmp_path / 'odom.bag'}?topic=/odom{QUERIES.get(kind, '')}")
    block = motion.at(np.arange(30) * 0.01)
    publisher = publish(kind)
    with subscribe(master, f"?topic=/odom{QUERIES.get(kind, '')}") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*messages)
        states = take(subscriber, 30)
    received = np.array([one.state.pose.position + one.state.pose.rotation for one in states])
    replayed = np.hstack((block.position_w, block.rotation_wb))
    # Only the last row is evaluated inside an interval of the spline, and its quaternions are normalised again.
    assert np.array_equal(received[:-1, :3], replayed[:-1, :3])
    assert np.abs(received - replayed).max() < 1e-15


def test_type_without_a_stamp_gets_the_time_of_receipt(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    publisher, before = publish(POSE), time.time_ns()
    with subscribe(master, "") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build(POSE, 0, draw(1)[0, :7]))
        (state,) = take(subscriber, 1)
    assert before < state.stamp < time.time_ns()
    assert "topic /odom: the messages have no stamp; they get the time of receipt" in caplog.text


def test_first_state_of_each_time_of_the_clock_counts(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    clock, publisher, rows = publish("rosgraph_msgs/Clock", "/clock"), publish(MODELS), draw(9)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers and clock.headers)
        states: list[StampedState] = []
        for step in range(3):
            clock.send(struct.pack("<II", step, 5))
            wait_for(lambda at=step: subscriber._stamps.clock.time == at * SECOND + 5)  # type: ignore[misc, attr-defined]
            publisher.send(*(build(MODELS, 0, row[:7], row[7:]) for row in rows[3 * step : 3 * step + 3]))
            states += take(subscriber, 1)
        time.sleep(0.05)
        assert not subscriber.receive(0.0)
    assert [one.stamp for one in states] == [5, SECOND + 5, 2 * SECOND + 5]
    assert [one.state.velocity for one in states] == [tuple(row) for row in rows[::3, 7:10].tolist()]


@pytest.mark.parametrize(
    ("kind", "query", "index"),
    [(MODELS, "&model=other", 2), (LINKS, "&link=arm", 2), (LINKS, "&model=ground&link=l", 0), (LINKS, "", 1)],
)
def test_model_and_link_select_the_states_of_gazebo(
    master: RosMaster, publish: Callable[..., RosPublisher], kind: str, query: str, index: int
) -> None:
    publisher = publish(kind)
    with subscribe(master, f"?topic=odom{query}") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build(kind, 0, (7, 7, 7, 1, 0, 0, 0), (7.0,) * 6))
        (state,) = take(subscriber, 1)
    assert state.state.velocity == ((9.0,) * 3, (7.0,) * 3, (8.0,) * 3)[index]


def test_missing_model_is_one_warning_that_lists_the_others(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """It can be spawned later."""
    publisher = publish(MODELS)
    with subscribe(master, "?topic=/odom&model=boat") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*(build(MODELS, 0, draw(1)[0, :7]) for _ in range(3)))
        boat = make("gazebo_msgs/msg/ModelStates", ["boat"], [pose((0, 0, 0, 1, 0, 0, 0))], [twist((0.5,) * 6)])
        publisher.send(encode(MODELS, boat))
        assert take(subscriber, 1)[0].state.velocity == (0.5,) * 3
    warnings = [text for text in caplog.messages if "boat" in text]
    assert len(warnings) == 1
    assert "topic /odom: node /gazebo has no model boat; it has ground, robot, other" in warnings[0]


def test_transforms_of_several_publishers_are_selected_by_frame(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """The topic /tf has several publishers as a rule."""
    publishers = [publish(TF, "/tf", node=node) for node in ("/odometry", "/arm")]
    with subscribe(master, "?topic=/tf&frame=base_link") as subscriber:
        wait_for(lambda: all(one.headers for one in publishers))
        for step in range(1, 4):
            arm = transform(step, (0, 0, 1, 1, 0, 0, 0), "gripper", "arm")
            publishers[1].send(encode(TF, make("tf2_msgs/msg/TFMessage", [arm])))
            publishers[0].send(build(TF, step, (step, 0, 0, 1, 0, 0, 0)))
        states = take(subscriber, 3)
    assert [(one.stamp, one.state.pose.position[0]) for one in states] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert not caplog.messages


def test_transforms_of_several_frames_need_a_name(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    publisher = publish(TF, "/tf")
    with subscribe(master, "?topic=/tf") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build(TF, 1, (0, 0, 0, 1, 0, 0, 0)))
        problem = "several frames move; must be one of base_link, camera; add &frame=FRAME"
        assert take_error(subscriber) == f"topic /tf: {problem}"


def test_frame_with_a_new_parent_is_an_error(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    publisher = publish("geometry_msgs/TransformStamped")
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        for parent in ("odom", "map"):
            message = transform(1, (0, 0, 0, 1, 0, 0, 0), parent=parent)
            publisher.send(encode("geometry_msgs/TransformStamped", message))
        problem = "the parent of frame base_link changes from odom to map; name another topic"
        assert take_error(subscriber) == f"topic /odom: {problem}"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "2 topics; must be one of /odom (nav_msgs/Odometry), /pose (geometry_msgs/PoseStamped); add ?topic=/odom"),
        ("?type=geometry_msgs/Pose&wait=0", "no topic of the type geometry_msgs/Pose that can be followed; needs"),
        ("?topic=/imu", "type of topic /imu: sensor_msgs/Imu; must be one of nav_msgs/Odometry, "),
        ("?topic=/odom&type=geometry_msgs/Pose", "option type: geometry_msgs/Pose; topic /odom is nav_msgs/Odometry"),
        ("?type=std_msgs/String", "option type: std_msgs/String; must be one of nav_msgs/Odometry, "),
        ("?topic=/pose&frame=x", "option frame: x; geometry_msgs/PoseStamped has no name of a frame that moves"),
        ("?topic=/odom&model=x", "option model: x; nav_msgs/Odometry has no name of a model"),
        ("?topic=/odom&twist=child", "option twist: child; must be one of body, world, none"),
        ("?topic=/pose&twist=world", "option twist: world; selects the axes of an odometry"),
        ("?topic=/odom&node=9x", "option node: 9x; must be a name of ROS"),
        ("?topic=/odom&host=192.0.2.1", "option host: 192.0.2.1; must be a name or an address of this machine"),
        ("?topic=/odom&speed=3", "option of the URL: speed; must be one of topic, type, model, link, frame, "),
        ("/odom", "path of the URL: /odom; must be empty"),
        ("?topic=/odom&topic=/pose", "option of the URL: topic; must be given once"),
        ("?topic=/odom here", "option topic: /odom here; must be a name of ROS: letters, digits, _ and /"),
        ("?topic=/odom&node=gazebo", "option node: /gazebo; a node of this name runs at http://127.0.0.1:"),
    ],
)
def test_invalid_urls_are_errors(
    master: RosMaster, publish: Callable[..., RosPublisher], query: str, problem: str
) -> None:
    publish(ODOMETRY)
    publish(STAMPED, "/pose")
    publish("sensor_msgs/Imu", "/imu")
    publish("geometry_msgs/Twist", "/cmd_vel")
    with pytest.raises(MotionError) as error:
        subscribe(master, query)
    assert str(error.value).startswith(f"ros1://127.0.0.1:{master.port}{query}: {problem}")


def test_missing_master_is_an_error_with_its_remedy() -> None:
    with pytest.raises(MotionError) as error:
        streams.open_subscriber("ros1://127.0.0.1:11311?topic=/odom", FRAME)
    problem = "ROS master: 127.0.0.1:11311; does not answer: connection refused; start it: roscore"
    assert str(error.value) == f"ros1://127.0.0.1:11311?topic=/odom: {problem}"


def test_name_of_a_node_that_has_ended_is_free(master: RosMaster) -> None:
    """The master still lists a node that was killed."""
    master.registerPublisher("/gazebo", "/odom", ODOMETRY, "http://127.0.0.1:9/")
    with subscribe(master, "?topic=/odom&node=gazebo"):
        assert "/gazebo" in master.subscribers["/odom"]


def test_quaternion_far_from_unit_length_is_one_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    publisher = publish(STAMPED)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(
            *(build(STAMPED, stamp, (0, 0, 0, size, 0, 0, 0)) for stamp, size in ((1, 1.001), (2, 5), (3, 4)))
        )
        states = take(subscriber, 3)
    assert [one.state.pose.rotation for one in states] == [(1.0, 0.0, 0.0, 0.0)] * 3
    warning = "topic /odom: node /gazebo sent a quaternion of length 5, which is normalized"
    assert [text.partition(": ")[2] for text in caplog.messages] == [warning]


def test_later_publisher_is_connected(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    publish(STAMPED, "/pose")
    with subscribe(master) as subscriber:
        publisher = publish(ODOMETRY)
        wait_for(lambda: publisher.headers)
        publisher.send(build(ODOMETRY, 5, draw(1)[0, :7]))
        assert take(subscriber, 1)[0].stamp == 5
    waiting = "topic /odom: waiting for a publisher; topics that can be followed: /pose (geometry_msgs/PoseStamped)"
    assert waiting in caplog.text


def test_topic_without_a_name_is_waited_for(
    master: RosMaster, publish: Callable[..., RosPublisher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its publisher starts after the first question to the master."""
    publish("sensor_msgs/Imu", "/imu")
    later: list[RosPublisher] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: later.append(publish(ODOMETRY)))
    monkeypatch.setattr("navsense.streams.ros1.subscriber.time", clock)
    with subscribe(master, "?wait=30") as subscriber:
        assert subscriber.topic == "topic /odom"
        wait_for(lambda: later[0].headers)


def test_publisher_that_vanishes_is_one_warning_and_the_next_one_is_followed(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    with subscribe(master, "?topic=/odom&type=nav_msgs/msg/Odometry") as subscriber:
        for stamp in range(1, 4):
            publisher = RosPublisher(master, "/odom", ODOMETRY, MOTION_MD5[ODOMETRY])
            wait_for(lambda one=publisher: one.headers)  # type: ignore[misc]
            publisher.send(build(ODOMETRY, stamp, draw(1)[0, :7]))
            assert [one.stamp for one in take(subscriber, 1)] == [stamp]
            publisher.disconnect()  # the next connection is to the same node
            wait_for(lambda one=publisher: len(one.headers) == 2)  # type: ignore[misc]
            publisher.send(build(ODOMETRY, stamp + 100, draw(1)[0, :7]))
            assert [one.stamp for one in take(subscriber, 1)] == [stamp + 100]
            publisher.vanish()
        wait_for(lambda: len(subscriber._subscription.list_open()) == 0)  # type: ignore[attr-defined]
    ends = [text for text in caplog.messages if "has disconnected" in text]
    assert len(ends) == 1
    assert ends[0].endswith("topic /odom: node /gazebo has disconnected; waiting for a publisher")


def test_master_that_vanishes_is_a_warning(
    publish: Callable[..., RosPublisher],
    master: RosMaster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connected publisher stays. The master gets the subscription again when it is back."""
    monkeypatch.setattr(master_module, "CHECK_PERIOD", 0.05)
    first = RosMaster()
    publisher = RosPublisher(first, "/odom", ODOMETRY, MOTION_MD5[ODOMETRY])
    with subscribe(first) as subscriber:
        wait_for(lambda: publisher.headers)
        first.close()
        wait_for(lambda: "the master does not answer" in caplog.text)
        publisher.send(build(ODOMETRY, 5, draw(1)[0, :7]))
        assert take(subscriber, 1)[0].stamp == 5
        second = RosMaster(first.port)
        wait_for(lambda: second.subscribers.get("/odom"))
        wait_for(lambda: "the master answers again" in caplog.text)
        later = RosPublisher(second, "/odom", ODOMETRY, MOTION_MD5[ODOMETRY], node="/later")
        wait_for(lambda: later.headers)
        publisher.vanish()
        later.send(build(ODOMETRY, 6, draw(1)[0, :7]))
        assert take(subscriber, 1)[0].stamp == 6
    assert second.subscribers == {"/odom": {}}
    later.vanish()
    second.close()
    assert "connected publishers stay, new ones are not found" in caplog.text


def test_closing_waits_once_for_all_peers(
    master: RosMaster, publish: Callable[..., RosPublisher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections are closed before the first wait. Peers that do not answer take the time of one wait together."""
    now, closed = 0.0, []
    close, unregister = Subscription.close, Master.close
    publisher = publish(POSE)
    subscriber = subscribe(master)
    wait_for(lambda: publisher.headers)

    def wait(topic: str, timeout: float) -> None:
        nonlocal now
        now += timeout
        closed.append(topic if timeout else f"{topic} at once")

    monkeypatch.setattr(subscriber_node_module, "time", SimpleNamespace(monotonic=lambda: now))

    def close_subscription(subscription: Subscription, timeout: float) -> None:
        wait(subscription.topic, timeout)
        close(subscription, 1.0)

    def close_master(master: Master, timeout: float) -> None:
        wait("master", 0.6 * timeout)
        unregister(master)

    monkeypatch.setattr(Subscription, "close", close_subscription)
    monkeypatch.setattr(Master, "close", close_master)
    subscriber.close()
    assert closed == ["/odom at once", "/clock at once", "master", "/odom", "/clock at once"]
    assert now == subscriber_node_module.CLOSE_TIMEOUT


def test_master_that_does_not_answer_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread, which waits for an answer, and the call that unregisters share the time."""
    now = 0.0

    def wait(timeout: float) -> None:
        nonlocal now
        now += 0.6 * timeout

    def call(*_: object, timeout: float) -> None:
        wait(timeout)
        raise MasterError("does not answer: no answer in time")

    master = Master("127.0.0.1", 9, caller_id="/quad", caller_api="", name="ros1://", fail=lambda _: None)
    monkeypatch.setattr(master_module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(master, "_thread", SimpleNamespace(is_alive=lambda: True, join=wait))
    monkeypatch.setattr(master, "call", call)
    master._registered = [Registration("/odom", ODOMETRY), Registration("/tf", TF)]
    master.close()
    assert now == pytest.approx(master_module.UNREGISTER_TIMEOUT * (0.6 + 0.4 * 0.6), abs=1e-9)
    assert caplog.messages == ["ros1://: the master does not answer: no answer in time; /tf is not unregistered"]


def test_two_publishers_are_a_warning_that_names_both(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """The first one counts until it disconnects."""
    first, second = publish(ODOMETRY, node="/first"), publish(ODOMETRY, node="/second")
    with subscribe(master) as subscriber:
        wait_for(lambda: first.headers and second.headers)
        first.send(build(ODOMETRY, 1, draw(1)[0, :7]))
        assert take(subscriber, 1)[0].stamp == 1
        second.send(build(ODOMETRY, 2, draw(1)[0, :7]), build(ODOMETRY, 3, draw(1)[0, :7]))
        wait_for(lambda: caplog.messages)
        first.send(build(ODOMETRY, 4, draw(1)[0, :7]))
        assert [one.stamp for one in take(subscriber, 1)] == [4]
        first.unregister()
        second.send(build(ODOMETRY, 5, draw(1)[0, :7]))
        assert [one.stamp for one in take(subscriber, 1)] == [5]
    problem = "topic /odom: node /first and node /second publish it; the messages of node /second are not used"
    assert [text.partition(": ")[2] for text in caplog.messages] == [problem]


BAD_NUMBERS = {
    "zero quaternion": (0, 0, 0, 0, 0, 0, 0),
    "NaN in the quaternion": (0, 0, 0, 1, np.nan, 0, 0),
    "infinite position": (np.inf, 0, 0, 1, 0, 0, 0),
    "huge position": (1e30, 0, 0, 1, 0, 0, 0),
}


@pytest.mark.parametrize("name", [*BAD_NUMBERS, "NaN in the velocity"])
def test_invalid_state_is_dropped_with_one_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    publisher, good = publish(ODOMETRY), draw(1)[0, :7]
    velocity = (np.nan,) * 6 if name not in BAD_NUMBERS else (0.0,) * 6
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*(build(ODOMETRY, stamp, BAD_NUMBERS.get(name, good), velocity) for stamp in (1, 2)))
        publisher.send(build(ODOMETRY, 3, good))
        assert [one.stamp for one in take(subscriber, 1)] == [3]
    assert len(caplog.messages) == 1
    assert "topic /odom: node /gazebo sent an invalid state, which is dropped: " in caplog.messages[0]


GOOD = build(ODOMETRY, 7, (0, 0, 0, 1, 0, 0, 0))
BAD_MESSAGES = {
    "short": (GOOD[:-8], "sent a message of 705 bytes that ends within its fields"),
    "long": (GOOD + b"\0", "sent a message of 714 bytes; its fields have 713"),
    "empty": (b"", "sent a message of 0 bytes that ends within its fields"),
    "long string": (GOOD[:12] + b"\xff\xff\xff\x7f" + GOOD[16:], "ends within its fields"),
    "nanoseconds": (GOOD[:8] + b"\xff\xff\xff\x7f" + GOOD[12:], "a time with 2147483647 ns after the second"),
}


@pytest.mark.parametrize("name", BAD_MESSAGES)
def test_invalid_message_is_dropped_with_one_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    data, problem = BAD_MESSAGES[name]
    publisher = publish(ODOMETRY)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(data, data, GOOD)
        assert [one.stamp for one in take(subscriber, 1)] == [7]
    assert len(caplog.messages) == 1
    assert "topic /odom: node /gazebo sent " in caplog.messages[0]
    assert problem in caplog.messages[0]


@pytest.mark.parametrize("kind", [TF, MODELS])
@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\1\0\0\0", b"\1\0\0\0\0\0\0\0\2\0\0\0" + b"x" * 200])
def test_array_with_an_invalid_length_is_a_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, kind: str, data: bytes
) -> None:
    publisher = publish(kind)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(data)
        wait_for(lambda: any("topic /odom: node /gazebo sent a " in text for text in caplog.messages))
        assert not subscriber.receive(0.0)


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        (ODOMETRY, {"md5": "0" * 32}, "publishes another version of nav_msgs/Odometry: md5sum 00000000"),
        (ODOMETRY, {"type": "std_msgs/String"}, "publishes std_msgs/String; must be one of nav_msgs/Odometry"),
        (ODOMETRY, {"type": STAMPED, "md5": MOTION_MD5[STAMPED]}, f"publishes {STAMPED}, not {ODOMETRY}"),
    ],
)
def test_only_publisher_of_another_type_is_an_error(
    master: RosMaster, publish: Callable[..., RosPublisher], kind: str, options: dict[str, str], problem: str
) -> None:
    """The master knows the right type. With a publisher that sends states, it is a warning."""
    publish(kind, node="/other", **options)
    with subscribe(master, f"?topic=/odom&type={ODOMETRY}") as subscriber:
        assert take_error(subscriber).startswith(f"topic /odom: node /other {problem}")


def test_second_publisher_of_another_type_is_a_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    publisher = publish(ODOMETRY)
    with subscribe(master) as subscriber:
        wait_for(subscriber._subscription.list_open)  # type: ignore[attr-defined]
        publish(ODOMETRY, node="/other", md5="0" * 32)
        wait_for(lambda: "node /other publishes another version of nav_msgs/Odometry" in caplog.text)
        publisher.send(GOOD)
        assert take(subscriber, 1)[0].stamp == 7


SENT = {
    "huge message": (b"\xff\xff\xff\x7f" + GOOD, "sent a message of 2147483647 bytes; at most 16777216 are read"),
    "half message": (struct.pack("<I", len(GOOD)) + GOOD[:100], "disconnected within a message"),
    "half length": (b"\1\2", "disconnected within a message"),
}


@pytest.mark.parametrize("name", SENT)
def test_broken_connection_is_a_warning_and_the_node_is_connected_again(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    data, problem = SENT[name]
    publisher = publish(ODOMETRY)
    with subscribe(master) as subscriber:
        for count in (1, 2):
            wait_for(lambda expected=count: len(publisher.headers) == expected)  # type: ignore[misc]
            publisher.send_bytes(data)
            publisher.disconnect()
        wait_for(lambda: len(publisher.headers) == 3)
        publisher.send(GOOD)
        assert take(subscriber, 1)[0].stamp == 7
    assert len([text for text in caplog.messages if f"topic /odom: node /gazebo {problem}" in text]) == 1


def test_message_that_does_not_end_is_a_warning(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(subscription_module, "PART_TIMEOUT", 0.1)
    publisher = publish(ODOMETRY)
    with subscribe(master):
        wait_for(lambda: publisher.headers)
        publisher.send_bytes(GOOD[:50].join((struct.pack("<I", 100), b"")))
        wait_for(lambda: "node /gazebo sent a part of a message and then nothing for 0.1 s" in caplog.text)


ANSWERS = {
    "garbage": b"\0\1\2\3" * 100 + b"\r\n\r\n",
    "no XML": b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
    "nothing": b"",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_publisher_that_is_no_node_is_a_warning(master: RosMaster, caplog: pytest.LogCaptureFixture, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(ANSWERS[name])

        thread = threading.Thread(target=serve)
        thread.start()
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        master.registerPublisher("/odd", "/odom", ODOMETRY, uri)
        with subscribe(master):
            wait_for(lambda: f"the node at {uri} does not answer as a ROS node" in caplog.text)
        thread.join()


@pytest.mark.parametrize("uri", ["", "http://", "http://127.0.0.1:99999/", "nonsense"])
def test_invalid_uri_of_a_publisher_is_a_warning(master: RosMaster, caplog: pytest.LogCaptureFixture, uri: str) -> None:
    master.registerPublisher("/odd", "/odom", ODOMETRY, uri)
    with subscribe(master):
        wait_for(lambda: f"topic /odom: the node at {uri} has an invalid URI" in caplog.text)


def test_unreachable_publisher_is_a_warning_with_a_remedy(master: RosMaster, caplog: pytest.LogCaptureFixture) -> None:
    master.registerPublisher("/odd", "/odom", ODOMETRY, "http://127.0.0.1:9/")
    with subscribe(master):
        wait_for(lambda: "cannot be reached: connection refused; set ROS_IP" in caplog.text)


@pytest.mark.parametrize("answer", [{"error": "no"}, {"topic": "/other"}])
def test_refusal_of_a_publisher_is_a_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, answer: dict[str, str]
) -> None:
    publish(ODOMETRY, **answer) if "error" in answer else None
    if "topic" in answer:
        publisher = publish(ODOMETRY)
        publisher._fields["topic"] = answer["topic"]
    with subscribe(master):
        expected = "refuses the subscription: no" if "error" in answer else "publishes topic /other on this connection"
        wait_for(lambda: f"topic /odom: node /gazebo {expected}" in caplog.text)


@pytest.mark.parametrize(
    ("sent", "expected", "warning"),
    [
        ([0, 10, 20], [0, 10, 20], ""),
        ([0, 0, 0], None, "the messages have the stamp 0; they get the time of receipt"),
        ([0, 10**18, 10**18 + 1], [10**18, 10**18 + 1], ""),
        ([0, SECOND, SECOND + 10], [0, SECOND, SECOND + 10], ""),
        ([0, 500_020_000_000, 500_040_000_000], [500_020_000_000, 500_040_000_000], ""),
        ([10**18, 0, 10**18 + 1], [10**18, 10**18 + 1], "with the stamp 0 after Unix time, which is dropped"),
        ([10, 20, 15], [10, 20, 15], ""),
    ],
)
def test_stamps(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sent: list[int],
    expected: list[int] | None,
    warning: str,
) -> None:
    """A stamp of 0 is the start of a simulation, a publisher before its clock, or one without stamps."""
    if expected is None:
        monkeypatch.setattr(stamps_module, "DECISION_TIME", 0.0)
    publisher, before = publish(STAMPED), time.time_ns()
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*(build(STAMPED, stamp, (stamp % 97, 0, 0, 1, 0, 0, 0)) for stamp in sent))
        states = take(subscriber, len(sent) if expected is None else len(expected))
    stamps = [one.stamp for one in states]
    if expected is None:
        assert before < stamps[0] <= stamps[1] <= stamps[2] < time.time_ns()
    else:
        assert stamps == expected
    assert [text.partition(": ")[2].endswith(warning) for text in caplog.messages] == [True] * bool(warning)


@pytest.fixture
def start_clock(publish: Callable[..., RosPublisher]) -> Callable[..., RosPublisher]:
    """Return a function that starts a node that publishes /clock, and sends a time (ns)."""

    def start(stamp: int) -> RosPublisher:
        clock = publish("rosgraph_msgs/Clock", "/clock", node="/simulator")
        wait_for(lambda: clock.headers)
        clock.send(struct.pack("<II", stamp // SECOND, stamp % SECOND))
        return clock

    return start


@pytest.mark.parametrize("sends_stamps", [True, False])
def test_simulated_time_waits_for_the_clock(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    start_clock: Callable[[int], RosPublisher],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sends_stamps: bool,
) -> None:
    """A node that starts before its clock, as rospy does, and one that sets no stamps: their times are simulated."""
    monkeypatch.setattr(stamps_module, "DECISION_TIME", 0.0)
    master.parameters["/use_sim_time"] = True
    publisher, zero = publish(STAMPED), build(STAMPED, 0, (9, 0, 0, 1, 0, 0, 0))
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*[zero] * 3)
        wait_for(lambda: "waiting for the first message of /clock" in caplog.text)
        start_clock(500 * SECOND)
        wait_for(lambda: subscriber._stamps.clock.time)  # type: ignore[attr-defined]
        stamp = 500 * SECOND + 1 if sends_stamps else 0
        publisher.send(build(STAMPED, stamp, (1, 0, 0, 1, 0, 0, 0)))
        (state,) = take(subscriber, 1)
    assert (state.stamp, state.state.pose.position[0]) == (500 * SECOND + sends_stamps, 1.0)
    warnings = [text.partition(": topic /odom: ")[2] for text in caplog.messages]
    assert warnings[1:] == [] if sends_stamps else ["the messages have the stamp 0; they get the time of /clock"]


def test_stamps_that_begin_after_stamps_of_zero_are_an_error(
    master: RosMaster, publish: Callable[..., RosPublisher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamps_module, "DECISION_TIME", 0.0)
    publisher = publish(STAMPED)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*(build(STAMPED, stamp, (0, 0, 0, 1, 0, 0, 0)) for stamp in (0, 0, 5 * SECOND)))
        problem = "the messages have stamps from 5.000000000 s on, but had the stamp 0 before; start the clock"
        assert take_error(subscriber).startswith(f"topic /odom: {problem}")


def test_clock_that_cannot_be_reached_at_first_is_used_later(
    master: RosMaster, publish: Callable[..., RosPublisher], start_clock: Callable[[int], RosPublisher]
) -> None:
    """States before the first message of /clock have no time."""
    master.registerPublisher("/simulator", "/clock", "rosgraph_msgs/Clock", "http://127.0.0.1:9/")
    publisher, message = publish(POSE), build(POSE, 0, draw(1)[0, :7])
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(message)
        start_clock(5 * SECOND)
        wait_for(lambda: subscriber._stamps.clock.time)  # type: ignore[attr-defined]
        publisher.send(message)
        assert [one.stamp for one in take(subscriber, 1)] == [5 * SECOND]


def test_clock_that_starts_after_the_states_is_a_warning(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    start_clock: Callable[[int], RosPublisher],
    caplog: pytest.LogCaptureFixture,
) -> None:
    publisher, message = publish(POSE), build(POSE, 0, draw(1)[0, :7])
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(message)
        states = take(subscriber, 1)
        start_clock(5 * SECOND)
        wait_for(lambda: subscriber._stamps.clock.time)  # type: ignore[attr-defined]
        publisher.send(message, message)
        states += take(subscriber, 2)
    assert states[0].stamp < states[1].stamp <= states[2].stamp < time.time_ns()
    problem = "/clock has a publisher now, but the messages keep the time of receipt; start the run again"
    assert [text.partition(": topic /odom: ")[2] for text in caplog.messages] == [problem]


def test_clock_of_the_own_run_is_not_followed(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """A clock that waits for the states, and states that wait for the clock, would wait for ever."""
    own = Ros1Node("127.0.0.1", caller_id="/own", master_uri=master.uri, name="own", where=Where("own"))
    own.add_topic(Ros1Topic("/clock", "rosgraph_msgs/Clock", CLOCK_MD5, ""))
    master.registerPublisher("/own", "/clock", "rosgraph_msgs/Clock", own.uri)
    publisher, before = publish(POSE), time.time_ns()
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build(POSE, 0, draw(1)[0, :7]))
        assert take(subscriber, 1)[0].stamp > before
    assert own.subscriber_count == 0
    own.stop()
    assert not caplog.messages


def test_stamps_of_two_clocks_are_an_error(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    publisher = publish(STAMPED)
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*(build(STAMPED, stamp, (0, 0, 0, 1, 0, 0, 0)) for stamp in (10**18, 5 * SECOND)))
        problem = "the stamps change between a simulation and Unix time at 5.000000000 s"
        assert take_error(subscriber).startswith(f"topic /odom: {problem}")


@pytest.mark.parametrize("axes", ["body", "world", "zero"])
def test_velocities_that_do_not_fit_the_poses_are_a_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture, axes: str
) -> None:
    """Gazebo's p3d plug-in publishes velocities in the axes of the world. 40 states on a circle from heading 1 rad."""
    publisher = publish(ODOMETRY)
    messages = []
    for step in range(40):
        heading = 1.0 + 0.01 * step
        place = (2.0 * np.sin(heading), -2.0 * np.cos(heading), 0.0)
        rotation = (np.cos(0.5 * heading), 0.0, 0.0, np.sin(0.5 * heading))
        forward = {"body": (1.0, 0.0), "world": (np.cos(heading), np.sin(heading)), "zero": (0.0, 0.0)}[axes]
        velocity = (*forward, 0.0, 0.0, 0.0, 0.5)
        messages.append(build(ODOMETRY, SECOND + step * 20_000_000, (*place, *rotation), velocity))
    with subscribe(master) as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(*messages)
        assert all(one.state.frame == "body" for one in take(subscriber, 40))
    remedies = {"body": [], "world": ["add &twist=world"], "zero": ["add &twist=none"]}
    assert [text.rpartition(", ")[2] for text in caplog.messages] == remedies[axes]


@pytest.mark.parametrize(("twist_option", "velocity"), [("world", (1.0, 2.0, 3.0)), ("none", None)])
def test_option_twist(
    master: RosMaster, publish: Callable[..., RosPublisher], twist_option: str, velocity: tuple[float, ...] | None
) -> None:
    publisher = publish(ODOMETRY)
    with subscribe(master, f"?topic=/odom&twist={twist_option}&frame=base_link") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build(ODOMETRY, 1, (0, 0, 0, 1, 0, 0, 0), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)))
        (one,) = take(subscriber, 1)
    assert (one.state.velocity, one.state.frame) == (velocity, "world")


def test_other_frame_of_an_odometry_is_an_error(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    publisher = publish(ODOMETRY)
    with subscribe(master, "?topic=/odom&frame=mast") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(GOOD)
        assert take_error(subscriber) == "topic /odom: frame: mast; is base_link"


def test_slave_api_of_the_subscriber(master: RosMaster, publish: Callable[..., RosPublisher]) -> None:
    publisher = publish(ODOMETRY)
    with subscribe(master, "?topic=/odom&node=motion") as subscriber:
        wait_for(subscriber._subscription.list_open)  # type: ignore[attr-defined]
        node: Any = xmlrpc.client.ServerProxy(master.subscribers["/odom"]["/motion"])
        assert node.getSubscriptions("/t")[2] == [["/odom", ODOMETRY]]
        assert node.getBusInfo("/t")[2][0][1:5] == [publisher.uri, "i", "TCPROS", "/odom"]
        assert node.publisherUpdate("/t", "/odom", 3)[0] == -1
        assert node.publisherUpdate("/t", "/other", ["http://127.0.0.1:9/"])[0] == 1
        assert publisher.headers[0]["callerid"] == "/motion"
        node.shutdown("/master", "rosnode kill")
        assert take_error(subscriber) == "topic /odom: the node was shut down: rosnode kill"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the outputs of `ros1_motion_session.sh`: roscore, rosbag play and rostopic pub."""
    missing = [name for name in ("roscore", "rostopic", "rosnode", "rosbag") if not shutil.which(name, path="/usr/bin")]
    if missing:
        pytest.skip(f"needs Debian's {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("session")
    script, listen = (Path(__file__).with_name(name) for name in ("ros1_motion_session.sh", "ros1_listen.py"))
    unshare = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a network namespace: unshare --map-root-user --net")
    with Writer(folder / "motion.bag") as writer:
        for kind, topic in ((ODOMETRY, "/odom"), (TF, "/tf"), (MODELS, "/gazebo/model_states")):
            definition = STORE.generate_msgdef(kind.replace("/", "/msg/"), ros_version=1)[0]
            name, md5 = kind.replace("/", "/msg/"), MOTION_MD5[kind]
            connection = writer.add_connection(topic, name, msgdef=definition, md5sum=md5)
            for index, row in enumerate(draw(60)):
                stamp = 100 * SECOND + index * 20_000_000
                writer.write(connection, stamp, build(kind, stamp, row[:7], row[7:]))
    subprocess.run([*unshare, "bash", str(script), sys.executable, str(listen), str(folder)], check=True, timeout=100.0)
    return folder


def read_states(session: Path, topic: str) -> list[list[Any]]:
    states: dict[str, list[list[Any]]] = json.loads((session / "states.json").read_text())
    return next(rows for url, rows in states.items() if f"topic={topic}&" in url)


@pytest.mark.parametrize(("topic", "frame"), [("/odom", "body"), ("/tf", "world")])
def test_states_equal_the_messages_that_rosbag_plays(session: Path, topic: str, frame: str) -> None:
    """rosbag is a node of roscpp."""
    rows = draw(60).tolist()
    stamps = [100 * SECOND + index * 20_000_000 for index in range(60)]
    twists = [[row[7:10], row[10:]] if topic == "/odom" else [None, None] for row in rows]
    expected = [[stamp, *row[:7], *twist, frame] for stamp, row, twist in zip(stamps, rows, twists, strict=True)]
    received = read_states(session, topic)
    assert len(received) >= 50
    assert received == expected[: len(received)]


def test_states_of_gazebo_have_the_time_of_the_clock_of_rosbag(session: Path) -> None:
    received = read_states(session, "/gazebo/model_states")
    stamps, rows = [row[0] for row in received], draw(60).tolist()
    assert stamps == sorted(set(stamps))
    assert 99 * SECOND < stamps[0] <= stamps[-1] < 102 * SECOND
    assert all([*one[1:8], one[8], one[9]] in [[*row[:7], row[7:10], row[10:]] for row in rows] for one in received)


def test_rostopic_publishes_poses(session: Path) -> None:
    """rostopic is a node of rospy, and sets the stamps."""
    received = read_states(session, "/typed")
    assert all(row[1:] == [1.5, -0.1, 0.0, 0.8, 0.0, 0.0, 0.6, None, None, "world"] for row in received)
    stamps = [row[0] for row in received]
    assert all(after > before for before, after in itertools.pairwise(stamps))


def test_rosnode_shows_the_subscriber(session: Path) -> None:
    info = (session / "node.txt").read_text()
    assert " * /odom [unknown type]" in info
    assert "xmlrpc reply from http://127.0.0.1:" in (session / "ping.txt").read_text()
    assert not {"/odom", "/tf", "/models", "/typed"} & set((session / "after.txt").read_text().split())


CURRENT = "/hydrodynamics/current_velocity"
STAMPED_TWIST = "geometry_msgs/TwistStamped"


def build_current(kind: str, stamp: int, velocity: Any) -> bytes:
    """Return a message with a velocity of the water."""
    motion = twist((*velocity, 7.0, 8.0, 9.0))
    content: dict[str, Callable[[], Any]] = {
        STAMPED_TWIST: lambda: (header(stamp, "/world"), motion),
        "geometry_msgs/Twist": lambda: (motion.linear, motion.angular),
        "geometry_msgs/TwistWithCovarianceStamped": lambda: (
            header(stamp, "/world"),
            make("geometry_msgs/msg/TwistWithCovariance", motion, np.zeros(36)),
        ),
        "geometry_msgs/Vector3Stamped": lambda: (header(stamp, "/world"), motion.linear),
        "geometry_msgs/Vector3": lambda: velocity,
    }
    return encode(kind, make(kind.replace("/", "/msg/"), *content[kind]()))


def take_velocity(subscriber: streams.CurrentSubscriber) -> list[float]:
    """Return the next velocity of a subscriber."""
    until = time.monotonic() + 10.0
    while not (velocities := subscriber.receive(0.1)):
        assert time.monotonic() < until
    (velocity,) = velocities
    return list(velocity)


@pytest.fixture
def publish_current(publish: Callable[..., RosPublisher]) -> Callable[..., RosPublisher]:
    """Return a function that starts a publisher of the default topic of a current."""

    def start(kind: str, **options: str) -> RosPublisher:
        md5 = STORE.generate_msgdef(kind.replace("/", "/msg/"), ros_version=1)[1]
        return publish(kind, CURRENT, md5=md5, **options)

    return start


def test_current_of_the_own_run_is_not_followed(
    master: RosMaster, publish_current: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """A run publishes its current on the same topic by default."""
    own = Ros1Node("127.0.0.1", caller_id="/own", master_uri=master.uri, name="own", where=Where("own"))
    own.add_topic(Ros1Topic(CURRENT, STAMPED_TWIST, CURRENT_MD5[STAMPED_TWIST], ""))
    master.registerPublisher("/own", CURRENT, STAMPED_TWIST, own.uri)
    with streams.open_current(f"ros1://127.0.0.1:{master.port}") as subscriber:
        publisher = publish_current(STAMPED_TWIST)
        wait_for(lambda: publisher.headers)
        publisher.send(build_current(STAMPED_TWIST, 1, (0.1, 0.0, 0.0)))
        assert take_velocity(subscriber) == [0.1, 0.0, 0.0]
    assert own.subscriber_count == 0
    own.stop()
    assert not caplog.messages


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("kind", CURRENT_MD5)
def test_current_is_received_bitwise(
    master: RosMaster, publish_current: Callable[..., RosPublisher], kind: str
) -> None:
    """The default topic is that of the UUV Simulator. Each velocity is read at once, whatever its stamp is."""
    publisher = publish_current(kind)
    velocities = np.random.default_rng(4).uniform(-1.0, 1.0, (5, 3)).tolist()
    stamps = (0, 10**18, 5, 5, 0)
    with streams.open_current(f"ros1://127.0.0.1:{master.port}") as subscriber:
        wait_for(lambda: publisher.headers)
        for stamp, velocity in zip(stamps, velocities, strict=True):
            publisher.send(build_current(kind, stamp, velocity))
            assert take_velocity(subscriber) == velocity


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("kind", [STAMPED_TWIST, "geometry_msgs/Vector3"])
def test_current_needs_no_clock(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    publish_current: Callable[..., RosPublisher],
    kind: str,
) -> None:
    """A velocity is read while another node publishes /clock, and no time has come yet."""
    clock, publisher = publish("rosgraph_msgs/Clock", "/clock"), publish_current(kind)
    with streams.open_current(f"ros1://127.0.0.1:{master.port}") as subscriber:
        wait_for(lambda: publisher.headers)
        publisher.send(build_current(kind, 0, (0.1, 0.0, 0.0)))
        assert take_velocity(subscriber) == [0.1, 0.0, 0.0]
    assert not clock.headers


@pytest.mark.requirement("CUR-1")
def test_restarted_publisher_sets_the_current(
    master: RosMaster, publish_current: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """The stamps of a restarted simulator begin at 0 again."""
    first = publish_current(STAMPED_TWIST)
    with streams.open_current(f"ros1://127.0.0.1:{master.port}") as subscriber:
        wait_for(lambda: first.headers)
        first.send(build_current(STAMPED_TWIST, 900 * SECOND, (0.1, 0.0, 0.0)))
        assert take_velocity(subscriber) == [0.1, 0.0, 0.0]
        first.unregister()
        first.disconnect()
        wait_for(lambda: "node /gazebo has disconnected; waiting for a publisher" in caplog.text)
        second = publish_current(STAMPED_TWIST)
        wait_for(lambda: second.headers)
        second.send(build_current(STAMPED_TWIST, 1, (0.2, 0.0, 0.0)))
        assert take_velocity(subscriber) == [0.2, 0.0, 0.0]


@pytest.mark.requirement("CUR-1")
def test_invalid_current_is_dropped_with_one_warning(
    master: RosMaster, publish_current: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    publisher = publish_current(STAMPED_TWIST)
    with streams.open_current(f"ros1://127.0.0.1:{master.port}?frame=ned") as subscriber:
        assert subscriber.frame == "ned"
        wait_for(lambda: publisher.headers)
        for value in (np.nan, 99.0):
            publisher.send(build_current(STAMPED_TWIST, 10, (value, 0.0, 0.0)))
        publisher.send(b"abc", build_current(STAMPED_TWIST, 10, (0.5, 0.0, 0.0)))
        assert take_velocity(subscriber) == [0.5, 0.0, 0.0]
    (text,) = (text.partition(f"topic {CURRENT}: ")[2] for text in caplog.messages if "sent" in text)
    assert text.startswith("node /gazebo sent a message that is dropped: velocity of a current (m/s): nan")


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?topic=/odom", f"type of topic /odom: {ODOMETRY}; must be one of geometry_msgs/TwistStamped"),
        ("?topic=/flow&type=geometry_msgs/Vector3", "option type: geometry_msgs/Vector3; topic /flow is geometry_msgs"),
        ("?frame=map", "frame of a current: map; must be one of world, enu, ned"),
        ("?model=auv", "option of the URL: model; must be one of topic, type, frame, host, node"),
        ("?type=std_msgs/String", "option type: std_msgs/String; must be one of geometry_msgs/TwistStamped"),
        ("?host=192.0.2.1", "option host: 192.0.2.1; must be a name or an address of this machine"),
        ("?speed=1", "option of the URL: speed; must be one of topic, "),
    ],
)
def test_invalid_urls_of_a_current_are_errors(
    master: RosMaster, publish: Callable[..., RosPublisher], query: str, problem: str
) -> None:
    publish(ODOMETRY)
    publish(STAMPED_TWIST, "/flow")
    with pytest.raises(FieldError) as error:
        streams.open_current(f"ros1://127.0.0.1:{master.port}{query}")
    assert str(error.value).startswith(f"ros1://127.0.0.1:{master.port}{query}: {problem}")


@pytest.mark.requirement("CUR-1")
def test_current_of_another_stream_and_missing_master_are_errors() -> None:
    with pytest.raises(FieldError, match="scheme of the current: foxglove; sends no current; must be one of gz, ros1"):
        streams.open_current("foxglove://127.0.0.1:8765")
    with pytest.raises(FieldError, match=r"ROS master: 127\.0\.0\.1:11311; does not answer: connection refused"):
        streams.open_current("ros1://")


DRIVES = {
    "none": None,
    "differential": Drive(
        "plug-in DiffDrive",
        pose=ns.Pose((0.2, 0.0, 0.1)),
        limits=CommandLimits(max_velocity=0.8, max_acceleration=2.0, max_angular_acceleration=3.0),
    ),
}


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("kind", ["geometry_msgs/Twist", STAMPED_TWIST])
def test_velocity_commands_move_the_model(
    master: RosMaster,
    publish: Callable[..., RosPublisher],
    caplog: pytest.LogCaptureFixture,
    kind: str,
    drive: str,
) -> None:
    """The states at each 20 ms of the clock are those of the recorded commands, each from the next step on."""
    clock, publisher = publish("rosgraph_msgs/Clock", "/clock"), publish(kind, "/auv/cmd_vel")
    start, step = ns.Pose((1.0, 2.0, 3.0), (np.cos(0.4), 0.0, 0.0, np.sin(0.4))), 20_000_000
    root = ns.Pose((0.05, 0.0, -0.1))
    context = LogContext(model="robot", root=root, command_topic="cmd_vel")
    frame = DrivenFrame("robot::base_link", context, start, DRIVES[drive])
    commands = {2: (0.5, 0.0, 0.3), 10: (1.0, 0.0, -0.5), 25: (-0.2, 0.0, 0.0)}
    states: list[StampedState] = []
    with subscribe(master, "", frame) as subscriber:
        wait_for(lambda: publisher.headers and clock.headers)
        for index in range(40):
            if index in commands:
                vx, vy, wz = commands[index]
                motion = twist((vx, vy, 0.0, 0.0, 0.0, wz))
                content = (motion.linear, motion.angular) if kind != STAMPED_TWIST else (header(1, "base_link"), motion)
                publisher.send(encode(kind, make(kind.replace("/", "/msg/"), *content)))
                wait_for(lambda: subscriber._commands.link.command[::5] == (vx, wz))  # type: ignore[attr-defined]  # noqa: B023
            stamp = SECOND + index * step
            clock.send(struct.pack("<II", stamp // SECOND, stamp % SECOND))
            states += take(subscriber, 1)
    assert [one.stamp for one in states] == [SECOND + index * step for index in range(40)]
    rows = {0: (0.0, 0.0, 0.0), **{index - 1: command for index, command in commands.items()}, 39: (0.0, 0.0, 0.0)}
    linear, angular = ([[row[0], row[1], 0.0] for row in rows.values()], [[0.0, 0.0, row[2]] for row in rows.values()])
    motion = velocity_commands([0.02 * index for index in rows], linear, angular)
    driven = root if DRIVES[drive] is None else DRIVES[drive].pose  # type: ignore[union-attr]
    expected = attach(motion.place(DRIVES[drive], start @ driven), driven.inverse() @ root)
    block = expected.at(np.arange(40) * 0.02)
    received = np.array([state_row(one.state) for one in states])
    assert np.abs(received[:, :3] - block.position_w).max() < 1e-12
    assert np.abs(received[:, 3:7] - block.rotation_wb).max() < 1e-12
    # At a jump, a state has the velocity of the step that it ends; the recorded commands hold from their time on.
    smooth = [index for index in range(40) if DRIVES[drive] or index not in {one - 1 for one in commands} | {39}]
    assert np.abs(received[smooth, 7:10] - block.velocity_w[smooth]).max() < 1e-12
    assert np.abs(received[smooth, 10:13] - block.angular_velocity_b[smooth]).max() < 1e-12
    assert not caplog.messages


def test_commands_wait_for_the_clock_of_a_simulation(
    master: RosMaster, publish: Callable[..., RosPublisher], start_clock: Callable[[int], RosPublisher]
) -> None:
    """The run can start before the simulator."""
    master.parameters["/use_sim_time"] = True
    publish("geometry_msgs/Twist", "/cmd_vel")
    with subscribe(master, "") as subscriber:
        start_clock(7 * SECOND)
        assert take(subscriber, 1)[0].stamp == 7 * SECOND


THREADS = {
    "commands": (CommandedLink, "advance", "topic /cmd_vel: velocity commands: internal error: "),
    "master": (Master, "_update", "topic /cmd_vel: ROS master: internal error: "),
    "node": (Ros1Node, "_handle_events", "topic /cmd_vel: the node was shut down: internal error: "),
    "connection": (Ros1Subscriber, "handle", "topic /cmd_vel: node /gazebo: internal error: "),
}


@pytest.mark.parametrize("thread", THREADS)
def test_unexpected_error_in_a_thread_ends_the_states(
    master: RosMaster, publish: Callable[..., RosPublisher], monkeypatch: pytest.MonkeyPatch, thread: str
) -> None:
    """A thread that ended without a word would let the run wait for ever."""
    owner, method, problem = THREADS[thread]
    publisher = publish("geometry_msgs/Twist", "/cmd_vel")

    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError("test")

    with subscribe(master, "?topic=/cmd_vel") as subscriber:
        wait_for(lambda: publisher.headers)
        monkeypatch.setattr(owner, method, crash)
        if thread == "master":
            subscriber._node.master.add(Registration("/x", "*"))  # type: ignore[attr-defined]
        if thread == "node":
            parts = urlsplit(master.subscribers["/cmd_vel"][subscriber._node.caller_id])  # type: ignore[attr-defined]
            socket.create_connection((parts.hostname, parts.port)).close()
        publisher.send(encode("geometry_msgs/Twist", twist((0.5,) * 6)))
        assert take_error(subscriber) == f"{problem}ZeroDivisionError('test')"


@pytest.mark.parametrize("name", ["navsense-commands", "navsense-ros1-master", "navsense-ros1"])
def test_missing_thread_is_an_error(master: RosMaster, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The system limits the number of threads."""
    start = threading.Thread.start

    def limit(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limit)
    query = "?topic=/cmd_vel&type=geometry_msgs/Twist"
    with pytest.raises(MotionError, match="cannot start another thread"), subscribe(master, query) as subscriber:
        take(subscriber, 1_000_000)


def test_times_of_receipt_do_not_go_back_with_the_time_of_the_system(
    master: RosMaster, publish: Callable[..., RosPublisher], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("geometry_msgs/Twist", "/cmd_vel")
    with subscribe(master, "") as subscriber:
        states, now = take(subscriber, 1), time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now() - 100 * SECOND)
        states += take(subscriber, 5)
    assert {after.stamp - one.stamp for one, after in itertools.pairwise(states)} == {20_000_000}


def test_commands_that_a_drive_ignores_are_one_warning(
    master: RosMaster, publish: Callable[..., RosPublisher], caplog: pytest.LogCaptureFixture
) -> None:
    """An invalid command is dropped. Without /clock, the states follow the time of the system."""
    publisher, before = publish("geometry_msgs/Twist", "/cmd_vel"), time.time_ns()
    frame = DrivenFrame("robot::base_link", drive=DRIVES["differential"])
    with subscribe(master, "", frame) as subscriber:
        wait_for(lambda: publisher.headers)
        for vx in (np.nan, 0.5):
            motion = twist((vx, 0.25, 0.0, 0.0, 0.0, 0.0))
            publisher.send(encode("geometry_msgs/Twist", motion))
        publisher.send(b"abc")
        states = take(subscriber, 10)
    assert before < states[0].stamp
    assert {after.stamp - one.stamp for one, after in itertools.pairwise(states)} == {20_000_000}
    assert states[-1].state.velocity is not None
    assert states[-1].state.velocity[0] > 0.0
    texts = [text.partition(": topic /cmd_vel: ")[2] for text in caplog.messages]
    assert texts[0].startswith("node /gazebo sent an invalid command, which is dropped: velocity command: (nan, 0.25")
    assert texts[1] == "the motion ignores vy of the commands: plug-in DiffDrive follows vx, wz"
    assert texts[2].startswith("node /gazebo sent a message of 3 bytes")
