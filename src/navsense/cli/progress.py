"""Progress of a command on standard error: kernels that are compiled, and the simulated time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from navsense.core.text import format_count

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REDRAW_PERIOD = 0.1
"""Seconds between two updates of a bar."""

COMPILING = "compiling kernels; later runs use the cache"
"""Printed once in a command, also if it shows its progress several times."""

MAX_BAR_WIDTH = 20
"""Characters of a bar in a wide terminal."""

MIN_BAR_WIDTH = 4
"""Characters of a bar in the narrowest terminal."""

DESCRIPTION_WIDTH, STATUS_WIDTH = 9, 19
"""Characters of the texts beside a bar: `simulated` and `1560.0 of 1560.0 s`, with spaces."""


def make_bars() -> Progress:
    """Return bars on standard error, each with a description and a status.

    In a terminal that is too narrow for both, a bar has no description.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    width = console.width - STATUS_WIDTH
    has_description = width - DESCRIPTION_WIDTH >= MIN_BAR_WIDTH
    width -= DESCRIPTION_WIDTH + 1 if has_description else 0
    bar = BarColumn(max(MIN_BAR_WIDTH, min(MAX_BAR_WIDTH, width)))
    description = [TextColumn("{task.description}")] if has_description else []
    return Progress(*description, bar, TextColumn("{task.fields[status]}"), console=console, auto_refresh=False)


def claim_announcement() -> bool:
    """Return True for the first call in a command, and for each call outside a command."""
    context = click.get_current_context(silent=True)
    if context is None:
        return True
    is_first = COMPILING not in context.meta
    context.meta[COMPILING] = True
    return is_first


class ProgressDisplay:
    """Bars for the compilation of kernels and for the simulated time.

    One line announces the compilation. On a terminal, each bar appears at its first call. Elsewhere, one line has the
    simulated time at the end. The calls redraw the bars, so they need no thread.
    """

    def __init__(self, stack: ExitStack) -> None:
        """`stack` closes the bars."""
        self._stack = stack
        self._bars: Progress | None = None
        self._simulation: TaskID | None = None
        self._compilation: TaskID | None = None
        self._kernels, self._start, self._last_redraw = 0, 0.0, -math.inf

    def count_kernel(self) -> None:
        """Count a kernel whose compilation begins."""
        if not self._kernels:
            self._start = time.monotonic()
            if claim_announcement():
                self._print(COMPILING)
        self._kernels += 1
        if sys.stderr.isatty():
            bars = self._get_bars()
            if self._compilation is None:
                self._compilation = bars.add_task("compiling", total=None, status="")
                # Replace the moving bar by a full one at the end.
                self._stack.callback(bars.update, self._compilation, total=1.0, completed=1.0)
            bars.update(self._compilation, status=self._format_kernels(), refresh=True)

    def advance(self, done: float, total: float) -> None:
        """Show the simulated time and the duration of a run (s)."""
        bars = self._get_bars()
        if self._simulation is None:
            self._simulation = bars.add_task("simulated", total=total if total < math.inf else None, status="")
        if done < bars.tasks[bars.task_ids.index(self._simulation)].completed:  # the next run of the command
            bars.reset(self._simulation, total=total)
        refresh = time.monotonic() - self._last_redraw >= REDRAW_PERIOD
        self._last_redraw = time.monotonic() if refresh else self._last_redraw
        bars.update(self._simulation, completed=done, status=self._format_time(done, total), refresh=refresh)

    @staticmethod
    def _format_time(done: float, total: float) -> str:
        """Return the simulated time (s), and the duration if it is known."""
        return f"{done:.1f} of {total:.1f} s" if total < math.inf else f"{done:.1f} s"

    def _print(self, line: str) -> None:
        """Print a line above the bars."""
        if self._bars is None:
            click.echo(line, err=True)
        else:
            self._bars.console.print(line, markup=False, highlight=False)

    def _get_bars(self) -> Progress:
        if self._bars is None:
            self._bars = self._stack.enter_context(make_bars())
        return self._bars

    def _format_kernels(self) -> str:
        return f"{format_count(self._kernels, 'kernel')}, {time.monotonic() - self._start:.0f} s"


@contextmanager
def show_progress() -> Iterator[ProgressDisplay]:
    """Show the kernels that the block compiles, and the simulated time that it passes to `advance`.

    The block does not print: its text would be mixed with the bars.
    """
    from navsense.core.kernels import COMPILATION_CALLBACKS

    with ExitStack() as stack:
        display = ProgressDisplay(stack)
        COMPILATION_CALLBACKS.append(display.count_kernel)
        stack.callback(COMPILATION_CALLBACKS.remove, display.count_kernel)
        yield display
