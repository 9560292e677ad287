"""The output of `navsense describe`: environment, models, sensors, clocks, noise and unsupported elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from navsense.clock import Clock
from navsense.core import atomic
from navsense.core.errors import RecordingError, SimulationError, Where
from navsense.core.geodesy import Origin
from navsense.core.names import resolve_name
from navsense.core.summaries import list_changes
from navsense.core.text import format_count
from navsense.environment.base import Environment, FieldSum, UniformField, VectorField
from navsense.environment.current import (
    BoundaryLayer,
    CurrentReplay,
    DepthScaledCurrent,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    GriddedCurrent,
    HarmonicFlow,
    StratifiedCurrent,
    StratifiedGaussMarkovCurrent,
    TidalCurrent,
    TidalEllipses,
    TideTable,
    UuvGaussMarkovProcess,
)
from navsense.environment.geoid import Geoid
from navsense.environment.gravity import NormalGravity
from navsense.environment.magnetic import Anomaly, Dipole, WorldMagneticModel
from navsense.environment.water import Water
from navsense.messages.kalibr import format_kalibr
from navsense.motion.base import Motion
from navsense.motion.derived import get_base
from navsense.motion.replay import Replay
from navsense.motion.stationary import Stationary
from navsense.motion.velocity_commands import USED_COMMANDS, VelocityCommands
from navsense.noise.specification import Noise
from navsense.sensors import Imu
from navsense.sensors.base import HasIndirectNoise, describe_spec
from navsense.simulation.motions import replace_motions
from navsense.world import CurrentTopic, Model, MountedSensor, World, make_sensor_warning

AXES = "xyz"

USER_DEFINED = "user-defined"
"""Description of a class of another program, whose name is no term of the field."""


def format_numbers(values: Iterable[float]) -> str:
    """Return numbers with spaces between them."""
    return " ".join(f"{value:g}" for value in values)


def format_noise(noise: Noise) -> str:
    """Return the terms of a noise that act, in the channel's unit."""
    parts = list_change_texts(replace(noise, classic=False))
    if noise.has_dynamic_bias:
        deviation = noise.dynamic_bias_stddev * math.sqrt(noise.dynamic_bias_correlation_time / 2.0)
        parts.append(f"(stationary stddev of the dynamic bias {deviation:.3g})")
    text = ", ".join(parts) or "no noise"
    return f"{text} (classic)" if noise.classic else text


def format_motion(model: Model, *, is_given: bool) -> str:
    """Return the motion of a model. `is_given` is true if the caller replaces it."""
    if model.static:
        return "static"
    motion = model.root_motion
    if motion is not None and is_given:
        return f"follows --motion{format_motion_details(motion)}"
    if motion is None or isinstance(motion, Stationary):
        return "stationary (no navsense:motion; use --motion)"
    end = "without end" if math.isinf(motion.end) else f"until {motion.end:g} s"
    return f"follows navsense:motion {end}{format_motion_details(motion)}"


def format_motion_details(motion: Motion) -> str:
    """Return the noise of a motion log, or the number of velocity commands and their drive; "" for another motion."""
    commands = get_base(motion)
    if not isinstance(commands, VelocityCommands):
        return format_log_noise(motion)
    count = format_count(commands.time.size, "velocity command")
    if commands.drive is None:
        return f" ({count})"
    *names, last_name = USED_COMMANDS[commands.drive.kind]
    return f" ({count}: {', '.join(names)} and {last_name}, {commands.drive.name})"


def format_log_noise(motion: Motion) -> str:
    """Return the noise of a motion log and of the acceleration derived from it; "" for another motion."""
    if not isinstance(motion, Replay):
        return ""
    smoothed = "not smoothed" if motion.bandwidth is None else f"smoothed at {motion.bandwidth:g} Hz"
    if math.isnan(motion.position_noise):
        return f" (log {smoothed}; too few rows to estimate its noise)"
    noise = f"{motion.position_noise:.2g} m in position, {motion.acceleration_noise:.2g} m/s^2 in acceleration"
    return f" (log {smoothed}; noise {noise})"


def find_noise_unit(sensor: MountedSensor, name: str) -> str:
    """Return the unit of the noise of an array: the unit of the quantity that the noise acts on."""
    outputs = {output.name: output for output in sensor.spec.outputs}
    if isinstance(sensor.spec, HasIndirectNoise):
        outputs |= sensor.spec.noise_quantities
    return outputs[name].unit if name in outputs else "1"


def format_sensor(sensor: MountedSensor, *, topics: bool = True) -> Iterator[str]:
    """Yield the lines of one sensor, with its topic or without."""
    yield f"  {sensor.name}"
    topic = f", topic {sensor.topic}" if topics else ""
    yield f"    {sensor.spec.type} at {sensor.rate:g} Hz on {sensor.clock or 'true time'}{topic}"
    yield f"    frame {sensor.frame}"
    if sensor.optical_frame is not None:
        yield f"    optical frame: {sensor.optical_frame.name}"
    if not sensor.is_on or sensor.switches:
        states = ["on" if sensor.is_on else "off"]
        states += [f"{'on' if switch.on else 'off'} at {switch.time:g} s" for switch in sensor.switches]
        yield f"    switch: {', '.join(states)}"
    if sensor.latency is not None:
        yield f"    latency (s): {format_changes(sensor.latency)}"
    if sensor.faults.random_kinds:
        yield f"    faults: {format_changes(replace(sensor.faults, scheduled=()))}"
    for fault in sensor.faults.scheduled:
        what = f" of {fault.array} by {format_numbers(fault.value)}" if fault.array else ""
        period = f", every {fault.period:g} s" if fault.period else ""
        yield f"    scheduled fault: {fault.kind}{what} {format_span(fault.start, fault.end)}{period}"
    for output, noises in sensor.spec.noise().items():
        if len(set(noises)) == 1:
            yield f"    {output} ({find_noise_unit(sensor, output)}): {format_noise(noises[0])}"
            continue
        for axis, noise in zip(AXES, noises, strict=False):
            yield f"    {output}.{axis} ({find_noise_unit(sensor, output)}): {format_noise(noise)}"
    yield from (f"    {remark}" for remark in describe_spec(sensor.spec, sensor.rate))


def format_span(start: float, end: float) -> str:
    """Return a span of time (s)."""
    return f"from {start:g} s" if math.isinf(end) else f"from {start:g} s to {end:g} s"


def format_changes(spec: Any) -> str:
    """Return the fields of a specification that differ from their defaults."""
    return ", ".join(list_change_texts(spec)) or "none"


def list_change_texts(spec: Any) -> list[str]:
    """Return the fields of a specification that differ from their defaults, each with its value."""
    return [
        f"{name} {value:g}" if isinstance(value, float | int) else f"{name} from a signal"
        for name, value in list_changes(spec)
    ]


def format_clock(clock: Clock) -> Iterator[str]:
    """Yield the lines of one clock."""
    yield f"clock {clock.name} (s): {format_noise(clock.noise)}"
    if clock.oscillator is not None:
        yield f"  oscillator: {format_changes(clock.oscillator)}"
        deviations = (f"{clock.oscillator.allan_deviation(tau):.3g} at {tau:g} s" for tau in (1.0, 100.0, 10_000.0))
        walk = ", without the random walk of the ageing" if clock.oscillator.ageing_random_walk else ""
        yield f"  Allan deviation, free-running{walk}: {', '.join(deviations)}"
    if clock.discipline is not None:
        spec = clock.discipline
        until = "" if math.isinf(spec.until) else f", until {spec.until:g} s"
        yield (
            f"  discipline: corrected every {spec.interval:g} s, steps offsets of {spec.step_threshold:g} s or more, "
            f"slews at most {spec.slew_rate:g} s/s{until}"
        )
    if clock.monotonic:
        yield "  monotonic stamps"
    for step in clock.steps:
        yield f"  scheduled fault: step by {step.size:g} s {format_span(step.start, step.end)}"


def format_field(field: VectorField) -> str:
    """Return a gravity or magnetic field without its scheduled anomalies."""
    match field:
        case FieldSum():
            return " and ".join(format_field(part) for part in field.fields if not isinstance(part, Anomaly))
        case UniformField():
            return f"uniform ({format_numbers(field.value_w)})"
        case NormalGravity():
            return "normal gravity of WGS 84"
        case WorldMagneticModel():
            return f"World Magnetic Model {field.model}, date {field.date:g}"
        case Dipole():
            return f"dipole of {format_numbers(field.moment_w)} A m^2 at {format_numbers(field.position_w)} m"
    return USER_DEFINED


def format_water(water: Water) -> str:
    """Return the surface of the water, both ends of its profile, density and speed of sound."""
    ends = sorted({0, len(water.depths) - 1})
    points = (
        f"{water.temperatures[i]:g} K and salinity {water.salinities[i]:g} at {water.depths[i]:g} m" for i in ends
    )
    weight = "EOS-80" if water.density is None else f"{water.density:g} kg/m^3"
    sound = water.sound_speed if isinstance(water.sound_speed, str) else f"{water.sound_speed:g} m/s"
    profile = f"{' to '.join(points)} ({format_count(len(water.depths), 'point')})"
    return f"surface at {water.surface:g} m, {profile}, density {weight}, speed of sound {sound}"


def format_process(process: GaussMarkovProcess | UuvGaussMarkovProcess) -> str:
    """Return the parameters of a process of a current."""
    parameters = ((field.name, getattr(process, field.name)) for field in fields(process))
    return " ".join(f"{name} {value:g}" for name, value in parameters if math.isfinite(value))


def format_tide(tide: TidalCurrent) -> str:
    """Return the source of a tide and the directions of flood and ebb."""
    if isinstance(tide.flow, TideTable):
        source = f"a table of {format_count(tide.flow.times.size, 'row')} from {tide.flow.start}"
    elif isinstance(tide.flow, HarmonicFlow):
        source = f"{', '.join(constituent.name for constituent in tide.flow.constituents)} from {tide.flow.start}"
    else:
        source = f"a {USER_DEFINED} flow"
    ebb = tide.flood_direction + math.pi if tide.ebb_direction is None else tide.ebb_direction
    degrees = (math.degrees(angle) % 360.0 for angle in (tide.flood_direction, ebb))
    return "tide of {}, flood to {:g} deg, ebb to {:g} deg".format(source, *degrees)


def format_current(field: VectorField) -> str:
    """Return the kind of a current and its parameters."""
    match field:
        case FieldSum():
            return " and ".join(format_current(part) for part in field.fields)
        case StratifiedCurrent():
            return f"{format_count(len(field.depths), 'layer')} from {field.depths[0]:g} to {field.depths[-1]:g} m"
        case StratifiedGaussMarkovCurrent():
            means = f"speed {format_process(field.speed)}; direction {format_process(field.direction)}"
            return f"{format_current(field.layers)}, Gauss-Markov ({field.name}): {means}"
        case GaussMarkovCurrent():
            parts = ("speed", "horizontal_angle", "vertical_angle")
            inside = "; ".join(f"{part} {format_process(getattr(field, part))}" for part in parts)
            return f"Gauss-Markov ({field.name}): {inside}"
        case TidalCurrent():
            return format_tide(field)
        case TidalEllipses():
            names = ", ".join(ellipse.major.name for ellipse in field.ellipses)
            return f"tidal ellipses of {names} from {field.start}, mean {format_numbers(field.mean)} m/s"
        case GriddedCurrent():
            sizes = " x ".join(str(len(points)) for points in field.points)
            return f"grid of {sizes} points (time and {field.space})"
        case CurrentReplay():
            return f"record of {format_count(len(field.times), 'row')} from {field.times[0]:g} to {field.times[-1]:g} s"
        case BoundaryLayer():
            layer = f"bed {field.bed:g} m, thickness {field.thickness:g} m, exponent {field.exponent:g}"
            return f"boundary layer ({layer}) of [{format_current(field.field)}]"
        case DepthScaledCurrent():
            ends = f"{field.factors[0]:g} at {field.depths[0]:g} m to {field.factors[-1]:g} at {field.depths[-1]:g} m"
            return f"scaled by {ends}: [{format_current(field.field)}]"
    return format_field(field)


def format_geoid(geoid: Geoid, origin: Origin) -> str:
    """Return the file of a geoid, the undulation at the origin and the altitude of the origin above sea level."""
    title = f" ({geoid.description})" if geoid.description else ""
    undulation = float(geoid.undulation_at(np.array([origin.latitude]), np.array([origin.longitude]))[0])
    above = f"the origin is {origin.elevation - undulation:.2f} m above it"
    return f"{geoid.file}{title}, {geoid.interpolation}, {undulation:.2f} m above the ellipsoid; {above}"


def format_environment(environment: Environment) -> Iterator[str]:
    """Yield the lines of a world's origin, fields, water and signals."""
    if environment.origin is not None:
        origin = environment.origin
        place = f"latitude {math.degrees(origin.latitude):.9g} deg, longitude {math.degrees(origin.longitude):.9g} deg"
        yield f"  origin: {place}, elevation {origin.elevation:g} m, heading {math.degrees(origin.heading):g} deg"
        if environment.geoid is not None:
            yield f"  geoid: {format_geoid(environment.geoid, origin)}"
    yield f"  gravity (m/s^2): {format_field(environment.gravity)}"
    field = environment.magnetic_field
    yield f"  magnetic field (T): {format_field(field)}"
    for part in field.fields if isinstance(field, FieldSum) else ():
        if isinstance(part, Anomaly):
            span = format_span(part.start, part.end)
            yield f"    scheduled fault: magnetic_anomaly by {format_numbers(part.field_w)} {span}"
    air = environment.atmosphere
    state = f"{air.temperature:g} K, {air.pressure:g} Pa, temperature gradient {air.temperature_gradient:g} K/m"
    yield f"  air at sea level: {state}"
    if environment.water is not None:
        yield f"  water: {format_water(environment.water)}"
    if environment.current is not None:
        yield f"  current (m/s): {format_current(environment.current)}"
    for name in environment.signals:
        yield f"  signal {name}"


def format_current_topic(topic: CurrentTopic) -> str:
    """Return the topic, rate and position of a recorded current."""
    if not topic.rate:
        return "no topic"
    layers = f"; {format_count(len(topic.layers.depths), 'depth')} on {topic.layers.topic}" if topic.layers else ""
    return f"{topic.topic} at {topic.rate:g} Hz, position {format_numbers(topic.position)} m{layers}"


def describe(world: World, motions: Mapping[str, Motion] | None = None, *, topics: bool = True) -> Iterator[str]:
    """Yield the description of a world, line by line; `motions` replaces the motions of its models.

    topics: False leaves out the topics of the sensors.

    Raises `SimulationError` for a motion of a model that cannot have one.
    """
    motions = motions or {}
    world = replace_motions(world, motions)
    yield f"world {world.name}, max_step_size {world.max_step_size:g} s"
    yield from format_environment(world.environment)
    if world.environment.current is not None:
        yield f"  current recorded: {format_current_topic(world.current_topic)}"
    yield "models" if world.models else "no models"
    for model in world.models:
        motion, links = format_motion(model, is_given=model.name in motions), format_count(len(model.links), "link")
        yield f"  {model.name}: {motion}, {links}, canonical link {model.canonical_link}"
    yield "sensors" if world.sensors else "no sensors"
    for sensor in world.sensors:
        yield from format_sensor(sensor, topics=topics)
    for clock in world.clocks:
        yield from format_clock(clock)
    for kind, title in (("warning", "warnings"), ("unsupported", "not supported"), ("foreign", "for other programs")):
        notes = [note for note in world.notes if note.kind == kind]
        without_sensor = make_sensor_warning(world)
        notes += [without_sensor] if without_sensor is not None and kind == "warning" else []
        if notes:
            yield title
            yield from (f"  {note}" for note in notes)


def write_kalibr(world: World, path: str, name: str | None) -> Path:
    """Write the noise of an IMU as Kalibr YAML. `name` is required if the world has several.

    Raises `SimulationError` if the world has no such IMU.
    """
    imus = {sensor.name: (sensor, sensor.spec) for sensor in world.sensors if isinstance(sensor.spec, Imu)}
    if not imus:
        raise SimulationError("--kalibr", path, allowed="requires an IMU; the world has none")
    if name is None and len(imus) > 1:
        allowed, remedy = f"must be one of {', '.join(imus)}", "select it with --sensor"
        raise SimulationError("IMU for --kalibr", "not selected", allowed=allowed, remedy=remedy)
    name = next(iter(imus)) if name is None else name
    sensor, spec = imus[resolve_name(name, imus, "IMU for --kalibr", error=SimulationError)]
    target = Path(path)
    try:
        with atomic.replace_file(target) as part:
            part.write_text(format_kalibr(spec, sensor.rate, sensor.topic), encoding="utf-8")
    except OSError as error:
        raise RecordingError("cannot be written", error.strerror, where=Where(path)) from error
    return target
