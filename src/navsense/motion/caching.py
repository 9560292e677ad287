"""A motion of which single instants are remembered.

A motion that a caller drives knows its last step alone. A sensor that goes by an instant that is past, the one at which
its reference was taken, asks for it by itself at every block, and so finds it again.
"""

from __future__ import annotations

from navsense.motion.base import Motion, MotionBlock
from navsense.typing import Times

CACHED_INSTANTS = 4
"""Instants that are remembered: the last that were asked for by themselves."""


class CachedMotion:
    """The motion `base` as one sensor asks for it: an instant asked for by itself is kept while it is asked again."""

    def __init__(self, base: Motion) -> None:
        """Remember nothing yet."""
        self.base = base
        self._kept: dict[float, MotionBlock] = {}

    @property
    def end(self) -> float:
        """Last instant (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the truth at instants (n,) s: of the base, or as it was where the base was asked before.

        Raises `MotionError` where the base does.
        """
        if time.shape[0] != 1:
            return self.base.at(time)
        kept, instant = self._kept, time.item()
        block = kept.pop(instant, None) or self.base.at(time)
        kept[instant] = block
        if len(kept) > CACHED_INSTANTS:
            del kept[next(iter(kept))]
        return block
