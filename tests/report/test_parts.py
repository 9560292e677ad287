"""Downsampling, axes, pictures, residuals and warnings of reports equal their definitions."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from scipy import stats

from navsense.core.names import shorten_names
from navsense.core.readings import ARRAY_GROUPS, Reading, Truth
from navsense.core.text import format_duration
from navsense.core.typing import AnyArray, FloatArray
from navsense.figures import MAGNITUDE_COLOURS, SIGNED_COLOURS, Scale, insert_gaps
from navsense.noise.specification import Noise
from navsense.picture.ground import MIN_STILL_SIZE, View
from navsense.picture.tracks import Track
from navsense.report import axes, clock_section, doppler, images, residuals, svg_figure
from navsense.report.allan_figure import MIN_ALLAN_ROWS, find_regular_stretch, list_noise_terms
from navsense.report.page import GRID_COLUMNS, GRID_FIGURES, make_grid_classes, make_page
from navsense.report.report_data import ReportData
from navsense.report.sensor_section import (
    compute_histogram_density,
    make_array_figures,
    make_array_sections,
)
from navsense.report.summary import list_track_facts
from navsense.report.svg_figure import UNITS, SvgFigure
from navsense.report.track import (
    MAX_RATIO,
    MIN_RATIO,
    limit_shape,
    make_height_figure,
    make_map_figure,
    make_track_map,
)
from navsense.report.warnings import find_entries
from navsense.sensors.magnetometer import Magnetometer
from navsense.sensors.navsat import NavSat
from navsense.world import MountedSensor, Switch, World

pytestmark = pytest.mark.requirement("REC-1")

RATE, COUNT = 50.0, 20_000
SIZE = 2e-7
NOISE = Noise(stddev=SIZE)
NAME = "boat::hull::compass"
SHEET = MountedSensor(NAME, Magnetometer(NOISE, NOISE, NOISE), "boat", "boat::hull", RATE, topic="/compass")

LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def make_reading(scale: float = 1.0, *, count: int = COUNT, clock_error: float = 0.0, **arguments: AnyArray) -> Reading:
    """Return magnetometer readings: a rotating field, a bias, a gain, and white noise of `scale` times SIZE."""
    time = np.arange(count) / RATE
    angle = 0.05 * time
    truth = 5e-5 * np.stack((np.cos(angle), np.sin(angle), np.ones(count)), axis=1)
    noise = scale * SIZE * np.random.default_rng(8).standard_normal((count, 3))
    field = 1.01 * truth + 3e-6 + noise
    everything = np.ones(count, dtype=np.bool_)
    flags: dict[str, AnyArray] = {"valid": everything, "emitted": everything, **arguments}
    error = np.full(count, clock_error)
    arrays, unit = {"field": np.where(flags["valid"][:, None], field, math.nan)}, {"field": "T"}
    errors: Mapping[str, AnyArray] = {"field": np.full((count, 3), 1e-6)}
    return Reading(NAME, "magnetometer", "hull", unit, time, error, arrays, {"field": truth}, errors, **flags)


def make_recording(found: Reading, height: FloatArray | None = None) -> ReportData:
    truth = {}
    if height is not None:
        n = height.size
        place = np.stack((np.linspace(0.0, 50.0, n), np.zeros(n), height), axis=1)
        zero, turn = np.zeros((n, 3)), np.tile((1.0, 0.0, 0.0, 0.0), (n, 1))
        truth["boat::hull"] = Truth("boat::hull", np.linspace(0.0, 400.0, n), place, turn, zero, zero, zero, zero)
    tracks = {"boat": "boat::hull"} if truth else {}
    return ReportData("boat.npz", "sea", {NAME: found}, truth, None, {NAME: SHEET}, tracks, {})


def list_warnings(found: ReportData) -> list[str]:
    sections = {name: make_array_sections(r, found.sensors.get(name)) for name, r in found.readings.items()}
    return [one.text for one in find_entries(found, sections, make_track_map(found)) if one.kind == "warning"]


def test_downsampling_keeps_spikes_and_adds_no_value() -> None:
    random = np.random.default_rng(3)
    x = np.sort(random.uniform(0.0, 9.0, 50_000))
    y = random.standard_normal(x.size)
    y[31_234], y[17], y[-1] = 40.0, -50.0, 60.0
    y[20_000:22_000] = math.nan
    places, values = svg_figure.downsample(x, y, 400)
    assert places.size <= 800
    assert {40.0, -50.0, 60.0} <= set(values[np.isfinite(values)].tolist())
    assert set(values[np.isfinite(values)].tolist()) <= set(y[np.isfinite(y)].tolist())
    edges = np.linspace(x[0], x[-1], 401)
    middles, low, high = svg_figure.find_column_extremes(x, y, 400)
    for place, lowest, highest in zip(middles, low, high, strict=True):
        column = int(np.argmin(np.abs(0.5 * (edges[1:] + edges[:-1]) - place)))
        inside = y[(x >= edges[column]) & ((x < edges[column + 1]) | (column == 399))]
        inside = inside[np.isfinite(inside)]
        assert (not inside.size and math.isnan(lowest)) or (inside.min(), inside.max()) == (lowest, highest)
    assert np.isnan(values).any()


def test_gaps_break_a_line() -> None:
    x = np.concatenate((np.arange(10.0), np.arange(30.0, 40.0)))
    places, values = insert_gaps(x, x)
    assert np.flatnonzero(np.isnan(values)).tolist() == [10]
    assert places[10] == 19.5
    assert np.isfinite(insert_gaps(np.arange(50.0), np.ones(50))[1]).all()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00234, "s", "2.34 ms"),
        (-4.1e-7, "T", "\u2212410 nT"),
        (101325.0, "Pa", "101.3 kPa"),
        (1234.0, "m", "1234 m"),
        (1e-3 - 1e-18, "s", "1 ms"),
        (2e-10, "m", "200 pm"),
        (2e-10, "rad", "0.0002 µrad"),
        (0.0, "rad", "0 rad"),
        (math.pi / 2, "rad", "90 °"),
        (0.5, "", "0.5"),
    ],
)
def test_quantities_use_readable_units(value: float, unit: str, text: str) -> None:
    assert axes.format_quantity(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "decimals", "text"),
    [
        (0.0, 0, "0 s"),
        (8.125, 0, "8.125 s"),
        (119.99, 0, "119.99 s"),
        (120.0, 0, "2 min"),
        (341.2, 0, "5 min 41 s"),
        (1559.99, 0, "26 min"),
        (1559.99, 2, "25 min 59.99 s"),
        (3600.0, 0, "1 h"),
        (3661.0, 2, "1 h 1 min 1 s"),
        (7199.9, 0, "2 h"),
        (7230.0, 0, "2 h 1 min"),
        (1e5, 0, "27 h 47 min"),
        (-300.0, 0, "-5 min"),
        (1e12, 0, "1e+12 s"),
    ],
)
def test_durations_use_readable_units(seconds: float, decimals: int, text: str) -> None:
    assert format_duration(seconds, decimals) == text


def test_figures_without_data_are_not_shown() -> None:
    """Reference lines alone are not data. A figure leaves out its plots without data."""
    time = axes.make_time_axis(0.0, 9.0)
    axis = axes.make_linear_axis("error", "m", [np.array([-1.0, 1.0])])
    x, nothing = np.arange(10.0), np.full(10, math.nan)
    figure = svg_figure.stack_plots("Error", time, [axis, axis], "")
    for plot in figure.plots:
        plot.draw_horizontal_line(0.0, "zero")
        plot.draw_line(x, np.ones(10), "declared")
        plot.draw_line(x, nothing, "c0")
        plot.draw_spans(np.zeros(0), np.zeros(0), "bad")
    assert not figure.has_data
    figure.plots[0].draw_line(x, 0.1 * x, "c0")
    assert figure.has_data
    assert figure.format_html().count('class="drawing"') == 1
    assert figure.format_html().count(">time (s)</text>") == 1, "the last plot that is shown has the labels of time"
    lost = make_reading(count=200, valid=np.zeros(200, dtype=np.bool_))
    assert "<figure" not in make_page(make_recording(lost))


@pytest.mark.parametrize(("low", "high"), [(-3.2e-9, 8.9e-9), (0.0, 1.0), (57.0, 57.2), (-1e6, 3e6), (20.0, 2.0)])
def test_ticks_are_round_ordered_and_inside(low: float, high: float) -> None:
    axis = axes.Axis(low, high, "", Scale(1.0, ""))
    ticks = axis.make_ticks(6)
    assert 2 <= len(ticks) <= 7
    parts = np.array([at for at, _ in ticks])
    assert ((parts >= -1e-9) & (parts <= 1.0 + 1e-9)).all()
    assert np.ptp(np.diff(parts)) < 1e-6
    for at, text in ticks:
        lead, _, power = text.replace("\u2212", "-").translate(LOWERED).partition("·10")
        value = float(lead) * 10.0 ** int(power or 0)
        assert value == pytest.approx(low + at * (high - low), rel=1e-4, abs=1e-6 * abs(high - low))


@pytest.mark.parametrize("most", [3, 5, 6])
@pytest.mark.parametrize("log", [False, True])
def test_axes_have_at_least_two_ticks(most: int, log: bool) -> None:
    """An axis has at least two ticks, and at most twice the requested number."""
    random = np.random.default_rng(6)
    for _ in range(2000):
        low, span = 10.0 ** random.uniform(-4.0, 4.0), 10.0 ** random.uniform(-3.0, 3.0)
        low = low if log else random.choice((-1.0, 0.0, 1.0)) * low
        ticks = axes.Axis(low, low + span, "", Scale(1.0, ""), log).make_ticks(most)
        assert 2 <= len(ticks) <= 2 * most
        assert all(-1e-9 <= at <= 1.0 + 1e-9 for at, _ in ticks)
        if log:
            texts = [re.sub("·?10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda m: f"e{m.group(1)}", text) for _, text in ticks]
            values = [float(("1" if t.startswith("e") else "") + t.translate(LOWERED)) for t in texts]
            assert values == pytest.approx([low * (1.0 + span / low) ** at for at, _ in ticks], rel=1e-5, abs=0.0)


@pytest.mark.parametrize("count", range(1, 14))
def test_rows_of_figures_are_filled(count: int) -> None:
    """The number of rows is minimal, and all rows but the first have as many figures as there is room for."""
    classes = [one.split() for one in make_grid_classes(count)]
    assert len(classes) == count
    for place, (letter, most) in enumerate(GRID_FIGURES.items()):
        spans = [int(one[place].removeprefix(letter)) for one in classes]
        sizes = []
        while spans:
            size = GRID_COLUMNS // spans[0]
            assert spans[:size] == [GRID_COLUMNS // size] * size
            sizes.append(size)
            spans = spans[size:]
        assert len(sizes) == math.ceil(count / most)
        assert sizes[1:] == [most] * (len(sizes) - 1)


def test_summary_has_length_speed_and_depth_of_a_track() -> None:
    height = np.linspace(-10.0, -35.0, 400)
    found = make_recording(make_reading(count=10), height)
    truth = found.truth["boat::hull"]
    velocity = np.zeros((400, 3))
    velocity[7] = 0.0, 0.3, -0.4
    found = replace(found, truth={"boat::hull": replace(truth, velocity=velocity)})
    chart = make_track_map(found)
    assert chart is not None
    run = math.hypot(50.0, 25.0)
    start = [
        ("Distance", f"{run:.4g} m", f"ends {run:.4g} m from its start"),
        ("Duration", "6 min 40 s", ""),
        ("Mean speed", f"{run / 400.0:.3g} m/s", "maximum 0.5 m/s"),
    ]
    (way,) = chart.tracks
    in_the_world = ("Height", "\u221235.0\u00a0to\u00a0\u221210.0\u00a0m", "z in the world")
    depth = ("Depth", "12.0\u00a0to\u00a037.0\u00a0m", "")
    assert list_track_facts(found, way, None) == [*start, in_the_world]
    assert list_track_facts(found, way, 2.0) == [*start, depth]
    over = replace(way, ground=np.full(way.time.size, -40.0))
    clearance = ("Above the ground", "5.0\u00a0to\u00a030.0\u00a0m", "minimum at 6 min 40 s")
    assert list_track_facts(found, over, 2.0) == [*start, depth, clearance]
    page = make_page(found)
    assert f"<dt>Distance</dt><dd>{run:.4g} m<small>" in page
    assert "; 6 min 40 s; 1 sensor; 10 samples; navsense " in page
    fleet = replace(
        found,
        truth={name: replace(truth, name=name) for name in ("boat::hull", "raft::hull")},
        tracks={"boat": "boat::hull", "raft": "raft::hull"},
    )
    page = make_page(fleet)
    assert re.search(rf'<th scope="row">raft</th><td>{run:.4g} m</td><td>6 min 40 s</td>', page)


def test_summary_of_a_stationary_model_has_one_height() -> None:
    found = make_recording(make_reading(count=10), np.full(400, -10.0))
    truth = found.truth["boat::hull"]
    for rows in (1, 400):
        still = replace(truth.select_rows(0, rows), position=np.tile((3.0, 4.0, -10.0), (rows, 1)))
        data = replace(found, truth={"boat::hull": still})
        chart = make_track_map(data)
        assert chart is not None
        assert [track.is_moving for track in chart.tracks] == [False]
        assert chart.view.width == MIN_STILL_SIZE
        (way,) = chart.tracks
        assert (way.time[0], way.time[-1]) == (data.span if rows == 1 else (0.0, 400.0)), "a line over all times"
        stationary = ("Distance", "stationary", "")
        height = ("Height", "\u221210.00\u00a0m", "z in the world")
        assert list_track_facts(data, way, None) == [stationary, height]
        over = replace(way, ground=np.full(way.time.size, -40.0))
        depth, clearance = ("Depth", "12.00\u00a0m", ""), ("Above the ground", "30.00\u00a0m", "")
        assert list_track_facts(data, over, 2.0) == [stationary, depth, clearance]


def test_map_and_heights_agree_about_missing_ground() -> None:
    data = make_recording(make_reading(count=10), np.linspace(-1.0, -5.0, 400))
    for world, text in (
        (None, "The ground is not known: name the world with --world."),
        (World("sea"), "There is no ground."),
    ):
        found = replace(data, sdf_world=world)
        chart = make_track_map(found)
        assert chart is not None
        chart = replace(chart, surface=0.0)
        assert make_map_figure(found, chart).caption.endswith(text)
        heights = make_height_figure(found, chart)
        assert (heights.title, heights.caption) == ("Height of the track", text)


def test_clock_figure_names_the_sensors_that_it_shows() -> None:
    """Those with most samples, each in a plot of its own. Their names are as long as they must be."""
    readings = {f"boat::{part}::compass": make_reading(count=100 - i) for i, part in enumerate("abcdefg")}
    readings = {name: replace(found, name=name, clock_error=1e-3 + 0 * found.time) for name, found in readings.items()}
    specs = {name: replace(SHEET, name=name, clock="boat::hull::clock") for name in readings}
    data = replace(make_recording(make_reading()), readings=readings, sensors=specs)
    (section,) = clock_section.make_clock_sections(data)
    figure, *_ = clock_section.make_clock_figures(section, data)
    drawn = list(readings)[: clock_section.MAX_SENSORS]
    names = f"{', '.join(drawn)} and {7 - len(drawn)} more, not drawn"
    assert figure.caption == f"Stamp minus true time of {names}. Largest error of all: 1 ms."
    assert [plot.label for plot in figure.plots] == [name.removeprefix("boat::") for name in drawn]
    assert len({plot.y_axis for plot in figure.plots}) == 1, "errors of several sensors are compared"
    assert [sum('class="c0"' in part for part in plot.elements) for plot in figure.plots] == [1] * len(drawn)
    page = make_page(data)
    assert '<a href="#sensor-boat--a--compass">a::compass</a>' in page


def test_rounding_of_stamps_is_no_clock_error() -> None:
    """Stamps are integers of 1 ns, so a sensor on true time differs from it by up to half a nanosecond."""
    data = make_recording(make_reading())
    (reading,) = data.readings.values()
    for error, is_shown in ((0.5e-9, False), (2e-9, True)):
        changed = replace(data, readings={reading.name: replace(reading, clock_error=error + 0 * reading.time)})
        assert bool(clock_section.make_clock_sections(changed)) is is_shown
        assert ("<td>2 ns</td>" in make_page(changed)) is is_shown
        assert "ps</td>" not in make_page(changed)


def test_short_names_are_unique() -> None:
    names = ("a::l::imu", "b::l::imu", "b::m::imu", "b::m::dvl", "world", "x::world", "imu")
    assert dict(shorten_names(names)) == {
        "a::l::imu": "a::l::imu", "b::l::imu": "b::l::imu", "b::m::imu": "m::imu", "b::m::dvl": "dvl",
        "world": "world", "x::world": "x::world", "imu": "imu",
    }  # fmt: skip


@pytest.mark.parametrize("clear", [False, True])
def test_png_images_are_read_by_pillow(clear: bool) -> None:
    image = pytest.importorskip("PIL.Image")
    values = np.linspace(-0.2, 1.2, 35 * 41).reshape(35, 41)
    if clear:
        values[3, 5] = math.nan
    pixels = images.compute_pixels(values, MAGNITUDE_COLOURS)
    raw = base64.b64decode(images.encode_png_uri(pixels).partition(",")[2])
    assert np.array_equal(np.asarray(image.open(io.BytesIO(raw)).convert("RGBA")), pixels)
    ends = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b, _ in (pixels[0, 0].tolist(), pixels[-1, -1].tolist())]
    assert ends == [MAGNITUDE_COLOURS[0], MAGNITUDE_COLOURS[-1]]


def test_bounds_equal_chi_squared_quantiles() -> None:
    """The bounds equal SciPy's quantiles, and with outliers the spread of simulated estimates."""
    low, high = residuals.compute_ratio_bounds(500, 0.0)
    assert low == pytest.approx(stats.chi2.ppf(5e-7, 500) / 500, rel=1e-9, abs=0.0)
    assert high == pytest.approx(stats.chi2.isf(5e-7, 500) / 500, rel=1e-9, abs=0.0)
    noise = Noise(stddev=1.0, outlier_probability=0.05, outlier_stddev=4.0)
    random = np.random.default_rng(5)
    values = random.standard_normal((4000, 200)) + np.where(
        random.random((4000, 200)) < 0.05, 4.0 * random.standard_normal((4000, 200)), 0.0
    )
    estimates = 0.5 * np.mean(np.diff(values.reshape(4000, 100, 2), axis=2)[..., 0] ** 2, axis=1) / (1.0 + 0.05 * 16.0)
    _, top = residuals.compute_ratio_bounds(100, residuals.compute_excess_kurtosis(noise, 1.0))
    spread = (top - 1.0) / residuals.NORMAL_BOUND
    # The deviation of 4000 estimates with kurtosis below 5 has an error below 5 sqrt(4 / 4 / 4000) = 8 %.
    assert float(np.std(estimates)) == pytest.approx(spread, rel=0.08, abs=0.0)


def test_residual_is_split_into_bias_scale_and_noise() -> None:
    """False alarms are 1e-6 each. Four of the 20,000 degrees of freedom are fitted."""
    found = residuals.make_channels(make_reading(), "field", SHEET)
    assert [channel.label for channel in found] == ["x", "y", "z"]
    noise = SIZE * np.random.default_rng(8).standard_normal((COUNT, 3))
    for axis, channel in enumerate(found):
        assert channel.declared_stddev == SIZE
        assert np.allclose(
            channel.residual,
            make_reading()["field"][:, axis] - make_reading().ideal["field"][:, axis],
            rtol=1e-12,
            atol=0.0,
        )
        rest = channel.white_residual - (noise[:, axis] - noise[:, axis].mean())
        assert float(np.std(rest)) < 5.0 * SIZE * math.sqrt(3.0 / COUNT)
        verdict = residuals.check_noise(channel, SHEET)
        assert isinstance(verdict, residuals.NoiseTest)
        assert verdict.passes
        pairs = noise[:, axis].reshape(-1, 2)
        assert verdict.measured_stddev == pytest.approx(
            math.sqrt(0.5 * np.mean((pairs[:, 1] - pairs[:, 0]) ** 2)), rel=1e-4, abs=0.0
        )


@pytest.mark.parametrize(("scale", "word"), [(1.1, "more"), (0.9, "less")])
def test_noise_that_is_not_as_declared_is_a_warning(scale: float, word: str) -> None:
    """A tenth is 20 of the deviations 1 / sqrt(20,000 / 2) of a ratio of variances."""
    assert list_warnings(make_recording(make_reading())) == []
    said = list_warnings(make_recording(make_reading(scale)))
    assert all(re.search(r": \d+(\.\d)? nT instead of 200 nT\. The ratio of the variances is ", text) for text in said)
    assert [f"field {axis} has {word} noise than declared" in what for axis, what in zip("xyz", said, strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        (Noise(stddev=SIZE, precision=3.0 * SIZE), "the rounding step is larger than twice the noise"),
        (Noise(stddev=SIZE, maximum=5e-5), "samples are at a limit of the range"),
    ],
)
def test_noise_that_cannot_be_tested_is_a_note_with_the_reason(noise: Noise, reason: str) -> None:
    data = replace(
        make_recording(make_reading()), sensors={NAME: replace(SHEET, spec=Magnetometer(noise, noise, NOISE))}
    )
    sections = {NAME: make_array_sections(data.readings[NAME], data.sensors[NAME])}
    notes = [note.text for note in find_entries(data, sections, None) if note.subject == NAME]
    assert notes == [f"noise of field x, field y not tested: {reason}"]
    page = make_page(data)
    assert '<li class="fine">No warnings: every sensor has values; 1 noise test passed, in 1 of 1 sensor.</li>' in page


def test_two_reasons_of_one_sensor_name_their_channels() -> None:
    rounded = Noise(stddev=SIZE, precision=3.0 * SIZE)
    spec = Magnetometer(Noise(), Noise(), rounded)
    data = replace(make_recording(make_reading()), sensors={NAME: replace(SHEET, spec=spec)})
    sections = {NAME: make_array_sections(data.readings[NAME], data.sensors[NAME])}
    assert [note.text for note in find_entries(data, sections, None) if note.subject == NAME] == [
        "noise of field x, field y not tested: no white noise is declared",
        "noise of field z not tested: the rounding step is larger than twice the noise",
    ]


def test_track_that_closes_ends_at_its_start() -> None:
    """The ends of a closed square differ by rounding."""
    found = make_recording(make_reading(count=10), np.full(400, -10.0))
    truth = found.truth["boat::hull"]
    position = np.array(truth.position)
    position[-1] = position[0] + 1e-13
    (fact, *_) = list_track_facts(*make_closed(found, replace(truth, position=position)))
    assert fact[2] == "ends at its start"
    position[-1] = position[0] + (0.01, 0.0, 0.0)
    (fact, *_) = list_track_facts(*make_closed(found, replace(truth, position=position)))
    assert fact[2] == "ends 10 mm from its start"


def make_closed(found: ReportData, truth: Truth) -> tuple[ReportData, Track, None]:
    """Return the arguments of `list_track_facts` for a recording with another truth."""
    data = replace(found, truth={"boat::hull": truth})
    chart = make_track_map(data)
    assert chart is not None
    return data, chart.tracks[0], None


def test_longest_gap_of_the_table_is_without_the_time_off() -> None:
    """The schedule of a sensor has it off from 3 s until 4 s; it publishes at 50 Hz."""
    time = np.arange(500) / RATE
    sensor = replace(SHEET, switches=(Switch(3.0, on=False), Switch(4.0, on=True)))
    found = make_recording(make_reading(count=500, emitted=sensor.compute_on(time)))
    page = make_page(replace(found, sensors={NAME: sensor}))
    assert "is off by its schedule for 1 s" in page
    assert "<td>50 Hz</td><td>450</td><td>100 %</td><td>20 ms</td>" in page


def test_page_without_any_test_is_not_green() -> None:
    found = make_recording(make_reading())
    page = make_page(replace(found, sensors={}))
    assert '<li class="note">No warnings: every sensor has values; no noise was tested.</li>' in page
    assert "noise not tested: the recording has no specification of the sensor; name the world with --world" in page
    assert 'class="fine"' not in page


def test_angles_of_rounding_errors_are_zero() -> None:
    """A level vehicle has roll 0, not some picoradians."""
    level = np.tile((1.0, 0.0, 0.0, 0.0), (200, 1))
    level[:, 1] = 1e-13 * np.random.default_rng(1).standard_normal(200)
    found = replace(make_reading(count=200), arrays={"orientation": level}, ideal={"orientation": level[::-1]})
    found = replace(found, unit={"orientation": "1"}, bias={})
    roll, pitch, yaw = residuals.make_channels(found, "orientation", None)
    assert not any(channel.reading.any() or channel.residual.any() for channel in (roll, pitch, yaw))
    assert axes.make_linear_axis("roll", "rad", [roll.reading]).title == "roll (rad)"


def test_attitude_error_is_a_rotation_angle() -> None:
    half = 0.5 * 0.01
    base = np.array([[math.cos(0.7), 0.0, 0.0, math.sin(0.7)]])
    w, z = base[0, 0], base[0, 3]
    more = np.array([[w * math.cos(half), math.sin(half) * w, math.sin(half) * z, z * math.cos(half)]])
    assert np.allclose(residuals.compute_rotation_vectors(base, more), [[0.01, 0.0, 0.0]], atol=1e-15, rtol=0.0)
    assert np.allclose(residuals.compute_rotation_vectors(base, -more), [[0.01, 0.0, 0.0]], atol=1e-15, rtol=0.0)
    assert np.allclose(residuals.to_euler_angles(base), [[0.0, 0.0, 1.4]], rtol=1e-12, atol=1e-15)


def test_silent_sensor_is_a_warning() -> None:
    valid = np.ones(COUNT, dtype=np.bool_)
    valid[5000:7000] = False
    said = " ".join(list_warnings(make_recording(make_reading(valid=valid))))
    assert "no valid sample for 40.02 s from 99.98 s, the longest gap" in said
    assert "10 % of its samples are not valid" in said
    none = list_warnings(make_recording(make_reading(valid=np.zeros(COUNT, dtype=np.bool_))))
    assert none == [f"none of its {COUNT} samples is valid"]


@pytest.mark.requirement("CLK-5")
def test_stamps_far_from_true_time_are_warned_of() -> None:
    assert (
        "stamps are up to 15 ms off true time, at 0 s; the limit is 10 ms, half the interval of the samples"
        in list_warnings(make_recording(make_reading(clock_error=0.015)))
    )
    assert list_warnings(make_recording(make_reading(clock_error=0.0099))) == []
    stepped = make_reading()
    error = np.where(stepped.time < 200.0, 0.005, -0.02)
    warnings = list_warnings(make_recording(replace(stepped, clock_error=error)))
    assert "1 stamp is not later than the one before" in warnings


@pytest.mark.requirement("NOI-6")
def test_faults_are_listed_and_excluded_from_noise() -> None:
    found = make_reading()
    rows = np.arange(COUNT)
    fault = {"bias": (rows >= 1000) & (rows < 1500), "spike": rows == 4000}
    field = found["field"].copy()
    field[1000:1500] += 1e-4
    field[4000] += 1.0
    said = list_warnings(make_recording(replace(found, arrays={"field": field}, fault=fault)))
    assert said == [
        "fault: bias, once, 500 samples, from 20 s, until 30 s",
        "fault: spike, once, 1 sample, from 80 s, until 80.02 s",
    ]


def test_recording_that_ends_early_is_a_warning() -> None:
    found = replace(make_recording(make_reading()), metadata={"duration_asked": 1000.0, "runs": [0, 1]})
    assert list_warnings(found) == ["ends after 6 min 39.98 s; 16 min 40 s were requested"]


def test_metres_of_a_position_are_tested_against_its_noise() -> None:
    """Latitude and longitude are shown in metres, the unit of their noise; false alarms 1e-6 each.

    Rounding and limits act on the distance from the world's origin, which the report does not know.
    """
    time, noise = np.arange(4000) * 0.2, Noise(stddev=0.3, bias_stddev=1.0)
    latitude, longitude = 1.2 + 1e-7 * time, 0.4 + 2e-7 * time
    velocity, zero = np.zeros((4000, 3)), np.zeros(4000)
    spec = NavSat(noise, Noise(stddev=0.5))
    gps = MountedSensor("boat::hull::gps", spec, "boat", "boat::hull", 5.0)
    found = replace(spec.apply(time, latitude, longitude, zero, velocity, seed=4), name=gps.name)
    errors = spec.compute_errors(found.arrays, found.ideal)
    for array, side in (("latitude", "north"), ("longitude", "east")):
        (channel,) = residuals.make_channels(found, array, gps)
        assert (channel.unit, channel.declared_stddev) == ("m", 0.3)
        assert np.allclose(channel.residual, errors[array], rtol=1e-3, atol=1e-6)
        verdict = residuals.check_noise(channel, gps)
        assert isinstance(verdict, residuals.NoiseTest)
        assert verdict.passes
        (section,) = (one for one in make_array_sections(found, gps) if one.name == array)
        shown = {figure.title: figure for figure in make_array_figures(section, found, (0.0, 800.0))}
        middle = "about the bias plus the median of the rest." if found.bias[array].any() else "about the median."
        assert shown["Residual"].caption.endswith(middle)
        assert [plot.y_axis.title for plot in shown["Reading and ideal"].plots if plot.y_axis] == [
            f"{side} of the mean (m)"
        ]
        assert shown["Histogram"].caption.endswith("Dashed: the declared noise.")
        limited = replace(gps, spec=NavSat(replace(noise, maximum=50.0), noise))
        (channel,) = residuals.make_channels(found, array, limited)
        assert channel.declared_stddev == 0.0


def test_residual_of_an_orientation_is_a_rotation_vector() -> None:
    """An error about the vertical of a pitched sensor is an error about its x and z axes, not of its yaw alone."""
    half = 0.5 * math.radians(60.0)
    pitched = np.tile((math.cos(half), 0.0, math.sin(half), 0.0), (200, 1))
    w, _, y, _ = pitched[0]
    turned = np.tile((w, -5e-3 * y, y, 5e-3 * w), (200, 1))
    found = replace(make_reading(count=200), arrays={"orientation": turned}, ideal={"orientation": pitched}, bias={})
    (section,) = make_array_sections(replace(found, unit={"orientation": "1"}), None)
    shown = {figure.title: figure for figure in make_array_figures(section, found, (0.0, 4.0))}
    titles = {
        title: [plot.y_axis.title.partition(" ")[0] for plot in figure.plots if plot.y_axis]
        for title, figure in shown.items()
    }
    assert titles["Reading and ideal"] == ["roll", "pitch", "yaw"]
    assert titles["Residual"] == ["x", "y", "z"]
    assert "rotation vector" in shown["Residual"].caption
    for channel, size in zip(
        section.channels, (-0.01 * math.sin(2 * half), 0.0, 0.01 * math.cos(2 * half)), strict=True
    ):
        assert np.allclose(channel.residual, size, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize(
    ("count", "errors"), [(residuals.MIN_ROWS - 1, "bias"), (residuals.MIN_ROWS, "bias, constant, scale")]
)
def test_histogram_names_the_errors_that_were_removed(count: int, errors: str) -> None:
    found = make_reading(count=count)
    (section,) = make_array_sections(found, SHEET)
    (figure,) = (one for one in make_array_figures(section, found, (0.0, 2.0)) if one.title == "Histogram")
    assert re.search(rf"without {errors}[ .]", figure.caption.replace("constant and", "constant "))
    (bare,) = make_array_sections(found, None)
    (figure,) = (one for one in make_array_figures(bare, found, (0.0, 2.0)) if one.title == "Histogram")
    assert figure.caption.endswith("No declared standard deviation is known.")


def test_density_of_a_quotient_has_a_unit_in_brackets() -> None:
    for unit, title in (("T", "density (1/nT)"), ("rad/s", "density (1/(nrad/s))"), ("1", "density"), ("", "density")):
        found = replace(make_reading(count=200), unit={"field": unit})
        found = replace(
            found, arrays={"field": found.ideal["field"] + 1e-9 * np.random.default_rng(1).random((200, 3))}
        )
        (section,) = make_array_sections(found, None)
        (figure,) = (one for one in make_array_figures(section, found, (0.0, 4.0)) if one.title == "Histogram")
        assert figure.plots[0].y_axis is not None
        assert figure.plots[0].y_axis.title.replace("·10⁻⁹", "") == title


def test_histogram_density_equals_numpy() -> None:
    values = np.concatenate((np.random.default_rng(1).standard_normal(5000), [math.nan, 80.0]))
    edges = np.linspace(-3.0, 3.0, 31)
    found = compute_histogram_density(values, edges)
    assert float(np.sum(found * np.diff(edges))) == pytest.approx(1.0, rel=1e-12, abs=0.0)
    expected, _ = np.histogram(values[np.isfinite(values) & (np.abs(values) < 2.8)], edges)
    assert np.allclose((found * 5001 * np.diff(edges))[1:-1], expected[1:-1], rtol=1e-12, atol=0.0)


def test_declared_terms_have_the_variance_of_one_sample() -> None:
    noise = Noise(stddev=2.0, noise_density=0.3, precision=0.5, outlier_probability=0.01, outlier_stddev=9.0)
    white = 2.0**2 + 0.3**2 * 100.0 + 0.5**2 / 12.0 + 0.01 * 81.0
    (term,) = list_noise_terms(noise, 100.0)
    assert float(term.allan(1, 100.0)) == pytest.approx(white, rel=1e-12, abs=0.0)


def test_waterfall_has_the_means_of_its_columns() -> None:
    time, where = np.arange(1000.0), np.array([3.0, 1.0, 2.0])
    velocity = np.zeros((1000, 3, 3))
    velocity[:, :, 0] = where
    velocity[:, 2, 1] = math.nan
    velocity[500:, :, 2] = -1.0
    figure = doppler.make_waterfall("profile", time, velocity, where, "depth (m)", (0.0, 999.0), ("x", "y", "z"))
    image = pytest.importorskip("PIL.Image")
    shown = []
    for plot in figure.plots:
        data = plot.elements[0].partition("base64,")[2].partition('"')[0]
        shown.append(
            np.asarray(image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))[:: doppler.PIXELS_PER_ROW]
        )
    assert shown[0].shape == (3, doppler.IMAGE_COLUMNS, 4)
    most = np.percentile(np.abs(velocity[np.isfinite(velocity)]), 99.5)
    for row, value in enumerate((1.0, 2.0, 3.0)):  # the nearest on top
        assert (shown[0][row] == images.compute_pixels(np.array(0.5 + 0.5 * value / most), SIGNED_COLOURS)).all()
    assert (shown[1][:, :, 3] == np.array([255, 0, 255])[:, None]).all()
    assert (shown[2][:, :200] != shown[2][:, -1:]).any()


def test_figures_are_written_as_an_svg_file() -> None:
    """The file has its own style and colours, so every program shows it. It has a sample of each class in a legend."""
    data = make_recording(make_reading(count=10), np.linspace(-1.0, -5.0, 400))
    chart = make_track_map(data)
    assert chart is not None
    drawn = [make_map_figure(data, chart), make_height_figure(data, replace(chart, surface=0.0))]
    text = svg_figure.format_svg_file(drawn, 500.0, 400.0)
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("1000", "400", "0 0 1000 400")
    assert "var(" not in text
    assert "/*" not in text
    name = "{http://www.w3.org/2000/svg}"
    cells = root.findall(f"{name}svg")
    for cell, figure in zip(cells, drawn, strict=True):
        texts = [element.text for element in cell.iter(f"{name}text")]
        assert {figure.title, *(label for _, label in figure.legend)} <= set(texts)
        classes = {element.get("class") for element in cell.iter()}
        assert {css_class for css_class, _ in figure.legend} <= classes
        for plot in cell.findall(f"{name}svg[@class='plot']") + cell.findall(f"{name}svg[@class='map']"):
            left, top, width, height = (float(plot.get(key, "")) for key in ("x", "y", "width", "height"))
            assert 0.0 < left < left + width < 500.0
            assert 0.0 < top < top + height < 400.0
            if plot.get("class") == "map":
                assert width / height == pytest.approx(chart.view.width / chart.view.height, rel=2e-3, abs=0.0)


@pytest.mark.parametrize(("width", "height"), [(10.0, 10.0), (1.0, 50.0), (90.0, 3.0), (20.0, 12.0)])
def test_map_is_neither_too_tall_nor_too_wide(width: float, height: float) -> None:
    """The view stays in the middle of the map, which contains it and is not larger than necessary."""
    view = limit_shape(View(5.0, 5.0 + width, -2.0, -2.0 + height))
    ratio = view.width / view.height
    assert MIN_RATIO - 1e-9 <= ratio <= MAX_RATIO + 1e-9
    assert (view.left + view.right, view.bottom + view.top) == pytest.approx(
        (10.0 + width, height - 4.0), rel=1e-12, abs=1e-12
    )
    assert view.width >= width
    assert view.height >= height
    assert view.width == pytest.approx(width, rel=1e-12, abs=0.0) or view.height == pytest.approx(
        height, rel=1e-12, abs=0.0
    )


def test_track_without_ground_is_shown() -> None:
    chart = make_track_map(make_recording(make_reading(), np.linspace(0.0, -5.0, 400)))
    assert chart is not None
    assert chart.relief is None
    assert chart.tracks[0].min_clearance is None
    assert chart.tracks[0].name == "boat"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 60])
def test_page_of_few_rows_is_complete(count: int) -> None:
    height = np.zeros(max(count, 1))
    text = make_page(make_recording(make_reading(count=count), height))
    assert f"<h2>{NAME}</h2>" in text
    assert not re.search(r'd="[^"]*(nan|inf)', text)
    if not count:
        assert "has no samples" in text


def test_readings_without_ideal_or_finite_values_are_shown() -> None:
    bare = make_page(make_recording(replace(make_reading(count=200), ideal={}, bias={})))
    assert "no figures, and noise not tested: the recording has no ideal readings of it" in bare
    lost = make_reading(count=200, valid=np.zeros(200, dtype=np.bool_))
    assert "none of its 200 samples is valid" in make_page(make_recording(lost))


@pytest.mark.compiled
def test_page_of_an_hour_of_a_fast_sensor_is_small() -> None:
    """At any number of rows, a line has at most twice as many points as columns."""
    short, long = (len(make_page(make_recording(make_reading(count=count)))) for count in (COUNT, 10 * COUNT))
    assert long < 1.2 * short


def test_beams_without_velocity_are_not_valid() -> None:
    """Without `beam_valid`, as in messages of some types, a beam with NaN is invalid."""
    along = np.ones((10, 2))
    along[4:6, 1] = math.nan
    every = np.ones(10, dtype=np.bool_)
    found = Reading(
        "a::dvl", "dvl", "", {}, np.arange(10.0), np.zeros(10), {"beam_velocity": along}, {}, {}, every, every
    )
    (figure,) = doppler.make_beam_figures(found, "dvl", (0.0, 10.0))
    assert figure.title == "Beams of dvl"
    assert figure.legend == [("good", "valid"), ("bad", "not valid")], "no velocity through the water"
    assert figure.caption == "Not valid: no echo, out of range, or lost."
    assert [plot.label for plot in figure.plots] == ["beam 1: 100 % valid", "beam 2: 80 % valid"]
    bad = next(part for part in figure.plots[1].elements if 'class="bad"' in part)
    first, wide = re.findall(r"M([\d.]+),0h([\d.]+)v", bad)[0]
    assert float(first) == pytest.approx(0.4 * UNITS, abs=0.5)
    assert float(wide) == pytest.approx(0.2 * UNITS, abs=1.0)


def make_stuck_reading(rows: slice, count: int = COUNT) -> Reading:
    """Return readings that a fault holds at an outlying value on some rows."""
    found = make_reading(count=count)
    field, acts = found.arrays["field"].copy(), np.zeros(count, dtype=np.bool_)
    field[rows], acts[rows] = 3e-4, True
    return replace(found, arrays={"field": field}, fault={"stuck": acts})


def find_allan_figure(found: Reading) -> SvgFigure:
    """Return the figure of the Allan deviation."""
    (sections,) = make_array_sections(found, SHEET)
    span = float(found.time[0]), float(found.time[-1])
    (figure,) = (one for one in make_array_figures(sections, found, span) if one.title == "Allan deviation")
    return figure


def test_allan_deviation_omits_rows_with_faults() -> None:
    complete, faulty = find_allan_figure(make_reading()), find_allan_figure(make_stuck_reading(slice(2_000, 5_000)))
    assert "longest" not in complete.caption
    assert faulty.caption.endswith("Uses the longest stretch without faults and gaps: 300 s of 400 s.")
    rest = make_reading()
    tail = replace(
        rest,
        **{name: getattr(rest, name)[5_000:] for name in ("time", "clock_error", "valid", "emitted")},
        **{name: {k: a[5_000:] for k, a in getattr(rest, name).items()} for name in ARRAY_GROUPS},
    )
    assert faulty.format_html().count('class="c0"') == complete.format_html().count('class="c0"')
    alone = find_allan_figure(tail)
    assert alone.caption == complete.caption
    assert faulty.plots[0].elements == alone.plots[0].elements
    assert faulty.plots[0].y_axis == alone.plots[0].y_axis


def test_allan_deviation_uses_evenly_spaced_rows() -> None:
    """Dropped rows interrupt the series: the longest evenly spaced part is used."""
    found = make_reading()
    there = np.ones(COUNT, dtype=np.bool_)
    there[[100, 9_000, 9_001]] = False
    kept = np.flatnonzero(there)
    gaps = replace(
        found,
        **{name: getattr(found, name)[kept] for name in ("time", "clock_error", "valid", "emitted")},
        **{name: {k: a[kept] for k, a in getattr(found, name).items()} for name in ARRAY_GROUPS},
    )
    assert find_allan_figure(gaps).caption.endswith("Uses the longest stretch without faults and gaps: 220 s of 400 s.")
    (channel, *_) = make_array_sections(gaps, SHEET)[0].channels
    rows = find_regular_stretch(np.isfinite(channel.white_residual), channel.time, channel.rate)
    assert np.array_equal(channel.residual[rows], channel.residual[8_999:])
    (sections,) = make_array_sections(make_reading(count=MIN_ALLAN_ROWS - 1), SHEET)
    assert not any(
        one.title == "Allan deviation" for one in make_array_figures(sections, make_reading(count=63), (0.0, 2.0))
    )


ODD: Mapping[str, tuple[float, ...]] = {
    "as large as can be": (-1.797e308, 1.797e308),
    "large": (-1e308, 1e308, 3e307),
    "large and constant": (1e308,),
    "least": (5e-324, 1.5e-323),
    "least and 0": (0.0, 5e-324),
    "constant": (5.0, 5.0),
    "0": (0.0, 0.0),
    "no number": (math.nan, math.nan),
    "endless recursion": (math.inf, -math.inf),
    "one": (3.0,),
    "none": (),
    "next to each other": (1.0, 1.0 + 2e-16),
    "far and next to each other": (1e300, 1.0000001e300),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("unit", ["m", "rad", "T", "1"])
def test_axes_accept_extreme_values(values: tuple[float, ...], unit: str) -> None:
    arguments = np.array(values, dtype=np.float64)
    known = arguments[np.isfinite(arguments)]
    axes_ = [axes.make_linear_axis("", unit, [arguments]), axes.make_linear_axis("", unit, [arguments], zero=True)]
    axes_ += [axes.make_log_axis("", unit, [np.abs(arguments)]), axes.make_log_axis("", unit, [])]
    if known.size:
        axes_.append(axes.make_time_axis(float(known.min()), float(known.max())))
    for axis in axes_:
        assert -math.inf < axis.low < axis.high < math.inf
        ticks = axis.make_ticks(6)
        assert len(ticks) <= 8
        assert np.isfinite([at for at, _ in ticks]).all()
        assert not np.isnan(axis.compute_positions(known[known > 0.0] if axis.log else known)).any()
        if not axis.log:
            # Values beyond the range of an axis are shown outside, on the same side.
            within = np.abs(known) <= axes.MAX_AXIS_VALUE
            assert (np.abs(axis.compute_positions(known[within]) - 0.5) <= 0.5).all()
            assert (np.sign(known[~within]) * (axis.compute_positions(known[~within]) - 0.5) > 0.0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("where", ["arrays", "ideal", "bias"])
@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
def test_page_accepts_extreme_values(values: tuple[float, ...], where: str) -> None:
    for count in (2_000, 2, 1, 0):
        found = make_reading(count=count)
        odd = np.resize(np.array(values, dtype=np.float64), (count, 3))
        text = make_page(make_recording(replace(found, **{where: {**getattr(found, where), "field": odd}})))
        assert not re.search(r'(?:\bd|x|y|width|height)="[^"]*(?:nan|inf)', text)


def test_allan_deviation_of_a_clock_omits_its_faults() -> None:
    """A step of the stamps is not an instability: the curve uses the stamps after it only."""
    walk = 1e-9 * np.cumsum(np.random.default_rng(4).standard_normal(COUNT))
    step = np.where(np.arange(COUNT) < 3_000, 0.0, 0.5)
    sheet = replace(SHEET, clock="boat::hull::clock")
    fault = {"of": "boat::hull::clock", "kind": "step", "start": 60.0, "end": 80.0}

    def compute_stability(
        error: FloatArray, planned: tuple[Mapping[str, Any], ...], rows: slice = slice(None)
    ) -> SvgFigure:
        complete = make_reading()
        found = replace(complete, clock_error=error)
        cut = replace(
            make_recording(found.select_rows(*rows.indices(COUNT)[:2])), sensors={NAME: sheet}, scheduled_faults=planned
        )
        (shown,) = clock_section.make_clock_sections(cut)
        _, figure = clock_section.make_clock_figures(shown, cut)
        return figure

    struck = compute_stability(walk + step, (fault,))
    alone = compute_stability(walk + step, (), slice(4_001, None))
    assert struck.plots[0].elements == alone.plots[0].elements
    assert struck.caption == f"{alone.caption} Uses the longest stretch without faults and gaps: 320 s of 400 s."
    assert compute_stability(walk + step, ()).plots[0].elements != alone.plots[0].elements
