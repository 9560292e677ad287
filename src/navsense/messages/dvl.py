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

from navsense.compiled import kernel
from navsense.messages import generic
from navsense.messages._doppler import BOTTOM, NONE, UNKNOWN, WATER, Instrument, Series, heard, known, or_zero
from navsense.messages._doppler_read import HIDDEN as HIDDEN  # noqa: PLC0414 - one of what such a file has
from navsense.messages._doppler_read import PING
from navsense.messages._doppler_read import arrays as arrays  # noqa: PLC0414 - one of what such a file has
from navsense.messages.base import SECOND, Part, clock_of, frame_of, sheet_of, stamps
from navsense.messages.cdr import Layout, Message, layout, set_vector
from navsense.messages.gz import doubles, header, integer, nested, packed, rows_of
from navsense.pose import Pose, conjugate, rotate, unit
from navsense.sensors.doppler import Dialect
from navsense.sensors.dvl import Dvl, Mode, Transducer
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

WHOLE = (PING, generic.type_name(Dvl.type))
"""What stands behind the topic of the message of all arrays, and its type."""

INSTRUMENT = 1
"""Value of `ds_sensor_msgs/Dvl.coordinate_mode`: what velocities are told in turns with the instrument."""

INDETERMINANT, VALID = 0, 3
"""Values of `Range3D.range_validity`; 1 is below the minimum, 2 above the maximum."""

LITTLE, MUCH = 10.0, 250.0
"""Quality of a beam that is not valid and of one that is, as `libdsros_ros_dvl` has them."""

SHIP = 2
"""Value of `DVLKinematicEstimate.ReferenceType` in Gazebo: a frame that turns with the sensor."""

FOUR = 4
"""Beams of the messages whose arrays are fixed."""


def about(reading: Reading) -> Times:
    """Return the instants (n,) s that a reading is about: those of validity, its own where there is none."""
    validity = reading.arrays["time_of_validity"]
    return np.where(np.isfinite(validity), validity, reading.time)


def _first(values: FloatArray, missing: float) -> FloatArray:
    """Return the numbers (n, k) of the first four beams (n, 4), `missing` where there are fewer."""
    if values.shape[1] >= FOUR:
        return values[:, :FOUR]
    found: FloatArray = np.full((values.shape[0], FOUR), missing)
    found[:, : values.shape[1]] = values
    return found


def _quality(value: FloatArray) -> FloatArray:
    """Return the quality of beams that have a value or none."""
    return np.where(np.isnan(value), LITTLE, MUCH)


def _instrument(own: Instrument) -> dict[str, ArrayLike]:
    """Return the type, and the unit vectors of the first four beams, by path."""
    directions = {f"beam_unit_vec.{i}": axis for i, axis in enumerate(own.axes[:FOUR])}
    return {"dvl_type": _is_phased(own.sheet), **directions}


Fill = Callable[[AnyArray, IntArray, Mapping[str, AnyArray]], None]


def frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frames of velocities, of the point cloud and of each beam, x along it, posed in the sensor's own.

    A beam without a name has that of the frame of velocities, `/beam` and its number behind it. `SinkError` for a sheet
    of another kind.
    """
    own = Instrument(sensor, "reading")
    names, turned = own.sheet.names, Pose(rotation=conjugate(unit(own.sheet.reference)))
    found = {frame_of(sensor): turned}
    if names.pointcloud_frame:
        found.setdefault(names.pointcloud_frame, turned @ names.pointcloud_pose.inverse())
    for name, number, pose in zip(own.called, own.numbers, own.poses, strict=True):
        found.setdefault(name or f"{frame_of(sensor)}/beam{number}", turned @ pose)
    return found


def message(sensor: MountedSensor, part: Part) -> Message:
    """Return how the readings, the truth or the hidden errors of a DVL become messages of its dialect.

    `SinkError` for a sheet of another kind.
    """
    makers = {Dialect.UUV: _uuv, Dialect.DSROS: _ds}
    return makers.get(sheet_of(sensor, Dvl).dialect, _marine)(sensor, part)


def companions(sensor: MountedSensor, part: Part) -> Mapping[str, Callable[[MountedSensor, Part], Message]]:
    """Return the messages beside the sensor's own: its dialect's, and last, so that it holds, that of all arrays.

    `SinkError` for a sheet of another kind.
    """
    return {**_of_dialect(sheet_of(sensor, Dvl), part), PING: generic.message}


def _of_dialect(sheet: Dvl, part: Part) -> Mapping[str, Callable[[MountedSensor, Part], Message]]:
    """Return the messages that a dialect has beside the sensor's own."""
    if sheet.dialect is Dialect.UUV:
        state = {"/state": state_message} if part == "reading" else {}
        return {"_twist": twist_message, **state}
    if sheet.dialect is Dialect.DSROS:
        topic = "//" + sheet.names.ranges_topic.strip("/") if sheet.names.ranges_topic else "_ranges"
        return {topic: ranges_message, "_cloud": cloud_message} if part != "bias" else {}
    return {"_water": water_message} if _is_double(sheet) and part != "bias" else {}


def _is_double(sheet: Dvl) -> bool:
    """Tell whether one ping gives two velocities."""
    return sheet.bottom_mode is not Mode.NEVER and sheet.water_mode is Mode.ALWAYS


def _later(got: Series) -> IntArray:
    """Return how long (n,) ns after the echo from the bottom that from the layer left it; 0 where there is none."""
    later = got.column("water_time_of_validity") - got.column("time_of_validity")
    return np.rint(or_zero(later) * SECOND).astype(np.int64)


def _is_phased(sheet: Dvl) -> int:
    """Return 1 for a phased array and 0 for pistons, as `dvl_type` and `soundspeed_correction_type` have it."""
    return int(sheet.transducer is Transducer.PHASED_ARRAY)


def _marine(sensor: MountedSensor, part: Part) -> Message:
    """Return the message of marine robots that reports the velocity."""
    own = Instrument(sensor, part)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        own.stamp(rows, stamp, "header.stamp")
        rows["velocity_mode"], rows["num_good_beams"] = got.mode, got.good
        _set_marine_velocity(rows, got, "velocity")
        if got.has("beam_velocity", "water_beam_velocity"):
            _set_marine_beams(rows, got.beam_velocity, got.beam_variance)
        if got.has("altitude"):
            rows["altitude"] = got.column("altitude")
        if got.has("course", "speed"):
            rows["course_gnd"], rows["speed_gnd"] = got.column("course"), got.column("speed")
        if got.has("beam_range"):
            rows["beam_ranges_valid"] = heard(got.beam_range) > 0
            rows["range"], rows["range_covar"] = _first(got.beam_range, math.nan), _first(got.range_variance, UNKNOWN)

    return Message(MARINE_TYPE, _marine_layout(own), fill)


def _marine_layout(own: Instrument) -> Layout:
    """Return the layout of the message of marine robots with nothing in it known but the instrument."""
    values = ("velocity", "altitude", "course_gnd", "speed_gnd", "sound_speed", "range", "beam_velocity")
    variances = dict.fromkeys(("velocity_covar", "range_covar", "beam_velocity_covar"), UNKNOWN)
    unknown = {**dict.fromkeys(values, math.nan), **variances, "beam_quality": LITTLE}
    return layout(MARINE_TYPE, own.texts).holding({**_instrument(own), **unknown})


def _set_marine_velocity(rows: AnyArray, got: Series, name: str) -> None:
    """Write one velocity (m/s) with its covariance, and the speed of sound."""
    if got.has(name):
        set_vector(rows, "velocity", got.column(name, 3))
        rows["velocity_covar"] = got.covariance(name)
    if got.has("sound_speed"):
        rows["sound_speed"] = got.column("sound_speed")


def _set_marine_beams(rows: AnyArray, velocity: FloatArray, variance: FloatArray) -> None:
    """Write of the beams (n, k) velocities (m/s), their variances and qualities."""
    places = rows["beam_velocities_valid"], rows["beam_velocity"], rows["beam_velocity_covar"], rows["beam_quality"]
    _put_beams(velocity, variance, *places)


@kernel
def _put_beams(
    velocity: FloatArray, variance: FloatArray, valid: AnyArray, value: AnyArray, stated: AnyArray, quality: AnyArray
) -> None:
    """Write of the beams (n, k) whether one is good (n,), and of the first four velocity, variance and quality."""
    beams = velocity.shape[1]
    for i in range(velocity.shape[0]):
        valid[i] = 0
        for k in range(beams):
            if math.isfinite(velocity[i, k]):
                valid[i] = 1
        for k in range(min(beams, FOUR)):
            value[i, k] = velocity[i, k]
            stated[i, k] = variance[i, k]
            quality[i, k] = LITTLE if math.isnan(velocity[i, k]) else MUCH


def water_message(sensor: MountedSensor, part: Part) -> Message:
    """Return how velocities through the water become messages, where the sensor's own are over the bottom."""
    own = Instrument(sensor, part)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        velocity, beams = got.column("water_velocity", 3), got.beams("water_beam_velocity")
        own.stamp(rows, stamp + _later(got), "header.stamp")
        rows["velocity_mode"] = np.where(np.isnan(velocity[:, 0]), NONE, WATER)
        rows["num_good_beams"] = heard(beams)
        _set_marine_velocity(rows, got, "water_velocity")
        _set_marine_beams(rows, beams, got.stated(lambda: got.beams("water_beam_deviation") ** 2, beams))

    return Message(MARINE_TYPE, _marine_layout(own), fill)


def _uuv(sensor: MountedSensor, part: Part) -> Message:
    """Return the message of the UUV Simulator; a beam's pose is stamped with the name of its own frame, as there."""
    own = Instrument(sensor, part)
    texts = {f"beams.{i}.pose.header.frame_id": name or frame_of(sensor) for i, name in enumerate(own.called)}
    fixed: dict[str, ArrayLike] = {}
    for i, pose in enumerate(own.poses):
        w, x, y, z = pose.rotation
        fixed |= {f"beams.{i}.pose.pose.position": pose.position, f"beams.{i}.pose.pose.orientation": (x, y, z, w)}
    made = layout(UUV_TYPE, {**own.texts, **texts}, {"beams": len(own.poses)}).holding(fixed)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        own.stamp(rows, stamp, "header.stamp")
        rows["velocity"], rows["velocity_covariance"] = got.column("velocity", 3), got.covariance()
        rows["altitude"] = known(got.column("altitude"))
        for i in range(len(own.poses)):
            at = f"beams.{i}"
            own.stamp(rows, stamp, f"{at}.pose.header.stamp")
            rows[f"{at}.range"] = known(got.beam_range[:, i])
            rows[f"{at}.range_covariance"] = got.range_variance[:, i]
            rows[f"{at}.velocity"], rows[f"{at}.velocity_covariance"] = got.beam_velocity[:, i], got.beam_variance[:, i]

    return Message(UUV_TYPE, made, fill)


def twist_message(sensor: MountedSensor, part: Part) -> Message:
    """Return how velocities become twists: nothing is known of the turning, which is 0 with variances of -1."""
    own = Instrument(sensor, part)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        own.stamp(rows, stamp, "header.stamp")
        rows["twist.twist.linear"] = got.column("velocity", 3)
        whole = np.zeros((stamp.size, 6, 6))
        whole[:, :3, :3] = got.covariance().reshape(-1, 3, 3)
        whole[:, (3, 4, 5), (3, 4, 5)] = UNKNOWN
        rows["twist.covariance"] = whole.reshape(-1, 36)

    return Message(TWIST_TYPE, layout(TWIST_TYPE, own.texts), fill)


def state_message(sensor: MountedSensor, _part: Part) -> Message:
    """Return the message of whether the sensor is on, which one that is off tells too."""

    def fill(rows: AnyArray, _stamp: IntArray, _arrays: Mapping[str, AnyArray]) -> None:
        rows["data"] = sensor.is_on

    return Message(STATE_TYPE, layout(STATE_TYPE), fill, constant=True)


def _set_ds_header(rows: AnyArray, own: Instrument, stamp: IntArray, got: Series) -> None:
    """Write both headers: the stamp, and when the ping was told."""
    own.stamp(rows, stamp, "header.stamp")
    own.stamp(rows, stamp + got.age, "ds_header.io_time")


def _ds_source(own: Instrument) -> dict[str, ArrayLike]:
    """Return the name of the sensor that is a number, by path."""
    return {"ds_header.source_uuid": list(uuid5(NAMESPACE_URL, own.sensor.name).bytes)}


def _ds(sensor: MountedSensor, part: Part) -> Message:
    """Return the message of `libdsros_ros_dvl`."""
    own = Instrument(sensor, part)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        _set_ds_header(rows, own, stamp, got)
        rows["dvl_time"] = stamp / SECOND
        rows["velocity"], rows["velocity_covar"] = got.column("velocity", 3), got.covariance()
        rows["altitude"] = got.column("altitude")
        rows["course_gnd"], rows["speed_gnd"] = np.degrees(got.column("course")), got.column("speed")
        rows["num_good_beams"], rows["speed_sound"] = got.good, got.column("sound_speed")
        rows["range"], rows["range_covar"] = _first(got.beam_range, math.nan), _first(got.range_variance, UNKNOWN)
        rows["beam_quality"] = _first(_quality(got.beam_velocity), LITTLE)
        rows["raw_velocity"] = _first(got.beam_velocity, math.nan)
        rows["raw_velocity_covar"] = _first(got.beam_variance, UNKNOWN)
        rows["velocity_mode"] = got.mode

    fixed = {**_instrument(own), **_ds_source(own), "coordinate_mode": INSTRUMENT}
    return Message(DS_TYPE, layout(DS_TYPE, own.texts).holding(fixed), fill)


def _range_validity(got: Series) -> FloatArray:
    """Return the validity (n, k) of ranges; without this array, ranges are valid or indeterminate."""
    if not got.has("range_validity"):
        return np.where(np.isnan(got.beam_range), float(INDETERMINANT), float(VALID))
    return or_zero(got.beams("range_validity"))


def ranges_message(sensor: MountedSensor, part: Part) -> Message:
    """Return how ranges become the places where the beams end."""
    own = Instrument(sensor, part)
    frame, count = frame_of(sensor), len(own.poses)
    texts = {f"ranges.{i}.range.header.frame_id": frame for i in range(count)}

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        _set_ds_header(rows, own, stamp, got)
        quality, points, validity = _quality(got.beam_range), got.points, _range_validity(got)
        for i in range(count):
            own.stamp(rows, stamp, f"ranges.{i}.range.header.stamp")
            rows[f"ranges.{i}.range.point"] = points[:, i]
            rows[f"ranges.{i}.range_quality"] = quality[:, i]
            rows[f"ranges.{i}.range_validity"] = validity[:, i]

    made = layout(RANGES_TYPE, {**own.texts, **texts}, {"ranges": count})
    fixed = {**_ds_source(own), "soundspeed_correction_type": _is_phased(own.sheet)}
    return Message(RANGES_TYPE, made.holding(fixed), fill)


def cloud_message(sensor: MountedSensor, part: Part) -> Message:
    """Return how ranges become points at equal steps along the beams, from the transducers to where they end."""
    own = Instrument(sensor, part)
    names, count = own.sheet.names, len(own.poses)
    texts = {"header.frame_id": names.pointcloud_frame} if names.pointcloud_frame else own.texts
    steps = [j / (names.cloud_points - 1) if names.cloud_points > 1 else 1.0 for j in range(names.cloud_points)]
    places = [names.pointcloud_pose @ pose for pose in own.poses]
    turn = names.pointcloud_pose.rotation
    axes = [rotate(turn, (x, y, z)) for x, y, z in own.axes.tolist()]

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        got = own.series(arrays, stamp.size)
        own.stamp(rows, stamp, "header.stamp")
        for i, (place, axis) in enumerate(zip(places, axes, strict=True)):
            for j, step in enumerate(steps):
                at = f"points.{i * len(steps) + j}"
                for letter, start, along in zip("xyz", place.position, axis, strict=True):
                    rows[f"{at}.{letter}"] = start + step * got.beam_range[:, i] * along

    return Message(CLOUD_TYPE, layout(CLOUD_TYPE, texts, {"points": count * len(steps)}), fill)


class Tracked(NamedTuple):
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


def _bottom_track(own: Instrument, got: Series) -> Tracked:
    """Return the velocity over the bottom."""
    velocity = np.where((got.mode == WATER)[:, None], math.nan, got.column("velocity", 3))
    beams = _along(own, got, "beam")
    return Tracked(BOTTOM, velocity.tolist(), got.covariance().tolist(), *beams, *_listed(got))


def _water_track(own: Instrument, got: Series, name: str) -> Tracked:
    """Return a velocity through the water; a beam is as long as to the middle of the layer, within a uniform share."""
    layer = own.sheet.layer
    beams = _along(own, got, "water_beam")
    near, far = layer.near if layer is not None else math.nan, got.column("water_far")[:, None]
    slant = np.array(own.sheet.beams.slants)
    told = got.column(name, 3).tolist(), got.covariance(name).tolist()
    middle, spread = 0.5 * (near + far) / slant, ((far - near) / slant) ** 2 / 12.0
    return Tracked(WATER, *told, *beams, middle.tolist(), spread.tolist())


def _listed(got: Series) -> tuple[list[list[float]], list[list[float]]]:
    """Return the ranges and their variances."""
    return got.beam_range.tolist(), got.range_variance.tolist()


def _along(own: Instrument, got: Series, name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return of the beams of one track which are locked, their velocities as vectors and the covariances of these."""
    speed, deviation = got.beams(f"{name}_velocity"), got.beams(f"{name}_deviation")
    square = own.axes[:, :, None] * own.axes[:, None, :]
    covariance = got.stated(lambda: deviation**2, speed)[:, :, None] * square.reshape(-1, 9)
    return np.isfinite(speed).tolist(), (speed[:, :, None] * own.axes).tolist(), covariance.tolist()


def _tracks(own: Instrument, got: Series) -> list[Callable[[int], Tracked]]:
    """Return what chooses the track of a row, once for each message of a row."""
    bottom = _bottom_track(own, got)
    if _is_double(own.sheet):
        water = _water_track(own, got, "water_velocity")
        return [lambda _: bottom, lambda _: water]
    water = _water_track(own, got, "velocity")
    never = own.sheet.bottom_mode is Mode.NEVER
    return [lambda row: water if never or got.mode[row] == WATER else bottom]


def _gz_kinematic(velocity: Sequence[float], covariance: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s that turns with the sensor, and its covariance (9,)."""
    return integer(1, SHIP) + nested(2, doubles(2, velocity)) + packed(3, covariance)


def _gz_beam(number: int, track: Tracked, row: int, beam: int) -> bytes:
    """Return `DVLBeamState` of one beam: nothing but its number where it has no lock."""
    out = integer(1, number)
    if not track.locked[row][beam]:
        return out
    out += nested(2, _gz_kinematic(track.beam_velocity[row][beam], track.beam_covariance[row][beam]))
    out += nested(3, doubles(1, (track.range[row][beam], track.range_variance[row][beam])))
    return out + integer(6, 1)


def gz_message(own: Instrument, stamp: int, sequence: int, track: Tracked, row: int) -> bytes:
    """Return `gz.msgs.DVLVelocityTracking` of a stamp (ns) and a row of a track; its target is where the nearest is."""
    out = nested(1, header(stamp, frame_of(own.sensor), sequence)) + integer(2, 1 + _is_phased(own.sheet))
    ends = zip(track.range[row], track.range_variance[row], track.locked[row], strict=True)
    found = [(distance, variance) for distance, variance, locked in ends if locked]
    if found:
        out += nested(3, integer(1, track.target) + nested(2, doubles(1, min(found))))
    if not math.isnan(track.velocity[row][0]):
        out += nested(4, _gz_kinematic(track.velocity[row], track.covariance[row]))
    beams = (_gz_beam(number, track, row, beam) for beam, number in enumerate(own.numbers))
    return out + b"".join(nested(5, beam) for beam in beams)


def gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` of a reading, numbered from `sequence` on; dropouts have none.

    Where the water is always tracked beside the bottom, each row gives two messages, the bottom's first.
    """
    own, rows = Instrument(sensor, "reading"), rows_of(reading)
    got = own.series(reading.arrays, reading.time.size)
    shown = stamps(reading, clock_of(sensor), about(reading))
    when = {BOTTOM: shown.tolist(), WATER: (shown + _later(got)).tolist()}
    tracks = _tracks(own, got)
    each = [(row, track(row)) for row in rows for track in tracks]
    return [gz_message(own, when[track.target][row], sequence + i, track, row) for i, (row, track) in enumerate(each)]
