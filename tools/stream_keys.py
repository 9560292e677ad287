"""Write the keys of all random streams that the example specs and the comparison worlds open.

Usage: python tools/stream_keys.py

The file tests/golden/stream_keys.json has the keys per case. One line has the start of a key (run, kind of owner, name
of the owner) and the rest: the processes per channel. A key and the seed determine every number of a stream. Keys
consist of public names: names of sensors, clocks and currents in a world, types of sensors, channels and processes. The
name of a Python class, module or field must not change a key. Run the tool after an intended change of keys, and name
the change in the changelog.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from comparison_worlds import write_worlds
from golden import FIDELITIES, golden_spec

import navsense as ns
from navsense.core import random_streams
from navsense.core.ticks import Ticks
from navsense.sensors import SENSORS
from navsense.sensors.base import Sensor
from navsense.sensors.user_arrays import simulate_readings
from navsense.testing import EXAMPLE_ENVIRONMENT, RATE, example_motion, example_world
from navsense.world import World

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "golden" / "stream_keys.json"

DURATION = 0.3
SEED, RUN = 1, 2

DIALECTS = ("tests/worlds/robots/uuv.urdf", "tests/worlds/robots/dsros.urdf", "examples/quadrotor.sdf")
"""Files of the repository whose sensors and plug-ins open further streams."""

Start = tuple[int | str, ...]

Keys = dict[Start, dict[str, list[str]]]
"""Start of a key -> channel -> processes. Channel and process are empty for a key of three parts."""


@contextmanager
def record_keys() -> Iterator[set[random_streams.StreamKey]]:
    """Collect the keys of all streams that open within the context."""
    keys: set[random_streams.StreamKey] = set()
    original = random_streams.make_spawn_key

    def recording(key: random_streams.StreamKey) -> tuple[int, ...]:
        keys.add(tuple(key))
        return original(key)

    random_streams.make_spawn_key = recording
    try:
        yield keys
    finally:
        random_streams.make_spawn_key = original


def group_keys(keys: set[random_streams.StreamKey]) -> Keys:
    """Return the keys in a fixed order, grouped by their start and channel."""
    groups: Keys = {}
    for key in sorted(keys, key=lambda key: [str(part) for part in key]):
        start = tuple(str(part) if isinstance(part, str) else int(part) for part in key[:3])
        channel, process = (str(part) for part in (key[3:] or ("", "")))
        groups.setdefault(start, {}).setdefault(channel, []).append(process)
    return groups


def record_run_keys(world: World, fidelity: str) -> Keys:
    """Return the keys of a short run."""
    with record_keys() as keys:
        ns.simulate(world, DURATION, seed=SEED, runs=[RUN], fidelity=fidelity)
    return group_keys(keys)


def record_live_keys(world: World) -> Keys:
    """Return the keys of a short live run in which every clock is read."""
    with record_keys() as keys, ns.live(world, seed=SEED, run=RUN) as run:
        run.step()
        for clock in world.clocks:
            run.clock(clock.name).time(0.0)
        for sensor in world.sensors:
            run.sensor(sensor.name).clock.time(0.0)
    return group_keys(keys)


def record_apply_keys(kind: type[Sensor]) -> Keys:
    """Return the keys of the example spec that acts on given arrays."""
    spec, ticks = kind.example_spec(), Ticks(np.arange(3, dtype=np.int64), RATE)
    ideal = spec.ideal(example_motion(), EXAMPLE_ENVIRONMENT, ticks)
    derived = {output.name for output in spec.outputs} - ideal.keys()
    with record_keys() as keys:
        simulate_readings(spec, ticks.time, ideal, seed=SEED, run=RUN, skip_ideal=derived, require_finite=False)
    return group_keys(keys)


def list_keys() -> dict[str, Keys]:
    """Return the keys of each case by its name."""
    cases: dict[str, Keys] = {}
    for kind in SENSORS:
        for fidelity in FIDELITIES:
            world = example_world(("sensor", golden_spec(kind, fidelity)))
            cases[f"example/{kind.type}/{fidelity}"] = record_run_keys(world, fidelity)
        cases[f"apply/{kind.type}"] = record_apply_keys(kind)
    with tempfile.TemporaryDirectory() as folder:
        written = write_worlds(Path(folder))
        paths = {name: path for name, path in written.items() if not name.startswith(("version/", "part/"))}
        for name, path in (paths | {name: ROOT / name for name in DIALECTS}).items():
            for fidelity in FIDELITIES:
                cases[f"{name}/{fidelity}"] = record_run_keys(ns.load(path, fidelity=fidelity), fidelity)
        cases["live"] = record_live_keys(ns.load(written["sensor/all"]))
    return cases


def read_keys() -> dict[str, Keys]:
    """Return the golden keys of each case by its name."""
    text = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: {tuple(start): channels for start, channels in keys} for name, keys in text.items()}


def main() -> None:
    """Write the file: one line per start of a key."""
    cases = []
    for name, keys in list_keys().items():
        lines = ",\n".join(f"  {json.dumps([list(start), channels])}" for start, channels in keys.items())
        cases.append(f" {json.dumps(name)}: [\n{lines}\n ]")
    FILE.write_text("{\n" + ",\n".join(cases) + "\n}\n", encoding="utf-8")
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
