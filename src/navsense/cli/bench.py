"""`navsense bench`: the speed of this machine."""

from __future__ import annotations

import click

from navsense.cli.options import CheckedCommand, add_row, make_table, print_table


@click.command(cls=CheckedCommand)
def bench() -> None:
    """Measure the time per sample of noise models and sensors.

    The column "draws alone" has the time of the random draws, a part of the total.
    """
    from navsense.analysis.bench import measure_all

    table = make_table("model", "ns/sample", "draws alone", "draws/total", "declared and measured densities")
    for row in measure_all():
        draws = f"{row.draws:.1f}" if row.draws else "-"
        ratio = f"{row.ratio:.2f}" if row.draws else "-"
        add_row(table, row.name, f"{row.nanoseconds:.1f}", draws, ratio, row.densities)
    print_table(table)
