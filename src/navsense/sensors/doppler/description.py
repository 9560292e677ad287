"""Lines that describe the beams and the sound of a Doppler instrument."""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.sensors.doppler.beams import Beams, BeamWeighting

WEIGHTING_TEXTS = {
    BeamWeighting.PLANE: "along its axis to the plane through the hits",
    BeamWeighting.NEAREST: "the nearest",
    BeamWeighting.PATTERN: "the pattern's mean",
}
"""Description of each weighting."""


def describe_beams(spec: Beams, limits: Sequence[float], *, own_hull: bool) -> tuple[str, ...]:
    """Describe the beams and the limits (m) of their echoes."""
    echo = WEIGHTING_TEXTS[spec.weighting]
    angles = ", ".join(f"{math.degrees(math.acos(min(cosine, 1.0))):.4g}" for cosine in spec.janus_cosines)
    hull = ", hit their own hull" if own_hull else ""
    count = spec.rays.shape[1]
    rays = f"each {echo} of {count} rays{hull}" if count > 1 else f"each one ray{hull}"
    minimum_range, maximum_range, min_incidence_cosine = limits
    incidence = f", minimum incidence cosine {min_incidence_cosine:g}" if min_incidence_cosine > 0.0 else ""
    return (
        f"beams: {len(spec.janus_cosines)} at {angles} deg from their mean, {rays}",
        f"limits: {minimum_range:g} to {maximum_range:g} m along a beam{incidence}",
    )


def describe_sound(transducer: str, speed: float | None) -> str:
    """Describe the transducer and the assumed speed of sound (m/s)."""
    return f"sound: {transducer.replace('_', ' ')}, its speed {'the true one' if speed is None else f'{speed:g} m/s'}"
