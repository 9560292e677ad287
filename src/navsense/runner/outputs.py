"""Outputs of a run: recordings, by the suffix of their path, and streams, by the scheme of their URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from navsense import recordings, streams
from navsense.core.errors import SimulationError
from navsense.recordings.base import to_path
from navsense.recordings.format import find_suffix
from navsense.recordings.info import RecordedRun, RecordingWriter
from navsense.world import World

OutputTarget = str | os.PathLike[str]
"""The path of a recording, or the URL of a stream as a text."""


def check_outputs_differ(outputs: Sequence[OutputTarget]) -> None:
    """Raise `SimulationError` if two outputs are the same, or one is inside another."""
    for first, second in permutations(outputs, 2):
        problem = ""
        if streams.is_url(first) or streams.is_url(second):
            problem = "are the same URL" if first == second else ""
        else:
            storage = [recordings.get_storage_path(to_path(output)) for output in (first, second)]
            first_path, second_path = (Path(os.path.realpath(path)) for path in storage)
            if first_path == second_path:
                problem = f"are both written to the {'file' if find_suffix(storage[0]) else 'folder'} {storage[0]}"
            elif first_path in second_path.parents:
                problem = f"{storage[1]} is in the folder {storage[0]} of the other output"
        if problem:
            allowed = f"{problem}; must be different files, folders and URLs, none in another"
            raise SimulationError(f"outputs: {first}, {second}", allowed=allowed, remedy="change one of the names")


def check_output(output: OutputTarget, world: World | None = None) -> None:
    """Raise `RecordingError` if this path or URL cannot be an output of a world. Opens no file and no connection."""
    if isinstance(output, str) and streams.is_url(output):
        streams.check_url(output, world)
    else:
        recordings.find_output_format(to_path(output), world)


def open_output(output: OutputTarget, recorded_run: RecordedRun) -> RecordingWriter:
    """Open a recording for writing, or the publisher of a stream. Raises `RecordingError`."""
    if isinstance(output, str) and streams.is_url(output):
        return streams.open_publisher(output, recorded_run)
    return recordings.open_writer(output, recorded_run)


def list_paths(outputs: Sequence[OutputTarget]) -> list[Path]:
    """Return the paths of the recordings among outputs."""
    return [to_path(output) for output in outputs if not streams.is_url(output)]
