"""A mounted sensor in one run: its random draws, its state and its stamps, advanced block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from navsense.clock import ArrivalQueue, Clock, ClockRealisation, Stamps
from navsense.core.errors import FieldError, MotionError, SensorError, SimulationError, Where
from navsense.core.pose import Pose
from navsense.core.random_streams import Draws
from navsense.core.series import Reading, make_read_only
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


def resolve_motions(world: World, given: Mapping[str, Motion]) -> Motions:
    """Return the motion of each model: the given one, else its own, else stationary at its pose in the file."""
    known = {model.name for model in world.models}
    for name in given:
        if name not in known:
            allowed = f"must be a model of the world: {', '.join(sorted(known)) or 'it has none'}"
            raise SimulationError("motion of model", name, allowed=allowed)
    found: dict[str, Motion] = {}
    for model in world.models:
        if model.static and model.name in given:
            raise SimulationError("motion of model", model.name, allowed="is static and cannot move")
        still = (
            Stationary(model.pose @ model.link(model.canonical_link).pose) if model.links else Stationary(model.pose)
        )
        own = still if model.motion is None else model.motion
        found[model.name] = given.get(model.name, own)
    return found


def replace_motions(world: World, given: Mapping[str, Motion]) -> World:
    """Return the world with the motions `given` in place of its own. Raises the errors of `resolve_motions`."""
    resolve_motions(world, given)
    return replace(world, models=tuple(replace(m, motion=given.get(m.name, m.motion)) for m in world.models))


def link_motion(model: Model, link: Link, motions: Motions, links: Motions = NO_LINK_MOTIONS) -> Motion:
    """Return the truth of one link: its motion in `links`, else that of its model as one rigid body."""
    if link.name in links:
        return links[link.name]
    canonical = model.link(model.canonical_link).pose
    return attach(motions[model.name], canonical.inverse() @ link.pose)


def sensor_motion(world: World, sensor: MountedSensor, motions: Motions, links: Motions = NO_LINK_MOTIONS) -> Motion:
    """Return the truth of a sensor's own frame, lever arm included; `links` as for `link_motion`."""
    if sensor.link in links:
        return attach(links[sensor.link], sensor.pose)
    model = world.model(sensor.model)
    canonical, link = model.link(model.canonical_link).pose, model.link(sensor.link).pose
    place: Pose = canonical.inverse() @ link @ sensor.pose
    return attach(motions[model.name], place)


def build_scene(world: World, motions: Motions, own: Motions = NO_LINK_MOTIONS) -> Scene:
    """Return the bodies that rays can hit in a world: those of its environment, and the surfaces of its models.

    `own` are the motions of links that do not move with their model.
    """
    links = {link.name: (model, link) for model in world.models for link in model.links}
    moved = {name: link_motion(*links[name], motions, own) for name in {solid.link for solid in world.solids}}
    return Scene(world.environment.scene.bodies + tuple(_make_body(solid, moved[solid.link]) for solid in world.solids))


def _make_body(solid: Solid, motion: Motion) -> Body:
    """Return a surface as a body on its link; on a stationary link, as a body of the world frame."""
    if isinstance(motion, Stationary):
        return Body(solid.name, solid.shape, motion.pose @ solid.pose)
    return Body(solid.name, solid.shape, solid.pose, motion)


def make_environment(world: World, sensor: MountedSensor, scene: Scene) -> Environment:
    """Return the environment of a sensor. For a sensor that casts rays it contains the scene, with all files read.

    Raises `FieldError` with the surface's name for a file that cannot be read.
    """
    if not isinstance(sensor.spec, UsesRayCasting):
        return world.environment
    where = {solid.name: solid.where for solid in world.solids}
    for body in scene.bodies:
        if isinstance(body.shape, LazyShape) and may_hit(sensor, body.name):
            read_surface(body.name, body.shape, where.get(body.name))
    return replace(world.environment, scene=scene, hull=sensor.model)


def may_hit(sensor: MountedSensor, surface: str) -> bool:
    """Return whether a sensor casts rays that can hit the surface with this name."""
    spec = sensor.spec
    return isinstance(spec, UsesRayCasting) and (spec.own_hull or not surface.startswith(f"{sensor.model}::"))


def list_unreadable_surfaces(world: World) -> Iterator[FieldError]:
    """Read the surfaces that rays of a sensor can hit, and yield the errors of their files."""
    for solid in world.solids:
        if isinstance(solid.shape, LazyShape) and any(may_hit(sensor, solid.name) for sensor in world.sensors):
            try:
                read_surface(solid.name, solid.shape, solid.where)
            except FieldError as error:
                yield error


def read_surface(name: str, stored: LazyShape, where: Where | None) -> None:
    """Read a surface. Raise `FieldError` with its name and its place in the world's file."""
    try:
        _ = stored.shape
    except FieldError as error:
        what = f"surface {name}: {f'{error.where} ' if error.where else ''}{error.what}"
        place = where or error.where
        raise FieldError(what, error.value, allowed=error.allowed, where=place, remedy=error.remedy) from error


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


OUT_OF_REACH = "look at where its model's motion and the world's <spherical_coordinates> put it at that instant"
"""Remedy for a sensor at a point where a field is undefined."""

_VALID = "valid"
"""Validity passes through fault injection with the arrays: a stuck sensor repeats its validity."""


@dataclass(frozen=True, eq=False)
class SensorBlock:
    """The result of one sensor for a block of ticks in one run; `arrival` (n,) s is None without latency."""

    measured: Measurement
    clock_error: FloatArray
    arrival: FloatArray | None = None


class SensorRun:
    """One mounted sensor in one run. `ideal` is the same in every run; `measure` advances this one."""

    def __init__(
        self,
        sensor: MountedSensor,
        clock: Clock | None,
        seed: int,
        run: int,
        *,
        ahead: int = 0,
        curve: ClockRealisation | None = None,
    ) -> None:
        """Draw the initial state. The keys of the random streams are (run, "sensor", name, channel, process).

        `curve` is the realisation of the clock, shared with the other sensors of that clock.
        """
        self.sensor = sensor
        self._draws = Draws(sensor.spec.processes(), seed, (run, "sensor", sensor.name), prefetch=ahead)
        self.state = sensor.spec.init(self._draws.initial)
        self._stamps = Stamps(clock, sensor.name, seed, run, ahead=ahead, realisation=curve)
        self._arrivals = ArrivalQueue(sensor.latency, sensor.name, seed, run, ahead=ahead) if sensor.latency else None
        self._fault_draws = Draws(sensor.faults.processes(), seed, (run, "fault", sensor.name), prefetch=ahead)
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
        return SensorBlock(measured, self._stamps.errors(ticks.time), arrival)

    def _measure(self, ticks: Ticks, ideal: Mapping[str, AnyArray], draws: FloatArray) -> Measurement:
        """Measure a block. Faults of the arrays that others are derived from act before the derivation."""
        spec, before, faults = self.sensor.spec, self.state, self.sensor.faults
        self.state, measured = spec.measure(before, ticks, ideal, draws)
        source_arrays = list_source_arrays(spec) if faults.scheduled else ()
        if not source_arrays:
            return measured
        # The published ticks are known only after the measurement. They do not depend on the values.
        mask = EmissionMask.from_ticks(
            ticks, get_flags(measured, len(ticks))["emitted"], self._faults.last_emitted_tick
        )
        shapes = {output.name: output.shape for output in spec.outputs if output.name in source_arrays}
        if off := compute_source_offsets(faults.schedule.find_active(mask), shapes):
            self.state, measured = spec.measure(before, ticks, {**ideal, **off}, draws)
        return measured

    def _inject_faults(self, ticks: Ticks, measured: Measurement) -> Measurement:
        """Apply the faults to a block."""
        flags, draws = get_flags(measured, len(ticks)), self._fault_draws.take(len(ticks))
        shown = {**measured.arrays, _VALID: flags["valid"]}
        source_arrays = list_source_arrays(self.sensor.spec) if self.sensor.faults.scheduled else ()
        given = (ticks, draws, shown, flags["emitted"], source_arrays)
        self._faults, arrays, fault = apply_faults(self.sensor.faults, self._faults, *given)
        published = ~fault["dropout"]
        valid = arrays[_VALID] & published
        arrays = {name: array for name, array in arrays.items() if name != _VALID}
        return measured._replace(arrays=arrays, valid=valid, emitted=flags["emitted"] & published, fault=fault)


def compute_ideal(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks
) -> Mapping[str, AnyArray]:
    """Return the sensor's ideal values, read-only.

    Raises `FieldError` and `SensorError` with the sensor's name, its place in the file and the instant.
    """
    try:
        ideal = sensor.spec.ideal(motion, environment, ticks)
    except (FieldError, SensorError) as error:
        raise _error_at_instant(sensor, motion, environment, ticks, error) from error
    for array in ideal.values():
        make_read_only(array)
    return ideal


def _error_at_instant(
    sensor: MountedSensor, motion: Motion, environment: Environment, ticks: Ticks, error: FieldError | SensorError
) -> FieldError | SensorError:
    """Return an error of the ideal values of a block with the first instant to which it applies."""
    first, stop = 0, len(ticks)
    while stop - first > 1:  # the row of a field may not be a tick
        middle = (first + stop) // 2
        try:
            sensor.spec.ideal(motion, environment, replace(ticks, index=ticks.index[first:middle]))
            first = middle
        except (FieldError, SensorError) as earlier:
            stop, error = middle, earlier
    when = f" at t = {ticks.time[first]:.9g} s" if len(ticks) else ""
    what, remedy = error.what, error.remedy
    if isinstance(error, FieldError):
        what, remedy = error.quantity, remedy or OUT_OF_REACH
    return (FieldError if isinstance(error, FieldError) else SensorError)(
        f"sensor {sensor.name}{when}: {what}",
        error.value,
        allowed=error.allowed,
        where=error.where or sensor.where,
        remedy=remedy,
    )


def make_reading(
    sensor: MountedSensor, ticks: Ticks, ideal: Mapping[str, AnyArray], block: SensorBlock, epoch: int
) -> Reading:
    """Return the reading of a block."""
    measured, unit = block.measured, sensor.unit
    flags = get_flags(measured, len(ticks))
    made = object.__new__(Reading)  # a live step makes one for each sensor, so fields are not copied one by one
    made.__dict__.update(
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
    return made


def clocks_by_name(world: World) -> Mapping[str, Clock]:
    """Return the world's clocks by full name."""
    return {clock.name: clock for clock in world.clocks}


def open_sensor_runs(
    world: World, seed: int, runs: Sequence[int], *, ahead: int = 0
) -> dict[str, tuple[SensorRun, ...]]:
    """Return the sensor runs by full sensor name, one for each run."""
    clocks = clocks_by_name(world)
    read = {sensor.clock for sensor in world.sensors if sensor.clock}
    curves = {(name, run): ClockRealisation(clocks[name], seed, run) for name in read for run in runs}

    def open_run(sensor: MountedSensor, run: int) -> SensorRun:
        if not sensor.clock:
            return SensorRun(sensor, None, seed, run, ahead=ahead)
        curve = curves[sensor.clock, run].copy()
        return SensorRun(sensor, clocks[sensor.clock], seed, run, ahead=ahead, curve=curve)

    return {sensor.name: tuple(open_run(sensor, run) for run in runs) for sensor in world.sensors}
