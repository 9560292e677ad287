"""Fault injection: which faults a sensor has, when they act, and what they do to a sample."""

from navsense.faults.injection import Faults
from navsense.faults.schedule import FaultSchedule, ScheduledFault

__all__ = [
    "FaultSchedule",
    "Faults",
    "ScheduledFault",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
