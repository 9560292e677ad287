"""Names match in full or by their ending."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import CalibrationError, MotionError, UnknownNameError
from navsense.core.names import NameDict, resolve_name, suggest_name
from navsense.recordings.recorded_motion import load_motion
from navsense.sensors import Imu, Magnetometer
from navsense.testing import example_world

NAMES = ("a::base::imu", "b::base::imu", "b::base::mag", "imu", "c::imu_link::gps")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a::base::imu", "a::base::imu"),
        ("a::imu", None),
        ("base::mag", "b::base::mag"),
        ("mag", "b::base::mag"),
        ("imu", "imu"),  # the full name before the endings
        ("base::imu", None),
        ("ag", None),
        ("::mag", None),
        ("", None),
        ("gps", "c::imu_link::gps"),
    ],
)
def test_name_matches_by_full_name_or_unambiguous_ending(name: str, found: str | None) -> None:
    if found is not None:
        assert resolve_name(name, NAMES, "sensor") == found
        return
    with pytest.raises(UnknownNameError, match="must be one of"):
        resolve_name(name, NAMES, "sensor")


def test_errors_list_the_names() -> None:
    several = "sensor: base::imu; is ambiguous: must be one of a::base::imu, b::base::imu; write the full name"
    with pytest.raises(UnknownNameError, match=several):
        resolve_name("base::imu", NAMES, "sensor")
    with pytest.raises(
        UnknownNameError,
        match=f"sensor: nose; must be one of {', '.join(NAMES)}; write the full name, or an unambiguous ending",
    ):
        resolve_name("nose", NAMES, "sensor")
    for name, shown in (("", "''"), ("imu ", "'imu '")):
        with pytest.raises(UnknownNameError, match=f"sensor: {shown}; must be one of"):
            resolve_name(name, NAMES, "sensor")
    with pytest.raises(UnknownNameError, match=r"sensor: nose; there is none$"):
        resolve_name("nose", (), "sensor")


def test_name_mapping_accepts_endings_and_aliases() -> None:
    links = NameDict({"a::base": 1, "a::arm": 2}, "link", {"a": "a::base"})
    for mapping in (links, copy.copy(links), pickle.loads(pickle.dumps(links))):  # noqa: S301  # our own
        assert (mapping["a::arm"], mapping["arm"], mapping["a"]) == (2, 2, 1)
        assert (mapping.get("base"), mapping.get("boat"), mapping.get("boat", 7)) == (1, None, 7)
        assert list(mapping) == ["a::base", "a::arm"]
        assert "arm" in mapping
        assert "a" in mapping
        assert "boat" not in mapping
        assert mapping == {"a::base": 1, "a::arm": 2}
        with pytest.raises(UnknownNameError, match="link: boat; must be one of a::base, a::arm, a"):
            _ = mapping["boat"]


def test_a_list_of_names_is_an_error_of_navsense() -> None:
    links: Any = NameDict({"a::base": 1, "a::arm": 2}, "link")
    assert ["base"] not in links
    assert links.get(["base"]) is None
    with pytest.raises(UnknownNameError, match=r"link: \['base'\]; must be a name; give one name for each call"):
        _ = links[["base"]]
    run = ns.simulate(example_world(("imu", Imu())), 0.05)
    with pytest.raises(UnknownNameError, match=r"sensor: \['imu'\]; must be a name"):
        run.plot(["imu"])
    with pytest.raises(UnknownNameError, match=r"array: \['orientation'\]; must be a name"):
        run["imu"].plot(["orientation"])


def test_run_accepts_name_endings() -> None:
    run = ns.simulate(example_world(("imu", Imu()), ("mag", Magnetometer())), 0.05)
    assert run["imu"] is run["arm::imu"] is run["robot::arm::imu"]
    assert "mag" in run
    assert "nose" not in run
    assert list(run) == ["robot::arm::imu", "robot::arm::mag"]
    assert run.truth["arm"] is run.truth["robot::arm"]
    assert run.truth["robot"] is run.truth["base"] is run.truth["robot::base"]
    with pytest.raises(UnknownNameError, match="link: boat; must be one of robot::base, robot::arm, robot"):
        _ = run.truth["boat"]


@pytest.mark.parametrize("name", ["run.npz", "run.parquet", "run.mcap", "run_csv"])
def test_loaded_recording_accepts_name_endings(tmp_path: Path, name: str) -> None:
    (tmp_path / "run_csv").mkdir()
    path = tmp_path / name if name != "run_csv" else tmp_path / "run_csv" / "run.csv"
    ns.simulate(example_world(("imu", Imu()), ("mag", Magnetometer())), 0.05).save(path)
    loaded = ns.open(path)
    full = next(name for name in loaded if name.endswith("imu"))
    assert loaded["imu"] is loaded[full]
    assert "mag" in loaded
    assert "nose" not in loaded
    assert loaded.truth["arm"] is loaded.truth["robot::arm"]
    with pytest.raises(UnknownNameError, match=r"sensor: nose; must be one of .*imu"):
        _ = loaded["nose"]
    with pytest.raises(UnknownNameError, match="link: boat; must be one of "):
        _ = loaded.truth["boat"]


@pytest.mark.parametrize("name", ["run.npz", "run.mcap", "run.bag", "run_db3"])
@pytest.mark.parametrize("link", ["base", "robot::base", "robot"])
def test_motion_of_a_recording_accepts_names_of_links(tmp_path: Path, name: str, link: str) -> None:
    path = tmp_path / name.replace("_", ".")
    run = ns.simulate(example_world(("imu", Imu())), 0.5, epoch=1)
    run.save(path)
    motion = load_motion(f"{path}:{link}")
    assert (motion.at(np.zeros(1)).position_w == run.truth["base"].position[:1]).all()
    with pytest.raises(MotionError, match=f"poses: {link}x; must be one of .*robot"):
        load_motion(f"{path}:{link}x")


WORLD = """<sdf version="1.9"><world name="lab"><model name="rig"><link name="head">
    <sensor name="compass" type="magnetometer"><update_rate>20</update_rate></sensor>
    <sensor name="spare" type="magnetometer"><update_rate>20</update_rate><topic>/gyro</topic></sensor>
    <sensor name="gyro" type="imu"><update_rate>20</update_rate></sensor>
    <sensor name="twin" type="magnetometer"><update_rate>20</update_rate><topic>/a/x</topic></sensor>
    <sensor name="x" type="magnetometer"><update_rate>20</update_rate><topic>/b/y</topic></sensor>
</link></model></world></sdf>"""


@pytest.fixture(scope="module")
def compasses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run in several formats."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "lab.sdf").write_text(WORLD, encoding="utf-8")
    run = ns.simulate(ns.load(folder / "lab.sdf"), 1.0, epoch=1)
    for name in ("run.npz", "run.mcap", "run.bag", "run.db3"):
        run.save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["run.npz", "run.mcap", "run.bag", "run.db3"])
def test_calibration_accepts_names_of_sensors_in_every_format(compasses: Path, name: str) -> None:
    run = ns.open(compasses / name)
    for sensor in ("compass", "head::compass", "rig::head::compass", "spare"):
        samples = ns.calibration.read(compasses / name, sensor=sensor, attitude="gyro")
        assert (samples.field == run[sensor]["field"]).all()
    with pytest.raises(CalibrationError, match=r"--sensor: compas; must be one of .*did you mean rig::head::compass\?"):
        ns.calibration.read(compasses / name, sensor="compas")
    with pytest.raises(CalibrationError, match=r"--attitude: gyr; must be .*did you mean .*gyro.*\?"):
        ns.calibration.read(compasses / name, sensor="compass", attitude="gyr")


def test_topic_and_sensor_of_one_name_are_ambiguous(compasses: Path) -> None:
    with pytest.raises(CalibrationError, match=r"--sensor: x; is ambiguous: must be one of /a/x, /b/y; write the full"):
        ns.calibration.read(compasses / "run.mcap", sensor="x")
    topic = ns.calibration.read(compasses / "run.mcap", sensor="/a/x").source
    sensor = ns.calibration.read(compasses / "run.mcap", sensor="rig::head::x").source
    assert "/a/x (" in topic
    assert "/b/y (" in sensor


def test_topics_have_suggestions_by_their_last_part() -> None:
    topic = "/world/w/sensor/compass/magnetometer"
    assert suggest_name("magnetometr", [topic], separator="/") == f"did you mean {topic}?"
    with pytest.raises(UnknownNameError, match=f"did you mean {topic}"):
        resolve_name("magnetometr", [topic], "topic", separator="/")
