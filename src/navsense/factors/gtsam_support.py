"""GTSAM as an optional dependency: class checks without an import, a lazy import, and GTSAM's print formats.

The module never imports GTSAM before a factor is added to one of its graphs. An object of a GTSAM class exists only
after somebody imported GTSAM, so the class checks need no import either.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from navsense.core.errors import FactorError

_INDEX_BITS = 56


def is_gtsam(value: object, name: str) -> bool:
    """Return True if a value is an instance of the class `name` of GTSAM."""
    library = sys.modules.get("gtsam")
    return library is not None and isinstance(value, vars(library)[name])


def is_gtsam_noise(value: object) -> bool:
    """Return True if a value is a noise model of GTSAM."""
    library = sys.modules.get("gtsam")
    return library is not None and isinstance(value, library.noiseModel.Base)


def require_gtsam(what: str) -> Any:
    """Return the module `gtsam`. Raises `FactorError` if it is not installed; `what` names the caller."""
    try:
        import gtsam
    except ImportError as cause:
        remedy = "pip install 'navsense[gtsam]'; evaluateError, unwhitenedError and error need arrays alone"
        raise FactorError(what, "needs gtsam, which is not installed", remedy=remedy) from cause
    return gtsam


def format_key(key: int) -> str:
    """Return a key as GTSAM's default formatter prints it: letter and index of a symbol, or the number."""
    letter, index = key >> _INDEX_BITS, key & ((1 << _INDEX_BITS) - 1)
    return bytes([letter]).decode("utf-8", "replace") + str(index) if letter else str(key)


def format_named_vector(name: str, row: Sequence[float]) -> str:
    """Return a line with a name and a vector, nine significant digits each."""
    return f"{name}[{'; '.join(f'{part:.9g}' for part in row)}];\n"


def format_named_matrix(name: str, rows: Sequence[Sequence[float]]) -> str:
    """Return a name and a matrix, one line per row."""
    return f"{name}[\n\t" + ";\n\t".join(", ".join(f"{part:.9g}" for part in row) for row in rows) + "\n]\n"
