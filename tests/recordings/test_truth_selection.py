"""The truth of one link is read without the readings of a recording."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.motion import LogSource, state_row
from navsense.motion.received_motion import ReceivedMotion
from navsense.recordings import find_output_format
from navsense.recordings import format as format_module
from navsense.recordings.recorded_motion import load_motion
from navsense.testing import is_identical

pytestmark = [pytest.mark.requirement("LIV-7")]

WORLD = """<sdf version="1.10"><world name="pool"><model name="robot"><link name="body">
  <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor></link>
  <link name="arm"><pose>1 0 0 0 0 0</pose></link>
  <joint name="j" type="fixed"><parent>body</parent><child>arm</child></joint></model></world></sdf>"""


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".db3", ".npz", ".parquet", ".csv"])
def test_motion_is_read_without_readings(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states are those of the complete recording, bit for bit. `Format.read` is not called."""
    (tmp_path / "pool.sdf").write_text(WORLD)
    world, path = ns.load(tmp_path / "pool.sdf"), tmp_path / f"run{suffix}"
    times = [0.25, 0.3, 0.41, 0.5, 0.62]
    rows = [state_row(ns.State(ns.Pose((t * t, 0.1 * t, 0.0)), velocity=(2.0 * t, 0.1, 0.0))) for t in times]
    motion = ReceivedMotion(times[0], rows[0], LogSource("gz://"))
    for t, row in zip(times[1:], rows[1:], strict=True):
        motion.append(t, row)
    motion.finish()
    ns.simulate(world, 0.35, seed=3, motion={"robot": motion}).save(path)
    complete = ns.open(path)
    recording_format = find_output_format(path)
    assert recording_format.read_truth is not None
    part = recording_format.read_truth(path, lambda _: ["robot::body"])
    assert list(complete) == ["robot::body::imu"]
    assert list(part) == []
    assert list(part.truth) == ["robot::body"]
    assert is_identical(asdict(part.truth["robot::body"]), asdict(complete.truth["robot::body"]))

    def fail(_path: Path) -> ns.recordings.Dataset:
        raise AssertionError("reads everything")

    def read_truth(path: Path, select: ns.recordings.dataset.LinkSelection) -> ns.recordings.Dataset:
        assert recording_format.read_truth is not None
        return recording_format.read_truth(path, select)

    monkeypatch.setitem(format_module._FORMATS, suffix, replace(recording_format, read=fail, read_truth=read_truth))
    repeated = load_motion(f"{path}?link=robot")
    np.testing.assert_array_equal(
        repeated.at(np.array([0.3, 0.45])).position_w, motion.at(np.array([0.3, 0.45])).position_w
    )
