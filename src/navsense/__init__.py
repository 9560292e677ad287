"""navsense: navigation sensors with true errors, honest clocks and one seed.

>>> import navsense as ns
>>> world = ns.load("quadrotor.sdf")
>>> run = ns.simulate(world, duration=1.0, seed=7)
>>> run["imu"]["angular_velocity"].shape
(1000, 3)

Names are imported when first used, so that `import navsense` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from navsense import calibration, factors, recordings, sensors, testing
    from navsense.core.errors import NavsenseError
    from navsense.core.pose import Pose
    from navsense.core.readings import Reading, Truth
    from navsense.fault_file import with_faults
    from navsense.motion.driven import State
    from navsense.noise.specification import Noise
    from navsense.recordings import open  # noqa: A004 - a recording is opened as a file is
    from navsense.runner.live import live
    from navsense.runner.run import record, simulate
    from navsense.sdf import load

__version__ = "0.1.0"

_HOME = {
    "NavsenseError": "navsense.core.errors",
    "Noise": "navsense.noise.specification",
    "Pose": "navsense.core.pose",
    "Reading": "navsense.core.readings",
    "State": "navsense.motion.driven",
    "Truth": "navsense.core.readings",
    "live": "navsense.runner.live",
    "load": "navsense.sdf",
    "open": "navsense.recordings",
    "record": "navsense.runner.run",
    "simulate": "navsense.runner.run",
    "with_faults": "navsense.fault_file",
}

_MODULES = ("calibration", "factors", "recordings", "sensors", "testing")

__all__ = [
    "NavsenseError",
    "Noise",
    "Pose",
    "Reading",
    "State",
    "Truth",
    "calibration",
    "factors",
    "live",
    "load",
    "open",
    "record",
    "recordings",
    "sensors",
    "simulate",
    "testing",
    "with_faults",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"navsense.{name}")
    raise AttributeError(f"module 'navsense' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted((*__all__, "__version__", "__doc__"))
