"""Encoders of the device formats: data of one Doppler instrument to bytes, and the state between blocks.

PD0 ensembles are in beam, instrument, ship or earth coordinates. Velocities of PD0 are those of bottom and water
relative to the instrument: a vehicle that moves north over the bottom has a negative north velocity, one that sinks a
positive up velocity. In earth and ship coordinates, heading, pitch and roll are those of the vehicle. The heading
alignment is the angle of beam 3 to starboard of forward. In beam and instrument coordinates, which the reader rotates,
heading, pitch and roll are those of the instrument (forward along beam 3), and the alignment is 0.

The leaders are those of a 600 kHz Workhorse with firmware 51.40 and the flag of simulated data. Readers select the
layout by the instrument and its firmware. A range is the slant range times the cosine of the beam angle. Correlation
and amplitude are not simulated: correlation is 255 for a good beam, else 0; amplitude is 0. A DVL has no profile: its
leader declares one cell and no ping, because some readers fail without a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import RecordingError
from navsense.core.typing import BoolArray, FloatArray, IntArray, Vectors
from navsense.devices import nmea, pd0, pd6, rdi_frames, waterlinked
from navsense.devices.instrument_data import DopplerInstrument, InstrumentData, ProfileData, rotate_vectors
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import MIN_BEAMS, BinMapping, CoordinateSystem
from navsense.sensors.dvl import Dvl

DeviceEncoder = Callable[[InstrumentData], bytes]

SECONDS_PER_NANOSECOND = 1e-9

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


def _select_coordinates(instrument: DopplerInstrument, requested: str) -> CoordinateSystem:
    """Return the requested coordinates of an instrument's ensembles. Default: earth for a DVL, its own for an ADCP.

    Raises `RecordingError` if the instrument does not support them.
    """
    spec, name = instrument.spec, instrument.sensor.name
    default = spec.coordinates if isinstance(spec, Adcp) else CoordinateSystem.EARTH
    coordinates = CoordinateSystem(requested) if requested else default
    if isinstance(spec, Adcp) and coordinates not in (default, CoordinateSystem.BEAM):
        allowed = f"must be {default} or beam: the profile of sensor {name!r} is in {default} coordinates"
        remedy = "change <coordinates> in the world file"
        raise RecordingError("coordinates", requested, allowed=allowed, remedy=remedy)
    degrees = math.degrees(instrument.rdi_beams.angle)
    if coordinates is CoordinateSystem.BEAM and abs(degrees - round(degrees)) > 0.01:
        allowed = "must be a whole number for beam coordinates, because PD0 holds whole degrees"
        remedy = "use instrument, ship or earth coordinates"
        raise RecordingError(f"beam angle of sensor {name!r} (degrees)", degrees, allowed=allowed, remedy=remedy)
    return coordinates


def round_heading(heading: FloatArray) -> FloatArray:
    """Return headings (n,) rad rounded to centidegrees in [0, 360) degrees."""
    return np.asarray(np.rint(heading / pd0.CENTIDEGREE) % 36000.0 * pd0.CENTIDEGREE)


def to_coordinates(
    instrument: DopplerInstrument, data: InstrumentData, coordinates: CoordinateSystem, velocity: FloatArray
) -> FloatArray:
    """Return velocities (n, 3), given in vehicle axes, in coordinates."""
    if coordinates is CoordinateSystem.INSTRUMENT:
        return rotate_vectors(velocity, instrument.rdi_beams.rotation.T)
    heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
    if coordinates is CoordinateSystem.SHIP:
        heading = np.zeros_like(heading)
    return rotate_vectors(velocity, rdi_frames.make_rotation(heading, pitch, roll))


class Pd0Encoder:
    """Encodes PD0 ensembles, numbered from 1."""

    def __init__(self, instrument: DopplerInstrument, coordinates: str) -> None:
        """Select the coordinates. Raises `RecordingError` if PD0 does not support them or the beams."""
        self._coordinates = _select_coordinates(instrument, coordinates)
        self._instrument, self._spec, self._rdi_beams = instrument, instrument.spec, instrument.rdi_beams
        self._next_number = 1

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the ensembles of a block."""
        rdi_beams, spec = self._rdi_beams, self._spec
        # The reader rotates beam and instrument coordinates, by the attitude of the instrument.
        has_instrument_attitude = self._coordinates in (CoordinateSystem.BEAM, CoordinateSystem.INSTRUMENT)
        attitude = data.attitude @ rdi_beams.rotation if has_instrument_attitude else data.attitude
        looks_up = rdi_beams.looks_up and has_instrument_attitude
        heading, pitch, roll = rdi_frames.compute_angles(attitude, looks_up=looks_up)
        arrays = self._make_leaders(data)
        arrays |= {"ensemble_number": np.arange(self._next_number, self._next_number + len(data))}
        # The clock of an ensemble holds the time of validity, not the start of the ensemble.
        arrays |= {**pd0.encode_rtc(data.stamp), "heading": round_heading(heading), "pitch": pitch, "roll": roll}
        arrays["heading_alignment"] = 0.0 if has_instrument_attitude else rdi_beams.azimuth
        arrays |= self._make_bottom_track(data)
        if isinstance(spec, Dvl) and spec.layer is not None:
            beam_velocity = data.water_beam_velocity[:, rdi_beams.order]
            arrays |= {
                "layer_near": spec.layer.near,
                "layer_far": spec.layer.far,
                "layer_min_size": spec.layer.minimum_size,
                "layer_velocity": self._make_track(data, data.velocity_through_water, beam_velocity),
                "layer_correlation": np.isfinite(beam_velocity).astype(np.float64),
                "layer_percent_good": self._compute_percent_good(beam_velocity, data.velocity_through_water),
            }
        if isinstance(spec, Adcp) and data.profile is not None:
            arrays |= self._make_profile(spec, data.profile)
        ensembles = pd0.encode(arrays)
        self._next_number += len(data)
        return ensembles

    def _make_leaders(self, data: InstrumentData) -> dict[str, ArrayLike]:
        """Return the arrays of the leaders. Fields without an array are 0."""
        spec, angle = self._spec, round(math.degrees(self._rdi_beams.angle))
        system = JANUS | BEAM_ANGLE_BITS.get(angle, OTHER_ANGLE_BITS) | KILOHERTZ_600 | CONVEX | ATTACHED
        transformation = list(CoordinateSystem).index(self._coordinates) << 3 | THREE_BEAM_SOLUTIONS
        if self._coordinates in (CoordinateSystem.SHIP, CoordinateSystem.EARTH):
            transformation |= TILTS_USED
        if isinstance(spec, Adcp) and spec.bin_mapping is not BinMapping.NONE:
            transformation |= BIN_MAPPED
        has_water = self._instrument.world.environment.water is not None
        sensors = DEPTH | HEADING | (TEMPERATURE if has_water else 0)
        arrays: dict[str, ArrayLike] = {
            "firmware_version": FIRMWARE[0],
            "firmware_revision": FIRMWARE[1],
            "system": system | (LOOKS_UP if self._rdi_beams.looks_up else 0),
            "simulated": 1,
            "beams": rdi_frames.BEAMS,
            "coordinates": transformation,
            "sensor_source": sensors,
            "sensors_available": sensors,
            "beam_angle": math.radians(angle),
            "cells": 1,
            "cell_size": 1.0,
            "first_cell": 1.0,
        }
        if isinstance(spec, Adcp):
            cells = spec.cells
            arrays |= {
                "cells": cells.count,
                "pings": spec.pings,
                "cell_size": cells.size,
                "blank": cells.blanking,
                "first_cell": cells.first_distance,
                "transmit_length": cells.pulse_length,
                "lag_distance": cells.lag,
                "ping_spacing": _split_ping_spacing(spec),
            }
        names = ("sound_speed", "depth", "salinity", "temperature", "pressure")
        return arrays | {name: vars(data)[name] for name in names}

    def _make_bottom_track(self, data: InstrumentData) -> dict[str, ArrayLike]:
        """Return the arrays of the bottom track."""
        spec, order, cosine = self._spec, self._rdi_beams.order, math.cos(self._rdi_beams.angle)
        beam_velocity = data.bottom_beam_velocity[:, order]
        if data.profile is None:
            percent_good = self._compute_percent_good(beam_velocity, data.velocity_over_bottom)
        elif self._coordinates is CoordinateSystem.BEAM:
            percent_good = data.profile.bottom_good[:, order]
        else:
            percent_good = data.profile.bottom_solutions
        return {
            "bottom_pings": spec.bottom_pings if isinstance(spec, Adcp) else 1,
            "bottom_error_velocity_limit": spec.error_velocity_limit,
            "bottom_range": data.beam_range[:, order] * cosine,
            "bottom_velocity": self._make_track(data, data.velocity_over_bottom, beam_velocity),
            "bottom_correlation": np.isfinite(beam_velocity).astype(np.float64),
            "bottom_percent_good": percent_good,
            "bottom_maximum_range": spec.maximum_range * cosine,
            "rest_0600": np.zeros(4, dtype=np.uint8),  # spare bytes up to the 85 bytes of a Workhorse
        }

    def _make_track(self, data: InstrumentData, velocity: FloatArray, beam_velocity: FloatArray) -> FloatArray:
        """Return velocities (n, 4) in PD0 from those of the sensor (n, 3), in vehicle axes, and along beams 1 to 4.

        PD0 has the velocity of the bottom relative to the instrument, the opposite of the sensor's. A beam velocity
        has the sign of PD0 already: positive if sensor and bottom approach. So has the error velocity that is computed
        from beam velocities. A velocity that is not known has no error velocity.
        """
        if self._coordinates is CoordinateSystem.BEAM:
            return beam_velocity
        bottom_velocity = -to_coordinates(self._instrument, data, self._coordinates, velocity)
        error_velocity = rdi_frames.solve_rdi_velocity(beam_velocity, self._rdi_beams.angle)[:, 3]
        error_velocity[np.isnan(velocity[:, 0])] = math.nan
        return np.concatenate((bottom_velocity, error_velocity[:, None]), axis=1)

    def _compute_percent_good(self, beam_velocity: FloatArray, vehicle_velocity: FloatArray) -> FloatArray:
        """Return the shares (n, 4) of one ping of a track.

        In beam coordinates: good beams. Else the outcomes that the manual defines for the profile, type 0400
        (Pathfinder DVL Guide, tables 32 to 40): three-beam solution, rejected by the error velocity, too few beams,
        four-beam solution. All are 0 for a velocity that the sensor did not report although it had enough beams.

        For the bottom track, type 0600, the manual has one share per beam. A real Workhorse has the outcomes there too
        (`tests/oracles/rdi/bottom_track.csv`).
        """
        is_good = np.isfinite(beam_velocity)
        if self._coordinates is CoordinateSystem.BEAM:
            return is_good.astype(np.float64)
        count, is_solved = is_good.sum(axis=1), np.isfinite(vehicle_velocity).all(axis=1)
        error_velocity = np.abs(rdi_frames.solve_rdi_velocity(beam_velocity, self._rdi_beams.angle)[:, 3])
        outcomes = (
            is_solved & (count < rdi_frames.BEAMS),
            ~is_solved & (error_velocity > self._spec.error_velocity_limit),
            ~is_solved & (count < MIN_BEAMS),
            is_solved & (count == rdi_frames.BEAMS),
        )
        return np.stack(outcomes, axis=1).astype(np.float64)

    def _make_profile(self, spec: Adcp, profile: ProfileData) -> dict[str, ArrayLike]:
        """Return the arrays of the profile: velocities of the water relative to the instrument."""
        order = self._rdi_beams.order
        if self._coordinates is CoordinateSystem.BEAM:
            velocity, percent_good = profile.beam_velocity[..., order], profile.beam_good[..., order]
        else:
            # The error velocity of the sensor has the sign of its first beam, that of RDI the sign of beams 1 and 2.
            sign = 1.0 if 0 in order[:2] else -1.0
            error_velocity = sign * profile.error_velocity[..., None]
            velocity = np.concatenate((self._instrument.to_rdi_axes(spec, profile.velocity), error_velocity), axis=2)
            percent_good = profile.solutions
        return {
            "velocity": velocity,
            "correlation": profile.correlation[..., order],
            "echo": profile.echo[..., order],
            "percent_good": percent_good,
        }


def _split_ping_spacing(spec: Adcp) -> tuple[int, int, int]:
    """Return minutes, seconds and hundredths between the pings of a profile; 0 for simultaneous pings."""
    spacing = (spec.duration - spec.processing_time) / spec.pings if spec.pings > 1 else 0.0
    hundredths = min(max(round(spacing * 100.0), 0), MAX_PING_SPACING)
    return hundredths // 6000, hundredths // 100 % 60, hundredths % 100


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
        self._instrument, self._rdi_beams = instrument, instrument.rdi_beams
        self._distances = {track: _DistanceIntegrator() for track in pd6.TRACKS}

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the lines of a block."""
        if not len(data):
            return b""
        heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
        arrays = {"heading": heading, "pitch": pitch, "roll": roll, "stamp": data.stamp}
        arrays |= {name: vars(data)[name] for name in ("salinity", "temperature", "depth", "sound_speed")}
        tracks = {
            "water": (data.velocity_through_water, data.water_beam_velocity),
            "bottom": (data.velocity_over_bottom, data.bottom_beam_velocity),
        }
        for track, (velocity, beam_velocity) in tracks.items():
            solution = rdi_frames.solve_rdi_velocity(beam_velocity[:, self._rdi_beams.order], self._rdi_beams.angle)
            instrument, ship, earth = (
                to_coordinates(self._instrument, data, coordinates, velocity)
                for coordinates in (CoordinateSystem.INSTRUMENT, CoordinateSystem.SHIP, CoordinateSystem.EARTH)
            )
            distance, age = self._distances[track].advance(data.stamp, earth)
            error_velocity = np.where(np.isnan(velocity[:, :1]), math.nan, -solution[:, 3:])
            arrays[f"{track}_instrument"] = np.concatenate((instrument, error_velocity), axis=1)
            arrays |= {f"{track}_ship": ship, f"{track}_earth": earth}
            arrays |= {f"{track}_distance": distance, f"{track}_age": age}
            arrays[f"{track}_range"] = data.altitude if track == "bottom" else np.full(len(data), math.nan)
        return pd6.encode(arrays)


class WaterLinkedEncoder:
    """Encodes Water Linked's velocity reports."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Compute the axes. Raises `RecordingError` unless the beams are four, a quarter turn apart."""
        rdi_beams = instrument.rdi_beams
        x_axis, y_axis, z_axis = rdi_beams.rotation.T
        # Beam 3 is along y, at its azimuth from forward. This sine is the part of forward along x.
        x_share = math.sin(rdi_beams.azimuth) * (1.0 if rdi_beams.looks_up else -1.0)
        forward = math.cos(rdi_beams.azimuth) * y_axis + x_share * x_axis
        # Water Linked's z is along the beams, RDI's against them.
        self._axes = np.stack((forward, np.cross(-z_axis, forward), -z_axis))
        self._order, self._cosine = rdi_beams.order[[1, 3, 0, 2]], math.cos(rdi_beams.angle)
        self._last: int | None = None

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the reports of a block."""
        if not len(data):
            return b""
        is_water = np.isnan(data.velocity_over_bottom[:, 0]) & np.isfinite(data.velocity_through_water[:, 0])
        velocity = np.where(is_water[:, None], data.velocity_through_water, data.velocity_over_bottom)
        beam_velocity = np.where(is_water[:, None], data.water_beam_velocity, data.bottom_beam_velocity)
        beam_range = data.beam_range[:, self._order]
        arrival_stamp = data.arrival_stamp
        first = arrival_stamp[0] if self._last is None else self._last
        previous = np.concatenate(([first], arrival_stamp[:-1]))
        self._last = int(arrival_stamp[-1])
        has_range = np.isfinite(beam_range)
        total = np.where(has_range, beam_range, 0.0).sum(axis=1) * self._cosine
        arrays = {
            "stamp": data.stamp,
            # Water Linked's `time_of_transmission` is that of the report, not that of the acoustic pulse.
            "transmission_stamp": arrival_stamp,
            "elapsed": (arrival_stamp - previous) * SECONDS_PER_NANOSECOND,
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
        """Store the instrument."""
        self._instrument = instrument

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the sentences of a block."""
        ground, water = (
            to_coordinates(self._instrument, data, CoordinateSystem.SHIP, velocity)[:, 1::-1]
            for velocity in (data.velocity_over_bottom, data.velocity_through_water)
        )
        max_range = np.full(len(data), self._instrument.spec.maximum_range)
        return nmea.encode(
            {"altitude": data.altitude, "depth": data.depth, "max_range": max_range, "ground": ground, "water": water}
        )


class DeviceFormat(NamedTuple):
    """One format: its name, the specifications it supports, its encoder, whether it has a choice of coordinates."""

    name: str
    spec_types: tuple[type, ...]
    encoder: Callable[..., DeviceEncoder]
    has_coordinates: bool = False

    def make_encoder(self, instrument: DopplerInstrument, coordinates: str) -> DeviceEncoder:
        """Return the encoder of an instrument; "" for the default coordinates."""
        return self.encoder(instrument, coordinates) if self.has_coordinates else self.encoder(instrument)


FORMATS: Mapping[str, DeviceFormat] = {
    ".pd0": DeviceFormat("PD0", (Dvl, Adcp), Pd0Encoder, has_coordinates=True),
    ".pd6": DeviceFormat("PD6", (Dvl, Adcp), Pd6Encoder),
    ".wl.json": DeviceFormat("Water Linked JSON", (Dvl,), WaterLinkedEncoder),
    ".nmea": DeviceFormat("NMEA 0183", (Dvl, Adcp), NmeaEncoder),
}
"""Suffix -> format."""
