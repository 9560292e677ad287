"""Acoustic Doppler current profiler (ADCP): velocity of the water in depth cells, as means over ensembles of pings.

    velocity_m = mean_p R_p (-argmin_v sum_k (b_pmk' - u_k.v)^2) + velocity over the bottom, if motion-compensated

over the good pings p of an ensemble, with the symbols of `sensors.doppler`. b_pmk' is the measured velocity along beam
k in cell m, at the height of the cell if bin mapping is on (`doppler.ensemble`, `doppler.cells`). As for a DVL it is
positive if the sensor moves along the beam. The result is the velocity of the water relative to the instrument, or to
the ground if it is motion-compensated. `relative_velocity` then has the former, which needs no bottom. R_p rotates from
the sensor's frame to the coordinate system, by the attitude at the ping:

    beam          none: only the velocities along the beams, `velocity` is NaN
    instrument    the sensor's axes, rotated by `reference`
    ship          the axes of `instrument`, levelled: x keeps its heading, z is up
    earth         east, north, up

Each ping has its own time of validity, and the vehicle moves between pings. Bottom-track pings alternate with profile
pings (`doppler.ensemble`). They give `bottom_velocity`, the velocity of the instrument over the bottom in the same
axes. `orientation` is the rotation from the axes of `instrument` to east, north, up at the time of validity of the
ensemble, without errors of a compass. This time is the mean over the profile pings. At ticks without an ensemble
`emitted` is false and the arrays are NaN.

    standard deviation of one ping, beam and cell   stddev reference_cell_size / size
    of an ensemble                                  1 / sqrt(pings) of that

Sources: RD Instruments, How does depth cell size control the variance of the velocity profile (FAQ), for the cell
size; those of `doppler.ensemble` and `doppler.cells`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from navsense.core import pose
from navsense.core.errors import SensorError
from navsense.core.field_metadata import NOT_IN_FILE, in_file
from navsense.core.random_streams import RandomProcess, find_first_rows, split_initial_draws
from navsense.core.rotation import multiply_arrays
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times, Vectors
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.specification import Noise
from navsense.sensors.base import NO_PHYSICAL_EFFECT, Measurement, Output
from navsense.sensors.doppler import ensemble
from navsense.sensors.doppler.beam_errors import BeamVelocityErrors, EchoStrength, make_long_term_errors
from navsense.sensors.doppler.beams import Beams, BeamWeighting, make_x_beams
from navsense.sensors.doppler.cells import DepthCells, find_cell_velocities
from navsense.sensors.doppler.echoes import SOUND_SPEED, compute_sensor_state, find_echoes, get_sound_speed
from navsense.sensors.doppler.ensemble import BinMapping, CoordinateSystem, EnsembleInputs
from navsense.sensors.doppler.specification import (
    IDENTITY_ROTATION,
    TRUE_SOUND,
    MessageDialect,
    Transducer,
    describe_sound,
    parse_shape,
    validate_counts,
    validate_duration,
    validate_instrument,
)
from navsense.sensors.range import Cone, Sound

DEFAULT_JANUS_ANGLE = math.radians(20.0)
"""rad: default Janus angle of an ADCP."""

MAX_PINGS = 1000
"""Largest number of pings of one kind in an ensemble."""

NO_VELOCITY_ERRORS = BeamVelocityErrors()


class AdcpState(NamedTuple):
    """State of one instrument: scale errors and offsets (2, 4) of the profile and of the bottom track."""

    long_term_errors: FloatArray


@dataclass(frozen=True)
class Adcp:
    """Specification of an acoustic Doppler current profiler. Raises `SensorError` for invalid values.

    beams: axes, positions and shapes.
    cells: depth cells.
    pings, bottom_pings: profile pings and bottom-track pings of an ensemble.
    ping_interval: shortest time between pings, s.
    processing_time: from the last ping to the output, s.
    propagation: true if sound has a travel time. If false, all pings are at the tick.
    minimum_range, maximum_range: of the bottom along a beam, m.
    profile, bottom: errors of the velocities along the beams.
    reference_cell_size: cell size at which the standard deviation of the profile holds, m; 0 for any size.
    range_stddev: standard deviation of a beam's range, m.
    backscatter: strength of the water's echo. None: all echoes are strong.
    sound: assumed speed of sound; the default `TRUE_SOUND` is the true speed, without an error.
    transducer: pistons or a phased array.
    coordinates: axes of the velocities.
    bin_mapping: mapping of the cells of tilted beams to common heights.
    motion_compensated: true if `velocity` is relative to the ground.
    min_beams: fewest beams for a solution.
    error_velocity_limit: a ping above it is rejected, m/s.
    min_good_share: fraction of good pings below which a cell is NaN.
    side_lobes: true if side lobes contaminate cells near the bottom and the surface.
    reference: rotation (w, x, y, z) from the sensor's frame to the axes of `instrument`.
    own_hull: true if beams hit the bodies of the sensor's own model.
    classic: true for the rules of a classic plug-in.
    dialect: the plug-in whose messages the sensor sends, and whose rules apply with `classic`.

    >>> errors = ns.sensors.BeamVelocityErrors(stddev=0.02)
    >>> adcp = ns.sensors.Adcp(cells=ns.sensors.DepthCells(count=20, size=1.0), profile=errors)
    >>> adcp.cells
    DepthCells(count=20, size=1.0)
    """

    beams: Beams = field(default_factory=lambda: make_x_beams(DEFAULT_JANUS_ANGLE))
    cells: DepthCells = field(default_factory=DepthCells)
    pings: int = 1
    bottom_pings: int = 1
    ping_interval: float = 0.0
    processing_time: float = 0.0
    propagation: bool = True
    minimum_range: float = field(default=0.0, metadata=in_file("min"))
    maximum_range: float = field(default=100.0, metadata=in_file("max"))
    profile: BeamVelocityErrors = NO_VELOCITY_ERRORS
    bottom: BeamVelocityErrors = NO_VELOCITY_ERRORS
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
    classic: bool = field(default=False, metadata=NOT_IN_FILE)
    dialect: MessageDialect = field(default=MessageDialect.OWN, metadata=NO_PHYSICAL_EFFECT)

    # See `sensors.base.Sensor`; rotations about the vertical leave a reading unchanged.
    type: ClassVar[str] = "adcp"
    invariance_tolerance: ClassVar[float] = 1e-9
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    fault_input_arrays: ClassVar[tuple[str, ...]] = ensemble.FAULT_INPUT_ARRAYS

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_counts(*((name, vars(self)[name], lowest, highest) for name, lowest, highest in COUNT_LIMITS))
        validate_instrument(self, FIELD_LIMITS)
        if self.min_beams > len(self.beams.beams):
            allowed = f"must be at most {len(self.beams.beams)}, the number of beams"
            raise SensorError("min_beams", self.min_beams, allowed=allowed, field="min_beams")
        if self.motion_compensated and self.bottom_pings == 0:
            remedy = "give pings for the bottom, or set motion_compensated to false"
            allowed = "must be at least 1 for motion compensation"
            raise SensorError("bottom_pings", 0, allowed=allowed, remedy=remedy, field="bottom_pings")
        self.beams.check_janus_angles()
        validate_duration(self.duration)

    @property
    def _is_classic(self) -> bool:
        """True if the rules of `dsros_dvl` apply: cells are points, no side lobes, sound needs no time."""
        return self.classic and self.dialect is MessageDialect.DSROS

    @property
    def _models_travel_time(self) -> bool:
        return self.propagation and not self._is_classic

    @property
    def uses_current(self) -> bool:
        """True: it measures the velocity of the water."""
        return True

    @property
    def cell_distance(self) -> FloatArray:
        """Distances (m,) m of the cells' centres along the instrument axis."""
        return self.cells.distances

    @cached_property
    def beam_direction(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams, in the axes of `instrument`."""
        return np.array([pose.rotate(self._instrument_rotation, (x, y, z)) for x, y, z in self.beams.axes.tolist()])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading."""
        m, k = int(self.cells.count), len(self.beams.beams)
        arrays = (*ensemble.OUTPUTS, ensemble.RELATIVE_VELOCITY) if self.motion_compensated else ensemble.OUTPUTS
        return tuple(Output(name, parse_shape(letters, k, m), unit) for name, letters, unit in arrays)

    @cached_property
    def _instrument_rotation(self) -> Quaternion:
        """Rotation from the sensor's frame to the instrument's, at unit length."""
        return pose.normalize(self.reference)

    @cached_property
    def _slant_ranges(self) -> FloatArray:
        """Assumed slant ranges (m, k) m of the cells."""
        return self.cells.distances[:, None] / self.beams.positive_janus_cosines

    @cached_property
    def ping_stddev(self) -> float:
        """Standard deviation (m/s) of one ping in one beam and cell."""
        reference = self.reference_cell_size
        return self.profile.stddev * (reference / self.cells.size if reference > 0.0 else 1.0)

    @cached_property
    def _processes(self) -> tuple[RandomProcess, ...]:
        """Random processes; those that are constant during a run are first."""
        k, m = len(self.beams.beams), int(self.cells.count)
        pings, bottom = int(self.pings) * m * k, int(self.bottom_pings) * k
        processes = [
            RandomProcess(channel, "long_term", initial=4, per_tick=0)
            for channel, errors, count in (("profile", self.profile, 1), ("bottom", self.bottom, bottom))
            if errors.has_long_term_errors and count
        ]
        for channel, name, acts, count in (
            ("profile", "white", self.ping_stddev > 0.0, pings),
            ("profile", "lock", self.backscatter is not None, pings),
            ("bottom", "white", self.bottom.stddev > 0.0, bottom),
            ("range", "white", self.range_stddev > 0.0, bottom),
        ):
            if acts and count:
                processes.append(
                    RandomProcess(channel, name, per_tick=count, kind="uniform" if name == "lock" else "normal")
                )
        return tuple(processes)

    @cached_property
    def _first_draw_rows(self) -> Mapping[tuple[str, str], int]:
        """First rows of the draws by channel and process."""
        return find_first_rows(self._processes)

    def _find_draw_row(self, channel: str, name: str) -> int:
        """Return the first row of a process's draws, -1 if it does not act."""
        return self._first_draw_rows.get((channel, name), -1)

    @cached_property
    def _rules(self) -> ensemble.EnsembleRules:
        """Choices and limits of the means."""
        return ensemble.EnsembleRules(
            float(list(CoordinateSystem).index(self.coordinates)),
            float(list(BinMapping).index(self.bin_mapping)),
            float(self.min_beams),
            float(self.error_velocity_limit),
            float(self.min_good_share),
            float(self.minimum_range),
            float(self.maximum_range),
        )

    @cached_property
    def _geometry(self) -> ensemble.ProfilerGeometry:
        """Beams and cells."""
        beams, distances, size = self.beams, self.cells.distances, float(self.cells.size)
        return ensemble.ProfilerGeometry(
            beams.axes, beams.instrument_axis, beams.positive_janus_cosines, distances, size
        )

    @cached_property
    def _schedule(self) -> ensemble.PingSchedule:
        """The schedule of the pings of an ensemble."""
        speed, slant_ranges, interval = self.sound.speed or SOUND_SPEED, self._slant_ranges, self.ping_interval
        profile_range = max(self.cells.end_distance / cosine for cosine in self.beams.janus_cosines)
        durations = (max(2.0 * profile_range / speed, interval), max(2.0 * self.maximum_range / speed, interval))
        delays = (0.5 * float(slant_ranges.min() + slant_ranges.max()) / speed, 0.5 * self.maximum_range / speed)
        return ensemble.schedule_pings(int(self.pings), int(self.bottom_pings), durations, delays)

    @property
    def duration(self) -> float:
        """Duration (s) of an ensemble: 0 without propagation."""
        return self._schedule.duration + self.processing_time if self._models_travel_time else 0.0

    @property
    def max_age(self) -> float:
        """Time (s) from the beginning of an ensemble to the reading."""
        return self.duration

    def _compute_ping_times(self, time: Times, delays: FloatArray) -> Times:
        """Return instants (n, p) s of pings, `delays` (p,) s after the beginning of ensembles output at (n,) s."""
        if not self._models_travel_time:
            return np.repeat(time[:, None], delays.size, axis=1)
        return np.maximum((time - self.duration)[:, None] + delays, 0.0)

    def count_ticks_per_ensemble(self, rate: float) -> int:
        """Return the number of ticks of a rate (Hz) that an ensemble needs."""
        return max(math.ceil(self.duration * rate - 1e-9), 1)

    def _find_emitted_rows(self, ticks: Ticks) -> IntArray:
        """Return the rows with an ensemble; none in axes that the classic plug-in does not have."""
        emitted = ticks.index % self.count_ticks_per_ensemble(ticks.rate) == 0
        if self._is_classic and self.coordinates in (CoordinateSystem.SHIP, CoordinateSystem.EARTH):
            emitted[:] = False
        if self._models_travel_time:
            emitted &= ticks.index > 0
        return np.asarray(np.nonzero(emitted)[0])

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return an empty mapping: the noise of a cell depends on its pings and echoes."""
        return {}

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return lines on beams, cells, pings, axes and errors, at a rate (Hz) of ticks."""
        cells, ensemble_rate = self.cells, rate / self.count_ticks_per_ensemble(rate)
        motion = "removed by bottom track" if self.motion_compensated else "not removed"
        lobes = "cells that side lobes from the bottom or the surface reach are invalid"
        lobes = lobes if self.side_lobes else "no side lobes"
        stddevs = f"{self.ping_stddev:g} m/s in a cell, {self.bottom.stddev:g} m/s over the bottom"
        lines = [
            *self.beams.describe((self.minimum_range, self.maximum_range, 0.0), own_hull=self.own_hull),
            f"cells: {cells.count} of {cells.size:g} m, the first at {cells.first_distance:g} m; {lobes}",
            f"ensembles: {ensemble_rate:.3g} Hz, {self.pings} profile pings and {self.bottom_pings} bottom pings each",
            f"axes: {self.coordinates}, bin mapping {self.bin_mapping}, motion of the sensor {motion}",
            describe_sound(self.transducer, self.sound.speed),
            f"noise of a beam and ping: stddev {stddevs}",
        ]
        if self.backscatter is not None:
            loss = f"{self.backscatter.level:g} dB minus 20 log10(r) and {2.0 * self.backscatter.absorption:g} dB/m"
            lines.append(f"echo: {loss}; half of the cells at {self.backscatter.threshold:g} dB are good")
        for name, errors in (("profile", self.profile), ("bottom", self.bottom)):
            if errors.has_long_term_errors:
                scale, offset = 100.0 * errors.long_term_scale, errors.long_term_offset
                lines.append(f"{name}, long term: scale error {scale:g} %, offset {offset:g} m/s (standard deviations)")
        return tuple(lines)

    def find_warnings(self, rotation_ws: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return a warning for motion compensation by bottom track if too few beams point down."""
        down = sum(pose.rotate(rotation_ws, (x, y, z))[2] < 0.0 for x, y, z in self.beams.axes.tolist())
        if not self.motion_compensated or down >= self.min_beams:
            return ()
        reason = (
            f"needs bottom track, but only {down} beams point down and a velocity needs {self.min_beams:g}: "
            "the velocities are NaN unless a body is above the sensor; turn motion compensation off, or turn the sensor"
        )
        return (("motion_compensated", reason),)

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes."""
        return self._processes

    def init(self, draws: FloatArray) -> AdcpState:
        """Return the scale errors and offsets of an instrument."""
        long_term_errors, initial = np.zeros((2, 4)), split_initial_draws(self._processes, draws)
        for row, (channel, errors) in enumerate((("profile", self.profile), ("bottom", self.bottom))):
            if (channel, "long_term") in initial:
                long_term_errors[row] = make_long_term_errors(errors, initial[channel, "long_term"].tolist())
        return AdcpState(long_term_errors)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the ideal outputs, and the true values that errors depend on; NaN for ticks without an ensemble.

        Raises `FieldError` if a body, the current or the speed of sound has no value there.
        """
        rows = self._find_emitted_rows(ticks)
        time = ticks.time[rows]
        time_of_validity = self._compute_ping_times(time, np.array([self._schedule.mean_profile_time]))[:, 0]
        motion_block = motion.at(time_of_validity)
        sound_speed, ones = get_sound_speed(environment, motion_block), np.ones(time_of_validity.shape)
        ratio = ones if self.sound.speed is None else self.sound.speed / sound_speed
        enu_rotation = np.array(pose.from_rpy(0.0, 0.0, environment.heading))
        attitude, _ = self._compute_rotations(motion_block.rotation_wb, enu_rotation, ensemble.INSTRUMENT)
        profile = self._sample_profile(motion, environment, time, ratio, enu_rotation)
        inputs = EnsembleInputs(*profile, *self._sample_bottom(motion, environment, time, enu_rotation))
        velocity = inputs.true_beam_velocity
        if self.sound.speed is not None:
            velocity = self._sample_profile(motion, environment, time, ones, enu_rotation)[0]
        rules = self._rules._replace(error_velocity_limit=math.inf, min_good_share=0.0)
        means = self._average_ensembles(
            rules, inputs, velocity, inputs.true_bottom_range, inputs.true_bottom_beam_velocity
        )
        names = (*ensemble.IDEAL_OUTPUTS, ensemble.RELATIVE_VELOCITY[0])
        arrays = {name: means[name] for name in names if name in means}
        arrays |= {"time_of_validity": time_of_validity, "sound_speed": sound_speed}
        arrays["orientation"] = multiply_arrays(attitude, np.array(pose.conjugate(self._instrument_rotation)))
        arrays |= inputs._asdict()
        return {name: ensemble.expand_rows(array, rows, len(ticks)) for name, array in arrays.items()}

    def _compute_rotations(
        self, rotation_ws: Quaternions, enu_rotation: FloatArray, coordinates: int
    ) -> tuple[Quaternions, Quaternions]:
        """Return rotations (q, 4) from the sensor's frame to east, north, up and to a coordinate system."""
        attitude, output_rotation = np.empty(rotation_ws.shape), np.empty(rotation_ws.shape)
        reference = np.array(self._instrument_rotation)
        ensemble.compute_rotations(rotation_ws, enu_rotation, reference, coordinates, attitude, output_rotation)
        return attitude, output_rotation

    def _sample_profile(
        self, motion: Motion, environment: Environment, time: Times, ratio: FloatArray, enu_rotation: FloatArray
    ) -> tuple[FloatArray, FloatArray, Quaternions, Quaternions]:
        """Return the first four `EnsembleInputs` of ensembles output at (n,) s; `ratio` (n,) is c0 / c."""
        n, p, (m, k) = time.size, int(self.pings), self._slant_ranges.shape
        instants = self._compute_ping_times(time, self._schedule.profile_times).reshape(-1)
        motion_block, max_distance = motion.at(instants), 2.0 * float(self._slant_ranges.max())
        echoes = find_echoes(self.beams.single_ray_beams, motion, environment, instants, max_distance, self.own_hull)
        velocities = find_cell_velocities(
            self.beams,
            self.cells,
            motion_block,
            environment,
            instants,
            np.repeat(1.0 / ratio, p),
            echoes,
            side_lobes=self.side_lobes and not self._is_classic,
            as_points=self._is_classic,
        )
        coordinates, shape = int(self._rules.coordinates), (n, p, m, k)
        attitude, rotation = self._compute_rotations(motion_block.rotation_wb, enu_rotation, coordinates)
        return (
            velocities.beam_velocity.reshape(shape),
            velocities.axial_velocity.reshape(shape),
            attitude.reshape(n, p, 4),
            rotation.reshape(n, p, 4),
        )

    def _sample_bottom(
        self, motion: Motion, environment: Environment, time: Times, enu_rotation: FloatArray
    ) -> tuple[FloatArray, FloatArray, Vectors, Quaternions]:
        """Return the last four `EnsembleInputs` of ensembles output at (n,) s."""
        n, p, k = time.size, int(self.bottom_pings), len(self.beams.beams)
        instants = self._compute_ping_times(time, self._schedule.bottom_times).reshape(-1)
        motion_block = motion.at(instants)
        beams = self.beams.nearest_ray_beams if self.classic else self.beams
        echoes = find_echoes(beams, motion, environment, instants, self.maximum_range, self.own_hull)
        _, rotation = self._compute_rotations(motion_block.rotation_wb, enu_rotation, int(self._rules.coordinates))
        _, velocity = compute_sensor_state(motion_block, environment.heading)
        return (
            echoes.finite_range.reshape(n, p, k),
            echoes.beam_velocity.reshape(n, p, k),
            velocity.reshape(n, p, 3),
            rotation.reshape(n, p, 4),
        )

    def _average_ensembles(
        self,
        rules: ensemble.EnsembleRules,
        inputs: EnsembleInputs,
        velocity: FloatArray,
        bottom_range: FloatArray,
        bottom_velocity: FloatArray,
    ) -> dict[str, AnyArray]:
        """Return by name the means over pings with measured velocities and ranges."""
        means = ensemble.average_profile(rules, self._geometry, inputs, velocity)
        means |= ensemble.average_bottom(rules, self._geometry, inputs, bottom_range, bottom_velocity)
        if self.motion_compensated:
            means[ensemble.RELATIVE_VELOCITY[0]] = means["velocity"]
            means["velocity"] = means["velocity"] + means["bottom_velocity"][:, None]
        return means

    def measure(
        self, state: AdcpState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[AdcpState, Measurement]:
        """Return the state, which does not change, and the readings; ticks without an ensemble are NaN."""
        n, rows = len(ticks), self._find_emitted_rows(ticks)
        inputs = EnsembleInputs(*(np.ascontiguousarray(ideal[name][rows]) for name in EnsembleInputs._fields))
        sound_speed = ideal["sound_speed"][rows]
        assumed = sound_speed if self.sound.speed is None else np.full(rows.shape, self.sound.speed)
        ratio, bottom_range = assumed / sound_speed, np.empty(inputs.true_bottom_range.shape)
        velocity, echo, correlation = self._add_profile_errors(state, inputs, ratio, rows, draws)
        bottom_velocity = np.empty(bottom_range.shape)
        ensemble.add_bottom_errors(
            inputs.true_bottom_range,
            inputs.true_bottom_beam_velocity,
            inputs.sensor_velocity,
            ratio,
            self.transducer is Transducer.PHASED_ARRAY,
            self.beams.axes,
            self.beams.instrument_axis,
            state.long_term_errors[1],
            (float(self.bottom.stddev), float(self.range_stddev)),
            (self._find_draw_row("bottom", "white"), self._find_draw_row("range", "white"), rows, draws),
            bottom_velocity,
            bottom_range,
        )
        ensemble.add_faults((velocity, bottom_velocity, bottom_range), ideal, rows)
        means = self._average_ensembles(self._rules, inputs, velocity, bottom_range, bottom_velocity)
        profile = means["beam_velocity" if self.coordinates is CoordinateSystem.BEAM else "velocity"]
        is_invalid = np.isnan(inputs.true_beam_velocity).all(axis=1)
        means |= {
            "echo": np.where(is_invalid, math.nan, echo),
            "correlation": np.where(is_invalid, math.nan, correlation),
            "sound_speed": assumed,
            "time_of_validity": ideal["time_of_validity"][rows],
            "orientation": ideal["orientation"][rows],
        }
        arrays = {name: ensemble.expand_rows(array, rows, n) for name, array in means.items()}
        for name, constant in (("cell_distance", self.cell_distance), ("beam_direction", self.beam_direction)):
            arrays[name] = np.repeat(constant[None], n, axis=0)
        arrays = {output.name: arrays[output.name] for output in self.outputs}
        emitted, valid = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        emitted[rows], valid[rows] = True, np.isfinite(profile).any(axis=(1, 2))
        return state, Measurement(arrays, {}, valid, emitted)

    def _add_profile_errors(
        self, state: AdcpState, inputs: EnsembleInputs, ratio: FloatArray, rows: IntArray, draws: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the measured velocities (n, p, m, k) of pings, echoes (dB) and correlations (n, m, k)."""
        n, _, m, k = inputs.true_beam_velocity.shape
        factor, lock_probability, echo, correlation = (np.empty((n, m, k)) for _ in range(4))
        factor[:], lock_probability[:], echo[:], correlation[:] = 1.0, 1.0, math.nan, 1.0
        if self.backscatter is not None:
            effects = (factor, lock_probability, echo, correlation)
            ensemble.compute_cell_echo_effects(self.backscatter.parameters, self._slant_ranges, 1.0 / ratio, *effects)
        velocity = np.empty(inputs.true_beam_velocity.shape)
        ensemble.add_cell_errors(
            inputs.true_beam_velocity,
            inputs.true_axial_velocity,
            ratio,
            self.transducer is Transducer.PHASED_ARRAY,
            self.beams.axes,
            state.long_term_errors[0],
            float(self.ping_stddev),
            factor,
            lock_probability,
            (self._find_draw_row("profile", "white"), self._find_draw_row("profile", "lock"), rows, draws),
            velocity,
        )
        return velocity, echo, correlation

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return the ideal values without bottom echoes in the ensembles `rows` (n,)."""
        names = ("true_bottom_range", "true_bottom_beam_velocity")
        return {**ideal, **{name: np.where(rows[:, None, None], math.nan, ideal[name]) for name in names}}

    def without_errors(self) -> Adcp:
        """Return the same spec without errors: no assumed speed of sound, no loss of pings."""
        return replace(
            self,
            profile=NO_VELOCITY_ERRORS,
            bottom=NO_VELOCITY_ERRORS,
            range_stddev=0.0,
            backscatter=None,
            sound=TRUE_SOUND,
            error_velocity_limit=math.inf,
            min_good_share=0.0,
        )

    @classmethod
    def example_spec(cls) -> Adcp:
        """Return a spec in which every field acts, for the shallow water of the example world."""
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        beams = make_x_beams(math.radians(25.0)).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in beams), BeamWeighting.PATTERN, 0.5),
            cells=DepthCells(4, 0.7, 0.1, 0.5, 0.05, 3),
            pings=3,
            bottom_pings=2,
            ping_interval=0.0065,
            processing_time=0.003,
            minimum_range=2.3,
            maximum_range=4.2,
            profile=BeamVelocityErrors(0.05, 0.01, 0.005),
            bottom=BeamVelocityErrors(0.02, 0.01, 0.005),
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


FIELD_LIMITS = (
    ("ping_interval", 0.0, 1e6),
    ("min_good_share", 0.0, 1.0),
    ("reference_cell_size", 0.0, 1e5),
    ("range_stddev", 0.0, 1e5),
)
"""Limits of the fields that only an ADCP has."""

COUNT_LIMITS = (("pings", 1, MAX_PINGS), ("bottom_pings", 0, MAX_PINGS), ("min_beams", 3, 16))
"""Limits of whole numbers."""
