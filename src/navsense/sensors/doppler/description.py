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


def describe_tracks(
    modes: Sequence[str],
    tracks: Sequence[DopplerTrack],
    layer: WaterMassLayer | None,
    error_velocity_limit: float,
    long_term: LongTermFilter | None,
) -> tuple[str, ...]:
    """Describe the tracks over the bottom and through the water, and the long-term velocity."""
    limits = [f", up to {t.maximum_velocity:g} m/s" if t.maximum_velocity < math.inf else "" for t in tracks]
    water_track = f"water track: {modes[1]}{limits[1]}"
    if layer is not None:
        water_track += (
            f", {layer.near:g} to {layer.far:g} m along the axis, at most {layer.share:g} of the distance to the bottom"
        )
    lines = [f"bottom track: {modes[0]}{limits[0]}", water_track]
    if error_velocity_limit < math.inf:
        lines.append(f"rejected above an error velocity of {error_velocity_limit:g} m/s")
    if long_term is not None:
        lines.append(f"long-term velocity: acceleration density {long_term.acceleration_density:g} m/s^2/sqrt(Hz)")
    return tuple(lines)


def describe_times(maximum_range: float | None, processing_time: float, rate: float) -> str:
    """Describe the rate of pings (Hz) up to a maximum range (m); None without travel time."""
    if maximum_range is None:
        return "pings: one per tick, valid at the tick"
    lowest_rate = min(rate, 1.0 / (2.0 * maximum_range / SOUND_SPEED + processing_time))
    rates = f"{lowest_rate:.3g} to {rate:g} Hz, lower in deep water" if lowest_rate < rate else f"{rate:g} Hz"
    return f"pings: {rates}; valid when the echo left the bottom"


def describe_losses(strength: EchoStrength | None, dropout: float, reacquisition: float) -> tuple[str, ...]:
    """Describe the loss of beams by a weak echo (dB) or by dropout, and its duration (s)."""
    lines = []
    if strength is not None:
        loss = f"{strength.level:g} dB minus 30 log10(r) and {2.0 * strength.absorption:g} dB/m"
        lines.append(f"echo: {loss}; lock at {strength.threshold:g} dB, within {strength.slope:g} dB")
    if dropout + reacquisition > 0.0:
        lines.append(f"dropouts: {dropout:g} of a beam's pings; {reacquisition:g} s without lock after a loss")
    return tuple(lines)


def describe_missing_values(names: Sequence[str]) -> tuple[str, ...]:
    """Describe the values of a part without a source."""
    if not names:
        return ()
    return (f"values without a source, not simulated unless you set them: {', '.join(names)}",)


def _describe_pings(bottom: DopplerTrack, water: DopplerTrack) -> tuple[str, ...]:
    """Describe the errors of pings other than the noise of bottom track."""
    lines = []
    for name, track in (("bottom", bottom), ("water", water)):
        terms = [f"stddev {track.noise.stddev:g} m/s"] if name == "water" and track.noise.stddev != 0.0 else []
        terms += [f"{track.per_speed:g} m/s per m/s of speed"] if track.per_speed > 0.0 else []
        terms += [f"at {track.reference_rate:g} Hz"] if track.reference_rate > 0.0 else []
        terms += [f"reported as {track.reported_stddev:g} m/s"] if track.reported_stddev > 0.0 else []
        if terms:
            lines.append(f"{name} track, each ping: {', '.join(terms)}")
    return tuple(lines)


def find_unreported_noise(
    modes: tuple[str, str], tracks: tuple[DopplerTrack, DopplerTrack]
) -> tuple[tuple[str, str], ...]:
    """Return a warning for each track in use without noise of single pings: its name and the text.

    There is no warning if neither track has errors.
    """
    warnings = []
    for name, mode, track in zip(("bottom", "water"), modes, tracks, strict=True):
        if mode != "never" and not track.is_white and any(t.has_errors for t in tracks):
            reported = (
                f"{track.reported_stddev:g} m/s is reported"
                if track.reported_stddev > 0.0
                else "a covariance of 0 is reported"
            )
            remedy = f"give one: DopplerTrack(noise=Noise(stddev=...)) as `{name}`, or <{name}_track><noise>"
            warnings.append((f"{name} track", f"the standard deviation of single pings is 0, and {reported}: {remedy}"))
    return tuple(warnings)


def describe_systematic_errors(
    bottom: DopplerTrack, water: DopplerTrack, misalignment: Vector, misalignment_stddev: float
) -> tuple[str, ...]:
    """Describe the errors other than the noise of a ping, and those of a serial number."""
    lines = [*_describe_pings(bottom, water)]
    for name, track in (("bottom", bottom), ("water", water)):
        if track.long_term_scale + track.long_term_offset > 0.0:
            scale, offset = 100.0 * track.long_term_scale, track.long_term_offset
            lines.append(f"{name} track, long term: standard deviations of {scale:g} % and {offset:g} m/s")
    if any(misalignment) or misalignment_stddev > 0.0:
        angle, stddev = math.degrees(math.hypot(*misalignment)), math.degrees(misalignment_stddev)
        lines.append(f"misalignment: {angle:.3g} deg, standard deviation {stddev:.3g} deg")
    return tuple(lines)
