"""A surface that stands in a file: read when a ray first comes its way, and not at all in a world without rays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from navsense.environment.terrain.base import Shape
from navsense.typing import FloatArray, Vectors


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
