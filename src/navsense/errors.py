"""The errors of navsense: what, the value, what is allowed, where, and how to repair.

Every error that a user can cause is a `NavsenseError`; the command line prints it on one line and exits with 2.
One class a layer, so that a caller can tell a wrong file from a full disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    """A place in a file; `line` counts from 1 and is 0 where the whole file is meant."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        """Return `path:line`, or `path` alone for a whole file."""
        return f"{self.path}:{self.line}" if self.line else self.path


def show(value: object) -> str:
    """Return a value as an error prints it: numbers and short texts whole, long ones cut."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits for Python, a list that contains itself
        text = f"a value of type {type(value).__name__} that cannot be printed"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


class NavsenseError(Exception):
    """What is wrong, with its value, what is allowed, where it stands, and the remedy.

    Printed as `where what: value; allowed; remedy`, leaving out what is not given, for example
    `dive.sdf:118 <noise><stddev>: -0.2; must be >= 0`.
    """

    def __init__(
        self,
        what: str,
        value: object = None,
        *,
        allowed: str = "",
        where: Where | None = None,
        remedy: str = "",
    ) -> None:
        """Keep the parts; `str()` joins them."""
        self.what = what
        self.value = value
        self.allowed = allowed
        self.where = where
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        """Join the parts on one line."""
        head = f"{self.where} {self.what}" if self.where else self.what
        if self.value is not None:
            head += f": {show(self.value)}"
        return "; ".join(part for part in (head, self.allowed, self.remedy) if part)


class SdfError(NavsenseError):
    """A world file that cannot be read or does not hold together.

    `problems` are all that were found in the file, the first of them being this error.
    """

    problems: Sequence[NavsenseError] = ()


class FieldError(NavsenseError):
    """A place on earth, a field, an atmosphere or a named input that is not possible, or is asked for out of reach.

    `row` is which of many places or instants it is, where `what` would else not say; `quantity` is `what` without it.
    """

    def __init__(
        self,
        what: str,
        value: object = None,
        *,
        row: int | None = None,
        allowed: str = "",
        where: Where | None = None,
        remedy: str = "",
    ) -> None:
        """Keep the parts; a row stands before the unit, as in `position of row 3 (m)`."""
        self.quantity, self.row = what, row
        if row is not None:
            name, bracket, unit = what.partition(" (")
            what = f"{name} of row {row}{bracket}{unit}"
        super().__init__(what, value, allowed=allowed, where=where, remedy=remedy)


class MotionError(NavsenseError):
    """A trajectory or log that is no motion, or is asked for a time outside its own."""


class SensorError(NavsenseError):
    """A sensor, its noise or its own registration is not possible."""


class MissingDeviationError(SensorError):
    """A part of the catalogue without a source for the standard deviation of a measurement."""


class ClockError(NavsenseError):
    """A clock or a stamp that is not possible."""


class UnknownNameError(NavsenseError, KeyError):
    """A name that a mapping does not hold: also a `KeyError`."""


class SimulationError(NavsenseError):
    """A run that was asked for cannot be made: duration, seed, memory, names."""


class RecordingError(NavsenseError):
    """A recording that cannot be written or read. `rescue` is the command that recovers the written part, if kept."""

    rescue: str = ""

    def __str__(self) -> str:
        """Join the parts on one line."""
        return "; ".join(part for part in (super().__str__(), self.rescue) if part)


class AnalysisError(NavsenseError):
    """A record that cannot be analysed: its shape, gaps or length, or what is asked of it."""


class FactorError(NavsenseError, ValueError):
    """A factor that cannot be made, or a value that it cannot be asked at: also a `ValueError`."""


class CalibrationError(NavsenseError):
    """Measurements that no calibration can be trusted from: too few, alike, of poor motion, in another unit."""
