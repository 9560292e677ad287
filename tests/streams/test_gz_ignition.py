"""Gazebo transport with Debian's Ignition Transport 11: its command-line tools, and a program in C++.

    apt-get install --no-install-recommends ignition-transport-cli libignition-transport-dev libignition-msgs-dev g++

Each test runs in a network namespace of its own, or is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

import navsense as ns
from navsense import streams
from navsense.core.typing import Vector
from navsense.messages.gz import MESSAGES
from navsense.motion.base import LogContext
from navsense.recordings.info import make_recorded_run
from navsense.runner.run import Run
from navsense.simulation.real_time import RealTimeLimiter
from navsense.simulation.run_controls import RunControls
from navsense.streams.gz.poses import Entity, Target, find_chain_in_scene
from navsense.streams.gz.publisher import GzPublisher
from navsense.streams.subscriber import DrivenFrame, StampedState, Subscriber
from tests.recordings.test_gazebo_poses import FILES, GazeboMessages, set_pose
from tests.streams.network_namespace import network_namespace

pytest.importorskip("zmq", reason="needs pyzmq (pip install 'navsense[gz]')")
from tests.streams.gz_peer import DEADLINE, wait_until

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(300), pytest.mark.requirement("LIV-3")]

TOPIC_TOOL = Path("/usr/libexec/ignition/transport11/ign-transport-topic")
PROTO = Path("/usr/include/ignition/msgs8/ignition/msgs")

WORLD = """\
<sdf version="1.12">
  <world name="sea">
    <model name="auv">
      <link name="base">
        <sensor name="imu" type="imu">
          <update_rate>200</update_rate>
          <imu><angular_velocity><x><noise type="gaussian"><stddev>0.01</stddev></noise></x></angular_velocity></imu>
        </sensor>
        <sensor name="alt" type="altimeter"><update_rate>20</update_rate></sensor>
      </link>
    </model>
  </world>
</sdf>
"""

CURRENT_WORLD = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <navsense:current topic="/current" rate="20"><uniform>0.1 0 0</uniform></navsense:current>
    <model name="auv"><link name="body">
      <sensor name="dvl" type="dvl"><update_rate>5</update_rate></sensor>
      <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor>
    </link></model>
  </world>
</sdf>
"""

PREFIX = "/world/sea/model/auv/link/base/sensor"
IMU, ALTIMETER = f"{PREFIX}/imu/imu", f"{PREFIX}/alt/altimeter"

PROGRAM = """\
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <ignition/math/Quaternion.hh>
#include <ignition/msgs/imu.pb.h>
#include <ignition/msgs/pose_v.pb.h>
#include <ignition/msgs/scene.pb.h>
#include <ignition/transport/Node.hh>

namespace math = ignition::math;
namespace msgs = ignition::msgs;

static void wait()
{
  std::string line;
  std::getline(std::cin, line);
}

static bool waitUntil(const std::function<bool()> &isDone)
{
  for (int i = 0; i < 6000; ++i)
  {
    if (isDone())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return isDone();
}

// Receives until a line comes and `expected` messages have arrived.
static void subscribe(const std::string &topic, int expected)
{
  std::atomic<int> count{0};
  double sum = 0.0;
  ignition::transport::Node node;
  std::function<void(const msgs::IMU &)> receive = [&](const msgs::IMU &message)
  {
    sum += message.angular_velocity().x();
    ++count;
  };
  node.Subscribe(topic, receive);
  wait();
  waitUntil([&] { return count >= expected; });
  std::printf("%d %.17g\\n", count.load(), sum);
}

template <typename Entity> static Entity *name(Entity *entity, const std::string &text, int number)
{
  entity->set_name(text);
  entity->set_id(number);
  return entity;
}

static bool answer(msgs::Scene &scene)
{
  name(name(scene.add_model(), "other", 20)->add_link(), "arm", 21);
  auto robot = name(scene.add_model(), "robot", 8);
  name(robot->add_link(), "base", 9);
  name(robot->add_link(), "arm", 10);
  return true;
}

static void move(msgs::Pose *pose, const math::Vector3d &position, const math::Quaterniond &rotation)
{
  pose->mutable_position()->set_x(position.X());
  pose->mutable_position()->set_y(position.Y());
  pose->mutable_position()->set_z(position.Z());
  pose->mutable_orientation()->set_w(rotation.W());
  pose->mutable_orientation()->set_x(rotation.X());
  pose->mutable_orientation()->set_y(rotation.Y());
  pose->mutable_orientation()->set_z(rotation.Z());
}

static void print(const math::Vector3d &position, const math::Quaterniond &rotation)
{
  std::printf(" %a %a %a %a %a %a %a", position.X(), position.Y(), position.Z(),
              rotation.W(), rotation.X(), rotation.Y(), rotation.Z());
}

// Poses as SceneBroadcaster sends them: local names, relative to the parent. Prints those of robot and robot::arm.
// Until a line comes, it sends poses with the stamps 0, 1, 2, ... ns. Then come those from 1 s on.
static void simulate(int count)
{
  ignition::transport::Node node;
  auto publisher = node.Advertise<msgs::Pose_V>("/world/demo/dynamic_pose/info");
  std::function<bool(msgs::Scene &)> service = answer;
  node.Advertise("/world/demo/scene/info", service);
  std::atomic<bool> hasLine{false};
  std::thread reader([&] { wait(); hasLine = true; });
  for (int i = 0; !hasLine; ++i)
  {
    msgs::Pose_V message;
    message.mutable_header()->mutable_stamp()->set_nsec(i);
    move(name(message.add_pose(), "robot", 8), math::Vector3d::Zero, math::Quaterniond::Identity);
    move(name(message.add_pose(), "arm", 10), math::Vector3d::Zero, math::Quaterniond::Identity);
    publisher.Publish(message);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  reader.join();
  const bool isConnected = waitUntil([&] { return publisher.HasConnections(); });
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
  {
    const double t = i / 1000.0;
    const math::Vector3d place(std::sin(t) / 3.0, 2.0 * t, -1.0), reach(0.5, t / 7.0, 0.25);
    const math::Quaterniond heading(0.3 * t, 0.2, t), turn(std::sin(9.0 * t), 0.0, 0.1);
    msgs::Pose_V message;
    message.mutable_header()->mutable_stamp()->set_sec(1 + i / 1000);
    message.mutable_header()->mutable_stamp()->set_nsec(i % 1000 * 1000000);
    move(name(message.add_pose(), "other", 20), reach, turn);
    move(name(message.add_pose(), "robot", 8), place, heading);
    move(name(message.add_pose(), "arm", 21), place, turn);
    move(name(message.add_pose(), "arm", 10), reach, turn);
    publisher.Publish(message);
    print(place, heading);
    print(place + heading.RotateVector(reach), heading * turn);
    std::printf(" %d\\n", isConnected);
    std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
  }
  std::fflush(stdout);
  wait();
}

int main(int, char **argv)
{
  if (std::string(argv[1]) == "simulate")
    simulate(std::atoi(argv[2]));
  else
    subscribe(argv[1], std::atoi(argv[2]));
}
"""


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("IGN_IP", "127.0.0.1")
    monkeypatch.setenv("IGN_PARTITION", "sea")
    with network_namespace():
        yield


@pytest.fixture
def tool(network: None) -> Path:
    if not TOPIC_TOOL.exists():
        pytest.skip(f"needs {TOPIC_TOOL} of Debian's ignition-transport-cli")
    return TOPIC_TOOL


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program in C++ that subscribes to a topic, or is a simulator."""
    pkg_config, compiler = shutil.which("pkg-config"), shutil.which("g++")
    if pkg_config is None or compiler is None:
        pytest.skip("needs g++ and pkg-config")
    flags = subprocess.run(
        [pkg_config, "--cflags", "--libs", "ignition-transport11", "ignition-msgs8"],
        check=False,
        capture_output=True,
        text=True,
    )
    if flags.returncode:
        pytest.skip("needs libignition-transport-dev and libignition-msgs-dev of Debian")
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.cc").write_text(PROGRAM, encoding="utf-8")
    program = folder / "program"
    subprocess.run([compiler, "-O1", "-o", program, folder / "program.cc", *flags.stdout.split()], check=True)
    return program


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sea") / "sea.sdf"
    path.write_text(WORLD, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(path: Path) -> Run:
    return ns.simulate(ns.load(path), 2.0, seed=3)


def call(tool: Path, *arguments: str) -> str:
    """Return what a tool prints."""
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True, timeout=DEADLINE).stdout


def call_until(pattern: str, tool: Path, *arguments: str) -> str:
    """Return what a tool prints when all of it matches a pattern.

    The tool listens for about a second, as long as a program takes from one heartbeat to the next. So it can miss some
    of the topics.
    """
    end = time.monotonic() + DEADLINE
    while not re.fullmatch(pattern, text := call(tool, *arguments).strip(), re.DOTALL):
        assert time.monotonic() < end, f"{text}\ndoes not match\n{pattern}"
    return text


def list_until(names: Iterable[str], tool: Path) -> None:
    """Wait until a tool lists these topics or services, and no others."""
    call_until("\n".join(map(re.escape, sorted(names))), tool, "-l")


def echo_messages(echo: subprocess.Popen[str], count: int, seconds: float = DEADLINE) -> str:
    """Return a number of messages that a tool prints, and end it. There is an empty line after each message."""
    assert echo.stdout is not None
    killer = threading.Timer(seconds, echo.kill)
    killer.start()
    lines: list[str] = []
    for line in echo.stdout:
        lines.append(line)
        count -= line == "\n"
        if not count:
            break
    killer.cancel()
    assert not count, f"{count} messages are missing after {seconds:g} s"
    echo.terminate()
    return "".join(lines) + echo.communicate(timeout=DEADLINE)[0]


def publish(run: Run, publisher: streams.Publisher) -> None:
    for time_slice in run.slices():
        publisher.write(time_slice)


def test_topic_tool_lists_the_topics_and_their_types(tool: Path, run: Run) -> None:
    with streams.open_publisher("gz://?partition=sea&version=11&wait=0", make_recorded_run(run.session)) as publisher:
        list_until(["/clock", ALTIMETER, IMU], tool)
        address = publisher.url.partition("?")[0].replace("gz", "tcp")
        call_until(rf"Publishers [^\n]*\n\s*{re.escape(address)}, ignition\.msgs\.IMU", tool, "-i", "-t", IMU)
        other = {**os.environ, "IGN_PARTITION": "other"}
        listed = subprocess.run([tool, "-l"], check=True, capture_output=True, text=True, env=other, timeout=DEADLINE)
        assert not listed.stdout.strip()
    assert not call(tool, "-l").strip()


def test_topic_tool_shows_every_message_of_a_run(tool: Path, path: Path, run: Run) -> None:
    """`navsense run` begins when the tool has subscribed."""
    with subprocess.Popen([tool, "-e", "-t", IMU], stdout=subprocess.PIPE, text=True) as echo:
        url = "gz://?partition=sea&version=11&wait=60"
        command = [sys.executable, "-m", "navsense", "run", path, "--duration", "2", "--seed", "3", "-o", url]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as navsense:
            text = echo_messages(echo, 400, 240.0)  # the kernels may have to be compiled
        assert navsense.returncode == 0
    for name in ("angular_velocity", "linear_acceleration"):
        bodies = re.findall(rf"^{name} {{(.*?)^}}", text, re.DOTALL | re.MULTILINE)
        np.testing.assert_array_equal([_parse_vector(body) for body in bodies], run["imu"][name])
    assert re.findall(r'^entity_name: "(.*)"', text, re.MULTILINE) == ["auv::base::imu"] * 400
    sequence = re.findall(r'key: "seq"\s+value: "(\d+)"', text)
    assert sequence == [str(n) for n in range(400)]


def _parse_vector(body: str) -> list[float]:
    """Return x, y, z of a message in text; protobuf omits zeros."""
    fields = dict(re.findall(r"([xyz]): (\S+)", body))
    return [float(fields.get(axis, 0.0)) for axis in "xyz"]


def test_subscriber_in_cpp_receives_every_message(program: Path, network: None, run: Run) -> None:
    url = "gz://?partition=sea&version=11&wait=60"
    command = [program, IMU, "400"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
            publisher.wait_for_subscriber()
            assert isinstance(publisher, GzPublisher)
            assert publisher.subscriber_count > 0
            publish(run, publisher)
            wait_until(lambda: publisher._node._discovery.registered_topics == {f"@/sea@{IMU}"})
        count, total = process.communicate("\n", timeout=DEADLINE)[0].split()
    assert int(count) == 400
    assert abs(float(total)) > 1e-6
    assert float(total) == np.cumsum(run["imu"]["angular_velocity"][:, 0])[-1]


def test_subscriber_in_cpp_of_another_version_is_a_warning(
    program: Path, network: None, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    command = [program, IMU, "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = "gz://?partition=sea&version=15&wait=60"
        with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
            publisher.wait_for_subscriber()
            publish(run, publisher)
            wait_until(lambda: publisher.subscriber_count > 0 and bool(caplog.records))
        assert process.communicate("\n", timeout=DEADLINE)[0] == "0 0\n"
    assert "may expect another type than gz.msgs.IMU; choose ?version= of the subscriber" in caplog.text


def test_subscriber_in_cpp_that_is_killed_is_noticed(program: Path, network: None, run: Run) -> None:
    with streams.open_publisher("gz://?partition=sea&version=11&wait=0", make_recorded_run(run.session)) as publisher:
        with subprocess.Popen([program, IMU, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            wait_until(lambda: publisher.subscriber_count > 0)
            process.kill()
        assert isinstance(publisher, GzPublisher)
        node = publisher._node

        def is_noticed() -> bool:
            node.update_subscribers()
            return not any(topic.has_subscribers for topic in node.topics.values())

        wait_until(is_noticed)


def test_topic_tool_reads_messages_with_statistics(tool: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGN_TRANSPORT_TOPIC_STATISTICS", "1")
    with subprocess.Popen([tool, "-e", "-t", ALTIMETER], stdout=subprocess.PIPE, text=True) as echo:
        url = "gz://?partition=sea&version=11&wait=60"
        with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
            publisher.wait_for_subscriber()
            publish(run, publisher)
        text = echo_messages(echo, 40)
    assert re.findall(r'key: "seq"\s+value: "(\d+)"', text) == [str(n) for n in range(40)]


def receive(subscriber: Subscriber, count: int) -> list[StampedState]:
    received: list[StampedState] = []
    end = time.monotonic() + DEADLINE
    while len(received) < count:
        assert time.monotonic() < end, f"{len(received)} of {count} states"
        received += subscriber.receive(0.1)
    return received


def receive_from(subscriber: Subscriber, start: int, count: int) -> list[StampedState]:
    """Return a number of states with stamps from a time (ns) on."""
    received: list[StampedState] = []
    while len(received) < count:
        received += [one for one in receive(subscriber, 1) if one.stamp >= start]
    return received


@pytest.mark.requirement("LIV-3", "LIV-7")
def test_every_pose_of_a_simulator_in_cpp_is_received(program: Path, network: None, tmp_path: Path) -> None:
    """At 1 kHz. The model bitwise; the arm, whose local name repeats, is the product with the tree of the scene."""
    count, output = 1000, tmp_path / "poses.txt"
    frame, url = DrivenFrame("robot::base", LogContext(model="robot")), "gz://?version=11&partition=sea&wait=60"
    with (
        output.open("w", encoding="utf-8") as file,
        subprocess.Popen([program, "simulate", str(count)], stdin=subprocess.PIPE, stdout=file, text=True) as process,
        streams.open_subscriber(url, frame) as model,
        streams.open_subscriber(f"{url}&link=arm&topic=/world/demo/dynamic_pose/info", frame) as arm,
    ):
        assert process.stdin is not None
        for one in (model, arm):  # until ZeroMQ has connected
            receive(one, 1)
        process.stdin.write("\n")
        process.stdin.flush()
        received = [receive_from(one, 10**9, count) for one in (model, arm)]
        process.communicate("\n", timeout=DEADLINE)
    rows = [line.split() for line in output.read_text(encoding="utf-8").splitlines()]
    assert {row[-1] for row in rows} == {"1"}  # HasConnections
    expected = np.array([[float.fromhex(text) for text in row[:-1]] for row in rows])
    states = [np.array([[*one.state.pose.position, *one.state.pose.rotation] for one in part]) for part in received]
    for part in received:
        assert [one.stamp for one in part] == [10**9 + k * 1_000_000 for k in range(count)]
    np.testing.assert_array_equal(states[0], expected[:, :7])
    np.testing.assert_allclose(states[1], expected[:, 7:], rtol=0, atol=4e-15)


@pytest.mark.requirement("LIV-3", "LIV-7")
def test_odometry_of_the_topic_tool_is_received(tool: Path) -> None:
    text = """
        header { stamp { sec: 12 nsec: 5 } data { key: "child_frame_id" value: "robot/base_footprint" } }
        pose { position { x: 1.5 z: -0.25 } orientation { w: 0.6 z: 0.8 } }
        twist { linear { x: 0.125 } angular { z: -2 } }"""
    command = [tool, "-t", "/odometry", "-m", "ignition.msgs.Odometry", "-p", text]
    url = "gz://?version=11&partition=sea&wait=60&topic=/odometry"
    is_received = threading.Event()

    def publish_again() -> None:
        while not is_received.is_set():
            subprocess.run(command, check=True, capture_output=True)

    thread = threading.Thread(target=publish_again)
    thread.start()
    try:
        with streams.open_subscriber(url, DrivenFrame("robot::base", LogContext(model="robot"))) as subscriber:
            received = receive(subscriber, 1)[0]
    finally:
        is_received.set()
        thread.join()
    assert received.stamp == 12_000_000_005
    pose = ns.Pose((1.5, 0.0, -0.25), (0.6, 0.0, 0.0, 0.8))
    twist = ns.State(pose, (0.125, 0.0, 0.0), angular_velocity=(0.0, 0.0, -2.0), frame="body")
    assert received.state == twist


@pytest.mark.requirement("LIV-3", "LIV-8")
def test_service_tool_lists_the_service_and_pauses_the_run(tool: Path, run: Run) -> None:
    service_tool = tool.with_name("ign-transport-service")
    pace, kind = RealTimeLimiter(1.0), "ignition.msgs.Boolean"
    call_pause = ["-s", "/world/sea/pause", "--reqtype", kind, "--reptype", kind, "--timeout", "60000", "-r"]
    with streams.open_publisher("gz://?partition=sea&version=11&wait=0", make_recorded_run(run.session)) as publisher:
        publisher.attach_pace(pace)
        list_until(["/world/sea/pause"], service_tool)
        shown = rf"Service providers [^\n]*\n\s*tcp://127\.0\.0\.1:\d+, {kind}, {kind}"
        call_until(shown, service_tool, "-i", "-s", "/world/sea/pause")
        assert call(service_tool, *call_pause, "data: true").strip() == "data: true"
        assert pace.is_paused
        assert not call(service_tool, *call_pause, "data: false").strip()  # protobuf omits false
        assert not pace.is_paused


@pytest.mark.requirement("LIV-3", "LIV-8")
def test_service_tool_changes_the_run(tool: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """A request that is not possible fails, and the log has the reason."""
    service_tool, controls = tool.with_name("ign-transport-service"), RunControls(run.session)

    def request(service: str, kind: str, text: str) -> str:
        types = ["--reqtype", f"ignition.msgs.{kind}", "--reptype", "ignition.msgs.Boolean"]
        return call(service_tool, "-s", service, *types, "--timeout", "60000", "-r", text).strip()

    with streams.open_publisher("gz://?partition=sea&version=11&wait=0", make_recorded_run(run.session)) as publisher:
        publisher.attach_controls(controls)
        names = [f"{ALTIMETER}/{name}" for name in ("change_state", "set_rate", "set_reference_altitude")]
        list_until([*names, f"{IMU}/change_state", f"{IMU}/set_rate"], service_tool)
        assert request(f"{IMU}/change_state", "Boolean", "data: false") == "data: true"
        assert not controls.is_on("imu")
        assert request(f"{ALTIMETER}/set_rate", "Double", "data: 5") == "data: true"
        assert controls.get_rate("alt") == 5.0
        assert request(f"{ALTIMETER}/set_reference_altitude", "Double", "data: 3.5") == "data: true"
        assert request(f"{ALTIMETER}/set_rate", "Double", "data: 1000") == "Service call failed"
    assert "set_rate: request of tcp://127.0.0.1:" in caplog.text


@pytest.mark.requirement("LIV-3", "LIV-8", "CUR-1")
def test_service_tool_changes_the_current(tool: Path, tmp_path: Path) -> None:
    """The type of a velocity and of a process is `Double_V`."""
    session = ns.simulate(load_with_current(tmp_path), 1.0, seed=3).session
    service_tool, controls = tool.with_name("ign-transport-service"), RunControls(session)

    def request(service: str, kinds: tuple[str, str], text: str) -> str:
        types = ["--reqtype", f"ignition.msgs.{kinds[0]}", "--reptype", f"ignition.msgs.{kinds[1]}"]
        return call(service_tool, "-s", service, *types, "--timeout", "60000", "-r", text).strip()

    with streams.open_publisher("gz://?partition=sea&version=11&wait=0", make_recorded_run(session)) as publisher:
        publisher.attach_controls(controls)
        velocity = "data: 0.8, data: 1.25, data: -0.125"
        assert request("/set_current_velocity", ("Double_V", "Boolean"), velocity) == "data: true"
        names = ("speed", "horizontal_angle", "vertical_angle")
        assert [controls.get_current_model(name)[0] for name in names] == [0.8, 1.25, -0.125]
        assert request("/set_current_horz_angle", ("Double", "Boolean"), "data: 0.5") == "data: true"
        model = "data: 0.5, data: 0.25, data: 0.75, data: 0, data: 0.125"
        assert request("/set_current_velocity_model", ("Double_V", "Boolean"), model) == "data: true"
        shown = request("/get_current_velocity_model", ("Empty", "Double_V"), "")
        values = [float(text) for text in re.findall(r"data: (\S+)", shown)]
        np.testing.assert_allclose(values, (0.5, 0.25, 0.75, 0.0, 0.125), rtol=1e-12, atol=0)
        too_few = request("/set_current_velocity", ("Double_V", "Boolean"), "data: 0.8")
        assert too_few == "Service call failed"


def load_with_current(tmp_path: Path) -> ns.World:
    """Return a world with a uniform current and a DVL."""
    path = tmp_path / "current.sdf"
    path.write_text(CURRENT_WORLD, encoding="utf-8")
    return ns.load(path)


@pytest.mark.requirement("LIV-3", "CUR-1")
def test_current_of_the_topic_tool_acts_and_repeats_bitwise(
    tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool publishes one velocity and ends, as to the system Hydrodynamics of gz-sim."""
    world, applied, sent = load_with_current(tmp_path), list[Any](), set[float]()
    feed_current = RunControls.feed_current

    def record_change(controls: RunControls, velocity: Vector) -> None:
        feed_current(controls, velocity)
        applied.append(velocity)

    monkeypatch.setattr(RunControls, "feed_current", record_change)
    velocities = {0.5: ((0.25, -0.125, 0.0), "x: 0.25, y: -0.125"), 1.0: ((0.0, 0.0, 0.0625), "z: 0.0625")}

    def progress(done: float, _total: float) -> None:
        for start, (velocity, text) in velocities.items():
            if done >= start and start not in sent:
                sent.add(start)
                end = time.monotonic() + DEADLINE
                while velocity not in applied:
                    assert time.monotonic() < end, f"{velocity} was not received"
                    call(tool, "-t", "/ocean_current", "-m", "ignition.msgs.Vector3d", "-p", text)

    url = "gz://?version=11&partition=sea"
    ns.record(world, tmp_path / "a.mcap", 1.6, seed=2, speed=4.0, current=url, progress=progress)
    first = ns.open(tmp_path / "a.mcap")
    assert [change.value for change in first.changes] == [velocity for velocity, _ in velocities.values()]
    assert first.current is not None
    times = [change.time for change in first.changes]
    expected = np.tile((0.1, 0.0, 0.0), (first.current.time.size, 1))
    for start, (velocity, _) in zip(times, velocities.values(), strict=True):
        expected[first.current.time >= start] = velocity
    np.testing.assert_array_equal(first.current.velocity, expected)
    ns.record(world, tmp_path / "b.mcap", 1.6, seed=2, changes=first.changes)
    second = ns.open(tmp_path / "b.mcap")
    assert second.current is not None
    np.testing.assert_array_equal(second.current.velocity, first.current.velocity)
    for name, reading in first.items():
        for array, values in reading.items():
            np.testing.assert_array_equal(values, second[name][array])


def test_topic_tool_shows_the_clock(tool: Path, run: Run) -> None:
    with subprocess.Popen([tool, "-e", "-t", "/clock"], stdout=subprocess.PIPE, text=True) as echo:
        url = "gz://?partition=sea&version=11&wait=60"
        with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
            publisher.wait_for_subscriber()
            publish(run, publisher)
        text = echo_messages(echo, 200)
    bodies = re.findall(r"^sim {(.*?)^}", text, re.DOTALL | re.MULTILINE)
    clocks = [dict(re.findall(r"(sec|nsec): (\d+)", body)) for body in bodies]
    stamps = [int(clock.get("sec", 0)) * 10**9 + int(clock.get("nsec", 0)) for clock in clocks]
    assert stamps == [10_000_000 * k for k in range(200)]  # the ground truth has 100 Hz


@pytest.fixture
def other_machine(tool: Path) -> Iterator[list[str]]:
    """Return a prefix of commands that run in a second namespace, 10.9.8.2, connected to 10.9.8.1 in the first."""
    with subprocess.Popen(["unshare", "-n", "sleep", "300"]) as holder:
        try:
            own = Path("/proc/thread-self/ns/net").readlink()
            wait_until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own)
            inside = ["nsenter", "-t", str(holder.pid), "-n"]
            added = subprocess.run(
                ["ip", "link", "add", "one", "type", "veth", "peer", "name", "two"], check=False, capture_output=True
            )
            if added.returncode:
                pytest.skip(f"needs a second network interface: {added.stderr.decode().strip()}")
            for prefix, command in (
                ([], f"link set two netns {holder.pid}"),
                ([], "addr add 10.9.8.1/24 dev one"),
                ([], "link set one up"),
                (inside, "link set lo up"),
                (inside, "addr add 10.9.8.2/24 dev two"),
                (inside, "link set two up"),
            ):
                subprocess.run([*prefix, "ip", *command.split()], check=True)
            yield inside
        finally:
            holder.kill()


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, {}),
        ({"IGN_RELAY": "10.9.8.2"}, {"IGN_DISCOVERY_MULTICAST_IP": "239.255.0.9"}),
        ({}, {"IGN_DISCOVERY_MULTICAST_IP": "239.255.0.9", "IGN_RELAY": "10.9.8.1"}),
    ],
    ids=["one-network", "relay-here", "relay-there"],
)
def test_topic_tool_on_another_machine_shows_every_message(
    tool: Path,
    other_machine: list[str],
    run: Run,
    mine: dict[str, str],
    theirs: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the multicast of one network does not reach the other, and one side names the other as its relay."""
    environment = {**os.environ, "IGN_IP": "10.9.8.2", **theirs}
    for name, text in mine.items():
        monkeypatch.setenv(name, text)
    command = [*other_machine, tool, "-e", "-t", IMU]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as echo:
        url = "gz://10.9.8.1?partition=sea&version=11&wait=60"
        with streams.open_publisher(url, make_recorded_run(run.session)) as publisher:
            publisher.wait_for_subscriber()
            publish(run, publisher)
        text = echo_messages(echo, 400)
    assert re.findall(r'key: "seq"\s+value: "(\d+)"', text) == [str(n) for n in range(400)]


DECLARATION = re.compile(r"^\s*(?:repeated\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(name for name in MESSAGES if "." not in name and not name.startswith("DVL")))
def test_messages_are_those_of_ignition(name: str) -> None:
    """Types, names and numbers of the fields, except the covariances of an IMU."""
    path = PROTO / f"{to_file_name(name)}.proto"
    if not path.exists():
        pytest.skip(f"needs {path} of Debian's libignition-msgs-dev")
    theirs = {field: (kind.rpartition(".")[2], int(number)) for kind, field, number in read_fields(path, name)}
    mine = {
        field: (kind.rpartition(".")[2], int(number)) for kind, field, number in DECLARATION.findall(MESSAGES[name])
    }
    if name == "IMU":
        mine = {field: part for field, part in mine.items() if not field.endswith("covariance")}
        mine["angular_velocity"], mine["linear_acceleration"] = ("Vector3d", 4), ("Vector3d", 5)
    assert mine.items() <= theirs.items()


@pytest.fixture(scope="module")
def ignition_messages(tmp_path_factory: pytest.TempPathFactory) -> GazeboMessages:
    """Return the messages of ign-msgs 8, which protoc reads in the files of the library."""
    protoc = shutil.which("protoc")
    if protoc is None or not PROTO.exists():
        pytest.skip("needs protoc, and libignition-msgs-dev of Debian")
    output = tmp_path_factory.mktemp("descriptors") / "set.pb"
    root = PROTO.parent.parent
    files = [PROTO / f"{stem}.proto" for stem in (*FILES, "scene")]
    command = [protoc, f"-I{root}", f"--descriptor_set_out={output}", "--include_imports"]
    subprocess.run([*command, *(file for file in files if file.exists())], check=True)
    messages = GazeboMessages("ignition.msgs")
    messages.files = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
    messages.pool = descriptor_pool.DescriptorPool()
    for file in messages.files.file:
        messages.pool.Add(file)
    return messages


def test_fields_that_the_tests_write_are_those_of_ignition(ignition_messages: GazeboMessages) -> None:
    """Ignition has no odometry with covariances."""
    table = GazeboMessages("ignition.msgs")
    compared = []
    for stem, (name, _) in FILES.items():
        if f"ignition/msgs/{stem}.proto" in {file.name for file in ignition_messages.files.file}:
            theirs, mine = (type(messages.make(name)).DESCRIPTOR for messages in (ignition_messages, table))
            parts = [
                {field.name: (field.number, field.type, field.is_repeated) for field in one.fields}
                for one in (mine, theirs)
            ]
            assert parts[0] == parts[1]
            compared.append(name)
    assert compared == [name for name, _ in FILES.values() if "Covariance" not in name]


def test_entities_of_a_scene_of_ignition_are_found(ignition_messages: GazeboMessages) -> None:
    """Names, numbers and poses of models, nested models and links."""
    scene = ignition_messages.make("Scene")
    scene.model.add(name="other", id=4)
    robot = scene.model.add(name="robot", id=8, is_static=True)
    arm = robot.model.add(name="gripper", id=11).link.add(name="arm", id=12, self_collide=True)
    for k, entity in enumerate((robot, robot.model[0], arm)):
        set_pose(entity.pose, (1.0 + k, 0.0, 0.0))
    chain = find_chain_in_scene(scene.SerializeToString(), Target("robot::gripper", "arm"))
    expected = [("robot", 8, 1.0), ("gripper", 11, 2.0), ("arm", 12, 3.0)]
    assert chain == tuple(Entity(name, number, pose=ns.Pose((x, 0.0, 0.0))) for name, number, x in expected)


def to_file_name(name: str) -> str:
    """Return the file of a message: FluidPressure is in fluid_pressure."""
    joined = {"NavSat": "navsat", "LaserScan": "laserscan", "IMU": "imu", "Vector3d": "vector3d"}
    return joined.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def read_fields(path: Path, name: str) -> Any:
    """Return type, name and number of the fields of a message, without nested messages."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    body = text.partition(f"message {name}")[2]
    while re.search(r"(message|enum)\s+\w+\s*{[^{}]*}", body):
        body = re.sub(r"(message|enum)\s+\w+\s*{[^{}]*}", "", body)
    return DECLARATION.findall(body)
