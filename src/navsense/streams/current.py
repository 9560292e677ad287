"""The contract of a subscriber of a current: a live system that sends the velocity of the water during a run.

    SCHEME://HOST:PORT/PATH?topic=TOPIC&type=TYPE&frame=FRAME

`runner.current_feed` reads the newest velocity and changes the current of the run. The time of a message is not used.
"""

from __future__ import annotations

from navsense.core.errors import FieldError
from navsense.core.typing import Vector
from navsense.streams.sample_queue import SampleQueue


class CurrentSubscriber(SampleQueue[Vector]):
    """Receives the velocity (m/s) of the water from a live system.

    The thread of the transport calls `put` for each velocity and `fail` at the end of the connection. The run calls
    `receive` and `close`. A transport derives a class that overrides `disconnect`.

    >>> subscriber = ns.streams.CurrentSubscriber("ros1://", "topic /current")
    >>> subscriber.put((0.2, 0.0, 0.0))
    >>> subscriber.put((0.3, 0.0, 0.0))
    >>> subscriber.receive(0.1)
    [(0.3, 0.0, 0.0)]

    url: of the live system.
    topic: the source of the velocities, for messages: "topic /hydrodynamics/current_velocity".
    frame: of the velocities: "world", "enu" or "ned".
    """

    error_type = FieldError

    def __init__(self, url: str, topic: str, frame: str = "world") -> None:
        """Start without a velocity."""
        super().__init__(url, topic)
        self.frame = frame

    def put(self, velocity: Vector) -> None:
        """Store a velocity in place of the one that waits, unless the velocities have ended."""
        self.keep_newest(velocity)
