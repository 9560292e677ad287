"""The topics or services of other processes, as the discovery hears them.

A process that is silent for `SILENCE`, or that says BYE, has vanished with all its topics and services.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from navsense.core.errors import Where
from navsense.streams.gz.discovery import SILENCE, Advert, AdvertScope, DiscoveryMessage, MessageType
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)
"""Logs addresses that are not used."""

MAX_ADVERTS, MAX_PROCESSES = 20_000, 2_000
"""Limits on what is stored: a program that advertises without end does not use up memory."""

Found = TypeVar("Found")


class Directory:
    """The topics or the services of other processes. All methods can be called in any thread.

    host: IPv4 address of this process. On loopback, only addresses on loopback are used.
    """

    def __init__(self, host: str, where: Where) -> None:
        """Start empty."""
        self._host, self._warnings = host, WarningLog(LOG, where)
        self._condition = threading.Condition()
        self._adverts: dict[tuple[str, str, str], Advert] = {}
        self._seen: dict[str, float] = {}

    def update(self, message: DiscoveryMessage, host: str) -> None:
        """Store what a message says. `host` is the address of its sender."""
        advert = message.advert
        with self._condition:
            if message.type == MessageType.BYE:
                self._remove(message.process)
            elif message.process in self._seen or len(self._seen) < MAX_PROCESSES:
                self._seen[message.process] = time.monotonic()
            if advert is not None:
                key = (advert.name, advert.process, advert.node)
                if message.type == MessageType.UNADVERTISE:
                    self._adverts.pop(key, None)
                elif self._adverts.get(key) != advert and self._is_usable(advert, host) and self._has_room(key):
                    self._adverts[key] = advert
            self._condition.notify_all()

    def _has_room(self, key: tuple[str, str, str]) -> bool:
        return key in self._adverts or len(self._adverts) < MAX_ADVERTS

    def _is_usable(self, advert: Advert, host: str) -> bool:
        """Return True if this process may use a topic or service and can connect to it."""
        is_local = host == self._host or ipaddress.IPv4Address(host).is_loopback
        if advert.scope == AdvertScope.PROCESS or (advert.scope == AdvertScope.HOST and not is_local):
            return False
        problem = find_address_problem(advert.address, self._host)
        if problem:
            text = f"{advert.name} of process {advert.process} at {host}: {problem}"
            self._warnings.add("address", advert.address, text)
        return not problem

    def _remove(self, process: str) -> None:
        """Forget a process and its topics or services."""
        self._seen.pop(process, None)
        for key in [key for key in self._adverts if key[1] == process]:
            del self._adverts[key]

    def touch(self, process: str) -> None:
        """Note that a process lives, for example because it sends messages of a topic."""
        with self._condition:
            if process in self._seen:
                self._seen[process] = time.monotonic()

    def list_adverts(self) -> list[Advert]:
        """Return the topics or services of the processes that live."""
        with self._condition:
            return self._list_adverts()

    def _list_adverts(self) -> list[Advert]:
        earliest = time.monotonic() - SILENCE
        for process in [process for process, seen in self._seen.items() if seen < earliest]:
            self._remove(process)
        return list(self._adverts.values())

    def wait(self, select: Callable[[list[Advert]], Found | None], seconds: float) -> Found | None:
        """Return what `select` finds in the topics or services; None if it finds nothing within a time (s)."""
        end = time.monotonic() + seconds
        with self._condition:
            while (found := select(self._list_adverts())) is None:
                left = end - time.monotonic()
                if left <= 0.0:
                    return None
                self._condition.wait(left)
        return found


def find_address_problem(address: str, host: str) -> str:
    """Return why this process, at an IPv4 address, does not connect to the address of a peer; "" if it does."""
    try:
        parts = urlsplit(address)
        peer, port = ipaddress.IPv4Address(parts.hostname or ""), parts.port
    except ValueError:
        return f"the address {address[:80]} is not tcp://HOST:PORT"
    if parts.scheme != "tcp" or not port or peer.is_unspecified or peer.is_multicast:
        return f"the address {address[:80]} is not tcp://HOST:PORT"
    if ipaddress.IPv4Address(host).is_loopback and not peer.is_loopback:
        return f"the address {address} is not on loopback, as {host} is; set GZ_IP=127.0.0.1 for this process"
    return ""
