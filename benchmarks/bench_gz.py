"""The stream of Gazebo transport: processor time of a message beyond its encoding, and of decoding poses.

    python benchmarks/bench_gz.py [SECONDS]        simulated time; default 60

The IMU of examples/quadrotor.sdf at 1 kHz is published in time slices of 50 ms, as in a run in real time. A subscriber
in another process reads and discards everything. Each time slice is encoded alone, then published. The times are
processor times of the thread of the run. The goal is 5 us beyond encoding. The discovery stays on loopback; run it with
`unshare -rn` for a network of its own.

The poses are those of four entities in a message, of which two are used. The goal is 60 us a message.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from pathlib import Path

import navsense as ns
from navsense.core.pose import normalize
from navsense.messages.gz import encode_doubles, encode_int, encode_nested
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.gazebo import GZ, NumberedEncoder
from navsense.recordings.info import make_recorded_run
from navsense.simulation.real_time import WALL_STEP
from navsense.streams.gz.poses import Entity, EntityDecoder, Target

WORLD = Path(__file__).resolve().parents[1] / "examples" / "quadrotor.sdf"

GOAL = 5.0
"""Goal: time (us) of a message beyond its encoding."""

SUBSCRIBER = """
import sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.rcvhwm = 0
socket.connect(sys.argv[1])
socket.subscribe(sys.argv[2].encode())
count = 0
while socket.poll(5000):
    socket.recv_multipart()
    count += 1
print(count)
"""


DECODING_GOAL = 60.0
"""Goal: time (us) to decode a message with four poses."""


def encode_poses(k: int) -> bytes:
    """Return message k of four entities."""
    bodies = []
    for number, name in enumerate(("robot", "base_link", "arm", "other"), 8):
        quaternion = normalize((0.1 * k, 0.2, 0.3, 0.4))
        position = encode_doubles(2, (0.5 * k + 0.25, 1.5, -2.5))
        orientation = encode_doubles(2, (*quaternion[1:], quaternion[0]))
        body = encode_nested(2, name.encode()) + encode_int(3, number)
        bodies.append(body + encode_nested(4, position) + encode_nested(5, orientation))
    stamp = encode_nested(1, encode_int(1, 1000) + encode_int(2, k))
    return encode_nested(1, stamp) + b"".join(encode_nested(2, body) for body in bodies)


def measure_decoding(count: int = 20_000) -> None:
    """Print the time to decode a message, and check the goal."""
    messages = [encode_poses(k) for k in range(1, count + 1)]
    chain = (Entity("robot", 8), Entity("arm", 10))
    decoder = EntityDecoder(Target("robot", "arm"), chain, is_list=True)
    start = time.thread_time()
    states = [decoder.decode(data) for data in messages]
    decoding = 1e6 * (time.thread_time() - start) / count
    print(f"decoding   {decoding:6.2f} us a message of four poses; goal {DECODING_GOAL:g} us")
    assert None not in states
    assert decoding < DECODING_GOAL


def main(duration: float) -> None:
    """Print the times, and check the goal."""
    run = ns.simulate(ns.load(WORLD), duration)
    name = "quadrotor::base_link::imu"
    (sensor,) = (one for one in run.session.world.sensors if one.name == name)
    ends = [WALL_STEP * n for n in range(round(duration / WALL_STEP) + 1)]
    slices = [cut_time_slice(run, {}, None, start, end) for start, end in itertools.pairwise(ends)]
    recorded_run = make_recorded_run(run.session)
    with ns.streams.open_publisher("gz://?partition=bench&wait=20", recorded_run) as publisher:
        address = publisher.url.partition("?")[0].replace("gz://", "tcp://")
        topic = f"@/bench@{recorded_run.topics.get_sensor_topic(name, 'measured')}"
        command = [sys.executable, "-c", SUBSCRIBER, address, topic]
        subscriber = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        publisher.wait_for_subscriber()
        encoder, encoding, beyond, count = NumberedEncoder(GZ, sensor), [], [], 0
        for time_slice in slices:
            start = time.thread_time()
            messages = list(encoder.encode(time_slice.readings[name]))
            middle = time.thread_time()
            publisher.write(time_slice)
            end = time.thread_time()
            if messages:
                encoding.append(1e6 * (middle - start) / len(messages))
                beyond.append(1e6 * (end - 2.0 * middle + start) / len(messages))
            count += len(messages)
    received = int(subscriber.communicate()[0])
    print(f"{count} messages, {received} received")
    print(f"encoding   {statistics.median(encoding):6.2f} us a message (median of the time slices)")
    print(f"beyond it  {statistics.median(beyond):6.2f} us, mean {statistics.mean(beyond):.2f} us; goal {GOAL:g} us")
    assert received == count
    assert statistics.median(beyond) < GOAL


if __name__ == "__main__":
    measure_decoding()
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
