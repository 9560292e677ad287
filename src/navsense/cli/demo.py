"""`navsense demo`: a first run, with something to look at."""

from __future__ import annotations

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
    run = ns.open("{flight}")
    print(run["imu"]["angular_velocity"])

Calibrate the compass:
    navsense calibrate {drive} --attitude truth

Simulate your own world, or a copy of the demo's world:
    navsense run WORLD.sdf --duration 60 -o FILE.mcap
    {world}
"""


@click.command(cls=CheckedCommand)
@click.option(
    "-o", "--output", metavar="FOLDER", default="navsense-demo", show_default=True, help="Folder to write to."
)
def demo(output: str) -> None:
    """Simulate a quadrotor and write a recording, a report and a picture of it.

    The command needs no other files. It also records a compass near iron, to try `navsense calibrate`.
    """
    click.echo("simulating a quadrotor with IMU, compass, barometer, altimeter and GPS")
    from navsense.core.text import format_size
    from navsense.demo import QUADROTOR, write_demo

    with ExitStack() as stack:
        stack.enter_context(report_interrupt(is_recording=True))
        display = stack.enter_context(show_progress())
        advance = stack.enter_context(interrupt_between_steps(display.advance))
        files = list(write_demo(output, progress=advance))
    for file in files:
        click.echo(f"wrote {file.path}: {file.content}, {format_size(file.path.stat().st_size)}")
    paths = {file.kind: file.path for file in files}
    click.echo(NEXT_STEPS.format(**paths, world=QUADROTOR), nl=False)
