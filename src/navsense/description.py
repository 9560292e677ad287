"""A world in words: who moves how, what is measured when, on which clock, with which noise, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from navsense import outputs
from navsense.clock import Clock, Latency, Oscillator
from navsense.environment.base import Environment, FieldSum, VectorField
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
from navsense.environment.magnetic import Anomaly
from navsense.environment.water import Water
from navsense.errors import SimulationError, SinkError, Where
from navsense.messages.kalibr import format_kalibr
from navsense.motion.base import Motion
from navsense.motion.replay import Replay
from navsense.motion.stationary import Stationary
from navsense.noise.channel import NEUTRAL, Noise
from navsense.noise.faults import Faults
from navsense.sensor_run import replace_motions
from navsense.sensors import Imu
from navsense.sensors.base import HasIndirectNoise, describe_spec
from navsense.world import CurrentTopic, Model, MountedSensor, World

AXES = "xyz"


def format_noise(noise: Noise) -> str:
    """Return the fields of a noise that differ from neutral, in the channel's unit."""
    parts = [
        f"{field.name} {getattr(noise, field.name):g}"
        for field in fields(noise)
        if field.name != "classic" and getattr(noise, field.name) != getattr(NEUTRAL, field.name)
    ]
    if noise.has_dynamic_bias:
        deviation = noise.dynamic_bias_stddev * math.sqrt(noise.dynamic_bias_correlation_time / 2.0)
        parts.append(f"(stationary deviation of the drift {deviation:.3g})")
    if noise.classic:
        parts.append("(classic)")
    return ", ".join(parts) or "none"


def format_motion(model: Model, *, is_given: bool) -> str:
    """Return the motion of a model in words; `given` is true if the caller gives the motion."""
    if model.static:
        return "static"
    if model.motion is not None and is_given:
        return f"moved by the motion given{format_log_noise(model.motion)}"
    if model.motion is None or isinstance(model.motion, Stationary):
        return "stands still (no navsense:motion; give one with --motion)"
    end = "for ever" if math.isinf(model.motion.end) else f"until {model.motion.end:g} s"
    return f"moved by its navsense:motion, {end}{format_log_noise(model.motion)}"


def format_log_noise(motion: Motion) -> str:
    """Return what the noise of a motion log does to the acceleration; nothing for another motion."""
    if not isinstance(motion, Replay):
        return ""
    smoothed = "not smoothed" if motion.bandwidth is None else f"smoothed at {motion.bandwidth:g} Hz"
    if math.isnan(motion.position_noise):
        return f" (log {smoothed}: too few rows to tell its noise)"
    noise = f"{motion.position_noise:.2g} m of noise in position"
    return f" (log {smoothed}: {noise}, which is {motion.acceleration_noise:.2g} m/s^2 in acceleration)"


def find_noise_unit(sensor: MountedSensor, name: str) -> str:
    """Return the unit of the noise of an array: of what it acts on, where that is not the array itself."""
    outputs = {output.name: output for output in sensor.spec.outputs}
    if isinstance(sensor.spec, HasIndirectNoise):
        outputs |= sensor.spec.noise_quantities
    return outputs[name].unit if name in outputs else "1"


def format_sensor(sensor: MountedSensor) -> Iterator[str]:
    """Yield the lines of one sensor."""
    yield f"  {sensor.name}"
    yield f"    {sensor.spec.type} at {sensor.rate:g} Hz on {sensor.clock or 'global time'}, topic {sensor.topic}"
    yield f"    frame {sensor.frame}"
    if sensor.latency is not None:
        yield f"    latency (s): {format_spec(sensor.latency, Latency())}"
    if sensor.faults.random_kinds:
        yield f"    faults: {format_spec(replace(sensor.faults, scheduled=()), Faults())}"
    for one in sensor.faults.scheduled:
        what = f" of {one.array} by {' '.join(f'{part:g}' for part in one.value)}" if one.array else ""
        again = f", again every {one.period:g} s" if one.period else ""
        yield f"    fault on purpose: {one.kind}{what} from {one.start:g} s {format_end(one.end)}{again}"
    for output, noises in sensor.spec.noise().items():
        if len(set(noises)) == 1:
            yield f"    {output} ({find_noise_unit(sensor, output)}): {format_noise(noises[0])}"
            continue
        for axis, noise in zip(AXES, noises, strict=False):
            yield f"    {output}.{axis} ({find_noise_unit(sensor, output)}): {format_noise(noise)}"
    yield from (f"    {remark}" for remark in describe_spec(sensor.spec, sensor.rate))


def format_end(end: float) -> str:
    """Return when what has begun ends (s), for ever too."""
    return "on" if math.isinf(end) else f"to {end:g} s"


def format_spec(spec: Any, neutral: Any) -> str:
    """Return the figures of a sheet that differ from neutral."""
    given = ((field.name, getattr(spec, field.name)) for field in fields(spec))
    parts = [
        f"{name} {value:g}" if isinstance(value, float | int) else f"{name} of a signal"
        for name, value in given
        if value != getattr(neutral, name)
    ]
    return ", ".join(parts) or "none"


def format_clock(clock: Clock) -> Iterator[str]:
    """Yield the lines of one clock."""
    yield f"clock {clock.name} (s): {format_noise(clock.noise)}"
    if clock.oscillator is not None:
        yield f"  oscillator: {format_spec(clock.oscillator, Oscillator())}"
        deviations = (f"{clock.oscillator.allan_deviation(tau):.3g} at {tau:g} s" for tau in (1.0, 100.0, 10_000.0))
        walk = ", changes of the ageing left out" if clock.oscillator.ageing_random_walk else ""
        yield f"  Allan deviation, free-running{walk}: {', '.join(deviations)}"
    if clock.discipline is not None:
        sheet = clock.discipline
        until = "" if math.isinf(sheet.until) else f", until {sheet.until:g} s"
        yield (
            f"  corrected every {sheet.interval:g} s: steps from {sheet.step_threshold:g} s on, slews at most "
            f"{sheet.slew_rate:g} s a second{until}"
        )
    if clock.monotonic:
        yield "  its stamps always rise"
    for step in clock.steps:
        yield f"  fault on purpose: step by {step.size:g} s from {step.start:g} s {format_end(step.end)}"


def format_field(source: Any) -> str:
    """Return the kind of a field and its figures; of a sum those of its parts, but for what is a fault on purpose."""
    if isinstance(source, FieldSum):
        return " and ".join(format_field(part) for part in source.fields if not isinstance(part, Anomaly))
    given = ((field.name, getattr(source, field.name)) for field in fields(source))
    figures = ", ".join(f"{name} {value}" for name, value in given if not is_dataclass(value))
    return f"{type(source).__name__} {figures}".strip()


def format_water(water: Water) -> str:
    """Return where the water's surface lies, and what the water is from the top to the end of its profile."""
    ends = sorted({0, len(water.depths) - 1})
    points = (
        f"{water.temperatures[i]:g} K and salinity {water.salinities[i]:g} at {water.depths[i]:g} m" for i in ends
    )
    weight = "EOS-80" if water.density is None else f"{water.density:g} kg/m^3"
    sound = water.sound_speed if isinstance(water.sound_speed, str) else f"{water.sound_speed:g} m/s"
    profile = f"{' to '.join(points)} ({len(water.depths)} points)"
    return f"surface at {water.surface:g} m, {profile}, density {weight}, speed of sound {sound}"


def format_process(process: GaussMarkovProcess | UuvGaussMarkovProcess) -> str:
    """Return the figures of a process of a current."""
    figures = ((one.name, getattr(process, one.name)) for one in fields(process))
    return " ".join(f"{name} {value:g}" for name, value in figures if math.isfinite(value))


def format_tide(tide: TidalCurrent) -> str:
    """Return what drives a tide, and where its flood and ebb run."""
    if isinstance(tide.flow, TideTable):
        source = f"table of {tide.flow.times.size} rows from {tide.flow.start}"
    elif isinstance(tide.flow, HarmonicFlow):
        source = f"{', '.join(one.name for one in tide.flow.constituents)} from {tide.flow.start}"
    else:
        source = type(tide.flow).__name__
    ebb = tide.flood_direction + math.pi if tide.ebb_direction is None else tide.ebb_direction
    degrees = (math.degrees(one) % 360.0 for one in (tide.flood_direction, ebb))
    return "tide by {}, flood to {:g} deg, ebb to {:g} deg".format(source, *degrees)


def format_current(field: VectorField) -> str:
    """Return what a current is; of a sum what its parts are."""
    match field:
        case FieldSum():
            return " and ".join(format_current(part) for part in field.fields)
        case StratifiedCurrent():
            return f"{len(field.depths)} layers from {field.depths[0]:g} to {field.depths[-1]:g} m"
        case StratifiedGaussMarkovCurrent():
            means = f"speed {format_process(field.speed)}; direction {format_process(field.direction)}"
            return f"{format_current(field.layers)} that wander ({field.name}): {means}"
        case GaussMarkovCurrent():
            parts = ("speed", "horizontal_angle", "vertical_angle")
            inside = "; ".join(f"{part} {format_process(getattr(field, part))}" for part in parts)
            return f"Gauss-Markov ({field.name}): {inside}"
        case TidalCurrent():
            return format_tide(field)
        case TidalEllipses():
            names, mean = ", ".join(one.major.name for one in field.ellipses), "{:g} {:g} {:g}".format(*field.mean)
            return f"tidal ellipses of {names} from {field.start}, mean {mean} m/s"
        case GriddedCurrent():
            sizes = " x ".join(str(len(points)) for points in field.points)
            return f"grid of {sizes} points (time and {field.space})"
        case CurrentReplay():
            return f"record of {len(field.times)} rows from {field.times[0]:g} to {field.times[-1]:g} s"
        case BoundaryLayer():
            layer = f"bed {field.bed:g} m, thickness {field.thickness:g} m, exponent {field.exponent:g}"
            return f"in a boundary layer ({layer}): [{format_current(field.field)}]"
        case DepthScaledCurrent():
            ends = f"{field.factors[0]:g} at {field.depths[0]:g} m to {field.factors[-1]:g} at {field.depths[-1]:g} m"
            return f"times {ends}: [{format_current(field.field)}]"
    return format_field(field)


def format_environment(environment: Environment) -> Iterator[str]:
    """Yield the lines of a world's fields, place and signals."""
    if environment.origin is not None:
        place = environment.origin
        degrees = f"latitude {math.degrees(place.latitude):.9g} deg, longitude {math.degrees(place.longitude):.9g} deg"
        yield f"  stands at {degrees}, {place.elevation:g} m, heading {math.degrees(place.heading):g} deg"
    yield f"  gravity (m/s^2): {format_field(environment.gravity)}"
    field = environment.magnetic_field
    yield f"  magnetic field (T): {format_field(field)}"
    for part in field.fields if isinstance(field, FieldSum) else ():
        if isinstance(part, Anomaly):
            off = " ".join(f"{value:g}" for value in part.field_w)
            times = f"from {part.start:g} s {format_end(part.end)}"
            yield f"    fault on purpose: magnetic_anomaly by {off} {times}"
    yield f"  air: {format_field(environment.atmosphere)}"
    if environment.water is not None:
        yield f"  water: {format_water(environment.water)}"
    if environment.current is not None:
        yield f"  current (m/s): {format_current(environment.current)}"
    for name in environment.signals:
        yield f"  signal {name}"


def format_current_topic(topic: CurrentTopic) -> str:
    """Return where a current is recorded, and how often."""
    place = " ".join(f"{part:g}" for part in topic.position)
    if not topic.rate:
        return "nowhere"
    layers = f", at {len(topic.layers.depths)} depths on {topic.layers.topic}" if topic.layers else ""
    return f"{topic.topic} at {topic.rate:g} Hz, at {place} m{layers}"


def describe(world: World, motions: Mapping[str, Motion] | None = None) -> Iterator[str]:
    """Yield the description of a world, line by line; `motions` replaces the motions of its models.

    Raises `SimulationError` for a motion of a model that cannot have one.
    """
    given = motions or {}
    world = replace_motions(world, given)
    yield f"world {world.name}, max_step_size {world.max_step_size:g} s"
    yield from format_environment(world.environment)
    if world.environment.current is not None:
        yield f"  current recorded: {format_current_topic(world.current_topic)}"
    yield "models"
    for model in world.models:
        moved = format_motion(model, is_given=model.name in given)
        yield f"  {model.name}: {moved}, {len(model.links)} links, canonical link {model.canonical_link}"
    yield "sensors" if world.sensors else "no sensors"
    for sensor in world.sensors:
        yield from format_sensor(sensor)
    for clock in world.clocks:
        yield from format_clock(clock)
    for kind, title in (("warning", "warnings"), ("unsupported", "not supported"), ("foreign", "of other programs")):
        notes = [note for note in world.notes if note.kind == kind]
        if notes:
            yield title
            yield from (f"  {note}" for note in notes)


def write_kalibr(world: World, path: str, name: str | None) -> Path:
    """Write one IMU's sheet as Kalibr YAML; raise `SimulationError` where it is not clear which, or there is none."""
    found = [s for s in world.sensors if isinstance(s.spec, Imu) and name in (None, s.name)]
    if len(found) != 1:
        names = [s.name for s in world.sensors if isinstance(s.spec, Imu)]
        allowed = f"must be one IMU of {', '.join(names) or 'this world, which has none'}"
        raise SimulationError(
            "--kalibr for sensor", name or "(not named)", allowed=allowed, remedy="name it with --sensor"
        )
    spec = found[0].spec
    assert isinstance(spec, Imu)  # noqa: S101 - chosen above; tells the type checker
    target = Path(path)
    try:
        with outputs.replace_file(target) as part:
            part.write_text(format_kalibr(spec, found[0].rate, found[0].topic), encoding="utf-8")
    except OSError as error:
        raise SinkError("cannot be written", error.strerror, where=Where(path)) from error
    return target
