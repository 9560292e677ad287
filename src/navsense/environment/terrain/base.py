"""What a surface is: something that rays meet, in coordinates of its own.

Symbols: o origin and d direction of a ray, d of unit length; n normal. A point of the ray is o + t d, t its range (m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from navsense.typing import FloatArray, Vectors

MIN_SIZE, MAX_DISTANCE = 1e-9, 1e9
"""Metres: the least size of a shape, and the farthest that any of its points may be from its origin."""


class Shape(Protocol):
    """A surface in its own frame s, met from either side: a ray that starts inside meets the wall from within."""

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write where each of n rays first meets the surface.

        `origin_s` (n, 3) m, `direction_s` (n, 3) of unit length, `reach` (n,) m, at least 0, which may be infinite.
        Written are `distance` (n,) m, at most the reach and infinite where there is nothing, and there the unit normal
        `normal_s` (n, 3) on the side that the ray comes from; of a ray that meets nothing the normal is left alone.
        """
        ...


@dataclass(frozen=True, eq=False)
class LazyShape:
    """The surface that `read` returns, kept from the first time on. Whatever `read` raises comes again each time."""

    load: Callable[[], Shape]

    @cached_property
    def shape(self) -> Shape:
        """Return the surface, read if it was not before."""
        return self.load()

    def trace(
        self, origin_s: Vectors, direction_s: Vectors, reach: FloatArray, distance: FloatArray, normal_s: Vectors
    ) -> None:
        """Write where each ray first meets the surface, as `Shape` says."""
        self.shape.trace(origin_s, direction_s, reach, distance, normal_s)
