"""The motion of ROS 2 topics: publishers on Fast DDS with types of its generator, on Cyclone DDS, and on Zenoh.

rosbags serialises the messages, so the layouts are not those of navsense. Each test on DDS runs in a network namespace
of its own, or is skipped.
"""

from __future__ import annotations

import itertools
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense import streams
from navsense.core.errors import FieldError, MotionError
from navsense.core.typing import FloatArray
from navsense.messages.world_messages import make_clock_encoder
from navsense.motion.base import LogContext
from navsense.recordings.recorded_motion import load_motion
from navsense.streams import DrivenFrame, StampedState, StreamUrl, Subscriber
from navsense.streams.ros2 import currents
from navsense.streams.ros2.currents import Ros2CurrentSubscriber, open_ros2_current
from navsense.streams.ros2.naming import PARTICIPANT_USER_DATA, decode_discovery_info, encode_discovery_info
from navsense.streams.ros2.remote import Receive, RemotePublisher, Warn
from navsense.streams.ros2.subscriber import MOTION_TYPES, Ros2Subscriber, open_motion
from navsense.streams.ros_currents import CURRENT_TYPES
from navsense.streams.ros_messages import CdrReader, format_ros2_type
from navsense.streams.ros_motion import MotionTopic
from tests.streams.network_namespace import network_namespace

pytest.importorskip("cyclonedds", reason="needs cyclonedds (pip install 'navsense[ros2]')")

from cyclonedds.qos import Policy

from navsense.streams.ros2.dds import DdsTopicWriter
from tests.streams.ros2_peers import FastDdsPeer, Ros2Peer, build_fastdds_peer, wait_for

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300), pytest.mark.requirement("LIV-7")]

SECOND = 10**9
DOMAIN = 7
URL = f"ros2://?domain={DOMAIN}&wait=20&topic="
FRAME = DrivenFrame("robot::base_link", LogContext(model="robot"))

ODOMETRY, POSE, STAMPED = "nav_msgs/msg/Odometry", "geometry_msgs/msg/Pose", "geometry_msgs/msg/PoseStamped"
COVARIANCE, TRANSFORM = "geometry_msgs/msg/PoseWithCovarianceStamped", "geometry_msgs/msg/TransformStamped"
CLOCK, TF = "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage"
TWIST, STAMPED_TWIST = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"

STORE = get_typestore(Stores.ROS2_JAZZY)
BEST_EFFORT = Policy.Reliability.BestEffort

WORLD = """<sdf version="1.10"><world name="live"><model name="robot"><link name="base_link">
  <sensor name="imu" type="imu"><update_rate>200</update_rate><imu><linear_acceleration><x>
    <noise type="gaussian"><mean>0</mean><stddev>0.01</stddev></noise></x></linear_acceleration></imu></sensor>
  <sensor name="altimeter" type="altimeter"><update_rate>20</update_rate></sensor></link></model></world></sdf>"""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Enter a network namespace, and check that no thread of a subscriber is left."""
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    with network_namespace():
        yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("navsense")]


@pytest.fixture
def peer(network: None) -> Iterator[Ros2Peer]:
    peer = Ros2Peer(DOMAIN)
    yield peer
    if peer.is_open:
        peer.close()


def make(kind: str, *values: Any) -> Any:
    return STORE.types[kind if "/" in kind else f"geometry_msgs/msg/{kind}"](*values)


def header(stamp: int, frame: str) -> Any:
    seconds, nanoseconds = divmod(stamp, SECOND)
    return make("std_msgs/msg/Header", make("builtin_interfaces/msg/Time", seconds, nanoseconds), frame)


def vector(values: Any) -> Any:
    return make("Vector3", *map(float, values))


def twist(values: Any) -> Any:
    return make("Twist", vector(values[:3]), vector(values[3:]))


def build(kind: str, stamp: int, values: Any, velocity: Any = (0.0,) * 6) -> bytes:
    """Return a message with a pose (x y z, w x y z) and a twist."""
    x, y, z, qw, qx, qy, qz = map(float, values)
    quaternion = make("Quaternion", qx, qy, qz, qw)
    pose = make("Pose", make("Point", x, y, z), quaternion)
    transform = make("Transform", vector((x, y, z)), quaternion)
    camera = make(
        "TransformStamped", header(stamp, "base_link"), "camera", make("Transform", vector((5, 5, 5)), quaternion)
    )
    noise = np.arange(36.0)
    content: dict[str, tuple[Any, ...]] = {
        ODOMETRY: (
            header(stamp, "odom"),
            "base_link",
            make("PoseWithCovariance", pose, noise),
            make("TwistWithCovariance", twist(velocity), noise),
        ),
        POSE: (pose.position, quaternion),
        STAMPED: (header(stamp, "map"), pose),
        COVARIANCE: (header(stamp, "map"), make("PoseWithCovariance", pose, noise)),
        TRANSFORM: (header(stamp, "odom"), "base_link", transform),
        TF: ([make("TransformStamped", header(stamp, "odom"), "base_link", transform), camera],),
        TWIST: (vector(velocity[:3]), vector(velocity[3:])),
        STAMPED_TWIST: (header(stamp, "base_link"), twist(velocity)),
    }
    return bytes(STORE.serialize_cdr(make(kind, *content[kind]), kind))


def draw(count: int) -> FloatArray:
    """Return poses with unit quaternions, and twists (count, 13)."""
    rows = np.random.default_rng(5).normal(size=(count, 13))
    rows[:, 3:7] = np.array((0.9, 0.1, -0.2, 0.3)) + 0.02 * rows[:, 3:7]
    rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
    return rows


class ListedTopics:
    """A transport with publishers in a list. The test sends their messages."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, *publishers: RemotePublisher) -> None:
        self.publishers = list(publishers)
        self.receivers: dict[str, Receive] = {}
        self.is_open = True

    def list_publishers(self) -> list[RemotePublisher]:
        return [one for one in self.publishers if one.is_active]

    def subscribe(self, topic: str, _types: Sequence[str], receive: Receive, _warn: Warn) -> None:
        self.receivers[topic] = receive

    def close(self) -> None:
        self.is_open = False

    def send(self, publisher: RemotePublisher, *messages: bytes) -> None:
        for message in messages:
            self.receivers[publisher.topic](publisher, message)


def follow(topics: ListedTopics, query: str = "?topic=/odom", frame: DrivenFrame = FRAME) -> Ros2Subscriber:
    _, url = streams.stream.parse_url(f"ros2://{query}", "motion")
    return open_motion(url, frame, lambda *_: None, lambda: lambda *_: topics)


def take(subscriber: Subscriber, count: int) -> list[StampedState]:
    """Return the next states of a subscriber."""
    states: list[StampedState] = []
    until = time.monotonic() + 120.0  # a new cache compiles the kernels of velocity commands
    while len(states) < count:
        assert time.monotonic() < until, states
        states += subscriber.receive(0.1)
    return states


def write(writer: DdsTopicWriter, *messages: bytes) -> None:
    """Send messages when the subscriber has found the writer."""
    wait_for(lambda: writer.has_readers)
    for message in messages:
        writer.write(message)


@pytest.mark.parametrize("sign", ["+", "-"])
def test_run_follows_odometry_of_fast_dds_and_repeats_bitwise(
    network: None, request: pytest.FixtureRequest, tmp_path: Path, sign: str
) -> None:
    """Of a reliable and of a best-effort publisher. The truth is what was sent, and the recording repeats the run."""
    world_file = tmp_path / "world.sdf"
    world_file.write_text(WORLD)
    world, rows = ns.load(world_file), draw(80)
    rows[:, :3] = np.cumsum(np.full((80, 3), 0.01), axis=0)
    stamps = [812 * SECOND + 300_000_007 + 10_000_019 * index for index in range(len(rows))]
    with FastDdsPeer(build_fastdds_peer(request.config), DOMAIN, [f"{sign}Odometry:/odom"]) as peer:

        def send() -> None:
            wait_for(lambda: ["1"] in peer.lines["matched"])
            for stamp, row in zip(stamps, rows.tolist(), strict=True):
                position, (w, *axis), velocity = row[:3], row[3:7], row[7:]
                peer.send(*divmod(stamp, SECOND), "odom", "base_link", *position, *axis, w, *velocity)
                time.sleep(0.002)  # a best-effort publisher that is faster loses messages

        sender = threading.Thread(target=send)
        sender.start()
        ns.record(world, tmp_path / "a.mcap", 0.6, seed=3, motion=URL + "/odom")
        sender.join()
        peer.finish()
    ns.record(world, tmp_path / "b.mcap", seed=3, epoch=812, motion=str(tmp_path / "a.mcap"))
    first, second = ns.open(tmp_path / "a.mcap"), ns.open(tmp_path / "b.mcap")
    truth = first.truth["robot::base_link"]
    count = len(truth.time)
    np.testing.assert_array_equal(np.rint(truth.time * 1e9).astype(np.int64), np.array(stamps[:count]) - 812 * SECOND)
    np.testing.assert_array_equal(truth.position, rows[:count, :3])
    np.testing.assert_allclose(truth.orientation, rows[:count, 3:7], rtol=0.0, atol=5e-16)
    assert list(first) == list(second) == ["robot::base_link::imu", "robot::base_link::altimeter"]
    for name, reading in first.items():
        np.testing.assert_array_equal(reading.stamp, second[name].stamp)
        for array, values in reading.items():
            np.testing.assert_array_equal(values, second[name][array])


@pytest.mark.parametrize("kind", [format_ros2_type(kind) for kind in MOTION_TYPES[:6]])
def test_messages_of_rosbags_give_the_states_of_a_recording_of_the_topic(tmp_path: Path, kind: str) -> None:
    """Bitwise, with the padding of each length of the names."""
    rows = draw(20)
    stamps = [3 * SECOND + 1_000_007 * index for index in range(len(rows))]
    messages = [build(kind, stamp, row[:7], row[7:]) for stamp, row in zip(stamps, rows, strict=True)]
    query = "&frame=base_link" if kind == TF else ""
    url = StreamUrl("ros2://", "ros2", options={"frame": "base_link"} if query else {})
    topic = MotionTopic(url, FRAME, MOTION_TYPES, format_ros2_type)
    topic.choose("/odom", ["/odom"], {"/odom": kind})
    samples = [topic.find_sample(kind, CdrReader(message), lambda *_: None) for message in messages]
    assert all(samples)
    states = [topic.make_state(sample) for sample in samples if sample is not None]
    if topic.content.has_stamp:
        assert [sample.stamp for sample in samples if sample is not None] == stamps
    for state, row in zip(states, rows, strict=True):
        assert state.pose == ns.Pose(tuple(row[:3].tolist()), tuple(row[3:7].tolist()))
        if kind == ODOMETRY:
            assert state.velocity == tuple(row[7:10].tolist())
            assert (state.angular_velocity, state.frame) == (tuple(row[10:].tolist()), "body")
        else:
            assert state.velocity is state.angular_velocity is None
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/odom", kind, typestore=STORE)
        for stamp, message in zip(stamps, messages, strict=True):
            writer.write(connection, stamp, message)
    if kind != POSE:
        motion = load_motion(f"{tmp_path / 'bag'}?topic=/odom{query}")
        block = motion.at((np.array(stamps) - stamps[0]) / 1e9)
        np.testing.assert_allclose(block.position_w, rows[:, :3], rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(block.rotation_wb, rows[:, 3:7], rtol=0.0, atol=1e-12)


def test_frames_of_each_length_are_read() -> None:
    """The padding after a name depends on its length."""
    topic = MotionTopic(StreamUrl("ros2://", "ros2"), FRAME, MOTION_TYPES, format_ros2_type)
    topic.choose("/odom", ["/odom"], {"/odom": ODOMETRY})
    for parent, child in itertools.product(range(9), range(9)):
        message: Any = STORE.deserialize_cdr(build(ODOMETRY, 1, (1, 2, 3, 1, 0, 0, 0), (4, 5, 6, 7, 8, 9)), ODOMETRY)
        message.header.frame_id, message.child_frame_id = "p" * parent, "c" * child
        sample = topic.find_sample(ODOMETRY, CdrReader(bytes(STORE.serialize_cdr(message, ODOMETRY))), lambda *_: None)
        assert sample is not None
        assert (sample.parent, sample.frame) == ("p" * parent, "c" * child)
        assert (sample.position, sample.linear, sample.angular) == ((1, 2, 3), (4, 5, 6), (7, 8, 9))


def test_invalid_messages_and_states_are_one_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    good = build(ODOMETRY, SECOND, (1, 2, 3, 1, 0, 0, 0))
    sim = RemotePublisher("/odom", ODOMETRY, "01", node="/sim")
    invalid = [
        (good[:100], "sent a message of 100 bytes that ends within its fields"),
        (good + bytes(8), "sent a message of"),
        (b"\0\0" + good[2:], "sent a message with the encapsulation 0000, not little-endian CDR"),
        (b"", "sent a message of 0 bytes"),
        (good[:8] + b"\xff" * 4 + good[12:], "sent a time with 4294967295 ns after the second"),
        (build(ODOMETRY, SECOND, (1, 2, 3, 0, 0, 0, 0)), "sent an invalid state, which is dropped: "),
        (build(ODOMETRY, SECOND, (np.nan, 2, 3, 1, 0, 0, 0)), "sent an invalid state, which is dropped: "),
    ]
    for message, problem in invalid:
        caplog.clear()
        topics = ListedTopics(sim)
        with follow(topics) as subscriber:
            topics.send(sim, message, message, good)
            (state,) = take(subscriber, 1)
        assert state.stamp == SECOND
        (text,) = caplog.messages
        assert text.startswith(f"ros2://?topic=/odom: topic /odom: node /sim {problem}")


def test_one_of_several_publishers_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    """The first one, until it disconnects."""
    first, second = (RemotePublisher("/odom", ODOMETRY, "", node=name) for name in ("/sim", "/filter"))
    messages = [build(ODOMETRY, stamp * SECOND, (stamp, 0, 0, 1, 0, 0, 0)) for stamp in range(1, 5)]
    topics = ListedTopics(first, second)
    with follow(topics) as subscriber:
        topics.send(first, messages[0])
        topics.send(second, messages[1])
        topics.send(first, messages[2])
        first.is_active = False
        topics.send(second, messages[3])
        assert [state.stamp for state in take(subscriber, 3)] == [SECOND, 3 * SECOND, 4 * SECOND]
    assert [text.partition("topic /odom: ")[2] for text in caplog.messages] == [
        "node /sim and node /filter publish it; the messages of node /filter are not used"
    ]
    assert not topics.is_open


def test_reader_follows_the_reliability_of_the_publishers(peer: Ros2Peer, caplog: pytest.LogCaptureFixture) -> None:
    """A best-effort publisher that starts later is followed when the reliable one leaves."""
    first = Ros2Peer(DOMAIN)
    reliable = first.write_topic("/odom", ODOMETRY)
    with streams.open_subscriber(URL + "/odom", FRAME) as subscriber:
        write(reliable, build(ODOMETRY, SECOND, (1, 0, 0, 1, 0, 0, 0)))
        assert take(subscriber, 1)[0].stamp == SECOND
        best_effort = peer.write_topic("/odom", ODOMETRY, BEST_EFFORT)
        write(best_effort, build(ODOMETRY, 2 * SECOND, (2, 0, 0, 1, 0, 0, 0)))
        wait_for(lambda: f"publisher {best_effort.guid.hex()} publish it" in caplog.text)
        wait_for(lambda: reliable.has_readers)
        reliable.write(build(ODOMETRY, 3 * SECOND, (3, 0, 0, 1, 0, 0, 0)))
        assert take(subscriber, 1)[0].stamp == 3 * SECOND
        first.close()
        states: list[StampedState] = []
        while not states:
            best_effort.write(build(ODOMETRY, 4 * SECOND, (4, 0, 0, 1, 0, 0, 0)))
            states += subscriber.receive(0.05)
        assert states[0].stamp == 4 * SECOND


PUBLISHERS = [
    RemotePublisher(topic, kind, "")
    for topic, kind in (("/odom", ODOMETRY), ("/pose", STAMPED), ("/imu", "sensor_msgs/msg/Imu"), ("/tf", TF))
]


def test_topic_is_found_by_its_type_or_ending() -> None:
    """Topics with poses have priority over transforms."""
    with follow(ListedTopics(*PUBLISHERS[1:]), "?wait=0") as subscriber:
        assert subscriber.topic == "topic /pose"
    with follow(ListedTopics(*PUBLISHERS), "?type=nav_msgs/Odometry&wait=0") as subscriber:
        assert subscriber.topic == "topic /odom"
    with follow(ListedTopics(RemotePublisher("/auv/odom", ODOMETRY, "")), "?topic=odom") as subscriber:
        assert subscriber.topic == "topic /auv/odom"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (
            "?topic=/missing",
            "topic /missing: no publisher in domain 0 within 0 s; topics that were found: /imu (sensor_msgs/msg/Imu)",
        ),
        (
            "?type=geometry_msgs/Twist",
            "topics that can be followed: no publisher in domain 0 within 0 s; topics",
        ),
        ("?topic=/imu", "type of topic /imu: sensor_msgs/msg/Imu; must be one of nav_msgs/msg/Odometry, "),
        ("?topic=/odom&type=geometry_msgs/PoseStamped", "option type: geometry_msgs/msg/PoseStamped; topic /odom is "),
        ("", "2 topics; must be one of /odom (nav_msgs/msg/Odometry), /pose (geometry_msgs/"),
        ("?topic=/pose&twist=world", "option twist: world; selects the axes of an odometry"),
        ("?topic=/pose&frame=a", "option frame: a; geometry_msgs/msg/PoseStamped has no name of a frame that moves"),
    ],
)
def test_topics_that_cannot_be_followed_are_errors(monkeypatch: pytest.MonkeyPatch, query: str, problem: str) -> None:
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    topics, query = ListedTopics(*PUBLISHERS), f"{query}{'&' if query else '?'}wait=0"
    with pytest.raises(MotionError) as error:
        follow(topics, query)
    assert str(error.value).startswith(f"ros2://{query}: {problem}")
    assert not topics.is_open


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?type=std_msgs/String", "option type: std_msgs/msg/String; must be one of nav_msgs/msg/Odometry"),
        ("?twist=x", "option twist: x; must be one of body, world, none"),
        ("?domain=300", "domain: 300; must be a number from 0 to 232"),
        ("?model=robot", "option of the URL: model; must be one of topic, "),
        ("/odom", "path of the URL: /odom; must be empty"),
    ],
)
def test_invalid_urls_of_a_motion_are_errors(query: str, problem: str) -> None:
    for scheme in ("ros2", "ros2+zenoh"):
        with pytest.raises(MotionError) as error:
            streams.open_subscriber(f"{scheme}://127.0.0.1{query}", FRAME)
        assert str(error.value).startswith(f"{scheme}://127.0.0.1{query}: {problem}")


def clock_message(stamp: int) -> bytes:
    return b"\0\1\0\0" + struct.pack("<iI", *divmod(stamp, SECOND))


def test_messages_without_a_stamp_get_the_time_of_the_clock() -> None:
    """Of the messages of one time, the first one is used."""
    clock, pose = RemotePublisher("/clock", CLOCK, ""), RemotePublisher("/pose", POSE, "")
    topics = ListedTopics(pose, clock)
    with follow(topics, "?topic=/pose") as subscriber:
        for second in range(5):
            topics.send(clock, clock_message(second * SECOND + 7))
            topics.send(pose, *(build(POSE, 0, (second + x, 0, 0, 1, 0, 0, 0)) for x in (0.0, 0.5)))
        states = take(subscriber, 5)
    assert [state.stamp for state in states] == [second * SECOND + 7 for second in range(5)]
    assert [state.state.pose.position[0] for state in states] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_messages_without_a_stamp_and_without_a_clock_get_the_time_of_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as a publisher of /clock would have been found. Types with a stamp of 0 are the same after a second."""
    elapsed = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: elapsed)
    for kind in (POSE, STAMPED):
        publisher = RemotePublisher("/pose", kind, "")
        topics = ListedTopics(publisher)
        with follow(topics, "?topic=/pose&wait=0") as subscriber:
            message, before = build(kind, 0, (1, 0, 0, 1, 0, 0, 0)), time.time_ns()
            topics.send(publisher, message)
            assert not subscriber.receive(0.0)
            for _ in range(3):
                elapsed += 1.1
                topics.send(publisher, message)
            stamps = [state.stamp for state in subscriber.receive(0.0)]
        assert before <= stamps[0] <= stamps[-1] <= time.time_ns()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [([0, 10, 20], [0, 10, 20]), ([0, 500 * SECOND, 501 * SECOND], [500 * SECOND, 501 * SECOND])],
)
def test_first_stamp_of_0_is_a_start_or_a_node_without_its_clock(sent: list[int], expected: list[int]) -> None:
    publisher = RemotePublisher("/pose", STAMPED, "")
    topics = ListedTopics(publisher)
    with follow(topics, "?topic=/pose") as subscriber:
        topics.send(publisher, *(build(STAMPED, stamp, (1, 0, 0, 1, 0, 0, 0)) for stamp in sent))
        assert [state.stamp for state in take(subscriber, len(expected))] == expected


@pytest.mark.parametrize("kind", [TWIST, STAMPED_TWIST])
def test_velocity_commands_move_the_model(kind: str) -> None:
    """A state each 20 ms of /clock. A command acts from the next step on."""
    clock, commands = RemotePublisher("/clock", CLOCK, ""), RemotePublisher("/cmd_vel", kind, "")
    topics = ListedTopics(clock, commands)
    states: list[StampedState] = []
    with follow(topics, "?topic=/cmd_vel") as subscriber:
        for step in range(20):
            if step == 5:
                topics.send(commands, build(kind, 0, (0, 0, 0, 1, 0, 0, 0), (1.0, 0, 0, 0, 0, 0)))
            topics.send(clock, clock_message(3 * SECOND + 20_000_000 * step))
            states += take(subscriber, 1)
    assert [state.stamp for state in states] == [3 * SECOND + 20_000_000 * step for step in range(20)]
    assert states[4].state.pose.position[0] == 0.0
    assert states[-1].state.pose.position[0] == pytest.approx(0.02 * 15, abs=1e-12)


def test_publishers_of_this_process_are_not_followed(peer: Ros2Peer) -> None:
    """A run that publishes the truth of its robot must not follow itself."""
    from navsense.streams.ros2.dds import DdsNode
    from navsense.streams.ros2.dds_topics import DdsTopics

    _, url = streams.stream.parse_url("ros2://")
    own, topics = DdsNode(url, DOMAIN, "/own", is_humble=False), DdsTopics(url, DOMAIN, print)
    encoder = make_clock_encoder()
    own.add_writer("/clock", encoder, "", is_latched=False)
    own.announce()
    writer = peer.write_topic("/odom", ODOMETRY)
    reader = Ros2Peer(DOMAIN)
    reader.read_topic("/clock", CLOCK)
    wait_for(lambda: reader.has_writer("/clock") and bool(topics.list_publishers()))
    assert [(one.topic, str(one)) for one in topics.list_publishers()] == [("/odom", f"publisher {writer.guid.hex()}")]
    for one in (own, topics, reader):
        one.close()


def test_discovery_info_gives_the_node_of_each_writer() -> None:
    participant, guids = bytes(range(16)), [bytes([number]) * 16 for number in (1, 2)]
    for size in (16, 24):
        data = encode_discovery_info(participant, "/auv/sim", guids, size)
        assert decode_discovery_info(data) == dict.fromkeys(guids, "/auv/sim")
    for data in (b"", b"\0\1\0\0", PARTICIPANT_USER_DATA * 20):
        with pytest.raises(ValueError, match="ros_discovery_info"):
            decode_discovery_info(data)


CURRENT_FIELDS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    STAMPED_TWIST: lambda v: (header(1, "world"), twist((*v, 7, 8, 9))),
    TWIST: lambda v: (vector(v), vector((7, 8, 9))),
    "geometry_msgs/msg/TwistWithCovarianceStamped": lambda v: (
        header(1, "world"),
        make("TwistWithCovariance", twist((*v, 7, 8, 9)), np.arange(36.0)),
    ),
    "geometry_msgs/msg/Vector3Stamped": lambda v: (header(1, "world"), vector(v)),
    "geometry_msgs/msg/Vector3": lambda v: v,
}
"""Message type -> what makes its fields."""


def build_current(kind: str, values: Any) -> bytes:
    return bytes(STORE.serialize_cdr(make(kind, *CURRENT_FIELDS[kind](values)), kind))


def follow_current(topics: ListedTopics, query: str = "") -> Ros2CurrentSubscriber:
    _, url = streams.stream.parse_current_url(f"ros2://{query}")
    return open_ros2_current(url, lambda *_: None, lambda: lambda *_: topics)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("kind", CURRENT_FIELDS)
def test_current_is_received(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The newest velocity, bitwise. An invalid one is dropped, with a warning."""
    assert [format_ros2_type(one) for one in CURRENT_TYPES] == list(CURRENT_FIELDS)
    publisher = RemotePublisher("/hydrodynamics/current_velocity", kind, "", node="/sea")
    topics = ListedTopics(publisher)
    with follow_current(topics, "?frame=ned") as subscriber:
        assert subscriber.frame == "ned"
        for velocity in ((0.1, -0.2, 1.0 / 3.0), (0.4, 0.5, 0.6)):
            topics.send(publisher, build_current(kind, velocity))
            assert subscriber.receive(1.0) == [velocity]
        topics.send(publisher, build_current(kind, (np.nan, 0.0, 0.0)))
        assert not subscriber.receive(0.0)
    problem = "node /sea sent a message that is dropped: velocity of a current (m/s): nan"
    assert [problem in text for text in caplog.messages] == [True]


@pytest.mark.requirement("CUR-1")
def test_current_of_a_later_publisher_on_dds(peer: Ros2Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(currents, "LISTEN_TIME", 0.0)
    with streams.open_current(f"ros2://?domain={DOMAIN}&topic=/flow") as subscriber:
        writer = peer.write_topic("/flow", "geometry_msgs/msg/Vector3", BEST_EFFORT)
        write(writer, build_current("geometry_msgs/msg/Vector3", (0.1, 0.2, 0.3)))
        assert subscriber.receive(20.0) == [(0.1, 0.2, 0.3)]


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?topic=/odom", "type of topic /odom: nav_msgs/msg/Odometry; must be one of geometry_msgs/msg/TwistStamped, "),
        (
            "?type=nav_msgs/Odometry",
            "option type: nav_msgs/msg/Odometry; must be one of geometry_msgs/msg/TwistStamped",
        ),
        ("?frame=body", "frame of a current: body; must be one of "),
        ("?twist=body", "option of the URL: twist; must be one of topic, type, frame, domain"),
    ],
)
def test_currents_that_cannot_be_followed_are_errors(query: str, problem: str) -> None:
    with pytest.raises(FieldError) as error:
        follow_current(ListedTopics(*PUBLISHERS), query)
    assert str(error.value).startswith(f"ros2://{query}: {problem}")
