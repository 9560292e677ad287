"""Signals of a world: linear interpolation, constant ends, discontinuities, and file errors with their line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navsense.core.errors import FieldError
from navsense.core.kernels import INTERPRETED
from navsense.environment import signal
from navsense.environment.signal import Signal

RAMP = Signal((0.0, 10.0, 10.0, 20.0, 24.0), (1.0, 3.0, -2.0, -2.0, 6.0))


@pytest.mark.parametrize(
    ("time", "value"),
    [(-5.0, 1.0), (0.0, 1.0), (2.5, 1.5), (9.0, 2.8), (10.0, -2.0), (15.0, -2.0), (22.0, 2.0), (24.0, 6.0), (1e9, 6.0)],
)
def test_signal_is_linear_and_constant_outside(time: float, value: float) -> None:
    assert RAMP.at(np.array([time])).tolist() == pytest.approx([value], rel=1e-15, abs=0.0)


def test_duplicate_time_is_a_discontinuity() -> None:
    assert RAMP.at(np.array([math.nextafter(10.0, 0.0), 10.0])).tolist() == pytest.approx(
        [3.0, -2.0], rel=1e-15, abs=0.0
    )
    step = Signal((0.0, 0.0), (1.0, 2.0))
    assert step.at(np.array([-1.0, 0.0, 1.0])).tolist() == [1.0, 2.0, 2.0]


def test_constant_signal() -> None:
    assert Signal.constant(21).at(np.array([-1.0, 0.0, 1e6])).tolist() == [21.0, 21.0, 21.0]


POINTS = st.lists(
    st.tuples(st.integers(-(10**12), 10**12).map(lambda ns: ns * 1e-9), st.floats(-1e6, 1e6)),
    min_size=1,
    max_size=12,
    unique_by=lambda p: p[0],
)
"""Times are at least a nanosecond apart: NumPy's slope over less is infinite."""


@given(POINTS, st.lists(st.floats(-1.1e3, 1.1e3), min_size=1, max_size=20))
def test_values_equal_numpy_in_any_order_and_split(points: list[tuple[float, float]], instants: list[float]) -> None:
    times, values = zip(*sorted(points), strict=True)
    one, time = Signal(times, values), np.array(instants)
    complete = one.at(time)
    assert complete == pytest.approx(np.interp(time, times, values), rel=1e-9, abs=1e-6)
    assert np.array_equal(np.concatenate([one.at(time[i : i + 1]) for i in range(len(time))]), complete)
    assert np.array_equal(one.at(time[::-1].copy())[::-1], complete)


def test_signals_compare_by_value() -> None:
    assert Signal(RAMP.times, RAMP.values) == RAMP
    assert hash(RAMP) == hash(Signal(RAMP.times, RAMP.values))


@pytest.mark.parametrize(
    ("times", "values", "problem"),
    [
        ((), (), "numbers of times and values: 0 and 0; must be the same, and not 0"),
        ((0.0, 1.0), (0.0,), "2 and 1"),
        ((0.0, -1.0), (0.0, 0.0), "signal time of row 1 (s): -1.0; must not be before 0.0 s"),
        ((0.0, 0.0, 0.0), (0.0, 1.0, 2.0), "must not be given more than twice"),
        ((0.0, math.inf), (0.0, 1.0), "signal time of row 1 (s): inf; must be a number of absolute value up to 1e+100"),
        ((0.0,), (math.nan,), "signal value of row 0: nan; must be a number of absolute value"),
        ((0.0, 1.0), (1e308, -1e308), "signal value of row 0: 1e+308; must be a number of absolute value up to 1e+100"),
        ((-1e101, 1.0), (0.0, 0.0), "signal time of row 0 (s): -1e+101; must be a number of absolute value"),
    ],
)
def test_invalid_signal_is_an_error(times: tuple[float, ...], values: tuple[float, ...], problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        Signal(times, values)
    assert problem in str(caught.value)


def test_signal_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "motor.csv"
    path.write_bytes(b"\xef\xbb\xbftime, value\r\n0,1\r\n\r\n 10 , 3e0\r\n10,-2\r\n")
    assert Signal.from_file(path) == Signal((0.0, 10.0, 10.0), (1.0, 3.0, -2.0))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "motor.csv: signal: is empty; must be a CSV file of time,value"),
        ("t,v\n0,1\n", "motor.csv:1: header of the signal: t,v; must be time,value"),
        ("time,value\n", "motor.csv: rows of the signal: none; must have at least one"),
        ("time,value\n0,1,2\n", "motor.csv:2: number of columns: 3; must be 2: time, value"),
        ("time,value\n0,1\n\n1,x\n", "motor.csv:4: value: x; must be a finite number"),
        ("time,value\n1,1\n0.5,1\n", "motor.csv:3: signal time (s): 0.5; must not be before 1.0 s"),
        ("time,value\n0,1\n1,nan\n", "motor.csv:3: value: nan; must be a finite number"),
        ("time,value\n0,1\n0,1\n0,1\n", "motor.csv:4: signal time (s): 0.0; must not be given more than twice"),
        ("time,value\n1_0,1\n", "motor.csv:2: time: 1_0; must be a finite number"),
        ("time,value\n0,0x1p3\n", "motor.csv:2: value: 0x1p3; must be a finite number"),
        ("time,value\n0,１０\n", "motor.csv:2: value: １０; must be a finite number"),
        ("time,value\n0,1e200\n", "motor.csv:2: signal value: 1e+200; must be a number of absolute"),
        ("time,value\n0,\0\n", "motor.csv: signal: is not text; must be a CSV file of time,value in UTF-8"),
    ],
)
def test_invalid_file_error_has_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "motor.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FieldError) as caught:
        Signal.from_file(path)
    assert problem in str(caught.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match=r"none.csv: signal: does not exist"):
        Signal.from_file(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"time,value\n0,\xff\n")
    with pytest.raises(FieldError, match="signal: is not text"):
        Signal.from_file(tmp_path / "latin.csv")


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree_to_the_last_bit(interpret: Callable[[Any], Callable[..., Any]]) -> None:
    time, plain = np.random.default_rng(2).uniform(-5.0, 30.0, 100), np.empty(100)
    interpret(signal.interpolate)(*RAMP.points, time, plain)
    assert np.array_equal(RAMP.at(time), plain)


def test_interpolation_between_the_largest_values_is_finite() -> None:
    steep = Signal((0.0, 5e-324, 1.0), (1e100, -1e100, 1e100))
    assert np.isfinite(steep.at(np.array([0.0, 5e-324, 0.25, 0.5, 1.0]))).all()
