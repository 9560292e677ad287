"""Conversion of URDF to the element tree of SDF: one `<sdf>` with one `<model>`; elements keep their lines.

| URDF | becomes |
|---|---|
| `<robot name="auv"><origin .../>` | `<model name="auv" canonical_link="ROOT"><pose>` |
| `<link name="child">` | `<link name="child"><pose relative_to="parent">`: the `<origin>` of its joint |
| `<joint>` | `<joint>` at the child's frame; for a type that SDF lacks, a `<frame>` attached to the child |
| `<gazebo reference="NAME">...` | `...` in the link, or else the joint, of that name |
| `<gazebo>...` | `...` in the model |
| `<collision name="NAME">` | the same; default names are `LINK_collision`, `LINK_collision_1`, ... |
| `<box size>`, `<sphere radius>`, `<cylinder radius length>`, `<capsule radius length>` | child elements |
| `<mesh filename scale>` | `<mesh><uri><scale>` |

    pose of child in parent  =  origin of the joint, xyz (m) and rpy (rad, fixed axes)      at joint position 0

All links are kept: fixed joints are not lumped, and links without mass are not dropped. A root link `world` is the
world itself. Source: URDF as ROS documents it; the tests compare with libsdformat's conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from navsense.core.names import WORLD_FRAME, suggest_name
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.names import NEWEST_VERSION, check_unique, parse_name
from navsense.sdf.schema import ACTUATOR_TAG
from navsense.sdf.urdf import schema
from navsense.sdf.values import invalid_choice, invalid_value, is_effort, parse_numbers
from navsense.sdf.versions import upgrade_unversioned
from navsense.sdf.xml_reader import Element

_DEFAULT_NAME = "robot"
_AXIS_JOINT_TYPES = ("revolute", "prismatic", "planar", "continuous")
_ZERO = (0.0, 0.0, 0.0)
_FORWARD = (1.0, 0.0, 0.0)


def convert_urdf(context: Context, robot: Element) -> Element:
    """Return the `<sdf>` of a `<robot>`; adds problems to the context."""
    context.check(robot, schema.ROBOT)
    if robot.get_attribute("name") is None and not any(True for _ in robot.find_all("link", "joint")):
        remedy = "if it defines only macros, name a file that calls them"
        raise invalid_value(robot, None, "must have a name and a link", remedy=remedy)
    name, problems = _DEFAULT_NAME, context.problem_count
    with context.collect_errors():
        name = parse_name(robot)
    converter = _RobotConverter(context, robot, problems=problems)
    converter.read_links()
    converter.read_joints()
    model = robot.make_element("model", attributes={"name": name})
    origin = robot.find("origin")
    poses = [] if origin is None else [origin.make_element("pose", converter.format_origin(origin))]
    model.children = [*poses, *converter.links.values(), *converter.list_joints(), *converter.list_actuators()]
    root = converter.find_root()
    if root:
        model.attributes = {**model.attributes, "canonical_link": root}
    elif context.problem_count == problems:
        context.add_problem(invalid_value(robot, name, "a robot must have at least one link", attribute="name"))
    for gazebo in robot.find_all("gazebo"):
        with context.collect_errors():
            converter.apply_gazebo(model, gazebo)
    sdf = robot.make_element("sdf", "", [model], {"version": f"1.{NEWEST_VERSION}"})
    upgrade_unversioned(context, sdf)
    context.incomplete = context.incomplete or context.problem_count > problems  # missing elements are already reported
    return sdf


@dataclass(frozen=True)
class _UrdfJoint:
    """A joint: its element, the names of its links, and its SDF element."""

    element: Element
    parent: str
    child: str
    converted: Element


@dataclass
class _RobotConverter:
    """The state of a conversion.

    links: the converted links by name.
    joints: the joints by name.
    parent_joints: the joint to the parent of each link, by the name of the link.
    problems: the number of problems before the conversion.
    """

    context: Context
    element: Element
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, _UrdfJoint] = field(default_factory=dict)
    parent_joints: dict[str, _UrdfJoint] = field(default_factory=dict)
    world: Element | None = None
    problems: int = 0

    def read_links(self) -> None:
        """Read the links."""
        elements: dict[str, Element] = {}
        for element in self.element.find_all("link"):
            self.context.check(element, schema.LINK)
            with self.context.collect_errors():
                name = element.get_attribute("name") or ""
                if name != WORLD_FRAME:
                    parse_name(element)
                check_unique(element, name, elements, f"the {element.tag}s of a robot")
                if name == WORLD_FRAME:
                    self.world = element
                else:
                    collisions = self._convert_collisions(element)
                    self.links[name] = element.make_element("link", "", collisions, {"name": name})

    def _convert_collisions(self, link: Element) -> Iterator[Element]:
        """Yield the SDF collisions of a link: sizes are elements instead of attributes."""
        for number, collision in enumerate(link.find_all("collision")):
            self.context.check(collision, schema.COLLISION)
            default_name = f"{link.get_attribute('name') or ''}_collision" + (f"_{number}" if number else "")
            name = collision.get_attribute("name") or default_name
            children: list[Element] = []
            origin, geometry = collision.find("origin"), self.context.find_child(collision, "geometry", schema.GEOMETRY)
            if origin is not None:
                children.append(origin.make_element("pose", self.format_origin(origin, "collision")))
            if geometry is not None:
                if not geometry.children:
                    reason = f"is empty: skipped; it must hold one of {', '.join(schema.SHAPES)}"
                    self.context.add_note("warning", "<collision><geometry>", reason, geometry.where)
                shapes = [self._convert_shape(shape) for shape in geometry.find_all(*schema.SHAPES)]
                children.append(geometry.make_element("geometry", children=shapes))
            yield collision.make_element("collision", "", children, {"name": name.replace("::", "_")})

    def _convert_shape(self, element: Element) -> Element:
        """Return a shape with elements instead of attributes."""
        tags = schema.SHAPES[element.tag]
        self.context.check(element, ElementSchema(attributes=frozenset(tags), strict=False))
        children: list[Element] = []
        for name, tag in tags.items():
            # SDF has default sizes, URDF has none. An empty size is an error if rays may hit the shape.
            if name in element.attributes or name != "scale":
                children.append(element.make_element(tag, element.attributes.get(name, "").strip()))
        return element.make_element(element.tag, children=children)

    def read_joints(self) -> None:
        """Read the joints; links that do not form a tree are a problem."""
        elements: dict[str, Element] = {}
        for element in self.element.find_all("joint"):
            self.context.check(element, schema.JOINT)
            with self.context.collect_errors():
                name = parse_name(element)
                check_unique(element, name, elements, f"the {element.tag}s of a robot")
                self._read_joint(name, element)
        for cycle in self._find_cycles():
            first = min(cycle, key=lambda joint: joint.element.line)
            start = cycle.index(first)
            names = [joint.parent for joint in (cycle[start:] + cycle[:start])]
            cycle_text = " -> ".join((*names, names[0]) if len(names) < 8 else (*names[:3], f"... {len(names)} links"))
            allowed = "the joints must not form a cycle of links"
            self.context.add_problem(invalid_value(first.element, cycle_text, allowed, attribute="name"))
            del self.parent_joints[first.child]
        self._check_root()
        for name, joint in self.parent_joints.items():
            self.links[name].children.append(self._make_link_pose(joint))

    def find_root(self) -> str:
        """Return the root link, or the first link of the world; "" without one."""
        roots = (name for name in self.links if name not in self.parent_joints)
        world_links = (name for name, joint in self.parent_joints.items() if joint.parent == WORLD_FRAME)
        return next(roots, None) or next(world_links, "")

    def list_joints(self) -> Iterator[Element]:
        """Yield the converted joints. A joint with the name of a link is skipped, because SDF does not allow it."""
        for name, joint in self.joints.items():
            if name in self.links:
                reason = f"has the name of the link on line {self.links[name].line}; no pose can refer to it"
                self.context.add_note("warning", f'<joint name="{name}">', reason, joint.element.where)
            else:
                yield joint.converted

    def list_actuators(self) -> Iterator[Element]:
        """Yield an element for each part that drives a joint: transmissions, `ros2_control` and effort limits.

        Some robots have transmissions and `ros2_control` inside `<gazebo>`.
        """
        holders = (self.element, *self.element.find_all("gazebo"))
        for part in (part for holder in holders for part in holder.find_all(*schema.ACTUATOR_PARTS)):
            if _drives_joint(part):
                name = f"<{part.tag}> {part.get_attribute('name') or ''}".strip()
                yield part.make_element(ACTUATOR_TAG, attributes={"name": name})
        for name, joint in self.joints.items():
            limit = joint.element.find("limit")
            if limit is not None and is_effort(limit.get_attribute("effort")):
                yield joint.element.make_element(ACTUATOR_TAG, attributes={"name": f"joint {name}"})

    def apply_gazebo(self, model: Element, gazebo: Element) -> None:
        """Add the children of a `<gazebo>` to its target. Raises `SdfError` for an unknown target."""
        self.context.check(replace(gazebo, children=[]), schema.GAZEBO)
        reference = gazebo.get_attribute("reference")
        target = model if reference is None else self._find_target(gazebo, reference)
        for child in gazebo.children:
            if child.tag in schema.ACTUATOR_PARTS:
                reason = schema.ROBOT.unsupported[child.tag]
                self.context.add_note("unsupported", f"<gazebo><{child.tag}>", reason, child.where)
            elif child.tag in schema.IGNORED_SETTINGS:
                reason = schema.IGNORED_SETTINGS[child.tag]
                self.context.add_note("unsupported", f"<gazebo><{child.tag}>", reason, child.where)
            elif target is model and child.tag == "sensor":
                what = f"<gazebo><sensor>: {child.attributes.get('name', '')}"
                reason = 'is ignored: a sensor belongs to a link; write <gazebo reference="LINK"> around it'
                self.context.add_note("warning", what, reason, child.where)
            elif target is not None:
                if target is model and child.tag == "static":
                    self._remove_static(model, child)
                target.children.append(child)

    def _remove_static(self, model: Element, last: Element) -> None:
        """Remove the flag of an earlier `<gazebo>`: libsdformat uses the last one."""
        for earlier in list(model.find_all("static")):
            model.children.remove(earlier)
            reason = f"is ignored: that of line {last.line} is used"
            self.context.add_note("warning", "<gazebo><static>", reason, earlier.where)

    def _find_target(self, gazebo: Element, reference: str) -> Element | None:
        """Return the link or joint of a `<gazebo>`; None for an element without effect."""
        if reference in self.links:
            return self.links[reference]
        if reference in self.joints:
            return self.joints[reference].converted
        what = f"<gazebo reference>: {reference}"
        lost = [
            f'<{child.tag} name="{child.attributes.get("name", "")}">' for child in gazebo.find_all(*schema.LINK_PARTS)
        ]
        reason = f"is ignored, with {', '.join(lost)}" if lost else "is ignored"
        if reference == WORLD_FRAME and self.world is not None:
            reason += ": the world cannot have such elements; add a link to the robot" if lost else ""
        else:
            remedy = suggest_name(reference, (*self.links, *self.joints))
            reason += ": is not a link or joint of the robot" + (f"; {remedy}" if remedy else "")
        self.context.add_note("warning", what, reason, gazebo.where)
        self.context.note_plugins(gazebo)
        return None

    def _read_joint(self, name: str, element: Element) -> None:
        """Read a joint. Raises `SdfError` if it does not join two links."""
        joint_type = element.get_attribute("type")
        if joint_type not in schema.JOINT_TYPES:
            self.context.add_problem(invalid_choice(element, joint_type or None, schema.JOINT_TYPES, attribute="type"))
        parent, child = self._read_end(element, "parent"), self._read_end(element, "child")
        if parent == child:
            raise invalid_value(element, parent, "parent and child must differ", attribute="name")
        if child == WORLD_FRAME:
            end = element.find("child") or element
            raise invalid_value(end, child, "the world cannot be a child", parent="joint", attribute="link")
        joint = _UrdfJoint(element, parent, child, self._convert_joint(name, joint_type or "", element, parent, child))
        self.joints[name] = joint
        first = self.parent_joints.setdefault(child, joint)
        if first is not joint:
            allowed = "a link has one parent joint"
            end = element.find("child") or element
            remedy = f"the other is on line {first.element.line}"
            error = invalid_value(end, child, allowed, parent="joint", attribute="link", remedy=remedy)
            self.context.add_problem(error)

    def _read_end(self, joint: Element, tag: str) -> str:
        """Return the link at one end of a joint."""
        end = self.context.require_child(joint, tag, schema.END)
        name = end.get_attribute("link")
        if name is None:
            raise invalid_value(end, "missing", "must be given", parent="joint", attribute="link")
        if name not in self.links and not (name == WORLD_FRAME and self.world is not None):
            allowed, remedy = "must name a link of the robot", suggest_name(name, self.links)
            raise invalid_value(end, name, allowed, parent="joint", attribute="link", remedy=remedy)
        return name

    def _convert_joint(self, name: str, joint_type: str, element: Element, parent: str, child: str) -> Element:
        """Return the SDF element of a joint, or the frame that replaces a joint of an unsupported type."""
        axis = self._convert_axis(element, joint_type)
        if schema.JOINT_TYPES.get(joint_type) is None:
            what = f'<joint name="{name}" type="{joint_type}">'
            reason = "joints keep their poses"
            self.context.add_note("unsupported", what, reason, element.where)
            return element.make_element("frame", attributes={"name": name, "attached_to": child})
        children = [
            (element.find(tag) or element).make_element(tag, link)
            for tag, link in (("parent", parent), ("child", child))
        ]
        if axis is not None:
            axis_element = element.find("axis") or element
            parts = [axis_element.make_element("xyz", axis), *self._convert_limits(element, joint_type)]
            parts += self._convert_mimic(element)
            children.append(axis_element.make_element("axis", children=parts))
        return element.make_element("joint", "", children, {"name": name, "type": joint_type})

    def _convert_axis(self, joint: Element, joint_type: str) -> str | None:
        """Return the axis of a joint in its own frame, as text; None without an axis."""
        element = joint.find("axis")
        xyz: tuple[float, ...] = _FORWARD
        if element is not None:
            self.context.check(element, schema.AXIS)
            xyz = self._parse_triple(element, "xyz", _FORWARD, "joint")
        if joint_type not in _AXIS_JOINT_TYPES:
            return None
        if xyz == _ZERO and element is not None:
            error = invalid_value(element, "0 0 0", "must have a direction", parent="joint", attribute="xyz")
            self.context.add_problem(error)
            return None
        return _format_numbers(xyz)

    def _convert_limits(self, joint: Element, joint_type: str) -> list[Element]:
        """Return `<limit>` of SDF. URDF's default of one limit is 0 if the other one is given."""
        limit = joint.find("limit")
        if limit is None:
            return []
        self.context.check(limit, schema.LIMIT)
        names = ("lower", "upper")
        if joint_type == "continuous" or not any(name in limit.attributes for name in names):
            return []
        children = [limit.make_element(name, limit.attributes.get(name, "0")) for name in names]
        return [limit.make_element("limit", children=children)]

    def _convert_mimic(self, joint: Element) -> list[Element]:
        """Return `<mimic>` of SDF."""
        mimic = joint.find("mimic")
        if mimic is None:
            return []
        self.context.check(mimic, schema.MIMIC)
        names = ("multiplier", "offset")
        children = [mimic.make_element(name, mimic.attributes[name]) for name in names if name in mimic.attributes]
        leader = {name: text for name, text in mimic.attributes.items() if name == "joint"}
        return [mimic.make_element("mimic", children=children, attributes=leader)]

    def _find_cycles(self) -> Iterator[list[_UrdfJoint]]:
        """Yield the joints of each cycle, each followed by the joint to its child."""
        done: set[str] = set()
        for name in list(self.parent_joints):
            chain: list[_UrdfJoint] = []
            indices: dict[str, int] = {}
            link = name
            while link in self.parent_joints and link not in done:
                if link in indices:
                    yield list(reversed(chain[indices[link] :]))
                    break
                indices[link] = len(chain)
                chain.append(self.parent_joints[link])
                link = chain[-1].parent
            done.update(indices)

    def _check_root(self) -> None:
        """Add a problem if several links have no parent joint."""
        roots = [link for name, link in self.links.items() if name not in self.parent_joints]
        if self.world is not None:
            roots.append(self.world)
        if self.context.problem_count > self.problems or len(roots) < 2:  # a missing joint may join them
            return
        roots.sort(key=lambda link: link.line)
        names = [link.attributes["name"].strip() for link in roots]
        names_text = ", ".join(names if len(names) < 8 else (*names[:6], f"... {len(names)} links"))
        allowed = "a robot has one root link; these links have no parent joint"
        remedy = f"join {names[1]} to the others by a <joint>"
        self.context.add_problem(invalid_value(roots[1], names_text, allowed, attribute="name", remedy=remedy))

    def _make_link_pose(self, joint: _UrdfJoint) -> Element:
        """Return the pose of the child link of a joint."""
        origin = joint.element.find("origin")
        text = "" if origin is None else self.format_origin(origin, "joint")
        attributes = {} if joint.parent == WORLD_FRAME else {"relative_to": joint.parent}
        return (origin or joint.element).make_element("pose", text, attributes=attributes)

    def format_origin(self, origin: Element, parent: str = "robot") -> str:
        """Return the text of the SDF pose of an `<origin>`."""
        self.context.check(origin, schema.ORIGIN)
        xyz, rpy = (self._parse_triple(origin, name, _ZERO, parent) for name in ("xyz", "rpy"))
        return _format_numbers((*xyz, *rpy))

    def _parse_triple(self, element: Element, name: str, default: tuple[float, ...], parent: str) -> tuple[float, ...]:
        """Return three numbers of an attribute; the default if it is absent or, with a problem, invalid."""
        if name in element.attributes:
            with self.context.collect_errors():
                return parse_numbers(element, 3, parent=parent, attribute=name)
        return default


def _drives_joint(part: Element) -> bool:
    """Return True if a transmission or `ros2_control` commands a joint.

    A transmission only measures if its interfaces are all those of the joint's state. A `ros2_control` only measures if
    it has the type sensor, or no command interface of its joints.
    """
    if part.tag == "transmission":
        interfaces = [element.text for element in part.walk() if element.tag == "hardwareInterface"]
        return not interfaces or not all(text.endswith("JointStateInterface") for text in interfaces)
    joints = list(part.find_all("joint"))
    commanded = any(joint.find("command_interface") is not None for joint in joints)
    return part.get_attribute("type") != "sensor" and (commanded or not joints)


def _format_numbers(numbers: tuple[float, ...]) -> str:
    return " ".join(map(repr, numbers))
