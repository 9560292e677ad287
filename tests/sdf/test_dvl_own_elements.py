"""Elements of navsense in the documents' DVL plug-ins: noise that grows with the speed, and long-term velocity."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, norm

import navsense as ns
from navsense import sdf
from navsense.core.errors import SdfError
from navsense.core.typing import FloatArray
from navsense.motion.trajectory import Trajectory
from navsense.noise.specification import Noise
from navsense.sensors.doppler import EchoStrength, LongTermFilter, TrackErrors
from navsense.sensors.dvl import Dvl
from navsense.world import MountedSensor, World

Load = Callable[..., World]
Text = Callable[..., str]

FALSE_ALARM = 1e-6

FILES = {"uuv": "libuuv_gazebo_ros_dvl_plugin.so", "dsros": "libdsros_ros_dvl.so"}
"""Dialect -> file of the plug-in."""

BED = (
    '<model name="bed"><static>1</static><pose>0 0 -30 0 0 0</pose><link name="l"><collision name="c"><geometry>'
    "<plane/></geometry></collision></link></model>"
)

TRACK = """<navsense:bottom_track>
<per_speed>0.003</per_speed>
<reference_rate>3.5</reference_rate>
<long_term_scale>0.004</long_term_scale>
<long_term_offset>0.002</long_term_offset>
<maximum_velocity>9</maximum_velocity>
</navsense:bottom_track>"""

OTHERS = """<navsense:strength level="92" absorption="0.03" correlation="0.8" threshold="5" slope="2"/>
<navsense:long_term acceleration_density="0.05" stddev="0.002" scale="0.004"/>"""

FILTER = '<navsense:long_term acceleration_density="1e-5" stddev="0.002" scale="0.004"/>'
"""A filter for a vehicle at a constant velocity: over a run of 6 s its random walk adds less than 0.01 % of a ping."""


@pytest.fixture
def load_robot(dvl_robots: dict[str, str], tmp_path: Path) -> Callable[..., World]:
    """Return a function that loads the robot of a document over a bed, with more elements in its DVL's plug-in.

    `noise_sigma` is 0, so that the covariance of the UUV Simulator's DVL is the true one.
    """

    def load_with(dialect: str, own: str, fidelity: str = "physical") -> World:
        text = re.sub(r"<noise_sigma>[^<]*", "<noise_sigma>0", dvl_robots[dialect])
        head, file, rest = text.partition(FILES[dialect])
        assert file
        (tmp_path / "auv.urdf").write_text(
            head + file + rest.replace("</plugin>", own + "</plugin>", 1), encoding="utf-8"
        )
        (tmp_path / "sea.sdf").write_text(
            f"<sdf version='1.9'><world name='sea'><include><uri>auv.urdf</uri></include>{BED}</world></sdf>",
            encoding="utf-8",
        )
        return sdf.load(tmp_path / "sea.sdf", fidelity=fidelity)

    return load_with


def find_dvl(world: World) -> tuple[MountedSensor, Dvl]:
    (found,) = (sensor for sensor in world.sensors if isinstance(sensor.spec, Dvl))
    assert isinstance(found.spec, Dvl)
    return found, found.spec


def make_motion(speed: float) -> Trajectory:
    """Return a level motion ahead at a constant speed (m/s), 10 m deep."""
    return Trajectory(
        np.array([0.0, 1000.0]),
        np.array([[[speed, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, -10.0, 1.0, 0.0, 0.0, 0.0]]]),
    )


def simulate_pings(world: World, speed: float, duration: float, *, runs: int | None = None) -> ns.Reading:
    """Return the readings of the DVL at a speed."""
    sensor, _ = find_dvl(world)
    options = {} if runs is None else {"runs": runs}
    return ns.simulate(world, duration, seed=11, motion={"auv": make_motion(speed)}, **options)[sensor.name]


def check_whitened(squares: FloatArray, axes: int, alarm: float) -> None:
    """Assert that sums of `squares` (n,) of errors by their covariance are chi-squared."""
    assert chi2.ppf(alarm / 2.0, axes * squares.size) < squares.sum() < chi2.isf(alarm / 2.0, axes * squares.size)


@pytest.mark.requirement("GAP-2", "GAP-3")
@pytest.mark.parametrize("dialect", FILES)
def test_own_elements_mean_the_same_as_in_a_navsense_dvl(
    load_robot: Callable[..., World], load: Load, wrap_in_link: Text, dialect: str
) -> None:
    _, spec = find_dvl(load_robot(dialect, TRACK + OTHERS))
    native = re.sub("navsense:", "", TRACK + OTHERS)
    _, expected = find_dvl(load(wrap_in_link(f'<sensor name="dvl" type="dvl"><dvl>{native}</dvl></sensor>')))
    assert spec.bottom == replace(expected.bottom, noise=Noise(stddev=0.005))
    assert spec.bottom == TrackErrors(Noise(stddev=0.005), 0.003, 3.5, 0.0, 0.004, 0.002, 9.0)
    assert spec.echo_strength == expected.echo_strength == EchoStrength(92.0, 0.03, 0.8, 5.0, 2.0)
    assert spec.long_term == expected.long_term == LongTermFilter(0.05, 0.002, 0.004)


@pytest.mark.requirement("GAP-2", "SDF-2")
@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (
            "<navsense:bottom_trak/>",
            "<plugin><navsense:bottom_trak>; is not allowed here; did you mean navsense:bottom_track?",
        ),
        ("<navsense:bottom_track><per_sped>1</per_sped></navsense:bottom_track>", "did you mean per_speed?"),
        ("<navsense:bottom_track><noise/></navsense:bottom_track>", "of the plug-in"),
        ('<navsense:bottom_track when="best"/>', "<navsense:bottom_track when>; is not allowed here"),
        ("<navsense:bottom_track><per_speed>-1</per_speed></navsense:bottom_track>", "per_speed>: -1; must be >= 0"),
        ("<navsense:bottom_track><per_speed>a</per_speed></navsense:bottom_track>", "per_speed>: a; must be"),
        ("<navsense:long_term/>", "acceleration_density"),
        ('<navsense:long_term acceleration_density="0"/>', "must be at least 1e-12"),
        ('<navsense:strength level="90" slope="0"/>', "must be above 0"),
    ],
)
def test_invalid_own_elements_are_errors(
    load_robot: Callable[..., World], dialect: str, own: str, problem: str
) -> None:
    with pytest.raises(SdfError) as caught:
        load_robot(dialect, own)
    assert len(caught.value.problems) == 1
    assert problem in str(caught.value)
    assert "auv.urdf:" in str(caught.value)


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize("speed", [0.0, 1.0, 4.0])
def test_noise_of_single_pings_is_a_floor_and_a_fraction_of_the_speed(
    load_robot: Callable[..., World], dialect: str, speed: float
) -> None:
    """sigma = 0.005 m/s + 0.003 |v| along each beam, also in the covariance; false alarms 1e-6 over all three tests."""
    reading = simulate_pings(
        load_robot(dialect, "<navsense:bottom_track><per_speed>0.003</per_speed></navsense:bottom_track>"), speed, 200.0
    )
    rows = np.flatnonzero(reading["velocity_mode"] == 1.0)
    assert rows.size > 1300
    sigma = 0.005 + 0.003 * np.linalg.norm(reading.ideal["velocity"][rows], axis=1)
    assert np.allclose(reading["beam_deviation"][rows], sigma[:, None], rtol=1e-9, atol=0.0)
    errors = (reading["beam_velocity"] - reading.ideal["beam_velocity"])[rows] / sigma[:, None]
    check_whitened(np.sum(errors**2, axis=1), 4, FALSE_ALARM / 9.0)
    assert np.abs(errors.sum(axis=0)).max() < norm.isf(FALSE_ALARM / 72.0) * math.sqrt(rows.size)
    error = (reading["velocity"] - reading.ideal["velocity"])[rows]
    solved = np.linalg.solve(reading["velocity_covariance"][rows], error[:, :, None])[:, :, 0]
    check_whitened(np.sum(error * solved, axis=1), 3, FALSE_ALARM / 9.0)


@pytest.mark.requirement("GAP-2")
@pytest.mark.parametrize("dialect", FILES)
def test_noise_grows_with_the_rate_and_with_weak_echoes(load_robot: Callable[..., World], dialect: str) -> None:
    """At 7 Hz, deviations for 1.75 Hz double. A weak echo increases the noise as its correlation falls.

    The rays of a beam have other angles of incidence than its axis, which changes the noise by less than 1 %.
    """
    own = "<navsense:bottom_track><reference_rate>1.75</reference_rate></navsense:bottom_track>"
    reading = simulate_pings(load_robot(dialect, own), 1.0, 3.0)
    rows = np.flatnonzero(reading["velocity_mode"] == 1.0)
    assert np.allclose(reading["beam_deviation"][rows], 0.01, rtol=1e-9, atol=0.0)
    weak = simulate_pings(load_robot(dialect, '<navsense:strength level="56" threshold="-50"/>'), 1.0, 3.0)
    rows = np.flatnonzero(weak["velocity_mode"] == 1.0)
    slant = weak.ideal["beam_range"][rows]
    height = 20.0 if dialect == "dsros" else 19.5
    decibels = 56.0 - 30.0 * np.log10(slant) + 20.0 * np.log10(height / slant)
    coherence = 0.9 / (1.0 + 10.0 ** (-decibels / 10.0))
    factor = np.sqrt((coherence**-2.0 - 1.0) / (0.9**-2.0 - 1.0))
    assert (factor > 1.1).all()
    assert np.allclose(weak["beam_deviation"][rows], 0.005 * factor, rtol=0.01, atol=0.0)


@pytest.mark.compiled
@pytest.mark.requirement("GAP-3")
@pytest.mark.parametrize("dialect", FILES)
def test_long_term_velocity_is_consistent(load_robot: Callable[..., World], dialect: str) -> None:
    """Over 400 instruments, errors by their covariance are chi-squared with 1200 degrees of freedom at each ping.

    The errors are those of single pings, and the scale error and offset of the instrument, which the filter assumes.
    False alarms are 1e-6 over all pings. The velocity of a single ping has larger errors.
    """
    own = """<navsense:bottom_track><per_speed>0.003</per_speed><long_term_scale>0.004</long_term_scale>
    <long_term_offset>0.002</long_term_offset></navsense:bottom_track>"""
    reading = simulate_pings(load_robot(dialect, own + FILTER), 2.0, 6.0, runs=400)
    rows = np.flatnonzero((reading["velocity_mode"] == 1.0).all(axis=0))
    assert rows.size > 30
    error = (reading["long_term_velocity"] - reading.ideal["velocity"])[:, rows]
    solved = np.linalg.solve(reading["long_term_covariance"][:, rows], error[..., None])[..., 0]
    squares = np.sum(error * solved, axis=-1)
    for k in range(rows.size):
        check_whitened(squares[:, k], 3, FALSE_ALARM / rows.size)
    single = (reading["velocity"] - reading.ideal["velocity"])[:, rows[-1]]
    assert np.mean(error[:, -1] ** 2) < 0.6 * np.mean(single**2)


@pytest.mark.requirement("GAP-3")
@pytest.mark.parametrize("dialect", FILES)
def test_recordings_have_both_solutions(load_robot: Callable[..., World], tmp_path: Path, dialect: str) -> None:
    world = load_robot(dialect, TRACK + FILTER)
    sensor, _ = find_dvl(world)
    run = ns.simulate(world, 3.0, seed=2, motion={"auv": make_motion(1.0)})
    run.save(tmp_path / "dive.mcap")
    found = ns.open(tmp_path / "dive.mcap")[sensor.name]
    for name in ("velocity", "velocity_covariance", "long_term_velocity", "long_term_covariance"):
        published = run[sensor.name].emitted
        assert np.array_equal(found[name], run[sensor.name][name][published], equal_nan=True)
        assert np.isfinite(found[name][-1]).all()


@pytest.mark.requirement("GAP-2")
def test_water_track_has_its_own_errors(load_robot: Callable[..., World]) -> None:
    """The noise of the bottom track does not grow with that of the water track."""
    own = "<navsense:water_track><per_speed>0.01</per_speed></navsense:water_track>"
    _, spec = find_dvl(load_robot("dsros", f"<enableWaterTrack>1</enableWaterTrack>{own}"))
    assert spec.bottom == TrackErrors(Noise(stddev=0.005))
    assert spec.water == TrackErrors(Noise(stddev=0.01), per_speed=0.01)
    world = load_robot("dsros", own)
    assert ("<navsense:water_track>", "has no effect: <enableWaterTrack> is not set") in [
        (note.what, note.reason) for note in world.notes if note.kind == "warning"
    ]


@pytest.mark.requirement("GAP-2", "DVW-6")
def test_own_elements_without_effect_under_classic_are_listed(load_robot: Callable[..., World]) -> None:
    """The velocity of the UUV Simulator's DVL, and the water track of Woods Hole's, keep their documented noise."""
    grows = "<per_speed>0.003</per_speed>"
    own = f"<navsense:bottom_track>{grows}</navsense:bottom_track>"
    water = f"<enableWaterTrack>1</enableWaterTrack><navsense:water_track>{grows}</navsense:water_track>"
    for dialect, text, listed in (
        ("uuv", own, ["<navsense:bottom_track>"]),
        ("dsros", own + water, ["<navsense:water_track><per_speed>"]),
    ):
        for fidelity, expected in (("classic", listed), ("physical", [])):
            world = load_robot(dialect, text, fidelity)
            assert [n.what for n in world.notes if "under classic" in n.reason and "navsense:" in n.what] == expected
    plain, more = (simulate_pings(load_robot("uuv", text, "classic"), 3.0, 5.0)["velocity"] for text in ("", own))
    assert np.array_equal(plain, more, equal_nan=True)


@pytest.mark.requirement("GAP-2", "DVU-3")
def test_covariance_without_the_growth_is_a_warning(
    dvl_robots: dict[str, str], tmp_path: Path, wrap_in_world: Text
) -> None:
    own = "<navsense:bottom_track><per_speed>0.003</per_speed></navsense:bottom_track></plugin>"
    (tmp_path / "auv.urdf").write_text(dvl_robots["uuv"].replace("</plugin>", own, 1), encoding="utf-8")
    (tmp_path / "sea.sdf").write_text(wrap_in_world("<include><uri>auv.urdf</uri></include>"), encoding="utf-8")
    reason = "the covariance does not include <navsense:bottom_track>; write 0 for the true covariance"
    notes = sdf.load(tmp_path / "sea.sdf").notes
    assert [note.what for note in notes if note.reason == reason] == ["<plugin><noise_sigma>: 0.005"]
