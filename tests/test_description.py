"""The description of a world: terms of the field, singular and plural, no Python class names."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from navsense.core.geodesy import Origin
from navsense.core.pose import from_rpy
from navsense.core.typing import Quaternion, Times, Vectors
from navsense.description import describe
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment, FieldSum, UniformField, VectorField
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Dipole, WorldMagneticModel
from navsense.sensors import SENSORS, Dvl, Imu
from navsense.sensors.base import Sensor
from navsense.sensors.doppler import Beam, Beams
from navsense.sensors.doppler.beams import make_x_beams
from navsense.testing import example_world
from navsense.world import World

HERE = Origin(0.8, 0.3, 120.0, 0.5)


class SwirlField:
    """A field of another program."""

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        return np.zeros((time.size, 3))

    def rotate(self, rotation: Quaternion) -> SwirlField:
        return self


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (UniformField((0.0, 0.5, -9.80665)), "uniform (0 0.5 -9.80665)"),
        (NormalGravity(HERE), "normal gravity of WGS 84"),
        (WorldMagneticModel(HERE, 2026.5), "World Magnetic Model WMM2025, date 2026.5"),
        (Dipole((1.0, 2.0, 3.0), (0.0, 0.0, 5.0)), "dipole of 0 0 5 A m^2 at 1 2 3 m"),
        (SwirlField(), "user-defined"),
        (FieldSum((UniformField((1.0, 0.0, 0.0)), SwirlField())), "uniform (1 0 0) and user-defined"),
    ],
)
def test_every_field_has_a_description_noun(field: VectorField, text: str) -> None:
    world = World("w", environment=Environment(magnetic_field=field, atmosphere=Atmosphere(280.0)))
    lines = list(describe(world))
    assert f"  magnetic field (T): {text}" in lines
    assert "  air at sea level: 280 K, 101325 Pa, temperature gradient -0.0065 K/m" in lines
    assert {"no models", "no sensors"} <= set(lines)


@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_description_contains_no_class_name(kind: type) -> None:
    world = example_world(("one", kind.example_spec()), ("other", replace(kind.example_spec())))  # type: ignore[attr-defined]
    text = "\n".join(describe(world))
    assert not re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b|\w+\(\w+=|<\w+\.\w+", text)
    assert not re.findall(r"\b1 (?:models|links|sensors|rows|points|layers)\b", text)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (Imu(), "angular_velocity (rad/s): no noise"),
        (Imu(orientation=False), "orientation: not measured"),
        (Imu(averaged=True), "samples: mean of each sampling interval"),
        (Imu(earth_rotation=True), "earth rotation: measured"),
        (
            Imu(reference=(4.3e-17, math.sqrt(0.5), math.sqrt(0.5), -4.3e-17)),
            "reference of the orientation, to the world (w x y z): 0 0.707107 0.707107 0",
        ),
        (Dvl(), "beam_range (m): no noise"),
        (
            Dvl(beams=Beams((*make_x_beams(0.5).beams, Beam(rotation=from_rpy(0.0, math.pi / 2.0, 0.0))))),
            "beams: 5, at 28.65, 28.65, 28.65, 28.65, 0 deg from the instrument axis; one ray per beam",
        ),
    ],
)
def test_description_of_a_sensor_is_plain_text(spec: Sensor, line: str) -> None:
    lines = list(describe(example_world(("one", spec))))
    assert f"    {line}" in lines
    assert not [line for line in lines if "True" in line or "False" in line]
