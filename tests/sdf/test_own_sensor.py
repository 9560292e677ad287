"""Sensors of the user: passed to `load`, or registered by an installed package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, make_dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import SdfError, SensorError
from navsense.sdf import document
from navsense.sdf.context import Context
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.xml_reader import Element
from navsense.sensors import Imu, Output
from navsense.testing import check_sensor

NAME = "balloon::basket::thermometer"


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> Any:
    return load_example("thermometer")


@pytest.fixture
def hill_world(tmp_path: Path, example: Any) -> Path:
    path = tmp_path / "hill.sdf"
    path.write_text(example.WORLD)
    return path


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    entries: list[Any] = []
    monkeypatch.setattr(document, "entry_points", lambda group: entries if group == "navsense.sensors" else [])
    document._load_installed_sensors.cache_clear()
    yield entries
    document._load_installed_sensors.cache_clear()


def test_unknown_sensor_type_is_listed(hill_world: Path) -> None:
    world = ns.load(hill_world)
    assert not world.sensors
    assert any("thermometer" in note.what for note in world.notes)


def test_given_sensor_type_has_no_note(hill_world: Path, example: Any) -> None:
    world = ns.load(hill_world, sensors=[example.Thermometer])
    (sensor,) = world.sensors
    assert sensor.name == NAME
    assert sensor.spec.noise()["temperature"][0].stddev == 0.1
    assert not world.notes
    assert sensor.topic.endswith("/sensor/thermometer/thermometer")


@pytest.mark.parametrize(("kind", "gz"), [("thermometer", ""), ("custom", 'ignition:type="thermometer"')])
def test_alternative_type_names_are_read(hill_world: Path, example: Any, kind: str, gz: str) -> None:
    hill_world.write_text(hill_world.read_text().replace('type="custom" gz:type="thermometer"', f'type="{kind}" {gz}'))
    assert len(ns.load(hill_world, sensors=[example.Thermometer]).sensors) == 1


def test_custom_sensor_errors_have_their_line(hill_world: Path, example: Any) -> None:
    hill_world.write_text(hill_world.read_text().replace("<thermometer>", "<thermometer><gradient>steep</gradient>"))
    with pytest.raises(SdfError, match=r"hill.sdf:6: .*<gradient>: steep"):
        ns.load(hill_world, sensors=[example.Thermometer])


def test_sensor_is_registered_by_an_entry_point(hill_world: Path, example: Any, entries: list[Any]) -> None:
    entries.append(SimpleNamespace(name="thermometer", load=lambda: example.Thermometer))
    assert [sensor.name for sensor in ns.load(hill_world).sensors] == [NAME]


def test_import_error_names_the_package(hill_world: Path, entries: list[Any]) -> None:
    def fail_to_import() -> None:
        raise ImportError("no module named weather")

    entries.append(
        SimpleNamespace(name="rain", value="weather:Rain", dist=SimpleNamespace(name="wx"), load=fail_to_import)
    )
    with pytest.raises(SensorError, match="sensor 'rain' of package wx: no module named weather"):
        ns.load(hill_world)


def test_built_in_sensor_type_may_be_named(hill_world: Path) -> None:
    assert ns.load(hill_world, sensors=[Imu]).name == "hill"


def test_gradient_and_noise_are_read_from_the_fields(hill_world: Path, example: Any) -> None:
    hill_world.write_text(hill_world.read_text().replace("<thermometer>", "<thermometer><gradient>-0.01</gradient>"))
    (sensor,) = ns.load(hill_world, sensors=[example.Thermometer]).sensors
    assert sensor.spec == example.Thermometer(ns.Noise(stddev=0.1, precision=0.01), -0.01)


def test_unknown_element_of_a_user_sensor_is_an_error(hill_world: Path, example: Any) -> None:
    hill_world.write_text(hill_world.read_text().replace("<thermometer>", "<thermometer><slope>1</slope>"))
    with pytest.raises(SdfError, match=r"hill.sdf:6: <thermometer><slope>; is not allowed here"):
        ns.load(hill_world, sensors=[example.Thermometer])


def test_class_with_parse_reads_its_type_element(hill_world: Path, example: Any) -> None:
    class OffsetThermometer(example.Thermometer):  # type: ignore[misc]  # a module without types
        @staticmethod
        def parse(_context: Context, type_element: Element | None, sensor_context: SensorContext) -> Any:
            assert type_element is not None
            assert sensor_context.name == NAME
            return OffsetThermometer(gradient=float(len(type_element.children)))

    (sensor,) = ns.load(hill_world, sensors=[OffsetThermometer]).sensors
    assert sensor.spec == OffsetThermometer(gradient=1.0)


def test_missing_field_without_a_default_is_an_error(hill_world: Path, example: Any) -> None:
    required = make_dataclass("Required", [("lapse", float)], bases=(example.Thermometer,), frozen=True, kw_only=True)
    with pytest.raises(SdfError, match=r"hill.sdf:6: <thermometer><lapse>: missing; must be given"):
        ns.load(hill_world, sensors=[required])
    text = hill_world.read_text()
    first, last = text.index("<thermometer>"), text.index("</thermometer>") + len("</thermometer>")
    hill_world.write_text(text[:first] + text[last:])
    with pytest.raises(SdfError, match=r'hill.sdf:4: <sensor type="thermometer">: .*; requires <thermometer> with <l'):
        ns.load(hill_world, sensors=[required])


def test_field_whose_type_has_no_parser_is_an_error(hill_world: Path, example: Any) -> None:
    other = make_dataclass(
        "Other", [("table", dict[str, float], field(default_factory=dict))], bases=(example.Thermometer,), frozen=True
    )
    with pytest.raises(SensorError, match="field of the sensor thermometer: table; must be a Noise, number, flag"):
        ns.load(hill_world, sensors=[other])


def test_class_without_a_required_member_is_an_error(hill_world: Path, example: Any) -> None:
    members = {name: value for name, value in vars(example.Thermometer).items() if name not in ("noise", "init")}
    kind: Any = type("Partial", (), members)
    with pytest.raises(SensorError, match="class of a sensor: Partial; lacks noise, init; see docs"):
        ns.load(hill_world, sensors=[kind])
    with pytest.raises(SensorError, match="lacks noise, init"):
        check_sensor(kind)


def test_unknown_custom_type_is_named(hill_world: Path) -> None:
    (note,) = ns.load(hill_world).notes
    remedy = "for a sensor of your own see docs/how-to/adding-a-sensor.md"
    assert note.reason == f"no sensor has the type thermometer; {remedy}"


class Mode(StrEnum):
    """An enumeration without a type tag."""

    FAST = "fast"


def test_specification_without_a_type_tag_is_a_warning(
    hill_world: Path, example: Any, caplog: pytest.LogCaptureFixture
) -> None:
    mode = ("mode", Mode, Mode.FAST)
    with_mode = make_dataclass("WithMode", [mode], bases=(example.Thermometer,), frozen=True)
    ns.record(ns.load(hill_world, sensors=[with_mode]), hill_world.with_suffix(".mcap"), 1.0, seed=1)
    warnings = [record.getMessage() for record in caplog.records]
    assert [text for text in warnings if text.startswith(f"sensor {NAME}: its specification is not stored: ")]


def test_class_that_is_no_dataclass_is_an_error(hill_world: Path, example: Any) -> None:
    members = {name: value for name, value in vars(example.Thermometer).items() if not name.startswith("__")}
    kind: Any = type("Plain", (), members)
    with pytest.raises(SensorError, match="class of a sensor: Plain; must be a dataclass"):
        ns.load(hill_world, sensors=[kind])


@dataclass(frozen=True)
class ColumnMeasurement:
    """Turns the scalar arrays of a thermometer into columns (n, 1)."""

    spec: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spec, name)

    def measure(self, *args: Any) -> Any:
        state, measured = self.spec.measure(*args)
        return state, measured._replace(arrays={name: array[:, None] for name, array in measured.arrays.items()})


def test_array_with_another_shape_than_its_output_is_an_error(hill_world: Path, example: Any) -> None:
    world = ns.load(hill_world, sensors=[example.Thermometer])
    (sensor,) = world.sensors
    world = replace(world, sensors=(replace(sensor, spec=ColumnMeasurement(sensor.spec)),))
    with pytest.raises(SensorError, match=rf"array temperature of `measure` of sensor {NAME}: shape \(\d+, 1\); must"):
        ns.simulate(world, 1.0, seed=1)


def replace_method(world: ns.World, name: str, method: Callable[..., Any]) -> ns.World:
    """Return the world of one sensor with another method of its class."""
    (sensor,) = world.sensors
    kind = type("Changed", (type(sensor.spec),), {name: method, "__module__": "my_package"})
    return replace(world, sensors=(replace(sensor, spec=kind()),))


@pytest.mark.parametrize(
    ("ideal", "found"),
    [
        (lambda *_: {"temperature": np.zeros((10, 2))}, r"float64 \(10, 2\)"),
        (lambda *_: {"temperature": np.zeros(7)}, r"float64 \(7,\)"),
        (lambda *_: {"temperature": np.zeros(10, dtype=np.int64)}, r"int64 \(10,\)"),
        (lambda *_: {"temperature": [0.0] * 10}, r"list \(10,\)"),
    ],
)
def test_ideal_values_of_another_shape_or_type_are_an_error(
    hill_world: Path, example: Any, ideal: Callable[..., Any], found: str
) -> None:
    world = replace_method(ns.load(hill_world, sensors=[example.Thermometer]), "ideal", ideal)
    message = rf"ideal value temperature of `ideal` of sensor {NAME}: {found}; must be an array of float64"
    with pytest.raises(SensorError, match=message):
        ns.simulate(world, 1.0, seed=1)


@pytest.mark.parametrize("method", ["ideal", "measure"])
def test_exception_of_a_user_sensor_names_the_sensor_and_the_method(
    hill_world: Path, example: Any, method: str
) -> None:
    def fail(*_arguments: Any) -> None:
        raise ValueError("no such table")

    world = replace_method(ns.load(hill_world, sensors=[example.Thermometer]), method, fail)
    message = rf"hill.sdf:4: sensor {NAME}: method `{method}`: ValueError: no such table; must not raise"
    with pytest.raises(SensorError, match=message):
        ns.simulate(world, 1.0, seed=1)


def test_unknown_equivariance_of_an_output_is_an_error() -> None:
    with pytest.raises(SensorError, match="equivariance of the array t: axis; must be one of invariant, orientation"):
        Output("t", 0, "K", "axis")  # type: ignore[arg-type]
