"""The types in recordings: tags for every class, all fields, stored topics, and files of other versions."""

from __future__ import annotations

import ast
import dataclasses
import enum
import json
import re
import sqlite3
import typing
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import navsense as ns
from navsense import recordings
from navsense.cli import cli
from navsense.clock import Clock, Latency
from navsense.clock.oscillator import Oscillator
from navsense.core.errors import DamagedError, RecordingError
from navsense.core.geodesy import Origin
from navsense.core.readings import ARRAY_GROUPS
from navsense.environment.magnetic import Anomaly
from navsense.environment.signal import Signal
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.recordings import type_tags
from navsense.recordings.convert import convert
from navsense.recordings.dataset import Dataset, collect
from navsense.recordings.message_recordings import open_messages
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.recordings.summary import read_summary
from navsense.recordings.topic_names import TopicNames, allocate_topics
from navsense.recordings.type_tags import StoredType, UnknownTypeError, from_json, register_type, to_json
from navsense.recordings.world_json import world_from_json, world_to_json
from navsense.sensors import SENSORS, Imu
from navsense.sensors.base import OpaqueSensor
from navsense.testing import example_world
from navsense.world import CurrentTopic, World

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
RECORDINGS = Path(ns.__file__).parent / "recordings"
ROOTS = (*SENSORS, Clock, Latency, Anomaly, Water, Origin, Faults, CurrentTopic)

ALL = ("a.mcap", "a.gz.mcap", "a.bag", "b.db3", "a.npz", "a.parquet", "t.csv", "e.euroc")
"""One recording of each format."""

READ = tuple(name for name in ALL if name not in ("a.gz.mcap", "e.euroc"))
"""Formats that restore all readings."""


def make_world() -> World:
    """Return a world with every type of sensor, a clock and faults."""
    world = example_world(*((kind.type, kind.example_spec()) for kind in SENSORS))
    imu, *others = world.sensors
    faults = Faults(scheduled=(ScheduledFault("bias", 0.1, 0.2, "angular_velocity", (0.0, 0.0, 0.01)),))
    return replace(world, sensors=(replace(imu, faults=faults, latency=Latency(0.01, 0.02)), *others))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recording of each format."""
    folder = tmp_path_factory.mktemp("types")
    ns.record(make_world(), [folder / name for name in ALL], 0.5, seed=4, epoch=1_800_000_000)
    return folder


def list_reachable_types(kind: Any, found: set[type]) -> set[type]:
    """Return the dataclasses and enumerations in a type hint, and those of their fields."""
    for argument in typing.get_args(kind):
        list_reachable_types(argument, found)
    is_stored = isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum))
    if is_stored and kind not in found:
        found.add(kind)
        hints = typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        for name in {field.name for field in dataclasses.fields(kind)} - {"where"} if hints else ():
            list_reachable_types(hints[name], found)
    return found


@pytest.mark.requirement("FIL-1")
def test_every_spec_class_has_a_tag() -> None:
    found: set[type] = set()
    for kind in ROOTS:
        list_reachable_types(kind, found)
    types = {tag: stored.kind for tag, stored in type_tags.TYPES.items()}
    assert found <= set(types.values())
    assert all(types[kind.type] is kind for kind in SENSORS)
    ours = [tag for tag, kind in types.items() if kind.__module__.startswith("navsense.")]
    assert len(ours) > len(SENSORS)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", tag) for tag in ours)  # examples of docstrings register others


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("kind", SENSORS, ids=lambda kind: kind.type)
def test_spec_is_read_back_with_every_field(kind: Any) -> None:
    for spec in (kind(), kind.example_spec()):
        text = json.dumps(to_json(spec), allow_nan=False)
        assert from_json(json.loads(text)) == spec

        def check(value: Any) -> None:
            if isinstance(value, dict) and "type" in value and "value" not in value:
                stored = type_tags.TYPES[value["type"]]
                assert set(value) == {"type", *stored.list_field_keys().values()}
                assert len(value) == 1 + len(dataclasses.fields(stored.kind)) - len(stored.omitted)
            for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                check(one)

        check(json.loads(text))


@dataclass(frozen=True)
class Drift:
    """A class of another package, as its first version has it."""

    rate: float
    period: float = 60.0


@dataclass(frozen=True)
class LaterDrift:
    """The same class in a later version: another default, a renamed field, a new one with a default."""

    slope: float
    period: float = 3600.0
    phase: float = 0.7


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> dict[str, StoredType]:
    """Return the table of types. The test may change it."""
    monkeypatch.setattr(type_tags, "TYPES", dict(type_tags.TYPES))
    return type_tags.TYPES


@pytest.mark.requirement("FIL-1")
def test_new_class_version_reads_old_files(types: dict[str, StoredType]) -> None:
    register_type(Drift, "drift")
    written = to_json(Drift(2.0))
    assert written == {"type": "drift", "rate": 2.0, "period": 60.0}
    types["drift"] = StoredType(LaterDrift, keys={"slope": "rate"}, absent={"phase": 0.0})
    assert from_json(written) == LaterDrift(2.0, 60.0, 0.0), "no default of the later class"
    types["drift"] = StoredType(LaterDrift, keys={"slope": "rate"})
    with pytest.raises(UnknownTypeError, match="type 'drift' has no field 'phase'"):
        from_json(written)
    types["drift"] = StoredType(Drift)
    with pytest.raises(UnknownTypeError, match="type 'drift' has the unknown field 'phase'"):
        from_json({**written, "phase": 0.0})


@pytest.mark.requirement("FIL-1")
def test_tags_of_other_packages_are_read(types: dict[str, StoredType]) -> None:
    with pytest.raises(TypeError, match="Drift has no type tag"):
        to_json(Drift(1.0))
    with pytest.raises(ValueError, match="type tag 'imu' of Drift: must be a new name"):
        register_type(Drift, "imu")
    with pytest.raises(ValueError, match="int is no dataclass and no enumeration"):
        register_type(int, "integer")
    register_type(Imu)
    assert types["imu"].kind is Imu

    @dataclass(frozen=True)
    class Typed:
        type: str = "x"

    with pytest.raises(ValueError, match="Typed has a field 'type'"):
        register_type(Typed, "typed")
    register_type(Typed, "typed", keys={"type": "kind"})
    assert from_json(to_json(Typed())) == Typed()


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("wrong", [{}, {"type": 3}, {"float": "much"}, {"float": None}])
def test_invalid_value_is_a_damaged_file(wrong: object) -> None:
    with pytest.raises(DamagedError, match=r"^damaged: "):
        from_json(wrong)


def read_contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a recording with their bytes, decompressed where the world is."""
    if path.is_dir():
        for one in sorted(path.rglob("*")):
            if one.is_file():
                yield from read_contents(one)
        return
    yield path.name, path.read_bytes()
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, archive.read(name).replace(b"\0", b"")
    if path.suffix == ".db3":
        with sqlite3.connect(path) as base:
            for (data,) in base.execute("select data from messages"):
                yield "message", data


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("name", ALL)
def test_no_python_name_is_written(folder: Path, name: str) -> None:
    """Neither a module nor a class name is a text of the file."""
    modules = {
        "/".join(one.relative_to(RECORDINGS.parent).with_suffix("").parts) for one in RECORDINGS.parent.rglob("*.py")
    }
    dotted = [f"navsense.{module.replace('/', '.')}".encode() for module in modules]
    classes = [f'"{stored.kind.__qualname__}"'.encode() for stored in type_tags.TYPES.values()]
    has_noise = False
    for inner, data in read_contents(recordings.get_storage_path(folder / name)):
        plain = data.replace(b'\\"', b'"')
        found = [one for one in dotted if re.search(re.escape(one) + rb"(?![\w.])", plain)]
        # Names of metadata records and files that users see.
        assert [item for item in found if item != b"navsense.world"] == [], inner
        assert [cls for cls in classes if cls in plain] == [], inner
        has_noise = has_noise or b'"type": "noise"' in plain
    assert has_noise, "the world is in one of the files"


@pytest.mark.requirement("FIL-1")
def test_no_writer_uses_a_class_or_module_name() -> None:
    for file in RECORDINGS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("__module__", "__qualname__"), f"{file.name}:{node.lineno}"


def read_stored_world(path: Path) -> dict[str, Any]:
    """Return the JSON of the world in a recording."""
    if path.suffix in (".mcap", ".bag", ".db3"):
        with open_messages(path) as source:
            found: dict[str, Any] = json.loads(source.metadata["layout"])
            return found
    if path.suffix == ".euroc":
        return dict(json.loads((path.with_suffix("") / "navsense.json").read_text())["layout"])
    return dict(ns.open(path).metadata["layout"])


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("name", ALL)
def test_every_format_stores_the_same_world(folder: Path, name: str) -> None:
    assert read_stored_world(folder / name) == json.loads(json.dumps(world_to_json(make_world())))


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("name", [one for one in READ if not one.startswith(("a.npz", "a.parquet", "t.csv"))])
def test_stored_topics_are_not_reallocated(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ns.open(folder / name)

    def fails(*_args: object, **_kwargs: object) -> TopicNames:
        raise AssertionError("a reader allocates topics")

    monkeypatch.setattr("navsense.recordings.reading_assembler.allocate_topics", fails)
    monkeypatch.setattr("navsense.messages.format_companion_topic", lambda topic, beside: f"{topic}/other{beside}")
    monkeypatch.setattr("navsense.recordings.topic_names.format_topic_name", lambda name: name.replace("::", "-"))
    with open_messages(folder / name) as source:
        reader = ReadingAssembler(source)
        found = collect(reader.iter_slices())
    assert reader.topic_notes == []
    assert found[0].keys() == before.readings.keys()
    assert found[1].keys() == before.truth.keys()
    for sensor, reading in found[0].items():
        for group in ARRAY_GROUPS:
            ours, theirs = getattr(reading, group), getattr(before[sensor], group)
            assert ours.keys() == theirs.keys()
            assert all(np.array_equal(ours[key], theirs[key], equal_nan=True) for key in ours)


@pytest.mark.requirement("FIL-1", "REC-1:convert")
@pytest.mark.parametrize("name", ["a.mcap", "a.npz"])
def test_conversion_keeps_topics(folder: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes recordings of versions with other topic names."""
    monkeypatch.setattr("navsense.recordings.topic_names.format_topic_name", lambda name: name.replace("::", "-"))
    monkeypatch.setattr(
        "navsense.recordings.topic_names.format_companion_topic", lambda topic, beside: f"{topic}/other{beside}"
    )
    convert(folder / name, tmp_path / "b.mcap", epoch=1_900_000_000)
    names = {(entry.name, entry.type) for entry in read_summary(folder / "a.mcap").entries}
    assert {(entry.name, entry.type) for entry in read_summary(tmp_path / "b.mcap").entries} == names


def test_topics_are_unique_and_stored_topics_are_kept() -> None:
    world = make_world()
    first = allocate_topics(world)
    assert len(set(first.topics.values())) == len(first.topics)
    imu = world.sensors[0].name
    renamed = TopicNames({**first.topics, (imu, "measured", ""): "/gyro"})
    again = allocate_topics(world, renamed)
    assert again.topics == renamed.topics
    added = allocate_topics(replace(world, sensors=(*world.sensors, replace(world.sensors[0], name="robot::arm::two"))))
    assert {key: added.topics[key] for key in first.topics} == first.topics
    plain = allocate_topics(world, has_simulated_series=False)
    assert {key[1] for key in plain.topics if len(key) == 3} == {"measured"}
    assert not [key for key in plain.topics if len(key) == 2]


def check_same(ours: Dataset, theirs: Dataset) -> None:
    """Assert that two recordings have the same readings and truth."""
    assert ours.readings.keys() == theirs.readings.keys()
    assert ours.truth.keys() == theirs.truth.keys()
    for name, reading in theirs.items():
        assert ours[name].unit == reading.unit
        assert np.array_equal(ours[name].time, reading.time), name
        assert np.array_equal(ours[name].stamp, reading.stamp), name
        for group in ARRAY_GROUPS:
            left, right = getattr(ours[name], group), getattr(reading, group)
            assert left.keys() == right.keys(), (name, group)
            assert all(np.array_equal(left[key], right[key], equal_nan=True) for key in left), (name, group)


def run_command(*command: object) -> str:
    """Return the output of a command; its exit code must be 0."""
    result = CliRunner().invoke(cli, [str(word) for word in command], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


UNKNOWN: dict[str, int] = {
    "imu": 1,
    "dvl": 1,
    "water_mass_layer": 1,
    "range": 1,
    "adcp": 1,
    "navsat": 1,
    "latency": 0,
    "noise": sum('"noise"' in json.dumps(to_json(kind.example_spec())) for kind in SENSORS),
    "scheduled_fault": 0,
    "water": 0,
}
"""A type of a later version -> number of sensors without a spec."""


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("tag", UNKNOWN)
def test_type_of_a_later_version_is_noted(folder: Path, tmp_path: Path, tag: str, types: dict[str, StoredType]) -> None:
    """Every command continues with one note. Arrays, units, topics and the specs of other sensors are kept."""
    messages, arrays = ns.open(folder / "a.mcap"), ns.open(folder / "a.npz")
    (tmp_path / "cut.mcap").write_bytes((folder / "a.mcap").read_bytes()[:-200])
    stored = types.pop(tag)
    for command in (
        ("info", folder / "a.mcap"),
        ("info", folder / "a.npz"),
        ("convert", folder / "a.mcap", tmp_path / "b.npz"),
        ("convert", folder / "a.npz", tmp_path / "c.mcap"),
        ("convert", folder / "a.mcap", tmp_path / "d.bag"),
        ("report", folder / "a.mcap", "-o", tmp_path / "r.html"),
        ("recover", tmp_path / "cut.mcap"),
    ):
        printed = run_command(*command)
        found = (tmp_path / "r.html").read_text() if command[0] == "report" else printed
        assert found.count("some values of its world cannot be read: unknown type") == 1, command
        assert "update navsense, or install the package that defines the type" in found
    opaque = [
        sensor.name
        for sensor in ns.open(folder / "a.npz").recorded_world.world.sensors
        if isinstance(sensor.spec, OpaqueSensor)
    ]
    assert len(opaque) == UNKNOWN[tag]
    if tag not in TIMES:
        check_same(ns.open(folder / "a.mcap"), messages)
    check_same(ns.open(tmp_path / "b.npz"), ns.open(folder / "a.mcap"))
    again = ns.open(tmp_path / "c.mcap")
    assert {name: set(one.arrays) for name, one in again.items()} == {k: set(one.arrays) for k, one in arrays.items()}
    if opaque:
        kept = {one["name"]: one["spec"] for one in read_stored_world(tmp_path / "c.mcap")["sensors"]}
        types[tag] = stored
        assert kept == {sensor.name: to_json(sensor.spec) for sensor in make_world().sensors}, (
            "a conversion loses no specification"
        )


TIMES = ("latency", "scheduled_fault")
"""Types that are needed to restore all times or fault flags."""


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("name", READ)
def test_sensor_of_another_package_is_read_if_installed(
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    types: dict[str, StoredType],
    load_example: Callable[[str], ModuleType],
) -> None:
    """The tag of a sensor is its type. Without its package, the arrays are read with a note."""
    kind = load_example("thermometer").Thermometer
    world = example_world(("thermometer", kind.example_spec()), ("imu", Imu.example_spec()))
    ns.record(world, tmp_path / name, 0.5, epoch=1_800_000_000)
    found = ns.open(tmp_path / name)
    assert found["thermometer"].unit == {"temperature": "K"}
    (note,) = read_summary(tmp_path / name).notes
    assert "unknown type 'thermometer' (sensor robot::arm::thermometer)" in note
    assert run_command("info", tmp_path / name).count("note: ") == 1
    run_command("report", tmp_path / name, "-o", tmp_path / "r.html")
    printed = run_command("convert", tmp_path / name, tmp_path / "b.npz")
    assert printed.count("note: ") == 1
    with monkeypatch.context() as patch:
        plugin = SimpleNamespace(load=lambda: kind)
        patch.setattr(type_tags, "entry_points", lambda group, name: [plugin] if name == kind.type else [])
        check_typed(tmp_path / "b.npz", world)
    del types[kind.type]
    assert ns.open(tmp_path / "b.npz").recorded_world.notes
    register_type(kind)
    check_typed(tmp_path / "b.npz", world)


def check_typed(path: Path, made: World) -> None:
    """Assert that a recording gives back the specifications of a world, without a note."""
    found = ns.open(path).recorded_world
    assert found.notes == ()
    assert [sensor.spec for sensor in found.world.sensors] == [sensor.spec for sensor in made.sensors]


@pytest.mark.requirement("FIL-1")
def test_import_error_of_a_package_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, types: dict[str, Any]
) -> None:
    def fails() -> type:
        raise RuntimeError("no such library")

    del types["imu"]
    entry = SimpleNamespace(name="imu", load=fails, dist=SimpleNamespace(name="gyros"), value="gyros:Imu")
    monkeypatch.setattr(type_tags, "entry_points", lambda group, name: [entry])
    (note,) = read_summary(folder / "a.mcap").notes
    assert "type 'imu' cannot be imported: sensor 'imu' of package gyros: no such library" in note
    assert "repair or remove gyros" in note


@pytest.mark.requirement("FIL-1")
@pytest.mark.parametrize("version", [None, 1, 3])
def test_world_of_a_later_format_is_noted(folder: Path, tmp_path: Path, version: int | None) -> None:
    """Arrays and messages are read by their own metadata, with one note."""
    note = f"its world is stored in format {version or 1}, and this version of navsense reads format 2"
    with np.load(folder / "a.npz") as archive:
        arrays = dict(archive)
    about = json.loads(str(arrays["meta"]))
    layout = {key: value for key, value in about["layout"].items() if key != "format"}
    layout |= {} if version is None else {"format": version}
    old = json.dumps({**about, "layout": layout})
    np.savez(tmp_path / "a.npz", **{**arrays, "meta": np.array(old)})
    for command in ("info", "convert", "report"):
        out = {"info": (), "convert": (tmp_path / "b.mcap",), "report": ("-o", tmp_path / "r.html")}[command]
        printed = run_command(command, tmp_path / "a.npz", *out)
        assert ((tmp_path / "r.html").read_text() if command == "report" else printed).count(note) == 1
    with open_messages(folder / "a.mcap") as source:
        source.metadata["layout"] = json.dumps(layout)
        reader = ReadingAssembler(source)
        readings = collect(reader.iter_slices())[0]
    assert [one.startswith(note) for one in reader.recorded_world.notes] == [True]
    assert "angular_velocity" in next(iter(readings.values())).arrays


@pytest.mark.requirement("FIL-1")
def test_arrays_of_a_later_format_are_read(folder: Path, tmp_path: Path) -> None:
    with np.load(folder / "a.npz") as archive:
        arrays = dict(archive)
    about = {**json.loads(str(arrays["meta"])), "format": 3}
    np.savez(tmp_path / "a.npz", **{**arrays, "meta": np.array(json.dumps(about))})
    for command in ("info", "report"):
        with pytest.raises(RecordingError, match=r"its format is 3; this version of navsense reads format 2"):
            run_command(command, tmp_path / "a.npz")


@pytest.mark.requirement("FIL-1")
def test_example_in_the_documentation_has_the_keys_of_a_recording(folder: Path) -> None:
    text = (DOCS / "recordings.md").read_text(encoding="utf-8")
    (example,) = (json.loads(one) for one in re.findall(r"```json\n(.*?)```", text, re.DOTALL))
    found = read_stored_world(folder / "a.mcap")
    assert list(example) == list(found)
    assert list(example["models"][0]) == list(found["models"][0])
    assert list(example["sensors"][0]) == list(found["sensors"][0])
    assert world_from_json({**example, "sensors": []}) is not None


@pytest.mark.requirement("FIL-1")
def test_clock_temperature_signal_round_trips() -> None:
    clock = Clock("computer", oscillator=Oscillator(temperature=Signal((0.0, 9.0), (290.0, 300.0))))
    assert from_json(json.loads(json.dumps(to_json(clock)))) == clock


@pytest.mark.requirement("FIL-1")
def test_keys_of_later_versions_are_ignored() -> None:
    world = json.loads(json.dumps(world_to_json(make_world())))
    later = json.loads(json.dumps(world))
    for one in (later, later["models"][0], later["models"][0]["pose"], later["sensors"][0], later["topics"]):
        one["later"] = {"of": [3]}
    later["sensors"][0]["outputs"][0]["later"] = 3
    later["sensors"][0]["spec"]["later"] = 3
    found, expected = world_from_json(later), world_from_json(world)
    assert found is not None
    assert expected is not None
    (note,) = found.notes
    assert "type 'imu' has the unknown field 'later' (sensor robot::arm::imu)" in note
    assert found.world.sensors[1:] == expected.world.sensors[1:]
    assert found.world.sensors[0].spec.outputs == expected.world.sensors[0].spec.outputs
    assert found.topics is not None
    assert expected.topics is not None
    assert found.topics.topics == expected.topics.topics
