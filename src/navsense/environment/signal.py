"""Signals: named inputs as functions of time, such as a temperature or the current of a motor.

A signal is linear between its points (t_i, v_i) and constant before the first and after the last point. A duplicate
time is a discontinuity: the second value applies from that time on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.inputs import FileKind
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Times
from navsense.core.validation import MAX_MAGNITUDE, is_number
from navsense.environment.tables import add_lines_to_errors, read_table

CSV_HEADER = "time,value"

_FILE_KIND = FileKind("signal", FieldError, "must be a CSV file of time,value in UTF-8")


@kernel
def interpolate(times: FloatArray, values: FloatArray, time: Times, out: FloatArray) -> None:
    """Write the value at each time, in any order."""
    last, row = times.shape[0] - 1, 0
    for i in range(time.shape[0]):
        t = time[i]
        if t >= times[last] or last == 0:
            out[i] = values[last]
            continue
        row = find_interval(times, t, row)
        if t <= times[row]:
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

    >>> temperature = ns.environment.Signal(times=(0.0, 60.0, 60.0), values=(290.0, 300.0, 310.0))  # a step at 60 s
    >>> temperature.at(np.array([30.0, 60.0]))
    array([295., 310.])
    """

    times: tuple[float, ...]
    values: tuple[float, ...]

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        if len(self.times) != len(self.values) or not self.times:
            counts = f"{len(self.times)} and {len(self.values)}"
            raise FieldError("numbers of times and values", counts, allowed="must be the same, and not 0")
        for row, (time, value) in enumerate(zip(self.times, self.values, strict=True)):
            for what, number in (("signal time (s)", time), ("signal value", value)):
                if not (is_number(number) and abs(number) <= MAX_MAGNITUDE):
                    allowed = f"must be a number of absolute value up to {MAX_MAGNITUDE:g}"
                    raise FieldError(what, number, row=row, allowed=allowed)
            if row and time < self.times[row - 1]:
                allowed = f"must not be before {self.times[row - 1]!r} s, the time of the row before"
                raise FieldError("signal time (s)", time, row=row, allowed=allowed)
            if row > 1 and time == self.times[row - 2]:
                raise FieldError("signal time (s)", time, row=row, allowed="must not be given more than twice")

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
        _, lines, numbers = read_table(name, _FILE_KIND, (CSV_HEADER,))
        with add_lines_to_errors(name, lines):
            return cls(tuple(numbers[:, 0].tolist()), tuple(numbers[:, 1].tolist()))

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Times (s) and values as arrays."""
        return np.array(self.times, dtype=np.float64), np.array(self.values, dtype=np.float64)

    def at(self, time: Times) -> FloatArray:
        """Return the value (n,) at times (n,) s, in any order."""
        out = np.empty(time.shape[0])
        interpolate(*self.points, time, out)
        return out
