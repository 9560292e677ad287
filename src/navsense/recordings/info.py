"""The world and the run of a recording, the base class of writers, and the summary that `navsense info` prints."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Self

from navsense.core import inputs
from navsense.core.errors import RecordingError
from navsense.core.readings import TimeSlice
from navsense.core.text import format_count, format_size
from navsense.messages.schemas import DEFAULT_DISTRIBUTION, DISTRIBUTIONS
from navsense.recordings.topic_names import TopicNames, allocate_topics
from navsense.world import World

if TYPE_CHECKING:
    from navsense.simulation.session import Session

LOG = logging.getLogger(__name__)

ROS_KEY = "ros"
"""Metadata key of the ROS 2 distribution of the message definitions."""

WORLD_JSON_KEY = "layout"
"""Metadata key of the world as JSON (`world_json`)."""

DURATION_KEY = "duration_asked"
"""Metadata key of the requested duration (s). Live runs do not have it.

The names of these keys are those of the first format version. They stay, so that each version of navsense reads the
files of all others.
"""


def get_version() -> str:
    """Return the version of navsense; "0" if it is not installed."""
    try:
        return metadata.version("navsense")
    except metadata.PackageNotFoundError:
        return "0"


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """The world and the run of a recording.

    epoch: the integer second of t = 0.
    duration: the requested duration (s). A run may end earlier.
    runs: the numbers of the runs along the leading axis of the readings; one number without that axis.
    has_simulated_series: false leaves out ideal values, biases, faults, the truth of links and the current.
    ros: the ROS 2 distribution of the message definitions. An unknown one raises `RecordingError`.
    stored_topics: the topics of the recording from which this one is converted; they do not change.
    start: s; sensors publish nothing before it.

    >>> recorded = ns.recordings.make_recorded_run(run.session)
    >>> recorded.world.name, recorded.seed
    ('field', 7)
    """

    world: World
    epoch: int = 0
    seed: int = 0
    duration: float = 0.0
    runs: Sequence[int] = (0,)
    has_simulated_series: bool = True
    ros: str = DEFAULT_DISTRIBUTION
    stored_topics: TopicNames | None = None
    start: float = 0.0

    def __post_init__(self) -> None:
        """Check the ROS distribution."""
        if self.ros not in DISTRIBUTIONS:
            allowed = f"must be one of {', '.join(DISTRIBUTIONS)}; jazzy includes later distributions"
            raise RecordingError("distribution of ROS", self.ros, allowed=allowed)

    @cached_property
    def topics(self) -> TopicNames:
        """The topics of everything in the recording."""
        return allocate_topics(self.world, self.stored_topics, has_simulated_series=self.has_simulated_series)

    @property
    def requested_duration(self) -> float | None:
        """The requested duration (s); None for a live run."""
        return self.duration if math.isfinite(self.duration) else None


def make_recorded_run(
    session: Session, *, has_simulated_series: bool = True, ros: str = DEFAULT_DISTRIBUTION
) -> RecordedRun:
    """Return the world and the run of a session for its recording; the arguments are those of `RecordedRun`.

    >>> ns.recordings.make_recorded_run(run.session).epoch
    0
    """
    return RecordedRun(
        session.world,
        session.epoch,
        session.seed,
        session.duration,
        tuple(session.runs),
        has_simulated_series,
        ros,
        start=session.start,
    )


class RecordingWriter(ABC):
    """Writes time slices in order of time. As a context it is closed at the end, also after an error.

    After an error the complete time slices remain in the recording.

    >>> with ns.recordings.open_writer("flight.npz", ns.recordings.make_recorded_run(run.session)) as writer:
    ...     for time_slice in run.slices():
    ...         writer.write(time_slice)
    """

    def __enter__(self) -> Self:
        """Return this writer."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the recording. After an error, the complete time slices remain."""
        if kind is None:
            self.close()
        else:
            try:
                self.salvage()
            except Exception as salvage_error:  # noqa: BLE001 - the caller gets the error that ended the run
                LOG.warning("%s", salvage_error)

    @abstractmethod
    def write(self, time_slice: TimeSlice) -> None:
        """Write a time slice. Raises `RecordingError` if it cannot be written."""

    @abstractmethod
    def close(self) -> None:
        """Complete the recording; nothing can be written afterwards. Raises `RecordingError` if this fails."""

    @abstractmethod
    def abort(self) -> None:
        """End the recording at once. Never raises.

        An MCAP file gets its summary and the log of an instrument is closed: both keep their time slices. Any other
        recording is removed, unless a write has failed: then its written part remains.
        """

    def salvage(self) -> None:
        """Keep the time slices that were written before an error elsewhere: by default those that `abort` keeps."""
        self.abort()


@dataclass(frozen=True)
class SummaryEntry:
    """One topic or array: name, message type (or element type and shape), number of messages (or rows)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True)
class RecordingSummary:
    """The content of a recording.

    start, end: true time of the first and last message or row in integer nanoseconds; None without any.
    metadata: texts about the run: `world`, `seed`, `runs` as a JSON list, ...
    notes: parts of the world that this version of navsense cannot read.
    unit: noun of the entries that are counted: "message", "row" or "record".
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
        """The content in one line."""
        count = sum(entry.count for entry in self.entries)
        span = ""
        if self.start is not None and self.end is not None:
            span = f" from {format_seconds(self.start)} s to {format_seconds(self.end)} s"
        items = "".join(f", {format_metadata_item(key, value)}" for key, value in self.metadata.items())
        sizes = f"{format_size(self.size)}, {format_count(count, self.unit)}"
        return f"{self.path}: {self.format}, {sizes}{span}{items}"


def format_seconds(stamp: int) -> str:
    """Return integer nanoseconds as exact seconds without trailing zeros."""
    seconds, nanoseconds = divmod(abs(stamp), 1_000_000_000)
    text = f"{seconds}.{nanoseconds:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if stamp < 0 else text


def format_metadata_item(key: str, value: str) -> str:
    """Return an item of the metadata for `headline`; a value of an unknown form is not changed."""
    if key == DURATION_KEY:
        return f"requested {value.removesuffix('.0')} s"
    try:
        if key == "runs":
            runs = [int(run) for run in inputs.parse_json(value)]
            if len(runs) == 1:
                return f"run {runs[0]}"
            is_range = len(runs) > 1 and runs == list(range(runs[0], runs[0] + len(runs)))
            return f"runs {runs[0]} to {runs[-1]}" if is_range else f"{len(runs)} runs"
        if key == "faults" and isinstance(faults := inputs.parse_json(value), list):
            return format_count(len(faults), "scheduled fault")
        if key == "motions" and isinstance(motions := inputs.parse_json(value), list):
            return ", ".join(map(str, motions))
    except (ValueError, TypeError, OverflowError):
        pass
    return f"{key} {value}"
