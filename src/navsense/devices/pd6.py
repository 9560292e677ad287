"""PD6, the text format of Teledyne RD Instruments' and Water Linked's DVLs: ten lines per ping, each with CR LF.

    :SA,pitch,roll,heading            degrees
    :TS,YYMMDDHHmmsscc,salinity,temperature,depth,sound speed,0          g/kg, degrees C, m, m/s
    :WI,x,y,z,error,A    :WS,starboard,forward,mast,A    :WE,east,north,up,A    :WD,east,north,up,range,age
    :BI,x,y,z,error,A    :BS,starboard,forward,mast,A    :BE,east,north,up,A    :BD,east,north,up,range,age

Velocities in mm/s are those of the vehicle through the water (W) and over the bottom (B). Mast and up are positive away
from the bottom, unlike in PD0. A is valid; with V each velocity is -32768. D has the distance made good since the start
(m), the range to the bottom (m), and the age of the last good velocity (s).

Arrays (n, ...), SI: `stamp` ns, `heading`, `pitch`, `roll` rad, `salinity`, `temperature` K, `depth`, `sound_speed`,
and for each of `water` and `bottom` `_instrument` (n, 4), `_ship`, `_earth`, `_distance` (n, 3), `_range`, `_age` (n,).
Unknown values are NaN; they are 0 in fields without a code for them.

Source: Teledyne RD Instruments, Pathfinder DVL Guide (April 2018), tables 50 and 51, for fields and signs; Water
Linked, PD formats (DVL documentation), for the widths of the fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, FloatArray
from navsense.devices.pd0 import decode_stamps, encode_rtc

BAD_VELOCITY, MAX_VELOCITY_COUNT = -32768, 32767

ZERO_CELSIUS = 273.15

MAX_DISTANCE = 99_999_999.0
"""m: largest distance that a field holds."""

TRACKS = ("water", "bottom")

VELOCITY_LINES = {"I": ("instrument", 4), "S": ("ship", 3), "E": ("earth", 3)}
"""Letter of a velocity line -> its coordinates and the number of velocities."""


_HEADER_LINES = ":SA,%+6.2f,%+6.2f,%6.2f\r\n:TS,%02d%02d%02d%02d%02d%02d%02d,%4.1f,%+5.1f,%6.1f,%6.1f,  0\r\n"

_DISTANCE_LINE = "D,%+12.2f,%+12.2f,%+12.2f,%7.2f,%6.2f\r\n"

PING_TEMPLATE = _HEADER_LINES + "".join(
    "".join(
        f":{track[0].upper()}{letter}," + "%+6d," * count + "%s\r\n" for letter, (_, count) in VELOCITY_LINES.items()
    )
    + f":{track[0].upper()}{_DISTANCE_LINE}"
    for track in TRACKS
)
"""Template of the lines of a ping."""


def _clip(values: AnyArray, minimum: float = -MAX_DISTANCE, maximum: float = MAX_DISTANCE) -> FloatArray:
    """Return values within the limits of a field, 0 for NaN."""
    return np.nan_to_num(np.clip(np.asarray(values, dtype=np.float64), minimum, maximum), nan=0.0)


def _format_velocities(values: AnyArray) -> tuple[list[AnyArray], AnyArray]:
    """Return columns of mm/s, and A or V for each row.

    A row is bad if a velocity, apart from the error velocity, is unknown or too large.
    """
    counts = np.rint(np.asarray(values, dtype=np.float64) * 1e3)
    fits = np.abs(counts) <= MAX_VELOCITY_COUNT
    is_good: BoolArray = np.asarray(fits[:, :3].all(axis=1))
    integers = np.where(fits & is_good[:, None], np.nan_to_num(counts), BAD_VELOCITY).astype(np.int64)
    return list(integers.T), np.where(is_good, "A", "V")


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return the lines of pings."""
    heading = np.rint(np.degrees(arrays["heading"]) * 100.0) % 36000.0 / 100.0
    columns = [np.degrees(arrays["pitch"]), np.degrees(arrays["roll"]), heading, *encode_rtc(arrays["stamp"])["rtc"].T]
    columns += [_clip(arrays["salinity"], 0.0, 99.9), _clip(arrays["temperature"] - ZERO_CELSIUS, -99.9, 99.9)]
    columns += [_clip(arrays["depth"], 0.0, 9999.9), _clip(arrays["sound_speed"], 0.0, 9999.9)]
    for track in TRACKS:
        for name, _ in VELOCITY_LINES.values():
            velocities, status = _format_velocities(arrays[f"{track}_{name}"])
            columns += [*velocities, status]
        columns += [*_clip(arrays[f"{track}_distance"]).T]
        columns += [_clip(arrays[f"{track}_range"], 0.0, 9999.99), _clip(arrays[f"{track}_age"], 0.0, 999.99)]
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    return "".join([PING_TEMPLATE % row for row in rows]).encode("ascii")


PingRow = dict[str, ArrayLike]
"""The values of a ping by the names of their arrays, and the digits of its clock as `rtc`."""


def _make_row() -> PingRow:
    """Return a ping without known values."""
    scalars = ("heading", "pitch", "roll", "salinity", "temperature", "depth", "sound_speed")
    row: PingRow = {**dict.fromkeys(scalars, math.nan), "rtc": np.zeros(7)}
    for track in TRACKS:
        row |= {f"{track}_{name}": np.full(count, math.nan) for name, count in VELOCITY_LINES.values()}
        row |= {f"{track}_distance": np.full(3, math.nan), f"{track}_range": math.nan, f"{track}_age": math.nan}
    return row


def _parse_attitude(row: PingRow, parts: list[str]) -> None:
    """Parse `:SA`."""
    for name, text in zip(("pitch", "roll", "heading"), parts, strict=True):
        row[name] = math.radians(float(text))


def _parse_timing(row: PingRow, parts: list[str]) -> None:
    """Parse `:TS`."""
    digits = parts[0].strip()
    if len(digits) != 14 or len(parts) != 6:
        raise ValueError
    row["rtc"] = np.array([int(digits[i : i + 2]) for i in range(0, 14, 2)], dtype=np.float64)
    for name, text in zip(("salinity", "temperature", "depth", "sound_speed"), parts[1:5], strict=True):
        row[name] = float(text) + (ZERO_CELSIUS if name == "temperature" else 0.0)


def _parse_velocity(name: str, count: int, row: PingRow, parts: list[str]) -> None:
    """Parse a velocity line. Bad velocities are NaN."""
    *velocities, status = (part.strip() for part in parts)
    if len(velocities) != count or status not in ("A", "V"):
        raise ValueError
    counts = np.array([int(velocity) for velocity in velocities], dtype=np.float64)
    row[name] = np.where((counts == BAD_VELOCITY) | (status == "V"), math.nan, counts * 1e-3)


def _parse_distance(track: str, row: PingRow, parts: list[str]) -> None:
    """Parse a distance line."""
    *distance, bottom_range, age = (float(part) for part in parts)
    if len(distance) != 3:
        raise ValueError
    row |= {f"{track}_distance": np.array(distance), f"{track}_range": bottom_range, f"{track}_age": age}


PARSERS: Mapping[str, Callable[[PingRow, list[str]], None]] = {
    ":SA": _parse_attitude,
    ":TS": _parse_timing,
    **{
        f":{track[0].upper()}{letter}": partial(_parse_velocity, f"{track}_{name}", count)
        for track in TRACKS
        for letter, (name, count) in VELOCITY_LINES.items()
    },
    **{f":{track[0].upper()}D": partial(_parse_distance, track) for track in TRACKS},
}
"""Beginning of a line -> its parser."""


def decode(data: bytes) -> tuple[dict[str, AnyArray], int]:
    """Return the arrays of pings, and the number of skipped lines. A ping begins with `:SA`.

    Values of damaged lines and bad velocities are NaN. Exceptions are `:SA` and `:TS`: the values before the damage are
    kept. Raises `RecordingError` for bytes without a ping.
    """
    rows: list[PingRow] = []
    skipped = 0
    for line in data.decode("ascii", errors="replace").splitlines():
        kind, *parts = line.split(",")
        if kind == ":SA":
            rows.append(_make_row())
        try:
            PARSERS[kind](rows[-1], parts)
        except (KeyError, IndexError, ValueError):
            skipped += bool(line.strip())
    if not rows:
        raise RecordingError("bytes without a PD6 ping", len(data), allowed="must contain lines that begin with :SA")
    arrays: dict[str, AnyArray] = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    clock = arrays.pop("rtc").astype(np.int64)
    has_date: BoolArray = np.asarray(clock[:, 1:3].all(axis=1))
    arrays["stamp"] = decode_stamps({"rtc": np.where(has_date[:, None], clock, (70, 1, 1, 0, 0, 0, 0))})
    return arrays, skipped
