"""The velocity of the water from a topic of Gazebo transport.

All tests with a network run in a namespace of their own, or are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from navsense import streams
from navsense.core.errors import FieldError
from navsense.core.typing import Vector
from tests.recordings.test_gazebo_poses import GazeboMessages
from tests.streams.network_namespace import network_namespace

pytest.importorskip("zmq", reason="needs pyzmq (pip install 'navsense[gz]')")
from navsense.streams.gz import topic_receiver as topic_receiver_module
from tests.streams.gz_peer import Simulator, wait_until

pytestmark = [pytest.mark.timeout(200), pytest.mark.requirement("LIV-3", "CUR-1")]

URL, TOPIC, VECTOR = "gz://?partition=sea", "@/sea@/ocean_current", "gz.msgs.Vector3d"


@pytest.fixture
def network() -> Iterator[None]:
    with network_namespace():
        yield


def make_velocity(velocity: Vector, type_name: str = VECTOR) -> bytes:
    """Return a message of protobuf."""
    package, _, kind = type_name.rpartition(".")
    message = GazeboMessages(package).make(kind)
    part = message.linear if kind == "Twist" else message
    part.x, part.y, part.z = velocity
    if kind == "Twist":
        message.angular.z = 9.0
    data: bytes = message.SerializeToString()
    return data


def receive(subscriber: streams.CurrentSubscriber) -> Vector:
    """Return the next velocity."""
    received: list[Vector] = []

    def is_received() -> bool:
        received.extend(subscriber.receive(0.1))
        return bool(received)

    wait_until(is_received)
    return received[-1]


@pytest.mark.parametrize("package", ["gz.msgs", "ignition.msgs"])
@pytest.mark.parametrize("kind", ["Vector3d", "Twist"])
def test_velocity_of_a_message_is_received(network: None, package: str, kind: str) -> None:
    """Also from a topic of another name, and with zeros, which protobuf omits."""
    simulator = Simulator("@/sea@/model/auv/ocean_current", f"{package}.{kind}")
    try:
        with streams.open_current(f"{URL}&topic=model/auv/ocean_current&frame=ned&type={kind}") as subscriber:
            assert (subscriber.topic, subscriber.frame) == ("topic /model/auv/ocean_current", "ned")
            simulator.wait_for_subscriber()
            for velocity in ((0.4, -0.1, 0.025), (0.0, 0.3, 0.0), (0.0, 0.0, 0.0)):
                simulator.publish(make_velocity(velocity, simulator.type))
                assert receive(subscriber) == velocity
    finally:
        simulator.close()


def test_publishers_come_and_vanish(network: None, caplog: pytest.LogCaptureFixture) -> None:
    """The last velocity of one that ends at once is used. All publishers are used, as by a node of Gazebo."""
    with streams.open_current(URL) as subscriber:
        first = Simulator(TOPIC, VECTOR)
        first.wait_for_subscriber()
        first.publish(make_velocity((0.1, 0.0, 0.0)))
        first.close()
        assert receive(subscriber) == (0.1, 0.0, 0.0)
        second, third = Simulator(TOPIC, VECTOR), Simulator(TOPIC, "ignition.msgs.Twist")
        try:
            for simulator, speed in ((second, 0.2), (third, 0.3)):
                simulator.wait_for_subscriber()
                simulator.publish(make_velocity((speed, 0.0, 0.0), simulator.type))
                assert receive(subscriber) == (speed, 0.0, 0.0)
            second.publish(make_velocity((0.4, 0.0, 0.0)))
            assert receive(subscriber) == (0.4, 0.0, 0.0)
        finally:
            second.close()
            third.close()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_invalid_velocity_is_dropped_with_one_warning(network: None, caplog: pytest.LogCaptureFixture) -> None:
    simulator, other = Simulator(TOPIC, VECTOR), Simulator(TOPIC, "gz.msgs.IMU")
    try:
        with streams.open_current(URL) as subscriber:
            simulator.wait_for_subscriber()
            simulator.publish(b"\xff\xff\xff")
            for velocity in ((float("nan"), 0.0, 0.0), (0.0, float("inf"), 0.0), (0.0, 0.0, -1e3)):
                simulator.publish(make_velocity(velocity))
            simulator.publish(make_velocity((0.5, 0.0, 0.0)))
            assert receive(subscriber) == (0.5, 0.0, 0.0)
            wait_until(lambda: len(caplog.records) >= 2)
    finally:
        simulator.close()
        other.close()
    texts = sorted(record.getMessage() for record in caplog.records)
    prefix = f"{URL}: topic /ocean_current: "
    assert texts == [
        f"{prefix}process {other.peer.process} publishes the type gz.msgs.IMU; it is ignored",
        f"{prefix}{simulator.address} sent a {VECTOR} that is dropped: an integer is truncated",
    ]


def test_missing_publisher_is_a_warning(
    network: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topic_receiver_module, "MISSING_TIME", 0.0)
    with streams.open_current(URL):
        wait_until(lambda: bool(caplog.records))
    expected = f"{URL}: topic /ocean_current: no publisher in the partition sea yet; waiting"
    assert [record.getMessage() for record in caplog.records] == [expected]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("model=auv", "option of the URL: model; must be one of topic, type, frame, partition, version"),
        ("frame=body", "frame of a current: body; must be one of world, enu, ned"),
        ("type=Odometry", "option type: Odometry; must be one of Vector3d, Twist"),
        ("type=sim.Twist", "option type: sim.Twist"),
        ("version=16", "version: 16; must be a whole number from 11 to 15"),
    ],
)
def test_invalid_option_is_an_error(query: str, problem: str) -> None:
    with pytest.raises(FieldError, match=problem):
        streams.open_current(f"{URL}&{query}")
