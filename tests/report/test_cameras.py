"""The report of cameras, whose readings never change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import navsense as ns
from navsense.report import write
from navsense.sensors import Camera, Imu
from navsense.testing import example_world


@pytest.mark.requirement("CLK-11", "REC-1")
def test_camera_has_stamps_and_no_figures_of_constants(tmp_path: Path) -> None:
    world = example_world(("eye", Camera.example_spec()), ("imu", Imu.example_spec()))
    sensors = (replace(world.sensor("eye"), rate=30.0), replace(world.sensor("imu"), rate=50.0))
    ns.record(replace(world, sensors=sensors), tmp_path / "run.npz", 2.0, seed=1)
    write(tmp_path / "run.npz", tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    assert "No figures of robot::arm::eye: its readings are constant and have no error." in text
    assert "Stamp minus true time of robot::arm::imu, robot::arm::eye." in text
