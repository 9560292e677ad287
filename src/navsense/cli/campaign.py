"""`navsense campaign`: compute the runs of an experiment file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import click

from navsense.cli.options import CheckedCommand
from navsense.cli.progress import make_bars
from navsense.cli.tables import Column, print_table
from navsense.core.errors import SimulationError
from navsense.core.text import format_count, format_duration

if TYPE_CHECKING:
    from navsense.campaigns.result import CampaignResult
    from navsense.campaigns.tasks import Progress

MAX_FAILED_RUNS = 5
"""Largest number of failed runs that are printed."""

MAX_POINTS = 20
"""Largest number of points of the sweep whose columns are printed."""


@contextmanager
def show_runs() -> Iterator[Progress]:
    """Yield a progress function that shows the number of runs, and the time that is left."""
    with make_bars() as bars:
        start, first = time.monotonic(), 0

        def advance(done: int, total: int) -> None:
            nonlocal start, first
            if not bars.tasks:  # no bar before an error of the arguments
                bars.add_task("runs", total=total, status="")
                start, first = time.monotonic(), done
            status = f"{done} of {total}"
            if first < done < total:
                left = (time.monotonic() - start) * (total - done) / (done - first)
                status += f", about {format_duration(round(left))} left"
            bars.update(bars.tasks[0].id, completed=done, total=total, status=status, refresh=True)

        yield advance


@click.command(cls=CheckedCommand)
@click.argument("experiment_file", metavar="EXPERIMENT")
@click.option("-o", "--output", metavar="FOLDER", help="Folder of the results. Default: the key out of EXPERIMENT.")
@click.option("--workers", type=int, metavar="N", help="Processes on this machine. Default: one for each core.")
@click.option("--scheduler", metavar="ADDRESS", help="Use the workers of a Dask scheduler, as tcp://host:8786.")
@click.option(
    "--tls-ca-file", metavar="FILE", help="Certificates that sign those of the scheduler (PEM), for tls://host:8786."
)
@click.option("--tls-cert", metavar="FILE", help="Certificate of this process (PEM).")
@click.option("--tls-key", metavar="FILE", help="Private key of this process (PEM).")
@click.option("--report", metavar="OUT", help="Write a page with the statistics to OUT (.html).")
def campaign(
    experiment_file: str,
    output: str | None,
    workers: int | None,
    scheduler: str | None,
    tls_ca_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    report: str | None,
) -> None:
    """Simulate the runs of EXPERIMENT, a TOML file.

    The command repeats no run that is complete. After an interrupt, the same command goes on.
    """
    from navsense.campaigns.computation import check_libraries, compute_campaign
    from navsense.campaigns.experiment_file import read_experiment

    check_libraries()
    tls = make_tls_settings(scheduler, (tls_ca_file, tls_cert, tls_key))
    experiment = read_experiment(experiment_file)
    folder = output or experiment.out
    if report is not None:
        from navsense.report.campaign_page import check_campaign_page

        check_campaign_page(report, folder)
    try:
        with tls, show_runs() as advance:
            result = compute_campaign(
                experiment.campaign,
                folder,
                client=scheduler,
                workers=workers,
                progress=advance,
                folders=experiment.folders,
            )
    except KeyboardInterrupt:
        click.echo(f"stopped; the complete runs are kept in {folder}; the same command goes on", err=True)
        sys.exit(130)
    print_columns(result)
    for run in result.failed_runs[:MAX_FAILED_RUNS]:
        values = "".join(f", {path} = {value}" for path, value in run.parameters.items())
        click.echo(f"warning: run {run.run}{values}: {run.failure}; repeat the run: {run.command}", err=True)
    if len(result.failed_runs) > MAX_FAILED_RUNS:
        more = format_count(len(result.failed_runs) - MAX_FAILED_RUNS, "more failed run")
        click.echo(f"warning: {more}, see the column failure of {folder}/results.parquet", err=True)
    reused = f", {result.reused} of them computed before" if result.reused else ""
    click.echo(f"wrote {folder}/results.parquet: {format_count(result.table.num_rows, 'run')}{reused}")
    if report is not None:
        from navsense.report.campaign_page import write_campaign

        click.echo(f"wrote {write_campaign(result, report, experiment.report)}")
    if len(result.failed_runs) == result.table.num_rows:
        sys.exit(2)


def make_tls_settings(scheduler: str | None, files: Sequence[str | None]) -> AbstractContextManager[object]:
    """Return a context with the files of `TLS_OPTIONS` in the configuration of Dask."""
    import dask

    from navsense.campaigns.connection import TLS_KEYS, TLS_OPTIONS

    given = {option: file for option, file in zip(TLS_OPTIONS, files, strict=True) if file is not None}
    if given and not (scheduler or "").startswith("tls://"):
        option, file = next(iter(given.items()))
        remedy = "add --scheduler tls://host:8786"
        raise SimulationError(option, file, allowed="is for a scheduler with TLS", remedy=remedy)
    keys = dict(zip(TLS_OPTIONS, TLS_KEYS, strict=True))
    return dask.config.set({f"distributed.comm.tls.{keys[option]}": file for option, file in given.items()})


def print_columns(result: CampaignResult) -> None:
    """Print mean, standard deviation and quantiles of each column of finite numbers, for each point of the sweep.

    The mean of truth values is their rate; they have no other numbers.
    """
    from navsense.analysis.campaign_statistics import CampaignStatistics
    from navsense.parameters import format_value

    statistics = CampaignStatistics(result)
    rows = []
    for name in statistics.list_names("number", "flag"):
        for point in statistics.points[:MAX_POINTS]:
            column = statistics.compute_column(name, point)
            count = column.values.size
            if count:
                numbers = [column.mean]
                if not column.is_flag and count > 1:
                    numbers += [column.stddev, *column.compute_quantiles()]
                texts = [f"{number:.4g}" for number in numbers]
                swept = [format_value(value) for value in point.values.values()]
                rows.append((name, *swept, f"{count}", *texts, *[""] * (5 - len(texts))))
    if rows:
        columns = [Column("column", "name"), *(Column(path, "name") for path in result.campaign.paths)]
        names = ("runs", "mean", "stddev", "5 %", "median", "95 %")
        print_table((*columns, *(Column(name, "number") for name in names)), rows, verbose=False)
    if len(result.campaign.points) > MAX_POINTS:
        click.echo(f"the first {MAX_POINTS} of {len(result.campaign.points)} points; --report has all of them")
