"""The static transforms of a world (the content of `/tf_static`), and the truth of frames that are fixed to a link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from navsense.core.names import WORLD_FRAME
from navsense.core.pose import IDENTITY, Pose
from navsense.core.readings import Truth
from navsense.core.typing import Times
from navsense.messages import list_frames, list_world_frames
from navsense.motion.base import MotionBlock
from navsense.motion.derived import attach
from navsense.world import Model, World


@dataclass(frozen=True)
class StaticTransform:
    """One static transform: parent frame, child frame, pose of the child in the parent."""

    parent: str
    child: str
    pose: Pose


def has_motion(model: Model) -> bool:
    """Return True if the model has a motion. In a world from a recording it is `world_json.RECORDED_MOTION`."""
    return model.motion is not None and not model.static


def list_static_transforms(world: World) -> list[StaticTransform]:
    """Return the transforms of static models in the world, of links in their model, and of sensors on their link.

    A link that a joint moves has none.

    A sensor has a frame with its full name, and the frame of its messages if that is another one. Further frames in its
    messages follow. Frames fixed in the world come last.
    """
    transforms: list[StaticTransform] = []
    for model in world.models:
        root = model.link(model.canonical_link).pose
        if not has_motion(model):
            transforms.append(StaticTransform(WORLD_FRAME, model.canonical_link, model.pose @ root))
        transforms += [
            StaticTransform(model.canonical_link, link.name, root.inverse() @ link.pose)
            for link in model.links
            if link.name != model.canonical_link and link.name not in model.joint_paths
        ]
    known = {WORLD_FRAME, *(frame.child for frame in transforms), *(model.canonical_link for model in world.models)}
    known.update(*(model.joint_paths for model in world.models))
    # Each sensor with the poses of the frames in its messages. Names of sensors come first, so that they stay unique.
    sensor_frames = [(sensor, list_frames(sensor)) for sensor in world.sensors]
    frames = [(sensor, sensor.name, poses) for sensor, poses in sensor_frames]
    frames += [(sensor, sensor.frame, poses) for sensor, poses in sensor_frames if sensor.frame]
    frames += [(sensor, name, poses) for sensor, poses in sensor_frames for name in poses]
    for sensor, name, poses in frames:
        if name not in known:
            transforms.append(StaticTransform(sensor.link, name, sensor.pose @ poses.get(name, IDENTITY)))
            known.add(name)
    for sensor in world.sensors:
        for name, pose in list_world_frames(sensor).items():
            if name not in known:
                transforms.append(StaticTransform(WORLD_FRAME, name, pose))
                known.add(name)
    return transforms


@dataclass(frozen=True, eq=False)
class TruthMotion:
    """The truth of a link as a motion, valid at the recorded times only."""

    truth: Truth
    end: float = math.inf

    def at(self, _time: Times) -> MotionBlock:
        """Return the truth; the instants are ignored."""
        t = self.truth
        return MotionBlock(
            t.position, t.orientation, t.velocity, t.angular_velocity, t.acceleration, t.angular_acceleration
        )


def transform_truth(truth: Truth, pose: Pose, name: str) -> Truth:
    """Return the truth of a frame with a fixed pose on a link."""
    block = attach(TruthMotion(truth), pose).at(truth.time)
    return Truth(name, truth.time, *block.arrays, epoch=truth.epoch)


def derive_fixed_links(model: Model, truth: Truth) -> dict[str, Truth]:
    """Return the truth of the links that are fixed to the canonical link of a moving model, from the truth of it."""
    root = model.link(model.canonical_link).pose.inverse()
    return {
        link.name: transform_truth(truth, root @ link.pose, link.name)
        for link in model.links
        if link.name != model.canonical_link and link.name not in model.joint_paths
    }
