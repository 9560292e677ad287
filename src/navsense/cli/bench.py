"""`navsense bench`: the speed of this machine."""

from __future__ import annotations

import click

from navsense.cli.options import CheckedCommand
from navsense.cli.progress import show_progress
from navsense.cli.tables import Column, print_table


@click.command(cls=CheckedCommand)
def bench() -> None:
    """Measure the time per sample of noise models and sensors.

    The column "ns/sample" has the total time, "random draws" the time of the random numbers alone. The last column
    compares declared noise densities with those of simulated samples.
    """
    from navsense.analysis.bench import measure_all

    rows = []
    with show_progress():
        for row in measure_all():
            draws, ratio = (f"{row.draws:.1f}", f"{row.ratio:.2f}") if row.draws else ("-", "-")
            rows.append((row.name, f"{row.nanoseconds:.1f}", draws, ratio, row.densities))
    numbers = [Column(title, "number") for title in ("ns/sample", "random draws", "draws/total")]
    print_table((Column("model"), *numbers, Column("declared and fitted densities")), rows)
