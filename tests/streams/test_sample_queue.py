"""The queue between a live system and a run."""

from __future__ import annotations

import threading

import pytest

import navsense as ns
from navsense.core.errors import FieldError, MotionError
from navsense.streams import CurrentSubscriber, Subscriber


def test_newest_velocity_is_kept() -> None:
    """Velocities that nobody reads are replaced and reported by nobody."""
    subscriber = CurrentSubscriber("water://", "topic /water")
    for x in (0.1, 0.2, 0.3):
        subscriber.put((x, 0.0, 0.0))
    assert subscriber.receive(0.0) == [(0.3, 0.0, 0.0)]
    assert subscriber.receive(0.0) == []
    assert subscriber.dropped == 0


@pytest.mark.parametrize(
    ("subscriber", "error"),
    [(CurrentSubscriber("water://", "topic /water"), FieldError), (Subscriber("list://", "topic /odom"), MotionError)],
)
def test_error_follows_the_last_sample(subscriber: CurrentSubscriber | Subscriber, error: type[Exception]) -> None:
    """`receive` returns what came before the end, then raises the first error."""
    if isinstance(subscriber, Subscriber):
        subscriber.put(1, ns.State())
    else:
        subscriber.put((0.1, 0.0, 0.0))
    subscriber.fail("the connection is closed", remedy="start it again")
    subscriber.fail("another reason")
    assert len(subscriber.receive(0.0)) == 1
    for _ in range(2):
        with pytest.raises(error, match=r"topic /\w+: the connection is closed; start it again"):
            subscriber.receive(0.0)


def test_closing_ends_the_wait_and_the_samples() -> None:
    """A closed queue has no samples. It disconnects once."""
    calls: list[str] = []

    class Transport(CurrentSubscriber):
        def disconnect(self) -> None:
            calls.append("disconnect")

    with Transport("water://", "topic /water") as subscriber:
        received: list[object] = []
        reader = threading.Thread(target=lambda: received.append(subscriber.receive(60.0)))
        reader.start()
    reader.join(timeout=30.0)
    subscriber.close()
    subscriber.put((0.1, 0.0, 0.0))
    assert (received, subscriber.receive(0.0), calls) == ([[]], [], ["disconnect"])
