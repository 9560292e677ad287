"""The World Magnetic Model: its coefficients, and the sum of its spherical harmonics.

    V = R sum_(n=1..12) (R / r)^(n+1) sum_(m=0..n) (g_nm cos m lambda + h_nm sin m lambda) P_nm(sin phi')
    B = -grad V,   g_nm(t) = g_nm + (t - epoch) dg_nm,   h likewise,   R = 6371.2 km

r, phi', lambda: distance from the earth's centre, geocentric latitude, longitude. P_nm are Schmidt's quasi-normalised
functions. With s = sin phi', c = cos phi' and P_nm = c S_nm for m > 0 the sums stay whole at the poles:

    S_mm = sqrt(1 - 1/(2m)) c S_(m-1)(m-1),   S_11 = 1
    sqrt(n^2 - m^2) S_nm = (2n - 1) s S_(n-1)m - sqrt((n-1)^2 - m^2) S_(n-2)m
    -dP_nm/dphi' = n s S_nm - sqrt(n^2 - m^2) S_(n-1)m
    n P_n = (2n - 1) s P_(n-1) - (n - 1) P_(n-2)                      m = 0, and its derivative term by term

Source: Chulliat et al. 2020, The US/UK World Magnetic Model for 2020-2025: Technical Report.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.typing import FloatArray

MAX_DEGREE = 12
REFERENCE_RADIUS = 6371200.0
"""m: R."""

VALID_YEARS = 5.0
"""How long after its epoch a model holds."""

MODELS = ("WMM2020", "WMM2025")

_DATA = Path(__file__).parent / "data"


@cache
def _read_coefficients(model: str) -> tuple[float, FloatArray, FloatArray]:
    """Return a model's epoch (decimal year), its g and h (2, 13, 13) nT, and their change (2, 13, 13) nT a year."""
    lines = (_DATA / f"{model}.COF").read_text(encoding="ascii").splitlines()
    main, change = np.zeros((2, MAX_DEGREE + 1, MAX_DEGREE + 1)), np.zeros((2, MAX_DEGREE + 1, MAX_DEGREE + 1))
    for line in lines[1:]:
        parts = line.split()
        if len(parts) < 6:
            break
        n, m = int(parts[0]), int(parts[1])
        main[:, n, m] = float(parts[2]), float(parts[3])
        change[:, n, m] = float(parts[4]), float(parts[5])
    return float(lines[0].split()[0]), main, change


@lru_cache(maxsize=64)
def compute_coefficients(model: str, date: float) -> FloatArray:
    """Return g and h (2, 13, 13) nT of a model at a decimal year, read-only.

    Raises `FieldError` for an unknown model and for a date that it does not hold at.
    """
    if model not in MODELS:
        raise FieldError("magnetic model", model, allowed=f"must be one of {', '.join(MODELS)}")
    epoch, main, change = _read_coefficients(model)
    if not epoch <= date <= epoch + VALID_YEARS:
        others = (
            name for name in MODELS if _read_coefficients(name)[0] <= date <= _read_coefficients(name)[0] + VALID_YEARS
        )
        fitting = next(others, None)
        raise FieldError(
            f"date of {model} (decimal year)",
            date,
            allowed=f"must be from {epoch} to {epoch + VALID_YEARS}",
            remedy=f"use {fitting}" if fitting else "give a date within the model's years",
        )
    values: FloatArray = main + (date - epoch) * change
    values.setflags(write=False)
    return values


@kernel
def sum_harmonics(
    coefficients: FloatArray, r: float, s: float, c: float, sine: float, cosine: float
) -> tuple[float, float, float]:
    """Return the field (nT) along geocentric north, east and down, at r (m), sines and cosines of phi' and lambda."""
    north, east, down = 0.0, 0.0, 0.0
    ratio = REFERENCE_RADIUS / r
    scale, p, p1, d, d1 = ratio * ratio, 1.0, 0.0, 0.0, 0.0
    for n in range(1, MAX_DEGREE + 1):
        scale *= ratio
        d, d1 = ((2 * n - 1) * (s * d - c * p) - (n - 1) * d1) / n, d
        p, p1 = ((2 * n - 1) * s * p - (n - 1) * p1) / n, p
        north += scale * coefficients[0, n, 0] * d
        down -= scale * (n + 1) * coefficients[0, n, 0] * p
    cm, sm, diagonal, start = cosine, sine, 1.0, ratio * ratio
    for m in range(1, MAX_DEGREE + 1):
        if m > 1:
            cm, sm = cm * cosine - sm * sine, sm * cosine + cm * sine
            diagonal *= c * math.sqrt(1.0 - 0.5 / m)
        start *= ratio
        scale, f, f1, root = start, diagonal, 0.0, 0.0
        for n in range(m, MAX_DEGREE + 1):
            if n > m:
                root, last = math.sqrt(n * n - m * m), root
                f, f1 = ((2 * n - 1) * s * f - last * f1) / root, f
                scale *= ratio
            along = coefficients[0, n, m] * cm + coefficients[1, n, m] * sm
            across = coefficients[0, n, m] * sm - coefficients[1, n, m] * cm
            north += scale * along * (n * s * f - root * f1)
            east += scale * m * across * f
            down -= scale * (n + 1) * along * c * f
    return north, east, down
