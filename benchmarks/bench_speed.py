"""Speed as ratios to a limit or a peer, measured in one run on one machine.

    make bench            or            python benchmarks/bench_speed.py

Limits: the draws alone (the same normals, nothing else). Peers: a loop over NumPy's generators for the draws, rosbags
for messages. Gazebo's sensors are the peer of `bench_gazebo.py`.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.parsers import expat

import numpy as np

import navsense as ns
from navsense.analysis.bench import CLOCKS, STANDARD, make_standard_sensor, measure_call, measure_sensor
from navsense.clock import Clock
from navsense.core.random_streams import Draws
from navsense.sensors import Imu, Magnetometer
from navsense.sensors.base import Sensor
from navsense.world import Link, Model, MountedSensor, World

QUADROTOR = Path(__file__).resolve().parent.parent / "examples" / "quadrotor.sdf"


def make_stationary_world(*specs: Sensor, rate: float = 1000.0) -> World:
    """Return sensors on one stationary link with a Gaussian clock."""
    clock = Clock("robot::base::clock", CLOCKS["gaussian"])
    sensors = tuple(
        MountedSensor(f"robot::base::s{i}", spec, "robot", "robot::base", rate, topic=f"/s{i}", clock=clock.name)
        for i, spec in enumerate(specs)
    )
    sensors = tuple(replace(sensor, frame=sensor.name) for sensor in sensors)
    return World("bench", (Model("robot", (Link("robot::base"),), "robot::base"),), sensors, (clock,))


def print_row(work: str, navsense: str, reference: str, ratio: str) -> str:
    """Return one row of the table."""
    return f"{work:58s} {navsense:>16s}   {reference:46s} {ratio:>8s}"


def compare_blocks() -> Iterator[str]:
    """Measure sensors with standard noise and clock in blocks, compared to their draws alone."""
    for kind in (Imu, Magnetometer):
        for what, measured_only in (("measured", True), ("ideal and measured", False)):
            row = measure_sensor(make_standard_sensor(kind), measured_only=measured_only)
            rate, limit = 1e3 / row.nanoseconds, f"draws alone {1e3 / row.draws:.1f} M/s"
            yield print_row(f"{row.name}, blocks, {what}", f"{rate:.1f} M/s", limit, f"{row.ratio:.2f}")


def compare_draws() -> Iterator[str]:
    """Measure the draws, compared to NumPy's with the same numbers."""
    spec = make_standard_sensor(Imu)
    source = Draws(spec.processes(), 1, (0, "bench"))
    rows, out = source.rows, np.empty(4096)
    generators = [np.random.Generator(np.random.SFC64(i)) for i in range(rows)]
    ours = measure_call(lambda: source.take(4096))
    theirs = measure_call(lambda: [draw.standard_normal(out=out) for draw in generators])
    count = rows * 4096 / 1e6
    yield print_row(
        "standard normals", f"{count / ours:.0f} M/s", f"NumPy {count / theirs:.0f} M/s", f"{theirs / ours:.1f}x"
    )


def compare_loading(folder: Path) -> Iterator[str]:
    """Load a world of 500 IMUs with noise on every axis, compared to expat on the same bytes."""
    axis = "<noise type='gaussian'><stddev>1e-3</stddev><bias_stddev>1e-2</bias_stddev></noise>"
    triad = "".join(f"<{name}>{axis}</{name}>" for name in "xyz")
    block = f"<imu><angular_velocity>{triad}</angular_velocity><linear_acceleration>{triad}</linear_acceleration></imu>"
    body = f"<update_rate>100</update_rate>{block}"
    sensors = "".join(f"<sensor name='s{i}' type='imu'>{body}</sensor>" for i in range(500))
    path = folder / "many.sdf"
    path.write_text(f"<sdf version='1.9'><model name='m'><link name='l'>{sensors}</link></model></sdf>")
    ours = measure_call(lambda: ns.load(path), rounds=3)
    theirs = measure_call(lambda: expat.ParserCreate().Parse(path.read_bytes(), True), rounds=3)
    reference = f"expat alone {theirs:.3f} s; goal 0.5 s"
    yield print_row("load a world of 500 imus", f"{ours:.2f} s", reference, f"{ours / theirs:.0f}x")


def compare_run_in_memory() -> Iterator[str]:
    """Run in memory and keep everything, compared to the draws alone."""
    world = make_stationary_world(make_standard_sensor(Imu))
    seconds = measure_call(lambda: ns.simulate(world, 1000.0, truth_rate=1.0), rounds=3)
    row = measure_sensor(make_standard_sensor(Imu), measured_only=True)
    limit = f"draws alone {1e3 / row.draws:.1f} M/s"
    yield print_row(
        "imu through ns.simulate, all kept", f"{1.0 / seconds:.1f} M/s", limit, f"{row.draws / (seconds * 1e3):.2f}"
    )


def measure_thousand_kilohertz() -> Iterator[str]:
    """Run an IMU at 1000 kHz with a Gaussian clock, the performance case, compared to real time."""
    world = make_stationary_world(make_standard_sensor(Imu), rate=1e6)
    seconds = measure_call(lambda: ns.simulate(world, 1.0, truth_rate=1.0), rounds=3)
    yield print_row(
        "imu at 1000 kHz, Gaussian clock, one second", f"{seconds:.2f} s", "real time 1 s", f"{1.0 / seconds:.1f}x"
    )


def measure_fresh_memory() -> Iterator[str]:
    """Write to as much new memory as a stored IMU sample takes: a lower limit of the time."""
    count = 28 * 1_000_000
    seconds = measure_call(lambda: np.empty(count).fill(1.0), rounds=3)
    yield print_row("new memory for a million kept imu samples", f"{1.0 / seconds:.1f} M/s", "224 bytes a sample", "")


def compare_live_steps() -> Iterator[str]:
    """Step five sensors live, compared to their motion alone."""
    world = make_stationary_world(*[make_standard_sensor(Imu)] * 3, *[make_standard_sensor(Magnetometer)] * 2)
    steps = iter(ns.live(world))
    step_time = measure_call(lambda: next(steps), rounds=7)
    places = ns.live(world)._session.sensor_motions.values()  # noqa: SLF001 - the motion's share alone
    instant = np.array([1.0])
    motion = measure_call(lambda: [place.at(instant) for place in places], rounds=7)
    yield print_row("live step, five sensors", f"{step_time * 1e6:.1f} us", f"of it motion {motion * 1e6:.1f} us", "")
    driven = ns.live(world, driven=["robot"])
    state = {"robot": ns.State(ns.Pose(), (0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.0))}
    by_caller = measure_call(lambda: driven.step(state), rounds=7)
    ratio = f"{by_caller / step_time:.1f}x"
    yield print_row("live step, five sensors, driven by the caller", f"{by_caller * 1e6:.1f} us", "motion known", ratio)


def compare_messages(folder: Path) -> Iterator[str]:
    """Write Imu messages to MCAP, compared to rosbags with the same type."""
    world = make_stationary_world(make_standard_sensor(Imu))
    run = ns.simulate(world, 200.0, truth_rate=1.0)
    path = folder / "bench.mcap"
    seconds = measure_call(lambda: run.save(path), rounds=3)
    count = 3 * 200_000
    theirs = measure_rosbags(folder, 20_000)
    ours = count / seconds / 1e6
    yield print_row(
        "sensor_msgs/Imu into MCAP", f"{ours:.2f} M/s", f"rosbags {theirs:.3f} M/s", f"{ours / theirs:.0f}x"
    )


def measure_rosbags(folder: Path, count: int) -> float:
    """Return the million Imu messages per second that rosbags writes."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    imu, header, stamp = (
        types["sensor_msgs/msg/Imu"],
        types["std_msgs/msg/Header"],
        types["builtin_interfaces/msg/Time"],
    )
    vector, quaternion = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    covariance = np.zeros(9)
    target = folder / f"rosbags{time.monotonic_ns()}"
    began = time.perf_counter()
    with Writer(target, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/imu", imu.__msgtype__, typestore=store)
        for n in range(count):
            message = imu(
                header=header(stamp=stamp(sec=n // 1000, nanosec=n % 1000 * 1_000_000), frame_id="imu"),
                orientation=quaternion(x=0.0, y=0.0, z=0.0, w=1.0),
                orientation_covariance=covariance,
                angular_velocity=vector(x=0.1, y=0.2, z=0.3),
                angular_velocity_covariance=covariance,
                linear_acceleration=vector(x=0.1, y=0.2, z=9.8),
                linear_acceleration_covariance=covariance,
            )
            writer.write(connection, n * 1_000_000, store.serialize_cdr(message, imu.__msgtype__))
    return count / (time.perf_counter() - began) / 1e6


def measure_command(*command: str, environment: dict[str, str] | None = None) -> float:
    """Return the seconds of one command."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **(environment or {})})
    return time.perf_counter() - began


def measure_starts(folder: Path) -> Iterator[str]:
    """Measure the start: help, check."""
    navsense = (sys.executable, "-m", "navsense")
    bare = min(measure_command(sys.executable, "-c", "pass") for _ in range(3))
    small = folder / "small.sdf"
    small.write_text('<sdf version="1.9"><world name="w"><model name="m"><link name="l"/></model></world></sdf>')
    rows = {
        "navsense --help": min(measure_command(*navsense, "--help") for _ in range(3)),
        "navsense check, a small file": min(measure_command(*navsense, "check", str(small)) for _ in range(3)),
    }
    for (what, seconds), goal in zip(rows.items(), ("0.3 s", "0.5 s"), strict=True):
        yield print_row(what, f"{seconds:.2f} s", f"bare python {bare:.2f} s; goal {goal}", "")


COMPILATION_GOALS = {"quadrotor": (7.0, 10.0), "auv_survey": (25.0, 30.0)}
"""By example: the processor time (s) of the compilation, and the duration (s) of the first run."""


def measure_compilation(folder: Path) -> Iterator[str]:
    """Measure the first and the second run of two examples, each with an empty kernel cache at first.

    The difference of the processor times is the compilation.
    """
    for name, (processor_goal, duration_goal) in COMPILATION_GOALS.items():
        world = str(QUADROTOR.with_name(f"{name}.sdf"))
        run = (sys.executable, "-m", "navsense", "run", world, "--duration", "30", "-o", str(folder / "first.mcap"))
        cache = {"NUMBA_CACHE_DIR": str(folder / f"cache-{name}")}
        durations, processor_times = [], []
        for _ in range(2):
            before = os.times()
            durations.append(measure_command(*run, environment=cache))
            after = os.times()
            processor_times.append(
                after.children_user + after.children_system - before.children_user - before.children_system
            )
        compilation = processor_times[0] - processor_times[1]
        yield print_row(
            f"processor time of compilation, {name}",
            f"{compilation:.1f} s",
            f"second run {processor_times[1]:.1f} s",
            f"goal {processor_goal:.0f} s",
        )
        yield print_row(
            f"first run, {name}",
            f"{durations[0]:.1f} s",
            f"second run {durations[1]:.1f} s",
            f"goal {duration_goal:.0f} s",
        )


def measure_memory(folder: Path) -> Iterator[str]:
    """Measure the peak memory of recordings of a minute and an hour of the same robot."""
    code = (
        "import sys, resource, navsense as ns\n"
        "world = ns.load(sys.argv[1])\n"
        "ns.record(world, sys.argv[2], float(sys.argv[3]), truth_rate=10.0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for duration in (60.0, 1200.0):
        command = (sys.executable, "-c", code, str(QUADROTOR), str(folder / "m.mcap"), str(duration))
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(float(done.stdout) / 1024.0)
    yield print_row(
        "peak memory of recording 20 minutes to MCAP",
        f"{peaks[1]:.0f} MiB",
        f"one minute {peaks[0]:.0f} MiB",
        f"{peaks[1] / peaks[0]:.2f}x",
    )


def main() -> None:
    """Print the table."""
    print(print_row("work", "navsense", "reference", "ratio"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in (
            compare_blocks(),
            compare_draws(),
            compare_run_in_memory(),
            measure_fresh_memory(),
            measure_thousand_kilohertz(),
            compare_live_steps(),
            compare_messages(folder),
            compare_loading(folder),
            measure_starts(folder),
            measure_compilation(folder),
            measure_memory(folder),
        ):
            for row in rows:
                print(row, flush=True)
            gc.collect()
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    assert STANDARD.stddev > 0.0
    main()
