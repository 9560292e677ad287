"""Noise of sensor channels: the model and its terms."""

from navsense.noise.channels import NoiseChannels
from navsense.noise.specification import Noise

__all__ = [
    "Noise",
    "NoiseChannels",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
