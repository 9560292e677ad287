"""The frames of a world that never move against their parent: what `/tf_static` says."""

from __future__ import annotations

from dataclasses import dataclass

from navsense.messages.truth import WORLD
from navsense.pose import Pose
from navsense.world import Model, World


@dataclass(frozen=True)
class Frame:
    """One frame: its parent's name, its own, and its pose in the parent."""

    parent: str
    child: str
    pose: Pose


def moves(model: Model) -> bool:
    """Return whether the model's place in the world changes."""
    return model.motion is not None and not model.static


def fixed(world: World) -> list[Frame]:
    """Return all fixed frames: still models in the world, links in their model, sensors on their link.

    A sensor has its full name as a frame, and the frame that its messages carry where that is another.
    """
    out: list[Frame] = []
    for model in world.models:
        root = model.link(model.canonical_link).pose
        if not moves(model):
            out.append(Frame(WORLD, model.canonical_link, model.pose @ root))
        others = (link for link in model.links if link.name != model.canonical_link)
        out += [Frame(model.canonical_link, link.name, root.inverse() @ link.pose) for link in others]
    known = {WORLD, *(frame.child for frame in out), *(model.canonical_link for model in world.models)}
    for sensor in world.sensors:
        if sensor.name not in known:
            out.append(Frame(sensor.link, sensor.name, sensor.pose))
            known.add(sensor.name)
    for sensor in world.sensors:
        if sensor.frame and sensor.frame not in known:
            out.append(Frame(sensor.link, sensor.frame, sensor.pose))
            known.add(sensor.frame)
    return out
