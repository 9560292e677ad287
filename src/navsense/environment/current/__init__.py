"""Ocean currents: velocity of the water (m/s, world frame w) as a function of position and time.

Each kind is a field with `at(position_w, time)` and `rotate(rotation)`. Rotations must be about the vertical, because
the surface of the water is level. East and north components are rotated into the world's axes by `heading`, the heading
of the world's origin. Depth is `surface` - z. `realise` returns the field of a random current in one run. A uniform
current is an `environment.base.UniformField`. An `environment.base.FieldSum` adds currents.

| kind | model | outside its data |
|---|---|---|
| `GaussMarkovCurrent` | random speed and direction | before the start: error |
| `StratifiedCurrent` | table by depth | nearest row or error |
| `StratifiedGaussMarkovCurrent` | random speed and direction per layer | nearest layer or error |
| `DepthScaledCurrent` | another current times a factor by depth | nearest factor or error |
| `TidalCurrent` | flood and ebb from constituents or a tide table | table: error |
| `TidalEllipses` | constituents as ellipses | - |
| `GriddedCurrent` | grid in space and time | nearest point or error, per axis |
| `BoundaryLayer` | another current with a boundary layer at the bed | below the bed: zero |
| `CurrentReplay` | record by time | last velocity or error |

`UuvGaussMarkovProcess` is the random process of the UUV Simulator.
"""

from navsense.environment.current.base import realise
from navsense.environment.current.gauss_markov import GaussMarkovCurrent, GaussMarkovProcess, UuvGaussMarkovProcess
from navsense.environment.current.gridded import GriddedCurrent
from navsense.environment.current.replay import CurrentReplay
from navsense.environment.current.stratified import (
    BoundaryLayer,
    DepthScaledCurrent,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
)
from navsense.environment.current.tidal import (
    HarmonicFlow,
    TidalConstituent,
    TidalCurrent,
    TidalEllipse,
    TidalEllipses,
    TideTable,
)

__all__ = [
    "BoundaryLayer",
    "CurrentReplay",
    "DepthScaledCurrent",
    "GaussMarkovCurrent",
    "GaussMarkovProcess",
    "GriddedCurrent",
    "HarmonicFlow",
    "StratifiedCurrent",
    "StratifiedGaussMarkovCurrent",
    "TidalConstituent",
    "TidalCurrent",
    "TidalEllipse",
    "TidalEllipses",
    "TideTable",
    "UuvGaussMarkovProcess",
    "realise",
]
