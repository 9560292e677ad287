"""Warnings about the sensors of a world from a file or from Python."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import Pose, from_rpy
from navsense.core.typing import Quaternion, Times
from navsense.description import describe
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.driven import DrivenMotion, State
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Adcp, Dvl, TrackErrors, TrackMode, WaterMassLayer
from navsense.simulation.motions import make_sensor_motion, resolve_motions
from navsense.world import Link, Model, MountedSensor, World

NAME = "auv::base::one"
OVER = from_rpy(math.pi, 0.0, 0.0)
"""An upside-down attitude."""

OFFSET = "<dvl><bottom_track><long_term_offset>0.001</long_term_offset></bottom_track></dvl>"

FILE = """<sdf version="1.12"><world name="sea" xmlns:navsense="https://navsense.org/sdf">
<model name="auv"><link name="base"> <sensor name="one" type="{kind}">{inside}</sensor></link></model></world></sdf>"""


def make_world(spec: Any, *, mount: Pose = Pose(), model: Pose = Pose(), motion: Motion | None = None) -> World:
    """Return a world with one sensor, made in Python."""
    model_ = Model("auv", (Link("auv::base"),), "auv::base", model, motion=motion)
    return World("sea", (model_,), (MountedSensor(NAME, spec, "auv", "auv::base", 1.0, mount, topic="/one"),))


@pytest.mark.requirement("GAP-8")
def test_profiler_without_bottom_is_a_warning(tmp_path: Path) -> None:
    """The text equals the warning for a file."""
    spec, over = Adcp(motion_compensated=True), Pose(rotation=OVER)
    (note,) = make_world(spec, mount=over).notes
    assert (note.kind, note.what) == ("warning", f"sensor {NAME}: motion_compensated")
    assert "only 0 beams point down and a velocity needs 3" in note.reason
    path = tmp_path / "w.sdf"
    inside = "<pose>0 0 0 3.141592653589793 0 0</pose><adcp><motion_compensated>true</motion_compensated></adcp>"
    path.write_text(FILE.format(kind="adcp", inside=inside))
    (read,) = ns.load(path).notes
    assert (read.what, read.reason, read.sensor) == (note.what, note.reason, NAME)
    assert any(note.reason in line for line in describe(make_world(spec, mount=over)))
    assert not make_world(spec).notes
    assert not make_world(replace(spec, motion_compensated=False), mount=over).notes


@pytest.mark.requirement("GAP-8")
def test_sensor_attitude_is_that_of_its_model_at_the_start() -> None:
    """A moving model has its attitude at t = 0, a stationary one that of its pose. Two half-turns cancel."""
    spec, over = Adcp(motion_compensated=True), Pose(rotation=OVER)
    times = np.array((0.0, 10.0))
    upright = waypoints(times, [Pose(), Pose((1.0, 0.0, 0.0))])
    turned = waypoints(times, [over, Pose((1.0, 0.0, 0.0), OVER)])
    for model, motion, is_over in (
        (Pose(), None, False),
        (over, None, True),
        (over, upright, False),
        (Pose(), turned, True),
        (Pose(), DrivenMotion(State(over)), True),
    ):
        assert bool(make_world(spec, model=model, motion=motion).notes) == is_over
        assert bool(make_world(spec, mount=over, model=model, motion=motion).notes) != is_over


@pytest.mark.requirement("GAP-8")
def test_changed_world_has_current_warnings() -> None:
    once = make_world(Adcp(motion_compensated=True), mount=Pose(rotation=OVER))
    assert replace(once, name="lake").notes == once.notes
    (sensor,) = once.sensors
    assert not replace(once, sensors=(replace(sensor, pose=Pose()),)).notes
    assert not replace(once, sensors=()).notes


@pytest.mark.requirement("GAP-2", "GAP-9")
def test_track_without_covariance_warns_in_every_construction(tmp_path: Path) -> None:
    """A track with long-term errors but no ping deviation warns. One with a deviation or without errors does not."""
    spec = Dvl(bottom=TrackErrors(long_term_offset=0.001))
    (note,) = make_world(spec).notes
    assert (note.kind, note.what) == ("warning", f"sensor {NAME}: bottom track")
    assert "a covariance of 0 is reported: give one: TrackErrors(noise=Noise(stddev=...)) as `bottom`" in note.reason
    path = tmp_path / "w.sdf"
    path.write_text(FILE.format(kind="dvl", inside=OFFSET))
    (read,) = ns.load(path).notes
    assert (read.what, read.reason) == (note.what, note.reason)
    arguments = replace(spec, bottom=replace(spec.bottom, noise=Noise(stddev=0.005)))
    assert not make_world(arguments).notes
    assert not make_world(replace(spec, bottom=replace(spec.bottom, per_speed=0.001))).notes
    assert not make_world(Dvl()).notes
    (stated,) = make_world(replace(spec, bottom=replace(spec.bottom, reported_stddev=0.004))).notes
    assert "0.004 m/s is reported" in stated.reason


@pytest.mark.requirement("GAP-2")
def test_every_active_track_is_checked() -> None:
    sheet = Dvl(bottom=TrackErrors(Noise(stddev=0.005)), layer=WaterMassLayer(1.0, 5.0))
    assert not make_world(sheet).notes
    (note,) = make_world(replace(sheet, water_mode=TrackMode.BEST)).notes
    assert note.what == f"sensor {NAME}: water track"
    assert not make_world(Dvl(water_mode=TrackMode.BEST, layer=WaterMassLayer(1.0, 5.0))).notes


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize("error", [ValueError, RuntimeError, NotImplementedError, KeyError, None])
def test_failing_motion_does_not_prevent_a_world(error: type[Exception] | None) -> None:
    """If a motion raises or returns an invalid rotation at t = 0, the pose of the model is used."""

    class LateMotion:
        """A motion without a value at the start."""

        end = math.inf

        def at(self, time: Times) -> MotionBlock:
            if error is not None:
                raise error("not yet")
            block = DrivenMotion(State(Pose())).at(time)
            return replace(block, rotation_wb=np.full((1, 4), math.nan))

    spec = Adcp(motion_compensated=True)
    model_ = make_world(spec, motion=LateMotion())
    assert not model_.notes
    assert not replace(model_, name="lake").notes
    assert make_world(spec, mount=Pose(rotation=OVER), motion=LateMotion()).notes


@dataclass(frozen=True)
class RotationRecorder(Adcp):
    """Records the attitude of the sensor."""

    def find_warnings(self, rotation_ws: Quaternion, /) -> tuple[tuple[str, str], ...]:
        return (("turned", repr(rotation_ws)),)


@pytest.mark.requirement("GAP-8")
def test_sensor_attitude_equals_its_truth_for_any_links() -> None:
    """Canonical link, link, sensor, model and motion are rotated about different axes, with and without a motion."""
    base, head = from_rpy(0.4, -0.9, 1.3), from_rpy(-1.1, 0.3, 0.6)
    links = (Link("auv::base", Pose((1.0, 2.0, 3.0), base)), Link("auv::head", Pose((0.0, 0.5, 0.0), head)))
    mount, model = Pose((0.1, 0.0, 0.2), from_rpy(0.2, 0.7, -2.0)), Pose((5.0, 0.0, 0.0), from_rpy(1.0, 0.1, 0.5))
    start = Pose((0.0, 1.0, 0.0), from_rpy(-0.5, 1.2, 2.5))
    for motion in (None, DrivenMotion(State(start)), waypoints((0.0, 10.0), [start, start])):
        model_ = Model("auv", links, "auv::base", model, motion=motion)
        one = MountedSensor(NAME, RotationRecorder(), "auv", "auv::head", 1.0, mount)
        built = World("sea", (model_,), (one,))
        (note,) = built.notes
        truth = make_sensor_motion(built, one, resolve_motions(built)).at(np.zeros(1)).rotation_wb[0]
        assert abs(float(np.dot(truth, ast.literal_eval(note.reason)))) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.requirement("GAP-2")
def test_no_warning_without_track_errors() -> None:
    """Misalignment, range noise and dropouts are not track errors."""
    assert not make_world(Dvl(misalignment=(0.0, 0.0, 0.01))).notes
    assert not make_world(Dvl(range_noise=Noise(stddev=0.1))).notes
    assert make_world(Dvl(bottom=TrackErrors(long_term_offset=0.01), misalignment=(0.0, 0.0, 0.01))).notes
