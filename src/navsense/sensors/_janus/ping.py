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
"""Places in `rules` (11,): ranges in m, a cosine, a velocity in m/s, s, a probability, and three choices."""

STATED, WATER_STATED = 9, 10
"""Places in `rules`: what is stated of a beam over the bottom and through the water (m/s), 0 for what it really is."""

PER_SPEED, REFERENCE_RATE, FASTEST = range(3)
"""Places in a row of `tracks` (2, 3): see `Track`."""

NOISE, WATER_NOISE, LOCKED, DROPS = range(4)
"""Rows of `rows` (4, k): which row of draws is each beam's, -1 where it does not act."""

NEVER, ALWAYS, BEST, FALLBACK = range(4)
"""When a kind of tracking is used."""

PHYSICAL, UUV, DSROS = range(3)
"""Whose rules hold."""

ECHO, COSINE, RANGE, BOTTOM, WATER, BOTTOM_SIZE, WATER_SIZE, LOCK, CHANCE, DROPPED = range(10)
"""Places in `heard`: true range and cosine of incidence, the range and velocities with their errors, the deviations
stated of these, how likely the bottom is heard, and uniform draws of that and of a dropout."""

ALTITUDE, COURSE, SPEED, COUNT, MODE, ERROR, ABOUT, SOUND, WATER_ABOUT, FAR = range(10)
"""Places in `figures`; from `ABOUT` on the time of validity (s), the speed of sound that is assumed (m/s), the time of
validity of what is through the water, and how far (m) its layer went."""

OVER_BOTTOM, THROUGH_WATER, LONG_TERM = range(3)
"""Places in `vectors` and `squares`; the first is what is told, whatever is tracked."""

SLANT, ALONG, GOOD, SIZE, THROUGH, THROUGH_SIZE, VALIDITY = range(7)
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
def bent(slant: float, ratio: float) -> float:
    """Return cos j' / cos j of a phased array's beam, `slant` cos j, where it assumes the speed of sound `ratio` c."""
    sine = (1.0 - slant * slant) / (ratio * ratio)
    return math.sqrt(1.0 - sine) / slant if sine < 1.0 else math.nan


@kernel
def _disturb(
    true: FloatArray,
    own: Vectors,
    axes: Vectors,
    axis: FloatArray,
    mis: FloatArray,
    ratio: FloatArray,
    phased: bool,
    systematic: FloatArray,
    size: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    out: FloatArray,
) -> None:
    """Write beam velocities (k, n) m/s as they are heard, but for the slow errors of each beam.

    `own` (n, 3) is the velocity in the sensor's frame against what is tracked, `ratio` (n,) c0 / c, `mis` (4,) the
    misalignment, `systematic` (4,) scale and offset, `rows` (k,) those of the normal draws, -1 for none.
    """
    turned = mis[1] != 0.0 or mis[2] != 0.0 or mis[3] != 0.0
    scale, offset = systematic[0], systematic[1:]
    for n in range(true.shape[0]):
        x, y, z = own[n, 0], own[n, 1], own[n, 2]
        along = axis[0] * x + axis[1] * y + axis[2] * z
        dx, dy, dz = 0.0, 0.0, 0.0
        if turned:
            rx, ry, rz = rotate(mis[0], mis[1], mis[2], mis[3], x, y, z)
            dx, dy, dz = rx - x, ry - y, rz - z
        for k in range(true.shape[1]):
            ux, uy, uz = axes[k, 0], axes[k, 1], axes[k, 2]
            scaled, grown_by = true[n, k], ratio[n]
            if phased:
                slant = ux * axis[0] + uy * axis[1] + uz * axis[2]
                scaled, grown_by = slant * along, ratio[n] * bent(slant, ratio[n])
            told = true[n, k] + (ux * dx + uy * dy + uz * dz) + (grown_by - 1.0) * scaled
            told = (1.0 + scale) * told + (ux * offset[0] + uy * offset[1] + uz * offset[2])
            if rows[k] >= 0:
                told += size[n, k] * draws[rows[k], n]
            out[k, n] = told


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
        comes = heard[DROPPED, n, k] >= rules[DROPOUT]
        found = found and heard[CHANCE, n, k] < heard[LOCK, n, k] and comes
        if not found:
            lost[k] = time + rules[REACQUISITION]
        found = found and (time >= lost[k] - ROUNDING or rules[REACQUISITION] == 0.0)
        good[0, k], good[1, k] = found, comes and heard[WATER, n, k] == heard[WATER, n, k]
        beams[SLANT, n, k] = shown if found or classic else math.nan
        beams[ALONG, n, k] = heard[BOTTOM, n, k] if found else math.nan
        beams[SIZE, n, k] = heard[BOTTOM_SIZE, n, k] if found else math.nan
        beams[GOOD, n, k] = 1.0 if found else 0.0
        if rules[WATER_MODE] != NEVER and good[1, k]:
            beams[THROUGH, n, k], beams[THROUGH_SIZE, n, k] = heard[WATER, n, k], heard[WATER_SIZE, n, k]
        beams[VALIDITY, n, k] = IN_RANGE if found else _validity(rules, heard, n, k)
        count += 1 if found else 0
    return count


@kernel
def _validity(rules: FloatArray, heard: FloatArray, n: int, k: int) -> float:
    """Return why beam k of ping n has no valid range: no usable echo, below the minimum, or above the maximum."""
    true, shown = heard[ECHO, n, k], heard[RANGE, n, k]
    if not (heard[DROPPED, n, k] >= rules[DROPOUT] and true == true):
        return NO_ECHO
    if true < rules[MINIMUM] or true > rules[MAXIMUM]:
        return TOO_LOW if true < rules[MINIMUM] else TOO_HIGH
    if not (heard[COSINE, n, k] >= rules[INCIDENCE] and heard[CHANCE, n, k] < heard[LOCK, n, k]):
        return NO_ECHO
    if shown < rules[MINIMUM] or shown > rules[MAXIMUM]:
        return TOO_LOW if shown < rules[MINIMUM] else TOO_HIGH
    return NO_ECHO


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
def _tell_all(
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
) -> None:
    """Write what the emitted of n pings say, at `time` (n,) s; what is not known is NaN.

    `attitude` (n, 4) takes the sensor's frame to east, north, up.
    """
    figures[:], beams[:], vectors[:], squares[:] = math.nan, math.nan, math.nan, math.nan
    good = np.empty((2, axes.shape[0]), dtype=np.bool_)
    solved, covariance = np.empty((2, 3)), np.empty((2, 3, 3))
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

    A ping goes out `listening` (n,) s before the tick at which its last echo is back, and not before the one before it
    has been told: the deeper the water, the fewer.
    """
    for n in range(time.shape[0]):
        emitted[n] = time[n] - listening[n] >= last - ROUNDING
        if emitted[n]:
            last = time[n]
    return last


@kernel
def carried(
    velocity_w: Vectors, rotation_ws: Quaternions, heading: FloatArray, attitude: Quaternions, own: Vectors
) -> None:
    """Write attitudes (n, 4) of the sensor in east, north, up, and velocities (n, 3) m/s of the world in its frame.

    `heading` (4,) takes the world's axes to east, north, up.
    """
    h = heading
    for n in range(velocity_w.shape[0]):
        w, x, y, z = rotation_ws[n, 0], rotation_ws[n, 1], rotation_ws[n, 2], rotation_ws[n, 3]
        a, b, c, d = multiply(h[0], h[1], h[2], h[3], w, x, y, z)
        attitude[n, 0], attitude[n, 1], attitude[n, 2], attitude[n, 3] = a, b, c, d
        own[n, 0], own[n, 1], own[n, 2] = rotate(w, -x, -y, -z, velocity_w[n, 0], velocity_w[n, 1], velocity_w[n, 2])


@kernel
def _relative(axes: Vectors, heard: FloatArray, own: Vectors, out: Vectors) -> None:
    """Write velocities (n, 3) m/s against what true beam velocities (n, k) are against, which may move.

    Where these are too few it is `own` (n, 3), that in the world.
    """
    count = axes.shape[0]
    good, size, solved, covariance = np.empty(count, np.bool_), np.zeros(count), np.empty(3), np.empty((3, 3))
    for n in range(out.shape[0]):
        for k in range(count):
            good[k] = heard[n, k] == heard[n, k]
        used = solve(axes, heard[n], size, good, solved, covariance)
        for i in range(3):
            out[n, i] = solved[i] if used >= LEAST_BEAMS else own[n, i]


@kernel
def _gathered(rows: IntArray, draws: FloatArray, nothing: float, out: FloatArray) -> None:
    """Write the draws (n, k) of rows (k,); `nothing` where there are none."""
    for k in range(rows.shape[0]):
        for n in range(out.shape[0]):
            out[n, k] = draws[rows[k], n] if rows[k] >= 0 else nothing


@kernel
def _plain(
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
def _roughen(
    frame: FloatArray,
    attitude: Quaternions,
    emitted: BoolArray,
    rows: IntArray,
    draws: FloatArray,
    size: float,
    through: bool,
    figures: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
) -> None:
    """Add noise to each axis of solutions: to all of them as in the UUV Simulator, else to those `through` water.

    Course and speed are those of the velocity that is told, which `frame` (4,) turned out of the sensor's.
    """
    track = 1 if through else 0
    for n in range(vectors.shape[1]):
        for i in range(3):
            vectors[track, n, i] += size * draws[rows[i], n]
            if through and vectors[1, n, i] == vectors[1, n, i]:
                for j in range(3):
                    squares[1, n, i, j] = size * size if i == j else 0.0
        if through and figures[MODE, n] == WATER_TRACK:
            vectors[0, n], squares[0, n] = vectors[1, n], squares[1, n]
        if not through and emitted[n]:
            told, q = vectors[0, n], attitude[n]
            x, y, z = rotate(frame[0], -frame[1], -frame[2], -frame[3], told[0], told[1], told[2])
            figures[COURSE, n], figures[SPEED, n] = over_ground(x, y, z, q[0], q[1], q[2], q[3], 0.0)


@kernel
def _deviations(
    floor: float, track: FloatArray, rate: float, own: Vectors, factor: FloatArray, out: FloatArray
) -> None:
    """Write the deviation (n, k) m/s of each beam's velocity, the sensor's own being (n, 3) m/s; see `Track`."""
    for n in range(out.shape[0]):
        speed = math.sqrt(own[n, 0] * own[n, 0] + own[n, 1] * own[n, 1] + own[n, 2] * own[n, 2])
        for k in range(out.shape[1]):
            out[n, k] = deviation(floor, track[PER_SPEED], speed, rate, track[REFERENCE_RATE], factor[n, k])


@kernel
def _strengths(
    sheet: FloatArray, echo: FloatArray, incidence: FloatArray, factor: FloatArray, lock: FloatArray
) -> None:
    """Write by how much deviations grow (n, k), and how likely a beam hears the bottom (n, k).

    `sheet` (5,) are the numbers of an `EchoStrength` in their order.
    """
    for n in range(echo.shape[0]):
        for k in range(echo.shape[1]):
            shown = strength(sheet[0], sheet[1], echo[n, k], incidence[n, k])
            factor[n, k] = grown(shown, sheet[2])
            lock[n, k] = locked_probability(shown, sheet[3], sheet[4])


@kernel
def _outrun(own: Vectors, fastest: float, over_bottom: bool, lock: FloatArray, velocity: FloatArray) -> None:
    """Take the echoes of pings away whose speed is above the maximum of a track (m/s).

    `own` (n, 3) m/s is against what is tracked. The bottom loses its lock (n, k), the water its velocities (k, n) m/s.
    """
    for n in range(own.shape[0]):
        x, y, z = own[n, 0], own[n, 1], own[n, 2]
        if math.sqrt(x * x + y * y + z * z) > fastest:
            for k in range(velocity.shape[0]):
                if over_bottom:
                    lock[n, k] = 0.0
                else:
                    velocity[k, n] = math.nan


@kernel
def hear(
    tracks: FloatArray,
    floors: tuple[float, float],
    rate: float,
    loud: FloatArray,
    phased: bool,
    assumed: float,
    axes: Vectors,
    axis: FloatArray,
    mis: FloatArray,
    systematic: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    echo: FloatArray,
    incidence: FloatArray,
    bottom: FloatArray,
    through: FloatArray,
    own: Vectors,
    sound: FloatArray,
    heard: FloatArray,
    ideals: FloatArray,
) -> None:
    """Write what comes back of n pings, `heard`, and what the slow errors of each beam go onto, `ideals` (3 k, n).

    `floors` (m/s) are the deviations at rest of both tracks at the `rate` (Hz) of ticks; `loud` (5,) as for
    `_strengths`, or (0,); `assumed` (m/s) is the speed of sound that is, 0 for the true one, `sound` (n,).
    """
    count, beams = echo.shape
    heard[ECHO], heard[COSINE], heard[LOCK] = echo, incidence, 1.0
    ratio, factor, relative = np.ones(count), np.ones((count, beams)), np.empty((count, 3))
    if assumed > 0.0:
        for n in range(count):
            ratio[n] = assumed / sound[n]
    if loud.shape[0] > 0:
        _strengths(loud, echo, incidence, factor, heard[LOCK])
    for t in range(2):
        true, size = bottom if t == 0 else through, heard[BOTTOM_SIZE + t]
        _relative(axes, true, own, relative)
        _deviations(floors[t], tracks[t], rate, relative, factor, size)
        out, white = ideals[t * beams : (t + 1) * beams], rows[NOISE + t]
        _disturb(true, relative, axes, axis, mis, ratio, phased, systematic[t], size, white, draws, out)
        _outrun(relative, tracks[t, FASTEST], t == 0, heard[LOCK], out)
        factor[:] = 1.0
    _gathered(rows[LOCKED], draws, 0.0, heard[CHANCE])
    _gathered(rows[DROPS], draws, 1.0, heard[DROPPED])
    for n in range(count):
        for k in range(beams):
            slant = axes[k, 0] * axis[0] + axes[k, 1] * axis[1] + axes[k, 2] * axis[2]
            far = echo[n, k] if echo[n, k] < math.inf else math.nan
            ideals[2 * beams + k, n] = far * ratio[n] / (bent(slant, ratio[n]) if phased else 1.0)


@kernel
def say(
    rules: FloatArray,
    frame: FloatArray,
    values: FloatArray,
    heard: FloatArray,
    attitude: Quaternions,
    own: Vectors,
    time: Times,
    emitted: BoolArray,
    axes: Vectors,
    places: Vectors,
    lost: FloatArray,
    validity: FloatArray,
    sound: FloatArray,
    assumed: float,
    rough: float,
    rows: IntArray,
    draws: FloatArray,
    figures: FloatArray,
    beams: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
) -> None:
    """Write what the emitted of n pings say, their beams having `values` (3 k, n) by now: of `ideals` and the errors.

    `rough` (m/s) is the deviation of each axis of a solution in the classic rules, `rows` (3,) those of its draws, -1
    for none. `validity` (3, n) is told as it is: when echoes left the bottom and the layer (s), and how far (m) this
    went. `sound` and `assumed` (m/s) are as for `hear`.
    """
    count = axes.shape[0]
    for n in range(time.shape[0]):
        for k in range(count):
            heard[BOTTOM, n, k], heard[WATER, n, k] = values[k, n], values[count + k, n]
            heard[RANGE, n, k] = values[2 * count + k, n]
            for t in range(2):
                if rules[STATED + t] > 0.0:
                    heard[BOTTOM_SIZE + t, n, k] = rules[STATED + t]
    told = (figures, beams, vectors, squares)
    _tell_all(rules, frame, heard, attitude, time, emitted, axes, places, lost, *told)
    if rules[RULES] == UUV:
        _plain(frame, own, attitude, emitted, rules[STATED], figures, vectors, squares)
    if rows[0] >= 0:
        _roughen(frame, attitude, emitted, rows, draws, rough, rules[RULES] == DSROS, figures, vectors, squares)
    for n in range(time.shape[0]):
        if emitted[n]:
            through = figures[MODE, n] == WATER_TRACK
            figures[ABOUT, n] = validity[1, n] if through else validity[0, n]
            if vectors[THROUGH_WATER, n, 0] == vectors[THROUGH_WATER, n, 0]:
                figures[WATER_ABOUT, n], figures[FAR, n] = validity[1, n], validity[2, n]
        figures[SOUND, n] = assumed if assumed > 0.0 else sound[n]


@kernel
def flawless(
    echo: FloatArray,
    incidence: FloatArray,
    bottom: FloatArray,
    through: FloatArray,
    heard: FloatArray,
    values: FloatArray,
) -> None:
    """Write what `hear` and the slow errors write, of true ranges (m), cosines and velocities (m/s), without errors."""
    count = echo.shape[1]
    heard[ECHO], heard[COSINE], heard[LOCK], heard[CHANCE], heard[DROPPED] = echo, incidence, 1.0, 0.0, 1.0
    heard[BOTTOM_SIZE], heard[WATER_SIZE] = 0.0, 0.0
    for n in range(echo.shape[0]):
        for k in range(count):
            values[k, n], values[count + k, n], values[2 * count + k, n] = bottom[n, k], through[n, k], echo[n, k]


@kernel
def perfect(
    rules: FloatArray,
    frame: FloatArray,
    echo: FloatArray,
    incidence: FloatArray,
    bottom: FloatArray,
    through: FloatArray,
    attitude: Quaternions,
    own: Vectors,
    axes: Vectors,
    places: Vectors,
    about: Times,
    through_about: Times,
    far: FloatArray,
    sound: FloatArray,
    figures: FloatArray,
    beams: FloatArray,
    vectors: FloatArray,
    squares: FloatArray,
) -> None:
    """Write what n pings say of what is `flawless`, each of which is told; the rest as for `say`."""
    n, k = echo.shape
    heard, values, validity = np.empty((10, n, k)), np.empty((3 * k, n)), np.empty((3, n))
    flawless(echo, incidence, bottom, through, heard, values)
    validity[0], validity[1], validity[2] = about, through_about, far
    told, nothing = np.ones(n, np.bool_), (np.full(3, -1), np.empty((0, 0)))
    beside = (axes, places, np.full(k, -math.inf), validity, sound, 0.0, 0.0)
    out = (figures, beams, vectors, squares)
    say(rules, frame, values, heard, attitude, own, about, told, *beside, *nothing, *out)
