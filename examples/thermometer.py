"""A sensor of your own: a thermometer in the troposphere.

    temperature = 288.15 K + gradient z + errors

The example checks the sensor against the sensor laws, reads a world that contains it, and writes a recording.

python examples/thermometer.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import outputs

import navsense as ns
from navsense.core.field_metadata import in_file
from navsense.core.random_streams import RandomProcess
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.core.validation import check_numbers, validate_types
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE
from navsense.sensors import Measurement, Output
from navsense.testing import check_sensor

SEA_LEVEL_TEMPERATURE = 288.15
"""K, of the US Standard Atmosphere 1976."""


@dataclass(frozen=True)
class Thermometer:
    """Specification of a thermometer.

    temperature: noise, K. Its element in a file is `<noise>`.
    gradient: change of the temperature with height, K/m.

    Raises `SensorError` for an invalid field.
    """

    temperature: ns.Noise = field(default=NO_NOISE, metadata=in_file("noise"))
    gradient: float = -0.0065

    type: ClassVar[str] = "thermometer"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "vertical"
    invariance_tolerance: ClassVar[float] = 1e-12

    def __post_init__(self) -> None:
        """Check the gradient and the types of the fields."""
        check_numbers("gradient (K/m)", (self.gradient,), 1)
        validate_types(self)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the one array of a reading: temperature (n,) K."""
        return (Output("temperature", 0, "K", "vertical"),)

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("temperature",), (self.temperature,))

    def noise(self) -> Mapping[str, tuple[ns.Noise, ...]]:
        """Return the noise of the temperature."""
        return {"temperature": (self.temperature,)}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the temperature."""
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        """Return the initial state of an instrument: its turn-on bias and dynamic bias."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, AnyArray]:
        """Return the temperature (n,) K at the sensor."""
        height = motion.at(ticks.time).position_w[:, 2]
        return {"temperature": SEA_LEVEL_TEMPERATURE + self.gradient * height}

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the measured temperature (n,) K with its bias."""
        state, values, bias = self._channels.apply(state, ticks, draws, ideal["temperature"])
        return state, Measurement({"temperature": values[:, 0]}, {"temperature": bias[:, 0]})

    def without_errors(self) -> Thermometer:
        """Return the same spec without errors."""
        return Thermometer(gradient=self.gradient)

    @classmethod
    def example_spec(cls) -> Thermometer:
        """Return a spec in which every field is active."""
        noise = ns.Noise(
            mean=0.01,
            stddev=0.1,
            bias_mean=0.02,
            bias_stddev=0.03,
            dynamic_bias_stddev=0.01,
            dynamic_bias_correlation_time=60.0,
            precision=0.01,
            minimum=288.1,
            maximum=288.2,
        )
        return cls(noise, -0.0065)


WORLD = """<sdf version="1.9"><world name="hill"><model name="balloon">
  <pose>0 0 1000 0 0 0</pose>
  <link name="basket">
    <sensor name="thermometer" type="custom" gz:type="thermometer">
      <update_rate>10</update_rate>
      <thermometer>
        <noise type="gaussian_quantized"><stddev>0.1</stddev><precision>0.01</precision></noise>
      </thermometer>
    </sensor>
  </link>
</model></world></sdf>"""


def main() -> None:
    """Check the sensor laws, simulate a world with the sensor, and write a recording."""
    check_sensor(Thermometer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hill.sdf"
        path.write_text(WORLD)
        world = ns.load(path, sensors=[Thermometer])
        run = ns.simulate(world, 60.0, seed=7)
        run.save(Path(folder) / "hill.mcap")
    reading = run["balloon::basket::thermometer"]
    temperature, ideal = reading["temperature"], reading.ideal["temperature"]
    print(f"{temperature.size} readings at 1000 m, mean {temperature.mean():.2f} K")
    assert temperature.shape == (600,)
    assert abs(temperature.mean() - 281.65) < 5.0 * 0.1 / np.sqrt(600.0)

    def draw(axes: Any) -> None:
        axes.plot(reading.time, temperature, label="reading")
        axes.plot(reading.time, ideal, label="ideal")
        outputs.label(axes, "Thermometer at 1000 m", "time (s)", "temperature (K)")

    columns = {"time (s)": reading.time, "temperature (K)": temperature, "ideal (K)": ideal}
    outputs.write("thermometer", columns, draw)


if __name__ == "__main__":
    main()
