"""One sensor's errors onto one's own arrays, without a world: the first of the three doors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navsense.clock import Clock, Stamps
from navsense.errors import SensorError
from navsense.sensors.base import Sensor, errors_of, flags_of
from navsense.series import LONGEST_TIME, Reading, frozen
from navsense.streams import Draws, checked_run, checked_seed
from navsense.ticks import Ticks
from navsense.typing import AnyArray, FloatArray

TICK_RATE = 1e9
"""Own arrays are timed in whole nanoseconds since their first row."""


def real(name: str, array: AnyArray) -> AnyArray:
    """Return what is given as an array; raise `SensorError` unless it holds real numbers, row by row."""
    try:
        given = np.asarray(array)
    except (ValueError, TypeError) as error:
        raise SensorError(name, str(error), allowed="must be an array of numbers") from error
    if given.dtype.kind not in "fiu":
        raise SensorError(name, f"of type {given.dtype}", allowed="must be an array of real numbers")
    return given


def checked_time(time: FloatArray) -> FloatArray:
    """Return the times (n,) s; raise `SensorError` unless finite and increasing by at least a nanosecond."""
    seconds = frozen(np.array(real("time", time), dtype=np.float64))
    if seconds.ndim != 1 or not seconds.size:
        raise SensorError("time", f"shape {seconds.shape}", allowed="must be (n,) with n >= 1")
    if not np.isfinite(seconds).all():
        raise SensorError("time", "not finite", allowed="must be finite seconds")
    if seconds[-1] - seconds[0] > LONGEST_TIME:
        raise SensorError("time", float(seconds[-1] - seconds[0]), allowed=f"must span at most {LONGEST_TIME:g} s")
    back = np.nonzero(np.diff(np.rint((seconds - seconds[0]) * TICK_RATE)) <= 0.0)[0]
    if back.size:
        row = int(back[0]) + 1
        raise SensorError(
            f"time of row {row}", float(seconds[row]), allowed=f"must be after {float(seconds[row - 1])!r} s"
        )
    return seconds


def checked_rows(name: str, array: FloatArray, rows: int, axes: int) -> FloatArray:
    """Return one given array as a contiguous, read-only copy (rows, axes); raise `SensorError` for another shape."""
    given = np.array(real(name, array), dtype=np.float64, order="C")
    if given.shape != (rows, axes):
        raise SensorError(name, f"shape {given.shape}", allowed=f"must be ({rows}, {axes})")
    given.flags.writeable = False
    return given


def apply(
    spec: Sensor,
    time: FloatArray,
    ideal: Mapping[str, AnyArray],
    *,
    seed: int,
    run: int = 0,
    name: str | None = None,
    clock: Clock | None = None,
) -> Reading:
    """Return the readings of `spec` over one's own ideal values.

    time (n,) s, increasing, any step; ideal[name] (n, axes) for every output of the sensor; `name` keys the streams
    (the sensor's type where none is given), so two sensors of one type need two names. The drift is exact for the given
    steps and stationary from the first row. Raises `SensorError`.
    """
    seconds = checked_time(time)
    given: dict[str, AnyArray] = {}
    for output in spec.outputs:
        if output.name not in ideal:
            raise SensorError("array", output.name, allowed="must be given")
        given[output.name] = checked_rows(output.name, ideal[output.name], seconds.size, output.axes)
    name = name or spec.type
    draws = Draws(spec.processes(), checked_seed(seed), (checked_run(run), "sensor", name))
    since = seconds - seconds[0]
    ticks = Ticks(np.rint(since * TICK_RATE).astype(np.int64), TICK_RATE)
    _, measured = spec.measure(spec.init(draws.initial), ticks, given, draws.take(seconds.size))
    return Reading(
        name=name,
        type=spec.type,
        frame=name,
        unit={output.name: output.unit for output in spec.outputs},
        time=seconds,
        clock_error=Stamps(clock, name, seed, run).errors(since),
        arrays=measured.arrays,
        truth=given,
        errors=errors_of(measured, seconds.size),
        **flags_of(measured, seconds.size),
        epoch=0,
    )
