"""A ROS 1 node that subscribes to topics of other nodes."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from navsense.core.errors import Where
from navsense.streams.ros1.master import Master, Registration
from navsense.streams.ros1.node import ERROR, SUCCESS, Ros1Node, is_own_node
from navsense.streams.ros1.publisher import DEFAULT_PORT, check, get_own_host, is_loopback
from navsense.streams.ros1.subscription import Receiver, Subscription
from navsense.streams.stream import LOOPBACK, StreamUrl

LOG = logging.getLogger(__name__)

CLOSE_TIMEOUT = 1.0
"""Longest time (s) to unregister, and to wait for the threads of all connections."""

NODE_OPTIONS = ("host", "node")
"""Options of a URL that the node reads."""


class SubscriberNode:
    """A ROS 1 node that subscribes to topics. `start` registers it, `close` disconnects."""

    def __init__(self, url: StreamUrl, fail: Callable[[str], None]) -> None:
        """Listen for the calls of the master. `fail` is called if another program shuts the node down.

        Raises `RecordingError` for an invalid URL.
        """
        check(url, None)
        port, self._fail, self._where = url.port or DEFAULT_PORT, fail, Where(url.text)
        self.url, self.address = url.text, f"{url.host}:{port}"
        host = get_own_host(url)
        if host == LOOPBACK and not is_loopback(url.host):
            LOG.warning(
                "%s: the node listens on %s, where the master cannot announce later publishers; "
                "add &host=ADDRESS of this machine",
                self.url,
                host,
            )
        name = url.options.get("node", f"navsense_motion_{os.getpid()}_{time.time_ns() // 1_000_000}")
        self.caller_id = "/" + name.removeprefix("/")
        master_host = f"[{url.host}]" if ":" in url.host else url.host
        self.subscriptions: list[Subscription] = []
        self._lock = threading.Lock()
        self._registrations: list[Registration] = []
        self._is_started = self._is_closed = False
        self._node = Ros1Node(
            host,
            caller_id=self.caller_id,
            master_uri=f"http://{master_host}:{port}/",
            name=self.url,
            where=self._where,
            api={
                "publisherUpdate": self._update_publishers,
                "getSubscriptions": lambda: [SUCCESS, "", [[one.topic, one.type] for one in self.subscriptions]],
                "getBusInfo": lambda: [SUCCESS, "", self._list_connections()],
                "shutdown": self._shut_down,
            },
        )
        self.master = Master(
            url.host,
            port,
            caller_id=self.caller_id,
            caller_api=self._node.uri,
            name=self.url,
            fail=fail,
            loss="connected publishers stay, new ones are not found",
        )

    def subscribe(self, topic: str, kind: str, receiver: Receiver) -> Subscription:
        """Add a topic. After the start it is registered soon. Without a known type, `kind` is "*".

        Publishers of this process are ignored: a run does not follow its own time, motion or current.
        """
        subscription = Subscription(topic, kind, self.caller_id, f"{self.url}: topic {topic}", receiver)

        def update(uris: list[str]) -> None:
            subscription.update([uri for uri in uris if not is_own_node(uri)])

        registration = Registration(topic, kind, update=update)
        with self._lock:
            self.subscriptions.append(subscription)
            self._registrations.append(registration)
            if self._is_started and not self._is_closed:
                self.master.add(registration)
        return subscription

    def start(self) -> None:
        """Register the subscriptions and connect to their publishers.

        Raises `MasterError`, and `RecordingError` for the name of another node or without a thread.
        """
        with self._lock:
            self._is_started = True
            # /clock is the last subscription. It is registered first, because messages of the others need its time.
            registrations = self._registrations[::-1]
        self.master.start(registrations, self._where)

    def close(self) -> None:
        """Disconnect and unregister. Never raises."""
        end = time.monotonic() + CLOSE_TIMEOUT
        with self._lock:
            self._is_closed = True
        for subscription in self.subscriptions:
            subscription.close(0.0)
        self.master.close(CLOSE_TIMEOUT)
        # A thread that connects to a peer that vanished ends later by itself.
        for subscription in self.subscriptions:
            subscription.close(max(end - time.monotonic(), 0.0))
        self._node.stop()

    def _update_publishers(self, topic: str, uris: list[str]) -> list[Any]:
        """Handle `publisherUpdate`."""
        if not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            return [ERROR, "publisherUpdate: the publishers must be a list of URIs", 0]
        for registration in self._registrations:
            if registration.name == topic and registration.update:
                registration.update(uris)
        return [SUCCESS, "", 0]

    def _list_connections(self) -> list[list[Any]]:
        """Return the connections as `getBusInfo` does."""
        return [
            [number, connection.uri, "i", "TCPROS", subscription.topic, True, f"TCPROS connection to {connection.node}"]
            for subscription in self.subscriptions
            for number, connection in enumerate(subscription.list_open(), 1)
        ]

    def _shut_down(self, reason: str = "") -> list[Any]:
        self._fail(f"the node was shut down: {str(reason)[:200] or 'no reason given'}")
        return [SUCCESS, "", 0]
