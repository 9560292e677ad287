"""The motions and tracks of joints of a run: from arguments, from files, or from live systems."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from navsense.core.errors import SimulationError, Where
from navsense.core.names import resolve_name
from navsense.core.pose import Pose
from navsense.motion.alignment import align_logs
from navsense.motion.base import Motion
from navsense.motion.joints import JointTrack, JointTracks
from navsense.recordings.joint_log import load_joint_log
from navsense.recordings.recorded_motion import load_motion
from navsense.streams import is_url
from navsense.world import World, make_log_context

MotionSource = Motion | str | os.PathLike[str]
"""A motion, the path of a motion log or of a recording (`recordings.recorded_motion`), or the URL of a live system."""

JointSource = JointTracks | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""Tracks of joints by name, or the paths of logs of joint positions (`recordings.joint_log`)."""


def name_motions(world: World, motion: MotionSource | Mapping[str, MotionSource] | None) -> dict[str, MotionSource]:
    """Return the motion or its path or URL by model name; a single one is that of the only model that can move.

    Raises `SimulationError`.
    """
    if motion is None:
        return {}
    if not isinstance(motion, Mapping):
        movable = [model.name for model in world.models if not model.static]
        if len(movable) != 1:
            raise SimulationError(
                "motion",
                motion,
                allowed=f"must name its model: the world has {len(movable)} that can move",
                remedy=f"write MODEL=FILE, MODEL one of {', '.join(movable)}" if movable else "",
            )
        motion = {movable[0]: motion}
    models = [model.name for model in world.models]
    named: dict[str, MotionSource] = {}
    for key, source in motion.items():
        name = resolve_name(key, models, "motion of model", error=SimulationError)
        if name in named:
            raise SimulationError("motion of model", key, allowed=f"is a second motion of {name}")
        named[name] = source
    return named


def split_motions(
    world: World, motion: MotionSource | Mapping[str, MotionSource] | None
) -> tuple[dict[str, MotionSource], dict[str, str]]:
    """Return the motions and paths, and the URLs of live systems, by model name. Raises `SimulationError`."""
    named = name_motions(world, motion)
    urls = {name: source for name, source in named.items() if isinstance(source, str) and is_url(source)}
    for name in urls:
        if world.model(name).static:
            raise SimulationError("motion of model", name, allowed="is static and cannot move")
    return {name: source for name, source in named.items() if name not in urls}, urls


def load_motions(
    world: World,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    bandwidth: float | Mapping[str, float] | None = None,
) -> dict[str, Motion]:
    """Return the motions by model name; motion logs are read. Raises `SimulationError` and `MotionError`.

    bandwidth: of the smoothing of the logs, Hz; or a mapping from model names. None: no smoothing.
    """
    if motion is None:
        if bandwidth is not None:
            remedy = 'in a world file: <navsense:motion file="..." bandwidth="...">'
            raise SimulationError("bandwidth", bandwidth, allowed="needs the motion that it smooths", remedy=remedy)
        return {}
    motions: dict[str, Motion] = {}
    named = name_motions(world, motion)
    bandwidths = _resolve_bandwidths(bandwidth, named, [model.name for model in world.models])
    for name, source in named.items():
        if not isinstance(source, str | os.PathLike | Motion):
            allowed = "must be a motion, or the path of a motion log"
            raise SimulationError(f"motion of model {name}", repr(source), allowed=allowed, remedy='write "log.csv"')
        if isinstance(source, str) and is_url(source):
            allowed = "must be a motion or a file: `simulate` does not follow a live system"
            raise SimulationError(f"motion of model {name}", source, allowed=allowed)
        if isinstance(source, str | os.PathLike):
            model = world.model(name)
            root = model.link(model.canonical_link).pose if model.links else Pose()
            context = make_log_context(world.environment, name, root, model.drive)
            motions[name] = load_motion(source, context, bandwidth=bandwidths.get(name))
        elif name in bandwidths:
            remedy = "smooth it where it is made, for example by ns.motion.load(..., bandwidth=...)"
            raise SimulationError(
                f"bandwidth of {name}", bandwidths[name], allowed="needs a motion file", remedy=remedy
            )
        else:
            motions[name] = source
    return motions


def _resolve_bandwidths(
    bandwidth: float | Mapping[str, float] | None, motion: Mapping[str, MotionSource], models: Sequence[str]
) -> dict[str, float]:
    """Return the bandwidths (Hz) by model name. Raises `SimulationError` for a model whose motion is not given."""
    model_names = [resolve_name(name, models, "motion of model", error=SimulationError) for name in motion]
    if bandwidth is None:
        return {}
    if not isinstance(bandwidth, Mapping):
        return dict.fromkeys(model_names, bandwidth)
    return {
        resolve_name(name, model_names, "bandwidth of model", error=SimulationError): f for name, f in bandwidth.items()
    }


def load_joints(joints: JointSource | None) -> JointTracks:
    """Return the tracks of joints by name; logs are read. Raises `SimulationError` and `MotionError`."""
    if joints is None:
        return {}
    if isinstance(joints, str | os.PathLike):
        return load_joint_log(joints)
    if isinstance(joints, Sequence):
        tracks: dict[str, JointTrack] = {}
        for path in joints:
            log = load_joint_log(path)
            twice = next((name for name in log if name in tracks), None)
            if twice is not None:
                raise SimulationError("joint", twice, allowed="must be in one log", where=Where(os.fspath(path)))
            tracks |= log
        return tracks
    if not isinstance(joints, Mapping) or not all(isinstance(track, JointTrack) for track in joints.values()):
        allowed = "must be the path of a log of joint positions, or tracks by the name of the joint"
        remedy = "write navsense.motion.joint_positions(time, {...})"
        raise SimulationError("joints", repr(joints), allowed=allowed, remedy=remedy)
    return joints


def load_logs(
    world: World,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    joints: JointSource | None,
    bandwidth: float | Mapping[str, float] | None = None,
) -> tuple[dict[str, Motion], JointTracks]:
    """Return the motions by model name and the tracks of joints; logs of one recording have the same t = 0.

    The logs in the file of the world are included if they are shifted. Raises `SimulationError` and `MotionError`.
    """
    motions, tracks = load_motions(world, motion, bandwidth), load_joints(joints)
    fixed = {model.name: model.motion for model in world.models if model.motion is not None}
    aligned, aligned_tracks = align_logs(fixed | motions, tracks)
    shifted = {name: log for name, log in aligned.items() if name in motions or log is not fixed[name]}
    return shifted, aligned_tracks
