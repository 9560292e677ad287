from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from navsense.clock import Discipline, Latency, Oscillator, get_oscillator
from navsense.core.errors import SdfError
from navsense.environment.signal import Signal
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sdf.context import Context
from navsense.sdf.parse.clock import parse_latency, parse_oscillator
from navsense.sdf.xml_reader import parse_xml
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

GAUSSIAN = '<noise type="gaussian"><mean>0.001</mean><stddev>0.002</stddev></noise>'


def make_link(name: str, body: str) -> str:
    return f'<link name="{name}">{body}</link>\n'


def make_clock(name: str, body: str = GAUSSIAN) -> str:
    return f'<clock name="{name}">{body}</clock>\n'


def make_sensor(name: str, uses: str | None) -> str:
    inside = "" if uses is None else f"<clock>{uses}</clock>"
    return f'<sensor name="{name}" type="imu">{inside}</sensor>\n'


@pytest.mark.requirement("CLK-1", "CLK-3")
def test_several_clocks_are_read(load: Load, wrap_in_world: Text) -> None:
    a = make_link("a", make_clock("one") + make_clock("two") + make_sensor("s", "three") + make_sensor("t", "none"))
    b = make_link(
        "b", make_clock("three") + make_clock("four", "") + make_sensor("s", "one") + make_sensor("t", "four")
    )
    world = load(wrap_in_world(f'<model name="m">{a}{b}</model>'))
    assert [each.name for each in world.clocks] == ["m::a::one", "m::a::two", "m::b::three", "m::b::four"]
    assert [each.noise for each in world.clocks] == [Noise(mean=0.001, stddev=0.002)] * 3 + [NO_NOISE]
    assert {each.name: each.clock for each in world.sensors} == {
        "m::a::s": "m::b::three",
        "m::a::t": None,
        "m::b::s": "m::a::one",
        "m::b::t": "m::b::four",
    }
    assert str(world.clocks[1].where).endswith("dive.sdf:4")


@pytest.mark.requirement("CLK-4")
def test_sensor_without_clock_uses_global_time(load: Load, wrap_in_world: Text) -> None:
    world = load(
        wrap_in_world(
            f'<model name="m">{make_link("a", make_clock("c") + make_sensor("s", None) + make_sensor("t", "none"))}'
            "</model>"
        )
    )
    assert [each.clock for each in world.sensors] == [None, None]


def test_prefixed_clock_element_is_read(load: Load, wrap_in_link: Text) -> None:
    body = '<navsense:clock name="c"/><sensor name="s" type="imu"><navsense:clock>c</navsense:clock></sensor>'
    world = load(wrap_in_link(body))
    assert world.sensors[0].clock == "auv::base::c"


@pytest.mark.requirement("CLK-1")
def test_repeated_clock_in_one_link(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link(make_clock("c") + make_clock("c")))
    assert line.startswith("dive.sdf:6: <clock name>: c; must be unique among the clocks of its link; first on line 5")


@pytest.mark.requirement("CLK-1")
def test_repeated_clock_in_another_link(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(uses: str) -> str:
        return wrap_in_world(
            f'<model name="m">\n{make_link("a", make_clock("c"))}'
            f"{make_link('b', make_clock('c') + make_sensor('s', uses))}</model>"
        )

    for uses in ("b::c", "m::b::c"):
        world = load(text(uses))
        assert world.sensors[0].clock == "m::b::c"
        assert [note.kind for note in world.notes] == ["warning"]
        assert "sensors must write b::c" in world.notes[0].reason
    (line,) = list_problems(text("c"))
    assert line == "dive.sdf:7: <clock> of sensor 'm::b::s': c; is the name of several clocks; write a::c or b::c"


@pytest.mark.requirement("CLK-3")
@pytest.mark.parametrize("uses", ["d", "a::d", "m::base::c", "base::c::c", "::c", "C", "world", ""])
def test_unknown_clock_is_an_error(list_problems: ListProblems, wrap_in_link: Text, uses: str) -> None:
    (line,) = list_problems(wrap_in_link(make_clock("c") + "\n\n" + make_sensor("imu", uses)))
    name = uses or "empty"
    assert line.startswith(f"dive.sdf:8: <clock> of sensor 'auv::base::imu': {name}; must be a clock of its model,")
    assert line.endswith("its model has c")


def test_clock_names_resolve_in_enclosing_models(load: Load, list_problems: ListProblems, wrap_in_world: Text) -> None:
    def text(uses: str, inner: str = "") -> str:
        return wrap_in_world(
            f'<model name="m">{make_link("a", make_clock("c") + make_clock("d"))}'
            f'<model name="n">{make_link("b", inner + make_sensor("s", uses))}</model></model>'
        )

    assert load(text("c")).sensors[0].clock == "m::a::c"
    assert load(text("c", make_clock("c"))).sensors[0].clock == "m::n::b::c"
    assert load(text("a::c", make_clock("c"))).sensors[0].clock == "m::a::c"
    assert load(text("n::b::c", make_clock("c"))).sensors[0].clock == "m::n::b::c"
    assert load(text("d", make_clock("c"))).sensors[0].clock == "m::a::d"
    outer_cannot_see = wrap_in_world(
        f'<model name="m">{make_link("a", make_sensor("s", "c"))}'
        f'<model name="n">{make_link("b", make_clock("c"))}</model></model>'
    )
    assert len(list_problems(outer_cannot_see)) == 1


def test_same_clock_name_in_two_models(load: Load, wrap_in_world: Text) -> None:
    models = "".join(
        f'<model name="{m}">{make_link("a", make_clock("c") + make_sensor("s", "c"))}</model>' for m in "mn"
    )
    world = load(wrap_in_world(models))
    assert [each.clock for each in world.sensors] == ["m::a::c", "n::a::c"]
    assert world.notes == ()


@pytest.mark.parametrize("name", ["none", "world", "__c__", "a::b", "", "a&#10;b", "c" * 1001])
def test_invalid_clock_names_are_an_error(list_problems: ListProblems, wrap_in_link: Text, name: str) -> None:
    (line,) = list_problems(wrap_in_link(make_clock(name)))
    assert line.startswith("dive.sdf:5: <clock name>: ")


def test_clock_without_name_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    assert list_problems(wrap_in_link("<clock/>"))[0].startswith("dive.sdf:5: <clock name>: missing")


def test_two_clocks_of_one_sensor_are_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    body = make_clock("c") + '<sensor name="s" type="imu"><clock>c</clock><navsense:clock>c</navsense:clock></sensor>'
    assert any("a sensor has one clock" in line for line in list_problems(wrap_in_link(body)))


def test_clock_noise_follows_the_fidelity(load: Load, list_problems: ListProblems, wrap_in_link: Text) -> None:
    text = wrap_in_link(make_clock("c"))
    assert not load(text).clocks[0].noise.classic
    assert load(text, fidelity="classic").clocks[0].noise.classic
    (line,) = list_problems(wrap_in_link(make_clock("c", '<noise type="gaussian">\n<stddev>-1</stddev></noise>')))
    assert line == "dive.sdf:6: <noise><stddev>: -1; must be >= 0"


@pytest.mark.requirement("CLK-8")
def test_grade_with_overridden_parameters(load: Load, wrap_in_link: Text) -> None:
    body = """<navsense:oscillator grade="TCXO">
      <frequency>2e-6</frequency> <ageing per="year">1e-6</ageing> <ageing_stddev per="day">1e-10</ageing_stddev>
      <temperature>280</temperature>
    </navsense:oscillator>
    <navsense:discipline><interval>1</interval><stddev>1e-6</stddev><until>60</until></navsense:discipline>
    <navsense:monotonic>true</navsense:monotonic>"""
    world = load(wrap_in_link(make_clock("c", GAUSSIAN + body) + make_clock("d")))
    both = world.clocks
    year = 365.25 * 86400.0
    figures = {"frequency": 2e-6, "ageing": 1e-6 / year, "ageing_stddev": 1e-10 / 86400.0, "temperature": 280.0}
    assert both[0].noise == Noise(mean=0.001, stddev=0.002)
    assert both[0].oscillator == replace(get_oscillator("TCXO"), **figures)
    assert both[0].discipline == Discipline(interval=1.0, stddev=1e-6, until=60.0)
    assert both[0].monotonic
    assert (both[1].oscillator, both[1].discipline, both[1].monotonic) == (None, None, False)
    assert world.notes == ()


@pytest.mark.requirement("CLK-8")
def test_every_field_of_an_oscillator_and_a_discipline_is_read(load: Load, wrap_in_link: Text) -> None:
    for kind, tag in ((Oscillator, "navsense:oscillator"), (Discipline, "navsense:discipline")):
        for field in fields(kind):
            body = f"<{tag}><{field.name}>0.25</{field.name}></{tag}>"
            (clock_,) = load(wrap_in_link(make_clock("c", GAUSSIAN + body))).clocks
            sheet = clock_.oscillator if kind is Oscillator else clock_.discipline
            assert sheet == kind(**{field.name: 0.25})
            assert sheet != kind()


@pytest.mark.requirement("CLK-8")
def test_clock_without_stepping(load: Load, list_problems: ListProblems, wrap_in_link: Text) -> None:
    body = "<navsense:discipline><step_threshold> inf </step_threshold><until>inf</until></navsense:discipline>"
    (clock_,) = load(wrap_in_link(make_clock("c", body))).clocks
    assert clock_.discipline == Discipline(step_threshold=math.inf)
    for field in fields(Discipline):
        for word in ("inf", "-inf", "nan", "infinity"):
            if word == "inf" and field.name in {"step_threshold", "until"}:
                continue
            body = f"<navsense:discipline>\n<{field.name}>{word}</{field.name}></navsense:discipline>"
            (line,) = list_problems(wrap_in_link(make_clock("c", body)))
            assert line.startswith(f"dive.sdf:6: <navsense:discipline><{field.name}>: {word}; must be a finite number")


def test_clock_with_oscillator_only_is_not_global_time(load: Load, wrap_in_link: Text) -> None:
    assert load(wrap_in_link(make_clock("c", '<navsense:oscillator grade="OCXO"/>'))).notes == ()


@pytest.mark.requirement("CLK-8")
def test_oscillator_temperature_may_be_a_world_signal() -> None:
    cabin = Signal((0.0, 60.0), (290.0, 310.0))
    text = b"<clock><navsense:oscillator>\n<temperature signal='%s'/></navsense:oscillator></clock>"
    context = Context("dive.sdf")
    found = parse_oscillator(context, parse_xml(text % b"cabin", "dive.sdf"), {"cabin": cabin})
    assert found is not None
    assert found.temperature is cabin
    parse_oscillator(context, parse_xml(text % b"deck", "dive.sdf"), {"cabin": cabin})
    with pytest.raises(SdfError) as caught:
        context.raise_problems()
    problem = "<navsense:oscillator><temperature signal>: deck; must name a signal of the world: cabin"
    assert str(caught.value) == f"dive.sdf:2: {problem}"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<navsense:oscillator grade="XO"/>', "<navsense:oscillator grade>: XO; must be one of RTC crystal, TCXO,"),
        ("<navsense:oscillator><h0>1</h0></navsense:oscillator>", "<navsense:oscillator><h0>; is not allowed here"),
        (
            "<navsense:oscillator><frequency>2 ppm</frequency></navsense:oscillator>",
            "<navsense:oscillator><frequency>: 2 ppm; must be a finite number",
        ),
        (
            "<navsense:oscillator><white_frequency>-1</white_frequency></navsense:oscillator>",
            "<navsense:oscillator><white_frequency>: -1; must be >= 0",
        ),
        (
            '<navsense:oscillator><ageing per="week">1</ageing></navsense:oscillator>',
            "<navsense:oscillator><ageing per>: week; must be one of second, day, month, year",
        ),
        (
            '<navsense:oscillator><offset per="day">1</offset></navsense:oscillator>',
            "<offset per>; is not allowed here",
        ),
        (
            '<navsense:oscillator><temperature signal="t">3</temperature></navsense:oscillator>',
            "<navsense:oscillator><temperature>: 3; must not be combined with a signal",
        ),
        (
            "<navsense:discipline><interval>0.0001</interval></navsense:discipline>",
            "<navsense:discipline><interval>: 0.0001; must be a whole number of milliseconds",
        ),
        (
            "<navsense:discipline><integral>4</integral></navsense:discipline>",
            "<navsense:discipline><integral>: 4; must be below 4 - 2 proportional = 3",
        ),
        (
            "<navsense:discipline><interval>1e17</interval></navsense:discipline>",
            "<navsense:discipline><interval>: 1e17; must be at most 6e+09 s",
        ),
        (
            "<navsense:discipline><poll>4</poll></navsense:discipline>",
            "<navsense:discipline><poll>; is not allowed here",
        ),
        ("<navsense:monotonic>yes</navsense:monotonic>", "<clock><navsense:monotonic>: yes; must be true, false"),
        ("<navsense:latency/>", "<clock><navsense:latency>; is not allowed here"),
    ],
)
def test_unsupported_clock_elements(list_problems: ListProblems, wrap_in_link: Text, body: str, problem: str) -> None:
    (line,) = list_problems(wrap_in_link(make_clock("c", GAUSSIAN + "\n" + body)))
    assert line.startswith(f"dive.sdf:6: {problem}")


def test_sensor_noise_terms_of_a_clock_are_an_error_with_line(list_problems: ListProblems, wrap_in_link: Text) -> None:
    body = '<noise type="gaussian"><navsense:noise><random_walk>1e-9</random_walk></navsense:noise></noise>'
    (line,) = list_problems(wrap_in_link(make_clock("c", body)))
    assert line.startswith("dive.sdf:5: <clock><noise><random_walk>: 1e-09; is a field of sensor channels")


@pytest.mark.requirement("CLK-9")
def test_sensor_latency_is_read() -> None:
    context = Context("dive.sdf")
    text = b"<sensor><navsense:latency><fixed>0.002</fixed><mean>0.004</mean>%s</navsense:latency></sensor>"
    element = parse_xml(text % b"<stddev>0.001</stddev>", "dive.sdf")
    assert parse_latency(context, element) == Latency(0.002, 0.004, 0.001)
    assert parse_latency(context, parse_xml(b"<sensor/>", "dive.sdf")) is None
    context.raise_problems()
    wrong = (
        (b"<stddev>-1</stddev>", "<navsense:latency><stddev>: -1; must be >= 0"),
        (b"<jitter>1</jitter>", "<navsense:latency><jitter>; is not allowed here; remove it"),
        (b"<mean>1</mean>", "<navsense:latency><mean>: given twice; first on line 1"),
        (b"<stddev>7e9</stddev>", "<navsense:latency><stddev>: 7e9; must be at most 6e+09 s"),
        (b"<stddev>5e3</stddev>", "<navsense:latency><stddev>: 5e3; must be at most 1e+06 times the mean, 0.004 s"),
    )
    for body, problem in wrong:
        context = Context("dive.sdf")
        parse_latency(context, parse_xml(text % body, "dive.sdf"))
        with pytest.raises(SdfError) as caught:
            context.raise_problems()
        assert str(caught.value) == f"dive.sdf:1: {problem}"
    context = Context("dive.sdf")
    only_deviation = b"<sensor><navsense:latency>\n<stddev>1</stddev></navsense:latency></sensor>"
    assert parse_latency(context, parse_xml(only_deviation, "dive.sdf")) is None
    with pytest.raises(SdfError, match=r"dive.sdf:1: <navsense:latency> mean: 0.0; must be > 0 if stddev is"):
        context.raise_problems()
