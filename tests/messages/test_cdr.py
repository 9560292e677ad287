"""ROS 2 messages equal the encoder, the decoder and the definitions of rosbags."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

from navsense import messages
from navsense.core.errors import RecordingError
from navsense.messages import cdr, depth, navsat, schemas, world_messages
from navsense.messages.base import make_stamp_error
from navsense.noise.specification import Noise
from navsense.sensors import SENSORS, AirPressure, Altimeter, NavSat
from navsense.sensors.base import Output
from navsense.sensors.imu import Imu
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import MountedSensor

STORE = get_typestore(Stores.LATEST)
STORE.register(
    get_types_from_msg(
        "std_msgs/Header header\nfloat64 vertical_position\nfloat64 vertical_velocity\nfloat64 vertical_reference",
        "ros_gz_interfaces/msg/Altimeter",
    )
)
"""`Altimeter.msg` of ros_gz (branch ros2), which rosbags lacks."""

T = STORE.types

doubles = st.floats(width=64)
stamps = st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


def make_vectors(size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(doubles, min_size=size, max_size=size)


def make_finite_numbers(size: int) -> st.SearchStrategy[list[float]]:
    """Return numbers whose products do not overflow: the bits of an overflow NaN are unspecified."""
    return st.lists(st.floats(-1e9, 1e9), min_size=size, max_size=size)


def normalise(values: list[float]) -> list[float]:
    """Return a quaternion from four numbers, not all of them tiny."""
    return [float(value) for value in np.array(values) / math.hypot(*values)]


units = make_finite_numbers(4).filter(lambda values: math.hypot(*values) > 1e-3).map(normalise)


def make_time(stamp: int) -> Any:
    return T["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)


def make_header(stamp: int, frame: str) -> Any:
    return T["std_msgs/msg/Header"](stamp=make_time(stamp), frame_id=frame)


def make_vector(values: list[float]) -> Any:
    return T["geometry_msgs/msg/Vector3"](*values)


def make_quaternion(wxyz: list[float]) -> Any:
    w, x, y, z = wxyz
    return T["geometry_msgs/msg/Quaternion"](x=x, y=y, z=z, w=w)


def encode(message: cdr.MessageEncoder, stamp: int, **arrays: list[Any]) -> bytes:
    """Return one message, the middle one of three, so that rows must be separate."""
    columns = {}
    for name, value in arrays.items():
        row = np.array(value, dtype=np.float64)
        columns[name] = np.stack([row + 1.0, row, row - 1.0])
    with np.errstate(all="ignore"):
        rows = cdr.encode(message, np.array([0, stamp, 1]), columns)
    return bytes(rows[1])


def check_link_vector(wxyz: list[float], world: list[float], got: Any) -> list[float]:
    """Assert that a decoded vector equals a world vector in the link frame to rounding, and return it."""
    w, x, y, z = wxyz
    body = Rotation.from_quat([x, y, z, w]).inv().apply(world)
    out = [got.x, got.y, got.z]
    assert np.allclose(out, body, rtol=0.0, atol=1e-14 * max(map(abs, world)) + 1e-300)
    return out


def make_expected(value: Any, kind: str) -> bytes:
    return bytes(STORE.serialize_cdr(value, kind))


def make_sensor(spec: Any, frame: str = "f", clock_name: str | None = None) -> MountedSensor:
    return MountedSensor("m::l::s", spec, "m", "l", 100.0, frame=frame, clock=clock_name)


def make_noise(stddev: float) -> Noise:
    return Noise(stddev=stddev)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, words, make_vectors(4), make_vectors(3), make_vectors(3), st.floats(0, 1e6), st.booleans())
def test_imu_message_equals_rosbags(
    stamp: int, frame: str, turn: list[float], rate: list[float], force: list[float], stddev: float, oriented: bool
) -> None:
    spec = Imu(make_noise(stddev), linear_acceleration_z=make_noise(2.0), orientation=oriented)
    for part in ("measured", "ideal", "bias"):
        message = messages.make_encoder(make_sensor(spec, frame), part)
        arrays = {"angular_velocity": rate, "linear_acceleration": force} | ({"orientation": turn} if oriented else {})
        known = oriented and part != "bias"
        rates, forces, turns = np.zeros(9), np.zeros(9), np.zeros(9)
        if part == "measured":
            rates[0], forces[8] = stddev * stddev, 4.0
        turns[0] = 0.0 if known else -1.0
        value = T["sensor_msgs/msg/Imu"](
            header=make_header(stamp, frame or "m::l::s"),
            orientation=make_quaternion(turn if known else [1.0, 0.0, 0.0, 0.0]),
            orientation_covariance=turns,
            angular_velocity=make_vector(rate),
            angular_velocity_covariance=rates,
            linear_acceleration=make_vector(force),
            linear_acceleration_covariance=forces,
        )
        assert encode(message, stamp, **arrays) == make_expected(value, "sensor_msgs/msg/Imu")


@pytest.mark.requirement("MAG-5")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, words, make_vectors(3), st.floats(0, 1e6))
def test_magnetic_field_message_equals_rosbags(stamp: int, frame: str, field: list[float], stddev: float) -> None:
    message = messages.make_encoder(make_sensor(Magnetometer(y=make_noise(stddev)), frame))
    covariance = np.zeros(9)
    covariance[4] = stddev * stddev
    value = T["sensor_msgs/msg/MagneticField"](
        header=make_header(stamp, frame or "m::l::s"),
        magnetic_field=make_vector(field),
        magnetic_field_covariance=covariance,
    )
    raw = encode(message, stamp, field=field)
    assert raw == make_expected(value, "sensor_msgs/msg/MagneticField")
    back: Any = STORE.deserialize_cdr(raw, "sensor_msgs/msg/MagneticField")
    got = np.array([back.magnetic_field.x, back.magnetic_field.y, back.magnetic_field.z])
    assert got.tobytes() == np.array(field).tobytes()


@pytest.mark.requirement("ALT-4")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, words, make_vectors(3))
def test_altimeter_message_equals_rosbags(stamp: int, frame: str, values: list[float]) -> None:
    names = ("vertical_position", "vertical_velocity", "vertical_reference")
    arrays: dict[str, Any] = dict(zip(names, values, strict=True))
    raw = encode(messages.make_encoder(make_sensor(Altimeter(), frame)), stamp, **arrays)
    value = T["ros_gz_interfaces/msg/Altimeter"](header=make_header(stamp, frame or "m::l::s"), **arrays)
    assert raw == make_expected(value, "ros_gz_interfaces/msg/Altimeter")
    del arrays["vertical_reference"]  # the reference has no unpublished error
    raw = encode(messages.make_encoder(make_sensor(Altimeter(), frame), "bias"), stamp, **arrays)
    back: Any = STORE.deserialize_cdr(raw, "ros_gz_interfaces/msg/Altimeter")
    assert back.vertical_reference == 0.0


@pytest.mark.requirement("PRS-1")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, words, doubles, st.floats(0, 1e6), st.sampled_from(["measured", "ideal", "bias"]))
def test_fluid_pressure_message_equals_rosbags(
    stamp: int, frame: str, pressure: float, stddev: float, part: Any
) -> None:
    message = messages.make_encoder(make_sensor(AirPressure(make_noise(stddev)), frame), part)
    value = T["sensor_msgs/msg/FluidPressure"](
        header=make_header(stamp, frame or "m::l::s"),
        fluid_pressure=pressure,
        variance=stddev * stddev if part == "measured" else 0.0,
    )
    assert encode(message, stamp, pressure=pressure) == make_expected(value, "sensor_msgs/msg/FluidPressure")


@pytest.mark.requirement("NAV-1")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(
    stamps, words, make_finite_numbers(3), make_vectors(3), st.floats(0, 1e6), st.sampled_from(["measured", "ideal"])
)
def test_navsat_message_equals_rosbags(
    stamp: int, frame: str, place: list[float], speed: list[float], stddev: float, part: Any
) -> None:
    sensor = make_sensor(NavSat(make_noise(stddev), make_noise(2.0)), frame)
    lat, lon, alt = place
    covariance = np.zeros(9)
    if part == "measured":
        covariance[0] = covariance[4] = stddev * stddev
        covariance[8] = 4.0
    value = T["sensor_msgs/msg/NavSatFix"](
        header=make_header(stamp, frame or "m::l::s"),
        status=T["sensor_msgs/msg/NavSatStatus"](status=0, service=1),
        latitude=float(np.degrees(lat)),
        longitude=float(np.degrees(lon)),
        altitude=alt,
        position_covariance=covariance,
        position_covariance_type=2 if part == "measured" else 0,
    )
    raw = encode(messages.make_encoder(sensor, part), stamp, latitude=lat, longitude=lon, altitude=alt)
    assert raw == make_expected(value, "sensor_msgs/msg/NavSatFix")
    twist = T["geometry_msgs/msg/Twist"](linear=make_vector(speed), angular=make_vector([0.0, 0.0, 0.0]))
    value = T["geometry_msgs/msg/TwistStamped"](header=make_header(stamp, frame or "m::l::s"), twist=twist)
    raw = encode(messages.make_encoder(sensor, part, "_velocity"), stamp, velocity=speed)
    assert raw == make_expected(value, "geometry_msgs/msg/TwistStamped")


@pytest.mark.requirement("NAV-1")
def test_navsat_bias_is_in_metres_and_invalid_position_has_no_fix() -> None:
    raw = encode(messages.make_encoder(make_sensor(NavSat()), "bias"), 5, latitude=2.0, longitude=-1.0, altitude=3.0)
    value = T["geometry_msgs/msg/Vector3Stamped"](header=make_header(5, "f"), vector=make_vector([-1.0, 2.0, 3.0]))
    assert raw == make_expected(value, "geometry_msgs/msg/Vector3Stamped")
    lost = dict.fromkeys(("latitude", "longitude", "altitude"), math.nan)
    raw = encode(messages.make_encoder(make_sensor(NavSat())), 5, **lost)  # type: ignore[arg-type]  # scalars
    back: Any = STORE.deserialize_cdr(raw, "sensor_msgs/msg/NavSatFix")
    assert (back.status.status, back.position_covariance_type) == (-1, 0)
    assert math.isnan(back.latitude)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, st.lists(st.tuples(words, words, make_vectors(3), make_vectors(4)), min_size=1, max_size=3))
def test_transform_messages_equal_rosbags(stamp: int, frames: list[tuple[str, str, list[float], list[float]]]) -> None:
    message = world_messages.make_transforms_encoder([(parent, child) for parent, child, _, _ in frames])
    parts = [
        T["geometry_msgs/msg/TransformStamped"](
            header=make_header(stamp, parent),
            child_frame_id=child,
            transform=T["geometry_msgs/msg/Transform"](translation=make_vector(place), rotation=make_quaternion(turn)),
        )
        for parent, child, place, turn in frames
    ]
    raw = encode(message, stamp, position=[f[2] for f in frames], orientation=[f[3] for f in frames])
    assert raw == make_expected(T["tf2_msgs/msg/TFMessage"](transforms=parts), "tf2_msgs/msg/TFMessage")


@given(stamps)
def test_clock_message_equals_rosbags(stamp: int) -> None:
    value = T["rosgraph_msgs/msg/Clock"](clock=make_time(stamp))
    assert encode(world_messages.make_clock_encoder(), stamp) == make_expected(value, "rosgraph_msgs/msg/Clock")


@pytest.mark.requirement("TRU-1")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(stamps, words, units, make_vectors(3), make_finite_numbers(3), make_vectors(3))
def test_truth_message_equals_rosbags(
    stamp: int, link: str, turn: list[float], place: list[float], speed: list[float], rate: list[float]
) -> None:
    raw = encode(
        world_messages.make_odometry_encoder(link),
        stamp,
        position=place,
        orientation=turn,
        velocity=speed,
        angular_velocity=rate,
    )
    back: Any = STORE.deserialize_cdr(raw, "nav_msgs/msg/Odometry")
    body = check_link_vector(turn, speed, back.twist.twist.linear)
    zeros = np.zeros(36)
    point = T["geometry_msgs/msg/Point"](*place)
    pose = T["geometry_msgs/msg/Pose"](position=point, orientation=make_quaternion(turn))
    twist = T["geometry_msgs/msg/Twist"](linear=make_vector(body), angular=make_vector(rate))
    value = T["nav_msgs/msg/Odometry"](
        header=make_header(stamp, "world"),
        child_frame_id=link,
        pose=T["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=zeros),
        twist=T["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=zeros),
    )
    assert raw == make_expected(value, "nav_msgs/msg/Odometry")
    raw = encode(
        world_messages.make_accel_encoder(link), stamp, orientation=turn, acceleration=speed, angular_acceleration=rate
    )
    back = STORE.deserialize_cdr(raw, "geometry_msgs/msg/AccelStamped")
    body = check_link_vector(turn, speed, back.accel.linear)
    accel = T["geometry_msgs/msg/Accel"](linear=make_vector(body), angular=make_vector(rate))
    value = T["geometry_msgs/msg/AccelStamped"](header=make_header(stamp, link), accel=accel)
    assert raw == make_expected(value, "geometry_msgs/msg/AccelStamped")


def test_velocity_is_rotated_to_the_link_frame() -> None:
    half = math.sqrt(0.5)
    yaw = np.array([[half, 0.0, 0.0, half]])  # the link points along the world's y
    got = world_messages.rotate_inverse(yaw, np.array([[0.0, 2.0, 1.0]]))[0]
    assert np.allclose(got, [2.0, 0.0, 1.0], atol=1e-15, rtol=0.0)
    rng = np.random.default_rng(0)
    turns = rng.standard_normal((50, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    moves = rng.standard_normal((50, 3))
    for (w, x, y, z), move, expected in zip(turns, moves, world_messages.rotate_inverse(turns, moves), strict=True):
        matrix = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        assert np.allclose(np.array(matrix) @ expected, move, atol=1e-14, rtol=0.0)


@pytest.mark.requirement("CLK-5")
@pytest.mark.parametrize("seconds", [2**31, -(2**31) - 1])
def test_stamp_out_of_range_names_the_clock_and_the_option(seconds: int) -> None:
    message = messages.make_encoder(make_sensor(Magnetometer(), clock_name="m::l::quartz"))
    with pytest.raises(RecordingError, match=rf"m::l::quartz.*{seconds}.*--epoch"):
        cdr.encode(message, np.array([0, seconds * 10**9]), {"field": np.zeros((2, 3))})
    assert "--epoch" in str(make_stamp_error("c", 1.0))


def test_mismatched_rows_are_an_error_before_writing() -> None:
    message = messages.make_encoder(make_sensor(Magnetometer()))
    for field in (np.zeros((2, 3)), np.zeros((4, 3)), np.zeros((3, 2)), np.zeros(3)):
        with pytest.raises(ValueError, match="magnetic_field"):
            cdr.encode(message, np.arange(3), {"field": field})
    rows = np.zeros(3, dtype=world_messages.make_odometry_encoder("body").layout.dtype)
    with pytest.raises(ValueError, match=r"header\.stamp"):
        cdr.write_stamps(rows, np.arange(4), "clock")
    with pytest.raises(ValueError, match="orientation"):
        cdr.write_quaternions(rows, "pose.pose.orientation", np.zeros((4, 4)))
    assert not rows.tobytes().strip(b"\0")


@pytest.mark.parametrize("kind", [kind for kind in schemas.DEFINITIONS if kind in STORE.fielddefs])
def test_definitions_equal_those_of_ros(kind: str) -> None:
    parsed = get_types_from_msg(schemas.format_schema(kind), kind)
    assert kind in parsed
    for name, definition in parsed.items():
        assert definition[1] == STORE.fielddefs[name][1], name
    needed = {f.type for name in parsed for f in schemas.parse_fields(schemas.DEFINITIONS[name]) if "/" in f.type}
    assert set(parsed) == {kind, *needed}


@dataclass(frozen=True)
class Salinity:
    """A sensor of another package."""

    type: ClassVar[str] = "conductivity probe"

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (Output("salinity", 1, "g/kg"), Output("matrix", 9, "1"), Output("depth", 0, "m"))


def test_sensor_without_a_message_gets_a_generic_message() -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    message = messages.make_encoder(make_sensor(Salinity(), "probe"))
    assert message.type == "navsense_msgs/msg/ConductivityProbe"
    store.register(get_types_from_msg(message.schema, message.type))
    arrays = {"salinity": np.array([35.0, math.nan]), "matrix": np.arange(18.0).reshape(2, 3, 3)}
    arrays["depth"] = np.array([7.0, 8.0])
    raw = cdr.encode(message, np.array([5, -1]), arrays)
    values: list[Any] = [store.deserialize_cdr(row.tobytes(), message.type) for row in raw]
    assert values[0].salinity.tolist() == [35.0]
    assert math.isnan(values[1].salinity[0])
    assert [value.depth for value in values] == [7.0, 8.0]
    assert values[1].matrix.tolist() == list(range(9, 18))
    assert (values[1].header.stamp.sec, values[1].header.stamp.nanosec) == (-1, 999_999_999)
    assert values[1].header.frame_id == "probe"
    raw = cdr.encode(
        messages.make_encoder(make_sensor(Salinity()), "ideal"), np.array([5]), {"matrix": np.zeros((1, 9))}
    )
    assert math.isnan(store.deserialize_cdr(raw[0].tobytes(), message.type).salinity[0])  # type: ignore[attr-defined]


def test_companion_topics_are_declared_by_the_sensor() -> None:
    companions = {"navsat": {"_velocity": navsat.make_velocity_encoder}, "depth": {"_depth": depth.make_depth_encoder}}
    constant = [kind for kind in SENSORS if kind.type not in ("dvl", "adcp")]
    listed = {kind.type: messages.list_companions(make_sensor(kind.example_spec())) for kind in constant}
    assert companions == {kind: found for kind, found in listed.items() if found}
    text = Path(messages.__file__).read_text(encoding="utf-8")
    assert not [kind.type for kind in SENSORS if kind.type in text]


@pytest.mark.parametrize("encoder", [one.make_encoder for one in messages.SENSOR_MESSAGES.values()])
def test_spec_of_another_type_is_an_error(encoder: Callable[..., Any]) -> None:
    with pytest.raises(RecordingError, match=r"m::l::s.*of type conductivity probe"):
        encoder(make_sensor(Salinity()), "measured")
