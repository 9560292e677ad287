"""The page on Doppler velocity logs agrees with the program: its fast values, its examples, its pictures."""

from __future__ import annotations

import importlib
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import navsense as ns

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "explanation" / "dvl.md").read_text(encoding="utf-8")

LARGEST = 60_000
"""Bytes of a picture."""

CHEAP = ("own", "gazebo", "woods hole", "uuv", "ranges", "beams", "angles", "width", "course", "systematic")

WORLD = '<sdf version="1.9"><world name="sea"><include><uri>auv.urdf</uri></include></world></sdf>'


@pytest.fixture(scope="module")
def page_tools() -> Iterator[tuple[Any, Any]]:
    """Return the modules that write the page and draw its charts."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("dvl_gaps"), importlib.import_module("svg_charts")
    finally:
        sys.path.remove(str(ROOT / "tools"))
        for name in ("dvl_gaps", "dvl_worlds", "svg_charts"):
            sys.modules.pop(name, None)


@pytest.mark.compiled
def test_generated_figures_are_up_to_date(page_tools: tuple[Any, Any]) -> None:
    assert page_tools[0].find_outdated(CHEAP) == []


@pytest.mark.compiled
def test_outdated_list_is_reported(
    page_tools: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "dvl.md"
    assert PAGE.count("| 30° | 20.000 |") == 1
    page.write_text(PAGE.replace("| 30° | 20.000 |", "| 30° | 20.001 |"), encoding="utf-8")
    monkeypatch.setattr(page_tools[0], "PAGE", page)
    assert page_tools[0].find_outdated(["angles", "course"]) == ["angles"]


@pytest.mark.compiled
def test_course_is_correct_in_every_frame(page_tools: tuple[Any, Any]) -> None:
    rows = [line.split(" | ") for line in page_tools[0].course().text.splitlines()[2:]]
    assert len(rows) == 4
    assert {row[-1] for row in rows} == {"030° |"}
    assert [row[-2] for row in rows] == ["090°", "090°", "030°", "060°"]


def test_every_part_is_listed_once(page_tools: tuple[Any, Any]) -> None:
    found = [name for _, name, _ in page_tools[0].MARKED.findall(PAGE)]
    assert sorted(found) == sorted(page_tools[0].PARTS)
    assert not [name for name in found if f"<!-- made: {name} -->\n<!-- end -->" in PAGE]


def test_pictures_are_small_and_complete() -> None:
    names = re.findall(r"!\[.+?\]\((.+?)\)", PAGE)
    assert sorted(names) == sorted(f"../pictures/{path.name}" for path in (ROOT / "docs" / "pictures").glob("dvl-*"))
    for name in names:
        picture = (ROOT / "docs" / "explanation" / name).read_bytes()
        assert len(picture) < LARGEST, name
        drawn = ET.fromstring(picture)  # noqa: S314 - our own
        assert drawn.tag.endswith("svg")
        assert b"nan" not in picture


def test_table_lists_every_array_of_a_reading() -> None:
    """Name, shape of n pings of k beams, and unit, in the order of the reading."""
    rows = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| `\w+` \| n", line)]
    shapes: dict[Any, str] = {0: "n", 3: "n, 3", (3, 3): "n, 3, 3", 4: "n, k"}
    expected = [(f"| `{output.name}`", shapes[output.axes], output.unit) for output in ns.sensors.Dvl().outputs]
    assert [tuple(row[:3]) for row in rows] == expected


def test_python_examples_run(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text(block, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 0, ended.stderr
    measured, true = (float(number) for number in ended.stdout.split()[-2:])
    assert measured == pytest.approx(true, rel=1e-9, abs=0.0)


@pytest.mark.requirement("DVW-1")
def test_example_robot_can_be_loaded(tmp_path: Path) -> None:
    (robot,) = re.findall(r"```xml\n(<robot.*?)```", PAGE, re.DOTALL)
    (tmp_path / "auv.urdf").write_text(robot, encoding="utf-8")
    (tmp_path / "sea.sdf").write_text(WORLD, encoding="utf-8")
    (sensor,) = ns.load(tmp_path / "sea.sdf").sensors
    assert (sensor.topic, sensor.rate, sensor.spec.type) == ("/dvl/dvl", 7.0, "dvl")


# charts


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.35, 0.1), (-20.0, 20.0), (0.0, 230.0), (3.0, 3.01)])
def test_axis_ticks_are_round_and_within_limits(page_tools: tuple[Any, Any], low: float, high: float) -> None:
    found = page_tools[1].compute_ticks(low, high)
    step = found[1] - found[0]
    assert 4 <= len(found) <= 10
    assert low - 1e-9 <= found[0] < low + step
    assert high - step < found[-1] <= high + 1e-9
    digits = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(digits - mantissa) for mantissa in (1.0, 2.0, 5.0)) < 1e-6


def test_line_follows_its_values_and_breaks_at_gaps(page_tools: tuple[Any, Any]) -> None:
    charts = page_tools[1]
    left, above, right, below = charts.MARGIN
    line = charts.Line("a < b", [0.0, 1.0, 2.0, 3.0], [0.0, math.nan, 10.0, 5.0], "red")
    panel = charts.Panel("t", "x", "y", (0.0, 4.0), (0.0, 10.0), [line])
    drawn = ET.fromstring(charts.draw_chart([panel], 1, left + right + 400.0, above + below + 100.0))  # noqa: S314 - our own
    (path,) = (
        element.get("d")
        for element in drawn.iter()
        if element.get("stroke") == "red" and element.get("stroke-width") == "1.6"
    )
    assert path == f"M{left:g} {above + 100:g}M{left + 200:g} {above:g}L{left + 300:g} {above + 50:g}"
    assert "a < b" in [element.text for element in drawn.iter()]


def test_step_line_holds_each_value_until_the_next(page_tools: tuple[Any, Any]) -> None:
    assert page_tools[1].make_steps([0.0, 1.0, 3.0], [5.0, 6.0, 7.0]) == (
        [0.0, 1.0, 1.0, 3.0, 3.0],
        [5.0, 5.0, 6.0, 6.0, 7.0],
    )


@pytest.mark.requirement("DVU-2")
def test_range_topics_of_the_uuv_simulator_are_nearest_rays(page_tools: tuple[Any, Any]) -> None:
    """The nearest ray of a 0.06 rad beam is 0.03 rad closer to the vertical than its axis."""
    worlds = importlib.import_module("dvl_worlds")
    single_ray = "<samples>1</samples> <min_angle>0</min_angle> <max_angle>0</max_angle>"
    fan = "<samples>3</samples> <min_angle>-0.03</min_angle> <max_angle>0.03</max_angle>"
    beams = worlds.make_uuv_plugin(worlds.PLUS)
    horizontal = f"<horizontal> {single_ray} </horizontal>"
    assert horizontal in beams
    beams = beams.replace(horizontal, f"<horizontal> {fan} </horizontal> <vertical> {fan} </vertical>")
    world = worlds.load(worlds.make_block("bed", 0.0, -30.0, (400.0, 400.0, 20.0)), "", beams)
    run = ns.simulate(
        world, 3.0, seed=1, motion={"auv": worlds.make_straight_motion((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 3.0)}
    )
    tilt = math.pi / 2.0 - 1.0472  # of the links in the file
    along, nearest = 30.0 / math.cos(tilt), 30.0 / math.cos(tilt - 0.03)
    emitted = run["uuv"].emitted
    assert run["uuv"]["beam_range"][emitted] == pytest.approx(along, abs=1e-9)
    for i in range(4):
        assert run[f"sonar{i}"]["range"] == pytest.approx(nearest, abs=1e-9)
    assert nearest / along == pytest.approx(1.0 - 0.017, abs=5e-4)
