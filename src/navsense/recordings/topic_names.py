"""The topics of a recording: one for each series of each sensor and each link, no two the same.

A writer allocates them once and stores them. A reader uses the stored ones: a later rule renames nothing in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from navsense.messages import format_companion_topic, list_companion_topics
from navsense.messages.base import SeriesKind
from navsense.messages.fault import FAULT
from navsense.recordings.records import DamagedError
from navsense.recordings.static_transforms import is_moving
from navsense.world import World

PARTS: tuple[SeriesKind, ...] = ("reading", "ideal", "bias")
TRUTH_SERIES: tuple[SeriesKind, ...] = ("ideal", "bias")
"""The series that no instrument gives."""

POSE, ACCELERATION = "pose", "acceleration"
CLOCK, TRANSFORMS, STATIC, CURRENT, LAYERS = "clock", "transforms", "static_transforms", "current", "current_layers"

FIXED = {CLOCK: "/clock", TRANSFORMS: "/tf", STATIC: "/tf_static"}
"""Topics that ROS gives their names."""

Key: TypeAlias = tuple[str, ...]
"""(sensor, series, companion), (link, "pose") or (link, "acceleration"), or the one word of another topic."""


class TopicNames:
    """The topics of a recording by what is on them."""

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

    def fixed(self, what: str) -> str:
        """Return the topic of true time (`CLOCK`) or of transforms (`TRANSFORMS`, `STATIC`)."""
        return self.names.get((what,), FIXED[what])

    def sensor(self, name: str, part: SeriesKind, companion: str = "") -> str:
        """Return the topic of one of a sensor's series; `beside` names a companion of its own message."""
        return self.names[name, part, companion]

    def companions(self, name: str, part: SeriesKind) -> list[str]:
        """Return the companions of one of a sensor's series in order, the sensor's own message as an empty name."""
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
        companions = list(dict.fromkeys(beside for _, beside in own if beside))
        return {
            "topics": {part: topic for (part, beside), topic in own.items() if not beside},
            "companions": [
                {"name": one, **{part: topic for (part, beside), topic in own.items() if beside == one}}
                for one in companions
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """Return the topics that are of no sensor as JSON."""
        links = dict.fromkeys(key[0] for key in self.names if len(key) == 2)
        truth = {link: {POSE: self.truth(link)[0], ACCELERATION: self.truth(link)[1]} for link in links}
        return {**{key[0]: topic for key, topic in self.names.items() if len(key) == 1}, "truth": truth}


def topics_from_json(sensors: list[Mapping[str, Any]], others: Mapping[str, Any]) -> TopicNames:
    """Return the topics in a world's JSON. Raises `DamagedError` for a topic that is no text."""
    names: dict[Key, str] = {}
    for sensor in sensors:
        name = sensor["name"]
        names |= {(name, part, ""): topic for part, topic in sensor["topics"].items()}
        for one in sensor["companions"]:
            names |= {(name, part, one["name"]): topic for part, topic in one.items() if part != "name"}
    names |= {(link, what): topic for link, own in others["truth"].items() for what, topic in own.items()}
    names |= {(what,): topic for what, topic in others.items() if isinstance(topic, str)}
    if not all(isinstance(one, str) for key, topic in names.items() for one in (*key, topic)):
        raise DamagedError("a topic is no text")
    return TopicNames(names)


def allocate_topics(world: World, stored: TopicNames | None = None, *, truth: bool = True) -> TopicNames:
    """Return a topic for everything that a recording of a world holds, no two the same.

    `stored` are topics that the recording already has; they stay. `truth` false leaves out what no instrument gives. A
    topic that is taken gets `_` behind it. The sensors' own topics come first, in order.
    """
    known = stored.names if stored else {}
    taken = {*FIXED.values(), *known.values()}
    names: dict[Key, str] = {(what,): known.get((what,), topic) for what, topic in FIXED.items()}
    for key, topic in _wanted(world, names, taken):
        free = known.get(key, topic)
        while key not in known and free in taken:
            free += "_"
        taken.add(free)
        names[key] = free
    hidden = {CURRENT, LAYERS, POSE, ACCELERATION, FAULT, *TRUTH_SERIES}
    return TopicNames({key: topic for key, topic in names.items() if truth or key[:2][-1] not in hidden})


def _wanted(world: World, names: Mapping[Key, str], taken: set[str]) -> Iterator[tuple[Key, str]]:
    """Yield each key and the topic that it gets if the topic is free; `names` holds the topics of the keys before."""
    for sensor in world.sensors:
        topic = "/" + sensor.topic.strip("/")
        own = topic == "/" or topic in taken
        yield (sensor.name, "reading", ""), "/" + format_topic_name(sensor.name) if own else topic
    shown = world.current_topic
    if world.environment.current:
        yield (CURRENT,), "/" + shown.topic.strip("/")
    if shown.layers:
        yield (LAYERS,), "/" + shown.layers.topic.strip("/")
    for sensor in world.sensors:
        for beside in list_companion_topics(sensor)[1:]:
            yield (sensor.name, "reading", beside), format_companion_topic(names[sensor.name, "reading", ""], beside)
    for sensor in world.sensors:
        for part in TRUTH_SERIES:
            for beside in list_companion_topics(sensor, part):
                yield (sensor.name, part, beside), f"{names[sensor.name, 'reading', beside]}/{part}"
    for sensor in world.sensors:
        if sensor.faults.has_faults:
            yield (sensor.name, FAULT, ""), f"{names[sensor.name, 'reading', '']}/{FAULT}"
    for model in world.models:
        for link in model.links:
            is_canonical = link.name == model.canonical_link
            if is_moving(model) and not is_canonical:
                continue  # fixed to the canonical link: `/tf_static` says where
            topic = "/truth/" + format_topic_name(model.name if is_canonical else link.name)
            yield (link.name, POSE), topic
            yield (link.name, ACCELERATION), names[link.name, POSE] + "/accel"


def format_topic_name(name: str) -> str:
    """Return a full name as a topic has it."""
    return name.replace("::", "/")
