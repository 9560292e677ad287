"""Named workloads of `tools/compare_speed.py`, and the worker that times them in one source tree.

Usage: python tools/speed_workloads.py FOLDER      the worker; reads requests from standard input

The worker imports navsense from PYTHONPATH, and keeps its files in FOLDER. A request is a line of JSON:
`{"name": "load fleet", "repeats": 10}`. The answer is `{"seconds": S}`: the processor time (user and system) of one
call, the mean of the repeats. If the workload fails, the answer is `{"error": TEXT}`. The first request of a workload
prepares it.

Workloads use the public API and files. A workload that has to use another name looks it up with `find_object`. If you
rename such an object, add a line to RENAMED; then the workload runs in trees before and after the renaming.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

RENAMED: dict[str, tuple[str, ...]] = {
    "navsense.sinks.load.load": ("navsense.recordings.dataset_reader.open_recording", "navsense.recordings.open"),
    "navsense.session.prepare": ("navsense.simulation.session.prepare",),
    "navsense.cli.cli": ("navsense.cli.application.cli",),
}
"""Dotted name in the oldest tree -> its later dotted names, oldest first."""

SURVEY_DURATION = 300.0
"""s of examples/auv_survey.sdf in the workloads of recordings."""

EPOCH = 1_800_000_000
"""s added to stamps: a bag of ROS 1 has no stamps below 0."""

LIVE_STEPS = 1000
CALIBRATION_READINGS = 300_000
FACTORS = 1_000_000
SAMPLES = 200_000
"""Samples given to `Imu.apply`."""

GAUSSIAN = (
    "<noise type='gaussian_quantized'><stddev>3e-3</stddev><bias_stddev>8e-3</bias_stddev>"
    "<dynamic_bias_stddev>4e-5</dynamic_bias_stddev>"
    "<dynamic_bias_correlation_time>1000</dynamic_bias_correlation_time><precision>1e-4</precision></noise>"
)
TRIAD = "".join(f"<{axis}>{GAUSSIAN}</{axis}>" for axis in "xyz")
SENSORS = {
    "imu": f"<imu><angular_velocity>{TRIAD}</angular_velocity><linear_acceleration>{TRIAD}</linear_acceleration></imu>",
    "magnetometer": f"<magnetometer>{TRIAD}</magnetometer>",
    "altimeter": (
        f"<altimeter><vertical_position>{GAUSSIAN}</vertical_position>"
        f"<vertical_velocity>{GAUSSIAN}</vertical_velocity></altimeter>"
    ),
}
"""Element of each sensor type with standard noise."""

PLANE = "<pose>0 0 -45 0 0 0</pose><geometry><plane><normal>0 0 1</normal><size>1000 1000</size></plane></geometry>"


def find_object(name: str) -> Any:
    """Return the object with this dotted name, or with a later name that RENAMED lists for it.

    Raises `LookupError` if the tree has none of them.
    """
    for dotted in (name, *RENAMED.get(name, ())):
        module, _, attribute = dotted.rpartition(".")
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), attribute)
    raise LookupError(f"no object {name}; add its new name to RENAMED in {Path(__file__).name}")


@dataclass(frozen=True)
class Workload:
    """Work to time, and a step before it that is not timed."""

    run: Callable[[], object]
    reset: Callable[[], object] = lambda: None
    is_process: bool = False
    """True if the work is a child process whose processor time counts."""


class Inputs:
    """Worlds and files that the workloads of one tree share, each made when first used."""

    def __init__(self, folder: Path) -> None:
        """Keep files in `folder`. The examples are in the tree that navsense is imported from."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.examples = Path(str(self.ns.__file__)).resolve().parents[2] / "examples"

    @cached_property
    def ns(self) -> Any:
        """The package."""
        return importlib.import_module("navsense")

    @cached_property
    def survey(self) -> Any:
        """The world of the survey."""
        return self.ns.load(self.examples / "auv_survey.sdf")

    @cached_property
    def quadrotor(self) -> Any:
        """The world of the quadrotor, with five sensors."""
        return self.ns.load(self.examples / "quadrotor.sdf")

    @cached_property
    def mcap(self) -> Path:
        """A recording of the survey."""
        path = self.folder / "survey.mcap"
        self.ns.record(self.survey, path, SURVEY_DURATION, seed=1)
        return path

    def world(self, kind: str, rate: float) -> Any:
        """Return a world with one sensor of this type and rate (Hz) on a link at rest."""
        sensor = f"<sensor name='s' type='{kind}'><update_rate>{rate:g}</update_rate>{SENSORS[kind]}</sensor>"
        path = self.folder / f"{kind}.sdf"
        path.write_text(
            f"<sdf version='1.9'><world name='w'><model name='m'><link name='l'>{sensor}</link></model></world></sdf>"
        )
        return self.ns.load(path)

    def dvl_world(self, *, is_flat: bool) -> Any:
        """Return the survey with its DVL alone, over the terrain or over a plane."""
        world = self.survey
        if is_flat:
            text = (self.examples / "auv_survey.sdf").read_text(encoding="utf-8")
            before, rest = text.split("<geometry>", 1)
            path = self.folder / "flat.sdf"
            path.write_text(before + PLANE + rest.split("</geometry>", 1)[1], encoding="utf-8")
            world = self.ns.load(path)
        return replace(world, sensors=tuple(s for s in world.sensors if s.name.endswith("::dvl")))


def simulation(world: Any, duration: float, inputs: Inputs, **options: Any) -> Workload:
    """Return a simulation in memory."""
    return Workload(lambda: inputs.ns.simulate(world, duration, seed=1, truth_rate=1.0, **options))


def stream(inputs: Inputs) -> Workload:
    """Return the survey computed part by part, which is what recording it costs without the file."""
    prepare = find_object("navsense.session.prepare")

    def run() -> None:
        session = prepare(inputs.survey, SURVEY_DURATION, seed=1, runs=(0,))
        names = ("compute_slices", "slices", "slabs")  # The method has other names in older commits.
        compute_slices = next(getattr(session, name) for name in names if hasattr(session, name))
        for _ in compute_slices():
            pass

    return Workload(run)


def remove(path: Path) -> None:
    """Remove a file or a folder with its files, if it exists."""
    if path.is_dir():
        for file in path.iterdir():
            remove(file)
        path.rmdir()
    path.unlink(missing_ok=True)


def recording(suffix: str, inputs: Inputs, duration: float = SURVEY_DURATION) -> Workload:
    """Return a recording of the survey."""
    path = inputs.folder / f"recorded{suffix}"
    return Workload(lambda: inputs.ns.record(inputs.survey, path, duration, seed=1, epoch=EPOCH), lambda: remove(path))


def live_steps(inputs: Inputs, *, is_driven: bool) -> Workload:
    """Return steps of a live run with five sensors."""
    sim = inputs.ns.live(inputs.quadrotor, seed=1, driven=["quadrotor"] if is_driven else None)
    pose, still = inputs.ns.Pose((0.0, 0.0, 2.0)), (0.0, 0.0, 0.0)
    state = {"quadrotor": inputs.ns.State(pose, still, angular_velocity=still)} if is_driven else None

    def run() -> None:
        for _ in range(LIVE_STEPS):
            sim.step(state)

    return Workload(run)


def driven_pings(inputs: Inputs) -> Workload:
    """Return pings of a DVL on a vehicle that the caller moves, one a step."""
    world = replace(inputs.dvl_world(is_flat=False), max_step_size=0.125)
    state = {"auv": inputs.ns.State(inputs.ns.Pose((0.0, 0.0, -30.0)), (1.0, 0.0, 0.0))}
    sim = inputs.ns.live(world, seed=1, driven=state)

    def run() -> None:
        for _ in range(LIVE_STEPS // 4):
            sim.step(state)

    return Workload(run)


def command_line(inputs: Inputs, *arguments: str) -> Workload:
    """Return a command of navsense inside the worker."""
    main = find_object("navsense.cli.cli")
    output = Path(arguments[-1])
    reset = (lambda: remove(output)) if output.parent == inputs.folder else (lambda: None)
    return Workload(lambda: main(list(arguments), standalone_mode=False), reset)


def process(*arguments: str) -> Workload:
    """Return a process of this Python interpreter."""
    command = (sys.executable, *arguments)

    def run() -> float:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command)
        return usage.ru_utime + usage.ru_stime

    return Workload(run, is_process=True)


def magnetic_readings(count: int) -> tuple[Any, Any]:
    """Return readings (n, 3) uT of a distorted field and attitudes (n, 4), w x y z."""
    random = np.random.default_rng(1)
    attitude = random.normal(size=(count, 4))
    attitude /= np.linalg.norm(attitude, axis=1)[:, None]
    w, v, field = attitude[:, :1], -attitude[:, 1:], np.array([22.0, 2.0, -45.0])
    turned = field + 2.0 * np.cross(v, np.cross(v, field) + w * field)
    iron = np.array([[1.10, 0.10, 0.04], [0.10, 0.88, 0.02], [0.04, 0.02, 1.22]])
    return turned @ iron.T + np.array([20.0, -30.0, 9.0]) + 0.5 * random.normal(size=(count, 3)), attitude


def calibration(function: str, inputs: Inputs) -> Workload:
    """Return a calibration, with attitudes or without."""
    field, attitude = magnetic_readings(CALIBRATION_READINGS)
    arguments = (field, attitude) if function == "known_attitude" else (field,)
    calibrate = getattr(inputs.ns.calibration, function)
    return Workload(lambda: calibrate(*arguments, unit="uT"))


def factors(inputs: Inputs) -> Workload:
    """Return residuals and Jacobians of a million magnetometer factors, written into existing arrays."""
    field, attitude = magnetic_readings(FACTORS)
    arguments = (attitude, field, 50.0, np.array([0.44, 0.04, -0.897]), np.zeros(3))
    evaluate = inputs.ns.factors.blocks.mag_factor1
    out = evaluate(*arguments)
    return Workload(lambda: evaluate(*arguments, out=out))


def imu_errors(inputs: Inputs) -> Workload:
    """Return `Imu.apply` on arrays of the caller."""
    spec = inputs.world("imu", 1000.0).sensors[0].spec
    instants = np.arange(SAMPLES) / 1000.0
    rates = np.random.default_rng(1).normal(size=(SAMPLES, 3))
    return Workload(lambda: spec.apply(instants, rates, rates + 9.8, seed=1))


def read_recording(inputs: Inputs) -> Workload:
    """Return the reading of a recording of messages into arrays."""
    load, path = find_object("navsense.sinks.load.load"), inputs.mcap
    return Workload(lambda: load(path))


def loading(name: str) -> Callable[[Inputs], Workload]:
    """Return the loading of an example."""
    return lambda inputs: Workload(
        lambda: inputs.ns.load(inputs.examples / f"{name}.sdf", path=[inputs.examples / "models"])
    )


WORKLOADS: dict[str, Callable[[Inputs], Workload]] = {
    "simulate imu": lambda inputs: simulation(inputs.world("imu", 1000.0), 400.0, inputs),
    "simulate magnetometer": lambda inputs: simulation(inputs.world("magnetometer", 1000.0), 400.0, inputs),
    "simulate altimeter": lambda inputs: simulation(inputs.world("altimeter", 1000.0), 400.0, inputs),
    "simulate dvl, plane": lambda inputs: simulation(inputs.dvl_world(is_flat=True), 800.0, inputs),
    "simulate dvl, terrain": lambda inputs: simulation(inputs.dvl_world(is_flat=False), 800.0, inputs),
    "simulate survey": lambda inputs: simulation(inputs.survey, SURVEY_DURATION, inputs),
    "simulate 100 runs": lambda inputs: simulation(inputs.quadrotor, 3.0, inputs, runs=100),
    "stream survey": stream,
    "record survey, mcap": lambda inputs: recording(".mcap", inputs),
    "record survey, bag": lambda inputs: recording(".bag", inputs, 30.0),
    "record survey, npz": lambda inputs: recording(".npz", inputs),
    "live steps": lambda inputs: live_steps(inputs, is_driven=False),
    "live steps, driven": lambda inputs: live_steps(inputs, is_driven=True),
    "live dvl pings, driven": driven_pings,
    "load quadrotor": loading("quadrotor"),
    "load auv_survey": loading("auv_survey"),
    "load fleet": loading("fleet"),
    "read mcap": read_recording,
    "convert mcap to npz": lambda inputs: command_line(
        inputs, "convert", str(inputs.mcap), str(inputs.folder / "converted.npz")
    ),
    "report mcap": lambda inputs: command_line(
        inputs, "report", str(inputs.mcap), "--output", str(inputs.folder / "page.html")
    ),
    "calibrate, ellipsoid": lambda inputs: calibration("ellipsoid", inputs),
    "calibrate, known attitude": lambda inputs: calibration("known_attitude", inputs),
    "evaluate factors": factors,
    "apply imu": imu_errors,
    "process: import": lambda _: process("-c", "import navsense"),
    "process: --help": lambda _: process("-m", "navsense", "--help"),
    "process: check": lambda inputs: process("-m", "navsense", "check", str(inputs.examples / "quadrotor.sdf")),
}

SHARES = {"share of recording": ("record survey, mcap", "stream survey")}
"""Ratio of the times of two workloads in the same pair: name -> (numerator, denominator)."""


def measure(workload: Workload, repeats: int) -> float:
    """Return the processor time (s) of one call: the mean of the repeats."""
    total = 0.0
    for _ in range(repeats):
        workload.reset()
        gc.collect()
        began = time.process_time()
        result = workload.run()
        spent = time.process_time() - began
        total += float(result) if workload.is_process else spent  # type: ignore[arg-type]
        del result
    return total / repeats


def requests() -> Iterator[dict[str, Any]]:
    """Yield the requests on standard input."""
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    inputs = Inputs(Path(sys.argv[1]))
    prepared: dict[str, Workload] = {}
    for request in requests():
        name = request["name"]
        try:
            if name not in prepared:
                prepared[name] = WORKLOADS[name](inputs)
            answer: dict[str, Any] = {"seconds": measure(prepared[name], request["repeats"])}
        except Exception as error:  # noqa: BLE001  # whatever a workload raises is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
