"""The motions of the models, links and sensors of a world, and the scene that rays can hit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from navsense.core.errors import FieldError, MotionError, SimulationError, Where
from navsense.core.names import resolve_name
from navsense.core.pose import Pose
from navsense.environment.base import Environment
from navsense.environment.terrain.base import LazyShape
from navsense.environment.terrain.scene import Body, Scene
from navsense.motion.base import Motion
from navsense.motion.derived import attach
from navsense.motion.joints import JointMotion, JointTrack, JointTracks, JointUnit, unwrap
from navsense.motion.stationary import Stationary
from navsense.sensors.base import UsesRayCasting
from navsense.world import JOINT_KINDS, Joint, Link, Model, MountedSensor, World

Motions = Mapping[str, Motion]
"""Top-level model name -> motion of its canonical link in the world."""

NO_DRIVEN_LINKS: Motions = MappingProxyType({})
"""No link moves separately from its model."""

NO_JOINTS: Mapping[str, float] = MappingProxyType({})
"""No joint moves."""


def replace_motions(world: World, motions: Mapping[str, Motion]) -> World:
    """Return the world with these motions of models. Raise `SimulationError` for an unknown or static model."""
    models = {model.name: model for model in world.models}
    for name in motions:
        if name not in models:
            resolve_name(name, models, "motion of model", error=SimulationError)
        if models[name].static:
            raise SimulationError("motion of model", name, allowed="is static and cannot move")
    return replace(world, models=tuple(replace(m, motion=motions.get(m.name, m.motion)) for m in world.models))


UNITS_OF_KINDS: Mapping[str, JointUnit] = {"revolute": "rad", "prismatic": "m"}
"""Unit of the position of a joint that moves."""


def replace_joint_tracks(world: World, tracks: JointTracks) -> World:
    """Return the world with joints that follow these tracks; a key is any unambiguous ending of a joint's name.

    Joints without a track that mimic one with a track follow it. A topic of joints has those of the whole robot: the
    ones that the world lacks, or that cannot move, are left out if another one moves. A note lists them.

    Raises `SimulationError` for an unknown joint, a joint that has no position, and a joint in a loop of links.
    """
    joints = {joint.name: (model, joint) for model in world.models for joint in model.joints}
    kinds = {name: joint.type for name, (_, joint) in joints.items()}
    movable = [name for name, kind in kinds.items() if kind in JOINT_KINDS]
    moved: dict[str, JointTrack] = {}
    left_out: list[str] = []
    for key, track in tracks.items():
        if _is_of_topic(track) and not any(name == key or name.endswith(f"::{key}") for name in movable):
            left_out.append(key)
            continue
        name = _resolve_joint(key, track, kinds)
        model, joint = joints[name]
        if name in moved:
            raise SimulationError("joint", key, allowed=f"is a second track of {name}", where=track.where)
        if model.static:
            allowed = "is a joint of a static model and cannot move"
            raise SimulationError("joint", name, allowed=allowed, where=track.where)
        kind = JOINT_KINDS[joint.type]
        unit = UNITS_OF_KINDS[kind]
        if track.unit not in ("", unit):
            allowed = f"must be {unit}: the joint is {kind}"
            raise SimulationError(f"unit of joint {name}", track.unit, allowed=allowed, where=track.where)
        is_endless = kind == "revolute" and joint.lower == -math.inf and joint.upper == math.inf
        moved[name] = unwrap(track) if is_endless else track
    if left_out:
        first = next((name for name, track in moved.items() if _is_of_topic(track)), None)
        if first is None:
            first = _resolve_joint(left_out[0], tracks[left_out[0]], kinds)
        note = f"joints of the log that the world lacks or cannot move: {', '.join(left_out)}"
        moved[first] = replace(moved[first], notes=(*moved[first].notes, note))
    _move_followers(world, moved)
    changed = []
    for model in world.models:
        model_joints = tuple(replace(joint, track=moved.get(joint.name, joint.track)) for joint in model.joints)
        changed.append(replace(model, joints=model_joints))
        for joint in model_joints:
            if joint.track is not None:
                _check_tree(joint, model_joints)
    return replace(world, models=tuple(changed))


def _is_of_topic(track: JointTrack) -> bool:
    """Return True for a track of a recorded topic."""
    return track.source is not None and bool(track.source.series)


def _resolve_joint(key: str, track: JointTrack, kinds: Mapping[str, str]) -> str:
    """Return the joint with a name, or the only one with this ending. Raise `SimulationError` if it cannot move."""
    movable = [name for name, kind in kinds.items() if kind in JOINT_KINDS]
    has_entry = any(name == key or name.endswith(f"::{key}") for name in kinds)
    name = resolve_name(key, kinds if has_entry else movable, "joint", error=SimulationError, where=track.where)
    if name not in movable:
        allowed = f"must be of type {', '.join(JOINT_KINDS)} to be moved"
        remedy = "remove it from the log of joints"
        kind = kinds[name]
        raise SimulationError(f"type of joint {name}", kind, allowed=allowed, where=track.where, remedy=remedy)
    return name


def _move_followers(world: World, moved: dict[str, JointTrack]) -> None:
    """Add the tracks of joints that mimic a joint that moves, also of those that mimic a follower.

    A follower that a loop of links holds stands still, and its leader has a note.
    """
    queue = list(moved)
    for leader in queue:
        for model in world.models:
            for joint in model.joints:
                mimic = joint.mimic
                if mimic is None or mimic.leader != leader or joint.name in moved or joint.type not in JOINT_KINDS:
                    continue
                track = moved[leader]
                if _is_in_loop(joint, model.joints):
                    note = f"{joint.name}, which mimics {leader}, stands still: it is in a loop of links"
                    moved[leader] = replace(track, notes=(*track.notes, note))
                    continue
                position = mimic.multiplier * (track.position - mimic.reference) + mimic.offset
                notes = (f"{joint.name} mimics {leader}",)
                try:
                    moved[joint.name] = replace(track, position=position, unit="", notes=notes)
                except MotionError as error:
                    error.what, error.where = error.what.replace("a joint", f"joint {joint.name}"), track.where
                    raise
                queue.append(joint.name)


def _check_tree(moved: Joint, joints: Sequence[Joint]) -> None:
    """Raise `SimulationError` if other joints connect the two links of a joint that moves."""
    if _is_in_loop(moved, joints):
        allowed = "must not be in a loop of links: other joints hold its links together"
        raise SimulationError("joint", moved.name, allowed=allowed, remedy="remove it from the log of joints")


def _is_in_loop(moved: Joint, joints: Sequence[Joint]) -> bool:
    """Return True if other joints connect the two links of a joint."""
    connected, queue = {moved.parent}, [moved.parent]
    for name in queue:
        for joint in joints:
            if joint is not moved and name in (joint.parent, joint.child):
                other = joint.child if name == joint.parent else joint.parent
                if other not in connected:
                    connected.add(other)
                    queue.append(other)
    return moved.child in connected


def list_joint_ends(world: World) -> dict[str, float]:
    """Return the end (s) of the track of each joint that moves. Raises `SimulationError` for one of a recording."""
    tracks = {j.name: j.track for model in world.models for j in model.joints if j.track is not None}
    for name, track in tracks.items():
        if track.is_recorded:
            allowed, remedy = "moved in the recording, which has no positions of joints", "give its log: joints="
            raise SimulationError("joint", name, allowed=allowed, remedy=remedy)
    return {name: track.end for name, track in tracks.items()}


def check_no_recorded_motion(world: World) -> None:
    """Raise `SimulationError` for a model that moved in the recording of this world, and has no motion now."""
    for model in world.models:
        if isinstance(model.motion, Stationary) and model.motion.is_recorded:
            allowed = "moved in the recording, whose world does not have its motion"
            remedy = "give its log or the recording: motion="
            raise SimulationError("motion of model", model.name, allowed=allowed, remedy=remedy)


def resolve_motions(world: World) -> Motions:
    """Return the motion of each model; a model without a motion is stationary at its pose."""
    resolved: dict[str, Motion] = {}
    for model in world.models:
        start = model.pose @ model.link(model.canonical_link).pose if model.links else model.pose
        resolved[model.name] = Stationary(start) if model.root_motion is None else model.root_motion
    return resolved


def make_link_motion(model: Model, link: Link, model_motions: Motions, driven_links: Motions) -> Motion:
    """Return the true motion of a link: that in `driven_links`, else from its model and the joints that move it.

    driven_links: motions of the links that do not move with their model, by full name.
    """
    if link.name in driven_links:
        return driven_links[link.name]
    motion, frame = model_motions[model.name], model.link(model.canonical_link).pose
    for joint, sign in model.joint_paths.get(link.name, ()):
        if joint.track is not None:
            motion = attach(motion, frame.inverse() @ joint.pose)
            motion = JointMotion(motion, JOINT_KINDS[joint.type], joint.axis, joint.track, sign)
            frame = joint.pose
    return attach(motion, frame.inverse() @ link.pose)


def make_sensor_motion(
    world: World, sensor: MountedSensor, model_motions: Motions, driven_links: Motions = NO_DRIVEN_LINKS
) -> Motion:
    """Return the true motion of a sensor's frame, with its lever arm; arguments as for `make_link_motion`."""
    model = world.model(sensor.model)
    if sensor.link in driven_links or sensor.link in model.joint_paths:
        return attach(make_link_motion(model, model.link(sensor.link), model_motions, driven_links), sensor.pose)
    canonical, link = model.link(model.canonical_link).pose, model.link(sensor.link).pose
    pose: Pose = canonical.inverse() @ link @ sensor.pose
    return attach(model_motions[model.name], pose)


def build_scene(world: World, model_motions: Motions, driven_links: Motions = NO_DRIVEN_LINKS) -> Scene:
    """Return the bodies that rays can hit in a world: those of its environment, and the surfaces of its models.

    `driven_links` as for `make_link_motion`.
    """
    link_names = {solid.link for solid in world.solids}
    motions = {
        link.name: make_link_motion(model, link, model_motions, driven_links)
        for model in world.models
        for link in model.links
        if link.name in link_names
    }
    bodies = list(world.environment.scene.bodies)
    for solid in world.solids:
        motion = motions[solid.link]
        if isinstance(motion, Stationary):  # a body of the world frame
            bodies.append(Body(solid.name, solid.shape, motion.pose @ solid.pose))
        else:
            bodies.append(Body(solid.name, solid.shape, solid.pose, motion))
    return Scene(tuple(bodies))


def make_environment(world: World, sensor: MountedSensor, scene: Scene) -> Environment:
    """Return the environment of a sensor; for a sensor that casts rays, with the scene.

    The files of surfaces that the rays can hit are read. Raises `FieldError` with the surface's name for a file that
    cannot be read.
    """
    if not isinstance(sensor.spec, UsesRayCasting):
        return world.environment
    where = {solid.name: solid.where for solid in world.solids}
    for body in scene.bodies:
        if isinstance(body.shape, LazyShape) and can_hit(sensor, body.name):
            read_surface(body.name, body.shape, where.get(body.name))
    return replace(world.environment, scene=scene, hull=sensor.model)


def can_hit(sensor: MountedSensor, body: str) -> bool:
    """Return True if a sensor casts rays that can hit the body with this name."""
    spec = sensor.spec
    return isinstance(spec, UsesRayCasting) and (spec.own_hull or not body.startswith(f"{sensor.model}::"))


def list_unreadable_surfaces(world: World) -> Iterator[FieldError]:
    """Read the surfaces that rays of a sensor can hit, and yield the errors of their files."""
    for solid in world.solids:
        if isinstance(solid.shape, LazyShape) and any(can_hit(sensor, solid.name) for sensor in world.sensors):
            try:
                read_surface(solid.name, solid.shape, solid.where)
            except FieldError as error:
                yield error


def read_surface(name: str, lazy_shape: LazyShape, where: Where | None) -> None:
    """Read a surface. Raise `FieldError` with its name and its location `where` in the world file."""
    try:
        _ = lazy_shape.shape
    except FieldError as error:
        subject = f"surface {name}: {f'{error.where}: ' if error.where else ''}{error.what}"
        location = where or error.where
        raise FieldError(subject, error.value, allowed=error.allowed, where=location, remedy=error.remedy) from error


def check_motion_ends(motions: Motions, duration: float, joint_ends: Mapping[str, float] = NO_JOINTS) -> None:
    """Raise `MotionError` if a motion, or the track of a joint, ends before `duration` (s)."""
    for name, end in ({name: motion.end for name, motion in motions.items()} | dict(joint_ends)).items():
        if end < duration:
            raise MotionError(
                f"duration of the run against the motion of {name!r}",
                duration,
                allowed=f"must be at most {end!r} s, where that motion ends",
                remedy="ask for a shorter duration or give a longer motion",
            )
