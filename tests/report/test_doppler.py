"""Reports of Doppler instruments: cells, beams, axes, and the true velocity through the water."""

from __future__ import annotations

import base64
import html
import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import navsense as ns
from navsense.core.geodesy import Origin
from navsense.core.readings import Current, Layers, Reading
from navsense.core.typing import AnyArray
from navsense.figures import MAGNITUDE_COLOURS, SIGNED_COLOURS
from navsense.noise.specification import Noise
from navsense.report import doppler, images, residuals
from navsense.report.labels import list_axis_labels
from navsense.report.page import make_page
from navsense.report.report_data import ReportData, read_report_data
from navsense.report.sensor_section import make_array_figures, make_array_sections
from navsense.report.svg_figure import UNITS
from navsense.report.warnings import find_entries
from navsense.sensors.doppler.beam_errors import TrackErrors
from navsense.sensors.dvl import Dvl
from navsense.world import MountedSensor

pytestmark = pytest.mark.requirement("REC-1")

ROOT = Path(__file__).resolve().parents[2]

FALSE_ALARMS = 1e-6

NAME = "boat::hull::adcp"

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<model name="bed"><static>true</static><link name="l"><collision name="c"><pose>0 0 -20 0 0 0</pose><geometry>
<plane><normal>0 0 1</normal><size>1000 1000</size></plane></geometry></collision></link></model>
<model name="boat"><pose>0 0 0 0.2 -0.15 0.7</pose><link name="hull">
<sensor name="adcp" type="adcp"><update_rate>50</update_rate><adcp><beams angle_deg="25"/>
<cells count="9" size="1" blanking="0.9" samples="1"/><pings>2</pings><bottom_pings>3</bottom_pings>
<propagation>false</propagation><max>{reach}</max><profile stddev="0.04"/><bottom stddev="0.03"/>
<backscatter level="18" absorption="0.3" correlation="0.8" threshold="-200" slope="1"/>
<bin_mapping>none</bin_mapping><coordinates>{coordinates}</coordinates><motion_compensated>{removes}</motion_compensated>
</adcp></sensor></link></model></world></sdf>"""


def record(folder: Path, coordinates: str, seconds: float, *, reach: float = 60.0, removes: bool = True) -> ReportData:
    """Return a recording of a tilted, moored profiler over a flat bed."""
    file = folder / "w.sdf"
    text = WORLD.format(coordinates=coordinates, reach=reach, removes=str(removes).lower())
    file.write_text(text, encoding="utf-8")
    ns.record(ns.load(file), folder / "r.npz", seconds, seed=3)
    return read_report_data(str(folder / "r.npz"))


def list_warnings(found: ReportData) -> list[str]:
    sections = {name: make_array_sections(r, found.sensors.get(name)) for name, r in found.readings.items()}
    return [one.text for one in find_entries(found, sections, None) if one.kind == "warning"]


def replace_reading(found: ReportData, **arrays: AnyArray) -> ReportData:
    """Return a recording whose profiler has other arrays."""
    old = found.readings[NAME]
    return replace(found, readings={NAME: replace(old, arrays={**old.arrays, **arrays})})


@pytest.mark.compiled
@pytest.mark.parametrize("coordinates", ["earth", "ship", "instrument", "beam"])
def test_declared_stddev_of_a_cell_equals_that_of_many_ensembles(tmp_path: Path, coordinates: str) -> None:
    """The instrument is tilted and has weak echoes. False alarms: 1e-6 over all cells and axes."""
    found = record(tmp_path, coordinates, 40.0, removes=coordinates != "beam")
    reading, sensor = found.readings[NAME], found.sensors[NAME]
    name = "beam_velocity" if coordinates == "beam" else "velocity"
    assert doppler.find_profile_array(reading) == name
    declared = doppler.compute_declared_stddevs(reading, sensor, name)
    assert declared is not None
    rest = reading.arrays[name] - reading.ideal[name]
    assert np.isfinite(rest).all()
    count = rest.shape[0] - 1
    half = 0.5 * FALSE_ALARMS / declared.size
    ratio = rest.var(axis=0, ddof=1) / declared**2
    assert (ratio > stats.chi2.ppf(half, count) / count).all()
    assert (ratio < stats.chi2.isf(half, count) / count).all()
    assert declared[-1].min() > 1.3 * declared[0].min(), "faint echoes are noisier"


def test_axes_of_a_ship_are_level_and_keep_the_heading() -> None:
    """The bow has no component to the left, heights are the world's; with the heading it is the attitude."""
    from scipy.spatial.transform import Rotation

    turned = Rotation.random(50, rng=np.random.default_rng(5))
    earth = doppler.compute_profile_rotations(np.roll(turned.as_quat(), 1, axis=1), "earth")
    assert np.allclose(earth, turned.as_matrix(), atol=1e-14, rtol=0.0)
    ship = doppler.compute_profile_rotations(np.roll(turned.as_quat(), 1, axis=1), "ship")
    assert np.allclose(ship[:, 1, 0], 0.0, atol=1e-14, rtol=0.0)
    assert (ship[:, 0, 0] > 0.0).all()
    assert np.allclose(ship[:, 2], earth[:, 2], atol=1e-14, rtol=0.0)
    assert np.allclose(ship @ ship.transpose(0, 2, 1), np.eye(3), atol=1e-14, rtol=0.0)
    assert np.allclose(np.linalg.det(ship), 1.0, rtol=1e-12, atol=0.0)


@pytest.mark.compiled
def test_cell_table_has_the_errors_of_each_cell(tmp_path: Path) -> None:
    """The expected values are computed by NumPy from the archive."""
    found = record(tmp_path, "earth", 20.0)
    text = doppler.format_cell_table(found.readings[NAME], found.sensors[NAME])
    with np.load(tmp_path / "r.npz") as archive:
        rest = archive[f"{NAME}/velocity"] - archive[f"{NAME}/ideal/velocity"]
        echo, where = archive[f"{NAME}/echo"], archive[f"{NAME}/cell_distance"][0]
    heads = re.findall(r"<th scope=[^>]*>([^<]*)</th>", text.partition("<tbody>")[0])
    assert heads[1] == "distance (m)"
    assert heads[6:] == [
        *(f"{what} (mm/s)" for what in ("mean", "standard deviation", "of differences", "declared")),
        *(["east", "north", "up"] * 4),
    ]
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', text)
    assert [int(number) for number, _ in rows] == list(range(1, 10))
    for cell, (_, row) in enumerate(rows):
        cells = [part.replace("\u2212", "-") for part in re.findall(r"<td>(.*?)</td>", row)]
        assert float(cells[0]) == pytest.approx(where[cell], abs=1e-3)
        assert cells[1:3] == ["100 %", "100 %"]
        assert float(cells[3]) == pytest.approx(echo[:, cell].mean(), rel=5e-3, abs=0.0)
        numbers = [float(part) for part in cells[5:]]
        expected = [*rest[:, cell].mean(axis=0), *rest[:, cell].std(axis=0)]
        assert numbers[:6] == pytest.approx([1e3 * value for value in expected], abs=0.0051)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("coordinates", "names"),
    [("earth", ["east", "north", "up"]), ("ship", ["forward", "left", "up"]), ("instrument", ["x", "y", "z"])],
)
def test_axes_and_beams_have_names(tmp_path: Path, coordinates: str, names: list[str]) -> None:
    found = record(tmp_path, coordinates, 3.0)
    reading, sensor = found.readings[NAME], found.sensors[NAME]
    sections = {one.name: [channel.label for channel in one.channels] for one in make_array_sections(reading, sensor)}
    assert sections["bottom_velocity"] == names
    assert sections["bottom_range"] == ["beam 1", "beam 2", "beam 3", "beam 4"]
    assert sections["bottom_beam_velocity"] == sections["bottom_range"]
    assert not {"error_velocity", "percent_good", "time_of_validity"} & set(sections)
    profile, off = doppler.make_profile_figures(reading, sensor, found.span)
    assert [plot.label for plot in profile.plots] == [plot.label for plot in off.plots] == names
    shown = {
        figure.title: [plot.label for plot in figure.plots]
        for figure in doppler.make_quality_figures(reading, sensor, (0, 3))
    }
    four = sections["bottom_range"]
    assert shown == {"Percent good": [""], "Echo": four, "Correlation": four}
    assert "0 (m/s)" not in make_page(found)


@pytest.mark.compiled
def test_waterfalls_have_a_colour_bar(tmp_path: Path) -> None:
    """The colours of the bar are those of the picture, over the range of its axis."""
    image = pytest.importorskip("PIL.Image")
    found = record(tmp_path, "earth", 3.0)
    reading, sensor = found.readings[NAME], found.sensors[NAME]
    figures = [
        *doppler.make_profile_figures(reading, sensor, found.span),
        *doppler.make_quality_figures(reading, sensor, found.span),
    ]
    titles = ["velocity (m/s)", "reading minus ideal (m/s)", "good pings (%)", "echo above the noise (dB)"]
    assert [figure.colour_bar.axis.title for figure in figures if figure.colour_bar] == [*titles, "correlation"]
    for figure in figures:
        assert figure.colour_bar is not None
        text = figure.format_html().partition('<svg class="bar"')[2]
        assert len(re.findall(r"<text", text)) >= 3, "two ticks and a title"
        data = text.partition("base64,")[2].partition('"')[0]
        (row,) = np.asarray(image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))
        anchors = SIGNED_COLOURS if "m/s" in figure.colour_bar.axis.title else MAGNITUDE_COLOURS
        assert (row == images.compute_pixels(np.linspace(0.0, 1.0, row.shape[0]), anchors)).all()


@pytest.mark.compiled
def test_adcp_without_values_is_a_warning(tmp_path: Path) -> None:
    """This includes samples that are flagged valid, and profiles without nearly all cells."""
    dead = record(tmp_path, "earth", 3.0, reach=5.0)
    assert not dead.readings[NAME].valid.any()
    count = dead.readings[NAME].time.size
    assert list_warnings(dead) == [f"none of its {count} samples is valid"]
    sound = record(tmp_path, "earth", 3.0)
    assert list_warnings(sound) == []
    velocity = np.full(sound.readings[NAME].arrays["velocity"].shape, math.nan)
    assert list_warnings(replace_reading(sound, velocity=velocity)) == [
        f"no cell of velocity is known, in {count} valid samples"
    ]
    velocity[::2, 0] = 0.1
    missing = 100.0 * (1.0 - math.ceil(count / 2) / (9 * count))
    assert list_warnings(replace_reading(sound, velocity=velocity)) == [
        f"{missing:.4g} % of the cells of velocity are missing, in {count} valid samples"
    ]
    velocity[:, 0] = 0.1
    assert list_warnings(replace_reading(sound, velocity=velocity)) == [], "one cell of nine is more than a tenth"
    assert list_warnings(record(tmp_path, "beam", 3.0, removes=False)) == [], "it is to have no velocity"
    assert 'class="fine"' not in make_page(dead)


@pytest.mark.compiled
def test_sensor_without_readings_is_a_warning(tmp_path: Path) -> None:
    found = record(tmp_path, "earth", 0.5)
    lost = replace(found.sensors[NAME], name="boat::hull::other")
    more = replace(found, sensors={**found.sensors, lost.name: lost})
    assert list_warnings(more) == ["has no recorded samples"]


def make_dvl_recording(*, with_water: bool = True) -> Reading:
    """Return a recording of a DVL that loses the bottom in its middle third, in a current of 0.1 m/s along y."""
    time = np.arange(300) * 0.1
    mode = np.where((time >= 10.0) & (time < 20.0), 2.0, 1.0)
    ground = np.stack((np.full(300, 1.5), np.zeros(300), 0.01 * np.sin(time)), axis=1)
    water = ground - (0.0, 0.1, 0.0)
    noise = 1e-3 * np.random.default_rng(2).standard_normal((300, 3))
    velocity = np.where(mode[:, None] == 2.0, water, ground) + noise
    beams = np.where(mode[:, None] == 2.0, math.nan, np.ones((300, 4)))
    every, unit = np.ones(300, dtype=np.bool_), {"velocity": "m/s", "velocity_mode": "1", "beam_velocity": "m/s"}
    truth = {"velocity": ground, **({"water_velocity": water} if with_water else {})}
    arrays = {"velocity": velocity, "velocity_mode": mode, "beam_velocity": beams}
    return Reading("a::l::dvl", "dvl", "l", unit, time, np.zeros(300), arrays, truth, {}, every, every)


ADRIFT = "loses the bottom for 10 s from 10 s; 33.3 % of its velocities are through the water"


def test_water_velocity_is_compared_with_truth() -> None:
    """The current is not an error. False alarms of 5.5 deviations in 300 normals: at most 1e-5."""
    reading = make_dvl_recording()
    (sections,) = make_array_sections(reading, None)
    assert max(float(np.abs(c.residual).max()) for c in sections.channels) < 5.5e-3
    assert [float(edge) for (edge,) in sections.water_spans] == pytest.approx([10.0, 20.0], rel=1e-12, abs=0.0)
    shown = {figure.title: figure for figure in make_array_figures(sections, reading, (0.0, 29.9))}
    for title in ("Reading and ideal", "Residual"):
        assert "Through the water: 33.3 % of the samples" in shown[title].caption
        assert ("span", "through the water") in shown[title].legend
        for plot in shown[title].plots:
            first, wide = re.findall(r'class="span" d="M([\d.]+),0h([\d.]+)v', plot.elements[0])[0]
            assert float(first) == pytest.approx(UNITS * 10.0 / 29.9, abs=0.5)
            assert float(wide) == pytest.approx(UNITS * 10.0 / 29.9, abs=1.0)


def test_water_velocity_without_ideal_values_is_omitted() -> None:
    reading = make_dvl_recording(with_water=False)
    (sections,) = make_array_sections(reading, None)
    water = reading.arrays["velocity_mode"] == 2.0
    for channel in sections.channels:
        assert np.array_equal(np.isnan(channel.residual), water)
    assert sections.note.endswith("left out: the ideal velocity through the water is not recorded.")
    stated = replace(reading, arrays={**reading.arrays, "velocity_covariance": np.tile(1e-6 * np.eye(3), (300, 1, 1))})
    over = residuals.normalise_residuals(stated, "velocity", ["x", "y", "z"])
    assert all(np.array_equal(np.isnan(values), water) for values in over.values())


def test_navsat_velocity_has_axes_east_north_up() -> None:
    assert list_axis_labels("navsat", "velocity", 3, None) == ["east", "north", "up"]
    assert list_axis_labels("dvl", "velocity", 3, None) == ["x", "y", "z"]
    assert list_axis_labels("adcp", "bottom_solutions", 4, None)[-1] == "all beams"


def test_caption_names_the_velocity_reference() -> None:
    (figure,) = doppler.make_beam_figures(make_dvl_recording(), "dvl", (0.0, 29.9))
    assert figure.legend == [("good", "valid"), ("bad", "not valid"), ("water", "through the water")]
    assert figure.plots[0].label == "beam 1: 66.67 % valid"
    assert figure.plots[-1].label == "velocity: bottom 66.67 %, water 33.33 %"
    none = make_dvl_recording()
    none.arrays["velocity_mode"][:] = 0.0
    (figure,) = doppler.make_beam_figures(none, "dvl", (0.0, 29.9))
    assert figure.plots[-1].label == "velocity: none"


@pytest.mark.compiled
def test_beam_without_echo_is_a_warning(tmp_path: Path) -> None:
    """This holds for both instruments, although three other beams still give a velocity."""
    found = record(tmp_path, "earth", 3.0)
    beam_velocity = found.readings[NAME].arrays["beam_velocity"].copy()
    beam_velocity[:, :, 2] = math.nan
    assert list_warnings(replace_reading(found, beam_velocity=beam_velocity)) == ["beam 3 never has a velocity"]
    reading = make_dvl_recording()
    reading.arrays["beam_velocity"][:, 0] = math.nan
    sections = ReportData("a.npz", "sea", {reading.name: reading}, {}, None, {}, {}, {})
    assert list_warnings(sections) == [ADRIFT, "beam 1 never has a velocity"]


def test_long_loss_of_the_bottom_is_a_warning() -> None:
    """A loss up to 5 s does not warn, nor does a DVL without bottom track."""
    for span, cells in (((10.0, 20.0), [ADRIFT]), ((10.0, 15.0), []), ((0.0, 30.0), [])):
        reading = make_dvl_recording()
        reading.arrays["velocity_mode"][:] = np.where((reading.time >= span[0]) & (reading.time < span[1]), 2.0, 1.0)
        assert list_warnings(ReportData("a.npz", "sea", {reading.name: reading}, {}, None, {}, {}, {})) == cells


def test_dvl_without_velocity_is_a_warning() -> None:
    reading = make_dvl_recording()
    empty = replace(reading, arrays={**reading.arrays, "velocity": np.full((300, 3), math.nan)})
    found = ReportData("a.npz", "sea", {reading.name: empty}, {}, None, {}, {}, {})
    assert "no value of velocity is known, in 300 valid samples" in list_warnings(found)


@pytest.mark.parametrize(
    ("track", "declared"), [({}, 0.005), ({"per_speed": 0.001}, 0.0), ({"reference_rate": 10.0}, 0.0)]
)
def test_noise_that_depends_on_the_speed_is_not_the_declared_one(track: dict[str, float], declared: float) -> None:
    """The constant term alone would be less than the noise of a moving instrument."""
    reading = replace(make_dvl_recording(), ideal={**make_dvl_recording().ideal, "beam_velocity": np.ones((300, 4))})
    spec = Dvl(bottom=TrackErrors(noise=Noise(stddev=0.005), **track))
    sensor = MountedSensor(reading.name, spec, "a", "a::l", 10.0)
    channels = residuals.make_channels(reading, "beam_velocity", sensor)
    assert [channel.declared_stddev for channel in channels] == [declared] * 4


@pytest.mark.parametrize(
    ("heading", "labels"), [(0.0, ["east", "north", "up"]), (1.0, ["x", "y", "z"]), (None, ["x", "y", "z"])]
)
def test_axes_of_the_current_are_those_of_the_world(heading: float | None, labels: list[str]) -> None:
    """They are east, north, up only if the world's x axis is known to point east."""
    time, velocity = np.arange(5.0), np.zeros((5, 3))
    layers = Layers("/layers", (1.0, 5.0), np.ones((5, 2, 3)))
    current = Current("/current", (0.0, 0.0, 0.0), time, velocity, layers=layers)
    data = ReportData("a", "sea", {}, {}, current, {}, {}, {}, heading=heading)
    (figure,) = doppler.make_current_figures(data)
    assert [plot.label for plot in figure.plots] == labels
    assert "The shallowest are on top." in figure.caption
    assert "nearest" not in figure.caption


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["r.npz", "r.mcap"])
def test_heading_of_the_world_is_known_from_the_recording(tmp_path: Path, name: str) -> None:
    world = ns.load(ROOT / "examples" / "quadrotor.sdf")
    world = replace(world, environment=replace(world.environment, origin=Origin(0.8, 0.1, heading=0.5)))
    ns.record(world, tmp_path / name, 0.1)
    assert read_report_data(str(tmp_path / name)).heading == 0.5


def test_times_and_constant_flags_are_omitted() -> None:
    """Times of validity and constant flags are omitted. A zero residual has no histogram."""
    reading = make_dvl_recording()
    same = {"time_of_validity": reading.time, "out_of_range": np.zeros(300), "depth": np.full(300, 4.0)}
    unit = {**reading.unit, "time_of_validity": "s", "out_of_range": "1", "depth": "m"}
    more: dict[str, Any] = {"arrays": {**reading.arrays, **same}, "ideal": {**reading.ideal, **same}, "unit": unit}
    sections = make_array_sections(replace(reading, **more), None)
    assert [one.name for one in sections] == ["velocity", "depth"]
    assert [figure.title for figure in make_array_figures(sections[1], reading, (0.0, 29.9))] == [
        "Reading and ideal",
        "Residual",
    ]
    struck = np.zeros(300)
    struck[7] = 1.0
    more["arrays"] = {**more["arrays"], "out_of_range": struck}
    assert "out_of_range" in [one.name for one in make_array_sections(replace(reading, **more), None)]


def test_omitted_beams_are_mentioned() -> None:
    reading = make_dvl_recording()
    wide = np.random.default_rng(1).standard_normal((300, 10))
    more = {"arrays": {"beam_velocity": wide}, "ideal": {"beam_velocity": np.zeros((300, 10))}}
    (told,) = make_array_sections(replace(reading, **more), None)
    assert len(told.channels) == 10
    figures = {figure.title: figure for figure in make_array_figures(told, reading, (0.0, 29.9))}
    assert len(figures["Reading and ideal"].plots) == 8
    assert len(figures["Histogram"].legend) == 8
    for figure in figures.values():
        assert figure.caption.endswith("The figure shows 8 of 10 channels; the table has all.")
    text = html.unescape(
        make_page(ReportData("a", "sea", {reading.name: replace(reading, **more)}, {}, None, {}, {}, {}))
    )
    assert '<th scope="row">beam velocity beam 10</th>' in text


def test_cells_without_a_known_distance_are_numbered() -> None:
    time = np.arange(4.0)
    every = np.ones(4, dtype=np.bool_)
    arrays = {"velocity": np.ones((4, 2, 3))}
    reading = Reading(NAME, "adcp", "", {}, time, np.zeros(4), arrays, {}, {}, every, every)
    where, title = doppler.get_cell_positions(reading, None, 2)
    assert where.tolist() == [1.0, 2.0]
    assert title == "cell"
    assert doppler.format_cell_table(reading, None) == ""
    sections = replace(reading, ideal={"velocity": np.ones((4, 2, 3))})
    assert "declared" in doppler.format_cell_table(sections, None)
    assert doppler.compute_declared_stddevs(sections, None, "velocity") is None
    assert isinstance(make_page(ReportData("a", "sea", {NAME: sections}, {}, None, {}, {}, {})), str)


def test_spec_of_another_type_has_no_declared_noise(tmp_path: Path) -> None:
    """A world that is given with a bag may have such a spec."""
    from navsense.sensors.magnetometer import Magnetometer

    other = MountedSensor(NAME, Magnetometer(), "boat", "boat::hull", 1.0)
    arrays = {"velocity": np.ones((1, 1, 3)), "beam_direction": np.ones((1, 4, 3))}
    one = np.ones(1, dtype=np.bool_)
    reading = Reading(NAME, "adcp", "", {}, np.zeros(1), np.zeros(1), arrays, {}, {}, one, one)
    assert doppler.compute_declared_stddevs(reading, other, "velocity") is None
