"""Device formats in recordings: their conventions equal vectors rotated by SciPy; files, ports and errors."""

from __future__ import annotations

import csv
import json
import math
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import recordings
from navsense.core.errors import RecordingError, Where
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose, from_rpy
from navsense.core.readings import Reading, TimeSlice, Truth
from navsense.core.typing import FloatArray
from navsense.devices import format_encoders, nmea, pd0, pd6, waterlinked
from navsense.devices.instrument_encoder import select_sensor
from navsense.environment.base import Environment
from navsense.environment.water import Water
from navsense.motion.trajectory import Trajectory
from navsense.recordings.info import RecordedRun
from navsense.recordings.summary import read_summary
from navsense.runner.outputs import open_output
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import Beams, BinMapping, CoordinateSystem, WaterMassLayer, make_janus_beams
from navsense.sensors.dvl import Dvl, TrackMode
from navsense.streams import tcp_server
from navsense.streams.device_port import DevicePublisher
from navsense.world import Link, Model, MountedSensor, World

EPOCH, COUNT, RATE = 1767225600, 8, 4.0
NAME, LINK = "rov::base::dvl", "rov::base"
X_SHAPE, PLUS = (-135.0, 135.0, 45.0, -45.0), (0.0, 90.0, 180.0, 270.0)
TWENTY = math.radians(20.0)


def make_beams(azimuths: tuple[float, ...] = X_SHAPE, *, up: bool = False, angle: float = TWENTY) -> Beams:
    return make_janus_beams(angle, [math.radians(a) for a in azimuths], down=(0.0, 0.0, 1.0 if up else -1.0))


def make_world(
    *specs: Any, pose: Pose = Pose(), heading: float = 0.0, names: tuple[str, ...] = ("dvl", "second")
) -> World:
    """Return a robot with these instruments in water of 10 degrees; `heading` (rad) is from east to its x axis."""
    sensors = tuple(
        MountedSensor(f"{LINK}::{name}", spec, "rov", LINK, RATE, pose)
        for name, spec in zip(names, specs, strict=False)
    )
    model = Model("rov", (Link(LINK),), LINK)
    around = Environment(water=Water(surface=1.0), origin=Origin(0.5, 0.1, 0.0, heading))
    return World("sea", (model,), sensors, environment=around)


class Dive:
    """A vehicle with constant yaw, pitch and roll rates, and the readings of a DVL without errors."""

    def __init__(self, where: World, seed: int = 3, *, up: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.world, self.sensor = where, where.sensors[0]
        self.time = np.arange(COUNT) / RATE + 0.25
        self.about = self.time - 0.031
        self.start = Rotation.from_rotvec(rng.uniform(-0.4, 0.4, 3)) * Rotation.from_euler("z", rng.uniform(-3, 3))
        self.rate_b = rng.uniform(-0.3, 0.3, 3)
        self.velocity_w = rng.uniform(-2.0, 2.0, 3)
        self.water_w = self.velocity_w - rng.uniform(-0.5, 0.5, 3)
        self.place = np.array((3.0, -4.0, -20.0))
        self.slant = rng.uniform(20.0, 30.0, (COUNT, 4))
        self.mounting = Rotation.from_quat(np.roll(self.sensor.pose.rotation, -1))
        self.east = Rotation.from_euler("z", where.environment.heading)

    def attitude(self, at: FloatArray) -> Rotation:
        """Return the rotation from link to world."""
        return self.start * Rotation.from_rotvec(at[:, None] * self.rate_b)

    @property
    def earth(self) -> FloatArray:
        return np.tile(self.east.apply(self.velocity_w), (COUNT, 1))

    def in_sensor(self, vector_w: FloatArray) -> FloatArray:
        return (self.attitude(self.about) * self.mounting).inv().apply(np.tile(vector_w, (COUNT, 1)))

    def arrays(self) -> dict[str, Any]:
        spec = self.sensor.spec
        assert isinstance(spec, Dvl)
        rotation = Rotation.from_quat(np.roll(spec.reference, -1))
        own, through = self.in_sensor(self.velocity_w), self.in_sensor(self.water_w)
        return {
            "velocity": rotation.apply(own),
            "velocity_covariance": np.tile(np.diag((4e-4, 4e-4, 1e-4)), (COUNT, 1, 1)),
            "water_velocity": rotation.apply(through),
            "water_velocity_covariance": np.tile(np.eye(3) * 1e-3, (COUNT, 1, 1)),
            "altitude": np.full(COUNT, 22.5),
            "beam_range": self.slant.copy(),
            "beam_velocity": own @ spec.beams.axes.T,
            "water_beam_velocity": through @ spec.beams.axes.T,
            "velocity_mode": np.ones(COUNT),
            "time_of_validity": self.about.copy(),
            "sound_speed": np.full(COUNT, 1490.0),
        }

    def reading(self, **changes: Any) -> Reading:
        flags = np.ones(COUNT, dtype=np.bool_)
        off = np.full(COUNT, 0.125)
        arguments: dict[str, Any] = {"arrays": self.arrays(), "valid": flags, "emitted": flags} | changes
        arguments |= {
            "name": self.sensor.name,
            "type": self.sensor.spec.type,
            "frame": "dvl",
            "unit": {},
            "time": self.time,
        }
        return Reading(clock_error=off, ideal={}, bias={}, epoch=EPOCH, **arguments)

    def truth(self, rate: float = 50.0) -> Truth:
        t = np.arange(int(3.0 * rate)) / rate
        quaternion = np.roll(self.attitude(t).as_quat(), 1, axis=1)
        still = np.zeros((t.size, 3))
        # Constant position: the depth is known.
        return Truth(LINK, t, np.tile(self.place, (t.size, 1)), quaternion, still, still + self.rate_b, still, still)

    def make_slices(self, cuts: tuple[float, ...] = (), **changes: Any) -> list[TimeSlice]:
        part, true = self.reading(**changes), self.truth()
        found = []
        for start, end in zip((0.0, *cuts), (*cuts, 3.0), strict=True):
            rows = np.searchsorted(part.time, (start, end))
            ticks = np.searchsorted(true.time, (start, end))
            readings = {part.name: part.select_rows(*rows)} if rows[0] < rows[1] else {}
            found.append(TimeSlice(start, end, readings, {LINK: true.select_rows(*ticks)}))
        return found


def record_log(dive: Dive, path: Path, cuts: tuple[float, ...] = (), **changes: Any) -> bytes:
    with recordings.open_writer(path, RecordedRun(dive.world, EPOCH, duration=3.0)) as writer:
        for time_slice in dive.make_slices(cuts, **changes):
            writer.write(time_slice)
    return path.read_bytes()


def decode_ensembles(data: bytes) -> dict[str, Any]:
    found = pd0.decode(data)
    assert not found.skipped
    assert len(found.blocks) == 1
    return dict(found.blocks[0].arrays)


def make_earth_rotation(arrays: dict[str, Any], *, up: bool = False) -> Rotation:
    """Return RDI's rotation from the instrument to earth, from the attitude in the leader."""
    pitch, roll = arrays["pitch"], arrays["roll"]
    tilt = np.arctan(np.tan(pitch) * np.cos(roll))
    turns = np.stack((-arrays["heading"], tilt, roll + (math.pi if up else 0.0)), axis=1)
    return Rotation.from_euler("ZXY", turns)


def transform_to_rdi_axes(b: FloatArray, angle: float) -> FloatArray:
    """Return RDI's X, Y, Z of beams 1 to 4."""
    a, c = 0.5 / math.sin(angle), 0.25 / math.cos(angle)
    return np.stack((a * (b[:, 0] - b[:, 1]), a * (b[:, 3] - b[:, 2]), c * b.sum(axis=1)), axis=1)


def find_beam_order(columns: FloatArray, beams: FloatArray) -> list[int]:
    """Return the beam of the instrument for each column."""
    off = np.abs(columns[:, :, None] - beams[:, None, :]).max(axis=0)
    assert off.min(axis=1).max() < 0.51e-3
    return [int(k) for k in off.argmin(axis=1)]


POSES = (Pose(), Pose((0.5, 0.2, -0.3), from_rpy(0.05, -0.1, 0.6)))


@pytest.mark.requirement("REC-1:devices")
@pytest.mark.parametrize("azimuths", [X_SHAPE, PLUS, (30.0, 120.0, 210.0, 300.0)], ids=["x", "plus", "30"])
@pytest.mark.parametrize("up", [False, True], ids=["down", "up"])
def test_pd0_is_equivalent_in_all_coordinates(tmp_path: Path, azimuths: tuple[float, ...], up: bool) -> None:
    spec = Dvl(beams=make_beams(azimuths, up=up), reference=from_rpy(0.1, 0.2, 0.3))
    dive = Dive(make_world(spec, pose=POSES[1], heading=0.7))
    decoded = {
        f: decode_ensembles(record_log(dive, tmp_path / f"a.{f}.pd0")) for f in ("beam", "instrument", "ship", "earth")
    }
    assert [int(decoded[f]["coordinates"][0]) >> 3 for f in decoded] == [0, 1, 2, 3]
    expected, step = -dive.earth, 1.5e-3
    assert np.abs(decoded["earth"]["bottom_velocity"][:, :3] - expected).max() < 0.51e-3
    assert np.abs(decoded["earth"]["bottom_velocity"][:, 3]).max() < 0.51e-3
    # The attitude has steps of 0.01 degrees: 0.2 mm/s of 2 m/s each.
    beam = transform_to_rdi_axes(decoded["beam"]["bottom_velocity"], TWENTY)
    assert np.abs(make_earth_rotation(decoded["beam"], up=up).apply(beam) - expected).max() < 2.0 * step
    own = decoded["instrument"]["bottom_velocity"][:, :3]
    assert np.abs(make_earth_rotation(decoded["instrument"], up=up).apply(own) - expected).max() < step
    assert np.abs(own - beam).max() < 2.0 * step
    level = make_earth_rotation(decoded["ship"] | {"pitch": np.zeros(COUNT), "roll": np.zeros(COUNT)})
    assert np.abs(level.apply(decoded["ship"]["bottom_velocity"][:, :3]) - expected).max() < step
    # The heading is that of the vehicle in ship and earth coordinates, else that of the instrument.
    ahead = (dive.east * dive.attitude(dive.about)).apply((1.0, 0.0, 0.0))
    for frame in ("ship", "earth"):
        assert np.abs(make_earth_rotation(decoded[frame]).apply((0.0, 1.0, 0.0)) - ahead).max() < 3e-4
    order = find_beam_order(decoded["beam"]["bottom_velocity"], dive.arrays()["beam_velocity"])
    looks = (dive.east * dive.attitude(dive.about) * dive.mounting).apply(spec.beams.axes[order[2]])
    u3 = (0.0, math.sin(TWENTY), -math.cos(TWENTY))
    assert np.abs(make_earth_rotation(decoded["beam"], up=up).apply(u3) - looks).max() < 5e-4
    assert decoded["earth"]["bottom_range"] == pytest.approx(dive.slant[:, order] * math.cos(TWENTY), abs=0.00501)
    assert (decoded["beam"]["system"][0] >> 7 & 1) == up


def test_leader_fields_have_the_values_of_the_spec(tmp_path: Path) -> None:
    spec = Dvl(beams=make_beams(), maximum_range=90.0, water_mode=TrackMode.ALWAYS, layer=WaterMassLayer(2.0, 8.0))
    dive = Dive(make_world(spec, pose=Pose((0.5, 0.2, -0.3))))
    arrays = decode_ensembles(record_log(dive, tmp_path / "a.pd0"))
    assert arrays["ensemble_number"].tolist() == list(range(1, COUNT + 1))
    stamp = np.rint((EPOCH + dive.about + 0.125) * 100.0).astype(np.int64) * 10_000_000
    assert pd0.decode_stamps(arrays).tolist() == stamp.tolist()
    height = dive.place[2] + dive.attitude(dive.about).apply(dive.sensor.pose.position)[:, 2]
    assert np.abs(arrays["depth"] - (1.0 - height)).max() <= 0.0501
    assert set(arrays["temperature"]) == {283.15}
    assert set(arrays["salinity"]) == {35}
    assert set(arrays["sound_speed"]) == {1490}
    assert arrays["pressure"] / 1e4 == pytest.approx(1.0 - height, rel=0.02, abs=0.0)
    assert np.degrees(arrays["heading_alignment"]) == pytest.approx(45.0, rel=1e-12, abs=0.0)
    water = np.tile(dive.east.apply(dive.water_w), (COUNT, 1))
    assert np.abs(arrays["layer_velocity"][:, :3] + water).max() < 0.51e-3
    assert (arrays["layer_near"][0], arrays["layer_far"][0]) == (2.0, 8.0)
    assert set(arrays["simulated"]) == {1}


def test_unknown_values_are_the_bad_value_marker(tmp_path: Path) -> None:
    """Rows: three beams, two beams without velocity, too fast, water track only, dropped, valid."""
    dive = Dive(make_world(Dvl(beams=make_beams())))
    arrays, emitted = dive.arrays(), np.ones(COUNT, dtype=np.bool_)
    arrays["beam_velocity"][0, 0] = arrays["beam_range"][0, 0] = math.nan
    arrays["beam_velocity"][1, :2] = math.nan
    for name in ("velocity", "velocity_covariance"):
        arrays[name][1] = math.nan
    arrays["velocity_mode"][1] = 0.0
    arrays["velocity"][2] *= 1000.0
    arrays["velocity_mode"][3] = 2.0
    emitted[4] = False
    arrays["time_of_validity"][4] = math.nan
    decoded = decode_ensembles(record_log(dive, tmp_path / "a.pd0", arrays=arrays, emitted=emitted))
    assert decoded["ensemble_number"].tolist() == list(range(1, COUNT))
    velocity, good = decoded["bottom_velocity"], decoded["bottom_percent_good"]
    assert np.isnan(velocity).sum(axis=1).tolist()[:4] == [1, 4, 3, 4]
    assert np.abs(velocity[0, :3] + dive.earth[0]).max() < 0.51e-3
    assert good[:2].tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    assert np.isnan(decoded["bottom_range"]).sum(axis=1).tolist() == [1, *[0] * (COUNT - 2)]
    assert not np.isnan(velocity[4:]).any()
    lines, skipped = pd6.decode(record_log(dive, tmp_path / "a.pd6", arrays=arrays, emitted=emitted))
    assert skipped == 0
    assert np.isnan(lines["bottom_earth"][:, 0]).tolist() == [False, True, True, True, *[False] * 3]
    reports, skipped = waterlinked.decode(record_log(dive, tmp_path / "a.wl.json", arrays=arrays, emitted=emitted))
    assert skipped == 0
    assert reports["is_water"].tolist() == [False, True, False, True, *[False] * 3]
    assert np.isnan(reports["transducer_velocity"]).sum(axis=1).tolist()[0] == 1


@pytest.mark.requirement("REC-1:devices")
def test_percent_good_has_the_outcome_of_each_track(tmp_path: Path) -> None:
    """Rows: both tracks reported, bottom rejected, water not reported, bottom not reported; then the first again."""
    water = {"water_mode": TrackMode.BEST, "bottom_mode": TrackMode.BEST, "layer": WaterMassLayer(2.0, 8.0)}
    dive = Dive(make_world(Dvl(beams=make_beams(), error_velocity_limit=0.1, **water)))  # type: ignore[arg-type]
    arrays = dive.arrays()
    arrays["velocity_mode"][:4] = (1.0, 0.0, 1.0, 2.0)
    # An equal error of opposite beams gives an error velocity of 4 0.1 / (2 sqrt 2 sin 20 degrees) = 0.41 m/s.
    arrays["beam_velocity"][1] += 0.1 * np.array((1.0, -1.0, 1.0, -1.0))
    arrays["velocity"][1] = arrays["velocity_covariance"][1] = math.nan
    arrays["water_velocity"][1:3] = arrays["water_velocity_covariance"][1:3] = math.nan
    earth = decode_ensembles(record_log(dive, tmp_path / "a.pd0", arrays=arrays))
    beam = decode_ensembles(record_log(dive, tmp_path / "a.beam.pd0", arrays=arrays))
    four, rejected, not_reported = [0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [0.0] * 4
    assert earth["bottom_percent_good"][:5].tolist() == [four, rejected, four, not_reported, four]
    assert earth["layer_percent_good"][:5].tolist() == [four, not_reported, not_reported, four, four]
    assert np.isnan(earth["bottom_velocity"][:4]).all(axis=1).tolist() == [False, True, False, True]
    assert np.isnan(earth["layer_velocity"][:4]).all(axis=1).tolist() == [False, True, True, False]
    assert np.isfinite(beam["bottom_velocity"]).all()
    assert (beam["bottom_percent_good"] == 1.0).all()
    assert (beam["layer_percent_good"] == 1.0).all()
    lines, _ = pd6.decode(record_log(dive, tmp_path / "a.pd6", arrays=arrays))
    assert np.isnan(lines["bottom_instrument"][:4]).all(axis=1).tolist() == [False, True, False, True]


@pytest.mark.requirement("REC-1:devices")
def test_percent_good_of_the_bottom_equals_a_real_ensemble(tmp_path: Path) -> None:
    """In earth coordinates, percent good counts solutions; in beam coordinates, beams."""
    with (Path(__file__).parents[1] / "oracles" / "rdi" / "bottom_track.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        (real,) = csv.DictReader(file)
    decoded = decode_ensembles(record_log(Dive(make_world(Dvl(beams=make_beams()))), tmp_path / "a.pd0"))
    shares = [float(real[f"good{k}_percent"]) / 100.0 for k in range(1, 5)]
    assert all(float(real[f"range{k}_cm"]) > 0.0 for k in range(1, 5))
    assert int(real["coordinates"]) >> 3 == int(decoded["coordinates"][0]) >> 3
    assert decoded["bottom_percent_good"].tolist() == [shares] * COUNT


def test_three_beam_solution_equals_rdi(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams())))
    arrays = dive.arrays()
    arrays["beam_velocity"] += np.random.default_rng(1).normal(0.0, 0.05, (COUNT, 4))
    beam = decode_ensembles(record_log(dive, tmp_path / "a.beam.pd0", arrays=arrays))["bottom_velocity"]
    earth = decode_ensembles(record_log(dive, tmp_path / "a.pd0", arrays=arrays))["bottom_velocity"]
    error = 1.0 / (2.0 * math.sqrt(2.0) * math.sin(TWENTY)) * (beam[:, 0] + beam[:, 1] - beam[:, 2] - beam[:, 3])
    assert np.abs(earth[:, 3] - error).max() < 3e-3
    assert np.abs(error).max() > 0.05


@pytest.mark.requirement("REC-1:devices")
def test_pd6_has_vehicle_signs_and_distance_made_good(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams()), pose=POSES[1], heading=0.7))
    arrays, skipped = pd6.decode(record_log(dive, tmp_path / "a.pd6"))
    assert skipped == 0
    assert np.abs(arrays["bottom_earth"] - dive.earth).max() < 0.51e-3
    level = make_earth_rotation(arrays | {"pitch": np.zeros(COUNT), "roll": np.zeros(COUNT)})
    assert np.abs(level.apply(arrays["bottom_ship"]) - dive.earth).max() < 1.5e-3
    water = np.tile(dive.east.apply(dive.water_w), (COUNT, 1))
    assert np.abs(arrays["water_earth"] - water).max() < 0.51e-3
    way = dive.earth * (dive.about - dive.about[0])[:, None]
    assert np.abs(arrays["bottom_distance"] - way).max() < 0.0051
    assert set(arrays["bottom_range"]) == {22.5}
    pd0_own = decode_ensembles(record_log(dive, tmp_path / "a.instrument.pd0"))["bottom_velocity"][:, :3]
    assert np.abs(arrays["bottom_instrument"][:, :3] + pd0_own).max() < 1e-9
    assert (
        pd0.decode_stamps(decode_ensembles((tmp_path / "a.instrument.pd0").read_bytes())).tolist()
        == arrays["stamp"].tolist()
    )


@pytest.mark.requirement("REC-1:devices")
def test_water_linked_axes_are_forward_right_down(tmp_path: Path) -> None:
    spec = Dvl(beams=make_beams(angle=math.radians(22.5)), reference=from_rpy(0.3, 0.0, 0.2))
    dive = Dive(make_world(spec))
    raw = record_log(dive, tmp_path / "a.wl.json")
    arrays, skipped = waterlinked.decode(raw)
    own = dive.in_sensor(dive.velocity_w) * (1.0, -1.0, -1.0)
    assert skipped == 0
    assert np.abs(arrays["velocity"] - own).max() < 1e-12
    turn = Rotation.from_quat(np.roll(spec.reference, -1)).inv().as_matrix() * np.array([[1.0], [-1.0], [-1.0]])
    assert np.abs(arrays["covariance"] - turn @ np.diag((4e-4, 4e-4, 1e-4)) @ turn.T).max() < 1e-15
    assert arrays["stamp"].tolist() == (np.rint((EPOCH + dive.about + 0.125) * 1e6).astype(np.int64) * 1000).tolist()
    assert (
        arrays["transmission_stamp"].tolist()
        == (np.rint((EPOCH + dive.time + 0.125) * 1e6).astype(np.int64) * 1000).tolist()
    )
    assert arrays["elapsed"].tolist() == pytest.approx([0.0, *[0.25] * (COUNT - 1)], rel=1e-12, abs=0.0)
    azimuth, tilt = np.radians([135.0, -135.0, -45.0, 45.0]), math.radians(22.5)  # transducers 0 to 3 of an A50
    axes = np.stack(
        (math.sin(tilt) * np.cos(azimuth), math.sin(tilt) * np.sin(azimuth), np.full(4, math.cos(tilt))), axis=1
    )
    assert np.abs(arrays["transducer_velocity"] - own @ axes.T).max() < 1e-12
    first = json.loads(raw.splitlines()[0])
    assert first["fom"] == pytest.approx(0.02, rel=1e-12, abs=0.0)
    assert (first["type"], first["tracking_mode"], first["velocity_valid"]) == ("velocity", "bottom", True)


def test_nmea_velocity_is_level_and_in_knots(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams(), maximum_range=90.0)))
    arrays, skipped = nmea.decode(record_log(dive, tmp_path / "a.nmea"))
    heading = make_earth_rotation(decode_ensembles(record_log(dive, tmp_path / "a.pd0"))).apply((0.0, 1.0, 0.0))[:, :2]
    heading /= np.linalg.norm(heading, axis=1)[:, None]
    ahead = (dive.earth[:, :2] * heading).sum(axis=1)
    side = dive.earth[:, 0] * heading[:, 1] - dive.earth[:, 1] * heading[:, 0]
    assert skipped == 0
    assert np.abs(arrays["ground"] - np.stack((ahead, side), axis=1)).max() < 1e-3
    assert set(arrays["altitude"]) == {22.5}
    assert arrays["depth"] == pytest.approx(np.full(COUNT, 21.0), rel=1e-12, abs=0.0)
    assert set(arrays["max_range"]) == {90.0}


def make_adcp_reading(dive: Dive, spec: Adcp, cells: int) -> Reading:
    """Return the readings of an ADCP without errors, with one water velocity per cell."""
    flags = np.ones(COUNT, dtype=np.bool_)
    rng = np.random.default_rng(8)
    water = rng.uniform(-1.0, 1.0, (cells, 3))
    attitude = dive.east * dive.attitude(dive.about) * dive.mounting
    own = attitude * Rotation.from_quat(np.roll(spec.reference, -1)).inv()
    ahead = own.apply((1.0, 0.0, 0.0))
    level = Rotation.from_euler("z", np.arctan2(ahead[:, 1], ahead[:, 0])[:, None])
    axes = {
        CoordinateSystem.INSTRUMENT: own,
        CoordinateSystem.SHIP: level,
        CoordinateSystem.EARTH: Rotation.identity(COUNT),
    }
    vehicle = dive.earth
    past = water[None] - vehicle[:, None]
    rotation = axes.get(spec.coordinates)
    nothing = np.full((COUNT, cells, 3), math.nan)
    velocity = (
        nothing if rotation is None else np.stack([rotation.inv().apply(past[:, m]) for m in range(cells)], axis=1)
    )
    along = np.stack([-attitude.inv().apply(past[:, m]) @ spec.beams.axes.T for m in range(cells)], axis=1)
    bottom = np.full((COUNT, 3), math.nan) if rotation is None else rotation.inv().apply(vehicle)
    shape = (COUNT, cells, 4)
    arrays = {
        "velocity": velocity + bottom[:, None] if spec.motion_compensated else velocity,
        **({"relative_velocity": velocity} if spec.motion_compensated else {}),
        "beam_velocity": along,
        "error_velocity": rng.uniform(0.01, 0.02, shape[:2]),
        "percent_good": np.full(shape[:2], 0.75),
        "solutions": np.tile((0.25, 0.1, 0.15, 0.5), (*shape[:2], 1)),
        "beam_percent_good": np.full(shape, 0.5),
        "echo": rng.uniform(30.0, 90.0, shape),
        "correlation": rng.uniform(0.2, 1.0, shape),
        "bottom_range": dive.slant,
        "bottom_velocity": bottom,
        "bottom_beam_velocity": attitude.inv().apply(vehicle) @ spec.beams.axes.T,
        "bottom_percent_good": np.tile((1.0, 0.9, 0.8, 0.7), (COUNT, 1)),
        "bottom_solutions": np.tile((0.3, 0.0, 0.2, 0.5), (COUNT, 1)),
        "orientation": np.roll(own.as_quat(), 1, axis=1),
        "time_of_validity": dive.about,
        "sound_speed": np.full(COUNT, 1490.0),
    }
    arguments = {"valid": flags, "emitted": flags, "time": dive.time, "clock_error": np.zeros(COUNT), "epoch": EPOCH}
    names = {"name": dive.sensor.name, "type": "adcp", "frame": "adcp", "unit": {}}
    return Reading(arrays=arrays, ideal={}, bias={}, **names, **arguments)  # type: ignore[arg-type]


@pytest.mark.requirement("GAP-8", "REC-1:devices")
@pytest.mark.parametrize("coordinates", list(CoordinateSystem))
@pytest.mark.parametrize("facing", ["FLU", "FRD", "up"])
def test_profile_in_four_coordinate_frames(tmp_path: Path, coordinates: CoordinateSystem, facing: str) -> None:
    reference = {"FLU": (1.0, 0.0, 0.0, 0.0), "FRD": (0.0, 1.0, 0.0, 0.0), "up": from_rpy(0.0, 0.0, 0.2)}[facing]
    up, removes = facing == "up", coordinates is CoordinateSystem.EARTH
    spec = Adcp(beams=make_beams(up=up), coordinates=coordinates, reference=reference, motion_compensated=removes)
    spec = replace(spec, cells=replace(spec.cells, count=5), bin_mapping=BinMapping.NONE)
    dive = Dive(make_world(spec, heading=0.7))
    part, path = make_adcp_reading(dive, spec, 5), tmp_path / "a.pd0"
    with recordings.open_writer(path, RecordedRun(dive.world, EPOCH, duration=3.0)) as writer:
        writer.write(TimeSlice(0.0, 3.0, {part.name: part}, {LINK: dive.truth()}))
    decoded = decode_ensembles(path.read_bytes())
    water = np.random.default_rng(8).uniform(-1.0, 1.0, (5, 3))
    is_own = coordinates in (CoordinateSystem.BEAM, CoordinateSystem.INSTRUMENT)
    for m in range(5):
        velocity = decoded["velocity"][:, m]
        velocity = transform_to_rdi_axes(velocity, TWENTY) if coordinates is CoordinateSystem.BEAM else velocity[:, :3]
        if is_own:
            velocity = make_earth_rotation(decoded, up=up).apply(velocity)
        elif coordinates is CoordinateSystem.SHIP:
            velocity = make_earth_rotation(decoded | {"pitch": np.zeros(COUNT), "roll": np.zeros(COUNT)}).apply(
                velocity
            )
        assert np.abs(velocity - (water[m] - dive.earth)).max() < 4e-3
    bottom = decoded["bottom_velocity"]
    if coordinates is CoordinateSystem.EARTH:
        assert np.abs(bottom[:, :3] + dive.earth).max() < 0.51e-3
    assert decoded["cells"][0] == 5
    assert decoded["first_cell"][0] == pytest.approx(spec.cells.first_distance, abs=0.0051)
    order = find_beam_order(
        record_beam_ensembles(dive, part, tmp_path)["bottom_velocity"], part.arrays["bottom_beam_velocity"]
    )
    assert np.abs(decoded["echo"] - part.arrays["echo"][..., order]).max() <= 0.2251
    assert np.abs(decoded["correlation"] - part.arrays["correlation"][..., order]).max() <= 0.5001 / 255.0
    in_beams = coordinates is CoordinateSystem.BEAM
    assert decoded["percent_good"][0, 0] == pytest.approx(
        [0.5] * 4 if in_beams else [0.25, 0.1, 0.15, 0.5], rel=1e-12, abs=0.0
    )
    each = np.array((1.0, 0.9, 0.8, 0.7))[order]
    assert decoded["bottom_percent_good"][0] == pytest.approx(
        each if in_beams else [0.3, 0.0, 0.2, 0.5], rel=1e-12, abs=0.0
    )


def record_beam_ensembles(dive: Dive, part: Reading, folder: Path) -> dict[str, Any]:
    """Return the same ensembles in beam coordinates."""
    with recordings.open_writer(folder / "b.beam.pd0", RecordedRun(dive.world, EPOCH, duration=3.0)) as writer:
        writer.write(TimeSlice(0.0, 3.0, {part.name: part}, {LINK: dive.truth()}))
    return decode_ensembles((folder / "b.beam.pd0").read_bytes())


@pytest.mark.parametrize("suffix", ["pd0", "pd6", "wl.json", "nmea"])
def test_device_log_does_not_depend_on_block_size(tmp_path: Path, suffix: str) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams())))
    complete = record_log(dive, tmp_path / f"a.{suffix}")
    assert record_log(dive, tmp_path / f"b.{suffix}", (0.3, 0.31, 0.5, 0.51, 1.26, 2.4)) == complete
    summary = read_summary(tmp_path / f"a.{suffix}")
    assert summary.entries[0].count == COUNT
    assert "skipped" not in summary.metadata
    if suffix != "nmea":
        assert summary.start == pytest.approx((EPOCH + dive.about[0] + 0.125) * 1e9, abs=6e6)


def test_stuck_dvl_repeats_an_old_echo(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams())))
    arrays = dive.arrays()
    arrays["time_of_validity"][:] = dive.about[0]
    complete = record_log(dive, tmp_path / "a.pd0", arrays=arrays)
    assert record_log(dive, tmp_path / "b.pd0", (0.3, 0.505, 0.51, 1.507, 2.0), arrays=arrays) == complete
    assert len(set(pd0.decode_stamps(decode_ensembles(complete)))) == 1


def test_info_of_truncated_and_empty_logs(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams())))
    data = record_log(dive, tmp_path / "a.ship.pd0")
    (tmp_path / "cut.pd0").write_bytes(b"noise" + data[:-10])
    summary = read_summary(tmp_path / "cut.pd0")
    assert {entry.name: entry.count for entry in summary.entries} == dict.fromkeys(
        ("fixed leader", "variable leader", "bottom track"), COUNT - 1
    )
    assert (summary.format, summary.metadata["coordinates"]) == ("PD0", "ship")
    assert summary.metadata["skipped"] == f"{len(data) // COUNT - 5} bytes in 2 places"
    (tmp_path / "empty.pd6").write_bytes(b"")
    assert not read_summary(tmp_path / "empty.pd6").entries
    (tmp_path / "other.wl.json").write_bytes(b"{}")
    with pytest.raises(RecordingError, match=r"other\.wl\.json: bytes without a velocity report: 2"):
        read_summary(tmp_path / "other.wl.json")


def test_device_log_needs_one_doppler_instrument(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams()), Dvl(beams=make_beams(PLUS))))
    with pytest.raises(
        RecordingError, match=r"world has 2; must be one of rov::base::dvl, rov::base::second; write a\.SENSOR"
    ):
        recordings.open_writer(tmp_path / "a.pd0", RecordedRun(dive.world))
    assert len(record_log(dive, tmp_path / "a.dvl.pd0")) > 0
    assert len(record_log(dive, tmp_path / "a.2026.base::dvl.earth.pd0")) > 0
    assert len(record_log(dive, tmp_path / "a.second.wl.json")) == 0
    first, second = (
        replace(sensor, name=name)
        for sensor, name in zip(dive.world.sensors, ("rov::dvl", "fleet::rov::dvl"), strict=True)
    )
    nested = replace(dive.world, sensors=(first, second))
    for name, sensor in (("rov::dvl", first), ("fleet::rov::dvl", second)):
        assert select_sensor(nested, format_encoders.FORMATS[".pd0"], name, Where("a.pd0"), "a.SENSOR.pd0") is sensor
    with pytest.raises(RecordingError, match=r"sensor: dvl; is ambiguous: must be one of rov::dvl, fleet::rov::dvl"):
        select_sensor(nested, format_encoders.FORMATS[".pd0"], "dvl", Where("a.pd0"), "a.SENSOR.pd0")
    with pytest.raises(RecordingError, match="requires a DVL or ADCP"):
        recordings.open_writer(tmp_path / "a.pd0", RecordedRun(World("empty")))
    with pytest.raises(RecordingError, match="sensor: third; must be one of"):
        open_output("pd0+tcp://127.0.0.1:0?sensor=third&wait=0", RecordedRun(dive.world))


def test_unsupported_values_of_a_format(tmp_path: Path) -> None:
    flat = Dvl(beams=make_janus_beams(TWENTY, [0.0, 2.0, 4.0]))
    for suffix in ("pd0", "pd6", "wl.json"):
        with pytest.raises(RecordingError, match="requires four beams"):
            recordings.open_writer(tmp_path / f"a.{suffix}", RecordedRun(make_world(flat)))
        assert not (tmp_path / f"a.{suffix}").exists()
    recordings.open_writer(tmp_path / "a.nmea", RecordedRun(make_world(flat))).close()
    with pytest.raises(RecordingError, match="quarter turn"):
        recordings.open_writer(
            tmp_path / "b.pd0", RecordedRun(make_world(Dvl(beams=make_beams((0.0, 80.0, 180.0, 270.0)))))
        )
    with pytest.raises(RecordingError, match="PD0 holds whole degrees"):
        recordings.open_writer(
            tmp_path / "b.beam.pd0", RecordedRun(make_world(Dvl(beams=make_beams(angle=math.radians(22.5)))))
        )
    profiler = make_world(Adcp(beams=make_beams(), coordinates=CoordinateSystem.SHIP))
    with pytest.raises(RecordingError, match="must be ship or beam"):
        recordings.open_writer(tmp_path / "b.earth.pd0", RecordedRun(profiler))
    with pytest.raises(RecordingError, match="requires a DVL; the world has none"):
        recordings.open_writer(tmp_path / "b.wl.json", RecordedRun(profiler))


def test_unwritable_paths_are_errors(tmp_path: Path) -> None:
    dive = Dive(make_world(Dvl(beams=make_beams())))
    head = RecordedRun(dive.world, EPOCH, duration=3.0)
    with pytest.raises(RecordingError, match="directory does not exist"):
        recordings.open_writer(tmp_path / "no" / "a.pd0", head)
    (tmp_path / "dir.pd0").mkdir()
    with pytest.raises(RecordingError, match="is a directory"):
        recordings.open_writer(tmp_path / "dir.pd0", head)
    with pytest.raises(RecordingError, match="one run"):
        recordings.open_writer(tmp_path / "a.pd0", replace(head, runs=(0, 1)))
    full = tmp_path / "full.pd0"
    full.symlink_to("/dev/full")
    writer = recordings.open_writer(full, head)
    with pytest.raises(RecordingError, match="no space left"):
        writer.write(dive.make_slices()[0])
    with pytest.raises(RecordingError, match="already failed"):
        writer.write(dive.make_slices()[0])
    writer.close()


def start_receiver(port: int, out: list[bytes]) -> threading.Thread:
    """Return a thread that reads all data from a port."""

    def read() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=20.0) as connection:
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            out.append(b"".join(parts))

    thread = threading.Thread(target=read)
    thread.start()
    return thread


def send(writer: DevicePublisher, block: bytes, times: int) -> None:
    for _ in range(times):
        writer._server.send(block)


def wait_for_clients(writer: DevicePublisher, count: int) -> None:
    """Wait until a port has this many clients."""
    end = time.monotonic() + 20.0
    while len(writer._server._clients) < count:
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.requirement("REC-1:devices")
def test_port_sends_the_bytes_of_the_file(tmp_path: Path) -> None:
    dive, out = Dive(make_world(Dvl(beams=make_beams()))), list[bytes]()
    complete = record_log(dive, tmp_path / "a.ship.pd0")
    address = "pd0+tcp://127.0.0.1:0?frame=ship&sensor=dvl&wait=0"
    for _ in range(2):
        writer = open_output(address, RecordedRun(dive.world, EPOCH, duration=3.0))
        assert isinstance(writer, DevicePublisher)
        with writer:
            threads = [start_receiver(writer._server.port, out) for _ in range(2)]
            wait_for_clients(writer, 2)
            with socket.create_connection(("127.0.0.1", writer._server.port)) as gone:
                wait_for_clients(writer, 3)
                gone.shutdown(socket.SHUT_RDWR)
            for time_slice in dive.make_slices((0.6, 1.3)):
                writer.write(time_slice)
        for thread in threads:
            thread.join(20.0)
    assert out == [complete] * 4
    with pytest.raises(RecordingError, match="already failed"):
        writer.write(dive.make_slices()[0])


def test_half_closed_client_receives_all_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client closes its sending half, as at the end of its input. The timeout starts with the first data."""
    monkeypatch.setattr(tcp_server, "STALL_TIMEOUT", 0.5)
    dive, out = Dive(make_world(Dvl(beams=make_beams()))), bytearray()
    writer = open_output("pd0+tcp://127.0.0.1:0?wait=0", RecordedRun(dive.world, EPOCH, duration=3.0))
    assert isinstance(writer, DevicePublisher)
    block = bytes(range(256)) * (1 << 14)
    with socket.create_connection(("127.0.0.1", writer._server.port)) as half:
        wait_for_clients(writer, 1)
        half.shutdown(socket.SHUT_WR)
        writer._server.send(b"first")
        time.sleep(0.7)

        def read() -> None:
            while part := half.recv(1 << 16):
                out.extend(part)

        thread = threading.Thread(target=read)
        writer._server.send(block)
        thread.start()
        writer.close()
        thread.join(20.0)
    assert bytes(out) == b"first" + block


def test_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_server, "MAX_QUEUE_BYTES", 1 << 20)
    monkeypatch.setattr(tcp_server, "STALL_TIMEOUT", 0.1)
    dive, out = Dive(make_world(Dvl(beams=make_beams()))), list[bytes]()
    writer = open_output("pd0+tcp://127.0.0.1:0?wait=0", RecordedRun(dive.world, EPOCH, duration=3.0))
    assert isinstance(writer, DevicePublisher)
    block = bytes(1 << 18)
    with socket.create_connection(("127.0.0.1", writer._server.port)) as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wait_for_clients(writer, 1)
        with pytest.warns(RuntimeWarning, match="was too slow and is disconnected"):
            send(writer, block, 200)
        assert not writer._server._clients
        reader = start_receiver(writer._server.port, out)
        wait_for_clients(writer, 1)
        writer.write(dive.make_slices()[0])
        writer.close()
        reader.join(20.0)
    assert len(out[0]) > 0
    writer = open_output("pd0+tcp://127.0.0.1:0?wait=0", RecordedRun(dive.world, EPOCH, duration=3.0))
    assert isinstance(writer, DevicePublisher)
    with socket.create_connection(("127.0.0.1", writer._server.port)):
        wait_for_clients(writer, 1)
        monkeypatch.setattr(tcp_server, "MAX_QUEUE_BYTES", 1 << 30)
        send(writer, block, 100)
        with pytest.warns(RuntimeWarning, match="did not receive all data"):
            writer.close()


def test_unavailable_ports_are_errors() -> None:
    head = RecordedRun(make_world(Dvl(beams=make_beams())), EPOCH, duration=3.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RecordingError, match=f"port is in use: {port}; choose another"):
            open_output(f"pd0+tcp://127.0.0.1:{port}", head)
    for address, problem in {
        "pd0+tcp://127.0.0.1:x": "must be a number from 0 to 65535",
        "pd0+tcp://127.0.0.1:70000": "must be a number from 0 to 65535",
        "pd9+tcp://127.0.0.1:0": r"must be one of pd0\+tcp, pd6\+tcp, wl\+tcp, nmea\+tcp",
        "pd0+tcp://127.0.0.1:0?frames=ship": "must be one of sensor, frame, wait",
        "pd0+tcp://127.0.0.1:0?wait=-1": "must be a number from 0",
        "pd0+tcp://127.0.0.1:0?frame=up": "must be one of beam",
        "pd6+tcp://127.0.0.1:0?frame=ship": "must be one of sensor, wait",
        "pd0+tcp://192.0.2.1:0": "name an address of this machine",
    }.items():
        with pytest.raises(RecordingError, match=problem):
            open_output(address, head)
    publisher = open_output("nmea+tcp://:0?wait=0.01", head)
    assert isinstance(publisher, ns.streams.Publisher)
    with publisher, pytest.warns(RuntimeWarning, match="no client connected within 0.01 s"):
        publisher.wait_for_subscriber()


SEA = """\
<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
  <world name="sea">
    <navsense:current><uniform>0.3 -0.2 0</uniform></navsense:current>
    <model name="bed">
      <static>true</static> <pose>0 0 -30 0 0 0</pose>
      <link name="ground"><collision name="c"><geometry><plane/></geometry></collision></link>
    </model>
    <model name="auv">
      <link name="base">
        <sensor name="dvl" type="dvl"><update_rate>5</update_rate><dvl><max>90</max></dvl></sensor>
        <sensor name="adcp" type="adcp"><update_rate>5</update_rate></sensor>
      </link>
    </model>
  </world>
</sdf>
"""


@pytest.mark.timeout(400)  # may compile kernels of both
@pytest.mark.requirement("GAP-8", "REC-1:devices")
def test_dive_from_world_file_to_ensembles(tmp_path: Path) -> None:
    """The vehicle moves north-east at 1.5 m/s, level, 25 m above a flat bed, without errors."""
    path = tmp_path / "sea.sdf"
    path.write_text(SEA, encoding="utf-8")
    coefficients = np.zeros((1, 2, 7))
    velocity = np.array((1.2, 0.9, 0.0))
    coefficients[0, 0, :3], coefficients[0, 1, 2] = velocity, -5.0
    coefficients[0, 1, 3:] = from_rpy(0.0, 0.0, math.atan2(0.9, 1.2))
    motion = Trajectory(np.array((0.0, 20.0)), coefficients)
    targets = [tmp_path / name for name in ("a.dvl.pd0", "a.adcp.pd0", "a.dvl.nmea", "a.adcp.nmea", "a.adcp.pd6")]
    ns.record(ns.load(path), targets, 10.0, motion={"auv": motion}, epoch=EPOCH)
    dvl, adcp = (decode_ensembles(target.read_bytes()) for target in targets[:2])
    for profile in (dvl, adcp):
        assert len(profile["ensemble_number"]) > 5
        assert np.abs(profile["bottom_velocity"][:, :3] + velocity).max() < 0.51e-3
        assert np.abs(profile["bottom_range"] - 25.0).max() < 0.0051
        assert np.degrees(profile["heading"]) == pytest.approx(90.0 - math.degrees(math.atan2(0.9, 1.2)), abs=0.0051)
        assert set(profile["depth"]) == {5.0}
    seen = adcp["velocity"][:, :8, :3]
    assert np.abs(seen - ((0.3, -0.2, 0.0) - velocity)).max() < 0.51e-3
    assert np.isnan(adcp["velocity"][:, -1]).all()
    for target in targets[2:4]:
        sentences, _ = nmea.decode(target.read_bytes())
        assert np.abs(sentences["ground"] - (1.5, 0.0)).max() < 3e-4
        assert set(sentences["altitude"]) == {25.0}
    lines, _ = pd6.decode(targets[4].read_bytes())
    assert np.abs(lines["bottom_earth"] - velocity).max() < 0.51e-3
