"""Changes of a run while it goes on: switches, references, rates and the current, and how they are repeated."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError, NavsenseError, SensorError, SimulationError
from navsense.core.readings import TimeSlice
from navsense.environment.base import FieldSum, UniformField
from navsense.environment.current import (
    BoundaryLayer,
    GaussMarkovCurrent,
    GaussMarkovProcess,
    StratifiedCurrent,
    UuvGaussMarkovProcess,
)
from navsense.environment.current.adjustment import AdjustableCurrent, ChangedCurrent, ChangeValue, is_adjustable
from navsense.environment.water import Water
from navsense.motion.driven import State
from navsense.noise.specification import Noise
from navsense.recordings.convert import convert
from navsense.recordings.dataset import collect
from navsense.recordings.info import make_recorded_run
from navsense.recordings.message_builder import MessageBuilder
from navsense.sensors import SENSORS, Altimeter, Dvl, Imu
from navsense.sensors.base import Sensor
from navsense.sensors.doppler import MessageDialect
from navsense.simulation.run_controls import RunControls, compute_controlled_slices, make_adjustable_current
from navsense.simulation.session import Session, prepare
from navsense.streams.foxglove import FoxglovePublisher
from navsense.streams.services import list_services
from navsense.testing import example_world
from navsense.world import CurrentTopic, Switch, World

pytestmark = [pytest.mark.compiled, pytest.mark.requirement("LIV-8")]

DURATION = 1.0
IMU, DVL, ALTIMETER = "robot::arm::imu", "robot::arm::dvl", "robot::arm::altimeter"


@pytest.fixture(scope="module")
def world() -> World:
    dvl = replace(Dvl.example_spec(), dialect=MessageDialect.UUV)
    return example_world(("imu", Imu.example_spec()), ("dvl", dvl), ("altimeter", Altimeter.example_spec()))


def prepare_run(world: World) -> Session:
    return prepare(world, DURATION, seed=3, epoch=1000)


def run_with_requests(
    session: Session, requests: dict[float, Callable[[RunControls], None]], length: float = 0.1
) -> tuple[dict[str, ns.Reading], tuple[ns.RunChange, ...], list[TimeSlice]]:
    """Return the readings and the changes of a run, with requests that come while a time slice is published."""
    controls, slices = RunControls(session), []
    for time_slice in compute_controlled_slices(session, controls, length):
        slices.append(time_slice)
        for time, request in requests.items():
            if time_slice.start <= time < time_slice.end:
                request(controls)
    changes = tuple(change for time_slice in slices for change in time_slice.changes)
    return collect(slices)[0], changes, slices


def check_same_errors(found: ns.Reading, expected: ns.Reading) -> None:
    """Check that two readings are equal bit by bit, apart from what is published."""
    for group in ("arrays", "ideal", "bias", "fault"):
        for name, array in getattr(expected, group).items():
            assert getattr(found, group)[name].tobytes() == array.tobytes(), name
    assert np.array_equal(found.clock_error, expected.clock_error)
    assert np.array_equal(found.arrival, expected.arrival)


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_switched_sensor_has_the_readings_of_one_with_a_schedule(kind: type[Sensor]) -> None:
    """It is off from the next time slice on, publishes nothing, and its errors continue."""
    world = example_world(("one", kind.example_spec()))
    found, changes, _ = run_with_requests(
        prepare_run(world),
        {0.15: lambda run: run.switch("one", on=False), 0.45: lambda run: run.switch("one", on=True)},
    )
    name = "robot::arm::one"
    assert [(change.name, change.property, change.value) for change in changes] == [
        (name, "on", False),
        (name, "on", True),
    ]
    assert [change.time for change in changes] == pytest.approx([0.2, 0.5], abs=1e-12)
    switches = tuple(Switch(change.time, on=bool(change.value)) for change in changes)
    scheduled = replace(world, sensors=(replace(world.sensors[0], switches=switches),))
    expected = ns.simulate(scheduled, DURATION, seed=3)[name]
    check_same_errors(found[name], expected)
    assert np.array_equal(found[name].emitted, expected.emitted)
    always = ns.simulate(world, DURATION, seed=3)[name]
    check_same_errors(found[name], always)
    assert 0 < found[name].emitted.sum() < always.emitted.sum()


@pytest.mark.requirement("ALT-5")
def test_reference_of_the_altimeter_changes_from_the_next_time_slice_on() -> None:
    """The height is relative to it, with the same noise."""
    world = example_world(("altimeter", Altimeter(vertical_position=Noise(stddev=0.1))))
    found, _, _ = run_with_requests(
        prepare_run(world), {0.35: lambda run: run.set("altimeter", "vertical_reference", 2.5)}
    )
    plain, reading = ns.simulate(world, DURATION, seed=3)[ALTIMETER], found[ALTIMETER]
    later = reading.time >= 0.4 - 1e-9
    assert set(reading["vertical_reference"][later].tolist()) == {2.5}
    before = plain["vertical_reference"][0]
    assert set(reading["vertical_reference"][~later].tolist()) == {before}
    assert np.array_equal(reading["vertical_position"][~later], plain["vertical_position"][~later])
    difference = plain["vertical_position"][later] - reading["vertical_position"][later]
    assert difference == pytest.approx(2.5 - before, abs=1e-12)
    assert np.array_equal(reading["vertical_velocity"], plain["vertical_velocity"])


@pytest.mark.parametrize("rate", [0.7, 30.0, 50.0, 200.0])
def test_lower_rate_publishes_the_first_sample_of_each_period(world: World, rate: float) -> None:
    found, _, _ = run_with_requests(prepare_run(world), {0.0: lambda run: run.set_rate("imu", rate)})
    reading, plain = found[IMU], ns.simulate(world, DURATION, seed=3)[IMU]
    check_same_errors(reading, plain)
    later = reading.time >= 0.1 - 1e-9
    assert np.array_equal(reading.emitted[~later], plain.emitted[~later])
    published = reading.time[reading.emitted & later]
    expected, last = [], -1
    for time in plain.time[plain.emitted & later].tolist():
        period = int(np.floor(time * rate + 1e-9))
        expected += [time] if period > last else []
        last = max(last, period)
    assert published.tolist() == expected
    assert not (reading.emitted & ~plain.emitted).any()


CHANGES: dict[float, Callable[[RunControls], None]] = {
    0.15: lambda run: run.switch("dvl", on=False),
    0.35: lambda run: run.set("altimeter", "vertical_reference", -3.0),
    0.36: lambda run: run.set_rate("imu", 40.0),
    0.55: lambda run: run.switch("dvl", on=True),
}


@pytest.mark.requirement("FIL-1", "DVU-4")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".npz", ".csv"])
def test_recorded_changes_repeat_the_run(world: World, tmp_path: Path, suffix: str) -> None:
    """To the last bit, without the limit of a run in real time; `/dvl/state` is in the recording as well."""
    session = prepare_run(world)
    found, changes, slices = run_with_requests(session, CHANGES)
    path, again = tmp_path / f"run{suffix}", tmp_path / f"again{suffix}"
    with ns.recordings.open_writer(path, ns.recordings.make_recorded_run(session)) as writer:
        for time_slice in slices:
            writer.write(time_slice)
    recording = ns.open(path)
    assert recording.changes == changes
    ns.record(world, again, DURATION, seed=3, epoch=1000, changes=recording.changes)
    convert(path, tmp_path / "converted.npz")
    assert ns.open(tmp_path / "converted.npz").changes == changes
    repeated = ns.open(again)
    assert repeated.changes == changes
    for name, reading in recording.items():
        check_same_errors(repeated[name], reading)
        assert np.array_equal(repeated[name].emitted, reading.emitted)
    rows = found[ALTIMETER].emitted if suffix in (".mcap", ".bag") else slice(None)
    assert np.array_equal(repeated[ALTIMETER]["vertical_reference"], found[ALTIMETER]["vertical_reference"][rows])


def test_nothing_is_published_before_the_start(world: World) -> None:
    """Other programs see sensors that are on. Requests before the start hold."""
    start = 0.33
    plain = prepare_run(world)
    session = replace(plain, start=start)
    expected, _, _ = run_with_requests(plain, {})
    found, _, slices = run_with_requests(session, {})
    for name, reading in expected.items():
        check_same_errors(found[name], reading)
        assert np.array_equal(found[name].emitted, reading.emitted & (reading.time >= start))
    builder = MessageBuilder(make_recorded_run(session))
    states = [block for one in slices for block in builder.build_blocks(one) if block.channel.topic.endswith("/state")]
    assert min(int(block.stamp.min()) for block in states if block.stamp.size) == 1_000_330_000_000
    controls = RunControls(session)
    assert all(controls.is_on(sensor.name) for sensor in world.sensors)
    changes = [
        ns.RunChange(0.0, "dvl", "on", False),
        ns.RunChange(0.1, "imu", "rate", 40.0),
        ns.RunChange(0.2, "altimeter", "on", True),
    ]
    changed = collect(compute_controlled_slices(session, RunControls(session, changes)))[0]
    assert not changed[DVL].emitted.any()
    assert np.array_equal(changed[ALTIMETER].emitted, found[ALTIMETER].emitted)
    times = changed[IMU].time[changed[IMU].emitted]
    assert times[0] == pytest.approx(0.33, abs=1e-12)
    assert times[1:] == pytest.approx(np.arange(0.35, DURATION - 1e-9, 0.025), abs=1e-12)


def test_changes_of_a_live_run_repeat_it_as_a_batch_run(world: World, tmp_path: Path) -> None:
    """The caller of a live run switches and sets between steps."""
    path = tmp_path / "live.npz"
    with ns.live(world, seed=3, publish=path) as sim:
        for n, _ in enumerate(sim):
            if n in (40, 90):
                sim.sensor("imu").switch(on=n == 90)
                sim.sensor("altimeter").set("vertical_reference", 0.1 * n)
            if sim.time + 1.5 * world.max_step_size > DURATION:
                break
    recording = ns.open(path)
    assert len(recording.changes) == 4
    ns.record(world, tmp_path / "batch.npz", DURATION, seed=3, changes=recording.changes)
    batch = ns.open(tmp_path / "batch.npz")
    for name, reading in recording.items():
        check_same_errors(batch[name], reading)
        assert np.array_equal(batch[name].emitted, reading.emitted)
    assert not batch[IMU].emitted.all()


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("driven", [False, True])
def test_other_programs_change_a_live_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driven: bool) -> None:
    """Its streams get the controls. The changes act from the next step on, and repeat the run as a batch run."""
    received: list[RunControls] = []
    monkeypatch.setattr(FoxglovePublisher, "attach_controls", lambda _, controls: received.append(controls))
    world = example_world(("imu", Imu.example_spec()), ("dvl", Dvl.example_spec()), ("altimeter", Altimeter()))
    environment = replace(world.environment, current=PHYSICAL)
    world = replace(world, environment=environment, current_topic=CurrentTopic("/water", rate=50.0))
    motion, path = world.models[0].motion, tmp_path / "live.npz"
    assert motion is not None
    requests: dict[int, Callable[[RunControls], None]] = {
        20: lambda run: run.switch("dvl", on=False),
        30: lambda run: run.set("altimeter", "vertical_reference", 1.5),
        40: lambda run: run.set_rate("imu", 30.0),
        60: lambda run: run.set_current({"speed.mean": 0.9}),
        80: lambda run: run.switch("dvl", on=True),
    }
    outputs = ["foxglove://:0?wait=0", path]
    with ns.live(world, seed=3, publish=outputs, driven=["robot"] if driven else None) as sim:
        (controls,) = received
        for n in range(round(DURATION / world.max_step_size)):
            if n in requests:
                requests[n](controls)
            p, q, v, w, a, alpha = (
                array[0].tolist() for array in motion.at(np.array([n * world.max_step_size])).arrays
            )
            state = State(
                ns.Pose(p, q), v, angular_velocity=w, acceleration=a, angular_acceleration=alpha, angular_frame="body"
            )
            sim.step({"robot": state} if driven else None)
            if n == 50:
                sim.sensor("altimeter").switch(on=False)
                assert not controls.is_on("altimeter")
    recording = ns.open(path)
    names = ["on", "vertical_reference", "rate", "on", "speed.mean", "on"]
    assert [change.property for change in recording.changes] == names
    assert recording["dvl"].emitted.any()
    assert recording.current is not None
    speed = np.linalg.norm(recording.current.velocity, axis=1)
    changed = recording.current.time >= recording.changes[4].time
    assert speed[changed][0] - speed[~changed][-1] > 0.3
    if driven:
        return
    ns.record(world, tmp_path / "batch.npz", DURATION, seed=3, changes=recording.changes)
    batch = ns.open(tmp_path / "batch.npz")
    for name, reading in recording.items():
        check_same_errors(batch[name], reading)
        assert np.array_equal(batch[name].emitted, reading.emitted)
    assert batch.current is not None
    assert np.array_equal(batch.current.velocity, recording.current.velocity)


@pytest.mark.parametrize("suffix", [".mcap", ".npz"])
def test_recording_without_changes_has_no_trace_of_them(world: World, tmp_path: Path, suffix: str) -> None:
    ns.record(world, tmp_path / f"run{suffix}", 0.2, seed=3)
    recording = ns.open(tmp_path / f"run{suffix}")
    assert recording.changes == ()
    assert "changes" not in recording.metadata


@pytest.mark.parametrize(
    ("request_change", "error", "message"),
    [
        (lambda run: run.switch("sonar", on=False), NavsenseError, "sensor: sonar"),
        (
            lambda run: run.set("imu", "vertical_reference", 1.0),
            SimulationError,
            "a sensor imu has no adjustable array",
        ),
        (lambda run: run.set("altimeter", "vertical_position", 1.0), SensorError, "vertical_position"),
        (lambda run: run.set("altimeter", "vertical_reference", float("nan")), SensorError, "nan"),
        (lambda run: run.set_rate("imu", 1000.0), SimulationError, "must be above 0 and at most 200"),
        (lambda run: run.set_rate("imu", 0.0), SimulationError, "must be above 0"),
        (lambda run: run.set_rate("imu", float("nan")), SimulationError, "must be above 0"),
        (lambda run: run.set_current({"speed.mean": 0.1}), SimulationError, "current of the world; cannot be changed"),
    ],
)
def test_invalid_requests_are_errors_and_change_nothing(
    world: World, request_change: Callable[[RunControls], None], error: type[NavsenseError], message: str
) -> None:
    controls = RunControls(prepare_run(world))
    with pytest.raises(error, match=re.escape(message)):
        request_change(controls)
    assert controls.take(0.0) == ()


INVALID_CHANGES: list[tuple[Any, str]] = [
    (None, "changes of a run: None; must be a list of navsense.RunChange"),
    ("imu", "changes of a run: 'imu'; must be a list of navsense.RunChange"),
    ([("imu", "on", False)], "change of a run: ('imu', 'on', False); must be a navsense.RunChange; write navsense"),
    ([ns.RunChange(0.1, "sonar", "on", False)], "sensor: sonar"),
    ([ns.RunChange(0.1, "imu", "on", 1.0)], f"on of {IMU}: 1.0; must be True or False"),
    ([ns.RunChange(0.1, "imu", "rate", True)], f"rate of {IMU}: True; must be a number"),
    ([ns.RunChange(0.1, "imu", "rate", (1.0, 2.0))], f"rate of {IMU}: (1.0, 2.0); must be a number"),
    ([ns.RunChange(0.1, "imu", "onn", 1.0)], f"array 'onn' of {IMU}"),
    ([ns.RunChange(0.1, "altimeter", "vertical_reference", float("nan"))], "nan"),
    ([ns.RunChange(0.1, "current", "velocity", (0.1, 0.0, 0.0))], "current of the world; cannot be changed"),
]


@pytest.mark.parametrize(("changes", "message"), INVALID_CHANGES)
def test_invalid_changes_of_a_run_are_errors(world: World, tmp_path: Path, changes: Any, message: str) -> None:
    """No output is opened."""
    with pytest.raises(NavsenseError, match=re.escape(message)):
        ns.record(world, tmp_path / "a.npz", DURATION, changes=changes)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((-0.1, "imu", "on", False), "time of a change (s): -0.1; must be >= 0"),
        ((float("nan"), "imu", "on", False), "time of a change (s): nan; must be a finite number"),
        ((float("inf"), "imu", "on", False), "time of a change (s): inf; must be a finite number"),
        (("0.1", "imu", "on", False), "time of a change: '0.1'; must be a number"),
        ((0.1, 3, "on", False), "name of a change: 3; must be a text"),
        ((0.1, "imu", None, False), "property of a change: None; must be a text"),
        ((0.1, "imu", "on", "off"), "value of a change: 'off'; must be True or False or a number or a tuple, each a"),
        ((0.1, "current", "velocity", (0.1, "0", 0.0)), "value of a change: (0.1, '0', 0.0); must be True or False"),
    ],
)
def test_fields_of_a_change_are_checked(fields: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SimulationError, match=re.escape(message)):
        ns.RunChange(*fields)


def test_numbers_of_a_change_are_stored_as_floats() -> None:
    change = ns.RunChange(np.int64(2), "current", "velocity", [1, np.float32(0.5), 0])  # type: ignore[arg-type]
    assert (change.time, change.value) == (2.0, (1.0, 0.5, 0.0))
    assert {type(change.time), *map(type, change.value)} == {float}  # type: ignore[arg-type]
    assert ns.RunChange(0, "imu", "on", np.True_).value is True  # type: ignore[arg-type]


@pytest.mark.requirement("CUR-1")
def test_last_request_for_the_current_acts_last(world: World) -> None:
    """A new mean, then another velocity: the velocity acts, although an older one was requested before the mean."""
    environment = replace(world.environment, current=UniformField((0.1, 0.0, 0.0)))
    controls = RunControls(prepare_run(replace(world, environment=environment)))
    controls.feed_current((0.2, 0.0, 0.0))
    controls.set_current({"speed.mean": 0.7})
    controls.feed_current((0.3, 0.0, 0.0))
    assert [change.property for change in controls.take(0.1)] == ["speed.mean", "velocity"]
    assert controls.get_current_model("speed")[0] == pytest.approx(0.3, abs=1e-12)


def test_last_request_of_a_time_slice_acts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of many threads take bounded memory, and their number in a run is limited."""
    controls = RunControls(prepare_run(world))

    def call() -> None:
        for n in range(200):
            controls.switch("imu", on=n % 2 == 0)
            controls.set("altimeter", "vertical_reference", float(n))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not controls.is_on("imu")
    assert controls.take(0.5) == (
        ns.RunChange(0.5, IMU, "on", False),
        ns.RunChange(0.5, ALTIMETER, "vertical_reference", 199.0),
    )
    assert not controls.is_on("imu")
    monkeypatch.setattr("navsense.simulation.run_controls.MAX_REQUESTS", 2)
    with pytest.raises(SimulationError, match="changes of a run by other programs: 3; must be at most 2"):
        controls.switch("imu", on=True)


# The current

PHYSICAL = GaussMarkovCurrent(
    GaussMarkovProcess.from_stddev(0.3, 0.1, 60.0, 0.0, 1.0),
    GaussMarkovProcess.from_stddev(0.2, 0.1, 100.0),
    GaussMarkovProcess.from_stddev(0.0, 0.05, 100.0),
)
CLASSIC = GaussMarkovCurrent(
    UuvGaussMarkovProcess(0.3, 0.0, 1.0, 0.1, 0.01),
    UuvGaussMarkovProcess(0.2, -1.0, 1.0, 0.0, 0.01),
    UuvGaussMarkovProcess(0.0, -1.0, 1.0, 0.0, 0.001),
)
UNIFORM = UniformField((0.3, 0.4, 0.0))
TIMES = np.arange(0.0, 200.0, 0.25)


def realise(model: Any) -> AdjustableCurrent:
    field = model.realise(5, 0) if isinstance(model, GaussMarkovCurrent) else model
    return AdjustableCurrent(model, field, 5, 0, 1e-3)


def evaluate(field: Any, time: Any = TIMES) -> Any:
    """Return speed (m/s), horizontal and vertical angle (rad)."""
    x, y, z = field.at(np.zeros((len(time), 3)), np.asarray(time)).T
    horizontal = np.hypot(x, y)
    return np.hypot(horizontal, z), np.arctan2(y, x), np.arctan2(z, horizontal)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("model", [PHYSICAL, CLASSIC, UNIFORM], ids=["physical", "classic", "uniform"])
def test_process_restarts_at_its_new_mean_and_the_others_continue(model: Any) -> None:
    """As `SetMean` and `Reset` of the UUV Simulator do: the value is the mean, and the noise starts again."""
    current = realise(model)
    changed = current.change("speed.mean", 0.8, 100.0)
    before, after = evaluate(current.field), evaluate(ChangedCurrent((current.field, changed.field), (0.0, 100.0)))
    split = TIMES.searchsorted(100.0)
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old[:split], new[:split])
    assert after[0][split] == pytest.approx(0.8, abs=1e-12)
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new == pytest.approx(old, abs=1e-12)  # those that continue
    if model is UNIFORM:
        assert after[0][split:] == pytest.approx(0.8, abs=1e-12)
    else:
        assert np.std(after[0][split + 40 :]) > 0.01


@pytest.mark.requirement("CUR-1")
def test_changed_process_has_the_increments_of_its_noise() -> None:
    """d_k = phi d_(k-1) + q w_k: its w are those that the process without a change has at the same nodes."""
    current, tau, rate = realise(PHYSICAL), 60.0, 8.0
    nodes = np.arange(0.0, 60.0, 1.0 / rate)
    changed = current.change("speed.mean", 0.5, 20.0)
    before = evaluate(current.field, nodes)[0] - 0.3
    after = evaluate(changed.field, nodes[nodes >= 20.0])[0] - 0.5
    phi = np.exp(-1.0 / (rate * tau))
    start = int(20.0 * rate)
    assert after[0] == pytest.approx(0.0, abs=1e-12)
    noise = before[start + 1 :] - phi * before[start:-1]
    assert after[1:] - phi * after[:-1] == pytest.approx(noise, abs=1e-12)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("model", [PHYSICAL, CLASSIC], ids=["physical", "classic"])
def test_current_is_a_function_of_time_after_several_changes(model: Any) -> None:
    """Queries in any order have the same values, and old fields are dropped after the memory."""
    current = realise(model)
    history = ChangedCurrent((current.field,), (0.0,))
    for n, start in enumerate((30.0, 30.05, 90.0, 150.0)):
        name: str = ("speed.mean", "horizontal_angle.mean")[n % 2]
        current = current.change(name, 0.1 * n + 0.1, start)
        history = history.add(current.field, start, 70.0)
    assert history.starts == (30.05, 90.0, 150.0)
    rng = np.random.default_rng(1)
    time = np.concatenate([[80.0, 90.0, 150.0], rng.uniform(80.0, 200.0, 300)])
    ordered = np.sort(time)
    values = history.at(np.zeros((time.size, 3)), ordered)
    mixed = history.at(np.zeros((time.size, 3)), time)
    assert np.array_equal(mixed[np.argsort(time, kind="stable")], values)
    assert evaluate(history, [90.0])[0] == pytest.approx(0.3, abs=1e-12)
    assert evaluate(history, [150.0])[1] == pytest.approx(0.4, abs=1e-12)


@pytest.mark.requirement("CUR-1")
def test_model_of_a_process_is_that_of_the_plug_in() -> None:
    """Mean, minimum, maximum, noise and mu: a process of either fidelity, and noise for a current that had none."""
    for model in (PHYSICAL, UNIFORM):
        process = realise(model).change("speed.model", (0.5, 0.0, 1.0, 0.02, 0.1), 10.0).get_process("speed")
        assert process == UuvGaussMarkovProcess(0.5, 0.0, 1.0, 0.1, 0.02, 1e-3).to_physical()
    classic = realise(CLASSIC).change("speed.model", (0.5, 0.0, 1.0, 0.02, 0.1), 10.0)
    assert classic.get_process("speed") == UuvGaussMarkovProcess(0.5, 0.0, 1.0, 0.1, 0.02, 1e-3)
    moving = realise(UNIFORM).change("speed.model", (0.5, 0.0, 1.0, 0.002, 0.1), 10.0)
    speed = evaluate(moving.field, TIMES[TIMES >= 10.0])[0]
    assert speed[0] == pytest.approx(0.5, abs=1e-12)
    assert 0.0 < np.std(speed) < 0.5


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize("model", [PHYSICAL, CLASSIC], ids=["physical", "classic"])
@pytest.mark.parametrize("step", [1e-3, 4e-3])
def test_current_stays_the_same_if_its_model_is_read_and_set(world: World, model: Any, step: float) -> None:
    """The services for both have the same five values, for each physics step."""
    environment = replace(world.environment, current=model)
    session = prepare_run(replace(world, environment=environment, max_step_size=step))
    controls = RunControls(session)
    calls = {
        service.name.rpartition("/")[2]: service.call
        for service in list_services(controls, session.world, make_recorded_run(session).topics)
    }
    before = controls.get_current_model("speed")
    for _ in range(3):
        values = calls["get_current_velocity_model"]([])
        assert isinstance(values, tuple)
        calls["set_current_velocity_model"](values)
    assert controls.get_current_model("speed") == pytest.approx(before, rel=1e-12, abs=0.0)
    current = make_adjustable_current(session)
    assert current is not None
    (change,) = controls.take(0.1)
    process = current.check(change.property, change.value).get_process("speed")
    expected = current.get_process("speed")
    assert type(process) is type(expected)
    assert list(vars(process).values()) == pytest.approx(list(vars(expected).values()), rel=1e-12, abs=0.0)


@pytest.mark.requirement("CUR-1")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("speed.mean", 1.5, "mean of the process: 1.5; must be from 0.0 to 1.0, its limits"),
        ("speed.mean", (1.0, 2.0), "must be a number"),
        ("speed.mean", float("nan"), "mean of a process"),
        ("speed.model", (0.5, 1.0, 0.0, 0.0, 0.0), "minimum of the current's process"),
        ("speed.model", (0.5, 0.0, 1.0, -0.1, 0.0), "noiseAmp"),
        ("speed.model", (0.5, 0.0, 1.0, 0.0, 2.0), "mu of a current's process"),
        ("speed.model", 0.5, "must be mean, minimum, maximum, noise amplitude and mu"),
        ("depth.mean", 0.5, "property of the current: depth.mean; must be one of velocity, speed.mean"),
    ],
)
def test_invalid_changes_of_the_current_are_errors(name: str, value: ChangeValue, message: str) -> None:
    with pytest.raises(FieldError, match=re.escape(message)):
        realise(PHYSICAL).check(name, value)


@pytest.mark.requirement("CUR-1")
def test_part_of_a_sum_and_of_a_boundary_layer_is_changed() -> None:
    tide = StratifiedCurrent((0.0, 50.0), ((0.1, 0.0, 0.0), (0.1, 0.0, 0.0)))
    model = FieldSum((BoundaryLayer(UNIFORM, -100.0, 1.0), tide))
    current = AdjustableCurrent(model, model, 5, 0, 1e-3)
    velocity = current.change("speed.mean", 1.0, 0.0).field.at(np.zeros((1, 3)), np.zeros(1))[0]
    assert velocity == pytest.approx([0.7, 0.8, 0.0], abs=1e-12)
    assert not is_adjustable(tide)
    assert not is_adjustable(FieldSum((UNIFORM, PHYSICAL)))
    with pytest.raises(FieldError, match="has several parts that can be set"):
        AdjustableCurrent(FieldSum((UNIFORM, UNIFORM)), UNIFORM, 5, 0, 1e-3).get_process("speed")


@pytest.mark.requirement("CUR-1", "FIL-1")
@pytest.mark.parametrize("model", [PHYSICAL, CLASSIC, UNIFORM], ids=["physical", "classic", "uniform"])
def test_current_of_a_run_changes_and_repeats(tmp_path: Path, model: Any) -> None:
    """The DVL measures it, the recording has it, and the recorded changes repeat the run."""
    spec = replace(Dvl.example_spec(), dialect=MessageDialect.UUV)
    world = example_world(("dvl", spec))
    environment = replace(world.environment, current=model, water=world.environment.water or Water())
    world = replace(world, environment=environment, current_topic=CurrentTopic("/hydrodynamics/current_velocity"))
    session, path = prepare_run(world), tmp_path / "run.npz"
    values: dict[str, ChangeValue] = {"speed.mean": 0.9, "horizontal_angle.mean": 0.5, "vertical_angle.mean": 0.1}
    found, changes, slices = run_with_requests(session, {0.45: lambda run: run.set_current(values)})
    assert [change.property for change in changes] == list(values)
    with ns.recordings.open_writer(path, ns.recordings.make_recorded_run(session)) as writer:
        for time_slice in slices:
            writer.write(time_slice)
    recording = ns.open(path)
    assert recording.current is not None
    first = int(np.searchsorted(recording.current.time, 0.5 - 1e-9))
    speed = np.linalg.norm(recording.current.velocity, axis=1)
    assert speed[first] == pytest.approx(0.9, abs=1e-9)
    assert abs(speed[first - 1] - 0.9) > 0.2
    ns.record(world, tmp_path / "again.npz", DURATION, seed=3, changes=recording.changes)
    again = ns.open(tmp_path / "again.npz")
    assert again.current is not None
    assert np.array_equal(again.current.velocity, recording.current.velocity)
    for name, reading in found.items():
        check_same_errors(again[name], reading)
