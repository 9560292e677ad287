"""Colours of numbers, relief shading, and PNG images in data URIs.

A PNG consists of a signature and chunks of length, type, data and CRC. Its rows are compressed by zlib. Each row starts
with its filter type, here 1: the difference to the pixel at the left. Source: PNG specification, third edition, W3C
2025.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from navsense.core.typing import FloatArray
from navsense.figures import DRY_COLOURS, UNDERWATER_COLOURS
from navsense.picture.ground import SHADED_SLOPE, Relief

Pixels = NDArray[np.uint8]

LIGHT_AZIMUTH, LIGHT_ELEVATION = math.radians(315.0), math.radians(50.0)
"""Direction to the light on a relief: azimuth clockwise from y, and elevation."""


def compute_pixels(values: FloatArray, anchors: tuple[str, ...]) -> Pixels:
    """Return the RGBA colours (..., 4) of values from 0 to 1 (...), evenly between anchors; NaN is transparent."""
    table = np.array([[int(anchor[i : i + 2], 16) for i in (1, 3, 5)] for anchor in anchors], dtype=np.float64)
    clipped = np.clip(np.nan_to_num(values), 0.0, 1.0)
    positions = np.linspace(0.0, 1.0, len(anchors))
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    for channel in range(3):
        pixels[..., channel] = np.rint(np.interp(clipped, positions, table[:, channel]))
    pixels[..., 3] = np.where(np.isfinite(values), 255, 0)
    return pixels


def format_hex_colour(value: float, anchors: tuple[str, ...]) -> str:
    """Return the colour of one value from 0 to 1 as text."""
    red, green, blue, _ = compute_pixels(np.array(value), anchors).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def compute_relief_pixels(relief: Relief, *, underwater: bool) -> Pixels:
    """Return the pixels (rows, columns, 4) of a relief, y up, coloured by height and lit from the upper left."""
    height = np.where(np.isfinite(relief.height), relief.height, np.nanmedian(relief.height))
    low, high = float(np.nanmin(relief.height)), float(np.nanmax(relief.height))
    span = high - low if not relief.is_flat else 1.0
    colours = UNDERWATER_COLOURS if underwater else DRY_COLOURS
    pixels = compute_pixels((relief.height - low) / span, colours).astype(np.float64)
    if not relief.is_flat:
        slope = float(np.sqrt(np.mean(relief.slopes**2)))
        exaggeration = SHADED_SLOPE / slope if slope > 0.0 else 1.0
        slope_y, slope_x = np.gradient(height, relief.y[1] - relief.y[0], relief.x[1] - relief.x[0])
        up = 1.0 / np.sqrt(1.0 + (exaggeration * slope_x) ** 2 + (exaggeration * slope_y) ** 2)
        light_x = math.sin(LIGHT_AZIMUTH) * math.cos(LIGHT_ELEVATION)
        light_y = math.cos(LIGHT_AZIMUTH) * math.cos(LIGHT_ELEVATION)
        light = up * (math.sin(LIGHT_ELEVATION) - exaggeration * (light_x * slope_x + light_y * slope_y))
        pixels[..., :3] *= np.clip(0.35 + 0.85 * light, 0.0, 1.25)[..., None]
    return np.clip(np.rint(pixels[::-1]), 0, 255).astype(np.uint8)


def encode_png_uri(pixels: Pixels) -> str:
    """Return pixels (rows, columns, 4) as a PNG in a data URI, without alpha if all are opaque."""
    depth = 4 if (pixels[..., 3] < 255).any() else 3
    pixels = pixels[..., :depth]
    rows, columns, _ = pixels.shape
    left = np.zeros_like(pixels)
    left[:, 1:] = pixels[:, :-1]
    filtered = np.empty((rows, 1 + depth * columns), dtype=np.uint8)
    filtered[:, 0] = 1
    filtered[:, 1:] = (pixels - left).reshape(rows, depth * columns)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6 if depth == 4 else 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n"
    for chunk, data in ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b"")):
        content += struct.pack(">I", len(data)) + chunk + data + struct.pack(">I", zlib.crc32(chunk + data))
    return "data:image/png;base64," + base64.b64encode(content).decode()
