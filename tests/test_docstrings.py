"""Every public class and function has an example in its docstring, and the examples run.

The examples of a docstring share these names: `ns`, `np`, `Path`; `world`, the quadrotor of the examples; `run`, one
second of it; `field` (n, 3) T and `rotation_ws` (n, 4), readings of a magnetometer that turns, with its attitudes. The
current folder contains `quadrotor.sdf`, `drive.npz` with those readings, and `calibration.json`.
"""

from __future__ import annotations

import doctest
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.runner.run import RecordResult, Run
from navsense.simulation.live_run import LiveClock, LiveRun, LiveSensor, Step
from navsense.world import Link, Model, MountedSensor, World

pytestmark = [pytest.mark.requirement("DOC-1:api"), pytest.mark.compiled]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

MODULES = (ns, ns.calibration, ns.factors, ns.factors.blocks, ns.recordings, ns.sensors, ns.testing)

RESULTS = (RecordResult, Run, LiveClock, LiveRun, LiveSensor, Step, Link, Model, MountedSensor, World)
"""Classes of objects that public functions return."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def list_public_objects() -> dict[str, Any]:
    """Return the public classes and functions by name."""
    found = {f"{one.__module__}.{one.__name__}": one for one in RESULTS}
    for module in MODULES:
        for name in getattr(module, "__all__", ()):
            one = getattr(module, name)
            if inspect.isclass(one) or inspect.isfunction(one):
                found.setdefault(f"{one.__module__}.{one.__name__}", one)
    return found


PUBLIC = list_public_objects()


def list_tests() -> Iterator[doctest.DocTest]:
    """Yield the examples of each public object, of its methods, and of the public modules."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name, one in PUBLIC.items():
        yield from (test for test in finder.find(one, name, module=False, globs={}) if test.examples)
    parser = doctest.DocTestParser()
    for module in MODULES:
        test = parser.get_doctest(module.__doc__ or "", {}, module.__name__, module.__file__, 0)
        if test.examples:
            yield test


TESTS = {test.name: test for test in list_tests()}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names of the examples, with a run and the readings of a magnetometer."""
    noise = ns.Noise(stddev=15e-9)
    compass = ns.sensors.Magnetometer(noise, noise, noise, hard_iron=(4e-7, -2e-7, 6e-7))
    drive = ns.simulate(ns.testing.example_world(("compass", compass)), 3.0, seed=1)
    world = ns.load(EXAMPLES / "quadrotor.sdf")
    return {"ns": ns, "np": np, "Path": Path, "world": world, "run": ns.simulate(world, 1.0, seed=7), "drive": drive}


@pytest.fixture
def namespace(names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the examples in a folder with their files."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "quadrotor.sdf", tmp_path)
    namespace = dict(names)
    namespace.pop("drive").save("drive.npz")
    samples = ns.calibration.read("drive.npz", attitude="truth")
    samples.calibrate().save("calibration.json")
    return namespace | {"field": samples.field, "rotation_ws": samples.rotation_ws}


@pytest.mark.parametrize("name", TESTS)
def test_examples_of_docstrings_run(name: str, namespace: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    test = TESTS[name]
    test.globs = dict(namespace)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert results.attempted > 0
    assert not results.failed, "".join(report)


def test_every_public_class_and_function_has_an_example() -> None:
    with_example = {name for name in PUBLIC if name in TESTS}
    assert not sorted(PUBLIC.keys() - with_example)
