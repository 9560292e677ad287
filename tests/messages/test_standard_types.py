"""The standard ROS types equal the definitions of rosbags and Debian."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import navsense as ns
from navsense.cli import cli
from navsense.core.errors import RecordingError
from navsense.messages.ros1 import format_definition, load_noetic_definitions
from navsense.messages.schemas import DEFINITIONS, DISTRIBUTIONS, ROS1_DEFINITIONS, format_schema
from navsense.recordings.convert import convert
from navsense.world import World

PACKAGES = (
    "builtin_interfaces",
    "std_msgs",
    "geometry_msgs",
    "tf2_msgs",
    "rosgraph_msgs",
    "nav_msgs",
    "sensor_msgs",
    "visualization_msgs",
)
STANDARD = [kind for kind in DEFINITIONS if kind.partition("/")[0] in PACKAGES]
CURRENT = (Stores.ROS2_JAZZY, Stores.ROS2_KILTED, Stores.LATEST)
RANGE, SONAR = "sensor_msgs/msg/Range", "rover::base::sonar"
IRON_RANGE = "RIHS01_b42b62562e93cbfe9d42b82fe5994dfa3d63d7d5c90a317981703f7388adff3a"

WORLD = """<sdf version="1.9"><world name="yard">
<model name="rover"><link name="base"><sensor name="sonar" type="ray"><update_rate>10</update_rate><ray>
<scan><horizontal>
<samples>1</samples><min_angle>0</min_angle><max_angle>0</max_angle></horizontal></scan>
<range><min>0.1</min><max>30</max></range><noise><type>gaussian</type><stddev>0.02</stddev></noise></ray></sensor>
<sensor name="imu" type="imu"><update_rate>10</update_rate></sensor></link></model>
<model name="wall"><static>true</static><link name="l"><collision name="c"><pose>5 0 0 0 0 0</pose>
<geometry><box><size>1 9 9</size></box></geometry></collision></link></model></world></sdf>"""


@pytest.fixture
def harbour_world(tmp_path: Path) -> World:
    file = tmp_path / "yard.sdf"
    file.write_text(WORLD, encoding="utf-8")
    return ns.load(file)


@pytest.mark.parametrize("kind", STANDARD)
@pytest.mark.parametrize(("store", "ros"), [*((one, "jazzy") for one in CURRENT), (Stores.ROS2_HUMBLE, "humble")])
def test_standard_types_equal_the_distribution(store: Stores, ros: str, kind: str) -> None:
    """Fields, constants and the hash of the definition."""
    theirs, own = get_typestore(store), get_typestore(Stores.EMPTY)
    own.register(get_types_from_msg(format_schema(kind, DISTRIBUTIONS[ros]), kind))
    assert own.fielddefs[kind] == theirs.fielddefs[kind]
    assert own.hash_rihs01(kind) == theirs.hash_rihs01(kind)


@pytest.mark.parametrize("kind", [kind for kind in STANDARD if kind in ROS1_DEFINITIONS])
def test_standard_types_in_ros1_have_the_md5_sums_of_noetic(kind: str) -> None:
    theirs, own = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.EMPTY)
    own.register(get_types_from_msg(format_definition(kind), kind))
    if kind == "tf2_msgs/msg/TFMessage":  # rosbags lacks it in ROS 1; its sum is that of tf2_msgs
        assert own.generate_msgdef(kind, ros_version=1)[1] == "94810edda583a504dfda3829e70d7eec"
        return
    assert own.generate_msgdef(kind, ros_version=1)[1] == theirs.generate_msgdef(kind, ros_version=1)[1]


def test_published_definitions_cover_all_standard_types() -> None:
    assert set(load_noetic_definitions()) == {kind for kind in STANDARD if kind in ROS1_DEFINITIONS}


DEBIAN = """import importlib, json, sys
found = {}
for kind in json.load(sys.stdin):
    package, _, name = kind.split("/")
    try:
        found[kind] = getattr(importlib.import_module(package + ".msg"), name)._full_text
    except (ImportError, AttributeError):
        pass
print(json.dumps(found))"""


def test_definitions_in_bags_equal_the_installed_packages() -> None:
    """`rosbag check` compares them with comments. Debian's python3-*-msgs are compared if installed."""
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("no system Python")
    asked = json.dumps(list(load_noetic_definitions()))
    done = subprocess.run(  # navsense
        [python, "-I", "-c", DEBIAN], input=asked, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    if not found:
        pytest.skip("no packages of ROS messages are installed")
    assert [kind for kind, their in found.items() if their.strip() != format_definition(kind).strip()] == []


def read_messages(path: Path, topic: str) -> list[object]:
    """Return the messages on a topic, read by rosbags with the definitions of the bag."""
    with AnyReader([path]) as reader:
        lines = [line for line in reader.connections if line.topic == topic]
        return [reader.deserialize(raw, line.msgtype) for line, _, raw in reader.messages(lines)]


def read_digest(path: Path) -> str:
    """Return the hash or MD5 sum of the range definition in a bag."""
    with AnyReader([path]) as reader:
        return next(line.digest for line in reader.connections if line.msgtype == RANGE)


def test_range_message_has_its_variance(harbour_world: World, tmp_path: Path) -> None:
    """A reading has the variance of the white noise. Ideal values and biases have 0, which means unknown."""
    ns.record(harbour_world, tmp_path / "new.db3", 1.0)
    topic = next(sensor.topic for sensor in harbour_world.sensors if sensor.name == SONAR)
    for suffix, variance in (("", 4e-4), ("/ideal", 0.0), ("/bias", 0.0)):
        messages = read_messages(tmp_path / "new", topic + suffix)
        assert messages
        assert {round(vars(one)["variance"], 9) for one in messages} == {variance}
    assert read_digest(tmp_path / "new") == IRON_RANGE


@pytest.mark.parametrize("suffix", [".mcap", ".db3", ".bag"])
def test_both_definitions_are_read_and_the_metadata_names_the_distribution(
    harbour_world: World, tmp_path: Path, suffix: str
) -> None:
    truth = ns.simulate(harbour_world, 1.0, seed=2)[SONAR]
    for ros in ("jazzy", "humble"):
        file, arrays = tmp_path / f"{ros}{suffix}", tmp_path / f"{ros}.npz"
        ns.record(harbour_world, file, 1.0, seed=2, epoch=1, ros=ros)
        convert(file, arrays)
        assert ns.open(arrays).readings[SONAR]["range"] == pytest.approx(truth["range"], rel=1e-6, abs=0.0)
    old = get_typestore(Stores.ROS2_HUMBLE).hash_rihs01(RANGE)
    if suffix == ".db3":
        assert [read_digest(tmp_path / ros) for ros in ("jazzy", "humble")] == [IRON_RANGE, old]
    if suffix == ".bag":
        assert read_digest(tmp_path / "jazzy.bag") == get_typestore(Stores.ROS1_NOETIC).generate_msgdef(RANGE)[1]
    if suffix == ".mcap":
        for ros, has in (("jazzy", True), ("humble", False)):
            data = (tmp_path / f"{ros}.mcap").read_bytes()
            assert (b"float32 variance" in data, f"ros\x05\x00\x00\x00{ros}".encode() in data) == (has, ros == "jazzy")
            assert ros.encode() in data


def test_current_messages_convert_to_a_ros1_bag(harbour_world: World, tmp_path: Path) -> None:
    """The variance is lost, as ROS 1 has none. All other fields equal those of a directly written bag."""
    ns.record(harbour_world, [tmp_path / "a.mcap", tmp_path / "own.bag"], 1.0, seed=2, epoch=1)
    convert(tmp_path / "a.mcap", tmp_path / "over.bag")
    topic = next(sensor.topic for sensor in harbour_world.sensors if sensor.name == SONAR)
    own, over = (read_messages(tmp_path / name, topic) for name in ("own.bag", "over.bag"))
    assert [vars(one)["range"] for one in over] == [vars(one)["range"] for one in own]
    assert read_digest(tmp_path / "over.bag") == read_digest(tmp_path / "own.bag")


def test_rosbag_check_finds_no_migration(harbour_world: World, tmp_path: Path) -> None:
    rosbag = shutil.which("rosbag", path="/usr/bin")
    if rosbag is None:
        pytest.skip("rosbag is not installed")
    ns.record(harbour_world, [tmp_path / "a.mcap", tmp_path / "own.bag"], 1.0, epoch=1)
    convert(tmp_path / "a.mcap", tmp_path / "over.bag")
    for name in ("own.bag", "over.bag"):
        done = subprocess.run(  # Debian's program
            [rosbag, "check", name], cwd=tmp_path, env={"PATH": "/usr/bin"}, capture_output=True, text=True, check=False
        )
        moved = [line for line in done.stdout.splitlines() if "From:" in line]
        known = [line for line in moved if "To:   Unknown" not in done.stdout]
        assert known == [], done.stdout + done.stderr


def test_command_line_chooses_the_definitions(harbour_world: World, tmp_path: Path) -> None:
    out = tmp_path / "old.mcap"
    run = ["run", harbour_world.path, "--duration", "1", "--ros", "humble", "-o", str(out)]
    assert CliRunner().invoke(cli, run).exit_code == 0
    assert b"float32 variance" not in out.read_bytes()
    for ros, has in (("jazzy", True), ("humble", False)):
        path = tmp_path / f"{ros}.mcap"
        result = CliRunner().invoke(cli, ["convert", str(out), str(path), "--ros", ros])
        assert result.exit_code == 0
        assert (b"float32 variance" in path.read_bytes()) == has
    with pytest.raises(RecordingError, match="distribution of ROS: foxy; must be one of jazzy, humble"):
        ns.record(harbour_world, tmp_path / "x.mcap", 1.0, ros="foxy")
