"""The compiled passes of the noise of several channels; the formulas are those of `Noise`.

Each term is a plain pass over neighbouring values of one channel, which the compiler does several at a time; three
drifts are done at once, since a recursion has to wait for itself alone. A term that is not declared costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.kernels import kernel
from navsense.noise.flicker import add_flicker, write_coefficients
from navsense.noise.gauss_markov import decay_factor, gauss_markov_step, step_stddev
from navsense.noise.outlier import outlier
from navsense.noise.quantise import quantise
from navsense.noise.random_walk import random_walk_stddev, random_walk_step
from navsense.noise.saturate import saturate
from navsense.noise.white import white_noise, white_stddev
from navsense.typing import FloatArray, IntArray

MEAN, STDDEV, DENSITY, SIGMA, TAU, WALK, FLICKER, PRECISION, MINIMUM, MAXIMUM = range(10)
TEMPERATURE_COEFFICIENT, SCALE_TEMPERATURE_COEFFICIENT, REFERENCE_TEMPERATURE, OUTLIER_PROBABILITY, OUTLIER_STDDEV = (
    range(10, 15)
)
"""Columns of a sheet (channels, 15): FLICKER is B; HEAT and SCALE_TEMPERATURE_COEFFICIENT, a kelvin, count from
REFERENCE (K)."""

WHITE_ROW, DRIFT_ROW, WALK_ROW, FLICKER_ROW, OUTLIER_ROW, OUTLIER_SIZE_ROW = range(6)
"""Columns of the rows of draws (channels, 6): the first row of each process, -1 where it does not act."""

DRIFT_STATE, WALK_STATE, FLICKER_STATES = 0, 1, 2
"""Columns of the slow states (channels, 2 + modes of flicker)."""


@kernel
def _write_drift(
    c: np.int64,
    phi: FloatArray,
    q: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write constant + drift (n,) of channel c."""
    kept, added, still, drift = phi[c], q[c], constant[c], slow[c, DRIFT_STATE]
    drawn, out = draws[rows[c, DRIFT_ROW]], error[c]
    for i in range(drawn.shape[0]):
        drift = gauss_markov_step(drift, kept, added, drawn[i])
        out[i] = still + drift
    slow[c, DRIFT_STATE] = drift


@kernel
def _write_three_drifts(
    c: np.int64,
    phi: FloatArray,
    q: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write constant + drift (3, n) of channels c, c + 1, c + 2: their recursions do not wait for each other."""
    x, y, z = draws[rows[c, DRIFT_ROW]], draws[rows[c + 1, DRIFT_ROW]], draws[rows[c + 2, DRIFT_ROW]]
    out_x, out_y, out_z = error[c], error[c + 1], error[c + 2]
    px, py, pz, qx, qy, qz = phi[c], phi[c + 1], phi[c + 2], q[c], q[c + 1], q[c + 2]
    kx, ky, kz = constant[c], constant[c + 1], constant[c + 2]
    sx, sy, sz = slow[c, DRIFT_STATE], slow[c + 1, DRIFT_STATE], slow[c + 2, DRIFT_STATE]
    for i in range(x.shape[0]):
        sx, sy, sz = (
            gauss_markov_step(sx, px, qx, x[i]),
            gauss_markov_step(sy, py, qy, y[i]),
            gauss_markov_step(sz, pz, qz, z[i]),
        )
        out_x[i], out_y[i], out_z[i] = kx + sx, ky + sy, kz + sz
    slow[c, DRIFT_STATE], slow[c + 1, DRIFT_STATE], slow[c + 2, DRIFT_STATE] = sx, sy, sz


@kernel
def _write_drifts(
    phi: FloatArray,
    q: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write turn-on + drift (channels, n), three drifting channels at once where three follow each other."""
    c, channels = np.int64(0), rows.shape[0]  # a plain 0 would be compiled apart, as a constant
    while c < channels:
        together = 0
        while together < 3 and c + together < channels and rows[c + together, DRIFT_ROW] >= 0:
            together += 1
        if together == 3:
            _write_three_drifts(c, phi, q, rows, draws, constant, slow, error)
        elif together >= 1:
            together = 1
            _write_drift(c, phi, q, rows, draws, constant, slow, error)
        else:
            together = 1
            still, silent = constant[c] + slow[c, DRIFT_STATE], error[c]
            for i in range(silent.shape[0]):
                silent[i] = still
        c += together


@kernel
def _add_walk(q: float, draws: FloatArray, walk: float, error: FloatArray) -> float:
    """Add the random walk (n,) of one channel; return it at the last tick."""
    for i in range(draws.shape[0]):
        walk = random_walk_step(walk, q, draws[i])
        error[i] = error[i] + walk
    return walk


@kernel
def _write_slow_errors(
    dt: float,
    parameters: FloatArray,
    rows: IntArray,
    modes: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    constant: FloatArray,
    slow: FloatArray,
    error: FloatArray,
) -> None:
    """Write the slow errors (channels, n) of ticks that are dt (s) apart; `slow` is left at the last tick."""
    channels = parameters.shape[0]
    phi, q = np.ones(channels), np.zeros(channels)
    for c in range(channels):
        if rows[c, DRIFT_ROW] >= 0:
            phi[c], q[c] = (
                decay_factor(dt, parameters[c, TAU]),
                step_stddev(dt, parameters[c, SIGMA], parameters[c, TAU]),
            )
    _write_drifts(phi, q, rows, draws, constant, slow, error)
    for c in range(channels):
        if rows[c, WALK_ROW] >= 0:
            grown = random_walk_stddev(dt, parameters[c, WALK])
            slow[c, WALK_STATE] = _add_walk(grown, draws[rows[c, WALK_ROW]], slow[c, WALK_STATE], error[c])
        if rows[c, FLICKER_ROW] >= 0:
            first, count = rows[c, FLICKER_ROW], modes.shape[1]
            kept, added = np.empty(count), np.empty(count)
            write_coefficients(dt, modes[0], parameters[c, FLICKER] * modes[1], kept, added)
            add_flicker(kept, added, draws[first : first + count], slow[c, FLICKER_STATES:], error[c])
        if parameters[c, TEMPERATURE_COEFFICIENT] != 0.0:
            warm, reference, heated = (
                parameters[c, TEMPERATURE_COEFFICIENT],
                parameters[c, REFERENCE_TEMPERATURE],
                error[c],
            )
            for i in range(heated.shape[0]):
                heated[i] = heated[i] + warm * (temperature[i] - reference)


@kernel
def _apply_scale(
    scale: float,
    temperature_coefficient: float,
    reference: float,
    temperature: FloatArray,
    ideal: FloatArray,
    out: FloatArray,
) -> None:
    """Write (1 + scale + heat (temperature - reference)) ideal (n,)."""
    if temperature_coefficient == 0.0:
        for i in range(out.shape[0]):
            out[i] = (1.0 + scale) * ideal[i]
    else:
        for i in range(out.shape[0]):
            out[i] = (1.0 + (scale + temperature_coefficient * (temperature[i] - reference))) * ideal[i]


@kernel
def _write_readings(
    sigma: float,
    parameters: FloatArray,
    rows: IntArray,
    draws: FloatArray,
    ideal: FloatArray,
    error: FloatArray,
    out: FloatArray,
) -> None:
    """Write the readings (n,) of one channel: one plain pass for each part, done several values at a time."""
    count = out.shape[0]
    mean, precision = parameters[MEAN], parameters[PRECISION]
    minimum, maximum = parameters[MINIMUM], parameters[MAXIMUM]
    if rows[WHITE_ROW] >= 0:
        drawn = draws[rows[WHITE_ROW]]
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + white_noise(mean, sigma, drawn[i])
    else:
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + mean
    if rows[OUTLIER_ROW] >= 0:
        struck, size = draws[rows[OUTLIER_ROW]], draws[rows[OUTLIER_SIZE_ROW]]
        for i in range(count):
            out[i] = out[i] + outlier(parameters[OUTLIER_PROBABILITY], parameters[OUTLIER_STDDEV], struck[i], size[i])
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _find_stop(index: IntArray, first: int, before: int) -> int:
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
    parameters: FloatArray,
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
        stop, gap = _find_stop(index, first, before), index[first] - before
        drawn, warm = draws[:, first:stop], temperature[first:stop]
        _write_slow_errors(gap / rate, parameters, rows, modes, drawn, warm, constant, slow, error[:, first:stop])
        dt = (float(gap) if gap > 0 else spacing) / rate
        c = 0
        for group in range(len(ideals)):
            ideal = ideals[group]
            for axis in range(ideal.shape[0]):
                row, made = parameters[c], out[c, first:stop]
                source = ideal[axis, first:stop]
                if scale[c] != 0.0 or row[SCALE_TEMPERATURE_COEFFICIENT] != 0.0:
                    _apply_scale(
                        scale[c], row[SCALE_TEMPERATURE_COEFFICIENT], row[REFERENCE_TEMPERATURE], warm, source, made
                    )
                    source = made
                sigma = white_stddev(dt, row[STDDEV], row[DENSITY])
                _write_readings(sigma, row, rows[c], drawn, source, error[c, first:stop], made)
                c += 1
        before, first = index[stop - 1], stop
