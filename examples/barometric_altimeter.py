"""A sensor of one's own with a memory: the barometric altimeter of an aircraft, held to the laws and flown from SDF.

    steady   = p(h) + position_error rho v^2 / 2            Pa at the static port, in the day's air
    lag dpressure/dt = steady - pressure                    the air in the tube, settled at the start
    reading  = pressure + errors
    altitude = h_ISA(reading, setting)                      what the scale says to it

p, rho are pressure and density of a standard troposphere with the day's `sea_level_pressure` and `temperature_offset`,
h the height of the port in the world, v its speed through the air, which is calm. The scale is that of the standard
atmosphere, set to `setting` (QNH). Between samples the steady pressure is taken as linear, and so the lag is exact.
Sources: NOAA-S/T 76-1562 for the air; Gracey, Measurement of Aircraft Speed and Altitude (NASA, 1980), for position
error and lag.

python examples/barometric_altimeter.py
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.ticks import Ticks
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import make_example_noise
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.noise import parse_child_noise
from navsense.sdf.xml_reader import Element
from navsense.sensors import Measurement, Output
from navsense.sensors.base import TEMPERATURE, evaluate_signals
from navsense.testing import check_sensor

NO_ERRORS = ns.Noise()
STANDARD_PRESSURE, STANDARD_TEMPERATURE = 101325.0, 288.15

NUMBERS = {
    "sea_level_pressure": STANDARD_PRESSURE,
    "temperature_offset": 0.0,
    "setting": STANDARD_PRESSURE,
    "lag": 0.0,
    "position_error": 0.0,
}
TYPE_ELEMENT = ElementSchema(children=frozenset(("noise", *NUMBERS)))
"""What may stand in <barometric_altimeter>, with the numbers' defaults."""


@kernel
def follow(steady: Any, span: Any, lag: float, state: Any, out: Any) -> None:
    """Write the lagged pressure (n,); `span` (n,) s since the sample before, `state`: its steady pressure and its own.

    Exact for a steady pressure that is linear between samples; the state moves on.
    """
    before, own = state[0], state[1]
    for i in range(steady.shape[0]):
        if lag > 0.0 and span[i] > 0.0:
            a = span[i] / lag
            gone = -math.expm1(-a)
            own += (before - own) * gone + (steady[i] - before) * (1.0 - gone / a)
        else:
            own = steady[i]
        before = steady[i]
        out[i] = own
    state[0], state[1] = before, own


@dataclass(frozen=True, eq=False)
class Tube:
    """The instrument now: its channel, steady pressure and own pressure at the last tick (Pa), and that tick."""

    channel: NoiseState
    pressures: Any
    last: int = -1


@dataclass(frozen=True)
class BarometricAltimeter:
    """Data sheet: the day's air (Pa at sea level, K above the standard), the scale's setting (Pa), lag (s), errors.

    `position_error` is the share of the dynamic pressure that the static port feels.
    """

    sea_level_pressure: float = STANDARD_PRESSURE
    temperature_offset: float = 0.0
    setting: float = STANDARD_PRESSURE
    lag: float = 0.0
    position_error: float = 0.0
    noise_of_pressure: ns.Noise = NO_ERRORS

    type: ClassVar[str] = "barometric_altimeter"
    symmetry_group: ClassVar[Literal["all", "vertical"]] = "vertical"
    symmetry_tolerance: ClassVar[float] = 1e-12

    def __post_init__(self) -> None:
        """Refuse a lag that would look ahead; the two atmospheres refuse what is no air."""
        if not 0.0 <= self.lag < math.inf:
            raise SensorError("lag of a barometric altimeter (s)", self.lag, allowed="must be finite and >= 0")
        _ = self._air, self._scale

    @cached_property
    def _air(self) -> Atmosphere:
        return Atmosphere(STANDARD_TEMPERATURE + self.temperature_offset, self.sea_level_pressure)

    @cached_property
    def _scale(self) -> Atmosphere:
        return Atmosphere(STANDARD_TEMPERATURE, self.setting)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: pressure Pa and altitude m, (n,) each."""
        return (Output("pressure", 0, "Pa", "vertical"), Output("altitude", 0, "m", "vertical"))

    @cached_property
    def _channel(self) -> NoiseChannels:
        return NoiseChannels(("pressure",), (self.noise_of_pressure,))

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the signals that the sheet needs."""
        return (TEMPERATURE,) if self._channel.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[ns.Noise, ...]]:
        """Return the noise of the pressure."""
        return {"pressure": self._channel.noises}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the pressure."""
        return self._channel.processes

    def init(self, draws: Any) -> Tube:
        """Return this instrument before its first sample."""
        return Tube(self._channel.init(draws), np.zeros(2))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, Any]:
        """Return static pressure Pa, what the scale says to it (m), and the dynamic pressure Pa, (n,) each."""
        truth = motion.at(ticks.time)
        height, (vx, vy, vz) = truth.position_w[:, 2], truth.velocity_w.T
        pressure = self._air.pressure_at(height)
        dynamic = 0.5 * self._air.density_at(height) * (vx * vx + vy * vy + vz * vz)
        warm = evaluate_signals(self, environment, ticks.time)
        altitude = self._scale.altitude_at_pressure(pressure)
        return {"pressure": pressure, "altitude": altitude, "dynamic_pressure": dynamic, **warm}

    def measure(self, state: Tube, ticks: Ticks, ideal: Mapping[str, Any], draws: Any) -> tuple[Tube, Measurement]:
        """Return the new state and the readings, with the slow error of the pressure."""
        steady = ideal["pressure"] + self.position_error * ideal["dynamic_pressure"]
        first = state.last < 0
        span = np.diff(ticks.index, prepend=ticks.index[:1] if first else state.last) / ticks.rate
        pressures, felt = state.pressures.copy(), np.empty(len(ticks))
        follow(steady, span, self.lag, pressures, felt)
        temperature = ideal.get(TEMPERATURE)
        channel, values, slow = self._channel.apply(state.channel, ticks, draws, felt, temperature=temperature)
        last = int(ticks.index[-1]) if len(ticks) else state.last
        pressure = np.ascontiguousarray(values[:, 0])
        arrays = {"pressure": pressure, "altitude": self._scale.altitude_at_pressure(pressure)}
        return Tube(channel, pressures, last), Measurement(arrays, {"pressure": slow[:, 0]})

    def without_errors(self) -> BarometricAltimeter:
        """Return the same sheet without errors of the instrument; the weather stays."""
        return replace(self, lag=0.0, position_error=0.0, noise_of_pressure=NO_ERRORS)

    @classmethod
    def example_spec(cls) -> BarometricAltimeter:
        """Return a sheet in which every parameter acts."""
        noise = make_example_noise(3.0, precision=0.01, minimum=99700.0, maximum=100700.0)
        return cls(100000.0, 12.0, 100500.0, 0.4, 0.02, noise)

    @staticmethod
    def parse(context: Context, type_element: Element | None, sensor_context: Any) -> BarometricAltimeter:
        """Return the sheet that a <barometric_altimeter> describes."""
        if type_element is None:
            return BarometricAltimeter()
        context.check(type_element, TYPE_ELEMENT)
        least = {"lag": 0.0}
        given = {
            tag: parse_child_number(context, type_element, tag, default, minimum=least.get(tag, -math.inf))
            for tag, default in NUMBERS.items()
        }
        return BarometricAltimeter(
            **given, noise_of_pressure=parse_child_noise(context, type_element, classic=sensor_context.classic)
        )


WORLD = """<sdf version="1.9"><world name="climb"><model name="aircraft">
  <navsense:motion xmlns:navsense="https://navsense.org/sdf">
    <navsense:waypoint time="0">0 0 100 0 0 0</navsense:waypoint>
    <navsense:waypoint time="5">0 0 100 0 0 0</navsense:waypoint>
    <navsense:waypoint time="10">0 0 100 0 0 0</navsense:waypoint>
    <navsense:waypoint time="15">0 0 100 0 0 0</navsense:waypoint>
    <navsense:waypoint time="20">0 0 100 0 0 0</navsense:waypoint>
    <navsense:waypoint time="40">1000 0 200 0 0 0</navsense:waypoint>
    <navsense:waypoint time="60">2000 0 300 0 0 0</navsense:waypoint>
    <navsense:waypoint time="80">3000 0 400 0 0 0</navsense:waypoint>
    <navsense:waypoint time="100">3000 0 400 0 0 0</navsense:waypoint>
  </navsense:motion>
  <link name="cockpit">
    <sensor name="altimeter" type="custom" gz:type="barometric_altimeter">
      <update_rate>20</update_rate>
      <barometric_altimeter>
        <sea_level_pressure>100300</sea_level_pressure>
        <temperature_offset>10</temperature_offset>
        <setting>100300</setting>
        <lag>1.5</lag>
        <position_error>0.03</position_error>
        <noise type="gaussian"><stddev>2</stddev></noise>
      </barometric_altimeter>
    </sensor>
  </link>
</model></world></sdf>"""


def main() -> None:
    """Hold the altimeter to the laws, fly a climb from a world of SDF, and look for its errors one by one."""
    check_sensor(BarometricAltimeter)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "climb.sdf"
        path.write_text(WORLD)
        world = ns.load(path, sensors=[BarometricAltimeter])
        run = ns.simulate(world, 100.0, seed=7, truth_rate=20.0)
        run.save(Path(folder) / "climb.mcap")
    reading, truth = run["aircraft::cockpit::altimeter"], run.truth["aircraft::cockpit"]
    height, speed = truth.position[:, 2], truth.velocity
    off = reading["altitude"] - height
    # Ten degrees above the standard air is thinner by 10 / 298: the scale, set to the day's pressure, counts too few
    # metres. Climbing, the tube is 1.5 s behind; and 3 % of rho v^2 / 2 on the port look like a lower place.
    thin = height * 10.0 / 298.15
    behind = 1.5 * speed[:, 2]
    felt = 0.03 * 0.5 * np.sum(speed**2, axis=1) / 9.81
    expected = -(thin + behind + felt)
    metres = 2.0 / 11.5  # what the noise is: 11.5 Pa a metre in this air
    for when, rows in (("before", truth.time < 5.0), ("in the climb", (truth.time > 45.0) & (truth.time < 55.0))):
        parts = ", ".join(f"{part[rows].mean():.1f} m {name}" for part, name in ((thin, "warmth"), (behind, "lag")))
        print(f"{when}: {off[rows].mean():+.1f} m; of this {parts}, {felt[rows].mean():.1f} m speed")
        chance = 5.0 * metres / math.sqrt(float(np.count_nonzero(rows)))
        assert abs(float((off - expected)[rows].mean())) < chance + 0.01 * float(-expected[rows].mean())


if __name__ == "__main__":
    main()
