"""The fields of a `Dvl` from the data sheet values of a catalogue part.

| value | field |
|---|---|
| beam angle, width | four beams in an X about -z: cones of one ring, of full width at half power, with its pattern |
| beam range | `minimum_range`, `maximum_range` |
| beam altitude, without a range | range = altitude / cos(beam angle), for level ground |
| bottom_track and water_track noise_rms | `stddev` of one beam and one ping, see `catalogue.part_noise` |
| long_term_scale, long_term_offset | those of the track: as printed for 1 sigma; limits divided by 3 |
| error_velocity_limit | the limit |
| layer, least_layer | the water-mass layer, which acts if the water is tracked |
| maximum_velocity | of the track; no usable echo above it |

Without a printed angle the beams are at that of `Dvl()`. Azimuths belong to the mounting, not to the part. The same
holds for `output_rate`: the rate is that of the mounted sensor. A part without a standard deviation of single pings is
an error unless the caller gives one: its covariance would be 0, infinite weight in a filter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from navsense.core.errors import MissingDeviationError
from navsense.sensors.catalogue import DatasheetEntry, Part
from navsense.sensors.catalogue.part_noise import make_noise, to_stddev
from navsense.sensors.doppler.beam_errors import DopplerTrack
from navsense.sensors.doppler.beams import BeamWeighting, make_janus_beams
from navsense.sensors.doppler.water import WaterMassLayer


def _make_track(part: Part, channel: str, *, temperature: bool) -> DopplerTrack:
    """Return the errors of one track."""
    (noise,) = make_noise(part, channel, temperature=temperature)
    figures = part.entries[channel]
    given = {key: to_stddev(figures[key]) for key in ("long_term_scale", "long_term_offset") if key in figures}
    if "maximum_velocity" in figures:
        given["maximum_velocity"] = figures["maximum_velocity"].values[0]
    return DopplerTrack(noise, **given)


def _make_bottom_track(part: Part, stddev: float | None, *, temperature: bool) -> DopplerTrack:
    """Return the bottom-track errors. Raises `MissingDeviationError` if part and caller give no deviation (m/s)."""
    track = _make_track(part, "bottom_track", temperature=temperature)
    if stddev is not None:
        return replace(track, noise=replace(track.noise, stddev=stddev, noise_density=0.0))
    if not track.is_white:
        allowed = "must be given (m/s): the part has no source for the standard deviation of a single ping"
        remedy = f'write Dvl.from_part("{part.name}", stddev=...)'
        raise MissingDeviationError(f"stddev of part {part.name}", None, allowed=allowed, remedy=remedy)
    return track


def _make_beams(figures: Mapping[str, DatasheetEntry], azimuths: Sequence[float], angle: float) -> dict[str, Any]:
    """Return the beams and their limits; `angle` (rad) applies if none is printed."""
    tilt = figures["angle"].values[0] if "angle" in figures else angle
    width = figures["width"].values[0] if "width" in figures else 0.0
    found: dict[str, Any] = {
        "beams": replace(make_janus_beams(tilt, azimuths, width=width), weighting=BeamWeighting.PATTERN),
    }
    slant = 1.0 if "range" in figures else math.cos(tilt)
    ends = figures.get("range", figures.get("altitude"))
    if ends is not None:
        found["minimum_range"], found["maximum_range"] = (end / slant for end in ends.values)
    return found


def make_fields(
    part: Part, azimuths: Sequence[float], angle: float, *, temperature: bool, stddev: float | None
) -> dict[str, Any]:
    """Return the fields that a part gives; beams at azimuths (rad), and `angle` (rad) if none is printed.

    `stddev` (m/s) replaces the deviation of a ping over the bottom. Raises `SensorError` for a part of another kind,
    and for one without a deviation.
    """
    bottom = _make_bottom_track(part, stddev, temperature=temperature)
    found = {"bottom": bottom, **_make_beams(part.entries.get("beam", {}), azimuths, angle)}
    given = () if stddev is None else ("bottom_track.noise_rms",)
    found["missing_values"] = tuple(name for name in part.missing_values if name not in given)
    limit = part.entries["bottom_track"].get("error_velocity_limit")
    if limit is not None:
        found["error_velocity_limit"] = limit.values[0]
    through = part.entries.get("water_track", {})
    if through:
        found["water"] = _make_track(part, "water_track", temperature=temperature)
    if "layer" in through:
        least = through["least_layer"].values[0] if "least_layer" in through else 0.0
        near, far = through["layer"].values
        found["layer"] = WaterMassLayer(near, far, least)
    return found
