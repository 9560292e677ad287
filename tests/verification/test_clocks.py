"""Every parameter of a clock is estimated from stamps, and a wrong parameter is detected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.stats import chi2

from navsense.clock import GRADES, Clock, Discipline, Oscillator
from navsense.clock.base import SUPPORTED_NOISE_FIELDS
from navsense.core.errors import AnalysisError
from navsense.environment.signal import Signal
from navsense.noise.specification import Noise
from navsense.simulation.sensor_run import SensorRun
from tests.verification import clock_discipline, faults_latency
from tests.verification.clock_stamps import ClockTerm
from tests.verification.clocks import EXAMPLE, TERMS, table
from tests.verification.declared import LIMIT, Row

pytestmark = [pytest.mark.compiled, pytest.mark.requirement("CLK-8", "NOI-6")]

NOISE = tuple(field.name for field in fields(Noise) if field.name in SUPPORTED_NOISE_FIELDS and field.name != "classic")
SPECS = (
    ("clock", EXAMPLE.noise, NOISE),
    ("oscillator", EXAMPLE.oscillator, tuple(field.name for field in fields(Oscillator))),
    ("discipline", EXAMPLE.discipline, tuple(field.name for field in fields(Discipline))),
)
"""Channel, spec, fields that are estimated."""

DERIVED = {"dynamic bias at the start", "rest before a poll (stddev)"}
"""Rows that belong to no single field, in addition to the Allan deviations."""


def select_rows(rows: list[Row], channel: str, parameter: str) -> list[Row]:
    return [row for row in rows if row.channel == channel and row.estimate.parameter == parameter]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return table(EXAMPLE, (8.0, 50.0), 1, effort=0.1)


def test_every_parameter_is_estimated_at_two_rates(rows: list[Row]) -> None:
    """A new field of `Oscillator`, `Discipline` or a clock's noise needs a term, and a value in `EXAMPLE`."""
    assert all(row.holds for row in rows), [row for row in rows if not row.holds]
    for channel, spec, names in SPECS:
        for field in fields(spec):
            if field.name in names:
                assert getattr(spec, field.name) != field.default, "acts"
        for rate in (8.0, 50.0):
            for name in names:
                (row,) = [row for row in select_rows(rows, channel, name) if row.rate == rate]
                assert row.estimate.declared == getattr(spec, name)
                assert row.estimate.error > 0.0
    beyond = {row.estimate.parameter for row in rows} - {name for _, _, names in SPECS for name in names}
    assert {name for name in beyond if not name.startswith("Allan deviation over")} == DERIVED
    assert len(beyond) == len(DERIVED) + 5
    assert {row.sensor for row in rows} == {"clocks"}


def test_units_equal_the_documentation(rows: list[Row]) -> None:
    units = {row.estimate.parameter: row.unit for row in rows}
    assert units["dynamic_bias_stddev"] == "s / sqrt(s)"
    assert units["white_frequency"] == units["dynamic_bias_correlation_time"] == units["until"] == "s"
    assert units["random_walk_frequency"] == units["ageing"] == "1 / s"
    assert units["ageing_random_walk"] == "1 / s^3"
    assert units["slew_rate"] == units["frequency"] == units["flicker_frequency"] == "1"


def test_inactive_term_has_no_row() -> None:
    assert not table(Clock("c"), (10.0,), 1)
    assert not table(Clock("c", oscillator=Oscillator(temperature=Signal((0.0,), (300.0,)))), (10.0,), 1)
    free = Discipline(interval=1.0, step_threshold=math.inf)
    parameters = [row.estimate.parameter for row in table(Clock("c", discipline=free), (10.0,), 1)]
    assert parameters == ["interval", "proportional", "integral", "slew_rate"]
    coarse = Clock("c", Noise(stddev=1e-6, precision=1e-3))
    terms = [term for term in TERMS if term.name == "together"]
    assert not table(coarse, (10.0,), 1, terms=terms)


def test_discipline_without_integral_term_is_estimated() -> None:
    spec = Discipline(interval=0.5, proportional=0.7, integral=0.0, stddev=1e-5)
    clock = Clock("c", oscillator=Oscillator(white_frequency=1e-11), discipline=spec)
    rows = [row for row in table(clock, (10.0,), 1) if row.channel == "discipline"]
    assert [row.estimate.parameter for row in rows][-3:] == ["mean", "stddev", "rest before a poll (stddev)"]
    assert all(row.holds for row in rows), rows


def test_loop_slower_than_the_record_is_not_estimated() -> None:
    spec = Discipline(interval=0.5, proportional=0.001, integral=0.0, stddev=1e-5)
    terms = [term for term in TERMS if term.name in ("measured", "left")]
    clock = Clock("c", oscillator=Oscillator(white_frequency=1e-11), discipline=spec)
    assert not table(clock, (10.0,), 1, effort=0.1, terms=terms)


def test_estimate_between_polls_needs_samples() -> None:
    terms = [term for term in TERMS if term.name in ("loop", "slew")]
    assert not table(EXAMPLE, (6.0,), 1, terms=terms)
    assert len(table(EXAMPLE, (8.0,), 1, terms=terms)) == 4


@pytest.mark.parametrize(("until", "share", "holds"), [(50.2, 1.0, True), (50.2, 1.01, False), (49.9996, 1.0, True)])
def test_end_between_polls_is_estimated_at_the_next_poll(
    until: float, share: float, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = replace(EXAMPLE, discipline=Discipline(interval=0.5, stddev=2e-5, until=until))
    monkeypatch.setattr(faults_latency, "SensorRun", make_false_run("discipline", "until", share))
    (row,) = table(clock, (10.0,), 1, terms=[term for term in TERMS if term.name == "until"])
    assert row.holds == holds, row


def test_rate_without_samples_at_the_polls_is_an_error() -> None:
    with pytest.raises(AnalysisError, match=r"rate: 3.0; must give whole samples in the 0.5 s between the polls"):
        table(EXAMPLE, (3.0,), 1, terms=[term for term in TERMS if term.part == "discipline"])


def test_every_grade_is_estimated() -> None:
    for name, grade in GRADES.items():
        clock = Clock(f"robot::base::{name}", oscillator=grade.oscillator)
        rows = table(clock, (10.0,), 2, effort=0.02)
        assert all(row.holds for row in rows), [row for row in rows if not row.holds]
        parameters = {row.estimate.parameter for row in rows}
        neutral = Oscillator()
        acting = {
            field.name
            for field in fields(Oscillator)
            if getattr(grade.oscillator, field.name) != getattr(neutral, field.name)
        }
        assert acting <= parameters


STATISTICAL = {
    ("clock", "mean"): 1.4,
    ("clock", "stddev"): 1.06,
    ("clock", "bias_mean"): 5.0,
    ("clock", "bias_stddev"): 2.0,
    ("clock", "dynamic_bias_stddev"): 1.1,
    ("clock", "dynamic_bias_correlation_time"): 1.5,
    ("oscillator", "frequency_stddev"): 2.0,
    ("oscillator", "ageing_stddev"): 2.0,
    ("oscillator", "white_frequency"): 1.2,
    ("oscillator", "flicker_frequency"): 1.7,
    ("oscillator", "random_walk_frequency"): 1.2,
    ("oscillator", "ageing_random_walk"): 1.6,
    ("discipline", "mean"): 1.6,
    ("discipline", "stddev"): 1.25,
}
"""Ratio of simulated to declared value: ten standard errors at a tenth of the effort."""

CERTAIN = {
    ("clock", "minimum"): 1.0001,
    ("clock", "maximum"): 1.0001,
    ("clock", "precision"): 1.0001,
    ("oscillator", "offset"): 1.0001,
    ("oscillator", "frequency"): 1.0001,
    ("oscillator", "ageing"): 1.0001,
    ("oscillator", "temperature_linear"): 1.0001,
    ("oscillator", "temperature_quadratic"): 1.0001,
    ("oscillator", "turnover_temperature"): 1.0001,
    ("oscillator", "temperature"): 1.0001,
    ("discipline", "interval"): 1.01,
    ("discipline", "step_threshold"): 1.0001,
    ("discipline", "slew_rate"): 1.0001,
    ("discipline", "proportional"): 1.0001,
    ("discipline", "integral"): 1.0001,
    ("discipline", "until"): 1.02,
}
"""Ratio for parameters without randomness. Intervals have whole milliseconds; the end acts at the next poll."""


def test_false_declaration_of_any_parameter_is_detected() -> None:
    assert {*STATISTICAL, *CERTAIN} == {(channel, name) for channel, _, names in SPECS for name in names}


def make_false_run(channel: str, name: str, share: float) -> Callable[..., SensorRun]:
    """Return a `SensorRun` constructor whose clock has one parameter scaled."""
    attribute = {"clock": "noise"}.get(channel, channel)

    def scale_parameter(clock: Clock) -> Clock:
        spec: Any = getattr(clock, attribute)
        value = getattr(spec, name, None)
        if not isinstance(value, int | float):
            return clock
        return replace(clock, **{attribute: replace(spec, **{name: value * share})})

    return lambda sensor, clock, *rest, **more: SensorRun(sensor, scale_parameter(clock), *rest, **more)


def is_active(term: ClockTerm, name: str) -> bool:
    """True if a parameter of the term's part acts in the term."""
    isolated = term.isolate(EXAMPLE)
    spec: Any = isolated and getattr(isolated, {"clock": "noise"}.get(term.part, term.part))
    return spec is not None and name in {field.name for field in fields(spec) if getattr(spec, field.name)}


@pytest.mark.parametrize(("channel", "name"), [*STATISTICAL, *CERTAIN])
def test_clock_with_other_parameters_is_detected(channel: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share = {**STATISTICAL, **CERTAIN}[channel, name]
    terms = [
        term
        for term in TERMS
        if term.part == channel and is_active(term, name) and term.name not in ("together", "left")
    ]
    monkeypatch.setattr(faults_latency, "SensorRun", make_false_run(channel, name, share))
    caught = select_rows(table(EXAMPLE, (20.0,), 1, effort=0.1, terms=terms), channel, name)
    assert len(caught) == 1
    assert not caught[0].holds, caught[0]
    estimate = caught[0].estimate
    assert abs(estimate.declared * (share - 1.0)) - estimate.allowance > 2.0 * LIMIT * estimate.error


@pytest.mark.parametrize("share", [0.9999, 0.97])
def test_lower_step_threshold_is_detected(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults_latency, "SensorRun", make_false_run("discipline", "step_threshold", share))
    terms = [term for term in TERMS if term.name == "threshold"]
    assert not table(EXAMPLE, (20.0,), 1, terms=terms)[0].holds


def test_noise_outside_all_terms_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Excess jitter shows at short spans, excess random walk at long spans, and excess white FM in the residual."""
    for term, channel, name, share, place in (
        ("together", "clock", "stddev", 1.1, 0),
        ("together", "oscillator", "random_walk_frequency", 3.0, -1),
        ("left", "oscillator", "white_frequency", 20.0, 0),
    ):
        monkeypatch.setattr(faults_latency, "SensorRun", make_false_run(channel, name, share))
        rows = table(EXAMPLE, (20.0,), 1, terms=[entry for entry in TERMS if entry.name == term])
        assert not rows[place].holds, (name, rows)


def test_drift_that_starts_at_zero_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    classic = Noise(dynamic_bias_stddev=4e-6, dynamic_bias_correlation_time=0.5, classic=True)

    def make_classic_run(sensor: Any, clock: Clock, *rest: Any, **more: Any) -> SensorRun:
        return SensorRun(sensor, replace(clock, noise=classic), *rest, **more)

    monkeypatch.setattr(faults_latency, "SensorRun", make_classic_run)
    rows = table(EXAMPLE, (20.0,), 1, terms=[term for term in TERMS if term.name == "start"])
    assert not rows[0].holds


def test_rows_depend_on_the_seed_only() -> None:
    terms = [term for term in TERMS if term.name in ("stddev", "turn_on")]
    first, again, other = (table(EXAMPLE, (10.0,), seed, effort=0.1, terms=terms) for seed in (1, 1, 2))
    assert first == again
    assert not {row.estimate.measured for row in first} & {row.estimate.measured for row in other}


LOOPS = [(0.5, 0.1), (0.6, 0.15), (1.0, 0.0), (0.3, 0.02), (1.2, 0.4)]


@pytest.mark.parametrize(("alpha", "beta"), LOOPS)
def test_residual_has_the_covariance_of_the_loop(alpha: float, beta: float) -> None:
    """SciPy solves the Lyapunov equation. Over many polls, the mean depends on the measurement errors only."""
    spec = Discipline(interval=0.5, proportional=alpha, integral=beta, stddev=2e-5)
    intensity = 3e-11
    matrix, inputs = clock_discipline.make_matrices(spec)
    drive = spec.stddev**2 * inputs @ inputs.T
    drive[0, 0] += intensity * spec.interval
    spread = solve_discrete_lyapunov(matrix, drive)
    found = clock_discipline.compute_covariances(spec, intensity)
    assert found[0] == pytest.approx(clock_discipline.compute_variance(spec, intensity), rel=1e-9, abs=0.0)
    for k in (0, 1, 2, 5, 20)[: found.size]:
        expected = (np.linalg.matrix_power(matrix, k) @ spread)[0, 0]
        assert found[k] == pytest.approx(expected, rel=1e-9, abs=1e-12 * spread[0, 0])
    assert abs(found[-1]) < 1e-7 * found[0]
    if beta > 0.0:
        count = 10**6
        assert clock_discipline._compute_mean_variance(found, count) == pytest.approx(
            spec.stddev**2 / count, rel=1e-3, abs=0.0
        )


def test_declared_standard_errors_match_the_scatter_over_seeds() -> None:
    """Squared deviations of 20 seeds: chi-squared with 20 degrees of freedom, a false-alarm rate of 1e-6 over all."""
    seeds = 20
    names = ("white", "random walk", "ageing walk", "serials", "measured", "left")
    terms = [term for term in TERMS if term.name in names]
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        for row in table(EXAMPLE, (50.0,), seed, effort=0.02, terms=terms):
            found.setdefault(row.estimate.parameter, []).append(row.estimate.deviation)
    assert len(found) == 8
    low, high = chi2.ppf([0.5e-6 / len(found), 1.0 - 0.5e-6 / len(found)], seeds)
    for name, deviations in found.items():
        assert low < math.fsum(d * d for d in deviations) < high, name
