"""Scheduled faults of sensors, clocks and the world: the same list in every format, after any conversions."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

import navsense as ns
from navsense import recordings
from navsense.clock import Latency
from navsense.clock.base import ClockStep
from navsense.core.errors import DamagedError
from navsense.core.readings import FAULT_BITS, TimeSlice
from navsense.environment.base import FieldSum
from navsense.environment.magnetic import Anomaly
from navsense.fault_file import list_faults
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.recordings.convert import convert
from navsense.recordings.losses import ConversionLosses
from navsense.recordings.summary import read_summary
from navsense.recordings.type_tags import to_json
from navsense.recordings.world_json import world_from_json, world_to_json
from navsense.report.report_data import read_report_data
from navsense.sensors import Dvl, Imu, Magnetometer
from navsense.testing import example_world

EPOCH = 1000
DVL, MAG = "robot::arm::dvl", "robot::arm::magnetometer"
MADE = {".npz": "a.npz", ".parquet": "a.parquet", ".csv": "t", ".mcap": "m.mcap", ".bag": "b.bag", ".db3": "d"}
"""Suffixes of the recordings."""

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


def make_world() -> ns.World:
    """Return a robot with every kind of scheduled fault, of its sensors, its clock and the world."""
    world = example_world(
        ("imu", Imu.example_spec()), ("dvl", Dvl.example_spec()), ("magnetometer", Magnetometer.example_spec())
    )
    imu, dvl, mag = world.sensors
    planned = {
        imu.name: (
            ScheduledFault("bias", 0.1, 0.25, "angular_velocity", (0.1, 0.0, 0.0)),
            ScheduledFault("spike", 0.05, math.inf, "linear_acceleration", (3.0,), 0.1),
        ),
        dvl.name: (ScheduledFault("lost_lock", 0.15, 0.3), ScheduledFault("dropout", 0.35)),
        mag.name: (ScheduledFault("stuck", 0.2, 0.3),),
    }
    sensors = tuple(dataclasses.replace(one, faults=Faults(scheduled=planned[one.name])) for one in (imu, dvl, mag))
    clock = dataclasses.replace(world.clocks[0], steps=(ClockStep(0.1, 0.2, -0.01), ClockStep(0.3, size=0.5)))
    anomalies = (Anomaly((2e-6, 0.0, -1e-6), 0.1, 0.3), Anomaly((0.0, 1e-7, 0.0), 0.25))
    field = FieldSum((world.environment.magnetic_field, *anomalies))
    around = dataclasses.replace(world.environment, magnetic_field=field)
    return dataclasses.replace(world, sensors=sensors, clocks=(clock,), environment=around)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording of faults in every format with navsense metadata."""
    place = tmp_path_factory.mktemp("carried")
    names = [f"{name}{suffix}" if "." not in name else name for suffix, name in MADE.items()]
    ns.record(make_world(), [place / name for name in names], 0.5, seed=5, epoch=EPOCH)
    return place


def check(path: Path) -> None:
    """Assert that all readers of a recording find its faults."""
    known = list_faults(make_world())
    assert {fault["kind"] for fault in known} == {*FAULT_BITS, "step", "magnetic_anomaly"}
    assert len(known) == 9
    loaded = ns.open(path)
    assert list_faults(loaded.make_recorded_run().world) == known
    assert loaded.metadata["faults"] == known
    assert json.loads(read_summary(path).metadata["faults"]) == known
    assert f", {len(known)} scheduled faults" in read_summary(path).headline
    assert list(read_report_data(str(path)).scheduled_faults) == known


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("source", MADE)
def test_every_fault_kind_is_converted(folder: Path, tmp_path: Path, source: str) -> None:
    check(folder / MADE[source])
    for suffix in (*MADE, ""):
        result = convert(folder / MADE[source], tmp_path / f"{suffix[1:] or 'plain'}{suffix}")
        check(result.path)
        if suffix == ".mcap" and source in (".npz", ".parquet", ".csv"):
            assert result.path.read_bytes() == (folder / MADE[".mcap"]).read_bytes()


@pytest.mark.requirement("REC-1:convert", "NOI-6")
def test_format_without_fault_list_reports_a_loss(folder: Path, tmp_path: Path) -> None:
    line = "the list of scheduled faults"
    for name in ("e.euroc", "a.dvl.pd0", "a.dvl.nmea"):
        assert line in convert(folder / MADE[".npz"], tmp_path / name).losses
    ns.record(example_world(("imu", Imu.example_spec())), [tmp_path / "well.npz"], 0.5, seed=5)
    assert line not in convert(tmp_path / "well.npz", tmp_path / "w.euroc").losses
    conversion = convert(folder / MADE[".npz"], tmp_path / "a.gz.mcap")
    assert line not in conversion.losses
    assert json.loads(read_summary(conversion.path).metadata["faults"]) == list_faults(make_world())


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("wrong", [3, [3], [{"of": 3}], [to_json(Latency())], "all"])
def test_invalid_anomalies(wrong: object) -> None:
    metadata = json.loads(json.dumps(world_to_json(make_world())))
    stored = world_from_json(metadata)
    assert stored is not None
    assert list_faults(stored.world) == list_faults(make_world())
    with pytest.raises(DamagedError, match=r"damaged: (anomal(y|ies) has a wrong type|a value has no type)"):
        world_from_json({**metadata, "anomalies": wrong})
    assert not {"anomalies"} & set(world_to_json(example_world(("imu", Imu.example_spec()))))


@pytest.mark.requirement("REC-1:convert", "NOI-6")
@pytest.mark.parametrize("name", [MADE[".npz"], MADE[".csv"]])
def test_dropped_samples_differ_from_missing_messages(folder: Path, tmp_path: Path, name: str) -> None:
    """The DVL has 100 Hz but fewer pings, and drops out from 0.35 s on."""
    reading = ns.open(folder / name)[DVL]
    late = reading.time >= 0.35
    dropped, silent = int((~reading.emitted & late).sum()), int((~reading.emitted & ~late).sum())
    assert dropped > 1
    assert silent > 0
    lines = convert(folder / name, tmp_path / "b.mcap").losses
    nothing = "1 row that had no output" if silent == 1 else f"{silent} rows that had no output"
    rows = [line for line in lines if line.startswith(DVL) and " row" in line]
    assert rows == [f"{DVL}: {dropped} rows that were dropped", f"{DVL}: {nothing}"]
    loaded = ns.open(folder / name)
    lost = ConversionLosses(recordings.FORMATS[0], loaded.make_recorded_run(), tmp_path / "c.mcap")
    bare = {one: dataclasses.replace(loaded[one], fault={}) for one in (DVL, MAG)}
    lost.add(TimeSlice(0.0, 1.0, bare, {}))
    count = dropped + silent
    assert f"{DVL}: {count} rows that were dropped or had no output" in lost.format_lines(), "nothing says which"
    assert not any(" row" in line for line in (*lines, *lost.format_lines()) if line.startswith(MAG))
