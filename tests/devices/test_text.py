"""PD6, Water Linked's JSON and NMEA: examples of the makers, another reader, and damaged lines.

Sources: README.md in tests/oracles/pathfinder, waterlinked and nmea.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navsense.core.errors import RecordingError
from navsense.devices import nmea, pd6, waterlinked

ORACLES = Path(__file__).resolve().parents[1] / "oracles"

SINGLE = 2.0**-24
"""Half a unit in the last place of single precision, as in Water Linked's example, relative to 1."""


def make_ping(**changes: Any) -> dict[str, Any]:
    """Return one ping with zeros and a lost water track."""
    row: dict[str, Any] = {name: np.zeros(1) for name in ("heading", "pitch", "roll", "salinity", "depth")}
    row |= {"temperature": np.array([273.15]), "sound_speed": np.array([1475.0])}
    row["stamp"] = np.array([np.datetime64("2022-02-08T12:06:18", "ns").astype(np.int64)])
    for track, value in (("water", math.nan), ("bottom", 0.0)):
        row |= {f"{track}_{name}": np.full((1, n), value) for name, n in pd6.VELOCITY_LINES.values()}
        row |= {f"{track}_distance": np.zeros((1, 3)), f"{track}_range": np.zeros(1), f"{track}_age": np.zeros(1)}
    return {**row, **{name: np.array([value]) for name, value in changes.items()}}


@pytest.mark.requirement("REC-1:devices")
def test_lines_equal_water_linked_output() -> None:
    lines = (ORACLES / "waterlinked" / "pd6.txt").read_text(encoding="ascii").splitlines()
    given_ = {"bottom_instrument": (0.123, -0.42, 2.0, 0.0), "bottom_ship": (-0.42, 0.123, 2.0), "bottom_range": 5.32}
    encoded = pd6.encode(make_ping(**given_)).decode("ascii")
    assert encoded.endswith("\r\n")
    ours = encoded.split("\r\n")
    assert [line for line in ours if line[:3] in {text[:3] for text in lines}] == lines
    assert ours[2] == ":WI,-32768,-32768,-32768,-32768,V"


@pytest.mark.requirement("REC-1:devices")
def test_lines_equal_teledyne_output() -> None:
    found, skipped = pd6.decode((ORACLES / "pathfinder" / "pd6.txt").read_bytes())
    assert skipped == 0
    angles = [math.degrees(found[name][0]) for name in ("pitch", "roll", "heading")]
    assert angles == pytest.approx([-2.31, 1.92, 75.2], rel=1e-12, abs=0.0)
    assert found["stamp"].astype("datetime64[ns]")[0] == np.datetime64("2004-08-11T11:56:36.44")
    scaling = [found[name][0] for name in ("salinity", "temperature", "depth", "sound_speed")]
    assert scaling == pytest.approx([35.0, 294.15, 0.0, 1524.0], rel=1e-12, abs=1e-9)
    assert found["bottom_instrument"][0] == pytest.approx([0.024, -0.006, -0.020, -0.004], rel=1e-12, abs=0.0)
    assert found["bottom_ship"][0] == pytest.approx([-0.013, 0.021, -0.020], rel=1e-12, abs=0.0)
    assert found["bottom_earth"][0] == pytest.approx([0.017, 0.018, -0.020], rel=1e-12, abs=0.0)
    assert [*found["bottom_distance"][0], found["bottom_range"][0], found["bottom_age"][0]] == pytest.approx(
        [-0.02, -0.03, 0.02, 7.13, 0.21], rel=1e-12, abs=0.0
    )
    assert np.isnan(found["water_instrument"]).all()
    assert np.isnan(found["water_range"]).all()


def test_pd6_limits_and_damage() -> None:
    fast = make_ping(bottom_earth=(40.0, 0.0, 0.0), heading=math.radians(359.996), depth=-3.0, sound_speed=math.nan)
    lines = pd6.encode(fast).decode("ascii").split("\r\n")
    assert ":BE,-32768,-32768,-32768,V" in lines
    assert lines[0].endswith(",  0.00")
    two = pd6.encode(make_ping()) + b":BE,garbled\r\n:XX,1\r\n" + pd6.encode(make_ping(bottom_range=7.0))[:-4]
    found, skipped = pd6.decode(two)
    assert skipped == 2
    assert found["bottom_range"][1] == 7.0
    with pytest.raises(RecordingError, match="without a PD6 ping"):
        pd6.decode(b"noise\n")


@pytest.mark.requirement("REC-1:devices")
def test_water_linked_covariance_has_no_rounding_residue() -> None:
    """The rounding residue of a rotated zero is written as 0. Small values are kept."""
    square = np.diag((4e-5, 4e-5, 7e-6)) + 1.5e-36
    square[0, 1] = square[1, 0] = 3e-12
    arguments = waterlinked.decode((ORACLES / "waterlinked" / "velocity.json").read_bytes())[0] | {
        "covariance": square[None]
    }
    encoded = json.loads(waterlinked.encode(arguments))["covariance"]
    assert encoded == [[4e-5, 3e-12, 0.0], [3e-12, 4e-5, 0.0], [0.0, 0.0, 7e-6]]


@pytest.mark.requirement("REC-1:devices")
def test_water_linked_example_is_reproduced() -> None:
    """Merit and velocity follow from the covariance. Only one order of the transducers reproduces the velocity."""
    text = (ORACLES / "waterlinked" / "velocity.json").read_bytes()
    example, (found, skipped) = json.loads(text), waterlinked.decode(text)
    assert skipped == 0
    covariance, velocity = found["covariance"][0], found["velocity"][0]
    assert waterlinked.compute_fom(found["covariance"])[0] == pytest.approx(example["fom"], rel=SINGLE, abs=0.0)
    tilt, azimuth = math.radians(22.5), np.radians([135.0, -135.0, -45.0, 45.0])  # transducers 0 to 3 of an A50
    axes = np.stack(
        (math.sin(tilt) * np.cos(azimuth), math.sin(tilt) * np.sin(azimuth), np.full(4, math.cos(tilt))), axis=1
    )
    squares = np.stack([np.outer(axis, axis).ravel() for axis in axes], axis=1)
    off = {}
    for order in itertools.permutations(range(4)):
        weights = np.linalg.lstsq(squares[:, order], np.linalg.inv(covariance).ravel(), rcond=None)[0]
        for sign in (1.0, -1.0):
            solved = covariance @ (axes[list(order)].T @ (weights * sign * found["transducer_velocity"][0]))
            off[order, sign] = float(np.linalg.norm(solved - velocity))
    assert min(off, key=lambda key: off[key]) == ((0, 1, 2, 3), 1.0)
    assert off[(0, 1, 2, 3), 1.0] < 1e-5 < 0.5 * sorted(off.values())[1]
    encoded = json.loads(waterlinked.encode(found))
    for transducer in (*example["transducers"], *encoded["transducers"]):
        transducer |= {"rssi": 0, "nsd": 0}
    assert encoded.keys() == example.keys()
    assert encoded == {
        **example,
        "fom": pytest.approx(example["fom"], rel=SINGLE, abs=0.0),
        "time": pytest.approx(example["time"], rel=1e-12, abs=0.0),
    }


def test_report_without_bottom_is_json_without_nan() -> None:
    arrays = {
        "stamp": np.array([5000, 6000]), "transmission_stamp": np.array([7000, 8000]), "elapsed": np.zeros(2),
        "velocity": np.array([[math.nan] * 3, [1.0, 2.0, 3.0]]), "covariance": np.full((2, 3, 3), math.nan),
        "altitude": np.array([math.nan, 4.0]), "transducer_velocity": np.array([[math.nan] * 4, [1.0] * 4]),
        "transducer_distance": np.full((2, 4), math.nan), "is_water": np.array([False, True]),
    }  # fmt: skip
    none, water = (json.loads(line, parse_constant=pytest.fail) for line in waterlinked.encode(arrays).splitlines())
    assert (none["vx"], none["altitude"], none["velocity_valid"], none["fom"]) == (
        0.0,
        -1.0,
        False,
        waterlinked.UNKNOWN_FOM,
    )
    assert none["transducers"][0] == {
        "id": 0, "velocity": 0.0, "distance": -1.0, "rssi": 0.0, "nsd": 0.0, "beam_valid": False
    }  # fmt: skip
    assert "altitude" not in water
    assert (water["type"], water["tracking_mode"], water["fom"]) == ("velocity_water", "water", waterlinked.UNKNOWN_FOM)


@settings(max_examples=30)
@given(st.binary(max_size=300))
def test_bytes_between_reports_are_skipped(noise: bytes) -> None:
    line = (ORACLES / "waterlinked" / "velocity.json").read_bytes()
    found, _ = waterlinked.decode(noise.replace(b"\r", b"") + b"\n" + line + noise[:20].replace(b"{", b""))
    assert found["velocity"].shape[0] >= 1
    with pytest.raises(RecordingError):
        waterlinked.decode(b"[" * 100_000)


def rows(**changes: Any) -> dict[str, Any]:
    given_ = {
        "altitude": [12.347],
        "depth": [3.21],
        "max_range": [90.0],
        "water": [[1.0, -0.5]],
        "ground": [[2.0, 0.25]],
    }
    return {name: np.array(value) for name, value in (given_ | changes).items()}


@pytest.mark.requirement("REC-1:devices")
def test_sentences_equal_those_of_another_reader() -> None:
    pynmea2 = pytest.importorskip("pynmea2", reason="needs pynmea2, another reader of NMEA 0183")
    dbt, dpt, vbw = (pynmea2.parse(line, check=True) for line in nmea.encode(rows()).decode("ascii").splitlines())
    assert (dbt.talker, dbt.sentence_type, float(dbt.depth_meters)) == ("SD", "DBT", 12.35)
    assert float(dbt.depth_feet) == pytest.approx(12.347 / 0.3048, abs=0.051)
    assert float(dbt.depth_fathoms) == pytest.approx(12.347 / 1.8288, abs=0.0051)
    assert (dbt.unit_feet, dbt.unit_meters, dbt.unit_fathoms) == ("f", "M", "F")
    assert (float(dpt.depth), float(dpt.offset), float(dpt.range)) == (12.35, 3.21, 90.0)
    assert (vbw.talker, vbw.data_validity_water_spd, vbw.data_validity_grnd_spd) == ("VD", "A", "A")
    speeds = (vbw.lon_water_spd, vbw.trans_water_spd, vbw.lon_grnd_spd, vbw.trans_grnd_spd)
    assert [float(speed) * 1852.0 / 3600.0 for speed in speeds] == pytest.approx([1.0, -0.5, 2.0, 0.25], abs=3e-4)


def test_sentences_with_unknown_values() -> None:
    found, skipped = nmea.decode(b"$SDDPT,0006.29,002.40*6C\r\n$SDDPT,0006.29,002.40*6D\r\n$GPXXX*55\nnoise\n")
    assert (found["depth"].tolist(), skipped) == ([2.4], 3)
    blind = rows(altitude=[math.nan], depth=[math.nan], water=[[math.nan] * 2], ground=[[-0.0001, 0.0]])
    lines = [line.split("*")[0] for line in nmea.encode(blind).decode("ascii").splitlines()]
    assert lines == ["$SDDBT,,f,,M,,F", "$SDDPT,,,90.0", "$VDVBW,,,V,0.000,0.000,A,,V,,V"]
    back, skipped = nmea.decode(nmea.encode(blind))
    assert skipped == 0
    assert np.isnan(back["altitude"]).all()
    assert np.isnan(back["water"]).all()
    with pytest.raises(RecordingError, match="must contain DBT, DPT or VBW"):
        nmea.decode(b"$SDDPT,1,2*00\r\n")
    assert (
        nmea.encode(rows(altitude=[], depth=[], max_range=[], water=np.empty((0, 2)), ground=np.empty((0, 2)))) == b""
    )


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_bytes_between_sentences_are_skipped(noise: bytes) -> None:
    found, _ = nmea.decode(noise + b"\n" + nmea.encode(rows()) + noise)
    assert 12.35 in found["altitude"]
