"""Fault and latency parameters are estimated, and wrong parameters are detected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from navsense.clock import Latency
from navsense.faults.injection import RANDOM_FIELDS, Faults, init_faults
from navsense.simulation import sensor_run
from navsense.simulation.sensor_run import SensorRun
from navsense.world import MountedSensor
from tests.verification import faults_latency
from tests.verification.declared import LIMIT, Row
from tests.verification.faults_latency import EXAMPLE, Telegraph, table

pytestmark = [pytest.mark.compiled, pytest.mark.requirement("NOI-6", "CLK-9")]

LATENCY = EXAMPLE.latency or Latency()


def get_row(rows: list[Row], parameter: str) -> Row:
    (found,) = [row for row in rows if row.estimate.parameter == parameter]
    return found


def test_every_parameter_is_estimated_at_two_rates() -> None:
    """A new field of `Faults` or `Latency` needs an estimator in `faults_latency` and a value in `EXAMPLE`.

    `tests/test_faults.py` covers scheduled faults.
    """
    rows = table(EXAMPLE, (8.0, 90.0), 3, effort=0.2)
    assert all(row.holds for row in rows), [row for row in rows if not row.holds]
    for rate in (8.0, 90.0):
        for channel, spec in (("faults", EXAMPLE.faults), ("latency", LATENCY)):
            estimates = {row.estimate.parameter: row for row in rows if row.rate == rate and row.channel == channel}
            for field in [field for field in fields(spec) if field.name not in ("scheduled", "recorded")]:
                assert getattr(spec, field.name) != field.default, "acts"
                assert estimates[field.name].estimate.declared == getattr(spec, field.name)
    assert {row.unit for row in rows} == {"1", "s", "1 / s"}
    assert {row.sensor for row in rows} == {"a mounted sensor"}


def test_inactive_term_has_no_row() -> None:
    assert not table(replace(EXAMPLE, faults=Faults(), latency=None), (10.0,), 1)
    sensor = replace(EXAMPLE, faults=Faults(stuck_rate=0.3, stuck_duration=0.7), latency=Latency(mean=0.01))
    rows = table(sensor, (10.0,), 1, effort=0.1)
    assert [row.estimate.parameter for row in rows] == [
        *("stuck share of the time", "stuck share at the start", "stuck_rate", "stuck_duration"),
        "mean",
    ]
    assert get_row(rows, "mean").estimate.error < 1e-10, "without chance"


def test_unobservable_terms_are_not_reported() -> None:
    """At a low rate faults begin and end between samples; at a high rate samples wait for each other."""
    slow = {row.estimate.parameter for row in table(EXAMPLE, (0.5,), 1, effort=0.01)}
    assert "dropout share of the time" in slow
    assert not {"dropout_rate", "dropout_duration"} & slow
    fast = {row.estimate.parameter for row in table(EXAMPLE, (1000.0,), 1, effort=0.01)}
    assert "fixed" in fast
    assert not {"mean", "stddev"} & fast


def make_false_run(change: Callable[[MountedSensor], MountedSensor]) -> Callable[..., SensorRun]:
    return lambda sensor, *rest, **more: SensorRun(change(sensor), *rest, **more)


def scale_field(spec: Any, name: str, share: float) -> Any:
    return replace(spec, **{name: getattr(spec, name) * share})


@pytest.mark.parametrize("name", RANDOM_FIELDS)
def test_undeclared_fault_parameters_are_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        faults_latency,
        "SensorRun",
        make_false_run(lambda sensor: replace(sensor, faults=scale_field(sensor.faults, name, 1.25))),
    )
    assert not get_row(table(EXAMPLE, (20.0,), 1, effort=0.3), name).holds


@pytest.mark.parametrize(("name", "share"), [("fixed", 1.0001), ("mean", 1.01), ("stddev", 1.02)])
def test_undeclared_latency_is_detected(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        faults_latency,
        "SensorRun",
        make_false_run(lambda sensor: replace(sensor, latency=scale_field(sensor.latency, name, share))),
    )
    estimate = get_row(table(replace(EXAMPLE, faults=Faults()), (20.0,), 1), name).estimate
    assert abs(estimate.deviation) > LIMIT


def test_sensor_that_always_starts_without_fault_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensor_run, "init_faults", lambda faults, draws: init_faults(faults, np.ones_like(draws)))
    rows = table(EXAMPLE, (20.0,), 1, effort=0.3)
    for kind in ("dropout", "stuck"):
        assert not get_row(rows, f"{kind} share at the start").holds
        assert get_row(rows, f"{kind}_rate").holds


def test_correlated_faults_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one stream for both kinds, stuck samples are mostly dropped and rarely seen."""

    def make_faulty_run(sensor: MountedSensor, *rest: Any, **more: Any) -> SensorRun:
        run = SensorRun(sensor, *rest, **more)
        if len(sensor.faults.random_kinds) == 2:
            monkeypatch.setattr(run._fault_draws, "take", repeat_first_row(run._fault_draws.take))
        return run

    monkeypatch.setattr(faults_latency, "SensorRun", make_faulty_run)
    rows = table(EXAMPLE, (20.0,), 1, effort=0.3)
    assert not get_row(rows, "stuck share of what is shown").holds
    assert get_row(rows, "stuck share of the time").holds


def repeat_first_row(take: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda count: np.repeat(take(count)[:1], 2, axis=0)


@pytest.mark.parametrize(("begins", "lasts", "rate"), [(0.5, 0.4, 10.0), (3.0, 2.0, 4.0), (0.01, 7.0, 50.0)])
def test_estimation_errors_of_a_telegraph_process(begins: float, lasts: float, rate: float) -> None:
    """The variance of the mean is the sum over its covariance; the derivatives equal small differences."""
    fault, count = Telegraph(begins, lasts, rate), 40
    p = begins / (begins + 1.0 / lasts)
    assert fault.share == pytest.approx(p, rel=1e-14, abs=0.0)
    lag = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    covariance = p * (1.0 - p) * np.exp(-(begins + 1.0 / lasts) * lag / rate)
    assert fault.variance(count, fault.correlation) == pytest.approx(covariance.mean(), rel=1e-11, abs=0.0)
    change = 1.0 - fault.correlation
    a, b = p * change, (1.0 - p) * change
    assert faults_latency._compute_onset_and_end_rates(a, b, rate) == pytest.approx(
        (begins, 1.0 / lasts), rel=1e-11, abs=0.0
    )
    for column, (da, db) in enumerate(((1e-6 * a, 0.0), (0.0, 1e-6 * b))):
        up, down = (
            np.array(faults_latency._compute_onset_and_end_rates(a + s * da, b + s * db, rate)) for s in (1.0, -1.0)
        )
        slope = (up - down) / (2.0 * (da + db))
        assert faults_latency._compute_rate_derivatives(a, b, rate)[:, column] == pytest.approx(
            slope, rel=1e-6, abs=1e-9
        )


def test_declared_standard_errors_match_the_scatter_over_seeds() -> None:
    """Squared deviations of 20 seeds: chi-squared with 20 degrees of freedom, a false-alarm rate of 1e-6 over all."""
    seeds = 20
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(seeds):
        for row in table(EXAMPLE, (10.0,), seed, effort=0.05):
            found.setdefault((row.channel, row.estimate.parameter), []).append(row.estimate.deviation)
    del found["latency", "fixed"]
    low, high = chi2.ppf([0.5e-6 / len(found), 1.0 - 0.5e-6 / len(found)], seeds)
    for place, deviations in found.items():
        assert low < math.fsum(d * d for d in deviations) < high, place
