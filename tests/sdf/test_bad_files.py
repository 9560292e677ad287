"""Invalid files of a world raise an error with the line in the world and the file name, in bounded time."""

from __future__ import annotations

import gc
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError, SdfError
from navsense.core.typing import AnyArray
from navsense.sdf import context, frame_graph
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

MILLION = 1_000_000

LONGEST = 60.0
"""Time limit (s): about ten times the time of a loaded machine."""


@pytest.mark.requirement("SDF-1")
def test_many_unknown_elements_on_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a similar name is slow: it runs once per name, for at most the number of stored problems."""
    calls: list[str] = []
    names = [f"n{i}" for i in range(2 * context.MAX_PROBLEMS)]

    def match(name: str, *_: object, **__: object) -> list[str]:
        calls.append(name)
        return []

    monkeypatch.setattr(context, "find_similar_names", match)
    unknown = "".join(f"<{name}/>" * 50 for name in names)
    text = f"<sdf version='1.9'><model name='m'>{unknown}</model></sdf>"
    (tmp_path / "w.sdf").write_text(text, encoding="utf-8")
    with pytest.raises(SdfError, match="must have at least one link"):
        ns.load(tmp_path / "w.sdf")
    assert calls == names[: context.MAX_PROBLEMS]


@pytest.mark.requirement("SDF-1")
def test_reading_stops_after_many_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    declare = frame_graph._declare

    def count_calls(*arguments: Any) -> Any:
        calls.append(arguments)
        return declare(*arguments)

    monkeypatch.setattr(frame_graph, "_declare", count_calls)
    for extra in (0, 1, 5000):
        models = "<model name='m'><static>true</static></model>\n" * (context.MAX_PROBLEMS + 1 + extra)
        (tmp_path / "w.sdf").write_text(
            f"<sdf version='1.9'><world name='w'>\n{models}</world></sdf>", encoding="utf-8"
        )
        calls.clear()
        with pytest.raises(SdfError, match=r"w.sdf:3: <model name>: m; must be unique") as caught:
            ns.load(tmp_path / "w.sdf")
        last = str(caught.value.problems[-1])
        assert len(caught.value.problems) == context.MAX_PROBLEMS + (extra > 0)
        assert ("w.sdf: problems; reading stops after 1000; there may be more" in last) == (extra > 0)
        assert len(calls) <= context.MAX_PROBLEMS + 2
    assert gc.isenabled()


def make_range_sensor_over(geometry: str) -> str:
    """Return a range sensor 5 m above the origin that points down at a collision, whose element is on line 4."""
    eye = '<range><max>50</max><beam width_deg="0.1" rings="1"><axis>0 0 -1</axis></beam></range>'
    sensor = f'<sensor name="eye" type="range"><update_rate>10</update_rate>{eye}</sensor>'
    bed = f'<collision name="c"><geometry>{geometry}</geometry></collision>'
    return (
        f'<model name="auv"><pose>0 0 5 0 0 0</pose><link name="base">{sensor}</link></model>\n'
        f'<model name="bed"><static>true</static><link name="l">{bed}</link></model>'
    )


def make_mesh(name: str) -> str:
    return f"<mesh><uri>{name}</uri></mesh>"


def make_heightmap(name: str) -> str:
    return f"<heightmap><uri>{name}</uri><size>20 20 5</size></heightmap>"


def encode_stl(triangles: AnyArray) -> bytes:
    facets = np.zeros(len(triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    facets["corners"] = triangles
    return b"made by a test".ljust(80) + struct.pack("<I", len(facets)) + facets.tobytes()


def make_degenerate_triangles() -> AnyArray:
    """Return a million triangles without area (m, 3, 3), each at one point."""
    return np.repeat(np.random.default_rng(4).uniform(-1.0, 1.0, (MILLION, 1, 3)), 3, axis=1)


def encode_image(rows: int, columns: int) -> bytes:
    """Return a black 8-bit image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(rows * (columns + 1)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


CORNERS = b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"
GRID = b"ncols 2\nnrows 2\ncellsize 10\nNODATA_value -9999\n"


SURFACES: dict[str, tuple[Callable[[str], str], str, bytes, str]] = {
    "STL cut off in text": (
        make_mesh,
        "a.stl",
        b"solid a\n facet normal 0 0 1\n",
        "a.stl:2: STL file: facet normal 0 0 1",
    ),
    "STL cut off": (
        make_mesh,
        "a.stl",
        encode_stl(np.zeros((3, 3, 3)))[:-9],
        "a.stl: STL file: 225 bytes; must be 234 bytes",
    ),
    "face of nothing": (make_mesh, "a.obj", CORNERS + b"f 1 2 4\n", "a.obj:4: OBJ file's face: f 1 2 4"),
    "corner nowhere": (
        make_mesh,
        "a.obj",
        CORNERS.replace(b"1 0 0", b"1 0 nan") + b"f 1 2 3",
        "corners of triangle 1 (m)",
    ),
    "not square": (
        make_heightmap,
        "bed.png",
        encode_image(5, 9),
        "bed.png: heightmap image (columns, rows): (9, 5); must be square",
    ),
    "image cut off": (
        make_heightmap,
        "bed.png",
        encode_image(5, 5)[:-30],
        "bed.png: image: ends too early; must be a complete PNG file",
    ),
    "NaN": (
        make_heightmap,
        "bed.asc",
        GRID + b"1 2\n3 nan\n",
        "height in row 2, column 2: nan; must be finite; 1 of 4 are not",
    ),
    "no data": (
        make_heightmap,
        "bed.asc",
        GRID + b"1 2\n3 -9999\n",
        "height in row 2, column 2: no data; must be finite",
    ),
    "too few": (
        make_heightmap,
        "bed.asc",
        GRID + b"1 2\n3\n",
        "bed.asc: grid's heights: 3; must be nrows x ncols, 2 x 2",
    ),
    "uneven": (make_heightmap, "bed.txt", b"1 2 3\n4 5\n", "lengths of the grid's rows: [2, 3]; must be all the same"),
}


@pytest.mark.requirement("DVU-2", "SDF-1")
@pytest.mark.parametrize("case", SURFACES)
def test_invalid_surfaces_are_reported(load: Load, wrap_in_world: Text, tmp_path: Path, case: str) -> None:
    geometry, name, data, problem = SURFACES[case]
    (tmp_path / name).write_bytes(data)
    world = load(wrap_in_world(make_range_sensor_over(geometry(name))))
    with pytest.raises(FieldError) as caught:
        ns.simulate(world, 0.1, seed=1)
    text = str(caught.value).replace(f"{tmp_path}/", "")
    assert text.startswith("dive.sdf:4: surface bed::l::c: ")
    assert problem in text


@pytest.mark.requirement("DVU-2", "SDF-2")
def test_broken_mesh_of_an_included_robot_is_reported(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    (tmp_path / "rock.stl").write_bytes(b"solid rock\n facet\n")
    inside = '<collision><geometry><mesh filename="rock.stl"/></geometry></collision>'
    (tmp_path / "bot.urdf").write_text(f'<robot name="bot"><link name="l">\n{inside}</link></robot>', encoding="utf-8")
    world = load(wrap_in_world(make_range_sensor_over("<plane/>") + "<include><uri>bot.urdf</uri></include>"))
    with pytest.raises(FieldError) as caught:
        ns.simulate(world, 0.1, seed=1)
    assert "bot.urdf:2: surface bot::l::l_collision: " in str(caught.value)
    assert "rock.stl:2: STL file: facet; must be" in str(caught.value)


@pytest.mark.compiled
@pytest.mark.requirement("DVU-2", "SDF-1")
@pytest.mark.parametrize("kind", ["stl", "obj", "one of them whole"])
def test_mesh_of_a_million_degenerate_faces_terminates(
    load: Load, wrap_in_world: Text, tmp_path: Path, kind: str
) -> None:
    """The load terminates, with an error or with the remaining triangles."""
    name = "rock.obj" if kind == "obj" else "rock.stl"
    triangles = make_degenerate_triangles()
    if kind == "one of them whole":
        triangles[77] = [[-40.0, -40.0, 2.0], [40.0, -40.0, 2.0], [0.0, 80.0, 2.0]]
    fans = b"v 0 0 0\nv 1 0 0\n" + (b"f" + b" 1 2" * 51 + b"\n") * (MILLION // 100)
    (tmp_path / name).write_bytes(fans if kind == "obj" else encode_stl(triangles))
    start = time.process_time()
    world = load(wrap_in_world(make_range_sensor_over(make_mesh(name))))
    if kind == "one of them whole":
        assert ns.simulate(world, 0.05, seed=1)["auv::base::eye"]["range"][0] == pytest.approx(3.0, rel=1e-12, abs=0.0)
    else:
        with pytest.raises(FieldError, match=f"{name}: mesh: {MILLION} triangles; must have one with an area"):
            ns.simulate(world, 0.05, seed=1)
    assert time.process_time() - start < LONGEST


SHEET = '<stratified file="flow.csv"/>'
LAYERS = "depth [m], east [m/s], north [m/s]\n"
TIDE = "Date_Time (GMT), Event, Speed (cm/sec)\n2021-03-04 12:00, flood,39\n2021-03-04 15:30, slack,-\n"
CHANNEL = '<tidal file="flow.csv" flood_direction_deg="255" ebb_direction_deg="69"/>'
BOX = "t,x,y,z,u,v\n" + "".join(f"0,{x},{y},{z},0.1,0.2\n" for x in (0, 1) for y in (0, 1) for z in (-9, 0))
RECORD = '<replay file="flow.csv"/>'
FIELD = '<grid file="flow.csv" space="world" x="x" y="y" z="z" east="u" north="v" time="t"/>'


CURRENTS: dict[str, tuple[str, str, str, str]] = {
    "layers out of order": (SHEET, LAYERS + "0,1,0\n9,1,0\n4,1,0\n", "<stratified> flow.csv:4", "sort the rows"),
    "layers with a gap": (SHEET, LAYERS + "0,1,0\n9,,0\n", "<stratified> flow.csv:3", "fill in all cells"),
    "layers in knots": (SHEET, LAYERS.replace("m/s", "kn") + "0,1,0\n", "<stratified> flow.csv:1", "unit of east: kn"),
    "layers too fast": (SHEET, LAYERS + "0,40,0\n", "<stratified> flow.csv:2", "check the unit"),
    "tide out of order": (CHANNEL, TIDE + "2021-03-04 13:00, ebb,-24\n", "<tidal> flow.csv:4", "not after that of the"),
    "tide with a gap": (
        CHANNEL,
        TIDE + "2021-03-09 13:00, ebb,-24\n",
        "<tidal> flow.csv:4",
        "gap in the tide table (h)",
    ),
    "tide in miles an hour": (
        CHANNEL,
        TIDE.replace("cm/sec", "mph"),
        "<tidal> flow.csv:1",
        "unit of the tide table: mph",
    ),
    "tide in another zone": (CHANNEL, TIDE.replace("GMT", "LST"), "<tidal> flow.csv:1", "zone of the tide table: lst"),
    "tide of another year": (
        CHANNEL,
        TIDE.replace("2021", "2019"),
        "<tidal> flow.csv: instant in the tide table: 2021-03-04 15:00:00",
        "must be from 2019-03-04 12:00 to 2019-03-04 15:30 UTC",
    ),
    "grid with a gap": (FIELD, BOX.replace("0,1,1,0,0.1,0.2\n", ""), "<grid> flow.csv", "must hold each combination"),
    "grid with one twice": (FIELD, BOX + "0,1,1,0,0.1,0.2\n", "<grid> flow.csv:10", "must be given once"),
    "grid in degrees": (
        FIELD.replace("world", "geodetic"),
        BOX.replace("\n0,0,", "\n0,50,").replace("\n0,1,", "\n0,51,"),
        "<grid> flow.csv",
        'for a file in degrees, use units="degrees"',
    ),
    "record out of order": (
        RECORD,
        "time,x,y,z\n0,0,0,0\n2,0,0,0\n1,0,0,0\n",
        "<replay> flow.csv:4",
        "time of a current (s): 1.0",
    ),
    "record with a gap": (RECORD, "time,x,y,z\n0,0,0,0\n2,0,,0\n", "<replay> flow.csv:3", "y: empty"),
}


@pytest.mark.requirement("CUR-1", "CUR-2")
@pytest.mark.parametrize("case", CURRENTS)
def test_invalid_currents_are_reported(
    list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path, case: str
) -> None:
    element, data, place, problem = CURRENTS[case]
    (tmp_path / "flow.csv").write_text(data, encoding="utf-8")
    origin = "<spherical_coordinates><latitude_deg>50</latitude_deg><longitude_deg>1</longitude_deg>"
    flow = f'<navsense:current start="2021-03-04T15:00Z">\n{element}\n</navsense:current>'
    (found,) = list_problems(wrap_in_world(f"{flow}{origin}</spherical_coordinates>"))
    assert found.startswith(f"dive.sdf:4: {place}"), found
    assert problem in found


@pytest.mark.requirement("CUR-2")
def test_run_past_the_end_of_the_tide_table_is_an_error(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """The table ends after half an hour, and the current is recorded every 10 minutes."""
    (tmp_path / "flow.csv").write_text(TIDE, encoding="utf-8")
    inside = f'<navsense:current start="2021-03-04T15:00Z" rate="0.0016666">\n{CHANNEL}\n'
    world = load(
        wrap_in_world(inside + "</navsense:current>" + make_range_sensor_over("<plane/>").replace(">10<", ">0.1<"))
    )
    flow = ns.simulate(world, 1790.0, seed=1).current
    assert flow is not None
    assert len(flow.time) == 3
    with pytest.raises(FieldError, match=r"instant in the tide table.*2021-03-04 15:[34]\d.*must be from"):
        ns.simulate(world, 2500.0, seed=1)
