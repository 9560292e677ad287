"""One fidelity for a run: on loading, and for a world that is already loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import navsense as ns
from navsense.environment.current import GaussMarkovCurrent, GaussMarkovProcess, UuvGaussMarkovProcess
from navsense.noise.specification import Noise
from navsense.sensors import Depth
from navsense.simulation.fidelity import FIDELITIES, apply_fidelity
from navsense.world import World

Load = Callable[..., World]
Text = Callable[..., str]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PRESSURE = """<plugin name="p" filename="libuuv_gazebo_ros_subsea_pressure_plugin.so"> <link_name>base</link_name>
<sensor_topic>pressure</sensor_topic> <noise_sigma>3</noise_sigma> <noise_amplitude>1</noise_amplitude>
<saturation>3000</saturation> </plugin>"""
CURRENT = """<plugin name="c" filename="libuuv_underwater_current_ros_plugin.so"> <namespace>hydrodynamics</namespace>
<constant_current> <topic>current</topic> <velocity> <mean>0.5</mean> <min>0</min> <max>1</max> <mu>0.1</mu>
<noiseAmp>0.1</noiseAmp> </velocity> </constant_current> </plugin>"""


def list_specs(world: World, fidelity: str) -> tuple[Any, ...]:
    """Return the specs and clocks of a world for a fidelity."""
    found = apply_fidelity(world, fidelity)
    return tuple(sensor.spec for sensor in found.sensors), found.clocks


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("file", ["auv_survey.sdf", "fleet.sdf", "quadrotor.sdf"])
def test_specs_are_equal_for_fidelity_of_load_and_of_run(file: str, fidelity: str) -> None:
    read, asked = (ns.load(EXAMPLES / file, path=EXAMPLES / "models", fidelity=one) for one in (None, fidelity))
    assert list_specs(read, fidelity) == list_specs(asked, fidelity)


@pytest.mark.requirement("SDF-1")
def test_plugin_currents_and_limits_follow_the_fidelity_of_load(load: Load, wrap_in_world: Text) -> None:
    """The documentation lists these two, which `simulate` cannot change."""
    text = wrap_in_world(f'{CURRENT}<model name="auv"><link name="base"/>{PRESSURE}</model>')
    physical, classic = load(text), load(text, fidelity="classic")
    later = apply_fidelity(physical, "classic")
    for world, kind, maximum in (
        (physical, GaussMarkovProcess, 3e6),
        (classic, UuvGaussMarkovProcess, math.inf),
        (later, GaussMarkovProcess, 3e6),
    ):
        current, spec = world.environment.current, world.sensors[0].spec
        assert isinstance(current, GaussMarkovCurrent)
        assert isinstance(current.speed, kind)
        assert isinstance(spec, Depth)
        assert spec.pressure.maximum == maximum
        assert spec.pressure.classic == (world is not physical)
        assert replace(spec.pressure, classic=True, maximum=math.inf) == Noise(stddev=3000.0, classic=True)
