"""The specification as the standard publishes it: every element is read, listed with a reason, or refused by name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from navsense.sdf import places
from navsense.sdf.context import Place
from navsense.sdf.fill import air_pressure, altimeter, imu, navsat
from navsense.sdf.fill.sensor import FILLS, PLACES

Spec = ET.Element

PACKAGED = Path("/usr/share/sdformat12")

KNOWN: list[tuple[str, str, Place]] = [
    ("root", "", places.SDF),
    ("world", "", places.WORLD),
    ("physics", "", places.PHYSICS),
    ("spherical_coordinates", "", places.SPHERICAL_COORDINATES),
    ("model", "", places.MODEL),
    ("link", "", places.LINK),
    ("joint", "", places.JOINT),
    *(("joint", axis, places.JOINT_AXIS) for axis in ("axis", "axis2")),
    *(("joint", f"{axis}/xyz", places.XYZ) for axis in ("axis", "axis2")),
    *((file, "include", places.INCLUDE) for file in ("world", "model")),
    ("atmosphere", "", places.ATMOSPHERE),
    ("frame", "", places.FRAME),
    ("pose", "", places.POSE),
    *(("sensor", "", PLACES[kind]) for kind in FILLS),
    ("imu", "", imu.IMU),
    ("imu", "orientation_reference_frame", imu.ORIENTATION_REFERENCE_FRAME),
    ("imu", "orientation_reference_frame/custom_rpy", imu.CUSTOM_RPY),
    *(("imu", f"{tag}", places.AXES) for tag in ("angular_velocity", "linear_acceleration")),
    *(("imu", f"{tag}/{axis}", places.AXIS) for tag in ("angular_velocity", "linear_acceleration") for axis in "xyz"),
    ("magnetometer", "", places.AXES),
    *(("magnetometer", axis, places.AXIS) for axis in "xyz"),
    ("altimeter", "", altimeter.ALTIMETER),
    *(("altimeter", tag, places.AXIS) for tag in altimeter.CHANNELS),
    ("air_pressure", "", air_pressure.AIR_PRESSURE),
    ("air_pressure", "pressure", places.AXIS),
    *((file, "", navsat.NAVSAT) for file in ("navsat", "gps")),
    *((file, tag, navsat.SENSING) for file in ("navsat", "gps") for tag in navsat.PARTS),
    *((file, f"{tag}/vertical", places.AXIS) for file in ("navsat", "gps") for tag in navsat.PARTS),
    *((file, f"{tag}/horizontal", places.AXIS) for file in ("navsat", "gps") for tag in navsat.PARTS),
    ("noise", "", places.NOISE),
    ("collision", "", places.COLLISION),
    ("geometry", "", places.GEOMETRY),
    ("box_shape", "", places.BOX),
    ("sphere_shape", "", places.SPHERE),
    ("ellipsoid_shape", "", places.ELLIPSOID),
    ("plane_shape", "", places.PLANE),
    *((f"{shape}_shape", "", places.ROUND) for shape in ("cylinder", "capsule")),
    ("mesh_shape", "", places.MESH),
    ("mesh_shape", "submesh", places.SUBMESH),
    ("heightmap_shape", "", places.HEIGHTMAP),
    *((file, "", places.RAY) for file in ("ray", "lidar")),
    *((file, "scan", places.SCAN) for file in ("ray", "lidar")),
    *((file, f"scan/{side}", places.SAMPLES) for file in ("ray", "lidar") for side in ("horizontal", "vertical")),
    *((file, "range", places.RAY_RANGE) for file in ("ray", "lidar")),
    *((file, "noise", places.RAY_NOISE) for file in ("ray", "lidar")),
    ("sonar", "", places.SONAR),
]
"""Specification file, path of an element in it, and what navsense knows of that element."""


def element(folder: Path, file: str, path: str) -> Spec:
    found = ET.parse(folder / f"{file}.sdf").getroot()  # noqa: S314 - the standard's own file
    for tag in filter(None, path.split("/")):
        found = next(child for child in found if child.tag == "element" and child.get("name") == tag)
    return found


def children(folder: Path, spec: Spec) -> set[str]:
    own = {child.get("name", "") for child in spec if child.tag == "element"}
    files = [child.get("filename", "") for child in spec if child.tag == "include"]
    return own | {element(folder, file.removesuffix(".sdf"), "").get("name", "") for file in files}


def assert_known(folder: Path, spec: Spec, place: Place) -> None:
    assert children(folder, spec) <= place.read | set(place.unsupported) | set(place.refused)
    attributes = {child.get("name", "") for child in spec if child.tag == "attribute"}
    assert attributes <= place.attributes | set(place.ignored) | set(place.refused)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize(("file", "path", "place"), KNOWN, ids=[f"{file}/{path}" for file, path, _ in KNOWN])
def test_nothing_is_passed_over(shared_data: Path, file: str, path: str, place: Place) -> None:
    folder = shared_data / "sdformat-spec"
    assert_known(folder, element(folder, file, path), place)


@pytest.mark.requirement("SDF-1")
@pytest.mark.parametrize("minor", range(4, 10))
def test_nothing_of_an_older_version_is_passed_over(minor: int) -> None:
    """The same of the older specifications: what was moved since is rewritten first, what was dropped is listed."""
    folder = PACKAGED / f"1.{minor}"
    if not folder.is_dir():
        pytest.skip("needs Debian's sdformat-sdf: the specifications up to 1.9")
    seen = 0
    for file, path, place in KNOWN:
        with suppress(FileNotFoundError, StopIteration):  # newer than this version
            assert_known(folder, element(folder, file, path), place)
            seen += 1
    assert seen > 20


@pytest.mark.requirement("SDF-1")
def test_every_block_of_a_sensor_belongs_to_one_type(shared_data: Path) -> None:
    folder = shared_data / "sdformat-spec"
    files = [child.get("filename", "") for child in element(folder, "sensor", "") if child.tag == "include"]
    blocks = {element(folder, file.removesuffix(".sdf"), "").get("name", "") for file in files}
    assert blocks - {"pose", "plugin"} == places.SENSOR_BLOCKS
    for kind, place in PLACES.items():
        assert places.SENSOR_BLOCKS - place.read == {
            block for block in place.unsupported if block in places.SENSOR_BLOCKS
        }
        assert kind in place.read


def test_a_type_that_is_simulated_is_not_listed() -> None:
    assert not places.OTHER_SENSORS & set(FILLS)
    assert set(FILLS) <= places.TYPES
    assert {new for old, new in places.LEGACY.items() if old in places.OTHER_SENSORS} == set()


@pytest.mark.parametrize("place", [place for _, _, place in KNOWN])
def test_tables(place: Place) -> None:
    for reasons in (place.unsupported, place.refused, place.ignored):
        assert all(len(reason) > 10 for reason in reasons.values())
        assert not set(reasons) & (place.read | place.attributes)
    assert place.several <= place.read


def test_types_of_sensors(shared_data: Path) -> None:
    """Each type that the specification's text names is simulated or listed."""
    spec = element(shared_data / "sdformat-spec", "sensor", "")
    (text,) = (child.findtext("description") or "" for child in spec if child.get("name") == "type")
    named = {word.strip(' .,"\n') for word in text.replace("\n", ",").split(",")}
    types = {word for word in named if word and " " not in word} - {"and"}
    assert {"imu", "magnetometer", "altimeter", "camera"} <= types
    assert types <= set(FILLS) | places.OTHER_SENSORS | places.LEGACY.keys()
