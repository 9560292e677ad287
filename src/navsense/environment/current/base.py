"""Currents by chance: a description of one, and the function of place and time that it is in one run.

A random current is a function of (seed, run, name, time): whoever asks gets the same velocity at an instant, in
whatever order and blocks. A description knows neither seed nor run and has no velocity. `realise` gives the field of
one run. Fields without chance are the same in every run, and `realise` leaves them as they are.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from navsense.environment.base import FieldSum, VectorField
from navsense.errors import FieldError
from navsense.random_streams import check_run, check_seed


@runtime_checkable
class RandomField(Protocol):
    """A field that differs from run to run, or holds one that does."""

    @property
    def random_names(self) -> tuple[str, ...]:
        """Return the names that key its streams: two of one name in a world would be the same current."""
        ...

    def realise(self, seed: int, run: int) -> VectorField:
        """Return the field (m/s) of one run."""
        ...


def list_random_names(field: VectorField) -> tuple[str, ...]:
    """Return the names of the random currents in a field, none for one without chance."""
    if isinstance(field, FieldSum):
        return tuple(name for one in field.fields for name in list_random_names(one))
    return field.random_names if isinstance(field, RandomField) else ()


def realise(field: VectorField, seed: int, run: int = 0) -> VectorField:
    """Return the field (m/s) of one run: a function of place and time, the same whoever asks.

    Raises `FieldError` for two random currents of one name, and `SimulationError` for what is no seed or run.
    """
    seed, run = check_seed(seed), check_run(run)
    names = list_random_names(field)
    for name in names:
        if names.count(name) > 1:
            allowed = "must be the name of one random current: two would share their chance"
            raise FieldError("name of a current", name, allowed=allowed, remedy="give each a name of its own")
    return _realise(field, seed, run)


def _realise(field: VectorField, seed: int, run: int) -> VectorField:
    if isinstance(field, FieldSum):
        return FieldSum(tuple(_realise(one, seed, run) for one in field.fields))
    return field.realise(seed, run) if isinstance(field, RandomField) else field


def unrealised_error(name: str) -> FieldError:
    """Return the error of a random current that is asked for a velocity before `realise`."""
    return FieldError(
        "random current",
        name,
        allowed="has a velocity in a run only",
        remedy="ask navsense.environment.current.realise(current, seed, run)",
    )
