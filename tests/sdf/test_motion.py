from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from navsense.world import World

Load = Callable[..., World]
Refused = Callable[..., list[str]]
Text = Callable[..., str]

TWO = (
    '\n<navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>'
    '\n<navsense:waypoint time="2">4 0 0 0 0 0</navsense:waypoint>'
)


@pytest.fixture
def moving(in_world: Text) -> Text:
    """Return a function that puts a motion into a model, on line 4."""

    def text(inside: str, attributes: str = "", more: str = "") -> str:
        motion = f"<navsense:motion {attributes}>{inside}</navsense:motion>"
        return in_world(f'<model name="auv">\n{motion}\n{more}<link name="base"/></model>')

    return text


def test_waypoints_are_read(load: Load, moving: Text) -> None:
    motion = load(moving(TWO)).models[0].motion
    assert motion is not None
    assert motion.end == 2.0
    truth = motion.at(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(truth.position_w[[0, 2]], [[0, 0, 0], [4, 0, 0]], atol=1e-12, rtol=0.0)


@pytest.mark.parametrize("where", ["motion", "waypoint"])
def test_waypoints_in_degrees_are_read(load: Load, moving: Text, where: str) -> None:
    degrees = ' degrees="true"'
    first = f'<navsense:waypoint time="0"{degrees if where == "waypoint" else ""}>0 0 0 0 0 90</navsense:waypoint>'
    second = '<navsense:waypoint time="1" degrees="true">0 0 0 0 0 90</navsense:waypoint>'
    motion = load(moving(first + second, degrees if where == "motion" else "")).models[0].motion
    assert motion is not None
    turn = motion.at(np.zeros(1)).rotation_wb[0]
    np.testing.assert_allclose(turn * np.sign(turn[0]), [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-12, rtol=0.0)


def test_loop_is_read(load: Load, moving: Text) -> None:
    points = "".join(
        f'<navsense:waypoint time="{t}">{x} 0 0 0 0 0</navsense:waypoint>' for t, x in ((0, 0), (1, 1), (2, 1), (3, 0))
    )
    motion = load(moving(points, 'loop="true"')).models[0].motion
    assert motion is not None
    assert motion.end == np.inf


def test_model_without_motion_is_stationary(load: Load, in_link: Text) -> None:
    assert load(in_link("")).models[0].motion is None


def test_log_path_is_relative_to_the_file(load: Load, moving: Text, tmp_path: Path) -> None:
    rows = "".join(f"{i / 10},{i},0,0,1,0,0,0\n" for i in range(50))
    (tmp_path / "log.csv").write_text("time,x,y,z,qw,qx,qy,qz\n" + rows, encoding="utf-8")
    motion = load(moving("", 'file="log.csv"')).models[0].motion
    assert motion is not None
    np.testing.assert_allclose(motion.at(np.array([4.9])).position_w, [[49, 0, 0]], atol=1e-9, rtol=0.0)
    assert load(moving("", 'file="log.csv" bandwidth="1"')).models[0].motion is not None


@pytest.mark.parametrize(
    ("inside", "attributes", "line"),
    [
        ("", "", "dive.sdf:4: <navsense:motion>: 0 waypoints; requires at least 2 waypoints, or file=..."),
        (TWO.splitlines()[1], "", "dive.sdf:4: <navsense:motion>: 1 waypoints"),
        (TWO.replace('"0"', '"1"'), "", "dive.sdf:5: <navsense:waypoint time>: 1; must be 0"),
        (TWO.replace('"2"', '"0"'), "", "dive.sdf:6: <navsense:waypoint time>: 0; must be after"),
        (TWO.replace('"2"', '"-1"'), "", "dive.sdf:6: <navsense:waypoint time>: -1; must be after"),
        (TWO.replace('"2"', '"nan"'), "", "dive.sdf:6: <navsense:waypoint time>: nan; must be a finite"),
        (TWO.replace(' time="2"', ""), "", "dive.sdf:6: <navsense:waypoint time>: missing"),
        (TWO.replace("4 0 0 0 0 0", "4 0 0"), "", "dive.sdf:6: <navsense:waypoint>: 4 0 0; must be 6"),
        (TWO.replace("4 0 0 0 0 0", ""), "", "dive.sdf:6: <navsense:waypoint>: empty"),
        (
            TWO.replace("time", "tim"),
            "",
            "dive.sdf:5: <navsense:waypoint tim>; is not allowed here; did you mean time?",
        ),
        (TWO + "<navsense:spline/>", "", "dive.sdf:6: <navsense:motion><navsense:spline>; is not allowed here"),
        (TWO, 'loop="true"', "dive.sdf:4: <navsense:motion>"),
        (TWO, 'loop="maybe"', "dive.sdf:4: <navsense:motion loop>: maybe; must be true"),
        (TWO, 'bandwidth="5"', "dive.sdf:4: <navsense:motion bandwidth>: 5; is allowed with a file only"),
        (TWO, 'file="log.csv"', "dive.sdf:5: <navsense:motion><navsense:waypoint>; must not be combined with a file"),
        ("", 'file=""', "dive.sdf:4: <navsense:motion file>: empty"),
        ("", 'file="none.csv"', "dive.sdf:4: <navsense:motion> none.csv: log"),
        ("", 'file="&#0;"', "dive.sdf:4: XML"),
        ("", 'file="none.csv" loop="true"', "dive.sdf:4: <navsense:motion loop>: true; is allowed with"),
        (
            "",
            'file="none.csv" bandwidth="0"',
            "dive.sdf:4: <navsense:motion bandwidth>: 0; must be a finite number > 0",
        ),
    ],
)
def test_invalid_elements_are_reported(refused: Refused, moving: Text, inside: str, attributes: str, line: str) -> None:
    assert any(problem.startswith(line) for problem in refused(moving(inside, attributes)))


def test_each_wrong_waypoint_is_reported_once(refused: Refused, moving: Text) -> None:
    wrong = TWO.replace('"0"', '"1"').replace("4 0 0 0 0 0", "4 0 0")
    assert [problem.partition(": ")[0] for problem in refused(moving(wrong))] == ["dive.sdf:5", "dive.sdf:6"]


def test_invalid_log(refused: Refused, moving: Text, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,x\n1,2\n", encoding="utf-8")
    (line,) = refused(moving("", 'file="log.csv"'))
    assert line.startswith("dive.sdf:4: <navsense:motion> log.csv")


def test_motion_of_a_static_model_is_an_error(refused: Refused, moving: Text, in_world: Text) -> None:
    (line,) = refused(moving(TWO, more="<static>true</static>"))
    assert line.startswith("dive.sdf:4: <navsense:motion>: auv; a static model cannot move")
    nested = f'<model name="n">\n<link name="l"/><navsense:motion>{TWO}</navsense:motion></model>'
    (line,) = refused(in_world(f'<model name="m">{nested}</model>'))
    assert line.startswith("dive.sdf:4: <navsense:motion>: m::n; a nested model moves with its parent model")
