"""Scalars and companion topics in recordings: heights, pressures and positions, read by other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.core.typing import AnyArray
from navsense.recordings.topic_names import allocate_topics
from navsense.runner.run import Run
from navsense.sensors import AirPressure, Altimeter, NavSat
from navsense.testing import example_world
from navsense.world import World

TYPES = {
    "/alt": "ros_gz_interfaces/msg/Altimeter",
    "/baro": "sensor_msgs/msg/FluidPressure",
    "/gps": "sensor_msgs/msg/NavSatFix",
    "/gps_velocity": "geometry_msgs/msg/TwistStamped",
}


def make_world() -> World:
    return example_world(
        ("alt", Altimeter.example_spec()), ("baro", AirPressure.example_spec()), ("gps", NavSat.example_spec())
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return ns.simulate(make_world(), 1.5, seed=5, epoch=1000)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heights") / "run.mcap"
    ns.record(make_world(), path, 1.5, seed=5, epoch=1000)
    return path


def make_column(values: list[Any], pick: Callable[[Any], float]) -> AnyArray:
    return np.array([pick(value) for value in values])


@pytest.mark.requirement("ALT-4", "PRS-1", "NAV-1", "REC-1:mcap", "TRU-1")
@pytest.mark.parametrize("part", ["measured", "ideal", "bias"])
def test_all_series_round_trip_bitwise(run: Any, recording: Path, part: str) -> None:
    found: dict[str, list[Any]] = {}
    with recording.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()], validate_crcs=True)
        for _, channel, _, value in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append(value)
    behind = "" if part == "measured" else f"/{part}"
    alt, baro, gps = (run[f"robot::arm::{name}"] for name in ("alt", "baro", "gps"))
    series = [{"measured": r.arrays, "ideal": r.ideal, "bias": r.bias}[part] for r in (alt, baro, gps)]
    for name in ("vertical_position", "vertical_velocity", "vertical_reference"):
        got = make_column(found[f"/alt{behind}"], lambda value, name=name: getattr(value, name))  # type: ignore[misc]
        assert np.array_equal(got, series[0].get(name, np.zeros(300)))
    assert np.array_equal(
        make_column(found[f"/baro{behind}"], lambda value: value.fluid_pressure), series[1]["pressure"]
    )
    places = found[f"/gps{behind}"]
    if part == "bias":
        got = np.stack([make_column(places, lambda value, axis=axis: getattr(value.vector, axis)) for axis in "yxz"])  # type: ignore[misc]
        assert np.array_equal(got, [series[2][name] for name in ("latitude", "longitude", "altitude")])
    else:
        assert np.array_equal(make_column(places, lambda value: value.latitude), np.degrees(series[2]["latitude"]))
        assert np.array_equal(make_column(places, lambda value: value.longitude), np.degrees(series[2]["longitude"]))
        assert np.array_equal(make_column(places, lambda value: value.altitude), series[2]["altitude"])
    speeds = found[f"/gps_velocity{behind}"]
    got = np.array([[v.twist.linear.x, v.twist.linear.y, v.twist.linear.z] for v in speeds])
    assert np.array_equal(got, series[2]["velocity"])
    stamps = make_column(speeds, lambda value: value.header.stamp.sec * 10**9 + value.header.stamp.nanosec)
    assert np.array_equal(stamps, gps.stamp)


@pytest.mark.requirement("ALT-4", "PRS-1", "NAV-1")
def test_rosbags_reads_every_topic_by_its_type(recording: Path) -> None:
    with AnyReader([recording]) as reader:
        types = {connection.topic: connection.msgtype for connection in reader.connections}
        counts = dict.fromkeys(types, 0)
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
            counts[connection.topic] += 1
    assert {topic: types[topic] for topic in TYPES} == TYPES
    for topic in TYPES:
        assert [counts[topic + behind] for behind in ("", "/ideal", "/bias")] == [300, 300, 300]


@pytest.mark.requirement("REC-1:npz", "BAT-1")
@pytest.mark.parametrize("runs", [None, 3])
def test_scalars_have_no_axis_in_archives_and_batches(tmp_path: Path, runs: int | None) -> None:
    run = ns.simulate(make_world(), 1.0, seed=5, runs=runs)
    run.save(tmp_path / "run.npz")
    lead = () if runs is None else (runs,)
    for name, reading in ns.open(tmp_path / "run.npz").items():
        own = run[name]
        assert reading.arrays.keys() == own.arrays.keys()
        for key, array in reading.arrays.items():
            assert array.shape == ((*lead, 200, 3) if key == "velocity" else (*lead, 200))
            assert np.array_equal(array, own[key])
            assert reading.ideal[key].shape == array.shape[len(lead) :]
        for key, array in reading.bias.items():
            assert array.shape == ((*lead, 200, 3) if "velocity" in key and "vertical" not in key else (*lead, 200))
            assert np.array_equal(array, own.bias[key])
            assert np.array_equal(reading.turn_on_bias[key], own.turn_on_bias[key])
    assert set(run["robot::arm::gps"].bias) == {
        "latitude",
        "longitude",
        "altitude",
        "velocity",
    }


def test_duplicate_companion_topic_gets_a_suffix() -> None:
    base = make_world()
    alt, baro, gps = base.sensors
    topics = allocate_topics(replace(base, sensors=(gps, replace(alt, topic="/gps_velocity"), baro)))
    assert topics.get_sensor_topic(alt.name, "measured") == "/gps_velocity"
    assert topics.get_sensor_topic(gps.name, "measured", "_velocity") == "/gps_velocity_"
    assert topics.get_sensor_topic(gps.name, "bias", "_velocity") == "/gps_velocity_/bias"
    assert topics.get_sensor_topic(gps.name, "bias") == "/gps/bias"
