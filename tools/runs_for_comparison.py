"""Runs whose arrays tools/compare_runs.py compares between two commits. That tool starts this script for each commit.

Usage: python tools/runs_for_comparison.py SOURCE OUTPUT [PATTERN ...]

SOURCE is the folder from which navsense must come; `tests/verification` of the same commit is in its parent folder.
OUTPUT receives {run: {array: digest}} as JSON. With patterns (such as `fault/*`) only the runs that match one of them
are made.

One version of this script runs with both commits. After a renaming, add the new name to `MODULES`, `ATTRIBUTES` or
`ARRAYS`; the script tries all names in turn. The keys in these tables stay: they name the arrays in the output.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib
import json
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from comparison import check_source
from comparison_worlds import clock, list_worlds, sensor, world

import navsense as ns

ROOT = Path(__file__).resolve().parent.parent

MODULES: dict[str, tuple[str, ...]] = {
    "navsense.sinks.load": ("navsense.recordings.dataset_reader", "navsense.recordings"),
    "navsense.messages.fault": ("navsense.messages.world_messages", "navsense.messages.world_topics"),
    "navsense.sensors.apply": ("navsense.sensors.user_arrays",),
    "navsense.sensors.catalogue": (),
    "navsense.analysis.declared": ("tests.verification.declared",),
    "navsense.pose": ("navsense.core.pose",),
    "navsense.ticks": ("navsense.core.ticks",),
    "navsense.testing": (),
}
"""Name of a module -> its names in other commits."""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "truth": ("ideal",),
    "errors": ("bias",),
    "clock_error": (),
    "valid": (),
    "emitted": (),
    "arrival": (),
    "stamp": (),
    "true_stamp": (),
    "witness": ("example_spec",),
    "witness_world": ("example_world",),
    "witness_motion": ("example_motion",),
    "SURROUNDINGS": ("EXAMPLE_ENVIRONMENT",),
    "joined": ("join_readings", "concatenate_readings"),
    "apply": ("simulate_readings",),
    "load": ("open_recording", "open"),
    "pack_bits": ("pack_fault_bits",),
    "freedom": ("degrees_of_freedom",),
}
"""Name of an attribute, function or field -> its names in other commits."""

ARRAYS: dict[str, str] = {"z_score": "off", "field_per_ampere": "motor_current", "echo_strength": "strength"}
"""Name of an array or of a field in another commit -> its name in the output."""

SEED = 20260101
DURATION = 2.0
FIDELITIES = ("physical", "classic")
SUFFIXES = (".sdf", ".world", ".urdf")

Arrays = dict[str, Any]
"""Name -> array, number or text."""

Run = Callable[[Path], Arrays]
"""A run: it gets an empty folder."""


def module(name: str) -> Any:
    """Return a module by any of its names."""
    for candidate in (name, *MODULES.get(name, ())):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(candidate)
    raise ModuleNotFoundError(f"no module has a name of {name}: add it to MODULES")


def get(owner: Any, name: str) -> Any:
    """Return an attribute by any of its names."""
    for candidate in (name, *ATTRIBUTES.get(name, ())):
        if hasattr(owner, candidate):
            return getattr(owner, candidate)
    raise AttributeError(f"{owner!r} has no attribute with a name of {name}: add it to ATTRIBUTES")


def compute_digest(value: Any) -> str:
    """Return a digest of dtype, shape and bytes of an array: NaNs with different bits differ, as do 0.0 and -0.0."""
    if isinstance(value, str | bytes):
        kind, content = "text", value.encode() if isinstance(value, str) else value
    else:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"an array of objects has no digest: {array!r}")
        kind, content = f"{array.dtype.str} {array.shape}", np.ascontiguousarray(array).tobytes()
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{len(kind)}:{kind}".encode())
    digest.update(content)
    return digest.hexdigest()


def list_named_arrays(arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays with the names of this script."""
    for name, array in arrays.items():
        yield ARRAYS.get(name, name), array


def reading_arrays(reading: Any) -> Arrays:
    """Return all arrays of a reading."""
    arrays: Arrays = {f"values.{name}": array for name, array in list_named_arrays(reading)}
    for group in ("truth", "errors"):
        arrays |= {f"{group}.{name}": array for name, array in list_named_arrays(get(reading, group))}
    # An earlier commit has the turn-on biases and the bits of the faults among the errors.
    arrays |= {
        f"errors.{name}_turn_on": array for name, array in list_named_arrays(getattr(reading, "turn_on_bias", {}))
    }
    fault = getattr(reading, "fault", {})
    if fault:
        arrays["errors.fault"] = get(module("navsense.messages.fault"), "pack_bits")(fault)
    if "errors.fault" in arrays:
        arrays["errors.fault"] = np.asarray(arrays["errors.fault"], dtype=np.float64)
    for name in ("time", "clock_error", "valid", "emitted", "arrival", "stamp", "true_stamp"):
        arrays[name] = get(reading, name)
    return arrays


def dataclass_arrays(value: Any) -> Arrays:
    """Return the arrays in the fields of a dataclass, also of those in it."""
    arrays: Arrays = {}
    for field in fields(value):
        part, name = getattr(value, field.name), ARRAYS.get(field.name, field.name)
        if isinstance(part, np.ndarray | int | float | bool):
            arrays[name] = part
        elif is_dataclass(part):
            arrays |= {f"{name}.{key}": array for key, array in dataclass_arrays(part).items()}
        elif isinstance(part, tuple) and all(isinstance(number, int | float) for number in part):
            arrays[name] = np.array(part, dtype=np.float64)
    return arrays


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with a prefix before each name."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def run_arrays(run: Any) -> Arrays:
    """Return all arrays of a run in memory or of a recording: readings, truth of the links and current."""
    arrays: Arrays = {}
    for name in run:
        reading = run[name]
        arrays |= with_prefix(name, reading_arrays(reading))
        arrays[f"{name}/labels"] = json.dumps([reading.type, reading.frame, sorted(reading.unit.items())])
    for name in run.truth:
        arrays |= with_prefix(f"truth of {name}", dataclass_arrays(run.truth[name]))
    if run.current is not None:
        arrays |= with_prefix("current", dataclass_arrays(run.current))
    return arrays


def simulate(path: Path, fidelity: str, duration: float = DURATION, **options: Any) -> Arrays:
    """Return the arrays of a run of a world file."""
    skip = "skip" if "skip" in module("navsense.sdf.document").__dict__.get("MISSING_MODES", ()) else "listed"
    loaded = ns.load(path, fidelity=fidelity, path=ROOT / "examples" / "models", missing=skip)
    return run_arrays(ns.simulate(loaded, duration, seed=SEED, **options))


def write(folder: Path, text: str) -> Path:
    """Write a world and return its path."""
    path = folder / "world.sdf"
    path.write_text(text, encoding="utf-8")
    return path


def simulate_example(world: Any, options: Mapping[str, Any], duration: float, _: Path) -> Arrays:
    """Return the arrays of a run of an example spec."""
    return run_arrays(ns.simulate(world, duration, seed=SEED, **options))


def runs_of_examples() -> Iterator[tuple[str, Run]]:
    """Yield runs of the example spec of each sensor: alone, three at once, and over given arrays."""
    testing = module("navsense.testing")
    for kind in ns.sensors.SENSORS:
        spec: Any = get(kind, "witness")()
        world = get(testing, "witness_world")(("sensor", spec))
        yield f"batch/{kind.type}", partial(simulate_example, world, {"runs": 3}, 1.5)
        yield f"apply/{kind.type}", partial(apply_errors, spec)
        for fidelity in FIDELITIES:
            if kind.type == "adcp" and fidelity == "classic":
                axes = type(spec.coordinates)("instrument")
                world = get(testing, "witness_world")(("sensor", replace(spec, coordinates=axes)))
            options = {"runs": [3], "fidelity": fidelity, "epoch": 5}
            yield f"example/{kind.type}/{fidelity}", partial(simulate_example, world, options, 3.0)


def apply_errors(spec: Any, _: Path) -> Arrays:
    """Return the readings of a spec over given arrays."""
    testing, ticks = module("navsense.testing"), module("navsense.ticks")
    rows = ticks.Ticks(np.arange(300, dtype=np.int64), 50.0)
    ideal = spec.ideal(get(testing, "witness_motion")(), get(testing, "SURROUNDINGS"), rows)
    apply = get(module("navsense.sensors.apply"), "apply")
    derived = {output.name for output in spec.outputs} - ideal.keys()
    names = ("skip_ideal", "require_finite") if "skip_ideal" in apply.__kwdefaults__ else ("untrue", "finite")
    options = dict(zip(names, (derived, False), strict=True))
    return reading_arrays(apply(spec, rows.time, ideal, seed=SEED, run=1, **options))


def simulate_text(text: str, fidelity: str, duration: float, runs: int | None, folder: Path) -> Arrays:
    """Return the arrays of a run of a world that this script writes."""
    return simulate(write(folder, text), fidelity, duration, runs=runs)


def simulate_file(path: Path, fidelity: str, _: Path) -> Arrays:
    """Return the arrays of a run of a file of the repository."""
    return simulate(path, fidelity)


def runs_of_worlds() -> Iterator[tuple[str, Run]]:
    """Yield runs of the worlds that the script writes."""
    texts = list_worlds()
    for name, text in texts.items():
        for fidelity in FIDELITIES:
            yield f"{name}/{fidelity}", partial(simulate_text, text, fidelity, DURATION, None)
    yield "long/all", partial(simulate_text, texts["sensor/all"], "physical", 45.0, None)
    for name in ("current/gauss_markov", "current/stratified", "sensor/all", "fault/both_by_chance", "clock/TCXO"):
        yield f"batch/{name}", partial(simulate_text, texts[name], "physical", DURATION, 3)


def runs_of_files() -> Iterator[tuple[str, Run]]:
    """Yield runs of the world files of the repository: dialects, plug-ins, URDF, includes."""
    for top in ("examples", "tests/worlds"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES:
                name = path.relative_to(ROOT).as_posix()
                for fidelity in FIDELITIES:
                    yield f"file/{name}/{fidelity}", partial(simulate_file, path, fidelity)


def live_arrays(steps: Iterable[Any], sim: Any) -> Arrays:
    """Return the readings of a live run, joined per sensor, and the clocks at some instants."""
    parts: dict[str, list[Any]] = {}
    for step in steps:
        for name in step.readings:
            parts.setdefault(name, []).append(step.readings[name])
    arrays: Arrays = {}
    for name, readings in parts.items():
        rows = [reading_arrays(reading) for reading in readings]
        for key in rows[0]:
            arrays[f"{name}/{key}"] = np.concatenate([np.atleast_1d(row[key]) for row in rows])
    instants = np.linspace(0.0, 0.9, 37)
    for name in [clock_spec.name for clock_spec in sim.world.clocks]:
        arrays[f"clock {name}"] = sim.clock(name).time(instants)
    for name in [mounted.name for mounted in sim.world.sensors]:
        arrays[f"clock of {name}"] = sim.sensor(name).clock.time(instants)
    return arrays


def simulate_live(text: str, folder: Path) -> Arrays:
    """Return the readings of a live run whose motion the file gives."""
    with ns.live(ns.load(write(folder, text)), seed=SEED, run=1) as sim:
        return live_arrays((sim.step() for _ in range(200)), sim)


def simulate_driven(text: str, rates: bool, folder: Path) -> Arrays:
    """Return the readings of a live run whose motion the caller gives."""
    from_rpy = module("navsense.pose").from_rpy
    loaded = ns.load(write(folder, text))

    def states(sim: Any) -> Iterator[Any]:
        for n in range(200):
            t = n * loaded.max_step_size
            pose = ns.Pose((0.3 * t, 0.1 * t * t, -5.0 - 0.2 * t), from_rpy(0.05 * t, 0.02, 0.4 * t * t))
            known: dict[str, Any] = {"angular_velocity": (0.05, 0.0, 0.8 * t)} if rates else {}
            velocity = ((0.3, 0.2 * t, -0.2),) if rates else ()
            yield sim.step({"robot": ns.State(pose, *velocity, **known)})

    with ns.live(loaded, seed=SEED, run=1, driven=["robot"]) as sim:
        return live_arrays(states(sim), sim)


def runs_live() -> Iterator[tuple[str, Run]]:
    """Yield live runs."""
    texts = list_worlds()
    names = ("sensor/all", "latency/random", "fault/both_by_chance", "fault/spike", "clock/disciplined")
    for name in (*names, "clock/monotonic", "clock/step", "current/gauss_markov"):
        yield f"live/{name}", partial(simulate_live, texts[name])
    still = {name: world(sensor(name, clock="c"), clocks=clock("c", ""), motion="") for name in ("imu", "dvl", "adcp")}
    for name, text in still.items():
        for rates in (False, True):
            yield f"driven/{name}/{'rates' if rates else 'poses'}", partial(simulate_driven, text, rates)


def simulate_fault_file(folder: Path) -> Arrays:
    """Return a run with faults from a file."""
    path = folder / "faults.toml"
    path.write_text(
        '[[fault]]\nof = "dvl"\nkind = "lost_lock"\nstart = 0.4\nend = 1.0\n'
        '[[fault]]\nof = "imu"\nkind = "bias"\nstart = 0.5\narray = "angular_velocity"\nvalue = [0.0, 0.0, 0.01]\n'
        '[[fault]]\nof = "computer"\nkind = "step"\nstart = 0.7\nvalue = 0.25\n'
        '[[fault]]\nof = "world"\nkind = "magnetic_anomaly"\nstart = 0.2\nvalue = [1e-6, 0.0, 2e-6]\n',
        encoding="utf-8",
    )
    loaded = ns.with_faults(ns.load(write(folder, list_worlds()["sensor/all"])), path)
    return run_arrays(ns.simulate(loaded, DURATION, seed=SEED))


TABLES = {
    "way.csv": "time,x,y,z,qw,qx,qy,qz\n"
    + "".join(f"{0.1 * i},{0.2 * i},{0.01 * i * i},{-5 - 0.03 * i},1,0,0,0\n" for i in range(41)),
    "grid.csv": "x,y,altitude,u,v\n"
    + "".join(
        f"{x},{y},{z},{0.1 + 0.01 * x - 0.002 * z},{0.2 - 0.01 * y}\n"
        for x in (-20, 0, 20)
        for y in (-20, 20)
        for z in (-20, -5, 0)
    ),
    "replay.csv": "time,east,north,up\n" + "".join(f"{i},{0.1 * i},{0.3 - 0.05 * i},0.01\n" for i in range(6)),
    "layers.csv": "depth,east,north\n0,0.4,0.1\n10,0.2,0.2\n20,0,0.1\n",
    "cast.csv": "depth,temperature,salinity\n0,291,33\n10,288,34\n30,281,35\n",
    "warmth.csv": "time,value\n0,285\n1,300\n5,290\n",
}
"""Tables that a world reads, by file name."""

TABLE_CURRENT = """
    <navsense:current start="2021-03-04T15:00Z">
      <stratified file="layers.csv"/><replay file="replay.csv" outside="hold"/>
      <grid file="grid.csv" space="world" x="x" y="y" z="altitude" east="u" north="v" outside="hold"/>
    </navsense:current>"""


def simulate_tables(folder: Path) -> Arrays:
    """Return a run of a world that reads its motion, current, water and signals from tables."""
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    parts = "".join(sensor(name) for name in ("imu", "depth", "dvl", "adcp"))
    text = world(parts, extra=TABLE_CURRENT, motion='<navsense:motion file="way.csv" bandwidth="2"/>')
    start, end = text.index("<navsense:water"), text.index("</navsense:water>")
    text = f'{text[:start]}<navsense:water surface="0" file="cast.csv">{text[end:]}'
    start, end = text.index('<navsense:signal name="temperature">'), text.index("</navsense:signal>")
    text = f'{text[:start]}<navsense:signal name="temperature" file="warmth.csv">{text[end:]}'
    path = write(folder, text)
    log = folder / "way.csv"
    return {
        **with_prefix("smooth", simulate(path, "physical")),
        **with_prefix("log", simulate(path, "physical", motion=log)),
    }


def read_calibration_samples(folder: Path) -> Arrays:
    """Return what calibration reads from a recording."""
    loaded, path = ns.load(write(folder, list_worlds()["sensor/magnetometer"])), folder / "run.npz"
    ns.record(loaded, path, 3.0, seed=SEED)
    samples = ns.calibration.read(path, attitude="truth")
    return {"field": samples.field, "rotation": samples.rotation_ws}


def read_recording(name: str, suffix: str, folder: Path) -> Arrays:
    """Return the arrays of a recording that was read back."""
    loaded, path = ns.load(write(folder, list_worlds()[name])), folder / f"run{suffix}"
    ns.record(loaded, path, DURATION, seed=SEED, epoch=1_800_000_000)
    return run_arrays(get(module("navsense.sinks.load"), "load")(path))


def read_messages(suffix: str, ros: str, folder: Path) -> Arrays:
    """Return the bytes and times of all messages of an MCAP file per topic."""
    from mcap.reader import make_reader

    path = folder / f"run{suffix}"
    ns.record(ns.load(write(folder, list_worlds()["sensor/all"])), path, DURATION, seed=SEED, epoch=7, ros=ros)
    topics: dict[str, list[bytes]] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            rows = topics.setdefault(f"{channel.topic} {schema.name if schema else ''}", [])
            rows.append(f"{message.log_time} {message.publish_time} ".encode() + message.data)
    return {topic: b"\n".join(rows) for topic, rows in topics.items()}


def read_device_log(name: str, suffix: str, folder: Path) -> Arrays:
    """Return the bytes of the log of an instrument."""
    path = folder / f"run{suffix}"
    loaded = ns.load(write(folder, list_worlds()[f"sensor/{name}"]))
    ns.record(loaded, path, DURATION, seed=SEED, epoch=1_800_000_000)
    return {"log": path.read_bytes()}


def run_command_line(folder: Path) -> Arrays:
    """Return the arrays of a recording that the command line wrote and converted."""
    path = write(folder, list_worlds()["sensor/all"])
    command = [sys.executable, "-m", "navsense"]
    run = ["run", str(path), "--duration", "1", "--seed", "3", "--run", "2", "-o", str(folder / "run.npz")]
    for arguments in (run, ["convert", str(folder / "run.npz"), str(folder / "other.mcap")]):
        subprocess.run([*command, *arguments], check=True, capture_output=True)
    load = get(module("navsense.sinks.load"), "load")
    return {
        **with_prefix("npz", run_arrays(load(folder / "run.npz"))),
        **with_prefix("mcap", run_arrays(load(folder / "other.mcap"))),
    }


def runs_of_recordings() -> Iterator[tuple[str, Run]]:
    """Yield recordings, messages and logs of instruments."""
    for suffix in (".npz", ".mcap", ".bag", ".db3", ".parquet", ".csv", ".euroc"):
        yield f"recording/all{suffix}", partial(read_recording, "sensor/all", suffix)
    for name in ("fault/both_by_chance", "latency/random", "current/gauss_markov", "clock/drift"):
        for suffix in (".npz", ".mcap"):
            yield f"recording/{name}{suffix}", partial(read_recording, name, suffix)
    for suffix, ros in ((".mcap", "humble"), (".mcap", "jazzy"), (".gz.mcap", "jazzy")):
        yield f"messages/{ros}{suffix}", partial(read_messages, suffix, ros)
    for suffix, name in ((".pd0", "dvl"), (".pd6", "dvl"), (".wl.json", "dvl"), (".nmea", "dvl"), (".pd0", "adcp")):
        yield f"device/{name}{suffix}", partial(read_device_log, name, suffix)
    yield "fault/file", simulate_fault_file
    yield "tables", simulate_tables
    yield "calibration/samples of a recording", read_calibration_samples
    yield "command line", run_command_line


def make_tumbling_readings(count: int = 400) -> tuple[Any, Any]:
    """Return made-up readings (n, 3) T of a magnetometer and its attitudes (n, 4), in integer steps of angles."""
    k = np.arange(count)
    turn = module("navsense.pose").from_rpy
    attitude = np.array([turn(0.31 * i, 0.9 * np.sin(0.17 * i), 0.23 * i) for i in k.tolist()])
    w, x, y, z = attitude.T
    north, down = 2e-5, -4.2e-5
    field = np.stack(
        [
            (1 - 2 * (y * y + z * z)) * north + 2 * (x * z - w * y) * down,
            2 * (x * y - w * z) * north + 2 * (y * z + w * x) * down,
            2 * (x * z + w * y) * north + (1 - 2 * (x * x + y * y)) * down,
        ],
        axis=1,
    )
    iron = np.array([[1.12, 0.05, -0.03], [0.01, 0.94, 0.04], [-0.02, 0.03, 0.97]])
    stream = np.random.Generator(np.random.SFC64(7)).standard_normal((count, 3))
    return (iron[None] * field[:, None, :]).sum(axis=2) + np.array([14e-6, -9e-6, 22e-6]) + 1e-7 * stream, attitude


def calibrate(name: str, options: Mapping[str, Any], _: Path) -> Arrays:
    """Return the numbers of a calibration, and readings that it corrected."""
    field, attitude = make_tumbling_readings()
    arguments = (field, attitude) if name == "known_attitude" else (field,)
    result = getattr(ns.calibration, name)(*arguments, **options)
    arrays = {
        key: get(result, key)
        for key in ("scale", "bias", "soft_iron", "covariance", "residual_stddev", "freedom", "count", "matrix")
    }
    if result.direction is not None:
        arrays["direction"] = result.direction
    return {**arrays, "calibrated": result.apply(field)}


def evaluate_blocks(_: Path) -> Arrays:
    """Return residuals and Jacobians of all factors, many measurements at once."""
    field, attitude = make_tumbling_readings()
    n, made = len(field), ns.factors.blocks
    direction, bias = ns.factors.direction(0.05, 1.1, frame="NED"), np.array([1e-6, -2e-6, 3e-6])
    theta, scale = np.linspace(-3.0, 3.0, n), np.linspace(4e-5, 5e-5, n)
    results = {
        "mag_factor": made.mag_factor(theta, field, scale, direction, bias),
        "mag_factor1": made.mag_factor1(attitude, field, scale, direction, bias),
        "mag_factor2": made.mag_factor2(4e-5 * direction, bias, field, attitude),
        "mag_factor3": made.mag_factor3(4e-5, direction, bias, field, attitude),
        "mag_pose_factor_pose2": made.mag_pose_factor_pose2(
            theta, field[:, :2], 4e-5, direction[:2], bias[:2], rotation_bs=0.2
        ),
        "mag_pose_factor_pose3": made.mag_pose_factor_pose3(
            attitude, field, 4e-5, direction, bias, rotation_bs=attitude[3]
        ),
    }
    arrays: Arrays = {}
    for name, block in results.items():
        arrays[f"{name}.residual"] = block[0]
        arrays |= {f"{name}.jacobian {i}": jacobian for i, jacobian in enumerate(block[1])}
    return arrays


def evaluate_factors(_: Path) -> Arrays:
    """Return errors and Jacobians of each factor at one point."""
    field, attitude = make_tumbling_readings(40)
    f, measured, turn = ns.factors, field[5], attitude[5]
    direction, bias = f.direction(0.05, 1.1, frame="NED"), np.array([1e-6, -2e-6, 3e-6])
    pose = np.eye(4)
    pose[:3, 3] = (1.0, 2.0, 3.0)
    iron = np.array([1.1, 0.0, 0.1, 0.05, 0.9, 0.0, 0.02, 0.0, 1.0])
    cases: dict[str, tuple[Any, tuple[Any, ...], tuple[int, ...]]] = {
        "MagFactor1": (f.MagFactor1(1, measured, 4e-5, direction, bias, 1e-7), (np.eye(3),), (3,)),
        "MagFactor2": (f.MagFactor2(1, 2, measured, turn, 1e-7), (4e-5 * direction, bias), (3, 3)),
        "MagFactor3": (f.MagFactor3(1, 2, 3, measured, turn, 1e-7), (4e-5, direction, bias), (1, 2, 3)),
        "MagPoseFactorPose3": (f.MagPoseFactorPose3(1, measured, 4e-5, direction, bias, 1e-7), (pose,), (6,)),
        "MagSoftIronFactor": (
            f.MagSoftIronFactor(1, 2, measured, 4e-5 * direction, turn, 1e-7),
            (iron, bias),
            (9, 3),
        ),
        "MagnitudeFactor": (f.MagnitudeFactor(1, measured, 4.6e-5, 1e-7), (bias,), (3,)),
        "MagnitudeSoftIronFactor": (
            f.MagnitudeSoftIronFactor(1, 2, measured, 4.6e-5, 1e-7),
            (iron[[0, 1, 2, 4, 5, 8]], bias),
            (6, 3),
        ),
    }
    arrays: Arrays = {}
    for name, (factor, at, columns) in cases.items():
        rows = factor.dim()
        jacobians = [np.zeros((rows, count), order="F") for count in columns]
        arrays[f"{name}.error"] = factor.evaluateError(*at, *jacobians)
        arrays |= {f"{name}.jacobian {i}": jacobian for i, jacobian in enumerate(jacobians)}
    for name in ("ReducedMagFactor2", "ReducedMagFactor3"):
        keys = range(int(name[-1]))
        for i, part in enumerate(getattr(f, name)(*keys, field, attitude, 1e-7).optimum()):
            arrays[f"{name}.optimum {i}"] = part
    local = f.local_field(0.82, 0.15, 488.0, 2026.9, frame="ENU")
    return {**arrays, "local field": np.array([local.strength, *local.direction])}


def estimate_parameters(kind: Any, _: Path) -> Arrays:
    """Return the figures that the readings of a sensor's example spec show."""
    rows = module("navsense.analysis.declared").table(get(kind, "witness")(), (20.0,), SEED, effort=0.01)
    arrays: Arrays = {}
    for number, row in enumerate(rows):
        parts = dataclass_arrays(row.estimate)
        arrays |= {f"row {number} {row.channel}/{name}": part for name, part in parts.items()}
    return arrays


def runs_of_analysis() -> Iterator[tuple[str, Run]]:
    """Yield calibrations, factors and measured figures."""
    yield "calibration/ellipsoid", partial(calibrate, "ellipsoid", {})
    yield "calibration/ellipsoid of known strength", partial(calibrate, "ellipsoid", {"strength": 4.65e-5})
    yield "calibration/without soft iron", partial(calibrate, "known_attitude", {"soft_iron": False})
    yield "calibration/known attitude", partial(calibrate, "known_attitude", {"strength": 4.65e-5})
    yield "factors/blocks", evaluate_blocks
    yield "factors/single", evaluate_factors
    for kind in ns.sensors.SENSORS:
        yield f"declared/{kind.type}", partial(estimate_parameters, kind)


GROUPS = (runs_of_examples, runs_of_worlds, runs_of_files, runs_live, runs_of_recordings, runs_of_analysis)


def list_runs() -> dict[str, Run]:
    """Return all runs by name."""
    return {name: run for group in GROUPS for name, run in group()}


def compute_digests(run: Run) -> dict[str, str]:
    """Return the digests of a run's arrays, or the text of its error under the name `error`."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {name: compute_digest(array) for name, array in run(Path(folder)).items()}
        except Exception as error:  # noqa: BLE001 - a run that fails is a result, too
            if not isinstance(error, ns.NavsenseError):
                traceback.print_exc()
            return {"error": str(error).replace(folder, "FOLDER").replace(str(ROOT), "ROOT")}


def main() -> None:
    """Make the runs and write their digests."""
    source, output, *patterns = sys.argv[1:]
    check_source(source)
    sys.path.append(str(Path(source).parent))  # for `tests.verification` of that commit
    digests = {}
    for name, run in list_runs().items():
        if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            digests[name] = compute_digests(run)
    Path(output).write_text(json.dumps(digests), encoding="utf-8")


if __name__ == "__main__":
    main()
