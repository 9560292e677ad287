"""Estimates of the errors of a Doppler instrument other than the noise of its beams.

The instrument is at the origin of the shell or below it. The velocities v and ranges r at its beams are given. The beam
axes are u_k, and the beam velocities b_k = u_k . v. With one kind of error:

    track       b - u.v has the deviation per_speed |v| sqrt(rate / reference_rate), long_term_scale (u.v), or
                |u| long_term_offset over runs; reported_stddev is the deviation that a beam reports
    sound       c0 = c (a.measured) / (a.v), a the mean axis, for pistons and phased arrays
    mounting    the measured velocities of three unit vectors are the columns of the rotation
    rejection   the beam disagreement grows row by row: the limit is between the last valid row and the next
    lock        shares of lost beams; the shortest time without lock; the age of the echo minus its travel time
    strength    S of a deviation's factor f: (1 + 1 / s)^2 = f^2 (1 - rho^2) + rho^2,  s = 10^(S / 10)
    long term   with R of a ping, C_n of the filter: C_1 = R + o0^2,  q^2 dt = (P_2^-1 - R^-1)^-1 - R,
                P_2 = C_2 - o0^2,  o0 = assumed_offset

Random estimates have the errors of `estimates`: s / sqrt(2 n) of a deviation, sqrt(p (1 - p) / n) of a share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors.base import Output, Sensor, evaluate_signals
from navsense.sensors.doppler import IDENTITY_ROTATION, Beam, Beams, EchoStrength, TrackErrors, ping
from navsense.sensors.doppler.beams import ONE_RAY
from navsense.sensors.doppler.echoes import KernelTuple
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.sensors.range import Cone
from tests.verification.assumed_water import make_underwater_motion
from tests.verification.estimates import ROUNDING, Estimate, MotionTerm, MotionTrial, Term, Trial, make_ones

MAXIMUM_RANGE = 1e5
"""Range limit (m) of a beam without limits."""

PINGS, RUNS = 20_000, 1000

SPEED = 2.0
"""Speed (m/s) at which deviations that grow with speed are measured."""

PING_STDDEV = 0.1
"""Deviation (m/s) of beams whose deviation is needed to estimate another parameter."""

CANCELLATION = 1e-9
"""Relative rounding error of a difference of numbers of one size."""

IDEAL_NAMES: Mapping[str, str] = {
    "beam_velocity": "true_beam_velocity",
    "beam_range": "true_beam_range",
    "water_beam_velocity": "true_water_beam_velocity",
}
"""Outputs, and the ideal values that their noise acts on."""


class UnlimitedDvl(Dvl):
    """A DVL with an echo on every beam, at any distance and in any mode."""

    @cached_property
    def _solution_parameters(self) -> KernelTuple:
        """The limits of a ping, without those of range and incidence."""
        limits = ping.SolutionParameters(*super()._solution_parameters)
        return tuple(limits._replace(minimum_range=-math.inf, min_incidence_cosine=-math.inf, maximum_range=math.inf))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the ideal reading. It is constant for a stationary instrument."""
        if self.models_travel_time or not isinstance(motion, Stationary) or not len(ticks):
            return super().ideal(motion, environment, ticks)
        once = super().ideal(motion, environment, Ticks(ticks.index[:1], ticks.rate))
        same = {name: np.repeat(array, len(ticks), axis=0) for name, array in once.items()}
        times = dict.fromkeys(("time_of_validity", "bottom_time_of_validity", "layer_time_of_validity"), ticks.time)
        return {**same, **times, **evaluate_signals(self, environment, ticks.time)}

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each beam, including that of the water track."""
        water_noise = {"water_beam_velocity": (self.water.noise,) * len(self.beams.beams)}
        return {**super().noise(), **(water_noise if self.uses_current else {})}

    @property
    def noise_quantities(self) -> Mapping[str, Output]:
        """The ideal values that the noise of each array acts on."""
        units = {output.name: output for output in self.outputs}
        return {name: replace(units[name], name=IDEAL_NAMES[name]) for name in self.noise()}

    def compute_errors(self, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
        """Return reading minus ideal value (n, k) of these arrays."""
        return {name: arrays[name] - ideal[IDEAL_NAMES[name]] for name in self.noise()}


def remove_limits(spec: Dvl) -> UnlimitedDvl:
    """Return a DVL with the same errors and one-ray beams without limits; the water track keeps its state."""
    beams = Beams(tuple(Beam(_make_one_ray_shape(beam), beam.rotation, beam.position) for beam in spec.beams.beams))
    values = {field.name: getattr(spec, field.name) for field in fields(spec)}
    values |= {"beams": beams, "minimum_range": 0.0, "maximum_range": MAXIMUM_RANGE, "min_incidence_cosine": 0.0}
    values |= {"bottom_mode": TrackMode.ALWAYS, "reference": IDENTITY_ROTATION, "classic": False, "own_hull": False}
    values["water_mode"] = TrackMode.ALWAYS if spec.uses_current else TrackMode.NEVER
    return UnlimitedDvl(**values)


def _make_one_ray_shape(beam: Beam) -> Cone:
    """Return the shape of one ray along the axis of a beam."""
    return replace(ONE_RAY, axis=beam.shape.axis) if isinstance(beam.shape, Cone) else ONE_RAY


def _isolate(*names: str, **changes: Any) -> Callable[[Sensor], Sequence[Sensor]]:
    """Return a function that keeps only these fields of a spec, with `changes`. It returns no spec if none acts."""

    def make_specs(spec: Sensor) -> Sequence[Sensor]:
        if not isinstance(spec, Dvl):
            return ()
        bare = spec.without_errors()
        if all(getattr(spec, name) == getattr(bare, name) for name in names):
            return ()
        return (replace(bare, **changes, **{name: getattr(spec, name) for name in names}),)

    return make_specs


def _isolate_track(side: str, *names: str) -> Callable[[Sensor], Sequence[Sensor]]:
    """Return a function that keeps only these parameters of one track. It returns no spec if the first is neutral."""

    def make_specs(spec: Sensor) -> Sequence[Sensor]:
        if not isinstance(spec, Dvl) or (side == "water" and not spec.uses_current):
            return ()
        track = {"bottom": spec.bottom, "water": spec.water}[side]
        if not getattr(track, names[0]):
            return ()
        track_only: dict[str, Any] = {side: TrackErrors(**{name: getattr(track, name) for name in names})}
        return (replace(spec.without_errors(), **track_only),)

    return make_specs


def _measure(trial: MotionTrial, key: str, rate: float, count: int, **inputs: AnyArray) -> Mapping[str, AnyArray]:
    """Return `count` readings at a rate (Hz) of the stationary instrument, with `inputs` as ideal values."""
    spec = trial.spec
    ideal = {name: np.repeat(array[:1], count, axis=0) for name, array in trial.ideal.items()}
    draws = Draws(spec.processes(), 1, (0, "declared", spec.type, key, repr(rate)))
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    ideal |= {
        **dict.fromkeys(("time_of_validity", "bottom_time_of_validity", "layer_time_of_validity"), ticks.time),
        **inputs,
    }
    _, measured = spec.measure(spec.init(draws.initial), ticks, ideal, draws.take(count))
    return measured.arrays


def _make_moving_ideal(spec: Dvl, velocity: FloatArray) -> dict[str, AnyArray]:
    """Return the ideal values of velocities (n, 3) m/s over the bottom and through still water."""
    beam_velocity = velocity @ spec.beams.axes.T
    return {
        "sensor_velocity": np.ascontiguousarray(velocity),
        "true_beam_velocity": beam_velocity,
        "true_water_beam_velocity": beam_velocity,
    }


def _make_stddev_estimate(name: str, declared: float, samples: AnyArray, unit: str) -> Estimate:
    """Return the deviation of samples about 0."""
    measured = math.sqrt(float(np.mean(samples**2)))
    return Estimate(name, declared, measured, declared / math.sqrt(2.0 * samples.size), unit=unit)


def _estimate_speed_dependence(side: str, array: str) -> Callable[[MotionTrial], Iterator[tuple[str, Estimate]]]:
    """Return an estimator of how the deviations of a track grow with speed and rate."""

    def measure(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
        spec = trial.spec
        if not isinstance(spec, Dvl):
            return
        track = getattr(spec, side)
        inputs = _make_moving_ideal(spec, np.tile([0.6 * SPEED, 0.0, -0.8 * SPEED], (PINGS, 1)))
        errors = (
            _measure(trial, f"{side} speed", trial.rate, PINGS, **inputs)[array] - inputs["true_beam_velocity"]
        ).ravel()
        share = math.sqrt(trial.rate / track.reference_rate) if track.reference_rate else 1.0
        yield array, _make_stddev_estimate(f"{side} per_speed", track.per_speed, errors / (SPEED * share), "1")
        if track.reference_rate:
            size, declared = _make_stddev_estimate("", track.per_speed * SPEED, errors, ""), track.reference_rate
            found = trial.rate * (size.declared / size.measured) ** 2
            error = 2.0 * declared / math.sqrt(2.0 * errors.size)
            yield array, Estimate(f"{side} reference_rate", declared, found, error, unit="Hz")

    return measure


def _estimate_reported_stddev(side: str, array: str) -> Callable[[MotionTrial], Iterator[tuple[str, Estimate]]]:
    """Return an estimator of the deviation that a beam reports."""

    def measure(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
        declared = float(getattr(trial.spec, side).reported_stddev)
        measured = float(trial.arrays[array][0, 0])
        yield array, Estimate(f"{side} reported_stddev", declared, measured, ROUNDING * declared, unit="m/s")

    return measure


def _estimate_maximum_velocity(side: str, array: str) -> Callable[[MotionTrial], Iterator[tuple[str, Estimate]]]:
    """Return an estimator of the speed above which a track has no velocity along a beam."""

    def measure(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
        spec = trial.spec
        if not isinstance(spec, Dvl) or getattr(spec, side).maximum_velocity == math.inf:
            return
        declared = float(getattr(spec, side).maximum_velocity)
        steps = np.arange(1, 1001) / 500.0 * declared
        inputs = _make_moving_ideal(spec, np.outer(steps, (0.6, 0.0, -0.8)))
        reading = _measure(trial, f"{side} fastest", trial.rate, steps.size, **inputs)
        lost = int(np.argmax(np.isnan(reading[array][:, 0])))
        found, half = 0.5 * (steps[lost] + steps[lost - 1]), 0.5 * (steps[1] - steps[0])
        yield array, Estimate(f"{side} maximum_velocity", declared, float(found), float(half), unit="m/s")

    return measure


def _estimate_constant_error(side: str, array: str, name: str) -> Callable[[Trial], Iterator[Estimate]]:
    """Return an estimator of the deviation, over runs, of an error that is constant in a run."""

    def measure(trial: Trial) -> Iterator[Estimate]:
        if trial.output == array:
            declared = float(getattr(getattr(trial.spec, side), name))
            unit = "1" if name.endswith("scale") else "m/s"
            yield _make_stddev_estimate(f"{side} {name}", declared, trial.error[:, 0], unit)

    return measure


def estimate_sound_speed(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the assumed speed of sound."""
    spec = trial.spec
    if not isinstance(spec, Dvl) or spec.sound.speed is None:
        return
    axis = spec.beams.axes.mean(axis=0)
    inputs = _make_moving_ideal(spec, axis[None, :])
    measured, declared = _measure(trial, "sound", trial.rate, 1, **inputs)["velocity"][0], spec.sound.speed
    found = float(trial.ideal["sound_speed"][0]) * float(axis @ measured) / float(axis @ axis)
    yield "velocity", Estimate("sound speed", declared, found, 10.0 * ROUNDING * declared, unit="m/s")


def _compute_rotation_vector(velocity: AnyArray) -> list[float]:
    """Return the rotation vector (rad) of a matrix whose rows (3, 3) are the measured unit vectors."""
    turn = velocity.T
    parts = np.array((turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]))
    sine = 0.5 * float(np.linalg.norm(parts))
    angle = math.atan2(sine, 0.5 * (float(np.trace(turn)) - 1.0))
    return [0.5 * float(part) * (angle / sine if sine else 1.0) for part in parts]


def estimate_misalignment(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the misalignment of the instrument."""
    if not isinstance(trial.spec, Dvl):
        return
    velocity = _measure(trial, "mounting", trial.rate, 3, **_make_moving_ideal(trial.spec, np.eye(3)))["velocity"]
    for axis, declared, found in zip("xyz", trial.spec.misalignment, _compute_rotation_vector(velocity), strict=True):
        yield "velocity", Estimate(f"misalignment {axis}", declared, found, 10.0 * ROUNDING, unit="rad")


def estimate_misalignment_stddev(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the deviation of the misalignment over runs."""
    if not isinstance(trial.spec, Dvl):
        return
    inputs = _make_moving_ideal(trial.spec, np.eye(3))
    turns = [
        _compute_rotation_vector(_measure(trial, f"mounting {run}", trial.rate, 3, **inputs)["velocity"])
        for run in range(RUNS)
    ]
    declared = trial.spec.misalignment_stddev
    yield "velocity", _make_stddev_estimate("misalignment_stddev", declared, np.array(turns), "rad")


def estimate_error_velocity_limit(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the error velocity above which a solution is rejected."""
    spec = trial.spec
    if not isinstance(spec, Dvl):
        return
    axes, limit = spec.beams.axes, spec.error_velocity_limit
    null_vector = np.linalg.svd(axes)[0][:, -1]
    unlimited = replace(trial, spec=replace(spec, error_velocity_limit=math.inf))
    unit = abs(
        float(
            _measure(unlimited, "rejection", trial.rate, 1, true_beam_velocity=null_vector[None, :])["error_velocity"][
                0
            ]
        )
    )
    steps = np.arange(1001) / 500.0 * limit
    reading = _measure(
        trial, "rejection", trial.rate, steps.size, true_beam_velocity=steps[:, None] / unit * null_vector
    )
    rejected = int(np.argmax(reading["velocity_mode"] == 0.0))
    found, half = 0.5 * (steps[rejected] + steps[rejected - 1]), 0.5 * (steps[1] - steps[0])
    yield "error_velocity", Estimate("error_velocity_limit", limit, float(found), float(half), unit="m/s")


def estimate_dropout_probability(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the share of pings in which a beam is lost."""
    if not isinstance(trial.spec, Dvl):
        return
    share = trial.spec.dropout_probability
    good = _measure(trial, "dropout", trial.rate, PINGS)["beam_valid"]
    error = math.sqrt(share * (1.0 - share) / good.size) + ROUNDING
    yield "beam_valid", Estimate("dropout_probability", share, 1.0 - float(good.mean()), error, unit="1")


def estimate_reacquisition_time(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the shortest time without lock, with fifty pings in the reacquisition time."""
    if not isinstance(trial.spec, Dvl):
        return
    declared = trial.spec.reacquisition_time
    good = _measure(trial, "reacquisition", 50.0 / declared, PINGS)["beam_valid"]
    shortest = PINGS
    for beam in good.T:
        ends = np.flatnonzero(np.diff(np.concatenate(([1.0], beam, [1.0]))))
        lengths = ends[1::2] - ends[::2]
        shortest = min(shortest, int(lengths[:-1].min(initial=PINGS)))
    step = declared / 50.0
    yield "beam_valid", Estimate("reacquisition_time", declared, (shortest - 0.5) * step, 0.5 * step, unit="s")


def _compute_echo_age(trial: MotionTrial) -> tuple[float, float]:
    """Return the age (s) of an echo at its output, and its travel time from the bottom."""
    age = float(trial.time[-1] - trial.ideal["time_of_validity"][-1])
    return age, float(trial.ideal["true_beam_range"][-1].mean() / trial.ideal["sound_speed"][-1])


def estimate_travel_time(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the age of an echo."""
    age, declared = _compute_echo_age(trial)
    yield (
        "time_of_validity",
        Estimate("propagation (age of an echo)", declared, age, _compute_time_rounding(trial), unit="s"),
    )


def estimate_processing_time(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the delay of an echo in addition to its travel time."""
    if isinstance(trial.spec, Dvl):
        (age, travel_time), declared = _compute_echo_age(trial), trial.spec.processing_time
        yield (
            "time_of_validity",
            Estimate("processing_time", declared, age - travel_time, _compute_time_rounding(trial), unit="s"),
        )


def _compute_time_rounding(trial: MotionTrial) -> float:
    """Return the rounding error (s) of a difference of two times."""
    return ROUNDING * (1.0 + float(trial.time[-1]))


def _find_range(strength: EchoStrength, target: float, cosine: float) -> float:
    """Return the range (m) at which an echo has a strength (dB)."""
    rest, low, high = strength.level + 20.0 * math.log10(cosine) - target, 1e-6, MAXIMUM_RANGE
    for _ in range(200):
        middle = math.sqrt(low * high)
        falls = 30.0 * math.log10(middle) + 2.0 * strength.absorption * middle < rest
        low, high = (middle, high) if falls else (low, middle)
    return low


def _compute_strength(factor: float, correlation: float) -> float:
    """Return the strength (dB) at which the deviation grows by a factor."""
    squared = correlation * correlation
    return -10.0 * math.log10(math.sqrt(factor * factor * (1.0 - squared) + squared) - 1.0)


def estimate_echo_strength(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the parameters of the echo strength.

    Level, absorption and correlation follow from deviations, threshold and lock width from shares of valid beams. The
    beams are perpendicular. Their ranges are those where the strength should be 10 dB, 0 dB, the threshold, and one
    lock width above the threshold.
    """
    spec = trial.spec
    if not isinstance(spec, Dvl) or spec.echo_strength is None:
        return
    strength, shape = spec.echo_strength, (PINGS, len(spec.beams.beams))
    strengths = (10.0, 0.0, strength.threshold, strength.threshold + strength.lock_width)
    ranges = [_find_range(strength, level, 1.0) for level in strengths]
    readings = [
        _measure(
            trial,
            f"strength {i}",
            trial.rate,
            PINGS,
            true_beam_range=np.full(shape, r),
            incidence_cosine=np.ones(shape),
        )
        for i, r in enumerate(ranges)
    ]
    factors = [float(np.nanmax(reading["beam_deviation"])) / PING_STDDEV for reading in readings]
    near, faint = (_compute_strength(factor, strength.correlation) for factor in factors[:2])
    spreading = [30.0 * math.log10(r) for r in ranges]
    absorption = 0.5 * ((near - faint) - (spreading[1] - spreading[0])) / (ranges[1] - ranges[0])
    level = near + spreading[0] + 2.0 * absorption * ranges[0]
    noisier = (1.0 + 10.0 ** (-0.1 * strengths[1])) ** 2
    correlation = math.sqrt((factors[1] ** 2 - noisier) / (factors[1] ** 2 - 1.0))
    size = abs(strength.level) + 100.0
    certain = (("level", level, "dB"), ("absorption", absorption, "dB/m"), ("correlation", correlation, "1"))
    for name, found, unit in certain:
        yield (
            "beam_deviation",
            Estimate(f"echo_strength {name}", getattr(strength, name), found, CANCELLATION * size, unit=unit),
        )
    shares = [float(reading["beam_valid"].mean()) for reading in readings[2:]]
    errors = [1.0 / math.sqrt(p * (1.0 - p) * shape[0] * shape[1]) for p in shares]
    logits = [math.log(p / (1.0 - p)) for p in shares]
    half, lock_width = strength.threshold - strength.lock_width * logits[0], strength.lock_width / logits[1]
    for name, value, error in (("threshold", half, errors[0]), ("lock_width", lock_width, errors[1])):
        declared = getattr(strength, name)
        yield "beam_valid", Estimate(f"echo_strength {name}", declared, value, strength.lock_width * error, unit="dB")


def estimate_long_term_filter(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the parameters of the long-term filter from its covariance at two pings.

    At speed u, C_n also contains assumed_scale^2 u u^T, which has no component across u.
    """
    if not isinstance(trial.spec, Dvl) or trial.spec.long_term is None:
        return
    ideal = _make_moving_ideal(trial.spec, np.tile([SPEED, 0.0, 0.0], (2, 1)))
    declared, identity, reading = trial.spec.long_term, np.eye(3), _measure(trial, "long term", trial.rate, 2, **ideal)
    ping_, (first, second) = reading["velocity_covariance"][0], reading["long_term_covariance"]
    u, then = reading["long_term_velocity"]
    length, across = float(np.linalg.norm(u)), np.cross(u, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    square = float(across @ (first - ping_) @ across)
    share = float(u @ (first - ping_) @ u / length**4 - square / length**2)
    known = square * identity + share * np.outer(then, then)
    after = np.linalg.inv(np.linalg.inv(second - known) - np.linalg.inv(reading["velocity_covariance"][1]))
    acceleration = float(np.mean(np.diag(after - ping_))) * trial.rate
    names = (
        ("acceleration_density", acceleration, "m/s^2 / sqrt(Hz)"),
        ("assumed_offset", square, "m/s"),
        ("assumed_scale", share, "1"),
    )
    for name, found, unit in names:
        size = getattr(declared, name)
        error = CANCELLATION * (size + PING_STDDEV)
        yield "long_term_covariance", Estimate(f"long_term {name}", size, math.sqrt(max(found, 0.0)), error, unit=unit)


_WHITE_TRACK = TrackErrors(Noise(stddev=PING_STDDEV))
_SIDES = (("bottom", "beam_velocity", "beam_deviation"), ("water", "water_beam_velocity", "water_beam_deviation"))

TERMS: tuple[Term | MotionTerm, ...] = (
    *(
        MotionTerm(
            f"{side} speed",
            _estimate_speed_dependence(side, output),
            1,
            _isolate_track(side, "per_speed", "reference_rate"),
            make_underwater_motion,
        )
        for side, output, _ in _SIDES
    ),
    *(
        MotionTerm(
            f"{side} fastest",
            _estimate_maximum_velocity(side, output),
            1,
            _isolate_track(side, "maximum_velocity"),
            make_underwater_motion,
        )
        for side, output, _ in _SIDES
    ),
    *(
        MotionTerm(
            f"{side} stated",
            _estimate_reported_stddev(side, size),
            1,
            _isolate_track(side, "reported_stddev"),
            make_underwater_motion,
        )
        for side, _, size in _SIDES
    ),
    *(
        Term(
            f"{side} {name}",
            (),
            _estimate_constant_error(side, output, name),
            1,
            RUNS,
            (),
            make_ones,
            _isolate_track(side, name),
        )
        for side, output, _ in _SIDES
        for name in ("long_term_scale",)
    ),
    *(
        Term(
            f"{side} {name}",
            (),
            _estimate_constant_error(side, output, name),
            1,
            RUNS,
            make_specs=_isolate_track(side, name),
        )
        for side, output, _ in _SIDES
        for name in ("long_term_offset",)
    ),
    MotionTerm("doppler", estimate_sound_speed, 1, _isolate("sound"), make_underwater_motion),
    MotionTerm("misalignment", estimate_misalignment, 1, _isolate("misalignment"), make_underwater_motion),
    MotionTerm(
        "misalignments", estimate_misalignment_stddev, 1, _isolate("misalignment_stddev"), make_underwater_motion
    ),
    MotionTerm("rejection", estimate_error_velocity_limit, 1, _isolate("error_velocity_limit"), make_underwater_motion),
    MotionTerm("dropouts", estimate_dropout_probability, 1, _isolate("dropout_probability"), make_underwater_motion),
    MotionTerm(
        "reacquisition",
        estimate_reacquisition_time,
        1,
        _isolate("reacquisition_time", dropout_probability=0.01),
        make_underwater_motion,
    ),
    MotionTerm("propagation", estimate_travel_time, 100, _isolate("propagation"), make_underwater_motion),
    MotionTerm(
        "processing",
        estimate_processing_time,
        100,
        _isolate("processing_time", propagation=True),
        make_underwater_motion,
    ),
    MotionTerm(
        "loudness", estimate_echo_strength, 1, _isolate("echo_strength", bottom=_WHITE_TRACK), make_underwater_motion
    ),
    MotionTerm(
        "long term", estimate_long_term_filter, 1, _isolate("long_term", bottom=_WHITE_TRACK), make_underwater_motion
    ),
)
"""The estimators of a Doppler instrument for parameters outside `Noise`."""
