"""`navsense check` and `navsense describe`: errors and contents of a world."""

from __future__ import annotations

import sys

import click

from navsense.cli.options import (
    NUMBER,
    CheckedCommand,
    WorldOptions,
    add_world_options,
    bandwidth_option,
    fidelity_option,
    motion_option,
    parse_bandwidth_options,
    parse_motion_options,
    print_warnings,
    verbose_option,
)
from navsense.cli.progress import show_progress
from navsense.cli.tables import wrap_line
from navsense.core.errors import NavsenseError, SdfError, SimulationError


@click.command(cls=CheckedCommand)
@add_world_options
def check(world_options: WorldOptions) -> None:
    """Validate WORLD and its fault file.

    WORLD is an SDF, URDF or xacro file. The command prints one line for each error. Exit code 0: no errors; 2: errors.
    """
    try:
        world = world_options.load()
    except NavsenseError as error:
        for problem in (error.problems if isinstance(error, SdfError) else ()) or (error,):
            click.echo(str(problem))
        sys.exit(2)
    from navsense.core.text import format_count
    from navsense.simulation.motions import list_unreadable_surfaces

    print_warnings(world, err=False)
    with show_progress():
        problems = list(list_unreadable_surfaces(world))
    for problem in problems:
        click.echo(str(problem))
    if problems:
        sys.exit(2)
    counts = (
        format_count(len(parts), noun)
        for parts, noun in ((world.models, "model"), (world.sensors, "sensor"), (world.clocks, "clock"))
    )
    click.echo(f"{world_options.world_file}: no errors; {', '.join(counts)}")


@click.command(cls=CheckedCommand)
@add_world_options
@click.option("--kalibr", metavar="OUT", help="Write the noise of an IMU to OUT as Kalibr YAML.")
@click.option("--sensor", "name", metavar="NAME", help="The IMU for --kalibr. Required if WORLD has several.")
@click.option(
    "--picture", metavar="OUT", help="Draw the terrain, the tracks and the current to OUT (.png, .svg or .pdf)."
)
@click.option("--parameters", "show_parameters", is_flag=True, help="Print path and value of each parameter instead.")
@motion_option
@bandwidth_option
@fidelity_option
@click.option(
    "--duration",
    type=NUMBER,
    metavar="SECONDS",
    help="End of the tracks in --picture. Default: the end of each motion.",
)
@verbose_option
def describe(
    world_options: WorldOptions,
    kalibr: str | None,
    name: str | None,
    picture: str | None,
    show_parameters: bool,
    motion: tuple[str, ...],
    bandwidth: tuple[str, ...],
    fidelity: str | None,
    duration: float | None,
    verbose: bool,
) -> None:
    """Print the sensors, clocks and noise of WORLD.

    WORLD is an SDF, URDF or xacro file. The command also prints rates, and topics with --verbose. It lists the
    unsupported elements, each with the reason.
    """
    from navsense.description import describe, write_kalibr
    from navsense.runner.motion_sources import load_motions

    if picture is not None:
        from navsense.picture import check as check_picture
        from navsense.picture import draw

        check_picture(picture)
    elif duration is not None:
        raise SimulationError("--duration", duration, allowed="requires --picture")
    world = world_options.load(fidelity)
    if show_parameters:
        from navsense.parameters import format_value, list_parameters, list_part_paths

        for path, value in list_parameters(world):
            click.echo(f"{path} = {format_value(value)}")
        for path in list_part_paths(world):
            click.echo(f"{path} = -")
        return
    motions = load_motions(world, parse_motion_options(motion, world), parse_bandwidth_options(bandwidth))
    with show_progress():
        lines = list(describe(world, motions, topics=verbose))
    for line in lines:
        click.echo(wrap_line(line, verbose=verbose))
    if kalibr:
        click.echo(f"wrote {write_kalibr(world, kalibr, name)}")
    if picture is not None:
        with show_progress():
            draw(picture, world, motion=motions, duration=duration)
        click.echo(f"wrote {picture}")
