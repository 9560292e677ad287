"""Calibration of a magnetometer compared to other methods on the same readings.

    make bench            or            python benchmarks/bench_calibration.py

Peers with attitude: NumPy's least squares for the twelve parameters that are linear once the direction of the field is
known; ours also has this direction. Peers without attitude: the algebraic fit of a quadric by NumPy's least squares;
SciPy's `least_squares` on the strength of the calibrated field with Sampson's weights, from the algebraic fit; and the
ellipsoid_fit of `magcal` from PyPI, if installed. All except the last are simple NumPy code in this file. "off" is the
largest relative error of the calibrated field over the sphere. The peers give no covariance and no verdict and reject
nothing. The record "by hand" has all attitudes, the record "vehicle" tilts by up to 40 degrees.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import least_squares  # noqa: TID253 - the peer

from navsense.analysis.bench import measure_call
from navsense.calibration import EllipsoidCalibrator, ellipsoid, known_attitude
from navsense.core.typing import FloatArray, Quaternions, Vectors

MILLION = 1_000_000
SLOW = 100_000
"""Number of readings for the iterative peer."""

STRENGTH = 50.0
NOISE = 0.5
BIAS = np.array([20.0, -30.0, 9.0])
IRON = np.array([[1.10, 0.10, 0.04], [0.10, 0.88, 0.02], [0.04, 0.02, 1.22]])
DIRECTION = np.array([0.44, 0.05, -0.9]) / np.linalg.norm([0.44, 0.05, -0.9])
"""Field strength (uT), and the soft iron of MAGYC's simulation."""

GOALS = {"known attitude": 0.100, "ellipsoid": 1.0}
"""Limit (s) for a million readings on one core."""

Found = tuple[FloatArray, FloatArray]
"""Bias (3,) and the matrix (3, 3) that multiplies the field."""


def make_records(count: int) -> dict[str, tuple[Quaternions, Vectors]]:
    """Return attitudes (n, 4) w x y z and readings (n, 3) uT by name of the motion."""
    random = np.random.default_rng(1)
    hand = random.normal(size=(count, 4))
    hand /= np.linalg.norm(hand, axis=1)[:, None]
    yaw, tilt, way = random.uniform(0.0, 1.0, (3, count)) * np.array([[np.pi], [np.radians(20.0)], [2.0 * np.pi]])
    swing = np.column_stack([np.cos(tilt), np.sin(tilt) * np.cos(way), np.sin(tilt) * np.sin(way), np.zeros(count)])
    turn = np.column_stack([np.cos(yaw), np.zeros((count, 2)), np.sin(yaw)])
    vehicle = np.column_stack(
        [
            turn[:, 0] * swing[:, 0],
            turn[:, 0] * swing[:, 1] - turn[:, 3] * swing[:, 2],
            turn[:, 0] * swing[:, 2] + turn[:, 3] * swing[:, 1],
            turn[:, 3] * swing[:, 0],
        ]
    )
    found = {}
    for name, attitude in {"by hand": hand, "vehicle": vehicle}.items():
        body_field = np.einsum("nji,j->ni", to_matrices(attitude), DIRECTION)
        found[name] = attitude, STRENGTH * body_field @ IRON.T + BIAS + NOISE * random.normal(size=(count, 3))
    return found


def to_matrices(quaternion: Quaternions) -> FloatArray:
    """Return rotation matrices (n, 3, 3)."""
    w, x, y, z = quaternion.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=1)


def compute_worst_error(found: Found) -> float:
    """Return the largest relative error of the calibrated field and of its strength, over all directions."""
    v = np.random.default_rng(2).normal(size=(2000, 3))
    v /= np.linalg.norm(v, axis=1)[:, None]
    bias, matrix = found
    matrix = matrix / np.cbrt(np.linalg.det(matrix))
    true = IRON / np.cbrt(np.linalg.det(IRON))
    size = STRENGTH * float(np.cbrt(np.linalg.det(IRON)))
    calibrated = (size * v @ true.T + BIAS - bias) @ np.linalg.inv(matrix).T
    return float(np.linalg.norm(calibrated / size - v, axis=1).max())


def fit_with_known_direction(attitude: Quaternions, field: Vectors) -> Found:
    """Return bias and matrix by NumPy's least squares, with a known direction."""
    design = np.column_stack([np.einsum("nji,j->ni", to_matrices(attitude), DIRECTION), np.ones(len(field))])
    solution = np.array(np.linalg.lstsq(design, field, rcond=None)[0], dtype=np.float64)
    return np.asarray(solution[3]), np.asarray(solution[:3].T)


def fit_quadric(field: Vectors) -> Found:
    """Return bias and matrix of the quadric with the least algebraic residuals, x'Qx + l'x = 1."""
    shift = field.mean(axis=0)
    x, y, z = ((field - shift) / STRENGTH).T
    columns = np.column_stack([x * x, y * y, z * z, 2 * x * y, 2 * x * z, 2 * y * z, 2 * x, 2 * y, 2 * z])
    a, b, c, d, e, f, *half = np.linalg.lstsq(columns, np.ones(len(field)), rcond=None)[0]
    quadratic = np.array([[a, d, e], [d, b, f], [e, f, c]])
    centre = -np.linalg.solve(quadratic, np.array(half))
    values, axes = np.linalg.eigh(quadratic / (1.0 + centre @ quadratic @ centre))
    return shift + STRENGTH * centre, (axes / np.sqrt(values)) @ axes.T * STRENGTH


def fit_constant_strength(field: Vectors) -> Found:
    """Return bias and matrix at the least squares of (|W (m - b)| - 1) / |W' v| by SciPy, from the quadric."""
    bias, matrix = fit_quadric(field)
    inverse = np.linalg.inv(matrix)
    upper = np.triu_indices(3)

    def residuals(unknown: FloatArray) -> FloatArray:
        w = np.zeros((3, 3))
        w[upper] = unknown[3:]
        w = w + np.triu(w, 1).T
        u = (field - unknown[:3]) @ w
        length = np.sqrt(np.einsum("ni,ni->n", u, u))
        steep = u @ w
        return np.asarray((length - 1.0) * length / np.sqrt(np.einsum("ni,ni->n", steep, steep)))

    start = np.concatenate([bias, inverse[upper]])
    found = np.asarray(least_squares(residuals, start, method="lm", x_scale=np.abs(start) + 1e-3).x)
    w = np.zeros((3, 3))
    w[upper] = found[3:]
    return found[:3], np.asarray(np.linalg.inv(w + np.triu(w, 1).T), dtype=np.float64)


def fit_with_magcal(field: Vectors) -> Found:
    """Return bias and matrix by the ellipsoid_fit of `magcal`."""
    fit = importlib.import_module("magcal.core").MagnetometerCalibrator.ellipsoid_fit(None, field)
    return fit["center"], np.linalg.inv(fit["transform_matrix"])


def has_magcal() -> bool:
    """Return True if `magcal` and its imports are installed."""
    try:
        importlib.import_module("magcal.core")
    except ImportError:
        return False
    return True


def format_row(what: str, count: int, seconds: float, found: Found, note: str = "") -> str:
    """Return one row of the table."""
    return f"{what:58s} {count:8d}   {seconds * 1e3:9.1f} ms   {100.0 * compute_worst_error(found):9.4f} % off   {note}"


def measure(call: Callable[[], object]) -> float:
    """Return the seconds of a call, the best of several."""
    return measure_call(call, rounds=5)


def measure_with_attitude() -> Iterator[str]:
    """Yield the rows of a million readings with attitude."""
    for name, (attitude, field) in make_records(MILLION).items():
        result = known_attitude(field, attitude, unit="uT")
        free = measure(lambda attitude=attitude, field=field: known_attitude(field, attitude, unit="uT"))  # type: ignore[misc]
        stddev = 100 * result.verdict.max_relative_stddev
        note = f"goal {GOALS['known attitude'] * 1e3:.0f} ms; largest standard deviation {stddev:.2g} %"
        yield format_row(f"known attitude, {name}", MILLION, free, (result.bias, result.soft_iron), note)
        given = known_attitude(field, attitude, unit="uT", direction=DIRECTION)
        known = measure(
            lambda attitude=attitude, field=field: known_attitude(field, attitude, unit="uT", direction=DIRECTION)  # type: ignore[misc]
        )
        yield format_row("  direction given", MILLION, known, (given.bias, given.soft_iron))
        theirs = measure(lambda attitude=attitude, field=field: fit_with_known_direction(attitude, field))  # type: ignore[misc]
        plain = fit_with_known_direction(attitude, field)
        yield format_row(
            "  NumPy, direction given", MILLION, theirs, plain, f"{theirs / known:.1f} times as long as ours"
        )


def measure_without_attitude() -> Iterator[str]:
    """Yield the rows of a million readings without attitude, and of fewer for the slower peers."""
    peers: dict[str, tuple[int, Callable[[Vectors], Found]]] = {
        "NumPy, algebraic": (MILLION, fit_quadric),
        "SciPy, lengths": (SLOW, fit_constant_strength),
    }
    if has_magcal():
        peers["magcal of PyPI"] = MILLION, fit_with_magcal
    for name, (_, field) in make_records(MILLION).items():
        for count in (MILLION, SLOW):
            rows = np.ascontiguousarray(field[:count])
            result = ellipsoid(rows, unit="uT")
            seconds = measure(lambda rows=rows: ellipsoid(rows, unit="uT"))  # type: ignore[misc]
            note = f"largest standard deviation {100 * result.verdict.max_relative_stddev:.2g} %"
            note = f"goal {GOALS['ellipsoid'] * 1e3:.0f} ms; {note}" if count == MILLION else note
            yield format_row(f"ellipsoid, {name}", count, seconds, (result.bias, result.soft_iron), note)
            for peer, (most, call) in peers.items():
                if count == most:
                    theirs = measure(lambda rows=rows, call=call: call(rows))  # type: ignore[misc]
                    yield format_row(
                        f"  {peer}", count, theirs, call(rows), f"{theirs / seconds:.1f} times as long as ours"
                    )


def measure_stream() -> Iterator[str]:
    """Yield the cost of a reading in blocks of a hundred, and of a result from a million."""
    field = make_records(MILLION)["by hand"][1]
    parts = np.array_split(field, MILLION // 100)

    def feed() -> EllipsoidCalibrator:
        stream = EllipsoidCalibrator(unit="uT")
        for part in parts:
            stream.update(part)
        return stream

    seconds, stream = measure_call(feed, rounds=1), feed()
    yield f"{'ellipsoid, handed in a hundred at a time':58s} {seconds / MILLION * 1e9:20.0f} ns a reading"
    yield f"{'  and solved':58s} {stream.count:8d}   {measure(stream.solve) * 1e3:9.1f} ms"


def main() -> None:
    """Print the table."""
    if not has_magcal():
        print("magcal is not installed and is left out")
    for rows in (measure_with_attitude(), measure_without_attitude(), measure_stream()):
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    main()
