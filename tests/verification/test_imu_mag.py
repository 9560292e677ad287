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
from tests.verification.imu_mag import TERMS, response_between_samples, tumbling

pytestmark = pytest.mark.requirement("NOI-6")

RATES = (9.0, 130.0)
SHARE = 1.0 + 1e-6
"""How far off a sensor is that lies: of figures without chance this is a thousand standard errors and more."""

Lie = Callable[[Any], Any]


def liar(sheet: Any, **lies: Lie) -> Any:
    """The same sheet, of a sensor that goes by others: each named field as its lie has it."""
    kind: Any = type(sheet)

    def values(spec: Any) -> dict[str, Any]:
        return {field.name: getattr(spec, field.name) for field in fields(spec)}

    class Liar(kind):  # type: ignore[misc]
        def _told(self) -> Any:
            mine = values(self)
            return kind(**{name: lies[name](value) if name in lies else value for name, value in mine.items()})

        def ideal(self, *arguments: Any) -> Any:
            return self._told().ideal(*arguments)

        def measure(self, *arguments: Any) -> Any:
            return self._told().measure(*arguments)

        def without_errors(self) -> Any:
            return Liar(**values(super().without_errors()))

    return Liar(**values(sheet))


def stretch(numbers: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(SHARE * number for number in numbers)


def lines(name: str, share: float) -> Lie:
    """Lines of vibration with one figure off."""

    def told(given: tuple[Vibration, ...]) -> tuple[Vibration, ...]:
        return tuple(replace(line, **{name: of(getattr(line, name))}) for line in given)

    def of(value: Any) -> Any:
        return tuple(share * part for part in value) if isinstance(value, tuple) else share * value

    return told


LIES: list[tuple[type[Sensor], str, Lie, str]] = [
    (Imu, "angular_velocity_misalignment", stretch, "angular_velocity_misalignment"),
    (Imu, "linear_acceleration_misalignment", stretch, "linear_acceleration_misalignment"),
    (Imu, "g_sensitivity", stretch, "g_sensitivity"),
    (Imu, "bandwidth", lambda value: SHARE * value, "bandwidth"),
    (Imu, "vibration", lines("frequency", SHARE), "vibration (frequency"),
    (Imu, "vibration", lines("phase", SHARE), "vibration (phase"),
    (Imu, "vibration", lines("angular_velocity", SHARE), "vibration (amplitude"),
    (Imu, "vibration", lines("linear_acceleration", SHARE), "vibration (amplitude"),
    (Imu, "averaged", lambda _: False, "averaged"),
    (Imu, "earth_rotation", lambda _: False, "earth_rotation"),
    (Magnetometer, "soft_iron", stretch, "soft_iron"),
    (Magnetometer, "hard_iron", stretch, "hard_iron"),
    (Magnetometer, "motor_current", stretch, "motor_current"),
]
"""Kind, field, how it is declared, how its rows start."""


def find_worst_row(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: abs(row.estimate.deviation))


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [Imu, Magnetometer])
def test_estimate_equals_the_declared_value(kind: type[Sensor]) -> None:
    sheet: Any = kind.example_spec()
    rows = table(sheet, RATES, 1, terms=TERMS)
    assert abs(find_worst_row(rows).estimate.deviation) < 1.0, "the bound of rounding is one"
    for row in rows:
        estimate = row.estimate
        assert estimate.error < 1e-6 * abs(estimate.declared) or abs(estimate.declared) < 1e-3, row
        field = estimate.parameter.partition(" ")[0]
        value = getattr(sheet, field)
        if field in ("hard_iron", "motor_current"):
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
@pytest.mark.parametrize(("kind", "field", "lie", "begins"), LIES, ids=[f"{name}-{told}" for _, name, _, told in LIES])
def test_sensor_with_other_parameters_is_detected(kind: Any, field: str, lie: Lie, begins: str) -> None:
    for rate in RATES:
        rows = [
            row
            for row in table(liar(kind.example_spec(), **{field: lie}), (rate,), 1, terms=TERMS)
            if row.estimate.parameter.startswith(begins)
        ]
        assert rows
        wrong = [row for row in rows if not row.holds]
        assert wrong, find_worst_row(rows)


@pytest.mark.compiled
def test_every_kind_of_bandwidth_row_detects_a_wrong_bandwidth() -> None:
    rows = table(liar(Imu.example_spec(), bandwidth=lambda value: 1.001 * value), RATES, 1, terms=TERMS)
    mine = [row for row in rows if row.estimate.parameter.startswith("bandwidth")]
    assert len({row.estimate.parameter for row in mine}) == 8
    assert not any(row.holds for row in mine)


@pytest.mark.compiled
def test_spec_without_imu_errors_has_no_rows() -> None:
    for sheet in (Imu(), Magnetometer()):
        assert not table(sheet, (10.0,), 1, terms=TERMS)
    rows = table(Imu(bandwidth=80.0, averaged=True), (10.0,), 1, terms=TERMS)
    assert {row.estimate.parameter.partition(" ")[0] for row in rows} == {"bandwidth", "averaged"}


@pytest.mark.compiled
def test_unobservable_terms_are_not_reported() -> None:
    """A line that is folded onto 0 or half the rate, and a filter that is slow against the record."""
    folded = Imu(vibration=(Vibration(15.0, (1.0, 0.0, 0.0)),), averaged=True)
    for rate in (5.0, 10.0, 30.0):
        parameters = {row.estimate.parameter for row in table(folded, (rate,), 1, terms=TERMS)}
        assert parameters == {"averaged (velocity gained)", "averaged (turn)"}
    slow = {row.estimate.parameter for row in table(Imu(bandwidth=0.05), (10.0,), 1, terms=TERMS)}
    assert slow == {"bandwidth (gain at 0.05 Hz)", "bandwidth (phase at 0.05 Hz)", "bandwidth (gain at 0.5 Hz)"}


@pytest.mark.parametrize(("limit", "rate"), [(80.0, 10.0), (80.0, 100.0), (5.0, 200.0), (20.0, 30.0)])
@pytest.mark.parametrize("share", [0.03, 0.2, 0.47])
def test_response_between_samples_is_a_first_order_hold(limit: float, rate: float, share: float) -> None:
    """SciPy's discrete form of the same low-pass for an input that is straight between samples."""
    w = 2.0 * math.pi * limit
    system = ([w * w], [1.0, math.sqrt(2.0) * w, w * w])
    numerator, denominator, _ = cont2discrete(system, 1.0 / rate, method="foh")
    z = np.exp(2j * math.pi * share)
    expected = np.polyval(numerator.ravel(), z) / np.polyval(denominator, z)
    assert response_between_samples(share * rate, limit, rate) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_motion_rotates_about_all_axes_without_end() -> None:
    motion = tumbling()
    assert motion.end == math.inf
    truth = motion.at(np.arange(0.0, 8.0, 0.01))
    for moved in (truth.angular_velocity_b, truth.acceleration_w, truth.velocity_w):
        sizes = np.linalg.svd(moved, compute_uv=False)
        assert sizes[-1] > 0.2 * sizes[0]


def test_nearest_alias_frequency_is_selected() -> None:
    for frequency in (0.3, 4.9, 21.0, 133.0, 1004.2):
        angle = 2.0 * math.pi * frequency / 10.0
        folded = math.acos(math.cos(angle))
        assert imu_mag._unfold(folded, 10.0, frequency + 0.1) == pytest.approx(frequency, rel=1e-9, abs=0.0)
