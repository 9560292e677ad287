"""The SDF specification: every element is read, listed with a reason, or an error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from navsense.sdf import schema
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import ElementSchema
from navsense.sdf.parse import air_pressure, altimeter, imu, navsat, noise, world
from navsense.sdf.parse import range as range_sensor
from navsense.sdf.parse.collision import SHAPES
from navsense.sdf.parse.sensor import SENSOR_SCHEMAS, TYPE_ELEMENT_PARSERS
from navsense.sensors import SENSORS, Magnetometer

Spec = ET.Element

PACKAGED = Path("/usr/share/sdformat12")

KNOWN: list[tuple[str, str, ElementSchema]] = [
    ("root", "", schema.SDF),
    ("world", "", schema.WORLD),
    ("physics", "", schema.PHYSICS),
    ("spherical_coordinates", "", schema.SPHERICAL_COORDINATES),
    ("model", "", schema.MODEL),
    ("link", "", schema.LINK),
    ("joint", "", schema.JOINT),
    *(("joint", axis, schema.JOINT_AXIS) for axis in ("axis", "axis2")),
    *(("joint", f"{axis}/xyz", schema.XYZ) for axis in ("axis", "axis2")),
    ("mimic", "", schema.JOINT_MIMIC),
    *((file, "include", schema.INCLUDE) for file in ("world", "model")),
    ("atmosphere", "", world.ATMOSPHERE.schema),
    ("frame", "", schema.FRAME),
    ("pose", "", schema.POSE),
    *(("sensor", "", SENSOR_SCHEMAS[kind]) for kind in TYPE_ELEMENT_PARSERS),
    ("imu", "", imu.IMU.schema),
    ("imu", "orientation_reference_frame", imu.ORIENTATION_REFERENCE_FRAME),
    ("imu", "orientation_reference_frame/custom_rpy", imu.CUSTOM_RPY),
    *(("imu", f"{tag}", binding.schema) for tag, binding in imu.AXES.items()),
    *(
        ("imu", f"{tag}/{axis}", schema.CHANNEL)
        for tag in ("angular_velocity", "linear_acceleration")
        for axis in "xyz"
    ),
    ("magnetometer", "", ElementBinding(Magnetometer).schema),
    *(("magnetometer", axis, schema.CHANNEL) for axis in "xyz"),
    ("altimeter", "", altimeter.ALTIMETER.schema),
    *(("altimeter", tag, schema.CHANNEL) for tag in ("vertical_position", "vertical_velocity")),
    ("air_pressure", "", air_pressure.AIR_PRESSURE.schema),
    ("air_pressure", "pressure", schema.CHANNEL),
    *((file, "", navsat.NAVSAT) for file in ("navsat", "gps")),
    *((file, tag, navsat.SENSING[tag].schema) for file in ("navsat", "gps") for tag in navsat.SENSING),
    *((file, f"{tag}/vertical", schema.CHANNEL) for file in ("navsat", "gps") for tag in navsat.SENSING),
    *((file, f"{tag}/horizontal", schema.CHANNEL) for file in ("navsat", "gps") for tag in navsat.SENSING),
    ("noise", "", noise.NOISE.schema),
    ("collision", "", schema.COLLISION),
    ("geometry", "", schema.GEOMETRY),
    *((f"{shape}_shape", "", binding.schema) for shape, binding in SHAPES.items()),
    ("mesh_shape", "", schema.MESH),
    ("mesh_shape", "submesh", schema.SUBMESH),
    ("heightmap_shape", "", schema.HEIGHTMAP),
    *((file, "", schema.RAY) for file in ("ray", "lidar")),
    *((file, "scan", schema.SCAN) for file in ("ray", "lidar")),
    *((file, f"scan/{side}", schema.SAMPLES) for file in ("ray", "lidar") for side in ("horizontal", "vertical")),
    *((file, "range", schema.RAY_RANGE) for file in ("ray", "lidar")),
    *((file, "noise", range_sensor.RAY_NOISE) for file in ("ray", "lidar")),
    ("sonar", "", schema.SONAR),
]
"""Specification file, path of an element, and navsense's table of the element."""


def read_element(folder: Path, file: str, path: str) -> Spec:
    found = ET.parse(folder / f"{file}.sdf").getroot()  # noqa: S314 - the standard's own file
    for tag in filter(None, path.split("/")):
        found = next(child for child in found if child.tag == "element" and child.get("name") == tag)
    return found


def list_children(folder: Path, spec: Spec) -> set[str]:
    own = {child.get("name", "") for child in spec if child.tag == "element"}
    files = [child.get("filename", "") for child in spec if child.tag == "include"]
    return own | {read_element(folder, file.removesuffix(".sdf"), "").get("name", "") for file in files}


def assert_known(folder: Path, spec: Spec, place: ElementSchema) -> None:
    assert list_children(folder, spec) <= place.children | set(place.unsupported) | set(place.forbidden)
    attributes = {child.get("name", "") for child in spec if child.tag == "attribute"}
    assert attributes <= place.attributes | set(place.ignored_attributes) | set(place.forbidden)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(("file", "path", "place"), KNOWN, ids=[f"{file}/{path}" for file, path, _ in KNOWN])
def test_every_element_is_read_or_listed(shared_data: Path, file: str, path: str, place: ElementSchema) -> None:
    folder = shared_data / "sdformat-spec"
    assert_known(folder, read_element(folder, file, path), place)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("minor", range(4, 10))
def test_every_older_element_is_read_or_listed(minor: int) -> None:
    """For older specifications, moved elements are rewritten and removed elements are listed."""
    folder = PACKAGED / f"1.{minor}"
    if not folder.is_dir():
        pytest.skip("needs Debian's sdformat-sdf: the specifications up to 1.9")
    count = 0
    for file, path, place in KNOWN:
        with suppress(FileNotFoundError, StopIteration):  # newer than this version
            assert_known(folder, read_element(folder, file, path), place)
            count += 1
    assert count > 20


@pytest.mark.requirement("SDF-1")
def test_every_block_of_a_sensor_belongs_to_one_type(shared_data: Path) -> None:
    folder = shared_data / "sdformat-spec"
    files = [child.get("filename", "") for child in read_element(folder, "sensor", "") if child.tag == "include"]
    type_elements = {read_element(folder, file.removesuffix(".sdf"), "").get("name", "") for file in files}
    assert type_elements - {"pose", "plugin"} == schema.TYPE_ELEMENTS
    for kind, place in SENSOR_SCHEMAS.items():
        assert schema.TYPE_ELEMENTS - place.children == {
            tag for tag in place.unsupported if tag in schema.TYPE_ELEMENTS
        }
        assert kind in place.children


def test_simulated_type_is_not_listed() -> None:
    assert not schema.UNSIMULATED_TYPES & set(TYPE_ELEMENT_PARSERS)
    assert list(TYPE_ELEMENT_PARSERS) == [kind.type for kind in SENSORS]
    assert {new for old, new in schema.TYPE_ALIASES.items() if old in schema.UNSIMULATED_TYPES} == set()


@pytest.mark.parametrize("place", [place for _, _, place in KNOWN])
def test_element_tables_are_consistent(place: ElementSchema) -> None:
    for reasons in (place.unsupported, place.forbidden, place.ignored_attributes):
        assert all(len(reason) > 10 for reason in reasons.values())
        assert not set(reasons) & (place.children | place.attributes)
    assert place.repeatable <= place.children


def test_every_sensor_type_is_simulated_or_listed(shared_data: Path) -> None:
    """Each type that the specification's text names is simulated or listed."""
    spec = read_element(shared_data / "sdformat-spec", "sensor", "")
    (text,) = (child.findtext("description") or "" for child in spec if child.get("name") == "type")
    named = {word.strip(' .,"\n') for word in text.replace("\n", ",").split(",")}
    types = {word for word in named if word and " " not in word} - {"and"}
    assert {"imu", "magnetometer", "altimeter", "camera"} <= types
    assert types <= set(TYPE_ELEMENT_PARSERS) | schema.UNSIMULATED_TYPES | schema.TYPE_ALIASES.keys()
