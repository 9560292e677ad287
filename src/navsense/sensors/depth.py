"""Depth sensor: the pressure of the water at the sensor, and the depth that the instrument makes of it.

    pressure = p_air(surface) + p_water(d) [- surface_pressure] + errors      d >= 0, d = surface - z
    pressure = p_air(z) [- surface_pressure] + errors                         above the water
    depth    = assumed.depth(absolute pressure as read - surface_pressure)

z is the height of the sensor in the world. p_water and the surface are those of the world's water, p_air is the
pressure of the atmosphere at that altitude (`environment.water`, `environment.atmosphere`). The term in brackets is
subtracted for a gauge pressure; `surface_pressure` is the air pressure that the instrument assumes. The instrument
computes the depth from the measured pressure with the `assumed` water. The depth is therefore wrong if temperature,
salinity, latitude or weather differ, or if the pressure has an injected bias. In air it is negative, about 1 mm per
metre.
With `assumed` None the instrument knows the true water, and only errors of the pressure act:

    depth = d + (reading - ideal) / (rho g)                                   rho g of the water there

The true `depth` is d, negative above the water. A world that does not say what water it has is taken to have the one
that is assumed, its surface level with the world's origin. Waves and flow are not felt.
Source: UNESCO Technical Papers in Marine Science 44 (1983); SDF has no such sensor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from navsense.clock import Clock
from navsense.core.errors import SensorError
from navsense.core.field_metadata import NON_NEGATIVE, in_file
from navsense.core.random_streams import RandomProcess
from navsense.core.series import Reading
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import validate_types
from navsense.environment.base import Environment
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.faults.schedule import add_offset
from navsense.motion.base import Motion
from navsense.noise.channel import NEUTRAL, Noise, make_example_noise
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.sensors._cross_axis import check_numbers
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.part_noise import make_noise
from navsense.sensors.plausibility import check_minimum
from navsense.sensors.user_arrays import apply, check_rows, check_time

PRESSURE_GRADIENT = "pressure_gradient"
"""rho g (Pa/m) at the sensor, among the ideal values of one that knows its water."""

STANDARD_PRESSURE = 101325.0
"""Pa: the air's pressure at the sea, US Standard Atmosphere 1976."""

STANDARD_OCEAN = Unesco()
"""The standard ocean at 45 degrees."""

NO_WATER = "has no water, and the sensor assumes none"
REMEDY = "give <navsense:water/> in the world, or Environment(water=Water(...)), or the sensor's `assumed`"


@dataclass(frozen=True)
class Depth:
    """Data sheet of a depth sensor: the noise of its pressure (Pa), and what it takes water and air for.

    `assumed` is the formula that makes a depth of a pressure, None for an instrument that knows its water;
    `surface_pressure` (Pa) what it takes for that of the air; with `gauge` it says how much its pressure is above that.
    Raises `SensorError`.
    """

    pressure: Noise = NEUTRAL
    assumed: Unesco | Saunders | ConstantDensity | None = field(default=STANDARD_OCEAN, metadata=in_file("formula"))
    surface_pressure: float = field(default=STANDARD_PRESSURE, metadata=NON_NEGATIVE)
    gauge: bool = False

    type: ClassVar[str] = "depth"
    group: ClassVar[Literal["all", "vertical"]] = "vertical"
    tolerance: ClassVar[float] = 1e-12
    source_arrays: ClassVar[tuple[str, ...]] = ("pressure",)

    def __post_init__(self) -> None:
        """Refuse a pressure that is none."""
        check_numbers("surface_pressure (Pa)", (self.surface_pressure,), 1)
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: pressure (n,) Pa and depth (n,) m."""
        return (Output("pressure", 0, "Pa", "vertical"), Output("depth", 0, "m", "vertical"))

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("pressure",), (self.pressure,))

    @property
    def _pressure_offset(self) -> float:
        """Pa: what the instrument takes from the pressure before it says it."""
        return self.surface_pressure if self.gauge else 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the signals that the sheet needs."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return the depth formula, and the pressure that a gauge subtracts."""
        air = "" if self.assumed is None else f", with {self.surface_pressure:g} Pa at the surface"
        gauge = (f"pressure: gauge, relative to {self.surface_pressure:g} Pa",) if self.gauge else ()
        return (f"depth: by {self._formula_text}{air}", *gauge)

    @property
    def _formula_text(self) -> str:
        """What makes a depth of a pressure, in words."""
        match self.assumed:
            case Unesco(latitude):
                return f"the UNESCO formula for latitude {math.degrees(latitude):.9g} deg"
            case Saunders(latitude):
                return f"the Saunders formula for latitude {math.degrees(latitude):.9g} deg"
            case ConstantDensity(density, gravity):
                return f"a density of {density:g} kg/m^3 and a gravity of {gravity:g} m/s^2"
        return "the water of the world"

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of the pressure; the depth has none of its own."""
        return {"pressure": (self.pressure,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the pressure."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return this serial number's turn-on bias and drift."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the pressure (n,) Pa at the sensor and its depth (n,) m below the surface.

        Raises `SensorError` where neither the world nor the sheet says what the water is.
        """
        water = environment.water
        below = self.assumed.pressure if water is None and self.assumed else None
        if water is not None:
            below = water.pressure_at
        if below is None:
            raise SensorError("the world of a depth sensor", allowed=NO_WATER, remedy=REMEDY)
        surface = 0.0 if water is None else water.surface
        elevation = environment.origin.elevation if environment.origin else 0.0
        height, air = motion.at(ticks.time).position_w[:, 2], environment.atmosphere
        depth = surface - height
        wet = depth >= 0.0
        pressure = np.empty(depth.shape[0])
        pressure[wet] = air.pressure_at(np.array([elevation + surface]))[0] + below(depth[wet])
        pressure[~wet] = air.pressure_at(height[~wet] + elevation)
        ideal = {
            "pressure": pressure - self._pressure_offset,
            "depth": depth,
            **evaluate_signals(self, environment, ticks.time),
        }
        if self.assumed is None and water is not None:
            ideal[PRESSURE_GRADIENT] = water.pressure_gradient_at(np.where(wet, depth, 0.0))
        return ideal

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state, the noisy pressure (n,) Pa with its slow error, and the depth (n,) m made of it."""
        state, values, slow = self._channels.apply(
            state, ticks, draws, ideal["pressure"], temperature=ideal.get(TEMPERATURE)
        )
        pressure = add_offset("pressure", np.ascontiguousarray(values[:, 0]), ideal)
        arrays = {"pressure": pressure, "depth": self._compute_depth(pressure, ideal)}
        return state, Measurement(arrays, {"pressure": slow[:, 0]}, turn_on_bias={"pressure": state.turn_on[0]})

    def _compute_depth(self, pressure: FloatArray, ideal: Mapping[str, AnyArray]) -> FloatArray:
        """Return the depth (n,) m that the instrument makes of the pressure (n,) Pa that it says."""
        if self.assumed is None:
            return np.asarray(ideal["depth"] + (pressure - ideal["pressure"]) / ideal[PRESSURE_GRADIENT])
        return self.assumed.depth(pressure + (self._pressure_offset - self.surface_pressure))

    def apply(
        self,
        time: FloatArray,
        pressure: FloatArray,
        *,
        seed: int,
        run: int = 0,
        name: str | None = None,
        clock: Clock | None = None,
        temperature: FloatArray | None = None,
    ) -> Reading:
        """Return this sheet's errors on one's own pressures (n,) Pa, time (n,) s, temperature (n,) K.

        The pressures are gauge ones where the sheet says so; the true depth is what the formula makes of them. Raises
        `SensorError`, for a sheet that assumes no water too.
        """
        seconds = check_time(time)
        own = check_rows("pressure", pressure, seconds.shape)
        check_minimum("pressure", "Pa", own, 0.0 - self._pressure_offset)
        if self.assumed is None:
            allowed = "must be a formula: one's own pressures have no depth beside them"
            raise SensorError("assumed", None, allowed=allowed)
        given = {"pressure": own, "depth": self._compute_depth(own, {})}
        return apply(self, seconds, given, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> Depth:
        """Return the data sheet of a part of the catalogue, by the rules of `catalogue.sheet`, of absolute pressure.

        With `temperature` its temperature coefficients act. Raises `UnknownNameError`, `SensorError`.
        """
        (pressure,) = make_noise(load_part(name), "pressure", temperature=temperature)
        return cls(pressure)

    def without_errors(self) -> Depth:
        """Return the same sheet without errors: it knows the water that it is in."""
        return replace(self, pressure=NEUTRAL, assumed=None)

    @classmethod
    def example_spec(cls) -> Depth:
        """Return a sheet in which every parameter acts: figures of the order of a small sensor's of 30 bar."""
        scale = {"scale_factor": 1e-3, "scale_factor_stddev": 1e-3, "scale_temperature_coefficient": 1e-4}
        noise = make_example_noise(20.0, **scale, minimum=-1500.0, maximum=6000.0)
        return cls(noise, Unesco(0.7), 100500.0, gauge=True)
