"""Short runs that together call all kernels of the simulation, the recordings, the report and the calibration."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path
from typing import Any

import numpy as np

from navsense import recordings
from navsense.calibration.load import calibrate_samples, read
from navsense.core.errors import RecordingError
from navsense.core.kernels import INTERPRETED
from navsense.core.pose import Pose
from navsense.demo import QUADROTOR, write_demo
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.water import Water
from navsense.factors import ReducedMagFactor2, blocks, local_field
from navsense.motion.driven import State
from navsense.picture.chart import make_chart
from navsense.report import write as write_report
from navsense.runner.live import live
from navsense.runner.run import record, simulate
from navsense.sdf import load
from navsense.sensors import SENSORS, Dvl, Imu, Magnetometer, NavSat
from navsense.testing import example_world

SEA = Path(__file__).parent / "sea.sdf"
"""World file with every sensor, DVL dialect, clock, current, surface and kind of noise."""

DURATION, STEPS = 40.0, 200
"""Duration (s) of a run, longer than a time slice, and steps of a live run."""

EPOCH = 1767225600
"""Unix time of the start; ROS 1 bags require it."""

SUFFIXES = (".mcap", ".bag", ".npz")
"""Formats that are written and read again. The other formats call no further kernels."""


@dataclass(frozen=True)
class CompiledKernels:
    """The kernels that `compile_kernels` used; a kernel counts once for each set of argument types.

    compiled: number that were compiled.
    loaded: number that were loaded from the cache.
    folder: the cache; None if no folder is writable.
    """

    compiled: int
    loaded: int
    folder: Path | None


def compile_kernels() -> CompiledKernels:
    """Compile the kernels that are not in the cache. Recordings go to a temporary folder, which is deleted.

    Raises `RecordingError` if the temporary folder is full.
    """
    with tempfile.TemporaryDirectory(prefix="navsense-") as folder:
        try:
            _run_demo(Path(folder))
            for fidelity in ("physical", "classic"):
                _run_sea(Path(folder), fidelity)
        except RecordingError as error:  # the folder is deleted, so nothing in it can be recovered
            error.remedy = f"free some space in {Path(folder).parent}, or set TMPDIR to another folder"
            raise
    simulate(example_world(*((kind.__name__, kind.example_spec()) for kind in SENSORS)), 1.0)
    _step_live()
    _apply_errors()
    _evaluate_factors()
    return count_kernels()


def _run_demo(folder: Path) -> None:
    """Write the demo, follow its recorded track and calibrate its compass."""
    write_demo(folder)
    simulate(load(QUADROTOR), DURATION, motion=folder / "quadrotor.mcap")
    for attitude in ("none", "truth"):
        samples = read(str(folder / "compass.mcap"), attitude=attitude)
        for soft_iron in (True, False):
            calibrate_samples(samples, strength=None, soft_iron=soft_iron, attitude_stddev=None)


def _run_sea(folder: Path, fidelity: str) -> None:
    """Record the sea, read it again, write its report, and simulate two runs at once."""
    world = load(SEA, fidelity=fidelity)
    paths = [folder / f"{fidelity}{suffix}" for suffix in SUFFIXES]
    record(world, paths, DURATION, epoch=EPOCH)
    for path in paths:
        recordings.open(path)
    make_chart(world, {}, DURATION, 0, 0)
    write_report(paths[0], folder / "sea.html", world=str(SEA))
    simulate(world, DURATION, runs=2)


def _step_live() -> None:
    """Step both worlds, with their own motion and with that of a caller."""
    for path in (QUADROTOR, SEA):
        world = load(path)
        for driven in ((), (world.sensors[0].model,)):
            with live(world, driven=driven) as run:
                for step in range(STEPS):
                    pose = Pose((0.01 * step, 0.0, -5.0 if path == SEA else 5.0))
                    run.step(dict.fromkeys(driven, State(pose)))


def _apply_errors() -> None:
    """Add the errors of sensors to arrays, and compute fields at positions of a caller."""
    time, vectors, numbers = np.arange(200) / 200.0, np.ones((200, 3)), np.ones(200)
    Imu.from_part("stim300").apply(time, vectors, vectors, seed=0)
    Magnetometer.from_part("rm3100").apply(time, 1e-5 * vectors, seed=0)
    NavSat().apply(time, numbers, numbers, numbers, vectors, seed=0)
    Dvl.example_spec().apply(time, vectors, seed=0, temperature=300.0 * numbers)
    atmosphere, water = Atmosphere(), Water()
    atmosphere.altitude_at_pressure(atmosphere.pressure_at(numbers))
    water.density_at(numbers)
    local_field(0.8, 0.1, 400.0, 2027.0)


def _evaluate_factors() -> None:
    """Evaluate many magnetometer factors at once, with attitudes as quaternions and as matrices."""
    count = 2
    field, zeros, yaw = np.tile([0.0, 0.6, 0.8], (count, 1)), np.zeros(3), np.zeros(count)
    ReducedMagFactor2(0, 1, field, np.eye(3), 1.0)
    blocks.mag_factor(yaw, field, 1.0, field[0], zeros)
    blocks.mag_pose_factor_pose2(yaw, field[:, 1:], 1.0, field[0, 1:], zeros[1:])
    for rotation in (np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), np.tile(np.eye(3), (count, 1, 1))):
        blocks.mag_factor1(rotation, field, 1.0, field[0], zeros)
        blocks.mag_factor2(field[0], zeros, field, rotation)
        blocks.mag_factor3(1.0, field[0], zeros, field, rotation)
        blocks.mag_pose_factor_pose3(rotation, field, 1.0, field[0], zeros)


def list_dispatchers() -> Iterator[Any]:
    """Yield Numba's dispatcher of each kernel that was called, or that such a kernel calls."""
    if INTERPRETED:
        return
    from numba.core.dispatcher import Dispatcher

    package = __name__.partition(".")[0]
    modules = [module for name, module in tuple(sys.modules.items()) if name.partition(".")[0] == package]
    found = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    yield from found.values()


def count_kernels() -> CompiledKernels:
    """Return the number of kernels that this process compiled and loaded, and the folder of the cache."""
    stats = [dispatcher.stats for dispatcher in list_dispatchers()]
    folders = [one.cache_path for one in stats if one.cache_path]
    return CompiledKernels(
        sum(sum(one.cache_misses.values()) for one in stats),
        sum(sum(one.cache_hits.values()) for one in stats),
        Path(commonpath(folders)) if folders else None,
    )
