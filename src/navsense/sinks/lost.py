"""What a recording of one format loses in another, told as its slabs come by, and how much of it is carried.

| to | sensors | rows | of a sensor not |
|---|---|---|---|
| `.npz`, `.parquet`, `.csv` | all | all | |
| messages of ROS | all | that were emitted | arrays without a field, the constant part of hidden errors |
| Gazebo's messages | of types that it knows | that were emitted | ideal values, hidden errors |
| `.euroc` | IMUs | that were emitted and have numbers | orientation, ideal values, hidden errors of all but the first |
| what a device sends | one | that were emitted | ideal values, hidden errors, all that the format has no field for |

The last two list no faults on purpose. A row that was not emitted was dropped where `FAULT` says so; any other told
nothing, as a DVL's between its pings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from navsense import messages, sinks
from navsense.devices.outputs import FORMATS
from navsense.faults import listed
from navsense.messages import generic
from navsense.messages.base import AGE
from navsense.messages.cdr import encode
from navsense.noise.planned import BITS, FAULT
from navsense.sensors.dvl import Dvl, Mode
from navsense.series import Reading, Slab
from navsense.sinks.base import Recording
from navsense.sinks.device import meant
from navsense.typing import BoolArray
from navsense.world import MountedSensor

CONTAINERS = (".mcap", ".bag", ".db3", "")
"""Suffixes of recordings of ROS messages; without one, the folder of a bag of ROS 2 with MCAP in it."""

WHOLE = (".npz", ".parquet", ".csv")
"""Suffixes of recordings that lose nothing."""

ASKED = ("velocity", "beam_velocity", "beam_range", "altitude", "sound_speed", "water_velocity", "water_beam_velocity")
"""Arrays of a DVL that device formats tell of, and not all messages."""

EUROC = ".euroc"
GAZEBO = ".gz.mcap"

RATES = ("angular_velocity", "linear_acceleration")
"""What EuRoC has of an IMU."""

DROPPED, SILENT, EITHER, BLANK = "was dropped", "told nothing", "was dropped or told nothing", "was without a number"
"""What a row did that is not carried, one of `EITHER` where nothing says which."""


def suffix_of(path: Path) -> str:
    """Return what tells the format of a path: its suffix, `.gz.mcap` whole, none for a folder's name."""
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in sinks.SINKS else path.suffix.lower()


class Lost:
    """What a format has no place for, and how many rows it has taken."""

    def __init__(self, recording: Recording, target: Path, *, placed: bool = True) -> None:
        """Start with nothing; `placed` false where the recording does not say how its world stands on earth.

        Raises `SinkError` where a device's log is not of one of its sensors.
        """
        self._suffix, self._placed = suffix_of(target), placed
        self._sensors = {sensor.name: sensor for sensor in recording.world.sensors}
        self._form = FORMATS[self._suffix].name if self._suffix in FORMATS else ""
        self._kept = self._carried(recording, target)
        self._found: dict[str, list[str]] = {}
        self._gone: dict[tuple[str, str], int] = {}
        self._faults = bool(listed(recording.world))
        self._unknown: list[str] = []
        self._truth = self._flow = False
        self.count = 0

    def _carried(self, recording: Recording, target: Path) -> list[str]:
        """Return the names of the sensors for which the format has a place."""
        if self._form:
            return [meant(target, recording.world)[1].name]
        has_place = {EUROC: lambda spec: spec.type == "imu", GAZEBO: messages.has_gz}.get(self._suffix, lambda _: True)
        return [name for name, sensor in self._sensors.items() if has_place(sensor.spec)]

    @property
    def noun(self) -> str:
        """Return what is counted."""
        return "rows" if self._suffix in WHOLE else "readings"

    def note(self, slab: Slab) -> None:
        """Look at a slab."""
        for name, reading in slab.readings.items():
            self._note(name, reading)
        self._truth = self._truth or bool(slab.truth)
        self._flow = self._flow or slab.current is not None

    def _note(self, name: str, reading: Reading) -> None:
        """Look at the rows of one sensor."""
        if self._suffix in WHOLE:
            self.count += reading.clock_error.size
            return
        if name not in self._kept:
            self._found[name] = ["all of it"]
            return
        blank = _blank(reading) if self._suffix == EUROC else np.zeros_like(reading.emitted)
        self.count += int((reading.emitted & ~blank).sum())
        for did, rows in {**_silent(self._sensors[name], reading), BLANK: reading.emitted & blank}.items():
            self._gone[did, name] = self._gone.get((did, name), 0) + int(rows.sum())
        if name not in self._found and reading.time.size:
            self._found[name] = self._missing(self._sensors[name], reading)

    def _missing(self, sensor: MountedSensor, reading: Reading) -> list[str]:
        """Return the arrays of a reading for which the format has no place."""
        if self._suffix in CONTAINERS:
            told = told_by(sensor, reading)
            constant = any(name.endswith("_turn_on") for name in reading.errors)
            words = ["the constant part of hidden errors"] if constant else []
            return [*(name for name in reading.arrays if name not in told), *words]
        arrays = [name for name in reading.arrays if self._suffix == EUROC and name not in RATES]
        ideal = ["ideal values"] if reading.truth else []
        is_first = self._suffix == EUROC and sensor.name == self._kept[0]
        errors = ["hidden errors"] if reading.errors and not is_first else []
        fields = [f"all that {self._form} has no field for"] if self._form else []
        self._unknown = [name for name in _asked(sensor) if self._form and name not in reading]
        return [*arrays, *fields, *ideal, *errors]

    def lines(self) -> list[str]:
        """Return what was lost, a line each."""
        lines = [f"{name}: {', '.join(what)}" for name, what in self._found.items() if what]
        for one in (DROPPED, SILENT, EITHER, BLANK):
            lines += [f"{name}: {_rows(n, did)}" for (did, name), n in self._gone.items() if did == one and n]
        if self._suffix in (*CONTAINERS, *WHOLE):
            return lines
        if self._unknown:
            lines.append(f"{self._kept[0]}: {', '.join(self._unknown)}: not in the recording, and so not known")
        if self._truth:
            but = " but for the pose and velocity of the first IMU" if self._suffix == EUROC else ""
            lines.append(f"truth of links{but}")
        if self._flow:
            lines.append("the water's velocity")
        if self._faults and self._suffix != GAZEBO:
            lines.append("the list of faults on purpose")
        if self._form and not self._placed:
            lines.append("the heading of the world's axes and its water, which the recording does not say: 0 and none")
        return lines


def _asked(sensor: MountedSensor) -> list[str]:
    """Return the arrays of a DVL that device formats tell of."""
    spec = sensor.spec
    if not isinstance(spec, Dvl):
        return []
    return [name for name in ASKED if spec.water_mode is not Mode.NEVER or not name.startswith("water_")]


def _rows(count: int, did: str) -> str:
    """Return how many rows were lost, and why."""
    return f"1 row that {did}" if count == 1 else f"{count} rows that {did.replace('was ', 'were ')}"


def _silent(sensor: MountedSensor, reading: Reading) -> Mapping[str, BoolArray]:
    """Return the rows that were not emitted, by what they did."""
    acts = reading.errors.get(FAULT)
    if acts is None:
        return {EITHER if sensor.faults.act else SILENT: ~reading.emitted}
    dropped = np.asarray((acts.astype(np.uint8) & BITS["dropout"]) != 0)
    return {DROPPED: ~reading.emitted & dropped, SILENT: ~reading.emitted & ~dropped}


def _blank(reading: Reading) -> BoolArray:
    """Return the rows (n,) of an IMU that have no number."""
    sound = [np.isfinite(reading.arrays[name]).all(axis=1) for name in RATES if name in reading.arrays]
    return np.asarray(~np.logical_and.reduce(sound))


def told_by(sensor: MountedSensor, reading: Reading) -> Sequence[str]:
    """Return the arrays of a reading that its messages say."""
    about = messages.about(reading)
    rows = {name: array[:1] for name, array in reading.arrays.items()}
    if about is not None:
        rows[AGE] = reading.time[:1] - about[:1]
    found: list[str] = ["time_of_validity"] if about is not None else []
    for beside in messages.topics_beside(sensor):
        message = messages.for_sensor(sensor, "reading", beside)
        raw = encode(message, reading.true_stamp[:1], rows)
        own = raw.view(message.layout.dtype())[:, 0]
        is_generic = message.type.startswith(generic.PACKAGE)
        found += messages.arrays_of(sensor, own, "reading", beside, is_generic=is_generic)
    return found
