"""What an interactive session shows: names for completion, short reprs, tables for notebooks, names by endings."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import SimulationError, UnknownNameError
from navsense.core.names import find_similar_names, resolve_name, suggest_name
from navsense.core.summaries import MAX_HTML_ROWS, Summary, format_value
from navsense.description import write_kalibr
from navsense.environment.terrain.primitives import Box
from navsense.motion.stationary import Stationary
from navsense.recordings.recorded_motion import load_motion
from navsense.sensors import SENSORS, Imu, Magnetometer
from navsense.testing import example_world, iter_variants
from navsense.world import World

MODULES = [name for name in ns.__all__ if inspect.ismodule(getattr(ns, name))]


@pytest.fixture(scope="module")
def world() -> World:
    return example_world(("imu", Imu.example_spec()), ("compass", Magnetometer.example_spec()))


@pytest.fixture(scope="module")
def run(world: World) -> Any:
    return ns.simulate(world, 0.2, seed=1)


class TableParser(HTMLParser):
    """Reads the cells of a table, and checks that the elements are nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption, self._open = "", list[str]()
        self.feed(text)
        self.close()
        assert not self._open, f"{self._open} are not closed"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] == "caption":
            self.caption += data
        else:
            assert self._open[-1] in ("td", "th")
            self.rows[-1][-1] += data


def test_dir_lists_the_public_names_before_they_are_imported() -> None:
    code = "import navsense as ns; print(*dir(ns)); print(ns.sensors and 1); print(*dir(ns.sensors))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names, _, sensors = output.splitlines()
    assert set(names.split()) == {*ns.__all__, "__version__", "__doc__"}
    assert sensors.split() == sorted(ns.sensors.__all__)


def test_type_checkers_know_the_public_names() -> None:
    """`__all__` is computed, so type checkers take the names from imports that do not run."""
    tree = ast.parse(Path(ns.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    aliases = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}
    modules = {name: ("navsense", name) for name in MODULES}
    assert aliases == modules | {name: (ns._HOME[name], name) for name in ns._HOME}


@pytest.mark.parametrize("name", MODULES)
def test_dir_of_a_module_lists_its_public_names(name: str) -> None:
    module = getattr(ns, name)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


def test_reprs_are_short(world: World, run: Any, tmp_path: Path) -> None:
    run.save(tmp_path / "run.npz")
    recording = ns.open(tmp_path / "run.npz")
    sim = ns.live(world)
    step = sim.step()
    assert repr(world) == (
        "<World laws: 1 model, 2 sensors, 1 clock>\n"
        "  robot::arm::imu      imu           200 Hz  clock\n"
        "  robot::arm::compass  magnetometer  200 Hz  clock"
    )
    assert repr(world.models[0]) == "<Model robot: 2 links, Trajectory>"
    assert repr(world.sensor("imu")) == "<MountedSensor robot::arm::imu: imu, 200 Hz, clock robot::base::clock>"
    assert repr(world.link("base")) == "Link(name='robot::base')"
    assert repr(run).startswith("<Run laws: 0.2 s, 2 sensors>\n  robot::arm::imu      imu           40 samples  ")
    assert repr(recording).startswith("<Dataset laws: 2 sensors>\n")
    assert repr(run.session) == "<Session of laws: 0.2 s, seed 1, 1 run>"
    field = run["compass"]["field"][0]
    assert repr(run["compass"]) == (
        f"<Reading robot::arm::compass: magnetometer, 40 samples>\n"
        f"  field  (40, 3)  T  {' '.join(f'{value:.6g}' for value in field)}"
    )
    valid = np.arange(40) >= 3
    first = " ".join(f"{value:.6g}" for value in run["compass"]["field"][3])
    assert repr(replace(run["compass"], valid=valid)).endswith(first)
    assert repr(sim) == "<LiveRun laws: 0 s, 2 sensors, open>"
    assert repr(step) == "<Step to 0 s: imu, compass>"
    assert repr(sim.sensor("imu")) == "<LiveSensor robot::arm::imu: imu, 200 Hz, on>"
    assert repr(sim.clock("clock")) == "<LiveClock robot::base::clock at 0 s>"
    sim.close()
    assert repr(sim).endswith("closed>")
    shown = (world, run, recording, run["imu"], run.truth["robot"], sim, step, *world.models, *world.sensors)
    for one in shown:
        assert max(map(len, repr(one).splitlines())) <= 130
        assert len(repr(one).splitlines()) <= 10


def test_specifications_show_the_fields_that_differ_from_their_defaults() -> None:
    assert repr(ns.Noise()) == "Noise()"
    assert repr(ns.Noise(stddev=0.5, classic=True)) == "Noise(stddev=0.5, classic=True)"
    noise = ns.Noise(stddev=0.001, bias_stddev=0.02)
    spec = ns.sensors.Imu(angular_velocity_x=noise, angular_velocity_y=noise, angular_velocity_z=ns.Noise(mean=1.0))
    assert repr(spec) == (
        "Imu(\n"
        "    angular_velocity_x=angular_velocity_y=Noise(stddev=0.001, bias_stddev=0.02),\n"
        "    angular_velocity_z=Noise(mean=1.0),\n"
        ")"
    )
    assert repr(Box((1.0, 2.0, 3.0))) == "Box(size=(1.0, 2.0, 3.0))"
    assert repr(Stationary()) == "Stationary()"
    assert repr(ns.Pose((1.0, 0.0, 0.0))) == "Pose(position=(1.0, 0.0, 0.0))"


@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.__name__)
def test_specifications_that_differ_have_different_reprs(kind: Any) -> None:
    spec = kind.example_spec()
    shown = {path: repr(variant) for path, variant in iter_variants(spec)}
    assert shown
    assert not [path for path, text in shown.items() if text == repr(spec)]
    assert repr(spec) == repr(kind.example_spec())


@pytest.mark.parametrize("part", ["stim300", "bmi088"])
def test_a_short_repr_builds_the_specification_again(part: str) -> None:
    noise = Imu.from_part(part).angular_velocity_x
    assert eval(repr(noise), {"Noise": ns.Noise, "inf": float("inf")}) == noise  # noqa: S307 - our own text
    assert len(repr(Imu.from_part(part)).splitlines()) < 25


def test_long_values_are_shown_by_their_start_or_shape() -> None:
    assert format_value(tuple(range(100))) == "(0, 1, 2, ... 97 more)"
    assert format_value([1.0]) == "[1.0]"
    assert format_value(("a",)) == "('a',)"
    assert format_value(np.zeros((20, 3))) == "<array (20, 3) of float64>"
    assert format_value(ns.sensors.TrackMode.NEVER) == "TrackMode.NEVER"


def test_notebooks_show_tables(world: World, run: Any, tmp_path: Path) -> None:
    run.save(tmp_path / "run.npz")
    table = TableParser(world._repr_html_())
    assert table.caption == "World laws: 1 model, 2 sensors, 1 clock"
    assert table.rows[0] == ["sensor", "type", "rate", "clock"]
    assert table.rows[1:] == [
        ["robot::arm::imu", "imu", "200 Hz", "clock"],
        ["robot::arm::compass", "magnetometer", "200 Hz", "clock"],
    ]
    for one in (run, ns.open(tmp_path / "run.npz")):
        table = TableParser(one._repr_html_())
        assert [row[0] for row in table.rows] == ["sensor", *run]
    table = TableParser(run["imu"]._repr_html_())
    assert table.rows[0] == ["array", "shape", "unit", "first valid row"]
    assert ["angular_velocity", "(40, 3)", "rad/s"] in [row[:3] for row in table.rows]
    assert TableParser(ns.Noise(stddev=0.5)._repr_html_()).rows == [["field", "value"], ["stddev", "0.5"]]
    assert TableParser(ns.Noise()._repr_html_()).caption == "Noise (defaults)"
    assert ["rate", "200.0"] in TableParser(world.sensor("imu")._repr_html_()).rows


def test_tables_escape_names_and_truncate() -> None:
    table = TableParser(Summary("World", "<a> & b", ("name",), [(f"<b>{i}",) for i in range(60)]).format_html())
    assert table.caption == "World <a> & b"
    assert table.rows[1] == ["<b>0"]
    assert table.rows[-1] == [f"... and {60 - MAX_HTML_ROWS} more"]
    assert Summary("World", "x" * 200).format_title() == f"<World {'x' * 89}...>"


def test_endings_of_names_are_accepted_everywhere(world: World, run: Any, tmp_path: Path) -> None:
    assert run["imu"] is run.readings["arm::imu"] is run["robot::arm::imu"]
    assert world.sensor("imu") is world.sensors[0]
    assert world.model("robot") is world.models[0]
    assert world.link("arm") is world.models[0].link("arm") is world.models[0].links[1]
    assert world.clock("clock") is world.clocks[0]
    assert world.link("robot") is world.link("base")  # the canonical link, as in `truth`
    nested = example_world(("imu", Imu()))
    moved = ns.simulate(nested, 0.1, motion={"robot": Stationary(ns.Pose((0.0, 0.0, 5.0)))})
    assert moved.truth["arm"].position[0, 2] == 5.0
    assert write_kalibr(world, str(tmp_path / "imu.yaml"), "imu").read_text() != ""
    run.save(tmp_path / "run.npz")
    recorded = ns.open(tmp_path / "run.npz").truth
    assert recorded["robot"] is recorded["base"] is recorded["robot::base"]
    replay = load_motion(f"{tmp_path / 'run.npz'}:arm")
    moved_to, position = replay.at(np.zeros(1)).position_w[0], run.truth["arm"].position[0]
    assert np.allclose(moved_to, position, rtol=0.0, atol=1e-12)  # interpolation of 3 m


def test_unknown_names_have_a_suggestion(world: World, run: Any, tmp_path: Path) -> None:
    for find in (run.__getitem__, world.sensor, ns.live(world).sensor):
        with pytest.raises(UnknownNameError, match=r"compas; must be one of .*; did you mean robot::arm::compass\?"):
            find("compas")
    with pytest.raises(UnknownNameError, match=r"link: bse; .*did you mean robot::base\?"):
        world.link("bse")
    with pytest.raises(UnknownNameError, match=r"model: robbot; .*did you mean robot\?"):
        world.model("robbot")
    with pytest.raises(UnknownNameError, match=r"array: feild; must be one of field; did you mean field\?"):
        run["compass"]["feild"]
    with pytest.raises(SimulationError, match=r"motion of model: robt; .*did you mean robot\?"):
        ns.simulate(world, 0.1, motion={"robt": Stationary()})
    with pytest.raises(SimulationError, match=r"IMU for --kalibr: imo; .*did you mean robot::arm::imu\?"):
        write_kalibr(world, str(tmp_path / "imu.yaml"), "imo")
    with pytest.raises(UnknownNameError, match=r"driven model or link: amr; .*did you mean robot::arm\?"):
        ns.live(world, driven=["amr"])


def test_similar_names_are_found_in_any_case_of_letters() -> None:
    names = ("robot::base::imu", "robot::base::gps", "Compass")
    assert find_similar_names("IMU", names) == ["robot::base::imu"]
    assert find_similar_names("compas", names) == ["Compass"]
    assert suggest_name("robot::base::gsp", names, 2) == "did you mean robot::base::gps or robot::base::imu?"
    assert suggest_name("camera_front", names) == suggest_name("x" * 100, names) == suggest_name("", names) == ""
    assert resolve_name("odom", ("/a/odom", "/imu"), "topic", separator="/") == "/a/odom"
