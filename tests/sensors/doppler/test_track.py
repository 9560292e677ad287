"""Doppler tracks: deviations by speed, rate and signal, and invalid values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from navsense.core.errors import SensorError
from navsense.noise.specification import Noise
from navsense.sensors.doppler import TrackErrors, ping
from navsense.sensors.doppler.beam_errors import compute_stddev


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize(("speed", "wanted"), [(0.0, 0.0025), (1.0, 0.003), (3.0, 0.004), (5.0, 0.005)])
def test_deviation_is_a_floor_plus_a_share_of_the_speed(speed: float, wanted: float) -> None:
    """0.25 cm/s plus 0.05 cm/s per m/s give 0.3, 0.4 and 0.5 cm/s at 1, 3 and 5 m/s."""
    assert compute_stddev(0.0025, 0.0005, speed, 7.0, 0.0, 1.0) == pytest.approx(wanted, rel=1e-14, abs=0.0)


@pytest.mark.requirement("GAP-2")
def test_rate_and_signal_scale_the_deviation() -> None:
    base = compute_stddev(0.002, 0.001, 3.0, 2.0, 2.0, 1.0)
    assert base == pytest.approx(0.005, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 8.0, 2.0, 1.0) == pytest.approx(2.0 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 0.5, 2.0, 1.0) == pytest.approx(0.5 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 8.0, 0.0, 3.5) == pytest.approx(3.5 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.0, 0.0, 3.0, 8.0, 2.0, 3.5) == 0.0


def test_default_track_has_no_errors() -> None:
    assert TrackErrors() == TrackErrors(Noise(), 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "name", ["per_speed", "reference_rate", "reported_stddev", "long_term_scale", "long_term_offset"]
)
@pytest.mark.parametrize("value", [-1e-3, math.nan, math.inf])
def test_invalid_deviation_is_an_error(name: str, value: float) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(SensorError, match=f"{name} of a track"):
        TrackErrors(**arguments)


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize(
    ("arguments", "errs", "is_white"),
    [
        ({}, False, False),
        ({"reference_rate": 4.0}, False, False),
        ({"reported_stddev": 0.01}, False, False),
        ({"noise": Noise(classic=True)}, False, False),
        ({"noise": Noise(classic=True), "reference_rate": 4.0, "reported_stddev": 0.01}, False, False),
        ({"noise": Noise(stddev=0.01)}, True, True),
        ({"noise": Noise(stddev=0.01, classic=True), "reference_rate": 4.0}, True, True),
        ({"noise": Noise(bias_mean=0.01)}, True, False),
        ({"per_speed": 1e-3}, True, True),
        ({"per_speed": 1e-3, "reference_rate": 4.0}, True, True),
        ({"long_term_scale": 1e-3}, True, False),
        ({"long_term_offset": 1e-3}, True, False),
    ],
)
def test_other_track_fields_are_not_errors(arguments: dict[str, Any], errs: bool, is_white: bool) -> None:
    """A reference rate, a reported deviation and options of a zero noise are not errors."""
    track = TrackErrors(**arguments)
    assert (track.has_errors, track.has_white_noise) == (errs, is_white)


def test_outputs_of_a_ping_have_the_order_of_the_table() -> None:
    """`solve_pings` numbers the rows of `OutputMemory`; names come from `OUTPUTS`."""
    groups = [tuple(name for name, other, _ in ping.OUTPUTS if other == shape) for shape in ping.GROUP_SHAPES]
    scalars, per_beam, vectors, covariances = groups
    assert per_beam == ping.BeamOutputs._fields
    assert ping.SolutionOutputs._fields == (*scalars[:6], vectors[0], vectors[2], covariances[0], covariances[2])
    assert scalars[6:] == ("time_of_validity", "sound_speed", "water_time_of_validity", "water_far")
    assert (vectors[1], covariances[1]) == ("long_term_velocity", "long_term_covariance")
    memory = ping.allocate_outputs(2, 3)
    assert sum(np.shares_memory(array, memory.scalars) for array in memory.name_outputs().values()) == len(scalars)
    assert {name: array.shape[1:] for name, array in memory.name_outputs().items()} == {
        name: {"": (), "k": (3,), "3": (3,), "33": (3, 3)}[shape] for name, shape, _ in ping.OUTPUTS
    }
