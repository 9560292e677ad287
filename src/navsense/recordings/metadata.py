"""What a recording that is read back says of itself: one JSON text, the same in every such format.

    {"program": "navsense", "format", "version", "world", "seed", "epoch", "duration_asked", "runs", "sensors", "links"}

`sensors` has a head for each sensor: its link and how it stands on it, white noise, type, frame, units, those of its
hidden errors, the shape of its run axes, and of one row of each array. Where the water moves there is `current`, with
topic, position, epoch and the shape of its run axes.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.faults import list_faults
from navsense.recordings.base import WORLD_KEY, RecordingHeader, get_version, os_error, requested_duration
from navsense.recordings.records import DamagedError
from navsense.recordings.world_json import FORMAT_VERSION, noise_to_json, world_to_json
from navsense.sensors.base import HasIndirectNoise, OpaqueSensor
from navsense.series import ARRAY_GROUPS, Current, Layers, Reading
from navsense.typing import AnyArray
from navsense.world import MountedSensor


def sensor_header(recording: RecordingHeader, name: str, reading: Reading) -> dict[str, Any]:
    """Return the head of one sensor; what its recording leaves out is not in it."""
    lead = reading.clock_error.shape[:-1]
    groups = ARRAY_GROUPS if recording.truth else ARRAY_GROUPS[:1]
    mounted = [sensor for sensor in recording.world.sensors if sensor.name == name]
    outputs = [output for sensor in mounted for output in sensor.spec.outputs]
    return {
        **{key: value for sensor in mounted for key, value in _mounting_header(sensor).items()},
        "type": reading.type,
        "frame": reading.frame,
        "unit": dict(reading.unit),
        "bias_unit": {key: value for sensor in mounted for key, value in _bias_units(sensor, reading).items()},
        "epoch": reading.epoch,
        "latency": reading.arrivals is not None,
        "runs": list(lead),
        **{
            group: {key: _row_shape(reading, group, array) for key, array in getattr(reading, group).items()}
            if group in groups
            else {}
            for group in ARRAY_GROUPS
        },
        "ideal_in_runs": reading.ideal_in_runs,
        "quaternions": [output.name for output in outputs if output.equivariance == "orientation"],
    }


def _row_shape(reading: Reading, group: str, array: AnyArray) -> list[int]:
    """Return the shape of one row of an array of a reading."""
    lead = reading.ideal_lead if group == "ideal" else reading.clock_error.shape[:-1]
    return list(array.shape[len(lead) + 1 :])


def _bias_units(sensor: MountedSensor, reading: Reading) -> dict[str, str]:
    """Return the units of hidden errors, where the sheet tells: those of what the noise acts on, metres for angles."""
    spec = sensor.spec
    if isinstance(spec, OpaqueSensor):
        return {}
    elsewhere = (
        {name: output.unit for name, output in spec.noise_quantities.items()}
        if isinstance(spec, HasIndirectNoise)
        else {}
    )
    units = {**reading.unit, **elsewhere}
    return {name: units[name] for name in reading.bias if name in units}


def _mounting_header(sensor: MountedSensor) -> dict[str, Any]:
    """Return how a sensor stands on its link, w x y z, and the white noise of one sample of each noisy array."""
    return {"link": sensor.link, "mounting": list(sensor.pose.rotation), "noise": noise_to_json(sensor)}


def format_metadata(
    recording: RecordingHeader,
    sensors: Mapping[str, Mapping[str, Any]],
    links: Iterable[str],
    current: Mapping[str, Any] | None = None,
) -> str:
    """Return the whole text: the run, its sensors' heads, the links whose truth is there, and where the current is.

    Faults on purpose are in it as `navsense.faults` has them.
    """
    faults = list_faults(recording.world)
    return json.dumps(
        {
            **({"current": current} if current else {}),
            "format": FORMAT_VERSION,
            "program": "navsense",
            "version": get_version(),
            "world": recording.world.name,
            "seed": recording.seed,
            "epoch": recording.epoch,
            "duration_asked": requested_duration(recording),
            "runs": [int(run) for run in recording.runs],
            "sensors": sensors,
            "links": list(links),
            WORLD_KEY: world_to_json(recording.world, recording.allocate_topics()),
            **({"faults": faults} if faults else {}),
        }
    )


def parse_metadata(text: str | bytes) -> dict[str, Any]:
    """Return what the text says. Raise `DamagedError` where it is not ours."""
    meta = inputs.parse_json(text)
    if not isinstance(meta, dict) or meta.get("program") != "navsense":
        raise DamagedError("its meta is of another program")
    if type(meta["epoch"]) is not int:
        raise DamagedError("damaged: its epoch is no integer")
    if type(meta["format"]) is not int or meta["format"] > FORMAT_VERSION:
        raise DamagedError(f"its format is {meta['format']}; this version of navsense reads format {FORMAT_VERSION}")
    return meta


def current_header(current: Current) -> dict[str, Any]:
    """Return the head of the water's velocity."""
    place, runs = list(current.position), list(current.velocity.shape[:-2])
    head: dict[str, Any] = {"topic": current.topic, "position": place, "epoch": current.epoch, "runs": runs}
    if current.layers is not None:
        head["layers"] = {"topic": current.layers.topic, "depths": list(current.layers.depths)}
    return head


def make_layers(header: Mapping[str, Any]) -> Layers | None:
    """Return the layers that the head of a current has, their velocities not yet there; None where it has none."""
    layers = header.get("layers")
    if layers is None:
        return None
    depths = tuple(float(depth) for depth in layers["depths"])
    return Layers(layers["topic"], depths, np.empty((*header["runs"], 0, len(depths), 3)))


def damaged_error(path: Path, error: Exception) -> SinkError:
    """Return what is wrong with a recording in our words: those of the libraries are for other files."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return os_error(path, error, "read")
    if isinstance(error, DamagedError):
        why = str(error)
    elif isinstance(error, KeyError) and error.args:
        why = f"something is missing: {error.args[0]}"
    elif isinstance(error, MemoryError | OverflowError):
        why = "damaged: an array says that it is larger than the memory"
    else:
        why = f"damaged: its contents cannot be read ({type(error).__name__})"
    return not_recording_error(path, why)


def check_expansion(path: Path, problem: str) -> None:
    """Raise `SinkError` if `inputs.expansion_problem` found a problem in a recording."""
    if problem:
        raise not_recording_error(path, f"it {problem}")


def not_recording_error(path: Path, why: str, remedy: str = "") -> SinkError:
    """Return the error of a file that is none of ours, or no longer."""
    return SinkError(f"is no recording of navsense: {why}", where=Where(str(path)), remedy=remedy)
