"""What a current profiler errs by, each figure read back from what it tells of velocities and ranges it is given.

Its pings hear b along every beam in every cell, b and r of the bottom. With what acts alone, of P and B pings,

    stddev              sqrt(P) (told - b), sqrt(B) (told - b) and sqrt(B) (told - r) are normal of that deviation; the
                        profile's is told for the cell that it holds at
    long-term           told / b - 1 is normal of `long_term_scale` over instruments; b being 0, told is u . o
    sound               c0 = c told / r
    backscatter         S = 10 log10(10^(echo / 10) - 1), of two cells;  correlation = rho (1 + 1 / s);  the logits of
                        the shares of good pings in them are (S - threshold) / slope
    limits              disagreement of the beams, and the share of lost pings, grow row by row: either limit lies
                        between the last row told and the next

Chance has the errors of `estimates`: s / sqrt(2 n) of a deviation, 1 / sqrt(n p (1 - p)) of the logit of a share.
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
from navsense.sensors.doppler import Accuracy, BinMapping, CoordinateSystem, DepthCells, EchoStrength, Transducer
from tests.verification.estimates import DIGITS, Estimate, Moved, MovedTerm

FARTHEST = 1e5
"""m: as far as a beam can be said to reach."""

RANGE, SOUND = 50.0, 1500.0
"""m to the bottom, and m/s of the true sound, that are heard."""

ROWS, RUNS = 400, 400

CLOSE = 1e-8
"""Share of a figure that rounding may take, where it is a difference of numbers of one size."""

STEPS = 500
"""Rows over which what a limit is for grows to twice of it."""


def _bare(spec: Adcp, **given: object) -> Adcp:
    """Return a sheet without errors that tells at every tick of whatever it hears, and what is given."""
    plain: dict[str, object] = {"propagation": False, "minimum_range": 0.0, "maximum_range": FARTHEST, "classic": False}
    plain |= {"bin_mapping": BinMapping.NONE, "coordinates": CoordinateSystem.INSTRUMENT, "motion_compensated": False}
    plain |= {"transducer": Transducer.PISTON, "min_beams": 3}
    bare: Adcp = replace(spec.without_errors(), **(plain | given))  # type: ignore[arg-type]
    return bare


def _given(sheet: Adcp, count: int, along: AnyArray | float, bottom: float) -> dict[str, AnyArray]:
    """Return the ideal values of pings that hear velocities (m/s) along the beams, (n, p, m, k) or everywhere alike."""
    k, m, p, b = len(sheet.beams.beams), int(sheet.cells.count), int(sheet.pings), int(sheet.bottom_pings)
    level = np.zeros((count, max(p, b), 4))
    level[:, :, 0] = 1.0
    valid = np.ascontiguousarray(np.broadcast_to(along, (count, p, m, k)))
    return {
        "true_beam_velocity": valid,
        "true_axial_velocity": valid,
        "attitude": np.ascontiguousarray(level[:, :p]),
        "output_rotation": np.ascontiguousarray(level[:, :p]),
        "true_bottom_range": np.full((count, b, k), RANGE),
        "true_bottom_beam_velocity": np.full((count, b, k), bottom),
        "sensor_velocity": np.zeros((count, b, 3)),
        "bottom_output_rotation": np.ascontiguousarray(level[:, :b]),
        "sound_speed": np.full(count, SOUND),
        "time_of_validity": np.zeros(count),
        "orientation": np.ascontiguousarray(level[:, 0]),
    }


def _ping(
    sheet: Adcp, key: tuple[str, int], count: int, along: AnyArray | float = 0.0, bottom: float = 0.0
) -> Mapping[str, AnyArray]:
    """Return the readings of `count` ensembles of an instrument."""
    draws = Draws(sheet.processes(), 1, (key[1], "declared", sheet.type, key[0]))
    ticks = Ticks(np.arange(count, dtype=np.int64), 1.0)
    ideal = _given(sheet, count, along, bottom)
    return sheet.measure(sheet.init(draws.initial), ticks, ideal, draws.take(count))[1].arrays


def _deviation(name: str, declared: float, samples: FloatArray, unit: str) -> Estimate:
    """Return the deviation of samples about 0."""
    error = declared / math.sqrt(2.0 * samples.size)
    return Estimate(name, declared, math.sqrt(float(np.mean(samples**2))), error, unit=unit)


def _side(name: str) -> tuple[str, Callable[[Adcp], int]]:
    """Return the output of a track's velocities along the beams, and what counts its pings."""
    if name == "profile":
        return "beam_velocity", lambda sheet: int(sheet.pings)
    return "bottom_beam_velocity", lambda sheet: int(sheet.bottom_pings)


def accuracy(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield deviations of single pings and among instruments, of the profile or of the bottom's track."""
    sheet = moved.sheet
    if not isinstance(sheet, Adcp):
        return
    name = "profile" if sheet.profile != Accuracy() else "bottom"
    given: Accuracy = {"profile": sheet.profile, "bottom": sheet.bottom}[name]
    output, pings = _side(name)
    if given.stddev > 0.0:
        alone = replace(sheet, **{name: Accuracy(given.stddev)})  # type: ignore[arg-type]
        per_cell = (
            sheet.cells.size / sheet.reference_cell_size if sheet.reference_cell_size and name == "profile" else 1.0
        )
        samples = math.sqrt(pings(sheet)) * per_cell * _ping(alone, (name, 0), ROWS)[output].reshape(-1)
        yield output, _deviation(f"{name} stddev", given.stddev, samples, "m/s")
    if given.long_term_scale > 0.0:
        alone = replace(sheet, **{name: Accuracy(0.0, given.long_term_scale)})  # type: ignore[arg-type]
        found = [float(_ping(alone, (name, run), 1, 1.0, 1.0)[output].flat[0]) - 1.0 for run in range(RUNS)]
        yield output, _deviation(f"{name} long_term_scale", given.long_term_scale, np.array(found), "1")
    if given.long_term_offset > 0.0:
        alone = replace(sheet, **{name: Accuracy(0.0, 0.0, given.long_term_offset)})  # type: ignore[arg-type]
        rows = [_ping(alone, (name, run), 1)[output].reshape(-1, len(sheet.beams.beams))[0] for run in range(RUNS)]
        solved = np.linalg.lstsq(sheet.beams.axes, np.array(rows).T, rcond=None)[0].reshape(-1)
        yield output, _deviation(f"{name} long_term_offset", given.long_term_offset, solved, "m/s")


def ranging(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the deviation of ranges to the bottom, or the speed of sound that they are told with."""
    sheet = moved.sheet
    if not isinstance(sheet, Adcp):
        return
    if sheet.sound.speed is not None:
        found = SOUND * float(_ping(sheet, ("sound", 0), 1)["bottom_range"][0, 0]) / RANGE
        yield "bottom_range", Estimate("sound speed", sheet.sound.speed, found, DIGITS * found, unit="m/s")
    else:
        off = _ping(sheet, ("range", 0), ROWS)["bottom_range"].reshape(-1) - RANGE
        samples = math.sqrt(sheet.bottom_pings) * off
        yield "bottom_range", _deviation("range_stddev", sheet.range_stddev, samples, "m")


def _strength(echo: EchoStrength, r: float) -> float:
    return echo.level - 20.0 * math.log10(r) - 2.0 * echo.absorption * r


def _where(echo: EchoStrength, strength: float) -> float:
    """Return the range (m) at which the echo has a strength (dB)."""
    low, high = 1e-6, FARTHEST
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _strength(echo, middle) > strength else (low, middle)
    return low


def backscatter(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the strength of the water's echo, its correlation, and where cells are lost."""
    sheet = moved.sheet
    if not isinstance(sheet, Adcp) or sheet.backscatter is None:
        return
    echo, arrays, k = sheet.backscatter, _ping(sheet, ("backscatter", 0), ROWS), 0
    slant = sheet.cells.distances / sheet.beams.janus_cosines[k]
    power = 10.0 ** (arrays["echo"][0, :, k] / 10.0) - 1.0
    strength = 10.0 * np.log10(power) + 20.0 * np.log10(slant)
    absorption = float(strength[0] - strength[1]) / (2.0 * float(slant[1] - slant[0]))
    level = float(strength[0]) + 2.0 * absorption * float(slant[0])
    rho = float(arrays["correlation"][0, 0, k] * (1.0 + 1.0 / power[0]))
    figures = (("level", echo.level, level, "dB"), ("absorption", echo.absorption, absorption, "dB/m"))
    for name, declared, found, unit in (*figures, ("correlation", echo.correlation, rho, "1")):
        error = CLOSE * max(abs(declared), abs(echo.level) if name == "absorption" else 0.0)
        yield "echo", Estimate(f"backscatter {name}", declared, found, error, unit=unit)
    pings = ROWS * int(sheet.pings)
    share = arrays["beam_percent_good"][:, :, k].mean(axis=0)
    logit = np.log(share / (1.0 - share))
    error = 1.0 / np.sqrt(pings * share * (1.0 - share))
    near, far = (_strength(echo, float(r)) for r in slant)
    between = float(logit[0] - logit[1])
    slope = (near - far) / between
    off = math.hypot(*error.tolist()) * slope / between
    yield "beam_percent_good", Estimate("backscatter slope", echo.slope, slope, off, unit="dB")
    threshold = 0.5 * (near + far) - 0.5 * echo.slope * float(logit[0] + logit[1])
    off = 0.5 * echo.slope * math.hypot(*error.tolist())
    yield "beam_percent_good", Estimate("backscatter threshold", echo.threshold, threshold, off, unit="dB")


def limits(moved: Moved) -> Iterator[tuple[str, Estimate]]:
    """Yield the error velocity that is rejected, or the share of pings below which a cell is not told."""
    sheet = moved.sheet
    if not isinstance(sheet, Adcp):
        return
    k = len(sheet.beams.beams)
    if sheet.min_good_share > 0.0:
        pings = int(sheet.pings)
        lost = np.arange(pings)[None, :, None, None] < np.arange(pings + 1)[:, None, None, None]
        arrays = _ping(sheet, ("good", 0), pings + 1, np.where(lost, math.nan, 0.0))
        known = np.isfinite(arrays["velocity"][:, 0, 0])
        last = int(known.sum()) - 1
        measured = (pings - last - 0.5) / pings
        yield (
            "velocity",
            Estimate("min_good_share", sheet.min_good_share, measured, CLOSE, allowance=0.5 / pings + CLOSE, unit="1"),
        )
        return
    null = np.linalg.svd(sheet.beams.axes.T)[2][-1]
    grow = np.linspace(0.0, 2.0 * sheet.error_velocity_limit, STEPS)[:, None, None, None] * null[None, None, None, :k]
    free = _ping(replace(sheet, error_velocity_limit=math.inf), ("limit", 0), STEPS, grow)["error_velocity"][:, 0]
    known = np.isfinite(_ping(sheet, ("limit", 0), STEPS, grow)["velocity"][:, 0, 0])
    last, step = int(known.sum()) - 1, abs(float(free[2] - free[1]))
    if last + 1 < STEPS:
        measured = abs(float(free[last])) + 0.5 * step
        allowance = (0.5 + CLOSE) * step
        declared = sheet.error_velocity_limit
        yield "error_velocity", Estimate("error_velocity_limit", declared, measured, CLOSE, allowance, unit="m/s")


def _accurate(spec: Sensor) -> Sequence[Sensor]:
    """Return sheets with the errors of either velocity alone."""
    if not isinstance(spec, Adcp):
        return ()
    names = [name for name, value in (("profile", spec.profile), ("bottom", spec.bottom)) if value != Accuracy()]
    bottom = max(int(spec.bottom_pings), 1)
    return [_bare(spec, bottom_pings=bottom, **{name: getattr(spec, name)}) for name in names]


def _range_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return sheets with the errors of ranges alone."""
    if not isinstance(spec, Adcp):
        return ()
    bottom = max(int(spec.bottom_pings), 1)
    acting = [("range_stddev", spec.range_stddev > 0.0), ("sound", spec.sound.speed is not None)]
    return [_bare(spec, bottom_pings=bottom, **{name: getattr(spec, name)}) for name, acts in acting if acts]


def _faint(spec: Sensor) -> Sequence[Sensor]:
    """Return a sheet with the water's echo alone, and two cells: a slope nearer than its threshold, and one farther."""
    if not isinstance(spec, Adcp) or spec.backscatter is None:
        return ()
    echo = spec.backscatter
    near, far = (spec.beams.janus_cosines[0] * _where(echo, echo.threshold + side * echo.slope) for side in (1.0, -1.0))
    size = far - near
    cells = DepthCells(2, size, max(near - 0.5 * size, 0.0), 0.0, 0.0, 1)
    return [_bare(spec, cells=cells, pings=50, backscatter=echo)]


def _limit_specs(spec: Sensor) -> Sequence[Sensor]:
    """Return sheets with one limit alone, of one ping and of a hundred."""
    if not isinstance(spec, Adcp):
        return ()
    cells, found = DepthCells(1, 1.0, 1.0), []
    if spec.error_velocity_limit < math.inf and len(spec.beams.beams) > 3:
        found.append(_bare(spec, cells=cells, pings=1, error_velocity_limit=spec.error_velocity_limit))
    if spec.min_good_share > 0.0:
        found.append(_bare(spec, cells=cells, pings=100, min_good_share=spec.min_good_share))
    return found


TERMS: tuple[MovedTerm, ...] = (
    MovedTerm("profile accuracy", accuracy, 1, _accurate, Stationary),
    MovedTerm("profile ranges", ranging, 1, _range_specs, Stationary),
    MovedTerm("backscatter", backscatter, 1, _faint, Stationary),
    MovedTerm("profile limits", limits, 1, _limit_specs, Stationary),
)
"""How what a current profiler errs by is measured."""
