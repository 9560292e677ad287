"""The page of a campaign."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import navsense as ns
from navsense.analysis import monte_carlo
from navsense.campaigns.campaign import make_campaign
from navsense.campaigns.command import ShellCommand
from navsense.campaigns.report_columns import ReportColumns
from navsense.campaigns.result import CampaignResult
from navsense.campaigns.rows import COMMAND, Row, make_table
from navsense.cli import cli
from navsense.cli.campaign import print_columns
from navsense.core.errors import Where
from navsense.report.axes import make_linear_axis, make_log_axis
from navsense.report.campaign_page import check_campaign_page, write_campaign

pytestmark = pytest.mark.requirement("CAM-1")

RUNS, ROWS = 40, 25

RATE = "imu.rate"


Values = Mapping[str, Any]


def make_result(
    folder: Path,
    reduce: Callable[[Mapping[str, Any], int], Values | None],
    runs: int = 40,
    world: Path = Path(__file__).parents[2] / "examples" / "quadrotor.sdf",
    **options: Any,
) -> CampaignResult:
    """Return a campaign whose rows are drawn here by point and run; None is a run that failed."""
    import pyarrow as pa

    campaign = make_campaign(ns.load(world), runs, 1.0, reduce=dict, command=ShellCommand("navsense run w"), **options)
    tables = []
    for point in campaign.points:
        values = [reduce(point, run) for run in range(runs)]
        rows = [Row(run, row or {}, failure="" if row else "no <row>") for run, row in enumerate(values)]
        commands = [campaign.format_command(point, run) for run in range(runs)]
        table = make_table(rows, point, has_recording=False)
        tables.append(table.append_column(COMMAND, pa.array(commands, pa.string())))
    return CampaignResult(campaign, folder, pa.concat_tables(tables, promote_options="permissive").combine_chunks())


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return a campaign of two points; run 3 of the first point failed."""
    rng = np.random.default_rng(1)

    def reduce(point: Mapping[str, Any], run: int) -> Values | None:
        error = rng.normal(size=(ROWS, 2))
        values = {
            "time": np.arange(ROWS, dtype=np.float64),
            "error": error,
            "nees": (error**2).sum(axis=1),
            "size": float(np.linalg.norm(error[-1])),
            "last_nees": float((error[-1] ** 2).sum()),
            "found": bool(error[0, 0] > 0.0),
            "name": "a text",
        }
        return None if run == 3 and point[RATE] == 50.0 else values

    return make_result(tmp_path_factory.mktemp("campaign"), reduce, RUNS, sweep={RATE: [50.0, 100.0]})


def write(result: CampaignResult, folder: Path, **columns: Any) -> str:
    """Return the page of a campaign."""
    return write_campaign(result, folder / "page.html", ReportColumns(**columns)).read_text()


def read_section(page: str, name: str) -> str:
    """Return a section of a page."""
    return page.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_page_has_the_statistics_of_each_point(result: CampaignResult, tmp_path: Path) -> None:
    path = write_campaign(result, tmp_path / "page.html", ReportColumns(nees={"nees": 2}))
    page = path.read_text()
    for rate, count in ((50.0, 39), (100.0, 40)):
        values = result.get_array("size", {RATE: rate})
        assert values.shape == (count,)
        mean = monte_carlo.estimate_mean(values)
        text = f"<td>{count}</td><td>{mean.value:.4g} ({mean.low:.4g} to {mean.high:.4g})</td>"
        assert f'<th scope="row">size</th><td>{rate}</td>{text}' in page
        assert f"error, imu.rate = {rate}" in page
        low, high = monte_carlo.compute_nees_bounds(2, count)
        assert f"inside the bounds {low:.3g} to {high:.3g}." in page
    assert "no &lt;row&gt;" in page
    command = "navsense run w --duration 1.0 --seed 0 --run 3 --set imu.rate=50.0"
    assert command in re.sub(r"</?span>", "", read_section(page, "failures"))
    assert "<script" not in page


def test_page_lists_the_worst_runs_of_each_point(result: CampaignResult, tmp_path: Path) -> None:
    section = read_section(write_campaign(result, tmp_path / "page.html").read_text(), "worst")
    shown = re.findall(r"<td>([\d.]+)</td><td>([\d.]+)</td><td class=\"command\">navsense run", section)
    sizes = {rate: np.sort(result.get_array("size", {RATE: rate}))[::-1] for rate in (50.0, 100.0)}
    assert shown == [(f"{rate}", f"{size:.4g}") for rate, each in sizes.items() for size in each[:3]]


SPREAD = 21
"""Runs whose values are k / 20: the quantiles of 5, 50 and 95 % are 0.05, 0.5 and 0.95."""


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """Return a campaign whose statistics have closed forms: errors k / 20 (1 s + time), in three rows."""
    growth = np.array([1.0, 2.0, 3.0])

    def reduce(_: Mapping[str, Any], run: int) -> Values:
        share = run / (SPREAD - 1)
        nees = np.array([2.0, 8.0, 4.0 * share, 0.1])  # mean 2, 8, 2, 0.1: two of four are inside the bounds
        row = {"time": growth - 1.0, "error": share * growth, "stddev": 0.5 * growth, "instant": np.arange(4.0)}
        return row | {"nees": nees, "size": share, "length": 0.1 + run * 1e-16, "profile": growth}

    return make_result(tmp_path_factory.mktemp("spread"), reduce, SPREAD)


def format_path(across: list[float], down: list[float]) -> str:
    """Return a path of points in units of the width and the height of a plot."""
    return "L".join(f"{np.rint(1000.0 * x):.0f},{np.rint(1000.0 * y):.0f}" for x, y in zip(across, down, strict=True))


def test_errors_are_drawn_as_computed_by_hand(spread: CampaignResult, tmp_path: Path) -> None:
    """The limits +-2 sigma, 3 m at the end, determine the axis: from -3.3 m to 3.3 m, with a margin of 5 %."""
    section = read_section(write(spread, tmp_path, deviations={"error": "stddev"}, units={"error": "m"}), "errors")

    def draw(value: float, order: int = 1) -> str:
        down = [1.0 - (value * growth + 3.3) / 6.6 for growth in (1.0, 2.0, 3.0)]
        return format_path([0.0, 0.5, 1.0][::order], down[::order])

    rms = np.sqrt(2870.0 / SPREAD) / 20.0  # 1 + 4 + 9 + ... + 400 = 2870
    assert f'<path class="span" d="M{draw(0.05)}L{draw(0.95, -1)}Z"/>' in section
    assert re.findall('<path class="(c0|c1|declared)" d="M(.*?)"/>', section) == [
        ("c0", draw(0.5)),
        ("c1", draw(rms)),
        ("declared", draw(-1.0)),
        ("declared", draw(1.0)),
    ]
    low, high = 3.0 * rms * np.sqrt(SPREAD / stats.chi2.ppf((0.975, 0.025), SPREAD))
    assert f"for normal errors: error {3.0 * rms:.4g} ({low:.4g} to {high:.4g}) m." in section
    assert "±2 standard deviations of the estimate" in section
    assert "declared" not in read_section(write(spread, tmp_path), "errors")


def test_mean_nees_is_drawn_as_computed_by_hand(spread: CampaignResult, tmp_path: Path) -> None:
    """The largest mean determines the axis: from -0.4 to 8.4."""
    section = read_section(write(spread, tmp_path, nees={"nees": 2}, time="instant"), "consistency")
    across = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]

    def draw(*values: float) -> str:
        return format_path(across, [1.0 - (value + 0.4) / 8.8 for value in values])

    low, high = stats.chi2.ppf((0.025, 0.975), 2 * SPREAD) / SPREAD
    assert re.findall('<path class="(c0|declared)" d="M(.*?)"/>', section) == [
        ("c0", draw(2.0, 8.0, 2.0, 0.1)),
        ("declared", draw(*[low] * 4)),
        ("declared", draw(*[high] * 4)),
    ]
    assert f"Mean of 21 runs: 50 % of the instants are inside the bounds {low:.3g} to {high:.3g}." in section


def test_table_has_the_statistics_computed_by_hand(spread: CampaignResult, tmp_path: Path) -> None:
    section = read_section(write(spread, tmp_path), "columns")
    deviation = np.sqrt(770.0 / (SPREAD - 1)) / 20.0  # 2 (1 + 4 + ... + 100) = 770
    half = stats.t.ppf(0.975, SPREAD - 1) * deviation / np.sqrt(SPREAD)
    low, high = deviation * np.sqrt((SPREAD - 1) / stats.chi2.ppf((0.975, 0.025), SPREAD - 1))
    cells = (
        SPREAD,
        f"0.5 ({0.5 - half:.4g} to {0.5 + half:.4g})",
        f"{deviation:.4g} ({low:.4g} to {high:.4g})",
        "0.05",
        "0.5",
        "0.95",
    )
    assert f'<th scope="row">size</th>{"".join(f"<td>{cell}</td>" for cell in cells)}' in section


def test_console_has_the_statistics_of_the_page(
    spread: CampaignResult, result: CampaignResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The console leaves the intervals out, and lists rates with the number of runs instead of that of true values."""
    for campaign in (spread, result):
        print_columns(campaign)
        lines = {tuple(line.split()) for line in capsys.readouterr().out.splitlines()[1:]}
        section = re.sub(r" \([^()]* to [^()]*\)", "", read_section(write(campaign, tmp_path), "columns"))
        rows = re.findall('<tr><th scope="row">(.*?)</td></tr>', section)
        shown = {tuple(re.split("</t[dh]><td>", row)) for row in rows}
        printed = {line for line in lines if line[0] not in ("found", "length")}  # "constant" on the page
        assert printed
        assert printed <= shown
    rates = {line[1:] for line in lines if line[0] == "found"}
    assert rates == {
        (f"{rate}", f"{flags.size}", f"{flags.mean():.4g}")
        for rate in (50.0, 100.0)
        for flags in [campaign.get_array("found", {RATE: rate})]
    }


def test_values_that_would_overflow_are_omitted_on_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_columns(make_result(tmp_path, lambda _, run: {"b": [1.0, 1e308, 3.0, np.nan][run]}, 4))
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["b", "2", "2"]


def test_constant_columns_have_no_spread_and_no_figure(spread: CampaignResult, tmp_path: Path) -> None:
    """Values that differ by rounding are constant, also over a sweep."""
    section = read_section(write(spread, tmp_path), "columns")
    assert '<th scope="row">length</th><td>21</td><td>0.1</td><td>constant</td><td>–</td>' in section
    columns = {"time": np.arange(3.0), "length": 0.1}
    campaign = make_result(
        tmp_path, lambda point, run: columns | {"rate": point[RATE] + run}, 2, sweep={RATE: [5.0, 10.0]}
    )
    titles = re.findall(r"(\w+) over imu.rate", read_section(write(campaign, tmp_path), "sweep"))
    assert set(titles) == {"rate"}


def test_arrays_without_a_figure_are_noted(spread: CampaignResult, tmp_path: Path) -> None:
    notes = read_section(write(spread, tmp_path, nees={"nees": 2}, deviations={"error": "stddev"}), "notes")
    assert "Arrays without a figure, in results.parquet: instant, profile." in notes


@pytest.mark.parametrize(
    ("shift", "text", "is_drawn"), [(0.0, "", True), (0.4, "figures show the mean", True), (0.6, "no figure", False)]
)
def test_times_that_differ_between_runs_are_noted(shift: float, text: str, is_drawn: bool, tmp_path: Path) -> None:
    """Up to half a step, the mean time is drawn. Beyond it, rows of the runs belong to different instants."""

    def reduce(_: Mapping[str, Any], run: int) -> Values:
        return {"time": np.arange(3.0) + shift * run, "error": np.ones(3), "nees": np.ones(3)}

    page = write(make_result(tmp_path, reduce, 2), tmp_path, nees={"nees": 1})
    assert text in read_section(page, "notes")
    assert ("differs by" in page) == bool(text)
    assert ["<figure" in read_section(page, name) for name in ("errors", "consistency")] == [is_drawn, is_drawn]


def test_single_values_of_nees_are_in_a_table(result: CampaignResult, tmp_path: Path) -> None:
    section = read_section(write(result, tmp_path, nees={"last_nees": 2}), "consistency")
    for rate, count in ((50.0, 39), (100.0, 40)):
        mean = result.get_array("last_nees", {RATE: rate}).mean()
        low, high = monte_carlo.compute_nees_bounds(2, count)
        verdict = "below: the covariance is too large" if mean < low else "inside" if mean < high else "above"
        cells = (rate, count, 2, f"{mean:.4g}", f"{low:.4g} to {high:.4g}", verdict)
        assert "".join(f"<td>{cell}</td>" for cell in cells).removesuffix("</td>") in section


def test_truth_values_are_rates(result: CampaignResult, tmp_path: Path) -> None:
    page = write(result, tmp_path)
    for rate in (50.0, 100.0):
        found = result.get_array("found", {RATE: rate})
        interval = stats.binomtest(int(found.sum()), found.size).proportion_ci(0.95, "exact")
        text = f"{100 * found.mean():.4g} ({100 * interval.low:.4g} to {100 * interval.high:.4g})"
        assert f"<td>{rate}</td><td>{found.sum()} of {found.size}</td><td>{text}</td>" in read_section(page, "rates")
    assert "found" not in read_section(page, "columns")


def test_units_and_axes_label_figures_and_tables(result: CampaignResult, tmp_path: Path) -> None:
    units, axes = {"error": "m", "size": "m", RATE: "Hz"}, {"error": ("forward", "left")}
    page = write(result, tmp_path, units=units, axes=axes)
    assert {"forward (m)", "left (m)"} <= set(re.findall(r">([^<>]+)</text>", read_section(page, "errors")))
    assert {"mean of size (m)", "imu.rate (Hz)", "rate of found (%)"} <= set(
        re.findall(r">([^<>]+)</text>", read_section(page, "sweep"))
    )
    assert '<th scope="row">size (m)</th>' in page
    assert "size of the final error (m)" in read_section(page, "worst")


def test_figure_over_a_sweep_has_the_means_of_the_points(result: CampaignResult, tmp_path: Path) -> None:
    section = read_section(write(result, tmp_path), "sweep")
    means = [monte_carlo.estimate_mean(result.get_array("size", {RATE: rate})) for rate in (50.0, 100.0)]
    axis = make_linear_axis("", "", [np.array([[e.value, e.low, e.high] for e in means])])
    across = make_linear_axis("", "", [np.array([50.0, 100.0])]).compute_positions(np.array([50.0, 100.0]))
    down = 1.0 - axis.compute_positions(np.array([float(e.value) for e in means]))
    points = [f"{1000 * x:.0f},{1000 * y:.0f}" for x, y in zip(across, down, strict=True)]
    assert f'<path class="c0" d="M{"L".join(points)}"/>' in section


def test_allan_deviations_of_runs_are_merged(tmp_path: Path) -> None:
    """The line of all runs has the root of the mean of the variances, the thin lines its chi-square interval."""
    tau, dof = np.array([1.0, 2.0, 4.0]), np.array([30.0, 14.0, 6.0])
    rng = np.random.default_rng(3)
    drawn = [np.sqrt(rng.chisquare(dof) / dof / tau) for _ in range(8)]
    campaign = make_result(tmp_path, lambda _, run: {"t": tau, "adev": drawn[run], "k": dof}, 8)
    section = read_section(write(campaign, tmp_path, tau="t", allan={"adev": "k"}, units={"adev": "rad/s"}), "allan")
    variance = np.mean(np.square(drawn), axis=0)
    low, high = (np.sqrt(variance * 8 * dof / stats.chi2.ppf(p, 8 * dof)) for p in (0.975, 0.025))
    axis = make_log_axis("", "", [low, high, *np.quantile(drawn, (0.05, 0.95), axis=0)])
    for values, css_class in ((np.sqrt(variance), "c0"), (low, "dark"), (high, "dark")):
        rows = "|".join(f"{1000 * (1 - y):.0f}" for y in axis.compute_positions(values))
        pattern = r"\d+,(?:{})L\d+,(?:{})L\d+,(?:{})".format(*rows.split("|"))
        assert re.search(rf'<path class="{css_class}" d="M{pattern}"/>', section)
    assert {"adev (rad/s)", "averaging time (s)"} <= set(re.findall(r">([^<>]+)</text>", section))
    page = write(campaign, tmp_path, tau="t", allan={"adev": ""})
    assert "adev" in read_section(page, "allan")


def test_declared_noise_is_in_the_figure(tmp_path: Path) -> None:
    """White noise of 0.01 rad/s at 100 Hz has the Allan deviation 0.01 rad/s sqrt(0.01 s / tau)."""
    text = """<sdf version="1.9"><world name="w"><model name="robot"><link name="base"><sensor name="imu" type="imu">
    <update_rate>100</update_rate><imu><angular_velocity><y><noise type="gaussian"><stddev>0.01</stddev></noise></y>
    </angular_velocity></imu></sensor></link></model></world></sdf>"""
    (tmp_path / "w.sdf").write_text(text)
    tau = np.array([0.01, 0.04, 0.16])
    campaign = make_result(tmp_path, lambda *_: {"tau": tau, "adev": 0.02 / tau}, 3, world=tmp_path / "w.sdf")
    allan, declared = {"adev": ""}, {"adev": "imu.angular_velocity.1"}
    section = read_section(write(campaign, tmp_path, allan=allan, declared=declared), "allan")
    axis = make_log_axis("", "", [0.02 / tau, expected := 0.01 * np.sqrt(0.01 / tau)])
    rows = [f"{1000 * (1 - y):.0f}" for y in axis.compute_positions(expected)]
    assert re.search(rf'<path class="declared" d="M\d+,{rows[0]}L\d+,{rows[1]}L\d+,{rows[2]}"/>', section)
    page = write(campaign, tmp_path, allan=allan, declared={"adev": "imu.angular_velocity"})
    assert "adev: no declared noise of 1 components" in read_section(page, "notes")


def test_points_without_figures_are_listed(tmp_path: Path) -> None:
    rates = [10.0 * number for number in range(1, 16)]
    campaign = make_result(tmp_path, lambda _, run: {"error": np.full(3, run)}, 2, sweep={RATE: rates})
    section = read_section(write(campaign, tmp_path), "errors")
    assert section.count("<figure") == 12
    assert "the first 12 of 15 points. Points without figures: 3" in section
    assert re.findall("<li>(.*?)</li>", section) == [f"imu.rate = {rate}" for rate in (130.0, 140.0, 150.0)]


ODD: Mapping[str, tuple[Callable[[int], Values | None], str]] = {
    "all runs failed": (lambda _: None, "No run succeeded"),
    "texts only": (lambda _: {"name": "x"}, "No column has numbers"),
    "error is a text": (lambda _: {"error": "x"}, "error: has texts; must have numbers."),
    "no value": (lambda run: {"a": 1.0} | ({"error": None} if run > 9 else {}), ""),
    "some values": (lambda run: {"a": 1.0} | ({"error": 1.0} if run else {}), "error: 1 run without a value."),
    "arrays of some runs": (lambda run: {"a": 1.0} | ({"error": np.ones(3)} if run else {}), "1 run without a value."),
    "shapes differ": (lambda run: {"error": np.ones(3 + run)}, "error: the shape of the arrays differs between runs"),
    "empty arrays": (lambda _: {"error": np.empty((0, 2))}, "error: the arrays are empty."),
    "all NaN": (lambda _: {"error": np.full(3, np.nan), "nees": np.full(3, np.nan)}, "nees: no value is finite."),
    "some NaN": (lambda run: {"error": np.array([1.0, np.nan, run]), "nees": np.ones(3)}, ""),
    "infinite": (lambda run: {"error": np.array([1.0, np.inf]), "b": np.inf if run else 1.0}, "b: 3 values that are"),
    "NEES of matrices": (lambda _: {"nees": np.ones((3, 2))}, "nees: has 2 axes in each run"),
    "wrong axes": (lambda _: {"error": np.ones((3, 2))}, "error: axes has 3 names for 2 components."),
    "many components": (lambda _: {"error": np.ones((2, 5, 5))}, "error: figures show the first 12 of 25 components."),
    "other taus": (lambda run: {"adev": np.ones(3), "tau": np.arange(3.0) + run}, "adev: needs the same averaging"),
    "taus missing in shape": (lambda _: {"adev": np.ones(3), "tau": 1.0}, "adev: needs the same averaging"),
    "overflow": (
        lambda run: {"error": np.array([1.0, 1e308 * (-1) ** run]), "b": 1e308},
        "b: 4 values that are not fin",
    ),
    "NEES overflows": (lambda _: {"nees": np.full(3, 1e308)}, "nees: no value is finite."),
    "times overflow": (lambda _: {"error": np.ones(2), "time": np.array([-1e308, 1e308])}, "figures show the number"),
    "taus overflow": (lambda _: {"adev": np.ones(2), "tau": np.array([1.0, 1e308])}, "adev: needs the same averaging"),
    "taus are negative": (lambda _: {"adev": np.ones(2), "tau": np.array([-1.0, 1.0])}, "adev: needs the same averag"),
    "deviations of another shape": (lambda _: {"error": np.ones(3), "stddev": 1.0}, "stddev: needs the shape of error"),
    "dof of another shape": (lambda _: {"adev": np.ones(3), "tau": np.ones(3), "k": 1.0}, "k: needs the shape of adev"),
}
"""Rows by run, and what the page says of them."""


@pytest.mark.parametrize("name", ODD)
def test_rows_that_cannot_be_shown(name: str, tmp_path: Path) -> None:
    reduce, text = ODD[name]
    campaign = make_result(tmp_path, lambda _, run: reduce(run), 4)
    names = campaign.columns
    columns: dict[str, Any] = {"nees": {"nees": 2}} if "nees" in names else {}
    columns |= {"deviations": {"error": "stddev"}} if "stddev" in names else {}
    columns |= {"axes": {"error": ("x", "y", "z")}} if "error" in names else {}
    columns |= {"allan": {"adev": "k" if "k" in names else ""}} if "adev" in names else {}
    page = write(campaign, tmp_path, **columns)
    assert text in read_section(page, "notes")
    assert ">nan" not in page


def test_page_of_one_run(tmp_path: Path) -> None:
    row = {"error": np.ones((3, 2)), "nees": np.ones(3), "size": 2.0, "found": True}
    page = write(make_result(tmp_path, lambda *_: row, 1), tmp_path, nees={"nees": 2})
    assert '<th scope="row">size</th><td>1</td><td>2</td><td>–</td>' in page
    assert "1 of 1" in read_section(page, "rates")
    assert "1 run; the band is" in read_section(page, "errors")
    assert "Mean of 1 run" in read_section(page, "consistency")


def test_runs_that_diverged_are_the_worst(tmp_path: Path) -> None:
    ends = [1.0, np.nan, 3.0, 2.0]
    page = write(make_result(tmp_path, lambda _, run: {"error": np.array([0.0, ends[run]])}, 4), tmp_path)
    assert re.findall(r'<th scope="row">(\d)</th>', read_section(page, "worst")) == ["1", "2", "3", "0"]
    lengths = make_result(tmp_path, lambda _, run: {"error": np.arange(run + 1.0)}, 4)
    assert re.findall(r'row">(\d)</th>', read_section(write(lengths, tmp_path), "worst")) == ["3", "2", "1", "0"]


def test_unknown_column_is_an_error(result: CampaignResult, tmp_path: Path) -> None:
    with pytest.raises(ns.NavsenseError, match=r"^column: eror; must be one of .*; did you mean error\?$"):
        write(result, tmp_path, errors=("eror",))
    with pytest.raises(ns.NavsenseError, match="column: times; must be one of"):
        write(result, tmp_path, time="times")
    places = {"eror": Where("x.toml", 7)}
    with pytest.raises(
        ns.NavsenseError, match=r"^x.toml:7: column: eror; .*\?; correct \[report\] .*/results.parquet$"
    ):
        write(result, tmp_path, units={"eror": "m"}, places=places)
    with pytest.raises(ns.NavsenseError, match="must end in"):
        write_campaign(result, tmp_path / "page.txt")


def test_page_is_checked_before_the_runs(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    check_campaign_page(str(folder / "page.html"), str(folder))
    for output in (folder / "page.txt", tmp_path / "page.pdf", tmp_path / "missing" / "page.html"):
        with pytest.raises(ns.NavsenseError):
            check_campaign_page(str(output), str(folder))
    example = Path(__file__).parents[2] / "examples" / "survey_campaign.toml"
    outcome = CliRunner().invoke(cli, ["campaign", str(example), "-o", str(folder), "--report", "page.txt"])
    assert "page.txt; must end in .html or .htm" in str(outcome.exception)
    assert not folder.exists()
