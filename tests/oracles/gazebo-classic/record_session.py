"""Write `session.gz`: the bytes that a running gzserver sends to a client, connection by connection.

    gzserver world.sdf &  python record_session.py SECONDS

Each chunk is a line of JSON with the topic of its connection ("" for the master) and its size, then its bytes.
"""

from __future__ import annotations

import gzip
import json
import selectors
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.streams.gazebo_classic_server import TYPES, frame, packet, read_frame, split_frames

TOPICS = {
    "/gazebo/field/response": "Response",
    "/gazebo/field/pose/info": "PosesStamped",
    "/gazebo/field/robot::base": "LinkData",
    "/gazebo/field/robot/base/imu/imu": "IMU",
}


def main() -> None:
    master = socket.create_connection(("127.0.0.1", 11345))
    time.sleep(0.5)
    chunks = [("", master.recv(1 << 20))]
    publishers = TYPES["Publishers"].FromString(
        TYPES["Packet"].FromString(split_frames(chunks[0][1])[2]).serialized_data
    )
    connections: dict[socket.socket, str] = {}
    for publish in publishers.publisher:
        if publish.topic in TOPICS:
            connection = socket.create_connection((publish.host, publish.port))
            subscribe = TYPES["Subscribe"](topic=publish.topic, host="127.0.0.1", port=1, msg_type=publish.msg_type)
            connection.sendall(packet("sub", subscribe))
            connections[connection] = publish.topic
    # The world asks for the requests of each node that offers them.
    listener = socket.create_server(("127.0.0.1", 0))
    request = TYPES["Publish"](
        topic="/gazebo/field/request",
        msg_type="gazebo.msgs.Request",
        host="127.0.0.1",
        port=listener.getsockname()[1],
    )
    master.sendall(packet("advertise", request))
    world, _ = listener.accept()
    read_frame(world)
    world.sendall(frame(TYPES["Request"](id=1, request="entity_info", data="robot").SerializeToString()))
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            assert isinstance(key.fileobj, socket.socket)
            chunks.append((connections[key.fileobj], key.fileobj.recv(1 << 16)))
    with gzip.open(Path(__file__).with_name("session.gz"), "wb", 9) as file:
        for topic, data in chunks:
            file.write(json.dumps({"topic": topic, "size": len(data)}).encode() + b"\n" + data)


main()
