"""Sensors of a user's own: handed to `load`, or announced by an installed package."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import navsense as ns
from navsense.core.errors import SdfError, SensorError
from navsense.sdf import document
from navsense.sensors import Imu

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "thermometer.py"
NAME = "balloon::basket::thermometer"


@pytest.fixture
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture
def hill(tmp_path: Path, example: dict[str, Any]) -> Path:
    path = tmp_path / "hill.sdf"
    path.write_text(example["WORLD"])
    return path


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    found: list[Any] = []
    monkeypatch.setattr(document, "entry_points", lambda group: found if group == "navsense.sensors" else [])
    document._load_installed_sensors.cache_clear()
    yield found
    document._load_installed_sensors.cache_clear()


def test_unknown_sensor_type_is_listed(hill: Path) -> None:
    world = ns.load(hill)
    assert not world.sensors
    assert any("thermometer" in note.what for note in world.notes)


def test_given_sensor_type_has_no_note(hill: Path, example: dict[str, Any]) -> None:
    world = ns.load(hill, sensors=[example["Thermometer"]])
    (sensor,) = world.sensors
    assert sensor.name == NAME
    assert sensor.spec.noise()["temperature"][0].stddev == 0.1
    assert not world.notes
    assert sensor.topic.endswith("/sensor/thermometer/thermometer")


@pytest.mark.parametrize(("kind", "gz"), [("thermometer", ""), ("custom", 'ignition:type="thermometer"')])
def test_alternative_type_names_are_read(hill: Path, example: dict[str, Any], kind: str, gz: str) -> None:
    hill.write_text(hill.read_text().replace('type="custom" gz:type="thermometer"', f'type="{kind}" {gz}'))
    assert len(ns.load(hill, sensors=[example["Thermometer"]]).sensors) == 1


def test_custom_sensor_errors_have_their_line(hill: Path, example: dict[str, Any]) -> None:
    hill.write_text(hill.read_text().replace("<thermometer>", "<thermometer><gradient>steep</gradient>"))
    with pytest.raises(SdfError, match=r"hill.sdf:6: .*<gradient>: steep"):
        ns.load(hill, sensors=[example["Thermometer"]])


def test_sensor_is_registered_by_an_entry_point(hill: Path, example: dict[str, Any], announced: list[Any]) -> None:
    announced.append(SimpleNamespace(name="thermometer", load=lambda: example["Thermometer"]))
    assert [sensor.name for sensor in ns.load(hill).sensors] == [NAME]


def test_import_error_names_the_package(hill: Path, announced: list[Any]) -> None:
    def broken() -> None:
        raise ImportError("no module named weather")

    announced.append(SimpleNamespace(name="rain", value="weather:Rain", dist=SimpleNamespace(name="wx"), load=broken))
    with pytest.raises(SensorError, match="sensor 'rain' of package wx: no module named weather"):
        ns.load(hill)


def test_built_in_sensor_type_may_be_named(hill: Path) -> None:
    assert ns.load(hill, sensors=[Imu]).name == "hill"  # type: ignore[list-item]  # it needs no fill of its own
