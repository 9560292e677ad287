"""Weights of the cells of a current profiler."""

from __future__ import annotations

import numpy as np
import pytest

from navsense.sensors import DepthCells

PULSES = [(2.0, 2.0), (2.0, 0.5), (2.0, 1.0), (2.0, 4.0), (1.0, 0.2)]


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("size", "pulse"), PULSES)
def test_cell_weights_have_the_variance_of_gate_and_pulse(size: float, pulse: float) -> None:
    """The weights are the convolution of gate and pulse, so variances add: size² / 12 + pulse² / 12.

    The midpoint rule of a kinked curve has a quadratic error, which falls by a factor of four at half the distance.
    """
    spread = (size**2 + pulse**2) / 12.0
    off = []
    for samples in (16, 32, 64):
        places, weights = DepthCells(count=3, size=size, transmit_length=pulse, samples=samples).weighted_samples
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        assert weights @ places == pytest.approx(0.0, abs=1e-14)
        off.append(float(weights @ places**2) / spread - 1.0)
    assert np.abs(np.diff(np.array(off) * np.array([16.0, 32.0, 64.0]) ** 2)).max() < 0.5 * abs(off[0]) * 16.0**2
    assert 0.0 < off[2] < 3e-3


@pytest.mark.requirement("GAP-8")
@pytest.mark.parametrize(("size", "pulse"), PULSES)
def test_five_default_weights_have_slightly_larger_variance(size: float, pulse: float) -> None:
    places, weights = DepthCells(count=3, size=size, transmit_length=pulse).weighted_samples
    assert places.size == 5
    assert 0.03 < float(weights @ places**2) / ((size**2 + pulse**2) / 12.0) - 1.0 < 0.08
