"""The survey example: its recording equals its world file, its height image and independent oracles.

The tests read the inputs with other programs: the world with ElementTree, the image with zlib, the recording with mcap
and rosbags. Tide, pressure and speed of sound are those of pyTMD and TEOS-10 (`tests/oracles`).
"""

from __future__ import annotations

import csv
import math
import re
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.core.typing import AnyArray, FloatArray

pytestmark = pytest.mark.compiled

ROOT = Path(__file__).resolve().parent.parent
SURVEY = ROOT / "examples" / "auv_survey.sdf"
PICTURE = ROOT / "examples" / "seabed.png"
ORACLES = ROOT / "tests" / "oracles"
OWN = "{https://navsense.org/sdf}"
DURATION, SPEED, EPOCH = 1560.0, 1.5, 1809430560
NODES, SPACING, BED = 257, 2.0, -57.0

SPEEDS = {"M2": 28.9841042, "S2": 30.0}
"""Speeds in degrees per hour from NOAA's list of constituents."""

LEAST_LIKELY = 4.9
"""Standard deviations that a normal error exceeds with probability 1e-6."""

TOPIC = "/world/north_sea/model/auv/link/{}/sensor/{}"
ALTIMETER = TOPIC.format("altimeter_link", "altimeter/range")
DEPTH = TOPIC.format("base_link", "depth/depth")
COMPASS = TOPIC.format("compass_link", "compass/magnetometer")
IMU = TOPIC.format("imu_link", "imu/imu")
CURRENT = "/hydrodynamics/current_velocity"


def read_oracle(file_name: str, **only: str) -> dict[str, AnyArray]:
    """Return the columns of numbers of an oracle table, from the rows with these texts."""
    with (ORACLES / file_name).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if all(row[key] == text for key, text in only.items())]
    numeric = [key for key in rows[0] if re.fullmatch(r"[-+0-9.e]+", rows[0][key])]
    return {key: np.array([float(row[key]) for row in rows]) for key in numeric}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("survey") / "survey.mcap"
    command = [sys.executable, "-W", "error", "-m", "navsense", "run", SURVEY, "-o", out, "--truth-rate", "10"]
    ended = subprocess.run([*map(str, command), "--epoch", str(EPOCH)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "warning" not in ended.stderr
    assert "1560 s simulated" in ended.stdout
    return out


@pytest.fixture(scope="module")
def run() -> ns.Run:
    return ns.simulate(ns.load(SURVEY), truth_rate=10.0, epoch=EPOCH)


@pytest.fixture(scope="module")
def world() -> ET.Element:
    found = ET.parse(SURVEY).getroot().find("world")  # noqa: S314
    assert found is not None
    return found


@dataclass(frozen=True)
class BedImage:
    """Heights (m) of the image, southernmost row first. Each cell is two triangles with a rising diagonal."""

    heights: FloatArray

    @classmethod
    def read(cls, world: ET.Element) -> BedImage:
        data = PICTURE.read_bytes()
        size = int.from_bytes(data[33:37], "big")
        assert data[37:41] == b"IDAT"
        lines = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8).reshape(NODES, 1 + 2 * NODES)
        assert not lines[:, 0].any()
        grey = lines[::-1, 1:].copy().view(">u2").astype(float)
        shape = world.find("model/link/collision/geometry/heightmap")
        assert shape is not None
        (_, _, tall), (_, _, low) = (map(float, (shape.findtext(tag) or "").split()) for tag in ("size", "pos"))
        return cls(low + tall * grey / grey.max())

    def at(self, x: FloatArray, y: FloatArray) -> FloatArray:
        u, v = x / SPACING + (NODES - 1) / 2, y / SPACING + (NODES - 1) / 2
        i, j = np.floor(u).astype(int), np.floor(v).astype(int)
        a, b = u - i, v - j
        h = self.heights
        sw, se, nw, ne = h[j, i], h[j, i + 1], h[j + 1, i], h[j + 1, i + 1]
        below: FloatArray = np.where(a >= b, sw + a * (se - sw) + b * (ne - se), sw + b * (nw - sw) + a * (ne - nw))
        return below


@pytest.fixture(scope="module")
def bed(world: ET.Element) -> BedImage:
    return BedImage.read(world)


def rotate_by_quaternions(q: FloatArray, v: FloatArray) -> FloatArray:
    """Return vectors rotated by quaternions w x y z."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    out: FloatArray = np.stack([sum(row[k] * v[..., k] for k in range(3)) for row in rows], axis=-1)
    return out


def select_rows(truth: Any, time: FloatArray) -> slice:
    """Return the rows of truth (10 Hz) at the times of a sensor."""
    step = round(10.0 * float(time[1] - time[0]))
    assert truth.time[::step] == pytest.approx(time, abs=1e-9)
    return slice(None, None, step)


# the bed and the track


def test_bottom_and_path_equal_the_output_of_the_script(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "seabed.py")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out" / "seabed.png").read_bytes() == PICTURE.read_bytes()
    assert PICTURE.stat().st_size < 150_000
    text = SURVEY.read_text(encoding="utf-8")
    way = [line for line in ended.stdout.splitlines() if "waypoint" in line]
    assert way == [line for line in text.splitlines() if "<navsense:waypoint" in line]
    assert len(way) == 157
    low, high = (float(part) for part in re.findall(r"from (\S+) to (\S+) m", ended.stdout)[0])
    assert f"<size>512 512 {high - low:.3f}</size>" in text
    assert f"<pos>0 0 {low:.3f}</pos>" in text


def test_bottom_is_rough_and_30_to_60_metres_deep(bed: BedImage) -> None:
    assert -60.0 < bed.heights.min() < bed.heights.max() < -30.0
    slopes = np.hypot(*np.gradient(bed.heights, SPACING))
    assert 0.03 < np.median(slopes) < 0.3
    assert slopes.max() < 1.0


def test_vehicle_stays_clear_of_bottom_and_surface(run: ns.Run, bed: BedImage) -> None:
    """Nose, tail and a ring around the hull are checked ten times a second against the height image."""
    truth = run.truth["auv::base_link"]
    clear = []
    for place in ((1.1, 0.0, -0.13), (-1.1, 0.0, -0.13), (0.0, 0.13, 0.0), (0.0, -0.13, 0.0), (0.0, 0.0, -0.13)):
        point = truth.position + rotate_by_quaternions(truth.orientation, np.broadcast_to(place, truth.position.shape))
        clear.append(point[:, 2] - bed.at(point[:, 0], point[:, 1]))
        assert point[:, 2].max() < -20.0
    assert np.min(clear) > 10.0
    assert np.max(clear) < 17.0


def test_vehicle_follows_the_lines_at_constant_speed_heading_forward(run: ns.Run) -> None:
    truth = run.truth["auv::base_link"]
    speed = np.linalg.norm(truth.velocity, axis=1)
    assert truth.time[-1] == pytest.approx(DURATION - 0.1, abs=1e-9)
    assert speed[0] < 1e-12
    assert speed[(truth.time > 30.0) & (truth.time < DURATION - 30.0)] == pytest.approx(SPEED, abs=0.05)
    nose = rotate_by_quaternions(truth.orientation, np.broadcast_to((1.0, 0.0, 0.0), truth.velocity.shape))
    moving = speed > 0.5
    along = (nose * truth.velocity).sum(axis=1)[moving] / speed[moving]
    assert along.min() > math.cos(math.radians(1.5))
    assert np.degrees(np.abs(truth.angular_velocity)).max() < 6.0
    north = truth.velocity[moving, 1] / speed[moving]
    assert np.count_nonzero(np.diff(np.sign(north[np.abs(north) > 0.9]))) == 5


# sensors


@pytest.mark.requirement("ALT-8")
def test_ranges_equal_the_distance_to_the_bottom(run: ns.Run, bed: BedImage) -> None:
    """The nearest ray is between the axis and the nearest ray of a cone with many more rays."""
    reading, truth = run["auv::altimeter_link::altimeter"], run.truth["auv::altimeter_link"]
    rows = slice(0, None, 40)
    at = select_rows(truth, reading.time)
    place, attitude = truth.position[at][rows], truth.orientation[at][rows]
    cone = [(0.0, 0.0)] + [(math.radians(0.5 * k), 2.0 * math.pi * n / 48) for k in range(1, 11) for n in range(48)]
    found = []
    for off, round_ in cone:
        ray = (math.cos(off), math.sin(off) * math.cos(round_), math.sin(off) * math.sin(round_))
        way = rotate_by_quaternions(attitude, np.broadcast_to(ray, place.shape))
        low, high = np.zeros(len(way)), np.full(len(way), 30.0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            point = place + middle[:, None] * way
            above = point[:, 2] > bed.at(point[:, 0], point[:, 1])
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        found.append(low)
    nearest = reading.ideal["range"][rows]
    assert (nearest < found[0] + 1e-9).all()
    assert (nearest > np.min(found, axis=0) - 1e-9).all()
    assert np.median(found[0] - np.min(found, axis=0)) < 0.4
    assert reading.ideal["range"].max() - reading.ideal["range"].min() > 2.0


@pytest.mark.requirement("ALT-8")
def test_ranges_have_the_declared_noise(run: ns.Run) -> None:
    """The sensor assumes 1500 m/s, with 3 cm noise and a step of 1 cm. Chen-Millero is within 3e-5 of TEOS-10.

    The variance of n samples has a relative deviation of sqrt(2 / n).
    """
    reading = run["auv::altimeter_link::altimeter"]
    assert reading.valid.all()
    true, height = reading.ideal["range"], -run.truth["auv::altimeter_link"].position[::2, 2]
    water = read_oracle("unesco/teos10_survey.csv")
    depths = height + np.linspace(0.0, 1.0, 200)[:, None] * true
    slowness = np.interp(depths, water["depth_m"], 1.0 / water["sound_speed_m_s"]).mean(axis=0)
    assert np.median(1500.0 * slowness) > 1.01
    errors = reading["range"] - 1500.0 * slowness * true
    variance = 0.03**2 + 0.01**2 / 12.0
    assert errors.var() == pytest.approx(variance, rel=LEAST_LIKELY * math.sqrt(2.0 / errors.size), abs=0.0)
    assert errors.mean() == pytest.approx(0.0, abs=LEAST_LIKELY * math.sqrt(variance / errors.size) + 3e-5 * 15.0)
    assert reading["range"] == pytest.approx(np.round(reading["range"], 2), abs=1e-12)


@pytest.mark.requirement("PRS-1", "ALT-8")
def test_pressure_is_the_weight_of_the_water_above(run: ns.Run) -> None:
    """EOS-80 and TEOS-10 differ by some 0.02 kg/m^3, 2e-5 of the pressure: 8 Pa at 40 m."""
    reading, truth = run["auv::base_link::depth"], run.truth["auv::base_link"]
    at = select_rows(truth, reading.time)
    hole = np.broadcast_to((-0.4, 0.0, 0.13), truth.position[at].shape)
    depth = -(truth.position[at] + rotate_by_quaternions(truth.orientation[at], hole))[:, 2]
    water = read_oracle("unesco/teos10_survey.csv")
    expected = 101325.0 + np.interp(depth, water["depth_m"], water["pressure_Pa"])
    assert reading.ideal["pressure"] == pytest.approx(expected, abs=10.0)
    assert reading.ideal["depth"] == pytest.approx(depth, abs=1e-9)
    errors = reading["pressure"] - reading.ideal["pressure"]
    variance = 60.0**2 + 10.0**2 / 12.0
    assert errors.var() == pytest.approx(variance, rel=LEAST_LIKELY * math.sqrt(2.0 / errors.size), abs=0.0)
    assert abs(errors.mean()) < LEAST_LIKELY * 500.0
    # UNESCO's formula is for water of 0 degrees and salinity 35, which is up to 1.2e-3 denser than this water.
    off = reading["depth"] - depth - errors / 10080.0
    assert off == pytest.approx(0.0, abs=1.3e-3 * 40.0)
    assert np.ptp(depth) > 10.0


@pytest.mark.requirement("MAG-1")
def test_magnetometer_reads_the_field_at_its_position(run: ns.Run) -> None:
    """The reference is pygeomag at the world origin. Over 200 m the field changes by some nanotesla."""
    row = {key: column[-1] for key, column in read_oracle("noaa/pygeomag.csv", year="2027.34").items()}
    assert (row["latitude_deg"], row["longitude_deg"]) == (56.719, 3.516)
    reading, truth = run["auv::compass_link::compass"], run.truth["auv::compass_link"]
    measured = rotate_by_quaternions(truth.orientation, reading.ideal["field"][::2])
    expected = np.array([row["y_nT"], row["x_nT"], -row["z_nT"]])
    assert 1e9 * measured == pytest.approx(np.broadcast_to(expected, measured.shape), abs=10.0)


# water


def compute_tidal_current(world: ET.Element, height: FloatArray, time: FloatArray) -> FloatArray:
    """Return the current that the file describes at these heights and times, with pyTMD's arguments."""
    element = world.find(f"{OWN}current")
    assert element is not None
    start = (element.get("start") or "").removesuffix("Z") + ":00"
    tide = element.find("boundary_layer/tidal_ellipses")
    assert tide is not None
    flow = np.zeros((time.size, 2)) + [float(part) for part in (tide.get("mean") or "").split()[:2]]
    for one in tide.findall("ellipse"):
        major, minor, towards, lag = (float(one.get(k) or "") for k in ("major", "minor", "direction_deg", "phase_deg"))
        argument = read_oracle("tides/arguments.csv", start=start, name=one.get("name") or "")
        angle = np.radians(argument["pytmd_degrees"] - lag + SPEEDS[one.get("name") or ""] * time / 3600.0)
        ahead = np.array([math.sin(math.radians(towards)), math.cos(math.radians(towards))])
        left = np.array([-ahead[1], ahead[0]])
        turning = major * np.cos(angle)[:, None] * ahead + minor * np.sin(angle)[:, None] * left
        flow += argument["pytmd_factor"] * turning
    flow *= (np.clip((height - BED) / -BED, 0.0, 1.0) ** (1.0 / 7.0))[:, None]
    layers = element.findall("stratified/layer")
    depths = [float(layer.get("depth") or "") for layer in layers]
    wind = np.array([[float(part) for part in (layer.text or "").split()] for layer in layers])
    total: FloatArray = flow + np.stack([np.interp(-height, depths, wind[:, k]) for k in range(2)], axis=1)
    return total


@pytest.mark.requirement("CUR-2")
def test_current_is_the_sheared_tide_of_the_date(run: ns.Run, world: ET.Element) -> None:
    current = run.current
    assert current is not None
    assert current.position == (0.0, 0.0, -30.0)
    assert current.time == pytest.approx(np.arange(1560.0), abs=1e-9)
    got = np.asarray(current.velocity).reshape(-1, 3)
    assert got[:, :2] == pytest.approx(compute_tidal_current(world, np.full(1560, -30.0), current.time), abs=1e-8)
    assert (got[:, 2] == 0.0).all()
    field = ns.load(SURVEY).environment.current
    assert field is not None
    draw = np.random.default_rng(4)
    place = np.stack([draw.uniform(-256.0, 256.0, 500) for _ in range(2)] + [draw.uniform(-60.0, 0.0, 500)], axis=1)
    time = draw.uniform(0.0, 43200.0, 500)
    assert field.at(place, time)[:, :2] == pytest.approx(compute_tidal_current(world, place[:, 2], time), abs=1e-8)


@pytest.mark.requirement("CUR-2")
def test_current_rotates_with_tide_and_depth(run: ns.Run) -> None:
    assert run.current is not None
    velocity = np.asarray(run.current.velocity).reshape(-1, 3)
    way = np.degrees(np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0])))
    assert abs(way[-1] - way[0]) > 30.0
    field = ns.load(SURVEY).environment.current
    assert field is not None
    column = np.array([[0.0, 0.0, -2.0], [0.0, 0.0, -20.0], [0.0, 0.0, -40.0], [0.0, 0.0, -56.0]])
    down = field.at(column, np.full(4, 780.0))
    speed = np.hypot(down[:, 0], down[:, 1])
    assert (np.diff(speed) < 0.0).all()
    assert abs(math.degrees(math.atan2(down[0, 1], down[0, 0]) - math.atan2(down[2, 1], down[2, 0]))) > 25.0
    half_a_tide = field.at(column[2:3], np.array([6.21 * 3600.0]))[0]
    assert float(half_a_tide @ field.at(column[2:3], np.zeros(1))[0]) < 0.0


# the recording


TYPES = {
    ALTIMETER: ("sensor_msgs/msg/Range", 7800),
    DEPTH: ("sensor_msgs/msg/FluidPressure", 15600),
    f"{DEPTH}_depth": ("geometry_msgs/msg/PointStamped", 15600),
    COMPASS: ("sensor_msgs/msg/MagneticField", 31200),
    IMU: ("sensor_msgs/msg/Imu", 312000),
    CURRENT: ("geometry_msgs/msg/TwistStamped", 1560),
    "/tf": ("tf2_msgs/msg/TFMessage", 15600),
    "/tf_static": ("tf2_msgs/msg/TFMessage", 1),
    "/clock": ("rosgraph_msgs/msg/Clock", 15600),
    "/truth/auv": ("nav_msgs/msg/Odometry", 15600),
}


@pytest.mark.requirement("REC-1:mcap")
def test_one_command_records_every_topic(recording: Path, run: ns.Run) -> None:
    """The last twenty seconds, read by mcap's ROS 2 decoder, equal the same run in memory."""
    with recording.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        types = {channel.topic: summary.schemas[channel.schema_id].name for channel in summary.channels.values()}
        counts = {summary.channels[key].topic: n for key, n in summary.statistics.channel_message_counts.items()}
        assert {topic: (types[topic], counts[topic]) for topic in TYPES} == TYPES
        begin = (EPOCH + 1540) * 10**9
        found: dict[str, list[Any]] = {}
        for _, channel, _, value in reader.iter_decoded_messages(starting_at=begin, topics=list(TYPES)):
            found.setdefault(channel.topic, []).append(value)
    altimeter, depth = run["auv::altimeter_link::altimeter"], run["auv::base_link::depth"]
    count = len(found[ALTIMETER])
    assert count >= 99
    assert [value.range for value in found[ALTIMETER]] == pytest.approx(altimeter["range"][-count:], abs=1e-6)
    assert [value.fluid_pressure for value in found[DEPTH]] == depth["pressure"][-200:].tolist()
    assert [value.point.z for value in found[f"{DEPTH}_depth"]] == depth["depth"][-200:].tolist()
    current = np.array([[value.twist.linear.x, value.twist.linear.y] for value in found[CURRENT]])
    assert run.current is not None
    assert np.array_equal(current, np.asarray(run.current.velocity).reshape(-1, 3)[-20:, :2])
    moved = found["/tf"][-1].transforms
    assert "auv::base_link" in {transform.child_frame_id for transform in moved}


@pytest.mark.requirement("REC-1:mcap", "CLK-1")
def test_bag_has_stamps_of_two_clocks_and_is_read_by_rosbags(recording: Path, run: ns.Run) -> None:
    """The computer clock has errors up to milliseconds, the inertial clock microseconds; the current has no clock."""
    off: dict[str, list[float]] = {}
    with AnyReader([recording]) as reader:
        expected = [
            connection for connection in reader.connections if connection.topic in (ALTIMETER, DEPTH, IMU, CURRENT)
        ]
        for one, time, raw in reader.messages(connections=expected, start=(EPOCH + 1550) * 10**9):
            value: Any = reader.deserialize(raw, one.msgtype)
            stamp = value.header.stamp.sec * 10**9 + value.header.stamp.nanosec
            off.setdefault(one.topic, []).append(1e-9 * (stamp - time))
    assert off[CURRENT] == [0.0] * 10
    assert np.abs(off[IMU]).max() < LEAST_LIKELY * (1e-6 + 2e-7) + 1560.0 * LEAST_LIKELY * 1.7e-9
    computer = run["auv::base_link::depth"].clock_error[-100:]
    assert off[DEPTH] == pytest.approx(computer, abs=1e-9)
    # On one clock: the altimeter's log time is its arrival, 60 ms after the sample.
    assert np.mean(off[ALTIMETER]) + 0.06 == pytest.approx(np.mean(computer), abs=1e-4)
    assert 1e-5 < abs(float(np.mean(computer))) < LEAST_LIKELY * 5e-3


@pytest.mark.requirement("GAP-8")
def test_adcp_measures_the_current_below_the_vehicle(run: ns.Run) -> None:
    """The velocity is over ground, above the side-lobe limit. Both velocities have the noise of four pings."""
    profile, flow = run["auv::adcp_link::adcp"], ns.load(SURVEY).environment.current
    assert flow is not None
    rows = np.nonzero(profile.emitted)[0]
    assert rows.size == 1559
    about, distance = profile["time_of_validity"][rows], profile["cell_distance"][rows]
    way = run.truth["auv::base_link"]
    place = np.array([np.interp(about, way.time, way.position[:, i]) for i in range(3)]).T
    there = np.repeat(place, distance.shape[1], axis=0)
    there[:, 2] -= 0.13 + distance.reshape(-1)
    water = flow.at(there, np.repeat(about, distance.shape[1])).reshape(*distance.shape, 3)
    true, measured = profile.ideal["velocity"][rows], profile["velocity"][rows]
    known = np.isfinite(true[:, :, 0])
    deep = known.sum(axis=1)
    assert 7 <= np.median(deep) <= 10
    assert np.abs(true - water)[known].max() < 0.02
    single, over = 0.015 / math.sqrt(4.0), 0.005 / math.sqrt(4.0)
    across = math.sqrt(2.0) * np.hypot(single, over)
    # The tolerance adds a tenth: constant errors and the wrong sound speed change direction with the legs.
    noise = np.nanstd((measured - true)[:, 1:7, :2], axis=0)
    assert noise == pytest.approx(across, rel=LEAST_LIKELY / math.sqrt(2.0 * rows.size) + 0.1, abs=0.0)
