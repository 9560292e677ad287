"""Binding of elements to dataclasses: limits of fields, and locations of errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from navsense.core.errors import SdfError, SensorError
from navsense.core.field_metadata import in_file
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.xml_reader import parse_xml


class Shape(StrEnum):
    ROUND = "round"
    FLAT = "flat"


@dataclass(frozen=True)
class Probe:
    depth: float = field(default=1.0, metadata=in_file(minimum=0.0))
    gain: float = field(default=1.0, metadata=in_file(above=0.0))
    offset: float = field(default=0.0, metadata=in_file(magnitude_below=10.0))
    until: float = field(default=math.inf, metadata=in_file(may_be_infinite=True))
    axis: tuple[float, float] = field(default=(0.0, 0.0), metadata=in_file(magnitude_below=10.0))
    count: int = 1
    shape: Shape = Shape.ROUND

    def __post_init__(self) -> None:
        if self.depth > 100.0:
            raise SensorError("depth", self.depth, allowed="must be at most 100", field="depth")
        if self.gain > 100.0:
            raise SensorError("gain of a probe (dB)", self.gain, allowed="must be at most 100", field="gain")
        if self.offset > self.gain:
            raise SensorError("a probe", self.offset, allowed="must be at most the gain")


ATTRIBUTES, CHILDREN = ElementBinding(Probe, attributes=True), ElementBinding(Probe)


def read(binding: ElementBinding[Probe], content: str) -> Probe | str:
    context = Context("dive.sdf")
    try:
        probe = binding.read(context, parse_xml(content.encode(), "dive.sdf"))
        context.raise_problems()
    except SdfError as error:
        return str(error)
    return probe


@pytest.mark.parametrize(
    ("name", "text", "allowed_attribute", "allowed_child"),
    [
        ("depth", "-1", "must be a finite number >= 0", "must be >= 0"),
        ("gain", "0", "must be a finite number > 0", "must be > 0"),
        ("offset", "-10", "must be a finite number of absolute value below 10", None),
        ("axis", "1 10", "must be 2 finite numbers of absolute value below 10", None),
        ("depth", "inf", "must be a finite number >= 0", "must be a finite number"),
        ("shape", "square", "must be one of round, flat", None),
    ],
)
def test_limits_apply_to_attributes_and_children(
    name: str, text: str, allowed_attribute: str, allowed_child: str | None
) -> None:
    assert read(ATTRIBUTES, f'<probe {name}="{text}"/>') == f"dive.sdf:1: <probe {name}>: {text}; {allowed_attribute}"
    child = read(CHILDREN, f"<probe>\n<{name}>{text}</{name}></probe>")
    assert child == f"dive.sdf:2: <probe><{name}>: {text}; {allowed_child or allowed_attribute}"


def test_attributes_and_children_give_the_same_values() -> None:
    values = {"depth": "0", "gain": "2", "offset": "-9", "until": "inf", "axis": "1 2", "count": "3", "shape": "flat"}
    attributes = " ".join(f'{name}="{text}"' for name, text in values.items())
    children = "".join(f"<{name}>{text}</{name}>" for name, text in values.items())
    expected = Probe(0.0, 2.0, -9.0, math.inf, (1.0, 2.0), 3, Shape.FLAT)
    assert read(ATTRIBUTES, f"<probe {attributes}/>") == expected
    assert read(CHILDREN, f"<probe>{children}</probe>") == expected


def test_error_has_the_location_of_its_field() -> None:
    depth, gain = "<probe>\n<depth>1e3</depth></probe>", "<probe>\n<gain>1e3</gain></probe>"
    assert read(CHILDREN, depth) == "dive.sdf:2: <probe><depth>: 1e3; must be at most 100"
    assert read(CHILDREN, gain) == "dive.sdf:2: <gain> gain of a probe (dB): 1000.0; must be at most 100"
    assert read(CHILDREN, "<probe>\n<offset>3</offset></probe>") == (
        "dive.sdf:1: <probe> a probe: 3.0; must be at most the gain"
    )
    assert read(ATTRIBUTES, '<probe depth="1e3"/>') == "dive.sdf:1: <probe depth>: 1e3; must be at most 100"


def test_invalid_child_hides_consequential_errors() -> None:
    context = Context("dive.sdf")
    element = parse_xml(b"<probe>\n<gain>x</gain>\n<offset>3</offset></probe>", "dive.sdf")
    with context.collect_errors():
        CHILDREN.read(context, element)
    with pytest.raises(SdfError) as caught:
        context.raise_problems()
    assert [str(problem) for problem in caught.value.problems] == [
        "dive.sdf:2: <probe><gain>: x; must be a finite number"
    ]
