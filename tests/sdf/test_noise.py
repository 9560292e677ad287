from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors import Magnetometer
from navsense.world import World

Load = Callable[..., World]
ListProblems = Callable[..., list[str]]
Text = Callable[..., str]

FIELDS: dict[str, Any] = {
    "mean": 1e-8,
    "stddev": 2e-8,
    "bias_mean": 3e-8,
    "bias_stddev": 4e-8,
    "dynamic_bias_stddev": 5e-9,
    "dynamic_bias_correlation_time": 60.0,
    "precision": 1e-9,
}
ALL = "".join(f"<{name}>{value!r}</{name}>" for name, value in FIELDS.items())


def get_x_noise(world: World) -> Noise:
    spec = world.sensors[0].spec
    assert isinstance(spec, Magnetometer)
    return spec.x


@pytest.fixture
def read_noise(load: Load, wrap_in_magnetometer: Text) -> Callable[..., Noise]:
    def read(text: str, **options: str) -> Noise:
        world = load(wrap_in_magnetometer(text), **options)
        spec = world.sensors[0].spec
        assert isinstance(spec, Magnetometer)
        assert (spec.y, spec.z) == (NO_NOISE, NO_NOISE)
        return spec.x

    return read


@pytest.mark.requirement("NOI-1")
@pytest.mark.parametrize("kind", ["gaussian_quantized", "GAUSSIAN_QUANTIZED", "Gaussian_Quantized"])
def test_every_noise_field_is_read(read_noise: Callable[..., Noise], kind: str) -> None:
    assert read_noise(f'<noise type="{kind}">{ALL}</noise>') == Noise(**FIELDS)


@pytest.mark.requirement("NOI-1")
def test_precision_acts_when_quantised_only(load: Load, wrap_in_magnetometer: Text) -> None:
    world = load(wrap_in_magnetometer(f'<noise type="gaussian">{ALL}</noise>'))
    assert get_x_noise(world) == Noise(**{**FIELDS, "precision": 0.0})
    assert [str(note.where).rpartition(":")[2] for note in world.notes if note.kind == "warning"] == ["5"]
    assert "gaussian_quantized only" in world.notes[0].reason


@pytest.mark.requirement("NOI-1")
def test_noise_type_none_lists_ignored_elements(load: Load, wrap_in_magnetometer: Text) -> None:
    world = load(wrap_in_magnetometer('<noise type="None"><mean>0</mean><stddev>0.5</stddev></noise>'))
    assert get_x_noise(world) == NO_NOISE
    assert [(note.kind, note.what) for note in world.notes] == [("warning", "<noise><stddev>: 0.5")]


def test_saturation_limits_are_read(read_noise: Callable[..., Noise]) -> None:
    text = (
        '<noise type="gaussian"><navsense:minimum>-2</navsense:minimum><navsense:maximum>3</navsense:maximum></noise>'
    )
    assert read_noise(text) == Noise(minimum=-2.0, maximum=3.0)


def test_classic_noise_is_read(
    read_noise: Callable[..., Noise], load: Load, wrap_in_world: Text, wrap_in_magnetometer: Text
) -> None:
    text = '<noise type="gaussian"><bias_mean>1</bias_mean></noise>'
    assert read_noise(text) == Noise(bias_mean=1.0)
    assert read_noise(text, fidelity="classic") == Noise(bias_mean=1.0, classic=True)
    inside = "<navsense:fidelity>classic</navsense:fidelity>"
    in_sensor = wrap_in_magnetometer(text).replace("</sensor>", inside + "</sensor>")
    assert get_x_noise(load(in_sensor)).classic
    assert not get_x_noise(load(in_sensor, fidelity="physical")).classic
    in_the_world = wrap_in_magnetometer(text).replace('<world name="ocean">', '<world name="ocean">' + inside)
    assert get_x_noise(load(in_the_world)).classic
    both = in_the_world.replace("</sensor>", inside.replace("classic", "physical") + "</sensor>")
    assert not get_x_noise(load(both)).classic


def test_invalid_fidelity(list_problems: ListProblems, load: Load, wrap_in_magnetometer: Text) -> None:
    text = wrap_in_magnetometer("").replace("</sensor>", "<navsense:fidelity>exact</navsense:fidelity></sensor>")
    assert list_problems(text) == ["dive.sdf:5: <sensor><navsense:fidelity>: exact; must be one of physical, classic"]


@pytest.mark.parametrize(
    ("noise", "problem"),
    [
        ("<noise/>", "<noise type>: missing; must be one of none, gaussian, gaussian_quantized"),
        ('<noise type=""/>', "<noise type>: empty; must be one of none, gaussian, gaussian_quantized"),
        ('<noise type="pink"/>', "<noise type>: pink; must be one of none, gaussian, gaussian_quantized"),
        ("<noise><type>gaussian</type></noise>", "<noise type>: missing; must be one of"),
    ],
)
def test_noise_type_is_checked(
    list_problems: ListProblems, wrap_in_magnetometer: Text, noise: str, problem: str
) -> None:
    assert any(line.startswith(f"dive.sdf:5: {problem}") for line in list_problems(wrap_in_magnetometer(noise)))


@pytest.mark.parametrize("field", ["stddev", "bias_stddev", "dynamic_bias_stddev", "precision"])
@pytest.mark.parametrize("kind", ["none", "gaussian", "gaussian_quantized"])
def test_negative_values_are_an_error(
    list_problems: ListProblems, wrap_in_magnetometer: Text, kind: str, field: str
) -> None:
    text = wrap_in_magnetometer(f'<noise type="{kind}">\n\n<{field}>-0.2</{field}></noise>')
    assert list_problems(text) == [f"dive.sdf:7: <noise><{field}>: -0.2; must be >= 0"]


@pytest.mark.parametrize(
    "value", ["nan", "NaN", "inf", "-inf", "1e999", "infinity", "1_0", "0x1p3", "1,5", "one", "", "1 2"]
)
@pytest.mark.parametrize("field", [*FIELDS, "navsense:minimum", "navsense:maximum"])
def test_non_finite_values_are_an_error(
    list_problems: ListProblems, wrap_in_magnetometer: Text, field: str, value: str
) -> None:
    (problem,) = list_problems(wrap_in_magnetometer(f'<noise type="gaussian">\n<{field}>{value}</{field}></noise>'))
    assert problem.startswith(f"dive.sdf:6: <noise><{field}>: ")
    assert problem.endswith("must be a finite number")


def test_all_problems_are_reported_at_once(list_problems: ListProblems, wrap_in_magnetometer: Text) -> None:
    text = wrap_in_magnetometer('<noise type="pink">\n<stddev>-1</stddev>\n<mean>x</mean>\n<sdev>1</sdev></noise>')
    assert [line.split(":")[1].split(" ")[0] for line in list_problems(text)] == ["5", "6", "7", "8"]
    assert list_problems(text)[3] == "dive.sdf:8: <noise><sdev>; is not allowed here; did you mean stddev?"


def test_repeated_element_is_an_error(list_problems: ListProblems, wrap_in_magnetometer: Text) -> None:
    text = wrap_in_magnetometer('<noise type="gaussian"><stddev>1</stddev>\n<stddev>2</stddev></noise>')
    assert list_problems(text) == ["dive.sdf:6: <noise><stddev>: given twice; first on line 5"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<precision>1e300</precision>", "<noise><precision>: 1e300"),
        ("<navsense:maximum>1e101</navsense:maximum>", "<noise><navsense:maximum>: 1e101"),
        (
            "<navsense:noise><noise_density>1e150</noise_density></navsense:noise>",
            "<navsense:noise><noise_density>: 1e150",
        ),
    ],
)
def test_implausible_values_are_an_error_with_line(
    list_problems: ListProblems, wrap_in_magnetometer: Text, content: str, problem: str
) -> None:
    text = wrap_in_magnetometer(f'<noise type="gaussian_quantized">\n{content}</noise>')
    assert list_problems(text) == [f"dive.sdf:6: {problem}; must be of absolute value below 1e+100"]


def test_dependent_fields_are_checked(list_problems: ListProblems, wrap_in_magnetometer: Text) -> None:
    (line,) = list_problems(
        wrap_in_magnetometer('<noise type="gaussian"><dynamic_bias_stddev>1</dynamic_bias_stddev></noise>')
    )
    assert "dynamic_bias_correlation_time > 0" in line
    limits = "<navsense:minimum>3</navsense:minimum><navsense:maximum>3</navsense:maximum>"
    (line,) = list_problems(wrap_in_magnetometer(f'<noise type="gaussian">{limits}</noise>'))
    assert line == "dive.sdf:5: <noise><navsense:minimum>: 3; must be below the maximum 3.0"
