"""The errors of one sensor for a user's own arrays, without a world."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from navsense.clock import Clock, SensorClock
from navsense.core.errors import SensorError
from navsense.core.random_streams import Draws, check_run, check_seed
from navsense.core.readings import LONGEST_TIME, Reading, make_read_only
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.sensors.base import TEMPERATURE, Sensor, get_flags, repeat_rows
from navsense.sensors.plausibility import check_minimum, check_steps, check_values

TICK_RATE = 1e9
"""Times are whole nanoseconds since the first row."""


def as_real_array(name: str, array: AnyArray) -> AnyArray:
    """Return an array. Raises `SensorError` unless it contains real numbers, row by row."""
    try:
        numbers = np.asarray(array)
    except (ValueError, TypeError) as error:
        raise SensorError(name, str(error), allowed="must be an array of numbers") from error
    if numbers.dtype.kind not in "fiu":
        raise SensorError(name, f"of type {numbers.dtype}", allowed="must be an array of real numbers")
    return numbers


def check_time(time: FloatArray) -> FloatArray:
    """Return the times (n,) s; raise `SensorError` unless finite and increasing by at least a nanosecond."""
    seconds = make_read_only(np.array(as_real_array("time", time), dtype=np.float64))
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


def make_ticks(seconds: FloatArray) -> Ticks:
    """Return times (n,) s as ticks since the first row."""
    index = np.rint((seconds - seconds[0]) * TICK_RATE).astype(np.int64)
    return Ticks(index, TICK_RATE, nominal_step=int(index[1]) if index.size > 1 else round(TICK_RATE))


def check_rows(name: str, array: FloatArray, shape: tuple[int, ...], *, require_finite: bool = True) -> FloatArray:
    """Return a contiguous, read-only copy of an array of this shape; raise `SensorError` for another shape.

    The numbers must be finite, unless `require_finite` is false.
    """
    rows = np.array(as_real_array(name, array), dtype=np.float64, order="C")
    if rows.shape != shape:
        raise SensorError(name, f"shape {rows.shape}", allowed=f"must be {shape}")
    if require_finite and not np.isfinite(rows).all():
        row = int(np.nonzero(~np.isfinite(rows.reshape(shape[0], -1)).all(axis=1))[0][0])
        raise SensorError(f"{name} of row {row}", rows[row].tolist(), allowed="must be finite numbers")
    rows.flags.writeable = False
    return rows


def simulate_readings(
    spec: Sensor,
    time: FloatArray,
    ideal: Mapping[str, AnyArray],
    *,
    seed: int,
    run: int = 0,
    name: str | None = None,
    clock: Clock | None = None,
    temperature: FloatArray | None = None,
    skip_ideal: Collection[str] = (),
    require_finite: bool = True,
) -> Reading:
    """Return readings of `spec` for your own ideal values.

    time: (n,) s, increasing with any steps. The dynamic bias is exact for these steps, stationary from row 0.
    ideal: (n, axes) by name, (n,) for a scalar, for each output; other arrays are passed to `measure`.
    temperature: (n,) K, for a spec with temperature coefficients.
    name: key of the random streams; default: the sensor's type. Two sensors of one type require two names.
    skip_ideal: outputs without an ideal value.
    require_finite: False allows NaN and infinite ideal values.

    Raises `SensorError`, also for values of another unit (`plausibility`).
    """
    seconds = check_time(time)
    check_steps(spec.type, seconds)
    checked: dict[str, AnyArray] = {}
    for output in spec.outputs:
        if output.name in skip_ideal:
            continue
        if output.name not in ideal:
            raise SensorError("array", output.name, allowed="must be given")
        rows = check_rows(output.name, ideal[output.name], (seconds.size, *output.shape), require_finite=require_finite)
        check_values(spec.type, output.name, output.unit, rows)
        checked[output.name] = rows
    if temperature is not None:
        checked[TEMPERATURE] = check_rows(TEMPERATURE, temperature, seconds.shape)
        check_values(spec.type, TEMPERATURE, "K", checked[TEMPERATURE])
        check_minimum(TEMPERATURE, "K", checked[TEMPERATURE])
    if name is not None and not isinstance(name, str):
        raise SensorError("name", name, allowed="must be a text or None")
    if clock is not None and not isinstance(clock, Clock):
        raise SensorError("clock", clock, allowed="must be a navsense.clock.Clock or None")
    name = name or spec.type
    draws = Draws(spec.processes(), check_seed(seed), (check_run(run), "sensor", name))
    ticks = make_ticks(seconds)
    _, measured = spec.measure(spec.init(draws.initial), ticks, {**ideal, **checked}, draws.take(seconds.size))
    flags = get_flags(measured, seconds.size)
    return Reading(
        name=name,
        type=spec.type,
        frame=name,
        unit={output.name: output.unit for output in spec.outputs},
        time=seconds,
        clock_error=SensorClock(clock, name, seed, run).compute_errors(seconds - seconds[0]),
        arrays=measured.arrays,
        ideal={output.name: checked[output.name] for output in spec.outputs if output.name in checked},
        bias=dict(measured.bias),
        turn_on_bias=repeat_rows(measured.turn_on_bias, seconds.size),
        epoch=0,
        valid=flags["valid"],
        emitted=flags["emitted"],
    )
