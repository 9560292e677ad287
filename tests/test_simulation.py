"""Runs: in memory, with several runs, saved and streamed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

import navsense as ns
from navsense.clock import Latency
from navsense.core.errors import MotionError, RecordingError, SdfError, SimulationError, UnknownNameError
from navsense.core.pose import Pose, from_rpy
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.runner.run import Run, record, simulate
from navsense.sensors import Imu, Magnetometer
from navsense.simulation import run_arrays
from navsense.testing import example_world, is_identical
from navsense.world import Link, Model, World

IMU, MAG = "robot::arm::imu", "robot::arm::mag"


def world() -> World:
    return example_world(("imu", Imu.example_spec()), ("mag", Magnetometer.example_spec()))


def are_equal(run: Run, other: Run) -> bool:
    return run.keys() == other.keys() and all(
        is_identical(run[name].arrays, other[name].arrays)
        and is_identical(run[name].bias, other[name].bias)
        and is_identical(run[name].clock_error, other[name].clock_error)
        for name in run
    )


def test_seed_determines_the_run() -> None:
    first, again, other = simulate(world(), 2.0, seed=1), simulate(world(), 2.0, seed=1), simulate(world(), 2.0, seed=2)
    assert are_equal(first, again)
    assert not is_identical(first[IMU].arrays, other[IMU].arrays)


@pytest.mark.requirement("BAT-1")
def test_runs_are_the_first_axis_and_run_0_equals_the_single_run() -> None:
    batch, single = simulate(world(), 1.0, seed=3, runs=4), simulate(world(), 1.0, seed=3)
    assert batch[IMU]["angular_velocity"].shape == (4, 200, 3)
    assert batch[IMU].clock_error.shape == batch[IMU].valid.shape == (4, 200)
    assert batch[IMU].time.shape == (200,)
    assert batch[IMU].ideal["angular_velocity"].shape == (200, 3)
    assert batch[IMU]["angular_velocity"][0].tobytes() == single[IMU]["angular_velocity"].tobytes()
    later = simulate(world(), 1.0, seed=3, runs=range(2, 4))
    assert later[MAG]["field"].tobytes() == batch[MAG]["field"][2:].tobytes()
    spread = batch[IMU].bias["angular_velocity"][:, 0, 0]
    assert len(set(spread.tolist())) == 4


@pytest.mark.requirement("TRU-1")
def test_truth_of_every_link_is_exact() -> None:
    run = simulate(world(), 1.0, seed=3)
    assert set(run.truth) == {"robot::base", "robot::arm"}
    arm, base = run.truth["robot::arm"], run.truth["robot::base"]
    motion = world().models[0].motion
    assert motion is not None
    assert np.array_equal(base.position, motion.at(base.time).position_w)
    assert np.allclose(np.linalg.norm(arm.position - base.position, axis=1), 0.4, atol=1e-12, rtol=0.0)
    for array in (arm.position, arm.orientation, run[IMU].ideal["linear_acceleration"], run[IMU].time):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.requirement("TRU-1")
def test_reading_is_ideal_plus_bias_plus_white_noise() -> None:
    noise = Noise(stddev=1e-3, bias_stddev=0.5, dynamic_bias_stddev=0.01, dynamic_bias_correlation_time=10.0)
    reading = simulate(example_world(("imu", Imu(noise, noise, noise))), 20.0, seed=3)[IMU]
    white = reading["angular_velocity"] - reading.ideal["angular_velocity"] - reading.bias["angular_velocity"]
    assert abs(white.std() / 1e-3 - 1.0) < 4.892 / np.sqrt(2.0 * white.size)
    assert np.abs(reading.bias["angular_velocity"]).max() > 0.01
    turn_on = reading.turn_on_bias["angular_velocity"]
    drift = reading.bias["angular_velocity"] - turn_on
    assert turn_on.shape == drift.shape
    assert np.ptp(turn_on, axis=0).max() == 0.0 < np.abs(turn_on).min()
    assert np.ptp(drift, axis=0).min() > 0.0
    assert np.abs(drift).max() < 8.0 * 0.01 * np.sqrt(5.0)


@pytest.mark.requirement("TRU-1", "BAT-1")
def test_turn_on_bias_differs_between_runs() -> None:
    noise = Noise(bias_mean=1.0, bias_stddev=0.5)
    reading = simulate(example_world(("mag", Magnetometer(noise))), 0.1, seed=3, runs=3)[MAG]
    turn_on = reading.turn_on_bias["field"]
    assert turn_on.shape == reading["field"].shape == (3, 20, 3)
    assert np.array_equal(turn_on, reading.bias["field"])
    assert len(set(turn_on[:, 0, 0].tolist())) == 3


@pytest.mark.requirement("REC-1:npz", "REC-1:mcap")
def test_saved_streamed_and_simulated_runs_are_equal(tmp_path: Path) -> None:
    run = simulate(world(), 12.5, seed=4)
    run.save(tmp_path / "saved.npz")
    run.save(tmp_path / "saved.mcap")
    summary = record(world(), [tmp_path / "streamed.npz", tmp_path / "streamed.mcap"], 12.5, seed=4)
    assert summary.samples == {IMU: 2500, MAG: 2500}
    for name in ("saved", "streamed"):
        loaded = ns.open(tmp_path / f"{name}.npz")
        for sensor in run:
            assert is_identical(loaded[sensor].arrays, run[sensor].arrays)
            assert is_identical(loaded[sensor].ideal, run[sensor].ideal)
            assert is_identical(loaded[sensor].bias, run[sensor].bias)
            assert is_identical(loaded[sensor].clock_error, run[sensor].clock_error)
    assert (tmp_path / "saved.mcap").read_bytes() == (tmp_path / "streamed.mcap").read_bytes()


def test_run_above_half_of_the_memory_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_arrays, "get_free_memory", lambda: 1e6)
    with pytest.raises(SimulationError, match=r"memory of the run: .* GiB; must be at most half .*navsense.record"):
        simulate(world(), 100.0)


@pytest.mark.compiled
@pytest.mark.parametrize("latency", [None, Latency(fixed=0.1)])
def test_memory_estimate_equals_memory_use(latency: Latency | None) -> None:
    late = replace(world(), sensors=tuple(replace(sensor, latency=latency) for sensor in world().sensors))
    run = simulate(late, 30.0, runs=3)
    taken = sum(
        array.nbytes
        for reading in run.values()
        for array in (*reading.arrays.values(), *reading.bias.values(), *reading.ideal.values())
        if 0 not in array.strides  # a view of one number takes no memory
    )
    taken += sum(reading.time.nbytes + reading.clock_error.nbytes for reading in run.values())
    taken += sum(
        0 if reading.arrival_after_latency is None else reading.arrival_after_latency.nbytes for reading in run.values()
    )
    taken += sum(truth.position.nbytes // 3 * 19 for truth in run.truth.values())
    assert taken <= run_arrays.estimate_memory(run.session) <= 1.25 * taken
    arrivals = sum(8 * 3 * reading.time.size for reading in run.values()) if latency else 0
    assert (
        run_arrays.estimate_memory(run.session) - run_arrays.estimate_memory(simulate(world(), 30.0, runs=3).session)
        == arrivals
    )


def make_moving_world(end: float) -> World:
    motion = waypoints((0.0, end), [Pose(), Pose((1.0, 0.0, 0.0), from_rpy(0.0, 0.0, 1.0))])
    model = replace(world().models[0], motion=motion)
    return replace(world(), models=(model,))


def test_default_duration_is_that_of_the_motion() -> None:
    assert simulate(make_moving_world(1.5))[IMU].time.size == 300


def test_shortest_motion_of_all_models_limits_the_run() -> None:
    """A model without a sensor also has truth and limits the run."""
    boat = Model(
        "boat", (Link("boat::hull"),), "boat::hull", motion=waypoints((0.0, 1.0), [Pose(), Pose((1.0, 0.0, 0.0))])
    )
    both = replace(world(), models=(*world().models, boat))
    with pytest.raises(MotionError, match=r"motion of 'boat': 3.0; must be at most 1.0 s"):
        simulate(both, 3.0)
    assert simulate(both).truth["boat::hull"].time[-1] < 1.0


@pytest.mark.requirement("DVU-6", "TRU-1")
def test_motion_argument_moves_transforms_and_truth(tmp_path: Path) -> None:
    still = replace(world(), models=(replace(world().models[0], motion=None),))
    moving = waypoints((0.0, 2.0), [Pose(), Pose((3.0, 0.0, 0.0), from_rpy(0.0, 0.0, 1.0))])
    record(still, tmp_path / "moved.mcap", 2.0, motion=moving)
    places: dict[str, list[tuple[float, ...]]] = {"/tf": [], "/truth/robot": []}
    with (tmp_path / "moved.mcap").open("rb") as file:
        for _, channel, _, message in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            if channel.topic == "/tf":
                (transform,) = message.transforms
                assert (transform.header.frame_id, transform.child_frame_id) == ("world", "robot::base")
                p, q = transform.transform.translation, transform.transform.rotation
                places["/tf"].append((p.x, p.y, p.z, q.x, q.y, q.z, q.w))
            elif channel.topic == "/truth/robot":
                p, q = message.pose.pose.position, message.pose.pose.orientation
                places["/truth/robot"].append((p.x, p.y, p.z, q.x, q.y, q.z, q.w))
    assert places["/tf"] == places["/truth/robot"]
    truth = moving.at(np.arange(200) / 100.0)
    assert np.array_equal(np.array(places["/tf"])[:, :3], truth.position_w)


def test_run_past_the_end_of_its_motion_is_an_error_at_the_start() -> None:
    with pytest.raises(MotionError, match=r"'robot': 2.0; must be at most 1.5 s"):
        simulate(make_moving_world(1.5), 2.0)


def test_motion_log_moves_the_model(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{t / 10},{t / 10},0,2,1,0,0,0" for t in range(21)]
    log.write_text("time,x,y,z,qw,qx,qy,qz\n" + "\n".join(rows) + "\n")
    for motion in (log, {"robot": str(log)}):
        truth = simulate(world(), 2.0, motion=motion).truth["robot::base"]
        assert np.allclose(truth.velocity, [1.0, 0.0, 0.0], atol=1e-9, rtol=0.0)
        assert np.allclose(truth.position[:, 2], 2.0, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 0.0}, "duration: 0.0; must be a finite number of seconds > 0"),
        ({"duration": float("nan")}, "duration: nan"),
        ({"duration": float("inf")}, "duration: inf"),
        ({"duration": 1e300}, r"duration: 1e\+300; must be below 6e\+09 s, as stamps are"),
        ({"duration": None}, "^duration: missing; required because no motion of this world ends; give --duration S "),
        ({"runs": 0}, "runs: 0; must be a number >= 1"),
        ({"runs": [1, 1]}, r"runs: \[1, 1\]"),
        ({"runs": 10**30}, "runs: 10+; must be at most 1000000 at once; run parts of them"),
        ({"runs": range(0, 10**30, 3)}, "must be at most 1000000 at once"),
        ({"runs": range(2**63, 2**63 + 2)}, r"run: \d+; must be an integer from 0 to 2\^63 - 1"),
        ({"runs": "many"}, "runs: many; must be a number >= 1"),
        ({"duration": 10**400}, r"duration: 10+\.\.\.; must be below 6e\+09 s, as stamps are"),
        ({"duration": 10**5000}, r"duration: a value of type int .*; must be below 6e\+09 s"),
        ({"duration": -(10**400)}, r"duration: -10+\.\.\.; must be a finite number of seconds > 0"),
        ({"duration": "1.0"}, "duration: 1.0; must be a finite number of seconds > 0"),
        ({"runs": [-1]}, "run: -1; must be an integer"),
        ({"fidelity": "real"}, "fidelity: real; must be one of physical, classic"),
        ({"epoch": -1}, "epoch: -1; must be an integer of seconds"),
        ({"epoch": 1.5}, "epoch: 1.5"),
        ({"truth_rate": 0.0}, "truth_rate: 0.0; must be from"),
        ({"seed": -3}, "seed: -3"),
        ({"motion": {"boat": "x.csv"}}, "motion of model|x.csv"),
        ({"motion": 5}, "motion of model robot: 5; must be a motion, or the path of a motion log; write"),
    ],
)
def test_invalid_arguments_are_errors(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ns.NavsenseError, match=message):
        simulate(world(), **{"duration": 1.0, **arguments})  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("argument", ["dive.sdf", Path("dive.sdf")])
def test_path_is_not_a_world(argument: Any, tmp_path: Path) -> None:
    """These are frequent first calls. Each error names the missing call."""
    message = r"world: .*dive.sdf.*; must be a World, as ns.load returns it; load the file first: ns.load\(.dive.sdf.\)"
    for call in (
        lambda: ns.simulate(argument, 1.0),
        lambda: ns.simulate(argument, 1.0, fidelity="classic"),
        lambda: ns.record(argument, tmp_path / "a.npz", 1.0),
        lambda: ns.live(argument),
    ):
        with pytest.raises(SimulationError, match=message):
            call()
    nothing: Any = None
    with pytest.raises(SimulationError, match=r"world: None; must be a World, .*ns.load\(path\)"):
        ns.simulate(nothing, 1.0)


@pytest.mark.parametrize("path", [None, 5, [None], ["a.npz", 5], b"a.npz"])
def test_invalid_path_of_a_recording_is_an_error(path: Any) -> None:
    with pytest.raises(
        RecordingError, match=r"path of a recording: .*; must be a file name or a path; write \"run.mcap\""
    ):
        record(world(), path, 1.0)


def test_null_character_in_a_path_is_an_error() -> None:
    with pytest.raises(RecordingError, match=r"path of a recording: .*; must not contain a null character"):
        record(world(), "a\0.mcap", 1.0)


@pytest.mark.parametrize("path", [None, 0, 3.5, b"dive.sdf"])
def test_invalid_path_of_a_world_is_an_error(path: Any) -> None:
    with pytest.raises(SdfError, match=r"path of a world: .*; must be a file name or a path; write \"dive.sdf\""):
        ns.load(path)


def test_run_is_saved_to_a_path() -> None:
    nothing: Any = None
    with pytest.raises(RecordingError, match="path of a recording: None; must be a file name or a path"):
        simulate(world(), 0.1).save(nothing)


def test_unknown_sensor_error_lists_the_sensors() -> None:
    with pytest.raises(UnknownNameError, match="sensor: nose; must be one of robot::arm::imu, robot::arm::mag"):
        simulate(world(), 0.1)["nose"]


def test_duplicate_output_or_unknown_suffix_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"are both written to the file .*a\.npz; must be different files"):
        record(world(), [tmp_path / "a.npz", tmp_path / "." / "a.npz"], 0.1)
    with pytest.raises(SimulationError, match=r"s\.csv, .*s\.euroc; are both written to the folder .*/s; must be"):
        record(world(), [tmp_path / "s.csv", tmp_path / "s.euroc"], 0.1)
    with pytest.raises(SimulationError, match=r"s/a\.npz is in the folder .*/s of the other output; must be"):
        record(world(), [tmp_path / "s.csv", tmp_path / "s" / "a.npz"], 0.1)
    with pytest.raises(RecordingError, match="xyz"):
        record(world(), tmp_path / "a.xyz", 0.1)


@pytest.mark.parametrize("wrong", ["b.foo", "no/such/place/b.npz"])
def test_no_recording_is_replaced_before_all_outputs_are_checked(wrong: str, tmp_path: Path) -> None:
    existing = tmp_path / "a.mcap"
    record(world(), existing, 1.0)
    before = existing.read_bytes()
    with pytest.raises(RecordingError):
        record(world(), [existing, tmp_path / wrong], 2.0)
    assert existing.read_bytes() == before


@pytest.mark.requirement("NOI-4")
def test_fidelity_of_a_run_overrides_that_of_the_sensor() -> None:
    noise = Noise(bias_mean=1.0)
    biased = example_world(("imu", Imu(noise, noise, noise)))
    signs = {
        fidelity: {
            float(np.sign(value))
            for value in simulate(biased, 0.01, runs=30, fidelity=fidelity)[IMU].bias["angular_velocity"].ravel()
        }
        for fidelity in ("physical", "classic")
    }
    assert signs == {"physical": {1.0}, "classic": {-1.0, 1.0}}


@pytest.mark.compiled
def test_interrupt_keeps_recorded_data(tmp_path: Path) -> None:
    def interrupt(done: float, total: float) -> None:
        if done > total / 2.0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(world(), tmp_path / "half.npz", 100.0, seed=4, progress=interrupt)
    loaded = ns.open(tmp_path / "half.npz")
    assert 50.0 <= loaded[IMU].time[-1] < 75.0
    complete = simulate(world(), 100.0, seed=4)
    assert is_identical(loaded[IMU]["angular_velocity"], complete[IMU]["angular_velocity"][: loaded[IMU].time.size])


@pytest.mark.parametrize("runs", [-1, 0, 10**30])
def test_invalid_number_of_runs_is_reported_unchanged(runs: int) -> None:
    with pytest.raises(SimulationError, match=rf"^runs: {runs}; must be"):
        ns.simulate(example_world(("imu", Imu())), 0.1, runs=runs)
