"""xacro: arguments, includes and packages, line numbers, and programs that do not terminate."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from navsense import sdf
from navsense.core.errors import SdfError
from navsense.sdf.urdf import xacro
from navsense.world import World

pytestmark = pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="needs the extra xacro")

OPEN = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="auv">'

Load = Callable[..., World]


@pytest.fixture
def load_robot(tmp_path: Path) -> Load:
    """Return a function that loads a robot from its content, which starts on line 2."""

    def load_body(body: str, **options: object) -> World:
        path = tmp_path / "auv.urdf.xacro"
        path.write_text(f"{OPEN}\n{body}\n</robot>\n", encoding="utf-8")
        return sdf.load(path, **options)

    return load_body


@pytest.fixture
def list_problems(load_robot: Load, tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that lists the problems of a content, without the folder of the file."""

    def read_problems(body: str, **options: object) -> list[str]:
        with pytest.raises(SdfError) as caught:
            load_robot(body, **options)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return read_problems


LEGS = """<xacro:arg name="legs" default="2"/><xacro:arg name="rate" default="50"/>
<xacro:property name="reach" value="${3 * 0.5}"/>
<link name="base"/>
<xacro:macro name="leg" params="number *origin **inside">
  <link name="leg_${number}"/>
  <joint name="hip_${number}" type="fixed"><parent link="base"/><child link="leg_${number}"/>
    <xacro:insert_block name="origin"/></joint>
  <gazebo reference="leg_${number}"><xacro:insert_block name="inside"/></gazebo>
  <xacro:if value="${number + 1 &lt; int(xacro.arg('legs'))}">
    <xacro:leg number="${number + 1}"><origin xyz="${reach} ${number + 1} 0"/><inside/></xacro:leg>
  </xacro:if>
</xacro:macro>
<xacro:leg number="0">
  <origin xyz="${reach} 0 0" rpy="0 0 ${pi}"/>
  <inside><sensor name="imu" type="imu"><update_rate>$(arg rate)</update_rate></sensor></inside>
</xacro:leg>"""


@pytest.mark.requirement("SDF-2")
def test_macros_and_arguments_are_expanded(load_robot: Load) -> None:
    world = load_robot(LEGS)
    links = {link.name: link.pose.position for link in world.models[0].links}
    assert links == {"auv::base": (0, 0, 0), "auv::leg_0": (1.5, 0, 0), "auv::leg_1": (1.5, 1, 0)}
    assert [(sensor.name, sensor.rate) for sensor in world.sensors] == [("auv::leg_0::imu", 50.0)]
    more = load_robot(LEGS, xacro={"legs": "4", "rate": "200"})
    assert (len(more.models[0].links), more.sensors[0].rate) == (5, 200.0)


@pytest.mark.requirement("SDF-2")
def test_invalid_arguments(list_problems: Callable[..., list[str]], tmp_path: Path) -> None:
    (line,) = list_problems('<link name="a"/>', xacro={"rate": "1"})
    assert line == "auv.urdf.xacro: xacro argument: rate; must be an <xacro:arg> of the files: there is none"
    (line,) = list_problems('<link name="a"/>\n<xacro:arg name="rate"/>')
    assert line == "auv.urdf.xacro:3: xacro: xacro:arg: missing attribute 'default'"
    (tmp_path / "plain.urdf").write_text('<robot name="a"><link name="b"/></robot>', encoding="utf-8")
    with pytest.raises(SdfError, match="xacro argument: rate; must be an <xacro:arg>"):
        sdf.load(tmp_path / "plain.urdf", xacro={"rate": "1"})


@pytest.mark.requirement("SDF-2")
def test_problems_name_the_source_text(list_problems: Callable[..., list[str]], tmp_path: Path) -> None:
    """An invalid value from a macro has the location in the file of the macro."""
    (tmp_path / "parts.xacro").write_text(
        f'{OPEN}\n<xacro:macro name="mast" params="height">\n<link name="mast"/>\n<joint name="j" type="fixed">\n'
        '<parent link="base"/><child link="mast"/>\n<origin xyz="0 0 ${height}"/></joint></xacro:macro></robot>',
        encoding="utf-8",
    )
    include = '<xacro:include filename="parts.xacro"/>\n<link name="base"/>\n<xacro:mast height="{}"/>'
    assert list_problems(include.format("high")) == [
        "parts.xacro:6: <joint><origin xyz>: 0 0 high; must be 3 finite numbers"
    ]
    assert list_problems(include.format("1").replace("base", "keel"))[0].startswith(
        "parts.xacro:5: <joint><parent link>: base; must name a link of the robot"
    )
    assert list_problems(include.format("${1 / 0}"))[0].startswith("auv.urdf.xacro:4: xacro: division by zero")
    assert list_problems(include.format("1").replace("height=", "hight="))[0] == (
        'auv.urdf.xacro:4: xacro: Invalid parameter "hight"'
    )


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<link name="a"/>\n<xacro:none/>', ":3: xacro: unknown macro name: xacro:none"),
        ('<link name="${nobody}"/>', ":2: xacro: name 'nobody' is not defined"),
        ('<link name="a"/>\n\n<xacro:include filename="none.xacro"/>', ":4: <xacro:include filename>: "),
        ('<link name="a"/>\n<xacro:include filename="pipe.xacro"/>', ":3: <xacro:include filename>: "),
        ('<link name="a"/>\n<xacro:include filename="auv.urdf.xacro"/>', ": xacro: endless recursion; a file or macro"),
        ('<link name="a"/>\n<xacro:include filename="broken.xacro"/>', "broken.xacro:2: XML: "),
        ('<link name="a"/>\n<xacro:include filename="bomb.xacro"/>', "bomb.xacro:2: <!DOCTYPE>: robot; must not"),
        ('<link name="a"/>\n<xacro:include filename="large.xacro"/>', ":3: file: too large; exceeds the limit"),
        ('<xacro:macro name="m"><xacro:m/></xacro:macro>\n<xacro:m/>', ":2: xacro: endless recursion; a file or"),
        ('<link name="a">\n<xacro:if value="maybe"/></link>', ":3: xacro: Xacro conditional"),
        ('<link name="a"/>\n<link name="$(find nowhere)"/>', ":3: $(find): nowhere; no such package; searched "),
        ('<link name="a"/>\n<link name="$(eval 1 +)"/>', ":3: xacro: "),
        ('<link name="a"/>\n<link name="${open(1)}"/>', ":3: xacro: name 'open' is not defined"),
        ("<link name=\"${'a' * 10**8}\"/>", ": xacro: too large; exceeds the limit after expansion"),
        ("<link name=\"${'a' * 10**11}\"/>", ":2: xacro: too large; exceeds"),
        ("<link name=\"${'\\x00'}\"/>", ": XML: not well-formed"),
        ('<xacro:element xacro:name="" navsense.at="x"/>', ":2: XML: duplicate attribute"),
        ('<link><xacro:attribute name="navsense.at" value="9:x"/></link>', ": <link name>: missing"),
    ],
)  # fmt: skip
def test_errors_name_the_problem(
    list_problems: Callable[..., list[str]], tmp_path: Path, body: str, problem: str
) -> None:
    os.mkfifo(tmp_path / "pipe.xacro")
    (tmp_path / "broken.xacro").write_text(f"{OPEN}\n<link></robot>", encoding="utf-8")
    (tmp_path / "bomb.xacro").write_text(
        f'<?xml version="1.0"?>\n<!DOCTYPE robot [<!ENTITY a "a">]>{OPEN}</robot>', encoding="utf-8"
    )
    (tmp_path / "large.xacro").write_bytes(OPEN.encode() + b" " * 65 * 2**20 + b"</robot>")
    lines = list_problems(body)
    assert len(lines) == 1, lines
    own = problem if problem[0] not in ": " else f"auv.urdf.xacro{problem}"
    assert lines[0].startswith(own) or (problem.startswith(": xacro: without end") and own[14:] in lines[0]), lines


@pytest.mark.requirement("SDF-2")
def test_xacro_timeout_is_an_error(list_problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xacro, "TIMEOUT", 2.0)
    (line,) = list_problems('<link name="${9**9**9}"/>')
    assert line == "auv.urdf.xacro: xacro: did not end; must end within 2 s"


@pytest.mark.requirement("SDF-2")
def test_package_paths_are_resolved(load_robot: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$(find PACKAGE) by --path, ROS 1 and ROS 2; an optional file may be missing."""
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH"):
        monkeypatch.delenv(variable, raising=False)
    for folder, link in (("src/one", "a"), ("install/share/two", "b"), ("mine/three", "c")):
        (tmp_path / folder).mkdir(parents=True)
        text = f'{OPEN}<link name="{link}"/></robot>'
        (tmp_path / folder / "part.xacro").write_text(text, encoding="utf-8")
    body = """<xacro:include filename="$(find one)/part.xacro"/>
<xacro:include filename="$(find two)/part.xacro"/>
<xacro:include filename="${'$(find three)'}/part.xacro"/>
<xacro:include filename="none.xacro" optional="true"/>
<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="fixed"><parent link="a"/><child link="c"/></joint>"""
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "src"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    assert len(load_robot(body, path=tmp_path / "mine").models[0].links) == 3
    with pytest.raises(SdfError, match=r"\(find\): three; no such package; searched .*; name the folder that holds it"):
        load_robot(body)


@pytest.mark.requirement("SDF-2")
def test_warnings_are_reported(load_robot: Load) -> None:
    world = load_robot('<link name="a"/>\n<xacro:include filename="none*.xacro"/>')
    (note,) = world.notes
    assert (note.kind, note.what, note.where.line) == ("warning", "xacro", 3)
    assert "matched no files" in note.reason


@pytest.mark.requirement("SDF-2")
def test_xacro_worlds_and_includes(tmp_path: Path) -> None:
    """A world and its robots can use xacro. Both have the arguments."""
    (tmp_path / "r.urdf.xacro").write_text(
        f'{OPEN}<xacro:arg name="n" default="a"/><link name="$(arg n)"/></robot>', encoding="utf-8"
    )
    (tmp_path / "w.sdf.xacro").write_text(
        '<sdf version="1.9" xmlns:xacro="http://www.ros.org/wiki/xacro"><world name="w">\n'
        '<xacro:macro name="two" params="name"><include><uri>r.urdf.xacro</uri><name>${name}</name></include>'
        '</xacro:macro><xacro:two name="one"/><xacro:two name="other"/></world></sdf>',
        encoding="utf-8",
    )
    world = sdf.load(tmp_path / "w.sdf.xacro", xacro={"n": "b"})
    assert [model.canonical_link for model in world.models] == ["one::b", "other::b"]


@pytest.mark.requirement("SDF-2")
def test_missing_xacro_is_an_error_when_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without xacro, an error names the package to install; a file without macros does not need it."""
    (tmp_path / "xacro.py").write_text("raise ImportError('No module named xacro')", encoding="utf-8")
    (tmp_path / "a.xacro").write_text(f'{OPEN}<link name="a"/></robot>', encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(
        SdfError, match=r"a\.xacro: xacro: No module named xacro; must be installed; pip install 'navsense"
    ):
        sdf.load(tmp_path / "a.xacro")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(SdfError, match="xacro: failed"):
        sdf.load(tmp_path / "a.xacro")
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="a"/></robot>', encoding="utf-8")
    assert sdf.load(tmp_path / "a.urdf").models


def test_invalid_file(tmp_path: Path) -> None:
    with pytest.raises(SdfError, match=r"none\.xacro: file: does not exist"):
        sdf.load(tmp_path / "none.xacro")
    (tmp_path / "utf16.xacro").write_bytes(
        f'<?xml version="1.0" encoding="UTF-16"?>{OPEN}<link name="ä"/></robot>'.encode("utf-16")
    )
    assert sdf.load(tmp_path / "utf16.xacro").models[0].canonical_link == "auv::ä"


ESCAPE = (
    "${(lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['system']('touch {}'))()}"
)
"""An expression that leaves the sandbox of xacro and creates a file with a shell command."""


def write_xacro_files(folder: Path, proof: Path) -> dict[str, Path]:
    """Write files that use xacro and create the file `proof` when expanded; return them by name."""
    link = f'<link name="l{ESCAPE.replace("{}", str(proof))}"/>'
    robot = f'{OPEN}<xacro:property name="x" value="1"/>{link}</robot>'
    world = '<sdf version="1.9"><world name="w">\n<include><uri>{}</uri></include></world></sdf>'
    model = f'<sdf version="1.9" xmlns:xacro="x"><model name="m">\n<xacro:if value="1"/>{link}</model></sdf>'
    expression = model.replace('<xacro:if value="1"/>', "")
    (folder / "pack").mkdir()
    (folder / "pack" / "model.config").write_text(
        '<model><sdf version="1.9">model.xacro</sdf></model>', encoding="utf-8"
    )
    texts = {
        "robot.xacro": robot,
        "renamed.urdf": robot,
        "model.sdf": model,
        "pack/model.xacro": model,
        "include.sdf": world.format("robot.xacro"),
        "deep.sdf": world.format("model.sdf"),
        "expression.sdf": expression,
        "packed.sdf": world.format("pack"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "alias.sdf").symlink_to("robot.xacro")
    return {name: folder / name for name in (*texts, "alias.sdf")}


@pytest.mark.requirement("SDF-2")
@pytest.mark.parametrize(
    "name", ["renamed.urdf", "model.sdf", "expression.sdf", "include.sdf", "deep.sdf", "packed.sdf", "alias.sdf"]
)
def test_world_file_runs_no_code_without_consent(tmp_path: Path, name: str) -> None:
    """Only the name from the user decides. An include, a link or a xacro argument is not consent."""
    proof = tmp_path / "proof"
    path = write_xacro_files(tmp_path, proof)[name]
    with pytest.raises(SdfError) as caught:
        sdf.load(path, xacro={"a": "b"})
    assert any(
        "only a file that you name as *.xacro may use xacro" in str(problem) for problem in caught.value.problems
    )
    assert any("give --expand-xacro (in Python expand_xacro=True)" in str(problem) for problem in caught.value.problems)
    assert not proof.exists()
    assert sdf.load(path, expand_xacro=True).models
    assert proof.exists()


@pytest.mark.requirement("SDF-2")
def test_option_expands_expressions_without_the_namespace(tmp_path: Path) -> None:
    """Some URDF files have only `$(optenv NAME VALUE)`; without the option it is a text."""
    gazebo = '<gazebo reference="l"><sensor name="s" type="imu"><update_rate>$(optenv NAVSENSE_RATE 50)</update_rate>'
    text = f'<robot name="r"><link name="l"/>{gazebo}</sensor></gazebo></robot>'
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    assert sdf.load(tmp_path / "r.urdf", expand_xacro=True).sensors[0].rate == 50.0
    with pytest.raises(SdfError, match="must be a finite number"):
        sdf.load(tmp_path / "r.urdf")


@pytest.mark.requirement("SDF-2")
def test_xacro_file_name_is_consent_to_run_xacro(tmp_path: Path) -> None:
    """With consent, the expression of the tests above runs."""
    proof = tmp_path / "proof"
    assert sdf.load(write_xacro_files(tmp_path, proof)["robot.xacro"]).models
    assert proof.exists()
