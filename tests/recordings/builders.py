"""Worlds, readings and time slices for tests of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import make_reader
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import Writer as Writer1

from navsense import recordings
from navsense.clock import Clock
from navsense.core.pose import Pose, from_rpy
from navsense.core.readings import Reading, TimeSlice, Truth
from navsense.core.typing import Times
from navsense.motion.base import MotionBlock
from navsense.noise.specification import Noise
from navsense.recordings.rosbag.metadata import METADATA_TOPIC
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import Link, Model, MountedSensor, World


@dataclass(frozen=True)
class UnusedMotion:
    """A motion that is never evaluated."""

    end: float = 1e9

    def at(self, time: Times) -> MotionBlock:
        """Not called."""
        raise NotImplementedError


IMU = "rov::base::imu"
MAG = "rov::base::mag"
LINKS = ("rov::base", "rov::arm::tip")


def make_world() -> World:
    """Return a moving robot of two links with an IMU and a magnetometer, and a stationary dock."""
    rov = Model(
        "rov",
        (
            Link("rov::base", Pose((0.1, 0.0, 0.2))),
            Link("rov::arm::tip", Pose((1.0, 2.0, 3.0), from_rpy(0.1, 0.2, 0.3))),
        ),
        "rov::base",
        motion=UnusedMotion(),
    )
    dock = Model("dock", (Link("dock::pier"),), "dock::pier", pose=Pose((5.0, 6.0, 7.0)), static=True)
    quiet = Noise(stddev=0.25)
    imu = Imu(quiet, quiet, quiet, Noise(stddev=0.5))
    return World(
        "sea",
        (rov, dock),
        (
            MountedSensor(IMU, imu, "rov", "rov::base", 100.0, Pose((0.0, 0.0, 0.1)), "/imu", clock="rov::base::clock"),
            MountedSensor(MAG, Magnetometer(quiet), "rov", "rov::base", 10.0, topic="/mag", frame="mag_frame"),
        ),
        (Clock("rov::base::clock", Noise(bias_stddev=0.01)),),
    )


UNITS = {"orientation": "1", "angular_velocity": "rad/s", "linear_acceleration": "m/s^2", "field": "T"}


def make_reading(
    name: str, start: int, count: int, epoch: int = 0, seed: int = 1, runs: tuple[int, ...] = ()
) -> Reading:
    """Return `count` random readings of one of the sensors from tick `start` on, at 100 Hz (IMU) or 10 Hz."""
    rng = np.random.default_rng((seed, start, len(name)))
    is_imu = name.endswith("imu")
    axes = {"orientation": 4, "angular_velocity": 3, "linear_acceleration": 3} if is_imu else {"field": 3}
    arrays: dict[str, Any] = {key: rng.standard_normal((*runs, count, n)) for key, n in axes.items()}
    slow = {key: n for key, n in axes.items() if key != "orientation"}
    biases: dict[str, Any] = {key: rng.standard_normal((*runs, count, n)) for key, n in slow.items()}
    return Reading(
        name=name,
        type="imu" if is_imu else "magnetometer",
        frame="mag_frame" if not is_imu else name,
        unit={key: UNITS[key] for key in axes},
        time=np.arange(start, start + count) / (100.0 if is_imu else 10.0),
        clock_error=rng.standard_normal((*runs, count)) * 0.01,
        arrays=arrays,
        ideal={key: rng.standard_normal((count, n)) for key, n in axes.items()},
        bias=biases,
        valid=np.ones((*runs, count), dtype=np.bool_),
        emitted=np.ones((*runs, count), dtype=np.bool_),
        epoch=epoch,
    )


def make_truth(name: str, start: int, count: int, epoch: int = 0) -> Truth:
    """Return `count` random rows of a link's truth at 50 Hz."""
    rng = np.random.default_rng((7, start, len(name)))
    orientation = rng.standard_normal((count, 4))
    orientation /= np.sqrt((orientation**2).sum(axis=1, keepdims=True))
    vectors = rng.standard_normal((5, count, 3))
    return Truth(
        name,
        np.arange(start, start + count) / 50.0,
        vectors[0],
        orientation,
        vectors[1],
        vectors[2],
        vectors[3],
        vectors[4],
        epoch,
    )


def make_time_slice(second: int, epoch: int = 0, runs: tuple[int, ...] = ()) -> TimeSlice:
    """Return a time slice of one second with all readings and truth."""
    return TimeSlice(
        float(second),
        float(second + 1),
        {
            IMU: make_reading(IMU, 100 * second, 100, epoch, runs=runs),
            MAG: make_reading(MAG, 10 * second, 10, epoch, runs=runs),
        },
        {name: make_truth(name, 50 * second, 50, epoch) for name in LINKS},
    )


def record_slices(path: Path, count: int) -> Path:
    """Write a recording of `count` time slices of one second, with the seed 7."""
    with recordings.open_writer(path, recordings.RecordedRun(make_world(), seed=7, duration=float(count))) as writer:
        for second in range(count):
            writer.write(make_time_slice(second))
    return path


def copy_without_metadata(bag: Path, target: Path, text: bytes | None = None) -> Path:
    """Return a copy of a ROS 1 bag without metadata, or with `text` as metadata."""
    with Reader1(bag) as reader, Writer1(target) as writer:
        connections = {}
        for connection in reader.connections:
            if connection.topic != METADATA_TOPIC or text is not None:
                options: Any = {"callerid": connection.ext.callerid, "latching": connection.ext.latching}  # type: ignore[union-attr]
                added = writer.add_connection(
                    connection.topic,
                    connection.msgtype,
                    msgdef=connection.msgdef.data,
                    md5sum=connection.digest,
                    **options,
                )
                connections[connection.id] = added
        for connection, time, data in reader.messages():
            if connection.id in connections:
                own = connection.topic == METADATA_TOPIC and text is not None
                writer.write(
                    connections[connection.id], time, len(text).to_bytes(4, "little") + text if own and text else data
                )
    return target


def write_mcap(path: Path, rows: Iterable[tuple[Any, Any, Any]], like: Path, **options: Any) -> Path:
    """Write rows of schema, channel, message unchanged with the package mcap, with the metadata of another file."""
    with path.open("wb") as file, like.open("rb") as source:
        writer = McapWriter(file, **options)
        writer.start("ros2", "elsewhere")
        schemas: dict[int, int] = {}
        channels: dict[int, int] = {}
        for schema, channel, message in rows:
            if schema.id not in schemas:
                schemas[schema.id] = writer.register_schema(schema.name, schema.encoding, schema.data)
            if channel.id not in channels:
                arguments = (channel.topic, channel.message_encoding, schemas[schema.id], channel.metadata)
                channels[channel.id] = writer.register_channel(*arguments)
            writer.add_message(channels[channel.id], message.log_time, message.data, message.publish_time)
        for one in make_reader(source).iter_metadata():
            writer.add_metadata(one.name, one.metadata)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


def copy_without_messages(recording: Path, target: Path, is_gone: Callable[[str, int], bool]) -> Path:
    """Return a copy of an MCAP file without some messages, selected by topic and index."""
    counts: Counter[str] = Counter()
    options = []
    with recording.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            if schema is not None and not is_gone(channel.topic, counts[channel.topic]):
                options.append((schema, channel, message))
            counts[channel.topic] += 1
    return write_mcap(target, options, recording)
