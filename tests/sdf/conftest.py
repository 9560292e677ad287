"""Worlds from texts, and the problems of invalid texts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from navsense import sdf
from navsense.core.errors import SdfError
from navsense.world import World

WORLDS = Path(__file__).resolve().parents[1] / "worlds"
Load = Callable[..., World]
ListProblems = Callable[..., list[str]]

FILE = "dive.sdf"
ORACLES = Path(__file__).resolve().parents[1] / "oracles"
RESOLVE = ORACLES / "libsdformat" / "resolve.cc"
SENSORS = ORACLES / "libsdformat-files" / "sensors.cc"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that loads a world from its text."""

    def load_text(text: str, **options: str) -> World:
        path = tmp_path / FILE
        path.write_text(text, encoding="utf-8")
        return sdf.load(path, **options)

    return load_text


@pytest.fixture
def list_problems(load: Load, tmp_path: Path) -> ListProblems:
    """Return a function that lists the problems of a text, one line each, without the folder of the file."""

    def read_problems(text: str, **options: str) -> list[str]:
        with pytest.raises(SdfError) as caught:
            load(text, **options)
        assert caught.value.problems[0] is caught.value
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return read_problems


@pytest.fixture
def wrap_in_world() -> Callable[..., str]:
    """Return a function that wraps elements in a world. The first element is on line 3."""

    def text(body: str, version: str = "1.12") -> str:
        return f'<sdf version="{version}">\n<world name="ocean">\n{body}\n</world>\n</sdf>\n'

    return text


@pytest.fixture
def wrap_in_link(wrap_in_world: Callable[..., str]) -> Callable[..., str]:
    """Return a function that wraps elements in the link `auv::base`. The first element is on line 5."""

    def text(body: str, version: str = "1.12") -> str:
        return wrap_in_world(f'<model name="auv">\n<link name="base">\n{body}\n</link>\n</model>', version)

    return text


@pytest.fixture
def wrap_in_magnetometer(wrap_in_link: Callable[..., str]) -> Callable[[str], str]:
    """Return a function that wraps a `<noise>` in the x axis of a magnetometer, on line 5."""

    def text(noise: str) -> str:
        return wrap_in_link(
            f'<sensor name="mag" type="magnetometer"><magnetometer><x>{noise}</x></magnetometer></sensor>'
        )

    return text


def extract_robots(document: str) -> dict[str, str]:
    """Return the robots of a document: the UUV Simulator's with its four beams, and that of Woods Hole."""
    physical = re.findall(r"<!-- DVL physical.*?</gazebo>", document, flags=re.DOTALL)
    (beam,) = re.findall(r"<!-- Individual sonar beam link.*?</gazebo>", document, flags=re.DOTALL)
    assert beam.count("0 -0.52 0.0") == 1
    turns = [("-0.52", "0"), ("0", "0.52"), ("0.52", "0"), ("0", "-0.52")]
    beams = [
        beam.replace("0 -0.52 0.0", f"0 {pitch} {yaw}").replace("sonar0", f"sonar{i}")
        for i, (pitch, yaw) in enumerate(turns)
    ]
    head, end = '<robot name="auv">\n<link name="robot_link"/>', "</robot>\n"
    return {
        "uuv": "\n".join([head, physical[0], *beams, end]),
        "dsros": "\n".join([head, physical[1], end]),
    }


@pytest.fixture(scope="session", params=["own", "document"])
def dvl_robots(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return a URDF robot for each DVL plug-in: from `tests/worlds`, then from the original document."""
    if request.param == "own":
        return {name: (WORLDS / "robots" / f"{name}.urdf").read_text(encoding="utf-8") for name in ("uuv", "dsros")}
    found = sorted((Path(request.getfixturevalue("shared_data")).parent / "seeds").glob("002_*"))
    if not found:
        pytest.skip("needs the documents next to ../shared/data")
    return extract_robots(found[0].read_text(encoding="utf-8"))


def compile_oracle(source: Path, folder: Path) -> Path:
    """Return a compiled program that asks libsdformat; skip the test without the library or a compiler."""
    missing = [tool for tool in ("g++", "pkg-config") if shutil.which(tool) is None]
    if missing or subprocess.run(["pkg-config", "--exists", "sdformat12"], check=False).returncode:
        pytest.skip("needs Debian's libsdformat-dev, g++ and pkg-config")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "sdformat12"], capture_output=True, text=True, check=True
    ).stdout.split()
    target = folder / source.stem
    subprocess.run(["g++", "-std=c++17", "-O0", str(source), "-o", str(target), *flags], check=True)
    return target


@pytest.fixture(scope="session")
def resolver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled program that prints the poses that libsdformat resolves."""
    return compile_oracle(RESOLVE, tmp_path_factory.mktemp("oracle"))


@pytest.fixture(scope="session")
def sensor_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled program that prints libsdformat's verdict and the poses of its sensors."""
    return compile_oracle(SENSORS, tmp_path_factory.mktemp("oracle"))
