"""Kernels for the noise of several channels. The formulas are those of `Noise`.

Each term is one loop over the contiguous values of one channel, so the compiler vectorises it. Three drifts are
computed in one loop, because their recursions do not depend on each other. A term that is not active takes no time.
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

MEAN, STDDEV, NOISE_DENSITY, DRIFT_DENSITY, DRIFT_TIME, WALK_DENSITY, BIAS_INSTABILITY, PRECISION, MINIMUM, MAXIMUM = (
    range(10)
)
TEMPERATURE_COEFFICIENT, SCALE_TEMPERATURE_COEFFICIENT, REFERENCE_TEMPERATURE, OUTLIER_PROBABILITY, OUTLIER_STDDEV = (
    range(10, 15)
)
"""Columns of the parameters (channels, 15). The coefficients (per kelvin) apply to the difference from
REFERENCE_TEMPERATURE (K)."""

WHITE_ROW, DRIFT_ROW, WALK_ROW, FLICKER_ROW, OUTLIER_ROW, OUTLIER_SIZE_ROW = range(6)
"""Columns of `draw_rows` (channels, 6): the first row of each process in the draws, -1 if it is not active."""

DRIFT_STATE, WALK_STATE, FLICKER_STATES = 0, 1, 2
"""Columns of the bias states (channels, 2 + m components of flicker)."""


@kernel
def _write_drift(
    c: np.int64,
    phi: FloatArray,
    q: FloatArray,
    draw_rows: IntArray,
    draws: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write turn-on bias + drift (n,) of channel c."""
    phi_c, q_c, turn_on_c, drift = phi[c], q[c], turn_on[c], bias_state[c, DRIFT_STATE]
    v, out = draws[draw_rows[c, DRIFT_ROW]], bias[c]
    for i in range(v.shape[0]):
        drift = gauss_markov_step(drift, phi_c, q_c, v[i])
        out[i] = turn_on_c + drift
    bias_state[c, DRIFT_STATE] = drift


@kernel
def _write_three_drifts(
    c: np.int64,
    phi: FloatArray,
    q: FloatArray,
    draw_rows: IntArray,
    draws: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write turn-on bias + drift (3, n) of channels c, c + 1, c + 2 in one loop."""
    x, y, z = draws[draw_rows[c, DRIFT_ROW]], draws[draw_rows[c + 1, DRIFT_ROW]], draws[draw_rows[c + 2, DRIFT_ROW]]
    out_x, out_y, out_z = bias[c], bias[c + 1], bias[c + 2]
    px, py, pz, qx, qy, qz = phi[c], phi[c + 1], phi[c + 2], q[c], q[c + 1], q[c + 2]
    kx, ky, kz = turn_on[c], turn_on[c + 1], turn_on[c + 2]
    sx, sy, sz = bias_state[c, DRIFT_STATE], bias_state[c + 1, DRIFT_STATE], bias_state[c + 2, DRIFT_STATE]
    for i in range(x.shape[0]):
        sx, sy, sz = (
            gauss_markov_step(sx, px, qx, x[i]),
            gauss_markov_step(sy, py, qy, y[i]),
            gauss_markov_step(sz, pz, qz, z[i]),
        )
        out_x[i], out_y[i], out_z[i] = kx + sx, ky + sy, kz + sz
    bias_state[c, DRIFT_STATE], bias_state[c + 1, DRIFT_STATE], bias_state[c + 2, DRIFT_STATE] = sx, sy, sz


@kernel
def _write_drifts(
    phi: FloatArray,
    q: FloatArray,
    draw_rows: IntArray,
    draws: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write turn-on bias + drift (channels, n), three neighbouring drifting channels at a time."""
    c, channels = np.int64(0), draw_rows.shape[0]  # Numba would compile a second version for a literal 0
    while c < channels:
        count = 0
        while count < 3 and c + count < channels and draw_rows[c + count, DRIFT_ROW] >= 0:
            count += 1
        if count == 3:
            _write_three_drifts(c, phi, q, draw_rows, draws, turn_on, bias_state, bias)
        elif count >= 1:
            count = 1
            _write_drift(c, phi, q, draw_rows, draws, turn_on, bias_state, bias)
        else:
            count = 1
            constant, out = turn_on[c] + bias_state[c, DRIFT_STATE], bias[c]
            for i in range(out.shape[0]):
                out[i] = constant
        c += count


@kernel
def _add_walk(q: float, draws: FloatArray, walk: float, bias: FloatArray) -> float:
    """Add the random walk (n,) of one channel; return its value at the last tick."""
    for i in range(draws.shape[0]):
        walk = random_walk_step(walk, q, draws[i])
        bias[i] = bias[i] + walk
    return walk


@kernel
def _write_biases(
    dt: float,
    parameters: FloatArray,
    draw_rows: IntArray,
    flicker: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write the biases (channels, n) of ticks that are dt (s) apart; `bias_state` is updated to the last tick."""
    channels = parameters.shape[0]
    phi, q = np.ones(channels), np.zeros(channels)
    for c in range(channels):
        if draw_rows[c, DRIFT_ROW] >= 0:
            phi[c], q[c] = (
                decay_factor(dt, parameters[c, DRIFT_TIME]),
                step_stddev(dt, parameters[c, DRIFT_DENSITY], parameters[c, DRIFT_TIME]),
            )
    _write_drifts(phi, q, draw_rows, draws, turn_on, bias_state, bias)
    for c in range(channels):
        if draw_rows[c, WALK_ROW] >= 0:
            step = random_walk_stddev(dt, parameters[c, WALK_DENSITY])
            bias_state[c, WALK_STATE] = _add_walk(
                step, draws[draw_rows[c, WALK_ROW]], bias_state[c, WALK_STATE], bias[c]
            )
        if draw_rows[c, FLICKER_ROW] >= 0:
            first, count = draw_rows[c, FLICKER_ROW], flicker.shape[1]
            flicker_phi, flicker_q = np.empty(count), np.empty(count)
            write_coefficients(dt, flicker[0], parameters[c, BIAS_INSTABILITY] * flicker[1], flicker_phi, flicker_q)
            add_flicker(flicker_phi, flicker_q, draws[first : first + count], bias_state[c, FLICKER_STATES:], bias[c])
        if parameters[c, TEMPERATURE_COEFFICIENT] != 0.0:
            coefficient, reference = parameters[c, TEMPERATURE_COEFFICIENT], parameters[c, REFERENCE_TEMPERATURE]
            out = bias[c]
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
def _write_measured(
    sigma: float,
    parameters: FloatArray,
    draw_rows: IntArray,
    draws: FloatArray,
    ideal: FloatArray,
    bias: FloatArray,
    out: FloatArray,
) -> None:
    """Write the measured values (n,) of one channel, one vectorised loop per term."""
    count = out.shape[0]
    mean, precision = parameters[MEAN], parameters[PRECISION]
    minimum, maximum = parameters[MINIMUM], parameters[MAXIMUM]
    if draw_rows[WHITE_ROW] >= 0:
        w = draws[draw_rows[WHITE_ROW]]
        for i in range(count):
            out[i] = (ideal[i] + bias[i]) + white_noise(mean, sigma, w[i])
    else:
        for i in range(count):
            out[i] = (ideal[i] + bias[i]) + mean
    if draw_rows[OUTLIER_ROW] >= 0:
        u, size = draws[draw_rows[OUTLIER_ROW]], draws[draw_rows[OUTLIER_SIZE_ROW]]
        for i in range(count):
            out[i] = out[i] + outlier(parameters[OUTLIER_PROBABILITY], parameters[OUTLIER_STDDEV], u[i], size[i])
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _find_spacing_end(index: IntArray, first: int, previous_tick: int) -> int:
    """Return the end of the equally spaced ticks from row `first` on; `previous_tick` is the tick before this row."""
    count: int = index.shape[0]
    gap = index[first] - previous_tick
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
    draw_rows: IntArray,
    flicker: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    last_tick: int,
    turn_on: FloatArray,
    scale: FloatArray,
    bias_state: FloatArray,
    out: FloatArray,
    bias: FloatArray,
) -> None:
    """Write the measured values (channels, n) to `out` and the biases (channels, n) to `bias`.

    ideals: rows (axes, n) of the ideal values, one entry per array of the sensor; unused entries are empty.
    index: (n,) tick numbers.
    rate: Hz, of the ticks.
    spacing: the step (ticks) that is assumed before the first sample.
    parameters: (channels, 15).
    draw_rows: (channels, 6), first row of each process in the draws.
    flicker: (2, m), time constants (s) and standard deviations of the components of flicker with B = 1.
    draws: (rows, n).
    temperature: (n,) K, or (0,) if no channel needs it.
    turn_on, scale: (channels,).
    bias_state: (channels, 2 + m), the states at `last_tick`, updated to the last tick.
    """
    count, first, previous_tick = index.shape[0], 0, last_tick
    while first < count:
        stop, gap = _find_spacing_end(index, first, previous_tick), index[first] - previous_tick
        block_draws, block_temperature = draws[:, first:stop], temperature[first:stop]
        _write_biases(
            gap / rate,
            parameters,
            draw_rows,
            flicker,
            block_draws,
            block_temperature,
            turn_on,
            bias_state,
            bias[:, first:stop],
        )
        dt = (float(gap) if gap > 0 else spacing) / rate
        c = 0
        for array in range(len(ideals)):
            ideal = ideals[array]
            for axis in range(ideal.shape[0]):
                row, measured = parameters[c], out[c, first:stop]
                source = ideal[axis, first:stop]
                if scale[c] != 0.0 or row[SCALE_TEMPERATURE_COEFFICIENT] != 0.0:
                    _apply_scale(
                        scale[c],
                        row[SCALE_TEMPERATURE_COEFFICIENT],
                        row[REFERENCE_TEMPERATURE],
                        block_temperature,
                        source,
                        measured,
                    )
                    source = measured
                sigma = white_stddev(dt, row[STDDEV], row[NOISE_DENSITY])
                _write_measured(sigma, row, draw_rows[c], block_draws, source, bias[c, first:stop], measured)
                c += 1
        previous_tick, first = index[stop - 1], stop
