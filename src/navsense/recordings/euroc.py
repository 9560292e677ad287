"""Recordings in the layout of EuRoC (ASL): IMUs and the true state of the first one's frame, a folder each.

    NAME/mav0/imu0/data.csv                           timestamp, angular velocity, specific force; and imu1, ...
    NAME/mav0/imu0/sensor.yaml                        pose T_BS of the sensor on the body, rate, noise
    NAME/mav0/state_groundtruth_estimate0/data.csv    timestamp, pose, velocity, biases of imu0
    NAME/navsense.json                                names, epoch; readers of EuRoC ignore it

The body B is the frame S of imu0. Timestamps are integer nanoseconds: the stamp of an IMU's clock, and true time of the
state. Orientation w x y z takes S to the reference R, the world. The velocity is along R. Biases are interpolated
linearly between the samples of imu0. Invalid readings are omitted, because EuRoC cannot represent them.

Sources: M. Burri et al., "The EuRoC micro aerial vehicle datasets", IJRR 2016, and the headers of its files.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense.core import inputs
from navsense.core.errors import RecordingError, Where
from navsense.core.pose import Pose, normalize
from navsense.core.readings import NANOSECONDS, Reading, TimeSlice, Truth, make_all_true
from navsense.core.text import parse_decimal
from navsense.core.typing import AnyArray, FloatArray, IntArray, Quaternion, Times
from navsense.messages.kalibr import format_noise
from navsense.recordings.base import AtomicWriter, PendingRecording
from navsense.recordings.csv_tables import (
    CONTENT_FOLDER,
    EUROC,
    METADATA_FILE,
    RECOVERY,
    TableFolder,
    check_table_folder,
    find_folder,
)
from navsense.recordings.dataset import Dataset
from navsense.recordings.format import Capability, Format, list_missing_groups
from navsense.recordings.info import WORLD_JSON_KEY, RecordedRun, RecordingSummary, get_version
from navsense.recordings.static_transforms import transform_truth
from navsense.recordings.summary import summarize_dataset
from navsense.recordings.world_json import RECORDED_MOTION, world_to_json
from navsense.sensors import Imu
from navsense.world import Link, Model, MountedSensor, World

IMU_HEADER = (
    "#timestamp [ns]",
    *(f"w_RS_S_{axis} [rad s^-1]" for axis in "xyz"),
    *(f"a_RS_S_{axis} [m s^-2]" for axis in "xyz"),
)
"""Columns of the table of an IMU."""

STATE_HEADER = (
    "#timestamp",
    *(f"p_RS_R_{axis} [m]" for axis in "xyz"),
    *(f"q_RS_{axis} []" for axis in "wxyz"),
    *(f"v_RS_R_{axis} [m s^-1]" for axis in "xyz"),
    *(f"b_w_RS_S_{axis} [rad s^-1]" for axis in "xyz"),
    *(f"b_a_RS_S_{axis} [m s^-2]" for axis in "xyz"),
)
"""Columns of the true state."""

MAV_FOLDER, STATE_FOLDER = "mav0", "state_groundtruth_estimate0"
"""Folder of the vehicle, and in it the folder of the true state."""

IMU_ARRAYS = ("angular_velocity", "linear_acceleration")

_FILE = inputs.FileKind("table", RecordingError, "must be a CSV table of EuRoC in UTF-8")
_MATRIX_PATTERN = re.compile(r"data:\s*\[([^\]]*)\]")
_RATE_PATTERN = re.compile(r"^rate_hz\s*:\s*([0-9.eE+-]+)", re.MULTILINE)


def format_sensor_yaml(sensor: MountedSensor, pose: Pose) -> str:
    """Return the metadata of an IMU: its pose on the body, rate (Hz), noise densities and random walks.

    EuRoC has no field for a bias instability, so it is a comment.
    """
    lines = [
        "sensor_type: imu",
        f"comment: {sensor.name}, simulated by navsense",
        *_format_pose(pose),
        f"rate_hz: {sensor.rate:.9g}",
    ]
    noise = sensor.spec.noise()
    for word, name in (("gyroscope", IMU_ARRAYS[0]), ("accelerometer", IMU_ARRAYS[1])):
        lines += format_noise(word, noise.get(name, ()), sensor.rate)
    return "\n".join(lines) + "\n"


def format_state_yaml() -> str:
    """Return the metadata of the true state."""
    return (
        "\n".join(("sensor_type: visual-inertial", "comment: ground truth of a simulation", *_format_pose(Pose())))
        + "\n"
    )


def _format_pose(pose: Pose) -> list[str]:
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
class BiasInterpolator:
    """The bias of imu0 (n, 6) at its sample times, and truth that waits for later samples."""

    time: Times = field(default_factory=lambda: np.empty(0))
    values: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    pending_truth: list[Truth] = field(default_factory=list)

    def add(self, reading: Reading) -> None:
        """Append the biases of a time slice; NaN if they are not recorded."""
        blank = np.full((reading.time.size, 3), np.nan)
        parts = [reading.bias.get(name, blank) for name in IMU_ARRAYS]
        self.time = np.concatenate((self.time[-1:], reading.time))
        self.values = np.concatenate((self.values[-1:], np.concatenate(parts, axis=1)))

    def pop_known(self, *, last: bool) -> list[tuple[Truth, FloatArray]]:
        """Remove and return truth with its biases (n, 6). With `last` return all, with constant biases at the ends."""
        complete, waiting = [], []
        for truth in self.pending_truth:
            known = self.time[-1] if self.time.size else -math.inf
            count = truth.time.size if last else int(np.searchsorted(truth.time, known, side="right"))
            if count:
                part = truth.select_rows(0, count)
                complete.append((part, self._interpolate(part.time)))
            if count < truth.time.size:
                waiting.append(truth.select_rows(count, truth.time.size))
        self.pending_truth = waiting
        return complete

    def _interpolate(self, time: Times) -> FloatArray:
        if not self.time.size:
            return np.full((time.size, 6), np.nan)
        return np.stack([np.interp(time, self.time, column) for column in self.values.T], axis=1)


class PendingEuroc(PendingRecording):
    """A folder that is written by one thread."""

    def __init__(self, path: Path, recorded_run: RecordedRun) -> None:
        """Create the hidden folder. Raises `RecordingError` if the world has no IMU."""
        self.path, self._recorded_run = path, recorded_run
        self._imus = [sensor for sensor in recorded_run.world.sensors if sensor.spec.type == Imu.type]
        if not self._imus:
            what = "the recording has no IMU, the only sensor that EuRoC supports"
            raise RecordingError(what, where=Where(str(path)), remedy="write .csv, .npz or .parquet")
        self._folder = TableFolder(path, EUROC)
        self._biases = BiasInterpolator()

    def append(self, time_slice: TimeSlice) -> None:
        """Append a time slice."""
        for number, sensor in enumerate(self._imus):
            if sensor.name in time_slice.readings:
                self._write_imu(number, time_slice.readings[sensor.name])
        first = self._imus[0]
        if self._recorded_run.has_simulated_series and first.link in time_slice.truth:
            self._biases.pending_truth.append(transform_truth(time_slice.truth[first.link], first.pose, first.name))
        self._write_states(last=False)
        if not self.has_content:
            self._write_metadata()

    def _write_metadata(self) -> None:
        # The metadata is written early, so that the tables can be read after a crash.
        base = self._imus[0].pose.inverse()
        for number, sensor in enumerate(self._imus):
            pose = base @ self._compute_pose_on_first_link(sensor) if number else Pose()
            self._folder.write(f"{MAV_FOLDER}/imu{number}/sensor.yaml", format_sensor_yaml(sensor, pose))
        self._folder.write(METADATA_FILE, self._format_metadata())

    def _write_imu(self, number: int, reading: Reading) -> None:
        if number == 0:
            self._biases.add(reading)
        columns = [reading.arrays[name][:, axis] for name in IMU_ARRAYS for axis in range(3)]
        valid = reading.emitted & np.isfinite(columns).all(axis=0)
        self._append_rows(
            f"{MAV_FOLDER}/imu{number}/data.csv",
            IMU_HEADER,
            reading.stamp[valid],
            [column[valid] for column in columns],
        )

    def _write_states(self, *, last: bool) -> None:
        for truth, biases in self._biases.pop_known(last=last):
            columns = [*truth.position.T, *truth.orientation.T, *truth.velocity.T, *biases.T]
            self._append_rows(f"{MAV_FOLDER}/{STATE_FOLDER}/data.csv", STATE_HEADER, truth.stamp, columns)

    def _append_rows(self, name: str, header: Sequence[str], stamp: IntArray, columns: Sequence[AnyArray]) -> None:
        """Append rows to a table. Raises `RecordingError` for a stamp before 1970."""
        if stamp.size and stamp.min() < 0:
            what, remedy = "timestamp (ns)", "choose a later --epoch"
            raise RecordingError(
                what, int(stamp.min()), allowed="must not be below 0", where=Where(str(self.path)), remedy=remedy
            )
        self._folder.append(name, header, [stamp, *columns])

    def complete(self) -> None:
        """Write the remaining rows and the metadata, and give the folder its name."""
        self._write_states(last=True)
        self._write_metadata()
        if f"{MAV_FOLDER}/{STATE_FOLDER}/data.csv" in self._folder.row_counts:
            self._folder.write(f"{MAV_FOLDER}/{STATE_FOLDER}/sensor.yaml", format_state_yaml())
        self._folder.finish()

    def keep_content(self) -> str:
        """Keep the tables for `navsense recover`. Never raises."""
        return self._folder.keep()

    def release(self) -> None:
        """Remove the hidden folder. Never raises."""
        self._folder.discard()

    def _compute_pose_on_first_link(self, sensor: MountedSensor) -> Pose:
        """Return the pose of an IMU on the link of the first one; of one on another model, on its own link."""
        first, world = self._imus[0], self._recorded_run.world
        if sensor.model != first.model:
            return sensor.pose
        model = world.model(first.model)
        return model.link(first.link).pose.inverse() @ model.link(sensor.link).pose @ sensor.pose

    def _format_metadata(self) -> str:
        recorded_run = self._recorded_run
        return json.dumps(
            {
                "program": "navsense",
                "format": "euroc",
                "version": get_version(),
                "world": recorded_run.world.name,
                "seed": recorded_run.seed,
                "epoch": recorded_run.epoch,
                "runs": [int(run) for run in recorded_run.runs],
                "imus": [sensor.name for sensor in self._imus],
                WORLD_JSON_KEY: world_to_json(recorded_run.world, recorded_run.topics),
            }
        )


def find_root(folder: Path) -> Path | None:
    """Return the folder with the folders of the sensors; None if `folder` is not of EuRoC."""
    return next((root for root in (folder / MAV_FOLDER, folder) if (root / "imu0" / "data.csv").is_file()), None)


def read(path: Path) -> Dataset:
    """Return the IMUs and the true state in a folder of EuRoC, of any program. Raises `RecordingError`.

    Times count from the epoch in the metadata of navsense, or else from the second of the first timestamp. Clock errors
    are unknown, and 0.
    """
    folder = find_folder(path)
    root = find_root(folder)
    if root is None:
        allowed = "must hold mav0/imu0/data.csv, or imu0/data.csv"
        raise RecordingError("is no folder of EuRoC", where=Where(str(folder)), allowed=allowed)
    stored = _read_metadata(folder)
    tables: dict[str, tuple[IntArray, FloatArray]] = {}
    while (root / f"imu{len(tables)}" / "data.csv").is_file():
        name = f"imu{len(tables)}"
        tables[name] = _read_table(root / name / "data.csv", len(IMU_HEADER))
    state = root / STATE_FOLDER / "data.csv"
    states = _read_table(state, len(STATE_HEADER)) if state.is_file() else None
    stamps = [stamp for stamp, _ in tables.values()] + ([states[0]] if states else [])
    epoch = int(stored.get("epoch", min(int(stamp[0]) for stamp in stamps if stamp.size) // 10**9))
    world = _make_world(root, list(tables), str(stored.get("world", folder.name)))
    names = [f"{BODY_LINK}::{name}" for name in tables]
    readings = {name: _make_reading(name, *table, epoch) for name, table in zip(names, tables.values(), strict=True)}
    truth = {BODY_LINK: _make_truth(states[0], states[1], epoch)} if states else {}
    metadata = {"world": world.name, "seed": int(stored.get("seed", 0)), "epoch": epoch, "runs": [0], "sensors": {}}
    return Dataset(readings, truth, {**metadata, "links": list(truth), WORLD_JSON_KEY: world_to_json(world)})


BODY_LINK = "mav0::body"
"""Full name of the link of the state: the frame of imu0."""


def _read_metadata(folder: Path) -> Mapping[str, Any]:
    if not (folder / METADATA_FILE).is_file():
        return {}
    try:
        data = inputs.parse_json(inputs.read_bytes(str(folder / METADATA_FILE), _FILE))
    except ValueError as error:
        raise RecordingError(f"is damaged: {error}", where=Where(str(folder / METADATA_FILE))) from error
    return data if isinstance(data, dict) else {}


def _read_table(file: Path, count: int) -> tuple[IntArray, FloatArray]:
    """Return the timestamps (n,) ns and the other columns of a table. Raises `RecordingError` with file and line."""
    stamps, numbers = array("q"), array("d")
    for number, line in enumerate(inputs.read_lines(str(file), _FILE), 1):
        if line.startswith("#") or not line.strip():
            continue
        cells = line.split(",")
        if len(cells) != count:
            where = Where(str(file), number)
            raise RecordingError("number of columns", len(cells), allowed=f"must be {count}", where=where)
        try:
            stamp = int(cells[0])
            if abs(stamp) >= 2**63:
                raise ValueError("a time beyond 64 bits")  # noqa: TRY301
            numbers.extend([float(cell) for cell in cells[1:]])
            stamps.append(stamp)
        except ValueError as error:
            raise RecordingError(
                "row", str(error), where=Where(str(file), number), allowed="must be numbers"
            ) from error
    if not stamps:
        raise RecordingError("table without rows", where=Where(str(file)))
    return np.frombuffer(stamps, np.int64), np.frombuffer(numbers).reshape(len(stamps), count - 1)


def _make_reading(name: str, stamp: IntArray, table: FloatArray, epoch: int) -> Reading:
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
        ideal={},
        bias={},
        valid=np.asarray(np.isfinite(table).all(axis=1)),
        emitted=make_all_true((time.size,)),
        epoch=epoch,
    )


def _make_truth(stamp: IntArray, table: FloatArray, epoch: int) -> Truth:
    """Return the true states, which have no rates of turning and no accelerations."""
    position, orientation, velocity = table[:, :3].copy(), table[:, 3:7].copy(), table[:, 7:10].copy()
    unknown = [np.full(position.shape, np.nan) for _ in range(3)]
    time = (stamp - epoch * 10**9) / NANOSECONDS
    return Truth(BODY_LINK, time, position, orientation, velocity, unknown[0], unknown[1], unknown[2], epoch)


def _make_world(root: Path, imus: Sequence[str], name: str) -> World:
    """Return a world of one body with these IMUs on it."""
    sensors = []
    for imu in imus:
        file = root / imu / "sensor.yaml"
        text = inputs.read_bytes(str(file), _FILE).decode(errors="replace") if file.is_file() else ""
        rate = _RATE_PATTERN.search(text)
        pose = _parse_pose(text)
        hertz = float(rate.group(1)) if rate else 1.0
        full = f"{BODY_LINK}::{imu}"
        sensors.append(MountedSensor(full, Imu(orientation=False), MAV_FOLDER, BODY_LINK, hertz, pose, f"/{imu}", full))
    return World(name, (Model(MAV_FOLDER, (Link(BODY_LINK),), BODY_LINK, motion=RECORDED_MOTION),), tuple(sensors))


def _parse_pose(text: str) -> Pose:
    """Return the pose T_BS that a text has, the identity where it has none."""
    match = _MATRIX_PATTERN.search(text)
    cells = [parse_decimal(cell) for cell in match.group(1).split(",")] if match else []
    if len(cells) != 16 or any(cell is None for cell in cells):
        return Pose()
    matrix = np.array(cells, dtype=np.float64).reshape(4, 4)
    x, y, z = matrix[:3, 3].tolist()
    return Pose((x, y, z), _matrix_to_quaternion(matrix))


def _matrix_to_quaternion(m: FloatArray) -> Quaternion:
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
    return normalize((w, x, y, z))


def summarize(path: Path) -> RecordingSummary:
    """Return what a folder of EuRoC holds. The metadata of a folder of another program is empty."""
    recording = read(path)
    is_own = (find_folder(path) / METADATA_FILE).is_file()
    return summarize_dataset(path, FORMAT.name, recording, recording.metadata if is_own else {})


def list_lost(recorded_run: RecordedRun, sensor: MountedSensor, reading: Reading) -> list[str]:
    """Return what EuRoC does not hold of an IMU; the bias of the first IMU is in the true state."""
    first = next(group.name for group in recorded_run.world.sensors if group.spec.type == Imu.type)
    groups = [
        group
        for group in list_missing_groups(FORMAT.capabilities, reading)
        if group != Capability.BIAS or sensor.name != first
    ]
    return [*(name for name in reading.arrays if name not in IMU_ARRAYS), *groups]


FORMAT = Format(
    name=EUROC,
    suffixes=(".euroc",),
    capabilities=frozenset((Capability.RECOVERY,)),
    read=read,
    open_writer=lambda path, recorded_run: AtomicWriter(path, lambda: PendingEuroc(path, recorded_run)),
    summarize=summarize,
    is_folder=True,
    folder_files=("mav0/imu0/data.csv", "imu0/data.csv"),
    check_path=lambda path, _: check_table_folder(path, EUROC),
    list_sensors=lambda recorded_run, _: [
        sensor.name for sensor in recorded_run.world.sensors if sensor.spec.type == Imu.type
    ],
    list_lost=list_lost,
    recovery=replace(RECOVERY, files=(*RECOVERY.files, f"{CONTENT_FOLDER}/{MAV_FOLDER}")),
    remarks={Capability.TRUTH: "but for the pose and velocity of the first IMU"},
)
