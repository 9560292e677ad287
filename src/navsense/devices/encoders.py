"""What one Doppler instrument sends in each format: blocks of what it told in, bytes out, and what lasts between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from navsense.devices import nmea, pd0, pd6, rdi_frames, waterlinked
from navsense.devices.measurement import DopplerInstrument, InstrumentData
from navsense.devices.pd0_ensembles import Pd0Coordinates, make_arrays, select_coordinates, to_coordinates
from navsense.sensors.adcp import Adcp
from navsense.sensors.dvl import Dvl
from navsense.typing import BoolArray, FloatArray, IntArray, Vectors

BlockEncoder = Callable[[InstrumentData], bytes]

SECONDS_PER_NANOSECOND = 1e-9
"""s of a nanosecond."""


class Pd0Encoder:
    """Ensembles of PD0, numbered from 1."""

    def __init__(self, instrument: DopplerInstrument, frame: str) -> None:
        """Choose the coordinates. Raises `RecordingError` where these or the beams cannot be told."""
        self._instrument, self._frame = instrument, select_coordinates(instrument, frame)
        self._next = 1

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the ensembles of a block."""
        made = pd0.encode(make_arrays(self._instrument, data, self._frame, self._next))
        self._next += len(data)
        return made


class _DistanceIntegrator:
    """The way that velocities make: the sum of each times the time since the good one before it."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._distance = np.zeros(3)
        self._last: int | None = None

    def advance(self, stamp: IntArray, velocity: Vectors) -> tuple[Vectors, FloatArray]:
        """Return the way (n, 3) m so far and the age (n,) s of the last good velocity, NaN before the first."""
        good: BoolArray = np.asarray(np.isfinite(velocity).all(axis=1))
        rows = np.flatnonzero(good)
        before = np.full(stamp.size + 1, -1)
        before[1:][rows] = rows
        last = np.maximum.accumulate(before)
        earliest = stamp[rows[0]] if self._last is None and rows.size else (self._last or 0)
        since = np.where(last >= 0, stamp[np.maximum(last, 0)], earliest)
        known = (last >= 0) | (self._last is not None)
        passed = np.where(good, (stamp - since[:-1]) * SECONDS_PER_NANOSECOND, 0.0)
        steps = np.where(good[:, None], velocity, 0.0) * passed[:, None]
        way = np.cumsum(np.concatenate((self._distance[None], steps)), axis=0)
        self._distance = way[-1]
        self._last = int(since[-1]) if known[-1] else None
        return way[1:], np.where(known[1:], (stamp - since[1:]) * SECONDS_PER_NANOSECOND, math.nan)


class Pd6Encoder:
    """Lines of PD6."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Begin the ways. Raises `RecordingError` where the beams are not RDI's four."""
        self._instrument, self._mounting = instrument, instrument.mounting
        self._distances = {track: _DistanceIntegrator() for track in pd6.TRACKS}

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the lines of a block."""
        if not len(data):
            return b""
        heading, pitch, roll = rdi_frames.compute_angles(data.attitude)
        arrays = {"heading": heading, "pitch": pitch, "roll": roll, "stamp": data.stamp}
        arrays |= {name: vars(data)[name] for name in ("salinity", "temperature", "depth", "sound_speed")}
        tracks = {"water": (data.water, data.water_along), "bottom": (data.bottom, data.bottom_along)}
        for track, (velocity, along) in tracks.items():
            beams = rdi_frames.solve_velocity(along[:, self._mounting.order], self._mounting.angle)
            ship, earth, own = (
                to_coordinates(self._instrument, data, frame, velocity)
                for frame in (Pd0Coordinates.SHIP, Pd0Coordinates.EARTH, Pd0Coordinates.INSTRUMENT)
            )
            way, age = self._distances[track].advance(data.stamp, earth)
            arrays[f"{track}_instrument"] = np.concatenate((own, -beams[:, 3:]), axis=1)
            arrays |= {f"{track}_ship": ship, f"{track}_earth": earth, f"{track}_way": way, f"{track}_age": age}
            arrays[f"{track}_range"] = data.altitude if track == "bottom" else np.full(len(data), math.nan)
        return pd6.encode(arrays)


class WaterLinkedEncoder:
    """Reports of velocity of Water Linked."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Lay the axes. Raises `RecordingError` where the beams are not four, a quarter turn apart."""
        mounting = instrument.mounting
        across, along, face = mounting.rotation.T
        side = math.sin(mounting.azimuth) * (1.0 if mounting.looks_up else -1.0)
        ahead = math.cos(mounting.azimuth) * along + side * across
        self._axes = np.stack((ahead, np.cross(-face, ahead), -face))
        self._order, self._cosine = mounting.order[[1, 3, 0, 2]], math.cos(mounting.angle)
        self._last: int | None = None

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the reports of a block."""
        if not len(data):
            return b""
        is_water = np.isnan(data.bottom[:, 0]) & np.isfinite(data.water[:, 0])
        velocity = np.where(is_water[:, None], data.water, data.bottom)
        along = np.where(is_water[:, None], data.water_along, data.bottom_along)[:, self._order]
        slant = data.range[:, self._order]
        before = np.concatenate(
            ([data.transmission_stamp[0] if self._last is None else self._last], data.transmission_stamp[:-1])
        )
        self._last = int(data.transmission_stamp[-1])
        known = np.isfinite(slant)
        total = np.where(known, slant, 0.0).sum(axis=1) * self._cosine
        arrays = {
            "stamp": data.stamp,
            "sent": data.transmission_stamp,
            "elapsed": (data.transmission_stamp - before) * SECONDS_PER_NANOSECOND,
            "velocity": (self._axes @ velocity[..., None])[..., 0],
            "covariance": self._axes @ data.covariance @ self._axes.T,
            "altitude": np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), math.nan),
            "transducer_velocity": along,
            "transducer_distance": slant,
            "is_water": is_water,
        }
        return waterlinked.encode(arrays)


class NmeaEncoder:
    """Sentences of NMEA 0183."""

    def __init__(self, instrument: DopplerInstrument) -> None:
        """Note how far it hears."""
        spec = instrument.sensor.spec
        self._instrument = instrument
        self._max_range = spec.maximum_range if isinstance(spec, Dvl | Adcp) else math.nan

    def __call__(self, data: InstrumentData) -> bytes:
        """Return the sentences of a block."""
        ground, water = (
            to_coordinates(self._instrument, data, Pd0Coordinates.SHIP, velocity)[:, 1::-1]
            for velocity in (data.bottom, data.water)
        )
        reach = np.full(len(data), self._max_range)
        return nmea.encode(
            {"altitude": data.altitude, "depth": data.depth, "reach": reach, "ground": ground, "water": water}
        )


class DeviceFormat(NamedTuple):
    """One format: its name, which sheets are told in it, whether it has coordinates to choose, and what makes it."""

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
        "Water Linked JSON", (Dvl,), has_frames=False, make_encoder=lambda one, _: WaterLinkedEncoder(one)
    ),
    ".nmea": DeviceFormat(
        "NMEA 0183", DOPPLER_SPECS, has_frames=False, make_encoder=lambda instrument, _: NmeaEncoder(instrument)
    ),
}
"""Suffix -> format."""
