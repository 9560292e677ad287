"""The registrations of a node at a ROS master, kept up to date in a thread of their own.

A run never waits for the master: topics that appear later are registered in the thread. A master that was restarted
gets all topics again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from navsense.core.errors import RecordingError, Where
from navsense.core.text import format_count
from navsense.recordings.base import make_no_thread_error
from navsense.streams.ros1 import xmlrpc

LOG = logging.getLogger(__name__)

CALL_TIMEOUT = 3.0
"""Longest time (s) of a call."""

CHECK_PERIOD = 2.0
"""Time (s) between two checks that the master still knows the node."""

UNREGISTER_TIMEOUT = 1.0
"""Longest time (s) to stop the thread and to unregister all topics."""

SHARED_TOPICS = ("/tf", "/tf_static")
"""Topics that several nodes publish by convention."""


class MasterError(Exception):
    """The master does not answer, or not as a master does. The text says how."""

    remedy = "start it: roscore"


class RejectionError(MasterError):
    """The master rejects a call. The text says why."""

    remedy = ""


@dataclass(frozen=True)
class Registration:
    """A topic or a service to register.

    type: as in `sensor_msgs/Imu`; "*" for a subscription to any type.
    service_uri: the address of a service, "" for a topic.
    update: of a subscription, None for others. It gets the URIs of the publishers at each registration, and must not
        wait.
    """

    name: str
    type: str
    service_uri: str = ""
    update: Callable[[list[str]], None] | None = field(default=None, compare=False)

    @property
    def method(self) -> str:
        """The end of the names of the calls that register and unregister it."""
        return "Service" if self.service_uri else "Subscriber" if self.update else "Publisher"


class Master:
    """A ROS master, and the registrations of one node."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        caller_id: str,
        caller_api: str,
        name: str,
        fail: Callable[[str], None],
        loss: str = "connected subscribers stay, new ones find nothing",
    ) -> None:
        """Store the address of the master, the name and the URI of the node.

        Log messages begin with `name`. `fail` is called if the thread ends after an unexpected error. `loss` is the
        effect of a lost master.
        """
        self._fail = fail
        self._loss = loss
        self._address, self._caller_id, self._caller_api, self._name = (host, port), caller_id, caller_api, name
        self._wanted: list[Registration] = []
        self._registered: list[Registration] = []
        self._is_lost = False
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_registered, name="navsense-ros1-master", daemon=True)

    def call(self, method: str, *arguments: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Return the value of a call of the Master API or of the Parameter Server API. Raises `MasterError`."""
        try:
            answer = xmlrpc.call(self._address, method, (self._caller_id, *arguments), timeout)
        except OSError as error:
            reason = "no answer in time" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
            raise MasterError(f"does not answer: {reason}") from error
        except ValueError as error:
            raise MasterError(f"does not answer as a ROS master: {error}") from error
        if not (isinstance(answer, list) and len(answer) == 3 and isinstance(answer[0], int)):
            raise MasterError("does not answer as a ROS master: the result is not (code, text, value)")
        if answer[0] != 1:
            raise RejectionError(f"rejects {method}: {str(answer[1])[:200]}")
        return answer[2]

    def start(self, registrations: Iterable[Registration], where: Where) -> None:
        """Register the first topics, and start the thread.

        Raises `MasterError`, and `RecordingError` at `where` for the name of another node or without a thread.
        """
        self._check_name(where)
        self._wanted = list(registrations)
        self._register(self._wanted)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise make_no_thread_error(where) from error

    def _check_name(self, where: Where) -> None:
        """Raise `RecordingError` if another node has the name. The master would shut it down."""
        try:
            uri = str(self.call("lookupNode", self._caller_id))
            parts = urlsplit(uri)
            address = (parts.hostname or "", parts.port or 0)
            xmlrpc.call(address, "getPid", (self._caller_id,), CALL_TIMEOUT)
        except (RejectionError, OSError, ValueError):
            return  # the master knows no node of this name, or one that has ended
        if uri != self._caller_api:
            allowed, remedy = f"a node of this name runs at {uri}", "choose another name, or omit it"
            raise RecordingError("option node", self._caller_id, allowed=allowed, where=where, remedy=remedy)

    def list_topics(self) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Return the publishers of each topic, and the type of each topic. Raises `MasterError`."""
        publishers = _parse_nodes(self.call("getSystemState"), 0)
        return publishers, {name: str(kind) for name, kind in _parse_pairs(self.call("getTopicTypes"))}

    def has_simulated_time(self) -> bool:
        """Return the parameter /use_sim_time, False if it is not set. Raises `MasterError`."""
        try:
            return bool(self.call("getParam", "/use_sim_time"))
        except RejectionError:
            return False

    def add(self, registration: Registration) -> None:
        """Register a topic or a service soon."""
        self._wanted.append(registration)
        self._wake.set()

    def close(self, timeout: float = UNREGISTER_TIMEOUT) -> None:
        """Stop the thread and unregister everything, both within `timeout` (s). Never raises."""
        end = time.monotonic() + timeout
        self._ending.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        while self._registered:
            one, left = self._registered[-1], max(end - time.monotonic(), 1e-3)
            try:
                self.call(f"unregister{one.method}", one.name, one.service_uri or self._caller_api, timeout=left)
            except MasterError as error:
                if not self._is_lost:
                    LOG.warning("%s: the master %s; %s is not unregistered", self._name, error, one.name)
                break
            self._registered.pop()

    def _keep_registered(self) -> None:
        try:
            while not self._ending.is_set():
                is_due = not self._wake.wait(CHECK_PERIOD)
                self._wake.clear()
                if not self._ending.is_set():
                    self._update(check=is_due)
        except Exception as error:
            LOG.exception("%s: ROS master", self._name)
            self._fail(f"ROS master: internal error: {error!r}")

    def _update(self, *, check: bool) -> None:
        """Register new topics and services; all of them if a check finds that the master lost them."""
        try:
            if check and not self._knows_node():
                self._registered.clear()
                LOG.warning("%s: the master was restarted; the topics are registered again", self._name)
            self._register([one for one in self._wanted if one not in self._registered])
            if self._is_lost:
                LOG.warning("%s: the master answers again", self._name)
            self._is_lost = False
        except MasterError as error:
            if not self._is_lost:
                LOG.warning("%s: the master %s; %s", self._name, error, self._loss)
            self._is_lost = True

    def _knows_node(self) -> bool:
        """Return False if the master has lost the registrations."""
        state = self.call("getSystemState")
        nodes = {"Publisher": _parse_nodes(state, 0), "Subscriber": _parse_nodes(state, 1)}
        topics = [one for one in self._registered if one.method in nodes]
        return all(self._caller_id in nodes[one.method].get(one.name, ()) for one in topics)

    def _register(self, registrations: list[Registration]) -> None:
        """Register topics and services, and warn of other publishers. Raises `MasterError`."""
        if not registrations:
            return
        publishers, types = self.list_topics()
        self._warn_of_others([one for one in registrations if one.method == "Publisher"], publishers, types)
        for one in registrations:
            if one.service_uri:
                self.call("registerService", one.name, one.service_uri, self._caller_api)
            elif one.update:
                uris = self.call("registerSubscriber", one.name, one.type, self._caller_api)
                one.update(parse_uris(uris))
            else:
                self.call("registerPublisher", one.name, one.type, self._caller_api)
            self._registered.append(one)
            if self._ending.is_set():
                return

    def _warn_of_others(
        self, topics: list[Registration], publishers: Mapping[str, list[str]], types: Mapping[str, str]
    ) -> None:
        """Warn once of each other node that publishes some of the topics, and of topics that have another type."""
        shared: dict[str, list[str]] = {}
        for topic in topics:
            for node in publishers.get(topic.name, []):
                if node != self._caller_id and topic.name not in SHARED_TOPICS:
                    shared.setdefault(node, []).append(topic.name)
            if types.get(topic.name, "*") not in ("*", topic.type):
                known = types[topic.name]
                LOG.warning("%s: topic %s is %s, but others know %s", self._name, topic.name, topic.type, known)
        for node, names in shared.items():
            more = f", and {format_count(len(names) - 1, 'other topic')}" if len(names) > 1 else ""
            LOG.warning("%s: node %s publishes topic %s too%s", self._name, node, names[0], more)


def _parse_pairs(value: Any) -> list[tuple[str, Any]]:
    """Return a list of (name, value). Raises `MasterError` for another structure."""
    if not (isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value)):
        raise MasterError("does not answer as a ROS master: the value is not a list of pairs")
    return [(str(name), item) for name, item in value]


def _parse_nodes(state: Any, index: int) -> dict[str, list[str]]:
    """Return the nodes of each topic in a part of the state of a system. Raises `MasterError` for another structure."""
    pairs = _parse_pairs(state[index] if isinstance(state, list) and len(state) > index else None)
    return {topic: list(map(str, nodes)) for topic, nodes in pairs if isinstance(nodes, list)}


def parse_uris(value: Any) -> list[str]:
    """Return the URIs of nodes. Raises `MasterError` for another structure."""
    if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise MasterError("does not answer as a ROS master: the value is not a list of URIs")
    return value
