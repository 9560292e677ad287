"""The errors of navsense. Each states the problem, the value, what is allowed, the place and the remedy.

Every error that a user can cause is a `NavsenseError`. The command line prints it on one line and exits with code 2.
Each layer has its own class, so a caller can distinguish an invalid world from a full disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Where:
    """A place in a file. `line` counts from 1; 0 is the file itself.

    >>> try:
    ...     ns.load(Path("missing.sdf"))
    ... except ns.NavsenseError as error:
    ...     print(error.where)
    missing.sdf
    """

    path: str
    line: int = 0

    def __str__(self) -> str:
        """Return `path:line`, or `path` for line 0."""
        return f"{self.path}:{self.line}" if self.line else self.path


def show(value: object) -> str:
    """Return a value as text on one line, truncated to 80 characters.

    >>> from navsense.core.errors import show
    >>> show("x" * 200)[-10:]
    'xxxxxxx...'
    """
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


Converted = TypeVar("Converted", bound=NavsenseError)


def convert_error(error: NavsenseError, kind: type[Converted], where: Where | None = None) -> Converted:
    """Return an error of another class with the same parts, at a place if it has none.

    >>> from navsense.core.errors import MotionError, RecordingError, Where, convert_error
    >>> print(convert_error(RecordingError("port", 0, allowed="must be from 1"), MotionError, Where("gz://")))
    gz://: port: 0; must be from 1
    """
    place = error.where or where
    return kind(error.what, error.value, allowed=error.allowed, where=place, remedy=error.remedy, field=error.field)


class SdfError(NavsenseError):
    """A world file that cannot be read or is invalid.

    `problems` are all problems in the file. This error is the first.

    >>> text = '<sdf version="1.9"><model name="m"><navsense:motio/><link name="l"/></model></sdf>'
    >>> _ = Path("broken.sdf").write_text(text)
    >>> try:
    ...     ns.load("broken.sdf")
    ... except ns.NavsenseError as error:
    ...     print(error)
    broken.sdf:1: <model><navsense:motio>; is not allowed here; did you mean navsense:motion?
    """

    problems: Sequence[NavsenseError] = ()


class FieldError(NavsenseError):
    """An invalid origin, field, atmosphere or signal, or a position or time outside its range.

    `row` is the index of the position or time in an array; `quantity` is `what` without it.

    >>> try:
    ...     ns.environment.Signal((0.0, 1.0), (1.0,))
    ... except ns.NavsenseError as error:
    ...     print(error)
    numbers of times and values: 2 and 1; must be the same, and not 0
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
    """An invalid trajectory or motion log, or a time outside it.

    >>> track = ns.motion.waypoints([0.0, 10.0], [ns.Pose(), ns.Pose((10.0, 0.0, 0.0))])
    >>> try:
    ...     track.at(np.array([11.0]))
    ... except ns.NavsenseError as error:
    ...     print(error)
    instant 0 (s): 11.0; must be from 0 to 10.0 s, the end of the motion; shorten the run or give a longer motion
    """


class SensorError(NavsenseError):
    """An invalid sensor, noise or registration of a sensor type.

    >>> try:
    ...     ns.sensors.Output("speed", -1, "m/s")
    ... except ns.NavsenseError as error:
    ...     print(error)
    axes of the array speed: -1; must be >= 0
    """


class MissingDeviationError(SensorError):
    """A catalogue part without a source for the standard deviation of a measurement.

    >>> try:
    ...     ns.sensors.Dvl.from_part("a50")
    ... except ns.NavsenseError as error:
    ...     print(error.remedy)
    write Dvl.from_part("a50", stddev=...)
    """


class ClockError(NavsenseError):
    """An invalid clock or stamp.

    >>> try:
    ...     ns.clock.get_oscillator("quartz")
    ... except ns.NavsenseError as error:
    ...     print(error)
    grade of oscillator: quartz; must be one of RTC crystal, TCXO, precision TCXO, OCXO, rubidium, CSAC
    """


class UnknownNameError(NavsenseError, KeyError):
    """A name that a mapping does not contain: also a `KeyError`.

    >>> try:
    ...     run["imo"]
    ... except KeyError as error:
    ...     print(error)
    sensor: imo; must be one of quadrotor::base_link::imu, ...; did you mean quadrotor::base_link::imu?
    """


class SimulationError(NavsenseError):
    """Invalid arguments of a run: duration, seed, memory, names.

    >>> try:
    ...     ns.simulate(world, duration=-1.0)
    ... except ns.NavsenseError as error:
    ...     print(error)
    duration: -1.0; must be a finite number of seconds > 0
    """


class CompilerError(SimulationError):
    """Numba, which compiles the kernels, does not start: an invalid environment variable or a broken installation."""


class RecordingError(NavsenseError):
    """A recording that cannot be written or read. `rescue` is the command that recovers the written part, if any.

    >>> try:
    ...     ns.open("quadrotor.sdf")
    ... except ns.NavsenseError as error:
    ...     print(error)
    quadrotor.sdf: no recording has this suffix: .sdf; known are ...; to read a world: navsense describe quadrotor.sdf
    """

    rescue: str = ""

    def __str__(self) -> str:
        """Join the parts on one line."""
        return "; ".join(part for part in (super().__str__(), self.rescue) if part)


class DamagedError(Exception):
    """Invalid content of a recording. Not a `NavsenseError`: `open_messages` adds the path and the remedy."""


def describe_damage(error: Exception) -> str:
    """Return the text of an error without "damaged: ", for an error that already says so."""
    return str(error).removeprefix("damaged: ")


class AnalysisError(NavsenseError):
    """Data that cannot be analysed: shape, gaps, length, or an invalid argument.

    >>> try:
    ...     ns.analysis.allan.oadev(np.zeros(1), rate=100.0)
    ... except ns.NavsenseError as error:
    ...     print(error)
    values: 2 phase values; must be at least 3
    """


class FactorError(NavsenseError, ValueError):
    """An invalid factor, or invalid values for it: also a `ValueError`.

    >>> try:
    ...     ns.factors.direction(0.05, 1.1, frame="XYZ")
    ... except ns.NavsenseError as error:
    ...     print(error)
    frame: XYZ; must be "NED" or "ENU"
    """


class CalibrationError(NavsenseError):
    """Measurements that do not allow a calibration: too few, too similar, or in another unit.

    >>> try:
    ...     ns.calibration.ellipsoid(1e6 * field)  # µT, but the unit is tesla
    ... except ns.calibration.CalibrationError as error:
    ...     print(error.remedy)
    the numbers look like uT: give unit="uT"
    """
