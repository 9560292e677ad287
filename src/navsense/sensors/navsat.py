"""NavSat (GNSS) receiver: geodetic position and velocity of its antenna.

    (latitude, longitude)  = true position moved by e_east, e_north m along its horizontal plane
    altitude               = altitude(p) + errors
    velocity               = east, north, up of v_w at the true position + errors
    e                      = channel(x) - x,   x the metres east or north of the world's origin

p and v_w are position and velocity of the antenna in the world, lever arm included. The world is tangent to the WGS-84
ellipsoid at its origin and rotated by its heading (see `geodesy`). Errors are in metres at any latitude, also at the
poles. East and north are two channels with one specification. Limits and rounding act on x, along the axes of the
world's origin. Source: SDF 1.12 `navsat.sdf`; gz-sensors' `NavSatSensor`, which adds the metres to degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import in_file
from navsense.core.geodesy import MAX_ELEVATION, Origin, ecef_to_geodetic, geodetic_to_ecef
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading, make_read_only
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray, Vectors
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings

POSITION_ARRAYS = ("latitude", "longitude", "altitude")
_LIMITS = {"latitude": (math.pi / 2.0, "rad"), "longitude": (2.0 * math.pi, "rad"), "altitude": (MAX_ELEVATION, "m")}
"""Largest values of your own positions, with their units."""

EAST_NORTH = ("east", "north")
"""Metres east and north of the world's origin, on which limits and quantisation act."""

NO_ORIGIN = "has no place on earth, which a NavSat requires"
REMEDY = "give <spherical_coordinates> in the world, or Environment(origin=Origin(...))"


@kernel
def _displace(
    positions: tuple[FloatArray, FloatArray, FloatArray],
    true: tuple[FloatArray, FloatArray],
    measured: tuple[FloatArray, FloatArray],
    latitude: FloatArray,
    longitude: FloatArray,
) -> None:
    """Write latitude and longitude (n,) rad of points that are `measured` - `true` (m) east and north of `positions`.

    positions: latitude, longitude rad, altitude m.
    true, measured: metres east and north of the world's origin.
    """
    for i in range(latitude.shape[0]):
        latitude[i], longitude[i] = positions[0][i], positions[1][i]
        east, north = measured[0][i] - true[0][i], measured[1][i] - true[1][i]
        if east == 0.0 and north == 0.0:
            continue
        s, c = math.sin(latitude[i]), math.cos(latitude[i])
        sine, cosine = math.sin(longitude[i]), math.cos(longitude[i])
        x, y, z = geodetic_to_ecef(latitude[i], longitude[i], positions[2][i])
        x, y, z = x - sine * east - s * cosine * north, y + cosine * east - s * sine * north, z + c * north
        latitude[i], longitude[i], _ = ecef_to_geodetic(x, y, z)


@kernel
def _measure_displacement(
    positions: tuple[FloatArray, FloatArray, FloatArray],
    measured: tuple[FloatArray, FloatArray],
    east: FloatArray,
    north: FloatArray,
) -> None:
    """Write the metres (n,) east and north from `positions` to the `measured` latitude and longitude (rad)."""
    for i in range(east.shape[0]):
        s, c = math.sin(positions[0][i]), math.cos(positions[0][i])
        sine, cosine = math.sin(positions[1][i]), math.cos(positions[1][i])
        x, y, z = geodetic_to_ecef(positions[0][i], positions[1][i], positions[2][i])
        latitude, longitude = measured[0][i], measured[1][i]
        a, b, d = geodetic_to_ecef(latitude, longitude, positions[2][i])
        x, y, z = a - x, b - y, d - z
        nx, ny = math.cos(latitude) * math.cos(longitude), math.cos(latitude) * math.sin(longitude)
        nz = math.sin(latitude)
        above = (c * (cosine * x + sine * y) + s * z) / (c * (cosine * nx + sine * ny) + s * nz)
        x, y, z = x - above * nx, y - above * ny, z - above * nz
        east[i], north[i] = cosine * y - sine * x, c * z - s * (cosine * x + sine * y)


@dataclass(frozen=True)
class NavSat:
    """Specification of a GNSS receiver.

    horizontal_position, vertical_position: noise of the position, m. The horizontal noise acts on east and on north.
    horizontal_velocity, vertical_velocity: noise of the velocity, m/s.

    >>> ns.sensors.NavSat(horizontal_position=ns.Noise(stddev=1.5), vertical_position=ns.Noise(stddev=3.0))
    NavSat(horizontal_position=Noise(stddev=1.5), vertical_position=Noise(stddev=3.0))
    """

    horizontal_position: Noise = field(default=NO_NOISE, metadata=in_file("horizontal", container="position_sensing"))
    vertical_position: Noise = field(default=NO_NOISE, metadata=in_file("vertical", container="position_sensing"))
    horizontal_velocity: Noise = field(default=NO_NOISE, metadata=in_file("horizontal", container="velocity_sensing"))
    vertical_velocity: Noise = field(default=NO_NOISE, metadata=in_file("vertical", container="velocity_sensing"))

    type: ClassVar[str] = "navsat"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the noises."""
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading: latitude, longitude rad, altitude m, (n,), and velocity (n, 3) m/s."""
        units = zip(POSITION_ARRAYS, ("rad", "rad", "m"), strict=True)
        scalars = tuple(Output(name, 0, unit, "vertical") for name, unit in units)
        return (*scalars, Output("velocity", 3, "m/s", "vertical"))

    @cached_property
    def _channels(self) -> NoiseChannels:
        position, velocity = self.horizontal_position, self.horizontal_velocity
        names = tuple(f"{what}.{axis}" for what in ("position", "velocity") for axis in ("east", "north", "up"))
        noises = (position, position, self.vertical_position, velocity, velocity, self.vertical_velocity)
        return NoiseChannels(names, noises)

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of each array: metres for the position, m/s for each axis of the velocity."""
        horizontal, velocity = self.horizontal_position, self.horizontal_velocity
        places = {"latitude": (horizontal,), "longitude": (horizontal,), "altitude": (self.vertical_position,)}
        return {**places, "velocity": (velocity, velocity, self.vertical_velocity)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the six axes, position first."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on biases and dynamic biases."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return latitude, longitude rad, altitude m (n,) and velocity (n, 3) m/s east north up at the antenna.

        Raises `SensorError` for a world without a place on earth.
        """
        origin = environment.origin
        if origin is None:
            raise SensorError("the world of a navsat", allowed=NO_ORIGIN, remedy=REMEDY)
        motion_block = motion.at(ticks.time)
        positions = origin.to_geodetic(motion_block.position_w)
        return {
            **_split_columns(POSITION_ARRAYS, positions),
            "velocity": origin.to_enu_at(positions, motion_block.velocity_w),
            **_split_columns(EAST_NORTH, origin.to_enu(motion_block.position_w)),
            **evaluate_signals(self, environment, ticks.time),
        }

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the readings; the biases of the position are metres north, east and up."""
        metres = (make_read_only(ideal["east"]), make_read_only(ideal["north"]))
        channels = (*metres, ideal["altitude"], ideal["velocity"])
        state, values, bias = self._channels.apply(state, ticks, draws, *channels, temperature=ideal.get(TEMPERATURE))
        latitude, longitude = np.empty(len(ticks)), np.empty(len(ticks))
        _displace(_get_positions(ideal), metres, (values[:, 0], values[:, 1]), latitude, longitude)
        arrays = {"latitude": latitude, "longitude": longitude, "altitude": values[:, 2], "velocity": values[:, 3:]}
        return state, Measurement(arrays, _name_channels(bias), turn_on_bias=_name_channels(state.turn_on))

    def apply(
        self,
        time: FloatArray,
        latitude: FloatArray,
        longitude: FloatArray,
        altitude: FloatArray,
        velocity: Vectors,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return readings with the errors of this spec for your own positions and velocities.

        latitude, longitude: (n,) rad. The first row is the origin of limits and rounding.
        altitude: (n,) m.
        velocity: (n, 3) m/s, east north up.
        time: (n,) s.
        temperature: (n,) K.

        Raises `SensorError`.
        """
        time = check_time(time)
        arrays = dict(zip(POSITION_ARRAYS, (latitude, longitude, altitude), strict=True))
        ideal = {key: check_rows(key, array, time.shape, require_finite=False) for key, array in arrays.items()}
        for key, (limit, unit) in _LIMITS.items():
            invalid = np.nonzero(~(np.abs(ideal[key]) <= limit))[0]
            if invalid.size:
                what, value = f"{key} of row {int(invalid[0])} ({unit})", float(ideal[key][invalid[0]])
                raise SensorError(what, value, allowed=f"must be from {-limit:g} to {limit:g}")
        positions = np.array(list(ideal.values())).T
        metres = Origin(*(float(part) for part in positions[0])).to_world(positions)
        ideal |= {"velocity": velocity, **_split_columns(EAST_NORTH, metres)}
        return simulate_readings(self, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @property
    def noise_quantities(self) -> Mapping[str, Output]:
        """The metres that the noise of latitude and longitude acts on."""
        return {"latitude": Output("north", 0, "m", "vertical"), "longitude": Output("east", 0, "m", "vertical")}

    def compute_errors(self, arrays: Mapping[str, AnyArray], ideal: Mapping[str, AnyArray]) -> Mapping[str, AnyArray]:
        """Return the metres (n,) north and east, along the horizontal plane, from ideal to measured positions."""
        positions = _get_positions(ideal)
        east, north = np.empty(len(positions[0])), np.empty(len(positions[0]))
        measured = (arrays["latitude"].view(), arrays["longitude"].view())
        for array in measured:
            array.setflags(write=False)  # the kernel takes read-only arrays; those of the caller stay as they are
        _measure_displacement(positions, measured, east, north)
        return {"latitude": north, "longitude": east}

    def without_errors(self) -> NavSat:
        """Return the same spec without errors."""
        return NavSat()

    @classmethod
    def example_spec(cls) -> NavSat:
        """Return a spec in which every field is active: values similar to a receiver without corrections."""
        large = {"scale_factor": 0.1, "scale_factor_stddev": 0.1, "scale_temperature_coefficient": 0.02}
        small = {"scale_factor": 1e-3, "scale_factor_stddev": 1e-3, "scale_temperature_coefficient": 1e-4}
        horizontal = make_example_noise(0.3, **large, minimum=-1.0, maximum=2.0)
        vertical = make_example_noise(0.3, **small, minimum=120.5, maximum=122.5)
        velocity = make_example_noise(0.3, **large, minimum=-2.0, maximum=2.0)
        return cls(horizontal, vertical, velocity, velocity)


def _get_positions(ideal: Mapping[str, AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return latitude, longitude and altitude (n,), read-only."""
    latitude, longitude, altitude = (make_read_only(ideal[name]) for name in POSITION_ARRAYS)
    return latitude, longitude, altitude


def _split_columns(names: tuple[str, ...], rows: AnyArray) -> dict[str, AnyArray]:
    """Return contiguous columns (n,) of some rows by name."""
    return {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)}


def _name_channels(channels: AnyArray) -> dict[str, AnyArray]:
    """Return the six channels (..., 6) by the names of their arrays."""
    east, north, up = channels[..., 0], channels[..., 1], channels[..., 2]
    return {"latitude": north, "longitude": east, "altitude": up, "velocity": channels[..., 3:]}
