"""PD6, the text that Teledyne RD Instruments' and Water Linked's DVLs send: ten lines a ping, each ended by CR LF.

    :SA,pitch,roll,heading            degrees
    :TS,YYMMDDHHmmsscc,salinity,temperature,depth,sound speed,0          g/kg, degrees C, m, m/s
    :WI,x,y,z,error,A    :WS,starboard,forward,mast,A    :WE,east,north,up,A    :WD,east,north,up,range,age
    :BI,x,y,z,error,A    :BS,starboard,forward,mast,A    :BE,east,north,up,A    :BD,east,north,up,range,age

Velocities in mm/s are the vehicle's, through the water (W) and over the bottom (B): positive mast and up are away from
the bottom, against PD0's signs. A is good, V is not, and then each is -32768. D: the way made since the start, the
range to the bottom (m), and the age of the last good velocity (s).

Arrays (n, ...), SI: `stamp` ns, `heading`, `pitch`, `roll` rad, `salinity`, `temperature` K, `depth`, `sound_speed`,
and for `water` and `bottom` each `_instrument` (n, 4), `_ship`, `_earth`, `_way` (n, 3), `_make_range`, `_age` (n,).
What is not known is NaN; where a figure has no sign for that it is 0.

Source: Teledyne RD Instruments, Pathfinder DVL Guide (April 2018), tables 50 and 51, for fields and signs; Water
Linked, PD formats (DVL documentation), for their widths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from navsense.devices.pd0 import decode_stamps, encode_rtc
from navsense.errors import RecordingError
from navsense.typing import AnyArray, BoolArray, FloatArray

BAD_VELOCITY, MAX_VELOCITY_COUNT = -32768, 32767

ZERO_CELSIUS = 273.15

MAX_FIGURE = 99_999_999.0
"""m and s: what the wider figures hold."""

TRACKS = ("water", "bottom")

VELOCITY_LINES = {"I": ("instrument", 4), "S": ("ship", 3), "E": ("earth", 3)}
"""Letters of lines of velocities: what they are in, and how many figures they have."""


def _format_line(track: str, letter: str, count: int) -> str:
    """Return the line of a velocity, to be filled in."""
    return f":{track[0].upper()}{letter}," + "%+6d," * count + "%s\r\n"


_HEADER_LINES = ":SA,%+6.2f,%+6.2f,%6.2f\r\n:TS,%02d%02d%02d%02d%02d%02d%02d,%4.1f,%+5.1f,%6.1f,%6.1f,  0\r\n"

_DISTANCE_LINE = "D,%+12.2f,%+12.2f,%+12.2f,%7.2f,%6.2f\r\n"

PING_TEMPLATE = _HEADER_LINES + "".join(
    "".join(_format_line(track, letter, count) for letter, (_, count) in VELOCITY_LINES.items())
    + f":{track[0].upper()}{_DISTANCE_LINE}"
    for track in TRACKS
)
"""All lines of a ping."""


def _clip_known(values: AnyArray, least: float = -MAX_FIGURE, most: float = MAX_FIGURE) -> FloatArray:
    """Return values within what a figure holds, 0 where they are not known."""
    return np.nan_to_num(np.clip(np.asarray(values, dtype=np.float64), least, most), nan=0.0)


def _format_velocities(values: AnyArray) -> tuple[list[AnyArray], AnyArray]:
    """Return columns of mm/s, and A or V of each row: one that is not known, or too fast, is bad, but for the error."""
    counts = np.rint(np.asarray(values, dtype=np.float64) * 1e3)
    fits = np.abs(counts) <= MAX_VELOCITY_COUNT
    good: BoolArray = np.asarray(fits[:, :3].all(axis=1))
    whole = np.where(fits & good[:, None], np.nan_to_num(counts), BAD_VELOCITY).astype(np.int64)
    return list(whole.T), np.where(good, "A", "V")


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return the lines of pings."""
    heading = np.rint(np.degrees(arrays["heading"]) * 100.0) % 36000.0 / 100.0
    columns = [np.degrees(arrays["pitch"]), np.degrees(arrays["roll"]), heading, *encode_rtc(arrays["stamp"])["rtc"].T]
    columns += [
        _clip_known(arrays["salinity"], 0.0, 99.9),
        _clip_known(arrays["temperature"] - ZERO_CELSIUS, -99.9, 99.9),
    ]
    columns += [_clip_known(arrays["depth"], 0.0, 9999.9), _clip_known(arrays["sound_speed"], 0.0, 9999.9)]
    for track in TRACKS:
        for name, _ in VELOCITY_LINES.values():
            figures, status = _format_velocities(arrays[f"{track}_{name}"])
            columns += [*figures, status]
        columns += [*_clip_known(arrays[f"{track}_way"]).T]
        columns += [
            _clip_known(arrays[f"{track}_range"], 0.0, 9999.99),
            _clip_known(arrays[f"{track}_age"], 0.0, 999.99),
        ]
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    return "".join([PING_TEMPLATE % row for row in rows]).encode("ascii")


def _make_row() -> dict[str, FloatArray]:
    """Return one ping of which nothing is known."""
    shapes = dict.fromkeys(("heading", "pitch", "roll", "salinity", "temperature", "depth", "sound_speed"), ())
    row: dict[str, FloatArray] = {name: np.array(math.nan) for name in shapes}
    row["rtc"] = np.zeros(7)
    for track in TRACKS:
        row |= {f"{track}_{name}": np.full(count, math.nan) for name, count in VELOCITY_LINES.values()}
        row |= {f"{track}_way": np.full(3, math.nan)}
        row |= {f"{track}_{name}": np.array(math.nan) for name in ("range", "age")}
    return row


def _parse_attitude(row: dict[str, FloatArray], parts: list[str]) -> None:
    """Read `:SA`."""
    for name, text in zip(("pitch", "roll", "heading"), parts, strict=True):
        row[name] = np.array(math.radians(float(text)))


def _parse_timing(row: dict[str, FloatArray], parts: list[str]) -> None:
    """Read `:TS`."""
    digits = parts[0].strip()
    if len(digits) != 14 or len(parts) != 6:
        raise ValueError
    row["rtc"] = np.array([int(digits[i : i + 2]) for i in range(0, 14, 2)], dtype=np.float64)
    for name, text in zip(("salinity", "temperature", "depth", "sound_speed"), parts[1:5], strict=True):
        row[name] = np.array(float(text) + (ZERO_CELSIUS if name == "temperature" else 0.0))


def _parse_velocity(name: str, count: int, row: dict[str, FloatArray], parts: list[str]) -> None:
    """Read a line of velocities: those that are bad stay unknown."""
    *figures, status = (part.strip() for part in parts)
    if len(figures) != count or status not in ("A", "V"):
        raise ValueError
    counts = np.array([int(figure) for figure in figures], dtype=np.float64)
    row[name] = np.where((counts == BAD_VELOCITY) | (status == "V"), math.nan, counts * 1e-3)


def _parse_distance(track: str, row: dict[str, FloatArray], parts: list[str]) -> None:
    """Read a line of ways."""
    figures = [float(part) for part in parts]
    if len(figures) != 5:
        raise ValueError
    row[f"{track}_way"], row[f"{track}_range"] = np.array(figures[:3]), np.array(figures[3])
    row[f"{track}_age"] = np.array(figures[4])


LineParser = Callable[[dict[str, FloatArray], list[str]], None]


def _make_parsers() -> dict[str, LineParser]:
    """Return what reads each kind of line."""
    found: dict[str, LineParser] = {":SA": _parse_attitude, ":TS": _parse_timing}
    for track in TRACKS:
        for letter, (name, count) in VELOCITY_LINES.items():
            found[f":{track[0].upper()}{letter}"] = partial(_parse_velocity, f"{track}_{name}", count)
        found[f":{track[0].upper()}D"] = partial(_parse_distance, track)
    return found


PARSERS = _make_parsers()


def decode(data: bytes) -> tuple[dict[str, AnyArray], int]:
    """Return the arrays of pings, and how many lines were none of theirs; a ping begins with `:SA`.

    A line that is damaged leaves its figures unknown. A velocity that is bad is NaN.
    Raises `RecordingError` where bytes
    hold no ping.
    """
    rows: list[dict[str, FloatArray]] = []
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
        raise RecordingError("no PD6 ping in bytes", len(data), allowed="must hold lines that begin with :SA")
    arrays: dict[str, AnyArray] = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    clock = arrays.pop("rtc").astype(np.int64)
    dated: BoolArray = np.asarray(clock[:, 1:3].all(axis=1))
    arrays["stamp"] = decode_stamps({"rtc": np.where(dated[:, None], clock, (70, 1, 1, 0, 0, 0, 0))})
    return arrays, skipped
