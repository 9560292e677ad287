"""Experiment files: a campaign as TOML. docs/reference/experiment-files.md has all keys.

    world = "survey.sdf"
    runs = 64
    duration = 600.0                       # s
    reduce = "dead_reckoning.py:reduce"    # FILE:FUNCTION, or MODULE:FUNCTION

    [sweep]                                # a grid; [[sweep]] is one point of a list
    "dvl.misalignment_stddev" = [0.0, 0.005]

Files are relative to the folder of the experiment file. An experiment file runs code: that of `reduce`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from navsense.campaigns.campaign import Campaign, Reduce, check_recordings, make_campaign
from navsense.campaigns.command import FAULTS, ShellCommand, is_motion_path, make_absolute, make_shell_command
from navsense.campaigns.digest import search_folders
from navsense.campaigns.report_columns import ReportColumns, find_declared_noise
from navsense.campaigns.sweep import Point, check_paths, combine_points, latin_hypercube, make_points
from navsense.core import inputs
from navsense.core.errors import NavsenseError, SimulationError, Where
from navsense.core.inputs import FileKind
from navsense.core.names import suggest_name
from navsense.core.random_streams import check_seed
from navsense.core.ticks import check_rate
from navsense.core.toml_lines import KeyPath, read_toml_lines
from navsense.fault_file import with_faults
from navsense.motion.base import Motion
from navsense.parameters import order_parameters, with_parameters
from navsense.runner.motion_sources import load_joints, load_motions
from navsense.runner.run import check_run_numbers
from navsense.simulation.fidelity import check_fidelity
from navsense.simulation.session import TRUTH_RATE, check_duration, check_epoch
from navsense.world import World

_EXPERIMENT_FILE = FileKind("experiment file", SimulationError, "must be a file of TOML")

MAX_DOF = 10**9
"""Largest number of degrees of freedom: that of `navsense.analysis.monte_carlo`."""

NUMBERS, TEXT, TEXTS = "a number", "a string", "a list of strings"

KEYS: Mapping[str, str] = {
    "world": TEXT,
    "runs": "an integer or a list of integers",
    "duration": NUMBERS,
    "reduce": TEXT,
    "out": TEXT,
    "seed": "an integer",
    "epoch": "an integer",
    "truth_rate": NUMBERS,
    "fidelity": TEXT,
    "recordings": TEXT,
    "motion": "a string or a table",
    "joints": TEXTS,
    "faults": TEXT,
    "load": "a table",
    "parameters": "a table",
    "sweep": "a table or an array of tables",
    "latin_hypercube": "a table",
    "report": "a table",
}
"""Keys of an experiment file, and what their values are."""

LOAD_KEYS: Mapping[str, str] = {
    "path": TEXTS,
    "xacro": "a table",
    "expand_xacro": "true or false",
    "skip_missing": "true or false",
    "namespace": TEXT,
}
"""Keys of the table `load`: the options of `navsense run` for reading a world."""

HYPERCUBE_KEYS: Mapping[str, str] = {
    "samples": "an integer",
    "seed": "an integer",
    "ranges": "a table",
    "logarithmic": TEXTS,
}
"""Keys of the table `latin_hypercube`."""

REPORT_KEYS: Mapping[str, str] = {
    "time": TEXT,
    "errors": TEXTS,
    "deviations": "a table",
    "nees": "a table",
    "nis": "a table",
    "tau": TEXT,
    "allan": "a table",
    "declared": "a table",
    "units": "a table",
    "axes": "a table",
}
"""Keys of the table `report`: the columns of `reduce` that the report shows, with their units and axes."""

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    NUMBERS: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    TEXT: lambda value: isinstance(value, str),
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(part, str) for part in value),
    "an integer": lambda value: type(value) is int,
    "an integer or a list of integers": lambda value: all(
        type(part) is int for part in (value if isinstance(value, list) else [value])
    ),
    "true or false": lambda value: isinstance(value, bool),
    "a table": lambda value: isinstance(value, dict),
    "a string or a table": lambda value: isinstance(value, str | dict),
    "a table or an array of tables": lambda value: (
        isinstance(value, dict) or (isinstance(value, list) and all(isinstance(part, dict) for part in value))
    ),
}
"""Checks of the values."""

_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "runs": check_run_numbers,
    "duration": check_duration,
    "seed": check_seed,
    "epoch": check_epoch,
    "truth_rate": partial(check_rate, what="truth_rate"),
    "fidelity": check_fidelity,
}
"""Checks of the keys that are arguments of `simulate`."""


@dataclass(frozen=True)
class Experiment:
    """An experiment file: its campaign, the folder of the results `out`, and the columns of its report.

    folders: where workers search the modules of `reduce`.
    """

    campaign: Campaign
    out: str
    report: ReportColumns
    folders: tuple[str, ...] = ()


class _File:
    """The keys of an experiment file with their lines."""

    def __init__(self, path: str) -> None:
        """Read the file. Raises `SimulationError`."""
        self.path = path
        self.tables, self._lines = read_toml_lines(path, _EXPERIMENT_FILE)

    def locate(self, *key: str | int) -> Where:
        """Return the place of a key, or of the table that it is in."""
        for length in range(len(key), 0, -1):
            lines = [line for names, line in self._lines.items() if names[:length] == key[:length]]
            if lines:
                return Where(self.path, min(lines))
        return Where(self.path)

    def make_error(self, key: KeyPath, value: object, allowed: str, remedy: str = "") -> SimulationError:
        """Return the error of a key."""
        name = ".".join(map(str, key))
        return SimulationError(name, value, allowed=allowed, remedy=remedy, where=self.locate(*key))

    def check_keys(self, table: Mapping[str, Any], keys: Mapping[str, str], *parents: str) -> None:
        """Raise `SimulationError` for an unknown key, and for a value of another type."""
        for key, value in table.items():
            if key not in keys:
                allowed = f"is unknown; must be one of {', '.join(keys)}"
                error = self.make_error((*parents, key), None, allowed, suggest_name(key, keys))
                raise error
            if not _TYPES[keys[key]](value):
                raise self.make_error((*parents, key), value, f"must be {keys[key]}")

    @contextmanager
    def add_place(self, *key: str | int, tables: Sequence[str] = ()) -> Iterator[None]:
        """Add the place of a key to errors without a line; in a table, of the key that the error names.

        tables: other tables that the error can refer to.
        """
        try:
            yield
        except NavsenseError as error:
            if error.where is not None and error.where.line:
                raise
            parents = [key, *((table,) for table in tables)]
            inside = (names for names in self._lines if any(names[: len(parent)] == parent for parent in parents))
            keys = (names for names in inside if isinstance(names[-1], str) and names not in parents)
            key = next((names for names in keys if str(names[-1]) in error.what), key)
            if key == ("world",) and error.what in KEYS:  # a missing key
                key = (error.what,)
            what = f"{error.where}: {error.what}" if error.where is not None else error.what
            if isinstance(key[-1], str) and key[-1] not in error.what:
                what = f"{'.'.join(map(str, key))}: {what}"
            place = self.locate(*key)
            raise SimulationError(what, error.value, allowed=error.allowed, remedy=error.remedy, where=place) from error


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    r"""Read an experiment file, its world and its function `reduce`.

    Raises `SimulationError` with the line for an invalid key, and the errors of `load` and `simulate`.

    >>> _ = Path("rates.py").write_text("def reduce(run):\n    return {'samples': run['imu'].time.size}\n")
    >>> text = 'world = "quadrotor.sdf"\nruns = 4\nduration = 1.0\nreduce = "rates.py:reduce"\n'
    >>> _ = Path("rates.toml").write_text(text)
    >>> ns.campaigns.read_experiment("rates.toml").campaign
    <Campaign of field: 4 runs, 1 s>
    """
    file = _File(os.fspath(path))
    tables, folder = file.tables, Path(path).parent
    _check_tables(file)
    with inputs.collect_inputs() as sources:
        world = _load_world(file, folder)
        reduce, folders = _load_reduce(file, folder)
        parameters = order_parameters(tables.get("parameters", {}))
        changed = _set_parameters(file, world, parameters, "parameters")
        points = _read_points(file, folder, changed, parameters)
        motions = _load_motions(file, folder, changed)
        with file.add_place("joints"):
            joints = load_joints([str(folder / part) for part in tables.get("joints", ())])
    with file.add_place("world", tables=("sweep", "latin_hypercube")):
        campaign = make_campaign(
            replace(world, sources=world.sources | sources),
            tables["runs"],
            tables.get("duration"),
            reduce=reduce,
            sweep=points,
            parameters=parameters,
            seed=tables.get("seed", 0),
            motion=motions,
            joints=joints,
            fidelity=tables.get("fidelity"),
            epoch=tables.get("epoch", 0),
            truth_rate=float(tables.get("truth_rate", TRUTH_RATE)),
            recordings=tables.get("recordings", ""),
            command=_make_command(tables, folder, str(folder / tables["world"])),
        )
    columns = _read_report_columns(file, campaign.world)
    return Experiment(campaign, tables.get("out", Path(path).stem), columns, folders)


def _check_tables(file: _File) -> None:
    """Raise `SimulationError` for an unknown or a missing key, and for an invalid value of one key alone."""
    tables = file.tables
    file.check_keys(tables, KEYS)
    for name, keys in (("load", LOAD_KEYS), ("latin_hypercube", HYPERCUBE_KEYS), ("report", REPORT_KEYS)):
        file.check_keys(tables.get(name, {}), keys, name)
    for key, example in (("world", '"world.sdf"'), ("runs", "64")):
        if key not in tables:
            raise file.make_error((key,), "missing", f"must be {KEYS[key]}", f"write {key} = {example}")
    for key, check in _CHECKS.items():
        if key in tables:
            with file.add_place(key):
                check(tables[key])
    if not tables.get("out", "results") or "\0" in tables.get("out", ""):
        raise file.make_error(("out",), tables["out"], "must be the name of a folder", 'write out = "results"')
    for model, log in (tables["motion"] if isinstance(tables.get("motion"), dict) else {}).items():
        if not isinstance(log, str):
            raise file.make_error(
                ("motion", model), log, "must be the path of a motion log", f'write {model} = "log.csv"'
            )


def _load_world(file: _File, folder: Path) -> World:
    """Return the world with the faults for all runs. Raises `SimulationError` and `SdfError`."""
    from navsense.sdf import load  # workers need no reader

    tables, options = file.tables, file.tables.get("load", {})
    with file.add_place("world", tables=("load",)):
        world = load(
            str(folder / tables["world"]),
            fidelity=tables.get("fidelity"),
            path=tuple(str(folder / part) for part in options.get("path", ())),
            xacro=options.get("xacro", {}),
            expand_xacro=options.get("expand_xacro", False),
            missing="skip" if options.get("skip_missing") else "error",
            namespace=options.get("namespace"),
        )
    with file.add_place("recordings"):
        check_recordings(tables.get("recordings", ""), world)
    if "faults" not in tables:
        return world
    with file.add_place("faults"):
        return with_faults(world, folder / tables["faults"])


def _load_motions(file: _File, folder: Path, world: World) -> dict[str, Motion]:
    """Return the motion logs for all runs by model. Raises `SimulationError` and `MotionError`."""
    motion = file.tables.get("motion", {})
    with file.add_place("motion"):
        if isinstance(motion, str):
            return load_motions(world, str(folder / motion))
        return load_motions(world, {model: str(folder / log) for model, log in motion.items()})


def _set_parameters(file: _File, world: World, values: Point, *key: str | int) -> World:
    """Return the world with values of parameters. Raises `SimulationError` with the line of the value."""
    for path, value in values.items():
        with file.add_place(*key, path):
            world = with_parameters(world, {path: value})
    return world


def _read_points(file: _File, folder: Path, world: World, parameters: Point) -> list[Point] | None:
    """Return the points of the sweep, of the Latin hypercube, or each combination of both. Files get their folder."""
    sweep, points = file.tables.get("sweep"), None
    if isinstance(sweep, dict):
        for path, values in sweep.items():
            if isinstance(values, dict):
                allowed = "must be a path in quotation marks"
                raise file.make_error(("sweep", path), None, allowed, f'write "{path}.{next(iter(values), "field")}"')
            if not isinstance(values, list):
                raise file.make_error(("sweep", path), values, "must be a list of values", f"write [{values!r}]")
        with file.add_place("sweep"):
            points = list(make_points(sweep))
    elif sweep is not None:
        for index, point in enumerate(sweep):
            with file.add_place("sweep", index):
                check_paths(point, sweep[0], index + 1)
        with file.add_place("sweep"):
            points = list(make_points(sweep))
        for index, point in enumerate(points):
            values = {path: value for path, value in point.items() if not _is_file(path)}
            _set_parameters(file, world, order_parameters(parameters, values), "sweep", index)
    if points is not None:
        points = [{path: _add_folder(path, value, folder) for path, value in point.items()} for point in points]
    if "latin_hypercube" not in file.tables:
        return points
    samples = _read_hypercube(file)
    with file.add_place("latin_hypercube", "ranges"):
        return combine_points(points or [{}], samples)


def _read_hypercube(file: _File) -> list[Point]:
    """Return the points of the Latin hypercube."""
    table = file.tables["latin_hypercube"]
    for key in ("samples", "ranges"):
        if key not in table:
            raise file.make_error(("latin_hypercube", key), "missing", f"must be {HYPERCUBE_KEYS[key]}")
    for path, limits in table["ranges"].items():
        if not isinstance(limits, list) or len(limits) != 2 or not all(map(_TYPES[NUMBERS], limits)):
            allowed = "must be a list of two numbers, the lower one first"
            raise file.make_error(("latin_hypercube", "ranges", path), limits, allowed, "write [0.001, 0.01]")
    with file.add_place("latin_hypercube"):
        return latin_hypercube(
            table["ranges"], table["samples"], seed=table.get("seed", 0), logarithmic=table.get("logarithmic", ())
        )


def _is_file(path: str) -> bool:
    """Return True for the path of a parameter whose value is a file."""
    return path == FAULTS or is_motion_path(path)


def _add_folder(path: str, value: Any, folder: Path) -> Any:
    """Return the value of a parameter; a file with the folder of the experiment file."""
    return str(folder / value) if _is_file(path) and isinstance(value, str) and value else value


def _load_reduce(file: _File, folder: Path) -> tuple[Reduce | None, tuple[str, ...]]:
    """Return the function `reduce` and the folder of its file. Raises `SimulationError`."""
    text = file.tables.get("reduce")
    if text is None:
        return None, ()
    source, separator, name = text.rpartition(":")
    if not separator or not source or not name.isidentifier():
        allowed = "must be FILE:FUNCTION or MODULE:FUNCTION"
        raise file.make_error(("reduce",), text, allowed, 'write "analysis.py:reduce"')
    with _report_import(file, text):
        module, folders = (
            _load_module(file, folder / source) if source.endswith(".py") else (importlib.import_module(source), ())
        )
    functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    if name not in functions:
        remedy = suggest_name(name, functions)
        raise file.make_error(("reduce",), text, f"{source} has no function {name}", remedy)
    function: Reduce = vars(module)[name]
    return function, folders


@contextmanager
def _report_import(file: _File, text: str) -> Iterator[None]:
    """Replace all errors of a module while it is imported, also its exit, by a `SimulationError`."""
    try:
        yield
    except NavsenseError:
        raise
    except (Exception, SystemExit) as error:
        allowed = f"cannot be imported: {type(error).__name__}: {error}"
        remedy = "correct the file, or install the package; a file is written FILE.py:FUNCTION"
        raise file.make_error(("reduce",), text, allowed, remedy) from error


def _load_module(file: _File, path: Path) -> tuple[types.ModuleType, tuple[str, ...]]:
    """Return the module of a file, and the folder of the file, where workers search the modules beside it."""
    if not path.is_file():
        raise file.make_error(("reduce",), str(path), "does not exist", "check the path")
    path = path.resolve()
    folders = (str(path.parent),)
    with search_folders(folders):
        name = _choose_module_name(path)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise file.make_error(("reduce",), str(path), "must be a file of Python")
        module = importlib.util.module_from_spec(spec)
        previous = sys.modules.get(name)
        sys.modules[name] = module  # pickle and the digest find it there
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            if previous is not None:
                sys.modules[name] = previous
            raise
    return module, folders


def _choose_module_name(path: Path) -> str:
    """Return the name of the file as the name of its module, or another name if this is that of another module."""
    try:
        spec = importlib.util.find_spec(path.stem) if path.stem.isidentifier() else None
    except (ImportError, ValueError):  # of a module without a specification
        spec = None
    if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path:
        return path.stem
    return f"_{path.stem}_{hashlib.sha256(str(path).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _read_report_columns(file: _File, world: World) -> ReportColumns:
    """Return the columns of the report. Raises `SimulationError`."""
    table = file.tables.get("report", {})
    if table and "reduce" not in file.tables:
        raise file.make_error(
            ("report",), None, "needs reduce, which returns its columns", "add reduce, or omit [report]"
        )
    places: dict[str, Where] = {}
    for key, value in table.items():
        for name in [value] if isinstance(value, str) else value:
            places.setdefault(name, file.locate("report", key, *([name] if isinstance(value, dict) else [])))
    for kind in ("nees", "nis"):
        for column, dof in table.get(kind, {}).items():
            if type(dof) is not int or not 1 <= dof <= MAX_DOF:
                allowed = f"must be the number of degrees of freedom, an integer from 1 to {MAX_DOF}"
                raise file.make_error(("report", kind, column), dof, allowed)
    for column in table.get("nis", {}):
        if column in table.get("nees", {}):
            raise file.make_error(("report", "nis", column), None, "is in nees too; must be in one of them")
    for column, dof in table.get("allan", {}).items():
        if not isinstance(dof, str):
            allowed = 'must be the column with the degrees of freedom, or ""'
            raise file.make_error(("report", "allan", column), dof, allowed)
        places.setdefault(dof, file.locate("report", "allan", column))
    for key, kind in (("units", TEXT), ("axes", TEXTS), ("declared", TEXT), ("deviations", TEXT)):
        for column, value in table.get(key, {}).items():
            if not _TYPES[kind](value):
                raise file.make_error(("report", key, column), value, f"must be {kind}")
    for column, deviation in table.get("deviations", {}).items():
        places.setdefault(deviation, file.locate("report", "deviations", column))
    for column, path in table.get("declared", {}).items():
        if column not in table.get("allan", {}):
            raise file.make_error(("report", "declared", column), None, "must be a column of allan")
        with file.add_place("report", "declared", column):
            find_declared_noise(world, path)
    errors: Sequence[str] | None = table.get("errors")
    return ReportColumns(
        time=table.get("time", "time"),
        errors=None if errors is None else tuple(errors),
        deviations=table.get("deviations", {}),
        nees=table.get("nees", {}),
        nis=table.get("nis", {}),
        tau=table.get("tau", "tau"),
        allan=table.get("allan", {}),
        declared=table.get("declared", {}),
        units=table.get("units", {}),
        axes=table.get("axes", {}),
        places=places,
    )


def _make_command(tables: Mapping[str, Any], folder: Path, world_path: str) -> ShellCommand:
    """Return the commands that repeat the runs of an experiment file."""
    table, options = tables.get("load", {}), []
    for path in table.get("path", ()):
        options += ["--path", make_absolute(folder / path)]
    for name, value in table.get("xacro", {}).items():
        options += ["--xacro", f"{name}={value}"]
    options += ["--expand-xacro"] if table.get("expand_xacro") else []
    options += ["--skip-missing"] if table.get("skip_missing") else []
    options += ["--namespace", table["namespace"]] if "namespace" in table else []
    motion = tables.get("motion", {})
    motions = {"": motion} if isinstance(motion, str) else motion
    return make_shell_command(
        world_path,
        options=options,
        fidelity=tables.get("fidelity"),
        faults=str(folder / tables["faults"]) if "faults" in tables else None,
        joints=[folder / log for log in tables.get("joints", ())],
        motions={model: str(folder / log) for model, log in motions.items()},
        parameters=tables.get("parameters", {}),
        epoch=tables.get("epoch", 0),
        truth_rate=tables.get("truth_rate", TRUTH_RATE),
    )


__all__ = ["Experiment", "read_experiment"]
