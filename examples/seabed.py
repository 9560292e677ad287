"""The sea bed of auv_survey.sdf and the track of its vehicle: writes out/seabed.png, prints the waypoints.

    bed(x, y) = slope + ridges + hills + sand waves + pockmarks             m, the surface at 0; x east, y north
    psi(u)    = pi (u - sin(2 pi u) / (2 pi)),   u from 0 to 1              a turn of 180 degrees, smooth at both ends

The bed is fictitious. Hills are gradient noise in octaves (Perlin, *An Image Synthesizer*, 1985). The image maps the
heights from the lowest to the highest to 16 bits. Its bytes are the same on every machine.

python examples/seabed.py
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

SIDE = 512.0
"""Side (m) of the square around the world origin."""

NODES = 257
"""Heights per side: 2 m apart, and 2^n + 1 as Gazebo requires."""

POCKMARKS = ((34.0, -18.0, 5.0, 15.0), (-62.0, 88.0, 3.0, 11.0), (88.0, 112.0, 3.6, 12.0), (-150.0, -130.0, 4.0, 16.0))
"""East, north, depth and radius (m)."""

LEGS, LEG_SPACING, SPEED, HEIGHT = 6, 40.0, 1.5, 13.0
"""Number of legs, their spacing (m), speed (m/s), and mean height above the bed (m)."""

STEP, DURATION, RAMP = 10.0, 1560.0, 20.0
"""Times in s: between waypoints, of the complete survey, and of acceleration and deceleration."""

WINDOW = 40.0
"""Distance (m) before and after over which the vehicle averages the bed, so that it ignores small features."""


@cache
def compute_gradient(octave: int, i: int, j: int) -> tuple[float, float]:
    """Return the unit vector of a node of the noise."""
    angle = 2.0 * math.pi * int.from_bytes(blake2b(f"{octave} {i} {j}".encode(), digest_size=4).digest()) / 2.0**32
    return math.cos(angle), math.sin(angle)


def compute_noise(octave: int, x: float, y: float) -> float:
    """Return gradient noise about 0, with nodes 1 apart."""
    i, j = math.floor(x), math.floor(y)
    u, v = x - i, y - j
    a, b = (w * w * w * (w * (6.0 * w - 15.0) + 10.0) for w in (u, v))
    sw, se, nw, ne = (compute_gradient(octave, i + east, j + north) for north in (0, 1) for east in (0, 1))
    south = (1.0 - a) * (sw[0] * u + sw[1] * v) + a * (se[0] * (u - 1.0) + se[1] * v)
    top = (1.0 - a) * (nw[0] * u + nw[1] * (v - 1.0)) + a * (ne[0] * (u - 1.0) + ne[1] * (v - 1.0))
    return south + b * (top - south)


def compute_bed_height(x: float, y: float) -> float:
    """Return the height (m) of the bed, negative below the surface."""
    slope = -44.0 - 0.034 * x + 0.006 * y
    across = (x - 0.4 * y + 90.0 * compute_noise(9, x / 210.0, y / 210.0)) / 130.0
    crest = 1.0 - 2.0 * math.sqrt(math.sin(math.pi * across) ** 2 + 0.01)
    ridges = 2.4 * crest * min(max(0.7 + 1.6 * compute_noise(8, x / 190.0 + 0.4, y / 190.0 + 0.2), 0.1), 1.3)
    hills = sum(5.5 * 0.5**k * compute_noise(k, x * 2.0**k / 120.0 + 0.3, y * 2.0**k / 120.0 + 0.7) for k in range(4))
    waves = 0.25 * math.sin(2.0 * math.pi * (y + 12.0 * compute_noise(7, x / 60.0, y / 60.0)) / 17.0)
    marks = 0.0
    for east, north, depth, radius in POCKMARKS:
        share = math.hypot(x - east, y - north) / radius
        marks += 0.12 * depth * math.exp(-8.0 * (share - 1.7) ** 2) - depth * math.exp(-(share**2))
    return slope + ridges + hills + waves * (0.5 + max(compute_noise(6, x / 150.0, y / 150.0), 0.0)) + marks


def compute_heights() -> list[list[float]]:
    """Return the heights (m) of all nodes, northernmost row first."""
    places = [SIDE * (k / (NODES - 1) - 0.5) for k in range(NODES)]
    return [[compute_bed_height(x, y) for x in places] for y in reversed(places)]


def store_uncompressed(data: bytes) -> bytes:
    """Return an uncompressed zlib stream: the same bytes with any version of zlib."""
    parts = [data[k : k + 65535] for k in range(0, len(data), 65535)]
    blocks = (struct.pack("<BHH", part is parts[-1], len(part), 65535 - len(part)) + part for part in parts)
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))


def encode_png(rows: list[list[float]]) -> bytes:
    """Return the heights as a 16-bit grey image: 0 the lowest, 65535 the highest."""
    low, high = (pick(pick(row) for row in rows) for pick in (min, max))
    grey = [[round(65535.0 * (height - low) / (high - low)) for height in row] for row in rows]
    lines = b"".join(b"\0" + struct.pack(f">{NODES}H", *row) for row in grey)
    header = struct.pack(">IIBBBBB", NODES, NODES, 16, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", store_uncompressed(lines)), (b"IEND", b""))
    parts = (struct.pack(">I", len(body)) + kind + body for kind, body in chunks)
    sums = (struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(part + check for part, check in zip(parts, sums, strict=True))


def compute_turn_angle(u: float) -> float:
    """Return the angle (rad) of a turn at the share `u` of its length."""
    return math.pi * u - 0.5 * math.sin(2.0 * math.pi * u)


def integrate_turn(u: float, count: int = 200) -> tuple[float, float]:
    """Return the distance across and ahead of a turn of length 1 at `u`, by Simpson's rule."""
    weights = [1.0, *(4.0 if k % 2 else 2.0 for k in range(1, count)), 1.0]
    angles = [compute_turn_angle(u * k / count) for k in range(count + 1)]
    scale = u / (3.0 * count)
    across, ahead = (scale * sum(w * f(a) for w, a in zip(weights, angles, strict=True)) for f in (math.sin, math.cos))
    return across, ahead


TURN = LEG_SPACING / integrate_turn(1.0)[0]
"""Length (m) of a turn."""

LEG = (SPEED * (DURATION - RAMP) - (LEGS - 1) * TURN) / LEGS
"""Length (m) of a leg."""


def compute_position(s: float) -> tuple[float, float, float]:
    """Return x, y (m) and the direction (rad from east to north) after `s` metres."""
    number = min(int(s / (LEG + TURN)), LEGS - 1)
    rest, west = s - number * (LEG + TURN), LEG_SPACING * (number - 0.5 * (LEGS - 1))
    north = 1.0 if number % 2 == 0 else -1.0
    if rest <= LEG:
        return west, north * (rest - 0.5 * LEG), 0.5 * math.pi * north
    across, ahead = integrate_turn((rest - LEG) / TURN)
    angle = 0.5 * math.pi - compute_turn_angle((rest - LEG) / TURN)
    return west + TURN * across, north * (0.5 * LEG + TURN * ahead), north * angle


def compute_distance(t: float) -> float:
    """Return the distance (m) after `t` seconds: from rest, and to rest at the end."""

    def ramp(t: float) -> float:
        u = min(t / RAMP, 1.0)
        started = 0.5 * u * u + (math.cos(2.0 * math.pi * u) - 1.0) / (4.0 * math.pi**2)
        return SPEED * (RAMP * started + max(t - RAMP, 0.0))

    total = ramp(DURATION) - 0.5 * SPEED * RAMP
    return ramp(t) if t < 0.5 * DURATION else total - ramp(DURATION - t)


def compute_height(s: float) -> float:
    """Return the height (m) of the vehicle after `s` metres: `HEIGHT` above the mean of the bed around."""
    total = 0.0
    for k in range(-10, 11):
        x, y, _ = compute_position(min(max(s + WINDOW * k / 10.0, 0.0), compute_distance(DURATION)))
        total += compute_bed_height(x, y) * (1.0 - abs(k) / 11.0) / 11.0
    return total + HEIGHT


def format_waypoints() -> Iterator[str]:
    """Yield the track as SDF elements: metres and degrees, with the heading along the track."""
    for k in range(int(DURATION / STEP) + 1):
        s = compute_distance(k * STEP)
        x, y, heading = compute_position(s)
        climb = compute_height(s + 1.0) - compute_height(s - 1.0)
        numbers = (x, y, compute_height(s), 0.0, -math.degrees(math.atan(0.5 * climb)), math.degrees(heading))
        pose = " ".join(f"{number:.2f}" for number in numbers).replace("-0.00", "0.00")
        yield f'<navsense:waypoint time="{k * STEP:g}">{pose}</navsense:waypoint>'


def main() -> None:
    """Write the image, and print the values for the world file."""
    rows = compute_heights()
    low, high = (pick(pick(row) for row in rows) for pick in (min, max))
    picture = encode_png(rows)
    path = Path("out", "seabed.png")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(picture)
    for line in format_waypoints():
        print(f"        {line}")
    clear = [
        compute_height(s) - compute_bed_height(*compute_position(s)[:2])
        for s in range(0, int(compute_distance(DURATION)), 5)
    ]
    print(f"the vehicle is {min(clear):.1f} to {max(clear):.1f} m above the bed")
    assert min(clear) > 9.0
    assert max(clear) < 20.0
    print(f"wrote {path}: {len(picture)} bytes; from {low:.3f} to {high:.3f} m")


if __name__ == "__main__":
    main()
