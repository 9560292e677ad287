"""A simple reference: every ray is intersected with every triangle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from navsense.core.typing import AnyArray

Reference = Callable[[AnyArray, AnyArray, AnyArray], AnyArray]


def compute_ranges(triangles: AnyArray, origin: AnyArray, direction: AnyArray) -> AnyArray:
    """Return ranges (n,): the plane of each triangle is intersected, and three cross products test the point."""
    out = np.full(len(origin), np.inf)
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    normal = np.cross(b - a, c - a)
    for n, (o, d) in enumerate(zip(origin, direction, strict=True)):
        rate = normal @ d
        with np.errstate(divide="ignore", invalid="ignore"):
            t = ((a - o) * normal).sum(axis=1) / rate
            p = o + t[:, None] * d
            sides = [(np.cross(v - u, p - u) * normal).sum(axis=1) for u, v in ((a, b), (b, c), (c, a))]
        slack = -1e-9 * (normal**2).sum(axis=1)
        inside = (rate != 0.0) & (t >= 0.0) & (np.minimum.reduce(sides) >= slack)
        if inside.any():
            out[n] = t[inside].min()
    return out


@pytest.fixture(scope="session")
def compute_reference_ranges() -> Reference:
    return compute_ranges
