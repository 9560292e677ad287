"""The Foxglove stream: processor time of a message beyond its encoding, compared to the server of foxglove-sdk.

    python benchmarks/bench_foxglove.py [SECONDS]        simulated time; default 60

The IMU of examples/quadrotor.sdf at 1 kHz is published in time slices of 50 ms, as in a run in real time. A client in
another process reads and discards everything. The times are processor times of all threads of this process, the
smallest of several turns, in which the servers alternate. The goal is 5 us beyond encoding.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import foxglove as sdk
import numpy as np

import navsense as ns
from navsense.core.errors import Where
from navsense.core.readings import TimeSlice
from navsense.messages.cdr import encode
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.info import make_recorded_run
from navsense.recordings.message_builder import MessageBuilder
from navsense.simulation.real_time import WALL_STEP
from navsense.streams.foxglove import FoxglovePublisher
from navsense.streams.foxglove_server import FoxgloveServer, PlaybackState, PlaybackStatus

WORLD = Path(__file__).resolve().parents[1] / "examples" / "quadrotor.sdf"

GOAL = 5.0
"""Goal: time (us) of a message beyond its encoding."""

TURNS = 5

CLIENT = """
import json, sys
from websockets.sync.client import connect
with connect(sys.argv[1], subprotocols=["foxglove.sdk.v1"], max_size=None) as client:
    channels = []
    while not channels:
        message = client.recv()
        channels = json.loads(message).get("channels", []) if isinstance(message, str) else []
    client.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": channels[0]["id"]}]}))
    print("subscribed", flush=True)
    while client.socket.recv(1 << 20):
        pass
"""


class Server(Protocol):
    """A server with one channel."""

    port: int

    def send(self, messages: list[tuple[int, bytes]], end: int) -> None:
        """Send messages (log time in ns, bytes), then a time (ns)."""
        ...

    def close(self) -> None:
        """Stop the server."""
        ...


class NoControls:
    """Controls of a server without parameters."""

    def list_parameters(self) -> dict[str, Any]:
        """Return no parameter."""
        return {}

    def set_parameter(self, name: str, value: object) -> bool:
        """Set nothing."""
        return False

    def control_playback(self, *, is_paused: bool, speed: float) -> PlaybackState:
        """Change nothing."""
        return PlaybackState(PlaybackStatus.PLAYING, 0, 1.0)


class OurServer:
    """The server of navsense."""

    def __init__(self, topic: str, schema_name: str, schema: str) -> None:
        """Start the server."""
        self._server = FoxgloveServer("navsense", "127.0.0.1", 0, Where("foxglove://"), NoControls(), None)
        self._channel, self.port = self._server.add_channel(topic, schema_name, schema), self._server.port

    def send(self, messages: list[tuple[int, bytes]], end: int) -> None:
        """Send messages."""
        self._server.send([(self._channel.id, log_time, data) for log_time, data in messages], end)

    def close(self) -> None:
        """Stop the server."""
        self._server.close()


class SdkServer:
    """The server of foxglove-sdk."""

    def __init__(self, topic: str, schema_name: str, schema: str) -> None:
        """Start the server."""
        self._context = context = sdk.Context()  # channels end with it
        self._server = sdk.start_server(
            host="127.0.0.1", port=0, capabilities=[sdk.websocket.Capability.Time], context=context
        )
        definition = sdk.Schema(name=schema_name, encoding="ros2msg", data=schema.encode())
        self._channel = sdk.Channel(topic, schema=definition, message_encoding="cdr", context=context)
        self.port = self._server.port

    def send(self, messages: list[tuple[int, bytes]], end: int) -> None:
        """Send messages."""
        for log_time, data in messages:
            self._channel.log(data, log_time=log_time)
        self._server.broadcast_time(end)

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()


@contextmanager
def connect_client(port: int) -> Iterator[None]:
    """Connect a client in another process, which discards what it reads."""
    command = [sys.executable, "-c", CLIENT, f"ws://127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()
        yield
        client.kill()


def measure_server(server: Server, slices: list[list[tuple[int, bytes]]]) -> float:
    """Return the processor time (s) of sending encoded messages."""
    with closing(server), connect_client(server.port):
        start = time.process_time()
        for messages in slices:
            server.send(messages, messages[-1][0])
            time.sleep(0.001)  # the threads of the servers send meanwhile, as in a run in real time
        time.sleep(0.1)
        return time.process_time() - start


def measure_encoding(
    builder: MessageBuilder, topic: str, slices: list[TimeSlice]
) -> tuple[float, list[list[tuple[int, bytes]]]]:
    """Return the processor time (s) of building and encoding the messages, and the messages."""
    start, encoded = time.process_time(), []
    for time_slice in slices:
        messages: list[tuple[int, bytes]] = []
        for block in (block for block in builder.build_blocks(time_slice) if block.channel.topic == topic):
            rows = encode(block.channel.encoder, block.stamp, block.arrays)
            messages += zip(block.log_time.tolist(), [row.tobytes() for row in rows], strict=True)
        encoded.append(messages)
    return time.process_time() - start, encoded


def measure_publisher(run: ns.runner.run.Run, slices: list[TimeSlice]) -> float:
    """Return the processor time (s) of the stream, with building and encoding the messages."""
    publisher = ns.streams.open_publisher("foxglove://127.0.0.1:0?wait=0", make_recorded_run(run.session))
    assert isinstance(publisher, FoxglovePublisher)
    with publisher, connect_client(int(publisher.url.partition("?")[0].rpartition(":")[2])):
        start = time.process_time()
        for time_slice in slices:
            publisher.write(time_slice)
            time.sleep(0.001)
        time.sleep(0.1)
        return time.process_time() - start


def main() -> None:
    """Print the times of a message."""
    duration = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    world = ns.load(WORLD)
    world = replace(world, sensors=tuple(sensor for sensor in world.sensors if sensor.name.endswith("::imu")))
    run = ns.simulate(world, duration)
    starts = np.arange(0.0, duration, WALL_STEP).tolist()
    name = world.sensors[0].name
    slices = [
        replace(cut_time_slice({name: run[name]}, {}, None, start, start + WALL_STEP), truth={}) for start in starts
    ]
    builder = MessageBuilder(replace(make_recorded_run(run.session), has_simulated_series=False))
    channel = builder.list_measured_channels()[0]
    arguments = channel.topic, channel.encoder.type, channel.encoder.schema
    encoding = stream = math.inf
    servers = {"navsense": math.inf, "foxglove-sdk": math.inf}
    for _ in range(TURNS):
        spent, encoded = measure_encoding(builder, channel.topic, slices)
        encoding, stream = min(encoding, spent), min(stream, measure_publisher(run, slices))
        for label, kind in (("navsense", OurServer), ("foxglove-sdk", SdkServer)):
            servers[label] = min(servers[label], measure_server(kind(*arguments), encoded))
    count = sum(map(len, encoded))
    scale = 1e6 / count
    print(f"{count} messages of {len(encoded[0][0][1])} bytes in {len(slices)} time slices; us a message")
    print(f"  building and encoding        {encoding * scale:6.2f}")
    print(f"  complete stream              {stream * scale:6.2f}")
    print(f"  stream beyond encoding       {(stream - encoding) * scale:6.2f}   (goal {GOAL})")
    for label, spent in servers.items():
        print(f"  server of {label:<18} {spent * scale:6.2f}")
    print(f"ratio of the servers {servers['navsense'] / servers['foxglove-sdk']:.2f}")


if __name__ == "__main__":
    main()
