"""A recording format of your own: JSON Lines, one sample per line, written, read, described and converted by navsense.

python examples/json_lines.py
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import outputs

import navsense as ns
from navsense.core import inputs
from navsense.core.atomic import HiddenFolder
from navsense.core.errors import RecordingError
from navsense.core.readings import Reading, TimeSlice
from navsense.recordings import Capability, Dataset, Format, RecordedRun, RecordingWriter, metadata
from navsense.recordings.base import AtomicWriter, PendingRecording
from navsense.recordings.convert import convert
from navsense.recordings.summary import read_summary

FILE = inputs.FileKind("recording", RecordingError, "must be JSON Lines in UTF-8")


class PendingLines(PendingRecording):
    """A file in a hidden folder next to its target. An unfinished recording never has the name of the target."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Create the hidden folder."""
        self.path, self._folder, self._recorded_run = path, HiddenFolder(path), recorded_run
        self._file = (self._folder.folder / path.name).open("w", encoding="utf-8")
        self._sensors: dict[str, Any] = {}

    def append(self, time_slice: TimeSlice) -> None:
        """Write a line for each sample: sensor, time (s), clock error (s), flags, arrays."""
        for name, reading in time_slice.readings.items():
            self._sensors[name] = metadata.make_sensor_metadata(self._recorded_run, name, reading)
            for row in range(reading.time.size):
                line = {
                    "sensor": name,
                    "time": float(reading.time[row]),
                    "clock_error": float(reading.clock_error[row]),
                    "valid": bool(reading.valid[row]),
                    "emitted": bool(reading.emitted[row]),
                    **{key: array[row].tolist() for key, array in reading.arrays.items()},
                }
                self._file.write(json.dumps(line) + "\n")

    def complete(self) -> None:
        """Write the metadata in the last line, and give the file its name."""
        self._file.write(metadata.format_metadata(self._recorded_run, self._sensors, links=()) + "\n")
        self._file.close()
        self._folder.commit(self._folder.folder / Path(self._file.name).name)

    def release(self) -> None:
        """Remove the hidden folder."""
        self._file.close()
        self._folder.release()


def open_writer(path: Path, recorded_run: RecordedRun) -> RecordingWriter:
    """Open a recording for writing. `AtomicWriter` calls `PendingLines` from one thread."""
    return AtomicWriter(path, lambda: PendingLines(path, replace(recorded_run, has_simulated_series=False)))


def read(path: Path) -> Dataset:
    """Return a recording. Raises `RecordingError` if the file is not a recording of this format."""
    lines = list(inputs.read_lines(str(path), FILE))
    try:
        meta = metadata.parse_metadata(lines[-1])
        rows = [json.loads(line) for line in lines[:-1]]
        readings = {
            name: make_reading(name, rows, sensor_metadata) for name, sensor_metadata in meta["sensors"].items()
        }
        return Dataset(readings, {}, meta)
    except Exception as error:
        raise metadata.make_damaged_error(path, error) from error


def make_reading(name: str, rows: list[dict[str, Any]], sensor_metadata: dict[str, Any]) -> Reading:
    """Return the samples of one sensor."""
    own = [row for row in rows if row["sensor"] == name]

    def column(key: str) -> Any:
        return np.array([row[key] for row in own])

    return Reading(
        name=name,
        type=sensor_metadata["type"],
        frame=sensor_metadata["frame"],
        unit=sensor_metadata["unit"],
        time=column("time"),
        clock_error=column("clock_error"),
        arrays={key: column(key) for key in sensor_metadata["arrays"]},
        ideal={},
        bias={},
        valid=column("valid"),
        emitted=column("emitted"),
        epoch=sensor_metadata["epoch"],
    )


FORMAT = Format(
    name="JSON Lines",
    suffixes=(".jsonl",),
    capabilities=frozenset((Capability.UNPUBLISHED, Capability.INVALID, Capability.FAULTS)),
    read=read,
    open_writer=open_writer,
)

WORLD = """<sdf version="1.9"><world name="table"><model name="box"><link name="base">
  <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor>
</link></model></world></sdf>"""

if __name__ == "__main__":
    ns.recordings.register_format(FORMAT)  # an installed package has the entry point navsense.formats instead
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "table.sdf").write_text(WORLD)
        world = ns.load(folder / "table.sdf")
        run = ns.simulate(world, 2.0, seed=7)
        run.save(folder / "run.jsonl")
        recording = ns.open(folder / "run.jsonl")
        print(recording, recording["imu"]["angular_velocity"].shape)
        assert np.array_equal(recording["imu"]["angular_velocity"], run["imu"]["angular_velocity"])
        assert recording.world.sensors[0].rate == 50.0
        print(read_summary(folder / "run.jsonl").headline)
        run.save(folder / "run.mcap")
        for loss in convert(folder / "run.mcap", folder / "other.jsonl").losses:
            print("lost:", loss)
    imu = recording["imu"]
    names = [f"{axis} ({unit})" for unit in ("rad/s", "m/s^2") for axis in "xyz"]
    values = np.hstack([imu["angular_velocity"], imu["linear_acceleration"]])
    outputs.write("json_lines", {"time (s)": imu.time, **dict(zip(names, values.T, strict=True))})
