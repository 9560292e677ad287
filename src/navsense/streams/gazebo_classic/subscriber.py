"""The motion of a link of a running Gazebo Classic.

    gazebo://HOST:PORT?model=MODEL&link=LINK&topic=TOPIC&type=TYPE        default: 127.0.0.1:11345

HOST:PORT is the address of the master. MODEL and LINK are the names in Gazebo; default: those of the world of the run.
TOPIC has the poses, by default `~/pose/info`; `~` is the namespace of the world. TYPE is `gazebo.msgs.LinkData` or
`gazebo.msgs.PosesStamped`; default: the first if Gazebo sends it.

Gazebo publishes `LinkData` of a link, on the topic `~/MODEL::LINK`, if it has an IMU. Each message is one state: both
velocities as they are sent, and the pose as in `link_pose`. Without it, each message with the pose of the link is one
state. The centre of mass of the link comes from a request to a gzserver on this machine.

The poses in `PosesStamped` are those of entities in their parents: models in the world, nested models in their model,
links in their model. Sources: `Link.cc` and `World.cc` of Gazebo 11.
"""

from __future__ import annotations

import functools
import logging
import math
import operator
import time

from navsense.core.errors import MotionError, Where, show
from navsense.core.pose import Pose
from navsense.core.text import format_count
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.motion.driven import LIMITS, State
from navsense.streams.gazebo_classic.entity_info import EntityRequests, LinkInfo
from navsense.streams.gazebo_classic.link_pose import MAX_ERROR, LinkPose, PoseError
from navsense.streams.gazebo_classic.node import DEFAULT_PORT, ClassicNode, ClassicNodeError, ClassicSubscription
from navsense.streams.gazebo_classic.packet import PACKAGE, LinkData, decode_link_data, decode_poses
from navsense.streams.stream import LOOPBACK, StreamUrl
from navsense.streams.subscriber import DrivenFrame, Subscriber
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

LINK_DATA, POSES = f"{PACKAGE}.LinkData", f"{PACKAGE}.PosesStamped"
"""Message types that can be a motion."""

MOTION_OPTIONS = ("topic", "type", "model", "link")
"""Options of the URL of a motion."""

NAMESPACE_TIMEOUT = 10.0
"""Longest time (s) until the master lists the topic of the poses: gzserver may still load its world."""

LINK_DATA_TIMEOUT = 3.0
"""Time (s) without `LinkData` after which the poses alone are used."""

MAX_VELOCITY = min(LIMITS["velocity"][0], LIMITS["angular_velocity"][0])
"""Largest velocity (m/s, rad/s) of a message."""

REST_TIME = NANOSECONDS_PER_SECOND // 2
"""Time (ns) without a pose and without velocity after which a link is at rest."""

MAX_WAITING = 10_000
"""Largest number of `LinkData` that wait for the first pose."""

MAX_EARLY = 1000
"""Largest number of poses that wait for the `LinkData` of their time."""

LISTED_NAMES = 8
"""Largest number of names in an error."""


class GazeboClassicSubscriber(Subscriber):
    """Receives the states of one link from Gazebo Classic."""

    def __init__(self, url: StreamUrl, frame: DrivenFrame) -> None:
        """Connect to the master, and subscribe. Raises `MotionError`."""
        where, port = Where(url.text), DEFAULT_PORT if url.port is None else url.port
        _check_url(url)
        self._type = url.options.get("type", "")
        self._model, self._link = _select_link(url, frame)
        parts = self._link.split("::")
        self._entities = [("::".join(parts[:count])) for count in range(1, len(parts) + 1)]
        self._names = frozenset(name.encode() for name in self._entities)
        super().__init__(url.with_port(port), f"link {self._link}")
        self._pose: LinkPose | None = None
        self._waiting: list[LinkData] = []
        self._early: dict[int, Pose] = {}
        self._has_poses_only = self._type == POSES
        self._last_stamp: int | None = None
        self._period = 0
        self._info: LinkInfo | None = None
        self._missing = 0
        self._warnings = WarningLog(LOG, f"{self.url}: {self.topic}")
        try:
            self._node = ClassicNode((url.host, port), LOOPBACK, name=self.url, on_lost=self.fail)
        except ClassicNodeError as error:
            what, remedy = "master of Gazebo Classic", "start it: gzserver WORLD"
            raise MotionError(what, f"{url.host}:{port}", where=where, allowed=str(error), remedy=remedy) from error
        try:
            self._subscribe(url)
        except BaseException:
            self._node.stop()
            raise

    def _subscribe(self, url: StreamUrl) -> None:
        """Subscribe to both topics. Raises `MotionError`."""
        self._pose_topic, world = self._find_pose_topic(url)
        self._link_topic = f"/gazebo/{world}/{self._link}"
        self._info = self._find_link(world, url) if self._node.is_local else None
        if self._type != POSES:
            receive, end = self._receive_link_data, self._end_topic
            self._node.subscribe(ClassicSubscription(self._link_topic, LINK_DATA, receive, end, is_last=True))
        if self._type == LINK_DATA and not self._node.list_publishers(self._link_topic):
            others = [one.topic for one in self._node.publishers if one.type == LINK_DATA]
            allowed = f"must be one of {', '.join(others[:LISTED_NAMES])}" if others else "no link has one"
            what, remedy = "topic of the link", "give the link a sensor of type imu, or omit type"
            raise MotionError(what, self._link_topic, where=Where(url.text), allowed=allowed, remedy=remedy)
        self._start = time.monotonic()
        self._node.subscribe(ClassicSubscription(self._pose_topic, POSES, self._receive_poses, self._end_topic))
        LOG.info("%s: follows link %s in %s of %s", self.url, self._link, self._pose_topic, self._node.version)

    def _find_pose_topic(self, url: StreamUrl) -> tuple[str, str]:
        """Return the topic of the poses and the name of its world. Raises `MotionError` if no publisher has it."""
        wanted, end = url.options.get("topic", "~/pose/info"), time.monotonic() + NAMESPACE_TIMEOUT
        while True:
            worlds = [name for name in self._node.namespaces if name and not name.startswith("/")]
            topics = {wanted.replace("~", f"/gazebo/{world}", 1): world for world in worlds}
            if not wanted.startswith("~"):
                name = wanted.split("/")[2] if wanted.startswith("/gazebo/") and wanted.count("/") > 2 else ""
                topics = {wanted: name}
            found = [topic for topic in topics if any(one.type == POSES for one in self._node.list_publishers(topic))]
            if len(found) == 1:
                return found[0], topics[found[0]]
            if found or self._node.lost or time.monotonic() > end:
                break
            self._node.wait_for_change(0.5)
        where = Where(url.text)
        if self._node.lost:
            raise MotionError("master of Gazebo Classic", self._node.lost, where=where)
        if found:
            allowed, remedy = f"must be one of {', '.join(found)}", f"write ?topic={found[0]}"
            raise MotionError("topic of the poses", wanted, where=where, allowed=allowed, remedy=remedy)
        others = sorted({one.topic for one in self._node.publishers if one.type == POSES})
        allowed = f"must be one of {', '.join(others[:LISTED_NAMES])}" if others else f"no topic has {POSES}"
        raise MotionError("topic of the poses", wanted, where=where, allowed=allowed, remedy="load a world in gzserver")

    def _find_link(self, world: str, url: StreamUrl) -> LinkInfo | None:
        """Return what Gazebo answers about the link, None without an answer. Raises `MotionError` if it has no link."""
        requests, where = EntityRequests(self._node, world), Where(url.text)
        try:
            links = requests.find_links(self._entities[0])
            if links is not None and self._link not in links:
                what, value, names = "model in Gazebo", self._entities[0], requests.list_models()
                if links:
                    what, value, names = "link in Gazebo", self._link, list(links)
                allowed = f"must be one of {', '.join(names[:LISTED_NAMES])}"
                raise MotionError(what, value, where=where, allowed=allowed, remedy="write ?model=MODEL&link=LINK")
        except ValueError as error:
            LOG.warning("%s: %s: the answer of Gazebo is not used: %s", self.url, self.topic, error)
            return None
        if links is None:
            LOG.warning("%s: %s: Gazebo does not answer; its centre of mass is not known", self.url, self.topic)
            return None
        return links[self._link]

    @property
    def largest_error(self) -> PoseError:
        """The largest difference between the integrated poses and those of Gazebo; jumps are not included."""
        return PoseError(0.0, 0.0) if self._pose is None else self._pose.largest_error

    def disconnect(self) -> None:
        """Disconnect, and log what was not exact."""
        self._node.stop()
        if self._missing:
            count = format_count(self._missing, "physics step")
            LOG.warning("%s: %s: %s missing between its states", self.url, self.topic, count)
        if self._pose is not None:
            distance, angle = self.largest_error
            LOG.info("%s: %s: largest correction %.2g m, %.2g rad", self.url, self.topic, distance, angle)

    def _end_topic(self, reason: str) -> None:
        self.fail(reason)

    def _warn(self, cause: str, text: str) -> None:
        self._warnings.add(cause, "", text)

    def _receive_link_data(self, data: bytes) -> None:
        """Put a state for a message of type `LinkData`. Raises `ValueError`."""
        if self._has_poses_only:
            self._warn("late", f"{LINK_DATA} is ignored: it came after {LINK_DATA_TIMEOUT:g} s of poses alone")
            return
        link_data = decode_link_data(data)
        _, velocity, omega = link_data
        if velocity is None or omega is None:
            raise ValueError("LinkData without both velocities")
        if max(map(abs, (*velocity, *omega))) > MAX_VELOCITY:
            raise ValueError(f"velocities {velocity} m/s and {omega} rad/s, which are too large")
        if self._pose is None:
            self._wait_for_pose(link_data)
        else:
            self._step(link_data)

    def _wait_for_pose(self, link_data: LinkData) -> None:
        """Keep a message that came before the first pose. Gazebo sends no poses of a model at rest."""
        if len(self._waiting) == MAX_WAITING:
            del self._waiting[0]
            self._warn("pose", f"no pose in {self._pose_topic} yet")
        self._waiting.append(link_data)
        first = self._waiting[0]
        velocities = (first.velocity, first.angular_velocity, link_data.velocity, link_data.angular_velocity)
        is_at_rest = not any(vector is None or any(vector) for vector in velocities)
        if self._info is not None and is_at_rest and link_data.stamp - first.stamp >= REST_TIME:
            LOG.info("%s: %s: starts at rest", self.url, self.topic)
            self._start_pose(first.stamp, self._info.pose)
        elif link_data.stamp in self._early:
            self._start_pose(link_data.stamp, self._early.pop(link_data.stamp))

    def _step(self, link_data: LinkData) -> None:
        """Integrate one step, and put its state."""
        pose, (stamp, velocity, omega) = self._pose, link_data
        assert pose is not None and velocity is not None and omega is not None  # noqa: S101, PT018
        step = stamp - pose.stamp
        if step == 0:
            self._warn("twice", "messages with the stamp of the one before are ignored")
            return
        if step < 0:
            self._warn("clock", f"the clock jumps back by {-step / NANOSECONDS_PER_SECOND:.9g} s")
            self._pose, self._period = None, 0
            self._waiting = []
            self._wait_for_pose(link_data)
            return
        if self._period and 2 * step > 3 * self._period:
            count = round(step / self._period) - 1
            self._missing += count
            first = f"{format_count(count, 'physics step')} missing before {stamp / NANOSECONDS_PER_SECOND:.9g} s"
            self._warn("missing", f"{first}; the pose is corrected by the next one of Gazebo")
        self._period = min(self._period, step) if self._period else step
        pose.step(stamp, velocity, omega)
        if (early := self._early.pop(stamp, None)) is not None:
            self._correct(stamp, early)
        self.put(stamp, State(Pose(pose.position, pose.rotation), velocity, angular_velocity=omega))

    def _correct(self, stamp: int, pose: Pose) -> None:
        """Correct the integrated pose."""
        error = None if self._pose is None else self._pose.correct(stamp, pose.position, pose.rotation)
        if error is not None and max(error) > MAX_ERROR:
            seconds, jump = stamp / NANOSECONDS_PER_SECOND, f"{error.distance:.3g} m, {error.angle:.3g} rad"
            self._warn("jump", f"the pose jumps at {seconds:.9g} s by {jump} that its velocity does not have")

    def _receive_poses(self, data: bytes) -> None:
        """Use a message of type `PosesStamped`. Raises `ValueError`."""
        stamp, poses, names = decode_poses(data, self._names)
        if len(poses) < len(self._entities):
            self._check_names(names, set(poses))
            return
        pose = functools.reduce(operator.matmul, (poses[entity] for entity in self._entities))
        if not math.hypot(*pose.position) <= LIMITS["position"][0]:
            raise ValueError(f"a position of {pose.position} m")
        if self._has_poses_only:
            self._put_pose(stamp, pose)
        elif self._pose is not None and stamp <= self._pose.stamp:
            self._correct(stamp, pose)
        elif any(link_data.stamp == stamp for link_data in self._waiting):
            self._start_pose(stamp, pose)
        elif (
            self._pose is None
            and not self._waiting
            and self._type != LINK_DATA
            and time.monotonic() - self._start > LINK_DATA_TIMEOUT
        ):
            self._has_poses_only = True
            text = f"no {LINK_DATA} on {self._link_topic}, so its poses alone are used"
            LOG.warning("%s: %s: %s; give the link a sensor of type imu", self.url, self.topic, text)
            self._put_pose(stamp, pose)
        else:
            if len(self._early) == MAX_EARLY:
                del self._early[next(iter(self._early))]
            self._early[stamp] = pose

    def _check_names(self, names: list[str], found: set[str]) -> None:
        """End with an error if Gazebo has the model, but not its link."""
        if self._entities[0] in found:
            missing = next(entity for entity in self._entities if entity not in found)
            others = [name for name in names if name.startswith(f"{self._entities[0]}::")][:LISTED_NAMES]
            self.fail(f"{missing} is not in {self._pose_topic}", allowed=f"must be one of {', '.join(others)}")
        elif time.monotonic() - self._start > LINK_DATA_TIMEOUT:
            models = show(", ".join(name for name in names if "::" not in name))
            self._warn("model", f"no pose of {self._entities[0]} in {self._pose_topic} yet, only of {models}")

    def _start_pose(self, stamp: int, pose: Pose) -> None:
        """Start the integrated pose, with a pose of Gazebo at the stamp of a message that waits."""
        center = self._info.center if self._info is not None else Pose().position
        self._pose = LinkPose(stamp, pose.position, pose.rotation, center)
        waiting, self._waiting = self._waiting, []
        for link_data in waiting:
            if link_data.stamp > stamp:
                self._step(link_data)

    def _put_pose(self, stamp: int, pose: Pose) -> None:
        """Put a pose without velocities. Gazebo may repeat a stamp."""
        if stamp != self._last_stamp:
            self._last_stamp = stamp
            self.put(stamp, State(pose))


def _check_url(url: StreamUrl) -> None:
    """Raise `MotionError` for an invalid path, port or type."""
    where = Where(url.text)
    if url.path not in ("", "/"):
        raise MotionError("path of the URL", url.path, where=where, allowed="must be empty")
    if url.port == 0:
        raise MotionError("port of the master", 0, where=where, allowed="must be a number from 1 to 65535")
    if url.options.get("type", POSES) not in (LINK_DATA, POSES):
        allowed = f"must be {LINK_DATA} or {POSES}"
        raise MotionError("option type", url.options["type"], where=where, allowed=allowed)
    for option in ("topic", "model", "link"):
        if url.options.get(option) == "":
            raise MotionError(f"option {option}", "is empty", where=where, remedy="write a name, or omit the option")


def _select_link(url: StreamUrl, frame: DrivenFrame) -> tuple[str, str]:
    """Return the names of the model and of the link in Gazebo. Raises `MotionError`."""
    model = url.options.get("model") or frame.context.model or frame.link.partition("::")[0]
    own_model = frame.context.model or frame.link.rpartition("::")[0]
    own_link = frame.link.removeprefix(f"{own_model}::") if own_model else frame.link
    link = url.options.get("link") or own_link
    if not model or not link:
        remedy = "write ?model=MODEL&link=LINK"
        raise MotionError("link in Gazebo", where=Where(url.text), allowed="must have a name", remedy=remedy)
    return model, link if link.startswith(f"{model}::") else f"{model}::{link}"
