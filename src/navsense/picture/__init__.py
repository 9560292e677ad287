"""A world on one sheet: its ground seen from above, the tracks on it, and the water's motion.

`draw` writes it; `navsense describe WORLD --picture FILE` does the same. Needs matplotlib, the extra `picture`.
"""

from navsense.picture.draw import check, draw

__all__ = ["check", "draw"]
