"""Readings of a Doppler velocity log as the messages of its dialect.

| dialect | on the sensor's topic | beside it |
|---|---|---|
| `own`, `gz` | `marine_acoustic_msgs/msg/Dvl`, `gz.msgs.DVLVelocityTracking` | `_water`, where both are tracked |
| `uuv` | `uuv_sensor_ros_plugins_msgs/msg/DVL` | `_twist`, `/state` |
| `dsros` | `ds_sensor_msgs/msg/Dvl` | the ranges, `_cloud` |
| each | | all arrays, `_ping` |

All arrays are beside them as `navsense_msgs/msg/Dvl`, with all their bits. What stands below holds of the dialect's.

A header's stamp is the time of validity by the sensor's clock, `io_time` when the ping was told. Velocities, beams and
points are in the frame in which velocities are told. Beam velocities are positive when the sensor moves along the beam,
and are those of the track that gave the velocity. Ranges are slant ranges, from the transducer.

What is not known is NaN, and its (co)variance -1; truth and hidden errors have none, which is 0. In `uuv` an altitude
or a range that is not known is -1, as its definitions say. `velocity_mode` is 0 where there is no velocity. Courses are
rad from north, clockwise; in `dsros` degrees. Arrays of four beams hold the first four; missing ones are unknown, and
have no direction. What a series has no array of is unknown too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import ArrayLike

from navsense.kernels import kernel
from navsense.messages import generic
from navsense.messages._doppler import (
    BOTTOM,
    NONE,
    UNKNOWN,
    WATER,
    DvlMessageInfo,
    DvlSeries,
    count_known,
    nan_to_unknown,
    nan_to_zero,
)
from navsense.messages._doppler_reader import PING_SUFFIX
from navsense.messages._doppler_reader import SERIES_ARRAYS as SERIES_ARRAYS  # noqa: PLC0414 - one of what such a file has
from navsense.messages._doppler_reader import extract_arrays as extract_arrays  # noqa: PLC0414 - one of what such a file has
from navsense.messages.base import (
    NANOSECONDS_PER_SECOND,
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    require_spec,
)
from navsense.messages.cdr import CdrLayout, MessageLayout, build_layout, write_vectors
from navsense.messages.gz import (
    encode_doubles,
    encode_header,
    encode_int,
    encode_nested,
    encode_packed,
    list_emitted_rows,
)
from navsense.pose import Pose, conjugate, ensure_unit, rotate
from navsense.sensors.doppler import MessageDialect, Transducer
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.series import Reading
from navsense.typing import AnyArray, FloatArray, IntArray, Times
from navsense.world import MountedSensor

MARINE_TYPE = "marine_acoustic_msgs/msg/Dvl"
UUV_TYPE = "uuv_sensor_ros_plugins_msgs/msg/DVL"
TWIST_TYPE = "geometry_msgs/msg/TwistWithCovarianceStamped"
STATE_TYPE = "std_msgs/msg/Bool"
DS_TYPE = "ds_sensor_msgs/msg/Dvl"
RANGES_TYPE = "ds_sensor_msgs/msg/Ranges3D"
CLOUD_TYPE = "sensor_msgs/msg/PointCloud"
GZ_TYPE = "gz.msgs.DVLVelocityTracking"

PING_MESSAGE = (PING_SUFFIX, generic.format_type_name(Dvl.type))
"""What stands behind the topic of the message of all arrays, and its type."""

COORDINATES_INSTRUMENT = 1
"""Value of `ds_sensor_msgs/Dvl.coordinate_mode`: what velocities are told in turns with the instrument."""

RANGE_INDETERMINANT, RANGE_VALID = 0, 3
"""Values of `Range3D.range_validity`; 1 is below the minimum, 2 above the maximum."""

LOW_QUALITY, HIGH_QUALITY = 10.0, 250.0
"""Quality of a beam that is not valid and of one that is, as `libdsros_ros_dvl` has them."""

REFERENCE_SHIP = 2
"""Value of `DVLKinematicEstimate.ReferenceType` in Gazebo: a frame that turns with the sensor."""

MESSAGE_BEAMS = 4
"""Beams of the messages whose arrays are fixed."""


def time_of_validity(reading: Reading) -> Times:
    """Return the instants (n,) s that a reading is about: those of validity, its own where there is none."""
    validity = reading.arrays["time_of_validity"]
    return np.where(np.isfinite(validity), validity, reading.time)


def _take_four_beams(values: FloatArray, missing: float) -> FloatArray:
    """Return the numbers (n, k) of the first four beams (n, 4), `missing` where there are fewer."""
    if values.shape[1] >= MESSAGE_BEAMS:
        return values[:, :MESSAGE_BEAMS]
    found: FloatArray = np.full((values.shape[0], MESSAGE_BEAMS), missing)
    found[:, : values.shape[1]] = values
    return found


def _compute_quality(value: FloatArray) -> FloatArray:
    """Return the quality of beams that have a value or none."""
    return np.where(np.isnan(value), LOW_QUALITY, HIGH_QUALITY)


def _instrument_values(info: DvlMessageInfo) -> dict[str, ArrayLike]:
    """Return the type, and the unit vectors of the first four beams, by path."""
    directions = {f"beam_unit_vec.{i}": axis for i, axis in enumerate(info.axes[:MESSAGE_BEAMS])}
    return {"dvl_type": _is_phased(info.spec), **directions}


Fill = Callable[[AnyArray, IntArray, Mapping[str, AnyArray]], None]


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames of velocities, of the point cloud and of each beam, x along it, posed in the sensor's own.

    A beam without a name has that of the frame of velocities, `/beam` and its number behind it. `SinkError` for a sheet
    of another kind.
    """
    info = DvlMessageInfo(sensor, "reading")
    names, turned = info.spec.message_options, Pose(rotation=conjugate(ensure_unit(info.spec.reference)))
    found = {get_frame_id(sensor): turned}
    if names.pointcloud_frame:
        found.setdefault(names.pointcloud_frame, turned @ names.pointcloud_pose.inverse())
    for name, number, pose in zip(info.beam_frames, info.beam_ids, info.poses, strict=True):
        found.setdefault(name or f"{get_frame_id(sensor)}/beam{number}", turned @ pose)
    return found


def make_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how the readings, the truth or the hidden errors of a DVL become messages of its dialect.

    `SinkError` for a sheet of another kind.
    """
    makers = {MessageDialect.UUV: _make_uuv_layout, MessageDialect.DSROS: _make_ds_layout}
    return makers.get(require_spec(sensor, Dvl).dialect, _make_marine_layout)(sensor, series_kind)


def list_companions(
    sensor: MountedSensor, series_kind: SeriesKind
) -> Mapping[str, Callable[[MountedSensor, SeriesKind], MessageLayout]]:
    """Return the messages beside the sensor's own: its dialect's, and last, so that it holds, that of all arrays.

    `SinkError` for a sheet of another kind.
    """
    return {**_list_dialect_companions(require_spec(sensor, Dvl), series_kind), PING_SUFFIX: generic.make_layout}


def _list_dialect_companions(
    spec: Dvl, series_kind: SeriesKind
) -> Mapping[str, Callable[[MountedSensor, SeriesKind], MessageLayout]]:
    """Return the messages that a dialect has beside the sensor's own."""
    if spec.dialect is MessageDialect.UUV:
        state = {"/state": make_state_layout} if series_kind == "reading" else {}
        return {"_twist": make_twist_layout, **state}
    if spec.dialect is MessageDialect.DSROS:
        topic = "//" + spec.message_options.ranges_topic.strip("/") if spec.message_options.ranges_topic else "_ranges"
        return {topic: make_ranges_layout, "_cloud": make_cloud_layout} if series_kind != "bias" else {}
    return {"_water": make_water_layout} if _tracks_both(spec) and series_kind != "bias" else {}


def _tracks_both(spec: Dvl) -> bool:
    """Tell whether one ping gives two velocities."""
    return spec.bottom_mode is not TrackMode.NEVER and spec.water_mode is TrackMode.ALWAYS


def _water_track_delay(series: DvlSeries) -> IntArray:
    """Return how long (n,) ns after the echo from the bottom that from the layer left it; 0 where there is none."""
    later = series.get_column("water_time_of_validity") - series.get_column("time_of_validity")
    return np.rint(nan_to_zero(later) * NANOSECONDS_PER_SECOND).astype(np.int64)


def _is_phased(spec: Dvl) -> int:
    """Return 1 for a phased array and 0 for pistons, as `dvl_type` and `soundspeed_correction_type` have it."""
    return int(spec.transducer is Transducer.PHASED_ARRAY)


def _make_marine_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return the message of marine robots that reports the velocity."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["velocity_mode"], rows["num_good_beams"] = series.mode, series.good_beam_count
        _write_marine_velocity(rows, series, "velocity")
        if series.has("beam_velocity", "water_beam_velocity"):
            _write_marine_beams(rows, series.beam_velocity, series.beam_variance)
        if series.has("altitude"):
            rows["altitude"] = series.get_column("altitude")
        if series.has("course", "speed"):
            rows["course_gnd"], rows["speed_gnd"] = series.get_column("course"), series.get_column("speed")
        if series.has("beam_range"):
            rows["beam_ranges_valid"] = count_known(series.beam_range) > 0
            rows["range"], rows["range_covar"] = (
                _take_four_beams(series.beam_range, math.nan),
                _take_four_beams(series.range_variance, UNKNOWN),
            )

    return MessageLayout(MARINE_TYPE, _build_marine_cdr(info), fill)


def _build_marine_cdr(info: DvlMessageInfo) -> CdrLayout:
    """Return the layout of the message of marine robots with nothing in it known but the instrument."""
    values = ("velocity", "altitude", "course_gnd", "speed_gnd", "sound_speed", "range", "beam_velocity")
    variances = dict.fromkeys(("velocity_covar", "range_covar", "beam_velocity_covar"), UNKNOWN)
    unknown = {**dict.fromkeys(values, math.nan), **variances, "beam_quality": LOW_QUALITY}
    return build_layout(MARINE_TYPE, info.strings).with_values({**_instrument_values(info), **unknown})


def _write_marine_velocity(rows: AnyArray, series: DvlSeries, name: str) -> None:
    """Write one velocity (m/s) with its covariance, and the speed of sound."""
    if series.has(name):
        write_vectors(rows, "velocity", series.get_column(name, 3))
        rows["velocity_covar"] = series.covariance(name)
    if series.has("sound_speed"):
        rows["sound_speed"] = series.get_column("sound_speed")


def _write_marine_beams(rows: AnyArray, velocity: FloatArray, variance: FloatArray) -> None:
    """Write of the beams (n, k) velocities (m/s), their variances and qualities."""
    places = rows["beam_velocities_valid"], rows["beam_velocity"], rows["beam_velocity_covar"], rows["beam_quality"]
    _write_beams(velocity, variance, *places)


@kernel
def _write_beams(
    velocity: FloatArray, variance: FloatArray, valid: AnyArray, value: AnyArray, reported: AnyArray, quality: AnyArray
) -> None:
    """Write of the beams (n, k) whether one is good (n,), and of the first four velocity, variance and quality."""
    beams = velocity.shape[1]
    for i in range(velocity.shape[0]):
        valid[i] = 0
        for k in range(beams):
            if math.isfinite(velocity[i, k]):
                valid[i] = 1
        for k in range(min(beams, MESSAGE_BEAMS)):
            value[i, k] = velocity[i, k]
            reported[i, k] = variance[i, k]
            quality[i, k] = LOW_QUALITY if math.isnan(velocity[i, k]) else HIGH_QUALITY


def make_water_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how velocities through the water become messages, where the sensor's own are over the bottom."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        velocity, beams = series.get_column("water_velocity", 3), series.get_beam_column("water_beam_velocity")
        info.write_stamps(rows, stamp + _water_track_delay(series), "header.stamp")
        rows["velocity_mode"] = np.where(np.isnan(velocity[:, 0]), NONE, WATER)
        rows["num_good_beams"] = count_known(beams)
        _write_marine_velocity(rows, series, "water_velocity")
        _write_marine_beams(
            rows, beams, series.report_variance(lambda: series.get_beam_column("water_beam_deviation") ** 2, beams)
        )

    return MessageLayout(MARINE_TYPE, _build_marine_cdr(info), fill)


def _make_uuv_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return the message of the UUV Simulator; a beam's pose is stamped with the name of its own frame, as there."""
    info = DvlMessageInfo(sensor, series_kind)
    texts = {f"beams.{i}.pose.header.frame_id": name or get_frame_id(sensor) for i, name in enumerate(info.beam_frames)}
    fixed: dict[str, ArrayLike] = {}
    for i, pose in enumerate(info.poses):
        w, x, y, z = pose.rotation
        fixed |= {f"beams.{i}.pose.pose.position": pose.position, f"beams.{i}.pose.pose.orientation": (x, y, z, w)}
    made = build_layout(UUV_TYPE, {**info.strings, **texts}, {"beams": len(info.poses)}).with_values(fixed)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["velocity"], rows["velocity_covariance"] = series.get_column("velocity", 3), series.covariance()
        rows["altitude"] = nan_to_unknown(series.get_column("altitude"))
        for i in range(len(info.poses)):
            at = f"beams.{i}"
            info.write_stamps(rows, stamp, f"{at}.pose.header.stamp")
            rows[f"{at}.range"] = nan_to_unknown(series.beam_range[:, i])
            rows[f"{at}.range_covariance"] = series.range_variance[:, i]
            rows[f"{at}.velocity"], rows[f"{at}.velocity_covariance"] = (
                series.beam_velocity[:, i],
                series.beam_variance[:, i],
            )

    return MessageLayout(UUV_TYPE, made, fill)


def make_twist_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how velocities become twists: nothing is known of the turning, which is 0 with variances of -1."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["twist.twist.linear"] = series.get_column("velocity", 3)
        whole = np.zeros((stamp.size, 6, 6))
        whole[:, :3, :3] = series.covariance().reshape(-1, 3, 3)
        whole[:, (3, 4, 5), (3, 4, 5)] = UNKNOWN
        rows["twist.covariance"] = whole.reshape(-1, 36)

    return MessageLayout(TWIST_TYPE, build_layout(TWIST_TYPE, info.strings), fill)


def make_state_layout(sensor: MountedSensor, _series_kind: SeriesKind) -> MessageLayout:
    """Return the message of whether the sensor is on, which one that is off tells too."""

    def fill(rows: AnyArray, _stamp: IntArray, _arrays: Mapping[str, AnyArray]) -> None:
        rows["data"] = sensor.is_on

    return MessageLayout(STATE_TYPE, build_layout(STATE_TYPE), fill, constant=True)


def _write_ds_header(rows: AnyArray, info: DvlMessageInfo, stamp: IntArray, series: DvlSeries) -> None:
    """Write both headers: the stamp, and when the ping was told."""
    info.write_stamps(rows, stamp, "header.stamp")
    info.write_stamps(rows, stamp + series.age, "ds_header.io_time")


def _source_uuid(info: DvlMessageInfo) -> dict[str, ArrayLike]:
    """Return the name of the sensor that is a number, by path."""
    return {"ds_header.source_uuid": list(uuid5(NAMESPACE_URL, info.sensor.name).bytes)}


def _make_ds_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return the message of `libdsros_ros_dvl`."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        _write_ds_header(rows, info, stamp, series)
        rows["dvl_time"] = stamp / NANOSECONDS_PER_SECOND
        rows["velocity"], rows["velocity_covar"] = series.get_column("velocity", 3), series.covariance()
        rows["altitude"] = series.get_column("altitude")
        rows["course_gnd"], rows["speed_gnd"] = np.degrees(series.get_column("course")), series.get_column("speed")
        rows["num_good_beams"], rows["speed_sound"] = series.good_beam_count, series.get_column("sound_speed")
        rows["range"], rows["range_covar"] = (
            _take_four_beams(series.beam_range, math.nan),
            _take_four_beams(series.range_variance, UNKNOWN),
        )
        rows["beam_quality"] = _take_four_beams(_compute_quality(series.beam_velocity), LOW_QUALITY)
        rows["raw_velocity"] = _take_four_beams(series.beam_velocity, math.nan)
        rows["raw_velocity_covar"] = _take_four_beams(series.beam_variance, UNKNOWN)
        rows["velocity_mode"] = series.mode

    fixed = {**_instrument_values(info), **_source_uuid(info), "coordinate_mode": COORDINATES_INSTRUMENT}
    return MessageLayout(DS_TYPE, build_layout(DS_TYPE, info.strings).with_values(fixed), fill)


def _compute_range_validity(series: DvlSeries) -> FloatArray:
    """Return the validity (n, k) of ranges; without this array, ranges are valid or indeterminate."""
    if not series.has("range_validity"):
        return np.where(np.isnan(series.beam_range), float(RANGE_INDETERMINANT), float(RANGE_VALID))
    return nan_to_zero(series.get_beam_column("range_validity"))


def make_ranges_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how ranges become the places where the beams end."""
    info = DvlMessageInfo(sensor, series_kind)
    frame, count = get_frame_id(sensor), len(info.poses)
    texts = {f"ranges.{i}.range.header.frame_id": frame for i in range(count)}

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        _write_ds_header(rows, info, stamp, series)
        quality, points, validity = (
            _compute_quality(series.beam_range),
            series.beam_ends,
            _compute_range_validity(series),
        )
        for i in range(count):
            info.write_stamps(rows, stamp, f"ranges.{i}.range.header.stamp")
            rows[f"ranges.{i}.range.point"] = points[:, i]
            rows[f"ranges.{i}.range_quality"] = quality[:, i]
            rows[f"ranges.{i}.range_validity"] = validity[:, i]

    made = build_layout(RANGES_TYPE, {**info.strings, **texts}, {"ranges": count})
    fixed = {**_source_uuid(info), "soundspeed_correction_type": _is_phased(info.spec)}
    return MessageLayout(RANGES_TYPE, made.with_values(fixed), fill)


def make_cloud_layout(sensor: MountedSensor, series_kind: SeriesKind) -> MessageLayout:
    """Return how ranges become points at equal steps along the beams, from the transducers to where they end."""
    info = DvlMessageInfo(sensor, series_kind)
    names, count = info.spec.message_options, len(info.poses)
    texts = {"header.frame_id": names.pointcloud_frame} if names.pointcloud_frame else info.strings
    steps = [j / (names.cloud_points - 1) if names.cloud_points > 1 else 1.0 for j in range(names.cloud_points)]
    places = [names.pointcloud_pose @ pose for pose in info.poses]
    turn = names.pointcloud_pose.rotation
    axes = [rotate(turn, (x, y, z)) for x, y, z in info.axes.tolist()]

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = info.make_series(arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        for i, (place, axis) in enumerate(zip(places, axes, strict=True)):
            for j, step in enumerate(steps):
                at = f"points.{i * len(steps) + j}"
                for letter, start, along in zip("xyz", place.position, axis, strict=True):
                    rows[f"{at}.{letter}"] = start + step * series.beam_range[:, i] * along

    return MessageLayout(CLOUD_TYPE, build_layout(CLOUD_TYPE, texts, {"points": count * len(steps)}), fill)


class GzTrack(NamedTuple):
    """One velocity of each row as Gazebo tells it: what it is against, velocities and covariances of it and its beams.

    Lists, row by row and then beam by beam; a beam without a velocity is not locked.
    """

    target: int
    velocity: list[list[float]]
    covariance: list[list[float]]
    locked: list[list[bool]]
    beam_velocity: list[list[list[float]]]
    beam_covariance: list[list[list[float]]]
    range: list[list[float]]
    range_variance: list[list[float]]


def _make_bottom_track(info: DvlMessageInfo, series: DvlSeries) -> GzTrack:
    """Return the velocity over the bottom."""
    velocity = np.where((series.mode == WATER)[:, None], math.nan, series.get_column("velocity", 3))
    beams = _list_beams(info, series, "beam")
    return GzTrack(BOTTOM, velocity.tolist(), series.covariance().tolist(), *beams, *_list_ranges(series))


def _make_water_track(info: DvlMessageInfo, series: DvlSeries, name: str) -> GzTrack:
    """Return a velocity through the water; a beam is as long as to the middle of the layer, within a uniform share."""
    layer = info.spec.layer
    beams = _list_beams(info, series, "water_beam")
    near, far = layer.near if layer is not None else math.nan, series.get_column("water_far")[:, None]
    slant = np.array(info.spec.beams.slant_cosines)
    told = series.get_column(name, 3).tolist(), series.covariance(name).tolist()
    middle, spread = 0.5 * (near + far) / slant, ((far - near) / slant) ** 2 / 12.0
    return GzTrack(WATER, *told, *beams, middle.tolist(), spread.tolist())


def _list_ranges(series: DvlSeries) -> tuple[list[list[float]], list[list[float]]]:
    """Return the ranges and their variances."""
    return series.beam_range.tolist(), series.range_variance.tolist()


def _list_beams(info: DvlMessageInfo, series: DvlSeries, name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return of the beams of one track which are locked, their velocities as vectors and the covariances of these."""
    speed, deviation = series.get_beam_column(f"{name}_velocity"), series.get_beam_column(f"{name}_deviation")
    square = info.axes[:, :, None] * info.axes[:, None, :]
    covariance = series.report_variance(lambda: deviation**2, speed)[:, :, None] * square.reshape(-1, 9)
    return np.isfinite(speed).tolist(), (speed[:, :, None] * info.axes).tolist(), covariance.tolist()


def _list_track_selectors(info: DvlMessageInfo, series: DvlSeries) -> list[Callable[[int], GzTrack]]:
    """Return what chooses the track of a row, once for each message of a row."""
    bottom = _make_bottom_track(info, series)
    if _tracks_both(info.spec):
        water = _make_water_track(info, series, "water_velocity")
        return [lambda _: bottom, lambda _: water]
    water = _make_water_track(info, series, "velocity")
    never = info.spec.bottom_mode is TrackMode.NEVER
    return [lambda row: water if never or series.mode[row] == WATER else bottom]


def _encode_kinematic(velocity: Sequence[float], covariance: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s that turns with the sensor, and its covariance (9,)."""
    return encode_int(1, REFERENCE_SHIP) + encode_nested(2, encode_doubles(2, velocity)) + encode_packed(3, covariance)


def _encode_beam(number: int, track: GzTrack, row: int, beam: int) -> bytes:
    """Return `DVLBeamState` of one beam: nothing but its number where it has no lock."""
    out = encode_int(1, number)
    if not track.locked[row][beam]:
        return out
    out += encode_nested(2, _encode_kinematic(track.beam_velocity[row][beam], track.beam_covariance[row][beam]))
    out += encode_nested(3, encode_doubles(1, (track.range[row][beam], track.range_variance[row][beam])))
    return out + encode_int(6, 1)


def encode_gz_message(info: DvlMessageInfo, stamp: int, sequence: int, track: GzTrack, row: int) -> bytes:
    """Return `gz.msgs.DVLVelocityTracking` of a stamp (ns) and a row of a track; its target is where the nearest is."""
    out = encode_nested(1, encode_header(stamp, get_frame_id(info.sensor), sequence)) + encode_int(
        2, 1 + _is_phased(info.spec)
    )
    ends = zip(track.range[row], track.range_variance[row], track.locked[row], strict=True)
    found = [(distance, variance) for distance, variance, locked in ends if locked]
    if found:
        out += encode_nested(3, encode_int(1, track.target) + encode_nested(2, encode_doubles(1, min(found))))
    if not math.isnan(track.velocity[row][0]):
        out += encode_nested(4, _encode_kinematic(track.velocity[row], track.covariance[row]))
    beams = (_encode_beam(number, track, row, beam) for beam, number in enumerate(info.beam_ids))
    return out + b"".join(encode_nested(5, beam) for beam in beams)


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` of a reading, numbered from `sequence` on; dropouts have none.

    Where the water is always tracked beside the bottom, each row gives two messages, the bottom's first.
    """
    info, rows = DvlMessageInfo(sensor, "reading"), list_emitted_rows(reading)
    series = info.make_series(reading.arrays, reading.time.size)
    shown = compute_stamps(reading, get_clock_name(sensor), time_of_validity(reading))
    when = {BOTTOM: shown.tolist(), WATER: (shown + _water_track_delay(series)).tolist()}
    tracks = _list_track_selectors(info, series)
    each = [(row, track(row)) for row in rows for track in tracks]
    return [
        encode_gz_message(info, when[track.target][row], sequence + i, track, row)
        for i, (row, track) in enumerate(each)
    ]
