"""A sensor of one's own: a thermometer in the troposphere, held to the laws and run from SDF.

python examples/thermometer.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

import navsense as ns
from navsense.core.random_streams import RandomProcess
from navsense.core.ticks import Ticks
from navsense.environment.base import Environment
from navsense.motion.base import Motion
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.noise import parse_child_noise
from navsense.sdf.xml_reader import Element
from navsense.sensors import Measurement, Output
from navsense.testing import check_sensor

NO_ERRORS = ns.Noise()

TYPE_ELEMENT = ElementSchema(children=frozenset(("noise", "gradient")))
"""What may stand in <thermometer>; anything else is an error with its line."""


@dataclass(frozen=True)
class Thermometer:
    """temperature = 288.15 K + gradient z + errors; gradient in K/m, z the height in the world (m)."""

    gradient: float = -0.0065
    noise_of_temperature: ns.Noise = NO_ERRORS

    type: ClassVar[str] = "thermometer"
    symmetry_group: ClassVar[Literal["all", "vertical"]] = "vertical"
    symmetry_tolerance: ClassVar[float] = 1e-12

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Return the one array of a reading: temperature (n, 1) K."""
        return (Output("temperature", 1, "K", "vertical"),)

    @cached_property
    def _channels(self) -> NoiseChannels:
        return NoiseChannels(("temperature",), (self.noise_of_temperature,))

    def noise(self) -> Mapping[str, tuple[ns.Noise, ...]]:
        """Return the noise of the one channel."""
        return {"temperature": self._channels.noises}

    def processes(self) -> tuple[RandomProcess, ...]:
        """Return the random processes of the one channel."""
        return self._channels.processes

    def init(self, draws: Any) -> NoiseState:
        """Return the instrument's turn-on bias and drift."""
        return self._channels.init(draws)

    def ideal(self, motion: Motion, environment: Environment, ticks: Ticks) -> Mapping[str, Any]:
        """Return the temperature (n, 1) K at the sensor."""
        height = motion.at(ticks.time).position_w[:, 2:3]
        return {"temperature": 288.15 + self.gradient * height}

    def measure(
        self, state: NoiseState, ticks: Ticks, ideal: Mapping[str, Any], draws: Any
    ) -> tuple[NoiseState, Measurement]:
        """Return the new state and the noisy temperature with its slow error."""
        state, values, slow = self._channels.apply(state, ticks, draws, ideal["temperature"])
        return state, Measurement({"temperature": values}, {"temperature": slow})

    def without_errors(self) -> Thermometer:
        """Return the same sheet without errors."""
        return replace(self, noise_of_temperature=ns.Noise())

    @classmethod
    def example_spec(cls) -> Thermometer:
        """Return a sheet in which every parameter acts."""
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
        return cls(-0.0065, noise)

    @staticmethod
    def parse(context: Context, type_element: Element | None, sensor_context: Any) -> Thermometer:
        """Return the sheet that a <thermometer> describes."""
        if type_element is None:
            return Thermometer()
        context.check(type_element, TYPE_ELEMENT)
        gradient = parse_child_number(context, type_element, "gradient", -0.0065)
        return Thermometer(gradient, parse_child_noise(context, type_element, classic=sensor_context.classic))


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
    """Hold the thermometer to the laws, read a world with it, and record what it says."""
    check_sensor(Thermometer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hill.sdf"
        path.write_text(WORLD)
        world = ns.load(path, sensors=[Thermometer])
        run = ns.simulate(world, 60.0, seed=7)
        run.save(Path(folder) / "hill.mcap")
    temperature = run["balloon::basket::thermometer"]["temperature"]
    print(f"{temperature.size} readings at 1000 m, mean {temperature.mean():.2f} K")
    assert temperature.shape == (600, 1)
    assert abs(temperature.mean() - 281.65) < 5.0 * 0.1 / np.sqrt(600.0)


if __name__ == "__main__":
    main()
