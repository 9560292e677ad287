"""Outputs of `navsense.live`: clients and recordings get what the batch run of the same world has."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.clock import Latency
from navsense.core.errors import RecordingError, SimulationError
from navsense.core.readings import Reading, join_readings
from navsense.motion.driven import State
from navsense.recordings.dataset import Dataset
from navsense.sensors import Altimeter, Dvl, Imu, Magnetometer
from navsense.sensors.doppler import MessageDialect
from navsense.simulation.live_run import LiveRun
from navsense.streams.foxglove import FoxglovePublisher
from navsense.testing import example_world
from navsense.world import Switch, World
from tests.streams.foxglove_client import FoxgloveClient, Message
from tests.streams.network_namespace import network_namespace

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(120), pytest.mark.requirement("LIV-1", "LIV-5")]

EPOCH = 1_800_000_000
DURATION = 0.5
TOPICS = {"/imu", "/dvl", "/dvl_twist", "/dvl/state", "/mag", "/altimeter"}
"""Those of measured values. The other ones are advertised with their first message."""

IMU, DVL, ALTIMETER = "robot::arm::imu", "robot::arm::dvl", "robot::arm::altimeter"


@pytest.fixture(scope="module")
def world() -> World:
    """Return a world with a latency, a sensor with a schedule, and a DVL with several messages."""
    dvl = replace(Dvl.example_spec(), dialect=MessageDialect.UUV)
    sensors: list[tuple[str, Any]] = [("imu", Imu.example_spec()), ("dvl", dvl), ("mag", Magnetometer.example_spec())]
    world = example_world(*sensors, ("altimeter", Altimeter.example_spec()))
    changes: dict[str, dict[str, Any]] = {
        IMU: {"rate": 200.0, "latency": Latency(0.03, 0.01)},
        "robot::arm::mag": {"switches": (Switch(0.2, on=False), Switch(0.4, on=True))},
    }
    return replace(world, sensors=tuple(replace(one, **changes.get(one.name, {})) for one in world.sensors))


def finish(sim: LiveRun, duration: float = DURATION) -> None:
    """Step to the last instant before a duration (s), with the samples of a batch run of this duration."""
    for step in sim:
        if step.time + 1.5 * sim.world.max_step_size > duration:
            return


def read_messages(path: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return log time (ns) and data of the messages of an MCAP file by topic, in order of the log times."""
    messages: dict[str, list[tuple[int, bytes]]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            messages.setdefault(channel.topic, []).append((message.log_time, message.data))
    return messages


def check_recording(found: Dataset, expected: Dataset) -> None:
    """Check that two recordings are equal bit by bit."""
    assert list(found) == list(expected)
    for name, reading in expected.items():
        check_equal(found[name], reading)
    for link, truth in expected.truth.items():
        for array in ("time", "position", "orientation", "velocity", "angular_velocity", "acceleration"):
            assert np.array_equal(getattr(found.truth[link], array), getattr(truth, array))


def check_equal(found: Reading, expected: Reading) -> None:
    """Check that two readings are equal bit by bit."""
    for group in ("arrays", "ideal", "bias"):
        for name, array in getattr(expected, group).items():
            assert getattr(found, group)[name].tobytes() == array.tobytes(), name
    for name in ("time", "clock_error", "arrival", "valid", "emitted"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.requirement("FIL-1")
def test_recordings_equal_those_of_the_batch_run(world: World, tmp_path: Path) -> None:
    """Bit by bit, the truth of the links too, and samples that are still on their way at the end."""
    names = ["run.npz", "run.mcap", "run.bag", "run.gz.mcap"]
    live, batch = [tmp_path / f"live_{name}" for name in names], [tmp_path / f"batch_{name}" for name in names]
    with ns.live(world, seed=5, epoch=EPOCH, publish=live) as sim:
        finish(sim)
    ns.record(world, batch, DURATION, seed=5, epoch=EPOCH)
    for index in (0, 1, 2):
        check_recording(ns.open(live[index]), ns.open(batch[index]))
    for index in (1, 3):
        found, expected = read_messages(live[index]), read_messages(batch[index])
        assert found == expected
    assert ns.open(live[0])[IMU].arrival[-1] > DURATION


class Client:
    """A client of Foxglove that connects as soon as there is a server, and collects all messages in a thread."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        until = time.monotonic() + 20.0
        while time.monotonic() < until:
            try:
                client = FoxgloveClient("foxglove://127.0.0.1:8765")
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        with closing(client):
            while not set(client.topics) >= TOPICS:  # the server advertises them one after another
                client.send("getParameters", parameterNames=["seed"], id="ping")
                client.receive_reply("ping")
            client.subscribe(client.topics)
            self.messages += client

    def finish(self) -> dict[str, list[tuple[int, bytes]]]:
        """Return log time (ns) and data of the messages by topic, after the server has closed the connection."""
        self.thread.join(30.0)
        assert not self.thread.is_alive()
        messages: dict[str, list[tuple[int, bytes]]] = {}
        for message in self.messages:
            messages.setdefault(message.topic, []).append((message.log_time, message.data))
        return messages


def test_client_receives_the_messages_of_the_batch_run(world: World, tmp_path: Path) -> None:
    """Byte by byte at its speed of stepping; a message with a latency waits for its arrival."""
    with network_namespace():
        client = Client()
        with ns.live(world, seed=5, epoch=EPOCH, publish="foxglove://?wait=20") as sim:
            finish(sim)
        received = client.finish()
    ns.record(world, tmp_path / "run.mcap", DURATION, seed=5, epoch=EPOCH)
    expected = read_messages(tmp_path / "run.mcap")
    for topic in TOPICS:
        assert received[topic] == expected[topic], topic
    times = [message.log_time for message in client.messages if message.topic in TOPICS]
    assert times == sorted(times)


def drive(sim: LiveRun, count: int) -> dict[str, Reading]:
    """Return the readings of steps in which the caller drives the robot along a circle."""
    parts: dict[str, list[Reading]] = {}
    for n in range(count):
        angle = 0.02 * n
        state = State(ns.Pose.from_rpy((4.0 * np.sin(angle), -4.0 * np.cos(angle), 2.0), 0.0, 0.1, angle))
        for name, reading in sim.step({"robot": state}).readings.items():
            parts.setdefault(name, []).append(reading)
    return {name: join_readings(found) for name, found in parts.items()}


def test_driven_run_is_recorded(world: World, tmp_path: Path) -> None:
    """The recording has the readings that the caller got, and the truth at the ends of the steps."""
    world = replace(world, max_step_size=0.01, sensors=world.sensors[1:])
    with ns.live(world, seed=5, driven=["robot"], publish=tmp_path / "run.npz") as sim:
        readings = drive(sim, 40)
    recording = ns.open(tmp_path / "run.npz")
    for name, reading in readings.items():
        check_equal(recording[name], reading)
    truth = recording.truth["robot"]
    assert truth.time.tolist() == [n / 100.0 for n in range(40)]
    assert truth.position[7].tolist() == [4.0 * np.sin(0.14), -4.0 * np.cos(0.14), 2.0]


@pytest.mark.requirement("DVU-7", "ALT-5")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_switched_and_adjusted_sensors_are_recorded_as_they_publish(world: World, tmp_path: Path, suffix: str) -> None:
    """The topic `state` of the DVL follows its switch, and the altimeter has its new reference."""
    path, parts, on = tmp_path / f"run{suffix}", dict[str, list[Reading]](), []
    with ns.live(world, seed=5, epoch=EPOCH, publish=[path]) as sim:
        dvl, altimeter = sim.sensor("dvl"), sim.sensor("altimeter")
        for step in sim:
            for name, reading in step.readings.items():
                parts.setdefault(name, []).append(reading)
            on += [dvl.is_on] * int(DVL in step.readings)
            if step.time >= DURATION:
                break
            if abs(step.time - 0.2) < 1e-9 or abs(step.time - 0.3) < 1e-9:
                dvl.switch(on=not dvl.is_on)
                altimeter.set("vertical_reference", 10.0 * step.time)
    recording = ns.open(path)
    readings = {name: join_readings(found) for name, found in parts.items()}
    assert recording[ALTIMETER]["vertical_reference"].tolist() == readings[ALTIMETER]["vertical_reference"].tolist()
    assert set(recording[ALTIMETER]["vertical_reference"].tolist()) > {2.0, 3.0}
    published = readings[DVL].emitted
    assert recording[DVL].time.tolist() == readings[DVL].time[published].tolist()
    assert published.sum() < readings[DVL].time.size
    with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
        states = [one for one in reader.connections if one.topic.endswith("/state")]
        found = [bool(reader.deserialize(raw, states[0].msgtype).data) for *_, raw in reader.messages(states)]  # type: ignore[attr-defined]
    assert found == on
    assert not all(on)


def fail(*_: object) -> None:
    """Fail as a stream does."""
    raise RecordingError("the cable was pulled")


def test_failed_output_is_logged_and_the_others_go_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.npz"
    sim = ns.live(world, seed=5, publish=["foxglove://:0?wait=0", path])
    sim.step()
    monkeypatch.setattr(FoxglovePublisher, "write", fail)
    finish(sim)
    with pytest.raises(RecordingError, match="the cable was pulled"):
        sim.close()
    sim.close()
    assert caplog.messages == ["the cable was pulled; the run continues with the other outputs"]
    check_equal(ns.open(path)[IMU], ns.simulate(world, DURATION, seed=5)[IMU])


def run_and_fail(sim: LiveRun) -> None:
    """Step, and raise an exception in the context of the run."""
    with sim:
        finish(sim, 0.2)
        raise ZeroDivisionError


@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_exception_closes_the_outputs_with_what_was_published(world: World, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    sim = ns.live(world, seed=5, publish=["foxglove://:0?wait=0", path])
    with pytest.raises(ZeroDivisionError):
        run_and_fail(sim)
    with pytest.raises(SimulationError, match="is closed"):
        sim.step()
    ns.record(world, tmp_path / f"batch{suffix}", 0.2, seed=5)
    check_recording(ns.open(path), ns.open(tmp_path / f"batch{suffix}"))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("navsense")] == []


def test_run_without_close_completes_its_recording(world: World, tmp_path: Path) -> None:
    """When it is collected, or at the end of the program."""
    sim = ns.live(world, seed=5, publish=tmp_path / "run.npz")
    finish(sim, 0.1)
    assert not (tmp_path / "run.npz").exists()
    del sim
    gc.collect()
    assert ns.open(tmp_path / "run.npz")[IMU].time.size == 20


@pytest.mark.parametrize(
    ("publish", "message"),
    [
        (3, "publish: 3; must be URLs of streams and paths of recordings"),
        ([b"a.mcap"], "publish: .*; must be URLs of streams and paths of recordings"),
        (["foxglove://", "foxglove://"], "are the same URL"),
        ("ros9://", "ros9://: scheme of the URL: ros9; must be one of"),
        ("run.xyz", "run.xyz: "),
    ],
)
def test_invalid_outputs_are_errors(world: World, publish: Any, message: str) -> None:
    with pytest.raises(ns.NavsenseError, match=message):
        ns.live(world, publish=publish)
