"""NMEA 0183 sentences of a DVL: depth below the transducer, depth of the water, speeds over ground and through water.

    $SDDBT,feet,f,metres,M,fathoms,F*hh
    $SDDPT,metres below the transducer,transducer below the surface,largest range*hh
    $VDVBW,along water,across water,A,along ground,across ground,A,,V,,V*hh          knots, forward and starboard

Lines end in CR LF; hh is the exclusive or of all bytes between $ and *. An unknown value is an empty field, with V
instead of A.

Arrays (n,), SI: `altitude`, `depth`, `max_range` m; `water`, `ground` (n, 2) m/s forward and starboard, level. Sources:
NMEA 0183 as quoted by Simrad (DPT: a positive offset is the distance to the water line) and by gpsd (VBW); 1 foot is
0.3048 m, a fathom 6 feet, a knot 1852 m/h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import xor

import numpy as np

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, ByteArray, FloatArray
from navsense.core.units import FATHOM, FOOT, KNOT

Sentence = tuple[str, list[str]]


def _format_fields(values: AnyArray, digits: int) -> list[str]:
    """Return numbers (n,) as fields, "" for NaN. A zero has no sign."""
    rounded = np.round(np.asarray(values, dtype=np.float64), digits)
    return [f"{value + 0.0:.{digits}f}" if math.isfinite(value) else "" for value in rounded.tolist()]


def _format_statuses(speeds: FloatArray) -> list[str]:
    """Return A (valid) or V for rows of speeds."""
    statuses: list[str] = np.where(np.isfinite(speeds).all(axis=1), "A", "V").tolist()
    return statuses


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return the sentences DBT, DPT and VBW for each row."""
    altitude = np.asarray(arrays["altitude"], dtype=np.float64)
    feet, metres, fathoms = (
        _format_fields(altitude / unit, digits) for unit, digits in ((FOOT, 1), (1.0, 2), (FATHOM, 2))
    )
    offset, max_range = _format_fields(arrays["depth"], 2), _format_fields(arrays["max_range"], 1)
    water, ground = (np.asarray(arrays[name], dtype=np.float64) / KNOT for name in ("water", "ground"))
    speeds = [_format_fields(column, 3) for column in (*water.T, *ground.T)]
    sentences = []
    columns = (feet, metres, fathoms, offset, max_range, *speeds, _format_statuses(water), _format_statuses(ground))
    for row in zip(*columns, strict=True):
        ft, m, fm, depth_offset, limit, water_x, water_y, ground_x, ground_y, water_status, ground_status = row
        sentences += [f"SDDBT,{ft},f,{m},M,{fm},F", f"SDDPT,{m},{depth_offset},{limit}"]
        sentences.append(f"VDVBW,{water_x},{water_y},{water_status},{ground_x},{ground_y},{ground_status},,V,,V")
    if not sentences:
        return b""
    padded = np.array(sentences, dtype=np.bytes_)
    letters: ByteArray = padded.view(np.uint8).reshape(padded.size, -1)
    checksums = np.bitwise_xor.reduce(letters, axis=1).tolist()
    lines = [f"${text}*{checksum:02X}\r\n" for text, checksum in zip(sentences, checksums, strict=True)]
    return "".join(lines).encode("ascii")


def _split_sentences(data: bytes) -> Iterator[Sentence | None]:
    """Yield the kind and the fields of each line, None for a damaged line."""
    for line in data.splitlines():
        body, star, checksum = line.strip().rpartition(b"*")
        if not line.strip():
            continue
        try:
            is_valid = star and body.startswith(b"$") and len(checksum) == 2
            is_valid = is_valid and int(checksum, 16) == reduce(xor, body[1:], 0)
            kind, *fields = body[1:].decode("ascii").split(",")
        except ValueError:
            is_valid, kind, fields = False, "", []
        yield (kind[-3:], fields) if is_valid else None


def _parse_number(text: str) -> float:
    """Return the number in a field, NaN for an empty field."""
    return float(text) if text else math.nan


def decode(data: bytes) -> tuple[dict[str, FloatArray], int]:
    """Return the arrays in sentences, in their order, and the number of skipped lines (damaged, or of another kind).

    `altitude` comes from the metres of DBT, `depth` and `max_range` from DPT, `water` and `ground` from VBW. Each array
    has a row for each sentence of its kind. Raises `RecordingError` for bytes without such a sentence.
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
                is_valid = [fields[i] == "A" for i in (2, 2, 5, 5)]
                rows[kind].append(np.where(is_valid, speeds, math.nan).tolist())
            else:
                skipped += 1
        except (ValueError, IndexError):
            skipped += 1
    if not any(rows.values()):
        raise RecordingError("bytes without NMEA 0183 sentences", len(data), allowed="must contain DBT, DPT or VBW")
    altitude, depth = np.array(rows["DBT"]).reshape(-1), np.array(rows["DPT"]).reshape(-1, 2)
    speed = np.array(rows["VBW"]).reshape(-1, 4)
    arrays = {"altitude": altitude, "depth": depth[:, 0], "max_range": depth[:, 1]}
    return {**arrays, "water": speed[:, :2], "ground": speed[:, 2:]}, skipped
