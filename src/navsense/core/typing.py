"""Array aliases. The name gives the shape; the element type is float64, unless the name contains another."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Times: TypeAlias = NDArray[np.float64]
"""(n,) seconds since the start of the run."""

Vectors: TypeAlias = NDArray[np.float64]
"""(n, 3), one vector a row."""

Quaternions: TypeAlias = NDArray[np.float64]
"""(n, 4), unit Hamilton quaternions, w x y z, one a row."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
UInt64Array: TypeAlias = NDArray[np.uint64]
BoolArray: TypeAlias = NDArray[np.bool_]
ByteArray: TypeAlias = NDArray[np.uint8]
AnyArray: TypeAlias = NDArray[Any]

Vector: TypeAlias = tuple[float, float, float]
"""One vector as floats, where a spec has to be hashable."""

Quaternion: TypeAlias = tuple[float, float, float, float]
"""One unit quaternion w x y z as floats."""
