"""What an IMU and a magnetometer have beside the noise of their channels, read back from their readings.

A sheet is left with one kind of figure, the sensor moves or reads a stimulus, and what is known of the figure in closed
form gives it back. There is no chance in any of it: what a figure may be off by is the rounding of doubles.

    misalignment, g-sensitivity    readings = A (ideal values): least squares over a motion that turns about all axes
    soft iron, hard iron, current  readings = S (ideal field) + h + c i(t): the same
    bandwidth f_c                  the sum of what the readings lag behind a step is sqrt(2) / (2 pi f_c) of the step;
                                   lines at f_c and 10 f_c come with 1 / sqrt(2) and 1 / sqrt(1 + 10^4), turned by
                                   -pi / 2 at f_c; an input that is straight between samples at the rate r comes with
                                   sum_k H(f + k r) sinc^2(f / r + k) at the frequency f, for all that is folded there
    vibration                      x_(k+1) + x_(k-1) = 2 cos(2 pi f / r) x_k gives the frequency; sine and cosine the
                                   rest
    averaged                       sin(pi f / r) / (pi f / r) of a line at f; increments that sum up to the motion
    the earth's rate               what is felt beside the motion: omega_e, and 2 omega_e x v

The delay of a step holds for any rate: the mean over k of sinc^2 has no slope at f = 0.
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
from tests.verification.estimates import DIGITS, Estimate, Moved, MovedTerm, Term, Trial

AXES = "xyz"
TRIADS = ("angular_velocity", "linear_acceleration")
OFF_DIAGONAL = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
"""Row and column of the six angles of a misalignment, in their order."""

LEAD = 10
"""Samples before a step."""

FIFTH = 0.2
"""Of the rate: the frequency at which an input that is straight between samples is looked at."""

FOLDS = 50_000
"""Multiples of the rate that are summed over: the rest is below a part in 10^12."""

SETTLED = 40.0
"""Exponents of e after which nothing is left of the start."""

FAR_BELOW = 10.0
"""Times the bandwidth, where the gain falls by 40 dB a decade."""


@lru_cache(maxsize=1)
def tumbling() -> Motion:
    """Return a motion that turns about all axes and goes in all directions, round and round in 8 s."""
    turns = np.linspace(0.0, 2.0 * math.pi, 17)
    poses = [
        Pose(
            (2.0 * math.sin(turn), math.sin(2.0 * turn + 0.5), math.cos(3.0 * turn)),
            from_rpy(1.1 * math.sin(turn), 0.9 * math.sin(2.0 * turn + 1.0), 1.3 * math.sin(turn + 2.0)),
        )
        for turn in turns
    ]
    return waypoints([0.5 * k for k in range(17)], [*poses[:-1], poses[0]], loop=True)


def _solve(columns: FloatArray, values: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the least squares x (c, m) of columns (n, c) x = values (n, m), and what rounding makes of a row (c,)."""
    sizes = np.linalg.norm(columns, axis=0)
    found, _, _, stretch = np.linalg.lstsq(columns / sizes, values, rcond=None)
    rounding = DIGITS * float(np.abs(values).max()) * math.sqrt(columns.shape[0]) / float(stretch[-1])
    return np.asarray(found / sizes[:, None]), np.asarray(rounding / sizes)


def _angle(frequency: float, time: Times) -> FloatArray:
    """Return 2 pi f t (n,) modulo full turns."""
    turns = frequency * time
    return np.asarray(2.0 * math.pi * (turns - np.floor(turns)))


def _waves(frequency: float, time: Times, values: FloatArray) -> tuple[float, float]:
    """Return the factors of sine and cosine of a frequency (Hz) in values (n,)."""
    angle = _angle(frequency, time)
    found, _ = _solve(np.stack((np.sin(angle), np.cos(angle)), axis=-1), values[:, None])
    return float(found[0, 0]), float(found[1, 0])


def _is_folded(frequency: float, rate: float) -> bool:
    """True if samples at `rate` (Hz) do not separate sine and cosine of a frequency (Hz)."""
    return abs(math.sin(2.0 * math.pi * frequency / rate)) < 1e-3


def _bare(spec: Imu, **given: Any) -> Imu:
    """Return an IMU without any error, at the instant, on an earth that stands, but for what is given."""
    return replace(spec.without_errors(), **{"averaged": False, "earth_rotation": False, **given})


def _bandwidth_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with its band limit alone."""
    return (_bare(spec, bandwidth=spec.bandwidth),) if isinstance(spec, Imu) and spec.bandwidth else ()


def _vibration_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with each line of vibration alone."""
    return [_bare(spec, vibration=(line,)) for line in spec.vibration] if isinstance(spec, Imu) else ()


def _averaging_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with each line of vibration alone, averaged."""
    if not isinstance(spec, Imu) or not spec.averaged:
        return ()
    return [_bare(spec, averaged=True, vibration=(line,)) for line in spec.vibration]


def step(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values that step from 0 to 1."""
    return np.where(np.arange(count) < LEAD, 0.0, 1.0)


def sine(_noise: Noise, _axis: int, count: int) -> FloatArray:
    """Return ideal values that go round in five samples."""
    return np.asarray(np.sin(_angle(FIFTH, np.arange(count, dtype=np.float64))))


def bandwidth(trial: Trial) -> Iterator[Estimate]:
    """Yield the bandwidth, from how far the readings lag behind a step altogether; nothing where it is not over."""
    if isinstance(trial.sheet, Imu) and abs(trial.error[0, -1]) <= trial.rounding:
        lag = -float(np.sum(trial.error[0]))
        measured, error = math.sqrt(0.5) * trial.rate / (math.pi * lag), trial.error.size * trial.rounding / lag
        yield Estimate("bandwidth", trial.sheet.bandwidth, measured, measured * error, unit="Hz")


def response_between_samples(frequency: float, limit: float, rate: float) -> complex:
    """Return what a Butterworth low-pass of second order makes of an input that is straight between its samples.

    frequency, limit (the bandwidth) and rate in Hz: sum_k H(f + k r) sinc^2((f + k r) / r).
    """
    f = frequency + rate * np.arange(-FOLDS, FOLDS + 1)
    u = f / limit
    return complex(np.sum(np.sinc(f / rate) ** 2 / (1.0 - u * u + 1j * math.sqrt(2.0) * u)))


def gain_in_band(trial: Trial) -> Iterator[Estimate]:
    """Yield gain and phase of the band limit at a fifth of the rate; nothing where the start is not over."""
    if not isinstance(trial.sheet, Imu):
        return
    limit, rate = trial.sheet.bandwidth, trial.rate
    start = math.ceil(SETTLED * rate / (math.sqrt(2.0) * math.pi * limit))
    if 2 * start > trial.error.size:
        return
    samples = np.arange(trial.error.size, dtype=np.float64)
    measured, expected = _waves(FIFTH, samples[start:], (trial.ideal + trial.error[0])[start:])
    declared, rounding = response_between_samples(FIFTH * rate, limit, rate), 10.0 * trial.rounding
    place = f"{FIFTH * rate:g} Hz of samples"
    yield Estimate(f"bandwidth (gain at {place})", abs(declared), math.hypot(measured, expected), rounding, unit="1")
    turned = math.atan2(declared.imag, declared.real)
    error = rounding / abs(declared)
    yield Estimate(f"bandwidth (phase at {place})", turned, math.atan2(expected, measured), error, unit="rad")


def probes(spec: Sensor) -> Sequence[Sensor]:
    """Return sheets with the band limit and a line, on two axes a quarter of a turn apart: at it, and far beyond."""
    if not isinstance(spec, Imu) or not spec.bandwidth:
        return ()
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    pairs = [
        (Vibration(frequency, x, x), Vibration(frequency, y, y, 0.5 * math.pi))
        for frequency in (spec.bandwidth, FAR_BELOW * spec.bandwidth)
    ]
    return [_bare(spec, bandwidth=spec.bandwidth, vibration=pair) for pair in pairs]


def pass_band(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield gain and phase of the band limit at the frequency of a line."""
    if not isinstance(moved.sheet, Imu):
        return
    frequency, limit = moved.sheet.vibration[0].frequency, moved.sheet.bandwidth
    gain = 1.0 / math.hypot(1.0, (frequency / limit) ** 2)
    angle = _angle(frequency, moved.time)
    for triad in TRIADS:
        felt = moved.arrays[triad] - moved.ideal[triad]
        found = complex(np.mean((felt[:, 1] + 1j * felt[:, 0]) * (np.cos(angle) - 1j * np.sin(angle))))
        error = DIGITS * (float(np.abs(moved.arrays[triad]).max()) + frequency * float(moved.time[-1]))
        yield triad, Estimate(f"bandwidth (gain at {frequency:g} Hz)", gain, abs(found), error, unit="1")
        if frequency == limit:
            turned = math.atan2(found.imag, found.real)
            name = f"bandwidth (phase at {frequency:g} Hz)"
            yield triad, Estimate(name, -0.5 * math.pi, turned, error / gain, unit="rad")


def _amplitude(trial: Trial) -> tuple[Vibration, float] | None:
    """Return the line of vibration and its amplitude in the channel, None where it has none or cannot be told."""
    if not isinstance(trial.sheet, Imu):
        return None
    line = trial.sheet.vibration[0]
    amplitude = getattr(line, trial.output)[trial.axis]
    return None if amplitude == 0.0 or _is_folded(line.frequency, trial.rate) else (line, amplitude)


def _unfold(angle: float, rate: float, near: float) -> float:
    """Return the frequency (Hz) next to `near` whose samples at `rate` (Hz) go on by `angle` (rad) or back by it."""
    alias = angle * rate / (2.0 * math.pi)
    return min((alias * sign + rate * round((near - alias * sign) / rate) for sign in (1.0, -1.0)), key=_from(near))


def _from(near: float) -> Callable[[float], float]:
    return lambda value: abs(value - near)


def vibration(trial: Trial) -> Iterator[Estimate]:
    """Yield frequency, amplitude and phase of a line; nothing where it is folded onto 0 or half the rate.

    Of the frequencies that look alike at this rate it is the one next to the declared one.
    """
    acting = _amplitude(trial)
    if acting is None:
        return
    (line, amplitude), x = acting, trial.error[0]
    cosine = 0.5 * float(np.sum(x[1:-1] * (x[2:] + x[:-2])) / np.sum(x[1:-1] ** 2))
    angle, place = math.acos(cosine), f"{line.frequency:g} Hz"
    share = trial.rounding / abs(amplitude) + DIGITS * line.frequency * float(trial.time[-1])
    found = _unfold(angle, trial.rate, line.frequency)
    error = share * trial.rate / (2.0 * math.pi * math.sin(angle))
    yield Estimate(f"vibration (frequency, {place})", line.frequency, found, error, unit="Hz")
    amplitudes, other = _waves(line.frequency, trial.time, x)
    size = math.copysign(math.hypot(amplitudes, other), amplitude)
    yield Estimate(f"vibration (amplitude, {place})", amplitude, size, 10.0 * share * abs(amplitude))
    turned = math.remainder(math.atan2(other / size, amplitudes / size) - line.phase, 2.0 * math.pi)
    yield Estimate(f"vibration (phase, {place})", line.phase, line.phase + turned, 10.0 * share, unit="rad")


def averaged_gain(trial: Trial) -> Iterator[Estimate]:
    """Yield what an average over each interval leaves of a line; the first sample has no interval."""
    acting = _amplitude(trial)
    if acting is None:
        return
    (line, amplitude), half = acting, 0.5 / trial.rate
    amplitudes, other = _waves(line.frequency, trial.time[1:] - half, trial.error[0, 1:])
    measured = (amplitudes * math.cos(line.phase) + other * math.sin(line.phase)) / amplitude
    declared = math.sin(math.pi * line.frequency / trial.rate) / (math.pi * line.frequency / trial.rate)
    error = 10.0 * (trial.rounding / abs(amplitude) + DIGITS * line.frequency * float(trial.time[-1]))
    yield Estimate(f"averaged (gain at {line.frequency:g} Hz)", declared, measured, error, unit="1")


def _mixing_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with its misalignments and g-sensitivity alone."""
    if not isinstance(spec, Imu):
        return ()
    names = ("angular_velocity_misalignment", "linear_acceleration_misalignment", "g_sensitivity")
    values = {name: getattr(spec, name) for name in names}
    return () if set(values.values()) <= {NO_MISALIGNMENT, NO_G_SENSITIVITY} else (_bare(spec, **values),)


def mixing(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield what each axis reads of every other one."""
    if not isinstance(moved.sheet, Imu):
        return
    ideal, read = (
        np.concatenate([source[triad] for triad in TRIADS], axis=1) for source in (moved.ideal, moved.arrays)
    )
    found, error = _solve(ideal, read)
    for first, triad in zip((0, 3), TRIADS, strict=True):
        name = f"{triad}_misalignment"
        for (row, column), declared in zip(OFF_DIAGONAL, getattr(moved.sheet, name), strict=True):
            measured, rounding = float(found[first + column, first + row]), float(error[first + column])
            figure = f"{name} {AXES[row]}{AXES[column]}"
            yield f"{triad}.{AXES[row]}", Estimate(figure, declared, measured, rounding, unit="rad")
    for place, declared in enumerate(moved.sheet.g_sensitivity):
        row, column = divmod(place, 3)
        measured, rounding = float(found[3 + column, row]), float(error[3 + column])
        figure = f"g_sensitivity {AXES[row]}{AXES[column]}"
        unit = "rad/s / (m/s^2)"
        yield f"angular_velocity.{AXES[row]}", Estimate(figure, declared, measured, rounding, unit=unit)


def _matrices(quaternions: AnyArray) -> FloatArray:
    """Return the rotations (n, 3, 3) of quaternions (n, 4)."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), -1, 0)


def _into_world(moved: Moved, vectors: AnyArray, first: int = 0) -> FloatArray:
    """Return vectors (n, 3) of the sensor's frame as it stood at the samples from `first` on, in the world."""
    turned = _matrices(moved.truth.rotation_wb[first : first + vectors.shape[0]])
    return np.asarray(np.einsum("nij,nj->ni", turned, vectors))


def _gravity(moved: Moved) -> AnyArray:
    return moved.environment.gravity.at(moved.truth.position_w, moved.time)


def _increment_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet that averages, without errors."""
    return (_bare(spec, averaged=True),) if isinstance(spec, Imu) and spec.averaged else ()


def increments(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the change of velocity and the turn that the means over all intervals sum up to."""
    step_, truth, count = 1.0 / moved.rate, moved.truth, moved.time.size
    force = _into_world(moved, moved.arrays["linear_acceleration"][1:]) + _gravity(moved)[1:]
    gained = step_ * np.sum(force, axis=0)
    declared = truth.velocity_w[-1] - truth.velocity_w[0]
    rounding = DIGITS * math.sqrt(count) * step_ * float(np.abs(moved.arrays["linear_acceleration"]).max())
    for axis, name in enumerate(AXES):
        found = Estimate("averaged (velocity gained)", float(declared[axis]), float(gained[axis]), rounding, unit="m/s")
        yield f"linear_acceleration.{name}", found
    start = truth.rotation_wb[0]
    at = (1.0, 0.0, 0.0, 0.0)
    for rate in moved.arrays["angular_velocity"][1:]:
        vector = step_ * rate
        size = float(np.linalg.norm(vector))
        share = 0.5 * float(np.sinc(0.5 * size / math.pi))
        at = multiply_python(*at, math.cos(0.5 * size), *(share * float(part) for part in vector))
    rotation = to_rotation_vector_python(*multiply_python(start[0], *(-start[1:]), *truth.rotation_wb[-1]))
    for axis, (expected, summed) in enumerate(zip(rotation, to_rotation_vector_python(*at), strict=True)):
        found = Estimate("averaged (turn)", float(expected), float(summed), DIGITS * math.sqrt(count), unit="rad")
        yield f"angular_velocity.{AXES[axis]}", found


def _earth_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet on an earth that turns, without errors."""
    return (_bare(spec, earth_rotation=True),) if isinstance(spec, Imu) and spec.earth_rotation else ()


def earth(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the earth's rate northwards and upwards, as the gyroscopes feel it, and as Coriolis' force does."""
    if moved.environment.origin is None:
        return
    truth, latitude = moved.truth, moved.environment.origin.latitude
    felt = _into_world(moved, moved.arrays["angular_velocity"] - truth.angular_velocity_b)
    force = _into_world(moved, moved.arrays["linear_acceleration"]) - truth.acceleration_w + _gravity(moved)
    x, y, z = np.moveaxis(2.0 * truth.velocity_w, -1, 0)
    none = np.zeros_like(x)
    columns = np.moveaxis(np.array(((none, z, -y), (-z, none, x), (y, -x, none))), -1, 0).reshape(-1, 3)
    coriolis, _ = _solve(columns, force.reshape(-1, 1))
    sizes = [float(np.abs(moved.arrays[triad]).max()) for triad in TRIADS]
    found = (np.mean(felt, axis=0), coriolis[:, 0])
    for triad, size, rate in zip(TRIADS, sizes, found, strict=True):
        for name, axis, share in (("north", 1, math.cos(latitude)), ("up", 2, math.sin(latitude))):
            figure, declared = f"earth_rotation ({name})", EARTH_RATE * share
            yield triad, Estimate(figure, declared, float(rate[axis]), DIGITS * size, unit="rad/s")


def _iron_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return the sheet with what stands around the sensor alone."""
    if not isinstance(spec, Magnetometer):
        return ()
    values = {name: getattr(spec, name) for name in ("hard_iron", "soft_iron", "motor_current")}
    sheet = replace(spec.without_errors(), **values)
    return () if sheet == spec.without_errors() else (sheet,)


def iron(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield what the readings have of each axis of the world's field, of no field and of the motors' current."""
    if not isinstance(moved.sheet, Magnetometer):
        return
    current = moved.environment.signal(MOTOR_CURRENT, moved.time)
    columns = np.column_stack((moved.ideal["field"], np.ones_like(current), current))
    found, error = _solve(columns, moved.arrays["field"])
    sheet = moved.sheet
    for row, axis in enumerate(AXES):
        figures = [(f"soft_iron {axis}{AXES[column]}", "1", sheet.soft_iron[3 * row + column]) for column in range(3)]
        figures += [("hard_iron", "T", sheet.hard_iron[row]), ("motor_current", "T / A", sheet.motor_current[row])]
        for column, (name, unit, declared) in enumerate(figures):
            yield f"field.{axis}", Estimate(name, declared, float(found[column, row]), float(error[column]), unit=unit)


TERMS: tuple[Term | MovedTerm, ...] = (
    MovedTerm("mixing", mixing, 500, _mixing_specs, tumbling),
    Term("bandwidth", (), bandwidth, 1000, stimulus=step, prepared=_bandwidth_specs),
    MovedTerm("pass band", pass_band, 20, probes, Stationary),
    Term("gain in band", (), gain_in_band, 1000, stimulus=sine, prepared=_bandwidth_specs),
    Term("vibration", (), vibration, 30, prepared=_vibration_specs),
    Term("averaged gain", (), averaged_gain, 30, prepared=_averaging_specs),
    MovedTerm("increments", increments, 500, _increment_specs, tumbling),
    MovedTerm("earth", earth, 500, _earth_specs, tumbling),
    MovedTerm("iron", iron, 500, _iron_specs, tumbling),
    *assumed_water.TERMS,
    *doppler_beams.TERMS,
    *adcp_cells.TERMS,
)
"""How each figure of a sheet that is no `Noise` is measured; depth, range and Doppler have files of their own."""
