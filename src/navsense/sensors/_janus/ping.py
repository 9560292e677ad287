"""One ping after another: from what came back along the beams to what a Doppler instrument tells.

Beam velocities as they are heard, for a true one u.v along the axis u, with a the mean of the axes:

    b = (1 + l) (u.v + u.(R - 1) v_s + (c0 / c - 1) d) + u.o + sigma w
    d = u.v of pistons,   (u.a) (a.v_s) of a phased array

l and o are the long-term scale and offset of this serial number, R its misalignment, v_s the velocity in the sensor's
frame against what is tracked, which may move, c0 the speed of sound that it assumes and c the true one, w standard
normals. A phased array steers by phase: c leaves its horizontal velocities as they are and scales what is along a
alone.

A beam is good where its echo is within the limits before and after the errors, met the bottom at no flatter an angle
than asked for, was loud enough, and where lock was not lost within the time of re-acquisition. A solution is made of
three good beams or more, weighted by what is stated of each, and rejected where its error velocity is too large.

Kernels take few arrays that hold much, as a call costs by their number: `heard` (10, n, k) of n pings and k beams has
what came back; `figures` (6, n), `beams` (4, n, k), `vectors` (2, n, 3) and `squares` (2, n, 3, 3) what is told.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from navsense.compiled import kernel
from navsense.rotation import multiply, rotate
from navsense.sensors._janus.beams import LEAST_BEAMS
from navsense.sensors._janus.solution import altitude, error_velocity, over_ground, solve
from navsense.sensors._janus.strength import factor as grown
from navsense.sensors._janus.strength import locked_probability, strength
from navsense.sensors._janus.track import deviation
from navsense.typing import BoolArray, FloatArray, IntArray, Quaternions, Times, Vectors

MINIMUM, MAXIMUM, INCIDENCE, ERROR_LIMIT, REACQUISITION, DROPOUT, BOTTOM_MODE, WATER_MODE, RULES = range(9)
"""Places in `rules` (9,): ranges in m, a cosine, a velocity in m/s, s, a probability, and three choices."""

NEVER, ALWAYS, BEST, FALLBACK = range(4)
"""When a kind of tracking is used."""

PHYSICAL, UUV, DSROS = range(3)
"""Whose rules hold."""

ECHO, COSINE, RANGE, BOTTOM, WATER, BOTTOM_SIZE, WATER_SIZE, LOCK, CHANCE, DROPPED = range(10)
"""Places in `heard`: true range and cosine of incidence, the range and velocities with their errors, the deviations
stated of these, how likely the bottom is heard, and uniform draws of that and of a dropout."""

ALTITUDE, COURSE, SPEED, COUNT, MODE, ERROR = range(6)
"""Places in `figures`."""

SLANT, ALONG, GOOD, SIZE, THROUGH, THROUGH_SIZE = range(6)
"""Places in `beams`."""

NO_TRACK, BOTTOM_TRACK, WATER_TRACK = 0.0, 1.0, 2.0
"""What a velocity is against."""

ROUNDING: Final = 1e-9
"""s: by so much an instant may be missed by rounding alone, where a time is a whole number of ticks."""

CLASSIC_COSINE: Final = math.cos(math.pi / 6.0)
"""What `dsros_dvl` multiplies slant ranges by, whatever its beams' angle."""


@kernel
def disturb(
    true: FloatArray,
    own: Vectors,
    axes: Vectors,
    axis: FloatArray,
    mis: FloatArray,
    ratio: FloatArray,
    phased: bool,
    scale: float,
    offset: FloatArray,
    size: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    out: FloatArray,
) -> None:
    """Write beam velocities (n, k) m/s as they are heard, but for the slow errors of each beam.

    `own` (n, 3) is the velocity in the sensor's frame against what is tracked, `ratio` (n,) c0 / c, `mis` (4,) the
    misalignment, `rows` (k,) those of the normal draws, -1 for none.
    """
    turned = mis[1] != 0.0 or mis[2] != 0.0 or mis[3] != 0.0
    for n in range(true.shape[0]):
        x, y, z = own[n, 0], own[n, 1], own[n, 2]
        along = axis[0] * x + axis[1] * y + axis[2] * z
        dx, dy, dz = 0.0, 0.0, 0.0
        if turned:
            rx, ry, rz = rotate(mis[0], mis[1], mis[2], mis[3], x, y, z)
            dx, dy, dz = rx - x, ry - y, rz - z
        for k in range(true.shape[1]):
            ux, uy, uz = axes[k, 0], axes[k, 1], axes[k, 2]
            scaled = true[n, k]
            if phased:
                scaled = (ux * axis[0] + uy * axis[1] + uz * axis[2]) * along
            told = true[n, k] + (ux * dx + uy * dy + uz * dz) + (ratio[n] - 1.0) * scaled
            told = (1.0 + scale) * told + (ux * offset[0] + uy * offset[1] + uz * offset[2])
            if rows[k] >= 0:
                told += size[n, k] * draws[rows[k], n]
            out[n, k] = told


@kernel
def _hear(
    rules: FloatArray, heard: FloatArray, n: int, time: float, lost: FloatArray, good: BoolArray, beams: FloatArray
) -> int:
    """Decide which beams (2, k) of ping n are good; return how many have the bottom.

    `lost` (k,) is till when (s) a beam has none.
    """
    count, classic = 0, rules[RULES] == UUV
    least, most = rules[MINIMUM], rules[MAXIMUM]
    for k in range(heard.shape[2]):
        true, shown = heard[ECHO, n, k], heard[RANGE, n, k]
        found = least <= true <= most and heard[COSINE, n, k] >= rules[INCIDENCE]
        if classic:
            shown = min(max(shown if found else (least if true < least else most), least), most)
        else:
            found = found and least <= shown <= most
        found = found and heard[CHANCE, n, k] < heard[LOCK, n, k] and heard[DROPPED, n, k] >= rules[DROPOUT]
        if not found:
            lost[k] = time + rules[REACQUISITION]
        found = found and (time >= lost[k] - ROUNDING or rules[REACQUISITION] == 0.0)
        good[0, k], good[1, k] = found, heard[WATER, n, k] == heard[WATER, n, k]
        beams[SLANT, n, k] = shown if found or classic else math.nan
        beams[ALONG, n, k] = heard[BOTTOM, n, k] if found else math.nan
        beams[SIZE, n, k] = heard[BOTTOM_SIZE, n, k] if found else math.nan
        beams[GOOD, n, k] = 1.0 if found else 0.0
        if rules[WATER_MODE] != NEVER and good[1, k]:
            beams[THROUGH, n, k], beams[THROUGH_SIZE, n, k] = heard[WATER, n, k], heard[WATER_SIZE, n, k]
        count += 1 if found else 0
    return count


@kernel
def _is_solved(
    rules: FloatArray,
    axes: Vectors,
    velocity: FloatArray,
    size: FloatArray,
    good: BoolArray,
    out: FloatArray,
    covariance: FloatArray,
) -> bool:
    """Solve for a velocity and its covariance; tell whether there is one that is not rejected."""
    used = solve(axes, velocity, size, good, out, covariance)
    if used < LEAST_BEAMS or (rules[RULES] == DSROS and used < axes.shape[0]):
        return False
    return rules[ERROR_LIMIT] == math.inf or not abs(error_velocity(axes, velocity, good)) > rules[ERROR_LIMIT]


@kernel
def _tell(frame: FloatArray, vector: FloatArray, covariance: FloatArray, out: FloatArray, square: FloatArray) -> None:
    """Write a velocity (3,) and its covariance (3, 3) in the frame that is told of, turned by `frame` (4,)."""
    w, x, y, z = frame[0], frame[1], frame[2], frame[3]
    out[0], out[1], out[2] = rotate(w, x, y, z, vector[0], vector[1], vector[2])
    for j in range(3):
        a, b, c = rotate(w, x, y, z, covariance[0, j], covariance[1, j], covariance[2, j])
        square[0, j], square[1, j], square[2, j] = a, b, c
    for i in range(3):
        a, b, c = rotate(w, x, y, z, square[i, 0], square[i, 1], square[i, 2])
        square[i, 0], square[i, 1], square[i, 2] = a, b, c


@kernel
def _is_water_better(rules: FloatArray, covariance: FloatArray) -> bool:
    """Tell which of two solutions is shown: the bottom's, unless the best is asked for and the water's is surer."""
    if rules[BOTTOM_MODE] != BEST or rules[WATER_MODE] == FALLBACK:
        return False
    bottom, water = covariance[0], covariance[1]
    surer: bool = water[0, 0] + water[1, 1] + water[2, 2] < bottom[0, 0] + bottom[1, 1] + bottom[2, 2]
    return surer


@kernel
def _altitude(
    rules: FloatArray, q: FloatArray, axes: Vectors, places: Vectors, good: BoolArray, slant: FloatArray
) -> float:
    """Return the altitude (m) over slant ranges (k,) m by the rules in force, NaN where it is out of range."""
    if rules[RULES] == PHYSICAL:
        return altitude(axes, places, slant, good, q[0], q[1], q[2], q[3])
    total, count, least, most = 0.0, 0, 0, 0
    for k in range(axes.shape[0]):
        if rules[RULES] == UUV or good[k]:
            total += slant[k]
            count += 1
            least += 1 if slant[k] == rules[MINIMUM] else 0
            most += 1 if slant[k] == rules[MAXIMUM] else 0
    if count == 0 or (rules[RULES] == UUV and max(least, most) == count):
        return math.nan
    return total / count * (1.0 if rules[RULES] == UUV else CLASSIC_COSINE)


@kernel
def _course(rules: FloatArray, told: FloatArray, own: FloatArray, q: FloatArray) -> tuple[float, float]:
    """Return course (rad) and speed (m/s) over the ground of a velocity as told (3,) and in the sensor's frame (3,)."""
    if rules[RULES] == DSROS:
        course = math.atan2(told[0], told[1])
        speed = math.sqrt(told[0] * told[0] + told[1] * told[1])
        return course if course >= 0.0 else course + 2.0 * math.pi, speed
    return over_ground(own[0], own[1], own[2], q[0], q[1], q[2], q[3], 0.0)


@kernel
def tell(
    rules: FloatArray,
    frame: FloatArray,
    heard: FloatArray,
    attitude: Quaternions,
    time: Times,
    emitted: BoolArray,
    axes: Vectors,
    places: Vectors,
    lost: FloatArray,
    figures: FloatArray,
    beams: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
    good: BoolArray,
    solved: FloatArray,
    covariance: FloatArray,
) -> None:
    """Write what the emitted of n pings say, at `time` (n,) s; all is NaN before, and what is not known stays so.

    `attitude` (n, 4) takes the sensor's frame to east, north, up. Room for one ping: `good` (2, k), `solved` (2, 3) and
    `covariance` (2, 3, 3), of the bottom and of the water.
    """
    for n in range(time.shape[0]):
        if not emitted[n]:
            continue
        figures[COUNT, n] = _hear(rules, heard, n, time[n], lost, good, beams)
        figures[ALTITUDE, n] = _altitude(rules, attitude[n], axes, places, good[0], beams[SLANT, n])
        bottom = rules[BOTTOM_MODE] != NEVER and _is_solved(
            rules, axes, heard[BOTTOM, n], heard[BOTTOM_SIZE, n], good[0], solved[0], covariance[0]
        )
        water = rules[WATER_MODE] != NEVER and _is_solved(
            rules, axes, heard[WATER, n], heard[WATER_SIZE, n], good[1], solved[1], covariance[1]
        )
        instead = water and (not bottom or _is_water_better(rules, covariance))
        figures[MODE, n] = WATER_TRACK if instead else (BOTTOM_TRACK if bottom else NO_TRACK)
        if water and (instead or rules[WATER_MODE] == ALWAYS):
            _tell(frame, solved[1], covariance[1], vectors[1, n], squares[1, n])
        if instead:
            vectors[0, n], squares[0, n] = vectors[1, n], squares[1, n]
            figures[ERROR, n] = error_velocity(axes, heard[WATER, n], good[1])
            figures[COUNT, n] = _count(good[1])
        elif bottom:
            _tell(frame, solved[0], covariance[0], vectors[0, n], squares[0, n])
            figures[ERROR, n] = error_velocity(axes, heard[BOTTOM, n], good[0])
            figures[COURSE, n], figures[SPEED, n] = _course(rules, vectors[0, n], solved[0], attitude[n])


@kernel
def _count(good: BoolArray) -> int:
    """Return how many beams are good."""
    count = 0
    for k in range(good.shape[0]):
        count += 1 if good[k] else 0
    return count


@kernel
def schedule(time: FloatArray, listening: FloatArray, last: float, emitted: BoolArray) -> float:
    """Decide which ticks (n,) s tell of a ping; return when (s) the last of them was.

    A ping goes out when the one before has been told, and is told at the first tick after all of its echoes are back,
    `listening` (n,) s later: the deeper the water, the fewer.
    """
    for n in range(time.shape[0]):
        emitted[n] = time[n] - listening[n] >= last - ROUNDING
        if emitted[n]:
            last = time[n]
    return last


@kernel
def facing_earth(rotation_ws: Quaternions, heading: FloatArray, out: Quaternions) -> None:
    """Write attitudes (n, 4) of the sensor in east, north, up; `heading` (4,) takes the world's axes there."""
    for n in range(rotation_ws.shape[0]):
        out[n, 0], out[n, 1], out[n, 2], out[n, 3] = multiply(
            heading[0],
            heading[1],
            heading[2],
            heading[3],
            rotation_ws[n, 0],
            rotation_ws[n, 1],
            rotation_ws[n, 2],
            rotation_ws[n, 3],
        )


@kernel
def own_velocity(velocity_w: Vectors, rotation_ws: Quaternions, out: Vectors) -> None:
    """Write velocities (n, 3) m/s of the world in the sensor's frame."""
    for n in range(velocity_w.shape[0]):
        w, x, y, z = rotation_ws[n, 0], -rotation_ws[n, 1], -rotation_ws[n, 2], -rotation_ws[n, 3]
        out[n, 0], out[n, 1], out[n, 2] = rotate(w, x, y, z, velocity_w[n, 0], velocity_w[n, 1], velocity_w[n, 2])


@kernel
def _relative(
    axes: Vectors,
    heard: FloatArray,
    own: Vectors,
    size: FloatArray,
    good: BoolArray,
    solved: FloatArray,
    covariance: FloatArray,
    out: Vectors,
) -> None:
    """Write velocities (n, 3) m/s against what is tracked."""
    for n in range(out.shape[0]):
        for k in range(axes.shape[0]):
            good[k] = heard[n, k] == heard[n, k]
        used = solve(axes, heard[n], size, good, solved, covariance)
        for i in range(3):
            out[n, i] = solved[i] if used >= LEAST_BEAMS else own[n, i]


def relative(axes: Vectors, heard: FloatArray, own: Vectors) -> Vectors:
    """Return velocities (n, 3) m/s against what true beam velocities (n, k) are against, which may move.

    Where these are too few it is `own` (n, 3), that in the world.
    """
    count, out = axes.shape[0], np.empty(own.shape)
    good, solved, covariance = np.empty(count, dtype=np.bool_), np.empty(3), np.empty((3, 3))
    _relative(axes, heard, own, np.zeros(count), good, solved, covariance, out)
    return out


@kernel
def gathered(rows: IntArray, draws: FloatArray, out: FloatArray) -> None:
    """Write the draws (n, k) of rows (k,)."""
    for k in range(rows.shape[0]):
        for n in range(out.shape[0]):
            out[n, k] = draws[rows[k], n]


@kernel
def plain(
    frame: FloatArray,
    own: Vectors,
    attitude: Quaternions,
    emitted: BoolArray,
    stated: float,
    figures: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
) -> None:
    """Write velocities as the UUV Simulator has them: the sensor's own (n, 3) m/s, whatever the beams hear."""
    for n in range(own.shape[0]):
        if not emitted[n]:
            continue
        x, y, z, q = own[n, 0], own[n, 1], own[n, 2], attitude[n]
        figures[COURSE, n], figures[SPEED, n] = over_ground(x, y, z, q[0], q[1], q[2], q[3], 0.0)
        vectors[0, n, 0], vectors[0, n, 1], vectors[0, n, 2] = rotate(frame[0], frame[1], frame[2], frame[3], x, y, z)
        figures[MODE, n], figures[ERROR, n] = BOTTOM_TRACK, math.nan
        for i in range(3):
            for j in range(3):
                squares[0, n, i, j] = stated * stated if i == j else 0.0


@kernel
def roughen(
    rows: IntArray,
    draws: FloatArray,
    size: float,
    rules: FloatArray,
    figures: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
) -> None:
    """Add noise to each axis of solutions: to all of them as in the UUV Simulator, else to those through water."""
    through = rules[RULES] == DSROS
    track = 1 if through else 0
    for n in range(vectors.shape[1]):
        for i in range(3):
            vectors[track, n, i] += size * draws[rows[i], n]
            if through and vectors[1, n, i] == vectors[1, n, i]:
                for j in range(3):
                    squares[1, n, i, j] = size * size if i == j else 0.0
        if through and figures[MODE, n] == WATER_TRACK:
            vectors[0, n], squares[0, n] = vectors[1, n], squares[1, n]


@kernel
def deviations(
    floor: float,
    per_speed: float,
    reference_rate: float,
    rate: float,
    own: Vectors,
    factor: FloatArray,
    out: FloatArray,
) -> None:
    """Write the deviation (n, k) m/s of each beam's velocity, the sensor's own being (n, 3) m/s; see `Track`."""
    for n in range(out.shape[0]):
        speed = math.sqrt(own[n, 0] * own[n, 0] + own[n, 1] * own[n, 1] + own[n, 2] * own[n, 2])
        for k in range(out.shape[1]):
            out[n, k] = deviation(floor, per_speed, speed, rate, reference_rate, factor[n, k])


@kernel
def strengths(
    level: float,
    absorption: float,
    correlation: float,
    threshold: float,
    slope: float,
    echo: FloatArray,
    incidence: FloatArray,
    factor: FloatArray,
    lock: FloatArray,
) -> None:
    """Write by how much deviations grow (n, k), and how likely a beam hears the bottom (n, k); see `EchoStrength`."""
    for n in range(echo.shape[0]):
        for k in range(echo.shape[1]):
            shown = strength(level, absorption, echo[n, k], incidence[n, k])
            factor[n, k] = grown(shown, correlation)
            lock[n, k] = locked_probability(shown, threshold, slope)
