"""Currents by chance: a description of one, and the function of place and time that it is in one run.

A random current is a function of (seed, run, name, time): whoever asks gets the same velocity at an instant, in
whatever order and blocks. A description knows neither seed nor run and has no velocity; `opened` gives the field of one
run. Fields without chance are the same in every run, and `opened` leaves them as they are.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from navsense.environment.base import Sum, VectorField
from navsense.errors import FieldError
from navsense.streams import checked_run, checked_seed


@runtime_checkable
class RandomField(Protocol):
    """A field that differs from run to run, or holds one that does."""

    @property
    def random_names(self) -> tuple[str, ...]:
        """Return the names that key its streams: two of one name in a world would be the same current."""
        ...

    def opened(self, seed: int, run: int) -> VectorField:
        """Return the field (m/s) of one run."""
        ...


def random_names(field: VectorField) -> tuple[str, ...]:
    """Return the names of the random currents in a field, none for one without chance."""
    if isinstance(field, Sum):
        return tuple(name for one in field.fields for name in random_names(one))
    return field.random_names if isinstance(field, RandomField) else ()


def opened(field: VectorField, seed: int, run: int = 0) -> VectorField:
    """Return the field (m/s) of one run: a function of place and time, the same whoever asks.

    Raises `FieldError` for two random currents of one name, and `SimulationError` for what is no seed or run.
    """
    seed, run = checked_seed(seed), checked_run(run)
    names = random_names(field)
    for name in names:
        if names.count(name) > 1:
            allowed = "must be the name of one random current: two would share their chance"
            raise FieldError("name of a current", name, allowed=allowed, remedy="give each a name of its own")
    return _opened(field, seed, run)


def _opened(field: VectorField, seed: int, run: int) -> VectorField:
    if isinstance(field, Sum):
        return Sum(tuple(_opened(one, seed, run) for one in field.fields))
    return field.opened(seed, run) if isinstance(field, RandomField) else field


def not_opened(name: str) -> FieldError:
    """Return the error of a random current that is asked for a velocity before it was opened."""
    return FieldError(
        "random current",
        name,
        allowed="has a velocity in a run only",
        remedy="ask navsense.environment.current.opened(current, seed, run)",
    )
