"""The boundary layer over the bed: another current, slower towards the bed by a power law.

    v = V (h / H)^n   for 0 < h < H,   V above,   0 at and below the bed;   h = z - bed,  n = 1/7 or 1/10

V is the field outside the layer, `thickness` H, `bed` the height of the bed in the world. The mean over the layer is
1 / (1 + n) V, 7/8 for n = 1/7. At the bed the water does not slip: it stands still there by the law, and below it.
Source: Prandtl's power law of turbulent layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from navsense.environment.base import VectorField
from navsense.environment.current.base import check_coordinate, list_random_names, realise
from navsense.errors import FieldError
from navsense.kernels import kernel
from navsense.typing import Quaternion, Times, Vectors
from navsense.validation import check_number


@kernel
def _apply_power_law(position_w: Vectors, bed: float, thickness: float, exponent: float, out: Vectors) -> int:
    """Multiply vectors (n, 3) by the power law; return the first row without a height, -1 where there is none."""
    for i in range(out.shape[0]):
        height = position_w[i, 2] - bed
        if height != height:
            return i
        if height < thickness:
            share = (height / thickness) ** exponent if height > 0.0 else 0.0
            for axis in range(3):
                out[i, axis] *= share
    return -1


@dataclass(frozen=True)
class BoundaryLayer:
    """A current above `bed` (m, height in the world), slowed within `thickness` (m) of it by the power `exponent`.

    Raises `FieldError` for a thickness or exponent that is not positive.
    """

    field: VectorField
    bed: float
    thickness: float
    exponent: float = 1.0 / 7.0

    def __post_init__(self) -> None:
        """Refuse what is no layer."""
        check_coordinate("height of the bed (m)", self.bed)
        check_number("thickness of a boundary layer (m)", self.thickness, 1e-3, 12000.0, error=FieldError)
        check_number("exponent of a boundary layer", self.exponent, 1e-3, 1.0, error=FieldError)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Return the velocity (n, 3) m/s. Raises `FieldError` where its field does, and for a height that is none."""
        out = np.array(self.field.at(position_w, time))
        row = _apply_power_law(position_w, self.bed, self.thickness, self.exponent, out)
        if row >= 0:
            raise FieldError("position (m)", tuple(position_w[row].tolist()), row=row, allowed="must be finite")
        return out

    @cached_property  # to ask what kind a field is reads it: nested layers would ask twice as often each
    def random_names(self) -> tuple[str, ...]:
        """Return the names of the random currents in the field."""
        return list_random_names(self.field)

    def realise(self, seed: int, run: int) -> BoundaryLayer:
        """Return the field (m/s) of one run."""
        return replace(self, field=realise(self.field, seed, run))

    def rotate(self, rotation: Quaternion) -> BoundaryLayer:
        """Return the current of a world turned by `rotation`, as its field allows."""
        return replace(self, field=self.field.rotate(rotation))
