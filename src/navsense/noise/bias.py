"""Turn-on bias: drawn once for each instance (one serial number), constant afterwards.

    turn_on = bias_mean + bias_stddev u,   u a standard normal

Under `classic` its sign is random, as in Gazebo: negative where a uniform on [0, 1) falls below one half.
"""

from __future__ import annotations


def compute_turn_on_bias(mean: float, stddev: float, u: float) -> float:
    """Return the turn-on bias in the channel's unit."""
    return mean + stddev * u


def randomise_sign(value: float, uniform: float) -> float:
    """Return the value with Gazebo's random sign."""
    return -value if uniform < 0.5 else value
