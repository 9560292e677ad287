"""Acoustic Doppler current profiler: velocity of the water in cells along its beams, told as ensembles of pings.

    velocity_m = mean_p R_p (-argmin_v sum_k (b_pmk - u_k.v)^2) + own velocity over the bottom, where that is taken out

over the good pings p of an ensemble; b_pmk is what beam k hears in cell m, at the height of the cell where cells are
mapped (`_parse_janus.ensemble`, `_parse_janus.profile`): as that of a DVL positive when the sensor moves along the
beam, so that
the velocity is that of the water, against the instrument or over the ground; of the latter `relative_velocity` keeps
the former, which needs no bottom. R_p takes the sensor's axes to those that are told in, by the ping's own attitude:

    beam          none: velocities along the beams alone, `velocity` is NaN
    instrument    the sensor's axes, turned by `reference`
    ship          the same made level: the x axis keeps its heading, z is up
    earth         east, north, up

A ping is sent, heard, solved and turned at its own instant, on a vehicle that moves meanwhile. Pings for the bottom
stand between them and give `bottom_velocity`, the instrument's over the bottom in the same axes (positive when it moves
on). `orientation` takes the axes of `instrument` to east, north, up at the time of validity, the mean instant of the
profile's pings: what a compass and inclinometers would say that have no error. An ensemble is told at the first tick of
a whole number of them that it fits into; other ticks are not emitted and NaN.

    deviation of one ping, beam and cell:  stddev reference_cell_size / size,   1 / sqrt(pings) of that in an ensemble

Sources: RD Instruments, How does depth cell size control the variance of the velocity profile (FAQ), for the deviation
by cell size; those of `_parse_janus.ensemble` and `_parse_janus.profile`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from navsense import pose
from navsense.environment.base import Environment
from navsense.errors import SensorError
from navsense.motion.base import Motion
from navsense.noise.channel import Noise
from navsense.random_streams import RandomProcess
from navsense.rotation import multiply_arrays
from navsense.sensors._cross_axis import check_numbers
from navsense.sensors.base import MESSAGE_ONLY, Measurement, Output
from navsense.sensors.doppler import description, ensemble
from navsense.sensors.doppler.beam_errors import Accuracy, EchoStrength
from navsense.sensors.doppler.beams import Beams, BeamWeighting, make_janus_beams
from navsense.sensors.doppler.cells import BottomHits, DepthCells, find_cell_velocities
from navsense.sensors.doppler.echoes import SOUND_SPEED, find_echoes, get_sound_speed
from navsense.sensors.doppler.ensemble import (
    ATTITUDE,
    BOTTOM_BEAM_VELOCITY,
    BOTTOM_OUTPUT_ROTATION,
    CELL_AXIAL_VELOCITY,
    CELL_BEAM_VELOCITY,
    ECHO_RANGE,
    ERROR_INPUTS,
    IDEAL_OUTPUTS,
    OUTPUT_ROTATION,
    OUTPUTS,
    RELATIVE_VELOCITY,
    SENSOR_VELOCITY,
    BinMapping,
    CoordinateSystem,
    PingSchedule,
    parse_shape,
    schedule_pings,
)
from navsense.sensors.doppler.specification import MessageDialect, validate_counts, validate_duration, validate_reals
from navsense.sensors.doppler.water import get_forward_cosines
from navsense.sensors.dvl import Transducer
from navsense.sensors.range import Cone, Sound
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times
from navsense.validation import validate_types

X_AZIMUTHS = (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams between the sensor's axes: an X."""

BEAM_ANGLE = math.radians(20.0)
"""rad, of the beams from the instrument's axis."""

MAX_PINGS = 1000
"""Pings of one kind in an ensemble."""

IDENTITY_ROTATION = (1.0, 0.0, 0.0, 0.0)


IDEAL_ACCURACY, TRUE_SOUND = Accuracy(), Sound()


class AdcpState(NamedTuple):
    """This serial number: scales and offsets (2, 4) of the profile and of the bottom's track."""

    systematic: FloatArray


@dataclass(frozen=True)
class Adcp:
    """Data sheet of an acoustic Doppler current profiler.

    `pings`, `bottom_pings` of an ensemble (0: none for the bottom), `ping_interval` (s, 0 for as fast as sound allows),
    `processing_time` (s after the last); without `propagation` all are at the tick. `minimum_range`, `maximum_range` of
    the bottom's echo (m along a beam). `profile`, `bottom`: errors of velocities; the profile's deviation holds at
    `reference_cell_size` (m, 0 for any). `range_stddev`: m, of a beam's range. `backscatter`: strength of the water's
    echo. `sound`: what the speed of sound is taken for. `min_beams`: that a solution needs. `error_velocity_limit`:
    m/s. `min_good_share`: share of the pings. `motion_compensated`: whether the velocity is over the ground.
    `side_lobes`:
    whether the beams have any. `reference`: rotation from the sensor's frame to the instrument's. `classic`: whether
    the rules of the `dialect` hold. Raises `SensorError`.
    """

    beams: Beams = field(default_factory=lambda: make_janus_beams(BEAM_ANGLE, [math.radians(a) for a in X_AZIMUTHS]))
    cells: DepthCells = field(default_factory=DepthCells)
    pings: int = 1
    bottom_pings: int = 1
    ping_interval: float = 0.0
    processing_time: float = 0.0
    propagation: bool = True
    minimum_range: float = 0.0
    maximum_range: float = 100.0
    profile: Accuracy = IDEAL_ACCURACY
    bottom: Accuracy = IDEAL_ACCURACY
    reference_cell_size: float = 0.0
    range_stddev: float = 0.0
    backscatter: EchoStrength | None = None
    sound: Sound = TRUE_SOUND
    transducer: Transducer = Transducer.PISTON
    coordinates: CoordinateSystem = CoordinateSystem.EARTH
    bin_mapping: BinMapping = BinMapping.LINEAR
    motion_compensated: bool = False
    min_beams: int = 3
    error_velocity_limit: float = math.inf
    min_good_share: float = 0.0
    side_lobes: bool = True
    reference: Quaternion = IDENTITY_ROTATION
    own_hull: bool = False
    classic: bool = False
    dialect: MessageDialect = field(default=MessageDialect.OWN, metadata=MESSAGE_ONLY)

    type: ClassVar[str] = "adcp"
    tolerance: ClassVar[float] = 1e-9
    group: ClassVar[Literal["all", "vertical"]] = "vertical"
    source_arrays: ClassVar[tuple[str, ...]] = ensemble.ADCP_SOURCE_ARRAYS

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        validate_reals(*((name, vars(self)[name], least, most) for name, least, most in FIELD_LIMITS))
        validate_reals(("error_velocity_limit", self.error_velocity_limit, 0.0, 1e5), may_be_infinite=True)
        validate_counts(*((name, vars(self)[name], least, most) for name, least, most in COUNT_LIMITS))
        object.__setattr__(self, "reference", check_numbers("reference", self.reference, 4))
        validate_types(self)
        if self.min_beams > len(self.beams.beams):
            allowed = f"must be at most {len(self.beams.beams)}, as many as there are"
            raise SensorError("min_beams", self.min_beams, allowed=allowed)
        if not self.maximum_range > self.minimum_range:
            allowed = f"must be above the minimum, {self.minimum_range:g} m"
            raise SensorError("maximum_range (m)", self.maximum_range, allowed=allowed)
        if self.motion_compensated and self.bottom_pings == 0:
            remedy = "give pings for the bottom, or keep the motion in"
            raise SensorError("bottom_pings", 0, allowed="must be at least 1 where motion is taken out", remedy=remedy)
        if not abs(math.hypot(*self.reference) - 1.0) < 1e-6:
            raise SensorError("reference", self.reference, allowed="must be a unit quaternion w x y z")
        get_forward_cosines(self.beams)
        validate_duration(self.duration)

    @property
    def _is_classic(self) -> bool:
        """Tell whether the plug-in's rules hold: cells that are points, no side lobes, sound that takes no time."""
        return self.classic and self.dialect is MessageDialect.DSROS

    @property
    def _has_no_output(self) -> bool:
        """Tell whether nothing is told: in axes that the plug-in leaves out."""
        return self._is_classic and self.coordinates in (CoordinateSystem.SHIP, CoordinateSystem.EARTH)

    @property
    def _models_travel_time(self) -> bool:
        """Tell whether sound takes its time."""
        return self.propagation and not self._is_classic

    @property
    def uses_current(self) -> bool:
        """Return true: the water is what it measures."""
        return True

    @property
    def cell_distance(self) -> FloatArray:
        """Return the distances (m,) of the cells' centres along the instrument's axis, m."""
        return self.cells.distances

    @cached_property
    def beam_direction(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams, in the axes of `instrument`."""
        return np.array([pose.rotate(self._instrument_rotation, (x, y, z)) for x, y, z in self.beams.axes.tolist()])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: m cells, k beams."""
        m, k = int(self.cells.count), len(self.beams.beams)
        given = (*OUTPUTS, RELATIVE_VELOCITY) if self.motion_compensated else OUTPUTS
        return tuple(Output(name, parse_shape(axes, m, k), unit) for name, axes, unit in given)

    @cached_property
    def _instrument_rotation(self) -> Quaternion:
        """Rotation from the sensor's frame to the instrument's, at unit length."""
        return pose.normalize(self.reference)

    @cached_property
    def _single_ray_beams(self) -> Beams:
        """Beams of one ray each, to see where the profile ends."""
        return self.beams.single_ray_beams

    @cached_property
    def _slant_ranges(self) -> FloatArray:
        """Slant ranges (m, k) m that the cells are taken to be at."""
        return self.cells.distances[:, None] / get_forward_cosines(self.beams)

    @cached_property
    def ping_stddev(self) -> float:
        """Deviation (m/s) of one ping in one beam and cell."""
        reference = self.reference_cell_size
        return self.profile.stddev * (reference / self.cells.size if reference > 0.0 else 1.0)

    @cached_property
    def _processes(self) -> tuple[RandomProcess, ...]:
        """Random processes, those of serial numbers first."""
        k, m = len(self.beams.beams), int(self.cells.count)
        pings, bottom = int(self.pings) * m * k, int(self.bottom_pings) * k
        found = [
            RandomProcess(channel, "long_term", initial=4, per_tick=0)
            for channel, accuracy, count in (("profile", self.profile, 1), ("bottom", self.bottom, bottom))
            if accuracy.has_long_term_errors and count
        ]
        for channel, name, acts, count in (
            ("profile", "white", self.ping_stddev > 0.0, pings),
            ("profile", "lock", self.backscatter is not None, pings),
            ("bottom", "white", self.bottom.stddev > 0.0, bottom),
            ("range", "white", self.range_stddev > 0.0, bottom),
        ):
            if acts and count:
                found.append(
                    RandomProcess(channel, name, per_tick=count, kind="uniform" if name == "lock" else "normal")
                )
        return tuple(found)

    @cached_property
    def _first_draw_rows(self) -> Mapping[tuple[str, str], int]:
        """First rows of the draws by channel and process."""
        first, found = 0, {}
        for process in self._processes:
            found[process.channel, process.name] = first
            first += process.per_tick
        return found

    def _find_draw_row(self, channel: str, name: str) -> int:
        """Return the first row of a process's draws, -1 where it does not act."""
        return self._first_draw_rows.get((channel, name), -1)

    @cached_property
    def _rules(self) -> FloatArray:
        """What a ping must be, as kernels know it."""
        choices = (list(CoordinateSystem).index(self.coordinates), list(BinMapping).index(self.bin_mapping))
        limits = (self.error_velocity_limit, self.min_good_share, self.minimum_range, self.maximum_range)
        return np.array((*choices, self.min_beams, *limits), dtype=np.float64)

    @cached_property
    def _schedule(self) -> PingSchedule:
        """When the pings of an ensemble are."""
        speed, slants, interval = self.sound.speed or SOUND_SPEED, self._slant_ranges, self.ping_interval
        reach = max(self.cells.end_distance / cosine for cosine in self.beams.slant_cosines)
        slots = (max(2.0 * reach / speed, interval), max(2.0 * self.maximum_range / speed, interval))
        about = (0.5 * float(slants.min() + slants.max()) / speed, 0.5 * self.maximum_range / speed)
        return schedule_pings(int(self.pings), int(self.bottom_pings), slots, about)

    @property
    def duration(self) -> float:
        """Return how long (s) an ensemble takes: 0 without propagation."""
        return self._schedule.duration + self.processing_time if self._models_travel_time else 0.0

    @property
    def max_latency(self) -> float:
        """Return how long (s) before it is told an ensemble begins."""
        return self.duration

    def _compute_ping_times(self, time: Times, delays: FloatArray) -> Times:
        """Return instants (n, p) s of ensembles told at (n,) s, `after` their beginning (p,) s; not before 0."""
        if not self._models_travel_time:
            return np.repeat(time[:, None], delays.size, axis=1)
        return np.maximum((time - self.duration)[:, None] + delays, 0.0)

    def count_ticks_per_ensemble(self, rate: float) -> int:
        """Return how many ticks of a rate (Hz) there are to an ensemble."""
        return max(math.ceil(self.duration * rate - 1e-9), 1)

    def _find_emitted_rows(self, ticks: Ticks) -> IntArray:
        """Return which rows tell of an ensemble."""
        every = self.count_ticks_per_ensemble(ticks.rate)
        is_told = (ticks.index % every == 0) & (not self._has_no_output)
        if self._models_travel_time:
            is_told &= ticks.index > 0
        return np.asarray(np.nonzero(is_told)[0])

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return none: what noise there is in a cell goes by its pings and its echo."""
        return {}

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return beams, cells, pings, axes and errors, at a rate (Hz) of ticks."""
        cells, per = self.cells, rate / self.count_ticks_per_ensemble(rate)
        motion = "taken out by the bottom's track" if self.motion_compensated else "kept in"
        lobes = "side lobes spoil what is beyond the boundary's distance" if self.side_lobes else "no side lobes"
        found = [
            *description.describe_beams(
                self.beams, (self.minimum_range, self.maximum_range, 0.0), own_hull=self.own_hull
            ),
            f"cells: {cells.count} of {cells.size:g} m, the first {cells.first_distance:g} m ahead; {lobes}",
            f"ensembles: {per:.3g} Hz of {self.pings} pings for the profile and {self.bottom_pings} for the bottom",
            f"axes: {self.coordinates}, bin mapping {self.bin_mapping}, own motion {motion}",
            description.describe_sound(self.transducer, self.sound.speed),
            f"one ping, beam and cell: stddev {self.ping_stddev:g} m/s, over the bottom {self.bottom.stddev:g} m/s",
        ]
        if self.backscatter is not None:
            loss = f"{self.backscatter.level:g} dB less 20 log r and {2.0 * self.backscatter.absorption:g} dB/m"
            found.append(f"echo: {loss}; cells are good from {self.backscatter.threshold:g} dB on")
        for name, one in (("profile", self.profile), ("bottom", self.bottom)):
            if one.has_long_term_errors:
                share = 100.0 * one.long_term_scale
                found.append(f"{name}, long term: deviations of {share:g} % and {one.long_term_offset:g} m/s")
        return tuple(found)

    def find_warnings(self, rotation_ws: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return that motion is taken out by a bottom that too few beams look down to, where it is so."""
        down = sum(pose.rotate(rotation_ws, (x, y, z))[2] < 0.0 for x, y, z in self.beams.axes.tolist())
        if not self.motion_compensated or down >= self.min_beams:
            return ()
        reason = (
            f"takes motion out by a bottom that it cannot see: {down} of its beams look down, and a velocity takes "
            f"{self.min_beams:g}; every one is NaN, but under something solid: keep the motion in, or turn it round"
        )
        return (("motion_compensated", reason),)

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes."""
        return self._processes

    def init(self, draws: FloatArray) -> AdcpState:
        """Return this serial number's scales and offsets."""
        systematic, drawn = np.zeros((2, 4)), draws.tolist()
        for process in self._processes:
            if process.initial:
                row, sheet = (0, self.profile) if process.channel == "profile" else (1, self.bottom)
                own, drawn = drawn[:4], drawn[4:]
                systematic[row, 0] = sheet.long_term_scale * own[0]
                systematic[row, 1:] = [sheet.long_term_offset * w for w in own[1:]]
        return AdcpState(systematic)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return what a perfect instrument would say, and what its errors depend on; NaN where a tick tells nothing.

        Raises `FieldError` where a body, the current or the speed of sound cannot be asked.
        """
        rows = self._find_emitted_rows(ticks)
        time = ticks.time[rows]
        validity_time = self._compute_ping_times(time, np.array([self._schedule.mean_profile_time]))[:, 0]
        there = motion.at(validity_time)
        true = get_sound_speed(environment, there)
        ratio = np.ones(validity_time.shape) if self.sound.speed is None else self.sound.speed / true
        turned = np.array(pose.from_rpy(0.0, 0.0, environment.heading))
        orientation, _ = self._compute_rotations(there.rotation_wb, turned, ensemble.INSTRUMENT)
        inputs = self._sample_profile(motion, environment, time, ratio, turned)
        perfect = inputs[CELL_BEAM_VELOCITY]
        if self.sound.speed is not None:
            perfect = self._sample_profile(motion, environment, time, np.ones(validity_time.shape), turned)[
                CELL_BEAM_VELOCITY
            ]
        inputs |= self._sample_bottom(motion, environment, time, turned)
        shown = self._average_ideal(inputs, perfect)
        shown |= {
            "time_of_validity": validity_time,
            "sound_speed": true,
            "orientation": self._rotate_to_instrument(orientation),
        }
        return {
            name: ensemble.expand_rows(array, rows, len(ticks)) for name, array in (*shown.items(), *inputs.items())
        }

    def _compute_rotations(
        self, rotation_ws: Quaternions, heading: FloatArray, coordinates: int
    ) -> tuple[Quaternions, Quaternions]:
        """Return the rotations (q, 4) from the sensor's axes to east, north, up and to those that are told in."""
        attitude, frames = np.empty(rotation_ws.shape), np.empty(rotation_ws.shape)
        ensemble.compute_rotations(
            rotation_ws, heading, np.array(self._instrument_rotation), coordinates, attitude, frames
        )
        return attitude, frames

    def _rotate_to_instrument(self, attitude: Quaternions) -> Quaternions:
        """Return the attitudes (n, 4) of the axes of `instrument` for those of the sensor's."""
        return multiply_arrays(attitude, np.array(pose.conjugate(self._instrument_rotation)))

    def _sample_profile(
        self, motion: Motion, environment: Environment, time: Times, ratio: FloatArray, heading: FloatArray
    ) -> dict[str, FloatArray]:
        """Return what the pings of ensembles told at (n,) s hear of the water, `ratio` (n,) being c0 / c."""
        n, p, (m, k) = time.size, int(self.pings), self._slant_ranges.shape
        instants = self._compute_ping_times(time, self._schedule.profile_times).reshape(-1)
        truth, reach = motion.at(instants), 2.0 * float(self._slant_ranges.max())
        met = find_echoes(self._single_ray_beams, motion, environment, instants, reach, self.own_hull)
        stretch = np.repeat(1.0 / ratio, p)
        bottom = BottomHits(met.range_in_reach, met.incidence)
        at, lobes = (truth, environment, instants), self.side_lobes and not self._is_classic
        found = find_cell_velocities(
            self.beams, self.cells, *at, stretch, bottom, side_lobes=lobes, as_points=self._is_classic
        )
        attitude, frames = self._compute_rotations(truth.rotation_wb, heading, int(self._rules[ensemble.COORDINATES]))
        shape = (n, p, m, k)
        return {
            CELL_BEAM_VELOCITY: found.along.reshape(shape),
            CELL_AXIAL_VELOCITY: found.axial.reshape(shape),
            ATTITUDE: attitude.reshape(n, p, 4),
            OUTPUT_ROTATION: frames.reshape(n, p, 4),
        }

    def _sample_bottom(
        self, motion: Motion, environment: Environment, time: Times, heading: FloatArray
    ) -> dict[str, FloatArray]:
        """Return what the pings for the bottom hear of ensembles told at (n,) s."""
        n, p, k = time.size, int(self.bottom_pings), len(self.beams.beams)
        instants = self._compute_ping_times(time, self._schedule.bottom_times).reshape(-1)
        truth = motion.at(instants)
        beams = self.beams.nearest_ray_beams if self.classic else self.beams
        met = find_echoes(beams, motion, environment, instants, self.maximum_range, self.own_hull)
        _, frames = self._compute_rotations(truth.rotation_wb, heading, int(self._rules[ensemble.COORDINATES]))
        own = np.empty((instants.size, 3))
        ensemble.rotate_to_sensor(truth.velocity_w, truth.rotation_wb, own)
        return {
            ECHO_RANGE: met.range_in_reach.reshape(n, p, k),
            BOTTOM_BEAM_VELOCITY: met.velocity.reshape(n, p, k),
            SENSOR_VELOCITY: own.reshape(n, p, 3),
            BOTTOM_OUTPUT_ROTATION: frames.reshape(n, p, 4),
        }

    def _average_ideal(self, inputs: Mapping[str, FloatArray], along: FloatArray) -> dict[str, AnyArray]:
        """Return what ensembles without errors say."""
        rules = self._rules.copy()
        rules[ensemble.ERROR_LIMIT], rules[ensemble.MIN_GOOD_SHARE] = math.inf, 0.0
        found = self._average_ensembles(rules, inputs, along, inputs[ECHO_RANGE], inputs[BOTTOM_BEAM_VELOCITY])
        return {name: found[name] for name in (*IDEAL_OUTPUTS, RELATIVE_VELOCITY[0]) if name in found}

    def _average_ensembles(
        self,
        rules: FloatArray,
        inputs: Mapping[str, FloatArray],
        received: FloatArray,
        ranges: FloatArray,
        bottom: FloatArray,
    ) -> dict[str, AnyArray]:
        """Return what ensembles say whose pings hear velocities and show ranges."""
        laid = ensemble.ProfilerGeometry(self.beams, get_forward_cosines(self.beams), self.cells)
        told = ensemble.average_profile(rules, laid, inputs, received) | ensemble.average_bottom(
            rules, laid, inputs, ranges, bottom
        )
        if not self.motion_compensated:
            return told
        kept = {RELATIVE_VELOCITY[0]: told["velocity"].copy()}
        ensemble.add_motion(told["velocity"], told["bottom_velocity"])
        return kept | told

    def measure(
        self, state: AdcpState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[AdcpState, Measurement]:
        """Return the state, which stays, and what the ensembles say; NaN but for constants where a tick tells none."""
        n, emitted_rows = len(ticks), self._find_emitted_rows(ticks)
        inputs = {name: np.ascontiguousarray(ideal[name][emitted_rows]) for name in ERROR_INPUTS}
        true = ideal["sound_speed"][emitted_rows]
        assumed = true if self.sound.speed is None else np.full(emitted_rows.shape, self.sound.speed)
        received, echo, rho = self._add_profile_errors(state, inputs, assumed / true, emitted_rows, draws)
        ranges, track = np.empty(inputs[ECHO_RANGE].shape), np.empty(inputs[ECHO_RANGE].shape)
        sigmas = (float(self.bottom.stddev), float(self.range_stddev))
        rows = (self._find_draw_row("bottom", "white"), self._find_draw_row("range", "white"))
        geometry = (assumed / true, self._is_phased_array, self.beams.axes, self.beams.axis, inputs[SENSOR_VELOCITY])
        systematic = (float(state.systematic[1, 0]), state.systematic[1, 1:])
        heard_bottom = (inputs[ECHO_RANGE], inputs[BOTTOM_BEAM_VELOCITY], *geometry, *systematic)
        ensemble.add_bottom_errors(*heard_bottom, sigmas, rows, emitted_rows, draws, track, ranges)
        ensemble.add_adcp_faults((received, track, ranges), ideal, emitted_rows)
        found = self._average_ensembles(self._rules, inputs, received, ranges, track)
        wanted = "beam_velocity" if self.coordinates is CoordinateSystem.BEAM else "velocity"
        is_good = np.isfinite(found[wanted]).any(axis=(1, 2))
        lost = np.isnan(inputs[CELL_BEAM_VELOCITY]).all(axis=1)
        found |= {"echo": np.where(lost, math.nan, echo), "correlation": np.where(lost, math.nan, rho)}
        found |= {"sound_speed": assumed, "time_of_validity": ideal["time_of_validity"][emitted_rows]}
        found["orientation"] = ideal["orientation"][emitted_rows]
        arrays = {name: ensemble.expand_rows(array, emitted_rows, n) for name, array in found.items()}
        for name, constant in (("cell_distance", self.cell_distance), ("beam_direction", self.beam_direction)):
            arrays[name] = np.repeat(constant[None], n, axis=0)
        arrays = {output.name: arrays[output.name] for output in self.outputs}
        emitted, valid = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        emitted[emitted_rows], valid[emitted_rows] = True, is_good
        return state, Measurement(arrays, {}, valid, emitted)

    @property
    def _is_phased_array(self) -> bool:
        return self.transducer is Transducer.PHASED_ARRAY

    def _add_profile_errors(
        self,
        state: AdcpState,
        inputs: Mapping[str, FloatArray],
        ratio: FloatArray,
        emitted_rows: IntArray,
        draws: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the velocities (n, p, m, k) that pings hear, echo (dB) and correlation (n, m, k)."""
        along = inputs[CELL_BEAM_VELOCITY]
        n, _, m, k = along.shape
        factor, lock, echo, rho = (np.empty((n, m, k)) for _ in range(4))
        factor[:], lock[:], echo[:], rho[:] = 1.0, 1.0, math.nan, 1.0
        if self.backscatter is not None:
            figures = _strength_parameters(self.backscatter)
            ensemble.compute_echo_effects(*figures, self._slant_ranges, 1.0 / ratio, factor, lock, echo, rho)
        rows = (self._find_draw_row("profile", "white"), self._find_draw_row("profile", "lock"))
        systematic, out = state.systematic[0], np.empty(along.shape)
        errors = (float(systematic[0]), systematic[1:], self.ping_stddev, factor, lock)
        water_heard = (along, inputs[CELL_AXIAL_VELOCITY], ratio, self._is_phased_array, self.beams.axes)
        ensemble.add_cell_errors(*water_heard, *errors, *rows, emitted_rows, draws, out)
        return out, echo, rho

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what errors start from where no echo of the bottom comes back in some ensembles, `rows` (n,)."""
        lost = rows[:, None, None]
        return {**ideal, **{name: np.where(lost, math.nan, ideal[name]) for name in (ECHO_RANGE, BOTTOM_BEAM_VELOCITY)}}

    def without_errors(self) -> Adcp:
        """Return the same sheet without errors: it knows the speed of sound and loses no ping."""
        return replace(
            self,
            profile=IDEAL_ACCURACY,
            bottom=IDEAL_ACCURACY,
            range_stddev=0.0,
            backscatter=None,
            sound=TRUE_SOUND,
            error_velocity_limit=math.inf,
            min_good_share=0.0,
        )

    @classmethod
    def example_spec(cls) -> Adcp:
        """Return a sheet in which every parameter acts, in the shallow water where the laws are held."""
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        made = make_janus_beams(math.radians(25.0), [math.radians(a) for a in X_AZIMUTHS]).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in made), BeamWeighting.PATTERN, 0.5),
            cells=DepthCells(4, 0.7, 0.1, 0.5, 0.05, 3),
            pings=3,
            bottom_pings=2,
            ping_interval=0.0065,
            processing_time=0.003,
            minimum_range=2.3,
            maximum_range=4.2,
            profile=Accuracy(0.05, 0.01, 0.005),
            bottom=Accuracy(0.02, 0.01, 0.005),
            reference_cell_size=0.25,
            range_stddev=0.02,
            backscatter=EchoStrength(14.0, 0.5, 0.8, 6.0, 2.0),
            sound=Sound(1480.0),
            coordinates=CoordinateSystem.SHIP,
            motion_compensated=True,
            error_velocity_limit=0.04,
            min_good_share=0.4,
            reference=pose.from_rpy(0.1, 0.2, 0.3),
            dialect=MessageDialect.DSROS,
        )


def _strength_parameters(given: EchoStrength) -> tuple[float, float, float, float, float]:
    """Return the numbers of an echo's strength, as kernels take them."""
    level, absorption, correlation = float(given.level), float(given.absorption), float(given.correlation)
    return level, absorption, correlation, float(given.threshold), float(given.slope)


LENGTHS = ("minimum_range", "maximum_range", "reference_cell_size", "range_stddev")
FIELD_LIMITS = (
    ("ping_interval", 0.0, 1e6),
    ("processing_time", 0.0, 1e3),
    ("min_good_share", 0.0, 1.0),
    *((name, 0.0, 1e5) for name in LENGTHS),
)
"""Fields that are finite numbers, and from where to where each may go."""

COUNT_LIMITS = (("pings", 1, MAX_PINGS), ("bottom_pings", 0, MAX_PINGS), ("min_beams", 3, 16))
"""Fields that are whole numbers, and from where to where each may go."""
