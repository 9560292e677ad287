"""`navsense info`, `convert`, `recover` and `report`: contents, formats, repair and reports of recordings."""

from __future__ import annotations

import click

from navsense.cli.options import (
    INTEGER,
    CheckedCommand,
    OutputCommand,
    WorldOptions,
    add_reading_options,
    print_notes,
    ros_option,
    verbose_option,
)
from navsense.cli.progress import show_progress
from navsense.cli.tables import Column, print_table, wrap_line
from navsense.core.text import format_count, format_size


@click.command(cls=CheckedCommand)
@click.argument("file")
@verbose_option
def info(file: str, verbose: bool) -> None:
    """Print the contents of the recording FILE.

    The command prints the topics and the number of their messages, or the sensors and the number of their rows. It also
    prints the size, the time span and the metadata.
    """
    from navsense.recordings.summary import read_summary

    summary = read_summary(file)
    columns = (
        Column("topic" if summary.unit == "message" else "name", "name"),
        Column("type", "name"),
        Column(f"{summary.unit}s", "number"),
    )
    print_table(columns, [(entry.name, entry.type, str(entry.count)) for entry in summary.entries], verbose=verbose)
    click.echo(wrap_line(summary.headline, verbose=verbose))
    print_notes(summary.notes)


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option(
    "-o", "--output", metavar="OUT", help="Recovered recording. Default: NAME-recovered for a FILE with the name NAME."
)
@click.option("--remove", is_flag=True, help="Delete the truncated recording; do not recover it.")
def recover(file: str, output: str | None, remove: bool) -> None:
    """Recover FILE, a truncated recording.

    If FILE is a folder, the command lists the truncated recordings in it.
    """
    from navsense.recordings import leftovers
    from navsense.recordings.base import to_path
    from navsense.recordings.format import INTACT

    path = to_path(file)
    leftover = leftovers.find_leftover(path)
    is_folder = leftover is None and path.is_dir()
    if not is_folder and not remove:
        recovered = leftovers.recover(file, output)
        click.echo(recovered.headline if recovered.path else f"{file}: {recovered.loss_text}")
        print_notes(recovered.notes)
        return
    truncated = leftovers.list_leftovers(path) if is_folder else [leftover] if leftover else []
    for leftover in truncated:
        if remove and not leftover.is_being_written and leftovers.remove_leftover(leftover):
            click.echo(f"{leftover.path}: removed the truncated recording")
        else:
            click.echo(str(leftover))
    if not truncated:
        is_intact = is_folder and leftovers.is_intact(path)
        click.echo(f"{file}: {INTACT if is_intact else 'no truncated recording'}")


@click.command(cls=OutputCommand)
@click.argument("file")
@click.argument("output", metavar="OUT")
@click.option(
    "--run", "number", type=INTEGER, metavar="N", help="Number of the run in FILE. Required if FILE has several runs."
)
@click.option(
    "--epoch", type=INTEGER, metavar="SECONDS", help="Unix time of the start, an integer. Default: that of FILE."
)
@ros_option
def convert(file: str, output: str, number: int | None, epoch: int | None, ros: str | None) -> None:
    """Convert the recording FILE to OUT.

    The suffix of OUT selects the format. OUT without a suffix is a ROS 2 bag with MCAP; with .db3 it is one with
    SQLite. The formats PD0, PD6, Water Linked JSON and NMEA are the output of one DVL or ADCP. The command lists the
    data that OUT cannot contain.
    """
    from navsense.recordings.convert import convert as convert_recording

    with show_progress():
        result = convert_recording(file, output, run=number, epoch=epoch, ros=ros)
    click.echo(f"wrote {result.path}: {format_count(result.count, result.unit)}")
    for line in result.losses:
        click.echo(f"not converted: {line}")
    print_notes(result.notes)


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option("-o", "--output", metavar="OUT", default="report.html", show_default=True, help="HTML page.")
@click.option(
    "--world",
    metavar="WORLD",
    help="World file of FILE: its ground, and the sensors, clocks and faults that FILE does not contain. Default: the "
    "only .sdf or .world file in the folder of FILE whose <world name> is that of the recording.",
)
@add_reading_options
def report(file: str, output: str, world: WorldOptions | None) -> None:
    """Write an HTML page about the recording FILE.

    The page shows warnings, tracks, clocks and sensors. The residuals of each sensor (reading minus ideal reading) are
    compared with the declared noise.
    """
    from navsense.report import write

    with show_progress():
        path = write(file, output, world=None if world is None else world.load())
    click.echo(f"wrote {path}: {format_size(path.stat().st_size)}")
