"""Tidal currents: harmonic constituents, tide tables, ellipses.

    c(t) = c_0 + sum f a cos(theta),   theta = speed t + V0 + u - g            flow along the channel, flood positive
    v = c towards the flood where c > 0, -c towards the ebb where c < 0
    v = v_0 + sum f (major cos(theta) e + minor sin(theta) e')                 ellipses, e' 90 degrees left of e

t is the time since the start of the run. g is the phase lag at Greenwich. V0 + u and f are the equilibrium argument and
the nodal factor at `start`. Without `greenwich`, f = 1 and V0 + u = 0. The sum is computed at nodes 64 s apart and
is cubic between nodes. The error is at most 2e-9 of the amplitudes for M6 and slower constituents.

In a tide table, the flow is a quarter of a sine between slack water (0) and a maximum. Between two maxima without slack
water between them it is half a cosine. A time outside the table raises `FieldError`. A direction is the one that the
water flows to (rad from north towards east).

**Astronomy**. V0 at the start of the run is a sum of multiples of T, s, h and p, and of a constant. T is 15 degrees per
hour since midnight. s, h and p are the mean longitudes of the moon, the sun and the lunar perigee. f and u depend on
the longitude N of the moon's node. I is the inclination of the orbit to the equator, xi and nu are the longitudes of
their intersection:

    speed = 15 n_T + rates of s, h, p
    cos I = 0.913694997 - 0.035692561 cos N,   tan a = 1.01883 tan(N/2),   tan b = 0.64412 tan(N/2)
    nu = a - b,   xi = N - a - b
    tan nu' = sin 2I sin nu / (sin 2I cos nu + 0.3347),   tan 2nu'' = sin^2 I sin 2nu / (sin^2 I cos 2nu + 0.0727)

f and u change over 18.6 years and are constant during a run. M4 and M6 have the second and third power of the f of M2,
and two and three times its u.

Sources: Schureman 1958, Manual of Harmonic Analysis and Prediction of Tides, pp. 156-166, tables 2 and 11; Meeus 1998,
Astronomical Algorithms, ch. 22 and 47, for the longitudes; NOAA's annual tables of currents.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind
from navsense.core.intervals import find_interval
from navsense.core.kernels import kernel
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Quaternion, Times, Vector, Vectors
from navsense.core.units import KNOT
from navsense.core.validation import check_number
from navsense.environment.current.base import (
    MAX_COORDINATE,
    check_coordinate,
    check_speed,
    make_read_only_array,
    rotate_heading,
    to_world_axes,
)
from navsense.environment.tables import TableRow, add_lines_to_errors, parse_number, read_rows

NODE_SPACING = 64.0
"""Time between the nodes of a harmonic sum (s)."""

MAX_GAP = 25.0 * 3600.0
"""Largest time between rows of a tide table (s), about a lunar day."""

_SPEED_TOLERANCE = 1e-3
_FILE_KIND = FileKind("tide table", FieldError, "must be a CSV file of date and time, event and speed in UTF-8")
_UNITS = {"cm/sec": 0.01, "cm/s": 0.01, "m/s": 1.0, "knots": KNOT}
_SIGNS = {"flood": 1.0, "ebb": -1.0, "slack": 0.0}


CENTURY = 36525.0 * 86400.0
"""Julian century (s)."""

_J2000 = datetime(2000, 1, 1, 12, tzinfo=UTC)

MOON = (218.3164477, 481267.88123421, -0.0015786, 1.0 / 538841.0, -1.0 / 65194000.0)
ELONGATION = (297.8501921, 445267.1114034, -0.0018819, 1.0 / 545868.0, -1.0 / 113065000.0)
PERIGEE = (83.3532465, 4069.0137287, -0.0103200, -1.0 / 80053.0, 1.0 / 18999000.0)
NODE = (125.04452, -1934.136261, 0.0020708, 1.0 / 450000.0)
"""Coefficients (degrees) of powers of Julian centuries since 2000 January 1.5."""


def to_utc(when: datetime) -> datetime:
    """Return a date and time in UTC. Without a time zone it is UTC already."""
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _evaluate_polynomial(coefficients: tuple[float, ...], t: float) -> float:
    total = 0.0
    for coefficient in reversed(coefficients):
        total = total * t + coefficient
    return total


@dataclass(frozen=True)
class LunarNode:
    """Angles (rad) that depend on the moon's node: inclination, xi, nu, nu_1 (nu') and nu_2 (2 nu'')."""

    inclination: float
    xi: float
    nu: float
    nu_1: float
    nu_2: float


def compute_node(longitude: float) -> LunarNode:
    """Return the angles for the longitude N (rad) of the moon's node."""
    half = math.remainder(longitude, 2.0 * math.pi) / 2.0
    inclination = math.acos(0.913694997 - 0.035692561 * math.cos(longitude))
    a = math.atan2(1.01883 * math.sin(half), math.cos(half))
    b = math.atan2(0.64412 * math.sin(half), math.cos(half))
    nu, xi = a - b, 2.0 * half - a - b
    double, square = math.sin(2.0 * inclination), math.sin(inclination) ** 2
    nu_1 = math.atan2(double * math.sin(nu), double * math.cos(nu) + 0.3347)
    nu_2 = math.atan2(square * math.sin(2.0 * nu), square * math.cos(2.0 * nu) + 0.0727)
    return LunarNode(inclination, xi, nu, nu_1, nu_2)


_FactorAngle = Callable[[LunarNode], tuple[float, float]]


def _no_correction(_: LunarNode) -> tuple[float, float]:
    return 1.0, 0.0


def _m2(node: LunarNode) -> tuple[float, float]:
    return math.cos(0.5 * node.inclination) ** 4 / 0.9154, 2.0 * (node.xi - node.nu)


def _o1(node: LunarNode) -> tuple[float, float]:
    factor = math.sin(node.inclination) * math.cos(0.5 * node.inclination) ** 2 / 0.38
    return factor, 2.0 * node.xi - node.nu


def _k1(node: LunarNode) -> tuple[float, float]:
    double = math.sin(2.0 * node.inclination)
    return math.sqrt(0.8965 * double**2 + 0.6001 * double * math.cos(node.nu) + 0.1006), -node.nu_1


def _k2(node: LunarNode) -> tuple[float, float]:
    square = math.sin(node.inclination) ** 2
    return math.sqrt(19.0444 * square**2 + 2.7702 * square * math.cos(2.0 * node.nu) + 0.0981), -node.nu_2


def _mf(node: LunarNode) -> tuple[float, float]:
    return math.sin(node.inclination) ** 2 / 0.1578, -2.0 * node.xi


def _mm(node: LunarNode) -> tuple[float, float]:
    return (2.0 / 3.0 - math.sin(node.inclination) ** 2) / 0.5021, 0.0


_CONSTITUENTS: dict[str, tuple[int, int, int, int, float, _FactorAngle, int]] = {
    "M2": (2, -2, 2, 0, 0.0, _m2, 1),
    "S2": (2, 0, 0, 0, 0.0, _no_correction, 1),
    "N2": (2, -3, 2, 1, 0.0, _m2, 1),
    "2N2": (2, -4, 2, 2, 0.0, _m2, 1),
    "K2": (2, 0, 2, 0, 0.0, _k2, 1),
    "K1": (1, 0, 1, 0, 90.0, _k1, 1),
    "O1": (1, -2, 1, 0, -90.0, _o1, 1),
    "P1": (1, 0, -1, 0, -90.0, _no_correction, 1),
    "Q1": (1, -3, 1, 1, -90.0, _o1, 1),
    "M4": (4, -4, 4, 0, 0.0, _m2, 2),
    "M6": (6, -6, 6, 0, 0.0, _m2, 3),
    "MS4": (4, -2, 2, 0, 0.0, _m2, 1),
    "Mf": (0, 2, 0, 0, 0.0, _mf, 1),
    "Mm": (0, 1, 0, -1, 0.0, _mm, 1),
}
"""Multiples of T, s, h and p, constant (degrees), the function that returns f and u, and the power of f."""

CONSTITUENT_NAMES = tuple(_CONSTITUENTS)


def compute_constituent_speed(name: str) -> float:
    """Return the speed (rad/s) of one of `CONSTITUENT_NAMES`."""
    t, s, h, p, *_ = _CONSTITUENTS[name]
    moon, sun = MOON[1] / CENTURY, (MOON[1] - ELONGATION[1]) / CENTURY
    return math.radians(t * 15.0 / 3600.0 + s * moon + h * sun + p * PERIGEE[1] / CENTURY)


def compute_factor_and_argument(name: str, start: datetime) -> tuple[float, float]:
    """Return f and V0 + u (rad) of one of `CONSTITUENT_NAMES` at a date and time."""
    when = to_utc(start)
    century = (when - _J2000) / timedelta(seconds=CENTURY)
    moon, perigee = _evaluate_polynomial(MOON, century), _evaluate_polynomial(PERIGEE, century)
    sun = moon - _evaluate_polynomial(ELONGATION, century)
    midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = (when - midnight) / timedelta(hours=1)
    t, s, h, p, constant, compute_nodal, power = _CONSTITUENTS[name]
    degrees = math.fmod(t * 15.0 * hours + s * moon + h * sun + p * perigee + constant, 360.0)
    factor, angle = compute_nodal(compute_node(math.radians(_evaluate_polynomial(NODE, century))))
    return factor**power, math.radians(degrees) + power * angle


@kernel
def _evaluate_node(t: float, speeds: FloatArray, terms: FloatArray, k: int) -> tuple[float, float]:
    """Return component k of the sum at t (s) and its derivative times `NODE_SPACING`."""
    value, slope = 0.0, 0.0
    for j in range(speeds.shape[0]):
        angle = speeds[j] * t
        c, s = math.cos(angle), math.sin(angle)
        value += terms[j, k] * c + terms[j, 2 + k] * s
        slope += speeds[j] * NODE_SPACING * (terms[j, 2 + k] * c - terms[j, k] * s)
    return value, slope


@kernel
def _write_sums(time: Times, speeds: FloatArray, terms: FloatArray, offset: FloatArray, out: FloatArray) -> int:
    """Write the sums (n, k), cubic between nodes; return the first row with an invalid time, or -1.

    terms (j, 4): factors of the cosine and the sine, two components each.
    offset (k,): added to the sums.
    """
    last_node = -1.5
    y0, d0, y1, d1 = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    for i in range(time.shape[0]):
        t = time[i]
        if not abs(t) <= MAX_COORDINATE:
            return i
        position = t / NODE_SPACING
        node = math.floor(position)
        if node != last_node:
            last_node = float(node)
            for k in range(out.shape[1]):
                y0[k], d0[k] = _evaluate_node(NODE_SPACING * last_node, speeds, terms, k)
                y1[k], d1[k] = _evaluate_node(NODE_SPACING * (last_node + 1.0), speeds, terms, k)
        s = position - node
        r = 1.0 - s
        for k in range(out.shape[1]):
            values = r * r * (1.0 + 2.0 * s) * y0[k] + s * s * (1.0 + 2.0 * r) * y1[k]
            out[i, k] = offset[k] + values + s * r * (r * d0[k] - s * d1[k])
    return -1


@kernel
def _interpolate_events(time: Times, times: FloatArray, flows: FloatArray, out: FloatArray) -> int:
    """Write the flow (n, 1); return the first row outside the table, or -1."""
    near, last = 0, times.shape[0] - 1
    for i in range(time.shape[0]):
        t = time[i]
        if not times[0] <= t <= times[last]:
            return i
        near = find_interval(times, t, near)
        s = (t - times[near]) / (times[near + 1] - times[near])
        a, b = flows[near], flows[near + 1]
        if a == 0.0:
            out[i, 0] = b * math.sin(0.5 * math.pi * s)
        elif b == 0.0:
            out[i, 0] = a * math.cos(0.5 * math.pi * s)
        else:
            out[i, 0] = 0.5 * (a + b) + 0.5 * (a - b) * math.cos(math.pi * s)
    return -1


@kernel
def _write_velocity(flow: FloatArray, directions: Vectors, out: Vectors) -> None:
    """Write the velocity (n, 3): |flow| (n, 1) along directions[0] for flood (positive) and directions[1] for ebb."""
    for i in range(out.shape[0]):
        speed, row = flow[i, 0], 0
        if speed < 0.0:
            speed, row = -speed, 1
        for axis in range(3):
            out[i, axis] = speed * directions[row, axis]


@dataclass(frozen=True)
class TidalConstituent:
    """One harmonic constituent.

    name: one of `CONSTITUENT_NAMES` if `greenwich`, any name otherwise.
    amplitude: m/s.
    phase: rad. With `greenwich`, the lag at Greenwich. Otherwise a cos(speed t - phase) from the start of the run.
    speed: rad/s, None for the speed of the named constituent.

    Raises `FieldError` for an unknown name without a speed, and for a speed that differs from the constituent's.

    >>> m2 = ns.environment.current.TidalConstituent.from_degrees("M2", amplitude=0.8, phase=45.0)
    >>> m2.amplitude, round(m2.phase, 4)
    (0.8, 0.7854)
    """

    name: str
    amplitude: float
    phase: float
    speed: float | None = None
    greenwich: bool = True

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_speed(f"amplitude of {self.name} (m/s)", self.amplitude)
        check_number(f"phase of {self.name} (rad)", self.phase, -1e3, 1e3, error=FieldError)
        known = self.name in CONSTITUENT_NAMES
        if not known and (self.greenwich or self.speed is None):
            allowed = f"must be one of {', '.join(CONSTITUENT_NAMES)}"
            remedy = "give its speed and greenwich=False, with the phase at the start of the run"
            raise FieldError("tidal constituent", self.name, allowed=allowed, remedy=remedy)
        if self.speed is None:
            return
        check_number(f"speed of {self.name} (rad/s)", self.speed, 0.0, 1e-2, error=FieldError)
        expected = compute_constituent_speed(self.name) if known else self.speed
        if known and not abs(self.speed / expected - 1.0) < _SPEED_TOLERANCE:
            allowed = f"must be {expected:.9g}, {math.degrees(expected) * 3600.0:.7f} deg/h"
            remedy = "check the unit, or omit the speed"
            raise FieldError(f"speed of {self.name} (rad/s)", self.speed, allowed=allowed, remedy=remedy)

    @classmethod
    def from_degrees(
        cls, name: str, amplitude: float, phase: float, speed: float | None = None, *, greenwich: bool = True
    ) -> TidalConstituent:
        """Return a constituent from its phase in degrees and its speed in degrees per hour."""
        rate = None if speed is None else math.radians(speed) / 3600.0
        return cls(name, amplitude, math.radians(phase), rate, greenwich)

    def compute_wave(self, start: datetime) -> tuple[float, float, float]:
        """Return f times the amplitude (m/s), the speed (rad/s) and the angle at the start of the run (rad)."""
        rate = compute_constituent_speed(self.name) if self.speed is None else self.speed
        factor, argument = compute_factor_and_argument(self.name, start) if self.greenwich else (1.0, 0.0)
        return factor * self.amplitude, rate, argument - self.phase


def _check_constituents(constituents: Sequence[TidalConstituent]) -> None:
    names = [constituent.name for constituent in constituents]
    for name in names:
        if names.count(name) > 1:
            raise FieldError("tidal constituent", name, allowed="must be given once")
    if not names:
        raise FieldError("tidal constituents", "none", allowed="must have at least one")


def _make_instant_error(time: Times, row: int) -> FieldError:
    allowed = f"must be finite and at most {MAX_COORDINATE:g} s"
    return FieldError("instant (s)", float(time[row]), row=row, allowed=allowed)


@dataclass(frozen=True)
class HarmonicFlow:
    """The flow of harmonic constituents.

    start: date and time of the start of the run, UTC without a time zone.
    mean: m/s.

    Raises `FieldError` without a constituent, and for a duplicate constituent.

    >>> from datetime import datetime
    >>> current = ns.environment.current
    >>> m2 = current.TidalConstituent.from_degrees("M2", amplitude=0.8, phase=0.0, greenwich=False)
    >>> flow = current.HarmonicFlow((m2,), datetime(2026, 6, 1))
    >>> flow.at(np.array([0.0, 12.42 * 3600 / 2])).round(3)  # m/s, half a period apart
    array([[ 0.8],
           [-0.8]])
    """

    constituents: tuple[TidalConstituent, ...]
    start: datetime
    mean: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_constituents(self.constituents)
        check_speed("mean of a tidal flow (m/s)", self.mean)

    @cached_property
    def _terms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        waves = [constituent.compute_wave(self.start) for constituent in self.constituents]
        terms = np.array([(a * math.cos(angle), 0.0, -a * math.sin(angle), 0.0) for a, _, angle in waves])
        return make_read_only_array(rate for _, rate, _ in waves), terms, np.array([self.mean])

    def at(self, time: Times) -> FloatArray:
        """Return the flow (n, 1) m/s. Raises `FieldError` for an instant that is not finite."""
        out = np.empty((time.shape[0], 1))
        row = _write_sums(time, *self._terms, out)
        if row >= 0:
            raise _make_instant_error(time, row)
        return out


@dataclass(frozen=True, eq=False)
class TideTable:
    """The flow of a tide table.

    times: s from the start of the run; flows: m/s, flood positive, 0 for slack water.
    start: date and time of the start of the run, UTC without a time zone.

    Raises `FieldError` for rows out of order, gaps longer than `MAX_GAP` and two slacks without a maximum between them.
    The run must start within the table.

    >>> from datetime import datetime
    >>> hours = 3600.0 * np.array([0.0, 3.0, 6.0, 9.0, 12.0])
    >>> flows = np.array([0.0, 0.8, 0.0, -0.6, 0.0])
    >>> table = ns.environment.current.TideTable(hours, flows, datetime(2026, 6, 1))
    >>> table.at(np.array([3 * 3600.0, 9 * 3600.0]))
    array([[ 0.8],
           [-0.6]])
    """

    times: FloatArray
    flows: FloatArray
    start: datetime

    def __post_init__(self) -> None:
        """Check the values."""
        times, flows = self.times, self.flows
        if times.shape != flows.shape or times.ndim != 1 or times.shape[0] < 2:
            shapes = f"{times.shape} and {flows.shape}"
            raise FieldError("times and flows of a tide table", shapes, allowed="must be of one length, 2 at least")
        for row in range(times.shape[0]):
            check_speed("speed in the tide table (m/s)", float(flows[row]), row)
            gap = float(times[row] - times[row - 1]) if row else 1.0
            if not gap > 0.0:
                value, remedy = "not after that of the row before", "sort the rows by time"
                raise FieldError("time in the tide table", value, row=row, remedy=remedy)
            if gap > MAX_GAP:
                allowed = f"must be at most {MAX_GAP / 3600.0:g} h after the row before"
                raise FieldError("gap in the tide table (h)", gap / 3600.0, row=row, allowed=allowed)
            if row and flows[row] == 0.0 and flows[row - 1] == 0.0:
                allowed = "must have a flood or ebb between them"
                raise FieldError("slack in the tide table", "twice", row=row, allowed=allowed)
        if not times[0] <= 0.0 <= times[-1]:
            raise self._make_outside_error(0.0, None)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], start: datetime) -> TideTable:
        """Read NOAA's annual CSV of a current station: date and time (GMT), event, speed in the unit of the header.

        `start` is the date and time of the start of the run, UTC without a time zone. Raises `FieldError` with file and
        line for an unreadable file, another time zone or unit, a speed with the wrong sign, and invalid rows.
        """
        name = os.fspath(path)
        header, *rows = read_rows(name, _FILE_KIND)
        unit = _parse_unit(header, Where(name, header[0]))
        begin, times, flows = to_utc(start), [], []
        for line, cells in rows:
            when, flow = _parse_event(cells, unit, Where(name, line))
            times.append((when - begin).total_seconds())
            flows.append(flow)
        with add_lines_to_errors(name, [line for line, _ in rows]):
            return cls(make_read_only_array(times), make_read_only_array(flows), start)

    def at(self, time: Times) -> FloatArray:
        """Return the flow (n, 1) m/s. Raises `FieldError` for an instant outside the table."""
        out = np.empty((time.shape[0], 1))
        row = _interpolate_events(time, self.times, self.flows, out)
        if row >= 0:
            raise self._make_outside_error(float(time[row]), row)
        return out

    def _make_outside_error(self, instant: float, row: int | None) -> FieldError:
        """Return the error of an instant (s) outside the table."""
        begin = to_utc(self.start)
        first, last = (begin + timedelta(seconds=float(end)) for end in (self.times[0], self.times[-1]))
        is_date = abs(instant) < MAX_COORDINATE
        when = f"{begin + timedelta(seconds=instant):%Y-%m-%d %H:%M:%S}" if is_date else instant
        allowed = f"must be from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, the span of the table"
        remedy = "start the run within the table, or use the table of that year"
        return FieldError("instant in the tide table", when, row=row, allowed=allowed, remedy=remedy)


TidalFlow = HarmonicFlow | TideTable
"""A flow along a channel, positive for flood."""


def _parse_unit(header: TableRow, where: Where) -> float:
    """Return the header's unit in m/s. Raises `FieldError` for another header, time zone or unit."""
    cells = [cell.lower() for cell in header[1]]
    names = [cell.partition("(")[0].strip() for cell in cells]
    units = [cell.partition("(")[2].rstrip(") ").strip() for cell in cells]
    if len(cells) != 3 or not names[0].startswith("date") or names[1] != "event" or not names[2].startswith("speed"):
        allowed = "must be Date_Time (GMT), Event, Speed (unit)"
        raise FieldError("header of the tide table", ", ".join(header[1]), allowed=allowed, where=where)
    if units[0] not in ("gmt", "utc"):
        what, value, remedy = "zone of the tide table", units[0] or "none", "download the table in GMT"
        raise FieldError(what, value, allowed="must be GMT", where=where, remedy=remedy)
    if units[2] not in _UNITS:
        allowed = f"must be one of {', '.join(_UNITS)}"
        raise FieldError("unit of the tide table", units[2] or "none", allowed=allowed, where=where)
    return _UNITS[units[2]]


def _parse_event(cells: list[str], unit: float, where: Where) -> tuple[datetime, float]:
    """Return the date and time and the flow (m/s) of a row. Raises `FieldError`."""
    if len(cells) != 3:
        raise FieldError("number of columns", len(cells), allowed="must be 3: date and time, event, speed", where=where)
    try:
        when = to_utc(datetime.strptime(cells[0], "%Y-%m-%d %H:%M"))  # noqa: DTZ007
    except ValueError as cause:
        allowed = "must be a date and time, YYYY-MM-DD HH:MM"
        raise FieldError("time in the tide table", cells[0] or "empty", allowed=allowed, where=where) from cause
    event = cells[1].lower()
    if event not in _SIGNS:
        raise FieldError("event in the tide table", cells[1], allowed="must be flood, ebb or slack", where=where)
    if event == "slack":
        return when, 0.0
    speed = parse_number(f"speed of the {event}", cells[2], where)
    if speed * _SIGNS[event] <= 0.0:
        allowed = "must be positive for a flood, negative for an ebb"
        raise FieldError(f"speed of the {event}", cells[2], allowed=allowed, where=where)
    return when, unit * speed


def _make_direction_vector(direction: float) -> Vector:
    return (math.sin(direction), math.cos(direction), 0.0)


@dataclass(frozen=True)
class TidalCurrent:
    """A tidal flow along a channel.

    flow: m/s.
    flood_direction, ebb_direction: rad from north towards east. None: the ebb is opposite to the flood.
    heading: angle from east to the world's x axis (rad).

    Raises `FieldError` for directions of flood and ebb less than 90 degrees apart.

    >>> from datetime import datetime
    >>> current = ns.environment.current
    >>> m2 = current.TidalConstituent.from_degrees("M2", amplitude=0.8, phase=0.0, greenwich=False)
    >>> flow = current.HarmonicFlow((m2,), datetime(2026, 6, 1))
    >>> channel = current.TidalCurrent(flow, flood_direction=np.radians(90.0))
    >>> channel.at(np.zeros((1, 3)), np.zeros(1)).round(3)  # m/s, the flood is to the east
    array([[0.8, 0. , 0. ]])
    """

    flow: TidalFlow
    flood_direction: float
    ebb_direction: float | None = None
    heading: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_coordinate("direction of the flood (rad)", self.flood_direction)
        check_coordinate("direction of the ebb (rad)", self._ebb)
        check_coordinate("heading of a current (rad)", self.heading)
        if math.cos(self._ebb - self.flood_direction) > 0.0:
            apart = math.degrees(abs(math.remainder(self._ebb - self.flood_direction, 2.0 * math.pi)))
            allowed = "must be at least 90: both are directions the water flows to"
            raise FieldError("angle between flood and ebb (deg)", apart, allowed=allowed)

    @property
    def _ebb(self) -> float:
        return self.flood_direction + math.pi if self.ebb_direction is None else self.ebb_direction

    @cached_property
    def _directions(self) -> Vectors:
        flood = _make_direction_vector(self.flood_direction)
        ebb = (-flood[0], -flood[1], 0.0) if self.ebb_direction is None else _make_direction_vector(self._ebb)
        return to_world_axes((flood, ebb), self.heading)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` as `flow` does."""
        out = np.empty((time.shape[0], 3))
        _write_velocity(self.flow.at(time), self._directions, out)
        return out

    def rotate(self, rotation: Quaternion) -> TidalCurrent:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))


@dataclass(frozen=True)
class TidalEllipse:
    """One constituent as an ellipse.

    major: the constituent along the major axis.
    minor: minor axis (m/s), positive for counter-clockwise rotation.
    direction: direction of the flow at the maximum of the constituent (rad from north towards east).

    Raises `FieldError` for a minor axis longer than the major axis.

    >>> current = ns.environment.current
    >>> m2 = current.TidalConstituent.from_degrees("M2", amplitude=0.8, phase=0.0)
    >>> ellipse = current.TidalEllipse(m2, minor=0.2, direction=np.radians(30.0))  # counter-clockwise
    """

    major: TidalConstituent
    minor: float
    direction: float

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        check_speed(f"minor axis of {self.major.name} (m/s)", self.minor)
        check_coordinate(f"direction of {self.major.name} (rad)", self.direction)
        if abs(self.minor) > abs(self.major.amplitude):
            allowed = f"must be at most the major axis, {self.major.amplitude:g}"
            raise FieldError(f"minor axis of {self.major.name} (m/s)", self.minor, allowed=allowed)


@dataclass(frozen=True)
class TidalEllipses:
    """The sum of tidal ellipses.

    start: date and time of the start of the run, UTC without a time zone.
    mean: mean velocity east, north, up (m/s).
    heading: angle from east to the world's x axis (rad).

    Raises `FieldError` without an ellipse, and for a duplicate constituent.

    >>> from datetime import datetime
    >>> current = ns.environment.current
    >>> m2 = current.TidalConstituent.from_degrees("M2", amplitude=0.8, phase=0.0, greenwich=False)
    >>> ellipse = current.TidalEllipse(m2, minor=0.2, direction=np.radians(90.0))
    >>> tide = current.TidalEllipses((ellipse,), datetime(2026, 6, 1))
    >>> quarter = 12.42 * 3600 / 4
    >>> tide.at(np.zeros((2, 3)), np.array([0.0, quarter])).round(3)  # m/s, along the major and the minor axis
    array([[0.8, 0. , 0. ],
           [0. , 0.2, 0. ]])
    """

    ellipses: tuple[TidalEllipse, ...]
    start: datetime
    mean: Vector = (0.0, 0.0, 0.0)
    heading: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the values."""
        _check_constituents([ellipse.major for ellipse in self.ellipses])
        for component in self.mean:
            check_speed("mean of a tidal current (m/s)", component)
        check_coordinate("heading of a current (rad)", self.heading)

    @cached_property
    def _terms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        speeds, cosines, sines = [], [], []
        for ellipse in self.ellipses:
            major, rate, angle = ellipse.major.compute_wave(self.start)
            minor = ellipse.minor * (major / ellipse.major.amplitude if ellipse.major.amplitude else 1.0)
            (east, north, _), c, s = _make_direction_vector(ellipse.direction), math.cos(angle), math.sin(angle)
            cosines.append((major * c * east - minor * s * north, major * c * north + minor * s * east, 0))
            sines.append((-major * s * east - minor * c * north, minor * c * east - major * s * north, 0))
            speeds.append(rate)
        terms = [to_world_axes(vectors, self.heading)[:, :2] for vectors in (cosines, sines)]
        mean = to_world_axes((self.mean,), self.heading)[0]
        return make_read_only_array(speeds), np.concatenate(terms, axis=1), mean

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` for an instant that is not finite."""
        speeds, terms, mean = self._terms
        horizontal, out = np.empty((time.shape[0], 2)), np.empty((time.shape[0], 3))
        row = _write_sums(time, speeds, terms, mean, horizontal)
        if row >= 0:
            raise _make_instant_error(time, row)
        out[:, :2], out[:, 2] = horizontal, mean[2]
        return out

    def rotate(self, rotation: Quaternion) -> TidalEllipses:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))
