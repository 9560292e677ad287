"""Rules for the source: sizes, annotations, docstrings, layers, and functions that bitwise reproducible code may call.

An exemption is a line in a table below, by name, with its reason. An exemption that is not needed fails the test.
"""

from __future__ import annotations

import ast
import re
import secrets
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = "navsense"

FILE_LINES = 1000
BODY_LINES = 60

LONG_FILES: dict[str, str] = {}
"""Files over the limit: module -> reason."""

LONG_BODIES: dict[str, str] = {}
"""Functions over the limit, such as tables and kernels of one formula: module.qualified_name -> reason."""

KERNEL_ARGUMENTS = 12
"""Maximum number of kernel arguments. More are grouped in a `NamedTuple` of arrays."""

KERNEL_DECORATORS = ("kernel", "inlined_kernel", "strided_kernel")
"""Names of the decorators of kernels."""

LONG_KERNELS: dict[str, str] = {
    "environment.terrain.heightmap._intersect_cell": "called in one place, in the loop over the cells",
    "environment.terrain.scene._merge_hits": "called in one place, by the method that owns the arrays",
    "motion.joints._move_joint": "called in one place, by the method that owns the arrays",
    "motion.derived._transform_block": "called in one place, by the method that owns the arrays",
    "noise.kernels.apply_noise": "called in one place, by the method that owns the arrays",
    "sensors.doppler.ping._apply_track_errors": "called by one kernel, once for each track",
}
"""Kernels over the limit: module.name -> reason."""

LAYERS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("figures", "plots"),
    ("noise",),
    ("faults",),
    ("clock",),
    ("motion",),
    ("environment",),
    ("sensors",),
    ("world",),
    ("fault_file", "parameters", "simulation"),
    ("messages",),
    ("devices",),
    ("recordings",),
    ("streams",),
    ("sdf",),
    ("runner",),
    ("campaigns",),
    ("analysis", "calibration", "description", "factors", "picture", "report", "testing"),
    ("demo", "examples"),
    ("warm",),
    ("",),  # the package itself: the public modules
    ("__main__", "cli"),
)
"""Files and folders from the lowest layer up. Each imports only from its own line and the lines above."""

LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("core.readings", "plots"): "`Reading.plot` draws with matplotlib in the common style",
}
"""Imports inside functions of something above: (module, import) -> reason."""

PRIVATE: dict[tuple[str, str], str] = {}
"""Private files and folders that others import: (module, import) -> reason."""

BITWISE = ("noise", "sensors", "clock", "environment")
"""Layers in which a row must not depend on other rows: NumPy's vector loops differ from its scalar loops."""

PRODUCTS = frozenset("cross dot einsum inner kron linalg matmul outer tensordot vdot convolve correlate".split())
TRANSCENDENTAL = frozenset(
    """
    sin cos tan sinc sinh cosh tanh asin acos atan atan2 asinh acosh atanh
    arcsin arccos arctan arctan2 arcsinh arccosh arctanh hypot cbrt power pow float_power
    exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2
    """.split()
)
UNLIKE_COMPILED = frozenset(("hypot", "gamma", "lgamma"))
"""Functions of `math` whose last bit differs between Numba and the interpreter in 0.3 to 70 % of calls."""

MATRIX_PRODUCTS: dict[str, str] = {}
"""Files of the bitwise layers where `@` is not a matrix product: module -> meaning."""

OPENING = frozenset(
    """
    open os.open io.open np.load np.loadtxt np.genfromtxt np.fromfile np.memmap zipfile.ZipFile sqlite3.connect
    apsw.Connection parquet.read_table parquet.ParquetFile pa.parquet.ParquetFile
    json.load json.loads tomllib.load tomllib.loads pickle.load pickle.loads
    """.split()
)
"""Functions that open a file by its name, or parse user input without a limit on nesting."""

OPENING_METHODS = frozenset(("open", "read_text", "read_bytes"))

OPENERS: dict[tuple[str, str], str] = {
    ("calibration.csv_columns", "np.loadtxt"): "parses lines that `inputs` has read",
    ("campaigns.digest", "file.read_bytes"): "the modules of the package",
    ("campaigns.digest", "target.open"): "files that the world and its motions have read",
    ("campaigns.worker", "os.open"): "the lock of a machine",
    ("core.toml_lines", "tomllib.loads"): "one key of a file that `inputs` has read",
    ("cli.application", "os.open"): "the null device, to write to",
    ("environment.magnetic", "(_DATA / f'{model}.COF').read_text"): "a file of the package",
    ("recordings.currents", "np.load"): "archives need random access; `inputs.check_regular_file` comes before",
    ("recordings.currents", "parquet.read_table"): "random access; `inputs.check_regular_file` comes before",
    ("core.inputs", "open"): "the one function that opens a user's file",
    ("core.inputs", "os.open"): "that function, without waiting",
    ("core.inputs", "json.loads"): "the one function that parses JSON",
    ("core.inputs", "zipfile.ZipFile"): "reads the sizes that an archive declares",
    ("core.inputs", "tomllib.loads"): "the one function that parses TOML",
    ("core.checksum", "Path(path).read_bytes"): "a file of the kernel cache",
    ("core.packaged_kernels", "(folder / MANIFEST).read_text"): "a file of this package",
    ("core.packaged_kernels", "json.loads"): "a file of this package",
    ("core.packaged_kernels", "pickle.loads"): "a file of this package",
    ("core.ziggurat", "(Path(__file__).parent / 'ziggurat.txt').read_text"): "a file of the package",
    ("messages.ros1", "(files('navsense.messages') / 'noetic.json').read_text"): "a file of the package",
    ("messages.ros1", "json.loads"): "that file",
    ("motion.log_table", "np.loadtxt"): "parses lines that `inputs` has read",
    (
        "sdf.urdf.xacro_process",
        "Path(filename).open",
    ): "a program of its own, which imports nothing of navsense; checks as `inputs`",
    ("sdf.urdf.xacro_process", "json.load"): "what navsense asks of that program",
    ("sdf.urdf.xacro", "json.loads"): "the answer of that program",
    ("report.svg_figure", "Path(__file__).with_name('report.css').read_text"): "a file of the package",
    ("recordings.base", "path.open"): "recordings are read by random access; refuses pipes and devices",
    ("core.atomic", "os.open"): "files to lock and to write",
    ("recordings.npz", "np.load"): "reads an open file of `recordings.base.open_for_reading`",
    ("recordings.npz", "np.memmap"): "a temporary file of navsense",
    ("recordings.npz", "self.path.open"): "a temporary file of navsense",
    ("recordings.npz", "archive.open"): "an entry of the archive that is written",
    ("recordings.npz", "zipfile.ZipFile"): "the archive that is written",
    ("recordings.parquet", "pa.parquet.ParquetFile"): "reads an open file of `recordings.base.open_for_reading`",
    ("recordings.rosbag.reader", "Ros1Reader"): "bags are read by random access; `check_bag` comes before",
    ("recordings.rosbag.reader", "Reader"): "bags are read by random access; `check_bag` comes before",
    ("recordings.rosbag.reader", "reader.open"): "that reader",
    ("recordings.csv_tables", "np.loadtxt"): "parses lines that `inputs` has read",
    (
        "recordings.rosbag.recovery",
        "sqlite3.connect",
    ): "the database of a truncated bag; SQLite rolls back what was not committed",
    ("simulation.run_arrays", "Path('/proc/meminfo').open"): "a file of the system",
    ("recordings.rosbag.limits", "zstd.open"): "a file that rosbags has opened; `check_bag` comes before",
}
"""Calls outside `inputs` that open a file for reading: (module, call) -> reason."""

ROSBAGS_FOLDER = "recordings.rosbag."
"""The modules that may import rosbags."""

FOREIGN_WORDS = {
    "an issue's number": r"\bissues?\s+#?\d|\bissue\s*#",
    "a path of one machine": r"(?<![\w.])/(?:work|tmp|root|home)/",
    "a note that is not in the repository": r"\bfacts/\w+\.md|\bDESIGN\.md|\bSTYLE\.md|\bseeds/",
}
REGISTRY = r"pypi\.org|pythonhosted|index-url|find-links|/simple\b|artifactory"


class Module(NamedTuple):
    """One source file: dotted name below the package ("" for the package), text and tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    package: bool


@cache
def list_modules() -> tuple[Module, ...]:
    found = []
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = list(path.relative_to(SOURCE / PACKAGE).with_suffix("").parts)
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, path, text, ast.parse(text, filename=str(path)), package))
    return tuple(found)


def list_functions(module: Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the qualified name and node of every function, including methods and inner functions."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{child.name}", child
                yield from visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                yield from visit(child, f"{prefix}{child.name}.")
            else:
                yield from visit(child, prefix)

    return visit(module.tree, f"{module.name}.")


def count_body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1 if body else 0


def list_imports(module: Module) -> Iterator[tuple[str, int]]:
    """Yield (dotted name below the package, line) of all imports from the package, including those in functions."""
    names = {other.name for other in list_modules()}
    here = module.name.split(".") if module.name else []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield alias.name.removeprefix(PACKAGE).removeprefix("."), node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = here[: len(here) - node.level + module.package]
                origin = ".".join([*base, *(node.module.split(".") if node.module else [])])
            elif (node.module or "").split(".")[0] == PACKAGE:
                origin = (node.module or "").removeprefix(PACKAGE).removeprefix(".")
            else:
                continue
            for alias in node.names:
                inner = f"{origin}.{alias.name}".removeprefix(".")
                yield (inner if inner in names else origin), node.lineno


def find_layer(name: str) -> int | None:
    """Return the index of a module's file or folder in `LAYERS`."""
    head = name.partition(".")[0]
    return next((rank for rank, heads in enumerate(LAYERS) if head in heads), None)


def find_private_imports(module: str, package: bool, named: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield (private package or file, line) of imports that are private to a folder outside the module's own."""
    folder = module if package else module.rpartition(".")[0]
    for name, line in named:
        parts = name.split(".")
        for depth, part in enumerate(parts):
            owner = ".".join(parts[:depth])
            if depth and part.startswith("_") and not f"{folder}.".startswith(f"{owner}."):
                yield f"{owner}.{part}", line


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the cycles of a depth-first search, each from its first member on."""
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append([*path[path.index(name) :], name])
            return
        if name in done:
            return
        for following in sorted(graph.get(name, ())):
            visit(following, [*path, name])
        done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return found


def list_import_time_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, without those for type checkers."""
    queue: list[ast.stmt] = list(tree.body)
    while queue:
        statement = queue.pop()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            queue.extend(statement.orelse)
            continue
        yield statement
        queue.extend(child for child in ast.walk(statement) if isinstance(child, ast.stmt) and child is not statement)


def find_unrepeatable_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, call) for products and transcendental functions of arrays."""
    aliases = {"numpy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {a.asname or a.name for a in node.names if a.name == "numpy"}
            yield from ((node.lineno, a.name) for a in node.names if a.name in ("numpy.linalg", "scipy.linalg"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("numpy", "scipy")):
            for alias in node.names:
                if "linalg" in (node.module or "") or alias.name in PRODUCTS | TRANSCENDENTAL:
                    yield node.lineno, f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.Attribute):
            of_numpy = isinstance(node.value, ast.Name) and node.value.id in aliases
            if of_numpy and node.attr in PRODUCTS | TRANSCENDENTAL:
                yield node.lineno, f"numpy.{node.attr}"
            elif not of_numpy and node.attr == "dot":
                yield node.lineno, ".dot"
        elif isinstance(node, ast.FunctionDef) and any(
            ast.unparse(decorator).partition("(")[0] in KERNEL_DECORATORS for decorator in node.decorator_list
        ):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and inner.attr in UNLIKE_COMPILED:
                    yield inner.lineno, f"{ast.unparse(inner)} in a kernel"


def list_project_files() -> list[Path]:
    """Return the files that git tracks. A checkout also contains logs with paths of the machine."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs the repository, to tell its files from others")
    listing = [git, "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(listing, capture_output=True, check=True, text=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


def read_text(path: Path) -> str:
    """Return a file's text, empty if it is not a text file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def find_default_tolerances(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, call) for comparisons of numbers with a default tolerance of NumPy or pytest.

    `np.allclose` accepts zero for 1e-9 because of its default `atol`, and 1.000009 for 1 because of its default `rtol`.
    `pytest.approx` accepts zero for 1e-13 because of its default `abs`; with `abs` alone it has no relative tolerance.
    `math.isclose` has no absolute tolerance by default.
    """
    both = (("rtol", 3), ("atol", 4))
    needed = {"allclose": both, "isclose": both, "assert_allclose": both, "approx": (("abs", 3),)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).startswith("math."):
            continue
        named = {word.arg for word in node.keywords}
        tolerances = needed.get(ast.unparse(node.func).rpartition(".")[2], ())
        if any(name not in named and len(node.args) < count for name, count in tolerances):
            yield node.lineno, ast.unparse(node)


def format_problems(problems: list[str]) -> str:
    return "\n" + "\n".join(problems)


def test_source_files_are_found() -> None:
    assert {"", "core.errors", "core.pose"} <= {module.name for module in list_modules()}


def test_no_file_is_too_long() -> None:
    long = {module.name: module.text.count("\n") for module in list_modules() if module.text.count("\n") > FILE_LINES}
    problems = [f"{name}: {count} lines" for name, count in long.items() if name not in LONG_FILES]
    problems += [f"{name}: exempt without need" for name in LONG_FILES if name not in long]
    assert not problems, format_problems(problems)


def test_no_body_is_too_long() -> None:
    lengths = {name: count_body_lines(node) for module in list_modules() for name, node in list_functions(module)}
    long = {name for name, count in lengths.items() if count > BODY_LINES}
    problems = [f"{name}: {lengths[name]} lines" for name in sorted(long - set(LONG_BODIES))]
    problems += [f"{name}: exempt without need" for name in sorted(set(LONG_BODIES) - long)]
    assert not problems, format_problems(problems)


def test_annotations_are_complete() -> None:
    problems = []
    for module in list_modules():
        for name, node in list_functions(module):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
            bare = [a.arg for a in [*named, *rest] if a.annotation is None and a.arg not in ("self", "cls")]
            if bare or node.returns is None:
                problems.append(f"{name} line {node.lineno}: {', '.join(bare) or 'the return value'}")
    assert not problems, format_problems(problems)


def test_every_public_name_has_a_docstring() -> None:
    problems = []
    for module in list_modules():
        if module.text.strip() and ast.get_docstring(module.tree) is None:
            problems.append(f"{module.path.name} of {module.name or PACKAGE}")
        queue: list[tuple[str, ast.stmt]] = [(module.name, statement) for statement in module.tree.body]
        while queue:
            prefix, node = queue.pop()
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("_") and not node.name.endswith("__"):
                continue
            if ast.get_docstring(node) is None and "overload" not in map(ast.unparse, node.decorator_list):
                problems.append(f"{prefix}.{node.name} line {node.lineno}")
            if isinstance(node, ast.ClassDef):
                queue.extend((f"{prefix}.{node.name}", inner) for inner in node.body)
    assert not problems, format_problems(problems)


def test_imports_respect_the_layers() -> None:
    problems = []
    for module in list_modules():
        level = find_layer(module.name)
        if level is None:
            problems.append(f"{module.name} has no place in LAYERS")
            continue
        for name, line in list_imports(module):
            other = find_layer(name)
            if (other is None or other > level) and (module.name, name) not in LAZY_IMPORTS:
                problems.append(f"{module.name or PACKAGE} line {line} imports {name or PACKAGE} from above")
    assert not problems, format_problems(problems)


def test_private_modules_are_imported_only_in_their_folder() -> None:
    found = {
        (m.name, name): line
        for m in list_modules()
        for name, line in find_private_imports(m.name, m.package, list_imports(m))
    }
    problems = [f"{module} line {line} imports {name}" for (module, name), line in found.items()]
    problems = [text for text, key in zip(problems, found, strict=True) if key not in PRIVATE]
    problems += [f"{module}: exempt without need" for module, name in PRIVATE if (module, name) not in found]
    assert not problems, format_problems(problems)


def test_imports_of_private_modules_are_found() -> None:
    named = [("sensors._low_pass.filter", 1), ("recordings.base", 2), ("_tables", 3)]
    assert list(find_private_imports("recordings.reading_assembler", False, named)) == [("sensors._low_pass", 1)]
    assert not list(find_private_imports("sensors.dvl", False, named))
    assert not list(find_private_imports("sensors", True, named))


def test_imports_have_no_cycle() -> None:
    graph = {module.name: {name for name, _ in list_imports(module)} for module in list_modules()}
    assert not find_cycles(graph), format_problems([" -> ".join(cycle) for cycle in find_cycles(graph)])


def test_cycles_are_found() -> None:
    assert find_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c", "a"]]
    assert not find_cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_bitwise_layers_call_no_unrepeatable_function() -> None:
    problems = []
    for module in list_modules():
        if module.name.split(".")[0] not in BITWISE:
            continue
        for line, call in find_unrepeatable_calls(module.tree):
            if call == "@" and module.name in MATRIX_PRODUCTS:
                continue
            problems.append(f"{module.name} line {line}: {call}; write a scalar loop with math.*")
    assert not problems, format_problems(problems)


@pytest.mark.parametrize(
    "text",
    [
        "import numpy as np\nnp.exp(x)",
        "import numpy\nnumpy.linalg.inv(x)",
        "from numpy import einsum",
        "from numpy.linalg import inv",
        "import numpy.linalg",
        "a @ b",
        "a @= b",
        "a.dot(b)",
        "@kernel\ndef f(x):\n    return math.hypot(x, 1.0)",
    ],
)
def test_unrepeatable_calls_are_found(text: str) -> None:
    assert list(find_unrepeatable_calls(ast.parse(text)))


def test_exact_calls_are_allowed() -> None:
    assert not list(
        find_unrepeatable_calls(ast.parse("import numpy as np\nimport math\nnp.sqrt(x) + math.sin(y) * np.abs(z)"))
    )


def is_attribute_probe(name: str, call: ast.Call) -> bool:
    """True if a call of the builtin `name` tests for an optional attribute."""
    return name == "hasattr" or (name == "getattr" and len(call.args) > 2)


def test_optional_attributes_are_declared_by_types() -> None:
    """Optional abilities of a sensor or a module are a protocol or a table, not an attribute that code probes."""
    calls = [(m.name, node) for m in list_modules() for node in ast.walk(m.tree) if isinstance(node, ast.Call)]
    tried = [
        (name, node)
        for name, node in calls
        if isinstance(node.func, ast.Name) and is_attribute_probe(node.func.id, node)
    ]
    problems = [f"{name}:{node.lineno} {ast.unparse(node)}" for name, node in tried]
    assert not problems, format_problems(problems)


def find_opening_calls(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the calls that open a file for reading, and their lines."""
    readers = {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rosbags")
        for alias in node.names
        if alias.name.endswith("Reader")
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in OPENING_METHODS
        if name.endswith(("_writer.open", "_bag.open")) or name in (
            "recordings.open",
            "recordings.open_writer",
            "inputs.read_bytes",
        ):
            continue  # writes a file, or is the function for user files
        if name in OPENING or name in readers or is_method:
            mode = next((arg for arg in node.args[:1] if is_method), None)
            modes = [node.value for node in ast.walk(mode) if isinstance(node, ast.Constant)] if mode else []
            if not any(isinstance(mode, str) and set(mode) & set("wax") for mode in modes):
                yield name, node.lineno


def test_user_files_are_opened_in_one_module() -> None:
    """A user's file can be an endless pipe or have unlimited nesting: `inputs` has the limits."""
    found = [(module.name, *call) for module in list_modules() for call in find_opening_calls(module)]
    problems = [f"{name}:{line} {call}" for name, call, line in found if (name, call) not in OPENERS]
    problems += [
        f"{key} is no longer needed" for key in OPENERS if key not in {(name, call) for name, call, _ in found}
    ]
    assert not problems, format_problems(problems)


@pytest.mark.parametrize(
    "text",
    ["open(name)", "path.open('rb')", "path.read_text()", "tomllib.loads(text)", "np.load(name)"]
    + ["from rosbags.rosbag1 import Reader as Old\nOld(path)"],
)
def test_calls_that_open_files_are_found(text: str) -> None:
    assert list(find_opening_calls(Module("x", Path(), text, ast.parse(text), package=False)))
    assert not list(find_opening_calls(Module("x", Path(), "", ast.parse("path.open('xb')"), package=False)))


REPLACING = frozenset("os.replace os.rename os.renames shutil.move secrets.token_hex uuid.uuid4".split())
"""Functions that rename files or create names of temporary files."""


REPLACERS = {
    ("warm.kernel_runs", "tempfile.TemporaryDirectory"): "recordings that are deleted at the end",
}
"""Such calls outside `atomic`: (module, call) -> reason."""


def find_replacing_calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the calls that rename files or create temporary files, and their lines."""
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name, attribute = ast.unparse(node.func), node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_path = attribute in ("replace", "rename") and len(node.args) == 1 and not node.keywords
        if name in REPLACING or name.startswith("tempfile.") or is_path:
            yield name, node.lineno


def test_kernels_take_few_arguments() -> None:
    counts = {
        name: len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        for module in list_modules()
        for name, node in list_functions(module)
        if any(ast.unparse(decorator).partition("(")[0] in KERNEL_DECORATORS for decorator in node.decorator_list)
    }
    assert len(counts) > 100
    assert {name for name, count in counts.items() if count > KERNEL_ARGUMENTS} == LONG_KERNELS.keys()


def test_files_are_replaced_in_one_module() -> None:
    """`atomic` locks the files that it replaces, and `navsense recover` finds its temporary files."""
    found = [(module.name, *call) for module in list_modules() for call in find_replacing_calls(module.tree)]
    problems = [f"{name}:{line} {call}" for name, call, line in found if (name, call) not in REPLACERS]
    problems = [text for text in problems if not text.startswith("core.atomic:")]
    problems += [f"{key} is no longer needed" for key in REPLACERS if key not in {key[:2] for key in found}]
    assert not problems, format_problems(problems)
    assert found


@pytest.mark.parametrize(
    "text", ["part.replace(path)", "path.rename(other)", "os.replace(a, b)", "tempfile.mkdtemp()", "shutil.move(a, b)"]
)
def test_calls_that_replace_files_are_found(text: str) -> None:
    assert list(find_replacing_calls(ast.parse(text)))
    assert not list(find_replacing_calls(ast.parse("text.replace('a', 'b'); replace(reading, epoch=1)")))


def test_heavy_libraries_are_imported_lazily() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    heavy = tuple(settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"])
    problems = []
    for module in list_modules():
        for statement in list_import_time_statements(module.tree):
            names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
            if isinstance(statement, ast.ImportFrom) and not statement.level:
                names = [statement.module or ""]
            problems += [
                f"{module.name} line {statement.lineno}: {name}"
                for name in names
                if any(name == banned or name.startswith(f"{banned}.") for banned in heavy)
            ]
    assert not problems, format_problems(problems)


def test_rosbags_is_imported_in_one_folder() -> None:
    """The package has one reader and one writer of bags."""
    problems = []
    for module in list_modules():
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.split(".")[0] == "rosbags" for name in names) and not module.name.startswith(ROSBAGS_FOLDER):
                problems.append(f"{module.name} imports rosbags")
    assert not problems, format_problems(problems)


def test_comparisons_name_their_tolerances() -> None:
    problems = []
    for path in list_project_files():
        if path.suffix == ".py":
            found = find_default_tolerances(ast.parse(read_text(path)))
            problems += [f"{path.relative_to(ROOT)}:{line} {call[:80]}" for line, call in found]
    assert not problems, format_problems(problems)


@pytest.mark.parametrize(
    ("call", "passes"),
    [
        ("np.allclose(a, b)", False),
        ("np.allclose(a, b, rtol=1e-9)", False),
        ("np.allclose(a, b, atol=1e-9)", False),
        ("np.isclose(a, b, rtol=1e-9)", False),
        ("numpy.testing.assert_allclose(a, b, 1e-9)", False),
        ("a == pytest.approx(b)", False),
        ("a == pytest.approx(b, 1e-9)", False),
        ("a == approx(b, rel=1e-9)", False),
        ("np.allclose(a, b, rtol=1e-9, atol=0.0)", True),
        ("np.testing.assert_allclose(a, b, 1e-9, 0.0)", True),
        ("a == pytest.approx(b, rel=1e-9, abs=0.0)", True),
        ("a == pytest.approx(b, abs=1e-9)", True),
        ("math.isclose(a, b)", True),
    ],
)
def test_default_tolerances_are_found(call: str, *, passes: bool) -> None:
    assert (list(find_default_tolerances(ast.parse(call))) == []) == passes


def test_no_file_names_its_development_environment() -> None:
    problems = []
    for path in list_project_files():
        if path == Path(__file__).resolve():
            continue
        for number, line in enumerate(read_text(path).splitlines(), 1):
            problems += [
                f"{path.relative_to(ROOT)}:{number} {meaning}: {line.strip()[:80]}"
                for meaning, pattern in FOREIGN_WORDS.items()
                if re.search(pattern, line)
            ]
    assert not problems, format_problems(problems)


def test_log_in_the_checkout_is_not_checked() -> None:
    stray = ROOT / f"stray-{secrets.token_hex(6)}.md"
    try:
        stray.write_text("see /tmp/here\n", encoding="utf-8")
        assert stray not in list_project_files()
    finally:
        stray.unlink()


def test_no_registry_is_named() -> None:
    problems = []
    for path in list_project_files():
        if path.suffix == ".md" or path.name in ("constraints.txt", "pyproject.toml", "Makefile", "run"):
            problems += [str(path.relative_to(ROOT))] if re.search(REGISTRY, read_text(path)) else []
    assert not problems, format_problems(problems)


def test_constraints_contain_only_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    names = [line.partition("==")[0] for line in pinned]
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9A-Za-z.]*", line) for line in pinned)


UNIT_SIZES = frozenset((9.80665, 1852.0, 0.3048, 1.8288))
"""Sizes of units in SI that `core.units` alone defines: standard gravity, nautical mile, foot, fathom."""


def test_one_module_defines_the_sizes_of_units() -> None:
    owners = {
        path.relative_to(SOURCE / PACKAGE).as_posix()
        for path in sorted((SOURCE / PACKAGE).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in UNIT_SIZES
    }
    assert owners == {"core/units.py"}
