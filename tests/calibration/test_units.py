"""Units of the field, and detection of a wrong unit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.calibration.load import read
from navsense.calibration.units import check_scale, format_unit, list_plausible_units, validate_strength, validate_unit
from navsense.core.errors import CalibrationError
from navsense.core.units import MAGNETIC_FIELD_UNITS


def test_field_has_the_same_value_in_every_unit() -> None:
    """Half a gauss is 50 uT by definition."""
    same = {"T": 5e-5, "mT": 0.05, "uT": 50.0, "nT": 50000.0, "G": 0.5, "mG": 500.0}
    assert set(same) == set(MAGNETIC_FIELD_UNITS)
    for unit, value in same.items():
        assert math.isclose(value * MAGNETIC_FIELD_UNITS[unit], 5e-5, rel_tol=1e-15)
        check_scale(value, unit, None)
        assert validate_strength(value, unit) == value


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("declared", sorted(MAGNETIC_FIELD_UNITS))
@pytest.mark.parametrize("likely", sorted(MAGNETIC_FIELD_UNITS))
def test_wrong_unit_is_named(declared: str, likely: str) -> None:
    """The units differ by factors of 1e3, 1e4, 1e5, 1e7 and 1e9."""
    value = 4.8e-5 / MAGNETIC_FIELD_UNITS[likely]
    if declared == likely:
        check_scale(value, declared, None)
        return
    with pytest.raises(CalibrationError) as raised:
        check_scale(value, declared, None)
    assert f'unit="{likely}"' in raised.value.remedy
    assert f"({declared})" in raised.value.what
    with pytest.raises(CalibrationError, match=f'unit="{likely}"'):
        validate_strength(value, declared)


def test_every_earth_field_is_accepted_and_its_unit_inferred() -> None:
    """The World Magnetic Model has 22 to 67 uT on the surface."""
    for tesla in (22e-6, 45e-6, 67e-6):
        for unit, factor in MAGNETIC_FIELD_UNITS.items():
            check_scale(tesla / factor, unit, None)
            assert unit in list_plausible_units(tesla / factor)


def test_implausible_field_is_an_error() -> None:
    with pytest.raises(CalibrationError, match="no usual unit"):
        check_scale(3e-20, "uT", None)


def test_numbers_without_a_unit_are_not_checked() -> None:
    check_scale(1.0, None, None)
    check_scale(123456789.0, None, None)
    assert validate_strength(1.0, None) == 1.0
    assert format_unit(None) == ""
    assert format_unit("uT") == " uT"


@pytest.mark.parametrize(("scale", "fits"), [(150.0, True), (150.1, False), (16.67, True), (16.6, False)])
def test_known_strength_bounds_the_scale_by_a_factor_of_three(scale: float, fits: bool) -> None:
    if fits:
        check_scale(min(scale, 149.9), "uT", 50.0)
    else:
        with pytest.raises(CalibrationError, match="must be"):
            check_scale(scale, "uT", 50.0)


def test_known_strength_alone_can_raise_an_error() -> None:
    with pytest.raises(CalibrationError, match="within a factor of 3 of the known strength, 25"):
        check_scale(80.0, "uT", 25.0)


@pytest.mark.parametrize("strength", [0.0, -5e-5, math.nan, math.inf, "50", True])
def test_invalid_strength(strength: float) -> None:
    with pytest.raises(CalibrationError, match="strength"):
        validate_strength(strength, "T")


def test_unknown_unit_error_lists_the_known_units() -> None:
    with pytest.raises(CalibrationError, match="nT"):
        validate_unit("tesla")
    assert validate_unit(None) is None


@pytest.mark.requirement("FAC-7")
def test_known_strength_is_compared_without_a_unit() -> None:
    check_scale(48e3, None, 50e3)
    with pytest.raises(CalibrationError, match=r"strength of the field: 4.8e\+04; must be within a factor of 3"):
        check_scale(48e3, None, 48e-6)


def test_strength_bounds_and_types() -> None:
    assert validate_strength(10, "uT") == 10.0
    assert validate_strength(150.0, "uT") == 150.0
    for kind in (np.float32(50.0), np.int64(50), np.array(50.0)):
        assert validate_strength(kind, "uT") == 50.0
    for wrong in ([50.0], np.array([50.0]), 50j, b"50"):
        with pytest.raises(CalibrationError, match="must be a number above 0"):
            validate_strength(wrong, "uT")
    with pytest.raises(CalibrationError, match=r"strength \(uT\): 4.8; "):
        validate_strength(0.48 * 10.000000000000002, "uT")


@pytest.mark.parametrize("unit", [[], {}, 1, ("T",)])
def test_invalid_unit(unit: Any) -> None:
    with pytest.raises(CalibrationError, match=r"unit: .* must be one of T"):
        validate_unit(unit)


@pytest.mark.requirement("FAC-7")
def test_unit_vectors_are_named() -> None:
    with pytest.raises(CalibrationError, match="look like unit vectors: give unit=None"):
        check_scale(0.9997, "T", None)


@pytest.mark.parametrize("micro", ["\u00b5", "\u03bc"])
def test_both_signs_of_micro_are_accepted(micro: str, bag: Path) -> None:
    samples = read(bag, unit=f"{micro}T")
    assert samples.unit == "uT"
    assert np.array_equal(samples.field, read(bag, unit="uT").field)
    result = samples.calibrate()
    assert result.unit == "uT"
    assert result.to_unit("nT").to_unit(f"{micro}T").unit == "uT"
