"""Stop signals, such as that of Ctrl-C, during a run.

A signal must not end a run inside a time slice, or inside a callback of compiled code, where Python loses the
exception. The handler of a command therefore stores the signal, and the run reads it where it can stop:

- `check_interrupt` between two time slices, and between two polls for states;
- `interruptible` around a wait. A signal ends such a wait at once.

Without such a handler both do nothing, and Python raises `KeyboardInterrupt` at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StopFlag:
    """Stores a stop signal until the run reads it. A second signal raises `KeyboardInterrupt` at once.

    is_waiting: true during a wait, in which the first signal raises `KeyboardInterrupt`, too.
    """

    def __init__(self) -> None:
        """Start without a signal."""
        self.is_waiting = False
        self._is_set = False

    def handle(self, _number: int, _frame: object) -> None:
        """Store a signal: the handler for `signal.signal`."""
        is_second, self._is_set = self._is_set, True
        if is_second or self.is_waiting:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal has arrived."""
        if self._is_set:
            raise KeyboardInterrupt


STOP_FLAGS: list[StopFlag] = []
"""The flag of the command that handles stop signals; empty without one."""


def check_interrupt() -> None:
    """Raise `KeyboardInterrupt` if the command has received a stop signal."""
    for flag in STOP_FLAGS:
        flag.check()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a stop signal end the block at once. The block waits, and has no file that must be complete."""
    for flag in STOP_FLAGS:
        flag.is_waiting = True
    try:
        check_interrupt()
        yield
    finally:
        for flag in STOP_FLAGS:
            flag.is_waiting = False
