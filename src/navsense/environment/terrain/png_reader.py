"""Reads the grey values of a PNG file with 8 or 16 bits.

    value = Raw(x) + predictor (mod 256), byte by byte: none, left, above, their mean, or Paeth's

Colour images and palettes are supported if all colours are grey. An alpha channel is ignored. Values of fewer than 8
bits are scaled to 8: value 255 / (2^bits - 1). Interlaced files are not supported. Format: W3C, *Portable Network
Graphics (PNG) Specification*, third edition.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from navsense.core.errors import FieldError, Where
from navsense.core.inputs import FileKind, read_bytes
from navsense.core.kernels import kernel
from navsense.core.typing import AnyArray, ByteArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"

MAX_WIDTH = 16384
"""Largest number of pixels along a side."""

_FILE_KIND = FileKind("image", FieldError, "must be a PNG file")
_REMEDY = (
    "write it anew as a grey PNG of 8 or 16 bits without interlacing (convert IN -interlace none -depth 16 OUT.png)"
)
GREY, COLOUR, PALETTE, GREY_ALPHA, COLOUR_ALPHA = 0, 2, 3, 4, 6
_COLOUR_TYPES = {
    GREY: (1, (1, 2, 4, 8, 16)),
    COLOUR: (3, (8, 16)),
    PALETTE: (1, (1, 2, 4, 8)),
    GREY_ALPHA: (2, (8, 16)),
    COLOUR_ALPHA: (4, (8, 16)),
}
"""Samples per pixel and allowed bits per sample."""

_HEADER = struct.Struct(">IIBBBBB")


class _PngHeader(NamedTuple):
    """The header of an image: width and height (pixels), bits per sample, colour type, samples per pixel."""

    width: int
    height: int
    bit_depth: int
    colour_type: int
    channels: int


@kernel
def _unfilter(rows: ByteArray, step: int) -> int:
    """Reverse the filters of rows (n, 1 + bytes) in place; return the first row with an unknown filter, or -1."""
    count, width = rows.shape
    for j in range(count):
        method = rows[j, 0]
        if method > 4:
            return j
        for i in range(1, width):
            left = int(rows[j, i - step]) if i > step else 0
            above = int(rows[j - 1, i]) if j > 0 else 0
            corner = int(rows[j - 1, i - step]) if j > 0 and i > step else 0
            predictor = 0
            if method == 1:
                predictor = left
            elif method == 2:
                predictor = above
            elif method == 3:
                predictor = (left + above) // 2
            elif method == 4:
                to_left, to_above, to_corner = above - corner, left - corner, left + above - 2 * corner
                to_left, to_above, to_corner = abs(to_left), abs(to_above), abs(to_corner)
                predictor = above if to_above <= to_corner else corner
                if to_left <= to_above and to_left <= to_corner:
                    predictor = left
            rows[j, i] = (int(rows[j, i]) + predictor) & 255
    return -1


def _read_chunks(data: bytes, where: Where) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the type and content of each chunk."""
    view, place = memoryview(data), len(SIGNATURE)
    while place + 12 <= len(data):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        end = place + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(view[place + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            raise FieldError("image", f"chunk {kind!r} has a wrong checksum", where=where, allowed=_FILE_KIND.allowed)
        yield kind, view[place + 8 : end]
        if kind == b"IEND":
            return
        place = end + 4
    raise FieldError("image", "ends too early", where=where, allowed="must be a complete PNG file")


def _parse_header(body: memoryview, where: Where) -> _PngHeader:
    """Return the header. Raises `FieldError` for an unsupported image."""
    if len(body) != _HEADER.size:
        raise FieldError("image's header", f"{len(body)} bytes", where=where, allowed="must be 13 bytes")
    width, height, depth, colour, compression, method, interlaced = _HEADER.unpack(body)
    if not (0 < width <= MAX_WIDTH and 0 < height <= MAX_WIDTH):
        allowed = f"must be from 1 to {MAX_WIDTH} each"
        raise FieldError("image (columns, rows)", (width, height), where=where, allowed=allowed)
    channels, bit_depths = _COLOUR_TYPES.get(colour, (0, ()))
    if depth not in bit_depths or compression or method:
        given = f"colour type {colour}, {depth} bits"
        raise FieldError("image", given, where=where, allowed="must be a kind of the PNG specification", remedy=_REMEDY)
    if interlaced:
        raise FieldError("image", "is interlaced", where=where, allowed="must not be", remedy=_REMEDY)
    return _PngHeader(width, height, depth, colour, channels)


def _decode_rows(chunks: list[memoryview], header: _PngHeader, where: Where) -> ByteArray:
    """Return the bytes of the rows (height, pitch) without their filters."""
    row_bytes = (header.width * header.channels * header.bit_depth + 7) // 8
    size = header.height * (row_bytes + 1)
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(b"".join(chunks), size + 1)
    except zlib.error as cause:
        raise FieldError("image's pixels", str(cause), where=where, allowed="must be a complete PNG file") from cause
    if len(raw) != size:
        raise FieldError("image's pixels", f"{len(raw)} bytes", where=where, allowed=f"must be {size} bytes")
    rows = np.frombuffer(bytearray(raw), dtype=np.uint8).reshape(header.height, row_bytes + 1)
    bad = _unfilter(rows, max(header.channels * header.bit_depth // 8, 1))
    if bad >= 0:
        what, allowed = f"filter of the image's row {bad}", "must be from 0 to 4"
        raise FieldError(what, int(rows[bad, 0]), where=where, allowed=allowed)
    return np.ascontiguousarray(rows[:, 1:])


def _unpack_samples(rows: ByteArray, header: _PngHeader) -> AnyArray:
    """Return the samples (height, width, channels) of 8 or 16 bits."""
    width, height, bit_depth, colour_type, channels = header
    if bit_depth == 16:
        return rows.view(">u2").astype(np.uint16).reshape(height, width, channels)
    if bit_depth == 8:
        return rows.reshape(height, width, channels)
    bits = np.unpackbits(rows, axis=1)[:, : width * bit_depth].reshape(height, width, bit_depth)
    values = np.zeros((height, width, 1), dtype=np.uint8)
    for bit in range(bit_depth):
        values[:, :, 0] = 2 * values[:, :, 0] + bits[:, :, bit]
    return values if colour_type == PALETTE else values * np.uint8(255 // (2**bit_depth - 1))


def _to_grey(samples: AnyArray, where: Where) -> AnyArray:
    """Return the grey values (height, width) of colour samples. Raises `FieldError` for other colours."""
    grey = samples[:, :, 0]
    if not (np.array_equal(grey, samples[:, :, 1]) and np.array_equal(grey, samples[:, :, 2])):
        raise FieldError("image", "has colours", where=where, allowed="must be grey", remedy=_REMEDY)
    return grey


def read_png(path: str | os.PathLike[str]) -> AnyArray:
    """Return the grey values (rows, columns) of a PNG file as uint8 or uint16, the top row first.

    Raises `FieldError` for an unreadable, invalid or truncated file, and for an image that is interlaced, has colours
    or is larger than `MAX_WIDTH`.
    """
    name = os.fspath(path)
    where, data = Where(name), read_bytes(name, _FILE_KIND)
    if not data.startswith(SIGNATURE):
        raise FieldError("image", f"begins with {data[:8]!r}", where=where, allowed=_FILE_KIND.allowed, remedy=_REMEDY)
    header, parts, palette = None, list[memoryview](), None
    for tag, body in _read_chunks(data, where):
        if tag == b"IHDR":
            header = _parse_header(body, where)
        elif tag == b"IDAT":
            parts.append(body)
        elif tag == b"PLTE":
            palette = np.frombuffer(body[: len(body) // 3 * 3], dtype=np.uint8).reshape(-1, 3)
    if header is None:
        raise FieldError("image's header", "missing", where=where, allowed="must be a complete PNG file")
    samples = _unpack_samples(_decode_rows(parts, header, where), header)
    if header.colour_type == PALETTE:
        if palette is None or int(samples.max()) >= len(palette):
            raise FieldError("image's palette", "too small", where=where, allowed="must hold every colour that is used")
        return np.ascontiguousarray(_to_grey(palette[samples[:, :, 0]], where))
    if header.colour_type in (COLOUR, COLOUR_ALPHA):
        return np.ascontiguousarray(_to_grey(samples, where))
    return np.ascontiguousarray(samples[:, :, 0])
