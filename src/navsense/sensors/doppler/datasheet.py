"""The fields of a `Dvl` from the datasheet values of a catalogue part.

| value | field |
|---|---|
| beam angle, width | four beams in an X about -z: cones of one ring with the pattern of this full width at half power |
| beam range | `minimum_range`, `maximum_range` |
| beam altitude, without a range | range = altitude / cos(beam angle), for level ground |
| bottom_track and water_track noise_rms | `stddev` of one beam and one ping, see `catalogue.part_noise` |
| long_term_scale, long_term_offset | those of the track: as printed for 1 sigma; limits divided by 3 |
| error_velocity_limit | the limit |
| layer, least_layer | the water-mass layer, which acts if the water is tracked |
| maximum_velocity | of the track; no usable echo above it |

A part without a beam angle has that of `Dvl()`. A part has no azimuths: they depend on the mounting. It has no rate
either: the mounted sensor has one, and `output_rate` is not used. A part without a standard deviation of single pings
is an error unless the caller gives one. Its covariance would be 0, which is an infinite weight in a filter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from navsense.core.errors import MissingDeviationError
from navsense.sensors.catalogue import DatasheetEntry, Part
from navsense.sensors.catalogue.part_noise import make_noise, to_typical_value
from navsense.sensors.doppler.beam_errors import TrackErrors
from navsense.sensors.doppler.beams import BeamWeighting, make_x_beams
from navsense.sensors.doppler.water import WaterMassLayer


def _make_track(part: Part, channel: str, *, temperature: bool) -> TrackErrors:
    """Return the errors of one track."""
    (noise,) = make_noise(part, channel, temperature=temperature)
    entries = part.entries[channel]
    fields = {key: to_typical_value(entries[key]) for key in ("long_term_scale", "long_term_offset") if key in entries}
    if "maximum_velocity" in entries:
        fields["maximum_velocity"] = entries["maximum_velocity"].values[0]
    return TrackErrors(noise, **fields)


def _make_bottom_track(part: Part, stddev: float | None, *, temperature: bool) -> TrackErrors:
    """Return the errors of bottom track. `stddev` (m/s) replaces the standard deviation of the part.

    Raises `MissingDeviationError` if there is none.
    """
    track = _make_track(part, "bottom_track", temperature=temperature)
    if stddev is not None:
        return replace(track, noise=replace(track.noise, stddev=stddev, noise_density=0.0))
    if not track.has_white_noise:
        allowed = "must be given (m/s): the part has no source for the standard deviation of a single ping"
        remedy = f'write Dvl.from_part("{part.name}", stddev=...)'
        raise MissingDeviationError(f"stddev of part {part.name}", None, allowed=allowed, remedy=remedy)
    return track


def _make_beams(entries: Mapping[str, DatasheetEntry], default_angle: float) -> dict[str, Any]:
    """Return the beams and the limits of their ranges; `default_angle` (rad) applies to a part without an angle."""
    angle = entries["angle"].values[0] if "angle" in entries else default_angle
    width = entries["width"].values[0] if "width" in entries else 0.0
    fields: dict[str, Any] = {"beams": replace(make_x_beams(angle, width=width), weighting=BeamWeighting.PATTERN)}
    if "range" in entries:
        fields["minimum_range"], fields["maximum_range"] = entries["range"].values
    elif "altitude" in entries:
        fields["minimum_range"], fields["maximum_range"] = (a / math.cos(angle) for a in entries["altitude"].values)
    return fields


def make_fields(part: Part, default_angle: float, *, temperature: bool, stddev: float | None) -> dict[str, Any]:
    """Return the fields of a `Dvl` that a part determines.

    default_angle: rad, Janus angle for a part without one.
    temperature: True enables the temperature coefficients.
    stddev: m/s, replaces the standard deviation of a beam's bottom-track velocity in one ping.

    Raises `SensorError` for a part of another sensor type, and for one without a standard deviation.
    """
    bottom = _make_bottom_track(part, stddev, temperature=temperature)
    fields = {"bottom": bottom, **_make_beams(part.entries.get("beam", {}), default_angle)}
    supplied = () if stddev is None else ("bottom_track.noise_rms",)
    fields["missing_values"] = tuple(name for name in part.missing_values if name not in supplied)
    if (limit := part.entries["bottom_track"].get("error_velocity_limit")) is not None:
        fields["error_velocity_limit"] = limit.values[0]
    water_track = part.entries.get("water_track", {})
    if water_track:
        fields["water"] = _make_track(part, "water_track", temperature=temperature)
    if "layer" in water_track:
        minimum_size = water_track["least_layer"].values[0] if "least_layer" in water_track else 0.0
        near, far = water_track["layer"].values
        fields["layer"] = WaterMassLayer(near, far, minimum_size)
    return fields
