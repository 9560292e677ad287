"""Sweeps: the points of a campaign, each with values of parameters.

A grid has each combination of the values. A list has the points themselves. A Latin hypercube of n samples divides
each range into n intervals of equal length, and has exactly one sample in each interval (McKay, Beckman and Conover
1979). The samples are those of `scipy.stats.qmc.LatinHypercube`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import isfinite, log10, nan
from os import PathLike, fspath
from typing import Any

import numpy as np

from navsense.core.errors import SimulationError
from navsense.core.random_streams import check_seed
from navsense.parameters import ParameterValue

Point = Mapping[str, ParameterValue]
"""Values of parameters by path."""

MAX_POINTS = 1_000_000
"""Largest number of points of a sweep."""


def make_points(sweep: Mapping[str, Sequence[ParameterValue]] | Sequence[Point] | None) -> tuple[Point, ...]:
    """Return the points of a sweep: a grid (mapping from path to values), or a list of points.

    The last path of a grid varies fastest. Without a sweep there is one point without values. Raises `SimulationError`.
    """
    if sweep is None:
        return ({},)
    points = _make_grid(sweep) if isinstance(sweep, Mapping) else _check_list(sweep)
    for path in points[0] if points else ():
        if not isinstance(path, str):
            raise SimulationError("path of the sweep", repr(path), allowed="must be a string, such as imu.rate")
    if not points:
        raise SimulationError("sweep", "has no point", allowed="must have values", remedy="omit the sweep")
    return tuple({path: _convert_value(value) for path, value in point.items()} for point in points)


def _convert_value(value: Any) -> Any:
    """Return a value as numbers, strings and lists of Python: arrays of NumPy as lists, paths as strings."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, list | tuple):
        return [_convert_value(element) for element in value]
    return value


def _make_grid(sweep: Mapping[str, Sequence[ParameterValue]]) -> tuple[Point, ...]:
    """Return each combination of the values."""
    count = 1
    for path, values in sweep.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            allowed = "must be a list of values"
            raise SimulationError(f"sweep of {path}", values, allowed=allowed, remedy=f"write [{values!r}]")
        count *= len(values)
    if count > MAX_POINTS:
        raise SimulationError("points of the sweep", count, allowed=f"must be at most {MAX_POINTS}")
    return tuple(dict(zip(sweep, values, strict=True)) for values in product(*sweep.values()))


def _check_list(sweep: Sequence[Point]) -> tuple[Point, ...]:
    """Return a list of points that all have the same paths."""
    points = tuple(sweep) if isinstance(sweep, Iterable) else ()
    if not isinstance(sweep, Iterable) or not all(isinstance(point, Mapping) for point in points):
        allowed = "must be a mapping from paths to lists of values, or a list of mappings from paths to values"
        raise SimulationError("sweep", sweep, allowed=allowed)
    if len(points) > MAX_POINTS:
        raise SimulationError("points of the sweep", len(points), allowed=f"must be at most {MAX_POINTS}")
    for number, point in enumerate(points, 1):
        check_paths(point, points[0], number)
    return points


def check_paths(point: Point, first: Point, number: int) -> None:
    """Raise `SimulationError` unless a point has the paths of the first one. `number` counts from 1."""
    if set(point) != set(first):
        allowed = f"must have the parameters of the first point: {', '.join(map(str, first))}"
        raise SimulationError(f"point {number} of the sweep", ", ".join(map(str, point)) or "none", allowed=allowed)


def combine_points(points: Sequence[Point], others: Sequence[Point]) -> list[Point]:
    """Return each combination of two points. Raises `SimulationError` if both have a path, or for too many points."""
    for path in others[0] if points and others else ():
        if path in points[0]:
            raise SimulationError(f"path {path}", allowed="is in [sweep] and in [latin_hypercube]", remedy="omit one")
    if len(points) * len(others) > MAX_POINTS:
        count = len(points) * len(others)
        raise SimulationError("points of the sweep", count, allowed=f"must be at most {MAX_POINTS}")
    return [{**point, **other} for point, other in product(points, others)]


def latin_hypercube(
    ranges: Mapping[str, tuple[float, float]], samples: int, *, seed: int = 0, logarithmic: Sequence[str] = ()
) -> list[Point]:
    """Return the points of a Latin hypercube.

    ranges: lowest and highest value by path.
    samples: the number of points.
    seed: of the samples.
    logarithmic: the paths whose logarithm is distributed uniformly.

    Raises `SimulationError` for an invalid range or number. Source: McKay, Beckman and Conover, Technometrics 21 (1979)
    239.

    >>> points = ns.campaigns.latin_hypercube({"imu.angular_velocity_*.stddev": (0.001, 0.005)}, 4)
    >>> sorted(round(4.0 * (point["imu.angular_velocity_*.stddev"] - 0.001) / 0.004 - 0.5) for point in points)
    [0, 1, 2, 3]
    """
    from scipy.stats import qmc

    if isinstance(samples, bool) or not (isinstance(samples, int | np.integer) and 1 <= samples <= MAX_POINTS):
        raise SimulationError("samples", samples, allowed=f"must be an integer from 1 to {MAX_POINTS}")
    if not isinstance(ranges, Mapping) or not ranges:
        raise SimulationError("ranges", ranges or "none", allowed="must be a mapping with at least one path")
    check_seed(seed)
    for path in logarithmic:
        if path not in ranges:
            raise SimulationError("logarithmic", path, allowed=f"must be one of {', '.join(ranges)}")
    unit = qmc.LatinHypercube(len(ranges), rng=np.random.default_rng(seed)).random(samples)
    columns = {}
    for (path, limits), column in zip(ranges.items(), unit.T, strict=True):
        try:
            low, high = map(float, limits)
        except (TypeError, ValueError, OverflowError):
            low = high = nan
        if not (low < high and isfinite(high - low)):
            raise SimulationError(f"range of {path}", limits, allowed="must be two numbers, the lower one first")
        if path in logarithmic:
            if not low > 0.0:
                raise SimulationError(f"range of {path}", limits, allowed="must be above 0 to be logarithmic")
            columns[path] = 10.0 ** (log10(low) + column * (log10(high) - log10(low)))
        else:
            columns[path] = low + column * (high - low)
    return [dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)]
