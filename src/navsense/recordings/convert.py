"""Conversion of a recording to another format.

Messages are copied between formats of messages. All other conversions go through readings and truth. The result is in a
hidden folder until it is complete. The recording that is read is never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from navsense import recordings
from navsense.core import inputs
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.messages.base import MAX_STAMP_SECONDS
from navsense.messages.schemas import DEFAULT_DISTRIBUTION
from navsense.recordings import message_recordings
from navsense.recordings.base import check_recording_path, make_os_error, to_path
from navsense.recordings.format import (
    Capability,
    Format,
    find_format_by_suffix,
    find_formats,
    find_suffix,
    format_runs_remedy,
    get_storage_path,
    list_suffixes,
)
from navsense.recordings.info import WORLD_JSON_KEY, RecordedRun
from navsense.recordings.losses import ConversionLosses
from navsense.recordings.message_copy import copy_to_folder, open_hidden_folder
from navsense.recordings.metadata import make_damaged_error
from navsense.recordings.reading_assembler import open_readings
from navsense.recordings.rosbag.reader import find_ros2_bag_folder
from navsense.recordings.world_json import has_heading_and_water, list_notes


@dataclass
class ConversionResult:
    """The result of a conversion.

    path: the recording that was written.
    count: the number of messages, rows or readings; `unit` is which of them.
    losses: what the format does not hold, a line each.
    notes: what this version of navsense cannot read of the world.

    >>> from navsense.recordings.convert import convert
    >>> run.save("flight.npz")
    >>> len(convert("flight.npz", "flight.euroc").losses) > 0  # EuRoC holds less than NPZ
    True
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

    Messages of any type are copied between `.mcap`, `.bag`, `.db3` and the folder of a ROS 2 bag (a name without a
    suffix: with one MCAP file), unless `epoch` or `ros` is given.

    run: the number of one of several runs.
    epoch: the integer second at which `out` begins, in place of that of `path`.
    ros: the ROS 2 distribution of the definitions in `out`: "jazzy" (also for later distributions) or "humble".

    Raises `RecordingError` if a recording cannot be read or written, and if `out` is `path`.

    >>> from navsense.recordings.convert import convert
    >>> run.save("flight.npz")
    >>> convert("flight.npz", "flight.mcap").path.name
    'flight.mcap'
    """
    source, target = to_path(path), to_path(out)
    try:
        if epoch is not None and not 0 <= epoch <= MAX_STAMP_SECONDS:
            raise RecordingError(
                "--epoch", epoch, allowed=f"must be an integer of seconds from 0 to {MAX_STAMP_SECONDS}"
            )
        with inputs.collect_inputs():
            inputs.add_input(source)
            inputs.add_input(find_ros2_bag_folder(source))
            if not source.exists():
                inputs.add_input(get_storage_path(source))
            target_format = _find_target_format(target)
            copies_messages = Capability.MESSAGES in target_format.capabilities
            if message_recordings.is_message_recording(source) and copies_messages and epoch is None and ros is None:
                if run is not None:
                    suffixes = " and ".join(list_suffixes(find_formats(Capability.RUNS)))
                    allowed = f"is of {suffixes}: a recording of messages holds one run"
                    raise RecordingError("--run", run, allowed=allowed)
                return _copy_messages(source, target, target_format)
            return _convert_readings(source, target, target_format, run, epoch, ros or DEFAULT_DISTRIBUTION)
    except OSError as error:
        raise make_os_error(source, error, "read") from error


def _find_target_format(target: Path) -> Format:
    """Return the format of `target`. Raises `RecordingError` if it cannot be written, or contains an input."""
    recordings.check_name(target)
    target_format = find_format_by_suffix(target)
    if target_format is None or Capability.MESSAGES not in target_format.capabilities:
        return recordings.find_output_format(target)
    check_recording_path(target_format, target)
    return target_format


def _copy_messages(source: Path, target: Path, target_format: Format) -> ConversionResult:
    with message_recordings.open_messages(source) as reader, open_hidden_folder(target) as work:
        notes, new_file = list_notes(reader.metadata.get(WORLD_JSON_KEY)), work.folder / target.name
        count, lost = target_format.copy_file(reader, new_file), list[str]()
        if count is None:
            count, lost = copy_to_folder(reader, target, work)
        else:
            work.commit(new_file)
        return ConversionResult(get_storage_path(target), count, "message", lost, notes)


def _replace_epoch(slices: Iterator[TimeSlice], epoch: int | None) -> Iterator[TimeSlice]:
    """Yield time slices with another epoch (s), unchanged for None."""
    for time_slice in slices:
        yield (
            time_slice
            if epoch is None
            else replace(
                time_slice,
                readings={name: replace(reading, epoch=epoch) for name, reading in time_slice.readings.items()},
                truth={name: replace(truth, epoch=epoch) for name, truth in time_slice.truth.items()},
                current=time_slice.current and replace(time_slice.current, epoch=epoch),
            )
        )


def _convert_readings(
    source: Path, target: Path, target_format: Format, run: int | None, epoch: int | None, ros: str
) -> ConversionResult:
    """Write the readings and the truth of a recording."""

    def write(
        recorded_run: RecordedRun, slices: Iterator[TimeSlice], world_data: Mapping[str, Any]
    ) -> ConversionResult:
        has_rows = False
        losses = ConversionLosses(
            target_format, recorded_run, target, has_heading_and_water=has_heading_and_water(world_data)
        )
        recorded_run = replace(recorded_run, ros=ros, epoch=recorded_run.epoch if epoch is None else epoch)
        with open_hidden_folder(target) as work:
            new_recording = work.folder / f"{target.name}{target_format.copied_from}"
            with recordings.open_writer(new_recording, recorded_run) as writer:
                for time_slice in _replace_epoch(slices, epoch):
                    losses.add(time_slice)
                    has_rows = has_rows or bool(time_slice.readings or time_slice.truth or time_slice.current)
                    writer.write(time_slice)
                if not has_rows:
                    raise _make_no_readings_error(source)
            if target_format.copied_from:
                with message_recordings.open_messages(new_recording) as messages:
                    copy_to_folder(messages, target, work)
            else:
                work.commit(get_storage_path(new_recording))
        return ConversionResult(get_storage_path(target), losses.count, losses.unit, losses.format_lines())

    if message_recordings.is_message_recording(source):
        with open_readings(source) as assembler:
            recorded_run, world = assembler.recorded_run, assembler.world
            if run is not None and [run] != list(recorded_run.runs):
                raise RecordingError("run", run, allowed=f"must be {recorded_run.runs[0]}, the only one")
            if not (world.sensors or world.models or world.environment.current):
                raise _make_no_readings_error(source)
            result = write(
                recorded_run, assembler.iter_slices(), message_recordings.parse_stored_world(assembler.reader) or {}
            )
            result.losses += assembler.topic_notes
            result.notes = assembler.recorded_world.notes
            return result
    recording = recordings.open(source)
    if run is not None:
        recording = recording.select_run(run)
    if len(recording.runs) > 1 and Capability.RUNS not in target_format.capabilities:
        what = f"a {find_suffix(target) or 'bag'} holds one run"
        raise RecordingError(
            what,
            len(recording.runs),
            where=Where(str(source)),
            remedy=f"choose one with --run, or {format_runs_remedy()}",
        )
    try:
        recorded_run = recording.make_recorded_run()
    except DamagedError as error:
        raise make_damaged_error(source, error) from error
    result = write(recorded_run, recording.iter_slices(), recording.metadata.get(WORLD_JSON_KEY, {}))
    result.notes = recording.recorded_world.notes
    return result


def _make_no_readings_error(source: Path) -> RecordingError:
    remedy = f"list its contents with: navsense info {source}"
    return RecordingError("contains no readings and no truth", where=Where(str(source)), remedy=remedy)
