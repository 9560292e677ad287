"""The tools that compare two commits find every difference: one bit, NaN payloads, dtypes, shapes, missing arrays."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from navsense.core.typing import AnyArray

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"


@cache
def load_tool(name: str) -> ModuleType:
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TOOLS))


def make_double(*words: int) -> AnyArray:
    return np.array(words, dtype=np.uint64).view(np.float64)


def compute_digests(**arrays: object) -> dict[str, str]:
    return {name: load_tool("runs_for_comparison").compute_digest(array) for name, array in arrays.items()}


NAN = 0x7FF8000000000000


def test_equal_arrays_have_one_digest() -> None:
    """The layout in memory does not count."""
    array = np.arange(12.0).reshape(3, 4)
    assert compute_digests(a=array) == compute_digests(a=array.copy()) == compute_digests(a=np.asfortranarray(array))
    assert compute_digests(a=array[:, ::2]) == compute_digests(a=array[:, ::2].copy())
    assert (
        load_tool("compare_runs").compare({"run": compute_digests(a=array)}, {"run": compute_digests(a=array.copy())})
        == []
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (make_double(NAN - 1), make_double(NAN)),
        (make_double(NAN), make_double(NAN + 1)),
        (make_double(NAN), make_double(NAN | 1 << 63)),
        (np.array([1.0, 2.0]), np.array([1.0, np.nextafter(2.0, 3.0)])),
        (np.array([0.0]), np.array([-0.0])),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(4, dtype=np.float32)),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        (np.zeros(2, dtype="<f8"), np.zeros(2, dtype=">f8")),
        (np.zeros((0, 3)), np.zeros((0, 4))),
        (np.zeros(0), b""),
        ("1", b"2"),
    ],
    ids=lambda value: None,
)
def test_difference_of_one_bit_is_found(old: object, new: object) -> None:
    (found,) = load_tool("compare_runs").compare(
        {"run": compute_digests(a=old, b=1.0)}, {"run": compute_digests(a=new, b=1.0)}
    )
    assert found == ("run", "1 different: a")


def test_array_of_objects_has_no_digest() -> None:
    with pytest.raises(TypeError, match="array of objects"):
        compute_digests(a=np.array([object()]))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({"a": "1", "b": "2"}, {"a": "1"}, "1 missing in the new commit: b"),
        ({"a": "1"}, {"a": "1", "b": "2"}, "1 missing in the old commit: b"),
        (
            {"a": "1", "b": "1"},
            {"a": "2", "c": "1"},
            "1 different: a; 1 missing in the new commit: b; 1 missing in the old commit: c",
        ),
        ({"error": "no such sensor"}, {"a": "1"}, "fails in the old commit only: no such sensor"),
        ({"a": "1"}, {"error": "no such sensor"}, "fails in the new commit only: no such sensor"),
        ({"error": "no such sensor"}, {"error": "no sensor"}, ""),
        ({}, {}, ""),
    ],
)
def test_missing_arrays_and_errors_are_found(old: dict[str, str], new: dict[str, str], why: str) -> None:
    assert load_tool("compare_runs").compare_run(old, new) == why


def test_run_of_one_commit_is_a_difference() -> None:
    old, new = {"both": {"a": "1"}, "gone": {}}, {"both": {"a": "1"}, "added": {}}
    assert load_tool("compare_runs").compare(old, new) == [
        ("gone", "exists in the old commit only"),
        ("added", "exists in the new commit only"),
    ]


def test_empty_comparison_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison in which every run fails, or in which there is no run, must not pass."""
    report = load_tool("compare_runs").report
    assert not report({}, {})
    assert not report({"run": {"error": "x"}}, {"run": {"error": "x"}})
    assert report({"run": {"a": "1"}}, {"run": {"a": "1"}})
    assert "1 runs fail" in capsys.readouterr().out


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (float(np.nextafter(1.0, 2.0)), 1)])
def test_saved_files_are_compared_with_exit_code(tmp_path: Path, value: float, code: int) -> None:
    for name, array in (("old", np.array([1.0])), ("new", np.array([value]))):
        (tmp_path / f"{name}.json").write_text(json.dumps({"run": compute_digests(a=array)}), encoding="utf-8")
    command = [sys.executable, str(TOOLS / "compare_runs.py"), str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("run: 1 arrays: " + ("DIFFERENT: 1 different: a" if code else "same"))


def test_renamed_attribute_is_read_by_old_and_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = load_tool("runs_for_comparison")
    monkeypatch.setitem(runs.ATTRIBUTES, "truth", ("ideal",))
    assert runs.get(SimpleNamespace(truth=1), "truth") == runs.get(SimpleNamespace(ideal=1), "truth") == 1
    with pytest.raises(AttributeError, match="add it to ATTRIBUTES"):
        runs.get(SimpleNamespace(), "truth")
    with pytest.raises(ModuleNotFoundError, match="add it to MODULES"):
        runs.module("navsense.no_such_module")


def test_every_part_of_a_run_is_compared(tmp_path: Path) -> None:
    """A short run: readings with true values, errors and times, links and the current."""
    runs = load_tool("runs_for_comparison")
    text = load_tool("comparison_worlds").list_worlds()["current/gauss_markov"]
    found = runs.simulate_text(text, "physical", 0.5, None, tmp_path)
    reading = {name.partition("/")[2] for name in found if name.startswith("robot::base::dvl/")}
    assert {"time", "clock_error", "valid", "emitted", "arrival", "stamp", "true_stamp"} <= reading
    assert {"values.velocity", "truth.velocity", "errors.beam_velocity"} <= reading
    assert {"truth of robot::base/orientation", "current/velocity", "current/time"} <= found.keys()


def test_runs_cover_every_sensor() -> None:
    runs = load_tool("runs_for_comparison").list_runs()
    for kind in load_tool("runs_for_comparison").ns.sensors.SENSORS:
        for name in (f"example/{kind.type}/physical", f"batch/{kind.type}", f"apply/{kind.type}"):
            assert name in runs
        assert f"sensor/{kind.type}/classic" in runs
    assert len(runs) > 200


def test_differences_of_descriptions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    descriptions = load_tool("compare_descriptions")
    old = {"a.sdf: check": "sound\nexit code 0\n", "b.sdf: check": "sound\nexit code 0\n"}
    assert descriptions.compare(old, dict(old)) == {}
    assert descriptions.report(old, dict(old))
    new = {"a.sdf: check": "no sensor\nexit code 2\n", "c.sdf: check": "sound\nexit code 0\n"}
    found = descriptions.compare(old, new)
    assert found["a.sdf: check"] == ["@@ -1,2 +1,2 @@", "-sound", "-exit code 0", "+no sensor", "+exit code 2"]
    assert found["b.sdf: check"] == ["ran in the old commit only"]
    assert found["c.sdf: check"] == ["ran in the new commit only"]
    assert not descriptions.report(old, new)
    assert not descriptions.report({}, {})
    assert "3 of 3 outputs differ" in capsys.readouterr().out


def test_commands_are_compared_with_their_exit_code(tmp_path: Path) -> None:
    descriptions = load_tool("descriptions_for_comparison")
    (tmp_path / "bad.sdf").write_text("<sdf version='1.9'><world/></sdf>", encoding="utf-8")
    (path,) = descriptions.list_files([str(tmp_path), str(tmp_path)])
    assert descriptions.run_command(("check",), path).endswith("exit code 2\n")
    sound = descriptions.run_command(("check",), ROOT / "examples" / "quadrotor.sdf")
    assert sound.endswith("no errors; 1 model, 5 sensors, 2 clocks\nexit code 0\n")


def test_hash_of_a_state_covers_data_files(tmp_path: Path) -> None:
    hash_files = load_tool("comparison").hash_files
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    first = hash_files(tmp_path)
    (tmp_path / "table.toml").write_text("x = 1\n", encoding="utf-8")
    second = hash_files(tmp_path)
    (tmp_path / "table.toml").rename(tmp_path / "other.toml")
    assert len({first, second, hash_files(tmp_path)}) == 3


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_unknown_commit_is_an_error_message() -> None:
    command = [sys.executable, str(TOOLS / "compare_runs.py"), "no-such-commit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr
