"""DVL readings as the messages of several dialects, and back.

| dialect | on the sensor's topic | companion topics |
|---|---|---|
| `own`, `gz` in ROS messages | `marine_acoustic_msgs/msg/Dvl` | `_water`, see below |
| `own`, `gz` in Gazebo messages | `gz.msgs.DVLVelocityTracking` | |
| `uuv` | `uuv_sensor_ros_plugins_msgs/msg/DVL` | `_twist`, `/state` |
| `dsros` | `ds_sensor_msgs/msg/Dvl` | the ranges, `_cloud` |
| all, with `visualize` | | `/markers`: the beams, see `markers` |
| all | | `_ping`: all arrays as `navsense_msgs/msg/Dvl` with full precision |

Messages of the dialects:

- The header stamp is the time of validity on the sensor's clock; `io_time` is the output time, without the latency.
- `_water` has the water track if the bottom track is on and the water track is `always`.
- Velocities, beams and points are in the output frame. Courses are in rad from north, clockwise; in `dsros` in degrees.
- The comments in `marine_acoustic_msgs/Dvl` define the course as atan2(y, x) of the velocity. Here it is over ground.
  They define the altitude as the mean along z of the DVL. Here it is vertical. Both use the attitude of the sensor.
- A beam velocity is positive when the sensor moves along the beam. It belongs to the track of the velocity, which
  `velocity_mode` names. Ranges are slant ranges from the transducer.
- Unknown values are NaN, with a variance or covariance of -1. In `uuv`, unknown altitudes and ranges are -1, by its
  definitions. Ideal values and biases have variances of 0. `velocity_mode` is 0 without a velocity.
- Arrays of four beams hold the first four; missing beams are unknown and have no direction.

Reading: `_ping` holds all arrays and has priority. Without it, as in recordings of other programs, the messages of the
dialect are read. They lack the error velocity, the long-term velocity and the beam flags. They have the beams of one
track only, and at most four.

`navsense.messages` finds `MESSAGES` at the end of this module; `recordings.message_builder` calls
`messages.make_encoder`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.kernels import strided_kernel
from navsense.core.pose import WORLD_NED, Pose, conjugate, ensure_unit, multiply, rotate
from navsense.core.readings import Reading
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Times
from navsense.messages import generic
from navsense.messages.base import (
    AGE,
    IS_ON,
    NANOSECONDS_PER_SECOND,
    SeriesKind,
    compute_stamps,
    get_clock_name,
    get_frame_id,
    require_spec,
)
from navsense.messages.cdr import CdrLayout, EncoderMaker, MessageEncoder, build_layout, write_stamps, write_vectors
from navsense.messages.gz import (
    encode_doubles,
    encode_header,
    encode_int,
    encode_nested,
    encode_packed,
    list_emitted_rows,
)
from navsense.messages.markers import INVALID, VALID, WATER, make_beam_encoder, select_lengths
from navsense.messages.sensor_messages import SensorMessages
from navsense.sensors.adcp import Adcp
from navsense.sensors.base import OpaqueSensor
from navsense.sensors.doppler import IDEAL_OUTPUTS, MIN_BEAMS, MessageDialect, Transducer
from navsense.sensors.doppler.echoes import SOUND_SPEED
from navsense.sensors.doppler.specification import BOTTOM_TRACK, IN_RANGE, NO_ECHO, NO_TRACK, TOO_LOW, WATER_TRACK
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.world import MountedSensor

MARINE_TYPE = "marine_acoustic_msgs/msg/Dvl"
UUV_TYPE = "uuv_sensor_ros_plugins_msgs/msg/DVL"
TWIST_TYPE = "geometry_msgs/msg/TwistWithCovarianceStamped"
STATE_TYPE = "std_msgs/msg/Bool"
DS_TYPE = "ds_sensor_msgs/msg/Dvl"
RANGES_TYPE = "ds_sensor_msgs/msg/Ranges3D"
CLOUD_TYPE = "sensor_msgs/msg/PointCloud"
GZ_TYPE = "gz.msgs.DVLVelocityTracking"

PING_SUFFIX = "_ping"
"""Suffix of the topic with all arrays."""

PING_MESSAGE = (PING_SUFFIX, generic.format_type_name(Dvl.type))
"""Suffix of the topic with all arrays, and the type of its messages."""

COORDINATES_INSTRUMENT = 1
"""Value of `ds_sensor_msgs/Dvl.coordinate_mode`: axes fixed to the instrument."""

LOW_QUALITY, HIGH_QUALITY = 10.0, 250.0
"""Quality of an invalid and of a valid beam in `libdsros_ros_dvl`; `marine_acoustic_msgs/Dvl` gets the same values."""

REFERENCE_SHIP = 2
"""Value of Gazebo's `DVLKinematicEstimate.ReferenceType`: axes fixed to the sensor (not PD0's level ship axes)."""

MESSAGE_BEAMS = 4
"""Number of beams in messages with arrays of a fixed length."""


SERIES_ARRAYS: Mapping[SeriesKind, tuple[str, ...]] = {
    "ideal": (*IDEAL_OUTPUTS, "sound_speed", "time_of_validity"),
    "bias": ("beam_range", "beam_velocity"),
}
"""Arrays of ideal values and of biases."""

UNKNOWN = -1.0
"""An unknown variance; in `uuv` also an unknown altitude or range."""


@dataclass(frozen=True)
class DvlMessageInfo:
    """Constants of the messages of one sensor and series: specification, and k beams in the output frame."""

    sensor: MountedSensor
    series_kind: SeriesKind

    @cached_property
    def spec(self) -> Dvl:
        """The specification. Raises `RecordingError` if it is of another sensor type."""
        return require_spec(self.sensor, Dvl)

    @property
    def header_strings(self) -> dict[str, str]:
        """The frame of the header."""
        return {"header.frame_id": get_frame_id(self.sensor)}

    @cached_property
    def transducer_poses(self) -> tuple[Pose, ...]:
        """Poses of the transducers. The beam is along x, unless its cone has another axis."""
        rotation = self.spec.reference
        return tuple(
            Pose(rotate(rotation, beam.position), ensure_unit(multiply(rotation, beam.rotation)))
            for beam in self.spec.beams.beams
        )

    @cached_property
    def beam_axes(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams."""
        return np.array([rotate(self.spec.reference, (x, y, z)) for x, y, z in self.spec.beams.axes.tolist()])

    @cached_property
    def beam_ids(self) -> tuple[int, ...]:
        """Numbers of the beams; the index for a beam without one."""
        ids, count = self.spec.message_options.beam_ids, len(self.transducer_poses)
        return (*ids, *range(len(ids), count))[:count]

    @cached_property
    def beam_frames(self) -> tuple[str, ...]:
        """Frames of the beams; "" for a beam without a name."""
        names, count = self.spec.message_options.beam_frames, len(self.transducer_poses)
        return (*names, *[""] * (count - len(names)))[:count]

    @property
    def range_variance(self) -> float:
        """The reported variance of a range (m^2)."""
        return self.spec.range_noise.white_stddev(self.sensor.rate) ** 2 if self.series_kind == "measured" else 0.0

    def write_stamps(self, rows: AnyArray, stamp: IntArray, *paths: str) -> None:
        """Write stamps (n,) ns at the paths."""
        for path in paths:
            write_stamps(rows, stamp, get_clock_name(self.sensor), path)


@dataclass(frozen=True, eq=False)
class DvlSeries:
    """The arrays of one series, from which the encoders fill n messages; NaN for an array that the series lacks.

    Arrays have a row for each message, and k beams.
    """

    info: DvlMessageInfo
    arrays: Mapping[str, AnyArray]
    count: int

    def has(self, *names: str) -> bool:
        """Return True if the series has any of the arrays."""
        return any(name in self.arrays for name in names)

    def get_column(self, name: str, *axes: int) -> FloatArray:
        """Return one array (n, *axes)."""
        shape, values = (self.count, *axes), self.arrays.get(name)
        return np.full(shape, math.nan) if values is None else np.asarray(values, dtype=np.float64).reshape(shape)

    def get_beam_column(self, name: str) -> FloatArray:
        """Return one array (n, k)."""
        return self.get_column(name, len(self.info.transducer_poses))

    def get_integers(self, name: str) -> IntArray:
        """Return one array (n,) of integers, 0 if unknown."""
        return _to_integers(self.get_column(name))

    @cached_property
    def velocity_mode(self) -> IntArray:
        """Track of the velocity (n,). Without this array: the bottom if enough beams have an echo, else the water."""
        if "velocity_mode" in self.arrays:
            return self.get_integers("velocity_mode")
        has_enough_beams = count_finite(self.get_beam_column("beam_velocity")) >= MIN_BEAMS
        is_bottom = has_enough_beams & (self.info.spec.bottom_mode is not TrackMode.NEVER)
        is_unknown = np.isnan(self.get_column("velocity", 3)[:, 0])
        return np.where(is_unknown, NO_TRACK, np.where(is_bottom, BOTTOM_TRACK, WATER_TRACK))

    @cached_property
    def is_water(self) -> BoolArray | None:
        """True for velocities through the water (n, 1); None if no row has one."""
        is_water = self.velocity_mode == WATER_TRACK
        return is_water[:, None] if is_water.any() else None

    def select_track(self, bottom: str, water: str) -> FloatArray:
        """Return one array (n, k), of the track of the velocity in each row."""
        if self.is_water is None:
            return self.get_beam_column(bottom)
        return np.where(self.is_water, self.get_beam_column(water), self.get_beam_column(bottom))

    @cached_property
    def beam_velocity(self) -> FloatArray:
        """Velocities (n, k) m/s along the beams."""
        return self.select_track("beam_velocity", "water_beam_velocity")

    @cached_property
    def beam_variance(self) -> FloatArray:
        """Variances (n, k) m^2/s^2 of the velocities along the beams."""
        names = ("beam_deviation", "water_beam_deviation")
        return self.report_variance(lambda: self.select_track(*names) ** 2, self.beam_velocity)

    @cached_property
    def beam_range(self) -> FloatArray:
        """Slant ranges (n, k) m."""
        return self.get_beam_column("beam_range")

    @cached_property
    def range_variance(self) -> FloatArray:
        """Variances (n, k) m^2 of the ranges."""
        return self.report_variance(lambda: self.info.range_variance, self.beam_range)

    @cached_property
    def good_beam_count(self) -> IntArray:
        """Number of good beams (n,). Without this array: of beams with a velocity."""
        if "num_good_beams" in self.arrays:
            return self.get_integers("num_good_beams")
        return count_finite(self.beam_velocity)

    @property
    def bottom_points(self) -> FloatArray:
        """Points (n, k, 3) m where the beams hit the bottom."""
        transducers = np.array([pose.position for pose in self.info.transducer_poses])
        return transducers + self.beam_range[:, :, None] * self.info.beam_axes

    def get_covariance(self, name: str = "velocity") -> FloatArray:
        """Return the covariance (n, 9) m^2/s^2 of a velocity, row-major."""
        velocity = self.get_column(name, 3)
        reported = self.report_variance(lambda: self.get_column(f"{name}_covariance", 9), velocity[:, :1])
        return reported if reported.shape[1] == 9 else np.repeat(reported, 9, axis=1)

    def report_variance(self, variance: Callable[[], FloatArray | float], value: FloatArray) -> FloatArray:
        """Return the reported variance: -1 for an unknown value, 0 for ideal values and biases.

        `variance` is called for measured values. It returns one number, one for each value, or several (n, m) for one
        value (n, 1).
        """
        declared = variance() if self.info.series_kind == "measured" else 0.0
        if isinstance(declared, float):
            return np.where(np.isnan(value), UNKNOWN, declared)
        return _fill_unknown_variances(declared, value)

    @property
    def output_delay(self) -> IntArray:
        """Delay (n,) ns from the time of validity to the output time."""
        return np.rint(nan_to_zero(self.get_column(AGE)) * NANOSECONDS_PER_SECOND).astype(np.int64)


@strided_kernel()
def _fill_unknown_variances(variance: FloatArray, value: FloatArray) -> FloatArray:
    """Return variances (n, m), -1 if the variance or its value is unknown."""
    out = np.empty(variance.shape)
    step = 1 if value.shape[1] > 1 else 0  # One value applies to all variances of its row.
    for i in range(variance.shape[0]):
        for j in range(variance.shape[1]):
            is_known = not (math.isnan(variance[i, j]) or math.isnan(value[i, j * step]))
            out[i, j] = variance[i, j] if is_known else UNKNOWN
    return out


@strided_kernel()
def _to_integers(values: FloatArray) -> IntArray:
    """Return numbers (n,) as integers, 0 for NaN."""
    out = np.empty(values.shape[0], dtype=np.int64)
    for i in range(values.shape[0]):
        out[i] = 0 if math.isnan(values[i]) else int(values[i])
    return out


@strided_kernel()
def count_finite(values: FloatArray) -> IntArray:
    """Return the number of finite values (n,) in each row (n, k)."""
    out = np.zeros(values.shape[0], dtype=np.int64)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if math.isfinite(values[i, j]):
                out[i] += 1
    return out


def nan_to_zero(value: FloatArray) -> FloatArray:
    """Return the values, 0 for NaN."""
    return np.where(np.isnan(value), 0.0, value)


def nan_to_unknown(value: FloatArray) -> FloatArray:
    """Return the values, -1 for NaN."""
    return np.where(np.isnan(value), UNKNOWN, value)


def time_of_validity(reading: Reading) -> Times:
    """Return the times of validity (n,) s, or the time of the tick if it is NaN."""
    validity = reading.arrays["time_of_validity"]
    return np.where(np.isfinite(validity), validity, reading.time)


def _take_four_beams(values: FloatArray, missing: float) -> FloatArray:
    """Return the first four beams (n, 4) of values (n, k), padded with `missing`."""
    if values.shape[1] >= MESSAGE_BEAMS:
        return values[:, :MESSAGE_BEAMS]
    padded: FloatArray = np.full((values.shape[0], MESSAGE_BEAMS), missing)
    padded[:, : values.shape[1]] = values
    return padded


def _write_four_ranges(rows: AnyArray, series: DvlSeries) -> None:
    """Write the ranges (m) of the first four beams and their variances."""
    rows["range"] = _take_four_beams(series.beam_range, math.nan)
    rows["range_covar"] = _take_four_beams(series.range_variance, UNKNOWN)


def _compute_quality(value: FloatArray) -> FloatArray:
    """Return the quality of values: low for NaN, else high."""
    return np.where(np.isnan(value), LOW_QUALITY, HIGH_QUALITY)


def _instrument_values(info: DvlMessageInfo) -> dict[str, ArrayLike]:
    """Return the transducer type and the unit vectors of the first four beams by path."""
    directions = {f"beam_unit_vec.{i}": axis for i, axis in enumerate(info.beam_axes[:MESSAGE_BEAMS])}
    return {"dvl_type": get_transducer_type(info.spec), **directions}


def list_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the output frame, and those of the point cloud and the transducers, in the sensor's frame.

    A beam without a name has the name of the output frame with `/beam` and its number. Raises `RecordingError` for a
    specification of another sensor type.
    """
    info = DvlMessageInfo(sensor, "measured")
    options, velocity_pose = info.spec.message_options, Pose(rotation=conjugate(ensure_unit(info.spec.reference)))
    frames = {get_frame_id(sensor): velocity_pose}
    if options.pointcloud_frame:
        frames.setdefault(options.pointcloud_frame, velocity_pose @ options.pointcloud_pose.inverse())
    for name, number, pose in zip(info.beam_frames, info.beam_ids, info.transducer_poses, strict=True):
        frames.setdefault(name or f"{get_frame_id(sensor)}/beam{number}", velocity_pose @ pose)
    return frames


def list_world_frames(sensor: MountedSensor) -> Mapping[str, Pose]:
    """Return the frame `world_ned` of the UUV Simulator, if the description of the sensor names it."""
    name = require_spec(sensor, Dvl).message_options.world_ned_frame
    return {name: Pose(rotation=WORLD_NED)} if name else {}


def make_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of the main message of the dialect, for `messages.make_encoder`.

    Raises `RecordingError` for a specification of another sensor type.
    """
    makers = {MessageDialect.UUV: _make_uuv_encoder, MessageDialect.DSROS: _make_dsros_encoder}
    return makers.get(require_spec(sensor, Dvl).dialect, _make_marine_encoder)(sensor, series_kind)


def list_companions(sensor: MountedSensor, series_kind: SeriesKind) -> Mapping[str, EncoderMaker]:
    """Return the encoders of the companion messages: those of the dialect and `_ping`.

    A key is the suffix of the topic; a key that begins with `//` is an absolute topic. `_ping` replaces a message of
    the dialect with the same key.

    Raises `RecordingError` for a specification of another sensor type.
    """
    return {**_list_dialect_companions(require_spec(sensor, Dvl), series_kind), PING_SUFFIX: generic.make_encoder}


def _list_dialect_companions(spec: Dvl, series_kind: SeriesKind) -> Mapping[str, EncoderMaker]:
    """Return the encoders of the companion messages of the dialect, by suffix or absolute topic."""
    if spec.dialect is MessageDialect.UUV:
        state = {"/state": make_state_encoder} if series_kind == "measured" else {}
        return {"_twist": make_twist_encoder, **state}
    if spec.dialect is MessageDialect.DSROS:
        ranges_topic = spec.message_options.ranges_topic.strip("/")
        topic = f"//{ranges_topic}" if spec.message_options.ranges_topic else "_ranges"
        return {topic: make_ranges_encoder, "_cloud": make_cloud_encoder} if series_kind != "bias" else {}
    return {"_water": make_water_encoder} if _has_both_tracks(spec) and series_kind != "bias" else {}


def _has_both_tracks(spec: Dvl) -> bool:
    """Return True if the bottom track is on and each ping also has a water track (`always`)."""
    return spec.bottom_mode is not TrackMode.NEVER and spec.water_mode is TrackMode.ALWAYS


def _compute_water_track_delay(series: DvlSeries) -> IntArray:
    """Return the delay (n,) ns of the water track's time of validity after the bottom track's; 0 if unknown."""
    delay = series.get_column("water_time_of_validity") - series.get_column("time_of_validity")
    return np.rint(nan_to_zero(delay) * NANOSECONDS_PER_SECOND).astype(np.int64)


def get_transducer_type(spec: Dvl | Adcp) -> int:
    """Return `dvl_type`, `adcp_type` and `soundspeed_correction_type`: 1 for a phased array, 0 for pistons."""
    return int(spec.transducer is Transducer.PHASED_ARRAY)


def _make_marine_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `marine_acoustic_msgs/msg/Dvl`."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["velocity_mode"], rows["num_good_beams"] = series.velocity_mode, series.good_beam_count
        _write_marine_velocity(rows, series, "velocity")
        if series.has("beam_velocity", "water_beam_velocity"):
            _write_marine_beams(rows, series.beam_velocity, series.beam_variance)
        if series.has("altitude"):
            rows["altitude"] = series.get_column("altitude")
        if series.has("course", "speed"):
            rows["course_gnd"], rows["speed_gnd"] = series.get_column("course"), series.get_column("speed")
        if series.has("beam_range"):
            rows["beam_ranges_valid"] = count_finite(series.beam_range) > 0
            _write_four_ranges(rows, series)

    return MessageEncoder(MARINE_TYPE, _build_marine_cdr(info), fill)


def _build_marine_cdr(info: DvlMessageInfo) -> CdrLayout:
    """Return a marine message in which only the instrument is known."""
    values = ("velocity", "altitude", "course_gnd", "speed_gnd", "sound_speed", "range", "beam_velocity")
    variances = dict.fromkeys(("velocity_covar", "range_covar", "beam_velocity_covar"), UNKNOWN)
    unknown = {**dict.fromkeys(values, math.nan), **variances, "beam_quality": LOW_QUALITY}
    return build_layout(MARINE_TYPE, info.header_strings).with_constants({**_instrument_values(info), **unknown})


def _write_marine_velocity(rows: AnyArray, series: DvlSeries, name: str) -> None:
    """Write a velocity (m/s) with its covariance, and the speed of sound."""
    if series.has(name):
        write_vectors(rows, "velocity", series.get_column(name, 3))
        rows["velocity_covar"] = series.get_covariance(name)
    if series.has("sound_speed"):
        rows["sound_speed"] = series.get_column("sound_speed")


def _write_marine_beams(rows: AnyArray, velocity: FloatArray, variance: FloatArray) -> None:
    """Write velocities (m/s), variances and qualities of beams (n, k)."""
    fields = rows["beam_velocities_valid"], rows["beam_velocity"], rows["beam_velocity_covar"], rows["beam_quality"]
    _write_beams(velocity, variance, *fields)


@strided_kernel("has_good_beam", "velocity_out", "variance_out", "quality")
def _write_beams(
    velocity: FloatArray,
    variance: FloatArray,
    has_good_beam: AnyArray,
    velocity_out: AnyArray,
    variance_out: AnyArray,
    quality: AnyArray,
) -> None:
    """Write whether a row has a good beam (n,), and the velocity, variance and quality of the first four beams."""
    beams = velocity.shape[1]
    for i in range(velocity.shape[0]):
        has_good_beam[i] = 0
        for k in range(beams):
            if math.isfinite(velocity[i, k]):
                has_good_beam[i] = 1
        for k in range(min(beams, MESSAGE_BEAMS)):
            velocity_out[i, k] = velocity[i, k]
            variance_out[i, k] = variance[i, k]
            quality[i, k] = LOW_QUALITY if math.isnan(velocity[i, k]) else HIGH_QUALITY


def make_water_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `_water`: the water track, if the main message has the bottom track."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        velocity, beams = series.get_column("water_velocity", 3), series.get_beam_column("water_beam_velocity")
        info.write_stamps(rows, stamp + _compute_water_track_delay(series), "header.stamp")
        rows["velocity_mode"] = np.where(np.isnan(velocity[:, 0]), NO_TRACK, WATER_TRACK)
        rows["num_good_beams"] = count_finite(beams)
        _write_marine_velocity(rows, series, "water_velocity")
        variance = series.report_variance(lambda: series.get_beam_column("water_beam_deviation") ** 2, beams)
        _write_marine_beams(rows, beams, variance)

    return MessageEncoder(MARINE_TYPE, _build_marine_cdr(info), fill)


def _make_uuv_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `uuv_sensor_ros_plugins_msgs/msg/DVL`.

    Each beam has the pose of its transducer in the output frame. Its header names the frame of the beam.
    """
    info = DvlMessageInfo(sensor, series_kind)
    strings = info.header_strings
    fixed: dict[str, ArrayLike] = {}
    for i, (name, pose) in enumerate(zip(info.beam_frames, info.transducer_poses, strict=True)):
        strings[f"beams.{i}.pose.header.frame_id"] = name or get_frame_id(sensor)
        w, x, y, z = pose.rotation
        fixed |= {f"beams.{i}.pose.pose.position": pose.position, f"beams.{i}.pose.pose.orientation": (x, y, z, w)}
    layout = build_layout(UUV_TYPE, strings, {"beams": len(info.transducer_poses)}).with_constants(fixed)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["velocity"], rows["velocity_covariance"] = series.get_column("velocity", 3), series.get_covariance()
        rows["altitude"] = nan_to_unknown(series.get_column("altitude"))
        for i in range(len(info.transducer_poses)):
            beam = f"beams.{i}"
            info.write_stamps(rows, stamp, f"{beam}.pose.header.stamp")
            rows[f"{beam}.range"] = nan_to_unknown(series.beam_range[:, i])
            rows[f"{beam}.range_covariance"] = series.range_variance[:, i]
            rows[f"{beam}.velocity"] = series.beam_velocity[:, i]
            rows[f"{beam}.velocity_covariance"] = series.beam_variance[:, i]

    return MessageEncoder(UUV_TYPE, layout, fill)


def make_twist_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of velocities as twists. The angular velocity is unknown: 0 with variances of -1."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        rows["twist.twist.linear"] = series.get_column("velocity", 3)
        covariance = np.zeros((stamp.size, 6, 6))
        covariance[:, :3, :3] = series.get_covariance().reshape(-1, 3, 3)
        covariance[:, (3, 4, 5), (3, 4, 5)] = UNKNOWN
        rows["twist.covariance"] = covariance.reshape(-1, 36)

    return MessageEncoder(TWIST_TYPE, build_layout(TWIST_TYPE, info.header_strings), fill)


def make_state_encoder(_sensor: MountedSensor, _series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of the on/off state. A sensor that is off also publishes it."""

    def fill(rows: AnyArray, _stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        rows["data"] = arrays[IS_ON]

    return MessageEncoder(STATE_TYPE, build_layout(STATE_TYPE), fill, ignores_arrays=True)


def _write_dsros_header(rows: AnyArray, info: DvlMessageInfo, stamp: IntArray, series: DvlSeries) -> None:
    """Write the stamps of both headers: the time of validity, and the output time."""
    info.write_stamps(rows, stamp, "header.stamp")
    info.write_stamps(rows, stamp + series.output_delay, "ds_header.io_time")


def make_source_uuid(sensor: MountedSensor) -> dict[str, ArrayLike]:
    """Return the UUID of the sensor by path."""
    return {"ds_header.source_uuid": list(uuid5(NAMESPACE_URL, sensor.name).bytes)}


def _make_dsros_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `ds_sensor_msgs/msg/Dvl`."""
    info = DvlMessageInfo(sensor, series_kind)

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        _write_dsros_header(rows, info, stamp, series)
        rows["dvl_time"] = stamp / NANOSECONDS_PER_SECOND
        rows["velocity"], rows["velocity_covar"] = series.get_column("velocity", 3), series.get_covariance()
        rows["altitude"] = series.get_column("altitude")
        rows["course_gnd"], rows["speed_gnd"] = np.degrees(series.get_column("course")), series.get_column("speed")
        rows["num_good_beams"], rows["speed_sound"] = series.good_beam_count, series.get_column("sound_speed")
        _write_four_ranges(rows, series)
        rows["beam_quality"] = _take_four_beams(_compute_quality(series.beam_velocity), LOW_QUALITY)
        rows["raw_velocity"] = _take_four_beams(series.beam_velocity, math.nan)
        rows["raw_velocity_covar"] = _take_four_beams(series.beam_variance, UNKNOWN)
        rows["velocity_mode"] = series.velocity_mode

    fixed = {**_instrument_values(info), **make_source_uuid(sensor), "coordinate_mode": COORDINATES_INSTRUMENT}
    return MessageEncoder(DS_TYPE, build_layout(DS_TYPE, info.header_strings).with_constants(fixed), fill)


def _compute_range_validity(series: DvlSeries) -> FloatArray:
    """Return the validity (n, k) of ranges. Without this array, ranges are valid or indeterminate."""
    if not series.has("range_validity"):
        return np.where(np.isnan(series.beam_range), float(NO_ECHO), float(IN_RANGE))
    return nan_to_zero(series.get_beam_column("range_validity"))


def make_ranges_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `ds_sensor_msgs/msg/Ranges3D`: the ends of the beams."""
    info = DvlMessageInfo(sensor, series_kind)
    frame, count = get_frame_id(sensor), len(info.transducer_poses)
    strings = {f"ranges.{i}.range.header.frame_id": frame for i in range(count)}

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        _write_dsros_header(rows, info, stamp, series)
        quality, validity = _compute_quality(series.beam_range), _compute_range_validity(series)
        points = series.bottom_points
        for i in range(count):
            info.write_stamps(rows, stamp, f"ranges.{i}.range.header.stamp")
            rows[f"ranges.{i}.range.point"] = points[:, i]
            rows[f"ranges.{i}.range_quality"] = quality[:, i]
            rows[f"ranges.{i}.range_validity"] = validity[:, i]

    layout = build_layout(RANGES_TYPE, {**info.header_strings, **strings}, {"ranges": count})
    fixed = {**make_source_uuid(sensor), "soundspeed_correction_type": get_transducer_type(info.spec)}
    return MessageEncoder(RANGES_TYPE, layout.with_constants(fixed), fill)


def make_cloud_encoder(sensor: MountedSensor, series_kind: SeriesKind) -> MessageEncoder:
    """Return the encoder of `sensor_msgs/msg/PointCloud`: equidistant points from transducer to end of each beam."""
    info = DvlMessageInfo(sensor, series_kind)
    options, count = info.spec.message_options, len(info.transducer_poses)
    strings = {"header.frame_id": options.pointcloud_frame} if options.pointcloud_frame else info.header_strings
    points = options.cloud_points
    fractions = [j / (points - 1) if points > 1 else 1.0 for j in range(points)]
    transducers = [(options.pointcloud_pose @ pose).position for pose in info.transducer_poses]
    axes = [rotate(options.pointcloud_pose.rotation, (x, y, z)) for x, y, z in info.beam_axes.tolist()]

    def fill(rows: AnyArray, stamp: IntArray, arrays: Mapping[str, AnyArray]) -> None:
        series = DvlSeries(info, arrays, stamp.size)
        info.write_stamps(rows, stamp, "header.stamp")
        for i, (transducer, axis) in enumerate(zip(transducers, axes, strict=True)):
            for j, fraction in enumerate(fractions):
                point = f"points.{i * points + j}"
                for component, origin, direction in zip("xyz", transducer, axis, strict=True):
                    rows[f"{point}.{component}"] = origin + fraction * series.beam_range[:, i] * direction

    return MessageEncoder(CLOUD_TYPE, build_layout(CLOUD_TYPE, strings, {"points": count * points}), fill)


def make_marker_encoder(sensor: MountedSensor) -> MessageEncoder:
    """Return the encoder of a line along each beam. Raises `RecordingError` for another sensor type."""
    info = DvlMessageInfo(sensor, "measured")
    spec, janus_cosines = info.spec, np.array(info.spec.beams.janus_cosines)

    def compute_beams(count: int, arrays: Mapping[str, AnyArray]) -> tuple[FloatArray, IntArray]:
        series = DvlSeries(info, arrays, count)
        water = np.isfinite(series.get_beam_column("water_beam_velocity"))
        layer = np.where(water, series.get_column("water_far")[:, None] / janus_cosines, math.nan)
        minimum = np.where(series.get_beam_column("range_validity") == TOO_LOW, spec.minimum_range, math.nan)
        states = np.where(water, WATER, INVALID)
        states[np.isfinite(series.get_beam_column("beam_velocity"))] = VALID
        return select_lengths((series.beam_range, layer, minimum), spec.maximum_range), states

    transducers = np.array([pose.position for pose in info.transducer_poses])
    longest_ping = 2.0 * spec.maximum_range / SOUND_SPEED + spec.processing_time if spec.models_travel_time else 0.0
    return make_beam_encoder(sensor, transducers, info.beam_axes, compute_beams, longest_ping)


class GzTrack(NamedTuple):
    """One track in Gazebo's messages: target, and lists of velocities, beams and covariances, indexed by row.

    A beam without a velocity is not locked.
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
    """Return the bottom track; rows of the water track have no velocity."""
    velocity = np.where((series.velocity_mode == WATER_TRACK)[:, None], math.nan, series.get_column("velocity", 3))
    beams = _list_beams(info, series, "beam")
    ranges = series.beam_range.tolist(), series.range_variance.tolist()
    return GzTrack(BOTTOM_TRACK, velocity.tolist(), series.get_covariance().tolist(), *beams, *ranges)


def _make_water_track(info: DvlMessageInfo, series: DvlSeries, name: str) -> GzTrack:
    """Return the water track, with the velocity of an array.

    The range of a beam is the distance to the middle of the layer. Its variance is that of a uniform distribution over
    the layer.
    """
    beams, janus_cosines = _list_beams(info, series, "water_beam"), np.array(info.spec.beams.janus_cosines)
    near = info.spec.layer.near if info.spec.layer is not None else math.nan
    far = series.get_column("water_far")[:, None]
    velocity, covariance = series.get_column(name, 3).tolist(), series.get_covariance(name).tolist()
    middle, variance = 0.5 * (near + far) / janus_cosines, ((far - near) / janus_cosines) ** 2 / 12.0
    return GzTrack(WATER_TRACK, velocity, covariance, *beams, middle.tolist(), variance.tolist())


def _list_beams(info: DvlMessageInfo, series: DvlSeries, name: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return lock, velocity vectors and their covariances for the beams of one track."""
    speed, stddev = series.get_beam_column(f"{name}_velocity"), series.get_beam_column(f"{name}_deviation")
    projection = info.beam_axes[:, :, None] * info.beam_axes[:, None, :]
    covariance = series.report_variance(lambda: stddev**2, speed)[:, :, None] * projection.reshape(-1, 9)
    return np.isfinite(speed).tolist(), (speed[:, :, None] * info.beam_axes).tolist(), covariance.tolist()


def _list_tracks(info: DvlMessageInfo, series: DvlSeries, rows: Sequence[int]) -> list[tuple[int, GzTrack]]:
    """Return the row and the track of each message: both tracks of a row, or the track of its velocity."""
    bottom = _make_bottom_track(info, series)
    if _has_both_tracks(info.spec):
        water = _make_water_track(info, series, "water_velocity")
        return [(row, track) for row in rows for track in (bottom, water)]
    water = _make_water_track(info, series, "velocity")
    is_water = (series.velocity_mode == WATER_TRACK) | (info.spec.bottom_mode is TrackMode.NEVER)
    return [(row, water if is_water[row] else bottom) for row in rows]


def _encode_kinematic(velocity: Sequence[float], covariance: Sequence[float]) -> bytes:
    """Return `DVLKinematicEstimate` of a velocity (3,) m/s in the output frame and its covariance (9,)."""
    # 1 reference, 2 mean, 3 covariance
    return encode_int(1, REFERENCE_SHIP) + encode_nested(2, encode_doubles(2, velocity)) + encode_packed(3, covariance)


def _encode_beam(number: int, track: GzTrack, row: int, beam: int) -> bytes:
    """Return `DVLBeamState` of one beam; only its number without lock."""
    # 1 id, 2 velocity, 3 range, 6 locked
    out = encode_int(1, number)
    if not track.locked[row][beam]:
        return out
    out += encode_nested(2, _encode_kinematic(track.beam_velocity[row][beam], track.beam_covariance[row][beam]))
    out += encode_nested(3, encode_doubles(1, (track.range[row][beam], track.range_variance[row][beam])))
    return out + encode_int(6, 1)


def encode_gz_message(info: DvlMessageInfo, stamp: int, sequence: int, track: GzTrack, row: int) -> bytes:
    """Return `gz.msgs.DVLVelocityTracking` of a stamp (ns) and a row of a track. The nearest range is the target."""
    # 1 header, 2 type, 3 target (1 type, 2 range), 4 velocity, 5 beams
    out = encode_nested(1, encode_header(stamp, get_frame_id(info.sensor), sequence))
    out += encode_int(2, 1 + get_transducer_type(info.spec))
    ranges = zip(track.range[row], track.range_variance[row], track.locked[row], strict=True)
    locked_ranges = [(distance, variance) for distance, variance, locked in ranges if locked]
    if locked_ranges:
        out += encode_nested(3, encode_int(1, track.target) + encode_nested(2, encode_doubles(1, min(locked_ranges))))
    if not math.isnan(track.velocity[row][0]):
        out += encode_nested(4, _encode_kinematic(track.velocity[row], track.covariance[row]))
    beams = (_encode_beam(number, track, row, beam) for beam, number in enumerate(info.beam_ids))
    return out + b"".join(encode_nested(5, beam) for beam in beams)


def encode_gz_messages(sensor: MountedSensor, reading: Reading, sequence: int = 0) -> list[bytes]:
    """Return the `gz.msgs.DVLVelocityTracking` messages of the emitted rows, numbered from `sequence`.

    If the bottom track is on and the water track is `always`, each row has two messages: bottom, then water.
    """
    info, rows = DvlMessageInfo(sensor, "measured"), list_emitted_rows(reading)
    series = DvlSeries(info, reading.arrays, reading.time.size)
    stamp = compute_stamps(reading, get_clock_name(sensor), time_of_validity(reading))
    stamps = {BOTTOM_TRACK: stamp.tolist(), WATER_TRACK: (stamp + _compute_water_track_delay(series)).tolist()}
    return [
        encode_gz_message(info, stamps[track.target][row], sequence + i, track, row)
        for i, (row, track) in enumerate(_list_tracks(info, series, rows))
    ]


def unknown_to_nan(value: AnyArray) -> FloatArray:
    """Return numbers, NaN for -1."""
    number = np.asarray(value, dtype=np.float64)
    return np.where(number == UNKNOWN, math.nan, number)


def _pad_beams(value: AnyArray, count: int) -> FloatArray:
    """Return four beams (n, 4) as (n, count), padded with NaN."""
    padded: FloatArray = np.full((value.shape[0], count), math.nan)
    known = min(count, MESSAGE_BEAMS)
    padded[:, :known] = value[:, :known]
    return padded


def _split_by_track(mode: AnyArray, velocity: FloatArray, variance: FloatArray) -> dict[str, AnyArray]:
    """Return beam velocities (n, k) and their standard deviations by the array names of their track."""
    is_water, stddev = (mode == WATER_TRACK)[:, None], np.sqrt(unknown_to_nan(variance))
    columns = (("beam_velocity", velocity), ("beam_deviation", stddev))
    bottom = {name: np.where(is_water, math.nan, value) for name, value in columns}
    water = {f"water_{name}": np.where(is_water, value, math.nan) for name, value in columns}
    return {**bottom, **water}


def _extract_four_beams(rows: AnyArray, count: int, velocity: str, sound: str) -> dict[str, AnyArray]:
    """Return the arrays of a message of four beams; `velocity` and `sound` name its fields."""
    mode = rows["velocity_mode"].astype(np.float64)
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": unknown_to_nan(rows["velocity_covar"]).reshape(-1, 3, 3),
        "altitude": rows["altitude"],
        "course": rows["course_gnd"],
        "speed": rows["speed_gnd"],
        "beam_range": _pad_beams(rows["range"], count),
        "num_good_beams": rows["num_good_beams"].astype(np.float64),
        "velocity_mode": mode,
        "sound_speed": rows[sound].astype(np.float64),
        **_split_by_track(mode, _pad_beams(rows[velocity], count), _pad_beams(rows[f"{velocity}_covar"], count)),
    }


def _extract_uuv(rows: AnyArray, info: DvlMessageInfo) -> dict[str, AnyArray]:
    """Return the arrays of the UUV Simulator's message, which has no velocity mode."""
    beams = [f"beams.{i}" for i in range(len(info.transducer_poses))]
    velocity, variance, distance = (
        np.stack([rows[f"{beam}.{name}"] for beam in beams], axis=1)
        for name in ("velocity", "velocity_covariance", "range")
    )
    track = WATER_TRACK if info.spec.bottom_mode is TrackMode.NEVER else BOTTOM_TRACK
    mode = np.where(np.isnan(rows["velocity"][:, 0]), NO_TRACK, track).astype(np.float64)
    return {
        "velocity": rows["velocity"],
        "velocity_covariance": unknown_to_nan(rows["velocity_covariance"]).reshape(-1, 3, 3),
        "altitude": unknown_to_nan(rows["altitude"]),
        "beam_range": unknown_to_nan(distance),
        "velocity_mode": mode,
        "num_good_beams": np.isfinite(velocity).sum(axis=1).astype(np.float64),
        **_split_by_track(mode, velocity, variance),
    }


def _extract_water(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the arrays of the message of the water track."""
    return {
        "water_velocity": rows["velocity"],
        "water_velocity_covariance": unknown_to_nan(rows["velocity_covar"]).reshape(-1, 3, 3),
        "water_beam_velocity": _pad_beams(rows["beam_velocity"], count),
        "water_beam_deviation": np.sqrt(unknown_to_nan(_pad_beams(rows["beam_velocity_covar"], count))),
    }


def _extract_range_validity(rows: AnyArray, count: int) -> dict[str, AnyArray]:
    """Return the range validity in a `Ranges3D` message; nothing for another number of beams."""
    paths = [f"ranges.{i}.range_validity" for i in range(count)]
    if any(path not in (rows.dtype.names or ()) for path in paths):
        return {}
    return {"range_validity": np.stack([rows[path] for path in paths], axis=1).astype(np.float64)}


def _extract_all(sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind) -> dict[str, AnyArray]:
    """Return the arrays of `_ping`; nothing for another number of beams."""
    widths = {output.name: output.size for output in sensor.spec.outputs if output.axes}
    names = rows.dtype.names or ()
    if any(rows[name].shape[1:] != (width,) for name, width in widths.items() if name in names):
        return {}
    return generic.extract_arrays(sensor, rows, series_kind, PING_SUFFIX)


def extract_arrays(
    sensor: MountedSensor, rows: AnyArray, series_kind: SeriesKind, companion: str
) -> dict[str, AnyArray]:
    """Return the arrays in messages: the inverse of `make_encoder` and of the companions."""
    if isinstance(sensor.spec, OpaqueSensor):
        return {}
    info = DvlMessageInfo(sensor, series_kind)
    count, dialect = len(info.transducer_poses), info.spec.dialect
    if companion == PING_SUFFIX:
        arrays = _extract_all(sensor, rows, series_kind)
    elif companion == "_water":
        arrays = _extract_water(rows, count)
    elif companion and dialect is MessageDialect.DSROS:
        arrays = _extract_range_validity(rows, count)
    elif companion:
        arrays = {}
    elif dialect is MessageDialect.UUV:
        arrays = _extract_uuv(rows, info)
    elif dialect is MessageDialect.DSROS:
        arrays = _extract_four_beams(rows, count, "raw_velocity", "speed_sound")
        arrays["course"] = np.radians(arrays["course"])
    else:
        arrays = _extract_four_beams(rows, count, "beam_velocity", "sound_speed")
    names = SERIES_ARRAYS.get(series_kind, tuple(arrays))
    return {name: array for name, array in arrays.items() if name in names}


MESSAGES = SensorMessages(
    make_encoder,
    extract_arrays,
    GZ_TYPE,
    encode_gz_messages,
    list_companions=list_companions,
    time_of_validity=time_of_validity,
    list_frames=list_frames,
    list_world_frames=list_world_frames,
    make_marker_encoder=make_marker_encoder,
    series_arrays=SERIES_ARRAYS,
)
