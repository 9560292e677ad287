"""What a device's log holds: its records by kind, when they are about, and what is none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from navsense.devices import nmea, pd0, pd6, waterlinked
from navsense.devices.pd0_ensembles import Pd0Coordinates
from navsense.typing import AnyArray, IntArray

PD0_TYPES: Mapping[str, str] = {
    "0000": "fixed leader",
    "0080": "variable leader",
    "0100": "velocity profile",
    "0200": "correlation profile",
    "0300": "echo profile",
    "0400": "percent good profile",
    "0500": "status profile",
    "0600": "bottom track",
}
"""Data types of PD0 by their numbers."""


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """Records: (name, type, how many) of each kind, stamps (n,) ns, coordinates, and what was skipped in words."""

    entries: tuple[tuple[str, str, int], ...] = ()
    stamps: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    coordinates: tuple[str, ...] = ()
    skipped: str = ""


def _format_line_count(count: int) -> str:
    """Return how many lines were skipped, in words."""
    return f"{count} lines" if count else ""


def _summarise_pd0(data: bytes) -> DeviceLog:
    """Return what PD0 holds."""
    found = pd0.decode(data)
    counts: dict[str, int] = {}
    frames: dict[str, None] = {}
    stamps = []
    for part in found.blocks:
        for key in part.types:
            counts[key] = counts.get(key, 0) + len(part)
        if "coordinates" in part.arrays:
            frames |= dict.fromkeys(
                str(list(Pd0Coordinates)[int(code)]) for code in np.unique(part.arrays["coordinates"] >> 3 & 3)
            )
        if "rtc" in part.arrays:
            stamps.append(pd0.decode_stamps(part.arrays))
    lost = sum(size for _, size in found.skipped)
    entries = tuple((PD0_TYPES.get(key, "data type"), f"PD0 0x{key[:4]}", count) for key, count in counts.items())
    known = np.concatenate(stamps) if stamps else np.empty(0, dtype=np.int64)
    return DeviceLog(entries, known, tuple(frames), f"{lost} bytes in {len(found.skipped)} places" if lost else "")


def _make_log(arrays: Mapping[str, AnyArray], kinds: Mapping[str, AnyArray], type_name: str, skipped: int) -> DeviceLog:
    """Return a log of pings: all of them, and of which kinds how many."""
    stamps = arrays["stamp"]
    entries = ((name, type_name, int(np.count_nonzero(is_one))) for name, is_one in kinds.items())
    return DeviceLog(tuple(entries), stamps, (), _format_line_count(skipped))


def _summarise_pd6(data: bytes) -> DeviceLog:
    """Return what PD6 holds."""
    arrays, skipped = pd6.decode(data)
    good = {track: np.isfinite(arrays[f"{track}_earth"][:, 0]) for track in ("bottom", "water")}
    every = {"pings": np.ones(arrays["stamp"].shape)}
    return _make_log(arrays, {**every, **{f"{track} track": one for track, one in good.items()}}, "PD6", skipped)


def _summarise_waterlinked(data: bytes) -> DeviceLog:
    """Return what lines of JSON hold."""
    arrays, skipped = waterlinked.decode(data)
    kinds = {"velocity": ~arrays["is_water"], "velocity_water": arrays["is_water"]}
    return _make_log(arrays, kinds, "Water Linked JSON", skipped)


def _summarise_nmea(data: bytes) -> DeviceLog:
    """Return what sentences there are."""
    arrays, skipped = nmea.decode(data)
    kinds = {"DBT": "altitude", "DPT": "depth", "VBW": "ground"}
    entries = tuple((kind, "NMEA 0183", len(arrays[name])) for kind, name in kinds.items())
    return DeviceLog(entries, skipped=_format_line_count(skipped))


SUMMARISERS: Mapping[str, Callable[[bytes], DeviceLog]] = {
    ".pd0": _summarise_pd0,
    ".pd6": _summarise_pd6,
    ".wl.json": _summarise_waterlinked,
    ".nmea": _summarise_nmea,
}


def summarise_log(suffix: str, data: bytes) -> DeviceLog:
    """Return what a log of a format holds, by the format's suffix. Raises `RecordingError` where it is none."""
    return SUMMARISERS[suffix](data) if data else DeviceLog()
