from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from navsense.core.pose import from_rpy
from navsense.description import describe
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.names import normalize_topic
from navsense.sdf.parse.sensor import TYPE_ELEMENT_PARSERS
from navsense.sdf.schema import UNSIMULATED_TYPES
from navsense.sensors import Magnetometer
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]


def make_sensor(body: str = "", name: str = "mag", kind: str = "magnetometer") -> str:
    return f'<sensor name="{name}" type="{kind}">{body}</sensor>\n'


@pytest.mark.requirement("MAG-3")
def test_magnetometer_axes_are_read(load: Load, wrap_in_link: Text) -> None:
    axes = "".join(f'<{a}><noise type="gaussian"><stddev>{i}e-8</stddev></noise></{a}>' for i, a in enumerate("xyz", 1))
    (found,) = load(wrap_in_link(make_sensor(f"<magnetometer>{axes}</magnetometer>"))).sensors
    assert found.spec == Magnetometer(Noise(stddev=1e-8), Noise(stddev=2e-8), Noise(stddev=3e-8))
    (found,) = load(wrap_in_link(make_sensor("<magnetometer><y/></magnetometer>"))).sensors
    assert found.spec == Magnetometer(NO_NOISE, NO_NOISE, NO_NOISE)
    (found,) = load(wrap_in_link(make_sensor())).sensors
    assert found.spec == Magnetometer()


def test_mounting_is_read(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_sensor("<pose>1 2 3 0 0 0.5</pose><update_rate>50</update_rate>")))
    (found,) = world.sensors
    assert (found.name, found.model, found.link) == ("auv::base::mag", "auv", "auv::base")
    assert found.pose.position == (1.0, 2.0, 3.0)
    assert found.pose.rotation == from_rpy(0.0, 0.0, 0.5)
    assert (found.rate, found.clock) == (50.0, None)
    assert found.topic == "/world/ocean/model/auv/link/base/sensor/mag/magnetometer"
    assert found.frame == "auv::base::mag"
    assert str(found.where).endswith("dive.sdf:5")


def test_sensor_names_in_nested_models(load: Load, wrap_in_world: Text) -> None:
    text = '<model name="a"><model name="b"><link name="l">' + make_sensor(kind="imu") + "</link></model></model>"
    (found,) = load(wrap_in_world(text)).sensors
    assert (found.name, found.model, found.link) == ("a::b::l::mag", "a", "a::b::l")
    assert found.topic == "/world/ocean/model/a/model/b/link/l/sensor/mag/imu"


@pytest.mark.parametrize(
    ("step", "rate", "expected"),
    [
        (None, None, 1000.0),
        ("0.001", "0", 1000.0),
        ("0.003", "0", 1 / 0.003),
        ("0.004", None, 250.0),
        ("1e-7", None, 1e7),
        ("1e-6", None, 1e6),
        ("0.3", "30", 30.0),
        ("0.3", "0.001", 0.001),
        ("0.3", "1e7", 1e7),
    ],
)
def test_rate_is_read(load: Load, wrap_in_link: Text, step: str | None, rate: str | None, expected: float) -> None:
    text = wrap_in_link(make_sensor("" if rate is None else f"<update_rate>{rate}</update_rate>"))
    physics = "" if step is None else f"<physics><max_step_size>{step}</max_step_size></physics>"
    (found,) = load(text.replace("<model", physics + "<model", 1)).sensors
    assert found.rate == pytest.approx(expected, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("rate", ["1e12", "10000001", "1e-9", "0.00099"])
def test_rates_outside_the_range_are_an_error(list_problems: ListProblems, wrap_in_link: Text, rate: str) -> None:
    (line,) = list_problems(wrap_in_link(make_sensor(f"\n<update_rate>{rate}</update_rate>")))
    assert line == f"dive.sdf:6: <sensor><update_rate>: {float(rate):g} Hz; must be from 0.001 to 10000000 Hz"


@pytest.mark.parametrize("rate", ["-1", "nan", "fast"])
def test_invalid_rates_are_an_error(list_problems: ListProblems, wrap_in_link: Text, rate: str) -> None:
    assert list_problems(wrap_in_link(make_sensor(f"<update_rate>{rate}</update_rate>")))[0].startswith(
        "dive.sdf:5: <sensor><update_r"
    )


def test_step_size_without_a_rate_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    text = wrap_in_link(make_sensor()).replace(
        "<model", "<physics><max_step_size>1e-9</max_step_size></physics><model", 1
    )
    (line,) = list_problems(text)
    assert "<physics><max_step_size>: 1e-09; must be from 1e-07 to 1000 s" in line


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("/topic with spaces/@~characters//", "/topic_with_spaces/characters"),
        ("a//b", "/ab"),
        ("~/foo", "/foo"),
        (" ", "/_"),
        ("mag", "/mag"),
        ("/mag", "/mag"),
        ("a:=b", "/ab"),
        ("a///b", "/a/b"),
        ("@@@", None),
        ("/", None),
        ("//", None),
        (":~=", None),
        ("a\tb", None),
    ],
)
def test_valid_topics_equal_gazebo_transport(topic: str, expected: str | None) -> None:
    """Expected values are from gz-transport's `AsValidTopic`, except for the leading slash."""
    assert normalize_topic(topic) == expected


def test_topics_are_normalised(load: Load, list_problems: ListProblems, wrap_in_link: Text) -> None:
    (found,) = load(wrap_in_link(make_sensor("<topic>a b</topic>"))).sensors
    assert found.topic == "/a_b"
    (found,) = load(wrap_in_link(make_sensor("<topic/>"))).sensors
    assert found.topic.endswith("/magnetometer")
    (line,) = list_problems(wrap_in_link(make_sensor("<topic>@@@</topic>")))
    assert line.startswith("dive.sdf:5: <sensor><topic>: @@@; must contain more")


def test_duplicate_topic_falls_back_to_the_default(load: Load, list_problems: ListProblems, wrap_in_link: Text) -> None:
    world = load(wrap_in_link(make_sensor("<topic>x</topic>", "a") + make_sensor("<topic>/x</topic>", "b")))
    assert [found.topic for found in world.sensors] == ["/x", "/world/ocean/model/auv/link/base/sensor/b/magnetometer"]
    (note,) = world.notes
    assert (note.kind, note.what) == ("warning", "<topic>: /x")
    assert "already the topic of auv::base::a" in note.reason
    default = world.sensors[1].topic
    (line,) = list_problems(wrap_in_link(make_sensor(f"<topic>{default}</topic>", "a") + make_sensor("", "b")))
    assert line.startswith("dive.sdf:6: <sensor>: /world/ocean")


def test_frame_is_read(load: Load, wrap_in_link: Text) -> None:
    (found,) = load(wrap_in_link(make_sensor("<frame_id>imu_frd</frame_id>"))).sensors
    assert found.frame == "imu_frd"
    (found,) = load(wrap_in_link(make_sensor("<gz_frame_id>old</gz_frame_id>"))).sensors
    assert found.frame == "old"
    (found,) = load(wrap_in_link(make_sensor("<gz_frame_id>old</gz_frame_id><frame_id>new</frame_id>"))).sensors
    assert found.frame == "new"


@pytest.mark.parametrize("kind", sorted(UNSIMULATED_TYPES))
def test_unsupported_types_are_listed(load: Load, wrap_in_link: Text, kind: str) -> None:
    world = load(wrap_in_link(make_sensor("<whatever/>", "s", kind)))
    assert world.sensors == ()
    (note,) = world.notes
    assert (note.kind, note.what, note.reason) == (
        "unsupported",
        f'<sensor type="{kind}">: auv::base::s',
        "not simulated",
    )


ALLOWED_TYPES = f"must be one of {', '.join(TYPE_ELEMENT_PARSERS)}, which are simulated, or another type of SDF"


def test_invalid_elements_are_reported(list_problems: ListProblems, wrap_in_link: Text) -> None:
    for text, problem in (
        (make_sensor(kind="rya"), f"<sensor type>: rya; {ALLOWED_TYPES}; did you mean ray?"),
        (make_sensor(kind="magnetometr"), "<sensor type>: magnetometr; must be one of imu, magnetometer"),
        (make_sensor(kind=""), "<sensor type>: missing; must be one of"),
        (make_sensor(name=""), "<sensor name>: empty; must be given"),
        (make_sensor(name="a::b"), '<sensor name>: a::b; must not contain "::"'),
        (
            make_sensor("<update_rat>1</update_rat>"),
            "<sensor><update_rat>; is not allowed here; did you mean update_rate?",
        ),
        (make_sensor("<navsense:flux>1</navsense:flux>"), "<sensor><navsense:flux>; is not allowed here"),
        (make_sensor("<update_rate hz='1'>1</update_rate>"), "<update_rate hz>; is not allowed here"),
        (make_sensor("<update_rate>1<a/></update_rate>"), "<update_rate><a>; is not allowed here"),
    ):
        assert list_problems(wrap_in_link(text))[0].startswith(f"dive.sdf:5: {problem}")
    (line,) = list_problems(wrap_in_link(make_sensor() + make_sensor()))
    assert line.startswith("dive.sdf:6: <sensor name>: mag; must be unique among the sensors of its link; first on")


def test_ignored_elements_are_listed(load: Load, wrap_in_link: Text) -> None:
    listed = "<always_on>1</always_on><visualize>1</visualize><enable_metrics>1</enable_metrics><imu/>"
    plugin = '<plugin filename="libx.so" name="x"><navsense:y/></plugin>'
    foreign = "<gz:a/><ignition:b><c/></ignition:b>"
    world = load(wrap_in_link(make_sensor(listed + plugin + foreign)))
    assert [(note.kind, note.what) for note in world.notes] == [
        ("unsupported", "<sensor><enable_metrics>"),
        ("unsupported", "<sensor><imu>"),
        ("unsupported", '<sensor><plugin name="x" filename="libx.so">'),
        ("foreign", "<sensor><gz:a>"),
        ("foreign", "<sensor><ignition:b>"),
        ("unsupported", "<sensor><visualize>"),
    ]
    assert all(note.reason and note.where is not None for note in world.notes)


@pytest.mark.requirement("SDF-1")
def test_unread_plugins_are_listed_at_every_level(load: Load, wrap_in_world: Text) -> None:
    """Plug-ins of a world, a model, a link and of sensors are listed with library and element."""

    def plugin(name: str) -> str:
        return f'<plugin name="{name}" filename="lib{name}.so"><plugin name="inner" filename="no.so"/></plugin>\n'

    inside = plugin("d") + make_sensor(plugin("e")) + make_sensor(plugin("f"), "other", "camera")
    visual = f'<visual name="v"><geometry/>{plugin("g")}</visual>'
    model = f'<model name="m">\n{plugin("c")}<link name="l">\n{inside}{visual}</link></model>'
    world = load(wrap_in_world(f"<gui>{plugin('a')}</gui>{plugin('b')}{model}"))
    found = [(note.what, note.where.line if note.where else 0) for note in world.notes if "plugin" in note.what]
    assert found == [
        ('<world><plugin name="b" filename="libb.so">', 4),
        ('<model><plugin name="c" filename="libc.so">', 6),
        ('<link><plugin name="d" filename="libd.so">', 8),
        ('<sensor><plugin name="e" filename="libe.so">', 9),
        ('<sensor><plugin name="f" filename="libf.so">', 11),
        ('<visual><plugin name="g" filename="libg.so">', 13),
    ]
    text = "\n".join(describe(world))
    assert all(element in text for element, _ in found)


def test_sensors_in_joints_are_listed(load: Load, wrap_in_world: Text) -> None:
    joint = f'<joint name="j" type="fixed"><parent>world</parent><child>l</child>{make_sensor()}</joint>'
    world = load(wrap_in_world(f'<model name="m"><link name="l"/>{joint}</model>'))
    assert world.sensors == ()
    assert "move other sensors to a link" in world.notes[0].reason


def test_pose_in_degrees_is_read(load: Load, wrap_in_link: Text) -> None:
    (found,) = load(wrap_in_link(make_sensor('<pose degrees="true">0 0 0 0 0 90</pose>'))).sensors
    assert found.pose.rotation == pytest.approx((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)), rel=1e-12, abs=0.0)
