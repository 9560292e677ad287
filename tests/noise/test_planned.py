"""Scheduled faults of one sensor: a reference in exact fractions, row by row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import SensorError
from navsense.core.readings import FAULT_BITS
from navsense.core.ticks import Ticks
from navsense.core.typing import BoolArray
from navsense.faults.injection import Faults, apply_faults, init_faults
from navsense.faults.schedule import ScheduledFault
from navsense.messages.world_messages import pack_fault_bits
from navsense.testing import is_identical

EMPTY = np.empty((0, 0))

SPIKE, DROPOUT, STUCK = (FAULT_BITS[kind] for kind in ("spike", "dropout", "stuck"))


def make_spike(start: float, end: float = np.inf, period: float = 0.0, value: float = 1e6) -> ScheduledFault:
    return ScheduledFault("spike", start, end, "x", (value,), period)


def apply_in_blocks(
    planned: tuple[ScheduledFault, ...], rate: float, published: BoolArray, cuts: tuple[int, ...] = ()
) -> tuple[dict[str, Any], Any]:
    """Return a ramp with scheduled faults, computed in blocks, and the final state."""
    faults, parts = Faults(scheduled=planned), []
    state, ramp = init_faults(faults, EMPTY), np.arange(published.size, dtype=np.float64)
    for first, stop in zip((0, *cuts), (*cuts, published.size), strict=True):
        ticks, arrays = Ticks(np.arange(first, stop), rate), {"x": ramp[first:stop]}
        state, shown, fault = apply_faults(faults, state, ticks, EMPTY, arrays, published[first:stop])
        parts.append({**shown, "published": ~fault["dropout"], "fault": pack_fault_bits(fault)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, state


def find_spike_rows(start: str, end: str, period: str, rate: str, published: BoolArray) -> list[int]:
    """Return the rows with a spike, in fractions: a spike waits for the next published row before its end."""
    instant: Fraction | None = Fraction(start)
    last, step, rows = Fraction(end), Fraction(period), []
    for row in np.flatnonzero(published):
        now, hit = Fraction(int(row)) / Fraction(rate), False
        while instant is not None and instant <= now:
            hit = True
            instant = instant + step if step else None
        if hit and Fraction(start) <= now < last:
            rows.append(int(row))
    return rows


CASES = [
    ("0.21", "3.3", "0", "10"),
    ("0.2", "9", "0.1", "10"),
    ("0.2", "9", "0.3", "10"),
    ("0.1", "9", "0.35", "10"),
    ("0.3", "9", "0.7", "100"),
    ("1", "8", "0.05", "10"),
    ("0.7", "9", "0.01", "333"),
    ("0", "9", "7", "0.7"),
    ("-1.05", "9", "0.1", "25"),
]

MASKS = [lambda k: k >= 0, lambda k: k % 7 == 3, lambda k: (k * k) % 11 < 3, lambda k: k > 250]


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("mask", MASKS, ids=["each", "every_7th", "odd", "late"])
@pytest.mark.parametrize(("start", "end", "period", "rate"), CASES)
def test_spike_hits_the_first_emitted_sample(start: str, end: str, period: str, rate: str, mask: Any) -> None:
    """The spike acts once, on that row only, with exact decimals, for any block size."""
    published = mask(np.arange(300))
    expected = np.zeros(300)
    expected[find_spike_rows(start, end, period, rate, published)] = 1.0
    planned = (make_spike(float(start), float(end), float(period)),)
    complete, state = apply_in_blocks(planned, float(rate), published)
    assert np.array_equal(complete["x"], np.arange(300) + 1e6 * expected)
    assert np.array_equal(complete["fault"], SPIKE * expected)
    for cuts in ((1,), (299,), (4, 5, 100), tuple(range(1, 300))):
        pieces, end_state = apply_in_blocks(planned, float(rate), published, cuts)
        assert all(values.tobytes() == pieces[name].tobytes() for name, values in complete.items())
        assert is_identical(end_state, state)


@pytest.mark.requirement("NOI-6")
def test_spike_without_a_sample_before_its_end_has_no_effect() -> None:
    published = np.arange(20) % 8 == 7
    for end, rows in ((0.7, []), (0.71, [7])):
        faulty, _ = apply_in_blocks((make_spike(0.1, end),), 10.0, published)
        assert np.flatnonzero(faulty["fault"]).tolist() == rows
        assert np.flatnonzero(faulty["x"] > 1e5).tolist() == rows


@pytest.mark.requirement("NOI-6")
def test_waiting_spikes_add_up_in_one_sample() -> None:
    published = np.arange(10) >= 6
    faulty, _ = apply_in_blocks(
        (make_spike(0.1, value=1e6), make_spike(0.3, value=1e8), make_spike(0.8, value=1e9)), 10.0, published
    )
    assert faulty["x"].tolist() == [0, 1, 2, 3, 4, 5, 6 + 1e6 + 1e8, 7, 8 + 1e9, 9]
    assert faulty["fault"].tolist() == [0, 0, 0, 0, 0, 0, SPIKE, 0, SPIKE, 0]


@pytest.mark.requirement("NOI-6")
def test_unpublished_sample_consumes_its_spike() -> None:
    """A spike on a dropped sample is lost. A stuck sensor repeats the earlier sample with its spike."""
    published = np.ones(12, dtype=np.bool_)
    dropped, _ = apply_in_blocks((make_spike(0.3), ScheduledFault("dropout", 0.3, 0.5)), 10.0, published)
    assert dropped["fault"].tolist() == [0, 0, 0, DROPOUT, DROPOUT] + [0] * 7
    assert not (dropped["x"] > 1e5).any()
    stuck, _ = apply_in_blocks((make_spike(0.4), ScheduledFault("stuck", 0.3, 0.6)), 10.0, published)
    assert stuck["fault"].tolist() == [0, 0, 0, STUCK, STUCK, STUCK] + [0] * 6
    assert stuck["x"].tolist() == [0, 1, 2, 2, 2, 2, 6, 7, 8, 9, 10, 11]
    before, _ = apply_in_blocks((make_spike(0.2), ScheduledFault("stuck", 0.3, 0.5)), 10.0, published)
    assert before["fault"].tolist() == [0, 0, SPIKE, STUCK, STUCK] + [0] * 7
    assert (before["x"] > 1e5).tolist() == [False, False, True, True, True] + [False] * 7
    first, _ = apply_in_blocks((make_spike(0.0), ScheduledFault("stuck", 0.0, 0.5)), 10.0, published)
    assert first["fault"].tolist() == [SPIKE] + [STUCK] * 4 + [0] * 7, "nothing is there to be stuck at"


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("period", [5e-324, 1e-308, 1e-9, 0.05, 0.1])
def test_spike_period_of_at_most_one_sample_hits_every_sample(period: float) -> None:
    faulty, _ = apply_in_blocks((make_spike(0.2, 0.9, period),), 10.0, np.ones(12, dtype=np.bool_))
    assert np.flatnonzero(faulty["fault"]).tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert (faulty["x"] - np.arange(12)).max() == 1e6, "once each, however many there are between two samples"


@pytest.mark.requirement("NOI-6")
def test_faults_of_one_kind_may_overlap() -> None:
    """Biases add; other kinds are active while any fault is; none is active after the end of the record."""
    biases = (ScheduledFault("bias", 0.1, 0.4, "x", (100.0,)), ScheduledFault("bias", 0.3, 0.6, "x", (1000.0,)))
    silent = (ScheduledFault("dropout", 0.7, 0.9), ScheduledFault("dropout", 0.8, 1.0), ScheduledFault("dropout", 99.0))
    faulty, _ = apply_in_blocks((*biases, *silent), 10.0, np.ones(12, dtype=np.bool_))
    assert faulty["x"][:7].tolist() == [0.0, 101.0, 102.0, 1103.0, 1004.0, 1005.0, 6.0]
    assert np.flatnonzero(~faulty["published"]).tolist() == [7, 8, 9]
    assert faulty["fault"].tolist() == [0, 4, 4, 4, 4, 4, 0, 1, 1, 1, 0, 0]


@pytest.mark.requirement("NOI-6")
def test_only_nearby_faults_of_a_long_schedule_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live run evaluates row by row: past and future faults have no cost."""
    planned = tuple(make_spike(k / 10.0, value=float(k)) for k in range(10_000))
    looks, acts = [], ScheduledFault.find_rows

    def count_calls(fault: ScheduledFault, block: Any) -> BoolArray:
        looks.append(fault)
        return acts(fault, block)

    monkeypatch.setattr(ScheduledFault, "find_rows", count_calls)
    faulty, _ = apply_in_blocks(planned, 10.0, np.ones(500, dtype=np.bool_), tuple(range(1, 500)))
    assert np.array_equal(faulty["x"], 2.0 * np.arange(500))
    assert len(looks) == 500


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": ""}, "kind of a fault: missing; must be one of dropout, stuck"),
        ({"kind": "spike", "start": 1e300}, "1e\\+300 to inf; must be from a finite time, of at most 1e\\+12 s"),
        ({"kind": "spike", "period": -1.0}, "must be finite and >= 0"),
        ({"kind": "spike", "period": np.inf}, "must be finite and >= 0"),
        ({"kind": "spike", "period": np.nan}, "must be finite and >= 0"),
    ],
)
def test_invalid_fault_is_an_error(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(SensorError, match=problem):
        ScheduledFault(**{"start": 1.0, "array": "x", "value": (1.0,), **fields})
