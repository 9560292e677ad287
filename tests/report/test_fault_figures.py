"""Every kind of scheduled fault is recorded as ground truth and shown in the report."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.readings import ARRAY_GROUPS
from navsense.description import describe
from navsense.messages.world_messages import pack_fault_bits
from navsense.recordings.info import format_metadata_item
from navsense.recordings.summary import read_summary
from navsense.report import write
from navsense.report.report_data import read_report_data

pytestmark = [pytest.mark.requirement("NOI-6", "REC-1"), pytest.mark.compiled]

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">{anomaly}
<model name="bed"><static>true</static><link name="l"><collision name="c"><pose>0 0 -20 0 0 0</pose><geometry>
<plane><normal>0 0 1</normal><size>1000 1000</size></plane></geometry></collision></link></model>
<model name="m"><link name="l">
<clock name="c"><noise type="gaussian"><stddev>1e-5</stddev></noise>{step}</clock>
<sensor name="mag" type="magnetometer"><update_rate>10</update_rate><clock>c</clock>{mag}</sensor>
<sensor name="dvl" type="dvl"><update_rate>8</update_rate><navsense:part>whn600</navsense:part>{dvl}</sensor>
</link></model></world></sdf>"""

FAULTS = {
    "anomaly": '<fault kind="magnetic_anomaly" start="10" end="10.5">2e-6 0 1e-6</fault>',
    "step": '<fault kind="step" start="11" end="11.5">0.5</fault>',
    "mag": """<fault kind="bias" start="1" end="2" array="field">1e-5 0 0</fault>
<fault kind="spike" start="3.03" end="5" period="0.7" array="field">1e-4</fault>
<fault kind="dropout" start="6" end="7"/><fault kind="stuck" start="8" end="9"/>""",
    "dvl": '<fault kind="lost_lock" start="5" end="8"/>',
}

SHOWN = {
    "mag: bias": (1.0, 2.0),
    "mag: spike": (3.1, 4.6),
    "mag: stuck": (8.0, 9.0),
    "mag: dropout": (6.0, 7.0),
    "dvl: lost lock": (5.0, 8.0),
    "world: magnetic anomaly": (10.0, 10.5),
    "c: step": (11.0, 11.5),
}
"""Expected lines of the section of faults, with start and end (s)."""


def write_world(folder: Path, name: str, *, faulty: bool) -> Path:
    """Write the world with or without its faults."""
    arguments = {key: f"<navsense:faults>{text}</navsense:faults>" if faulty else "" for key, text in FAULTS.items()}
    (folder / name).write_text(WORLD.format(**arguments), encoding="utf-8")
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of one run in every kind of recording."""
    folder = tmp_path_factory.mktemp("faults")
    world = ns.load(write_world(folder, "w.sdf", faulty=True))
    ns.record(world, [folder / name for name in ("r.npz", "r.mcap", "r.bag", "r.db3")], 12.0, seed=1, epoch=10)
    return folder


def read_lines(page: Path) -> list[str]:
    text = html.unescape(re.sub(r"<[^>]+>", "\n", page.read_text(encoding="utf-8")))
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["r.npz", "r.mcap", "r.db3", "r.bag"])
def test_report_shows_every_fault_kind(folder: Path, name: str) -> None:
    kept = next(path for path in (folder / name, folder / "r") if path.exists())
    words = read_lines(write(kept, folder / "page.html"))
    for title, (first, last) in SHOWN.items():
        assert title in words, title
        kind = title.partition(": ")[2]
        times = [re.search(r"from ([\d.]+) s, until ([\d.]+) s", line) for line in words if f"fault: {kind}," in line]
        assert [tuple(map(float, found.groups())) for found in times if found] == [(first, last)], title


@pytest.mark.parametrize("name", ["r.mcap", "r.bag"])
def test_messages_contain_the_active_faults(folder: Path, name: str) -> None:
    """This includes an inferred world, in which only topics show the faults of the sensors."""
    complete = read_report_data(str(folder / "r.npz")).readings["m::l::mag"]
    line = next(
        reading for reading in read_report_data(str(folder / name)).readings.values() if "field" in reading.arrays
    )
    assert np.array_equal(pack_fault_bits(line.fault), pack_fault_bits(complete.fault)[complete.emitted])


def test_info_counts_scheduled_faults(folder: Path) -> None:
    """Their list is long and is read from the recording."""
    assert ", 7 scheduled faults" in read_summary(folder / "r.mcap").headline
    assert format_metadata_item("faults", "[]") == "0 scheduled faults"
    assert format_metadata_item("faults", '{"a": 1}') == 'faults {"a": 1}'


def test_clock_step_moves_stamps_only(folder: Path) -> None:
    """Compared to the run without it, true times, truth and readings are equal."""
    text = (folder / "w.sdf").read_text(encoding="utf-8")
    sound = folder / "still" / "w.sdf"
    sound.parent.mkdir(exist_ok=True)
    sound.write_text(text.replace(FAULTS["step"], ""), encoding="utf-8")
    stepped, plain = (ns.simulate(ns.load(path), 12.0, seed=1, epoch=10) for path in (folder / "w.sdf", sound))
    for name in plain:
        actual, other = stepped[name], plain[name]
        for group in ARRAY_GROUPS:
            for array, values in getattr(other, group).items():
                assert getattr(actual, group)[array].tobytes() == values.tobytes(), array
        assert actual.time.tobytes() == other.time.tobytes()
        assert actual.true_stamp.tobytes() == other.true_stamp.tobytes()
        inside = (actual.time >= 11.0) & (actual.time < 11.5) & (name == "m::l::mag")
        off = actual.stamp - other.stamp
        assert (np.abs(off[inside] - 500_000_000) <= 1).all(), "to the rounding of a stamp"
        assert not off[~inside].any()


def test_description_lists_all_faults(folder: Path) -> None:
    lines = {line.strip() for line in describe(ns.load(folder / "w.sdf"))}
    assert {
        "scheduled fault: magnetic_anomaly by 2e-06 0 1e-06 from 10 s to 10.5 s",
        "scheduled fault: step by 0.5 s from 11 s to 11.5 s",
        "scheduled fault: spike of field by 0.0001 from 3.03 s to 5 s, every 0.7 s",
        "scheduled fault: dropout from 6 s to 7 s",
        "scheduled fault: lost_lock from 5 s to 8 s",
    } <= lines
    assert not any("Anomaly" in line for line in lines)
