from __future__ import annotations

from collections.abc import Callable

import pytest

from navsense.noise.specification import Noise
from navsense.sensors import AirPressure
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]


def make_barometer(body: str) -> str:
    return f'<sensor name="baro" type="air_pressure"><air_pressure>\n{body}</air_pressure></sensor>'


@pytest.mark.requirement("PRS-1")
def test_noise_and_reference_altitude(load: Load, wrap_in_link: Text) -> None:
    noise = '<pressure><noise type="gaussian"><mean>2</mean><stddev>3</stddev></noise></pressure>'
    (sensor,) = load(wrap_in_link(make_barometer(f"<reference_altitude>123</reference_altitude>{noise}"))).sensors
    assert sensor.spec == AirPressure(Noise(mean=2.0, stddev=3.0), 123.0)
    assert sensor.topic.endswith("/sensor/baro/air_pressure")
    (sensor,) = load(wrap_in_link(make_barometer(noise)), fidelity="classic").sensors
    assert sensor.spec == AirPressure(Noise(mean=2.0, stddev=3.0, classic=True))


def test_sensor_without_a_block_has_defaults(load: Load, wrap_in_link: Text) -> None:
    (sensor,) = load(wrap_in_link('<sensor name="baro" type="air_pressure"/>')).sensors
    assert sensor.spec == AirPressure()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<reference_altitude>up</reference_altitude>", "<air_pressure><reference_altitude>: up; must be a finite"),
        ("<pressure><x/></pressure>", "<pressure><x>; is not allowed here"),
        ("<presure/>", "<air_pressure><presure>; is not allowed here; did you mean pressure?"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, wrap_in_link: Text, body: str, problem: str
) -> None:
    assert list_problems(wrap_in_link(make_barometer(body)))[0].startswith(f"dive.sdf:6: {problem}")


@pytest.mark.requirement("PRS-1")
def test_two_ground_elevations_are_a_warning(load: Load, wrap_in_link: Text) -> None:
    place = "<spherical_coordinates><latitude_deg>47</latitude_deg><longitude_deg>8</longitude_deg>"
    for elevation, heights, told in ((488, 400, 1), (488, 0, 0), (0, 400, 0)):
        body = wrap_in_link(make_barometer(f"<reference_altitude>{heights}</reference_altitude>"))
        origin = f"{place}<elevation>{elevation}</elevation></spherical_coordinates>"
        world = load(body.replace('<world name="ocean">', f'<world name="ocean">{origin}'))
        notes = [note.what for note in world.notes if not note.what.startswith("<world>")]
        assert notes == ["<reference_altitude>: 400"] * told
