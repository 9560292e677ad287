"""After `navsense warm`, the demo and the example worlds compile nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from navsense.core.errors import RecordingError
from navsense.warm import kernel_runs

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = """
import sys
from pathlib import Path

import navsense as ns
from navsense.core.kernels import COMPILATION_CALLBACKS
from navsense.demo import write_demo
from navsense.report import write
from navsense.warm import compile_kernels
from navsense.warm.kernel_runs import list_dispatchers

def list_forms():
    return {(d.py_func.__module__, d.py_func.__name__, types) for d in list_dispatchers() for types in d.overloads}

examples, out = Path(sys.argv[1]), Path(sys.argv[2])
folder = compile_kernels().folder
ready, compilations = list_forms(), []
COMPILATION_CALLBACKS.append(lambda: compilations.append(None))
write_demo(out)
survey = ns.load(examples / "auv_survey.sdf")
ns.record(survey, out / "survey.mcap", 120.0)
write(out / "survey.mcap", out / "survey.html", world=str(examples / "auv_survey.sdf"))
ns.simulate(survey, 10.0, runs=2)
ns.record(ns.load(examples / "fleet.sdf", path=examples / "models"), out / "fleet.mcap", 20.0)
with ns.live(ns.load(examples / "quadrotor.sdf"), driven=["quadrotor"]) as run:
    run.step({"quadrotor": ns.State(ns.Pose((0.0, 0.0, 2.0)))})
print(len(compilations), folder)
for form in sorted(map(str, list_forms() - ready)):
    print("not compiled by warm:", form)
"""
"""With a complete cache nothing is compiled, so the test also compares the forms of the kernels that were loaded."""


@pytest.mark.compiled
@pytest.mark.timeout(600)
def test_examples_compile_nothing_after_warm(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(ROOT / "examples"), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=590)
    assert ended.returncode == 0, ended.stderr
    head, *missing = ended.stdout.splitlines()
    compilations, folder = head.split(" ", 1)
    assert int(compilations) == 0
    assert Path(folder).is_dir()
    assert not missing, "\n".join(missing)


def test_a_full_temporary_folder_is_an_error_without_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise RecordingError("no space left on device", remedy=f"recover with: navsense recover {folder}")

    monkeypatch.setattr(kernel_runs, "_run_demo", fail)
    with pytest.raises(RecordingError) as raised:
        kernel_runs.compile_kernels()
    assert raised.value.remedy == f"free some space in {tempfile.gettempdir()}, or set TMPDIR to another folder"
