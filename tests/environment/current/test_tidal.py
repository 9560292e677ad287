"""Tides: arguments equal two other programs and NOAA's speeds; ellipses; a NOAA station table."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.core.typing import AnyArray, FloatArray
from navsense.environment.current import (
    HarmonicFlow,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
)
from navsense.environment.current.tidal import CONSTITUENT_NAMES, compute_constituent_speed, compute_factor_and_argument

pytestmark = pytest.mark.requirement("CUR-2")

START = datetime(2021, 3, 4, 15, tzinfo=UTC)
STATION = "dave/ACT1951_1_Annual_2021.csv"

SPEEDS = {
    "M2": 28.9841042, "S2": 30.0, "N2": 28.4397295, "K2": 30.0821372, "K1": 15.0410686, "O1": 13.9430356,
    "P1": 14.9589314, "Q1": 13.3986609, "M4": 57.9682084, "Mf": 1.0980330, "Mm": 0.5443747,
}  # fmt: skip
"""Speeds in degrees per hour."""


@pytest.fixture(scope="module")
def pytmd_arguments(read_oracle: Callable[[str], dict[str, AnyArray]]) -> dict[str, AnyArray]:
    return read_oracle("tides/arguments.csv")


def compute_difference(degrees: float, other: float) -> float:
    return (degrees - other + 180.0) % 360.0 - 180.0


def test_constituent_speeds_equal_the_noaa_list() -> None:
    for name, degrees in SPEEDS.items():
        assert math.degrees(compute_constituent_speed(name)) * 3600.0 == pytest.approx(degrees, abs=1.1e-7)


def test_arguments_equal_pytmd(pytmd_arguments: dict[str, AnyArray]) -> None:
    for row, name in enumerate(pytmd_arguments["name"]):
        factor, angle = compute_factor_and_argument(
            str(name), datetime.fromisoformat(str(pytmd_arguments["start"][row]))
        )
        assert factor == pytest.approx(pytmd_arguments["pytmd_factor"][row], abs=1e-9)
        assert abs(compute_difference(math.degrees(angle), pytmd_arguments["pytmd_degrees"][row])) < 2e-6


def test_arguments_are_close_to_utide(pytmd_arguments: dict[str, AnyArray]) -> None:
    """Satellite constituents differ from Schureman's formulas by up to 3 degrees and 3 percent."""
    for row, name in enumerate(pytmd_arguments["name"]):
        if name in ("2N2", "Mf", "Mm"):
            continue
        factor, angle = compute_factor_and_argument(
            str(name), datetime.fromisoformat(str(pytmd_arguments["start"][row]))
        )
        assert factor == pytest.approx(pytmd_arguments["utide_factor"][row], abs=0.03)
        assert abs(compute_difference(math.degrees(angle), pytmd_arguments["utide_degrees"][row])) < 3.0


def test_time_zone_does_not_change_the_time() -> None:
    west = START.astimezone(timezone(timedelta(hours=-5)))
    assert (
        compute_factor_and_argument("M2", west)
        == compute_factor_and_argument("M2", START)
        == compute_factor_and_argument("M2", START.replace(tzinfo=None))
    )


def sum_cosines(constituents: tuple[TidalConstituent, ...], time: FloatArray) -> FloatArray:
    total = np.zeros(time.size)
    for constituent in constituents:
        factor, argument = compute_factor_and_argument(constituent.name, START) if constituent.greenwich else (1.0, 0.0)
        rate = compute_constituent_speed(constituent.name) if constituent.speed is None else constituent.speed
        total += factor * constituent.amplitude * np.cos(rate * time + argument - constituent.phase)
    return total


def test_tide_is_the_sum_of_cosines() -> None:
    draw = np.random.default_rng(6)
    constituents = tuple(TidalConstituent(name, *draw.uniform(0.1, 1.0, 2)) for name in CONSTITUENT_NAMES)
    time = np.concatenate((draw.uniform(0.0, 3e6, 3000), [0.0, 64.0, 128.0]))
    got = HarmonicFlow(constituents, START, 0.02).at(time)[:, 0]
    total = sum(constituent.amplitude for constituent in constituents)
    assert got == pytest.approx(0.02 + sum_cosines(constituents, time), abs=2e-9 * total)


def test_constituents_in_world_file_units() -> None:
    """Constituents of DAVE's world file: m/s, degrees, degrees per hour."""
    declared = (
        TidalConstituent.from_degrees("M2", 0.55, 7.2, 28.984104),
        TidalConstituent.from_degrees("S2", 0.114, 28.8, 30.0),
        TidalConstituent.from_degrees("N2", 0.14, 351.6, 28.43973),
    )
    time = np.linspace(0.0, 86400.0, 97)
    assert HarmonicFlow(declared, START).at(time)[:, 0] == pytest.approx(sum_cosines(declared, time), abs=1e-8)


def test_phase_from_the_start_of_the_run() -> None:
    tide = HarmonicFlow((TidalConstituent.from_degrees("seiche", 0.2, 90.0, 360.0, greenwich=False),), START)
    time = np.array([0.0, 900.0, 1800.0, 2700.0])
    assert tide.at(time)[:, 0] == pytest.approx([0.0, 0.2, 0.0, -0.2], abs=1e-6)


FLOOD, EBB = math.radians(255.0), math.radians(69.0)


def test_ebb_and_flood_have_separate_directions() -> None:
    """Flood is to 255 degrees and ebb to 69 degrees. DAVE's plug-in does not reverse the current."""
    flow = TideTable(np.array([0.0, 3600.0, 7200.0]), np.array([0.5, 0.0, -0.4]), START)
    place, time = np.zeros((2, 3)), np.array([0.0, 7200.0])
    flood, ebb = TidalCurrent(flow, FLOOD, EBB).at(place, time)
    assert flood == pytest.approx([0.5 * math.sin(FLOOD), 0.5 * math.cos(FLOOD), 0.0], abs=1e-15)
    assert ebb == pytest.approx([0.4 * math.sin(EBB), 0.4 * math.cos(EBB), 0.0], abs=1e-15)
    assert flood[0] < 0.0 < ebb[0]
    assert float(flood @ ebb) / 0.2 == pytest.approx(math.cos(math.radians(186.0)), abs=1e-12)
    opposite = TidalCurrent(flow, FLOOD).at(place, time)
    assert opposite[1].tolist() == pytest.approx((-0.8 * opposite[0]).tolist(), abs=1e-15)


def test_flow_between_rows_is_a_sine() -> None:
    hours = np.array([0.0, 3.0, 6.0, 9.0, 12.0]) * 3600.0
    table = TideTable(hours, np.array([0.0, 0.6, 0.0, -0.6, -0.2]), START)
    time = np.linspace(0.0, 9.0, 181) * 3600.0
    assert table.at(time)[:, 0] == pytest.approx(0.6 * np.sin(2.0 * math.pi * time / (12.0 * 3600.0)), abs=1e-15)
    assert table.at(np.array([10.5 * 3600.0]))[0, 0] == pytest.approx(-0.4, abs=1e-15)


def test_ellipse_has_its_axes_and_sense_of_rotation() -> None:
    moon = TidalConstituent("M2", 0.5, 0.0, greenwich=False)
    field = TidalEllipses((TidalEllipse(moon, 0.2, math.radians(30.0)),), START, (0.1, 0.0, 0.0))
    quarter = 0.5 * math.pi / compute_constituent_speed("M2")
    got = field.at(np.zeros((2, 3)), np.array([0.0, quarter]))
    assert got[0] == pytest.approx([0.1 + 0.25, 0.5 * math.sqrt(0.75), 0.0], abs=1e-8)
    assert got[1] == pytest.approx([0.1 - 0.2 * math.sqrt(0.75), 0.1, 0.0], abs=1e-8)


def test_nodal_factor_scales_both_axes_of_an_ellipse() -> None:
    field = TidalEllipses((TidalEllipse(TidalConstituent("M2", 0.5, 0.3), 0.2, 0.0),), START)
    time = np.linspace(0.0, 2.0 * math.pi / compute_constituent_speed("M2"), 4001)
    velocity = field.at(np.zeros((time.size, 3)), time)
    factor, _ = compute_factor_and_argument("M2", START)
    assert velocity[:, 1].max() == pytest.approx(0.5 * factor, abs=1e-6)
    assert velocity[:, 0].max() == pytest.approx(0.2 * factor, abs=1e-6)


def read_events(path: Path) -> list[str]:
    """Return the lines of a tide table with an event."""
    return [line.strip() for line in path.read_text().splitlines() if line.startswith("20")]


def parse_time(line: str) -> datetime:
    return datetime.fromisoformat(line.partition(",")[0] + "+00:00")


def test_station_table_is_read(example_data: Path) -> None:
    """Events of 2021-03-04 around 15:00 GMT."""
    path = example_data / STATION
    lines = [line for line in read_events(path) if line.startswith("2021-03-04")]
    table = TideTable.from_file(path, START)
    assert len(table.times) == len(read_events(path)) > 300
    for line in lines:
        _, event, speed = (part.strip() for part in line.split(","))
        instant = (parse_time(line) - START).total_seconds()
        expected = 0.0 if event == "slack" else float(speed) / 100.0
        assert table.at(np.array([instant]))[0, 0] == pytest.approx(expected, abs=1e-15)
    assert len(lines) >= 7


@pytest.mark.compiled
def test_constituents_fitted_to_one_year_predict_another(shared_data: Path) -> None:
    """Eleven constituents fit the events of 2020 to 4.2 cm/s of 27 and predict those of 2022 to 5.0 cm/s.

    Without V0 + u of each year the phases would be random: a shift of one day already gives 15 cm/s.
    """
    names = ("M2", "S2", "N2", "K2", "K1", "O1", "P1", "Q1", "M4", "M6", "MS4")
    table = TideTable.from_file(shared_data / STATION, START)

    def read_year(number: int) -> tuple[datetime, FloatArray, FloatArray]:
        begin = datetime(number, 1, 1, tzinfo=UTC)
        time = table.times - (begin - START).total_seconds()
        chosen = (time >= 0.0) & (time < 365 * 86400.0)
        return begin, time[chosen], table.flows[chosen]

    def make_basis(begin: datetime, time: FloatArray) -> FloatArray:
        waves = [TidalConstituent(name, 1.0, phase) for name in names for phase in (0.0, 0.5 * math.pi)]
        return np.stack([np.ones(time.size)] + [HarmonicFlow((wave,), begin).at(time)[:, 0] for wave in waves], axis=1)

    def compute_residual(begin: datetime, time: FloatArray, flow: FloatArray) -> float:
        return float(np.sqrt(np.mean((flow - make_basis(begin, time) @ fitted) ** 2)))

    begin, time, flow = read_year(2020)
    fitted = np.linalg.lstsq(make_basis(begin, time), flow, rcond=None)[0]
    own = compute_residual(begin, time, flow)
    assert own < 0.05
    assert float(np.sqrt(np.mean(flow**2))) > 0.25
    begin, time, flow = read_year(2022)
    assert compute_residual(begin, time, flow) < 1.3 * own
    assert compute_residual(begin + timedelta(days=1), time, flow) > 3.0 * own


@pytest.mark.parametrize("start", [datetime(2019, 12, 31), datetime(2023, 1, 1)])  # noqa: DTZ001
def test_date_outside_the_table_is_an_error(example_data: Path, start: datetime) -> None:
    first, last = (f"{parse_time(read_events(example_data / STATION)[k]):%Y-%m-%d %H:%M}" for k in (0, -1))
    with pytest.raises(FieldError, match=rf"must be from {first} to {last} UTC.*that year"):
        TideTable.from_file(example_data / STATION, start)


def test_run_past_the_end_of_the_table_is_an_error(example_data: Path) -> None:
    last = parse_time(read_events(example_data / STATION)[-1])
    field = TidalCurrent(TideTable.from_file(example_data / STATION, last - timedelta(seconds=3360)), FLOOD, EBB)
    late = f"{last + timedelta(seconds=10):%Y-%m-%d %H:%M:%S}"
    with pytest.raises(FieldError, match=f"instant in the tide table of row 2: {late}; must be from"):
        field.at(np.zeros((3, 3)), np.array([0.0, 3360.0, 3370.0]))


HEAD = "Date_Time (GMT), Event, Speed (cm/sec)\n"
GOOD = "2021-03-04 12:00, flood,39\n2021-03-04 15:30, slack,-\n2021-03-04 18:00, ebb,-24\n"


def test_knots_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "tide.csv"
    path.write_text((HEAD + GOOD).replace("cm/sec", "knots").replace("39", "1.0"))
    assert TideTable.from_file(path, START).flows[0] == pytest.approx(0.5144444, abs=1e-7)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 0, "is empty"),
        (HEAD, 0, "times and flows of a tide table: (0,) and (0,)"),
        ("when, what, how\n" + GOOD, 1, "must be Date_Time (GMT), Event, Speed (unit)"),
        (HEAD.replace("GMT", "LST") + GOOD, 1, "zone of the tide table: lst; must be GMT"),
        (HEAD.replace("cm/sec", "mph") + GOOD, 1, "unit of the tide table: mph; must be one of cm/sec"),
        (
            HEAD + GOOD + "2021-03-04 17:00, slack,-\n",
            5,
            "time in the tide table: not after that of the row before",
        ),
        (HEAD + GOOD + "2021-03-04 18:00, slack,-\n", 5, "not after"),
        (
            HEAD + GOOD + "2021-03-06 18:00, slack,-\n",
            5,
            "gap in the tide table (h): 48.0; must be at most 25 h",
        ),
        (HEAD + GOOD + "2021-13-06 18:00, slack,-\n", 5, "must be a date and time"),
        (HEAD + GOOD + "2021-03-04 19:00, still,-\n", 5, "event in the tide table: still"),
        (HEAD + GOOD + "2021-03-04 19:00, flood,-9\n", 5, "must be positive for a flood"),
        (HEAD + GOOD + "2021-03-04 19:00, ebb,9\n", 5, "negative for an ebb"),
        (HEAD + GOOD + "2021-03-04 19:00, ebb,\n", 5, "speed of the ebb: empty"),
        (
            HEAD + GOOD + "2021-03-04 19:00, ebb,-9000\n",
            5,
            "-90.0; must be a finite number of absolute value up to 15 m/s",
        ),
        (HEAD + GOOD + "2021-03-04 19:00, ebb\n", 5, "number of columns: 2"),
        (HEAD + "2021-03-04 12:00, slack,-\n2021-03-04 18:00, slack,-\n", 3, "slack in the tide table: twice"),
    ],
)
def test_table_error_has_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "tide.csv"
    path.write_text(text)
    with pytest.raises(FieldError) as found:
        TideTable.from_file(path, START)
    assert problem in str(found.value)
    assert str(found.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


MOON = TidalConstituent("M2", 0.5, 0.0)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: TidalConstituent("X9", 0.5, 0.0), "tidal constituent: X9; must be one of M2"),
        (lambda: TidalConstituent("X9", 0.5, 0.0, 1e-4), "give its speed and greenwich=False"),
        (lambda: TidalConstituent("M2", 0.5, 0.0, 28.984), "speed of M2 (rad/s): 28.984"),
        (lambda: TidalConstituent.from_degrees("M2", 0.5, 0.0, 30.0), "28.9841042 deg/h; check the unit"),
        (lambda: TidalConstituent("M2", 55.0, 0.0), "amplitude of M2 (m/s): 55.0"),
        (lambda: TidalConstituent("M2", 0.5, math.nan), "phase of M2"),
        (lambda: HarmonicFlow((), START), "tidal constituents: none"),
        (lambda: HarmonicFlow((MOON, MOON), START), "tidal constituent: M2; must be given once"),
        (lambda: TidalCurrent(HarmonicFlow((MOON,), START), 0.0, 1.0), "angle between flood and ebb (deg): 57.29"),
        (lambda: TidalEllipses((TidalEllipse(MOON, 99.0, 0.0),), START), "minor axis of M2"),
        (lambda: TidalEllipse(MOON, -0.6, 0.0), "minor axis of M2 (m/s): -0.6; must be at most the major axis, 0.5"),
        (lambda: TideTable(np.zeros(1), np.zeros(1), START), "2 at least"),
    ],
)
def test_invalid_tide_is_an_error(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(FieldError) as found:
        make()
    assert problem in str(found.value)
