"""A router of Zenoh, and clients, in the process of a test. They listen on loopback and search for nothing."""

from __future__ import annotations

import socket
import struct
import time
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
        time.sleep(0.2)  # until the router knows it

    def _receive(self, sample: Any) -> None:
        attachment = b"" if sample.attachment is None else sample.attachment.to_bytes()
        self.samples.append((str(sample.key_expr), sample.payload.to_bytes(), attachment))

    def close(self) -> None:
        """Disconnect."""
        self._session.close()


class ZenohPublisher:
    """A client of a router with one publisher, with the key, token and attachments of `rmw_zenoh`."""

    def __init__(self, port: int, domain: int, topic: str, kind: str, node: str = "%/%/sim") -> None:
        self._session = _open(mode='"client"', connect__endpoints=f'["tcp/127.0.0.1:{port}"]')
        self._publisher = self._session.declare_publisher(f"{domain}/{topic.strip('/')}/{kind}")
        session = self._session.info.zid()
        token = f"@ros2_lv/{domain}/{session}/0/1/MP/{node}/{topic.replace('/', '%')}/{kind}/::,10:,:,:,,"
        self._token = self._session.liveliness().declare_token(token)
        self._gid = str(session).encode()[:16]
        self.number = 0

    @property
    def has_readers(self) -> bool:
        """True if a program subscribes to the topic."""
        return bool(self._publisher.matching_status.matching)

    def send(self, *messages: bytes) -> None:
        """Publish messages."""
        for message in messages:
            self._publisher.put(message, attachment=struct.pack("<qqB16s", self.number, time.time_ns(), 16, self._gid))
            self.number += 1

    def close(self) -> None:
        """Disconnect."""
        self._session.close()
