"""The topics of a recording: unique topics for the series of each sensor and for the ground truth of each link.

A writer allocates them once and stores them. A reader uses the stored topics, so a later change of the naming rules
does not affect old files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from navsense.core.errors import DamagedError
from navsense.messages import format_companion_topic, list_message_suffixes
from navsense.messages.base import SeriesKind
from navsense.messages.world_messages import FAULT
from navsense.motion.derived import get_source
from navsense.recordings.static_transforms import has_motion
from navsense.world import World

SERIES_KINDS: tuple[SeriesKind, ...] = ("measured", "ideal", "bias")

STORED_MEASURED = "reading"
"""Key of the topic of the measured values in files."""

SIMULATED_SERIES: tuple[SeriesKind, ...] = ("ideal", "bias")
"""Series that only a simulation has."""

POSE, ACCELERATION = "pose", "acceleration"
WORLD_TWIST, WORLD_ACCELERATION = "world_twist", "world_acceleration"
"""Velocity and acceleration along the axes of the world, of a link that follows the states of a live system."""

TRUTH_SERIES = (POSE, ACCELERATION, WORLD_TWIST, WORLD_ACCELERATION)
CLOCK, TRANSFORMS, STATIC, CURRENT, LAYERS = "clock", "transforms", "static_transforms", "current", "current_layers"

TRUTH_PREFIX = "/truth/"
"""Prefix of the topics of the true poses of links."""

ROS_TOPICS = {CLOCK: "/clock", TRANSFORMS: "/tf", STATIC: "/tf_static"}
"""Topics with names that ROS defines."""

TopicKey: TypeAlias = tuple[str, ...]
"""(sensor, series kind, companion), (link, series of the truth), or (name,) for a common topic."""


class TopicNames:
    """The topics of a recording by their content."""

    def __init__(self, topics: Mapping[TopicKey, str]) -> None:
        """Store the topics."""
        self.topics = dict(topics)

    @property
    def current(self) -> str:
        """The topic of the water's velocity, empty if there is none."""
        return self.topics.get((CURRENT,), "")

    @property
    def layers(self) -> str:
        """The topic of the water's velocity at several depths, empty if there is none."""
        return self.topics.get((LAYERS,), "")

    def get_common_topic(self, name: str) -> str:
        """Return the topic of true time (`CLOCK`) or of transforms (`TRANSFORMS`, `STATIC`)."""
        return self.topics.get((name,), ROS_TOPICS[name])

    def get_sensor_topic(self, sensor: str, series_kind: SeriesKind, companion: str = "") -> str:
        """Return the topic of a series of a sensor, or of a companion message of that series."""
        return self.topics[sensor, series_kind, companion]

    def list_companions(self, sensor: str, series_kind: SeriesKind) -> list[str]:
        """Return the companions of a series of a sensor in order; "" is the main message."""
        return [key[2] for key in self.topics if len(key) == 3 and key[:2] == (sensor, series_kind)]

    def get_fault_topic(self, sensor: str) -> str:
        """Return the topic of the faults of a sensor, empty if there is none."""
        return self.topics.get((sensor, FAULT, ""), "")

    def list_sensor_topics(self) -> dict[str, str]:
        """Return the topic of the measured values of each sensor."""
        return {key[0]: topic for key, topic in self.topics.items() if key[1:] == ("measured", "")}

    def list_truth_topics(self) -> dict[str, str]:
        """Return the topic of the true pose of each link."""
        return {key[0]: topic for key, topic in self.topics.items() if key[1:] == (POSE,)}

    def get_truth_topics(self, link: str) -> tuple[str, str]:
        """Return the topics of a link's pose and acceleration, empty if there are none."""
        return self.topics.get((link, POSE), ""), self.topics.get((link, ACCELERATION), "")

    def get_state_topics(self, link: str) -> tuple[str, str]:
        """Return the topics of velocity and acceleration along the axes of the world, empty if there are none."""
        return self.topics.get((link, WORLD_TWIST), ""), self.topics.get((link, WORLD_ACCELERATION), "")

    def sensor_to_json(self, sensor: str) -> dict[str, Any]:
        """Return the topics of one sensor as JSON."""
        companions: dict[str, dict[str, str]] = {"": {}}
        for key, topic in self.topics.items():
            if len(key) == 3 and key[0] == sensor:
                stored_kind = STORED_MEASURED if key[1] == "measured" else key[1]
                companions.setdefault(key[2], {})[stored_kind] = topic
        main = companions.pop("")
        return {"topics": main, "companions": [{"name": name, **topics} for name, topics in companions.items()]}

    def to_json(self) -> dict[str, Any]:
        """Return the topics without a sensor as JSON."""
        truth: dict[str, dict[str, str]] = {}
        for key, topic in self.topics.items():
            if len(key) == 2:
                truth.setdefault(key[0], {})[key[1]] = topic
        return {**{key[0]: topic for key, topic in self.topics.items() if len(key) == 1}, "truth": truth}


def topics_from_json(sensors: list[Mapping[str, Any]], common_topics: Mapping[str, Any]) -> TopicNames:
    """Return the topics in the JSON of a world. Raises `DamagedError` for a topic that is not a text."""
    topics: dict[TopicKey, str] = {}
    for sensor in sensors:
        for companion in ({"name": "", **sensor["topics"]}, *sensor["companions"]):
            for stored_kind, topic in companion.items():
                series_kind = "measured" if stored_kind == STORED_MEASURED else stored_kind
                if stored_kind != "name":
                    topics[sensor["name"], series_kind, companion["name"]] = topic
    topics |= {(link, name): topic for link, truth in common_topics["truth"].items() for name, topic in truth.items()}
    topics |= {(name,): topic for name, topic in common_topics.items() if isinstance(topic, str)}
    if not all(isinstance(text, str) for key, topic in topics.items() for text in (*key, topic)):
        raise DamagedError("a topic is not a text")
    return TopicNames(topics)


def allocate_topics(world: World, stored: TopicNames | None = None, *, has_simulated_series: bool = True) -> TopicNames:
    """Return a unique topic for each series in a recording of a world.

    stored: the topics that the recording already has; they do not change.
    has_simulated_series: False omits truth, current, faults, and the series in `SIMULATED_SERIES`.

    A topic that is in use gets the suffix `_`. The readings of the sensors come first, in order.
    """
    stored_topics = stored.topics if stored else {}
    used = {*ROS_TOPICS.values(), *stored_topics.values()}
    topics: dict[TopicKey, str] = {(name,): stored_topics.get((name,), topic) for name, topic in ROS_TOPICS.items()}
    for key, preferred in _list_preferred_topics(world, topics, used):
        topic = stored_topics.get(key, preferred)
        while key not in stored_topics and topic in used:
            topic += "_"
        used.add(topic)
        topics[key] = topic
    if not has_simulated_series:
        # The name of a series is the second part of a key, or the only part.
        simulated = {CURRENT, LAYERS, *TRUTH_SERIES, FAULT, *SIMULATED_SERIES}
        topics = {key: topic for key, topic in topics.items() if key[:2][-1] not in simulated}
    return TopicNames(topics)


def _list_preferred_topics(
    world: World, topics: Mapping[TopicKey, str], used: set[str]
) -> Iterator[tuple[TopicKey, str]]:
    """Yield each key and its preferred topic; `topics` are those already allocated."""
    for sensor in world.sensors:
        topic = "/" + sensor.topic.strip("/")
        needs_default = topic == "/" or topic in used
        yield (sensor.name, "measured", ""), "/" + format_topic_name(sensor.name) if needs_default else topic
    current_topic = world.current_topic
    if world.environment.current:
        yield (CURRENT,), "/" + current_topic.topic.strip("/")
    if current_topic.layers:
        yield (LAYERS,), "/" + current_topic.layers.topic.strip("/")
    for sensor in world.sensors:
        main_topic = topics[sensor.name, "measured", ""]
        for companion in list_message_suffixes(sensor)[1:]:
            yield (sensor.name, "measured", companion), format_companion_topic(main_topic, companion)
    for sensor in world.sensors:
        for series_kind in SIMULATED_SERIES:
            for companion in list_message_suffixes(sensor, series_kind):
                topic = f"{topics[sensor.name, 'measured', companion]}/{series_kind}"
                yield (sensor.name, series_kind, companion), topic
    for sensor in world.sensors:
        if sensor.faults.has_faults:
            yield (sensor.name, FAULT, ""), f"{topics[sensor.name, 'measured', '']}/{FAULT}"
    for model in world.models:
        for link in model.links:
            is_canonical = link.name == model.canonical_link
            if has_motion(model) and not is_canonical and link.name not in model.joint_paths:
                continue  # fixed to the canonical link: `/tf_static` has its pose
            topic = TRUTH_PREFIX + format_topic_name(model.name if is_canonical else link.name)
            yield (link.name, POSE), topic
            yield (link.name, ACCELERATION), topics[link.name, POSE] + "/accel"
            source = get_source(model.motion)
            if is_canonical and source is not None and source.has_states:
                yield (link.name, WORLD_TWIST), topics[link.name, POSE] + "/world_twist"
                yield (link.name, WORLD_ACCELERATION), topics[link.name, POSE] + "/world_accel"


def format_topic_name(name: str) -> str:
    """Return a full name in the form of a topic."""
    return name.replace("::", "/")
