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


def watch_slices(slabs: list[TimeSlice], computed: list[int], end: BaseException | None = None) -> Iterator[TimeSlice]:
    """Yield slabs, noting how many were made; then raise `end`."""
    for slab in slabs:
        computed.append(len(computed))
        yield slab
    if end is not None:
        raise end


@pytest.fixture(scope="module")
def slabs() -> list[TimeSlice]:
    """Return ten windows of 100 samples each."""
    return list(prepare(example_world(("imu", Imu())), 10.0, seed=1).compute_slices(1.0))


def test_slices_are_buffered_up_to_the_sample_limit(slabs: list[TimeSlice], monkeypatch: pytest.MonkeyPatch) -> None:
    each = sum(reading.time.size for reading in slabs[0].readings.values())
    monkeypatch.setattr(buffering, "MAX_BUFFERED_SAMPLES", 4 * each)
    computed: list[int] = []
    counts = [(slab, len(computed)) for slab in buffer_slices(watch_slices(slabs, computed), Wall(0.0).now)]
    assert [slab for slab, _ in counts] == slabs
    assert [count for _, count in counts] == [4] * 4 + [8] * 4 + [10] * 2


def test_slow_slices_are_yielded_immediately(slabs: list[TimeSlice]) -> None:
    computed: list[int] = []
    counts = [
        len(computed) for _ in buffer_slices(watch_slices(slabs, computed), Wall(buffering.MAX_BUFFERED_SECONDS).now)
    ]
    assert counts == list(range(1, 11))


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RuntimeError("gone")])
def test_waiting_slices_are_yielded_before_an_error(slabs: list[TimeSlice], end: BaseException) -> None:
    found: list[TimeSlice] = []
    with pytest.raises(type(end)):
        found.extend(buffer_slices(watch_slices(slabs[:3], [], end), Wall(0.0).now))
    assert found == slabs[:3]


def test_interrupt_keeps_waiting_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slabs = Session.compute_slices
    monkeypatch.setattr(
        Session, "compute_slices", lambda session: watch_slices(list(slabs(session, 1.0))[:2], [], KeyboardInterrupt())
    )
    with pytest.raises(KeyboardInterrupt):
        ns.record(example_world(("imu", Imu())), tmp_path / "run.npz", 10.0, seed=1)
    loaded = ns.open(tmp_path / "run.npz")
    (reading,) = loaded.values()
    assert 1.0 < reading.time[-1] < 2.0
