"""Encoders of the device formats: data of one Doppler instrument to bytes, and the state between blocks.

PD0 ensembles are in beam, instrument, ship or earth coordinates. Velocities of PD0 are those of bottom and water
relative to the instrument: a vehicle that moves north over the bottom has a negative north velocity, one that sinks a
positive up velocity. In earth and ship coordinates, heading, pitch and roll are those of the vehicle, and the heading
alignment is the angle of beam 3 to starboard of forward. In beam and instrument coordinates, which the reader rotates,
they are those of the instrument (forward along beam 3), and the alignment is 0.

The leaders are those of a 600 kHz Workhorse with firmware 51.40, because readers select the layout by them, with the
flag of simulated data. A range is the slant range times the cosine of the beam angle. Values that the simulation lacks:
correlation is 255 for a good beam, else 0; amplitude is 0. A DVL has no profile: its leader declares one cell and no
ping, because some readers fail without a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, FloatArray, IntArray, Vectors
from navsense.devices import nmea, pd0, pd6, rdi_frames, waterlinked
from navsense.devices.measurement import DopplerInstrument, InstrumentData, ProfileData, rotate_vectors
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import BinMapping
from navsense.sensors.dvl import Dvl

BlockEncoder = Callable[[InstrumentData], bytes]

SECONDS_PER_NANOSECOND = 1e-9


class Pd0Coordinates(StrEnum):
    """Coordinates of velocities in PD0, in the order of their numbers."""

    BEAM = "beam"
    INSTRUMENT = "instrument"
    SHIP = "ship"
    EARTH = "earth"


TILTS_USED, THREE_BEAM_SOLUTIONS, BIN_MAPPED = 4, 2, 1
"""Bits of the coordinate transformation."""

KILOHERTZ_600, CONVEX, ATTACHED, LOOKS_UP, JANUS = 0x03, 0x08, 0x40, 0x80, 0x4000
"""Bits of the system configuration."""

BEAM_ANGLE_BITS: Mapping[int, int] = {15: 0x000, 20: 0x100, 30: 0x200}
"""Beam angle (degrees) -> bits of the system configuration."""

OTHER_ANGLE_BITS = 0x300

FIRMWARE = (51, 40)

MAX_PING_SPACING = 256 * 6000 - 1
"""Largest time between pings in hundredths of a second: minutes have one byte."""

DEPTH, HEADING, TEMPERATURE = 0x20, 0x1C, 0x01
"""Bits of the sensors: pressure sensor, compass and inclinometers, thermometer."""


def select_coordinates(instrument: DopplerInstrument, requested: str) -> Pd0Coordinates:
    """Return the requested coordinates of an instrument's ensembles. Default: earth for a DVL, its own for an ADCP.

    Raises `RecordingError` if the instrument does not support them.
    """
    spec, name = instrument.sensor.spec, instrument.sensor.name
    if isinstance(spec, Adcp):
        profile = Pd0Coordinates(spec.coordinates)
        coordinates = Pd0Coordinates(requested) if requested else profile
        if coordinates not in (profile, Pd0Coordinates.BEAM):
            allowed = f"must be {profile} or beam: the profile of sensor {name!r} is in {profile} coordinates"
            raise RecordingError(
                "coordinates", requested, allowed=allowed, remedy="change <coordinates> in the world file"
            )
    else:
        coordinates = Pd0Coordinates(requested) if requested else Pd0Coordinates.EARTH
    degrees = math.degrees(instrument.mounting.angle)
    if coordinates is Pd0Coordinates.BEAM and abs(degrees - round(degrees)) > 0.01:
        allowed = "must be a whole number for beam coordinates, because PD0 holds whole degrees"
        remedy = "use instrument, ship or earth coordinates"
        raise RecordingError(f"beam angle of sensor {name!r} (degrees)", degrees, allowed=allowed, remedy=remedy)
    return coordinates


def round_heading(heading: FloatArray) -> FloatArray:
    """Return headings (n,) rad rounded to centidegrees in [0, 360) degrees."""
    return np.asarray(np.rint(heading / pd0.CENTIDEGREE) % 36000.0 * pd0.CENTIDEGREE)


def make_pd0_arrays(
    instrument: DopplerInstrument, data: InstrumentData, coordinates: Pd0Coordinates, first: int
) -> dict[str, AnyArray]:
    """Return the arrays of PD0 ensembles, numbered from `first`."""
    mounting, spec = instrument.mounting, instrument.sensor.spec
    is_unrotated = coordinates in (Pd0Coordinates.BEAM, Pd0Coordinates.INSTRUMENT)
    attitude = data.attitude @ mounting.rotation if is_unrotated else data.attitude
    heading, pitch, roll = rdi_frames.compute_angles(attitude, looks_up=mounting.looks_up and is_unrotated)
    arrays = _make_leaders(instrument, data, coordinates)
    arrays |= {"number": np.arange(first, first + len(data)), **pd0.encode_rtc(data.stamp)}
    arrays |= {"heading": round_heading(heading), "pitch": pitch, "roll": roll}
    arrays["heading_alignment"] = np.array(0.0 if is_unrotated else mounting.azimuth)
    arrays |= _make_bottom_track(instrument, data, coordinates)
    if isinstance(spec, Dvl) and spec.layer is not None:
        velocity, beam_velocity = data.water_velocity, data.water_beam_velocity
        arrays |= {"layer_near": np.array(spec.layer.near), "layer_far": np.array(spec.layer.far)}
        arrays["layer_min_size"] = np.array(spec.layer.minimum_size)
        arrays["layer_velocity"] = _make_track(instrument, data, coordinates, velocity, beam_velocity)
        arrays["layer_correlation"] = np.isfinite(beam_velocity[:, mounting.order]).astype(np.float64)
        arrays["layer_percent_good"] = _compute_percent_good(beam_velocity[:, mounting.order], velocity, coordinates)
    if data.profile is not None:
        arrays |= _make_profile(instrument, data.profile, coordinates)
    return arrays


def _make_leaders(
    instrument: DopplerInstrument, data: InstrumentData, coordinates: Pd0Coordinates
) -> dict[str, AnyArray]:
    """Return the arrays of the leaders."""
    spec, mounting = instrument.sensor.spec, instrument.mounting
    angle = round(math.degrees(mounting.angle))
    system = JANUS | BEAM_ANGLE_BITS.get(angle, OTHER_ANGLE_BITS) | KILOHERTZ_600 | CONVEX | ATTACHED
    is_mapped = isinstance(spec, Adcp) and spec.bin_mapping is not BinMapping.NONE
    transformation = list(Pd0Coordinates).index(coordinates) << 3 | THREE_BEAM_SOLUTIONS
    if coordinates in (Pd0Coordinates.SHIP, Pd0Coordinates.EARTH):
        transformation |= TILTS_USED
    has_water = instrument.world.environment.water is not None
    sensors = DEPTH | HEADING | (TEMPERATURE if has_water else 0)
    cells = spec.cells if isinstance(spec, Adcp) else None
    settings: dict[str, float] = {
        "firmware_version": FIRMWARE[0],
        "firmware_revision": FIRMWARE[1],
        "system": system | (LOOKS_UP if mounting.looks_up else 0),
        "simulated": 1,
        "beams": rdi_frames.BEAMS,
        "cells": cells.count if cells else 1,
        "pings": spec.pings if isinstance(spec, Adcp) else 0,
        "cell_size": cells.size if cells else 1.0,
        "blank": cells.blanking if cells else 0.0,
        "first_cell": cells.first_distance if cells else 1.0,
        "transmit_length": cells.pulse_length if cells else 0.0,
        "lag_distance": cells.lag if cells else 0.0,
        "coordinates": transformation | (BIN_MAPPED if is_mapped else 0),
        "sensor_source": sensors,
        "sensors_available": sensors,
        "serial": 0,
        "beam_angle": math.radians(angle),
    }
    arrays = {name: np.array(value) for name, value in settings.items()} | {"ping_spacing": _split_ping_spacing(spec)}
    arrays |= {name: vars(data)[name] for name in ("sound_speed", "depth", "salinity", "pressure")}
    arrays["temperature"] = data.temperature if has_water else np.array(273.15)
    return arrays


def _split_ping_spacing(spec: object) -> AnyArray:
    """Return minutes, seconds and hundredths (3,) between the pings of a profile; 0 for simultaneous pings."""
    spacing = 0.0
    if isinstance(spec, Adcp) and spec.pings > 1:
        spacing = (spec.duration - spec.processing_time) / spec.pings
    hundredths = min(max(round(spacing * 100.0), 0), MAX_PING_SPACING)
    return np.array((hundredths // 6000, hundredths // 100 % 60, hundredths % 100))


def _make_bottom_track(
    instrument: DopplerInstrument, data: InstrumentData, coordinates: Pd0Coordinates
) -> dict[str, AnyArray]:
    """Return the arrays of the bottom track."""
    spec, mounting = instrument.sensor.spec, instrument.mounting
    beam_velocity = data.bottom_beam_velocity[:, mounting.order]
    error_velocity_limit = spec.error_velocity_limit if isinstance(spec, Dvl | Adcp) else math.inf
    max_range = spec.maximum_range if isinstance(spec, Dvl | Adcp) else 0.0
    if data.profile is None:
        percent_good = _compute_percent_good(beam_velocity, data.bottom_velocity, coordinates)
    elif coordinates is Pd0Coordinates.BEAM:
        percent_good = data.profile.bottom_good[:, mounting.order]
    else:
        percent_good = data.profile.bottom_solutions
    return {
        "bottom_pings": np.array(spec.bottom_pings if isinstance(spec, Adcp) else 1),
        "bottom_error_velocity_limit": np.array(error_velocity_limit),
        "bottom_range": data.beam_range[:, mounting.order] * math.cos(mounting.angle),
        "bottom_velocity": _make_track(instrument, data, coordinates, data.bottom_velocity, data.bottom_beam_velocity),
        "bottom_correlation": np.isfinite(beam_velocity).astype(np.float64),
        "bottom_percent_good": percent_good,
        "bottom_maximum_range": np.array(max_range * math.cos(mounting.angle)),
        "rest_0600": np.zeros(4, dtype=np.uint8),
    }


def _make_track(
    instrument: DopplerInstrument,
    data: InstrumentData,
    coordinates: Pd0Coordinates,
    vehicle_velocity: FloatArray,
    beam_velocity: FloatArray,
) -> FloatArray:
    """Return velocities (n, 4) in PD0 from those of the vehicle (n, 3), in its axes, and along the beams (n, k)."""
    mounting = instrument.mounting
    beams = beam_velocity[:, mounting.order]
    if coordinates is Pd0Coordinates.BEAM:
        return beams
    velocity = -to_coordinates(instrument, data, coordinates, vehicle_velocity)
    return np.concatenate((velocity, rdi_frames.solve_velocity(beams, mounting.angle)[:, 3:]), axis=1)


def to_coordinates(
    instrument: DopplerInstrument, data: InstrumentData, coordinates: Pd0Coordinates, velocity: FloatArray
) -> FloatArray:
    """Return velocities (n, 3) in vehicle axes in other coordinates."""
    if coordinates is Pd0Coordinates.INSTRUMENT:
        return rotate_vectors(velocity, instrument.mounting.rotation.T)
    heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
    if coordinates is Pd0Coordinates.SHIP:
        heading = np.zeros_like(heading)
    return rotate_vectors(velocity, rdi_frames.make_rotation(heading, pitch, roll))


def _compute_percent_good(
    beam_velocity: FloatArray, vehicle_velocity: FloatArray, coordinates: Pd0Coordinates
) -> FloatArray:
    """Return the shares (n, 4) of one ping.

    In beam coordinates: good beams. Else: three-beam solution, rejected, too few beams, four-beam solution.
    """
    is_good = np.isfinite(beam_velocity)
    if coordinates is Pd0Coordinates.BEAM:
        return is_good.astype(np.float64)
    is_solved = np.isfinite(vehicle_velocity).all(axis=1)
    has_four_beams = is_solved & is_good.all(axis=1)
    is_rejected = ~is_solved & (is_good.sum(axis=1) >= 3)
    outcomes = (is_solved & ~has_four_beams, is_rejected, ~is_solved & ~is_rejected, has_four_beams)
    return np.stack(outcomes, axis=1).astype(np.float64)


def _make_profile(
    instrument: DopplerInstrument, profile: ProfileData, coordinates: Pd0Coordinates
) -> dict[str, AnyArray]:
    """Return the arrays of the profile: velocities of the water relative to the instrument."""
    order = instrument.mounting.order
    if coordinates is Pd0Coordinates.BEAM:
        velocity, percent_good = profile.beam_velocity[..., order], profile.beam_good[..., order]
    else:
        # The error velocity of the sensor has the sign of its first beam, that of RDI the sign of beams 1 and 2.
        sign = 1.0 if 0 in order[:2] else -1.0
        error_velocity = sign * profile.error_velocity[..., None]
        velocity = np.concatenate((instrument.to_rdi_axes(profile.velocity), error_velocity), axis=2)
        percent_good = profile.solutions
    return {
        "velocity": velocity,
        "correlation": profile.correlation[..., order],
        "echo": profile.echo[..., order],
        "percent_good": percent_good,
    }


class Pd0Encoder:
    """Encodes PD0 ensembles, numbered from 1."""

    def __init__(self, instrument: DopplerInstrument, coordinates: str) -> None:
        """Select the coordinates. Raises `RecordingError` if PD0 does not support them or the beams."""
        self._instrument, self._coordinates = instrument, select_coordinates(instrument, coordinates)
        self._next = 1

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the ensembles of a block."""
        ensembles = pd0.encode(make_pd0_arrays(self._instrument, data, self._coordinates, self._next))
        self._next += len(data)
        return ensembles


class _DistanceIntegrator:
    """Integrates velocities: each acts over the time since the last good one."""

    def __init__(self) -> None:
        self._distance = np.zeros(3)
        self._last: int | None = None

    def advance(self, stamp: IntArray, velocity: Vectors) -> tuple[Vectors, FloatArray]:
        """Return the distances (n, 3) m and the ages (n,) s of the last good velocity, NaN before the first."""
        is_good: BoolArray = np.asarray(np.isfinite(velocity).all(axis=1))
        rows = np.flatnonzero(is_good)
        # Row of the last good velocity before each row, and at the end; -1 without one in this block.
        last_row = np.full(stamp.size + 1, -1)
        last_row[1:][rows] = rows
        last_row = np.maximum.accumulate(last_row)
        earliest = stamp[rows[0]] if self._last is None and rows.size else (self._last or 0)
        last = np.where(last_row >= 0, stamp[np.maximum(last_row, 0)], earliest)
        has_last = (last_row >= 0) | (self._last is not None)
        duration = np.where(is_good, (stamp - last[:-1]) * SECONDS_PER_NANOSECOND, 0.0)
        steps = np.where(is_good[:, None], velocity, 0.0) * duration[:, None]
        distance = np.cumsum(np.concatenate((self._distance[None], steps)), axis=0)
        self._distance = distance[-1]
        self._last = int(last[-1]) if has_last[-1] else None
        return distance[1:], np.where(has_last[1:], (stamp - last[1:]) * SECONDS_PER_NANOSECOND, math.nan)


class Pd6Encoder:
    """Encodes PD6 lines."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Start the distances at 0. Raises `RecordingError` for beams other than RDI's four."""
        self._instrument, self._mounting = instrument, instrument.mounting
        self._distances = {track: _DistanceIntegrator() for track in pd6.TRACKS}

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the lines of a block."""
        if not len(data):
            return b""
        heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
        arrays = {"heading": heading, "pitch": pitch, "roll": roll, "stamp": data.stamp}
        arrays |= {name: vars(data)[name] for name in ("salinity", "temperature", "depth", "sound_speed")}
        tracks = {
            "water": (data.water_velocity, data.water_beam_velocity),
            "bottom": (data.bottom_velocity, data.bottom_beam_velocity),
        }
        for track, (velocity, beam_velocity) in tracks.items():
            beams = rdi_frames.solve_velocity(beam_velocity[:, self._mounting.order], self._mounting.angle)
            ship, earth, own = (
                to_coordinates(self._instrument, data, coordinates, velocity)
                for coordinates in (Pd0Coordinates.SHIP, Pd0Coordinates.EARTH, Pd0Coordinates.INSTRUMENT)
            )
            distance, age = self._distances[track].advance(data.stamp, earth)
            arrays[f"{track}_instrument"] = np.concatenate((own, -beams[:, 3:]), axis=1)
            arrays |= {f"{track}_ship": ship, f"{track}_earth": earth}
            arrays |= {f"{track}_distance": distance, f"{track}_age": age}
            arrays[f"{track}_range"] = data.altitude if track == "bottom" else np.full(len(data), math.nan)
        return pd6.encode(arrays)


class WaterLinkedEncoder:
    """Encodes Water Linked's velocity reports."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Compute the axes. Raises `RecordingError` unless the beams are four, a quarter turn apart."""
        mounting = instrument.mounting
        across, along, face = mounting.rotation.T
        starboard = math.sin(mounting.azimuth) * (1.0 if mounting.looks_up else -1.0)
        forward = math.cos(mounting.azimuth) * along + starboard * across
        self._axes = np.stack((forward, np.cross(-face, forward), -face))
        self._order, self._cosine = mounting.order[[1, 3, 0, 2]], math.cos(mounting.angle)
        self._last: int | None = None

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the reports of a block."""
        if not len(data):
            return b""
        is_water = np.isnan(data.bottom_velocity[:, 0]) & np.isfinite(data.water_velocity[:, 0])
        velocity = np.where(is_water[:, None], data.water_velocity, data.bottom_velocity)
        beam_velocity = np.where(is_water[:, None], data.water_beam_velocity, data.bottom_beam_velocity)
        beam_range = data.beam_range[:, self._order]
        output_stamp = data.output_stamp
        first = output_stamp[0] if self._last is None else self._last
        previous = np.concatenate(([first], output_stamp[:-1]))
        self._last = int(output_stamp[-1])
        has_range = np.isfinite(beam_range)
        total = np.where(has_range, beam_range, 0.0).sum(axis=1) * self._cosine
        arrays = {
            "stamp": data.stamp,
            "transmission_stamp": output_stamp,
            "elapsed": (output_stamp - previous) * SECONDS_PER_NANOSECOND,
            "velocity": rotate_vectors(velocity, self._axes),
            "covariance": self._axes @ data.covariance @ self._axes.T,
            "altitude": np.where(has_range.any(axis=1), total / np.maximum(has_range.sum(axis=1), 1), math.nan),
            "transducer_velocity": beam_velocity[:, self._order],
            "transducer_distance": beam_range,
            "is_water": is_water,
        }
        return waterlinked.encode(arrays)


class NmeaEncoder:
    """Encodes NMEA 0183 sentences."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Store the instrument and its maximum range."""
        spec = instrument.sensor.spec
        self._instrument = instrument
        self._max_range = spec.maximum_range if isinstance(spec, Dvl | Adcp) else math.nan

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the sentences of a block."""
        ground, water = (
            to_coordinates(self._instrument, data, Pd0Coordinates.SHIP, velocity)[:, 1::-1]
            for velocity in (data.bottom_velocity, data.water_velocity)
        )
        max_range = np.full(len(data), self._max_range)
        return nmea.encode(
            {"altitude": data.altitude, "depth": data.depth, "max_range": max_range, "ground": ground, "water": water}
        )


class DeviceFormat(NamedTuple):
    """One format: its name, the specifications it supports, whether it has a choice of coordinates, its encoder."""

    name: str
    spec_types: tuple[type, ...]
    has_frames: bool
    make_encoder: Callable[[DopplerInstrument, str], BlockEncoder]


DOPPLER_SPECS = (Dvl, Adcp)

FORMATS: Mapping[str, DeviceFormat] = {
    ".pd0": DeviceFormat("PD0", DOPPLER_SPECS, has_frames=True, make_encoder=Pd0Encoder),
    ".pd6": DeviceFormat(
        "PD6", DOPPLER_SPECS, has_frames=False, make_encoder=lambda instrument, _: Pd6Encoder(instrument)
    ),
    ".wl.json": DeviceFormat(
        "Water Linked JSON", (Dvl,), has_frames=False, make_encoder=lambda instrument, _: WaterLinkedEncoder(instrument)
    ),
    ".nmea": DeviceFormat(
        "NMEA 0183", DOPPLER_SPECS, has_frames=False, make_encoder=lambda instrument, _: NmeaEncoder(instrument)
    ),
}
"""Suffix -> format."""
