"""Invalid field values of specs are errors: text or booleans for numbers, numbers for flags, other classes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import navsense
from navsense.core.errors import NavsenseError, SensorError
from navsense.core.pose import Pose
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.noise.specification import Noise
from navsense.sensors import (
    SENSORS,
    Adcp,
    Altimeter,
    Camera,
    Cone,
    Depth,
    DepthCells,
    Dvl,
    DvlMessageOptions,
    Fan,
    Imu,
    LongTermFilter,
    Magnetometer,
    NavSat,
    Range,
    Sound,
    TrackErrors,
    TrackMode,
    WaterMassLayer,
    ZeroReference,
)

BESIDE = (
    *(
        Fan(),
        DepthCells(transmit_length=1.0),
        ZeroReference(1.0),
        DvlMessageOptions(beam_ids=(1, 2), beam_frames=("a", "b")),
    ),
    *(Unesco(), Saunders(), ConstantDensity(1000.0)),
    *(Faults(0.1, 1.0, 0.1, 1.0), ScheduledFault("spike", 0.0, 1.0, "field", (1.0,), 0.1)),
)
"""Specs that no example spec contains."""

NOT_CHECKED = (Pose,)
"""Classes of fields that are not specs."""


def list_specs(sheet: Any) -> Iterator[Any]:
    """Return a spec and all specs in its fields."""
    if isinstance(sheet, tuple):
        for one in sheet:
            yield from list_specs(one)
    elif is_dataclass(sheet) and not isinstance(sheet, NOT_CHECKED):
        yield sheet
        for field in fields(sheet):
            yield from list_specs(getattr(sheet, field.name))


def describe_type(value: object) -> str:
    """Return the type of a valid field value."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, str):
        return "text"
    if isinstance(value, tuple) and value and all(isinstance(one, float) for one in value):
        return "numbers"
    return "number" if isinstance(value, int | float) else "other"


WRONG: dict[str, tuple[Any, ...]] = {
    "number": ("4", True, math.nan, [1.0], 1j),
    "numbers": ("4", True, math.nan, ("4",), (True,), (None,), ()),
    "flag": ("no", 1, 0.0, math.nan, None),
    "text": (4, True, None),
    "other": ("4", True, 4, math.nan),
}
MAY_BE_A_NUMBER = {(Altimeter, "reference")}

SHEETS = {
    type(part): part for start in (*(kind.example_spec() for kind in SENSORS), *BESIDE) for part in list_specs(start)
}


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize("sheet", SHEETS.values(), ids=lambda sheet: type(sheet).__name__)
def test_invalid_field_value_is_a_navsense_error(sheet: Any) -> None:
    for field in fields(sheet):
        for wrong in WRONG[describe_type(getattr(sheet, field.name))]:
            if (type(sheet), field.name) in MAY_BE_A_NUMBER and wrong == 4:
                continue
            with pytest.raises(NavsenseError) as caught:
                replace(sheet, **{field.name: wrong})
            assert caught.value.what
            assert caught.value.allowed.startswith("must "), (field.name, wrong)
            shown = (repr(wrong), str(wrong), *(["missing"] if wrong == () else []))
            assert any(text in str(caught.value) for text in shown), (field.name, wrong)


@pytest.mark.requirement("DOO-1")
def test_every_spec_class_is_checked() -> None:
    """Every spec class of `ns.sensors` is included, and an invalid None is an error."""
    import navsense.sensors as public

    classes = {one for name in public.__all__ if is_dataclass(one := getattr(public, name))}
    assert classes - set(SHEETS) == {public.Output}
    allowed = {(Imu, "reference"), (Depth, "assumed"), (Range, "sound"), (Sound, "speed"), (Dvl, "echo_strength")}
    allowed |= {(Dvl, "long_term"), (Adcp, "backscatter"), (DepthCells, "transmit_length"), (ScheduledFault, "where")}
    allowed |= {(Camera, "intrinsics"), (Camera, "projection")}
    for sheet in SHEETS.values():
        for field in fields(sheet):
            if (type(sheet), field.name) in allowed:
                continue
            with pytest.raises(NavsenseError):
                replace(sheet, **{field.name: None})


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WaterMassLayer("1", 2.0), "near of the water layer: '1'; must be a number; write it without quotes"),
        (
            lambda: WaterMassLayer(1.0, 2.0, samples=True),
            "samples of the water layer: True; must be a whole number$",
        ),
        (lambda: Sound(True), "speed of sound (m/s): True; must be a number or None$"),
        (lambda: Noise(stddev=True), "stddev: True; must be a number$"),
        (lambda: Dvl(propagation="no"), "propagation: 'no'; must be True or False; write it without quotes"),
        (lambda: Dvl(own_hull=1), "own_hull: 1; must be True or False$"),
        (
            lambda: Dvl(maximum_range="50"),
            "maximum_range: '50'; must be a number from 0 to 100000, and finite; write it",
        ),
        (
            lambda: Dvl(bottom_mode="always"),
            "bottom_mode: always; must be of ns.sensors.TrackMode, which str is not; write ns",
        ),
        (
            lambda: Dvl(echo_strength=4.0),
            "echo_strength: 4.0; must be of EchoStrength or None; give an ns.sensors.EchoStrength",
        ),
        (lambda: Magnetometer(x=0.1), "x: 0.1; must be of Noise; give an ns.Noise"),
        (lambda: Cone(0.1, axis=(1, 0)), "axis of a beam: (1, 0); must be a tuple of 3, each a number$"),
        (lambda: Altimeter(reference=True), "reference of an altimeter (m): True; must be a finite height"),
        (
            lambda: ScheduledFault("bias", 0.0, 1.0, "x", ("1",)),
            "value of a fault: ('1',); must be a tuple, each a number",
        ),
        (lambda: TrackErrors(noise=0.01), "noise of a track: 0.01; must be of Noise; give an ns.Noise"),
    ],
)
def test_error_has_problem_and_remedy(make: Any, message: str) -> None:
    with pytest.raises(SensorError) as caught:
        make()
    assert f"{caught.value}$".startswith(message)  # "$" is the end of the message


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize("sheet", SHEETS.values(), ids=lambda sheet: type(sheet).__name__)
def test_integers_are_finite_and_numbers_fit_a_double(sheet: Any) -> None:
    """1e400 does not fit a double, and Python does not print 10^5000."""
    for field in fields(sheet):
        value = getattr(sheet, field.name)
        is_integer = "int" in str(field.type)
        if describe_type(value) == "number" and not isinstance(value, np.generic):
            wrong: tuple[Any, ...] = (
                10**400,
                -(10**400),
                *((1.5, math.nan, math.inf, np.float32(2.5)) if is_integer else ()),
            )
        elif is_integer:
            wrong = ((1.5,), (1, math.nan), (10**400,))
        elif describe_type(value) == "numbers":
            wrong = ((10**400,) * len(value),)
        else:
            continue
        for one in wrong:
            with pytest.raises(NavsenseError) as caught:
                replace(sheet, **{field.name: one})
            assert str(caught.value)


@pytest.mark.requirement("DOO-1")
def test_integer_fields_accept_any_integral_number() -> None:
    assert Cone(0.1, rings=2.0) == Cone(0.1, rings=np.int64(2)) == Cone(0.1, rings=2)  # type: ignore[arg-type]
    assert DvlMessageOptions(beam_ids=(1.0, 2)) == DvlMessageOptions(beam_ids=(1, 2))  # type: ignore[arg-type]
    with pytest.raises(SensorError, match=r"beam_ids .*: \(1.5,\); must be a tuple, each a whole number"):
        DvlMessageOptions(beam_ids=(1.5,))  # type: ignore[arg-type]
    with pytest.raises(SensorError, match=r"must be of absolute value below 1e\+100"):
        WaterMassLayer(10**400, 2.0)
    with pytest.raises(
        SensorError, match="near of the water layer: too many digits to print; must be of absolute value"
    ):
        WaterMassLayer(10**5000, 2.0)


@pytest.mark.requirement("DOO-1")
def test_remedy_names_an_existing_option() -> None:
    """Each name in a remedy exists where the remedy says, with the correct article."""
    found = set()
    for sheet in SHEETS.values():
        for field in fields(sheet):
            with pytest.raises(NavsenseError) as caught:
                replace(sheet, **{field.name: object()})
            for article, name in re.findall(r"(?:\b(an?) )?\b((?:ns|navsense)(?:\.\w+)+)", str(caught.value)):
                named = attrgetter(name.partition(".")[2])(navsense)
                assert isinstance(named, type) or named in type(named)
                assert article in ("", "an" if name.startswith("ns.") else "a"), name
                found.add(name)
    assert {
        "ns.sensors.DvlMessageOptions",
        "ns.Noise",
        "ns.Pose",
        "ns.sensors.Fan",
        "ns.sensors.Cone",
        "ns.sensors.MessageDialect.OWN",
    } <= found
    assert any(name.startswith("navsense.") for name in found)


@pytest.mark.requirement("DOO-1")
def test_numbers_of_every_type_and_lists_are_accepted() -> None:
    """With integers, NumPy numbers and rows in a list, the spec is equal and hashable."""
    assert Noise(stddev=1) == Noise(stddev=np.float64(1.0)) == Noise(stddev=np.int64(1))
    assert Cone(0.1, axis=[1.0, 0.0, 0.0]) == Cone(0.1)
    assert Dvl(misalignment=[0, 0, 0]) == Dvl(misalignment=np.zeros(3)) == Dvl()
    assert Dvl(own_hull=np.True_).own_hull
    assert LongTermFilter(1) == LongTermFilter(1.0)
    assert Dvl(water_mode=TrackMode.BEST, layer=WaterMassLayer(1, 2)) == Dvl(
        water_mode=TrackMode.BEST, layer=WaterMassLayer(1.0, 2.0)
    )
    sheets = (
        Imu(reference=[1, 0, 0, 0]),
        Adcp(reference=[1, 0, 0, 0]),
        DvlMessageOptions(beam_ids=[1]),
        Cone(0.1, axis=[1, 0, 0]),
    )
    assert len({hash(one) for one in (*sheets, NavSat())}) == 5
