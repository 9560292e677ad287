"""What describes a recording: the header that its writer gets, and the summary that `navsense info` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Protocol, Self

from navsense import inputs
from navsense.errors import RecordingError
from navsense.messages.schemas import DEFAULT_DISTRIBUTION, DISTRIBUTIONS
from navsense.recordings.topic_names import TopicNames, allocate_topics
from navsense.series import TimeSlice
from navsense.text import format_count
from navsense.world import World

ROS_KEY = "ros"
"""Metadata key of the ROS 2 distribution of the message definitions."""

WORLD_KEY = "layout"
"""Key of the world's JSON, see `world_json`, beside what a recording says of itself."""


def get_version() -> str:
    """Return the version of navsense, "0" where it is not installed."""
    try:
        return metadata.version("navsense")
    except metadata.PackageNotFoundError:
        return "0"


def requested_duration(recording: RecordingHeader) -> float | None:
    """Return the duration (s) that was asked for; None for a run without an end of its own."""
    return recording.duration if math.isfinite(recording.duration) else None


def format_runs(recording: RecordingHeader) -> str:
    """Return the numbers of the runs as a JSON list."""
    return json.dumps([int(run) for run in recording.runs])


@dataclass(frozen=True, eq=False)
class RecordingHeader:
    """The head of a recording: the world, the run, and what to keep.

    `epoch` is the integer second of t = 0, `duration` the seconds that were asked for: a run may end before. `runs` are
    the numbers of the runs, one or those along the leading axis of the readings. `truth` false leaves out ideal values,
    hidden errors and the truth of links. `ros` is the ROS 2 distribution of the message definitions. `topics` are those
    of the recording that this one is made from, if there is one. Raises `RecordingError` for an unknown distribution.
    """

    world: World
    epoch: int = 0
    seed: int = 0
    duration: float = 0.0
    runs: Sequence[int] = (0,)
    truth: bool = True
    ros: str = DEFAULT_DISTRIBUTION
    topics: TopicNames | None = None

    def __post_init__(self) -> None:
        """Reject an unknown ROS distribution."""
        if self.ros not in DISTRIBUTIONS:
            allowed = f"must be one of {', '.join(DISTRIBUTIONS)}; jazzy includes later distributions"
            raise RecordingError("distribution of ROS", self.ros, allowed=allowed)

    def allocate_topics(self) -> TopicNames:
        """Return the topics of everything in the recording."""
        return allocate_topics(self.world, self.topics, truth=self.truth)


class HasRunSettings(Protocol):
    """What `recording` reads of a run that is about to be made."""

    @property
    def world(self) -> World:
        """Return the world."""
        ...

    @property
    def epoch(self) -> int:
        """Return the integer second of t = 0."""
        ...

    @property
    def seed(self) -> int:
        """Return the seed."""
        ...

    @property
    def duration(self) -> float:
        """Return the duration in s, infinite for a live run."""
        ...

    @property
    def runs(self) -> Sequence[int]:
        """Return the numbers of the runs."""
        ...


def build_header(run: HasRunSettings, *, truth: bool = True, ros: str = DEFAULT_DISTRIBUTION) -> RecordingHeader:
    """Return the head of the recording of a run; `truth` false leaves out what no robot could know."""
    return RecordingHeader(run.world, run.epoch, run.seed, run.duration, tuple(run.runs), truth, ros)


class RecordingWriter(Protocol):
    """Where slabs go, in order of time; a context that closes it, or ends it after an error."""

    def __enter__(self) -> Self:
        """Return this writer."""
        ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close, or end after an error."""
        ...

    def write(self, time_slice: TimeSlice) -> None:
        """Take one slab. Raise `RecordingError` where it cannot be kept."""
        ...

    def close(self) -> None:
        """Finish the recording; nothing may be written afterwards.

        Raise `RecordingError` where it cannot be finished.
        """
        ...

    def abort(self) -> None:
        """Give up: of a format that cannot be read unfinished nothing is left; never raises."""
        ...


@dataclass(frozen=True)
class SummaryEntry:
    """One topic or array: name, message type (or element type and shape), number of messages (or rows)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class RecordingSummary:
    """What a recording holds. `start` and `end` are true time in integer nanoseconds, None where there is no message.

    `meta` is what the recording says of its run: texts, `runs` a JSON list, `duration_asked` in s. `notes` are about
    what this version of navsense cannot read of its world.
    """

    path: str
    format: str
    size: int
    start: int | None
    end: int | None
    entries: tuple[SummaryEntry, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: str = "message"

    @property
    def headline(self) -> str:
        """Return the whole in one line."""
        count = sum(entry.count for entry in self.entries)
        span = ""
        if self.start is not None and self.end is not None:
            span = f" from {format_seconds(self.start)} s to {format_seconds(self.end)} s"
        made = "".join(f", {format_metadata_item(key, value)}" for key, value in self.metadata.items())
        return f"{self.path}: {self.format}, {format_count(self.size, 'byte')}, {format_count(count, self.unit)}{span}{made}"


def format_seconds(stamp: int) -> str:
    """Return integer nanoseconds as exact seconds, without zeros at the end."""
    whole, part = divmod(abs(stamp), 1_000_000_000)
    text = f"{whole}.{part:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if stamp < 0 else text


def format_metadata_item(key: str, value: str) -> str:
    """Return one item of a recording's metadata as the headline has it; what is not understood stays as it is."""
    if key == "duration_asked":
        return f"asked for {value.removesuffix('.0')} s"
    if key == "runs":
        try:
            runs = [int(run) for run in inputs.parse_json(value)]
        except (ValueError, TypeError, OverflowError):
            return f"runs {value}"
        if len(runs) == 1:
            return f"run {runs[0]}"
        if len(runs) > 1 and runs == list(range(runs[0], runs[0] + len(runs))):
            return f"runs {runs[0]} to {runs[-1]}"
        return f"{len(runs)} runs"
    if key == "faults":
        return format_faults(value)
    return f"{key} {value}"


def format_faults(value: str) -> str:
    """Return the number of scheduled faults that a recording lists; an invalid list stays as it is."""
    try:
        faults = inputs.parse_json(value)
    except ValueError:
        faults = None
    if not isinstance(faults, list):
        return f"faults {value}"
    return format_count(len(faults), "scheduled fault")
