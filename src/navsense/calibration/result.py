"""The result of a calibration, and how it is applied.

    reading    m = scale soft_iron (direction seen in the sensor) + bias          det soft_iron = 1
    calibrated c = soft_iron^-1 (m - bias) [strength / scale, where the strength of the field was given]

c is the earth's field in the sensor's frame: of length `scale`, as strong as this sensor sees it, or of the strength
that was given. `scale` and `bias` have the unit of the readings, the soft iron has none, the direction is a unit vector
of the world, None where no attitude was known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from navsense import atomic
from navsense.calibration.units import checked_positive, checked_unit, named
from navsense.calibration.verdict import Verdict, Whiteness
from navsense.errors import CalibrationError, Where
from navsense.inputs import FileKind, parse_json, read_bytes
from navsense.series import make_read_only
from navsense.typing import AnyArray, FloatArray, Vectors

FORMAT: Final = "navsense calibration 1"
"""First entry of a saved calibration."""

BOUND: Final = 1e-6
"""What lengths, determinants and correlations in a file may be off by rounding."""

SMALLEST: Final = math.ulp(0.0)
"""Least scale above 0."""

NAMES: Final = (
    "scale",
    *(f"{what}.{axis}" for what in ("direction", "bias") for axis in "xyz"),
    *(f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"),
)
"""All numbers that a covariance may be of."""

FILE: Final = FileKind("calibration", CalibrationError, "must be a file that Calibration.save wrote")


@dataclass(frozen=True, eq=False)
class Calibration:
    """A magnetometer's calibration; the formula stands at the top of the module, and in `formula` with its numbers.

    `scale`, `bias` (3,) and `residual_stddev` (one axis, rms) in `unit` (None: that of the readings), `direction` (3,)
    in the world or None, `soft_iron` (3, 3). `covariance` (n, n) is that of the numbers in `names`, such as "bias.x" or
    "soft_iron.xy" (row x, column y); it is singular where these are bound to each other, a unit vector's three, and
    `freedom` of them are free. `count` readings, `strength` what was given, `method` what it was found by.
    """

    method: str
    scale: float
    direction: FloatArray | None
    bias: FloatArray
    soft_iron: FloatArray
    covariance: FloatArray
    names: tuple[str, ...]
    freedom: int
    residual_stddev: float
    count: int
    unit: str | None
    strength: float | None
    verdict: Verdict

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was copied or pickled, read-only again."""
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        """Make the arrays read-only."""
        for array in (self.direction, self.bias, self.soft_iron, self.covariance):
            if array is not None:
                make_read_only(array)

    @property
    def gain(self) -> float:
        """Return strength / scale, 1 where no strength was given."""
        return 1.0 if self.strength is None else self.strength / self.scale

    @property
    def matrix(self) -> FloatArray:
        """Return M (3, 3) of calibrated = M (reading - bias)."""
        return np.asarray(self.gain * np.linalg.inv(self.soft_iron))

    @property
    def stddev(self) -> Mapping[str, float]:
        """Return the standard deviation of each number in `names`."""
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def apply(self, field: ArrayLike) -> Vectors:
        """Return the earth's field (n, 3) or (3,) in the sensor's frame for readings of this shape, in their unit.

        Rows that are NaN stay so; a row gives the same to the last bit alone and among others. Raises
        `CalibrationError` for another shape or no numbers.
        """
        given = _readings(field)
        x, y, z = (given[..., axis] - self.bias[axis] for axis in range(3))
        out = np.empty(given.shape)
        for axis, row in enumerate(self.matrix.tolist()):  # no product of matrices: a row is the same among others
            out[..., axis] = row[0] * x + row[1] * y + row[2] * z
        return out

    @property
    def formula(self) -> str:
        """Return what `apply` does, with its numbers and units, so that it can be done anywhere."""
        unit = named(self.unit)
        rows = "\n".join("    [" + ", ".join(f"{value: .9g}" for value in row) + "]" for row in self.matrix)
        bias = ", ".join(f"{value:.9g}" for value in self.bias)
        length = self.scale if self.strength is None else self.strength
        return (
            "calibrated = M (reading - bias), in the sensor's frame,"
            f" of length {length:.6g}{unit} in the earth's field alone\n"
            f"  bias = ({bias}){unit}\n  M =\n{rows}"
        )

    def __str__(self) -> str:
        """Return all that is known, with standard deviations and units."""
        unit, stddev = named(self.unit), self.stddev
        lines = [
            f"magnetometer calibration by {self.method} from {self.count} readings",
            f"scale      {self.scale:.6g} +- {stddev['scale']:.2g}{unit}",
            f"bias       {_spread(self.bias, 'bias', stddev)}{unit}",
        ]
        if self.direction is not None:
            lines.append(f"direction  {_spread(self.direction, 'direction', stddev)} in the world")
        for axis, row in zip("xyz", self.soft_iron, strict=True):
            values = ", ".join(_value(v, stddev.get(f"soft_iron.{axis}{k}")) for v, k in zip(row, "xyz", strict=True))
            lines.append(f"{'soft iron ' if axis == 'x' else ' ' * 10} [{values}]")
        lines.append(f"residual   {self.residual_stddev:.3g}{unit} an axis")
        return "\n".join([*lines, self.formula, f"verdict    {self.verdict}"])

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON. Raises `CalibrationError` where the file cannot be written."""
        try:
            with atomic.replace_file(Path(path)) as part:
                part.write_text(json.dumps(_plain(self), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            missing = not Path(path).parent.is_dir()
            remedy = f"make the folder {Path(path).parent} first" if missing else "give a path that can be written"
            what = error.strerror or str(error)
            raise CalibrationError("calibration", what, where=Where(str(path)), remedy=remedy) from error

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Return a calibration that `save` wrote. Raises `CalibrationError` for another file."""
        data = read_bytes(str(path), FILE)
        try:
            entries = parse_json(data)
            return _from_plain(entries)
        except CalibrationError as error:
            error.where = Where(str(path))
            raise
        except (ValueError, KeyError, TypeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise CalibrationError("calibration", what, allowed=FILE.allowed, where=Where(str(path))) from error


def _readings(field: ArrayLike) -> FloatArray:
    """Return readings (n, 3) or (3,) as floats, masked rows as NaN; raise `CalibrationError` for another thing."""
    try:
        given: AnyArray = np.asarray(field)
    except (ValueError, TypeError) as error:
        raise CalibrationError("field", str(error), allowed="must be numbers (n, 3) or (3,)") from error
    if given.dtype.kind not in "fiu":
        raise CalibrationError("field", f"of type {given.dtype}", allowed="must be numbers (n, 3) or (3,)")
    if given.ndim not in (1, 2) or given.shape[-1] != 3:
        raise CalibrationError("field", f"shape {given.shape}", allowed="must be (n, 3) or (3,)")
    rows = np.asarray(given, dtype=np.float64)
    return np.where(np.ma.getmaskarray(np.ma.asarray(field)), math.nan, rows) if np.ma.is_masked(field) else rows


def _value(value: float, stddev: float | None) -> str:
    """Return a number with its standard deviation, if it has one."""
    return f"{value:.6g}" if stddev is None else f"{value:.6g} +- {stddev:.2g}"


def _spread(values: FloatArray, name: str, stddev: Mapping[str, float]) -> str:
    """Return three numbers with their standard deviations."""
    return "(" + ", ".join(_value(v, stddev.get(f"{name}.{k}")) for v, k in zip(values, "xyz", strict=True)) + ")"


def _plain(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as numbers, texts, lists and dictionaries."""
    verdict, white = calibration.verdict, calibration.verdict.whiteness
    direction = calibration.direction
    return {
        "format": FORMAT,
        "formula": calibration.formula.splitlines(),
        "method": calibration.method,
        "unit": calibration.unit,
        "strength": calibration.strength,
        "count": calibration.count,
        "scale": calibration.scale,
        "direction": None if direction is None else direction.tolist(),
        "bias": calibration.bias.tolist(),
        "soft_iron": calibration.soft_iron.tolist(),
        "residual_stddev": calibration.residual_stddev,
        "names": list(calibration.names),
        "freedom": calibration.freedom,
        "covariance": calibration.covariance.tolist(),
        "verdict": {
            "weakest": verdict.weakest,
            "explained": verdict.explained,
            "whiteness": {"white": white.white, "inflation": white.inflation, "span": white.span},
            "reasons": list(verdict.reasons),
        },
    }


def _array(values: object, shape: tuple[int, ...]) -> FloatArray:
    """Return numbers as an array of this shape; raise `ValueError` unless they are finite ones."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"an array of shape {array.shape} where finite numbers {shape} stand")
    return array


def _number(entries: Mapping[str, Any], name: str, low: float, high: float = math.inf) -> float:
    """Return an entry that is a finite number from `low` to `high`; raise `ValueError` for another."""
    value = entries[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} {value!r}")
    return float(value)


def _whole(entries: Mapping[str, Any], name: str) -> int:
    """Return an entry that is a whole number from 1 on; raise `ValueError` for another."""
    value = entries[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} {value!r}")
    return value


def _texts(entries: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return an entry that is a list of texts; raise `ValueError` for another."""
    value = entries[name]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name} {value!r}")
    return tuple(value)


def _soft_iron(entries: Mapping[str, Any]) -> FloatArray:
    """Return the soft iron; raise `ValueError` unless its determinant is 1."""
    iron = _array(entries["soft_iron"], (3, 3))
    if not abs(float(np.linalg.det(iron)) - 1.0) <= BOUND:
        raise ValueError(f"soft iron of determinant {np.linalg.det(iron):.6g}")
    return iron


def _direction(entries: Mapping[str, Any]) -> FloatArray | None:
    """Return the direction or None; raise `ValueError` unless its length is 1."""
    if entries["direction"] is None:
        return None
    direction = _array(entries["direction"], (3,))
    if not abs(float(np.linalg.norm(direction)) - 1.0) <= BOUND:
        raise ValueError(f"direction of length {np.linalg.norm(direction):.6g}")
    return direction


def _covariance(entries: Mapping[str, Any], names: tuple[str, ...]) -> FloatArray:
    """Return the covariance of the names; raise `ValueError` unless it may be one of them."""
    if "scale" not in names or len(set(names)) < len(names) or not set(names) <= set(NAMES):
        raise ValueError(f"names {names}")
    covariance = _array(entries["covariance"], (len(names), len(names)))
    variances = np.diag(covariance)
    if not (variances >= 0.0).all():
        raise ValueError("covariance with a negative variance")
    bound = np.sqrt(np.outer(variances, variances))
    if not ((np.abs(covariance) <= (1.0 + BOUND) * bound) & (np.abs(covariance - covariance.T) <= BOUND * bound)).all():
        raise ValueError("covariance that is not symmetric, or larger than its variances allow")
    return covariance


def _verdict(entries: Mapping[str, Any]) -> Verdict:
    """Return the verdict; raise `ValueError` for what is none."""
    white = entries["whiteness"]
    if not isinstance(white["white"], bool):
        raise TypeError(f"white {white['white']!r}")
    whiteness = Whiteness(white["white"], _number(white, "inflation", 1.0), _whole(white, "span"))
    weakest, explained = _number(entries, "weakest", 0.0), _number(entries, "explained", -math.inf, 1.0)
    return Verdict(weakest, explained, whiteness, _texts(entries, "reasons"))


def _from_plain(entries: Mapping[str, Any]) -> Calibration:
    """Return the calibration of what `_plain` gave; raise `ValueError`, `KeyError`, `TypeError` for other things."""
    if entries["format"] != FORMAT:
        raise CalibrationError("format", entries["format"], allowed=f"must be {FORMAT}")
    names, unit = _texts(entries, "names"), checked_unit(entries["unit"])
    return Calibration(
        method=str(entries["method"]),
        scale=_number(entries, "scale", SMALLEST),
        direction=_direction(entries),
        bias=_array(entries["bias"], (3,)),
        soft_iron=_soft_iron(entries),
        covariance=_covariance(entries, names),
        names=names,
        freedom=_whole(entries, "freedom"),
        residual_stddev=_number(entries, "residual_stddev", 0.0),
        count=_whole(entries, "count"),
        unit=unit,
        strength=checked_positive("strength", entries["strength"]),
        verdict=_verdict(entries["verdict"]),
    )
