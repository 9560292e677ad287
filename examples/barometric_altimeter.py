"""A sensor of your own with memory: the barometric altimeter of an aircraft.

    p_port    = p(h) + position_error rho v^2 / 2              Pa, at the static port
    lag dp/dt = p_port - p                                     p: pressure in the tube, equal to p_port at the start
    pressure  = p + errors
    altitude  = h_ISA(pressure, setting)                       m, the indicated altitude

p(h) and rho are pressure and density of a standard troposphere with `sea_level_pressure` and `temperature_offset`. h is
the height of the port in the world, v its speed. There is no wind. h_ISA is the altitude in the standard atmosphere
whose sea level pressure is `setting` (QNH). The port pressure is linear between samples, so the lag is exact.
Sources: NOAA-S/T 76-1562 (atmosphere); Gracey, Measurement of Aircraft Speed and Altitude, NASA RP-1046, 1980 (position
error and lag).

python examples/barometric_altimeter.py
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import outputs

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.field_metadata import NON_NEGATIVE, in_file
from navsense.core.kernels import kernel
from navsense.core.random_streams import RandomProcess
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import validate_types
from navsense.environment.atmosphere import Atmosphere
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, make_example_noise
from navsense.sensors import Measurement, Output
from navsense.sensors.base import TEMPERATURE, evaluate_signals
from navsense.testing import check_sensor

STANDARD_PRESSURE, STANDARD_TEMPERATURE = 101325.0, 288.15
"""Pa and K at sea level, of the US Standard Atmosphere 1976."""


@kernel
def apply_lag(port_pressure: FloatArray, steps: FloatArray, lag: float, state: FloatArray, out: FloatArray) -> None:
    """Write the pressure in the tube (n,) Pa, and update `state`: the last port pressure and the last tube pressure.

    `steps` (n,) s is the time since the previous sample. The port pressure is linear between samples.
    """
    previous, tube = state[0], state[1]
    for i in range(port_pressure.shape[0]):
        if lag > 0.0 and steps[i] > 0.0:
            a = steps[i] / lag
            gain = -math.expm1(-a)
            tube += (previous - tube) * gain + (port_pressure[i] - previous) * (1.0 - gain / a)
        else:
            tube = port_pressure[i]
        previous = port_pressure[i]
        out[i] = tube
    state[0], state[1] = previous, tube


@dataclass(frozen=True, eq=False)
class AltimeterState:
    """State of an instrument: its noise, the last port and tube pressure (Pa), and the last tick; -1 at the start."""

    noise: NoiseState
    pressures: FloatArray
    last_tick: int = -1


@dataclass(frozen=True)
class BarometricAltimeter:
    """Specification of a barometric altimeter.

    pressure: noise of the pressure, Pa. Its element in a file is `<noise>`.
    sea_level_pressure: Pa, of the atmosphere.
    temperature_offset: K, of the atmosphere above the standard atmosphere.
    setting: Pa, the sea level pressure that the indicated altitude assumes (QNH).
    lag: time constant of the tube, s.
    position_error: part of the dynamic pressure that acts on the static port.

    Raises `SensorError` for an invalid field, and `FieldError` for an impossible atmosphere.
    """

    pressure: ns.Noise = field(default=NO_NOISE, metadata=in_file("noise"))
    sea_level_pressure: float = STANDARD_PRESSURE
    temperature_offset: float = 0.0
    setting: float = STANDARD_PRESSURE
    lag: float = field(default=0.0, metadata=NON_NEGATIVE)
    position_error: float = 0.0

    type: ClassVar[str] = "barometric_altimeter"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12

    def __post_init__(self) -> None:
        """Check the types of the fields, the lag and both atmospheres."""
        validate_types(self)
        if not 0.0 <= self.lag < math.inf:
            raise SensorError("lag of a barometric altimeter (s)", self.lag, allowed="must be finite and >= 0")
        _ = self._atmosphere, self._standard_atmosphere

    @cached_property
    def _atmosphere(self) -> Atmosphere:
        return Atmosphere(STANDARD_TEMPERATURE + self.temperature_offset, self.sea_level_pressure)

    @cached_property
    def _standard_atmosphere(self) -> Atmosphere:
        return Atmosphere(STANDARD_TEMPERATURE, self.setting)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the arrays of a reading: pressure Pa and indicated altitude m, (n,) each."""
        return (Output("pressure", 0, "Pa", "vertical"), Output("altitude", 0, "m", "vertical"))

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("pressure",), (self.pressure,))

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the signals that the spec requires."""
        return (TEMPERATURE,) if self._channels.needs_temperature else ()

    def noise(self) -> Mapping[str, tuple[ns.Noise, ...]]:
        """Return the noise of the pressure."""
        return {"pressure": (self.pressure,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the pressure."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> AltimeterState:
        """Return the state of an instrument before its first sample."""
        return AltimeterState(self._channels.init(draws), np.zeros(2))

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return static pressure Pa, indicated altitude m and dynamic pressure Pa, (n,) each, and the signals."""
        block = motion.at(ticks.time)
        height, (vx, vy, vz) = block.position_w[:, 2], block.velocity_w.T
        pressure = self._atmosphere.pressure_at(height)
        ideal = {
            "pressure": pressure,
            "altitude": self._standard_atmosphere.altitude_at_pressure(pressure),
            "dynamic_pressure": 0.5 * self._atmosphere.density_at(height) * (vx * vx + vy * vy + vz * vz),
        }
        return {**ideal, **evaluate_signals(self, environment, ticks.time)}

    def measure(
        self, state: AltimeterState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[AltimeterState, Measurement]:
        """Return the new state, and the pressure and altitude (n,) with the bias of the pressure."""
        port_pressure = ideal["pressure"] + self.position_error * ideal["dynamic_pressure"]
        previous_tick = ticks.index[:1] if state.last_tick < 0 else state.last_tick
        steps = np.diff(ticks.index, prepend=previous_tick) / ticks.rate
        pressures, tube_pressure = state.pressures.copy(), np.empty(len(ticks))
        apply_lag(port_pressure, steps, self.lag, pressures, tube_pressure)
        noise, values, bias = self._channels.apply(
            state.noise, ticks, draws, tube_pressure, temperature=ideal.get(TEMPERATURE)
        )
        pressure = np.ascontiguousarray(values[:, 0])
        arrays = {"pressure": pressure, "altitude": self._standard_atmosphere.altitude_at_pressure(pressure)}
        last_tick = int(ticks.index[-1]) if len(ticks) else state.last_tick
        return AltimeterState(noise, pressures, last_tick), Measurement(arrays, {"pressure": bias[:, 0]})

    def without_errors(self) -> BarometricAltimeter:
        """Return the same spec without errors of the instrument. The atmosphere stays."""
        return replace(self, pressure=NO_NOISE, lag=0.0, position_error=0.0)

    @classmethod
    def example_spec(cls) -> BarometricAltimeter:
        """Return a spec in which every field is active."""
        noise = make_example_noise(3.0, precision=0.01, minimum=99700.0, maximum=100700.0)
        return cls(noise, 100000.0, 12.0, 100500.0, 0.4, 0.02)


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
    """Check the sensor laws, fly the climb of `WORLD`, and compare the altitude error with its three causes."""
    check_sensor(BarometricAltimeter)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "climb.sdf"
        path.write_text(WORLD)
        world = ns.load(path, sensors=[BarometricAltimeter])
        run = ns.simulate(world, 100.0, seed=7, truth_rate=20.0)
        run.save(Path(folder) / "climb.mcap")
    reading, truth = run["aircraft::cockpit::altimeter"], run.truth["aircraft::cockpit"]
    height, velocity = truth.position[:, 2], truth.velocity
    error = reading["altitude"] - height
    # Warm air is thinner: the indicated altitude is too low by 10 K / 298.15 K of the height. In the climb the pressure
    # in the tube is 1.5 s old. The dynamic pressure at the port adds 3 % of rho v^2 / 2, which is a lower altitude.
    from_temperature = -height * 10.0 / 298.15
    from_lag = -1.5 * velocity[:, 2]
    from_speed = -0.03 * 0.5 * np.sum(velocity**2, axis=1) / 9.81
    stddev = 2.0 / 11.5  # 2 Pa, in air with 11.5 Pa per metre
    phases = {"before the climb": truth.time < 5.0, "in the climb": (truth.time > 45.0) & (truth.time < 55.0)}
    for phase, rows in phases.items():
        causes = {"temperature": from_temperature, "lag": from_lag, "speed": from_speed}
        parts = {cause: float(part[rows].mean()) for cause, part in causes.items()}
        text = ", ".join(f"{cause} {part:+z.1f} m" for cause, part in parts.items())
        expected = sum(parts.values())
        print(f"{phase}: altitude error {error[rows].mean():+z.1f} m; {text}")
        tolerance = 5.0 * stddev / math.sqrt(np.count_nonzero(rows)) + 0.01 * abs(expected)
        assert abs(error[rows].mean() - expected) < tolerance

    def draw(axes: Any) -> None:
        axes.plot(truth.time, error, label="altimeter")
        axes.plot(truth.time, from_temperature + from_lag + from_speed, label="temperature, lag and speed")
        outputs.label(axes, "Altitude error of a climb of 300 m", "time (s)", "error (m)")

    columns = {"time (s)": truth.time, "height (m)": height, "altitude (m)": reading["altitude"], "error (m)": error}
    outputs.write("barometric_altimeter", columns, draw)


if __name__ == "__main__":
    main()
