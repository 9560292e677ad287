"""A scheduled fault of an array changes the arrays that are computed from it, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import Pose, from_rpy
from navsense.environment.base import Environment
from navsense.environment.seawater import ConstantDensity, Unesco
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.motion.stationary import Stationary
from navsense.noise.specification import Noise
from navsense.sensors import Altimeter, Depth, Range, ZeroReference
from navsense.sensors.depth import STANDARD_PRESSURE
from navsense.world import Link, Model, MountedSensor, World

NAME, HEIGHT, RATE = "auv::base::one", -20.0, 10.0
DOWN = from_rpy(0.0, 0.5 * np.pi, 0.0)


def make_world(spec: Any, *planned: ScheduledFault) -> World:
    """Return a world with the sensor 20 m below the surface and 30 m above a level bed, pointing down."""
    model = Model("auv", (Link("auv::base"),), "auv::base", motion=Stationary(Pose((0.0, 0.0, HEIGHT), DOWN)))
    mounted = MountedSensor(NAME, spec, "auv", "auv::base", RATE, topic="/one", faults=Faults(scheduled=planned))
    bed = Body("bed", Plane(), Pose((0.0, 0.0, HEIGHT - 30.0)))
    return World("sea", (model,), (mounted,), environment=Environment(scene=Scene((bed,)), water=Water()))


def measure_both(spec: Any, kind: str, array: str, value: float) -> tuple[Any, Any, Any]:
    """Return readings without and with a fault from 1 s to 2 s, and the faulty rows."""
    fault = ScheduledFault(kind, 1.0, 2.0, array, (value,), period=0.3 if kind == "spike" else 0.0)
    sound, faulty = (ns.simulate(make_world(spec, *arguments), 3.0, seed=4)[NAME] for arguments in ((), (fault,)))
    rows = pack_fault_bits(faulty.fault) > 0.0
    assert rows.sum() == (4 if kind == "spike" else 10)
    for name in sound.arrays:
        assert np.array_equal(sound[name][~rows], faulty[name][~rows], equal_nan=True), name
        assert np.array_equal(sound.ideal[name], faulty.ideal[name], equal_nan=True), name
    return sound, faulty, rows


@pytest.mark.requirement("NOI-6", "PRS-1")
@pytest.mark.parametrize("kind", ["bias", "spike"])
@pytest.mark.parametrize("gauge", [False, True])
def test_depth_is_computed_from_the_measured_pressure(kind: str, gauge: bool) -> None:
    """A bias of 0.1 bar is about a metre of fresh water by the assumed formula, or by the density of known water."""
    assumed, noise = ConstantDensity(1000.0, 10.0), Noise(stddev=50.0)
    for sheet in (Depth(noise, assumed, gauge=gauge), Depth(noise, Unesco(0.7), gauge=gauge)):
        sound, faulty, rows = measure_both(sheet, kind, "pressure", 1e4)
        assert np.array_equal(faulty["pressure"][rows], sound["pressure"][rows] + 1e4)
        above = faulty["pressure"] - (0.0 if gauge else STANDARD_PRESSURE)
        assert sheet.assumed is not None
        assert faulty["depth"] == pytest.approx(sheet.assumed.depth(above), abs=1e-9)
        if sheet.assumed is assumed:
            assert faulty["depth"][rows] - sound["depth"][rows] == pytest.approx(1.0, abs=1e-9)
    sound, faulty, rows = measure_both(Depth(noise, None, gauge=gauge), kind, "pressure", 1e4)
    weight = Water().pressure_gradient_at(np.array([-HEIGHT]))[0]
    assert faulty["depth"][rows] - sound["depth"][rows] == pytest.approx(1e4 / weight, rel=1e-9, abs=0.0)


@pytest.mark.requirement("NOI-6")
def test_depth_fault_does_not_change_the_pressure() -> None:
    sound, faulty, rows = measure_both(Depth(Noise(stddev=50.0)), "bias", "depth", 3.0)
    assert np.array_equal(faulty["pressure"], sound["pressure"])
    assert np.array_equal(faulty["depth"][rows], sound["depth"][rows] + 3.0)


@pytest.mark.requirement("NOI-6", "ALT-1")
@pytest.mark.parametrize("reference", [0.0, -5.0, ZeroReference(0.7)])
def test_height_is_relative_to_the_reported_reference(reference: float | ZeroReference) -> None:
    """Height plus reference equals the sensor position. A height fault does not change the reference."""
    sheet = Altimeter(Noise(stddev=0.1), Noise(stddev=0.1), reference)
    sound, faulty, rows = measure_both(sheet, "bias", "vertical_reference", 2.0)
    for name, moved in (("vertical_reference", 2.0), ("vertical_position", -2.0), ("vertical_velocity", 0.0)):
        assert faulty[name][rows] == pytest.approx(sound[name][rows] + moved, abs=1e-12)
    sound, faulty, rows = measure_both(sheet, "bias", "vertical_position", 2.0)
    assert np.array_equal(faulty["vertical_position"][rows], sound["vertical_position"][rows] + 2.0)
    assert np.array_equal(faulty["vertical_reference"], sound["vertical_reference"])


@pytest.mark.requirement("NOI-6", "ALT-8")
@pytest.mark.parametrize(("value", "side"), [(5.0, 0.0), (21.0, 1.0), (-29.0, -1.0)])
def test_biased_range_stays_within_limits(value: float, side: float) -> None:
    """The range is 30 m with limits of 2 m and 50 m. A value outside the limits is no return, with a flag."""
    sheet = Range(Noise(stddev=0.01), 2.0, 50.0)
    sound, faulty, rows = measure_both(sheet, "bias", "range", value)
    assert np.array_equal(faulty["out_of_range"], np.where(rows, side, 0.0))
    assert np.array_equal(faulty.valid, ~rows | (side == 0.0))
    if side:
        assert np.isnan(faulty["range"][rows]).all()
    else:
        assert np.array_equal(faulty["range"][rows], sound["range"][rows] + value)


@pytest.mark.requirement("NOI-6", "ALT-8")
def test_fault_creates_no_echo() -> None:
    sound, faulty, rows = measure_both(Range(Noise(stddev=0.01), 2.0, 20.0), "bias", "range", -15.0)
    assert set(sound["out_of_range"]) == {1.0}
    assert np.isnan(faulty["range"][rows]).all()
    assert np.array_equal(faulty["out_of_range"], sound["out_of_range"])
