"""Currents that wander: speed and direction as first-order Gauss-Markov processes, between limits.

    dx = -(x - mean) / tau dt + sigma dW            each of speed (m/s), horizontal and vertical angle (rad)
    v_w = speed (cos h cos e, sin h cos e, sin e)   h counter-clockwise from the world's x axis, e upwards

`GaussMarkovProcess` is this process: exact from node to node, stationary from the run's start where `correlation_time`
tau is
finite (deviation `density` sqrt(tau / 2)), a random walk from the mean where it is not. Limits are mirrors. Nodes are
at most 1/256 of the shortest tau apart, the next lower power of two of a second from 1/8 to 1/1024; between them the
velocity is straight, which lowers the variance by up to 1/512, by 1/205 at the shortest tau, 0.1 s.

`UuvGaussMarkovProcess` is the process of the UUV Simulator (and DAVE): each physics step

    x <- (1 - step mu) x + noise_amplitude (U - 1/2),   clipped to [minimum, maximum],   U uniform on [0, 1)

starting at the mean, which with mu > 0 decays to zero; its spread depends on the step. `UuvGaussMarkovProcess.physical`
is the
`GaussMarkovProcess` of the same limits, tau = 1 / mu, and the density with which the classic one walks at its step,
noise_amplitude / sqrt(12 step).

Source: Fossen 2011, Handbook of Marine Craft Hydrodynamics and Motion Control, 8.1; source of the UUV Simulator,
`GaussMarkovProcess.cc` and `UnderwaterCurrentPlugin.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from navsense.environment.base import VectorField
from navsense.environment.current._checks import MAX_COORDINATE, MAX_SPEED, check_number, rotate_heading
from navsense.environment.current._nodes import RandomCurrent, RandomCurrentModel
from navsense.environment.current.base import unrealised_error
from navsense.errors import FieldError
from navsense.noise.terms import decay_factor, stationary_stddev, step_stddev
from navsense.typing import FloatArray, Quaternion, Times, Vectors

MIN_CORRELATION_TIME = 0.1
"""s: shortest correlation time; what is faster is turbulence."""

MAX_STDDEV = 100.0
"""m/s or rad: largest stationary deviation that may be asked for."""

MIN_LIMIT_DISTANCE = 1e-9
"""m/s or rad: least distance between two mirrors, so that it is counted how often a process comes back from them."""

_NODES_PER_CORRELATION_TIME = 256.0
_MIN_NODE_RATE, _MAX_NODE_RATE = 8.0, 1024.0


def _check_limits(what: str, mean: float, minimum: float, maximum: float) -> None:
    if not minimum < maximum:
        raise FieldError(f"minimum of the {what}", minimum, allowed=f"must be below the maximum, {maximum!r}")
    if not minimum <= mean <= maximum:
        raise FieldError(f"mean of the {what}", mean, allowed=f"must be from {minimum!r} to {maximum!r}, its limits")


@dataclass(frozen=True)
class GaussMarkovProcess:
    """A Gauss-Markov process: mean, minimum, maximum (its unit), correlation_time (s), density (unit per root second).

    An infinite correlation time makes it a random walk. Raises `FieldError` for limits that do not hold the mean or are
    less than `NARROWEST` apart, a correlation time below `MIN_CORRELATION_TIME` and a negative density.
    """

    mean: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf
    correlation_time: float = math.inf
    density: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no such process."""
        check_number("mean of a wander", self.mean, -1e6, 1e6)
        _check_limits("wander", self.mean, self.minimum, self.maximum)
        check_number("maximum less minimum of a wander", self.maximum - self.minimum, MIN_LIMIT_DISTANCE, math.inf)
        check_number("correlation time of a wander (s)", self.correlation_time, MIN_CORRELATION_TIME, math.inf)
        check_number("density of a wander", self.density, 0.0, 1e3)

    @classmethod
    def from_stddev(
        cls, mean: float, stddev: float, correlation_time: float, minimum: float = -math.inf, maximum: float = math.inf
    ) -> GaussMarkovProcess:
        """Return the process of a stationary deviation `stddev` and a finite correlation time (s)."""
        check_number("correlation time of a wander (s)", correlation_time, MIN_CORRELATION_TIME, MAX_COORDINATE)
        check_number("stddev of a wander", stddev, 0.0, MAX_STDDEV)
        return cls(mean, minimum, maximum, correlation_time, stddev / stationary_stddev(1.0, correlation_time))

    @property
    def node_rate(self) -> float:
        """Return the nodes a second that it wants, a power of two."""
        if self.density == 0.0:
            return _MIN_NODE_RATE
        wanted = (
            math.ceil(math.log2(_NODES_PER_CORRELATION_TIME / self.correlation_time))
            if self.correlation_time < math.inf
            else 0
        )
        return min(max(2.0**wanted, _MIN_NODE_RATE), _MAX_NODE_RATE)

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, deviation at the start and 0 at `rate` nodes a second."""
        tau, sigma, dt = self.correlation_time, self.density, 1.0 / rate
        if tau == math.inf:
            return (self.mean, 1.0, sigma * math.sqrt(dt), self.minimum, self.maximum, 0.0, 0.0)
        steps = decay_factor(dt, tau), step_stddev(dt, sigma, tau)
        return (self.mean, *steps, self.minimum, self.maximum, stationary_stddev(sigma, tau), 0.0)


@dataclass(frozen=True)
class UuvGaussMarkovProcess:
    """The UUV Simulator's process: mean, minimum, maximum, mu (1/s), noise_amplitude, and the physics step (s).

    Raises `FieldError` for what that program refuses: limits that do not hold the mean, mu or noise_amplitude not from
    0 to 1, and for a step that is not from 1 us to 1 s.
    """

    mean: float = 0.0
    minimum: float = -1.0
    maximum: float = 1.0
    mu: float = 0.0
    noise_amplitude: float = 0.0
    step: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse what the UUV Simulator refuses."""
        check_number("mean of a current's process", self.mean, -1e6, 1e6)
        check_number("minimum of a current's process", self.minimum, -1e6, 1e6)
        check_number("maximum of a current's process", self.maximum, -1e6, 1e6)
        _check_limits("current's process", self.mean, self.minimum, self.maximum)
        check_number("mu of a current's process (1/s)", self.mu, 0.0, 1.0)
        check_number("noiseAmp of a current's process", self.noise_amplitude, 0.0, 1.0)
        check_number("step of a current's process (s)", self.step, 1e-6, 1.0)

    def to_physical(self) -> GaussMarkovProcess:
        """Return the process that this one stands for, the same at every step: it reverts to its mean."""
        tau = min(max(1.0 / self.mu, MIN_CORRELATION_TIME), MAX_COORDINATE) if self.mu > 0.0 else math.inf
        return GaussMarkovProcess(
            self.mean, self.minimum, self.maximum, tau, self.noise_amplitude / math.sqrt(12.0 * self.step)
        )

    @property
    def node_rate(self) -> float:
        """Return the physics steps a second."""
        return 1.0 / self.step

    def discretise(self, rate: float) -> tuple[float, ...]:
        """Return mean, phi, q, limits, 0 and 1 at `rate` steps a second."""
        limits = (self.minimum, self.maximum)
        return (self.mean, 1.0 - self.mu / rate, self.noise_amplitude, *limits, 0.0, 1.0)


AnyGaussMarkovProcess = GaussMarkovProcess | UuvGaussMarkovProcess


def select_node_rate(processes: Sequence[AnyGaussMarkovProcess]) -> tuple[float, bool]:
    """Return the nodes a second of processes, and whether lines between them are straight.

    Raises `FieldError` for classic and physical ones together, and for classic ones of different steps.
    """
    rates = {one.node_rate for one in processes}
    kinds = {isinstance(one, UuvGaussMarkovProcess) for one in processes}
    if len(kinds) > 1:
        raise FieldError(
            "processes of a current", "GaussMarkovProcess and UuvGaussMarkovProcess", allowed="must be of one kind"
        )
    if True in kinds and len(rates) > 1:
        steps = ", ".join(f"{1.0 / rate:g}" for rate in sorted(rates))
        raise FieldError("steps of a current's processes (s)", steps, allowed="must be the same")
    return max(rates), True not in kinds


def drop_circle_limits(direction: AnyGaussMarkovProcess) -> AnyGaussMarkovProcess:
    """Return a process of an angle without limits where these leave it the whole circle: it goes round."""
    if isinstance(direction, GaussMarkovProcess) and direction.maximum - direction.minimum >= 2.0 * math.pi - 1e-9:
        return replace(direction, minimum=-math.inf, maximum=math.inf)
    return direction


def discretise_all(processes: Sequence[AnyGaussMarkovProcess], rate: float) -> FloatArray:
    """Return one law a row."""
    return np.array([one.discretise(rate) for one in processes])


def check_current_name(name: str) -> None:
    """Raise `FieldError` for a name that is empty: it keys the current's chance."""
    if not isinstance(name, str) or not name:
        raise FieldError("name of a current", name, allowed="must be a text that is not empty")


@dataclass(frozen=True)
class GaussMarkovCurrent:
    """A current that wanders, the same everywhere: speed (m/s), horizontal_angle and vertical_angle (rad), and name.

    The horizontal angle is counter-clockwise from `heading` (rad) below the world's x axis, 0 for x itself; with the
    origin's heading it counts from east. A physical one whose limits leave the whole circle goes round. All three are
    `GaussMarkovProcess`, or all are `UuvGaussMarkovProcess` of one step. It differs from run to run: `realise` gives
    that of one.

    Raises `FieldError` for processes of both kinds or different steps, and speeds beyond `MAX_SPEED`.
    """

    speed: AnyGaussMarkovProcess
    horizontal_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    vertical_angle: AnyGaussMarkovProcess = GaussMarkovProcess()
    name: str = "current"
    heading: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no such current."""
        check_current_name(self.name)
        check_number("heading of a current (rad)", self.heading)
        check_number("mean speed of a current (m/s)", self.speed.mean, -MAX_SPEED, MAX_SPEED)
        select_node_rate(self._processes)

    @property
    def _processes(self) -> tuple[AnyGaussMarkovProcess, ...]:
        return (self.speed, drop_circle_limits(self.horizontal_angle), self.vertical_angle)

    @property
    def random_names(self) -> tuple[str, ...]:
        """Return the name that keys its streams."""
        return (self.name,)

    def realise(self, seed: int, run: int) -> RandomCurrent:
        """Return the field (m/s) of one run."""
        rate, straight = select_node_rate(self._processes)
        names = ("speed", "horizontal_angle", "vertical_angle")
        recipe = RandomCurrentModel(
            self.name, discretise_all(self._processes, rate), names, 3, np.zeros(1), rate, straight, turn=-self.heading
        )
        return RandomCurrent(recipe, seed, run)

    def at(self, position_w: Vectors, time: Times) -> Vectors:
        """Raise `FieldError`: a random current has a velocity in a run only, that of `realise`."""
        raise unrealised_error(self.name)

    def rotate(self, rotation: Quaternion) -> VectorField:
        """Return the current of a world turned by `rotation`, about the vertical. Raises `FieldError` otherwise."""
        return replace(self, heading=rotate_heading(self.heading, rotation))
