"""Base class of all factors: keys, noise, errors, derivatives, and conversion to GTSAM.

    residual = predicted - measured,    whitened = R residual,    error = |whitened|^2 / 2 or the loss of a robust model

A subclass defines its unknowns (`variables`, one per key), its residual and Jacobians, and the numbers that it was made
from (`_data`). Method names and the order of arguments are those of GTSAM, so that these factors can replace factors of
its Python package. GTSAM accepts some wrong arguments that are errors here: a Jacobian array of the wrong shape, a
value of the wrong class, and numbers that are not finite.
"""
# ruff: noqa: N802, N803, SLF001 - names of GTSAM; a factor accesses private members of other factors

from __future__ import annotations

import copy
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import FactorError
from navsense.core.typing import FloatArray
from navsense.factors import arguments
from navsense.factors.arguments import Numbers
from navsense.factors.gtsam_support import format_key, is_gtsam, require_gtsam
from navsense.factors.noise import make_noise
from navsense.factors.variables import Variable


class Factor(ABC):
    """A factor on one or more unknowns. It is immutable; copies and pickles are equal to it.

    >>> factor = ns.factors.MagFactor2(0, 1, (30.0, -5.0, 35.0), (1.0, 0.0, 0.0, 0.0))
    >>> isinstance(factor, ns.factors.Factor), factor.keys()
    (True, [0, 1])
    >>> factor.evaluateError((31.0, -5.0, 35.0), (0.0, 0.0, 0.0))
    array([1., 0., 0.])
    """

    variables: ClassVar[tuple[Variable, ...]]
    """The unknowns in the order of the keys and of the arguments of `evaluateError`."""

    def __init__(self, keys: Sequence[object], rows: int, model: object, rotation: ArrayLike | None = None) -> None:
        """Store keys and noise.

        rows: length of the residual.
        model: noise, see `make_noise`.
        rotation: matrix (rows, rows) from the frame of the noise to the frame of the residual; None if both are the
            same frame.
        """
        self._keys = arguments.validate_keys(keys)
        self._rows = rows
        self._noise_rotation = None if rotation is None else np.array(rotation, dtype=np.float64)
        self._set_model(model)

    @abstractmethod
    def _residual(self, *values: Numbers) -> Sequence[float] | FloatArray:
        """Return predicted - measured at the numbers of the unknowns."""

    @abstractmethod
    def _jacobians(self, *values: Numbers) -> Sequence[ArrayLike]:
        """Return the derivatives of the residual, (rows, dim) for each unknown."""

    @abstractmethod
    def _data(self) -> Numbers:
        """Return the numbers that the factor was made from, without keys and noise, for `equals`."""

    def _format_data(self) -> str:
        """Return the text that `print` writes after keys and noise."""
        return ""

    def _make_native(self, library: Any, model: Any) -> Any:
        """Return GTSAM's native factor with a GTSAM noise model in the frame of the residual, None if there is none."""
        return None

    def keys(self) -> list[int]:
        """Return the keys, one per unknown."""
        return list(self._keys)

    def size(self) -> int:
        """Return the number of keys."""
        return len(self._keys)

    def dim(self) -> int:
        """Return the length of the residual."""
        return self._rows

    def empty(self) -> bool:
        """Return False: every factor has keys."""
        return False

    def active(self, values: Any) -> bool:
        """Return True: the factor is active at all values."""
        return True

    def noiseModel(self) -> Any:
        """Return the noise model as given, in the frame of the sensor; a `Gaussian` if numbers were given."""
        return self._noise.model

    def unwhitenedError(self, values: Any, H: Any = None) -> FloatArray:
        """Return the residual (rows,) at the values.

        values: a mapping from keys to values, or gtsam.Values.
        H: a list or a gtsam.JacobianVector with one entry per key. Each entry is replaced by the Jacobian (rows, dim of
            the unknown).
        """
        numbers = self._read_values(values)
        residual = self._evaluate_residual(numbers)
        if H is not None:
            if len(H) != len(self._keys):
                raise FactorError("length of H", len(H), allowed=f"must be {len(self._keys)}, an entry for each key")
            for i, block in enumerate(self._evaluate_jacobians(numbers)):
                H[i] = block
        return residual

    def whitenedError(self, values: Any) -> FloatArray:
        """Return R residual (rows,) at the values; for a robust model times the root of its weight, as in GTSAM."""
        return self._frame_noise.whiten(self.unwhitenedError(values))

    def error(self, values: Any) -> float:
        """Return half the squared length of the whitened residual, or the robust loss, at the values."""
        return self._frame_noise.loss(self.unwhitenedError(values))

    def linearize(self, values: Any) -> Any:
        """Return the JacobianFactor at gtsam.Values: A are the whitened Jacobians, b = -whitened residual."""
        if not is_gtsam(values, "Values"):
            require_gtsam("linearize")
            raise FactorError("values", values, allowed="must be gtsam.Values", remedy="unwhitenedError takes arrays")
        self._read_values(values)  # raises our error for a missing value
        return self.to_gtsam().linearize(values)

    def to_gtsam(self) -> Any:
        """Return a factor for gtsam.NonlinearFactorGraph: GTSAM's native factor if it exists, else a CustomFactor.

        A CustomFactor that returns a block of the wrong shape ends the process. This one raises an error instead.
        """
        library = require_gtsam("to_gtsam")
        model = self._frame_noise.to_gtsam()
        native = self._make_native(library, model)
        if native is not None:
            return native

        def evaluate(_: Any, values: Any, blocks: Any) -> FloatArray:
            return self.unwhitenedError(values, blocks)

        return library.CustomFactor(model, self._keys, evaluate)

    def equals(self, other: object, tol: float = 1e-9) -> bool:
        """Return True if keys are the same, and numbers and noise are equal within a tolerance.

        GTSAM compares less: MagFactor and MagFactor1 only keys and noise, MagPoseFactor all but `body_P_sensor`.
        """
        if not isinstance(other, Factor) or type(self) is not type(other) or self._keys != other._keys:
            return False
        own, others = self._data(), other._data()
        if len(own) != len(others) or not self._noise.equals(other._noise, tol):
            return False
        return all(abs(a - b) <= tol for a, b in zip(own, others, strict=True))

    def clone(self) -> Self:
        """Return a copy."""
        return copy.copy(self)

    def cloneWithNewNoiseModel(self, model: object) -> Self:
        """Return a copy with another noise model."""
        other = copy.copy(self)
        other._set_model(model)
        return other

    def rekey(self, keys: Sequence[object]) -> Self:
        """Return a copy with other keys, one per unknown."""
        if len(keys) != len(self._keys):
            raise FactorError("keys", list(keys), allowed=f"must be {len(self._keys)}")
        other = copy.copy(self)
        other._keys = arguments.validate_keys(keys)
        return other

    def print(self, s: str = "Factor\n", keyFormatter: Callable[[int], str] = format_key) -> None:
        """Print `s`, the keys and the noise model, in the format of GTSAM."""
        sys.stdout.write(self._format(s, keyFormatter))

    def printKeys(self, s: str = "Factor", formatter: Callable[[int], str] = format_key) -> None:
        """Print the keys on a line after `s`."""
        sys.stdout.write(f"{s} {''.join(f' {formatter(key)}' for key in self._keys)}\n")

    def __repr__(self) -> str:
        """Return the text that `print` writes."""
        return self._format("Factor\n", format_key)

    def _format(self, s: str, formatter: Callable[[int], str]) -> str:
        names = "".join(f" {formatter(key)}" for key in self._keys)
        return f"{s}  keys = {{{names} }}\n{self._noise.describe()}{self._format_data()}"

    def _set_model(self, model: object) -> None:
        self._noise = make_noise(model, self._rows)
        rotation = self._noise_rotation
        self._frame_noise = self._noise if rotation is None else self._noise.rotate(rotation)

    def _read_values(self, values: Any) -> list[Numbers]:
        return [variable.find(values, key) for variable, key in zip(self.variables, self._keys, strict=True)]

    def _evaluate(self, given: Sequence[object], H: Sequence[FloatArray | None]) -> FloatArray:
        """Return the residual at values in the order of the keys, and fill the arrays H that are not None."""
        numbers = [variable.read(variable.name, value) for variable, value in zip(self.variables, given, strict=True)]
        residual = self._evaluate_residual(numbers)
        for i, block in enumerate(H):
            if block is not None:
                self._check_jacobian_array(i, block, len(H))
        if all(block is None for block in H):
            return residual
        for block, jacobian in zip(H, self._evaluate_jacobians(numbers), strict=True):
            if block is not None:
                block[...] = jacobian
        return residual

    def _check_jacobian_array(self, i: int, given: Any, count: int) -> None:
        """Raise `FactorError` unless the Jacobian can be written into the array."""
        shape = (self._rows, self.variables[i].dim)
        array = isinstance(given, np.ndarray)
        if array and given.shape == shape and given.dtype == np.float64 and given.flags.writeable:
            return
        name = f"H{i + 1}" if count > 1 else "H"
        problem = f"{given.shape} of {given.dtype}" if array else given
        if array and given.shape == shape and given.dtype == np.float64:
            problem = "is read-only"
        raise FactorError(name, problem, allowed=f"must be an array {shape} of float64, which is filled in place")

    def _evaluate_residual(self, numbers: Sequence[Numbers]) -> FloatArray:
        """Return the residual. Raises `FactorError` if a number is not finite, or the length is wrong."""
        parts = self._residual(*numbers)
        if len(parts) != self._rows or not math.isfinite(sum(parts)):
            name = f"residual of {type(self).__name__}"
            raise FactorError(name, list(parts), allowed=f"must be {self._rows} finite numbers")
        return np.array(parts)

    def _evaluate_jacobians(self, numbers: Sequence[Numbers]) -> list[FloatArray]:
        """Return the Jacobians. Raises `FactorError` if a number is not finite, or a shape is wrong."""
        blocks = [np.array(block, dtype=np.float64) for block in self._jacobians(*numbers)]
        shapes = [(self._rows, variable.dim) for variable in self.variables]
        if [block.shape for block in blocks] != shapes or not all(map(arguments.all_finite, blocks)):
            name = f"Jacobians of {type(self).__name__}"
            raise FactorError(name, [block.tolist() for block in blocks], allowed=f"must be finite, of shapes {shapes}")
        return blocks
