"""The laws with scheduled faults: every kind of fault on every registered sensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from navsense import simulate
from navsense.core.readings import FAULT_BITS, Reading, join_readings
from navsense.core.ticks import Ticks
from navsense.faults.injection import Faults
from navsense.faults.schedule import (
    ADDITIVE_KINDS,
    ScheduledFault,
    UsesBottomEchoes,
    check_fault,
    list_fault_input_arrays,
)
from navsense.messages.world_messages import pack_fault_bits
from navsense.recordings.dataset import select_run_by_index
from navsense.sensors import SENSORS, Magnetometer
from navsense.sensors.base import Sensor, get_flags
from navsense.simulation.sensor_run import SensorRun, compute_ideal
from navsense.testing import RATE, check_same_reading, example_world, is_identical, run_live
from navsense.world import World

NAME, OTHER = "robot::arm::one", "robot::arm::other"

ROWS = 160

EDGES = (0.1025, 0.4775)
"""Start and end (s) of the faults, between two samples of the laws."""

KINDS = {kind.__name__: kind for kind in SENSORS}


def make_fault(kind: str, spec: Sensor, array: str = "") -> ScheduledFault:
    """Return a fault of a kind on the first array of a sensor. Spikes repeat faster than any sensor publishes."""
    adds: dict[str, Any] = {"array": array or spec.outputs[0].name, "value": (0.25,)} if kind in ADDITIVE_KINDS else {}
    fault = ScheduledFault(kind, *EDGES, **adds, period=0.0173 if kind == "spike" else 0.0)
    check_fault(spec, {output.name: output.shape for output in spec.outputs}, fault)
    return fault


def make_faults(kind: str, spec: Sensor) -> tuple[ScheduledFault, ...]:
    """Return one fault of a kind, one fault of every supported kind, or beam faults of every beam array."""
    kinds = [kind for kind in FAULT_BITS if kind != "lost_lock" or isinstance(spec, UsesBottomEchoes)]
    beams = [make_fault(kind, spec, array) for array in list_fault_input_arrays(spec) for kind in ADDITIVE_KINDS]
    if kind == "heard":
        return tuple(beams)
    return (*(make_fault(kind, spec) for kind in kinds), *beams) if kind == "all" else (make_fault(kind, spec),)


CASES = [
    (name, kind)
    for name, sensor in KINDS.items()
    for kind in (*FAULT_BITS, "all", "heard")
    if (kind != "lost_lock" or isinstance(sensor.example_spec(), UsesBottomEchoes))
    and (kind != "heard" or list_fault_input_arrays(sensor))
]


def make_world(spec: Sensor, faults: tuple[ScheduledFault, ...]) -> World:
    """Return a world with the sensor and a second one, with faults on the first."""
    world = example_world(("one", spec), ("other", Magnetometer.example_spec()))
    faulty, sound = world.sensors
    return replace(world, sensors=(replace(faulty, faults=Faults(scheduled=faults)), sound))


@cache
def list_ideal_arrays(name: str) -> Mapping[str, Any]:
    """Return the arrays without errors, which faults do not change."""
    world = make_world(KINDS[name].example_spec(), ())
    sensor, motion = world.sensors[0], world.models[0].motion
    assert motion is not None
    return compute_ideal(sensor, motion, world.environment, Ticks(np.arange(ROWS), RATE))


def measure_in_blocks(world: World, cuts: tuple[int, ...]) -> tuple[dict[str, Any], Any]:
    """Return all arrays of the first sensor, measured in blocks, and its final state."""
    sensor, parts = world.sensors[0], []
    station, ideal = SensorRun(sensor, world.clocks[0], 3, 0), list_ideal_arrays(type(sensor.spec).__name__)
    for first, stop in zip((0, *cuts), (*cuts, ROWS), strict=True):
        ticks = Ticks(np.arange(first, stop), RATE)
        got = station.measure(ticks, {name: values[first:stop] for name, values in ideal.items()})
        slow = {f"bias {name}": values for name, values in got.measured.bias.items()}
        slow |= {"fault": pack_fault_bits(got.measured.fault)} if got.measured.fault else {}
        stamps = {"clock": got.clock_error}
        parts.append({**got.measured.arrays, **slow, **get_flags(got.measured, len(ticks)), **stamps})
    complete = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return complete, (station.state, station._faults)


@pytest.mark.requirement("NOI-6", "NOI-2")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_faults_do_not_depend_on_block_size(name: str, kind: str) -> None:
    spec = KINDS[name].example_spec()
    world = make_world(spec, make_faults(kind, spec))
    complete, state = measure_in_blocks(world, ())
    for cuts in ((1,), (21, 22, 95), tuple(range(15, 60)), (ROWS - 1,)):
        parts, end = measure_in_blocks(world, cuts)
        assert is_identical(parts, complete), cuts[:3]
        assert is_identical(end, state), cuts[:3]


@pytest.mark.compiled
@pytest.mark.requirement("NOI-6", "BAT-1", "LIV-1")
@pytest.mark.parametrize("name", KINDS)
def test_faults_are_equal_in_batch_and_live_runs(name: str) -> None:
    """All kinds act at once. The readings of the other sensor are bitwise equal to those without faults."""
    spec, duration = KINDS[name].example_spec(), ROWS / RATE
    world = make_world(spec, make_faults("all", spec))
    single = simulate(world, duration, seed=3)
    batch = simulate(world, duration, seed=3, runs=(0, 5))
    stepped: dict[str, list[Reading]] = {NAME: [], OTHER: []}
    for step in run_live(world, duration):
        for sensor, reading in step.readings.items():
            stepped[sensor].append(reading)
    for sensor in (NAME, OTHER):
        check_same_reading("batch", select_run_by_index(batch[sensor], 0), single[sensor], "in run 0")
        check_same_reading("batch", join_readings(stepped[sensor]), single[sensor], "when stepped live")
    sound = simulate(make_world(spec, ()), duration, seed=3)
    check_same_reading("independence", single[OTHER], sound[OTHER], "beside a faulty sensor")


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in CASES if kind in FAULT_BITS])
def test_every_fault_kind_acts_on_every_sensor(name: str, kind: str) -> None:
    """Compared to the same sensor without faults, only rows within the fault change, as its kind defines."""
    spec = KINDS[name].example_spec()
    sound, _ = measure_in_blocks(make_world(spec, ()), ())
    faulty, _ = measure_in_blocks(make_world(spec, make_faults(kind, spec)), ())
    time, first, here = np.arange(ROWS) / RATE, spec.outputs[0].name, sound["emitted"]
    inside, bit = (time >= EDGES[0]) & (time < EDGES[1]), FAULT_BITS[kind]
    bits = faulty["fault"]
    assert set(bits.tolist()) == {0, bit}
    if kind != "spike":
        assert np.array_equal(bits == bit, inside)
    if kind != "lost_lock":  # the lock returns later, and the noise of lost beams is drawn for other samples
        for array in set(sound) - {"emitted", "valid"}:
            assert is_identical(faulty[array][~inside], sound[array][~inside]), array
    last = np.flatnonzero(here & (time < EDGES[0]))
    if kind == "dropout":
        assert np.array_equal(faulty["emitted"], here & ~inside)
        assert np.isnan(faulty[first][inside]).all()
    elif kind == "stuck":
        assert np.array_equal(faulty["emitted"], here)
        if last.size:
            held = np.broadcast_to(sound[first][last[-1]], faulty[first][inside].shape)
            assert is_identical(np.ascontiguousarray(faulty[first][inside]), np.ascontiguousarray(held))
    elif kind == "lost_lock":
        assert np.isnan(faulty["bottom_range" if "bottom_range" in faulty else "beam_range"][inside]).all()
    else:
        rows = bits == bit
        off = np.where(np.reshape(rows, (-1, *[1] * (faulty[first].ndim - 1))), sound[first] + 0.25, sound[first])
        if first in list_fault_input_arrays(spec):  # limits act after the fault: some echoes are lost, some found
            both = np.isfinite(faulty[first]) & np.isfinite(off)
            assert both[rows].any()
            assert is_identical(faulty[first][both], off[both])
        else:
            assert is_identical(faulty[first], off)
    if kind == "spike":
        instants = np.arange(EDGES[0], EDGES[1], 0.0173)
        samples = np.flatnonzero(here)
        struck = np.searchsorted(time[samples], instants)
        expected = {int(samples[sample]) for sample in struck if sample < samples.size}
        assert {int(row) for row in np.flatnonzero(rows)} == {row for row in expected if inside[row]}


OTHERS = [
    (name, output.name, kind)
    for name, sensor in KINDS.items()
    for output in sensor.example_spec().outputs[1:]
    for kind in ADDITIVE_KINDS
]

FOLLOWING = {
    ("Altimeter", "vertical_reference"): {"vertical_position"},
    ("Dvl", "beam_range"): {"altitude"},
    ("Dvl", "beam_velocity"): {"velocity", "course", "speed", "long_term_velocity", "long_term_covariance"},
    ("Dvl", "water_beam_velocity"): {
        *("velocity", "error_velocity", "long_term_velocity", "long_term_covariance", "water_velocity")
    },
    ("Adcp", "beam_velocity"): {"velocity", "relative_velocity"},
    ("Adcp", "bottom_range"): {
        *("velocity", "bottom_velocity", "bottom_beam_velocity", "bottom_percent_good", "bottom_solutions")
    },
    ("Adcp", "bottom_beam_velocity"): {"velocity", "bottom_velocity"},
}
"""Arrays that a sensor computes from a faulty array."""

LASTING = {"long_term_velocity", "long_term_covariance"}
"""Arrays that depend on earlier samples."""


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(("name", "array", "kind"), OTHERS)
def test_fault_changes_only_its_declared_array(name: str, array: str, kind: str) -> None:
    """Each faulty array, not only the first, has the bias on the faulty rows; other rows are unchanged."""
    spec = KINDS[name].example_spec()
    sound, _ = measure_in_blocks(make_world(spec, ()), ())
    faulty, _ = measure_in_blocks(make_world(spec, (make_fault(kind, spec, array),)), ())
    rows = faulty["fault"] == FAULT_BITS[kind]
    assert rows.any()
    assert set(faulty["fault"][~rows].tolist()) == {0}
    for other in sound.keys() - {"fault", array}:
        follows = other in FOLLOWING.get((name, array), set())
        if not follows:
            assert is_identical(faulty[other], sound[other]), other
        elif other not in LASTING:
            assert is_identical(faulty[other][~rows], sound[other][~rows]), other
    assert is_identical(faulty[array][~rows], sound[array][~rows])
    if name == "Adcp" and array in list_fault_input_arrays(
        spec
    ):  # a mean of pings, from which limits exclude different pings
        both = np.isfinite(faulty[array][rows]) & np.isfinite(sound[array][rows])
        if array.startswith(
            "bottom"
        ):  # a bias of 0.25 m moves a ping above the minimum range, and the mean has one more ping
            both &= faulty["bottom_percent_good"][rows] == sound["bottom_percent_good"][rows]
        assert both.any()
        off = (faulty[array] - sound[array])[rows][both]
        assert np.allclose(off, 0.25, rtol=0.0, atol=1e-12)
    else:
        assert is_identical(faulty[array][rows], sound[array][rows] + 0.25)
