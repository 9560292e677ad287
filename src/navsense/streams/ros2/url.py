"""The URLs of ROS 2: their checks, and the domain."""

from __future__ import annotations

import importlib.util
import ipaddress
import os

from navsense.core.errors import RecordingError, Where
from navsense.streams.device_port import CONNECT_TIMEOUT, parse_wait
from navsense.streams.ros2.naming import MAX_DOMAIN, TOKEN
from navsense.streams.stream import StreamUrl
from navsense.world import World

DOMAIN_VARIABLE = "ROS_DOMAIN_ID"
"""Environment variable with the domain of all programs of ROS 2."""


def parse_domain(url: StreamUrl) -> int:
    """Return the domain of a URL, or that of the environment. Raises `RecordingError`."""
    text = url.options.get("domain", os.environ.get(DOMAIN_VARIABLE) or "0")
    domain = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= domain <= MAX_DOMAIN:
        what = "domain" if "domain" in url.options else DOMAIN_VARIABLE
        raise RecordingError(what, text, where=Where(url.text), allowed=f"must be a number from 0 to {MAX_DOMAIN}")
    return domain


def format_query(url: StreamUrl, domain: int) -> str:
    """Return the query of a URL with its domain."""
    return "&".join(f"{name}={value}" for name, value in {**url.options, "domain": str(domain)}.items())


def check_library(url: StreamUrl, package: str) -> None:
    """Raise `RecordingError` if a library is not installed."""
    if importlib.util.find_spec(package) is None:
        library = LIBRARIES[package]
        raise RecordingError(
            f"{url.scheme} needs {library}", where=Where(url.text), remedy="pip install 'navsense[ros2]'"
        )


LIBRARIES = {"cyclonedds": "cyclonedds", "zenoh": "eclipse-zenoh"}
"""Package -> the library that has it."""


def _check_common(url: StreamUrl) -> None:
    """Raise `RecordingError` for an invalid part of a URL that both transports have."""
    parse_wait(url, CONNECT_TIMEOUT)
    parse_domain(url)
    if url.path not in ("", "/"):
        raise RecordingError("path of the URL", url.path, where=Where(url.text), allowed="must be empty")
    if "node" in url.options and not all(map(TOKEN.fullmatch, url.options["node"].removeprefix("/").split("/"))):
        allowed = "must be a name of ROS 2: letters, digits, _ and /"
        raise RecordingError("option node", url.options["node"], where=Where(url.text), allowed=allowed)


def check_dds(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and without the library `cyclonedds`."""
    _check_common(url)
    if url.port is not None:
        allowed = "must be omitted; ?domain= selects the ports"
        raise RecordingError("port of the URL", url.port, where=Where(url.text), allowed=allowed)
    if ":" in url.host or is_unspecified(url.host):
        allowed = "must be an IPv4 address of this machine, or the name of a network interface"
        raise RecordingError("address of this machine", url.host, where=Where(url.text), allowed=allowed)
    check_library(url, "cyclonedds")


def check_zenoh(url: StreamUrl, _world: World | None) -> None:
    """Raise `RecordingError` for an invalid URL, and without the library `eclipse-zenoh`."""
    _check_common(url)
    if url.port == 0:
        allowed = "must be a number from 1 to 65535"
        raise RecordingError("port of the router", 0, where=Where(url.text), allowed=allowed)
    check_library(url, "zenoh")


def is_unspecified(host: str) -> bool:
    """Return True for the address of all interfaces."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
