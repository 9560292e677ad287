"""Columns of motion logs: names, order, units, geodetic positions and aeronautical angles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pymap3d
import pytest
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense.core.errors import MotionError
from navsense.core.geodesy import Origin
from navsense.motion import Replay, load

Array = npt.NDArray[Any]

POSES = "time,x,y,z,qw,qx,qy,qz\n0,0,1,2,1,0,0,0\n1,1,1,2,1,0,0,0.1\n2,3,1,2,1,0,0,0.2\n3,4,1,2,1,0,0,0.2\n"
HORTEN = Origin(math.radians(59.4), math.radians(10.5), elevation=40.0, heading=math.radians(30.0))
GEODETIC = "time,latitude,longitude,altitude,heading,pitch,roll\n"


def write(path: Path, text: str) -> Path:
    """Write a log and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def load_text(folder: Path, text: str, **options: Any) -> Replay:
    """Return the motion of a CSV log with this text."""
    motion = load(write(folder / "log.csv", text), **options)
    assert isinstance(motion, Replay)
    return motion


def reorder(text: str, order: list[int], header: list[str] | None = None, delimiter: str = ",") -> str:
    """Return the columns of a log in another order, with other names."""
    rows = [line.split(",") for line in text.splitlines()]
    if header:
        rows[0] = header
    return "".join(delimiter.join(row[i] for i in order) + "\n" for row in rows)


def assert_same_motion(found: Replay, expected: Replay) -> None:
    """Assert that two replays agree to the last bit."""
    np.testing.assert_array_equal(found.trajectory.knots, expected.trajectory.knots)
    np.testing.assert_array_equal(found.trajectory.coefficients, expected.trajectory.coefficients)


def name_members(path: str, separator: str) -> list[str]:
    """Return the names of the members of a pose in tables of messages."""
    members = [("position", axis) for axis in "xyz"] + [("orientation", axis) for axis in "wxyz"]
    return [f"{path}{member}{separator}{axis}" for member, axis in members]


@pytest.mark.parametrize(
    "header",
    [
        ["time", "x", "y", "z", "qw", "qx", "qy", "qz"],
        ["timestamp", "X", "Y", "Z", "q_w", "q_x", "q_y", "q_z"],
        ["t [s]", "x [m]", "y (m)", "z_m", "qw []", "qx", "qy", "qz"],
        ["stamp_s", "px", "py", "pz", "quat_w", "quat_x", "quat_y", "quat_z"],
        ["# time", *(f"p_RS_R_{axis} [m]" for axis in "xyz"), *(f"q_RS_{axis} []" for axis in "wxyz")],
        ["__time", *name_members("/odom/pose/pose/", "/")],  # PlotJuggler
        ["%time", *name_members("field.pose.pose.", ".")],  # rostopic echo -p
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_names_of_other_programs_are_read(tmp_path: Path, header: list[str], delimiter: str) -> None:
    text = reorder(POSES, list(range(8)), header, delimiter)
    assert_same_motion(load_text(tmp_path, text), load_text(tmp_path, POSES))


def test_columns_can_have_any_order_and_others_are_ignored_with_a_note(tmp_path: Path) -> None:
    expected = load_text(tmp_path, POSES)
    assert expected.notes == ()
    rows = reorder(POSES, [7, 3, 0, 2, 5, 4, 1, 6]).splitlines()
    text = "\n".join([rows[0] + ",mode,vx", *(f'{row},"hold, then go",nan' for row in rows[1:])])
    found = load_text(tmp_path, text)
    assert_same_motion(found, expected)
    assert found.notes == ("log.csv: columns that are not read: mode, vx",)


def test_nanoseconds_of_unix_time_lose_no_digit(tmp_path: Path) -> None:
    """Unix time in ns has 19 digits, and a float has 16: rows 5 ms apart would be off by up to 128 ns."""
    first = 1_403_636_579_763_555_584
    stamps = [first + 5_000_007 * k for k in range(4)]
    lines = POSES.splitlines()[1:]
    for name in ("timestamp [ns]", "timestamp_ns", "#timestamp", "time"):
        rows = [f"{stamp},{line.split(',', 1)[1]}" for stamp, line in zip(stamps, lines, strict=True)]
        header = POSES.splitlines()[0].replace("time", name)
        replay = load_text(tmp_path, "\n".join([header, *rows]))
        assert replay.trajectory.knots.tolist() == [5_000_007 * k / 1e9 for k in range(4)]


@pytest.mark.parametrize(("unit", "end"), [("ms", 3e-3), ("us", 3e-6), ("µs", 3e-6), ("ns", 3e-9)])
def test_times_have_the_unit_of_the_header(tmp_path: Path, unit: str, end: float) -> None:
    text = POSES.replace("time", f"time [{unit}]")
    assert load_text(tmp_path, text).end == end


def test_angles_of_a_log_in_the_world_are_those_of_scipy(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    angles = np.column_stack((rng.uniform(-3.1, 3.1, 5).cumsum() * 0.1, rng.uniform(-0.8, 0.8, 5), np.arange(5) * 0.4))
    expected = Rotation.from_euler("ZYX", angles[:, ::-1])  # intrinsic: yaw, pitch, roll
    for factor, suffix in ((1.0, ""), (1.0, "_rad"), (180.0 / math.pi, "_deg"), (180.0 / math.pi, " [°]")):
        header = f"time,x,y,z,roll{suffix},pitch{suffix},yaw{suffix}\n"
        rows = [f"{k},{k},0,0,{','.join(map(repr, (row * factor).tolist()))}" for k, row in enumerate(angles)]
        replay = load_text(tmp_path, header + "\n".join(rows))
        found = replay.at(np.arange(5.0)).rotation_wb
        difference = Rotation.from_quat(found, scalar_first=True) * expected.inv()
        assert difference.magnitude().max() < 1e-14


def make_geodetic_log(height: str, count: int = 12) -> tuple[str, Array]:
    """Return a geodetic log around Horten, up to 30 km away, and its rows."""
    rng = np.random.default_rng(7)
    heading = np.cumsum(rng.uniform(0.0, 60.0, count)) % 360.0
    rows = np.column_stack(
        (
            np.arange(count) * 10.0,
            59.4 + rng.uniform(-0.2, 0.2, count),
            10.5 + rng.uniform(-0.3, 0.3, count),
            rng.uniform(0.0, 120.0, count),
            heading,
            rng.uniform(-30.0, 30.0, count),
            rng.uniform(-30.0, 30.0, count),
        )
    )
    return "\n".join(
        [GEODETIC.strip().replace("altitude", height), *(",".join(map(repr, row)) for row in rows.tolist())]
    ), rows


def compute_rotations(rows: Array, origin: Origin) -> Rotation:
    """Return the rotations of the body (forward, left, up) to the world by SciPy and pymap3d.

    SciPy rotates forward, starboard, down to north, east, down; pymap3d's `enu2uvw` and `uvw2enu` take a vector at a
    place to the origin.
    """
    local = Rotation.from_euler("ZYX", rows[:, [4, 5, 6]], degrees=True).as_matrix()
    latitude, longitude = rows[:, 1], rows[:, 2]
    place = np.degrees([origin.latitude, origin.longitude])
    axes = []
    for axis, sign in ((0, 1.0), (1, -1.0), (2, -1.0)):
        north, east, down = (sign * local[:, part, axis] for part in range(3))
        u, v, w = pymap3d.enu2uvw(east, north, -down, latitude, longitude)
        # `uvw2enu` takes one vector at one place; the origin's east, north and up are its rows.
        axes.append(np.array([pymap3d.uvw2enu(*uvw, *place) for uvw in zip(u, v, w, strict=True)]))
    enu = np.stack(axes, axis=-1)
    turn = Rotation.from_euler("z", -origin.heading).as_matrix()
    return Rotation.from_matrix(turn @ enu)


@pytest.mark.requirement("TRU-1")
def test_geodetic_log_equals_pymap3d(tmp_path: Path) -> None:
    text, rows = make_geodetic_log("altitude")
    replay = load_text(tmp_path, text, origin=HORTEN)
    block = replay.at(rows[:, 0])
    east, north, up = pymap3d.geodetic2enu(rows[:, 1], rows[:, 2], rows[:, 3], 59.4, 10.5, HORTEN.elevation, deg=True)
    c, s = math.cos(HORTEN.heading), math.sin(HORTEN.heading)
    expected = np.column_stack((c * east + s * north, c * north - s * east, up))
    np.testing.assert_allclose(block.position_w, expected, atol=2e-8, rtol=0.0)
    difference = Rotation.from_quat(block.rotation_wb, scalar_first=True) * compute_rotations(rows, HORTEN).inv()
    assert difference.magnitude().max() < 1e-12
    # 20 km away the local axes differ from those of the origin: the test would notice an attitude without this turn.
    flat = Origin(HORTEN.latitude, HORTEN.longitude)
    assert (compute_rotations(rows, HORTEN) * compute_rotations(rows, flat).inv()).magnitude().min() > 0.5


def test_depth_is_below_the_level_water_surface(tmp_path: Path) -> None:
    """The run's depth sensor measures the depth of the log, and its NavSat the latitude and longitude."""
    text, rows = make_geodetic_log("depth")
    replay = load_text(tmp_path, text, origin=HORTEN, surface=3.0)
    position = replay.at(rows[:, 0]).position_w
    np.testing.assert_allclose(3.0 - position[:, 2], rows[:, 3], atol=1e-8, rtol=0.0)
    np.testing.assert_allclose(np.degrees(HORTEN.to_geodetic(position)[:, :2]), rows[:, 1:3], atol=1e-12, rtol=0.0)


def test_cardinal_headings(tmp_path: Path) -> None:
    """Rules by hand: 90 degrees is east, a positive pitch lifts the bow, a positive roll lowers starboard."""
    origin = Origin(math.radians(10.0), math.radians(20.0))
    rows = "0,10,20,0,90,0,0\n1,10,20,0,0,0,0\n2,10,20,0,0,30,0\n3,10,20,0,0,0,30\n"
    replay = load_text(tmp_path, GEODETIC + rows, origin=origin)
    rotation = Rotation.from_quat(replay.at(np.arange(4.0)).rotation_wb, scalar_first=True)
    forward, left = rotation.apply([1.0, 0.0, 0.0]), rotation.apply([0.0, 1.0, 0.0])
    half = math.sqrt(3.0) / 2.0
    np.testing.assert_allclose(forward, [[1, 0, 0], [0, 1, 0], [0, half, 0.5], [0, 1, 0]], atol=1e-14, rtol=0.0)
    np.testing.assert_allclose(left[3], [-half, 0.0, 0.5], atol=1e-14, rtol=0.0)


@pytest.mark.parametrize(
    "header",
    [
        "timestamp,lat,lon,alt,hdg,pitch,roll",
        "time,lat_deg,lng_deg,altitude_m,yaw,pitch_deg,roll_deg",
        "Time [s],Latitude (deg),Longitude (deg),Altitude (m),Heading (deg),Pitch (deg),Roll (deg)",
        "/fix/header/stamp,/fix/latitude,/fix/longitude,/fix/altitude,yaw,pitch,roll",
    ],
)
def test_aliases_of_geodetic_logs(tmp_path: Path, header: str) -> None:
    text, _ = make_geodetic_log("altitude")
    expected = load_text(tmp_path, text, origin=HORTEN)
    found = load_text(tmp_path, header + "\n" + text.split("\n", 1)[1], origin=HORTEN)
    assert_same_motion(found, expected)


def test_geodetic_log_in_radians(tmp_path: Path) -> None:
    text, rows = make_geodetic_log("depth")
    rows[:, [1, 2, 4, 5, 6]] = np.radians(rows[:, [1, 2, 4, 5, 6]])
    header = "time,latitude_rad,longitude_rad,depth,heading_rad,pitch_rad,roll_rad"
    found = load_text(
        tmp_path, "\n".join([header, *(",".join(map(repr, row)) for row in rows.tolist())]), origin=HORTEN
    )
    assert_same_motion(found, load_text(tmp_path, text, origin=HORTEN))


ANGLES = "time,x,y,z,roll,pitch,yaw\n"
ROW = "0,59.4,10.5,0,0,0,0\n1,59.4,10.5,0,0,0,0\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (GEODETIC + "0,95,10,0,0,0,0\n" + ROW, 2, r"latitude of row 0 \(deg\): 95.0; must be from -90 to 90"),
        (GEODETIC + ROW + "2,1,400,0,0,0,0\n", 4, r"longitude of row 2 \(deg\): 400.0; must be from -360 to 360"),
        (GEODETIC + ROW + "2,1,1,0,6000,0,0\n", 4, r"heading of row 2 \(deg\): 6000.0; .*; wrap the angle"),
        (GEODETIC + ROW + "2,1,1,0,0,-91,0\n", 4, r"pitch of row 2 \(deg\): -91.0; must be from -90 to 90"),
        (GEODETIC + ROW + "2,1,1,nan,0,0,0\n", 4, "altitude of row 2: nan; must be finite"),
        (GEODETIC + ROW + "2,1,1,up,0,0,0\n", 4, "altitude: up; must be a finite number"),
        (GEODETIC.replace(",roll", "") + "0,1,1,0,0,0\n", 1, "header of the log without roll: .* must have time"),
        (GEODETIC.replace("altitude", "z") + ROW, 1, "header of the log without depth"),
        (GEODETIC.replace("altitude", "altitude [ft]"), 1, r"unit of altitude \[ft\]: ft; must be one of m, metre"),
        (GEODETIC.strip() + ",lat,lat\n" + ROW, 2, "number of columns: 7; must be 9, as in the header"),
        (GEODETIC.replace("latitude", "lat,Lat"), 1, "columns of the log: lat, Lat; must have one column of latitude"),
        (
            "time,x,y,z,qw,qx,qy,qz,latitude,longitude,altitude,heading,pitch,roll\n",
            1,
            "must have one position, x,y,z or latitude,longitude; rename the columns",
        ),
        (ANGLES + "0,0,0,0,0,0,0\n1,0,0,0,0,0,90\n", 3, r"yaw of row 1 \(rad\): 90.0; .* write yaw_deg"),
        (ANGLES.replace("yaw", "heading"), 1, "header of the log without yaw"),
        (
            POSES.replace("\n0,", "\n1600000000000,"),
            2,
            r"time: 1600000000000; must be in seconds, .* write time_ms, time_us or",
        ),
        (POSES.replace("time", "time [h]"), 1, r"unit of time \[h\]: h; must be one of s, sec"),
    ],
)
def test_invalid_column_error_has_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(MotionError, match=message) as caught:
        load_text(tmp_path, text, origin=HORTEN)
    assert caught.value.where is not None
    assert (Path(caught.value.where.path).name, caught.value.where.line) == ("log.csv", line)


def test_geodetic_log_needs_the_place_of_the_world(tmp_path: Path) -> None:
    with pytest.raises(MotionError, match=r"log.csv:1: log with latitude and longitude; .*add <spherical_coordinates>"):
        load_text(tmp_path, GEODETIC + ROW)


WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="sea">
  {place}<navsense:water surface="2"/><gravity>0 0 -9.8</gravity><magnetic_field>0 0 0</magnetic_field>
  <model name="auv"><link name="base">
    <sensor name="fix" type="navsat"><update_rate>10</update_rate></sensor>
    <sensor name="depth" type="depth"><update_rate>10</update_rate></sensor>
  </link>{motion}</model>
</world></sdf>"""
PLACE = """<spherical_coordinates><latitude_deg>59.4</latitude_deg><longitude_deg>10.5</longitude_deg>
  <elevation>40</elevation><heading_deg>30</heading_deg></spherical_coordinates>"""


def test_sensors_of_a_world_read_the_values_of_a_geodetic_log(tmp_path: Path) -> None:
    rows = [f"{k},{59.4 + 1e-5 * k!r},{10.5 + 2e-5 * k!r},{5.0 + 0.5 * k},45,0,0" for k in range(6)]
    write(tmp_path / "dive.csv", "\n".join([GEODETIC.strip().replace("altitude", "depth"), *rows]))
    world = write(tmp_path / "a.sdf", WORLD.format(place=PLACE, motion='<navsense:motion file="dive.csv"/>'))
    run = ns.simulate(ns.load(world), seed=1)
    fix, depth = run["fix"], run["depth"]
    np.testing.assert_allclose(depth.ideal["depth"], 5.0 + 0.5 * depth.time, atol=1e-3, rtol=0.0)
    for array, start, rate in (("latitude", 59.4, 1e-5), ("longitude", 10.5, 2e-5)):
        degrees = np.degrees(np.asarray(fix.ideal[array]))
        np.testing.assert_allclose(degrees, start + rate * fix.time, atol=1e-10, rtol=0.0)
    other = ns.load(write(tmp_path / "b.sdf", WORLD.format(place=PLACE, motion="")))
    given = ns.simulate(other, seed=1, motion=str(tmp_path / "dive.csv"))
    np.testing.assert_array_equal(given["fix"]["latitude"], fix["latitude"])
    text = WORLD.format(place="", motion='<navsense:motion file="dive.csv"/>').replace("navsat", "imu")
    world = write(tmp_path / "c.sdf", text)
    with pytest.raises(ns.NavsenseError, match=r"dive.csv:1: log with latitude and longitude"):
        ns.load(world)


@pytest.mark.parametrize("height", ["depth", "altitude"])
def test_geodetic_log_far_from_the_origin_has_a_note_or_is_an_error(tmp_path: Path, height: str) -> None:
    """One degree of a meridian is 111.2 km on the sphere; the antipode would be the origin of the world."""
    header = f"time,latitude,longitude,{height},heading,pitch,roll\n"
    near = load_text(tmp_path, header + "0,59.4,10.5,0,0,0,0\n1,60.2,10.5,0,0,0,0\n", origin=HORTEN)
    assert near.notes == ()
    far = load_text(tmp_path, header + "0,59.4,10.5,0,0,0,0\n1,60.4,10.5,0,0,0,0\n", origin=HORTEN)
    assert "up to 111 km from the origin of the world; if not so, set <spherical_coordinates>" in far.notes[0]
    for place, distance in (("-59.4,-169.5", 20015), ("0,100.5", 10008), ("10.5,59.4", 6)):
        text = f"{header}0,59.4,10.5,0,0,0,0\n1,{place},0,0,0,0\n"
        with pytest.raises(
            MotionError, match=rf"place of row 1: {distance}\d* km from the origin of the world"
        ) as error:
            load_text(tmp_path, text, origin=HORTEN)
        assert error.value.where is not None
        assert error.value.where.line == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "t,lat,lon,alt,qw,qx,qy,qz\n",
            "latitude and longitude need heading, pitch and roll: a quaternion is not read",
        ),
        ("t,lat,lon,altitude_msl,roll,pitch,heading\n", "without depth or altitude: "),
        (
            "t,lat,lon,altitude_msl,roll,pitch,heading\n",
            "; an altitude is above the ellipsoid, not above mean sea level",
        ),
        ("t,x_mm,y,z,roll,pitch,yaw\n", "x_mm has the unit mm; convert it to one of m, metre, "),
        (POSES.replace("\n1,", "\n2024-01-01T00:00:00Z,"), "must be a finite number; write times in seconds, or with"),
        (POSES.replace("\n1,", "\n12:00:00,"), "must be a finite number; write times in seconds, or with"),
        (
            POSES.replace(",", ";").replace("0.1", "0,1"),
            "qz: 0,1; must be a finite number; write decimals with a point",
        ),
    ],
)
def test_errors_of_a_header_and_a_cell_name_the_remedy(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MotionError) as error:
        load_text(tmp_path, text, origin=HORTEN)
    assert message in str(error.value)


@pytest.mark.parametrize(("heading", "is_noted"), [("heading", True), ("heading_rad", False), ("heading_deg", False)])
def test_headings_that_seem_to_be_radians_are_a_note(tmp_path: Path, heading: str, *, is_noted: bool) -> None:
    """A circle of 50 m, with the heading from 0 to 2 pi as PX4 writes it."""
    angle = np.linspace(0.0, 2.0 * np.pi, 41)
    latitude = 59.4 + 50.0 * np.sin(angle) / 111_300.0
    longitude = 10.5 + 50.0 * (1.0 - np.cos(angle)) / 56_700.0
    table = np.column_stack((np.arange(41.0), latitude, longitude, 0.0 * angle, angle, 0.0 * angle, 0.0 * angle))
    rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    text = f"{GEODETIC.strip().replace('heading', heading)}\n{rows}\n"
    notes = [note for note in load_text(tmp_path, text, origin=HORTEN).notes if "radians" in note]
    expected = (
        "log.csv: heading is from 0 to 6.28 deg, but the course turns by 351 deg; if it is in radians, "
        "write heading_rad in the header"
    )
    assert notes == [expected] * is_noted


def test_a_velocity_that_is_too_large_has_its_line(tmp_path: Path) -> None:
    text = "time,vx,vy,vz,wx,wy,wz\n0,0,0,0,0,0,0\n1,0,0,1e151,0,0,0\n"
    with pytest.raises(MotionError) as error:
        load(write(tmp_path / "log.csv", text))
    message = "log.csv:3: vz of row 1: 1e+151; must be at most 1e+150 in magnitude; correct the row"
    assert str(error.value).endswith(message)
