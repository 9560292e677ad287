"""`navsense run`: simulate a world and record it."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import click

from navsense.cli.options import (
    NUMBER,
    OutputCommand,
    WorldOptions,
    add_row,
    add_world_options,
    fidelity_option,
    make_table,
    motion_option,
    parse_motion_options,
    print_table,
    print_warnings,
    ros_option,
)
from navsense.cli.stop_signals import list_active_signals

Progress = Callable[[float, float], None]
"""A function of the simulated and the total duration (s)."""

MAX_DELAY = 0.1
"""The command warns if the run falls further (s) behind its speed."""

REDRAW_PERIOD = 0.1
"""Seconds between two updates of the progress bar."""


def make_progress_bar(stack: ExitStack) -> Progress:
    """Return a function that shows the simulated time. The bar appears at its first call.

    The calls redraw the bar, so it needs no thread.
    """
    update: Callable[..., None] | None = None
    last_redraw = -math.inf

    def advance(done: float, total: float) -> None:
        nonlocal update, last_redraw
        if update is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            seconds = TextColumn("{task.completed:.1f} of {task.total:.1f} s")
            columns = (TextColumn("{task.description}"), BarColumn(), seconds, TimeRemainingColumn())
            bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), auto_refresh=False))
            update = partial(bar.update, bar.add_task("simulated", total=total))
        refresh = time.monotonic() - last_redraw >= REDRAW_PERIOD
        last_redraw = time.monotonic() if refresh else last_redraw
        update(completed=done, total=total, refresh=refresh)

    return advance


@contextmanager
def interrupt_between_steps(advance: Progress) -> Iterator[Progress]:
    """Yield a progress function that ends the run between two time slices after a stop signal.

    During compilation, the run ends before the next kernel is compiled. An exception inside a callback of compiled code
    would be lost, so the handler only sets a flag. A second signal ends the run at once.
    """
    from navsense.core.kernels import COMPILATION_CHECKS

    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    def check() -> None:
        if received:
            raise KeyboardInterrupt

    def advance_and_check(done: float, total: float) -> None:
        advance(done, total)
        check()

    COMPILATION_CHECKS.append(check)
    previous = {number: signal.signal(number, handle) for number in list_active_signals()}
    try:
        yield advance_and_check
    finally:
        COMPILATION_CHECKS.remove(check)
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def report_interrupt(*, is_recording: bool) -> Iterator[None]:
    """Exit with code 130 after an interrupt. If the run has outputs, print that their data are kept."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("stopped; the data recorded so far are kept" if is_recording else "stopped", err=True)
        sys.exit(130)


@click.command(cls=OutputCommand)
@add_world_options
@click.option("--duration", type=NUMBER, metavar="SECONDS", help="Simulated duration. Default: the end of the motion.")
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Seed of all random numbers.")
@click.option(
    "--run",
    "number",
    type=int,
    metavar="N",
    default=0,
    show_default=True,
    help="Number of the run. Each number simulates other instruments of the same types with the same seed.",
)
@motion_option
@fidelity_option
@click.option(
    "--epoch", type=int, metavar="SECONDS", default=0, show_default=True, help="Unix time of the start, an integer."
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
def run(
    world_options: WorldOptions,
    duration: float | None,
    seed: int,
    number: int,
    motion: tuple[str, ...],
    fidelity: str | None,
    epoch: int,
    truth_rate: float,
    ros: str | None,
    speed: float | None,
    output: tuple[str, ...],
) -> None:
    """Simulate WORLD, record it and print a table of its sensors.

    WORLD is an SDF, URDF or xacro file.
    """
    from navsense.core.text import format_count, format_size
    from navsense.description import format_log_noise
    from navsense.fault_file import describe_inactive_faults
    from navsense.messages.schemas import DEFAULT_DISTRIBUTION
    from navsense.runner.run import load_motions, record
    from navsense.simulation.motions import replace_motions

    world = world_options.load(fidelity)
    motions = load_motions(world, parse_motion_options(motion))
    print_warnings(replace_motions(world, motions), err=True)
    for model, model_motion in motions.items():
        click.echo(f"{model}: follows --motion{format_log_noise(model_motion)}", err=True)
    with ExitStack() as stack:
        stack.enter_context(report_interrupt(is_recording=bool(output)))
        advance = stack.enter_context(interrupt_between_steps(make_progress_bar(stack)))
        summary = record(
            world,
            output,
            duration,
            seed=seed,
            run=number,
            motion=motions,
            fidelity=fidelity,
            epoch=epoch,
            truth_rate=truth_rate,
            speed=speed,
            ros=ros or DEFAULT_DISTRIBUTION,
            progress=advance,
        )
    table = make_table("sensor", "type", "rate (Hz)", "samples", "clock", "topic")
    for sensor in world.sensors:
        samples = str(summary.samples[sensor.name])
        rate = f"{sensor.rate:g}"
        add_row(table, sensor.name, sensor.spec.type, rate, samples, sensor.clock or "true time", sensor.topic)
    print_table(table)
    for name, count in summary.samples.items():
        if count and not summary.valid_samples[name]:
            click.echo(f"warning: {name}: no valid reading in {format_count(count, 'sample')}", err=True)
    for line in describe_inactive_faults(world, summary.duration):
        click.echo(f"warning: {line}", err=True)
    if speed is not None and summary.max_delay > MAX_DELAY:
        click.echo(f"warning: the run fell up to {summary.max_delay:.2g} s behind --speed", err=True)
    for path in summary.paths:
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = format_size(sum(file.stat().st_size for file in files))
        click.echo(f"wrote {path}: {summary.duration:g} s simulated, {size}")
    if not output:
        click.echo(f"{summary.duration:g} s simulated; nothing recorded; write a recording with -o OUT")
