"""Kernels for the noise of several channels. The formulas are those of `Noise`.

Each term is one loop over the contiguous values of one channel, so the compiler vectorises it. Three dynamic biases are
computed in one loop, because their recursions do not depend on each other. A term that is not active takes no time.
"""

from __future__ import annotations

import math

import numpy as np

from navsense.core.kernels import kernel
from navsense.core.typing import AnyArray, FloatArray, IntArray
from navsense.noise.terms import (
    add_flicker,
    compute_white_stddev,
    decay_factor,
    gauss_markov_stddev,
    gauss_markov_step,
    outlier,
    quantise,
    random_walk_stddev,
    random_walk_step,
    saturate,
    white_noise,
    write_coefficients,
)

PARAMETER_NAMES = (
    *("mean", "stddev", "noise_density", "outlier_probability", "outlier_stddev", "precision", "minimum", "maximum"),
    *("dynamic_bias_stddev", "dynamic_bias_correlation_time", "bias_instability", "random_walk"),
    *("temperature_coefficient", "scale_temperature_coefficient", "reference_temperature"),
)
PARAMETER_DTYPE = np.dtype([(name, np.float64) for name in PARAMETER_NAMES])
"""The fields of `Noise` that the kernels use, for one channel."""

TICK_PROCESSES = ("white", "dynamic_bias", "random_walk", "flicker", "outlier", "outlier_size")
DRAW_ROW_DTYPE = np.dtype([(name, np.int64) for name in TICK_PROCESSES])
"""The first row in the draws of each process of one channel, -1 if it is not active."""

DYNAMIC_BIAS_STATE, RANDOM_WALK_STATE, FIRST_FLICKER_STATE = 0, 1, 2
"""Columns of the bias states (channels, 2 + m components of flicker)."""


@kernel
def _write_dynamic_bias(
    c: int,
    phi: FloatArray,
    q: FloatArray,
    draw_rows: AnyArray,
    draws: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write turn-on bias + dynamic bias (n,) of channel c."""
    phi_c, q_c, turn_on_c, state = phi[c], q[c], turn_on[c], bias_state[c, DYNAMIC_BIAS_STATE]
    v, out = draws[draw_rows[c]["dynamic_bias"]], bias[c]
    for i in range(v.shape[0]):
        state = gauss_markov_step(state, phi_c, q_c, v[i])
        out[i] = turn_on_c + state
    bias_state[c, DYNAMIC_BIAS_STATE] = state


@kernel
def _write_three_dynamic_biases(
    c: int,
    phi: FloatArray,
    q: FloatArray,
    draw_rows: AnyArray,
    draws: FloatArray,
    turn_on: FloatArray,
    bias_state: FloatArray,
    bias: FloatArray,
) -> None:
    """Write turn-on bias + dynamic bias (3, n) of channels c, c + 1, c + 2 in one loop."""
    x, y, z = (
        draws[draw_rows[c]["dynamic_bias"]],
        draws[draw_rows[c + 1]["dynamic_bias"]],
        draws[draw_rows[c + 2]["dynamic_bias"]],
    )
    out_x, out_y, out_z = bias[c], bias[c + 1], bias[c + 2]
    px, py, pz, qx, qy, qz = phi[c], phi[c + 1], phi[c + 2], q[c], q[c + 1], q[c + 2]
    kx, ky, kz = turn_on[c], turn_on[c + 1], turn_on[c + 2]
    states = bias_state[c : c + 3, DYNAMIC_BIAS_STATE]
    sx, sy, sz = states[0], states[1], states[2]
    for i in range(x.shape[0]):
        sx, sy, sz = (
            gauss_markov_step(sx, px, qx, x[i]),
            gauss_markov_step(sy, py, qy, y[i]),
            gauss_markov_step(sz, pz, qz, z[i]),
        )
        out_x[i], out_y[i], out_z[i] = kx + sx, ky + sy, kz + sz
    states[0], states[1], states[2] = sx, sy, sz


@kernel
def _add_random_walk(q: float, draws: FloatArray, walk: float, bias: FloatArray) -> float:
    """Add the random walk (n,) of one channel; return its value at the last tick."""
    for i in range(draws.shape[0]):
        walk = random_walk_step(walk, q, draws[i])
        bias[i] = bias[i] + walk
    return walk


@kernel
def _write_biases(
    dt: float,
    parameters: AnyArray,
    draw_rows: AnyArray,
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
        if draw_rows[c]["dynamic_bias"] >= 0:
            tau = parameters[c]["dynamic_bias_correlation_time"]
            phi[c], q[c] = decay_factor(dt, tau), gauss_markov_stddev(dt, parameters[c]["dynamic_bias_stddev"], tau)
    channel = 0
    while channel < channels:
        count = 0
        while count < 3 and channel + count < channels and draw_rows[channel + count]["dynamic_bias"] >= 0:
            count += 1
        if count == 3:  # three neighbouring channels at a time
            _write_three_dynamic_biases(channel, phi, q, draw_rows, draws, turn_on, bias_state, bias)
        elif count >= 1:
            count = 1
            _write_dynamic_bias(channel, phi, q, draw_rows, draws, turn_on, bias_state, bias)
        else:
            count = 1
            constant, out = turn_on[channel] + bias_state[channel, DYNAMIC_BIAS_STATE], bias[channel]
            for i in range(out.shape[0]):
                out[i] = constant
        channel += count
    for c in range(channels):
        noise, rows, states, out = parameters[c], draw_rows[c], bias_state[c], bias[c]
        if rows["random_walk"] >= 0:
            step = random_walk_stddev(dt, noise["random_walk"])
            states[RANDOM_WALK_STATE] = _add_random_walk(
                step, draws[rows["random_walk"]], states[RANDOM_WALK_STATE], out
            )
        if rows["flicker"] >= 0:
            first, count = rows["flicker"], flicker.shape[1]
            flicker_phi, flicker_q = np.empty(count), np.empty(count)
            write_coefficients(dt, flicker[0], noise["bias_instability"] * flicker[1], flicker_phi, flicker_q)
            add_flicker(flicker_phi, flicker_q, draws[first : first + count], states[FIRST_FLICKER_STATE:], out)
        coefficient, reference = noise["temperature_coefficient"], noise["reference_temperature"]
        if coefficient != 0.0:
            for i in range(out.shape[0]):
                out[i] = out[i] + coefficient * (temperature[i] - reference)


@kernel
def _apply_scale(
    scale_error: float,
    scale_temperature_coefficient: float,
    reference: float,
    temperature: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write (1 + scale_error + scale_temperature_coefficient (temperature - reference)) values (n,)."""
    if scale_temperature_coefficient == 0.0:
        for i in range(out.shape[0]):
            out[i] = (1.0 + scale_error) * values[i]
    else:
        for i in range(out.shape[0]):
            error = scale_error + scale_temperature_coefficient * (temperature[i] - reference)
            out[i] = (1.0 + error) * values[i]


@kernel
def _write_measured(
    sigma: float,
    noise: np.void,
    draw_rows: np.void,
    draws: FloatArray,
    values: FloatArray,
    bias: FloatArray,
    out: FloatArray,
) -> None:
    """Write the measured values (n,) of one channel, one vectorised loop per term.

    noise, draw_rows: records of type `PARAMETER_DTYPE` and `DRAW_ROW_DTYPE`.
    """
    count = out.shape[0]
    mean, precision = noise["mean"], noise["precision"]
    minimum, maximum = noise["minimum"], noise["maximum"]
    if draw_rows["white"] >= 0:
        w = draws[draw_rows["white"]]
        for i in range(count):
            out[i] = (values[i] + bias[i]) + white_noise(mean, sigma, w[i])
    else:
        for i in range(count):
            out[i] = (values[i] + bias[i]) + mean
    if draw_rows["outlier"] >= 0:
        u, w = draws[draw_rows["outlier"]], draws[draw_rows["outlier_size"]]
        probability, stddev = noise["outlier_probability"], noise["outlier_stddev"]
        for i in range(count):
            out[i] = out[i] + outlier(probability, stddev, u[i], w[i])
    if minimum > -math.inf or maximum < math.inf:
        for i in range(count):
            out[i] = saturate(out[i], minimum, maximum)
    if precision > 0.0:
        for i in range(count):
            out[i] = quantise(out[i], precision)


@kernel
def _find_equal_gaps_end(index: IntArray, first: int, previous_tick: int) -> int:
    """Return the end of the ticks from `first` on that have one gap, so that phi and q are constants.

    previous_tick: number of the tick before `first`.
    """
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
    inputs: tuple[FloatArray, ...],
    index: IntArray,
    rate: float,
    nominal_step: float,
    parameters: AnyArray,
    draw_rows: AnyArray,
    flicker: FloatArray,
    draws: FloatArray,
    temperature: FloatArray,
    last_tick: int,
    turn_on: FloatArray,
    scale_error: FloatArray,
    bias_state: FloatArray,
    out: FloatArray,
    bias: FloatArray,
) -> None:
    """Write the measured values (channels, n) to `out` and the biases (channels, n) to `bias`.

    inputs: the inputs x of `Noise`, as axes (axes, n), one entry per array of the sensor; unused ones are empty.
    index: (n,) tick numbers.
    rate: Hz, of the ticks.
    nominal_step: ticks. Sample 0 has no sample before it, so its white noise uses this step.
    parameters, draw_rows: (channels,) records of type `PARAMETER_DTYPE` and `DRAW_ROW_DTYPE`.
    flicker: (2, m), time constants (s) and standard deviations of the components of flicker with B = 1.
    draws: (rows, n).
    temperature: (n,) K, or (0,) if no channel needs it.
    turn_on, scale_error: (channels,).
    bias_state: (channels, 2 + m), the states at `last_tick`, updated to the last tick.

    `last_tick` is 0 before the first sample. At tick 0 the biases therefore take no step.
    """
    count, first, previous_tick = index.shape[0], 0, last_tick
    while first < count:
        stop, gap = _find_equal_gaps_end(index, first, previous_tick), index[first] - previous_tick
        section_draws, section_temperature = draws[:, first:stop], temperature[first:stop]
        bias_dt, white_dt = gap / rate, (float(gap) if gap > 0 else nominal_step) / rate
        _write_biases(
            bias_dt,
            parameters,
            draw_rows,
            flicker,
            section_draws,
            section_temperature,
            turn_on,
            bias_state,
            bias[:, first:stop],
        )
        c = 0
        for array in range(len(inputs)):
            axes = inputs[array]
            for axis in range(axes.shape[0]):
                noise, measured = parameters[c], out[c, first:stop]
                source = axes[axis, first:stop]
                coefficient, reference = noise["scale_temperature_coefficient"], noise["reference_temperature"]
                if scale_error[c] != 0.0 or coefficient != 0.0:
                    _apply_scale(scale_error[c], coefficient, reference, section_temperature, source, measured)
                    source = measured  # `_write_measured` reads value i before it writes value i
                sigma = compute_white_stddev(white_dt, noise["stddev"], noise["noise_density"])
                _write_measured(sigma, noise, draw_rows[c], section_draws, source, bias[c, first:stop], measured)
                c += 1
        previous_tick, first = index[stop - 1], stop
