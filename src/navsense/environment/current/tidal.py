"""Tidal currents: harmonic constituents, tide tables, ellipses.

    c(t) = c_0 + sum f a cos(theta),   theta = speed t + V0 + u - g            flow along the channel, flood positive
    v = c towards the flood where c > 0, -c towards the ebb where c < 0
    v = v_0 + sum f (major cos(theta) e + minor sin(theta) e')                 ellipses, e' 90 degrees left of e

t is the time since the start of the run. g is the phase lag at Greenwich. V0 + u and f are the equilibrium argument and
the nodal factor at `start` (see `_astronomy`). Without `greenwich`, f = 1 and V0 + u = 0. The sum is computed at nodes
64 s apart and is cubic between nodes, with an error of at most 2e-9 of the amplitudes for M6 and slower constituents.

In a tide table, the flow is a quarter of a sine between slack water (0) and a maximum, and half a cosine between two
maxima without slack water between them. A time outside the table raises `FieldError`. Directions are those that the
water flows to (rad from north towards east).

Source: Schureman 1958, Manual of Harmonic Analysis and Prediction of Tides; NOAA's annual tables of currents.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind
from navsense.core.kernels import kernel
from navsense.core.typing import FloatArray, Quaternion, Times, Vector, Vectors
from navsense.core.units import KNOT
from navsense.core.validation import check_number
from navsense.environment.current._astronomy import (
    CONSTITUENT_NAMES,
    compute_factor_and_argument,
    constituent_speed,
    to_utc,
)
from navsense.environment.current.base import (
    MAX_COORDINATE,
    check_coordinate,
    check_speed,
    find_interval,
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
    """

    name: str
    amplitude: float
    phase: float
    speed: float | None = None
    greenwich: bool = True

    def __post_init__(self) -> None:
        """Check the values."""
        check_speed(f"amplitude of {self.name} (m/s)", self.amplitude)
        check_number(f"phase of {self.name} (rad)", self.phase, -1e3, 1e3, error=FieldError)
        known = self.name in CONSTITUENT_NAMES
        if not known and (self.greenwich or self.speed is None):
            raise FieldError(
                "tidal constituent",
                self.name,
                allowed=f"must be one of {', '.join(CONSTITUENT_NAMES)}",
                remedy="give its speed and greenwich=False, with the phase at the start of the run",
            )
        if self.speed is None:
            return
        check_number(f"speed of {self.name} (rad/s)", self.speed, 0.0, 1e-2, error=FieldError)
        expected = constituent_speed(self.name) if known else self.speed
        if known and not abs(self.speed / expected - 1.0) < _SPEED_TOLERANCE:
            raise FieldError(
                f"speed of {self.name} (rad/s)",
                self.speed,
                allowed=f"must be {expected:.9g}, {math.degrees(expected) * 3600.0:.7f} deg/h",
                remedy="check the unit, or omit the speed",
            )

    @classmethod
    def from_degrees(
        cls, name: str, amplitude: float, phase: float, speed: float | None = None, *, greenwich: bool = True
    ) -> TidalConstituent:
        """Return a constituent from its phase in degrees and its speed in degrees per hour."""
        rate = None if speed is None else math.radians(speed) / 3600.0
        return cls(name, amplitude, math.radians(phase), rate, greenwich)

    def compute_wave(self, start: datetime) -> tuple[float, float, float]:
        """Return f times the amplitude (m/s), the speed (rad/s) and the angle at the start of the run (rad)."""
        rate = constituent_speed(self.name) if self.speed is None else self.speed
        factor, argument = compute_factor_and_argument(self.name, start) if self.greenwich else (1.0, 0.0)
        return factor * self.amplitude, rate, argument - self.phase


def _check_constituents(constituents: Sequence[TidalConstituent]) -> None:
    names = [constituent.name for constituent in constituents]
    for name in names:
        if names.count(name) > 1:
            raise FieldError("tidal constituent", name, allowed="must be given once")
    if not names:
        raise FieldError("tidal constituents", "none", allowed="must have at least one")


def _instant_error(time: Times, row: int) -> FieldError:
    return FieldError(
        "instant (s)", float(time[row]), row=row, allowed=f"must be finite and at most {MAX_COORDINATE:g} s"
    )


@dataclass(frozen=True)
class HarmonicFlow:
    """The flow of harmonic constituents.

    start: date and time of the start of the run, UTC without a time zone.
    mean: m/s.

    Raises `FieldError` without a constituent, and for a duplicate constituent.
    """

    constituents: tuple[TidalConstituent, ...]
    start: datetime
    mean: float = 0.0

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
            raise _instant_error(time, row)
        return out


@dataclass(frozen=True, eq=False)
class TideTable:
    """The flow of a tide table.

    times: s from the start of the run; flows: m/s, flood positive, 0 for slack water.
    start: date and time of the start of the run, UTC without a time zone.

    Raises `FieldError` for rows out of order, gaps longer than `MAX_GAP`, two slacks without a maximum between them,
    and a run that starts outside the table.
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
            raise self._outside_error(0.0, None)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], start: datetime) -> TideTable:
        """Read NOAA's annual CSV of a current station: date and time (GMT), event, speed in the unit of the header.

        `start` is the date and time of the start of the run, UTC without a time zone. Raises `FieldError` with file and
        line for an unreadable file, another time zone or unit, a speed with the wrong sign, rows out of order and gaps.
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
            raise self._outside_error(float(time[row]), row)
        return out

    def _outside_error(self, instant: float, row: int | None) -> FieldError:
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
        remedy = "download the table in GMT"
        raise FieldError(
            "zone of the tide table", units[0] or "none", allowed="must be GMT", where=where, remedy=remedy
        )
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


def _direction_vector(direction: float) -> Vector:
    return (math.sin(direction), math.cos(direction), 0.0)


@dataclass(frozen=True)
class TidalCurrent:
    """A tidal flow along a channel.

    flow: m/s.
    flood_direction, ebb_direction: rad from north towards east. None: the ebb is opposite to the flood.
    heading: angle from east to the world's x axis (rad).

    Raises `FieldError` for directions of flood and ebb less than 90 degrees apart.
    """

    flow: TidalFlow
    flood_direction: float
    ebb_direction: float | None = None
    heading: float = 0.0

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
        flood = _direction_vector(self.flood_direction)
        ebb = (-flood[0], -flood[1], 0.0) if self.ebb_direction is None else _direction_vector(self._ebb)
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
    """

    major: TidalConstituent
    minor: float
    direction: float

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
    """

    ellipses: tuple[TidalEllipse, ...]
    start: datetime
    mean: Vector = (0.0, 0.0, 0.0)
    heading: float = 0.0

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
            (east, north, _), c, s = _direction_vector(ellipse.direction), math.cos(angle), math.sin(angle)
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
            raise _instant_error(time, row)
        out[:, :2], out[:, 2] = horizontal, mean[2]
        return out

    def rotate(self, rotation: Quaternion) -> TidalEllipses:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` unless about the vertical."""
        return replace(self, heading=rotate_heading(self.heading, rotation))
