"""Signals that stop a command so that it closes its files."""

from __future__ import annotations

import signal

STOP_SIGNALS = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""SIGHUP is that of a closed terminal."""


def list_active_signals() -> tuple[int, ...]:
    """Return the signals of `STOP_SIGNALS` that the parent process does not ignore, as `nohup` ignores SIGHUP."""
    return tuple(number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN)
