"""Magnetometer factors by the million, compared to GTSAM and NumPy on the same numbers.

    make bench            or            python benchmarks/bench_factors.py

MagFactor3 with shared unknowns is solved in four ways:

- a Python CustomFactor for each measurement: GTSAM's wheel lacks the factor, so its users must do this;
- one CustomFactor for all rows;
- our reduced factor in the same optimiser;
- the optimum of our reduced factor, without an optimiser.

All results agree within 1e-9 nT. Our times start from the arrays; the construction of the peers is listed separately.
Compiled loops and GTSAM's wheel run on one core. NumPy may use more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gtsam  # noqa: TID253 - the peer
import numpy as np

from navsense.analysis.bench import measure_call
from navsense.core.typing import FloatArray
from navsense.factors import ReducedMagFactor3, blocks

MILLION = 1_000_000
SHARED = 100_000
FIELD = np.array([22653.29982, -1956.83010, 44202.47862])
BIAS = np.array([310.0, -720.0, 150.0])
SIGMA = 50.0
"""Field of GTSAM's tests, bias, and noise of one axis, nT."""

GOAL = 0.060
"""Limit (s) for a million residuals and Jacobians of MagFactor1 on one core."""


def format_row(work: str, navsense: str, reference: str, ratio: str) -> str:
    """Return one row of the table."""
    return f"{work:50s} {navsense:>12s}   {reference:72s} {ratio:>8s}"


def make_measurements(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return readings (n, 3) nT, attitudes (n, 4) and the same as matrices (n, 3, 3)."""
    random = np.random.default_rng(1)
    quaternion = random.normal(size=(count, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    w, x, y, z = quaternion.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    matrices = np.ascontiguousarray(np.stack([np.stack(row, axis=-1) for row in rows], axis=1))
    noise = SIGMA * random.normal(size=(count, 3))
    return np.einsum("nji,j->ni", matrices, FIELD) + BIAS + noise, quaternion, matrices


def evaluate_with_numpy(matrices: FloatArray, measured: FloatArray, field: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return residuals and Jacobians by simple NumPy code."""
    body_field = np.einsum("nji,j->ni", matrices, field)
    jacobian = np.zeros((len(body_field), 3, 3))
    jacobian[:, 0, 1], jacobian[:, 0, 2], jacobian[:, 1, 2] = -body_field[:, 2], body_field[:, 1], -body_field[:, 0]
    jacobian[:, 1, 0], jacobian[:, 2, 0], jacobian[:, 2, 1] = body_field[:, 2], -body_field[:, 1], body_field[:, 0]
    return body_field + BIAS - measured, jacobian


def measure_million_rows() -> Iterator[str]:
    """Yield the rows of a million residuals with Jacobians, written to existing arrays."""
    measured, quaternion, matrices = make_measurements(MILLION)
    scale, direction = float(np.linalg.norm(FIELD)), FIELD / np.linalg.norm(FIELD)
    theta, plane = np.arctan2(quaternion[:, 3], quaternion[:, 0]), np.ascontiguousarray(measured[:, :2])
    calls: dict[str, Callable[[blocks.Block | None], blocks.Block]] = {
        "MagFactor": lambda out: blocks.mag_factor(theta, measured, scale, direction, BIAS, out=out),
        "MagFactor1": lambda out: blocks.mag_factor1(quaternion, measured, scale, direction, BIAS, out=out),
        "MagFactor1, from matrices": lambda out: blocks.mag_factor1(
            matrices, measured, scale, direction, BIAS, out=out
        ),
        "MagFactor2": lambda out: blocks.mag_factor2(FIELD, BIAS, measured, quaternion, out=out),
        "MagFactor3": lambda out: blocks.mag_factor3(scale, direction, BIAS, measured, quaternion, out=out),
        "MagPoseFactorPose2": lambda out: blocks.mag_pose_factor_pose2(
            theta, plane, scale, direction[:2], BIAS[:2], 0.3, out=out
        ),
        "MagPoseFactorPose3": lambda out: blocks.mag_pose_factor_pose3(
            quaternion, measured, scale, direction, BIAS, quaternion[0], out=out
        ),
    }
    theirs = measure_call(lambda: evaluate_with_numpy(matrices, measured, FIELD), rounds=5)
    each = measure_gtsam_factor(measured)
    for name, call in calls.items():
        out = call(None)
        ours = measure_call(lambda call=call, out=out: call(out), rounds=9)  # type: ignore[misc]
        if name == "MagFactor1":
            expected = evaluate_with_numpy(matrices, measured, FIELD)
            assert np.abs(out.residual - expected[0]).max() < 1e-9
            assert np.abs(out.jacobians[0] - expected[1]).max() < 1e-9
            reference = f"NumPy {theirs * 1e3:.0f} ms; goal {GOAL * 1e3:.0f} ms"
            yield format_row(
                f"{name}, 1e6 residuals and Jacobians", f"{ours * 1e3:.1f} ms", reference, f"{theirs / ours:.1f}x"
            )
            reference = f"GTSAM's C++ linearize, one core, {each * 1e9:.0f} ns each"
            yield format_row(
                "  the same, each", f"{ours / MILLION * 1e9:.0f} ns", reference, f"{each / ours * MILLION:.0f}x"
            )
            fresh = measure_call(lambda call=call: call(None), rounds=5)  # type: ignore[misc]
            yield format_row("  the same into new arrays", f"{fresh * 1e3:.1f} ms", "", "")
        else:
            yield format_row(f"{name}, 1e6", f"{ours * 1e3:.1f} ms", "", "")


def measure_gtsam_factor(measured: FloatArray) -> float:
    """Return the seconds of GTSAM's MagFactor1 for its whitened residual and Jacobian in a graph."""
    graph, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    model, direction = gtsam.noiseModel.Isotropic.Sigma(3, SIGMA), gtsam.Unit3(FIELD)
    values.insert(0, gtsam.Rot3())
    for reading in measured[:SHARED]:
        graph.add(gtsam.MagFactor1(0, reading, float(np.linalg.norm(FIELD)), direction, BIAS, model))
    return measure_call(lambda: graph.linearize(values), rounds=5) / SHARED


def make_graph_of_single_factors(measured: FloatArray, matrices: FloatArray) -> Any:
    """Return a graph with a minimal Python CustomFactor for each measurement."""
    graph, model, identity = gtsam.NonlinearFactorGraph(), gtsam.noiseModel.Isotropic.Sigma(3, SIGMA), np.eye(3)
    for reading, matrix in zip(measured, matrices, strict=True):

        def error(_: Any, values: Any, blocks: Any, m: FloatArray = reading, turned: FloatArray = matrix.T) -> Any:
            scale, direction = values.atDouble(0), values.atUnit3(1)
            body_field = turned @ direction.point3()
            if blocks is not None:
                blocks[0], blocks[1], blocks[2] = body_field[:, None], scale * (turned @ direction.basis()), identity
            return scale * body_field + values.atPoint3(2) - m

        graph.add(gtsam.CustomFactor(model, [0, 1, 2], error))
    return graph


def make_graph_of_one_factor(measured: FloatArray, matrices: FloatArray) -> Any:
    """Return a graph with one Python CustomFactor of 3 N rows, by NumPy."""
    count = len(measured)
    turned = np.ascontiguousarray(matrices.transpose(0, 2, 1)).reshape(-1, 3)
    right, identities = measured.ravel(), np.tile(np.eye(3), (count, 1))

    def error(_: Any, values: Any, blocks: Any) -> Any:
        scale, direction = values.atDouble(0), values.atUnit3(1)
        body_field = turned @ direction.point3()
        if blocks is not None:
            blocks[0], blocks[1], blocks[2] = body_field[:, None], scale * (turned @ direction.basis()), identities
        return scale * body_field + np.tile(values.atPoint3(2), count) - right

    graph = gtsam.NonlinearFactorGraph()
    graph.add(gtsam.CustomFactor(gtsam.noiseModel.Isotropic.Sigma(3 * count, SIGMA), [0, 1, 2], error))
    return graph


def optimise(graph: Any) -> Any:
    """Return the optimum of Levenberg-Marquardt with GTSAM's defaults, from a field in another direction."""
    values = gtsam.Values()
    values.insert(0, 4e4)
    values.insert(1, gtsam.Unit3(np.array([1.0, 0.0, 1.0])))
    values.insert(2, np.zeros(3))
    return gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()


def refine(graph: Any, values: Any) -> FloatArray:
    """Return field and bias (6,) at the optimum, after two linear steps that the sum of squares does not resolve."""
    for _ in range(2):
        values = values.retract(graph.linearize(values).optimize())
    return np.concatenate((values.atDouble(0) * values.atUnit3(1).point3(), values.atPoint3(2)))


ROUNDS = 3
"""Runs of each peer, alternating with ours. The best of each counts."""


def measure(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of one call, and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def measure_shared_unknowns() -> Iterator[str]:
    """Yield the rows of MagFactor3 with one scale, direction and bias, from arrays to the optimum."""
    measured, quaternion, matrices = make_measurements(SHARED)

    def reduced() -> Any:
        graph = gtsam.NonlinearFactorGraph()
        graph.add(ReducedMagFactor3(0, 1, 2, measured, quaternion, SIGMA).to_gtsam())
        return graph, optimise(graph)

    def direct() -> FloatArray:
        scale, direction, bias = ReducedMagFactor3(0, 1, 2, measured, quaternion, SIGMA).optimum()
        return np.concatenate((scale * direction, bias))

    ours, alone = measure_call(reduced, rounds=9), measure_call(direct, rounds=9)
    graph, values = reduced()
    expected = refine(graph, values)
    assert np.abs(direct() - expected).max() < 1e-9
    for what, make in (
        ("goal 1000x; a CustomFactor each", make_graph_of_single_factors),
        ("one CustomFactor for all", make_graph_of_one_factor),
    ):
        building, theirs = measure(lambda make=make: make(measured, matrices))  # type: ignore[misc]
        times = []
        for _ in range(ROUNDS):
            seconds, values = measure(lambda graph=theirs: optimise(graph))  # type: ignore[misc]
            times.append(seconds)
            ours = min(ours, measure(reduced)[0])
        solving = min(times)
        apart = np.abs(refine(theirs, values) - expected).max()
        assert apart < 1e-9, apart
        reference = f"{what}: {solving:.2f} s, and {building:.2f} s to build; {apart:.0e} nT apart"
        yield format_row(
            "MagFactor3, 1e5 on shared unknowns, in GTSAM", f"{ours * 1e3:.1f} ms", reference, f"{solving / ours:.0f}x"
        )
        yield format_row("  the same without GTSAM", f"{alone * 1e3:.1f} ms", "", f"{solving / alone:.0f}x")
    factor = ReducedMagFactor3(0, 1, 2, measured, quaternion, SIGMA)
    batch = measure_call(lambda: factor.with_measurements(measured[:100], quaternion[:100]))
    yield format_row("  100 more measurements into it", f"{batch * 1e6:.0f} us", "whatever it holds already", "")


def main() -> None:
    """Print the table."""
    print(format_row("work", "navsense", "reference", "ratio"))
    for rows in (measure_million_rows(), measure_shared_unknowns()):
        for row in rows:
            print(row, flush=True)


if __name__ == "__main__":
    main()
