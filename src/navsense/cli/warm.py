"""`navsense warm`: compile all kernels ahead."""

from __future__ import annotations

import time

import click

from navsense.cli.options import CheckedCommand
from navsense.cli.progress import show_progress
from navsense.cli.stop_signals import interrupt_between_steps, report_interrupt


@click.command(cls=CheckedCommand)
def warm() -> None:
    """Compile all kernels into the cache, for containers and CI.

    Later runs use the cache. The environment variable NUMBA_CACHE_DIR sets its folder. Another type of processor
    compiles again.
    """
    click.echo("compiling all kernels; this takes a minute or two")
    from navsense.core.text import format_count
    from navsense.warm import compile_kernels

    start = time.monotonic()
    with report_interrupt(), show_progress() as display, interrupt_between_steps(display.advance):
        kernels = compile_kernels()
    duration = time.monotonic() - start
    click.echo(f"compiled {format_count(kernels.compiled, 'kernel')} in {duration:.0f} s; {kernels.loaded} were cached")
    if kernels.folder is not None:
        click.echo(f"cache: {kernels.folder}")
