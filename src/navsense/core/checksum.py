"""Files of machine code that end in a checksum. Numba would run a damaged file, which could crash the process."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def append_checksum(content: bytes) -> bytes:
    """Return the content of a file with its checksum at the end."""
    return content + hashlib.sha256(content).digest()


def read_checked(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file without its checksum.

    Raises `ValueError` if the file does not end in its checksum, `OSError` if it cannot be read.
    """
    stored, length = Path(path).read_bytes(), hashlib.sha256().digest_size
    if append_checksum(stored[:-length]) != stored:
        raise ValueError(f"{path} is damaged")
    return stored[:-length]
