"""DVL: pings per second over a sea bed in blocks, and microseconds per ping one at a time.

    make bench            or            python benchmarks/bench_dvl.py

Four beams at 30 degrees are about 30 m above 2048 x 2048 heights, 200 m x 200 m with 10 m of relief. The track turns
and tilts. A beam has nine rays, or the seven of a pattern. The water has profiles of temperature and salinity
and a current in twelve layers. The complete sensor with all effects is measured over these heights and over a plane,
and compared to its ray tracing alone. Single pings are measured in a live run with a known motion, which is computed
ahead, and with a motion of the caller. Each value is the processor time of the best of several runs. The goal is 50,000
pings/s with all effects, and 100 us for one ping.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import navsense as ns
from navsense.core.pose import Pose, from_rpy
from navsense.core.random_streams import Draws
from navsense.core.ticks import Ticks
from navsense.core.typing import AnyArray
from navsense.environment.base import Environment
from navsense.environment.current import StratifiedCurrent
from navsense.environment.terrain.base import Rays, Shape
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import Motion
from navsense.motion.trajectory import waypoints
from navsense.noise.specification import Noise
from navsense.sensors import Dvl, EchoStrength, Fan, LongTermFilter, Sound, TrackErrors
from navsense.sensors.doppler import Beams, BeamWeighting, WaterMassLayer, make_janus_beams
from navsense.sensors.doppler.echoes import compute_echo_timing, find_echoes, get_sound_speed
from navsense.sensors.doppler.water import find_bottom_distance, find_layer_velocities
from navsense.sensors.dvl import TrackMode
from navsense.world import Link, Model, MountedSensor, World

GOAL, AT_ONCE = 50_000.0, 100.0
COUNT, REACH, SPAN, RATE = 4096, 100.0, 200.0, 8.0
TIME = 50.0 + np.arange(COUNT) / RATE
LAYER = WaterMassLayer(3.0, 15.0, 2.0)

Work = Callable[[AnyArray], object]


def measure(work: Work, instants: AnyArray, calls: int) -> float:
    """Return the smallest processor time (s) per call, of five runs with this many calls, after compilation."""
    work(instants)
    took = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(calls):
            work(instants)
        took.append((time.process_time() - start) / calls)
    return min(took)


def make_bed(count: int = 2048) -> AnyArray:
    """Return heights (count, count) m: a dozen waves."""
    rng, line = np.random.default_rng(1), np.linspace(0.0, SPAN, count)
    x, y = np.meshgrid(line, line)
    heights = np.zeros((count, count))
    for k in range(1, 13):
        east, north = rng.uniform(-1.0, 1.0, 2) * 2.0 * math.pi * k / SPAN
        heights += np.sin(east * x + north * y + rng.uniform(0.0, 6.0)) / k
    low, high = float(heights.min()), float(heights.max())
    return np.ascontiguousarray((heights - low) * (10.0 / (high - low)) - 60.0)


def make_environment(shape: Shape, pose: Pose = Pose()) -> Environment:
    """Return a bottom of this shape, and the water above it."""
    bed = Body("bed", shape, pose)
    sea = Water(depths=(0.0, 20.0, 60.0), temperatures=(290.0, 286.0, 283.0), salinities=(34.0, 34.5, 35.0))
    layers = StratifiedCurrent(tuple(5.0 * k for k in range(12)), tuple((0.3 - 0.02 * k, 0.1, 0.0) for k in range(12)))
    return Environment(scene=Scene((bed,)), water=sea, current=layers)


def make_beams(weighting: BeamWeighting) -> Beams:
    """Return four beams of 3.4 degrees with nine rays each, or with the seven of a pattern."""
    beams = make_janus_beams(math.radians(30.0), [math.radians(45.0 + 90.0 * k) for k in range(4)], width=0.06)
    if weighting is BeamWeighting.PATTERN:
        return replace(beams, weighting=weighting, absorption=0.1)
    fan = Fan(3, -0.03, 0.03, 3, -0.03, 0.03)
    return replace(beams, beams=tuple(replace(beam, shape=fan) for beam in beams.beams))


def make_track() -> Motion:
    """Return a closed track above the sea bed with turns and tilts."""
    places = [(40.0, 60.0), (160.0, 70.0), (150.0, 140.0), (50.0, 130.0), (40.0, 60.0)]
    poses = [Pose((x, y, -22.0 - k), from_rpy(0.05, -0.03 * k, 1.4 * k)) for k, (x, y) in enumerate(places[:-1])]
    return waypoints((0.0, 160.0, 320.0, 480.0, 640.0), [*poses, replace(poses[0])])


def make_complete_spec() -> Dvl:
    """Return a spec of four beams of nine rays each, with every effect."""
    track = TrackErrors(Noise(0.01, precision=1e-4), 0.001, 8.0, 0.0, 0.001, 0.001)
    return Dvl(
        beams=make_beams(BeamWeighting.NEAREST),
        bottom=track,
        water=replace(track, reported_stddev=0.02),
        range_noise=Noise(0.05, precision=0.01),
        water_mode=TrackMode.ALWAYS,
        layer=LAYER,
        echo_strength=EchoStrength(120.0, 0.1),
        sound=Sound(1500.0),
        misalignment_stddev=0.005,
        error_velocity_limit=0.5,
        dropout_probability=0.01,
        reacquisition_time=0.5,
        processing_time=0.01,
        long_term=LongTermFilter(0.02, 0.002),
    )


def make_sensor_workload(environment: Environment) -> Work:
    """Return the workload of the complete sensor: ideal values and readings."""
    spec, motion = make_complete_spec(), make_track()
    draws = Draws(spec.processes(), 1, (0, "bench"))
    start = spec.init(draws.initial)

    def work(t: AnyArray) -> object:
        ticks = Ticks(np.rint(t * RATE).astype(np.int64), RATE)
        ideal = spec.ideal(motion, environment, ticks)
        return spec.measure(start, ticks, ideal, draws.take(len(ticks)))

    return work


def make_ray_workload(environment: Environment) -> Work:
    """Return the workload of the ray tracing alone: a lower limit of the time."""
    (body,), beams, motion, kept = environment.scene.bodies, make_beams(BeamWeighting.NEAREST), make_track(), {}

    def work(t: AnyArray) -> object:
        if t.size not in kept:
            truth, own = motion.at(t), beams.rays.reshape(-1, 3)
            w, v = truth.rotation_wb[:, None, :1], truth.rotation_wb[:, None, 1:]
            turned = own + 2.0 * np.cross(v, np.cross(v, own) + w * own)
            origin = np.repeat(truth.position_w - np.array(body.pose.position), len(own), axis=0)
            kept[t.size] = origin, np.ascontiguousarray(turned.reshape(-1, 3)), np.full(origin.shape[0], REACH)
        arrays = kept[t.size]
        distance, normal = np.empty(arrays[0].shape[0]), np.empty(arrays[0].shape)
        body.shape.trace(Rays(*arrays, distance, normal))
        return distance

    return work


def measure_live_ping(*, is_driven: bool) -> float:
    """Return the smallest processor time (s) of a step with a ping in a live run, over parts of eight seconds."""
    motion, name = make_track(), "auv::base"
    model = Model("auv", (Link(name),), name, motion=None if is_driven else motion)
    mounted = MountedSensor(f"{name}::dvl", make_complete_spec(), "auv", name, RATE, topic="/dvl")
    environment = make_environment(Heightmap(make_bed(), (SPAN / 2047.0, SPAN / 2047.0)))
    world = World("bench", (model,), (mounted,), environment=environment, max_step_size=1.0 / RATE)
    block = motion.at(np.arange(1100) / RATE)
    rows = zip(*(array.tolist() for array in block.arrays[:3]), strict=True)
    states = [{"auv": ns.State(Pose(tuple(p), tuple(q)), tuple(v))} for p, q, v in rows]
    sim = ns.live(world, seed=1, driven=states[0] if is_driven else None)
    took = []
    for first in range(0, len(states) - 63, 64):
        start = time.process_time()
        for state in states[first : first + 64]:
            sim.step(state if is_driven else None)
        took.append((time.process_time() - start) / 64.0)
    return min(took)


def list_workloads() -> Iterator[tuple[str, Work]]:
    """Yield the workloads at ping times (n,) s by name."""
    heights, flat = Heightmap(make_bed(), (SPAN / 2047.0, SPAN / 2047.0)), Pose((0.0, 0.0, -55.0))
    motion, environment, level = make_track(), make_environment(heights), make_environment(Plane(), flat)
    near, mean = make_beams(BeamWeighting.NEAREST), make_beams(BeamWeighting.PATTERN)

    def make_ping_workload(beams: Beams) -> Work:
        def work(t: AnyArray) -> object:
            sound = get_sound_speed(environment, motion.at(t))
            instants = compute_echo_timing(beams, motion, environment, t, REACH, sound, False).time_of_validity
            found = find_echoes(beams, motion, environment, instants, REACH, False)
            return find_layer_velocities(
                beams,
                LAYER,
                motion,
                environment,
                instants,
                find_bottom_distance(beams.positive_janus_cosines, found.beam_range),
            )

        return work

    yield "motion", motion.at
    yield "speed of sound", lambda t: get_sound_speed(environment, motion.at(t))
    yield (
        "instant of the echo",
        lambda t: compute_echo_timing(near, motion, environment, t, REACH, np.full(t.shape, 1500.0), False),
    )
    yield "echoes, nearest of 4 x 9 rays", lambda t: find_echoes(near, motion, environment, t, REACH, False)
    yield "echoes, pattern of 4 x 7 rays", lambda t: find_echoes(mean, motion, environment, t, REACH, False)
    yield (
        "layer of water, 4 x 5 places",
        lambda t: find_layer_velocities(near, LAYER, motion, environment, t, np.full(t.shape, 25.0)),
    )
    yield "all of these, nearest", make_ping_workload(near)
    yield "all of these, pattern", make_ping_workload(mean)
    for place, bottom in (("2048 x 2048 heights", environment), ("a plane", level)):
        yield f"the sensor over {place}", make_sensor_workload(bottom)
        yield f"its 36 rays alone over {place}", make_ray_workload(bottom)


def main() -> None:
    """Print the table."""
    print(f"{'':44s}{'us a ping':>12s}{'pings/s':>12s}{'us, alone':>12s}")
    for name, work in list_workloads():
        block, alone = measure(work, TIME, 3) / COUNT, measure(work, TIME[:1], 500)
        print(f"{name:44s}{block * 1e6:12.2f}{1.0 / block:12.0f}{alone * 1e6:12.1f}")
    for name, is_driven in (("a live ping, foreseen", False), ("a live ping, driven", True)):
        print(f"{name:44s}{'':12s}{'':12s}{measure_live_ping(is_driven=is_driven) * 1e6:12.1f}")
    print(f"the goals are {GOAL:g} pings/s and {AT_ONCE:g} us for one ping, with all effects of the sensor")


if __name__ == "__main__":
    main()
