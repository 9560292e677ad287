"""Summaries of device logs: records by kind, their stamps, and skipped bytes or lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from navsense.core.text import format_count
from navsense.core.typing import AnyArray, IntArray
from navsense.devices import nmea, pd0, pd6, waterlinked
from navsense.devices.encoders import Pd0Coordinates

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


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """Summary of a log: (name, type, count) of each kind of record, stamps (n,) ns, coordinates, skipped data."""

    entries: tuple[tuple[str, str, int], ...] = ()
    stamps: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    coordinates: tuple[str, ...] = ()
    skipped: str = ""


def _format_skipped_lines(count: int) -> str:
    return format_count(count, "line") if count else ""


def _summarise_pd0(data: bytes) -> DeviceLog:
    log = pd0.decode(data)
    counts: dict[str, int] = {}
    coordinates: dict[str, None] = {}
    stamps = [np.empty(0, dtype=np.int64)]
    for block in log.blocks:
        for key in block.types:
            counts[key] = counts.get(key, 0) + len(block)
        if "coordinates" in block.arrays:
            numbers = np.unique(block.arrays["coordinates"] >> 3 & 3).tolist()
            coordinates |= dict.fromkeys(str(list(Pd0Coordinates)[number]) for number in numbers)
        if "rtc" in block.arrays:
            stamps.append(pd0.decode_stamps(block.arrays))
    size = sum(size for _, size in log.skipped)
    skipped = f"{format_count(size, 'byte')} in {format_count(len(log.skipped), 'place')}" if size else ""
    entries = tuple((PD0_TYPES.get(key, "data type"), f"PD0 0x{key[:4]}", count) for key, count in counts.items())
    return DeviceLog(entries, np.concatenate(stamps), tuple(coordinates), skipped)


def _make_log(arrays: Mapping[str, AnyArray], kinds: Mapping[str, AnyArray], type_name: str, skipped: int) -> DeviceLog:
    """Return the summary of a log of pings; `kinds` are masks (n,) by name."""
    entries = ((name, type_name, int(np.count_nonzero(mask))) for name, mask in kinds.items())
    return DeviceLog(tuple(entries), arrays["stamp"], (), _format_skipped_lines(skipped))


def _summarise_pd6(data: bytes) -> DeviceLog:
    arrays, skipped = pd6.decode(data)
    kinds: dict[str, AnyArray] = {"pings": np.ones(arrays["stamp"].shape)}
    kinds |= {f"{track} track": np.isfinite(arrays[f"{track}_earth"][:, 0]) for track in ("bottom", "water")}
    return _make_log(arrays, kinds, "PD6", skipped)


def _summarise_waterlinked(data: bytes) -> DeviceLog:
    arrays, skipped = waterlinked.decode(data)
    kinds = {"velocity": ~arrays["is_water"], "velocity_water": arrays["is_water"]}
    return _make_log(arrays, kinds, "Water Linked JSON", skipped)


def _summarise_nmea(data: bytes) -> DeviceLog:
    arrays, skipped = nmea.decode(data)
    kinds = {"DBT": "altitude", "DPT": "depth", "VBW": "ground"}
    entries = tuple((kind, "NMEA 0183", len(arrays[name])) for kind, name in kinds.items())
    return DeviceLog(entries, skipped=_format_skipped_lines(skipped))


SUMMARISERS: Mapping[str, Callable[[bytes], DeviceLog]] = {
    ".pd0": _summarise_pd0,
    ".pd6": _summarise_pd6,
    ".wl.json": _summarise_waterlinked,
    ".nmea": _summarise_nmea,
}


def summarise_log(suffix: str, data: bytes) -> DeviceLog:
    """Return the summary of a log in the format of a suffix. Raises `RecordingError` for data in another format."""
    return SUMMARISERS[suffix](data) if data else DeviceLog()
