"""Sphinx extension: writes the pages of the Python API, and turns the docstrings of navsense into reStructuredText.

The docstrings have single backquotes for code, lists of fields as `name: text`, indented formulas, and Markdown tables.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the tests use this module without Sphinx
    from sphinx.application import Sphinx

TYPE_ALIASES = (
    *("Times", "Vectors", "Quaternions", "Vector", "Quaternion"),
    *("FloatArray", "IntArray", "UInt64Array", "BoolArray", "ByteArray", "AnyArray"),
)
"""Aliases of arrays in `navsense.core.typing`, which signatures show by name."""

PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "navsense": (
        "Worlds and runs",
        {
            "navsense": "",
            "navsense.world": (
                "World Model Link Joint Mimic Solid MountedSensor OpticalFrame Switch Note CurrentTopic LayersTopic"
            ),
            "navsense.runner.run": "Run RecordResult",
            "navsense.simulation.live_run": "LiveRun Step LiveSensor LiveClock",
        },
    ),
    "navsense.sensors": (
        "Sensors",
        {
            "navsense.sensors": "",
            "navsense.sensors.catalogue": "list_parts load_part read_part Part DatasheetEntry DatasheetSource",
        },
    ),
    "navsense.noise": (
        "Noise",
        {
            "navsense.noise.specification": "Noise",
            "navsense.noise.channels": "NoiseChannels",
            "navsense.noise.terms": "-",
        },
    ),
    "navsense.clock": ("Clocks", {"navsense.clock": ""}),
    "navsense.faults": (
        "Faults",
        {"navsense.faults.injection": "Faults", "navsense.faults.schedule": "ScheduledFault FaultSchedule"},
    ),
    "navsense.motion": ("Motion", {"navsense.motion": "", "navsense.core.pose": "from_rpy"}),
    "navsense.environment": (
        "Environment",
        {
            "navsense.environment.base": "Environment VectorField UniformField FieldSum",
            "navsense.core.geodesy": "Origin",
            "navsense.environment.geoid": "Geoid",
            "navsense.environment.gravity": "NormalGravity",
            "navsense.environment.magnetic": "WorldMagneticModel Dipole Anomaly",
            "navsense.environment.atmosphere": "Atmosphere",
            "navsense.environment.water": "Water",
            "navsense.environment.seawater": "Unesco Saunders ConstantDensity",
            "navsense.environment.signal": "Signal",
            "navsense.environment.current": "-",
            "navsense.environment.current.stratified": (
                "StratifiedCurrent StratifiedGaussMarkovCurrent DepthScaledCurrent BoundaryLayer"
            ),
            "navsense.environment.current.tidal": (
                "TidalCurrent TidalEllipses TidalEllipse TidalConstituent HarmonicFlow TideTable"
            ),
            "navsense.environment.current.gauss_markov": "GaussMarkovCurrent GaussMarkovProcess UuvGaussMarkovProcess",
            "navsense.environment.current.gridded": "GriddedCurrent",
            "navsense.environment.current.replay": "CurrentReplay",
            "navsense.environment.terrain.scene": "Scene Body RayHits",
            "navsense.environment.terrain.primitives": "Plane Box Sphere Cylinder Capsule Ellipsoid",
            "navsense.environment.terrain.heightmap": "Heightmap",
            "navsense.environment.terrain.mesh": "Mesh",
        },
    ),
    "navsense.recordings": (
        "Recordings",
        {
            "navsense.recordings": "",
            "navsense.recordings.convert": "convert ConversionResult",
            "navsense.recordings.currents": "read_current",
        },
    ),
    "navsense.devices": (
        "Device formats",
        {
            "navsense.devices": "-",
            "navsense.devices.pd0": "encode decode encode_rtc decode_stamps DecodedPd0 EnsembleBlock",
        },
    ),
    "navsense.streams": ("Streams", {"navsense.streams": ""}),
    "navsense.calibration": ("Calibration", {"navsense.calibration": ""}),
    "navsense.factors": ("Factors", {"navsense.factors": ""}),
    "navsense.factors.blocks": ("Factors in batches", {"navsense.factors.blocks": ""}),
    "navsense.analysis": (
        "Analysis",
        {
            "navsense.analysis.allan": "adev oadev mdev tdev hdev ohdev totdev AllanStatistic AllanCurve",
            "navsense.analysis.fit": "fit NoiseFit FittedParameter",
            "navsense.analysis.densities": "welch Spectrum",
            "navsense.analysis.theory": "",
            "navsense.analysis.monte_carlo": "",
        },
    ),
    "navsense.campaigns": (
        "Campaigns",
        {
            "navsense.campaigns": "",
            "navsense.campaigns.result": "FailedRun",
            "navsense.campaigns.experiment_file": "Experiment",
            "navsense.examples.dead_reckoning": "-",
        },
    ),
    "navsense.parameters": ("Parameters", {"navsense.parameters": "list_parameters list_part_paths format_value"}),
    "navsense.report": ("Report", {"navsense.report": ""}),
    "navsense.picture": ("Pictures", {"navsense.picture": ""}),
    "navsense.demo": ("Demo", {"navsense.demo": ""}),
    "navsense.testing": ("Testing", {"navsense.testing": ""}),
    "navsense.core": (
        "Building blocks",
        {
            "navsense.core.kernels": "kernel strided_kernel",
            "navsense.core.readings": "TimeSlice",
            "navsense.core.ticks": "Ticks",
            "navsense.core.random_streams": "RandomProcess",
            "navsense.core.field_metadata": "in_file FileField NON_NEGATIVE NOT_IN_FILE",
            "navsense.core.validation": "validate_types check_number check_numbers",
            "navsense.recordings.type_tags": "register_type",
            "navsense.sensors.base": (
                "SupportsAdjustment UsesSignals HasIndirectNoise HasDescription HasWarnings UsesRayCasting UsesCurrent "
                "HasMaxAge HasCatalogueParts"
            ),
            "navsense.recordings.metadata": "format_metadata parse_metadata",
            "navsense.recordings.base": "AtomicWriter PendingRecording",
            "navsense.core.atomic": "HiddenFolder",
            "navsense.core.typing": " ".join(TYPE_ALIASES),
        },
    ),
    "navsense.core.errors": ("Errors", {"navsense.core.errors": ""}),
}
"""Page -> its title, and the names of each of its modules. Empty: all public names; "-": only the text of a module.

`tests/test_docstrings.py` runs the examples of these names.
"""

FIELD = re.compile(r"((?:`?[A-Za-z_][\w.]*(?:\[\w+\])?`?)(?:, `?_?[A-Za-z_][\w.]*`?)*): (\S.*)")
CODE = re.compile(r"(``.+?``|`[^`]+`)")


def format_inline(text: str) -> str:
    """Return a line of a docstring with its code marked, and other special characters escaped."""
    parts = CODE.split(text)
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = part if part.startswith("``") else f"`{part}`"
        else:
            parts[index] = re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
    return "".join(parts)


def split_fields(lines: list[str]) -> list[tuple[str, list[str]]] | None:
    """Return the names and texts of a paragraph that is a list of fields; None for other paragraphs."""
    fields: list[tuple[str, list[str]]] = []
    for line in lines:
        found = FIELD.fullmatch(line)
        if found is not None:
            fields.append((found[1].replace("`", ""), [found[2]]))
        elif fields:
            fields[-1][1].append(line.strip())
        else:
            return None
    return fields


def format_table(lines: list[str]) -> Iterator[str]:
    """Yield a Markdown table as a list table."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<=\s)\|(?=\s)", line.strip()[1:-1])]
        for line in lines
        if "---" not in line
    ]
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in rows:
        for number, cell in enumerate(row):
            yield f"   {'  ' if number else '* '}- {format_inline(cell)}".rstrip()
    yield ""


def format_list(lines: list[str]) -> Iterator[str]:
    """Yield a list, with a paragraph before it."""
    items: list[str] = []
    for line in lines:
        if re.match(r"(-|\d+\.) ", line):
            if not items or not re.match(r"(-|\d+\.) ", items[0]):
                yield from items
                yield ""
                items = []
            items.append(format_inline(line))
        elif items and re.match(r"(-|\d+\.) ", items[0]):
            items[-1] += " " + format_inline(line.strip())
        else:
            items.append(format_inline(line))
    yield from items
    yield ""


def is_python(lines: list[str]) -> bool:
    """Return True for code: a formula with other signs has no keywords to colour."""
    try:
        ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:
        return False
    return True


def format_paragraph(lines: list[str], *, is_summary: bool = False) -> Iterator[str]:
    """Yield a paragraph of a docstring as reStructuredText. The first one, the summary, is no list of fields."""
    if lines[0].startswith(">>> "):  # an example stays as it is
        yield from lines
        yield ""
    elif all(line.startswith("    ") for line in lines):
        yield f".. code-block:: {'python' if is_python(lines) else 'text'}"
        yield ""
        yield from lines
        yield ""
    elif all(line.startswith("|") for line in lines):
        yield from format_table(lines)
    elif not is_summary and (fields := split_fields(lines)) is not None:
        for name, text in fields:
            yield f"- ``{name}``: {format_inline(' '.join(text))}"
        yield ""
    elif any(re.match(r"(-|\d+\.) ", line) for line in lines):
        yield from format_list(lines)
    else:
        yield from (format_inline(line.strip()) for line in lines)
        yield ""


def format_docstring(lines: list[str]) -> list[str]:
    """Return a docstring as reStructuredText."""
    result: list[str] = []
    paragraph: list[str] = []
    for line in [*lines, ""]:
        indented = line.startswith("    ") and bool(line.strip())
        is_text = bool(paragraph) and not paragraph[0].startswith(("    ", ">>> "))
        if is_text and indented and paragraph[-1].endswith(":"):
            result.extend(
                format_paragraph(paragraph, is_summary=not result)
            )  # a formula without an empty line before it
            paragraph = []
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            if paragraph[-1].endswith("::"):
                paragraph[-1] = paragraph[-1][:-1]
            result.extend(format_paragraph(paragraph, is_summary=not result))
            paragraph = []
    return result


def convert_docstring(_app: Sphinx, _kind: str, _name: str, _member: Any, _options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring (event `autodoc-process-docstring`)."""
    lines[:] = format_docstring(lines)


def convert_signature(
    _app: Sphinx, _kind: str, _name: str, member: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return arguments and result of a signature as a reader writes them (event `autodoc-process-signature`).

    A default such as `<factory>` or `<function format_key>` is `...`: Sphinx does not parse it. A protocol has no
    arguments.
    """
    if getattr(member, "_is_protocol", False):
        return "", None
    return signature and re.sub(r"= <(function )?[\w.<>]+>", "= ...", signature), returned


def list_public_names(module: Any) -> list[str]:
    """Return the public names of a module: those of `__all__`, else those that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    members = inspect.getmembers(module, lambda member: inspect.isclass(member) or inspect.isfunction(member))
    return [name for name, member in members if not name.startswith("_") and member.__module__ == module.__name__]


def list_members(module: Any, names: str) -> dict[str, Any]:
    """Return the members of a module on a page by name. `names` is that of `PAGES`."""
    members = {text: getattr(module, text) for text in names.split() or list_public_names(module) if text != "-"}
    return {name: member for name, member in members.items() if not inspect.ismodule(member)}


def is_function(member: Any) -> bool:
    """Return True for a function, and for a kernel."""
    return inspect.isfunction(member) or inspect.isfunction(getattr(member, "py_func", None))


def format_module(name: str, names: str) -> Iterator[str]:
    """Yield the text of a module and its members, the functions first."""
    module = importlib.import_module(name)
    yield from (f".. automodule:: {name}", "   :no-members:", "")
    for member_name, member in sorted(list_members(module, names).items(), key=lambda item: not is_function(item[1])):
        kind = "class" if inspect.isclass(member) else "function" if is_function(member) else "data"
        yield f".. auto{kind}:: {name}.{member_name}"
        yield from {"class": ["   :members:"], "function": [], "data": ["   :no-value:"]}[kind]
        yield ""


def format_page(title: str, modules: dict[str, str]) -> str:
    """Return a page; a page of several modules has a section for each."""
    lines = [title, "=" * len(title), ""]
    for name, names in modules.items():
        if len(modules) > 1:
            lines += [name, "-" * len(name), ""]
        lines += format_module(name, names)
    return "\n".join(lines) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write a page for each public module (event `builder-inited`)."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    for name, (title, modules) in PAGES.items():
        path, text = folder / f"{name}.rst", format_page(title, modules)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension."""
    from sphinx.util.inspect import TypeAliasForwardRef

    # In unions and tuples, Sphinx shows the `repr` of an alias.
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # type: ignore[method-assign]
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("autodoc-process-signature", convert_signature)
    return {"parallel_read_safe": True}
