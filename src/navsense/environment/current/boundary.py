"""The boundary layer over the bed: another current, reduced towards the bed by a power law.

    v = V (h / H)^n   for 0 < h < H,   V above,   0 at and below the bed;   h = z - bed,  n = 1/7 or 1/10

V is the field outside the layer, H is `thickness`, `bed` is the height of the bed in the world. The mean over the layer
is 1 / (1 + n) V, 7/8 V for n = 1/7. At and below the bed the velocity is zero (no slip).
Source: Prandtl's power law of turbulent boundary layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from navsense.core.errors import FieldError
from navsense.core.kernels import kernel
from navsense.core.typing import Quaternion, Times, Vectors
from navsense.core.validation import check_number
from navsense.environment.base import VectorField
from navsense.environment.current.base import check_coordinate, list_random_names, realise


@kernel
def _apply_power_law(position_w: Vectors, bed: float, thickness: float, exponent: float, out: Vectors) -> int:
    """Multiply vectors (n, 3) by the power law; return the first row with an invalid height, or -1."""
    for i in range(out.shape[0]):
        height = position_w[i, 2] - bed
        if height != height:
            return i
        if height < thickness:
            factor = (height / thickness) ** exponent if height > 0.0 else 0.0
            for axis in range(3):
                out[i, axis] *= factor
    return -1


@dataclass(frozen=True)
class BoundaryLayer:
    """A current with a boundary layer.

    field: the current outside the layer.
    bed: height of the bed in the world (m).
    thickness: m.
    exponent: n of the power law.

    Raises `FieldError` for a thickness or exponent that is not positive.
    """

    field: VectorField
    bed: float
    thickness: float
    exponent: float = 1.0 / 7.0

    def __post_init__(self) -> None:
        """Check the values."""
        check_coordinate("height of the bed (m)", self.bed)
        check_number("thickness of a boundary layer (m)", self.thickness, 1e-3, 12000.0, error=FieldError)
        check_number("exponent of a boundary layer", self.exponent, 1e-3, 1.0, error=FieldError)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` as `field` does, and for an invalid height."""
        out = np.array(self.field.at(position_w, time))
        row = _apply_power_law(position_w, self.bed, self.thickness, self.exponent, out)
        if row >= 0:
            raise FieldError("position (m)", tuple(position_w[row].tolist()), row=row, allowed="must be finite")
        return out

    @cached_property  # isinstance() of a runtime protocol reads it, which would be exponential in nested fields
    def random_names(self) -> tuple[str, ...]:
        """The names of the random currents in the field."""
        return list_random_names(self.field)

    def realise(self, seed: int, run: int) -> BoundaryLayer:
        """Return the field (m/s) of one run."""
        return replace(self, field=realise(self.field, seed, run))

    def rotate(self, rotation: Quaternion) -> BoundaryLayer:
        """Return the current in a world rotated by `rotation`. Raises `FieldError` as `field` does."""
        return replace(self, field=self.field.rotate(rotation))
