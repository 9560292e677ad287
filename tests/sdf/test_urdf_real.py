"""Third-party robots: the DVLs of the UUV Simulator and of Woods Hole, from a document and as macros."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

import navsense as ns
from navsense import sdf
from navsense.core.errors import SdfError
from navsense.core.pose import Pose, from_rpy, rotate
from navsense.world import World

LATER = "not simulated"

needs_xacro = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")


def simulate_or_list_reasons(world: World, name: str) -> bool:
    return any(s.name == name for s in world.sensors) or any(
        note.what.endswith(f": {name}") and LATER in note.reason for note in world.notes
    )


def list_reasons(world: World, plugin: str) -> list[str]:
    return [note.reason for note in world.notes if f'filename="{plugin}"' in note.what]


@pytest.mark.requirement("DVU-2")
def test_real_dvl_has_four_beams_over_level_ground(dvl_robots: dict[str, str], tmp_path: Path) -> None:
    """Each range is that of the steepest of its 3 x 3 rays, with the noise of its plug-in."""
    (tmp_path / "auv.urdf").write_text(dvl_robots["uuv"], encoding="utf-8")
    bed = "<collision name='c'><geometry><plane/></geometry></collision>"
    (tmp_path / "sea.sdf").write_text(
        "<sdf version='1.9'><world name='sea'><include><uri>auv.urdf</uri></include><model name='bed'>"
        f"<static>1</static><pose>0 0 -20 0.1 0.05 0</pose><link name='l'>{bed}</link></model></world></sdf>",
        encoding="utf-8",
    )
    world = sdf.load(tmp_path / "sea.sdf")
    run = ns.simulate(world, 600.0, seed=3)
    up = rotate(from_rpy(0.1, 0.05, 0.0), (0.0, 0.0, 1.0))
    height = sum(a * b for a, b in zip(up, (1.5, 0.0, -0.5 + 20.0), strict=True))
    ends = (-0.03, 0.0, 0.03)
    rays = [(math.cos(v) * math.cos(h), math.cos(v) * math.sin(h), math.sin(v)) for v in ends for h in ends]
    for i in range(4):
        turn = world.model("auv").link(f"auv::dvl/dvl_sonar{i}_link").pose.rotation
        falls = [-sum(a * b for a, b in zip(up, rotate(turn, ray), strict=True)) for ray in rays]
        reading = run[f"auv::dvl/dvl_sonar{i}_link::dvl_sonar{i}"]
        expected, count = height / max(falls), reading["range"].size
        assert count == 4200
        assert reading.ideal["range"] == pytest.approx(expected, rel=1e-12, abs=0.0)
        errors = reading["range"] - expected
        # false alarms 1e-6; rounding of two deviations leaves exp(-2 pi^2 / 4) of its phase in mean and variance
        phase = math.exp(-2.0 * (math.pi * 0.005 / 0.01) ** 2)
        variance = 0.005**2 + 0.01**2 / 12.0
        assert abs(errors.mean()) < 4.9 * math.sqrt(variance / count) + phase * 0.01 / math.pi
        slack = phase * (0.01**2 / math.pi**2 + 4.0 * 0.005**2)
        assert abs(errors.var() - variance) < 4.9 * math.sqrt(2.0 / count) * variance + slack
        assert reading.valid.all()


@pytest.mark.requirement("SDF-2")
def test_uuv_simulator_dvl_is_read(dvl_robots: dict[str, str], tmp_path: Path) -> None:
    """Model plug-in, four beam links on fixed joints and their ray sensors are read or listed with a reason."""
    (tmp_path / "auv.urdf").write_text(dvl_robots["uuv"], encoding="utf-8")
    world = sdf.load(tmp_path / "auv.urdf")
    (model,) = world.models
    assert model.canonical_link == "auv::robot_link"
    assert [link.name.removeprefix("auv::") for link in model.links] == [
        "robot_link",
        "dvl/dvl_link",
        *(f"dvl/dvl_sonar{i}_link" for i in range(4)),
    ]
    low = math.cos(0.52)
    ways = [
        (math.sin(0.52), 0, -low),
        (0, math.sin(0.52), -low),
        (-math.sin(0.52), 0, -low),
        (0, -math.sin(0.52), -low),
    ]
    for i, way in enumerate(ways):  # x of the DVL points down: beams at 0.52 rad point forward, to port, aft, starboard
        pose = model.link(f"auv::dvl/dvl_sonar{i}_link").pose
        assert pose.position == (1.5, 0.0, -0.5)
        assert rotate(pose.rotation, (1.0, 0.0, 0.0)) == pytest.approx(way, abs=1e-11)
        assert simulate_or_list_reasons(world, f"auv::dvl/dvl_sonar{i}_link::dvl_sonar{i}")
    assert world.sensors[-1].name == "auv::robot_link::libuuv_gazebo_dvl_plugin"
    assert list_reasons(world, "libuuv_gazebo_ros_dvl_plugin.so") == []


@pytest.mark.requirement("SDF-2")
def test_ds_sim_dvl_is_read(dvl_robots: dict[str, str], tmp_path: Path) -> None:
    text = dvl_robots["dsros"]
    (tmp_path / "auv.urdf").write_text(text, encoding="utf-8")
    world = sdf.load(tmp_path / "auv.urdf")
    pose = world.models[0].link("auv::dvl_link").pose
    assert pose.position == (1.5, 0.0, -0.5)
    assert rotate(pose.rotation, (0.0, 0.0, 1.0)) == pytest.approx((0, 0, -1), abs=1e-11)
    assert [sensor.name for sensor in world.sensors] == ["auv::dvl_link::dvl_sensor"]
    assert list_reasons(world, "libdsros_ros_dvl.so") == []
    lines = {note.where.line for note in world.notes if note.where is not None}
    assert min(lines) > 2
    assert max(lines) < len(text.splitlines())


@pytest.mark.requirement("SDF-2")
@needs_xacro
def test_dave_and_ds_sim_macros_are_read(shared_data: Path, tmp_path: Path) -> None:
    """Elements of three included files of macros have the locations of these files."""
    dave, woods_hole = shared_data / "dave", shared_data / "ds_sim"
    whn = dave / "teledyne_whn_dsl_description__teledyne_whn.xacro"
    nortek = dave / "nortek_dvl1000_300_uuvsim_description__nortek_dvl1000_300.xacro"
    rdi = woods_hole / "rdi300_sim.xacro"
    path = tmp_path / "auv.urdf.xacro"
    path.write_text(
        f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="auv">
<xacro:include filename="{whn}"/><xacro:include filename="{nortek}"/><xacro:include filename="{rdi}"/>
<link name="base"/>
<xacro:teledyne_whn_macro name="whn" xyz="0 0 0.1" namespace="auv" dvl_topic="dvl" ranges_topic="r" robot_link="base"
  joint_xyz="1.5 0 -0.5"/>
<xacro:nortek_dvl1000_300_enu_macro namespace="nortek" parent_link="base">
  <origin xyz="${{-2 / 2}} 0 -0.5" rpy="0 ${{pi / 2}} 0"/></xacro:nortek_dvl1000_300_enu_macro>
<xacro:rdi_workhorse_300_sim name="rdi" parent_link="base" xyz="0 0 0" rpy="0 0 0" robot_namespace="a" dvl_topic="b"
  ranges_topic="c"/>
</robot>
""",
        encoding="utf-8",
    )
    world = sdf.load(path)
    model = world.models[0]
    assert len(model.links) == 7
    assert model.link("auv::whn_link").pose == Pose((1.5, 0.0, -0.5), model.link("auv::whn_link").pose.rotation)
    tilt = 0.4363
    ways = [(math.sin(tilt), 0), (0, math.sin(tilt)), (-math.sin(tilt), 0), (0, -math.sin(tilt))]
    for i, (x, y) in enumerate(ways):
        pose = model.link(f"auv::nortek/dvl_sonar{i}_link").pose
        assert pose.position == (-1.0, 0.0, -0.5)
        assert rotate(pose.rotation, (1.0, 0.0, 0.0)) == pytest.approx((x, y, -math.cos(tilt)), abs=1e-12)
        assert simulate_or_list_reasons(world, f"auv::nortek/dvl_sonar{i}_link::dvl_sonar{i}")
    for name in ("auv::whn_link::whn_sensor", "auv::base::rdi_sensor"):
        assert simulate_or_list_reasons(world, name)
    places = {note.where.path for note in world.notes if note.where is not None}
    assert {str(whn), str(nortek), str(rdi)} <= places
    sensor = next(sensor for sensor in world.sensors if sensor.name == "auv::whn_link::whn_sensor")
    assert sensor.where is not None
    assert "<sensor name=" in whn.read_text(encoding="utf-8").splitlines()[sensor.where.line - 1]


@pytest.mark.requirement("SDF-2")
@needs_xacro
@pytest.mark.parametrize(
    "file",
    [
        "dave/nortek_dvl1000_300_uuvsim_description__nortek_dvl1000_300.xacro",
        "dave/teledyne_whn_dsl_description__teledyne_whn.xacro",
        "ds_sim/nortek1000_sim.xacro",
        "ds_sim/rdi300_sim.xacro",
    ],
)
def test_macro_file_without_robot_is_an_error(shared_data: Path, file: str) -> None:
    with pytest.raises(
        SdfError, match=r"<robot>; must have a name and a link; if it defines only macros, name a file that"
    ) as caught:
        sdf.load(shared_data / file)
    assert caught.value.where is not None
    assert caught.value.where.path == str(shared_data / file)
