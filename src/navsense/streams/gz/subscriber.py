"""The subscriber of Gazebo transport: the states of a frame in a topic of a running simulator.

    gz://HOST?partition=PARTITION&version=VERSION&world=WORLD&topic=TOPIC&type=TYPE&model=MODEL&link=LINK&frame=ENTITY

Without `topic`, the first of these that a process advertises is used:

    /model/MODEL/pose, /world/WORLD/model/MODEL/pose    PosePublisher: each step
    /world/WORLD/dynamic_pose/info                      60 Hz of wall time
    /world/WORLD/pose/info                              60 Hz of wall time

The names in the messages of `pose/info` are local, so the tree of models and links comes from the service
`/world/WORLD/scene/info`. Without the service, the names are used as in a recording.

Messages without an entity of the scene are a sign that it was created anew, with another number. A thread of its own
then asks for the scene again. Without an answer, the numbers of the earlier scene stay.

Sources: the systems PosePublisher and SceneBroadcaster of gz-sim.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

from navsense.core.errors import MotionError, NavsenseError, Where
from navsense.core.pose import Pose
from navsense.core.text import format_count, list_names
from navsense.messages.gz import PACKAGE
from navsense.streams.gz.discovery import Advert
from navsense.streams.gz.node import import_zmq
from navsense.streams.gz.poses import (
    STATE_TYPES,
    Chain,
    NumberError,
    Target,
    TargetError,
    find_chain_in_scene,
    make_decoder,
)
from navsense.streams.gz.services import ServiceError, request_service
from navsense.streams.gz.settings import Settings, read_settings
from navsense.streams.gz.topic_receiver import TopicReceiver
from navsense.streams.gz.versions import split_type_name
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

QUIET_TIME = 5.0
"""Time (s) after which messages without the moving entity are logged."""


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
    package, kind = split_type_name(type_name)
    return kind if package and kind in STATE_TYPES else ""


class GzSubscriber(Subscriber):
    """Receives the states of a frame on Gazebo transport."""

    accepts_many = False

    def __init__(self, url: StreamUrl, query: Query, settings: Settings, zmq: Any) -> None:
        """Find the topic and connect to it. Raises `MotionError` and `RecordingError`."""
        super().__init__(url.text, "Gazebo transport")
        self._query, self._settings, self._zmq, self._where = query, settings, zmq, Where(url.text)
        self._ignored, self._last_state = 0, time.monotonic()
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._chain: Chain | None = None
        self._new_chain: Chain | None = None
        self._scene_thread: threading.Thread | None = None
        self._next_scene = 0.0
        self._receiver = TopicReceiver(settings, self._where, zmq)
        try:
            advert = self._find_topic()
            name = self._receiver.to_local_name(advert.name)
            self.topic = f"topic {name}"
            self.warnings = WarningLog(LOG, f"{self.url}: {self.topic}")
            LOG.info("%s: %s of type %s moves %s", self.url, self.topic, advert.type, query.target.text)
            self._receiver.start(name, self, advert)
        except BaseException:
            self.close()
            raise

    def _find_topic(self) -> Advert:
        """Return the topic to subscribe to. Raises `MotionError` if none is advertised in time."""
        wait = self._settings.wait
        listening = 0.0 if self._query.topic else min(LISTEN_TIME, wait)
        self._receiver.is_ending.wait(listening)
        advert = self._receiver.find(self._query.topic, self._select, wait - listening)
        if advert is None:
            raise self._make_topic_error()
        return advert

    def _select(self, adverts: list[Advert]) -> Advert | None:
        """Return the topic with the name of the query, or the first one by priority. Raises `MotionError`."""
        query, prefix, to_local_name = self._query, self._settings.make_topic(""), self._receiver.to_local_name
        topics = [advert for advert in adverts if advert.type and advert.name.startswith(prefix)]
        if query.topic:
            named = [advert for advert in topics if to_local_name(advert.name) == query.topic]
            usable = [advert for advert in named if self.has_type(advert)]
            if named and not usable:
                kinds = query.type or ", ".join(f"{PACKAGE}.{kind}" for kind in STATE_TYPES)
                what, allowed = f"type of topic {query.topic}", f"must be {kinds}"
                remedy = "omit type=" if get_kind(named[0].type) else "name another topic"
                raise MotionError(what, named[0].type, allowed=allowed, where=self._where, remedy=remedy)
            return usable[0] if usable else None
        for pattern in query.priorities:
            matching = {
                name: advert
                for advert in topics
                if self.has_type(advert) and re.fullmatch(pattern, name := to_local_name(advert.name))
            }
            if len(matching) > 1:
                worlds = ", ".join(sorted(name.split("/")[2] for name in matching))
                allowed, remedy = f"must be one of {worlds}", "add ?world=WORLD"
                raise MotionError("several worlds are advertised", allowed=allowed, where=self._where, remedy=remedy)
            if matching:
                return next(iter(matching.values()))
        return None

    def _make_topic_error(self) -> MotionError:
        """Return the error for a topic that no process advertises."""
        query, wait = self._query, self._settings.wait
        what = f"no publisher of topic {query.topic}" if query.topic else "no topic with poses"
        adverts = [advert for advert in self._receiver.directory.list_adverts() if get_kind(advert.type)]
        names = list_names(sorted({self._receiver.to_local_name(advert.name) for advert in adverts}))
        partition = self._settings.partition
        allowed = f"none in the partition {partition} within {wait:g} s; topics with poses: {names or 'none'}"
        prefix = self._settings.prefix
        remedy = f"start the simulator with {prefix}IP={self._receiver.host} and {prefix}PARTITION={partition}"
        return MotionError(what, allowed=allowed, where=self._where, remedy=remedy)

    def has_type(self, advert: Advert) -> bool:
        """Return True for a topic with states, of the type of the query."""
        kind = get_kind(advert.type)
        return bool(kind) and self._query.type in ("", advert.type, kind)

    def open_publisher(self, advert: Advert) -> None:
        """Ask for the scene and make a decoder. Raises `MotionError` if the scene does not have the entity."""
        self._chain = self._find_chain(advert) or self._chain
        self._decoder = make_decoder(get_kind(advert.type), self._query.target, self._chain)

    def report_publisher(self, advert: Advert, *, is_connected: bool) -> None:
        """Log that the publisher is back, or has vanished."""
        text = (
            "%s: %s: the publisher is back, at %s"
            if is_connected
            else "%s: %s: the publisher at %s has vanished; waiting"
        )
        LOG.warning(text, self.url, self.topic, advert.address)

    def _find_chain(self, advert: Advert) -> Chain | None:
        """Return the entities of the moving frame in the scene; None for a topic whose names are not local.

        Also None, with a warning, if the service does not respond. Raises `MotionError` without the entity.
        """
        target = self._query.target
        match = re.fullmatch(r"/world/([^/]+)/(dynamic_)?pose/info", self._receiver.to_local_name(advert.name))
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
                is_ending=self._receiver.is_ending,
            )
            return find_chain_in_scene(scene, target)
        except TargetError as error:
            names = list_names(error.entities)
            what, remedy = f"{target.text} in service {service}", "add ?model=MODEL, or ?model=MODEL&link=LINK"
            allowed = f"must be one of {names}" if names else "the scene is empty"
            raise MotionError(what, allowed=allowed, where=self._where, remedy=remedy) from error
        except (ServiceError, ValueError) as error:
            used = (
                "names of the messages are used, which are local"
                if self._chain is None
                else "the earlier scene is used"
            )
            if not self._receiver.is_ending.is_set():
                self.warnings.add("scene", "", f"service {service}: {error}; {used}")
            return None

    def _ask_for_scene(self, advert: Advert) -> None:
        """Ask for the scene again, in a thread of its own."""

        def ask() -> None:
            try:
                self._new_chain = self._find_chain(advert)
            except NavsenseError as error:
                self.warnings.add("target", "", str(error))
            except Exception:
                LOG.exception("%s: %s: internal error in the request for the scene", self.url, self.topic)
            finally:
                self._next_scene = time.monotonic() + SCENE_INTERVAL

        is_asking = self._scene_thread is not None and self._scene_thread.is_alive()
        if self._chain is None or is_asking or time.monotonic() < self._next_scene:
            return
        self._scene_thread = threading.Thread(target=ask, name="navsense-gz-scene", daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread: with a later message
            self._scene_thread.start()

    def read(self, data: bytes, advert: Advert) -> None:
        """Put the state of a message into the queue."""
        if self._new_chain is not None:
            self._chain, self._new_chain = self._new_chain, None
            self._decoder = make_decoder(get_kind(advert.type), self._query.target, self._chain)
        try:
            result = self._decoder.decode(data)
        except TargetError as error:
            names = list_names(error.entities)
            hint = f"; it has {names}" if names else ""
            self._ask_for_scene(advert)
            text = f"{error}{hint}; waiting for it; choose ?model=, ?link= or ?frame="
            self.warnings.add(f"entity {error}", "", text)
            return
        except (ValueError, TypeError) as error:
            self._ignored += 1
            cause = "numbers" if isinstance(error, NumberError) else "invalid"
            text = f"a message of {advert.address} is not a valid {advert.type}: {error}; it is ignored"
            self.warnings.add(cause, "", text)
            return
        if result is None:
            if time.monotonic() - self._last_state > QUIET_TIME:
                text = f"no message of {self._query.target.text} for {QUIET_TIME:g} s; waiting for it"
                self.warnings.add("quiet", "", text)
            return
        self._last_state = time.monotonic()
        stamp, state = result
        if stamp is None:
            self.warnings.add("stamp", "", "the messages have no stamp; their time is that of their arrival")
            stamp = self._clock_offset + time.monotonic_ns()  # never goes back
        self.put(stamp, state)

    def disconnect(self) -> None:
        """Stop the threads and close the sockets."""
        self._receiver.close()
        if self._scene_thread is not None and self._scene_thread.is_alive():
            self._scene_thread.join(5.0)
        if self._ignored:
            LOG.warning("%s: %s: %s ignored", self.url, self.topic, format_count(self._ignored, "invalid message"))


def open_subscriber(url: StreamUrl, frame: DrivenFrame) -> Subscriber:
    """Connect to the simulator of a URL. Raises `MotionError` and `RecordingError`."""
    settings, query = read_query(url, frame)
    return GzSubscriber(url, query, settings, import_zmq(Where(url.text)))


def read_query(url: StreamUrl, frame: DrivenFrame) -> tuple[Settings, Query]:
    """Return the settings and the query of a URL. Raises `RecordingError`."""
    settings, options = read_settings(url), url.options
    model = options.get("model", frame.context.model)
    root = Pose() if "link" in options else frame.context.root
    target = Target(model, options.get("link", "").removeprefix(f"{model}::"), options.get("frame", ""), root)
    topic = options.get("topic", "")
    topic = topic if not topic or topic.startswith("/") else f"/{topic}"
    return settings, Query(target, topic, options.get("type", ""), settings.world)
