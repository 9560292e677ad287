"""Depth sensor: the pressure of the water at the sensor, and the depth that the instrument computes from it.

    pressure = p_air(surface) + p_water(d) [- surface_pressure] + errors      d >= 0, d = surface - z
    pressure = p_air(z) [- surface_pressure] + errors                         above the water
    depth    = assumed.depth(measured absolute pressure - surface_pressure)

z is the height of the sensor in the world. p_water and the surface are those of the world's water, p_air is the
pressure of the atmosphere there (`environment.water`, `Environment.altitude_at`). The term in brackets is
subtracted for a gauge pressure; `surface_pressure` is the air pressure that the instrument assumes. The instrument
computes the depth from the measured pressure with the `assumed` water. The depth is therefore wrong if temperature,
salinity, latitude or weather differ, or if the pressure has an injected bias. In air it is negative, about 1 mm per
metre.

With `assumed` None the instrument uses the true water, and only errors of the pressure act:

    depth = d + (reading - ideal) / (rho g)                                   rho g of the water there

The true `depth` is d, negative above the water. In a world without water, the water is the assumed one, with its
surface at height 0. Waves and flow do not change the pressure.
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
from navsense.core.readings import Reading
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.environment.seawater import ConstantDensity, Saunders, Unesco
from navsense.faults.schedule import add_offset
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.part_noise import make_noise
from navsense.sensors.plausibility import check_minimum
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings

PRESSURE_GRADIENT = "pressure_gradient"
"""rho g (Pa/m) at the sensor, among the ideal values if the instrument uses the true water."""

STANDARD_PRESSURE = 101325.0
"""Pa: standard air pressure at sea level, US Standard Atmosphere 1976."""

STANDARD_OCEAN = Unesco()
"""The standard ocean at 45 degrees."""

NO_WATER = "has no water, and the sensor has no `assumed` water"
REMEDY = "give <navsense:water/> in the world, or Environment(water=Water(...)), or the sensor's `assumed`"


@dataclass(frozen=True)
class Depth:
    """Specification of a depth sensor.

    pressure: noise of the pressure, Pa.
    assumed: the formula for the depth; None for the true water.
    surface_pressure: the air pressure that the instrument assumes, Pa.
    gauge: true for a pressure relative to `surface_pressure`.

    Raises `SensorError`.

    >>> ns.sensors.Depth(pressure=ns.Noise(stddev=60.0, precision=10.0))
    Depth(pressure=Noise(stddev=60.0, precision=10.0))
    """

    pressure: Noise = NO_NOISE
    assumed: Unesco | Saunders | ConstantDensity | None = field(default=STANDARD_OCEAN, metadata=in_file("formula"))
    surface_pressure: float = field(default=STANDARD_PRESSURE, metadata=NON_NEGATIVE)
    gauge: bool = False

    type: ClassVar[str] = "depth"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12
    fault_input_arrays: ClassVar[tuple[str, ...]] = ("pressure",)

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the pressure."""
        check_numbers("surface_pressure (Pa)", (self.surface_pressure,), 1)
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays of a reading: pressure (n,) Pa and depth (n,) m."""
        return (Output("pressure", 0, "Pa", "vertical"), Output("depth", 0, "m", "vertical"))

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("pressure",), (self.pressure,))

    @property
    def _pressure_offset(self) -> float:
        """Pa: subtracted from the absolute pressure."""
        return self.surface_pressure if self.gauge else 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def describe(self, rate: float) -> tuple[str, ...]:
        """Return the depth formula, and the pressure that a gauge subtracts."""
        air = "" if self.assumed is None else f", with {self.surface_pressure:g} Pa at the surface"
        gauge = (f"pressure: gauge, relative to {self.surface_pressure:g} Pa",) if self.gauge else ()
        return (f"depth: by {self._formula_text}{air}", *gauge)

    @property
    def _formula_text(self) -> str:
        """The name of the depth formula."""
        match self.assumed:
            case Unesco(latitude):
                return f"the UNESCO formula for latitude {math.degrees(latitude):.9g} deg"
            case Saunders(latitude):
                return f"the Saunders formula for latitude {math.degrees(latitude):.9g} deg"
            case ConstantDensity(density, gravity):
                return f"a density of {density:g} kg/m^3 and a gravity of {gravity:g} m/s^2"
        return "the water of the world"

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of the pressure; the errors of the depth follow from it."""
        return {"pressure": (self.pressure,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the pressure."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on bias and dynamic bias."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the pressure (n,) Pa at the sensor and its depth (n,) m below the surface.

        Raises `SensorError` if neither the world nor the spec defines the water.
        """
        water = environment.water
        below = self.assumed.pressure if water is None and self.assumed else None
        if water is not None:
            below = water.pressure_at
        if below is None:
            raise SensorError("the world of a depth sensor", allowed=NO_WATER, remedy=REMEDY)
        surface = 0.0 if water is None else water.surface
        position_w = motion.at(ticks.time).position_w
        depth = surface - position_w[:, 2]
        wet = depth >= 0.0
        in_air = position_w.copy()
        in_air[wet, 2] = surface
        pressure = environment.atmosphere.pressure_at(environment.altitude_at(in_air))
        pressure[wet] += below(depth[wet])
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
        """Return the new state, the noisy pressure (n,) Pa with its bias, and the depth (n,) m computed from it."""
        temperature = ideal.get(TEMPERATURE)
        state, values, bias = self._channels.apply(state, ticks, draws, ideal["pressure"], temperature=temperature)
        pressure = add_offset("pressure", np.ascontiguousarray(values[:, 0]), ideal)
        arrays = {"pressure": pressure, "depth": self._compute_depth(pressure, ideal)}
        return state, Measurement(arrays, {"pressure": bias[:, 0]}, turn_on_bias={"pressure": state.turn_on[0]})

    def _compute_depth(self, pressure: FloatArray, ideal: Mapping[str, AnyArray]) -> FloatArray:
        """Return the depth (n,) m that the instrument computes from the measured pressure (n,) Pa."""
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
        """Return readings with the errors of this spec for your own pressures (n,) Pa, time (n,) s, temperature (n,) K.

        The pressures are gauge pressures with `gauge`. The true depth is that of the formula. Raises `SensorError`,
        also for a spec without a formula.
        """
        time = check_time(time)
        rows = check_rows("pressure", pressure, time.shape)
        check_minimum("pressure", "Pa", rows, 0.0 - self._pressure_offset)
        if self.assumed is None:
            raise SensorError("assumed", None, allowed="must be a formula: your own pressures have no true depth")
        ideal = {"pressure": rows, "depth": self._compute_depth(rows, {})}
        return simulate_readings(self, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> Depth:
        """Return the spec of a part of the catalogue, see `catalogue.part_noise`; the pressure is absolute.

        `temperature` enables its temperature coefficients. Raises `UnknownNameError`, `SensorError`.
        """
        (pressure,) = make_noise(load_part(name), "pressure", temperature=temperature)
        return cls(pressure)

    def without_errors(self) -> Depth:
        """Return the same spec without errors: it uses the true water."""
        return replace(self, pressure=NO_NOISE, assumed=None)

    @classmethod
    def example_spec(cls) -> Depth:
        """Return a spec in which every field is active: values similar to a small sensor's of 30 bar."""
        scale = {"scale_factor": 1e-3, "scale_factor_stddev": 1e-3, "scale_temperature_coefficient": 1e-4}
        noise = make_example_noise(20.0, **scale, minimum=-1500.0, maximum=6000.0)
        return cls(noise, Unesco(0.7), 100500.0, gauge=True)
