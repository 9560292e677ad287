"""Ocean currents: velocities of the water (m/s, world frame w) as functions of position and time.

Each kind is a field with `at(position_w, time)` and `turned(rotation)`, the latter about the vertical: water is level.
Directions and components towards east and north are turned into the world's axes by `heading`, that of the world's
origin. Depth is `surface` less z. A random current is a description until `realise` makes it the field of one run.
A uniform current is an `environment.base.UniformField`; an `environment.base.FieldSum` adds currents.

| kind | what | outside its data |
|---|---|---|
| `GaussMarkovCurrent` | random speed and direction; `UuvGaussMarkovProcess`: UUV Simulator | before the start: error |
| `StratifiedCurrent` | layers from a table by depth | nearest row, or error |
| `StratifiedGaussMarkovCurrent` | layers that wander each by itself | nearest layer, or error |
| `DepthScaledCurrent` | another current times a factor by depth | nearest factor, or error |
| `TidalCurrent` | flood and ebb from constituents or a tide table | table: error; constituents: none |
| `TidalEllipses` | constituents that turn round | none |
| `GriddedCurrent` | a grid of space and time | error or nearest points, for each of time, horizontal, vertical |
| `BoundaryLayer` | another current, slower towards the bed | below the bed: still |
| `CurrentReplay` | a record by time | error, or the end's velocity |
"""

from navsense.environment.current.base import realise
from navsense.environment.current.boundary import BoundaryLayer
from navsense.environment.current.gauss_markov import GaussMarkovCurrent, GaussMarkovProcess, UuvGaussMarkovProcess
from navsense.environment.current.gridded import GriddedCurrent
from navsense.environment.current.replay import CurrentReplay
from navsense.environment.current.stratified import DepthScaledCurrent, StratifiedCurrent, StratifiedGaussMarkovCurrent
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
