from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from navsense.noise.specification import Noise
from navsense.sensors import Altimeter, ZeroReference
from navsense.world import World

Load = Callable[..., World]
Refused = Callable[..., list[str]]
Text = Callable[..., str]


def altimeter(body: str, extra: str = "") -> str:
    return f'<sensor name="alt" type="altimeter">{extra}<altimeter>\n{body}</altimeter></sensor>'


def reference(text: str, attributes: str = "") -> str:
    return altimeter(f"<navsense:reference{attributes}>{text}</navsense:reference>")


def spec_of(world: World) -> Altimeter:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Altimeter)
    return sensor.spec


@pytest.mark.requirement("ALT-3")
def test_height_and_velocity_have_separate_noise(load: Load, in_link: Text) -> None:
    parts = (("vertical_position", 1), ("vertical_velocity", 2))
    body = "".join(f'<{tag}><noise type="gaussian"><stddev>{i}</stddev></noise></{tag}>' for tag, i in parts)
    assert spec_of(load(in_link(altimeter(body)))) == Altimeter(Noise(stddev=1.0), Noise(stddev=2.0))


def test_sensor_without_a_block_has_defaults(load: Load, in_link: Text) -> None:
    assert spec_of(load(in_link('<sensor name="alt" type="altimeter"/>'))) == Altimeter()
    classic = load(in_link('<sensor name="alt" type="altimeter"/>'), fidelity="classic")
    assert spec_of(classic) == Altimeter(classic=True)


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
    load: Load, in_link: Text, text: str, attributes: str, expected: float | ZeroReference
) -> None:
    world = load(in_link(reference(text, attributes)))
    assert spec_of(world).reference == expected
    assert not spec_of(world).classic
    assert not world.notes


@pytest.mark.requirement("ALT-1")
def test_default_reference_is_the_world_origin_or_the_classic_start_height(load: Load, in_link: Text) -> None:
    assert spec_of(load(in_link(altimeter("")))).reference == 0.0
    assert spec_of(load(in_link(altimeter("")), fidelity="classic")).classic
    own = altimeter("", "<navsense:fidelity>classic</navsense:fidelity>")
    assert spec_of(load(in_link(own))).classic


@pytest.mark.requirement("ALT-1")
def test_classic_reports_an_ignored_reference(load: Load, in_link: Text) -> None:
    world = load(in_link(reference("12.5")), fidelity="classic")
    (note,) = world.notes
    assert str(note).endswith(
        "dive.sdf:6: <navsense:reference>: 12.5: has no effect under classic, where the reference is the sensor's "
        "height at the start"
    )
    assert spec_of(world).classic


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (reference("high"), "<altimeter><navsense:reference>: high; must be a height in metres, or initial"),
        (reference(""), "<altimeter><navsense:reference>: empty; must be a height in metres, or initial"),
        (reference("1e999"), "<altimeter><navsense:reference>: 1e999; must be a height"),
        (reference("initial", ' period="0"'), "<navsense:reference period>: 0; must be a finite number > 0"),
        (reference("initial", ' period="soon"'), "<navsense:reference period>: soon; must be a finite number > 0"),
        (reference("5", ' period="60"'), "<navsense:reference period>: 60; must be absent for a constant height"),
        (reference("5", ' every="60"'), "<navsense:reference every>; is not allowed here"),
        (
            altimeter("<vertical_positon/>"),
            "<altimeter><vertical_positon>; is not allowed here; did you mean vertical_pos",
        ),
        (altimeter("<vertical_velocity><x/></vertical_velocity>"), "<vertical_velocity><x>; is not allowed here"),
    ],
)
def test_invalid_elements_are_reported(refused: Refused, in_link: Text, body: str, problem: str) -> None:
    assert refused(in_link(body))[0].startswith(f"dive.sdf:6: {problem}")


@pytest.mark.requirement("ALT-1")
def test_reference_keywords_are_read() -> None:
    assert str(ZeroReference()) == "initial height of the sensor"
    assert str(ZeroReference(60.0)) == "initial height of the sensor and every 60 s"
    assert ZeroReference().period == math.inf


def test_default_topic(load: Load, in_link: Text) -> None:
    (sensor,) = load(in_link(altimeter(""))).sensors
    assert sensor.topic == "/world/ocean/model/auv/link/base/sensor/alt/altimeter"
