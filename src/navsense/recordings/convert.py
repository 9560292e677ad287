"""A recording in another format: messages as they are between recordings of messages, else what they say.

The result appears under its name when it is whole; until then it lies in a hidden folder beside it, and the recording
that is read is never written over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from navsense import inputs, outputs, recordings
from navsense.errors import RecordingError, Where
from navsense.messages.base import MAX_STAMP_SECONDS
from navsense.messages.schemas import DEFAULT_DISTRIBUTION
from navsense.recordings import message_reader
from navsense.recordings.base import FOLDER_SUFFIXES, WORLD_KEY, RecordingHeader, os_error, storage_path, to_path
from navsense.recordings.channels import ROS1
from navsense.recordings.dataset_reader import open_recording
from navsense.recordings.device_writers import ADDRESS_PATTERN
from navsense.recordings.losses import MESSAGE_FORMATS, ConversionLosses, format_suffix
from navsense.recordings.mcap.reader import McapReader
from navsense.recordings.mcap.records import DamagedError
from navsense.recordings.message_copy import check_message_target, copy_messages, open_hidden_folder
from navsense.recordings.metadata import damaged_error
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.recordings.rosbag.reader import ros2_bag_folder
from navsense.recordings.world_json import has_place, notes_about
from navsense.series import TimeSlice

INFO_HINT = "see what it holds with: navsense info"
"""What to do about a recording of which nothing is read."""

MULTI_RUN_SUFFIXES = (".npz", ".parquet")
"""Suffixes of recordings that hold several runs."""


@dataclass
class ConversionResult:
    """What was written: where, how many messages, rows or readings, and what could not be carried, a line each.

    `notes` are about what this version of navsense cannot read of the recording's world.
    """

    path: Path
    count: int
    unit: str
    losses: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def convert(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    run: int | None = None,
    epoch: int | None = None,
    ros: str | None = None,
) -> ConversionResult:
    """Write the recording `path` to `out` in the format of its suffix.

    Between `.mcap`, `.bag`, `.db3` and the folder of a bag of ROS 2 (no suffix: with MCAP in it) messages go over as
    they are, of unknown types too. `run` chooses one of several; with `epoch`, the integer second at which `out` begins
    in place of that of `path`, the conversion uses readings and truth. So it does with `ros`, the ROS 2 distribution of
    the definitions in `out`: "jazzy" (also for later distributions) or "humble". Raises `RecordingError` for what
    cannot be read or written, and where `out` is `path`.
    """
    source, target = to_path(path), to_path(out)
    try:
        if epoch is not None and not 0 <= epoch <= MAX_STAMP_SECONDS:
            raise RecordingError(
                "--epoch", epoch, allowed=f"must be an integer of seconds from 0 to {MAX_STAMP_SECONDS}"
            )
        if ADDRESS_PATTERN.fullmatch(str(out)):
            remedy = "name a file; what is sent to a port comes from: navsense run"
            raise RecordingError("a recording is converted into a file, not an address", str(out), remedy=remedy)
        with inputs.collect_inputs():
            inputs.add_input(source)
            inputs.add_input(ros2_bag_folder(source))
            if source.suffix.lower() in FOLDER_SUFFIXES and not source.exists():
                inputs.add_input(storage_path(source))
            _check_target(target)
            if (
                message_reader.is_message_recording(source)
                and format_suffix(target) in MESSAGE_FORMATS
                and epoch is None
                and ros is None
            ):
                if run is not None:
                    allowed = "is of .npz and .parquet: a recording of messages holds one run"
                    raise RecordingError("--run", run, allowed=allowed)
                return _copy_messages(source, target)
            return _convert_readings(source, target, run, epoch, ros or DEFAULT_DISTRIBUTION)
    except OSError as error:
        raise os_error(source, error, "read") from error


def _check_target(target: Path) -> None:
    """Raise `RecordingError` where a recording cannot be written to `target`, or that would be over what is read."""
    recordings.check_name(target)
    if format_suffix(target) in MESSAGE_FORMATS:
        outputs.check_not_input(recordings.output_path(target))
        check_message_target(target)
    else:
        recordings.find_writer(target)


def _copy_messages(source: Path, target: Path) -> ConversionResult:
    """Carry messages."""
    with message_reader.open_messages(source) as found:
        notes = notes_about(found.metadata.get(WORLD_KEY))
        if isinstance(found, McapReader) and format_suffix(target) == ".mcap" and found.profile != ROS1:
            count = found.count_messages(from_data=True).total  # all are read: a damaged one is not handed on
            with open_hidden_folder(target) as work:
                part = work.folder / target.name
                shutil.copyfile(source, part)
                work.commit(part)
            return ConversionResult(target, count, "messages", notes=notes)
        count, lost = copy_messages(found, target)
        return ConversionResult(recordings.output_path(target), count, "messages", lost, notes)


def _replace_epoch(
    recording: RecordingHeader, slabs: Iterator[TimeSlice], epoch: int | None
) -> tuple[RecordingHeader, Iterator[TimeSlice]]:
    """Return a recording and its slabs as if it had begun at an epoch (s); as they are without one."""
    if epoch is None:
        return recording, slabs
    return replace(recording, epoch=epoch), (_replace_slice_epoch(slab, epoch) for slab in slabs)


def _replace_slice_epoch(time_slice: TimeSlice, epoch: int) -> TimeSlice:
    """Return a slab of another epoch (s)."""
    return replace(
        time_slice,
        readings={name: replace(reading, epoch=epoch) for name, reading in time_slice.readings.items()},
        truth={name: replace(truth, epoch=epoch) for name, truth in time_slice.truth.items()},
        current=None if time_slice.current is None else replace(time_slice.current, epoch=epoch),
    )


def _convert_readings(source: Path, target: Path, run: int | None, epoch: int | None, ros: str) -> ConversionResult:
    """Write what a recording says, as readings and truth."""
    if message_reader.is_message_recording(source):
        with message_reader.open_messages(source) as found:
            reader = ReadingAssembler(found)
            if run is not None and [run] != list(reader.header.runs):
                raise RecordingError("run", run, allowed=f"must be {reader.header.runs[0]}, the only one")
            world = reader.header.world
            if not (world.sensors or world.models or world.environment.current):
                raise _no_readings_error(source)
            lost = ConversionLosses(
                reader.header, target, has_origin=has_place(message_reader.parse_stored_world(found) or {})
            )
            head = replace(reader.header, ros=ros)
            made = _write_slices(*_replace_epoch(head, reader.iter_slices(), epoch), target, source, lost)
            made.losses += reader.losses
            made.notes = reader.stored.notes
            return made
    loaded = open_recording(source)
    if run is not None:
        loaded = loaded.select_run(run)
    if len(loaded.runs) > 1 and format_suffix(target) not in MULTI_RUN_SUFFIXES:
        raise RecordingError(
            f"a {format_suffix(target) or 'bag'} holds one run",
            len(loaded.runs),
            where=Where(str(source)),
            remedy="choose one with --run, or write .npz or .parquet",
        )
    try:
        recording = replace(loaded.make_header(), ros=ros)
    except DamagedError as error:
        raise damaged_error(source, error) from error
    lost = ConversionLosses(recording, target, has_origin=has_place(loaded.metadata.get(WORLD_KEY, {})))
    made = _write_slices(*_replace_epoch(recording, loaded.iter_slices(), epoch), target, source, lost)
    made.notes = loaded.stored.notes
    return made


def _no_readings_error(source: Path) -> RecordingError:
    """Return the error of a recording of which nothing is read."""
    what = "holds no message that is read as a reading or as truth"
    return RecordingError(what, where=Where(str(source)), remedy=INFO_HINT)


def _write_slices(
    recording: RecordingHeader, slabs: Iterator[TimeSlice], target: Path, source: Path, lost: ConversionLosses
) -> ConversionResult:
    """Write slabs to a recording; a folder with MCAP in it by way of its file."""
    suffix, found = format_suffix(target), False
    place = recordings.output_path(target)
    inner = target if suffix else target.with_name(f"{target.name}.mcap")
    with open_hidden_folder(target, inner) as work:
        part = work.folder / inner.name
        with recordings.open_writer(part, recording) as writer:
            for slab in slabs:
                lost.add(slab)
                found = found or bool(slab.readings or slab.truth or slab.current)
                writer.write(slab)
            if not found:
                raise _no_readings_error(source)
        made = recordings.output_path(part)
        if not suffix:
            with message_reader.open_messages(part) as messages_of:
                copy_messages(messages_of, target)
        else:
            work.commit(made)
    return ConversionResult(place, lost.count, lost.unit, lost.format_lines())
