"""Errors and warnings of `apply`: non-finite numbers, wrong units, times that are not in seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import NavsenseError, SensorError
from navsense.core.typing import AnyArray
from navsense.sensors import AirPressure, Altimeter, Depth, Dvl, Imu, Magnetometer, NavSat, Range

N = 200
TIME = np.arange(N) / 100.0
RATE = np.full((N, 3), 0.1)
FORCE = np.tile([0.1, 0.0, 9.8], (N, 1))
FIELD = np.tile([20e-6, 5e-6, -40e-6], (N, 1))
ONES = np.ones(N)

GIVEN: dict[str, tuple[Any, dict[str, AnyArray]]] = {
    "imu": (Imu.from_part("stim300"), {"angular_velocity": RATE, "linear_acceleration": FORCE}),
    "magnetometer": (Magnetometer(), {"field": FIELD}),
    "altimeter": (Altimeter(), {"height": 10.0 * ONES, "vertical_velocity": 0.1 * ONES}),
    "air_pressure": (AirPressure(), {"pressure": 101325.0 * ONES}),
    "depth": (Depth(), {"pressure": 2e5 * ONES}),
    "navsat": (
        NavSat(),
        {"latitude": 0.8 * ONES, "longitude": 0.1 * ONES, "altitude": 400.0 * ONES, "velocity": 0.1 * FORCE},
    ),
    "dvl": (Dvl.from_part("a50", stddev=0.01), {"velocity": RATE}),
    "range": (Range(), {"distance": 5.0 * ONES}),
}
HARMLESS = {("range", "distance")}
"""Arrays that may be NaN and infinite if nothing is in range."""


def apply_example(kind: str, time: AnyArray = TIME, **changed: AnyArray) -> ns.Reading:
    spec, arguments = GIVEN[kind]
    reading: ns.Reading = spec.apply(time, **{**arguments, **changed}, seed=7)
    return reading


@pytest.mark.parametrize("kind", GIVEN)
def test_plausible_arrays_pass_without_a_warning(kind: str) -> None:
    assert apply_example(kind).time.size == N


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, (_, arguments) in GIVEN.items() for name in arguments]
)
def test_number_that_is_not_finite_is_an_error_with_its_row(kind: str, name: str, wrong: float) -> None:
    array = GIVEN[kind][1][name].copy()
    array[3] = wrong
    if (kind, name) in HARMLESS:
        assert apply_example(kind, **{name: array}).time.size == N
        return
    with pytest.raises(SensorError, match=r"of row 3.*(must be finite numbers|must be from)"):
        apply_example(kind, **{name: array})


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("imu", {"angular_velocity": 3e4 * RATE}, r"angular_velocity of row 0 \(rad/s\): 3000.0; .* at most 350"),
        ("imu", {"angular_velocity": 5e3 * RATE}, "the numbers look like deg/s: convert them to rad/s"),
        (
            "imu",
            {"linear_acceleration": 3e5 * FORCE},
            r"linear_acceleration of row 0 \(m/s\^2\): 2940000.0; .* at most",
        ),
        ("magnetometer", {"field": 1e6 * FIELD}, "look like uT: convert them to T"),
        ("magnetometer", {"field": 1e4 * FIELD}, "look like G: convert them to T"),
        ("dvl", {"velocity": 1e4 * RATE}, r"velocity of row 0 \(m/s\): 1000.0; .* at most 32.767"),
        ("dvl", {"velocity": 990.0 * RATE}, "look like cm/s or mm/s: convert them to m/s"),
        ("imu", {"temperature": 20.0 * ONES}, r"median of temperature \(K\): 20.0; .*degrees Celsius, add 273.15"),
    ],
)
def test_values_in_another_unit_are_an_error(kind: str, changed: dict[str, AnyArray], message: str) -> None:
    with pytest.raises(SensorError, match=message):
        apply_example(kind, **changed)


@pytest.mark.parametrize(("factor", "unit"), [(1e-2, "hPa"), (1e-3, "kPa"), (1e-5, "bar")])
def test_air_pressure_in_another_unit_warns(factor: float, unit: str) -> None:
    """The value is a possible pressure of the stratosphere."""
    with pytest.warns(RuntimeWarning, match=f"look like {unit}: convert them to Pa"):
        apply_example("air_pressure", pressure=factor * GIVEN["air_pressure"][1]["pressure"])


def test_time_in_milliseconds_is_an_error_for_an_imu_and_a_warning_for_slower_sensors() -> None:
    for factor in (1e2, 1e3, 1e6):
        with pytest.raises(SensorError, match=r"step of time \(s\): .*must be below 1 s .*milliseconds"):
            apply_example("imu", factor * TIME)
    with pytest.warns(RuntimeWarning, match="rows are 10 s apart; it must be in seconds"):
        apply_example("magnetometer", 1e3 * TIME)
    with pytest.raises(SensorError, match=r"must be below 1000 s for a sensor magnetometer"):
        apply_example("magnetometer", 1e6 * TIME)


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        (
            "imu",
            {"linear_acceleration": FORCE / 9.80665},
            "RMS size is 0.999.*the numbers look like g: convert them to m/s",
        ),
        ("imu", {"linear_acceleration": 1.5 * FORCE / 9.80665}, "look like g: convert"),
        ("imu", {"linear_acceleration": np.tile([1.0, 0.0, 0.0], (N, 1))}, "look like g: convert"),
        ("imu", {"linear_acceleration": FORCE / 9.80665e-3}, "look like mg: convert"),
        ("imu", {"angular_velocity": 2e3 * RATE}, "largest value is 200 rad/s; the numbers look like deg/s: convert"),
        ("imu", {"time": 50.0 * TIME}, "rows are 0.5 s apart; it must be in seconds"),
        ("magnetometer", {"time": 250.0 * TIME}, "rows are 2.5 s apart; it must be in seconds"),
    ],
)
def test_possible_values_that_look_like_another_unit_warn(
    kind: str, changed: dict[str, AnyArray], message: str
) -> None:
    with pytest.warns(RuntimeWarning, match=message):
        assert apply_example(kind, **changed).time.size == N


@pytest.mark.filterwarnings("error")
def test_plausible_records_do_not_warn() -> None:
    moving = np.sin(np.arange(N))[:, None] * np.array([0.3, 0.4, 0.5])
    for force in (moving, FORCE + moving, FORCE + 100.0 * moving, 50.0 * FORCE, 1e4 * FORCE):
        assert apply_example("imu", linear_acceleration=force).time.size == N
    for velocity in (320.0 * RATE, -320.0 * RATE):
        assert apply_example("dvl", velocity=velocity).time.size == N
    for rate in (0.0 * RATE, 349.0 * RATE, -349.0 * RATE):
        assert apply_example("imu", angular_velocity=rate).time.size == N
    assert apply_example("imu", time=10.0 * TIME).time.size == N
    assert apply_example("magnetometer", time=100.0 * TIME).time.size == N
    landed = np.concatenate((0.1 * FORCE[: N - 10], FORCE[:10]))
    assert apply_example("imu", linear_acceleration=landed).time.size == N


@pytest.mark.filterwarnings("error")
def test_free_fall_and_the_moon_are_possible() -> None:
    for size in (0.0, 1e-3, 1.62, 3.7, 30.0):
        assert apply_example("imu", linear_acceleration=FORCE * (size / 9.8)).time.size == N


UNTURNED = np.tile([1.0, 0.0, 0.0, 0.0], (N, 1))
OPTIONAL = [
    ("imu", "orientation", UNTURNED),
    ("dvl", "orientation", UNTURNED),
    ("dvl", "beam_range", np.full((N, 4), 20.0)),
    ("dvl", "water_velocity", RATE),
    ("magnetometer", "motor_current", ONES),
    *((kind, "temperature", 290.0 * ONES) for kind in GIVEN),
]
"""Arrays that `apply` does not require. The datasheets here use neither motor current nor water velocity."""
ARRAYS = [(kind, name, array) for kind, (_, arguments) in GIVEN.items() for name, array in arguments.items()] + OPTIONAL


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize(("kind", "name", "right"), ARRAYS)
def test_array_of_another_type_or_shape_is_an_error_with_its_name(kind: str, name: str, right: AnyArray) -> None:
    assert apply_example(kind, **{name: right}).time.size == N
    words = "range" if name == "distance" else name
    wrong: list[Any] = ["fast", ["a"] * N, [[1.0], [1.0, 2.0]], right + 1j, right > 0.0, [None] * N, {}, b"1", object()]
    for array in [*wrong, right[:-1], right[None], np.zeros((N, 7)), 1.0]:
        with pytest.raises(SensorError, match=rf"^{words}: .*; must be (an array of|\({N},)"):
            apply_example(kind, **{name: array})


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize(("kind", "name", "right"), OPTIONAL)
def test_number_of_an_optional_array_that_is_not_finite_is_an_error(kind: str, name: str, right: AnyArray) -> None:
    for value in (math.nan, math.inf):
        array = right.copy()
        array[3] = value
        if name == "beam_range":
            assert apply_example(kind, **{name: array}).time.size == N
        else:
            with pytest.raises(SensorError, match=rf"^{name} of row 3: .*; must be finite numbers"):
                apply_example(kind, **{name: array})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["imu", "dvl"])
@pytest.mark.parametrize("row", [[0.0] * 4, [2.0, 0.0, 0.0, 0.0], [1e200, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
def test_orientation_must_be_a_unit_quaternion(kind: str, row: list[float]) -> None:
    array = UNTURNED.copy()
    array[5] = row
    with pytest.raises(SensorError, match=r"^orientation of row 5: .*; must be (of length 1|a unit quaternion)"):
        apply_example(kind, orientation=array)


@pytest.mark.requirement("DOO-1")
@pytest.mark.parametrize(
    ("kind", "name", "lowest"),
    [
        ("air_pressure", "pressure", 0.0),
        ("depth", "pressure", 0.0),
        ("range", "distance", 0.0),
        ("dvl", "beam_range", 0.0),
        *((kind, "temperature", 0.0) for kind in GIVEN),
    ],
)
def test_value_that_is_physically_impossible_is_an_error_with_its_first_row(
    kind: str, name: str, lowest: float
) -> None:
    array = next(right for at, also, right in ARRAYS if (at, also) == (kind, name)).copy()
    array[3] = lowest
    assert apply_example(kind, **{name: array}).time.size == N
    array[3:5] = -5.0
    with pytest.raises(SensorError, match=rf"of row 3 \(.*\): -5.0; must be at least {lowest:g}"):
        apply_example(kind, **{name: array})


def test_gauge_pressure_below_vacuum_is_an_error() -> None:
    gauge = Depth(gauge=True, surface_pressure=1e5)
    assert gauge.apply(TIME, np.full(N, -1e5), seed=1).time.size == N
    with pytest.raises(SensorError, match=r"pressure of row 0 \(Pa\): -100001.0; must be at least -100000"):
        gauge.apply(TIME, np.full(N, -100001.0), seed=1)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": "7"}, "seed: 7; must be an integer"),
        ({"seed": 1.0}, "seed: 1.0; must be an integer"),
        ({"seed": None}, "seed.*must be an integer"),
        ({"seed": -1}, "seed: -1; must be an integer"),
        ({"run": "0"}, "run: 0; must be an integer"),
        ({"run": -1}, "run: -1; must be an integer"),
        ({"name": 3}, "name: 3; must be a text"),
        ({"clock": "c"}, "clock: c; must be a navsense.clock.Clock"),
        ({"time": None}, "time: .*; must be an array of real numbers"),
        ({"time": "now"}, "time: .*; must be an array of real numbers"),
    ],
)
def test_other_arguments_are_checked(kind: str, changed: dict[str, Any], message: str) -> None:
    spec, arguments = GIVEN[kind]
    with pytest.raises(NavsenseError, match=message):
        spec.apply(**{"time": TIME, "seed": 7, **arguments, **changed})
