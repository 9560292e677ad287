"""Gazebo messages are read by protobuf with definitions in this file."""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from navsense.core.errors import RecordingError
from navsense.core.readings import Reading
from navsense.messages import air_pressure, altimeter, get_messages, magnetometer, navsat
from navsense.messages import imu as imu_messages
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure, Altimeter, NavSat
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import MountedSensor

Kind = descriptor_pb2.FieldDescriptorProto
TYPES = {
    "double": Kind.TYPE_DOUBLE,
    "float": Kind.TYPE_FLOAT,
    "int32": Kind.TYPE_INT32,
    "int64": Kind.TYPE_INT64,
    "string": Kind.TYPE_STRING,
}

GZ = {
    "Time": "sec=1 int64, nsec=2 int32",
    "Map": "key=1 string, value=2 repeated string",
    "Header": "stamp=1 Time, data=2 repeated Map",
    "Vector3d": "header=1 Header, x=2 double, y=3 double, z=4 double",
    "Quaternion": "header=1 Header, x=2 double, y=3 double, z=4 double, w=5 double",
    "Float_V": "header=1 Header, data=2 repeated float",
    "Magnetometer": "header=1 Header, field_tesla=2 Vector3d",
    "IMU": "header=1 Header, entity_name=2 string, orientation=3 Quaternion, orientation_covariance=4 Float_V, "
    "angular_velocity=5 Vector3d, angular_velocity_covariance=6 Float_V, linear_acceleration=7 Vector3d, "
    "linear_acceleration_covariance=8 Float_V",
    "Altimeter": "header=1 Header, vertical_position=2 double, vertical_velocity=3 double, vertical_reference=4 double",
    "FluidPressure": "header=1 Header, pressure=2 double, variance=3 double",
    "NavSat": "header=1 Header, latitude_deg=2 double, longitude_deg=3 double, altitude=4 double, "
    "velocity_east=5 double, velocity_north=6 double, velocity_up=7 double, frame_id=8 string",
}
CLASSIC = {
    "Time": "sec=1 required int32, nsec=2 required int32",
    "Vector3d": "x=1 required double, y=2 required double, z=3 required double",
    "Magnetometer": "time=1 required Time, entity_name=2 required string, field_tesla=3 required Vector3d",
    "Altimeter": "time=1 required Time, vertical_position=2 required double, vertical_velocity=3 required double, "
    "vertical_reference=4 required double",
}
LABELS = {"required": Kind.LABEL_REQUIRED, "repeated": Kind.LABEL_REPEATED, "optional": Kind.LABEL_OPTIONAL}


def make_classes(package: str, syntax: str, definitions: dict[str, str]) -> dict[str, Any]:
    """Return message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax=syntax)
    for name, text in definitions.items():
        message = file.message_type.add(name=name)
        for part in text.split(", "):
            left, *label, kind = part.split()
            field, _, number = left.partition("=")
            added = message.field.add(name=field, number=int(number), label=LABELS[label[0] if label else "optional"])
            if kind in TYPES:
                added.type = TYPES[kind]
            else:
                added.type, added.type_name = Kind.TYPE_MESSAGE, f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in definitions
    }


NEW = make_classes("gz.msgs", "proto3", GZ)
OLD = make_classes("gazebo.msgs", "proto2", CLASSIC)

doubles = st.floats(width=64)
stamps = st.integers(-(2**62), 2**62)
threes = st.lists(doubles, min_size=3, max_size=3)


def list_bits(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def check_header(header: Any, stamp: int, frame: str, sequence: int) -> None:
    assert header.stamp.sec * 10**9 + header.stamp.nsec == stamp
    assert 0 <= header.stamp.nsec < 10**9
    assert [(item.key, list(item.value)) for item in header.data] == [("frame_id", [frame]), ("seq", [str(sequence)])]


@pytest.mark.requirement("MAG-5")
@given(stamps, st.text(max_size=9), st.integers(0, 2**40), threes)
def test_magnetometer_message(stamp: int, frame: str, sequence: int, field: list[float]) -> None:
    raw = magnetometer.encode_gz_message(stamp, frame, sequence, field)
    value = NEW["Magnetometer"].FromString(raw)
    check_header(value.header, stamp, frame, sequence)
    assert list_bits([value.field_tesla.x, value.field_tesla.y, value.field_tesla.z]) == list_bits(field)
    assert value.HasField("field_tesla")
    assert value.SerializeToString(deterministic=True) == raw


@pytest.mark.requirement("MAG-5")
@given(st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1), st.text(max_size=9), threes)
def test_message_of_the_first_format(stamp: int, entity: str, field: list[float]) -> None:
    raw = magnetometer.encode_gazebo_classic_message(stamp, entity, field)
    value = OLD["Magnetometer"].FromString(raw)
    assert value.IsInitialized()
    assert value.time.sec * 10**9 + value.time.nsec == stamp
    assert value.entity_name == entity
    assert list_bits([value.field_tesla.x, value.field_tesla.y, value.field_tesla.z]) == list_bits(field)
    assert value.SerializeToString(deterministic=True) == raw


HEIGHTS = ("vertical_position", "vertical_velocity", "vertical_reference")


@pytest.mark.requirement("ALT-4")
@given(stamps, st.text(max_size=9), st.integers(0, 2**40), threes)
def test_altimeter_message(stamp: int, frame: str, sequence: int, values: list[float]) -> None:
    raw = altimeter.encode_gz_message(stamp, frame, sequence, values)
    value = NEW["Altimeter"].FromString(raw)
    check_header(value.header, stamp, frame, sequence)
    assert list_bits([getattr(value, name) for name in HEIGHTS]) == list_bits(values)
    assert value.SerializeToString(deterministic=True) == raw


@pytest.mark.requirement("ALT-4")
@given(st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1), threes)
def test_altimeter_message_of_the_first_format(stamp: int, values: list[float]) -> None:
    raw = altimeter.encode_gazebo_classic_message(stamp, "m::l::s", values)
    value = OLD["Altimeter"].FromString(raw)
    assert value.IsInitialized()
    assert value.time.sec * 10**9 + value.time.nsec == stamp
    assert list_bits([getattr(value, name) for name in HEIGHTS]) == list_bits(values)
    assert value.SerializeToString(deterministic=True) == raw


@pytest.mark.requirement("PRS-1")
@given(stamps, st.text(max_size=9), doubles, doubles)
def test_fluid_pressure_message(stamp: int, frame: str, pressure: float, variance: float) -> None:
    raw = air_pressure.encode_gz_message(stamp, frame, 5, pressure, variance)
    value = NEW["FluidPressure"].FromString(raw)
    check_header(value.header, stamp, frame, 5)
    assert list_bits([value.pressure, value.variance]) == list_bits([pressure, variance])
    assert value.SerializeToString(deterministic=True) == raw


@pytest.mark.requirement("NAV-1")
@given(stamps, st.text(min_size=1, max_size=9), threes, threes)
def test_navsat_message(stamp: int, frame: str, place: list[float], velocity: list[float]) -> None:
    raw = navsat.encode_gz_message(stamp, frame, 5, place, velocity)
    value = NEW["NavSat"].FromString(raw)
    assert value.header.stamp.sec * 10**9 + value.header.stamp.nsec == stamp
    assert [(item.key, list(item.value)) for item in value.header.data] == [("seq", ["5"])]
    assert value.frame_id == frame
    assert list_bits([value.latitude_deg, value.longitude_deg, value.altitude]) == list_bits(place)
    assert list_bits([value.velocity_east, value.velocity_north, value.velocity_up]) == list_bits(velocity)
    assert value.SerializeToString(deterministic=True) == raw


@given(stamps, st.text(max_size=9), st.none() | st.lists(doubles, min_size=4, max_size=4), threes, threes)
def test_imu_message(stamp: int, name: str, turn: list[float] | None, rate: list[float], force: list[float]) -> None:
    covariances = ([float(i) for i in range(9)], [0.5] * 9)
    raw = imu_messages.encode_gz_message(stamp, "frame", 3, name, turn, rate, force, covariances)
    value = NEW["IMU"].FromString(raw)
    check_header(value.header, stamp, "frame", 3)
    assert value.entity_name == name
    assert value.HasField("orientation") == (turn is not None)
    if turn is not None:
        q = value.orientation
        assert list_bits([q.w, q.x, q.y, q.z]) == list_bits(turn)
    for got, expected in ((value.angular_velocity, rate), (value.linear_acceleration, force)):
        assert list_bits([got.x, got.y, got.z]) == list_bits(expected)
    assert list(value.angular_velocity_covariance.data) == covariances[0]
    assert list(value.linear_acceleration_covariance.data) == covariances[1]
    assert value.SerializeToString(deterministic=True) == raw


def make_reading(kind: str, arrays: dict[str, Any]) -> Reading:
    flags = np.ones(4, dtype=np.bool_)
    emitted = np.array([True, False, True, True])
    time, off = np.arange(4) / 10.0, np.array([0.0, 0.0, -0.5, 0.25])
    return Reading("m::l::s", kind, "f", {}, time, off, arrays, {}, {}, flags, emitted, 0)


@pytest.mark.requirement("MAG-5", "CLK-5")
def test_messages_are_stamped_by_the_sensor_clock() -> None:
    field = np.arange(12.0).reshape(4, 3)
    mag = MountedSensor("m::l::s", Magnetometer(), "m", "l", 10.0, frame="f", clock="m::l::c")
    values = [
        NEW["Magnetometer"].FromString(raw)
        for raw in magnetometer.encode_gz_messages(mag, make_reading("magnetometer", {"field": field}), 7)
    ]
    assert [value.field_tesla.x for value in values] == [0.0, 6.0, 9.0]
    for value, stamp, sequence in zip(values, (0, -300_000_000, 550_000_000), (7, 8, 9), strict=True):
        check_header(value.header, stamp, "f", sequence)
    old = [
        OLD["Magnetometer"].FromString(raw)
        for raw in magnetometer.encode_gazebo_classic_messages(mag, make_reading("magnetometer", {"field": field}))
    ]
    assert [(value.time.sec, value.time.nsec) for value in old] == [(0, 0), (-1, 700_000_000), (0, 550_000_000)]
    assert {value.entity_name for value in old} == {"m::l::s"}
    arrays = {"orientation": np.ones((4, 4)), "angular_velocity": field, "linear_acceleration": -field}
    for oriented in (True, False):
        imu = MountedSensor("m::l::s", Imu(Noise(stddev=0.5), orientation=oriented), "m", "l", 10.0)
        values = [
            NEW["IMU"].FromString(raw)
            for raw in get_messages("imu").encode_gz_messages(imu, make_reading("imu", arrays), 0)
        ]
        assert [value.linear_acceleration.z for value in values] == [-2.0, -8.0, -11.0]
        assert values[0].angular_velocity_covariance.data[0] == 0.25
        assert values[0].HasField("orientation") is oriented


@pytest.mark.requirement("ALT-4", "PRS-1", "NAV-1", "CLK-5")
def test_altimeter_pressure_and_navsat_messages_are_stamped_by_the_clock() -> None:
    column = np.array([0.25, 0.5, -0.75, 1.5])

    def values(name: str, spec: Any, arrays: dict[str, Any]) -> list[Any]:
        sensor = MountedSensor("m::l::s", spec, "m", "l", 10.0, frame="f", clock="m::l::c")
        kind = {"air_pressure": "FluidPressure", "altimeter": "Altimeter", "navsat": "NavSat"}[name]
        found = [
            NEW[kind].FromString(raw)
            for raw in get_messages(name).encode_gz_messages(sensor, make_reading(name, arrays), 7)
        ]
        for value, stamp in zip(found, (0, -300_000_000, 550_000_000), strict=True):
            assert value.header.stamp.sec * 10**9 + value.header.stamp.nsec == stamp
        return found

    heights = dict(zip(HEIGHTS, (column, -column, column + 1.0), strict=True))
    high = values("altimeter", Altimeter(), heights)
    assert [(v.vertical_position, v.vertical_velocity, v.vertical_reference) for v in high] == [
        (0.25, -0.25, 1.25),
        (-0.75, 0.75, 0.25),
        (1.5, -1.5, 2.5),
    ]
    sensor = MountedSensor("m::l::s", Altimeter(), "m", "l", 10.0)
    old = [
        OLD["Altimeter"].FromString(raw)
        for raw in altimeter.encode_gazebo_classic_messages(sensor, make_reading("altimeter", heights))
    ]
    assert [(v.time.sec, v.time.nsec, v.vertical_position) for v in old] == [
        (0, 0, 0.25),
        (-1, 700_000_000, -0.75),
        (0, 550_000_000, 1.5),
    ]
    pressed = values("air_pressure", AirPressure(Noise(stddev=0.2)), {"pressure": column})
    assert [v.pressure for v in pressed] == [0.25, -0.75, 1.5]
    assert {v.variance for v in pressed} == {0.2 * 0.2}  # Gazebo writes its square root
    velocity = np.arange(12.0).reshape(4, 3)
    places = {"latitude": column, "longitude": -2.0 * column, "altitude": 10.0 * column, "velocity": velocity}
    there = values("navsat", NavSat(), places)
    assert {v.frame_id for v in there} == {"f"}
    assert [v.latitude_deg for v in there] == [math.degrees(x) for x in (0.25, -0.75, 1.5)]
    assert [v.longitude_deg for v in there] == [math.degrees(x) for x in (-0.5, 1.5, -3.0)]
    assert [v.velocity_up for v in there] == [2.0, 8.0, 11.0]


def test_invalid_message_is_an_error() -> None:
    mag = MountedSensor("m::l::s", Magnetometer(), "m", "l", 10.0, clock="m::l::c")
    far = make_reading("magnetometer", {"field": np.zeros((4, 3))})
    far.clock_error[2] = math.nan
    with pytest.raises(RecordingError, match=r"m::l::c.*--epoch"):
        magnetometer.encode_gz_messages(mag, far)
    with pytest.raises(RecordingError, match=r"m::l::s.*--epoch"):
        magnetometer.encode_gazebo_classic_message(2**31 * 10**9, "m::l::s", (0.0, 0.0, 0.0))
    with pytest.raises(RecordingError, match=r"must be an ns\.sensors"):
        imu_messages.encode_gz_messages(mag, far)
    for encoder in (air_pressure, altimeter, navsat):
        with pytest.raises(RecordingError, match=r"must be an ns\.sensors"):
            encoder.encode_gz_messages(mag, far)
    with pytest.raises(RecordingError, match=r"m::l::s.*--epoch"):
        altimeter.encode_gazebo_classic_message(2**31 * 10**9, "m::l::s", (0.0, 0.0, 0.0))
    two = dataclasses.replace(far, clock_error=np.zeros((2, 4)))
    with pytest.raises(RecordingError, match="run axis"):
        magnetometer.encode_gz_messages(mag, two)
