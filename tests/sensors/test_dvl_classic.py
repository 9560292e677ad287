"""The two classic plug-ins: the documented rules of the UUV Simulator's DVL and of WHOI's, where `classic` is set."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Quaternion, Vector
from navsense.environment.base import Environment, UniformField
from navsense.environment.current import StratifiedCurrent
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors.base import Measurement
from navsense.sensors.doppler import (
    X_AZIMUTHS_DEG,
    BeamWeighting,
    DopplerTrack,
    MessageDialect,
    WaterMassLayer,
    make_dsros_beams,
    make_janus_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode

FALSE_ALARM = 1e-6
MANY = 500 if INTERPRETED else 5000
PLUS = [0.0, 0.5 * math.pi, math.pi, 1.5 * math.pi]
LEVEL, OVER = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)
V, FLOW = (1.2, -0.3, 0.1), (0.4, 0.5, -0.02)


class Drifting:
    """A frame that goes at a velocity (m/s, world) but is looked at where it stands."""

    end = math.inf

    def __init__(self, place: Vector, rotation: Quaternion = LEVEL, velocity: Vector = V) -> None:
        self.place, self.velocity, self.rotation = place, velocity, rotation

    def at(self, time: AnyArray) -> MotionBlock:
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def bed(slope: float = 0.0) -> Environment:
    """Return a bottom through the origin that rises by `slope` towards x, in water that flows."""
    pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, -math.atan(slope), 0.0))
    scene = Scene((Body("bed", Plane(), pose),))
    return Environment(scene=scene, water=Water(surface=1000.0), current=UniformField(FLOW))


def pings(spec: Dvl, motion: Any, around: Environment, count: int = 1) -> Measurement:
    ticks = Ticks(np.arange(count, dtype=np.int64), 7.0)
    source = Draws(spec.processes(), 5, (0, "dvl"))
    _, told = spec.measure(spec.init(source.initial), ticks, spec.ideal(motion, around, ticks), source.take(count))
    return told


def check_spread(errors: AnyArray, deviations: AnyArray) -> None:
    """Hold errors (n, m) that are independent against their deviations, and the same of all sums of two."""
    white = errors / deviations
    n, m = white.shape
    pairs = [(i, j, s) for i in range(m) for j in range(i) for s in (1.0, -1.0)]
    rows = [*white.T, *((white[:, i] + s * white[:, j]) / math.sqrt(2.0) for i, j, s in pairs)]
    alarm = FALSE_ALARM / (4 * len(rows))
    for row in rows:
        assert chi2.ppf(alarm, n) < row @ row < chi2.isf(alarm, n)
        assert abs(row.sum()) < norm.isf(alarm) * math.sqrt(n)


# the UUV Simulator


def uuv(**more: Any) -> Dvl:
    given: dict[str, Any] = {
        "beams": make_janus_beams(0.52, PLUS),
        "minimum_range": 2.0,
        "maximum_range": 30.0,
        "bottom": DopplerTrack(Noise(stddev=0.02), reported_stddev=0.05),
    }
    return Dvl(**{**given, **more}, dialect=MessageDialect.UUV, classic=True)


@pytest.mark.requirement("DVU-3")
def test_the_links_own_velocity_with_noise_on_each_axis() -> None:
    """R^T v + noise_amplitude w each tick, of a covariance noise_sigma^2 I, in the frame that is asked for."""
    turned = from_rpy(0.1, -0.2, 0.7)
    own = np.array(rotate((turned[0], -turned[1], -turned[2], -turned[3]), V))
    for reference, true in ((LEVEL, own), (OVER, own * [1.0, -1.0, -1.0])):
        told = pings(uuv(reference=reference), Drifting((0.0, 0.0, 10.0), turned), bed(), MANY)
        assert told.emitted is not None
        assert told.emitted.all()
        check_spread(told.arrays["velocity"] - true, np.full(3, 0.02))
        assert np.array_equal(told.arrays["velocity_covariance"], np.tile(0.05**2 * np.eye(3), (MANY, 1, 1)))
        back = 1.0 if reference == LEVEL else np.array([1.0, -1.0, -1.0])
        east, north = np.array([rotate(turned, tuple(row)) for row in told.arrays["velocity"] * back]).T[:2]
        assert told.arrays["course"] == pytest.approx(np.arctan2(east, north) % (2.0 * math.pi), abs=1e-12)
        assert told.arrays["speed"] == pytest.approx(np.hypot(east, north), rel=1e-12, abs=0.0)
        assert np.array_equal(told.arrays["time_of_validity"], np.arange(MANY) / 7.0)


@pytest.mark.requirement("DVU-3")
def test_velocity_without_a_bottom() -> None:
    told = pings(uuv(bottom=DopplerTrack()), Drifting((0.0, 0.0, 10.0)), Environment())
    assert told.arrays["velocity"][0] == pytest.approx(V, abs=1e-15)
    assert told.arrays["velocity_mode"][0] == 1.0
    assert np.isnan(told.arrays["altitude"][0])
    assert told.arrays["num_good_beams"][0] == 0.0


@pytest.mark.requirement("DVU-5")
@pytest.mark.parametrize(
    ("slope", "height", "clamped"),
    [
        (0.0, 10.0, 0),
        (0.0, 1.0, 4),
        (0.0, 40.0, 4),
        (0.8, 20.0, 1),  # downhill there is nothing within 30 m
        (0.8, 2.2, 1),  # uphill it is nearer than 2 m
    ],
)
def test_altitude_is_the_mean_of_ranges_within_their_limits(slope: float, height: float, clamped: int) -> None:
    """What is nearer than the least or farther than the most counts as that; only where all do is there none."""
    normal = np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    axes = np.column_stack([math.sin(0.52) * np.cos(PLUS), math.sin(0.52) * np.sin(PLUS), np.full(4, -math.cos(0.52))])
    slants = height * normal[2] / -(axes @ normal)
    outside = (slants < 2.0) | (slants > 30.0)
    assert outside.sum() == clamped
    shown = np.clip(slants, 2.0, 30.0)
    arrays = pings(uuv(), Drifting((0.0, 0.0, height)), bed(slope)).arrays
    assert arrays["beam_range"][0] == pytest.approx(shown, rel=1e-12, abs=0.0)
    assert arrays["beam_valid"][0].tolist() == (~outside).astype(float).tolist()
    expected = math.nan if clamped == 4 else float(shown.mean())
    assert arrays["altitude"][0] == pytest.approx(expected, rel=1e-12, nan_ok=True, abs=0.0)


@pytest.mark.requirement("DVU-5")
def test_ranges_of_which_some_are_at_either_limit_have_a_mean() -> None:
    """In a steep gully one side is too near and the other out of reach: limits of both kinds are averaged."""
    spec = uuv(
        beams=make_janus_beams(0.52, [0.25 * math.pi, 0.75 * math.pi, 1.25 * math.pi, 1.75 * math.pi]),
        maximum_range=4.0,
    )
    arrays = pings(spec, Drifting((0.0, 0.0, 2.6)), bed(1.4)).arrays
    assert sorted(arrays["beam_range"][0].tolist()) == [2.0, 2.0, 4.0, 4.0]
    assert arrays["altitude"][0] == 3.0


@pytest.mark.requirement("DVU-5")
def test_noise_does_not_take_ranges_beyond_their_limits() -> None:
    arrays = pings(uuv(range=Noise(stddev=1.0)), Drifting((0.0, 0.0, 29.0 * math.cos(0.52))), bed(), MANY).arrays
    ranges = arrays["beam_range"]
    assert ranges.max() == 30.0
    share = (4 * MANY, norm.sf(1.0))
    assert binom.ppf(0.5 * FALSE_ALARM, *share) <= np.sum(ranges == 30.0) <= binom.isf(0.5 * FALSE_ALARM, *share)
    assert np.isfinite(ranges).all()
    assert np.array_equal(np.isnan(arrays["altitude"]), (ranges == 30.0).all(axis=1))


@pytest.mark.requirement("DVU-3", "DVU-5")
def test_physical_beams_of_the_same_sheet_are_solved() -> None:
    """Without `classic` the dialect is a name: velocity and covariance are the beams', the altitude the bed's."""
    spec = replace(uuv(), classic=False, bottom=DopplerTrack(reported_stddev=0.05), propagation=False)
    arrays = pings(spec, Drifting((0.0, 0.0, 10.0)), bed(0.3)).arrays
    sine, cosine = math.sin(0.52), math.cos(0.52)
    unit = np.diag([0.5 / sine**2, 0.5 / sine**2, 0.25 / cosine**2])
    assert arrays["velocity_covariance"][0] == pytest.approx(0.05**2 * unit, abs=1e-15)
    assert arrays["altitude"][0] == pytest.approx(10.0, rel=1e-12, abs=0.0)


# WHOI


def whoi(angle: float = 25.0, **more: Any) -> Dvl:
    """Return a sheet as `dsros_dvl` has them: z down, told in its own frame."""
    given: dict[str, Any] = {
        "beams": make_dsros_beams(math.radians(angle), [math.radians(a) for a in X_AZIMUTHS_DEG], pos_z_down=True),
        "minimum_range": 0.7,
        "maximum_range": 90.0,
        "bottom": DopplerTrack(Noise(stddev=0.005)),
        "water": DopplerTrack(Noise(stddev=0.01)),
        "range": Noise(stddev=0.1),
        "water_mode": TrackMode.FALLBACK,
        "layer": WaterMassLayer(1.0, 20.0),
    }
    return Dvl(**{**given, **more}, dialect=MessageDialect.DSROS, classic=True)


def slants_over(slope: float, height: float, angle: float) -> AnyArray:
    """Return slant ranges (4,) of a level DVL that looks down by z; u = (-sin a cos A, -sin a sin A, cos a) there."""
    a, around = math.radians(angle), np.radians(X_AZIMUTHS_DEG)
    axes = np.column_stack([-math.sin(a) * np.cos(around), math.sin(a) * np.sin(around), np.full(4, -math.cos(a))])
    return height / (slope * axes[:, 0] - axes[:, 2])


@pytest.mark.requirement("DVW-4", "DVW-6")
def test_noise_of_beams_and_the_documented_altitude_course_and_speed() -> None:
    """Altitude mean(r) cos(pi / 6) at any beam angle; course atan2(x', y') in the sensor's frame: forward is east."""
    told = pings(whoi(), Drifting((0.0, 0.0, 20.0), OVER), bed(0.2), MANY)
    arrays = told.arrays
    assert told.emitted is not None
    assert told.emitted.all()
    slants = slants_over(0.2, 20.0, 25.0)
    check_spread(arrays["beam_range"] - slants, np.full(4, 0.1))
    assert np.allclose(
        arrays["altitude"], arrays["beam_range"].mean(axis=1) * math.cos(math.pi / 6.0), rtol=1e-12, atol=0.0
    )
    own = np.array(V) * [1.0, -1.0, -1.0]
    sine, cosine = math.sin(math.radians(25.0)), math.cos(math.radians(25.0))
    deviations = 0.005 * np.array([1.0 / (math.sqrt(2.0) * sine), 1.0 / (math.sqrt(2.0) * sine), 0.5 / cosine])
    check_spread(arrays["velocity"] - own, deviations)
    assert np.allclose(arrays["velocity_covariance"], np.diag(deviations**2), rtol=1e-9, atol=1e-18)
    x, y = arrays["velocity"][:, 0], arrays["velocity"][:, 1]
    assert np.allclose(arrays["course"], np.mod(np.arctan2(x, y), 2.0 * math.pi), rtol=0.0, atol=1e-12)
    assert np.allclose(arrays["speed"], np.hypot(x, y), rtol=1e-12, atol=0.0)
    quiet = pings(whoi(bottom=DopplerTrack()), Drifting((0.0, 0.0, 20.0), OVER, (1.0, 0.0, 0.0)), bed()).arrays
    assert math.degrees(quiet["course"][0]) == pytest.approx(90.0, abs=1e-9)
    back = pings(whoi(bottom=DopplerTrack()), Drifting((0.0, 0.0, 20.0), OVER, (-1.0, 0.0, 0.0)), bed()).arrays
    assert math.degrees(back["course"][0]) == pytest.approx(270.0, abs=1e-9)


@pytest.mark.requirement("DVW-2", "WTR-2")
def test_beams_are_single_rays_and_water_goes_down_to_the_bottom() -> None:
    """Its width changes no range, and the layer ends at the bottom: of the mean of a current sheared by depth."""
    wide = make_dsros_beams(math.radians(25.0), [math.radians(a) for a in X_AZIMUTHS_DEG], pos_z_down=True, width=0.1)
    spec = whoi(beams=wide, range=Noise(), water=DopplerTrack(), water_mode=TrackMode.ALWAYS)
    sheared = StratifiedCurrent((0.0, 100.0), ((0.0, 0.0, 0.0), (4.0, -2.0, 0.0)), surface=50.0)
    around = replace(bed(), water=Water(surface=50.0), current=sheared)
    classic = pings(spec, Drifting((0.0, 0.0, 15.0), OVER), around).arrays
    nearest = replace(wide, weighting=BeamWeighting.NEAREST)
    wider = replace(spec, beams=nearest, classic=False, propagation=False)
    physical = pings(wider, Drifting((0.0, 0.0, 15.0), OVER), around).arrays
    assert classic["beam_range"][0] == pytest.approx(slants_over(0.0, 15.0, 25.0), rel=1e-12, abs=0.0)
    assert np.all(physical["beam_range"][0] < 0.99 * classic["beam_range"][0])
    middle = 0.5 * (1.0 + 15.0)  # m below the instrument, 35 m under the surface
    flow = np.array([0.04, -0.02, 0.0]) * (35.0 + middle)
    assert classic["water_velocity"][0] == pytest.approx((np.array(V) - flow) * [1.0, -1.0, -1.0], rel=1e-10, abs=0.0)


@pytest.mark.requirement("DVW-7")
@pytest.mark.parametrize("classic", [True, False])
def test_classic_rule_needs_all_beams(classic: bool) -> None:
    """One beam of four is out of range: classic has no velocity over the bottom, physical that of the other three."""
    farthest = float(slants_over(0.5, 20.0, 30.0).max())
    spec = whoi(30.0, maximum_range=farthest, water_mode=TrackMode.NEVER, layer=None, range=Noise())
    turned = from_rpy(math.pi, 0.0, 0.3)  # of the two that would be as far, one is farther, the other nearer
    spec = replace(spec, classic=classic, propagation=False, bottom=DopplerTrack())
    arrays = pings(spec, Drifting((0.0, 0.0, 20.0), turned), bed(0.5)).arrays
    assert arrays["num_good_beams"][0] == 3.0
    if classic:
        assert arrays["velocity_mode"][0] == 0.0
        assert np.isnan(arrays["velocity"][0]).all()
        mean = np.nanmean(arrays["beam_range"][0])
        assert arrays["altitude"][0] == pytest.approx(mean * math.cos(math.pi / 6.0), rel=1e-12, abs=0.0)
    else:
        own = rotate((turned[0], -turned[1], -turned[2], -turned[3]), V)
        assert arrays["velocity_mode"][0] == 1.0
        assert arrays["velocity"][0] == pytest.approx(own, rel=1e-12, abs=0.0)
        assert arrays["altitude"][0] == pytest.approx(20.0, rel=1e-12, abs=0.0)


@pytest.mark.requirement("WTR-1", "WTR-2")
def test_water_track_where_there_is_no_bottom_track() -> None:
    """Velocity of the link less the current, by least squares, the noise of each axis of the solution."""
    told = pings(whoi(), Drifting((0.0, 0.0, 200.0), OVER), bed(), MANY).arrays
    assert np.all(told["velocity_mode"] == 2.0)
    true = (np.array(V) - FLOW) * [1.0, -1.0, -1.0]
    check_spread(told["velocity"] - true, np.full(3, 0.01))
    assert np.array_equal(told["velocity_covariance"], np.tile(1e-4 * np.eye(3), (MANY, 1, 1)))
    assert np.array_equal(told["water_velocity"], told["velocity"])
    for name in ("altitude", "course", "speed", "beam_range"):
        assert np.isnan(told[name]).all()
    bottom = pings(whoi(), Drifting((0.0, 0.0, 20.0), OVER), bed(), 5).arrays
    assert np.all(bottom["velocity_mode"] == 1.0)


@pytest.mark.requirement("WTR-2")
def test_both_tracks_at_once_have_each_its_noise() -> None:
    told = pings(whoi(30.0, water_mode=TrackMode.ALWAYS), Drifting((0.0, 0.0, 40.0), OVER), bed(), MANY).arrays
    assert np.all(told["velocity_mode"] == 1.0)
    flip = np.array([1.0, -1.0, -1.0])
    off = np.column_stack([told["velocity"] - V * flip, told["water_velocity"] - (np.array(V) - FLOW) * flip])
    check_spread(off, np.concatenate([0.005 * np.sqrt([2.0, 2.0, 1.0 / 3.0]), np.full(3, 0.01)]))
    assert np.array_equal(told["water_velocity_covariance"], np.tile(1e-4 * np.eye(3), (MANY, 1, 1)))
