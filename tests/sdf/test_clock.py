from __future__ import annotations

from collections.abc import Callable

import pytest

from navsense.noise.channel import NEUTRAL, Noise
from navsense.world import World

Load = Callable[..., World]
Refused = Callable[..., list[str]]
Text = Callable[..., str]

GAUSSIAN = '<noise type="gaussian"><mean>0.001</mean><stddev>0.002</stddev></noise>'


def link(name: str, body: str) -> str:
    return f'<link name="{name}">{body}</link>\n'


def clock(name: str, body: str = GAUSSIAN) -> str:
    return f'<clock name="{name}">{body}</clock>\n'


def sensor(name: str, uses: str | None) -> str:
    inside = "" if uses is None else f"<clock>{uses}</clock>"
    return f'<sensor name="{name}" type="imu">{inside}</sensor>\n'


@pytest.mark.requirement("CLK-1", "CLK-3")
def test_any_number_of_clocks(load: Load, in_world: Text) -> None:
    a = link("a", clock("one") + clock("two") + sensor("s", "three") + sensor("t", "none"))
    b = link("b", clock("three") + clock("four", "") + sensor("s", "one") + sensor("t", "four"))
    world = load(in_world(f'<model name="m">{a}{b}</model>'))
    assert [each.name for each in world.clocks] == ["m::a::one", "m::a::two", "m::b::three", "m::b::four"]
    assert [each.noise for each in world.clocks] == [Noise(mean=0.001, stddev=0.002)] * 3 + [NEUTRAL]
    assert {each.name: each.clock for each in world.sensors} == {
        "m::a::s": "m::b::three",
        "m::a::t": None,
        "m::b::s": "m::a::one",
        "m::b::t": "m::b::four",
    }
    assert str(world.clocks[1].where).endswith("dive.sdf:4")


@pytest.mark.requirement("CLK-4")
def test_no_clock_is_global_time(load: Load, in_world: Text) -> None:
    world = load(in_world(f'<model name="m">{link("a", clock("c") + sensor("s", None) + sensor("t", "none"))}</model>'))
    assert [each.clock for each in world.sensors] == [None, None]


def test_with_our_prefix(load: Load, in_link: Text) -> None:
    body = '<navsense:clock name="c"/><sensor name="s" type="imu"><navsense:clock>c</navsense:clock></sensor>'
    world = load(in_link(body))
    assert world.sensors[0].clock == "auv::base::c"


@pytest.mark.requirement("CLK-1")
def test_repeat_in_one_link(refused: Refused, in_link: Text) -> None:
    (line,) = refused(in_link(clock("c") + clock("c")))
    assert line.startswith("dive.sdf:6 <clock name>: c; must be unique among the clocks of its link; first on line 5")


@pytest.mark.requirement("CLK-1")
def test_repeat_in_another_link(load: Load, refused: Refused, in_world: Text) -> None:
    def text(uses: str) -> str:
        return in_world(f'<model name="m">\n{link("a", clock("c"))}{link("b", clock("c") + sensor("s", uses))}</model>')

    for uses in ("b::c", "m::b::c"):
        world = load(text(uses))
        assert world.sensors[0].clock == "m::b::c"
        assert [note.kind for note in world.notes] == ["warning"]
        assert "sensors must write b::c" in world.notes[0].reason
    (line,) = refused(text("c"))
    assert line == "dive.sdf:7 <clock> of sensor 'm::b::s': c; is the name of several clocks; write a::c or b::c"


@pytest.mark.requirement("CLK-3")
@pytest.mark.parametrize("uses", ["d", "a::d", "m::base::c", "base::c::c", "::c", "C", "world", ""])
def test_unknown_clock(refused: Refused, in_link: Text, uses: str) -> None:
    (line,) = refused(in_link(clock("c") + "\n\n" + sensor("imu", uses)))
    shown = uses or "empty"
    assert line.startswith(f"dive.sdf:8 <clock> of sensor 'auv::base::imu': {shown}; must name a clock of its model")
    assert line.endswith("its model has c")


def test_nested_models_look_outwards(load: Load, refused: Refused, in_world: Text) -> None:
    def text(uses: str, inner: str = "") -> str:
        return in_world(
            f'<model name="m">{link("a", clock("c") + clock("d"))}'
            f'<model name="n">{link("b", inner + sensor("s", uses))}</model></model>'
        )

    assert load(text("c")).sensors[0].clock == "m::a::c"
    assert load(text("c", clock("c"))).sensors[0].clock == "m::n::b::c"
    assert load(text("a::c", clock("c"))).sensors[0].clock == "m::a::c"
    assert load(text("n::b::c", clock("c"))).sensors[0].clock == "m::n::b::c"
    assert load(text("d", clock("c"))).sensors[0].clock == "m::a::d"
    outer_cannot_see = in_world(
        f'<model name="m">{link("a", sensor("s", "c"))}<model name="n">{link("b", clock("c"))}</model></model>'
    )
    assert len(refused(outer_cannot_see)) == 1


def test_the_same_name_in_two_models(load: Load, in_world: Text) -> None:
    models = "".join(f'<model name="{m}">{link("a", clock("c") + sensor("s", "c"))}</model>' for m in "mn")
    world = load(in_world(models))
    assert [each.clock for each in world.sensors] == ["m::a::c", "n::a::c"]
    assert world.notes == ()


@pytest.mark.parametrize("name", ["none", "world", "__c__", "a::b", "", "a&#10;b", "c" * 1001])
def test_names_that_no_clock_can_have(refused: Refused, in_link: Text, name: str) -> None:
    (line,) = refused(in_link(clock(name)))
    assert line.startswith("dive.sdf:5 <clock name>: ")


def test_clock_without_name(refused: Refused, in_link: Text) -> None:
    assert refused(in_link("<clock/>"))[0].startswith("dive.sdf:5 <clock name>: missing")


def test_two_clocks_of_one_sensor(refused: Refused, in_link: Text) -> None:
    body = clock("c") + '<sensor name="s" type="imu"><clock>c</clock><navsense:clock>c</navsense:clock></sensor>'
    assert any("a sensor has one clock" in line for line in refused(in_link(body)))


def test_noise_of_a_clock_obeys_the_fidelity(load: Load, refused: Refused, in_link: Text) -> None:
    text = in_link(clock("c"))
    assert not load(text).clocks[0].noise.classic
    assert load(text, fidelity="classic").clocks[0].noise.classic
    (line,) = refused(in_link(clock("c", '<noise type="gaussian">\n<stddev>-1</stddev></noise>')))
    assert line == "dive.sdf:6 <noise><stddev>: -1; must be >= 0"
