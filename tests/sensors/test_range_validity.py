"""Validity of a DVL's ranges in readings and recordings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense import messages
from navsense.core.pose import Pose
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import Trajectory
from navsense.noise.specification import Noise
from navsense.sensors import Dvl, EchoStrength, MessageDialect, Sound
from navsense.sensors.doppler import TrackErrors
from navsense.world import World

NO_ECHO, LOW, HIGH, VALID = 0.0, 1.0, 2.0, 3.0

SHEET = Dvl(minimum_range=0.7, maximum_range=90.0)

RANGES = np.array([[0.5, 0.7, 20.0, 90.0], [90.5, 500.0, math.inf, math.nan]])
"""Ranges (m) of two pings. Infinite is beyond any range, NaN is no bottom."""


def compute_validity(spec: Dvl, ranges: Any = RANGES) -> Any:
    """Return the validity of these ranges, with a ping every 4 s."""
    time, still = 4.0 * np.arange(len(ranges)), np.zeros((len(ranges), 3))
    return spec.apply(time, still, beam_range=np.asarray(ranges), seed=1)["range_validity"]


@pytest.mark.requirement("DVW-8")
@pytest.mark.parametrize("classic", [True, False])
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_ranges_below_and_above_the_limits(dialect: MessageDialect, classic: bool) -> None:
    spec = replace(SHEET, dialect=dialect, classic=classic)
    assert compute_validity(spec).tolist() == [[LOW, VALID, VALID, VALID], [HIGH, HIGH, HIGH, NO_ECHO]]


@pytest.mark.requirement("DVW-8")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"range_noise": Noise(mean=1.0)}, [LOW, VALID, VALID, HIGH]),
        ({"range_noise": Noise(mean=-0.1)}, [LOW, LOW, VALID, VALID]),
        ({"sound": Sound(1600.0), "range_noise": Noise(scale_factor=0.1)}, [LOW, VALID, VALID, HIGH]),
        ({"dropout_probability": 1.0}, [NO_ECHO] * 4),
        ({"min_incidence_cosine": 0.99}, [LOW, NO_ECHO, NO_ECHO, NO_ECHO]),
        ({"echo_strength": EchoStrength(-200.0)}, [LOW, NO_ECHO, NO_ECHO, NO_ECHO]),
    ],
)
def test_range_errors_and_losses(change: dict[str, Any], expected: list[float]) -> None:
    """A true range outside the limits sets the validity, unless the beam drops out. Then the reported range does."""
    assert compute_validity(replace(SHEET, **change), RANGES[:1]).tolist() == [expected]


@pytest.mark.requirement("DVW-8")
def test_beam_without_lock_has_no_valid_echo() -> None:
    """After a range beyond the maximum, the lock returns after 6 s: the next ping, 4 s later, has no lock."""
    spec = replace(SHEET, reacquisition_time=6.0)
    found = compute_validity(spec, [[20.0] * 4, [95.0, 20.0, 20.0, 20.0], [20.0] * 4, [20.0] * 4])
    assert found[:, 0].tolist() == [VALID, HIGH, NO_ECHO, VALID]
    assert (found[:, 1:] == VALID).all()


@pytest.mark.requirement("DVW-8", "GAP-4")
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_valid_range_belongs_to_a_valid_beam(spread: float) -> None:
    rng = np.random.default_rng(4)
    noisy = replace(
        SHEET, range_noise=Noise(stddev=spread), dropout_probability=0.2, bottom=TrackErrors(Noise(stddev=0.01))
    )
    ranges = rng.uniform(0.0, 110.0, size=(400, 4))
    time = 4.0 * np.arange(400)
    reading = noisy.apply(time, np.zeros((400, 3)), beam_range=ranges, seed=2)
    assert np.array_equal(reading["range_validity"] == VALID, reading["beam_valid"] == 1.0)
    assert set(np.unique(reading["range_validity"])) == {NO_ECHO, LOW, HIGH, VALID}


# in worlds, messages and recordings

PLUGIN = """<sensor name="dvl" type="dsros_dvl"><update_rate>2</update_rate>
<plugin name="p" filename="libdsros_ros_dvl.so">
<robotNamespace>dvl</robotNamespace><topicName>dvl</topicName><rangesTopicName>ranges</rangesTopicName>
<frameName>base</frameName><pointcloudFrame>base</pointcloudFrame><updateRateHZ>2</updateRateHZ>
<gaussianNoiseBeamVel>0.005</gaussianNoiseBeamVel><minRange>2</minRange><maxRange>30</maxRange>
<maxRangeDiff>10</maxRangeDiff><beamAngleDeg>30</beamAngleDeg><beamWidthDeg>4</beamWidthDeg>
<beamAzimuthDeg1>-135</beamAzimuthDeg1><beamAzimuthDeg2>135</beamAzimuthDeg2><beamAzimuthDeg3>45</beamAzimuthDeg3>
<beamAzimuthDeg4>-45</beamAzimuthDeg4><pos_z_down>false</pos_z_down></plugin></sensor>"""

BED = """<model name="bed"><static>1</static><pose>0 0 -0.5 0 0 0</pose><link name="l"><collision name="c"><geometry>
<box><size>200 200 1</size></box></geometry></collision></link></model>"""

DIVE = Trajectory(np.array([0.0, 100.0]), np.array([[[0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0], [0, 0, 50.0, 1, 0, 0, 0]]]))
"""A descent from 50 m above a shelf at 2 m/s."""

PAST = Stationary(Pose((400.0, 0.0, 10.0)))
"""A track beyond the end of the shelf, without a bottom."""


def run_dive(load: Callable[..., World], fidelity: str, motion: Any) -> tuple[World, ns.Run]:
    text = f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="auv"><link name="base">{PLUGIN}</link></model>{BED}</world></sdf>"""
    world = load(text, fidelity=fidelity)
    sensor = replace(world.sensors[0], faults=Faults(scheduled=(ScheduledFault("lost_lock", 12.0, 13.0),)))
    world = replace(world, sensors=(sensor,))
    return world, ns.simulate(world, 24.6, seed=1, motion={"auv": motion}, epoch=1000)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., World]:
    def load_text(text: str, **more: Any) -> World:
        (tmp_path / "w.sdf").write_text(text, encoding="utf-8")
        return ns.load(tmp_path / "w.sdf", **more)

    return load_text


@pytest.mark.compiled
@pytest.mark.requirement("DVW-5", "DVW-8")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_all_four_range_states_are_in_messages_and_recordings(
    load: Callable[..., World], tmp_path: Path, fidelity: str
) -> None:
    """Ranges start above the maximum and end below the minimum; a scheduled fault removes the lock."""
    _, run = run_dive(load, fidelity, DIVE)
    reading = run["auv::base::dvl"]
    published = np.isfinite(reading["range_validity"]).all(axis=1)
    found = reading["range_validity"][published]
    slant = (50.0 - 2.0 * reading["time_of_validity"][published]) / math.cos(math.radians(30.0))
    ticks = reading.time[published]
    lost = (ticks >= 12.0) & (ticks < 13.0)
    expected = np.where(lost, NO_ECHO, np.where(slant > 30.0, HIGH, np.where(slant < 2.0, LOW, VALID)))
    assert set(expected.tolist()) == {NO_ECHO, LOW, HIGH, VALID}
    assert np.array_equal(found, np.repeat(expected[:, None], 4, axis=1))
    for name in ("a.mcap", "a.db3", "a.bag"):
        run.save(tmp_path / name)
        back = ns.open(tmp_path / name.removesuffix(".db3"))["auv::base::dvl"]["range_validity"]
        assert np.array_equal(back[np.isfinite(back).all(axis=1)], found)
    with AnyReader([tmp_path / "a.mcap"]) as reader:
        (line,) = (connection for connection in reader.connections if connection.topic == "/dvl/ranges")
        decoded: list[Any] = [reader.deserialize(raw, line.msgtype) for _, _, raw in reader.messages([line])]
    assert [[one.range_validity for one in each.ranges] for each in decoded] == found.tolist()  # type: ignore[attr-defined]


@pytest.mark.requirement("DVW-8")
def test_ranges_message_is_read_back_alone(load: Callable[..., World]) -> None:
    """Recordings of other programs have no message with all arrays."""
    world, run = run_dive(load, "physical", DIVE)
    sensor, reading = world.sensors[0], run["auv::base::dvl"]
    published = np.isfinite(reading["range_validity"]).all(axis=1)
    message = messages.make_encoder(sensor, "measured", "//dvl/ranges")
    rows = np.zeros(int(published.sum()), dtype=message.layout.dtype)
    message.fill(rows, reading.stamp[published], {name: array[published] for name, array in reading.arrays.items()})
    back = messages.extract_arrays(sensor, rows, "measured", "//dvl/ranges")
    assert back.keys() == {"range_validity"}
    assert np.array_equal(back["range_validity"], reading["range_validity"][published])


@pytest.mark.compiled
@pytest.mark.requirement("DVW-8")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_beam_without_bottom_has_no_echo(load: Callable[..., World], fidelity: str) -> None:
    found = run_dive(load, fidelity, PAST)[1]["auv::base::dvl"]["range_validity"]
    assert (found[np.isfinite(found)] == NO_ECHO).all()
    assert np.isfinite(found).sum() > 100
