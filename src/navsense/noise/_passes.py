"""The compiled passes of the noise of several channels; the formulas are those of `Noise`.

Each term is a plain pass over neighbouring values of one channel, which the compiler does several at a time; three or
six drifts are done at once, since a recursion has to wait for itself alone. A term that is not declared costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.compiled import kernel
from navsense.noise.flicker import advance, coefficients
from navsense.noise.gauss_markov import decay, drive, step
from navsense.noise.outlier import outlier
from navsense.noise.quantise import quantise
from navsense.noise.random_walk import walk_drive, walk_step
from navsense.noise.saturate import saturate
from navsense.noise.white import deviation, white
from navsense.typing import FloatArray, IntArray

MEAN, STDDEV, DENSITY, SIGMA, TAU, WALK, FLICKER, PRECISION, MINIMUM, MAXIMUM = range(10)
HEAT, SCALE_HEAT, REFERENCE, OUTLIER, SIZE = range(10, 15)
"""Columns of a sheet (channels, 15): FLICKER is B; HEAT and SCALE_HEAT, a kelvin, count from REFERENCE (K)."""

WHITE_ROW, DRIFT_ROW, WALK_ROW, FLICKER_ROW, OUTLIER_ROW, SIZE_ROW = range(6)
"""Columns of the rows of draws (channels, 6): the first row of each process, -1 where it does not act."""

DRIFTED, WALKED, FLICKERED = 0, 1, 2
"""Columns of the slow states (channels, 2 + modes of flicker)."""


@kernel
def _drift_one(phi: float, q: float, draws: FloatArray, slow: float, constant: float, error: FloatArray) -> float:
    """Write constant + drift (n,) of one channel; return the drift at the last tick."""
    for i in range(draws.shape[0]):
        slow = step(slow, phi, q, draws[i])
        error[i] = constant + slow
    return slow


@kernel
def _drift_three(
    phi: FloatArray,
    q: FloatArray,
    x: FloatArray,
    y: FloatArray,
    z: FloatArray,
    slow: FloatArray,
    constant: FloatArray,
    error: FloatArray,
) -> None:
    """Write constant + drift (3, n) of three channels side by side: their recursions do not wait for each other."""
    a, b, c = slow[0, DRIFTED], slow[1, DRIFTED], slow[2, DRIFTED]
    for i in range(x.shape[0]):
        a = step(a, phi[0], q[0], x[i])
        b = step(b, phi[1], q[1], y[i])
        c = step(c, phi[2], q[2], z[i])
        error[0, i] = constant[0] + a
        error[1, i] = constant[1] + b
        error[2, i] = constant[2] + c
    slow[0, DRIFTED], slow[1, DRIFTED], slow[2, DRIFTED] = a, b, c


@kernel
def _drift_six(
    phi: FloatArray,
    q: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    slow: FloatArray,
    constant: FloatArray,
    error: FloatArray,
) -> None:
    """Write constant + drift (6, n) of six channels side by side; `rows` (6,) are those of their draws."""
    u, v, w = draws[rows[0]], draws[rows[1]], draws[rows[2]]
    x, y, z = draws[rows[3]], draws[rows[4]], draws[rows[5]]
    out_a, out_b, out_c = error[0], error[1], error[2]
    out_d, out_e, out_f = error[3], error[4], error[5]
    p0, p1, p2, p3, p4, p5 = phi[0], phi[1], phi[2], phi[3], phi[4], phi[5]
    q0, q1, q2, q3, q4, q5 = q[0], q[1], q[2], q[3], q[4], q[5]
    k0, k1, k2, k3, k4, k5 = constant[0], constant[1], constant[2], constant[3], constant[4], constant[5]
    a, b, c = slow[0, DRIFTED], slow[1, DRIFTED], slow[2, DRIFTED]
    d, e, f = slow[3, DRIFTED], slow[4, DRIFTED], slow[5, DRIFTED]
    for i in range(u.shape[0]):
        a, b, c = step(a, p0, q0, u[i]), step(b, p1, q1, v[i]), step(c, p2, q2, w[i])
        d, e, f = step(d, p3, q3, x[i]), step(e, p4, q4, y[i]), step(f, p5, q5, z[i])
        out_a[i], out_b[i], out_c[i] = k0 + a, k1 + b, k2 + c
        out_d[i], out_e[i], out_f[i] = k3 + d, k4 + e, k5 + f
    slow[0, DRIFTED], slow[1, DRIFTED], slow[2, DRIFTED] = a, b, c
    slow[3, DRIFTED], slow[4, DRIFTED], slow[5, DRIFTED] = d, e, f


@kernel
def _drifts(
    phi: FloatArray,
    q: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write turn-on + drift (channels, n), three drifting channels at once where three follow each other."""
    c = 0
    while c < rows.shape[0]:
        together = 0
        while together < 6 and c + together < rows.shape[0] and rows[c + together, DRIFT_ROW] >= 0:
            together += 1
        row, constants, states, errors = rows[c:, DRIFT_ROW], constant[c:], slow[c:], error[c:]
        if together == 6:
            _drift_six(phi[c:], q[c:], row, draws, states, constants, errors)
        elif together >= 3:
            together = 3
            _drift_three(phi[c:], q[c:], draws[row[0]], draws[row[1]], draws[row[2]], states, constants, errors)
        elif together >= 1:
            together = 1
            slow[c, DRIFTED] = _drift_one(phi[c], q[c], draws[row[0]], slow[c, DRIFTED], constant[c], error[c])
        else:
            together = 1
            still, silent = constant[c] + slow[c, DRIFTED], error[c]
            for i in range(silent.shape[0]):
                silent[i] = still
        c += together


@kernel
def _add_walk(q: float, draws: FloatArray, walked: float, error: FloatArray) -> float:
    """Add the random walk (n,) of one channel; return it at the last tick."""
    for i in range(draws.shape[0]):
        walked = walk_step(walked, q, draws[i])
        error[i] = error[i] + walked
    return walked


@kernel
def _slow(
    dt: float,
    sheet: FloatArray,
    rows: IntArray,
    modes: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write the slow errors (channels, n) of ticks that are dt (s) apart; `slow` is left at the last tick."""
    channels = sheet.shape[0]
    phi, q = np.ones(channels), np.zeros(channels)
    for c in range(channels):
        if rows[c, DRIFT_ROW] >= 0:
            phi[c], q[c] = decay(dt, sheet[c, TAU]), drive(dt, sheet[c, SIGMA], sheet[c, TAU])
    _drifts(phi, q, rows, draws, constant, slow, error)
    for c in range(channels):
        if rows[c, WALK_ROW] >= 0:
            grown = walk_drive(dt, sheet[c, WALK])
            slow[c, WALKED] = _add_walk(grown, draws[rows[c, WALK_ROW]], slow[c, WALKED], error[c])
        if rows[c, FLICKER_ROW] >= 0:
            first, count = rows[c, FLICKER_ROW], modes.shape[1]
            kept, added = np.empty(count), np.empty(count)
            coefficients(dt, modes[0], sheet[c, FLICKER] * modes[1], kept, added)
            advance(kept, added, draws[first : first + count], slow[c, FLICKERED:], error[c])
        if sheet[c, HEAT] != 0.0:
            warm, reference, heated = sheet[c, HEAT], sheet[c, REFERENCE], error[c]
            for i in range(heated.shape[0]):
                heated[i] = heated[i] + warm * (temperature[i] - reference)


@kernel
def _stretch(
    scale: float, heat: float, reference: float, temperature: FloatArray, ideal: FloatArray, out: FloatArray
) -> None:
    """Write (1 + scale + heat (temperature - reference)) ideal (n,)."""
    if heat == 0.0:
        for i in range(out.shape[0]):
            out[i] = (1.0 + scale) * ideal[i]
    else:
        for i in range(out.shape[0]):
            out[i] = (1.0 + (scale + heat * (temperature[i] - reference))) * ideal[i]


@kernel
def _emit(
    sigma: float,
    sheet: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    ideal: FloatArray,
    error: FloatArray,
    out: FloatArray,
) -> None:
    """Write the readings (n,) of one channel: one plain pass for each part, done several values at a time."""
    count = out.shape[0]
    mean, precision = sheet[MEAN], sheet[PRECISION]
    minimum, maximum = sheet[MINIMUM], sheet[MAXIMUM]
    if rows[WHITE_ROW] >= 0:
        drawn = draws[rows[WHITE_ROW]]
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + white(mean, sigma, drawn[i])
    else:
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + mean
    if rows[OUTLIER_ROW] >= 0:
        struck, size = draws[rows[OUTLIER_ROW]], draws[rows[SIZE_ROW]]
        for i in range(count):
            out[i] = out[i] + outlier(sheet[OUTLIER], sheet[SIZE], struck[i], size[i])
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _stop(index: IntArray, first: int, before: int) -> int:
    """Return where the ticks that follow each other as `first` follows `before` end."""
    count: int = index.shape[0]
    gap = index[first] - before
    if gap == 1 and index[count - 1] - index[first] == count - 1 - first:
        return count  # increasing integers: every gap is 1
    stop = first + 1
    while stop < count and index[stop] - index[stop - 1] == gap:
        stop += 1
    return stop


@kernel
def apply_noise(
    ideals: tuple[FloatArray, ...],
    index: IntArray,
    rate: float,
    spacing: float,
    sheet: FloatArray,
    rows: IntArray,
    modes: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    last: int,
    constant: FloatArray,
    scale: FloatArray,
    slow: FloatArray,
    out: FloatArray,
    error: FloatArray,
) -> None:
    """Write the noisy values and the slow errors (channels, n); `slow` is left at the last tick.

    `ideals` hold the channels' ideal values, array after array; `spacing` (ticks) stands for the step before the first
    tick; `modes` (2, m) are time constants (s) and deviations of flicker with B = 1; `temperature` (n,) K, (0,)
    where none is needed.
    """
    count, first, before = index.shape[0], 0, last
    while first < count:
        stop, gap = _stop(index, first, before), index[first] - before
        drawn, warm = draws[:, first:stop], temperature[first:stop]
        _slow(gap / rate, sheet, rows, modes, drawn, warm, constant, slow, error[:, first:stop])
        dt = (float(gap) if gap > 0 else spacing) / rate
        c = 0
        for group in range(len(ideals)):
            ideal = ideals[group]
            for axis in range(ideal.shape[0]):
                row, made = sheet[c], out[c, first:stop]
                source = ideal[axis, first:stop]
                if scale[c] != 0.0 or row[SCALE_HEAT] != 0.0:
                    _stretch(scale[c], row[SCALE_HEAT], row[REFERENCE], warm, source, made)
                    source = made
                sigma = deviation(dt, row[STDDEV], row[DENSITY])
                _emit(sigma, row, rows[c], drawn, source, error[c, first:stop], made)
                c += 1
        before, first = index[stop - 1], stop
