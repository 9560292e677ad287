"""An ensemble of pings: when each goes out, what noise does to each, and what is told of them together.

An ensemble has pings for the bottom and pings for the profile, in turn, each listened for as long as sound needs to go
`maximum_range` or to the end of the profile and back, or as long as `interval` says where that is longer. It is told at
the first tick of a whole number of them that it fits into, after its last ping; slot s of n is one for the bottom where

    s bottom_pings mod n < bottom_pings,   n = bottom_pings + pings

A ping for the profile is about the instant when the sound is in its middle cell, one for the bottom about when it is
half way to the farthest. Of each ping p, with its own attitude, cell m and beam k:

    b = (1 + scale) (u.v + (c0 / c - 1) d) + u.offset + sigma factor w  d as in `_doppler.ping`, factor in `strength`
    S = level - 20 log10 r - 2 absorption r                                  dB above the noise, r in m along the beam
    echo = 10 log10(1 + 10^(S / 10)),   rho = correlation s / (1 + s)

Sound spreads spherically both ways, 40 log10 r, in a volume that grows with r^2. A cell that is not correlated enough
is lost, by the same logistic law as the bottom's lock. The others, mapped to common heights where that is wanted,

    x_mk = ((first + m size) cos_k / up_k - first) / size,   up_k = vertical part of u_k by the ping's own tilt

(cell x_mk of the beam is as high as cell m of a level instrument, by the nearest cell or on a line between two), are
solved for a velocity with equal weights, rejected where their error velocity is too large, turned by the ping's own
attitude, and averaged. The share of the pings that were solved is what is good; how the pings came out, `SOME_BEAMS` to
`WHOLE`, is counted as RD Instruments count it.

Sources: K. L. Deines, Backscatter Estimation Using Broadband Acoustic Doppler Current Profilers, Proc. IEEE Sixth
Working Conf. on Current Measurement (1999) 249, for the echo; Gordon (`profile`).


What a current profiler tells: its arrays by name, their axes, how far off they are, and when its pings are.

Pings of ensembles put together: means over those that are good, by the kernels of `_parse_janus.ensemble`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from navsense.kernels import kernel
from navsense.noise.scheduled_faults import OFFSET_SUFFIX
from navsense.rotation import multiply, rotate
from navsense.sensors.doppler.beam_errors import compute_lock_probability, compute_noise_factor
from navsense.sensors.doppler.beams import Beams
from navsense.sensors.doppler.cells import DepthCells
from navsense.sensors.doppler.solution import compute_error_velocity, solve_velocity
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternions, Vectors

BEAM, INSTRUMENT, SHIP, EARTH = range(4)
"""Axes in which velocities are told; the numbers are those of `ds_sensor_msgs/Adcp`."""

UNMAPPED, NEAREST, LINEAR = range(3)
"""How cells are mapped to common heights."""

COORDINATES, BIN_MAPPING, MIN_BEAMS, ERROR_LIMIT, MIN_GOOD_SHARE, MIN_RANGE, MAX_RANGE, RULE_COUNT = range(8)
"""Places in `rules` (7,): two choices, a number of beams, a velocity in m/s, a share of the pings, two ranges in m."""

SOME_BEAMS, REJECTED, UNSOLVED, ALL_BEAMS, OUTCOME_COUNT = range(5)
"""How pings come out: solved by fewer beams than there are, rejected by the error velocity, too few beams, by all."""

_CELL_TOLERANCE: Final = 1e-9
"""Of a cell: so near to one its neighbour says nothing."""

_MIN_RISE: Final = 1e-6
"""Vertical part of a beam below which it comes to no height."""

_NEPERS_PER_DECIBEL: Final = math.log(10.0) / 10.0


@kernel
def compute_rotations(
    rotation_ws: Quaternions, heading: FloatArray, reference: FloatArray, coordinates: int, attitude: Quaternions,
    frames: Quaternions,
) -> None:  # fmt: skip
    """Write rotations (q, 4) of the sensor's axes to east, north, up and to those that velocities are told in.

    `heading` (4,) takes the world's axes to east, north, up, `reference` (4,) the sensor's to the instrument's.
    """
    for q in range(rotation_ws.shape[0]):
        w, x, y, z = multiply(
            heading[0], heading[1], heading[2], heading[3],
            rotation_ws[q, 0], rotation_ws[q, 1], rotation_ws[q, 2], rotation_ws[q, 3],
        )  # fmt: skip
        attitude[q, 0], attitude[q, 1], attitude[q, 2], attitude[q, 3] = w, x, y, z
        a, b, c, d = w, x, y, z
        if coordinates == SHIP:
            o, i, j, h = multiply(w, x, y, z, reference[0], -reference[1], -reference[2], -reference[3])
            half = 0.5 * math.atan2(2.0 * (o * h + i * j), 1.0 - 2.0 * (j * j + h * h))
            a, b, c, d = multiply(math.cos(half), 0.0, 0.0, -math.sin(half), w, x, y, z)
        elif coordinates != EARTH:
            a, b, c, d = reference[0], reference[1], reference[2], reference[3]
        frames[q, 0], frames[q, 1], frames[q, 2], frames[q, 3] = a, b, c, d


@kernel
def compute_echo_effects(
    level: float,
    absorption: float,
    correlation: float,
    threshold: float,
    slope: float,
    slant: FloatArray,
    stretch: FloatArray,
    factor: FloatArray,
    lock: FloatArray,
    echo: FloatArray,
    rho: FloatArray,
) -> None:
    """Write of cells (n, m, k) the deviation's factor, how likely they are good, the echo (dB) and its correlation.

    `slant` (m, k) m is where they are taken to be, `stretch` (n,) c / c0.
    """
    for n in range(factor.shape[0]):
        for m in range(factor.shape[1]):
            for k in range(factor.shape[2]):
                r = slant[m, k] * stretch[n]
                decibels = level - 20.0 * math.log10(r) - 2.0 * absorption * r
                factor[n, m, k] = compute_noise_factor(decibels, correlation)
                lock[n, m, k] = compute_lock_probability(decibels, threshold, slope)
                echo[n, m, k] = max(decibels, 0.0) + 10.0 * math.log10(
                    1.0 + math.exp(-_NEPERS_PER_DECIBEL * abs(decibels))
                )
                rho[n, m, k] = correlation / (1.0 + math.exp(-_NEPERS_PER_DECIBEL * decibels))


@kernel
def add_cell_errors(
    along: FloatArray,
    axial: FloatArray,
    ratio: FloatArray,
    phased: bool,
    axes: Vectors,
    scale: float,
    offset: FloatArray,
    sigma: float,
    factor: FloatArray,
    lock: FloatArray,
    noise_row: int,
    lock_row: int,
    columns: IntArray,
    draws: FloatArray,
    out: FloatArray,
) -> None:
    """Write velocities (n, p, m, k) m/s as pings hear them, NaN where a cell is lost.

    `ratio` (n,) is c0 / c. `white` and `chance` are the first rows of the draws of noise and of losses, -1 for none, in
    which ensemble n has the column `index` (n,). `factor` and `lock` are (n, m, k).
    """
    for n in range(along.shape[0]):
        for p in range(along.shape[1]):
            for m in range(along.shape[2]):
                for k in range(along.shape[3]):
                    row = (p * along.shape[2] + m) * along.shape[3] + k
                    measured = along[n, p, m, k]
                    measured += (ratio[n] - 1.0) * (axial[n, p, m, k] if phased else measured)
                    u = axes[k]
                    measured = (1.0 + scale) * measured + (u[0] * offset[0] + u[1] * offset[1] + u[2] * offset[2])
                    if noise_row >= 0:
                        measured += sigma * factor[n, m, k] * draws[noise_row + row, columns[n]]
                    if lock_row >= 0 and not draws[lock_row + row, columns[n]] < lock[n, m, k]:
                        measured = math.nan
                    out[n, p, m, k] = measured


@kernel
def _interpolate_cell(profile: FloatArray, k: int, x: float, mapping: int) -> float:
    """Return the velocity of beam k at cell `x` of a profile (m, k); NaN where that is beyond its ends or lost."""
    low = math.floor(x + 0.5)
    if abs(x - low) <= _CELL_TOLERANCE or mapping == NEAREST:
        return profile[low, k] if 0 <= low < profile.shape[0] else math.nan
    low = math.floor(x)
    if low < 0 or low + 1 >= profile.shape[0]:
        return math.nan
    between: float = profile[low, k] + (x - low) * (profile[low + 1, k] - profile[low, k])
    return between


@kernel
def _compute_slant_factors(
    attitude: FloatArray, axes: Vectors, axis: FloatArray, cosine: FloatArray, mapped: bool, out: FloatArray
) -> None:
    """Write how many times farther along its slant each beam (k,) is as high as a level instrument's; NaN for never."""
    w, x, y, z = attitude[0], attitude[1], attitude[2], attitude[3]
    up = math.copysign(1.0, rotate(w, x, y, z, axis[0], axis[1], axis[2])[2])
    for k in range(axes.shape[0]):
        rise = up * rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])[2]
        out[k] = 1.0
        if mapped:
            out[k] = cosine[k] / rise if rise > _MIN_RISE else math.nan


@kernel
def _solve_beams(
    rules: FloatArray, axes: Vectors, velocities: FloatArray, good: BoolArray, zero: FloatArray, solution: FloatArray,
    square: FloatArray,
) -> tuple[int, float]:  # fmt: skip
    """Solve for a velocity of good beams (k,); tell how that comes out, and the error velocity (m/s)."""
    count = 0
    for k in range(velocities.shape[0]):
        good[k] = velocities[k] == velocities[k]
        count += 1 if good[k] else 0
    if count < rules[MIN_BEAMS] or solve_velocity(axes, velocities, zero, good, solution, square) == 0:
        return UNSOLVED, math.nan
    error = compute_error_velocity(axes, velocities, good)
    if abs(error) > rules[ERROR_LIMIT]:
        return REJECTED, error
    return ALL_BEAMS if count == velocities.shape[0] else SOME_BEAMS, error


@kernel
def compute_profile(
    rules: FloatArray,
    distance: FloatArray,
    size: float,
    received: FloatArray,
    attitude: FloatArray,
    frames: FloatArray,
    axes: Vectors,
    axis: FloatArray,
    cosine: FloatArray,
    velocity: FloatArray,
    error: FloatArray,
    percent_good: FloatArray,
    solutions: FloatArray,
    beam: FloatArray,
    beam_percent_good: FloatArray,
    slant_factors: FloatArray,
    scratch: FloatArray,
    good: BoolArray,
    square: FloatArray,
) -> None:
    """Write what ensembles of pings (n, p, m, k) say: of the water its velocity, along a beam the sensor's through it.

    Velocity (n, m, 3), error velocity (n, m), share of the pings that were solved (n, m), and of those that came out in
    each way (n, m, 4); of the beams velocity and share (n, m, k). For one ensemble there is room: `progress` (p, k),
    `room` (3, k), `good` (k,), `square` (3, 3).
    """
    pings, beams = received.shape[1], axes.shape[0]
    seen, zero, solution = scratch[0], scratch[1], scratch[2, :3]
    zero[:] = 0.0
    mapping, first = int(rules[BIN_MAPPING]), distance[0]
    mapped = mapping != UNMAPPED and rules[COORDINATES] != BEAM
    for n in range(received.shape[0]):
        velocity[n, :, :], error[n, :], percent_good[n, :], beam[n, :, :], beam_percent_good[n, :, :] = (
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
        )
        solutions[n, :, :] = 0.0
        for p in range(pings):
            _compute_slant_factors(attitude[n, p], axes, axis, cosine, mapped, slant_factors[p])
        for m in range(distance.shape[0]):
            errors = 0
            for p in range(pings):
                for k in range(beams):
                    own = received[n, p, m, k]
                    if own == own:
                        beam[n, m, k] += own
                        beam_percent_good[n, m, k] += 1.0
                    seen[k] = own
                    if mapped:
                        x = (distance[m] * slant_factors[p, k] - first) / size
                        seen[k] = _interpolate_cell(received[n, p], k, x, mapping) if x == x else math.nan
                outcome, error_velocity = _solve_beams(rules, axes, seen, good, zero, solution, square)
                solutions[n, m, outcome] += 1.0
                if outcome in (SOME_BEAMS, ALL_BEAMS):
                    q = frames[n, p]
                    a, b, c = rotate(q[0], q[1], q[2], q[3], -solution[0], -solution[1], -solution[2])
                    velocity[n, m, 0], velocity[n, m, 1] = velocity[n, m, 0] + a, velocity[n, m, 1] + b
                    velocity[n, m, 2] += c
                    percent_good[n, m] += 1.0
                    if error_velocity == error_velocity:
                        error[n, m] += error_velocity
                        errors += 1
            error[n, m] = error[n, m] / errors if errors > 0 else math.nan
            for i in range(OUTCOME_COUNT):
                solutions[n, m, i] /= pings
            _divide_sums(
                rules, velocity[n, m], error[n], percent_good[n], beam[n, m], beam_percent_good[n, m], m, pings
            )


@kernel
def _divide_sums(
    rules: FloatArray,
    velocity: FloatArray,
    error: FloatArray,
    percent_good: FloatArray,
    beam: FloatArray,
    beam_percent_good: FloatArray,
    m: int,
    pings: int,
) -> None:
    """Make means of the sums of cell m: NaN where too few pings were good."""
    for k in range(beam.shape[0]):
        part = beam_percent_good[k] / pings
        beam[k] = (
            beam[k] / beam_percent_good[k] if beam_percent_good[k] > 0.0 and part >= rules[MIN_GOOD_SHARE] else math.nan
        )
        beam_percent_good[k] = part
    part = percent_good[m] / pings
    known = percent_good[m] > 0.0 and part >= rules[MIN_GOOD_SHARE]
    for i in range(3):
        velocity[i] = velocity[i] / percent_good[m] if known and rules[COORDINATES] != BEAM else math.nan
    if not known:
        error[m] = math.nan
    percent_good[m] = part


@kernel
def add_bottom_errors(
    distance: FloatArray,
    along: FloatArray,
    ratio: FloatArray,
    phased: bool,
    axes: Vectors,
    axis: FloatArray,
    sensor_velocity: FloatArray,
    scale: float,
    offset: FloatArray,
    sigmas: tuple[float, float],
    rows: tuple[int, int],
    columns: IntArray,
    draws: FloatArray,
    out: FloatArray,
    out_range: FloatArray,
) -> None:
    """Write velocities and ranges (n, p, k) that pings hear of the bottom, the sensor's own velocity being (n, p, 3).

    `sigmas` are deviations of velocity (m/s) and range (m), `rows` the first rows of their draws, -1 for none.
    """
    for n in range(along.shape[0]):
        for p in range(along.shape[1]):
            v = sensor_velocity[n, p]
            ahead = axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]
            for k in range(along.shape[2]):
                u, row = axes[k], p * along.shape[2] + k
                measured = along[n, p, k]
                scaled = (u[0] * axis[0] + u[1] * axis[1] + u[2] * axis[2]) * ahead if phased else measured
                measured = measured + (ratio[n] - 1.0) * scaled
                measured = (1.0 + scale) * measured + (u[0] * offset[0] + u[1] * offset[1] + u[2] * offset[2])
                far = distance[n, p, k] * ratio[n]
                if rows[0] >= 0:
                    measured += sigmas[0] * draws[rows[0] + row, columns[n]]
                if rows[1] >= 0:
                    far += sigmas[1] * draws[rows[1] + row, columns[n]]
                out[n, p, k], out_range[n, p, k] = measured, far


@kernel
def compute_bottom(
    rules: FloatArray,
    true_range: FloatArray,
    beam_range: FloatArray,
    received: FloatArray,
    frames: FloatArray,
    axes: Vectors,
    velocity: Vectors,
    solutions: FloatArray,
    beam: FloatArray,
    distance: FloatArray,
    beam_percent_good: FloatArray,
    scratch: FloatArray,
    good: BoolArray,
    square: FloatArray,
) -> None:
    """Write what pings (n, p, k) say of the bottom: the instrument's velocity over it (n, 3), that along each beam.

    Ranges and shares of good pings are (n, k), shares that came out in each way (n, 4), 0 without pings. `true` and
    `shown` are ranges (m) before and after the errors; room as in `average`.
    """
    pings, beams = received.shape[1], axes.shape[0]
    seen, zero, solution = scratch[0], scratch[1], scratch[2, :3]
    zero[:] = 0.0
    least, most = rules[MIN_RANGE], rules[MAX_RANGE]
    for n in range(received.shape[0]):
        count = 0
        velocity[n, :], beam[n, :], distance[n, :], beam_percent_good[n, :] = 0.0, 0.0, 0.0, 0.0
        solutions[n, :] = 0.0
        for p in range(pings):
            for k in range(beams):
                found = least <= true_range[n, p, k] <= most and least <= beam_range[n, p, k] <= most
                seen[k] = received[n, p, k] if found else math.nan
                if found:
                    beam[n, k] += received[n, p, k]
                    distance[n, k] += beam_range[n, p, k]
                    beam_percent_good[n, k] += 1.0
            outcome = _solve_beams(rules, axes, seen, good, zero, solution, square)[0]
            solutions[n, outcome] += 1.0
            if outcome in (SOME_BEAMS, ALL_BEAMS):
                q = frames[n, p]
                a, b, c = rotate(q[0], q[1], q[2], q[3], solution[0], solution[1], solution[2])
                velocity[n, 0], velocity[n, 1], velocity[n, 2] = (
                    velocity[n, 0] + a,
                    velocity[n, 1] + b,
                    velocity[n, 2] + c,
                )
                count += 1
        for k in range(beams):
            many = beam_percent_good[n, k] if beam_percent_good[n, k] > 0.0 else math.nan
            beam[n, k], distance[n, k] = beam[n, k] / many, distance[n, k] / many
            beam_percent_good[n, k] = beam_percent_good[n, k] / pings if pings > 0 else 0.0
        for i in range(OUTCOME_COUNT):
            solutions[n, i] = solutions[n, i] / pings if pings > 0 else 0.0
        for i in range(3):
            velocity[n, i] = velocity[n, i] / count if count > 0 and rules[COORDINATES] != BEAM else math.nan


@kernel
def add_motion(velocity: FloatArray, sensor_velocity: Vectors) -> None:
    """Take the instrument's own motion (n, 3) m/s out of velocities (n, m, 3) of the water against it."""
    for n in range(velocity.shape[0]):
        for m in range(velocity.shape[1]):
            for i in range(3):
                velocity[n, m, i] += sensor_velocity[n, i]


@kernel
def rotate_to_sensor(velocity_w: Vectors, rotation_ws: Quaternions, out: Vectors) -> None:
    """Write velocities (q, 3) m/s of the world in the sensor's frame."""
    for q in range(velocity_w.shape[0]):
        w, x, y, z = rotation_ws[q, 0], -rotation_ws[q, 1], -rotation_ws[q, 2], -rotation_ws[q, 3]
        out[q, 0], out[q, 1], out[q, 2] = rotate(w, x, y, z, velocity_w[q, 0], velocity_w[q, 1], velocity_w[q, 2])


OUTPUTS = (
    ("velocity", "m3", "m/s"),
    ("beam_velocity", "mk", "m/s"),
    ("error_velocity", "m", "m/s"),
    ("percent_good", "m", "1"),
    ("solutions", "m4", "1"),
    ("beam_percent_good", "mk", "1"),
    ("echo", "mk", "dB"),
    ("correlation", "mk", "1"),
    ("bottom_range", "k", "m"),
    ("bottom_velocity", "3", "m/s"),
    ("bottom_beam_velocity", "k", "m/s"),
    ("bottom_percent_good", "k", "1"),
    ("bottom_solutions", "4", "1"),
    ("orientation", "4", "1"),
    ("cell_distance", "m", "m"),
    ("beam_direction", "k3", "1"),
    ("time_of_validity", "", "s"),
    ("sound_speed", "", "m/s"),
)
"""Name, axes (m cells, k beams) and unit of each array of a reading."""

RELATIVE_VELOCITY = ("relative_velocity", "m3", "m/s")
"""The same of one array more, where the vehicle's motion is taken out of `velocity`: as it was before that."""

IDEAL_OUTPUTS = (
    "velocity",
    "beam_velocity",
    "error_velocity",
    "bottom_range",
    "bottom_velocity",
    "bottom_beam_velocity",
)
"""Outputs that a perfect instrument has too, beside orientation, time and speed of sound."""

CELL_BEAM_VELOCITY, CELL_AXIAL_VELOCITY, ATTITUDE, OUTPUT_ROTATION = "cell_velocity", "cell_axial", "attitude", "frames"
ECHO_RANGE, BOTTOM_BEAM_VELOCITY, SENSOR_VELOCITY, BOTTOM_OUTPUT_ROTATION = (
    "echo_range",
    "echo_velocity",
    "own_velocity",
    "bottom_frames",
)

ERROR_INPUTS = (
    CELL_BEAM_VELOCITY,
    CELL_AXIAL_VELOCITY,
    ATTITUDE,
    OUTPUT_ROTATION,
    ECHO_RANGE,
    BOTTOM_BEAM_VELOCITY,
    SENSOR_VELOCITY,
    BOTTOM_OUTPUT_ROTATION,
)
"""What the errors of a reading depend on, ensemble by ensemble."""


class CoordinateSystem(StrEnum):
    """Axes in which velocities are told."""

    BEAM = "beam"
    INSTRUMENT = "instrument"
    SHIP = "ship"
    EARTH = "earth"


class BinMapping(StrEnum):
    """How cells of tilted beams come to common heights: not at all, by the nearest cell, on a line between two."""

    NONE = "none"
    NEAREST = "nearest"
    LINEAR = "linear"


def parse_shape(axes: str, cells: int, beams: int) -> int | tuple[int, ...]:
    """Return the axes of a row of m cells and k beams; 0 for a scalar."""
    sizes = tuple({"m": cells, "k": beams}.get(letter) or int(letter) for letter in axes)
    if "m" in axes or len(sizes) > 1:
        return sizes
    return sizes[0] if sizes else 0


class PingSchedule(NamedTuple):
    """How long (s) an ensemble takes, and when pings for the profile and the bottom are about after its beginning (s).

    `mean` (s) is the profile's mean instant.
    """

    duration: float
    profile_times: FloatArray
    bottom_times: FloatArray
    mean_profile_time: float


def schedule_pings(
    pings: int, bottom_pings: int, durations: tuple[float, float], delays: tuple[float, float]
) -> PingSchedule:
    """Return when pings are that stand in turn, as `_parse_janus.ensemble` has it.

    `slots` are how long (s) one for the profile and one for the bottom takes, `about` when in it (s) it is.
    """
    found: tuple[list[float], list[float]] = ([], [])
    total, passed = pings + bottom_pings, 0.0
    for s in range(total):
        kind = 1 if s * bottom_pings % total < bottom_pings else 0
        found[kind].append(passed + delays[kind])
        passed += durations[kind]
    profile, bottom = found
    return PingSchedule(passed, np.array(profile), np.array(bottom), math.fsum(profile) / len(profile))


class ProfilerGeometry(NamedTuple):
    """How a profiler's beams lie, with the cosine (k,) of each one's angle to their mean, and its cells."""

    beams: Beams
    slant_cosines: FloatArray
    cells: DepthCells

    @property
    def scratch(self) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return room for one solution: three numbers a beam (3, k), which are good (k,), a matrix (3, 3)."""
        k = self.slant_cosines.size
        return np.empty((3, k)), np.empty(k, dtype=np.bool_), np.empty((3, 3))


def average_profile(
    rules: FloatArray, geometry: ProfilerGeometry, inputs: Mapping[str, FloatArray], received: FloatArray
) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the water, p pings of which hear velocities (n, p, m, k) m/s."""
    n, p, m, k = received.shape
    velocity, error, share = np.empty((n, m, 3)), np.empty((n, m)), np.empty((n, m))
    ways, beam, beam_share = np.empty((n, m, OUTCOME_COUNT)), np.empty((n, m, k)), np.empty((n, m, k))
    turned = (
        inputs[ATTITUDE],
        inputs[OUTPUT_ROTATION],
        geometry.beams.axes,
        geometry.beams.axis,
        geometry.slant_cosines,
    )
    said = (velocity, error, share, ways, beam, beam_share, np.empty((p, k)))
    compute_profile(
        rules, geometry.cells.distances, float(geometry.cells.size), received, *turned, *said, *geometry.scratch
    )
    return {
        "velocity": velocity,
        "error_velocity": error,
        "percent_good": share,
        "solutions": ways,
        "beam_velocity": beam,
        "beam_percent_good": beam_share,
    }


def average_bottom(
    rules: FloatArray,
    geometry: ProfilerGeometry,
    inputs: Mapping[str, FloatArray],
    ping_ranges: FloatArray,
    received: FloatArray,
) -> dict[str, AnyArray]:
    """Return by name what n ensembles tell of the bottom, p pings of which show ranges m, hear velocities (n, p, k)."""
    n, k = ping_ranges.shape[0], geometry.slant_cosines.size
    own, ways = np.empty((n, 3)), np.empty((n, OUTCOME_COUNT))
    along, ranges, share = np.empty((n, k)), np.empty((n, k)), np.empty((n, k))
    met = (inputs[ECHO_RANGE], ping_ranges, received, inputs[BOTTOM_OUTPUT_ROTATION], geometry.beams.axes)
    compute_bottom(rules, *met, own, ways, along, ranges, share, *geometry.scratch)
    return {
        "bottom_velocity": own,
        "bottom_beam_velocity": along,
        "bottom_range": ranges,
        "bottom_percent_good": share,
        "bottom_solutions": ways,
    }


def expand_rows(array: AnyArray, rows: IntArray, count: int) -> AnyArray:
    """Return rows of `count` ticks, NaN but for those that tell."""
    out = np.full((count, *array.shape[1:]), math.nan)
    out[rows] = array
    return out


ADCP_SOURCE_ARRAYS = ("beam_velocity", "bottom_beam_velocity", "bottom_range")
"""Arrays of the beams that faults act on."""


def add_adcp_faults(received: tuple[FloatArray, ...], ideal: Mapping[str, AnyArray], emitted_rows: IntArray) -> None:
    """Add the offsets of injected faults in the rows `emitted_rows` of `ideal` to the measurements (n, p, ...)."""
    for name, array in zip(ADCP_SOURCE_ARRAYS, received, strict=True):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            np.add(array, ideal[f"{name}{OFFSET_SUFFIX}"][emitted_rows][:, None], out=array)
