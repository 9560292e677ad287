"""Recordings of several runs: one for each run number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense.cli import cli

pytestmark = pytest.mark.requirement("CAM-1")

WORLD = Path(__file__).parent.parent / "examples" / "quadrotor.sdf"


def test_each_recording_is_that_of_its_run(tmp_path: Path) -> None:
    world = ns.load(WORLD)
    patterns = [tmp_path / "{run}" / "flight-{run}.npz", f"{tmp_path}/b{{run}}.npz"]
    for number in (2, 5):
        (tmp_path / str(number)).mkdir()
    result = ns.record(world, patterns, 0.5, seed=7, runs=[2, 5])
    assert [path.name for path in result.paths] == ["flight-2.npz", "b2.npz", "flight-5.npz", "b5.npz"]
    alone = ns.simulate(world, 0.5, seed=7, runs=[2, 5])
    for index, number in enumerate((2, 5)):
        for path in (tmp_path / str(number) / f"flight-{number}.npz", tmp_path / f"b{number}.npz"):
            assert np.array_equal(ns.open(path)["imu"]["angular_velocity"], alone["imu"]["angular_velocity"][index])
    assert result.samples["quadrotor::base_link::imu"] == 1000
    assert result.published_samples["quadrotor::base_link::imu"] == 1000


@pytest.mark.parametrize(("option", "numbers"), [("2", [0, 1]), ("3-4", [3, 4])])
def test_option_of_the_command(tmp_path: Path, option: str, numbers: list[int]) -> None:
    arguments = ["run", str(WORLD), "--duration", "0.2", "--runs", option, "-o", str(tmp_path / "f-{run}.npz")]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"f-{number}.npz" for number in numbers]
    assert all(f"f-{number}.npz" in done.output for number in numbers)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"path": "flight.npz", "runs": 2},
            'output of several runs: flight.npz; must contain {run}; write "flight-{run}',
        ),
        ({"runs": 2, "run": 3}, "run: 3; is not allowed beside runs; omit one of them"),
        ({"runs": []}, "runs: []"),
        ({"runs": [1, 1]}, "must be a number >= 1, or different run numbers"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, Any], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {"world": ns.load(WORLD), "path": "f-{run}.npz", "duration": 0.2, **changes}
    with pytest.raises(ns.NavsenseError) as error:
        ns.record(**arguments)
    assert text in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["0-", "4-3", "-3", "a", "1,2", ""])
def test_wrong_options(option: str) -> None:
    done = CliRunner().invoke(cli, ["run", str(WORLD), "--duration", "0.2", "--runs", option, "-o", "f-{run}.npz"])
    assert isinstance(done.exception, ns.NavsenseError)
    assert "--runs" in str(done.exception)
