"""The cost of a live message of ROS 1 beyond its encoding, and beside a plain `socket.send` of each message.

    python benchmarks/bench_ros1.py

The quadrotor of the examples runs for 20 s. A process subscribes to all measured values, /clock and /tf, and
discards them. Times are processor times of all threads of the publisher, the smallest of several rounds:

- encoded: the messages of these topics are built and encoded, as for a bag
- published: `Publisher.write` of the same time slices
- plain send: one call of `socket.send` for each of these messages, as soon as it is encoded

The time slices have the length of a run in real time, and of one period of the IMU.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import navsense as ns
from navsense.core.readings import TimeSlice
from navsense.core.typing import ByteArray
from navsense.messages.cdr import encode
from navsense.messages.ros1 import Ros1Packing, make_ros1_packing
from navsense.messages.schemas import HUMBLE
from navsense.recordings.info import RecordedRun, make_recorded_run
from navsense.recordings.message_builder import MessageBuilder, OutputChannel
from navsense.runner.run import Run
from navsense.streams.ros1.publisher import Ros1Publisher
from navsense.streams.stream import StreamUrl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.streams.ros1_peers import RosMaster, pack_header, request_topic  # noqa: E402

WORLD = ROOT / "examples" / "quadrotor.sdf"
DURATION = 20.0
ROUNDS = 3

DISCARD = """
import selectors, socket, sys
selector = selectors.DefaultSelector()
for address in sys.argv[1:]:
    host, port, header = address.split(",")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(bytes.fromhex(header))
    selector.register(connection, selectors.EVENT_READ)
print("connected", flush=True)
while selector.get_map():
    for key, _ in selector.select():
        if not key.fileobj.recv(1 << 20):
            selector.unregister(key.fileobj)
"""
"""A program that connects to HOST,PORT, sends a header in hexadecimal, and discards what it receives."""


def start_discarding(addresses: list[tuple[str, int, bytes]]) -> subprocess.Popen[str]:
    """Return a process that is connected to all addresses."""
    arguments = [f"{host},{port},{header.hex()}" for host, port, header in addresses]
    process = subprocess.Popen([sys.executable, "-c", DISCARD, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "connected\n"
    return process


def measure(work: Callable[[], object]) -> float:
    """Return the processor time (s) of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


class BlockEncoder:
    """Encodes the messages of some topics."""

    def __init__(self, recorded_run: RecordedRun, topics: set[str]) -> None:
        """Store the topics."""
        self._builder, self._topics = MessageBuilder(replace(recorded_run, ros=HUMBLE)), topics
        self._packings: dict[OutputChannel, Ros1Packing] = {}

    def encode(self, time_slice: TimeSlice) -> list[ByteArray]:
        """Return the blocks of messages (n, size) of a time slice."""
        blocks = []
        for block in self._builder.build_blocks(time_slice):
            if block.channel.topic in self._topics and block.stamp.size:
                if block.channel not in self._packings:
                    self._packings[block.channel] = make_ros1_packing(block.channel.encoder)
                rows = encode(block.channel.encoder, block.stamp, block.arrays)
                blocks.append(self._packings[block.channel].pack(rows, 0))
        return blocks


def measure_slices(run: Run, length: float) -> tuple[int, float, float, float]:
    """Return the number of messages, and the processor times (s): encoded, published, plain send."""
    first, *slices = run.session.compute_slices(length)
    recorded_run, master = make_recorded_run(run.session), RosMaster()
    url = StreamUrl(f"ros1://127.0.0.1:{master.port}?wait=0", "ros1", port=master.port, options={"wait": "0"})
    publisher = Ros1Publisher(url, recorded_run)
    topics = set(master.list_topics())
    addresses = []
    for topic in topics:
        header = pack_header({"callerid": "/bench", "topic": topic, "md5sum": "*", "type": "*"})
        addresses.append((*request_topic(master.find_node(topic), topic), header))
    subscriber = start_discarding(addresses)
    publisher.write(first)  # registers the other topics
    while publisher.subscriber_count < len(topics) or "/truth/quadrotor/accel" not in master.list_topics():
        time.sleep(0.01)
    encoder = BlockEncoder(recorded_run, topics)
    encoder.encode(first)

    def publish() -> None:
        for time_slice in slices:
            publisher.write(time_slice)

    def send() -> None:
        for time_slice in slices:
            for block in encoder.encode(time_slice):
                for row in block:
                    connection.sendall(row)

    encoded = measure(lambda: [encoder.encode(time_slice) for time_slice in slices])
    published = measure(publish)
    publisher.close()
    subscriber.wait()
    master.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        subscriber = start_discarding([(*listener.getsockname(), b"")])
        connection = listener.accept()[0]
        with connection:
            plain = measure(send) - encoded
        subscriber.wait()
    count = sum(block.shape[0] for time_slice in slices for block in encoder.encode(time_slice))
    return count, encoded, published, plain


def main() -> None:
    """Print the table."""
    run = ns.simulate(ns.load(WORLD), DURATION, seed=1, epoch=1_700_000_000)
    print("Processor time of a message (us).")
    print("    slice messages   encoded  published   beyond  plain send   ratio")
    for length in (0.05, 0.001):
        rounds = [measure_slices(run, length) for _ in range(ROUNDS)]
        count = rounds[0][0]
        encoded, published, plain = (1e6 * min(seconds) / count for seconds in list(zip(*rounds, strict=True))[1:])
        beyond = published - encoded
        print(
            f"{1e3 * length:6g} ms {count:8d} {encoded:9.2f} {published:10.2f} {beyond:8.2f} {plain:11.2f} "
            f"{beyond / plain:7.2f}"
        )


if __name__ == "__main__":
    main()
