"""A ROS 1 node that subscribes to topics of other nodes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from navsense.core.errors import Where
from navsense.streams.ros1.master import Master, Registration
from navsense.streams.ros1.node import ERROR, SUCCESS, Ros1Node
from navsense.streams.ros1.publisher import DEFAULT_PORT, check, get_own_host, is_loopback
from navsense.streams.ros1.subscription import CONNECT_TIMEOUT, Receiver, Subscription
from navsense.streams.stream import LOOPBACK, StreamUrl

LOG = logging.getLogger(__name__)

NODE_OPTIONS = ("host", "node")
"""Options of a URL that the node reads."""


class SubscriberNode:
    """A ROS 1 node that subscribes to topics. `start` registers it, `close` disconnects."""

    def __init__(self, url: StreamUrl, fail: Callable[[str], None]) -> None:
        """Listen for the calls of the master. `fail` is called if another program shuts the node down.

        Raises `RecordingError` for an invalid URL.
        """
        check(url, None)
        port, self._fail = url.port or DEFAULT_PORT, fail
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
        self._node = Ros1Node(
            host,
            caller_id=self.caller_id,
            master_uri=f"http://{master_host}:{port}/",
            name=self.url,
            where=Where(url.text),
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
            loss="connected publishers stay, new ones are not found",
        )

    def subscribe(self, topic: str, kind: str, receiver: Receiver) -> Subscription:
        """Add a topic before the start. Without a known type, `kind` is "*"."""
        subscription = Subscription(topic, kind, self.caller_id, f"{self.url}: topic {topic}", receiver)
        self.subscriptions.append(subscription)
        return subscription

    def start(self) -> None:
        """Register the subscriptions and connect to their publishers. Raises `MasterError` and `RuntimeError`."""
        self.master.start(Registration(one.topic, one.type, update=one.update) for one in self.subscriptions)

    def close(self) -> None:
        """Disconnect and unregister. Never raises."""
        for subscription in self.subscriptions:
            subscription.close(CONNECT_TIMEOUT + 1.0)
        self.master.close()
        self._node.stop()

    def _update_publishers(self, topic: str, uris: list[str]) -> list[Any]:
        """Handle `publisherUpdate`."""
        if not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            return [ERROR, "publisherUpdate: the publishers must be a list of URIs", 0]
        for subscription in self.subscriptions:
            if subscription.topic == topic:
                subscription.update(uris)
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
