"""Recordings of Gazebo's messages as MCAP: what every sensor says, in protobuf, with the definitions in the file.

A file of its own, `.gz.mcap`: readers of ROS 2 refuse one in which messages have two encodings (rosbag2: "All topics
must have the same serialization format"). Topics and times are those of the ROS 2 recording; truth, transforms and
sensors of which Gazebo has no message are not in it. Messages are made one by one, not in blocks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from navsense import messages
from navsense.messages.descriptors import descriptor_set
from navsense.series import Reading, Slab, nanoseconds
from navsense.sinks import records
from navsense.sinks.base import Recording, add_path_to_errors
from navsense.sinks.container import Container, ContainerSink
from navsense.sinks.loose import Written, chunks
from navsense.sinks.mcap import OUR_WORLD, check_head, description, layout_record
from navsense.sinks.topics import Topics

ENCODING = "protobuf"
"""What MCAP calls the encoding of the messages, and of their schemas."""


class GazeboSink(ContainerSink):
    """Writes slabs to one MCAP file of Gazebo's messages."""

    def __init__(self, path: Path, recording: Recording) -> None:
        """Open the file and write its head and all definitions. Raise `SinkError` where that cannot be."""
        check_head(path, recording)
        self._sensors = {s.name: s for s in recording.world.sensors if messages.has_gz(s.spec)}
        self._channels = {name: number for number, name in enumerate(self._sensors)}
        self._counts = dict.fromkeys(self._sensors, 0)
        self._container = Container(path, profile="")
        try:
            self._container.add_metadata(description(recording), "navsense")
            self._container.add_metadata(layout_record(recording), OUR_WORLD)
            self._container.write_chunks([(self._definitions(recording.allocate_topics()), [])])
        except BaseException:
            self._container.release()
            raise

    def _definitions(self, topics: Topics) -> bytes:
        """Return the records of all schemas and channels."""
        container, numbers = self._container, dict[str, int]()
        for name, sensor in self._sensors.items():
            kind = messages.GZ_TYPES[sensor.spec.type]
            number = numbers.setdefault(kind, len(numbers) + 1)
            container.schemas[number] = records.schema(number, kind, descriptor_set(), ENCODING)
            channel, topic = self._channels[name], topics.sensor(name, "reading")
            container.channels[channel] = records.channel(channel, number, topic, {}, ENCODING)
            container.counts[channel] = 0
        return b"".join((*container.schemas.values(), *container.channels.values()))

    def write(self, slab: Slab) -> None:
        """Write all messages of a slab, in the order in which they arrive."""
        with add_path_to_errors(self._container.path):
            found = [one for name, reading in slab.readings.items() for one in self._messages(name, reading)]
        found.sort(key=lambda one: one.log)
        self._container.write_chunks(chunks(found))

    def _messages(self, name: str, reading: Reading) -> list[Written]:
        """Return the messages of one sensor; a row may be several."""
        if name not in self._sensors:
            return []
        first = self._counts[name]
        made = messages.GZ_ENCODERS[reading.type](self._sensors[name], reading, first)
        rows = np.flatnonzero(reading.emitted)
        rows = rows.repeat(len(made) // max(rows.size, 1))
        about = messages.about(reading)
        log = nanoseconds(reading.epoch, reading.arrival[rows]).tolist()
        time = nanoseconds(reading.epoch, (reading.time if about is None else about)[rows]).tolist()
        self._counts[name] += len(made)
        channel = self._channels[name]
        return [Written(channel, first + i, log[i], time[i], raw) for i, raw in enumerate(made)]
