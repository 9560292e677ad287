"""XXH32 of bytes, the checksum of blocks in LZ4 frames (xxHash fast digest algorithm, version 0.1.1, seed 0).

Products of two 32-bit numbers are taken in two halves, so that 64 signed bits hold them, compiled and interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navsense.kernels import INTERPRETED, kernel
from navsense.typing import AnyArray, ByteArray

MASK = 0xFFFFFFFF
PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
"""The five primes of the algorithm."""

LANES = 4
"""Words that are taken in at once, each into a sum of its own."""


@kernel
def multiply(value: int, prime: int) -> int:
    """Return the low 32 bits of a product."""
    return (value * (prime & 0xFFFF) + (((value * (prime >> 16)) & 0xFFFF) << 16)) & MASK


@kernel
def rotate_left(value: int, bits: int) -> int:
    """Return 32 bits turned to the left."""
    return ((value << bits) | (value >> (32 - bits))) & MASK


@kernel
def digest(words: AnyArray | Sequence[int], rest: AnyArray | Sequence[int]) -> int:
    """Return the checksum of words of four bytes and of what is left, fewer than four bytes."""
    count, at, state = len(words), 0, PRIME_5
    if count >= LANES:
        one, two, three, four = (PRIME_1 + PRIME_2) & MASK, PRIME_2, 0, -PRIME_1 & MASK
        while at + LANES <= count:
            one = multiply(rotate_left((one + multiply(int(words[at]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            two = multiply(rotate_left((two + multiply(int(words[at + 1]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            three = multiply(rotate_left((three + multiply(int(words[at + 2]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            four = multiply(rotate_left((four + multiply(int(words[at + 3]) & MASK, PRIME_2)) & MASK, 13), PRIME_1)
            at += LANES
        state = (rotate_left(one, 1) + rotate_left(two, 7) + rotate_left(three, 12) + rotate_left(four, 18)) & MASK
    state = (state + 4 * count + len(rest)) & MASK
    while at < count:
        state = multiply(rotate_left((state + multiply(int(words[at]) & MASK, PRIME_3)) & MASK, 17), PRIME_4)
        at += 1
    for i in range(len(rest)):
        state = multiply(rotate_left((state + multiply(int(rest[i]) & 255, PRIME_5)) & MASK, 11), PRIME_1)
    state = multiply(state ^ (state >> 15), PRIME_2)
    state = multiply(state ^ (state >> 13), PRIME_3)
    return state ^ (state >> 16)


def xxh32(data: ByteArray) -> int:
    """Return the checksum of bytes (n,)."""
    whole = data.size - data.size % 4
    words, rest = data[:whole].view("<i4"), data[whole:].view(np.int8)
    # The interpreter goes through lists faster than through arrays.
    return digest(words.tolist(), rest.tolist()) if INTERPRETED else digest(words, rest)
