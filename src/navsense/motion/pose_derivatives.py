"""Velocities and accelerations from poses alone, as they arrive from a live system.

A polynomial of degree 4 through five successive poses gives the derivatives at the fourth:

    v = p'(t_3),   a = p''(t_3),   p the polynomial through p_0 ... p_4 at t_0 ... t_4
    omega = theta'(t_3),   alpha = theta''(t_3),   theta_k = log(q_3^-1 q_k)

theta is the rotation vector from attitude 3, in body axes. At theta = 0 its derivatives are the angular velocity and
the angular acceleration. The state of a pose is known when the next pose has arrived, so the latency is one interval
between poses, and that of the step that it ends another one.

Errors for poses h apart, of a smooth motion: v of order h^4, a of order h^3. Poses rounded or disturbed by e add about
5 e / h^2 to an acceleration. Nothing above a quarter of the rate of the poses is in the result: no vibration, no
contact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from navsense.core.rotation import multiply_arrays, to_rotation_vector_python
from navsense.core.typing import FloatArray, Vector
from navsense.motion.driven import State

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
    """Completes states that have only a pose. The state of each pose follows one pose later.

    >>> from navsense.motion.pose_derivatives import PoseDerivatives
    >>> derivatives = PoseDerivatives()
    >>> states = [derivatives.append(0.1 * k, ns.State(ns.Pose((0.5 * (0.1 * k) ** 2, 0.0, 0.0)))) for k in range(5)]
    >>> time, state = states[-1]  # of the fourth pose
    >>> round(time, 6), round(state.velocity[0], 6), round(state.acceleration[0], 6)
    (0.3, 0.3, 1.0)
    """

    def __init__(self) -> None:
        """Start without poses."""
        self._poses: deque[tuple[float, State]] = deque(maxlen=WINDOW)

    def append(self, time: float, state: State) -> tuple[float, State] | None:
        """Add a pose at `time` (s), after the last one; return time and complete state of the pose before.

        None for the first four poses.
        """
        self._poses.append((time, state))
        if len(self._poses) < WINDOW:
            return None
        node_time, node = self._poses[NODE]
        first, second = compute_derivative_weights([t for t, _ in self._poses], NODE)
        positions = np.array([pose.pose.position for _, pose in self._poses])
        rotations = np.array([pose.pose.rotation for _, pose in self._poses])
        relative = multiply_arrays(rotations[NODE] * (1.0, -1.0, -1.0, -1.0), rotations)
        turns = np.array([to_rotation_vector_python(*row) for row in relative])
        offsets = positions - positions[NODE]
        return node_time, replace(
            node,
            velocity=_apply(first, offsets),
            acceleration=_apply(second, offsets),
            angular_velocity=_apply(first, turns),
            angular_acceleration=_apply(second, turns),
            frame="world",
            angular_frame="body",
        )


def _apply(weights: FloatArray, values: FloatArray) -> Vector:
    """Return the weighted sum (3,) of values (n, 3)."""
    x, y, z = (weights @ values).tolist()
    return x, y, z
