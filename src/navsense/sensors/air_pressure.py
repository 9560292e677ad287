"""Air pressure sensor: the static pressure of the atmosphere at the sensor's altitude.

    pressure = p(H + reference_altitude) + errors

    H = h - N                   altitude above mean sea level in a world with a geoid
    H = elevation + z           in a world without one

p is the atmosphere of the world over altitude above mean sea level (see `environment.atmosphere`). h is the height of
the sensor above the ellipsoid, the true altitude of a NavSat at the same point, and N the undulation of the geoid there
(see `environment.geoid`). Without a geoid, the elevation of the world's origin is taken as above sea level; it is 0
without an origin. The pressure is then constant on each horizontal plane; z is the height of the sensor in the world.
`reference_altitude` raises a sensor above the world's ground instead of raising the ground (SDF).
Source: SDF 1.12 `air_pressure.sdf`; US Standard Atmosphere 1976.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

from navsense.clock import Clock
from navsense.core.random_streams import RandomProcess
from navsense.core.readings import Reading
from navsense.core.summaries import format_spec, format_spec_html
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise, make_example_noise
from navsense.sensors.base import TEMPERATURE, Measurement, Output, evaluate_signals
from navsense.sensors.catalogue import load_part
from navsense.sensors.catalogue.part_noise import make_noise
from navsense.sensors.plausibility import check_minimum
from navsense.sensors.user_arrays import check_rows, check_time, simulate_readings


@dataclass(frozen=True)
class AirPressure:
    """Specification of an air pressure sensor: its noise (Pa), and an offset of its altitude in the world (m).

    >>> ns.sensors.AirPressure(pressure=ns.Noise(stddev=2.0, bias_stddev=50.0))
    AirPressure(pressure=Noise(stddev=2.0, bias_stddev=50.0))
    """

    pressure: Noise = NO_NOISE
    reference_altitude: float = 0.0

    type: ClassVar[str] = "air_pressure"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12

    __repr__, _repr_html_ = format_spec, format_spec_html

    def __post_init__(self) -> None:
        """Check the altitude."""
        check_numbers("reference_altitude (m)", (self.reference_altitude,), 1)
        validate_types(self)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The one array of a reading: pressure (n,) Pa."""
        return (Output("pressure", 0, "Pa", "vertical"),)

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("pressure",), (self.pressure,))

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        """Return the noise of the pressure."""
        return {"pressure": (self.pressure,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the pressure."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on bias and dynamic bias."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the pressure (n,) Pa at the sensor."""
        altitude = environment.altitude_at(motion.at(ticks.time).position_w, self.reference_altitude)
        pressure = environment.atmosphere.pressure_at(altitude)
        return {"pressure": pressure, **evaluate_signals(self, environment, ticks.time)}

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the measured pressure (n,) Pa with its bias."""
        temperature = ideal.get(TEMPERATURE)
        state, values, bias = self._channels.apply(state, ticks, draws, ideal["pressure"], temperature=temperature)
        turn_on = {"pressure": state.turn_on[0]}
        return state, Measurement({"pressure": values[:, 0]}, {"pressure": bias[:, 0]}, turn_on_bias=turn_on)

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

        Raises `SensorError`, also for a negative pressure.
        """
        time = check_time(time)
        ideal = {"pressure": check_rows("pressure", pressure, time.shape)}
        check_minimum("pressure", "Pa", ideal["pressure"])
        return simulate_readings(self, time, ideal, seed=seed, run=run, name=name, clock=clock, temperature=temperature)

    @classmethod
    def from_part(cls, name: str, *, temperature: bool = False) -> AirPressure:
        """Return the spec of a part of the catalogue, see `catalogue.part_noise`.

        `temperature` enables its temperature coefficients. Raises `UnknownNameError`, `SensorError`.
        """
        (pressure,) = make_noise(load_part(name), "pressure", temperature=temperature)
        return cls(pressure)

    def without_errors(self) -> AirPressure:
        """Return the same spec without errors."""
        return replace(self, pressure=NO_NOISE)

    @classmethod
    def example_spec(cls) -> AirPressure:
        """Return a spec in which every field is active: values similar to a small barometer."""
        scale = {"scale_factor": 1e-5, "scale_factor_stddev": 1e-5, "scale_temperature_coefficient": 1e-6}
        noise = make_example_noise(3.0, **scale, minimum=98680.0, maximum=98725.0)
        return cls(noise, 100.0)
