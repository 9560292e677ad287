"""Data sheets of a track: deviations by speed, rate and signal, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from navsense.core.errors import SensorError
from navsense.noise.specification import Noise
from navsense.sensors.doppler import DopplerTrack
from navsense.sensors.doppler.beam_errors import compute_stddev


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize(("speed", "wanted"), [(0.0, 0.0025), (1.0, 0.003), (3.0, 0.004), (5.0, 0.005)])
def test_a_floor_and_a_part_for_each_metre_a_second(speed: float, wanted: float) -> None:
    """0.25 cm/s and 0.05 cm/s for each m/s: what makes 0.3, 0.4 and 0.5 cm/s at 1, 3 and 5 m/s."""
    assert compute_stddev(0.0025, 0.0005, speed, 7.0, 0.0, 1.0) == pytest.approx(wanted, rel=1e-14, abs=0.0)


@pytest.mark.requirement("GAP-2")
def test_rate_and_signal_scale_all_of_it() -> None:
    base = compute_stddev(0.002, 0.001, 3.0, 2.0, 2.0, 1.0)
    assert base == pytest.approx(0.005, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 8.0, 2.0, 1.0) == pytest.approx(2.0 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 0.5, 2.0, 1.0) == pytest.approx(0.5 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.002, 0.001, 3.0, 8.0, 0.0, 3.5) == pytest.approx(3.5 * base, rel=1e-14, abs=0.0)
    assert compute_stddev(0.0, 0.0, 3.0, 8.0, 2.0, 3.5) == 0.0


def test_a_track_has_no_errors_unless_given() -> None:
    assert DopplerTrack() == DopplerTrack(Noise(), 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "name", ["per_speed", "reference_rate", "reported_stddev", "long_term_scale", "long_term_offset"]
)
@pytest.mark.parametrize("value", [-1e-3, math.nan, math.inf])
def test_invalid_deviation_is_an_error(name: str, value: float) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(SensorError, match=f"{name} of a track"):
        DopplerTrack(**given)


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize(
    ("given", "errs", "is_white"),
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
def test_a_track_has_errors_only_from_its_values(given: dict[str, Any], errs: bool, is_white: bool) -> None:
    """A rate at which nothing holds, a stated deviation and the rules of a noise that is none are no errors."""
    track = DopplerTrack(**given)
    assert (track.has_errors, track.is_white) == (errs, is_white)
