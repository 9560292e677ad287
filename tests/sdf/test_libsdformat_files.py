"""Public files of other projects load as in libsdformat 12.3: the same verdicts, the same poses of sensors.

`tests/oracles/libsdformat-files` lists the files by hash. Those below ../shared/data, in installed packages and in the
folders of NAVSENSE_PUBLIC_FILES (separated as in PATH) are compared.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "NAVSENSE_PUBLIC_FILES"
SHARED = ROOT.parent / "shared" / "data"

PACKAGES = ("airo_models", "gym_ignition_models", "icub_models", "pybullet_data", "rtbdata", "stretch_urdf")
"""Python packages with listed files."""

INSTALLED = (Path("/usr/share/gazebo-11"), Path("/usr/share/doc/dart/data"))
"""Folders of Debian packages with listed files."""


@cache
def load_tool() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return import_module("compare_libsdformat")
    finally:
        sys.path.remove(str(ROOT / "tools"))


TABLE: dict[str, Any] = load_tool().read_table()
REPOSITORIES = sorted({file.repository for file in TABLE.values()})


def list_folders() -> Iterator[Path]:
    """Yield the folders that may have listed files."""
    yield from map(Path, filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)))
    yield SHARED
    yield from INSTALLED
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None:
            yield from map(Path, spec.submodule_search_locations or ())


@cache
def find_local_files() -> list[Any]:
    """Return the listed files on this machine."""
    local_files: list[Any] = load_tool().find_local_files(
        TABLE, [folder for folder in list_folders() if folder.is_dir()]
    )
    return local_files


def test_table_names_300_public_files_by_commit() -> None:
    with_commit = [file for file in TABLE.values() if file.commit]
    assert len(with_commit) >= 300
    assert len({file.repository for file in with_commit}) >= 15
    assert {Path(file.path).suffix for file in with_commit} == {".sdf", ".world", ".urdf", ".xacro"}
    for file in TABLE.values():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", file.repository)
        assert re.fullmatch("[0-9a-f]{40}", file.blob)
        assert re.fullmatch("[0-9a-f]{40}|", file.commit)
        assert (file.evidence in load_tool().EVIDENCE) == bool(file.commit), file
        assert file.source
    assert len({(file.repository, file.path) for file in TABLE.values()}) == len(TABLE)


def test_rows_of_table_are_consistent() -> None:
    """Only accepted files have sensors and may be refused by navsense alone. Rotations have length 1.

    libsdformat resolves no pose of a sensor in a joint.
    """
    tool = load_tool()
    for file in TABLE.values():
        assert set(file.errors) <= set(tool.ERROR_CODES)
        assert not file.errors or not (file.sensors or file.refusal), file
        assert not file.refusal or file.refusal in tool.REFUSALS, file
        for sensor in file.sensors:
            assert sensor.pose is not None or sensor.type == "force_torque", (file.path, sensor)
            assert sum(part * part for part in (sensor.pose or (1.0,))[-4:]) == pytest.approx(1.0, abs=1e-12)
    types = Counter(sensor.type for file in TABLE.values() for sensor in file.sensors)
    assert {"imu", "magnetometer", "altimeter", "navsat", "air_pressure", "camera"} <= set(types)
    assert len(TABLE) == len(list(tool.read_rows("files.tsv")))
    assert types.total() == len(list(tool.read_rows("sensors.tsv")))


def test_tables_are_written_as_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = load_tool()
    old = {name: (tool.TABLE / name).read_text(encoding="utf-8") for name in ("files.tsv", "sensors.tsv")}
    monkeypatch.setattr(tool, "TABLE", tmp_path)
    tool.write_table(TABLE)
    assert old == {name: (tmp_path / name).read_text(encoding="utf-8") for name in old}


def test_each_reason_is_used_and_documented() -> None:
    """No file that libsdformat accepts is refused without a reason in the documentation."""
    tool = load_tool()
    page = (ROOT / "docs" / "reference" / "sdf-elements.md").read_text(encoding="utf-8")
    section = page.partition("## Files that libsdformat accepts and navsense refuses")[2]
    assert {file.refusal for file in TABLE.values()} - {""} == set(tool.REFUSALS)
    for text, reason in tool.REFUSALS.items():
        assert f"- *... {text}*: {reason}" in section


def test_hash_of_a_file_is_that_of_git() -> None:
    """The hashes of `git hash-object` for no content, and for the example of the book *Pro Git*, section 10.2."""
    assert load_tool().compute_blob(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert load_tool().compute_blob(b"test content\n") == "d670460b4b4aece5915caf5c68d12f560a9fe3e4"


def make_local_file(tmp_path: Path, text: str, **fields: Any) -> Any:
    """Return a file of the table that has this text, and libsdformat's result for `EXAMPLE`."""
    tool = load_tool()
    path = tmp_path / "models" / "example.sdf"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    pose = (1.0, 2.0, 3.25, 1.0, 0.0, 0.0, 0.0)
    sensors = (tool.Sensor("m::l::mag", "magnetometer", pose), tool.Sensor("m::l::cam", "camera", pose))
    file = tool.File("a/b", "example.sdf", "", "", "example", tool.compute_blob(path.read_bytes()), sensors=sensors)
    file = replace(file, **fields)
    (local_file,) = tool.find_local_files({file.blob: file}, [tmp_path])
    assert local_file.folders[:3] == (tmp_path / "models", tmp_path, tmp_path / "models")
    return local_file


EXAMPLE = (
    '<sdf version="1.6"><world name="w"><model name="m"><pose>1 2 3 0 0 0</pose><link name="l">'
    '<sensor name="mag" type="magnetometer"><pose>0 0 0.25 0 0 0</pose></sensor>'
    '<sensor name="cam" type="camera"><pose>0 0 0.25 0 0 0</pose><camera/></sensor>'
    "</link></model>MORE</world></sdf>"
)
"""Poses by hand: model at (1, 2, 3), sensors 0.25 m above it."""

INCLUDE = "<include><uri>model://gone</uri></include>"


def compare(tmp_path: Path, more: str = "", **fields: Any) -> tuple[str, str]:
    result = load_tool().compare(make_local_file(tmp_path, EXAMPLE.replace("MORE", more), **fields))
    return result.kind, result.difference


def test_comparison_finds_each_difference(tmp_path: Path) -> None:
    tool = load_tool()
    displaced = tool.Sensor("m::l::mag", "magnetometer", (1.0, 2.0, 3.25 + 1e-10, 1.0, 0.0, 0.0, 0.0))
    unknown = tool.Sensor("m::l::range", "ray", displaced.pose)
    assert compare(tmp_path) == ("same", "")
    assert compare(tmp_path, sensors=(displaced,)) == ("different", "pose of m::l::mag differs by 3.08e-11")
    assert compare(tmp_path, sensors=(unknown,))[1] == "sensor m::l::range (ray) is neither simulated nor noted"
    assert (
        compare(tmp_path, sensors=(replace(displaced, pose=None),))[1] == "libsdformat has no pose of sensor m::l::mag"
    )
    assert compare(tmp_path, errors=("LINK_INERTIA_INVALID",)) == ("lenient", "")
    assert compare(tmp_path, errors=("RESERVED_NAME",)) == ("different", "navsense accepts RESERVED_NAME")
    assert compare(tmp_path, INCLUDE) == ("other models", "not here: model://gone")
    assert compare(tmp_path, INCLUDE, missing=("model://gone",)) == ("same", "")


def test_comparison_of_refused_files(tmp_path: Path) -> None:
    bad = '<model name="m"><link name="l"/></model>'
    kind, text = compare(tmp_path, bad)
    assert kind == "different"
    assert text.startswith("navsense refuses it: ")
    assert text.endswith("rename one")
    assert compare(tmp_path, bad, errors=("DUPLICATE_NAME",)) == ("same", "")
    assert compare(tmp_path, bad, refusal="must be unique") == ("refused", "")
    assert compare(tmp_path, bad, refusal="must be 1.4")[0] == "different"
    assert compare(tmp_path, refusal="must be unique")[1].startswith("navsense accepts it now")


@pytest.mark.requirement("SDF-1", "SDF-2")
@pytest.mark.parametrize("repository", REPOSITORIES)
def test_public_files_agree_with_libsdformat(repository: str) -> None:
    local_files = [local_file for local_file in find_local_files() if local_file.file.repository == repository]
    if not local_files:
        pytest.skip(f"needs files of {repository}: name their folder in {FOLDERS}")
    different = {
        str(local_file.path): result
        for local_file in local_files
        if (result := load_tool().compare(local_file)).difference
    }
    assert {path: result for path, result in different.items() if result.kind != "other models"} == {}


@pytest.mark.compiled
@pytest.mark.requirement("SDF-1")
def test_recorded_results_equal_the_library(sensor_program: Path, tmp_path: Path) -> None:
    """The library gives the recorded results: our example, and up to 100 of the listed files that are here.

    `tools/compare_libsdformat.py --program` compares all.
    """
    example = make_local_file(tmp_path, EXAMPLE.replace("MORE", INCLUDE), missing=("model://gone",))
    listed = find_local_files()
    local_files = [example, *listed[:: len(listed) // 100 + 1]]
    assert load_tool().run_libsdformat(sensor_program, local_files) == [local_file.file for local_file in local_files]
