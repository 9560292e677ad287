"""URDF robots equal libsdformat 12.3, which converts them to SDF, with fixed joints kept and lumped.

Its results for `tests/oracles/libsdformat/urdf` are recorded. If it is installed, random robots are compared too.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from navsense import sdf
from navsense.core.pose import Pose

ORACLE = Path(__file__).resolve().parents[1] / "oracles" / "libsdformat"
ROBOTS = ORACLE / "urdf"

RECORDED: dict[str, dict[str, Any]] = {
    answer["file"]: answer
    for answer in map(json.loads, (ORACLE / "urdf.jsonl").read_text(encoding="utf-8").splitlines())
}

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
KEEP = "<preserveFixedJoint>true</preserveFixedJoint>"


def list_poses(path: Path) -> dict[str, dict[str, Pose]]:
    """Return our poses: of models in the world, and of links and sensors in their model."""
    world = sdf.load(path)
    models = {model.name: model for model in world.models}
    links = {link.name: link.pose for model in world.models for link in model.links}
    sensors = {
        f"{sensor.model}::{sensor.name.rpartition('::')[2]}": models[sensor.model].link(sensor.link).pose @ sensor.pose
        for sensor in world.sensors
    }
    return {"model": {name: model.pose for name, model in models.items()}, "link": links, "sensor": sensors}


def parse_poses(answer: dict[str, Any]) -> dict[str, dict[str, Pose]]:
    """Return libsdformat's poses likewise. A sensor of a lumped link is in the link that contains it."""
    poses: dict[str, dict[str, Pose]] = {"model": {}, "link": {}, "sensor": {}}
    for kind, name, numbers in answer["poses"]:
        pose = Pose(tuple(numbers[:3]), tuple(numbers[3:]))
        if kind == "sensor":
            link, _, own = name.rpartition("::")
            poses[kind][f"{link.partition('::')[0]}::{own}"] = poses["link"][link] @ pose
        elif kind in poses:
            poses[kind][name] = pose
    return poses


def assert_same(ours: Pose, theirs: Pose, length: float, angle: float) -> None:
    same = math.copysign(1.0, sum(a * b for a, b in zip(ours.rotation, theirs.rotation, strict=True)))
    assert ours.position == pytest.approx(theirs.position, abs=length)
    assert [same * part for part in ours.rotation] == pytest.approx(list(theirs.rotation), abs=angle / 2)


def compare(path: Path, answer: dict[str, Any], *, lumped: bool) -> int:
    """Assert that all poses of libsdformat equal ours; return their number.

    When it lumps a link, it writes the poses of its sensors with six digits: a rounding of half of 1e-5 of each number,
    of three lengths within `reach` and three angles within pi.
    """
    assert not answer["errors"]
    ours, theirs = list_poses(path), parse_poses(answer)
    assert ours["sensor"].keys() == theirs["sensor"].keys()
    assert theirs["link"].keys() <= ours["link"].keys()
    assert lumped == (theirs["link"].keys() < ours["link"].keys())
    lumps = len(ours["link"]) - len(theirs["link"])
    reach = 2.0 * max(1.0, *(math.hypot(*pose.position) for poses in ours.values() for pose in poses.values()))
    for kind, poses in theirs.items():
        digits = 5e-6 * lumps if kind == "sensor" else 0.0
        length, angle = reach * (1e-12 + math.sqrt(3) * digits), 2e-12 + 3 * math.pi * digits
        for name, pose in poses.items():
            assert_same(ours[kind][name], pose, length, angle)
    return sum(map(len, theirs.values()))


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("file", sorted(RECORDED))
def test_recorded_robot_agrees_with_libsdformat(file: str) -> None:
    assert compare(ROBOTS / file, RECORDED[file], lumped=file == "lumped.urdf") >= 2


def test_every_robot_is_recorded() -> None:
    assert {path.name for path in ROBOTS.iterdir()} == set(RECORDED)


def make_random_robot(seed: int, *, keep_fixed: bool) -> str:
    pick = random.Random(seed)

    def numbers(most: float) -> str:
        return " ".join(f"{pick.uniform(-most, most):.9f}" for _ in range(3))

    count = pick.randint(4, 12)
    parts = [f'<link name="l{i}">{MASS}</link>' for i in range(count)]
    for i in range(1, count):
        kind = pick.choice(["fixed", "fixed", "revolute", "continuous", "prismatic"])
        parts.append(
            f'<joint name="j{i}" type="{kind}"><parent link="l{pick.randrange(i)}"/><child link="l{i}"/>'
            f'<origin xyz="{numbers(5)}" rpy="{numbers(3)}"/><axis xyz="0 0 1"/>'
            '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        )
        parts += [f'<gazebo reference="j{i}">{KEEP}</gazebo>'] * keep_fixed
        pose = f"{numbers(2)} {numbers(3)}"
        parts.append(f'<gazebo reference="l{i}"><sensor name="s{i}" type="imu"><pose>{pose}</pose></sensor></gazebo>')
    pick.shuffle(parts)
    return f'<robot name="r{seed}">' + "\n".join(parts) + "</robot>"


@pytest.mark.compiled
@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize("keep_fixed", [True, False])
def test_random_robots_agree_with_libsdformat(resolver: Path, tmp_path: Path, keep_fixed: bool) -> None:
    files = [tmp_path / f"r{seed}.urdf" for seed in range(8)]
    for seed, file in enumerate(files):
        file.write_text(make_random_robot(seed, keep_fixed=keep_fixed), encoding="utf-8")
    ran = subprocess.run([resolver, *files], capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    for file, answer in zip(files, answers, strict=True):
        fixed = 'type="fixed"' in file.read_text(encoding="utf-8")
        assert compare(file, answer, lumped=fixed and not keep_fixed) >= (7 if keep_fixed else 4)


@pytest.mark.compiled
@pytest.mark.requirement("SDF-2")
def test_recorded_results_equal_the_library(resolver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDF_PATH", str(ROBOTS))
    ran = subprocess.run([resolver, *sorted(RECORDED)], capture_output=True, text=True, check=True, cwd=ROBOTS)
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [RECORDED[file] for file in sorted(RECORDED)]
