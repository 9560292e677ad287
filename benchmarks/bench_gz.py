"""Gazebo transport: processor time of a message beyond its encoding and of decoding poses, and the latency of a state.

    python benchmarks/bench_gz.py [SECONDS]        simulated time; default 60

The IMU of examples/quadrotor.sdf at 1 kHz is published in time slices of 50 ms, as in a run in real time. A subscriber
in another process reads and discards everything. Each time slice is encoded alone, then published. The times are
processor times of the thread of the run. The goal is 5 us beyond encoding. The discovery stays on loopback; run it with
`unshare -rn` for a network of its own.

The poses are those of four entities in a message, of which two are used. The goal is 60 us a message.

The latency is that of such messages from another process, at 1 kHz for 10 s: from the instant before a message is sent
until `receive` returns its state.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import navsense as ns
from navsense.core.pose import normalize
from navsense.messages.gz import encode_doubles, encode_int, encode_nested
from navsense.motion.base import LogContext
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


PUBLISHER = """
import sys, time, zmq
sys.path.insert(0, sys.argv[1])
from tests.streams.gz_peer import Simulator
from benchmarks.bench_gz import encode_poses
simulator = Simulator("@/bench@/model/robot/pose")
simulator.wait_for_subscriber()
start = time.monotonic()
for k in range(int(sys.argv[2])):
    time.sleep(max(start + 1e-3 * k - time.monotonic(), 0.0))
    simulator.publish(encode_poses(k, time.monotonic_ns()))
sys.stdin.readline()
simulator.close()
"""


DECODING_GOAL = 60.0
"""Goal: time (us) to decode a message with four poses."""


def encode_poses(k: int, stamp: int = 0) -> bytes:
    """Return message k of four entities, with a stamp (ns)."""
    bodies = []
    for number, name in enumerate(("robot", "base_link", "arm", "other"), 8):
        quaternion = normalize((0.1 * k, 0.2, 0.3, 0.4))
        position = encode_doubles(2, (0.5 * k + 0.25, 1.5, -2.5))
        orientation = encode_doubles(2, (*quaternion[1:], quaternion[0]))
        body = encode_nested(2, name.encode()) + encode_int(3, number)
        bodies.append(body + encode_nested(4, position) + encode_nested(5, orientation))
    seconds, nanoseconds = divmod(stamp, 10**9)
    header = encode_nested(1, encode_int(1, seconds) + encode_int(2, nanoseconds))
    return encode_nested(1, header) + b"".join(encode_nested(2, body) for body in bodies)


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


def measure_latency(count: int = 10_000) -> None:
    """Print the latency of a state."""
    frame = ns.streams.DrivenFrame("robot::base_link", LogContext(model="robot"))
    command = [sys.executable, "-c", PUBLISHER, str(WORLD.parents[1]), str(count)]
    latencies: list[float] = []
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, cwd=WORLD.parents[1]) as publisher,
        ns.streams.open_subscriber("gz://?partition=bench&topic=/model/robot/pose", frame) as subscriber,
    ):
        while len(latencies) < count and (states := subscriber.receive(5.0)):
            now = time.monotonic_ns()
            latencies += [1e-6 * (now - one.stamp) for one in states]
        publisher.communicate(b"\n")
    p50, p99 = np.percentile(latencies, (50.0, 99.0))
    print(f"latency    {p50:6.2f} ms median, {p99:.2f} ms p99 of {len(latencies)} states at 1 kHz")


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
    measure_latency()
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
