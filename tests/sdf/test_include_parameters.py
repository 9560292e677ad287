"""`<experimental:params>` of an include. `test_libsdformat` compares the poses and the verdicts with libsdformat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from navsense import sdf
from navsense.core.errors import SdfError
from navsense.environment.terrain.primitives import Box, Sphere
from navsense.sensors import Magnetometer
from navsense.world import World

pytestmark = pytest.mark.requirement("SDF-1")

MODEL = """<sdf version="1.9"><model name="auv">
<link name="hull"><sensor name="imu" type="imu"><update_rate>10</update_rate><topic>imu</topic></sensor>
<collision name="box"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
<link name="fin"/>
</model></sdf>"""


@pytest.fixture
def load_params(tmp_path: Path) -> Callable[..., World]:
    """Return a function that loads a world with an include of `MODEL` and the given parameters, from line 4 on."""

    def load(params: str, *, more: str = "", **options: str) -> World:
        (tmp_path / "auv.sdf").write_text(MODEL, encoding="utf-8")
        tag = "experimental:params"
        include = f"<include><uri>auv.sdf</uri>\n<{tag}>\n{params}</{tag}></include>"
        text = f'<sdf version="1.9"><world name="w">\n{include}{more}</world></sdf>'
        (tmp_path / "dive.sdf").write_text(text, encoding="utf-8")
        return sdf.load(tmp_path / "dive.sdf", **options)

    return load


def test_misspelt_parameters_are_a_warning(tmp_path: Path) -> None:
    """Another element with a prefix belongs to another program."""
    (tmp_path / "auv.sdf").write_text(MODEL, encoding="utf-8")
    include = "<include><uri>auv.sdf</uri><experimental:parms/><gz:parameters/></include>"
    (tmp_path / "dive.sdf").write_text(f'<sdf version="1.9"><world name="w">{include}</world></sdf>', encoding="utf-8")
    notes = [(note.kind, note.what, note.reason) for note in sdf.load(tmp_path / "dive.sdf").notes]
    reason = "is ignored: it is unknown here; did you mean experimental:params?"
    assert ("warning", "<include><experimental:parms>", reason) in notes
    assert ("foreign", "<include><gz:parameters>", "belongs to another program") in notes


def test_each_action_has_its_effect(load_params: Callable[..., World]) -> None:
    world = load_params(
        '<sensor element_id="hull::imu" action="modify" name="gyro"><update_rate>50</update_rate></sensor>'
        '<sensor element_id="fin" action="add" name="compass" type="magnetometer"><magnetometer><x>'
        '<noise type="gaussian"><stddev>1e-7</stddev></noise></x></magnetometer></sensor>'
        '<collision element_id="hull::box" action="replace" name="ball"><geometry><sphere><radius>2</radius></sphere>'
        "</geometry></collision>"
    )
    gyro, compass = world.sensors
    assert (gyro.name, gyro.rate, gyro.topic) == ("auv::hull::gyro", 50.0, "/imu")
    assert isinstance(compass.spec, Magnetometer)
    assert (compass.name, compass.spec.x.stddev) == ("auv::fin::compass", 1e-7)
    (ball,) = world.solids
    assert (ball.name, ball.shape) == ("auv::hull::ball", Sphere(2.0))
    assert load_params('<sensor element_id="hull::imu" action="remove"/>').sensors == ()


def test_removed_value_has_its_default(load_params: Callable[..., World]) -> None:
    """An empty element of `modify` resets a value, as `remove` does; without a rate that of the physics is used."""
    for params in (
        '<sensor element_id="hull::imu" action="modify"><update_rate/></sensor>',
        '<sensor element_id="hull::imu" action="remove"><update_rate/></sensor>',
        '<sensor element_id="hull::imu"><update_rate action="remove"/></sensor>',
    ):
        assert load_params(params).sensors[0].rate == 1000.0


def test_other_includes_of_the_file_are_unchanged(load_params: Callable[..., World]) -> None:
    more = "<include><uri>auv.sdf</uri><name>other</name></include>"
    params = '<link element_id="hull" action="modify"><sensor name="imu"><topic>changed</topic></sensor></link>'
    world = load_params(params, more=more)
    assert [sensor.topic for sensor in world.sensors] == ["/changed", "/imu"]


def test_actions_apply_in_order(load_params: Callable[..., World]) -> None:
    world = load_params(
        '<link element_id="" action="add" name="mast"/>'
        '<sensor element_id="mast" action="add" name="top" type="imu"><update_rate>9</update_rate></sensor>'
        '<sensor element_id="mast::top" action="modify"><update_rate>5</update_rate></sensor>'
    )
    assert world.sensor("top").rate == 5.0


def test_elements_of_merged_models_are_found(tmp_path: Path) -> None:
    (tmp_path / "auv.sdf").write_text(MODEL, encoding="utf-8")
    middle = '<include merge="true"><uri>auv.sdf</uri></include>'
    (tmp_path / "rig.sdf").write_text(f'<sdf version="1.9"><model name="rig">{middle}</model></sdf>', encoding="utf-8")
    params = '<sensor element_id="hull::imu" action="modify"><update_rate>7</update_rate></sensor>'
    tag = "experimental:params"
    text = (
        f'<sdf version="1.9"><world name="w"><include><uri>rig.sdf</uri><{tag}>{params}</{tag}></include></world></sdf>'
    )
    (tmp_path / "dive.sdf").write_text(text, encoding="utf-8")
    assert sdf.load(tmp_path / "dive.sdf").sensor("rig::hull::imu").rate == 7.0


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ('<link action="remove"/>', "<link element_id>: missing; must be given"),
        ('<link element_id="fin::" action="remove"/>', "<link element_id>: fin::; must end in a name"),
        (
            '<sensor element_id="hull::imo" action="remove"/>',
            "<sensor element_id>: hull::imo; must name an element of the included model; did you mean hull::imu?",
        ),
        (
            '<link element_id="hull::imu" action="modify"><pose>0 0 0 0 0 0</pose></link>',
            "<link element_id>: hull::imu; is not a <link>; write <sensor>, as in the model",
        ),
        (
            '<link element_id="fin" action="modify"><gravity>0</gravity></link>',
            '<gravity>; is not in <link name="fin">; add it by <gravity action="add">',
        ),
        ('<link element_id="fin" action="rename"/>', "<link action>: rename; must be one of add, modify, remove"),
        ('<sensor element_id="hull" action="add" type="imu"/>', "<sensor name>: missing; must be given"),
        ('<sensor element_id="hull" action="add" name="imu" type="imu"/>', "<sensor name>: imu; hull has this element"),
        ('<senser element_id="hull" action="add" name="n"/>', "<senser action>; is not an element of <link>; did you"),
        (
            '<sensor element_id="hull::imu" action="modify"><always_on>1</always_on></sensor>',
            '<always_on>; is not in <sensor name="imu">',
        ),
        (
            '<sensor element_id="hull::imu" action="remove"><always_on/></sensor>',
            '<always_on>; is not in <sensor name="imu">',
        ),
        ('<link element_id="hull"><sensor action="replace" type="imu"/></link>', "<sensor name>: missing"),
        ('<link element_id="fin"><pose>8 0 0 0 0 0</pose></link>', "<pose action>: missing; must be one of add"),
        (
            '<sensor element_id="fin" action="add" name="n" type="imu"><imu><nose/></imu></sensor>',
            "<imu><nose>; is not allowed here",
        ),
    ],
)
def test_invalid_changes_are_errors_with_their_line(
    load_params: Callable[..., World], params: str, problem: str
) -> None:
    with pytest.raises(SdfError) as caught:
        load_params(params)
    assert str(caught.value).rpartition("/dive.sdf:")[2].startswith(f"4: {problem}")


def test_all_invalid_changes_are_reported(load_params: Callable[..., World]) -> None:
    with pytest.raises(SdfError) as caught:
        load_params('<link element_id="a" action="remove"/>\n<link element_id="b" action="remove"/>')
    assert [error.where and error.where.line for error in caught.value.problems] == [4, 5]


def test_change_of_a_skipped_model_is_a_warning(tmp_path: Path) -> None:
    """The element may be in a nested include whose file is missing."""
    nested = '<model name="rig"><link name="base"/><include><uri>model://lost</uri></include></model>'
    (tmp_path / "rig.sdf").write_text(f'<sdf version="1.9">{nested}</sdf>', encoding="utf-8")
    tag = "experimental:params"
    params = f'<{tag}><sensor element_id="arm::imu" action="remove"/></{tag}>'
    text = f'<sdf version="1.9"><world name="w"><include><uri>rig.sdf</uri>{params}</include></world></sdf>'
    (tmp_path / "dive.sdf").write_text(text, encoding="utf-8")
    notes = [note for note in sdf.load(tmp_path / "dive.sdf", missing="skip").notes if "element_id" in note.what]
    assert [note.reason for note in notes] == ["is ignored: the element may be in an include that is skipped"]


def test_shape_of_a_collision_is_modified(load_params: Callable[..., World]) -> None:
    size = "<geometry><box><size>3 2 1</size></box></geometry>"
    (solid,) = load_params(f'<collision element_id="hull::box" action="modify">{size}</collision>').solids
    assert solid.shape == Box((3.0, 2.0, 1.0))
