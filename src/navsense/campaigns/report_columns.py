"""Columns that the report of a campaign shows, and the sensor whose declared noise a column has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from navsense.core.errors import SimulationError, Where
from navsense.core.names import suggest_name
from navsense.world import MountedSensor, World


@dataclass(frozen=True)
class ReportColumns:
    """The columns of `reduce` that the report shows.

    time: the column with the time (s) of the arrays over time; "" for none.
    errors: columns with errors, (time,) or (time, axis).
    deviations: by column with errors, the column with the standard deviations of the estimate, of the same shape.
    nees, nis: degrees of freedom by column.
    tau: the column with the averaging times (s) of Allan deviations.
    allan: by column with Allan deviations, (tau,) or (tau, axis), the column with the degrees of freedom; "" for none.
    declared: by column with Allan deviations, the array of a sensor with its declared noise: `imu.angular_velocity`,
        or `imu.angular_velocity.2` for one of its components.
    units: units by column or by path of the sweep.
    axes: names of the components by column.
    places: where a file names a column, for errors.

    >>> columns = ns.campaigns.ReportColumns(errors=("drift",), nees={"nees": 2}, units={"drift": "m"})
    >>> columns.list_columns()
    ['drift', 'nees']
    """

    time: str = "time"
    errors: tuple[str, ...] | None = None
    deviations: Mapping[str, str] = field(default_factory=dict)
    nees: Mapping[str, int] = field(default_factory=dict)
    nis: Mapping[str, int] = field(default_factory=dict)
    tau: str = "tau"
    allan: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)

    def list_columns(self) -> list[str]:
        """Return the columns that must exist: all that are named here, but neither `time` nor `tau` by default."""
        names = [*(self.errors or ()), *self.nees, *self.nis, *self.allan, *filter(None, self.allan.values())]
        names += [*self.deviations, *self.deviations.values()]
        names += [self.time] if self.time not in ("", "time") else []
        names += [self.tau] if self.allan or self.tau != "tau" else []
        return list(dict.fromkeys([*names, *self.units, *self.axes]))


def find_declared_noise(world: World, path: str) -> tuple[MountedSensor, str, slice]:
    """Return the sensor, the array and the components that a path of `declared` names. Raises `SimulationError`."""
    name, _, rest = path.partition(".")
    array, _, index = rest.partition(".")
    sensor = world.sensor(name)
    noises = sensor.spec.noise()
    if array not in noises:
        allowed = f"must be one of {', '.join(noises)}" if noises else f"{sensor.name} declares no noise"
        raise SimulationError(f"array of {sensor.name}", array, allowed=allowed, remedy=suggest_name(array, noises))
    count = len(noises[array])
    if index and not (index.isdecimal() and int(index) < count):
        raise SimulationError(f"component of {array}", index, allowed=f"must be from 0 to {count - 1}")
    return sensor, array, slice(int(index), int(index) + 1) if index else slice(None)
