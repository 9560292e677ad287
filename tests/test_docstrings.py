"""Every public class and function has an example in its docstring, and the examples run.

The public names are those of the pages of the Python API, `PAGES` of `docs/_extensions/docstrings.py`. The examples
share these names: `ns`, `np`, `Path`; `world`, the quadrotor of the examples; `run`, one second of it; `result`, a
campaign; `field` (n, 3) T and `rotation_ws` (n, 4), readings of a magnetometer that turns, with its attitudes. The
current folder contains `quadrotor.sdf`, `drive.npz` with those readings, and `calibration.json`.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import navsense as ns
from navsense.campaigns.campaign import make_campaign
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import COMMAND, make_table
from navsense.campaigns.worker import compute_rows
from navsense.runner.run import Run

pytestmark = [pytest.mark.requirement("DOC-1:api"), pytest.mark.compiled]

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


def import_extension() -> Any:
    """The extension of Sphinx that writes the pages of the API. Sphinx itself is not needed for the tests."""
    sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
    try:
        return importlib.import_module("docstrings")
    finally:
        sys.path.pop(0)


pages = import_extension()

FORMAT = "a part of a format of recordings; examples/json_lines.py is a complete one"
PROTOCOL = "a protocol: its members are the text, and the classes of navsense are examples"

WITHOUT_EXAMPLE = {
    "navsense.analysis.theory.NoiseTerm": PROTOCOL,
    "navsense.campaigns.Campaign": "`read_experiment` makes it, and has the example",
    "navsense.campaigns.experiment_file.Experiment": "`read_experiment` returns it",
    "navsense.campaigns.result.FailedRun": "only a campaign with failed runs has one",
    "navsense.core.atomic.HiddenFolder": FORMAT,
    "navsense.core.errors.CompilerError": "needs a broken installation of Numba",
    "navsense.core.errors.describe_damage": "the text of an error inside another error of a damaged recording",
    "navsense.core.errors.DamagedError": "only readers of formats raise it, and `ns.open` turns it into RecordingError",
    "navsense.core.field_metadata.FileField": "`in_file` makes it, and has the example",
    "navsense.core.kernels.kernel": "a decorator; examples/barometric_altimeter.py has a kernel",
    "navsense.core.kernels.strided_kernel": "a decorator, see `kernel`",
    "navsense.demo.DemoFile": "`write_demo` returns it",
    "navsense.demo.write_demo": "takes half a minute; tests/test_demo.py runs it",
    "navsense.environment.base.VectorField": PROTOCOL,
    "navsense.recordings.base.AtomicWriter": FORMAT,
    "navsense.recordings.base.PendingRecording": FORMAT,
    "navsense.recordings.metadata.format_metadata": FORMAT,
    "navsense.recordings.metadata.parse_metadata": FORMAT,
    "navsense.sensors.base.HasCatalogueParts": PROTOCOL,
    "navsense.sensors.base.HasDescription": PROTOCOL,
    "navsense.sensors.base.HasIndirectNoise": PROTOCOL,
    "navsense.sensors.base.HasMaxAge": PROTOCOL,
    "navsense.sensors.base.HasWarnings": PROTOCOL,
    "navsense.sensors.base.SupportsAdjustment": PROTOCOL,
    "navsense.sensors.base.UsesCurrent": PROTOCOL,
    "navsense.sensors.base.UsesRayCasting": PROTOCOL,
    "navsense.sensors.base.UsesSignals": PROTOCOL,
    "navsense.streams.Publisher": "a base class; examples/json_udp.py has a complete publisher",
}
"""Public classes and functions without an example: name on the page -> reason."""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

MODULES = {
    name: importlib.import_module(name)
    for name in sorted({name for _, modules in pages.PAGES.values() for name in modules})
}


def list_public_objects() -> dict[str, Any]:
    """Return the public classes and functions by their names on the pages."""
    found = {}
    for _, modules in pages.PAGES.values():
        for module, names in modules.items():
            for name, member in pages.list_members(MODULES[module], names).items():
                if inspect.isclass(member) or pages.is_function(member):
                    found[f"{module}.{name}"] = member
    return found


PUBLIC = list_public_objects()


def list_tests() -> Iterator[doctest.DocTest]:
    """Yield the examples of each public object, of its methods, and of the public modules."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name, one in PUBLIC.items():
        yield from (test for test in finder.find(one, name, module=False, globs={}) if test.examples)
    parser = doctest.DocTestParser()
    for name, module in MODULES.items():
        test = parser.get_doctest(module.__doc__ or "", {}, name, module.__file__, 0)
        if test.examples:
            yield test


TESTS = {test.name: test for test in list_tests()}


def compute_campaign(world: ns.world.World) -> CampaignResult:
    """Return the result of four runs, computed in this process."""

    def reduce(run: Run) -> dict[str, Any]:
        return {"largest_rate": np.abs(run["imu"]["angular_velocity"]).max()}

    campaign = make_campaign(world, 4, 1.0, reduce=reduce)
    rows = [row for chunk in campaign.list_chunks() for row in compute_rows(campaign, chunk, Path())]
    table = make_table(rows, {}, has_recording=False)
    return CampaignResult(campaign, Path("rates"), table.append_column(COMMAND, pa.nulls(len(table), pa.string())))


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names of the examples, with a run and the readings of a magnetometer."""
    noise = ns.Noise(stddev=15e-9)
    compass = ns.sensors.Magnetometer(noise, noise, noise, hard_iron=(4e-7, -2e-7, 6e-7))
    drive = ns.simulate(ns.testing.example_world(("compass", compass)), 3.0, seed=1)
    world = ns.load(EXAMPLES / "quadrotor.sdf")
    run, result = ns.simulate(world, 1.0, seed=7), compute_campaign(world)
    return {"ns": ns, "np": np, "Path": Path, "world": world, "run": run, "drive": drive, "result": result}


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
    assert PUBLIC.keys() - TESTS.keys() == WITHOUT_EXAMPLE.keys()


def test_every_module_that_navsense_offers_has_a_page() -> None:
    """A page has the name of the module, or of a module in it. `core` is for sensors and formats of your own."""
    offered = {f"navsense.{name}" for name in ns.__all__ if inspect.ismodule(getattr(ns, name))}
    assert {".".join(page.split(".")[:2]) for page in pages.PAGES} == offered | {"navsense", "navsense.core"}


def test_public_names_of_a_module_are_on_its_page() -> None:
    """All names of a module that has `__all__`; a page of several modules documents a name where it is defined."""
    missing = []
    for page, (_, modules) in pages.PAGES.items():
        shown = {id(member) for name in modules for member in pages.list_members(MODULES[name], modules[name]).values()}
        shown |= {id(module) for name, module in MODULES.items() if name in modules}
        package = importlib.import_module(page)
        for name in getattr(package, "__all__", ()) if page != "navsense" else ():
            member = getattr(package, name)
            if not inspect.ismodule(member) and id(member) not in shown:
                missing.append(f"{page}.{name}")
    assert missing == []


def test_classes_in_the_fields_of_a_world_are_on_its_page() -> None:
    """Classes of `navsense.world` that a field of a documented class has, and so on."""
    module = MODULES["navsense.world"]
    shown = pages.list_members(module, pages.PAGES["navsense"][1]["navsense.world"])
    used = {
        word
        for member in shown.values()
        for field in fields(member)
        for word in re.findall(r"\w+", str(field.type))
        if inspect.isclass(vars(module).get(word)) and vars(module)[word].__module__ == module.__name__
    }
    assert used - shown.keys() == set()


def test_names_of_the_index_are_the_pages() -> None:
    index = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert re.findall(r"^api/(.+)$", index, re.MULTILINE) == list(pages.PAGES)


def test_examples_of_docstrings_stay_as_they_are() -> None:
    example = [">>> x = 2 * y_z", "... |a|", "array([[1.],", "       [2.]])"]
    assert pages.format_docstring(["Summary.", "", *example]) == ["Summary.", "", *example, ""]


def test_lists_of_fields_become_lists() -> None:
    lines = ["Summary of a_b.", "", "depth: in *m*, see", "    `Water`.", "x, y: of the point"]
    assert pages.format_docstring(lines) == [
        *("Summary of a_b.", ""),
        *(r"- ``depth``: in \*m\*, see ``Water``.", "- ``x, y``: of the point", ""),
    ]


def test_summary_is_no_list_of_fields() -> None:
    assert pages.format_docstring(["Signal: a function of time."]) == ["Signal: a function of time.", ""]


def test_formulas_and_code_are_literal() -> None:
    """Also a formula without an empty line before it. Words of a formula are no keywords of Python."""
    formula = ["Model:", "", ".. code-block:: text", "", "    a = b * c  for t in [0, 1]", ""]
    assert pages.format_docstring(["Model:", "    a = b * c  for t in [0, 1]"]) == formula
    assert pages.format_docstring(["Model::", "", "    a = b * c  for t in [0, 1]"]) == formula
    code = ["Use:", "", ".. code-block:: python", "", "    from navsense.analysis import allan", ""]
    assert pages.format_docstring(["Use:", "", "    from navsense.analysis import allan"]) == code


def test_tables_become_list_tables() -> None:
    table = ["| kind | effect |", "|---|---|", "| `a` | x * y |"]
    assert pages.format_docstring(table) == [
        *(".. list-table::", "   :header-rows: 1", ""),
        *("   * - kind", "     - effect", "   * - ``a``", r"     - x \* y", ""),
    ]


def test_lists_have_an_empty_line_before_them() -> None:
    assert pages.format_docstring(["Rules:", "- **kwargs are", "  optional", "- `b`"]) == [
        *("Rules:", "", r"- \*\*kwargs are optional", "- ``b``", ""),
    ]


def test_signatures_are_those_that_a_reader_writes() -> None:
    convert = partial(pages.convert_signature, None, "", "")
    signature = (
        "(start: float, signals: ~collections.abc.Mapping[str, Signal] = <factory>, check = <function f.<lambda>>)"
    )
    expected = "(start: float, signals: ~collections.abc.Mapping[str, Signal] = ..., check = ...)"
    assert convert(len, None, signature, "float") == (expected, "float")
    assert convert(len, None, None, None) == (None, None)
    assert convert(ns.motion.Motion, None, "(*args, **kwargs)", None) == ("", None)
