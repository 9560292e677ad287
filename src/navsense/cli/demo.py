"""`navsense demo`: a first run, with something to look at."""

from __future__ import annotations

import shlex
from contextlib import ExitStack

import click

from navsense.cli.options import CheckedCommand
from navsense.cli.progress import show_progress
from navsense.cli.stop_signals import interrupt_between_steps, report_interrupt

NEXT_STEPS = """
What to do next

Open the recording in Foxglove, and the report in a browser:
    {flight}
    {report}

Read the recording in Python:
    import navsense as ns
    run = ns.open({flight_text})
    print(run["imu"]["angular_velocity"])

Calibrate the compass:
    navsense calibrate {compass_argument} --attitude truth

Simulate a copy of the demo's world, or a world of your own:
    cp {world_argument} world.sdf
    navsense run world.sdf --duration 60 --epoch {epoch} -o world.mcap
"""


def protect_dash(path: str) -> str:
    """Return a path that a command does not take for an option."""
    return f"./{path}" if path.startswith("-") else path


@click.command(cls=CheckedCommand)
@click.option(
    "-o", "--output", metavar="FOLDER", default="navsense-demo", show_default=True, help="Folder for the files."
)
def demo(output: str) -> None:
    """Simulate a quadrotor and write a report.

    The command writes two recordings, a report and a picture, and needs no other files. The second recording is that
    of a compass near iron, to try `navsense calibrate`. An earlier demo in the folder is removed first.
    """
    click.echo("simulating a quadrotor with IMU, compass, barometer, altimeter and GPS")
    from navsense.core.text import format_size
    from navsense.demo import QUADROTOR, write_demo
    from navsense.demo.files import EPOCH, remove_demo

    if remove_demo(output):
        click.echo(f"{output}: removed the earlier demo")
    with ExitStack() as stack:
        stack.enter_context(report_interrupt(f"the demo in {output} is incomplete"))
        display = stack.enter_context(show_progress())
        advance = stack.enter_context(interrupt_between_steps(display.advance))
        files = write_demo(output, progress=advance)
    for file in files:
        click.echo(f"wrote {file.path}: {file.content}, {format_size(file.path.stat().st_size)}")
    paths = {file.kind: protect_dash(str(file.path)) for file in files}
    steps = NEXT_STEPS.format(
        flight=paths["flight"],
        report=paths["report"],
        flight_text=repr(paths["flight"]),
        compass_argument=shlex.quote(paths["compass"]),
        world_argument=shlex.quote(str(QUADROTOR)),
        epoch=EPOCH,
    )
    click.echo(steps, nl=False)
