"""Time slices are buffered and yielded together; an error loses none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import navsense as ns
from navsense.core.readings import TimeSlice
from navsense.runner import run as run_module
from navsense.sensors import Imu
from navsense.simulation import buffering
from navsense.simulation.buffering import buffer_slices
from navsense.simulation.run_controls import RunControls
from navsense.simulation.session import Session, prepare
from navsense.testing import example_world


class WallClock:
    """A wall clock that advances by `step` at each call."""

    def __init__(self, step: float) -> None:
        self.time, self.step = 100.0, step

    def now(self) -> float:
        self.time += self.step
        return self.time


def watch_slices(slices: list[TimeSlice], computed: list[int], end: BaseException | None = None) -> Iterator[TimeSlice]:
    """Yield time slices and store how many were computed; then raise `end`."""
    for time_slice in slices:
        computed.append(len(computed))
        yield time_slice
    if end is not None:
        raise end


@pytest.fixture(scope="module")
def slices() -> list[TimeSlice]:
    """Return ten time slices of 100 samples each."""
    return list(prepare(example_world(("imu", Imu())), 10.0, seed=1).compute_slices(1.0))


def test_slices_are_buffered_up_to_the_sample_limit(slices: list[TimeSlice], monkeypatch: pytest.MonkeyPatch) -> None:
    each = sum(reading.time.size for reading in slices[0].readings.values())
    monkeypatch.setattr(buffering, "MAX_BUFFERED_SAMPLES", 4 * each)
    computed: list[int] = []
    counts = [
        (time_slice, len(computed)) for time_slice in buffer_slices(watch_slices(slices, computed), WallClock(0.0).now)
    ]
    assert [time_slice for time_slice, _ in counts] == slices
    assert [count for _, count in counts] == [4] * 4 + [8] * 4 + [10] * 2


def test_slow_slices_are_yielded_immediately(slices: list[TimeSlice]) -> None:
    computed: list[int] = []
    counts = [
        len(computed)
        for _ in buffer_slices(watch_slices(slices, computed), WallClock(buffering.MAX_BUFFERED_SECONDS).now)
    ]
    assert counts == list(range(1, 11))


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RuntimeError("gone")])
def test_waiting_slices_are_yielded_before_an_error(slices: list[TimeSlice], end: BaseException) -> None:
    found: list[TimeSlice] = []
    with pytest.raises(type(end)):
        found.extend(buffer_slices(watch_slices(slices[:3], [], end), WallClock(0.0).now))
    assert found == slices[:3]


def test_interrupt_keeps_waiting_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute_two_slices(session: Session, _controls: RunControls) -> Iterator[TimeSlice]:
        return watch_slices(list(session.compute_slices(1.0))[:2], [], KeyboardInterrupt())

    monkeypatch.setattr(run_module, "compute_controlled_slices", compute_two_slices)
    with pytest.raises(KeyboardInterrupt):
        ns.record(example_world(("imu", Imu())), tmp_path / "run.npz", 10.0, seed=1)
    loaded = ns.open(tmp_path / "run.npz")
    (reading,) = loaded.values()
    assert 1.0 < reading.time[-1] < 2.0
