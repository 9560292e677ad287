"""PD0 ensembles of a profiler from a run: content without a bottom, and percent good.

Source of the meaning of the percentages: Teledyne RD Instruments, Workhorse Commands and Output Data Format,
percent-good data. A real ensemble in earth coordinates has 0, 0, 0 and 100 % if all four beams see the bottom.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import navsense as ns
from navsense.core.errors import RecordingError
from navsense.core.pose import Pose, from_rpy
from navsense.core.typing import Quaternion
from navsense.devices import pd0
from navsense.devices.format_encoders import round_heading
from navsense.devices.instrument_data import DopplerInstrument
from navsense.environment.base import Environment, UniformField
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.sensors import Adcp, BeamVelocityErrors, BinMapping, DepthCells, Sound
from navsense.world import Link, Model, MountedSensor, World

FLOW = (0.3, -0.2, 0.0)
FALSE_ALARM = 1e-6
LEVEL = (1.0, 0.0, 0.0, 0.0)
TILTED = from_rpy(math.radians(3.0), math.radians(4.0), 0.0)
SHEET = Adcp(cells=DepthCells(5, 2.0, 1.0), bin_mapping=BinMapping.NONE, propagation=False)


def make_world(spec: Adcp, faults: Faults = Faults(), rotation: Quaternion = TILTED) -> World:
    """Return an instrument 30 m above a bed, 10 m below the surface."""
    around = Environment(scene=Scene((Body("bed", Plane()),)), water=Water(surface=40.0), current=UniformField(FLOW))
    model = Model("auv", (Link("auv::base"),), "auv::base", pose=Pose((0.0, 0.0, 30.0), rotation))
    mounted = MountedSensor("auv::base::adcp", spec, "auv", "auv::base", 1.0, topic="/adcp", faults=faults)
    return World("sea", (model,), (mounted,), environment=around)


def record_ensembles(
    folder: Path, spec: Adcp, faults: Faults = Faults(), rotation: Quaternion = TILTED
) -> list[dict[str, Any]]:
    """Return six seconds of ensembles in earth and in beam coordinates."""
    targets = [folder / name for name in ("a.earth.pd0", "a.beam.pd0")]
    ns.record(make_world(spec, faults, rotation), targets, 6.0)
    return [dict(pd0.decode(target.read_bytes()).blocks[0].arrays) for target in targets]


@pytest.mark.requirement("REC-1:devices")
@pytest.mark.parametrize(
    ("degrees", "count"),
    [(0.0, 0), (1e-13, 0), (-1e-13, 0), (0.004, 0), (-0.004, 0), (0.006, 1), (-0.006, 35999), (-0.014, 35999)],
)
def test_heading_near_north_is_rounded_to_hundredths_of_a_degree(tmp_path: Path, degrees: float, count: int) -> None:
    """The heading is rounded to one of 36 000 counts of 0.01 degrees."""
    earth, _ = record_ensembles(tmp_path, SHEET, rotation=from_rpy(0.0, 0.0, math.radians(90.0 - degrees)))
    assert np.rint(np.degrees(earth["heading"]) * 100.0).tolist() == [count] * len(earth["heading"])


@pytest.mark.requirement("REC-1:devices")
def test_heading_of_a_full_turn_is_zero() -> None:
    """In double precision, -1e-17 modulo a turn is the turn itself."""
    assert -1e-17 % math.tau == math.tau
    assert round_heading(np.array([-1e-17, 0.0, math.tau, math.nextafter(math.tau, 0.0)])).tolist() == [0.0] * 4
    assert round_heading(np.array([math.tau - 0.6 * pd0.CENTIDEGREE])) == pytest.approx(math.radians(359.99), abs=1e-12)


@pytest.mark.requirement("GAP-8", "REC-1:devices", "NOI-6")
def test_profile_remains_without_the_bottom(tmp_path: Path) -> None:
    """The reader compensates the motion: from 2 to 4 s the profile remains, and the bottom velocity is invalid."""
    spec = replace(SHEET, motion_compensated=True)
    lost = Faults(scheduled=(ScheduledFault("lost_lock", 2.0, 4.0),))
    complete, struck = record_ensembles(tmp_path, spec), record_ensembles(tmp_path, spec, lost)
    rows = np.array([False, False, True, True, False, False])
    for clean, hurt, good in zip(complete, struck, ([0.0, 0.0, 1.0, 0.0], [0.0] * 4), strict=True):
        for name in ("velocity", "percent_good", "echo", "correlation"):
            assert np.array_equal(hurt[name], clean[name], equal_nan=True)
        assert np.isnan(hurt["bottom_velocity"]).all(axis=1).tolist() == rows.tolist()
        assert np.isnan(hurt["bottom_range"]).all(axis=1).tolist() == rows.tolist()
        assert hurt["bottom_percent_good"][rows].tolist() == [good] * 2
        assert np.array_equal(hurt["bottom_velocity"][~rows], clean["bottom_velocity"][~rows])
    assert np.abs(struck[0]["velocity"][..., :3] - FLOW).max() < 0.51e-3


@pytest.mark.requirement("GAP-8", "REC-1:devices")
def test_three_beam_bottom_solutions_are_counted_as_three(tmp_path: Path) -> None:
    """A tilt gives the beams different ranges. The longest one has no bottom echo."""
    slants = np.sort(record_ensembles(tmp_path, SHEET)[0]["bottom_range"][0]) / math.cos(math.radians(20.0))
    assert np.diff(slants).min() > 0.02, "m: ranges are of centimetres"
    earth, beam = record_ensembles(tmp_path, replace(SHEET, maximum_range=float(slants[2]) + 0.01))
    assert earth["bottom_percent_good"].tolist() == [[1.0, 0.0, 0.0, 0.0]] * 6
    assert np.isnan(earth["bottom_velocity"]).tolist() == [[False, False, False, True]] * 6
    assert np.sort(beam["bottom_percent_good"], axis=1).tolist() == [[0.0, 1.0, 1.0, 1.0]] * 6
    assert earth["percent_good"].tolist() == [[[0.0, 0.0, 0.0, 1.0]] * 5] * 6
    earth, beam = record_ensembles(tmp_path, replace(SHEET, maximum_range=float(slants[1]) + 0.01))
    assert earth["bottom_percent_good"].tolist() == [[0.0, 0.0, 1.0, 0.0]] * 6
    assert np.isnan(earth["bottom_velocity"]).all()
    assert np.sort(beam["bottom_percent_good"], axis=1).tolist() == [[0.0, 0.0, 1.0, 1.0]] * 6


@pytest.mark.requirement("GAP-8", "REC-1:devices")
def test_percent_good_counts_solutions_or_beams(tmp_path: Path) -> None:
    """Pings are rejected above one deviation of the error velocity, stddev / (sqrt 2 sin 20 degrees)."""
    sigma, pings = 0.05, 20
    limit = sigma / (math.sqrt(2.0) * math.sin(math.radians(20.0)))
    spec = replace(SHEET, pings=pings, profile=BeamVelocityErrors(sigma), error_velocity_limit=limit)
    earth, beam = record_ensembles(tmp_path, spec, rotation=LEVEL)
    three, rejected, few, four = np.moveaxis(earth["percent_good"], -1, 0)
    assert (three == 0.0).all()
    assert (few == 0.0).all()
    assert rejected + four == pytest.approx(1.0, rel=0.0, abs=1e-15)  # 20 pings: multiples of 5 %
    trials = rejected.size * pings
    least, most = binom.ppf([FALSE_ALARM / 2.0, 1.0 - FALSE_ALARM / 2.0], trials, 2.0 * norm.sf(1.0))
    assert least <= rejected.sum() * pings <= most
    assert (beam["percent_good"] == 1.0).all()


@pytest.mark.requirement("GAP-8", "REC-1:devices")
@pytest.mark.parametrize(
    ("more", "spacing"),
    [
        ({"ping_interval": 0.1, "maximum_range": 90.0, "bottom_pings": 4}, [0, 0, 22]),  # and 2 x 90 / 1500 s
        ({"ping_interval": 61.25, "bottom_pings": 0}, [1, 1, 25]),
        ({"propagation": False}, [0, 0, 0]),
        ({"pings": 1, "ping_interval": 0.1}, [0, 0, 0]),
    ],
)
def test_ping_interval_equals_the_spec(tmp_path: Path, more: dict[str, Any], spacing: list[int]) -> None:
    spec = replace(SHEET, **{"propagation": True, "pings": 4, "sound": Sound(1500.0), "processing_time": 0.05} | more)
    path = tmp_path / "a.pd0"
    ns.record(make_world(spec, rotation=LEVEL), path, spec.duration + 1.5)
    assert set(map(tuple, pd0.decode(path.read_bytes()).blocks[0].arrays["ping_spacing"].tolist())) == {tuple(spacing)}


@pytest.mark.requirement("REC-1:devices")
def test_reading_with_missing_arrays_is_an_error() -> None:
    world = make_world(SHEET)
    run = ns.simulate(world, 2.0)
    one = run["auv::base::adcp"]
    less = replace(one, arrays={name: array for name, array in one.arrays.items() if name != "solutions"})
    instrument = DopplerInstrument(world, world.sensors[0])
    instrument.add_truth(run.truth, 0.0)
    with pytest.raises(
        RecordingError, match=r"arrays of sensor 'auv::base::adcp': without solutions; must be complete"
    ):
        instrument.convert_reading(less)
    assert instrument.convert_reading(one).profile is not None
