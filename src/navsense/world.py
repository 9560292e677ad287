"""Worlds: models with links, sensors and clocks, all frozen.

`sdf` builds a world from a file; Python code can build one, too. Names are world-relative paths joined by `::`
(`outer::inner::link::sensor`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, Protocol, TypeVar

import numpy as np

from navsense.clock import Clock, Latency
from navsense.core.errors import SimulationError, Where
from navsense.core.names import WORLD_FRAME, get_short_name, resolve_name
from navsense.core.pose import Pose
from navsense.core.summaries import (
    Summary,
    format_spec,
    format_spec_html,
    format_summary,
    format_summary_html,
    format_title,
)
from navsense.core.text import format_count
from navsense.core.ticks import MAX_RATE, MIN_RATE, check_rate
from navsense.core.typing import BoolArray, Quaternion, Times, Vector
from navsense.core.units import DEGREE
from navsense.core.validation import check_number, validate_types
from navsense.environment.base import Environment
from navsense.environment.terrain.base import Shape
from navsense.faults.injection import Faults
from navsense.motion.base import HasNotes, LogContext, Motion
from navsense.motion.derived import attach, get_base
from navsense.motion.joints import JointKind, JointTrack
from navsense.motion.velocity_commands import Drive, VelocityCommands
from navsense.sensors.base import HasWarnings, Sensor, list_signals
from navsense.sensors.camera import Camera
from navsense.sensors.imu import Imu


class HasName(Protocol):
    """An object with a full name."""

    @property
    def name(self) -> str:
        """The full name."""


NamedT = TypeVar("NamedT", bound=HasName)


def find_by_name(objects: Sequence[NamedT], name: str, what: str) -> NamedT:
    """Return the object with a full name or an unambiguous ending of one. Raises `UnknownNameError`."""
    for candidate in objects:
        if candidate.name == name:
            return candidate
    full = resolve_name(name, [candidate.name for candidate in objects], what)
    return next(candidate for candidate in objects if candidate.name == full)


@dataclass(frozen=True)
class Link:
    """A link: full name, and pose in the frame of its top-level model.

    >>> world.link("rotor_0").pose
    Pose(position=(0.17, -0.17, 0.02))
    """

    name: str
    pose: Pose = Pose()

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of link {self.name}")


@dataclass(frozen=True)
class Mimic:
    """The constraint of a joint that follows another one, `<mimic>` of SDF 1.11 and URDF.

        position = multiplier (position of the leader - reference) + offset

    leader: full name of the joint that it follows.
    multiplier: rad or m for each rad or m of the leader.
    offset, reference: positions (rad or m) of the follower and of the leader.

    >>> ns.world.Mimic("gripper::left", -1.0).multiplier
    -1.0
    """

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0
    reference: float = 0.0

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of the mimic of {self.leader}")


@dataclass(frozen=True)
class Joint:
    """A joint between two links of a model.

    name, parent, child: full names; of links where the joint is between other frames that are fixed to them.
    type: as in SDF, such as "revolute".
    pose: of the frame of the joint in the frame of its top-level model, at position 0.
    axis: unit vector in the frame of the joint.
    track: position over time; None for a joint that keeps its position 0. A joint of type "revolute", "continuous" or
        "prismatic" can have one.
    lower, upper: limits of its position (rad or m). A track beyond them gives a warning.
    mimic: how it follows another joint, while that one has a track and it has none; None for a joint that does not.

    >>> ns.world.Joint("robot::elbow", "robot::base", "robot::arm", "revolute").axis
    (0.0, 0.0, 1.0)
    """

    name: str
    parent: str
    child: str
    type: str
    pose: Pose = Pose()
    axis: Vector = (0.0, 0.0, 1.0)
    track: JointTrack | None = field(default=None, compare=False)
    lower: float = -math.inf
    upper: float = math.inf
    mimic: Mimic | None = None

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type, and a track of a joint that has no position."""
        validate_types(self, f"of joint {self.name}", skip=("track",))
        if self.track is not None and self.type not in JOINT_KINDS:
            allowed = f"must be of type {', '.join(JOINT_KINDS)} to be moved"
            raise SimulationError(f"type of joint {self.name}", self.type, allowed=allowed)


JOINT_KINDS: Mapping[str, JointKind] = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}
"""Types of joints that a log of positions can move."""


@dataclass(frozen=True)
class Solid:
    """A surface that rays can hit: full name, full name of its link, and `pose` in the frame of the link.

    >>> ns.world.Solid("sea::bed::floor", "sea::bed", ns.environment.Plane()).pose.position
    (0.0, 0.0, 0.0)
    """

    name: str
    link: str
    shape: Shape
    pose: Pose = Pose()
    where: Where | None = None

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, f"of surface {self.name}", skip=("shape",))


@dataclass(frozen=True)
class Model:
    """A top-level model: one rigid body, except for joints with a track. Its links include those of nested models.

    `pose` is the initial pose of the model frame in the world. `canonical_link` is the full name of the link that
    `motion` moves; a model without a motion is stationary. `actuators` are the parts that could move the model: drive
    plug-ins, thrusters, actuated joints. `drive` is how the model follows velocity commands. `joints` are
    those between its links. `where` is its declaration.

    Velocity commands as the motion start at `pose` and move the frame of the drive, or the canonical link without one:
    `root_motion` is then the motion of the canonical link.

    >>> world.model("quadrotor").canonical_link
    'quadrotor::base_link'
    """

    name: str
    links: tuple[Link, ...]
    canonical_link: str
    pose: Pose = Pose()
    static: bool = False
    motion: Motion | None = None
    actuators: tuple[str, ...] = ()
    where: Where | None = field(default=None, compare=False)
    drive: Drive | None = None
    joints: tuple[Joint, ...] = ()

    def __post_init__(self) -> None:
        """Reject fields of a wrong type, and velocity commands that the drive cannot follow."""
        validate_types(self, f"of model {self.name}", skip=("motion",))
        _ = self.root_motion

    @cached_property
    def root_motion(self) -> Motion | None:
        """The motion of the canonical link in the world; None without a motion."""
        commands = self.motion
        if not isinstance(commands, VelocityCommands) or not self.links or commands.is_placed:
            return commands
        root = self.link(self.canonical_link).pose
        frame = root if self.drive is None else self.drive.pose
        return attach(commands.place(self.drive, _find_start(self, commands) @ frame), frame.inverse() @ root)

    @cached_property
    def joint_paths(self) -> Mapping[str, tuple[tuple[Joint, float], ...]]:
        """The joints that move each link relative to the canonical link, in order.

        The number is 1.0 on the way from parent to child, else -1.0. Links that no joint moves are not in the mapping.
        """
        neighbors: dict[str, list[tuple[str, Joint, float]]] = {link.name: [] for link in self.links}
        for joint in self.joints:
            if joint.parent in neighbors and joint.child in neighbors:
                neighbors[joint.parent].append((joint.child, joint, 1.0))
                neighbors[joint.child].append((joint.parent, joint, -1.0))
        children = {joint.child for joint in self.joints}
        roots = sorted(neighbors, key=lambda name: (name != self.canonical_link, name in children))
        paths: dict[str, tuple[tuple[Joint, float], ...]] = {}
        for root in roots:
            queue = [] if root in paths else [root]
            paths.setdefault(root, ())
            for name in queue:
                for neighbor, joint, sign in neighbors[name]:
                    if neighbor not in paths:
                        step = () if joint.track is None else ((joint, sign),)
                        paths[neighbor] = (*paths[name], *step)
                        queue.append(neighbor)
        return {name: path for name, path in paths.items() if path}

    __repr__, _repr_html_ = format_title, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        kind = "static" if self.static else "no motion" if self.motion is None else type(self.motion).__name__
        title = f"{self.name}: {format_count(len(self.links), 'link')}, {kind}"
        return Summary("Model", title, ("link", "pose in the model"), [(link.name, link.pose) for link in self.links])

    def link(self, name: str) -> Link:
        """Return a link by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.links, name, "link")


def _find_start(model: Model, commands: VelocityCommands) -> Pose:
    """Return the pose of a model in the world at which its commands start, before a planar drive makes it upright."""
    if commands.start is None:
        return model.pose
    return commands.start @ model.link(model.canonical_link).pose.inverse()


def make_log_context(environment: Environment, name: str, root: Pose, drive: Drive | None = None) -> LogContext:
    """Return what the motion log of a model needs of its world.

    name, drive: those of the model.
    root: pose of its canonical link in the model.
    """
    surface = environment.water.surface if environment.water else 0.0
    return LogContext(environment.origin, surface, drive.topic if drive else "", name, root)


class Units(Mapping[str, str]):
    """Unit of each array by name, read-only. Unlike a mapping proxy it can be pickled."""

    __slots__ = ("_units",)

    def __init__(self, units: Mapping[str, str]) -> None:
        """Copy the units."""
        self._units = dict(units)

    def __repr__(self) -> str:
        """Return the repr of a dictionary."""
        return repr(self._units)

    def __getitem__(self, name: str) -> str:
        """Return the unit of an array."""
        return self._units[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the arrays."""
        return iter(self._units)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._units)


@dataclass(frozen=True)
class Switch:
    """A scheduled switch of a sensor: on or off from the first sample at or after `time` (s, true time) on.

    Raises `SensorError` for a negative or infinite time.

    >>> ns.world.Switch(10.0, on=True)
    Switch(time=10.0, on=True)
    """

    time: float
    on: bool

    def __post_init__(self) -> None:
        """Check the time."""
        validate_types(self, "of a switch")
        check_number("time of a switch (s)", self.time, 0.0, field="time")


OPTICAL = Pose(rotation=(0.5, -0.5, 0.5, -0.5))
"""Pose of an optical frame (x right, y down, z forward) in a frame with x forward and z up. Source: REP 103."""


@dataclass(frozen=True)
class OpticalFrame:
    """The frame of a camera's messages: its name, and its `pose` in the frame of the camera.

    >>> ns.world.OpticalFrame("front_optical").pose == ns.world.OPTICAL
    True
    """

    name: str
    pose: Pose = OPTICAL

    __repr__ = format_spec

    def __post_init__(self) -> None:
        """Reject fields of a wrong type."""
        validate_types(self, "of an optical frame")


@dataclass(frozen=True)
class MountedSensor:
    """A sensor on a link: specification, mounting, rate, names.

    `rate` is in Hz; a rate of 0 in a file is 1 / max_step_size here. `clock` is the full name of a clock, or None for
    true time. `frame` is the frame in messages (`<frame_id>`, else the full name of the sensor); messages of a camera
    with an `optical_frame` have that one. With `visualize`, recordings have the beams of a range sensor, DVL or ADCP as
    markers.

    A sensor is on from the start if `is_on`; `switches` change this later. A switch at time 0 becomes `is_on`. While a
    sensor is off it publishes nothing, and its errors continue: later samples are those of a sensor that was always on.

    >>> world.sensor("imu").rate, world.sensor("imu").clock
    (1000.0, 'quadrotor::base_link::autopilot')
    """

    name: str
    spec: Sensor
    model: str
    link: str
    rate: float
    pose: Pose = Pose()
    topic: str = ""
    frame: str = ""
    clock: str | None = None
    latency: Latency | None = None
    faults: Faults = Faults()
    where: Where | None = None
    is_on: bool = True
    switches: tuple[Switch, ...] = ()
    visualize: bool = False
    optical_frame: OpticalFrame | None = None

    def __post_init__(self) -> None:
        """Reject fields of a wrong type, and two switches at one time; `World` checks the rate."""
        validate_types(self, f"of sensor {self.name}", skip=("spec", "rate"))
        switches = tuple(sorted(self.switches, key=lambda switch: switch.time))
        for first, second in pairwise(switches):
            if first.time == second.time:
                allowed = "must differ from the times of its other switches"
                raise SimulationError(f"time of a switch of sensor {self.name} (s)", first.time, allowed=allowed)
        if switches and switches[0].time == 0.0:  # the state at the start
            object.__setattr__(self, "is_on", switches[0].on)
            switches = switches[1:]
        object.__setattr__(self, "switches", switches)

    def __repr__(self) -> str:
        """Return a short description."""
        return f"<MountedSensor {self.name}: {self.spec.type}, {self.rate:g} Hz, clock {self.clock or 'none'}>"

    _repr_html_ = format_spec_html

    @property
    def is_always_on(self) -> bool:
        """True if the sensor is on at the start and is never switched off."""
        return self.is_on and all(switch.on for switch in self.switches)

    def switch(self, time: float, *, on: bool, start: float = 0.0) -> MountedSensor:
        """Return the sensor with a switch from the first sample at or after `time` (s) on.

        Switches at other times remain. Those before `start` (s) are replaced by the state that they leave.
        """
        is_on = bool(self.compute_on(np.array([start]))[0])
        switches = tuple(switch for switch in self.switches if switch.time > start and switch.time != time)
        return replace(self, is_on=is_on, switches=(*switches, Switch(time, on)))

    def compute_on(self, time: Times) -> BoolArray:
        """Return whether the sensor is on at instants (n,) s, by its schedule."""
        states = np.array([self.is_on, *(switch.on for switch in self.switches)])
        instants = np.array([switch.time for switch in self.switches])
        on: BoolArray = states[np.searchsorted(instants, time, side="right")]
        return on

    @cached_property
    def unit(self) -> Mapping[str, str]:
        """Unit of each array of a reading, by name."""
        return Units({output.name: output.unit for output in self.spec.outputs})


NoteKind = Literal["warning", "unsupported", "foreign"]
"""A value that you probably do not want; an element that has no effect; an element of another program."""

NoteSubject = Literal["", "sensor", "plugin", "include"]
"""A sensor that is not simulated; the plug-in of a sensor that is not read; an included model that is not found."""


@dataclass(frozen=True)
class Note:
    """A note about a world file with its reason. Warnings that a world derives have the name of `sensor` or `model`.

    `subject` is what the world lacks. Recordings store the notes about plug-ins.

    >>> note = ns.world.Note("unsupported", "<visual>", "has only a visual effect")
    >>> print(note)
    <visual>: has only a visual effect
    """

    kind: NoteKind
    what: str
    reason: str
    where: Where | None = None
    sensor: str = ""
    model: str = ""
    subject: NoteSubject = ""

    def __str__(self) -> str:
        """Return one line."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}: {self.reason}"


@dataclass(frozen=True)
class LayersTopic:
    """Topic of the current at several depths (m) below `surface` (m, height in the world).

    >>> ns.world.LayersTopic("/stratified_current", (5.0, 10.0)).surface
    0.0
    """

    topic: str
    depths: tuple[float, ...]
    surface: float = 0.0


@dataclass(frozen=True)
class CurrentTopic:
    """Topic of the world's current: name, rate (Hz, 0 for no topic), and a fixed position (m).

    `layers` is a topic with the current at several depths above and below the position.

    >>> ns.world.CurrentTopic("/current", rate=1.0).topic
    '/current'
    """

    topic: str = "/hydrodynamics/current_velocity"
    rate: float = 20.0
    position: Vector = (0.0, 0.0, 0.0)
    layers: LayersTopic | None = None

    def __post_init__(self) -> None:
        """Reject a topic without a name, and an invalid rate."""
        for topic in (self.topic, self.layers.topic if self.layers else self.topic):
            if not topic.strip("/"):
                raise SimulationError("topic of the current", topic or '""', allowed="must have a name")
        if self.rate != 0.0:
            check_rate(self.rate, f"rate of {self.topic}")


_MUST_BE_LINK = "must be a link of its model, by its full name"


def _check_unique(kind: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise SimulationError(f"name of a {kind}", duplicate, allowed=f"must be unique among the {kind}s of a world")


def _find_initial_pose(model: Model) -> Pose:
    """Return a pose with the rotation of the model frame at t = 0; without a motion, the pose of the model."""
    if model.root_motion is not None:
        try:
            w, x, y, z = model.root_motion.at(np.zeros(1)).rotation_wb[0].tolist()
            return Pose(rotation=(w, x, y, z)) @ model.link(model.canonical_link).pose.inverse()
        except Exception:  # noqa: BLE001  # the motion of a caller may raise anything; a warning must not reject the world
            return model.pose
    return model.pose


LIMIT_EXCESS = 1e-6
"""Distance (rad or m) from a limit of a joint up to which a position is that limit, rounded in a log."""

DEGREES_EXCESS = 1.0
"""Distance (rad) from a limit of a joint from which its positions are probably degrees."""


def _list_joint_notes(model: Model) -> Iterator[Note]:
    """Yield a warning for each joint whose positions exceed its limits."""
    for joint in model.joints:
        if joint.track is None or joint.track.is_recorded:
            continue
        lowest, highest = float(joint.track.position.min()), float(joint.track.position.max())
        is_high = highest - joint.upper >= joint.lower - lowest
        position, limit = (highest, joint.upper) if is_high else (lowest, joint.lower)
        excess = abs(position - limit)
        if max(highest - joint.upper, joint.lower - lowest) <= LIMIT_EXCESS:
            continue
        is_angle = JOINT_KINDS[joint.type] == "revolute"
        unit, side = "rad" if is_angle else "m", "above its upper" if is_high else "below its lower"
        reason = f"its log has the position {position:.6g} {unit}, {excess:.3g} {unit} {side} limit {limit:g} {unit}"
        short_name = joint.name.rpartition("::")[2]
        if is_angle and excess > DEGREES_EXCESS and not joint.track.unit:
            reason += f"; if the log has degrees, name the column {short_name}_deg, or convert them to radians"
        yield Note("warning", f"joint {joint.name}", reason, model.where, model=model.name)


def _is_left_alone(model: Model) -> bool:
    """Return True for a model that has actuators, and neither a motion nor a joint that moves."""
    return not model.static and model.motion is None and bool(model.actuators) and not model.joint_paths


def _make_stationary_warning(model: Model) -> Note:
    """Return the warning about a model with actuators and without a motion."""
    first, more = model.actuators[0], len(model.actuators) - 1
    actuators = f"{first} and {format_count(more, 'other actuator')}" if more else first
    remedy = "set --motion or <navsense:motion>"
    if all(actuator.startswith("joint ") for actuator in model.actuators):
        remedy = "set --joints for its joints, --motion or <navsense:motion> for the model"
    if model.drive is not None:
        remedy = f"give a log of its velocity commands (topic {model.drive.topic}) as --motion or <navsense:motion>"
    reason = f"stationary, although it has {actuators}; {remedy}"
    return Note("warning", f"model {model.name}", reason, model.where, model=model.name)


LEVEL_TILT = 1e-3
"""Largest tilt (rad) of a model with a planar drive that gives no warning."""


def _list_motion_notes(model: Model, imus: Sequence[Imu]) -> Iterator[Note]:
    """Yield the warnings of the motion of a model with IMUs, and what was not read."""
    motion = None if model.root_motion is None else get_base(model.root_motion)
    if isinstance(motion, HasNotes):
        name = f"model {model.name}"
        for reason in motion.find_warnings():
            yield Note("warning", name, reason, model.where, model=model.name)
        for reason in motion.notes:
            yield Note("unsupported", f"motion of {name}", reason, model.where, model=model.name)
    commands, drive = model.motion, model.drive
    if isinstance(commands, VelocityCommands) and not commands.is_placed and drive is not None and drive.kind != "free":
        w, x, y, z = _find_start(model, commands).rotation
        tilt = 2.0 * math.atan2(math.hypot(x, y), math.hypot(w, z))
        if tilt > LEVEL_TILT:
            reason = f"starts upright, although its pose is tilted by {tilt / DEGREE:.3g} deg: {drive.name} is planar"
            remedy = "remove roll and pitch from <pose>"
            yield Note("warning", f"model {model.name}", f"{reason}; {remedy}", model.where, model=model.name)
    if isinstance(motion, VelocityCommands) and imus:
        for reason in _find_jumps(motion, has_sampled_imu=not all(imu.averaged for imu in imus)):
            yield Note("warning", f"model {model.name}", reason, model.where, model=model.name)


def _find_jumps(motion: VelocityCommands, *, has_sampled_imu: bool) -> Iterator[str]:
    """Yield warnings about changes of velocity that accelerometers do not see."""
    limits = ("max_acceleration", "max_angular_acceleration")
    for speeds, is_start in ((motion.start_speeds, True), (motion.largest_jumps, False)):
        sizes = " and ".join(
            f"{speed:.3g} {unit}" for speed, unit in zip(speeds, ("m/s", "rad/s"), strict=True) if speed
        )
        names = " and ".join(name for speed, name in zip(speeds, limits, strict=True) if speed)
        remedy = f"set {names} in <navsense:motion>"
        if sizes and is_start:
            yield (
                f"it starts with {sizes}, and no accelerometer sees a change before t = 0; {remedy}, or begin the log "
                "with a row of zeros"
            )
        elif sizes and has_sampled_imu:
            yield (
                f"its velocity jumps by up to {sizes}, which a sampled accelerometer does not see; {remedy}, or "
                "<navsense:averaged> in the IMU"
            )


def _list_frame_notes(models: Sequence[Model], sensors: Sequence[MountedSensor]) -> Iterator[Note]:
    """Yield a warning for each frame of a sensor's messages that is at another place under the same name.

    The order is that of `/tf_static`, which has the first one.
    """
    owners: dict[str, tuple[str, str, str, Pose]] = {WORLD_FRAME: ("the world", "", "", Pose())}
    model_of_name = {model.name: model for model in models}
    for model in models:
        for link in model.links:
            owners[link.name] = (f"link {link.name}", model.name, _find_fixed_part(model, link.name), link.pose)
    frames = [(sensor, sensor.name, sensor.pose) for sensor in sensors]
    frames += [(sensor, sensor.frame, sensor.pose) for sensor in sensors if sensor.frame]
    # The messages of the second camera of a stereo pair are in the frame of the first one.
    frames += [
        (sensor, sensor.optical_frame.name, sensor.pose @ sensor.optical_frame.pose)
        for sensor in sensors
        if sensor.optical_frame and not (isinstance(sensor.spec, Camera) and sensor.spec.is_second_of_pair)
    ]
    for sensor, name, pose in frames:
        model = model_of_name[sensor.model]
        pose_in_model = model.link(sensor.link).pose @ pose
        part = _find_fixed_part(model, sensor.link)
        owner, *place, owner_pose = owners.setdefault(name, (f"sensor {sensor.name}", model.name, part, pose_in_model))
        if place != [model.name, part] or not _is_same_pose(owner_pose, pose_in_model):
            tag = "<optical_frame_id>" if name != sensor.frame else "<frame_id>"
            reason = f"is that of {owner} too, at another place; /tf_static has only that one; "
            reason += f"give it another name by {tag}, or by the frame of its plug-in"
            yield Note("warning", f"sensor {sensor.name}: frame {name}", reason, sensor.where, sensor.name)


def _find_fixed_part(model: Model, link: str) -> str:
    """Return a name of the rigid part that a link belongs to: its own if joints move it, else that of the model."""
    return link if link in model.joint_paths else model.canonical_link


SAME_POSITION, SAME_ROTATION = 1e-6, 1e-6
"""Largest distance (m) and angle (rad) between two poses that differ by rounding in a file."""


def _is_same_pose(one: Pose, other: Pose) -> bool:
    """Return True if two poses differ by rounding only."""
    difference = one.inverse() @ other
    angle = 2.0 * math.hypot(*difference.rotation[1:])
    return math.hypot(*difference.position) <= SAME_POSITION and angle <= SAME_ROTATION


def make_sensor_warning(world: World) -> Note | None:
    """Return the warning about a world that has nothing to simulate; None if it has a sensor.

    >>> print(ns.world.make_sensor_warning(ns.World("empty")))
    world empty: has no sensor; the file declares none
    """
    if world.sensors:
        return None
    subjects = Counter(note.subject for note in world.notes)
    sensors, includes = subjects["sensor"], subjects["include"]
    reasons = []
    if sensors:
        verb = "is" if sensors == 1 else "are"
        reasons.append(f"the file has {format_count(sensors, 'sensor')} that {verb} not simulated")
    if includes:
        reasons.append(f"{format_count(includes, 'included model')} missing")
    return Note("warning", f"world {world.name}", f"has no sensor; {', '.join(reasons) or 'the file declares none'}")


@dataclass(frozen=True)
class World:
    """A valid world: every name in it resolves.

    `notes` include the warnings of mounted sensors (`sensors.base.HasWarnings`) and of motions
    (`motion.base.HasNotes`), and those about models with actuators and without a motion. `sources` are the absolute
    paths of its files; no recording overwrites them.

    >>> world.sensor("compass").topic
    '/world/field/model/quadrotor/model/mast/link/board/sensor/compass/magnetometer'
    >>> world.link("board").name
    'quadrotor::mast::board'
    """

    name: str
    models: tuple[Model, ...] = ()
    sensors: tuple[MountedSensor, ...] = ()
    clocks: tuple[Clock, ...] = ()
    environment: Environment = field(default_factory=Environment)
    max_step_size: float = 0.001
    path: str = ""
    notes: tuple[Note, ...] = ()
    current_topic: CurrentTopic = CurrentTopic()
    solids: tuple[Solid, ...] = ()
    sources: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Reject names that do not resolve, and invalid rates."""
        _check_unique("model", [model.name for model in self.models])
        _check_unique("sensor", [sensor.name for sensor in self.sensors])
        _check_unique("clock", [clock.name for clock in self.clocks])
        _check_unique("link", [link.name for model in self.models for link in model.links])
        clocks = {clock.name for clock in self.clocks}
        links = {(model.name, link.name) for model in self.models for link in model.links}
        for model in self.models:
            if model.links and (model.name, model.canonical_link) not in links:
                raise SimulationError(f"canonical link of {model.name}", model.canonical_link, allowed=_MUST_BE_LINK)
        link_names = {link for _, link in links}
        for solid in self.solids:
            if solid.link not in link_names:
                raise SimulationError(f"link of surface {solid.name}", solid.link, allowed="must be a link of a model")
        for sensor in self.sensors:
            check_rate(sensor.rate, f"rate of sensor {sensor.name}")
            if (sensor.model, sensor.link) not in links:
                raise SimulationError(f"link of sensor {sensor.name}", sensor.link, allowed=_MUST_BE_LINK)
            for name in list_signals(sensor.spec):
                if name not in self.environment.signals:
                    known = ", ".join(self.environment.signals) or "none: the world has no signal"
                    raise SimulationError(
                        f"signal of sensor {sensor.name}",
                        name,
                        allowed=f"must be one of {known}",
                        remedy=f'add <navsense:signal name="{name}"> to the world',
                        where=sensor.where,
                    )
            if sensor.clock is not None and sensor.clock not in clocks:
                allowed = f"must be one of {', '.join(sorted(clocks)) or 'none: the world has no clock'}"
                raise SimulationError(f"clock of sensor {sensor.name}", sensor.clock, allowed=allowed)
        if not 1.0 / MAX_RATE <= self.max_step_size <= 1.0 / MIN_RATE:
            allowed = f"must be from {1.0 / MAX_RATE:g} to {1.0 / MIN_RATE:g} s"
            raise SimulationError("max_step_size", self.max_step_size, allowed=allowed)
        notes = [note for note in self.notes if not (note.sensor or note.model)]
        still = (model for model in self.models if _is_left_alone(model))
        notes += map(_make_stationary_warning, still)
        for model in self.models:
            specs = [sensor.spec for sensor in self.sensors if sensor.model == model.name]
            imus = [spec for spec in specs if isinstance(spec, Imu)]
            notes += _list_motion_notes(model, imus)
            notes += _list_joint_notes(model)
        notes += [note for sensor in self.sensors for note in self._list_warnings(sensor)]
        notes += _list_frame_notes(self.models, self.sensors)
        object.__setattr__(self, "notes", tuple(notes))

    def _list_warnings(self, sensor: MountedSensor) -> Iterator[Note]:
        """Yield the warnings of a sensor that is never switched on, and those about its mounting."""
        if not sensor.is_on and not any(switch.on for switch in sensor.switches):
            reason = f"publishes nothing until it is switched on: --switch-on {sensor.name}, "
            reason += '<navsense:switch time="10">on</navsense:switch>, or the switch of a live run'
            yield Note("warning", f"sensor {sensor.name} is off", reason, sensor.where, sensor.name)
        if isinstance(sensor.spec, HasWarnings):
            rotation = self._find_initial_rotation(sensor)
            for what, reason in sensor.spec.find_warnings(rotation) if rotation else ():
                yield Note("warning", f"sensor {sensor.name}: {what}", reason, sensor.where, sensor.name)

    def _find_initial_rotation(self, sensor: MountedSensor) -> Quaternion | None:
        """Return the initial rotation, sensor to world; None for an invalid pose."""
        model = self.model(sensor.model)
        try:
            return (_find_initial_pose(model) @ (model.link(sensor.link).pose @ sensor.pose)).rotation
        except (AttributeError, TypeError, ValueError):
            return None

    __repr__, _repr_html_ = format_summary, format_summary_html

    def summarize(self) -> Summary:
        """Return title and table for `repr` and notebooks."""
        counts = (
            format_count(len(parts), noun)
            for parts, noun in ((self.models, "model"), (self.sensors, "sensor"), (self.clocks, "clock"))
        )
        header = ("sensor", "type", "rate", "clock")
        rows = [
            (sensor.name, sensor.spec.type, f"{sensor.rate:g} Hz", get_short_name(sensor.clock or ""))
            for sensor in self.sensors
        ]
        return Summary("World", f"{self.name}: {', '.join(counts)}", header, rows)

    def model(self, name: str) -> Model:
        """Return a top-level model by name. Raises `UnknownNameError`."""
        return find_by_name(self.models, name, "model")

    def link(self, name: str) -> Link:
        """Return a link by any unambiguous ending of its name. A model's name refers to its canonical link.

        Raises `UnknownNameError`.
        """
        links = {link.name: link for model in self.models for link in model.links}
        canonical = {model.name: model.canonical_link for model in self.models if model.links}
        full = resolve_name(name, (*links, *canonical), "link")
        return links[canonical.get(full, full)]

    def sensor(self, name: str) -> MountedSensor:
        """Return a sensor by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.sensors, name, "sensor")

    def clock(self, name: str) -> Clock:
        """Return a clock by any unambiguous ending of its name. Raises `UnknownNameError`."""
        return find_by_name(self.clocks, name, "clock")


def with_switch(world: World, sensor: str, *, on: bool, time: float | None = None) -> World:
    """Return the world with a sensor that is switched on or off.

    sensor: any unambiguous ending of its name.
    time: s, true time, of a switch in addition to those of its schedule. None: its state at the start.

    Raises `UnknownNameError`, and `SensorError` or `SimulationError` for an invalid time.

    >>> late = ns.with_switch(ns.with_switch(world, "compass", on=False), "compass", on=True, time=0.5)
    >>> reading = ns.simulate(late, duration=1.0)["compass"]
    >>> float(reading.time[reading.emitted][0])
    0.5
    """
    mounted = world.sensor(sensor)
    if time is None:
        switched = replace(mounted, is_on=on)
    else:
        switched = replace(mounted, switches=(*mounted.switches, Switch(float(time), on)))
    return replace(world, sensors=tuple(switched if entry is mounted else entry for entry in world.sensors))
