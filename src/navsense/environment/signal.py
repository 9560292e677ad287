"""Signals: named inputs as functions of time, such as a temperature or the current of a motor.

A signal is linear between its points (t_i, v_i) and constant before the first and after the last point. A duplicate
time is a discontinuity: the second value applies from that time on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, parse_decimal, read_lines
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Times
from navsense.core.validation import check_number

CSV_HEADER = ("time", "value")

_FILE_KIND = FileKind("signal", FieldError, "must be a CSV file of time,value in UTF-8")


@kernel
def interpolate(times: FloatArray, values: FloatArray, time: Times, out: FloatArray) -> None:
    """Write the value at each time, in any order."""
    last = times.shape[0] - 1
    row = 0  # start of the search for increasing times
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
            fraction = (t - times[row]) / (times[row + 1] - times[row])
            out[i] = values[row] + fraction * (values[row + 1] - values[row])


@dataclass(frozen=True)
class Signal:
    """A piecewise linear function of time.

    times: s, non-decreasing, each time at most twice.
    values: in the signal's own unit.

    Raises `FieldError` for different numbers of times and values, no values, a value that is not finite or above
    `MAX_MAGNITUDE`, and invalid times.
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
        """Return a constant signal."""
        return cls((0.0,), (float(value),))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Signal:
        """Read a CSV file with the header ``time,value``: seconds since the start of the run, and the signal's unit.

        Raises `FieldError` with file and line for an unreadable file and invalid rows.
        """
        name = os.fspath(path)
        rows = _parse_rows(name, read_lines(name, _FILE_KIND))
        lines = [Where(name, number) for number, _, _ in rows]
        times, values = tuple(row[1] for row in rows), tuple(row[2] for row in rows)
        _check_points(times, values, lines.__getitem__)
        return cls(times, values)

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Times (s) and values as arrays."""
        return np.array(self.times, dtype=np.float64), np.array(self.values, dtype=np.float64)

    def at(self, time: Times) -> FloatArray:
        """Return the value (n,) at times (n,) s, in any order."""
        out = np.empty(time.shape[0])
        interpolate(*self.points, time, out)
        return out


def _check_points(times: Sequence[float], values: Sequence[float], find_line: Callable[[int], Where | None]) -> None:
    """Raise `FieldError` for the first invalid point."""
    for row, (time, value) in enumerate(zip(times, values, strict=True)):
        where = find_line(row)
        check_number("time of a signal", time, error=FieldError, where=where)
        check_number("value of a signal", value, error=FieldError, where=where)
        if row and time < times[row - 1]:
            allowed = f"must not be before {times[row - 1]!r} s, the time of the row above"
            raise FieldError("time of a signal", time, allowed=allowed, where=where)
        if row > 1 and time == times[row - 2]:
            raise FieldError("time of a signal", time, allowed="must not be given more than twice", where=where)


def _parse_rows(name: str, text: Iterable[str]) -> list[tuple[int, float, float]]:
    """Return line number, time (s) and value of each non-blank row. Raises `FieldError`."""
    filled = [(number, line) for number, line in enumerate(text, 1) if line and not line.isspace()]
    number, head = filled[0] if filled else (1, "")
    if tuple(part.strip() for part in head.split(",")) != CSV_HEADER:
        allowed = f"must be {','.join(CSV_HEADER)}"
        raise FieldError("header of the signal", head.strip(), allowed=allowed, where=Where(name, number))
    if len(filled) == 1:
        raise FieldError("signal without rows", where=Where(name), allowed="must hold rows of time,value")
    return [(number, *_parse_row(line, Where(name, number))) for number, line in filled[1:]]


def _parse_row(line: str, where: Where) -> tuple[float, float]:
    """Return the two numbers of a row. Raises `FieldError`."""
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
