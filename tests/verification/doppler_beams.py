"""What a Doppler instrument does beside the noise of its beams, each figure read back from what it tells.

The instrument stands at the origin of the shell or below it, and is given velocities v and ranges r to hear in place of
its own: beams of axes u_k tell b_k of u_k . v. With what acts alone,

    track       b - u.v is normal of deviation per_speed |v| sqrt(rate / reference_rate), of long_term_scale (u.v), of
                |u| long_term_offset over instruments; reported_stddev is what is stated of a beam
    sound       c0 = c (a.told) / (a.v), a the mean axis, of pistons and phased arrays alike
    mounting    the told velocities of three unit vectors are the columns of its rotation
    rejection   disagreement of the beams grows row by row: the limit lies between the last row told and the next
    lock        shares of lost beams; the shortest time without lock; the age of the echo and what is beside it
    strength    S of a deviation's factor f: (1 + 1 / s)^2 = f^2 (1 - rho^2) + rho^2,  s = 10^(S / 10)
    long term   with R of a ping, C_n of the filter: C_1 = R + stddev^2,  q^2 dt = (P_2^-1 - R^-1)^-1 - R,
                P_2 = C_2 - stddev^2

Chance has the errors of `estimates`: s / sqrt(2 n) of a deviation, sqrt(p (1 - p) / n) of a share.
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
from navsense.sensors.doppler import IDENTITY_ROTATION, Beam, Beams, DopplerTrack, EchoStrength, ping
from navsense.sensors.doppler.beams import ONE_RAY
from navsense.sensors.doppler.echoes import PlainTuple
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.sensors.range import Cone
from tests.verification.assumed_water import under_water
from tests.verification.estimates import DIGITS, Estimate, Moved, MovedTerm, Term, Trial, ones

FARTHEST = 1e5
"""m: as far as a beam can be said to reach."""

PINGS, RUNS = 20_000, 1000

SPEED = 2.0
"""m/s, at which deviations that grow with it are read."""

WHITE = 0.1
"""m/s: of beams whose deviation is needed to show something else."""

CLOSE = 1e-9
"""Share of a figure that rounding may take, where it is a difference of numbers of one size."""

ACTED_ON: Mapping[str, str] = {
    "beam_velocity": "true_beam_velocity",
    "beam_range": "true_beam_range",
    "water_beam_velocity": "true_water_beam_velocity",
}
"""Outputs, and the ideal values that their noise acts on."""


class Boundless(Dvl):
    """A spec with an echo on every beam, from any distance and in any mode."""

    @cached_property
    def _solution_parameters(self) -> PlainTuple:
        """Limits of a ping, without those of range and incidence."""
        limits = ping.SolutionParameters(*super()._solution_parameters)
        return tuple(limits._replace(minimum_range=-math.inf, min_incidence_cosine=-math.inf, maximum_range=math.inf))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the ideal reading; a stationary instrument has the same each time."""
        if self.models_travel_time or not isinstance(motion, Stationary) or not len(ticks):
            return super().ideal(motion, environment, ticks)
        once = super().ideal(motion, environment, Ticks(ticks.index[:1], ticks.rate))
        same = {name: np.repeat(array, len(ticks), axis=0) for name, array in once.items()}
        times = dict.fromkeys(("time_of_validity", "bottom_time_of_validity", "layer_time_of_validity"), ticks.time)
        return {**same, **times, **evaluate_signals(self, environment, ticks.time)}

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each beam, that through the water too."""
        through = {"water_beam_velocity": (self.water.noise,) * len(self.beams.beams)}
        return {**super().noise(), **(through if self.uses_current else {})}

    @property
    def noise_quantities(self) -> Mapping[str, Output]:
        """Return the ideal values that the noise of each array acts on."""
        units = {output.name: output for output in self.outputs}
        return {name: replace(units[name], name=ACTED_ON[name]) for name in self.noise()}

    def compute_errors(self, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
        """Return reading minus ideal (n, k) of these arrays."""
        return {name: arrays[name] - ideal[ACTED_ON[name]] for name in self.noise()}


def remove_limits(spec: Dvl) -> Boundless:
    """Return a sheet with the same errors whose beams, of one ray each, hear all; the water is tracked where it was."""
    beams = Beams(tuple(Beam(_narrow(beam), beam.rotation, beam.position) for beam in spec.beams.beams))
    values = {field.name: getattr(spec, field.name) for field in fields(spec)}
    values |= {"beams": beams, "minimum_range": 0.0, "maximum_range": FARTHEST, "min_incidence_cosine": 0.0}
    values |= {"bottom_mode": TrackMode.ALWAYS, "reference": IDENTITY_ROTATION, "classic": False, "own_hull": False}
    values["water_mode"] = TrackMode.ALWAYS if spec.uses_current else TrackMode.NEVER
    return Boundless(**values)


def _narrow(beam: Beam) -> Cone:
    """Return the shape of one ray along the axis of a beam."""
    return replace(ONE_RAY, axis=beam.shape.axis) if isinstance(beam.shape, Cone) else ONE_RAY


def _only(*names: str, **given: Any) -> Callable[[Sensor], Sequence[Sensor]]:
    """Return what leaves these fields of a sheet alone, beside what is given; none where they do not act."""

    def prepared(spec: Sensor) -> Sequence[Sensor]:
        if not isinstance(spec, Dvl):
            return ()
        bare = spec.without_errors()
        if all(getattr(spec, name) == getattr(bare, name) for name in names):
            return ()
        return (replace(bare, **given, **{name: getattr(spec, name) for name in names}),)

    return prepared


def _tracking(side: str, *names: str) -> Callable[[Sensor], Sequence[Sensor]]:
    """Return what leaves these figures of one track alone; none where the first does not act."""

    def prepared(spec: Sensor) -> Sequence[Sensor]:
        if not isinstance(spec, Dvl) or (side == "water" and not spec.uses_current):
            return ()
        track = {"bottom": spec.bottom, "water": spec.water}[side]
        if not getattr(track, names[0]):
            return ()
        left: dict[str, Any] = {side: DopplerTrack(**{name: getattr(track, name) for name in names})}
        return (replace(spec.without_errors(), **left),)

    return prepared


def _ping(moved: Moved, key: str, rate: float, count: int, **inputs: AnyArray) -> Mapping[str, AnyArray]:
    """Return `count` readings at a rate (Hz) of the stationary instrument, from ideal values `inputs`."""
    sheet = moved.sheet
    ideal = {name: np.repeat(array[:1], count, axis=0) for name, array in moved.ideal.items()}
    draws = Draws(sheet.processes(), 1, (0, "declared", sheet.type, key, repr(rate)))
    ticks = Ticks(np.arange(count, dtype=np.int64), rate)
    ideal |= {
        **dict.fromkeys(("time_of_validity", "bottom_time_of_validity", "layer_time_of_validity"), ticks.time),
        **inputs,
    }
    _, measured = sheet.measure(sheet.init(draws.initial), ticks, ideal, draws.take(count))
    return measured.arrays


def _moving(sheet: Dvl, velocity: FloatArray) -> dict[str, AnyArray]:
    """Return the ideal values of velocities (n, 3) m/s over the bottom and through still water."""
    beam_velocity = velocity @ sheet.beams.axes.T
    return {
        "sensor_velocity": np.ascontiguousarray(velocity),
        "true_beam_velocity": beam_velocity,
        "true_water_beam_velocity": beam_velocity,
    }


def _spread(name: str, declared: float, samples: AnyArray, unit: str) -> Estimate:
    """Return the deviation of samples about 0."""
    measured = math.sqrt(float(np.mean(samples**2)))
    return Estimate(name, declared, measured, declared / math.sqrt(2.0 * samples.size), unit=unit)


def _growing(side: str, array: str) -> Callable[[Moved], Iterator[tuple[str, Estimate]]]:
    """Return what yields how deviations of a track grow with speed and rate."""

    def measure(moved: Moved) -> Iterator[tuple[str, Estimate]]:
        sheet = moved.sheet
        if not isinstance(sheet, Dvl):
            return
        track = getattr(sheet, side)
        inputs = _moving(sheet, np.tile([0.6 * SPEED, 0.0, -0.8 * SPEED], (PINGS, 1)))
        off = (_ping(moved, f"{side} speed", moved.rate, PINGS, **inputs)[array] - inputs["true_beam_velocity"]).ravel()
        share = math.sqrt(moved.rate / track.reference_rate) if track.reference_rate else 1.0
        yield array, _spread(f"{side} per_speed", track.per_speed, off / (SPEED * share), "1")
        if track.reference_rate:
            size, declared = _spread("", track.per_speed * SPEED, off, ""), track.reference_rate
            found = moved.rate * (size.declared / size.measured) ** 2
            error = 2.0 * declared / math.sqrt(2.0 * off.size)
            yield array, Estimate(f"{side} reference_rate", declared, found, error, unit="Hz")

    return measure


def _stddev_rows(side: str, array: str) -> Callable[[Moved], Iterator[tuple[str, Estimate]]]:
    """Return what yields the deviation that is stated of a beam."""

    def measure(moved: Moved) -> Iterator[tuple[str, Estimate]]:
        declared = float(getattr(moved.sheet, side).reported_stddev)
        measured = float(moved.arrays[array][0, 0])
        yield array, Estimate(f"{side} reported_stddev", declared, measured, DIGITS * declared, unit="m/s")

    return measure


def _fastest(side: str, array: str) -> Callable[[Moved], Iterator[tuple[str, Estimate]]]:
    """Return what yields the speed above which a track has no velocity along a beam."""

    def measure(moved: Moved) -> Iterator[tuple[str, Estimate]]:
        sheet = moved.sheet
        if not isinstance(sheet, Dvl) or getattr(sheet, side).maximum_velocity == math.inf:
            return
        declared = float(getattr(sheet, side).maximum_velocity)
        steps = np.arange(1, 1001) / 500.0 * declared
        inputs = _moving(sheet, np.outer(steps, (0.6, 0.0, -0.8)))
        reading = _ping(moved, f"{side} fastest", moved.rate, steps.size, **inputs)
        lost = int(np.argmax(np.isnan(reading[array][:, 0])))
        found, half = 0.5 * (steps[lost] + steps[lost - 1]), 0.5 * (steps[1] - steps[0])
        yield array, Estimate(f"{side} maximum_velocity", declared, float(found), float(half), unit="m/s")

    return measure


def _lasting(side: str, array: str, name: str) -> Callable[[Trial], Iterator[Estimate]]:
    """Return what yields what is the same in all pings of an instrument, of its deviation among them."""

    def measure(trial: Trial) -> Iterator[Estimate]:
        if trial.output == array:
            declared = float(getattr(getattr(trial.sheet, side), name))
            unit = "1" if name.endswith("scale") else "m/s"
            yield _spread(f"{side} {name}", declared, trial.error[:, 0], unit)

    return measure


def sound(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the speed of sound that is assumed."""
    sheet = moved.sheet
    if not isinstance(sheet, Dvl) or sheet.sound.speed is None:
        return
    axis = sheet.beams.axes.mean(axis=0)
    inputs = _moving(sheet, axis[None, :])
    measured, declared = _ping(moved, "sound", moved.rate, 1, **inputs)["velocity"][0], sheet.sound.speed
    found = float(moved.ideal["sound_speed"][0]) * float(axis @ measured) / float(axis @ axis)
    yield "velocity", Estimate("sound speed", declared, found, 10.0 * DIGITS * declared, unit="m/s")


def _rotation(velocity: AnyArray) -> list[float]:
    """Return the rotation vector (rad) of a matrix whose rows (3, 3) are the measured unit vectors."""
    turn = velocity.T
    parts = np.array((turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]))
    sine = 0.5 * float(np.linalg.norm(parts))
    angle = math.atan2(sine, 0.5 * (float(np.trace(turn)) - 1.0))
    return [0.5 * float(part) * (angle / sine if sine else 1.0) for part in parts]


def misalignment(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the rotation of how the instrument is mounted."""
    if not isinstance(moved.sheet, Dvl):
        return
    velocity = _ping(moved, "mounting", moved.rate, 3, **_moving(moved.sheet, np.eye(3)))["velocity"]
    for axis, declared, found in zip("xyz", moved.sheet.misalignment, _rotation(velocity), strict=True):
        yield "velocity", Estimate(f"misalignment {axis}", declared, found, 10.0 * DIGITS, unit="rad")


def misalignments(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the deviation of that rotation among instruments."""
    if not isinstance(moved.sheet, Dvl):
        return
    inputs = _moving(moved.sheet, np.eye(3))
    turns = [_rotation(_ping(moved, f"mounting {run}", moved.rate, 3, **inputs)["velocity"]) for run in range(RUNS)]
    declared = moved.sheet.misalignment_stddev
    yield "velocity", _spread("misalignment_stddev", declared, np.array(turns), "rad")


def rejection(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the error velocity beyond which a solution is rejected."""
    sheet = moved.sheet
    if not isinstance(sheet, Dvl):
        return
    axes, limit = sheet.beams.axes, sheet.error_velocity_limit
    left = np.linalg.svd(axes)[0][:, -1]
    free = replace(moved, sheet=replace(sheet, error_velocity_limit=math.inf))
    unit = abs(float(_ping(free, "rejection", moved.rate, 1, true_beam_velocity=left[None, :])["error_velocity"][0]))
    steps = np.arange(1001) / 500.0 * limit
    reading = _ping(moved, "rejection", moved.rate, steps.size, true_beam_velocity=steps[:, None] / unit * left)
    rejected = int(np.argmax(reading["velocity_mode"] == 0.0))
    found, half = 0.5 * (steps[rejected] + steps[rejected - 1]), 0.5 * (steps[1] - steps[0])
    yield "error_velocity", Estimate("error_velocity_limit", limit, float(found), float(half), unit="m/s")


def dropouts(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the share of pings in which a beam is lost."""
    if not isinstance(moved.sheet, Dvl):
        return
    share = moved.sheet.dropout_probability
    good = _ping(moved, "dropout", moved.rate, PINGS)["beam_valid"]
    error = math.sqrt(share * (1.0 - share) / good.size) + DIGITS
    yield "beam_valid", Estimate("dropout_probability", share, 1.0 - float(good.mean()), error, unit="1")


def reacquisition(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the shortest time that a beam is lost for, by pings fifty to it."""
    if not isinstance(moved.sheet, Dvl):
        return
    declared = moved.sheet.reacquisition_time
    good = _ping(moved, "reacquisition", 50.0 / declared, PINGS)["beam_valid"]
    shortest = PINGS
    for beam in good.T:
        ends = np.flatnonzero(np.diff(np.concatenate(([1.0], beam, [1.0]))))
        lengths = ends[1::2] - ends[::2]
        shortest = min(shortest, int(lengths[:-1].min(initial=PINGS)))
    step = declared / 50.0
    yield "beam_valid", Estimate("reacquisition_time", declared, (shortest - 0.5) * step, 0.5 * step, unit="s")


def _age(moved: Moved) -> tuple[float, float]:
    """Return the age (s) of an echo at its output, and its travel time from the bottom."""
    age = float(moved.time[-1] - moved.ideal["time_of_validity"][-1])
    return age, float(moved.ideal["true_beam_range"][-1].mean() / moved.ideal["sound_speed"][-1])


def propagation(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield how old an echo is."""
    age, declared = _age(moved)
    yield "time_of_validity", Estimate("propagation (age of an echo)", declared, age, _rounding(moved), unit="s")


def processing(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the delay of an echo in addition to its travel time."""
    if isinstance(moved.sheet, Dvl):
        (age, way), declared = _age(moved), moved.sheet.processing_time
        yield "time_of_validity", Estimate("processing_time", declared, age - way, _rounding(moved), unit="s")


def _rounding(moved: Moved) -> float:
    """Return what the difference of two instants may be off by (s)."""
    return DIGITS * (1.0 + float(moved.time[-1]))


def _distance(strength: EchoStrength, wanted: float, cosine: float) -> float:
    """Return the range (m) from which an echo has a strength (dB)."""
    rest, low, high = strength.level + 20.0 * math.log10(cosine) - wanted, 1e-6, FARTHEST
    for _ in range(200):
        middle = math.sqrt(low * high)
        falls = 30.0 * math.log10(middle) + 2.0 * strength.absorption * middle < rest
        low, high = (middle, high) if falls else (low, middle)
    return low


def _decibels(factor: float, correlation: float) -> float:
    """Return the strength (dB) at which a deviation grows by a factor."""
    squared = correlation * correlation
    return -10.0 * math.log10(math.sqrt(factor * factor * (1.0 - squared) + squared) - 1.0)


def loudness(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield level, absorption and correlation from deviations, threshold and slope from shares of pings that are heard.

    Straight echoes, from where they should be of 10 dB and of 0 dB; of the threshold, and a slope above it.
    """
    sheet = moved.sheet
    if not isinstance(sheet, Dvl) or sheet.strength is None:
        return
    strength, shape = sheet.strength, (PINGS, len(sheet.beams.beams))
    wanted = (10.0, 0.0, strength.threshold, strength.threshold + strength.slope)
    far = [_distance(strength, level, 1.0) for level in wanted]
    readings = [
        _ping(
            moved,
            f"strength {i}",
            moved.rate,
            PINGS,
            true_beam_range=np.full(shape, r),
            incidence_cosine=np.ones(shape),
        )
        for i, r in enumerate(far)
    ]
    factors = [float(np.nanmax(reading["beam_deviation"])) / WHITE for reading in readings]
    near, faint = (_decibels(factor, strength.correlation) for factor in factors[:2])
    lost = [30.0 * math.log10(r) for r in far]
    absorption = 0.5 * ((near - faint) - (lost[1] - lost[0])) / (far[1] - far[0])
    level = near + lost[0] + 2.0 * absorption * far[0]
    noisier = (1.0 + 10.0 ** (-0.1 * wanted[1])) ** 2
    correlation = math.sqrt((factors[1] ** 2 - noisier) / (factors[1] ** 2 - 1.0))
    size = abs(strength.level) + 100.0
    certain = (("level", level, "dB"), ("absorption", absorption, "dB/m"), ("correlation", correlation, "1"))
    for name, found, unit in certain:
        yield "beam_deviation", Estimate(f"strength {name}", getattr(strength, name), found, CLOSE * size, unit=unit)
    shares = [float(reading["beam_valid"].mean()) for reading in readings[2:]]
    errors = [1.0 / math.sqrt(p * (1.0 - p) * shape[0] * shape[1]) for p in shares]
    logits = [math.log(p / (1.0 - p)) for p in shares]
    half, slope = strength.threshold - strength.slope * logits[0], strength.slope / logits[1]
    for name, value, error in (("threshold", half, errors[0]), ("slope", slope, errors[1])):
        declared = getattr(strength, name)
        yield "beam_valid", Estimate(f"strength {name}", declared, value, strength.slope * error, unit="dB")


def long_term(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the motion and the error that the long-term velocity goes by, from its covariance at two pings.

    Under way, C_n has scale^2 u u^T too, of which nothing is across u.
    """
    if not isinstance(moved.sheet, Dvl) or moved.sheet.long_term is None:
        return
    going = _moving(moved.sheet, np.tile([SPEED, 0.0, 0.0], (2, 1)))
    declared, identity, reading = moved.sheet.long_term, np.eye(3), _ping(moved, "long term", moved.rate, 2, **going)
    ping_, (first, second) = reading["velocity_covariance"][0], reading["long_term_covariance"]
    u, then = reading["long_term_velocity"]
    length, across = float(np.linalg.norm(u)), np.cross(u, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    square = float(across @ (first - ping_) @ across)
    share = float(u @ (first - ping_) @ u / length**4 - square / length**2)
    known = square * identity + share * np.outer(then, then)
    after = np.linalg.inv(np.linalg.inv(second - known) - np.linalg.inv(reading["velocity_covariance"][1]))
    walked = float(np.mean(np.diag(after - ping_))) * moved.rate
    names = (("acceleration_density", walked, "m/s^2 / sqrt(Hz)"), ("stddev", square, "m/s"), ("scale", share, "1"))
    for name, found, unit in names:
        size = getattr(declared, name)
        error = CLOSE * (size + WHITE)
        yield "long_term_covariance", Estimate(f"long_term {name}", size, math.sqrt(max(found, 0.0)), error, unit=unit)


_WHITE = DopplerTrack(Noise(stddev=WHITE))
_SIDES = (("bottom", "beam_velocity", "beam_deviation"), ("water", "water_beam_velocity", "water_beam_deviation"))

TERMS: tuple[Term | MovedTerm, ...] = (
    *(
        MovedTerm(f"{side} speed", _growing(side, told), 1, _tracking(side, "per_speed", "reference_rate"), under_water)
        for side, told, _ in _SIDES
    ),
    *(
        MovedTerm(f"{side} fastest", _fastest(side, told), 1, _tracking(side, "maximum_velocity"), under_water)
        for side, told, _ in _SIDES
    ),
    *(
        MovedTerm(f"{side} stated", _stddev_rows(side, size), 1, _tracking(side, "reported_stddev"), under_water)
        for side, _, size in _SIDES
    ),
    *(
        Term(f"{side} {name}", (), _lasting(side, told, name), 1, RUNS, (), ones, _tracking(side, name))
        for side, told, _ in _SIDES
        for name in ("long_term_scale",)
    ),
    *(
        Term(f"{side} {name}", (), _lasting(side, told, name), 1, RUNS, prepared=_tracking(side, name))
        for side, told, _ in _SIDES
        for name in ("long_term_offset",)
    ),
    MovedTerm("doppler", sound, 1, _only("sound"), under_water),
    MovedTerm("misalignment", misalignment, 1, _only("misalignment"), under_water),
    MovedTerm("misalignments", misalignments, 1, _only("misalignment_stddev"), under_water),
    MovedTerm("rejection", rejection, 1, _only("error_velocity_limit"), under_water),
    MovedTerm("dropouts", dropouts, 1, _only("dropout_probability"), under_water),
    MovedTerm("reacquisition", reacquisition, 1, _only("reacquisition_time", dropout_probability=0.01), under_water),
    MovedTerm("propagation", propagation, 100, _only("propagation"), under_water),
    MovedTerm("processing", processing, 100, _only("processing_time", propagation=True), under_water),
    MovedTerm("loudness", loudness, 1, _only("strength", bottom=_WHITE), under_water),
    MovedTerm("long term", long_term, 1, _only("long_term", bottom=_WHITE), under_water),
)
"""How each figure of a Doppler instrument that is no `Noise` is measured."""
