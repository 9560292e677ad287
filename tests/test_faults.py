"""Fault injection: in a world file, in a fault file, in readings and clocks, and in recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.core.errors import NavsenseError, SensorError, SimulationError, UnknownNameError
from navsense.core.readings import FAULT_BITS
from navsense.fault_file import describe_inactive_faults, list_faults, with_faults
from navsense.faults.schedule import ScheduledFault, apply_offsets, check_fault
from navsense.messages.world_messages import pack_fault_bits

MAG, CLOCK = "m::l::mag", "m::l::c"

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">{world}
<model name="m"><link name="l">
<clock name="c"><noise type="gaussian"><stddev>1e-5</stddev></noise>{clock}</clock>
<sensor name="mag" type="magnetometer"><update_rate>10</update_rate><clock>c</clock>{sensor}
<magnetometer><x><noise type="gaussian"><stddev>1e-8</stddev></noise></x></magnetometer></sensor>
<sensor name="imu" type="imu"><update_rate>10</update_rate></sensor>
</link></model></world></sdf>"""

ANOMALY = '<fault kind="magnetic_anomaly" start="2" end="3">2e-6 0 1e-6</fault>'
STEP = '<fault kind="step" start="3">0.5</fault>'
SENSOR = """<fault kind="bias" start="1" end="2" array="field">1e-5 0 0</fault>
<fault kind="spike" start="4" end="5" period="0.35" array="field">1e-4</fault>
<fault kind="dropout" start="0.5" end="0.8"/><fault kind="stuck" start="3.5" end="4"/>"""

TWO = """<sdf version="1.9"><world name="w">
<model name="a"><link name="l"><sensor name="mag" type="magnetometer"/></link></model>
<model name="b"><link name="l"><sensor name="mag" type="magnetometer"/></link></model>
<model name="c"><link name="l"><sensor name="c" type="imu"/></link></model></world></sdf>"""

TOML = """
[[fault]]
of = "world"
kind = "magnetic_anomaly"
start = 2
end = 3
value = [2e-6, 0, 1e-6]
[[fault]]
of = "m::l::c"
kind = "step"
start = 3
value = 0.5
[[fault]]
of = "m::l::mag"
kind = "bias"
start = 1
end = 2
array = "field"
value = [1e-5, 0, 0]
[[fault]]
of = "m::l::mag"
kind = "spike"
start = 4
end = 5
period = 0.35
array = "field"
value = 1e-4
[[fault]]
of = "m::l::mag"
kind = "dropout"
start = 0.5
end = 0.8
[[fault]]
of = "m::l::mag"
kind = "stuck"
start = 3.5
end = 4
"""


@pytest.fixture
def load_world(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that loads the world with `<navsense:faults>` of the world, the clock and the sensor."""

    def load(**elements: str) -> Any:
        inside = {"world": "", "clock": "", "sensor": ""}
        inside |= {of: f"<navsense:faults>{text}</navsense:faults>" for of, text in elements.items()}
        (tmp_path / "w.sdf").write_text(WORLD.format(**inside))
        return ns.load(tmp_path / "w.sdf")

    return load


@pytest.mark.requirement("NOI-6")
def test_fault_acts_as_scheduled(load_world: Callable[..., Any]) -> None:
    """Compared to the same run without faults, only the faulty rows and arrays change."""
    plain = ns.simulate(load_world(), 6.0, seed=1)
    run = ns.simulate(load_world(world=ANOMALY, clock=STEP, sensor=SENSOR), 6.0, seed=1)
    field, fault_bits, k = run[MAG]["field"], pack_fault_bits(run[MAG].fault), np.arange(60)
    off = field - plain[MAG]["field"]
    dropped, stuck = (k >= 5) & (k < 8), (k >= 35) & (k < 40)
    assert np.array_equal(np.isnan(field).all(axis=1), dropped)
    assert np.array_equal(run[MAG].emitted, ~dropped)
    assert np.array_equal(run[MAG].valid, ~dropped)
    assert np.array_equal(field[stuck], np.tile(field[34], (5, 1)))
    expected = np.zeros((60, 3))
    expected[10:20] += (1e-5, 0.0, 0.0)
    expected[20:30] += (2e-6, 0.0, 1e-6)
    expected[[40, 44, 47]] += 1e-4  # at 4, 4.35 and 4.7 s: the first sample at or after each
    assert off[~dropped & ~stuck] == pytest.approx(expected[~dropped & ~stuck], abs=1e-18)
    bits = np.zeros(60)
    bits[dropped], bits[stuck], bits[10:20], bits[[40, 44, 47]] = (
        FAULT_BITS[n] for n in ("dropout", "stuck", "bias", "spike")
    )
    assert np.array_equal(fault_bits, bits)
    steps = run[MAG].clock_error - plain[MAG].clock_error
    assert steps == pytest.approx(np.where(k >= 30, 0.5, 0.0), abs=1e-12)
    assert np.array_equal(run["m::l::imu"]["angular_velocity"], plain["m::l::imu"]["angular_velocity"])
    assert not run["m::l::imu"].fault


@pytest.mark.requirement("NOI-6")
def test_scheduled_faults_are_equal_in_batch_and_live_runs(load_world: Callable[..., Any]) -> None:
    struck = load_world(world=ANOMALY, clock=STEP, sensor=SENSOR)
    run, many = ns.simulate(struck, 6.0, seed=1), ns.simulate(struck, 6.0, seed=1, runs=2)
    rows: list[Any] = []
    with ns.live(struck, seed=1) as sim:
        while len(rows) < 60:
            rows += [step.readings[MAG] for step in [sim.step()] if MAG in step.readings]
    assert np.array_equal(np.concatenate([row["field"] for row in rows]), run[MAG]["field"], equal_nan=True)
    assert np.array_equal(np.concatenate([pack_fault_bits(row.fault) for row in rows]), pack_fault_bits(run[MAG].fault))
    assert np.array_equal(np.concatenate([row.clock_error for row in rows]), run[MAG].clock_error)
    assert np.array_equal(many[MAG]["field"][0], run[MAG]["field"], equal_nan=True)
    assert np.array_equal(pack_fault_bits(many[MAG].fault)[1], pack_fault_bits(run[MAG].fault))


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(
    ("value", "added"),
    [
        ((2.0,), np.full((2, 3), 2.0)),
        ((1.0, 2.0, 3.0), [[1, 2, 3], [1, 2, 3]]),
        (tuple(range(6)), [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_fault_offsets_arrays_of_two_axes(value: tuple[float, ...], added: Any) -> None:
    """The offset is one number, one per element of the last axis, or one per element."""
    fault = ScheduledFault("bias", 0.1, 0.3, "velocity", value)
    check_fault(None, {"velocity": (2, 3)}, fault)
    rows = np.arange(5)
    out = apply_offsets([(fault, (rows == 1) | (rows == 2))], {"velocity": np.zeros((5, 2, 3))})["velocity"]
    assert np.array_equal(out[1:3], np.broadcast_to(added, (2, 2, 3)))
    assert not out[[0, 3, 4]].any()
    with pytest.raises(SensorError, match="must be one number, or 3, or 6"):
        check_fault(None, {"velocity": (2, 3)}, ScheduledFault("bias", 0.1, 0.3, "velocity", (1.0, 2.0)))


@pytest.mark.requirement("NOI-6")
def test_fault_file_equals_faults_declared_in_the_world(load_world: Callable[..., Any], tmp_path: Path) -> None:
    declared = load_world(world=ANOMALY, clock=STEP, sensor=SENSOR)
    (tmp_path / "faults.toml").write_text(TOML)
    from_file = with_faults(load_world(), tmp_path / "faults.toml")
    assert list_faults(from_file) == list_faults(declared)
    first, second = ns.simulate(declared, 6.0, seed=1)[MAG], ns.simulate(from_file, 6.0, seed=1)[MAG]
    assert np.array_equal(first["field"], second["field"], equal_nan=True)
    assert np.array_equal(first.clock_error, second.clock_error)


@pytest.mark.requirement("NOI-6")
def test_fault_file_accepts_an_unambiguous_name_ending(load_world: Callable[..., Any], tmp_path: Path) -> None:
    ends = TOML.replace('"m::l::mag"', '"mag"').replace('"m::l::c"', '"l::c"')
    (tmp_path / "faults.toml").write_text(ends)
    (tmp_path / "full.toml").write_text(TOML)
    assert list_faults(with_faults(load_world(), tmp_path / "faults.toml")) == list_faults(
        with_faults(load_world(), tmp_path / "full.toml")
    )
    (tmp_path / "w.sdf").write_text(TWO)
    two = ns.load(tmp_path / "w.sdf")
    one = "[[fault]]\nof = '{}'\nkind = 'stuck'\nstart = 1"
    for ending, name in (("b::l::mag", "b::l::mag"), ("c", "c::l::c")):
        (tmp_path / "faults.toml").write_text(one.format(ending))
        (fault,) = list_faults(with_faults(two, tmp_path / "faults.toml"))
        assert fault["of"] == name
    several = "of: mag; is ambiguous: must be one of a::l::mag, b::l::mag"
    for ending, problem in (("mag", several), ("ag", "of: ag; must be one of world, a::l::mag, b::l::mag")):
        (tmp_path / "faults.toml").write_text(one.format(ending))
        with pytest.raises(UnknownNameError) as caught:
            with_faults(two, tmp_path / "faults.toml")
        assert f"fault 1: {problem}" in str(caught.value)


@pytest.mark.requirement("NOI-6")
def test_faults_after_the_end_of_a_run_are_listed(load_world: Callable[..., Any]) -> None:
    struck = load_world(world=ANOMALY, clock=STEP, sensor=SENSOR)
    late = "does not act in a run from 0 to 3 s"
    assert list(describe_inactive_faults(struck, 3.0)) == [
        f"m::l::c: step from 3 s {late}",
        f"m::l::mag: spike from 4 s {late}",
        f"m::l::mag: stuck from 3.5 s {late}",
    ]
    assert not list(describe_inactive_faults(struck, 4.5))


@pytest.mark.requirement("NOI-6")
def test_faults_before_a_run_are_listed_and_long_lists_shortened(load_world: Callable[..., Any]) -> None:
    fault = '<fault kind="bias" start="-5" end="0" array="field">1e-6 0 0</fault>'
    (early,) = describe_inactive_faults(load_world(sensor=fault), 1.0)
    assert early == "m::l::mag: bias from -5 s does not act in a run from 0 to 1 s"
    many = "".join(f'<fault kind="dropout" start="{start}" end="{start + 1}"/>' for start in range(2, 14))
    lines = list(describe_inactive_faults(load_world(sensor=many), 1.0))
    assert len(lines) == 6
    assert lines[-1] == "7 more scheduled faults outside the run"


@pytest.mark.requirement("NOI-6", "REC-1")
def test_recordings_contain_the_faults(load_world: Callable[..., Any], tmp_path: Path) -> None:
    struck = load_world(world=ANOMALY, clock=STEP, sensor=SENSOR)
    run = ns.simulate(struck, 6.0, seed=1, epoch=10)
    for name in ("run.npz", "run.mcap", "run.bag"):
        run.save(tmp_path / name)
    again = ns.open(tmp_path / "run.npz")
    assert again.metadata["faults"] == list_faults(struck)
    assert np.array_equal(pack_fault_bits(again[MAG].fault), pack_fault_bits(run[MAG].fault))
    for name in ("run.mcap", "run.bag"):
        with AnyReader([tmp_path / name]) as reader:
            (topic,) = (connection for connection in reader.connections if connection.topic.endswith("/fault"))
            messages: list[Any] = [reader.deserialize(data, topic.msgtype) for *_, data in reader.messages([topic])]
        assert [message.data for message in messages] == pack_fault_bits(run[MAG].fault).tolist()
    content = (tmp_path / "run.mcap").read_bytes()
    assert json.dumps(list_faults(struck)).encode() in content


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(
    ("of", "text", "problem"),
    [
        (
            "sensor",
            '<fault kind="bais" start="1"/>',
            "w.sdf:4: <fault> kind of a fault: bais; must be one of dropout, stuck, bias",
        ),
        ("sensor", '<fault kind="stuck"/>', "missing; must be given: s, true time"),
        (
            "sensor",
            '<fault kind="stuck" start="2" end="1"/>',
            "<fault> times of a stuck (s): 2 to 1; must be from a finite time",
        ),
        (
            "sensor",
            '<fault kind="bias" start="1" array="filed">1</fault>',
            "<fault> array of a bias: filed; must be one of field",
        ),
        (
            "sensor",
            '<fault kind="bias" start="1" array="field">1 2</fault>',
            "value of a bias: 1 2; must be one number, or 3",
        ),
        ("sensor", '<fault kind="bias" start="1" array="field">nan</fault>', "must be finite numbers"),
        (
            "sensor",
            '<fault kind="bias" start="1">1</fault>',
            "array of a bias: missing; must name an array of the sensor",
        ),
        ("sensor", '<fault kind="bias" start="1" array="field"/>', "value of a bias: missing; must be one number, or"),
        (
            "sensor",
            '<fault kind="stuck" start="1" array="field"/>',
            "array of a stuck: field; must be absent; only bias",
        ),
        ("sensor", '<fault kind="stuck" start="1">1 2</fault>', "value of a stuck: 1 2; must be absent; only bias"),
        ("sensor", "<dropout_rate>1</dropout_rate>", "dropout_rate and dropout_duration: 1 and 0; must both be 0 or"),
        ("sensor", '<fault kind="stuck" start="1" period="2"/>', "only spikes have a period"),
        ("sensor", '<fault kind="lost_lock" start="1"/>', "kind of a fault: lost_lock; requires a DVL"),
        ("sensor", '<fault kind="stuck" start="1" begin="2"/>', "begin"),
        ("clock", '<fault kind="stuck" start="1">1</fault>', "must be step here"),
        ("clock", '<fault start="1">1</fault>', "<fault kind>: missing; must be step here"),
        ("clock", '<fault kind="step" start="1"/>', "<fault>: missing; must be a finite number"),
        (
            "clock",
            '<fault kind="step" start="1">1e30</fault>',
            "<fault> step of a clock (s): 1e+30; must be of absolute value below",
        ),
        ("sensor", '<fault start="1"/>', "kind of a fault: missing; must be one of dropout"),
        ("clock", '<fault kind="step" start="1">1 2</fault>', "must be a finite number"),
        ("clock", '<fault kind="step" start="1" array="field">1</fault>', "is allowed in a sensor's fault only"),
        ("world", '<fault kind="magnetic_anomaly" start="1">1</fault>', "must be 3 finite numbers"),
        ("world", '<fault kind="magnetic_anomaly" start="2" end="2">1 0 0</fault>', "must end after its start"),
    ],
)
def test_invalid_worlds(load_world: Callable[..., Any], of: str, text: str, problem: str) -> None:
    with pytest.raises(NavsenseError) as caught:
        load_world(**{of: text})
    assert problem in str(caught.value)
    assert "w.sdf:" in str(caught.value)


@pytest.mark.requirement("NOI-6")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing", "must be TOML"),
        (
            f"[[fault]]\nof = 'm::l::mag'\nkind = 'stuck'\nstart = {'9' * 400}",
            "times of a stuck (s): inf to inf; must be from a finite time, of at most 1e+12 s, to a later one",
        ),
        ("", "has no [[fault]]"),
        ("a = 1\n[[fault]]\n", "has a; must hold [[fault]] tables alone"),
        ("[[fault]]\nkind = 'stuck'", "fault 1: of: missing; must be a text"),
        ("[[fault]]\nof = 'm::l::mag'\nkind = 'stuck'\nstart = '1'", "fault 1: start: 1; must be a number"),
        ("[[fault]]\nof = 'm::l::mag'\nkind = 'stuck'\nbegin = 1", "fault 1: begin: 1; is unknown"),
        (
            "[[fault]]\nof = 'm::l::gam'\nkind = 'stuck'\nstart = 1",
            "must be one of world, m::l::mag, m::l::imu, m::l::c",
        ),
        ("[[fault]]\nof = 'm::l::c'\nkind = 'step'\nstart = 1", "fault 1: value: missing; must be 1 number"),
        ("[[fault]]\nof = 'm::l::c'\nkind = 'stuck'\nstart = 1\nvalue = 1", "fault 1: kind: stuck; must be step"),
        (
            "[[fault]]\nof = 'm::l::c'\nkind = 'step'\nstart = nan\nvalue = 1",
            "fault 1: times of a clock's step (s): nan to inf",
        ),
        (
            "[[fault]]\nof = 'm::l::mag'\nkind = 'bias'\nstart = 1\narray = 'field'\nvalue = ['a']",
            "must be a number or a",
        ),
    ],
)
def test_invalid_fault_files(load_world: Callable[..., Any], tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "faults.toml").write_text(text)
    with pytest.raises((SimulationError, UnknownNameError)) as caught:
        with_faults(load_world(), tmp_path / "faults.toml")
    assert problem in str(caught.value)
    assert "faults.toml" in str(caught.value)
    with pytest.raises(SimulationError, match="does not exist; must be a file of TOML; check the path"):
        with_faults(load_world(), tmp_path / "none.toml")
