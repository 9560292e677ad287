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
from navsense.sinks import read, sources
from navsense.sinks.base import LAYOUT
from navsense.sinks.convert import convert
from navsense.sinks.load import load
from navsense.sinks.read import MessageReader
from navsense.sinks.sources import Item, Lot, McapSource, lots_of, opened
from navsense.sinks.stored import gathered
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


@pytest.mark.requirement("REC-1:convert", "NOI-6", "CLK-5")
@pytest.mark.parametrize("latency", [Latency(0.03), Latency(0.0123456789, 0.02), Latency(0.01)])
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
            layout["sensors"][0].pop("latency")
            source.about[LAYOUT] = json.dumps(layout)
        reader = MessageReader(source)
        (found,) = gathered(reader.slabs())[0].values()
    assert FAULT not in found.errors
    assert "topic /dvl/fault of std_msgs/msg/UInt8: nothing that is read" in reader.left
    assert np.allclose(found.time, found["time_of_validity"], rtol=0.0, atol=6e-10)
    assert (found.arrival > found.time).all()
