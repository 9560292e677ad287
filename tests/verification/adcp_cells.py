"""Estimates of the errors of a current profiler, from given velocities and ranges.

Each ping receives b along every beam in every cell, and b and r of the bottom. With one kind of error, P water pings
and B bottom pings:

    stddev              sqrt(P) (measured - b), sqrt(B) (measured - b) and sqrt(B) (measured - r) have this deviation;
                        that of the profile is declared for the reference cell size
    long-term           measured / b - 1 has the deviation `long_term_scale` over runs; if b = 0, measured = u . o
    sound               c0 = c measured / r
    backscatter         S = 10 log10(10^(echo / 10) - 1), of two cells;  correlation = rho (1 + 1 / s);  the logits of
                        the shares of good pings are (S - threshold) / lock_width
    limits              the beam disagreement, or the share of lost pings, grows row by row: the limit is between the
                        last valid row and the next

Random estimates have the errors of `estimates`: s / sqrt(2 n) of a deviation, 1 / sqrt(n p (1 - p)) of a logit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.motion.stationary import Stationary
from navsense.sensors.adcp import Adcp
from navsense.sensors.base import Sensor
from navsense.sensors.doppler import (
    BeamVelocityErrors,
    BinMapping,
    CoordinateSystem,
    DepthCells,
    EchoStrength,
    Transducer,
)
from tests.verification.estimates import ROUNDING, Estimate, MotionTerm, MotionTrial

MAXIMUM_RANGE = 1e5
"""Range limit (m) of a beam without limits."""

BOTTOM_RANGE, SOUND_SPEED = 50.0, 1500.0
"""Distance (m) to the bottom, and true speed of sound (m/s)."""

ROWS, RUNS = 400, 400

CANCELLATION = 1e-8
"""Relative rounding error of a difference of numbers of one size."""

STEPS = 500
"""Rows in which a value grows from 0 to twice its limit."""


def _remove_errors(spec: Adcp, **changes: object) -> Adcp:
    """Return a spec with these changes but without other errors and limits, with a valid sample at every tick."""
    plain: dict[str, object] = {
        "propagation": False,
        "minimum_range": 0.0,
        "maximum_range": MAXIMUM_RANGE,
        "classic": False,
    }
    plain |= {"bin_mapping": BinMapping.NONE, "coordinates": CoordinateSystem.INSTRUMENT, "motion_compensated": False}
    plain |= {"transducer": Transducer.PISTON, "min_beams": 3}
    free: Adcp = replace(spec.without_errors(), **(plain | changes))  # type: ignore[arg-type]
    return free


def _make_ideal(spec: Adcp, count: int, along: AnyArray | float, bottom: float) -> dict[str, AnyArray]:
    """Return the ideal values of pings with velocities (m/s) along the beams, (n, p, m, k) or one for all."""
    k, m, p, b = len(spec.beams.beams), int(spec.cells.count), int(spec.pings), int(spec.bottom_pings)
    level = np.zeros((count, max(p, b), 4))
    level[:, :, 0] = 1.0
    valid = np.ascontiguousarray(np.broadcast_to(along, (count, p, m, k)))
    return {
        "true_beam_velocity": valid,
        "true_axial_velocity": valid,
        "attitude": np.ascontiguousarray(level[:, :p]),
        "output_rotation": np.ascontiguousarray(level[:, :p]),
        "true_bottom_range": np.full((count, b, k), BOTTOM_RANGE),
        "true_bottom_beam_velocity": np.full((count, b, k), bottom),
        "sensor_velocity": np.zeros((count, b, 3)),
        "bottom_output_rotation": np.ascontiguousarray(level[:, :b]),
        "sound_speed": np.full(count, SOUND_SPEED),
        "time_of_validity": np.zeros(count),
        "orientation": np.ascontiguousarray(level[:, 0]),
    }


def _measure(
    spec: Adcp, key: tuple[str, int], count: int, along: AnyArray | float = 0.0, bottom: float = 0.0
) -> Mapping[str, AnyArray]:
    """Return the readings of `count` ensembles."""
    draws = Draws(spec.processes(), 1, (key[1], "declared", spec.type, key[0]))
    ticks = Ticks(np.arange(count, dtype=np.int64), 1.0)
    ideal = _make_ideal(spec, count, along, bottom)
    return spec.measure(spec.init(draws.initial), ticks, ideal, draws.take(count))[1].arrays


def _make_stddev_estimate(name: str, declared: float, samples: FloatArray, unit: str) -> Estimate:
    """Return the deviation of samples about 0."""
    error = declared / math.sqrt(2.0 * samples.size)
    return Estimate(name, declared, math.sqrt(float(np.mean(samples**2))), error, unit=unit)


def _select_track(name: str) -> tuple[str, Callable[[Adcp], int]]:
    """Return the beam velocity output of a track, and a function that counts its pings."""
    if name == "profile":
        return "beam_velocity", lambda spec: int(spec.pings)
    return "bottom_beam_velocity", lambda spec: int(spec.bottom_pings)


def estimate_accuracy(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the deviations of single pings and over runs, of the profile or the bottom track."""
    spec = trial.spec
    if not isinstance(spec, Adcp):
        return
    name = "profile" if spec.profile != BeamVelocityErrors() else "bottom"
    declared: BeamVelocityErrors = {"profile": spec.profile, "bottom": spec.bottom}[name]
    output, pings = _select_track(name)
    if declared.stddev > 0.0:
        isolated = replace(spec, **{name: BeamVelocityErrors(declared.stddev)})  # type: ignore[arg-type]
        per_cell = spec.cells.size / spec.reference_cell_size if spec.reference_cell_size and name == "profile" else 1.0
        samples = math.sqrt(pings(spec)) * per_cell * _measure(isolated, (name, 0), ROWS)[output].reshape(-1)
        yield output, _make_stddev_estimate(f"{name} stddev", declared.stddev, samples, "m/s")
    if declared.long_term_scale > 0.0:
        isolated = replace(spec, **{name: BeamVelocityErrors(0.0, declared.long_term_scale)})  # type: ignore[arg-type]
        found = [float(_measure(isolated, (name, run), 1, 1.0, 1.0)[output].flat[0]) - 1.0 for run in range(RUNS)]
        yield output, _make_stddev_estimate(f"{name} long_term_scale", declared.long_term_scale, np.array(found), "1")
    if declared.long_term_offset > 0.0:
        isolated = replace(spec, **{name: BeamVelocityErrors(0.0, 0.0, declared.long_term_offset)})  # type: ignore[arg-type]
        rows = [_measure(isolated, (name, run), 1)[output].reshape(-1, len(spec.beams.beams))[0] for run in range(RUNS)]
        solved = np.linalg.lstsq(spec.beams.axes, np.array(rows).T, rcond=None)[0].reshape(-1)
        yield output, _make_stddev_estimate(f"{name} long_term_offset", declared.long_term_offset, solved, "m/s")


def estimate_ranging(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the deviation of ranges to the bottom, or the assumed speed of sound."""
    spec = trial.spec
    if not isinstance(spec, Adcp):
        return
    if spec.sound.speed is not None:
        found = SOUND_SPEED * float(_measure(spec, ("sound", 0), 1)["bottom_range"][0, 0]) / BOTTOM_RANGE
        yield "bottom_range", Estimate("sound speed", spec.sound.speed, found, ROUNDING * found, unit="m/s")
    else:
        errors = _measure(spec, ("range", 0), ROWS)["bottom_range"].reshape(-1) - BOTTOM_RANGE
        samples = math.sqrt(spec.bottom_pings) * errors
        yield "bottom_range", _make_stddev_estimate("range_stddev", spec.range_stddev, samples, "m")


def _compute_strength(echo: EchoStrength, r: float) -> float:
    return echo.level - 20.0 * math.log10(r) - 2.0 * echo.absorption * r


def _find_range(echo: EchoStrength, strength: float) -> float:
    """Return the range (m) at which the echo has a strength (dB)."""
    low, high = 1e-6, MAXIMUM_RANGE
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _compute_strength(echo, middle) > strength else (low, middle)
    return low


def estimate_backscatter(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the parameters of the echo strength of the water."""
    spec = trial.spec
    if not isinstance(spec, Adcp) or spec.backscatter is None:
        return
    echo, arrays, k = spec.backscatter, _measure(spec, ("backscatter", 0), ROWS), 0
    slant = spec.cells.distances / spec.beams.janus_cosines[k]
    power = 10.0 ** (arrays["echo"][0, :, k] / 10.0) - 1.0
    strength = 10.0 * np.log10(power) + 20.0 * np.log10(slant)
    absorption = float(strength[0] - strength[1]) / (2.0 * float(slant[1] - slant[0]))
    level = float(strength[0]) + 2.0 * absorption * float(slant[0])
    rho = float(arrays["correlation"][0, 0, k] * (1.0 + 1.0 / power[0]))
    figures = (("level", echo.level, level, "dB"), ("absorption", echo.absorption, absorption, "dB/m"))
    for name, declared, found, unit in (*figures, ("correlation", echo.correlation, rho, "1")):
        error = CANCELLATION * max(abs(declared), abs(echo.level) if name == "absorption" else 0.0)
        yield "echo", Estimate(f"backscatter {name}", declared, found, error, unit=unit)
    pings = ROWS * int(spec.pings)
    share = arrays["beam_percent_good"][:, :, k].mean(axis=0)
    logit = np.log(share / (1.0 - share))
    error = 1.0 / np.sqrt(pings * share * (1.0 - share))
    near, far = (_compute_strength(echo, float(r)) for r in slant)
    between = float(logit[0] - logit[1])
    lock_width = (near - far) / between
    uncertainty = math.hypot(*error.tolist()) * lock_width / between
    yield "beam_percent_good", Estimate("backscatter lock_width", echo.lock_width, lock_width, uncertainty, unit="dB")
    threshold = 0.5 * (near + far) - 0.5 * echo.lock_width * float(logit[0] + logit[1])
    uncertainty = 0.5 * echo.lock_width * math.hypot(*error.tolist())
    yield "beam_percent_good", Estimate("backscatter threshold", echo.threshold, threshold, uncertainty, unit="dB")


def estimate_limits(trial: MotionTrial) -> Iterator[tuple[str, Estimate]]:
    """Yield the error velocity limit, or the share of good pings below which a cell is invalid."""
    spec = trial.spec
    if not isinstance(spec, Adcp):
        return
    k = len(spec.beams.beams)
    if spec.min_good_share > 0.0:
        pings = int(spec.pings)
        lost = np.arange(pings)[None, :, None, None] < np.arange(pings + 1)[:, None, None, None]
        arrays = _measure(spec, ("good", 0), pings + 1, np.where(lost, math.nan, 0.0))
        known = np.isfinite(arrays["velocity"][:, 0, 0])
        last = int(known.sum()) - 1
        measured = (pings - last - 0.5) / pings
        yield (
            "velocity",
            Estimate(
                "min_good_share",
                spec.min_good_share,
                measured,
                CANCELLATION,
                allowance=0.5 / pings + CANCELLATION,
                unit="1",
            ),
        )
        return
    null = np.linalg.svd(spec.beams.axes.T)[2][-1]
    grow = np.linspace(0.0, 2.0 * spec.error_velocity_limit, STEPS)[:, None, None, None] * null[None, None, None, :k]
    free = _measure(replace(spec, error_velocity_limit=math.inf), ("limit", 0), STEPS, grow)["error_velocity"][:, 0]
    known = np.isfinite(_measure(spec, ("limit", 0), STEPS, grow)["velocity"][:, 0, 0])
    last, step = int(known.sum()) - 1, abs(float(free[2] - free[1]))
    if last + 1 < STEPS:
        measured = abs(float(free[last])) + 0.5 * step
        allowance = (0.5 + CANCELLATION) * step
        declared = spec.error_velocity_limit
        yield (
            "error_velocity",
            Estimate("error_velocity_limit", declared, measured, CANCELLATION, allowance, unit="m/s"),
        )


def _make_accuracy_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return specs with the errors of either velocity alone."""
    if not isinstance(spec, Adcp):
        return ()
    names = [
        name for name, value in (("profile", spec.profile), ("bottom", spec.bottom)) if value != BeamVelocityErrors()
    ]
    bottom = max(int(spec.bottom_pings), 1)
    return [_remove_errors(spec, bottom_pings=bottom, **{name: getattr(spec, name)}) for name in names]


def _make_ranging_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return specs with the errors of ranges alone."""
    if not isinstance(spec, Adcp):
        return ()
    bottom = max(int(spec.bottom_pings), 1)
    acting = [("range_stddev", spec.range_stddev > 0.0), ("sound", spec.sound.speed is not None)]
    return [_remove_errors(spec, bottom_pings=bottom, **{name: getattr(spec, name)}) for name, acts in acting if acts]


def _make_backscatter_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return a spec with the backscatter alone. Its two cells are one lock width above and below the threshold."""
    if not isinstance(spec, Adcp) or spec.backscatter is None:
        return ()
    echo = spec.backscatter
    near, far = (
        spec.beams.janus_cosines[0] * _find_range(echo, echo.threshold + side * echo.lock_width) for side in (1.0, -1.0)
    )
    size = far - near
    cells = DepthCells(2, size, max(near - 0.5 * size, 0.0), 0.0, 0.0, 1)
    return [_remove_errors(spec, cells=cells, pings=50, backscatter=echo)]


def _make_limit_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return specs with one limit each, with one ping and with a hundred."""
    if not isinstance(spec, Adcp):
        return ()
    cells, found = DepthCells(1, 1.0, 1.0), []
    if spec.error_velocity_limit < math.inf and len(spec.beams.beams) > 3:
        found.append(_remove_errors(spec, cells=cells, pings=1, error_velocity_limit=spec.error_velocity_limit))
    if spec.min_good_share > 0.0:
        found.append(_remove_errors(spec, cells=cells, pings=100, min_good_share=spec.min_good_share))
    return found


TERMS: tuple[MotionTerm, ...] = (
    MotionTerm("profile accuracy", estimate_accuracy, 1, _make_accuracy_specs, Stationary),
    MotionTerm("profile ranges", estimate_ranging, 1, _make_ranging_specs, Stationary),
    MotionTerm("backscatter", estimate_backscatter, 1, _make_backscatter_specs, Stationary),
    MotionTerm("profile limits", estimate_limits, 1, _make_limit_specs, Stationary),
)
"""The estimators of a current profiler."""
