"""The earth's field as the factors want it: declination and inclination to a direction and back, by place and date.

    NED   d = (cos I cos D, cos I sin D, sin I)         D east of north, I below the horizontal
    ENU   d = (cos I sin D, cos I cos D, -sin I)
    D = atan2(east, north),   I = atan2(down, sqrt(north^2 + east^2))

Angles in rad. D is 0 where the field is vertical and has none. The direction and the factors' rotations R_nb must be of
one and the same navigation frame. Source of D, I and the field itself: NOAA's World Magnetic Model (`environment`).
"""

from __future__ import annotations

import datetime as dt
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.environment.magnetic import field_ned
from navsense.errors import FactorError, FieldError
from navsense.factors._rows import numbers
from navsense.factors.arguments import number
from navsense.typing import FloatArray

_ORDER = {"NED": ((0, 1, 2), 1.0), "ENU": ((1, 0, 2), -1.0)}
"""Where north, east and down stand in a vector of the frame, and the sign of its third part against down."""


class LocalField(NamedTuple):
    """The field at a place: strength T, unit direction (3,) in `frame`, declination and inclination rad."""

    strength: float
    direction: FloatArray
    declination: float
    inclination: float
    frame: str

    @property
    def field(self) -> FloatArray:
        """Return the field (3,) T in the navigation frame."""
        return self.strength * self.direction


def direction(declination: ArrayLike, inclination: ArrayLike, frame: str = "NED") -> FloatArray:
    """Return unit directions (..., 3) of the field in `frame`, "NED" or "ENU", from angles (...) rad.

    Raises `FactorError` for another frame, angles that are not finite, |D| > pi and |I| > pi/2.
    """
    order, sign = _order(frame)
    east_of_north = _angle("declination (rad)", declination, math.pi, "pi")
    below = _angle("inclination (rad)", inclination, math.pi / 2.0, "pi/2")
    level = np.cos(below)
    parts = np.broadcast_arrays(level * np.cos(east_of_north), level * np.sin(east_of_north), sign * np.sin(below))
    return np.stack([parts[i] for i in order], axis=-1)


def declination_inclination(field: ArrayLike, frame: str = "NED") -> tuple[FloatArray, FloatArray]:
    """Return declination and inclination (...) rad of fields or directions (..., 3) of any length, in `frame`.

    Raises `FactorError` for another frame and for vectors that are zero or not finite.
    """
    order, sign = _order(frame)
    vectors = numbers("field", field)
    if vectors.shape[-1:] != (3,):
        raise FactorError("shape of field", vectors.shape, allowed="must be (3,) or (..., 3)")
    if not (np.isfinite(vectors).all() and vectors.any(axis=-1).all()):
        raise FactorError("field", vectors.tolist(), allowed="must be finite and not zero: it gives a direction")
    vectors = vectors + 0.0  # no zero has a sign, which would turn a vertical field's declination about
    north, east, down = vectors[..., order[0]], vectors[..., order[1]], sign * vectors[..., 2]
    return np.arctan2(east, north), np.arctan2(down, np.hypot(north, east))


def local_field(
    latitude: float,
    longitude: float,
    altitude: float,
    date: float | dt.date,
    frame: str = "NED",
    model: str = "WMM2025",
) -> LocalField:
    """Return the field of the World Magnetic Model at a place (rad, rad, m above the WGS-84 ellipsoid) and date.

    `date` is a decimal year or a day. Raises `FieldError` for an unknown model, a date that it does not hold at and
    what is no place, `FactorError` for another frame than "NED" and "ENU" and for what is no finite number.
    """
    order, sign = _order(frame)
    year = decimal_year(date) if isinstance(date, dt.date) else number("date (decimal year)", date)
    names = ("latitude (rad)", "longitude (rad)", "altitude (m)")
    place = [np.array([number(*each)]) for each in zip(names, (latitude, longitude, altitude), strict=True)]
    try:
        ned = field_ned(place[0], place[1], place[2], year, model)[0]
    except FieldError as error:
        raise FieldError(
            error.quantity, error.value, allowed=error.allowed, remedy=error.remedy or "give rad, rad and m"
        ) from None
    if abs(place[1][0]) > 2.0 * math.pi:
        allowed = "must be from -2 pi to 2 pi"
        raise FieldError(names[1], longitude, allowed=allowed, remedy="give radians: math.radians(degrees)")
    strength = math.sqrt(float(ned[0] ** 2 + ned[1] ** 2 + ned[2] ** 2))
    unit = np.array([ned[order[0]], ned[order[1]], sign * ned[2]]) / strength
    declination, inclination = declination_inclination(unit, frame)
    return LocalField(strength, unit, float(declination), float(inclination), frame)


def decimal_year(day: dt.date) -> float:
    """Return the decimal year of a day's beginning."""
    length = (dt.date(day.year + 1, 1, 1) - dt.date(day.year, 1, 1)).days
    return day.year + (day.timetuple().tm_yday - 1) / length


def _order(frame: str) -> tuple[tuple[int, int, int], float]:
    """Return a frame's order of axes and sign."""
    if not isinstance(frame, str) or frame not in _ORDER:
        raise FactorError("frame", frame, allowed='must be "NED" or "ENU"')
    return _ORDER[frame]


def _angle(name: str, value: ArrayLike, limit: float, text: str) -> FloatArray:
    """Return angles that are finite and within a limit."""
    angle = numbers(name, value)
    if not np.all(np.abs(angle) <= limit):
        allowed = f"must be from -{text} to {text}"
        raise FactorError(name, angle.tolist(), allowed=allowed, remedy="give radians: math.radians(degrees)")
    return angle
