"""`navsense run`: simulate a world and record it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from navsense.cli.options import (
    INTEGER,
    NUMBER,
    OutputCommand,
    WorldOptions,
    add_world_options,
    bandwidth_option,
    fidelity_option,
    joints_option,
    motion_option,
    parse_bandwidth_options,
    parse_motion_options,
    print_warnings,
    ros_option,
    verbose_option,
)
from navsense.cli.progress import show_progress
from navsense.cli.stop_signals import interrupt_between_steps, report_interrupt
from navsense.cli.tables import Column, print_table, wrap_line
from navsense.core.errors import SimulationError
from navsense.core.text import MAX_DIGITS, format_count, format_size

if TYPE_CHECKING:  # heavy imports
    from pathlib import Path

    from navsense.motion.base import Motion
    from navsense.runner.run import RecordResult
    from navsense.world import World

COLUMNS = (
    Column("sensor", "name"),
    Column("type", "name"),
    Column("rate (Hz)", "number"),
    Column("samples", "number"),
    Column("clock", "name"),
    Column("topic", "name"),  # with --verbose
)
"""Columns of the table of sensors."""

MAX_DELAY = 0.1
"""The command warns if the run falls further (s) behind its speed."""


def find_late_switches(world: World, duration: float) -> dict[str, float]:
    """Return the first time (s) at which each sensor is on, or infinity, for sensors that are off in a whole run."""
    late = {}
    for sensor in world.sensors:
        times = [0.0] if sensor.is_on else [switch.time for switch in sensor.switches if switch.on]
        start = min(times, default=math.inf)
        if start >= duration:
            late[sensor.name] = start
    return late


def list_unrecorded_sensors(world: World, path: Path) -> list[str]:
    """Return the names of the sensors that the format of a written recording does not support.

    None for a format of device records: its file has the one instrument that its name selects.
    """
    from navsense.recordings.format import find_format_of_recording
    from navsense.recordings.info import RecordedRun

    recording_format = find_format_of_recording(path)
    if recording_format is None or recording_format.list_sensors is None or recording_format.unit == "record":
        return []
    recorded = recording_format.list_sensors(RecordedRun(world), path)
    return [sensor.name for sensor in world.sensors if sensor.name not in recorded]


def print_invalid_sensors(world: World, summary: RecordResult) -> None:
    """Print a warning for each sensor that is off in the whole run, or has no valid reading."""
    late = find_late_switches(world, summary.duration)
    for name, count in summary.samples.items():
        if name in late:
            state = f"is switched on at {late[name]:g} s, after the end of the run"
            state = "is switched off during the whole run" if math.isinf(late[name]) else state
            click.echo(f"warning: {name}: {state}", err=True)
        elif count and not summary.published_samples[name]:
            click.echo(f"warning: {name}: none of {format_count(count, 'sample')} was published", err=True)
        elif count and not summary.valid_samples[name]:
            published = format_count(summary.published_samples[name], "sample")
            click.echo(f"warning: {name}: no valid reading in {published}", err=True)


def print_paths(world: World, summary: RecordResult, *, verbose: bool) -> None:
    """Print each recording with its size, and the sensors that its format does not support."""
    for path in summary.paths:
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = format_size(sum(file.stat().st_size for file in files))
        click.echo(f"wrote {path}: {summary.duration:g} s simulated, {size}")
        unrecorded = list_unrecorded_sensors(world, path)
        if unrecorded:
            click.echo(wrap_line(f"not in {path}: {', '.join(unrecorded)}", verbose=verbose))


def print_motions(world: World, motions: Mapping[str, Motion], urls: Mapping[str, str]) -> None:
    """Print the warnings of a world with its motions, and what the models and joints follow."""
    from navsense.description import format_motion_details
    from navsense.motion.base import HasNotes
    from navsense.motion.derived import get_source

    print_warnings(world, err=True, followed=urls)
    for model, motion in motions.items():
        details = format_motion_details(world.model(model).root_motion or motion)
        source = get_source(motion)
        series = f" {source.series}" if source is not None and source.series else ""
        click.echo(f"{model}: follows --motion{series}{details}", err=True)
        for note in motion.notes if isinstance(motion, HasNotes) else ():
            click.echo(f"note: {note}", err=True)
    for joint in (joint for model in world.models for joint in model.joints):
        if joint.track is not None and not joint.track.is_recorded:
            click.echo(f"{joint.name}: follows --joints", err=True)
            for note in joint.track.notes:
                click.echo(f"note: {note}", err=True)
    for name, url in urls.items():
        click.echo(f"{name}: follows --motion {url}", err=True)


def parse_runs_option(text: str) -> Sequence[int]:
    """Return the run numbers of `--runs`. Raises `SimulationError`."""
    first, separator, last = text.partition("-")
    words = (first, last) if separator else (first,)
    if not all(word.isdecimal() and len(word) < MAX_DIGITS for word in words) or int(words[-1]) < int(words[0]):
        allowed = "must be a number of runs, or the first and the last number"
        raise SimulationError("--runs", text, allowed=allowed, remedy="write --runs 200 or --runs 0-199")
    return range(int(first), int(last) + 1) if separator else range(int(first))


@click.command(cls=OutputCommand)
@add_world_options
@click.option("--duration", type=NUMBER, metavar="SECONDS", help="Simulated duration. Default: the end of the motion.")
@click.option("--seed", type=INTEGER, metavar="N", default=0, show_default=True, help="Seed of all random numbers.")
@click.option(
    "--run",
    "number",
    type=INTEGER,
    metavar="N",
    default=0,
    show_default=True,
    help="Number of the run. Each number simulates other instruments of the same types with the same seed.",
)
@click.option(
    "--runs",
    metavar="N|FIRST-LAST",
    help="Record N runs, or those from FIRST to LAST. Each OUT contains {run}, which becomes the number.",
)
@motion_option
@bandwidth_option
@joints_option
@click.option(
    "--changes",
    metavar="FILE",
    help="Recording whose changes are repeated: those that services made while its run went on.",
)
@click.option(
    "--current",
    metavar="URL",
    help="Live system that sends the velocity of the water, such as ros1://127.0.0.1:11311. It replaces the uniform or "
    "random current of WORLD.",
)
@fidelity_option
@click.option(
    "--epoch", type=INTEGER, metavar="SECONDS", default=0, show_default=True, help="Unix time of the start, an integer."
)
@click.option(
    "--truth-rate",
    type=NUMBER,
    metavar="HZ",
    default=100.0,
    show_default=True,
    help="Rate of the recorded ground truth.",
)
@ros_option
@click.option(
    "--speed",
    type=NUMBER,
    metavar="FACTOR",
    help="Simulated seconds per second of real time; 1 is real time. Default: as fast as possible.",
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="OUT",
    help="Recording; its suffix selects the format. Or the URL of a stream, such as pd0+tcp://127.0.0.1:1033. "
    "Repeatable.",
)
@verbose_option
def run(
    world_options: WorldOptions,
    duration: float | None,
    seed: int,
    number: int,
    runs: str | None,
    motion: tuple[str, ...],
    bandwidth: tuple[str, ...],
    joints: tuple[str, ...],
    changes: str | None,
    current: str | None,
    fidelity: str | None,
    epoch: int,
    truth_rate: float,
    ros: str | None,
    speed: float | None,
    output: tuple[str, ...],
    verbose: bool,
) -> None:
    """Simulate WORLD, record it and print a table of its sensors.

    WORLD is an SDF, URDF or xacro file.
    """
    from navsense import recordings
    from navsense.fault_file import describe_inactive_faults
    from navsense.messages.schemas import DEFAULT_DISTRIBUTION
    from navsense.runner.motion_sources import load_logs, split_motions
    from navsense.runner.run import record
    from navsense.simulation.motions import replace_joint_tracks, replace_motions

    world = world_options.load(fidelity)
    files, urls = split_motions(world, parse_motion_options(motion, world))
    motions, tracks = load_logs(world, files or None, joints, parse_bandwidth_options(bandwidth))
    print_motions(replace_joint_tracks(replace_motions(world, motions), tracks), motions, urls)
    with ExitStack() as stack:
        interrupt_report = stack.enter_context(report_interrupt())
        display = stack.enter_context(show_progress())

        def show_time(done: float, total: float) -> None:
            display.advance(done, total)
            interrupt_report.result = "the data recorded so far are kept" if output else ""

        advance = stack.enter_context(interrupt_between_steps(show_time))
        summary = record(
            world,
            output,
            duration,
            seed=seed,
            run=number,
            runs=None if runs is None else parse_runs_option(runs),
            motion={**motions, **urls},
            joints=tracks,
            fidelity=fidelity,
            epoch=epoch,
            truth_rate=truth_rate,
            speed=speed,
            ros=ros or DEFAULT_DISTRIBUTION,
            progress=advance,
            changes=() if changes is None else recordings.open(changes).changes,
            current=current,
        )
    rows = [
        (
            sensor.name,
            sensor.spec.type,
            f"{sensor.rate:g}",
            str(summary.published_samples[sensor.name]),
            sensor.clock or "true time",
            sensor.topic,
        )
        for sensor in world.sensors
    ]
    shown = len(COLUMNS) if verbose else len(COLUMNS) - 1
    print_table(COLUMNS[:shown], [row[:shown] for row in rows], verbose=verbose)
    print_invalid_sensors(world, summary)
    for line in describe_inactive_faults(world, summary.duration):
        click.echo(f"warning: {line}", err=True)
    if speed is not None and summary.max_delay > MAX_DELAY:
        click.echo(f"warning: the run fell up to {summary.max_delay:.2g} s behind --speed", err=True)
    print_paths(world, summary, verbose=verbose)
    if not output:
        click.echo(f"{summary.duration:g} s simulated; nothing recorded; write a recording with -o OUT")
