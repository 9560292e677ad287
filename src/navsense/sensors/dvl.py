"""Doppler velocity log: velocity over the bottom or through the water, out of three beams or more.

    velocity = argmin_v sum_k (b_k - u_k.v)^2 / sigma_k^2,   covariance = (sum_k u_k u_k^T / sigma_k^2)^-1

over the good beams, u_k the axes in the sensor's frame, b_k what each hears (`_doppler.ping`): positive when the sensor
moves along the beam. A beam is a cone of rays into the world (`_parse_janus.echoes`), or crosses a layer of water
(`_parse_janus.layer`). Of four beams at 30 degrees the covariance is sigma^2 diag(2, 2, 1/3). The error velocity is
what is left of b that no velocity explains, scaled to the variance of a horizontal one.

    altitude   height of the sensor above the plane through what its beams met, by its own attitude
    course     of the velocity over ground, from north, clockwise, [0, 2 pi); speed its horizontal part

A ping told at t went out 2 r / c before, r the farthest range, and is about the instant when its echo left the bottom,
the time of validity: the mean range over c after it went out; what is through the water is about when the echo left the
middle of the layer. It goes out no sooner than the last was told, so a DVL tells of fewer the deeper the bottom is;
ticks that tell nothing are not emitted and NaN. Where the bottom is never tracked, nobody waits for it. Beside single
pings there may be the long-term velocity, a filter over them (`_parse_janus.longterm`).

Sources: Teledyne RD Instruments, ADCP Coordinate Transformation (951-6079-00), for the geometry; facts of the two
classic plug-ins, whose documented rules hold where `classic` is set and the `dialect` is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from navsense import pose
from navsense.clock import Clock
from navsense.environment.base import Environment
from navsense.environment.water import MIN_SOUND_SPEED
from navsense.errors import SensorError
from navsense.motion.base import Motion
from navsense.noise.channel import NEUTRAL, Noise, make_example_noise
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.random_streams import RandomProcess
from navsense.sensors._cross_axis import check_numbers
from navsense.sensors.base import MESSAGE_ONLY, TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.doppler import (
    beam_inputs,
    datasheet,
    description,
    long_term_filter,
    ping,
)
from navsense.sensors.doppler.beam_errors import DopplerTrack, EchoStrength
from navsense.sensors.doppler.beams import Beams, BeamWeighting, make_janus_beams
from navsense.sensors.doppler.echoes import (
    SOUND_SPEED,
    FixedMotionBlock,
    compute_echo_timing,
    compute_platform_state,
    compute_receive_times,
    compute_transmit_times,
    find_echoes,
    get_sound_speed,
)
from navsense.sensors.doppler.long_term_filter import LongTermFilter
from navsense.sensors.doppler.ping import (
    ATTITUDE,
    BOTTOM_BEAM_VELOCITY,
    ECHO_INCIDENCE,
    ECHO_RANGE,
    LAYER_FAR_BOUNDARY_KEY,
    LISTENING_TIME,
    OUTPUTS,
    PER_BEAM,
    SENSOR_VELOCITY,
    TIME_OF_VALIDITY_KEY,
    WATER_BEAM_VELOCITY_KEY,
    WATER_TIME_OF_VALIDITY_KEY,
    PingArrays,
    allocate,
)
from navsense.sensors.doppler.specification import DvlMessageOptions, MessageDialect, validate_reals
from navsense.sensors.doppler.water import (
    WaterMassLayer,
    compute_middle_times,
    find_bottom_distance,
    find_far_boundaries,
    find_layer_velocities,
    get_forward_cosines,
)
from navsense.sensors.range import Cone, Sound
from navsense.sensors.user_arrays import apply, check_time
from navsense.series import Reading, make_read_only
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Times, Vector
from navsense.validation import validate_types

X_AZIMUTHS: Sequence[float] = (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams between the sensor's axes: an X."""

BEAM_ANGLE = math.radians(30.0)
"""rad, of the beams from the instrument's axis."""

IDEAL_TRACK, TRUE_SOUND = DopplerTrack(), Sound()

IDENTITY_ROTATION = (1.0, 0.0, 0.0, 0.0)

MAX_MISALIGNMENT = 1.0
"""rad: misalignments are below this; beyond it they are no misalignments."""


class TrackMode(StrEnum):
    """When a kind of tracking gives the velocity: never, always, where it is the surer, or where the other fails."""

    NEVER = "never"
    ALWAYS = "always"
    BEST = "best"
    FALLBACK = "fallback"


class Transducer(StrEnum):
    """How the beams are made: by pistons, or by the phases of an array."""

    PISTON = "piston"
    PHASED_ARRAY = "phased_array"


class DvlState(NamedTuple):
    """This serial number: its channels, scales and offsets (2, 4) of bottom and water, misalignment, when it last told.

    `lost` (k,) is till when (s) each beam has no lock, `filter` what the long-term velocity is made of.
    """

    channels: NoiseState
    systematic: FloatArray
    misalignment: FloatArray
    last_emission: float
    unlocked_until: FloatArray
    filter_state: FloatArray


@dataclass(frozen=True)
class Dvl:
    """Data sheet of a Doppler velocity log.

    `minimum_range`, `maximum_range`: m along a beam. `bottom`, `water`: errors of either track; `range`: noise of a
    beam's range (m). `layer`: of water, where that is tracked. `strength`: of the echo, by which deviations grow
    and lock is lost. `sound`: what the speed of sound is taken for, None for what it is. `misalignment`: rotation
    vector (rad) from true velocities to told ones, and its deviation among serial numbers. `min_incidence_cosine`:
    cosine of the flattest angle of an echo. `error_velocity_limit`: m/s. `dropout_probability`: of a beam, each ping.
    `reacquisition_time`: s without lock after a loss. `propagation`: whether sound takes its time; `processing_time`: s
    after the last echo. `reference`: rotation from the sensor's frame to the one in which velocities are told.
    `missing_values`: values of a catalogue part without a source. Raises `SensorError`.
    """

    beams: Beams = field(default_factory=lambda: make_janus_beams(BEAM_ANGLE, [math.radians(a) for a in X_AZIMUTHS]))
    minimum_range: float = 0.0
    maximum_range: float = 100.0
    bottom: DopplerTrack = IDEAL_TRACK
    water: DopplerTrack = IDEAL_TRACK
    range: Noise = NEUTRAL
    bottom_mode: TrackMode = TrackMode.ALWAYS
    water_mode: TrackMode = TrackMode.NEVER
    layer: WaterMassLayer | None = None
    strength: EchoStrength | None = None
    sound: Sound = TRUE_SOUND
    transducer: Transducer = Transducer.PISTON
    misalignment: Vector = (0.0, 0.0, 0.0)
    misalignment_stddev: float = 0.0
    min_incidence_cosine: float = 0.0
    error_velocity_limit: float = math.inf
    dropout_probability: float = 0.0
    reacquisition_time: float = 0.0
    propagation: bool = True
    processing_time: float = 0.0
    long_term: LongTermFilter | None = None
    reference: Quaternion = IDENTITY_ROTATION
    own_hull: bool = False
    classic: bool = False
    dialect: MessageDialect = field(default=MessageDialect.OWN, metadata=MESSAGE_ONLY)
    message_options: DvlMessageOptions = field(default=DvlMessageOptions(), metadata=MESSAGE_ONLY)
    missing_values: tuple[str, ...] = field(default=(), metadata=MESSAGE_ONLY)

    type: ClassVar[str] = "dvl"
    tolerance: ClassVar[float] = 1e-9
    group: ClassVar[Literal["all", "vertical"]] = "vertical"
    source_arrays: ClassVar[tuple[str, ...]] = ping.DVL_SOURCE_ARRAYS

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        validate_reals(*((name, vars(self)[name], least, most) for name, least, most in FIELD_LIMITS))
        object.__setattr__(self, "misalignment", check_numbers("misalignment (rad)", self.misalignment, 3))
        object.__setattr__(self, "reference", check_numbers("reference", self.reference, 4))
        validate_types(self)
        if not self.error_velocity_limit >= 0.0:
            raise SensorError("error_velocity_limit", self.error_velocity_limit, allowed="must be at least 0")
        if not self.maximum_range > self.minimum_range:
            allowed = f"must be above the minimum, {self.minimum_range:g} m"
            raise SensorError("maximum_range (m)", self.maximum_range, allowed=allowed)
        if not math.hypot(*self.misalignment) < MAX_MISALIGNMENT:
            allowed = f"must be a rotation vector of less than {MAX_MISALIGNMENT:g} rad"
            raise SensorError("misalignment (rad)", self.misalignment, allowed=allowed)
        if not abs(math.hypot(*self.reference) - 1.0) < 1e-6:
            raise SensorError("reference", self.reference, allowed="must be a unit quaternion w x y z")
        self._check_modes()

    def _check_modes(self) -> None:
        """Refuse modes that give nothing, and a layer that is missing, or out of reach."""
        if self.bottom_mode is TrackMode.FALLBACK:
            allowed = "must be never, always or best; it is the water's mode that may be fallback"
            raise SensorError("bottom_mode", "fallback", allowed=allowed)
        if self.bottom_mode is TrackMode.NEVER and self.water_mode is TrackMode.NEVER:
            raise SensorError("bottom_mode and water_mode", "never", allowed="must not both be never")
        if self.layer is None and self.water_mode is not TrackMode.NEVER:
            raise SensorError("layer", None, allowed="must be given where the water is tracked")
        if self.layer is not None:
            reach = self.maximum_range * min(get_forward_cosines(self.beams).tolist())
            if self.layer.far > reach:
                allowed = f"must be at most {reach:.6g} m, what the beams reach along the instrument's axis"
                raise SensorError("far boundary of the water layer (m)", self.layer.far, allowed=allowed)

    @property
    def uses_current(self) -> bool:
        """Return whether the water is tracked."""
        return self.water_mode is not TrackMode.NEVER

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading, n pings of k beams."""
        k = len(self.beams.beams)
        return tuple(Output(name, k if axes == PER_BEAM else axes, unit) for name, axes, unit in OUTPUTS)

    @cached_property
    def _channels(self) -> NoiseChannels:
        """Slow errors and rounding of each beam: over the bottom, through the water, of the range."""
        k = len(self.beams.beams)
        bottom, through = (replace(t.noise, stddev=0.0, noise_density=0.0) for t in (self.bottom, self.water))
        names = [f"{what}_{i}" for what in ("bottom", "water", "range") for i in range(k)]
        return NoiseChannels(tuple(names), (bottom,) * k + (through,) * k + (self.range,) * k)

    @cached_property
    def _instrument_processes(self) -> tuple[RandomProcess, ...]:
        """Random processes beside those of the channels."""
        acts = {"locks": self.strength is not None, "drops": self.dropout_probability > 0.0}
        acts["turns"] = self.misalignment_stddev > 0.0
        return ping.list_processes(len(self.beams.beams), self.bottom, self.water, self._dialect_rules, **acts)

    @cached_property
    def _draw_rows(self) -> tuple[IntArray, IntArray]:
        """Rows of draws of each beam and of each axis."""
        return ping.make_draw_tables(self._instrument_processes, len(self.beams.beams), self._channels.draws_per_tick)

    @cached_property
    def _dialect_rules(self) -> int:
        """Whose rules hold, as kernels know it."""
        if not self.classic:
            return ping.PHYSICAL
        return {MessageDialect.UUV: ping.UUV, MessageDialect.DSROS: ping.DSROS}.get(self.dialect, ping.PHYSICAL)

    @cached_property
    def _ray_beams(self) -> Beams:
        """Beams for ray casting: under classic single rays of `dsros_dvl`, and Gazebo's nearest-ray rule for others."""
        if self._dialect_rules == ping.DSROS:
            return self.beams.single_ray_beams
        return self.beams.nearest_ray_beams if self.classic else self.beams

    @cached_property
    def _tracked_layer(self) -> WaterMassLayer | None:
        """Layer of water that is tracked, None for none: in what is classic of `dsros_dvl`, down to the bottom."""
        if self.layer is None or self.water_mode is TrackMode.NEVER:
            return None
        return replace(self.layer, share=1.0) if self._dialect_rules == ping.DSROS else self.layer

    def _find_bottom_distance(self, layer: WaterMassLayer, slant: FloatArray) -> FloatArray:
        """Return how far (n,) m along the axis the bottom is for a layer, over ranges (n, k) m; infinite without one.

        In what is classic of `dsros_dvl` a bottom that leaves no layer is none: it always has the water's velocity.
        """
        bottom = find_bottom_distance(self.beams, slant)
        if self._dialect_rules == ping.DSROS:
            bottom[np.isnan(find_far_boundaries(layer, bottom))] = math.inf
        return bottom

    @cached_property
    def _rules(self) -> FloatArray:
        """What a ping must be, as kernels know it."""
        modes = list(TrackMode)
        limits = (self.minimum_range, self.maximum_range, self.min_incidence_cosine, self.error_velocity_limit)
        choices = (modes.index(self.bottom_mode), modes.index(self.water_mode), self._dialect_rules)
        stated = (self.bottom.reported_stddev, self.water.reported_stddev)
        losses = (self.reacquisition_time, self.dropout_probability)
        return np.array((*limits, *losses, *choices, *stated), dtype=np.float64)

    @cached_property
    def _ideal_rules(self) -> FloatArray:
        """The rules for a perfect instrument, which loses nothing."""
        rules = self._rules.copy()
        rules[ping.ERROR_LIMIT] = math.inf
        for place in (ping.REACQUISITION, ping.DROPOUT, ping.REPORTED_STDDEV, ping.WATER_REPORTED_STDDEV):
            rules[place] = 0.0
        return rules

    @cached_property
    def _error_parameters(self) -> tuple[FloatArray, FloatArray, bool, float]:
        """Both tracks (2, 3), numbers of the strength (5,), (0,) without, phased array, and speed of sound or 0."""
        given = [(t.per_speed, t.reference_rate, t.maximum_velocity) for t in (self.bottom, self.water)]
        tracks = np.array(given, dtype=np.float64)
        loud = np.array(_strength_parameters(self.strength) if self.strength else (), dtype=np.float64)
        return tracks, loud, self.transducer is Transducer.PHASED_ARRAY, float(self.sound.speed or 0.0)

    @cached_property
    def _output_rotation(self) -> FloatArray:
        """Rotation (4,) from the sensor's frame to the one that is told of."""
        return np.array(pose.normalize(self.reference))

    @property
    def models_travel_time(self) -> bool:
        """True where sound takes its time; in the classic plug-ins it does not."""
        return self.propagation and not (self.classic and self.dialect is not MessageDialect.OWN)

    @property
    def max_latency(self) -> float:
        """Return how long (s) before it is told a ping may have gone out, however slow the sound."""
        return 2.0 * self.maximum_range / MIN_SOUND_SPEED + self.processing_time if self.models_travel_time else 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the signals that the sheet needs."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each beam's velocity over the bottom and range."""
        k = len(self.beams.beams)
        return {"beam_velocity": (self.bottom.noise,) * k, "beam_range": (self.range,) * k}

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return beams, limits, tracks, times and what is systematic, at a rate (Hz) of ticks."""
        limits = (self.minimum_range, self.maximum_range, self.min_incidence_cosine)
        modes, waits = (self.bottom_mode, self.water_mode), self.maximum_range if self.models_travel_time else None
        return (
            *description.describe_beams(self._ray_beams, limits, own_hull=self.own_hull),
            description.describe_sound(self.transducer, self.sound.speed),
            *description.describe_tracks(
                modes, (self.bottom, self.water), self._tracked_layer, self.error_velocity_limit, self.long_term
            ),
            description.describe_times(waits, self.processing_time, rate),
            *description.describe_losses(self.strength, self.dropout_probability, self.reacquisition_time),
            *description.describe_systematic_errors(
                self.bottom, self.water, self.misalignment, self.misalignment_stddev
            ),
            *description.describe_missing_values(self.missing_values),
        )

    def find_warnings(self, _: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return which tracks tell of no deviation of single pings, where the sheet has errors of a track."""
        return description.find_unreported_noise((self.bottom_mode, self.water_mode), (self.bottom, self.water))

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes: those of each beam's channels, then the instrument's."""
        return (*self._channels.processes, *self._instrument_processes)

    def init(self, draws: FloatArray) -> DvlState:
        """Return this serial number's turn-on errors, scale, offset and misalignment."""
        first = sum(process.initial for process in self._channels.processes)
        left, systematic, turn = draws[first:].tolist(), np.zeros((2, 4)), list(self.misalignment)
        for process in self._instrument_processes:
            own, left = left[: process.initial], left[process.initial :]
            if process.channel == "mounting":
                turn = [angle + self.misalignment_stddev * w for angle, w in zip(turn, own, strict=True)]
            elif process.initial:
                row, track = (0, self.bottom) if process.channel == "bottom" else (1, self.water)
                systematic[row, 0] = track.long_term_scale * own[0]
                systematic[row, 1:] = [track.long_term_offset * w for w in own[1:]]
        turned = np.array(pose.from_rotation_vector((turn[0], turn[1], turn[2])))
        lost = np.full(len(self.beams.beams), -math.inf)
        return DvlState(
            self._channels.init(draws[:first]), systematic, turned, 0.0, lost, long_term_filter.make_state()
        )

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return what a perfect instrument would say, and what its errors depend on.

        Raises `FieldError` where a body, the current or the speed of sound cannot be asked.
        """
        time, reach, hull = ticks.time, self.maximum_range, self.own_hull
        sound = get_sound_speed(environment, motion.at(time))
        validity_time, transmit_time = time, time
        if self.models_travel_time:
            receive_time = compute_receive_times(time, self.processing_time)
            validity_time, listening = compute_echo_timing(
                self._ray_beams, motion, environment, receive_time, reach, sound, hull
            )
            if self.bottom_mode is TrackMode.NEVER and self._tracked_layer is not None:
                shorter = np.minimum(listening, 2.0 * self._tracked_layer.far / (min(self.beams.slant_cosines) * sound))
                validity_time = np.clip(
                    validity_time + listening - shorter, 0.0, receive_time
                )  # a bottom farther away is heard by nobody
                listening = shorter
            transmit_time = compute_transmit_times(receive_time, self.processing_time, listening)
        else:
            listening = np.zeros(len(ticks))
        truth = motion.at(validity_time)
        known_motion = FixedMotionBlock(truth)
        echo = find_echoes(self._ray_beams, known_motion, environment, validity_time, reach, hull)
        if self._tracked_layer is None:
            water_velocity, water_validity_time, far_boundary = (
                np.full(echo.range.shape, math.nan),
                validity_time,
                np.full(len(ticks), math.nan),
            )
        else:
            bottom = self._find_bottom_distance(self._tracked_layer, echo.range)
            water_validity_time = (
                compute_middle_times(self.beams, self._tracked_layer, bottom, transmit_time, sound, validity_time)
                if self.models_travel_time
                else validity_time
            )
            layer_motion = known_motion if water_validity_time is validity_time else motion
            water_velocity, _, far_boundary = find_layer_velocities(
                self.beams, self._tracked_layer, layer_motion, environment, water_validity_time, bottom
            )
        attitude, own = compute_platform_state(truth, environment.heading)
        inputs = {
            ECHO_RANGE: echo.range,
            ECHO_INCIDENCE: echo.incidence,
            BOTTOM_BEAM_VELOCITY: echo.velocity,
            WATER_BEAM_VELOCITY_KEY: water_velocity,
        }
        inputs |= {
            ATTITUDE: attitude,
            SENSOR_VELOCITY: own,
            LISTENING_TIME: listening,
            WATER_TIME_OF_VALIDITY_KEY: water_validity_time,
            LAYER_FAR_BOUNDARY_KEY: far_boundary,
        }
        return {**self._solve_ideal(inputs, validity_time, sound), **evaluate_signals(self, environment, time)}

    def _solve_ideal(
        self, inputs: Mapping[str, FloatArray], validity_time: Times, sound: FloatArray
    ) -> dict[str, AnyArray]:
        """Return what is true of pings about instants (n,) s, and what their errors depend on; all read-only."""
        for array in (validity_time, sound, *inputs.values()):
            make_read_only(array)
        echo, beams = inputs[ECHO_RANGE], self.beams
        n, k = echo.shape
        outputs, heard = (
            allocate(n, k),
            (echo, inputs[ECHO_INCIDENCE], inputs[BOTTOM_BEAM_VELOCITY], inputs[WATER_BEAM_VELOCITY_KEY]),
        )
        moved, laid = (inputs[ATTITUDE], inputs[SENSOR_VELOCITY]), (beams.axes, beams.positions)
        valid = (validity_time, inputs[WATER_TIME_OF_VALIDITY_KEY], inputs[LAYER_FAR_BOUNDARY_KEY])
        ping.solve_ideal_ping(self._ideal_rules, self._output_rotation, *heard, *moved, *laid, *valid, sound, *outputs)
        shown = {
            "time_of_validity": outputs.scalars[ping.TIME_OF_VALIDITY],
            "sound_speed": sound,
            TIME_OF_VALIDITY_KEY: validity_time,
        }
        return {**outputs.ideal_arrays(), **shown, **inputs}

    def measure(
        self, state: DvlState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[DvlState, Measurement]:
        """Return the new state and what the pings say; NaN where a tick tells of none."""
        n, k = ideal[ECHO_RANGE].shape
        emitted, unlocked_until, stored = (
            np.empty(n, dtype=np.bool_),
            state.unlocked_until.copy(),
            state.filter_state.copy(),
        )
        emitted.fill(True)
        time = make_read_only(ticks.time)
        last = (
            ping.schedule_emissions(time, ideal[LISTENING_TIME], state.last_emission, emitted)
            if self.models_travel_time
            else state.last_emission
        )
        rate, outputs = ticks.rate / ticks.spacing, allocate(n, k)
        channels, slow = self._solve_pings(state, ticks, ideal, draws, rate, emitted, unlocked_until, outputs)
        mode = outputs.scalars[ping.VELOCITY_MODE]
        if self.long_term is not None:
            solved = (mode, outputs.vectors[0], outputs.covariances[0])
            filtered = (outputs.vectors[ping.LONG_TERM], outputs.covariances[ping.LONG_TERM])
            long_term_filter.filter_pings(
                self.long_term, stored, outputs.scalars[ping.TIME_OF_VALIDITY], *solved, *filtered
            )
        constant = state.channels.turn_on
        errors = {"beam_velocity": slow[:, :k], "beam_range": slow[:, 2 * k :]}
        turn_on = {"beam_velocity": constant[:k], "beam_range": constant[2 * k :]}
        after = DvlState(channels, state.systematic, state.misalignment, last, unlocked_until, stored)
        return after, Measurement(outputs.named_arrays(), errors, mode > ping.NO_TRACK, emitted, turn_on)

    def _solve_pings(
        self,
        state: DvlState,
        ticks: Ticks,
        ideal: Mapping[str, AnyArray],
        draws: FloatArray,
        rate: float,
        emitted: BoolArray,
        unlocked_until: FloatArray,
        outputs: PingArrays,
    ) -> tuple[NoiseState, FloatArray]:
        """Write what the pings say; return the channels' state and the slow errors (n, 3 k)."""
        (tracks, loud, phased, assumed), (rows, own_rows) = self._error_parameters, self._draw_rows
        echo, own, sound, axes = ideal[ECHO_RANGE], ideal[SENSOR_VELOCITY], ideal["sound_speed"], self.beams.axes
        n, k = echo.shape
        received, ideals = np.empty((10, n, k)), np.empty((3 * k, n))
        floors = (self.bottom.noise.white_stddev(rate), self.water.noise.white_stddev(rate))
        serial = (self.beams.axis, state.misalignment, state.systematic)
        true = (echo, ideal[ECHO_INCIDENCE], ideal[BOTTOM_BEAM_VELOCITY], ideal[WATER_BEAM_VELOCITY_KEY], own, sound)
        ping.receive_beams(
            tracks, floors, rate, loud, phased, assumed, axes, *serial, rows, draws, *true, received, ideals
        )
        warmth, slowly = ideal.get(TEMPERATURE), draws[: self._channels.draws_per_tick]
        channels, values, slow = self._channels.apply(state.channels, ticks, slowly, ideals.T, temperature=warmth)
        ping.add_dvl_faults(values, ideal)
        rough = floors[0] if self._dialect_rules == ping.UUV else floors[1]
        about = (ideal[ATTITUDE], own, ticks.time, emitted, axes, self.beams.positions, unlocked_until)
        valid = np.array(
            (ideal[TIME_OF_VALIDITY_KEY], ideal[WATER_TIME_OF_VALIDITY_KEY], ideal[LAYER_FAR_BOUNDARY_KEY])
        )
        known = (valid, sound, assumed, rough, own_rows, draws)
        ping.solve_ping(self._rules, self._output_rotation, values.T, received, *about, *known, *outputs)
        return channels, slow

    def apply(
        self,
        time: FloatArray,
        velocity: FloatArray,
        *,
        beam_range: FloatArray | None = None,
        orientation: FloatArray | None = None,
        water_velocity: FloatArray | None = None,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return this sheet's errors on one's own velocities (n, 3) m/s over the bottom, sensor's frame; time (n,) s.

        `beam_range` (n, k) m to the bottom, infinite or NaN where there is none; `orientation` (n, 4) sensor to world;
        `water_velocity` (n, 3) m/s through the water, None where that is still. What is not given is as in
        `_parse_janus.applied`, an assumed speed of sound is right, the rate is that of the first step. Raises
        `SensorError`.
        """
        seconds, limits = check_time(time), (self.minimum_range, self.maximum_range)
        count = seconds.size
        inputs = beam_inputs.make_bottom_inputs(self.beams, limits, velocity, beam_range, orientation, count)
        if water_velocity is not None:
            water_velocity = beam_inputs.check_velocity("water_velocity", water_velocity, count)
        if self._tracked_layer is not None:
            water_own = velocity if water_velocity is None else water_velocity
            bottom = self._find_bottom_distance(
                self._tracked_layer, np.where(inputs[ECHO_RANGE] < math.inf, inputs[ECHO_RANGE], math.nan)
            )
            inputs |= beam_inputs.make_water_inputs(self.beams, self._tracked_layer, bottom, water_own)
        sound = self.sound.speed or SOUND_SPEED
        if self.models_travel_time:
            inputs[LISTENING_TIME] = beam_inputs.compute_listening_times(
                inputs[ECHO_RANGE], sound, self.maximum_range, self.processing_time
            )
        inputs.setdefault(LAYER_FAR_BOUNDARY_KEY, np.full(count, math.nan))
        ideal = self._solve_ideal({**inputs, WATER_TIME_OF_VALIDITY_KEY: seconds}, seconds, np.full(count, sound))
        skip_ideal, one = [key for key, *_ in OUTPUTS if key not in ideal], (self, seconds, ideal)
        return apply(
            *one,
            seed=seed,
            run=run,
            name=name,
            clock=clock,
            temperature=temperature,
            skip_ideal=skip_ideal,
            require_finite=False,
        )

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False, stddev: float | None = None) -> Dvl:
        """Return the data sheet of a part of the catalogue, by the rules of `_parse_janus.printed`.

        With `temperature` its temperature coefficients act. `stddev` (m/s) is the deviation of a beam's velocity over
        the bottom in one ping. It replaces that of the part. It is required if the part has no source for it ("a50").
        `missing_values` lists the values without a source; see `docs/parts.md`. Raises
        `UnknownNameError`, `SensorError`.
        """
        found, azimuths = load_part(name), tuple(math.radians(azimuth) for azimuth in X_AZIMUTHS)
        given = datasheet.make_fields(found, azimuths, BEAM_ANGLE, temperature=temperature, stddev=stddev)
        return cls(**given, transducer=Transducer(found.transducer or Transducer.PISTON))

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what errors start from where no echo of the bottom comes back on some pings, `rows` (n,)."""
        out = dict(ideal)
        for name in (ECHO_RANGE, ECHO_INCIDENCE, BOTTOM_BEAM_VELOCITY):
            out[name] = np.where(rows[:, None], math.nan, ideal[name])
        return out

    def without_errors(self) -> Dvl:
        """Return the same sheet without errors: it hears at once, knows the speed of sound and never loses a beam."""
        return replace(
            self,
            bottom=DopplerTrack(),
            water=DopplerTrack(),
            range=NEUTRAL,
            strength=None,
            sound=Sound(),
            misalignment=(0.0, 0.0, 0.0),
            misalignment_stddev=0.0,
            error_velocity_limit=math.inf,
            dropout_probability=0.0,
            reacquisition_time=0.0,
            propagation=False,
            processing_time=0.0,
            long_term=None,
        )

    @classmethod
    def example_spec(cls) -> Dvl:
        """Return a sheet in which every parameter acts, in the shallow water where the laws are held."""
        noise = make_example_noise(0.02, maximum=0.9, minimum=-0.9)
        track = DopplerTrack(noise, 0.01, 100.0, 0.0, 0.01, 0.005, 6.0)
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        made = make_janus_beams(math.radians(25.0), [math.radians(a) for a in X_AZIMUTHS]).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in made), BeamWeighting.PATTERN, 0.5),
            minimum_range=2.3,
            maximum_range=4.8,
            bottom=track,
            water=replace(track, reported_stddev=0.05),
            range=make_example_noise(0.02, maximum=4.6, minimum=2.4),
            bottom_mode=TrackMode.BEST,
            water_mode=TrackMode.BEST,
            layer=WaterMassLayer(0.2, 1.2, 0.9, 3, 0.5),
            strength=EchoStrength(30.0, 0.5),
            sound=Sound(1480.0),
            misalignment=(0.01, -0.02, 0.03),
            misalignment_stddev=0.01,
            min_incidence_cosine=0.75,
            error_velocity_limit=0.8,
            dropout_probability=0.05,
            reacquisition_time=0.012,
            processing_time=0.003,
            long_term=LongTermFilter(0.3, 0.01, 0.02),
            reference=pose.from_rpy(0.1, 0.2, 0.3),
            own_hull=True,
            dialect=MessageDialect.DSROS,
        )


def _strength_parameters(given: EchoStrength) -> tuple[float, float, float, float, float]:
    """Return the numbers of an echo's strength, as kernels take them."""
    return given.level, given.absorption, given.correlation, given.threshold, given.slope


FIELD_LIMITS = (
    ("minimum_range", 0.0, 1e5),
    ("maximum_range", 0.0, 1e5),
    ("misalignment_stddev", 0.0, MAX_MISALIGNMENT),
    ("min_incidence_cosine", 0.0, 1.0),
    ("dropout_probability", 0.0, 1.0),
    ("reacquisition_time", 0.0, 1e6),
    ("processing_time", 0.0, 1e3),
)
"""Fields that are numbers, and from where to where each may go."""
