"""GTSAM's way to print keys, vectors and matrices: nine digits, `r0` for a symbol."""

from __future__ import annotations

from collections.abc import Sequence

_INDEX_BITS = 56


def key_text(key: int) -> str:
    """Return a key as GTSAM's default formatter does: a symbol's letter and index, or the number."""
    letter, index = key >> _INDEX_BITS, key & ((1 << _INDEX_BITS) - 1)
    return bytes([letter]).decode("utf-8", "replace") + str(index) if letter else str(key)


def row_text(row: Sequence[float], between: str = "; ") -> str:
    """Return numbers at nine digits."""
    return between.join(f"{part:.9g}" for part in row)


def vector_text(what: str, row: Sequence[float]) -> str:
    """Return a line with a name and a vector."""
    return f"{what}[{row_text(row)}];\n"


def matrix_text(what: str, rows: Sequence[Sequence[float]]) -> str:
    """Return a name and a matrix, a line for each of its rows."""
    return f"{what}[\n\t" + ";\n\t".join(row_text(row, ", ") for row in rows) + "\n]\n"
