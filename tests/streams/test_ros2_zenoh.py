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

import navsense as ns
from navsense import streams
from navsense.core.errors import RecordingError
from navsense.messages.schemas import DEFINITIONS, HUMBLE
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run

pytest.importorskip("zenoh", reason="needs eclipse-zenoh (pip install 'navsense[ros2]')")

from tests.streams.zenoh_router import ZenohClient, ZenohRouter

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


def test_zenoh_ros2_sdk_decodes_a_run(router: ZenohRouter, run: Run, tmp_path: Path) -> None:
    """Its key, its type hash and its decoding; a late subscriber gets the latched topic."""
    sdk = pytest.importorskip("zenoh_ros2_sdk", reason="needs zenoh-ros2-sdk")
    from zenoh_ros2_sdk.message_registry import get_registry
    from zenoh_ros2_sdk.qos import QosDurability, QosProfile

    for message_type, definition in DEFINITIONS.items():
        file = tmp_path / f"{message_type}.msg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(definition + "\n", encoding="utf-8")
    get_registry().messages_dir = tmp_path
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
