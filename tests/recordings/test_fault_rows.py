"""Faulty rows from recordings of messages: with lost messages, and with latency."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.clock import Latency
from navsense.core.readings import to_nanoseconds
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.recordings import channels, reading_assembler
from navsense.recordings.channels import MessageBatch, RawMessage, batch_messages
from navsense.recordings.convert import convert
from navsense.recordings.dataset import collect
from navsense.recordings.info import WORLD_JSON_KEY
from navsense.recordings.mcap.reader import McapReader
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.recordings.world_json import world_to_json
from navsense.sensors import Adcp, Dvl, Imu
from navsense.testing import example_world

EPOCH = 1000
SECOND = 1_000_000_000
IMU = "robot::arm::imu"
TOPIC = "/imu/fault"

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def make_world(*named: tuple[str, ns.sensors.Sensor], latency: Latency | None = None) -> ns.World:
    """Return a robot whose sensors are stuck, drop out and are stuck again."""
    planned = (
        ScheduledFault("stuck", 0.05, 0.3),
        ScheduledFault("dropout", 0.35, 0.4),
        ScheduledFault("stuck", 0.5, 0.55),
    )
    world = example_world(*named)
    sensors = [
        dataclasses.replace(sensor, faults=Faults(scheduled=planned), latency=latency) for sensor in world.sensors
    ]
    return dataclasses.replace(world, sensors=tuple(sensors))


@dataclass(eq=False)
class LossySource:
    """A source without the fault messages of some intervals (s)."""

    source: McapReader
    spans: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        self.where, self.channels = self.source.where, self.source.channels
        self.metadata, self.is_navsense = self.source.metadata, self.source.is_navsense

    def read_messages(self) -> Iterator[RawMessage]:
        for part in self.source.read_messages():
            at = part.log_time / SECOND - EPOCH
            if part.channel.topic != TOPIC or not any(first <= at < stop for first, stop in self.spans):
                yield part

    def read_batches(self, topics: Collection[str]) -> Iterator[list[MessageBatch]]:
        return batch_messages(self.read_messages(), topics)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording of faults of an IMU, of rows and of messages."""
    place = tmp_path_factory.mktemp("rows")
    ns.record(make_world(("imu", Imu.example_spec())), [place / "a.npz", place / "a.mcap"], 0.8, seed=5, epoch=EPOCH)
    return place


SPANS = {
    "a window": ((0.201, 0.451),),
    "the first": ((-1.0, 0.251),),
    "the last": ((0.521, 1.0),),
    "all but one": ((-1.0, 0.199), (0.201, 1.0)),
    "all": ((-1.0, 1.0),),
}


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("size", [1, 30_000, 10**9])
@pytest.mark.parametrize("lost", SPANS)
def test_lost_messages_lose_only_their_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lost: str, size: int
) -> None:
    """Rows without a message are read and counted. Rows of a sensor without any message give no information."""
    monkeypatch.setattr(reading_assembler, "SLICE_BYTES", size)
    monkeypatch.setattr(channels, "BATCH_BYTES", size)
    known = ns.open(folder / "a.npz")[IMU]
    at, acts = known.time[known.emitted], pack_fault_bits(known.fault)[known.emitted]
    gone = np.logical_or.reduce([(first <= at) & (at < stop) for first, stop in SPANS[lost]])
    assert acts[gone].any()
    with open_messages(folder / "a.mcap") as source:
        assert isinstance(source, McapReader)
        reader = ReadingAssembler(LossySource(source, SPANS[lost]))
        slices = list(reader.iter_slices())
    assert sum(bool(time_slice.readings) for time_slice in slices) > 1 or size > 1 or lost in ("all", "all but one")
    found = collect(slices)[0][IMU]
    assert np.array_equal(found.time, at)
    note = f"topic {TOPIC}: has no message for"
    if lost == "all":
        assert not found.fault
        assert f"{note} the readings of its sensor" in reader.topic_notes
        return
    fault_bits = [
        pack_fault_bits(time_slice.readings[IMU].fault) for time_slice in slices if IMU in time_slice.readings
    ]
    assert np.array_equal(np.concatenate(fault_bits), np.where(gone, 0, acts))
    assert f"{note} {gone.sum()} of {at.size} readings; they are read as without a fault" in reader.topic_notes


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("span", [(-1.0, 0.551), (0.201, 0.751), (-1.0, 1.0)], ids=["the first", "a window", "all"])
def test_rows_wait_for_a_limited_number_of_lost_messages(
    folder: Path, monkeypatch: pytest.MonkeyPatch, span: tuple[float, float]
) -> None:
    """After this number, rows are counted and yielded without a fault."""
    most = 20
    monkeypatch.setattr(reading_assembler, "MAX_HELD_ROWS", most)
    monkeypatch.setattr(reading_assembler, "SLICE_BYTES", 1)
    monkeypatch.setattr(channels, "BATCH_BYTES", 1)
    known = ns.open(folder / "a.npz")[IMU]
    at, acts = known.time[known.emitted], pack_fault_bits(known.fault)[known.emitted]
    gone = (span[0] <= at) & (at < span[1])
    assert gone.sum() > 3 * most
    with open_messages(folder / "a.mcap") as source:
        assert isinstance(source, McapReader)
        reader = ReadingAssembler(LossySource(source, (span,)))
        found = [time_slice.readings[IMU] for time_slice in reader.iter_slices() if IMU in time_slice.readings]
    assert max(one.time.size for one in found) <= most + 2
    assert np.array_equal(np.concatenate([one.time for one in found]), at)
    assert np.array_equal(np.concatenate([pack_fault_bits(one.fault) for one in found]), np.where(gone, 0, acts))
    note = f"{gone.sum()} of {at.size} readings; they are read as without a fault"
    assert f"topic {TOPIC}: has no message for {note}" in reader.topic_notes


@pytest.mark.requirement("REC-1:convert", "CLK-5")
@pytest.mark.parametrize("rate", [3.0, 7.0])
@pytest.mark.parametrize("delay", [0.0123456784999, 0.03])
def test_publication_time_is_exact_to_the_nanosecond(rate: float, delay: float) -> None:
    """Sample times at this rate are not integer nanoseconds: rounding twice may differ by one."""
    time = np.arange(10_000) / rate
    (sensor,) = example_world(("dvl", Dvl.example_spec())).sensors
    sensor = dataclasses.replace(sensor, rate=rate, latency=Latency(delay))
    arrived, sent = to_nanoseconds(EPOCH, time + delay), to_nanoseconds(EPOCH, time)
    time_base = reading_assembler.TimeBase(EPOCH, is_navsense=True, has_world_json=True)
    assert np.array_equal(time_base.subtract_latency(arrived, sensor), sent)
    plain = arrived - round(delay * SECOND)
    assert np.abs(plain - sent).max() == (delay != 0.03)  # the one is not a multiple of the other


@pytest.mark.requirement("REC-1:convert", "NOI-6", "CLK-5")
@pytest.mark.parametrize("latency", [Latency(0.03), Latency(0.0123456789, 0.02), Latency(0.01), Latency()])
def test_doppler_instrument_with_latency(tmp_path: Path, latency: Latency) -> None:
    """The message has its time of publication. It arrives later by the latency, exact to the nanosecond."""
    world = make_world(("dvl", Dvl.example_spec()), ("adcp", Adcp.example_spec()), latency=latency)
    ns.record(world, [tmp_path / name for name in ("a.npz", "a.mcap", "a.db3", "a.bag")], 1.0, seed=5, epoch=EPOCH)
    convert(tmp_path / "a.mcap", tmp_path / "b.npz")
    convert(tmp_path / "b.npz", tmp_path / "c.mcap")
    known = ns.open(tmp_path / "a.npz")
    for name in ("a.mcap", "a", "a.bag", "b.npz", "c.mcap"):
        found = ns.open(tmp_path / name)
        assert found.make_recorded_run().world.sensors[0].latency == latency
        for full, expected in known.items():
            loaded, acts = found[full], pack_fault_bits(expected.fault)[expected.emitted]
            assert acts.any()
            assert not acts.all()
            assert np.array_equal(loaded.time, expected.time[expected.emitted]), (name, full)
            assert np.array_equal(pack_fault_bits(loaded.fault), acts), (name, full)
            assert np.allclose(loaded.arrival, expected.arrival[expected.emitted], rtol=0.0, atol=6e-10)
            validity = expected["time_of_validity"][expected.emitted]
            assert np.allclose(loaded["time_of_validity"], validity, rtol=0.0, atol=6e-10, equal_nan=True)


@pytest.mark.requirement("REC-1:convert", "NOI-6", "CLK-5")
@pytest.mark.parametrize("latency", [Latency(0.03, 0.01, 0.005), Latency(0.03)], ids=["random", "not said"])
def test_missing_values_are_not_inferred(tmp_path: Path, latency: Latency) -> None:
    """For an unknown or varying latency, the times are those of validity, without faults."""
    ns.record(make_world(("dvl", Dvl.example_spec()), latency=latency), tmp_path / "a.mcap", 1.0, seed=5, epoch=EPOCH)
    with open_messages(tmp_path / "a.mcap") as source:
        if not latency.stddev:
            layout = json.loads(source.metadata[WORLD_JSON_KEY])
            layout["sensors"][0]["latency"] = "unspecified"
            source.metadata[WORLD_JSON_KEY] = json.dumps(layout)
        reader = ReadingAssembler(source)
        (found,) = collect(reader.iter_slices())[0].values()
    assert not found.fault
    assert "topic /dvl/fault of type std_msgs/msg/UInt8 is not read" in reader.topic_notes
    carried_on = world_to_json(reader.world)["sensors"][0]["latency"]
    assert (carried_on == "unspecified") == (not latency.stddev), "not said in what is made of it either"
    assert np.allclose(found.time, found["time_of_validity"], rtol=0.0, atol=6e-10)
    assert (found.arrival > found.time).all()
