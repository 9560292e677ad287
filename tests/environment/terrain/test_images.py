"""PNG files of every supported kind equal Pillow; positions equal Gazebo; damaged files are errors."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from navsense.core.errors import FieldError
from navsense.core.typing import AnyArray, ByteArray
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.png_reader import read_png

pytestmark = pytest.mark.requirement("DVU-2")

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def make_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def predict_paeth(a: int, b: int, c: int) -> int:
    return min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]


def filter_rows(rows: ByteArray, step: int) -> bytes:
    """Return rows with the five filters of the specification in turn."""
    out, above = bytearray(), [0] * rows.shape[1]
    for number, row in enumerate(rows.tolist()):
        method = number % 5
        out.append(method)
        for i, value in enumerate(row):
            a, b, c = (row[i - step] if i >= step else 0), above[i], (above[i - step] if i >= step else 0)
            out.append((value - (0, a, b, (a + b) // 2, predict_paeth(a, b, c))[method]) % 256)
        above = row
    return bytes(out)


def encode_png(
    pixels: AnyArray, colour: int = 0, depth: int = 0, palette: bytes = b"", interlaced: int = 0, cut: int = 1
) -> bytes:
    """Return a PNG file of pixels (rows, columns) or (rows, columns, channels), uint8 or uint16."""
    rows, columns = pixels.shape[:2]
    bits = depth or 8 * pixels.dtype.itemsize
    if bits < 8:
        wide = np.unpackbits(pixels.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - bits :].reshape(rows, -1)
        data, step = np.packbits(wide, axis=1), 1
    else:
        data = pixels.reshape(rows, -1).astype(f">u{bits // 8}").view(np.uint8).reshape(rows, -1)
        step = data.shape[1] // columns
    body = zlib.compress(filter_rows(data, step))
    parts = [make_chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, interlaced))]
    parts += [make_chunk(b"PLTE", palette)] if palette else []
    size = -(-len(body) // cut)
    parts += [make_chunk(b"IDAT", body[k : k + size]) for k in range(0, len(body), size)]
    return SIGNATURE + b"".join(parts) + make_chunk(b"tEXt", b"Comment\0grey") + make_chunk(b"IEND", b"")


def write_image(folder: Path, data: bytes) -> Path:
    path = folder / "bed.png"
    path.write_bytes(data)
    return path


def make_noise(kind: type[np.uint8 | np.uint16], *shape: int) -> AnyArray:
    return np.random.default_rng(5).integers(0, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_greyscale_equals_pillow(kind: type[np.uint8 | np.uint16], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = make_noise(kind, 13, 9)
    path = write_image(tmp_path, encode_png(pixels, cut=3))
    np.testing.assert_array_equal(read_png(path), pixels)
    with image.open(path) as other:
        np.testing.assert_array_equal(read_png(path), np.array(other))
    other = tmp_path / "other.png"  # and vice versa: Pillow writes, navsense reads
    smooth = np.cumsum(np.cumsum(pixels // 64, axis=0, dtype=kind), axis=1, dtype=kind)
    image.fromarray(smooth).save(other, optimize=True)
    np.testing.assert_array_equal(read_png(other), smooth)
    assert read_png(other).dtype == kind


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_bits_are_scaled_to_8(depth: int, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = make_noise(np.uint8, 7, 11) >> (8 - depth)
    path = write_image(tmp_path, encode_png(pixels, depth=depth))
    with image.open(path) as other:
        np.testing.assert_array_equal(read_png(path), np.array(other.convert("L")))
    np.testing.assert_array_equal(read_png(path), pixels * (255 // (2**depth - 1)))


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_grey_colour_images_are_read(
    colour: int, channels: int, kind: type[np.uint8 | np.uint16], tmp_path: Path
) -> None:
    pixels = make_noise(kind, 6, 5, channels)
    pixels[:, :, : min(channels, 3)] = pixels[:, :, :1]
    np.testing.assert_array_equal(read_png(write_image(tmp_path, encode_png(pixels, colour))), pixels[:, :, 0])


def test_grey_palette_images_are_read(tmp_path: Path) -> None:
    pixels = make_noise(np.uint8, 6, 5) >> 6
    path = write_image(tmp_path, encode_png(pixels, 3, 2, bytes([9, 9, 9, 200, 200, 200, 30, 30, 30, 0, 0, 0])))
    np.testing.assert_array_equal(read_png(path), np.array([9, 200, 30, 0])[pixels])
    with pytest.raises(FieldError, match="palette"):
        read_png(write_image(tmp_path, encode_png(pixels, 3, 2, bytes(3))))
    with pytest.raises(FieldError, match="has colours"):
        read_png(write_image(tmp_path, encode_png(pixels, 3, 2, bytes([9, 9, 8] * 4))))


def test_position_and_orientation_equal_gazebo(tmp_path: Path) -> None:
    """The brightest pixel has the height `size`, the first row is north, and the outermost pixels are on the edge."""
    pixels = np.array([[100, 0, 0], [0, 50, 0], [0, 0, 25]], dtype=np.uint8)
    path = write_image(tmp_path, encode_png(pixels))
    bed = Heightmap.from_file(path, (4.0, 8.0, 6.0), (10.0, 20.0, -30.0))
    assert bed.corner == (8.0, 16.0)
    assert bed.spacing == (2.0, 4.0)
    assert (bed.heights + 30.0).tolist() == [[0.0, 0.0, 1.5], [0.0, 3.0, 0.0], [6.0, 0.0, 0.0]]
    assert Heightmap.from_file(path).heights.max() == 1.0


def test_heights_are_sampled_between_pixels(tmp_path: Path) -> None:
    pixels = np.array([[0, 40], [80, 160]], dtype=np.uint16)
    bed = Heightmap.from_file(write_image(tmp_path, encode_png(pixels)), (2.0, 2.0, 16.0), sampling=2)
    assert bed.spacing == (1.0, 1.0)
    assert bed.corner == (-1.0, -1.0)
    assert bed.heights.tolist() == [[8.0, 12.0, 16.0], [4.0, 7.0, 10.0], [0.0, 2.0, 4.0]]


def test_black_image_is_flat(tmp_path: Path) -> None:
    assert not Heightmap.from_file(
        write_image(tmp_path, encode_png(np.zeros((3, 3), np.uint8))), (1.0, 1.0, 5.0)
    ).heights.any()


GOOD = encode_png(make_noise(np.uint8, 5, 5))
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "begins with"),
    "a jpeg": (b"\xff\xd8\xff\xe0 JFIF", "must be a PNG file; write it anew as a grey PNG"),
    "cut off": (GOOD[:-40], "ends too early"),
    "only a signature": (SIGNATURE, "ends too early"),
    "a wrong checksum": (GOOD[:40] + bytes([GOOD[40] ^ 1]) + GOOD[41:], "checksum"),
    "interlaced": (encode_png(make_noise(np.uint8, 5, 5), interlaced=1), "is interlaced"),
    "colours": (encode_png(make_noise(np.uint8, 5, 5, 3), 2), "has colours"),
    "too few pixels": (
        SIGNATURE
        + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 8, 0, 0, 0, 0))
        + make_chunk(b"IDAT", zlib.compress(bytes(50)))
        + make_chunk(b"IEND", b""),
        "50 bytes; must be 90",
    ),
    "a bomb": (
        SIGNATURE
        + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
        + make_chunk(b"IDAT", zlib.compress(bytes(10**7)))
        + make_chunk(b"IEND", b""),
        "must be 6 bytes",
    ),
    "an unknown filter": (
        SIGNATURE
        + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + make_chunk(b"IDAT", zlib.compress(b"\x07\x00"))
        + make_chunk(b"IEND", b""),
        "filter of the image's row 0: 7",
    ),
    "no stream": (
        SIGNATURE
        + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + make_chunk(b"IDAT", b"nothing")
        + make_chunk(b"IEND", b""),
        "pixels",
    ),
    "too wide": (SIGNATURE + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 10**9, 9, 8, 0, 0, 0, 0)), "from 1 to 16384"),
    "an unknown depth": (SIGNATURE + make_chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 5, 0, 0, 0, 0)), "5 bits"),
    "a short header": (SIGNATURE + make_chunk(b"IHDR", b"12"), "2 bytes; must be 13"),
    "no header": (SIGNATURE + make_chunk(b"IEND", b""), "missing"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_image_is_an_error(name: str, tmp_path: Path) -> None:
    data, problem = BAD[name]
    with pytest.raises(FieldError, match=r"bed\.png") as caught:
        read_png(write_image(tmp_path, data))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"size": (1.0, 0.0, 1.0)}, "size"),
        ({"size": (1.0, 1.0, -5.0)}, "size along z"),
        ({"size": (1.0, float("nan"), 1.0)}, "size"),
        ({"sampling": 0}, "sampling"),
    ],
)
def test_impossible_map_is_an_error(arguments: dict[str, float], problem: str, tmp_path: Path) -> None:
    with pytest.raises(FieldError, match=problem):
        Heightmap.from_file(write_image(tmp_path, GOOD), **arguments)


def test_image_that_is_not_square_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match=r"\(9, 5\); must be square"):
        Heightmap.from_file(write_image(tmp_path, encode_png(make_noise(np.uint8, 5, 9))))
    with pytest.raises(FieldError, match="does not exist"):
        Heightmap.from_file(tmp_path / "none.png")


def test_damaged_file_gives_an_image_or_an_error(tmp_path: Path) -> None:
    rng, read = np.random.default_rng(8), 0
    for _ in range(300):
        data = bytearray(GOOD)
        for place in rng.integers(8, len(data), 3):
            data[place] = rng.integers(256)
        try:
            read_png(write_image(tmp_path, bytes(data)))
            read += 1
        except FieldError:
            pass
    assert read < 20
