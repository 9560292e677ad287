"""Windows that are handed on a few at a time: which, when, and what is left when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import navsense as ns
from navsense.core.readings import TimeSlice
from navsense.sensors import Imu
from navsense.simulation import buffering
from navsense.simulation.buffering import buffer_slices
from navsense.simulation.session import Session, prepare
from navsense.testing import example_world


class Wall:
    """A wall clock that goes on by `step` at each look."""

    def __init__(self, step: float) -> None:
        self.time, self.step = 100.0, step

    def now(self) -> float:
        self.time += self.step
        return self.time


def watched(slabs: list[TimeSlice], made: list[int], end: BaseException | None = None) -> Iterator[TimeSlice]:
    """Yield slabs, noting how many were made; then raise `end`."""
    for slab in slabs:
        made.append(len(made))
        yield slab
    if end is not None:
        raise end


@pytest.fixture(scope="module")
def slabs() -> list[TimeSlice]:
    """Return ten windows of 100 samples each."""
    return list(prepare(example_world(("imu", Imu())), 10.0, seed=1).compute_slices(1.0))


def test_some_are_made_before_the_first_is_handed_on(slabs: list[TimeSlice], monkeypatch: pytest.MonkeyPatch) -> None:
    each = sum(reading.time.size for reading in slabs[0].readings.values())
    monkeypatch.setattr(buffering, "MAX_BUFFERED_SAMPLES", 4 * each)
    made: list[int] = []
    seen = [(slab, len(made)) for slab in buffer_slices(watched(slabs, made), Wall(0.0).now)]
    assert [slab for slab, _ in seen] == slabs
    assert [count for _, count in seen] == [4] * 4 + [8] * 4 + [10] * 2


def test_slow_computation_is_passed_on_at_once(slabs: list[TimeSlice]) -> None:
    made: list[int] = []
    counts = [len(made) for _ in buffer_slices(watched(slabs, made), Wall(buffering.MAX_BUFFERED_SECONDS).now)]
    assert counts == list(range(1, 11))


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RuntimeError("gone")])
def test_waiting_slices_are_yielded_before_an_error(slabs: list[TimeSlice], end: BaseException) -> None:
    found: list[TimeSlice] = []
    with pytest.raises(type(end)):
        found.extend(buffer_slices(watched(slabs[:3], [], end), Wall(0.0).now))
    assert found == slabs[:3]


def test_an_interrupt_keeps_the_windows_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slabs = Session.compute_slices
    monkeypatch.setattr(
        Session, "compute_slices", lambda own: watched(list(slabs(own, 1.0))[:2], [], KeyboardInterrupt())
    )
    with pytest.raises(KeyboardInterrupt):
        ns.record(example_world(("imu", Imu())), tmp_path / "run.npz", 10.0, seed=1)
    kept = ns.open(tmp_path / "run.npz")
    (reading,) = kept.values()
    assert 1.0 < reading.time[-1] < 2.0
