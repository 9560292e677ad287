"""The current of a run that a topic of a live system feeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import NavsenseError
from navsense.core.readings import RunChange
from navsense.environment.current.adjustment import CURRENT_PROPERTIES
from navsense.recordings.run_changes import format_change
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


@pytest.fixture
def subscribers() -> Iterator[list[CurrentSubscriber]]:
    """The subscribers that `water://` has opened; `water://?frame=FRAME` sets their frame."""
    opened: list[CurrentSubscriber] = []

    def open_current(url: StreamUrl) -> CurrentSubscriber:
        opened.append(CurrentSubscriber(url.text, "topic /water", url.options.get("frame", "world")))
        return opened[-1]

    register_stream(replace(list_streams()[0], scheme="water", open_current=open_current, motion_options=("frame",)))
    yield opened
    stream_module._STREAMS.pop("water", None)


def feed(subscribers: list[CurrentSubscriber]) -> Callable[[float, float], None]:
    """Return a progress function that sends velocities at 0.5 and 1 s and waits until they have had time to arrive."""
    sent: list[float] = []

    def progress(done: float, _total: float) -> None:
        for at, velocity in ((0.5, (0.3, -0.2, 0.0)), (1.0, (0.6, 0.0, 0.05))):
            if done >= at and at not in sent:
                sent.append(at)
                subscribers[0].put(velocity)
                time.sleep(0.3)

    return progress


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_velocities_act_from_the_next_time_slice_and_repeat_bitwise(
    subscribers: list[CurrentSubscriber], tmp_path: Path, suffix: str
) -> None:
    """Each velocity holds until the next one; the changes in the recording repeat the run."""
    world = load(tmp_path, UNIFORM)
    ns.record(world, tmp_path / f"a{suffix}", 1.6, seed=2, speed=4.0, current="water://", progress=feed(subscribers))
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
def test_velocity_in_ned_is_turned(subscribers: list[CurrentSubscriber], tmp_path: Path) -> None:
    """North, east and down of the topic are y, x and -z of a world that faces east."""
    world = load(tmp_path, UNIFORM)
    ns.record(world, tmp_path / "a.npz", 1.6, speed=4.0, current="water://?frame=ned", progress=feed(subscribers))
    current = ns.open(tmp_path / "a.npz").current
    assert current is not None
    np.testing.assert_array_equal(current.velocity[-1], (0.0, 0.6, -0.05))


@pytest.mark.requirement("CUR-1")
def test_end_of_the_topic_keeps_the_last_velocity(
    subscribers: list[CurrentSubscriber], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A live system that ends is a warning. The run goes on."""
    send = feed(subscribers)

    def progress(done: float, total: float) -> None:
        send(done, total)
        if done >= 1.0:
            subscribers[0].fail("the live system closed the connection")

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
    subscribers: list[CurrentSubscriber], tmp_path: Path, current: str, url: str, problem: str
) -> None:
    """A world without a current names the element that it needs."""
    with pytest.raises(NavsenseError, match=problem):
        ns.record(load(tmp_path, current), tmp_path / "a.npz", 1.0, current=url)
    assert len(subscribers) <= 1


def test_velocity_is_a_property_of_the_current() -> None:
    """The property has the name that recordings store."""
    assert CURRENT_PROPERTIES[0] == "velocity"


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3"])
def test_changes_of_every_length_are_read_back(tmp_path: Path, suffix: str) -> None:
    """The length of a text can be the code of a brace, with which the text itself begins."""
    values = [float(f"0.{'1' * digits}") for digits in range(1, 16)]
    changes = [
        RunChange(0.01 * (i + 1), "current", "velocity", (values[i % 15], values[10 + i // 15], values[14]))
        for i in range(60)
    ]
    lengths = {len(format_change(change)) for change in changes}
    assert {0x7A, 0x7B} <= lengths
    ns.record(load(tmp_path, UNIFORM), tmp_path / f"a{suffix}", 1.0, changes=changes)
    assert list(ns.open(tmp_path / f"a{suffix}").changes) == changes
