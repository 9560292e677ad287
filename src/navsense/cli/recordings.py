"""`navsense info`, `convert` and `recover`: contents, formats and repair of recordings."""

from __future__ import annotations

import click

from navsense.cli.options import (
    CheckedCommand,
    add_row,
    make_table,
    print_notes,
    print_table,
    ros_option,
    run_number_option,
)
from navsense.core.text import format_count


@click.command(cls=CheckedCommand)
@click.argument("file")
def info(file: str) -> None:
    """Print the topics, message counts and time span of the recording FILE."""
    from navsense.recordings.summary import read_summary

    summary = read_summary(file)
    table = make_table("topic", "type", "messages")
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
    """Recover the crashed recording FILE. If FILE is a folder, list the crashed recordings in it."""
    from navsense.recordings import leftovers
    from navsense.recordings.base import to_path

    path = to_path(file)
    leftover = leftovers.find_leftover(path)
    is_folder = leftover is None and path.is_dir()
    if is_folder or remove:
        found = leftovers.list_leftovers(path) if is_folder else [leftover] if leftover else []
        for one in found:
            if remove and not one.is_being_written and leftovers.remove_leftover(one):
                click.echo(f"{one.path}: removed the crashed recording")
            else:
                click.echo(str(one))
        if not found:
            click.echo(f"{file}: no crashed recording")
        return
    recovered = leftovers.recover(file, output)
    click.echo(recovered.headline)
    print_notes(recovered.notes)


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.argument("output")
@run_number_option
@click.option("--epoch", type=int, help="Stamp of the start of OUTPUT in whole seconds. Default: that of FILE.")
@ros_option
def convert(file: str, output: str, number: int | None, epoch: int | None, ros: str | None) -> None:
    """Convert the recording FILE to OUTPUT. The suffix of OUTPUT selects the format.

    .mcap, .gz.mcap (Gazebo), .bag (ROS 1), .npz, .parquet; as a folder: .db3 (ROS 2), .csv, .euroc, or no suffix for
    a ROS 2 bag with MCAP; .pd0, .pd6, .wl.json and .nmea for one DVL or ADCP. Prints the data that OUTPUT cannot hold.
    """
    from navsense.recordings.convert import convert as convert_recording

    result = convert_recording(file, output, run=number, epoch=epoch, ros=ros)
    click.echo(f"wrote {result.path}: {format_count(result.count, result.unit)}")
    for line in result.losses:
        click.echo(f"not converted: {line}")
    print_notes(result.notes)
