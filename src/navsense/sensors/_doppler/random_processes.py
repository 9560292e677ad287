"""What a velocity log draws, and in which rows of a block the draws of its pings stand.

| process | draws |
|---|---|
| `long_term` of `bottom`, `water` | once for a serial number: a scale and three offsets |
| `misalignment` of the `mounting` | once: three angles |
| `white` of `velocity_x`, `_y`, `_z` | one a tick, of the classic plug-ins, whose noise is on the solved velocity |
| `white` of `bottom_k`, `water_k` | one a tick and beam |
| `lock`, `dropout` of `beam_k` | one a tick and beam, uniform |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navsense.random_streams import RandomProcess
from navsense.sensors._doppler import ping
from navsense.sensors._doppler.track import DopplerTrack
from navsense.typing import IntArray


def list_processes(
    beams: int, bottom: DopplerTrack, water: DopplerTrack, dialect: int, *, locks: bool, drops: bool, turns: bool
) -> tuple[RandomProcess, ...]:
    """Return the random processes of so many beams beside those of their channels, in the order of their draws.

    `locks`: a beam is locked by chance; `drops`: its pings drop out; `turns`: serial numbers are misaligned.
    """
    axes = [RandomProcess(f"velocity_{a}", "white") for a in "xyz"] if dialect != ping.PHYSICAL else []
    rough = (("bottom", bottom, ping.UUV), ("water", water, ping.DSROS))
    normal = [what for what, track, not_by in rough if track.is_white and dialect != not_by]
    found = [RandomProcess(f"{what}_{i}", "white") for what in normal for i in range(beams)]
    uniform = [what for what, acts in (("lock", locks), ("dropout", drops)) if acts]
    found += [RandomProcess(f"beam_{i}", what, kind="uniform") for what in uniform for i in range(beams)]
    once = [
        RandomProcess(channel, name, initial=count, per_tick=0)
        for channel, name, count, acts in (
            ("bottom", "long_term", 4, bottom.long_term_scale + bottom.long_term_offset > 0.0),
            ("water", "long_term", 4, water.long_term_scale + water.long_term_offset > 0.0),
            ("mounting", "misalignment", 3, turns),
        )
        if acts
    ]
    return (*once, *axes, *found)


def _find_rows(own: Sequence[RandomProcess], beams: int, what: str, process: str) -> IntArray:
    """Return the rows of a process's draws, one a beam or axis; -1 where it does not act."""
    names = [p for p in own if p.per_tick]
    found = [i for i, p in enumerate(names) if p.name == process and p.channel.rpartition("_")[0] == what]
    return np.array(found or [-1] * beams, dtype=np.int64)


def make_draw_tables(own: Sequence[RandomProcess], beams: int, depth: int) -> tuple[IntArray, IntArray]:
    """Return rows of draws: (4, k) of each beam as `ping.hear` takes them, and (3,) or more of each axis.

    `depth` rows, those of the channels, stand before the ones of `own`.
    """
    given = (("bottom", "white"), ("water", "white"), ("beam", "lock"), ("beam", "dropout"), ("velocity", "white"))
    found = [_find_rows(own, beams, *one) for one in given]
    *each, axes = (np.where(rows < 0, rows, rows + depth) for rows in found)
    return np.array(each), axes
