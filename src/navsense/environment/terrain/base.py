"""Shapes: surfaces for ray casting, in their own coordinates.

Symbols: o origin and d direction of a ray with |d| = 1, n normal. A point of the ray is o + t d with the range t (m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.typing import FloatArray, Vectors

MIN_SIZE, MAX_DISTANCE = 1e-9, 1e9
"""Smallest size of a shape and largest coordinate of its points (m)."""


class Rays(NamedTuple):
    """Rays in the frame s of a shape, and their hits.

    origin: (n, 3) m; direction: (n, 3) of unit length.
    max_range: (n,) m, largest range, at least 0 or infinite.
    distance: output (n,) m, range of the first hit, at most `max_range`, infinite for a miss.
    normal: output (n, 3), unit normal on the side that the ray comes from; unchanged for a miss.
    """

    origin: Vectors
    direction: Vectors
    max_range: FloatArray
    distance: FloatArray
    normal: Vectors


class Shape(Protocol):
    """A surface in its own frame s. Rays hit it from both sides: a ray that starts inside hits it from the inside."""

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray to `rays.distance` and `rays.normal`."""
        ...


@dataclass(frozen=True, eq=False)
class LazyShape:
    """A shape that `load` returns at the first use, for example from a file. `load` may raise errors."""

    load: Callable[[], Shape]

    __repr__, _repr_html_ = format_spec, format_spec_html

    @cached_property
    def shape(self) -> Shape:
        """The shape. The first access loads it."""
        return self.load()

    def trace(self, rays: Rays) -> None:
        """Write the first hit of each ray, see `Shape`."""
        self.shape.trace(rays)
