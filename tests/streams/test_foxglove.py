"""The Foxglove stream: its server answers as that of foxglove-sdk, and an independent decoder reads its messages."""

from __future__ import annotations

import importlib.util
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mcap_ros2.decoder import DecoderFactory
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

import navsense as ns
from navsense import streams
from navsense.clock import Latency
from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.environment.base import UniformField
from navsense.messages import cdr
from navsense.recordings.dataset import cut_time_slice
from navsense.recordings.info import make_recorded_run
from navsense.recordings.message_builder import MessageBuilder
from navsense.runner.run import Run
from navsense.sensors import Dvl, Imu
from navsense.simulation.run_controls import RunControls, compute_controlled_slices
from navsense.streams import foxglove, foxglove_server
from navsense.streams.foxglove import FoxglovePublisher
from navsense.streams.foxglove_server import FoxgloveServer, PlaybackState, PlaybackStatus
from navsense.testing import example_world
from tests.streams.foxglove_client import FoxgloveClient, Message

pytestmark = [pytest.mark.compiled, pytest.mark.timeout(120), pytest.mark.requirement("LIV-5")]

SCHEMA = ("test_msgs/msg/Pair", "int32 first\nint32 second\n")


@pytest.fixture(scope="module")
def run() -> Run:
    world = example_world(("imu", Imu()), ("dvl", Dvl.example_spec()))
    imu = replace(world.sensors[0], latency=Latency(0.03, 0.01))
    return ns.simulate(replace(world, sensors=(imu, *world.sensors[1:])), 2.0, seed=5, epoch=1_800_000_000)


def open_publisher(run: Run) -> FoxglovePublisher:
    """Return a publisher that does not wait for a client."""
    publisher = streams.open_publisher("foxglove://:0?wait=0", make_recorded_run(run.session))
    assert isinstance(publisher, FoxglovePublisher)
    return publisher


def cut(run: Run, length: float) -> Iterator[TimeSlice]:
    """Yield time slices of a run with a length (s)."""
    for start in np.arange(0.0, run.session.duration, length).tolist():
        yield cut_time_slice(run.readings, run.truth, run.current, start, start + length)


class Collector:
    """A client that collects its messages in a thread, with the number of times that came before each."""

    def __init__(self, url: str, ending: str = "") -> None:
        self.client = FoxgloveClient(url)
        self.client.subscribe([topic for topic in self.client.topics if topic.endswith(ending)])
        self.messages: list[Message] = []
        self.thread = threading.Thread(target=lambda: self.messages.extend(self.client))
        self.thread.start()

    def finish(self) -> list[Message]:
        """Return all messages, after the server has closed the connection."""
        self.thread.join(60.0)
        assert not self.thread.is_alive()
        return self.messages


class FixedControls:
    """Controls of a server without a run."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"a": 1.5, "b": [1.0, 2.0], "c": "x", "d": True, "e": 3}

    def list_parameters(self) -> dict[str, Any]:
        return self.values

    def set_parameter(self, name: str, value: object) -> bool:
        self.values[name] = value
        return True

    def control_playback(self, *, is_paused: bool, speed: float) -> PlaybackState:
        status = PlaybackStatus.PAUSED if is_paused else PlaybackStatus.PLAYING
        return PlaybackState(status, 123_456_789, speed)


class OurServer:
    """The server of navsense with one channel."""

    def __init__(self) -> None:
        where = Where("foxglove://127.0.0.1:0")
        self.server = FoxgloveServer("server", "127.0.0.1", 0, where, FixedControls(), (1_000, 5 * 10**9))
        self.port = self.server.port
        self.channel = self.server.add_channel("/pair", *SCHEMA)

    def send(self, data: bytes, log_time: int) -> None:
        self.server.send([(self.channel.id, log_time, data)], log_time)

    def end_playback(self) -> None:
        self.server.send_playback(PlaybackState(PlaybackStatus.ENDED, 5, 1.0))

    def close(self) -> None:
        self.server.close()


class SdkServer:
    """The server of foxglove-sdk with the same channel, parameters and answers."""

    def __init__(self) -> None:
        sdk = pytest.importorskip("foxglove", reason="needs foxglove-sdk")
        websocket = sdk.websocket
        controls = FixedControls()

        def list_parameters(_client: object, names: list[str], _request: object = None) -> list[Any]:
            def make(name: str, value: Any) -> Any:
                kinds = {float: websocket.ParameterType.Float64, list: websocket.ParameterType.Float64Array}
                return sdk.Parameter(name, value=value, type=kinds.get(type(value)))

            return [make(name, value) for name, value in controls.values.items() if not names or name in names]

        def set_parameters(_client: object, parameters: list[Any], _request: object = None) -> list[Any]:
            for parameter in parameters:
                controls.set_parameter(parameter.name, parameter.get_value())
            return list_parameters(None, [parameter.name for parameter in parameters])

        def control(request: Any) -> Any:
            is_paused = request.playback_command == websocket.PlaybackCommand.Pause
            return websocket.PlaybackState(
                status=websocket.PlaybackStatus.Paused if is_paused else websocket.PlaybackStatus.Playing,
                current_time=123_456_789,
                playback_speed=request.playback_speed,
                did_seek=False,
                request_id=request.request_id,
            )

        unused = dict.fromkeys(
            ("on_subscribe", "on_unsubscribe", "on_parameters_subscribe", "on_parameters_unsubscribe"),
            lambda *_: None,
        )
        listener = SimpleNamespace(
            on_get_parameters=list_parameters,
            on_set_parameters=set_parameters,
            on_playback_control_request=control,
            **unused,
        )
        self.websocket, self.context = websocket, sdk.Context()
        self.server = sdk.start_server(
            name="server",
            host="127.0.0.1",
            port=0,
            capabilities=[websocket.Capability.Time, websocket.Capability.Parameters],
            server_listener=listener,
            supported_encodings=["cdr"],
            context=self.context,
            playback_time_range=(1_000, 5 * 10**9),
        )
        self.port = self.server.port
        schema = sdk.Schema(name=SCHEMA[0], encoding="ros2msg", data=SCHEMA[1].encode())
        self.channel = sdk.Channel("/pair", schema=schema, message_encoding="cdr", context=self.context)

    def send(self, data: bytes, log_time: int) -> None:
        self.channel.log(data, log_time=log_time)
        self.server.broadcast_time(log_time)

    def end_playback(self) -> None:
        self.server.broadcast_playback_state(
            self.websocket.PlaybackState(
                status=self.websocket.PlaybackStatus.Ended,
                current_time=5,
                playback_speed=1.0,
                did_seek=False,
                request_id=None,
            )
        )

    def close(self) -> None:
        self.server.stop()


def exchange(server: OurServer | SdkServer) -> list[Any]:
    """Return what a server sends to a client that uses each operation."""
    with connect(f"ws://127.0.0.1:{server.port}", subprotocols=[Subprotocol("foxglove.sdk.v1")]) as client:

        def receive() -> Any:
            data = client.recv(timeout=10.0)
            return json.loads(data) if isinstance(data, str) else data

        received: list[Any] = [client.subprotocol, receive(), receive()]
        (channel,) = received[2]["channels"]
        requests: list[Any] = [
            {"op": "getParameters", "parameterNames": [], "id": "all"},
            {"op": "getParameters", "parameterNames": ["c", "e"]},
            {"op": "setParameters", "parameters": [{"name": "a", "value": 2.5}], "id": "new"},
            {"op": "subscribe", "subscriptions": [{"id": 8, "channelId": 999}]},
            "rubbish",
            {"op": "unknown"},
            b"\x09",
            struct.pack("<BBfBQI", 3, 0, 2.5, 0, 0, 3) + b"abc",
            struct.pack("<BBfBQI", 3, 1, 0.5, 0, 0, 0),
        ]
        for request in requests:
            client.send(json.dumps(request) if isinstance(request, dict) else request)
            received.append(receive())
        client.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": 7, "channelId": channel["id"]}]}))
        client.send(json.dumps({"op": "getParameters", "parameterNames": ["c"], "id": "subscribed"}))
        received.append(receive())
        server.send(b"hello", 77)
        received += sorted((receive(), receive()))  # the SDK has a queue for each of them
        client.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [7]}))
        client.send(json.dumps({"op": "getParameters", "parameterNames": ["c"], "id": "unsubscribed"}))
        received.append(receive())
        server.send(b"nobody", 78)
        received.append(receive())
        server.end_playback()
        received.append(receive())
    return received


def test_server_answers_as_that_of_foxglove_sdk() -> None:
    """Their texts of errors differ. The SDK also names its version, and the encodings of clients that publish."""
    answers = []
    for kind in (OurServer, SdkServer):
        with closing(kind()) as server:
            answers.append(exchange(server))
    ours, reference = answers
    for one in (ours[1], reference[1]):
        assert one.pop("sessionId").isdigit()
        one["capabilities"].sort()
    reference[1].pop("metadata")
    reference[1].pop("supportedEncodings")
    for answer in (ours, reference):
        for one in answer:
            if isinstance(one, dict) and one["op"] == "status":
                assert one.pop("message")
    assert len(ours) == 18
    assert ours == reference


def test_messages_decode_to_the_readings(run: Run) -> None:
    """A decoder that is not of navsense reads the messages with the definitions of the server."""
    publisher = open_publisher(run)
    collector = Collector(publisher.url, "/imu")
    for time_slice in run.slices():
        publisher.write(time_slice)
    publisher.close()
    messages = collector.finish()
    topic = messages[0].topic
    channel = collector.client.channels[topic]
    assert channel["encoding"] == "cdr"
    schema = SimpleNamespace(id=1, name=channel["schemaName"], encoding="ros2msg", data=channel["schema"].encode())
    decode = DecoderFactory().decoder_for("cdr", schema)  # type: ignore[arg-type]
    assert decode is not None
    decoded = [decode(message.data) for message in messages]
    rates = [[one.angular_velocity.x, one.angular_velocity.y, one.angular_velocity.z] for one in decoded]
    reading = run["imu"]
    assert len(decoded) == int(reading.emitted.sum()) == 400
    assert np.array_equal(rates, reading["angular_velocity"][reading.emitted])


def test_messages_arrive_in_the_order_and_at_the_time_of_their_arrival(run: Run) -> None:
    """Each message comes before the first time of the server that is later than its arrival."""
    publisher = open_publisher(run)
    client = FoxgloveClient(publisher.url)
    client.subscribe(client.topics)
    for time_slice in cut(run, 0.05):
        publisher.write(time_slice)
    closer = threading.Thread(target=publisher.close)
    closer.start()
    arrivals, delays = [], []
    for message in client:
        arrivals.append(message.log_time)
        delays.append(message.log_time - (client.times[-1] if client.times else 0))
    closer.join(60.0)
    assert arrivals == sorted(arrivals)
    assert len(arrivals) > 400
    assert min(delays) >= 0
    assert client.times == sorted(client.times)
    assert client.times[-1] == (1_800_000_000 + 2) * 10**9


def test_channel_without_subscribers_is_not_encoded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(encoder: Any, *args: Any) -> Any:
        encoded.append(encoder.type)
        return cdr.encode(encoder, *args)

    monkeypatch.setattr(foxglove, "encode", encode)
    with open_publisher(run) as publisher:
        encoded.clear()  # of /tf_static
        slices = list(cut(run, 0.5))
        publisher.write(slices[0])
        assert not encoded
        collector = Collector(publisher.url, "/imu")
        publisher.write(slices[1])
    assert collector.finish()
    assert encoded == ["sensor_msgs/msg/Imu"]


def test_late_subscriber_gets_the_latched_transforms(run: Run) -> None:
    with open_publisher(run) as publisher:
        for time_slice in run.slices():
            publisher.write(time_slice)
        collector = Collector(publisher.url, "/tf_static")
    (message,) = collector.finish()
    assert message.log_time == 1_800_000_000 * 10**9
    assert b"base" in message.data


def test_clients_pause_the_run_and_change_its_speed(run: Run) -> None:
    """At speed 20, 60 s of simulated time take 3 s. A client pauses the run for 0.5 s."""
    port = find_free_port()
    url = f"foxglove://127.0.0.1:{port}?wait=20"
    results: list[Any] = []
    recording = threading.Thread(target=lambda: results.append(ns.record(run.session.world, url, 60.0, truth_rate=1.0)))
    recording.start()
    try:
        client = connect_when_served(url)
        client.send("subscribeParameterUpdates", parameterNames=[])
        while not (
            topics := [topic for topic in client.topics if topic.endswith("/imu")]
        ):  # not all are advertised yet
            client.send("getParameters", parameterNames=["seed"], id="wait")
            client.receive_reply("wait")
        client.subscribe(topics)
        count = 0
        while "'name': 'speed'" not in str(client.replies):  # the run starts after the first subscription
            client.send("getParameters", parameterNames=["speed"], id="start")
            count += client.receive_reply("start")
        client.send("setParameters", parameters=[{"name": "speed", "value": 20}, {"name": "speed", "value": "x"}])
        client.send("setParameters", parameters=[{"name": "paused", "value": True}])
        client.send("getParameters", parameterNames=["speed", "paused", "seed"], id="pause")
        count += client.receive_reply("pause")
        last, change = client.times[-1:], time.monotonic()
        while time.monotonic() - change < 0.4:  # 8 s of simulated time at speed 20
            client.send("getParameters", parameterNames=["seed"], id="wait")
            count += client.receive_reply("wait")
            if client.times[-1:] != last:
                last, change = client.times[-1:], time.monotonic()
        assert not last or last[0] < 50e9
        values = client.replies["parameterValues"]
        (reply,) = [value for value in values if value.get("id") == "pause"]
        expected = {"speed": 20.0, "paused": True, "seed": 0}
        assert {one["name"]: one["value"] for one in reply["parameters"]} == expected
        client.control_playback(is_paused=False, speed=20.0)
        count += sum(1 for _ in client)
    finally:
        recording.join(60.0)
    assert not recording.is_alive()
    assert count == results[0].samples["robot::arm::imu"] == 12_000
    states = [struct.unpack("<BBQfBI", state) for state in client.states]
    assert [(state[1], state[3]) for state in states if state[1] == PlaybackStatus.PAUSED][-1] == (1, 20.0)
    assert states[-1][1] == PlaybackStatus.ENDED
    changed = [reply for reply in client.replies["parameterValues"] if "id" not in reply]
    sensors = [sensor.name for sensor in run.session.world.sensors]
    expected_names = {"speed", "paused", *(f"{name}.{one}" for name in sensors for one in ("is_on", "rate"))}
    assert {one["name"] for reply in changed for one in reply["parameters"]} == expected_names


@pytest.mark.requirement("LIV-8")
def test_clients_get_the_changes_of_others(run: Run) -> None:
    """Those of another stream with the time slice in which they act, those of a client at once; each one time."""
    session = run.session
    controls = RunControls(session)
    slices = compute_controlled_slices(session, controls, longest=0.05)

    def get_updates(client: FoxgloveClient, name: str) -> list[dict[str, Any]]:
        """Return the parameters that the client has got since the last call, without those that it asked for."""
        client.send("getParameters", parameterNames=["seed"], id=name)
        client.receive_reply(name)
        updates = [reply["parameters"] for reply in client.replies.pop("parameterValues") if "id" not in reply]
        return [{one["name"]: one["value"] for one in parameters} for parameters in updates]

    with streams.open_publisher("foxglove://:0?wait=0", make_recorded_run(session)) as publisher:
        client, other = FoxgloveClient(publisher.url), FoxgloveClient(publisher.url)
        with closing(client), closing(other):
            client.send("subscribeParameterUpdates", parameterNames=[])
            assert get_updates(client, "listening") == []
            publisher.attach_controls(controls)
            (first,) = get_updates(client, "attached")
            assert first == {f"robot::arm::{one}.is_on": True for one in ("imu", "dvl")} | {
                f"robot::arm::{one}.rate": session.world.sensor(one).rate for one in ("imu", "dvl")
            }
            controls.switch("dvl", on=False)
            publisher.write(next(slices))
            assert get_updates(client, "switched") == [{"robot::arm::dvl.is_on": False}]
            other.send("setParameters", parameters=[{"name": "robot::arm::imu.rate", "value": 20}], id="set")
            other.receive_reply("set")
            assert get_updates(client, "set") == [{"robot::arm::imu.rate": 20.0}]
            publisher.write(next(slices))
            assert get_updates(client, "acts") == []


@pytest.mark.requirement("LIV-8")
def test_clients_switch_sensors_and_set_the_current(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """By parameters, which show the new values at once. An invalid value is a warning."""
    current = UniformField((0.3, 0.0, 0.0))
    world = replace(run.session.world, environment=replace(run.session.world.environment, current=current))
    session = ns.simulate(world, 0.1, seed=5).session
    controls = RunControls(session)
    with streams.open_publisher("foxglove://:0?wait=0", make_recorded_run(session)) as publisher:
        publisher.attach_controls(controls)
        client = FoxgloveClient(publisher.url)
        with closing(client):
            values = {
                "robot::arm::imu.is_on": False,
                "robot::arm::imu.rate": 20,
                "robot::arm::dvl.is_on": "no",
                "robot::arm::dvl.rate": 1e6,
                "current.speed.mean": 0.5,
                "current.horizontal_angle.mean": True,
            }
            parameters = [{"name": name, "value": value} for name, value in values.items()]
            client.send("setParameters", parameters=parameters, id="set")
            client.receive_reply("set")
            reply = client.replies["parameterValues"][-1]
    rate = world.sensor("dvl").rate
    assert {one["name"]: one["value"] for one in reply["parameters"]} == {
        "robot::arm::imu.is_on": False,
        "robot::arm::imu.rate": 20.0,
        "robot::arm::dvl.is_on": True,
        "robot::arm::dvl.rate": rate,
        "current.speed.mean": 0.5,
        "current.horizontal_angle.mean": 0.0,
    }
    changes = [(change.name, change.property, change.value) for change in controls.take(1.0)]
    assert changes == [
        ("robot::arm::imu", "on", False),
        ("robot::arm::imu", "rate", 20.0),
        ("current", "speed.mean", 0.5),
    ]
    assert "parameter robot::arm::dvl.is_on: value: 'no'; must be true or false" in caplog.text
    assert f"must be above 0 and at most {rate:g}" in caplog.text


def find_free_port() -> int:
    """Return a port that no program uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connect_when_served(url: str) -> FoxgloveClient:
    """Return a client of a server that is about to start."""
    end = time.monotonic() + 20.0
    while True:
        try:
            return FoxgloveClient(url)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_client_that_reads_too_slowly_loses_messages_which_are_counted(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(foxglove_server, "MAX_QUEUE_BYTES", 1_000_000)
    monkeypatch.setattr(foxglove_server, "STALL_TIMEOUT", 0.2)
    world = run.session.world
    long_run = ns.simulate(world, 200.0, seed=5, truth_rate=1.0)
    publisher = open_publisher(long_run)
    stalled = make_stalled_client(publisher)
    address = ":".join(map(str, stalled.getsockname()))
    collector = Collector(publisher.url, "/imu")
    with caplog.at_level(logging.WARNING):
        for time_slice in cut(long_run, 1.0):
            publisher.write(time_slice)
            while not collector.client.times or collector.client.times[-1] < 1e9 * time_slice.end:
                time.sleep(0.001)  # the other client reads everything
        publisher.close()
    stalled.close()
    expected = int(long_run["imu"].emitted.sum())
    assert len(collector.finish()) == expected == 40_000
    texts = [record.getMessage() for record in caplog.records]
    assert sum(f"client {address} reads too slowly and loses messages" in text for text in texts) == 1
    assert sum(f"client {address} did not receive all messages" in text for text in texts) == 1
    (count,) = [int(text.split()[1]) for text in texts if "dropped, because clients read too slowly" in text]
    assert 10_000 < count < expected  # the rest is in the queue, and in the buffers of the socket


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: foxglove.websocket.v1\r\n\r\n"
)


def make_stalled_client(publisher: FoxglovePublisher) -> socket.socket:
    """Return the socket of a client that subscribes to the IMU and then reads nothing."""
    host, port = "127.0.0.1", int(publisher.url.partition("?")[0].rpartition(":")[2])
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect((host, port))
    plain.sendall(HANDSHAKE)
    request = json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 1}]}).encode()
    plain.sendall(bytes((0x81, 0x80 | len(request), 0, 0, 0, 0)) + request)
    end = time.monotonic() + 20.0
    while publisher.subscriber_count < 1:
        assert time.monotonic() < end
        time.sleep(0.005)
    return plain


GARBAGE = {
    "bytes": b"\x00\xff" * 1000,
    "no upgrade": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "half a handshake": b"GET / HTTP/1.1\r\nUpgr",
    "other protocol": HANDSHAKE.replace(b"foxglove.websocket.v1", b"other.v1"),
    "nothing": b"",
}

REQUESTS: dict[str, Any] = {
    "no object": "[1, 2]",
    "no operation": "{}",
    "null": '{"op": "subscribe", "subscriptions": null}',
    "no fields": '{"op": "subscribe", "subscriptions": [{}]}',
    "huge number": '{"op": "subscribe", "subscriptions": [{"id": 1e400, "channelId": 1}]}',
    "id too large": '{"op": "subscribe", "subscriptions": [{"id": 4294967296, "channelId": 1}]}',
    "unknown subscription": '{"op": "unsubscribe", "subscriptionIds": [77]}',
    "deep": "[" * 100_000,
    "empty": b"",
    "half a request": struct.pack("<BB", 3, 0),
    "no number": struct.pack("<BBfBQI", 3, 0, float("nan"), 0, 0, 2**31) + b"x",
}


@pytest.mark.parametrize("name", [*GARBAGE, *REQUESTS])
def test_garbage_of_a_client_does_not_affect_others(run: Run, name: str) -> None:
    publisher = open_publisher(run)
    collector = Collector(publisher.url, "/dvl")
    port = int(publisher.url.partition("?")[0].rpartition(":")[2])
    slices = cut(run, 0.5)
    publisher.write(next(slices))
    with socket.create_connection(("127.0.0.1", port)) as plain, connect_plainly(port) as client:
        plain.sendall(GARBAGE.get(name, b""))
        if name in REQUESTS:
            client.send(REQUESTS[name])
            for _ in range(100):
                answer = client.recv(timeout=10.0)
                if "invalid request" in str(answer) or (name == "no number" and answer[:1] == b"\x05"):
                    break
            else:
                raise AssertionError(answer)
        for time_slice in slices:
            publisher.write(time_slice)
        publisher.close()
    assert len(collector.finish()) == int(run["dvl"].emitted.sum()) > 10


def connect_plainly(port: int) -> ClientConnection:
    """Return a connection without subscriptions."""
    return connect(f"ws://127.0.0.1:{port}", subprotocols=[Subprotocol("foxglove.sdk.v1")])


def test_too_large_request_disconnects_the_client_only(run: Run) -> None:
    publisher = open_publisher(run)
    collector = Collector(publisher.url, "/dvl")
    port = int(publisher.url.partition("?")[0].rpartition(":")[2])
    with connect_plainly(port) as client:
        client.send("x" * (foxglove_server.MAX_REQUEST_BYTES + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            receive_all(client)
    for time_slice in run.slices():
        publisher.write(time_slice)
    publisher.close()
    assert len(collector.finish()) == int(run["dvl"].emitted.sum())


def receive_all(client: ClientConnection) -> None:
    """Receive until the connection is closed."""
    while True:
        client.recv(timeout=10.0)


def test_client_that_asks_and_does_not_read_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foxglove_server, "MAX_QUEUE_BYTES", 500_000)
    with closing(OurServer()) as server:
        server.server._controls.values["text"] = "x" * 100_000  # type: ignore[attr-defined]
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.sendall(HANDSHAKE)
            plain.setblocking(False)
            request = b'{"op": "getParameters", "parameterNames": []}'
            frame = bytes((0x81, 0x80 | len(request), 0, 0, 0, 0)) + request
            sent, largest, end = 0, 0, time.monotonic() + 20.0
            while time.monotonic() < end:
                try:
                    sent += plain.send(frame * 1000) // len(frame)
                except BlockingIOError:  # the server reads no more
                    if largest > 500_000:
                        break
                largest = max([largest, *(client.queue_bytes for client in server.server._clients)])
            assert sent > 500
            assert 500_000 < largest < 700_000
            server.server.abort()


def test_number_of_clients_is_limited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foxglove_server, "MAX_CLIENTS", 1)
    with open_publisher(run) as publisher:
        port = int(publisher.url.partition("?")[0].rpartition(":")[2])
        with connect_plainly(port) as first:
            first.recv(timeout=10.0)
            with connect_plainly(port) as second, pytest.raises(ConnectionClosed, match="the server has 1 clients"):
                second.recv(timeout=10.0)


def test_values_that_json_cannot_have_are_texts() -> None:
    with closing(OurServer()) as server, connect_plainly(server.port) as client:
        server.server._controls.values.clear()  # type: ignore[attr-defined]
        server.server._controls.values.update(  # type: ignore[attr-defined]
            {"a": float("inf"), "b": (1.0, float("nan")), "c": (1, 2), "d": None}
        )
        client.send(json.dumps({"op": "getParameters", "parameterNames": []}))
        answers = [json.loads(client.recv(timeout=10.0)) for _ in range(3)]
    assert answers[2]["parameters"] == [
        {"name": "a", "value": "inf"},
        {"name": "b", "value": ["1.0", "nan"]},
        {"name": "c", "value": [1, 2]},
        {"name": "d", "value": None},
    ]


def test_port_in_use_and_missing_library_are_errors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"foxglove://127.0.0.1:{taken.getsockname()[1]}?wait=0"
        with pytest.raises(RecordingError, match=rf"^{url.replace('?', '.')}: port is in use: \d+; choose another"):
            streams.open_publisher(url, make_recorded_run(run.session))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RecordingError, match=r"Foxglove needs websockets; pip install 'navsense\[foxglove\]'"):
        streams.check_url("foxglove://")
    with pytest.raises(RecordingError, match="path of the URL: /x; must be empty"):
        streams.check_url("foxglove://127.0.0.1/x")


def test_run_to_a_live_stream_runs_in_real_time(tmp_path: Path, run: Run) -> None:
    """Without a speed; the recording beside it has the same bits as a run as fast as possible."""
    world = run.session.world
    start = time.monotonic()
    ns.record(world, ["foxglove://127.0.0.1:0?wait=0", tmp_path / "live.npz"], 0.5)
    assert time.monotonic() - start > 0.4
    ns.record(world, tmp_path / "fast.npz", 0.5)
    live, fast = (ns.open(tmp_path / name) for name in ("live.npz", "fast.npz"))
    assert np.array_equal(live["imu"]["angular_velocity"], fast["imu"]["angular_velocity"])


LAYOUT = Path(__file__).resolve().parents[2] / "examples" / "quadrotor_foxglove.json"


def test_layout_of_the_example_names_topics_and_fields_that_the_server_has() -> None:
    """Each path of a plot is a topic and fields in the definition of its message. Each panel has a place."""
    layout = json.loads(LAYOUT.read_text())
    quadrotor = ns.simulate(ns.load(LAYOUT.with_name("quadrotor.sdf")), 1.0)
    builder = MessageBuilder(make_recorded_run(quadrotor.session))
    blocks = [*builder.build_static_transforms(), *(b for one in quadrotor.slices() for b in builder.build_blocks(one))]
    schemas = {block.channel.topic: block.channel.encoder.schema for block in blocks}
    paths = [path["value"] for panel in layout["configById"].values() for path in panel.get("paths", [])] + [
        panel["topicPath"] for panel in layout["configById"].values() if "topicPath" in panel
    ]
    paths += layout["configById"]["3D!quadrotor"]["topics"]
    assert len(paths) == 15
    for path in paths:
        topic, *fields = path.split(".")
        definition = schemas[topic].split("=" * 80)[0]
        for name in fields:
            (kind,) = [line.split()[0] for line in definition.splitlines() if line.split()[1:] == [name]]
            definition = schemas[topic].partition(f"MSG: {kind}\n")[2].split("=" * 80)[0]
        assert kind == "float64" if fields else definition
    assert sorted(list_panels(layout["layout"])) == sorted(layout["configById"])


def list_panels(place: Any) -> list[str]:
    """Return the panels below a place of a layout."""
    return [place] if isinstance(place, str) else list_panels(place["first"]) + list_panels(place["second"])


def test_all_outputs_are_open_before_the_run_waits_for_a_subscriber(run: Run) -> None:
    """A subscriber of the second output can connect while the run waits for one of the first output."""
    ports = find_free_port(), find_free_port()
    urls = [f"foxglove://127.0.0.1:{port}?wait=60" for port in ports]
    recording = threading.Thread(target=lambda: ns.record(run.session.world, urls, 0.5))
    recording.start()
    clients = []
    for url in reversed(urls):
        client = connect_when_served(url)
        client.subscribe([topic for topic in client.topics if topic.endswith("/imu")])
        clients.append(client)
    assert [sum(1 for _ in client) for client in clients] == [100, 100]
    recording.join(60.0)
    assert not recording.is_alive()


@pytest.fixture(autouse=True)
def check_threads() -> Iterator[None]:
    """Check that no thread of the server is left."""
    yield
    end = time.monotonic() + 10.0
    while any(thread.name == "navsense-foxglove" for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(thread.name == "navsense-foxglove" for thread in threading.enumerate())
