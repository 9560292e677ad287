"""Metadata of recordings of arrays: one JSON text, the same in npz, Parquet and CSV.

    {"program": "navsense", "format", "version", "world", "seed", "epoch", "duration_asked", "runs", "sensors", "links",
     "layout", "faults", "motions"}

`world` is the name of the world, `layout` the world (`world_json`). `sensors` has for each sensor: link, mounting,
white noise, type, frame, units of arrays and biases, the shape of the run axes, and the shape of one row of each array.
`current` exists if the world has a current: topic, position, epoch and the shape of the run axes. `changes` exists if
services have changed the run (`run_changes`).
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from navsense.core import inputs
from navsense.core.errors import DamagedError, RecordingError, Where
from navsense.core.readings import ARRAY_GROUPS, Current, Reading, RunChange
from navsense.fault_file import list_faults
from navsense.recordings.base import make_os_error
from navsense.recordings.info import DURATION_KEY, WORLD_JSON_KEY, RecordedRun, get_version
from navsense.recordings.run_changes import CHANGES_KEY, change_to_json
from navsense.recordings.world_json import FORMAT_VERSION, list_motion_sources, noise_to_json, world_to_json
from navsense.sensors.base import HasIndirectNoise, OpaqueSensor
from navsense.world import MountedSensor


def make_sensor_metadata(recorded_run: RecordedRun, name: str, reading: Reading) -> dict[str, Any]:
    """Return the metadata of one sensor. Groups of arrays that are not recorded are empty."""
    run_shape = reading.clock_error.shape[:-1]
    groups = ARRAY_GROUPS if recorded_run.has_simulated_series else ARRAY_GROUPS[:1]
    shapes = {
        group: {
            key: list(array.shape[len(reading.ideal_run_shape if group == "ideal" else run_shape) + 1 :])
            for key, array in getattr(reading, group).items()
        }
        for group in groups
    }
    sensor = next((sensor for sensor in recorded_run.world.sensors if sensor.name == name), None)
    mounting: dict[str, Any] = {}
    if sensor is not None:
        # The mounting on the link (w x y z), and the white noise of one sample of each noisy array.
        mounting = {"link": sensor.link, "mounting": list(sensor.pose.rotation), "noise": noise_to_json(sensor)}
    return {
        **mounting,
        "type": reading.type,
        "frame": reading.frame,
        "unit": dict(reading.unit),
        "bias_unit": {} if sensor is None else _list_bias_units(sensor, reading),
        "epoch": reading.epoch,
        "latency": reading.arrival_after_latency is not None,
        "runs": list(run_shape),
        **{group: shapes.get(group, {}) for group in ARRAY_GROUPS},
        "ideal_in_runs": reading.ideal_in_runs,
        "quaternions": [
            output.name for output in (sensor.spec.outputs if sensor else ()) if output.equivariance == "orientation"
        ],
    }


def _list_bias_units(sensor: MountedSensor, reading: Reading) -> dict[str, str]:
    """Return the units of biases: those of the quantities on which the noise acts, for example metres for angles."""
    spec = sensor.spec
    if isinstance(spec, OpaqueSensor):
        return {}
    units = dict(reading.unit)
    if isinstance(spec, HasIndirectNoise):
        units |= {name: output.unit for name, output in spec.noise_quantities.items()}
    return {name: units[name] for name in reading.bias if name in units}


def make_metadata(
    recorded_run: RecordedRun,
    sensors: Mapping[str, Mapping[str, Any]],
    links: Iterable[str],
    current: Mapping[str, Any] | None = None,
    changes: Sequence[RunChange] = (),
) -> dict[str, Any]:
    """Return the metadata of a recording.

    sensors: the metadata of each sensor (`make_sensor_metadata`).
    links: the names of the links with recorded truth.
    current: the metadata of the current (`make_current_metadata`).
    changes: the changes of the run while it went on.
    """
    faults, sources = list_faults(recorded_run.world), list_motion_sources(recorded_run.world)
    return {
        **({"current": current} if current else {}),
        "format": FORMAT_VERSION,
        "program": "navsense",
        "version": get_version(),
        "world": recorded_run.world.name,
        "seed": recorded_run.seed,
        "epoch": recorded_run.epoch,
        DURATION_KEY: recorded_run.requested_duration,
        "runs": [int(run) for run in recorded_run.runs],
        "sensors": sensors,
        "links": list(links),
        WORLD_JSON_KEY: world_to_json(recorded_run.world, recorded_run.topics),
        **({"faults": faults} if faults else {}),
        **({"motions": sources} if sources else {}),
        **({CHANGES_KEY: [change_to_json(change) for change in changes]} if changes else {}),
    }


def format_metadata(
    recorded_run: RecordedRun,
    sensors: Mapping[str, Mapping[str, Any]],
    links: Iterable[str],
    current: Mapping[str, Any] | None = None,
    changes: Sequence[RunChange] = (),
) -> str:
    """Return the metadata of a recording as JSON; the arguments are those of `make_metadata`."""
    return json.dumps(make_metadata(recorded_run, sensors, links, current, changes))


def parse_metadata(text: str | bytes) -> dict[str, Any]:
    """Return the metadata in a text. Raises `DamagedError` if another program or a later version wrote it."""
    meta = inputs.parse_json(text)
    if not isinstance(meta, dict) or meta.get("program") != "navsense":
        raise DamagedError("its meta is of another program")
    if type(meta["epoch"]) is not int:
        raise DamagedError("damaged: its epoch is no integer")
    if type(meta["format"]) is not int or meta["format"] > FORMAT_VERSION:
        raise DamagedError(f"its format is {meta['format']}; this version of navsense reads format {FORMAT_VERSION}")
    return meta


def make_current_metadata(current: Current) -> dict[str, Any]:
    """Return the metadata of the current."""
    runs, position = list(current.velocity.shape[:-2]), list(current.position)
    data: dict[str, Any] = {"topic": current.topic, "position": position, "epoch": current.epoch, "runs": runs}
    if current.layers is not None:
        data["layers"] = {"topic": current.layers.topic, "depths": list(current.layers.depths)}
    return data


def make_damaged_error(path: Path, error: Exception) -> RecordingError:
    """Return the error of a damaged recording.

    Exception texts of libraries do not describe the problem for the user.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return make_os_error(path, error, "read")
    if isinstance(error, DamagedError):
        why = str(error)
    elif isinstance(error, KeyError) and error.args:
        why = f"something is missing: {error.args[0]}"
    elif isinstance(error, MemoryError | OverflowError):
        why = "damaged: an array is larger than the memory"
    else:
        why = f"damaged: its contents cannot be read ({type(error).__name__})"
    return make_not_recording_error(path, why)


def check_expansion(path: Path, problem: str) -> None:
    """Raise `RecordingError` if `inputs.expansion_problem` found a problem in a recording."""
    if problem:
        raise make_not_recording_error(path, f"it {problem}")


def make_not_recording_error(path: Path, why: str) -> RecordingError:
    """Return the error of a file that is not a recording of navsense."""
    return RecordingError(f"is not a recording of navsense: {why}", where=Where(str(path)))
