"""A named input that no physics gives, as a function of time: a temperature, a motor's current.

Straight lines between the points (t_i, v_i); before the first point its value, after the last point that one's. An
instant given twice is a jump: the later value holds from that instant on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.errors import FieldError, Where
from navsense.inputs import FileKind, parse_decimal, read_lines
from navsense.kernels import kernel
from navsense.typing import FloatArray, Times
from navsense.validation import MAX_MAGNITUDE

CSV_HEADER = ("time", "value")

_FILE_KIND = FileKind("signal", FieldError, "must be a CSV file of time,value in UTF-8")


@kernel
def interpolate(times: FloatArray, values: FloatArray, time: Times, out: FloatArray) -> None:
    """Write the value at each instant, whatever the order of the instants."""
    last = times.shape[0] - 1
    row = 0  # saves the search where instants come in order
    for i in range(time.shape[0]):
        t = time[i]
        if times[row] > t:
            row = 0
        low, high = row, last
        if row < last and times[row + 1] > t:
            high = row
        while low < high:
            middle = (low + high + 1) // 2
            if times[middle] <= t:
                low = middle
            else:
                high = middle - 1
        row = low
        if row == last or t <= times[row]:
            out[i] = values[row]
        else:
            share = (t - times[row]) / (times[row + 1] - times[row])
            out[i] = values[row] + share * (values[row + 1] - values[row])


@dataclass(frozen=True)
class Signal:
    """Points (s, unit of the signal's own) with straight lines between them and the ends held.

    Raises `FieldError` for points that are none: not as many times as values, none at all, a value that is not finite
    or above `LARGEST`, time going back, an instant given more than twice.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the values."""
        if len(self.times) != len(self.values) or not self.times:
            counts = f"{len(self.times)} and {len(self.values)}"
            raise FieldError("numbers of times and values", counts, allowed="must be the same, and not 0")
        _check_points(self.times, self.values, lambda _: None)

    @classmethod
    def constant(cls, value: float) -> Signal:
        """Return the signal that always has one value."""
        return cls((0.0,), (float(value),))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Signal:
        """Read a CSV file of the header ``time,value``, seconds since the run's start and the signal's unit.

        Raises `FieldError` with file and line for what cannot be read or is no function of time.
        """
        name = os.fspath(path)
        rows = _parse_rows(name, read_lines(name, _FILE_KIND))
        places = [Where(name, number) for number, _, _ in rows]
        times, values = tuple(row[1] for row in rows), tuple(row[2] for row in rows)
        _check_points(times, values, places.__getitem__)
        return cls(times, values)

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Times (s) and values, as kernels take them."""
        return np.array(self.times, dtype=np.float64), np.array(self.values, dtype=np.float64)

    def at(self, time: Times) -> FloatArray:
        """Return the value (n,) at the instants (n,) s, in any order."""
        out = np.empty(time.shape[0])
        interpolate(*self.points, time, out)
        return out


def _check_points(times: Sequence[float], values: Sequence[float], place: Callable[[int], Where | None]) -> None:
    """Raise FieldError for the first point that is not finite, too large or does not follow the one before it."""
    for row, (time, value) in enumerate(zip(times, values, strict=True)):
        for what, number in (("time", time), ("value", value)):
            if not math.isfinite(number):
                raise FieldError(f"{what} of a signal", number, allowed="must be a finite number", where=place(row))
            if abs(number) > MAX_MAGNITUDE:
                allowed = f"must be of a size up to {MAX_MAGNITUDE:g}"
                raise FieldError(f"{what} of a signal", number, allowed=allowed, where=place(row))
        if row and time < times[row - 1]:
            allowed = f"must not be before {times[row - 1]!r} s, the time of the row above"
            raise FieldError("time of a signal", time, allowed=allowed, where=place(row))
        if row > 1 and time == times[row - 2]:
            raise FieldError("time of a signal", time, allowed="must not be given more than twice", where=place(row))


def _parse_rows(name: str, text: Iterable[str]) -> list[tuple[int, float, float]]:
    """Return line number, time (s) and value of each row that is not blank. Raise FieldError."""
    filled = [(number, line) for number, line in enumerate(text, 1) if line and not line.isspace()]
    number, head = filled[0] if filled else (1, "")
    if tuple(part.strip() for part in head.split(",")) != CSV_HEADER:
        allowed = f"must be {','.join(CSV_HEADER)}"
        raise FieldError("header of the signal", head.strip(), allowed=allowed, where=Where(name, number))
    if len(filled) == 1:
        raise FieldError("signal without rows", where=Where(name), allowed="must hold rows of time,value")
    return [(number, *_parse_row(line, Where(name, number))) for number, line in filled[1:]]


def _parse_row(line: str, where: Where) -> tuple[float, float]:
    """Return the two numbers of a row. Raise FieldError."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(CSV_HEADER):
        raise FieldError("number of columns", len(parts), allowed="must be 2: time,value", where=where)
    numbers = []
    for what, part in zip(CSV_HEADER, parts, strict=True):
        number = parse_decimal(part)
        if number is None:
            raise FieldError(f"{what} of a signal", part, allowed="must be a finite number", where=where)
        numbers.append(number)
    return numbers[0], numbers[1]
