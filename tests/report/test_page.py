"""The report of a recorded survey: its content, its values, and its display in a browser."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense import cli
from navsense.core.errors import RecordingError
from navsense.fault_file import with_faults
from navsense.figures import DARK, LIGHT
from navsense.recordings.rosbag import writer as rosbag_writer
from navsense.report import svg_figure, write
from navsense.report.page import GRID_COLUMNS
from navsense.report.report_data import read_report_data

pytestmark = [pytest.mark.requirement("REC-1"), pytest.mark.compiled]

ROOT = Path(__file__).resolve().parents[2]
SURVEY = ROOT / "examples" / "auv_survey.sdf"
DURATION = 20.0

FAULTS = """
[[fault]]
of = "auv::dvl_link::dvl"
kind = "lost_lock"
start = 8.0
end = 12.0

[[fault]]
of = "auv::base_link::depth"
kind = "dropout"
start = 5.0
end = 13.0

[[fault]]
of = "auv::base_link::computer"
kind = "step"
start = 15.0
value = 0.03
"""

LARGEST = 8_000_000
"""Maximum size of a page (bytes)."""

VOID = frozenset(("meta", "link", "br", "img", "path", "rect", "circle", "image"))


class Outline(HTMLParser):
    """The structure of a page. Its elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a short recording of the survey with faults."""
    folder = tmp_path_factory.mktemp("survey")
    (folder / "faults.toml").write_text(FAULTS, encoding="utf-8")
    path = folder / "survey.npz"
    ns.record(with_faults(ns.load(SURVEY), folder / "faults.toml"), path, DURATION, seed=7)
    return path


@pytest.fixture(scope="module")
def page(survey: Path) -> Path:
    return write(survey, survey.with_suffix(".html"), world=str(SURVEY))


def list_figures(page: Path) -> list[ET.Element]:
    """Return the figures of a page."""
    texts = re.findall(r"<figure.*?</figure>", page.read_text(encoding="utf-8"), re.DOTALL)
    return [ET.fromstring(text) for text in texts]  # noqa: S314 - our own


@pytest.fixture(scope="module")
def outline(page: Path) -> Outline:
    return Outline(page.read_text(encoding="utf-8"))


def test_page_is_complete_and_loads_nothing(page: Path, outline: Outline) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert outline.open == []
    ids = [about["id"] for _, about in outline.tags if "id" in about]
    assert len(ids) == len(set(ids))
    links = {about["href"] for tag, about in outline.tags if tag == "a"}
    assert links == {f"#{key}" for key in ids}
    assert not re.search(r"<script|https?://|url\(|@import|javascript:", text)
    for tag, about in outline.tags:
        if tag == "image":
            assert str(about["href"]).startswith("data:image/png;base64,")


def test_each_figure_is_valid_and_has_a_caption(page: Path) -> None:
    figures = list_figures(page)
    assert len(figures) > 30
    for figure in figures:
        (drawing,) = figure.iterfind("div[@role='img']")
        assert len(drawing.get("aria-label", "")) > 30
        assert figure.find("figcaption") is not None
        for path in drawing.iter("path"):
            assert not re.search(r"nan|inf", path.get("d", ""))


def test_no_text_scales_with_its_figure(page: Path) -> None:
    """Drawings are stretched, so they have no text; all sizes of text are pixels, those of ticks the least."""
    for figure in list_figures(page):
        for stretched in figure.iterfind(".//svg[@viewBox]"):
            assert stretched.get("preserveAspectRatio") == "none"
            assert list(stretched.iter("text")) == []
    css = page.read_text(encoding="utf-8").partition("<style>")[2].partition("</style>")[0]
    sizes = dict(re.findall(r"([^{}\n]*)\{[^{}]*font(?:-size)?:(?:[a-z0-9]* )?([\d.]+px)", css))
    assert not re.search(r"font(?:-size)?:[\d.]+(?:em|rem|%|vw)", css)
    ticks, titles = (float(sizes[key].removesuffix("px")) for key in ("svg text", "h4"))
    assert ticks < float(sizes["svg text.title"].removesuffix("px")) < titles
    assert ticks == min(float(size.removesuffix("px")) for size in sizes.values())
    assert "vector-effect:non-scaling-stroke" in css


def test_every_plot_has_data_and_every_line_is_in_the_legend(page: Path) -> None:
    """Plots of a figure with several of them have a label or a title of their own."""
    for figure in list_figures(page):
        keys = {str(key.get("class")) for key in figure.iterfind(".//div[@class='keys']/span/i")}
        plots = figure.findall("div[@role='img']/svg")
        title = figure.findtext("h4")
        for plot in plots:
            if plot.get("class") == "bar":
                continue
            (drawing,) = plot.iterfind("svg[@class='drawing']")
            drawn = {str(mark.get("class")).removesuffix(" band") for mark in drawing if mark.get("class") != "grid"}
            assert drawn - svg_figure.REFERENCE_CLASSES, title
            explained_by_the_colour_bar = {"track", "pixels", "", "casing"}
            assert drawn - explained_by_the_colour_bar <= keys, title
        plots = [plot for plot in plots if plot.get("class") != "bar"]
        if len(plots) > 1:
            texts = [plot.findtext("svg/text") or plot.findtext("text[@class='tag']") or "" for plot in plots]
            assert all(texts), title


def test_figures_have_three_columns_from_1150_pixels(page: Path) -> None:
    css = page.read_text(encoding="utf-8")
    widths = {letter: int(width) for width, letter in re.findall(r"@media \(min-width:(\d+)px\)\{\.([a-z])12\{", css)}
    assert widths["l"] == 1150
    assert f".l4{{grid-column:span {GRID_COLUMNS // 3}}}" in css
    assert widths["m"] < 800
    assert 1500 < widths["w"] < 1600
    assert "grid{display:grid" in css
    assert "align-items:stretch" in css


def test_summary_is_first_and_has_the_values_of_the_track(survey: Path, page: Path, outline: Outline) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.index('<section id="summary">') < text.index('<section id="warnings">') < text.index('id="track"')
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)(?:<small>.*?</small>)?</dd>", text))
    data = read_report_data(str(survey))
    position = data.truth["auv::base_link"].position
    length = float(np.linalg.norm(np.diff(position, axis=0), axis=1).sum())
    number, unit = facts["Distance"].split()
    assert unit == "m"
    assert float(number) == pytest.approx(length, rel=1e-3, abs=0.0)
    low, high = (float(word) for word in facts["Depth"].replace("\u00a0", " ").removesuffix(" m").split(" to "))
    assert low == pytest.approx(-position[:, 2].max(), abs=0.05, rel=0.0)
    assert high == pytest.approx(-position[:, 2].min(), abs=0.05, rel=0.0)
    assert facts["Duration"] == "19.99 s"
    valid = sum(int((reading.valid & reading.emitted).sum()) for reading in data.readings.values())
    count = sum(int(reading.emitted.sum()) for reading in data.readings.values())
    assert float(facts["Valid samples"].split()[0]) == pytest.approx(100.0 * valid / count, rel=1e-3, abs=0.0)
    assert {f"sensor-{name}".replace("::", "--").replace("_", "-") for name in data.readings} <= {
        str(about["href"])[1:] for tag, about in outline.tags if tag == "a"
    }


def test_page_has_every_sensor_and_topic(survey: Path, outline: Outline) -> None:
    words = " ".join(outline.words)
    for name, reading in read_report_data(str(survey)).readings.items():
        assert name in outline.words
        assert f"{reading.type.replace('_', ' ')}, " in words
    titles = {
        "Track from above", "Height of the track", "Beams of dvl", "Faults", "Reading and ideal", "Residual",
        "Histogram",
        "Allan deviation", "Clock auv::base_link::computer", "Stability of auv::imu_link::inertial",
        "Residual divided by its reported standard deviation", "Current profile", "Profile minus ideal",
    }  # fmt: skip
    assert titles <= set(outline.words)
    assert "fault: lost lock, once, 32 samples, from 8 s, until 12 s" in outline.words
    assert "fault: step, from 15 s, until 19.995 s" in outline.words
    assert any("stamps are up to" in text and "off true time" in text for text in outline.words)
    assert any("no valid sample for 8.1 s from 4.9 s, " in text for text in outline.words)


def test_numbers_of_the_page_equal_those_of_the_recording(survey: Path, page: Path) -> None:
    """NumPy computes the means and deviations of the table from the archive."""
    with np.load(survey) as archive:
        keys = "auv::imu_link::imu/{}linear_acceleration"
        rest = archive[keys.format("")] - archive[keys.format("ideal/")]
        emitted = archive["auv::imu_link::imu/emitted"]
    row = re.search(r'<th scope="row">linear acceleration x</th>(.*?)</tr>', page.read_text(encoding="utf-8"))
    assert row is not None
    cells = re.findall(r"<td>(.*?)</td>", row.group(1))
    assert int(cells[0]) == int(emitted.sum())
    scale = {"mm/s²": 1e-3, "µm/s²": 1e-6, "m/s²": 1.0}
    for cell, expected in zip(cells[2:4], (rest[emitted, 0].mean(), rest[emitted, 0].std()), strict=True):
        number, unit = cell.replace("\u2212", "-").split()
        assert float(number) * scale[unit] == pytest.approx(expected, rel=1e-3, abs=0.0)
    assert re.fullmatch(r"passed: variance [\d.]+ times declared", cells[6])


def test_ground_of_the_track_equals_the_true_range(survey: Path, outline: Outline) -> None:
    """The smallest clearance equals the true range of the altimeter, which is 0.13 m below the link.

    Its cone is 10 degrees wide: the nearest point is less than 13 m tan(5 deg) away, on slopes below a half.
    """
    text = next(text for text in outline.words if "Minimum clearance of" in text)
    found = re.search(r"Minimum clearance of auv::base_link: ([\d.]+) m above the ground, at \d+ s", text)
    assert found is not None
    with np.load(survey) as archive:
        ranges = archive["auv::altimeter_link::altimeter/ideal/range"]
    assert float(found.group(1)) == pytest.approx(float(np.nanmin(ranges)) + 0.13, abs=0.6)


def test_page_of_messages_equals_page_of_arrays(tmp_path: Path) -> None:
    world = ns.load(ROOT / "examples" / "quadrotor.sdf")
    for name in ("a.npz", "b.mcap"):
        ns.record(world, tmp_path / name, 2.0, seed=3)
    arrays, messages = (read_report_data(str(tmp_path / name)) for name in ("a.npz", "b.mcap"))
    assert list(arrays.readings) == list(messages.readings)
    assert arrays.clocks == messages.clocks == {clock.name: replace(clock, where=None) for clock in world.clocks}
    for name, reading in arrays.readings.items():
        other = messages.readings[name]
        assert np.array_equal(reading.time, other.time)
        for key in set(other.ideal) & set(other.arrays):
            assert np.allclose(reading[key], other[key], rtol=1e-6, atol=1e-9, equal_nan=True)
    text = write(tmp_path / "b.mcap", tmp_path / "b.html").read_text(encoding="utf-8")
    assert all(f"<h2>{name}</h2>" in text for name in arrays.readings)


def test_bag_without_specs_uses_those_of_the_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "examples" / "quadrotor.sdf"
    world, bag, page = ns.load(file), tmp_path / "run.bag", tmp_path / "page.html"
    monkeypatch.setattr(rosbag_writer, "make_mcap_metadata", lambda _recording: {})  # as one was before it said so
    ns.record(world, bag, 0.5, seed=3, epoch=1_700_000_000)
    monkeypatch.setattr(sys, "argv", ["navsense", "report", str(bag), "--world", str(file), "-o", str(page)])
    cli.main()
    assert f"wrote {page}: " in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "1000 Hz, clock: quadrotor::base_link::autopilot" in text
    assert "Dashed: the declared noise." in text


def write_bag_of_another_program(path: Path) -> None:
    """Write an IMU and a magnetometer at 100 Hz, as a driver publishes them, without truth and metadata."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    vector, zero = types["geometry_msgs/msg/Vector3"](0.1, 0.2, 9.8), np.zeros(9)
    turn = types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    with Writer(path, version=9) as bag:
        kinds = {"/imu": "sensor_msgs/msg/Imu", "/mag": "sensor_msgs/msg/MagneticField"}
        topics = {topic: bag.add_connection(topic, kind, typestore=store) for topic, kind in kinds.items()}
        for second, nanosecond in ((s, n) for s in range(1_700_000_000, 1_700_000_003) for n in range(0, 10**9, 10**7)):
            stamp = types["builtin_interfaces/msg/Time"](second, nanosecond)
            header = types["std_msgs/msg/Header"](stamp, "imu_link")
            imu = types[kinds["/imu"]](header, turn, zero, vector, zero, vector, zero)
            mag = types[kinds["/mag"]](header, vector, zero)
            for topic, message in (("/imu", imu), ("/mag", mag)):
                data = store.serialize_cdr(message, kinds[topic])
                bag.write(topics[topic], second * 10**9 + nanosecond, data)


def test_report_of_another_program_lists_unchecked_items(tmp_path: Path) -> None:
    """Without truth, declared noise and true time there is nothing to pass."""
    write_bag_of_another_program(tmp_path / "drive")
    text = write(tmp_path / "drive", tmp_path / "drive.html").read_text(encoding="utf-8")
    assert "<title>drive: navsense report</title>" in text
    assert "seed" not in Outline(text).words[2]
    assert '<li class="note">No warnings: every sensor has values; no noise was tested.</li>' in text
    assert "has no true time: times on this page are stamps, and the errors of clocks are not checked" in text
    assert "has no true positions: no track, and clearance is not checked" in text
    assert text.count("noise not tested: the recording has no ideal readings of it") == 2
    assert "Not checked: the recording has no true time." in text
    assert "passed" not in text
    assert "All stamps are true time" not in text


def test_page_of_a_euroc_folder_has_the_seed_only_if_it_is_known(tmp_path: Path) -> None:
    ns.record(ns.load(ROOT / "examples" / "quadrotor.sdf"), tmp_path / "flight.euroc", 1.0, seed=5)
    assert read_report_data(str(tmp_path / "flight")).metadata["seed"] == "5"
    (tmp_path / "flight" / "navsense.json").unlink()
    data = read_report_data(str(tmp_path / "flight"))
    assert data.metadata["seed"] is None
    text = write(tmp_path / "flight", tmp_path / "flight.html").read_text(encoding="utf-8")
    assert "<title>flight: navsense report</title>" in text
    assert "Not checked: the recording has no true time." in text
    assert "clock: not recorded" in text
    assert "clock: true time" not in text
    assert "<h2>Track</h2>" in text


def test_names_are_escaped(tmp_path: Path) -> None:
    sdf = (ROOT / "examples" / "quadrotor.sdf").read_text(encoding="utf-8")
    name = re.search(r'<world name="([^"]*)"', sdf)
    assert name is not None
    odd = tmp_path / "odd.sdf"
    odd.write_text(sdf.replace(name.group(0), '<world name="&lt;b onload=x&gt;&amp;"'), encoding="utf-8")
    ns.record(ns.load(odd), tmp_path / "odd.npz", 0.2)
    text = write(tmp_path / "odd.npz", tmp_path / "odd.html").read_text(encoding="utf-8")
    assert "<b onload" not in text
    assert "&lt;b onload=x&gt;&amp;" in text


def test_world_file_in_the_folder_of_a_recording_is_found(tmp_path: Path) -> None:
    world = tmp_path / "quadrotor.sdf"
    world.write_bytes((ROOT / "examples" / "quadrotor.sdf").read_bytes())
    ns.record(ns.load(world), tmp_path / "a.npz", 0.2)
    found = read_report_data(str(tmp_path / "a.npz"))
    assert found.sdf_world is not None
    assert "world file: quadrotor.sdf" in found.notes
    assert not any(str(tmp_path) in note for note in found.notes), "a page shows no folder of this machine"
    (tmp_path / "again.sdf").write_bytes(world.read_bytes())
    assert read_report_data(str(tmp_path / "a.npz")).sdf_world is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.npz",), "missing.npz: cannot be read: no such file or directory; check the name"),
        (("text.npz",), "is not a NumPy archive, or is damaged; must be an .npz recording"),
        (("text.mcap",), "text.mcap"),
        (("text.npz", "-o", "page.pdf"), "report: page.pdf; must end in .html or .htm"),
        (("text.npz", "-o", "nowhere/page.html"), "the directory does not exist"),
        (("text.npz", "-o", "."), "must end in .html or .htm"),
        (("text.npz", "-o", "folder.html"), "is a directory"),
    ],
)
def test_invalid_arguments_are_errors(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text.npz", "text.mcap"):
        (tmp_path / name).write_text("no recording", encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    monkeypatch.setattr(sys, "argv", ["navsense", "report", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "text.mcap", "text.npz"]


def test_world_without_the_sensors_is_an_error(survey: Path) -> None:
    with pytest.raises(RecordingError, match="has no sensor auv"):
        read_report_data(str(survey), str(ROOT / "examples" / "quadrotor.sdf"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless Chromium; skip the test if there is none."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        chromium = importlib.import_module("chromium")
    finally:
        sys.path.remove(str(ROOT / "tools"))
        sys.modules.pop("chromium", None)
    program = chromium.find()
    if program is None:
        pytest.skip("needs Chromium: the Debian package chromium")
    with chromium.Browser(program) as running:
        yield running


@pytest.mark.parametrize("width", [800, 1100, 1150, 1280, 1500, 1600])
def test_figures_fill_their_rows(page: Path, browser: Any, width: int) -> None:
    """The figures of a row extend from the start to the end of their section, and have one height."""
    shown = browser.open(page, width, 1200)
    rows = shown.value(
        "[...document.querySelectorAll('main > section > .grid')].filter(g => g.children.length > 1).map(g => {"
        "const rows = {}, all = g.getBoundingClientRect();"
        "for (const f of g.children) { const b = f.getBoundingClientRect();"
        "(rows[b.top] = rows[b.top] || []).push([b.left - all.left, all.right - b.right, b.height]); }"
        "return Object.keys(rows).sort((a, b) => a - b).map(k => rows[k]).map(r =>"
        "[r.length, r[0][0], r[r.length - 1][1],"
        "Math.max(...r.map(f => f[2])) - Math.min(...r.map(f => f[2]))]); })"
    )
    assert len(rows) > 10
    most = 2 if width < 1150 else 3 if width < 1528 else 4
    assert max(count for sizes in rows for count, *_ in sizes) == most
    for sizes in rows:
        assert all(count == most for count, *_ in sizes[1:]), "the first row has the remainder"
        assert all(abs(left) < 1.0 and abs(right) < 1.0 for _, left, right, _ in sizes)
        assert all(difference < 1.0 for *_, difference in sizes)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 800, 1280, 1600])
def test_text_has_one_size_at_every_width(page: Path, browser: Any, width: int, dark: bool) -> None:
    shown = browser.open(page, width, 1200, dark=dark)
    heights = shown.value(
        "[...document.querySelectorAll('main > section > .grid > figure svg text:not(.title):not(.tag)')]"
        ".map(t => [getComputedStyle(t).fontSize, t.getCTM().a, t.getCTM().d])"
    )
    assert len(heights) > 100
    assert {tuple(one) for one in heights} == {("11px", 1, 1)}
    outside = shown.value(
        "[...document.querySelectorAll('main > section > .grid > figure')].filter(f => {"
        "const card = f.getBoundingClientRect();"
        "return [...f.querySelectorAll('svg text')].some(t => { const b = t.getBoundingClientRect();"
        "return b.left < card.left || b.right > card.right || b.top < card.top || b.bottom > card.bottom; }); })"
        ".map(f => f.querySelector('h4').textContent)"
    )
    assert outside == [], "text outside its card"


@pytest.mark.parametrize("width", [400, 1600])
def test_browser_shows_the_page(page: Path, browser: Any, width: int) -> None:
    shown = browser.open(page, width, 1200, dark=width == 400)
    assert shown.value("document.querySelectorAll('figure').length") > 30
    assert shown.value("document.documentElement.scrollWidth") <= width
    boxes = shown.value("[...document.querySelectorAll('main > section > .grid > figure')].map(s => s.clientWidth)")
    assert min(boxes) >= 340
    assert max(boxes) <= width
    side_by_side = shown.value(
        "new Set([...document.querySelectorAll('#track figure')].map(f => f.getBoundingClientRect().top)).size"
    )
    assert side_by_side == (4 if width == 400 else 1)
    line, surface = (
        shown.value(f"getComputedStyle(document.querySelector('#track path.{css_class}')).stroke")
        for css_class in ("c1", "surface")
    )
    palette = DARK if width == 400 else LIGHT
    for colour, expected in ((line, palette.c1), (surface, palette.water)):
        channels = [int(number) for number in re.findall(r"\d+", colour)]
        assert channels == [int(expected[i : i + 2], 16) for i in (1, 3, 5)]
    assert shown.requests == [page.resolve().as_uri()]
    assert shown.trouble == []


def test_browser_detects_a_broken_page(tmp_path: Path, browser: Any) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://example.invalid/a.png'><script>throw Error('here')</script>", encoding="utf-8")
    shown = browser.open(bad, 400, 400)
    assert "http://example.invalid/a.png" in shown.requests
    assert any("here" in text for text in shown.trouble)
