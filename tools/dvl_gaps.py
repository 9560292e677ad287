"""Write the generated parts and pictures of docs/explanation/dvl.md: two classic plug-ins and the physical model.

Functions here generate each part of the page between `<!-- made: NAME -->` and `<!-- end -->`, from worlds of
`dvl_worlds` that run in both fidelities with the seed on the page. The remaining page is written manually.

Usage: python tools/dvl_gaps.py [--check]      --check writes nothing; exit code 1 if a part is out of date
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import dvl_worlds as worlds
import numpy as np
from svg_charts import Line, Panel, draw_chart, make_steps

import navsense as ns
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray
from navsense.figures import LIGHT
from navsense.motion.trajectory import Trajectory
from navsense.noise.specification import Noise
from navsense.runner.run import Run
from navsense.sensors.doppler import X_AZIMUTHS_DEG, EchoStrength, LongTermFilter, TrackErrors, make_janus_beams
from navsense.sensors.dvl import Dvl
from navsense.world import World

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "dvl.md"
PICTURES = ROOT / "docs" / "pictures"

SEED = 20250101

UUV_COLOUR, DS_COLOUR, OWN_COLOUR, TRUE_COLOUR, SHADE = LIGHT.c1, LIGHT.c3, LIGHT.c0, LIGHT.ink, LIGHT.page


class Part(NamedTuple):
    """A part of the page: its text, and its pictures by name."""

    text: str
    pictures: Mapping[str, str] = {}


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def format_number(number: float, digits: int = 3, unit: str = "") -> str:
    """Return a number in the format of the page, a dash if it is invalid."""
    if math.isnan(number):
        return "—"
    text = f"{number:.{digits}f}"
    return (text.removeprefix("-") if not float(text) else text) + unit


def format_percent(number: float) -> str:
    """Return a ratio to 1 as a difference in percent."""
    text = f"{100.0 * (number - 1.0):+.2f} %"
    return "0.00 %" if text[1:] == "0.00 %" else text


def format_picture(name: str, words: str) -> str:
    """Return the reference of the page to a picture."""
    return f"![{words}](../pictures/{name}.svg)"


def get_reading(run: Run, name: str) -> Reading:
    """Return the reading of the vehicle's sensor with this name."""
    reading: Reading = run[f"auv::base::{name}"]
    return reading


def compute_stddev(values: AnyArray) -> float:
    """Return the standard deviation of the valid values."""
    return float(np.nanstd(values))


# GAP-1, GAP-5: over a hole, with a current

SPEED, DEPTH, BED = 1.5, 10.0, 50.0
"""Speed (m/s), and depths (m) of the vehicle and of the bed."""

HOLE, WAY, FULL_TIME = (100.0, 250.0), 300.0, 200.0
"""Position of the hole and of the end along the track (m), and duration (s)."""

HOLED = "\n".join(
    [
        worlds.make_block("west", HOLE[0] - 100.0, -BED, (200.0, 400.0, 250.0)),
        worlds.make_block("east", HOLE[1] + 100.0, -BED, (200.0, 400.0, 250.0)),
        worlds.make_block("floor", 0.5 * (HOLE[0] + HOLE[1]), -290.0, (200.0, 400.0, 10.0)),
        '    <navsense:water surface="0"/>',
        '    <navsense:current topic="/hydrodynamics/current_velocity" rate="0">',
        '      <stratified> <layer depth="0">0.4 0 0</layer> <layer depth="80">0 0 0</layer> </stratified>',
        "    </navsense:current>",
    ]
)


@cache
def simulate_hole(fidelity: str) -> Run:
    """Return the run over the hole."""
    sensors = worlds.make_woods_hole_sensor(azimuths=worlds.PLUS)
    world = worlds.load(HOLED, sensors, worlds.make_uuv_plugin(worlds.PLUS), fidelity)
    motion = worlds.make_straight_motion((0.0, 0.0, -DEPTH), (SPEED, 0.0, 0.0), FULL_TIME)
    return ns.simulate(world, FULL_TIME, seed=SEED, motion={"auv": motion})


def list_instruments() -> list[tuple[str, Reading, str]]:
    """Return the three instruments that pass over the hole."""
    classic, physical = simulate_hole("classic"), simulate_hole("physical")
    return [
        ("UUV Simulator, classic", get_reading(classic, "uuv"), UUV_COLOUR),
        ("WHOI, classic", get_reading(classic, "dvl"), DS_COLOUR),
        ("WHOI, physical", get_reading(physical, "dvl"), OWN_COLOUR),
    ]


MODES = {0: "none", 1: "bottom", 2: "water"}


def modes_row(name: str, reading: Reading, where: tuple[float, float]) -> list[str]:
    """Return the values of one instrument along a part of the track."""
    along = SPEED * reading.time
    here = (along > where[0]) & (along < where[1]) & np.isfinite(reading["velocity_mode"])
    velocity = reading["velocity"][here] - (SPEED, 0.0, 0.0)
    stated = np.sqrt(reading["velocity_covariance"][here][:, 0, 0])
    modes = np.unique(reading["velocity_mode"][here]).astype(int).tolist()
    figures = (np.nanmean(velocity[:, 0]), compute_stddev(velocity[:, 0]), float(np.nanmean(stated)))
    return [
        name,
        ", ".join(MODES[mode] for mode in modes),
        *(format_number(1e3 * float(figure), 1) for figure in figures),
    ]


def modes() -> Part:
    """Return bottom and water tracking over a hole: velocity and altitude along the track."""
    instruments = list_instruments()
    parts = (("over the bed", (0.0, 75.0)), ("over the hole", (120.0, 230.0)))
    rows = [[words, *modes_row(name, reading, where)] for words, where in parts for name, reading, _ in instruments]
    head = ["where", "instrument", "tracks", "mean error, mm/s", "standard deviation, mm/s", "reported, mm/s"]
    drawn = [
        Line(name, SPEED * reading.time[::4], (reading["velocity"][::4, 0] - SPEED), colour, 1.3)
        for name, reading, colour in instruments
    ]
    high = [Line(name, SPEED * reading.time, reading["altitude"], colour, 1.8) for name, reading, colour in instruments]
    lines = ([0.0, HOLE[0]], [BED - DEPTH] * 2), ([HOLE[1], WAY], [BED - DEPTH] * 2)
    true = [Line("true" if not k else "", x, y, TRUE_COLOUR, 1.4, "5 4") for k, (x, y) in enumerate(lines)]
    axes: dict[str, Any] = {"across": "position (m)", "x": (0.0, WAY), "shades": [(*HOLE, SHADE, "hole, 290 m deep")]}
    panels = [
        Panel("Error of the forward velocity", up="error (m/s)", y=(-0.35, 0.1), lines=drawn, **axes),
        Panel("Altitude", up="altitude (m)", y=(20.0, 100.0), lines=[*high, *true], **axes),
    ]
    picture = format_picture("dvl-modes", "velocity and altitude of three instruments along a track over a hole")
    return Part(f"{picture}\n\n{format_table(head, rows)}", {"dvl-modes": draw_chart(panels, 1, 760.0, 300.0)})


AT = (50.0, 88.0, 110.0, 170.0)
"""Positions (m) along the track: all beams on the bed, one over the hole, one left, none left."""


def ranges() -> Part:
    """Return altitudes with some beams without an echo."""
    instruments = list_instruments()
    rows = []
    for place in AT:
        row = round(place / SPEED * worlds.RATE)
        good = f"{float(instruments[1][1]['beam_valid'][row].sum()):.0f}"
        rows.append(
            [f"{place:g} m", good, *(format_number(reading["altitude"][row], 1) for _, reading, _ in instruments)]
        )
    return Part(format_table(["position", "beams with a bottom echo", *(name for name, *_ in instruments)], rows))


# GAP-4: beams of one ping


def beams() -> Part:
    """Return the beam values of the first ping with one beam without a bottom."""
    instruments = list_instruments()
    here = int(np.flatnonzero(instruments[2][1]["num_good_beams"] == 3.0)[0])
    rows = []
    for name, reading, _ in instruments:
        figures = [reading[key][here] for key in ("beam_range", "beam_velocity", "beam_deviation", "beam_valid")]
        for k, (distance, velocity, deviation, valid) in enumerate(zip(*figures, strict=True)):
            numbers = (format_number(distance, 2), format_number(velocity), format_number(1e3 * deviation, 1))
            rows.append([name, ("fore", "aft", "port", "starboard")[k], *numbers, "yes" if valid else "no"])
    head = ["instrument", "beam", "range, m", "velocity, m/s", "standard deviation, mm/s", "valid"]
    return Part(format_table(head, rows))


# GAP-2: the deviation

SPEEDS = (0.25, 1.0, 2.0, 3.0, 4.0, 5.0)
FLAT = f'{worlds.make_plane()}\n    <navsense:water surface="1000"/>'


def speed() -> Part:
    """Return the deviation of the horizontal velocity by speed."""
    deviations: dict[str, list[float]] = {"uuv": [], "dvl": [], "own": []}
    for fidelity, names in (("classic", ("uuv", "dvl")), ("physical", ("own",))):
        sensors = f"{worlds.make_woods_hole_sensor()}\n{worlds.OWN}"
        world = worlds.load(FLAT, sensors, worlds.make_uuv_plugin(), fidelity)
        for going in SPEEDS:
            motion = worlds.make_straight_motion((0.0, 0.0, 20.0), (going, 0.0, 0.0), 310.0)
            run = ns.simulate(world, 300.0, seed=SEED, motion={"auv": motion})
            for name in names:
                error = get_reading(run, name)["velocity"][:, :2] - (going, 0.0)
                deviations[name].append(1e3 * compute_stddev(error))
    declared = [1e3 * math.sqrt(2.0) * (0.003 + 0.001 * going) for going in SPEEDS]
    lines = [
        Line("UUV Simulator, classic", SPEEDS, deviations["uuv"], UUV_COLOUR, dots=3.5),
        Line("WHOI, classic", SPEEDS, deviations["dvl"], DS_COLOUR, dots=3.5),
        Line("own, physical", SPEEDS, deviations["own"], OWN_COLOUR, dots=3.5),
        Line("declared: root 2 (3 mm/s + 0.1 %)", SPEEDS, declared, OWN_COLOUR, 1.2, "5 4"),
    ]
    panel = Panel(
        "Standard deviation of the horizontal velocity",
        "speed (m/s)",
        "standard deviation (mm/s)",
        (0.0, 5.25),
        (0.0, 14.0),
        lines,
    )
    picture = format_picture("dvl-speed", "standard deviation of the horizontal velocity by speed")
    return Part(picture, {"dvl-speed": draw_chart([panel], 1, 760.0, 320.0)})


PINGS = 20_000
LEVEL = TrackErrors(Noise(stddev=0.005))


def measure_at_rest(sheet: Dvl, rate: float = 7.0, distance: float | None = None, count: int = PINGS) -> Reading:
    """Return pings of an instrument at rest, at a rate (Hz), with one range (m) for all beams."""
    time, beam = np.arange(count) / rate, None
    if distance is not None:
        beam = np.full((count, len(sheet.beams.beams)), distance)
    return sheet.apply(time, np.zeros((count, 3)), beam_range=beam, seed=SEED)


def growth() -> Part:
    """Return the growth of beam deviation and velocity covariance with range, rate and angle."""
    rows = []
    strong = Dvl(bottom=LEVEL, echo_strength=EchoStrength(85.0, 0.15), propagation=False)
    for distance in (10.0, 40.0, 60.0, 75.0):
        reading = measure_at_rest(strong, distance=distance)
        share = f"{100.0 * float(np.mean(reading['beam_valid'])):.1f} %"
        rows.append(
            [
                f"range {distance:g} m",
                format_number(1e3 * compute_stddev(reading["beam_velocity"]), 2),
                f"{share} locked",
            ]
        )
    for rate in (3.5, 7.0, 14.0):
        reading = measure_at_rest(
            Dvl(bottom=TrackErrors(Noise(stddev=0.005), reference_rate=7.0), propagation=False), rate
        )
        rows.append(
            [
                f"rate {rate:g} Hz",
                format_number(1e3 * compute_stddev(reading["beam_velocity"]), 2),
                "5 mm/s declared at 7 Hz",
            ]
        )
    for angle in (20.0, 25.0, 30.0):
        sheet = Dvl(beams=make_janus_beams(math.radians(angle), CROSSES), bottom=LEVEL, propagation=False)
        reading = measure_at_rest(sheet)
        x, z = (1e3 * compute_stddev(reading["velocity"][:, axis]) for axis in (0, 2))
        beam = format_number(1e3 * compute_stddev(reading["beam_velocity"]), 2)
        rows.append([f"beam angle {angle:g}°", beam, f"velocity: {x:.2f} across, {z:.2f} along the axis"])
    return Part(format_table(["parameter", "standard deviation of a beam, mm/s", "remark"], rows))


CROSSES = [math.radians(azimuth) for azimuth in X_AZIMUTHS_DEG]


# GAP-3: long term


def long_term() -> Part:
    """Return single pings and the long-term velocity of a vehicle that decelerates and accelerates."""
    rate, sheet = (
        7.0,
        Dvl(
            bottom=TrackErrors(Noise(stddev=0.02), long_term_offset=0.001),
            long_term=LongTermFilter(0.02, 0.001),
            propagation=False,
        ),
    )
    time = np.arange(round(600.0 * rate)) / rate
    true = np.stack([1.5 + 0.3 * np.sin(time / 15.0), 0.1 * np.cos(time / 20.0), 0.0 * time], axis=1)
    reading = sheet.apply(time, true, seed=SEED)
    single, smooth = (reading[key] - true for key in ("velocity", "long_term_velocity"))
    stated = [np.sqrt(reading[f"{key}_covariance"][:, 0, 0]) for key in ("velocity", "long_term")]
    part = slice(0, round(60.0 * rate))
    t, wide = time[part], 2e3 * stated[1][part]
    lines = [
        Line("single pings", t, 1e3 * single[part, 0], UUV_COLOUR, dots=1.6),
        Line("long term", t, 1e3 * smooth[part, 0], OWN_COLOUR, 2.2),
        Line("two reported deviations", t, wide, OWN_COLOUR, 1.1, "5 4"),
        Line("", t, -wide, OWN_COLOUR, 1.1, "5 4"),
    ]
    panel = Panel("Error of the forward velocity", "time (s)", "error (mm/s)", (0.0, 60.0), (-90.0, 90.0), lines)
    late = slice(round(30.0 * rate), None)
    rows = [
        [
            name,
            *(
                format_number(1e3 * number, 1)
                for number in (math.sqrt(float(np.mean(error[late, 0] ** 2))), float(said[-1]))
            ),
        ]
        for name, error, said in zip(("single pings", "long term"), (single, smooth), stated, strict=True)
    ]
    figures = format_table(["after the first 30 s", "root mean square error, mm/s", "reported, mm/s"], rows)
    picture = format_picture("dvl-long-term", "error of single pings and of the long-term velocity in the first minute")
    return Part(f"{picture}\n\n{figures}", {"dvl-long-term": draw_chart([panel], 1, 760.0, 320.0)})


# GAP-5, GAP-6: altitude

HEIGHT, MOST = 20.0, 20.0
"""Height above the origin (m), and largest pitch (degrees)."""


@cache
def simulate_pitching(slope: float, roll: float, fidelity: str) -> Run:
    """Return a run above a bed with a slope, at a roll (degrees), with a decreasing pitch."""
    around = "\n".join([worlds.make_plane(slope), '    <navsense:water surface="1000"/>'])
    world = worlds.load(around, worlds.make_woods_hole_sensor(), worlds.make_uuv_plugin(), fidelity)
    motion = worlds.make_pitching_motion(HEIGHT, math.radians(MOST), 400.0, math.radians(roll))
    return ns.simulate(world, 400.0, seed=SEED, motion={"auv": motion})


def compute_pitch(time: AnyArray) -> AnyArray:
    """Return the pitch (degrees) at these times (s)."""
    end = math.tan(0.5 * math.radians(MOST))
    return np.degrees(2.0 * np.arctan(end * (2.0 * time / 400.0 - 1.0)))


def altitude() -> Part:
    """Return the altitude error by pitch, over level ground and a slope."""
    panels = []
    for slope, roll, words in ((0.0, 0.0, "Level bed"), (0.3, 10.0, "Bed that rises by 0.3 ahead, rolled by 10°")):
        classic, physical = (simulate_pitching(slope, roll, name) for name in ("classic", "physical"))
        curves = [
            ("UUV, classic", get_reading(classic, "uuv"), UUV_COLOUR),
            ("WHOI, classic", get_reading(classic, "dvl"), DS_COLOUR),
            ("both, physical", get_reading(physical, "uuv"), OWN_COLOUR),
            ("", get_reading(physical, "dvl"), OWN_COLOUR),
        ]
        lines = [
            Line(name, compute_pitch(r.time[::14]), (r["altitude"][::14] / HEIGHT - 1.0) * 100.0, colour, 2.0)
            for name, r, colour in curves
        ]
        axes: dict[str, Any] = {"across": "pitch, nose down (°)", "up": "error of the altitude (%)"}
        panels.append(Panel(words, x=(-MOST, MOST), y=(-10.0, 50.0), lines=lines, **axes))
    picture = format_picture("dvl-altitude", "error of the altitude by pitch, over level ground and over a slope")
    return Part(picture, {"dvl-altitude": draw_chart(panels, 2, 430.0, 340.0)})


def angles() -> Part:
    """Return altitudes of instruments with other beam angles, 20 m above level ground."""
    rows = []
    for angle in (20.0, 22.5, 25.0, 30.0):
        readings = [
            simulate_pings(worlds.make_woods_hole_sensor(angle=angle, deviation=0.0), fidelity)
            for fidelity in ("classic", "physical")
        ]
        rows.append([f"{angle:g}°", *(format_number(float(reading["altitude"][1])) for reading in readings)])
    return Part(format_table(["beam angle", "WHOI, classic, m", "WHOI, physical (4° beams), m"], rows))


def simulate_pings(sensor: str, fidelity: str = "physical", around: str = FLAT) -> Reading:
    """Return a few pings of one sensor at 1 m/s, 20 m above level ground."""
    world = worlds.load(around, sensor, fidelity=fidelity)
    motion = worlds.make_straight_motion((0.0, 0.0, HEIGHT), (1.0, 0.0, 0.0), 10.0)
    run = ns.simulate(world, 2.0, seed=SEED, motion={"auv": motion})
    (name,) = (sensor.name for sensor in world.sensors)
    return run[name]


WIDE = '<sensor name="own" type="dvl"><update_rate>7</update_rate><dvl>{beams}</dvl></sensor>'


def width() -> Part:
    """Return the effect of beam width, for both ways to compute one echo of a cone."""
    rows = []
    cases = (
        ("one ray", ""),
        ("4°, plane", 'width_deg="4"'),
        ("4°, nearest", 'width_deg="4" weighting="nearest"'),
        ("4°, pattern", 'width_deg="4" weighting="pattern"'),
        ("4°, pattern, 0.15 dB/m", 'width_deg="4" weighting="pattern" absorption="0.15"'),
    )
    for words, attributes in cases:
        beam = f'<beams angle_deg="30" {attributes}><azimuths_deg>-135 135 45 -45</azimuths_deg></beams>'
        reading = simulate_pings(WIDE.format(beams=beam))
        slant = float(reading["beam_range"][1, 0])
        reported = (float(reading["altitude"][1]), float(reading["velocity"][1, 0]))
        rows.append(
            [
                words,
                format_number(slant),
                format_number(reported[0]),
                format_percent(reported[0] / HEIGHT),
                format_percent(reported[1]),
            ]
        )
    return Part(
        format_table(["beams", "range, m", "altitude, m", "error of the altitude", "error of the velocity"], rows)
    )


# GAP-7: course

FRAMES = {
    "forward, left, up": (0.0, 0.0),
    "forward, right, down": (math.pi, 0.0),
    "east, north, up": (0.0, -math.radians(60.0)),
    "north, east, down": (math.pi, math.radians(30.0)),
}
"""Roll and yaw (rad) of links on a vehicle with a heading of 30 degrees from north."""


def course() -> Part:
    """Return the course of a vehicle that moves ahead at 030, in four frames."""
    links = [
        f'<link name="frame{i}"><pose>0 0 0 {roll:.9g} 0 {yaw:.9g}</pose></link>'
        for i, (roll, yaw) in enumerate(FRAMES.values())
    ]
    sensors = "\n".join(
        worlds.make_woods_hole_sensor(f"dvl{i}", f"frame{i}", deviation=0.0) for i in range(len(FRAMES))
    )
    ahead = (math.sin(math.radians(30.0)), math.cos(math.radians(30.0)), 0.0)
    motion = worlds.make_straight_motion((0.0, 0.0, HEIGHT), ahead, 10.0, yaw=math.radians(60.0))
    runs = []
    for fidelity in ("classic", "physical"):
        world = worlds.load(FLAT, sensors, "\n".join(links), fidelity)
        runs.append(ns.simulate(world, 2.0, seed=SEED, motion={"auv": motion}))
    rows = []
    for i, words in enumerate(FRAMES):
        first, second = (get_reading(run, f"dvl{i}") for run in runs)
        velocity = ", ".join(format_number(float(number), 2) for number in second["velocity"][3])
        course_texts = [f"{math.degrees(float(reading['course'][3])):03.0f}°" for reading in (first, second)]
        rows.append([words, velocity, *course_texts])
    return Part(format_table(["axes of `frameName`", "velocity, m/s", "course, classic", "course, physical"], rows))


# GAP-9


def simulate_cloud(*, lost: bool) -> Reading:
    """Return many pings of an instrument at rest, with four or three beams."""
    distance = np.full((PINGS, 4), 20.0)
    if lost:
        distance[:, 0] = math.nan
    sheet = Dvl(bottom=LEVEL, propagation=False)
    return sheet.apply(np.arange(PINGS) / 7.0, np.zeros((PINGS, 3)), beam_range=distance, seed=SEED)


def compute_ellipse(square: AnyArray, size: float) -> tuple[list[float], list[float]]:
    """Return the outline of a covariance (2, 2) at this many deviations."""
    length, axes = np.linalg.eigh(square)
    angle = np.linspace(0.0, 2.0 * math.pi, 73)
    x, y = axes @ (size * np.sqrt(length)[:, None] * np.stack([np.cos(angle), np.sin(angle)]))
    return x.tolist(), y.tolist()


PLANE = np.ix_([0, 2], [0, 2])
"""Indices of forward and up."""


def covariance() -> Part:
    """Return clouds of single pings, and their reported covariances."""
    panels, rows = [], []
    plain = 2.5e-5 * np.eye(3)
    for lost, words in ((False, "Four beams"), (True, "Three beams")):
        reading = simulate_cloud(lost=lost)
        errors, stated = reading["velocity"], reading["velocity_covariance"][0]
        lines = [
            Line("pings", 1e3 * errors[:1200, 0], 1e3 * errors[:1200, 2], LIGHT.frame, dots=1.3),
            Line("2 σ, reported", *compute_ellipse(1e6 * stated[PLANE], 2.0), OWN_COLOUR, 2.2),
            Line("2 σ, of σ² I", *compute_ellipse(1e6 * plain[PLANE], 2.0), DS_COLOUR, 1.8, "5 4"),
        ]
        axes: dict[str, Any] = {"across": "error forward (mm/s)", "up": "error upwards (mm/s)"}
        panels.append(Panel(words, x=(-32.0, 32.0), y=(-22.0, 22.0), lines=lines, **axes))
        measured = np.cov(errors.T)
        figures = ((0, 0), (1, 1), (2, 2), (0, 2))
        for name, square in (("reported", stated), ("measured", measured)):
            rows.append([words.lower(), name, *(format_number(float(square[at]) / 2.5e-5, 3) for at in figures)])
    head = ["beams", "in units of (5 mm/s)²", "forward", "left", "up", "forward and up"]
    picture = format_picture(
        "dvl-covariance", "errors of single pings with the reported ellipses, of four beams and of three"
    )
    return Part(f"{picture}\n\n{format_table(head, rows)}", {"dvl-covariance": draw_chart(panels, 2, 430.0, 340.0)})


def screening() -> Part:
    """Return the effect of an error velocity limit if one echo in a hundred is wrong."""
    wrong = TrackErrors(Noise(stddev=0.005, outlier_probability=0.01, outlier_stddev=0.5))
    rows = []
    for words, limit in (("none", math.inf), ("0.05 m/s", 0.05)):
        sheet = Dvl(bottom=wrong, error_velocity_limit=limit, propagation=False)
        error = measure_at_rest(sheet)["velocity"][:, 0]
        share = 100.0 * float(np.mean(np.isnan(error)))
        size = 1e3 * math.sqrt(float(np.nanmean(error**2)))
        rows.append(
            [words, f"{share:.1f} %", format_number(size, 1), format_number(1e3 * float(np.nanmax(np.abs(error))), 0)]
        )
    head = ["limit", "pings rejected", "root mean square error forward, mm/s", "largest error, mm/s"]
    return Part(format_table(head, rows))


FRESH = f'{worlds.make_plane()}\n    <navsense:water surface="1000"><sound_speed>1455</sound_speed></navsense:water>'


def systematic() -> Part:
    """Return the effect of a wrong speed of sound and of a misalignment on a velocity."""
    cases = (
        ("none", ""),
        ("assumed speed of sound 1500, true 1455, pistons", '<sound speed="1500"/>'),
        ("the same, phased array", '<sound speed="1500"/><transducer>phased_array</transducer>'),
        ("yaw error 1°", "<misalignment_deg>0 0 1</misalignment_deg>"),
    )
    motion = worlds.make_straight_motion((0.0, 0.0, HEIGHT), (1.0, 0.0, 0.2), 10.0)
    rows = []
    for words, elements in cases:
        world = worlds.load(FRESH, WIDE.format(beams=elements))
        reading = get_reading(ns.simulate(world, 2.0, seed=SEED, motion={"auv": motion}), "own")
        at = int(np.flatnonzero(np.isfinite(reading["altitude"]))[3])
        high = reading["altitude"][at] / reading.ideal["altitude"][at]
        numbers = [format_number(float(number), 4) for number in reading["velocity"][at]]
        rows.append([words, *numbers, format_percent(float(high))])
    return Part(format_table(["error", "forward", "left", "up", "error of the altitude"], rows))


QUICK = """\
<sensor name="own" type="dvl"><update_rate>40</update_rate><dvl>
  <max>180</max> <propagation>true</propagation> <processing_time>0.01</processing_time>
</dvl></sensor>"""


def ping_rate() -> Part:
    """Return rate and age of the pings of an ascending vehicle."""
    world = worlds.load(FLAT, QUICK)
    motion = worlds.make_straight_motion((0.0, 0.0, 2.0), (0.0, 0.0, 0.5), 300.0)
    reading = get_reading(ns.simulate(world, 296.0, seed=SEED, motion={"auv": motion}), "own")
    good = np.flatnonzero(np.isfinite(reading["altitude"]))
    time, high = reading.time[good], reading["altitude"][good]
    rate, age = 1.0 / np.diff(time), 1e3 * (time - reading["time_of_validity"][good])
    ranges = np.linspace(2.0, 150.0, 75)
    most = np.minimum(40.0, 1.0 / (2.0 * ranges / math.cos(math.radians(30.0)) / 1500.0 + 0.01))
    change = np.flatnonzero(np.abs(np.diff(rate, prepend=-1.0)) > 1e-6)
    change = np.append(change, rate.size - 1)
    across, up = make_steps(high[1:][change].tolist(), rate[change].tolist())
    lines = [
        Line("pings, of ticks at 40 Hz", across, up, OWN_COLOUR, 2.0),
        Line("1 / (2 r / c + 10 ms)", ranges, most, TRUE_COLOUR, 1.1, "5 4"),
        Line("both plug-ins, 7 Hz", [0.0, 150.0], [7.0, 7.0], DS_COLOUR, 1.8),
    ]
    ages = [
        Line("output time minus time of validity", high[::20], age[::20], OWN_COLOUR, 2.0),
        Line("both plug-ins", [0.0, 150.0], [0.0, 0.0], DS_COLOUR, 1.8),
    ]
    panels = [
        Panel("Pings per second", "altitude (m)", "ping rate (Hz)", (0.0, 150.0), (0.0, 42.0), lines),
        Panel("Age of a ping", "altitude (m)", "age (ms)", (0.0, 150.0), (-10.0, 150.0), ages),
    ]
    picture = format_picture("dvl-ping-rate", "pings per second and their age by altitude")
    return Part(picture, {"dvl-ping-rate": draw_chart(panels, 1, 760.0, 300.0)})


# the dialects


def xml(*texts: str, reason: str = "") -> Part:
    """Return a block of XML. With a `reason`, the tests do not load it."""
    comment = f"<!-- not run: {reason} -->\n" if reason else ""
    return Part(f"{comment}```xml\n" + "\n".join(texts) + "\n```")


HIDDEN = ("/ideal", "/bias", "/truth", "/tf", "/clock")


def read_messages(world: World, motion: Trajectory) -> Iterator[tuple[str, str]]:
    """Yield topic and message of the sensors in a recording."""
    from mcap.reader import make_reader

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dive.mcap"
        ns.record(world, str(path), duration=2.0, seed=SEED, motion={"auv": motion})
        with path.open("rb") as stream:
            summary = make_reader(stream).get_summary()
    if summary is None:
        raise SystemExit("the recording has no summary")
    for channel in summary.channels.values():
        if not any(part in channel.topic for part in HIDDEN):
            yield channel.topic, summary.schemas[channel.schema_id].name


def topics() -> Part:
    """Return the topics of a recording with all four instruments, and their messages."""
    sensors = f"{worlds.OWN}\n{worlds.GAZEBO}\n{worlds.make_woods_hole_sensor()}"
    world = worlds.load(FLAT, sensors, worlds.make_uuv_plugin())
    motion = worlds.make_straight_motion((0.0, 0.0, HEIGHT), (1.0, 0.0, 0.0), 10.0)
    messages = sorted(read_messages(world, motion))
    return Part(format_table(["topic", "message"], [[f"`{topic}`", f"`{name}`"] for topic, name in messages]))


PARTS: Mapping[str, Callable[[], Part]] = {
    "own": lambda: xml(worlds.OWN),
    "gazebo": lambda: xml(worlds.GAZEBO),
    "woods hole": lambda: xml(worlds.make_woods_hole_sensor()),
    "uuv": lambda: xml(
        worlds.make_beam(0, X_AZIMUTHS_DEG[0]),
        "<!-- and three more -->",
        worlds.make_uuv_plugin().rpartition("</link>\n")[2],
        reason="three of the four links are left out",
    ),
    "topics": topics,
    "modes": modes,
    "ranges": ranges,
    "beams": beams,
    "speed": speed,
    "growth": growth,
    "long term": long_term,
    "altitude": altitude,
    "angles": angles,
    "width": width,
    "course": course,
    "covariance": covariance,
    "screening": screening,
    "systematic": systematic,
    "ping rate": ping_rate,
}
"""Generators of the parts of the page, by the names of their markers."""

MARKED = re.compile(r"(<!-- made: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def replace_parts(page: str, parts: Mapping[str, Part]) -> str:
    """Return the page with these parts replaced."""

    def make_part(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}{parts[name].text}\n{end}" if name in parts else match.group(0)

    return MARKED.sub(make_part, page)


def find_outdated(names: Sequence[str]) -> list[str]:
    """Return the names of the parts and pictures that differ from the page."""
    parts = {name: PARTS[name]() for name in names}
    page = PAGE.read_text(encoding="utf-8")
    wrong = [name for name in names if replace_parts(page, {name: parts[name]}) != page]
    pictures = {file: text for part in parts.values() for file, text in part.pictures.items()}
    for name, text in pictures.items():
        path = PICTURES / f"{name}.svg"
        wrong += [] if path.exists() and path.read_text(encoding="utf-8") == text else [path.name]
    return wrong


def main() -> int:
    """Write or check the parts of the page and the pictures."""
    parser = argparse.ArgumentParser(description="Write the figures and pictures of docs/explanation/dvl.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something is out of date")
    parser.add_argument("--only", action="append", choices=tuple(PARTS), help="this part alone; may be repeated")
    options = parser.parse_args()
    names = options.only or list(PARTS)
    if options.check:
        wrong = find_outdated(names)
        for name in wrong:
            print(f"docs/explanation/dvl.md: {name} is out of date: run `python tools/dvl_gaps.py`", file=sys.stderr)
        return 1 if wrong else 0
    PICTURES.mkdir(exist_ok=True)
    parts = {name: PARTS[name]() for name in names}
    for part in parts.values():
        for name, text in part.pictures.items():
            (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
    PAGE.write_text(replace_parts(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
