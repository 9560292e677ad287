"""Errors of an IMU and a magnetometer other than noise are estimated, and a wrong value is detected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import cont2discrete

from navsense.sensors import Imu, Magnetometer, Vibration
from navsense.sensors.base import Sensor
from tests.verification import imu_mag
from tests.verification.declared import Row, table
from tests.verification.imu_mag import TERMS, compute_first_order_hold_response, make_tumbling_motion

pytestmark = pytest.mark.requirement("NOI-6")

RATES = (9.0, 130.0)
SHARE = 1.0 + 1e-6
"""Ratio of simulated to declared value. For parameters without randomness it is at least 1000 standard errors."""

Change = Callable[[Any], Any]


def make_wrong_sensor(spec: Any, **changes: Change) -> Any:
    """Return a sensor that declares `spec` but simulates each named field as its change returns it."""
    kind: Any = type(spec)

    def values(spec: Any) -> dict[str, Any]:
        return {field.name: getattr(spec, field.name) for field in fields(spec)}

    class WrongSensor(kind):  # type: ignore[misc]
        def _make_changed(self) -> Any:
            rows = values(self)
            return kind(**{name: changes[name](value) if name in changes else value for name, value in rows.items()})

        def ideal(self, *arguments: Any) -> Any:
            return self._make_changed().ideal(*arguments)

        def measure(self, *arguments: Any) -> Any:
            return self._make_changed().measure(*arguments)

        def without_errors(self) -> Any:
            return WrongSensor(**values(super().without_errors()))

    return WrongSensor(**values(spec))


def scale(numbers: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(SHARE * number for number in numbers)


def scale_vibration(name: str, share: float) -> Change:
    """Return a change that scales one parameter of each vibration."""

    def scale_lines(lines: tuple[Vibration, ...]) -> tuple[Vibration, ...]:
        return tuple(replace(line, **{name: scale_value(getattr(line, name))}) for line in lines)

    def scale_value(value: Any) -> Any:
        return tuple(share * part for part in value) if isinstance(value, tuple) else share * value

    return scale_lines


CHANGES: list[tuple[type[Sensor], str, Change, str]] = [
    (Imu, "angular_velocity_misalignment", scale, "angular_velocity_misalignment"),
    (Imu, "linear_acceleration_misalignment", scale, "linear_acceleration_misalignment"),
    (Imu, "g_sensitivity", scale, "g_sensitivity"),
    (Imu, "bandwidth", lambda value: SHARE * value, "bandwidth"),
    (Imu, "vibration", scale_vibration("frequency", SHARE), "vibration (frequency"),
    (Imu, "vibration", scale_vibration("phase", SHARE), "vibration (phase"),
    (Imu, "vibration", scale_vibration("angular_velocity", SHARE), "vibration (amplitude"),
    (Imu, "vibration", scale_vibration("linear_acceleration", SHARE), "vibration (amplitude"),
    (Imu, "averaged", lambda _: False, "averaged"),
    (Imu, "earth_rotation", lambda _: False, "earth_rotation"),
    (Magnetometer, "soft_iron", scale, "soft_iron"),
    (Magnetometer, "hard_iron", scale, "hard_iron"),
    (Magnetometer, "field_per_ampere", scale, "field_per_ampere"),
]
"""Type, field, change of the simulated value, prefix of the rows."""


def find_worst_row(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: abs(row.estimate.deviation))


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [Imu, Magnetometer])
def test_estimate_equals_the_declared_value(kind: type[Sensor]) -> None:
    spec: Any = kind.example_spec()
    rows = table(spec, RATES, 1, terms=TERMS)
    assert abs(find_worst_row(rows).estimate.deviation) < 1.0, "the bound of rounding is one"
    for row in rows:
        estimate = row.estimate
        assert estimate.error < 1e-6 * abs(estimate.declared) or abs(estimate.declared) < 1e-3, row
        field = estimate.parameter.partition(" ")[0]
        value = getattr(spec, field)
        if field in ("hard_iron", "field_per_ampere"):
            assert estimate.declared == value["xyz".index(row.channel[-1])]
        elif field in ("soft_iron", "g_sensitivity"):
            assert (
                estimate.declared
                == value[3 * "xyz".index(estimate.parameter[-2]) + "xyz".index(estimate.parameter[-1])]
            )
        elif field.endswith("misalignment"):
            assert estimate.declared == value["xy xz yx yz zx zy".split().index(estimate.parameter[-2:])]
            assert row.channel == f"{field.removesuffix('_misalignment')}.{estimate.parameter[-2]}"
        elif estimate.parameter == "bandwidth":
            assert (estimate.declared, row.unit) == (value, "Hz")


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "field", "change", "prefix"), CHANGES, ids=[f"{name}-{prefix}" for _, name, _, prefix in CHANGES]
)
def test_sensor_with_other_parameters_is_detected(kind: Any, field: str, change: Change, prefix: str) -> None:
    for rate in RATES:
        rows = [
            row
            for row in table(make_wrong_sensor(kind.example_spec(), **{field: change}), (rate,), 1, terms=TERMS)
            if row.estimate.parameter.startswith(prefix)
        ]
        assert rows
        wrong = [row for row in rows if not row.holds]
        assert wrong, find_worst_row(rows)


@pytest.mark.compiled
def test_every_kind_of_bandwidth_row_detects_a_wrong_bandwidth() -> None:
    rows = table(make_wrong_sensor(Imu.example_spec(), bandwidth=lambda value: 1.001 * value), RATES, 1, terms=TERMS)
    bandwidth_rows = [row for row in rows if row.estimate.parameter.startswith("bandwidth")]
    assert len({row.estimate.parameter for row in bandwidth_rows}) == 8
    assert not any(row.holds for row in bandwidth_rows)


@pytest.mark.compiled
def test_spec_without_imu_errors_has_no_rows() -> None:
    for spec in (Imu(), Magnetometer()):
        assert not table(spec, (10.0,), 1, terms=TERMS)
    rows = table(Imu(bandwidth=80.0, averaged=True), (10.0,), 1, terms=TERMS)
    assert {row.estimate.parameter.partition(" ")[0] for row in rows} == {"bandwidth", "averaged"}


@pytest.mark.compiled
def test_unobservable_terms_are_not_reported() -> None:
    """A vibration aliased to 0 or half the rate, and a filter that is slow compared to the record."""
    folded = Imu(vibration=(Vibration(15.0, (1.0, 0.0, 0.0)),), averaged=True)
    for rate in (5.0, 10.0, 30.0):
        parameters = {row.estimate.parameter for row in table(folded, (rate,), 1, terms=TERMS)}
        assert parameters == {"averaged (velocity gained)", "averaged (turn)"}
    slow = {row.estimate.parameter for row in table(Imu(bandwidth=0.05), (10.0,), 1, terms=TERMS)}
    assert slow == {"bandwidth (gain at 0.05 Hz)", "bandwidth (phase at 0.05 Hz)", "bandwidth (gain at 0.5 Hz)"}


@pytest.mark.parametrize(("limit", "rate"), [(80.0, 10.0), (80.0, 100.0), (5.0, 200.0), (20.0, 30.0)])
@pytest.mark.parametrize("share", [0.03, 0.2, 0.47])
def test_response_between_samples_is_a_first_order_hold(limit: float, rate: float, share: float) -> None:
    """SciPy's discrete form of the same low-pass for an input that is linear between samples."""
    w = 2.0 * math.pi * limit
    system = ([w * w], [1.0, math.sqrt(2.0) * w, w * w])
    numerator, denominator, _ = cont2discrete(system, 1.0 / rate, method="foh")
    z = np.exp(2j * math.pi * share)
    expected = np.polyval(numerator.ravel(), z) / np.polyval(denominator, z)
    assert compute_first_order_hold_response(share * rate, limit, rate) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_motion_rotates_about_all_axes_without_end() -> None:
    motion = make_tumbling_motion()
    assert motion.end == math.inf
    truth = motion.at(np.arange(0.0, 8.0, 0.01))
    for trial in (truth.angular_velocity_b, truth.acceleration_w, truth.velocity_w):
        sizes = np.linalg.svd(trial, compute_uv=False)
        assert sizes[-1] > 0.2 * sizes[0]


def test_nearest_alias_frequency_is_selected() -> None:
    for frequency in (0.3, 4.9, 21.0, 133.0, 1004.2):
        angle = 2.0 * math.pi * frequency / 10.0
        folded = math.acos(math.cos(angle))
        assert imu_mag._find_nearest_alias(folded, 10.0, frequency + 0.1) == pytest.approx(frequency, rel=1e-9, abs=0.0)
