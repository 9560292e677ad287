"""Names match in full or by their ending."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import navsense as ns
from navsense.core.errors import UnknownNameError
from navsense.core.names import NameDict, resolve_name
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
