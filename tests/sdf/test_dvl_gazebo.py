"""`<gz:dvl>`: its elements, Gazebo's worlds and values (tests/oracles/gazebo/README.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from scipy.stats import norm

import navsense as ns
from navsense.core.pose import from_rpy, rotate
from navsense.core.typing import Times, Vector, Vectors
from navsense.environment.current import GriddedCurrent
from navsense.messages import dvl, gz
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.sensors import Cone
from navsense.sensors.doppler import MessageDialect, Transducer, WaterMassLayer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

FALSE_ALARM = 1e-6

TURNS = (45, 135, -135, -45)
BEAMS = "".join(f"<beam><aperture>2</aperture><rotation>{a}</rotation><tilt>30</tilt></beam>" for a in TURNS)
PAIR = BEAMS.partition("<beam><aperture>2</aperture><rotation>-135")[0]
NOISE = '<noise type="gaussian"><stddev>0.001</stddev></noise>'
BOTTOM = f"<bottom_mode><when>best</when>{NOISE}</bottom_mode>"
WATER = f"""<water_mass_mode><when>best</when>{NOISE}<water_velocity><x>u</x><y>v</y></water_velocity>
<boundaries><near>20</near><far>60</far></boundaries></water_mass_mode>"""
TABLE = """<plugin filename="gz-sim-environment-preload-system" name="e"><data>sea.csv</data>
<dimensions><ignore_time>true</ignore_time><time>t</time></dimensions></plugin>"""
NAME = "auv::base::d"


def make_block(
    tracking: str = BOTTOM, more: str = "", beams: str = BEAMS, elements: str = "<update_rate>5</update_rate>"
) -> str:
    return f"""<sensor name="d" type="custom" gz:type="dvl">{elements}<gz:dvl>
<arrangement degrees="true">{beams}</arrangement>
<tracking>{tracking}</tracking>{more}</gz:dvl></sensor>"""


def make_bed(depth: float) -> str:
    return f"""<model name="bed"><static>true</static><pose>0 0 -{depth} 0 0 0</pose><link name="l">
<collision name="c"><geometry><plane/></geometry></collision></link></model>"""


def make_robot(sensor: str, pose: str = "0 0 0 0 0 0") -> str:
    return f'<model name="auv"><pose>{pose}</pose><link name="base">{sensor}</link></model>'


def write_current_table(folder: Path, header: str = "t,x,y,z,u,v") -> None:
    """Write a table of a current (1, 0.5, 0) m/s."""
    rows = [f"0,{x},{y},{z},1,0.5" for x in (-900, 900) for y in (-900, 900) for z in (-900, 0)]
    (folder / "sea.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def get_spec(world: World) -> Dvl:
    (sensor,) = world.sensors
    assert isinstance(sensor.spec, Dvl)
    return sensor.spec


@dataclass(frozen=True)
class LevelMotion:
    """Straight motion at one velocity (m/s, world), or with a yaw rate (rad/s) and a body velocity."""

    start: Vector
    velocity: Vector
    yaw: float = 0.0
    rate: float = 0.0

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: Times) -> MotionBlock:
        angle, rows, (vx, vy, vz) = self.yaw + self.rate * time, np.ones((time.size, 1)), self.velocity
        rotation = np.array([from_rpy(0.0, 0.0, a) for a in angle.tolist()])
        if not self.rate:
            return self._block(np.array(self.start) + time[:, None] * self.velocity, rotation, rows * self.velocity)
        cos, sin = np.cos(angle), np.sin(angle)
        velocity = np.column_stack([vx * cos - vy * sin, vx * sin + vy * cos, rows[:, 0] * vz])
        off = np.column_stack([vx * sin + vy * cos, vy * sin - vx * cos]) / self.rate
        off -= np.array([vx * math.sin(self.yaw) + vy * math.cos(self.yaw), 0.0]) / self.rate
        off -= np.array([0.0, vy * math.sin(self.yaw) - vx * math.cos(self.yaw)]) / self.rate
        position = np.array(self.start) + np.column_stack([off, vz * time])
        return self._block(position, rotation, velocity)

    def _block(self, position: Vectors, rotation: Any, velocity: Vectors) -> MotionBlock:
        rows = np.ones((velocity.shape[0], 1))
        omega, still = rows * np.array([0.0, 0.0, self.rate]), rows * np.zeros(3)
        turning = np.cross(omega, velocity)
        return MotionBlock(position, rotation, velocity, omega, turning, still)


def make_decoder() -> Any:
    """Return the protobuf class of Gazebo's message, from the definition that recordings contain."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(gz.encode_descriptor_set()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gz.msgs.DVLVelocityTracking"))


def simulate_messages(world: World, duration: float, motion: Any = None) -> list[Any]:
    """Return Gazebo messages of the one sensor, without pings whose echoes are still in flight."""
    run, kind = ns.simulate(world, duration, seed=3, motion=motion), make_decoder()
    return [
        kind.FromString(message) for message in dvl.encode_gz_messages(world.sensors[0], run[world.sensors[0].name])
    ]


def to_vector(value: Any) -> list[float]:
    return [value.x, value.y, value.z]


def check_velocity(found: list[Any], expected: Vector) -> None:
    """Assert that velocities are within Gazebo's tolerance, and that mean and errors match their covariance.

    Gazebo allows 4 standard deviations of a beam for one component of one message. Four beams at 30 degrees have
    sqrt(2) of it horizontally. The mean of all messages is more accurate.
    """
    velocity = np.array([to_vector(item.velocity.mean) for item in found])
    covariance = np.array([list(item.velocity.covariance) for item in found]).reshape(-1, 3, 3)
    assert covariance[0] == pytest.approx(1e-6 * np.diag([2.0, 2.0, 1.0 / 3.0]), rel=1e-9, abs=1e-18)
    off, spread = velocity.mean(axis=0) - expected, np.sqrt(np.diag(covariance[0]) / len(found))
    assert np.all(np.abs(off) < 4.0 * 0.001)
    assert np.all(np.abs(off) < norm.isf(FALSE_ALARM / 6.0) * spread)


@pytest.mark.requirement("GAP-1", "GAP-5")
def test_gazebo_test_at_rest(load: Load, wrap_in_world: Text) -> None:
    """Test D1: at rest, 80 m above the seabed, with beams of 2 degrees at 30 degrees."""
    sensor = make_block(elements="<update_rate>5</update_rate><frame_id>dvl_frame</frame_id>")
    found = simulate_messages(load(wrap_in_world(make_robot(sensor) + make_bed(80.0))), 10.0)
    assert len(found) == 49
    check_velocity(found, (0.0, 0.0, 0.0))
    for item in found:
        assert (len(item.beams), all(beam.locked for beam in item.beams), item.status) == (4, True, 0)
        assert math.degrees(math.acos(80.0 / item.target.range.mean)) == pytest.approx(30.0, abs=1.0 + 1e-9)
        assert (item.target.type, item.velocity.reference, item.type) == (1, 2, 1)
        assert {entry.key: entry.value[0] for entry in item.header.data}["frame_id"] == "dvl_frame"
        assert [beam.id for beam in item.beams] == [0, 1, 2, 3]


@pytest.mark.requirement("GAP-1", "CUR-2")
def test_gazebo_test_of_water_track(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """Test D2: layer from 20 to 60 m, current (1, 0.5, 0), sensor at rest at z = -10."""
    write_current_table(tmp_path)
    world = load(wrap_in_world(TABLE + make_robot(make_block(WATER), "0 0 -10 0 0 0") + make_bed(90.0)))
    assert isinstance(world.environment.current, GriddedCurrent)
    found = simulate_messages(world, 10.0)
    check_velocity(found, (-1.0, -0.5, 0.0))
    axes = get_spec(world).beams.axes
    for item in found:
        assert item.target.type == 2
        for beam, axis in zip(item.beams, axes, strict=True):
            assert beam.range.mean == pytest.approx(40.0 / -axis[2], rel=1e-12, abs=0.0)
            assert beam.range.variance == pytest.approx((40.0 / axis[2]) ** 2 / 12.0, rel=1e-12, abs=0.0)
    for k, axis in enumerate(axes):
        mean = np.mean([to_vector(item.beams[k].velocity.mean) for item in found], axis=0)
        assert mean == pytest.approx(axis * (axis @ [-1.0, -0.5, 0.0]), abs=4.0 * 0.001)


@pytest.mark.requirement("GAP-1")
def test_gazebo_test_of_a_moving_dvl(load: Load, wrap_in_world: Text) -> None:
    """Test D3: at (1, 0, 0) m/s over the seabed."""
    world = load(wrap_in_world(make_robot(make_block()) + make_bed(80.0)))
    found = simulate_messages(world, 10.0, {"auv": LevelMotion((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))})
    check_velocity(found, (1.0, 0.0, 0.0))
    for k, axis in enumerate(get_spec(world).beams.axes):
        mean = np.mean([to_vector(item.beams[k].velocity.mean) for item in found], axis=0)
        assert mean == pytest.approx(axis * axis[0], abs=4.0 * 0.001)


SFM = (0.0, 0.6, -0.16)
"""Sensor position on Gazebo's vehicle, in its starboard, forward, mast frame (m)."""


def load_gazebo_sensor(example_data: Path, name: str, more: str = "") -> str:
    """Return a Gazebo world with the sensor of its file on a vehicle of ours, as the original model is missing."""
    text = (example_data / "gz-sim" / name).read_text(encoding="utf-8")
    before, _, rest = text.partition("<include>")
    inside, _, after = rest.partition("</include>")
    sensor = "<sensor" + inside.partition("<sensor")[2].partition("</experimental:params>")[0]
    sensor = sensor.replace('element_id="base_link" action="add"', "").replace("<update_rate>1<", "<update_rate>5<")
    place = inside.partition("<pose>")[2].partition("</pose>")[0]
    return f'{before}{more}<model name="auv"><pose>{place}</pose><link name="base_link">{sensor}</link></model>{after}'


@pytest.mark.requirement("GAP-1", "GAP-6", "SDF-1")
@pytest.mark.parametrize("name", ["dvl_world.sdf", "flat_seabed.sdf"])
def test_gazebo_example_files_are_read(load: Load, example_data: Path, name: str) -> None:
    world = load(load_gazebo_sensor(example_data, name))
    spec = get_spec(world)
    shape = spec.beams.beams[0].shape
    assert isinstance(shape, Cone)
    assert shape.rings == 1
    assert shape.width == pytest.approx(0.02, rel=1e-12, abs=0.0)
    assert spec.bottom.noise == Noise(stddev=0.002)
    modes = (spec.bottom_mode, spec.water_mode, spec.layer)
    assert modes == (TrackMode.BEST, TrackMode.NEVER, None)
    assert (spec.minimum_range, spec.maximum_range, spec.transducer) == (0.1, 100.0, Transducer.PHASED_ARRAY)
    assert (spec.dialect, spec.message_options.beam_ids) == (MessageDialect.GZ, (1, 2, 3, 4))
    assert world.sensors[0].topic == "/dvl/velocity"
    forward = rotate(spec.reference, (1.0, 0.0, 0.0))
    assert forward == pytest.approx((0.0, 1.0, 0.0), abs=1e-6)


@pytest.mark.requirement("GAP-1", "GAP-5")
def test_gazebo_flat_seabed_world(load: Load, example_data: Path) -> None:
    """At (1, 0, 0) m/s and 1 rad/s about z in the sensor frame, the velocity is v + w x r to 1e-2, ranges to 0.2 m."""
    world = load(load_gazebo_sensor(example_data, "flat_seabed.sdf"))
    # The vehicle moves along -x, so starboard is y: that of the velocity frame.
    motion = LevelMotion((0.0, 0.0, -80.0), (0.0, 1.0, 0.0), 1.57, 1.0)
    run = ns.simulate(world, 50.0, seed=4, motion={"auv": motion})["auv::base_link::teledyne_pathfinder_dvl"]
    velocity = run["velocity"][run.emitted]
    expected = np.array([1.0, 0.0, 0.0]) + np.cross([0.0, 0.0, 1.0], SFM)
    assert velocity.shape == (249, 3)
    spread = np.sqrt(2.0) * 0.002
    assert np.abs(velocity.mean(axis=0) - expected).max() < norm.isf(FALSE_ALARM / 6.0) * spread / math.sqrt(249) + 1e-6
    assert np.abs(velocity.mean(axis=0) - expected).max() < 1e-2
    assert run["beam_range"][run.emitted] == pytest.approx((20.0 - 0.16) / math.cos(math.radians(30.0)), abs=0.2)
    assert np.abs(run.ideal["velocity"][run.emitted] - expected).max() < 1e-6


@pytest.mark.requirement("GAP-1", "CUR-2")
def test_gazebo_current_world(load: Load, example_data: Path) -> None:
    """A DVL that names the columns measures the table's -1 m/s east and 0.5 north to Gazebo's 0.1 m/s."""
    east, north = (f"{way}ward_sea_water_velocity_meter_per_sec" for way in ("east", "north"))
    mode = f"""<water_mass_mode><when>best</when><water_velocity><x>{east}</x><y>{north}</y></water_velocity>
<boundaries><near>20</near><far>60</far></boundaries><bins>10</bins></water_mass_mode>"""
    table = """<plugin filename="gz-sim-environment-preload-system" name="e"><data>underwater_currents.csv</data>
<dimensions><time>elapsed_time_second</time><space reference="spherical"><x>latitude_degree</x>
<y>longitude_degree</y><z>altitude_meter</z></space></dimensions></plugin>"""
    text = load_gazebo_sensor(example_data, "flat_seabed.sdf", table).replace("<tracking>", f"<tracking>{mode}")
    text = text.replace("<when>best</when>\n                <noise", "<when>never</when>\n                <noise")
    text = text.replace("<pose>0 0 -100 0 0 0</pose>", "<pose>0 0 -180 0 0 0</pose>")
    world = load(text, path=str(example_data / "gz-sim"))
    assert get_spec(world).layer == WaterMassLayer(20.0, 60.0, 40.0, 10, 1.0)
    run = ns.simulate(world, 2.0, seed=4)["auv::base_link::teledyne_pathfinder_dvl"]
    past = from_rpy(0.0, 0.0, 1.57 + math.pi - 1.570796)
    w, x, y, z = past
    expected = rotate((w, -x, -y, -z), (1.0, -0.5, 0.0))
    assert run["velocity"][-1] == pytest.approx(expected, abs=0.1)
    assert run["velocity_mode"][-1] == 2.0


@pytest.mark.requirement("SDF-1", "GAP-1")
def test_optional_elements_have_gazebo_defaults(load: Load, wrap_in_link: Text) -> None:
    """Defaults are Gazebo's, in radians. A missing mode is off. The topic is Gazebo's."""
    beams = "".join(f"<beam><rotation>{turn}</rotation><tilt>0.5</tilt></beam>" for turn in (0, 2, 4))
    names = "<water_velocity><z>w</z></water_velocity>"
    text = f"""<sensor name="d" type="custom" gz:type="dvl"><gz:dvl><arrangement>{beams}</arrangement>
<tracking><water_mass_mode>{names}</water_mass_mode></tracking></gz:dvl></sensor>"""
    world = load(wrap_in_link(text))
    spec = get_spec(world)
    assert (spec.minimum_range, spec.maximum_range, spec.transducer) == (0.1, 100.0, Transducer.PISTON)
    assert (spec.bottom_mode, spec.water_mode) == (TrackMode.NEVER, TrackMode.ALWAYS)
    assert spec.layer == WaterMassLayer(20.0, 80.0, 60.0, 5, 1.0)
    assert spec.message_options.beam_ids == (0, 1, 2)
    assert world.sensors[0].topic == "/world/ocean/model/auv/link/base/sensor/d/dvl/velocity"
    assert spec.beams.beams[0].shape == Cone(math.radians(90.0), 10)
    axis = (-math.cos(2.0) * math.sin(0.5), math.sin(2.0) * math.sin(0.5), -math.cos(0.5))
    assert spec.beams.axes[1] == pytest.approx(axis, abs=1e-15)
    reasons = [note.reason for note in world.notes]
    assert len(reasons) == 3
    assert "is finer than supported: 10 rings of rays in a beam, 0.0785 rad apart" in reasons
    assert "has no <aperture>: the default is 90 degrees, as Gazebo documents it" in reasons
    assert any("the world has no table with these columns; its other currents" in reason for reason in reasons)


@pytest.mark.requirement("SDF-1", "GAP-9")
def test_navsense_elements_with_the_plugin(load: Load, wrap_in_link: Text) -> None:
    assert (
        get_spec(load(wrap_in_link(make_block()))).propagation,
        get_spec(load(wrap_in_link(make_block()))).own_hull,
    ) == (
        True,
        False,
    )
    more = "<navsense:propagation>false</navsense:propagation><navsense:own_hull>true</navsense:own_hull>"
    world = load(wrap_in_link(make_block(more=more)))
    assert (get_spec(world).propagation, get_spec(world).own_hull) == (False, True)
    assert not world.notes


@pytest.mark.requirement("GAP-1")
def test_layer_beyond_the_beams_ends_at_their_range(load: Load, wrap_in_world: Text, tmp_path: Path) -> None:
    """Gazebo accepts the file: it compares the far boundary with the maximum range, although the beams are slanted."""
    write_current_table(tmp_path)
    world = load(wrap_in_world(TABLE + make_robot(make_block(WATER.replace("60", "95")))))
    reach = 100.0 * math.cos(math.radians(30.0))
    layer = get_spec(world).layer
    assert layer is not None
    assert layer.far == pytest.approx(reach, rel=1e-12, abs=0.0)
    (note,) = world.notes
    assert note.reason.startswith("95 m is beyond the reach of the beams along the instrument's axis: 86.6025 m")
    assert note.where is not None


@pytest.mark.requirement("GAP-1", "CUR-2")
def test_second_dvl_with_other_current_columns(
    load: Load, list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path
) -> None:
    write_current_table(tmp_path)
    other = make_block(WATER.replace("<x>u</x><y>v</y>", "\n<x>v</x>")).replace('"d"', '"e"')
    (note,) = load(wrap_in_world(TABLE + make_robot(make_block(WATER) + other))).notes
    assert note.reason == "a world has one current, and its columns are u, v, none"
    lines = list_problems(wrap_in_world(TABLE + make_robot(make_block(WATER) + other.replace("<x>v", "<x>wind"))))
    assert any("<water_velocity>" in line and "column: wind; must occur once in the header" in line for line in lines)


@pytest.mark.requirement("SDF-1", "GAP-1")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<gz:dvl/>", "<gz:dvl><arrangement>: missing; must be given"),
        (make_block(beams=PAIR), "dive.sdf:6: <arrangement> beams: 2; must be from 3 to 16"),
        (make_block().replace("<tilt>30", "<tilt>0"), "dive.sdf:6: <arrangement> axes of the beams"),
        (make_block().replace("<tilt>30", "<tilt>90", 1), "dive.sdf:6: <arrangement> tilt of a beam (rad): 1.57"),
        (make_block().replace("<aperture>2", "<aperture>-2", 1), "<beam><aperture>: -2; must be >= 0"),
        (make_block(""), "dive.sdf:7: <tracking>: nothing; requires a <bottom_mode> or a <water_mass_mode> that"),
        (
            make_block(BOTTOM.replace("best", "fallback")),
            "<bottom_mode><when>: fallback; must be one of never, always, best",
        ),
        (
            make_block(more="<maximum_range>0.1</maximum_range>"),
            "<maximum_range> maximum_range (m): 0.1; must be above the",
        ),
        (
            make_block(WATER.replace("60", "101")),
            "dive.sdf:8: <water_mass_mode><far>: 101.0; must be at most the maximum range, 100 m",
        ),
        (
            make_block(WATER.replace("60", "20")),
            "dive.sdf:8: <far> far boundary of the water layer (m): 20.0; must be beyond the near one, 20 m",
        ),
        (
            make_block(WATER.replace("<x>u</x><y>v</y>", "<x/>")),
            "<water_mass_mode><water_velocity>: empty; must name a column of the world's table",
        ),
        (
            make_block("<water_mass_mode/>"),
            "dive.sdf:7: <water_mass_mode><water_velocity>: missing; must be given",
        ),
        (
            make_block(WATER.replace("</water_mass_mode>", "<bins>2.5</bins></water_mass_mode>")),
            "<water_mass_mode><bins>: 2.5; must be a whole number",
        ),
        (make_block(more="<type>laser</type>"), "<gz:dvl><type>: laser; must be one of piston, phased_array"),
        (make_block(more="<resolution>0</resolution>"), "<gz:dvl><resolution>: 0; must be > 0"),
        (make_block(more="<range>9</range>"), "<gz:dvl><range>; is not allowed here"),
        (make_block(more="<reference_frame>1 2</reference_frame>"), "<gz:dvl><reference_frame>: 1 2; must be 6 finite"),
    ],
)
def test_invalid_elements_are_reported(
    list_problems: ListProblems, wrap_in_link: Text, text: str, problem: str
) -> None:
    own = text if text.startswith("<sensor") else f'<sensor name="d" type="custom" gz:type="dvl">{text}</sensor>'
    lines = list_problems(wrap_in_link(own))
    assert any(problem in line for line in lines), lines


@pytest.mark.requirement("CUR-2", "GAP-1")
def test_missing_table_columns_are_reported(list_problems: ListProblems, wrap_in_world: Text, tmp_path: Path) -> None:
    """DAVE's files for Gazebo have numbers there."""
    write_current_table(tmp_path)
    lines = list_problems(wrap_in_world(TABLE + make_robot(make_block(WATER.replace("<x>u<", "<x>0.<")))))
    assert any("column: 0.; must occur once in the header" in line for line in lines)


ROCKS = "".join(
    f"""<model name="rock{i}"><static>true</static><pose>{x} {y} -20 0 0 0</pose><link name="l"><collision name="c">
<geometry><sphere><radius>4</radius></sphere></geometry></collision></link></model>"""
    for i, (x, y) in enumerate(((8, 9), (-8, 9), (-9, -8), (9, -7)))
)
"""A rock under each beam: the width of a beam affects its range, its velocity and the solution."""


def make_beams(apertures: tuple[float, ...]) -> str:
    """Return beams with these apertures (degrees)."""
    each = zip(apertures, TURNS, strict=True)
    return "".join(f"<beam><aperture>{a}</aperture><rotation>{r}</rotation><tilt>30</tilt></beam>" for a, r in each)


def make_navsense_block(apertures: tuple[float, ...], weighting: str) -> str:
    """Return the same beams in navsense's block."""
    each = zip(apertures, TURNS, strict=True)
    beams = "".join(f'<beam width_deg="{a}" rings="2" rotation_deg="{r}" tilt_deg="30"/>' for a, r in each)
    return f"""<sensor name="d" type="dvl"><update_rate>5</update_rate><dvl>
<beams weighting="{weighting}">{beams}</beams></dvl></sensor>"""


@pytest.mark.requirement("DVU-2", "GAP-4")
@pytest.mark.parametrize("beam", range(4))
@pytest.mark.parametrize("kind", ["gazebo", "plane", "nearest", "pattern"])
def test_aperture_of_a_beam_affects_that_beam_only(load: Load, wrap_in_world: Text, kind: str, beam: int) -> None:
    """If one of four different apertures changes, the other three beams are bitwise equal."""

    def read(apertures: tuple[float, ...]) -> ns.Reading:
        resolution, quiet = "<resolution>0.01</resolution>", "<bottom_mode><when>always</when></bottom_mode>"
        sensor = (
            make_block(quiet, resolution, make_beams(apertures))
            if kind == "gazebo"
            else make_navsense_block(apertures, kind)
        )
        world = load(wrap_in_world(make_robot(sensor) + make_bed(20.0) + ROCKS))
        return ns.simulate(world, 1.0, seed=1, motion={"auv": LevelMotion((0.0, 0.0, 0.0), (1.0, 0.5, -0.2))})[NAME]

    apertures = (3.0, 6.0, 9.0, 12.0)
    before = read(apertures)
    assert (before["beam_valid"][-1] == 1.0).all()
    for other in (2.0, 14.0):
        after = read((*apertures[:beam], other, *apertures[beam + 1 :]))
        for name in ("beam_range", "beam_velocity") if kind == "pattern" else ("beam_range",):
            changed = [not np.array_equal(before[name][1:, k], after[name][1:, k]) for k in range(4)]
            assert changed == [k == beam for k in range(4)]
