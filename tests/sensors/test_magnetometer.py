"""Magnetometer against the documents' cases and the figures of Gazebo's library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from navsense.environment.base import DEFAULT_MAGNETIC_FIELD, Environment, Uniform
from navsense.motion.still import Still
from navsense.noise.channel import Noise
from navsense.pose import Pose, from_rpy
from navsense.sensors import Magnetometer
from navsense.testing import witness_motion
from navsense.ticks import Ticks
from navsense.typing import FloatArray, Vector

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)


def read(field: Vector, rpy: Vector) -> FloatArray:
    environment = Environment(magnetic_field=Uniform(field))
    return Magnetometer().ideal(Still(Pose((1.0, 2.0, 3.0), from_rpy(*rpy))), environment, ONE)["field"][0]


@pytest.mark.requirement("MAG-6", "MAG-1")
def test_aligned_with_the_origin_it_reads_the_global_field() -> None:
    assert np.array_equal(read((1.0, 2.0, -4.0), (0.0, 0.0, 0.0)), [1.0, 2.0, -4.0])


@pytest.mark.requirement("MAG-6", "MAG-1")
def test_turned_a_quarter_about_z_it_reads_the_field_in_the_body_frame() -> None:
    assert np.allclose(read((1.0, 2.0, -4.0), (0.0, 0.0, math.pi / 2)), [2.0, -1.0, -4.0], atol=1e-15)


@pytest.mark.requirement("MAG-1")
def test_the_figures_of_gazebos_library() -> None:
    """gz-sensors (main), field (1, 2, -4), rpy (0, 3.14, 1.57), measured on the library."""
    expected = [-1.994422543354379, -0.9984070295103683, 4.0031815000052315]
    assert np.allclose(read((1.0, 2.0, -4.0), (0.0, 3.14, 1.57)), expected, rtol=0.0, atol=1e-14)


@pytest.mark.requirement("MAG-1")
def test_a_moving_sensor_against_scipy() -> None:
    ticks = Ticks(np.arange(500), 100.0)
    ours = Magnetometer().ideal(witness_motion(), Environment(), ticks)["field"]
    quaternions = witness_motion().at(ticks.time).rotation_wb
    theirs = Rotation.from_quat(quaternions, scalar_first=True).inv().apply(DEFAULT_MAGNETIC_FIELD)
    assert np.allclose(ours, theirs, rtol=0.0, atol=1e-19)


@pytest.mark.requirement("MAG-2")
def test_each_axis_has_its_own_noise_after_the_rotation() -> None:
    count = 4000
    sheet = Magnetometer(Noise(stddev=1e-7), Noise(), Noise(mean=3e-7))
    field = np.tile([1e-5, 2e-5, -4e-5], (count, 1))
    reading = sheet.apply(np.arange(count) / 100.0, field, seed=1)
    off = reading["field"] - field
    assert abs(off[:, 0].std() / 1e-7 - 1.0) < 4.892 / math.sqrt(2.0 * count)
    assert not off[:, 1].any()
    assert np.allclose(off[:, 2], 3e-7, rtol=1e-9)


@pytest.mark.requirement("MAG-2", "NOI-2")
def test_axes_with_one_sheet_draw_apart() -> None:
    noise = Noise(stddev=1e-7)
    field = np.zeros((5000, 3))
    off = Magnetometer(noise, noise, noise).apply(np.arange(5000) / 100.0, field, seed=1)["field"]
    assert np.abs(np.corrcoef(off.T) - np.eye(3)).max() < 5.2 / math.sqrt(5000)


@pytest.mark.requirement("MAG-4")
def test_the_world_supplies_the_field() -> None:
    assert Environment().magnetic_field.at(np.zeros((1, 3)), np.zeros(1)).tolist() == [
        [5.5645e-6, 22.8758e-6, -42.3884e-6]
    ]
