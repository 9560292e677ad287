"""Kernels for the noise of several channels. The formulas are those of `Noise`.

Each term is one loop over the contiguous values of one channel, so the compiler vectorises it. Three drifts are
computed in one loop, because their recursions do not depend on each other. A neutral term costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, IntArray
from navsense.noise.terms import (
    add_flicker,
    decay_factor,
    gauss_markov_step,
    outlier,
    quantise,
    random_walk_stddev,
    random_walk_step,
    saturate,
    step_stddev,
    white_noise,
    white_stddev,
    write_coefficients,
)

MEAN, STDDEV, DENSITY, SIGMA, TAU, WALK, FLICKER, PRECISION, MINIMUM, MAXIMUM = range(10)
TEMPERATURE_COEFFICIENT, SCALE_TEMPERATURE_COEFFICIENT, REFERENCE_TEMPERATURE, OUTLIER_PROBABILITY, OUTLIER_STDDEV = (
    range(10, 15)
)
"""Columns of the parameters (channels, 15). FLICKER is B. The coefficients (per kelvin) apply to the difference from
REFERENCE_TEMPERATURE (K)."""

WHITE_ROW, DRIFT_ROW, WALK_ROW, FLICKER_ROW, OUTLIER_ROW, OUTLIER_SIZE_ROW = range(6)
"""Columns of `rows` (channels, 6): the first row of each process in the draws, -1 if the process is not active."""

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
    phi_c, q_c, turn_on, drift = phi[c], q[c], constant[c], slow[c, DRIFT_STATE]
    v, out = draws[rows[c, DRIFT_ROW]], error[c]
    for i in range(v.shape[0]):
        drift = gauss_markov_step(drift, phi_c, q_c, v[i])
        out[i] = turn_on + drift
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
    """Write constant + drift (3, n) of channels c, c + 1, c + 2 in one loop."""
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
    """Write turn-on bias + drift (channels, n), three neighbouring drifting channels at a time."""
    c, channels = np.int64(0), rows.shape[0]  # Numba would compile a second version for a literal 0
    while c < channels:
        count = 0
        while count < 3 and c + count < channels and rows[c + count, DRIFT_ROW] >= 0:
            count += 1
        if count == 3:
            _write_three_drifts(c, phi, q, rows, draws, constant, slow, error)
        elif count >= 1:
            count = 1
            _write_drift(c, phi, q, rows, draws, constant, slow, error)
        else:
            count = 1
            bias, out = constant[c] + slow[c, DRIFT_STATE], error[c]
            for i in range(out.shape[0]):
                out[i] = bias
        c += count


@kernel
def _add_walk(q: float, draws: FloatArray, walk: float, error: FloatArray) -> float:
    """Add the random walk (n,) of one channel; return its value at the last tick."""
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
    """Write the slow errors (channels, n) of ticks that are dt (s) apart; `slow` is updated to the last tick."""
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
            step = random_walk_stddev(dt, parameters[c, WALK])
            slow[c, WALK_STATE] = _add_walk(step, draws[rows[c, WALK_ROW]], slow[c, WALK_STATE], error[c])
        if rows[c, FLICKER_ROW] >= 0:
            first, count = rows[c, FLICKER_ROW], modes.shape[1]
            flicker_phi, flicker_q = np.empty(count), np.empty(count)
            write_coefficients(dt, modes[0], parameters[c, FLICKER] * modes[1], flicker_phi, flicker_q)
            add_flicker(flicker_phi, flicker_q, draws[first : first + count], slow[c, FLICKER_STATES:], error[c])
        if parameters[c, TEMPERATURE_COEFFICIENT] != 0.0:
            coefficient, reference = parameters[c, TEMPERATURE_COEFFICIENT], parameters[c, REFERENCE_TEMPERATURE]
            out = error[c]
            for i in range(out.shape[0]):
                out[i] = out[i] + coefficient * (temperature[i] - reference)


@kernel
def _apply_scale(
    scale: float,
    temperature_coefficient: float,
    reference: float,
    temperature: FloatArray,
    ideal: FloatArray,
    out: FloatArray,
) -> None:
    """Write (1 + scale + temperature_coefficient (temperature - reference)) ideal (n,)."""
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
    """Write the readings (n,) of one channel, one vectorised loop per term."""
    count = out.shape[0]
    mean, precision = parameters[MEAN], parameters[PRECISION]
    minimum, maximum = parameters[MINIMUM], parameters[MAXIMUM]
    if rows[WHITE_ROW] >= 0:
        w = draws[rows[WHITE_ROW]]
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + white_noise(mean, sigma, w[i])
    else:
        for i in range(count):
            out[i] = (ideal[i] + error[i]) + mean
    if rows[OUTLIER_ROW] >= 0:
        u, size = draws[rows[OUTLIER_ROW]], draws[rows[OUTLIER_SIZE_ROW]]
        for i in range(count):
            out[i] = out[i] + outlier(parameters[OUTLIER_PROBABILITY], parameters[OUTLIER_STDDEV], u[i], size[i])
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _find_stop(index: IntArray, first: int, before: int) -> int:
    """Return the end of the ticks from `first` on that have the same gap as `first` has from tick `before`."""
    count: int = index.shape[0]
    gap = index[first] - before
    if gap == 1 and index[count - 1] - index[first] == count - 1 - first:
        return count  # the ticks are increasing integers, so each gap is 1
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
    """Write the noisy values (channels, n) to `out` and the slow errors (channels, n) to `error`.

    ideals: the ideal values of the channels, array by array.
    spacing: the step (ticks) before the first tick.
    modes (2, m): time constants (s) and standard deviations of flicker with B = 1. temperature (n,) K, or (0,) if no
        channel needs it.
    slow (channels, 2 + m): the slow states at tick `last`, updated to the last tick.
    """
    count, first, before = index.shape[0], 0, last
    while first < count:
        stop, gap = _find_stop(index, first, before), index[first] - before
        drawn, kelvin = draws[:, first:stop], temperature[first:stop]
        _write_slow_errors(gap / rate, parameters, rows, modes, drawn, kelvin, constant, slow, error[:, first:stop])
        dt = (float(gap) if gap > 0 else spacing) / rate
        c = 0
        for group in range(len(ideals)):
            ideal = ideals[group]
            for axis in range(ideal.shape[0]):
                row, noisy = parameters[c], out[c, first:stop]
                source = ideal[axis, first:stop]
                if scale[c] != 0.0 or row[SCALE_TEMPERATURE_COEFFICIENT] != 0.0:
                    _apply_scale(
                        scale[c], row[SCALE_TEMPERATURE_COEFFICIENT], row[REFERENCE_TEMPERATURE], kelvin, source, noisy
                    )
                    source = noisy
                sigma = white_stddev(dt, row[STDDEV], row[DENSITY])
                _write_readings(sigma, row, rows[c], drawn, source, error[c, first:stop], noisy)
                c += 1
        before, first = index[stop - 1], stop
