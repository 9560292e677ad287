"""Which faults act on which rows, out of recordings of messages: where some were lost, and of what arrives late."""

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
from navsense.noise.faults import Faults
from navsense.noise.planned import FAULT, Planned
from navsense.sensors import Adcp, Dvl, Imu
from navsense.series import nanoseconds
from navsense.sinks import read, sources
from navsense.sinks.base import LAYOUT
from navsense.sinks.convert import convert
from navsense.sinks.load import load
from navsense.sinks.read import MessageReader
from navsense.sinks.sources import Item, Lot, McapSource, lots_of, opened
from navsense.sinks.stored import gathered
from navsense.sinks.world_json import world_to_json
from navsense.testing import witness_world

EPOCH = 1000
SECOND = 1_000_000_000
IMU = "robot::arm::imu"
TOPIC = "/imu/fault"

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def struck(*named: tuple[str, ns.sensors.Sensor], latency: Latency | None = None) -> ns.World:
    """Return a robot whose sensors are stuck, dropped out and stuck again."""
    planned = (Planned("stuck", 0.05, 0.3), Planned("dropout", 0.35, 0.4), Planned("stuck", 0.5, 0.55))
    world = witness_world(*named)
    sensors = [dataclasses.replace(one, faults=Faults(planned=planned), latency=latency) for one in world.sensors]
    return dataclasses.replace(world, sensors=tuple(sensors))


@dataclass(eq=False)
class Lossy:
    """A source that has lost the fault messages of some spans (s)."""

    source: McapSource
    spans: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        self.where, self.lines = self.source.where, self.source.lines
        self.about, self.own = self.source.about, self.source.own

    def items(self) -> Iterator[Item]:
        for item in self.source.items():
            at = item.log / SECOND - EPOCH
            if item.line.topic != TOPIC or not any(first <= at < stop for first, stop in self.spans):
                yield item

    def lots(self, topics: Collection[str]) -> Iterator[list[Lot]]:
        return lots_of(self.items(), topics)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording of faults of an IMU, of rows and of messages."""
    place = tmp_path_factory.mktemp("rows")
    ns.record(struck(("imu", Imu.witness())), [place / "a.npz", place / "a.mcap"], 0.8, seed=5, epoch=EPOCH)
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
def test_lost_messages_cost_their_own_rows(folder: Path, monkeypatch: pytest.MonkeyPatch, lost: str, size: int) -> None:
    """Rows without a message are taken as well, and counted; those of no message at all say nothing."""
    monkeypatch.setattr(read, "SLAB_BYTES", size)
    monkeypatch.setattr(sources, "BATCH_BYTES", size)
    known = load(folder / "a.npz")[IMU]
    at, acts = known.time[known.emitted], known.errors[FAULT][known.emitted]
    gone = np.logical_or.reduce([(first <= at) & (at < stop) for first, stop in SPANS[lost]])
    assert acts[gone].any()
    with opened(folder / "a.mcap") as source:
        assert isinstance(source, McapSource)
        reader = MessageReader(Lossy(source, SPANS[lost]))
        slabs = list(reader.slabs())
    assert sum(bool(slab.readings) for slab in slabs) > 1 or size > 1 or lost in ("all", "all but one")
    found = gathered(slabs)[0][IMU]
    assert np.array_equal(found.time, at)
    note = f"topic {TOPIC}: has no message of the instants of"
    if lost == "all":
        assert FAULT not in found.errors
        assert f"{note} its sensor's readings" in reader.left
        return
    told = [slab.readings[IMU].errors[FAULT] for slab in slabs if IMU in slab.readings]
    assert np.array_equal(np.concatenate(told), np.where(gone, 0, acts))
    assert (
        f"{note} {gone.sum()} of {at.size} of its sensor's readings; they are taken as without a fault" in reader.left
    )


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("span", [(-1.0, 0.551), (0.201, 0.751), (-1.0, 1.0)], ids=["the first", "a window", "all"])
def test_rows_wait_for_lost_messages_by_a_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch, span: tuple[float, float]
) -> None:
    """After so many they are handed on as without a fault, and counted, however many messages come later."""
    most = 20
    monkeypatch.setattr(read, "MOST_ROWS", most)
    monkeypatch.setattr(read, "SLAB_BYTES", 1)
    monkeypatch.setattr(sources, "BATCH_BYTES", 1)
    known = load(folder / "a.npz")[IMU]
    at, acts = known.time[known.emitted], known.errors[FAULT][known.emitted]
    gone = (span[0] <= at) & (at < span[1])
    assert gone.sum() > 3 * most
    with opened(folder / "a.mcap") as source:
        assert isinstance(source, McapSource)
        reader = MessageReader(Lossy(source, (span,)))
        found = [slab.readings[IMU] for slab in reader.slabs() if IMU in slab.readings]
    assert max(one.time.size for one in found) <= most + 2
    assert np.array_equal(np.concatenate([one.time for one in found]), at)
    assert np.array_equal(np.concatenate([one.errors[FAULT] for one in found]), np.where(gone, 0, acts))
    note = f"{gone.sum()} of {at.size} of its sensor's readings; they are taken as without a fault"
    assert f"topic {TOPIC}: has no message of the instants of {note}" in reader.left


@pytest.mark.requirement("REC-1:convert", "CLK-5")
@pytest.mark.parametrize("rate", [3.0, 7.0])
@pytest.mark.parametrize("delay", [0.0123456784999, 0.03])
def test_when_a_message_was_sent_is_known_to_the_nanosecond(rate: float, delay: float) -> None:
    """Instants of such a rate are no whole nanoseconds: what is rounded twice may be off by one."""
    time = np.arange(10_000) / rate
    (sensor,) = witness_world(("dvl", Dvl.witness())).sensors
    sensor = dataclasses.replace(sensor, rate=rate, latency=Latency(delay))
    arrived, sent = nanoseconds(EPOCH, time + delay), nanoseconds(EPOCH, time)
    assert np.array_equal(read.Head(EPOCH, own=True, exact=True).sent(arrived, sensor), sent)
    plain = arrived - round(delay * SECOND)
    assert np.abs(plain - sent).max() == (delay != 0.03)  # the one is no whole number of them


@pytest.mark.requirement("REC-1:convert", "NOI-6", "CLK-5")
@pytest.mark.parametrize("latency", [Latency(0.03), Latency(0.0123456789, 0.02), Latency(0.01), Latency()])
def test_a_doppler_instrument_with_a_latency(tmp_path: Path, latency: Latency) -> None:
    """It is told when it was sent: what arrives is that much later, to the nanosecond."""
    world = struck(("dvl", Dvl.witness()), ("adcp", Adcp.witness()), latency=latency)
    ns.record(world, [tmp_path / name for name in ("a.npz", "a.mcap", "a.db3", "a.bag")], 1.0, seed=5, epoch=EPOCH)
    convert(tmp_path / "a.mcap", tmp_path / "b.npz")
    convert(tmp_path / "b.npz", tmp_path / "c.mcap")
    known = load(tmp_path / "a.npz")
    for name in ("a.mcap", "a", "a.bag", "b.npz", "c.mcap"):
        found = load(tmp_path / name)
        assert found.recording().world.sensors[0].latency == latency
        for full, expected in known.items():
            told, acts = found[full], expected.errors[FAULT][expected.emitted]
            assert acts.any()
            assert not acts.all()
            assert np.array_equal(told.time, expected.time[expected.emitted]), (name, full)
            assert np.array_equal(told.errors[FAULT], acts), (name, full)
            assert np.allclose(told.arrival, expected.arrival[expected.emitted], rtol=0.0, atol=6e-10)
            validity = expected["time_of_validity"][expected.emitted]
            assert np.allclose(told["time_of_validity"], validity, rtol=0.0, atol=6e-10, equal_nan=True)


@pytest.mark.requirement("REC-1:convert", "NOI-6", "CLK-5")
@pytest.mark.parametrize("latency", [Latency(0.03, 0.01, 0.005), Latency(0.03)], ids=["random", "not said"])
def test_what_nothing_says_is_not_guessed(tmp_path: Path, latency: Latency) -> None:
    """Of a latency that differs from row to row, or is not said, the instants are those of validity, without faults."""
    ns.record(struck(("dvl", Dvl.witness()), latency=latency), tmp_path / "a.mcap", 1.0, seed=5, epoch=EPOCH)
    with opened(tmp_path / "a.mcap") as source:
        if not latency.stddev:
            layout = json.loads(source.about[LAYOUT])
            layout["sensors"][0]["latency"] = "unspecified"
            source.about[LAYOUT] = json.dumps(layout)
        reader = MessageReader(source)
        (found,) = gathered(reader.slabs())[0].values()
    assert FAULT not in found.errors
    assert "topic /dvl/fault of std_msgs/msg/UInt8: nothing that is read" in reader.left
    carried_on = world_to_json(reader.world)["sensors"][0]["latency"]
    assert (carried_on == "unspecified") == (not latency.stddev), "not said in what is made of it either"
    assert np.allclose(found.time, found["time_of_validity"], rtol=0.0, atol=6e-10)
    assert (found.arrival > found.time).all()
