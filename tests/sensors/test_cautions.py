"""What a world warns of its sensors, whether a file or a program made it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.describe import describe
from navsense.motion.base import Motion
from navsense.motion.driven import Driven, State
from navsense.motion.trajectory import waypoints
from navsense.noise.channel import Noise
from navsense.pose import Pose, from_rpy
from navsense.sensors import Adcp, Dvl, Layer, Mode, Track
from navsense.world import Link, Model, MountedSensor, World

NAME = "auv::base::one"
OVER = from_rpy(math.pi, 0.0, 0.0)
"""Upside down."""

FILE = """<sdf version="1.12"><world name="sea" xmlns:navsense="https://navsense.org/sdf">
<model name="auv"><link name="base"> <sensor name="one" type="{kind}">{inside}</sensor></link></model></world></sdf>"""


def world(spec: Any, *, mount: Pose = Pose(), model: Pose = Pose(), motion: Motion | None = None) -> World:
    """One sensor in a program's own world."""
    made = Model("auv", (Link("auv::base"),), "auv::base", model, motion=motion)
    return World("sea", (made,), (MountedSensor(NAME, spec, "auv", "auv::base", 1.0, mount, topic="/one"),))


@pytest.mark.requirement("GAP-8")
def test_a_profiler_that_sees_no_bottom_is_told_however_it_was_built(tmp_path: Path) -> None:
    """The words are those for a file."""
    spec, over = Adcp(removes_motion=True), Pose(rotation=OVER)
    (note,) = world(spec, mount=over).notes
    assert (note.kind, note.what) == ("warning", f"sensor {NAME}: removes_motion")
    assert "0 of its beams look down, and a velocity takes 3" in note.reason
    path = tmp_path / "w.sdf"
    inside = "<pose>0 0 0 3.141592653589793 0 0</pose><adcp><removes_motion>true</removes_motion></adcp>"
    path.write_text(FILE.format(kind="adcp", inside=inside))
    (read,) = ns.load(path).notes
    assert (read.what, read.reason, read.sensor) == (note.what, note.reason, NAME)
    assert any(note.reason in line for line in describe(world(spec, mount=over)))
    assert not world(spec).notes
    assert not world(replace(spec, removes_motion=False), mount=over).notes


@pytest.mark.requirement("GAP-8")
def test_a_sensor_is_mounted_as_its_model_is_at_the_start() -> None:
    """In one that moves at t = 0, in one that stands as it is placed; two turns over are none."""
    spec, over = Adcp(removes_motion=True), Pose(rotation=OVER)
    times = np.array((0.0, 10.0))
    upright = waypoints(times, [Pose(), Pose((1.0, 0.0, 0.0))])
    turned = waypoints(times, [over, Pose((1.0, 0.0, 0.0), OVER)])
    for model, motion, is_over in (
        (Pose(), None, False),
        (over, None, True),
        (over, upright, False),
        (Pose(), turned, True),
        (Pose(), Driven(State(over)), True),
    ):
        assert bool(world(spec, model=model, motion=motion).notes) == is_over
        assert bool(world(spec, mount=over, model=model, motion=motion).notes) != is_over


@pytest.mark.requirement("GAP-8")
def test_a_world_that_is_changed_warns_of_what_is_in_it_now() -> None:
    once = world(Adcp(removes_motion=True), mount=Pose(rotation=OVER))
    assert replace(once, name="lake").notes == once.notes
    (sensor,) = once.sensors
    assert not replace(once, sensors=(replace(sensor, pose=Pose()),)).notes
    assert not replace(once, sensors=()).notes


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_a_part_that_states_no_covariance_is_told_however_it_was_built(tmp_path: Path) -> None:
    """Water Linked prints no deviation of the A50: of one that has some, and of a perfect one, nothing is said."""
    spec = Dvl.from_part("a50")
    (note,) = world(spec).notes
    assert (note.kind, note.what) == ("warning", f"sensor {NAME}: bottom track")
    assert "a covariance of 0 is stated: give one: Track(Noise(stddev=...)) as `bottom`" in note.reason
    path = tmp_path / "w.sdf"
    path.write_text(FILE.format(kind="dvl", inside="<navsense:part>a50</navsense:part>"))
    (read,) = ns.load(path).notes
    assert (read.what, read.reason) == (note.what, note.reason)
    given = replace(spec, bottom=replace(spec.bottom, noise=Noise(stddev=0.005)))
    assert not world(given).notes
    assert not world(replace(spec, bottom=replace(spec.bottom, per_speed=0.001))).notes
    assert not world(Dvl()).notes
    (stated,) = world(replace(spec, bottom=replace(spec.bottom, stated_stddev=0.004))).notes
    assert "0.004 m/s is stated" in stated.reason


@pytest.mark.requirement("GAP-2")
def test_both_tracks_of_a_sheet_are_looked_at_where_they_act() -> None:
    sheet = Dvl(bottom=Track(Noise(stddev=0.005)), layer=Layer(1.0, 5.0))
    assert not world(sheet).notes
    (note,) = world(replace(sheet, water_mode=Mode.BEST)).notes
    assert note.what == f"sensor {NAME}: water track"
    assert not world(Dvl(water_mode=Mode.BEST, layer=Layer(1.0, 5.0))).notes
