"""A stop signal ends the command at once while the run waits: for states, for a subscriber, or in a pause."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import navsense as ns
from navsense.cli.stop_signals import interrupt_between_steps
from navsense.core.interrupts import interruptible
from navsense.simulation.real_time import RealTimeLimiter
from navsense.streams.ros1.md5 import MOTION_MD5
from tests.streams.network_namespace import network_namespace
from tests.streams.ros1_peers import RosMaster, RosPublisher
from tests.streams.test_ros1_subscriber import ODOMETRY, build

pytestmark = [pytest.mark.timeout(120), pytest.mark.requirement("LIV-7")]

WORLD = """<sdf version="1.10"><world name="live"><model name="robot"><link name="base_link">
  <sensor name="imu" type="imu"><update_rate>1000</update_rate></sensor></link></model></world></sdf>"""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def publisher() -> Iterator[RosPublisher]:
    """A node that publishes odometry, in a network of this test."""
    with network_namespace():
        master = RosMaster()
        publisher = RosPublisher(master, "/odom", ODOMETRY, MOTION_MD5[ODOMETRY])
        yield publisher
        publisher.vanish()
        master.close()


@contextmanager
def follow(publisher: RosPublisher, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the command and wait until it follows the odometry. It has ended after the block."""
    (tmp_path / "live.sdf").write_text(WORLD)
    command = [sys.executable, "-m", "navsense", "run", "live.sdf"]
    command += ["--motion", f"ros1://127.0.0.1:{publisher.master.port}?topic=/odom"]
    command += ["-o", "dive.mcap", "-o", "dive.npz"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        try:
            wait_until(lambda: publisher.headers)
            yield running
        finally:
            running.kill()


def make_message(index: int) -> bytes:
    """Return the odometry at 1 s and `index` ms."""
    pose = (0.01 * index, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return build(ODOMETRY, 10**9 + 10**6 * index, pose, (10.0, 0.0, 0.0, 0.0, 0.0, 0.0))


def test_signal_while_no_state_arrives(publisher: RosPublisher, tmp_path: Path) -> None:
    """The run waits up to 30 s for the first state. Nothing is recorded by then."""
    with follow(publisher, tmp_path) as running:
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert running.returncode == 130, errors
    assert errors.endswith("\nstopped\n")  # no data are kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.sdf"]


def test_signal_while_the_simulator_pauses(publisher: RosPublisher, tmp_path: Path) -> None:
    """The recordings are complete: they have the samples up to the last state."""
    with follow(publisher, tmp_path) as running:
        for index in range(1001):
            publisher.send(make_message(index))
        wait_until(lambda: (tmp_path / "dive.mcap").exists() and (tmp_path / "dive.mcap").stat().st_size > 500_000)
        publisher.send(make_message(1000))  # The warning shows that the run polls again.
        assert running.stderr is not None
        assert any("earlier or equal stamp is ignored" in line for line in running.stderr)
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 130
    for name in ("dive.mcap", "dive.npz"):
        recording = ns.open(tmp_path / name)
        assert recording["imu"].time[-1] == 1.0
        assert recording.truth["robot"].time.size == 1001


@pytest.mark.parametrize("wait", [threading.Event().wait, RealTimeLimiter(1e-6).wait], ids=["subscriber", "pause"])
def test_signal_ends_a_wait_at_once(wait: Callable[[float], object]) -> None:
    """Before the wait or in it. Outside of a wait the first signal is stored."""
    with interrupt_between_steps(lambda _done, _total: None) as advance:
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
        wait(0.0)
        timer.start()
        with pytest.raises(KeyboardInterrupt), interruptible():
            wait(60.0)
    with interrupt_between_steps(lambda _done, _total: None) as advance:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interruptible():
            wait(60.0)
        with pytest.raises(KeyboardInterrupt):
            advance(0.0, 1.0)
