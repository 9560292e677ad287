"""The result of a magnetometer calibration, and its application to readings.

    reading    m = scale soft_iron (direction in the sensor frame) + bias         det soft_iron = 1
    calibrated c = soft_iron^-1 (m - bias) [strength / scale, if the strength of the field was given]

c is the earth's field in the sensor frame. Its length is `scale`, the field strength as the sensor measures it, or the
strength that was given. `scale` and `bias` have the unit of the readings; the soft iron has no unit. The direction is a
unit vector in the world frame, None if no attitude was known.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from navsense.calibration.checks import validate_array
from navsense.calibration.units import (
    DISPLAY_UNIT,
    convert_field,
    format_display_unit,
    format_unit,
    validate_positive,
    validate_unit,
)
from navsense.calibration.verdict import Verdict, Whiteness
from navsense.core import atomic
from navsense.core.errors import CalibrationError, Where
from navsense.core.inputs import FileKind, parse_json, read_bytes
from navsense.core.readings import make_read_only
from navsense.core.summaries import Summary, format_summary_html, format_title
from navsense.core.typing import FloatArray, Vectors
from navsense.core.validation import check_number

FORMAT: Final = "navsense calibration 1"
"""First entry of a saved calibration."""

TOLERANCE: Final = 1e-6
"""Tolerance on lengths, determinants and correlations in a file."""

NAMES: Final = (
    "scale",
    *(f"{vector}.{axis}" for vector in ("direction", "bias") for axis in "xyz"),
    *(f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz"),
)
"""All numbers that a covariance can contain."""

FIELD_NAMES: Final = ("scale", "bias")
"""Starts of the names of the numbers that have the unit of the readings."""

ENTRIES: Final = tuple(
    """method unit strength count scale direction bias soft_iron residual_stddev names degrees_of_freedom
    covariance""".split()
)
"""Fields of a calibration in a file, without the verdict."""

FILE_KIND: Final = FileKind("calibration", CalibrationError, "must be a file that Calibration.save wrote")


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of a magnetometer. `formula` is the equation with its numbers.

    method: "known attitude", "ellipsoid" or "sphere".
    scale: strength of the field as the sensor measures it.
    direction: unit vector (3,) of the field, world frame, or None.
    bias: (3,), sensor frame.
    soft_iron: (3, 3), sensor frame.
    covariance: (n, n) of the numbers in `names`, such as "bias.x" or "soft_iron.xy" (row x, column y); singular if the
        numbers depend on each other, as those of a unit vector.
    degrees_of_freedom: number of independent ones.
    residual_stddev: standard deviation of the residuals per axis.
    count: number of readings.
    unit: of scale, bias and residual_stddev; None means the unit of the readings.
    strength: the known strength that was given, or None.

    >>> calibration = ns.calibration.Calibration.load("calibration.json")
    >>> calibration.apply(field).shape  # the readings
    (599, 3)
    """

    method: str
    scale: float
    direction: FloatArray | None
    bias: FloatArray
    soft_iron: FloatArray
    covariance: FloatArray
    names: tuple[str, ...]
    degrees_of_freedom: int
    residual_stddev: float
    count: int
    unit: str | None
    strength: float | None
    verdict: Verdict

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or pickled calibration with read-only arrays."""
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        for array in (self.direction, self.bias, self.soft_iron, self.covariance):
            if array is not None:
                make_read_only(array)

    def to_unit(self, unit: str) -> Calibration:
        """Return the calibration of readings in another unit, such as "nT".

        Raises `CalibrationError` for an unknown unit, and for a calibration without a unit.
        """
        target = validate_unit(unit)
        if target is None or self.unit is None:
            raise CalibrationError("unit", unit, allowed="requires a calibration with a unit, and the name of a unit")
        convert = partial(convert_field, unit=self.unit, target=target)
        factors = np.array([float(convert(1.0)) if name.startswith(FIELD_NAMES) else 1.0 for name in self.names])
        return replace(
            self,
            scale=float(convert(self.scale)),
            bias=convert(self.bias),
            covariance=self.covariance * np.outer(factors, factors),
            residual_stddev=float(convert(self.residual_stddev)),
            strength=None if self.strength is None else float(convert(self.strength)),
            unit=target,
        )

    @property
    def gain(self) -> float:
        """Ratio of the given strength to `scale`, 1 if no strength was given."""
        return 1.0 if self.strength is None else self.strength / self.scale

    @property
    def matrix(self) -> FloatArray:
        """M (3, 3) of calibrated = M (reading - bias)."""
        return np.asarray(self.gain * np.linalg.inv(self.soft_iron))

    @property
    def stddev(self) -> Mapping[str, float]:
        """The standard deviation of each number in `names`."""
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def apply(self, field: ArrayLike) -> Vectors:
        """Return the earth's field (n, 3) or (3,) in the sensor frame for readings of this shape, in their unit.

        Rows that are NaN or masked become NaN. The result of a row is the same, to the last bit, alone and in a batch.
        Raises `CalibrationError` for a wrong shape or type.
        """
        given = validate_array("field", field, "must be numbers (n, 3) or (3,)")
        if given.ndim not in (1, 2) or given.shape[-1] != 3:
            raise CalibrationError("field", f"shape {given.shape}", allowed="must be (n, 3) or (3,)")
        readings: FloatArray = np.asarray(given, dtype=np.float64)
        if np.ma.is_masked(field):
            readings = np.where(np.ma.getmaskarray(np.ma.asarray(field)), math.nan, readings)
        x, y, z = (readings[..., axis] - self.bias[axis] for axis in range(3))
        out = np.empty(readings.shape)
        for axis, row in enumerate(self.matrix.tolist()):  # a matrix product would depend on the number of rows
            out[..., axis] = row[0] * x + row[1] * y + row[2] * z
        return out

    @property
    def formula(self) -> str:
        """The equation that `apply` evaluates, with its numbers in the unit of the readings."""
        unit, name = format_unit(self.unit), "" if self.unit is None else f"{self.unit}, "
        rows = "\n".join("    [" + ", ".join(f"{value: .9g}" for value in row) + "]" for row in self.matrix)
        bias = ", ".join(f"{value:.9g}" for value in self.bias)
        length = self.scale if self.strength is None else self.strength
        return (
            f"calibrated = M (reading - bias), sensor frame, in {name}the unit of the readings\n"
            f"  |calibrated| = {length:.6g}{unit} in the earth's field alone\n"
            f"  bias = ({bias}){unit}\n  M =\n{rows}"
        )

    def __str__(self) -> str:
        """Return all numbers in microtesla with deviations of 1 sigma, the formula and the verdict."""
        shown = self if self.unit is None else self.to_unit(DISPLAY_UNIT)
        unit, stddev = format_display_unit(self.unit), shown.stddev
        lines = [
            f"magnetometer calibration by {self.method} from {self.count} readings; ± is 1 sigma",
            f"scale      {shown.scale:.6g} ± {stddev['scale']:.2g}{unit}",
            f"bias       {_format_vector(shown.bias, 'bias', stddev)}{unit}",
        ]
        if self.direction is not None:
            lines.append(f"direction  {_format_vector(self.direction, 'direction', stddev)}, world")
        for axis, row in zip("xyz", self.soft_iron, strict=True):
            values = ", ".join(
                _format_estimate(value, stddev.get(f"soft_iron.{axis}{column}"))
                for value, column in zip(row, "xyz", strict=True)
            )
            lines.append(f"{'soft iron ' if axis == 'x' else ' ' * 10} [{values}]")
        lines.append(f"residual   {shown.residual_stddev:.3g}{unit} per axis (1 sigma)")
        return "\n".join([*lines, self.formula, f"verdict    {self.verdict}"])

    __repr__, _repr_html_ = format_title, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        shown = self if self.unit is None else self.to_unit(DISPLAY_UNIT)
        unit, verdict = format_display_unit(self.unit), "ok" if self.verdict.ok else "poor"
        title = f"by {self.method}: {self.count} readings, strength {shown.scale:.5g}{unit}, verdict {verdict}"
        direction = np.full(3, math.nan) if self.direction is None else self.direction
        values = (shown.scale, *direction, *shown.bias, *self.soft_iron.ravel())
        rows = [
            (
                name,
                f"{value:.6g}",
                f"{shown.stddev[name]:.2g}" if name in shown.stddev else "",
                unit.strip() if name.startswith(FIELD_NAMES) else "",
            )
            for name, value in zip(NAMES, values, strict=True)
            if not math.isnan(value)
        ]
        return Summary("Calibration", title, ("parameter", "value", "1 sigma", "unit"), rows)

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON. Raises `CalibrationError` if the file cannot be written."""
        try:
            with atomic.replace_file(Path(path)) as part:
                part.write_text(json.dumps(_to_json(self), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            missing = not Path(path).parent.is_dir()
            remedy = f"make the folder {Path(path).parent} first" if missing else "give a path that can be written"
            what = error.strerror or str(error)
            raise CalibrationError("calibration", what, where=Where(str(path)), remedy=remedy) from error

    @classmethod
    def load(cls, path: str | Path, *, unit: str | None = None) -> Calibration:
        """Read a calibration that `save` wrote. Raises `CalibrationError` for another file.

        unit: of the readings that you want to calibrate. Default: the unit in the file.
        """
        data = read_bytes(str(path), FILE_KIND)
        try:
            calibration = _from_json(parse_json(data))
            return calibration if unit is None else calibration.to_unit(unit)
        except CalibrationError as error:
            error.where = Where(str(path))
            raise
        except ValueError as error:
            line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
            problem = "is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            where = Where(str(path), line)
            raise CalibrationError("calibration", problem, allowed=FILE_KIND.allowed, where=where) from error


def _format_estimate(value: float, stddev: float | None) -> str:
    return f"{value:.6g}" if stddev is None else f"{value:.6g} ± {stddev:.2g}"


def _format_vector(values: FloatArray, name: str, stddev: Mapping[str, float]) -> str:
    axes = zip(values, "xyz", strict=True)
    return "(" + ", ".join(_format_estimate(value, stddev.get(f"{name}.{axis}")) for value, axis in axes) + ")"


def _to_json(calibration: Calibration) -> dict[str, Any]:
    """Return the entries of the JSON file."""
    values = {name: getattr(calibration, name) for name in ENTRIES}
    return {
        "format": FORMAT,
        "formula": calibration.formula.splitlines(),
        **{name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()},
        "verdict": asdict(calibration.verdict),
    }


def _parse_entry(entries: object, name: str, allowed: str = "", is_valid: Callable[[Any], bool] | None = None) -> Any:
    """Return an entry of a JSON object. Raises `CalibrationError` if it is missing or not valid."""
    if not isinstance(entries, Mapping) or name not in entries:
        raise CalibrationError(f"entry {name!r}", "is missing", allowed=FILE_KIND.allowed)
    value = entries[name]
    if is_valid is not None and not is_valid(value):
        raise CalibrationError(name, value, allowed=allowed)
    return value


def _parse_array(
    entries: object,
    name: str,
    shape: tuple[int, ...],
    allowed: str = "",
    is_valid: Callable[[FloatArray], Any] = np.isfinite,
) -> FloatArray:
    """Return an array. Raises `CalibrationError` for another shape, invalid numbers, or an array that is not valid."""
    value, allowed_numbers = _parse_entry(entries, name), f"must be finite numbers {shape}"
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise CalibrationError(name, value, allowed=allowed_numbers) from error
    if array.shape != shape or not np.isfinite(array).all():
        raise CalibrationError(name, value, allowed=allowed_numbers)
    if not np.all(is_valid(array)):
        raise CalibrationError(name, array.tolist(), allowed=allowed)
    return array


def _parse_number(entries: object, name: str, low: float, high: float = sys.float_info.max) -> float:
    return check_number(name, _parse_entry(entries, name), low, high, error=CalibrationError)


def _parse_count(entries: object, name: str) -> int:
    allowed = "must be an integer from 1 up"
    return int(_parse_entry(entries, name, allowed, lambda value: type(value) is int and value >= 1))


def _parse_texts(entries: object, name: str) -> tuple[str, ...]:
    texts = _parse_entry(entries, name)
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise CalibrationError(name, texts, allowed="must be a list of texts")
    return tuple(texts)


def _is_covariance(matrix: FloatArray) -> bool:
    """Return True for a symmetric matrix with variances >= 0 and correlations from -1 to 1, within a tolerance."""
    variances = np.diag(matrix)
    bound = np.sqrt(np.outer(np.maximum(variances, 0.0), np.maximum(variances, 0.0)))
    within = np.abs(matrix) <= (1.0 + TOLERANCE) * bound
    symmetric = np.abs(matrix - matrix.T) <= TOLERANCE * bound
    return bool((variances >= 0.0).all() and (within & symmetric).all())


def _from_json(entries: object) -> Calibration:
    """Return the calibration from the entries of a JSON file. Raises `CalibrationError` for invalid entries."""
    _parse_entry(entries, "format", f"must be {FORMAT}", lambda value: value == FORMAT)
    names = _parse_texts(entries, "names")
    if "scale" not in names or len(set(names)) < len(names) or not set(names) <= set(NAMES):
        raise CalibrationError("names", list(names), allowed="must be different names of parameters, with scale")
    direction = None
    if _parse_entry(entries, "direction") is not None:
        direction = _parse_array(
            entries, "direction", (3,), "must be a unit vector", lambda v: abs(np.linalg.norm(v) - 1.0) <= TOLERANCE
        )
    soft_iron = _parse_array(
        entries, "soft_iron", (3, 3), "must have the determinant 1", lambda m: abs(np.linalg.det(m) - 1.0) <= TOLERANCE
    )
    allowed = "must be symmetric, with variances >= 0 and correlations from -1 to 1"
    covariance = _parse_array(entries, "covariance", (len(names), len(names)), allowed, _is_covariance)
    verdict = _parse_entry(entries, "verdict")
    whiteness = _parse_entry(verdict, "whiteness")
    white = _parse_entry(whiteness, "white", "must be true or false", lambda value: isinstance(value, bool))
    return Calibration(
        method=str(_parse_entry(entries, "method")),
        scale=_parse_number(entries, "scale", math.ulp(0.0)),
        direction=direction,
        bias=_parse_array(entries, "bias", (3,)),
        soft_iron=soft_iron,
        covariance=covariance,
        names=names,
        degrees_of_freedom=_parse_count(entries, "degrees_of_freedom"),
        residual_stddev=_parse_number(entries, "residual_stddev", 0.0),
        count=_parse_count(entries, "count"),
        unit=validate_unit(_parse_entry(entries, "unit")),
        strength=validate_positive("strength", _parse_entry(entries, "strength")),
        verdict=Verdict(
            _parse_number(verdict, "max_relative_stddev", 0.0),
            _parse_number(verdict, "r_squared", -sys.float_info.max, 1.0),
            Whiteness(white, _parse_number(whiteness, "inflation", 1.0), _parse_count(whiteness, "span")),
            _parse_texts(verdict, "reasons"),
        ),
    )
