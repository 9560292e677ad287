"""The motion of a ROS topic: the choice of the topic, and the states of its messages. ROS 1 and ROS 2 share it.

    ?topic=TOPIC&type=TYPE&model=MODEL&link=LINK&frame=FRAME&twist=AXES

Poses and frames are those that `recordings.recorded_motion` reads from the same topic. `ros_messages.MOTION_TYPES` has
the message types.

- The twist of an odometry is in the axes of its child frame, as nav_msgs/Odometry defines. `twist=world` reads it in
  those of the world, which is what Gazebo's p3d plug-in publishes, and `twist=none` ignores it.
- The twists of gazebo_msgs are in the axes of the world. That of a model is the one of its canonical link.

Sources: nav_msgs/Odometry; gazebo 11, `Model::WorldLinearVel`; gazebo_ros_pkgs, gazebo_ros_api_plugin.cpp and
gazebo_ros_p3d.cpp.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from navsense.core.errors import MotionError, Where
from navsense.core.pose import Pose, ensure_unit, rotate
from navsense.core.text import list_names
from navsense.core.typing import Vector
from navsense.motion.driven import Frame, State, state_row
from navsense.streams.ros_messages import MOTION_TYPES, MotionType, Reader, Sample, decode_entity, decode_samples
from navsense.streams.stream import StreamUrl
from navsense.streams.subscriber import DrivenFrame
from navsense.streams.warning_log import WarningLog

LOG = logging.getLogger(__name__)

TWIST_AXES = ("body", "world", "none")
"""Values of the option `twist`."""

TOPIC_NAME = re.compile(r"(/\w+)+", re.ASCII)
"""Full names of topics."""


class TopicSource(Protocol):
    """A publisher of a topic. Its text names it."""

    @property
    def is_active(self) -> bool:
        """True until it disconnects."""
        ...


class PublisherChoice:
    """Follows one publisher of a topic at a time. Another one is followed after the first has disconnected."""

    def __init__(self, warnings: WarningLog) -> None:
        """Follow the first publisher that sends."""
        self._warnings = warnings
        self._chosen: TopicSource | None = None

    def accepts(self, source: TopicSource, effect: str = "") -> bool:
        """Return False for a message of another publisher, and warn of it and its effect."""
        chosen = self._chosen
        if chosen is source:
            return True
        if chosen is None or not chosen.is_active:
            self._chosen = source
            return True
        text = f"{chosen} and {source} publish it; {effect or f'the messages of {source} are not used'}"
        self._warnings.add("two", source, text)
        return False


SHORTEST_STEP = 8_000_000
"""Length (ns) of the shortest step whose velocities are compared. At 1 kHz each comparison would cost too much."""


@dataclass
class TwistCheck:
    """Compares the displacements between poses with the velocities, in both axes.

    moved, body, world: sums of the squares (m^2) of the displacements, and of their differences from the integral of
        the velocity with the axes of the child frame and of the world.
    speed: sum of the squares of the velocities (m^2/s^2).
    """

    moved: float = 0.0
    body: float = 0.0
    world: float = 0.0
    speed: float = 0.0
    count: int = 0
    last: tuple[Sample, Vector] | None = None
    is_done: bool = False

    def find_problem(self, sample: Sample, rotated: Vector) -> str:
        """Return a problem of the velocities so far, "" without one. `rotated`: the velocity as one in body axes."""
        last, self.last = self.last, (sample, rotated)
        if last is None or sample.linear is None or last[0].linear is None:
            return ""
        step = (sample.stamp - last[0].stamp) * 1e-9
        if not 0.0 < step < 1.0:
            return ""
        for axis in range(3):
            moved = sample.position[axis] - last[0].position[axis]
            self.moved += moved * moved
            self.body += (moved - 0.5 * step * (rotated[axis] + last[1][axis])) ** 2
            self.world += (moved - 0.5 * step * (sample.linear[axis] + last[0].linear[axis])) ** 2
            self.speed += sample.linear[axis] ** 2
        self.count += 1
        if self.count < 20 or self.moved < 1e-4:
            return ""
        if self.speed == 0.0:
            return "the velocities are zero, but the poses move; if the publisher sets none, add &twist=none"
        if self.body > 0.1 * self.moved and self.world < 0.01 * self.moved:
            return (
                "the velocities do not fit the poses in the axes of the child frame, but in those of the world; "
                "if the publisher is Gazebo's p3d plug-in, add &twist=world"
            )
        return ""


class MotionTopic:
    """The topic with the motion of a frame.

    name: of the topic, "" before it is known.
    type: of its messages, "" before it is known.
    """

    def __init__(
        self, url: StreamUrl, frame: DrivenFrame, types: Collection[str], normalize: Callable[[str], str]
    ) -> None:
        """Check the options. `types`: the message types of this ROS. `normalize` returns their names in this ROS.

        Raises `MotionError`.
        """
        self.url, self.name, self._frame, self._where = url.text, "", frame, Where(url.text)
        options = url.options
        self._options = {name: options.get(name, "") for name in ("model", "link", "frame")}
        self._moving_frame, self._parent = options.get("frame", "").lstrip("/"), ""
        self._twist = options.get("twist", "body")
        if self._twist not in TWIST_AXES:
            allowed = f"must be one of {', '.join(TWIST_AXES)}"
            raise MotionError("option twist", self._twist, allowed=allowed, where=self._where)
        self._types = {normalize(kind): MOTION_TYPES[kind] for kind in types}
        self._ros1_names = {normalize(kind): kind for kind in types}
        self.allowed_types = f"must be one of {', '.join(self._types)}"
        self._normalize = normalize
        self.type = normalize(options.get("type", "")) if options.get("type") else ""
        if self.type and self.type not in self._types:
            raise MotionError("option type", self.type, allowed=self.allowed_types, where=self._where)
        self._twist_check = TwistCheck()
        self._is_first = True

    @property
    def content(self) -> MotionType:
        """What the messages of the type hold. The type must be known."""
        return self._types[self.type]

    @property
    def has_commands(self) -> bool:
        """True for velocity commands."""
        return bool(self.type) and self.content.kind == "commands"

    @property
    def title(self) -> str:
        """The topic, for messages."""
        return f"topic {self.name}"

    def choose(self, name: str, published: Collection[str], types: Mapping[str, str]) -> None:
        """Set the topic, by its name or the only one, and its type if it is known. Raises `MotionError`.

        published: the topics that have publishers. types: type of each topic; "*" if it is not known.
        """
        types = {topic: self._normalize(kind) for topic, kind in types.items()}
        self.name = self._find_topic(name, types) if name else self._select_topic(published, types)
        kind = types.get(self.name, "*")
        if kind != "*":
            self.check_type(kind)
        kind = self.type or kind
        if kind != "*":
            self.check_options(kind)
            self.type = kind

    def _find_topic(self, name: str, types: Mapping[str, str]) -> str:
        """Return the full name of a topic, which can be given by any unambiguous ending. Raises `MotionError`."""
        topic = "/" + name.lstrip("/")
        if not TOPIC_NAME.fullmatch(topic):
            allowed = "must be a name of ROS: letters, digits, _ and /"
            raise MotionError("option topic", name, allowed=allowed, where=self._where)
        endings = [other for other in types if other.endswith(topic)]
        return endings[0] if len(endings) == 1 and not name.startswith("/") else topic

    def check_type(self, kind: str) -> None:
        """Raise `MotionError` if the type of the topic is another one than in the URL, or cannot be a motion."""
        if self.type not in ("", kind):
            remedy = f"write type={kind}, or omit it"
            allowed = f"{self.title} is {kind}"
            raise MotionError("option type", self.type, allowed=allowed, where=self._where, remedy=remedy)
        if kind not in self._types:
            raise MotionError(f"type of {self.title}", kind, allowed=self.allowed_types, where=self._where)

    def _find_commands(self, topics: list[str]) -> list[str]:
        """Return the topics of velocity commands with the name in the world: exact, or as the longer or shorter ending.

        The topic may be in a namespace, and the name in the world too.
        """
        name = self._frame.context.command_topic.strip("/")
        if not name:
            return []
        exact = [topic for topic in topics if topic.strip("/") == name]
        longer, shorter = (
            [topic for topic in topics if topic.endswith(f"/{ending}")] for ending in (name, name.rpartition("/")[2])
        )
        return exact or longer or shorter

    def list_candidates(self, published: Collection[str], types: Mapping[str, str]) -> list[str]:
        """Return the topics that can be followed, each with its type. Those with poses come first."""
        kinds = {topic: self._normalize(kind) for topic, kind in types.items()}
        topics = [
            topic
            for topic, kind in kinds.items()
            if kind in self._types and self.type in ("", kind) and topic in published
            if not topic.endswith("tf_static")
        ]
        poses = [topic for topic in topics if self._types[kinds[topic]].kind not in ("transforms", "commands")]
        commands = [topic for topic in topics if self._types[kinds[topic]].kind == "commands"]
        return [f"{topic} ({kinds[topic]})" for topic in sorted(poses or self._find_commands(commands) or topics)]

    def _select_topic(self, published: Collection[str], types: Mapping[str, str]) -> str:
        """Return the only topic that can be followed; topics with poses have priority. Raises `MotionError`."""
        candidates = self.list_candidates(published, types)
        if len(candidates) == 1:
            return candidates[0].partition(" ")[0]
        kind = f" of the type {self.type}" if self.type else ""
        if candidates:
            what, allowed = f"{len(candidates)} topics{kind}", f"must be one of {list_names(candidates)}"
            remedy = f"add ?topic={candidates[0].partition(' ')[0]}"
        else:
            what = f"no topic{kind} that can be followed"
            allowed = f"needs a publisher of {', '.join(self._types)}"
            remedy = "start the publisher, or name its topic: ?topic=TOPIC"
        raise MotionError(what, allowed=allowed, where=self._where, remedy=remedy)

    def check_options(self, kind: str) -> None:
        """Raise `MotionError` for an option that a message type has no use for."""
        motion_kind = self._types[kind].kind
        usable = {"models": ("model",), "links": ("model", "link"), "odometry": ("frame",), "transforms": ("frame",)}
        for name, value in self._options.items():
            if value and name not in usable.get(motion_kind, ()):
                allowed = f"{kind} has no name of a {'frame that moves' if name == 'frame' else name}"
                raise MotionError(f"option {name}", value, allowed=allowed, where=self._where, remedy="omit it")
        if self._twist != "body" and motion_kind != "odometry":
            allowed = f"selects the axes of an odometry, and {self.title} is {kind}"
            raise MotionError("option twist", self._twist, allowed=allowed, where=self._where, remedy="omit it")

    def find_sample(self, kind: str, reader: Reader, warn: Callable[[str, str], None]) -> Sample | None:
        """Return the values of the frame in a message, None if it has none of them.

        kind: the type of the message. warn: logs a warning with its cause, once.

        Raises `ValueError` for an invalid message, and `MotionError` if no later message can be used.
        """
        content = self._types[kind].kind
        if content in ("models", "links"):
            name = self._get_entity_name(content)
            sample, names = decode_entity(reader, name)
            if sample is None:
                noun = content.removesuffix("s")
                listed = list_names(names) or "none"
                remedy = f"add &{noun}=NAME" if not self._options[noun] else "waiting for it"
                warn("entity", f"has no {noun} {name}; it has {listed}; {remedy}")
            return sample
        samples = decode_samples(self._ros1_names[kind], reader)
        if content == "transforms":
            return self._select_transform(samples)
        sample = samples[0]
        if content == "odometry" and self._options["frame"] and sample.frame != self._moving_frame:
            raise MotionError(f"frame: {self._options['frame']}; is {sample.frame}")
        return sample

    def _get_entity_name(self, kind: str) -> str:
        """Return the name of the model or link of the frame in states of Gazebo."""
        model = self._options["model"] or self._frame.context.model or self._frame.link.partition("::")[0]
        if kind == "models":
            return model
        link = self._options["link"] or self._frame.link
        if self._options["link"] and "::" in link:
            return link
        return f"{model}::{link.rpartition('::')[2]}" if self._options["model"] or "::" not in link else link

    def _select_transform(self, samples: list[Sample]) -> Sample | None:
        """Return the last transform of the frame that moves. Raises `MotionError` if it is ambiguous."""
        selected = [sample for sample in samples if self._options["frame"] in ("", sample.frame, "/" + sample.frame)]
        for sample in selected:
            if not self._parent:
                self._moving_frame, self._parent = sample.frame, sample.parent
            if sample.frame != self._moving_frame:
                frames = dict.fromkeys((self._moving_frame, *(one.frame for one in samples)))
                allowed = f"must be one of {list_names(list(frames))}"
                raise MotionError("several frames move", allowed=allowed, remedy="add &frame=FRAME")
            if sample.parent != self._parent:
                problem = f"the parent of frame {sample.frame} changes from {self._parent} to {sample.parent}"
                raise MotionError(problem, remedy="name another topic")
        return selected[-1] if selected else None

    def make_state(self, sample: Sample) -> State:
        """Return the state with the values of a message. Raises `NavsenseError` or `ValueError` for invalid ones."""
        pose = Pose(sample.position, ensure_unit(sample.rotation))
        kind = self.content.kind
        if kind == "models" and self._frame.context.root != Pose():
            pose = pose @ self._frame.context.root
        if sample.linear is None or (kind == "odometry" and self._twist == "none"):
            state = State(pose)
        else:
            axes: Frame = "body" if kind == "odometry" and self._twist == "body" else "world"
            state = State(pose, sample.linear, angular_velocity=sample.angular, frame=axes)
        state_row(state, self.title)
        return state

    def check_velocity(self, sample: Sample, state: State) -> str:
        """Return a problem of the velocities with the poses so far, once; else ""."""
        check = self._twist_check
        if state.frame != "body" or state.velocity is None or check.is_done:
            return ""
        if check.last is not None and 0 <= sample.stamp - check.last[0].stamp < SHORTEST_STEP:
            return ""
        problem = check.find_problem(sample, rotate(state.pose.rotation, state.velocity))
        check.is_done = bool(problem)
        return problem

    def log_first(self, source: object, sample: Sample, state: State) -> None:
        """Log once what the states are."""
        if not self._is_first:
            return
        self._is_first = False
        frame = f" of {sample.frame}" if sample.frame else ""
        parent = f" in {sample.parent}" if sample.parent else ""
        axes = f"{sample.frame or 'the child frame'}" if state.frame == "body" else "the world"
        twist = f"; velocities in the axes of {axes}" if state.velocity is not None else "; no velocities"
        LOG.info("%s: %s: %s of %s, poses%s%s%s", self.url, self.title, self.type, source, frame, parent, twist)
