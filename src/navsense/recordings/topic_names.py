"""The topics of a recording: a unique topic for each series of each sensor and each link.

A writer allocates them once and stores them. A reader uses the stored topics, so a later change of the naming rules
does not affect old files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from navsense.messages import format_companion_topic, list_companion_topics
from navsense.messages.base import SeriesKind
from navsense.messages.world_topics import FAULT
from navsense.recordings.mcap.records import DamagedError
from navsense.recordings.static_transforms import is_moving
from navsense.world import World

PARTS: tuple[SeriesKind, ...] = ("reading", "ideal", "bias")
TRUTH_SERIES: tuple[SeriesKind, ...] = ("ideal", "bias")
"""Series that only a simulation has."""

POSE, ACCELERATION = "pose", "acceleration"
CLOCK, TRANSFORMS, STATIC, CURRENT, LAYERS = "clock", "transforms", "static_transforms", "current", "current_layers"

FIXED = {CLOCK: "/clock", TRANSFORMS: "/tf", STATIC: "/tf_static"}
"""Topics with names that ROS defines."""

Key: TypeAlias = tuple[str, ...]
"""(sensor, series, companion), (link, "pose"), (link, "acceleration"), or one word for another topic."""


class TopicNames:
    """The topics of a recording by their content."""

    def __init__(self, names: Mapping[Key, str]) -> None:
        """Take the topics."""
        self.names = dict(names)

    @property
    def current(self) -> str:
        """The topic of the water's velocity, empty if there is none."""
        return self.names.get((CURRENT,), "")

    @property
    def layers(self) -> str:
        """The topic of the water's velocity at several depths, empty if there is none."""
        return self.names.get((LAYERS,), "")

    def common(self, what: str) -> str:
        """Return the topic of true time (`CLOCK`) or of transforms (`TRANSFORMS`, `STATIC`)."""
        return self.names.get((what,), FIXED[what])

    def sensor(self, name: str, part: SeriesKind, companion: str = "") -> str:
        """Return the topic of a series of a sensor, or of a companion message of that series."""
        return self.names[name, part, companion]

    def companions(self, name: str, part: SeriesKind) -> list[str]:
        """Return the companions of a series of a sensor in order; "" is the main message."""
        return [key[2] for key in self.names if len(key) == 3 and key[:2] == (name, part)]

    def fault(self, name: str) -> str:
        """Return the topic of the faults of a sensor, empty if there is none."""
        return self.names.get((name, FAULT, ""), "")

    def truth(self, link: str) -> tuple[str, str]:
        """Return the topics of a link's pose and acceleration, empty if there are none."""
        return self.names.get((link, POSE), ""), self.names.get((link, ACCELERATION), "")

    def sensor_to_json(self, name: str) -> dict[str, Any]:
        """Return the topics of one sensor as JSON."""
        own = {key[1:]: topic for key, topic in self.names.items() if len(key) == 3 and key[0] == name}
        companions = list(dict.fromkeys(companion for _, companion in own if companion))
        return {
            "topics": {part: topic for (part, companion), topic in own.items() if not companion},
            "companions": [
                {"name": one, **{part: topic for (part, companion), topic in own.items() if companion == one}}
                for one in companions
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """Return the topics without a sensor as JSON."""
        links = dict.fromkeys(key[0] for key in self.names if len(key) == 2)
        truth = {link: {POSE: self.truth(link)[0], ACCELERATION: self.truth(link)[1]} for link in links}
        return {**{key[0]: topic for key, topic in self.names.items() if len(key) == 1}, "truth": truth}


def topics_from_json(sensors: list[Mapping[str, Any]], others: Mapping[str, Any]) -> TopicNames:
    """Return the topics in the JSON of a world. Raises `DamagedError` for a topic that is not a text."""
    names: dict[Key, str] = {}
    for sensor in sensors:
        name = sensor["name"]
        names |= {(name, part, ""): topic for part, topic in sensor["topics"].items()}
        for one in sensor["companions"]:
            names |= {(name, part, one["name"]): topic for part, topic in one.items() if part != "name"}
    names |= {(link, what): topic for link, own in others["truth"].items() for what, topic in own.items()}
    names |= {(what,): topic for what, topic in others.items() if isinstance(topic, str)}
    if not all(isinstance(one, str) for key, topic in names.items() for one in (*key, topic)):
        raise DamagedError("a topic is not a text")
    return TopicNames(names)


def allocate_topics(world: World, stored: TopicNames | None = None, *, truth: bool = True) -> TopicNames:
    """Return a unique topic for each series in a recording of a world.

    stored: the topics that the recording already has; they do not change.
    truth: False omits the ground truth.

    A topic that is in use gets the suffix `_`. The readings of the sensors come first, in order.
    """
    known = stored.names if stored else {}
    used = {*FIXED.values(), *known.values()}
    names: dict[Key, str] = {(what,): known.get((what,), topic) for what, topic in FIXED.items()}
    for key, topic in _preferred_topics(world, names, used):
        free = known.get(key, topic)
        while key not in known and free in used:
            free += "_"
        used.add(free)
        names[key] = free
    truth_keys = {CURRENT, LAYERS, POSE, ACCELERATION, FAULT, *TRUTH_SERIES}
    return TopicNames({key: topic for key, topic in names.items() if truth or key[:2][-1] not in truth_keys})


def _preferred_topics(world: World, names: Mapping[Key, str], used: set[str]) -> Iterator[tuple[Key, str]]:
    """Yield each key and its preferred topic; `names` are the topics already allocated."""
    for sensor in world.sensors:
        topic = "/" + sensor.topic.strip("/")
        own = topic == "/" or topic in used
        yield (sensor.name, "reading", ""), "/" + format_topic_name(sensor.name) if own else topic
    shown = world.current_topic
    if world.environment.current:
        yield (CURRENT,), "/" + shown.topic.strip("/")
    if shown.layers:
        yield (LAYERS,), "/" + shown.layers.topic.strip("/")
    for sensor in world.sensors:
        for companion in list_companion_topics(sensor)[1:]:
            yield (
                (sensor.name, "reading", companion),
                format_companion_topic(names[sensor.name, "reading", ""], companion),
            )
    for sensor in world.sensors:
        for part in TRUTH_SERIES:
            for companion in list_companion_topics(sensor, part):
                yield (sensor.name, part, companion), f"{names[sensor.name, 'reading', companion]}/{part}"
    for sensor in world.sensors:
        if sensor.faults.has_faults:
            yield (sensor.name, FAULT, ""), f"{names[sensor.name, 'reading', '']}/{FAULT}"
    for model in world.models:
        for link in model.links:
            is_canonical = link.name == model.canonical_link
            if is_moving(model) and not is_canonical:
                continue  # fixed to the canonical link: `/tf_static` has its pose
            topic = "/truth/" + format_topic_name(model.name if is_canonical else link.name)
            yield (link.name, POSE), topic
            yield (link.name, ACCELERATION), names[link.name, POSE] + "/accel"


def format_topic_name(name: str) -> str:
    """Return a full name in the form of a topic."""
    return name.replace("::", "/")
