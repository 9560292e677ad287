"""What one Doppler instrument sends in each format: blocks of what it told in, bytes out, and what lasts between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from navsense.devices import frames, nmea, pd0, pd6, waterlinked
from navsense.devices.ensembles import Frame, arrays_of, frame_of, in_frame
from navsense.devices.told import Instrument, Told
from navsense.sensors.adcp import Adcp
from navsense.sensors.dvl import Dvl
from navsense.typing import BoolArray, FloatArray, IntArray, Vectors

Encode = Callable[[Told], bytes]

SECONDS = 1e-9
"""s of a nanosecond."""


class Pd0:
    """Ensembles of PD0, numbered from 1."""

    def __init__(self, instrument: Instrument, frame: str) -> None:
        """Choose the coordinates. Raises `SinkError` where these or the beams cannot be told."""
        self._instrument, self._frame = instrument, frame_of(instrument, frame)
        self._next = 1

    def __call__(self, told: Told) -> bytes:
        """Return the ensembles of a block."""
        made = pd0.encode(arrays_of(self._instrument, told, self._frame, self._next))
        self._next += len(told)
        return made


class _Way:
    """The way that velocities make: the sum of each times the time since the good one before it."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._way = np.zeros(3)
        self._last: int | None = None

    def follow(self, stamp: IntArray, velocity: Vectors) -> tuple[Vectors, FloatArray]:
        """Return the way (n, 3) m so far and the age (n,) s of the last good velocity, NaN before the first."""
        good: BoolArray = np.asarray(np.isfinite(velocity).all(axis=1))
        rows = np.flatnonzero(good)
        before = np.full(stamp.size + 1, -1)
        before[1:][rows] = rows
        last = np.maximum.accumulate(before)
        earliest = stamp[rows[0]] if self._last is None and rows.size else (self._last or 0)
        since = np.where(last >= 0, stamp[np.maximum(last, 0)], earliest)
        known = (last >= 0) | (self._last is not None)
        passed = np.where(good, (stamp - since[:-1]) * SECONDS, 0.0)
        steps = np.where(good[:, None], velocity, 0.0) * passed[:, None]
        way = np.cumsum(np.concatenate((self._way[None], steps)), axis=0)
        self._way = way[-1]
        self._last = int(since[-1]) if known[-1] else None
        return way[1:], np.where(known[1:], (stamp - since[1:]) * SECONDS, math.nan)


class Pd6:
    """Lines of PD6."""

    def __init__(self, instrument: Instrument) -> None:
        """Begin the ways. Raises `SinkError` where the beams are not RDI's four."""
        self._instrument, self._mounting = instrument, instrument.mounting
        self._ways = {track: _Way() for track in pd6.TRACKS}

    def __call__(self, told: Told) -> bytes:
        """Return the lines of a block."""
        if not len(told):
            return b""
        heading, pitch, roll = frames.angles(told.attitude)
        arrays = {"heading": heading, "pitch": pitch, "roll": roll, "stamp": told.stamp}
        arrays |= {name: vars(told)[name] for name in ("salinity", "temperature", "depth", "sound_speed")}
        tracks = {"water": (told.water, told.water_along), "bottom": (told.bottom, told.bottom_along)}
        for track, (velocity, along) in tracks.items():
            beams = frames.solved(along[:, self._mounting.order], self._mounting.angle)
            ship, earth, own = (
                in_frame(self._instrument, told, frame, velocity)
                for frame in (Frame.SHIP, Frame.EARTH, Frame.INSTRUMENT)
            )
            way, age = self._ways[track].follow(told.stamp, earth)
            arrays[f"{track}_instrument"] = np.concatenate((own, -beams[:, 3:]), axis=1)
            arrays |= {f"{track}_ship": ship, f"{track}_earth": earth, f"{track}_way": way, f"{track}_age": age}
            arrays[f"{track}_range"] = told.altitude if track == "bottom" else np.full(len(told), math.nan)
        return pd6.encode(arrays)


class WaterLinked:
    """Reports of velocity of Water Linked."""

    def __init__(self, instrument: Instrument) -> None:
        """Lay the axes. Raises `SinkError` where the beams are not four, a quarter turn apart."""
        mounting = instrument.mounting
        across, along, face = mounting.turn.T
        side = math.sin(mounting.azimuth) * (1.0 if mounting.up else -1.0)
        ahead = math.cos(mounting.azimuth) * along + side * across
        self._axes = np.stack((ahead, np.cross(-face, ahead), -face))
        self._order, self._cosine = mounting.order[[1, 3, 0, 2]], math.cos(mounting.angle)
        self._last: int | None = None

    def __call__(self, told: Told) -> bytes:
        """Return the reports of a block."""
        if not len(told):
            return b""
        is_water = np.isnan(told.bottom[:, 0]) & np.isfinite(told.water[:, 0])
        velocity = np.where(is_water[:, None], told.water, told.bottom)
        along = np.where(is_water[:, None], told.water_along, told.bottom_along)[:, self._order]
        slant = told.range[:, self._order]
        before = np.concatenate(([told.sent[0] if self._last is None else self._last], told.sent[:-1]))
        self._last = int(told.sent[-1])
        known = np.isfinite(slant)
        total = np.where(known, slant, 0.0).sum(axis=1) * self._cosine
        arrays = {
            "stamp": told.stamp,
            "sent": told.sent,
            "elapsed": (told.sent - before) * SECONDS,
            "velocity": (self._axes @ velocity[..., None])[..., 0],
            "covariance": self._axes @ told.covariance @ self._axes.T,
            "altitude": np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), math.nan),
            "transducer_velocity": along,
            "transducer_distance": slant,
            "is_water": is_water,
        }
        return waterlinked.encode(arrays)


class Nmea:
    """Sentences of NMEA 0183."""

    def __init__(self, instrument: Instrument) -> None:
        """Note how far it hears."""
        spec = instrument.sensor.spec
        self._instrument = instrument
        self._reach = spec.maximum_range if isinstance(spec, Dvl | Adcp) else math.nan

    def __call__(self, told: Told) -> bytes:
        """Return the sentences of a block."""
        ground, water = (
            in_frame(self._instrument, told, Frame.SHIP, velocity)[:, 1::-1] for velocity in (told.bottom, told.water)
        )
        reach = np.full(len(told), self._reach)
        return nmea.encode(
            {"altitude": told.altitude, "depth": told.depth, "reach": reach, "ground": ground, "water": water}
        )


class Format(NamedTuple):
    """One format: its name, which sheets are told in it, whether it has coordinates to choose, and what makes it."""

    name: str
    kinds: tuple[type, ...]
    has_frames: bool
    begin: Callable[[Instrument, str], Encode]


DOPPLER = (Dvl, Adcp)

FORMATS: Mapping[str, Format] = {
    ".pd0": Format("PD0", DOPPLER, has_frames=True, begin=Pd0),
    ".pd6": Format("PD6", DOPPLER, has_frames=False, begin=lambda instrument, _: Pd6(instrument)),
    ".wl.json": Format("Water Linked JSON", (Dvl,), has_frames=False, begin=lambda one, _: WaterLinked(one)),
    ".nmea": Format("NMEA 0183", DOPPLER, has_frames=False, begin=lambda instrument, _: Nmea(instrument)),
}
"""Suffix -> format."""
