"""File formats of recordings: what a format declares, and the registry of formats.

The module of a format declares it as `FORMAT`, and `message_formats` those with messages, for example `MCAP`.
`navsense.recordings.FORMATS` lists those of navsense. Other packages
declare theirs under the entry point `navsense.formats`; the name of the entry point is the suffix without its dot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import BinaryIO

from navsense.core.errors import RecordingError
from navsense.core.inputs import path_exists
from navsense.core.plugins import load_plugin
from navsense.core.readings import Reading
from navsense.core.text import format_count
from navsense.recordings.channels import IndexedReader, MessageCopy, MessageReader
from navsense.recordings.dataset import Dataset, LinkSelection
from navsense.recordings.info import RecordedRun, RecordingSummary, RecordingWriter
from navsense.world import MountedSensor, World


class Capability(StrEnum):
    """Content of a format in addition to the readings of published samples. The value is its name in reports.

    >>> ns.recordings.Capability.RUNS in ns.recordings.find_output_format(Path("run.npz")).capabilities
    True
    >>> ns.recordings.Capability.RUNS in ns.recordings.find_output_format(Path("run.mcap")).capabilities
    False
    """

    IDEAL = "ideal values"
    BIAS = "biases"
    TURN_ON_BIAS = "turn-on biases"
    TRUTH = "truth of links"
    CURRENT = "the water's velocity"
    FAULTS = "the list of scheduled faults"
    UNPUBLISHED = "samples that were not published"
    INVALID = "readings with invalid numbers"
    RUNS = "several runs"
    RECOVERY = "recovery of a truncated recording"
    MESSAGES = "messages of any type, copied unchanged"


LOSSLESS = frozenset(Capability) - {Capability.RUNS, Capability.RECOVERY, Capability.MESSAGES}
"""Everything that one simulated run has."""


def list_missing_groups(capabilities: frozenset[Capability], reading: Reading) -> list[str]:
    """Return the groups of arrays in a reading that a format with these capabilities cannot hold.

    Groups are ideal values, biases and turn-on biases.
    """
    groups = {Capability.IDEAL: reading.ideal, Capability.BIAS: reading.bias}
    if Capability.BIAS in capabilities:
        groups[Capability.TURN_ON_BIAS] = reading.turn_on_bias
    return [group for group, arrays in groups.items() if arrays and group not in capabilities]


INTACT = "the recording is complete; nothing has to be recovered"
"""What `navsense recover` prints about a recording that can be read without recovery."""


@dataclass(frozen=True)
class RecoveryResult:
    """Result of a recovery: messages (or rows) in total and by topic; `complete` is true if nothing is missing.

    path: the recovered recording; "" if none was written, because the old one is intact.
    damaged_chunks: the number of damaged chunks and other damaged records, which are dropped.
    is_truncated: false if the recording has its end.
    is_intact: true if the recording can be read without recovery.
    notes: what this version of navsense cannot read of the world.
    """

    path: str
    messages: int
    chunks: int = 0
    damaged_chunks: int = 0
    complete: bool = False
    topics: dict[str, int] = field(default_factory=dict)
    unit: str = "message"
    notes: tuple[str, ...] = ()
    is_truncated: bool = True
    is_intact: bool = False

    @property
    def headline(self) -> str:
        """A summary in one line."""
        count = format_count(self.messages, self.unit)
        chunks = f" in {format_count(self.chunks, 'chunk')}" if self.chunks else ""
        return f"wrote {get_storage_path(Path(self.path))}: {count}{chunks}; {self.loss_text}"

    @property
    def loss_text(self) -> str:
        """What was missing, in words."""
        if self.is_intact:
            return INTACT
        if self.complete:
            return "nothing was missing"
        damaged = [format_count(self.damaged_chunks, "damaged record")] if self.damaged_chunks else []
        end = "the incomplete last chunk" if self.chunks else "the incomplete end"
        return "lost: " + " and ".join([*damaged, *([end] if self.is_truncated else [])])


@dataclass(frozen=True, eq=False)
class Recovery:
    """How the truncated recordings of a format are found and recovered.

    files: patterns of files in a hidden folder. If all of them match, it contains a truncated recording.
    recover: writes the complete part of a recording; gets the first match of the first pattern, and the output path.
    recover_unless_intact: as `recover`, but writes nothing for a recording that is intact. None: `recover` is used.
    obstacle: reason why a recording cannot be recovered without `recover`.
    magic: first bytes of a file of the format; b"" if they are not known.
    recovers_files: true if `recover` also reads a truncated file under its final name.
    is_truncated: returns True for a truncated file under its final name; None: such files are not listed.
    """

    files: tuple[str, ...] = ()
    recover: Callable[[Path, Path], RecoveryResult] | None = None
    obstacle: str = "it contains no complete data"
    magic: bytes = b""
    recovers_files: bool = False
    is_truncated: Callable[[BinaryIO], bool] | None = None
    recover_unless_intact: Callable[[Path, Path], RecoveryResult] | None = None


@dataclass(frozen=True, eq=False)
class Format:
    """A file format of recordings.

    name: shown by `navsense info`.
    suffixes: of file names, in lower case with the dot; "" for a folder without a suffix. A longer suffix wins.
    capabilities: the content that the format supports. `convert` reports the rest as lost.
    read: returns a recording; raises `RecordingError` for another file, and for formats that are only written.
    read_truth: returns a recording with the truth of the links that a function selects from its world, and without
        readings. None: `read` is used. A motion is read by this function.
    open_writer: opens a recording for writing; None for formats that are only read.
    summarize: returns the content of a recording; None: computed from the result of `read`.
    unit: noun of the entries that `navsense info` counts: "row", "message" or "record".
    is_folder: true if the recording NAME.SUFFIX is the folder NAME.
    folder_files: files by which a folder is recognized as a recording of this format; one of them is enough.
    check_path: raises `RecordingError` if a recording cannot have this path; gets the world if it is known.
    data_path: returns the data file in the folder of a recording with this path.
    open_messages: opens the messages of a recording; None for a format without messages.
    open_copy: creates a recording to which messages are copied; gets a folder, the final path and the source.
    copied_from: for a format without `open_writer`: suffix of the format to which `convert` writes first. It then
        copies those messages to this format.
    copy_file: if a recording is already in this format, copies its file to a path and returns the number of messages;
        else returns None.
    recovery: how truncated recordings are found and recovered.
    list_sensors: returns the names of the sensors that a recording with this path can contain; None: all sensors.
    list_lost: returns the arrays of a reading that the format does not support; None: computed from the capabilities.
    list_needed: returns the arrays of a sensor that the format has fields for; missing ones are reported.
    remarks: text after a missing capability in the report of losses.
    needs_heading: true if the format requires the heading of the world's axes.
    unread_content: what a recording contains if navsense writes the format but does not read it, such as "messages of
        Gazebo"; "" if it reads the format.

    >>> npz = ns.recordings.find_output_format(Path("run.npz"))
    >>> npz.name, npz.suffixes
    ('npz', ('.npz',))
    """

    name: str
    suffixes: tuple[str, ...]
    capabilities: frozenset[Capability]
    read: Callable[[Path], Dataset]
    read_truth: Callable[[Path, LinkSelection], Dataset] | None = None
    open_writer: Callable[[Path, RecordedRun], RecordingWriter] | None = None
    summarize: Callable[[Path], RecordingSummary] | None = None
    unit: str = "row"
    is_folder: bool = False
    folder_files: tuple[str, ...] = ()
    check_path: Callable[[Path, World | None], None] = lambda *_: None
    data_path: Callable[[Path], Path] | None = None
    open_messages: Callable[[Path], AbstractContextManager[IndexedReader]] | None = None
    open_copy: Callable[[Path, Path, MessageReader], MessageCopy] | None = None
    copied_from: str = ""
    copy_file: Callable[[MessageReader, Path], int | None] = lambda *_: None
    recovery: Recovery = Recovery()
    list_sensors: Callable[[RecordedRun, Path], Sequence[str]] | None = None
    list_lost: Callable[[RecordedRun, MountedSensor, Reading], list[str]] | None = None
    list_needed: Callable[[MountedSensor], Sequence[str]] = lambda _: ()
    remarks: Mapping[Capability, str] = field(default_factory=dict)
    needs_heading: bool = False
    unread_content: str = ""


ENTRY_POINTS = "navsense.formats"
"""Group of the entry points of formats in other packages."""

_FORMATS: dict[str, Format] = {}
"""Suffix -> format."""


def register_format(recording_format: Format) -> None:
    """Register a format under its suffixes; it replaces an earlier format with the same suffix.

    >>> npz = ns.recordings.find_output_format(Path("run.npz"))
    >>> ns.recordings.register_format(npz)  # a format of your own in the same way, see docs/adding-a-format.md
    """
    _FORMATS.update(dict.fromkeys(recording_format.suffixes, recording_format))


def list_formats() -> list[Format]:
    """Return all registered formats."""
    return list(dict.fromkeys(_FORMATS.values()))


def find_formats(capability: Capability) -> list[Format]:
    """Return the registered formats with a capability."""
    return [recording_format for recording_format in list_formats() if capability in recording_format.capabilities]


def format_runs_remedy() -> str:
    """Return the remedy for several runs in a format that holds one."""
    return f"write many runs to {' or '.join(list_suffixes(find_formats(Capability.RUNS)))}"


def list_suffixes(formats: Iterable[Format] | None = None) -> list[str]:
    """Return the suffixes of formats, by default of all registered formats."""
    selected = list_formats() if formats is None else formats
    return [suffix for recording_format in selected for suffix in recording_format.suffixes if suffix]


def find_suffix(path: Path) -> str:
    """Return the longest suffix of a path that a format has; "" if no format has one.

    A format of another package is imported if its entry point has the name of the suffix. Raises `RecordingError` if
    this fails.
    """
    name = path.name.lower()
    if not (longest := _find_longest(name, list_suffixes())):
        for entry in entry_points(group=ENTRY_POINTS):
            if _find_longest(name, [f".{entry.name}"]):
                register_format(load_plugin(entry, Format, "format", "must be a Format", RecordingError))
        longest = _find_longest(name, list_suffixes())
    return longest


def _find_longest(name: str, suffixes: Iterable[str]) -> str:
    """Return the longest suffix of a name, which must have more than this suffix; "" without one."""
    matches = (suffix for suffix in suffixes if name.endswith(suffix) and name != suffix)
    return max(matches, key=len, default="")


def find_format_by_suffix(path: Path) -> Format | None:
    """Return the format of a recording with this path, by its suffix; None if no format has it."""
    suffix = find_suffix(path)
    return _FORMATS.get(suffix) if suffix or not path.suffix else None


def find_format_of_recording(path: Path) -> Format | None:
    """Return the format of an existing recording, by the files in its folder or by its suffix; None if unknown."""
    folder = path if path.is_dir() else get_storage_path(path)
    for recording_format in list_formats() if folder.is_dir() else ():
        if any((folder / file).is_file() for file in recording_format.folder_files):
            return recording_format
    suffix = find_suffix(path)
    return _FORMATS[suffix] if suffix else None


def get_storage_path(path: Path) -> Path:
    """Return the file or folder of a recording with this path: `run.mcap` -> `run.mcap`; `run.csv` -> `run`.

    >>> str(ns.recordings.get_storage_path(Path("run.csv")))
    'run'
    """
    suffix = find_suffix(path)
    return path.with_name(path.name[: -len(suffix)]) if suffix and _FORMATS[suffix].is_folder else path


def resolve_folder(path: Path) -> Path:
    """Return the folder of a recording with this path if there is one, and no file; else the path itself."""
    folder, recording_format = get_storage_path(path), find_format_by_suffix(path)
    if (
        recording_format is None
        or path_exists(path)
        or not any(path_exists(folder / file) for file in recording_format.folder_files)
    ):
        return path
    return folder
