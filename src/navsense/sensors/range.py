"""Range sensor: the distance to the nearest body in a beam. Sonar, rangefinder, single-beam acoustic altimeter.

    range = c0 / c r + errors,   r = min_i r_i                          of the rays i of the beam, at the tick
    1 / c = mean of 1 / c(depth) along the nearest ray                  c0 / c is 1 without an assumed speed

r_i is the range of ray i to the first body of the world, from the sensor's position, lever arm and mounting included.
Rays ignore the vehicle's own bodies unless `own_hull` is true. All rays have the same weight, and there is one noise
for the return. A return below `minimum_range` or above `maximum_range`, before or after the errors and injected faults,
is invalid: NaN, and `out_of_range` is the side.

For a sonar with an assumed speed of sound c0, the range is scaled by c0 / c, where c is the true speed in the world's
water, averaged over `SOUND_SPEED_SAMPLES` positions along the ray. Such a sonar receives no echo in air and from
beyond the water's surface, and the surface itself reflects nothing. Rays are straight, and the world is that of the
tick: travel time is not modelled. The range of an approaching body is off by up to r v / c, v the speed of approach.

Beams, in the sensor's frame, the axis of a `Fan` being x (as of SDF's `<ray>` and Gazebo's `MultiRayShape`):

    d_ij = (cos v_j cos h_i, cos v_j sin h_i, sin v_j)                  Fan: angles at equal steps, 0 for a single one
    ray 0 along the axis; ring k = 1 ... rings of 6 k rays at the angle width / 2 k / rings from it            Cone
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading
from navsense.core.rotation import rotate
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, BoolArray, FloatArray, Quaternions, Times, Vector, Vectors
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.environment.water import Water
from navsense.faults.schedule import add_offset
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import NO_PHYSICAL_EFFECT, TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.plausibility import check_minimum
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings

SLOWNESS = "slowness"
"""Mean of 1 / c (s/m) along the nearest ray, among the ideal values of a sonar with an assumed speed of sound."""

OUT_OF_RANGE = "out_of_range"
"""Output: -1 for a return below the minimum, 1 for no return up to the maximum, else 0."""

SOUND_SPEED_SAMPLES = 32
"""Positions along a ray at which the speed of sound is evaluated."""

MAX_RAYS = 100_000
"""Largest number of rays of a beam."""

_BATCH_SIZE = 1 << 16
"""Rays that are cast together: their arrays fit into the cache."""


def _check_between(what: str, value: float, minimum: float, maximum: float, field: str) -> None:
    """Raise `SensorError` for a number outside `minimum` to `maximum`."""
    if not minimum <= value <= maximum:
        raise SensorError(what, value, allowed=f"must be from {minimum:g} to {maximum:g}", field=field)


def _make_angles(samples: int, minimum: float, maximum: float) -> list[float]:
    """Return angles (rad) at equal steps; a single one is 0, as in Gazebo."""
    if samples == 1:
        return [0.0]
    return [minimum + k * (maximum - minimum) / (samples - 1) for k in range(int(samples))]


@dataclass(frozen=True)
class Fan:
    """Rays over a rectangle of angles (rad): left of x horizontally, above it vertically. Raises `SensorError`.

    >>> ns.sensors.Range(beam=ns.sensors.Fan(5, -0.1, 0.1)).beam
    Fan(horizontal_samples=5, horizontal_minimum=-0.1, horizontal_maximum=0.1)
    """

    horizontal_samples: int = 1
    horizontal_minimum: float = 0.0
    horizontal_maximum: float = 0.0
    vertical_samples: int = 1
    vertical_minimum: float = 0.0
    vertical_maximum: float = 0.0

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_types(self, "of a beam")
        for name, largest in (("horizontal", math.pi), ("vertical", 0.5 * math.pi)):
            samples, minimum, maximum = (getattr(self, f"{name}_{part}") for part in ("samples", "minimum", "maximum"))
            if not (samples >= 1 and samples == int(samples)):
                raise SensorError(f"{name}_samples of a beam", samples, allowed="must be a whole number >= 1")
            _check_between(f"{name}_minimum of a beam (rad)", minimum, -largest, largest, f"{name}_minimum")
            _check_between(f"{name}_maximum of a beam (rad)", maximum, minimum, largest, f"{name}_maximum")
        count = self.horizontal_samples * self.vertical_samples
        if count > MAX_RAYS:
            raise SensorError("rays of a beam", count, allowed=f"must be at most {MAX_RAYS}")

    @property
    def width(self) -> float:
        """The largest angle (rad) between two sides."""
        horizontal = self.horizontal_maximum - self.horizontal_minimum if self.horizontal_samples > 1 else 0.0
        return max(horizontal, self.vertical_maximum - self.vertical_minimum if self.vertical_samples > 1 else 0.0)

    def make_rays(self) -> Vectors:
        """Return the rays (m, 3), unit vectors in the sensor's frame."""
        across = _make_angles(self.horizontal_samples, self.horizontal_minimum, self.horizontal_maximum)
        up = _make_angles(self.vertical_samples, self.vertical_minimum, self.vertical_maximum)
        rows = [(math.cos(v) * math.cos(h), math.cos(v) * math.sin(h), math.sin(v)) for v in up for h in across]
        return np.array(rows)


@dataclass(frozen=True)
class Cone:
    """A round beam of full `width` (rad) around an `axis` of any length: a ray and rings of rays.

    Raises `SensorError`.

    >>> ns.sensors.Range(beam=ns.sensors.Cone(width=0.17, rings=2)).beam
    Cone(width=0.17, rings=2)
    """

    width: float
    rings: int = 3
    axis: Vector = (1.0, 0.0, 0.0)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the fields."""
        validate_types(self, "of a beam")
        object.__setattr__(self, "axis", tuple(self.axis))
        _check_between("width of a beam (rad)", self.width, 0.0, 2.0 * math.pi, "width")
        if not (self.rings >= 0 and self.rings == int(self.rings) and 3 * self.rings * (self.rings + 1) < MAX_RAYS):
            allowed = f"must be a whole number >= 0, for at most {MAX_RAYS} rays in all"
            raise SensorError("rings of a beam", self.rings, allowed=allowed)
        if not (len(self.axis) == 3 and 0.0 < math.hypot(*self.axis) < math.inf):
            raise SensorError("axis of a beam", self.axis, allowed="must be 3 finite numbers, not all 0")

    def make_rays(self) -> Vectors:
        """Return the rays (m, 3), unit vectors in the frame of the beam; that of a range sensor is its own."""
        rows = self.make_ring(0.0, 1)
        for ring in range(1, int(self.rings) + 1):
            rows += self.make_ring(0.5 * self.width * ring / self.rings, 6 * ring)
        return np.array(rows)

    def make_ring(self, angle: float, count: int) -> list[Vector]:
        """Return `count` rays (unit vectors, frame of the beam) at equal steps, `angle` (rad) from the axis."""
        length = math.hypot(*self.axis)
        x, y, z = (part / length for part in self.axis)
        level = math.hypot(x, y)
        side = (-y / level, x / level, 0.0) if level > 0.0 else (0.0, 1.0, 0.0)
        up = (y * side[2] - z * side[1], z * side[0] - x * side[2], x * side[1] - y * side[0])
        rays: list[Vector] = []
        for k in range(count):
            around = 2.0 * math.pi * k / count
            a, b, c = math.cos(angle), math.sin(angle) * math.cos(around), math.sin(angle) * math.sin(around)
            ray = [a * d + b * p + c * q for d, p, q in zip((x, y, z), side, up, strict=True)]
            rays.append((ray[0], ray[1], ray[2]))
        return rays


@dataclass(frozen=True)
class Sound:
    """Sound as a sensor assumes it. `speed` (m/s) is the assumed speed of sound; None: the true one.

    Raises `SensorError`.

    >>> ns.sensors.Range(sound=ns.sensors.Sound(speed=1500.0)).sound
    Sound(speed=1500.0)
    """

    speed: float | None = field(default=None, metadata=in_file(above=0.0))

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the speed."""
        validate_types(self, "of sound (m/s)")
        if self.speed is not None:
            _check_between("assumed speed of sound (m/s)", self.speed, 100.0, 10_000.0, "speed")


@kernel
def _rotate_rays(rotation: Quaternions, beam: Vectors, out: FloatArray) -> None:
    """Write the rays (n, m, 3) of a beam (m, 3) in the world, for attitudes (n, 4)."""
    for n in range(rotation.shape[0]):
        w, x, y, z = rotation[n, 0], rotation[n, 1], rotation[n, 2], rotation[n, 3]
        for m in range(beam.shape[0]):
            out[n, m, 0], out[n, m, 1], out[n, m, 2] = rotate(w, x, y, z, beam[m, 0], beam[m, 1], beam[m, 2])


@kernel
def _find_nearest(
    ranges: FloatArray, rays: FloatArray, height: FloatArray, surface: float, near: FloatArray, fall: FloatArray
) -> None:
    """Write the shortest of the ranges (n, m) that ends at or below the surface (m), and its descent (n,)."""
    for n in range(ranges.shape[0]):
        best, down = math.inf, 0.0
        for m in range(ranges.shape[1]):
            if ranges[n, m] < best and height[n] <= surface:
                drop = -rays[n, m, 2] * ranges[n, m]
                if height[n] - drop <= surface:
                    best, down = ranges[n, m], drop
        near[n], fall[n] = best, down


@kernel
def _apply_limits(
    value: FloatArray,
    true_side: FloatArray,
    minimum: float,
    maximum: float,
    out: FloatArray,
    outside: FloatArray,
    valid: BoolArray,
) -> None:
    """Write the published ranges (n,) m: NaN if a range, or the true one, is out of limits."""
    for n in range(value.shape[0]):
        side = true_side[n]
        if side == 0.0:
            side = -1.0 if value[n] < minimum else (1.0 if value[n] > maximum or value[n] == math.inf else 0.0)
        outside[n], valid[n] = side, side == 0.0
        out[n] = value[n] if side == 0.0 else math.nan


@dataclass(frozen=True)
class Range:
    """Specification of a range sensor.

    range_noise: noise of the range, m.
    minimum_range, maximum_range: m.
    beam: a `Fan` or a `Cone`.
    sound: None for optical sensors.
    own_hull: true if its rays hit the model that carries it.

    Messages of a `classic` sensor of Gazebo's `ros_plugin` have the limit instead of an infinity. Raises `SensorError`.

    >>> ns.sensors.Range(ns.Noise(stddev=0.03), minimum_range=0.5, maximum_range=100.0)
    Range(range_noise=Noise(stddev=0.03), minimum_range=0.5, maximum_range=100.0)
    """

    range_noise: Noise = field(default=NO_NOISE, metadata=in_file("noise"))
    minimum_range: float = field(default=0.0, metadata=in_file("min", minimum=0.0))
    maximum_range: float = field(default=math.inf, metadata=in_file("max", minimum=0.0))
    beam: Fan | Cone = Fan()
    sound: Sound | None = None
    own_hull: bool = False
    ros_plugin: bool = field(default=False, metadata=NO_PHYSICAL_EFFECT)
    classic: bool = field(default=False, metadata=NO_PHYSICAL_EFFECT)

    type: ClassVar[str] = "range"
    invariance_tolerance: ClassVar[float] = 1e-9
    fault_input_arrays: ClassVar[tuple[str, ...]] = ("range",)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the limits."""
        validate_types(self)
        if not 0.0 <= self.minimum_range < math.inf:
            raise SensorError("minimum_range (m)", self.minimum_range, allowed="must be at least 0 and finite")
        if not self.maximum_range > self.minimum_range:
            allowed = f"must be above the minimum, {self.minimum_range:g} m"
            raise SensorError("maximum_range (m)", self.maximum_range, allowed=allowed)

    @property
    def rotation_invariance(self) -> Literal["all", "vertical"]:
        """The rotations of the world that leave its readings unchanged: about the vertical, if depth matters."""
        return "all" if self._assumed_sound_speed is None else "vertical"

    @property
    def _assumed_sound_speed(self) -> float | None:
        """m/s: the assumed speed of sound."""
        return None if self.sound is None else self.sound.speed

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading: range (n,) m, and the side on which it is out of limits."""
        return (Output("range", 0, "m"), Output(OUT_OF_RANGE, 0, "1"))

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("range",), (self.range_noise,))

    @cached_property
    def _rays(self) -> Vectors:
        """Rays (m, 3) in the sensor's frame."""
        return self.beam.make_rays()

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return limits, beam, and whether it uses sound."""
        width = f"{math.degrees(self.beam.width):.4g} deg wide"
        wave = "light" if self.sound is None else "sound"
        speed = "" if self._assumed_sound_speed is None else f", assumes {self._assumed_sound_speed:g} m/s"
        hull = "; rays can hit the model of the sensor" if self.own_hull else ""
        beam = f"beam: {wave}{speed}, {width}; range of the nearest of {len(self._rays)} rays{hull}"
        return (f"limits: {self.minimum_range:g} to {self.maximum_range:g} m", beam)

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of the range."""
        return {"range": (self.range_noise,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the range."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on bias and dynamic bias."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the true range (n,) m, NaN if it is out of limits, and the side.

        Raises `FieldError` if a body has no position at a tick.
        """
        water = None if self._assumed_sound_speed is None else environment.water
        distance, height, fall = (np.empty(len(ticks)) for _ in range(3))
        rows = max(_BATCH_SIZE // len(self._rays), 1)
        for first in range(0, len(ticks), rows):
            part = slice(first, first + rows)
            self._cast_rays(motion, environment, water, ticks.time[part], distance[part], height[part], fall[part])
        published, side, _ = self._limit_ranges(distance, np.zeros(len(ticks)))
        ideal = {"range": published, OUT_OF_RANGE: side, **evaluate_signals(self, environment, ticks.time)}
        return ideal if water is None else {**ideal, SLOWNESS: _average_slowness(water, height, fall)}

    def _limit_ranges(self, distance: FloatArray, true_side: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return published ranges (n,) m, their sides of the limits and their validity; see `_apply_limits`."""
        count = distance.size
        published, side, valid = np.empty(count), np.empty(count), np.empty(count, dtype=np.bool_)
        _apply_limits(distance, true_side, self.minimum_range, self.maximum_range, published, side, valid)
        return published, side, valid

    def _cast_rays(
        self,
        motion: Motion,
        environment: Environment,
        water: Water | None,
        time: Times,
        distance: FloatArray,
        height: FloatArray,
        fall: FloatArray,
    ) -> None:
        """Write distance and descent (n,) m of the nearest return, and the height of the sensor."""
        motion_block = motion.at(time)
        rays = np.empty((time.shape[0], len(self._rays), 3))
        _rotate_rays(motion_block.rotation_wb, self._rays, rays)
        left_out = (environment.hull,) if environment.hull and not self.own_hull else ()
        place = motion_block.position_w[:, None, :]
        hits = environment.scene.cast(place, rays, time[:, None], self.maximum_range, left_out)
        height[:] = motion_block.position_w[:, 2]
        _find_nearest(hits.range, rays, height, math.inf if water is None else water.surface, distance, fall)

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the measured ranges (n,) m with their bias; NaN out of limits."""
        distance = ideal["range"]
        if self._assumed_sound_speed is not None and SLOWNESS in ideal:
            distance = distance * (ideal[SLOWNESS] * self._assumed_sound_speed)
        state, values, bias = self._channels.apply(state, ticks, draws, distance, temperature=ideal.get(TEMPERATURE))
        value = add_offset("range", np.ascontiguousarray(values[:, 0]), ideal)
        published, side, valid = self._limit_ranges(value, ideal[OUT_OF_RANGE])
        arrays = {"range": published, OUT_OF_RANGE: side}
        return state, Measurement(arrays, {"range": bias[:, 0]}, valid, turn_on_bias={"range": state.turn_on[0]})

    def apply(
        self,
        time: FloatArray,
        distance: FloatArray,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return readings with the errors of this spec for your own ranges.

        distance: (n,) m, infinite or NaN without a return.
        time: (n,) s.

        There is no water: an assumed speed of sound is the true one. Raises `SensorError`.
        """
        time = check_time(time)
        rows = check_rows("range", distance, time.shape, require_finite=False)
        check_minimum("range", "m", rows)
        published, side, _ = self._limit_ranges(np.where(np.isnan(rows), math.inf, rows), np.zeros(rows.size))
        options: dict[str, Any] = {"seed": seed, "run": run, "name": name, "clock": clock, "temperature": temperature}
        ideal = {"range": published, OUT_OF_RANGE: side}
        return simulate_readings(self, time, ideal, **options, require_finite=False)

    def without_errors(self) -> Range:
        """Return the same spec without errors: it uses the true speed of sound."""
        return replace(self, range_noise=NO_NOISE, sound=None if self.sound is None else Sound())

    @classmethod
    def example_spec(cls) -> Range:
        """Return a spec in which every field is active: values similar to a small altimeter's."""
        scale = {"scale_factor": 1e-3, "scale_factor_stddev": 1e-3, "scale_temperature_coefficient": 1e-4}
        noise = make_example_noise(0.02, **scale, minimum=3.02, maximum=3.3)
        return cls(noise, 2.98, 3.35, Cone(0.4, 4, (0.6, 0.3, -0.8)), Sound(1480.0), own_hull=True)


def _average_slowness(water: Water, height: FloatArray, fall: FloatArray) -> FloatArray:
    """Return the mean of 1 / c (n,) s/m from heights (n,) m along rays that descend by `fall` (n,) m."""
    total = np.zeros(height.shape[0])
    for k in range(SOUND_SPEED_SAMPLES):
        depth = (water.surface - height) + fall * ((k + 0.5) / SOUND_SPEED_SAMPLES)
        total += 1.0 / water.sound_speed_at(np.maximum(depth, 0.0))
    return total / SOUND_SPEED_SAMPLES
