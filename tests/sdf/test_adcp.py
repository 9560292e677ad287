"""`<adcp>`: each field of the spec has an element, and an invalid value is an error with its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from navsense.core.pose import from_rpy, rotate
from navsense.description import describe
from navsense.sdf.parse.doppler import ADCP_BINDING
from navsense.sensors import (
    Adcp,
    Beam,
    Beams,
    BeamVelocityErrors,
    BeamWeighting,
    BinMapping,
    Cone,
    CoordinateSystem,
    DepthCells,
    EchoStrength,
    Sound,
    Transducer,
    make_janus_beams,
)
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

FULL = """<sensor name="a" type="adcp"><update_rate>2</update_rate><navsense:fidelity>classic</navsense:fidelity><adcp>
<beams weighting="pattern" absorption="0.05" width_deg="3" rings="2">
<beam><pose degrees="true">0.1 0 -0.2 0 60 0</pose></beam>
<beam><pose degrees="true">0 0 0 0 60 120</pose></beam><beam><pose degrees="true">0 0 0 0 60 240</pose></beam>
<beam><pose degrees="true">0 0 0 0 90 0</pose></beam></beams>
<cells count="20" size="1.5" blanking="0.5" transmit_length="1.2" lag="0.1" samples="7"/>
<pings>12</pings><bottom_pings>6</bottom_pings><ping_interval>0.2</ping_interval>
<processing_time>0.01</processing_time><propagation>false</propagation><min>0.7</min><max>90</max>
<profile stddev="0.03" long_term_scale="0.003" long_term_offset="0.004"/>
<bottom stddev="0.005" long_term_scale="0.002" long_term_offset="0.001"/>
<reference_cell_size>2</reference_cell_size><range_stddev>0.1</range_stddev>
<backscatter level="60" absorption="0.15" correlation="0.8" threshold="7" slope="2"/>
<sound speed="1490"/><transducer>phased_array</transducer><coordinates>ship</coordinates>
<bin_mapping>nearest</bin_mapping><motion_compensated>true</motion_compensated><min_beams>4</min_beams>
<error_velocity_limit>0.4</error_velocity_limit><min_good_share>0.25</min_good_share><side_lobes>false</side_lobes>
<reference degrees="true">180 0 0</reference><own_hull>true</own_hull></adcp></sensor>"""
"""An `<adcp>` in which every field of the spec and of its parts differs from the default."""

OTHERS = {"dialect": "is that of Woods Hole's plug-in"}
"""Fields without an element in this block, with the reason."""


def get_spec(world: World) -> Adcp:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Adcp)
    return sensor.spec


def make_block(content: str) -> str:
    return f'<sensor name="a" type="adcp"><adcp>\n{content}</adcp></sensor>'


@pytest.mark.requirement("SDF-1", "GAP-8")
def test_every_element_is_read(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(FULL))
    assert not world.notes
    wide, turn = Cone(math.radians(3.0), 2), math.radians(60.0)
    places = ((0.1, 0.0, -0.2), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    turns = [(0.0, turn, 0.0), (0.0, turn, math.radians(120.0)), (0.0, turn, math.radians(240.0))]
    turns.append((0.0, math.radians(90.0), 0.0))
    beams = tuple(Beam(wide, from_rpy(*rpy), place) for rpy, place in zip(turns, places, strict=True))
    assert get_spec(world) == Adcp(
        beams=Beams(beams, BeamWeighting.PATTERN, 0.05),
        cells=DepthCells(20, 1.5, 0.5, 1.2, 0.1, 7),
        pings=12,
        bottom_pings=6,
        ping_interval=0.2,
        processing_time=0.01,
        propagation=False,
        minimum_range=0.7,
        maximum_range=90.0,
        profile=BeamVelocityErrors(0.03, 0.003, 0.004),
        bottom=BeamVelocityErrors(0.005, 0.002, 0.001),
        reference_cell_size=2.0,
        range_stddev=0.1,
        backscatter=EchoStrength(60.0, 0.15, 0.8, 7.0, 2.0),
        sound=Sound(1490.0),
        transducer=Transducer.PHASED_ARRAY,
        coordinates=CoordinateSystem.SHIP,
        bin_mapping=BinMapping.NEAREST,
        motion_compensated=True,
        min_beams=4,
        error_velocity_limit=0.4,
        min_good_share=0.25,
        side_lobes=False,
        reference=get_spec(world).reference,
        own_hull=True,
        classic=True,
    )
    assert rotate(get_spec(world).reference, (0.0, 1.0, 0.0)) == pytest.approx((0.0, -1.0, 0.0), abs=1e-15)
    text = "\n".join(describe(world))
    for line in ("adcp at 2 Hz", "cells: 20 of 1.5 m, the first at 1.9 m", "axes: ship", "12 profile pings"):
        assert line in text


def iter_fields(value: Any, default: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield each field with a value, and whether it differs from the default."""
    if not is_dataclass(value) or isinstance(value, type):
        yield path, value != default
        return
    for field in fields(value):
        found = getattr(value, field.name)
        own = getattr(default, field.name) if type(default) is type(value) else field.default
        yield from iter_fields(found, own, f"{path}.{field.name}")


@pytest.mark.requirement("SDF-1", "GAP-8")
def test_every_field_can_be_set_in_a_file(load: Load, wrap_in_link: Text) -> None:
    found = dict(iter_fields(get_spec(load(wrap_in_link(FULL))), Adcp(), "adcp"))
    unsaid = {name.removeprefix("adcp.") for name, is_other in found.items() if not is_other}
    assert unsaid == set(OTHERS)
    assert {name.split(".")[1] for name in found} == {field.name for field in fields(Adcp)}


@pytest.mark.requirement("SDF-1")
def test_defaults_of_an_empty_sensor(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link('<sensor name="a" type="adcp"/>'))
    assert get_spec(world) == Adcp() == get_spec(load(wrap_in_link(make_block(""))))
    assert world.sensors[0].topic == "/world/ocean/model/auv/link/base/sensor/a/adcp"
    thin = get_spec(load(wrap_in_link(make_block('<beams width_deg="3" rings="1"/>')))).beams
    crossed = [math.radians(a) for a in (-135.0, 135.0, 45.0, -45.0)]
    assert thin == make_janus_beams(math.radians(20.0), crossed, width=math.radians(3.0))
    up = get_spec(
        load(wrap_in_link(make_block("<beams><azimuths_deg>0 120 240</azimuths_deg><down>0 0 1</down></beams>")))
    ).beams
    assert len(up.beams) == 3
    assert min(axis[2] for axis in up.axes.tolist()) > 0.9


@pytest.mark.requirement("SDF-1", "GAP-8")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<cell/>", "dive.sdf:6: <adcp><cell>; is not allowed here; did you mean cells?"),
        ('<cells depth="2"/>', "dive.sdf:6: <cells depth>"),
        ('<cells count="0"/>', "dive.sdf:6: <cells> number of cells: 0; must be a whole number from 1 to 255"),
        ('<cells count="2.5"/>', "dive.sdf:6: <cells count>: 2.5; must be a whole number"),
        ('<cells size="-1"/>', "dive.sdf:6: <cells> size of a cell (m): -1.0; must be above 0"),
        ("<min>5</min>\n<max>5</max>", "dive.sdf:7: <max> maximum_range (m): 5.0; must be above the minimum, 5 m"),
        ("<max>5</max>\n<pings>2.5</pings>", "dive.sdf:7: <adcp><pings>: 2.5; must be a whole number from 1 to 1000"),
        ("<min_good_share>2</min_good_share>", "dive.sdf:6: <adcp><min_good_share>: 2; must be from 0 to 1"),
        ("<min_beams>5</min_beams>", "dive.sdf:6: <adcp><min_beams>: 5; must be at most 4"),
        (
            "<motion_compensated>1</motion_compensated>\n<bottom_pings>0</bottom_pings>",
            "dive.sdf:7: <adcp><bottom_pings>: 0; must be at least 1 for motion compensation; give pings",
        ),
        (
            "<coordinates>ground</coordinates>",
            "<adcp><coordinates>: ground; must be one of beam, instrument, ship, earth",
        ),
        ("<bin_mapping>on</bin_mapping>", "<adcp><bin_mapping>: on; must be one of none, nearest, linear"),
        ('<profile stddev="-1"/>', "dive.sdf:6: <profile> stddev of a profiler's velocity: -1.0; must be from 0 to"),
        ('<bottom noise="1"/>', "dive.sdf:6: <bottom noise>"),
        ("<backscatter/>", "dive.sdf:6: <backscatter level>: missing; must be given"),
        ('<beams angle_deg="90"/>', "dive.sdf:6: <beams> angle of the beams (rad): 1.5707963267948966"),
        ("<ping_interval>nan</ping_interval>", "<adcp><ping_interval>: nan; must be a finite number"),
    ],
)
def test_invalid_value_error_has_its_line(
    list_problems: ListProblems, wrap_in_link: Text, text: str, problem: str
) -> None:
    assert any(problem in one for one in list_problems(wrap_in_link(make_block(text)))), list_problems(
        wrap_in_link(make_block(text))
    )


@pytest.mark.requirement("SDF-1", "GAP-8")
def test_documentation_example_has_every_element(load: Load, wrap_in_link: Text) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "adcp.md").read_text(encoding="utf-8")
    text = page.partition("```xml\n")[2].partition("```")[0].replace("base_link", "base")
    world = load(wrap_in_link(text))
    assert not world.notes
    spec = get_spec(world)
    assert spec.duration == pytest.approx(4 * 0.1 + 4 * 2 * 100 / 1500 + 0.01, rel=1e-12, abs=0.0)
    assert [
        replace(spec, pings=n, bottom_pings=n).count_ticks_per_ensemble(rate)
        for n, rate in ((4, 1.0), (5, 1.0), (5, 2.0))
    ] == [
        1,
        2,
        3,
    ]
    assert [tag for tag in ADCP_BINDING.schema.children if f"<{tag}" not in text] == []


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(
    ("content", "pose", "down"),
    [
        ("<beams angle_deg='20'><azimuths_deg>0 90 180 270</azimuths_deg><down>0 0 1</down></beams>", "0 0 0", 0),
        ("", "180 0 0", 0),
        ("", "90 0 0", 2),
        ("", "90 0 45", 2),
    ],
)
def test_motion_compensation_without_bottom_in_view_warns(
    load: Load, wrap_in_link: Text, content: str, pose: str, down: int
) -> None:
    """Upward-looking and horizontal profilers warn. Downward-looking or uncompensated profilers do not."""
    text = f"""<sensor name="a" type="adcp"><pose degrees="true">0 0 0 {{}}</pose><adcp>
<motion_compensated>{{}}</motion_compensated>{content}</adcp></sensor>"""
    world = load(wrap_in_link(text.format(pose, "true")))
    (note,) = world.notes
    assert (note.kind, note.where) == ("warning", world.sensors[0].where)
    assert f"only {down} beams point down and a velocity needs 3" in str(note)
    assert any("needs bottom track, but only" in line for line in describe(world))
    assert not load(wrap_in_link(text.format(pose, "false"))).notes
    assert not load(wrap_in_link(text.format("0 0 0" if not content else "180 0 0", "true"))).notes


def test_beams_of_an_adcp_can_be_visualized(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(FULL.replace('type="adcp">', 'type="adcp"><visualize>true</visualize>')))
    assert [sensor.visualize for sensor in world.sensors] == [True]
    assert not [note for note in world.notes if "visualize" in note.what]
