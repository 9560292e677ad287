"""Poses equal products of 4 x 4 matrices and manual values."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from navsense import sdf
from navsense.core.pose import Pose, rotate
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]
Matrix = NDArray[np.float64]


def make_matrix(x: float, y: float, z: float, roll: float, pitch: float, yaw: float) -> Matrix:
    """Return SDF's pose as a matrix: Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    out = np.eye(4)
    out[:3, :3] = rz @ ry @ rx
    out[:3, 3] = x, y, z
    return out


def as_matrix(pose: Pose) -> Matrix:
    out = np.eye(4)
    out[:3, :3] = np.transpose(
        [rotate(pose.rotation, axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    )
    out[:3, 3] = pose.position
    return out


def assert_pose(pose: Pose, expected: Matrix) -> None:
    np.testing.assert_allclose(as_matrix(pose), expected, atol=1e-12 * max(1.0, np.abs(expected).max()), rtol=0.0)


def list_poses(world: World) -> dict[str, Pose]:
    return {link.name: link.pose for model in world.models for link in model.links}


def write(rows: Mapping[str, tuple[float, ...]], name: str) -> str:
    return " ".join(repr(part) for part in rows[name])


P = {
    "model": (1.0, -2.0, 3.0, 0.1, 0.2, 0.3),
    "base": (0.5, 0.0, -0.25, -0.4, 1.1, 2.0),
    "arm": (0.0, 1.0, 0.0, 3.0, -0.6, 0.9),
    "hand": (0.3, 0.2, 0.1, 0.01, 1.5, -2.2),
    "frame": (-1.0, 0.0, 2.0, 0.7, 0.0, 0.0),
    "joint": (0.0, 0.0, 0.4, 0.0, 0.0, -1.0),
    "inner": (4.0, 0.0, 0.0, 0.0, 0.3, 0.0),
    "tip": (0.0, 0.7, 0.0, 1.0, 1.0, 1.0),
    "sensor": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    "place": (10.0, 20.0, 30.0, 0.0, 0.0, 1.5),
}
M = {name: make_matrix(*values) for name, values in P.items()}

MIXED = f"""
<frame name="place"><pose>{write(P, "place")}</pose></frame>
<model name="robot" canonical_link="inner::tip"><pose relative_to="place">{write(P, "model")}</pose>
  <link name="hand"><pose relative_to="joint">{write(P, "hand")}</pose>
    <sensor name="default" type="imu"><pose>{write(P, "sensor")}</pose></sensor>
    <sensor name="elsewhere" type="imu"><pose relative_to="inner::tip">{write(P, "sensor")}</pose></sensor>
    <sensor name="model" type="imu"><pose relative_to="__model__">{write(P, "sensor")}</pose></sensor>
    <sensor name="bare" type="imu"/>
  </link>
  <link name="base"><pose>{write(P, "base")}</pose></link>
  <link name="arm"><pose relative_to="frame">{write(P, "arm")}</pose></link>
  <frame name="frame" attached_to="base"><pose>{write(P, "frame")}</pose></frame>
  <joint name="joint" type="fixed"><parent>base</parent><child>arm</child><pose>{write(P, "joint")}</pose></joint>
  <model name="inner"><pose relative_to="base">{write(P, "inner")}</pose>
    <link name="tip"><pose>{write(P, "tip")}</pose></link>
    <link name="other"><pose relative_to="__model__"/></link>
  </model>
</model>
"""


def test_poses_relative_to_every_kind_of_frame(load: Load, wrap_in_world: Text) -> None:
    world = load(wrap_in_world(MIXED))
    arm = M["base"] @ M["frame"] @ M["arm"]
    hand = arm @ M["joint"] @ M["hand"]
    tip = M["base"] @ M["inner"] @ M["tip"]
    expected = {
        "robot::hand": hand,
        "robot::base": M["base"],
        "robot::arm": arm,
        "robot::inner::tip": tip,
        "robot::inner::other": M["base"] @ M["inner"],
    }
    model = world.model("robot")
    assert [link.name for link in model.links] == list(expected)
    assert model.canonical_link == "robot::inner::tip"
    assert_pose(model.pose, M["place"] @ M["model"])
    for name, pose in list_poses(world).items():
        assert_pose(pose, expected[name])
    sensors = {sensor.name.rpartition("::")[2]: sensor.pose for sensor in world.sensors}
    assert_pose(sensors["default"], M["sensor"])
    assert_pose(sensors["elsewhere"], np.linalg.inv(hand) @ tip @ M["sensor"])
    assert_pose(sensors["model"], np.linalg.inv(hand) @ M["sensor"])
    assert sensors["bare"] == Pose()


def test_link_pose_does_not_depend_on_the_model_pose(load: Load, wrap_in_world: Text) -> None:
    text = '<model name="m"><pose>1e6 7 3 1 2 3</pose><link name="a"><pose>0.05 0.1 0.2 0 0 0</pose></link></model>'
    assert load(wrap_in_world(text)).models[0].links[0].pose.position == (0.05, 0.1, 0.2)


numbers = st.floats(-10.0, 10.0)


@st.composite
def make_frame_trees(draw: st.DrawFn) -> list[tuple[int, tuple[float, ...]]]:
    """Draw frames. Each is relative to an earlier one (-1: the model); the file has any order."""
    count = draw(st.integers(1, 12))
    return [(draw(st.integers(-1, i - 1)), tuple(draw(numbers) for _ in range(6))) for i in range(count)]


@given(make_frame_trees(), st.randoms(use_true_random=False))
def test_any_frame_tree_in_any_order_resolves(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[int, tuple[float, ...]]], order: random.Random
) -> None:
    expected: list[Matrix] = []
    texts = []
    for i, (base, values) in enumerate(tree):
        expected.append((np.eye(4) if base < 0 else expected[base]) @ make_matrix(*values))
        name = "__model__" if base < 0 else f"l{base}"
        numbers = " ".join(map(repr, values))
        texts.append(f'<link name="l{i}"><pose relative_to="{name}">{numbers}</pose></link>')
    order.shuffle(texts)
    path = tmp_path_factory.mktemp("tree") / "tree.sdf"
    path.write_text(f'<sdf version="1.7"><model name="m">{"".join(texts)}</model></sdf>', encoding="utf-8")
    for name, pose in list_poses(sdf.load(path)).items():
        assert_pose(pose, expected[int(name.removeprefix("m::l"))])


def test_poses_in_degrees_and_quaternions(load: Load, wrap_in_world: Text) -> None:
    turn = np.pi / 2
    poses = {
        '<pose degrees="true">1 2 3 90 0 0</pose>': make_matrix(1, 2, 3, turn, 0, 0),
        '<pose degrees="1">1 2 3 0 90 0</pose>': make_matrix(1, 2, 3, 0, turn, 0),
        '<pose degrees="false" rotation_format="euler_rpy">1 2 3 0 0 1</pose>': make_matrix(1, 2, 3, 0, 0, 1),
        '<pose rotation_format="quat_xyzw">1 2 3 0 0 7 7</pose>': make_matrix(1, 2, 3, 0, 0, turn),
        '<pose rotation_format="quat_xyzw">1 2 3 1e-300 0 0 0</pose>': make_matrix(1, 2, 3, np.pi, 0, 0),
        '<pose rotation_format="quat_xyzw"/>': np.eye(4),
        "<pose/>": np.eye(4),
    }
    links = "".join(f'<link name="l{i}">{pose}</link>' for i, pose in enumerate(poses))
    found = list_poses(load(wrap_in_world(f'<model name="m">{links}</model>')))
    for i, expected in enumerate(poses.values()):
        assert_pose(found[f"m::l{i}"], expected)


@pytest.mark.parametrize(
    ("pose", "allowed"),
    [
        ("<pose>1 2 3</pose>", "must be 6 finite numbers"),
        ("<pose>1 2 3 4 5 6 7</pose>", "must be 6 finite numbers"),
        ("<pose>1 2 3 4 5 nan</pose>", "must be 6 finite numbers"),
        ("<pose>1 2 3 4 5 1e400</pose>", "must be 6 finite numbers"),
        ('<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose>', "must not have length 0"),
        ('<pose rotation_format="quat_xyzw">0 0 0 0 0 0</pose>', "must be 7 finite numbers"),
        ('<pose rotation_format="quat_wxyz">0 0 0 1 0 0 0</pose>', "must be euler_rpy or quat_xyzw"),
        ('<pose rotation_format="quat_xyzw" degrees="true">0 0 0 1 0 0 0</pose>', "not allowed with a quaternion"),
        ('<pose degrees="yes">0 0 0 0 0 0</pose>', "must be true, false, 1 or 0"),
        ('<pose relative_to="x">0 0 0 0 0 0</pose>', "must name a link, joint, frame or model in model 'auv'"),
        ('<pose relative_to="world">0 0 0 0 0 0</pose>', "a pose in a model cannot refer to the world"),
        ('<pose relative_to="auv">0 0 0 0 0 0</pose>', "must name a link"),
        ('<pose relative_to="base">0 0 0 0 0 0</pose>', "in a cycle"),
    ],
)
def test_invalid_poses_are_an_error(list_problems: ListProblems, wrap_in_link: Text, pose: str, allowed: str) -> None:
    problems = list_problems(wrap_in_link("\n" + pose))
    assert problems[0].startswith("dive.sdf:6: <")
    assert allowed in problems[0]


def test_frame_cycles_are_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    ring = "".join(f'<link name="l{i}"><pose relative_to="l{(i + 1) % 3}"/></link>\n' for i in range(3))
    (line,) = list_problems(wrap_in_world(f'<model name="m">\n{ring}</model>'))
    assert line.startswith("dive.sdf:4: <pose relative_to>: l0 -> l1 -> l2 -> l0; frames must not depend")
    frames = '<link name="l"/>\n<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'
    (line,) = list_problems(wrap_in_world(f'<model name="m">\n{frames}</model>'))
    assert line.startswith("dive.sdf:5: <frame attached_to>: f -> g -> f; frames must not depend")
    joint = '<joint name="j" type="fixed"><parent>l</parent><child>f</child></joint>'
    joint = f'<link name="l"/><frame name="f" attached_to="j"/>\n{joint}'
    assert any("in a cycle" in line for line in list_problems(wrap_in_world(f'<model name="m">\n{joint}</model>')))
    own = '<model name="m"><pose relative_to="m::l"/>\n<link name="l"/></model>'
    (line,) = list_problems(wrap_in_world(own))
    assert "m -> " in line or "l -> " in line
    assert line.startswith("dive.sdf:3: <pose relative_to>")


def test_long_frame_chain_resolves(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def make_chain(first: str) -> str:
        links = "".join(
            f'<link name="l{i}"><pose relative_to="l{i - 1}">1 0 0 0 0 0</pose></link>' for i in range(1, 20000)
        )
        return wrap_in_world(f'<model name="m">{links}<link name="l0">{first}</link></model>')

    assert list_poses(load(make_chain("")))["m::l19999"].position == (19999.0, 0.0, 0.0)
    (line,) = list_problems(make_chain('<pose relative_to="l19999"/>'))
    assert "... 20000 frames" in line


def test_overflowing_pose_sums_are_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    far = "<pose>1e308 0 0 0 0 0</pose>"
    (line,) = list_problems(wrap_in_world(f'<model name="m">{far}<link name="a">\n{far}</link></model>'))
    assert line.startswith("dive.sdf:4: <pose>: (inf")


@pytest.mark.parametrize("tag", ["link", "joint", "frame", "model"])
def test_names_are_unique_among_all_entity_types(list_problems: ListProblems, wrap_in_world: Text, tag: str) -> None:
    inside = {"joint": "<parent>world</parent><child>l</child>", "model": '<link name="l"/>'}.get(tag, "")
    kind = ' type="fixed"' if tag == "joint" else ""
    (line,) = list_problems(
        wrap_in_world(f'<model name="m"><link name="l"/>\n<{tag} name="l"{kind}>{inside}</{tag}></model>')
    )
    assert line.startswith(f"dive.sdf:4: <{tag} name>: l; must be unique among the links, joints, frames and models")
    assert "first as <link> on line 3" in line


def test_invalid_names_are_an_error(list_problems: ListProblems, wrap_in_world: Text) -> None:
    for name in ("world", "__model__", "__x__", "a::b", "", "x" * 1001):
        for line in list_problems(wrap_in_world(f'<model name="m"><link name="a"/>\n<link name="{name}"/></model>')):
            assert line.startswith("dive.sdf:4: <link name>: ")
    assert list_problems(wrap_in_world("<model><link/></model>"))[0].startswith("dive.sdf:3: <model name>: missing")


def test_joint_frames_resolve(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(content: str, kind: str = "fixed") -> str:
        return wrap_in_world(
            f'<model name="m"><link name="a"/><link name="b"/>\n<joint name="j" type="{kind}">{content}</joint></model>'
        )

    good = "<parent>a</parent><child>b</child>"
    assert load(text(good)).notes == ()
    (note,) = load(text(good, "revolute")).notes
    assert (note.kind, note.what) == ("unsupported", '<joint name="j" type="revolute">')
    assert list_problems(text(good, "hinge"))[0].startswith("dive.sdf:4: <joint type>: hinge; must be one of ball")
    assert list_problems(text("<parent>a</parent>")) == ["dive.sdf:4: <joint><child>: missing; must be given"]
    assert "must name a link" in list_problems(text("<parent>x</parent><child>b</child>"))[0]
    assert "must name a link" in list_problems(text("<parent>a</parent><child>x</child>"))[0]
    assert "cannot be a joint's child" in list_problems(text("<parent>a</parent><child>world</child>"))[0]
    assert "parent and child must differ" in list_problems(text("<parent>a</parent><child>a</child>"))[0]
    old = good + "<axis><use_parent_model_frame>1</use_parent_model_frame></axis>"
    warning = load(text(old, "revolute")).notes[-1]
    assert (warning.kind, warning.what) == ("warning", "<use_parent_model_frame> in <axis>")
    assert "SDF 1.7 replaced it by" in warning.reason


def test_canonical_link_is_resolved(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    nested = '<model name="n"><link name="c"/><link name="d"/></model>'
    links = '<link name="a"/><link name="b"/>'
    for attribute, inside, expected in (
        ("", links, "m::a"),
        ("", nested + links, "m::a"),
        ("", nested, "m::n::c"),
        ('canonical_link="b"', links, "m::b"),
        ('canonical_link="n::d"', nested + links, "m::n::d"),
    ):
        assert load(wrap_in_world(f'<model name="m" {attribute}>{inside}</model>')).models[0].canonical_link == expected
    for name in ("x", "n", "__model__"):
        (line,) = list_problems(wrap_in_world(f'<model name="m" canonical_link="{name}">{links}{nested}</model>'))
        assert line == f"dive.sdf:3: <model canonical_link>: {name}; must name a link in model 'm'"


def test_models_without_links_are_an_error(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    assert list_problems(wrap_in_world('<model name="m"/>')) == [
        "dive.sdf:3: <model name>: m; a model must have at least one link"
    ]
    world = load(wrap_in_world('<model name="m"><static>1</static></model>'))
    assert world.models == ()
    assert [note.kind for note in world.notes] == ["unsupported"]


@pytest.mark.requirement("SDF-1")
def test_joint_axes_resolve(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(xyz: str) -> str:
        joint = f'<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis>{xyz}</axis></joint>'
        return wrap_in_world(f'<model name="m"><link name="a"/><link name="b"/><frame name="f"/>\n{joint}</model>')

    for xyz in (
        "",
        "<xyz>1 0 0</xyz>",
        *(f'<xyz expressed_in="{name}">0 0 1</xyz>' for name in ("f", "__model__", "")),
    ):
        assert [note.what for note in load(text(xyz)).notes] == ['<joint name="j" type="revolute">']
    for xyz, problem in (
        ("<xyz>0 0 0</xyz>", "<axis><xyz>: 0 0 0; must have a direction"),
        ("<xyz>1 0</xyz>", "<axis><xyz>: 1 0; must be 3 finite numbers"),
        (
            '<xyz expressed_in="g">1 0 0</xyz>',
            "<xyz expressed_in>: g; must name a link, joint, frame or model in model 'm'",
        ),
    ):
        assert list_problems(text(xyz)) == [f"dive.sdf:4: {problem}"]


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(
    ("parent", "child", "holds"),
    [
        ("a", "b", True),
        ("world", "a", True),
        ("__model__", "b", True),
        ("f", "b", True),
        ("n::c", "b", True),
        ("a", "n", True),
        ("a", "f", False),
        ("__model__", "f", False),
        ("n", "n::c", False),
        ("n::__model__", "n", False),
        ("j", "b", False),
    ],
)
def test_joint_parents_and_children_resolve(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, parent: str, child: str, *, holds: bool
) -> None:
    """They resolve to the link that a frame is finally attached to, as in libsdformat."""
    rest = '<link name="a"/><link name="b"/><frame name="f" attached_to="a"/><model name="n"><link name="c"/></model>'
    joint = f'<joint name="j" type="fixed"><parent>{parent}</parent><child>{child}</child></joint>'
    text = wrap_in_world(f'<model name="m">{rest}\n{joint}</model>')
    if holds:
        assert load(text).models
    else:
        assert any("both are fixed to the same link" in line for line in list_problems(text))


def test_nested_frame_references_resolve(example_data: Path) -> None:
    """Positions are manual: M1 is rotated by a quarter turn about y, CM1 in it by a quarter turn about x."""
    world = sdf.load(example_data / "sdformat-frames" / "model_relative_to_nested_reference.sdf")
    expected = {
        "M2": (1, 0, -2),
        "M3": (1, 1, -3),
        "M4": (2, 0, -4),
        "M5": (2, 0, -6),
        "M6": (1, 1, -6),
        "M7": (1, -6, -1),
    }
    found = list_poses(world)
    for name, position in expected.items():
        np.testing.assert_allclose(found[f"parent_model::{name}::L"].position, position, atol=1e-12, rtol=0.0)
    np.testing.assert_allclose(as_matrix(found["parent_model::M2::L"])[:3, 0], (0, 0, -1), atol=1e-12, rtol=0.0)


def test_models_relative_to_nested_frames(load: Load, wrap_in_world: Text) -> None:
    """A model is relative to a nested frame of another; a joint connects two models without effect."""
    other = f'<pose relative_to="robot::inner::tip">{write(P, "arm")}</pose><link name="l"/>'
    joint = '<joint name="j" type="fixed"><parent>robot::base</parent><child>other::l</child></joint>'
    world = load(wrap_in_world(f'<model name="other">{other}</model>{MIXED}{joint}'))
    robot = M["place"] @ M["model"]
    assert_pose(world.model("other").pose, robot @ M["base"] @ M["inner"] @ M["tip"] @ M["arm"])
    assert [note.what for note in world.notes] == ['<world><joint name="j">']
