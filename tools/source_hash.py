"""Print a short hash of all files below a folder except bytecode: names and contents, in a fixed order.

Usage: python tools/source_hash.py [FOLDER]
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path


def compute_source_hash(folder: Path) -> str:
    """Return 16 hexadecimal digits that change whenever a file below `folder` does, or moves."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        digest.update(f"{len(name)}:{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(compute_source_hash(Path(sys.argv[1] if len(sys.argv) > 1 else "src")))
