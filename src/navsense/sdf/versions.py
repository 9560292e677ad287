"""Upgrade of older SDF versions: a tree of 1.4 to 1.11 becomes one of the newest version; elements keep their lines.

| up to | written as | becomes |
|---|---|---|
| 1.4 | a joint's axis | in the frame of the model: the default of `use_parent_model_frame` is true |
| 1.5 | `<physics><gravity>`, `<physics><magnetic_field>` | `<world><gravity>`, `<world><magnetic_field>` |
| 1.5 | `<imu><noise><type>`, `<rate>`, `<accel>` | the noise of the three axes of each |
| 1.6 | `<pose frame="...">` | `<pose relative_to="...">` |
| 1.6 | `<use_parent_model_frame>` | `<xyz expressed_in="__model__">` |
| 1.6 | `<imu><topic>` | `<sensor><topic>` |
| 1.7 | `<link name="arm::hand">` | `<model name="arm"><link name="hand">` |

An element that is newer than the version of the file is read, with a warning, as in Gazebo.
Source: the conversion files and the specifications of SDF 1.4 to 1.12.
"""

from __future__ import annotations

from collections.abc import Iterator

from navsense.sdf.context import Context, make_schema
from navsense.sdf.frames import MODEL_FRAME
from navsense.sdf.values import invalid_value, parse_flag
from navsense.sdf.xml_reader import Element

NEWER_ATTRIBUTES = {
    ("frame", "attached_to"): 7,
    ("include", "merge"): 9,
    ("model", "canonical_link"): 7,
    ("model", "placement_frame"): 8,
    ("pose", "degrees"): 9,
    ("pose", "relative_to"): 7,
    ("pose", "rotation_format"): 9,
    ("xyz", "expressed_in"): 7,
}
"""Element and attribute -> y of the SDF version 1.y that introduced it."""

_ELEMENTS_BY_VERSION = {
    5: """
        imu/angular_velocity imu/linear_acceleration include/name include/pose include/static model/frame
        model/include model/model sensor/altimeter sensor/magnetometer
        """,
    6: """
        imu/enable_orientation imu/orientation_reference_frame noise/dynamic_bias_correlation_time
        noise/dynamic_bias_stddev sensor/air_pressure spherical_coordinates/world_frame_orientation
        world/atmosphere world/gravity world/magnetic_field world/wind
        """,
    7: "sensor/navsat world/frame",
    8: "include/placement_frame",
    10: "sensor/air_speed",
    12: "sensor/frame_id",
}
"""y of the SDF version 1.y -> PARENT/ELEMENT of the elements that it introduced."""

NEWER_ELEMENTS = {
    (parent, tag): minor
    for minor, paths in _ELEMENTS_BY_VERSION.items()
    for parent, tag in (path.split("/") for path in paths.split())
}
"""Parent and element -> y of the SDF version 1.y that introduced it."""

IMU_NOISE = make_schema("type rate accel")

_DEFAULT_TOPIC = "__default_topic__"
_IMU_CHANNELS = {"angular_velocity": "rate", "linear_acceleration": "accel"}
_AXIS_TAGS = ("axis", "axis2")
_UNVERSIONED_MINOR = 5
"""The oldest version whose elements have the same meaning without a version."""


def upgrade(context: Context, root: Element, minor: int) -> None:
    """Upgrade the tree of a file of SDF 1.`minor` in place; elements that cannot be converted are problems."""
    _warn_about_newer(context, root, minor)
    if minor < 6:
        for world in root.find_all("world"):
            _move_fields(world)
    if minor < 7:
        for parent, element in _walk(root):
            _upgrade_to_7(context, parent, element, minor)
    if minor < 8:
        for model in _walk_models(root):
            _nest_models(context, model)


def upgrade_unversioned(context: Context, root: Element) -> None:
    """Upgrade a tree without a version, such as that of URDF, in place."""
    for parent, element in _walk(root):
        _upgrade_to_7(context, parent, element, _UNVERSIONED_MINOR)


def _walk(root: Element) -> Iterator[tuple[Element, Element]]:
    """Yield (parent, element) for all SDF elements below `root`, in order; elements of other programs are skipped."""
    stack = [(root, child) for child in reversed(root.children)]
    while stack:
        parent, element = stack.pop()
        if element.tag != "plugin" and ":" not in element.tag:
            yield parent, element
            stack += [(element, child) for child in reversed(element.children)]


def _walk_models(root: Element) -> Iterator[Element]:
    """Yield the models of a file, also those that the upgrade creates."""
    queue = [root, *root.find_all("world")]
    while queue:
        models = list(queue.pop().find_all("model"))
        yield from models
        queue.extend(models)


def _warn_about_newer(context: Context, root: Element, minor: int) -> None:
    """Add a note for each element that is newer than the version of the file."""
    elements = {pair: since for pair, since in NEWER_ELEMENTS.items() if since > minor}
    attributes = {pair: since for pair, since in NEWER_ATTRIBUTES.items() if since > minor}
    if not elements and not attributes:
        return
    for parent, element in _walk(root):
        tag = element.tag
        names = [name for name in element.attributes if (tag, name) in attributes]
        newer = [(f"<{tag} {name}>", attributes.pop((tag, name))) for name in names]
        if (parent.tag, tag) in elements:
            newer.append((f"<{parent.tag}><{tag}>", elements.pop((parent.tag, tag))))
        for what, since in newer:
            reason = f"requires SDF 1.{since}, and the file has 1.{minor}; it is read as in SDF 1.{since}"
            context.add_note("warning", what, reason, element.where)


def _move_fields(world: Element) -> None:
    """Move gravity and magnetic field from the first physics with them to the world, unless the world has them."""
    for tag in ("gravity", "magnetic_field"):
        physics = next((element for element in world.find_all("physics") if element.find(tag)), None)
        field = physics.find(tag) if physics else None
        if physics and field and world.find(tag) is None:
            physics.children.remove(field)
            world.children.append(field)


def _upgrade_to_7(context: Context, parent: Element, element: Element, minor: int) -> None:
    """Upgrade an element of SDF 1.`minor` to 1.7, without its children."""
    if element.tag == "pose":
        _rename_attribute(element, "frame", "relative_to")
    elif element.tag in _AXIS_TAGS and parent.tag == "joint":
        with context.collect_errors():
            _set_expressed_in(element, default=minor < 5)
    elif element.tag == "imu" and parent.tag == "sensor":
        _move_topic(parent, element)
        if minor < 6:
            _spread_noise(context, element)


def _rename_attribute(element: Element, old: str, new: str) -> None:
    """Rename an attribute, unless the new name is also there."""
    if old in element.attributes and element.get_attribute(new) is None:
        attributes = {name: value for name, value in element.attributes.items() if name not in (old, new)}
        element.attributes = {**attributes, new: element.attributes[old]}


def _set_expressed_in(axis: Element, *, default: bool) -> None:
    """Replace `use_parent_model_frame`, or its `default`, by the frame of `<xyz>`."""
    child = axis.find("use_parent_model_frame")
    if child is not None:
        axis.children.remove(child)
    in_model = default if child is None else parse_flag(child, parent=axis.tag)
    for xyz in axis.find_all("xyz"):
        if in_model and "expressed_in" not in xyz.attributes:
            xyz.attributes = {**xyz.attributes, "expressed_in": MODEL_FRAME}


def _move_topic(sensor: Element, imu: Element) -> None:
    """Move the topic in `<imu>` to the sensor, unless the sensor has one."""
    topic = imu.find("topic")
    if topic is None or (sensor.find("topic") is not None and topic.text != _DEFAULT_TOPIC):
        return
    imu.children.remove(topic)
    if topic.text != _DEFAULT_TOPIC:
        sensor.children.append(topic)


def _spread_noise(context: Context, imu: Element) -> None:
    """Copy the noise of `<rate>` and `<accel>` to each axis."""
    noise = imu.find("noise")
    if noise is None:
        return
    context.check(noise, IMU_NOISE)
    imu.children.remove(noise)
    noise_type = noise.find("type")
    element = next((child for child in imu.children if child.tag in _IMU_CHANNELS), None)
    if noise_type is None or not noise_type.text:
        value, allowed = (
            "missing" if noise_type is None else "empty",
            "must be given: none, gaussian or gaussian_quantized",
        )
        context.add_problem(invalid_value(noise_type or noise, value, allowed, parent="imu"))
        return
    if element is not None:
        allowed = "defines the noise of the axes twice"
        remedy = f"the other definition is the <{element.tag}> on line {element.line}; remove one"
        context.add_problem(invalid_value(noise, None, allowed, parent="imu", remedy=remedy))
        return
    for channel, tag in _IMU_CHANNELS.items():
        terms = noise.find(tag)
        inner = noise.make_element("noise", "", terms.children if terms else (), {"type": noise_type.text})
        axes = [noise.make_element(axis, children=[inner]) for axis in "xyz"]
        imu.children.append(noise.make_element(channel, children=axes))


def _nest_models(context: Context, model: Element) -> None:
    """Move the children `INNER::NAME` to a nested model INNER, with the names of its scope."""
    inner: dict[str, Element] = {}
    children: list[Element] = []
    for child in model.children:
        head, colons, rest = child.attributes.get("name", "").partition("::")
        if not colons or child.tag not in ("link", "joint", "frame", "model"):
            children.append(child)
            continue
        if head not in inner:
            inner[head] = child.make_element("model", attributes={"name": head})
            children.append(inner[head])
        _strip_prefix(child, f"{head}::")
        if child.tag == "frame" and rest == MODEL_FRAME:
            _apply_model_frame(inner[head], child)
        else:
            child.attributes = {**child.attributes, "name": rest}
            inner[head].children.append(child)
    for name, nested in inner.items():
        reason = f"are read as the model {name!r}, as before SDF 1.8 for names with ::"
        what = f'children of <model name="{model.attributes.get("name", "")}">'
        context.add_note("warning", what, reason, nested.where)
    model.children = children


def _strip_prefix(element: Element, prefix: str) -> None:
    """Remove a prefix from all frame names in an element."""
    queue = [element]
    while queue:
        part = queue.pop()
        for name in ("relative_to", "attached_to", "expressed_in"):
            if part.attributes.get(name, "").startswith(prefix):
                part.attributes = {**part.attributes, name: part.attributes[name].removeprefix(prefix)}
        if part.tag in ("parent", "child"):
            part.text = part.text.removeprefix(prefix)
        queue.extend(child for child in part.children if child.tag != "plugin" and ":" not in child.tag)


def _apply_model_frame(model: Element, frame: Element) -> None:
    """Set the pose and the canonical link of a nested model from its frame."""
    attached = frame.attributes.get("attached_to")
    if attached:
        model.attributes = {**model.attributes, "canonical_link": attached}
    model.children.extend(frame.find_all("pose"))
