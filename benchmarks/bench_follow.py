"""A run that follows a simulator at 1 kHz: its processor time, and the time from the truth to a reading.

    unshare --map-root-user --net bash -c "ip link set lo up; python benchmarks/bench_follow.py"

Another process has a ROS 1 master. It publishes odometry at 1 kHz, whose stamps are the time of the system, and
subscribes to the IMU. The run follows the odometry of a robot with an IMU (200 Hz), a magnetometer (100 Hz) and an
altimeter (50 Hz), and publishes the readings.

- share: processor time of all threads of the run, of the wall time, one core = 100 %
- bare loop: the same messages received and discarded by a thread, the least that any program needs
- latency: from the instant of an IMU sample to its message in the other process. The sample waits up to 1 ms for the
  state that ends its step. Distribution over all samples
"""

from __future__ import annotations

import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import cast
from xmlrpc.client import ServerProxy

import numpy as np

import navsense as ns

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DURATION = 20.0
RATE = 1000.0
TOPIC, IMU = "/odom", "/robot/imu"

WORLD = """<sdf version="1.10"><world name="sea"><magnetic_field>2e-5 0 -4e-5</magnetic_field><model name="robot">
<link name="body">
<sensor name="imu" type="imu"><topic>/robot/imu</topic><update_rate>200</update_rate></sensor>
<sensor name="compass" type="magnetometer"><update_rate>100</update_rate></sensor>
<sensor name="altimeter" type="altimeter"><update_rate>50</update_rate></sensor>
</link></model></world></sdf>"""


def pack_odometry(stamp: int, t: float) -> bytes:
    """Return a message of nav_msgs/Odometry with its length: a motion along a sine that turns."""
    seconds, nanoseconds = divmod(stamp, 10**9)
    names = b"".join(struct.pack("<I", len(name)) + name for name in (b"odom", b"body"))
    header = struct.pack("<III", 0, seconds, nanoseconds)
    pose = struct.pack("<7d", math.sin(t), 0.0, 2.0, 0.0, 0.0, math.sin(0.2 * t), math.cos(0.2 * t))
    speed, yaw = math.cos(t), 0.4 * t
    twist = struct.pack("<6d", math.cos(yaw) * speed, -math.sin(yaw) * speed, 0.0, 0.0, 0.0, 0.4)
    message = header + names + pose + bytes(288) + twist + bytes(288)
    return struct.pack("<I", len(message)) + message


def run_peer(port_file: Path, seconds: float) -> None:
    """Publish odometry, and write the latency (s) of each IMU message."""
    from rosbags.typesys import Stores, get_typestore

    from tests.streams.ros1_peers import RosMaster, RosPublisher, pack_header, receive, request_topic

    md5 = get_typestore(Stores.ROS1_NOETIC).generate_msgdef("nav_msgs/msg/Odometry")[1]
    master = RosMaster()
    publisher = RosPublisher(master, TOPIC, "nav_msgs/Odometry", md5, node="/simulator")
    latencies: list[float] = []

    def listen() -> None:
        while IMU not in master.list_topics():
            time.sleep(0.05)
        with socket.create_connection(request_topic(master.find_node(IMU), IMU)) as connection:
            fields = {"callerid": "/observer", "topic": IMU, "md5sum": "*", "type": "*", "tcp_nodelay": "1"}
            connection.sendall(pack_header(fields))
            receive(connection, struct.unpack("<I", receive(connection, 4))[0])
            try:
                while True:
                    message = receive(connection, struct.unpack("<I", receive(connection, 4))[0])
                    now = time.time_ns()
                    sec, nanosec = struct.unpack_from("<II", message, 4)
                    latencies.append((now - (sec * 10**9 + nanosec)) / 1e9)
            except (OSError, EOFError):  # the run has ended
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    port_file.write_text(str(master.port), encoding="ascii")
    start = time.monotonic()
    k = 0
    while time.monotonic() - start < seconds:
        delay = start + k / RATE - time.monotonic()
        if delay > 0.0:
            time.sleep(delay)
        try:
            publisher.send_bytes(pack_odometry(time.time_ns(), k / RATE))
        except OSError:  # the run has ended
            break
        k += 1
    time.sleep(1.0)  # the run unregisters its topics
    publisher.disconnect()
    thread.join(2.0)
    np.save(port_file.with_suffix(".npy"), np.array(latencies))
    os._exit(0)


def start_peer(folder: Path, name: str, seconds: float) -> tuple[subprocess.Popen[bytes], int, Path]:
    """Return the process of the simulator, the port of its master, and the file of its latencies."""
    file = folder / name
    process = subprocess.Popen([sys.executable, __file__, str(file), str(seconds)])
    while not file.exists() or not file.read_text(encoding="ascii"):
        time.sleep(0.05)
    return process, int(file.read_text(encoding="ascii")), file.with_suffix(".npy")


def measure_bare_loop(port: int, seconds: float) -> float:
    """Return the share of a core of a thread that receives the odometry and discards it."""
    from tests.streams.ros1_peers import pack_header, request_topic

    answer = ServerProxy(f"http://127.0.0.1:{port}").registerSubscriber("/bare", TOPIC, "*", "http://127.0.0.1:1/")
    uri = cast("list[str]", cast("list[object]", answer)[2])[0]
    with socket.create_connection(request_topic(uri, TOPIC)) as connection:
        fields = {"callerid": "/bare", "topic": TOPIC, "md5sum": "*", "type": "*", "tcp_nodelay": "1"}
        connection.sendall(pack_header(fields))
        start, end = time.process_time(), time.monotonic() + seconds
        while time.monotonic() < end:
            connection.recv(1 << 16)
    return (time.process_time() - start) / seconds


def main() -> None:
    """Print the share and the latency."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world_file = folder / "robot.sdf"
        world_file.write_text(WORLD, encoding="utf-8")
        world = ns.load(world_file)
        process, port, _ = start_peer(folder, "bare", 6.0)
        bare = measure_bare_loop(port, 4.0)
        process.wait()
        shares = []
        for recordings in ((), (folder / "run.mcap",)):
            process, port, latency_file = start_peer(folder, f"peer{len(recordings)}", DURATION + 6.0)
            marks: list[tuple[float, float]] = []

            def mark(_done: float, _total: float, marks: list[tuple[float, float]] = marks) -> None:
                del marks[1:]  # keep the first and the last
                marks.append((time.process_time(), time.monotonic()))

            url = f"ros1://127.0.0.1:{port}"
            outputs = [f"{url}?node=sensors&wait=5", *recordings]
            ns.record(world, outputs, DURATION, motion=f"{url}?topic={TOPIC}", progress=mark)
            (cpu_0, wall_0), (cpu_1, wall_1) = marks
            process.wait()
            latency = 1e3 * np.load(latency_file)[200:]
            shares.append((cpu_1 - cpu_0) / (wall_1 - wall_0))
            p50, p99, largest = np.percentile(latency, (50.0, 99.0, 100.0))
            kind = "recorded too" if recordings else "published"
            print(f"{kind:12s}: share {shares[-1]:.1%} of a core, {shares[-1] / bare:.1f} x bare loop")
            print(f"latency: {p50:.2f} ms median, {p99:.2f} ms p99, {largest:.1f} ms max, {latency.size} samples")
        print(
            f"bare loop: {bare:.1%} of a core; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_peer(Path(sys.argv[1]), float(sys.argv[2]))
    else:
        main()
