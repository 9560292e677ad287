"""Write the states of ROS 1 topics to a file: `ros1_listen.py OUT.json COUNT URL...`, at least COUNT of each URL."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from navsense import streams
from navsense.motion.base import LogContext
from navsense.streams import DrivenFrame

subscribers = {
    url: streams.open_subscriber(url, DrivenFrame("robot::base_link", LogContext(model="robot")))
    for url in sys.argv[3:]
}
states: dict[str, list[list[object]]] = {url: [] for url in subscribers}
until = time.monotonic() + 30.0
while time.monotonic() < until and min(map(len, states.values())) < int(sys.argv[2]):
    for url, subscriber in subscribers.items():
        for stamp, state in ((one.stamp, one.state) for one in subscriber.receive(0.01)):
            states[url].append(
                [stamp, *state.pose.position, *state.pose.rotation, state.velocity, state.angular_velocity, state.frame]
            )
for subscriber in subscribers.values():
    subscriber.close()
Path(sys.argv[1]).write_text(json.dumps(states), encoding="utf-8")
