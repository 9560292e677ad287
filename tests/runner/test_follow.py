"""Runs that follow the states of a live system, here a stream of this test that sends a known motion."""

from __future__ import annotations

import gc
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import MotionError, NavsenseError, RecordingError, SimulationError
from navsense.core.readings import TimeSlice
from navsense.recordings.info import RecordedRun
from navsense.runner import follow
from navsense.streams import (
    DrivenFrame,
    Publisher,
    StreamUrl,
    Subscriber,
    SupportsRunChanges,
    list_streams,
    register_stream,
)
from navsense.streams import stream as stream_module
from navsense.streams.subscriber import MOTION_OPTIONS, StampedState

SECOND = 10**9

START = 812_345_678_901
"""Stamp (ns) of the first state."""

States = list[tuple[int, ns.State]]

SENSORS = """
      <sensor name="imu" type="imu"><update_rate>200</update_rate><imu><linear_acceleration><x>
        <noise type="gaussian"><mean>0</mean><stddev>0.01</stddev></noise></x></linear_acceleration></imu></sensor>
      <sensor name="compass" type="magnetometer"><update_rate>50</update_rate></sensor>
      <sensor name="altimeter" type="altimeter"><update_rate>20</update_rate></sensor>
"""

WORLD = f"""<sdf version="1.10"><world name="live"><model name="robot"><link name="body">{SENSORS}</link></model>
  <model name="buoy"><static>true</static><link name="body">
  <sensor name="buoy_imu" type="imu"><update_rate>10</update_rate></sensor></link></model></world></sdf>"""


class ListSubscriber(Subscriber):
    """Sends a list of states, then ends as if the live system had closed the connection.

    With the path `/groups`, the test sends them by `send_group`.
    """

    def __init__(self, url: StreamUrl, states: States) -> None:
        """Queue all states; in a thread with `/paced` as fast as their clock goes, with `/threaded` in groups."""
        super().__init__(url.text, "topic /odom")
        self.is_connected = True
        self._states = states
        self._is_received = threading.Event()
        if url.path in ("/paced", "/threaded"):
            send = self._send if url.path == "/paced" else self._send_groups
            threading.Thread(target=send, daemon=True).start()
        elif url.path == "/groups":
            self._random, self._count = random.Random(5), 0
            self.send_group(20)
        else:
            self._send(is_paced=False)

    def _send(self, *, is_paced: bool = True) -> None:
        start = time.monotonic()
        for stamp, state in self._states:
            if is_paced:
                time.sleep(max(start + (stamp - self._states[0][0]) / SECOND - time.monotonic(), 0.0))
            self.put(stamp, state)
        self.fail("the live system closed the connection")

    def send_group(self, count: int = 0) -> None:
        """Send the next states: `count`, or a random number of them, which is enough for a time slice at 1 kHz."""
        first, self._count = self._count, self._count + (count or self._random.randint(7, 40))
        for stamp, state in self._states[first : self._count]:
            self.put(stamp, state)

    def _send_groups(self) -> None:
        """Queue groups of a random number of states. The next group follows when the run has received one."""
        generator, first = np.random.default_rng(3), 0
        while first < len(self._states) and self.is_connected:
            count = int(generator.integers(1, 40))
            for stamp, state in self._states[first : first + count]:
                self.put(stamp, state)
            first += count
            self._is_received.wait()
            self._is_received.clear()
        self.fail("the live system closed the connection")

    def receive(self, timeout: float) -> list[StampedState]:
        """Return new states, and let the next group follow."""
        states = super().receive(timeout)
        if states:
            self._is_received.set()
        return states

    def disconnect(self) -> None:
        """Remember the end of the connection, and end the thread."""
        self.is_connected = False
        self._is_received.set()


class ClientPublisher(Publisher):
    """An output with a client that changes the run. With the path `/broken` it fails at its third time slice."""

    def __init__(self, url: StreamUrl, _recorded: RecordedRun) -> None:
        """Start without a time slice."""
        self.url, self.is_broken, self.count = url.text, url.path == "/broken", 0
        self.controls: SupportsRunChanges | None = None

    def attach_controls(self, controls: SupportsRunChanges) -> None:
        """Keep the controls."""
        self.controls = controls

    def write(self, time_slice: TimeSlice) -> None:
        """Count a time slice, or fail."""
        self.count += 1
        if self.is_broken and self.count == 3:
            raise RecordingError("the cable was pulled")

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


@pytest.fixture
def clients() -> Iterator[list[ClientPublisher]]:
    """The publishers that `client://` has opened."""
    opened: list[ClientPublisher] = []

    def open_publisher(url: StreamUrl, recorded: RecordedRun) -> Publisher:
        opened.append(ClientPublisher(url, recorded))
        return opened[-1]

    register_stream(replace(list_streams()[0], scheme="client", open_publisher=open_publisher, check=lambda *_: None))
    yield opened
    stream_module._STREAMS.pop("client", None)


def compute_state(t: float, *, has_rates: bool = True) -> ns.State:
    """Return the state of a smooth motion at t (s)."""
    position = (math.sin(t), math.cos(2.0 * t), 2.0 + 0.1 * t)
    pose = ns.Pose(position, (math.cos(0.2 * t), 0.0, 0.0, math.sin(0.2 * t)))
    if not has_rates:
        return ns.State(pose)
    velocity = (math.cos(t), -2.0 * math.sin(2.0 * t), 0.1)
    return ns.State(pose, velocity=velocity, angular_velocity=(0.0, 0.0, 0.4))


def make_states(rate: float, duration: float, *, has_rates: bool = True) -> States:
    """Return states at `rate` (Hz)."""
    stamps = [round(k / rate * SECOND) for k in range(round(duration * rate) + 1)]
    return [(START + stamp, compute_state(stamp / SECOND, has_rates=has_rates)) for stamp in stamps]


@pytest.fixture
def connect() -> Iterator[Callable[[States], list[ListSubscriber]]]:
    """Return a function that sets the states that `list://` sends; it returns the list of its subscribers."""
    subscribers: list[ListSubscriber] = []

    def set_states(states: States) -> list[ListSubscriber]:
        def open_subscriber(url: StreamUrl, _frame: DrivenFrame) -> Subscriber:
            subscribers.append(ListSubscriber(url, states))
            return subscribers[-1]

        register_stream(
            replace(list_streams()[0], scheme="list", open_subscriber=open_subscriber, motion_options=MOTION_OPTIONS)
        )
        return subscribers

    yield set_states
    stream_module._STREAMS.pop("list", None)


@pytest.fixture
def world(tmp_path: Path) -> ns.World:
    """A world with a robot that can move, and a buoy."""
    file = tmp_path / "live.sdf"
    file.write_text(WORLD)
    return ns.load(file)


@pytest.mark.requirement("LIV-7")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3", ".npz", ".parquet", ".csv"])
def test_recording_repeats_a_followed_run_bitwise(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, suffix: str
) -> None:
    """`--motion` of the recording gives the same readings, stamps and truth, to the last bit.

    The states arrive in groups, so the followed run has many time slices, and the repeated run has one.
    """
    subscribers, ends = connect(make_states(1000.0, 1.2)), set[float]()
    result = ns.record(
        world,
        tmp_path / f"a{suffix}",
        0.7,
        seed=3,
        motion={"robot": "list:///threaded"},
        progress=lambda end, _total: ends.add(end),
    )
    assert len(ends) > 10
    assert not subscribers[0].is_connected
    assert 0.7 <= result.duration < 0.7011
    motion = {"robot": str(tmp_path / f"a{suffix}")}
    # The duration counts from the first state, as in the followed run.
    again = ns.record(world, tmp_path / f"b{suffix}", 0.7, seed=3, motion=motion, epoch=812)
    assert again.duration == result.duration
    with pytest.raises(SimulationError, match=r"duration: 0\.8; must be at most 0\.7\d*s?"):
        ns.record(world, tmp_path / f"c{suffix}", 0.8, motion=motion)
    first, second = ns.open(tmp_path / f"a{suffix}"), ns.open(tmp_path / f"b{suffix}")
    assert list(first) == list(second)
    assert len(first) == 4
    for name, reading in first.items():
        np.testing.assert_array_equal(reading.stamp, second[name].stamp)
        np.testing.assert_array_equal(reading.emitted, second[name].emitted)
        for array, values in reading.items():
            np.testing.assert_array_equal(values, second[name][array])
    truth, repeated = first.truth["robot"], second.truth["robot"]
    for array in ("time", "position", "orientation", "velocity", "angular_velocity", "acceleration"):
        np.testing.assert_array_equal(getattr(truth, array), getattr(repeated, array))
    # A recording of the repeated run repeats it, too.
    third = ns.simulate(world, seed=3, motion={"robot": str(tmp_path / f"b{suffix}")})
    emitted = third["robot::body::imu"].emitted
    measured = third["robot::body::imu"]["angular_velocity"][emitted]
    np.testing.assert_array_equal(measured, second["robot::body::imu"]["angular_velocity"][-len(measured) :])


@pytest.mark.requirement("LIV-7")
def test_states_that_arrive_one_by_one_give_the_same_readings(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path
) -> None:
    """Many short time slices, joined in the recording, equal one long time slice bitwise."""
    connect(make_states(1000.0, 0.9))
    slices: list[float] = []
    ns.record(
        world,
        tmp_path / "a.mcap",
        0.6,
        seed=3,
        motion={"robot": "list:///paced"},
        progress=lambda done, _total: slices.append(done),
    )
    assert len(slices) > 20
    ns.record(world, tmp_path / "b.mcap", 0.6, seed=3, motion={"robot": "list://"})
    first, second = ns.open(tmp_path / "a.mcap"), ns.open(tmp_path / "b.mcap")
    for name, reading in first.items():
        np.testing.assert_array_equal(reading.stamp, second[name].stamp)
        for array, values in reading.items():
            np.testing.assert_array_equal(values, second[name][array])
    np.testing.assert_array_equal(first.truth["robot"].velocity, second.truth["robot"].velocity)


@pytest.mark.requirement("LIV-7")
@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_changes_of_a_client_in_many_time_slices_repeat_bitwise(
    connect: Callable[[States], list[ListSubscriber]],
    clients: list[ClientPublisher],
    world: ns.World,
    tmp_path: Path,
    suffix: str,
) -> None:
    """States arrive in groups, and a client switches a sensor. The states and changes of the recording repeat it."""
    subscribers = connect(make_states(1000.0, 0.9))
    ends: list[float] = []

    def progress(done: float, _total: float) -> None:
        ends.append(done)
        if len(ends) in (8, 16):
            assert clients[0].controls is not None
            clients[0].controls.switch("compass", on=len(ends) == 16)
        subscribers[0].send_group()

    path, again = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    motion = {"robot": "list:///groups"}
    result = ns.record(world, [path, "client://"], 0.7, seed=3, motion=motion, progress=progress)
    first = ns.open(path)
    assert len(ends) > 20
    assert [change.value for change in first.changes] == [False, True]
    # It is off in a part of the run, which has 35 samples after the first state.
    assert 0 < np.count_nonzero(first["robot::body::compass"].emitted) < 35
    repeated = ns.record(world, again, 0.7, seed=3, motion={"robot": str(path)}, epoch=812, changes=first.changes)
    assert repeated.duration == result.duration
    second = ns.open(again)
    for name, reading in first.items():
        np.testing.assert_array_equal(reading.stamp, second[name].stamp)
        np.testing.assert_array_equal(reading.emitted, second[name].emitted)
        for array, values in reading.items():
            np.testing.assert_array_equal(values, second[name][array])


def test_output_that_fails_in_a_followed_run(
    connect: Callable[[States], list[ListSubscriber]],
    clients: list[ClientPublisher],
    world: ns.World,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The recording goes on to the end, then the error is raised. Without another output the run ends."""
    subscribers = connect(make_states(1000.0, 0.9))
    motion = {"robot": "list:///groups"}

    def record(*outputs: object) -> None:
        ns.record(
            world,
            outputs,  # type: ignore[arg-type]
            0.7,
            motion=motion,
            progress=lambda *_: subscribers[-1].send_group(),
        )

    with pytest.raises(RecordingError, match="the cable was pulled"):
        record(tmp_path / "a.npz", "client:///broken")
    assert clients[0].count == 3
    assert "the cable was pulled; the run continues with the other outputs" in caplog.text
    assert ns.open(tmp_path / "a.npz").truth["robot"].time[-1] >= 1.045
    with pytest.raises(RecordingError, match="the cable was pulled"):
        record("client:///broken")
    assert clients[1].count == 3
    assert [subscriber.is_connected for subscriber in subscribers] == [False, False]


def test_states_lost_by_a_full_queue(
    connect: Callable[[States], list[ListSubscriber]],
    world: ns.World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The run goes on with the newest states, and its recording has these."""
    monkeypatch.setattr("navsense.streams.subscriber.MAX_QUEUED_STATES", 50)
    states = make_states(1000.0, 0.3)
    connect(states)
    ns.record(world, tmp_path / "a.npz", motion={"robot": "list://"})
    assert "251 states lost" in caplog.text
    truth = ns.open(tmp_path / "a.npz").truth["robot"]
    np.testing.assert_array_equal(truth.stamp, [stamp for stamp, _ in states[-50:]])


TWO_ROBOTS = WORLD.replace('<model name="buoy"><static>true</static>', '<model name="buoy">')


@pytest.mark.requirement("LIV-7")
def test_two_robots_repeat_bitwise_to_the_last_common_state(
    connect: Callable[[States], list[ListSubscriber]], tmp_path: Path
) -> None:
    """The states of each robot are recorded from its own first one. The run starts when both have one."""
    file = tmp_path / "two.sdf"
    file.write_text(TWO_ROBOTS)
    world = ns.load(file)
    states = {"a": make_states(1000.0, 0.9), "b": [(s + 3_700_000, x) for s, x in make_states(400.0, 0.9)]}

    def open_subscriber(url: StreamUrl, _frame: DrivenFrame) -> Subscriber:
        return ListSubscriber(url, states[url.path.strip("/")])

    connect([])
    register_stream(replace(stream_module._STREAMS["list"], open_subscriber=open_subscriber))
    ns.record(world, tmp_path / "a.npz", 0.6, seed=3, motion={"robot": "list:///a", "buoy": "list:///b"})
    motion = {name: str(tmp_path / "a.npz") for name in ("robot", "buoy")}  # each model gets its own states
    ns.record(world, tmp_path / "b.npz", seed=3, motion=motion)
    first, second = ns.open(tmp_path / "a.npz"), ns.open(tmp_path / "b.npz")
    assert first.truth["robot"].time[0] == 0.345678901
    assert first.truth["buoy"].time[0] == 0.349378901
    imu = first["robot::body::imu"]
    assert not imu.emitted[imu.time < 0.349378901].any()
    assert imu.emitted[imu.time >= 0.35].all()
    for name, reading in second.items():
        count = reading.time.size
        assert count > 0.9 * first[name].time.size
        np.testing.assert_array_equal(first[name].emitted[:count], reading.emitted)
        for array, values in reading.items():
            np.testing.assert_array_equal(first[name][array][:count], values)


@pytest.mark.requirement("LIV-7", "LIV-8")
@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_world_of_a_followed_run_is_that_of_the_file(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, suffix: str
) -> None:
    """Sensors publish nothing before the first state, and are on for all who ask. A change before it holds."""
    connect(make_states(1000.0, 0.5))
    changes = [ns.RunChange(0.0, "altimeter", "on", False), ns.RunChange(0.0, "imu", "rate", 100.0)]
    ns.record(world, tmp_path / f"a{suffix}", 0.3, motion={"robot": "list://"}, changes=changes)
    recording = ns.open(tmp_path / f"a{suffix}")
    assert [(one.is_on, one.switches) for one in recording.world.sensors] == [(True, ())] * 4
    published = {name.rpartition(":")[2]: one.time[one.emitted] for name, one in recording.items()}
    start = 0.345_678_901
    assert published.pop("altimeter", np.empty(0)).size == 0  # a recording of messages may not list it
    assert {name: float(time[0]) for name, time in published.items()} == {"imu": 0.35, "compass": 0.36, "buoy_imu": 0.4}
    assert start < 0.35 <= published["imu"][0]
    assert np.diff(published["imu"]) == pytest.approx(0.01, abs=1e-12)


def test_recorded_motion_with_a_live_motion(connect: Callable[[States], list[ListSubscriber]], tmp_path: Path) -> None:
    """The motion of the file counts from the epoch. The run ends where it ends."""
    file = tmp_path / "two.sdf"
    file.write_text(TWO_ROBOTS)
    world = ns.load(file)
    connect(make_states(1000.0, 0.9))
    (tmp_path / "log.csv").write_text(
        "t,x,y,z,roll,pitch,yaw\n" + "".join(f"{0.1 * k:.1f},{k},0,0,0,0,0\n" for k in range(9))
    )
    motion = {"robot": "list://", "buoy": str(tmp_path / "log.csv")}
    with pytest.raises(SimulationError, match=r"duration: 0\.7; must be at most 0\.454\d+ s, where another"):
        ns.record(world, tmp_path / "a.npz", 0.7, motion=motion)
    result = ns.record(world, tmp_path / "a.npz", motion=motion)
    assert result.duration == pytest.approx(0.8 - 0.345678901, abs=1e-12)
    recording = ns.open(tmp_path / "a.npz")
    assert recording.truth["robot"].time[0] == 0.345678901
    assert recording["buoy_imu"].emitted[recording["buoy_imu"].time > 0.346].all()


def test_two_clocks_are_an_error(connect: Callable[[States], list[ListSubscriber]], tmp_path: Path) -> None:
    """One model in simulated time and one in Unix time would wait for each other."""
    file = tmp_path / "two.sdf"
    file.write_text(TWO_ROBOTS)
    states = {"a": make_states(100.0, 0.5), "b": [(s + 10**18, x) for s, x in make_states(100.0, 0.5)]}

    def open_subscriber(url: StreamUrl, _frame: DrivenFrame) -> Subscriber:
        return ListSubscriber(url, states[url.path.strip("/")])

    connect([])
    register_stream(replace(stream_module._STREAMS["list"], open_subscriber=open_subscriber))
    with pytest.raises(MotionError, match=r"first states of robot and buoy \(s\): 812.345679 and 1.00000081e"):
        ns.record(ns.load(file), tmp_path / "a.npz", motion={"robot": "list:///a", "buoy": "list:///b"})
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.requirement("LIV-7")
def test_received_states_are_the_recorded_truth(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path
) -> None:
    """The truth has each state at its stamp, to the last bit; its times count from the whole second before."""
    states = make_states(1000.0, 0.5)
    connect(states)
    with pytest.raises(MotionError, match="closed the connection"):
        ns.record(world, tmp_path / "a.mcap", 2.0, motion={"robot": "list://"})
    truth = ns.open(tmp_path / "a.mcap").truth["robot"]  # nothing recorded is lost
    np.testing.assert_array_equal(truth.stamp, [stamp for stamp, _ in states])
    assert truth.time[0] == 0.345678901
    assert truth.epoch == 812
    np.testing.assert_array_equal(truth.position, [state.pose.position for _, state in states])
    np.testing.assert_array_equal(truth.velocity, [state.velocity for _, state in states])


@pytest.mark.requirement("LIV-7")
def test_readings_follow_the_motion(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path
) -> None:
    """The ideal readings are those of the motion's closed form; nothing is published before the first state."""
    connect(make_states(1000.0, 1.0))
    ns.record(world, tmp_path / "a.npz", motion={"robot": "list://"})
    recording = ns.open(tmp_path / "a.npz")
    imu = recording["robot::body::imu"]
    t = imu.time[imu.emitted] - 0.345678901
    assert t[0] >= 0.0
    assert not imu.emitted[imu.time < 0.345].any()
    assert not recording["buoy_imu"].emitted[recording["buoy_imu"].time < 0.345].any()
    yaw = 0.4 * t
    world_acceleration = np.stack([-np.sin(t), -4.0 * np.cos(2.0 * t), np.full_like(t, 9.8)], axis=1)
    expected = np.stack(
        [
            np.cos(yaw) * world_acceleration[:, 0] + np.sin(yaw) * world_acceleration[:, 1],
            -np.sin(yaw) * world_acceleration[:, 0] + np.cos(yaw) * world_acceleration[:, 1],
            world_acceleration[:, 2],
        ],
        axis=1,
    )
    # The acceleration is derived from velocities 1 ms apart: (v_1 - v_0) / h has the error h jerk / 2 <= 4 h.
    error = np.abs(imu.ideal["linear_acceleration"][imu.emitted] - expected)[2:]
    assert error.max() < 1e-3 * 4.0 * 1.1
    assert np.abs(imu.ideal["angular_velocity"][imu.emitted] - [0.0, 0.0, 0.4]).max() < 1e-12


@pytest.mark.requirement("LIV-7")
def test_poses_alone_are_refused_for_a_faster_imu(
    connect: Callable[[States], list[ListSubscriber]],
    world: ns.World,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Poses at 60 Hz do not support an IMU of 200 Hz, unless the caller asks for it."""
    connect(make_states(60.0, 1.5, has_rates=False))
    with pytest.raises(MotionError, match=r"poses at 60 Hz for robot::body::imu: 200 Hz; .*upsample=1"):
        ns.record(world, tmp_path / "a.npz", motion={"robot": "list://"})
    with caplog.at_level(logging.WARNING):
        ns.record(world, tmp_path / "a.npz", 1.0, motion={"robot": "list://?upsample=1"})
    assert "poses without velocities, 60 Hz" in caplog.text
    truth = ns.open(tmp_path / "a.npz").truth["robot"]
    assert truth.time[0] == 0.345678901  # the first pose, although five poses give its velocity
    t = truth.time - 0.345678901
    # The polynomial through the values f at five times t_k, h apart, has the error w f^(5) / 5!. w(t) is the product of
    # all t - t_k. Here f = cos 2t and |f^(5)| <= 32. At the fourth time, w' = 3 * 2 * 1 * (-1) h^4 = -6 h^4, and w'' is
    # twice the sum of the products of three of the factors: 2 (6 - 6 - 3 - 2) h^3 = -10 h^3. The errors are therefore
    # 6 / 120 and 10 / 120 of 32 h^4 and 32 h^3. At the first time they are 24 / 120 and 100 / 120.
    h = 1.0 / 60.0
    velocity_error = np.abs(truth.velocity[:, 1] + 2.0 * np.sin(2.0 * t))
    acceleration_error = np.abs(truth.acceleration[:, 1] + 4.0 * np.cos(2.0 * t))
    # The next term is smaller by the order of h.
    assert 0.95 < velocity_error[3:].max() / (32.0 * h**4 / 20.0) < 1.05
    assert 0.95 < acceleration_error[3:].max() / (32.0 * h**3 / 12.0) < 1.05
    assert velocity_error[:3].max() < 1.05 * 32.0 * h**4 / 5.0
    assert acceleration_error[:3].max() < 1.05 * 32.0 * h**3 * 5.0 / 6.0


@pytest.mark.requirement("LIV-7")
def test_velocity_that_contradicts_the_poses_is_a_warning(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning names the topic and both displacements."""
    states = [
        (
            START + k * SECOND // 20,
            ns.State(ns.Pose((0.1 * k, 0.0, 0.0)), velocity=(0.0, 2.0, 0.0), angular_velocity=(0, 0, 0)),
        )
        for k in range(200)
    ]
    connect(states)
    ns.record(world, tmp_path / "a.npz", 9.0, motion={"robot": "list://"})
    problem = "list://: topic /odom: in 1.25 s the poses move by (2.5, 0, 0) m, their velocities by (0, 2.5, 0); check"
    assert caplog.text.count(problem) == 1
    connect(make_states(100.0, 4.0))
    caplog.clear()
    ns.record(world, tmp_path / "b.npz", 3.9, motion={"robot": "list://"})
    assert "the poses move" not in caplog.text


@pytest.mark.requirement("LIV-7")
def test_clock_that_jumps_back_ends_the_run(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A restarted live system ends the run. A state out of order is ignored with a warning."""
    states = make_states(100.0, 1.0)
    late = [*states[:50], states[40], *states[50:]]
    restarted = [(stamp - 800 * SECOND, state) for stamp, state in states]
    connect(late + restarted)
    with caplog.at_level(logging.WARNING):
        ns.record(world, tmp_path / "a.npz", motion={"robot": "list://?upsample=1"})
    assert "a state with an earlier or equal stamp is ignored" in caplog.text
    assert "the clock jumped back from 813.345679 to 12.3456789 s" in caplog.text
    truth = ns.open(tmp_path / "a.npz").truth["robot"]
    np.testing.assert_array_equal(truth.stamp, [stamp for stamp, _ in states])


@pytest.mark.requirement("LIV-7")
def test_stamp_of_another_clock_and_invalid_state(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Unix time among simulated time ends the run without an attempt to simulate the gap."""
    states = make_states(100.0, 1.0)
    invalid = (states[50][0] + 1, ns.State(ns.Pose(), velocity=(1e12, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.0)))
    connect([*states[:51], invalid, *states[51:], (1_700_000_000 * SECOND, states[0][1]), *states])
    with caplog.at_level(logging.WARNING):
        ns.record(world, tmp_path / "a.npz", motion={"robot": "list://"})
    assert "an invalid state is ignored: list://" not in caplog.text
    assert caplog.text.count("an invalid state is ignored: velocity of robot") == 1
    assert "the clock jumped forward from 813.345679 to 1.7e+09 s" in caplog.text
    truth = ns.open(tmp_path / "a.npz").truth["robot"]
    np.testing.assert_array_equal(truth.stamp, [stamp for stamp, _ in states])


@pytest.mark.parametrize("shift", [-813, 2**31])
def test_stamps_outside_of_recordings_are_an_error(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, shift: int
) -> None:
    """A recording has stamps from 0 to 2^31 - 1 s. The error names the topic, before an output exists."""
    connect([(time + shift * SECOND, state) for time, state in make_states(100.0, 0.5)])
    with pytest.raises(MotionError, match=r"topic /odom: stamp of a state .*; must be from 0 to 2147483647") as caught:
        ns.record(world, tmp_path / "a.npz", 0.2, motion={"robot": "list://"})
    assert float(str(caught.value.value)) == pytest.approx(START / SECOND + shift, rel=1e-8, abs=0.0)
    assert not (tmp_path / "a.npz").exists()


def test_live_system_without_states_is_an_error(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run does not wait for states without an end."""
    monkeypatch.setattr(ListSubscriber, "fail", lambda *_args, **_options: None)
    connect([])
    with pytest.raises(MotionError, match=r"topic /odom: 0 states in 0.2 s; needs 8 to begin"):
        ns.record(world, tmp_path / "a.npz", motion={"robot": "list://?wait=0.2"})
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"speed": 2.0}, r"speed: 2\.0; is that of the live system"),
        ({"epoch": 5}, r"epoch: 5; is that of the live system"),
        ({"motion": {"buoy": "list://"}}, "is static"),
        ({"duration": -1.0}, r"duration: -1\.0; must be a finite number of seconds > 0"),
        ({"duration": math.nan}, "duration: nan; must be a finite number"),
        ({"runs": 2}, "runs: 2; cannot repeat a live system: list://"),
        ({"motion": {"robot": "list://?wait=x"}}, r"wait \(s\): x; must be a number"),
        ({"motion": {"robot": "list://?upsample=2"}}, "upsample: 2; must be 0 or 1"),
        ({"motion": {"robot": "list://?tpoic=a"}}, "tpoic; must be one of topic, type"),
        ({"motion": {"robot": "nmea+tcp://127.0.0.1:1"}}, "nmea.tcp; sends no states; must be one of"),
        ({"motion": {"robot": "nothing://"}}, "scheme of the URL: nothing"),
        ({"current": "ros1://?twist=world"}, "twist; must be one of topic, type, frame, host, node"),
        ({"current": "ros1://?wait=2"}, "wait; must be one of topic"),
        ({"current": "list://"}, "list; sends no current; must be one of"),
    ],
)
def test_arguments_of_a_followed_run(
    connect: Callable[[States], list[ListSubscriber]],
    world: ns.World,
    tmp_path: Path,
    options: dict[str, object],
    problem: str,
) -> None:
    """Invalid arguments are errors of ours, before a connection and before an output exists."""
    subscribers = connect(make_states(100.0, 0.5))
    arguments = {"motion": {"robot": "list://"}, "duration": 0.1, **options}
    path = tmp_path / ("a-{run}.npz" if "runs" in options else "a.npz")
    with pytest.raises(NavsenseError, match=problem):
        ns.record(world, path, **arguments)  # type: ignore[arg-type]
    assert not path.exists()
    assert not subscribers


def test_simulate_needs_a_file(world: ns.World) -> None:
    """A run in memory has no live motion."""
    with pytest.raises(SimulationError, match="does not follow a live system"):
        ns.simulate(world, 1.0, motion={"robot": "list://"})


def test_queue_of_a_subscriber_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A full queue drops its oldest states and counts them."""
    monkeypatch.setattr("navsense.streams.subscriber.MAX_QUEUED_STATES", 3)
    subscriber = Subscriber("list://", "topic /odom")
    for stamp in range(5):
        subscriber.put(stamp, ns.State())
    assert [state.stamp for state in subscriber.receive(0.0)] == [2, 3, 4]
    assert subscriber.dropped == 2
    subscriber.fail("ended")
    subscriber.put(8, ns.State())
    with pytest.raises(MotionError, match="topic /odom: ended"):
        subscriber.receive(0.0)
    subscriber.close()
    assert "topic /odom: 2 states lost" in caplog.text


def test_silence_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One warning tells that a live system has become silent."""
    monkeypatch.setattr(follow, "SILENCE_TIMEOUT", 0.02)
    follower = follow.ModelFollower(Subscriber("list://", "topic /odom"), "robot")
    for _ in range(6):
        assert follower.receive(0.01) == []
    assert caplog.text.count("no state for") == 1


@pytest.mark.requirement("LIV-7")
def test_live_run_follows_and_repeats_bitwise(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Steps wait for the states. Readings equal those of `record` of the same states, and of the recording."""
    subscribers = connect(make_states(1000.0, 0.6))
    published: list[np.ndarray] = []
    with (
        caplog.at_level(logging.WARNING),
        ns.live(world, seed=3, motion={"robot": "list://"}, publish=tmp_path / "live.mcap") as sim,
    ):
        for step in sim:
            if "imu" in step.readings:
                imu = step.readings["robot::body::imu"]
                published.append(imu["angular_velocity"][imu.emitted])
    assert "the live system closed the connection; the run ends" in caplog.text
    assert not subscribers[0].is_connected
    measured = np.concatenate(published)
    ns.record(world, tmp_path / "record.npz", 0.55, seed=3, motion={"robot": "list://"})
    ns.record(world, tmp_path / "again.npz", seed=3, motion={"robot": str(tmp_path / "live.mcap")})
    for name in ("record.npz", "again.npz"):
        imu = ns.open(tmp_path / name)["robot::body::imu"]
        expected = imu["angular_velocity"][imu.emitted]
        assert len(expected) > 100
        np.testing.assert_array_equal(measured[: len(expected)], expected)


def test_dropped_live_run_disconnects(
    connect: Callable[[States], list[ListSubscriber]], world: ns.World, tmp_path: Path
) -> None:
    """A live run that is not closed disconnects when it is deleted, and so does one that cannot be opened."""
    subscribers = connect(make_states(100.0, 1.0))
    sim = ns.live(world, motion={"robot": "list://"})
    assert sim.time == 0.0  # nothing has been measured
    step = sim.step()
    assert sim.time == step.time > 0.34
    del sim
    gc.collect()
    with pytest.raises(NavsenseError):
        ns.live(world, motion={"robot": "list://"}, publish=tmp_path / "missing" / "a.mcap")
    assert len(subscribers) == 1  # the path is checked before the connection
    with pytest.raises(NavsenseError, match="refused"):
        ns.live(world, motion={"robot": "list://"}, publish="ros1://127.0.0.1:1")
    assert [subscriber.is_connected for subscriber in subscribers] == [False, False]
