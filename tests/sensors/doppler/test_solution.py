"""Solutions of one ping equal RDI's values, OOI's vectors, pseudo-inverses and closed forms of slopes.

Sources: tests/oracles/rdi/README.md, tests/oracles/ooi/README.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from navsense.core.kernels import INTERPRETED
from navsense.core.typing import BoolArray, FloatArray, Vectors
from navsense.sensors.doppler import make_gazebo_beams, make_janus_beams
from navsense.sensors.doppler.solution import (
    compute_altitude,
    compute_course_and_speed,
    compute_error_velocity,
    solve_velocity,
)

ORACLES = Path(__file__).resolve().parents[2] / "oracles"
FALSE_ALARM = 1e-6
THIRTY = math.radians(30.0)


def read_figures(path: str) -> list[dict[str, float]]:
    with (ORACLES / path).open(encoding="utf-8", newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def make_rdi_axes(angle: float) -> Vectors:
    """Return the directions (4, 3) of RDI's beams 1 to 4: 1 to 2 along x, 4 to 3 along y."""
    s, c = math.sin(angle), math.cos(angle)
    return np.array([(s, 0.0, c), (-s, 0.0, c), (0.0, -s, c), (0.0, s, c)])


def solve(
    axes: Vectors, beam_velocity: FloatArray, deviation: FloatArray, good: BoolArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    out, covariance = np.empty(3), np.empty((3, 3))
    valid = np.ones(len(axes), dtype=np.bool_) if good is None else good
    count = solve_velocity(axes, beam_velocity, deviation, valid, out, covariance)
    return out, covariance, count


def make_random_axes(rng: np.random.Generator, count: int) -> Vectors:
    axes = rng.normal(size=(count, 3))
    return np.asarray(axes / np.linalg.norm(axes, axis=1)[:, None])


@pytest.mark.requirement("GAP-4", "GAP-6", "GAP-9")
@pytest.mark.parametrize("row", read_figures("rdi/janus.csv"), ids=lambda row: f"{row['angle_deg']} deg")
def test_transformation_equals_rdi(row: dict[str, float]) -> None:
    axes, rng = make_rdi_axes(math.radians(row["angle_deg"])), np.random.default_rng(2)
    b = rng.normal(size=4)
    velocity, covariance, count = solve(axes, b, np.full(4, 0.01))
    expected = [row["a"] * (b[0] - b[1]), row["a"] * (b[3] - b[2]), row["b"] * b.sum()]
    assert count == 4
    assert velocity == pytest.approx(expected, abs=3e-8)
    deviations = [row["horizontal"], row["horizontal"], row["vertical"]]
    assert np.sqrt(np.diag(covariance)) / 0.01 == pytest.approx(deviations, abs=5.1e-5)
    error = compute_error_velocity(axes, b, np.ones(4, dtype=np.bool_))
    assert error == pytest.approx(row["d"] * (b[0] + b[1] - b[2] - b[3]), abs=3e-8)


@pytest.mark.requirement("GAP-9")
def test_velocity_equals_ooi_test_vectors() -> None:
    """Ten real cells of an upward-looking instrument are transformed from beams to the earth frame."""
    heading, first, second = (math.radians(a) for a in (98.41, 0.69, -2.54))
    pitch, roll = math.atan(math.tan(first) * math.cos(second)), second + math.pi
    ch, sh, cp, sp, cr, sr = (f(a) for a in (heading, pitch, roll) for f in (math.cos, math.sin))
    level = np.array([[ch, sh, 0.0], [-sh, ch, 0.0], [0.0, 0.0, 1.0]])
    turned = level @ [[1.0, 0.0, 0.0], [0.0, cp, -sp], [0.0, sp, cp]] @ [[cr, 0.0, sr], [0.0, 1.0, 0.0], [-sr, 0.0, cr]]
    rows, axes = read_figures("ooi/velocities.csv"), make_rdi_axes(math.radians(20.0))
    assert len(rows) == 10
    for row in rows:
        beam_velocity = np.array([row[f"b{k}_mm_s"] for k in (1, 2, 3, 4)]) * 1e-3
        velocity, _, _ = solve(axes, beam_velocity, np.zeros(4))
        assert turned @ velocity == pytest.approx([row["east_m_s"], row["north_m_s"], row["up_m_s"]], abs=5e-5)
        error = compute_error_velocity(axes, beam_velocity, np.ones(4, dtype=np.bool_))
        assert math.trunc(error * 1e6) == round(row["error_m_s"] * 1e6)  # published with six decimals, truncated


@pytest.mark.requirement("GAP-9", "DVW-4")
def test_covariance_of_four_beams_at_thirty_degrees() -> None:
    azimuths = [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)]
    _, covariance, _ = solve(make_janus_beams(THIRTY, azimuths).axes, np.zeros(4), np.full(4, 0.005))
    assert covariance == pytest.approx(0.005**2 * np.diag([2.0, 2.0, 1.0 / 3.0]), rel=1e-12, abs=1e-20)


@pytest.mark.requirement("GAP-9", "DVW-7")
@pytest.mark.parametrize("missing", range(4))
def test_three_beams_solve_with_zero_error_velocity(missing: int) -> None:
    """The missing beam has the value with an error velocity of 0. Deviations are RDI's for a missing beam 4."""
    axes, good = make_rdi_axes(THIRTY), np.arange(4) != missing
    b = np.array([0.3, -0.2, 0.7, 0.1])
    filled = b.copy()
    filled[missing] = {
        0: -b[1] + b[2] + b[3],
        1: -b[0] + b[2] + b[3],
        2: b[0] + b[1] - b[3],
        3: b[0] + b[1] - b[2],
    }[missing]
    velocity, covariance, count = solve(axes, b, np.ones(4), good)
    expected, _, _ = solve(axes, filled, np.ones(4))
    assert count == 3
    assert velocity == pytest.approx(expected, abs=1e-14)
    assert math.isnan(compute_error_velocity(axes, b, good))
    worse = np.array([1.4142, 2.4495, 0.8165])
    if missing < 2:
        worse = worse[[1, 0, 2]]
    assert np.sqrt(np.diag(covariance)) == pytest.approx(worse, abs=1e-4)


@pytest.mark.requirement("GAP-9", "DVW-4")
@pytest.mark.parametrize("count", [3, 4, 5, 8, 16])
@pytest.mark.parametrize("seed", range(4))
def test_solution_equals_weighted_least_squares(count: int, seed: int) -> None:
    """NumPy's and SciPy's solvers give the same for any beams, deviations and validity."""
    rng = np.random.default_rng((count, seed))
    axes, beam_velocity, deviation = (
        make_random_axes(rng, count),
        rng.normal(size=count),
        rng.uniform(0.002, 0.2, count),
    )
    good = np.ones(count, dtype=np.bool_)
    good[3:] = rng.random(count - 3) < 0.7
    beam_velocity[~good], deviation[~good] = math.nan, math.nan
    velocity, covariance, used = solve(axes, beam_velocity, deviation, good)
    root = axes[good] / deviation[good, None]
    expected = lsq_linear(root, beam_velocity[good] / deviation[good], method="bvls", tol=1e-14).x
    condition = np.linalg.cond(root) ** 2
    assert used == good.sum()
    assert velocity == pytest.approx(expected, rel=1e-14 * condition, abs=1e-14 * condition)
    inverse = np.linalg.pinv(root)
    assert covariance == pytest.approx(inverse @ inverse.T, rel=1e-14 * condition, abs=1e-18 * condition)
    assert np.array_equal(covariance, covariance.T)


@pytest.mark.requirement("GAP-9")
def test_beam_without_deviation_makes_all_weights_equal() -> None:
    rng = np.random.default_rng(7)
    axes, beam_velocity, deviation = make_random_axes(rng, 5), rng.normal(size=5), np.array([0.1, 0.0, 0.2, 0.05, 0.3])
    velocity, covariance, _ = solve(axes, beam_velocity, deviation)
    inverse = np.linalg.pinv(axes)
    assert velocity == pytest.approx(inverse @ beam_velocity, rel=1e-12, abs=0.0)
    assert covariance == pytest.approx(inverse @ np.diag(deviation**2) @ inverse.T, rel=1e-12, abs=0.0)
    _, none, _ = solve(axes, beam_velocity, np.zeros(5))
    assert np.array_equal(none, np.zeros((3, 3)))


@pytest.mark.requirement("GAP-9")
def test_covariance_matches_many_pings() -> None:
    """Squared errors of 4000 pings by the covariance are chi-squared with 12000 degrees of freedom, at 1e-6."""
    rng, pings = np.random.default_rng(11), 4000
    axes = make_gazebo_beams([0.0, 1.5, 3.0, 4.0, 5.5], [0.4, 0.5, 0.3, 0.6, 0.45], [0.0] * 5).axes
    deviation, total = np.array([0.01, 0.02, 0.005, 0.01, 0.04]), 0.0
    true = np.array([1.0, -0.3, 0.05])
    noise = rng.normal(size=(pings, 5)) * deviation
    for row in noise:
        velocity, covariance, _ = solve(axes, axes @ true + row, deviation)
        total += float((velocity - true) @ np.linalg.solve(covariance, velocity - true))
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], 3 * pings)
    assert low < total < high


@pytest.mark.requirement("GAP-9")
@pytest.mark.parametrize("count", [4, 5, 7])
def test_error_velocity_has_the_variance_of_a_horizontal_component(count: int) -> None:
    """For a regular Janus, the mean square over many pings is the variance of x and y; false alarms 1e-6."""
    rng, pings = np.random.default_rng((5, count)), 4000
    axes = make_janus_beams(0.4, [2.0 * math.pi * k / count for k in range(count)]).axes
    good = np.ones(count, dtype=np.bool_)
    _, covariance, _ = solve(axes, np.zeros(count), np.full(count, 0.01))
    assert covariance[0, 0] == pytest.approx(covariance[1, 1], rel=1e-12, abs=0.0)
    errors = [compute_error_velocity(axes, row, good) for row in rng.normal(size=(pings, count)) * 0.01]
    freedom = pings * (count - 3)
    low, high = chi2.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], freedom)
    assert low < np.sum(np.square(errors)) / covariance[0, 0] * (count - 3) < high


@pytest.mark.requirement("GAP-9")
def test_sign_of_the_error_velocity_identifies_the_beam_pair() -> None:
    axes, good = make_rdi_axes(THIRTY), np.ones(4, dtype=np.bool_)
    true = axes @ np.array([2.0, -1.0, 0.3])
    assert abs(compute_error_velocity(axes, true, good)) < 1e-15
    for k, sign in enumerate((1.0, 1.0, -1.0, -1.0)):
        struck = true + 0.1 * (np.arange(4) == k)
        assert compute_error_velocity(axes, struck, good) == pytest.approx(
            sign * 0.1 / math.sqrt(2.0), rel=1e-12, abs=0.0
        )
    five = np.concatenate([axes, [[0.0, 0.0, 1.0]]])
    assert compute_error_velocity(five, np.append(true, 0.3), np.arange(5) != 4) == compute_error_velocity(
        axes, true, good
    )
    closed = np.array(
        [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
    )
    spread = compute_error_velocity(closed, np.array([0.1, 0.1, 0.0, 0.0, 0.0, 0.0]), np.ones(6, dtype=np.bool_))
    assert spread == pytest.approx(math.sqrt(0.02 / 3.0 / 2.0), rel=1e-12, abs=0.0)  # no axis: the mean of all three


@pytest.mark.requirement("GAP-9")
def test_unsolvable_ping_is_nan() -> None:
    axes = make_janus_beams(THIRTY, [0.0, math.pi, 1.0, 1.0 + math.pi]).axes
    two, plane = np.array([True, False, True, False]), np.array([True, True, False, False])
    flat = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0], [-0.8, 0.6, 0.0]])
    for directions, good in (
        (axes, two),
        (axes, plane),
        (axes, np.zeros(4, dtype=np.bool_)),
        (flat, flat[:, 2] == 0.0),
    ):
        velocity, covariance, count = solve(directions, np.ones(4), np.full(4, 0.1), good)
        assert count == 0
        assert np.isnan(velocity).all()
        assert np.isnan(covariance).all()
        assert math.isnan(compute_error_velocity(directions, np.ones(4), good))


def compute_plane_ranges(axes: Vectors, places: Vectors, turn: Rotation, slope: Vectors, above: float) -> FloatArray:
    """Return the ranges (k,) m to a plane z = slope . (x, y) - above, with the sensor origin at 0."""
    normal = np.array([-slope[0], -slope[1], 1.0])
    starts, ways = turn.apply(places), turn.apply(axes)
    return np.asarray(-(above + starts @ normal) / (ways @ normal))


def solve_altitude(
    axes: Vectors, places: Vectors, ranges: FloatArray, turn: Rotation, good: BoolArray | None = None
) -> float:
    x, y, z, w = turn.as_quat()
    valid = np.ones(len(axes), dtype=np.bool_) if good is None else good
    return compute_altitude(axes, places, ranges, valid, w, x, y, z)


@pytest.mark.requirement("GAP-5", "GAP-6")
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (0.2, -0.1, 2.0), (-0.15, 0.2, -1.0)])
@pytest.mark.parametrize("beams", ["four", "five"])
def test_altitude_over_a_slope_is_vertical(slope: float, attitude: tuple[float, float, float], beams: str) -> None:
    """The altitude is the true vertical distance for at least three beams, any attitude and transducer positions."""
    four = make_janus_beams(math.radians(22.5), [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)]).axes
    five = make_gazebo_beams([0.3, 1.5, 3.0, 4.0, 5.5], [0.4, 0.5, 0.3, 0.6, 0.0], [0.0] * 5).axes
    axes = four if beams == "four" else five
    places = np.random.default_rng(3).uniform(-0.2, 0.2, axes.shape)
    turn = Rotation.from_euler("xyz", attitude)
    gradient = slope * np.array([math.cos(0.7), math.sin(0.7)])
    ranges = compute_plane_ranges(axes, places, turn, gradient, 12.5)
    if np.all(ranges > 0.0):
        assert solve_altitude(axes, places, ranges, turn) == pytest.approx(12.5, rel=1e-13, abs=0.0)
    for missing in range(len(axes)):
        some = np.where(np.arange(len(axes)) == missing, math.nan, ranges)
        assert solve_altitude(axes, places, some, turn, ~np.isnan(some)) == pytest.approx(12.5, rel=1e-13, abs=0.0)


@pytest.mark.requirement("GAP-5")
def test_altitude_of_a_tilted_instrument_is_exact_unlike_the_mean_range() -> None:
    axes, none = make_janus_beams(THIRTY, [0.0, math.pi / 2, math.pi, -math.pi / 2]).axes, np.zeros((4, 3))
    turn = Rotation.from_euler("y", 0.3)
    ranges = compute_plane_ranges(axes, none, turn, np.zeros(2), 20.0)
    assert solve_altitude(axes, none, ranges, turn) == pytest.approx(20.0, rel=1e-14, abs=0.0)
    assert ranges.mean() * math.cos(math.pi / 6.0) > 20.9


@pytest.mark.requirement("GAP-5")
def test_altitude_over_rough_ground_is_that_of_the_fitted_plane() -> None:
    rng = np.random.default_rng(4)
    axes = make_janus_beams(0.5, [2.0 * math.pi * k / 8 for k in range(8)]).axes
    turn, places = Rotation.from_euler("xyz", (0.1, 0.2, 0.3)), rng.uniform(-0.1, 0.1, (8, 3))
    ranges = rng.uniform(8.0, 12.0, 8)
    points = turn.apply(places + ranges[:, None] * axes)
    plane = np.linalg.lstsq(np.column_stack([points[:, :2], np.ones(8)]), points[:, 2], rcond=None)[0]
    assert solve_altitude(axes, places, ranges, turn) == pytest.approx(-plane[2], rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-5")
def test_altitude_is_negative_below_a_ceiling_and_nan_at_a_wall() -> None:
    axes, none = make_janus_beams(THIRTY, [0.0, math.pi / 2, math.pi, -math.pi / 2]).axes, np.zeros((4, 3))
    ahead = Rotation.from_euler("y", -math.pi / 2)  # the beams point along x
    upward = Rotation.from_euler("y", math.pi)
    ranges = np.full(4, 10.0)
    assert solve_altitude(axes, none, ranges, upward) == pytest.approx(-10.0 * math.cos(THIRTY), rel=1e-14, abs=0.0)
    assert math.isnan(solve_altitude(axes, none, ranges, ahead))
    assert math.isnan(solve_altitude(axes, none, ranges, upward, np.array([True, True, False, False])))


COMPASS = [
    (1.0, 0.0, 90.0),
    (0.0, 1.0, 0.0),
    (-1.0, 0.0, 270.0),
    (0.0, -1.0, 180.0),
    (-1.0, 1.0, 315.0),
    (1.0, -1.0, 135.0),
]


@pytest.mark.requirement("GAP-7")
@pytest.mark.parametrize(("east", "north", "course"), COMPASS)
@pytest.mark.parametrize("heading", [0.0, 0.7, -2.5, math.pi / 2])
def test_course_is_a_compass_angle(east: float, north: float, course: float, heading: float) -> None:
    """This holds at any sensor attitude and world heading. A climb has no effect."""
    turn = Rotation.from_euler("xyz", (0.4, -0.3, 1.9))
    world = Rotation.from_euler("z", -heading).apply((3.0 * east, 3.0 * north, 0.8))
    x, y, z, w = (Rotation.from_euler("z", heading) * turn).as_quat()
    vx, vy, vz = turn.inv().apply(world)
    found, speed = compute_course_and_speed(vx, vy, vz, w, x, y, z)
    off = (math.degrees(found) - course + 180.0) % 360.0 - 180.0
    assert off == pytest.approx(0.0, abs=1e-12)
    assert speed == pytest.approx(3.0 * math.hypot(east, north), rel=1e-14, abs=0.0)
    assert 0.0 <= found < 2.0 * math.pi


FORWARD = {
    "FLU": np.eye(3),
    "FRD": np.diag([1.0, -1.0, -1.0]),
    "z forward": np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]),
}
AXES = {"ENU": 0.0, "north, west, up": math.pi / 2}


@pytest.mark.requirement("GAP-7")
@pytest.mark.parametrize("frame", FORWARD)
@pytest.mark.parametrize("world", AXES)
@pytest.mark.parametrize("bearing", [0.0, 30.0, 90.0, 200.0, 359.0])
def test_forward_is_the_heading_in_every_frame(frame: str, world: str, bearing: float) -> None:
    """The vessel heads and moves along a compass bearing, with any sensor frame and world axes."""
    yaw = math.radians(90.0 - bearing) - AXES[world]  # of x from the world x axis, counter-clockwise
    turn = Rotation.from_euler("z", yaw) * Rotation.from_matrix(FORWARD[frame])
    vx, vy, vz = Rotation.from_matrix(FORWARD[frame]).inv().apply((1.5, 0.0, 0.0))
    x, y, z, w = (Rotation.from_euler("z", AXES[world]) * turn).as_quat()
    course, speed = compute_course_and_speed(vx, vy, vz, w, x, y, z)
    assert (math.degrees(course) - bearing + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-12)
    assert speed == pytest.approx(1.5, rel=1e-14, abs=0.0)


@pytest.mark.requirement("GAP-7")
def test_course_of_zero_velocity_is_zero() -> None:
    assert compute_course_and_speed(0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0) == (0.0, 0.0)
    assert compute_course_and_speed(-0.0, -0.0, 0.0, 1.0, 0.0, 0.0, 0.0) == (0.0, 0.0)
    west, _ = compute_course_and_speed(-5e-324, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # rounds to 2 pi
    assert west == 0.0
    assert all(math.isnan(part) for part in compute_course_and_speed(math.nan, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0))


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    rng = np.random.default_rng(9)
    for count in (3, 4, 5, 9):
        axes, beam_velocity, deviation = (
            make_random_axes(rng, count),
            rng.normal(size=count),
            rng.uniform(0.01, 0.1, count),
        )
        good, places, ranges = np.ones(count, dtype=np.bool_), rng.normal(size=(count, 3)), rng.uniform(1.0, 9.0, count)
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        out, covariance = np.empty(3), np.empty((3, 3))
        assert interpret(solve_velocity)(axes, beam_velocity, deviation, good, out, covariance) == count
        found = solve(axes, beam_velocity, deviation)
        assert np.array_equal(found[0], out)
        assert np.array_equal(found[1], covariance)
        pairs: list[tuple[Any, Any]] = [
            (compute_error_velocity, (axes, beam_velocity, good)),
            (compute_altitude, (axes, places, ranges, good, *turn)),
        ]
        pairs += [(compute_course_and_speed, (*beam_velocity[:3], *turn))]
        for kernel, arguments in pairs:
            assert np.array_equal(kernel(*arguments), interpret(kernel)(*arguments), equal_nan=True)
