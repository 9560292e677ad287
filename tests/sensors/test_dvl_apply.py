"""`apply` adds the errors of a Doppler instrument to given velocities and ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from navsense.clock import Clock
from navsense.core import pose
from navsense.core.errors import SensorError
from navsense.core.ticks import Ticks
from navsense.core.typing import Quaternion, Times
from navsense.environment.base import Environment
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors import Dvl
from navsense.sensors.doppler import EchoStrength, TrackErrors, WaterMassLayer, make_dsros_beams, make_janus_beams
from navsense.sensors.doppler.apply_inputs import make_level_attitude
from navsense.sensors.dvl import TrackMode
from navsense.sensors.range import Sound

COUNT = 4000
TIME = np.arange(COUNT) * 0.25
OWN = np.column_stack((1.5 + np.sin(TIME), 0.3 * np.cos(TIME), 0.1 * np.sin(3.0 * TIME)))


@dataclass(frozen=True)
class GlidingMotion:
    """An attitude 12 m above the ground with a velocity, at every time."""

    rotation: Quaternion

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: Times) -> MotionBlock:
        rows = ((3.0, 4.0, 12.0), self.rotation, (0.8, -0.2, 0.05), *((0.0, 0.0, 0.0),) * 3)
        return MotionBlock(*(np.tile(row, (time.shape[0], 1)) for row in rows))


NORMAL = 5.33
"""Two-sided quantile of the normal at 1e-7: a false-alarm rate below 1e-6 over ten comparisons."""


def make_track(stddev: float, **track: float) -> TrackErrors:
    return TrackErrors(Noise(stddev=stddev), **track)


@pytest.mark.compiled
@pytest.mark.requirement("DOO-1", "GAP-9")
def test_apply_adds_errors_to_a_given_velocity() -> None:
    """Four beams at 30 degrees have sqrt(2), sqrt(2) and sqrt(1/3) of a beam's deviation, as reported."""
    arguments = OWN.copy()
    reading = Dvl(bottom=make_track(0.01)).apply(TIME, arguments, seed=7)
    assert np.array_equal(arguments, OWN)
    assert reading.ideal["velocity"] == pytest.approx(OWN, abs=1e-14)
    off = reading["velocity"] - OWN
    expected = 0.01 * np.sqrt([2.0, 2.0, 1.0 / 3.0])
    assert np.sqrt((off**2).mean(axis=0)) == pytest.approx(expected, rel=NORMAL / math.sqrt(2.0 * COUNT), abs=0.0)
    stated = np.einsum("nii->ni", reading["velocity_covariance"])
    assert stated == pytest.approx(np.tile(expected**2, (COUNT, 1)), rel=1e-12, abs=0.0)
    assert reading.valid.all()
    assert reading.emitted.all()
    assert np.array_equal(reading["time_of_validity"], TIME)
    again = Dvl(bottom=make_track(0.01)).apply(TIME, OWN, seed=7)
    assert again["velocity"].tobytes() == reading["velocity"].tobytes()
    other = Dvl(bottom=make_track(0.01)).apply(TIME, OWN, seed=7, name="second")
    assert other["velocity"].tobytes() != reading["velocity"].tobytes()


@pytest.mark.requirement("DOO-1", "GAP-5", "GAP-7")
def test_ideal_reading_equals_that_of_the_world() -> None:
    """A moving, tilted instrument 12 m above a level bed has the same velocity, ranges, altitude and course."""
    q = pose.from_rpy(0.1, -0.15, 0.7)
    sheet = Dvl(beams=make_janus_beams(math.radians(25.0), [0.3, 2.1, 4.0, 5.5]), propagation=False)
    bed = Environment(scene=Scene((Body("bed", Plane()),)))

    ticks = Ticks(np.arange(3, dtype=np.int64), 5.0)
    ideal = sheet.ideal(GlidingMotion(q), bed, ticks)
    own = np.tile(pose.rotate(pose.conjugate(q), (0.8, -0.2, 0.05)), (3, 1))
    reading = sheet.apply(ticks.time, own, beam_range=ideal["beam_range"], orientation=np.tile(q, (3, 1)), seed=1)
    for name in ("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity"):
        assert reading[name] == pytest.approx(ideal[name], rel=1e-12, abs=0.0), name
        assert reading.ideal[name] == pytest.approx(ideal[name], rel=1e-12, abs=0.0), name
    assert reading["altitude"] == pytest.approx(12.0, rel=1e-12, abs=0.0)
    assert reading["course"] == pytest.approx(math.atan2(0.8, -0.2), rel=1e-12, abs=0.0)


@pytest.mark.requirement("DOO-1", "GAP-4")
def test_ranges_determine_valid_beams() -> None:
    ranges = np.full((6, 4), 20.0)
    ranges[1, 0], ranges[2, :2], ranges[3, 3], ranges[4], ranges[5, 2] = math.nan, math.inf, 60.0, 0.5, 1.0
    sheet = Dvl(minimum_range=1.0, maximum_range=50.0)
    reading = sheet.apply(np.arange(6.0), OWN[:6], beam_range=ranges, seed=1)
    assert reading["num_good_beams"].tolist() == [4.0, 3.0, 2.0, 3.0, 0.0, 4.0]
    assert reading.valid.tolist() == [True, True, False, True, False, True]
    assert reading["velocity"][reading.valid] == pytest.approx(OWN[:6][reading.valid], abs=1e-13)
    assert np.isnan(reading["velocity"][~reading.valid]).all()


@pytest.mark.compiled
@pytest.mark.requirement("DOO-1", "GAP-1")
def test_given_velocity_relative_to_the_water() -> None:
    """At a range of 20 m, the layer from 5 to 20 m ends at 80 % of 17.3 m. At 7 m it is empty."""
    sheet = Dvl(water=make_track(0.02), layer=WaterMassLayer(5.0, 20.0), water_mode=TrackMode.ALWAYS)
    through = OWN + np.array([0.3, -0.2, 0.0])
    ranges = np.full((COUNT, 4), 20.0)
    ranges[::2] = 7.0
    reading = sheet.apply(TIME, OWN, water_velocity=through, beam_range=ranges, seed=2)
    assert np.isnan(reading["water_velocity"][::2]).all()
    off = reading["water_velocity"][1::2] - through[1::2]
    expected = 0.02 * np.sqrt([2.0, 2.0, 1.0 / 3.0])
    assert np.sqrt((off**2).mean(axis=0)) == pytest.approx(expected, rel=NORMAL / math.sqrt(COUNT), abs=0.0)
    assert reading["velocity"] == pytest.approx(OWN, abs=1e-13)
    still = sheet.apply(TIME[:2], OWN[:2], seed=2)
    assert still.ideal["water_velocity"] == pytest.approx(OWN[:2], abs=1e-13)
    lost = replace(sheet, water_mode=TrackMode.FALLBACK).apply(
        TIME, OWN, water_velocity=through, beam_range=np.full((COUNT, 4), math.inf), seed=2
    )
    assert np.array_equal(lost["velocity_mode"], np.full(COUNT, 2.0))
    assert lost.ideal["velocity"] == pytest.approx(through, abs=1e-13)


@pytest.mark.requirement("DOO-1", "GAP-2")
def test_pings_are_output_after_their_echoes() -> None:
    """Echoes from 75 m return after 0.1 s and are output 20 ms later, in every other row of 10 Hz."""
    sheet = Dvl(processing_time=0.02)
    reading = sheet.apply(np.arange(9) * 0.1, OWN[:9], beam_range=np.full((9, 4), 75.0), seed=1)
    assert reading.emitted.tolist() == [True, False] * 4 + [True]
    assert np.isnan(reading["velocity"][1::2]).all()
    assert reading["velocity"][::2] == pytest.approx(OWN[:9:2], abs=1e-13)
    at_once = replace(sheet, propagation=False)
    assert at_once.apply(np.arange(9) * 0.1, OWN[:9], seed=1).emitted.all()
    silent = sheet.apply(np.arange(9) * 0.1, OWN[:9], beam_range=np.full((9, 4), math.nan), seed=1)
    assert silent.emitted.tolist() == [k % 2 == 0 for k in range(9)], "100 m are waited for"


@pytest.mark.compiled
@pytest.mark.requirement("DOO-1", "GAP-2")
def test_rate_is_that_of_the_given_times() -> None:
    """A deviation for 16 Hz is halved at 4 Hz. A density is multiplied by the square root of the rate."""
    for track in (make_track(0.02, reference_rate=16.0), TrackErrors(Noise(noise_density=0.005))):
        reading = Dvl(bottom=track).apply(TIME, OWN, seed=3)
        off = reading["beam_velocity"] - reading.ideal["beam_velocity"]
        assert float(np.sqrt((off**2).mean())) == pytest.approx(0.01, rel=NORMAL / math.sqrt(8.0 * COUNT), abs=0.0)
        assert reading["beam_deviation"] == pytest.approx(np.full((COUNT, 4), 0.01), rel=1e-12, abs=0.0)


@pytest.mark.requirement("DOO-1", "GAP-2")
def test_apply_assumes_true_sound_speed_and_a_perpendicular_bottom() -> None:
    """The strength is reduced by the cosine of the beam angle: 20 log10 cos 30."""
    strong = EchoStrength(level=60.0, absorption=0.0, threshold=-60.0)
    sheet = Dvl(bottom=make_track(0.01), sound=Sound(1400.0), echo_strength=strong)
    reading = sheet.apply(TIME[:50], OWN[:50], seed=3)
    assert np.array_equal(reading["sound_speed"], np.full(50, 1400.0))
    assert reading["beam_range"] == pytest.approx(50.0, rel=1e-12, abs=0.0)
    decibels = 60.0 - 30.0 * math.log10(50.0) + 20.0 * math.log10(math.cos(math.radians(30.0)))
    noisier, square = (1.0 + 10.0 ** (-0.1 * decibels)) ** 2, 0.81
    factor = math.sqrt((noisier - square) / (1.0 - square))
    assert reading["beam_deviation"] == pytest.approx(0.01 * factor, rel=1e-12, abs=0.0)


@pytest.mark.requirement("DOO-1", "GAP-5")
def test_instrument_without_attitude_points_down() -> None:
    frd = Dvl(beams=make_dsros_beams(math.radians(30.0), [0.25 * math.pi * k for k in (1, 3, 5, 7)], pos_z_down=True))
    reading = frd.apply(TIME[:3], np.tile([2.0, 0.0, 0.0], (3, 1)), beam_range=np.full((3, 4), 10.0), seed=1)
    assert reading["altitude"] == pytest.approx(10.0 * math.cos(math.radians(30.0)), rel=1e-12, abs=0.0)
    assert reading["course"] == pytest.approx(0.5 * math.pi, rel=1e-12, abs=0.0)
    for axis in ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.36, -0.48, 0.8), (-0.6, 0.0, -0.8)):
        q = make_level_attitude(axis)
        assert math.hypot(*q) == pytest.approx(1.0, abs=1e-15)
        assert pose.rotate(q, axis) == pytest.approx((0.0, 0.0, -1.0), abs=1e-15)
    assert make_level_attitude((0.0, 0.0, -1.0)) == (1.0, 0.0, 0.0, 0.0)


def test_apply_accepts_clock_and_temperature() -> None:
    warm, clock = Noise(temperature_coefficient=0.001, reference_temperature=290.0), Clock("one", Noise(mean=0.5))
    kelvin = np.array([290.0, 300.0, 310.0])
    reading = Dvl(bottom=TrackErrors(warm)).apply(TIME[:3], OWN[:3], temperature=kelvin, seed=1, clock=clock)
    off = reading["beam_velocity"] - reading.ideal["beam_velocity"]
    assert off == pytest.approx(np.outer([0.0, 0.01, 0.02], np.ones(4)), abs=1e-14)
    assert reading.clock_error == pytest.approx(0.5, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"velocity": OWN[:2]}, r"velocity: shape \(2, 3\); must be \(3, 3\)"),
        (
            {"velocity": np.array([[0.0, 0.0, 0.0], [0.0, math.nan, 0.0], [0.0] * 3])},
            r"velocity of row 1: .*must be finite",
        ),
        ({"beam_range": np.ones((3, 3))}, r"beam_range: shape \(3, 3\); must be \(3, 4\)"),
        ({"orientation": np.ones((3, 4))}, r"orientation of row 0: .*must be a unit quaternion w x y z"),
        ({"water_velocity": np.full((3, 3), math.inf)}, r"water_velocity of row 0: .*; must be finite"),
    ],
)
def test_invalid_arrays_are_an_error(arguments: dict[str, Any], message: str) -> None:
    sheet = Dvl(layer=WaterMassLayer(2.0, 5.0), water_mode=TrackMode.ALWAYS)
    own: dict[str, Any] = {"velocity": OWN[:3], **arguments}
    with pytest.raises(SensorError, match=message):
        sheet.apply(TIME[:3], seed=1, **own)


@pytest.mark.requirement("GAP-4", "DVW-8")
def test_arrays_state_why_a_velocity_is_invalid() -> None:
    """The cases are the rows of the table in docs/explanation/dvl.md."""
    sheet = Dvl(minimum_range=1.0, maximum_range=80.0, propagation=False)
    ranges = np.full((5, 4), 20.0)
    ranges[1, :2], ranges[2, :2], ranges[3, :2], ranges[4, 0] = math.nan, 0.5, 90.0, math.nan
    reading = sheet.apply(TIME[:5], OWN[:5], beam_range=ranges, seed=1)
    assert reading.emitted.all()
    assert reading.valid.tolist() == [True, False, False, False, True]
    assert reading["num_good_beams"].tolist() == [4.0, 2.0, 2.0, 2.0, 3.0]
    assert reading["velocity_mode"].tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert reading["range_validity"][:, 0].tolist() == [3.0, 0.0, 1.0, 2.0, 0.0]
    assert np.array_equal(np.isnan(reading["velocity"]).all(axis=1), ~reading.valid)

    screened = replace(sheet, bottom=make_track(0.1), error_velocity_limit=1e-9).apply(TIME[:5], OWN[:5], seed=1)
    assert not screened.valid.any()
    assert screened["num_good_beams"].tolist() == [4.0] * 5
    assert screened["velocity_mode"].tolist() == [0.0] * 5

    layer = replace(sheet, layer=WaterMassLayer(1.0, 4.0), water_mode=TrackMode.FALLBACK)
    through = layer.apply(TIME[:5], OWN[:5], water_velocity=OWN[:5], beam_range=ranges, seed=1)
    assert through["velocity_mode"][[0, 3]].tolist() == [1.0, 2.0]
    assert through.valid[3]
