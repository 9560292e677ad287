"""Doppler velocity log: velocity over the bottom or through the water, out of three beams or more.

    velocity = argmin_v sum_k (b_k - u_k.v)^2 / sigma_k^2,   covariance = (sum_k u_k u_k^T / sigma_k^2)^-1

over the good beams, u_k the axes in the sensor's frame, b_k what each hears (`_janus.ping`): positive when the sensor
moves along the beam. A beam is a cone of rays into the world (`_janus.echoes`), or crosses a layer of water
(`_janus.layer`). Of four beams at 30 degrees the covariance is sigma^2 diag(2, 2, 1/3). The error velocity is what is
left of b that no velocity explains, scaled to the variance of a horizontal one.

    altitude   height of the sensor above the plane through what its beams met, by its own attitude
    course     of the velocity over ground, from north, clockwise, [0, 2 pi); speed its horizontal part

A ping told at t went out 2 r / c before, r the farthest range, and is about the instant when its echo left the bottom,
the time of validity: the mean range over c after it went out; what is through the water is about when the echo left the
middle of the layer. It goes out no sooner than the last was told, so a DVL tells of fewer the deeper the bottom is;
ticks that tell nothing are not emitted and NaN. Where the bottom is never tracked, nobody waits for it. Beside single
pings there may be the long-term velocity, a filter over them (`_janus.longterm`).

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
from navsense.environment.water import SLOWEST
from navsense.errors import SensorError
from navsense.fields import refuse_types
from navsense.motion.base import Motion
from navsense.noise.channel import NEUTRAL, Noise, witness
from navsense.noise.channels import Channels, ChannelState
from navsense.sensors._janus import applied, drawn, faulty, longterm, ping, printed, remarks
from navsense.sensors._janus.beams import Beams, Weighting, janus
from navsense.sensors._janus.carrier import Known, carried
from navsense.sensors._janus.echoes import SOUND_SPEED, back, echoes, sent, sound_speed, validity
from navsense.sensors._janus.layer import Layer, cosines, ends, middle, shallowest, water
from navsense.sensors._janus.limits import refuse_reals
from navsense.sensors._janus.longterm import LongTerm
from navsense.sensors._janus.names import Dialect, Names
from navsense.sensors._janus.strength import EchoStrength
from navsense.sensors._janus.told import (
    ABOUT,
    ATTITUDE,
    BEAMS,
    BOTTOM,
    ECHO,
    FAR,
    INCIDENCE,
    LISTENING,
    OUTPUTS,
    OWN,
    THROUGH,
    THROUGH_ABOUT,
    Told,
    empty,
)
from navsense.sensors._janus.track import Track
from navsense.sensors._mix import checked_numbers
from navsense.sensors.apply import apply, checked_time
from navsense.sensors.base import LABEL, TEMPERATURE, Measured, Output, signals_at
from navsense.sensors.catalogue import part
from navsense.sensors.range import Cone, Sound
from navsense.series import Reading, frozen
from navsense.streams import Process
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Times, Vector

CROSSED: Sequence[float] = (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams between the sensor's axes: an X."""

ANGLE = math.radians(30.0)
"""rad, of the beams from the instrument's axis."""

EXACT, TRUE_SOUND = Track(), Sound()

UNTURNED = (1.0, 0.0, 0.0, 0.0)

SMALL = 1.0
"""rad: misalignments are below this; beyond it they are no misalignments."""


class Mode(StrEnum):
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

    channels: ChannelState
    systematic: FloatArray
    misalignment: FloatArray
    last: float
    lost: FloatArray
    filter: FloatArray


@dataclass(frozen=True)
class Dvl:
    """Data sheet of a Doppler velocity log.

    `minimum_range`, `maximum_range`: m along a beam. `bottom`, `water`: errors of either track; `range`: noise of a
    beam's range (m). `layer`: of water, where that is tracked. `strength`: of the echo, by which deviations grow
    and lock is lost. `sound`: what the speed of sound is taken for, None for what it is. `misalignment`: rotation
    vector (rad) from true velocities to told ones, and its deviation among serial numbers. `least_incidence`: cosine of
    the flattest angle of an echo. `error_velocity_limit`: m/s. `dropout_probability`: of a beam, each ping.
    `reacquisition_time`: s without lock after a loss. `propagation`: whether sound takes its time; `processing_time`: s
    after the last echo. `reference`: rotation from the sensor's frame to the one in which velocities are told.
    `missing_values`: values of a catalogue part without a source. Raises `SensorError`.
    """

    beams: Beams = field(default_factory=lambda: janus(ANGLE, [math.radians(a) for a in CROSSED]))
    minimum_range: float = 0.0
    maximum_range: float = 100.0
    bottom: Track = EXACT
    water: Track = EXACT
    range: Noise = NEUTRAL
    bottom_mode: Mode = Mode.ALWAYS
    water_mode: Mode = Mode.NEVER
    layer: Layer | None = None
    strength: EchoStrength | None = None
    sound: Sound = TRUE_SOUND
    transducer: Transducer = Transducer.PISTON
    misalignment: Vector = (0.0, 0.0, 0.0)
    misalignment_stddev: float = 0.0
    least_incidence: float = 0.0
    error_velocity_limit: float = math.inf
    dropout_probability: float = 0.0
    reacquisition_time: float = 0.0
    propagation: bool = True
    processing_time: float = 0.0
    long_term: LongTerm | None = None
    reference: Quaternion = UNTURNED
    own_hull: bool = False
    classic: bool = False
    dialect: Dialect = field(default=Dialect.OWN, metadata=LABEL)
    names: Names = field(default=Names(), metadata=LABEL)
    missing_values: tuple[str, ...] = field(default=(), metadata=LABEL)

    type: ClassVar[str] = "dvl"
    tolerance: ClassVar[float] = 1e-9
    group: ClassVar[Literal["all", "vertical"]] = "vertical"
    heard: ClassVar[tuple[str, ...]] = faulty.OF_A_LOG

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        refuse_reals(*((name, vars(self)[name], least, most) for name, least, most in LIMITS))
        object.__setattr__(self, "misalignment", checked_numbers("misalignment (rad)", self.misalignment, 3))
        object.__setattr__(self, "reference", checked_numbers("reference", self.reference, 4))
        refuse_types(self)
        if not self.error_velocity_limit >= 0.0:
            raise SensorError("error_velocity_limit", self.error_velocity_limit, allowed="must be at least 0")
        if not self.maximum_range > self.minimum_range:
            allowed = f"must be above the minimum, {self.minimum_range:g} m"
            raise SensorError("maximum_range (m)", self.maximum_range, allowed=allowed)
        if not math.hypot(*self.misalignment) < SMALL:
            allowed = f"must be a rotation vector of less than {SMALL:g} rad"
            raise SensorError("misalignment (rad)", self.misalignment, allowed=allowed)
        if not abs(math.hypot(*self.reference) - 1.0) < 1e-6:
            raise SensorError("reference", self.reference, allowed="must be a unit quaternion w x y z")
        self._check_modes()

    def _check_modes(self) -> None:
        """Refuse modes that give nothing, and a layer that is missing, or out of reach."""
        if self.bottom_mode is Mode.FALLBACK:
            allowed = "must be never, always or best; it is the water's mode that may be fallback"
            raise SensorError("bottom_mode", "fallback", allowed=allowed)
        if self.bottom_mode is Mode.NEVER and self.water_mode is Mode.NEVER:
            raise SensorError("bottom_mode and water_mode", "never", allowed="must not both be never")
        if self.layer is None and self.water_mode is not Mode.NEVER:
            raise SensorError("layer", None, allowed="must be given where the water is tracked")
        if self.layer is not None:
            reach = self.maximum_range * min(cosines(self.beams).tolist())
            if self.layer.far > reach:
                allowed = f"must be at most {reach:.6g} m, what the beams reach along the instrument's axis"
                raise SensorError("far boundary of the water layer (m)", self.layer.far, allowed=allowed)

    @property
    def feels_current(self) -> bool:
        """Return whether the water is tracked."""
        return self.water_mode is not Mode.NEVER

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading, n pings of k beams."""
        k = len(self.beams.beams)
        return tuple(Output(name, k if axes == BEAMS else axes, unit) for name, axes, unit in OUTPUTS)

    @cached_property
    def _channels(self) -> Channels:
        """Slow errors and rounding of each beam: over the bottom, through the water, of the range."""
        k = len(self.beams.beams)
        bottom, through = (replace(t.noise, stddev=0.0, noise_density=0.0) for t in (self.bottom, self.water))
        names = [f"{what}_{i}" for what in ("bottom", "water", "range") for i in range(k)]
        return Channels(tuple(names), (bottom,) * k + (through,) * k + (self.range,) * k)

    @cached_property
    def _own(self) -> tuple[Process, ...]:
        """Random processes beside those of the channels."""
        acts = {"locks": self.strength is not None, "drops": self.dropout_probability > 0.0}
        acts["turns"] = self.misalignment_stddev > 0.0
        return drawn.processes(len(self.beams.beams), self.bottom, self.water, self._dialect, **acts)

    @cached_property
    def _tables(self) -> tuple[IntArray, IntArray]:
        """Rows of draws of each beam and of each axis."""
        return drawn.tables(self._own, len(self.beams.beams), self._channels.depth)

    @cached_property
    def _dialect(self) -> int:
        """Whose rules hold, as kernels know it."""
        if not self.classic:
            return ping.PHYSICAL
        return {Dialect.UUV: ping.UUV, Dialect.DSROS: ping.DSROS}.get(self.dialect, ping.PHYSICAL)

    @cached_property
    def _sent(self) -> Beams:
        """Beams for ray casting: under classic single rays of `dsros_dvl`, and Gazebo's nearest-ray rule for others."""
        if self._dialect == ping.DSROS:
            return self.beams.thinned
        return self.beams.nearest_ray_beams if self.classic else self.beams

    @cached_property
    def _tracked(self) -> Layer | None:
        """Layer of water that is tracked, None for none: in what is classic of `dsros_dvl`, down to the bottom."""
        if self.layer is None or self.water_mode is Mode.NEVER:
            return None
        return replace(self.layer, share=1.0) if self._dialect == ping.DSROS else self.layer

    def _above(self, layer: Layer, slant: FloatArray) -> FloatArray:
        """Return how far (n,) m along the axis the bottom is for a layer, over ranges (n, k) m; infinite without one.

        In what is classic of `dsros_dvl` a bottom that leaves no layer is none: it always has the water's velocity.
        """
        bottom = shallowest(self.beams, slant)
        if self._dialect == ping.DSROS:
            bottom[np.isnan(ends(layer, bottom))] = math.inf
        return bottom

    @cached_property
    def _rules(self) -> FloatArray:
        """What a ping must be, as kernels know it."""
        modes = list(Mode)
        limits = (self.minimum_range, self.maximum_range, self.least_incidence, self.error_velocity_limit)
        choices = (modes.index(self.bottom_mode), modes.index(self.water_mode), self._dialect)
        stated = (self.bottom.stated_stddev, self.water.stated_stddev)
        losses = (self.reacquisition_time, self.dropout_probability)
        return np.array((*limits, *losses, *choices, *stated), dtype=np.float64)

    @cached_property
    def _lenient(self) -> FloatArray:
        """The rules for a perfect instrument, which loses nothing."""
        rules = self._rules.copy()
        rules[ping.ERROR_LIMIT] = math.inf
        for place in (ping.REACQUISITION, ping.DROPOUT, ping.STATED, ping.WATER_STATED):
            rules[place] = 0.0
        return rules

    @cached_property
    def _sheet(self) -> tuple[FloatArray, FloatArray, bool, float]:
        """Both tracks (2, 3), numbers of the strength (5,), (0,) without, phased array, and speed of sound or 0."""
        given = [(t.per_speed, t.reference_rate, t.maximum_velocity) for t in (self.bottom, self.water)]
        tracks = np.array(given, dtype=np.float64)
        loud = np.array(_figures(self.strength) if self.strength else (), dtype=np.float64)
        return tracks, loud, self.transducer is Transducer.PHASED_ARRAY, float(self.sound.speed or 0.0)

    @cached_property
    def _frame(self) -> FloatArray:
        """Rotation (4,) from the sensor's frame to the one that is told of."""
        return np.array(pose.normalised(self.reference))

    @property
    def waits(self) -> bool:
        """True where sound takes its time; in the classic plug-ins it does not."""
        return self.propagation and not (self.classic and self.dialect is not Dialect.OWN)

    @property
    def lag(self) -> float:
        """Return how long (s) before it is told a ping may have gone out, however slow the sound."""
        return 2.0 * self.maximum_range / SLOWEST + self.processing_time if self.waits else 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the signals that the sheet needs."""
        return (TEMPERATURE,) if self._channels.warms else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each beam's velocity over the bottom and range."""
        k = len(self.beams.beams)
        return {"beam_velocity": (self.bottom.noise,) * k, "beam_range": (self.range,) * k}

    def remarks(self, rate: float) -> tuple[str, ...]:
        """Return beams, limits, tracks, times and what is systematic, at a rate (Hz) of ticks."""
        limits = (self.minimum_range, self.maximum_range, self.least_incidence)
        modes, waits = (self.bottom_mode, self.water_mode), self.maximum_range if self.waits else None
        return (
            *remarks.beams(self._sent, limits, own_hull=self.own_hull),
            remarks.sound(self.transducer, self.sound.speed),
            *remarks.tracks(modes, (self.bottom, self.water), self._tracked, self.error_velocity_limit, self.long_term),
            remarks.times(waits, self.processing_time, rate),
            *remarks.losses(self.strength, self.dropout_probability, self.reacquisition_time),
            *remarks.systematic(self.bottom, self.water, self.misalignment, self.misalignment_stddev),
            *remarks.missing_values(self.missing_values),
        )

    def cautions(self, _: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return which tracks tell of no deviation of single pings, where the sheet has errors of a track."""
        return remarks.unstated((self.bottom_mode, self.water_mode), (self.bottom, self.water))

    def processes(self) -> tuple[Process, ...]:
        """Return the random processes: those of each beam's channels, then the instrument's."""
        return (*self._channels.processes, *self._own)

    def init(self, draws: FloatArray) -> DvlState:
        """Return this serial number's turn-on errors, scale, offset and misalignment."""
        first = sum(process.initial for process in self._channels.processes)
        left, systematic, turn = draws[first:].tolist(), np.zeros((2, 4)), list(self.misalignment)
        for process in self._own:
            own, left = left[: process.initial], left[process.initial :]
            if process.channel == "mounting":
                turn = [angle + self.misalignment_stddev * w for angle, w in zip(turn, own, strict=True)]
            elif process.initial:
                row, track = (0, self.bottom) if process.channel == "bottom" else (1, self.water)
                systematic[row, 0] = track.long_term_scale * own[0]
                systematic[row, 1:] = [track.long_term_offset * w for w in own[1:]]
        turned = np.array(pose.from_rotation_vector((turn[0], turn[1], turn[2])))
        lost = np.full(len(self.beams.beams), -math.inf)
        return DvlState(self._channels.init(draws[:first]), systematic, turned, 0.0, lost, longterm.start())

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return what a perfect instrument would say, and what its errors depend on.

        Raises `FieldError` where a body, the current or the speed of sound cannot be asked.
        """
        time, reach, hull = ticks.time, self.maximum_range, self.own_hull
        sound = sound_speed(environment, motion.at(time))
        about, went = time, time
        if self.waits:
            heard_at = back(time, self.processing_time)
            about, listening = validity(self._sent, motion, environment, heard_at, reach, sound, hull)
            if self.bottom_mode is Mode.NEVER and self._tracked is not None:
                shorter = np.minimum(listening, 2.0 * self._tracked.far / (min(self.beams.slants) * sound))
                about = np.clip(about + listening - shorter, 0.0, heard_at)  # a bottom farther away is heard by nobody
                listening = shorter
            went = sent(heard_at, self.processing_time, listening)
        else:
            listening = np.zeros(len(ticks))
        truth = motion.at(about)
        then = Known(truth)
        echo = echoes(self._sent, then, environment, about, reach, hull)
        if self._tracked is None:
            through, later, far = np.full(echo.range.shape, math.nan), about, np.full(len(ticks), math.nan)
        else:
            bottom = self._above(self._tracked, echo.range)
            later = middle(self.beams, self._tracked, bottom, went, sound, about) if self.waits else about
            heard = then if later is about else motion
            through, _, far = water(self.beams, self._tracked, heard, environment, later, bottom)
        attitude, own = carried(truth, environment.heading)
        inside = {ECHO: echo.range, INCIDENCE: echo.incidence, BOTTOM: echo.velocity, THROUGH: through}
        inside |= {ATTITUDE: attitude, OWN: own, LISTENING: listening, THROUGH_ABOUT: later, FAR: far}
        return {**self._true(inside, about, sound), **signals_at(self, environment, time)}

    def _true(self, inside: Mapping[str, FloatArray], about: Times, sound: FloatArray) -> dict[str, AnyArray]:
        """Return what is true of pings about instants (n,) s, and what their errors depend on; all read-only."""
        for array in (about, sound, *inside.values()):
            frozen(array)
        echo, beams = inside[ECHO], self.beams
        n, k = echo.shape
        told, heard = empty(n, k), (echo, inside[INCIDENCE], inside[BOTTOM], inside[THROUGH])
        moved, laid = (inside[ATTITUDE], inside[OWN]), (beams.axes, beams.positions)
        valid = (about, inside[THROUGH_ABOUT], inside[FAR])
        ping.perfect(self._lenient, self._frame, *heard, *moved, *laid, *valid, sound, *told)
        shown = {"time_of_validity": told.figures[ping.ABOUT], "sound_speed": sound, ABOUT: about}
        return {**told.true(), **shown, **inside}

    def measure(
        self, state: DvlState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[DvlState, Measured]:
        """Return the new state and what the pings say; NaN where a tick tells of none."""
        n, k = ideal[ECHO].shape
        emitted, lost, stored = np.empty(n, dtype=np.bool_), state.lost.copy(), state.filter.copy()
        emitted.fill(True)
        time = frozen(ticks.time)
        last = ping.schedule(time, ideal[LISTENING], state.last, emitted) if self.waits else state.last
        rate, told = ticks.rate / ticks.spacing, empty(n, k)
        channels, slow = self._say(state, ticks, ideal, draws, rate, emitted, lost, told)
        mode = told.figures[ping.MODE]
        if self.long_term is not None:
            solved = (mode, told.vectors[0], told.squares[0])
            filtered = (told.vectors[ping.LONG_TERM], told.squares[ping.LONG_TERM])
            longterm.follow(self.long_term, stored, told.figures[ping.ABOUT], *solved, *filtered)
        constant = state.channels.turn_on
        errors = {"beam_velocity": slow[:, :k], "beam_range": slow[:, 2 * k :]}
        turn_on = {"beam_velocity": constant[:k], "beam_range": constant[2 * k :]}
        after = DvlState(channels, state.systematic, state.misalignment, last, lost, stored)
        return after, Measured(told.named(), errors, mode > ping.NO_TRACK, emitted, turn_on)

    def _say(
        self,
        state: DvlState,
        ticks: Ticks,
        ideal: Mapping[str, AnyArray],
        draws: FloatArray,
        rate: float,
        emitted: BoolArray,
        lost: FloatArray,
        told: Told,
    ) -> tuple[ChannelState, FloatArray]:
        """Write what the pings say; return the channels' state and the slow errors (n, 3 k)."""
        (tracks, loud, phased, assumed), (rows, own_rows) = self._sheet, self._tables
        echo, own, sound, axes = ideal[ECHO], ideal[OWN], ideal["sound_speed"], self.beams.axes
        n, k = echo.shape
        heard, ideals = np.empty((10, n, k)), np.empty((3 * k, n))
        floors = (self.bottom.noise.deviation(rate), self.water.noise.deviation(rate))
        serial = (self.beams.axis, state.misalignment, state.systematic)
        true = (echo, ideal[INCIDENCE], ideal[BOTTOM], ideal[THROUGH], own, sound)
        ping.hear(tracks, floors, rate, loud, phased, assumed, axes, *serial, rows, draws, *true, heard, ideals)
        warmth, slowly = ideal.get(TEMPERATURE), draws[: self._channels.depth]
        channels, values, slow = self._channels.apply(state.channels, ticks, slowly, ideals.T, temperature=warmth)
        faulty.put_on_log(values, ideal)
        rough = floors[0] if self._dialect == ping.UUV else floors[1]
        about = (ideal[ATTITUDE], own, ticks.time, emitted, axes, self.beams.positions, lost)
        valid = np.array((ideal[ABOUT], ideal[THROUGH_ABOUT], ideal[FAR]))
        known = (valid, sound, assumed, rough, own_rows, draws)
        ping.say(self._rules, self._frame, values.T, heard, *about, *known, *told)
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
        `_janus.applied`, an assumed speed of sound is right, the rate is that of the first step. Raises `SensorError`.
        """
        seconds, limits = checked_time(time), (self.minimum_range, self.maximum_range)
        count = seconds.size
        inside = applied.heard(self.beams, limits, velocity, beam_range, orientation, count)
        if water_velocity is not None:
            water_velocity = applied.checked_velocity("water_velocity", water_velocity, count)
        if self._tracked is not None:
            water_own = velocity if water_velocity is None else water_velocity
            bottom = self._above(self._tracked, np.where(inside[ECHO] < math.inf, inside[ECHO], math.nan))
            inside |= applied.through(self.beams, self._tracked, bottom, water_own)
        sound = self.sound.speed or SOUND_SPEED
        if self.waits:
            inside[LISTENING] = applied.listening(inside[ECHO], sound, self.maximum_range, self.processing_time)
        inside.setdefault(FAR, np.full(count, math.nan))
        ideal = self._true({**inside, THROUGH_ABOUT: seconds}, seconds, np.full(count, sound))
        untrue, one = [key for key, *_ in OUTPUTS if key not in ideal], (self, seconds, ideal)
        return apply(
            *one,
            seed=seed,
            run=run,
            name=name,
            clock=clock,
            temperature=temperature,
            untrue=untrue,
            finite=False,
        )

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False, stddev: float | None = None) -> Dvl:
        """Return the data sheet of a part of the catalogue, by the rules of `_janus.printed`.

        With `temperature` its temperature coefficients act. `stddev` (m/s) is the deviation of a beam's velocity over
        the bottom in one ping. It replaces that of the part. It is required if the part has no source for it ("a50").
        `missing_values` lists the values without a source; see `docs/parts.md`. Raises
        `UnknownNameError`, `SensorError`.
        """
        found, azimuths = part(name), tuple(math.radians(azimuth) for azimuth in CROSSED)
        given = printed.fields_of(found, azimuths, ANGLE, temperature=temperature, stddev=stddev)
        return cls(**given, transducer=Transducer(found.transducer or Transducer.PISTON))

    def without_bottom(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what errors start from where no echo of the bottom comes back on some pings, `rows` (n,)."""
        out = dict(ideal)
        for name in (ECHO, INCIDENCE, BOTTOM):
            out[name] = np.where(rows[:, None], math.nan, ideal[name])
        return out

    def neutral(self) -> Dvl:
        """Return the same sheet without errors: it hears at once, knows the speed of sound and never loses a beam."""
        return replace(
            self,
            bottom=Track(),
            water=Track(),
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
    def witness(cls) -> Dvl:
        """Return a sheet in which every parameter acts, in the shallow water where the laws are held."""
        noise = witness(0.02, maximum=0.9, minimum=-0.9)
        track = Track(noise, 0.01, 100.0, 0.0, 0.01, 0.005, 6.0)
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        made = janus(math.radians(25.0), [math.radians(a) for a in CROSSED]).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in made), Weighting.PATTERN, 0.5),
            minimum_range=2.3,
            maximum_range=4.8,
            bottom=track,
            water=replace(track, stated_stddev=0.05),
            range=witness(0.02, maximum=4.6, minimum=2.4),
            bottom_mode=Mode.BEST,
            water_mode=Mode.BEST,
            layer=Layer(0.2, 1.2, 0.9, 3, 0.5),
            strength=EchoStrength(30.0, 0.5),
            sound=Sound(1480.0),
            misalignment=(0.01, -0.02, 0.03),
            misalignment_stddev=0.01,
            least_incidence=0.75,
            error_velocity_limit=0.8,
            dropout_probability=0.05,
            reacquisition_time=0.012,
            processing_time=0.003,
            long_term=LongTerm(0.3, 0.01, 0.02),
            reference=pose.from_rpy(0.1, 0.2, 0.3),
            own_hull=True,
            dialect=Dialect.DSROS,
        )


def _figures(given: EchoStrength) -> tuple[float, float, float, float, float]:
    """Return the numbers of an echo's strength, as kernels take them."""
    return given.level, given.absorption, given.correlation, given.threshold, given.slope


LIMITS = (
    ("minimum_range", 0.0, 1e5),
    ("maximum_range", 0.0, 1e5),
    ("misalignment_stddev", 0.0, SMALL),
    ("least_incidence", 0.0, 1.0),
    ("dropout_probability", 0.0, 1.0),
    ("reacquisition_time", 0.0, 1e6),
    ("processing_time", 0.0, 1e3),
)
"""Fields that are numbers, and from where to where each may go."""
