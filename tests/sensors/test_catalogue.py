"""The catalogue of parts: every value has a source, and its conversion to SI equals other programs."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from scipy import constants

from navsense.core.errors import SensorError, UnknownNameError
from navsense.sensors import catalogue
from navsense.sensors.catalogue import DatasheetEntry
from navsense.sensors.catalogue.units import ENTRY_NAMES, SECTION_UNITS, UNITS, get_si_unit

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = catalogue.list_parts()

GOOD = """
part = "A"
manufacturer = "B"
sensor = "imu"
grade = "tactical"
[sources.sheet]
citation = "B: A Data Sheet, revision 1, table 1"
address = "https://example.org/a.pdf"
accessed = 2026-11-21
reading = "sheet"
[angular_velocity]
noise_density = { value = 1, unit = "deg/sqrt(h)", source = "sheet" }
"""


def list_values(name: str) -> list[tuple[str, str, DatasheetEntry]]:
    entries = catalogue.load_part(name).entries
    return [(channel, key, figure) for channel, rows in entries.items() for key, figure in rows.items()]


def get_value(name: str, channel: str, key: str) -> DatasheetEntry:
    return catalogue.load_part(name).entries[channel][key]


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parts_tool", ROOT / "tools" / "parts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.requirement("IMU-3")
def test_catalogue_has_parts_of_every_type_and_grade() -> None:
    parts = [catalogue.load_part(name) for name in NAMES]
    assert len(parts) >= 12
    assert {part.sensor for part in parts} == set(catalogue.SENSOR_TYPES)
    assert {part.grade for part in parts} == set(catalogue.GRADES)
    assert len({part.part for part in parts}) == len(parts)


@pytest.mark.requirement("IMU-3")
@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_a_source(name: str) -> None:
    part = catalogue.load_part(name)
    assert {f.source for _, _, f in list_values(name)} == set(part.sources.values())  # none missing, none unused
    for source in part.sources.values():
        assert len(source.citation) > 25
        assert re.match(r"https?://[\w.-]+\.\w+", source.address)


@pytest.mark.requirement("IMU-3")
@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_in_the_si_unit_of_its_name(name: str) -> None:
    for channel, key, found in list_values(name):
        assert channel in SECTION_UNITS
        assert key in ENTRY_NAMES
        assert found.unit == get_si_unit(channel, key)
        assert len(found.values) == len(found.printed)
        least, *others = found.values
        assert least > 0 or (key == "range" and least == 0 and others)
        assert all(0 < value < math.inf for value in others)
        assert found.meaning or key != "turn_on_bias"


@pytest.mark.requirement("IMU-3")
@pytest.mark.parametrize("name", NAMES)
def test_every_part_has_error_parameters(name: str) -> None:
    channels = {"imu": {"angular_velocity", "linear_acceleration"}, "magnetometer": {"field"}}
    channels["dvl"] = {"beam", "bottom_track"}
    part = catalogue.load_part(name)
    assert channels.get(part.sensor, {"pressure"}) <= set(part.entries)
    if part.sensor == "dvl":
        assert {"noise_rms", "long_term_offset", "long_term_scale"} & set(part.entries["bottom_track"])
        return
    for rows in part.entries.values():
        assert {"noise_density", "noise_rms", "turn_on_bias"} & set(rows)


@pytest.mark.requirement("NOI-6", "DOO-1")
@pytest.mark.parametrize(
    ("name", "channel", "key", "value"),
    [
        # NavToolkit's documentation converts the same values, to five digits.
        ("stim300", "angular_velocity", "noise_density", 4.3633e-5),
        ("stim300", "angular_velocity", "bias_instability", 2.4241e-6),
        ("hg1700", "angular_velocity", "noise_density", 3.6361e-5),
        ("hg1700", "angular_velocity", "turn_on_bias", 4.8481e-6),
        ("hg1700", "linear_acceleration", "noise_density", 3.302e-4),
        ("hg9900", "angular_velocity", "noise_density", 5.8178e-7),
        ("hg9900", "angular_velocity", "turn_on_bias", 1.6968e-8),
        # An extract of the BMI270 datasheet converts these.
        ("bmi270", "angular_velocity", "noise_density", 1.22173e-4),
        ("bmi270", "angular_velocity", "turn_on_bias", 8.72665e-3),
        ("bmi270", "angular_velocity", "bias_temperature_coefficient", 2.61799e-4),
        ("bmi270", "linear_acceleration", "noise_density", 1.56906e-3),
        ("bmi270", "linear_acceleration", "bias_temperature_coefficient", 2.45166e-3),
        ("bmi270", "linear_acceleration", "noise_rms", 1.4808e-2),
        # Manual conversions: 0.07 / 60; 0.75 * 9.80665e-3; 3.2e-7; 1 / (16384 * 1e4); 120e-2; 500e-6.
        ("stim300", "linear_acceleration", "noise_density", 1.16667e-3),
        ("stim300", "linear_acceleration", "turn_on_bias", 7.35499e-3),
        ("lis3mdl", "field", "noise_rms", 3.2e-7),
        ("mmc5983ma", "field", "resolution", 6.10352e-9),
        ("ms5611", "pressure", "noise_rms", 1.2),
        ("bar30", "pressure", "noise_rms", 20.0),
        ("bar30", "pressure", "turn_on_bias", 5000.0),
        ("stim300", "angular_velocity", "scale_factor_error", 5e-4),
        ("pathfinder", "bottom_track", "noise_rms", 2e-3),
        ("pathfinder", "water_track", "layer", 16.0),
        ("a50", "bottom_track", "long_term_offset", 1e-3),
        ("a50", "beam", "width", 7.67945e-2),
        ("a50", "beam", "angle", 0.392699),
    ],
)
def test_values_are_converted_to_si(name: str, channel: str, key: str, value: float) -> None:
    assert get_value(name, channel, key).values[0] == pytest.approx(value, rel=5e-5, abs=0.0)


def test_units_equal_scipy() -> None:
    deg, g, hour, gauss = constants.degree, constants.g, constants.hour, 1e-4
    expected = {
        "rad/s": 1.0,
        "deg/s": deg,
        "deg/h": deg / hour,
        "deg/s/LSB": deg,
        "LSB/(deg/s)": deg,
        "rad/s/sqrt(Hz)": 1.0,
        "deg/s/sqrt(Hz)": deg,
        "deg/h/sqrt(Hz)": deg / hour,
        "deg/sqrt(h)": deg / math.sqrt(hour),
        "rad/s^2/sqrt(Hz)": 1.0,
        "deg/s/g": deg / g,
        "deg/h/g": deg / hour / g,
        "deg/s/K": deg,
        "deg/h/K": deg / hour,
        "m/s^2": 1.0,
        "g": g,
        "mg": g * constants.milli,
        "ug": g * constants.micro,
        "mg/LSB": g * constants.milli,
        "LSB/g": g,
        "m/s^2/sqrt(Hz)": 1.0,
        "mg/sqrt(Hz)": g * constants.milli,
        "ug/sqrt(Hz)": g * constants.micro,
        "m/s/sqrt(h)": 1.0 / math.sqrt(hour),
        "ft/s/sqrt(h)": constants.foot / math.sqrt(hour),
        "m/s^3/sqrt(Hz)": 1.0,
        "mg/K": g * constants.milli,
        "T": 1.0,
        "uT": constants.micro,
        "nT": constants.nano,
        "G": gauss,
        "mG": gauss * constants.milli,
        "LSB/uT": constants.micro,
        "LSB/G": gauss,
        "nT/sqrt(Hz)": constants.nano,
        "nT/K": constants.nano,
        "Pa": 1.0,
        "hPa": constants.hecto,
        "mbar": constants.bar * constants.milli,
        "bar": constants.bar,
        "LSB/hPa": constants.hecto,
        "Pa/K": 1.0,
        "m/s": 1.0,
        "cm/s": constants.centi,
        "mm/s": constants.milli,
        "m": 1.0,
        "dm": constants.deci,
        "cm": constants.centi,
        "rad": 1.0,
        "mrad": constants.milli,
        "deg": deg,
        "%": constants.centi,
        "%FS": constants.centi,
        "ppm": constants.micro,
        "%/K": constants.centi,
        "ppm/K": constants.micro,
        "Hz": 1.0,
    }
    assert set(expected) == set(UNITS)
    for name, unit in UNITS.items():
        assert unit.to_si(8.0) == pytest.approx(
            expected[name] / 8.0 if name.startswith("LSB/") else expected[name] * 8.0, rel=1e-12, abs=0.0
        )


@pytest.mark.parametrize(
    ("name", "channel", "bits"),
    [
        ("bmi088", "angular_velocity", 15),
        ("bmi088", "linear_acceleration", 15),
        ("bmi270", "angular_velocity", 15),
        ("bmi270", "linear_acceleration", 15),
        ("icm-42688-p", "angular_velocity", 15),
        ("icm-42688-p", "linear_acceleration", 15),
        ("mmc5983ma", "field", 17),
    ],
)
def test_range_and_resolution_of_a_datasheet_are_consistent(name: str, channel: str, bits: int) -> None:
    counts = get_value(name, channel, "range").values[0] / get_value(name, channel, "resolution").values[0]
    assert counts == pytest.approx(2.0**bits, rel=2e-3, abs=0.0)


@pytest.mark.parametrize(
    ("name", "channel", "bandwidth", "digit"),
    [
        ("icm-42688-p", "angular_velocity", 100.0, 0.0005),
        ("icm-42688-p", "linear_acceleration", 100.0, 0.005),
        ("bmi088", "angular_velocity", 47.0, 0.05),
    ],
)
def test_density_and_deviation_of_a_datasheet_are_consistent(
    name: str, channel: str, bandwidth: float, digit: float
) -> None:
    """The deviation is the one-sided density times sqrt(bandwidth), to half its last digit."""
    density, rms = get_value(name, channel, "noise_density"), get_value(name, channel, "noise_rms")
    scale = rms.printed[0] / rms.values[0]
    for level, deviation in zip(density.values, rms.values, strict=True):
        assert abs(level * math.sqrt(bandwidth) - deviation) * scale <= digit


def test_different_axes_keep_separate_values() -> None:
    assert get_value("bmi088", "linear_acceleration", "noise_density").printed == (160.0, 160.0, 190.0)
    assert get_value("bmp388", "pressure", "range").values == (30000.0, 125000.0)
    assert get_value("bar30", "pressure", "range").values == (0.0, 3e6)
    assert get_value("whn600", "beam", "range").values == (0.7, 90.0)
    assert get_value("whn600", "bottom_track", "noise_rms").values == (0.005,)
    assert get_value("bmp388", "pressure", "noise_rms").values == (1.2,)
    assert len(get_value("bmi088", "angular_velocity", "output_rate").values) == 1


@pytest.mark.requirement("IMU-3")
def test_names_are_case_insensitive() -> None:
    assert catalogue.load_part("BMI088") == catalogue.load_part("bmi088")
    assert catalogue.load_part("bmi088").name == "bmi088"


def test_unknown_name_error_lists_similar_names() -> None:
    with pytest.raises(UnknownNameError, match=r"bmi08; must be one of a50, .*; did you mean bmi088"):
        catalogue.load_part("bmi08")
    with pytest.raises(UnknownNameError, match="must be one of") as raised:
        catalogue.load_part("../imu")
    assert "did you mean" not in str(raised.value)


@pytest.mark.requirement("DOO-1")
def test_user_datasheet_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(GOOD, encoding="utf-8")
    found = catalogue.read_part(path, "mine").entries["angular_velocity"]["noise_density"]
    assert found.values == pytest.approx((math.pi / 180 / 60,) * 3, rel=1e-15, abs=0.0)
    assert (found.unit, found.source.reading, found.condition) == ("rad/s/sqrt(Hz)", "sheet", "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"deg/sqrt(h)"', '"m/s/sqrt(h)"', "noise_density.unit: m/s/sqrt.h.; must be a unit of rad/s/sqrt"),
        ('"deg/sqrt(h)"', '"furlong"', "noise_density.unit: furlong; must be a unit of"),
        ('source = "sheet"', 'source = "memory"', "noise_density.source: memory; must be a key of .sources."),
        (', source = "sheet" }', " }", "noise_density.source; must be a key"),
        ("value = 1", "value = [1, 2]", "noise_density: .1, 2.; must be 3 numbers > 0"),
        ("value = 1", "value = -1", "noise_density: -1; must be 3 numbers > 0"),
        ("value = 1", "value = nan", "noise_density: nan; must be"),
        ("value = 1", "value = true", "noise_density: True; must be"),
        ("noise_density", "noise", "angular_velocity.noise; is not an"),
        ("value = 1", "remark = 0, value = 1", "noise_density remark; is not an"),
        ("[angular_velocity]", "[spin]", "table: spin; must be part"),
        ('grade = "tactical"', 'grade = "good"', "grade: good; must be one of consumer"),
        ('grade = "tactical"', 'grade = "tactical"\ntransducer = "dish"', "transducer: dish; must be one of piston"),
        ('grade = "tactical"', 'grade = "tactical"\nnotes = 3', "notes: 3; must be a text"),
        ('grade = "tactical"', 'grade = "tactical"\nprice = 3', "table: price; must be"),
        ('part = "A"', 'part = ""', "part: ; must be a text"),
        ('citation = "B: A Data Sheet, revision 1, table 1"', "", "citation; must be a text"),
        ("accessed = 2026-11-21", 'accessed = "today"', "sheet.accessed: today; must be a date"),
        ('reading = "sheet"', 'reading = "guessed"', "reading: guessed; must be one of sheet, quoted"),
        ('part = "A"', "part = A", "TOML"),
    ],
)
def test_invalid_datasheet_is_an_error_with_location(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "a.toml"
    assert GOOD.count(old) == 1
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(SensorError, match=message) as raised:
        catalogue.read_part(path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(("value", "good"), [("[0, 30]", True), ("[30, 0]", False), ("[0, 0]", False), ("30", False)])
def test_pressure_range_has_two_limits(tmp_path: Path, value: str, good: bool) -> None:
    path = tmp_path / "a.toml"
    rows = f'[pressure]\nrange = {{ value = {value}, unit = "bar", source = "sheet" }}\n'
    path.write_text(GOOD + rows, encoding="utf-8")
    if good:
        assert catalogue.read_part(path).entries["pressure"]["range"].values == (0.0, 3e6)
        return
    with pytest.raises(SensorError, match=r"pressure.range: .*; must be two numbers >= 0, the lower one first"):
        catalogue.read_part(path)


def test_turn_on_bias_description(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    bias = 'turn_on_bias = { value = 1, unit = "deg/h", source = "sheet" }\n'
    path.write_text(GOOD + bias, encoding="utf-8")
    with pytest.raises(SensorError, match=r"turn_on_bias.meaning; must be given"):
        catalogue.read_part(path)


@pytest.mark.requirement("IMU-3")
def test_parts_page_is_up_to_date() -> None:
    tool = load_tool()
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run `python tools/parts.py`"


def test_start_page_counts_the_parts() -> None:
    assert f"{len(NAMES)} parts by name" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
