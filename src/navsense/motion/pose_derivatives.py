"""Velocities and accelerations from poses alone, as they arrive from a live system.

A polynomial of degree 4 through five successive poses gives the derivatives at the fourth:

    v = p'(t_3),   a = p''(t_3),   p the polynomial through p_0 ... p_4 at t_0 ... t_4
    omega = theta'(t_3),   alpha = theta''(t_3),   theta_k = log(q_3^-1 q_k)

theta is the rotation vector from attitude 3, in body axes. At theta = 0 its derivatives are the angular velocity and
the angular acceleration. The state of a pose is known when the next pose has arrived. The latency is therefore two
intervals between poses: one for the state, and one for the step that the state ends.

The first five poses give the states of the first four, by the same polynomial. For poses h apart of a smooth motion f,
the error of the polynomial at x is f^(5) / 5! times w(x) = (x - t_0) ... (x - t_4). The errors of its derivatives are

    pose      velocity (h^4 f^(5))    acceleration (h^3 f^(5))
    first     1/5                     5/6
    second    1/20                    1/12
    third     1/30                    0; the next term is h^4 f^(6) / 90
    others    1/20                    1/12

Poses rounded by at most e add at most 3.5 e / h^2 to an acceleration. They add 27 e / h^2 to that of the first pose.
The result contains nothing above a quarter of the rate of the poses: no vibration, no contact.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from navsense.core.rotation import multiply_arrays, to_rotation_vector_python
from navsense.core.typing import FloatArray

WINDOW = 5
"""Number of poses of the polynomial."""

NODE = 3
"""Index of the pose whose derivatives are computed."""


def compute_derivative_weights(time: Sequence[float], node: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the first and second derivative at time[node] of the polynomial through values at `time`.

    time: different times (n,) s. The derivative is ``sum(weights * values)``.

    Source: Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988).
    """
    count, x0 = len(time), time[node]
    weights = np.zeros((3, count))
    weights[0, 0] = 1.0
    c1, c4 = 1.0, time[0] - x0
    for i in range(1, count):
        order, c2, c5, c4 = min(i, 2), 1.0, c4, time[i] - x0
        for j in range(i):
            c3 = time[i] - time[j]
            c2 *= c3
            if j == i - 1:
                for k in range(order, 0, -1):
                    weights[k, i] = c1 * (k * weights[k - 1, i - 1] - c5 * weights[k, i - 1]) / c2
                weights[0, i] = -c1 * c5 * weights[0, i - 1] / c2
            for k in range(order, 0, -1):
                weights[k, j] = (c4 * weights[k, j] - k * weights[k - 1, j]) / c3
            weights[0, j] = c4 * weights[0, j] / c3
        c1 = c2
    return weights[1], weights[2]


class PoseDerivatives:
    """Adds velocities and accelerations to states that have only a pose. The state follows one pose later.

    What a state has is kept. An acceleration is derived from poses only if the velocity is: a state with a velocity
    gets its acceleration from velocities, by the rules of `navsense.motion.driven`. Both hold for each of the linear
    and the angular part.

    >>> from navsense.motion.pose_derivatives import PoseDerivatives
    >>> derivatives = PoseDerivatives()
    >>> poses = [ns.Pose((0.5 * (0.1 * k) ** 2, 0.0, 0.0)) for k in range(5)]
    >>> rows = [derivatives.append(0.1 * k, ns.motion.state_row(ns.State(pose))) for k, pose in enumerate(poses)]
    >>> [len(part) for part in rows]
    [0, 0, 0, 0, 4]
    >>> time, row = rows[4][3]  # of the fourth pose
    >>> round(time, 6), round(row[7], 6), round(row[13], 6)  # s, m/s, m/s^2
    (0.3, 0.3, 1.0)
    """

    def __init__(self) -> None:
        """Start without poses."""
        self._states: deque[tuple[float, FloatArray]] = deque(maxlen=WINDOW)
        self._is_first = True

    def append(self, time: float, row: FloatArray) -> list[tuple[float, FloatArray]]:
        """Add a state (19,) of `state_row` at `time` (s), after the last one; return times and rows with derivatives.

        The result is that of the state before. It is empty for the first four states. The fifth gives those of all
        four.
        """
        self._states.append((time, row))
        if len(self._states) < WINDOW:
            return []
        nodes = range(NODE + 1) if self._is_first else (NODE,)
        self._is_first = False
        return [self._add_derivatives(node) for node in nodes]

    def _add_derivatives(self, node: int) -> tuple[float, FloatArray]:
        """Return the time and the state of a pose of the window, with the derivatives that it lacks."""
        time, row = self._states[node]
        row = row.copy()
        has_velocity, has_angular_velocity = not math.isnan(row[7]), not math.isnan(row[10])
        if has_velocity and has_angular_velocity:
            return time, row
        weights = compute_derivative_weights([t for t, _ in self._states], node)
        poses = np.array([pose[:7] for _, pose in self._states])
        if not has_velocity:
            _fill(row, 7, weights, poses[:, :3] - poses[node, :3])
        if not has_angular_velocity:
            relative = multiply_arrays(poses[node, 3:] * (1.0, -1.0, -1.0, -1.0), poses[:, 3:])
            _fill(row, 10, weights, np.array([to_rotation_vector_python(*turn) for turn in relative.tolist()]))
        return time, row


def _fill(row: FloatArray, first: int, weights: tuple[FloatArray, FloatArray], values: FloatArray) -> None:
    """Write the derivatives of values (n, 3) to a velocity, at `first`, and to its acceleration unless it is known."""
    for derivative, column in zip(weights, (first, first + 6), strict=True):
        for axis in range(3):
            if math.isnan(row[column + axis]):
                # A sum in this order on each machine; that of BLAS, or of `sum` in newer versions of Python, differs.
                total = 0.0
                for weight, value in zip(derivative.tolist(), values[:, axis].tolist(), strict=True):
                    total += weight * value
                row[column + axis] = total
