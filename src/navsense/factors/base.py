"""What every factor has: keys, noise, errors and derivatives at given values, a place in GTSAM's graphs.

    residual = predicted - measured,    whitened = R residual,    error = |whitened|^2 / 2 or a robust loss of it

A factor says which unknowns it has (`variables`, one a key), its residual and its Jacobians at their numbers (see
`variables`), and the numbers it was made of (`_data`). All else is here. Names and order of arguments are GTSAM's, so
that a factor of its Python package can be exchanged for one of these. What GTSAM takes in silence is an error here: a
Jacobian's array of the wrong shape, a value of the wrong kind, a number that is not finite.
"""
# ruff: noqa: N802, N803, SLF001 - GTSAM's names; a factor reads and makes others of its kind

from __future__ import annotations

import copy
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from navsense.errors import FactorError
from navsense.factors import arguments
from navsense.factors.arguments import Numbers
from navsense.factors.library import gtsam_for, is_gtsam
from navsense.factors.noise import noise_of
from navsense.factors.printed import key_text
from navsense.factors.variables import Variable
from navsense.typing import FloatArray


class Factor(ABC):
    """A factor on one or more unknowns. It does not change; copies and pickles are equal to it."""

    variables: ClassVar[tuple[Variable, ...]]
    """The unknowns, in the order of the keys and of the arguments of `evaluateError`."""

    def __init__(self, keys: Sequence[object], rows: int, model: object, turn: ArrayLike | None = None) -> None:
        """Keep keys and noise.

        rows: how many numbers the residual has. model: see `noise_of`. turn: rotation (rows, rows) from the frame in
        which the noise is given to that of the residual, None where they are one.
        """
        self._keys = arguments.keys(keys)
        self._rows = rows
        self._turn = None if turn is None else np.array(turn, dtype=np.float64)
        self._set_model(model)

    @abstractmethod
    def _residual(self, *values: Numbers) -> Sequence[float] | FloatArray:
        """Return predicted less measured, of the unknowns' numbers."""

    @abstractmethod
    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        """Return the derivative of the residual by each unknown, (rows, its dim)."""

    @abstractmethod
    def _data(self) -> Numbers:
        """Return what the factor was made of, keys and noise left out: `equals` compares it."""

    def _lines(self) -> str:
        """Return what `print` says after keys and noise."""
        return ""

    def _native(self, library: Any, model: Any) -> Any:
        """Return GTSAM's own factor with a noise model of GTSAM's in the residual's frame, None where it has none."""
        return None

    def keys(self) -> list[int]:
        """Return the keys, one an unknown."""
        return list(self._keys)

    def size(self) -> int:
        """Return the number of keys."""
        return len(self._keys)

    def dim(self) -> int:
        """Return the number of rows of the residual, with a noise model or without."""
        return self._rows

    def empty(self) -> bool:
        """Return False: a factor has keys."""
        return False

    def active(self, values: Any) -> bool:
        """Return True: the factor acts whatever the values."""
        return True

    def noiseModel(self) -> Any:
        """Return the noise model as it was given, in its instrument's frame; a `Gaussian` where numbers were given."""
        return self._noise.given

    def unwhitenedError(self, values: Any, H: Any = None) -> FloatArray:
        """Return the residual (rows,) at the values.

        values: a mapping from keys to values, or gtsam.Values. H: a list or a gtsam.JacobianVector with an entry a key;
        each becomes the Jacobian (rows, dim of its unknown).
        """
        numbers = self._find(values)
        residual = self._checked(numbers)
        if H is not None:
            if len(H) != len(self._keys):
                raise FactorError("length of H", len(H), allowed=f"must be {len(self._keys)}, an entry for each key")
            for i, block in enumerate(self._blocks(numbers)):
                H[i] = block
        return residual

    def whitenedError(self, values: Any) -> FloatArray:
        """Return R residual (rows,) at the values; of a robust model scaled by the root of its weight, as in GTSAM."""
        return self._frame_noise.whitened(self.unwhitenedError(values))

    def error(self, values: Any) -> float:
        """Return half the square of the whitened residual, or the robust loss, at the values."""
        return self._frame_noise.loss(self.unwhitenedError(values))

    def linearize(self, values: Any) -> Any:
        """Return GTSAM's JacobianFactor at gtsam.Values: whitened Jacobians, and b the whitened residual's negative."""
        if not is_gtsam(values, "Values"):
            gtsam_for("linearize")
            raise FactorError("values", values, allowed="must be gtsam.Values", remedy="unwhitenedError takes arrays")
        self._find(values)  # what is missing is told in these words
        return self.to_gtsam().linearize(values)

    def to_gtsam(self) -> Any:
        """Return a factor for gtsam.NonlinearFactorGraph: GTSAM's own where it has one, else a CustomFactor.

        A CustomFactor that returns a block of the wrong shape ends the process; this one is checked first and raises.
        """
        library = gtsam_for("to_gtsam")
        model = self._frame_noise.to_gtsam()
        native = self._native(library, model)
        if native is not None:
            return native

        def evaluate(_: Any, values: Any, blocks: Any) -> FloatArray:
            return self.unwhitenedError(values, blocks)

        return library.CustomFactor(model, self._keys, evaluate)

    def equals(self, other: object, tol: float = 1e-9) -> bool:
        """Tell whether two factors have the same keys, and numbers and noise within a tolerance.

        GTSAM's MagFactor and MagFactor1 compare keys and noise alone, its MagPoseFactor all but `body_P_sensor`.
        """
        if not isinstance(other, Factor) or type(self) is not type(other) or self._keys != other._keys:
            return False
        mine, theirs = self._data(), other._data()
        if len(mine) != len(theirs) or not self._noise.same(other._noise, tol):
            return False
        return all(abs(a - b) <= tol for a, b in zip(mine, theirs, strict=True))

    def clone(self) -> Self:
        """Return a copy."""
        return copy.copy(self)

    def cloneWithNewNoiseModel(self, model: object) -> Self:
        """Return a copy with another noise model."""
        other = copy.copy(self)
        other._set_model(model)
        return other

    def rekey(self, keys: Sequence[object]) -> Self:
        """Return a copy on other keys, as many as there are."""
        if len(keys) != len(self._keys):
            raise FactorError("keys", list(keys), allowed=f"must be {len(self._keys)}")
        other = copy.copy(self)
        other._keys = arguments.keys(keys)
        return other

    def print(self, s: str = "Factor\n", keyFormatter: Callable[[int], str] = key_text) -> None:
        """Print the keys and the noise model, as GTSAM does; `s` stands before them."""
        sys.stdout.write(self._text(s, keyFormatter))

    def printKeys(self, s: str = "Factor", formatter: Callable[[int], str] = key_text) -> None:
        """Print the keys on a line after `s`."""
        sys.stdout.write(f"{s} {''.join(f' {formatter(key)}' for key in self._keys)}\n")

    def __repr__(self) -> str:
        """Return what `print` writes."""
        return self._text("Factor\n", key_text)

    def _text(self, s: str, formatter: Callable[[int], str]) -> str:
        names = "".join(f" {formatter(key)}" for key in self._keys)
        return f"{s}  keys = {{{names} }}\n{self._noise.text()}{self._lines()}"

    def _set_model(self, model: object) -> None:
        self._noise = noise_of(model, self._rows)
        self._frame_noise = self._noise if self._turn is None else self._noise.turned(self._turn)

    def _find(self, values: Any) -> list[Numbers]:
        return [variable.find(values, key) for variable, key in zip(self.variables, self._keys, strict=True)]

    def _evaluate(self, given: Sequence[object], H: Sequence[FloatArray | None]) -> FloatArray:
        """Return the residual at values given one by one, and fill those of the arrays H that are not None."""
        numbers = [variable.numbers(value) for variable, value in zip(self.variables, given, strict=True)]
        residual = self._checked(numbers)
        wanted = False
        for i, block in enumerate(H):
            if block is not None:
                self._fits(i, block, len(H))
                wanted = True
        if not wanted:
            return residual
        for block, jacobian in zip(H, self._blocks(numbers), strict=True):
            if block is not None:
                block[...] = jacobian
        return residual

    def _fits(self, i: int, given: Any, count: int) -> None:
        """Raise FactorError unless a Jacobian can be put into the array."""
        shape = (self._rows, self.variables[i].dim)
        array = isinstance(given, np.ndarray)
        if array and given.shape == shape and given.dtype == np.float64 and given.flags.writeable:
            return
        name = f"H{i + 1}" if count > 1 else "H"
        there = f"{given.shape} of {given.dtype}" if array else given
        if array and given.shape == shape and given.dtype == np.float64:
            there = "is read-only"
        raise FactorError(name, there, allowed=f"must be an array {shape} of float64, which is filled in place")

    def _checked(self, numbers: Sequence[Numbers]) -> FloatArray:
        """Return the residual; raise FactorError where it is not finite or not of its length."""
        parts = self._residual(*numbers)
        if len(parts) != self._rows or not math.isfinite(sum(parts)):
            name = f"residual of {type(self).__name__}"
            raise FactorError(name, list(parts), allowed=f"must be {self._rows} finite numbers")
        return np.array(parts)

    def _blocks(self, numbers: Sequence[Numbers]) -> list[FloatArray]:
        """Return the Jacobians; raise FactorError where one is not finite or not of its shape."""
        blocks = [np.array(block, dtype=np.float64) for block in self._jacobians(*numbers)]
        good = len(blocks) == len(self.variables)
        for block, variable in zip(blocks, self.variables, strict=False):
            good = good and block.shape == (self._rows, variable.dim)
            good = good and arguments.all_finite(block)
        if not good:
            name = f"Jacobians of {type(self).__name__}"
            shapes = [(self._rows, variable.dim) for variable in self.variables]
            raise FactorError(name, [block.tolist() for block in blocks], allowed=f"must be finite, of shapes {shapes}")
        return blocks
