"""Pictures of numbers: colours between anchors, light on a relief, and the bytes of a PNG inside the page.

A PNG is a signature and chunks of length, kind, data and CRC; its rows are compressed by zlib, each behind a byte that
says how it is filtered, here by its difference to the left (1). Source: PNG specification, third edition, W3C 2025.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from navsense.picture.ground import Relief
from navsense.picture.plan import DRY, STEEP, UNDER
from navsense.typing import FloatArray

Bytes = NDArray[np.uint8]

SPEED = ("#2f1a6b", "#2b5c9e", "#239b96", "#7bc96f", "#f6e26b")
"""Colours of a size, from nothing to the most."""

SIGNED = ("#215a9c", "#7fb0d8", "#f3f1ec", "#e6a06d", "#a63a1c")
"""Colours of what has a sign: from the least over 0 to the greatest."""

TIMES = ("#3b1480", "#8f2a8c", "#d64d62", "#f58d3d", "#f2d94a")
"""Colours of time, from the start to the end."""

NORTH_WEST, HIGH = math.radians(315.0), math.radians(50.0)
"""Where the light on a relief comes from: azimuth clockwise from north, and height."""


def colours(values: FloatArray, anchors: tuple[str, ...]) -> Bytes:
    """Return the colours (..., 4) of parts from 0 to 1 (...), evenly between anchors; NaN is clear."""
    table = np.array([[int(anchor[i : i + 2], 16) for i in (1, 3, 5)] for anchor in anchors], dtype=np.float64)
    part = np.clip(np.nan_to_num(values), 0.0, 1.0)
    places = np.linspace(0.0, 1.0, len(anchors))
    out = np.empty((*values.shape, 4), dtype=np.uint8)
    for channel in range(3):
        out[..., channel] = np.rint(np.interp(part, places, table[:, channel]))
    out[..., 3] = np.where(np.isfinite(values), 255, 0)
    return out


def hexadecimal(part: float, anchors: tuple[str, ...]) -> str:
    """Return the colour of one part as text."""
    red, green, blue, _ = colours(np.array(part), anchors).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def lit(relief: Relief, *, under: bool) -> Bytes:
    """Return the pixels (rows, columns, 4) of a relief, north above, coloured by height and lit from the north-west."""
    height = np.where(np.isfinite(relief.height), relief.height, np.nanmedian(relief.height))
    low, high = float(np.nanmin(relief.height)), float(np.nanmax(relief.height))
    span = high - low if not relief.flat else 1.0
    base = colours((relief.height - low) / span, UNDER if under else DRY).astype(np.float64)
    if not relief.flat:
        usual = float(np.sqrt(np.mean(relief.slopes**2)))
        more = STEEP / usual if usual > 0.0 else 1.0
        north, east = np.gradient(height, relief.y[1] - relief.y[0], relief.x[1] - relief.x[0])
        up = 1.0 / np.sqrt(1.0 + (more * east) ** 2 + (more * north) ** 2)
        towards = (math.sin(NORTH_WEST) * math.cos(HIGH), math.cos(NORTH_WEST) * math.cos(HIGH), math.sin(HIGH))
        light = up * (towards[2] - more * (towards[0] * east + towards[1] * north))
        base[..., :3] *= np.clip(0.35 + 0.85 * light, 0.0, 1.25)[..., None]
    return np.clip(np.rint(base[::-1]), 0, 255).astype(np.uint8)


def uri(pixels: Bytes) -> str:
    """Return pixels (rows, columns, 4) as a PNG in a data URI; the fourth number is left out where none is clear."""
    depth = 4 if (pixels[..., 3] < 255).any() else 3
    pixels = pixels[..., :depth]
    rows, columns, _ = pixels.shape
    before = np.zeros_like(pixels)
    before[:, 1:] = pixels[:, :-1]
    filtered = np.empty((rows, 1 + depth * columns), dtype=np.uint8)
    filtered[:, 0] = 1
    filtered[:, 1:] = (pixels - before).reshape(rows, depth * columns)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6 if depth == 4 else 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b""))
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        file += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return "data:image/png;base64," + base64.b64encode(file).decode()
