"""The current of a run, fed from a topic of a live system while the run goes on.

    navsense run WORLD --current "ros1://HOST:PORT?topic=TOPIC" -o ...

Each velocity acts from the next time slice on, until another one comes. It replaces the uniform or random current of
the world. The recording has each velocity as a change of the run. A run with the same changes is equal to the last bit.
The stamps of messages are not used, because they belong to another clock. Equal velocities in a row are one change.
"""

from __future__ import annotations

import logging
import threading
from typing import Self

from navsense.core.errors import FieldError, NavsenseError, SimulationError, Where
from navsense.core.interrupts import interruptible
from navsense.core.typing import Vector
from navsense.environment.current.base import to_world_axes
from navsense.simulation.run_controls import RunControls
from navsense.streams.current import CurrentSubscriber
from navsense.streams.stream import open_current
from navsense.world import World

LOG = logging.getLogger(__name__)

POLL = 0.2
"""Longest time (s) of one wait for a velocity, and until the end of the feed."""


class CurrentFeed:
    """Passes velocities of the water from a subscriber to the controls of a run, in a thread of its own."""

    def __init__(self, subscriber: CurrentSubscriber, world: World, controls: RunControls) -> None:
        """Raise `SimulationError` if the world has no current that can be changed. The subscriber is then closed."""
        if not controls.has_adjustable_current:
            subscriber.close()
            raise SimulationError(
                "current of the world",
                allowed="must be uniform or random to be fed from a topic",
                where=Where(subscriber.url),
                remedy="add <navsense:current><uniform>0 0 0</uniform></navsense:current> to the world",
            )
        origin = world.environment.origin
        self._subscriber, self._controls = subscriber, controls
        self._heading = 0.0 if origin is None else origin.heading
        self._last: tuple[Vector, int] | None = None
        self._is_ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Pass velocities from now on. Raises `SimulationError` if the system cannot start a thread."""
        thread = threading.Thread(target=self._run, name="navsense-current", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            what, remedy = "the system cannot start another thread", "end other programs, or raise ulimit -u"
            raise SimulationError(what, where=Where(self._subscriber.url), remedy=remedy) from error
        self._thread = thread

    def _run(self) -> None:
        """Pass each velocity that differs from the one before."""
        while not self._is_ending.is_set():
            try:
                velocities = self._subscriber.receive(POLL)
            except FieldError as error:
                LOG.warning("%s; the current stays as it is", error)
                return
            except Exception:
                LOG.exception("%s: internal error; the current stays as it is", self._subscriber.url)
                return
            for velocity in map(self._rotate, velocities):
                # A velocity acts again after a service has changed the current.
                key = velocity, self._controls.current_requests
                if key != self._last:
                    self._last = key
                    try:
                        self._controls.feed_current(velocity)
                    except NavsenseError as error:
                        LOG.warning("%s: %s; the current stays as it is", self._subscriber.url, error)

    def _rotate(self, velocity: Vector) -> Vector:
        """Return a velocity along the axes of the world."""
        x, y, z = velocity
        frame = self._subscriber.frame
        if frame == "ned":
            x, y, z = y, x, -z
        if frame == "world" or self._heading == 0.0:
            return x, y, z
        x, y, z = to_world_axes([(x, y, z)], self._heading)[0].tolist()
        return x, y, z

    def __enter__(self) -> Self:
        """Return the feed."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Disconnect."""
        self._is_ending.set()
        self._subscriber.close()
        if self._thread is not None:
            self._thread.join()


def open_current_feed(url: str, world: World, controls: RunControls) -> CurrentFeed:
    """Connect to the live system of a URL and feed its current to a run.

    Raises `FieldError` if the URL is invalid or the connection fails, `SimulationError` for a world without a current
    that can be changed.
    """
    with interruptible():
        subscriber = open_current(url)
    return CurrentFeed(subscriber, world, controls)
