"""The page of a campaign."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.analysis import monte_carlo
from navsense.campaigns.command import ShellCommand
from navsense.campaigns.experiment_file import ReportColumns
from navsense.campaigns.plan import make_campaign
from navsense.campaigns.result import COMMAND, CampaignResult
from navsense.campaigns.rows import Row, make_table
from navsense.report.campaign_page import write_campaign

pytestmark = pytest.mark.requirement("CAM-1")

RUNS, ROWS = 40, 25

RATE = "imu.rate"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return a campaign of two points whose errors are drawn here; run 3 of the first point failed."""
    folder = tmp_path_factory.mktemp("campaign")
    world = ns.load(Path(__file__).parents[2] / "examples" / "quadrotor.sdf")
    campaign = make_campaign(
        world, RUNS, 1.0, reduce=dict, sweep={RATE: [50.0, 100.0]}, command=ShellCommand("navsense run w")
    )
    rng = np.random.default_rng(1)
    import pyarrow as pa

    tables = []
    for point in campaign.points:
        rows = []
        for run in range(RUNS):
            error = rng.normal(size=(ROWS, 2))
            values = {
                "time": np.arange(ROWS, dtype=np.float64),
                "error": error,
                "nees": (error**2).sum(axis=1),
                "size": float(np.linalg.norm(error[-1])),
                "name": "a text",
            }
            failed = run == 3 and point[RATE] == 50.0
            rows.append(Row(run, {} if failed else values, failure="no <row>" if failed else ""))
        table = make_table(rows, point, has_recording=False)
        commands = [campaign.format_command(point, run) for run in range(RUNS)]
        tables.append(table.append_column(COMMAND, pa.array(commands, pa.string())))
    return CampaignResult(campaign, folder, pa.concat_tables(tables, promote_options="permissive").combine_chunks())


def test_page_has_the_statistics_of_each_point(result: CampaignResult, tmp_path: Path) -> None:
    path = write_campaign(result, tmp_path / "page.html", ReportColumns(nees={"nees": 2}))
    page = path.read_text()
    for rate, count in ((50.0, 39), (100.0, 40)):
        values = result.get_array("size", {RATE: rate})
        assert values.shape == (count,)
        mean = monte_carlo.estimate_mean(values)
        text = f"<td>{count}</td><td>{mean.value:.4g} ({mean.low:.4g} to {mean.high:.4g})</td>"
        assert f'<th scope="row">{rate}</th><td>size</td>{text}' in page
        assert f"error, imu.rate = {rate}" in page
        low, high = monte_carlo.compute_nees_bounds(2, count)
        assert f"inside the bounds {low:.3g} to {high:.3g} of 95 %" in page
    assert "no &lt;row&gt;" in page
    assert "navsense run w --duration 1.0 --seed 0 --run 3 --set imu.rate=50.0" in page
    assert "<script" not in page


def test_page_lists_the_worst_runs(result: CampaignResult, tmp_path: Path) -> None:
    page = write_campaign(result, tmp_path / "page.html").read_text()
    section = page.partition('<section id="worst">')[2]
    sizes = np.sort(result.get_array("size"))[::-1]
    shown = re.findall(r"<td>([\d.]+)</td><td>navsense run", section)
    assert shown == [f"{size:.4g}" for size in sizes[:10]]


def test_unknown_column_is_an_error(result: CampaignResult, tmp_path: Path) -> None:
    with pytest.raises(ns.NavsenseError, match=r"column: eror; must be one of .*; did you mean error"):
        write_campaign(result, tmp_path / "page.html", ReportColumns(errors=("eror",)))
    with pytest.raises(ns.NavsenseError, match="must end in"):
        write_campaign(result, tmp_path / "page.txt")
