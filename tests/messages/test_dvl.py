"""Messages of a DVL in each dialect are read by rosbags, by protobuf, and from recordings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import messages
from navsense.core.errors import RecordingError, SensorError
from navsense.core.pose import Pose, from_rpy
from navsense.core.readings import Reading
from navsense.messages import cdr, dvl, schemas
from navsense.messages.base import IS_ON
from navsense.noise.specification import Noise
from navsense.recordings.static_transforms import list_static_transforms
from navsense.recordings.topic_names import allocate_topics
from navsense.sensors import Depth
from navsense.sensors.doppler import (
    Beam,
    Beams,
    DvlMessageOptions,
    MessageDialect,
    Transducer,
    WaterMassLayer,
    make_janus_beams,
)
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.testing import example_world
from navsense.world import MountedSensor, World

STORE = get_typestore(Stores.ROS2_HUMBLE)
for _kind in (dvl.MARINE_TYPE, dvl.UUV_TYPE, dvl.DS_TYPE, dvl.RANGES_TYPE):
    STORE.register(get_types_from_msg(schemas.format_schema(_kind), _kind))
T = STORE.types

TURN = from_rpy(0.1, -0.2, 0.7)
PLACES = ((0.1, 0.0, -0.1), (0.0, 0.1, -0.1), (-0.1, 0.0, -0.1), (0.0, -0.1, -0.1), (0.2, 0.2, 0.0))
SPREAD = 0.25
EPOCH = 1000

FULL, LOST, WET = 0, 2, 3
"""Rows of the reading: all values, none, the water track only. Row 1 is dropped."""


def make_beams(count: int) -> Beams:
    """Return beams at 30 degrees with separate positions."""
    found = make_janus_beams(math.radians(30.0), [2.0 * math.pi * i / count for i in range(count)])
    return Beams(tuple(Beam(b.shape, b.rotation, place) for b, place in zip(found.beams, PLACES, strict=False)))


def make_spec(count: int = 4, **changes: Any) -> Dvl:
    """Return a spec with both tracks whose velocities are in a separate frame."""
    arguments = {
        "beams": make_beams(count),
        "range_noise": Noise(stddev=SPREAD),
        "water_mode": TrackMode.FALLBACK,
        "layer": WaterMassLayer(2.0, 8.0),
        "transducer": Transducer.PHASED_ARRAY,
        "reference": TURN,
    }
    return Dvl(**(arguments | changes))


def make_sensor(spec: Any, frame: str = "dvl_link") -> MountedSensor:
    return MountedSensor("m::l::s", spec, "m", "l", 4.0, topic="/dvl/dvl", frame=frame)


def make_reading(count: int = 4) -> Reading:
    """Return four pings, published 0.05 s after their time of validity, stamped by a clock with an offset."""
    rng = np.random.default_rng(count)
    time = np.arange(4) / 4.0 + 1.0
    arrays: dict[str, Any] = {
        "velocity": rng.normal(size=(4, 3)),
        "velocity_covariance": rng.uniform(0.1, 1.0, (4, 3, 3)),
        "water_velocity": rng.normal(size=(4, 3)),
        "water_velocity_covariance": rng.uniform(0.1, 1.0, (4, 3, 3)),
        "altitude": rng.uniform(5.0, 9.0, 4),
        "course": rng.uniform(0.0, 6.0, 4),
        "speed": rng.uniform(0.0, 2.0, 4),
        "beam_range": rng.uniform(6.0, 9.0, (4, count)),
        "beam_velocity": rng.normal(size=(4, count)),
        "beam_deviation": rng.uniform(0.1, 0.2, (4, count)),
        "water_beam_velocity": rng.normal(size=(4, count)),
        "water_beam_deviation": rng.uniform(0.2, 0.3, (4, count)),
        "num_good_beams": np.array([count, math.nan, 0.0, count]),
        "velocity_mode": np.array([1.0, math.nan, 0.0, 2.0]),
        "time_of_validity": np.array([0.95, math.nan, 1.45, 1.70]),
        "sound_speed": np.full(4, 1480.0),
        "water_time_of_validity": np.array([0.946, math.nan, math.nan, 1.70]),
        "water_far": np.array([7.0, math.nan, math.nan, 7.0]),
    }
    for name in ("velocity", "velocity_covariance", "water_velocity", "water_velocity_covariance"):
        arrays[name][LOST] = math.nan
    for name in ("altitude", "course", "speed", "beam_range", "beam_velocity", "beam_deviation"):
        arrays[name][LOST:] = math.nan
    for name in ("water_beam_velocity", "water_beam_deviation"):
        arrays[name][LOST] = math.nan
    flags = np.array([True, False, True, True])
    off = np.full(4, 0.125)
    return Reading("m::l::s", "dvl", "dvl_link", {}, time, off, arrays, {}, {}, flags, flags, EPOCH)


def encode_row(message: cdr.MessageEncoder, row: int, part: Reading) -> bytes:
    """Return one row of a reading as a writer encodes it."""
    about = dvl.time_of_validity(part)
    stamp = messages.base.compute_stamps(part, "c", about)
    arrays = {**part.arrays, messages.base.AGE: part.time - about}
    return bytes(cdr.encode(message, stamp, arrays)[row])


def make_header(row: int, frame: str = "dvl_link", is_published: bool = False) -> Any:
    return T["std_msgs/msg/Header"](stamp=make_stamp(row, is_published), frame_id=frame)


def make_stamp(row: int, is_published: bool = False) -> Any:
    """Return the time of validity or of publication of a row, by a clock that is 1/8 s ahead."""
    part = make_reading()
    when = (
        part.time[row] if is_published or math.isnan(part["time_of_validity"][row]) else part["time_of_validity"][row]
    )
    complete = round(1e9 * (EPOCH + 0.125 + float(when)))
    return T["builtin_interfaces/msg/Time"](sec=complete // 10**9, nanosec=complete % 10**9)


def make_vector(values: Any) -> Any:
    return T["geometry_msgs/msg/Vector3"](*map(float, values))


def rotate_vectors(rows: Any) -> Any:
    """Return vectors of the sensor frame in the velocity frame, by SciPy."""
    w, x, y, z = TURN
    return Rotation.from_quat([x, y, z, w]).apply(rows)


def assert_close(found: Any, expected: Any) -> None:
    """Assert that two messages are equal, numbers to rounding."""
    assert type(found).__name__ == type(expected).__name__
    for name in found.__dataclass_fields__:
        actual, wanted = getattr(found, name), getattr(expected, name)
        if hasattr(actual, "__dataclass_fields__"):
            assert_close(actual, wanted)
        elif isinstance(actual, list):
            assert len(actual) == len(wanted)
            for a, b in zip(actual, wanted, strict=True):
                assert_close(a, b)
        elif isinstance(actual, str):
            assert actual == wanted, name
        else:
            np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-15, err_msg=name)


def decode_row(message: cdr.MessageEncoder, row: int, part: Reading | None = None) -> Any:
    return STORE.deserialize_cdr(encode_row(message, row, part or make_reading()), message.type)


def pad_to_four(values: Any, missing: float, kind: Any = np.float32) -> Any:
    """Return the first four values of a row."""
    return np.array([*values[:4], *[missing] * (4 - len(values[:4]))], dtype=kind)


def make_unit_vectors(count: int) -> list[Any]:
    return [make_vector(row) for row in rotate_vectors(make_beams(count).axes)[:4]] + [
        make_vector((0.0, 0.0, 0.0))
    ] * max(0, 4 - count)


NAN3, NOT = (math.nan,) * 3, np.full(9, -1.0)


def list_beam_fields(row: int, count: int) -> dict[str, Any]:
    """Return the beam fields that all messages of a row share: those of the track of the velocity."""
    part, track = make_reading(count), "water_beam" if row == WET else "beam"
    known = row != LOST
    velocity = part[f"{track}_velocity"][row] if known else np.full(count, math.nan)
    spread = part[f"{track}_deviation"][row] ** 2 if known else np.full(count, -1.0)
    near = row == FULL
    return {
        "velocity": make_vector(part["velocity"][row] if known else NAN3),
        "covariance": part["velocity_covariance"][row].ravel() if known else NOT,
        "beam_velocity": velocity,
        "beam_variance": spread,
        "range": part["beam_range"][row],
        "range_variance": np.full(count, SPREAD**2 if near else -1.0),
        "quality": np.full(count, 250.0 if known else 10.0),
    }


@pytest.mark.requirement("GAP-4", "GAP-7", "GAP-9:time of validity")
@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("row", [FULL, LOST, WET])
@pytest.mark.parametrize("dialect", [MessageDialect.OWN, MessageDialect.GZ])
def test_marine_message(row: int, count: int, dialect: MessageDialect) -> None:
    part, beam_fields = make_reading(count), list_beam_fields(row, count)
    value = T[dvl.MARINE_TYPE](
        header=make_header(row),
        velocity_mode={FULL: 1, LOST: 0, WET: 2}[row],
        dvl_type=1,
        velocity=beam_fields["velocity"],
        velocity_covar=beam_fields["covariance"],
        altitude=part["altitude"][row],
        course_gnd=part["course"][row],
        speed_gnd=part["speed"][row],
        num_good_beams=int(part["num_good_beams"][row]),
        sound_speed=1480.0,
        beam_ranges_valid=row == FULL,
        beam_velocities_valid=row != LOST,
        beam_unit_vec=make_unit_vectors(count),
        range=pad_to_four(beam_fields["range"], math.nan, np.float64),
        range_covar=pad_to_four(beam_fields["range_variance"], -1.0),
        beam_quality=pad_to_four(beam_fields["quality"], 10.0),
        beam_velocity=pad_to_four(beam_fields["beam_velocity"], math.nan),
        beam_velocity_covar=pad_to_four(beam_fields["beam_variance"], -1.0),
    )
    assert_close(
        decode_row(dvl.make_encoder(make_sensor(make_spec(count, dialect=dialect)), "measured"), row, part), value
    )


NAN = math.nan


@pytest.mark.parametrize(
    ("variance", "value", "written"),
    [
        ([[0.1, 0.2, 0.3]], [[1.0, 2.0, 3.0]], [[0.1, 0.2, 0.3]]),
        ([[0.1, NAN, 0.3]], [[1.0, 2.0, 3.0]], [[0.1, -1.0, 0.3]]),
        ([[0.1, 0.2, 0.3]], [[1.0, NAN, 3.0]], [[0.1, -1.0, 0.3]]),
        ([[NAN, 0.2, 0.0]], [[1.0, 2.0, NAN]], [[-1.0, 0.2, -1.0]]),
        ([[0.1, 0.2, 0.3], [0.4, NAN, 0.6]], [[NAN], [1.0]], [[-1.0] * 3, [0.4, -1.0, 0.6]]),
        ([[0.1], [NAN]], [[1.0], [2.0]], [[0.1], [-1.0]]),
    ],
    ids=["all known", "a variance", "a value", "both", "one value of several", "one of one"],
)
def test_unknown_variance_or_value_has_variance_minus_one(
    variance: list[list[float]], value: list[list[float]], written: list[list[float]]
) -> None:
    assert dvl._fill_unknown_variances(np.array(variance), np.array(value)).tolist() == written


@pytest.mark.requirement("GAP-4")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_unknown_variances_of_known_values_are_written_as_unknown(dialect: MessageDialect) -> None:
    """One element of a covariance, the deviation of a beam and the velocity of another beam are unknown."""
    part = make_reading()
    part.arrays["velocity_covariance"][FULL, 1, 2] = NAN  # type: ignore[index]
    part.arrays["beam_deviation"][FULL, 1] = NAN  # type: ignore[index]
    part.arrays["beam_velocity"][FULL, 3] = NAN  # type: ignore[index]
    found = decode_row(dvl.make_encoder(make_sensor(make_spec(dialect=dialect)), "measured"), FULL, part)
    uuv = dialect is MessageDialect.UUV
    covariance = part["velocity_covariance"][FULL].ravel()
    covariance[5] = -1.0
    assert list(found.velocity_covariance if uuv else found.velocity_covar) == covariance.tolist()
    spread = part["beam_deviation"][FULL] ** 2
    spread[[1, 3]] = -1.0
    if uuv:
        assert [beam.velocity_covariance for beam in found.beams] == spread.tolist()
    else:
        covariances = found.raw_velocity_covar if dialect is MessageDialect.DSROS else found.beam_velocity_covar
        assert list(covariances) == spread.astype(np.float32).tolist()


@pytest.mark.requirement("GAP-1")
def test_bottom_and_water_velocity_have_a_message_each() -> None:
    """The water velocity has a separate message if both are always tracked."""
    for bottom in (TrackMode.ALWAYS, TrackMode.BEST, TrackMode.NEVER):
        for water in (TrackMode.ALWAYS, TrackMode.BEST, TrackMode.FALLBACK):
            companions = dvl.list_companions(make_sensor(make_spec(bottom_mode=bottom, water_mode=water)), "measured")
            assert ("_water" in companions) == (bottom is not TrackMode.NEVER and water is TrackMode.ALWAYS)


@pytest.mark.requirement("GAP-1")
@pytest.mark.parametrize("row", [FULL, LOST])
def test_both_tracks_have_separate_messages(row: int) -> None:
    part, spec = make_reading(), make_spec(water_mode=TrackMode.ALWAYS)
    maker, _ = dvl.list_companions(make_sensor(spec), "measured").values()
    known = row == FULL
    beam, spread = part["water_beam_velocity"][row], part["water_beam_deviation"][row] ** 2
    earlier = make_header(row)
    earlier.stamp.nanosec -= 4_000_000 if known else 0
    value = T[dvl.MARINE_TYPE](
        header=earlier,
        velocity_mode=2 if known else 0,
        dvl_type=1,
        velocity=make_vector(part["water_velocity"][row]),
        velocity_covar=part["water_velocity_covariance"][row].ravel() if known else NOT,
        altitude=math.nan,
        course_gnd=math.nan,
        speed_gnd=math.nan,
        num_good_beams=4 if known else 0,
        sound_speed=1480.0,
        beam_ranges_valid=False,
        beam_velocities_valid=known,
        beam_unit_vec=make_unit_vectors(4),
        range=np.full(4, math.nan),
        range_covar=np.full(4, -1.0, dtype=np.float32),
        beam_quality=np.full(4, 250.0 if known else 10.0, dtype=np.float32),
        beam_velocity=beam.astype(np.float32),
        beam_velocity_covar=np.where(np.isnan(spread), -1.0, spread).astype(np.float32),
    )
    assert_close(decode_row(maker(make_sensor(spec), "measured"), row), value)
    assert list(dvl.list_companions(make_sensor(make_spec()), "measured")) == ["_ping"]


@pytest.mark.requirement("DVU-4", "GAP-4", "GAP-5")
@pytest.mark.parametrize("row", [FULL, LOST, WET])
@pytest.mark.parametrize("named", [False, True])
def test_uuv_simulator_message(row: int, named: bool) -> None:
    part, beam_fields = make_reading(), list_beam_fields(row, 4)
    frames = tuple(f"sonar{i}" for i in range(4)) if named else ()
    spec = make_spec(dialect=MessageDialect.UUV, message_options=DvlMessageOptions(beam_frames=frames))
    poses: list[Any] = []
    for beam in spec.beams.beams:
        w, x, y, z = beam.rotation
        turn = Rotation.from_quat([*TURN[1:], TURN[0]]) * Rotation.from_quat([x, y, z, w])
        along = turn.as_quat()
        place = T["geometry_msgs/msg/Point"](*map(float, rotate_vectors(beam.position)))
        found = decode_row(dvl.make_encoder(make_sensor(spec), "measured"), row).beams[len(poses)].pose.pose.orientation
        sign = 1.0 if along @ [found.x, found.y, found.z, found.w] > 0.0 else -1.0
        quaternion = T["geometry_msgs/msg/Quaternion"](*map(float, sign * along))
        poses.append(T["geometry_msgs/msg/Pose"](position=place, orientation=quaternion))
    sonars = [
        T["uuv_sensor_ros_plugins_msgs/msg/DVLBeam"](
            range=beam_fields["range"][i] if row == FULL else -1.0,
            range_covariance=beam_fields["range_variance"][i],
            velocity=beam_fields["beam_velocity"][i],
            velocity_covariance=beam_fields["beam_variance"][i],
            pose=T["geometry_msgs/msg/PoseStamped"](
                header=make_header(row, frames[i] if named else "dvl_link"), pose=poses[i]
            ),
        )
        for i in range(4)
    ]
    value = T[dvl.UUV_TYPE](
        header=make_header(row),
        velocity=beam_fields["velocity"],
        velocity_covariance=beam_fields["covariance"],
        altitude=part["altitude"][row] if row == FULL else -1.0,
        beams=sonars,
    )
    assert_close(decode_row(dvl.make_encoder(make_sensor(spec), "measured"), row), value)


@pytest.mark.requirement("DVU-4")
@pytest.mark.parametrize("row", [FULL, LOST])
def test_uuv_simulator_twist_and_state(row: int) -> None:
    sensor, beam_fields = make_sensor(make_spec(dialect=MessageDialect.UUV)), list_beam_fields(row, 4)
    assert list(dvl.list_companions(sensor, "measured")) == ["_twist", "/state", "_ping"]
    assert list(dvl.list_companions(sensor, "ideal")) == ["_twist", "_ping"]
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = beam_fields["covariance"].reshape(3, 3)
    covariance[3:, 3:] = -np.eye(3)
    twist = T["geometry_msgs/msg/Twist"](linear=beam_fields["velocity"], angular=make_vector((0.0, 0.0, 0.0)))
    value = T[dvl.TWIST_TYPE](
        header=make_header(row),
        twist=T["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=covariance.ravel()),
    )
    assert_close(decode_row(dvl.make_twist_encoder(sensor, "measured"), row), value)
    states = cdr.encode(dvl.make_state_encoder(sensor, "measured"), np.arange(2), {IS_ON: np.array([True, False])})
    found: list[Any] = [STORE.deserialize_cdr(raw.tobytes(), dvl.STATE_TYPE) for raw in states]
    assert [state.data for state in found] == [True, False]


@pytest.mark.requirement("DVW-5", "DVW-6:units", "GAP-4")
@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("row", [FULL, LOST, WET])
def test_ds_msgs_message(row: int, count: int) -> None:
    part, beam_fields = make_reading(count), list_beam_fields(row, count)
    spec = make_spec(count, dialect=MessageDialect.DSROS, transducer=Transducer.PISTON)
    found = decode_row(dvl.make_encoder(make_sensor(spec), "measured"), row, part)
    uuid = np.asarray(found.ds_header.source_uuid)
    assert uuid.size == 16
    assert uuid.any()
    valid, clock = make_stamp(row), make_stamp(row, is_published=True)
    value = T[dvl.DS_TYPE](
        header=make_header(row),
        ds_header=T["ds_core_msgs/msg/DsHeader"](io_time=clock, source_uuid=uuid),
        dvl_time=valid.sec + valid.nanosec * 1e-9,
        velocity=beam_fields["velocity"],
        velocity_covar=beam_fields["covariance"],
        altitude=part["altitude"][row],
        course_gnd=180.0 / math.pi * part["course"][row],
        speed_gnd=part["speed"][row],
        num_good_beams=int(part["num_good_beams"][row]),
        speed_sound=1480.0,
        beam_unit_vec=make_unit_vectors(count),
        range=pad_to_four(beam_fields["range"], math.nan, np.float64),
        range_covar=pad_to_four(beam_fields["range_variance"], -1.0),
        beam_quality=pad_to_four(beam_fields["quality"], 10.0),
        raw_velocity=pad_to_four(beam_fields["beam_velocity"], math.nan),
        raw_velocity_covar=pad_to_four(beam_fields["beam_variance"], -1.0),
        velocity_mode={FULL: 1, LOST: 0, WET: 2}[row],
        coordinate_mode=1,
        dvl_type=0,
    )
    assert_close(found, value)


@pytest.mark.requirement("DVW-5")
def test_ranges_message_has_the_beam_ranges() -> None:
    sensor, part = make_sensor(make_spec(3, dialect=MessageDialect.DSROS)), make_reading(3)
    part.arrays["beam_range"][FULL, 1] = math.nan  # type: ignore[index]
    found = decode_row(dvl.make_ranges_encoder(sensor, "measured"), FULL, part)
    assert found.header == make_header(FULL)
    assert found.ds_header.io_time == make_stamp(FULL, is_published=True)
    assert found.soundspeed_correction_type == 1
    ends = rotate_vectors(np.array(PLACES[:3]) + part["beam_range"][FULL][:, None] * make_beams(3).axes)
    for i, item in enumerate(found.ranges):
        assert item.range.header == make_header(FULL)
        assert [item.range.point.x, item.range.point.y, item.range.point.z] == pytest.approx(
            ends[i], nan_ok=True, rel=1e-12, abs=0.0
        )
        assert (item.range_quality, item.range_validity) == ((10.0, 0) if i == 1 else (250.0, 3))


@pytest.mark.requirement("DVW-5")
@pytest.mark.parametrize("points", [1, 2, 5])
@pytest.mark.parametrize("named", [False, True])
def test_point_cloud_lies_along_the_beams(points: int, named: bool) -> None:
    at = Pose((1.5, 0.0, -0.5), from_rpy(math.pi, 0.0, 0.3))
    names = DvlMessageOptions("", "robot_link", at, points) if named else DvlMessageOptions(cloud_points=points)
    found = decode_row(
        dvl.make_cloud_encoder(make_sensor(make_spec(dialect=MessageDialect.DSROS, message_options=names)), "measured"),
        FULL,
    )
    assert found.header == make_header(FULL, "robot_link" if named else "dvl_link")
    assert not found.channels
    steps = np.linspace(0.0, 1.0, points) if points > 1 else np.ones(1)
    far = make_reading()["beam_range"][FULL]
    rows = [
        rotate_vectors(place + step * far[i] * make_beams(4).axes[i])
        for i, place in enumerate(PLACES[:4])
        for step in steps
    ]
    if named:
        w, x, y, z = at.rotation
        rows = [Rotation.from_quat([x, y, z, w]).apply(row) + at.position for row in rows]
    assert len(found.points) == 4 * points
    np.testing.assert_allclose([[p.x, p.y, p.z] for p in found.points], rows, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("points", [0, 1001, 2.5])
def test_invalid_number_of_points_is_an_error(points: float) -> None:
    with pytest.raises(SensorError, match=rf"points.*{points}.*1 to 1000"):
        DvlMessageOptions(cloud_points=points)  # type: ignore[arg-type]


@pytest.mark.requirement("TRU-1")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_ideal_and_bias_messages_have_no_variance(dialect: MessageDialect) -> None:
    part = make_reading()
    names = ("velocity", "altitude", "course", "speed", "beam_range", "beam_velocity", "water_velocity")
    ideal = replace(part, arrays={**{name: part[name] for name in names}, "time_of_validity": part["time_of_validity"]})
    found = decode_row(dvl.make_encoder(make_sensor(make_spec(dialect=dialect)), "ideal"), FULL, ideal)
    covariance = found.velocity_covariance if dialect is MessageDialect.UUV else found.velocity_covar
    assert not np.any(covariance)
    assert found.altitude == part["altitude"][FULL]
    if dialect is not MessageDialect.UUV:
        rows = [
            decode_row(dvl.make_encoder(make_sensor(make_spec(dialect=dialect)), "ideal"), row, ideal)
            for row in (FULL, LOST, WET)
        ]
        assert [row.velocity_mode for row in rows] == [1, 0, 2]
        assert [row.num_good_beams for row in rows] == [4, 0, 0]
    hidden = replace(part, arrays={"beam_range": part["beam_range"], "time_of_validity": part["time_of_validity"]})
    found = decode_row(dvl.make_encoder(make_sensor(make_spec(dialect=dialect)), "bias"), FULL, hidden)
    assert math.isnan(found.velocity.x)
    ranges = [beam.range for beam in found.beams] if dialect is MessageDialect.UUV else list(found.range)
    assert ranges == part["beam_range"][FULL].tolist()


def make_decoder() -> Any:
    """Return `gz.msgs.DVLVelocityTracking` by protobuf, with the field numbers of gz-sensors."""
    kind = descriptor_pb2.FieldDescriptorProto
    types = {"double": kind.TYPE_DOUBLE, "int32": kind.TYPE_INT32, "int64": kind.TYPE_INT64, "bool": kind.TYPE_BOOL}
    types["string"] = kind.TYPE_STRING
    tables = {
        "Time": "sec=1 int64, nsec=2 int32",
        "Map": "key=1 string, value=2 repeated string",
        "Header": "stamp=1 Time, data=2 repeated Map",
        "Vector3d": "header=1 Header, x=2 double, y=3 double, z=4 double",
        "Kinematic": "reference=1 int32, mean=2 Vector3d, covariance=3 repeated double",
        "Range": "mean=1 double, variance=2 double",
        "Target": "type=1 int32, range=2 Range, position=3 Kinematic",
        "Beam": "id=1 int32, velocity=2 Kinematic, range=3 Range, rssi=4 double, nsd=5 double, locked=6 bool",
        "Tracking": "header=1 Header, type=2 int32, target=3 Target, velocity=4 Kinematic, "
        "beams=5 repeated Beam, status=6 int32",
    }
    file = descriptor_pb2.FileDescriptorProto(name="dvl.proto", package="dvl", syntax="proto3")
    for name, text in tables.items():
        message_type = file.message_type.add(name=name)
        for part in text.split(", "):
            left, *label, type_name = part.split()
            field, _, number = left.partition("=")
            added = message_type.field.add(name=field, number=int(number))
            added.label = kind.LABEL_REPEATED if label else kind.LABEL_OPTIONAL
            added.type = types.get(type_name, kind.TYPE_MESSAGE)
            if type_name not in types:
                added.type_name = f".dvl.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("dvl.Tracking"))


TRACKING = make_decoder()


def list_components(vector3: Any) -> list[float]:
    return [vector3.x, vector3.y, vector3.z]


@pytest.mark.requirement("GAP-1", "GAP-4")
@pytest.mark.parametrize("ids", [(), (1, 2, 3, 4)])
def test_gazebo_message(ids: tuple[int, ...]) -> None:
    part = make_reading()
    sensor = make_sensor(make_spec(dialect=MessageDialect.GZ, message_options=DvlMessageOptions(beam_ids=ids)))
    found = [TRACKING.FromString(raw) for raw in dvl.encode_gz_messages(sensor, part, 7)]
    axes, cosine = rotate_vectors(make_beams(4).axes), math.cos(math.radians(30.0))
    assert len(found) == 3
    for i, (row, value) in enumerate(zip((FULL, LOST, WET), found, strict=True)):
        assert (value.header.stamp.sec, value.header.stamp.nsec) == (make_stamp(row).sec, make_stamp(row).nanosec)
        data = {item.key: list(item.value) for item in value.header.data}
        assert data == {"frame_id": ["dvl_link"], "seq": [str(7 + i)]}
        assert (value.type, value.status) == (2, 0)
        assert [beam.id for beam in value.beams] == list(ids or (0, 1, 2, 3))
        assert [beam.locked for beam in value.beams] == [row != LOST] * 4
        assert value.HasField("velocity") == value.HasField("target") == (row != LOST)
        if row == LOST:
            assert not any(beam.HasField("velocity") or beam.HasField("range") for beam in value.beams)
            continue
        assert value.velocity.reference == 2
        assert list_components(value.velocity.mean) == part["velocity"][row].tolist()
        assert list(value.velocity.covariance) == part["velocity_covariance"][row].ravel().tolist()
        track = "beam" if row == FULL else "water_beam"
        ranges = part["beam_range"][row] if row == FULL else np.full(4, 4.5 / cosine)  # from 2 m to 7, not to 8
        spread = SPREAD**2 if row == FULL else (5.0 / cosine) ** 2 / 12.0
        assert value.target.type == (1 if row == FULL else 2)
        assert [value.target.range.mean, value.target.range.variance] == pytest.approx(
            [ranges.min(), spread], rel=1e-12, abs=0.0
        )
        for k, beam in enumerate(value.beams):
            assert [beam.range.mean, beam.range.variance] == pytest.approx([ranges[k], spread], rel=1e-12, abs=0.0)
            assert beam.velocity.reference == 2
            assert list_components(beam.velocity.mean) == pytest.approx(
                part[f"{track}_velocity"][row, k] * axes[k], rel=1e-12, abs=0.0
            )
            expected = part[f"{track}_deviation"][row, k] ** 2 * np.outer(axes[k], axes[k])
            assert list(beam.velocity.covariance) == pytest.approx(expected.ravel(), rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-1")
def test_gazebo_message_has_both_tracks_if_always_active() -> None:
    part = make_reading()
    sensor = make_sensor(make_spec(dialect=MessageDialect.GZ, water_mode=TrackMode.ALWAYS))
    found = [TRACKING.FromString(raw) for raw in dvl.encode_gz_messages(sensor, part)]
    assert [[str(i)] for i in range(6)] == [list(value.header.data[1].value) for value in found]
    assert [value.target.type for value in found] == [1, 2, 0, 0, 0, 2]
    assert [value.HasField("velocity") for value in found] == [True, True, False, False, False, True]
    assert list_components(found[0].velocity.mean) == part["velocity"][FULL].tolist()
    assert list_components(found[1].velocity.mean) == part["water_velocity"][FULL].tolist()
    assert list_components(found[5].velocity.mean) == part["water_velocity"][WET].tolist()
    assert found[0].header.stamp.nsec - found[1].header.stamp.nsec == 4_000_000
    only = make_sensor(make_spec(dialect=MessageDialect.GZ, bottom_mode=TrackMode.NEVER, water_mode=TrackMode.ALWAYS))
    assert len(dvl.encode_gz_messages(only, part)) == 3


@pytest.mark.requirement("GAP-4", "REC-1:mcap")
@pytest.mark.parametrize("count", [3, 4, 5])
def test_message_of_all_arrays_equals_the_documentation(count: int) -> None:
    """rosbags reads the message with this definition, for any beams. Values without a truth are unknown."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "recordings.md").read_text(encoding="utf-8")
    (told,) = (part for part in page.split("```\n") if part.startswith("std_msgs/Header header\nfloat64[] velocity\n"))
    sensor, (_, kind) = make_sensor(make_spec(count)), dvl.PING_MESSAGE
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(told, kind))
    part = make_reading(count)
    message = messages.make_encoder(sensor, "measured", "_ping")
    assert (message.type, message.schema.partition("=")[0]) == (kind, told)
    for row in (FULL, LOST, WET):
        rows = {name: array[row : row + 1] for name, array in part.arrays.items()}
        value: Any = store.deserialize_cdr(cdr.encode(message, part.true_stamp[row : row + 1], rows).tobytes(), kind)
        for name, array in part.arrays.items():
            np.testing.assert_array_equal(np.ravel(getattr(value, name)), array[row].ravel(), name)
    message = messages.make_encoder(sensor, "ideal", "_ping")
    raw = cdr.encode(message, part.true_stamp[:1], {"altitude": part["altitude"][:1]})
    value = store.deserialize_cdr(raw.tobytes(), kind)
    assert value.altitude == part["altitude"][0]
    assert np.isnan([*value.long_term_covariance, *value.beam_valid, value.water_far]).all()


@pytest.mark.parametrize("maker", [dvl.make_encoder, dvl.list_companions])
def test_spec_of_another_type_is_an_error(maker: Any) -> None:
    with pytest.raises(RecordingError, match=r"m::l::s.*of type depth"):
        maker(make_sensor(Depth()), "measured")


DIALECTS = {
    MessageDialect.OWN: {"/dvl/dvl": dvl.MARINE_TYPE, "/dvl/dvl_water": dvl.MARINE_TYPE},
    MessageDialect.UUV: {"/dvl/dvl": dvl.UUV_TYPE, "/dvl/dvl_twist": dvl.TWIST_TYPE, "/dvl/dvl/state": dvl.STATE_TYPE},
    MessageDialect.DSROS: {"/dvl/dvl": dvl.DS_TYPE, "/dvl/ranges": dvl.RANGES_TYPE, "/dvl/dvl_cloud": dvl.CLOUD_TYPE},
    MessageDialect.GZ: {"/dvl/dvl": dvl.MARINE_TYPE, "/dvl/dvl_water": dvl.MARINE_TYPE},
}
"""Topics of each dialect and their types. For two dialects, the wiki of Field-Robotics-Lab lists them."""

WHOLE = {"/dvl/dvl_ping": "navsense_msgs/msg/Dvl"}
"""Additional topics of each dialect."""

HIDDEN = {
    MessageDialect.OWN: {"/dvl/dvl/ideal", "/dvl/dvl_water/ideal", "/dvl/dvl/bias"},
    MessageDialect.UUV: {"/dvl/dvl/ideal", "/dvl/dvl_twist/ideal", "/dvl/dvl/bias", "/dvl/dvl_twist/bias"},
    MessageDialect.DSROS: {"/dvl/dvl/ideal", "/dvl/ranges/ideal", "/dvl/dvl_cloud/ideal", "/dvl/dvl/bias"},
    MessageDialect.GZ: {"/dvl/dvl/ideal", "/dvl/dvl_water/ideal", "/dvl/dvl/bias"},
}


def make_world(dialect: MessageDialect) -> World:
    """Return the world of the laws with a DVL of a dialect that always has both tracks."""
    names = DvlMessageOptions(ranges_topic="/dvl/ranges")
    modes = {"bottom_mode": TrackMode.ALWAYS, "water_mode": TrackMode.ALWAYS}
    spec = replace(Dvl.example_spec(), dialect=dialect, message_options=names, **modes)
    world = example_world(("dvl", spec))
    return replace(world, sensors=tuple(replace(sensor, topic="/dvl/dvl") for sensor in world.sensors))


@pytest.mark.requirement("DVU-4")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_only_the_off_state_of_a_disabled_dvl_is_recorded(tmp_path: Path, suffix: str) -> None:
    off, path = make_world(MessageDialect.UUV), tmp_path / f"run{suffix}"
    off = replace(off, sensors=tuple(replace(sensor, is_on=False) for sensor in off.sensors))
    ns.record(off, path, 1.0, seed=5, epoch=EPOCH)
    with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
        states = [connection for connection in reader.connections if connection.topic == "/dvl/dvl/state"]
        topic_messages: list[Any] = [reader.deserialize(raw, states[0].msgtype) for *_, raw in reader.messages(states)]
        topics = {
            connection.topic: connection.msgcount
            for connection in reader.connections
            if connection.topic.startswith("/dvl")
        }
    assert [one.data for one in topic_messages] == [False] * len(ns.simulate(off, 1.0)["robot::arm::dvl"].time)
    assert {topic for topic, count in topics.items() if count} == {"/dvl/dvl/state"}


@pytest.mark.requirement("DVU-4", "DVW-5", "REC-1:mcap")
@pytest.mark.parametrize("dialect", list(MessageDialect))
def test_recordings_hold_every_topic_and_other_programs_read_them(dialect: MessageDialect, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    ns.record(make_world(dialect), path, 1.0, seed=5, epoch=EPOCH)
    part = ns.simulate(make_world(dialect), 1.0, seed=5, epoch=EPOCH)["robot::arm::dvl"]
    rows = np.flatnonzero(part.emitted)
    with AnyReader([path]) as reader:
        types = {
            connection.topic: connection.msgtype
            for connection in reader.connections
            if connection.topic.startswith("/dvl")
        }
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
    hidden = HIDDEN[dialect] | {"/dvl/dvl_ping/ideal", "/dvl/dvl_ping/bias"}
    assert {topic: kind for topic, kind in types.items() if topic not in hidden} == DIALECTS[dialect] | WHOLE
    assert hidden <= set(types)
    found: dict[str, list[Any]] = {}
    with path.open("rb") as file:
        for _, channel, one, value in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            found.setdefault(channel.topic, []).append((one, value))
    always = {"/dvl/dvl/state"} & set(types)
    assert {len(found[topic]) for topic in set(types) - always} == {rows.size}
    assert all(len(found[topic]) == part.time.size for topic in always)
    validity = part["time_of_validity"][rows]
    expected = EPOCH * 10**9 + np.rint((validity + part.clock_error[rows]) * 1e9)
    stamps = [value.header.stamp.sec * 10**9 + value.header.stamp.nanosec for _, value in found["/dvl/dvl"]]
    np.testing.assert_allclose(stamps, expected, rtol=0.0, atol=1.0)
    times = [one.publish_time for one, _ in found["/dvl/dvl"]]
    np.testing.assert_allclose(times, EPOCH * 10**9 + np.rint(validity * 1e9), rtol=0.0, atol=1.0)
    assert [one.log_time for one, _ in found["/dvl/dvl"]] == part.true_stamp[rows].tolist()
    tracks = {"/dvl/dvl": "velocity"} | ({"/dvl/dvl_water": "water_velocity"} if "/dvl/dvl_water" in found else {})
    for topic, name in tracks.items():
        velocity = np.array([[v.velocity.x, v.velocity.y, v.velocity.z] for _, v in found[topic]])
        np.testing.assert_array_equal(velocity, part[name][rows])
        assert np.isfinite(velocity).any()
    if "/dvl/dvl_water" in found:
        along = np.array([value.beam_velocity for _, value in found["/dvl/dvl_water"]])
        np.testing.assert_array_equal(along, part["water_beam_velocity"][rows].astype(np.float32))
        assert np.isfinite(along).any()


@pytest.mark.requirement("DVU-6")
@pytest.mark.parametrize("named", [False, True])
def test_transforms_of_every_frame_that_messages_name(named: bool) -> None:
    """SciPy transforms velocity, beam points and cloud points to the same values from all frames."""
    at = Pose((1.5, 0.0, -0.5), from_rpy(math.pi, 0.0, 0.3))
    called = ("a", "b", "c", "d")
    names = (
        DvlMessageOptions("", "cloud", at, beam_frames=called) if named else DvlMessageOptions(beam_ids=(1, 2, 3, 4))
    )
    world = make_world(MessageDialect.DSROS)
    spec = make_spec(dialect=MessageDialect.DSROS, message_options=names)
    sensor = replace(world.sensors[0], spec=spec, frame="dvl_link", pose=Pose((0.3, 0.2, 0.1), from_rpy(0.4, 0.5, 0.6)))
    found = {frame.child: frame for frame in list_static_transforms(replace(world, sensors=(sensor,)))}
    beam_names = called if named else tuple(f"dvl_link/beam{i}" for i in (1, 2, 3, 4))
    assert {found[name].parent for name in ("dvl_link", sensor.name, *beam_names)} == {sensor.link}

    def transform_point(pose: Pose, point: Any) -> Any:
        w, x, y, z = pose.rotation
        return Rotation.from_quat([x, y, z, w]).apply(point) + pose.position

    for i, name in enumerate(beam_names):
        own = transform_point(sensor.pose, PLACES[i] + 2.0 * spec.beams.axes[i])
        assert transform_point(found[sensor.name].pose, PLACES[i] + 2.0 * spec.beams.axes[i]) == pytest.approx(
            own, rel=1e-12, abs=0.0
        )
        assert transform_point(
            found["dvl_link"].pose, rotate_vectors(PLACES[i] + 2.0 * spec.beams.axes[i])
        ) == pytest.approx(own, rel=1e-12, abs=0.0)
        assert transform_point(found[name].pose, (2.0, 0.0, 0.0)) == pytest.approx(own, rel=1e-12, abs=0.0)
    if named:
        points = decode_row(dvl.make_cloud_encoder(sensor, "measured"), FULL).points
        sent = decode_row(dvl.make_ranges_encoder(sensor, "measured"), FULL).ranges
        for i in range(4):
            cloud, end = points[2 * i + 1], sent[i].range.point
            one = transform_point(found["cloud"].pose, (cloud.x, cloud.y, cloud.z))
            assert one == pytest.approx(transform_point(found["dvl_link"].pose, (end.x, end.y, end.z)), abs=1e-5)


def test_duplicate_topic_gets_a_suffix() -> None:
    world = make_world(MessageDialect.DSROS)
    other = replace(world.sensors[0], name="robot::arm::other", topic="/dvl/ranges")
    topics = allocate_topics(replace(world, sensors=(*world.sensors, other)))
    names = [sensor.name for sensor in (world.sensors[0], other)]
    assert [topics.get_sensor_topic(name, "measured") for name in names] == ["/dvl/dvl", "/dvl/ranges"]
    found = [topics.get_sensor_topic(name, "measured", "//dvl/ranges") for name in names]
    assert found == ["/dvl/ranges_", "/dvl/ranges__"]
    assert topics.get_sensor_topic(names[0], "ideal", "//dvl/ranges") == "/dvl/ranges_/ideal"


@pytest.mark.requirement("REC-1:mcap")
def test_gazebo_messages_are_in_a_separate_recording(tmp_path: Path) -> None:
    path, world = tmp_path / "run.gz.mcap", make_world(MessageDialect.GZ)
    ns.record(world, path, 1.0, seed=5, epoch=EPOCH)
    part = ns.simulate(world, 1.0, seed=5, epoch=EPOCH)["robot::arm::dvl"]
    expected = messages.get_messages("dvl").encode_gz_messages(world.sensors[0], part, 0)
    with path.open("rb") as file:
        found = [(s, c, m) for s, c, m in make_reader(file).iter_messages() if c.topic == "/dvl/dvl"]
    schema, channel, _ = found[0]
    assert (schema.name, schema.encoding) == ("gz.msgs.DVLVelocityTracking", "protobuf")
    assert channel.message_encoding == "protobuf"
    assert [one.data for _, _, one in found] == expected
    assert [one.sequence for _, _, one in found] == list(range(len(expected)))
    rows = np.flatnonzero(part.emitted).repeat(2)
    assert [one.log_time for _, _, one in found] == part.true_stamp[rows].tolist()
    kinds = descriptor_pb2.FileDescriptorSet.FromString(schema.data)
    pool = descriptor_pool.DescriptorPool()
    for file_kind in kinds.file:
        pool.Add(file_kind)
    read: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
    for _, _, one in found:
        value = read.FromString(one.data)
        value.DiscardUnknownFields()  # the remaining fields are those of the definition
        assert value.SerializeToString(deterministic=True) == one.data
        assert value.beams[0].velocity.DESCRIPTOR.enum_types[0].name == "ReferenceType"
