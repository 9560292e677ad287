"""Every parameter of a spec is estimated from readings, and a wrong parameter is detected."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from navsense.core.errors import AnalysisError
from navsense.core.random_streams import RandomProcess
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.noise.channels import NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise
from navsense.sensors import SENSORS, Camera, Dvl, NavSat, Range
from navsense.sensors.base import HasIndirectNoise, Measurement, Output, Sensor
from navsense.sensors.doppler import EchoStrength, LongTermFilter
from navsense.sensors.range import SLOWNESS, Cone, Sound
from tests.verification import doppler_beams, estimates, imu_mag
from tests.verification.declared import LIMIT, Row, list_channels, table
from tests.verification.estimates import UNITS, Estimate, Term, Trial

ROOT = Path(__file__).resolve().parent.parent.parent

DEVIATION_LIMIT = 6.5
"""Standard errors: a false-alarm rate of 8e-11 a row and below 1e-6 for the file, with a margin."""

FULL_NOISE = Noise(
    mean=0.1,
    stddev=0.3,
    bias_mean=1.0,
    bias_stddev=0.5,
    dynamic_bias_stddev=0.2,
    dynamic_bias_correlation_time=3.0,
    precision=0.01,
    minimum=-5.0,
    maximum=4.0,
    noise_density=0.05,
    bias_instability=0.1,
    random_walk=0.02,
    scale_factor=0.01,
    scale_factor_stddev=0.002,
    temperature_coefficient=0.003,
    scale_temperature_coefficient=0.0001,
    reference_temperature=295.0,
    outlier_probability=0.01,
    outlier_stddev=2.0,
)
"""A noise in which every field acts."""

DERIVED = {"dynamic bias at the start"}
"""Rows that belong to no single field, in addition to the Allan deviations."""


@dataclass(frozen=True)
class Meter:
    """Three axes with ideal values of 0. `skew` is the share of the first axis that the second one measures."""

    x: Noise = NO_NOISE
    y: Noise = NO_NOISE
    z: Noise = NO_NOISE
    skew: float = 0.0
    factors: Mapping[str, float] | None = None

    type: ClassVar[str] = "meter"
    rotation_invariance: ClassVar[Literal["all", "vertical"]] = "all"
    invariance_tolerance: ClassVar[float] = 1e-12

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (Output("level", 3, "V"),)

    @cached_property
    def _channels(self) -> NoiseChannels:
        channels = tuple(self._scale_noise(noise) for noise in (self.x, self.y, self.z))
        return NoiseChannels(("level.x", "level.y", "level.z"), channels)

    def _scale_noise(self, noise: Noise) -> Noise:
        """Return the simulated noise: `factors` multiplies the declared values."""
        return replace(noise, **{name: getattr(noise, name) * share for name, share in (self.factors or {}).items()})

    def noise(self) -> Mapping[str, tuple[Noise, ...]]:
        return {"level": (self.x, self.y, self.z)}

    def processes(self) -> tuple[RandomProcess, ...]:
        return self._channels.processes

    def init(self, draws: FloatArray) -> NoiseState:
        return self._channels.init(draws)

    def ideal(self, motion: Any, environment: Any, ticks: Ticks) -> Mapping[str, Any]:
        temperature = environment.signals["temperature"].at(ticks.time)
        return {"level": np.zeros((len(ticks), 3)), "temperature": temperature}

    def measure(self, state: Any, ticks: Ticks, ideal: Mapping[str, Any], draws: FloatArray) -> tuple[Any, Measurement]:
        level = ideal["level"].copy()
        level[:, 1] += self.skew * level[:, 0]
        warmth = ideal["temperature"]
        state, values, slow = self._channels.apply(state, ticks, draws, level, temperature=warmth)
        return state, Measurement({"level": values}, {"level": slow})

    def without_errors(self) -> Meter:
        return Meter(factors=self.factors)

    @classmethod
    def example_spec(cls) -> Meter:
        return cls(FULL_NOISE, FULL_NOISE, FULL_NOISE)


def find_worst_row(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: abs(row.estimate.deviation))


@pytest.fixture(scope="module")
def meter_rows() -> list[Row]:
    return table(Meter(FULL_NOISE, NO_NOISE, FULL_NOISE), (4.0, 50.0), 1, effort=0.1)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "NOI-3")
def test_every_parameter_of_a_spec_is_estimated_at_two_rates(meter_rows: list[Row]) -> None:
    assert abs(find_worst_row(meter_rows).estimate.deviation) < DEVIATION_LIMIT, find_worst_row(meter_rows)
    for rate in (4.0, 50.0):
        for channel in ("level.x", "level.z"):
            rows = [row for row in meter_rows if row.rate == rate and row.channel == channel]
            for row in rows:
                assert row.unit == UNITS.get(row.estimate.parameter, "{}").format("V")
                assert row.estimate.error > 0.0
                if row.estimate.parameter in {field.name for field in fields(Noise)}:
                    assert row.estimate.declared == getattr(FULL_NOISE, row.estimate.parameter)
            names = [row.estimate.parameter for row in rows]
            assert len(set(names)) == len(names)
            assert sum(name.startswith("Allan deviation over") for name in names) >= 2


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
def test_every_noise_field_is_estimated(meter_rows: list[Row]) -> None:
    """A new field of `Noise` needs an entry in `estimates.TERMS` and a value in `FULL_NOISE`."""
    neutral = [field.name for field in fields(Noise) if getattr(FULL_NOISE, field.name) == field.default]
    assert neutral == ["classic"]
    measured = {row.estimate.parameter for row in meter_rows}
    assert {field.name for field in fields(Noise)} - measured == {"classic"}
    derived = {name for name in measured - {field.name for field in fields(Noise)} if not name.startswith("Allan")}
    assert derived == DERIVED


@pytest.mark.compiled
def test_neutral_channel_has_no_row(meter_rows: list[Row]) -> None:
    assert {row.channel for row in meter_rows} == {"level.x", "level.z"}
    assert not table(Meter(), (10.0,), 1)


STATISTICAL = {
    "mean": 1.5,
    "stddev": 1.04,
    "noise_density": 1.04,
    "bias_mean": 1.7,
    "bias_stddev": 2.0,
    "dynamic_bias_stddev": 1.03,
    "dynamic_bias_correlation_time": 1.5,
    "bias_instability": 1.2,
    "random_walk": 1.04,
    "scale_factor": 1.3,
    "scale_factor_stddev": 2.0,
    "outlier_probability": 1.4,
    "outlier_stddev": 1.3,
}
"""Ratio of simulated to declared value. It is at least ten standard errors at a tenth of the effort."""

CERTAIN = (
    "minimum",
    "maximum",
    "precision",
    "temperature_coefficient",
    "scale_temperature_coefficient",
    "reference_temperature",
)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(("name", "share"), [*STATISTICAL.items(), *((name, 1.0001) for name in CERTAIN)])
def test_wrong_declaration_is_detected(name: str, share: float) -> None:
    terms = [
        term for term in estimates.TERMS if name in (*term.fields, *term.context_fields) and term.name != "together"
    ]
    rows = table(Meter(FULL_NOISE, factors={name: share}), (20.0,), 3, effort=0.1, terms=terms)
    caught = [row for row in rows if row.estimate.parameter == name]
    assert len(caught) == 1
    assert not caught[0].holds, caught[0]
    estimate = caught[0].estimate
    assert abs(estimate.declared * (share - 1.0)) - estimate.allowance > 2.0 * LIMIT * estimate.error


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
def test_noise_outside_all_terms_is_detected() -> None:
    """Too much white noise shows at short spans, too much random walk at long spans."""
    terms = [term for term in estimates.TERMS if term.name == "together"]
    for name, share, place in (("stddev", 1.05, 0), ("random_walk", 2.0, -1), ("dynamic_bias_stddev", 1.3, -2)):
        rows = table(Meter(FULL_NOISE, factors={name: share}), (20.0,), 3, effort=0.6, terms=terms)
        assert not rows[place].holds, (name, rows)


SENSORS_WITH_ERRORS = [kind for kind in SENSORS if kind is not Camera]
"""A camera has no error of its own, so it has no section on the page."""


@pytest.mark.compiled
@pytest.mark.requirement("NOI-3", "NOI-1")
@pytest.mark.parametrize("kind", SENSORS_WITH_ERRORS)
def test_every_sensor_type_agrees_with_its_reference(kind: type[Sensor]) -> None:
    rows = table(kind.example_spec(), (20.0,), 5, effort=0.01)
    assert abs(find_worst_row(rows).estimate.deviation) < DEVIATION_LIMIT, find_worst_row(rows)
    assert {channel.name for channel in list_channels(kind.example_spec())} <= {row.channel for row in rows}


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("kind", SENSORS)
def test_every_error_field_of_a_spec_is_estimated(kind: type[Sensor]) -> None:
    """`without_errors` removes the errors. Each is a noise or a field with an entry in `imu_mag.TERMS`.

    For a Doppler instrument, the effort is the one at which `WRONG_VALUES` are ten standard errors away.
    """
    spec: Any = kind.example_spec()
    without_errors = spec.without_errors()
    changed = {field.name for field in fields(spec) if getattr(spec, field.name) != getattr(without_errors, field.name)}
    changed -= {name for name in changed if isinstance(getattr(spec, name), Noise)}
    changed |= {name for name in ("averaged", "earth_rotation") if hasattr(spec, name)}
    rows = table(spec, (20.0,), 5, effort=0.2 if kind is Dvl else 1.0, terms=imu_mag.TERMS)
    assert {row.estimate.parameter.partition(" ")[0] for row in rows} == changed
    assert all(row.holds for row in rows)


class WrongSoundSpeedRange(Range):
    """A range sensor that ignores its assumed speed of sound."""

    def measure(self, state: Any, ticks: Ticks, ideal: Mapping[str, Any], draws: FloatArray) -> tuple[Any, Measurement]:
        return super().measure(state, ticks, {name: ideal[name] for name in ideal if name != SLOWNESS}, draws)


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "ALT-8")
def test_range_limits_do_not_hide_errors() -> None:
    """The errors exceed the range limits. The assumed speed of sound is a parameter too."""
    errors = Noise(bias_mean=0.5, bias_stddev=3.0, precision=0.25, maximum=60.0)
    rows = table(Range(errors, 2.0, 2.5, Cone(0.5, 2, (0.0, 0.0, 1.0)), Sound(1480.0)), (20.0,), 5, effort=0.01)
    assert [row.estimate.parameter for row in rows] == [
        "bias_mean",
        "bias_stddev",
        "maximum",
        "precision",
        "sound speed",
    ]
    assert abs(find_worst_row(rows).estimate.deviation) < DEVIATION_LIMIT, find_worst_row(rows)
    assert (rows[-1].channel, rows[-1].unit, rows[-1].estimate.declared) == ("range", "m/s", 1480.0)
    (row,) = table(WrongSoundSpeedRange(sound=Sound(1480.0)), (20.0,), 5)
    assert not row.holds
    assert not table(Range(sound=Sound()), (20.0,), 5)


def replace_track_fields(side: str, **speeds: float) -> dict[str, Any]:
    return {side: replace(getattr(Dvl.example_spec(), side), **speeds)}


WRONG_VALUES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("bottom speed", "bottom per_speed"): replace_track_fields("bottom", per_speed=0.0104),
    ("water speed", "water reference_rate"): replace_track_fields("water", reference_rate=108.0),
    ("water long_term_scale", "water long_term_scale"): replace_track_fields("water", long_term_scale=0.025),
    ("bottom long_term_offset", "bottom long_term_offset"): replace_track_fields("bottom", long_term_offset=0.0125),
    ("water stated", "water reported_stddev"): replace_track_fields("water", reported_stddev=0.0500001),
    ("doppler", "sound speed"): {"sound": Sound(1480.0001)},
    ("misalignment", "misalignment z"): {"misalignment": (0.01, -0.02, 0.0300001)},
    ("misalignments", "misalignment_stddev"): {"misalignment_stddev": 0.012},
    ("rejection", "error_velocity_limit"): {"error_velocity_limit": 0.82},
    ("dropouts", "dropout_probability"): {"dropout_probability": 0.061},
    ("reacquisition", "reacquisition_time"): {"reacquisition_time": 0.014},
    ("processing", "processing_time"): {"processing_time": 0.00301},
    ("loudness", "echo_strength level"): {"echo_strength": EchoStrength(30.1, 0.5)},
    ("loudness", "echo_strength absorption"): {"echo_strength": EchoStrength(30.0, 0.51)},
    ("loudness", "echo_strength correlation"): {"echo_strength": EchoStrength(30.0, 0.5, 0.91)},
    ("loudness", "echo_strength threshold"): {"echo_strength": EchoStrength(30.0, 0.5, threshold=6.2)},
    ("loudness", "echo_strength lock_width"): {"echo_strength": EchoStrength(30.0, 0.5, lock_width=1.3)},
    ("long term", "long_term acceleration_density"): {"long_term": LongTermFilter(0.301, 0.01, 0.02)},
    ("long term", "long_term assumed_offset"): {"long_term": LongTermFilter(0.3, 0.0101, 0.02)},
    ("long term", "long_term assumed_scale"): {"long_term": LongTermFilter(0.3, 0.01, 0.0202)},
}
"""By term and parameter: simulated values that are ten standard errors from the declared ones."""


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "GAP-2")
@pytest.mark.parametrize(("name", "figure"), WRONG_VALUES)
def test_doppler_readings_show_declared_errors(name: str, figure: str) -> None:
    """The estimate equals the simulated value and is far from the declared one."""
    terms = [term for term in doppler_beams.TERMS if term.name == name]
    spec = Dvl.example_spec()
    (declared, *_), (found, *_) = (
        [row for row in table(variant, (20.0,), 5, effort=0.2, terms=terms) if row.estimate.parameter == figure]
        for variant in (spec, replace(spec, **WRONG_VALUES[name, figure]))
    )
    assert abs(found.estimate.deviation) < DEVIATION_LIMIT
    assert abs(found.estimate.measured - declared.estimate.declared) > 2.0 * LIMIT * found.estimate.error


@pytest.mark.compiled
def test_doppler_instrument_without_errors_has_no_row() -> None:
    assert not table(Dvl(propagation=False), (20.0,), 5)


@pytest.mark.compiled
def test_rows_depend_on_the_seed_only() -> None:
    terms = estimates.TERMS[:2]
    first, again, other = (table(Meter(FULL_NOISE), (10.0,), seed, effort=0.01, terms=terms) for seed in (1, 1, 2))
    assert first == again
    assert first[0].estimate.measured != other[0].estimate.measured
    other_rate = table(Meter(FULL_NOISE), (20.0,), 1, effort=0.01, terms=terms)
    assert first[1].estimate.measured != other_rate[1].estimate.measured


def estimate_skew(trial: Trial) -> Iterator[Estimate]:
    """Yield the share of the first axis that the second axis measures."""
    if trial.axis == 1 and isinstance(trial.spec, Meter):
        yield replace(estimates.make_exact_estimate(trial, "skew", trial.spec.skew, float(trial.error[0, 0])), unit="1")


@pytest.mark.compiled
def test_parameter_outside_noise_has_a_separate_row() -> None:
    term = Term(
        "skew",
        (),
        estimate_skew,
        10,
        stimulus=lambda _noise, axis, count: np.full(count, 1.0 if axis == 0 else 0.0),
        make_specs=lambda spec: (Meter(skew=spec.skew),) if isinstance(spec, Meter) and spec.skew else (),
    )
    rows = table(Meter(skew=0.02), (10.0,), 1, terms=(term,))
    assert [(row.channel, row.estimate.parameter, row.unit, row.holds) for row in rows] == [
        ("level.y", "skew", "1", True)
    ]
    assert rows[0].estimate.measured == pytest.approx(0.02, rel=1e-12, abs=0.0)
    assert not table(Meter(), (10.0,), 1, terms=(term,))


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize("latitude", [0.0, 0.8, -1.2, 1.57079])
def test_position_errors_in_metres_equal_the_added_noise(latitude: float) -> None:
    """East and north errors are metres in the level plane of the ideal position, on a curved earth."""
    spec, count = NavSat(horizontal_position=Noise(mean=5000.0)), 4
    assert isinstance(spec, HasIndirectNoise)
    rows = np.full(count, latitude), np.linspace(-3.0, 3.0, count), np.linspace(-100.0, 3000.0, count)
    reading = spec.apply(np.arange(count) * 1.0, *rows, np.zeros((count, 3)), seed=1)
    found = spec.compute_errors(reading.arrays, reading.ideal)
    assert set(found) == set(spec.noise_quantities) == {"latitude", "longitude"}
    for metres in found.values():
        assert metres == pytest.approx(5000.0, abs=1e-8)


def test_deviations_above_the_limit_are_counted() -> None:
    assert Estimate("x", 1.0, 1.3, 0.1).deviation == pytest.approx(3.0, rel=1e-12, abs=0.0)
    assert Estimate("x", 1.0, 0.7, 0.1, allowance=0.1).deviation == pytest.approx(-2.0, rel=1e-12, abs=0.0)
    assert Estimate("x", 1.0, 1.05, 0.1, allowance=0.1).deviation == 0.0
    assert Estimate("x", 1.0, 1.05, 0.1, z_score=-7.0).deviation == -7.0
    estimate = Estimate("x", 1.0, 1.0 + LIMIT * 0.1 * (1.0 - 1e-9), 0.1)
    assert Row("s", "c", "V", 1.0, estimate).holds
    assert not Row("s", "c", "V", 1.0, replace(estimate, measured=1.0 + LIMIT * 0.1001)).holds


def test_coarse_quantisation_is_not_counted_as_white_noise() -> None:
    coarse = Noise(stddev=0.1, precision=0.5)
    terms = [term for term in estimates.TERMS if term.name == "together"]
    assert not table(Meter(coarse), (10.0,), 1, effort=0.001, terms=terms)


def test_sensor_without_spec_is_an_error() -> None:
    class Bare(Meter):
        def without_errors(self) -> Any:
            return object()

    with pytest.raises(AnalysisError, match="must be a dataclass whose fields are its parameters"):
        table(Bare(FULL_NOISE), (10.0,), 1)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("declared_tool", ROOT / "tools" / "declared.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def make_rows(*deviations: float) -> list[Row]:
    names = ("level.x", "level.y", "level.z")
    estimates_ = [Estimate("random_walk", 2.0, 2.0 + 0.01 * off, 0.01) for off in deviations]
    return [
        Row("meter", name, "V / sqrt(s)", 10.0, estimate) for name, estimate in zip(names, estimates_, strict=False)
    ]


def test_page_shows_the_result(tool: ModuleType) -> None:
    text = tool.page([*make_rows(0.5, -1.0), *make_rows(0.1)])
    assert "| level x y | random_walk | V / sqrt(s) | 2 | 2.005, 1.99, 2.001 ± 0.01 (+0.5, -1.0, +0.1) | — |" in text
    assert "**" not in text
    assert "Of the 3\nestimates here the largest deviation is 1.0." in text


def test_wrong_row_is_marked_and_fails(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.md"
    monkeypatch.setattr(tool, "PAGE", path)
    for rows, code in ((make_rows(0.5), 0), (make_rows(0.5, 5.5), 1)):
        monkeypatch.setattr(tool, "compute_rows", lambda found=rows: found)
        monkeypatch.setattr(sys, "argv", ["declared.py"])
        assert tool.main() == code
        assert ("**" in path.read_text(encoding="utf-8")) == bool(code)
        monkeypatch.setattr(sys, "argv", ["declared.py", "--check"])
        assert tool.main() == code
    assert "meter level.y at 10 Hz: random_walk declared 2, measured 2.055 +- 0.01" in capsys.readouterr().err
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(tool, "compute_rows", lambda: make_rows(0.5))
    assert tool.main() == 1
    assert path.read_text(encoding="utf-8") == "old"


def test_page_covers_all_sensors_and_every_row_passes(tool: ModuleType) -> None:
    """Writing the page takes a minute: `python tools/declared.py --check` compares it completely."""
    text = tool.PAGE.read_text(encoding="utf-8")
    sections = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert sections == [*(kind.type for kind in SENSORS_WITH_ERRORS), "a mounted sensor", "clocks"], (
        "run `python tools/declared.py`"
    )
    assert "**" not in text
    assert math.isclose(tool.LIMIT, 5.0)
