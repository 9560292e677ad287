"""Pings of a Doppler velocity log: from the echoes of its beams to the arrays of a reading.

The velocity measured along beam k, with the symbols of `sensors.doppler`:

    b_k' = (1 + L) (b_k + u_k.(M - 1) v + (f_k c0 / c - 1) B_k) + u_k.o + sigma w

    pistons        B_k = b_k,               f_k = 1
    phased array   B_k = cos theta_k a.v,   f_k = cos theta_k' / cos theta_k,   sin theta_k' = (c / c0) sin theta_k

| symbol | meaning |
|---|---|
| v | least-squares velocity of the b_k, equal weights; with fewer than three echoes, that relative to the world |
| L, o | long-term scale error and offset of the instrument |
| M | rotation by the misalignment of the instrument |
| theta_k' | true Janus angle of a beam that is steered to theta_k |

A phased array steers by phase, so an error of c0 changes only the velocity along a. Its ranges are r c0 / (c f_k),
exact over a bottom perpendicular to a.

A beam of the bottom track is good if all of these hold:

- Its true range and its measured range are within the parameters.
- The cosine of the angle of incidence is at least the minimum.
- The echo is strong enough, and the beam does not drop out.
- The speed is at most the maximum velocity of the bottom track. Above it, all beams lose lock.
- The reacquisition time since the beam last failed one of these conditions has passed.

A beam of the water track is good if it does not drop out, the layer exists and is below the surface, and the speed
is at most the maximum velocity of the water track.

A solution needs three good beams (`doppler.solution`). Its weights are those of the reported standard deviations. A
solution whose error velocity is above the limit is rejected.

The steps of a ping:

1. `apply_beam_errors` computes the velocities of the beams with the errors of the equation and their white noise. The
   ranges are without noise.
2. `noise.channels` adds the other terms of `Noise`, and `add_faults` the offsets of injected faults.
3. `solve_pings` selects the good beams and computes the outputs.

Arrays have a row for each of n ticks. Every tick is computed as if it had a ping; `emitted` marks the ticks that output
one. `solve_ideal_pings` computes the outputs of pings without errors.

Python passes a `NamedTuple` to a kernel as a plain tuple (`KernelTuple`). Inner kernels take only the arrays that they
use, because each array of a `NamedTuple` adds to the time of compilation.

Random processes of a DVL in addition to those of its noise channels:

| channel | process | draws |
|---|---|---|
| `bottom`, `water` | `long_term` | per instrument: a scale error and three offsets |
| `mounting` | `misalignment` | per instrument: three angles |
| `velocity_x`, `_y`, `_z` | `white` | per tick; plug-ins add this noise to the solved velocity |
| `bottom_k`, `water_k` | `white` | per tick and beam |
| `beam_k` | `lock`, `dropout` | per tick and beam, uniform |

`bottom_k` and `water_k` are also the noise channels of the beam velocities. All terms of `Noise` except white noise are
processes of these channels. White noise depends on speed and echo strength, so `apply_beam_errors` adds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from navsense.core.kernels import inlined_kernel, kernel
from navsense.core.rotation import rotate
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternions, Times, Vectors
from navsense.faults.schedule import OFFSET_SUFFIX
from navsense.sensors.doppler.beam_errors import (
    compute_lock_probability,
    compute_noise_factor,
    compute_stddev,
    compute_strength,
)
from navsense.sensors.doppler.beams import MIN_BEAMS
from navsense.sensors.doppler.echoes import KernelTuple
from navsense.sensors.doppler.solution import (
    TrackSolutions,
    allocate_solutions,
    compute_altitude,
    compute_course_and_speed,
    compute_error_velocity,
    solve_velocity,
)
from navsense.sensors.doppler.specification import (
    BOTTOM_TRACK,
    IN_RANGE,
    NO_ECHO,
    NO_TRACK,
    TOO_HIGH,
    TOO_LOW,
    WATER_TRACK,
)

NEVER, ALWAYS, BEST, FALLBACK = range(4)
"""Values of `bottom_mode` and `water_mode`, in the order of `TrackMode`."""

PHYSICAL_RULE, UUV_RULE, DSROS_RULE = range(3)
"""Rules of the solution: those of the physical model or of a classic plug-in."""

TIME_TOLERANCE: Final = 1e-9
"""s, tolerance for times that are an integer number of ticks apart."""

DSROS_ALTITUDE_COSINE: Final = math.cos(math.pi / 6.0)
"""Factor from mean slant range to altitude in `dsros_dvl`, for any Janus angle."""

OUTPUTS = (
    ("velocity", "3", "m/s"),
    ("velocity_covariance", "33", "m^2/s^2"),
    ("altitude", "", "m"),
    ("course", "", "rad"),
    ("speed", "", "m/s"),
    ("beam_range", "k", "m"),
    ("beam_velocity", "k", "m/s"),
    ("beam_valid", "k", "1"),
    ("range_validity", "k", "1"),
    ("beam_deviation", "k", "m/s"),
    ("water_beam_velocity", "k", "m/s"),
    ("water_beam_deviation", "k", "m/s"),
    ("num_good_beams", "", "1"),
    ("velocity_mode", "", "1"),
    ("error_velocity", "", "m/s"),
    ("long_term_velocity", "3", "m/s"),
    ("long_term_covariance", "33", "m^2/s^2"),
    ("time_of_validity", "", "s"),
    ("water_velocity", "3", "m/s"),
    ("water_velocity_covariance", "33", "m^2/s^2"),
    ("sound_speed", "", "m/s"),
    ("water_time_of_validity", "", "s"),
    ("water_far", "", "m"),
)
"""Name, shape (k beams, see `parse_shape`) and unit of each array of a reading.

- `velocity` is that of the sensor over the bottom, or through the water if `velocity_mode` is `WATER_TRACK`.
- `water_...` is the water track: the velocity of the sensor through the water, not that of the current.
- `beam_deviation` and `water_beam_deviation` are reported standard deviations.
- `beam_valid` is 1 for a good beam of the bottom track; `range_validity` is the reason for an invalid range.
- `time_of_validity` is that of `velocity`, `water_time_of_validity` that of `water_velocity`.
- `water_far` is the far boundary of the water-mass layer of `water_velocity`, along the instrument axis.
- `solve_pings` writes `sound_speed` at every tick, the other arrays at the ticks that output a ping.
"""

GROUP_SHAPES = ("", "k", "3", "33")
"""Shape of the outputs in each array of `OutputMemory`."""

OUTPUT_COUNTS = tuple(sum(shape == group_shape for _, shape, _ in OUTPUTS) for group_shape in GROUP_SHAPES)
"""Number of outputs in each array of `OutputMemory`."""

OUTPUT_ROWS = tuple(
    (name, GROUP_SHAPES.index(shape), [row[1] for row in OUTPUTS[:i]].count(shape))
    for i, (name, shape, _) in enumerate(OUTPUTS)
)
"""Name of each output, its array in `OutputMemory`, and its row there: rows are in the order of `OUTPUTS`."""

IDEAL_OUTPUTS = (
    *("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity"),
    *("error_velocity", "water_velocity", "water_beam_velocity"),
)
"""Outputs with an ideal value. `IDEAL_OUTPUT_ROWS` adds `time_of_validity`; `sound_speed` is that of `SensorInputs`."""

IDEAL_OUTPUT_ROWS = tuple(entry for entry in OUTPUT_ROWS if entry[0] in (*IDEAL_OUTPUTS, "time_of_validity"))

FAULT_INPUT_ARRAYS = ("beam_velocity", "water_beam_velocity", "beam_range")
"""Arrays to which injected biases and spikes are added before the solution, in the order of the noise channels."""


class EchoInputs(NamedTuple):
    """True echoes of k beams at n ticks; NaN without an echo."""

    true_beam_range: FloatArray
    """(n, k) m; infinite beyond the maximum range."""

    incidence_cosine: FloatArray
    """(n, k), of the angle from the bottom's normal."""

    true_beam_velocity: FloatArray
    """(n, k) m/s relative to the bottom."""

    true_water_beam_velocity: FloatArray
    """(n, k) m/s relative to the water."""


class SensorInputs(NamedTuple):
    """True state of the sensor at the times of validity of n ticks; the speed of sound is that at the ticks."""

    attitude: Quaternions
    """(n, 4), sensor's frame to east, north, up."""

    sensor_velocity: Vectors
    """(n, 3) m/s relative to the world, in the sensor's frame; v of the module only below three beams."""

    sound_speed: FloatArray
    """(n,) m/s in the water at the sensor."""


class TrackInputs(NamedTuple):
    """Times of validity of both tracks at n ticks, and the extent of the water track."""

    bottom_time_of_validity: Times
    """(n,) s, when the echoes left the bottom; output `time_of_validity` of a bottom-track velocity."""

    layer_time_of_validity: Times
    """(n,) s, when the echoes left the middle of the water-mass layer; output `water_time_of_validity`."""

    layer_far_boundary: FloatArray
    """(n,) m along the instrument axis; NaN without a layer; output `water_far`."""


TRUE_VALUES = (*EchoInputs._fields, *SensorInputs._fields, *TrackInputs._fields, "ping_duration")
"""Names of the true values in the mapping of ideal values: those of the world, before the limits of the instrument.

The errors are computed from these. An ideal output such as `beam_range` is NaN where the limits exclude an echo.
"""

select_echoes = itemgetter(*EchoInputs._fields)
select_sensor = itemgetter(*SensorInputs._fields)
select_tracks = itemgetter(*TrackInputs._fields)
"""Functions that take the ideal values by name and return the fields of that tuple."""


class TrackParameters(NamedTuple):
    """Errors of one track, see `TrackErrors`.

    `stddev` (m/s) is that at rest at the rate of the rows, before `reference_rate` is applied.
    """

    stddev: float
    per_speed: float
    reference_rate: float
    maximum_velocity: float


class ReceiverParameters(NamedTuple):
    """Properties of the instrument that the errors of beams depend on.

    `assumed_sound_speed` (m/s) is 0 for the true speed. The next five are those of `EchoStrength`, all 0 without one.
    """

    assumed_sound_speed: float
    level: float
    absorption: float
    correlation: float
    threshold: float
    lock_width: float
    has_strength: bool
    is_phased_array: bool


class SolutionParameters(NamedTuple):
    """Parameters by which `solve_pings` selects good beams and solves for the velocity.

    minimum_range, maximum_range: m.
    error_velocity_limit: m/s.
    reacquisition_time: s.
    bottom_mode, water_mode: `NEVER`, `ALWAYS`, `BEST` or `FALLBACK`.
    solution_rule: `PHYSICAL_RULE`, `UUV_RULE` or `DSROS_RULE`.
    bottom_reported_stddev, water_reported_stddev, assumed_sound_speed: m/s; 0 for the true value.

    All fields are floats, so that the tuple has one type for Numba.
    """

    minimum_range: float
    maximum_range: float
    min_incidence_cosine: float
    error_velocity_limit: float
    reacquisition_time: float
    dropout_probability: float
    bottom_mode: float
    water_mode: float
    solution_rule: float
    bottom_reported_stddev: float
    water_reported_stddev: float
    assumed_sound_speed: float


class BeamGeometry(NamedTuple):
    """Beams and output frame in the sensor's frame.

    beam_axes, positions: (k, 3) and (k, 3) m.
    instrument_axis: (3,).
    output_rotation: (4,) rotation from the sensor's frame to the output frame.
    """

    beam_axes: Vectors
    positions: Vectors
    instrument_axis: FloatArray
    output_rotation: FloatArray


class InstrumentErrors(NamedTuple):
    """Errors of one instrument, constant during a run.

    misalignment: (4,) rotation from true to measured velocities.
    long_term_errors: (2, 4) scale error and three offsets (m/s), over the bottom and through the water.
    """

    misalignment: FloatArray
    long_term_errors: FloatArray


class DrawRows(NamedTuple):
    """Rows (k,) of the draws of each beam; -1 if the process does not act."""

    bottom_noise: IntArray
    water_noise: IntArray
    lock: IntArray
    dropout: IntArray


class ComponentNoise(NamedTuple):
    """Noise that a classic plug-in adds to solved velocities.

    stddev: m/s.
    rows: (3,) rows in `draws` of the components x, y, z; -1 without this noise.
    draws: standard normals, one column per tick.
    """

    stddev: float
    rows: IntArray
    draws: FloatArray


class BeamQuantities(NamedTuple):
    """What `solve_pings` needs to know of k beams at n ticks, (n, k) each; ranges in m, velocities in m/s.

    true_beam_range, incidence_cosine: of the true echo.
    beam_range, beam_velocity, water_beam_velocity: measured values, with noise and faults.
    beam_stddev, water_beam_stddev: standard deviations of the velocities.
    lock_probability: of the bottom track.
    lock_draw, dropout_draw: uniform in [0, 1); they decide lock and dropout.

    `apply_beam_errors` writes all but the three measured values. `solve_pings` writes these, and replaces the standard
    deviations by the reported ones.
    """

    true_beam_range: FloatArray
    incidence_cosine: FloatArray
    beam_range: FloatArray
    beam_velocity: FloatArray
    water_beam_velocity: FloatArray
    beam_stddev: FloatArray
    water_beam_stddev: FloatArray
    lock_probability: FloatArray
    lock_draw: FloatArray
    dropout_draw: FloatArray


class BeamOutputs(NamedTuple):
    """Outputs per beam at n ticks, (n, k) each, in the order of `OUTPUTS`."""

    beam_range: FloatArray
    beam_velocity: FloatArray
    beam_valid: FloatArray
    range_validity: FloatArray
    beam_deviation: FloatArray
    water_beam_velocity: FloatArray
    water_beam_deviation: FloatArray


class SolutionOutputs(NamedTuple):
    """Outputs from all beams of a track at n ticks, by their names in a reading."""

    altitude: FloatArray
    course: FloatArray
    speed: FloatArray
    num_good_beams: FloatArray
    velocity_mode: FloatArray
    error_velocity: FloatArray
    velocity: Vectors
    water_velocity: Vectors
    velocity_covariance: FloatArray
    water_velocity_covariance: FloatArray


class OutputMemory(NamedTuple):
    """Arrays of n ticks, one for the outputs of each shape: the rows are the outputs in the order of `OUTPUTS`.

    scalars, per_beam, vectors, covariances: (10, n), (7, n, k), (3, n, 3), (3, n, 3, 3).
    """

    scalars: FloatArray
    per_beam: FloatArray
    vectors: FloatArray
    covariances: FloatArray

    def name_outputs(self) -> dict[str, AnyArray]:
        """Return the outputs by name, which share this memory."""
        return {name: self[group][row] for name, group, row in OUTPUT_ROWS}

    def name_ideal_outputs(self) -> dict[str, AnyArray]:
        """Return the arrays of `IDEAL_OUTPUTS` and the time of validity by name, which share this memory."""
        return {name: self[group][row] for name, group, row in IDEAL_OUTPUT_ROWS}


def allocate_outputs(ticks: int, beams: int) -> OutputMemory:
    """Return memory for the outputs of ticks."""
    scalars, per_beam, vectors, covariances = OUTPUT_COUNTS
    return OutputMemory(
        np.empty((scalars, ticks)),
        np.empty((per_beam, ticks, beams)),
        np.empty((vectors, ticks, 3)),
        np.empty((covariances, ticks, 3, 3)),
    )


@inlined_kernel
def _split_beam_arrays(beam_arrays: FloatArray) -> BeamQuantities:
    """Return the arrays (n, k) in an array (10, n, k) as `BeamQuantities`, which share its memory."""
    return BeamQuantities(
        beam_arrays[0],
        beam_arrays[1],
        beam_arrays[2],
        beam_arrays[3],
        beam_arrays[4],
        beam_arrays[5],
        beam_arrays[6],
        beam_arrays[7],
        beam_arrays[8],
        beam_arrays[9],
    )


@kernel
def mark_output_pings(
    time: FloatArray, ping_duration: FloatArray, last_output_time: float, emitted: BoolArray
) -> float:
    """Write which ticks (n,) s output a ping; return the output time (s) of the last ping.

    A tick outputs a ping if its transmission, `ping_duration` (n,) s earlier, is not before the previous output. The
    rate therefore falls with depth.
    """
    for n in range(time.shape[0]):
        emitted[n] = time[n] - ping_duration[n] >= last_output_time - TIME_TOLERANCE
        if emitted[n]:
            last_output_time = time[n]
    return last_output_time


@kernel
def compute_steering_ratio(janus_cosine: float, sound_ratio: float) -> float:
    """Return f_k of a phased array's beam: `janus_cosine` is cos theta_k, `sound_ratio` is c0 / c.

    NaN if the beam cannot be steered.
    """
    squared_sine = (1.0 - janus_cosine * janus_cosine) / (sound_ratio * sound_ratio)
    return math.sqrt(1.0 - squared_sine) / janus_cosine if squared_sine < 1.0 else math.nan


@kernel
def _apply_track_errors(
    track: TrackParameters,
    is_phased_array: bool,
    rate: float,
    geometry: BeamGeometry,
    misalignment: FloatArray,
    long_term_error: FloatArray,
    sensor_velocity: Vectors,
    sound_ratio: FloatArray,
    noise: tuple[FloatArray, IntArray, FloatArray],
    true_velocity: FloatArray,
    velocity: FloatArray,
    stddev: FloatArray,
    is_too_fast: BoolArray,
) -> None:
    """Write the beam velocities (k, n) m/s of a track with errors, and standard deviations (n, k) m/s, see the module.

    `noise` has the factors (n, k) of the standard deviations, the rows (k,) of the normal draws, and the draws.
    `true_velocity` (n, k) determines the velocity vector. `sensor_velocity` (n, 3) replaces it with fewer than three
    beams. `is_too_fast` (n,) marks ticks above the maximum velocity of the track.
    """
    factor, rows, draws = noise
    axes, axis, count = geometry.beam_axes, geometry.instrument_axis, geometry.beam_axes.shape[0]
    is_misaligned = misalignment[1] != 0.0 or misalignment[2] != 0.0 or misalignment[3] != 0.0
    scale, offset = long_term_error[0], long_term_error[1:]
    has_echo, equal_weights = np.empty(count, np.bool_), np.zeros(count)
    true_vector, covariance = np.empty(3), np.empty((3, 3))
    for n in range(true_velocity.shape[0]):
        for k in range(count):
            has_echo[k] = true_velocity[n, k] == true_velocity[n, k]
        if solve_velocity(axes, true_velocity[n], equal_weights, has_echo, true_vector, covariance) < MIN_BEAMS:
            for i in range(3):
                true_vector[i] = sensor_velocity[n, i]
        x, y, z = true_vector[0], true_vector[1], true_vector[2]
        speed = math.sqrt(x * x + y * y + z * z)
        axial_speed = axis[0] * x + axis[1] * y + axis[2] * z
        dx, dy, dz = 0.0, 0.0, 0.0
        if is_misaligned:
            rx, ry, rz = rotate(misalignment[0], misalignment[1], misalignment[2], misalignment[3], x, y, z)
            dx, dy, dz = rx - x, ry - y, rz - z
        for k in range(count):
            ux, uy, uz = axes[k, 0], axes[k, 1], axes[k, 2]
            stddev[n, k] = compute_stddev(
                track.stddev, track.per_speed, speed, rate, track.reference_rate, factor[n, k]
            )
            # B_k and f_k c0 / c of the module.
            scaled_velocity, ratio = true_velocity[n, k], sound_ratio[n]
            if is_phased_array:
                janus_cosine = ux * axis[0] + uy * axis[1] + uz * axis[2]
                scaled_velocity = janus_cosine * axial_speed
                ratio *= compute_steering_ratio(janus_cosine, sound_ratio[n])
            value = true_velocity[n, k] + (ux * dx + uy * dy + uz * dz) + (ratio - 1.0) * scaled_velocity
            value = (1.0 + scale) * value + (ux * offset[0] + uy * offset[1] + uz * offset[2])
            if rows[k] >= 0:
                value += stddev[n, k] * draws[rows[k], n]
            velocity[k, n] = value
        is_too_fast[n] = speed > track.maximum_velocity


@inlined_kernel
def _compute_echo_effects(receiver: ReceiverParameters, quantities: BeamQuantities, factor: FloatArray) -> None:
    """Write the noise factors (n, k) and the lock probabilities."""
    for n in range(factor.shape[0]):
        for k in range(factor.shape[1]):
            strength = compute_strength(
                receiver.level,
                receiver.absorption,
                quantities.true_beam_range[n, k],
                quantities.incidence_cosine[n, k],
            )
            factor[n, k] = compute_noise_factor(strength, receiver.correlation)
            quantities.lock_probability[n, k] = compute_lock_probability(
                strength, receiver.threshold, receiver.lock_width
            )


@kernel
def _select_draws(rows: IntArray, draws: FloatArray, default: float, out: FloatArray) -> None:
    """Write the draws (n, k) of rows (k,), or `default` for a process that does not act."""
    for k in range(rows.shape[0]):
        for n in range(out.shape[0]):
            out[n, k] = draws[rows[k], n] if rows[k] >= 0 else default


@kernel
def apply_beam_errors(
    tracks: tuple[KernelTuple, KernelTuple],
    receiver_parameters: KernelTuple,
    rate: float,
    beam_geometry: KernelTuple,
    instrument_errors: KernelTuple,
    echo_inputs: KernelTuple,
    sensor_inputs: KernelTuple,
    draw_rows: KernelTuple,
    draws: FloatArray,
    beam_arrays: FloatArray,
    channel_inputs: FloatArray,
) -> None:
    """Write the values of k beams at n ticks with the errors of the instrument, without those of the noise channels.

    `channel_inputs` (3 k, n) receives the inputs of the noise channels: bottom-track and water-track velocities (m/s),
    and ranges (m). `beam_arrays` (10, n, k) receives the arrays of `BeamQuantities` that are not measured. The
    tuples are those of `TrackParameters` of bottom and water, `ReceiverParameters`, `BeamGeometry`, `InstrumentErrors`,
    `EchoInputs`, `SensorInputs` and `DrawRows`. `rate` (Hz) is that of the rows.
    """
    bottom, water, receiver = (
        TrackParameters(*tracks[0]),
        TrackParameters(*tracks[1]),
        ReceiverParameters(*receiver_parameters),
    )
    geometry, errors, rows = BeamGeometry(*beam_geometry), InstrumentErrors(*instrument_errors), DrawRows(*draw_rows)
    echoes, sensor, quantities = (
        EchoInputs(*echo_inputs),
        SensorInputs(*sensor_inputs),
        _split_beam_arrays(beam_arrays),
    )
    ticks, beams = echoes.true_beam_range.shape
    for n in range(ticks):
        for k in range(beams):
            quantities.true_beam_range[n, k] = echoes.true_beam_range[n, k]
            quantities.incidence_cosine[n, k] = echoes.incidence_cosine[n, k]
            quantities.lock_probability[n, k] = 1.0
    ratio, factor, is_too_fast = np.ones(ticks), np.ones((ticks, beams)), np.empty(ticks, np.bool_)
    if receiver.assumed_sound_speed > 0.0:
        for n in range(ticks):
            ratio[n] = receiver.assumed_sound_speed / sensor.sound_speed[n]
    if receiver.has_strength:
        _compute_echo_effects(receiver, quantities, factor)
    is_phased_array, misalignment = receiver.is_phased_array, errors.misalignment
    sensor_velocity = sensor.sensor_velocity
    bottom_errors, water_errors = errors.long_term_errors[0], errors.long_term_errors[1]
    noise, out = (factor, rows.bottom_noise, draws), (channel_inputs[:beams], quantities.beam_stddev, is_too_fast)
    _apply_track_errors(
        bottom, is_phased_array, rate, geometry, misalignment, bottom_errors, sensor_velocity, ratio, noise,
        echoes.true_beam_velocity, *out,
    )  # fmt: skip
    for n in range(ticks):
        if is_too_fast[n]:
            quantities.lock_probability[n] = 0.0
    factor[:] = 1.0
    noise = (factor, rows.water_noise, draws)
    out = (channel_inputs[beams : 2 * beams], quantities.water_beam_stddev, is_too_fast)
    _apply_track_errors(
        water, is_phased_array, rate, geometry, misalignment, water_errors, sensor_velocity, ratio, noise,
        echoes.true_water_beam_velocity, *out,
    )  # fmt: skip
    _select_draws(rows.lock, draws, 0.0, quantities.lock_draw)
    _select_draws(rows.dropout, draws, 1.0, quantities.dropout_draw)
    beam_axes, instrument_axis = geometry.beam_axes, geometry.instrument_axis
    for n in range(ticks):
        for k in range(beams):
            if is_too_fast[n]:
                channel_inputs[beams + k, n] = math.nan
            janus_cosine = (
                beam_axes[k, 0] * instrument_axis[0]
                + beam_axes[k, 1] * instrument_axis[1]
                + beam_axes[k, 2] * instrument_axis[2]
            )
            distance = echoes.true_beam_range[n, k] if echoes.true_beam_range[n, k] < math.inf else math.nan
            channel_inputs[2 * beams + k, n] = (
                distance * ratio[n] / (compute_steering_ratio(janus_cosine, ratio[n]) if is_phased_array else 1.0)
            )


@inlined_kernel
def _classify_range(parameters: SolutionParameters, quantities: BeamQuantities, n: int, k: int) -> float:
    """Return why beam k has no valid range at tick n: no usable echo, below the minimum, or above the maximum."""
    true, measured = quantities.true_beam_range[n, k], quantities.beam_range[n, k]
    if not (quantities.dropout_draw[n, k] >= parameters.dropout_probability and true == true):
        return NO_ECHO
    if true < parameters.minimum_range or true > parameters.maximum_range:
        return TOO_LOW if true < parameters.minimum_range else TOO_HIGH
    if not (
        quantities.incidence_cosine[n, k] >= parameters.min_incidence_cosine
        and quantities.lock_draw[n, k] < quantities.lock_probability[n, k]
    ):
        return NO_ECHO
    if measured < parameters.minimum_range or measured > parameters.maximum_range:
        return TOO_LOW if measured < parameters.minimum_range else TOO_HIGH
    return NO_ECHO  # in range, but in the reacquisition time


@inlined_kernel
def _select_good_beams(
    parameters: SolutionParameters,
    quantities: BeamQuantities,
    n: int,
    time: float,
    unlocked_until: FloatArray,
    good: BoolArray,
    outputs: BeamOutputs,
) -> int:
    """Write which beams (2, k) at tick n are good for bottom and water track; return the number of good bottom beams.

    `unlocked_until` (k,) s is the end of the reacquisition of each beam.
    """
    count, is_uuv = 0, parameters.solution_rule == UUV_RULE
    minimum, maximum = parameters.minimum_range, parameters.maximum_range
    for k in range(good.shape[1]):
        true, measured = quantities.true_beam_range[n, k], quantities.beam_range[n, k]
        is_good = minimum <= true <= maximum and quantities.incidence_cosine[n, k] >= parameters.min_incidence_cosine
        if is_uuv:
            measured = min(max(measured if is_good else (minimum if true < minimum else maximum), minimum), maximum)
        else:
            is_good = is_good and minimum <= measured <= maximum
        has_no_dropout = quantities.dropout_draw[n, k] >= parameters.dropout_probability
        is_good = is_good and quantities.lock_draw[n, k] < quantities.lock_probability[n, k] and has_no_dropout
        if not is_good:
            unlocked_until[k] = time + parameters.reacquisition_time
        is_good = is_good and (time >= unlocked_until[k] - TIME_TOLERANCE or parameters.reacquisition_time == 0.0)
        water_velocity = quantities.water_beam_velocity[n, k]
        good[0, k], good[1, k] = is_good, has_no_dropout and water_velocity == water_velocity
        outputs.beam_range[n, k] = measured if is_good or is_uuv else math.nan
        outputs.beam_velocity[n, k] = quantities.beam_velocity[n, k] if is_good else math.nan
        outputs.beam_deviation[n, k] = quantities.beam_stddev[n, k] if is_good else math.nan
        outputs.beam_valid[n, k] = 1.0 if is_good else 0.0
        if parameters.water_mode != NEVER and good[1, k]:
            outputs.water_beam_velocity[n, k] = water_velocity
            outputs.water_beam_deviation[n, k] = quantities.water_beam_stddev[n, k]
        outputs.range_validity[n, k] = IN_RANGE if is_good else _classify_range(parameters, quantities, n, k)
        count += 1 if is_good else 0
    return count


@inlined_kernel
def _solve_track(
    parameters: SolutionParameters,
    axes: Vectors,
    velocity: FloatArray,
    stddev: FloatArray,
    good: BoolArray,
    out: FloatArray,
    covariance: FloatArray,
) -> bool:
    """Write a velocity (3,) and its covariance (3, 3). Return True if there is a solution and it is not rejected."""
    beam_count = solve_velocity(axes, velocity, stddev, good, out, covariance)
    if beam_count < MIN_BEAMS or (parameters.solution_rule == DSROS_RULE and beam_count < axes.shape[0]):
        return False
    limit = parameters.error_velocity_limit
    return limit == math.inf or not abs(compute_error_velocity(axes, velocity, good)) > limit


@inlined_kernel
def _rotate_solution(
    rotation: FloatArray, vector: FloatArray, covariance: FloatArray, out: FloatArray, out_covariance: FloatArray
) -> None:
    """Write a velocity (3,) and its covariance (3, 3) rotated by a quaternion (4,)."""
    w, x, y, z = rotation[0], rotation[1], rotation[2], rotation[3]
    out[0], out[1], out[2] = rotate(w, x, y, z, vector[0], vector[1], vector[2])
    for j in range(3):
        a, b, c = rotate(w, x, y, z, covariance[0, j], covariance[1, j], covariance[2, j])
        out_covariance[0, j], out_covariance[1, j], out_covariance[2, j] = a, b, c
    for i in range(3):
        a, b, c = rotate(w, x, y, z, out_covariance[i, 0], out_covariance[i, 1], out_covariance[i, 2])
        out_covariance[i, 0], out_covariance[i, 1], out_covariance[i, 2] = a, b, c


@inlined_kernel
def _is_water_better(parameters: SolutionParameters, covariance: FloatArray) -> bool:
    """Return True if the water track replaces a solved bottom track.

    `bottom_mode` is `BEST`, `water_mode` is not `FALLBACK`, and the water track has the smaller variance.
    """
    if parameters.bottom_mode != BEST or parameters.water_mode == FALLBACK:
        return False
    bottom, water = covariance[0], covariance[1]
    is_better: bool = water[0, 0] + water[1, 1] + water[2, 2] < bottom[0, 0] + bottom[1, 1] + bottom[2, 2]
    return is_better


@inlined_kernel
def _compute_altitude(
    parameters: SolutionParameters,
    attitude: FloatArray,
    geometry: BeamGeometry,
    good: BoolArray,
    beam_range: FloatArray,
) -> float:
    """Return the altitude (m) from ranges (k,) m by the solution rule; NaN without an altitude."""
    if parameters.solution_rule == PHYSICAL_RULE:
        w, x, y, z = attitude[0], attitude[1], attitude[2], attitude[3]
        return compute_altitude(geometry.beam_axes, geometry.positions, beam_range, good, w, x, y, z)
    range_sum, count, at_minimum, at_maximum = 0.0, 0, 0, 0
    for k in range(good.shape[0]):
        if parameters.solution_rule == UUV_RULE or good[k]:
            range_sum += beam_range[k]
            count += 1
            at_minimum += 1 if beam_range[k] == parameters.minimum_range else 0
            at_maximum += 1 if beam_range[k] == parameters.maximum_range else 0
    if count == 0 or (parameters.solution_rule == UUV_RULE and max(at_minimum, at_maximum) == count):
        return math.nan
    return range_sum / count * (1.0 if parameters.solution_rule == UUV_RULE else DSROS_ALTITUDE_COSINE)


@inlined_kernel
def _compute_course(
    parameters: SolutionParameters, output_velocity: FloatArray, sensor_velocity: FloatArray, attitude: FloatArray
) -> tuple[float, float]:
    """Return course (rad) and speed (m/s) of a velocity given in the output frame (3,) and the sensor's frame (3,)."""
    if parameters.solution_rule == DSROS_RULE:
        course = math.atan2(output_velocity[0], output_velocity[1])
        speed = math.sqrt(output_velocity[0] * output_velocity[0] + output_velocity[1] * output_velocity[1])
        return course if course >= 0.0 else course + 2.0 * math.pi, speed
    v, w, x, y, z = sensor_velocity, attitude[0], attitude[1], attitude[2], attitude[3]
    return compute_course_and_speed(v[0], v[1], v[2], w, x, y, z)


@inlined_kernel
def _copy_water_track(outputs: SolutionOutputs, n: int) -> None:
    """Write the velocity of the water track of ping n, and its covariance, as the velocity of the ping."""
    for i in range(3):
        outputs.velocity[n, i] = outputs.water_velocity[n, i]
        for j in range(3):
            outputs.velocity_covariance[n, i, j] = outputs.water_velocity_covariance[n, i, j]


@inlined_kernel
def _write_solutions(
    parameters: SolutionParameters,
    geometry: BeamGeometry,
    quantities: BeamQuantities,
    attitude: Quaternions,
    time: Times,
    emitted: BoolArray,
    unlocked_until: FloatArray,
    solutions: TrackSolutions,
    beams: BeamOutputs,
    outputs: SolutionOutputs,
) -> None:
    """Select the good beams of each ping that is output, and write its tracks, altitude and course."""
    beam_axes, rotation = geometry.beam_axes, geometry.output_rotation
    good, solved, covariance = solutions.good, solutions.velocity, solutions.covariance
    for n in range(time.shape[0]):
        if not emitted[n]:
            continue
        outputs.num_good_beams[n] = _select_good_beams(parameters, quantities, n, time[n], unlocked_until, good, beams)
        outputs.altitude[n] = _compute_altitude(parameters, attitude[n], geometry, good[0], beams.beam_range[n])
        velocity, stddev = quantities.beam_velocity[n], quantities.beam_stddev[n]
        water_velocity, water_stddev = quantities.water_beam_velocity[n], quantities.water_beam_stddev[n]
        has_bottom_track = parameters.bottom_mode != NEVER and _solve_track(
            parameters, beam_axes, velocity, stddev, good[0], solved[0], covariance[0]
        )
        has_water_track = parameters.water_mode != NEVER and _solve_track(
            parameters, beam_axes, water_velocity, water_stddev, good[1], solved[1], covariance[1]
        )
        uses_water = has_water_track and (not has_bottom_track or _is_water_better(parameters, covariance))
        outputs.velocity_mode[n] = WATER_TRACK if uses_water else (BOTTOM_TRACK if has_bottom_track else NO_TRACK)
        if has_water_track and (uses_water or parameters.water_mode == ALWAYS):
            _rotate_solution(
                rotation, solved[1], covariance[1], outputs.water_velocity[n], outputs.water_velocity_covariance[n]
            )
        if uses_water:
            _copy_water_track(outputs, n)
            outputs.error_velocity[n] = compute_error_velocity(beam_axes, water_velocity, good[1])
            outputs.num_good_beams[n] = 0.0
            for k in range(good.shape[1]):
                outputs.num_good_beams[n] += 1.0 if good[1, k] else 0.0
        elif has_bottom_track:
            _rotate_solution(rotation, solved[0], covariance[0], outputs.velocity[n], outputs.velocity_covariance[n])
            outputs.error_velocity[n] = compute_error_velocity(beam_axes, velocity, good[0])
            outputs.course[n], outputs.speed[n] = _compute_course(
                parameters, outputs.velocity[n], solved[0], attitude[n]
            )


@inlined_kernel
def _write_uuv_velocity(
    rotation: FloatArray, sensor: SensorInputs, emitted: BoolArray, reported_stddev: float, outputs: SolutionOutputs
) -> None:
    """Write velocities as the UUV Simulator computes them: the sensor's true velocity, without the beams."""
    for n in range(emitted.shape[0]):
        if not emitted[n]:
            continue
        v, q = sensor.sensor_velocity[n], sensor.attitude[n]
        outputs.course[n], outputs.speed[n] = compute_course_and_speed(v[0], v[1], v[2], q[0], q[1], q[2], q[3])
        outputs.velocity[n, 0], outputs.velocity[n, 1], outputs.velocity[n, 2] = rotate(
            rotation[0], rotation[1], rotation[2], rotation[3], v[0], v[1], v[2]
        )
        outputs.velocity_mode[n], outputs.error_velocity[n] = BOTTOM_TRACK, math.nan
        for i in range(3):
            for j in range(3):
                outputs.velocity_covariance[n, i, j] = reported_stddev * reported_stddev if i == j else 0.0


@inlined_kernel
def _add_component_noise(
    rotation: FloatArray,
    attitude: Quaternions,
    emitted: BoolArray,
    component_noise: ComponentNoise,
    water_only: bool,
    outputs: SolutionOutputs,
) -> None:
    """Add noise to each component of all solved velocities (UUV Simulator) or of the water track's (dsros_dvl).

    Update what depends on them: course and speed (UUV Simulator), or the covariance and `velocity` (dsros_dvl).
    """
    velocity = outputs.water_velocity if water_only else outputs.velocity
    variance = component_noise.stddev * component_noise.stddev
    for n in range(velocity.shape[0]):
        for i in range(3):
            velocity[n, i] += component_noise.stddev * component_noise.draws[component_noise.rows[i], n]
            if water_only and velocity[n, i] == velocity[n, i]:
                for j in range(3):
                    outputs.water_velocity_covariance[n, i, j] = variance if i == j else 0.0
        if water_only and outputs.velocity_mode[n] == WATER_TRACK:
            _copy_water_track(outputs, n)
        if not water_only and emitted[n]:
            v, q = velocity[n], attitude[n]
            x, y, z = rotate(rotation[0], -rotation[1], -rotation[2], -rotation[3], v[0], v[1], v[2])
            outputs.course[n], outputs.speed[n] = compute_course_and_speed(x, y, z, q[0], q[1], q[2], q[3])


@kernel
def solve_pings(
    solution_parameters: KernelTuple,
    beam_geometry: KernelTuple,
    measured: FloatArray,
    beam_arrays: FloatArray,
    sensor_inputs: KernelTuple,
    track_inputs: KernelTuple,
    time: Times,
    emitted: BoolArray,
    unlocked_until: FloatArray,
    component_noise: KernelTuple,
    track_solutions: KernelTuple,
    output_memory: KernelTuple,
) -> None:
    """Write the outputs of pings at their output times (n,) s; ticks that output none are NaN except `sound_speed`.

    `measured` (3 k, n) has the `channel_inputs` of `apply_beam_errors` with the terms of the noise channels and faults.
    `beam_arrays` (10, n, k) are those of `apply_beam_errors`. `unlocked_until` (k,) s is updated. The tuples are
    those of `SolutionParameters`, `BeamGeometry`, `SensorInputs`, `TrackInputs`, `ComponentNoise`, `TrackSolutions` and
    `OutputMemory`.
    """
    parameters, geometry, noise_fields = (
        SolutionParameters(*solution_parameters),
        BeamGeometry(*beam_geometry),
        ComponentNoise(*component_noise),
    )
    sensor, tracks, quantities = (
        SensorInputs(*sensor_inputs),
        TrackInputs(*track_inputs),
        _split_beam_arrays(beam_arrays),
    )
    scalars, per_beam, vectors, covariances = output_memory
    # Rows are in the order of `OUTPUTS`. The long-term filter writes vectors[1] and covariances[1].
    altitude, course, speed, good_beam_count, velocity_mode = scalars[0], scalars[1], scalars[2], scalars[3], scalars[4]
    error_velocity, time_of_validity, sound_speed, layer_time_of_validity, layer_far_boundary = (
        scalars[5], scalars[6], scalars[7], scalars[8], scalars[9]
    )  # fmt: skip
    velocity, water_velocity, velocity_covariance, water_covariance = (
        vectors[0], vectors[2], covariances[0], covariances[2]
    )  # fmt: skip
    beam_outputs = BeamOutputs(
        per_beam[0], per_beam[1], per_beam[2], per_beam[3], per_beam[4], per_beam[5], per_beam[6]
    )  # fmt: skip
    outputs = SolutionOutputs(
        altitude, course, speed, good_beam_count, velocity_mode, error_velocity,
        velocity, water_velocity, velocity_covariance, water_covariance,
    )  # fmt: skip
    scalars[:], per_beam[:], vectors[:], covariances[:] = math.nan, math.nan, math.nan, math.nan
    beams = geometry.beam_axes.shape[0]
    for n in range(time.shape[0]):
        for k in range(beams):
            quantities.beam_velocity[n, k], quantities.water_beam_velocity[n, k] = (
                measured[k, n],
                measured[beams + k, n],
            )
            quantities.beam_range[n, k] = measured[2 * beams + k, n]
            if parameters.bottom_reported_stddev > 0.0:
                quantities.beam_stddev[n, k] = parameters.bottom_reported_stddev
            if parameters.water_reported_stddev > 0.0:
                quantities.water_beam_stddev[n, k] = parameters.water_reported_stddev
    _write_solutions(
        parameters, geometry, quantities, sensor.attitude, time, emitted, unlocked_until,
        TrackSolutions(*track_solutions), beam_outputs, outputs,
    )  # fmt: skip
    rotation = geometry.output_rotation
    if parameters.solution_rule == UUV_RULE:
        _write_uuv_velocity(rotation, sensor, emitted, parameters.bottom_reported_stddev, outputs)
    if noise_fields.rows[0] >= 0:
        _add_component_noise(
            rotation, sensor.attitude, emitted, noise_fields, parameters.solution_rule == DSROS_RULE, outputs
        )
    for n in range(time.shape[0]):
        if emitted[n]:
            uses_water = outputs.velocity_mode[n] == WATER_TRACK
            bottom_time, layer_time = tracks.bottom_time_of_validity[n], tracks.layer_time_of_validity[n]
            time_of_validity[n] = layer_time if uses_water else bottom_time
            if outputs.water_velocity[n, 0] == outputs.water_velocity[n, 0]:
                layer_time_of_validity[n], layer_far_boundary[n] = layer_time, tracks.layer_far_boundary[n]
        assumed = parameters.assumed_sound_speed
        sound_speed[n] = assumed if assumed > 0.0 else sensor.sound_speed[n]


def solve_ideal_pings(
    parameters: KernelTuple,
    geometry: KernelTuple,
    echoes: EchoInputs,
    sensor_inputs: KernelTuple,
    tracks: TrackInputs,
    output_memory: KernelTuple,
) -> None:
    """Write the outputs of n ticks for perfect measurements: `solve_pings` with true values instead of measured ones.

    The tuples are those of `solve_pings`.
    """
    ticks, beams = echoes.true_beam_range.shape
    beam_arrays, measured = np.zeros((len(BeamQuantities._fields), ticks, beams)), np.empty((3 * beams, ticks))
    quantities = BeamQuantities(*beam_arrays)
    quantities.true_beam_range[:], quantities.incidence_cosine[:] = echoes.true_beam_range, echoes.incidence_cosine
    quantities.lock_probability[:], quantities.dropout_draw[:] = 1.0, 1.0
    measured[:beams] = echoes.true_beam_velocity.T
    measured[beams : 2 * beams] = echoes.true_water_beam_velocity.T
    measured[2 * beams :] = echoes.true_beam_range.T
    solve_pings(
        parameters,
        geometry,
        measured,
        beam_arrays,
        sensor_inputs,
        tuple(tracks),
        tracks.bottom_time_of_validity,  # any times: they matter only for the reacquisition, which is 0 here
        np.ones(ticks, np.bool_),
        np.full(beams, -math.inf),
        (0.0, np.full(3, -1), np.empty((0, 0))),  # no noise
        tuple(allocate_solutions(beams)),
        output_memory,
    )


def add_faults(measured: FloatArray, ideal: Mapping[str, AnyArray]) -> None:
    """Add the offsets of injected faults to measured values (n, 3 k) of k beams at n ticks.

    Fault injection adds the offsets to the mapping of ideal values, under `NAME` + `OFFSET_SUFFIX`.
    """
    beams = measured.shape[1] // len(FAULT_INPUT_ARRAYS)
    for i, name in enumerate(FAULT_INPUT_ARRAYS):
        if f"{name}{OFFSET_SUFFIX}" in ideal:
            measured[:, i * beams : (i + 1) * beams] += ideal[f"{name}{OFFSET_SUFFIX}"]
