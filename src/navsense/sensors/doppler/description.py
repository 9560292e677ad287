"""Lines of the description of a Doppler instrument, without its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from navsense.core.typing import Vector
from navsense.sensors.doppler.beam_errors import DopplerTrack, EchoStrength
from navsense.sensors.doppler.beams import Beams, BeamWeighting
from navsense.sensors.doppler.echoes import SOUND_SPEED
from navsense.sensors.doppler.long_term_filter import LongTermFilter
from navsense.sensors.doppler.water import WaterMassLayer

WEIGHTING_TEXTS = {
    BeamWeighting.PLANE: "along its axis to the plane through the hits",
    BeamWeighting.NEAREST: "the nearest",
    BeamWeighting.PATTERN: "the pattern's mean",
}
"""Description of each weighting."""


def describe_beams(spec: Beams, limits: Sequence[float], *, own_hull: bool) -> tuple[str, ...]:
    """Describe the beams and the limits (m) of their echoes."""
    echo = WEIGHTING_TEXTS[spec.weighting]
    angles = ", ".join(f"{math.degrees(math.acos(min(cosine, 1.0))):.4g}" for cosine in spec.slant_cosines)
    hull = ", hit their own hull" if own_hull else ""
    count = spec.rays.shape[1]
    rays = f"each {echo} of {count} rays{hull}" if count > 1 else f"each one ray{hull}"
    least, most, flattest = limits
    flat = f", minimum incidence cosine {flattest:g}" if flattest > 0.0 else ""
    return (
        f"beams: {len(spec.slant_cosines)} at {angles} deg from their mean, {rays}",
        f"limits: {least:g} to {most:g} m along a beam{flat}",
    )


def describe_sound(transducer: str, speed: float | None) -> str:
    """Describe the transducer and the assumed speed of sound (m/s)."""
    return f"sound: {transducer.replace('_', ' ')}, its speed {'the true one' if speed is None else f'{speed:g} m/s'}"


def describe_tracks(
    modes: Sequence[str],
    both: Sequence[DopplerTrack],
    layer: WaterMassLayer | None,
    limit: float,
    long_term: LongTermFilter | None,
) -> tuple[str, ...]:
    """Describe the tracks over the bottom and through the water, and the long-term velocity."""
    ends = [f", up to {one.maximum_velocity:g} m/s" if one.maximum_velocity < math.inf else "" for one in both]
    through = f"water track: {modes[1]}{ends[1]}"
    if layer is not None:
        through += (
            f", {layer.near:g} to {layer.far:g} m along the axis, at most {layer.share:g} of the distance to the bottom"
        )
    found = [f"bottom track: {modes[0]}{ends[0]}", through]
    if limit < math.inf:
        found.append(f"rejected above an error velocity of {limit:g} m/s")
    if long_term is not None:
        found.append(f"long-term velocity: acceleration density {long_term.acceleration_density:g} m/s^2/sqrt(Hz)")
    return tuple(found)


def describe_times(reach: float | None, processing: float, rate: float) -> str:
    """Describe the rate of pings (Hz) for a range of `reach` m; None without travel time."""
    if reach is None:
        return "pings: one per tick, valid at the tick"
    slowest = min(rate, 1.0 / (2.0 * reach / SOUND_SPEED + processing))
    fewer = f"{slowest:.3g} to {rate:g} Hz, lower in deep water" if slowest < rate else f"{rate:g} Hz"
    return f"pings: {fewer}; valid when the echo left the bottom"


def describe_losses(strength: EchoStrength | None, dropout: float, reacquisition: float) -> tuple[str, ...]:
    """Describe the loss of beams by a weak echo (dB) or by dropout, and its duration (s)."""
    found = []
    if strength is not None:
        loss = f"{strength.level:g} dB minus 30 log10(r) and {2.0 * strength.absorption:g} dB/m"
        found.append(f"echo: {loss}; lock at {strength.threshold:g} dB, within {strength.slope:g} dB")
    if dropout + reacquisition > 0.0:
        found.append(f"dropouts: {dropout:g} of a beam's pings; {reacquisition:g} s without lock after a loss")
    return tuple(found)


def describe_missing_values(figures: Sequence[str]) -> tuple[str, ...]:
    """Describe the values of a part without a source."""
    if not figures:
        return ()
    return (f"values without a source, not simulated unless you set them: {', '.join(figures)}",)


def _describe_pings(bottom: DopplerTrack, water: DopplerTrack) -> tuple[str, ...]:
    """Describe the errors of pings other than the noise of bottom track."""
    found = []
    for name, track, shown in (("bottom", bottom, True), ("water", water, False)):
        parts = [] if shown or track.noise.stddev == 0.0 else [f"stddev {track.noise.stddev:g} m/s"]
        parts += [f"{track.per_speed:g} m/s per m/s of speed"] if track.per_speed > 0.0 else []
        parts += [f"at {track.reference_rate:g} Hz"] if track.reference_rate > 0.0 else []
        parts += [f"reported as {track.reported_stddev:g} m/s"] if track.reported_stddev > 0.0 else []
        if parts:
            found.append(f"{name} track, each ping: {', '.join(parts)}")
    return tuple(found)


def find_unreported_noise(
    modes: tuple[str, str], both: tuple[DopplerTrack, DopplerTrack]
) -> tuple[tuple[str, str], ...]:
    """Return the tracks without noise of single pings, with the reported deviation and the remedy.

    A spec without errors of the tracks has no such warning.
    """
    found = []
    for name, mode, track in zip(("bottom", "water"), modes, both, strict=True):
        if mode != "never" and not track.is_white and any(one.has_errors for one in both):
            stated = (
                f"{track.reported_stddev:g} m/s is reported"
                if track.reported_stddev > 0.0
                else "a covariance of 0 is reported"
            )
            remedy = f"give one: DopplerTrack(noise=Noise(stddev=...)) as `{name}`, or <{name}_track><noise>"
            found.append((f"{name} track", f"the standard deviation of single pings is 0, and {stated}: {remedy}"))
    return tuple(found)


def describe_systematic_errors(
    bottom: DopplerTrack, water: DopplerTrack, misalignment: Vector, spread: float
) -> tuple[str, ...]:
    """Describe the errors other than the noise of a ping, and those of a serial number."""
    found = [*_describe_pings(bottom, water)]
    for name, track in (("bottom", bottom), ("water", water)):
        if track.long_term_scale + track.long_term_offset > 0.0:
            share, offset = 100.0 * track.long_term_scale, track.long_term_offset
            found.append(f"{name} track, long term: deviations of {share:g} % and {offset:g} m/s")
    if any(misalignment) or spread > 0.0:
        angle = math.degrees(math.hypot(*misalignment))
        found.append(f"misalignment: {angle:.3g} deg, deviation {math.degrees(spread):.3g} deg")
    return tuple(found)
