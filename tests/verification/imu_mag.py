"""Estimates of the errors of an IMU and a magnetometer other than noise.

A spec keeps one kind of error. The sensor moves or reads a stimulus, and the parameter follows from a closed form.
Nothing here is random: the error is the rounding of doubles.

    misalignment, g-sensitivity    readings = A (ideal values): least squares over a motion about all axes
    soft iron, hard iron, current  readings = S (ideal field) + h + c i(t): the same
    bandwidth f_c                  the sum of the lag after a step is sqrt(2) / (2 pi f_c) of the step;
                                   vibrations at f_c and 10 f_c have the gains 1 / sqrt(2) and 1 / sqrt(1 + 10^4), and
                                   the phase -pi / 2 at f_c; an input that is linear between samples at the rate r
                                   has the gain sum_k H(f + k r) sinc^2(f / r + k) at the frequency f, with all aliases
    vibration                      x_(k+1) + x_(k-1) = 2 cos(2 pi f / r) x_k gives the frequency; the factors of sine
                                   and cosine give amplitude and phase
    averaged                       sin(pi f / r) / (pi f / r) of a vibration at f; sums of increments equal the motion
    earth rate                     readings minus motion: omega_e, and 2 omega_e x v

The lag after a step is valid at any rate: the mean over k of sinc^2 has no slope at f = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from navsense.core.geodesy import EARTH_RATE
from navsense.core.pose import Pose, from_rpy
from navsense.core.rotation import multiply_python, to_rotation_vector_python
from navsense.core.typing import AnyArray, FloatArray, Times
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Vibration
from navsense.sensors.base import Sensor
from navsense.sensors.imu import NO_G_SENSITIVITY, NO_MISALIGNMENT, Imu
from navsense.sensors.magnetometer import MOTOR_CURRENT, Magnetometer
from tests.verification import adcp_cells, assumed_water, doppler_beams
from tests.verification.estimates import ROUNDING, Estimate, MotionTerm, MotionTrial, Term, Trial

AXES = "xyz"
TRIADS = ("angular_velocity", "linear_acceleration")
OFF_DIAGONAL = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
"""Row and column of the six angles of a misalignment, in order."""

SAMPLES_BEFORE_STEP = 10
"""Samples before a step."""

SINE_FREQUENCY = 0.2
"""Frequency of the sine stimulus, as a share of the rate."""

ALIASES = 50_000
"""Number of aliases in the sum on each side. The remainder is below 1e-12."""

SETTLING_EXPONENT = 40.0
"""Exponent of e after which the initial transient is negligible."""

STOP_BAND_RATIO = 10.0
"""Frequency in the stop band, as a multiple of the bandwidth. The gain falls by 40 dB per decade."""


@lru_cache(maxsize=1)
def make_tumbling_motion() -> Motion:
    """Return a motion with rotations about all axes and velocities in all directions, with a period of 8 s."""
    turns = np.linspace(0.0, 2.0 * math.pi, 17)
    poses = [
        Pose(
            (2.0 * math.sin(turn), math.sin(2.0 * turn + 0.5), math.cos(3.0 * turn)),
            from_rpy(1.1 * math.sin(turn), 0.9 * math.sin(2.0 * turn + 1.0), 1.3 * math.sin(turn + 2.0)),
        )
        for turn in turns
    ]
    return waypoints([0.5 * k for k in range(17)], [*poses[:-1], poses[0]], loop=True)


def _solve_least_squares(columns: FloatArray, values: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the least-squares x (c, m) of columns (n, c) x = values (n, m), and the rounding error of a row (c,)."""
    sizes = np.linalg.norm(columns, axis=0)
    found, _, _, stretch = np.linalg.lstsq(columns / sizes, values, rcond=None)
    rounding = ROUNDING * float(np.abs(values).max()) * math.sqrt(columns.shape[0]) / float(stretch[-1])
    return np.asarray(found / sizes[:, None]), np.asarray(rounding / sizes)


def _compute_phase(frequency: float, time: Times) -> FloatArray:
    """Return 2 pi f t (n,) modulo full turns."""
    turns = frequency * time
    return np.asarray(2.0 * math.pi * (turns - np.floor(turns)))


def _fit_sine_and_cosine(frequency: float, time: Times, values: FloatArray) -> tuple[float, float]:
    """Return the amplitudes of sine and cosine of a frequency (Hz) in values (n,)."""
    angle = _compute_phase(frequency, time)
    found, _ = _solve_least_squares(np.stack((np.sin(angle), np.cos(angle)), axis=-1), values[:, None])
    return float(found[0, 0]), float(found[1, 0])


def _is_aliased_to_zero(frequency: float, rate: float) -> bool:
    """True if samples at `rate` (Hz) do not separate sine and cosine of a frequency (Hz)."""
    return abs(math.sin(2.0 * math.pi * frequency / rate)) < 1e-3


def _remove_errors(spec: Imu, **changes: Any) -> Imu:
    """Return an IMU with these changes but without other errors, averaging and earth rotation."""
    return replace(spec.without_errors(), **{"averaged": False, "earth_rotation": False, **changes})


def _make_bandwidth_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with its bandwidth alone."""
    return (_remove_errors(spec, bandwidth=spec.bandwidth),) if isinstance(spec, Imu) and spec.bandwidth else ()


def _make_vibration_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return a spec for each vibration."""
    return [_remove_errors(spec, vibration=(line,)) for line in spec.vibration] if isinstance(spec, Imu) else ()


def _make_averaging_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return a spec for each vibration, with averaging."""
    if not isinstance(spec, Imu) or not spec.averaged:
        return ()
    return [_remove_errors(spec, averaged=True, vibration=(line,)) for line in spec.vibration]


def make_step(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values that step from 0 to 1."""
    return np.where(np.arange(count) < SAMPLES_BEFORE_STEP, 0.0, 1.0)


def make_sine(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return a sine with a period of five samples."""
    return np.asarray(np.sin(_compute_phase(SINE_FREQUENCY, np.arange(count, dtype=np.float64))))


def estimate_bandwidth(trial: Trial) -> Iterator[Estimate]:
    """Yield the bandwidth from the sum of the lag after a step, if the step response is complete."""
    if isinstance(trial.spec, Imu) and abs(trial.error[0, -1]) <= trial.rounding:
        lag = -float(np.sum(trial.error[0]))
        measured, error = math.sqrt(0.5) * trial.rate / (math.pi * lag), trial.error.size * trial.rounding / lag
        yield Estimate("bandwidth", trial.spec.bandwidth, measured, measured * error, unit="Hz")


def compute_first_order_hold_response(frequency: float, limit: float, rate: float) -> complex:
    """Return the gain of a second-order Butterworth low-pass for an input that is linear between samples.

    frequency, limit (the bandwidth) and rate in Hz: sum_k H(f + k r) sinc^2((f + k r) / r).
    """
    f = frequency + rate * np.arange(-ALIASES, ALIASES + 1)
    u = f / limit
    return complex(np.sum(np.sinc(f / rate) ** 2 / (1.0 - u * u + 1j * math.sqrt(2.0) * u)))


def estimate_gain_in_band(trial: Trial) -> Iterator[Estimate]:
    """Yield gain and phase of the filter at a fifth of the rate, if the transient fits into half of the record."""
    if not isinstance(trial.spec, Imu):
        return
    limit, rate = trial.spec.bandwidth, trial.rate
    start = math.ceil(SETTLING_EXPONENT * rate / (math.sqrt(2.0) * math.pi * limit))
    if 2 * start > trial.error.size:
        return
    samples = np.arange(trial.error.size, dtype=np.float64)
    measured, expected = _fit_sine_and_cosine(SINE_FREQUENCY, samples[start:], (trial.ideal + trial.error[0])[start:])
    declared, rounding = compute_first_order_hold_response(SINE_FREQUENCY * rate, limit, rate), 10.0 * trial.rounding
    place = f"{SINE_FREQUENCY * rate:g} Hz of samples"
    yield Estimate(f"bandwidth (gain at {place})", abs(declared), math.hypot(measured, expected), rounding, unit="1")
    phase = math.atan2(declared.imag, declared.real)
    error = rounding / abs(declared)
    yield Estimate(f"bandwidth (phase at {place})", phase, math.atan2(expected, measured), error, unit="rad")


def make_pass_band_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return specs with the bandwidth and a vibration of two axes in quadrature, at the bandwidth and far above."""
    if not isinstance(spec, Imu) or not spec.bandwidth:
        return ()
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    pairs = [
        (Vibration(frequency, x, x), Vibration(frequency, y, y, 0.5 * math.pi))
        for frequency in (spec.bandwidth, STOP_BAND_RATIO * spec.bandwidth)
    ]
    return [_remove_errors(spec, bandwidth=spec.bandwidth, vibration=pair) for pair in pairs]


def estimate_pass_band(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield gain and phase of the filter at the frequency of a vibration."""
    if not isinstance(trial.spec, Imu):
        return
    frequency, limit = trial.spec.vibration[0].frequency, trial.spec.bandwidth
    gain = 1.0 / math.hypot(1.0, (frequency / limit) ** 2)
    angle = _compute_phase(frequency, trial.time)
    for triad in TRIADS:
        difference = trial.arrays[triad] - trial.ideal[triad]
        found = complex(np.mean((difference[:, 1] + 1j * difference[:, 0]) * (np.cos(angle) - 1j * np.sin(angle))))
        error = ROUNDING * (float(np.abs(trial.arrays[triad]).max()) + frequency * float(trial.time[-1]))
        yield triad, Estimate(f"bandwidth (gain at {frequency:g} Hz)", gain, abs(found), error, unit="1")
        if frequency == limit:
            phase = math.atan2(found.imag, found.real)
            name = f"bandwidth (phase at {frequency:g} Hz)"
            yield triad, Estimate(name, -0.5 * math.pi, phase, error / gain, unit="rad")


def _find_vibration(trial: Trial) -> tuple[Vibration, float] | None:
    """Return the vibration and its amplitude in the channel; None if it has none or is aliased to zero."""
    if not isinstance(trial.spec, Imu):
        return None
    line = trial.spec.vibration[0]
    amplitude = getattr(line, trial.output)[trial.axis]
    return None if amplitude == 0.0 or _is_aliased_to_zero(line.frequency, trial.rate) else (line, amplitude)


def _find_nearest_alias(angle: float, rate: float, near: float) -> float:
    """Return the frequency (Hz) nearest to `near` whose samples at `rate` (Hz) advance by +-`angle` (rad)."""
    alias = angle * rate / (2.0 * math.pi)
    return min(
        (alias * sign + rate * round((near - alias * sign) / rate) for sign in (1.0, -1.0)),
        key=_make_distance_key(near),
    )


def _make_distance_key(near: float) -> Callable[[float], float]:
    return lambda value: abs(value - near)


def estimate_vibration(trial: Trial) -> Iterator[Estimate]:
    """Yield frequency, amplitude and phase of a vibration, if it is not aliased to 0 or half the rate.

    Of the alias frequencies, the one nearest to the declared frequency is used.
    """
    vibration = _find_vibration(trial)
    if vibration is None:
        return
    (line, amplitude), x = vibration, trial.error[0]
    cosine = 0.5 * float(np.sum(x[1:-1] * (x[2:] + x[:-2])) / np.sum(x[1:-1] ** 2))
    angle, place = math.acos(cosine), f"{line.frequency:g} Hz"
    share = trial.rounding / abs(amplitude) + ROUNDING * line.frequency * float(trial.time[-1])
    found = _find_nearest_alias(angle, trial.rate, line.frequency)
    error = share * trial.rate / (2.0 * math.pi * math.sin(angle))
    yield Estimate(f"vibration (frequency, {place})", line.frequency, found, error, unit="Hz")
    amplitudes, other = _fit_sine_and_cosine(line.frequency, trial.time, x)
    size = math.copysign(math.hypot(amplitudes, other), amplitude)
    yield Estimate(f"vibration (amplitude, {place})", amplitude, size, 10.0 * share * abs(amplitude))
    phase = math.remainder(math.atan2(other / size, amplitudes / size) - line.phase, 2.0 * math.pi)
    yield Estimate(f"vibration (phase, {place})", line.phase, line.phase + phase, 10.0 * share, unit="rad")


def estimate_averaged_gain(trial: Trial) -> Iterator[Estimate]:
    """Yield the gain of averaging for a vibration. The first sample has no interval."""
    vibration = _find_vibration(trial)
    if vibration is None:
        return
    (line, amplitude), half = vibration, 0.5 / trial.rate
    amplitudes, other = _fit_sine_and_cosine(line.frequency, trial.time[1:] - half, trial.error[0, 1:])
    measured = (amplitudes * math.cos(line.phase) + other * math.sin(line.phase)) / amplitude
    declared = math.sin(math.pi * line.frequency / trial.rate) / (math.pi * line.frequency / trial.rate)
    error = 10.0 * (trial.rounding / abs(amplitude) + ROUNDING * line.frequency * float(trial.time[-1]))
    yield Estimate(f"averaged (gain at {line.frequency:g} Hz)", declared, measured, error, unit="1")


def _make_cross_axis_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with its misalignments and g-sensitivity alone."""
    if not isinstance(spec, Imu):
        return ()
    names = ("angular_velocity_misalignment", "linear_acceleration_misalignment", "g_sensitivity")
    values = {name: getattr(spec, name) for name in names}
    return () if set(values.values()) <= {NO_MISALIGNMENT, NO_G_SENSITIVITY} else (_remove_errors(spec, **values),)


def estimate_cross_axis_errors(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the response of each axis to all other axes."""
    if not isinstance(trial.spec, Imu):
        return
    ideal, read = (
        np.concatenate([source[triad] for triad in TRIADS], axis=1) for source in (trial.ideal, trial.arrays)
    )
    found, error = _solve_least_squares(ideal, read)
    for first, triad in zip((0, 3), TRIADS, strict=True):
        name = f"{triad}_misalignment"
        for (row, column), declared in zip(OFF_DIAGONAL, getattr(trial.spec, name), strict=True):
            measured, rounding = float(found[first + column, first + row]), float(error[first + column])
            figure = f"{name} {AXES[row]}{AXES[column]}"
            yield f"{triad}.{AXES[row]}", Estimate(figure, declared, measured, rounding, unit="rad")
    for place, declared in enumerate(trial.spec.g_sensitivity):
        row, column = divmod(place, 3)
        measured, rounding = float(found[3 + column, row]), float(error[3 + column])
        figure = f"g_sensitivity {AXES[row]}{AXES[column]}"
        unit = "rad/s / (m/s^2)"
        yield f"angular_velocity.{AXES[row]}", Estimate(figure, declared, measured, rounding, unit=unit)


def _compute_rotation_matrices(quaternions: AnyArray) -> FloatArray:
    """Return the rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), -1, 0)


def _rotate_to_world(trial: MotionTrial, vectors: AnyArray, first: int = 0) -> FloatArray:
    """Rotate vectors (n, 3) from the sensor frame at the samples from `first` on to the world frame."""
    phase = _compute_rotation_matrices(trial.truth.rotation_wb[first : first + vectors.shape[0]])
    return np.asarray(np.einsum("nij,nj->ni", phase, vectors))


def _compute_gravity(trial: MotionTrial) -> AnyArray:
    return trial.environment.gravity.at(trial.truth.position_w, trial.time)


def _make_increment_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the averaging spec without errors."""
    return (_remove_errors(spec, averaged=True),) if isinstance(spec, Imu) and spec.averaged else ()


def estimate_increments(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the velocity change and the rotation that the interval means sum up to."""
    step_, truth, count = 1.0 / trial.rate, trial.truth, trial.time.size
    force = _rotate_to_world(trial, trial.arrays["linear_acceleration"][1:]) + _compute_gravity(trial)[1:]
    gained = step_ * np.sum(force, axis=0)
    declared = truth.velocity_w[-1] - truth.velocity_w[0]
    rounding = ROUNDING * math.sqrt(count) * step_ * float(np.abs(trial.arrays["linear_acceleration"]).max())
    for axis, name in enumerate(AXES):
        found = Estimate("averaged (velocity gained)", float(declared[axis]), float(gained[axis]), rounding, unit="m/s")
        yield f"linear_acceleration.{name}", found
    start = truth.rotation_wb[0]
    at = (1.0, 0.0, 0.0, 0.0)
    for rate in trial.arrays["angular_velocity"][1:]:
        vector = step_ * rate
        size = float(np.linalg.norm(vector))
        share = 0.5 * float(np.sinc(0.5 * size / math.pi))
        at = multiply_python(*at, math.cos(0.5 * size), *(share * float(part) for part in vector))
    rotation = to_rotation_vector_python(*multiply_python(start[0], *(-start[1:]), *truth.rotation_wb[-1]))
    for axis, (expected, summed) in enumerate(zip(rotation, to_rotation_vector_python(*at), strict=True)):
        found = Estimate("averaged (turn)", float(expected), float(summed), ROUNDING * math.sqrt(count), unit="rad")
        yield f"angular_velocity.{AXES[axis]}", found


def _make_earth_rate_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with earth rotation, without errors."""
    return (_remove_errors(spec, earth_rotation=True),) if isinstance(spec, Imu) and spec.earth_rotation else ()


def estimate_earth_rate(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the earth rate to the north and upwards, from the gyroscopes and from the Coriolis acceleration."""
    if trial.environment.origin is None:
        return
    truth, latitude = trial.truth, trial.environment.origin.latitude
    difference = _rotate_to_world(trial, trial.arrays["angular_velocity"] - truth.angular_velocity_b)
    force = (
        _rotate_to_world(trial, trial.arrays["linear_acceleration"]) - truth.acceleration_w + _compute_gravity(trial)
    )
    x, y, z = np.moveaxis(2.0 * truth.velocity_w, -1, 0)
    none = np.zeros_like(x)
    columns = np.moveaxis(np.array(((none, z, -y), (-z, none, x), (y, -x, none))), -1, 0).reshape(-1, 3)
    coriolis, _ = _solve_least_squares(columns, force.reshape(-1, 1))
    sizes = [float(np.abs(trial.arrays[triad]).max()) for triad in TRIADS]
    found = (np.mean(difference, axis=0), coriolis[:, 0])
    for triad, size, rate in zip(TRIADS, sizes, found, strict=True):
        for name, axis, share in (("north", 1, math.cos(latitude)), ("up", 2, math.sin(latitude))):
            figure, declared = f"earth_rotation ({name})", EARTH_RATE * share
            yield triad, Estimate(figure, declared, float(rate[axis]), ROUNDING * size, unit="rad/s")


def _make_iron_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the spec with hard iron, soft iron and motor current alone."""
    if not isinstance(spec, Magnetometer):
        return ()
    values = {name: getattr(spec, name) for name in ("hard_iron", "soft_iron", "field_per_ampere")}
    isolated = replace(spec.without_errors(), **values)
    return () if isolated == spec.without_errors() else (isolated,)


def estimate_iron(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the response to each axis of the external field, the constant and the response to the motor current."""
    if not isinstance(trial.spec, Magnetometer):
        return
    current = trial.environment.signal(MOTOR_CURRENT, trial.time)
    columns = np.column_stack((trial.ideal["field"], np.ones_like(current), current))
    found, error = _solve_least_squares(columns, trial.arrays["field"])
    spec = trial.spec
    for row, axis in enumerate(AXES):
        figures = [(f"soft_iron {axis}{AXES[column]}", "1", spec.soft_iron[3 * row + column]) for column in range(3)]
        figures += [("hard_iron", "T", spec.hard_iron[row]), ("field_per_ampere", "T / A", spec.field_per_ampere[row])]
        for column, (name, unit, declared) in enumerate(figures):
            yield f"field.{axis}", Estimate(name, declared, float(found[column, row]), float(error[column]), unit=unit)


TERMS: tuple[Term | MotionTerm, ...] = (
    MotionTerm("mixing", estimate_cross_axis_errors, 500, _make_cross_axis_specs, make_tumbling_motion),
    Term("bandwidth", (), estimate_bandwidth, 1000, stimulus=make_step, make_specs=_make_bandwidth_specs),
    MotionTerm("pass band", estimate_pass_band, 20, make_pass_band_specs, Stationary),
    Term("gain in band", (), estimate_gain_in_band, 1000, stimulus=make_sine, make_specs=_make_bandwidth_specs),
    Term("vibration", (), estimate_vibration, 30, make_specs=_make_vibration_specs),
    Term("averaged gain", (), estimate_averaged_gain, 30, make_specs=_make_averaging_specs),
    MotionTerm("increments", estimate_increments, 500, _make_increment_specs, make_tumbling_motion),
    MotionTerm("earth", estimate_earth_rate, 500, _make_earth_rate_specs, make_tumbling_motion),
    MotionTerm("iron", estimate_iron, 500, _make_iron_specs, make_tumbling_motion),
    *assumed_water.TERMS,
    *doppler_beams.TERMS,
    *adcp_cells.TERMS,
)
"""The estimators of all parameters outside `Noise`, with those of depth, range and Doppler sensors."""
