"""The laws hold for every registered sensor and noise, and the checks detect violations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from navsense.analysis.bench import NOISES
from navsense.core.kernels import INTERPRETED
from navsense.core.ticks import Ticks
from navsense.noise.specification import Noise
from navsense.sensors import SENSORS, Adcp, Dvl, Imu, Magnetometer
from navsense.sensors.base import Measurement, Sensor
from navsense.testing import (
    SENSOR_LAWS,
    LawBrokenError,
    check_current,
    check_noise,
    check_noise_cut,
    check_noise_ideal,
    check_noise_parameters,
    check_sensor,
    iter_variants,
)

SLOW = ("check_batch", "check_equivariance", "check_independence", "check_parameters", "check_current")
"""Laws of runs, rotations, streams and fields over many runs: they do not depend on compilation."""

LAWS = [
    pytest.param(law, id=law.__name__, marks=[pytest.mark.compiled] * (law.__name__ in SLOW)) for law in SENSOR_LAWS
]


@pytest.mark.requirement("NOI-2", "LIV-1", "BAT-1")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.__name__)
def test_every_sensor_satisfies_every_law(kind: type[Sensor], law: Callable[[Sensor], None]) -> None:
    law(kind.example_spec())


@pytest.mark.requirement("IMU-1")
def test_imu_without_orientation_satisfies_the_laws() -> None:
    for law in SENSOR_LAWS[:3]:
        law(replace(Imu.example_spec(), orientation=False))
        law(replace(Imu.example_spec(), reference=None))


NOISE_LAWS = (check_noise_cut, check_noise_ideal, check_noise_parameters) if INTERPRETED else (check_noise,)
"""The deviation over thousands of instruments does not depend on compilation."""


@pytest.mark.requirement("NOI-3")
@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize("name", NOISES)
def test_every_noise_satisfies_its_laws(name: str, classic: bool) -> None:
    for law in NOISE_LAWS:
        law(replace(NOISES[name], classic=classic))


@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.__name__)
def test_example_specs_have_many_distinct_variants(kind: type[Sensor]) -> None:
    names = [name for name, _ in iter_variants(kind.example_spec())]
    assert len(names) == len(set(names)) > 10


@pytest.mark.compiled
@pytest.mark.requirement("BAT-1")
@pytest.mark.parametrize("kind", [Dvl, Adcp], ids=lambda kind: kind.__name__)
def test_sensor_with_the_current_of_another_run_violates_the_batch_law(
    kind: type[Sensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sensor that hides its dependence on the current has the water of run 0 in every run."""
    monkeypatch.setattr(kind, "uses_current", property(lambda _: False))
    with pytest.raises(LawBrokenError, match="law of current"):
        check_current(kind.example_spec())


@dataclass(frozen=True)
class BrokenMagnetometer(Magnetometer):
    """A magnetometer that violates one law."""

    fault: str = ""

    def without_errors(self) -> BrokenMagnetometer:
        return BrokenMagnetometer(fault=self.fault)

    @classmethod
    def example_spec(cls) -> BrokenMagnetometer:
        good = Magnetometer.example_spec()
        return cls(good.x, good.y, good.z)

    def measure(self, state: Any, ticks: Ticks, ideal: Mapping[str, Any], draws: Any) -> tuple[Any, Measurement]:
        state, result = super().measure(state, ticks, ideal, draws)
        field = result.arrays["field"].copy()
        if self.fault == "cut":
            field[0] += 1e-9
        if self.fault == "ideal":
            field *= 1.0 + 1e-15
        if self.fault == "batch" and len(ticks) > 100:
            field *= 1.0 + 1e-15
        if self.fault == "independence" and len(ticks) < 1000:
            field *= 1.0 + 1e-15
        return state, Measurement({"field": field}, result.bias)

    def ideal(self, motion: Any, environment: Any, ticks: Ticks) -> Mapping[str, Any]:
        found = super().ideal(motion, environment, ticks)
        field = np.array(found["field"])
        if self.fault == "equivariance":
            field += environment.magnetic_field.value_w
        return {**found, "field": field}


@pytest.mark.parametrize(
    "fault",
    ["cut", "ideal", "equivariance", *(pytest.param(f, marks=pytest.mark.compiled) for f in ("batch", "independence"))],
)
def test_violated_law_is_detected(fault: str) -> None:
    broken = replace(BrokenMagnetometer.example_spec(), fault=fault)
    law = {law.__name__: law for law in SENSOR_LAWS}[f"check_{fault}"]
    law(BrokenMagnetometer.example_spec())
    with pytest.raises(LawBrokenError, match=f"law of {fault}"):
        law(broken)


@pytest.mark.compiled
def test_dead_parameter_is_detected() -> None:
    @dataclass(frozen=True)
    class DeadParameterSensor(Magnetometer):
        gain: float = 2.0

        @classmethod
        def example_spec(cls) -> DeadParameterSensor:
            good = Magnetometer.example_spec()
            return cls(good.x, good.y, good.z)

    with pytest.raises(LawBrokenError, match="gain has no effect"):
        check_sensor(DeadParameterSensor)


@pytest.mark.compiled
def test_wrong_deviation_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    from navsense.noise import channels

    monkeypatch.setattr(channels, "stationary_stddev", lambda sigma, tau: 0.7 * sigma * tau)
    with pytest.raises(LawBrokenError, match="declared deviation"):
        check_noise(Noise(dynamic_bias_stddev=0.3, dynamic_bias_correlation_time=8.0))
