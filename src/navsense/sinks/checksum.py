"""XXH32 of bytes, the checksum of blocks in LZ4 frames (xxHash fast digest algorithm, version 0.1.1, seed 0).

Products of two 32-bit numbers are taken in two halves, so that 64 signed bits hold them, compiled and interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navsense.compiled import INTERPRETED, kernel
from navsense.typing import AnyArray, ByteArray

MASK = 0xFFFFFFFF
FIRST, SECOND, THIRD, FOURTH, FIFTH = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
"""The five primes of the algorithm."""

LANES = 4
"""Words that are taken in at once, each into a sum of its own."""


@kernel
def times(value: int, prime: int) -> int:
    """Return the low 32 bits of a product."""
    return (value * (prime & 0xFFFF) + (((value * (prime >> 16)) & 0xFFFF) << 16)) & MASK


@kernel
def turned(value: int, bits: int) -> int:
    """Return 32 bits turned to the left."""
    return ((value << bits) | (value >> (32 - bits))) & MASK


@kernel
def digest(words: AnyArray | Sequence[int], rest: AnyArray | Sequence[int]) -> int:
    """Return the checksum of words of four bytes and of what is left, fewer than four bytes."""
    count, at, state = len(words), 0, FIFTH
    if count >= LANES:
        one, two, three, four = (FIRST + SECOND) & MASK, SECOND, 0, -FIRST & MASK
        while at + LANES <= count:
            one = times(turned((one + times(int(words[at]) & MASK, SECOND)) & MASK, 13), FIRST)
            two = times(turned((two + times(int(words[at + 1]) & MASK, SECOND)) & MASK, 13), FIRST)
            three = times(turned((three + times(int(words[at + 2]) & MASK, SECOND)) & MASK, 13), FIRST)
            four = times(turned((four + times(int(words[at + 3]) & MASK, SECOND)) & MASK, 13), FIRST)
            at += LANES
        state = (turned(one, 1) + turned(two, 7) + turned(three, 12) + turned(four, 18)) & MASK
    state = (state + 4 * count + len(rest)) & MASK
    while at < count:
        state = times(turned((state + times(int(words[at]) & MASK, THIRD)) & MASK, 17), FOURTH)
        at += 1
    for i in range(len(rest)):
        state = times(turned((state + times(int(rest[i]) & 255, FIFTH)) & MASK, 11), FIRST)
    state = times(state ^ (state >> 15), SECOND)
    state = times(state ^ (state >> 13), THIRD)
    return state ^ (state >> 16)


def xxh32(data: ByteArray) -> int:
    """Return the checksum of bytes (n,)."""
    whole = data.size - data.size % 4
    words, rest = data[:whole].view("<i4"), data[whole:].view(np.int8)
    # The interpreter goes through lists faster than through arrays.
    return digest(words.tolist(), rest.tolist()) if INTERPRETED else digest(words, rest)
