"""The topics of a recording: one for each series of each sensor and each link, no two the same."""

from __future__ import annotations

from navsense.messages import topic_beside, topics_beside
from navsense.messages.base import Part
from navsense.noise.planned import FAULT
from navsense.world import World

HIDDEN: tuple[Part, ...] = ("ideal", "bias")
"""The series that no instrument gives."""


class Topics:
    """Names for the sensors and links of one world; what is taken gets `_` behind it."""

    def __init__(self, world: World) -> None:
        """Hand out the sensors' topics in order, so that the first to ask for a topic has it."""
        self._taken = {"/clock", "/tf", "/tf_static"}
        self._sensors: dict[tuple[str, Part, str], str] = {}
        self._truth: dict[str, tuple[str, str]] = {}
        self._canonical = {model.canonical_link: model.name for model in world.models}
        for sensor in world.sensors:
            topic = "/" + sensor.topic.strip("/")
            if topic == "/" or topic in self._taken:
                topic = "/" + slashed(sensor.name)
            self._sensors[sensor.name, "reading", ""] = self._take(topic)
        shown = world.current_topic
        self.current = self._take("/" + shown.topic.strip("/")) if world.environment.current else ""
        self.layers = self._take("/" + shown.layers.topic.strip("/")) if shown.layers else ""
        for sensor in world.sensors:
            for beside in topics_beside(sensor)[1:]:
                topic = topic_beside(self._sensors[sensor.name, "reading", ""], beside)
                self._sensors[sensor.name, "reading", beside] = self._take(topic)
        for sensor in world.sensors:
            for part in HIDDEN:
                for beside in topics_beside(sensor, part):
                    topic = f"{self._sensors[sensor.name, 'reading', beside]}/{part}"
                    self._sensors[sensor.name, part, beside] = self._take(topic)

        self._faults = {
            sensor.name: self._take(f"{self._sensors[sensor.name, 'reading', '']}/{FAULT}")
            for sensor in world.sensors
            if sensor.faults.act
        }

    def _take(self, topic: str) -> str:
        """Return the topic, changed until it is free."""
        while topic in self._taken:
            topic += "_"
        self._taken.add(topic)
        return topic

    def sensor(self, name: str, part: Part, beside: str = "") -> str:
        """Return the topic of one of a sensor's series; `beside` names a companion of its own message."""
        return self._sensors[name, part, beside]

    def fault(self, name: str) -> str:
        """Return the topic of the faults of a sensor that has any."""
        return self._faults[name]

    def truth(self, link: str) -> tuple[str, str]:
        """Return the topics of a link's pose and acceleration; a model's canonical link goes by the model's name."""
        if link not in self._truth:
            topic = self._take("/truth/" + slashed(self._canonical.get(link, link)))
            self._truth[link] = (topic, self._take(topic + "/accel"))
        return self._truth[link]


def slashed(name: str) -> str:
    """Return a full name as a topic has it."""
    return name.replace("::", "/")
