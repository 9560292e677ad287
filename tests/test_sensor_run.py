"""Latency and faults of mounted sensors: in memory, in live runs, in files, from SDF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader

import navsense as ns
from navsense.clock import Latency
from navsense.core.errors import FieldError, SdfError, SensorError, SimulationError, Where
from navsense.core.pose import Pose
from navsense.core.readings import Reading, join_readings
from navsense.description import describe
from navsense.environment.base import Environment
from navsense.faults.injection import Faults
from navsense.motion.trajectory import waypoints
from navsense.recordings.dataset import select_run_by_index
from navsense.sensors import AirPressure, Imu, NavSat
from navsense.sensors.base import list_signals
from navsense.simulation import live_run
from navsense.simulation.sensor_run import UNDEFINED_FIELD_REMEDY
from navsense.testing import check_same_reading, example_world
from navsense.world import World

NAME = "robot::arm::imu"
SLOW = Latency(fixed=0.02, mean=0.05, stddev=0.05)
TROUBLED = Faults(dropout_rate=2.0, dropout_duration=0.1, stuck_rate=2.0, stuck_duration=0.1)


def make_world(latency: Latency | None = SLOW, faults: Faults = TROUBLED) -> World:
    world = example_world(("imu", Imu.example_spec()))
    return replace(world, sensors=tuple(replace(s, latency=latency, faults=faults) for s in world.sensors))


@pytest.mark.requirement("CLK-9", "NOI-6", "LIV-1", "BAT-1")
@pytest.mark.parametrize("size", [0.001, 0.3])
def test_live_run_returns_batch_readings_at_arrival(size: float) -> None:
    world, duration = replace(make_world(), max_step_size=size), 2.0
    batch = ns.simulate(world, duration, seed=3)[NAME]
    released, sim = [], ns.live(world, seed=3)
    for step in sim:
        if step.time > duration + 2.0:
            break
        if NAME in step.readings:
            reading = step.readings[NAME]
            assert (reading.arrival <= step.time).all()
            assert (reading.arrival > step.time - world.max_step_size - 1e-12).all()
            released.append(reading)
    live = join_readings(released)
    check_same_reading("batch", live.select_rows(0, batch.time.size), batch, "when stepped live")
    runs = ns.simulate(world, duration, seed=3, runs=(0, 4))[NAME]
    assert runs.arrival.shape == (2, batch.time.size)
    check_same_reading("batch", select_run_by_index(runs, 0), batch, "in run 0")
    assert not np.array_equal(runs.arrival[1], batch.arrival)


@pytest.mark.requirement("NOI-6")
def test_faults_change_nothing_else() -> None:
    sound = ns.simulate(make_world(None, Faults()), 4.0, seed=3)[NAME]
    cut = ns.simulate(make_world(None), 4.0, seed=3)[NAME]
    assert np.array_equal(sound.arrival, sound.time)
    assert sound.valid.all()
    assert not cut.valid.all()
    assert np.array_equal(cut.valid, cut.emitted)
    assert np.isnan(cut["angular_velocity"][~cut.valid]).all()
    fresh = (cut["angular_velocity"] == sound["angular_velocity"]).all(axis=1)
    assert not fresh[cut.valid].all(), "it was stuck now and then"
    assert fresh.mean() > 0.3
    assert np.array_equal(cut.bias["angular_velocity"], sound.bias["angular_velocity"])
    assert np.array_equal(cut.clock_error, sound.clock_error)


@pytest.mark.requirement("NOI-6")
def test_stuck_averaged_imu_repeats_its_first_value() -> None:
    """Row 0 has no interval and is never published."""
    world = example_world(("imu", replace(Imu.example_spec(), averaged=True)))
    stuck = Faults(stuck_rate=1e9, stuck_duration=1e9)
    sensors = tuple(replace(sensor, faults=stuck) for sensor in world.sensors)
    reading = ns.simulate(replace(world, sensors=sensors), 1.0, seed=3)[NAME]
    sound = ns.simulate(world, 1.0, seed=3)[NAME]
    assert not reading.emitted[0]
    assert reading.emitted[1:].all()
    for name in ("angular_velocity", "linear_acceleration"):
        assert (reading[name][1:] == sound[name][1]).all()
        assert not np.isclose(reading[name][1], sound[name][0], rtol=1e-12, atol=0.0).all()


@pytest.mark.requirement("CLK-9", "CLK-5")
def test_recordings_keep_arrival_and_validity(tmp_path: Path) -> None:
    world = make_world()
    run = ns.simulate(world, 2.0, seed=3)
    run.save(tmp_path / "run.mcap")
    run.save(tmp_path / "run.npz")
    reading = run[NAME]
    loaded = ns.open(tmp_path / "run.npz").readings[NAME]
    assert np.array_equal(loaded.arrival, reading.arrival)
    assert np.array_equal(loaded.valid, reading.valid)
    with (tmp_path / "run.mcap").open("rb") as stream:
        messages = [m for _, channel, m in make_reader(stream).iter_messages() if channel.topic == "/imu"]
    sent = reading.emitted
    assert [m.log_time for m in messages] == np.rint(reading.arrival[sent] * 1e9).astype(int).tolist()
    assert [m.publish_time for m in messages] == np.rint(reading.time[sent] * 1e9).astype(int).tolist()
    streamed = tmp_path / "streamed.mcap"
    ns.record(world, streamed, 2.0, seed=3)
    assert streamed.read_bytes() == (tmp_path / "run.mcap").read_bytes()


def make_sdf(inside: str) -> str:
    return f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="m"><link name="l"><sensor name="s" type="magnetometer"><update_rate>10</update_rate>
{inside}
</sensor></link></model></world></sdf>"""


@pytest.mark.requirement("CLK-9", "NOI-6")
def test_latency_and_faults_are_read_from_sdf(tmp_path: Path) -> None:
    path = tmp_path / "w.sdf"
    path.write_text(
        make_sdf(
            "<navsense:latency><fixed>0.1</fixed><mean>0.2</mean></navsense:latency>"
            "<navsense:faults><dropout_rate>0.5</dropout_rate>"
            "<dropout_duration>3</dropout_duration></navsense:faults>"
        )
    )
    (sensor,) = ns.load(path).sensors
    assert sensor.latency == Latency(0.1, 0.2)
    assert sensor.faults == Faults(dropout_rate=0.5, dropout_duration=3.0)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<navsense:faults><dropout_rate>0.5</dropout_rate></navsense:faults>", r"w.sdf:3: .*dropout.*both"),
        ("<navsense:faults><stuck_rate>-1</stuck_rate></navsense:faults>", r"w.sdf:3: .*stuck_rate.*>= 0"),
        ("<navsense:faults><odd>1</odd></navsense:faults>", r"w.sdf:3: .*odd"),
        ("<navsense:latency><stddev>1</stddev></navsense:latency>", r"w.sdf:3: .*mean"),
    ],
)
def test_invalid_value_error_has_its_line(tmp_path: Path, inside: str, message: str) -> None:
    path = tmp_path / "w.sdf"
    path.write_text(make_sdf(inside))
    with pytest.raises(SdfError, match=message):
        ns.load(path)


@pytest.mark.requirement("NOI-6", "MAG-7")
def test_missing_signal_is_an_error_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.sdf"
    warm = "<navsense:noise><temperature_coefficient>1e-8</temperature_coefficient></navsense:noise>"
    block = f"<magnetometer><x><noise type='gaussian'>{warm}</noise></x></magnetometer>"
    path.write_text(make_sdf(block))
    with pytest.raises(SimulationError, match=r"w.sdf:\d+: signal of sensor m::l::s: temperature.*navsense:signal"):
        ns.load(path)
    signal = '<navsense:signal name="temperature">300</navsense:signal>'
    path.write_text(make_sdf(block).replace('<world name="w">', f'<world name="w">{signal}'))
    (sensor,) = ns.load(path).sensors
    assert list_signals(sensor.spec) == ("temperature",)


@pytest.mark.requirement("IMU-4", "TRU-1")
def test_description_names_the_origin_and_earth_rotation() -> None:
    fine = Imu.from_part("stim300")
    world = example_world(("fine", fine), ("coarse", Imu.from_part("mpu-6000")))
    lines = list(describe(world))
    assert any("origin: latitude 45.8366" in row for row in lines)
    assert sum("resolves the earth" in row for row in lines) == 1
    turning = example_world(("fine", replace(fine, earth_rotation=True)))
    lines = list(describe(turning))
    assert not any("resolves the earth" in row for row in lines)
    assert "    earth rotation: measured" in lines


@pytest.mark.requirement("PRS-1", "NAV-1")
@pytest.mark.parametrize("how", ["batch", "live"])
def test_leaving_the_range_of_a_field_names_sensor_and_time(how: str) -> None:
    """The vehicle climbs at 1000 m/s from 75 km. The atmosphere ends at 80 km: the first sample beyond is at 5.01 s."""
    world = example_world(("baro", AirPressure()))
    line = waypoints((0.0, 10.0, 20.0), [Pose((0.0, 0.0, z)) for z in (75e3, 80e3, 85e3)])
    time = np.arange(2001) / 100.0
    height = line.at(time).position_w[:, 2]
    sensors = tuple(replace(s, rate=100.0, pose=Pose(), where=Where("dive.sdf", 12)) for s in world.sensors)
    model = replace(world.models[0], motion=line, pose=Pose())
    still = tuple(replace(link, pose=Pose()) for link in model.links)
    air = Environment()
    world = replace(world, models=(replace(model, links=still),), sensors=sensors, environment=air, max_step_size=0.5)
    first = float(time[np.flatnonzero(height > 80e3)[0]])
    with pytest.raises(FieldError) as caught:
        ns.simulate(world, 20.0) if how == "batch" else list(ns.live(world))
    message = str(caught.value)
    assert message.startswith(
        f"dive.sdf:12: sensor robot::arm::baro at t = {first:.9g} s: altitude (m above mean sea level)"
    )
    assert "row" not in message
    assert message.endswith(UNDEFINED_FIELD_REMEDY)


def test_world_without_coordinates_names_its_navsat() -> None:
    world = replace(example_world(("gps", NavSat())), environment=Environment())
    with pytest.raises(SensorError, match=r"sensor robot::arm::gps at t = 0 s: the world of a navsat; has no"):
        ns.simulate(world, 1.0)


@pytest.mark.requirement("CLK-9", "LIV-1")
def test_step_keeps_samples_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are joined on arrival only: none before the latency has passed."""
    world = make_world(Latency(fixed=5.0), Faults())
    sim = ns.live(world, seed=3)
    rows: list[int] = []

    def record_arrivals(parts: list[Reading]) -> Reading:
        rows.append(sum(part.time.size for part in parts))
        return join_readings(parts)

    monkeypatch.setattr(live_run, "join_readings", record_arrivals)
    for _ in range(int(6.0 / world.max_step_size)):
        sim.step()
    assert sim.sensor(NAME).reading is not None
    assert max(rows, default=0) <= 2 + world.max_step_size * world.sensors[0].rate
