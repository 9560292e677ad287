"""Sensors that are switched on and off: by their state at the start, a schedule, the command line and live."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

import navsense as ns
from navsense.cli.application import cli
from navsense.clock import Latency
from navsense.core.errors import SdfError, SensorError, SimulationError
from navsense.core.readings import Reading, join_readings
from navsense.faults.injection import Faults
from navsense.recordings.world_json import world_from_json, world_to_json
from navsense.sensors import SENSORS, Dvl, Imu, Magnetometer
from navsense.sensors.base import Sensor
from navsense.sensors.doppler import MessageDialect
from navsense.testing import example_world
from navsense.world import MountedSensor, Switch, World

NAME = "robot::arm::one"
SCHEDULE = (Switch(0.2, on=True), Switch(0.5, on=False), Switch(0.801, on=True))
DURATION = 1.0


def make_world(spec: Sensor, **fields: Any) -> World:
    """Return the world of the laws with a sensor, and fields of its mounting."""
    world = example_world(("one", spec))
    return replace(world, sensors=(replace(world.sensors[0], **fields),))


def is_scheduled(time: Any) -> Any:
    """Return whether a sensor with `SCHEDULE` that is off at the start is on at instants (n,) s."""
    return ((time >= 0.2) & (time < 0.5)) | (time >= 0.801)


def check_equal(one: Reading, other: Reading, *, emitted: bool = True) -> None:
    """Check that two readings are equal bit by bit, with or without what is published."""
    for group in ("arrays", "ideal", "bias", "turn_on_bias", "fault"):
        left, right = getattr(one, group), getattr(other, group)
        assert left.keys() == right.keys()
        for name in left:
            assert left[name].tobytes() == right[name].tobytes(), name
    for name in ("time", "clock_error", "arrival", "valid", *(("emitted",) if emitted else ())):
        assert (
            np.ascontiguousarray(getattr(one, name)).tobytes() == np.ascontiguousarray(getattr(other, name)).tobytes()
        )


def run_live(world: World, duration: float = DURATION) -> list[Reading]:
    """Return the readings of the steps of a live run."""
    parts = []
    for step in ns.live(world, seed=3):
        if step.time >= duration:
            break
        parts += [step.readings[NAME]] if NAME in step.readings else []
    return parts


@pytest.mark.requirement("DVU-7", "NOI-2")
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_switched_sensor_has_the_readings_of_one_that_is_always_on(kind: type[Sensor]) -> None:
    """Draws, state, stamps and validity are the same at every tick; only the publication differs."""
    spec = kind.example_spec()
    always = ns.simulate(make_world(spec), DURATION, seed=3)[NAME]
    switched = ns.simulate(make_world(spec, is_on=False, switches=SCHEDULE), DURATION, seed=3)[NAME]
    check_equal(switched, always, emitted=False)
    assert np.array_equal(switched.emitted, always.emitted & is_scheduled(always.time))
    assert 0 < switched.emitted.sum() < always.emitted.sum()


FAULTS = Faults(dropout_rate=3.0, dropout_duration=0.05, stuck_rate=3.0, stuck_duration=0.05)


@pytest.mark.requirement("DVU-7", "LIV-1", "BAT-1")
@pytest.mark.parametrize("kind", [Imu, Dvl], ids=lambda kind: kind.type)
@pytest.mark.parametrize("latency", [None, Latency(fixed=0.013), Latency(fixed=0.002, mean=0.02, stddev=0.02)])
def test_live_run_equals_the_batch_run(kind: type[Sensor], latency: Latency | None) -> None:
    """Bitwise, with faults and a latency that keeps the order; samples on their way are not in the live run."""
    world = make_world(kind.example_spec(), is_on=False, switches=SCHEDULE, latency=latency, faults=FAULTS)
    batch, live = ns.simulate(world, DURATION, seed=3)[NAME], join_readings(run_live(world))
    assert live.time.size > 0.85 * batch.time.size
    check_equal(live, batch.select_rows(0, live.time.size))


@pytest.mark.requirement("DVU-7")
def test_cut_of_a_run_does_not_change_the_switches() -> None:
    """A run that ends earlier, and time slices of any length, have the same readings."""
    world = make_world(Imu.example_spec(), is_on=False, switches=SCHEDULE)
    whole = ns.simulate(world, DURATION, seed=3)[NAME]
    for duration in (0.2, 0.505, 0.8):
        part = ns.simulate(world, duration, seed=3)[NAME]
        check_equal(part, whole.select_rows(0, part.time.size))
    slices = [one.readings[NAME] for one in ns.simulate(world, DURATION, seed=3).session.compute_slices(0.07)]
    assert len(slices) > 10
    check_equal(join_readings(slices), whole)


@pytest.mark.requirement("DVU-7")
def test_switch_acts_from_the_first_sample_at_or_after_its_time() -> None:
    world = make_world(Magnetometer.example_spec(), rate=10.0, switches=(Switch(0.3, on=False), Switch(0.41, on=True)))
    reading = ns.simulate(world, DURATION, seed=3)[NAME]
    assert reading.time[~reading.emitted] == pytest.approx([0.3, 0.4], abs=1e-12)


@pytest.mark.requirement("DVU-7", "LIV-1")
def test_live_switch_overrides_the_schedule_until_its_next_switch() -> None:
    world = make_world(
        Magnetometer.example_spec(), rate=10.0, is_on=False, switches=(Switch(0.5, on=True), Switch(0.8, on=False))
    )
    sim, on = ns.live(world, seed=3), []
    mag = sim.sensor("one")
    assert not mag.is_on
    for step in sim:
        if step.time >= 1.0:
            break
        if NAME in step.readings:
            on += [float(step.readings[NAME].time[0])] if step.readings[NAME].emitted[0] else []
            assert mag.is_on == bool(step.readings[NAME].emitted[0])
        if step.time == pytest.approx(0.1, abs=1e-9):
            mag.switch(on=True)
            assert mag.is_on
        if step.time == pytest.approx(0.3, abs=1e-9):
            mag.switch(on=False)
        if step.time == pytest.approx(0.6, abs=1e-9):
            mag.switch(on=False)
    assert on == pytest.approx([0.2, 0.3, 0.5, 0.6], abs=1e-12)


@pytest.mark.requirement("DVU-7", "DVU-4")
@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_state_topic_of_the_dvl_follows_the_schedule(tmp_path: Path, suffix: str) -> None:
    """`std_msgs/Bool` at every tick, also while the DVL is off."""
    spec = replace(Dvl.example_spec(), dialect=MessageDialect.UUV)
    world, path = make_world(spec, is_on=False, switches=SCHEDULE), tmp_path / f"run{suffix}"
    ns.record(world, path, DURATION, seed=3, epoch=1000)
    with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
        states = [one for one in reader.connections if one.topic == "/one/state"]
        found: list[Any] = [reader.deserialize(raw, states[0].msgtype) for *_, raw in reader.messages(states)]
        pings = [one.msgcount for one in reader.connections if one.topic == "/one"]
    reading = ns.simulate(world, DURATION, seed=3)[NAME]
    assert [state.data for state in found] == is_scheduled(reading.time).tolist()
    assert pings == [reading.emitted.sum()]


@pytest.mark.requirement("DVU-7", "FIL-1")
@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".npz"])
def test_recording_has_the_schedule(tmp_path: Path, suffix: str) -> None:
    world = make_world(Imu.example_spec(), is_on=False, switches=SCHEDULE)
    ns.record(world, tmp_path / f"run{suffix}", DURATION, seed=3, epoch=1000)
    recording = ns.open(tmp_path / f"run{suffix}")
    sensor = recording.recorded_world.world.sensor(NAME)
    assert (sensor.is_on, sensor.switches) == (False, SCHEDULE)
    published = ns.simulate(world, DURATION, seed=3)[NAME].emitted.sum()
    assert recording[NAME].emitted.sum() == published


@pytest.mark.requirement("DVU-7", "FIL-1")
def test_recording_without_switches_is_read() -> None:
    """Older recordings have no such key."""
    data = world_to_json(make_world(Imu.example_spec(), is_on=False))
    assert data["sensors"][0].pop("switches") == []
    found = world_from_json(data)
    assert found is not None
    assert (found.world.sensors[0].is_on, found.world.sensors[0].switches) == (False, ())


HEAD = (
    '<sdf version="1.10" xmlns:navsense="https://navsense.org/sdf"><world name="w"><model name="rov"><link name="base">'
)
TAIL = "</link></model></world></sdf>"


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], World]:
    """Return a function that loads a world with elements in an IMU at 10 Hz; the first element is on line 2."""

    def load_elements(elements: str) -> World:
        body = f'<sensor name="imu" type="imu"><update_rate>10</update_rate>\n{elements}\n</sensor>'
        (tmp_path / "rov.sdf").write_text(HEAD + body + TAIL, encoding="utf-8")
        return ns.load(tmp_path / "rov.sdf")

    return load_elements


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize(
    ("elements", "is_on"),
    [
        ("", True),
        ("<always_on>1</always_on>", True),
        ("<always_on>true</always_on>", True),
        ("<always_on>0</always_on>", False),
        ("<always_on>false</always_on>", False),
    ],
)
def test_explicit_false_keeps_a_sensor_off(load: Callable[[str], World], elements: str, *, is_on: bool) -> None:
    """Without the element a sensor is on: SDF's default false means "on while a program subscribes"."""
    world = load(elements)
    assert world.sensor("imu").is_on == is_on
    assert ns.simulate(world, 1.0, seed=1)["imu"].emitted.all() == is_on
    warnings = [(note.where and note.where.line, note.what) for note in world.notes if note.kind == "warning"]
    assert warnings == ([] if is_on else [(1, "sensor rov::base::imu is off")])


@pytest.mark.requirement("DVU-7")
def test_schedule_of_a_file_is_read_in_any_order(load: Callable[[str], World]) -> None:
    switches = '<navsense:switch time="0.6">off</navsense:switch><navsense:switch time="0.2">on</navsense:switch>'
    world = load(f"<always_on>false</always_on>{switches}")
    assert world.sensor("imu").switches == (Switch(0.2, on=True), Switch(0.6, on=False))
    reading = ns.simulate(world, 1.0, seed=1)["imu"]
    assert reading.time[reading.emitted] == pytest.approx([0.2, 0.3, 0.4, 0.5], abs=1e-12)
    assert not world.notes


@pytest.mark.requirement("DVU-7", "SDF-2")
@pytest.mark.parametrize(
    ("elements", "problem"),
    [
        ("<always_on>perhaps</always_on>", "<sensor><always_on>: perhaps; must be true, false, 1 or 0"),
        ("<navsense:switch>on</navsense:switch>", "<navsense:switch time>: missing; must be given"),
        ('<navsense:switch time="1">up</navsense:switch>', "<navsense:switch>: up; must be one of on, off"),
        (
            '<navsense:switch time="-1">on</navsense:switch>',
            "<navsense:switch> time of a switch (s): -1.0; must be >= 0",
        ),
        (
            '<navsense:switch time="1">on</navsense:switch><navsense:switch time="1.0">off</navsense:switch>',
            "<navsense:switch time>: 1 s; must differ from the times of the other switches",
        ),
    ],
)
def test_invalid_switches_are_errors(load: Callable[[str], World], elements: str, problem: str) -> None:
    with pytest.raises(SdfError, match=re.escape(f"rov.sdf:2: {problem}")):
        load(elements)


@pytest.mark.requirement("DVU-7")
def test_invalid_switches_in_python_are_errors() -> None:
    with pytest.raises(SensorError, match=r"time of a switch \(s\): -1.0; must be >= 0"):
        Switch(-1.0, on=True)
    with pytest.raises(SimulationError, match=r"sensor robot::arm::one \(s\): 0.2; must differ from the times"):
        make_world(Imu(), switches=(Switch(0.2, on=True), Switch(0.2, on=False)))


@pytest.mark.requirement("DVU-7")
def test_python_switches_a_sensor_of_a_world() -> None:
    world = ns.with_switch(example_world(("one", Imu()), ("two", Imu())), "one", on=False)
    world = ns.with_switch(world, "arm::one", on=True, time=0.4)
    one, two = world.sensor("one"), world.sensor("two")
    assert (one.is_on, one.switches, two.is_on, two.switches) == (False, (Switch(0.4, on=True),), True, ())
    assert MountedSensor.compute_on(one, np.array([0.0, 0.4, 9.0])).tolist() == [False, True, True]


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.requirement("DVU-7")
def test_commands_warn_of_a_sensor_that_is_off_and_switch_it(load: Callable[[str], World], tmp_path: Path) -> None:
    load("<always_on>false</always_on>")
    path, out = str(tmp_path / "rov.sdf"), str(tmp_path / "run.npz")
    warning = f"{path}:1: sensor rov::base::imu is off: publishes nothing until it is switched on: "
    for command in (("check", path), ("run", path, "--duration", "1")):
        assert warning + "--switch-on rov::base::imu, " in " ".join(invoke(*command).output.split("\n"))
    options = ("--switch-on", "imu@0.2", "--switch-off", "imu@0.55")
    assert "is off" not in invoke("check", path, *options).output
    assert "    switch: off, on at 0.2 s, off at 0.55 s\n" in invoke("describe", path, *options).output
    assert invoke("run", path, "--duration", "1", *options, "-o", out).exit_code == 0
    reading = ns.open(out)["imu"]
    assert reading.time[reading.emitted] == pytest.approx([0.2, 0.3, 0.4, 0.5], abs=1e-12)
    assert "is off" not in invoke("check", path, "--switch-on", "imu").output


@pytest.mark.requirement("DVU-7", "DOO-1")
@pytest.mark.parametrize("text", ["imu@", "imu@soon", "imu@-1", "@3"])
def test_invalid_switch_option_is_an_error(load: Callable[[str], World], tmp_path: Path, text: str) -> None:
    load("")
    result = invoke("check", str(tmp_path / "rov.sdf"), "--switch-on", text)
    assert f"--switch-on: {text}; must be SENSOR or SENSOR@TIME with a time (s) >= 0; write --switch-on imu@10" in (
        result.output + str(result.exception)
    )


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize("text", ["imu", "rov::base::imu@0"])
def test_options_that_contradict_at_the_start_are_an_error(
    load: Callable[[str], World], tmp_path: Path, text: str
) -> None:
    load("")
    path = str(tmp_path / "rov.sdf")
    result = invoke("check", path, "--switch-on", text, "--switch-off", "imu")
    assert "--switch-off: imu; contradicts --switch-on for the start of rov::base::imu; omit one of them, or give" in (
        result.output + str(result.exception)
    )
    assert invoke("check", path, "--switch-off", "imu", "--switch-on", "imu@0.5").exit_code == 0


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_report_names_a_sensor_that_is_off(load: Callable[[str], World], tmp_path: Path, suffix: str) -> None:
    load("<always_on>false</always_on>")
    path, out, page = str(tmp_path / "rov.sdf"), str(tmp_path / f"run{suffix}"), str(tmp_path / "page.html")
    for options, expected, absent in (
        ((), "is off for the whole recording: it publishes nothing until it is switched on", "is valid"),
        (
            ("--switch-on", "imu@1", "--switch-off", "imu@1.5", "--switch-on", "imu@39"),
            "is off by its schedule",
            "no valid",
        ),
    ):
        assert invoke("run", path, "--duration", "40", *options, "-o", out).exit_code == 0
        assert invoke("report", out, "-o", page).exit_code == 0
        text = Path(page).read_text()
        assert expected in text
        assert absent not in text


@pytest.mark.requirement("DVU-7")
@pytest.mark.parametrize(("always_on", "text", "on"), [("false", "on", True), ("true", "off", False)])
def test_a_switch_at_time_0_is_the_state_at_the_start(
    load: Callable[[str], World], tmp_path: Path, always_on: str, text: str, *, on: bool
) -> None:
    """The warning is that of a sensor that is off in the whole run."""
    element = f'<always_on>{always_on}</always_on><navsense:switch time="0">{text}</navsense:switch>'
    sensor = load(element).sensors[0]
    assert (sensor.is_on, sensor.switches) == (on, ())
    checked = invoke("check", str(tmp_path / "rov.sdf")).output
    assert ("publishes nothing until it is switched on" in " ".join(checked.split())) is not on


@pytest.mark.requirement("DVU-7")
def test_run_counts_the_samples_that_were_published(load: Callable[[str], World], tmp_path: Path) -> None:
    load("")
    path = str(tmp_path / "rov.sdf")
    for options, count in (((), 10), (("--switch-off", "imu@0.35"), 4), (("--switch-off", "imu@0"), 0)):
        output = invoke("run", path, "--duration", "1", *options).output
        row = next(line.split() for line in output.splitlines() if line.startswith("rov::base::imu "))
        assert row[:4] == ["rov::base::imu", "imu", "10", str(count)]
        assert "no valid reading" not in output


@pytest.mark.requirement("DVU-7")
def test_run_warns_of_a_sensor_whose_switches_leave_out_all_samples(
    load: Callable[[str], World], tmp_path: Path
) -> None:
    load("")
    options = ("--switch-off", "imu", "--switch-on", "imu@0.31", "--switch-off", "imu@0.39")
    output = invoke("run", str(tmp_path / "rov.sdf"), "--duration", "1", *options).output
    assert "warning: rov::base::imu: none of 10 samples was published" in output
