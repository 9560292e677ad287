"""Cameras are triggers: their instants, stamps and intrinsics."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import navsense as ns
from navsense.clock import Clock, Latency
from navsense.core.errors import SensorError
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.noise.specification import Noise
from navsense.sensors import Camera, CameraIntrinsics, CameraProjection, Imu, LensDistortion
from navsense.testing import example_world
from navsense.world import World

SINGLE = 2.0**-23
"""Relative error of a number in single precision, as the renderer computes."""


@pytest.mark.requirement("CLK-11")
def test_intrinsics_equal_those_of_gz_sensors() -> None:
    """gz-sensors, `test/integration/camera.cc`: `camera_projection.sdf` has a view of 1.05 rad and 1000 x 1000 px."""
    k = CameraIntrinsics.from_field_of_view(1.05, 1000, 1000)
    assert k.fx == k.fy == pytest.approx(863.22975158691406, rel=4 * SINGLE, abs=0.0)
    assert (k.cx, k.cy) == (500.0, 500.0)


@pytest.mark.requirement("CLK-11")
@pytest.mark.parametrize(("view", "width", "height"), [(1.047, 320, 240), (0.3, 1920, 1080), (2.9, 257, 512)])
def test_rays_at_the_ends_of_the_view_hit_the_ends_of_the_image(view: float, width: int, height: int) -> None:
    """A ray at half the view to the right is at x = width, to the left at 0; one along the axis is in the centre."""
    camera = Camera.from_field_of_view(view, width, height)
    matrix = ns.simulate(example_world(("eye", camera)), 0.01, seed=1)["eye"]["projection_matrix"][0]
    for angle, expected in ((0.5 * view, float(width)), (-0.5 * view, 0.0), (0.0, 0.5 * width)):
        u, v, w = matrix @ np.array([math.sin(angle), 0.0, math.cos(angle), 1.0])
        assert u / w == pytest.approx(expected, abs=1e-9 * width)
        assert v / w == pytest.approx(0.5 * height, abs=1e-9 * height)


@pytest.mark.requirement("CLK-11")
def test_disparity_of_a_stereo_pair_is_the_focal_length_times_the_baseline_over_the_distance() -> None:
    """The projection of the second camera maps points of the frame of the first one."""
    focal_length, baseline, distance = 400.0, 0.12, 3.0
    first = Camera(640, 480, CameraIntrinsics(focal_length, focal_length, 320.0, 240.0))
    second = replace(
        first, projection=CameraProjection(focal_length, focal_length, 320.0, 240.0, -focal_length * baseline)
    )
    run = ns.simulate(example_world(("left", first), ("right", second)), 0.01, seed=1)
    point = np.array([0.3, -0.2, distance, 1.0])
    left, right = (run[name]["projection_matrix"][0] @ point for name in ("left", "right"))
    assert left[0] / left[2] - right[0] / right[2] == pytest.approx(focal_length * baseline / distance, abs=1e-12)


@pytest.mark.requirement("CLK-11")
def test_view_of_half_a_circle_has_no_pinhole() -> None:
    for view in (math.pi, 4.0):
        assert not CameraIntrinsics.from_field_of_view(view, 640, 480).is_known
        reading = ns.simulate(example_world(("eye", Camera.from_field_of_view(view, 640, 480))), 0.01)["eye"]
        assert not reading["intrinsic_matrix"].any()
        assert not reading["projection_matrix"].any()


def make_world(camera: Camera, **fields: object) -> World:
    """Return the example world with a camera at 30 Hz and an IMU on one clock."""
    world = example_world(("eye", camera), ("imu", Imu.example_spec()))
    eye = replace(world.sensor("eye"), rate=30.0, **fields)  # type: ignore[arg-type]
    return replace(world, sensors=(eye, world.sensor("imu")))


@pytest.mark.requirement("CLK-11", "CLK-2")
def test_camera_is_triggered_at_its_rate_and_stamped_by_its_clock() -> None:
    """The clock changes the stamp and not the instant: at 0 and at 1 s the error is that of the IMU on this clock."""
    quiet = Clock(
        "robot::base::clock", Noise(bias_mean=2e-3, dynamic_bias_stddev=1e-4, dynamic_bias_correlation_time=9.0)
    )
    run = ns.simulate(replace(make_world(Camera.example_spec()), clocks=(quiet,)), 2.0, seed=4)
    eye, imu = run["eye"], run["imu"]
    assert eye.time == pytest.approx(np.arange(60) / 30.0, abs=1e-12)
    assert abs(eye.clock_error).min() > 1e-4
    shared = np.isin(imu.time, eye.time)
    assert shared.sum() >= 2
    assert np.array_equal(imu.clock_error[shared], eye.clock_error[np.isin(eye.time, imu.time)])
    assert np.array_equal(eye.stamp, np.rint((eye.time + eye.clock_error) * 1e9).astype(np.int64))


@pytest.mark.requirement("CLK-11", "CLK-9")
def test_camera_has_latency_dropouts_and_stuck_readings() -> None:
    faults = Faults(scheduled=(ScheduledFault("dropout", 0.5, 1.0), ScheduledFault("stuck", 1.2, 1.4)))
    world = make_world(Camera.example_spec(), faults=faults, latency=Latency(fixed=0.04))
    reading = ns.simulate(world, 2.0, seed=4)["eye"]
    lost = (reading.time >= 0.5) & (reading.time < 1.0)
    assert np.array_equal(reading.emitted, ~lost)
    assert np.isnan(reading["intrinsic_matrix"][lost]).all()
    assert reading.fault["stuck"].any()
    assert (reading.arrival - reading.time)[~lost] == pytest.approx(0.04, abs=1e-12)


@pytest.mark.requirement("CLK-11")
def test_invalid_cameras_are_errors() -> None:
    with pytest.raises(SensorError, match=r"width of a camera \(px\): 0; must be from 1 to 4294967295"):
        Camera(0, 480)
    with pytest.raises(SensorError, match=r"horizontal_fov \(rad\): 0.0; must be > 0"):
        CameraIntrinsics.from_field_of_view(0.0, 640, 480)
    for view in (1e-300, 5e-324):
        with pytest.raises(SensorError, match=r"horizontal_fov \(rad\): .*; must give a focal length below 1e\+100 px"):
            CameraIntrinsics.from_field_of_view(view, 640, 480)
    with pytest.raises(SensorError, match=r"fx of a camera \(px\): inf; must be a finite number"):
        CameraIntrinsics(fx=math.inf)
    with pytest.raises(SensorError, match=r"k1 of a distortion: nan; must be a finite number"):
        LensDistortion(k1=math.nan)


@pytest.mark.requirement("CLK-11")
def test_default_intrinsics_follow_the_size() -> None:
    """Without intrinsics the view is SDF's default, 1.047 rad, for any size."""
    for width in (320, 640):
        assert Camera(width, 240).intrinsics == CameraIntrinsics.from_field_of_view(1.047, width, 240)
