"""Doppler velocity log (DVL): velocity over the bottom or through the water from three or more beams.

    velocity = argmin_v sum_k (b_k' - u_k.v)^2 / sigma_k^2,   covariance = (sum_k u_k u_k^T / sigma_k^2)^-1

over the good beams, with the symbols of `sensors.doppler`. The velocity is that of the sensor over the bottom (bottom
track) or through the water (water track). So `water_velocity` is not the velocity of the current. b_k' is measured
along the beam, positive if the sensor moves along it (`doppler.ping`); sigma_k is its reported standard deviation. The
footprint of a beam is a cone of rays into the world (`doppler.echoes`). The water track uses a water-mass layer
(`doppler.water`). For four beams at a Janus angle of 30 degrees the covariance is sigma^2 diag(2, 2, 1/3). The error
velocity is the residual of the solution, scaled to the variance of a horizontal velocity component (Teledyne RDI).

    altitude   height of the sensor above the plane through the bottom points, with the sensor's attitude
    course     of the velocity over ground, from north, clockwise, [0, 2 pi); speed is its horizontal part

Timing of a ping with the output time t, the largest range r, the true speed of sound c and the processing time p:

- The instrument transmits at t - p - 2 r / c. A tick outputs a ping only if this is not before the previous output.
  Other ticks are skipped, so the rate of pings falls with depth.
- The time of validity is when the echo leaves the bottom: the mean range over c after transmission. For the water track
  it is when the echo leaves the middle of the layer.
- Without bottom track, the instrument stops listening at the far boundary of the layer.
- At skipped ticks `emitted` is false and the arrays are NaN, except `sound_speed`.

The long-term velocity is a filter over single pings (`doppler.long_term_filter`).

Sources: Teledyne RD Instruments, ADCP Coordinate Transformation (951-6079-00), for the geometry; documentation of
Gazebo's DVL, the UUV Simulator and `dsros_dvl`, whose rules apply with `classic`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from navsense.clock import Clock
from navsense.core import pose
from navsense.core.errors import SensorError
from navsense.core.field_metadata import NOT_IN_FILE, in_file
from navsense.core.random_streams import RandomProcess, find_first_rows, split_initial_draws
from navsense.core.readings import Reading, make_read_only
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Vector
from navsense.core.validation import check_numbers
from navsense.environment.base import Environment
from navsense.environment.water import MIN_SOUND_SPEED
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import NO_PHYSICAL_EFFECT, TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.units import ECHO_STRENGTH, NOISE_GROWTH
from navsense.sensors.doppler import (
    apply_inputs,
    datasheet,
    long_term_filter,
    ping,
)
from navsense.sensors.doppler.beam_errors import EchoStrength, TrackErrors, make_long_term_errors
from navsense.sensors.doppler.beams import Beams, BeamWeighting, make_x_beams
from navsense.sensors.doppler.echoes import (
    SOUND_SPEED,
    KernelTuple,
    SampledMotion,
    compute_echo_timing,
    compute_sensor_state,
    find_echoes,
    get_sound_speed,
)
from navsense.sensors.doppler.long_term_filter import LongTermFilter
from navsense.sensors.doppler.solution import allocate_solutions
from navsense.sensors.doppler.specification import (
    IDENTITY_ROTATION,
    NO_TRACK,
    TRUE_SOUND,
    DvlMessageOptions,
    MessageDialect,
    Transducer,
    describe_sound,
    parse_shape,
    validate_instrument,
)
from navsense.sensors.doppler.water import (
    WaterMassLayer,
    compute_layer_times_of_validity,
    find_bottom_distance,
    find_far_boundaries,
    find_layer_velocities,
)
from navsense.sensors.range import Cone, Sound
from navsense.sensors.user_arrays import check_time, simulate_readings

DEFAULT_JANUS_ANGLE = math.radians(30.0)
"""rad: default Janus angle of a DVL."""

NO_TRACK_ERRORS = TrackErrors()

MISSING_VALUES = "not simulated, because neither the part nor the world has a value"
"""`describe` begins the line of the missing values with this text."""

MAX_MISALIGNMENT = 1.0
"""rad: upper limit of a misalignment."""


class TrackMode(StrEnum):
    """When a track supplies `velocity`. A track without a solution never does.

    Without a solution of the bottom track, a water track that is not `NEVER` supplies it.

    | mode | bottom track | water track |
    |---|---|---|
    | `NEVER` | off | off |
    | `ALWAYS` | always | as `BEST`; each ping also has a `water_velocity` |
    | `BEST` | unless a water track, `BEST` or `ALWAYS`, is better | if the bottom track is `BEST` and worse |
    | `FALLBACK` | not allowed | only if the bottom track has no solution |

    The better track is the one with the smaller variance; the bottom track if both are equal.

    >>> [one.value for one in ns.sensors.TrackMode]
    ['never', 'always', 'best', 'fallback']
    """

    NEVER = "never"
    ALWAYS = "always"
    BEST = "best"
    FALLBACK = "fallback"


class DvlState(NamedTuple):
    """State of one instrument.

    channels: state of the noise channels.
    long_term_errors: (2, 4) long-term scale errors and offsets (m/s) over the bottom and through the water.
    misalignment: (4,) rotation from true to measured velocities.
    last_output_time: s, output time of the last ping; 0 before the first, so no ping is transmitted before t = 0.
    unlocked_until: (k,) s, end of the reacquisition of each beam.
    filter_state: state of the long-term filter.
    """

    channels: NoiseState
    long_term_errors: FloatArray
    misalignment: FloatArray
    last_output_time: float
    unlocked_until: FloatArray
    filter_state: FloatArray


@dataclass(frozen=True)
class Dvl:
    """Specification of a Doppler velocity log. Raises `SensorError` for invalid values.

    beams: axes, positions and shapes.
    minimum_range, maximum_range: along a beam, m.
    bottom, water: errors of the two tracks.
    range_noise: noise of a beam's range, m.
    bottom_mode, water_mode: when each track supplies the velocity.
    layer: water-mass layer; required for a water track.
    echo_strength: a weak echo has more noise and can lose lock. None: all echoes are strong.
    sound: assumed speed of sound; the default `TRUE_SOUND` is the true speed, without an error.
    misalignment: rotation vector from true to measured velocities, rad.
    misalignment_stddev: standard deviation of the misalignment between instruments, rad.
    min_incidence_cosine: cosine of the largest angle of incidence with an echo.
    error_velocity_limit: a solution above it is rejected, m/s.
    dropout_probability: of a beam, in each ping.
    reacquisition_time: time without lock after a beam fails one of the other conditions of `doppler.ping`, s.
    transducer: pistons or a phased array.
    propagation: true if sound has a travel time.
    processing_time: from the last echo to the output, s.
    long_term: filter of the long-term velocity, or None. The errors that it assumes do not change a ping.
    reference: rotation (w, x, y, z) from the sensor's frame to the output frame, the frame of the velocities.
    own_hull: true if beams hit the bodies of the sensor's own model.
    classic: true for the rules of the `dialect`, see the table.
    dialect: the plug-in whose messages the sensor sends, and whose rules apply with `classic`.
    message_options: options of these messages.
    missing_values: values of a catalogue part that have no source.

    | with `classic` and the dialect | rays of a beam | travel time of sound | solution, altitude | water-mass layer |
    |---|---|---|---|---|
    | `own` | nearest, for `PLANE` | as `propagation` | physical | physical |
    | `gz` | nearest, for `PLANE` | none | physical | physical |
    | `uuv` | nearest, for `PLANE` | none | UUV Simulator | physical |
    | `dsros` | one | none | `dsros_dvl` | down to the bottom |

    >>> dvl = ns.sensors.Dvl(bottom=ns.sensors.TrackErrors(ns.Noise(stddev=0.005)), maximum_range=75.0)
    >>> dvl.bottom
    TrackErrors(noise=Noise(stddev=0.005))
    """

    beams: Beams = field(default_factory=lambda: make_x_beams(DEFAULT_JANUS_ANGLE))
    minimum_range: float = field(default=0.0, metadata=in_file("min"))
    maximum_range: float = field(default=100.0, metadata=in_file("max"))
    bottom: TrackErrors = field(default=NO_TRACK_ERRORS, metadata=in_file("bottom_track"))
    water: TrackErrors = field(default=NO_TRACK_ERRORS, metadata=in_file("water_track"))
    range_noise: Noise = field(default=NO_NOISE, metadata=in_file("range"))
    # The metadata locate errors. `DVL_BINDING` binds the fields without a container; `sdf.parse.doppler` reads these.
    bottom_mode: TrackMode = field(default=TrackMode.ALWAYS, metadata=in_file("when", container="bottom_track"))
    water_mode: TrackMode = field(default=TrackMode.NEVER, metadata=in_file("when", container="water_track"))
    layer: WaterMassLayer | None = field(default=None, metadata=in_file(container="water_track"))
    echo_strength: EchoStrength | None = field(default=None, metadata=in_file("strength"))
    sound: Sound = TRUE_SOUND
    transducer: Transducer = Transducer.PISTON
    misalignment: Vector = field(default=(0.0, 0.0, 0.0), metadata=in_file("misalignment_deg", degrees=True))
    misalignment_stddev: float = field(default=0.0, metadata=in_file("misalignment_stddev_deg", degrees=True))
    min_incidence_cosine: float = 0.0
    error_velocity_limit: float = math.inf
    dropout_probability: float = 0.0
    reacquisition_time: float = 0.0
    propagation: bool = True
    processing_time: float = 0.0
    long_term: LongTermFilter | None = None
    reference: Quaternion = IDENTITY_ROTATION
    own_hull: bool = False
    classic: bool = field(default=False, metadata=NOT_IN_FILE)
    dialect: MessageDialect = field(default=MessageDialect.OWN, metadata=NO_PHYSICAL_EFFECT)
    message_options: DvlMessageOptions = field(default=DvlMessageOptions(), metadata=NO_PHYSICAL_EFFECT)
    missing_values: tuple[str, ...] = field(default=(), metadata=NO_PHYSICAL_EFFECT)

    # See `sensors.base.Sensor`, and `faults.schedule.HasDerivedArrays` for `fault_input_arrays`.
    type: ClassVar[str] = "dvl"
    invariance_tolerance: ClassVar[float] = 1e-9
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    fault_input_arrays: ClassVar[tuple[str, ...]] = ping.FAULT_INPUT_ARRAYS

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "misalignment", check_numbers("misalignment (rad)", self.misalignment, 3))
        validate_instrument(self, FIELD_LIMITS)
        if not math.hypot(*self.misalignment) < MAX_MISALIGNMENT:
            allowed = f"must be a rotation vector of less than {MAX_MISALIGNMENT:g} rad"
            raise SensorError("misalignment (rad)", self.misalignment, allowed=allowed, field="misalignment")
        self._check_tracks()

    def _check_tracks(self) -> None:
        """Check that a track supplies a velocity, and that the layer is within the maximum range of the beams."""
        if self.bottom_mode is TrackMode.FALLBACK:
            allowed = "must be never, always or best; only water_mode may be fallback"
            raise SensorError("bottom_mode", "fallback", allowed=allowed, field="bottom_mode")
        if self.bottom_mode is TrackMode.NEVER and self.water_mode is TrackMode.NEVER:
            what, allowed = "bottom_mode and water_mode", "must not both be never"
            raise SensorError(what, "never", allowed=allowed, field="bottom_mode")
        if self.layer is None and self.water_mode is not TrackMode.NEVER:
            raise SensorError("layer", None, allowed="must be given for a water track", field="layer")
        if self.layer is not None:
            axis_range = self.maximum_range * min(self.beams.positive_janus_cosines.tolist())
            if self.layer.far > axis_range:
                allowed = f"must be at most {axis_range:.6g} m, the maximum range projected on the instrument's axis"
                raise SensorError("far boundary of the water layer (m)", self.layer.far, allowed=allowed, field="layer")

    @property
    def uses_current(self) -> bool:
        """True if the water is tracked."""
        return self.water_mode is not TrackMode.NEVER

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading."""
        k = len(self.beams.beams)
        return tuple(Output(name, parse_shape(letters, k), unit) for name, letters, unit in ping.OUTPUTS)

    @cached_property
    def _channels(self) -> NoiseChannels:
        """Channels of each beam: bottom-track velocity, water-track velocity, range.

        They have all terms of `Noise` except the white noise of the velocities, see `_instrument_processes`.
        """
        k = len(self.beams.beams)
        bottom, water = (replace(t.noise, stddev=0.0, noise_density=0.0) for t in (self.bottom, self.water))
        names = [f"{channel}_{i}" for channel in ("bottom", "water", "range") for i in range(k)]
        return NoiseChannels(tuple(names), (bottom,) * k + (water,) * k + (self.range_noise,) * k)

    @cached_property
    def _instrument_processes(self) -> tuple[RandomProcess, ...]:
        """Random processes other than those of `_channels`, in the order of their draws.

        The table of `doppler.ping` lists them. The white noise of `bottom_k` and `water_k` is one of them.
        """
        k, rule = len(self.beams.beams), self._solution_rule
        processes = [
            RandomProcess(channel, name, initial=count, per_tick=0)
            for channel, name, count, acts in (
                ("bottom", "long_term", 4, self.bottom.has_long_term_errors),
                ("water", "long_term", 4, self.water.has_long_term_errors),
                ("mounting", "misalignment", 3, self.misalignment_stddev > 0.0),
            )
            if acts
        ]
        if rule != ping.PHYSICAL_RULE:
            processes += [RandomProcess(f"velocity_{axis}", "white") for axis in "xyz"]
        # The UUV Simulator adds noise to the bottom-track velocity and dsros_dvl to the water-track velocity.
        if self.bottom.has_white_noise and rule != ping.UUV_RULE:
            processes += [RandomProcess(f"bottom_{i}", "white") for i in range(k)]
        if self.water.has_white_noise and rule != ping.DSROS_RULE:
            processes += [RandomProcess(f"water_{i}", "white") for i in range(k)]
        for name, acts in (("lock", self.echo_strength is not None), ("dropout", self.dropout_probability > 0.0)):
            if acts:
                processes += [RandomProcess(f"beam_{i}", name, kind="uniform") for i in range(k)]
        return tuple(processes)

    @cached_property
    def _draw_rows(self) -> tuple[KernelTuple, IntArray]:
        """Rows of the draws of each beam (`DrawRows`), and of the velocity's components."""
        beams, components = _make_draw_rows(self.processes(), len(self.beams.beams))
        return tuple(beams), components

    @cached_property
    def _solution_rule(self) -> int:
        """The solution rule of the kernels by the table of the class: `PHYSICAL_RULE`, `UUV_RULE` or `DSROS_RULE`."""
        classic_rules = {MessageDialect.UUV: ping.UUV_RULE, MessageDialect.DSROS: ping.DSROS_RULE}
        return classic_rules.get(self.dialect, ping.PHYSICAL_RULE) if self.classic else ping.PHYSICAL_RULE

    @cached_property
    def _ray_beams(self) -> Beams:
        """The beams as their rays are cast, by the table of the class."""
        if self._solution_rule == ping.DSROS_RULE:
            return self.beams.single_ray_beams
        return self.beams.nearest_ray_beams if self.classic else self.beams

    @cached_property
    def _tracked_layer(self) -> WaterMassLayer | None:
        """The tracked water-mass layer, by the table of the class."""
        if self.layer is None or self.water_mode is TrackMode.NEVER:
            return None
        return replace(self.layer, share=1.0) if self._solution_rule == ping.DSROS_RULE else self.layer

    def _find_bottom_distance(self, layer: WaterMassLayer, beam_range: FloatArray) -> FloatArray:
        """Return the distance (n,) m of the bottom along the instrument axis; infinite without a bottom.

        `beam_range` (n, k) m is that of `Echoes`. By the classic rule of `dsros_dvl`, a bottom so near that no layer
        remains counts as no bottom.
        """
        bottom_distance = find_bottom_distance(self.beams.positive_janus_cosines, beam_range)
        if self._solution_rule == ping.DSROS_RULE:
            bottom_distance[np.isnan(find_far_boundaries(layer.parameters, bottom_distance))] = math.inf
        return bottom_distance

    @cached_property
    def _solution_parameters(self) -> KernelTuple:
        """The fields of `SolutionParameters`."""
        modes = list(TrackMode)
        parameters = ping.SolutionParameters(
            minimum_range=float(self.minimum_range),
            maximum_range=float(self.maximum_range),
            min_incidence_cosine=float(self.min_incidence_cosine),
            error_velocity_limit=float(self.error_velocity_limit),
            reacquisition_time=float(self.reacquisition_time),
            dropout_probability=float(self.dropout_probability),
            bottom_mode=float(modes.index(self.bottom_mode)),
            water_mode=float(modes.index(self.water_mode)),
            solution_rule=float(self._solution_rule),
            bottom_reported_stddev=float(self.bottom.reported_stddev),
            water_reported_stddev=float(self.water.reported_stddev),
            assumed_sound_speed=float(self.sound.speed or 0.0),
        )
        return tuple(parameters)

    @cached_property
    def _ideal_solution_parameters(self) -> KernelTuple:
        """The same without errors, dropout and reacquisition. The limits of range and incidence stay."""
        parameters = ping.SolutionParameters(*self._solution_parameters)._replace(
            error_velocity_limit=math.inf,
            reacquisition_time=0.0,
            dropout_probability=0.0,
            bottom_reported_stddev=0.0,
            water_reported_stddev=0.0,
            assumed_sound_speed=0.0,
        )
        return tuple(parameters)

    @cached_property
    def _receiver_parameters(self) -> KernelTuple:
        """Parameters of the receiver for `apply_beam_errors`, `ReceiverParameters`."""
        strength = (0.0,) * 5 if self.echo_strength is None else self.echo_strength.parameters
        is_phased_array = self.transducer is Transducer.PHASED_ARRAY
        return tuple(
            ping.ReceiverParameters(
                float(self.sound.speed or 0.0), *strength, self.echo_strength is not None, is_phased_array
            )
        )

    @cached_property
    def _track_parameters(self) -> tuple[KernelTuple, KernelTuple]:
        """The fields of `TrackParameters` of both tracks, except `stddev`."""
        bottom, water = (
            (float(track.per_speed), float(track.reference_rate), float(track.maximum_velocity))
            for track in (self.bottom, self.water)
        )
        return bottom, water

    @cached_property
    def _geometry(self) -> KernelTuple:
        """The fields of `BeamGeometry`: beams and output frame."""
        rotation = np.array(pose.normalize(self.reference))
        return tuple(ping.BeamGeometry(self.beams.axes, self.beams.positions, self.beams.instrument_axis, rotation))

    @property
    def models_travel_time(self) -> bool:
        """True if the travel time of sound is simulated, by the table of the class."""
        return self.propagation and not (self.classic and self.dialect is not MessageDialect.OWN)

    @property
    def max_age(self) -> float:
        """Bound (s) of the time from the time of validity to the output time, for any speed of sound.

        It is the time from transmission to output at the lowest valid speed of sound, `MIN_SOUND_SPEED`.
        """
        return 2.0 * self.maximum_range / MIN_SOUND_SPEED + self.processing_time if self.models_travel_time else 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that the noise depends on."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each beam's bottom-track velocity, and of its range."""
        k = len(self.beams.beams)
        return {"beam_velocity": (self.bottom.noise,) * k, "beam_range": (self.range_noise,) * k}

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return lines on beams, limits, tracks, times and systematic errors, at a rate (Hz) of ticks."""
        limits = (self.minimum_range, self.maximum_range, self.min_incidence_cosine)
        return (
            *self._ray_beams.describe(limits, own_hull=self.own_hull),
            describe_sound(self.transducer, self.sound.speed),
            *_describe_tracks(self, self._tracked_layer),
            _describe_times(self, rate),
            *_describe_losses(self),
            *_describe_errors(self),
            *([f"{MISSING_VALUES}: {', '.join(missing)}"] if (missing := _list_missing_values(self)) else []),
        )

    def find_warnings(self, _: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return a warning for each track in use without noise of single pings: its name and the text.

        There is no warning if neither track has errors.
        """
        warnings = []
        has_errors = self.bottom.has_errors or self.water.has_errors
        for name, mode, track in _list_tracks(self):
            if mode != TrackMode.NEVER and not track.has_white_noise and has_errors:
                value = f"{track.reported_stddev:g} m/s" if track.reported_stddev > 0.0 else "a covariance of 0"
                problem = f"the standard deviation of single pings is 0, and {value} is reported"
                remedy = f"give one: TrackErrors(noise=Noise(stddev=...)) as `{name}`, or <{name}_track><noise>"
                warnings.append((f"{name} track", f"{problem}: {remedy}"))
        return tuple(warnings)

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes: those of each beam's channels, then the instrument's."""
        return (*self._channels.processes, *self._instrument_processes)

    def init(self, draws: FloatArray) -> DvlState:
        """Return the turn-on biases, scale errors, offsets and misalignment of an instrument."""
        channel_draws = draws[: sum(process.initial for process in self._channels.processes)]
        initial = split_initial_draws(self._instrument_processes, draws[channel_draws.size :])
        long_term_errors, (x, y, z) = np.zeros((2, 4)), self.misalignment
        for row, (channel, track) in enumerate((("bottom", self.bottom), ("water", self.water))):
            if (channel, "long_term") in initial:
                long_term_errors[row] = make_long_term_errors(track, initial[channel, "long_term"].tolist())
        if ("mounting", "misalignment") in initial:
            dx, dy, dz = (self.misalignment_stddev * w for w in initial["mounting", "misalignment"].tolist())
            x, y, z = x + dx, y + dy, z + dz
        misalignment = np.array(pose.from_rotation_vector((x, y, z)))
        unlocked_until = np.full(len(self.beams.beams), -math.inf)
        channels, filter_state = self._channels.init(channel_draws), long_term_filter.make_state()
        return DvlState(channels, long_term_errors, misalignment, 0.0, unlocked_until, filter_state)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the ideal outputs, the true values (`ping.TRUE_VALUES`), and the signals.

        Ideal outputs are those of an instrument without errors, after its limits. True values are those of the world,
        before the limits, and the inputs of the errors.

        Raises `FieldError` if a body, the current or the speed of sound has no value there.
        """
        time, layer = ticks.time, self._tracked_layer
        sound_speed = get_sound_speed(environment, motion.at(time))
        time_of_validity = transmit_time = time
        if self.models_travel_time:
            receive_time = np.maximum(time - self.processing_time, 0.0)
            time_of_validity, travel_time = compute_echo_timing(
                self._ray_beams, motion, environment, receive_time, self.maximum_range, sound_speed, self.own_hull
            )
            if self.bottom_mode is TrackMode.NEVER and layer is not None:
                # The instrument stops listening at the far boundary of the layer, not at a bottom farther away.
                layer_travel_time = 2.0 * layer.far / (min(self.beams.janus_cosines) * sound_speed)
                layer_travel_time = np.minimum(travel_time, layer_travel_time)
                # It transmits later by the difference, and the time of validity moves with it.
                time_of_validity = np.clip(time_of_validity + travel_time - layer_travel_time, 0.0, receive_time)
                travel_time = layer_travel_time
            transmit_time = receive_time - travel_time
            ping_duration = travel_time + self.processing_time
        else:
            ping_duration = np.zeros(time.shape[0])
        motion_block = motion.at(time_of_validity)
        sampled_motion = SampledMotion(motion_block)
        echoes = find_echoes(
            self._ray_beams, sampled_motion, environment, time_of_validity, self.maximum_range, self.own_hull
        )
        layer_time_of_validity = time_of_validity
        if layer is None:
            water_beam_velocity = np.full(echoes.beam_range.shape, math.nan)
            far_boundary = np.full(len(ticks), math.nan)
        else:
            bottom_distance, layer_motion = self._find_bottom_distance(layer, echoes.beam_range), motion
            if self.models_travel_time:
                layer_time_of_validity = compute_layer_times_of_validity(
                    layer.parameters,
                    bottom_distance,
                    transmit_time,
                    self.beams.mean_inverse_janus_cosine,
                    sound_speed,
                    time_of_validity,
                )
            else:
                layer_motion = sampled_motion
            water_beam_velocity, far_boundary = find_layer_velocities(
                self.beams, layer, layer_motion, environment, layer_time_of_validity, bottom_distance
            )
        ideal = self._solve_ideal(
            ping.EchoInputs(echoes.beam_range, echoes.incidence_cosine, echoes.beam_velocity, water_beam_velocity),
            ping.SensorInputs(*compute_sensor_state(motion_block, environment.heading), sound_speed),
            ping.TrackInputs(time_of_validity, layer_time_of_validity, far_boundary),
            ping_duration,
        )
        ideal.update(evaluate_signals(self, environment, time))
        return ideal

    def _solve_ideal(
        self,
        echoes: ping.EchoInputs,
        sensor_inputs: ping.SensorInputs,
        tracks: ping.TrackInputs,
        ping_duration: FloatArray,
    ) -> dict[str, AnyArray]:
        """Return the ideal outputs and the true values of `ping.TRUE_VALUES` by name.

        `solve_ideal_pings` and the measurement call the same kernel: here with true instead of measured values, and
        with parameters without errors.
        """
        inputs = (*echoes, *sensor_inputs, *tracks, ping_duration)
        for array in inputs:
            array.setflags(False)  # type: ignore[call-arg]  # the kernel is compiled for read-only inputs
        memory = ping.allocate_outputs(*echoes.true_beam_range.shape)
        ping.solve_ideal_pings(
            self._ideal_solution_parameters,
            self._geometry,
            echoes,
            tuple(sensor_inputs),
            tracks,
            tuple(memory),
        )
        ideal = memory.name_ideal_outputs()
        ideal.update(zip(ping.TRUE_VALUES, inputs, strict=True))
        return ideal

    def measure(
        self, state: DvlState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[DvlState, Measurement]:
        """Return the new state and the readings; ticks without a ping are NaN except `sound_speed`."""
        n, k = ideal["true_beam_range"].shape
        emitted, time = np.empty(n, dtype=np.bool_), make_read_only(ticks.time)
        emitted.fill(True)
        last_output_time = state.last_output_time
        if self.models_travel_time:
            last_output_time = ping.mark_output_pings(time, ideal["ping_duration"], last_output_time, emitted)
        unlocked_until, filter_state = state.unlocked_until.copy(), state.filter_state.copy()
        memory = ping.allocate_outputs(n, k)
        channels, biases = self._measure_pings(state, ticks, ideal, draws, emitted, unlocked_until, tuple(memory))
        arrays = memory.name_outputs()
        if self.long_term is not None:
            long_term_filter.filter_pings(
                self.long_term,
                filter_state,
                arrays["time_of_validity"],
                arrays["velocity_mode"],
                arrays["velocity"],
                arrays["velocity_covariance"],
                arrays["long_term_velocity"],
                arrays["long_term_covariance"],
            )
        turn_on_biases = state.channels.turn_on
        bias = {"beam_velocity": biases[:, :k], "beam_range": biases[:, 2 * k :]}
        turn_on = {"beam_velocity": turn_on_biases[:k], "beam_range": turn_on_biases[2 * k :]}
        new_state = DvlState(
            channels,
            state.long_term_errors,
            state.misalignment,
            last_output_time,
            unlocked_until,
            filter_state,
        )
        return new_state, Measurement(arrays, bias, arrays["velocity_mode"] > NO_TRACK, emitted, turn_on)

    def _measure_pings(
        self,
        state: DvlState,
        ticks: Ticks,
        ideal: Mapping[str, AnyArray],
        draws: FloatArray,
        emitted: BoolArray,
        unlocked_until: FloatArray,
        output_memory: KernelTuple,
    ) -> tuple[NoiseState, FloatArray]:
        """Write the outputs of the ticks; return the state of the channels and the biases (n, 3 k).

        The steps are those of `doppler.ping`: errors of the beams, noise, faults, solution. The columns of the biases
        are bottom-track velocities, water-track velocities and ranges.
        """
        (n, k), rate = ideal["true_beam_range"].shape, ticks.row_rate
        # Arrays of noise channels are contiguous along the ticks of one channel.
        beam_arrays, channel_inputs = np.empty((len(ping.BeamQuantities._fields), n, k)), np.empty((3 * k, n))
        bottom_stddev, water_stddev = self.bottom.noise.white_stddev(rate), self.water.noise.white_stddev(rate)
        bottom, water = self._track_parameters
        (beam_rows, component_rows), sensor_inputs = self._draw_rows, ping.select_sensor(ideal)
        component_stddev = bottom_stddev if self._solution_rule == ping.UUV_RULE else water_stddev
        ping.apply_beam_errors(
            ((bottom_stddev, *bottom), (water_stddev, *water)),
            self._receiver_parameters,
            rate,
            self._geometry,
            (state.misalignment, state.long_term_errors),
            ping.select_echoes(ideal),
            sensor_inputs,
            beam_rows,
            draws,
            beam_arrays,
            channel_inputs,
        )
        channels, measured, biases = self._channels.apply(
            state.channels,
            ticks,
            draws[: self._channels.draws_per_tick],
            channel_inputs.T,
            temperature=ideal.get(TEMPERATURE),
        )
        ping.add_faults(measured, ideal)
        ping.solve_pings(
            self._solution_parameters,
            self._geometry,
            measured.T,
            beam_arrays,
            sensor_inputs,
            ping.select_tracks(ideal),
            ticks.time,
            emitted,
            unlocked_until,
            (component_stddev, component_rows, draws),
            tuple(allocate_solutions(k)),
            output_memory,
        )
        return channels, biases

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
        """Return readings with the errors of this spec for velocities of the caller.

        time: (n,) s; the rate is that of the first step.
        velocity: (n, 3) m/s over the bottom, in the sensor's frame.
        beam_range: (n, k) m to the bottom; infinite or NaN without an echo.
        orientation: (n, 4), sensor's frame to east, north, up.
        water_velocity: (n, 3) m/s of the sensor through the water, in the sensor's frame; None for still water.

        `doppler.apply_inputs` lists the defaults. The assumed speed of sound, if there is one, is taken as the true one
        too. Raises `SensorError`.
        """
        seconds, layer, beams = check_time(time), self._tracked_layer, self.beams
        count, default_range = seconds.size, 0.5 * (self.minimum_range + self.maximum_range)
        velocity_over_bottom = apply_inputs.check_velocity("velocity", velocity, count)
        ranges = apply_inputs.check_beam_range(beam_range, default_range, (count, len(beams.beams)))
        attitude = apply_inputs.check_attitude(orientation, beams.instrument_axis, count)
        velocity_through_water = velocity_over_bottom
        if water_velocity is not None:
            velocity_through_water = apply_inputs.check_velocity("water_velocity", water_velocity, count)
        water_beam_velocity, far_boundary = np.full(ranges.shape, math.nan), np.full(count, math.nan)
        if layer is not None:
            bottom_distance = self._find_bottom_distance(layer, np.where(ranges < math.inf, ranges, math.nan))
            far_boundary = find_far_boundaries(layer.parameters, bottom_distance)
            water_beam_velocity = apply_inputs.project_velocity(
                beams.axes, velocity_through_water, np.zeros(ranges.shape)
            )
            water_beam_velocity[np.isnan(far_boundary)] = math.nan
        sound_speed, ping_duration = self.sound.speed or SOUND_SPEED, np.zeros(count)
        if self.models_travel_time:
            ping_duration = apply_inputs.compute_ping_durations(
                ranges, sound_speed, self.maximum_range, self.processing_time
            )
        cosines = np.tile([abs(cosine) for cosine in beams.janus_cosines], (count, 1))
        beam_velocity = apply_inputs.project_velocity(beams.axes, velocity_over_bottom, ranges)
        ideal = self._solve_ideal(
            ping.EchoInputs(ranges, cosines, beam_velocity, water_beam_velocity),
            ping.SensorInputs(attitude, velocity_over_bottom, np.full(count, sound_speed)),
            ping.TrackInputs(seconds, seconds, far_boundary),
            ping_duration,
        )
        return simulate_readings(
            self,
            seconds,
            ideal,
            seed=seed,
            run=run,
            name=name,
            clock=clock,
            temperature=temperature,
            skip_ideal=[output.name for output in self.outputs if output.name not in ideal],
            require_finite=False,
        )

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False, stddev: float | None = None) -> Dvl:
        """Return the spec of a part of the catalogue, see `doppler.datasheet`.

        temperature: True enables the temperature coefficients.
        stddev: standard deviation of a beam's bottom-track velocity in one ping, m/s. It replaces that of the part, and
            is required if the part has no source for it ("a50").

        `missing_values` lists the values without a source; see `docs/reference/parts.md`. Raises `UnknownNameError`,
        `SensorError`.
        """
        part = load_part(name)
        fields = datasheet.make_fields(part, DEFAULT_JANUS_ANGLE, temperature=temperature, stddev=stddev)
        return cls(**fields, transducer=Transducer(part.transducer or Transducer.PISTON))

    def remove_bottom_echoes(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return ideal values without bottom echoes at the ticks `rows` (n,) (`faults.schedule.UsesBottomEchoes`)."""
        names = ("true_beam_range", "incidence_cosine", "true_beam_velocity")
        return {**ideal, **{name: np.where(rows[:, None], math.nan, ideal[name]) for name in names}}

    def without_errors(self) -> Dvl:
        """Return the same spec without errors. The limits of range and incidence stay.

        There is no travel time, assumed speed of sound, dropout, lock loss or maximum velocity.
        """
        return replace(
            self,
            bottom=TrackErrors(),
            water=TrackErrors(),
            range_noise=NO_NOISE,
            echo_strength=None,
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
        """Return a spec in which every field acts, for the shallow water of the example world."""
        noise = make_example_noise(0.02, maximum=0.9, minimum=-0.9)
        track = TrackErrors(
            noise,
            per_speed=0.01,
            reference_rate=100.0,
            long_term_scale=0.01,
            long_term_offset=0.005,
            maximum_velocity=6.0,
        )
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        beams = make_x_beams(math.radians(25.0)).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in beams), BeamWeighting.PATTERN, 0.5),
            minimum_range=2.3,
            maximum_range=4.8,
            bottom=track,
            water=replace(track, reported_stddev=0.05),
            range_noise=make_example_noise(0.02, maximum=4.6, minimum=2.4),
            bottom_mode=TrackMode.BEST,
            water_mode=TrackMode.BEST,
            layer=WaterMassLayer(0.2, 1.2, 0.9, 3, 0.5),
            echo_strength=EchoStrength(30.0, 0.5),
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


FIELD_LIMITS = (
    ("misalignment_stddev", 0.0, MAX_MISALIGNMENT),
    ("min_incidence_cosine", 0.0, 1.0),
    ("dropout_probability", 0.0, 1.0),
    ("reacquisition_time", 0.0, 1e6),
)
"""Limits of the fields that only a DVL has."""


def _make_draw_rows(processes: Sequence[RandomProcess], beams: int) -> tuple[ping.DrawRows, IntArray]:
    """Return the rows in `draws` of each beam, and those (3,) of the noise of velocity components.

    `processes` are all processes of the sensor.
    """
    rows = find_first_rows(processes)

    def find_rows(channels: Sequence[str], name: str) -> IntArray:
        return np.array([rows.get((channel, name), -1) for channel in channels], dtype=np.int64)

    bottom, water, beam = ([f"{name}_{k}" for k in range(beams)] for name in ("bottom", "water", "beam"))
    draw_rows = ping.DrawRows(
        find_rows(bottom, "white"), find_rows(water, "white"), find_rows(beam, "lock"), find_rows(beam, "dropout")
    )
    return draw_rows, find_rows([f"velocity_{axis}" for axis in "xyz"], "white")


def _list_tracks(spec: Dvl) -> tuple[tuple[str, TrackMode, TrackErrors], ...]:
    """Return the name, the mode and the errors of each track."""
    return (("bottom", spec.bottom_mode, spec.bottom), ("water", spec.water_mode, spec.water))


def _list_missing_values(spec: Dvl) -> list[str]:
    """Return the `missing_values` that no field of the specification sets.

    `catalogue.Part.missing_values` makes these texts: a section and an entry, "transducer", or a constant.
    """
    is_set = {
        "beam.range": (spec.minimum_range, spec.maximum_range) != (Dvl.minimum_range, Dvl.maximum_range),
        "beam.noise_rms": spec.range_noise.has_white_noise,
        "water_track.layer": spec.layer is not None,
        "transducer": spec.transducer is not Dvl.transducer,
        NOISE_GROWTH: spec.bottom.per_speed + spec.water.per_speed > 0.0,
        ECHO_STRENGTH: spec.echo_strength is not None,
    }
    for name, _, track in _list_tracks(spec):
        is_set[f"{name}_track.noise_rms"] = track.noise.has_white_noise
        for entry in ("long_term_scale", "long_term_offset", "maximum_velocity"):
            is_set[f"{name}_track.{entry}"] = getattr(track, entry) != getattr(NO_TRACK_ERRORS, entry)
    return [name for name in spec.missing_values if not is_set.get(name, False)]


def _describe_tracks(spec: Dvl, layer: WaterMassLayer | None) -> tuple[str, ...]:
    """Describe the tracks over the bottom and through the water, the tracked layer, and the long-term velocity."""
    lines = [
        f"{name} track: {mode}"
        + (f", up to {track.maximum_velocity:g} m/s" if track.maximum_velocity < math.inf else "")
        for name, mode, track in _list_tracks(spec)
    ]
    if layer is not None:
        span = f"{layer.near:g} to {layer.far:g} m along the axis"
        lines[-1] += f", {span}, at most {layer.share:g} of the distance to the bottom"
    if spec.error_velocity_limit < math.inf:
        lines.append(f"solutions with an error velocity above {spec.error_velocity_limit:g} m/s are rejected")
    if spec.long_term is not None:
        density = spec.long_term.acceleration_density
        lines.append(f"long-term velocity: acceleration density {density:g} m/s^2/sqrt(Hz)")
    return tuple(lines)


def _describe_times(spec: Dvl, rate: float) -> str:
    """Describe the rate of pings (Hz)."""
    if not spec.models_travel_time:
        return "pings: one per tick; time of validity: the tick"
    lowest_rate = min(rate, 1.0 / (2.0 * spec.maximum_range / SOUND_SPEED + spec.processing_time))
    rates = f"{lowest_rate:.3g} to {rate:g} Hz, lower in deep water" if lowest_rate < rate else f"{rate:g} Hz"
    return f"pings: {rates}; time of validity: when the echo leaves the bottom"


def _describe_losses(spec: Dvl) -> tuple[str, ...]:
    """Describe the loss of beams by a weak echo or by dropout, and its duration."""
    lines, strength = [], spec.echo_strength
    if strength is not None:
        loss = f"{strength.level:g} dB minus 30 log10(r) and {2.0 * strength.absorption:g} dB/m"
        lines.append(f"echo: {loss}; lock at {strength.threshold:g} dB, within {strength.lock_width:g} dB")
    if spec.dropout_probability + spec.reacquisition_time > 0.0:
        dropouts = f"{spec.dropout_probability:g} of a beam's pings"
        lines.append(f"dropouts: {dropouts}; {spec.reacquisition_time:g} s without lock after a loss")
    return tuple(lines)


def _describe_errors(spec: Dvl) -> tuple[str, ...]:
    """Describe the errors of pings other than the noise of bottom track, and those of an instrument."""
    lines = []
    for name, _, track in _list_tracks(spec):
        terms = [f"stddev {track.noise.stddev:g} m/s"] if name == "water" and track.noise.stddev != 0.0 else []
        terms += [f"plus {track.per_speed:g} m/s per m/s of speed"] if track.per_speed > 0.0 else []
        terms += [f"at {track.reference_rate:g} Hz"] if track.reference_rate > 0.0 else []
        terms += [f"reported as {track.reported_stddev:g} m/s"] if track.reported_stddev > 0.0 else []
        if terms:
            lines.append(f"{name} track, noise of a ping: {', '.join(terms)}")
    for name, _, track in _list_tracks(spec):
        if track.has_long_term_errors:
            scale, offset = 100.0 * track.long_term_scale, track.long_term_offset
            lines.append(
                f"{name} track, long term: scale error {scale:g} %, offset {offset:g} m/s (standard deviations)"
            )
    if any(spec.misalignment) or spec.misalignment_stddev > 0.0:
        angle, stddev = math.degrees(math.hypot(*spec.misalignment)), math.degrees(spec.misalignment_stddev)
        lines.append(f"misalignment: {angle:.3g} deg, standard deviation {stddev:.3g} deg")
    return tuple(lines)
