"""Models, meshes and heightmaps in the local cache of Gazebo Fuel. Nothing is downloaded."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import navsense as ns
from navsense.sdf.fuel_cache import CACHE_VARIABLES, FuelUri, parse_fuel_uri
from navsense.world import World

pytestmark = pytest.mark.requirement("SDF-1")

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

FUEL = "https://fuel.gazebosim.org/1.0"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder, without a network."""
    for variable in CACHE_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def refuse(*_: object) -> None:
        raise AssertionError("navsense must not download")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path / "home"


def add_model(cache: Path, version: str, content: str = "", *, server: str = "fuel.gazebosim.org") -> Path:
    """Add a version of the model `MBARI Tethys LRAUV` of `accurrent`, as gz-fuel-tools stores it."""
    folder = cache / server / "accurrent" / "models" / "mbari tethys lrauv" / version
    folder.mkdir(parents=True)
    config = '<model><name>MBARI Tethys LRAUV</name><sdf version="1.9">model.sdf</sdf></model>'
    (folder / "model.config").write_text(config, encoding="utf-8")
    model = f'<sdf version="1.9"><model name="tethys"><link name="v{version}"/>{content}</model></sdf>'
    (folder / "model.sdf").write_text(model, encoding="utf-8")
    return folder


def make_include(uri: str) -> str:
    return f"<include><uri>{uri}</uri></include>"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (f"{FUEL}/OpenRobotics/models/Cordless Drill", FuelUri("fuel.gazebosim.org", "openrobotics", "cordless drill")),
        (f"{FUEL}/o/models/A%20b/3", FuelUri("fuel.gazebosim.org", "o", "a b", "3")),
        (f"{FUEL}/o/models/A/tip/", FuelUri("fuel.gazebosim.org", "o", "a")),
        ("https://Fuel.gazebosim.org/o/models/A", FuelUri("fuel.gazebosim.org", "o", "a")),
        ("fuel://fuel.gazebosim.org/1.0/o/models/A", FuelUri("fuel.gazebosim.org", "o", "a")),
        (f"{FUEL}/o/models/A/2/files/m/Hull.stl", FuelUri("fuel.gazebosim.org", "o", "a", "2", "m/Hull.stl")),
        (f"{FUEL}/o/models/A/files/m/hull.stl", FuelUri("fuel.gazebosim.org", "o", "a", "", "m/hull.stl")),
        (f"{FUEL}/o/models/A/2/files/../../x", None),
        (f"{FUEL}/../models/A", None),
        (f"{FUEL}/o/worlds/A", None),
        ("https://example.org/hull.stl", None),
        ("model://A", None),
    ],
)
def test_uris_are_parsed_as_by_fuel_tools(uri: str, expected: FuelUri | None) -> None:
    assert parse_fuel_uri(uri) == expected


@pytest.mark.parametrize(
    "path",
    [
        "../secret/models/top",
        "%2E%2E/secret/models/top",
        "fuel.gazebosim.org/1.0/./models/top",
        "fuel.gazebosim.org/1.0/owner/models/%2e",
        "fuel.gazebosim.org/1.0/{secret}/models/top",
        "fuel.gazebosim.org/1.0/owner/models/{secret}%2Ftop",
        "fuel.gazebosim.org/1.0/owner/models/..%2F..%2F..%2Fsecret%2Fmodels%2Ftop",
        "fuel.gazebosim.org/1.0/owner/models/top/1/files/{secret}%2fmodel.sdf",
        "fuel.gazebosim.org/1.0/owner/models/top/1/files/a%2f..%2f..%2fmodel.sdf",
        "fuel.gazebosim.org/1.0/owner/models/x%00",
        "fuel.gazebosim.org/1.0/o%00/models/x",
        "fuel.gazebosim.org/1.0/owner/models/x/1/files/%00",
    ],
)
def test_uris_stay_in_the_cache(list_problems: ListProblems, wrap_in_world: Text, home: Path, path: str) -> None:
    """Parts that are no names of entries of a folder are no parts of a Fuel URI, also percent-encoded ones."""
    secret = home / ".gz" / "secret"
    for folder in (secret / "models/top/1", secret / "top/1", home / ".gz/fuel/secret/models/top/1"):
        folder.mkdir(parents=True)
        (folder / "model.sdf").write_text('<sdf version="1.9"><model name="m"><link name="l"/></model></sdf>', "utf-8")
    uri = f"https://{path.format(secret=str(secret).replace('/', '%2F'))}"
    (line,) = list_problems(wrap_in_world(make_include(uri)))
    assert "must be a file, model://NAME, package://NAME, file://PLACE or a model of Fuel" in line
    assert parse_fuel_uri(uri) is None


def test_other_schemes_stay_in_the_cache(list_problems: ListProblems, wrap_in_world: Text, home: Path) -> None:
    """Two slashes after the name do not make the file absolute, and the name is one folder."""
    add_model(home / ".gz/fuel", "1")
    file = home / "model.sdf"
    file.write_text('<sdf version="1.9"><model name="m"><link name="l"/></model></sdf>', encoding="utf-8")
    for uri in (f"model://MBARI Tethys LRAUV/{file}", "model://../models/MBARI Tethys LRAUV"):
        assert "is not found" in list_problems(wrap_in_world(make_include(uri)))[0]


@pytest.mark.parametrize("name", ["MBARI Tethys LRAUV", "MBARI%20Tethys%20LRAUV", "mbari tethys lrauv/tip"])
@pytest.mark.parametrize("place", [".gz/fuel", ".ignition/fuel"])
def test_highest_version_is_used(load: Load, wrap_in_world: Text, home: Path, name: str, place: str) -> None:
    for version in ("1", "9", "10"):
        add_model(home / place, version)
    (home / place / "fuel.gazebosim.org" / "accurrent" / "models" / "mbari tethys lrauv" / "notes").mkdir()
    world = load(wrap_in_world(make_include(f"{FUEL}/accurrent/models/{name}")))
    assert [link.name for link in world.models[0].links] == ["tethys::v10"]


def test_version_of_the_uri_is_used(load: Load, list_problems: ListProblems, wrap_in_world: Text, home: Path) -> None:
    for version in ("1", "2"):
        add_model(home / ".gz/fuel", version)
    uri = f"{FUEL}/accurrent/models/MBARI Tethys LRAUV"
    assert load(wrap_in_world(make_include(f"{uri}/1"))).models[0].links[0].name == "tethys::v1"
    assert "3; is not in the cache of Fuel; searched" in list_problems(wrap_in_world(make_include(f"{uri}/3")))[0]


@pytest.mark.parametrize("variable", CACHE_VARIABLES)
def test_cache_of_the_environment_comes_first(
    load: Load, wrap_in_world: Text, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    add_model(home / ".gz/fuel", "9")
    add_model(tmp_path / "cache", "1", server="fuel.ignitionrobotics.org")
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    world = load(wrap_in_world(make_include(f"{FUEL}/accurrent/models/MBARI Tethys LRAUV")))
    assert world.models[0].links[0].name == "tethys::v1"


def test_both_names_of_the_server_are_one(load: Load, wrap_in_world: Text, home: Path) -> None:
    add_model(home / ".gz/fuel", "1")
    old = "https://fuel.ignitionrobotics.org/1.0/accurrent/models/MBARI Tethys LRAUV"
    assert load(wrap_in_world(make_include(old))).models[0].name == "tethys"


@pytest.mark.parametrize(
    "uri",
    [
        f"{FUEL}/accurrent/models/MBARI Tethys LRAUV/1/files/meshes/hull.obj",
        f"{FUEL}/accurrent/models/MBARI Tethys LRAUV/tip/files/meshes/hull.obj",
        "model://mbari tethys lrauv/meshes/hull.obj",
        "meshes/hull.obj",
    ],
)
def test_meshes_are_found(load: Load, wrap_in_world: Text, home: Path, uri: str) -> None:
    """A ray of 9 m hits a triangle 4 m below it. The mesh is a file of the model in the cache."""
    shape = f"<geometry><mesh><uri>{uri}</uri></mesh></geometry>"
    bed = f'<link name="bed"><collision name="c">{shape}</collision></link>'
    folder = add_model(home / ".gz/fuel", "1", bed)
    (folder / "meshes").mkdir()
    (folder / "meshes" / "hull.obj").write_text("v -9 -9 0\nv 9 -9 0\nv 0 9 0\nf 1 2 3\n", encoding="utf-8")
    beam = "<range><max>9</max><beam><axis>0 0 -1</axis></beam></range>"
    eye = f'<sensor name="eye" type="range"><update_rate>10</update_rate>{beam}</sensor>'
    auv = f'<model name="auv"><pose>0 0 4 0 0 0</pose><link name="base">{eye}</link></model>'
    world = load(wrap_in_world(auv + make_include("model://MBARI Tethys LRAUV")))
    run = ns.simulate(world, 0.1, seed=1)
    assert run["eye"].ideal["range"][0] == pytest.approx(4.0, rel=1e-6, abs=0.0)


@pytest.mark.usefixtures("home")
def test_missing_model_has_remedies(list_problems: ListProblems, load: Load, wrap_in_world: Text) -> None:
    text = wrap_in_world(make_include(f"{FUEL}/OpenRobotics/models/Sun"))
    (line,) = list_problems(text)
    assert "searched home/.gz/fuel/fuel.gazebosim.org/openrobotics/models/sun, home/.ignition/fuel/" in line
    command = "`gz fuel download -u https://fuel.gazebosim.org/1.0/OpenRobotics/models/Sun`"
    assert f"nothing is downloaded: get the model by {command}, or skip it by --skip-missing" in line
    (note,) = load(text, missing="skip").notes
    assert "is not in the cache of Fuel; skipped with its content" in note.reason
    assert "--skip-missing" not in note.reason


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("uri", ["fuel://fuel.gazebosim.org/1.0/o/models/My Sub/2", f"{FUEL}/o/models/My Sub/2"])
@pytest.mark.parametrize("file", ["", "/files/meshes/hull.obj"])
def test_command_for_a_missing_model_can_be_copied(
    list_problems: ListProblems, wrap_in_world: Text, uri: str, file: str
) -> None:
    """The URL of the model, which `gz fuel download` accepts, in quotes if it has blanks."""
    (line,) = list_problems(wrap_in_world(make_include(uri + file)))
    assert "by `gz fuel download -u 'https://fuel.gazebosim.org/1.0/o/models/My Sub/2'`, or skip" in line


def test_real_world_of_gz_sim_runs_with_a_model_of_the_cache(shared_data: Path, home: Path) -> None:
    """gz-sim's DVL world includes a model of Fuel and adds its DVL by `<experimental:params>`."""
    fins = "".join(
        f'<link name="{name}"/><joint name="{name}_joint" type="revolute"><parent>base_link</parent>'
        f"<child>{name}</child><axis><xyz>0 0 1</xyz></axis></joint>"
        for name in ("horizontal_fins", "vertical_fins", "propeller")
    )
    add_model(home / ".gz/fuel", "4", f'<link name="base_link"/>{fins}')
    world = ns.load(shared_data / "gz-sim" / "dvl_world.sdf")
    dvl = world.sensor("teledyne_pathfinder_dvl")
    assert (dvl.name, dvl.topic, dvl.rate) == ("tethys::base_link::teledyne_pathfinder_dvl", "/dvl/velocity", 1.0)
    assert dvl.pose.position == (-0.6, 0.0, -0.16)
    assert dvl.pose.rotation == pytest.approx((0.0, 0.0, 0.0, 1.0), rel=0.0, abs=1e-15)  # 180 degrees about z
    run = ns.simulate(world, 3.0, seed=1)
    # 80 m deep above a flat floor at 100 m: 19.84 m below the DVL, each beam 30 degrees from down
    assert run["teledyne_pathfinder_dvl"].ideal["beam_range"][-1] == pytest.approx(19.84 / 0.75**0.5, rel=2e-3, abs=0.0)
