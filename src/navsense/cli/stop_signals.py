"""Signals that stop a command so that it closes its files."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

Progress = Callable[[float, float], None]
"""A function of the simulated and the total duration (s)."""

STOP_SIGNALS = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""SIGHUP is that of a closed terminal."""


def list_active_signals() -> tuple[int, ...]:
    """Return the signals of `STOP_SIGNALS` that the parent process does not ignore, as `nohup` ignores SIGHUP."""
    return tuple(number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN)


@contextmanager
def interrupt_between_steps(advance: Progress) -> Iterator[Progress]:
    """Yield a progress function that ends the run between two time slices after a stop signal.

    During compilation, the run ends before the next kernel is compiled. A wait ends at once (`core.interrupts`), and a
    second signal ends everything at once.
    """
    from navsense.core.interrupts import STOP_FLAGS, StopFlag
    from navsense.core.kernels import COMPILATION_CALLBACKS

    flag = StopFlag()

    def advance_and_check(done: float, total: float) -> None:
        advance(done, total)
        flag.check()

    COMPILATION_CALLBACKS.append(flag.check)
    STOP_FLAGS.append(flag)
    previous = {number: signal.signal(number, flag.handle) for number in list_active_signals()}
    try:
        yield advance_and_check
    finally:
        STOP_FLAGS.remove(flag)
        COMPILATION_CALLBACKS.remove(flag.check)
        for number, handler in previous.items():
            signal.signal(number, handler)


@dataclass
class InterruptReport:
    """What a command that is stopped leaves.

    result: "" for nothing.
    """

    result: str = ""


@contextmanager
def report_interrupt(result: str = "") -> Iterator[InterruptReport]:
    """Exit with code 130 after an interrupt. Print that the command stopped, and the `result` that it leaves.

    The block can change the result while it runs.
    """
    report = InterruptReport(result)
    try:
        yield report
    except KeyboardInterrupt:
        click.echo(f"stopped; {report.result}" if report.result else "stopped", err=True)
        sys.exit(130)
