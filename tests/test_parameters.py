"""Parameters of a world: paths, values, and the errors of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli
from navsense.cli.options import parse_parameter_options

pytestmark = pytest.mark.requirement("CAM-1")

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def world() -> ns.world.World:
    """Return the world of the survey."""
    return ns.load(EXAMPLES / "auv_survey.sdf")


def get_value(world: ns.world.World, path: str) -> Any:
    """Return a value by its full path."""
    return dict(ns.parameters.list_parameters(world))[path]


@pytest.mark.parametrize(
    ("path", "full", "value"),
    [
        ("imu.angular_velocity_x.stddev", "auv::imu_link::imu.angular_velocity_x.stddev", 0.01),
        ("auv::dvl_link::dvl.bottom.noise.stddev", "auv::dvl_link::dvl.bottom.noise.stddev", 0.1),
        ("dvl.misalignment", "auv::dvl_link::dvl.misalignment", (0.0, 0.0, 0.1)),
        ("imu.rate", "auv::imu_link::imu.rate", 50.0),
        ("imu.earth_rotation", "auv::imu_link::imu.earth_rotation", False),
        ("altimeter.latency.fixed", "auv::altimeter_link::altimeter.latency.fixed", 0.2),
        ("computer.noise.bias_stddev", "auv::base_link::computer.noise.bias_stddev", 0.5),
        ("world.water.surface", "world.water.surface", 1.0),
        ("world.current.fields.1.velocities.0", "world.current.fields.1.velocities.0", (0.5, 0.0, 0.0)),
        ("dvl.water_mode", "auv::dvl_link::dvl.water_mode", "never"),
    ],
)
def test_each_kind_of_parameter_is_set(world: ns.world.World, path: str, full: str, value: Any) -> None:
    changed = ns.with_parameters(world, {path: value})
    assert get_value(world, full) != value
    assert get_value(changed, full) == value
    old, new = dict(ns.parameters.list_parameters(world)), dict(ns.parameters.list_parameters(changed))
    assert {name for name in old if old[name] != new[name]} == {full}


def test_an_index_sets_one_component(world: ns.world.World) -> None:
    changed = ns.with_parameters(world, {"dvl.misalignment.1": 0.2})
    spec: Any = changed.sensor("dvl").spec
    assert spec.misalignment == (0.0, 0.2, get_value(world, "auv::dvl_link::dvl.misalignment")[2])


def test_a_pattern_sets_the_field_of_all_axes(world: ns.world.World) -> None:
    changed = ns.with_parameters(world, {"imu.angular_velocity_*.stddev": 0.25, "dvl.misalignment.*": 0.5})
    spec = changed.sensor("imu").spec
    assert [axis.stddev for axis in spec.noise()["angular_velocity"]] == [0.25] * 3
    assert [axis.stddev for axis in spec.noise()["linear_acceleration"]] == [0.0] * 3
    assert get_value(changed, "auv::dvl_link::dvl.misalignment") == (0.5, 0.5, 0.5)


def test_a_part_replaces_what_parts_define(world: ns.world.World) -> None:
    spec: Any = ns.with_parameters(world, {"imu.part": "adis16460"}).sensor("imu").spec
    part = ns.sensors.Imu.from_part("adis16460")
    assert spec == replace(part, earth_rotation=True)
    back: Any = ns.with_parameters(world, {"imu.part": "adis16460"})
    assert ns.with_parameters(back, {"imu.part": "stim300"}).sensor("imu").spec == world.sensor("imu").spec


@pytest.mark.parametrize("order", [1, -1])
def test_a_part_does_not_replace_other_parameters(world: ns.world.World, order: int) -> None:
    values = {"imu.part": "adis16460", "imu.angular_velocity_x.stddev": 0.25}
    spec: Any = ns.with_parameters(world, dict(list(values.items())[::order])).sensor("imu").spec
    part = ns.sensors.Imu.from_part("adis16460")
    assert spec.angular_velocity_x == replace(part.angular_velocity_x, stddev=0.25)
    assert spec.angular_velocity_y == part.angular_velocity_y


def test_the_later_one_of_two_paths_of_a_field_wins(world: ns.world.World) -> None:
    path = "auv::dvl_link::dvl.misalignment"
    changed = ns.with_parameters(world, {"dvl.misalignment.*": 0.5, "dvl.misalignment.1": 0.25})
    assert get_value(changed, path) == (0.5, 0.25, 0.5)
    changed = ns.with_parameters(world, {"dvl.misalignment.1": 0.25, "dvl.misalignment.*": 0.5})
    assert get_value(changed, path) == (0.5, 0.5, 0.5)


def test_each_path_of_a_part_can_be_set(world: ns.world.World) -> None:
    paths = [path.removeprefix("auv::") for path in ns.parameters.list_part_paths(world)]
    assert {"imu_link::imu.part", "dvl_link::dvl.part"} <= set(paths)
    assert "adcp_link::adcp.part" not in paths
    assert ns.with_parameters(world, {"imu_link::imu.part": "adis16460"}) != world


def test_every_listed_parameter_can_be_set_to_its_value(world: ns.world.World) -> None:
    for path, value in ns.parameters.list_parameters(world):
        if not path.startswith("world.scene") and value != ():
            assert get_value(ns.with_parameters(world, {path: value}), path) == value


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("imu", 1.0, "parameter: imu; must name an object and a field; write imu.FIELD"),
        ("", 1.0, "must name an object and a field"),
        ("motion", "log.csv", "is no parameter of the world; use --motion"),
        ("auv.motion", "log.csv", "is no parameter of the world; use --motion"),
        ("faults", "faults.toml", "is no parameter of the world; use --faults"),
        ("imu.angular_velocity_x.stddev", 10**400, "must be a number"),
        ("imo.rate", 1.0, "did you mean auv::imu_link::imu?"),
        ("imu.angular_velocity_x.stdev", 1.0, "did you mean stddev?"),
        ("imu.foo", 1.0, "is not a field of auv::imu_link::imu"),
        ("imu.angular_velocity_x", 1.0, "must be a field below it: mean, stddev"),
        ("imu.rate.x", 1.0, "a value of type float has no fields"),
        ("imu.angular_velocity_x.stddev", "many", "must be a number"),
        ("imu.angular_velocity_x.stddev", True, "must be a number"),
        ("imu.angular_velocity_x.stddev", -1.0, "stddev: -1.0; must be >= 0"),
        ("imu.earth_rotation", 1, "must be true or false"),
        ("imu.rate", 0.0, "rate of sensor"),
        ("imu.part", "nonsense", "must be one of"),
        ("computer.part", "stim300", "must be one of"),
        ("adcp.part", "stim300", "the catalogue has no part of type adcp"),
        ("dvl.misalignment.3", 1.0, "must be one of 0, 1, 2"),
        ("dvl.misalignment", [1.0, 2.0], "misalignment"),
        ("dvl.water_mode", "sometimes", "must be one of"),
        ("world.curent", 1.0, "did you mean current?"),
        ("imu.*.nonsense", 1.0, "imu.*.nonsense"),
        ("world.origin.latitude", 0.5, "is not a parameter: other values of the world were computed from the origin"),
        ("imu..stddev", 1.0, "imu..stddev"),
    ],
)
def test_wrong_parameters(world: ns.world.World, path: str, value: Any, text: str) -> None:
    with pytest.raises(ns.NavsenseError) as error:
        ns.with_parameters(world, {path: value})
    assert text in str(error.value)
    assert path in str(error.value) or path == ""


def test_option_of_the_command_line(tmp_path: Path) -> None:
    world, out = str(EXAMPLES / "quadrotor.sdf"), str(tmp_path / "a.npz")
    options = ["--set", "imu.angular_velocity_*.stddev=0.5", "--set", "imu.rate=200", "--duration", "1", "-o", out]
    done = CliRunner().invoke(cli, ["run", world, *options])
    assert done.exit_code == 0, done.output
    expected = ns.with_parameters(ns.load(world), {"imu.angular_velocity_*.stddev": 0.5, "imu.rate": 200})
    rate = ns.simulate(expected, 1.0)["imu"]["angular_velocity"]
    assert np.array_equal(ns.open(out)["imu"]["angular_velocity"], rate)


@pytest.mark.parametrize("text", ["1", "true", "null", "NaN", '"x"', "[1]", "never", "a b", ""])
def test_texts_in_commands_are_read_as_texts(text: str) -> None:
    option = f"a.b={ns.parameters.format_value(text)}"
    assert parse_parameter_options((option,)) == {"a.b": text}


@pytest.mark.parametrize("options", ["--set imu.rate", "--set =3", "--set imu.rate=1 --set imu.rate=2"])
def test_wrong_options(options: str) -> None:
    done = CliRunner().invoke(cli, ["run", str(EXAMPLES / "quadrotor.sdf"), "--duration", "1", *options.split()])
    assert isinstance(done.exception, ns.NavsenseError)
    assert "--set" in str(done.exception)


def test_describe_lists_the_parameters() -> None:
    done = CliRunner().invoke(cli, ["describe", str(EXAMPLES / "quadrotor.sdf"), "--parameters"])
    lines = done.output.splitlines()
    assert "quadrotor::base_link::imu.rate = 1000.0" in lines
    assert "quadrotor::base_link::imu.part = -" in lines
