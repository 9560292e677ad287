"""Faults on purpose of sensors, clocks and the world: the same list in every format, however often it is converted."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

import navsense as ns
from navsense.clock import Latency
from navsense.clock.base import Step
from navsense.environment.anomaly import Anomaly
from navsense.environment.base import Sum
from navsense.faults import listed
from navsense.noise.faults import Faults
from navsense.noise.planned import BITS, Planned
from navsense.report.recorded import recording_of
from navsense.sensors import Dvl, Imu, Magnetometer
from navsense.series import Slab
from navsense.sinks.convert import convert
from navsense.sinks.info import info
from navsense.sinks.load import load
from navsense.sinks.lost import Lost
from navsense.sinks.records import DamagedError
from navsense.sinks.type_tags import to_json
from navsense.sinks.world_json import world_from_json, world_to_json
from navsense.testing import witness_world

EPOCH = 1000
DVL, MAG = "robot::arm::dvl", "robot::arm::magnetometer"
MADE = {".npz": "a.npz", ".parquet": "a.parquet", ".csv": "t", ".mcap": "m.mcap", ".bag": "b.bag", ".db3": "d"}
"""Recordings by the suffix that they were written with."""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def struck() -> ns.World:
    """Return a robot with every kind of fault on purpose, of its sensors, its clock and the world."""
    world = witness_world(("imu", Imu.witness()), ("dvl", Dvl.witness()), ("magnetometer", Magnetometer.witness()))
    imu, dvl, mag = world.sensors
    planned = {
        imu.name: (
            Planned("bias", 0.1, 0.25, "angular_velocity", (0.1, 0.0, 0.0)),
            Planned("spike", 0.05, math.inf, "linear_acceleration", (3.0,), 0.1),
        ),
        dvl.name: (Planned("lost_lock", 0.15, 0.3), Planned("dropout", 0.35)),
        mag.name: (Planned("stuck", 0.2, 0.3),),
    }
    sensors = tuple(dataclasses.replace(one, faults=Faults(planned=planned[one.name])) for one in (imu, dvl, mag))
    clock = dataclasses.replace(world.clocks[0], steps=(Step(0.1, 0.2, -0.01), Step(0.3, size=0.5)))
    anomalies = (Anomaly((2e-6, 0.0, -1e-6), 0.1, 0.3), Anomaly((0.0, 1e-7, 0.0), 0.25))
    field = Sum((world.environment.magnetic_field, *anomalies))
    around = dataclasses.replace(world.environment, magnetic_field=field)
    return dataclasses.replace(world, sensors=sensors, clocks=(clock,), environment=around)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording of faults in every format that carries our description."""
    place = tmp_path_factory.mktemp("carried")
    names = [f"{name}{suffix}" if "." not in name else name for suffix, name in MADE.items()]
    ns.record(struck(), [place / name for name in names], 0.5, seed=5, epoch=EPOCH)
    return place


def check(path: Path) -> None:
    """Assert that all which reads a recording knows its faults."""
    known = listed(struck())
    assert {one["kind"] for one in known} == {*BITS, "step", "magnetic_anomaly"}
    assert len(known) == 9
    loaded = load(path)
    assert listed(loaded.recording().world) == known
    assert loaded.meta["faults"] == known
    assert json.loads(info(path).meta["faults"]) == known
    assert f", {len(known)} faults on purpose" in info(path).headline
    assert list(recording_of(str(path)).planned) == known


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("source", MADE)
def test_every_kind_goes_along(folder: Path, tmp_path: Path, source: str) -> None:
    check(folder / MADE[source])
    for suffix in (*MADE, ""):
        made = convert(folder / MADE[source], tmp_path / f"{suffix[1:] or 'plain'}{suffix}")
        check(made.path)
        if suffix == ".mcap" and source in (".npz", ".parquet", ".csv"):
            assert made.path.read_bytes() == (folder / MADE[".mcap"]).read_bytes()


@pytest.mark.requirement("REC-1:convert", "NOI-6")
def test_a_format_without_the_list_says_so(folder: Path, tmp_path: Path) -> None:
    line = "the list of faults on purpose"
    for name in ("e.euroc", "a.dvl.pd0", "a.dvl.nmea"):
        assert line in convert(folder / MADE[".npz"], tmp_path / name).lost
    ns.record(witness_world(("imu", Imu.witness())), [tmp_path / "well.npz"], 0.5, seed=5)
    assert line not in convert(tmp_path / "well.npz", tmp_path / "w.euroc").lost
    told = convert(folder / MADE[".npz"], tmp_path / "a.gz.mcap")
    assert line not in told.lost
    assert json.loads(info(told.path).meta["faults"]) == listed(struck())


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("wrong", [3, [3], [{"of": 3}], [to_json(Latency())], "all"])
def test_anomalies_that_are_none(wrong: object) -> None:
    told = json.loads(json.dumps(world_to_json(struck())))
    stored = world_from_json(told)
    assert stored is not None
    assert listed(stored.world) == listed(struck())
    with pytest.raises(DamagedError, match=r"damaged: (anomal(y|ies) has a wrong type|a value has no type)"):
        world_from_json({**told, "anomalies": wrong})
    assert not {"anomalies"} & set(world_to_json(witness_world(("imu", Imu.witness()))))


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("name", [MADE[".npz"], MADE[".csv"]])
def test_what_was_dropped_is_told_from_what_told_nothing(folder: Path, tmp_path: Path, name: str) -> None:
    """A DVL of 100 Hz that pings less often, dropped out from 0.35 s on."""
    reading = load(folder / name)[DVL]
    late = reading.time >= 0.35
    dropped, silent = int((~reading.emitted & late).sum()), int((~reading.emitted & ~late).sum())
    assert dropped > 1
    assert silent > 0
    lines = convert(folder / name, tmp_path / "b.mcap").lost
    nothing = "1 row that told nothing" if silent == 1 else f"{silent} rows that told nothing"
    rows = [line for line in lines if line.startswith(DVL) and " row" in line]
    assert rows == [f"{DVL}: {dropped} rows that were dropped", f"{DVL}: {nothing}"]
    loaded = load(folder / name)
    lost = Lost(loaded.recording(), tmp_path / "c.mcap")
    bare = {one: dataclasses.replace(loaded[one], errors={}) for one in (DVL, MAG)}
    lost.note(Slab(0.0, 1.0, bare, {}))
    count = dropped + silent
    assert f"{DVL}: {count} rows that were dropped or told nothing" in lost.lines(), "nothing says which"
    assert not any(" row" in line for line in (*lines, *lost.lines()) if line.startswith(MAG))
