"""`info` of recordings that are folders: CSV of navsense, EuRoC, and other folders."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import navsense as ns
from navsense import cli
from navsense.core.errors import RecordingError
from navsense.core.text import format_size
from navsense.recordings.convert import convert
from navsense.recordings.summary import read_summary
from navsense.sensors import Imu, Magnetometer
from navsense.testing import example_world

EPOCH = 1000
IMU = "robot::arm::imu"

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(400)]  # kernels may have to be compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one recording in several formats."""
    place = tmp_path_factory.mktemp("info")
    world = example_world(("imu", Imu.example_spec()), ("magnetometer", Magnetometer.example_spec()))
    ns.record(world, [place / name for name in ("a.npz", "t.csv", "e.euroc", "a.mcap")], 0.5, seed=5, epoch=EPOCH)
    return place


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["t", "t.csv"])
def test_info_of_a_csv_folder(folder: Path, name: str) -> None:
    found, known = read_summary(folder / name), read_summary(folder / "a.npz")
    assert found.format == "csv"
    assert found.path == str(folder / "t")
    assert found.entries == known.entries
    assert (found.start, found.end, found.metadata) == (known.start, known.end, known.metadata)
    assert found.size == sum(one.stat().st_size for one in (folder / "t").iterdir())
    rows = sum(entry.count for entry in known.entries)
    assert f"csv, {format_size(found.size)}, {rows} rows from 1000 s" in found.headline


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["e", "e.euroc", "e/mav0"])
def test_info_of_a_euroc_folder(folder: Path, tmp_path: Path, name: str) -> None:
    found, known = read_summary(folder / name), ns.open(folder / "a.npz")[IMU]
    rows = {entry.name: entry.count for entry in found.entries}
    assert rows == {"mav0::body::imu0": int(known.emitted.sum()), "truth/mav0::body": int(100 * 0.5)}
    assert found.format == "EuRoC"
    assert " rows from 1000 s to " in found.headline
    assert (found.metadata.get("seed"), found.metadata.get("world")) == (
        (None, None) if "mav0" in name else ("5", "laws")
    )
    shutil.copytree(folder / "e" / "mav0", tmp_path / "dive.1" / "mav0")
    foreign = read_summary(tmp_path / "dive.1")
    assert foreign.entries == found.entries
    assert foreign.metadata == {}, "another program says no seed and no epoch"


@pytest.mark.requirement("REC-1:convert")
def test_info_of_a_bag_with_mcap_storage(folder: Path, tmp_path: Path) -> None:
    result = convert(folder / "a.mcap", tmp_path / "bag")
    assert result.path.is_dir()
    assert dict(read_summary(result.path).metadata) == dict(read_summary(folder / "a.mcap").metadata)
    assert read_summary(result.path).metadata["seed"] == "5"


@pytest.mark.requirement("REC-1:convert")
@pytest.mark.parametrize("name", ["empty", "empty.1", "missing.csv", "missing.euroc", "table.csv"])
def test_info_of_another_file_raises_the_error_of_open(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("empty", "empty.1"):
        (tmp_path / place).mkdir()
    (tmp_path / "table.csv").write_text("time,x,y,z\n0,1,2,3\n", encoding="utf-8")
    with pytest.raises(RecordingError) as expected:
        ns.open(tmp_path / name)
    monkeypatch.setattr(sys, "argv", ["navsense", "info", str(tmp_path / name)])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err == f"error: {expected.value}\n"
    assert "suffix" not in str(expected.value)
    known = r"known are \.mcap, \.gz\.mcap, \.gazebo\.mcap, \.npz, \.parquet, \.bag, \.db3, \.euroc, \.csv, "
    with pytest.raises(RecordingError, match=known):
        read_summary(tmp_path / "other.txt")


def test_info_of_a_world_names_the_command_for_worlds(tmp_path: Path) -> None:
    path = tmp_path / "dive.sdf"
    path.write_text("<sdf version='1.9'/>", encoding="utf-8")
    with pytest.raises(
        RecordingError, match=r"no recording has this suffix: \.sdf; .*; to read a world: navsense desc"
    ):
        read_summary(path)


def test_info_of_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"missing: cannot be read: no such file or directory; check the name$"):
        read_summary(tmp_path / "missing")
