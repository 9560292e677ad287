"""A stream of your own: each sample as a JSON object in a UDP datagram, published by `ns.record` and received here.

python examples/json_udp.py
"""

from __future__ import annotations

import json
import math
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

import outputs

import navsense as ns
from navsense.core.errors import RecordingError, Where
from navsense.core.readings import TimeSlice
from navsense.recordings import RecordedRun
from navsense.streams import Publisher, Stream, StreamUrl, register_stream
from navsense.world import World


class UdpPublisher(Publisher):
    """Sends one datagram per sample. A datagram that nobody receives is lost, so `write` never waits.

    Python's `json` writes a missing value as NaN.
    """

    def __init__(self, url: StreamUrl, recorded_run: RecordedRun) -> None:
        """Connect to the address. Raises `RecordingError` if the system refuses it."""
        check(url, recorded_run.world)
        self.url = url.text
        self._ending = get_ending(url)
        try:
            family = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_DGRAM)[0][0]
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.connect((url.host, url.port))
        except OSError as error:
            raise RecordingError(f"cannot connect: {error}", where=Where(url.text)) from error

    def write(self, time_slice: TimeSlice) -> None:
        """Send the published samples of a time slice."""
        if self._socket.fileno() < 0:
            raise RecordingError("the stream is closed", where=Where(self.url))
        for name, reading in time_slice.readings.items():
            for row in range(reading.time.size) if f"::{name}".endswith(self._ending) else ():
                if reading.emitted[row]:
                    arrays = {key: array[row].tolist() for key, array in reading.arrays.items()}
                    sample = {"sensor": name, "stamp": int(reading.stamp[row]), **arrays}
                    with suppress(OSError):  # nobody listens, or the buffer of the socket is full
                        self._socket.send(json.dumps(sample).encode())

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def abort(self) -> None:
        """Close the socket."""
        self._socket.close()


def get_ending(url: StreamUrl) -> str:
    """Return the end of the names of the sensors that a URL selects; "" for all sensors."""
    name = url.options.get("sensor", "")
    return f"::{name}" if name else ""


def check(url: StreamUrl, world: World | None) -> None:
    """Raise `RecordingError` for a URL without a port, and for a sensor that the world does not have."""
    if not url.port:
        raise RecordingError("port", url.port, where=Where(url.text), allowed="must be a number from 1 to 65535")
    if world is not None and not any(f"::{sensor.name}".endswith(get_ending(url)) for sensor in world.sensors):
        allowed = f"must be one of {', '.join(sensor.name for sensor in world.sensors)}"
        raise RecordingError("sensor", url.options.get("sensor"), where=Where(url.text), allowed=allowed)


STREAM = Stream(
    scheme="json+udp",
    name="JSON over UDP",
    url_format="json+udp://HOST:PORT",
    open_publisher=UdpPublisher,
    options=("sensor",),
    check=check,
)

WORLD = """<sdf version="1.9"><world name="table"><model name="box"><link name="base">
  <sensor name="imu" type="imu"><update_rate>50</update_rate></sensor>
</link></model></world></sdf>"""

if __name__ == "__main__":
    register_stream(STREAM)  # an installed package has the entry point navsense.streams instead
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as subscriber:
        (Path(name) / "table.sdf").write_text(WORLD)
        subscriber.bind(("127.0.0.1", 0))
        subscriber.settimeout(10.0)
        port = subscriber.getsockname()[1]
        ns.record(ns.load(Path(name) / "table.sdf"), f"json+udp://:{port}?sensor=imu", 1.0, seed=7)
        samples = [json.loads(subscriber.recv(65536)) for _ in range(50)]
        print(f"{len(samples)} samples, the last: {samples[-1]}")
        assert [sample["stamp"] for sample in samples] == [round(k / 50 * 1e9) for k in range(50)]
        assert all(math.isclose(sample["linear_acceleration"][2], 9.8, abs_tol=0.1) for sample in samples)
    columns = {
        f"{axis} (m/s^2)": [sample["linear_acceleration"][k] for sample in samples] for k, axis in enumerate("xyz")
    }
    outputs.write("json_udp", {"stamp (ns)": [sample["stamp"] for sample in samples], **columns})
