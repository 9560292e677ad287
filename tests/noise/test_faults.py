"""Dropouts and stuck sensors: their statistics equal the telegraph process, and their effect on readings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import SensorError
from navsense.core.kernels import INTERPRETED
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import BoolArray
from navsense.faults import injection as module
from navsense.faults.injection import Faults, apply_faults, init_faults
from navsense.messages.world_messages import pack_fault_bits

Z = 4.892
"""Two-sided normal quantile of a false-alarm rate of 1e-6."""

BOTH = Faults(dropout_rate=0.5, dropout_duration=0.4, stuck_rate=0.8, stuck_duration=0.3)


def apply_to_ramp(
    faults: Faults,
    count: int,
    rate: float,
    cuts: tuple[int, ...] = (),
    run: int = 0,
    emitted: BoolArray | None = None,
) -> dict[str, Any]:
    """Return a ramp with the faults, computed in blocks."""
    draws = Draws(faults.processes(), 3, (run, "law"))
    state, parts = init_faults(faults, draws.initial), []
    ramp = np.arange(count, dtype=np.float64)
    published = np.ones(count, dtype=np.bool_) if emitted is None else emitted
    for first, stop in zip((0, *cuts), (*cuts, count), strict=True):
        ticks = Ticks(np.arange(first, stop), rate)
        arrays = {"x": ramp[first:stop], "v": np.tile(ramp[first:stop, None], (1, 3)), "n": np.arange(first, stop)}
        state, shown, fault = apply_faults(
            faults, state, ticks, draws.take(stop - first), arrays, published[first:stop]
        )
        parts.append({**shown, "published": ~fault["dropout"], "fault": pack_fault_bits(fault)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def find_dropped(rate: float, count: int, run: int) -> BoolArray:
    return ~apply_to_ramp(Faults(dropout_rate=0.5, dropout_duration=0.4), count, rate, run=run)["published"]


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("rate", [2.0, 200.0])
def test_share_of_faulty_samples_is_the_declared_one_from_the_start(rate: float) -> None:
    runs, share = 4000, 0.2 / 1.2
    dropped_ends = np.array([find_dropped(rate, 8, run)[[0, 7]] for run in range(runs)])
    assert (np.abs(dropped_ends.mean(axis=0) - share) < Z * math.sqrt(share * (1.0 - share) / runs)).all()


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("rate", [20.0, 500.0])
def test_faults_have_declared_rate_and_duration_at_any_sample_rate(rate: float) -> None:
    """A fault is on again after a lag with probability p + (1 - p) exp(-(r + 1/d) lag), over independent runs."""
    runs, share, lag = 4000, 0.2 / 1.2, 0.3
    count = int(lag * rate) + 1
    pairs = np.array([find_dropped(rate, count, run)[[0, -1]] for run in range(runs)])
    on = pairs[pairs[:, 0], 1]
    expected = share + (1.0 - share) * math.exp(-(0.5 + 2.5) * lag)
    assert abs(on.mean() - expected) < Z * math.sqrt(expected * (1.0 - expected) / on.size)


@pytest.mark.requirement("NOI-6")
def test_dropout_is_nan_and_stuck_repeats_the_last_sample() -> None:
    faulty = apply_to_ramp(BOTH, 4000, 50.0)
    quiet = ~faulty["published"]
    assert quiet.any()
    assert (np.isnan(faulty["x"]) == quiet).all()
    assert (np.isnan(faulty["v"]) == quiet[:, None]).all()
    speaking = np.flatnonzero(faulty["published"])
    published = faulty["x"][speaking]
    assert (np.diff(published) >= 0.0).all()
    assert (published < speaking).any(), "now and then it is stuck"
    fresh = speaking[published == speaking]
    assert fresh.size > speaking.size / 2
    assert np.array_equal(faulty["n"][fresh], fresh)
    late = apply_to_ramp(Faults(stuck_rate=0.8, stuck_duration=0.3), 4000, 50.0)["x"]
    assert set(late.tolist()) <= set(range(4000))
    assert (late <= np.arange(4000)).all()


def simulate_telegraph(faults: Faults, kind: str, count: int, rate: float, run: int) -> BoolArray:
    """Return where a fault kind is on, in the run of `apply_to_ramp`."""
    draws, row = Draws(faults.processes(), 3, (run, "law")), faults.random_kinds.index(kind)
    out = np.zeros(count, dtype=np.bool_)
    begins, lasts = faults.get_rate_and_duration(kind)
    on = init_faults(faults, draws.initial).active[row]
    figures = (faults.compute_on_probability(kind), begins + 1.0 / lasts, rate)
    module._write_telegraph(on, *figures, 0, np.arange(count), draws.take(count)[row], out)
    return out


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("cuts", [(), (1,), (2, 3, 9), tuple(range(1, 300))])
def test_stuck_sensor_repeats_the_last_emitted_value(cuts: tuple[int, ...]) -> None:
    """A simple loop over rows is the reference: unpublished and dropped values are never repeated."""
    often = Faults(dropout_rate=2.0, dropout_duration=0.2, stuck_rate=3.0, stuck_duration=0.5)
    emitted, stuck_at_start, swallowed = np.arange(400) % 7 > 3, 0, 0
    for run in range(10):
        faulty = apply_to_ramp(often, 400, 20.0, cuts, run, emitted)
        stuck, silent = (simulate_telegraph(often, kind, 400, 20.0, run) for kind in ("stuck", "dropout"))
        assert np.array_equal(faulty["published"], ~silent)
        last = None
        for i in range(400):
            shows = last if stuck[i] and last is not None else i
            assert faulty["n"][i] == shows
            last = shows if emitted[i] and not silent[i] else last
        stuck_at_start += int(stuck[0])
        swallowed += int((stuck[1:] & ~stuck[:-1] & (silent | ~emitted)[:-1]).sum())
    assert stuck_at_start > 0
    assert swallowed > 0


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("cuts", [(1,), (7, 8, 200), tuple(range(1, 60)), (999,)])
def test_faults_do_not_depend_on_block_size(cuts: tuple[int, ...]) -> None:
    for run in range(6):
        complete, pieces = apply_to_ramp(BOTH, 1000, 50.0, run=run), apply_to_ramp(BOTH, 1000, 50.0, cuts, run)
        for name, values in complete.items():
            assert values.tobytes() == pieces[name].tobytes(), name


@pytest.mark.skipif(INTERPRETED, reason="compares compiled with interpreted code")
def test_compiled_and_interpreted_agree(
    interpret: Callable[[Any], Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = apply_to_ramp(BOTH, 500, 50.0)
    monkeypatch.setattr(module, "_write_telegraph", interpret(module._write_telegraph))
    plain = apply_to_ramp(BOTH, 500, 50.0)
    for name, values in compiled.items():
        assert values.tobytes() == plain[name].tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"dropout_rate": -1.0, "dropout_duration": 1.0},
        {"dropout_rate": 1.0},
        {"stuck_duration": 1.0},
        {"stuck_rate": math.nan, "stuck_duration": 1.0},
        {"stuck_rate": math.inf, "stuck_duration": 1.0},
    ],
)
def test_invalid_rate_is_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(SensorError):
        Faults(**wrong)
