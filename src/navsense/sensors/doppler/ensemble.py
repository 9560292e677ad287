"""Ensembles of an ADCP: the schedule of their pings, the errors of each ping, and the means over the good pings.

An ensemble has `bottom_pings` bottom-track pings and `pings` profile pings, in alternation. Ping j of N is a
bottom-track ping if

    j bottom_pings mod N < bottom_pings,   N = bottom_pings + pings

A ping lasts for the two-way travel time from `maximum_range` or from the end of the profile, or for the ping interval
if that is longer. An ensemble takes a whole number of ticks. It is output at each multiple of this number.

The time of validity of a profile ping is when the sound is in the middle cell. That of a bottom-track ping is when the
sound is half way to the maximum range. The symbols are those of `sensors.doppler`. Beam k of a ping measures in cell m,
with B_k of `ping`, and factor, rho and P(lock) of `beam_errors`:

    b_k' = (1 + scale) (b_k + (c0 / c - 1) B_k) + u_k . offset + sigma factor w
    S = level - 20 log10 r - 2 alpha r                                       r in m
    echo = 10 log10(1 + 10^(S / 10))

Sound spreads spherically both ways, 40 log10 r, in a volume that grows with r^2. A cell is bad with the probability
1 - P(lock). With bin mapping, cell m of the result has the velocity of each beam at the cell number

    j_mk = ((first + m size) cos theta_k / up_k - first) / size

up_k is the vertical component of u_k at the attitude of the ping. At j_mk a beam is as high as cell m of a level
instrument. The velocity there is that of the nearest cell, or linear between two cells.

The velocity of a ping is solved with equal weights of the beams. It is rejected if its error velocity is too large. The
other velocities are rotated by the attitude of their ping and averaged. `percent_good` is the fraction of the pings
that are averaged. RD Instruments define the outcomes `SOME_BEAMS` to `ALL_BEAMS`.

Sources: K. L. Deines, Backscatter Estimation Using Broadband Acoustic Doppler Current Profilers, Proc. IEEE Sixth
Working Conf. on Current Measurement (1999) 249, for the echo; Gordon (`cells`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.rotation import multiply, rotate
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternions, Vectors
from navsense.faults.schedule import OFFSET_SUFFIX
from navsense.sensors.doppler.beam_errors import LOG_POWER_PER_DECIBEL, compute_lock_probability, compute_noise_factor
from navsense.sensors.doppler.echoes import KernelTuple
from navsense.sensors.doppler.solution import compute_error_velocity, solve_velocity

BEAM, INSTRUMENT, SHIP, EARTH = range(4)
"""Coordinate systems; the numbers are those of `ds_sensor_msgs/Adcp`."""

UNMAPPED, NEAREST, LINEAR = range(3)
"""Bin mappings."""

SOME_BEAMS, REJECTED, UNSOLVED, ALL_BEAMS, OUTCOME_COUNT = range(5)
"""Outcomes of a ping: solved with some beams, rejected by the error velocity, too few beams, solved with all beams."""

_CELL_TOLERANCE: Final = 1e-9
"""Tolerance of a cell number: a number this close to a whole one does not use the next cell."""

_MIN_VERTICAL_SLOPE: Final = 1e-6
"""Smallest vertical component of a beam's axis for which bin mapping is possible."""

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
"""Name, shape (m cells, k beams, see `parse_shape`) and unit of each array of a reading."""

RELATIVE_VELOCITY = ("relative_velocity", "m3", "m/s")
"""One more array if `velocity` is motion-compensated: the velocity before compensation."""

IDEAL_OUTPUTS = (
    *("velocity", "beam_velocity", "error_velocity"),
    *("bottom_range", "bottom_velocity", "bottom_beam_velocity"),
)
"""Outputs that have an ideal value, in addition to orientation, time and speed of sound."""

FAULT_INPUT_ARRAYS = ("beam_velocity", "bottom_beam_velocity", "bottom_range")
"""Measurements of the beams that injected faults act on."""


class CoordinateSystem(StrEnum):
    """Axes of the velocities, in the order of their numbers in PD0 and `ds_sensor_msgs/Adcp`.

    >>> [one.value for one in ns.sensors.CoordinateSystem]
    ['beam', 'instrument', 'ship', 'earth']
    """

    BEAM = "beam"
    INSTRUMENT = "instrument"
    SHIP = "ship"
    EARTH = "earth"


class BinMapping(StrEnum):
    """Mapping of the cells of tilted beams to common heights: none, the nearest cell, or linear between two.

    >>> ns.sensors.Adcp(bin_mapping=ns.sensors.BinMapping.NEAREST).bin_mapping
    <BinMapping.NEAREST: 'nearest'>
    """

    NONE = "none"
    NEAREST = "nearest"
    LINEAR = "linear"


class PingSchedule(NamedTuple):
    """Duration of an ensemble (s), and times of validity of its pings (s) after its beginning."""

    duration: float
    profile_times: FloatArray
    bottom_times: FloatArray
    mean_profile_time: float


class EnsembleInputs(NamedTuple):
    """True values of n ensembles that errors depend on: p profile pings, b bottom-track pings, m cells, k beams."""

    true_beam_velocity: FloatArray
    """(n, p, m, k) m/s through the water; NaN for an invalid cell."""

    true_axial_velocity: FloatArray
    """(n, p, m, k) m/s, the contribution of the velocity along the instrument axis, see `doppler.water`."""

    attitude: Quaternions
    """(n, p, 4), sensor's frame to east, north, up."""

    output_rotation: Quaternions
    """(n, p, 4), sensor's frame to the output frame."""

    true_bottom_range: FloatArray
    """(n, b, k) m; NaN without an echo."""

    true_bottom_beam_velocity: FloatArray
    """(n, b, k) m/s; NaN without an echo."""

    sensor_velocity: Vectors
    """(n, b, 3) m/s in the sensor's frame."""

    bottom_output_rotation: Quaternions
    """(n, b, 4), sensor's frame to the output frame."""


class EnsembleRules(NamedTuple):
    """Choices and limits of the means.

    coordinates, bin_mapping: numbers of `CoordinateSystem` and `BinMapping`.
    min_beams: fewest beams for a solution.
    error_velocity_limit: m/s.
    min_good_share: smallest fraction of good pings.
    minimum_range, maximum_range: m.
    """

    coordinates: float
    bin_mapping: float
    min_beams: float
    error_velocity_limit: float
    min_good_share: float
    minimum_range: float
    maximum_range: float


class ProfilerGeometry(NamedTuple):
    """Axes (k, 3) of the beams, instrument axis (3,), Janus cosines (k,); distances (m,) m and size (m) of cells."""

    axes: Vectors
    axis: FloatArray
    cosines: FloatArray
    distances: FloatArray
    cell_size: float


class ProfileOutputs(NamedTuple):
    """Means of n ensembles over the profile pings, by their names in a reading."""

    velocity: FloatArray
    error_velocity: FloatArray
    percent_good: FloatArray
    solutions: FloatArray
    beam_velocity: FloatArray
    beam_percent_good: FloatArray


class BottomOutputs(NamedTuple):
    """Means of n ensembles over the bottom-track pings, by their names in a reading."""

    bottom_velocity: Vectors
    bottom_solutions: FloatArray
    bottom_beam_velocity: FloatArray
    bottom_range: FloatArray
    bottom_percent_good: FloatArray


def schedule_pings(
    pings: int, bottom_pings: int, durations: tuple[float, float], delays: tuple[float, float]
) -> PingSchedule:
    """Return the schedule of an ensemble.

    `durations` (s) are those of a profile ping and of a bottom-track ping, `delays` (s) their times of validity.
    """
    times: tuple[list[float], list[float]] = ([], [])
    ping_count, elapsed = pings + bottom_pings, 0.0
    for s in range(ping_count):
        ping_type = 1 if s * bottom_pings % ping_count < bottom_pings else 0
        times[ping_type].append(elapsed + delays[ping_type])
        elapsed += durations[ping_type]
    profile, bottom = times
    return PingSchedule(elapsed, np.array(profile), np.array(bottom), math.fsum(profile) / len(profile))


@kernel
def compute_rotations(
    rotation_ws: Quaternions,
    enu_rotation: FloatArray,
    instrument_rotation: FloatArray,
    coordinates: int,
    attitude: Quaternions,
    output_rotation: Quaternions,
) -> None:
    """Write rotations (q, 4) from the sensor's frame to east, north, up and to the output frame.

    `enu_rotation` (4,) is the rotation from the world to east, north, up, `instrument_rotation` (4,) that from the
    sensor to the instrument.
    """
    world, instrument = enu_rotation, instrument_rotation
    for q in range(rotation_ws.shape[0]):
        s = rotation_ws[q]
        w, x, y, z = multiply(world[0], world[1], world[2], world[3], s[0], s[1], s[2], s[3])
        attitude[q, 0], attitude[q, 1], attitude[q, 2], attitude[q, 3] = w, x, y, z
        a, b, c, d = w, x, y, z
        if coordinates == SHIP:
            e, f, g, i = multiply(w, x, y, z, instrument[0], -instrument[1], -instrument[2], -instrument[3])
            half = 0.5 * math.atan2(2.0 * (e * i + f * g), 1.0 - 2.0 * (g * g + i * i))
            a, b, c, d = multiply(math.cos(half), 0.0, 0.0, -math.sin(half), w, x, y, z)
        elif coordinates != EARTH:
            a, b, c, d = instrument[0], instrument[1], instrument[2], instrument[3]
        output_rotation[q, 0], output_rotation[q, 1], output_rotation[q, 2], output_rotation[q, 3] = a, b, c, d


@kernel
def compute_cell_echo_effects(
    strength: tuple[float, float, float, float, float],
    slant_range: FloatArray,
    range_scale: FloatArray,
    factor: FloatArray,
    lock_probability: FloatArray,
    echo: FloatArray,
    correlation: FloatArray,
) -> None:
    """Write the noise factors, lock probabilities, echoes (dB) and correlations of cells (n, m, k).

    strength: the numbers of an `EchoStrength`.
    slant_range: (m, k) m, at the assumed speed of sound.
    range_scale: (n,), c / c0.
    """
    level, absorption, max_correlation, threshold, lock_width = strength
    for n in range(factor.shape[0]):
        for m in range(factor.shape[1]):
            for k in range(factor.shape[2]):
                r = slant_range[m, k] * range_scale[n]
                strength_db = level - 20.0 * math.log10(r) - 2.0 * absorption * r
                factor[n, m, k] = compute_noise_factor(strength_db, max_correlation)
                lock_probability[n, m, k] = compute_lock_probability(strength_db, threshold, lock_width)
                echo[n, m, k] = max(strength_db, 0.0) + 10.0 * math.log10(
                    1.0 + math.exp(-LOG_POWER_PER_DECIBEL * abs(strength_db))
                )
                correlation[n, m, k] = max_correlation / (1.0 + math.exp(-LOG_POWER_PER_DECIBEL * strength_db))


@kernel
def add_cell_errors(
    true_velocity: FloatArray,
    axial_velocity: FloatArray,
    sound_ratio: FloatArray,
    is_phased_array: bool,
    axes: Vectors,
    long_term_errors: FloatArray,
    stddev: float,
    factor: FloatArray,
    lock_probability: FloatArray,
    ensemble_draws: KernelTuple,
    out: FloatArray,
) -> None:
    """Write the measured velocities (n, p, m, k) m/s of pings; NaN for a bad cell.

    `sound_ratio` (n,) is c0 / c, `long_term_errors` (4,) a scale and three offsets. `factor` and `lock_probability` are
    (n, m, k). `ensemble_draws` has the first rows of noise and lock in the draws, the column (n,) of each ensemble, and
    the draws. The row is -1 for a process that does not act.
    """
    scale, offset = long_term_errors[0], long_term_errors[1:]
    noise_row, lock_row, columns, draws = ensemble_draws
    for n in range(out.shape[0]):
        for p in range(out.shape[1]):
            for m in range(out.shape[2]):
                for k in range(out.shape[3]):
                    row = (p * out.shape[2] + m) * out.shape[3] + k
                    measured = true_velocity[n, p, m, k]
                    measured += (sound_ratio[n] - 1.0) * (axial_velocity[n, p, m, k] if is_phased_array else measured)
                    u = axes[k]
                    measured = (1.0 + scale) * measured + (u[0] * offset[0] + u[1] * offset[1] + u[2] * offset[2])
                    if noise_row >= 0:
                        measured += stddev * factor[n, m, k] * draws[noise_row + row, columns[n]]
                    if lock_row >= 0 and not draws[lock_row + row, columns[n]] < lock_probability[n, m, k]:
                        measured = math.nan
                    out[n, p, m, k] = measured


@kernel
def _interpolate_cell(profile: FloatArray, k: int, x: float, mapping: float) -> float:
    """Return the velocity of beam k at cell number `x` of a profile (m, k); NaN beyond its ends and in a bad cell."""
    low = math.floor(x + 0.5)
    if abs(x - low) <= _CELL_TOLERANCE or mapping == NEAREST:
        return profile[low, k] if 0 <= low < profile.shape[0] else math.nan
    low = math.floor(x)
    if low < 0 or low + 1 >= profile.shape[0]:
        return math.nan
    value: float = profile[low, k] + (x - low) * (profile[low + 1, k] - profile[low, k])
    return value


@kernel
def _compute_slant_factors(
    attitude: FloatArray, geometry: ProfilerGeometry, is_mapped: bool, factors: FloatArray
) -> None:
    """Write the factors (k,) of slant ranges at which the beams are as high as those of a level instrument.

    NaN for a beam without a vertical component. 1 without bin mapping.
    """
    w, x, y, z = attitude[0], attitude[1], attitude[2], attitude[3]
    axes, axis = geometry.axes, geometry.axis
    direction = math.copysign(1.0, rotate(w, x, y, z, axis[0], axis[1], axis[2])[2])
    for k in range(axes.shape[0]):
        factors[k] = 1.0
        if is_mapped:
            vertical_slope = direction * rotate(w, x, y, z, axes[k, 0], axes[k, 1], axes[k, 2])[2]
            factors[k] = geometry.cosines[k] / vertical_slope if vertical_slope > _MIN_VERTICAL_SLOPE else math.nan


@kernel
def _solve_beams(
    rules: EnsembleRules,
    axes: Vectors,
    velocity: FloatArray,
    stddev: FloatArray,
    good: BoolArray,
    solution: FloatArray,
    covariance: FloatArray,
) -> tuple[int, float]:
    """Solve for a velocity from the finite beam velocities (k,); return the outcome and the error velocity (m/s)."""
    count = 0
    for k in range(velocity.shape[0]):
        good[k] = velocity[k] == velocity[k]
        count += 1 if good[k] else 0
    if count < rules.min_beams or solve_velocity(axes, velocity, stddev, good, solution, covariance) == 0:
        return UNSOLVED, math.nan
    error = compute_error_velocity(axes, velocity, good)
    if abs(error) > rules.error_velocity_limit:
        return REJECTED, error
    return ALL_BEAMS if count == velocity.shape[0] else SOME_BEAMS, error


@kernel
def _divide_sums(rules: EnsembleRules, outputs: ProfileOutputs, n: int, m: int, pings: int) -> None:
    """Replace the sums of cell m of ensemble n by means; NaN if too few pings are good."""
    for k in range(outputs.beam_velocity.shape[2]):
        count = outputs.beam_percent_good[n, m, k]
        is_known = count > 0.0 and count / pings >= rules.min_good_share
        outputs.beam_velocity[n, m, k] = outputs.beam_velocity[n, m, k] / count if is_known else math.nan
        outputs.beam_percent_good[n, m, k] = count / pings
    count = outputs.percent_good[n, m]
    is_known = count > 0.0 and count / pings >= rules.min_good_share
    for i in range(3):
        has_axes = is_known and rules.coordinates != BEAM
        outputs.velocity[n, m, i] = outputs.velocity[n, m, i] / count if has_axes else math.nan
    if not is_known:
        outputs.error_velocity[n, m] = math.nan
    outputs.percent_good[n, m] = count / pings


@kernel
def compute_profile(
    ensemble_rules: KernelTuple,
    profiler_geometry: KernelTuple,
    velocity: FloatArray,
    attitude: FloatArray,
    output_rotation: FloatArray,
    output_arrays: KernelTuple,
) -> None:
    """Write the `ProfileOutputs` of measured velocities (n, p, m, k) m/s of pings."""
    rules, geometry = EnsembleRules(*ensemble_rules), ProfilerGeometry(*profiler_geometry)
    outputs = ProfileOutputs(*output_arrays)
    axes, distances, (pings, beams) = geometry.axes, geometry.distances, (velocity.shape[1], velocity.shape[3])
    cell_velocity, equal_weights, solution, covariance = np.empty(beams), np.zeros(beams), np.empty(3), np.empty((3, 3))
    good, factors = np.empty(beams, np.bool_), np.empty((pings, beams))
    is_mapped = rules.bin_mapping != UNMAPPED and rules.coordinates != BEAM
    outputs.velocity[:], outputs.error_velocity[:], outputs.percent_good[:] = 0.0, 0.0, 0.0
    outputs.solutions[:], outputs.beam_velocity[:], outputs.beam_percent_good[:] = 0.0, 0.0, 0.0
    for n in range(velocity.shape[0]):
        for p in range(pings):
            _compute_slant_factors(attitude[n, p], geometry, is_mapped, factors[p])
        for m in range(distances.shape[0]):
            errors = 0
            for p in range(pings):
                for k in range(beams):
                    cell_velocity[k] = velocity[n, p, m, k]
                    if cell_velocity[k] == cell_velocity[k]:
                        outputs.beam_velocity[n, m, k] += cell_velocity[k]
                        outputs.beam_percent_good[n, m, k] += 1.0
                    if is_mapped:
                        x = (distances[m] * factors[p, k] - distances[0]) / geometry.cell_size
                        cell_velocity[k] = math.nan
                        if x == x:
                            cell_velocity[k] = _interpolate_cell(velocity[n, p], k, x, rules.bin_mapping)
                outcome, error = _solve_beams(rules, axes, cell_velocity, equal_weights, good, solution, covariance)
                outputs.solutions[n, m, outcome] += 1.0
                if outcome in (SOME_BEAMS, ALL_BEAMS):
                    q = output_rotation[n, p]
                    a, b, c = rotate(q[0], q[1], q[2], q[3], -solution[0], -solution[1], -solution[2])
                    outputs.velocity[n, m, 0] += a
                    outputs.velocity[n, m, 1] += b
                    outputs.velocity[n, m, 2] += c
                    outputs.percent_good[n, m] += 1.0
                    if error == error:
                        outputs.error_velocity[n, m] += error
                        errors += 1
            outputs.error_velocity[n, m] = outputs.error_velocity[n, m] / errors if errors > 0 else math.nan
            for i in range(OUTCOME_COUNT):
                outputs.solutions[n, m, i] /= pings
            _divide_sums(rules, outputs, n, m, pings)


@kernel
def add_bottom_errors(
    true_range: FloatArray,
    true_velocity: FloatArray,
    sensor_velocity: Vectors,
    sound_ratio: FloatArray,
    is_phased_array: bool,
    axes: Vectors,
    axis: FloatArray,
    long_term_errors: FloatArray,
    stddevs: tuple[float, float],
    ensemble_draws: KernelTuple,
    out: FloatArray,
    out_range: FloatArray,
) -> None:
    """Write the measured velocities and ranges (n, b, k) of bottom-track pings.

    `long_term_errors` (4,) is a scale and three offsets. `stddevs` are those of velocity (m/s) and range (m).
    `ensemble_draws` is as in `add_cell_errors`, with the first rows of velocity and range.
    """
    scale, offset = long_term_errors[0], long_term_errors[1:]
    noise_row, range_row, columns, draws = ensemble_draws
    for n in range(out.shape[0]):
        for p in range(out.shape[1]):
            v = sensor_velocity[n, p]
            axial_speed = axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]
            for k in range(out.shape[2]):
                u, row = axes[k], p * out.shape[2] + k
                measured = true_velocity[n, p, k]
                janus_cosine = u[0] * axis[0] + u[1] * axis[1] + u[2] * axis[2]
                steered = janus_cosine * axial_speed if is_phased_array else measured
                measured = measured + (sound_ratio[n] - 1.0) * steered
                measured = (1.0 + scale) * measured + (u[0] * offset[0] + u[1] * offset[1] + u[2] * offset[2])
                distance = true_range[n, p, k] * sound_ratio[n]
                if noise_row >= 0:
                    measured += stddevs[0] * draws[noise_row + row, columns[n]]
                if range_row >= 0:
                    distance += stddevs[1] * draws[range_row + row, columns[n]]
                out[n, p, k], out_range[n, p, k] = measured, distance


@kernel
def compute_bottom(
    ensemble_rules: KernelTuple,
    axes: Vectors,
    true_range: FloatArray,
    bottom_range: FloatArray,
    velocity: FloatArray,
    output_rotation: FloatArray,
    output_arrays: KernelTuple,
) -> None:
    """Write the `BottomOutputs` of true and measured ranges (m) and measured velocities (m/s) of pings (n, b, k)."""
    rules, outputs, (pings, beams) = EnsembleRules(*ensemble_rules), BottomOutputs(*output_arrays), velocity.shape[1:]
    beam_velocity, equal_weights, solution, covariance = np.empty(beams), np.zeros(beams), np.empty(3), np.empty((3, 3))
    good, minimum, maximum = np.empty(beams, np.bool_), rules.minimum_range, rules.maximum_range
    outputs.bottom_velocity[:], outputs.bottom_solutions[:], outputs.bottom_beam_velocity[:] = 0.0, 0.0, 0.0
    outputs.bottom_range[:], outputs.bottom_percent_good[:] = 0.0, 0.0
    for n in range(velocity.shape[0]):
        count = 0
        for p in range(pings):
            for k in range(beams):
                is_good = minimum <= true_range[n, p, k] <= maximum and minimum <= bottom_range[n, p, k] <= maximum
                beam_velocity[k] = velocity[n, p, k] if is_good else math.nan
                if is_good:
                    outputs.bottom_beam_velocity[n, k] += velocity[n, p, k]
                    outputs.bottom_range[n, k] += bottom_range[n, p, k]
                    outputs.bottom_percent_good[n, k] += 1.0
            outcome = _solve_beams(rules, axes, beam_velocity, equal_weights, good, solution, covariance)[0]
            outputs.bottom_solutions[n, outcome] += 1.0
            if outcome in (SOME_BEAMS, ALL_BEAMS):
                q = output_rotation[n, p]
                a, b, c = rotate(q[0], q[1], q[2], q[3], solution[0], solution[1], solution[2])
                outputs.bottom_velocity[n, 0] += a
                outputs.bottom_velocity[n, 1] += b
                outputs.bottom_velocity[n, 2] += c
                count += 1
        for k in range(beams):
            total = outputs.bottom_percent_good[n, k] if outputs.bottom_percent_good[n, k] > 0.0 else math.nan
            outputs.bottom_beam_velocity[n, k] /= total
            outputs.bottom_range[n, k] /= total
            outputs.bottom_percent_good[n, k] = outputs.bottom_percent_good[n, k] / pings if pings > 0 else 0.0
        for i in range(OUTCOME_COUNT):
            outputs.bottom_solutions[n, i] = outputs.bottom_solutions[n, i] / pings if pings > 0 else 0.0
        for i in range(3):
            has_axes = count > 0 and rules.coordinates != BEAM
            outputs.bottom_velocity[n, i] = outputs.bottom_velocity[n, i] / count if has_axes else math.nan


def average_profile(
    rules: EnsembleRules, geometry: ProfilerGeometry, inputs: EnsembleInputs, velocity: FloatArray
) -> dict[str, AnyArray]:
    """Return by name the means of n ensembles from measured velocities (n, p, m, k) m/s of their pings."""
    n, _, m, k = velocity.shape
    shapes = ((n, m, 3), (n, m), (n, m), (n, m, OUTCOME_COUNT), (n, m, k), (n, m, k))
    outputs = ProfileOutputs(*(np.empty(shape) for shape in shapes))
    compute_profile(tuple(rules), tuple(geometry), velocity, inputs.attitude, inputs.output_rotation, tuple(outputs))
    return outputs._asdict()


def average_bottom(
    rules: EnsembleRules,
    geometry: ProfilerGeometry,
    inputs: EnsembleInputs,
    bottom_range: FloatArray,
    velocity: FloatArray,
) -> dict[str, AnyArray]:
    """Return by name the means of n ensembles from measured ranges m and velocities m/s (n, b, k) of their pings."""
    n, _, k = velocity.shape
    outputs = BottomOutputs(*(np.empty(shape) for shape in ((n, 3), (n, OUTCOME_COUNT), (n, k), (n, k), (n, k))))
    rotation = inputs.bottom_output_rotation
    compute_bottom(
        tuple(rules), geometry.axes, inputs.true_bottom_range, bottom_range, velocity, rotation, tuple(outputs)
    )
    return outputs._asdict()


def expand_rows(array: AnyArray, rows: IntArray, count: int) -> AnyArray:
    """Return an array of `count` ticks with these rows, and NaN in the others."""
    out = np.full((count, *array.shape[1:]), math.nan)
    out[rows] = array
    return out


def add_faults(measured: tuple[FloatArray, ...], ideal: Mapping[str, AnyArray], emitted_rows: IntArray) -> None:
    """Add the offsets of injected faults in the rows `emitted_rows` of `ideal` to measurements (n, p, ...) of pings."""
    for name, array in zip(FAULT_INPUT_ARRAYS, measured, strict=True):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            np.add(array, ideal[f"{name}{OFFSET_SUFFIX}"][emitted_rows][:, None], out=array)
