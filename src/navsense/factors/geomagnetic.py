"""Direction and strength of the earth's field at a place and date, as the factors need them.

    NED   d = (cos I cos D, cos I sin D, sin I)         D east of north, I below the horizontal
    ENU   d = (cos I sin D, cos I cos D, -sin I)
    D = atan2(east, north),   I = atan2(down, sqrt(north^2 + east^2))

Angles are in rad. A vertical field has no declination; D is 0. The direction and the rotations R_nb of the factors must
have the same navigation frame. Source of the field: NOAA's World Magnetic Model (`environment`).
"""

from __future__ import annotations

import datetime as dt
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import FactorError, FieldError
from navsense.core.typing import FloatArray
from navsense.environment.magnetic import field_ned
from navsense.factors.arguments import to_floats, validate_number

_FRAMES = {"NED": ((0, 1, 2), 1.0), "ENU": ((1, 0, 2), -1.0)}
"""Frame -> positions of north, east and down in a vector, and the sign of its third component against down."""


class LocalField(NamedTuple):
    """The field at a place: strength (T), unit direction (3,) in `frame`, declination and inclination (rad).

    >>> field = ns.factors.local_field(0.824, 0.154, 488.0, 2026.9, frame="ENU")
    >>> round(1e6 * field.strength, 1), field.direction.round(3)
    (48.4, array([ 0.029,  0.447, -0.894]))
    """

    strength: float
    direction: FloatArray
    declination: float
    inclination: float
    frame: str

    @property
    def field(self) -> FloatArray:
        """The field (3,) in T, navigation frame."""
        return self.strength * self.direction


def direction(declination: ArrayLike, inclination: ArrayLike, frame: str = "NED") -> FloatArray:
    """Return unit directions (..., 3) of the field from angles (...) in rad. `frame` is "NED" or "ENU".

    >>> ns.factors.direction(0.05, 1.1, frame="ENU").round(3)  # declination east of north, inclination downwards
    array([ 0.023,  0.453, -0.891])

    Raises `FactorError` for another frame, angles that are not finite, |D| > pi and |I| > pi/2.
    """
    order, sign = _frame_axes(frame)
    east_of_north = _angle("declination (rad)", declination, math.pi, "pi")
    below = _angle("inclination (rad)", inclination, math.pi / 2.0, "pi/2")
    level = np.cos(below)
    parts = np.broadcast_arrays(level * np.cos(east_of_north), level * np.sin(east_of_north), sign * np.sin(below))
    return np.stack([parts[i] for i in order], axis=-1)


def declination_inclination(field: ArrayLike, frame: str = "NED") -> tuple[FloatArray, FloatArray]:
    """Return declination and inclination (...) in rad of fields or directions (..., 3) in `frame`.

    Raises `FactorError` for another frame and for vectors that are zero or not finite.

    >>> declination, inclination = ns.factors.declination_inclination((20.0, 1.0, 43.0), frame="NED")
    >>> round(float(declination), 3), round(float(inclination), 3)
    (0.05, 1.135)
    """
    order, sign = _frame_axes(frame)
    vectors = to_floats("field", field)
    if vectors.shape[-1:] != (3,):
        raise FactorError("shape of field", vectors.shape, allowed="must be (3,) or (..., 3)")
    if not (np.isfinite(vectors).all() and vectors.any(axis=-1).all()):
        raise FactorError("field", vectors.tolist(), allowed="must be finite and not zero: it gives a direction")
    vectors = vectors + 0.0  # -0.0 becomes 0.0, for which the declination of a vertical field is 0
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
    """Return the field of the World Magnetic Model at a place and date.

    >>> round(1e6 * ns.factors.local_field(0.824, 0.154, 488.0, 2026.9, frame="ENU").strength, 2)  # µT
    48.37

    latitude, longitude: rad.
    altitude: m above the WGS-84 ellipsoid.
    date: decimal year or day.
    frame: "NED" or "ENU".

    Raises `FieldError` for an unknown model, a date outside its validity and an impossible place, `FactorError` for
    another frame and for numbers that are not finite.
    """
    order, sign = _frame_axes(frame)
    year = decimal_year(date) if isinstance(date, dt.date) else validate_number("date (decimal year)", date)
    names = ("latitude (rad)", "longitude (rad)", "altitude (m)")
    place = [np.array([validate_number(*each)]) for each in zip(names, (latitude, longitude, altitude), strict=True)]
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
    """Return the decimal year at the start of a day."""
    length = (dt.date(day.year + 1, 1, 1) - dt.date(day.year, 1, 1)).days
    return day.year + (day.timetuple().tm_yday - 1) / length


def _frame_axes(frame: str) -> tuple[tuple[int, int, int], float]:
    if not isinstance(frame, str) or frame not in _FRAMES:
        raise FactorError("frame", frame, allowed='must be "NED" or "ENU"')
    return _FRAMES[frame]


def _angle(name: str, value: ArrayLike, limit: float, text: str) -> FloatArray:
    """Return angles. Raises `FactorError` unless they are finite and at most `limit`, which is printed as `text`."""
    angle = to_floats(name, value)
    if not np.all(np.abs(angle) <= limit):
        allowed = f"must be from -{text} to {text}"
        raise FactorError(name, angle.tolist(), allowed=allowed, remedy="give radians: math.radians(degrees)")
    return angle
