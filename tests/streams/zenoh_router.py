"""A router of Zenoh, and a subscriber, in the process of a test. They listen on loopback and search for nothing."""

from __future__ import annotations

import socket
from typing import Any

import zenoh


def _open(**settings: str) -> Any:
    config = zenoh.Config()
    for name, value in settings.items():
        config.insert_json5(name.replace("__", "/"), value)
    config.insert_json5("scouting/multicast/enabled", "false")
    return zenoh.open(config)


class ZenohRouter:
    """A router at a free port."""

    def __init__(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._session = _open(mode='"router"', listen__endpoints=f'["tcp/127.0.0.1:{self.port}"]')

    def list_tokens(self) -> list[str]:
        """Return the keys of the liveliness tokens of nodes and endpoints."""
        return sorted(str(reply.ok.key_expr) for reply in self._session.liveliness().get("@ros2_lv/**"))

    def close(self) -> None:
        """Stop the router."""
        self._session.close()


class ZenohClient:
    """A client of a router with one subscriber.

    samples: key, bytes and attachment of each message.
    """

    def __init__(self, port: int, key: str) -> None:
        self._session = _open(mode='"client"', connect__endpoints=f'["tcp/127.0.0.1:{port}"]')
        self.samples: list[tuple[str, bytes, bytes]] = []
        self._subscriber = self._session.declare_subscriber(key, self._receive)

    def _receive(self, sample: Any) -> None:
        attachment = b"" if sample.attachment is None else sample.attachment.to_bytes()
        self.samples.append((str(sample.key_expr), sample.payload.to_bytes(), attachment))

    def close(self) -> None:
        """Disconnect."""
        self._session.close()
