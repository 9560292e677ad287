"""Readings and attitudes from files: bags of other programs, navsense recordings, CSV; and their errors."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import navsense as ns
from navsense.calibration import _attitude
from navsense.calibration.load import FUSED_NOTE, Samples, parse_strength, read
from navsense.core.errors import CalibrationError, NavsenseError

pytestmark = pytest.mark.requirement("FAC-6")

INTERPOLATION_ERROR = 0.5 * 0.37 * 0.63 * 0.01**2 * 2.3
"""Interpolation error (rad) of the attitude between samples 10 ms apart: at most 2.3 rad/s^2 u (1 - u) h^2 / 2.

The acceleration of the angles is at most 0.44 rad/s^2; products of their rates add 1.3 0.63 + 1.3 0.5 + 0.63 0.5.
"""


def compute_largest_angle(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest angle (rad) between attitudes (n, 4)."""
    off = Rotation.from_quat(a[:, [1, 2, 3, 0]]).inv() * Rotation.from_quat(b[:, [1, 2, 3, 0]])
    return float(off.magnitude().max())


def compute_true_attitudes(bags: ModuleType, content: Any) -> np.ndarray:
    return bags.to_wxyz(bags.compute_attitudes(bags.make_times(content)) * bags.MOUNTING)


@pytest.mark.parametrize("kind", ["mcap", "db3", "bag"])
@pytest.mark.parametrize("attitude", ["sensor_msgs/msg/Imu", "nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseStamped"])
def test_bags_of_other_programs_are_read(bags: ModuleType, kind: str, attitude: str, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / f"drive{'.bag' if kind == 'bag' else ''}", kind, attitude, count=200)
    path = bags.record(content)
    # A pose message does not name its body frame.
    mounting = tuple(bags.MOUNTING.as_euler("xyz")) if attitude.endswith("PoseStamped") else None
    samples = read(path, attitude="/attitude", mounting=mounting)
    assert np.array_equal(samples.field, bags.make_readings(content))
    assert samples.rotation_ws is not None
    assert compute_largest_angle(samples.rotation_ws, compute_true_attitudes(bags, content)) < INTERPOLATION_ERROR
    assert (samples.unit, samples.notes) == ("T", (FUSED_NOTE,) if attitude.endswith("Imu") else ())
    assert math.isclose(samples.noise, 2e-7)
    assert "/imu/mag" in samples.source
    if kind != "bag":
        (file,) = path.glob(f"*.{kind}")
        alone = read(file, attitude="/attitude", mounting=mounting)
        assert np.array_equal(alone.field, samples.field)
        assert np.array_equal(alone.rotation_ws, samples.rotation_ws)


def test_transforms_give_the_attitude(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", moving=True, count=200)
    bags.record(content)
    for name in ("/tf", "/tf:map"):
        samples = read(content.path, attitude=name)
        assert samples.rotation_ws is not None
        assert compute_largest_angle(samples.rotation_ws, compute_true_attitudes(bags, content)) < INTERPOLATION_ERROR
    with pytest.raises(CalibrationError, match="parent frame of 'mag_link': odom; must be one of base_link, map"):
        read(content.path, attitude="/tf:odom")


def test_vector_messages_need_a_unit(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", magnetic="geometry_msgs/msg/Vector3Stamped", count=50, unit=1e4)
    bags.record(content)
    samples = read(content.path, unit="G")
    assert np.array_equal(samples.field, bags.make_readings(content))
    assert (samples.unit, samples.noise) == ("G", 0.0)
    assert read(content.path, unit="none").unit is None


def test_readings_without_an_attitude_are_skipped_and_counted(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", count=200, gap=(0.5, 0.9))
    bags.record(content)
    samples = read(content.path, attitude="/attitude")
    kept = (bags.make_times(content) < 0.5) | (bags.make_times(content) > 0.9)
    assert samples.notes[1:] == (
        f"{np.count_nonzero(~kept)} of 200 readings have no attitude near them and are left out",
    )
    assert np.array_equal(samples.field, bags.make_readings(content)[kept])
    assert samples.rotation_ws is not None
    assert compute_largest_angle(samples.rotation_ws, compute_true_attitudes(bags, content)[kept]) < INTERPOLATION_ERROR
    assert np.array_equal(samples.row, np.flatnonzero(kept))
    assert samples.time is not None
    assert (
        np.abs(samples.time - bags.START - bags.make_times(content)[kept]).max() < 2.0**-22
    )  # the resolution of a float at 1.7e9 s
    late = bags.BagContent(tmp_path / "late", count=50, stamp_offset=1000.0)
    bags.record(late)
    with pytest.raises(
        CalibrationError, match=r"late: 50 of 50 readings have no attitude .*50 of them have no .*one clock"
    ):
        read(late.path, attitude="/attitude")


def test_attitude_with_a_low_rate_is_named(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "slow", count=300, attitude_step=60)
    bags.record(content)
    turns = bags.compute_attitudes(np.arange(0, 301, 60) / 100.0)
    assert ((turns[:-1].inv() * turns[1:]).magnitude() > _attitude.MAX_ROTATION).all()
    with pytest.raises(CalibrationError, match=r"300 of them lie between two .* more than 28.6 deg apart; turn"):
        read(content.path, attitude="/attitude")
    mostly = bags.BagContent(tmp_path / "mostly", count=600, attitude_step=34)
    with pytest.raises(CalibrationError, match=r"4[0-9]{2} of 600 readings have no attitude .* lie between two"):
        read(bags.record(mostly), attitude="/attitude")
    some = bags.BagContent(tmp_path / "some", count=900, attitude_step=30)
    bags.record(some)
    turns = bags.compute_attitudes(np.arange(0, 901, 30) / 100.0)
    far = (turns[:-1].inv() * turns[1:]).magnitude() > _attitude.MAX_ROTATION
    left = int(np.count_nonzero(far[np.floor(bags.make_times(some) / 0.3).astype(int)]))
    assert 0 < left < 450
    samples = read(some.path, attitude="/attitude")
    assert samples.field.shape[0] == 900 - left
    assert samples.notes[1].startswith(f"{left} of 900 readings lie between two attitudes that are more than 28.6 deg")
    assert samples.notes[1].endswith("are left out; turn slower, or record the attitude more often")


def test_zero_quaternions_are_skipped_and_counted(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", count=200, invalid_attitudes=20)
    bags.record(content)
    samples = read(content.path, attitude="/attitude")
    kept = bags.make_times(content) > 0.2
    assert np.array_equal(samples.field, bags.make_readings(content)[kept])
    assert samples.rotation_ws is not None
    assert compute_largest_angle(samples.rotation_ws, compute_true_attitudes(bags, content)[kept]) < INTERPOLATION_ERROR
    assert samples.notes[1:] == (
        "20 of 201 attitudes of /attitude are zero or NaN and are left out",
        "20 of 200 readings have no attitude near them and are left out",
    )


def test_constant_stamps_are_named(bags: ModuleType, tmp_path: Path) -> None:
    path = bags.record(bags.BagContent(tmp_path / "drive", count=50, constant_stamp=True, moving=True))
    for name in ("/attitude", "/tf"):
        with pytest.raises(CalibrationError, match=r"drive: stamps of the magnetometer: all 50 messages have .*none"):
            read(path, attitude=name)
    assert read(path).field.shape == (50, 3), "their order is enough without an attitude"


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"sensor": "/mag"}, "--sensor: /mag; must be one of /imu/mag"),
        ({}, {"sensor": "/attitude"}, "--sensor: /attitude; is sensor_msgs/msg/Imu; must be one of /imu/mag"),
        ({}, {"attitude": "/odom"}, "--attitude: /odom; must be one of /attitude"),
        ({}, {"attitude": "/imu/mag"}, "--attitude: /imu/mag; is sensor_msgs/msg/MagneticField; must be one of /att"),
        ({}, {"attitude": "truth"}, "no truth of the magnetometer's link in this bag; name a topic"),
        ({}, {"attitude": "/tf"}, "no dynamic transform of the magnetometer"),
        ({"moving": True}, {"attitude": "/odom"}, "--attitude: /odom; must be one of /attitude, /tf$"),
        (
            {"topics": tuple(f"/vehicle/front/magnetometer_{k}/field" for k in range(5))},
            {},
            "several magnetometers: .*, /vehicle/front/magnetometer_4/field; name one with --sensor",
        ),
        (
            {"topics": ("/a/mag", "/b/mag")},
            {"sensor": "mag"},
            "--sensor: mag; is ambiguous: must be one of /a/mag, /b/mag; write the full name",
        ),
        ({"topics": ("/a", "/b")}, {}, "several magnetometers: /a, /b; name one with --sensor, as --sensor /a"),
        (
            {"fixed": False},
            {"attitude": "/attitude"},
            "no static transform from 'mag_link', the magnetometer's frame, to",
        ),
        (
            {"topics": ()},
            {},
            "no magnetometer in this bag; must hold sensor_msgs/msg/MagneticField or .*; it holds sens",
        ),
        (
            {"orientation_covariance": -1.0},
            {"attitude": "/attitude"},
            "topic without orientation: /attitude; its orient",
        ),
    ],
)
def test_missing_topics_of_a_bag_are_named(
    bags: ModuleType, change: dict[str, Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = bags.record(bags.BagContent(tmp_path / "drive", count=3, **change))
    with pytest.raises(CalibrationError, match=message) as raised:
        read(path, **options)
    assert str(path) in str(raised.value)


def test_invalid_attitude_is_an_error(bags: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bags.BagContent(tmp_path / "drive", count=3, fixed=False, mag_frame="imu_link", invalid_attitudes=9)
    with pytest.raises(CalibrationError, match=r"drive: orientation of row 0 of the topic /attitude: .*unit length"):
        read(bags.record(content), attitude="/attitude")
    monkeypatch.setattr(
        bags.Recorder, "make_quaternion", lambda self, _: self.types["geometry_msgs/msg/Quaternion"](3, 0, 0, 0)
    )
    content = bags.BagContent(tmp_path / "long", count=3, fixed=False, mag_frame="imu_link")
    with pytest.raises(CalibrationError, match=r"long: orientation of row 0 of the topic /attitude: .*unit length"):
        read(bags.record(content), attitude="/attitude")


def test_sensor_is_selected_by_name_and_frame(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", count=20, fixed=False, mag_frame="imu_link", topics=("/a", "/b"))
    bags.record(content)
    samples = read(content.path, sensor="b", attitude="attitude")
    assert samples.rotation_ws is not None
    assert (
        compute_largest_angle(samples.rotation_ws, bags.to_wxyz(bags.compute_attitudes(bags.make_times(content))))
        < INTERPOLATION_ERROR
    )
    assert samples.notes == (FUSED_NOTE,), "one frame for both is no guess"
    turned = read(content.path, sensor="/b", attitude="/attitude", mounting=bags.MOUNTING.as_euler("xyz"))
    assert turned.rotation_ws is not None
    assert compute_largest_angle(turned.rotation_ws, compute_true_attitudes(bags, content)) < INTERPOLATION_ERROR


def test_topic_is_selected_by_its_ending(bags: ModuleType, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / "drive", count=20, topics=("/board/mag1", "/board/mag2"))
    bags.record(content)
    assert read(content.path, sensor="mag2").source.startswith("20 readings, /board/mag2 (")
    with pytest.raises(CalibrationError, match="--sensor: /mag2; must be one of"):
        read(content.path, sensor="/mag2")


@pytest.mark.parametrize(
    ("change", "silent"),
    [
        ({"attitude": "geometry_msgs/msg/PoseStamped"}, "the attitude's messages"),
        ({"mag_frame": ""}, "the magnetometer's messages"),
        ({"mag_frame": "", "body_frame": ""}, "the attitude's and the magnetometer's messages"),
    ],
)
def test_inferred_mounting_is_reported(bags: ModuleType, change: dict[str, Any], silent: str, tmp_path: Path) -> None:
    path = bags.record(bags.BagContent(tmp_path / "drive", count=20, fixed=False, **change))
    notes = [note for note in read(path, attitude="/attitude").notes if note != FUSED_NOTE]
    assert notes == [f"mounting assumed: {silent} do not name their frame; {_attitude.ASSUMED_ALIGNED}"]
    assert "aligned" in _attitude.ASSUMED_ALIGNED
    arguments = read(path, attitude="/attitude", mounting=(0.0, 0.0, 0.0))
    assert [note for note in arguments.notes if note != FUSED_NOTE] == []


@pytest.mark.parametrize("name", ["none.mcap", "none.bag", "none.db3", "folder", "none.csv", "none.npz", "none.xyz"])
def test_missing_and_unsupported_files_are_errors(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    with pytest.raises(NavsenseError, match=name):
        read(path)
    if name != "folder":
        path.write_bytes(b"not a bag at all, nor a table" * 9)
        with pytest.raises(NavsenseError, match=name):
            read(path)


@pytest.mark.parametrize("kind", ["mcap", "db3", "bag"])
def test_truncated_bag_is_an_error(bags: ModuleType, kind: str, tmp_path: Path) -> None:
    content = bags.BagContent(tmp_path / f"drive{'.bag' if kind == 'bag' else ''}", kind, count=400)
    path = bags.record(content)
    (complete,) = [path] if kind == "bag" else path.glob(f"*.{kind}")
    data = complete.read_bytes()
    for share in (0.01, 0.3, 0.6, 0.97):
        cut = tmp_path / f"cut.{kind}"
        cut.write_bytes(data[: int(share * len(data))])
        with pytest.raises(NavsenseError, match=rf"cut\.{kind}") as caught:
            read(cut)
        if kind != "db3":
            assert str(caught.value).endswith(f"recover it with: navsense recover {cut}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Return a run of a rotated sensor on a tumbling body, and the folder with its recordings in three formats."""
    folder = tmp_path_factory.mktemp("run")
    poses = "".join(
        f'<navsense:waypoint time="{2 * i}">0 0 1 {0.9 * i} {0.5 * math.sin(2.0 * i)} {0.4 * i}</navsense:waypoint>'
        for i in range(9)
    )
    (folder / "w.sdf").write_text(f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
      <model name="rov"><navsense:motion>{poses}</navsense:motion><link name="base">
        <sensor name="imu" type="imu"><pose>0 0 0 0 0 1.1</pose><update_rate>100</update_rate></sensor>
        <sensor name="mag" type="magnetometer"><pose>0 0 0 0.2 -0.4 0.6</pose><update_rate>40</update_rate>
        <magnetometer>
          {"".join(f'<{a}><noise type="gaussian"><stddev>3e-7</stddev></noise></{a}>' for a in "xyz")}
        </magnetometer></sensor>
      </link></model></world></sdf>""")
    done = ns.simulate(ns.load(folder / "w.sdf"), 12.0, seed=3)
    for suffix in ("npz", "parquet", "mcap"):
        done.save(folder / f"run.{suffix}")
    ns.simulate(ns.load(folder / "w.sdf"), 2.0, seed=3, runs=3).save(folder / "runs.npz")
    return done, folder


def compute_scipy_errors(done: Any, samples: Samples) -> float:
    """Return the angles (rad) between the attitudes and SciPy's interpolation of the truth, through the mounting."""
    link, sensor = done.truth["rov::base"], done["rov::base::mag"]
    between = Slerp(link.time, Rotation.from_quat(np.array(link.orientation[:, [1, 2, 3, 0]])))
    known = sensor.time <= link.time[-1]
    turned = between(sensor.time[known]) * Rotation.from_euler("xyz", [0.2, -0.4, 0.6])
    assert samples.rotation_ws is not None
    return compute_largest_angle(samples.rotation_ws, turned.as_quat()[:, [3, 0, 1, 2]])


def compute_field_rotation(field_w: np.ndarray) -> float:
    """Return the angles (rad) of a field (n, 3) to its first row. A constant field has 0."""
    return float(np.linalg.norm(field_w - field_w[0], axis=1).max() / np.linalg.norm(field_w[0]))


def compute_interpolation_bound(done: Any) -> float:
    """Return an upper bound (rad) of the interpolation error over the 10 ms between samples.

    The first row is at a sample. The remainder of the series is of third order, less than a hundredth.
    """
    return 1.01 * 0.01**2 / 8.0 * float(np.linalg.norm(done.truth["rov::base"].angular_acceleration, axis=1).max())


@pytest.mark.requirement("FAC-7")
@pytest.mark.parametrize("name", ["run.npz", "run.parquet", "run.mcap"])
def test_navsense_recordings_are_read(run: tuple[Any, Path], name: str) -> None:
    done, folder = run
    samples = read(folder / name, attitude="truth")
    field = done["rov::base::mag"]["field"]
    assert np.array_equal(samples.field, field[: samples.field.shape[0]])
    assert samples.field.shape[0] >= field.shape[0] - 1
    assert (
        compute_scipy_errors(done, samples) < 2e-8
    )  # quaternions to 1e-16, and the rounding of SciPy's angle between nearly equal ones
    assert math.isclose(samples.noise, 3e-7)
    assert (samples.unit, samples.exact) == ("T", True)
    known = done["rov::base::mag"]
    assert samples.time is not None
    times = known.time if name != "run.mcap" else 1e-9 * known.stamp
    assert np.abs(samples.time - times[samples.row]).max() < 1e-9
    short = read(folder / name, sensor="mag" if name != "run.mcap" else None, attitude="truth")
    assert np.array_equal(short.field, samples.field)
    # The true field in the sensor frame, without noise.
    assert samples.rotation_ws is not None
    world = Rotation.from_quat(samples.rotation_ws[:, [1, 2, 3, 0]]).apply(
        np.array(done["rov::base::mag"].ideal["field"][: samples.field.shape[0]])
    )
    assert compute_field_rotation(world) < compute_interpolation_bound(done)


def test_imu_of_a_recording_gives_the_attitude(run: tuple[Any, Path]) -> None:
    done, folder = run
    samples = read(folder / "run.npz", attitude="imu")
    assert samples.rotation_ws is not None
    world = Rotation.from_quat(samples.rotation_ws[:, [1, 2, 3, 0]]).apply(
        np.array(done["rov::base::mag"].ideal["field"][: samples.field.shape[0]])
    )
    assert compute_field_rotation(world) < compute_interpolation_bound(done)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensor": "rov::base::imu"}, "--sensor: rov::base::imu; must be one of rov::base::mag"),
        ({"attitude": "/odom"}, "must be truth, none, or an IMU with orientation: rov::base::imu"),
        ({"mounting": (0.0, 0.0)}, "mounting: .*must be roll, pitch and yaw"),
        ({"mounting": (0.0, 0.0, math.nan)}, "mounting: .*must be roll, pitch and yaw"),
    ],
)
def test_missing_content_of_a_recording_is_named(run: tuple[Any, Path], options: dict[str, Any], message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        read(run[1] / "run.npz", **options)


def test_unknown_sensor_lists_magnetometers_without_ideal_values_and_biases(run: tuple[Any, Path]) -> None:
    with pytest.raises(CalibrationError, match="--sensor: foo; must be one of ") as raised:
        read(run[1] / "run.mcap", sensor="foo")
    (topic,) = str(raised.value).partition("must be one of ")[2].split(", ")
    assert topic.endswith("/mag/magnetometer")
    assert f"{topic}/ideal (" in read(run[1] / "run.mcap", sensor=f"{topic}/ideal").source


def test_run_is_selected_by_number(run: tuple[Any, Path]) -> None:
    path = run[1] / "runs.npz"
    first, last = read(path), read(path, run=2)
    assert not np.array_equal(first.field, last.field)
    with np.load(path) as arrays:
        assert np.array_equal(arrays["rov::base::mag/field"][2], last.field)
    with pytest.raises(CalibrationError, match="run: 3; must be from 0 to 2"):
        read(path, run=3)
    with pytest.raises(CalibrationError, match="run: 1; must be 0: it holds one run"):
        read(run[1] / "run.npz", run=1)
    # Each run has separate attitudes: rotating those of the last run changes this run only.
    with np.load(path) as arrays:
        kept = dict(arrays)
    orientation = kept["rov::base::imu/orientation"]
    assert orientation.ndim == 3
    orientation[2] = orientation[2][:, [1, 0, 3, 2]] * [-1.0, 1.0, 1.0, -1.0]  # a half turn about the body's x
    np.savez(path.with_name("turned.npz"), **kept)
    for number, same in ((0, True), (2, False)):
        before = read(path, attitude="rov::base::imu", run=number).rotation_ws
        after = read(path.with_name("turned.npz"), attitude="rov::base::imu", run=number).rotation_ws
        assert np.array_equal(before, after) is same


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("drive", {"run": 3}, r"drive: run: 3; must be 0: only recordings of navsense \(.npz, .parquet\) hold several"),
        ("log.csv", {"run": 3}, r"log.csv: run: 3; must be 0: only recordings of navsense"),
        ("log.csv", {"mounting": (0.0, 0.0, 1.0)}, "log.csv: mounting; requires an attitude: name one with --attitude"),
    ],
)
def test_ignored_options_are_errors(name: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()
    (tmp_path / "log.csv").write_text("mx,my,mz\n1,2,3\n")
    with pytest.raises(CalibrationError, match=message):
        read(tmp_path / name, **options)


def test_recording_without_mounting_is_an_error(run: tuple[Any, Path], tmp_path: Path) -> None:
    with np.load(run[1] / "run.npz") as arrays:
        kept = dict(arrays)
    about = json.loads(str(kept["meta"]))
    for head in about["sensors"].values():
        for key in ("link", "mounting", "noise"):
            del head[key]
    kept["meta"] = np.array(json.dumps(about))
    np.savez(tmp_path / "old.npz", **kept)
    with pytest.raises(CalibrationError, match="no mounting of the sensor in this recording: rov::base::mag; give"):
        read(tmp_path / "old.npz", attitude="truth")
    samples = read(tmp_path / "old.npz", attitude="truth", mounting=(0.2, -0.4, 0.6))
    assert compute_scipy_errors(run[0], samples) < 2e-8
    assert samples.noise == 0.0


def test_dropped_readings_are_skipped(run: tuple[Any, Path], tmp_path: Path) -> None:
    with np.load(run[1] / "run.npz") as arrays:
        kept = dict(arrays)
    kept["rov::base::mag/emitted"] = np.arange(kept["rov::base::mag/emitted"].size) % 10 > 0
    np.savez(tmp_path / "dropped.npz", **kept)
    samples = read(tmp_path / "dropped.npz")
    assert samples.field.shape[0] == 432
    assert np.array_equal(samples.row, np.flatnonzero(np.arange(480) % 10 > 0))
    assert samples.notes == ("48 of 480 readings are invalid and are left out",)


@pytest.mark.parametrize(
    ("header", "columns", "unit"),
    [
        ("x,y,z", (0, 1, 2), "T"),
        ("time,mx,my,mz", (1, 2, 3), "T"),
        ("t;mag_x;mag_y;mag_z", (1, 2, 3), "T"),
        ("Time,Magnetic Field X [uT],Magnetic Field Y [uT],Magnetic Field Z [uT]", (1, 2, 3), "uT"),
        ("x,y,z,mag_x_nT,mag_y_nT,mag_z_nT", (3, 4, 5), "nT"),
        ("%time,field.magnetic_field.x,field.magnetic_field.y,field.magnetic_field.z", (1, 2, 3), "T"),
        ("MagX(G)\tMagY(G)\tMagZ(G)", (0, 1, 2), "G"),
        ('"bx (mG)","by (mG)","bz (mG)"', (0, 1, 2), "mG"),
        ("mz,my,mx", (2, 1, 0), "T"),
    ],
)
def test_csv_headers_are_recognised(header: str, columns: tuple[int, ...], unit: str, tmp_path: Path) -> None:
    sign = max(",;\t", key=header.count)
    values = np.random.default_rng(5).normal(0.0, 30.0, (40, header.count(sign) + 1))
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *(sign.join(map(repr, row)) for row in values.tolist())]) + "\n")
    samples = read(path)
    assert np.array_equal(samples.field, values[:, columns])
    assert samples.unit == unit
    assert read(path, unit="uT").unit == "uT"


def test_csv_attitudes_and_gaps_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(0.0, 30.0, (40, 3))
    turns = Rotation.random(40, rng=rng).as_quat()
    rows = [",".join(map(repr, row)) for row in np.hstack([values, turns]).tolist()]
    turns = turns[:, [3, 0, 1, 2]]
    rows[7] = ",,," + rows[7].split(",", 3)[3]
    rows[9] = rows[9].rsplit(",", 1)[0] + ",nan"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["mx,my,mz,qx,qy,qz,qw", *rows, "", ""]))
    keep = np.delete(np.arange(40), [7, 9])
    for attitude in ("truth", "qw,qx,qy,qz"):
        samples = read(path, attitude=attitude)
        assert np.array_equal(samples.field, values[keep])
        assert samples.rotation_ws is not None
        assert compute_largest_angle(samples.rotation_ws, turns[keep]) < 1e-7
        assert samples.row.tolist() == keep.tolist()
        assert samples.time is None
        assert samples.notes == (
            "1 of 40 readings are invalid and are left out",
            "mounting assumed: columns do not name the body of the attitude; " + _attitude.ASSUMED_ALIGNED,
            "1 of 40 readings have no attitude near them and are left out",
        )
        assert not samples.exact
    by_name = read(path, sensor="mz,my,mx")
    assert np.array_equal(by_name.field, values[np.delete(np.arange(40), 7)][:, ::-1])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "log.csv: table: is empty; must be CSV"),
        ("\n \n", {}, "log.csv: table: is empty; must be CSV"),
        ("# a log\n1,2,3\n", {}, "log.csv:2: first line: 1,2,3; must be a header; write one"),
        ("# a log\n", {}, "log.csv:1: no field in the header: a log; put commas"),
        ("mx my mz\n1 2 3\n", {}, "log.csv:1: no field in the header: mx my mz; put commas, semicolons or tabs"),
        ("1,2,3\n4,5,6\n", {}, "log.csv:1: first line: 1,2,3; must be a header; write one"),
        ("a,b,c\n1,2,3\n", {}, "log.csv:1: no field in the header: a, b, c; name its columns: --sensor"),
        (
            "mx,my,mz,bx,by,bz\n1,2,3,4,5,6\n",
            {},
            "log.csv:1: several fields in the header: .*name one: --sensor mx,my,mz",
        ),
        ("mx,my,mz\n1,2,x\n", {}, "log.csv:2: mz: x; must be a number, or empty if missing"),
        ("mx,my,mz\n1,2,3\n\n1,2\n1,2,3", {}, "log.csv:4: number of columns: 2; must be 3, as in the header$"),
        ("mx,my,mz\n1,2,3\n\n1,2\n", {}, "log.csv:4: number .*; the file ends within this line: leave it out"),
        ("mx,my,mz\n1,2,3\n0,1,2,3\n", {}, "log.csv:3: number of columns: 4; must be 3, as in the header; name every"),
        ("mx,my,mz\n59,6,-17,6,-7,5\n", {}, "log.csv:2: number of columns: 6; .* decimal point"),
        (
            "mx;my;mz\n1,5;2;3\n",
            {},
            "log.csv:2: mx: 1,5; must be a number, or empty if missing; write 1234.5: with a decimal point",
        ),
        ('mx,my,mz\n"1,337.4",2,3\n', {}, "log.csv:2: mx: 1,337.4; must be a number, .* without thousands separators"),
        ('mx,my,mz\n1,2,3\n1,"2,3\n1,2,3\n', {}, "log.csv:3: number of columns: 2; must be 3"),
        ("mx,my,mz\n1,2,1_0\n", {}, "log.csv:2: mz: 1_0; must be a number"),
        (f'mx,my,mz\n1,2,"{"3" * 200_000}"\n', {}, "log.csv:2: table: field larger than field limit"),
        (
            "mag_x [uT],mag_y [nT],mag_z [uT]\n1,2,3\n",
            {"unit": "uT"},
            r"log.csv:1: units of the field's columns: mag_x \[uT\], mag_y \[nT\], mag_z \[uT\]; must be one; convert",
        ),
        (
            "mag1_x,mag1_y,mag1_z,mag2_x,mag2_y,mag2_z\n1,2,3,4,5,6\n",
            {},
            "log.csv:1: several fields in .*: --sensor mag1_x,mag1_y,mag1_z or --sensor mag2_x,mag2_y,mag2_z",
        ),
        ("mx,my,mz,mx,my,mz\n1,2,3,4,5,6\n", {}, "log.csv:1: several fields in the header: .*a different name, then"),
        (
            "mx,my,mz,mx\n1,2,3,4\n",
            {"sensor": "mx,my,mz"},
            "log.csv:1: column of --sensor: mx; is 2 times in the header; give each column a different name",
        ),
        ("mx,my,mz\n1,2,3\n", {"sensor": "mx,mx,mz"}, "log.csv:1: --sensor: mx,mx,mz; must be 3 columns"),
        ("mx,my,mz\n", {}, "log.csv: table without rows"),
        ("mx,my,mz\n1,2,3\n", {"attitude": "truth"}, "log.csv:1: no attitude in the header: .*--attitude qw,qx,qy,qz"),
        ("mx,my,mz\n1,2,3\n", {"attitude": "/odom"}, "log.csv:1: --attitude: /odom; must be 4 columns, as qw,qx,qy,qz"),
        ("mx,my,mz\n1,2,3\n", {"sensor": "a,b,c"}, "log.csv:1: column of --sensor: a; must be one of mx, my, mz"),
        ("mx,my,mz\n1,2,3\n", {"sensor": "mx,my"}, "log.csv:1: --sensor: mx,my; must be 3 columns"),
        (
            "mx,my,mz,qw,qx,qy,qz\n1,2,3,0,0,0,0\n",
            {"attitude": "truth"},
            "log.csv: orientation of row 0 of the columns qw, qx, qy, qz",
        ),
        ("mx,my,mz\n1,2,\0\n", {}, "log.csv: table: is not text; .*; save it as text, CSV in UTF-8"),
    ],
)
def test_table_errors_name_the_problem(text: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(CalibrationError, match=message):
        read(path, **options)


ROWS = "1,2,3\n4,5,6\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# my log\nmx,my,mz\n{ROWS}",
        f"# my log\n# mx,my,mz\n{ROWS}",
        f"#mx,my,mz\n{ROWS}",
        f"% my log, of 3 columns\n\n%mx,my,mz\n{ROWS}",
        "mx,my,mz\n1,2,3\n# a stop, here\n4,5,6\n# it's \"over\n",
        "mx,my,mz,\n1,2,3,\n4,5,6,\n",
        "mx,my,mz\n1,2,3,,\n4,5,6\n",
        'mx, "my", mz\n"1", 2, "3"\n 4,5 ,6\n',
        '"time, s",mx,my,mz\n"1,5",1,2,3\n"2,5",4,5,6\n',
        f"mag1_x,mag1_y,mag1_z\r\n{ROWS}",
        "mx;my;mz\n1;2;3\n+4.0;5e0;.6e1\n\n",
    ],
)
def test_csv_variants_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    assert read(tmp_path / "log.csv").field.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_columns_are_selected_by_prefix(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("mag1_x,mag1_y,mag1_z,mag2_x,mag2_y,mag2_z,att_w,att_x,att_y,att_z\n1,2,3,4,5,6,0,1,0,0\n")
    samples = read(path, sensor="mag2", attitude="att")
    assert samples.field.tolist() == [[4.0, 5.0, 6.0]]
    assert samples.rotation_ws is not None
    assert samples.rotation_ws.tolist() == [[0.0, 1.0, 0.0, 0.0]]
    with pytest.raises(CalibrationError, match="--sensor: mag3; must be 3 columns, as mx,my,mz; there are mag1_x"):
        read(path, sensor="mag3")


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_table_encodings_are_recognised(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(f"mx [µT],my [µT],mz [µT]\n{ROWS}".encode(codec))
    samples = read(path)
    assert (samples.field.tolist(), samples.unit) == ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "uT")
    path.write_bytes(f"mx [µT],my [µT],mz [µT]\n{ROWS}".encode("utf-16")[:-1])
    with pytest.raises(CalibrationError, match="is not text"):
        read(path)


def test_invalid_table_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = ["1,2,3,0,0,0,0", "4,5,6,0,0,0,0", "7,8,9,1,0,0,0", "inf,8,9,1,0,0,0", ",,,,,,", "9,9,9,0,1,0,0"]
    path.write_text("\n".join(["mx,my,mz,qw,qx,qy,qz", *rows]))
    samples = read(path, attitude="truth")
    assert samples.field.tolist() == [[7.0, 8.0, 9.0], [9.0, 9.0, 9.0]]
    assert samples.rotation_ws is not None
    assert samples.rotation_ws.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert samples.notes == (
        "2 of 6 readings are invalid and are left out",
        "mounting assumed: columns do not name the body of the attitude; " + _attitude.ASSUMED_ALIGNED,
        "2 of 6 readings have no attitude near them and are left out",
    )


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("48.3uT", "T", 48.3e-6),
        ("48µT", "uT", 48.0),
        ("48 μT", "nT", 48000.0),
        ("0.48G", "uT", 48.0),
        ("10uT", "T", 1e-5),
        ("10", "uT", 10.0),
        ("150000nT", "mG", 1500.0),
        ("4.8e1uT", "G", 0.48),
        ("0.5 G", "uT", 50.0),
        ("48300", "nT", 48300.0),
        ("4.8e-5", "T", 4.8e-5),
        ("7", None, 7.0),
        ("51.9uT", None, 51.9),
    ],
)
def test_strength_is_read_with_and_without_a_unit(text: str, unit: str | None, expected: float) -> None:
    assert parse_strength(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("48.3", "T", "strength: 48.3; must be from 1e-05 to 0.00015 T, .*; give it with its unit, as 48.3uT"),
        ("9.99uT", "T", "strength: 9.99uT; must be from 10 to 150 uT, as the earth's field is$"),
        ("48kT", "T", "must be a number, or one with a unit of T, mT"),
        ("-48uT", "T", "must be from 10 to 150 uT"),
        ("", "T", "must be a number"),
        ("48.3T", "uT", r"strength: 48.3T; must be from 1e-05 to 0.00015 T, .* is; write 48.3uT$"),
        ("500", "uT", r"must be from 10 to 150 uT, .*; give it with its unit, as 500mG: the readings are in uT"),
        ("48.3kT", None, "must be a number, or one with a unit of T, mT"),
        ("48.3Gm", "T", "must be a number, or one with a unit of T, mT"),
        ("strong", "T", "must be a number"),
        ("nan", "T", "must be a number"),
    ],
)
def test_invalid_strengths_are_errors(text: str, unit: str | None, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        parse_strength(text, unit)


@pytest.mark.parametrize("seed", range(3))
def test_interpolated_attitudes_equal_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = np.sort(rng.uniform(0.0, 10.0, 300))
    steps = Rotation.from_rotvec(rng.normal(0.0, 0.08, (300, 3)))
    turns = [steps[0]]
    for step in steps[1:]:
        turns.append(turns[-1] * step)
    rotations = Rotation.concatenate(turns)
    signs = rng.choice([-1.0, 1.0], (300, 1))  # q and -q are one attitude
    time = np.concatenate([rng.uniform(-0.1, 10.1, 500), known[:5], known[-5:]])
    shuffled = rng.permutation(300)
    found, why = _attitude.interpolate(known[shuffled], (signs * rotations.as_quat()[:, [3, 0, 1, 2]])[shuffled], time)
    gap = np.diff(known)[np.clip(np.searchsorted(known, time, "right") - 1, 0, 298)]
    turn = (rotations[:-1].inv() * rotations[1:]).magnitude()
    wide = (gap > _attitude.MAX_GAP * np.median(np.diff(known))) | (
        turn[np.clip(np.searchsorted(known, time, "right") - 1, 0, 298)] > _attitude.MAX_ROTATION
    )
    expected = (time >= known[0]) & (time <= known[-1]) & (~wide | np.isin(time, known))
    inside = why == _attitude.AVAILABLE
    assert np.array_equal(inside, expected)
    assert not np.isfinite(found[~inside]).any()
    between = (time >= known[0]) & (time <= known[-1]) & (gap <= _attitude.MAX_GAP * np.median(np.diff(known)))
    assert np.array_equal(why == _attitude.FAST_ROTATION, between & ~expected)
    # arccos of a number near one keeps half of the digits in SciPy's reference.
    assert compute_largest_angle(found[inside], Slerp(known, rotations)(time[inside]).as_quat()[:, [3, 0, 1, 2]]) < 3e-8


def test_constant_and_duplicate_attitudes_are_interpolated() -> None:
    still = np.tile([0.6, 0.0, 0.8, 0.0], (4, 1))
    found, why = _attitude.interpolate(np.array([0.0, 1.0, 1.0, 2.0]), still, np.array([0.0, 0.3, 1.0, 1.9, 2.0]))
    assert (why == _attitude.AVAILABLE).all()
    assert np.allclose(found, still[0], rtol=0.0, atol=1e-15)
    twice = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    found, why = _attitude.interpolate(np.array([1.0, 1.0]), twice, np.array([0.5, 1.0]))
    assert why.tolist() == [_attitude.NO_SAMPLE_NEAR, _attitude.AVAILABLE]
    assert np.array_equal(found[1], twice[1]), "the last of several at one instant counts"
    found, why = _attitude.interpolate(np.empty(0), np.empty((0, 4)), np.array([1.0]))
    assert (why == _attitude.NO_SAMPLE_NEAR).all()


def test_compiled_and_interpreted_attitudes_agree(interpret: Any) -> None:
    rng = np.random.default_rng(4)
    known, time = np.sort(rng.uniform(0.0, 1.0, 50)), rng.uniform(-0.1, 1.1, 200)
    turns = np.ascontiguousarray(Rotation.from_rotvec(rng.normal(0.0, 0.3, (50, 3))).as_quat())
    both = [(np.full((200, 4), math.nan), np.zeros(200, dtype=np.int64)) for _ in range(2)]
    for run_kernel, out in zip((_attitude._slerp, interpret(_attitude._slerp)), both, strict=True):
        run_kernel(known, turns, time, 0.5, 0.5, *out)
    assert set(both[0][1].tolist()) == {_attitude.AVAILABLE, _attitude.NO_SAMPLE_NEAR, _attitude.FAST_ROTATION}
    for ours, other in zip(*both, strict=True):
        assert ours.tobytes() == other.tobytes()


def test_copied_bag_gives_the_same_samples(bag: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bag, tmp_path / "renamed")
    assert np.array_equal(read(copy).field, read(bag).field)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (None, "path of a recording: None; must be a file name or a path"),
        (3, "path of a recording: 3; must be a file name or a path"),
        ("", "the name of a recording is empty"),
        ("x" * 300 + ".csv", "the name is too long; choose a shorter name"),
        ("x" * 300 + ".mcap", "the name is too long; choose a shorter name"),
    ],
)
def test_an_impossible_path_is_an_error(path: Any, problem: str) -> None:
    for function in (read, ns.open):
        with pytest.raises(ns.NavsenseError, match=problem):
            function(path)


def test_attitude_none_is_no_attitude(run: tuple[Any, Path]) -> None:
    assert read(run[1] / "run.mcap", attitude=None).attitude == "none"
