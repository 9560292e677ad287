"""The result of a calibration: applied, printed, saved."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from navsense.calibration import Calibration
from navsense.calibration.verdict import Verdict, Whiteness
from navsense.core.errors import CalibrationError

IRON = np.array([[1.1, 0.05, -0.03], [0.04, 0.95, 0.02], [-0.06, 0.07, 0.9]])
IRON /= np.cbrt(np.linalg.det(IRON))
NAMES = ("scale", *(f"{what}.{axis}" for what in ("direction", "bias") for axis in "xyz"))
NAMES += tuple(f"soft_iron.{row}{column}" for row in "xyz" for column in "xyz")


def make_calibration() -> Calibration:
    deviation = np.arange(1.0, 17.0) / 100.0
    return Calibration(
        method="known attitude",
        scale=48.0,
        direction=np.array([0.0, 0.6, -0.8]),
        bias=np.array([10.0, -20.0, 30.0]),
        soft_iron=IRON.copy(),
        covariance=np.diag(deviation**2),
        names=NAMES,
        degrees_of_freedom=14,
        residual_stddev=0.3,
        count=1000,
        unit="uT",
        strength=50.0,
        verdict=Verdict(0.02, 0.9, Whiteness(white=False, inflation=2.5, span=8), ("tilt it",)),
    )


@pytest.mark.requirement("FAC-7")
def test_apply_inverts_the_model() -> None:
    """By definition, m = scale S u + bias. Applying the calibration gives strength u."""
    field_s = np.random.default_rng(1).normal(size=(20, 3))
    field_s /= np.linalg.norm(field_s, axis=1)[:, None]
    readings = np.array([48.0 * (IRON @ u) + [10.0, -20.0, 30.0] for u in field_s])
    assert np.allclose(make_calibration().apply(readings), 50.0 * field_s, rtol=0.0, atol=1e-12)
    unscaled = replace(make_calibration(), strength=None)
    assert np.allclose(unscaled.apply(readings), 48.0 * field_s, rtol=0.0, atol=1e-12)
    assert np.allclose(make_calibration().apply(readings[0]), 50.0 * field_s[0], rtol=0.0, atol=1e-12)


def test_printed_formula_equals_apply() -> None:
    """The test evaluates the formula with the printed numbers."""
    text = make_calibration().formula
    bias = [float(value) for value in re.search(r"bias = \((.*)\) uT", text).group(1).split(",")]
    rows = [[float(v) for v in row.split(",")] for row in re.findall(r"^\s+\[(.*)\]$", text, re.MULTILINE)]
    reading = np.array([33.0, 11.0, -7.0])
    by_hand = [sum(m * (r - b) for m, r, b in zip(row, reading, bias, strict=True)) for row in rows]
    assert np.allclose(by_hand, make_calibration().apply(reading), rtol=1e-7, atol=0.0)
    assert text.startswith("calibrated = M (reading - bias), sensor frame, in uT, the unit of the readings\n")
    assert "|calibrated| = 50 uT in the earth's field alone" in text
    assert "|calibrated| = 48 uT" in replace(make_calibration(), strength=None).formula
    assert "uT" not in replace(make_calibration(), unit=None).formula


def test_text_has_every_number_with_deviation_and_unit() -> None:
    text = str(make_calibration())
    assert "scale      48 ± 0.01 µT" in text
    assert "bias       (10 ± 0.05, -20 ± 0.06, 30 ± 0.07) µT" in text
    assert "direction  (0 ± 0.02, 0.6 ± 0.03, -0.8 ± 0.04), world" in text
    assert f"{IRON[2, 2]:.6g} ± 0.16]" in text
    assert "residual   0.3 µT per axis (1 sigma)" in text
    assert "1000 readings" in text
    assert text.endswith("- tilt it")
    assert make_calibration().formula in text
    plain = replace(
        make_calibration(), direction=None, covariance=np.diag([1.0]), names=("scale",), degrees_of_freedom=1
    )
    assert "direction" not in str(plain)
    assert "bias       (10, -20, 30) µT" in str(plain)


def test_invalid_rows_stay_invalid() -> None:
    readings = np.array([[math.nan, 1.0, 2.0], [1.0, 2.0, 3.0]])
    calibrated = make_calibration().apply(readings)
    assert np.isnan(calibrated[0]).all()
    assert np.isfinite(calibrated[1]).all()


@pytest.mark.parametrize("shape", [(), (2,), (5, 4), (2, 5, 3)])
def test_other_shapes_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(CalibrationError, match=re.escape(str(shape))):
        make_calibration().apply(np.zeros(shape))


def test_results_are_read_only() -> None:
    found = make_calibration()
    assert found.direction is not None
    for array in (found.bias, found.soft_iron, found.covariance, found.direction):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("plain", [False, True])
def test_file_round_trip_is_exact(tmp_path: Path, plain: bool) -> None:
    found = replace(make_calibration(), direction=None, strength=None, unit=None) if plain else make_calibration()
    found.save(tmp_path / "mag.json")
    back = Calibration.load(tmp_path / "mag.json")
    assert str(back) == str(found)
    for name in (
        "method",
        "scale",
        "names",
        "degrees_of_freedom",
        "residual_stddev",
        "count",
        "unit",
        "strength",
        "verdict",
    ):
        assert getattr(back, name) == getattr(found, name), name
    for name in ("bias", "soft_iron", "covariance"):
        assert getattr(back, name).tobytes() == getattr(found, name).tobytes()
    assert (back.direction is None) == plain


def test_file_of_another_program_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "mag.json"
    with pytest.raises(CalibrationError, match="does not exist"):
        Calibration.load(file)
    make_calibration().save(file)
    good = json.loads(file.read_text(encoding="utf-8"))
    wrong: dict[str, object] = {
        "format": "navsense calibration 9",
        "bias": [1.0, 2.0],
        "scale": -1.0,
        "soft_iron": np.zeros((3, 3)).tolist(),
        "covariance": [[1.0]],
        "residual_stddev": math.nan,
        "verdict": 3,
        "names": None,
        "direction": [1.0, math.inf, 0.0],
    }
    for name, value in wrong.items():
        file.write_text(json.dumps({**good, name: value}), encoding="utf-8")
        with pytest.raises(CalibrationError, match=re.escape(str(file))):
            Calibration.load(file)
    for text in ("", "[]", "3", "[" * 100000, '{"format": 1'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(CalibrationError):
            Calibration.load(file)
    with pytest.raises(CalibrationError, match="folder"):
        Calibration.load(tmp_path)
    with pytest.raises(CalibrationError, match=re.escape(str(tmp_path))):
        make_calibration().save(tmp_path)


@pytest.mark.requirement("FAC-7")
def test_result_of_a_row_does_not_depend_on_other_rows() -> None:
    readings = 50.0 * np.random.default_rng(2).normal(size=(257, 3))
    together = make_calibration().apply(readings)
    assert together.tobytes() == np.array([make_calibration().apply(row) for row in readings]).tobytes()
    assert together[::2].tobytes() == make_calibration().apply(readings[::2]).tobytes()


@pytest.mark.parametrize("wrong", ["a", [[1.0, 2.0, 3.0], [1.0, 2.0]], np.zeros((2, 3), dtype=complex), None])
def test_missing_readings_are_not_corrected(wrong: object) -> None:
    with pytest.raises(CalibrationError, match=r"field: .*must be numbers \(n, 3\) or \(3,\)"):
        make_calibration().apply(wrong)  # type: ignore[arg-type]


def test_masked_rows_are_missing() -> None:
    masked = np.ma.masked_array(np.ones((3, 3)), mask=[[False] * 3, [False, True, False], [False] * 3])
    assert np.isnan(make_calibration().apply(masked)).any(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_copies_are_read_only(copied: Callable[[Calibration], Calibration]) -> None:
    again = copied(make_calibration())
    assert str(again) == str(make_calibration())
    assert again.direction is not None
    for array in (again.bias, again.soft_iron, again.covariance, again.direction):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.requirement("FAC-7")
def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError) as raised:
        make_calibration().save(tmp_path / "none" / "mag.json")
    assert raised.value.remedy == f"make the folder {tmp_path / 'none'} first"


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("strength", -1.0),
        ("strength", math.nan),
        ("strength", "50"),
        ("unit", "furlong"),
        ("unit", []),
        ("soft_iron", (5.0 * np.eye(3)).tolist()),
        ("direction", [0.0, 0.0, 0.0]),
        ("covariance", (-np.eye(16)).tolist()),
        ("covariance", (np.eye(16) + 2.0 * np.eye(16, k=1)).tolist()),
        ("covariance", (np.eye(16) + 2.0 * np.eye(16, k=1) + 2.0 * np.eye(16, k=-1)).tolist()),
        ("names", ["bias.x"] * 16),
        ("names", [*NAMES[1:], "other"]),
        ("names", "scale"),
        ("count", -1),
        ("count", 2.5),
        ("degrees_of_freedom", 0),
        ("scale", 0.0),
        ("scale", True),
        ("scale", math.inf),
        ("residual_stddev", -1.0),
        ("verdict.reasons", "none"),
        ("verdict.max_relative_stddev", -1.0),
        ("verdict.r_squared", 1.5),
        ("verdict.whiteness.white", "false"),
        ("verdict.whiteness.inflation", 0.5),
        ("verdict.whiteness.span", 0),
    ],
)
def test_damaged_entries_are_an_error(tmp_path: Path, place: str, value: object) -> None:
    path = tmp_path / "mag.json"
    make_calibration().save(path)
    entries = json.loads(path.read_text())
    *folders, name = place.split(".")
    inner = entries
    for folder in folders:
        inner = inner[folder]
    assert name in inner
    inner[name] = value
    path.write_text(json.dumps(entries))
    with pytest.raises(CalibrationError) as raised:
        Calibration.load(path)
    assert str(path) in str(raised.value)
    assert raised.value.allowed


def test_a_file_that_is_not_json_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text('{\n"format": 1,\n', encoding="utf-8")
    with pytest.raises(CalibrationError, match=r"calibration.json:3: calibration: is not JSON; must be a file that"):
        Calibration.load(path)
