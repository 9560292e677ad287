"""Axes with round ticks, and quantities with a unit prefix that fits their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from navsense.core.typing import FloatArray
from navsense.figures import Scale, choose_time_scale

ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps between ticks, times a power of ten."""

PREFIXES = ((1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"))
"""Factors and names of unit prefixes."""

RADIAN_PREFIXES = tuple(pair for pair in PREFIXES if pair[1] not in ("p", "n"))
"""Prefixes of angles."""

PREFIXED_UNITS = frozenset(("m", "s", "T", "Pa", "m/s", "rad", "rad/s", "m/s^2", "V", "A", "Hz"))
"""Units that take a prefix."""

MIN_TICKS = 2
"""Ticks of an axis at least: a single tick gives no scale."""

DECADES = 12
"""Decades that a logarithmic axis shows at most."""

MAX_AXIS_VALUE = 1e300
"""End of all axes. Larger values are outside; logarithmic axes begin at the inverse."""

MIN_SPAN = 1e-9
"""Minimum span of an axis, relative to its largest value; an axis with a smaller one is widened."""

DASH = "\u2013"
"""Text of a table cell without a value."""


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high` in the unit of its scale."""

    low: float
    high: float
    title: str
    scale: Scale
    log: bool = False

    def compute_positions(self, values: FloatArray) -> FloatArray:
        """Return the positions of SI values (n,) on the axis: 0 at `low`, 1 at `high`."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scaled = values * self.scale.factor
            if self.log:
                return np.asarray(np.log(scaled / self.low) / math.log(self.high / self.low))
            return np.asarray((scaled - self.low) / (self.high - self.low))

    def make_ticks(self, count: int) -> list[tuple[float, str]]:
        """Return position (0 to 1) and label of the ticks: about `count` at most, and at least two."""
        marks = (_list_powers_of_ten if self.log else _list_round_numbers)(self.low, self.high, count)
        format_mark = _format_power_of_ten if self.log else format_tick
        if len(marks) < MIN_TICKS and self.log:
            marks, format_mark = _list_marks_within_decades(self.low, self.high), format_tick
        elif len(marks) < MIN_TICKS:
            marks = _list_round_numbers(self.low, self.high, 2 * MIN_TICKS)
        values = np.array(marks, dtype=np.float64) / self.scale.factor
        positions = self.compute_positions(values).tolist()
        return [(position, format_mark(mark)) for position, mark in zip(positions, marks, strict=True)]


def format_tick(value: float) -> str:
    """Return the label of a tick, with a typographic minus."""
    if value == 0.0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        return f"{value:.6g}".replace("-", "\u2212")
    power = math.floor(math.log10(size) + 1e-9)
    return f"{value / 10.0**power:.3g}·10{_format_superscript(power)}".replace("-", "\u2212")


def _format_superscript(power: int) -> str:
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] if c.isdigit() else "⁻" for c in str(power))


def _format_power_of_ten(value: float) -> str:
    power = round(math.log10(value))
    return f"10{_format_superscript(power)}" if not -3 < power < 4 else f"{value:g}"


def _list_round_numbers(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers between two numbers in either order."""
    low, high = min(low, high), max(low, high)
    min_step = (high - low) / count
    power = 10.0 ** math.floor(math.log10(min_step))
    step = next(factor * power for factor in ROUND_STEPS if factor * power >= min_step * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12 - math.floor(math.log10(step))) for number in range(first, last + 1)]


def _list_powers_of_ten(low: float, high: float, count: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / count))
    return [10.0**power for power in range(first, last + 1, stride)]


def _list_marks_within_decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two numbers, or round numbers if those are too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [factor * 10.0**power for power in powers for factor in (1.0, 2.0, 5.0)]
    marks = [mark for mark in marks if low * (1.0 - 1e-9) <= mark <= high * (1.0 + 1e-9)]
    return marks if len(marks) >= MIN_TICKS else _list_round_numbers(low, high, 2 * MIN_TICKS)


def choose_scale(unit: str, size: float) -> Scale:
    """Return the scale that fits SI values of a unit up to a size."""
    if unit == "rad" and size > 1e-2:
        return Scale(180.0 / math.pi, "°")
    text = unit.replace("^2", "²").replace("^3", "³").replace("1 / ", "1/")
    if unit not in PREFIXED_UNITS or not 0.0 < size < math.inf:
        return Scale(1.0, text)
    prefixes = RADIAN_PREFIXES if unit == "rad" else PREFIXES
    factor, prefix = next((pair for pair in reversed(prefixes) if size >= pair[0] * (1.0 - MIN_SPAN)), prefixes[0])
    if prefix in ("k", "M") and unit in ("m", "s", "m/s"):
        return Scale(1.0, text)
    return Scale(1.0 / factor, prefix + text)


def format_quantity(value: float, unit: str) -> str:
    """Return an SI value with its unit, with the prefix that fits."""
    scale = choose_scale(unit, abs(value))
    return f"{value * scale.factor:.4g} {scale.unit}".replace("-", "\u2212").strip()


def make_linear_axis(title: str, unit: str, series: Iterable[FloatArray], *, zero: bool = False) -> Axis:
    """Return an axis over all finite SI values of some series, with a margin; with `zero` it includes 0."""
    low, high = find_finite_range(series)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    scale = choose_scale(unit, max(abs(low), abs(high)))
    low, high = low * scale.factor, high * scale.factor
    span = high - low
    if not span > MIN_SPAN * max(abs(low), abs(high), 1e-30):
        span = max(0.1 * abs(high), 1e-3 if scale.factor == 1.0 else 1.0)
        low, high = low - 0.5 * span, high + 0.5 * span
    return Axis(low - 0.05 * span, high + 0.05 * span, format_axis_title(title, scale.unit), scale)


def make_log_axis(title: str, unit: str, series: Sequence[FloatArray]) -> Axis:
    """Return a logarithmic axis over all finite positive SI values of some series."""
    positive = [array[array > 1.0 / MAX_AXIS_VALUE] for array in series]
    low, high = find_finite_range(positive, (1.0, 10.0))
    scale = choose_scale(unit, high)
    low = max(low, high * 10.0**-DECADES) * scale.factor
    return Axis(0.7 * low, 1.4 * high * scale.factor, format_axis_title(title, scale.unit), scale, log=True)


def make_time_axis(first: float, last: float) -> Axis:
    """Return an axis of time (s)."""
    first, last = _limit(first), _limit(last)
    if not last - first > max(1e-3 * MIN_SPAN * abs(first), 1.0 / MAX_AXIS_VALUE):
        last = first + max(1.0, MIN_SPAN * abs(first))
    scale = choose_time_scale(last - first)
    return Axis(first * scale.factor, last * scale.factor, format_axis_title("time", scale.unit), scale)


def format_axis_title(title: str, unit: str) -> str:
    """Return the title of an axis with its unit."""
    return f"{title} ({unit})" if unit and unit != "1" else title


def find_finite_range(series: Iterable[FloatArray], default: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """Return the minimum and maximum finite value of all series, limited to the ends of axes."""
    finite_arrays = [array[np.isfinite(array)] for array in series]
    finite_arrays = [array for array in finite_arrays if array.size]
    if not finite_arrays:
        return default
    return _limit(min(float(a.min()) for a in finite_arrays)), _limit(max(float(a.max()) for a in finite_arrays))


def _limit(value: float) -> float:
    return min(max(value, -MAX_AXIS_VALUE), MAX_AXIS_VALUE)
