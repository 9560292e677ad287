"""Sensors of the user: passed to `load`, or registered by an installed package."""

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
def hill_world(tmp_path: Path, example: dict[str, Any]) -> Path:
    path = tmp_path / "hill.sdf"
    path.write_text(example["WORLD"])
    return path


@pytest.fixture
def install_entry_point(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    found: list[Any] = []
    monkeypatch.setattr(document, "entry_points", lambda group: found if group == "navsense.sensors" else [])
    document._load_installed_sensors.cache_clear()
    yield found
    document._load_installed_sensors.cache_clear()


def test_unknown_sensor_type_is_listed(hill_world: Path) -> None:
    world = ns.load(hill_world)
    assert not world.sensors
    assert any("thermometer" in note.what for note in world.notes)


def test_given_sensor_type_has_no_note(hill_world: Path, example: dict[str, Any]) -> None:
    world = ns.load(hill_world, sensors=[example["Thermometer"]])
    (sensor,) = world.sensors
    assert sensor.name == NAME
    assert sensor.spec.noise()["temperature"][0].stddev == 0.1
    assert not world.notes
    assert sensor.topic.endswith("/sensor/thermometer/thermometer")


@pytest.mark.parametrize(("kind", "gz"), [("thermometer", ""), ("custom", 'ignition:type="thermometer"')])
def test_alternative_type_names_are_read(hill_world: Path, example: dict[str, Any], kind: str, gz: str) -> None:
    hill_world.write_text(hill_world.read_text().replace('type="custom" gz:type="thermometer"', f'type="{kind}" {gz}'))
    assert len(ns.load(hill_world, sensors=[example["Thermometer"]]).sensors) == 1


def test_custom_sensor_errors_have_their_line(hill_world: Path, example: dict[str, Any]) -> None:
    hill_world.write_text(hill_world.read_text().replace("<thermometer>", "<thermometer><gradient>steep</gradient>"))
    with pytest.raises(SdfError, match=r"hill.sdf:6: .*<gradient>: steep"):
        ns.load(hill_world, sensors=[example["Thermometer"]])


def test_sensor_is_registered_by_an_entry_point(
    hill_world: Path, example: dict[str, Any], install_entry_point: list[Any]
) -> None:
    install_entry_point.append(SimpleNamespace(name="thermometer", load=lambda: example["Thermometer"]))
    assert [sensor.name for sensor in ns.load(hill_world).sensors] == [NAME]


def test_import_error_names_the_package(hill_world: Path, install_entry_point: list[Any]) -> None:
    def fail_to_import() -> None:
        raise ImportError("no module named weather")

    install_entry_point.append(
        SimpleNamespace(name="rain", value="weather:Rain", dist=SimpleNamespace(name="wx"), load=fail_to_import)
    )
    with pytest.raises(SensorError, match="sensor 'rain' of package wx: no module named weather"):
        ns.load(hill_world)


def test_built_in_sensor_type_may_be_named(hill_world: Path) -> None:
    assert ns.load(hill_world, sensors=[Imu]).name == "hill"  # type: ignore[list-item]  # it needs no fill of its own
