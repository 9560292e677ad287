"""One ping after another: from what came back along the beams to what a Doppler instrument tells.

Beam velocities as they are heard, for a true one u.v along the axis u, with a the mean of the axes:

    b = (1 + l) (u.v + u.(R - 1) v_s + (f c0 / c - 1) d) + u.o + sigma w
    d = u.v, f = 1 of pistons,   d = (u.a) (a.v_s), f = cos j' / cos j of a phased array,   sin j' = (c / c0) sin j

l and o are the long-term scale and offset of this serial number, R its misalignment, v_s the velocity in the sensor's
frame against what is tracked, which may move, c0 the speed of sound that it assumes and c the true one, w standard
normals. A phased array steers by phase, and what it takes for an angle j from a is j': c leaves its horizontal
velocities as they are and changes what is along a alone; ranges are r c0 / (c f), over a bottom that is square to a.

A beam is good where its echo is within the limits before and after the errors, met the bottom at no flatter an angle
than asked for, was loud enough, where the instrument is not faster than the track allows, and where lock was not lost
within the time of re-acquisition. A solution is made of
three good beams or more, weighted by what is stated of each, and rejected where its error velocity is too large.

Kernels take few arrays that hold much, as a call costs by their number: `heard` (10, n, k) of n pings and k beams has
what came back; `figures` (10, n), `beams` (7, n, k), `vectors` (3, n, 3) and `squares` (3, n, 3, 3) what is told.
`hear` goes up to the slow errors of each beam, which are those of `noise.channels`; `say` goes on from these.


What a Doppler instrument tells: its arrays by name, and those that its errors depend on.

What a velocity log draws, and in which rows of a block the draws of its pings stand.

| process | draws |
|---|---|
| `long_term` of `bottom`, `water` | once for a serial number: a scale and three offsets |
| `misalignment` of the `mounting` | once: three angles |
| `white` of `velocity_x`, `_y`, `_z` | one a tick, of the classic plug-ins, whose noise is on the solved velocity |
| `white` of `bottom_k`, `water_k` | one a tick and beam |
| `lock`, `dropout` of `beam_k` | one a tick and beam, uniform |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from navsense.kernels import kernel
from navsense.noise.scheduled_faults import OFFSET_SUFFIX
from navsense.random_streams import RandomProcess
from navsense.rotation import rotate
from navsense.sensors.doppler.beam_errors import (
    DopplerTrack,
    compute_lock_probability,
    compute_noise_factor,
    compute_stddev,
    compute_strength,
)
from navsense.sensors.doppler.beams import MIN_BEAMS
from navsense.sensors.doppler.solution import (
    compute_altitude,
    compute_course_and_speed,
    compute_error_velocity,
    solve_velocity,
)
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternions, Times, Vectors

MIN_RANGE, MAX_RANGE, MIN_INCIDENCE_COSINE, ERROR_LIMIT, REACQUISITION, DROPOUT, BOTTOM_MODE, WATER_MODE, DIALECT = (
    range(9)
)
"""Places in `rules` (11,): ranges in m, a cosine, a velocity in m/s, s, a probability, and three choices."""

REPORTED_STDDEV, WATER_REPORTED_STDDEV = 9, 10
"""Places in `rules`: what is stated of a beam over the bottom and through the water (m/s), 0 for what it really is."""

PER_SPEED, REFERENCE_RATE, MAX_VELOCITY = range(3)
"""Places in a row of `tracks` (2, 3): see `Track`."""

BOTTOM_NOISE_ROW, WATER_NOISE_ROW, LOCK_ROW, DROPOUT_ROW = range(4)
"""Rows of `rows` (4, k): which row of draws is each beam's, -1 where it does not act."""

NEVER, ALWAYS, BEST, FALLBACK = range(4)
"""When a kind of tracking is used."""

PHYSICAL, UUV, DSROS = range(3)
"""Whose rules hold."""

(
    TRUE_RANGE,
    INCIDENCE_COSINE,
    BEAM_RANGE,
    BOTTOM_VELOCITY,
    WATER_VELOCITY,
    BOTTOM_STDDEV,
    WATER_STDDEV,
    LOCK_PROBABILITY,
    LOCK_DRAW,
    DROPOUT_DRAW,
) = range(10)
"""Places in `heard`: true range and cosine of incidence, the range and velocities with their errors, the deviations
stated of these, how likely the bottom is heard, and uniform draws of that and of a dropout."""

(
    ALTITUDE,
    COURSE,
    SPEED,
    GOOD_BEAMS,
    VELOCITY_MODE,
    ERROR_VELOCITY,
    TIME_OF_VALIDITY,
    SOUND_SPEED,
    WATER_TIME_OF_VALIDITY,
    LAYER_FAR_BOUNDARY,
) = range(10)
"""Places in `figures`; from `ABOUT` on the time of validity (s), the speed of sound that is assumed (m/s), the time of
validity of what is through the water, and how far (m) its layer went."""

OVER_BOTTOM, THROUGH_WATER, LONG_TERM = range(3)
"""Places in `vectors` and `squares`; the first is what is told, whatever is tracked."""

SLANT_RANGE, BEAM_VELOCITY, BEAM_VALID, BEAM_STDDEV, WATER_BEAM_VELOCITY, WATER_BEAM_STDDEV, RANGE_VALIDITY = range(7)
"""Places in `beams`."""

NO_ECHO, TOO_LOW, TOO_HIGH, IN_RANGE = 0.0, 1.0, 2.0, 3.0
"""Validity of a range, as `ds_sensor_msgs/Range3D` numbers it."""

NO_TRACK, BOTTOM_TRACK, WATER_TRACK = 0.0, 1.0, 2.0
"""What a velocity is against."""

ROUNDING: Final = 1e-9
"""s: by so much an instant may be missed by rounding alone, where a time is a whole number of ticks."""

CLASSIC_COSINE: Final = math.cos(math.pi / 6.0)
"""What `dsros_dvl` multiplies slant ranges by, whatever its beams' angle."""


@kernel
def compute_steering_ratio(slant: float, ratio: float) -> float:
    """Return cos j' / cos j of a phased array's beam, `slant` cos j, where it assumes the speed of sound `ratio` c."""
    sine = (1.0 - slant * slant) / (ratio * ratio)
    return math.sqrt(1.0 - sine) / slant if sine < 1.0 else math.nan


@kernel
def _add_beam_errors(
    true: FloatArray,
    sensor_velocity: Vectors,
    axes: Vectors,
    axis: FloatArray,
    misalignment: FloatArray,
    ratio: FloatArray,
    phased: bool,
    systematic: FloatArray,
    stddev: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    out: FloatArray,
) -> None:
    """Write beam velocities (k, n) m/s as they are heard, but for the slow errors of each beam.

    `own` (n, 3) is the velocity in the sensor's frame against what is tracked, `ratio` (n,) c0 / c, `misalignment` (4,)
    the misalignment, `systematic` (4,) scale and offset, `rows` (k,) those of the normal draws, -1 for none.
    """
    turned = misalignment[1] != 0.0 or misalignment[2] != 0.0 or misalignment[3] != 0.0
    scale, offset = systematic[0], systematic[1:]
    for n in range(true.shape[0]):
        x, y, z = sensor_velocity[n, 0], sensor_velocity[n, 1], sensor_velocity[n, 2]
        along = axis[0] * x + axis[1] * y + axis[2] * z
        dx, dy, dz = 0.0, 0.0, 0.0
        if turned:
            rx, ry, rz = rotate(misalignment[0], misalignment[1], misalignment[2], misalignment[3], x, y, z)
            dx, dy, dz = rx - x, ry - y, rz - z
        for k in range(true.shape[1]):
            ux, uy, uz = axes[k, 0], axes[k, 1], axes[k, 2]
            scaled, grown_by = true[n, k], ratio[n]
            if phased:
                slant = ux * axis[0] + uy * axis[1] + uz * axis[2]
                scaled, grown_by = slant * along, ratio[n] * compute_steering_ratio(slant, ratio[n])
            measured = true[n, k] + (ux * dx + uy * dy + uz * dz) + (grown_by - 1.0) * scaled
            measured = (1.0 + scale) * measured + (ux * offset[0] + uy * offset[1] + uz * offset[2])
            if rows[k] >= 0:
                measured += stddev[n, k] * draws[rows[k], n]
            out[k, n] = measured


@kernel
def _select_good_beams(
    rules: FloatArray,
    received: FloatArray,
    n: int,
    time: float,
    unlocked_until: FloatArray,
    good: BoolArray,
    per_beam: FloatArray,
) -> int:
    """Decide which beams (2, k) of ping n are good; return how many have the bottom.

    `lost` (k,) is till when (s) a beam has none.
    """
    count, classic = 0, rules[DIALECT] == UUV
    least, most = rules[MIN_RANGE], rules[MAX_RANGE]
    for k in range(received.shape[2]):
        true, shown = received[TRUE_RANGE, n, k], received[BEAM_RANGE, n, k]
        found = least <= true <= most and received[INCIDENCE_COSINE, n, k] >= rules[MIN_INCIDENCE_COSINE]
        if classic:
            shown = min(max(shown if found else (least if true < least else most), least), most)
        else:
            found = found and least <= shown <= most
        comes = received[DROPOUT_DRAW, n, k] >= rules[DROPOUT]
        found = found and received[LOCK_DRAW, n, k] < received[LOCK_PROBABILITY, n, k] and comes
        if not found:
            unlocked_until[k] = time + rules[REACQUISITION]
        found = found and (time >= unlocked_until[k] - ROUNDING or rules[REACQUISITION] == 0.0)
        good[0, k], good[1, k] = found, comes and received[WATER_VELOCITY, n, k] == received[WATER_VELOCITY, n, k]
        per_beam[SLANT_RANGE, n, k] = shown if found or classic else math.nan
        per_beam[BEAM_VELOCITY, n, k] = received[BOTTOM_VELOCITY, n, k] if found else math.nan
        per_beam[BEAM_STDDEV, n, k] = received[BOTTOM_STDDEV, n, k] if found else math.nan
        per_beam[BEAM_VALID, n, k] = 1.0 if found else 0.0
        if rules[WATER_MODE] != NEVER and good[1, k]:
            per_beam[WATER_BEAM_VELOCITY, n, k], per_beam[WATER_BEAM_STDDEV, n, k] = (
                received[WATER_VELOCITY, n, k],
                received[WATER_STDDEV, n, k],
            )
        per_beam[RANGE_VALIDITY, n, k] = IN_RANGE if found else _classify_range(rules, received, n, k)
        count += 1 if found else 0
    return count


@kernel
def _classify_range(rules: FloatArray, received: FloatArray, n: int, k: int) -> float:
    """Return why beam k of ping n has no valid range: no usable echo, below the minimum, or above the maximum."""
    true, shown = received[TRUE_RANGE, n, k], received[BEAM_RANGE, n, k]
    if not (received[DROPOUT_DRAW, n, k] >= rules[DROPOUT] and true == true):
        return NO_ECHO
    if true < rules[MIN_RANGE] or true > rules[MAX_RANGE]:
        return TOO_LOW if true < rules[MIN_RANGE] else TOO_HIGH
    if not (
        received[INCIDENCE_COSINE, n, k] >= rules[MIN_INCIDENCE_COSINE]
        and received[LOCK_DRAW, n, k] < received[LOCK_PROBABILITY, n, k]
    ):
        return NO_ECHO
    if shown < rules[MIN_RANGE] or shown > rules[MAX_RANGE]:
        return TOO_LOW if shown < rules[MIN_RANGE] else TOO_HIGH
    return NO_ECHO


@kernel
def _try_solve(
    rules: FloatArray,
    axes: Vectors,
    velocity: FloatArray,
    stddev: FloatArray,
    good: BoolArray,
    out: FloatArray,
    covariance: FloatArray,
) -> bool:
    """Solve for a velocity and its covariance; tell whether there is one that is not rejected."""
    used = solve_velocity(axes, velocity, stddev, good, out, covariance)
    if used < MIN_BEAMS or (rules[DIALECT] == DSROS and used < axes.shape[0]):
        return False
    return rules[ERROR_LIMIT] == math.inf or not abs(compute_error_velocity(axes, velocity, good)) > rules[ERROR_LIMIT]


@kernel
def _rotate_solution(
    frame: FloatArray, vector: FloatArray, covariance: FloatArray, out: FloatArray, out_covariance: FloatArray
) -> None:
    """Write a velocity (3,) and its covariance (3, 3) in the frame that is told of, turned by `frame` (4,)."""
    w, x, y, z = frame[0], frame[1], frame[2], frame[3]
    out[0], out[1], out[2] = rotate(w, x, y, z, vector[0], vector[1], vector[2])
    for j in range(3):
        a, b, c = rotate(w, x, y, z, covariance[0, j], covariance[1, j], covariance[2, j])
        out_covariance[0, j], out_covariance[1, j], out_covariance[2, j] = a, b, c
    for i in range(3):
        a, b, c = rotate(w, x, y, z, out_covariance[i, 0], out_covariance[i, 1], out_covariance[i, 2])
        out_covariance[i, 0], out_covariance[i, 1], out_covariance[i, 2] = a, b, c


@kernel
def _is_water_better(rules: FloatArray, covariance: FloatArray) -> bool:
    """Tell which of two solutions is shown: the bottom's, unless the best is asked for and the water's is surer."""
    if rules[BOTTOM_MODE] != BEST or rules[WATER_MODE] == FALLBACK:
        return False
    bottom, water = covariance[0], covariance[1]
    surer: bool = water[0, 0] + water[1, 1] + water[2, 2] < bottom[0, 0] + bottom[1, 1] + bottom[2, 2]
    return surer


@kernel
def _compute_altitude(
    rules: FloatArray, q: FloatArray, axes: Vectors, positions: Vectors, good: BoolArray, slant: FloatArray
) -> float:
    """Return the altitude (m) over slant ranges (k,) m by the rules in force, NaN where it is out of range."""
    if rules[DIALECT] == PHYSICAL:
        return compute_altitude(axes, positions, slant, good, q[0], q[1], q[2], q[3])
    total, count, least, most = 0.0, 0, 0, 0
    for k in range(axes.shape[0]):
        if rules[DIALECT] == UUV or good[k]:
            total += slant[k]
            count += 1
            least += 1 if slant[k] == rules[MIN_RANGE] else 0
            most += 1 if slant[k] == rules[MAX_RANGE] else 0
    if count == 0 or (rules[DIALECT] == UUV and max(least, most) == count):
        return math.nan
    return total / count * (1.0 if rules[DIALECT] == UUV else CLASSIC_COSINE)


@kernel
def _compute_course(
    rules: FloatArray, output_velocity: FloatArray, sensor_velocity: FloatArray, q: FloatArray
) -> tuple[float, float]:
    """Return course (rad) and speed (m/s) over the ground of a velocity as told (3,) and in the sensor's frame (3,)."""
    if rules[DIALECT] == DSROS:
        course = math.atan2(output_velocity[0], output_velocity[1])
        speed = math.sqrt(output_velocity[0] * output_velocity[0] + output_velocity[1] * output_velocity[1])
        return course if course >= 0.0 else course + 2.0 * math.pi, speed
    return compute_course_and_speed(
        sensor_velocity[0], sensor_velocity[1], sensor_velocity[2], q[0], q[1], q[2], q[3], 0.0
    )


@kernel
def _solve_all(
    rules: FloatArray,
    frame: FloatArray,
    received: FloatArray,
    attitude: Quaternions,
    time: Times,
    emitted: BoolArray,
    axes: Vectors,
    positions: Vectors,
    unlocked_until: FloatArray,
    scalars: FloatArray,
    per_beam: FloatArray,
    vectors: FloatArray,
    covariances: FloatArray,
) -> None:
    """Write what the emitted of n pings say, at `time` (n,) s; what is not known is NaN.

    `attitude` (n, 4) takes the sensor's frame to east, north, up.
    """
    scalars[:], per_beam[:], vectors[:], covariances[:] = math.nan, math.nan, math.nan, math.nan
    good = np.empty((2, axes.shape[0]), dtype=np.bool_)
    solved, covariance = np.empty((2, 3)), np.empty((2, 3, 3))
    for n in range(time.shape[0]):
        if not emitted[n]:
            continue
        scalars[GOOD_BEAMS, n] = _select_good_beams(rules, received, n, time[n], unlocked_until, good, per_beam)
        scalars[ALTITUDE, n] = _compute_altitude(rules, attitude[n], axes, positions, good[0], per_beam[SLANT_RANGE, n])
        bottom = rules[BOTTOM_MODE] != NEVER and _try_solve(
            rules, axes, received[BOTTOM_VELOCITY, n], received[BOTTOM_STDDEV, n], good[0], solved[0], covariance[0]
        )
        water = rules[WATER_MODE] != NEVER and _try_solve(
            rules, axes, received[WATER_VELOCITY, n], received[WATER_STDDEV, n], good[1], solved[1], covariance[1]
        )
        use_water = water and (not bottom or _is_water_better(rules, covariance))
        scalars[VELOCITY_MODE, n] = WATER_TRACK if use_water else (BOTTOM_TRACK if bottom else NO_TRACK)
        if water and (use_water or rules[WATER_MODE] == ALWAYS):
            _rotate_solution(frame, solved[1], covariance[1], vectors[1, n], covariances[1, n])
        if use_water:
            vectors[0, n], covariances[0, n] = vectors[1, n], covariances[1, n]
            scalars[ERROR_VELOCITY, n] = compute_error_velocity(axes, received[WATER_VELOCITY, n], good[1])
            scalars[GOOD_BEAMS, n] = _count_good(good[1])
        elif bottom:
            _rotate_solution(frame, solved[0], covariance[0], vectors[0, n], covariances[0, n])
            scalars[ERROR_VELOCITY, n] = compute_error_velocity(axes, received[BOTTOM_VELOCITY, n], good[0])
            scalars[COURSE, n], scalars[SPEED, n] = _compute_course(rules, vectors[0, n], solved[0], attitude[n])


@kernel
def _count_good(good: BoolArray) -> int:
    """Return how many beams are good."""
    count = 0
    for k in range(good.shape[0]):
        count += 1 if good[k] else 0
    return count


@kernel
def schedule_emissions(time: FloatArray, listening_time: FloatArray, last: float, emitted: BoolArray) -> float:
    """Decide which ticks (n,) s tell of a ping; return when (s) the last of them was.

    A ping goes out `listening` (n,) s before the tick at which its last echo is back, and not before the one before it
    has been told: the deeper the water, the fewer.
    """
    for n in range(time.shape[0]):
        emitted[n] = time[n] - listening_time[n] >= last - ROUNDING
        if emitted[n]:
            last = time[n]
    return last


@kernel
def _estimate_relative_velocity(
    axes: Vectors, beam_velocity: FloatArray, sensor_velocity: Vectors, out: Vectors
) -> None:
    """Write velocities (n, 3) m/s against what true beam velocities (n, k) are against, which may move.

    Where these are too few it is `own` (n, 3), that in the world.
    """
    count = axes.shape[0]
    good, stddev, solved, covariance = np.empty(count, np.bool_), np.zeros(count), np.empty(3), np.empty((3, 3))
    for n in range(out.shape[0]):
        for k in range(count):
            good[k] = beam_velocity[n, k] == beam_velocity[n, k]
        used = solve_velocity(axes, beam_velocity[n], stddev, good, solved, covariance)
        for i in range(3):
            out[n, i] = solved[i] if used >= MIN_BEAMS else sensor_velocity[n, i]


@kernel
def _gather_draws(rows: IntArray, draws: FloatArray, default: float, out: FloatArray) -> None:
    """Write the draws (n, k) of rows (k,); `nothing` where there are none."""
    for k in range(rows.shape[0]):
        for n in range(out.shape[0]):
            out[n, k] = draws[rows[k], n] if rows[k] >= 0 else default


@kernel
def _write_uuv_velocity(
    frame: FloatArray,
    sensor_velocity: Vectors,
    attitude: Quaternions,
    emitted: BoolArray,
    reported_stddev: float,
    scalars: FloatArray,
    vectors: FloatArray,
    covariances: FloatArray,
) -> None:
    """Write velocities as the UUV Simulator has them: the sensor's own (n, 3) m/s, whatever the beams hear."""
    for n in range(sensor_velocity.shape[0]):
        if not emitted[n]:
            continue
        x, y, z, q = sensor_velocity[n, 0], sensor_velocity[n, 1], sensor_velocity[n, 2], attitude[n]
        scalars[COURSE, n], scalars[SPEED, n] = compute_course_and_speed(x, y, z, q[0], q[1], q[2], q[3], 0.0)
        vectors[0, n, 0], vectors[0, n, 1], vectors[0, n, 2] = rotate(frame[0], frame[1], frame[2], frame[3], x, y, z)
        scalars[VELOCITY_MODE, n], scalars[ERROR_VELOCITY, n] = BOTTOM_TRACK, math.nan
        for i in range(3):
            for j in range(3):
                covariances[0, n, i, j] = reported_stddev * reported_stddev if i == j else 0.0


@kernel
def _add_axis_noise(
    frame: FloatArray,
    attitude: Quaternions,
    emitted: BoolArray,
    rows: IntArray,
    draws: FloatArray,
    stddev: float,
    water_only: bool,
    scalars: FloatArray,
    vectors: FloatArray,
    covariances: FloatArray,
) -> None:
    """Add noise to each axis of solutions: to all of them as in the UUV Simulator, else to those `through` water.

    Course and speed are those of the velocity that is told, which `frame` (4,) turned out of the sensor's.
    """
    track = 1 if water_only else 0
    for n in range(vectors.shape[1]):
        for i in range(3):
            vectors[track, n, i] += stddev * draws[rows[i], n]
            if water_only and vectors[1, n, i] == vectors[1, n, i]:
                for j in range(3):
                    covariances[1, n, i, j] = stddev * stddev if i == j else 0.0
        if water_only and scalars[VELOCITY_MODE, n] == WATER_TRACK:
            vectors[0, n], covariances[0, n] = vectors[1, n], covariances[1, n]
        if not water_only and emitted[n]:
            told, q = vectors[0, n], attitude[n]
            x, y, z = rotate(frame[0], -frame[1], -frame[2], -frame[3], told[0], told[1], told[2])
            scalars[COURSE, n], scalars[SPEED, n] = compute_course_and_speed(x, y, z, q[0], q[1], q[2], q[3], 0.0)


@kernel
def _compute_stddevs(
    floor: float, track: FloatArray, rate: float, relative_velocity: Vectors, factor: FloatArray, out: FloatArray
) -> None:
    """Write the deviation (n, k) m/s of each beam's velocity, the sensor's own being (n, 3) m/s; see `Track`."""
    for n in range(out.shape[0]):
        speed = math.sqrt(
            relative_velocity[n, 0] * relative_velocity[n, 0]
            + relative_velocity[n, 1] * relative_velocity[n, 1]
            + relative_velocity[n, 2] * relative_velocity[n, 2]
        )
        for k in range(out.shape[1]):
            out[n, k] = compute_stddev(floor, track[PER_SPEED], speed, rate, track[REFERENCE_RATE], factor[n, k])


@kernel
def _compute_echo_effects(
    parameters: FloatArray, echo: FloatArray, incidence: FloatArray, factor: FloatArray, lock: FloatArray
) -> None:
    """Write by how much deviations grow (n, k), and how likely a beam hears the bottom (n, k).

    `sheet` (5,) are the numbers of an `EchoStrength` in their order.
    """
    for n in range(echo.shape[0]):
        for k in range(echo.shape[1]):
            shown = compute_strength(parameters[0], parameters[1], echo[n, k], incidence[n, k])
            factor[n, k] = compute_noise_factor(shown, parameters[2])
            lock[n, k] = compute_lock_probability(shown, parameters[3], parameters[4])


@kernel
def _drop_fast_pings(
    relative_velocity: Vectors, max_velocity: float, over_bottom: bool, lock: FloatArray, velocity: FloatArray
) -> None:
    """Take the echoes of pings away whose speed is above the maximum of a track (m/s).

    `own` (n, 3) m/s is against what is tracked. The bottom loses its lock (n, k), the water its velocities (k, n) m/s.
    """
    for n in range(relative_velocity.shape[0]):
        x, y, z = relative_velocity[n, 0], relative_velocity[n, 1], relative_velocity[n, 2]
        if math.sqrt(x * x + y * y + z * z) > max_velocity:
            for k in range(velocity.shape[0]):
                if over_bottom:
                    lock[n, k] = 0.0
                else:
                    velocity[k, n] = math.nan


@kernel
def receive_beams(
    tracks: FloatArray,
    floors: tuple[float, float],
    rate: float,
    strength_parameters: FloatArray,
    phased: bool,
    assumed_sound_speed: float,
    axes: Vectors,
    axis: FloatArray,
    misalignment: FloatArray,
    systematic: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    echo: FloatArray,
    incidence: FloatArray,
    bottom_velocity: FloatArray,
    water_velocity: FloatArray,
    sensor_velocity: Vectors,
    sound_speed: FloatArray,
    received: FloatArray,
    ideals: FloatArray,
) -> None:
    """Write what comes back of n pings, `heard`, and what the slow errors of each beam go onto, `ideals` (3 k, n).

    `floors` (m/s) are the deviations at rest of both tracks at the `rate` (Hz) of ticks; `loud` (5,) as for
    `_compute_echo_effects`, or (0,); `assumed` (m/s) is the speed of sound that is, 0 for the true one, `sound` (n,).
    """
    count, beams = echo.shape
    received[TRUE_RANGE], received[INCIDENCE_COSINE], received[LOCK_PROBABILITY] = echo, incidence, 1.0
    ratio, factor, relative = np.ones(count), np.ones((count, beams)), np.empty((count, 3))
    if assumed_sound_speed > 0.0:
        for n in range(count):
            ratio[n] = assumed_sound_speed / sound_speed[n]
    if strength_parameters.shape[0] > 0:
        _compute_echo_effects(strength_parameters, echo, incidence, factor, received[LOCK_PROBABILITY])
    for t in range(2):
        true, stddev = bottom_velocity if t == 0 else water_velocity, received[BOTTOM_STDDEV + t]
        _estimate_relative_velocity(axes, true, sensor_velocity, relative)
        _compute_stddevs(floors[t], tracks[t], rate, relative, factor, stddev)
        out, white = ideals[t * beams : (t + 1) * beams], rows[BOTTOM_NOISE_ROW + t]
        _add_beam_errors(
            true, relative, axes, axis, misalignment, ratio, phased, systematic[t], stddev, white, draws, out
        )
        _drop_fast_pings(relative, tracks[t, MAX_VELOCITY], t == 0, received[LOCK_PROBABILITY], out)
        factor[:] = 1.0
    _gather_draws(rows[LOCK_ROW], draws, 0.0, received[LOCK_DRAW])
    _gather_draws(rows[DROPOUT_ROW], draws, 1.0, received[DROPOUT_DRAW])
    for n in range(count):
        for k in range(beams):
            slant = axes[k, 0] * axis[0] + axes[k, 1] * axis[1] + axes[k, 2] * axis[2]
            far = echo[n, k] if echo[n, k] < math.inf else math.nan
            ideals[2 * beams + k, n] = far * ratio[n] / (compute_steering_ratio(slant, ratio[n]) if phased else 1.0)


@kernel
def solve_ping(
    rules: FloatArray,
    frame: FloatArray,
    values: FloatArray,
    received: FloatArray,
    attitude: Quaternions,
    sensor_velocity: Vectors,
    time: Times,
    emitted: BoolArray,
    axes: Vectors,
    positions: Vectors,
    unlocked_until: FloatArray,
    validity: FloatArray,
    sound_speed: FloatArray,
    assumed_sound_speed: float,
    axis_stddev: float,
    rows: IntArray,
    draws: FloatArray,
    scalars: FloatArray,
    per_beam: FloatArray,
    vectors: FloatArray,
    covariances: FloatArray,
) -> None:
    """Write what the emitted of n pings say, their beams having `values` (3 k, n) by now: of `ideals` and the errors.

    `rough` (m/s) is the deviation of each axis of a solution in the classic rules, `rows` (3,) those of its draws, -1
    for none. `validity` (3, n) is told as it is: when echoes left the bottom and the layer (s), and how far (m) this
    went. `sound` and `assumed` (m/s) are as for `hear`.
    """
    count = axes.shape[0]
    for n in range(time.shape[0]):
        for k in range(count):
            received[BOTTOM_VELOCITY, n, k], received[WATER_VELOCITY, n, k] = values[k, n], values[count + k, n]
            received[BEAM_RANGE, n, k] = values[2 * count + k, n]
            for t in range(2):
                if rules[REPORTED_STDDEV + t] > 0.0:
                    received[BOTTOM_STDDEV + t, n, k] = rules[REPORTED_STDDEV + t]
    out = (scalars, per_beam, vectors, covariances)
    _solve_all(rules, frame, received, attitude, time, emitted, axes, positions, unlocked_until, *out)
    if rules[DIALECT] == UUV:
        _write_uuv_velocity(
            frame, sensor_velocity, attitude, emitted, rules[REPORTED_STDDEV], scalars, vectors, covariances
        )
    if rows[0] >= 0:
        _add_axis_noise(
            frame, attitude, emitted, rows, draws, axis_stddev, rules[DIALECT] == DSROS, scalars, vectors, covariances
        )
    for n in range(time.shape[0]):
        if emitted[n]:
            through = scalars[VELOCITY_MODE, n] == WATER_TRACK
            scalars[TIME_OF_VALIDITY, n] = validity[1, n] if through else validity[0, n]
            if vectors[THROUGH_WATER, n, 0] == vectors[THROUGH_WATER, n, 0]:
                scalars[WATER_TIME_OF_VALIDITY, n], scalars[LAYER_FAR_BOUNDARY, n] = validity[1, n], validity[2, n]
        scalars[SOUND_SPEED, n] = assumed_sound_speed if assumed_sound_speed > 0.0 else sound_speed[n]


@kernel
def make_ideal_beams(
    echo: FloatArray,
    incidence: FloatArray,
    bottom_velocity: FloatArray,
    water_velocity: FloatArray,
    received: FloatArray,
    values: FloatArray,
) -> None:
    """Write what `hear` and the slow errors write, of true ranges (m), cosines and velocities (m/s), without errors."""
    count = echo.shape[1]
    (
        received[TRUE_RANGE],
        received[INCIDENCE_COSINE],
        received[LOCK_PROBABILITY],
        received[LOCK_DRAW],
        received[DROPOUT_DRAW],
    ) = echo, incidence, 1.0, 0.0, 1.0
    received[BOTTOM_STDDEV], received[WATER_STDDEV] = 0.0, 0.0
    for n in range(echo.shape[0]):
        for k in range(count):
            values[k, n], values[count + k, n], values[2 * count + k, n] = (
                bottom_velocity[n, k],
                water_velocity[n, k],
                echo[n, k],
            )


@kernel
def solve_ideal_ping(
    rules: FloatArray,
    frame: FloatArray,
    echo: FloatArray,
    incidence: FloatArray,
    bottom_velocity: FloatArray,
    water_velocity: FloatArray,
    attitude: Quaternions,
    sensor_velocity: Vectors,
    axes: Vectors,
    positions: Vectors,
    validity_time: Times,
    water_validity_time: Times,
    far_boundary: FloatArray,
    sound_speed: FloatArray,
    scalars: FloatArray,
    per_beam: FloatArray,
    vectors: FloatArray,
    covariances: FloatArray,
) -> None:
    """Write what n pings say of what is `make_ideal_beams`, each of which is told; the rest as for `say`."""
    n, k = echo.shape
    received, values, validity = np.empty((10, n, k)), np.empty((3 * k, n)), np.empty((3, n))
    make_ideal_beams(echo, incidence, bottom_velocity, water_velocity, received, values)
    validity[0], validity[1], validity[2] = validity_time, water_validity_time, far_boundary
    emitted, nothing = np.ones(n, np.bool_), (np.full(3, -1), np.empty((0, 0)))
    beside = (axes, positions, np.full(k, -math.inf), validity, sound_speed, 0.0, 0.0)
    out = (scalars, per_beam, vectors, covariances)
    solve_ping(
        rules, frame, values, received, attitude, sensor_velocity, validity_time, emitted, *beside, *nothing, *out
    )


PER_BEAM = -1
"""Axes of an array with a number for each beam."""

OUTPUTS = (
    ("velocity", 3, "m/s"),
    ("velocity_covariance", (3, 3), "m^2/s^2"),
    ("altitude", 0, "m"),
    ("course", 0, "rad"),
    ("speed", 0, "m/s"),
    ("beam_range", PER_BEAM, "m"),
    ("beam_velocity", PER_BEAM, "m/s"),
    ("beam_valid", PER_BEAM, "1"),
    ("range_validity", PER_BEAM, "1"),
    ("beam_deviation", PER_BEAM, "m/s"),
    ("water_beam_velocity", PER_BEAM, "m/s"),
    ("water_beam_deviation", PER_BEAM, "m/s"),
    ("num_good_beams", 0, "1"),
    ("velocity_mode", 0, "1"),
    ("error_velocity", 0, "m/s"),
    ("long_term_velocity", 3, "m/s"),
    ("long_term_covariance", (3, 3), "m^2/s^2"),
    ("time_of_validity", 0, "s"),
    ("water_velocity", 3, "m/s"),
    ("water_velocity_covariance", (3, 3), "m^2/s^2"),
    ("sound_speed", 0, "m/s"),
    ("water_time_of_validity", 0, "s"),
    ("water_far", 0, "m"),
)
"""Name, axes and unit of each array of a reading."""

IDEAL_OUTPUTS = (
    *("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity"),
    *("error_velocity", "water_velocity", "water_beam_velocity"),
)
"""Outputs that a perfect instrument has too; what is true of the rest is said by none."""

ECHO_RANGE, ECHO_INCIDENCE, BOTTOM_BEAM_VELOCITY, WATER_BEAM_VELOCITY_KEY = (
    "echo_range",
    "echo_incidence",
    "echo_velocity",
    "layer_velocity",
)
ATTITUDE, SENSOR_VELOCITY, LISTENING_TIME = "attitude", "own_velocity", "listening"
TIME_OF_VALIDITY_KEY, WATER_TIME_OF_VALIDITY_KEY, LAYER_FAR_BOUNDARY_KEY = "bottom_time", "layer_time", "layer_far"


class PingArrays(NamedTuple):
    """What n pings say, as kernels write it (`_doppler.ping`)."""

    scalars: FloatArray
    per_beam: FloatArray
    vectors: FloatArray
    covariances: FloatArray

    def ideal_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays that a perfect instrument has too, by name."""
        scalars, per_beam, vectors, _ = self
        over = (vectors[OVER_BOTTOM], scalars[ALTITUDE], scalars[COURSE], scalars[SPEED])
        along = (per_beam[SLANT_RANGE], per_beam[BEAM_VELOCITY], scalars[ERROR_VELOCITY])
        through = (vectors[THROUGH_WATER], per_beam[WATER_BEAM_VELOCITY])
        return dict(zip(IDEAL_OUTPUTS, (*over, *along, *through), strict=True))

    def named_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays of a reading by name, in the order of `OUTPUTS`."""
        altitude, course, speed, count, mode, error, about, sound, water_about, far = self.scalars
        slant, along, good, size, through, through_size, validity = self.per_beam
        told, water, long_term = self.vectors
        told_square, water_square, long_term_square = self.covariances
        return {
            "velocity": told,
            "velocity_covariance": told_square,
            "altitude": altitude,
            "course": course,
            "speed": speed,
            "beam_range": slant,
            "beam_velocity": along,
            "beam_valid": good,
            "range_validity": validity,
            "beam_deviation": size,
            "water_beam_velocity": through,
            "water_beam_deviation": through_size,
            "num_good_beams": count,
            "velocity_mode": mode,
            "error_velocity": error,
            "long_term_velocity": long_term,
            "long_term_covariance": long_term_square,
            "time_of_validity": about,
            "water_velocity": water,
            "water_velocity_covariance": water_square,
            "sound_speed": sound,
            "water_time_of_validity": water_about,
            "water_far": far,
        }


def allocate(pings: int, beams: int) -> PingArrays:
    """Return room for what so many pings of so many beams say."""
    return PingArrays(
        np.empty((10, pings)), np.empty((7, pings, beams)), np.empty((3, pings, 3)), np.empty((3, pings, 3, 3))
    )


def list_processes(
    beams: int, bottom: DopplerTrack, water: DopplerTrack, dialect: int, *, locks: bool, drops: bool, turns: bool
) -> tuple[RandomProcess, ...]:
    """Return the random processes of so many beams beside those of their channels, in the order of their draws.

    `locks`: a beam is locked by chance; `drops`: its pings drop out; `turns`: serial numbers are misaligned.
    """
    axes = [RandomProcess(f"velocity_{a}", "white") for a in "xyz"] if dialect != PHYSICAL else []
    rough = (("bottom", bottom, UUV), ("water", water, DSROS))
    normal = [what for what, track, not_by in rough if track.is_white and dialect != not_by]
    found = [RandomProcess(f"{what}_{i}", "white") for what in normal for i in range(beams)]
    uniform = [what for what, acts in (("lock", locks), ("dropout", drops)) if acts]
    found += [RandomProcess(f"beam_{i}", what, kind="uniform") for what in uniform for i in range(beams)]
    once = [
        RandomProcess(channel, name, initial=count, per_tick=0)
        for channel, name, count, acts in (
            ("bottom", "long_term", 4, bottom.long_term_scale + bottom.long_term_offset > 0.0),
            ("water", "long_term", 4, water.long_term_scale + water.long_term_offset > 0.0),
            ("mounting", "misalignment", 3, turns),
        )
        if acts
    ]
    return (*once, *axes, *found)


def _find_rows(own: Sequence[RandomProcess], beams: int, what: str, process: str) -> IntArray:
    """Return the rows of a process's draws, one a beam or axis; -1 where it does not act."""
    names = [p for p in own if p.per_tick]
    found = [i for i, p in enumerate(names) if p.name == process and p.channel.rpartition("_")[0] == what]
    return np.array(found or [-1] * beams, dtype=np.int64)


def make_draw_tables(own: Sequence[RandomProcess], beams: int, depth: int) -> tuple[IntArray, IntArray]:
    """Return rows of draws: (4, k) of each beam as `ping.hear` takes them, and (3,) or more of each axis.

    `depth` rows, those of the channels, stand before the ones of `own`.
    """
    given = (("bottom", "white"), ("water", "white"), ("beam", "lock"), ("beam", "dropout"), ("velocity", "white"))
    found = [_find_rows(own, beams, *one) for one in given]
    *each, axes = (np.where(rows < 0, rows, rows + depth) for rows in found)
    return np.array(each), axes


DVL_SOURCE_ARRAYS = ("beam_velocity", "water_beam_velocity", "beam_range")
"""Arrays of the beams that faults act on, in the order of the noise channels."""


def add_dvl_faults(values: FloatArray, ideal: Mapping[str, AnyArray]) -> None:
    """Add the offsets of injected faults in `ideal` to the measurements (n, 3 k) of n pings; NaN stays NaN."""
    beams = values.shape[1] // len(DVL_SOURCE_ARRAYS)
    for i, name in enumerate(DVL_SOURCE_ARRAYS):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            values[:, i * beams : (i + 1) * beams] += ideal[f"{name}{OFFSET_SUFFIX}"]
