"""The command line: run, check, describe, info, recover, report, calibrate, bench. Errors end in exit code 2."""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from navsense.errors import CalibrationError, NavsenseError, SdfError, SimulationError
from navsense.kernels import COMPILATION_CHECKS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.table import Table

    Progress = Callable[[float, float], None]

    from navsense.world import World


def make_table(*columns: str) -> Table:
    """Return an empty table; numbers are right-aligned where the column's name ends in a unit or count."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in NUMERIC_COLUMNS
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text: a name may hold what rich takes for markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))


MAX_LAG = 0.1
"""Seconds behind its speed above which a run says so."""

REDRAW_PERIOD = 0.1
"""Seconds between two updates of the progress bar."""

NUMERIC_COLUMNS = frozenset(
    ("rate (Hz)", "samples", "messages", "ns/sample", "draws alone", "draws/total", "rows", "size")
)


def print_table(table: Table) -> None:
    """Print a table as wide as it needs to be where the output is no terminal."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    with console.capture() as shown:
        console.print(table)
    click.echo(shown.get(), nl=False)


class ClosedOutputError(Exception):
    """The reader of the standard output closed it, as `head` does. This is not an error of the command."""


@contextmanager
def detect_closed_output() -> Iterator[None]:
    """Raise `ClosedOutputError` if the standard output is closed; click would exit with code 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedOutputError from error


class CheckedCommand(click.Command):
    """A command that refuses empty names, because an empty path is the current folder."""

    def invoke(self, ctx: click.Context) -> None:
        """Check the arguments and run the command."""
        for parameter in self.params:
            given = ctx.params.get(str(parameter.name))
            if "" in (given if isinstance(given, tuple) else (given,)):
                name = parameter.opts[-1] if parameter.param_type_name == "option" else parameter.human_readable_name
                raise SimulationError(name, '""', allowed="must not be empty", remedy="name a file or a value")
        super().invoke(ctx)


class CommandGroup(click.Group):
    """The commands of navsense."""

    command_class = CheckedCommand

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments, or print the help."""
        with detect_closed_output():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        """Run a command."""
        with detect_closed_output():
            super().invoke(ctx)
            sys.stdout.flush()


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="navsense")
def cli() -> None:
    """Simulate navigation sensors from SDF worlds, with true errors and honest clocks."""
    from navsense import inputs

    # A command does not write to its own inputs.
    click.get_current_context().with_resource(inputs.collect_inputs())


def parse_motion_options(texts: tuple[str, ...]) -> str | dict[str, str] | None:
    """Return what `--motion` names: one log, or a log for each model (MODEL=FILE)."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    pairs: dict[str, str] = {}
    for text in texts:
        model, separator, path = text.partition("=")
        if not separator or not model or not path:
            raise SimulationError("--motion", text, allowed="must be FILE for a world of one model, or MODEL=FILE")
        if model in pairs:
            raise SimulationError("--motion", text, allowed="names a model that has its motion already")
        pairs[model] = path
    return pairs


def print_warnings(world: World, *, err: bool) -> None:
    """Print the warnings of a world and the sensors in it that are not simulated."""
    for note in world.notes:
        if note.kind == "warning" or note.what.startswith("<sensor type="):
            click.echo(f"warning: {note}", err=err)


def make_progress_bar(stack: ExitStack) -> Progress:
    """Return a function that shows the simulated time. The bar appears at its first call.

    The calls redraw the bar, so it needs no thread.
    """
    shown: list[Callable[..., None]] = []
    drawn = -math.inf

    def advance(done: float, total: float) -> None:
        nonlocal drawn
        if not shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            seconds = TextColumn("{task.completed:.1f} of {task.total:.1f} s")
            columns = (TextColumn("{task.description}"), BarColumn(), seconds, TimeRemainingColumn())
            bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), auto_refresh=False))
            task = bar.add_task("simulated", total=total)

            shown.append(partial(bar.update, task))
        redraw = time.monotonic() - drawn >= REDRAW_PERIOD
        drawn = time.monotonic() if redraw else drawn
        shown[0](completed=done, total=total, refresh=redraw)

    return advance


@contextmanager
def interrupt_between_steps(advance: Progress) -> Iterator[Progress]:
    """Yield a progress that ends the run after an interrupt or a request to terminate, between two slabs.

    During compilation, the run ends before the next kernel is compiled. An exception inside a callback of compiled code
    would be lost, so the handler only sets a flag. A second signal ends the run at once.
    """
    asked: list[int] = []

    def note(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    def watched(done: float, total: float) -> None:
        advance(done, total)
        check()

    COMPILATION_CHECKS.append(check)
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield watched
    finally:
        COMPILATION_CHECKS.remove(check)
        for number, handler in before.items():
            signal.signal(number, handler)


Command = Callable[..., None]

expand_xacro_option = click.option(
    "--expand-xacro", is_flag=True, help="Run xacro for files whose name does not end in .xacro."
)
"""Option that allows a world file to run xacro."""

WORLD_OPTIONS = (
    click.option("--path", multiple=True, metavar="FOLDER", help="Folder of models that WORLD includes. Repeatable."),
    click.option("--xacro", multiple=True, metavar="NAME=VALUE", help="Argument of a file of xacro. Repeatable."),
    expand_xacro_option,
    click.option(
        "--skip-missing",
        is_flag=True,
        help="Leave out the models, meshes and heightmaps that are not found, with a warning for each.",
    ),
    click.option("--faults", metavar="FILE", help="Faults on purpose (TOML) besides those of WORLD."),
)
"""Options that say how WORLD is read."""


def add_world_options(command: Command) -> Command:
    """Add the options for reading WORLD to a command: path, xacro, expand_xacro, skip_missing, faults."""
    for option in reversed(WORLD_OPTIONS):
        command = option(command)
    return command


def load_world(
    world_file: str,
    path: tuple[str, ...],
    xacro: tuple[str, ...],
    *,
    expand_xacro: bool,
    skip_missing: bool,
    faults: str | None,
    fidelity: str | None = None,
) -> World:
    """Return WORLD, read as the options say, with the faults of a file besides its own."""
    from navsense.sdf import load

    missing = "skip" if skip_missing else "error"
    arguments = parse_xacro_options(xacro)
    world = load(world_file, fidelity=fidelity, path=path, xacro=arguments, expand_xacro=expand_xacro, missing=missing)
    if faults is None:
        return world
    from navsense.faults import with_faults

    return with_faults(world, faults)


fidelity_option = click.option(
    "--fidelity", help="physical or classic, for all in WORLD, currents too; else as it says."
)
"""Option of what runs WORLD, or says how it would run."""


ros_option = click.option(
    "--ros", metavar="humble|jazzy", help="Distribution of the ROS 2 message definitions; default jazzy (and later)."
)
"""Option of the commands that write ROS messages."""


def parse_xacro_options(texts: tuple[str, ...]) -> dict[str, str]:
    """Return what `--xacro` gives, by name."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise SdfError("--xacro", text, allowed="must be NAME=VALUE")
        if name in pairs:
            raise SdfError("--xacro", text, allowed="names an argument that has its value already")
        pairs[name] = value
    return pairs


@cli.command()
@click.argument("world_file", metavar="WORLD")
@add_world_options
@click.option("--duration", type=float, help="Seconds; without it, as long as the motion lasts.")
@click.option("--seed", type=int, default=0, show_default=True, help="One seed for everything random.")
@click.option(
    "--run", "number", type=int, default=0, show_default=True, help="Number of the run: another serial number."
)
@click.option("--motion", multiple=True, metavar="FILE|MODEL=FILE", help="Motion log or recording, of a model.")
@fidelity_option
@click.option("--epoch", type=int, default=0, show_default=True, help="Integer seconds added to every stamp.")
@click.option("--truth-rate", type=float, default=100.0, show_default=True, help="Rate (Hz) of the truth of links.")
@ros_option
@click.option("--speed", type=float, help="Simulated seconds a second, 1 for real time; without it, all it can.")
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="OUT",
    help="Recording: .mcap, .gz.mcap, .bag, .db3, .npz, .parquet, .csv, .euroc, .pd0, ... Repeatable.",
)
def run(
    world_file: str,
    path: tuple[str, ...],
    xacro: tuple[str, ...],
    expand_xacro: bool,
    skip_missing: bool,
    faults: str | None,
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
    """Simulate WORLD and record it; prints what was recorded."""
    from navsense.description import format_log_noise
    from navsense.faults import describe_inactive_faults
    from navsense.messages.schemas import DEFAULT_DISTRIBUTION
    from navsense.recordings.device_writers import is_port_address
    from navsense.sensor_run import replace_motions
    from navsense.simulation import load_motions, record

    world = load_world(
        world_file,
        path,
        xacro,
        expand_xacro=expand_xacro,
        skip_missing=skip_missing,
        faults=faults,
        fidelity=fidelity,
    )
    moved = load_motions(world, parse_motion_options(motion))
    print_warnings(replace_motions(world, moved), err=True)
    for model, given in moved.items():
        click.echo(f"{model}: moved by the motion given{format_log_noise(given)}", err=True)
    with ExitStack() as stack:
        advance = stack.enter_context(interrupt_between_steps(make_progress_bar(stack)))
        summary = record(
            world,
            output,
            duration,
            seed=seed,
            run=number,
            motion=moved,
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
        add_row(table, sensor.name, sensor.spec.type, rate, samples, sensor.clock or "global time", sensor.topic)
    print_table(table)
    for name, taken in summary.samples.items():
        if taken and not summary.valid[name]:
            click.echo(f"warning: {name}: not one of its {taken} samples is a valid reading", err=True)
    for line in describe_inactive_faults(world, summary.duration):
        click.echo(f"warning: {line}", err=True)
    if speed is not None and summary.behind > MAX_LAG:
        click.echo(f"warning: the run fell up to {summary.behind:.2g} s behind its speed", err=True)
    for written in summary.paths:
        if is_port_address(written):
            continue
        size = f", {written.stat().st_size / 1e6:.1f} MB" if written.is_file() else ""
        click.echo(f"wrote {written}: {summary.duration:g} s simulated{size}")
    if not summary.paths:
        click.echo(f"{summary.duration:g} s simulated; nothing was written: name a recording with -o OUT")


@cli.command()
@click.argument("world_file", metavar="WORLD")
@add_world_options
def check(
    world_file: str,
    path: tuple[str, ...],
    xacro: tuple[str, ...],
    expand_xacro: bool,
    skip_missing: bool,
    faults: str | None,
) -> None:
    """Validate WORLD, and a file of faults for it: one line a problem, exit code 2; nothing and 0 where it is sound."""
    try:
        world = load_world(world_file, path, xacro, expand_xacro=expand_xacro, skip_missing=skip_missing, faults=faults)
    except NavsenseError as error:
        for problem in (error.problems if isinstance(error, SdfError) else ()) or (error,):
            click.echo(str(problem))
        sys.exit(2)
    from navsense.sensor_run import list_unreadable_surfaces

    print_warnings(world, err=False)
    unsound = [str(problem) for problem in list_unreadable_surfaces(world)]
    for line in unsound:
        click.echo(line)
    if unsound:
        sys.exit(2)
    click.echo(
        f"{world_file}: {len(world.models)} models, {len(world.sensors)} sensors, {len(world.clocks)} clocks: sound"
    )


@cli.command()
@click.argument("world_file", metavar="WORLD")
@add_world_options
@click.option("--kalibr", metavar="FILE", help="Write the IMU's noise as YAML for a filter.")
@click.option("--sensor", "name", help="Which IMU --kalibr means, where there are several.")
@click.option("--picture", metavar="FILE", help="Draw ground, tracks and current (.png, .svg, .pdf).")
@click.option("--motion", multiple=True, metavar="FILE|MODEL=FILE", help="Motion log or recording, of a model.")
@fidelity_option
@click.option("--duration", type=float, help="Seconds of --picture; without it, as long as each motion lasts.")
def describe(
    world_file: str,
    path: tuple[str, ...],
    xacro: tuple[str, ...],
    expand_xacro: bool,
    skip_missing: bool,
    faults: str | None,
    kalibr: str | None,
    name: str | None,
    picture: str | None,
    motion: tuple[str, ...],
    fidelity: str | None,
    duration: float | None,
) -> None:
    """Say what WORLD holds: sensors, rates, clocks, topics, noise, and what is not supported and why."""
    from navsense.description import describe, write_kalibr
    from navsense.simulation import load_motions

    if picture is not None:
        from navsense.picture import check as check_picture
        from navsense.picture import draw

        check_picture(picture)
    elif duration is not None:
        raise SimulationError("--duration", duration, allowed="is of a picture: name one with --picture")
    world: World = load_world(
        world_file,
        path,
        xacro,
        expand_xacro=expand_xacro,
        skip_missing=skip_missing,
        faults=faults,
        fidelity=fidelity,
    )
    moved = load_motions(world, parse_motion_options(motion))
    for line in describe(world, moved):
        click.echo(line)
    if kalibr:
        click.echo(f"wrote {write_kalibr(world, kalibr, name)}")
    if picture is not None:
        draw(picture, world, motion=moved, duration=duration)
        click.echo(f"wrote {picture}")


@cli.command()
@click.argument("file")
def info(file: str) -> None:
    """Say what the recording FILE holds."""
    from navsense.recordings.summary import read_summary

    found = read_summary(file)
    table = make_table("topic", "type", "messages")
    for entry in found.entries:
        add_row(table, entry.name, entry.type, str(entry.count))
    print_table(table)
    click.echo(found.headline)
    for note in found.notes:
        click.echo(f"note: {note}")


@cli.command()
@click.argument("file")
@click.option("-o", "--output", metavar="OUT", help="Where to write; FILE with -recovered by default.")
@click.option("--remove", is_flag=True, help="Remove the hidden folder of the crashed recording and save nothing.")
def recover(file: str, output: str | None, remove: bool) -> None:
    """Recover the crashed recording FILE. If FILE is a folder, list the crashed recordings in it."""
    from navsense.recordings import leftovers
    from navsense.recordings.base import to_path

    path = to_path(file)
    one = leftovers.find_leftover(path)
    if (one is None and path.is_dir()) or remove:
        found = leftovers.list_leftovers(path) if one is None and path.is_dir() else [one] if one else []
        for left in found:
            if remove and not left.is_being_written and leftovers.remove_leftover(left):
                click.echo(f"{left.path}: removed the crashed recording")
            else:
                click.echo(str(left))
        if not found:
            click.echo(f"{file}: no crashed recording")
        return
    made = leftovers.recover(file, output)
    click.echo(made.headline)
    for note in made.notes:
        click.echo(f"note: {note}")


@cli.command()
@click.argument("file")
@click.argument("output")
@click.option("--run", "number", type=int, help="Which run of a recording of several.")
@click.option("--epoch", type=int, help="Integer second at which OUTPUT begins; without it, as FILE does.")
@ros_option
def convert(file: str, output: str, number: int | None, epoch: int | None, ros: str | None) -> None:
    """Write the recording FILE to OUTPUT, in the format of its suffix.

    .mcap, .bag (ROS 1), .db3 (a folder, ROS 2), .npz, .parquet, .csv (a folder of tables), .euroc (a folder); .pd0,
    .pd6, .wl.json, .nmea, of one DVL or ADCP; a name without a suffix is the folder of a bag of ROS 2 with MCAP in it.
    Prints what has no place there.
    """
    from navsense.recordings.convert import convert as convert_recording

    made = convert_recording(file, output, run=number, epoch=epoch, ros=ros)
    click.echo(f"wrote {made.path}: {made.count} {made.unit}")
    for line in made.losses:
        click.echo(f"not carried: {line}")
    for note in made.notes:
        click.echo(f"note: {note}")


@cli.command()
@click.argument("file")
@click.option("-o", "--output", metavar="OUT.html", default="report.html", show_default=True, help="The page.")
@click.option("--world", metavar="WORLD", help="What FILE was recorded from: its ground and clocks are shown too.")
@expand_xacro_option
def report(file: str, output: str, world: str | None, expand_xacro: bool) -> None:
    """Show the recording FILE on one page: warnings, tracks, clocks, each sensor against truth and declared noise.

    Without --world a world file of the recorded name beside FILE is taken, if there is one.
    """
    from navsense.report import write

    written = write(file, output, world=world, expand_xacro=expand_xacro)
    click.echo(f"wrote {written}: {written.stat().st_size / 1e6:.1f} MB")


@cli.command()
@click.argument("file")
@click.option(
    "--sensor", "--topic", "sensor", metavar="NAME", help="Which magnetometer: sensor, topic, or columns mx,my,mz."
)
@click.option(
    "--attitude",
    metavar="none|truth|NAME",
    default="none",
    show_default=True,
    help="Sensor to world: a topic (Imu, Odometry, PoseStamped, /tf), an IMU, columns qw,qx,qy,qz, the truth.",
)
@click.option(
    "--attitude-stddev", type=float, metavar="DEGREES", help="What the attitude is off by; 0.5, of a recorded truth 0."
)
@click.option(
    "--mounting",
    type=(float, float, float),
    metavar="ROLL PITCH YAW",
    help="Degrees, of the sensor on the body that the attitude is of, where FILE does not say it.",
)
@click.option(
    "--unit",
    type=click.Choice(["T", "mT", "uT", "nT", "G", "mG", "none"]),
    help="Of the readings; without it, as FILE says. none: not checked.",
)
@click.option("--strength", metavar="NUMBER[UNIT]", help="Of the earth's field at the place, as 48.3uT.")
@click.option("--no-soft-iron", is_flag=True, help="Strength and bias alone.")
@click.option("--run", "number", type=int, default=0, show_default=True, help="Which run of a recording of several.")
@click.option("-o", "--output", metavar="OUT.json", help="Write the calibration.")
@click.option("--picture", metavar="OUT.png", help="Draw the readings before and after (.png, .svg, .pdf).")
def calibrate(
    file: str,
    sensor: str | None,
    attitude: str,
    attitude_stddev: float | None,
    mounting: tuple[float, float, float] | None,
    unit: str | None,
    strength: str | None,
    no_soft_iron: bool,
    number: int,
    output: str | None,
    picture: str | None,
) -> None:
    """Calibrate the magnetometer in FILE: a recording, any ROS bag, or CSV with a header.

    Without --attitude from the ellipsoid that the readings lie on, with it from where the field should have been.
    Exit code 0 where the verdict is ok, 1 where it is poor, 2 where the readings allow no calibration.
    """
    from navsense.calibration.files import calibrated, check_output, in_options, read
    from navsense.calibration.picture import draw, draw_refused
    from navsense.figures import SUFFIXES, require_matplotlib

    for target, suffixes in ((output, (".json",)), (picture, SUFFIXES)):
        if target is not None:
            check_output(target, suffixes)
    if picture is not None:
        require_matplotlib(CalibrationError)
    turn = None if mounting is None else [math.radians(angle) for angle in mounting]
    samples = read(file, sensor=sensor, attitude=attitude, unit=unit, mounting=turn, run=number)
    click.echo(f"{file}: {samples.source}; attitude: {samples.attitude}")
    for note in samples.notes:
        click.echo(f"note: {note}")
    try:
        result, notes = calibrated(
            samples, strength=strength, soft_iron=not no_soft_iron, attitude_stddev=attitude_stddev
        )
    except CalibrationError as error:
        if picture and len(samples.field):
            draw_refused(picture, samples.field, str(error), unit=samples.unit)
            click.echo(f"wrote {picture}: the readings as they are")
        raise
    for note in notes:
        click.echo(f"note: {note}")
    click.echo(in_options(str(result)))
    if output:
        result.save(output)
        click.echo(f"wrote {output}")
    if picture:
        draw(picture, samples.field, result, rotation_ws=samples.rotation_ws, noise=samples.noise)
        click.echo(f"wrote {picture}")
    if not result.verdict.ok:
        sys.exit(1)


@cli.command()
def bench() -> None:
    """Measure this machine: nanoseconds a sample of each noise model and each sensor, beside their draws alone."""
    from navsense.analysis.bench import table as measure_rows

    table = make_table("what", "ns/sample", "draws alone", "draws/total", "densities, and what its samples show")
    for row in measure_rows():
        draws = f"{row.draws:.1f}" if row.draws else "-"
        ratio = f"{row.ratio:.2f}" if row.draws else "-"
        add_row(table, row.name, f"{row.nanoseconds:.1f}", draws, ratio, row.densities)
    print_table(table)


class ConsoleHandler(logging.Handler):
    """Prints what the library tells of its work on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line; warnings have the prefix `warning: `."""
        click.echo(f"{'warning: ' if record.levelno >= logging.WARNING else ''}{record.getMessage()}", err=True)


@contextmanager
def print_library_messages() -> Iterator[None]:
    """Print what the library tells and warns of as plain lines, without the place in its source."""

    def show_warning(message: Warning | str, *_place: object, **_more: object) -> None:
        click.echo(f"warning: {message}", err=True)

    logger, said = logging.getLogger("navsense"), ConsoleHandler()
    before = logger.level
    logger.addHandler(said)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        logger.removeHandler(said)
        logger.setLevel(before)


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM as an interrupt: the command closes its files."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def discard_output() -> None:
    """Send what is left of the standard output nowhere: the interpreter would fail on it once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


class DiscardingFile(io.FileIO):
    """A file that discards the data that cannot be written, for example to a full disk."""

    def write(self, data: ReadableBuffer) -> int:
        """Write data. Return their full size if that fails."""
        with contextlib.suppress(OSError):
            if (written := super().write(data)) is not None:
                return written
        return memoryview(data).nbytes


def tolerate_failing_stderr() -> None:
    """Discard messages that cannot be written to the standard error. The command and its exit code do not change."""
    old = sys.stderr
    if old is sys.__stderr__ and isinstance(old, io.TextIOWrapper):
        file = io.BufferedWriter(DiscardingFile(old.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(file, old.encoding, old.errors, line_buffering=True)


def ignore_signals() -> None:
    """Ignore interrupts while the interpreter ends: the command is complete, and so is its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Run the command line; a `NavsenseError` ends in one line on standard error and exit code 2."""
    if sys.stdout is None:  # closed before the start
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    tolerate_failing_stderr()
    try:
        with print_library_messages(), interrupt_on_sigterm():
            cli(standalone_mode=False)
        atexit.register(ignore_signals)
    except NavsenseError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Abort as error:
        # Click also aborts on an EOFError, which it takes for the end of keyboard input. Here it means a damaged file.
        if isinstance(error.__context__, EOFError):
            raise error.__context__ from None
        click.echo("stopped; what was recorded until then is kept", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (ClosedOutputError, BrokenPipeError):
        discard_output()
        sys.exit(0)
    except OSError as error:
        discard_output()
        click.echo(f"error: cannot write the output: {error.strerror or error}", err=True)
        sys.exit(2)
