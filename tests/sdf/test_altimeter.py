from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from navsense.noise.specification import Noise
from navsense.sensors import Altimeter, ZeroReference
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]


def make_altimeter(body: str, extra: str = "") -> str:
    return f'<sensor name="alt" type="altimeter">{extra}<altimeter>\n{body}</altimeter></sensor>'


def make_reference(text: str, attributes: str = "") -> str:
    return make_altimeter(f"<navsense:reference{attributes}>{text}</navsense:reference>")


def get_spec(world: World) -> Altimeter:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Altimeter)
    return sensor.spec


@pytest.mark.requirement("ALT-3")
def test_height_and_velocity_have_separate_noise(load: Load, wrap_in_link: Text) -> None:
    parts = (("vertical_position", 1), ("vertical_velocity", 2))
    body = "".join(f'<{tag}><noise type="gaussian"><stddev>{i}</stddev></noise></{tag}>' for tag, i in parts)
    assert get_spec(load(wrap_in_link(make_altimeter(body)))) == Altimeter(Noise(stddev=1.0), Noise(stddev=2.0))


def test_sensor_without_a_block_has_defaults(load: Load, wrap_in_link: Text) -> None:
    assert get_spec(load(wrap_in_link('<sensor name="alt" type="altimeter"/>'))) == Altimeter()
    classic = load(wrap_in_link('<sensor name="alt" type="altimeter"/>'), fidelity="classic")
    assert get_spec(classic) == Altimeter(classic=True)


@pytest.mark.requirement("ALT-1")
@pytest.mark.parametrize(
    ("text", "attributes", "expected"),
    [
        ("12.5", "", 12.5),
        ("-3e2", "", -300.0),
        ("initial", "", ZeroReference()),
        (" initial ", ' period="60"', ZeroReference(60.0)),
    ],
)
def test_references_are_read(
    load: Load, wrap_in_link: Text, text: str, attributes: str, expected: float | ZeroReference
) -> None:
    world = load(wrap_in_link(make_reference(text, attributes)))
    assert get_spec(world).reference == expected
    assert not get_spec(world).classic
    assert not world.notes


@pytest.mark.requirement("ALT-1")
def test_default_reference_is_the_world_origin_or_the_classic_start_height(load: Load, wrap_in_link: Text) -> None:
    assert get_spec(load(wrap_in_link(make_altimeter("")))).reference == 0.0
    assert get_spec(load(wrap_in_link(make_altimeter("")), fidelity="classic")).classic
    own = make_altimeter("", "<navsense:fidelity>classic</navsense:fidelity>")
    assert get_spec(load(wrap_in_link(own))).classic


@pytest.mark.requirement("ALT-1")
def test_classic_reports_an_ignored_reference(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_reference("12.5")), fidelity="classic")
    (note,) = world.notes
    assert str(note).endswith(
        "dive.sdf:6: <navsense:reference>: 12.5: has no effect under classic, where the reference is the sensor's "
        "height at the start"
    )
    assert get_spec(world).classic


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (make_reference("high"), "<altimeter><navsense:reference>: high; must be a height in metres, or initial"),
        (make_reference(""), "<altimeter><navsense:reference>: empty; must be a height in metres, or initial"),
        (make_reference("1e999"), "<altimeter><navsense:reference>: 1e999; must be a height"),
        (make_reference("initial", ' period="0"'), "<navsense:reference period>: 0; must be a finite number > 0"),
        (make_reference("initial", ' period="soon"'), "<navsense:reference period>: soon; must be a finite number > 0"),
        (make_reference("5", ' period="60"'), "<navsense:reference period>: 60; must be absent for a constant height"),
        (make_reference("5", ' every="60"'), "<navsense:reference every>; is not allowed here"),
        (
            make_altimeter("<vertical_positon/>"),
            "<altimeter><vertical_positon>; is not allowed here; did you mean vertical_pos",
        ),
        (make_altimeter("<vertical_velocity><x/></vertical_velocity>"), "<vertical_velocity><x>; is not allowed here"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, wrap_in_link: Text, body: str, problem: str
) -> None:
    assert list_problems(wrap_in_link(body))[0].startswith(f"dive.sdf:6: {problem}")


@pytest.mark.requirement("ALT-1")
def test_reference_keywords_are_read() -> None:
    assert str(ZeroReference()) == "initial height of the sensor"
    assert str(ZeroReference(60.0)) == "initial height of the sensor and every 60 s"
    assert ZeroReference().period == math.inf


def test_default_topic(load: Load, wrap_in_link: Text) -> None:
    (sensor,) = load(wrap_in_link(make_altimeter(""))).sensors
    assert sensor.topic == "/world/ocean/model/auv/link/base/sensor/alt/altimeter"
