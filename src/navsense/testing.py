"""The laws of sensors and noise, as functions that raise: for the sensors of navsense and for your own.

>>> from navsense.testing import check_sensor
>>> check_sensor(ns.sensors.NavSat)

`check_sensor(kind)` checks seven laws with `kind.example_spec()`: cut, batch (and live), ideal, no dead parameter,
equivariance, independence, current. `check_noise(noise)` checks the noise of one channel: cut, ideal, no dead
parameter, and the declared deviation at the first and a later sample, at two rates. Each law is a function. A broken
law raises `LawBrokenError` with its name and the array or field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from navsense.clock import Clock
from navsense.core import pose as poses
from navsense.core.errors import NavsenseError, SensorError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose, from_rpy
from navsense.core.random_streams import Draws
from navsense.core.readings import ARRAY_GROUPS, Reading, join_readings
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, Quaternion, Times
from navsense.environment.base import Environment
from navsense.environment.current import GaussMarkovCurrent, GaussMarkovProcess, StratifiedCurrent
from navsense.environment.signal import Signal
from navsense.environment.terrain.primitives import Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.trajectory import waypoints
from navsense.noise.channels import FLICKER_BAND, NoiseChannels, NoiseState
from navsense.noise.specification import NO_NOISE, Noise
from navsense.noise.terms import make_flicker_components
from navsense.recordings.dataset import select_run_by_index
from navsense.runner.live import live
from navsense.runner.run import simulate
from navsense.sensors.base import Sensor, check_ideal_values, check_measurement, check_members, get_flags
from navsense.sensors.magnetometer import Magnetometer
from navsense.world import Link, Model, MountedSensor, World

__all__ = [
    "EXAMPLE_ENVIRONMENT",
    "LawBrokenError",
    "check_batch",
    "check_current",
    "check_cut",
    "check_equivariance",
    "check_ideal",
    "check_independence",
    "check_noise",
    "check_noise_cut",
    "check_noise_deviation",
    "check_noise_ideal",
    "check_noise_parameters",
    "check_parameters",
    "check_sensor",
    "example_motion",
    "example_world",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


RATE = 200.0
COUNT = 400
QUATERNION_SIZE = 4
"""Length of a quaternion: a tuple of this length is one."""

SIZE_FIELDS = frozenset(
    "mean stddev bias_mean bias_stddev precision minimum maximum bias_instability outlier_stddev".split()
)
"""Fields of a noise in the unit of the channel."""


class LawBrokenError(AssertionError):
    """A sensor or a noise breaks a law.

    >>> issubclass(ns.testing.LawBrokenError, AssertionError)
    True
    """


def check_law(holds: bool, law: str, message: str) -> None:
    """Raise `LawBrokenError` unless the law holds."""
    if not holds:
        raise LawBrokenError(f"law of {law}: {message}")


def example_motion() -> Motion:
    """Return a motion without end that has linear and angular acceleration about all axes.

    >>> ns.testing.example_motion().at(np.zeros(1)).position_w
    array([[0., 0., 1.]])
    """
    path = [
        Pose((0.0, 0.0, 1.0), from_rpy(0.1, -0.2, 0.0)),
        Pose((2.0, 1.0, 1.5), from_rpy(-0.3, 0.2, 0.8)),
        Pose((3.0, -1.0, 2.5), from_rpy(0.4, 0.3, 1.6)),
        Pose((0.5, -2.0, 0.7), from_rpy(0.2, -0.4, 0.9)),
        Pose((0.0, 0.0, 1.0), from_rpy(0.1, -0.2, 0.0)),
    ]
    return waypoints((0.0, 0.7, 1.3, 2.1, 3.0), path, loop=True)


def make_swinging_motion() -> Motion:
    """Return the motion of a body that swings through a beam of the example sensor."""
    path = [Pose((2.8, 2.2, -0.9)), Pose((2.5, 1.7, -1.0), from_rpy(0.2, 0.1, 0.0)), Pose((2.8, 2.2, -0.9))]
    return waypoints((0.0, 1.5, 3.0), path, loop=True)


EXAMPLE_ENVIRONMENT = Environment(
    origin=Origin(0.8, 0.3, 120.0, 0.5),
    water=Water(surface=1.9, depths=(0.0, 1.0), temperatures=(290.0, 285.0), salinities=(30.0, 33.0)),
    current=StratifiedCurrent((0.0, 1.0, 3.0), ((0.3, -0.2, 0.0), (0.1, 0.4, 0.02), (-0.2, 0.1, 0.0)), surface=1.9),
    signals={
        "temperature": Signal((0.0, 1.0, 3.0), (285.0, 305.0, 300.0)),
        "motor_current": Signal((0.0, 2.0), (1.0, 9.0)),
    },
    scene=Scene(
        (
            Body("bed", Plane((0.2, -0.1, 1.0)), Pose((0.0, 0.0, -1.2))),
            Body("robot::keel", Sphere(0.1), Pose((0.0, 0.0, 0.1)), make_swinging_motion()),
            Body("robot::skid", Sphere(0.4), Pose((1.0, -1.5, -0.5))),
        )
    ),
    hull="robot",
)
"""Environment of the laws: an origin on earth, a heading, water that the robot dives into, signals that change, and a
bed, a keel and a skid that rays hit."""


def example_world(*named: tuple[str, Sensor]) -> World:
    """Return a world with a robot. Its sensors have a lever arm on their link, and share a drifting clock.

    >>> world = ns.testing.example_world(("imu", ns.sensors.Imu()))
    >>> world.sensor("imu").link
    'robot::arm'
    """
    clock_noise = Noise(
        mean=1e-6,
        stddev=1e-6,
        bias_stddev=1e-3,
        dynamic_bias_stddev=1e-5,
        dynamic_bias_correlation_time=50.0,
        precision=1e-7,
    )
    clock = Clock("robot::base::clock", clock_noise)
    mounting = Pose((0.3, -0.2, 0.1), from_rpy(0.5, 0.1, -0.7))
    sensors = tuple(
        MountedSensor(
            name=f"robot::arm::{name}",
            spec=spec,
            model="robot",
            link="robot::arm",
            rate=RATE,
            pose=mounting,
            topic=f"/{name}",
            frame=name,
            clock=clock.name,
        )
        for name, spec in named
    )
    arm = Link("robot::arm", Pose((0.0, 0.4, 0.0), from_rpy(0.0, 0.3, 0.0)))
    model = Model("robot", (Link("robot::base"), arm), "robot::base", motion=example_motion())
    return World("laws", (model,), sensors, (clock,), EXAMPLE_ENVIRONMENT)


def is_identical(one: Any, other: Any) -> bool:
    """Return True if two states, arrays or mappings are equal bit by bit. NaN equals NaN."""
    if isinstance(one, np.ndarray):
        if one.dtype.kind == "f":
            return bool(one.shape == other.shape and one.tobytes() == other.tobytes())
        return bool(np.array_equal(one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(is_identical(one[key], other[key]) for key in one)
    if is_dataclass(one) and not isinstance(one, type):
        return all(is_identical(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(is_identical(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) or (one != one and other != other)


@dataclass(frozen=True)
class SensorCase:
    """The arguments of a sensor's law: specification, ticks, ideal values and random draws."""

    spec: Sensor
    ticks: Ticks
    ideal: Mapping[str, AnyArray]
    initial: AnyArray
    draws: AnyArray


def make_case(spec: Sensor, *, seed: int = 1, count: int = COUNT) -> SensorCase:
    """Return a sensor on the example motion with `count` ticks."""
    ticks = Ticks(np.arange(count, dtype=np.int64), RATE)
    source = Draws(spec.processes(), seed, (0, "law"))
    ideal = spec.ideal(example_motion(), EXAMPLE_ENVIRONMENT, ticks)
    return SensorCase(spec, ticks, ideal, source.initial, source.take(count))


def measure_case(case: SensorCase) -> tuple[Any, Any]:
    """Return the end state and the measurement in one block."""
    return case.spec.measure(case.spec.init(case.initial), case.ticks, case.ideal, case.draws)


def check_cut(spec: Sensor) -> None:
    """Law 1: a record cut anywhere gives bitwise the same readings and end state.

    >>> ns.testing.check_cut(ns.sensors.NavSat.example_spec())
    """
    case = make_case(spec)
    end_state, complete = measure_case(case)
    for cuts in ((1,), (COUNT - 1,), (7, 8, 200), tuple(range(1, 40))):
        state, parts, flags = spec.init(case.initial), [], []
        for first, stop in zip((0, *cuts), (*cuts, COUNT), strict=True):
            ticks = Ticks(case.ticks.index[first:stop], RATE)
            ideal = spec.ideal(example_motion(), EXAMPLE_ENVIRONMENT, ticks)
            for name, values in ideal.items():
                is_same = is_identical(values, case.ideal[name][first:stop])
                check_law(is_same, "cut", f"ideal {name} depends on the start of the block")
            state, part = spec.measure(state, ticks, ideal, np.ascontiguousarray(case.draws[:, first:stop]))
            parts.append(part)
            flags.append(get_flags(part, len(ticks)))
        check_law(is_identical(state, end_state), "cut", f"the end state differs, cut at {cuts[:5]}")
        for group in ("arrays", "bias"):
            for name, values in getattr(complete, group).items():
                joined = np.concatenate([getattr(part, group)[name] for part in parts])
                check_law(is_identical(joined, values), "cut", f"{group}[{name!r}] differs, cut at {cuts[:5]}")
        for name, values in get_flags(complete, COUNT).items():
            joined = np.concatenate([part[name] for part in flags])
            check_law(is_identical(joined, values), "cut", f"{name} differs, cut at {cuts[:5]}")


def check_same_reading(law: str, one: Reading, other: Reading, condition: str) -> None:
    """Raise `LawBrokenError` unless two readings are equal bit by bit."""
    for group in ARRAY_GROUPS:
        left, right = getattr(one, group), getattr(other, group)
        check_law(left.keys() == right.keys(), law, f"{group} has other names {condition}")
        for name in left:
            check_law(is_identical(left[name], right[name]), law, f"{group}[{name!r}] differs {condition}")
    for name in ("time", "clock_error", "arrival", "valid", "emitted"):
        check_law(is_identical(getattr(one, name), getattr(other, name)), law, f"{name} differs {condition}")


def check_batch(spec: Sensor, *, duration: float = 1.0) -> None:
    """Law 2: row i of a batch equals the single run bitwise, and live equals batch bitwise.

    >>> ns.testing.check_batch(ns.sensors.NavSat.example_spec())
    """
    world = example_world(("one", spec))
    name = "robot::arm::one"
    batch = simulate(world, duration, seed=3, runs=(0, 1, 5))[name]
    for row, run in enumerate((0, 1, 5)):
        single = select_run_by_index(simulate(world, duration, seed=3, runs=(run,))[name], 0)
        check_same_reading("batch", select_run_by_index(batch, row), single, f"in run {run}")
    single = simulate(world, duration, seed=3)[name]
    check_same_reading("batch", select_run_by_index(batch, 0), single, "without a run axis")
    parts = [step.readings[name] for step in run_live(world, duration) if name in step.readings]
    check_same_reading("batch", join_readings(parts), single, "in a live run")


RANDOM_CURRENT = GaussMarkovCurrent(
    GaussMarkovProcess(mean=0.3, correlation_time=2.0, density=0.2),
    GaussMarkovProcess(correlation_time=2.0, density=1.0),
    name="wandering",
)
"""A current that differs between runs."""


def check_current(spec: Sensor, *, duration: float = 1.0) -> None:
    """Law 7: readings that depend on a random current differ between runs, and a batch equals the single runs.

    A reading depends on the current if its ideal value differs from that without a current.

    >>> ns.testing.check_current(ns.sensors.NavSat.example_spec())
    """
    world, name = example_world(("one", spec)), "robot::arm::one"
    with_current, without_current = (
        replace(world, environment=replace(EXAMPLE_ENVIRONMENT, current=current)) for current in (RANDOM_CURRENT, None)
    )
    batch = simulate(with_current, duration, seed=3, runs=(0, 1, 5))[name]
    runs = {run: select_run_by_index(batch, row) for row, run in enumerate((0, 1, 5))}
    for run, reading in runs.items():
        single = select_run_by_index(simulate(with_current, duration, seed=3, runs=(run,))[name], 0)
        check_same_reading("current", reading, single, f"in run {run} of a random current")
    ideal = simulate(without_current, duration, seed=3)[name].ideal
    for array, values in ideal.items():
        if is_identical(values, runs[0].ideal[array]):
            continue
        for run in (1, 5):
            is_same = is_identical(runs[0].ideal[array], runs[run].ideal[array])
            check_law(not is_same, "current", f"ideal[{array!r}] is the same in runs 0 and {run}")


def run_live(world: World, duration: float) -> Iterator[Any]:
    """Yield the steps of a live run of `duration` (s)."""
    for step in live(world, seed=3):
        if step.time >= duration:
            return
        yield step


def check_ideal(spec: Sensor) -> None:
    """Law 3: without errors and with all draws zero, the reading is the ideal value.

    >>> ns.testing.check_ideal(ns.sensors.NavSat.example_spec())
    """
    ideal_spec = spec.without_errors()
    case = make_case(ideal_spec)
    _, result = ideal_spec.measure(ideal_spec.init(case.initial * 0.0), case.ticks, case.ideal, case.draws * 0.0)
    for name in (output.name for output in ideal_spec.outputs if output.name in case.ideal):
        check_law(is_identical(result.arrays[name], case.ideal[name]), "ideal", f"{name} differs")


def iter_variants(spec: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each leaf field and the specification with another value of it.

    Fields without physical effect (`NO_PHYSICAL_EFFECT`) are left out.

    Each number of a tuple is a leaf; a quaternion is one leaf. The leaves of a `Noise` are its active terms; the laws
    of the noise check the others.
    """
    for field in fields(spec):
        if not field.init or field.metadata.get("no_physical_effect"):
            continue
        value, name = getattr(spec, field.name), f"{path}{field.name}"
        if isinstance(spec, Noise) and not _is_active(spec, field.name):
            continue
        if is_dataclass(value) and not isinstance(value, type):
            for inner, variant in iter_variants(value, f"{name}."):
                yield inner, replace(spec, **{field.name: variant})
        elif is_parameter_list(value):
            for place in range(len(value)):
                yield from iter_part_variants(spec, field.name, f"{name}[{place}]", place)
        else:
            yield name, change_field(spec, field.name, name)


def is_parameter_list(value: Any) -> bool:
    """Return True for a tuple whose elements are separate parameters: not empty, no quaternion."""
    if not isinstance(value, tuple) or not value:
        return False
    return len(value) != QUATERNION_SIZE or not all(isinstance(part, int | float) for part in value)


def iter_part_variants(spec: Any, field: str, name: str, index: int) -> Iterator[tuple[str, Any]]:
    """Yield the specification with another value of each leaf in one element of the tuple `field`."""
    elements = getattr(spec, field)
    part = elements[index]

    def replace_part(other: Any) -> Any:
        return replace(spec, **{field: (*elements[:index], other, *elements[index + 1 :])})

    if is_dataclass(part) and not isinstance(part, type):
        for inner, variant in iter_variants(part, f"{name}."):
            yield inner, replace_part(variant)
    else:
        yield name, make_first_valid(replace_part, list_other_values(part, name), name)


def _is_active(noise: Noise, field: str) -> bool:
    """Return True if a term of a noise is active."""
    if field == "reference_temperature":
        return noise.has_temperature_coefficient
    return field == "classic" or bool(getattr(noise, field) != getattr(NO_NOISE, field))


def change_field(spec: Any, field: str, name: str) -> Any:
    """Return the specification with the first other value of a field that it accepts."""
    return make_first_valid(
        lambda value: replace(spec, **{field: value}), list_other_values(getattr(spec, field), name), name
    )


def make_first_valid(make: Callable[[Any], Any], values: tuple[Any, ...], name: str) -> Any:
    """Return the result of `make` for the first value that it accepts."""
    for value in values:
        try:
            return make(value)
        except NavsenseError:
            continue
    raise LawBrokenError(f"law of no dead parameter: the specification accepts no other value of {name}")


def list_other_values(value: Any, name: str) -> tuple[Any, ...]:
    """Return other values of the same type, large changes first."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value - 1)
    if isinstance(value, float):
        return (value * 0.75, value * 1.25, value * 0.999, value * 1.001) if value else (1.0, 0.01)
    if isinstance(value, Enum):
        return tuple(other for other in type(value) if other is not value)
    if isinstance(value, tuple) and len(value) == QUATERNION_SIZE:
        return (poses.normalize((value[0] + 0.3, *value[1:])),)
    raise LawBrokenError(
        f"law of no dead parameter: cannot change {name} = {value!r}; use numbers, enumerations and tuples"
    )


def check_parameters(spec: Sensor) -> None:
    """Law 4: a change of any field of the example specification, in which all are active, changes the reading.

    >>> ns.testing.check_parameters(ns.sensors.NavSat.example_spec())
    """
    _, reference = measure_case(make_case(spec))
    for name, variant in iter_variants(spec):
        _, other = measure_case(make_case(variant))
        is_same = is_identical(other.arrays, reference.arrays)
        check_law(not is_same, "no dead parameter", f"{name} has no effect on the readings")


@dataclass(frozen=True)
class RotatedMotion:
    """A motion in a world that is rotated."""

    base: Motion
    rotation: Quaternion

    @property
    def end(self) -> float:
        """Last instant (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the rotated ground truth of the base."""
        block = self.base.at(time)

        def rotate(rows: AnyArray) -> AnyArray:
            return np.array([poses.rotate(self.rotation, (row[0], row[1], row[2])) for row in rows.tolist()])

        attitude = [poses.multiply(self.rotation, (q[0], q[1], q[2], q[3])) for q in block.rotation_wb.tolist()]
        return replace(
            block,
            position_w=rotate(block.position_w),
            rotation_wb=np.array(attitude),
            velocity_w=rotate(block.velocity_w),
            acceleration_w=rotate(block.acceleration_w),
        )


def iter_rotations(group: str) -> Iterator[Quaternion]:
    """Yield rotations of a group: about the vertical, or any."""
    for yaw in (0.4, 2.0, math.pi):
        yield from_rpy(0.0, 0.0, yaw)
    if group == "all":
        yield from_rpy(1.0, -0.6, 0.3)
        yield from_rpy(math.pi, 0.2, -2.0)


def check_equivariance(spec: Sensor) -> None:
    """Law 5: a rotation of the world by the group of the sensor does not change its ideal values, to its tolerance.

    >>> ns.testing.check_equivariance(ns.sensors.NavSat.example_spec())
    """
    ticks = Ticks(np.arange(200, dtype=np.int64), RATE)
    motion, environment = example_motion(), EXAMPLE_ENVIRONMENT
    if spec.rotation_invariance == "all":
        environment = replace(environment, origin=None, current=None)  # earth and water rotate about the vertical only
    reference = spec.ideal(motion, environment, ticks)
    for rotation in iter_rotations(spec.rotation_invariance):
        other = spec.ideal(RotatedMotion(motion, rotation), environment.rotate(rotation), ticks)
        for output in spec.outputs:
            if output.name not in reference:
                continue
            expected, values = reference[output.name], other[output.name]
            if output.equivariance == "orientation":
                expected, values = find_relative_rotations(expected), find_relative_rotations(values)
            finite = np.isfinite(expected)
            is_same = is_identical(finite, np.isfinite(values))
            check_law(is_same, "equivariance", f"{output.name} has other NaN, rotated by {rotation}")
            check_law(bool(finite.any()), "equivariance", f"{output.name} is NaN everywhere")
            scale = max(float(np.abs(expected[finite]).max()), 1e-300)
            error = float(np.abs(expected[finite] - values[finite]).max()) / scale
            message = f"{output.name} differs by {error:.1e} of its maximum, rotated by {rotation}"
            check_law(error <= spec.invariance_tolerance, "equivariance", message)


def find_relative_rotations(orientation: AnyArray) -> AnyArray:
    """Return the orientations (n, 4) relative to the first, which do not depend on the reference frame."""
    rows = [(q[0], q[1], q[2], q[3]) for q in orientation.tolist()]
    back = poses.conjugate(rows[0])
    return np.array([poses.multiply(back, row) for row in rows])


def check_independence(spec: Sensor) -> None:
    """Law 6: adding, removing or reordering other sensors does not change a bit of the readings and stamps.

    The other sensors are of the same and of another type, slower and much faster, so that blocks end elsewhere, and
    share the clock. The run has several blocks.

    >>> ns.testing.check_independence(ns.sensors.NavSat.example_spec())
    """
    name, duration = "robot::arm::one", 30.0
    single = simulate(example_world(("one", spec)), duration, seed=5)[name]
    other = Magnetometer.example_spec()
    worlds = (
        example_world(("one", spec), ("two", spec)),
        set_rates(example_world(("a", other), ("one", spec), ("z", spec)), a=1777.0, z=0.7),
        set_rates(example_world(("z", spec), ("one", spec), ("a", other)), a=1777.0, z=0.7),
    )
    for number, world in enumerate(worlds):
        reading = simulate(world, duration, seed=5, truth_rate=7.0)[name]
        check_same_reading("independence", reading, single, f"with other sensors (world {number})")


def set_rates(world: World, **rates: float) -> World:
    """Return the world with other rates (Hz) of sensors, by the last part of their names."""
    sensors = (replace(one, rate=rates.get(one.name.rpartition("::")[2], one.rate)) for one in world.sensors)
    return replace(world, sensors=tuple(sensors))


SENSOR_LAWS = (
    check_cut,
    check_batch,
    check_ideal,
    check_parameters,
    check_equivariance,
    check_independence,
    check_current,
)
"""The seven laws of a sensor, in order."""


def check_sensor(kind: type[Sensor]) -> None:
    """Check the outputs and the seven laws of a sensor class with its example specification.

    The sensor moves through 3 m in `example_motion` and has the world `EXAMPLE_ENVIRONMENT`. Set the limits of the
    example specification so that they act there. Raises `LawBrokenError`, and `SensorError` for a missing member.

    >>> ns.testing.check_sensor(ns.sensors.NavSat)
    """
    check_members(kind)
    spec = kind.example_spec()
    case = make_case(spec)
    try:
        check_ideal_values(spec.outputs, case.ideal, COUNT)
        check_measurement(spec.outputs, measure_case(case)[1], COUNT)
    except SensorError as error:
        raise LawBrokenError(f"outputs: {error}") from error
    for law in SENSOR_LAWS:
        law(spec)


def check_noise(noise: Noise) -> None:
    """Check the laws of one channel's noise. Raises `LawBrokenError`.

    >>> ns.testing.check_noise(ns.Noise(stddev=0.1))
    """
    check_noise_cut(noise)
    check_noise_ideal(noise)
    check_noise_parameters(noise)
    check_noise_deviation(noise)


def apply_noise(
    noise: Noise, rate: float = RATE, run: int = 0, values: AnyArray | None = None
) -> tuple[AnyArray, AnyArray]:
    """Return the noisy values and biases (n,) of one instrument; `values` (n,) default to a slow wave."""
    wave = make_wave(noise) if values is None else values
    channel = NoiseChannels(("law",), (noise,))
    source = Draws(channel.processes, 11, (run, "law"))
    ticks, draws = Ticks(np.arange(wave.size, dtype=np.int64), rate), source.take(wave.size)
    temperature = make_temperature(wave.size)
    _, out, bias = channel.apply(channel.init(source.initial), ticks, draws, wave, temperature=temperature)
    return out[:, 0], bias[:, 0]


def make_temperature(count: int) -> AnyArray:
    """Return a rising temperature (count,) K."""
    return 290.0 + 0.05 * np.arange(count)


def make_wave(noise: Noise) -> AnyArray:
    """Return a slow wave (n,) that is larger than the noise, so that every parameter has an effect."""
    sizes = [abs(getattr(noise, field.name)) for field in fields(noise) if field.name in SIZE_FIELDS]
    amplitude = 3.0 * max((size for size in sizes if math.isfinite(size)), default=0.0) or 1.0
    return np.array([amplitude * math.sin(0.05 * k) for k in range(COUNT)])


def check_noise_cut(noise: Noise) -> None:
    """Check that a record cut anywhere gives bitwise the same values and end state.

    >>> ns.testing.check_noise_cut(ns.Noise(stddev=0.1))
    """
    channel = NoiseChannels(("law",), (noise,))
    source = Draws(channel.processes, 11, (0, "law"))
    index, wave, temperature = np.arange(COUNT, dtype=np.int64), make_wave(noise), make_temperature(COUNT)
    draws, start = source.take(COUNT), channel.init(source.initial)

    def apply(state: NoiseState, first: int, stop: int) -> tuple[NoiseState, AnyArray, AnyArray]:
        ticks, block_draws = Ticks(index[first:stop], RATE), np.ascontiguousarray(draws[:, first:stop])
        return channel.apply(state, ticks, block_draws, wave[first:stop], temperature=temperature[first:stop])

    end_state, complete, _ = apply(start, 0, COUNT)
    for cut in (1, 17, COUNT - 1):
        middle_state, first, _ = apply(start, 0, cut)
        last_state, second, _ = apply(middle_state, cut, COUNT)
        check_law(is_identical(np.concatenate((first, second)), complete), "cut", f"values differ, cut at {cut}")
        check_law(is_identical(last_state, end_state), "cut", f"the end state differs, cut at {cut}")


def check_noise_ideal(noise: Noise) -> None:
    """Check that a noise without errors does not change any value.

    >>> ns.testing.check_noise_ideal(ns.Noise(stddev=0.1))
    """
    wave = make_wave(noise)
    out, _ = apply_noise(Noise(classic=noise.classic), values=wave)
    check_law(is_identical(out, wave), "ideal", "a noise without errors changes the value")


def check_noise_parameters(noise: Noise) -> None:
    """Check that a change of any active field changes the output.

    >>> ns.testing.check_noise_parameters(ns.Noise(stddev=0.1))
    """
    reference, _ = apply_noise(noise)
    for field in fields(noise):
        name, value = field.name, getattr(noise, field.name)
        if value == getattr(NO_NOISE, name) or (name == "classic" and not noise.has_turn_on_bias):
            continue
        is_same = is_identical(apply_noise(change_field(noise, name, name))[0], reference)
        check_law(not is_same, "no dead parameter", f"{name} has no effect")


def check_noise_deviation(noise: Noise, *, runs: int = 2000) -> None:
    """Check the variance of the bias over many instruments, at the first and a later sample, at two rates.

    The bounds are those of a chi-squared variance (normal approximation, 5 % skew allowance) at a false-alarm rate of
    1e-6 per comparison. Classic noise, whose dynamic bias starts at the turn-on bias, is checked at its first sample.

    >>> ns.testing.check_noise_deviation(ns.Noise(stddev=0.1))
    """
    dynamic_bias = noise.dynamic_bias_stddev**2 * noise.dynamic_bias_correlation_time / 2.0
    flicker = float(np.sum(make_flicker_components(noise.bias_instability, *FLICKER_BAND)[1] ** 2))
    if noise.bias_stddev + dynamic_bias + flicker + noise.random_walk == 0.0 or noise.has_temperature_coefficient:
        return
    declared = noise.bias_stddev**2 + flicker + (0.0 if noise.classic else dynamic_bias)
    bound = 4.9 * math.sqrt(2.0 / runs) * 1.05
    for rate in (1.0, 1000.0):
        bias = np.array([apply_noise(noise, rate, run, np.zeros(30))[1] for run in range(runs)])
        for row in (0,) if noise.classic else (0, 29):
            centre = 0.0 if noise.classic else noise.bias_mean
            variance = float(np.mean((bias[:, row] - centre) ** 2))
            expected = declared + noise.random_walk**2 * row / rate + (noise.bias_mean**2 if noise.classic else 0.0)
            if expected == 0.0:
                continue
            error = variance / expected - 1.0
            message = f"variance wrong by {error:+.3f} at {rate} Hz, sample {row}"
            check_law(abs(error) <= bound, "declared deviation", message)
