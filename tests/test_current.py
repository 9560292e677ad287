"""Currents in runs: in memory, in recordings, live, and in several runs at once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.core.errors import FieldError, SimulationError
from navsense.environment.base import Environment, FieldSum, UniformField, VectorField
from navsense.environment.current import (
    CurrentReplay,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    StratifiedCurrent,
    realise,
)
from navsense.recordings import summary
from navsense.recordings.currents import read_current
from navsense.world import CurrentTopic, LayersTopic, Link, Model, World

TOPIC = "/hydrodynamics/current_velocity"
CHANCE = GaussMarkovCurrent(
    GaussMarkovProcess.from_stddev(0.3, 0.1, 60.0, 0.0, 1.0),
    GaussMarkovProcess.from_stddev(0.5, 0.2, 30.0),
    name="wander",
)
LAYERS = StratifiedCurrent((0.0, 10.0), ((0.1, 0.0, 0.0), (0.2, 0.0, 0.0)))
SHOWN = CurrentTopic()
DEEP = CurrentTopic(position=(1.0, 2.0, -5.0), layers=LayersTopic("/layers", (0.0, 5.0, 10.0), 3.0))
DURATION, SEED = 12.5, 7


def make_world(current: VectorField | None, topic: CurrentTopic = SHOWN) -> World:
    model = Model("auv", (Link("auv::base"),), "auv::base")
    return World("sea", (model,), environment=Environment(current=current), current_topic=topic)


def test_repr_of_a_current_is_one_line(tmp_path: Path) -> None:
    """This holds for a run, a loaded run and its current: none prints its numbers."""
    run = ns.simulate(make_world(LAYERS, CurrentTopic(position=(0.0, 0.5, -5.0))), 1.0)
    run.save(tmp_path / "run.npz")
    loaded = ns.open(tmp_path / "run.npz")
    assert repr(loaded) == "<Dataset sea: 0 sensors>"
    for dataset in (run, loaded):
        assert repr(dataset.current) == f"<Current on {TOPIC} at 0 0.5 -5 m: velocity; 20 instants>"
        assert repr(dataset.truth["auv::base"]).startswith("<Truth of auv::base: position, orientation, velocity, ")
        assert repr(dataset.truth["auv::base"]).endswith("; 100 instants>")


def test_world_without_current_element_records_no_current() -> None:
    run = ns.simulate(make_world(None), 1.0)
    assert run.current is None


@pytest.mark.requirement("CUR-1", "CUR-2")
def test_recorded_current_is_the_field_at_its_position_and_rate() -> None:
    topic = CurrentTopic("/flow", 4.0, (1.0, 2.0, -5.0))
    run = ns.simulate(make_world(FieldSum((LAYERS, CHANCE)), topic), DURATION, seed=SEED)
    assert run.current is not None
    assert (run.current.topic, run.current.position) == ("/flow", (1.0, 2.0, -5.0))
    assert np.array_equal(run.current.time, np.arange(50) / 4.0)
    place = np.tile([1.0, 2.0, -5.0], (50, 1))
    expected = LAYERS.at(place, run.current.time) + realise(CHANCE, SEED, 0).at(place, run.current.time)
    assert np.array_equal(run.current.velocity, expected)
    assert not run.current.velocity.flags.writeable
    assert ns.simulate(make_world(LAYERS, replace(topic, rate=0.0)), 1.0).current is None


@pytest.mark.requirement("CUR-1")
def test_runs_differ_and_run_0_is_the_single_run() -> None:
    sea = make_world(FieldSum((LAYERS, CHANCE)))
    single, many = ns.simulate(sea, DURATION, seed=SEED), ns.simulate(sea, DURATION, seed=SEED, runs=3)
    other = ns.simulate(sea, DURATION, seed=SEED, runs=[2])
    assert single.current is not None
    assert many.current is not None
    assert other.current is not None
    assert many.current.velocity.shape == (3, 250, 3)
    assert np.array_equal(many.current.velocity[0], single.current.velocity)
    assert np.array_equal(many.current.velocity[2], other.current.velocity[0])
    assert not np.array_equal(many.current.velocity[1], many.current.velocity[2])
    alike = ns.simulate(make_world(LAYERS), 2.0, runs=2).current
    assert alike is not None
    assert np.array_equal(alike.velocity[0], alike.velocity[1])


@pytest.mark.requirement("CUR-1")
def test_current_is_recorded_in_the_uuv_simulator_message_and_replayed(tmp_path: Path) -> None:
    sea, path = make_world(FieldSum((LAYERS, CHANCE))), tmp_path / "dive.mcap"
    run = ns.simulate(sea, DURATION, seed=SEED)
    assert run.current is not None
    ns.record(sea, path, DURATION, seed=SEED, epoch=100)
    with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        found: list[Any] = [
            reader.deserialize(data, connection.msgtype)
            for connection, _, data in reader.messages()
            if connection.topic == TOPIC
        ]
    assert kinds[TOPIC] == "geometry_msgs/msg/TwistStamped"
    assert {message.header.frame_id for message in found} == {"world"}
    stamps = np.array([message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec for message in found])
    assert stamps == pytest.approx(100.0 + run.current.time, abs=1e-9)
    linear = [[message.twist.linear.x, message.twist.linear.y, message.twist.linear.z] for message in found]
    assert np.array_equal(linear, run.current.velocity)
    replayed = read_current(path, topic=TOPIC)
    again = ns.simulate(make_world(replayed), 12.0).current
    assert again is not None
    assert again.velocity == pytest.approx(run.current.velocity[:240], abs=1e-12)


@pytest.mark.requirement("CUR-1", "CUR-2", "REC-1:bag")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_layers_are_recorded_as_dave_publishes_them(tmp_path: Path, suffix: str) -> None:
    sea, path = make_world(FieldSum((LAYERS, CHANCE)), DEEP), tmp_path / f"dive{suffix}"
    run = ns.simulate(sea, DURATION, seed=SEED)
    assert run.current is not None
    assert run.current.layers is not None
    for layer, depth in enumerate((0.0, 5.0, 10.0)):
        place = np.tile([1.0, 2.0, 3.0 - depth], (run.current.time.size, 1))
        expected = LAYERS.at(place, run.current.time) + realise(CHANCE, SEED, 0).at(place, run.current.time)
        assert np.array_equal(run.current.layers.velocity[:, layer], expected)
    assert not run.current.layers.velocity.flags.writeable
    ns.record(sea, path, DURATION, seed=SEED, epoch=100)
    with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
        (connection,) = (connection for connection in reader.connections if connection.topic == "/layers")
        found: list[Any] = [reader.deserialize(data, connection.msgtype) for *_, data in reader.messages([connection])]
    assert connection.msgtype == "dave_gazebo_ros_plugins/msg/StratifiedCurrentVelocity"
    assert {message.header.frame_id for message in found} == {"world"}
    assert {tuple(message.depths.tolist()) for message in found} == {(0.0, 5.0, 10.0)}
    velocities = [[[velocity.x, velocity.y, velocity.z] for velocity in message.velocities] for message in found]
    assert np.array_equal(velocities, run.current.layers.velocity)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@pytest.mark.parametrize("runs", [None, 3])
def test_recorded_current_is_read_back(tmp_path: Path, suffix: str, runs: int | None) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    run = ns.simulate(make_world(FieldSum((LAYERS, CHANCE)), DEEP), DURATION, seed=SEED, runs=runs, epoch=5)
    path = tmp_path / f"dive{suffix}"
    run.save(path)
    again = ns.open(path)
    assert run.current is not None
    assert again.current is not None
    assert np.array_equal(again.current.time, run.current.time)
    assert np.array_equal(again.current.velocity, run.current.velocity)
    assert (again.current.topic, again.current.position, again.current.epoch) == (TOPIC, (1.0, 2.0, -5.0), 5)
    assert run.current.layers is not None
    assert again.current.layers is not None
    assert (again.current.layers.topic, again.current.layers.depths) == ("/layers", (0.0, 5.0, 10.0))
    assert np.array_equal(again.current.layers.velocity, run.current.layers.velocity)
    assert again.truth.keys() == {"auv::base"}
    assert "current" in [entry.name for entry in summary.read_summary(path).entries]


@pytest.mark.requirement("CUR-1")
def test_live_run_draws_the_current_of_the_same_run() -> None:
    """The current depends on the seed and the run number."""
    sea = make_world(CHANCE)
    run = ns.simulate(sea, DURATION, seed=SEED, runs=[4]).current
    assert run is not None
    with ns.live(sea, seed=SEED, run=4) as sim:
        field = sim.world.environment.current
        assert field is not None
        assert np.array_equal(field.at(np.zeros((250, 3)), run.time), run.velocity[0])


def test_query_outside_the_current_is_an_error() -> None:
    ends = CurrentReplay(np.array([0.0, 1.0]), np.zeros((2, 3)))
    with pytest.raises(FieldError) as caught:
        ns.simulate(make_world(ends), 5.0)
    assert f"current recorded on {TOPIC} at t = 1.05 s: instant (s): 1.05; must be from 0 to 1" in str(caught.value)
    deep = replace(LAYERS, outside="error")
    with pytest.raises(FieldError, match=r"at t = 0 s: depth \(m\): 20.0; must be from 0 to 10"):
        ns.simulate(make_world(deep, CurrentTopic(position=(0.0, 0.0, -20.0))), 1.0)


def test_duplicate_name_is_an_error() -> None:
    with pytest.raises(FieldError, match="must be unique"):
        ns.simulate(make_world(FieldSum((CHANCE, CHANCE))), 1.0)


@pytest.mark.parametrize(
    ("arguments", "problem"), [({"topic": "/"}, "topic of the current: /"), ({"rate": 1e9}, f"rate of {TOPIC}: 1")]
)
def test_invalid_topics_are_errors(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(SimulationError, match=problem):
        CurrentTopic(**arguments)  # type: ignore[arg-type]


@pytest.mark.requirement("CUR-2")
def test_rotated_world_has_the_rotated_current() -> None:
    half = math.sqrt(0.5)
    turned = Environment(current=FieldSum((UniformField((0.1, 0.0, 0.0)), LAYERS))).rotate((half, 0.0, 0.0, half))
    assert turned.current is not None
    at = turned.current.at(np.array([[0.0, 0.0, -10.0]]), np.zeros(1))
    assert at[0] == pytest.approx([0.0, 0.3, 0.0], abs=1e-15)
    assert Environment().rotate((half, 0.0, 0.0, half)).current is None


def test_shared_random_current_has_no_velocity_outside_a_run() -> None:
    """Ideal values are shared by all runs."""
    run = ns.simulate(make_world(CHANCE), 1.0, seed=SEED, runs=2)
    shared = run.session.world.environment.current
    assert shared is not None
    with pytest.raises(FieldError, match="has a velocity in a run only"):
        shared.at(np.zeros((1, 3)), np.zeros(1))
