"""`<dvl>`: each field of the spec has an element, and an invalid value is an error with its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import from_rpy, rotate
from navsense.description import describe
from navsense.noise.specification import Noise
from navsense.sensors import Cone, Sound
from navsense.sensors.doppler import (
    Beam,
    Beams,
    BeamWeighting,
    DvlMessageOptions,
    EchoStrength,
    LongTermFilter,
    MessageDialect,
    TrackErrors,
    Transducer,
    WaterMassLayer,
    make_janus_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

FULL = """<sensor name="d" type="dvl"><pose degrees="true">0 0 0 0 0 90</pose>
<navsense:fidelity>classic</navsense:fidelity><dvl>
<beams weighting="pattern" absorption="0.05" width_deg="3" rings="2">
<beam id="3"><pose degrees="true">0.1 0 -0.2 0 60 0</pose></beam>
<beam width_deg="5" rings="1"><pose degrees="true">0 0 0 0 60 120</pose></beam>
<beam rotation_deg="45" tilt_deg="30"/></beams>
<min>0.5</min><max>90</max>
<bottom_track when="best"><noise type="gaussian"><stddev>0.002</stddev></noise><per_speed>0.001</per_speed>
<reference_rate>8</reference_rate><reported_stddev>0.004</reported_stddev><long_term_scale>0.0015</long_term_scale>
<long_term_offset>0.0012</long_term_offset><maximum_velocity>9</maximum_velocity></bottom_track>
<water_track when="always"><noise type="gaussian"><mean>0.01</mean></noise><per_speed>0.003</per_speed>
<reference_rate>4</reference_rate><reported_stddev>0.005</reported_stddev><long_term_scale>0.0025</long_term_scale>
<long_term_offset>0.0022</long_term_offset><maximum_velocity>8</maximum_velocity>
<layer near="5" far="30" minimum_size="2" samples="7" share="0.75"/>
</water_track>
<range><noise type="gaussian_quantized"><precision>0.01</precision></noise></range>
<strength level="90" absorption="0.04" correlation="0.8" threshold="7" slope="2"/>
<sound speed="1490"/><transducer>phased_array</transducer>
<misalignment_deg>0.1 -0.2 0.5</misalignment_deg><misalignment_stddev_deg>0.25</misalignment_stddev_deg>
<min_incidence_cosine>0.2</min_incidence_cosine><error_velocity_limit>0.3</error_velocity_limit>
<dropout_probability>0.01</dropout_probability><reacquisition_time>2</reacquisition_time>
<propagation>false</propagation><processing_time>0.02</processing_time>
<long_term acceleration_density="0.05" stddev="0.002" scale="0.001"/>
<reference degrees="true">180 0 0</reference><own_hull>true</own_hull></dvl></sensor>"""
"""A `<dvl>` in which every field of the spec and of its parts differs from the default."""


TILT = 'tilt_deg="9"'


def get_spec(world: World) -> Dvl:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Dvl)
    return sensor.spec


def make_block(content: str) -> str:
    return f'<sensor name="d" type="dvl"><dvl>\n{content}</dvl></sensor>'


def radians(*degrees: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in degrees)


@pytest.mark.requirement("SDF-1", "GAP-1", "GAP-2", "GAP-3", "GAP-6")
def test_every_element_is_read(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(FULL))
    assert not world.notes
    wide, turn = Cone(math.radians(3.0), 2), math.radians(60.0)
    tilted = get_spec(world).beams.beams[2]
    beams = (
        Beam(wide, from_rpy(0.0, turn, 0.0), (0.1, 0.0, -0.2)),
        Beam(Cone(math.radians(5.0), 1), from_rpy(0.0, turn, math.radians(120.0))),
        tilted,
    )
    azimuth = math.radians(180.0 - 45.0)
    looks = (0.5 * math.cos(azimuth), 0.5 * math.sin(azimuth), -math.cos(math.radians(30.0)))
    assert tilted.axis == pytest.approx(looks, abs=1e-15)
    assert tilted.shape == wide
    noises = Noise(stddev=0.002, classic=True), Noise(mean=0.01, classic=True)
    assert get_spec(world) == Dvl(
        beams=Beams(beams, BeamWeighting.PATTERN, 0.05),
        minimum_range=0.5,
        maximum_range=90.0,
        bottom=TrackErrors(noises[0], 0.001, 8.0, 0.004, 0.0015, 0.0012, 9.0),
        water=TrackErrors(noises[1], 0.003, 4.0, 0.005, 0.0025, 0.0022, 8.0),
        range_noise=Noise(precision=0.01, classic=True),
        bottom_mode=TrackMode.BEST,
        water_mode=TrackMode.ALWAYS,
        layer=WaterMassLayer(5.0, 30.0, 2.0, 7, 0.75),
        echo_strength=EchoStrength(90.0, 0.04, 0.8, 7.0, 2.0),
        sound=Sound(1490.0),
        transducer=Transducer.PHASED_ARRAY,
        misalignment=radians(0.1, -0.2, 0.5),  # type: ignore[arg-type]
        misalignment_stddev=math.radians(0.25),
        min_incidence_cosine=0.2,
        error_velocity_limit=0.3,
        dropout_probability=0.01,
        reacquisition_time=2.0,
        propagation=False,
        processing_time=0.02,
        long_term=LongTermFilter(0.05, 0.002, 0.001),
        reference=get_spec(world).reference,
        own_hull=True,
        classic=True,
        message_options=DvlMessageOptions(beam_ids=(3, 4, 5)),
    )
    assert rotate(get_spec(world).reference, (0.0, 1.0, 0.0)) == pytest.approx((0.0, -1.0, 0.0), abs=1e-15)


def iter_fields(value: Any, default: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield each field with a value, and whether it differs from the default."""
    if not is_dataclass(value) or isinstance(value, type):
        yield path, value != default
        return
    for field in fields(value):
        found = getattr(value, field.name)
        own = getattr(default, field.name) if type(default) is type(value) else field.default
        yield from iter_fields(found, own, f"{path}.{field.name}")


OTHERS = {
    "dialect": "goes by the block",
    "message_options.ranges_topic": "of the dialect of Woods Hole",
    "message_options.pointcloud_frame": "of the dialect of Woods Hole",
    "message_options.pointcloud_pose": "of the dialect of Woods Hole",
    "message_options.cloud_points": "of the dialect of Woods Hole",
    "message_options.beam_frames": "of the dialect of the UUV Simulator",
    "message_options.world_ned_frame": "of the dialect of the UUV Simulator",
    "missing_values": "of a part of the catalogue",
}
"""Fields without an element in this block, with the reason."""


@pytest.mark.requirement("SDF-1", "GAP-2")
def test_every_field_can_be_set_in_a_file(load: Load, wrap_in_link: Text) -> None:
    """Fields of `Noise`, which `<noise>` has. One of them is sufficient."""
    found = dict(iter_fields(get_spec(load(wrap_in_link(FULL))), Dvl(), "dvl"))
    kept = {name.removeprefix("dvl."): is_other for name, is_other in found.items() if ".range_noise." not in name}
    noises = {name for name in kept if ".noise." in name}
    unsaid = {name for name, is_other in kept.items() if not is_other} - noises
    starts = {start for start in OTHERS if any(name.startswith(start) for name in unsaid)}
    assert starts == set(OTHERS)
    assert {name for name in unsaid if not name.startswith(tuple(OTHERS))} == set()
    assert {field.name for field in fields(Dvl)} == {name.partition(".")[0] for name in kept} | {"range_noise"}


@pytest.mark.requirement("SDF-1")
def test_defaults_of_an_empty_sensor(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link('<sensor name="d" type="dvl"/>'))
    assert get_spec(world) == Dvl() == get_spec(load(wrap_in_link(make_block(""))))
    assert world.sensors[0].topic == "/world/ocean/model/auv/link/base/sensor/d/dvl"
    through = get_spec(load(wrap_in_link(make_block('<water_track><layer near="1" far="9"/></water_track>'))))
    assert (through.bottom_mode, through.water_mode, through.layer) == (
        TrackMode.ALWAYS,
        TrackMode.FALLBACK,
        WaterMassLayer(1.0, 9.0),
    )


@pytest.mark.requirement("GAP-6")
def test_beams_at_one_janus_angle(load: Load, wrap_in_link: Text) -> None:
    text = '<beams angle_deg="25" width_deg="4"><azimuths_deg>0 120 240</azimuths_deg><down>0 0 1</down></beams>'
    found = get_spec(load(wrap_in_link(make_block(text)))).beams
    expected = make_janus_beams(
        math.radians(25.0), radians(0.0, 120.0, 240.0), width=math.radians(4.0), down=(0.0, 0.0, 1.0)
    )
    assert found == expected
    thin = get_spec(load(wrap_in_link(make_block('<beams angle_deg="20"/>')))).beams
    assert thin == make_janus_beams(math.radians(20.0), radians(-135.0, 135.0, 45.0, -45.0))


@pytest.mark.requirement("GAP-6", "SDF-1")
@pytest.mark.parametrize(("angle", "is_reported"), [("0.5236", True), ("4.9", True), ("5", False), ("30", False)])
def test_angle_in_radians_is_an_error(load: Load, wrap_in_link: Text, angle: str, *, is_reported: bool) -> None:
    world = load(wrap_in_link(make_block(f'<beams angle_deg="{angle}"/>')))
    notes = [(note.kind, note.what, note.reason, note.where and note.where.line) for note in world.notes]
    reason = f"is read as degrees; if it is in radians, write {math.degrees(float(angle)):.4g}"
    assert notes == ([("warning", f"<beams angle_deg>: {angle}", reason, 6)] if is_reported else [])


@pytest.mark.requirement("GAP-7")
@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("", (1.0, 2.0, 3.0)),
        ('<reference degrees="true">0 0 90</reference>', (2.0, -1.0, 3.0)),
        ('<reference link="nose"/>', (-2.0, 1.0, 3.0)),
        ('<reference link="auv::nose">3.141592653589793 0 0</reference>', (-2.0, -1.0, -3.0)),
    ],
)
def test_velocity_axes_are_read(
    load: Load, wrap_in_world: Text, reference: str, expected: tuple[float, float, float]
) -> None:
    """The sensor is rotated by 30 degrees on its link, the nose by -60 on the model: by -90 in the sensor frame."""
    text = f"""<model name="auv"><pose degrees="true">0 0 0 10 20 30</pose><link name="base">
<sensor name="d" type="dvl"><pose degrees="true">1 0 0 0 0 30</pose><dvl>{reference}</dvl></sensor></link>
<link name="nose"><pose degrees="true">1 0 0 0 0 -60</pose></link></model>"""
    assert rotate(get_spec(load(wrap_in_world(text))).reference, (1.0, 2.0, 3.0)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.requirement("SDF-1", "GAP-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<beam/>", "dive.sdf:6: <dvl><beam>; is not allowed here; did you mean beams?"),
        ("<min>5</min>\n<max>5</max>", "dive.sdf:7: <max> maximum_range (m): 5.0; must be above the minimum, 5 m"),
        ("<max>nan</max>", "dive.sdf:6: <dvl><max>: nan; must be a finite number"),
        (
            '<beams angle_deg="90"/>',
            "dive.sdf:6: <beams> angle of the beams (rad): 1.5707963267948966; must be above 0 and below pi / 2",
        ),
        ('<beams angle_deg="0"/>', "dive.sdf:6: <beams> angle of the beams (rad): 0.0; must be above 0"),
        (
            "<beams><azimuths_deg>0 180</azimuths_deg></beams>",
            "dive.sdf:6: <beams> beams: 2; must be from 3 to 16",
        ),
        (
            "<beams><azimuths_deg>10 10 10</azimuths_deg></beams>",
            "dive.sdf:6: <beams> axes of the beams: (0.4924 0.08682 -0.866)",
        ),
        ("<beams><azimuths_deg>0 x 9</azimuths_deg></beams>", "<beams><azimuths_deg>: 0 x 9; must be finite numbers"),
        ('<beams weighting="mean"/>', "<beams weighting>: mean; must be one of plane, nearest, pattern"),
        ('<beams width_deg="400"/>', "<beams> width of a beam (rad): 6.98"),
        ('<beams rings="1.5" width_deg="3"/>', "<beams rings>: 1.5; must be a whole number"),
        ("<beams><down>0 0 0</down></beams>", "<beams> down: (0.0, 0.0, 0.0); must be 3 finite numbers, not all 0"),
        ('<beams angle_deg="9"><beam tilt_deg="3"/></beams>', "<beams angle_deg>: 9; must not be combined with"),
        ("<beams><down>0 0 1</down><beam/></beams>", "<beams><down>: 0 0 1; must not be combined with"),
        ("<beams><beam/></beams>", "dive.sdf:6: <beam tilt_deg>: missing; must be given, or a <pose>"),
        ('<beams>\n<beam tilt_deg="95"/></beams>', "dive.sdf:7: <beam> tilt of a beam (rad): 1.65"),
        ('<beams><beam tilt_deg="5"><pose/></beam></beams>', "<beam tilt_deg>: 5.0; must not be combined with <pose>"),
        (
            f'<beams><beam id="1" {TILT}/><beam {TILT}/>\n<beam id="2" {TILT}/></beams>',
            "dive.sdf:7: <beam id>: 2; must be unique among the beams",
        ),
        ('<bottom_track when="sometimes"/>', "<bottom_track when>: sometimes; must be one of never, always, best"),
        ('<bottom_track when="fallback"/>', "<bottom_track when>: fallback; must be one of never, always, best"),
        (
            '<bottom_track when="never"/>',
            "<bottom_track when> bottom_mode and water_mode: never; must not both be never",
        ),
        (
            "<bottom_track>\n<per_speed>-1</per_speed></bottom_track>",
            "dive.sdf:7: <bottom_track><per_speed>: -1; must be >= 0",
        ),
        ("<bottom_track><layer/></bottom_track>", "<bottom_track><layer>; is not allowed here"),
        ("<water_track/>", "dive.sdf:6: <water_track> layer; must be given for a water track"),
        ('<water_track><layer near="1"/></water_track>', "<layer far>: missing; must be given"),
        (
            '<water_track>\n<layer near="9" far="9"/></water_track>',
            "dive.sdf:7: <layer> far boundary of the water layer (m): 9.0; must be beyond the near one",
        ),
        (
            '<max>50</max><water_track>\n<layer near="9" far="45"/></water_track>',
            "dive.sdf:7: <layer> far boundary of the water layer (m): 45.0; must be at most 43.3013 m",
        ),
        ('<strength absorption="1"/>', "<strength level>: missing; must be given"),
        (
            '<strength level="9" correlation="1"/>',
            "<strength> correlation of the echo's strength: 1.0; must be above 0",
        ),
        ('<sound speed="9"/>', "<sound> assumed speed of sound (m/s): 9.0; must be from 100"),
        ("<transducer>laser</transducer>", "<dvl><transducer>: laser; must be one of piston, phased_array"),
        ("<misalignment_deg>0 0 90</misalignment_deg>", "<misalignment_deg> misalignment (rad): (0.0, 0.0, 1.57"),
        (
            "<misalignment_stddev_deg>90</misalignment_stddev_deg>",
            "<misalignment_stddev_deg> misalignment_stddev: 1.57",
        ),
        (
            "<dropout_probability>2</dropout_probability>",
            "<dvl><dropout_probability>: 2; must be from 0 to 1",
        ),
        ('<long_term stddev="1"/>', "<long_term acceleration_density>: missing; must be given"),
        ('<long_term acceleration_density="0"/>', "<long_term> acceleration_density of the long-term filter"),
        ('<reference link="tail"/>', "<reference link>: tail; must name a link of the model"),
        ("<reference>1 2</reference>", "<dvl><reference>: 1 2; must be 3 finite numbers: roll pitch yaw"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, wrap_in_link: Text, text: str, problem: str
) -> None:
    lines = list_problems(wrap_in_link(make_block(text)))
    assert any(problem in line for line in lines), lines


@pytest.mark.requirement("SDF-1")
def test_custom_sensor_without_block_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link('<sensor name="d" type="custom" gz:type="dvl"/>'))
    assert line.startswith("dive.sdf:5: <sensor>: no type element; requires <gz:dvl>, as in Gazebo")


@pytest.mark.requirement("SDF-1")
def test_two_blocks_are_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line, *_) = list_problems(wrap_in_link('<sensor name="d" type="dvl"><dvl/><gz:dvl/></sensor>'))
    assert "<gz:dvl>: is duplicated; is another name of <dvl>; remove one of them" in line


BED = """<model name="bed"><static>true</static><pose>0 0 -20 0 0 0</pose><link name="l"><collision name="c">
<geometry><plane/></geometry></collision></link></model>"""
MOVES = """<navsense:motion loop="true"><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
<navsense:waypoint time="5">4 3 1 0.1 -0.1 1</navsense:waypoint>
<navsense:waypoint time="10">0 0 0 0 0 0</navsense:waypoint></navsense:motion>"""


@pytest.mark.requirement("GAP-1", "GAP-5", "GAP-7", "CUR-2")
def test_dive_over_a_flat_bottom(load: Load, wrap_in_world: Text) -> None:
    """Both tracks and the altitude equal the closed form of the truth of the run, in link axes."""
    sensor = """<sensor name="d" type="dvl"><pose>0.5 0 -0.1 0.2 0.1 2</pose><update_rate>10</update_rate><dvl>
<propagation>false</propagation><bottom_track/><water_track when="always"><layer near="2" far="9"/></water_track>
<reference link="base"/></dvl></sensor>"""
    water = '<navsense:current><uniform>0.3 -0.2 0</uniform></navsense:current><navsense:water surface="50"/>'
    world = load(wrap_in_world(f'{water}<model name="auv"><link name="base">{sensor}</link>{MOVES}</model>{BED}'))
    assert any("water track: always, 2 to 9 m along the axis" in line for line in describe(world))
    run = ns.simulate(world, 10.0, seed=1, truth_rate=10.0)
    reading, truth = run["auv::base::d"], run.truth["auv::base"]
    assert reading.time.size == 100
    assert np.isfinite(reading["velocity"]).all()
    lever = np.array([0.5, 0.0, -0.1])
    for k, (w, x, y, z) in enumerate(truth.orientation.tolist()):
        back = (w, -x, -y, -z)
        own = np.array(rotate(back, tuple(truth.velocity[k]))) + np.cross(truth.angular_velocity[k], lever)
        assert reading["velocity"][k] == pytest.approx(own, abs=1e-9)
        assert reading["water_velocity"][k] == pytest.approx(own - rotate(back, (0.3, -0.2, 0.0)), abs=1e-9)
        height = 20.0 + truth.position[k, 2] + rotate((w, x, y, z), (0.5, 0.0, -0.1))[2]
        assert reading["altitude"][k] == pytest.approx(height, abs=1e-9)


@pytest.mark.requirement("SDF-1")
def test_example_of_the_page_on_worlds_can_be_loaded(load: Load, wrap_in_link: Text) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "worlds.md").read_text(encoding="utf-8")
    example = page.partition("## Doppler velocity logs\n")[2].partition("```xml")[2].partition("```")[0]
    world = load(wrap_in_link(f'<sensor name="d" type="dvl">{example}</sensor>'))
    assert not world.notes
    assert get_spec(world).dialect is MessageDialect.OWN
    assert get_spec(world).layer is not None
    assert get_spec(world).long_term is not None
