"""The streams of ROS 2: processor time of a message beyond its encoding, and that of the typed write of Cyclone DDS.

    python benchmarks/bench_ros2.py [SECONDS]        simulated time; default 20

The IMU of examples/quadrotor.sdf at 1 kHz is published in time slices of 50 ms, as in a run in real time. A subscriber
in another process reads and discards everything. The times are processor times of all threads of this process, the
smallest of several turns. The path of the library converts a Python object for each message. Run it where nothing else
uses the domain: `unshare -rn sh -c 'ip link set lo up; python benchmarks/bench_ros2.py'`.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct, types
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.topic import Topic

import navsense as ns
from navsense.core.readings import TimeSlice
from navsense.messages.cdr import encode
from navsense.messages.schemas import DEFINITIONS, parse_fields
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.info import make_recorded_run
from navsense.recordings.message_builder import MessageBuilder
from navsense.simulation.real_time import WALL_STEP
from navsense.streams.ros2.dds import PRIMITIVES, format_settings
from navsense.streams.ros2.naming import format_dds_topic

WORLD = Path(__file__).resolve().parents[1] / "examples" / "quadrotor.sdf"
DOMAIN, PORT, TURNS = 42, 7447, 5

DDS_READER = """
import sys, time
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from navsense.messages.schemas import DEFINITIONS
from navsense.streams.ros2.dds import MessageTypes, format_settings
from navsense.streams.ros2.naming import format_dds_topic
domain = Domain(1, format_settings(int(sys.argv[1]), "127.0.0.1"))
participant = DomainParticipant(1)
kind = MessageTypes(DEFINITIONS).describe("sensor_msgs/msg/Imu")
kind.deserialize = lambda data: type("Raw", (), {})()
kind.deserialize_key = bytes
topic = Topic(participant, format_dds_topic(sys.argv[2]), kind)
reader = DataReader(participant, topic, Qos(Policy.Reliability.Reliable(0), Policy.History.KeepAll))
print("subscribed", flush=True)
while True:
    reader.take(1000)
    time.sleep(0.01)
"""

ZENOH_READER = """
import sys, time
import zenoh
from navsense.streams.ros2.zenoh import make_settings
session = zenoh.open(make_settings("127.0.0.1:7447"))
subscriber = session.declare_subscriber(f"{sys.argv[1]}{sys.argv[2]}/*/*", lambda sample: None)
print("subscribed", flush=True)
time.sleep(3600)
"""

ROUTER = """
import time, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"router"')
config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:7447"]')
config.insert_json5("scouting/multicast/enabled", "false")
session = zenoh.open(config)
print("listening", flush=True)
time.sleep(3600)
"""


@contextmanager
def run_program(text: str, *arguments: str) -> Iterator[None]:
    """Run a program until the end of the block; it is ready when it has printed a line."""
    command = [sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def measure_encoding(builder: MessageBuilder, topic: str, slices: list[TimeSlice]) -> tuple[float, int, int]:
    """Return the processor time (s) of building and encoding the messages, their number and size (bytes)."""
    start, count, size = time.process_time(), 0, 0
    for time_slice in slices:
        for block in (block for block in builder.build_blocks(time_slice) if block.channel.topic == topic):
            rows = [row.tobytes() for row in encode(block.channel.encoder, block.stamp, block.arrays)]
            count, size = count + len(rows), len(rows[0])
    return time.process_time() - start, count, size


def measure_stream(url: str, reader: str, topic: str, run: ns.runner.run.Run, slices: list[TimeSlice]) -> float:
    """Return the processor time (s) of a stream, with building and encoding the messages."""
    with (
        ns.streams.open_publisher(url, make_recorded_run(run.session)) as publisher,
        run_program(reader, str(DOMAIN), topic),
    ):
        publisher.wait_for_subscriber()
        time.sleep(0.2)
        start = time.process_time()
        for time_slice in slices:
            publisher.write(time_slice)
            time.sleep(0.001)
        return time.process_time() - start


def make_typed_imu() -> tuple[Any, Any]:
    """Return the type of an IMU message as a class of the library, and an object of it."""

    def make(message_type: str) -> Any:
        if message_type in PRIMITIVES:
            return PRIMITIVES[message_type]
        fields = {}
        for field in parse_fields(DEFINITIONS[message_type]):
            kind = make(field.type)
            fields[field.name] = kind if field.length is None else types.array[kind, field.length]
        package, _, name = message_type.partition("/msg/")
        return make_idl_struct(f"{name}_", f"{package}.msg.dds_.{name}_", fields)

    kinds = {name: make(f"geometry_msgs/msg/{name}") for name in ("Vector3", "Quaternion")}
    header = make("std_msgs/msg/Header")(make("builtin_interfaces/msg/Time")(1, 2), "quadrotor::base_link::imu")
    vector, quaternion, zeros = kinds["Vector3"](1.0, 2.0, 3.0), kinds["Quaternion"](0.0, 0.0, 0.0, 1.0), [0.0] * 9
    kind = make("sensor_msgs/msg/Imu")
    return kind, kind(header, quaternion, zeros, vector, zeros, vector, zeros)


def measure_library(topic: str, count: int) -> float:
    """Return the processor time (s) of the typed path of Cyclone DDS."""
    kind, message = make_typed_imu()
    domain = Domain(2, format_settings(DOMAIN, "127.0.0.1"))
    participant = DomainParticipant(2)
    policies = (Policy.Reliability.Reliable(0), Policy.History.KeepLast(1000))
    writer = DataWriter(participant, Topic(participant, format_dds_topic(topic), kind), Qos(*policies))
    with run_program(DDS_READER, str(DOMAIN), topic):
        while not writer.get_matched_subscriptions():
            time.sleep(0.01)
        time.sleep(0.2)
        start = time.process_time()
        for first in range(0, count, 50):
            for _ in range(first, min(first + 50, count)):
                writer.write(message)
            time.sleep(0.001)
        spent = time.process_time() - start
    participant.__del__()
    domain.__del__()
    return spent


def main() -> None:
    """Print the times of a message."""
    duration = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    world = ns.load(WORLD)
    world = replace(world, sensors=tuple(sensor for sensor in world.sensors if sensor.name.endswith("::imu")))
    run = ns.simulate(world, duration)
    name = world.sensors[0].name
    slices = [
        replace(cut_time_slice({name: run[name]}, {}, None, start, start + WALL_STEP), truth={})
        for start in np.arange(0.0, duration, WALL_STEP).tolist()
    ]
    builder = MessageBuilder(replace(make_recorded_run(run.session), has_simulated_series=False))
    topic = builder.list_measured_channels()[0].topic
    encoding = library = math.inf
    urls = {f"ros2://?domain={DOMAIN}": DDS_READER, f"ros2+zenoh://:{PORT}?domain={DOMAIN}": ZENOH_READER}
    streams = dict.fromkeys(urls, math.inf)
    with run_program(ROUTER):
        for _ in range(TURNS):
            spent, count, size = measure_encoding(builder, topic, slices)
            encoding = min(encoding, spent)
            for url, reader in urls.items():
                streams[url] = min(streams[url], measure_stream(url, reader, topic, run, slices))
            library = min(library, measure_library(topic, count))
    scale = 1e6 / count
    print(f"{count} messages of {size} bytes in {len(slices)} time slices; us a message")
    print(f"  building and encoding                 {encoding * scale:7.2f}")
    for url, spent in streams.items():
        print(f"  {url:<30} beyond  {(spent - encoding) * scale:7.2f}")
    print(f"  typed write of Cyclone DDS            {library * scale:7.2f}")
    beyond = streams[next(iter(urls))] - encoding
    print(f"ratio of the typed write to ours on DDS {library / beyond:7.1f}")


if __name__ == "__main__":
    main()
