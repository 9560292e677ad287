"""Declination and inclination convert to directions as in GTSAM, NOAA and other programs."""

from __future__ import annotations

import csv
import datetime as dt
import math
from pathlib import Path

import numpy as np
import pytest

from navsense.core.errors import FactorError, FieldError
from navsense.factors import LocalField, declination_inclination, direction, local_field

pytestmark = pytest.mark.requirement("FAC-5")

NOAA = Path(__file__).resolve().parent.parent / "oracles" / "noaa"

GTSAM_FIELD = np.array([22653.29982, -1956.83010, 44202.47862])
GTSAM_DECLINATION, GTSAM_INCLINATION = -4.94, 62.78
"""One field: nT NED in GTSAM's tests, and rounded angles (deg) on GTSAM's page."""

ROUNDED = math.radians(0.00501)
"""Half of the last published digit of 0.01 degrees, in rad."""


def read_rows(name: str) -> list[dict[str, str]]:
    with (NOAA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.requirement("FAC-3:direction")
def test_field_equals_gtsam_example() -> None:
    d, i = math.radians(GTSAM_DECLINATION), math.radians(GTSAM_INCLINATION)
    # the formula of the page
    page = [math.cos(i) * math.cos(d), math.cos(i) * math.sin(d), math.sin(i)]
    assert direction(d, i) == pytest.approx(page, abs=1e-16)
    # the vector of the tests has these rounded angles (and another strength than the page)
    unit = GTSAM_FIELD / np.linalg.norm(GTSAM_FIELD)
    assert np.abs(unit - direction(d, i)).max() < 2.0 * ROUNDED
    back = declination_inclination(GTSAM_FIELD)
    assert back[0] == pytest.approx(d, abs=ROUNDED)
    assert back[1] == pytest.approx(i, abs=ROUNDED)


def test_enu_field_equals_the_converted_ned_field() -> None:
    ned, enu = direction(0.3, -0.8), direction(0.3, -0.8, "ENU")
    assert enu.tolist() == [ned[1], ned[0], -ned[2]]
    # declination is towards east, inclination below the horizon
    assert direction(math.pi / 2, 0.0, "ENU") == pytest.approx([1.0, 0.0, 0.0], abs=1e-16)
    assert direction(0.0, 0.0, "ENU") == pytest.approx([0.0, 1.0, 0.0], abs=1e-16)
    assert direction(0.0, math.pi / 2, "ENU") == pytest.approx([0.0, 0.0, -1.0], abs=1e-16)


@pytest.mark.parametrize("frame", ["NED", "ENU"])
def test_angles_and_components_round_trip(frame: str) -> None:
    random = np.random.default_rng(1)
    declination = np.concatenate((random.uniform(-math.pi, math.pi, 50), [0.0, math.pi, -math.pi / 2]))
    inclination = np.concatenate((random.uniform(-math.pi / 2, math.pi / 2, 50), [0.0, 0.0, 1.5]))
    vectors = direction(declination, inclination, frame)
    assert vectors.shape == (53, 3)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(53), abs=1e-15)
    back = declination_inclination(48343.4 * vectors, frame)
    assert back[0] == pytest.approx(declination, abs=1e-14)
    assert back[1] == pytest.approx(inclination, abs=1e-14)
    assert direction(0.1, inclination, frame).shape == (53, 3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_vertical_field_has_no_declination(sign: float) -> None:
    declination, inclination = declination_inclination([-0.0, -0.0, sign])
    assert (float(declination), float(inclination)) == (0.0, sign * math.pi / 2)


@pytest.mark.parametrize("frame", ["NED", "ENU"])
def test_field_equals_noaa_published_values(frame: str) -> None:
    table = read_rows("values.csv")
    assert len(table) == 41
    for row in table:
        angles = (math.radians(float(row["latitude_deg"])), math.radians(float(row["longitude_deg"])))
        field = local_field(*angles, 1e3 * float(row["altitude_km"]), float(row["date"]), frame, row["model"])
        north, east, down = (float(row[name]) for name in ("x_nT", "y_nT", "z_nT"))
        rounding = 0.0501 if row["model"] == "WMM2020" else 1e-3
        expected = [north, east, down] if frame == "NED" else [east, north, -down]
        assert 1e9 * field.field == pytest.approx(expected, abs=rounding, rel=0.0)
        assert 1e9 * field.strength == pytest.approx(float(row["total_nT"]), abs=rounding, rel=0.0)
        assert field.declination == pytest.approx(math.radians(float(row["declination_deg"])), abs=ROUNDED)
        assert field.inclination == pytest.approx(math.radians(float(row["inclination_deg"])), abs=ROUNDED)
        assert direction(field.declination, field.inclination, frame) == pytest.approx(field.direction, abs=1e-14)


def test_field_equals_another_program_at_many_positions() -> None:
    for row in read_rows("pygeomag.csv"):
        angles = (math.radians(float(row["latitude_deg"])), math.radians(float(row["longitude_deg"])))
        field = local_field(*angles, 1e3 * float(row["altitude_km"]), float(row["year"]), model=row["model"])
        expected = [float(row[name]) for name in ("x_nT", "y_nT", "z_nT")]
        assert 1e9 * field.field == pytest.approx(expected, abs=2e-6, rel=0.0)


def test_date_converts_to_decimal_year() -> None:
    place = (0.8, 0.2, 400.0)
    assert np.array_equal(local_field(*place, dt.date(2027, 1, 1)).field, local_field(*place, 2027.0).field)
    days = {dt.date(2027, 7, 2): 2027.0 + 182.0 / 365.0, dt.date(2028, 12, 31): 2028.0 + 365.0 / 366.0}
    for day, year in days.items():
        assert np.array_equal(local_field(*place, day).field, local_field(*place, year).field)
    strength, unit, *_, frame = local_field(*place, dt.date(2027, 7, 2), "ENU")
    assert (frame, unit.shape) == ("ENU", (3,))
    assert LocalField(strength, unit, 0.0, 0.0, frame).field == pytest.approx(strength * unit, rel=1e-12, abs=0.0)


def test_errors_name_the_problem() -> None:
    with pytest.raises(FactorError, match=r"declination.*radians"):
        direction(-4.94, 0.1)
    with pytest.raises(FactorError, match=r"inclination.*radians"):
        direction(0.1, 62.78)
    with pytest.raises(FactorError, match="declination"):
        direction(math.nan, 0.0)
    for call in (
        lambda frame: direction(0.0, 0.0, frame),
        lambda frame: declination_inclination([1.0, 0.0, 0.0], frame),
        lambda frame: local_field(0.0, 0.0, 0.0, 2027.0, frame),
    ):
        with pytest.raises(FactorError, match='frame: NWU; must be "NED" or "ENU"'):
            call("NWU")
    with pytest.raises(FactorError, match=r"field.*not zero"):
        declination_inclination([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(FactorError, match="shape of field"):
        declination_inclination([1.0, 0.0])
    with pytest.raises(FieldError, match=r"place \(latitude.*-pi/2 to pi/2.*give rad"):
        local_field(48.0, 11.0, 500.0, 2027.0)
    for longitude in (103.8, -103.8, 6.2832):  # with a latitude that is valid in radians and degrees
        with pytest.raises(FieldError, match=r"longitude \(rad\): .*must be from -2 pi to 2 pi; give radians"):
            local_field(1.35, longitude, 0.0, 2026.0)
    for frame in (["NED"], 3):
        with pytest.raises(FactorError, match=r'frame: .*must be "NED" or "ENU"'):
            direction(0.1, 0.2, frame)
    for latitude in (math.nan, [0.8, 0.9], "48 N"):
        with pytest.raises(FactorError, match="latitude"):
            local_field(latitude, 0.2, 0.0, 2027.0)
    with pytest.raises(FactorError, match="date"):
        local_field(0.8, 0.2, 0.0, "2027-01-01")
    with pytest.raises(FieldError, match=r"date of WMM2025.*2031"):
        local_field(0.8, 0.2, 500.0, 2031.0)
    with pytest.raises(FieldError, match="magnetic model: WMM1999"):
        local_field(0.8, 0.2, 500.0, 2027.0, model="WMM1999")
