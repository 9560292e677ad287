"""Settings of Gazebo transport: the options of the URL and the environment variables that the library itself reads.

    gz://HOST:PORT?partition=PARTITION&version=VERSION&world=WORLD&wait=SECONDS

HOST is an IPv4 address of this machine, or a name of one. The topics are offered there, and discovery uses its network
only. PORT is the port of the messages. All parts have a default: the environment variable, then loopback and a free
port. The names of the variables begin with `GZ_`, in version 11 with `IGN_`.

Sources: `NetUtils.cc`, `NodeOptions.cc`, `NodeShared.cc` and `TopicUtils.cc` of gz-transport.
"""

from __future__ import annotations

import getpass
import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from navsense.core.errors import RecordingError, Where
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.gz.versions import IGNITION_VERSION, NEWEST_VERSION, OLDEST_VERSION
from navsense.streams.stream import LOOPBACK, StreamUrl

OPTIONS = ("partition", "version", "world", "wait")
"""Options of the URL of a publisher."""

MULTICAST_GROUP, DISCOVERY_PORT, SERVICE_DISCOVERY_PORT = "239.255.0.7", 10317, 10318
"""Default group and UDP ports of the discovery of topics and of services."""

QUEUE_MESSAGES = 100_000
"""Default number of messages in the queue of a subscriber. A run faster than real time sends them in bursts."""

FORBIDDEN = (" ", "~", "@", ":=", "//")
"""Texts that names of topics and partitions must not contain."""


@dataclass(frozen=True)
class Settings:
    """The settings of one publisher or subscriber.

    version: of the library.
    host: the name or address in the URL or in the environment.
    port: TCP port of the messages; 0 selects a free port.
    partition: programs see each other's topics in the same partition only.
    world: name of the world in topics; "" for that of the file, or for the only one.
    group, discovery_port, service_discovery_port: where the discovery sends and receives.
    relays: addresses that get the datagrams of the discovery too.
    queue_messages: size of the queue of a subscriber; 0 has no limit.
    has_statistics: true if messages have a number and a time for statistics; both sides need the same value.
    wait: time (s) to wait for the first subscriber or publisher.
    """

    version: int
    host: str
    port: int
    partition: str
    world: str
    group: str
    discovery_port: int
    service_discovery_port: int
    relays: tuple[str, ...]
    queue_messages: int
    has_statistics: bool
    wait: float

    @property
    def prefix(self) -> str:
        """The beginning of the names of the environment variables."""
        return get_prefix(self.version)

    def make_topic(self, name: str) -> str:
        """Return the full name of a topic: `@/PARTITION@/TOPIC`."""
        partition = self.partition.rstrip("/")
        slash = "/" if partition and not partition.startswith("/") else ""
        return f"@{slash}{partition}@{name}"


def get_prefix(version: int) -> str:
    """Return the beginning of the names of the environment variables of a version."""
    return "IGN_" if version <= IGNITION_VERSION else "GZ_"


def read_settings(url: StreamUrl, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of a URL. Raises `RecordingError` for an invalid option or variable."""
    where = Where(url.text)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=where, allowed="must be empty")
    text = url.options.get("version", str(NEWEST_VERSION))
    version = _parse_number("version", text, where, OLDEST_VERSION, NEWEST_VERSION)
    prefix = get_prefix(version)
    variables = {name.removeprefix(prefix): text for name, text in environment.items() if name.startswith(prefix)}
    _check_supported(variables, prefix, where)
    group = variables.get("DISCOVERY_MULTICAST_IP", MULTICAST_GROUP)
    relays = tuple(filter(None, variables.get("RELAY", "").split(":")))
    for name, address in (("DISCOVERY_MULTICAST_IP", group), *(("RELAY", relay) for relay in relays)):
        if not _is_address(address):
            raise RecordingError(f"{prefix}{name}", address, where=where, allowed="must be an IPv4 address")
    if not ipaddress.IPv4Address(group).is_multicast:
        allowed = "must be a multicast address, 224.0.0.0 to 239.255.255.255"
        raise RecordingError(f"{prefix}DISCOVERY_MULTICAST_IP", group, where=where, allowed=allowed)
    partition = url.options.get("partition", variables.get("PARTITION", ""))
    if "partition" not in url.options and "PARTITION" not in variables:
        partition = f"{socket.gethostname()}:{getpass.getuser()}"
    if partition == "/" or any(text in partition for text in FORBIDDEN):
        allowed = f"must not contain {', '.join(map(repr, FORBIDDEN))}"
        raise RecordingError("partition", partition, where=where, allowed=allowed)
    world = url.options.get("world", "")
    if "/" in world or any(text in world for text in FORBIDDEN) or ("world" in url.options and not world):
        allowed = f"must be a name without /, {', '.join(map(repr, FORBIDDEN[:-1]))}"
        raise RecordingError("world", world, where=where, allowed=allowed)
    port = variables.get("DISCOVERY_MSG_PORT", str(DISCOVERY_PORT))
    service_port = variables.get("DISCOVERY_SRV_PORT", str(SERVICE_DISCOVERY_PORT))
    queue = variables.get("TRANSPORT_SNDHWM", str(QUEUE_MESSAGES))
    return Settings(
        version=version,
        host=urlsplit(url.text).hostname or variables.get("IP") or LOOPBACK,
        port=url.port or 0,
        partition=partition,
        world=world,
        group=group,
        discovery_port=_parse_number(f"{prefix}DISCOVERY_MSG_PORT", port, where, 1, 65535),
        service_discovery_port=_parse_number(f"{prefix}DISCOVERY_SRV_PORT", service_port, where, 1, 65535),
        relays=relays,
        queue_messages=_parse_number(f"{prefix}TRANSPORT_SNDHWM", queue, where, 0, 2**31 - 1),
        has_statistics=variables.get("TRANSPORT_TOPIC_STATISTICS") == "1",
        wait=parse_wait(url, CONNECT_TIMEOUT),
    )


def resolve_host(settings: Settings, where: Where) -> str:
    """Return the IPv4 address of the host. Raises `RecordingError`."""
    allowed = "must be an IPv4 address of this machine, or a name of one"
    try:
        address = socket.gethostbyname(settings.host)
    except (OSError, UnicodeError) as error:
        raise RecordingError("host", settings.host, where=where, allowed=allowed) from error
    parsed = ipaddress.IPv4Address(address)
    if parsed.is_unspecified or parsed.is_multicast:  # the other programs connect to it
        raise RecordingError("host", settings.host, where=where, allowed=allowed)
    return address


def _check_supported(variables: Mapping[str, str], prefix: str, where: Where) -> None:
    """Raise `RecordingError` for variables that change the protocol in a way that the stream does not support."""
    if variables.get("TRANSPORT_USERNAME") and variables.get("TRANSPORT_PASSWORD"):
        what = f"{prefix}TRANSPORT_USERNAME and {prefix}TRANSPORT_PASSWORD: authentication is not supported"
        raise RecordingError(what, where=where, remedy="unset both")
    implementation = variables.get("TRANSPORT_IMPLEMENTATION", "zeromq")
    if implementation.lower() == "zenoh":
        what = f"{prefix}TRANSPORT_IMPLEMENTATION"
        raise RecordingError(what, implementation, where=where, allowed="must be zeromq")


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _parse_number(what: str, text: str, where: Where, low: int, high: int) -> int:
    """Return a whole number within limits. Raises `RecordingError`."""
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise RecordingError(what, text, where=where, allowed=f"must be a whole number from {low} to {high}")
    return int(text)
