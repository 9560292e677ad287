"""`navsense report`: a recording as one HTML page."""

from __future__ import annotations

import click

from navsense.cli.options import CheckedCommand, expand_xacro_option


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option("-o", "--output", metavar="OUT.html", default="report.html", show_default=True, help="HTML page.")
@click.option(
    "--world",
    metavar="WORLD",
    help="World that FILE was recorded from, for its terrain and clocks. Default: the world file with the recorded "
    "name in the folder of FILE, if it exists.",
)
@expand_xacro_option
def report(file: str, output: str, world: str | None, expand_xacro: bool) -> None:
    """Write an HTML page about the recording FILE.

    It shows warnings, tracks, clocks, and the errors of each sensor against ground truth and declared noise.
    """
    from navsense.core.text import format_size
    from navsense.report import write

    path = write(file, output, world=world, expand_xacro=expand_xacro)
    click.echo(f"wrote {path}: {format_size(path.stat().st_size)}")
