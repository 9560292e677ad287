"""What a recording loses in another format, and how many of its readings the format holds.

The capabilities of a format decide. A sample that was not published was dropped where the fault "dropout" acts; any
other had no output, as a DVL between its pings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from navsense.core.readings import Reading, TimeSlice
from navsense.core.text import format_count
from navsense.core.typing import BoolArray
from navsense.fault_file import list_faults
from navsense.recordings.format import Capability, Format, list_missing_groups
from navsense.recordings.info import RecordedRun
from navsense.world import MountedSensor

DROPPED, NO_OUTPUT, DROPPED_OR_NO_OUTPUT, NOT_A_NUMBER = (
    "was dropped",
    "had no output",
    "was dropped or had no output",
    "was invalid",
)
"""Why a row is lost; `DROPPED_OR_NO_OUTPUT` where the recording does not distinguish the two."""


class ConversionLosses:
    """What a format does not hold of a recording, and how many rows it holds."""

    def __init__(
        self, recording_format: Format, recorded_run: RecordedRun, target: Path, *, has_heading_and_water: bool = True
    ) -> None:
        """Start with nothing; `has_heading_and_water` is false if the recording does not contain them.

        Raises `RecordingError` if the format has one sensor, and the recording does not have it.
        """
        self._format, self._recorded_run = recording_format, recorded_run
        self._has_heading_and_water = has_heading_and_water
        self._sensors = {sensor.name: sensor for sensor in recorded_run.world.sensors}
        list_sensors = recording_format.list_sensors
        self._sensor_names = list(self._sensors) if list_sensors is None else list_sensors(recorded_run, target)
        self._lost_arrays: dict[str, list[str]] = {}
        self._lost_rows: dict[tuple[str, str], int] = {}
        self._missing_arrays: dict[str, list[str]] = {}
        self._lost_content = {
            Capability.TRUTH: False,
            Capability.CURRENT: False,
            Capability.FAULTS: bool(list_faults(recorded_run.world)),
        }
        self.count = 0

    @property
    def unit(self) -> str:
        """What is counted."""
        return "row" if Capability.UNPUBLISHED in self._format.capabilities else "reading"

    def add(self, time_slice: TimeSlice) -> None:
        """Count the rows of a time slice."""
        for name, reading in time_slice.readings.items():
            self._add_reading(name, reading)
        self._lost_content[Capability.TRUTH] |= bool(time_slice.truth)
        self._lost_content[Capability.CURRENT] |= time_slice.current is not None

    def _add_reading(self, name: str, reading: Reading) -> None:
        if name not in self._sensor_names:
            self._lost_arrays[name] = ["all arrays"]
            return
        sensor = self._sensors[name]
        if name not in self._lost_arrays and reading.time.size:
            if self._format.list_lost is None:
                self._lost_arrays[name] = list_missing_groups(self._format.capabilities, reading)
            else:
                self._lost_arrays[name] = self._format.list_lost(self._recorded_run, sensor, reading)
            self._missing_arrays[name] = [array for array in self._format.list_needed(sensor) if array not in reading]
        if Capability.UNPUBLISHED in self._format.capabilities:
            self.count += reading.clock_error.size
            return
        invalid = np.zeros_like(reading.emitted)
        if Capability.INVALID not in self._format.capabilities:
            invalid = _find_invalid(reading, self._lost_arrays.get(name, ()))
        self.count += int((reading.emitted & ~invalid).sum())
        for reason, rows in {**_find_unpublished(sensor, reading), NOT_A_NUMBER: reading.emitted & invalid}.items():
            self._lost_rows[reason, name] = self._lost_rows.get((reason, name), 0) + int(rows.sum())

    def format_lines(self) -> list[str]:
        """Return what was lost, a line each."""
        lines = [f"{name}: {', '.join(arrays)}" for name, arrays in self._lost_arrays.items() if arrays]
        for reason in (DROPPED, NO_OUTPUT, DROPPED_OR_NO_OUTPUT, NOT_A_NUMBER):
            for (row_reason, name), count in self._lost_rows.items():
                if row_reason == reason and count:
                    text = reason if count == 1 else reason.replace("was ", "were ")
                    lines.append(f"{name}: {format_count(count, 'row')} that {text}")
        for name, arrays in self._missing_arrays.items():
            if arrays:
                lines.append(f"{name}: {', '.join(arrays)}: missing in the source")
        for capability, has_rows in self._lost_content.items():
            if has_rows and capability not in self._format.capabilities:
                lines.append(" ".join(filter(None, (capability, self._format.remarks.get(capability)))))
        if self._format.needs_heading and not self._has_heading_and_water:
            lines.append(
                "the heading of the world's axes and its water, which the recording does not contain: 0 and none"
            )
        return lines


def _find_unpublished(sensor: MountedSensor, reading: Reading) -> Mapping[str, BoolArray]:
    """Return the rows that were not published, by the reason."""
    if not reading.fault:
        return {DROPPED_OR_NO_OUTPUT if sensor.faults.has_faults else NO_OUTPUT: ~reading.emitted}
    dropped = reading.fault["dropout"]
    return {DROPPED: ~reading.emitted & dropped, NO_OUTPUT: ~reading.emitted & ~dropped}


def _find_invalid(reading: Reading, lost: Sequence[str]) -> BoolArray:
    """Return the rows (n,) with an invalid number in an array that is not lost."""
    rows = np.zeros_like(reading.emitted)
    for array in (array for name, array in reading.arrays.items() if name not in lost):
        rows |= ~np.isfinite(array).reshape(rows.shape[0], -1).all(axis=1)
    return rows
