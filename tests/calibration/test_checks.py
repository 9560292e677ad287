"""Invalid input of a calibration is an error before any computation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.calibration import checks
from navsense.calibration.checks import (
    SUBSAMPLE_SIZE,
    SaturationCheck,
    Subsample,
    validate_bool,
    validate_field,
    validate_rotation,
)
from navsense.calibration.ellipsoid import ellipsoid
from navsense.core.errors import CalibrationError
from navsense.core.typing import Vectors


def make_rotating_field(count: int = 4000, noise: float = 0.0, seed: int = 1) -> Vectors:
    """Return a field (count, 3) of 50 uT in a sensor that rotates about two axes, in uT."""
    t = np.linspace(0.0, 60.0, count)
    field = 50.0 * np.stack((np.cos(t) * np.cos(0.37 * t), np.sin(t) * np.cos(0.37 * t), np.sin(0.37 * t)), axis=-1)
    return np.asarray(field + noise * np.random.default_rng(seed).normal(size=field.shape))


def read_error(field: Vectors) -> str:
    saturation = SaturationCheck()
    saturation.update(field)
    with pytest.raises(CalibrationError) as raised:
        saturation.check()
    return str(raised.value)


def assert_accepted(field: Vectors) -> None:
    saturation = SaturationCheck()
    saturation.update(field)
    saturation.check()


@pytest.mark.requirement("FAC-7")
def test_invalid_arrays_are_errors() -> None:
    for shape in ((3,), (3, 4), (2, 3, 3)):
        with pytest.raises(CalibrationError, match="shape"):
            validate_field(np.zeros(shape))
    for values in ([["a", "b", "c"]], [[1.0, 2.0, 3.0], [1.0]], np.zeros((2, 3), dtype=complex), None):
        with pytest.raises(CalibrationError, match="must be an array"):
            validate_field(values)
    assert validate_field([[1, 2, 3]]).dtype == np.float64
    assert validate_field(np.zeros((0, 3))).shape == (0, 3)
    assert validate_field(np.asfortranarray(make_rotating_field(9))).flags.c_contiguous


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_non_finite_row_is_named(wrong: float) -> None:
    field = make_rotating_field(50)
    field[[7, 31], 1] = wrong
    with pytest.raises(CalibrationError, match="field of row 7") as raised:
        validate_field(field)
    assert "leave out the 2 rows" in raised.value.remedy
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (50, 1))
    turns[3, 0] = wrong
    with pytest.raises(CalibrationError, match="rotation_ws of row 3"):
        validate_rotation(turns, 50)


def test_overflowing_numbers_are_an_error() -> None:
    with pytest.raises(CalibrationError, match="too large"):
        validate_field(np.full((4, 3), 1e308))


@pytest.mark.requirement("FAC-7")
def test_invalid_attitudes_are_errors() -> None:
    with pytest.raises(CalibrationError, match="an attitude for each reading"):
        validate_rotation(np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)), 4)
    for wrong in ([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [57.3, 0.0, 0.0, 0.0]):
        with pytest.raises(CalibrationError, match="row 1") as raised:
            validate_rotation([[1.0, 0.0, 0.0, 0.0], wrong], 2)
        assert "w x y z" in raised.value.remedy
    validate_rotation([[1.0 - 1e-4, 0.0, 0.0, 0.0]], 1)  # four decimals, as in many logs


@pytest.mark.requirement("FAC-7")
def test_constant_readings_are_an_error() -> None:
    assert "all readings are equal" in read_error(np.tile([1.0, 2.0, 3.0], (50, 1)))
    assert "all readings are equal" in read_error(np.zeros((50, 3)))
    dead = make_rotating_field()
    dead[:, 1] = 0.125
    assert read_error(dead).startswith("field along y: all readings are equal")


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("step", [0.0, 0.15])
@pytest.mark.parametrize(("axis", "side"), [(0, 1.0), (1, -1.0), (2, 1.0)])
def test_saturated_readings_are_recognised(noise: float, step: float, axis: int, side: float) -> None:
    field = make_rotating_field(noise=noise)
    if step:
        field = np.round(field / step) * step
    clipped = field.copy()
    clipped[:, axis] = side * np.minimum(side * clipped[:, axis], 42.0)
    text = read_error(clipped)
    count = int((side * field[:, axis] >= 42.0).sum())
    assert text.startswith(f"field along {'xyz'[axis]}: {count} readings are equal to {side * 42.0:.6g}")
    assert_accepted(field)


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1, 1.0])
@pytest.mark.parametrize(
    "step", [0.0, 0.01, 0.15, *(pytest.param(step, marks=pytest.mark.compiled) for step in (0.5, 1.5))]
)
def test_quantised_readings_are_not_reported_as_saturated(noise: float, step: float) -> None:
    for seed in range(20):
        field = make_rotating_field(noise=noise, seed=seed)
        assert_accepted(np.round(field / step) * step if step else field)


@pytest.mark.compiled
@pytest.mark.requirement("FAC-7")
def test_sensor_at_rest_is_not_reported_as_saturated() -> None:
    """The sensor rests in six positions with one axis at its extreme, with noise around the size of the step."""
    corners = 50.0 * np.concatenate((np.eye(3), -np.eye(3)))
    held = np.repeat(corners, 500, axis=0) + 0.02
    for seed in range(20):
        noisy = held + 0.03 * np.random.default_rng(seed).normal(size=held.shape)
        assert_accepted(np.round(noisy / 0.1) * 0.1)
    assert_accepted(held)


def test_blocks_give_the_same_sums_compiled_and_interpreted(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    field = np.round(make_rotating_field(600, 0.2), 1)
    complete, parts, plain = SaturationCheck(), SaturationCheck(), SaturationCheck()
    complete.update(field)
    for part in np.split(field, [0, 1, 2, 300, 599]):
        parts.update(part)
    arrays = (plain._value, plain._count, plain._low, plain._high, plain._zeros)
    interpret(checks._update_extremes)(field, 0, *arrays)
    for name in ("_value", "_count", "_low", "_high", "_zeros"):
        assert getattr(complete, name).tobytes() == getattr(parts, name).tobytes() == getattr(plain, name).tobytes()
    assert np.array_equal(complete.span, np.ptp(field, axis=0))


def test_extreme_values_equal_those_by_sorting() -> None:
    field = np.round(make_rotating_field(500, 0.3), 0)
    saturation = SaturationCheck()
    saturation.update(field)
    for side in range(6):
        column = field[:, side % 3] * (1.0 if side < 3 else -1.0)
        values, counts = np.unique(column, return_counts=True)
        assert saturation._value[side].tolist() == values[[-1, -2]].tolist()
        assert saturation._count[side].tolist() == [*counts[[-1, -2]].tolist(), int(np.argmax(column))]
        at = field[column == values[-1]]
        assert np.array_equal(saturation._low[side], at.min(axis=0))
        assert np.array_equal(saturation._high[side], at.max(axis=0))


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize(
    ("rows", "value"), [([7], -32768.0), ([7], 1e30), ([7], 1e100), ([9, 50, 51], -999.0), ([0], 400.0)]
)
def test_far_outlier_is_named_with_its_row(rows: list[int], value: float) -> None:
    field = make_rotating_field(noise=0.3)
    field[rows, 2] = value
    text = read_error(field)
    assert text.startswith(f"field of row {rows[0]} along z: {value:.6g}; must be near the other readings")
    assert f"leave out {'this reading' if len(rows) == 1 else '3 readings'}" in text


def test_moderate_extremes_are_not_reported() -> None:
    """Records: one deviation as large as the range, six positions without noise, and a rest with one rotation."""
    field = make_rotating_field()
    field[7, 2] = 150.0
    assert_accepted(field)
    assert_accepted(np.repeat(50.0 * np.concatenate((np.eye(3), -np.eye(3))), 5, axis=0))
    assert_accepted(np.concatenate((np.tile(make_rotating_field()[:1], (5000, 1)), make_rotating_field(300))))


@pytest.mark.requirement("FAC-7")
def test_one_step_of_an_axis_at_rest_is_neither_an_outlier_nor_a_limit() -> None:
    """The sensor hardly rotates: y is constant except for 3 readings one step of 0.013 uT away."""
    field = make_rotating_field(1000)
    field[:, 1] = -0.88
    field[[4, 5, 600], 1] = -0.893
    assert_accepted(field)
    field[4, 1] = -2.0
    assert read_error(field).startswith("field of row 4 along y: -2; must be near the other readings")


@pytest.mark.requirement("FAC-7")
def test_exactly_zero_readings_are_counted() -> None:
    field = make_rotating_field()
    field[[30, 40, 3999]] = 0.0
    field[50, :2] = 0.0
    saturation = SaturationCheck()
    for part in np.split(field, [10, 35]):
        saturation.update(part)
    assert saturation.zeros == (3, 30)
    assert SaturationCheck().zeros == (0, 0)


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("count", [1, SUBSAMPLE_SIZE, SUBSAMPLE_SIZE + 1, 100_000])
def test_subsample_does_not_depend_on_block_size(count: int) -> None:
    rows = np.arange(2.0 * count).reshape(count, 2)
    complete = Subsample(2)
    complete.update(rows)
    assert complete.rows[:, 0].tolist() == (2 * complete.index).tolist()
    assert complete.index.size == min(count, -(-count // (1 << complete._level)))
    for cuts in ([1, 2, 3], [0, 0, count // 2], list(range(0, count, 977))):
        parts = Subsample(2)
        for part in np.split(rows, cuts):
            parts.update(part)
        assert parts.rows.tobytes() == complete.rows.tobytes()
        assert parts.index.tobytes() == complete.index.tobytes()


def test_subsample_has_one_row_per_block_and_covers_every_period() -> None:
    """Each phase of a period p has a share of 1/p of the 3125 rows, within 5 deviations."""
    subsample = Subsample(1)
    subsample.update(np.zeros((100_000, 1)))
    assert (subsample.index >> 5).tolist() == list(range(3125))
    for period in (2, 7, 10, 32, 64, 100):
        counts = np.bincount(subsample.index % period, minlength=period)
        assert (np.abs(counts - 3125 / period) < 5.0 * math.sqrt(3125 / period)).all(), period


def test_compiled_and_interpreted_subsamples_agree(
    interpret: Callable[[Any], Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(20_000.0)[:, None]
    compiled, plain = Subsample(1), Subsample(1)
    for part in np.split(rows, [5, 9000]):
        compiled.update(part)
    monkeypatch.setattr(checks, "_update_subsample", interpret(checks._update_subsample))
    for part in np.split(rows, [5, 9000]):
        plain.update(part)
    assert plain.index.tobytes() == compiled.index.tobytes()
    assert plain.rows.tobytes() == compiled.rows.tobytes()


@pytest.mark.requirement("FAC-7")
def test_masked_readings_and_non_boolean_options_are_an_error() -> None:
    field = make_rotating_field(50)
    with pytest.raises(CalibrationError, match="masked in part") as raised:
        validate_field(np.ma.masked_array(field, mask=field > 49.0))
    assert "field[~field.mask.any(axis=1)]" in raised.value.remedy
    assert validate_field(np.ma.masked_array(field, mask=False)).shape == (50, 3)
    assert validate_bool("soft_iron", np.True_) is True
    with pytest.raises(CalibrationError, match="soft_iron: no; must be True or False"):
        validate_bool("soft_iron", "no")
    with pytest.raises(CalibrationError, match="soft_iron: no; must be True or False"):
        ellipsoid(field, soft_iron="no")  # type: ignore[arg-type]
