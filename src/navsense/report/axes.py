"""Axes: from values to parts of a length, with round ticks; and quantities in a prefix that suits their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.typing import FloatArray

ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps between ticks, times a power of ten."""

PREFIXES = ((1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"))
"""What goes before a unit."""

PREFIXED = frozenset(("m", "s", "T", "Pa", "m/s", "rad", "rad/s", "m/s^2", "V", "A", "Hz"))
"""Units that take one."""

FEWEST = 2
"""Ticks of an axis at least: a lone one gives no scale."""

MINUTES, HOURS, DAYS = 300.0, 4 * 3600.0, 4 * 86400.0
"""Seconds from which on time is shown in the one or the other."""

DECADES = 12
"""Decades that a logarithmic axis shows at most."""

FARTHEST = 1e300
"""Where axes end: what lies beyond lies outside. Logarithmic ones begin at its inverse."""

NARROWEST = 1e-9
"""Spread over size of values for which an axis is made wider."""


@dataclass(frozen=True)
class Scale:
    """How many of a unit one SI unit is, and its name."""

    factor: float
    unit: str


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high` (values times the scale's factor), its title, and whether it is logarithmic."""

    low: float
    high: float
    title: str
    scale: Scale
    log: bool = False

    def part(self, values: FloatArray) -> FloatArray:
        """Return what parts of the axis lie below SI values (n,)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shown = values * self.scale.factor
            if self.log:
                return np.asarray(np.log(shown / self.low) / math.log(self.high / self.low))
            return np.asarray((shown - self.low) / (self.high - self.low))

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return parts of the axis with what is written there, about `most` of them at most and never only one."""
        marks, say = (_decades if self.log else _rounded)(self.low, self.high, most), _power if self.log else told
        if len(marks) < FEWEST and self.log:
            marks, say = _within_decades(self.low, self.high), told
        elif len(marks) < FEWEST:
            marks = _rounded(self.low, self.high, 2 * FEWEST)
        values = np.array(marks, dtype=np.float64) / self.scale.factor
        return [(float(at), say(mark)) for at, mark in zip(self.part(values), marks, strict=True)]


def told(value: float) -> str:
    """Return a tick's number, with a true minus."""
    if value == 0.0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        return f"{value:.6g}".replace("-", "\u2212")
    power = math.floor(math.log10(size) + 1e-9)
    return f"{value / 10.0**power:.3g}·10{_raised(power)}".replace("-", "\u2212")


def _raised(power: int) -> str:
    """Return a power in raised letters."""
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] if c.isdigit() else "⁻" for c in str(power))


def _power(value: float) -> str:
    """Return a power of ten as a logarithmic axis tells it."""
    power = round(math.log10(value))
    return f"10{_raised(power)}" if not -3 < power < 4 else f"{value:g}"


def _rounded(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between two, the first of which may be the larger one: an axis that goes down."""
    low, high = min(low, high), max(low, high)
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in ROUND if factor * power >= raw * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12 - math.floor(math.log10(step))) for number in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between two numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / most))
    return [10.0**power for power in range(first, last + 1, stride)]


def _within_decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two numbers, round ones in even steps where those are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [factor * 10.0**power for power in powers for factor in (1.0, 2.0, 5.0)]
    marks = [mark for mark in marks if low * (1.0 - 1e-9) <= mark <= high * (1.0 + 1e-9)]
    return marks if len(marks) >= FEWEST else _rounded(low, high, 2 * FEWEST)


def scale_of(unit: str, size: float) -> Scale:
    """Return the scale that suits SI values of a unit up to a size."""
    if unit == "rad" and size > 1e-2:
        return Scale(180.0 / math.pi, "°")
    if unit not in PREFIXED or not 0.0 < size < math.inf:
        return Scale(1.0, _written(unit))
    top = [(factor, prefix) for factor, prefix in PREFIXES if size >= factor] or [PREFIXES[0]]
    factor, prefix = top[-1]
    if prefix in ("k", "M") and unit in ("m", "s", "m/s"):
        return Scale(1.0, _written(unit))
    return Scale(1.0 / factor, prefix + _written(unit))


def _written(unit: str) -> str:
    """Return a unit as it is printed."""
    return unit.replace("^2", "²").replace("^3", "³").replace("1 / ", "1/")


def quantity(value: float, unit: str) -> str:
    """Return a value with its unit in the prefix that suits it."""
    scale = scale_of(unit, abs(value))
    return f"{value * scale.factor:.4g} {scale.unit}".replace("-", "\u2212").strip()


def linear(title: str, unit: str, series: Iterable[FloatArray], *, zero: bool = False) -> Axis:
    """Return an axis over all finite values of some series in SI, with a margin; over 0 too where asked."""
    low, high = bounds(series)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    scale = scale_of(unit, max(abs(low), abs(high)))
    low, high = low * scale.factor, high * scale.factor
    span = high - low
    if not span > NARROWEST * max(abs(low), abs(high), 1e-30):
        span = max(0.1 * abs(high), 1e-3 if scale.factor == 1.0 else 1.0)
        low, high = low - 0.5 * span, high + 0.5 * span
    return Axis(low - 0.05 * span, high + 0.05 * span, titled(title, scale.unit), scale)


def logarithmic(title: str, unit: str, series: Sequence[FloatArray]) -> Axis:
    """Return a logarithmic axis over all finite positive values of some series in SI."""
    positive = [array[array > 1.0 / FARTHEST] for array in series]
    low, high = bounds(positive, (1.0, 10.0))
    scale = scale_of(unit, high)
    low = max(low, high * 10.0**-DECADES) * scale.factor
    return Axis(0.7 * low, 1.4 * high * scale.factor, titled(title, scale.unit), scale, log=True)


def over_time(first: float, last: float) -> Axis:
    """Return an axis of time (s)."""
    scale = Scale(1.0, "s")
    first, last = _within(first), _within(last)
    if not last - first > max(1e-3 * NARROWEST * abs(first), 1.0 / FARTHEST):
        last = first + max(1.0, NARROWEST * abs(first))
    for least, seconds, unit in ((DAYS, 86400.0, "d"), (HOURS, 3600.0, "h"), (MINUTES, 60.0, "min")):
        if last - first > least:
            scale = Scale(1.0 / seconds, unit)
            break
    return Axis(first * scale.factor, last * scale.factor, titled("time", scale.unit), scale)


def titled(title: str, unit: str) -> str:
    """Return the title of an axis with its unit."""
    return f"{title} ({unit})" if unit and unit != "1" else title


def bounds(series: Iterable[FloatArray], without: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """Return the least and greatest finite value of all series, as far as axes go; `without` where there is none."""
    finite = [array[np.isfinite(array)] for array in series]
    kept = [array for array in finite if array.size]
    if not kept:
        return without
    return _within(min(float(a.min()) for a in kept)), _within(max(float(a.max()) for a in kept))


def _within(value: float) -> float:
    """Return a value, or the end of axes that it lies beyond."""
    return min(max(value, -FARTHEST), FARTHEST)
