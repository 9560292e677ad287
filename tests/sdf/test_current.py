"""`<navsense:current>` and the current plug-ins of other programs."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from navsense import sdf
from navsense.description import describe
from navsense.environment.base import FieldSum, UniformField, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    CurrentReplay,
    DepthScaledCurrent,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    GriddedCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
    UuvGaussMarkovProcess,
    realise,
)
from navsense.world import CurrentTopic, LayersTopic, World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

START = 'start="2021-03-04T15:00Z"'
INSTANT = datetime(2021, 3, 4, 15, tzinfo=UTC)
LAYERS = '<layer depth="0">0.5 0.1 0</layer><layer depth="20">0.2 -0.1 0.01</layer>'
TABLE = StratifiedCurrent((0.0, 20.0), ((0.5, 0.1, 0.0), (0.2, -0.1, 0.01)))


def make_current(content: str, attributes: str = "") -> str:
    return f"<navsense:current {attributes}>\n{content}\n</navsense:current>"


def evaluate(field: VectorField | None, z: float = 0.0, time: float = 0.0) -> list[float]:
    assert field is not None
    velocity: list[float] = field.at(np.array([[0.0, 0.0, z]]), np.array([time]))[0].tolist()
    return velocity


# navsense's element


KINDS: dict[str, tuple[str, VectorField]] = {
    "uniform": ("<uniform>0.1 -0.2 0.03</uniform>", UniformField((0.1, -0.2, 0.03))),
    "gauss_markov": (
        """<gauss_markov name="wander">
        <speed mean="0.3" minimum="0" maximum="1" correlation_time="600" density="0.01"/>
        <horizontal_angle degrees="true" mean="90" stddev="18" correlation_time="60"/><vertical_angle mean="0.1"/>
        </gauss_markov>""",
        GaussMarkovCurrent(
            GaussMarkovProcess(0.3, 0.0, 1.0, 600.0, 0.01),
            GaussMarkovProcess.from_stddev(math.radians(90.0), math.radians(18.0), 60.0),
            GaussMarkovProcess(0.1),
            "wander",
        ),
    ),
    "stratified": (
        f'<stratified outside="error">{LAYERS}</stratified>',
        StratifiedCurrent(TABLE.depths, TABLE.velocities, outside="error"),
    ),
    "wandering layers": (
        """<stratified><layer depth="5">0.2 0 0</layer><direction density="0.001"/>
        <speed minimum="0" maximum="2" stddev="0.05" correlation_time="100"/></stratified>""",
        StratifiedGaussMarkovCurrent(
            StratifiedCurrent((5.0,), ((0.2, 0.0, 0.0),)),
            GaussMarkovProcess.from_stddev(0.0, 0.05, 100.0, 0.0, 2.0),
            GaussMarkovProcess(density=0.001),
        ),
    ),
    "tidal": (
        """<tidal flood_direction_deg="255" ebb_direction_deg="69" mean="0.05">
        <constituent name="M2" amplitude="0.55" phase_deg="7.2"/>
        <constituent name="own" amplitude="0.1" phase_deg="90" speed_deg_per_hour="15" greenwich="false"/></tidal>""",
        TidalCurrent(
            HarmonicFlow(
                (
                    TidalConstituent.from_degrees("M2", 0.55, 7.2),
                    TidalConstituent.from_degrees("own", 0.1, 90.0, 15.0, greenwich=False),
                ),
                INSTANT,
                0.05,
            ),
            math.radians(255.0),
            math.radians(69.0),
        ),
    ),
    "tidal ellipses": (
        """<tidal_ellipses mean="0.02 -0.01 0">
        <ellipse name="M2" major="0.3" minor="-0.05" direction_deg="40" phase_deg="100"/>
        <ellipse name="own" major="0.1" minor="0.1" direction_deg="0" phase_deg="90" speed_deg_per_hour="15"
        greenwich="false"/></tidal_ellipses>""",
        TidalEllipses(
            (
                TidalEllipse(TidalConstituent.from_degrees("M2", 0.3, 100.0), -0.05, math.radians(40.0)),
                TidalEllipse(TidalConstituent.from_degrees("own", 0.1, 90.0, 15.0, greenwich=False), 0.1, 0.0),
            ),
            INSTANT,
            (0.02, -0.01, 0.0),
        ),
    ),
    "boundary layer": (
        '<boundary_layer bed="-50" thickness="10" exponent="0.1"><uniform>1 0 0</uniform></boundary_layer>',
        BoundaryLayer(UniformField((1.0, 0.0, 0.0)), -50.0, 10.0, 0.1),
    ),
    "profile": (
        """<profile outside="error"><factor depth="0">1</factor><factor depth="9">0.5</factor>
        <uniform>1 0 0</uniform></profile>""",
        DepthScaledCurrent(UniformField((1.0, 0.0, 0.0)), (0.0, 9.0), (1.0, 0.5), outside="error"),
    ),
}


@pytest.mark.requirement("CUR-1", "CUR-2")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_current_is_read(load: Load, wrap_in_world: Text, kind: str) -> None:
    text, expected = KINDS[kind]
    world = load(wrap_in_world(make_current(text, START)))
    assert world.environment.current == expected
    assert world.notes == ()


@pytest.mark.requirement("CUR-2")
def test_several_currents_are_summed(load: Load, wrap_in_world: Text) -> None:
    inside = f"<uniform>0.1 0 0</uniform><stratified>{LAYERS}</stratified><uniform>0 0.2 0</uniform>"
    found = load(wrap_in_world(make_current(inside))).environment.current
    assert found == FieldSum((UniformField((0.1, 0.0, 0.0)), TABLE, UniformField((0.0, 0.2, 0.0))))
    assert evaluate(found, -10.0) == pytest.approx([0.45, 0.2, 0.005], abs=1e-15)
    layer = f'<boundary_layer bed="-30" thickness="10">{inside}</boundary_layer>'
    slowed = load(wrap_in_world(make_current(layer))).environment.current
    assert evaluate(slowed, -25.0) == pytest.approx([0.5 ** (1 / 7) * part for part in (0.3, 0.1, 0.01)], abs=1e-15)


@pytest.mark.requirement("CUR-2")
def test_east_and_north_are_rotated_to_the_world_frame(load: Load, wrap_in_world: Text) -> None:
    """At a heading of 90 degrees, x points north: a northward current is along x."""
    place = (
        "<spherical_coordinates><latitude_deg>10</latitude_deg><longitude_deg>0</longitude_deg>"
        "<heading_deg>90</heading_deg></spherical_coordinates>"
    )
    water = '<navsense:water surface="3"/>'
    for text in ("<uniform>0 0.4 0</uniform>", '<stratified><layer depth="0">0 0.4 0</layer></stratified>'):
        found = load(wrap_in_world(place + make_current(text))).environment.current
        assert evaluate(found) == pytest.approx([0.4, 0.0, 0.0], abs=1e-16)
    shifted = load(wrap_in_world(water + make_current(f"<stratified>{LAYERS}</stratified>"))).environment.current
    assert evaluate(shifted, -7.0) == pytest.approx(evaluate(TABLE, -10.0), rel=1e-12, abs=0.0)


FILES = {
    "layers.csv": "depth [m], east [m/s], north [m/s]\n0, 0.5, 0.1\n20, 0.2, -0.1\n",
    "tide.csv": (
        "Date_Time (GMT), Event, Speed (cm/sec)\n2021-03-04 15:00, flood, 50\n2021-03-04 18:00, slack, -\n"
        "2021-03-04 21:00, ebb, -40\n"
    ),
    "grid.csv": "t,lon,lat,alt,u,v\n" + "".join(f"0,{x},{y},0,{0.1 * x},0\n" for x in (-1, 1) for y in (49, 51)),
    "log.csv": "time,east,north,up\n100,0.1,0,0\n200,0.3,0,0\n",
}


@pytest.mark.requirement("CUR-2")
@pytest.mark.parametrize("is_next_to_the_world", [True, False])
def test_current_files_are_resolved(
    load: Load, wrap_in_world: Text, tmp_path: Path, is_next_to_the_world: bool
) -> None:
    folder = tmp_path if is_next_to_the_world else tmp_path / "data"
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    inside = "<latitude_deg>50</latitude_deg><longitude_deg>0.5</longitude_deg>"
    place = f"<spherical_coordinates>{inside}</spherical_coordinates>"
    grid = (
        '<grid file="grid.csv" space="geodetic" units="degrees" x="lat" y="lon" z="alt" east="u" north="v" time="t"'
        ' ignore_time="true"/>'
    )
    inside = (
        '<stratified file="layers.csv"/><tidal file="tide.csv" flood_direction_deg="90"/>'
        + grid
        + '<replay file="log.csv" outside="hold"/>'
    )
    found = load(wrap_in_world(place + make_current(inside, START)), path=str(folder)).environment.current
    assert isinstance(found, FieldSum)
    layers, tide, grid_, replay = found.fields
    assert isinstance(layers, StratifiedCurrent)
    assert isinstance(tide, TidalCurrent)
    assert isinstance(tide.flow, TideTable)
    assert isinstance(grid_, GriddedCurrent)
    assert isinstance(replay, CurrentReplay)
    assert evaluate(layers, -20.0) == [0.2, -0.1, 0.0]
    assert evaluate(tide) == pytest.approx([0.5, 0.0, 0.0], abs=1e-15)
    assert evaluate(tide, time=6 * 3600.0) == pytest.approx([-0.4, 0.0, 0.0], abs=1e-15)  # the ebb opposes the flood
    bound = 2e-6 * math.tan(math.radians(50.0))  # rad, rotation of a vector on the ellipsoid within 16 m
    assert evaluate(grid_) == pytest.approx([0.05, 0.0, 0.0], abs=0.05 * bound)
    assert evaluate(replay, time=50.0) == pytest.approx([0.2, 0.0, 0.0], abs=1e-15)
    assert evaluate(replay, time=500.0) == [0.3, 0.0, 0.0]


def test_current_topic_is_read(load: Load, wrap_in_world: Text) -> None:
    still = "<uniform>0 0 0</uniform>"
    assert load(wrap_in_world(make_current(still))).current_topic == CurrentTopic()
    arguments = 'topic="sea/flow" rate="5" position="1 2 -30"'
    assert load(wrap_in_world(make_current(still, arguments))).current_topic == CurrentTopic(
        "/sea/flow", 5.0, (1.0, 2.0, -30.0)
    )
    assert load(wrap_in_world(make_current(still, 'rate="0"'))).current_topic.rate == 0.0
    assert load(wrap_in_world("")).environment.current is None


WRONG: dict[str, tuple[str, str, int, str]] = {
    "nothing": ("", "", 3, "<navsense:current>: empty; requires at least one current: uniform, gauss_markov"),
    "unknown": (
        "<unifrom>1 0 0</unifrom><uniform>1 0 0</uniform>",
        "",
        4,
        "<unifrom>; is not allowed here; did you mean uniform?",
    ),
    "two numbers": ("<uniform>1 0</uniform>", "", 4, "<uniform>: 1 0; must be 3 finite numbers"),
    "knots": ("<uniform>50 0 0</uniform>", "", 4, "<uniform> layer velocity of row 0 (m/s): 50"),
    "rate": ("<uniform>1 0 0</uniform>", 'rate="1e9"', 3, "<navsense:current> rate of /hydrodynamics/current_velocity"),
    "topic": ("<uniform>1 0 0</uniform>", 'topic=""', 3, "<navsense:current topic>: empty; must be a topic"),
    "position": ("<uniform>1 0 0</uniform>", 'position="1 2"', 3, "position>: 1 2; must be 3 finite numbers"),
    "start": ("<uniform>1 0 0</uniform>", 'start="today"', 3, "start>: today; must be a date and time"),
    "no speed": ("<gauss_markov/>", "", 4, "<gauss_markov><speed>: missing; must be given"),
    "both spreads": (
        '<gauss_markov>\n<speed stddev="1" density="1"/></gauss_markov>',
        "",
        5,
        "<speed stddev>: 1; must not be combined with density",
    ),
    "no time": ('<gauss_markov>\n<speed stddev="1"/></gauss_markov>', "", 5, "<speed correlation_time>: missing"),
    "limits": (
        '<gauss_markov>\n<speed mean="2" maximum="1"/></gauss_markov>',
        "",
        5,
        "<speed> mean of the process: 2.0; must be from",
    ),
    "degrees of a speed": ('<gauss_markov>\n<speed degrees="true"/></gauss_markov>', "", 5, "<speed degrees>"),
    "one name": (
        "<gauss_markov><speed/></gauss_markov>\n<gauss_markov><speed/></gauss_markov>",
        "",
        5,
        "<gauss_markov name>: current; must be unique: two random currents with one name would be equal",
    ),
    "no layer": ("<stratified/>", "", 4, "<stratified>: empty; requires layers or file=..., not both"),
    "order": (
        '<stratified><layer depth="9">0 0 0</layer><layer depth="8">0 0 0</layer></stratified>',
        "",
        4,
        "<stratified> layer depth of row 1 (m): 8.0; must be below 9.0 m",
    ),
    "no depth": ("<stratified>\n<layer>0 0 0</layer></stratified>", "", 5, "<layer depth>: missing; must be given"),
    "lost file": ('<stratified file="no.csv"/>', "", 4, "<stratified file>: no.csv; is not found; searched"),
    "half wandering": (f"<stratified>{LAYERS}<speed/></stratified>", "", 4, "<speed> alone; requires both <speed>"),
    "no date": ('<tidal flood_direction_deg="1"/>', "", 4, "<tidal>: without a date; needs one; give <navsense"),
    "no tide": ('<tidal flood_direction_deg="1"/>', START, 4, "<tidal>: empty; requires constituents or a tide"),
    "constituent": (
        '<tidal flood_direction_deg="1">\n<constituent name="M9" amplitude="1" phase_deg="0"/></tidal>',
        START,
        5,
        "<constituent> tidal constituent: M9; must be one of M2",
    ),
    "same way": (
        """<tidal flood_direction_deg="1" ebb_direction_deg="40">
        <constituent name="M2" amplitude="1" phase_deg="0"/></tidal>""",
        START,
        4,
        "<tidal> angle between flood and ebb (deg): 39",
    ),
    "no date of ellipses": ("<tidal_ellipses/>", "", 4, "<tidal_ellipses>: without a date; needs one; give <navsense"),
    "no ellipse": ("<tidal_ellipses/>", START, 4, "<tidal_ellipses> tidal constituents: none; must have at least one"),
    "no axis": (
        '<tidal_ellipses>\n<ellipse name="M2" major="0.3" phase_deg="0" direction_deg="0"/></tidal_ellipses>',
        START,
        5,
        "<ellipse minor>: missing; must be given",
    ),
    "axes exchanged": (
        """<tidal_ellipses>
        <ellipse name="M2" major="0.1" minor="-0.3" phase_deg="0" direction_deg="0"/></tidal_ellipses>""",
        START,
        5,
        "<ellipse> minor axis of M2 (m/s): -0.3; must be at most the major axis, 0.1",
    ),
    "nameless ellipse": (
        '<tidal_ellipses>\n<ellipse major="0.3" minor="0" phase_deg="0" direction_deg="0"/></tidal_ellipses>',
        START,
        5,
        "<ellipse name>: missing; must be given",
    ),
    "M2 twice": (
        "<tidal_ellipses>"
        + 2 * '<ellipse name="M2" major="0.3" minor="0" phase_deg="0" direction_deg="0"/>'
        + "</tidal_ellipses>",
        START,
        4,
        "<tidal_ellipses> tidal constituent: M2; must be given once",
    ),
    "mean of one": ('<tidal_ellipses mean="0.1"/>', START, 4, "<tidal_ellipses mean>: 0.1; must be 3 finite numbers"),
    "grid": ('<grid file="no.csv"/>', "", 4, "<grid x>: missing; must be given"),
    "no bed": ('<boundary_layer thickness="1"><uniform>1 0 0</uniform></boundary_layer>', "", 4, "bed>: missing"),
    "inside": (
        '<boundary_layer bed="0" thickness="1">\n<uniform>x</uniform></boundary_layer>',
        "",
        5,
        "<uniform>: x; must be 3 finite numbers",
    ),
    "no factor": ("<profile><uniform>1 0 0</uniform></profile>", "", 4, "<profile> layers: none; must have"),
}


@pytest.mark.requirement("CUR-1", "CUR-2")
@pytest.mark.parametrize("case", WRONG)
def test_invalid_currents_are_reported(list_problems: ListProblems, wrap_in_world: Text, case: str) -> None:
    inside, attributes, line, problem = WRONG[case]
    (found,) = list_problems(wrap_in_world(make_current(inside, attributes)))
    assert found.startswith(f"dive.sdf:{line}: ")
    assert problem in found


def test_invalid_current_file_error_has_its_line(
    list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path
) -> None:
    (tmp_path / "layers.csv").write_text("depth [m], east [knots]\n0, 1\n")
    (found,) = list_problems(wrap_in_world(make_current('<stratified file="layers.csv"/>')))
    assert found.startswith("dive.sdf:4: <stratified> layers.csv:1: unit of east: knots; must be in m/s")


# plug-ins


UUV = """<plugin name="underwater_current_plugin" filename="libuuv_underwater_current_ros_plugin.so">
<namespace>hydrodynamics</namespace>
<constant_current>
<topic>current_velocity</topic>
<velocity><mean>0.5</mean><min>0</min><max>5</max><mu>0.01</mu><noiseAmp>0.02</noiseAmp></velocity>
<horizontal_angle><mean>0.5</mean><min>-3.14</min><max>3.14</max><mu>0</mu><noiseAmp>0.001</noiseAmp></horizontal_angle>
<vertical_angle><mean>0.1</mean></vertical_angle>
</constant_current>
</plugin>"""
STEP = "<physics><max_step_size>0.01</max_step_size></physics>"
PROCESSES = (
    UuvGaussMarkovProcess(0.5, 0.0, 5.0, 0.01, 0.02, 0.01),
    UuvGaussMarkovProcess(0.5, -3.14, 3.14, 0.0, 0.001, 0.01),
    UuvGaussMarkovProcess(0.1, step=0.01),
)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("file", ["libuuv_underwater_current_ros_plugin.so", "libuuv_underwater_current_plugin.so"])
def test_uuv_simulator_current_plugin_is_read(load: Load, wrap_in_world: Text, file: str) -> None:
    text = wrap_in_world(STEP + UUV.replace("libuuv_underwater_current_ros_plugin.so", file))
    name = "/hydrodynamics/current_velocity"
    world = load(text)
    speed, horizontal, vertical = (process.to_physical() for process in PROCESSES)
    assert world.environment.current == GaussMarkovCurrent(speed, horizontal, vertical, name)
    assert world.current_topic == CurrentTopic(name, 20.0)
    assert not [note for note in world.notes if "plugin" in note.what]
    classic = load(text, fidelity="classic")
    assert classic.environment.current == GaussMarkovCurrent(*PROCESSES, name)


@pytest.mark.requirement("CUR-1")
def test_classic_uuv_current_equals_the_plugin_formula(load: Load, wrap_in_world: Text) -> None:
    """Without noise, v <- (1 - dt mu) v in each step, along (cos h cos v, sin h cos v, sin v)."""
    text = wrap_in_world(STEP + UUV.replace("0.02<", "0<").replace("0.001<", "0<"))
    level = math.cos(0.1)
    along = np.array([math.cos(0.5) * level, math.sin(0.5) * level, math.sin(0.1)])
    still = load(text).environment.current
    assert isinstance(still, UniformField)
    assert evaluate(still, time=100.0) == pytest.approx(0.5 * along, rel=1e-14, abs=0.0)
    classic = load(text, fidelity="classic").environment.current
    assert classic is not None
    value = 0.5
    for _ in range(250):
        value = (1.0 - 0.01 * 0.01) * value
    assert evaluate(realise(classic, 1), time=2.5) == pytest.approx(value * along, rel=1e-12, abs=0.0)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("<min>0</min>", "<min>1</min>"), 7, "<velocity> mean of the current's process: 0.5; must be from 1.0 to 5.0"),
        (("<mu>0.01</mu>", "<mu>2</mu>"), 7, "<velocity> mu of a current's process (1/s): 2"),
        (("constant_current>", "constant_curent>"), 3, "<plugin><constant_current>: missing; must be given"),
        (("constant_current>", "constant_curent>"), 5, "is not allowed here; did you mean constant_current?"),
        (("<mean>0.5</mean><min>0<", "<mean>x</mean><min>0<"), 7, "<velocity><mean>: x; must be a finite number"),
    ],
)
def test_invalid_current_plugins_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, change: tuple[str, str], line: int, problem: str
) -> None:
    assert any(
        found.startswith(f"dive.sdf:{line}: ") and problem in found
        for found in list_problems(wrap_in_world(UUV.replace(*change)))
    )


DAVE = """<plugin name="current" filename="libdave_ocean_current_plugin.so">
<namespace>hydrodynamics</namespace>
<constant_current>
<topic>ocean_current</topic>
<velocity><mean>0</mean><min>-1</min><max>5</max><mu>0.01</mu><noiseAmp>0.001</noiseAmp></velocity>
<horizontal_angle><mean>0</mean><min>-3.2</min><max>3.2</max><mu>0</mu><noiseAmp>0</noiseAmp></horizontal_angle>
</constant_current>
<transient_current><databasefilePath>layers.csv</databasefilePath></transient_current>
<tidal_oscillation>
<mean_direction><ebb>69</ebb><flood>255</flood></mean_direction>
<world_start_time_GMT><day>4</day><month>3</month><year>2021</year><hour>15</hour></world_start_time_GMT>
<harmonic_constituents><M2><amp>0.5</amp><phase>7</phase><speed>28.984104</speed></M2></harmonic_constituents>
</tidal_oscillation>
</plugin>"""


@pytest.mark.requirement("CUR-1", "CUR-2")
def test_dave_current_plugin_is_read(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """The speed of a layer is at least 0 for any constant current."""
    (tmp_path / "layers.csv").write_text("North (m/s), East (m/s), Depth (m)\n0.3,0.4,0\n0,0.2,20\n")
    field = load(wrap_in_world(STEP + DAVE), fidelity="classic").environment.current
    assert isinstance(field, FieldSum)
    constant, layers, tide = field.fields
    speed = UuvGaussMarkovProcess(0.0, -1.0, 5.0, 0.01, 0.001, 0.01)
    angle = UuvGaussMarkovProcess(0.0, -3.2, 3.2, step=0.01)
    name = "/hydrodynamics/ocean_current"
    assert constant == GaussMarkovCurrent(speed, angle, UuvGaussMarkovProcess(step=0.01), name)
    assert isinstance(layers, StratifiedGaussMarkovCurrent)
    assert layers.layers == StratifiedCurrent((0.0, 20.0), ((0.4, 0.3, 0.0), (0.2, 0.0, 0.0)))
    assert layers.speed == UuvGaussMarkovProcess(0.0, 0.0, 5.0, 0.01, 0.001, 0.01)
    assert isinstance(tide, TidalCurrent)
    assert tide.flow == HarmonicFlow((TidalConstituent.from_degrees("M2", 0.5, 7.0, 28.984104),), INSTANT)
    assert (tide.flood_direction, tide.ebb_direction) == (math.radians(255.0), math.radians(69.0))


def test_navsense_current_adds_to_the_plugin(load: Load, wrap_in_world: Text) -> None:
    world = load(wrap_in_world(make_current("<uniform>0.1 0 0</uniform>", 'topic="/flow"') + UUV))
    assert isinstance(world.environment.current, FieldSum)
    assert world.current_topic.topic == "/flow"


@pytest.mark.requirement("CUR-2")
def test_missing_table_of_a_plugin_cannot_be_skipped(
    list_problems: Callable[..., list[str]], wrap_in_world: Text
) -> None:
    (problem,) = list_problems(wrap_in_world(STEP + DAVE), missing="skip")
    assert "<databasefilePath>: layers.csv; is not found; searched" in problem
    assert problem.endswith("(path= in Python) or in GZ_SIM_RESOURCE_PATH")


@pytest.mark.requirement("CUR-1", "CUR-2")
def test_dave_layers_have_their_own_topic(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "layers.csv").write_text("North (m/s), East (m/s), Depth (m)\n0.3,0.4,0\n0,0.2,20\n")
    named = DAVE.replace("<databasefilePath>l", "<topic_stratified>by_depth</topic_stratified><databasefilePath>l")
    world = load(wrap_in_world(make_current("<uniform>0.1 0 0</uniform>", 'topic="/flow"') + named))
    topic = world.current_topic
    assert (topic.topic, topic.layers) == ("/flow", LayersTopic("/hydrodynamics/by_depth", (0.0, 20.0)))


@pytest.fixture
def dave_models(tmp_path: Path) -> Path:
    """Return a folder with replacements for the models that DAVE's worlds include."""
    for name in ("ned_frame", "ocean", "sand_heightmap", "teledyne_whn_dsl"):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        (folder / "model.config").write_text('<model><sdf version="1.6">model.sdf</sdf></model>')
        inside = '<static>true</static><link name="l"/>'
        (folder / "model.sdf").write_text(f'<sdf version="1.6"><model name="{name}">{inside}</model></sdf>')
    return tmp_path / "models"


WORLDS = ("dave_ocean_waves_dvl_current_profiling.world", "dave_ocean_waves_transient_current.world")


@pytest.mark.requirement("CUR-1", "CUR-2")
@pytest.mark.parametrize("file", WORLDS)
def test_dave_worlds_are_read(example_data: Path, dave_models: Path, file: str) -> None:
    """Layers are north and east as in their header. Every flood is to 255 degrees, every ebb to 69 degrees."""
    world = sdf.load(example_data / "dave" / file, path=dave_models)
    field = world.environment.current
    assert isinstance(field, FieldSum)
    steady, layers, tide = field.fields
    assert steady == UniformField((0.0, 0.0, 0.0))
    assert len(layers.depths) == 12  # type: ignore[attr-defined]
    assert evaluate(layers, -10.0) == [0.03, 0.01, 0.0]  # east and north at 10 m
    assert evaluate(layers, -500.0) == evaluate(layers, -110.0)
    with (example_data / "dave" / "ACT1951_1_Annual_2021.csv").open(encoding="utf-8-sig") as lines:
        events = [row for row in list(csv.reader(lines))[1:] if len(row) == 3]
    ways = {"flood": math.radians(255.0), "ebb": math.radians(69.0)}
    checked = 0
    for when, event, speed in events:
        instant = datetime.strptime(when, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        kind, seconds = event.strip(), (instant - INSTANT).total_seconds()
        if kind in ways and 0.0 <= seconds < 3e6:
            expected = [abs(float(speed)) / 100.0 * part for part in (math.sin(ways[kind]), math.cos(ways[kind]), 0.0)]
            assert evaluate(tide, -10.0, seconds) == pytest.approx(expected, abs=1e-12)
            checked += 1
    assert checked > 100
    assert world.current_topic.topic == "/hydrodynamics/current_velocity"
    notes = [str(note) for note in world.notes]
    assert any("the tide is added at every depth" in note for note in notes)
    assert any("/hydrodynamics/stratified_current_velocity_database, which" in note for note in notes)
    assert world.current_topic.layers == LayersTopic("/hydrodynamics/stratified_current_velocity", layers.depths)  # type: ignore[attr-defined]
    assert not any("libdave_ocean_current_plugin.so" in note for note in notes)
    words = "\n".join(describe(world))
    assert f"12 layers from 0 to 110 m and tide of a table of {len(events)} rows" in words
    assert "flood to 255 deg, ebb to 69 deg" in words


@pytest.mark.requirement("CUR-2")
def test_dave_random_layers_and_tidal_constituents(example_data: Path, dave_models: Path, tmp_path: Path) -> None:
    """The world is changed to have noise, and its commented constituents."""
    text = (example_data / "dave" / WORLDS[1]).read_text()
    text = text.replace("<noiseAmp>0.0<", "<noiseAmp>0.001<").replace("<mu>0.0<", "<mu>0.01<")
    head, _, rest = text.partition("<databasefilePath>ACT1951_1_Annual_2021.csv</databasefilePath>")
    first, _, last = rest.partition("<!-- <harmonic_constituents>")
    text = (
        head
        + first
        + "<harmonic_constituents>"
        + last.replace("</harmonic_constituents> -->", "</harmonic_constituents>", 1)
    )
    path = tmp_path / "changed.world"
    path.write_text(text)
    shutil.copy(example_data / "dave" / "transientOceanCurrentDatabase.csv", tmp_path)
    field = sdf.load(path, path=dave_models).environment.current
    assert isinstance(field, FieldSum)
    steady, layers, tide = field.fields
    assert isinstance(steady, GaussMarkovCurrent)
    assert isinstance(layers, StratifiedGaussMarkovCurrent)
    assert layers.speed == UuvGaussMarkovProcess(0.0, 0.0, 5.0, 0.01, 0.001, 0.002).to_physical()
    assert isinstance(tide, TidalCurrent)
    assert tide.flow == HarmonicFlow(
        (
            TidalConstituent.from_degrees("M2", 0.55, 7.2, 28.984104),
            TidalConstituent.from_degrees("S2", 0.114, 28.8, 30.0),
            TidalConstituent.from_degrees("N2", 0.14, 351.6, 28.43973),
        ),
        INSTANT,
    )
    one, second = realise(field, 1, 0), realise(field, 1, 1)
    assert evaluate(one, -30.0, 10.0) != evaluate(second, -30.0, 10.0)
    classic = sdf.load(path, path=dave_models, fidelity="classic").environment.current
    assert isinstance(classic, FieldSum)
    assert isinstance(classic.fields[1], StratifiedGaussMarkovCurrent)
    assert classic.fields[1].speed == UuvGaussMarkovProcess(0.0, 0.0, 5.0, 0.01, 0.001, 0.002)


PRELOAD = """<plugin filename="gz-sim-environment-preload-system" name="gz::sim::systems::EnvironmentPreload">
<data>{file}</data>
<dimensions><time>elapsed_time_second</time>
<space reference="spherical"{units}><x>latitude_degree</x><y>longitude_degree</y><z>altitude_meter</z></space>
</dimensions></plugin>"""
EAST, NORTH = (f"{way}ward_sea_water_velocity_meter_per_sec" for way in ("east", "north"))


def make_vehicle(content: str, name: str = "m") -> str:
    plugin = f'<plugin filename="gz-sim-hydrodynamics-system" name="h">{content}</plugin>'
    return f'<model name="{name}"><link name="l"/>{plugin}</model>'


@pytest.mark.requirement("CUR-2")
@pytest.mark.parametrize("units", ["", ' units="degrees"'])
def test_gazebo_current_table_is_read(load: Load, wrap_in_world: Text, example_data: Path, units: str) -> None:
    """gz-sim's test has -1 m/s east, 0.5 north. Its degrees are radians unless the file declares degrees."""
    lookup = f"<lookup_current_x>{EAST}</lookup_current_x><lookup_current_y>{NORTH}</lookup_current_y>"
    text = PRELOAD.format(file="underwater_currents.csv", units=units) + make_vehicle(lookup)
    world = load(wrap_in_world(text), path=str(example_data / "gz-sim"))
    field = world.environment.current
    assert isinstance(field, GriddedCurrent)
    bound = 2e-6 * math.hypot(1.0, 0.5)  # rotation of a vector on the ellipsoid within 16 m
    assert evaluate(field, -5.0) == pytest.approx([-1.0, 0.5, 0.0], abs=bound)
    last = float(field.points[1][-1])
    assert last == pytest.approx(math.radians(0.01) if units else 0.01, rel=1e-12, abs=0.0)
    assert "its latitude and longitude are 0, as in Gazebo" in "".join(note.reason for note in world.notes)
    unnamed = load(wrap_in_world(PRELOAD.format(file="underwater_currents.csv", units=units)))
    assert unnamed.environment.current is None
    assert [note.reason for note in unnamed.notes] == ["no element of the world names its columns of a current"]


@pytest.mark.requirement("CUR-2")
def test_invalid_gazebo_tables_are_reported(list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path) -> None:
    lookup = make_vehicle("<lookup_current_x>u</lookup_current_x>")
    header = "elapsed_time_second,latitude_degree,longitude_degree,altitude_meter,u"
    (tmp_path / "own.csv").write_text(f"{header}\n0,50,4,0,1\n")
    for change, problem in (
        (("spherical", "polar"), "dive.sdf:6: <space reference>: polar; must be one of global, spherical, ecef"),
        (("<data>own.csv</data>", ""), "dive.sdf:3: <plugin><data>: missing; must be given"),
        (("own.csv", "no.csv"), "dive.sdf:4: <plugin><data>: no.csv; is not found;"),
        (("altitude_meter", "height"), "column: height; must occur once in the header"),
        (("time>", "tme>"), "<dimensions><tme>; is not allowed here; did you mean time?"),
        (("x", "x"), "latitude (rad) of a grid: 50"),
    ):
        text = PRELOAD.format(file="own.csv", units="").replace(*change)
        assert any(problem in found for found in list_problems(wrap_in_world(text + lookup))), problem


@pytest.mark.requirement("CUR-2")
def test_gazebo_default_current_is_read(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    east = "<default_current>0.3 0 0</default_current>"
    assert load(wrap_in_world(make_vehicle(east))).environment.current == UniformField((0.3, 0.0, 0.0))
    assert load(wrap_in_world(make_vehicle(east) + make_vehicle(east, "n"))).environment.current == UniformField(
        (0.3, 0.0, 0.0)
    )
    assert load(wrap_in_world(make_vehicle(""))).environment.current is None
    differ = load(wrap_in_world(make_vehicle(east) + make_vehicle("", "n")))
    assert differ.environment.current is None
    assert any("models differ: no current is used; add" in note.reason for note in differ.notes)
    (line,) = list_problems(wrap_in_world(make_vehicle("<default_current>0.3</default_current>")))
    assert "<plugin><default_current>: 0.3; must be 3 finite numbers" in line
    (line,) = list_problems(wrap_in_world(make_vehicle("<default_current>30 0 0</default_current>")))
    assert "30.0; must be a finite number of absolute value up to 15 m/s; check the unit" in line


def test_unread_elements_are_listed(load: Load, wrap_in_world: Text) -> None:
    inside = '<plugin name="c" filename="libdave_ocean_current_model_plugin.so"/>'
    world = load(wrap_in_world(f'<model name="m"><link name="l"/>{inside}</model>'))
    (note,) = world.notes
    assert note.reason == "each vehicle is in the world's current; its own noise is not added"


@pytest.mark.parametrize("kind", KINDS)
def test_currents_are_described(load: Load, wrap_in_world: Text, kind: str) -> None:
    (line,) = [
        row for row in describe(load(wrap_in_world(make_current(KINDS[kind][0], START)))) if "current (m/s)" in row
    ]
    expected = {
        "uniform": "uniform (0.1 -0.2 0.03)",
        "gauss_markov": "Gauss-Markov (wander): speed mean 0.3 minimum 0 maximum 1 correlation_time 600 density 0.01; ",
        "stratified": "2 layers from 0 to 20 m",
        "wandering layers": "1 layer from 5 to 5 m, Gauss-Markov (layers): speed ",
        "tidal": "tide of M2, own from 2021-03-04 15:00:00+00:00, flood to 255 deg, ebb to 69 deg",
        "tidal ellipses": "tidal ellipses of M2, own from 2021-03-04 15:00:00+00:00, mean 0.02 -0.01 0 m/s",
        "boundary layer": "boundary layer (bed -50 m, thickness 10 m, exponent 0.1) of [uniform",
        "profile": "scaled by 1 at 0 m to 0.5 at 9 m: [uniform",
    }
    assert expected[kind] in line


@pytest.mark.requirement("CUR-2")
def test_example_of_the_page_on_worlds_can_be_loaded(load: Load, wrap_in_world: Text) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "worlds.md").read_text(encoding="utf-8")
    example = page.partition("## Currents\n")[2].partition("```xml")[2].partition("```")[0]
    world = load(wrap_in_world(example))
    assert not world.notes
    assert isinstance(world.environment.current, FieldSum)
    assert [type(field) for field in world.environment.current.fields] == [
        UniformField,
        GaussMarkovCurrent,
        BoundaryLayer,
    ]
    assert world.current_topic == CurrentTopic(position=(0.0, 0.0, -10.0))
