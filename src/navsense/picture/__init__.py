"""A picture of a world: its ground from above, the tracks of its vehicles, and the current.

`draw` writes it; `navsense describe WORLD --picture FILE` does the same. `draw` needs matplotlib, the extra `picture`.
The report uses `ground` and `tracks` without it.
"""

from navsense.picture.draw import check, draw

__all__ = ["check", "draw"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
