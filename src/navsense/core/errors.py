"""The errors of navsense. Each states the problem, the value, what is allowed, the place and the remedy.

Every error that a user can cause is a `NavsenseError`. The command line prints it on one line and exits with code 2.
Each layer has its own class, so a caller can distinguish an invalid world from a full disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    """A place in a file. `line` counts from 1; 0 is the file itself."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        """Return `path:line`, or `path` for line 0."""
        return f"{self.path}:{self.line}" if self.line else self.path


def show(value: object) -> str:
    """Return a value as text on one line, truncated to 80 characters."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits for Python, a list that contains itself
        text = f"a value of type {type(value).__name__} that cannot be printed"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


class NavsenseError(Exception):
    """A problem with its value, what is allowed, its place and the remedy.

    It is printed as `where: what: value; allowed; remedy` without empty parts, for example
    `dive.sdf:118: <noise><stddev>: -0.2; must be >= 0`. `field` is the name of the invalid field of a specification; ""
    for any other error.

    >>> try:
    ...     ns.Noise(stddev=-0.2)
    ... except ns.NavsenseError as error:
    ...     print(error)
    stddev: -0.2; must be >= 0
    """

    def __init__(
        self,
        what: str,
        value: object = None,
        *,
        allowed: str = "",
        where: Where | None = None,
        remedy: str = "",
        field: str = "",
    ) -> None:
        """Store the parts. `str()` joins them."""
        self.what = what
        self.value = value
        self.allowed = allowed
        self.where = where
        self.remedy = remedy
        self.field = field
        super().__init__(what)

    def __str__(self) -> str:
        """Join the parts on one line."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        if self.value is not None:
            head += f": {show(self.value)}"
        return "; ".join(part for part in (head, self.allowed, self.remedy) if part)


class SdfError(NavsenseError):
    """A world file that cannot be read or is invalid.

    `problems` are all problems in the file. This error is the first.
    """

    problems: Sequence[NavsenseError] = ()


class FieldError(NavsenseError):
    """An invalid origin, field, atmosphere or signal, or a position or time outside its range.

    `row` is the index of the position or time in an array; `quantity` is `what` without it.
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
        field: str = "",
    ) -> None:
        """Store the parts. The row precedes the unit, as in `position of row 3 (m)`."""
        self.quantity, self.row = what, row
        if row is not None:
            name, bracket, unit = what.partition(" (")
            what = f"{name} of row {row}{bracket}{unit}"
        super().__init__(what, value, allowed=allowed, where=where, remedy=remedy, field=field)


class MotionError(NavsenseError):
    """An invalid trajectory or motion log, or a time outside it."""


class SensorError(NavsenseError):
    """An invalid sensor, noise or registration of a sensor type."""


class MissingDeviationError(SensorError):
    """A catalogue part without a source for the standard deviation of a measurement."""


class ClockError(NavsenseError):
    """An invalid clock or stamp."""


class UnknownNameError(NavsenseError, KeyError):
    """A name that a mapping does not contain: also a `KeyError`."""


class SimulationError(NavsenseError):
    """Invalid arguments of a run: duration, seed, memory, names."""


class CompilerError(SimulationError):
    """Numba, which compiles the kernels, does not start: an invalid environment variable or a broken installation."""


class RecordingError(NavsenseError):
    """A recording that cannot be written or read. `rescue` is the command that recovers the written part, if any."""

    rescue: str = ""

    def __str__(self) -> str:
        """Join the parts on one line."""
        return "; ".join(part for part in (super().__str__(), self.rescue) if part)


class DamagedError(Exception):
    """Invalid content of a recording. Not a `NavsenseError`: `open_messages` adds the path and the remedy."""


class AnalysisError(NavsenseError):
    """Data that cannot be analysed: shape, gaps, length, or an invalid argument."""


class FactorError(NavsenseError, ValueError):
    """An invalid factor, or invalid values for it: also a `ValueError`."""


class CalibrationError(NavsenseError):
    """Measurements that do not allow a calibration: too few, too similar, or in another unit.

    >>> try:
    ...     ns.calibration.ellipsoid(1e6 * field)  # µT, but the unit is tesla
    ... except ns.calibration.CalibrationError as error:
    ...     print(error.remedy)
    the numbers look like uT: give unit="uT"
    """
