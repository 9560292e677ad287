"""The laws of a sensor and of a noise, as functions that raise: for the sensors here and for a user's own.

    from navsense.testing import check_sensor
    check_sensor(MySensor)

`check_sensor(kind)` holds `kind.example_spec()` to: cut, batch (and live), ideal, no dead parameter, equivariance,
independence, current. `check_noise(noise)` holds one channel's noise to: cut, ideal, no dead parameter, and the
declared deviation at the first sample and later, at two rates. Each law is a separate function. A law
that does not hold raises `LawBrokenError` with its name and the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from navsense import pose as poses
from navsense.clock import Clock
from navsense.environment.base import Environment
from navsense.environment.current import GaussMarkovCurrent, GaussMarkovProcess, StratifiedCurrent
from navsense.environment.signal import Signal
from navsense.environment.terrain.primitives import Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.errors import NavsenseError
from navsense.geodesy import Origin
from navsense.live_run import concatenate_readings, live
from navsense.motion.base import Motion, MotionBlock
from navsense.motion.trajectory import waypoints
from navsense.noise.channel import NEUTRAL, Noise
from navsense.noise.channels import FLICKER_BAND, NoiseChannels, NoiseState
from navsense.noise.flicker import make_components
from navsense.pose import Pose, from_rpy
from navsense.random_streams import Draws
from navsense.sensors.base import Sensor, get_flags
from navsense.sensors.magnetometer import Magnetometer
from navsense.series import ARRAY_GROUPS, Reading
from navsense.simulation import simulate
from navsense.ticks import Ticks
from navsense.typing import AnyArray, Quaternion, Times
from navsense.world import Link, Model, MountedSensor, World

RATE = 200.0
COUNT = 400
QUATERNION_SIZE = 4
"""Numbers of a quaternion: a tuple of so many is one."""

SIZE_FIELDS = frozenset(
    "mean stddev bias_mean bias_stddev precision minimum maximum bias_instability outlier_stddev".split()
)
"""Fields of a noise that are in the channel's unit."""


class LawBrokenError(AssertionError):
    """A sensor or a noise does not keep one of the laws."""


def check_law(holds: bool, law: str, message: str) -> None:
    """Raise `LawBrokenError` unless the law holds."""
    if not holds:
        raise LawBrokenError(f"law of {law}: {message}")


def example_motion() -> Motion:
    """Return a motion with every kind of acceleration, that goes on for ever."""
    path = [
        Pose((0.0, 0.0, 1.0), from_rpy(0.1, -0.2, 0.0)),
        Pose((2.0, 1.0, 1.5), from_rpy(-0.3, 0.2, 0.8)),
        Pose((3.0, -1.0, 2.5), from_rpy(0.4, 0.3, 1.6)),
        Pose((0.5, -2.0, 0.7), from_rpy(0.2, -0.4, 0.9)),
        Pose((0.0, 0.0, 1.0), from_rpy(0.1, -0.2, 0.0)),
    ]
    return waypoints((0.0, 0.7, 1.3, 2.1, 3.0), path, loop=True)


def make_swinging_motion() -> Motion:
    """Return the motion of something that swings where a beam of the witness passes."""
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
"""Where the laws are held: a world with a place on earth, a heading, water that one dives into, inputs that change, a
bed, a keel and a skid that rays meet."""


def example_world(*named: tuple[str, Sensor]) -> World:
    """Return a robot on which all named sensors sit off the link's origin, on one drifting clock."""
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
    """Tell whether two states, arrays or mappings are equal to the last bit, NaN equal to NaN."""
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
    """A sensor with all that its law takes: motion, surroundings, ticks, ideal values and draws."""

    spec: Sensor
    ticks: Ticks
    ideal: Mapping[str, AnyArray]
    initial: AnyArray
    draws: AnyArray


def make_case(spec: Sensor, *, seed: int = 1, count: int = COUNT) -> SensorCase:
    """Return a sensor on the witness motion with `count` ticks drawn."""
    ticks = Ticks(np.arange(count, dtype=np.int64), RATE)
    source = Draws(spec.processes(), seed, (0, "law"))
    ideal = spec.ideal(example_motion(), EXAMPLE_ENVIRONMENT, ticks)
    return SensorCase(spec, ticks, ideal, source.initial, source.take(count))


def measure_case(case: SensorCase) -> tuple[Any, Any]:
    """Return the end state and everything measured, in one piece."""
    return case.spec.measure(case.spec.init(case.initial), case.ticks, case.ideal, case.draws)


def check_cut(spec: Sensor) -> None:
    """Law 1: a record cut anywhere gives bitwise the same readings and end state."""
    on = make_case(spec)
    whole_state, whole = measure_case(on)
    for cuts in ((1,), (COUNT - 1,), (7, 8, 200), tuple(range(1, 40))):
        state, parts, flags = on.spec.init(on.initial), [], []
        for first, stop in zip((0, *cuts), (*cuts, COUNT), strict=True):
            ticks = Ticks(on.ticks.index[first:stop], RATE)
            ideal = spec.ideal(example_motion(), EXAMPLE_ENVIRONMENT, ticks)
            for name, values in ideal.items():
                check_law(
                    is_identical(values, on.ideal[name][first:stop]),
                    "cut",
                    f"ideal {name} depends on where the block begins",
                )
            state, part = spec.measure(state, ticks, ideal, np.ascontiguousarray(on.draws[:, first:stop]))
            parts.append(part)
            flags.append(get_flags(part, len(ticks)))
        check_law(is_identical(state, whole_state), "cut", f"the end state differs, cut at {cuts[:5]}")
        for group in ("arrays", "bias"):
            for name, values in getattr(whole, group).items():
                joined = np.concatenate([getattr(part, group)[name] for part in parts])
                check_law(is_identical(joined, values), "cut", f"{group}[{name!r}] differ, cut at {cuts[:5]}")
        for name, values in get_flags(whole, COUNT).items():
            joined = np.concatenate([part[name] for part in flags])
            check_law(is_identical(joined, values), "cut", f"{name} differs, cut at {cuts[:5]}")


def check_same_reading(law: str, one: Reading, other: Reading, condition: str) -> None:
    """Raise unless two readings agree in everything, to the last bit."""
    for group in ARRAY_GROUPS:
        left, right = getattr(one, group), getattr(other, group)
        check_law(left.keys() == right.keys(), law, f"{group} have other names {condition}")
        for name in left:
            check_law(is_identical(left[name], right[name]), law, f"{group}[{name!r}] differ {condition}")
    for name in ("time", "clock_error", "arrival", "valid", "emitted"):
        check_law(is_identical(getattr(one, name), getattr(other, name)), law, f"{name} differs {condition}")


def select_run(reading: Reading, row: int) -> Reading:
    """Return one run of a batch."""
    return replace(
        reading,
        clock_error=reading.clock_error[row],
        arrays={name: array[row] for name, array in reading.arrays.items()},
        bias={name: array[row] for name, array in reading.bias.items()},
        turn_on_bias={name: array[row] for name, array in reading.turn_on_bias.items()},
        fault={kind: rows[row] for kind, rows in reading.fault.items()},
        ideal={name: array[row] for name, array in reading.ideal.items()} if reading.ideal_in_runs else reading.ideal,
        ideal_in_runs=False,
        arrivals=None if reading.arrivals is None else reading.arrivals[row],
        valid=reading.valid[row],
        emitted=reading.emitted[row],
    )


def check_batch(spec: Sensor, *, duration: float = 1.0) -> None:
    """Law 2: row i of a batch equals the single run bitwise, and live equals batch bitwise."""
    world = example_world(("one", spec))
    name = "robot::arm::one"
    batch = simulate(world, duration, seed=3, runs=(0, 1, 5))[name]
    for row, run in enumerate((0, 1, 5)):
        alone = select_run(simulate(world, duration, seed=3, runs=(run,))[name], 0)
        check_same_reading("batch", select_run(batch, row), alone, f"in run {run}")
    single = simulate(world, duration, seed=3)[name]
    check_same_reading("batch", select_run(batch, 0), single, "without a run axis")
    stepped = [step.readings[name] for step in run_live(world, duration) if name in step.readings]
    check_same_reading("batch", concatenate_readings(stepped), single, "when stepped live")


RANDOM_CURRENT = GaussMarkovCurrent(
    GaussMarkovProcess(mean=0.3, correlation_time=2.0, density=0.2),
    GaussMarkovProcess(correlation_time=2.0, density=1.0),
    name="wandering",
)
"""A current that differs from run to run."""


def check_current(spec: Sensor, *, duration: float = 1.0) -> None:
    """Law 7: readings that depend on a random current differ between runs, and a batch equals the single runs.

    A reading depends on the current if its truth differs from the truth without a current.
    """
    world, name = example_world(("one", spec)), "robot::arm::one"
    wet, still = (
        replace(world, environment=replace(EXAMPLE_ENVIRONMENT, current=one)) for one in (RANDOM_CURRENT, None)
    )
    batch = simulate(wet, duration, seed=3, runs=(0, 1, 5))[name]
    rows = [select_run(batch, row) for row in range(3)]
    for row, run in enumerate((0, 1, 5)):
        alone = select_run(simulate(wet, duration, seed=3, runs=(run,))[name], 0)
        check_same_reading("current", rows[row], alone, f"in run {run} of a random current")
    dry = simulate(still, duration, seed=3)[name]
    for array in dry.ideal:
        if is_identical(dry.ideal[array], rows[0].ideal[array]):
            continue
        for row, run in ((1, 1), (2, 5)):
            alike = is_identical(rows[0].ideal[array], rows[row].ideal[array])
            check_law(not alike, "current", f"truth[{array!r}] is the same in runs 0 and {run}")


def run_live(world: World, duration: float) -> Iterator[Any]:
    """Yield the steps of a live run of `duration` (s)."""
    for step in live(world, seed=3):
        if step.time >= duration:
            return
        yield step


def check_ideal(spec: Sensor) -> None:
    """Law 3: all error fields neutral and all draws zero gives the ideal value."""
    neutral = spec.without_errors()
    on = make_case(neutral)
    _, result = neutral.measure(neutral.init(on.initial * 0.0), on.ticks, on.ideal, on.draws * 0.0)
    for output in neutral.outputs:
        if output.name in on.ideal:
            check_law(
                is_identical(result.arrays[output.name], on.ideal[output.name]), "ideal", f"{output.name} differs"
            )


def iter_variants(spec: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the spec with one leaf field changed at a time, with the path of the field; labels are no parameters.

    Leaves are the numbers of a tuple, a quaternion apart, and the fields of each part of a tuple of parts. Of a `Noise`
    the terms that act: that each of them acts where it is declared is a law of the noise itself.
    """
    for field in fields(spec):
        if not field.init or field.metadata.get("label"):
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
    """Tell whether a value is a tuple of which every part means something by itself: not empty, no quaternion."""
    if not isinstance(value, tuple) or not value:
        return False
    return len(value) != QUATERNION_SIZE or not all(isinstance(part, int | float) for part in value)


def iter_part_variants(spec: Any, field: str, name: str, index: int) -> Iterator[tuple[str, Any]]:
    """Yield the spec with one leaf changed in one part of the tuple `field`."""
    whole = getattr(spec, field)
    part = whole[index]

    def exchanged(other: Any) -> Any:
        return replace(spec, **{field: (*whole[:index], other, *whole[index + 1 :])})

    if is_dataclass(part) and not isinstance(part, type):
        for inner, variant in iter_variants(part, f"{name}."):
            yield inner, exchanged(variant)
    else:
        yield name, make_first_valid(exchanged, list_other_values(part, name), name)


def _is_active(noise: Noise, field: str) -> bool:
    """Tell whether a term of a noise acts."""
    if field == "reference_temperature":
        return noise.has_temperature_coefficient
    return field == "classic" or bool(getattr(noise, field) != getattr(NEUTRAL, field))


def change_field(spec: Any, field: str, name: str) -> Any:
    """Return the spec with one field changed, by the first other value that the spec accepts."""
    return make_first_valid(
        lambda value: replace(spec, **{field: value}), list_other_values(getattr(spec, field), name), name
    )


def make_first_valid(make: Callable[[Any], Any], values: tuple[Any, ...], name: str) -> Any:
    """Return what is made of the first of the values that it can be made of."""
    for value in values:
        try:
            return make(value)
        except NavsenseError:
            continue
    raise LawBrokenError(f"law of no dead parameter: the spec accepts no other {name}")


def list_other_values(value: Any, name: str) -> tuple[Any, ...]:
    """Return other values of the same kind, large changes first."""
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
    raise LawBrokenError(f"law of no dead parameter: no way is known to change {name} = {value!r}")


def check_parameters(spec: Sensor) -> None:
    """Law 4: each field, changed from the witness in which all are active, changes the output."""
    _, reference = measure_case(make_case(spec))
    for name, variant in iter_variants(spec):
        _, other = measure_case(make_case(variant))
        alike = is_identical(other.arrays, reference.arrays)
        check_law(not alike, "no dead parameter", f"{name} changes nothing in the readings")


@dataclass(frozen=True)
class RotatedMotion:
    """A motion in a world turned by `rotation`."""

    base: Motion
    rotation: Quaternion

    @property
    def end(self) -> float:
        """Last instant (s) of the base."""
        return self.base.end

    def at(self, time: Times) -> MotionBlock:
        """Return the truth of the base, turned."""
        block = self.base.at(time)
        turn = self.rotation

        def vectors(rows: AnyArray) -> AnyArray:
            return np.array([poses.rotate(turn, (row[0], row[1], row[2])) for row in rows.tolist()])

        attitude = [poses.multiply(turn, (q[0], q[1], q[2], q[3])) for q in block.rotation_wb.tolist()]
        return replace(
            block,
            position_w=vectors(block.position_w),
            rotation_wb=np.array(attitude),
            velocity_w=vectors(block.velocity_w),
            acceleration_w=vectors(block.acceleration_w),
        )


def iter_rotations(group: str) -> Iterator[Quaternion]:
    """Yield rotations of a group: about the vertical, or any."""
    for yaw in (0.4, 2.0, math.pi):
        yield from_rpy(0.0, 0.0, yaw)
    if group == "all":
        yield from_rpy(1.0, -0.6, 0.3)
        yield from_rpy(math.pi, 0.2, -2.0)


def check_equivariance(spec: Sensor) -> None:
    """Law 5: turning the whole world by the sensor's group leaves what it reads, to its stated tolerance."""
    ticks = Ticks(np.arange(200, dtype=np.int64), RATE)
    motion, surroundings = example_motion(), EXAMPLE_ENVIRONMENT
    if spec.group == "all":
        surroundings = replace(surroundings, origin=None, current=None)  # the earth and water stay upright
    reference = spec.ideal(motion, surroundings, ticks)
    for turn in iter_rotations(spec.group):
        other = spec.ideal(RotatedMotion(motion, turn), surroundings.rotate(turn), ticks)
        for output in spec.outputs:
            if output.name not in reference:
                continue
            one, two = reference[output.name], other[output.name]
            if output.equivariance == "orientation":
                one, two = find_relative_rotations(one), find_relative_rotations(two)
            known = np.isfinite(one)
            check_law(
                is_identical(known, np.isfinite(two)),
                "equivariance",
                f"{output.name} is not known where it was, by {turn}",
            )
            check_law(bool(known.any()), "equivariance", f"{output.name} is nowhere known")
            scale = max(float(np.abs(one[known]).max()), 1e-300)
            off = float(np.abs(one[known] - two[known]).max()) / scale
            check_law(
                off <= spec.tolerance,
                "equivariance",
                f"{output.name} differs by {off:.1e} of its size, turned by {turn}",
            )


def find_relative_rotations(orientation: AnyArray) -> AnyArray:
    """Return each attitude relative to the first (n, 4): free of the reference frame."""
    rows = [(q[0], q[1], q[2], q[3]) for q in orientation.tolist()]
    back = poses.conjugate(rows[0])
    return np.array([poses.multiply(back, row) for row in rows])


def check_independence(spec: Sensor) -> None:
    """Law 6: adding, removing or reordering other sensors leaves this one's readings and stamps bitwise equal.

    The others are of its own and of another kind, slower and much faster, so that blocks are cut elsewhere, and share
    its clock; the run is several blocks long.
    """
    name, duration = "robot::arm::one", 30.0
    alone = simulate(example_world(("one", spec)), duration, seed=5)[name]
    other = Magnetometer.example_spec()
    companies = (
        example_world(("one", spec), ("two", spec)),
        set_rates(example_world(("a", other), ("one", spec), ("z", spec)), a=1777.0, z=0.7),
        set_rates(example_world(("z", spec), ("one", spec), ("a", other)), a=1777.0, z=0.7),
    )
    for number, world in enumerate(companies):
        among = simulate(world, duration, seed=5, truth_rate=7.0)[name]
        check_same_reading("independence", among, alone, f"beside other sensors (company {number})")


def set_rates(world: World, **rates: float) -> World:
    """Return the world with other rates (Hz) for the sensors named."""
    sensors = (replace(s, rate=rates.get(s.name.rpartition("::")[2], s.rate)) for s in world.sensors)
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
    """Hold a kind of sensor to the six laws, by its witness. Raises `LawBrokenError`."""
    for law in SENSOR_LAWS:
        law(kind.example_spec())


def check_noise(noise: Noise) -> None:
    """Hold one channel's noise to cut, ideal, no dead parameter and declared deviation; raise `LawBrokenError`."""
    check_noise_cut(noise)
    check_noise_ideal(noise)
    check_noise_parameters(noise)
    check_noise_deviation(noise)


def apply_noise(
    noise: Noise, rate: float = RATE, serial: int = 0, values: AnyArray | None = None
) -> tuple[AnyArray, AnyArray]:
    """Return the noisy values and slow errors (n,) of one serial number over `values` (n,), a slow wave by default."""
    wave = make_wave(noise) if values is None else values
    channel = NoiseChannels(("law",), (noise,))
    source = Draws(channel.processes, 11, (serial, "law"))
    ticks, draws = Ticks(np.arange(wave.size, dtype=np.int64), rate), source.take(wave.size)
    warm = make_temperature(wave.size)
    _, out, slow = channel.apply(channel.init(source.initial), ticks, draws, wave, temperature=warm)
    return out[:, 0], slow[:, 0]


def make_temperature(count: int) -> AnyArray:
    """Return a temperature (count,) K that rises."""
    return 290.0 + 0.05 * np.arange(count)


def make_wave(noise: Noise) -> AnyArray:
    """Return a slow wave (n,) some times as large as the noise, so that every parameter shows in it."""
    sizes = [abs(getattr(noise, field.name)) for field in fields(noise) if field.name in SIZE_FIELDS]
    amplitude = 3.0 * max((size for size in sizes if math.isfinite(size)), default=0.0) or 1.0
    return np.array([amplitude * math.sin(0.05 * k) for k in range(COUNT)])


def check_noise_cut(noise: Noise) -> None:
    """Cut anywhere, the values and the end state are bitwise the same."""
    channel = NoiseChannels(("law",), (noise,))
    source = Draws(channel.processes, 11, (0, "law"))
    index, wave, warmth = np.arange(COUNT, dtype=np.int64), make_wave(noise), make_temperature(COUNT)
    draws, start = source.take(COUNT), channel.init(source.initial)

    def piece(state: NoiseState, first: int, stop: int) -> tuple[NoiseState, AnyArray, AnyArray]:
        ticks, drawn = Ticks(index[first:stop], RATE), np.ascontiguousarray(draws[:, first:stop])
        return channel.apply(state, ticks, drawn, wave[first:stop], temperature=warmth[first:stop])

    end, whole, _ = piece(start, 0, COUNT)
    for cut in (1, 17, COUNT - 1):
        middle, first, _ = piece(start, 0, cut)
        last, second, _ = piece(middle, cut, COUNT)
        check_law(is_identical(np.concatenate((first, second)), whole), "cut", f"values differ, cut at {cut}")
        check_law(is_identical(last, end), "cut", f"the end state differs, cut at {cut}")


def check_noise_ideal(noise: Noise) -> None:
    """Neutral noise leaves every value as it is."""
    wave = make_wave(noise)
    out, _ = apply_noise(Noise(classic=noise.classic), values=wave)
    check_law(is_identical(out, wave), "ideal", "neutral noise changes the value")


def check_noise_parameters(noise: Noise) -> None:
    """Each field that acts (differs from neutral) changes the output when it changes."""
    reference, _ = apply_noise(noise)
    for field in fields(noise):
        name, value = field.name, getattr(noise, field.name)
        if value == getattr(NEUTRAL, name) or (name == "classic" and not noise.has_turn_on_bias):
            continue
        check_law(
            not is_identical(apply_noise(change_field(noise, name, name))[0], reference),
            "no dead parameter",
            f"{name} changes nothing",
        )


def check_noise_deviation(noise: Noise, *, serials: int = 2000) -> None:
    """Over many serial numbers the slow error has the declared variance, at the first sample and later, at two rates.

    The bounds are those of a chi-squared variance (normal approximation, 5 % skew allowance) at a false-alarm rate of
    1e-6 a comparison. Classic noise, whose turn-on is the drift's start, is held at its first sample only.
    """
    drift = noise.dynamic_bias_stddev**2 * noise.dynamic_bias_correlation_time / 2.0
    flicker = float(np.sum(make_components(noise.bias_instability, *FLICKER_BAND)[1] ** 2))
    if noise.bias_stddev + drift + flicker + noise.random_walk == 0.0 or noise.has_temperature_coefficient:
        return
    declared = noise.bias_stddev**2 + flicker + (0.0 if noise.classic else drift)
    bound = 4.9 * math.sqrt(2.0 / serials) * 1.05
    for rate in (1.0, 1000.0):
        slow = np.array([apply_noise(noise, rate, serial, np.zeros(30))[1] for serial in range(serials)])
        for row in (0,) if noise.classic else (0, 29):
            centre = 0.0 if noise.classic else noise.bias_mean
            second = float(np.mean((slow[:, row] - centre) ** 2))
            expected = declared + noise.random_walk**2 * row / rate + (noise.bias_mean**2 if noise.classic else 0.0)
            if expected == 0.0:
                continue
            off = second / expected - 1.0
            check_law(abs(off) <= bound, "declared deviation", f"variance off by {off:+.3f} at {rate} Hz, sample {row}")
