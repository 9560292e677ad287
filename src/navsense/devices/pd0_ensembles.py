"""What a Doppler instrument told as PD0 ensembles, in beam, instrument, ship or earth coordinates.

Velocities of PD0 are those of bottom and water past the instrument: of a vehicle that goes north over the bottom north
is negative, of one that sinks up is positive. In earth and ship coordinates heading, pitch and roll are the
vehicle's, and the heading alignment says how far beam 3 stands to starboard of forward; in beam and instrument
coordinates, which a reader has yet to turn, they are the instrument's own (forward along beam 3), the alignment 0.

Leaders say what a 600 kHz Workhorse of firmware 51.40 would, by which readers choose the layout, with the mark of
simulated data. A range is slant times the cosine of the beams' angle. Of what the simulation has not, correlation is
255 where a beam is good and 0 where it is not, amplitude 0. Of a DVL, which has no profile, the leader says one cell of
no ping: some readers fail where it says none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from navsense.devices import pd0, rdi_frames
from navsense.devices.measurement import DopplerInstrument, InstrumentData, ProfileData
from navsense.errors import RecordingError
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import BinMapping
from navsense.sensors.dvl import Dvl
from navsense.typing import AnyArray, FloatArray


class Pd0Coordinates(StrEnum):
    """Coordinates of velocities in PD0, in the order of their numbers."""

    BEAM = "beam"
    INSTRUMENT = "instrument"
    SHIP = "ship"
    EARTH = "earth"


TILTS_USED, THREE_BEAM_SOLUTIONS, BIN_MAPPED = 4, 2, 1
"""Bits of the coordinate transformation: tilts are used, three beams may do, cells are mapped."""

KILOHERTZ_600, CONVEX, ATTACHED, LOOKS_UP, JANUS = 0x03, 0x08, 0x40, 0x80, 0x4000
"""Bits of the system configuration."""

BEAM_ANGLE_BITS: Mapping[int, int] = {15: 0x000, 20: 0x100, 30: 0x200}
"""Bits of the system configuration by the beams' angle (degrees)."""

OTHER_ANGLE_BITS = 0x300

FIRMWARE = (51, 40)

MAX_PING_SPACING = 256 * 6000 - 1
"""Hundredths of a second that pings can be apart: minutes have one byte."""

DEPTH, HEADING, TEMPERATURE = 0x20, 0x1C, 0x01
"""Bits of the sensors: a depth cell, compass and inclinometers, a thermometer."""


def select_coordinates(instrument: DopplerInstrument, requested: str) -> Pd0Coordinates:
    """Return the coordinates of an instrument's ensembles: those asked for, else a DVL's are earth, an ADCP's its own.

    Raises `RecordingError` where they cannot be told.
    """
    spec, name = instrument.sensor.spec, instrument.sensor.name
    if isinstance(spec, Adcp):
        own = Pd0Coordinates(spec.coordinates)
        if requested and Pd0Coordinates(requested) not in (own, Pd0Coordinates.BEAM):
            allowed = f"must be {own} or beam: sensor {name!r} tells its profile in {own} coordinates"
            raise RecordingError("coordinates", requested, allowed=allowed, remedy="choose others in the world's file")
        frame = Pd0Coordinates(requested) if requested else own
    else:
        frame = Pd0Coordinates(requested) if requested else Pd0Coordinates.EARTH
    degrees = math.degrees(instrument.mounting.angle)
    if frame is Pd0Coordinates.BEAM and abs(degrees - round(degrees)) > 0.01:
        allowed = "PD0 holds whole degrees, by which beam coordinates are turned"
        remedy = "choose instrument, ship or earth coordinates"
        raise RecordingError(
            f"angle of the beams of sensor {name!r} (degrees)", degrees, allowed=allowed, remedy=remedy
        )
    return frame


def round_heading(heading: FloatArray) -> FloatArray:
    """Return headings (n,) rad in whole counts from 0 to one below a turn: north is 0 from either side."""
    return np.asarray(np.rint(heading / pd0.CENTIDEGREE) % 36000.0 * pd0.CENTIDEGREE)


def make_arrays(
    instrument: DopplerInstrument, data: InstrumentData, frame: Pd0Coordinates, first: int
) -> dict[str, AnyArray]:
    """Return the arrays of ensembles, numbered from `first` on."""
    mounting, spec = instrument.mounting, instrument.sensor.spec
    is_own = frame in (Pd0Coordinates.BEAM, Pd0Coordinates.INSTRUMENT)
    attitude = data.attitude @ mounting.rotation if is_own else data.attitude
    heading, pitch, roll = rdi_frames.compute_angles(attitude, looks_up=mounting.looks_up and is_own)
    arrays = _make_leaders(instrument, data, frame)
    arrays |= {"number": np.arange(first, first + len(data)), **pd0.encode_rtc(data.stamp)}
    arrays |= {"heading": round_heading(heading), "pitch": pitch, "roll": roll}
    arrays["heading_alignment"] = np.array(0.0 if is_own else mounting.azimuth)
    arrays |= _make_bottom_track(instrument, data, frame)
    if isinstance(spec, Dvl) and spec.layer is not None:
        layer = spec.layer
        arrays |= {"layer_near": np.array(layer.near), "layer_far": np.array(layer.far)}
        arrays["layer_least_size"] = np.array(layer.minimum_size)
        arrays["layer_velocity"] = _make_track(instrument, data, frame, data.water, data.water_along)
        arrays["layer_correlation"] = np.isfinite(data.water_along[:, mounting.order]).astype(np.float64)
        arrays["layer_percent_good"] = _compute_percent_good(data.water_along[:, mounting.order], data.water, frame)
    if data.profile is not None:
        arrays |= _make_profile(instrument, data.profile, frame)
    return arrays


def _make_leaders(instrument: DopplerInstrument, data: InstrumentData, frame: Pd0Coordinates) -> dict[str, AnyArray]:
    """Return what the leaders say of the instrument and its surroundings."""
    spec, mounting = instrument.sensor.spec, instrument.mounting
    angle = round(math.degrees(mounting.angle))
    system = (
        JANUS
        | BEAM_ANGLE_BITS.get(angle, OTHER_ANGLE_BITS)
        | KILOHERTZ_600
        | CONVEX
        | ATTACHED
        | (LOOKS_UP if mounting.looks_up else 0)
    )
    is_mapped = isinstance(spec, Adcp) and spec.bin_mapping is not BinMapping.NONE
    tilts = TILTS_USED if frame in (Pd0Coordinates.SHIP, Pd0Coordinates.EARTH) else 0
    coordinates = (
        list(Pd0Coordinates).index(frame) << 3 | tilts | THREE_BEAM_SOLUTIONS | (BIN_MAPPED if is_mapped else 0)
    )
    warm = instrument.world.environment.water is not None
    sensors = DEPTH | HEADING | (TEMPERATURE if warm else 0)
    cells = spec.cells if isinstance(spec, Adcp) else None
    settings: dict[str, float] = {
        "firmware_version": FIRMWARE[0],
        "firmware_revision": FIRMWARE[1],
        "system": system,
        "simulated": 1,
        "beams": rdi_frames.BEAMS,
        "cells": cells.count if cells else 1,
        "pings": spec.pings if isinstance(spec, Adcp) else 0,
        "cell_size": cells.size if cells else 1.0,
        "blank": cells.blanking if cells else 0.0,
        "first_cell": cells.first_distance if cells else 1.0,
        "transmit_length": cells.pulse_length if cells else 0.0,
        "lag_distance": cells.lag if cells else 0.0,
        "coordinates": coordinates,
        "sensor_source": sensors,
        "sensors_available": sensors,
        "serial": 0,
        "beam_angle": math.radians(angle),
    }
    arrays = {name: np.array(value) for name, value in settings.items()} | {"ping_spacing": _split_ping_spacing(spec)}
    around = {name: vars(data)[name] for name in ("sound_speed", "depth", "salinity", "pressure")}
    around["temperature"] = data.temperature if warm else np.array(273.15)
    return {**arrays, **around}


def _split_ping_spacing(spec: object) -> AnyArray:
    """Return minutes, seconds and hundredths (3,) from one ping of a profile to the next, 0 for one, or all at once."""
    length = 0.0
    if isinstance(spec, Adcp) and spec.pings > 1:
        length = (spec.duration - spec.processing_time) / spec.pings
    hundredths = min(max(round(length * 100.0), 0), MAX_PING_SPACING)
    return np.array((hundredths // 6000, hundredths // 100 % 60, hundredths % 100))


def _make_bottom_track(
    instrument: DopplerInstrument, data: InstrumentData, frame: Pd0Coordinates
) -> dict[str, AnyArray]:
    """Return the bottom track."""
    spec, mounting = instrument.sensor.spec, instrument.mounting
    along, slant = data.bottom_along[:, mounting.order], data.range[:, mounting.order]
    limit = spec.error_velocity_limit if isinstance(spec, Dvl | Adcp) else math.inf
    reach = spec.maximum_range if isinstance(spec, Dvl | Adcp) else 0.0
    if data.profile is None:
        good = _compute_percent_good(along, data.bottom, frame)
    else:
        good = (
            data.profile.bottom_good[:, mounting.order]
            if frame is Pd0Coordinates.BEAM
            else data.profile.bottom_solutions
        )
    return {
        "bottom_pings": np.array(spec.bottom_pings if isinstance(spec, Adcp) else 1),
        "bottom_error_velocity_limit": np.array(limit),
        "bottom_range": slant * math.cos(mounting.angle),
        "bottom_velocity": _make_track(instrument, data, frame, data.bottom, data.bottom_along),
        "bottom_correlation": np.isfinite(along).astype(np.float64),
        "bottom_percent_good": good,
        "bottom_maximum_range": np.array(reach * math.cos(mounting.angle)),
        "rest_0600": np.zeros(4, dtype=np.uint8),
    }


def _make_track(
    instrument: DopplerInstrument,
    data: InstrumentData,
    frame: Pd0Coordinates,
    vehicle_velocity: FloatArray,
    beam_velocity: FloatArray,
) -> FloatArray:
    """Return velocities (n, 4) of PD0 for those of the vehicle (n, 3), in its axes, and along its beams (n, k)."""
    mounting = instrument.mounting
    beams = beam_velocity[:, mounting.order]
    if frame is Pd0Coordinates.BEAM:
        return beams
    passing = -to_coordinates(instrument, data, frame, vehicle_velocity)
    return np.concatenate((passing, rdi_frames.solve_velocity(beams, mounting.angle)[:, 3:]), axis=1)


def to_coordinates(
    instrument: DopplerInstrument, data: InstrumentData, frame: Pd0Coordinates, velocity: FloatArray
) -> FloatArray:
    """Return velocities (n, 3) in vehicle axes in other coordinates."""
    if frame is Pd0Coordinates.INSTRUMENT:
        found: FloatArray = (instrument.mounting.rotation.T @ velocity[..., None])[..., 0]
        return found
    heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
    turn = rdi_frames.make_rotation(heading if frame is Pd0Coordinates.EARTH else np.zeros_like(heading), pitch, roll)
    return np.asarray((turn @ velocity[..., None])[..., 0])


def _compute_percent_good(beam_velocity: FloatArray, vehicle_velocity: FloatArray, frame: Pd0Coordinates) -> FloatArray:
    """Return the four shares of one ping: of each beam, or solved by three, rejected, too few beams, solved by four."""
    good = np.isfinite(beam_velocity)
    if frame is Pd0Coordinates.BEAM:
        return good.astype(np.float64)
    is_told = np.isfinite(vehicle_velocity).all(axis=1)
    whole = is_told & good.all(axis=1)
    rejected = ~is_told & (good.sum(axis=1) >= 3)
    kinds = (is_told & ~whole, rejected, ~is_told & ~rejected, whole)
    return np.stack(kinds, axis=1).astype(np.float64)


def _make_profile(instrument: DopplerInstrument, profile: ProfileData, frame: Pd0Coordinates) -> dict[str, AnyArray]:
    """Return the profile: velocities of the water past the instrument."""
    mounting = instrument.mounting
    order = mounting.order
    if frame is Pd0Coordinates.BEAM:
        velocity, good = profile.beam_velocity[..., order], profile.beam_good[..., order]
    else:
        # The sign of a residual is that of the sensor's first beam; RDI's is that of beams 1 and 2.
        sign = 1.0 if 0 in order[:2] else -1.0
        velocity = np.concatenate(
            (instrument.to_rdi_axes(profile.velocity), sign * profile.error_velocity[..., None]), axis=2
        )
        good = profile.solutions
    return {
        "velocity": velocity,
        "correlation": profile.correlation[..., order],
        "echo": profile.echo[..., order],
        "percent_good": good,
    }
