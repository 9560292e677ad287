"""Tables of the 256-level ziggurat for standard normals in double precision (Marsaglia and Tsang 2000).

The values are those of NumPy's generators (numpy/random, `ziggurat_constants.h`, BSD-3-Clause). They fix the normals
bit for bit. The file `ziggurat.txt` has one level per line: largest accepted integer, width, height.
"""

from pathlib import Path

import numpy as np

TAIL = 3.654152885361009
"""Where the last level begins."""

INVERSE_TAIL = 0.2736612373297583
"""1 / TAIL."""

_LEVELS = [line.split() for line in (Path(__file__).parent / "ziggurat.txt").read_text(encoding="ascii").splitlines()]

ACCEPT = np.array([int(accept) for accept, _, _ in _LEVELS], dtype=np.uint64)
WIDTH = np.array([float(width) for _, width, _ in _LEVELS])
HEIGHT = np.array([float(height) for _, _, height in _LEVELS])
