"""Windows that are handed on a few at a time: which, when, and what is left when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import navsense as ns
from navsense import gather
from navsense.gather import gathered
from navsense.sensors import Imu
from navsense.series import Slab
from navsense.session import Session, prepare
from navsense.sinks.load import load
from navsense.testing import witness_world


class Wall:
    """A wall clock that goes on by `step` at each look."""

    def __init__(self, step: float) -> None:
        self.time, self.step = 100.0, step

    def now(self) -> float:
        self.time += self.step
        return self.time


def watched(slabs: list[Slab], made: list[int], end: BaseException | None = None) -> Iterator[Slab]:
    """Yield slabs, noting how many were made; then raise `end`."""
    for slab in slabs:
        made.append(len(made))
        yield slab
    if end is not None:
        raise end


@pytest.fixture(scope="module")
def slabs() -> list[Slab]:
    """Return ten windows of 100 samples each."""
    return list(prepare(witness_world(("imu", Imu())), 10.0, seed=1).slabs(1.0))


def test_some_are_made_before_the_first_is_handed_on(slabs: list[Slab], monkeypatch: pytest.MonkeyPatch) -> None:
    each = sum(reading.time.size for reading in slabs[0].readings.values())
    monkeypatch.setattr(gather, "SAMPLES", 4 * each)
    made: list[int] = []
    seen = [(slab, len(made)) for slab in gathered(watched(slabs, made), Wall(0.0).now)]
    assert [slab for slab, _ in seen] == slabs
    assert [count for _, count in seen] == [4] * 4 + [8] * 4 + [10] * 2


def test_whoever_is_slow_does_not_wait_for_more(slabs: list[Slab]) -> None:
    made: list[int] = []
    counts = [len(made) for _ in gathered(watched(slabs, made), Wall(gather.PATIENCE).now)]
    assert counts == list(range(1, 11))


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RuntimeError("gone")])
def test_what_waits_is_handed_on_before_an_error(slabs: list[Slab], end: BaseException) -> None:
    found: list[Slab] = []
    with pytest.raises(type(end)):
        found.extend(gathered(watched(slabs[:3], [], end), Wall(0.0).now))
    assert found == slabs[:3]


def test_an_interrupt_keeps_the_windows_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slabs = Session.slabs
    monkeypatch.setattr(Session, "slabs", lambda own: watched(list(slabs(own, 1.0))[:2], [], KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ns.record(witness_world(("imu", Imu())), tmp_path / "run.npz", 10.0, seed=1)
    kept = load(tmp_path / "run.npz")
    (reading,) = kept.values()
    assert 1.0 < reading.time[-1] < 2.0
