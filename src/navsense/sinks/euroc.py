"""Recordings in the layout of EuRoC (ASL): IMUs and the true state of the first one's frame, a folder each.

    NAME/mav0/imu0/data.csv                           timestamp, angular velocity, specific force; and imu1, ...
    NAME/mav0/imu0/sensor.yaml                        pose T_BS of the sensor on the body, rate, noise
    NAME/mav0/state_groundtruth_estimate0/data.csv    timestamp, pose, velocity, biases of imu0
    NAME/navsense.json                                names, epoch: readers of EuRoC pass over it

The body B is the frame S of imu0. Timestamps are integer nanoseconds: of an IMU what its clock showed, of the state
true time. Orientation w x y z takes S to the reference R, the world; the velocity is along R. Biases are the hidden
slow errors, straight between the samples of imu0. A reading without a number is left out: there is no word for it.

Sources: M. Burri et al., "The EuRoC micro aerial vehicle datasets", IJRR 2016, and the headers of its files.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.messages.kalibr import flicker_note, random_walk
from navsense.motion.still import Still
from navsense.pose import Pose, normalised
from navsense.sensors import Imu
from navsense.series import NANOSECONDS, Reading, Slab, Truth, all_true
from navsense.sinks.base import LAYOUT, Recording, failed, version
from navsense.sinks.read import carried
from navsense.sinks.stored import Loaded
from navsense.sinks.tables import ABOUT, Folder, check_folder, check_runs
from navsense.sinks.whole import WholeSink
from navsense.sinks.world_json import world_to_json
from navsense.typing import AnyArray, FloatArray, IntArray, Quaternion, Times
from navsense.world import Link, Model, MountedSensor, World

IMU_HEADER = (
    "#timestamp [ns]",
    *(f"w_RS_S_{axis} [rad s^-1]" for axis in "xyz"),
    *(f"a_RS_S_{axis} [m s^-2]" for axis in "xyz"),
)
"""Columns of an IMU's table."""

STATE_HEADER = (
    "#timestamp",
    *(f"p_RS_R_{axis} [m]" for axis in "xyz"),
    *(f"q_RS_{axis} []" for axis in "wxyz"),
    *(f"v_RS_R_{axis} [m s^-1]" for axis in "xyz"),
    *(f"b_w_RS_S_{axis} [rad s^-1]" for axis in "xyz"),
    *(f"b_a_RS_S_{axis} [m s^-2]" for axis in "xyz"),
)
"""Columns of the true state."""

MAV, STATE = "mav0", "state_groundtruth_estimate0"
"""Folders: of the vehicle, and in it of the true state."""

RATES = ("angular_velocity", "linear_acceleration")

_FILE = inputs.Kind("table", SinkError, "must be a CSV table of EuRoC in UTF-8")
_NUMBERS = re.compile(r"data:\s*\[([^\]]*)\]")
_RATE = re.compile(r"^rate_hz\s*:\s*([0-9.eE+-]+)", re.MULTILINE)


def sensor_yaml(sensor: MountedSensor, pose: Pose) -> str:
    """Return what EuRoC says of an IMU: its pose on the body, its rate (Hz), its noise densities and random walks.

    A bias instability, for which EuRoC has no word, is told in a comment.
    """
    lines = [
        "sensor_type: imu",
        f"comment: {sensor.name}, simulated by navsense",
        *_matrix(pose),
        f"rate_hz: {sensor.rate:.9g}",
    ]
    noise = sensor.spec.noise()
    for word, name in (("gyroscope", RATES[0]), ("accelerometer", RATES[1])):
        axes = noise.get(name, ())
        lines.append(f"{word}_noise_density: {max((one.density(sensor.rate) for one in axes), default=0.0):.9g}")
        lines.append(f"{word}_random_walk: {max((random_walk(one) for one in axes), default=0.0):.9g}")
        lines += flicker_note(word, axes)
    return "\n".join(lines) + "\n"


def state_yaml() -> str:
    """Return what EuRoC says of the true state."""
    return "\n".join(("sensor_type: visual-inertial", "comment: ground truth of a simulation", *_matrix(Pose()))) + "\n"


def _matrix(pose: Pose) -> list[str]:
    """Return a pose as the lines of a 4x4 matrix, row by row."""
    w, x, y, z = pose.rotation
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y), pose.position[0]),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x), pose.position[1]),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y), pose.position[2]),
        (0.0, 0.0, 0.0, 1.0),
    )
    numbers = ",\n         ".join(", ".join(map(repr, row)) for row in rows)
    return ["T_BS:", "  cols: 4", "  rows: 4", f"  data: [{numbers}]"]


@dataclass(eq=False)
class Biases:
    """The hidden errors of imu0 (n, 6) at its own instants, and truth that waits for them."""

    time: Times = field(default_factory=lambda: np.empty(0))
    values: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    waiting: list[Truth] = field(default_factory=list)

    def add(self, reading: Reading) -> None:
        """Take the errors of a window; those of an IMU of which none are recorded are NaN."""
        blank = np.full((reading.time.size, 3), np.nan)
        parts = [reading.errors.get(name, blank) for name in RATES]
        self.time = np.concatenate((self.time[-1:], reading.time))
        self.values = np.concatenate((self.values[-1:], np.concatenate(parts, axis=1)))

    def ready(self, *, last: bool) -> list[tuple[Truth, FloatArray]]:
        """Return the truth whose errors are known, with them (n, 6); with `last` all that waits, the ends held."""
        found, later = [], []
        for truth in self.waiting:
            known = self.time[-1] if self.time.size else -math.inf
            count = truth.time.size if last else int(np.searchsorted(truth.time, known, side="right"))
            if count:
                now = truth.between(0, count)
                found.append((now, self._at(now.time)))
            if count < truth.time.size:
                later.append(truth.between(count, truth.time.size))
        self.waiting = later
        return found

    def _at(self, time: Times) -> FloatArray:
        """Return the errors at instants, NaN where there are none."""
        if not self.time.size:
            return np.full((time.size, 6), np.nan)
        return np.stack([np.interp(time, self.time, column) for column in self.values.T], axis=1)


class Dataset:
    """The folder being written. Its methods are called from one thread, one after the other."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Make the hidden folder. Raises `SinkError` where there is no IMU, which is all that EuRoC has a place for."""
        self._path, self._recording = path, recording
        self._imus = [sensor for sensor in recording.world.sensors if sensor.spec.type == Imu.type]
        if not self._imus:
            what = "the recording has no IMU, and EuRoC has no other sensor of ours"
            raise SinkError(what, where=Where(str(path)), remedy="write .csv, .npz or .parquet")
        self._folder = Folder(path)
        self._biases = Biases()
        self._holds = False
        self.open = True

    def take(self, slab: Slab) -> None:
        """Take all of a slab; after an error nothing is left."""
        try:
            for number, sensor in enumerate(self._imus):
                if sensor.name in slab.readings:
                    self._reading(number, slab.readings[sensor.name])
            first = self._imus[0]
            if self._recording.truth and first.link in slab.truth:
                self._biases.waiting.append(carried(slab.truth[first.link], first.pose, first.name))
            self._states(last=False)
            if not self._holds:
                self._describe()
        except BaseException:
            self.drop()
            raise
        self._holds = True

    def _describe(self) -> None:
        """Write the metadata of each sensor and of the recording, so that the tables can be read after a crash."""
        base = self._imus[0].pose.inverse()
        for number, sensor in enumerate(self._imus):
            pose = base @ self._on_body(sensor) if number else Pose()
            self._folder.write(f"{MAV}/imu{number}/sensor.yaml", sensor_yaml(sensor, pose))
        self._folder.write(ABOUT, self._about())

    def _reading(self, number: int, reading: Reading) -> None:
        """Add the rows of one IMU."""
        if number == 0:
            self._biases.add(reading)
        columns = [reading.arrays[name][:, axis] for name in RATES for axis in range(3)]
        sound = reading.emitted & np.isfinite(columns).all(axis=0)
        self._add(f"{MAV}/imu{number}/data.csv", IMU_HEADER, reading.stamp[sound], [one[sound] for one in columns])

    def _states(self, *, last: bool) -> None:
        """Add the true states that are known."""
        for truth, biases in self._biases.ready(last=last):
            columns = [*truth.position.T, *truth.orientation.T, *truth.velocity.T, *biases.T]
            self._add(f"{MAV}/{STATE}/data.csv", STATE_HEADER, truth.stamp, columns)

    def _add(self, name: str, header: Sequence[str], stamp: IntArray, columns: Sequence[AnyArray]) -> None:
        """Add rows to a table. Raises `SinkError` for a stamp before 1970, which no reader takes."""
        if stamp.size and stamp.min() < 0:
            what, remedy = "timestamp (ns)", "choose a later --epoch"
            raise SinkError(
                what, int(stamp.min()), allowed="must not be below 0", where=Where(str(self._path)), remedy=remedy
            )
        self._folder.append(name, header, [stamp, *columns])

    def finish(self, *, empty: bool = True) -> None:
        """Write what is left and what is said of each, and give the folder its name."""
        if not self.open:
            raise failed(self._path)
        try:
            if empty or self._holds:
                self._states(last=True)
                self._describe()
                if f"{MAV}/{STATE}/data.csv" in self._folder.counts:
                    self._folder.write(f"{MAV}/{STATE}/sensor.yaml", state_yaml())
                self._folder.finish()
        finally:
            self.drop()

    def _on_body(self, sensor: MountedSensor) -> Pose:
        """Return the pose of an IMU on the link of the first one; of one on another model, on its own link."""
        first, world = self._imus[0], self._recording.world
        if sensor.model != first.model:
            return sensor.pose
        model = world.model(first.model)
        return model.link(first.link).pose.inverse() @ model.link(sensor.link).pose @ sensor.pose

    def _about(self) -> str:
        """Return what the recording says of itself."""
        recording = self._recording
        return json.dumps(
            {
                "program": "navsense",
                "format": "euroc",
                "version": version(),
                "world": recording.world.name,
                "seed": recording.seed,
                "epoch": recording.epoch,
                "runs": [int(run) for run in recording.runs],
                "imus": [sensor.name for sensor in self._imus],
                LAYOUT: world_to_json(recording.world, recording.allocate_topics()),
            }
        )

    def drop(self) -> None:
        """Let go of the folder. Never raises."""
        self.open = False
        self._folder.drop()


class EurocSink(WholeSink):
    """Writes slabs to a folder in the layout of EuRoC: `NAME` for the path `NAME.euroc`."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Make the hidden folder beside `path`. Raise `SinkError` where that cannot be."""
        check_folder(path)
        check_runs(path, recording, "a folder of EuRoC")
        super().__init__(path, lambda: Dataset(path, recording))


def root_of(folder: Path) -> Path | None:
    """Return where the folders of the sensors are, in a folder of EuRoC or in its `mav0`; None where it is none."""
    return next((root for root in (folder / MAV, folder) if (root / "imu0" / "data.csv").is_file()), None)


def read(folder: Path) -> Loaded:
    """Return the IMUs and the true state in a folder of EuRoC, of whoever wrote it. Raises `SinkError`.

    Times count from the second of the first timestamp, or from the epoch that navsense noted; the clocks' errors are
    not known, and 0.
    """
    root = root_of(folder)
    if root is None:
        allowed = "must hold mav0/imu0/data.csv, or imu0/data.csv"
        raise SinkError("is no folder of EuRoC", where=Where(str(folder)), allowed=allowed)
    told = _about(folder)
    tables: dict[str, tuple[IntArray, FloatArray]] = {}
    while (root / f"imu{len(tables)}" / "data.csv").is_file():
        name = f"imu{len(tables)}"
        tables[name] = _table(root / name / "data.csv", len(IMU_HEADER))
    state = root / STATE / "data.csv"
    states = _table(state, len(STATE_HEADER)) if state.is_file() else None
    stamps = [stamp for stamp, _ in tables.values()] + ([states[0]] if states else [])
    epoch = int(told.get("epoch", min(int(stamp[0]) for stamp in stamps if stamp.size) // 10**9))
    world = _world(root, list(tables), str(told.get("world", folder.name)))
    names = [f"{BODY}::{name}" for name in tables]
    readings = {name: _reading(name, *table, epoch) for name, table in zip(names, tables.values(), strict=True)}
    truth = {BODY: _truth(states[0], states[1], epoch)} if states else {}
    about = {"world": world.name, "seed": int(told.get("seed", 0)), "epoch": epoch, "runs": [0], "sensors": {}}
    return Loaded(readings, truth, {**about, "links": list(truth), LAYOUT: world_to_json(world)})


BODY = "mav0::body"
"""Full name of the link that the state is of: the frame of imu0."""


def _about(folder: Path) -> Mapping[str, Any]:
    """Return what navsense noted beside a folder, nothing where another wrote it."""
    if not (folder / ABOUT).is_file():
        return {}
    try:
        found = inputs.parse_json(inputs.content(str(folder / ABOUT), _FILE))
    except ValueError as error:
        raise SinkError(f"is damaged: {error}", where=Where(str(folder / ABOUT))) from error
    return found if isinstance(found, dict) else {}


def _table(file: Path, count: int) -> tuple[IntArray, FloatArray]:
    """Return the timestamps (n,) ns and the other columns of a table. Raises `SinkError` with file and line."""
    stamps, numbers = array("q"), array("d")
    for number, line in enumerate(inputs.read_lines(str(file), _FILE), 1):
        if line.startswith("#") or not line.strip():
            continue
        cells = line.split(",")
        if len(cells) != count:
            where = Where(str(file), number)
            raise SinkError("number of columns", len(cells), allowed=f"must be {count}", where=where)
        try:
            stamp = int(cells[0])
            if abs(stamp) >= 2**63:
                raise ValueError("a time beyond 64 bits")  # noqa: TRY301
            numbers.extend([float(cell) for cell in cells[1:]])
            stamps.append(stamp)
        except ValueError as error:
            raise SinkError("row", str(error), where=Where(str(file), number), allowed="must be numbers") from error
    if not stamps:
        raise SinkError("table without rows", where=Where(str(file)))
    return np.frombuffer(stamps, np.int64), np.frombuffer(numbers).reshape(len(stamps), count - 1)


def _reading(name: str, stamp: IntArray, table: FloatArray, epoch: int) -> Reading:
    """Return the readings of one IMU."""
    time = (stamp - epoch * 10**9) / NANOSECONDS
    return Reading(
        name=name,
        type=Imu.type,
        frame=name,
        unit={"angular_velocity": "rad/s", "linear_acceleration": "m/s^2"},
        time=time,
        clock_error=np.zeros(time.size),
        arrays={"angular_velocity": table[:, :3].copy(), "linear_acceleration": table[:, 3:].copy()},
        truth={},
        errors={},
        valid=np.asarray(np.isfinite(table).all(axis=1)),
        emitted=all_true((time.size,)),
        epoch=epoch,
    )


def _truth(stamp: IntArray, table: FloatArray, epoch: int) -> Truth:
    """Return the true states, which have no rates of turning and no accelerations."""
    position, orientation, velocity = table[:, :3].copy(), table[:, 3:7].copy(), table[:, 7:10].copy()
    unknown = [np.full(position.shape, np.nan) for _ in range(3)]
    time = (stamp - epoch * 10**9) / NANOSECONDS
    return Truth(BODY, time, position, orientation, velocity, unknown[0], unknown[1], unknown[2], epoch)


def _world(root: Path, imus: Sequence[str], name: str) -> World:
    """Return a world of one body with these IMUs on it."""
    sensors = []
    for imu in imus:
        file = root / imu / "sensor.yaml"
        text = inputs.content(str(file), _FILE).decode(errors="replace") if file.is_file() else ""
        rate = _RATE.search(text)
        pose = _pose(text)
        hertz = float(rate.group(1)) if rate else 1.0
        full = f"{BODY}::{imu}"
        sensors.append(MountedSensor(full, Imu(orientation=False), MAV, BODY, hertz, pose, f"/{imu}", full))
    return World(name, (Model(MAV, (Link(BODY),), BODY, motion=Still()),), tuple(sensors))


def _pose(text: str) -> Pose:
    """Return the pose T_BS that a text has, the identity where it has none."""
    found = _NUMBERS.search(text)
    cells = [inputs.decimal(cell) for cell in found.group(1).split(",")] if found else []
    if len(cells) != 16 or any(cell is None for cell in cells):
        return Pose()
    matrix = np.array(cells, dtype=np.float64).reshape(4, 4)
    x, y, z = matrix[:3, 3].tolist()
    return Pose((x, y, z), _quaternion(matrix))


def _quaternion(m: FloatArray) -> Quaternion:
    """Return the quaternion of a rotation matrix, from its largest component."""
    squares = (
        1.0 + m[0, 0] + m[1, 1] + m[2, 2],
        1.0 + m[0, 0] - m[1, 1] - m[2, 2],
        1.0 - m[0, 0] + m[1, 1] - m[2, 2],
        1.0 - m[0, 0] - m[1, 1] + m[2, 2],
    )
    a, b, c = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    d, e, f = m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] + m[1, 2]
    rows = ((squares[0], a, b, c), (a, squares[1], d, e), (b, d, squares[2], f), (c, e, f, squares[3]))
    w, x, y, z = map(float, rows[int(np.argmax(squares))])
    return normalised((w, x, y, z))
