"""Tidal astronomy: the equilibrium argument, nodal factor and nodal angle of a constituent at a date and time.

    theta(t) = speed t + V0 + u - g,   speed = 15 n_T + rates of s, h, p

V0 at the start of the run is a sum of multiples of T = 15 degrees per hour since midnight, of the mean longitudes s of
the moon, h of the sun and p of the lunar perigee, and of a constant. f and u are functions of the longitude N of the
moon's node through the inclination I of the orbit to the equator and the longitudes xi and nu of their intersection:

    cos I = 0.913694997 - 0.035692561 cos N,   tan a = 1.01883 tan(N/2),   tan b = 0.64412 tan(N/2)
    nu = a - b,   xi = N - a - b
    tan nu' = sin 2I sin nu / (sin 2I cos nu + 0.3347),   tan 2nu'' = sin^2 I sin 2nu / (sin^2 I cos 2nu + 0.0727)

f and u change over 18.6 years and are constant during a run.
Sources: Schureman 1958, Manual of Harmonic Analysis and Prediction of Tides, pp. 156-166, tables 2 and 11; Meeus 1998,
Astronomical Algorithms, ch. 22 and 47, for the longitudes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
    """Angles that depend on the moon's node: inclination, xi, nu, nu' and 2 nu'' (rad)."""

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


def _m4(node: LunarNode) -> tuple[float, float]:
    factor, angle = _m2(node)
    return factor**2, 2.0 * angle


def _m6(node: LunarNode) -> tuple[float, float]:
    factor, angle = _m2(node)
    return factor**3, 3.0 * angle


_CONSTITUENTS: dict[str, tuple[int, int, int, int, float, _FactorAngle]] = {
    "M2": (2, -2, 2, 0, 0.0, _m2),
    "S2": (2, 0, 0, 0, 0.0, _no_correction),
    "N2": (2, -3, 2, 1, 0.0, _m2),
    "2N2": (2, -4, 2, 2, 0.0, _m2),
    "K2": (2, 0, 2, 0, 0.0, _k2),
    "K1": (1, 0, 1, 0, 90.0, _k1),
    "O1": (1, -2, 1, 0, -90.0, _o1),
    "P1": (1, 0, -1, 0, -90.0, _no_correction),
    "Q1": (1, -3, 1, 1, -90.0, _o1),
    "M4": (4, -4, 4, 0, 0.0, _m4),
    "M6": (6, -6, 6, 0, 0.0, _m6),
    "MS4": (4, -2, 2, 0, 0.0, _m2),
    "Mf": (0, 2, 0, 0, 0.0, _mf),
    "Mm": (0, 1, 0, -1, 0.0, _mm),
}
"""Multiples of T, s, h and p, constant (degrees), and the function that returns f and u."""

CONSTITUENT_NAMES = tuple(_CONSTITUENTS)


def constituent_speed(name: str) -> float:
    """Return the speed (rad/s) of one of `CONSTITUENT_NAMES`."""
    t, s, h, p, _, _ = _CONSTITUENTS[name]
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
    t, s, h, p, constant, compute_nodal = _CONSTITUENTS[name]
    degrees = math.fmod(t * 15.0 * hours + s * moon + h * sun + p * perigee + constant, 360.0)
    factor, angle = compute_nodal(compute_node(math.radians(_evaluate_polynomial(NODE, century))))
    return factor, math.radians(degrees) + angle
