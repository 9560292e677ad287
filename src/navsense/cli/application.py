"""The entry point of the command line: errors, interrupts and closed outputs.

Exit codes: 0 success, 1 a poor calibration, 2 an error, 130 an interrupt.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from navsense.cli.bench import bench
from navsense.cli.calibrate import calibrate
from navsense.cli.campaign import campaign
from navsense.cli.demo import demo
from navsense.cli.recordings import convert, info, recover, report
from navsense.cli.run import run
from navsense.cli.stop_signals import STOP_SIGNALS, list_active_signals
from navsense.cli.warm import warm
from navsense.cli.worlds import check, describe
from navsense.core.errors import NavsenseError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ClosedOutputError(Exception):
    """The reader of the standard output closed it, as `head` does. This is not an error of the command."""


@contextmanager
def detect_closed_output() -> Iterator[None]:
    """Raise `ClosedOutputError` if the standard output is closed; click would exit with code 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedOutputError from error


class CommandGroup(click.Group):
    """The commands of navsense."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, or print the help."""
        with detect_closed_output():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> None:
        """Run a command."""
        with detect_closed_output():
            super().invoke(ctx)
            sys.stdout.flush()


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="navsense")
def cli() -> None:
    """Simulate the navigation sensors of robots in SDF and URDF worlds."""
    from navsense.core import inputs

    # A command does not write to its own inputs.
    click.get_current_context().with_resource(inputs.collect_inputs())


for _command in (bench, calibrate, campaign, check, convert, demo, describe, info, recover, report, run, warm):
    cli.add_command(_command)


COMPILATION_LOGGER = "navsense.core.kernels"
"""Logger of the compilation. Commands show it in their own way, if it takes long (`cli.progress`)."""


class ConsoleHandler(logging.Handler):
    """Prints the log messages of the library on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line; warnings have the prefix `warning: `."""
        click.echo(f"{'warning: ' if record.levelno >= logging.WARNING else ''}{record.getMessage()}", err=True)


@contextmanager
def print_library_messages() -> Iterator[None]:
    """Print the log messages and warnings of the library as plain lines, without their place in the source."""

    def show_warning(message: Warning | str, *_place: object, **_more: object) -> None:
        click.echo(f"warning: {message}", err=True)

    logger, handler = logging.getLogger("navsense"), ConsoleHandler()
    level = logger.level
    handler.addFilter(lambda record: record.name != COMPILATION_LOGGER)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Handle the stop signals as an interrupt: the command closes its files."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [number for number in list_active_signals() if number != signal.SIGINT]
    previous = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def discard_output() -> None:
    """Redirect the standard output to the null device: the interpreter flushes it at exit, which would fail again."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())


class DiscardingFile(io.FileIO):
    """A file that discards the data that cannot be written, for example to a full disk."""

    def write(self, data: ReadableBuffer) -> int:
        """Write data. Return their full size if that fails."""
        with contextlib.suppress(OSError):
            if (written := super().write(data)) is not None:
                return written
        return memoryview(data).nbytes


def tolerate_failing_stderr() -> None:
    """Discard messages that cannot be written to the standard error. The command and its exit code do not change."""
    stderr = sys.stderr
    if stderr is sys.__stderr__ and isinstance(stderr, io.TextIOWrapper):
        file = io.BufferedWriter(DiscardingFile(stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(file, stderr.encoding, stderr.errors, line_buffering=True)


def ignore_signals() -> None:
    """Ignore interrupts while the interpreter exits: the command is complete, and so is its exit code."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def format_usage_error(error: click.ClickException) -> str:
    """Return the message of click on one line, with the command that prints the help."""
    message = error.format_message().rstrip(".")
    message = message.replace(". Did you mean", "; did you mean").replace(". (Did", " (did")
    context = error.ctx if isinstance(error, click.UsageError) else None
    remedy = f"; see {context.command_path} --help" if context else ""
    return f"{message[:1].lower()}{message[1:]}{remedy}"


def main() -> None:
    """Run the command line. A `NavsenseError` prints one line on standard error and exits with code 2."""
    if sys.stdout is None:  # closed before the start
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (open until the process ends)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    tolerate_failing_stderr()
    try:
        with print_library_messages(), interrupt_on_signals():
            cli(standalone_mode=False)
        atexit.register(ignore_signals)
    except NavsenseError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Abort as error:
        # Click also aborts on an EOFError, which it takes for the end of keyboard input. Here it means a damaged file.
        if isinstance(error.__context__, EOFError):
            raise error.__context__ from None
        click.echo("stopped", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"error: {format_usage_error(error)}", err=True)
        sys.exit(error.exit_code)
    except (ClosedOutputError, BrokenPipeError):
        discard_output()
        sys.exit(0)
    except OSError as error:
        discard_output()
        subject = "cannot write the output" if error.filename is None else str(error.filename)
        click.echo(f"error: {subject}: {error.strerror or error}", err=True)
        sys.exit(2)
