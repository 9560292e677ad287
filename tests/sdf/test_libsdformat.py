"""Poses, fields and verdicts equal those of libsdformat 12.3, Gazebo's SDF reader.

Its results for the files in `tests/oracles/libsdformat/cases`, its test files and Gazebo's are recorded. If
the library is installed (Debian: `libsdformat12-12`; for poses also `libsdformat-dev g++ pkg-config`), it runs again on
these files, and on random worlds.
"""

from __future__ import annotations

import ctypes.util
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from navsense import sdf
from navsense.core.errors import NavsenseError
from navsense.core.pose import Pose
from navsense.environment.base import UniformField
from navsense.sdf.context import Context
from navsense.sdf.file_reader import FileReader
from navsense.sdf.frame_graph import build_model_scope, build_world_scope
from navsense.sdf.frames import FramePoses, Scope
from navsense.sdf.include import IncludeExpander
from navsense.sdf.search_path import build_search_path
from navsense.sensors import Imu

ORACLE = Path(__file__).resolve().parents[1] / "oracles" / "libsdformat"
CASES = ORACLE / "cases"
MODELS = CASES / "models"
SHARED = ORACLE.parents[3] / "shared" / "data"

Answer = dict[str, Any]

DIFFERENT = {
    "joint_nested_parent_child.sdf": "__model__ as an end of a joint is an error in 12, and none since 13",
    "joint_parent_model_frame.sdf": "__model__ as an end of a joint is an error in 12, and none since 13",
    "sensors.sdf": "air_speed came after 12.3",
    "two_ways_of_imu_noise.sdf": "is accepted with one axis of the new noise and two of the old: nobody means that",
}
"""Files with different verdicts, and the reason."""

RENAMED = {
    "version_1_6.sdf": {"auv::hull_joint"},
    "world_model_frame_same_name_1_6.sdf": {"ground_frame"},
}
"""Until 1.6 a joint or frame may have the name of a link or model. libsdformat renames it."""

NOT_THERE = {"world_joint_parent_frame.sdf": {"J1", "J2"}}
"""Joints of worlds, which version 12.3 does not read."""

ROUNDED = {"include_merge.sdf"}
"""12.3 writes the pose of a merged model with six decimals."""

CHECKED_APART = {
    "version_1_6.sdf": "the check of names beside each other is an error of `ign sdf --check`, and none of the library",
    "world_model_frame_same_name_1_6.sdf": "the same",
}


def read_answers(name: str) -> dict[str, Answer]:
    lines = (ORACLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {answer["file"]: answer for answer in map(json.loads, lines)}


FOLDERS = {"cases": CASES, "frames": SHARED / "sdformat-frames", "worlds": SHARED / "gz-sim"}
"""Record -> folder of its files. The last two are third-party files outside the repository."""

RECORDED = {file: answer for name in FOLDERS for file, answer in read_answers(name).items()}
PLACES = {file: folder / file for name, folder in FOLDERS.items() for file in read_answers(name)}


def find_file(file: str) -> Path:
    """Return the path of a file; skip the test if it is a missing third-party file."""
    if not PLACES[file].exists():
        pytest.skip("needs ../shared/data, real files of other projects that are not part of this one")
    return PLACES[file]


def find_first_problem(path: Path) -> str:
    """Return the first problem of a file, None if it loads."""
    try:
        sdf.load(path, path=MODELS)
    except NavsenseError as error:
        return str(error)
    return ""


def resolve_poses(path: Path) -> dict[tuple[str, str], Pose | None]:
    """Return the pose of every frame in its model or world, by kind and full name; None for unsupported sensors."""
    context = Context(str(path))
    search = build_search_path(MODELS)
    root = IncludeExpander(context, search, FileReader(context, search)).read_root(str(path))
    (top,) = (child for child in root.children if child.tag in ("world", "model"))
    complete = build_world_scope(context, top) if top.tag == "world" else build_model_scope(context, top)
    context.raise_problems()

    def list_poses(scope: Scope) -> Iterator[tuple[tuple[str, str], Pose]]:
        poses = FramePoses(scope.frame)
        for name, node in scope.names.items():
            yield (node.kind, node.name), poses.find_pose(node)
            if name in scope.nested:
                yield from list_poses(scope.nested[name])

    found = dict(list_poses(complete))
    world = sdf.load(path, path=MODELS)
    listed = [note.what.rpartition(": ")[2] for note in world.notes if note.subject == "sensor"]
    sensors: dict[tuple[str, str], Pose | None] = {("sensor", name): None for name in listed}
    sensors |= {("sensor", sensor.name): sensor.pose for sensor in world.sensors}
    if top.tag == "model":
        del found["model", top.attributes["name"]]
    return found | sensors


def assert_same(ours: dict[tuple[str, str], Pose | None], answer: Answer, tolerance: float) -> None:
    file = Path(answer["file"]).name
    theirs = {(kind, name): pose for kind, name, pose in answer["poses"] if name not in RENAMED.get(file, ())}
    missing = {("joint", name) for name in NOT_THERE.get(file, ())}
    assert theirs.keys() == {key for key in ours if key not in missing}
    for key, expected in theirs.items():
        pose = ours[key]
        if pose is None:
            continue
        same = math.copysign(1.0, sum(a * b for a, b in zip(pose.rotation, expected[3:], strict=True)))
        scale = max(1.0, *map(abs, expected))
        found = [*pose.position, *(same * part for part in pose.rotation)]
        assert found == pytest.approx(expected, abs=tolerance * scale), key


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("file", sorted(RECORDED))
def test_verdict_equals_libsdformat(file: str) -> None:
    ours, theirs = find_first_problem(find_file(file)), RECORDED[file]["errors"]
    assert (not ours) == (not theirs) or file in DIFFERENT, ours
    assert not (file in DIFFERENT and (not ours) == (not theirs)), "no longer different"
    if file.startswith("refused_"):
        assert f"{file}:" in ours or f"{MODELS}/" in ours  # the line of the error, in this file or an included one


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("file", sorted(file for file, answer in RECORDED.items() if not answer["errors"]))
def test_poses_equal_libsdformat(file: str) -> None:
    path = find_file(file)
    if find_first_problem(path):
        assert file in DIFFERENT
        return
    assert_same(resolve_poses(path), RECORDED[file], 1e-5 if file in ROUNDED else 1e-12)


@pytest.mark.requirement("SDF-1", "MAG-4")
@pytest.mark.parametrize("file", ["version_1_4.sdf", "version_1_5.sdf", "version_1_6.sdf"])
def test_fields_of_each_version_equal_libsdformat(file: str) -> None:
    world, fields = sdf.load(CASES / file), dict(RECORDED[file]["fields"])
    assert world.environment.gravity == UniformField(tuple(fields["gravity"]))
    if fields["magnetic_field"] != [6e-06, 2.3e-05, -4.2e-05]:  # the default as rounded by 12.3
        assert world.environment.magnetic_field == UniformField(tuple(fields["magnetic_field"]))


@pytest.mark.requirement("SDF-1", "IMU-1")
@pytest.mark.parametrize("file", ["version_1_4.sdf", "version_1_5.sdf", "include_in_world.sdf"])
def test_imu_noise_of_each_version_equals_libsdformat(file: str) -> None:
    sensors = {sensor.name: sensor.spec for sensor in sdf.load(CASES / file, path=MODELS).sensors}
    noises = dict(RECORDED[file]["noises"])
    assert noises
    for name, expected in noises.items():
        imu = sensors[name]
        assert isinstance(imu, Imu)
        channels = ("angular_velocity", "linear_acceleration")
        axes = [getattr(imu, f"{channel}_{axis}") for channel in channels for axis in "xyz"]
        found = [[noise.mean, noise.stddev, noise.bias_mean, noise.bias_stddev, noise.precision] for noise in axes]
        assert found == expected


CHECK = """
import ctypes, sys
check = ctypes.CDLL(sys.argv[1]).cmdCheck
print("\\nCODES", *[check(file.encode()) for file in sys.argv[2:]], flush=True)
"""
"""The test calls the check of `ign sdf --check` in one process for all files."""


def check_all() -> list[Path]:
    return [path for file in sorted(RECORDED) if (path := PLACES[file]).exists() and not find_first_problem(path)]


@pytest.mark.compiled
@pytest.mark.requirement("SDF-1")
def test_accepted_files_pass_gz_sdf_check(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ctypes.util.find_library("sdformat12")
    if library is None:
        pytest.skip("needs Debian's libsdformat12-12")
    monkeypatch.setenv("SDF_PATH", str(MODELS))
    files = check_all()
    ran = subprocess.run(
        [sys.executable, "-c", CHECK, library, *map(str, files)], capture_output=True, text=True, check=True, cwd=CASES
    )
    # The library writes its own lines before and after.
    (codes,) = (line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("CODES"))
    problems = {file.name for file, code in zip(files, codes, strict=True) if code != "0"}
    assert problems == {name for name in (*DIFFERENT, *CHECKED_APART) if name in {file.name for file in files}}


def run_library(resolver: Path, files: Sequence[Path], cwd: Path) -> list[Answer]:
    ran = subprocess.run([resolver, *files], capture_output=True, text=True, check=True, cwd=cwd)
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.compiled
@pytest.mark.requirement("SDF-1")
def test_random_worlds_agree_with_libsdformat(resolver: Path, tmp_path: Path) -> None:
    """Random worlds have nested models, includes, merged models and placement frames."""
    files = []
    for seed in range(14):
        folder = tmp_path / f"world{seed}"
        folder.mkdir()
        (folder / "world.sdf").write_text(RandomWorlds(seed, folder).world(), encoding="utf-8")
        files.append(folder / "world.sdf")
    sound = 0
    for path, answer in zip(files, run_library(resolver, files, tmp_path), strict=True):
        problem = find_first_problem(path)
        if "both stand on the same link" in problem and not answer["errors"]:
            continue  # 12.3 reads joints of direct models of a world only
        assert (not problem) == (not answer["errors"]), (path, problem)
        if not problem:
            sound += 1
            merged = any('merge="true"' in file.read_text(encoding="utf-8") for file in path.parent.iterdir())
            assert_same(resolve_poses(path), answer, 1e-3 if merged else 1e-12)  # six digits, amplified along chains
    assert sound >= 3


@pytest.mark.compiled
@pytest.mark.requirement("SDF-1")
def test_recorded_results_equal_the_library(resolver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDF_PATH", str(MODELS))
    files = [Path(file) for file in sorted(RECORDED) if (CASES / file).exists() and not file.startswith("refused_")]
    assert run_library(resolver, files, CASES) == [RECORDED[str(file)] for file in files]


class RandomWorlds:
    """Random worlds with frames of every kind relative to others in scope; some have cycles."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.files = 0

    def world(self) -> str:
        models = {f"w{i}": self.plan(0, "") for i in range(self.random.randint(1, 2))}
        frames = [f"f{i}" for i in range(self.random.randint(0, 2))]
        names = [*frames, "world"]
        for name, plan in models.items():
            names += [name, *(f"{name}::{inner}" for inner in self.names(plan))]
        parts = [f'<frame name="{frame}"{self.make_attachment(names)}>{self.pose(names)}</frame>' for frame in frames]
        parts += [self.model(name, plan, names) for name, plan in models.items()]
        self.random.shuffle(parts)
        return '<sdf version="1.9"><world name="w">' + "\n".join(parts) + "</world></sdf>"

    def plan(self, depth: int, prefix: str) -> dict[str, Any]:
        """Return the content of a model: names of links, frames, joints, and plans of nested models."""
        pick = self.random
        plan: dict[str, Any] = {"links": [f"{prefix}l{i}" for i in range(pick.randint(1, 3))]}
        plan["frames"] = [f"{prefix}f{i}" for i in range(pick.randint(0, 3))]
        plan["joints"] = [f"{prefix}j"] if len(plan["links"]) > 1 and pick.random() < 0.7 else []
        deeper = depth < 3
        plan["models"] = {f"{prefix}m{i}": self.plan(depth + 1, "") for i in range(deeper * pick.choice([0, 0, 1, 2]))}
        merged = f"{prefix}g{depth}"
        plan["merged"] = {merged: self.plan(depth + 1, f"{merged}_")} if deeper and pick.random() < 0.35 else {}
        return plan

    def names(self, plan: dict[str, Any]) -> list[str]:
        """Return the names in scope of a model."""
        names = [*plan["links"], *plan["frames"], *plan["joints"]]
        for name, inner in plan["models"].items():
            names += [name, *(f"{name}::{list_poses}" for list_poses in self.names(inner))]
        for name, inner in plan["merged"].items():
            names += [f"_merged__{name}__model__", *self.names(inner)]
        return names

    def pose(self, names: list[str]) -> str:
        if self.random.random() < 0.25:
            return ""
        other = f' relative_to="{self.random.choice(names)}"' if names and self.random.random() < 0.12 else ""
        return f"<pose{other}>" + " ".join(f"{self.random.uniform(-3, 3):.6f}" for _ in range(6)) + "</pose>"

    def make_attachment(self, names: list[str]) -> str:
        return f' attached_to="{self.random.choice(names)}"' if self.random.random() < 0.2 else ""

    def placement(self, plan: dict[str, Any], share: float) -> str:
        return self.random.choice([*self.names(plan), "__model__"]) if self.random.random() < share else ""

    def body(self, plan: dict[str, Any]) -> str:
        names = [*self.names(plan), "__model__"]
        parts = [f'<link name="{link}">{self.pose(names)}</link>' for link in plan["links"]]
        parts += [
            f'<frame name="{frame}"{self.make_attachment(names)}>{self.pose(names)}</frame>' for frame in plan["frames"]
        ]
        for joint in plan["joints"]:
            parent, child = self.random.sample(plan["links"], 2)
            ends = f"<parent>{parent}</parent><child>{child}</child>"
            parts.append(f'<joint name="{joint}" type="fixed">{self.pose(names)}{ends}</joint>')
        parts += [self.model(name, inner, names) for name, inner in plan["models"].items()]
        parts += [self.include(name, inner, names, ' merge="true"') for name, inner in plan["merged"].items()]
        self.random.shuffle(parts)
        return "\n".join(parts)

    def model(self, name: str, plan: dict[str, Any], names: list[str]) -> str:
        if self.random.random() < 0.35:
            return self.include(name, plan, names, "")
        frame = self.placement(plan, 0.3)
        placed = f' placement_frame="{frame}"' if frame else ""
        return f'<model name="{name}"{placed}>{self.pose(names)}{self.body(plan)}</model>'

    def include(self, name: str, plan: dict[str, Any], names: list[str], merge: str) -> str:
        self.files += 1
        file = self.folder / f"{self.files}.sdf"
        own = self.random.choice([name, "other"])
        version = self.random.choice(["1.7", "1.8", "1.9"])
        body = f'<model name="{own}">{self.pose([])}{self.body(plan)}</model>'
        file.write_text(f'<sdf version="{version}">{body}</sdf>', encoding="utf-8")
        pose = self.pose(names)
        frame = self.placement(plan, 0.3) if pose else ""
        placed = f"<placement_frame>{frame}</placement_frame>" if frame else ""
        return f"<include{merge}><uri>{file}</uri><name>{name}</name>{pose}{placed}</include>"
