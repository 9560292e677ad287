"""`navsense info`, `convert`, `recover` and `report`: contents, formats, repair and reports of recordings."""

from __future__ import annotations

import click

from navsense.cli.options import (
    CheckedCommand,
    add_row,
    check_not_recording,
    expand_xacro_option,
    make_table,
    print_notes,
    print_table,
    ros_option,
)
from navsense.core.errors import SdfError
from navsense.core.text import format_count, format_size


@click.command(cls=CheckedCommand)
@click.argument("file")
def info(file: str) -> None:
    """Print the contents of the recording FILE.

    The output has the topics or arrays, their number of messages or rows, the time span and the metadata.
    """
    from navsense.recordings.summary import read_summary

    summary = read_summary(file)
    table = make_table("topic" if summary.unit == "message" else "name", "type", f"{summary.unit}s")
    for entry in summary.entries:
        add_row(table, entry.name, entry.type, str(entry.count))
    print_table(table)
    click.echo(summary.headline)
    print_notes(summary.notes)


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option("-o", "--output", metavar="OUT", help="Recovered recording. Default: the name of FILE with -recovered.")
@click.option("--remove", is_flag=True, help="Delete the crashed recording instead of recovering it.")
def recover(file: str, output: str | None, remove: bool) -> None:
    """Recover the crashed recording FILE.

    If FILE is a folder, the command lists the crashed recordings in it.
    """
    from navsense.recordings import leftovers
    from navsense.recordings.base import to_path

    path = to_path(file)
    leftover = leftovers.find_leftover(path)
    is_folder = leftover is None and path.is_dir()
    if not is_folder and not remove:
        recovered = leftovers.recover(file, output)
        click.echo(recovered.headline)
        print_notes(recovered.notes)
        return
    crashed = leftovers.list_leftovers(path) if is_folder else [leftover] if leftover else []
    for leftover in crashed:
        if remove and not leftover.is_being_written and leftovers.remove_leftover(leftover):
            click.echo(f"{leftover.path}: removed the crashed recording")
        else:
            click.echo(str(leftover))
    if not crashed:
        click.echo(f"{file}: no crashed recording")


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.argument("output")
@click.option(
    "--run", "number", type=int, metavar="N", help="Number of the run in FILE. Required if FILE holds several runs."
)
@click.option("--epoch", type=int, metavar="SECONDS", help="Stamp of the start, an integer. Default: that of FILE.")
@ros_option
def convert(file: str, output: str, number: int | None, epoch: int | None, ros: str | None) -> None:
    """Convert the recording FILE to OUTPUT.

    The suffix of OUTPUT selects the format. The command prints the data that OUTPUT cannot hold.

    \b
    .mcap                          ROS 2 messages
    .gz.mcap                       Gazebo messages
    .bag                           ROS 1 bag
    .db3                           ROS 2 bag with SQLite (a folder)
    no suffix                      ROS 2 bag with MCAP (a folder)
    .npz, .parquet                 arrays
    .csv, .euroc                   tables (a folder)
    .pd0, .pd6, .wl.json, .nmea    output of one DVL or ADCP
    """  # noqa: D301 (click does not wrap a paragraph that begins with this character)
    from navsense.recordings.convert import convert as convert_recording

    result = convert_recording(file, output, run=number, epoch=epoch, ros=ros)
    click.echo(f"wrote {result.path}: {format_count(result.count, result.unit)}")
    for line in result.losses:
        click.echo(f"not converted: {line}")
    print_notes(result.notes)


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option("-o", "--output", metavar="OUT.html", default="report.html", show_default=True, help="HTML page.")
@click.option(
    "--world",
    metavar="WORLD",
    help="World of FILE, for terrain and clocks. Default: the world file in the folder of FILE with the recorded name.",
)
@expand_xacro_option
def report(file: str, output: str, world: str | None, expand_xacro: bool) -> None:
    """Write an HTML page about the recording FILE.

    The page shows warnings, tracks, clocks, and the errors of each sensor: reading minus ideal reading, compared with
    the declared noise.
    """
    from navsense.report import write

    try:
        path = write(file, output, world=world, expand_xacro=expand_xacro)
    except SdfError:
        if world is not None:
            check_not_recording(world)
        raise
    click.echo(f"wrote {path}: {format_size(path.stat().st_size)}")
