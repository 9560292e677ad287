"""The current of a run that a topic of a live system feeds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import NavsenseError, SimulationError
from navsense.core.typing import Vector
from navsense.recordings.run_changes import format_change
from navsense.runner.current_feed import CurrentFeed
from navsense.simulation.run_controls import RunControls
from navsense.simulation.session import prepare
from navsense.streams import CurrentSubscriber, StreamUrl, list_streams, register_stream
from navsense.streams import stream as stream_module

WORLD = """<sdf version="1.10" xmlns:navsense="https://navsense.org/sdf"><world name="sea">
  {current}<model name="auv"><link name="body">
    <sensor name="dvl" type="dvl"><update_rate>5</update_rate></sensor>
    <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor></link></model></world></sdf>"""

UNIFORM = '<navsense:current topic="/current" rate="20"><uniform>0.1 0 0</uniform></navsense:current>'


def load(tmp_path: Path, current: str) -> ns.World:
    """Return a world with a current."""
    file = tmp_path / "sea.sdf"
    file.write_text(WORLD.format(current=current))
    return ns.load(file)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


class Transport(CurrentSubscriber):
    """A subscriber that reports its end.

    is_connected: false after it has disconnected.
    read: is set after a velocity has been read.
    """

    def __init__(self, url: str, topic: str, frame: str = "world") -> None:
        """Connect."""
        super().__init__(url, topic, frame)
        self.is_connected, self.read = True, threading.Event()

    def receive(self, timeout: float) -> list[Vector]:
        """Return the newest velocity."""
        velocities = super().receive(timeout)
        if velocities:
            self.read.set()
        return velocities

    def disconnect(self) -> None:
        """Disconnect."""
        self.is_connected = False


@pytest.fixture
def subscribers() -> Iterator[list[Transport]]:
    """The subscribers that `water://` has opened; `water://?frame=FRAME` sets their frame."""
    opened: list[Transport] = []

    def open_current(url: StreamUrl) -> CurrentSubscriber:
        opened.append(Transport(url.text, "topic /water", url.options.get("frame", "world")))
        return opened[-1]

    register_stream(replace(list_streams()[0], scheme="water", open_current=open_current, current_options=("frame",)))
    yield opened
    stream_module._STREAMS.pop("water", None)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the controls of a run have got a velocity."""
    event, feed_current = threading.Event(), RunControls.feed_current

    def feed(controls: RunControls, velocity: Vector) -> None:
        try:
            feed_current(controls, velocity)
        finally:
            event.set()

    monkeypatch.setattr(RunControls, "feed_current", feed)
    return event


def send(subscriber: Transport, velocity: Vector, fed: threading.Event) -> None:
    """Send a velocity and wait until the run has it."""
    fed.clear()
    subscriber.put(velocity)
    assert fed.wait(30.0)


def make_progress(subscribers: list[Transport], fed: threading.Event) -> Callable[[float, float], None]:
    """Return a progress function that sends velocities after 0.5 and 1 s of the run."""
    velocities = {0.5: (0.3, -0.2, 0.0), 1.0: (0.6, 0.0, 0.05)}

    def progress(done: float, _total: float) -> None:
        for start in [start for start in velocities if start <= done]:
            send(subscribers[0], velocities.pop(start), fed)

    return progress


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_velocities_act_from_the_next_time_slice_and_repeat_bitwise(
    subscribers: list[Transport], fed: threading.Event, tmp_path: Path, suffix: str
) -> None:
    """Each velocity holds until the next one; the changes in the recording repeat the run."""
    world = load(tmp_path, UNIFORM)
    progress = make_progress(subscribers, fed)
    ns.record(world, tmp_path / f"a{suffix}", 1.6, seed=2, speed=4.0, current="water://", progress=progress)
    assert not subscribers[0].is_connected
    first = ns.open(tmp_path / f"a{suffix}")
    assert [change.property for change in first.changes] == ["velocity", "velocity"]
    assert first.current is not None
    starts = [change.time for change in first.changes]
    expected = np.tile((0.1, 0.0, 0.0), (first.current.time.size, 1))
    expected[first.current.time >= starts[0]] = (0.3, -0.2, 0.0)
    expected[first.current.time >= starts[1]] = (0.6, 0.0, 0.05)
    np.testing.assert_array_equal(first.current.velocity, expected)
    ns.record(world, tmp_path / "b.npz", 1.6, seed=2, changes=first.changes)
    second = ns.open(tmp_path / "b.npz")
    assert second.current is not None
    np.testing.assert_array_equal(second.current.velocity, first.current.velocity)
    for name, reading in first.items():
        for array, values in reading.items():
            again = second[name][array]
            np.testing.assert_array_equal(values, again if suffix == ".npz" else again[second[name].emitted])


@pytest.mark.requirement("CUR-1")
def test_velocity_in_ned_is_turned(subscribers: list[Transport], fed: threading.Event, tmp_path: Path) -> None:
    """North, east and down of the topic are y, x and -z of a world that faces east."""
    world = load(tmp_path, UNIFORM)
    progress = make_progress(subscribers, fed)
    ns.record(world, tmp_path / "a.npz", 1.6, speed=4.0, current="water://?frame=ned", progress=progress)
    current = ns.open(tmp_path / "a.npz").current
    assert current is not None
    np.testing.assert_array_equal(current.velocity[-1], (0.0, 0.6, -0.05))


@pytest.mark.requirement("CUR-1")
def test_end_of_the_topic_keeps_the_last_velocity(
    subscribers: list[Transport], fed: threading.Event, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A live system that ends is a warning. The run goes on."""
    send_at_times = make_progress(subscribers, fed)

    def progress(done: float, total: float) -> None:
        send_at_times(done, total)
        if done >= 1.0:
            subscribers[0].fail("the live system closed the connection")
            wait_for(lambda: "closed the connection" in caplog.text)

    ns.record(load(tmp_path, UNIFORM), tmp_path / "a.npz", 1.6, speed=4.0, current="water://", progress=progress)
    assert "closed the connection; the current stays as it is" in caplog.text
    recorded = ns.open(tmp_path / "a.npz").current
    assert recorded is not None
    np.testing.assert_array_equal(recorded.velocity[-1], (0.6, 0.0, 0.05))


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize(
    ("current", "url", "problem"),
    [
        ("", "water://", "water://: current of the world; must be uniform or random to be fed from a topic"),
        (UNIFORM, "foxglove://", "scheme of the current: foxglove; sends no current"),
        (UNIFORM, "water://?fram=ned", "option of the URL: fram"),
    ],
)
def test_invalid_feeds_are_errors(
    subscribers: list[Transport], tmp_path: Path, current: str, url: str, problem: str
) -> None:
    """A world without a current names the element that it needs. The subscriber is closed, and no file is written."""
    world = load(tmp_path, current)
    with pytest.raises(NavsenseError, match=problem):
        ns.record(world, tmp_path / "a.npz", 1.0, current=url)
    assert [subscriber.is_connected for subscriber in subscribers] == ([False] if url == "water://" else [])
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.requirement("CUR-1")
def test_equal_and_invalid_velocities_change_nothing(
    fed: threading.Event, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After them, the feed continues."""
    world = load(tmp_path, UNIFORM)
    controls, subscriber = RunControls(prepare(world, 1.0, seed=1)), Transport("water://", "topic /water")
    with CurrentFeed(subscriber, world, controls) as feed:
        feed.start()
        send(subscriber, (0.3, 0.0, 0.0), fed)
        assert [change.value for change in controls.take(0.1)] == [(0.3, 0.0, 0.0)]
        for velocity in ((0.3, 0.0, 0.0), (99.0, 0.0, 0.0)):
            subscriber.read.clear()
            subscriber.put(velocity)
            assert subscriber.read.wait(30.0)
        wait_for(lambda: "99.0" in caplog.text)
        assert controls.take(0.2) == ()
        send(subscriber, (0.4, 0.0, 0.0), fed)
        assert [change.value for change in controls.take(0.3)] == [(0.4, 0.0, 0.0)]
        controls.set_current({"velocity": (0.1, 0.0, 0.0)})  # as a service does
        controls.take(0.4)
        send(subscriber, (0.4, 0.0, 0.0), fed)
        assert [change.value for change in controls.take(0.5)] == [(0.4, 0.0, 0.0)]
    assert caplog.text.count("the current stays as it is") == 1


def test_missing_thread_is_an_error(
    subscribers: list[Transport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscriber disconnects."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "navsense-current":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(SimulationError, match="water://: the system cannot start another thread; end other programs"):
        ns.record(load(tmp_path, UNIFORM), tmp_path / "a.npz", 0.2, current="water://")
    assert not subscribers[0].is_connected


@pytest.mark.requirement("CUR-1")
def test_number_of_velocities_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a run is one of requests by other programs."""
    monkeypatch.setattr("navsense.simulation.run_controls.MAX_REQUESTS", 2)
    session = prepare(load(tmp_path, UNIFORM), 1.0, seed=1)
    scheduled = [ns.RunChange(0.1 * n, "imu", "on", n % 2 == 0) for n in range(5)]
    controls = RunControls(session, scheduled)
    taken: list[ns.RunChange] = []
    for n in range(8):
        controls.feed_current((0.01 * n, 0.0, 0.0))
        if n in (2, 5):
            controls.set_rate("imu", 10.0 * n)
        taken += controls.take(0.1 * n)
    assert len(taken) == 5 + 8 + 2
    with pytest.raises(SimulationError, match="changes of a run by other programs: 3; must be at most 2"):
        controls.switch("dvl", on=False)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
def test_changes_of_every_length_are_read_back(tmp_path: Path, suffix: str) -> None:
    """The length of a text can be the code of a brace, with which the text itself begins."""
    values = [float(f"0.{'1' * digits}") for digits in range(1, 16)]
    changes = [
        ns.RunChange(0.01 * (i + 1), "current", "velocity", (values[i % 15], values[10 + i // 15], values[14]))
        for i in range(60)
    ]
    lengths = {len(format_change(change)) for change in changes}
    assert {0x7A, 0x7B} <= lengths
    ns.record(load(tmp_path, UNIFORM), tmp_path / f"a{suffix}", 1.0, changes=changes)
    assert list(ns.open(tmp_path / f"a{suffix}").changes) == changes
