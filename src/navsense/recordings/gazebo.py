"""Writers of MCAP files with Gazebo messages: readings in protobuf, with the definitions in the file.

    .gz.mcap       gz.msgs of Gazebo
    .gazebo.mcap   gazebo.msgs of Gazebo Classic: magnetometers and altimeters

They have a file of their own because rosbag2 rejects files with two encodings ("All topics must have the same
serialization format"). Topics and times are those of the ROS 2 recording. Ground truth, transforms and sensors without
a Gazebo message are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from navsense import messages
from navsense.core.errors import RecordingError, Where
from navsense.core.readings import Reading, TimeSlice, to_nanoseconds
from navsense.messages.gz import CLASSIC_PACKAGE, PACKAGE, encode_descriptor_set
from navsense.messages.sensor_messages import GazeboEncoder, SensorMessages
from navsense.recordings.base import add_path_to_errors, check_recorded_run
from navsense.recordings.info import RecordedRun
from navsense.recordings.mcap.writer import (
    McapFileWriter,
    McapWriterBase,
    MessageRecord,
    chunk_messages,
    make_mcap_metadata,
)
from navsense.recordings.topic_names import TopicNames
from navsense.sensors.base import Sensor
from navsense.world import MountedSensor

ENCODING = "protobuf"
"""Encoding of the messages and of their schemas in MCAP."""


@dataclass(frozen=True)
class GazeboPackage:
    """A package of Gazebo messages.

    has_message: true for a sensor that has a message in the package.
    get_type: returns the full name of the message of a sensor type.
    get_encoder: returns the encoder of a sensor type.
    """

    name: str
    has_message: Callable[[Sensor], bool]
    get_type: Callable[[SensorMessages], str]
    get_encoder: Callable[[SensorMessages], GazeboEncoder]

    def list_sensors(self, recorded_run: RecordedRun) -> list[MountedSensor]:
        """Return the sensors that have a message."""
        return [sensor for sensor in recorded_run.world.sensors if self.has_message(sensor.spec)]

    def list_types(self) -> list[str]:
        """Return the sensor types that have a message."""
        return [kind for kind, declared in messages.SENSOR_MESSAGES.items() if self.get_type(declared)]


GZ = GazeboPackage(
    PACKAGE,
    messages.has_gz,
    lambda sensor_messages: sensor_messages.gz_type,
    lambda sensor_messages: sensor_messages.encode_gz_messages,
)

GAZEBO_CLASSIC = GazeboPackage(
    CLASSIC_PACKAGE,
    messages.has_gazebo_classic,
    lambda sensor_messages: sensor_messages.gazebo_classic_type,
    lambda sensor_messages: sensor_messages.encode_gazebo_classic_messages,
)

GAZEBO_11 = GazeboPackage(
    CLASSIC_PACKAGE,
    messages.has_gazebo_11,
    lambda sensor_messages: sensor_messages.gazebo_11_type,
    lambda sensor_messages: sensor_messages.encode_gazebo_11_messages,
)
"""The messages that Gazebo 11 itself reads, for its transport. A recording has those of `GAZEBO_CLASSIC`."""


class NumberedEncoder:
    """Encodes the messages of one sensor, time slice by time slice, with consecutive numbers."""

    def __init__(self, package: GazeboPackage, sensor: MountedSensor) -> None:
        """Begin with the number 0."""
        sensor_messages = messages.get_messages(sensor.spec.type)
        self.type = package.get_type(sensor_messages)
        self._encode, self._sensor = package.get_encoder(sensor_messages), sensor
        self._count = self._messages_per_sample = 0

    def encode(self, reading: Reading) -> Iterator[tuple[int, int, int, bytes]]:
        """Return the number, log time (ns), publish time (ns) and bytes of all messages; a sample may have several."""
        first, encoded = self._count, self._encode(self._sensor, reading, self._count)
        indices = np.flatnonzero(reading.emitted)
        indices = indices.repeat(len(encoded) // max(indices.size, 1))
        validity = messages.time_of_validity(reading)
        log_time = to_nanoseconds(reading.epoch, reading.arrival[indices]).tolist()
        publish_time = to_nanoseconds(reading.epoch, (reading.time if validity is None else validity)[indices]).tolist()
        self._count += len(encoded)
        return zip(range(first, self._count), log_time, publish_time, encoded, strict=True)

    def skip(self, reading: Reading) -> None:
        """Count the messages without encoding them, except one sample to count its messages."""
        indices = np.flatnonzero(reading.emitted)
        if indices.size and not self._messages_per_sample:
            row = int(indices[0])
            self._messages_per_sample = len(self._encode(self._sensor, reading.select_rows(row, row + 1), 0))
        self._count += self._messages_per_sample * indices.size


class GazeboWriter(McapWriterBase):
    """Writes time slices to one MCAP file of Gazebo messages."""

    def __init__(self, path: Path, recorded_run: RecordedRun, package: GazeboPackage = GZ) -> None:
        """Open the file and write its metadata and all definitions.

        Raises `RecordingError` if that fails, and for a world in which no sensor has a message.
        """
        check_recorded_run(path, recorded_run)
        self._package = package
        self._sensors = {sensor.name: sensor for sensor in package.list_sensors(recorded_run)}
        if not self._sensors:
            raise RecordingError(
                f"no sensor has a message in {package.name}",
                where=Where(str(path)),
                allowed=f"must have one of {', '.join(package.list_types())}",
                remedy="choose another format, for example .mcap",
            )
        self._channel_ids: dict[str, int] = {}
        self._encoders = {name: NumberedEncoder(package, sensor) for name, sensor in self._sensors.items()}
        self._mcap = McapFileWriter(path, profile="")
        try:
            self._mcap.add_run_metadata(make_mcap_metadata(recorded_run))
            self._add_channels(recorded_run.topics)
            definitions = (*self._mcap.schemas.values(), *self._mcap.channels.values())
            self._mcap.write_chunks([(b"".join(definitions), [])])
        except BaseException:
            self._mcap.release()
            raise

    def _add_channels(self, topics: TopicNames) -> None:
        """Add the schemas and channels of all sensors."""
        for name, sensor in self._sensors.items():
            schema = encode_descriptor_set(self._package.name)
            schema_id = self._mcap.add_schema(
                self._package.get_type(messages.get_messages(sensor.spec.type)), schema, ENCODING
            )
            topic = topics.get_sensor_topic(name, "measured")
            self._channel_ids[name] = self._mcap.add_channel(schema_id, topic, {}, ENCODING)

    def write(self, time_slice: TimeSlice) -> None:
        """Write all messages of a time slice in order of arrival."""
        encoded: list[MessageRecord] = []
        with add_path_to_errors(self._mcap.path):
            for name, reading in time_slice.readings.items():
                if name in self._encoders:
                    channel_id, encoder = self._channel_ids[name], self._encoders[name]
                    encoded += [MessageRecord(channel_id, *fields) for fields in encoder.encode(reading)]
        encoded.sort(key=lambda message: message.log_time)
        self._mcap.write_chunks(chunk_messages(encoded))
