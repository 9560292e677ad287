from __future__ import annotations

from collections.abc import Callable

import pytest

from navsense.noise.specification import Noise
from navsense.sensors import NavSat
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

PLACE = """<spherical_coordinates><surface_model>EARTH_WGS84</surface_model><latitude_deg>47.5</latitude_deg>
<longitude_deg>8.5</longitude_deg><elevation>400</elevation><heading_deg>30</heading_deg></spherical_coordinates>"""


def make_noises(tag: str, first: int) -> str:
    axes = zip(("horizontal", "vertical"), (first, first + 1), strict=True)
    noises = (f'<{axis}><noise type="gaussian"><stddev>{n}</stddev></noise></{axis}>' for axis, n in axes)
    return f"<{tag}>{''.join(noises)}</{tag}>"


BODY = make_noises("position_sensing", 1) + make_noises("velocity_sensing", 3)
SHEET = NavSat(*(Noise(stddev=float(n)) for n in (1, 2, 3, 4)))


@pytest.fixture
def make_earth_world(wrap_in_link: Text) -> Text:
    """Return a function that wraps a sensor in a link of a world with coordinates; its block is on line 7."""

    def text(body: str, kind: str = "navsat") -> str:
        sensor = f'<sensor name="gps" type="{kind}">\n{body}</sensor>'
        return wrap_in_link(sensor).replace('<world name="ocean">', f'<world name="ocean">{PLACE}')

    return text


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize("kind", ["navsat", "gps"])
@pytest.mark.parametrize("block", ["navsat", "gps"])
def test_every_noise_has_both_names(load: Load, make_earth_world: Text, kind: str, block: str) -> None:
    (sensor,) = load(make_earth_world(f"<{block}>{BODY}</{block}>", kind)).sensors
    assert sensor.spec == SHEET
    assert sensor.topic == "/world/ocean/model/auv/link/base/sensor/gps/navsat"


def test_noise_of_some_channels_and_missing_block(load: Load, make_earth_world: Text) -> None:
    text = "<navsat><velocity_sensing><vertical><noise type='gaussian'><mean>1</mean></noise></vertical>"
    (sensor,) = load(make_earth_world(f"{text}<horizontal/></velocity_sensing><position_sensing/></navsat>")).sensors
    assert sensor.spec == NavSat(vertical_velocity=Noise(mean=1.0))
    (sensor,) = load(make_earth_world("")).sensors
    assert sensor.spec == NavSat()


@pytest.mark.requirement("NAV-1")
@pytest.mark.parametrize("kind", ["navsat", "gps"])
def test_navsat_without_world_coordinates_is_an_error(
    list_problems: ListProblems, wrap_in_link: Text, kind: str
) -> None:
    (line,) = list_problems(wrap_in_link(f'<sensor name="gps" type="{kind}"/>'))
    assert line == (
        'dive.sdf:5: <sensor type="navsat">: auv::base::gps; has no place on '
        "earth, which a NavSat requires; give the world <spherical_coordinates> "
        "with latitude_deg, longitude_deg and elevation"
    )


@pytest.mark.requirement("NAV-1", "SDF-1")
def test_invalid_coordinates_are_one_problem(list_problems: ListProblems, wrap_in_link: Text) -> None:
    """The sensor does not report the missing coordinates in addition."""
    text = wrap_in_link('<sensor name="gps" type="navsat"/>')
    wrong = PLACE.replace("<latitude_deg>47.5<", "<latitude_deg>540<")
    world = '<world name="ocean">'
    assert world in text
    assert wrong != PLACE
    (line,) = list_problems(text.replace(world, world + wrong, 1))
    assert "<latitude_deg>: 540; must be from -90 to 90" in line


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (f"<navsat>{BODY}</navsat><gps/>", "<gps>: is duplicated; is another name of <navsat>; remove one of them"),
        ("<navsat><position/></navsat>", "<navsat><position>; is not allowed here; did you mean position_sensing?"),
        ("<navsat><position_sensing><x/></position_sensing></navsat>", "<position_sensing><x>; is not allowed here"),
        ("<navsat/><navsat/>", "<sensor><navsat>: given twice"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, make_earth_world: Text, body: str, problem: str
) -> None:
    (line,) = list_problems(make_earth_world(body))
    assert line.partition(" ")[2].startswith(problem)
