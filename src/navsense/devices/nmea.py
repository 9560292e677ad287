"""Sentences of NMEA 0183 that a DVL sends: depth below the transducer, depth of water, speeds over ground and water.

    $SDDBT,feet,f,metres,M,fathoms,F*hh
    $SDDPT,metres below the transducer,transducer below the surface,largest range*hh
    $VDVBW,along water,across water,A,along ground,across ground,A,,V,,V*hh          knots, forward and starboard

ended by CR LF; hh is the exclusive or of all between $ and *. What is not known is an empty field, V instead of A.

Arrays (n,), SI: `altitude`, `depth`, `reach` m; `water`, `ground` (n, 2) m/s forward and starboard, level. Sources:
NMEA 0183 as quoted by Simrad (DPT: a positive offset is the distance to the water line) and by gpsd (VBW); 1 foot is
0.3048 m, a fathom 6 feet, a knot 1852 m/h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import xor

import numpy as np

from navsense.errors import RecordingError
from navsense.typing import AnyArray, ByteArray, FloatArray

FOOT, FATHOM, KNOT = 0.3048, 1.8288, 1852.0 / 3600.0

Sentence = tuple[str, list[str]]


def _format_field(value: float, digits: int) -> str:
    """Return a number as a field has it, empty where it is not known."""
    return f"{value + 0.0:.{digits}f}" if math.isfinite(value) else ""


def _format_fields(values: AnyArray, digits: int) -> list[str]:
    """Return numbers (n,) as fields; no minus stands before a zero."""
    rounded = np.round(np.asarray(values, dtype=np.float64), digits)
    return [_format_field(value, digits) for value in rounded.tolist()]


def _format_statuses(speeds: FloatArray) -> list[str]:
    """Return A or V of rows of speeds."""
    found: list[str] = np.where(np.isfinite(speeds).all(axis=1), "A", "V").tolist()
    return found


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return DBT, DPT and VBW of each row."""
    depth = np.asarray(arrays["altitude"], dtype=np.float64)
    feet, metres, fathoms = (
        _format_fields(depth / unit, digits) for unit, digits in ((FOOT, 1), (1.0, 2), (FATHOM, 2))
    )
    offset, reach = _format_fields(arrays["depth"], 2), _format_fields(arrays["reach"], 1)
    water, ground = (np.asarray(arrays[name], dtype=np.float64) / KNOT for name in ("water", "ground"))
    speeds = [_format_fields(column, 3) for column in (*water.T, *ground.T)]
    sentences = []
    for row in zip(
        feet, metres, fathoms, offset, reach, *speeds, _format_statuses(water), _format_statuses(ground), strict=True
    ):
        ft, m, fm, below, most, along, across, over, side, is_wet, is_good = row
        sentences += [f"SDDBT,{ft},f,{m},M,{fm},F", f"SDDPT,{m},{below},{most}"]
        sentences.append(f"VDVBW,{along},{across},{is_wet},{over},{side},{is_good},,V,,V")
    if not sentences:
        return b""
    raw = np.array(sentences, dtype=np.bytes_)
    letters: ByteArray = raw.view(np.uint8).reshape(raw.size, -1)
    sums = np.bitwise_xor.reduce(letters, axis=1).tolist()
    return "".join([f"${text}*{total:02X}\r\n" for text, total in zip(sentences, sums, strict=True)]).encode("ascii")


def _split_sentences(data: bytes) -> Iterator[Sentence | None]:
    """Yield the kind and fields of each line, None for one that is damaged."""
    for line in data.splitlines():
        body, star, total = line.strip().rpartition(b"*")
        if not line.strip():
            continue
        try:
            is_whole = star and body.startswith(b"$") and int(total, 16) == reduce(xor, body[1:], 0) and len(total) == 2
            kind, *fields = body[1:].decode("ascii").split(",")
        except ValueError:
            is_whole, kind, fields = False, "", []
        yield (kind[-3:], fields) if is_whole else None


def _parse_number(text: str) -> float:
    """Return a field as a number, NaN where it is empty."""
    return float(text) if text else math.nan


def decode(data: bytes) -> tuple[dict[str, FloatArray], int]:
    """Return the arrays of what the sentences say, rows in their order, and how many lines are damaged or of no use.

    `altitude` comes from DBT's metres, `depth` and `reach` from DPT, `water` and `ground` from VBW: each array has a
    row for each sentence of its kind. Raises `RecordingError` where bytes hold none of them.
    """
    rows: dict[str, list[list[float]]] = {"DBT": [], "DPT": [], "VBW": []}
    skipped = 0
    for sentence in _split_sentences(data):
        try:
            kind, fields = sentence or ("", [])
            if kind == "DBT":
                rows[kind].append([_parse_number(fields[2])])
            elif kind == "DPT":
                rows[kind].append([_parse_number(field) for field in (*fields, "")[1:3]])
            elif kind == "VBW":
                speeds = [_parse_number(fields[i]) * KNOT for i in (0, 1, 3, 4)]
                good = [fields[i] == "A" for i in (2, 2, 5, 5)]
                rows[kind].append([v if is_good else math.nan for v, is_good in zip(speeds, good, strict=True)])
            else:
                skipped += 1
        except (ValueError, IndexError):
            skipped += 1
    if not any(rows.values()):
        raise RecordingError("no DBT, DPT or VBW in bytes", len(data), allowed="must hold such sentences of NMEA 0183")
    depth, under = np.array(rows["DBT"]).reshape(-1), np.array(rows["DPT"]).reshape(-1, 2)
    speed = np.array(rows["VBW"]).reshape(-1, 4)
    found = {"altitude": depth, "depth": under[:, 0], "reach": under[:, 1]}
    return {**found, "water": speed[:, :2], "ground": speed[:, 2:]}, skipped
