"""`<magnetometer>`: noise of three axes, hard and soft iron, motor current."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors import Magnetometer
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]


def make_magnetometer(body: str) -> str:
    return f'<sensor name="mag" type="magnetometer"><magnetometer>\n{body}</magnetometer></sensor>'


@pytest.mark.requirement("MAG-3")
def test_every_axis_has_separate_noise(load: Load, wrap_in_link: Text) -> None:
    axes = "".join(f'<{a}><noise type="gaussian"><stddev>{i}</stddev></noise></{a}>' for i, a in ((1, "x"), (3, "z")))
    (sensor,) = load(wrap_in_link(make_magnetometer(axes))).sensors
    assert sensor.spec == Magnetometer(Noise(stddev=1.0), NO_NOISE, Noise(stddev=3.0))


@pytest.mark.requirement("MAG-7:iron", "MAG-7:motor_current")
def test_navsense_elements_are_read(load: Load, wrap_in_link: Text) -> None:
    body = """<navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>
<navsense:soft_iron>1.1 .05 -.03  .04 .95 .02  -.06 .07 .9</navsense:soft_iron>
<navsense:motor_current>2e-7 -3e-7 4e-7</navsense:motor_current>"""
    signal = '<world name="ocean"><navsense:signal name="motor_current">3</navsense:signal>'
    world = load(wrap_in_link(make_magnetometer(body)).replace('<world name="ocean">', signal))
    assert not world.notes
    assert world.sensors[0].spec == Magnetometer(
        hard_iron=(3e-6, -2e-6, 4e-6),
        soft_iron=(1.1, 0.05, -0.03, 0.04, 0.95, 0.02, -0.06, 0.07, 0.9),
        field_per_ampere=(2e-7, -3e-7, 4e-7),
    )


@pytest.mark.requirement("MAG-7:iron", "MAG-7:motor_current")
def test_invalid_navsense_elements_are_reported(list_problems: ListProblems, wrap_in_link: Text) -> None:
    for body, problem in (
        ("<navsense:hard_iron>1 2</navsense:hard_iron>", "<navsense:hard_iron>: 1 2; must be 3 finite numbers"),
        ("<navsense:soft_iron>1 0 0</navsense:soft_iron>", "<navsense:soft_iron>: 1 0 0; must be 9 finite numbers"),
        ("<navsense:motor_current/>", "<navsense:motor_current>"),
        (
            "<navsense:motor_current>1e200 0 0</navsense:motor_current>",
            "<navsense:motor_current>: 1e200 0 0; must be 3",
        ),
        ("<navsense:iron/>", "<navsense:iron>; is not allowed here"),
        ("<w/>", "<w>; is not allowed here"),
    ):
        (line,) = list_problems(wrap_in_link(make_magnetometer(body)))
        assert line.startswith(f"dive.sdf:6: <magnetometer>{problem}"), line


def test_element_outside_its_type_element_is_reported(list_problems: ListProblems, wrap_in_link: Text) -> None:
    body = '<sensor name="mag" type="magnetometer"><navsense:soft_iron>1 0 0 0 1 0 0 0 1</navsense:soft_iron></sensor>'
    (line,) = list_problems(wrap_in_link(body))
    assert line.endswith("<navsense:soft_iron> in <sensor>; belongs in <magnetometer>")
