"""The command line. Each module has one group of commands; `application` has the entry point."""

from __future__ import annotations

from navsense.cli.application import cli as cli
from navsense.cli.application import main as main
