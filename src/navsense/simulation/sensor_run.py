"""A mounted sensor in one run: its random draws, its state and its stamps, advanced block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from navsense.clock import ArrivalQueue, Clock, ClockRealisation, SensorClock
from navsense.core.errors import FieldError, MotionError, SensorError, SimulationError, Where
from navsense.core.pose import Pose
from navsense.core.random_streams import Draws
from navsense.core.series import Reading, make_all_read_only, make_read_only
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray, FloatArray
from navsense.environment.base import Environment
from navsense.environment.terrain.base import LazyShape
from navsense.environment.terrain.scene import Body, Scene
from navsense.faults.injection import apply_faults, init_faults
from navsense.faults.schedule import (
    EmissionMask,
    UsesBottomEchoes,
    compute_source_offsets,
    list_source_arrays,
)
from navsense.motion.base import Motion
from navsense.motion.derived import attach
from navsense.motion.stationary import Stationary
from navsense.sensors.base import Measurement, UsesRayCasting, get_flags, repeat_rows
from navsense.world import Link, Model, MountedSensor, Solid, World

Motions = Mapping[str, Motion]
"""Top-level model name -> motion of its canonical link in the world."""

NO_LINK_MOTIONS: Motions = MappingProxyType({})
"""Links without separate motions."""


def check_motions(world: World, motions: Mapping[str, Motion]) -> None:
    """Raise `SimulationError` for a motion of an unknown or static model."""
    models = {model.name: model for model in world.models}
    for name in motions:
        if name not in models:
            allowed = f"must be a model of the world: {', '.join(sorted(models)) or 'it has none'}"
            raise SimulationError("motion of model", name, allowed=allowed)
        if models[name].static:
            raise SimulationError("motion of model", name, allowed="is static and cannot move")


def resolve_motions(world: World, motions: Mapping[str, Motion]) -> Motions:
    """Return the motion of each model: that in `motions`, else that of the model, else stationary at its pose.

    Raises the errors of `check_motions`.
    """
    check_motions(world, motions)
    resolved: dict[str, Motion] = {}
    for model in world.models:
        start = model.pose @ model.link(model.canonical_link).pose if model.links else model.pose
        default = Stationary(start) if model.motion is None else model.motion
        resolved[model.name] = motions.get(model.name, default)
    return resolved


def replace_motions(world: World, motions: Mapping[str, Motion]) -> World:
    """Return the world with these motions of models. Raises the errors of `check_motions`."""
    check_motions(world, motions)
    return replace(world, models=tuple(replace(m, motion=motions.get(m.name, m.motion)) for m in world.models))


def make_link_motion(
    model: Model, link: Link, model_motions: Motions, link_motions: Motions = NO_LINK_MOTIONS
) -> Motion:
    """Return the true motion of a link: its separate motion in `link_motions`, else as a rigid part of its model."""
    if link.name in link_motions:
        return link_motions[link.name]
    canonical = model.link(model.canonical_link).pose
    return attach(model_motions[model.name], canonical.inverse() @ link.pose)


def make_sensor_motion(
    world: World, sensor: MountedSensor, model_motions: Motions, link_motions: Motions = NO_LINK_MOTIONS
) -> Motion:
    """Return the true motion of a sensor's frame, with its lever arm; arguments as for `make_link_motion`."""
    if sensor.link in link_motions:
        return attach(link_motions[sensor.link], sensor.pose)
    model = world.model(sensor.model)
    canonical, link = model.link(model.canonical_link).pose, model.link(sensor.link).pose
    pose: Pose = canonical.inverse() @ link @ sensor.pose
    return attach(model_motions[model.name], pose)


def build_scene(world: World, model_motions: Motions, link_motions: Motions = NO_LINK_MOTIONS) -> Scene:
    """Return the bodies that rays can hit in a world: those of its environment, and the surfaces of its models.

    `link_motions` are the motions of links that do not move with their model.
    """
    links = {link.name: (model, link) for model in world.models for link in model.links}
    motions = {
        name: make_link_motion(*links[name], model_motions, link_motions)
        for name in {solid.link for solid in world.solids}
    }
    bodies = tuple(_make_body(solid, motions[solid.link]) for solid in world.solids)
    return Scene(world.environment.scene.bodies + bodies)


def _make_body(solid: Solid, motion: Motion) -> Body:
    """Return a surface as a body on its link; on a stationary link, as a body of the world frame."""
    if isinstance(motion, Stationary):
        return Body(solid.name, solid.shape, motion.pose @ solid.pose)
    return Body(solid.name, solid.shape, solid.pose, motion)


def make_environment(world: World, sensor: MountedSensor, scene: Scene) -> Environment:
    """Return the environment of a sensor; for a sensor that casts rays, with the scene.

    The files of surfaces that the rays can hit are read. Raises `FieldError` with the surface's name for a file that
    cannot be read.
    """
    if not isinstance(sensor.spec, UsesRayCasting):
        return world.environment
    where = {solid.name: solid.where for solid in world.solids}
    for body in scene.bodies:
        if isinstance(body.shape, LazyShape) and can_hit(sensor, body.name):
            read_surface(body.name, body.shape, where.get(body.name))
    return replace(world.environment, scene=scene, hull=sensor.model)


def can_hit(sensor: MountedSensor, body: str) -> bool:
    """Return True if a sensor casts rays that can hit the body with this name."""
    spec = sensor.spec
    return isinstance(spec, UsesRayCasting) and (spec.own_hull or not body.startswith(f"{sensor.model}::"))


def list_unreadable_surfaces(world: World) -> Iterator[FieldError]:
    """Read the surfaces that rays of a sensor can hit, and yield the errors of their files."""
    for solid in world.solids:
        if isinstance(solid.shape, LazyShape) and any(can_hit(sensor, solid.name) for sensor in world.sensors):
            try:
                read_surface(solid.name, solid.shape, solid.where)
            except FieldError as error:
                yield error


def read_surface(name: str, lazy_shape: LazyShape, where: Where | None) -> None:
    """Read a surface. Raise `FieldError` with its name and its location `where` in the world file."""
    try:
        _ = lazy_shape.shape
    except FieldError as error:
        subject = f"surface {name}: {f'{error.where} ' if error.where else ''}{error.what}"
        location = where or error.where
        raise FieldError(subject, error.value, allowed=error.allowed, where=location, remedy=error.remedy) from error


def check_duration(motions: Motions, duration: float) -> None:
    """Raise `MotionError` if a motion ends before `duration` (s)."""
    for name, motion in motions.items():
        if motion.end < duration:
            raise MotionError(
                f"duration of the run against the motion of {name!r}",
                duration,
                allowed=f"must be at most {motion.end!r} s, where that motion ends",
                remedy="ask for a shorter duration or give a longer motion",
            )


UNDEFINED_FIELD_REMEDY = "check the position of the model at this time: its motion, and <spherical_coordinates>"
"""Remedy for a sensor at a point where a field is undefined."""

_VALID = "valid"
"""Name of the validity among the arrays of fault injection. A stuck sensor repeats its validity too."""


@dataclass(frozen=True, eq=False)
class SensorBlock:
    """The result of one sensor for a block of ticks in one run; `arrival` (n,) s is None without latency."""

    measured: Measurement
    clock_error: FloatArray
    arrival: FloatArray | None = None


class SensorRun:
    """One mounted sensor in one run. `measure` advances its state."""

    def __init__(
        self,
        sensor: MountedSensor,
        clock: Clock | None,
        seed: int,
        run: int,
        *,
        prefetch: int = 0,
        clock_realisation: ClockRealisation | None = None,
    ) -> None:
        """Draw the initial state. The keys of the random streams are (run, "sensor", name, channel, process).

        prefetch: samples whose random numbers are drawn together.
        clock_realisation: that of the clock in this run, which the sensors of the clock share.
        """
        self.sensor = sensor
        self._draws = Draws(sensor.spec.processes(), seed, (run, "sensor", sensor.name), prefetch=prefetch)
        self.state = sensor.spec.init(self._draws.initial)
        self._clock = SensorClock(clock, sensor.name, seed, run, prefetch=prefetch, realisation=clock_realisation)
        self._arrivals = (
            ArrivalQueue(sensor.latency, sensor.name, seed, run, prefetch=prefetch) if sensor.latency else None
        )
        self._fault_draws = Draws(sensor.faults.processes(), seed, (run, "fault", sensor.name), prefetch=prefetch)
        self._faults = init_faults(sensor.faults, self._fault_draws.initial)

    def measure(self, ticks: Ticks, ideal: Mapping[str, AnyArray]) -> SensorBlock:
        """Measure the next block. `ticks` must follow those of the last call."""
        draws = self._draws.take(len(ticks))
        faults, spec = self.sensor.faults, self.sensor.spec
        if faults.scheduled and isinstance(spec, UsesBottomEchoes):
            ideal = spec.remove_bottom_echoes(ideal, faults.schedule.find_lost_lock(ticks))
        measured = self._measure(ticks, ideal, draws)
        if self.sensor.faults.has_faults:
            measured = self._inject_faults(ticks, measured)
        if not self.sensor.is_on:
            measured = measured._replace(emitted=np.zeros(len(ticks), dtype=np.bool_))
        arrival = None
        if self._arrivals:
            arrival = self._arrivals.compute_arrivals(ticks.time, get_flags(measured, len(ticks))["emitted"])
        return SensorBlock(measured, self._clock.compute_errors(ticks.time), arrival)

    def _measure(self, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray) -> Measurement:
        """Measure a block, with the scheduled faults of the arrays from which a spec derives other arrays."""
        spec, before, faults = self.sensor.spec, self.state, self.sensor.faults
        self.state, measured = spec.measure(before, ticks, ideal, draws)
        source_arrays = list_source_arrays(spec) if faults.scheduled else ()
        if not source_arrays:
            return measured
        # Faults count published ticks, which are known only after a measurement and do not depend on its values.
        # So the block is measured a second time, with the offsets of the faults.
        mask = EmissionMask.from_ticks(
            ticks, get_flags(measured, len(ticks))["emitted"], self._faults.last_emitted_tick
        )
        shapes = {output.name: output.shape for output in spec.outputs if output.name in source_arrays}
        if offsets := compute_source_offsets(faults.schedule.find_active(mask), shapes):
            self.state, measured = spec.measure(before, ticks, {**ideal, **offsets}, draws)
        return measured

    def _inject_faults(self, ticks: Ticks, measured: Measurement) -> Measurement:
        """Apply the faults to a block."""
        flags, draws = get_flags(measured, len(ticks)), self._fault_draws.take(len(ticks))
        source_arrays = list_source_arrays(self.sensor.spec) if self.sensor.faults.scheduled else ()
        self._faults, arrays, fault = apply_faults(
            self.sensor.faults,
            self._faults,
            ticks,
            draws,
            {**measured.arrays, _VALID: flags["valid"]},
            flags["emitted"],
            source_arrays,
        )
        is_present = ~fault["dropout"]
        valid = arrays[_VALID] & is_present
        arrays = {name: array for name, array in arrays.items() if name != _VALID}
        return measured._replace(arrays=arrays, valid=valid, emitted=flags["emitted"] & is_present, fault=fault)


def compute_ideal(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks
) -> Mapping[str, AnyArray]:
    """Return the sensor's ideal values, read-only.

    Raises `FieldError` and `SensorError` with the sensor's name, its location in the file and the instant.
    """
    try:
        ideal = sensor.spec.ideal(motion, environment, ticks)
    except (FieldError, SensorError) as error:
        raise _locate_error(sensor, motion, environment, ticks, error) from error
    make_all_read_only(ideal.values())
    return ideal


def _locate_error(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks, error: FieldError | SensorError
) -> FieldError | SensorError:
    """Return an error of the ideal values of a block with the instant of the first tick that has it."""
    first, stop = 0, len(ticks)
    # The row of a field's error may not be a tick, so the tick is found by bisection. It is in [first, stop).
    while stop - first > 1:
        middle = (first + stop) // 2
        try:
            sensor.spec.ideal(motion, environment, replace(ticks, index=ticks.index[first:middle]))
            first = middle
        except (FieldError, SensorError) as earlier_error:
            stop, error = middle, earlier_error
    subject = f"sensor {sensor.name}" + (f" at t = {ticks.time[first]:.9g} s" if len(ticks) else "")
    where = error.where or sensor.where
    if isinstance(error, FieldError):
        remedy = error.remedy or UNDEFINED_FIELD_REMEDY
        return FieldError(
            f"{subject}: {error.quantity}", error.value, allowed=error.allowed, where=where, remedy=remedy
        )
    return SensorError(f"{subject}: {error.what}", error.value, allowed=error.allowed, where=where, remedy=error.remedy)


def make_reading(
    sensor: MountedSensor, ticks: Ticks, ideal: Mapping[str, AnyArray], block: SensorBlock, epoch: int
) -> Reading:
    """Return the reading of a block."""
    measured, unit = block.measured, sensor.unit
    flags = get_flags(measured, len(ticks))
    # A live step makes a reading per sensor. Without `__init__` this is faster.
    reading = object.__new__(Reading)
    reading.__dict__.update(
        name=sensor.name,
        type=sensor.spec.type,
        frame=sensor.frame,
        unit=unit,
        time=make_read_only(ticks.time),
        clock_error=block.clock_error,
        arrays=measured.arrays,
        ideal={name: ideal[name] for name in unit if name in ideal},
        bias=dict(measured.bias),
        turn_on_bias=repeat_rows(measured.turn_on_bias, len(ticks)),
        fault=dict(measured.fault),
        valid=flags["valid"],
        emitted=flags["emitted"],
        epoch=epoch,
        arrivals=block.arrival,
    )
    return reading


def index_clocks(world: World) -> Mapping[str, Clock]:
    """Return the world's clocks by full name."""
    return {clock.name: clock for clock in world.clocks}


def open_sensor_runs(
    world: World, seed: int, runs: Sequence[int], *, prefetch: int = 0
) -> dict[str, tuple[SensorRun, ...]]:
    """Return the sensor runs by full sensor name, one for each run."""
    clocks = index_clocks(world)
    clock_names = {sensor.clock for sensor in world.sensors if sensor.clock}
    realisations = {(name, run): ClockRealisation(clocks[name], seed, run) for name in clock_names for run in runs}

    def open_run(sensor: MountedSensor, run: int) -> SensorRun:
        if not sensor.clock:
            return SensorRun(sensor, None, seed, run, prefetch=prefetch)
        realisation = realisations[sensor.clock, run].copy()
        return SensorRun(sensor, clocks[sensor.clock], seed, run, prefetch=prefetch, clock_realisation=realisation)

    return {sensor.name: tuple(open_run(sensor, run) for run in runs) for sensor in world.sensors}
