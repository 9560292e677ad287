"""XXH32, the checksum of LZ4 blocks (xxHash fast digest algorithm, version 0.1.1, seed 0)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navsense.core.kernels import INTERPRETED, kernel
from navsense.core.typing import AnyArray, ByteArray

MASK_32 = 0xFFFFFFFF

PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
"""The five primes of the algorithm."""

LANES = 4
"""Words that are processed together, each with its accumulator."""


@kernel
def multiply(value: int, prime: int) -> int:
    """Return the low 32 bits of a product."""
    return (value * (prime & 0xFFFF) + (((value * (prime >> 16)) & 0xFFFF) << 16)) & MASK_32


@kernel
def rotate_left(value: int, bits: int) -> int:
    """Return 32 bits rotated to the left."""
    return ((value << bits) | (value >> (32 - bits))) & MASK_32


@kernel
def mix_word(lane: int, word: int) -> int:
    """Return the accumulator of a lane after a word."""
    return multiply(rotate_left((lane + multiply(word & MASK_32, PRIME_2)) & MASK_32, 13), PRIME_1)


@kernel
def xxh32_words(words: AnyArray | Sequence[int], rest: AnyArray | Sequence[int]) -> int:
    """Return the checksum of words of four bytes and of the remaining bytes, fewer than four."""
    count, word, state = len(words), 0, PRIME_5
    if count >= LANES:
        lane_1, lane_2, lane_3, lane_4 = (PRIME_1 + PRIME_2) & MASK_32, PRIME_2, 0, -PRIME_1 & MASK_32
        while word + LANES <= count:
            lane_1, lane_2 = mix_word(lane_1, int(words[word])), mix_word(lane_2, int(words[word + 1]))
            lane_3, lane_4 = mix_word(lane_3, int(words[word + 2])), mix_word(lane_4, int(words[word + 3]))
            word += LANES
        state = (
            rotate_left(lane_1, 1) + rotate_left(lane_2, 7) + rotate_left(lane_3, 12) + rotate_left(lane_4, 18)
        ) & MASK_32
    state = (state + 4 * count + len(rest)) & MASK_32
    while word < count:
        state = multiply(rotate_left((state + multiply(int(words[word]) & MASK_32, PRIME_3)) & MASK_32, 17), PRIME_4)
        word += 1
    for i in range(len(rest)):
        state = multiply(rotate_left((state + multiply(int(rest[i]) & 255, PRIME_5)) & MASK_32, 11), PRIME_1)
    state = multiply(state ^ (state >> 15), PRIME_2)
    state = multiply(state ^ (state >> 13), PRIME_3)
    return state ^ (state >> 16)


def xxh32(data: ByteArray) -> int:
    """Return the checksum of bytes (n,)."""
    size = data.size - data.size % 4
    # Signed, so that the kernel has integers of one type; `& MASK_32` and `& 255` remove the sign.
    words, rest = data[:size].view("<i4"), data[size:].view(np.int8)
    # Without compilation, lists are faster than arrays.
    return xxh32_words(words.tolist(), rest.tolist()) if INTERPRETED else xxh32_words(words, rest)
