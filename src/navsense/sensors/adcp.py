"""Acoustic Doppler current profiler: velocity of the water in cells along its beams, told as ensembles of pings.

    velocity_m = mean_p R_p (-argmin_v sum_k (b_pmk - u_k.v)^2) + own velocity over the bottom, where that is taken out

over the good pings p of an ensemble; b_pmk is what beam k hears in cell m, at the height of the cell where cells are
mapped (`_janus.ensemble`, `_janus.profile`): as that of a DVL positive when the sensor moves along the beam, so that
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
by cell size; those of `_janus.ensemble` and `_janus.profile`.
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
from navsense.fields import refuse_types
from navsense.motion.base import Motion
from navsense.noise.channel import Noise
from navsense.rotation import products
from navsense.sensors._janus import averaged, ensemble, faulty, remarks
from navsense.sensors._janus.beams import Beams, Weighting, janus
from navsense.sensors._janus.echoes import SOUND_SPEED, echoes, sound_speed
from navsense.sensors._janus.layer import cosines
from navsense.sensors._janus.limits import refuse_counts, refuse_long, refuse_reals
from navsense.sensors._janus.names import Dialect
from navsense.sensors._janus.profile import Bottom, Cells, water
from navsense.sensors._janus.profiled import (
    ALONG,
    ATTITUDE,
    AXIAL,
    BOTTOM,
    BOTTOM_FRAMES,
    ECHO,
    FRAMES,
    INSIDE,
    KEPT,
    OUTPUTS,
    OWN,
    TRUE,
    Accuracy,
    BinMapping,
    Coordinates,
    Schedule,
    schedule,
    shape_of,
)
from navsense.sensors._janus.strength import EchoStrength
from navsense.sensors._mix import checked_numbers
from navsense.sensors.base import LABEL, Measured, Output
from navsense.sensors.dvl import Transducer
from navsense.sensors.range import Cone, Sound
from navsense.streams import Process
from navsense.ticks import Ticks
from navsense.typing import AnyArray, BoolArray, FloatArray, IntArray, Quaternion, Quaternions, Times

CROSSED = (-135.0, 135.0, 45.0, -45.0)
"""Azimuths (degrees) of four beams between the sensor's axes: an X."""

ANGLE = math.radians(20.0)
"""rad, of the beams from the instrument's axis."""

MOST_PINGS = 1000
"""Pings of one kind in an ensemble."""

UNTURNED = (1.0, 0.0, 0.0, 0.0)


EXACT, TRUE_SOUND = Accuracy(), Sound()


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
    echo. `sound`: what the speed of sound is taken for. `least_beams`: that a solution needs. `error_velocity_limit`:
    m/s. `least_good`: share of the pings. `removes_motion`: whether the velocity is over the ground. `side_lobes`:
    whether the beams have any. `reference`: rotation from the sensor's frame to the instrument's. `classic`: whether
    the rules of the `dialect` hold. Raises `SensorError`.
    """

    beams: Beams = field(default_factory=lambda: janus(ANGLE, [math.radians(a) for a in CROSSED]))
    cells: Cells = field(default_factory=Cells)
    pings: int = 1
    bottom_pings: int = 1
    ping_interval: float = 0.0
    processing_time: float = 0.0
    propagation: bool = True
    minimum_range: float = 0.0
    maximum_range: float = 100.0
    profile: Accuracy = EXACT
    bottom: Accuracy = EXACT
    reference_cell_size: float = 0.0
    range_stddev: float = 0.0
    backscatter: EchoStrength | None = None
    sound: Sound = TRUE_SOUND
    transducer: Transducer = Transducer.PISTON
    coordinates: Coordinates = Coordinates.EARTH
    bin_mapping: BinMapping = BinMapping.LINEAR
    removes_motion: bool = False
    least_beams: int = 3
    error_velocity_limit: float = math.inf
    least_good: float = 0.0
    side_lobes: bool = True
    reference: Quaternion = UNTURNED
    own_hull: bool = False
    classic: bool = False
    dialect: Dialect = field(default=Dialect.OWN, metadata=LABEL)

    type: ClassVar[str] = "adcp"
    tolerance: ClassVar[float] = 1e-9
    group: ClassVar[Literal["all", "vertical"]] = "vertical"
    heard: ClassVar[tuple[str, ...]] = faulty.OF_A_PROFILER

    def __post_init__(self) -> None:
        """Refuse what no instrument can have."""
        refuse_reals(*((name, vars(self)[name], least, most) for name, least, most in LIMITS))
        refuse_reals(("error_velocity_limit", self.error_velocity_limit, 0.0, 1e5), may_be_infinite=True)
        refuse_counts(*((name, vars(self)[name], least, most) for name, least, most in COUNTS))
        object.__setattr__(self, "reference", checked_numbers("reference", self.reference, 4))
        refuse_types(self)
        if self.least_beams > len(self.beams.beams):
            allowed = f"must be at most {len(self.beams.beams)}, as many as there are"
            raise SensorError("least_beams", self.least_beams, allowed=allowed)
        if not self.maximum_range > self.minimum_range:
            allowed = f"must be above the minimum, {self.minimum_range:g} m"
            raise SensorError("maximum_range (m)", self.maximum_range, allowed=allowed)
        if self.removes_motion and self.bottom_pings == 0:
            remedy = "give pings for the bottom, or keep the motion in"
            raise SensorError("bottom_pings", 0, allowed="must be at least 1 where motion is taken out", remedy=remedy)
        if not abs(math.hypot(*self.reference) - 1.0) < 1e-6:
            raise SensorError("reference", self.reference, allowed="must be a unit quaternion w x y z")
        cosines(self.beams)
        refuse_long(self.duration)

    @property
    def _is_classic(self) -> bool:
        """Tell whether the plug-in's rules hold: cells that are points, no side lobes, sound that takes no time."""
        return self.classic and self.dialect is Dialect.DSROS

    @property
    def _is_silent(self) -> bool:
        """Tell whether nothing is told: in axes that the plug-in leaves out."""
        return self._is_classic and self.coordinates in (Coordinates.SHIP, Coordinates.EARTH)

    @property
    def _waits(self) -> bool:
        """Tell whether sound takes its time."""
        return self.propagation and not self._is_classic

    @property
    def feels_current(self) -> bool:
        """Return true: the water is what it measures."""
        return True

    @property
    def cell_distance(self) -> FloatArray:
        """Return the distances (m,) of the cells' centres along the instrument's axis, m."""
        return self.cells.distances

    @cached_property
    def beam_direction(self) -> FloatArray:
        """Unit vectors (k, 3) along the beams, in the axes of `instrument`."""
        return np.array([pose.rotate(self._turn, (x, y, z)) for x, y, z in self.beams.axes.tolist()])

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: m cells, k beams."""
        m, k = int(self.cells.count), len(self.beams.beams)
        given = (*OUTPUTS, KEPT) if self.removes_motion else OUTPUTS
        return tuple(Output(name, shape_of(axes, m, k), unit) for name, axes, unit in given)

    @cached_property
    def _turn(self) -> Quaternion:
        """Rotation from the sensor's frame to the instrument's, at unit length."""
        return pose.normalised(self.reference)

    @cached_property
    def _thin(self) -> Beams:
        """Beams of one ray each, to see where the profile ends."""
        return self.beams.thinned

    @cached_property
    def _slants(self) -> FloatArray:
        """Slant ranges (m, k) m that the cells are taken to be at."""
        return self.cells.distances[:, None] / cosines(self.beams)

    @cached_property
    def ping_stddev(self) -> float:
        """Deviation (m/s) of one ping in one beam and cell."""
        reference = self.reference_cell_size
        return self.profile.stddev * (reference / self.cells.size if reference > 0.0 else 1.0)

    @cached_property
    def _own(self) -> tuple[Process, ...]:
        """Random processes, those of serial numbers first."""
        k, m = len(self.beams.beams), int(self.cells.count)
        pings, bottom = int(self.pings) * m * k, int(self.bottom_pings) * k
        found = [
            Process(channel, "long_term", initial=4, per_tick=0)
            for channel, accuracy, count in (("profile", self.profile, 1), ("bottom", self.bottom, bottom))
            if accuracy.lasts and count
        ]
        for channel, name, acts, count in (
            ("profile", "white", self.ping_stddev > 0.0, pings),
            ("profile", "lock", self.backscatter is not None, pings),
            ("bottom", "white", self.bottom.stddev > 0.0, bottom),
            ("range", "white", self.range_stddev > 0.0, bottom),
        ):
            if acts and count:
                found.append(Process(channel, name, per_tick=count, kind="uniform" if name == "lock" else "normal"))
        return tuple(found)

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], int]:
        """First rows of the draws by channel and process."""
        first, found = 0, {}
        for process in self._own:
            found[process.channel, process.name] = first
            first += process.per_tick
        return found

    def _row(self, channel: str, name: str) -> int:
        """Return the first row of a process's draws, -1 where it does not act."""
        return self._rows.get((channel, name), -1)

    @cached_property
    def _rules(self) -> FloatArray:
        """What a ping must be, as kernels know it."""
        choices = (list(Coordinates).index(self.coordinates), list(BinMapping).index(self.bin_mapping))
        limits = (self.error_velocity_limit, self.least_good, self.minimum_range, self.maximum_range)
        return np.array((*choices, self.least_beams, *limits), dtype=np.float64)

    @cached_property
    def _schedule(self) -> Schedule:
        """When the pings of an ensemble are."""
        speed, slants, interval = self.sound.speed or SOUND_SPEED, self._slants, self.ping_interval
        reach = max(self.cells.end / cosine for cosine in self.beams.slants)
        slots = (max(2.0 * reach / speed, interval), max(2.0 * self.maximum_range / speed, interval))
        about = (0.5 * float(slants.min() + slants.max()) / speed, 0.5 * self.maximum_range / speed)
        return schedule(int(self.pings), int(self.bottom_pings), slots, about)

    @property
    def duration(self) -> float:
        """Return how long (s) an ensemble takes: 0 without propagation."""
        return self._schedule.duration + self.processing_time if self._waits else 0.0

    @property
    def lag(self) -> float:
        """Return how long (s) before it is told an ensemble begins."""
        return self.duration

    def _instants(self, time: Times, after: FloatArray) -> Times:
        """Return instants (n, p) s of ensembles told at (n,) s, `after` their beginning (p,) s; not before 0."""
        if not self._waits:
            return np.repeat(time[:, None], after.size, axis=1)
        return np.maximum((time - self.duration)[:, None] + after, 0.0)

    def every(self, rate: float) -> int:
        """Return how many ticks of a rate (Hz) there are to an ensemble."""
        return max(math.ceil(self.duration * rate - 1e-9), 1)

    def _told(self, ticks: Ticks) -> IntArray:
        """Return which rows tell of an ensemble."""
        every = self.every(ticks.rate)
        is_told = (ticks.index % every == 0) & (not self._is_silent)
        if self._waits:
            is_told &= ticks.index > 0
        return np.asarray(np.nonzero(is_told)[0])

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return none: what noise there is in a cell goes by its pings and its echo."""
        return {}

    def remarks(self, rate: float) -> tuple[str, ...]:
        """Return beams, cells, pings, axes and errors, at a rate (Hz) of ticks."""
        cells, per = self.cells, rate / self.every(rate)
        motion = "taken out by the bottom's track" if self.removes_motion else "kept in"
        lobes = "side lobes spoil what is beyond the boundary's distance" if self.side_lobes else "no side lobes"
        found = [
            *remarks.beams(self.beams, (self.minimum_range, self.maximum_range, 0.0), own_hull=self.own_hull),
            f"cells: {cells.count} of {cells.size:g} m, the first {cells.first:g} m ahead; {lobes}",
            f"ensembles: {per:.3g} Hz of {self.pings} pings for the profile and {self.bottom_pings} for the bottom",
            f"axes: {self.coordinates}, bin mapping {self.bin_mapping}, own motion {motion}",
            remarks.sound(self.transducer, self.sound.speed),
            f"one ping, beam and cell: stddev {self.ping_stddev:g} m/s, over the bottom {self.bottom.stddev:g} m/s",
        ]
        if self.backscatter is not None:
            loss = f"{self.backscatter.level:g} dB less 20 log r and {2.0 * self.backscatter.absorption:g} dB/m"
            found.append(f"echo: {loss}; cells are good from {self.backscatter.threshold:g} dB on")
        for name, one in (("profile", self.profile), ("bottom", self.bottom)):
            if one.lasts:
                share = 100.0 * one.long_term_scale
                found.append(f"{name}, long term: deviations of {share:g} % and {one.long_term_offset:g} m/s")
        return tuple(found)

    def cautions(self, rotation_ws: Quaternion, /) -> tuple[tuple[str, str], ...]:
        """Return that motion is taken out by a bottom that too few beams look down to, where it is so."""
        down = sum(pose.rotate(rotation_ws, (x, y, z))[2] < 0.0 for x, y, z in self.beams.axes.tolist())
        if not self.removes_motion or down >= self.least_beams:
            return ()
        reason = (
            f"takes motion out by a bottom that it cannot see: {down} of its beams look down, and a velocity takes "
            f"{self.least_beams:g}; every one is NaN, but under something solid: keep the motion in, or turn it round"
        )
        return (("removes_motion", reason),)

    def processes(self) -> tuple[Process, ...]:
        """Return the random processes."""
        return self._own

    def init(self, draws: FloatArray) -> AdcpState:
        """Return this serial number's scales and offsets."""
        systematic, drawn = np.zeros((2, 4)), draws.tolist()
        for process in self._own:
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
        told = self._told(ticks)
        time = ticks.time[told]
        about = self._instants(time, np.array([self._schedule.mean]))[:, 0]
        there = motion.at(about)
        true = sound_speed(environment, there)
        ratio = np.ones(about.shape) if self.sound.speed is None else self.sound.speed / true
        turned = np.array(pose.from_rpy(0.0, 0.0, environment.heading))
        orientation, _ = self._facing(there.rotation_wb, turned, ensemble.INSTRUMENT)
        inside = self._profile(motion, environment, time, ratio, turned)
        perfect = inside[ALONG]
        if self.sound.speed is not None:
            perfect = self._profile(motion, environment, time, np.ones(about.shape), turned)[ALONG]
        inside |= self._bottom(motion, environment, time, turned)
        shown = self._perfect(inside, perfect)
        shown |= {"time_of_validity": about, "sound_speed": true, "orientation": self._instrument(orientation)}
        return {name: averaged.spread(array, told, len(ticks)) for name, array in (*shown.items(), *inside.items())}

    def _facing(
        self, rotation_ws: Quaternions, heading: FloatArray, coordinates: int
    ) -> tuple[Quaternions, Quaternions]:
        """Return the rotations (q, 4) from the sensor's axes to east, north, up and to those that are told in."""
        attitude, frames = np.empty(rotation_ws.shape), np.empty(rotation_ws.shape)
        ensemble.facing(rotation_ws, heading, np.array(self._turn), coordinates, attitude, frames)
        return attitude, frames

    def _instrument(self, attitude: Quaternions) -> Quaternions:
        """Return the attitudes (n, 4) of the axes of `instrument` for those of the sensor's."""
        return products(attitude, np.array(pose.conjugate(self._turn)))

    def _profile(
        self, motion: Motion, environment: Environment, time: Times, ratio: FloatArray, heading: FloatArray
    ) -> dict[str, FloatArray]:
        """Return what the pings of ensembles told at (n,) s hear of the water, `ratio` (n,) being c0 / c."""
        n, p, (m, k) = time.size, int(self.pings), self._slants.shape
        instants = self._instants(time, self._schedule.profile).reshape(-1)
        truth, reach = motion.at(instants), 2.0 * float(self._slants.max())
        met = echoes(self._thin, motion, environment, instants, reach, self.own_hull)
        stretch = np.repeat(1.0 / ratio, p)
        bottom = Bottom(met.range_in_reach, met.incidence)
        at, lobes = (truth, environment, instants), self.side_lobes and not self._is_classic
        found = water(self.beams, self.cells, *at, stretch, bottom, side_lobes=lobes, points=self._is_classic)
        attitude, frames = self._facing(truth.rotation_wb, heading, int(self._rules[ensemble.COORDINATES]))
        shape = (n, p, m, k)
        return {
            ALONG: found.along.reshape(shape),
            AXIAL: found.axial.reshape(shape),
            ATTITUDE: attitude.reshape(n, p, 4),
            FRAMES: frames.reshape(n, p, 4),
        }

    def _bottom(
        self, motion: Motion, environment: Environment, time: Times, heading: FloatArray
    ) -> dict[str, FloatArray]:
        """Return what the pings for the bottom hear of ensembles told at (n,) s."""
        n, p, k = time.size, int(self.bottom_pings), len(self.beams.beams)
        instants = self._instants(time, self._schedule.bottom).reshape(-1)
        truth = motion.at(instants)
        beams = self.beams.nearest_ray_beams if self.classic else self.beams
        met = echoes(beams, motion, environment, instants, self.maximum_range, self.own_hull)
        _, frames = self._facing(truth.rotation_wb, heading, int(self._rules[ensemble.COORDINATES]))
        own = np.empty((instants.size, 3))
        ensemble.own(truth.velocity_w, truth.rotation_wb, own)
        return {
            ECHO: met.range_in_reach.reshape(n, p, k),
            BOTTOM: met.velocity.reshape(n, p, k),
            OWN: own.reshape(n, p, 3),
            BOTTOM_FRAMES: frames.reshape(n, p, 4),
        }

    def _perfect(self, inside: Mapping[str, FloatArray], along: FloatArray) -> dict[str, AnyArray]:
        """Return what ensembles without errors say."""
        rules = self._rules.copy()
        rules[ensemble.ERROR_LIMIT], rules[ensemble.LEAST_GOOD] = math.inf, 0.0
        found = self._averaged(rules, inside, along, inside[ECHO], inside[BOTTOM])
        return {name: found[name] for name in (*TRUE, KEPT[0]) if name in found}

    def _averaged(
        self,
        rules: FloatArray,
        inside: Mapping[str, FloatArray],
        heard: FloatArray,
        shown: FloatArray,
        bottom: FloatArray,
    ) -> dict[str, AnyArray]:
        """Return what ensembles say whose pings hear velocities and show ranges."""
        laid = averaged.Laid(self.beams, cosines(self.beams), self.cells)
        told = averaged.profile(rules, laid, inside, heard) | averaged.bottom(rules, laid, inside, shown, bottom)
        if not self.removes_motion:
            return told
        kept = {KEPT[0]: told["velocity"].copy()}
        ensemble.still(told["velocity"], told["bottom_velocity"])
        return kept | told

    def measure(
        self, state: AdcpState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[AdcpState, Measured]:
        """Return the state, which stays, and what the ensembles say; NaN but for constants where a tick tells none."""
        n, told = len(ticks), self._told(ticks)
        inside = {name: np.ascontiguousarray(ideal[name][told]) for name in INSIDE}
        true = ideal["sound_speed"][told]
        assumed = true if self.sound.speed is None else np.full(told.shape, self.sound.speed)
        heard, echo, rho = self._heard(state, inside, assumed / true, told, draws)
        shown, track = np.empty(inside[ECHO].shape), np.empty(inside[ECHO].shape)
        sigmas = (float(self.bottom.stddev), float(self.range_stddev))
        rows = (self._row("bottom", "white"), self._row("range", "white"))
        geometry = (assumed / true, self._phased, self.beams.axes, self.beams.axis, inside[OWN])
        systematic = (float(state.systematic[1, 0]), state.systematic[1, 1:])
        heard_bottom = (inside[ECHO], inside[BOTTOM], *geometry, *systematic)
        ensemble.hear_bottom(*heard_bottom, sigmas, rows, told, draws, track, shown)
        faulty.put_on_profiler((heard, track, shown), ideal, told)
        found = self._averaged(self._rules, inside, heard, shown, track)
        wanted = "beam_velocity" if self.coordinates is Coordinates.BEAM else "velocity"
        is_good = np.isfinite(found[wanted]).any(axis=(1, 2))
        lost = np.isnan(inside[ALONG]).all(axis=1)
        found |= {"echo": np.where(lost, math.nan, echo), "correlation": np.where(lost, math.nan, rho)}
        found |= {"sound_speed": assumed, "time_of_validity": ideal["time_of_validity"][told]}
        found["orientation"] = ideal["orientation"][told]
        arrays = {name: averaged.spread(array, told, n) for name, array in found.items()}
        for name, constant in (("cell_distance", self.cell_distance), ("beam_direction", self.beam_direction)):
            arrays[name] = np.repeat(constant[None], n, axis=0)
        arrays = {output.name: arrays[output.name] for output in self.outputs}
        emitted, valid = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        emitted[told], valid[told] = True, is_good
        return state, Measured(arrays, {}, valid, emitted)

    @property
    def _phased(self) -> bool:
        return self.transducer is Transducer.PHASED_ARRAY

    def _heard(
        self,
        state: AdcpState,
        inside: Mapping[str, FloatArray],
        ratio: FloatArray,
        told: IntArray,
        draws: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the velocities (n, p, m, k) that pings hear, echo (dB) and correlation (n, m, k)."""
        along = inside[ALONG]
        n, _, m, k = along.shape
        factor, lock, echo, rho = (np.empty((n, m, k)) for _ in range(4))
        factor[:], lock[:], echo[:], rho[:] = 1.0, 1.0, math.nan, 1.0
        if self.backscatter is not None:
            figures = _figures(self.backscatter)
            ensemble.strengths(*figures, self._slants, 1.0 / ratio, factor, lock, echo, rho)
        rows = (self._row("profile", "white"), self._row("profile", "lock"))
        systematic, out = state.systematic[0], np.empty(along.shape)
        errors = (float(systematic[0]), systematic[1:], self.ping_stddev, factor, lock)
        water_heard = (along, inside[AXIAL], ratio, self._phased, self.beams.axes)
        ensemble.disturb(*water_heard, *errors, *rows, told, draws, out)
        return out, echo, rho

    def without_bottom(self, ideal: Mapping[str, AnyArray], rows: BoolArray) -> Mapping[str, AnyArray]:
        """Return what errors start from where no echo of the bottom comes back in some ensembles, `rows` (n,)."""
        lost = rows[:, None, None]
        return {**ideal, **{name: np.where(lost, math.nan, ideal[name]) for name in (ECHO, BOTTOM)}}

    def neutral(self) -> Adcp:
        """Return the same sheet without errors: it knows the speed of sound and loses no ping."""
        return replace(
            self,
            profile=EXACT,
            bottom=EXACT,
            range_stddev=0.0,
            backscatter=None,
            sound=TRUE_SOUND,
            error_velocity_limit=math.inf,
            least_good=0.0,
        )

    @classmethod
    def witness(cls) -> Adcp:
        """Return a sheet in which every parameter acts, in the shallow water where the laws are held."""
        shape = Cone(math.radians(6.0), 1, (1.0, 0.02, -0.01))
        made = janus(math.radians(25.0), [math.radians(a) for a in CROSSED]).beams
        return cls(
            beams=Beams(tuple(replace(beam, shape=shape) for beam in made), Weighting.PATTERN, 0.5),
            cells=Cells(4, 0.7, 0.1, 0.5, 0.05, 3),
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
            coordinates=Coordinates.SHIP,
            removes_motion=True,
            error_velocity_limit=0.04,
            least_good=0.4,
            reference=pose.from_rpy(0.1, 0.2, 0.3),
            dialect=Dialect.DSROS,
        )


def _figures(given: EchoStrength) -> tuple[float, float, float, float, float]:
    """Return the numbers of an echo's strength, as kernels take them."""
    level, absorption, correlation = float(given.level), float(given.absorption), float(given.correlation)
    return level, absorption, correlation, float(given.threshold), float(given.slope)


LENGTHS = ("minimum_range", "maximum_range", "reference_cell_size", "range_stddev")
LIMITS = (
    ("ping_interval", 0.0, 1e6),
    ("processing_time", 0.0, 1e3),
    ("least_good", 0.0, 1.0),
    *((name, 0.0, 1e5) for name in LENGTHS),
)
"""Fields that are finite numbers, and from where to where each may go."""

COUNTS = (("pings", 1, MOST_PINGS), ("bottom_pings", 0, MOST_PINGS), ("least_beams", 3, 16))
"""Fields that are whole numbers, and from where to where each may go."""
