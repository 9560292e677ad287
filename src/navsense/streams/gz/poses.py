"""States in the messages of Gazebo, decoded one at a time: poses as in a recording (`gazebo_poses`), and twists.

    Pose_V                   poses of entities: `/world/WORLD/dynamic_pose/info`, `/world/WORLD/pose/info`,
                             `/model/MODEL/pose`
    Pose                     one entity in each message: `/model/MODEL/pose`
    Odometry                 a pose, and a twist in the axes of the body
    OdometryWithCovariance   the same

Poses of entities are relative to their parent. A `Chain` lists the entities from the model to the moving frame.

The library generates its code from files; here the fields have the numbers of gz-msgs, which no version has changed.
Sources: the files of gz-msgs (`pose.proto`, `pose_v.proto`, `odometry.proto`, `odometry_with_covariance.proto`,
`twist.proto`, `header.proto`, `scene.proto`, `model.proto`, `link.proto`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from navsense.core.pose import Pose, conjugate, ensure_unit, rotate
from navsense.core.typing import Quaternion, Vector
from navsense.messages.base import NANOSECONDS_PER_SECOND
from navsense.messages.gz import FIXED64, LENGTH_DELIMITED, VARINT
from navsense.motion.driven import State
from navsense.recordings.gazebo_poses import iterate_fields

FIELD_1, FIELD_2, FIELD_3, FIELD_4, FIELD_5 = (number << 3 | LENGTH_DELIMITED for number in range(1, 6))
"""Tags of fields with a message or a text."""

MODEL_LINK, MODEL_MODEL, SCENE_MODEL, LINK_POSE = (number << 3 | LENGTH_DELIMITED for number in (7, 12, 9, 10))
"""Tags of fields of a model, a scene and a link."""

SECONDS, NANOSECONDS = 1 << 3 | VARINT, 2 << 3 | VARINT
"""Tags of the fields of a time."""

LINK_ID, MODEL_ID, POSE_ID = 2 << 3 | VARINT, 3 << 3 | VARINT, 3 << 3 | VARINT
"""Tags of the number of an entity."""

AXES: Mapping[int, int] = {2 << 3 | FIXED64: 0, 3 << 3 | FIXED64: 1, 4 << 3 | FIXED64: 2, 5 << 3 | FIXED64: 3}
"""Tags of x, y, z and w in a vector or a quaternion -> their index."""

UNPACK_VECTOR, UNPACK_QUATERNION = struct.Struct("<xdxdxd").unpack, struct.Struct("<xdxdxdxd").unpack
"""Read the fields of a vector or a quaternion without zeros."""

VECTOR_SIZE, QUATERNION_SIZE = 27, 36
"""Sizes (bytes) of these messages."""

MAX_ENTITIES = 10_000
"""Largest number of entities that are stored."""

MAX_DEPTH = 32
"""Largest depth of nested models."""


class NumberError(ValueError):
    """A number is not finite, or a quaternion is zero."""


def decode_vector(data: bytes) -> Vector:
    """Return x y z of a `Vector3d`. Absent ones are 0, as in proto3. Raises `ValueError`."""
    if len(data) == VECTOR_SIZE and data[0] == 0x11 and data[9] == 0x19 and data[18] == 0x21:
        x, y, z = UNPACK_VECTOR(data)
        return x, y, z
    x, y, z, _ = _decode_axes(data)
    return x, y, z


def decode_quaternion(data: bytes) -> Quaternion:
    """Return w x y z of a `Quaternion`. Raises `ValueError`."""
    if len(data) == QUATERNION_SIZE and data[0] == 0x11 and data[9] == 0x19 and data[18] == 0x21 and data[27] == 0x29:
        x, y, z, w = UNPACK_QUATERNION(data)
    else:
        x, y, z, w = _decode_axes(data)
    return w, x, y, z


def _decode_axes(data: bytes) -> list[float]:
    values = [0.0] * 4
    for tag, value in iterate_fields(data):
        if tag in AXES and isinstance(value, bytes):
            (values[AXES[tag]],) = struct.unpack("<d", value)
    return values


def make_pose(position: bytes, orientation: bytes) -> Pose:
    """Return a pose of two messages. Raises `ValueError`, `NumberError` for invalid numbers."""
    vector, quaternion = decode_vector(position), decode_quaternion(orientation)
    if not all(map(math.isfinite, vector)):
        raise NumberError(f"the position {vector} is not finite")
    if not (all(map(math.isfinite, quaternion)) and any(quaternion)):
        raise NumberError(f"the quaternion w x y z {quaternion} is zero or not finite")
    return Pose(vector, ensure_unit(quaternion))


def decode_pose(data: bytes) -> Pose:
    """Return the pose of a `Pose`. Raises `ValueError`."""
    position = orientation = b""
    for tag, value in iterate_fields(data):
        if tag == FIELD_4 and isinstance(value, bytes):
            position = value
        elif tag == FIELD_5 and isinstance(value, bytes):
            orientation = value
    return make_pose(position, orientation)


def decode_stamp(header: bytes) -> int | None:
    """Return the stamp (ns) of a header; None without one. Raises `ValueError`."""
    for tag, value in iterate_fields(header):
        if tag == FIELD_1 and isinstance(value, bytes):
            seconds = nanoseconds = 0
            for part, number in iterate_fields(value):
                if part == SECONDS and isinstance(number, int):
                    seconds = number - (number >> 63 << 64)
                elif part == NANOSECONDS and isinstance(number, int):
                    nanoseconds = number - (number >> 63 << 64)
            stamp = seconds * NANOSECONDS_PER_SECOND + nanoseconds
            if not -(1 << 63) <= stamp < 1 << 63:
                raise ValueError(f"a stamp of {seconds} s does not fit into 64 bits of ns")
            return stamp
    return None


def decode_frames(header: bytes) -> tuple[str, str]:
    """Return `frame_id` and `child_frame_id` of a header, "" without one. Raises `ValueError`."""
    frames = {b"frame_id": "", b"child_frame_id": ""}
    for tag, value in iterate_fields(header):
        if tag == FIELD_2 and isinstance(value, bytes):
            texts = [text for _, text in iterate_fields(value) if isinstance(text, bytes)]
            if len(texts) == 2 and texts[0] in frames:
                frames[texts[0]] = texts[1].decode(errors="replace")
    return frames[b"frame_id"], frames[b"child_frame_id"]


@dataclass(frozen=True)
class Entity:
    """A model or a link of a scene or of a message.

    name: local in a scene, as in the message otherwise.
    number: of the simulator; 0 without one.
    parent: name of its parent, "" if unknown.
    pose: in its parent, for an entity that the messages do not have; None without one.
    """

    name: str
    number: int = 0
    parent: str = ""
    pose: Pose | None = None


Chain = tuple[Entity, ...]
"""The entities from the world to the moving frame; the pose of each is in the one before."""


@dataclass(frozen=True)
class Target:
    """What moves the frame.

    model, link: names in the live system; without a link, the frame of the model.
    frame: name of an entity, whose poses are read as they are; "" for the model or link.
    root: pose of the moving frame in the frame of the model.
    """

    model: str = ""
    link: str = ""
    frame: str = ""
    root: Pose = Pose()

    @property
    def text(self) -> str:
        """The name in messages."""
        return self.frame or "::".join(filter(None, (self.model, self.link)))


class TargetError(ValueError):
    """The messages or the scene do not have the entity.

    entities: the names that they have.
    """

    def __init__(self, problem: str, entities: Sequence[str] = ()) -> None:
        """Store the names."""
        super().__init__(problem)
        self.entities = tuple(dict.fromkeys(entities))


def find_chain_in_scene(scene: bytes, target: Target) -> Chain:
    """Return the entities of a model or link in a `Scene`. Raises `ValueError`, `TargetError` without the entity."""
    entities: list[str] = []
    path = (*target.model.split("::"), *filter(None, target.link.split("::")))

    def search(data: bytes, tag: int, names: tuple[str, ...], chain: Chain) -> Chain | None:
        if not names:
            return chain
        if len(chain) >= MAX_DEPTH:
            raise ValueError(f"models are nested more than {MAX_DEPTH} deep")
        for kind, value in iterate_fields(data):
            is_link = kind == MODEL_LINK and tag == MODEL_MODEL
            if not (kind == tag or is_link) or not isinstance(value, bytes):
                continue
            entity = _decode_entity(value, is_link=is_link)
            if len(entities) < MAX_ENTITIES:
                entities.append("::".join((*(one.name for one in chain), entity.name)))
            if entity.name != names[0] or (is_link and len(names) > 1):
                continue
            result = search(b"" if is_link else value, MODEL_MODEL, names[1:], (*chain, entity))
            if result is not None and (not target.link or len(names) > 1 or is_link):
                return result
        return None

    result = search(scene, SCENE_MODEL, path, ())
    if result is None:
        raise TargetError(f"the scene has no {target.text}", entities)
    return result


def _decode_entity(data: bytes, *, is_link: bool) -> Entity:
    """Return the name, the number and the pose of a `Model` or a `Link`."""
    name_tag, number_tag, pose_tag = (FIELD_3, LINK_ID, LINK_POSE) if is_link else (FIELD_2, MODEL_ID, FIELD_5)
    name, number, pose = "", 0, None
    for tag, value in iterate_fields(data):
        if isinstance(value, int):
            number = value if tag == number_tag else number
        elif tag == name_tag:
            name = value.decode(errors="replace")
        elif tag == pose_tag:
            pose = decode_pose(value)
    return Entity(name, number, pose=pose)


def select_chain(entities: Sequence[Entity], target: Target) -> Chain:
    """Return the entities of a target in the poses of a message, as recordings select them. Raises `TargetError`.

    An entity has a name if it equals its full name or the end of it, after `::` or `/`. Without `frame` and `link`, the
    only entity of a message has any name.
    """
    names = [entity.name for entity in entities]
    target_name = target.frame or (f"{target.model}::{target.link}" if target.link else target.model)
    distinct = dict.fromkeys(names)
    if not target.frame and not target.link and len(distinct) == 1:
        return (entities[0],)
    matching = [
        name for name in distinct if name == target_name or name.endswith((f"::{target_name}", f"/{target_name}"))
    ]
    if target.link and not matching:  # names are local
        matching = [name for name in distinct if name == target.link]
    if target_name not in matching and len(matching) != 1:
        problem = f"{len(matching)} entities have the name {target_name}" if matching else f"no entity {target_name}"
        raise TargetError(problem, matching or names)
    name = target_name if target_name in matching else matching[0]
    chain: Chain = (entities[names.index(name)],)
    if not target.link:
        return chain
    while chain[0].parent in distinct and len(chain) < MAX_DEPTH:
        chain = (entities[names.index(chain[0].parent)], *chain)
    if not chain[0].parent:
        raise TargetError(f"the parent of {chain[0].name} is unknown without the service scene/info", names)
    if "::" in chain[0].name or len(chain) == 1:
        raise TargetError(f"the pose of {chain[0].name} is relative to {chain[0].parent}, which has no pose", names)
    return chain


class StateDecoder(Protocol):
    """Decodes the messages of one topic."""

    def decode(self, data: bytes) -> tuple[int | None, State] | None:
        """Return the stamp (ns; None without one) and the state of a message; None without a state.

        Raises `ValueError` for an invalid message, `TargetError` for one without the entity.
        """
        ...


class EntityDecoder:
    """Decodes `Pose_V` and `Pose`.

    chain: the entities, from a scene; None to select them from the first messages by their names.
    """

    def __init__(self, target: Target, chain: Chain | None, *, is_list: bool) -> None:
        """Start without a message."""
        self._target, self._is_list = target, is_list
        self._candidates: dict[str, Entity] = {}
        self._candidate_stamp: int | None = None
        self._root: Pose | None = None
        self._set_chain(chain)

    def _set_chain(self, chain: Chain | None) -> None:
        self._chain = chain
        self._names = {entity.name.encode() for entity in chain or ()}
        self._poses: dict[int, Pose] = {}
        self._pose_stamp: int | None = None
        self._root = None
        if chain and not self._target.link and self._target.frame in ("", self._target.model):
            # Entities of a scene have a number. Of others, the name tells whether it is the model.
            is_model = chain[-1].number > 0 or chain[-1].name == self._target.model
            self._root = self._target.root if is_model and self._target.root != Pose() else None

    def decode(self, data: bytes) -> tuple[int | None, State] | None:
        """Return the stamp and the state."""
        stamp: int | None = None
        if not self._is_list:
            bodies = [data]
        else:
            bodies = []
            for tag, value in iterate_fields(data):
                if tag == FIELD_2:
                    bodies.append(value)  # type: ignore[arg-type]  # by its wire type
                elif tag == FIELD_1:
                    stamp = decode_stamp(value)  # type: ignore[arg-type]
        if self._chain is None and not self._select(bodies, stamp):
            return None
        return self._compose(bodies, stamp)

    def _select(self, bodies: Sequence[bytes], stamp: int | None) -> bool:
        """Select the entities by the names in a message, or in all `Pose`s of one stamp. Return True if it is done."""
        for body in bodies:
            entity, header = _decode_named_pose(body)
            body_stamp = decode_stamp(header)
            is_next = body_stamp != self._candidate_stamp or entity.name in self._candidates
            if not self._is_list and self._candidates and is_next:
                candidates, self._candidates = list(self._candidates.values()), {}
                self._set_chain(select_chain(candidates, self._target))
                return True
            self._candidate_stamp = body_stamp
            if len(self._candidates) < MAX_ENTITIES:
                self._candidates.setdefault(entity.name, entity)
        if self._is_list:
            candidates, self._candidates = list(self._candidates.values()), {}
            self._set_chain(select_chain(candidates, self._target))
        return self._is_list

    def _compose(self, bodies: Sequence[bytes], stamp: int | None) -> tuple[int | None, State] | None:
        chain, poses = self._chain or (), self._poses
        if self._is_list:
            poses.clear()
        for body in bodies:
            name = header = position = orientation = b""
            number = 0
            for tag, value in iterate_fields(body):
                if tag == FIELD_2:
                    if value not in self._names:
                        break
                    name = value
                elif tag == POSE_ID:
                    number = value  # type: ignore[assignment]
                elif tag == FIELD_1:
                    header = value  # type: ignore[assignment]
                elif tag == FIELD_4:
                    position = value  # type: ignore[assignment]
                elif tag == FIELD_5:
                    orientation = value  # type: ignore[assignment]
            else:
                text = name.decode(errors="replace")
                for index, entity in enumerate(chain):
                    if (
                        entity.name == text
                        and entity.number in (0, number)
                        and (index not in poses or not self._is_list)
                    ):
                        body_stamp = decode_stamp(header) if header else None
                        stamp = stamp if body_stamp is None else body_stamp
                        if not self._is_list and stamp != self._pose_stamp:
                            poses.clear()
                            self._pose_stamp = stamp
                        poses[index] = make_pose(position, orientation)
                        break
        return self._finish(chain, poses, stamp)

    def _finish(self, chain: Chain, poses: dict[int, Pose], stamp: int | None) -> tuple[int | None, State] | None:
        """Return the product of the poses; None if a part of them has not arrived."""
        pose: Pose | None = None
        for index, entity in enumerate(chain):
            part = poses.get(index)
            if part is None:
                if not self._is_list and entity.pose is None:
                    return None
                part = entity.pose if poses else None
            if part is None:
                raise TargetError(f"no entity {entity.name}")
            pose = part if pose is None else pose @ part
        if pose is None:
            return None
        poses.clear()
        return stamp, State(pose if self._root is None else pose @ self._root)


def _decode_named_pose(body: bytes) -> tuple[Entity, bytes]:
    """Return the entity of a pose, and its header."""
    name, header = "", b""
    for tag, value in iterate_fields(body):
        if tag == FIELD_2 and isinstance(value, bytes):
            name = value.decode(errors="replace")
        elif tag == FIELD_1 and isinstance(value, bytes):
            header = value
    parent, child = decode_frames(header)
    return Entity(name or child, parent=parent), header


class OdometryDecoder:
    """Decodes `Odometry` and `OdometryWithCovariance`: the pose, and the twist in the axes of the body."""

    def __init__(self, target: Target, *, has_covariance: bool) -> None:
        """Start without a message."""
        self._target, self._has_covariance = target, has_covariance

    def decode(self, data: bytes) -> tuple[int | None, State]:
        """Return the stamp and the state."""
        header = pose_data = b""
        twist_data: bytes | None = None
        for tag, value in iterate_fields(data):
            if tag == FIELD_1 and isinstance(value, bytes):
                header = value
            elif tag == FIELD_2 and isinstance(value, bytes):
                pose_data = value
            elif tag == FIELD_3 and isinstance(value, bytes):
                twist_data = value
        if self._has_covariance:
            pose_data = _get_nested(pose_data, FIELD_1) or b""
            twist_data = None if twist_data is None else _get_nested(twist_data, FIELD_1)
        _, frame = decode_frames(header)
        if self._target.frame not in ("", frame):
            raise TargetError(f"no frame {self._target.frame}", [frame])
        pose = decode_pose(pose_data)
        if twist_data is None:
            velocity = angular_velocity = None
        else:
            velocity, angular_velocity = decode_twist(twist_data)
        root = self._target.root
        if frame == self._target.model and frame and root != Pose():
            pose = pose @ root
            if velocity is not None and angular_velocity is not None:
                velocity, angular_velocity = _move_twist(velocity, angular_velocity, root)
        return decode_stamp(header), State(pose, velocity, angular_velocity=angular_velocity, frame="body")


def _get_nested(data: bytes, tag: int) -> bytes | None:
    """Return the last field with a tag; None without one."""
    fields = dict(iterate_fields(data))
    value = fields.get(tag)
    return value if isinstance(value, bytes) else None


def decode_twist(data: bytes) -> tuple[Vector, Vector]:
    """Return the linear and the angular velocity of a `Twist`. Raises `ValueError`."""
    linear, angular = (decode_vector(_get_nested(data, tag) or b"") for tag in (FIELD_2, FIELD_3))
    if not all(map(math.isfinite, (*linear, *angular))):
        raise NumberError(f"the twist {linear}, {angular} is not finite")
    return linear, angular


def _move_twist(linear: Vector, angular: Vector, root: Pose) -> tuple[Vector, Vector]:
    """Return the twist of a frame with the pose `root` in the body: R^T (v + w x r), R^T w."""
    (vx, vy, vz), (wx, wy, wz), (rx, ry, rz) = linear, angular, root.position
    moved = (vx + wy * rz - wz * ry, vy + wz * rx - wx * rz, vz + wx * ry - wy * rx)
    to_frame = conjugate(root.rotation)
    return rotate(to_frame, moved), rotate(to_frame, angular)


STATE_TYPES = ("Pose_V", "Pose", "Odometry", "OdometryWithCovariance")
"""Message types that have states, without their package."""


def make_decoder(kind: str, target: Target, chain: Chain | None) -> StateDecoder:
    """Return the decoder of a type, without its package."""
    if kind in ("Pose_V", "Pose"):
        return EntityDecoder(target, chain, is_list=kind == "Pose_V")
    return OdometryDecoder(target, has_covariance=kind == "OdometryWithCovariance")
