"""The subscriber of Gazebo transport: the states of a frame in a topic of a running simulator.

    gz://HOST?partition=PARTITION&version=VERSION&world=WORLD&topic=TOPIC&type=TYPE&model=MODEL&link=LINK&frame=ENTITY

Without `topic`, the first of these that a process advertises is used:

    /model/MODEL/pose, /world/WORLD/model/MODEL/pose    PosePublisher: each step
    /world/WORLD/dynamic_pose/info                      60 Hz of wall time
    /world/WORLD/pose/info                              60 Hz of wall time

The names in the messages of `pose/info` are local, so the tree of models and links comes from the service
`/world/WORLD/scene/info`. Without the service, the names are used as in a recording.

One thread receives. It reconnects if the publisher vanishes and comes back.

Sources: the systems PosePublisher and SceneBroadcaster of gz-sim, `NodeShared.cc` of gz-transport.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from navsense.core.errors import MotionError, RecordingError, Where
from navsense.core.pose import Pose
from navsense.core.text import format_count
from navsense.recordings.base import make_no_thread_error
from navsense.streams.gz.directory import Directory
from navsense.streams.gz.discovery import Advert, Discovery
from navsense.streams.gz.node import import_zmq
from navsense.streams.gz.poses import (
    STATE_TYPES,
    Chain,
    NumberError,
    StateDecoder,
    Target,
    TargetError,
    find_chain_in_scene,
    make_decoder,
)
from navsense.streams.gz.services import ServiceError, request_service
from navsense.streams.gz.settings import Settings, read_settings, resolve_host
from navsense.streams.stream import StreamUrl
from navsense.streams.subscriber import MOTION_OPTIONS, DrivenFrame, Subscriber
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)
"""Logs the topic that is used, and messages that are not."""

GZ_MOTION_OPTIONS = (*MOTION_OPTIONS, "world", "partition", "version")
"""Options of the URL of a motion, besides those of every motion."""

LISTEN_TIME = 1.5
"""Time (s) to listen for all topics before one is selected. Each process advertises its topics once a second."""

SERVICE_TIMEOUT, SCENE_INTERVAL = 3.0, 5.0
"""Longest time (s) to find the service of the scene, and again until its response. Time until it is asked again, if the
messages do not have the entities of the scene."""

POLL_TIME = 0.1
"""Time (s) between two looks at the publishers."""

QUIET_TIME = 5.0
"""Time (s) after which messages without the moving entity are logged."""

QUEUE_MESSAGES = 100_000
"""Number of messages in the queue of the socket."""

MAX_MESSAGE_BYTES = 1 << 24
"""Longest message (bytes). ZeroMQ closes a connection with a longer one."""

MAX_LISTED = 8
"""Largest number of topics or entities in a message."""

PACKAGES = ("gz.msgs", "ignition.msgs")
"""Packages of the message types."""


@dataclass(frozen=True)
class Query:
    """What to subscribe to.

    topic, type, world: "" for the first that matches.
    target: what moves the frame.
    """

    target: Target
    topic: str = ""
    type: str = ""
    world: str = ""

    @property
    def priorities(self) -> tuple[str, ...]:
        """Patterns of the topics that are used without a name, in order."""
        world, model = re.escape(self.world) or "[^/]+", re.escape(self.target.model)
        poses = (f"/model/{model}/pose", f"/world/{world}/model/{model}/pose") if model else ()
        return (*poses, f"/world/{world}/dynamic_pose/info", f"/world/{world}/pose/info")


def get_kind(type_name: str) -> str:
    """Return the name of a type without the package; "" for one without states."""
    package, _, kind = type_name.rpartition(".")
    return kind if package in PACKAGES and kind in STATE_TYPES else ""


class GzSubscriber(Subscriber):
    """Receives the states of a frame on Gazebo transport."""

    def __init__(self, url: StreamUrl, query: Query, settings: Settings, zmq: Any) -> None:
        """Find the topic and connect to it. Raises `MotionError` and `RecordingError`."""
        super().__init__(url.text, "Gazebo transport")
        self._query, self._settings, self._zmq, self._where = query, settings, zmq, Where(url.text)
        self._host, self._process = resolve_host(settings, self._where), str(uuid4())
        self._warnings = WarningLog(LOG, url.text)
        self._ignored, self._last_state = 0, time.monotonic()
        self._has_missing_entity, self._next_scene = False, 0.0
        self._publisher: Advert | None = None
        self._decoder: StateDecoder | None = None
        self._ending = threading.Event()
        self._directory = Directory(self._host, self._where)
        self._thread: threading.Thread | None = None
        self._context = zmq.Context()
        self._socket: Any = None
        try:
            self._discovery = Discovery(
                settings,
                self._host,
                self._process,
                self._where,
                port=settings.discovery_port,
                listener=self._directory.update,
            )
        except BaseException:
            self._context.destroy(linger=0)
            raise
        try:
            advert = self._find_topic()
            self._name = self._to_local_name(advert.name)
            self.topic = f"topic {self._name}"
            LOG.info("%s: %s of type %s moves %s", self.url, self.topic, advert.type, query.target.text)
            self._connect(advert)
            self._thread = threading.Thread(target=self._serve, name="navsense-gz-subscriber", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:
                self._thread = None
                raise make_no_thread_error(self._where) from error
        except BaseException:
            self.close()
            raise

    def _to_local_name(self, name: str) -> str:
        """Return the name of a topic without the partition."""
        return name.removeprefix(self._settings.make_topic(""))

    def _find_topic(self) -> Advert:
        """Return the topic to subscribe to. Raises `MotionError` if none is advertised in time."""
        wait, query = self._settings.wait, self._query
        start = time.monotonic()
        if not query.topic:
            self._ending.wait(min(LISTEN_TIME, wait))
        while True:
            if query.topic:
                self._discovery.ask(self._settings.make_topic(query.topic))
            left = start + wait - time.monotonic()
            advert = self._directory.wait(self._select, min(max(left, 0.0), 1.0))
            if advert is not None:
                return advert
            if left <= 0.0:
                raise self._make_topic_error()

    def _select(self, adverts: list[Advert]) -> Advert | None:
        """Return the topic with the name of the query, or the first one by priority. Raises `MotionError`."""
        query, prefix = self._query, self._settings.make_topic("")
        topics = [advert for advert in adverts if advert.type and advert.name.startswith(prefix)]
        if query.topic:
            named = [advert for advert in topics if self._to_local_name(advert.name) == query.topic]
            usable = [advert for advert in named if self._has_type(advert)]
            if named and not usable:
                kinds = query.type or ", ".join(f"{PACKAGES[0]}.{kind}" for kind in STATE_TYPES)
                what, allowed = f"type of topic {query.topic}", f"must be {kinds}"
                remedy = "omit type=" if get_kind(named[0].type) else "name another topic"
                raise MotionError(what, named[0].type, allowed=allowed, where=self._where, remedy=remedy)
            return usable[0] if usable else None
        for pattern in query.priorities:
            matching = {
                name: advert
                for advert in topics
                if self._has_type(advert) and re.fullmatch(pattern, name := self._to_local_name(advert.name))
            }
            if len(matching) > 1:
                worlds = ", ".join(sorted(name.split("/")[2] for name in matching))
                allowed, remedy = f"must be one of {worlds}", "add ?world=WORLD"
                raise MotionError("several worlds are advertised", allowed=allowed, where=self._where, remedy=remedy)
            if matching:
                return next(iter(matching.values()))
        return None

    def _has_type(self, advert: Advert) -> bool:
        """Return True for a topic with states, of the type of the query."""
        kind = get_kind(advert.type)
        return bool(kind) and self._query.type in ("", advert.type, kind)

    def _make_topic_error(self) -> MotionError:
        """Return the error for a topic that no process advertises."""
        query, wait = self._query, self._settings.wait
        what = f"no publisher of topic {query.topic}" if query.topic else "no topic with poses"
        names = sorted(
            {self._to_local_name(advert.name) for advert in self._directory.list_adverts() if get_kind(advert.type)}
        )
        listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if names[MAX_LISTED:] else "")
        partition = self._settings.partition
        allowed = f"none in the partition {partition} within {wait:g} s; topics with poses: {listed or 'none'}"
        prefix = self._settings.prefix
        remedy = f"start the simulator with {prefix}IP={self._host} and {prefix}PARTITION={partition}"
        return MotionError(what, allowed=allowed, where=self._where, remedy=remedy)

    def _connect(self, advert: Advert) -> None:
        """Connect to a publisher. A new socket has no messages of an earlier one."""
        zmq = self._zmq
        chain = self._find_chain(advert)
        opened = self._context.socket(zmq.SUB)
        opened.setsockopt(zmq.RCVHWM, QUEUE_MESSAGES)
        opened.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        opened.setsockopt(zmq.LINGER, 0)
        opened.setsockopt(zmq.RCVTIMEO, int(1000 * POLL_TIME))
        opened.setsockopt(zmq.SUBSCRIBE, advert.name.encode())
        opened.connect(advert.address)
        self._socket, self._publisher = opened, advert
        self._decoder = make_decoder(get_kind(advert.type), self._query.target, chain)
        self._discovery.register(advert)

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._publisher = self._decoder = None

    def _find_chain(self, advert: Advert) -> Chain | None:
        """Return the entities of the moving frame in the scene; None for a topic whose names are not local."""
        target = self._query.target
        match = re.fullmatch(r"/world/([^/]+)/(dynamic_)?pose/info", self._to_local_name(advert.name))
        if match is None or target.frame or not target.model:
            return None
        service = f"/world/{match[1]}/scene/info"
        try:
            scene = request_service(
                self._zmq,
                self._settings,
                self._settings.make_topic(service),
                "Scene",
                self._where,
                timeout=min(SERVICE_TIMEOUT, self._settings.wait),
            )
            return find_chain_in_scene(scene, target)
        except TargetError as error:
            entities = error.entities
            more = f" and {len(entities) - MAX_LISTED} more" if entities[MAX_LISTED:] else ""
            allowed = f"must be one of {', '.join(entities[:MAX_LISTED])}{more}" if entities else "the scene is empty"
            what, remedy = f"{target.text} in service {service}", "add ?model=MODEL, or ?model=MODEL&link=LINK"
            raise MotionError(what, allowed=allowed, where=self._where, remedy=remedy) from error
        except (ServiceError, ValueError) as error:
            text = "service %s: %s; names of the messages are used, which are local"
            self._warn("scene", text % (service, error))
            return None

    def _serve(self) -> None:
        """Receive until `close`."""
        try:
            while not self._ending.is_set():
                self._update_publisher()
                self._receive()
        except Exception as error:  # noqa: BLE001  # the run learns of it
            self.fail(f"the receiver has failed: {error!r}")
        finally:
            self._disconnect()

    def _update_publisher(self) -> None:
        """Disconnect from a publisher that has vanished, connect to one that is there, and log further ones."""
        adverts = [
            advert
            for advert in self._directory.list_adverts()
            if self._to_local_name(advert.name) == self._name and advert.type
        ]
        current = self._publisher
        if current is not None and self._has_missing_entity and time.monotonic() >= self._next_scene:
            self._update_decoder(current)
        if current is not None and not any(advert == current for advert in adverts):
            LOG.warning("%s: %s: the publisher at %s has vanished; waiting", self.url, self.topic, current.address)
            self._disconnect()
            current = None
        for advert in adverts:
            if not self._has_type(advert):
                text = f"process {advert.process} publishes the type {advert.type}; it is ignored"
                self._warn(f"type {advert.process}", text)
            elif current is None and time.monotonic() >= self._next_scene:
                try:
                    self._connect(advert)
                except MotionError as error:
                    self._warn("target", str(error))
                    self._next_scene = time.monotonic() + SCENE_INTERVAL
                    return
                LOG.warning("%s: %s: the publisher is back, at %s", self.url, self.topic, advert.address)
                current = advert
            elif current is not None and advert != current:
                same = ", which cannot be told apart" if advert.address == current.address else " and ignored"
                text = f"two publishers: {current.address} is used; {advert.address} is another node{same}"
                self._warn(f"two {advert.process}", text)

    def _update_decoder(self, publisher: Advert) -> None:
        """Ask for the scene again: an entity that was created anew has another number."""
        self._has_missing_entity = False
        try:
            chain = self._find_chain(publisher)
            self._decoder = make_decoder(get_kind(publisher.type), self._query.target, chain)
        except MotionError as error:
            self._warn("target", str(error))
        self._next_scene = time.monotonic() + SCENE_INTERVAL

    def _receive(self) -> None:
        """Receive messages until the publishers have to be looked at."""
        opened, publisher, decoder = self._socket, self._publisher, self._decoder
        if opened is None or publisher is None or decoder is None:
            self._ending.wait(POLL_TIME)
            return
        end, count = time.monotonic() + POLL_TIME, 0
        name, address, kind = publisher.name.encode(), publisher.address.encode(), publisher.type.encode()
        receive, get_option, has_more = opened.recv, opened.getsockopt, self._zmq.RCVMORE
        while time.monotonic() < end:
            try:
                # One call that waits takes half of the time of a poller and a call; `recv_multipart` asks after each
                # frame whether there are more. A message with fewer frames takes the rest from the next one.
                frames = (receive(), receive(), receive(), receive())
            except self._zmq.Again:
                break
            count += 1
            while get_option(has_more):  # statistics, or not a message
                receive()
            if frames[1] == address and frames[3] == kind and frames[0] == name:
                self._decode(decoder, frames[2], publisher)
            elif frames[0] == name or not frames[0].startswith(name):  # not one of a topic with a longer name
                text = f"a message of {frames[1][:80]!r} with the type {frames[3][:80]!r} is ignored"
                self._warn("other", text)
        if count:
            self._directory.touch(publisher.process)

    def _decode(self, decoder: StateDecoder, data: bytes, publisher: Advert) -> None:
        """Put the state of a message into the queue."""
        try:
            result = decoder.decode(data)
        except TargetError as error:
            listed = ", ".join(error.entities[:MAX_LISTED])
            more = f" and {len(error.entities) - MAX_LISTED} more" if error.entities[MAX_LISTED:] else ""
            hint = f"; it has {listed}{more}" if listed else ""
            self._has_missing_entity = True
            self._warn(f"entity {error}", f"{error}{hint}; waiting for it; choose ?model=, ?link= or ?frame=")
            return
        except (ValueError, TypeError) as error:
            self._ignored += 1
            cause = "numbers" if isinstance(error, NumberError) else "invalid"
            self._warn(
                cause, f"a message of {publisher.address} is not a valid {publisher.type}: {error}; it is ignored"
            )
            return
        if result is None:
            if time.monotonic() - self._last_state > QUIET_TIME:
                self._warn("quiet", f"no message of {self._query.target.text} for {QUIET_TIME:g} s; waiting for it")
            return
        self._last_state = time.monotonic()
        stamp, state = result
        if stamp is None:
            self._warn("stamp", "the messages have no stamp; their time is that of their arrival")
            stamp = time.time_ns()
        self.put(stamp, state)

    def _warn(self, key: str, text: str) -> None:
        """Log a warning once for each key."""
        self._warnings.add(key, "", f"{self.topic}: {text}")

    def disconnect(self) -> None:
        """Stop the thread and close the sockets."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(2.0 * SERVICE_TIMEOUT + 5.0)
        self._discovery.close()
        self._context.destroy(linger=0)
        if self._ignored:
            LOG.warning("%s: %s: %s ignored", self.url, self.topic, format_count(self._ignored, "invalid message"))


def open_subscriber(url: StreamUrl, frame: DrivenFrame) -> Subscriber:
    """Connect to the simulator of a URL. Raises `MotionError`."""
    try:
        settings, query = read_query(url, frame)
        return GzSubscriber(url, query, settings, import_zmq(Where(url.text)))
    except RecordingError as error:
        where = error.where or Where(url.text)
        raise MotionError(error.what, error.value, allowed=error.allowed, where=where, remedy=error.remedy) from error


def read_query(url: StreamUrl, frame: DrivenFrame) -> tuple[Settings, Query]:
    """Return the settings and the query of a URL. Raises `RecordingError`."""
    settings, options = read_settings(url), url.options
    model = options.get("model", frame.context.model)
    root = Pose() if "link" in options else frame.context.root
    target = Target(model, options.get("link", "").removeprefix(f"{model}::"), options.get("frame", ""), root)
    topic = options.get("topic", "")
    topic = topic if not topic or topic.startswith("/") else f"/{topic}"
    return settings, Query(target, topic, options.get("type", ""), settings.world)
