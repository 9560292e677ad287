"""Velocity commands that arrive during a run, as states at a fixed step of the clock.

A model stands still at its start pose until the first command. Each command holds until the next one, by the law of
`motion.velocity_commands`, with the drive of the model. A command takes effect at the next step, so its latency is at
most `STEP`. Stamps of commands are not read. A jump of the velocity becomes a ramp of one step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from navsense.core.errors import MotionError
from navsense.motion.driven import State
from navsense.motion.velocity_commands import CommandedLink
from navsense.streams.subscriber import DrivenFrame

LOG = logging.getLogger(__name__)

STEP = 20_000_000
"""ns between two states."""

POLL = 0.002
"""Time (s) between two looks at the clock."""

LARGEST_JUMP = 10 * 10**9
"""ns by which the clock can be ahead of the last step."""


class CommandStates:
    """Sends the states of a link that follows velocity commands, in a thread of its own.

    link: gets the commands.
    """

    def __init__(
        self,
        frame: DrivenFrame,
        *,
        get_time: Callable[[], int | None],
        put: Callable[[int, State], None],
        fail: Callable[[str], None],
    ) -> None:
        """Start at the time of the clock. Raises `RuntimeError` if the system starts no more threads.

        get_time: returns the time of the clock (ns), None before the first one.
        put: queues a state with its stamp (ns).
        fail: ends the states.
        """
        self.link = CommandedLink(frame.drive, frame.start, frame.context.root)
        self._get_time, self._put, self._fail = get_time, put, fail
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="navsense-commands", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ending.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        last: int | None = None
        try:
            while not self._ending.wait(POLL):
                now = self._get_time()
                if now is None:
                    continue
                if last is None:
                    last = now
                    self._put(now, self.link.state)
                if not last - STEP <= now <= last + LARGEST_JUMP:
                    self._fail(f"the clock jumped from {last * 1e-9:.9g} to {now * 1e-9:.9g} s")
                    return
                while now >= last + STEP:
                    self.link.advance(STEP * 1e-9)
                    last += STEP
                    self._put(last, self.link.state)
        except MotionError as error:
            self._fail(str(error))
        except Exception as error:
            LOG.exception("velocity commands")
            self._fail(f"velocity commands: internal error: {error!r}")
