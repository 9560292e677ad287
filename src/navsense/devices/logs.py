"""Summaries of device logs: records by kind, their stamps, and skipped bytes or lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from navsense.core.text import format_count
from navsense.core.typing import IntArray
from navsense.devices import nmea, pd0, pd6, waterlinked
from navsense.sensors.doppler import CoordinateSystem

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
"""Number of a PD0 data type -> its name."""

NO_STAMPS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LogSummary:
    """Summary of a log: (name, type, count) of each kind of record, stamps (n,) ns, coordinates, skipped data."""

    entries: tuple[tuple[str, str, int], ...] = ()
    stamps: IntArray = field(default_factory=lambda: NO_STAMPS)
    coordinates: tuple[str, ...] = ()
    skipped: str = ""


def _summarize_pd0(data: bytes) -> LogSummary:
    log = pd0.decode(data)
    counts: dict[str, int] = {}
    coordinates: dict[str, None] = {}
    stamps = [NO_STAMPS]
    for block in log.blocks:
        for key in block.types:  # a type that an ensemble has again has a longer key
            counts[key[:4]] = counts.get(key[:4], 0) + len(block)
        if "coordinates" in block.arrays:
            numbers = np.unique(block.arrays["coordinates"] >> 3 & 3).tolist()
            coordinates |= dict.fromkeys(str(list(CoordinateSystem)[number]) for number in numbers)
        if "rtc" in block.arrays:
            stamps.append(pd0.decode_stamps(block.arrays))
    size = sum(size for _, size in log.skipped)
    skipped = f"{format_count(size, 'byte')} in {format_count(len(log.skipped), 'place')}" if size else ""
    entries = tuple((PD0_TYPES.get(key, "data type"), f"PD0 0x{key}", count) for key, count in counts.items())
    return LogSummary(entries, np.concatenate(stamps), tuple(coordinates), skipped)


def _make_summary(type_name: str, counts: Mapping[str, int], skipped: int, stamps: IntArray = NO_STAMPS) -> LogSummary:
    """Return the summary of a text log with the count of each kind of record."""
    entries = tuple((kind, type_name, count) for kind, count in counts.items())
    return LogSummary(entries, stamps, skipped=format_count(skipped, "line") if skipped else "")


def _summarize_pd6(data: bytes) -> LogSummary:
    arrays, skipped = pd6.decode(data)
    counts = {"pings": len(arrays["stamp"])}
    counts |= {
        f"{track} track": int(np.isfinite(arrays[f"{track}_earth"][:, 0]).sum()) for track in ("bottom", "water")
    }
    return _make_summary("PD6", counts, skipped, arrays["stamp"])


def _summarize_waterlinked(data: bytes) -> LogSummary:
    arrays, skipped = waterlinked.decode(data)
    water_count = int(arrays["is_water"].sum())
    counts = {"velocity": len(arrays["is_water"]) - water_count, "velocity_water": water_count}
    return _make_summary("Water Linked JSON", counts, skipped, arrays["stamp"])


def _summarize_nmea(data: bytes) -> LogSummary:
    arrays, skipped = nmea.decode(data)
    counts = {"DBT": len(arrays["altitude"]), "DPT": len(arrays["depth"]), "VBW": len(arrays["ground"])}
    return _make_summary("NMEA 0183", counts, skipped)


SUMMARIZERS: Mapping[str, Callable[[bytes], LogSummary]] = {
    ".pd0": _summarize_pd0,
    ".pd6": _summarize_pd6,
    ".wl.json": _summarize_waterlinked,
    ".nmea": _summarize_nmea,
}


def summarize_log(suffix: str, data: bytes) -> LogSummary:
    """Return the summary of a log in the format of a suffix. Raises `RecordingError` for data in another format."""
    return SUMMARIZERS[suffix](data) if data else LogSummary()
