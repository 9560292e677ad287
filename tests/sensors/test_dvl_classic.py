"""Classic fidelity of the two DVL plug-ins: the documented rules of the UUV Simulator and of Woods Hole (WHOI)."""

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
    MessageDialect,
    TrackErrors,
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


class DriftingMotion:
    """A frame at a fixed position with a velocity (m/s, world)."""

    end = math.inf

    def __init__(self, place: Vector, rotation: Quaternion = LEVEL, velocity: Vector = V) -> None:
        self.place, self.velocity, self.rotation = place, velocity, rotation

    def at(self, time: AnyArray) -> MotionBlock:
        rows = np.ones((time.shape[0], 1))
        zero = rows * np.zeros(3)
        return MotionBlock(rows * self.place, rows * self.rotation, rows * self.velocity, zero, zero, zero)


def make_bed(slope: float = 0.0) -> Environment:
    """Return a bottom through the origin with a slope towards x, in a current."""
    pose = Pose((0.0, 0.0, 0.0), from_rpy(0.0, -math.atan(slope), 0.0))
    scene = Scene((Body("bed", Plane(), pose),))
    return Environment(scene=scene, water=Water(surface=1000.0), current=UniformField(FLOW))


def measure_pings(spec: Dvl, motion: Any, environment: Environment, count: int = 1) -> Measurement:
    ticks = Ticks(np.arange(count, dtype=np.int64), 7.0)
    source = Draws(spec.processes(), 5, (0, "dvl"))
    _, reading = spec.measure(
        spec.init(source.initial), ticks, spec.ideal(motion, environment, ticks), source.take(count)
    )
    return reading


def check_spread(errors: AnyArray, deviations: AnyArray) -> None:
    """Assert that independent errors (n, m) have these deviations, and all sums of two theirs."""
    white = errors / deviations
    n, m = white.shape
    pairs = [(i, j, s) for i in range(m) for j in range(i) for s in (1.0, -1.0)]
    rows = [*white.T, *((white[:, i] + s * white[:, j]) / math.sqrt(2.0) for i, j, s in pairs)]
    alarm = FALSE_ALARM / (4 * len(rows))
    for row in rows:
        assert chi2.ppf(alarm, n) < row @ row < chi2.isf(alarm, n)
        assert abs(row.sum()) < norm.isf(alarm) * math.sqrt(n)


# the UUV Simulator


def make_uuv_spec(**more: Any) -> Dvl:
    arguments: dict[str, Any] = {
        "beams": make_janus_beams(0.52, PLUS),
        "minimum_range": 2.0,
        "maximum_range": 30.0,
        "bottom": TrackErrors(Noise(stddev=0.02), reported_stddev=0.05),
    }
    return Dvl(**{**arguments, **more}, dialect=MessageDialect.UUV, classic=True)


@pytest.mark.requirement("DVU-3")
def test_uuv_velocity_is_that_of_the_link_with_noise_per_axis() -> None:
    """The velocity is R^T v + noise_amplitude w, with the covariance noise_sigma^2 I, in the output frame."""
    turned = from_rpy(0.1, -0.2, 0.7)
    own = np.array(rotate((turned[0], -turned[1], -turned[2], -turned[3]), V))
    for reference, true in ((LEVEL, own), (OVER, own * [1.0, -1.0, -1.0])):
        reading = measure_pings(
            make_uuv_spec(reference=reference), DriftingMotion((0.0, 0.0, 10.0), turned), make_bed(), MANY
        )
        assert reading.emitted is not None
        assert reading.emitted.all()
        check_spread(reading.arrays["velocity"] - true, np.full(3, 0.02))
        assert np.array_equal(reading.arrays["velocity_covariance"], np.tile(0.05**2 * np.eye(3), (MANY, 1, 1)))
        back = 1.0 if reference == LEVEL else np.array([1.0, -1.0, -1.0])
        east, north = np.array([rotate(turned, tuple(row)) for row in reading.arrays["velocity"] * back]).T[:2]
        assert reading.arrays["course"] == pytest.approx(np.arctan2(east, north) % (2.0 * math.pi), abs=1e-12)
        assert reading.arrays["speed"] == pytest.approx(np.hypot(east, north), rel=1e-12, abs=0.0)
        assert np.array_equal(reading.arrays["time_of_validity"], np.arange(MANY) / 7.0)


@pytest.mark.requirement("DVU-3")
def test_uuv_velocity_does_not_need_a_bottom() -> None:
    reading = measure_pings(make_uuv_spec(bottom=TrackErrors()), DriftingMotion((0.0, 0.0, 10.0)), Environment())
    assert reading.arrays["velocity"][0] == pytest.approx(V, abs=1e-15)
    assert reading.arrays["velocity_mode"][0] == 1.0
    assert np.isnan(reading.arrays["altitude"][0])
    assert reading.arrays["num_good_beams"][0] == 0.0


@pytest.mark.requirement("DVU-5")
@pytest.mark.parametrize(
    ("slope", "height", "clamped"),
    [
        (0.0, 10.0, 0),
        (0.0, 1.0, 4),
        (0.0, 40.0, 4),
        (0.8, 20.0, 1),  # downhill there is no bottom within 30 m
        (0.8, 2.2, 1),  # uphill the bottom is nearer than 2 m
    ],
)
def test_uuv_altitude_is_the_mean_of_clipped_ranges(slope: float, height: float, clamped: int) -> None:
    """Ranges outside the limits count as the limits. The altitude is NaN only if all are outside."""
    normal = np.array([-slope, 0.0, 1.0]) / math.hypot(slope, 1.0)
    axes = np.column_stack([math.sin(0.52) * np.cos(PLUS), math.sin(0.52) * np.sin(PLUS), np.full(4, -math.cos(0.52))])
    slants = height * normal[2] / -(axes @ normal)
    outside = (slants < 2.0) | (slants > 30.0)
    assert outside.sum() == clamped
    shown = np.clip(slants, 2.0, 30.0)
    arrays = measure_pings(make_uuv_spec(), DriftingMotion((0.0, 0.0, height)), make_bed(slope)).arrays
    assert arrays["beam_range"][0] == pytest.approx(shown, rel=1e-12, abs=0.0)
    assert arrays["beam_valid"][0].tolist() == (~outside).astype(float).tolist()
    expected = math.nan if clamped == 4 else float(shown.mean())
    assert arrays["altitude"][0] == pytest.approx(expected, rel=1e-12, nan_ok=True, abs=0.0)


@pytest.mark.requirement("DVU-5")
def test_ranges_at_both_limits_have_a_mean() -> None:
    """In a steep gully one side is too near and the other out of range: both limits enter the mean."""
    spec = make_uuv_spec(
        beams=make_janus_beams(0.52, [0.25 * math.pi, 0.75 * math.pi, 1.25 * math.pi, 1.75 * math.pi]),
        maximum_range=4.0,
    )
    arrays = measure_pings(spec, DriftingMotion((0.0, 0.0, 2.6)), make_bed(1.4)).arrays
    assert sorted(arrays["beam_range"][0].tolist()) == [2.0, 2.0, 4.0, 4.0]
    assert arrays["altitude"][0] == 3.0


@pytest.mark.requirement("DVU-5")
def test_noisy_ranges_stay_within_their_limits() -> None:
    arrays = measure_pings(
        make_uuv_spec(range_noise=Noise(stddev=1.0)),
        DriftingMotion((0.0, 0.0, 29.0 * math.cos(0.52))),
        make_bed(),
        MANY,
    ).arrays
    ranges = arrays["beam_range"]
    assert ranges.max() == 30.0
    share = (4 * MANY, norm.sf(1.0))
    assert binom.ppf(0.5 * FALSE_ALARM, *share) <= np.sum(ranges == 30.0) <= binom.isf(0.5 * FALSE_ALARM, *share)
    assert np.isfinite(ranges).all()
    assert np.array_equal(np.isnan(arrays["altitude"]), (ranges == 30.0).all(axis=1))


@pytest.mark.requirement("DVU-3", "DVU-5")
def test_physical_fidelity_solves_the_same_beams() -> None:
    """Without `classic`, velocity and covariance are solved from the beams, and the altitude is the true one."""
    spec = replace(make_uuv_spec(), classic=False, bottom=TrackErrors(reported_stddev=0.05), propagation=False)
    arrays = measure_pings(spec, DriftingMotion((0.0, 0.0, 10.0)), make_bed(0.3)).arrays
    sine, cosine = math.sin(0.52), math.cos(0.52)
    unit = np.diag([0.5 / sine**2, 0.5 / sine**2, 0.25 / cosine**2])
    assert arrays["velocity_covariance"][0] == pytest.approx(0.05**2 * unit, abs=1e-15)
    assert arrays["altitude"][0] == pytest.approx(10.0, rel=1e-12, abs=0.0)


# WHOI


def make_whoi_spec(angle: float = 25.0, **more: Any) -> Dvl:
    """Return a spec like `dsros_dvl`: z down, output in the sensor frame."""
    arguments: dict[str, Any] = {
        "beams": make_dsros_beams(math.radians(angle), [math.radians(a) for a in X_AZIMUTHS_DEG], pos_z_down=True),
        "minimum_range": 0.7,
        "maximum_range": 90.0,
        "bottom": TrackErrors(Noise(stddev=0.005)),
        "water": TrackErrors(Noise(stddev=0.01)),
        "range_noise": Noise(stddev=0.1),
        "water_mode": TrackMode.FALLBACK,
        "layer": WaterMassLayer(1.0, 20.0),
    }
    return Dvl(**{**arguments, **more}, dialect=MessageDialect.DSROS, classic=True)


def compute_slant_ranges(slope: float, height: float, angle: float) -> AnyArray:
    """Return slant ranges (4,) of a level DVL with z down; u = (-sin a cos A, -sin a sin A, cos a)."""
    a, environment = math.radians(angle), np.radians(X_AZIMUTHS_DEG)
    axes = np.column_stack(
        [-math.sin(a) * np.cos(environment), math.sin(a) * np.sin(environment), np.full(4, -math.cos(a))]
    )
    return height / (slope * axes[:, 0] - axes[:, 2])


@pytest.mark.requirement("DVW-4", "DVW-6")
def test_whoi_beam_noise_altitude_course_and_speed_equal_the_documentation() -> None:
    """The altitude is mean(r) cos(pi / 6) at any beam angle, the course atan2(x', y') in the sensor frame."""
    reading = measure_pings(make_whoi_spec(), DriftingMotion((0.0, 0.0, 20.0), OVER), make_bed(0.2), MANY)
    arrays = reading.arrays
    assert reading.emitted is not None
    assert reading.emitted.all()
    slants = compute_slant_ranges(0.2, 20.0, 25.0)
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
    quiet = measure_pings(
        make_whoi_spec(bottom=TrackErrors()), DriftingMotion((0.0, 0.0, 20.0), OVER, (1.0, 0.0, 0.0)), make_bed()
    ).arrays
    assert math.degrees(quiet["course"][0]) == pytest.approx(90.0, abs=1e-9)
    back = measure_pings(
        make_whoi_spec(bottom=TrackErrors()), DriftingMotion((0.0, 0.0, 20.0), OVER, (-1.0, 0.0, 0.0)), make_bed()
    ).arrays
    assert math.degrees(back["course"][0]) == pytest.approx(270.0, abs=1e-9)


@pytest.mark.requirement("DVW-2", "WTR-2")
def test_beams_are_single_rays_and_the_layer_ends_at_the_bottom() -> None:
    """Beam width does not change ranges. The layer ends at the bottom and averages the sheared current."""
    wide = make_dsros_beams(math.radians(25.0), [math.radians(a) for a in X_AZIMUTHS_DEG], pos_z_down=True, width=0.1)
    spec = make_whoi_spec(beams=wide, range_noise=Noise(), water=TrackErrors(), water_mode=TrackMode.ALWAYS)
    sheared = StratifiedCurrent((0.0, 100.0), ((0.0, 0.0, 0.0), (4.0, -2.0, 0.0)), surface=50.0)
    environment = replace(make_bed(), water=Water(surface=50.0), current=sheared)
    classic = measure_pings(spec, DriftingMotion((0.0, 0.0, 15.0), OVER), environment).arrays
    nearest = replace(wide, weighting=BeamWeighting.NEAREST)
    wider = replace(spec, beams=nearest, classic=False, propagation=False)
    physical = measure_pings(wider, DriftingMotion((0.0, 0.0, 15.0), OVER), environment).arrays
    assert classic["beam_range"][0] == pytest.approx(compute_slant_ranges(0.0, 15.0, 25.0), rel=1e-12, abs=0.0)
    assert np.all(physical["beam_range"][0] < 0.99 * classic["beam_range"][0])
    middle = 0.5 * (1.0 + 15.0)  # m below the instrument, at a depth of 35 m
    flow = np.array([0.04, -0.02, 0.0]) * (35.0 + middle)
    assert classic["water_velocity"][0] == pytest.approx((np.array(V) - flow) * [1.0, -1.0, -1.0], rel=1e-10, abs=0.0)


@pytest.mark.requirement("DVW-7")
@pytest.mark.parametrize("classic", [True, False])
def test_classic_solution_needs_all_beams(classic: bool) -> None:
    """One of four beams is out of range: classic has no bottom velocity, physical uses the other three."""
    farthest = float(compute_slant_ranges(0.5, 20.0, 30.0).max())
    spec = make_whoi_spec(30.0, maximum_range=farthest, water_mode=TrackMode.NEVER, layer=None, range_noise=Noise())
    turned = from_rpy(math.pi, 0.0, 0.3)  # of two equally far beams, one is farther, the other nearer
    spec = replace(spec, classic=classic, propagation=False, bottom=TrackErrors())
    arrays = measure_pings(spec, DriftingMotion((0.0, 0.0, 20.0), turned), make_bed(0.5)).arrays
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
def test_water_track_replaces_a_missing_bottom_track() -> None:
    """The velocity is that of the link minus the current, by least squares, with the noise of the solution."""
    reading = measure_pings(make_whoi_spec(), DriftingMotion((0.0, 0.0, 200.0), OVER), make_bed(), MANY).arrays
    assert np.all(reading["velocity_mode"] == 2.0)
    true = (np.array(V) - FLOW) * [1.0, -1.0, -1.0]
    check_spread(reading["velocity"] - true, np.full(3, 0.01))
    assert np.array_equal(reading["velocity_covariance"], np.tile(1e-4 * np.eye(3), (MANY, 1, 1)))
    assert np.array_equal(reading["water_velocity"], reading["velocity"])
    for name in ("altitude", "course", "speed", "beam_range"):
        assert np.isnan(reading[name]).all()
    bottom = measure_pings(make_whoi_spec(), DriftingMotion((0.0, 0.0, 20.0), OVER), make_bed(), 5).arrays
    assert np.all(bottom["velocity_mode"] == 1.0)


@pytest.mark.requirement("WTR-2")
def test_both_tracks_have_separate_noise() -> None:
    reading = measure_pings(
        make_whoi_spec(30.0, water_mode=TrackMode.ALWAYS), DriftingMotion((0.0, 0.0, 40.0), OVER), make_bed(), MANY
    ).arrays
    assert np.all(reading["velocity_mode"] == 1.0)
    flip = np.array([1.0, -1.0, -1.0])
    off = np.column_stack([reading["velocity"] - V * flip, reading["water_velocity"] - (np.array(V) - FLOW) * flip])
    check_spread(off, np.concatenate([0.005 * np.sqrt([2.0, 2.0, 1.0 / 3.0]), np.full(3, 0.01)]))
    assert np.array_equal(reading["water_velocity_covariance"], np.tile(1e-4 * np.eye(3), (MANY, 1, 1)))
