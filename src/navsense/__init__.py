"""Simulation of the navigation sensors of robots, their noise and their clocks.

>>> import navsense as ns
>>> world = ns.load("quadrotor.sdf")
>>> run = ns.simulate(world, duration=1.0, seed=7)
>>> run["imu"]["angular_velocity"].shape
(1000, 3)

Names are imported when they are first used, so `import navsense` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of `__all__`, for type checkers
    from navsense import analysis as analysis
    from navsense import calibration as calibration
    from navsense import campaigns as campaigns
    from navsense import clock as clock
    from navsense import demo as demo
    from navsense import devices as devices
    from navsense import environment as environment
    from navsense import factors as factors
    from navsense import faults as faults
    from navsense import motion as motion
    from navsense import noise as noise
    from navsense import parameters as parameters
    from navsense import picture as picture
    from navsense import recordings as recordings
    from navsense import report as report
    from navsense import sensors as sensors
    from navsense import streams as streams
    from navsense import testing as testing
    from navsense.campaigns.computation import campaign as campaign
    from navsense.core.errors import NavsenseError as NavsenseError
    from navsense.core.pose import Pose as Pose
    from navsense.core.readings import Reading as Reading
    from navsense.core.readings import RunChange as RunChange
    from navsense.core.readings import Truth as Truth
    from navsense.fault_file import with_faults as with_faults
    from navsense.motion.driven import State as State
    from navsense.noise.specification import Noise as Noise
    from navsense.parameters import with_parameters as with_parameters
    from navsense.recordings import open as open  # noqa: A004 - a recording is opened as a file is
    from navsense.runner.live import live as live
    from navsense.runner.run import record as record
    from navsense.runner.run import simulate as simulate
    from navsense.sdf import load as load
    from navsense.world import with_switch as with_switch

__version__ = "0.1.0"

_HOME = {
    "NavsenseError": "navsense.core.errors",
    "Noise": "navsense.noise.specification",
    "Pose": "navsense.core.pose",
    "Reading": "navsense.core.readings",
    "RunChange": "navsense.core.readings",
    "State": "navsense.motion.driven",
    "Truth": "navsense.core.readings",
    "campaign": "navsense.campaigns.computation",
    "live": "navsense.runner.live",
    "load": "navsense.sdf",
    "open": "navsense.recordings",
    "record": "navsense.runner.run",
    "simulate": "navsense.runner.run",
    "with_faults": "navsense.fault_file",
    "with_parameters": "navsense.parameters",
    "with_switch": "navsense.world",
}
"""Name -> the module that defines it."""

_MODULES = (
    "analysis",
    "calibration",
    "campaigns",
    "clock",
    "demo",
    "devices",
    "environment",
    "factors",
    "faults",
    "motion",
    "noise",
    "parameters",
    "picture",
    "recordings",
    "report",
    "sensors",
    "streams",
    "testing",
)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - all are strings


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
