"""PD0: a real ensemble bytewise, a manually encoded ensemble, limits and signs, and invalid bytes.

Source: tests/oracles/ooi/README.md. The real ensemble is not in the repository.
"""

from __future__ import annotations

import csv
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navsense.core.errors import RecordingError
from navsense.devices import pd0, rdi_frames
from navsense.recordings.summary import read_summary

OOI = Path(__file__).resolve().parents[1] / "oracles" / "ooi" / "velocities.csv"


@pytest.fixture
def real_ensemble(shared_data: Path) -> bytes:
    return (shared_data / "adcp" / "ooi_moored_wh_ensemble300.pd0").read_bytes()


def make_arrays(count: int = 5, cells: int = 3, seed: int = 1) -> dict[str, Any]:
    """Return arrays of every type with some leader fields."""
    rng = np.random.default_rng(seed)
    shape = (count, cells, 4)
    return {
        "ensemble_number": np.arange(1, count + 1) + 65_534,
        "coordinates": np.array(0x1F),
        "cells": np.array(cells),
        "beam_angle": np.array(math.radians(20.0)),
        "heading": rng.uniform(0.0, 6.28, count),
        "pitch": rng.uniform(-1.0, 1.0, count),
        "temperature": rng.uniform(271.0, 300.0, count),
        "pressure": rng.uniform(-1e3, 1e7, count),
        **pd0.encode_rtc(np.arange(count) * 125_000_000 + 1_767_225_600_000_000_000),
        "velocity": rng.normal(size=shape),
        "correlation": rng.uniform(size=shape),
        "echo": rng.uniform(0.0, 110.0, shape),
        "percent_good": rng.uniform(size=shape),
        "status": rng.integers(0, 2, shape),
        "bottom_velocity": rng.normal(size=(count, 4)),
        "bottom_range": rng.uniform(1.0, 900.0, (count, 4)),
        "rest_0600": rng.integers(0, 255, (count, 4)),
        "type_3001": rng.integers(0, 255, (count, 7)),
    }


@pytest.mark.requirement("REC-1:devices")
def test_real_ensemble_round_trips_bytewise(real_ensemble: bytes) -> None:
    found = pd0.decode(real_ensemble)
    (part,) = found.blocks
    assert not found.skipped
    assert pd0.encode(part.arrays, part.types) == real_ensemble
    assert pd0.encode(part.arrays) == real_ensemble
    arrays = part.arrays
    names = ("ensemble_number", "cells", "pings", "lag_length", "sound_speed")
    assert [int(arrays[name][0]) for name in names] == [300, 85, 16, 55, 1525]
    assert (arrays["cell_size"][0], arrays["blank"][0], arrays["first_cell"][0]) == pytest.approx(
        (1.0, 1.5, 2.74), rel=1e-12, abs=0.0
    )
    assert arrays["coordinates"][0] >> 3 == 0
    assert np.degrees((arrays["heading"][0], arrays["pitch"][0], arrays["roll"][0])) == pytest.approx(
        (98.41, 0.69, -2.54), rel=1e-12, abs=0.0
    )
    assert np.array(pd0.decode_stamps(arrays)).astype("datetime64[ns]")[0] == np.datetime64("2000-08-11T10:37:29.45")


@pytest.mark.requirement("GAP-8", "REC-1:devices")
def test_real_ensemble_has_the_published_velocities(real_ensemble: bytes) -> None:
    """Velocities in the earth frame equal the published four decimals (six for the error velocity, truncated)."""
    arrays = pd0.decode(real_ensemble).blocks[0].arrays
    up = bool(arrays["system"][0] >> 7 & 1)
    own = rdi_frames.solve_rdi_velocity(arrays["velocity"][0, :10], math.radians(20.0))
    turn = rdi_frames.make_rotation(arrays["heading"], arrays["pitch"], arrays["roll"], looks_up=up)[0]
    with OOI.open(encoding="utf-8", newline="") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    expected = np.array([[row[f"{axis}_m_s"] for axis in ("east", "north", "up")] for row in rows])
    beams = np.array([[row[f"b{k}_mm_s"] for k in range(1, 5)] for row in rows])
    assert up
    assert np.array_equal(np.rint(arrays["velocity"][0, :10] * 1e3), beams)
    assert np.abs(own[:, :3] @ turn.T - expected).max() < 5.01e-5
    assert np.abs(own[:, 3] - [row["error_m_s"] for row in rows]).max() < 1.01e-6


def encode_reference(arrays: dict[str, Any], row: int) -> bytes:
    """Return one ensemble of a leader, a velocity of one cell and a bottom track, field by field."""
    fixed = struct.pack("<HBBH", 0, 51, 40, 0x410B) + bytes((1, 0, 4, 1)) + struct.pack("<HHH", 2, 200, 88)
    fixed = fixed.ljust(25, b"\0") + bytes((0x1F,)) + struct.pack("<hh", 4500, -100)
    fixed = fixed.ljust(32, b"\0") + struct.pack("<HH", 390, 200)
    fixed = fixed.ljust(54, b"\0") + struct.pack("<IB", 7, 20)
    number = int(arrays["ensemble_number"][row])
    variable = struct.pack("<HH", 0x80, number & 0xFFFF) + bytes((26, 1, 2, 3, 4, 5, 67, number >> 16))
    variable += struct.pack("<HHHHhhHh", 0, 1500, 205, 35999, -123, 4567, 35, -150)
    variable = variable.ljust(48, b"\0") + struct.pack("<i", -3) + bytes(5) + bytes((20, 26, 1, 2, 3, 4, 5, 67))
    velocity = struct.pack("<H4h", 0x100, *arrays["counts"][row])
    bottom = struct.pack("<HH", 0x600, 1).ljust(16, b"\0") + struct.pack("<4H", 0x1170, 0, 0xFFFF, 100)
    bottom += struct.pack("<4h", *arrays["counts"][row][::-1]) + bytes((255,) * 4)
    bottom = bottom.ljust(40, b"\0") + bytes((0, 0, 0, 100)) + struct.pack("<HHH", 20, 30, 90)
    bottom = bottom.ljust(77, b"\0") + bytes((1, 0, 0xFF, 0)) + bytes(4)
    types = (fixed, variable, velocity, bottom)
    offsets = [6 + 2 * len(types) + sum(map(len, types[:i])) for i in range(len(types))]
    size = offsets[-1] + len(bottom) + 2
    head = b"\x7f\x7f" + struct.pack("<HBB4H", size, 0, len(types), *offsets)
    complete = head + b"".join(types) + bytes(2)
    return complete + struct.pack("<H", sum(complete) & 0xFFFF)


@pytest.mark.requirement("REC-1:devices")
def test_fields_are_at_the_offsets_of_the_manual() -> None:
    """Ranges have 24 bits; velocities may be too large or unknown; counters exceed 16 bits."""
    degree = math.radians(1.0)
    velocity = np.array([[32.767, -32.767, 32.768, math.nan], [1.0004, -0.0006, -99.0, math.inf]])
    counts = [(32767, -32767, -32768, -32768), (1000, -1, -32768, -32768)]
    arrays: dict[str, Any] = {
        "firmware_version": 51, "firmware_revision": 40, "system": 0x410B, "simulated": 1, "beams": 4, "cells": 1,
        "pings": 2, "cell_size": 2.0, "blank": 0.88, "coordinates": 0x1F, "heading_alignment": 45 * degree,
        "heading_bias": -degree, "first_cell": 3.9, "transmit_length": 2.0, "serial": 7, "beam_angle": 20 * degree,
        "ensemble_number": np.array([65_536, 65_537]),
        "sound_speed": 1499.7, "depth": 20.46, "heading": 359.994 * degree,
        "pitch": -1.23 * degree, "roll": 45.67 * degree, "salinity": 35.2, "temperature": 271.65, "pressure": -30.0,
        **pd0.encode_rtc(np.full(2, np.datetime64("2026-01-02T03:04:05.666", "ns").astype(np.int64))),
        "velocity": velocity[:, None, :], "bottom_pings": 1, "bottom_velocity": velocity[:, ::-1],
        "bottom_range": np.array([700.0, math.nan, 1e9, 1.0]), "bottom_correlation": np.ones(4),
        "bottom_percent_good": np.array([0.0, 0.0, 0.0, 1.0]), "layer_min_size": 2.0, "layer_near": 3.0,
        "layer_far": 9.0, "rest_0600": np.zeros(4),
    }  # fmt: skip
    encoded = pd0.encode(arrays)
    assert encoded == b"".join(encode_reference({**arrays, "counts": counts}, row) for row in range(2))
    back = pd0.decode(encoded).blocks[0].arrays
    assert back["bottom_range"][0] == pytest.approx([700.0, math.nan, 167_772.15, 1.0], nan_ok=True, rel=1e-12, abs=0.0)
    assert np.isnan(back["velocity"][:, 0]).tolist() == [[False, False, True, True]] * 2
    assert back["ensemble_number"].tolist() == [65_536, 65_537]


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**31))
def test_decoded_arrays_encode_to_the_same_bytes(count: int, cells: int, seed: int) -> None:
    encoded = pd0.encode(make_arrays(count, cells, seed))
    (part,) = pd0.decode(encoded).blocks
    assert len(part) == count
    assert pd0.encode(part.arrays, part.types) == encoded
    assert pd0.decode(encoded).blocks[0].arrays["ensemble_number"].tolist() == list(range(65_535, 65_535 + count))


def test_changed_layouts_and_damaged_bytes_are_read() -> None:
    one, other = pd0.encode(make_arrays(4)), pd0.encode(make_arrays(3, 5))
    size = len(one) // 4
    hurt = bytearray(one)
    hurt[size + 40] ^= 1
    found = pd0.decode(b"\x7f\x7f\x7f" + one + b"noise" + other + bytes(hurt) + one[: size - 1])
    assert [len(part) for part in found.blocks] == [4, 3, 1, 2]
    places = [3 + len(one), 3 + len(one) + 5 + len(other)]
    end = places[1] + len(one)
    assert found.skipped == ((0, 3), (places[0], 5), (places[1] + size, size), (end, size - 1))
    assert found.blocks[1].arrays["velocity"].shape == (3, 5, 4)


@pytest.mark.parametrize("data", [b"x", b"\x7f" * 5000, b"\x7f\x7f\x00\x00\x00\x00", b"$SDDPT,1*00\r\n"])
def test_bytes_without_an_ensemble_are_an_error(data: bytes) -> None:
    with pytest.raises(RecordingError, match=f"bytes without a PD0 ensemble: {len(data)}"):
        pd0.decode(data)
    assert not pd0.decode(b"").blocks


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(0, 10_000), st.binary(min_size=1, max_size=20))
def test_damage_affects_one_ensemble_only(before: bytes, place: int, patch: bytes) -> None:
    complete = pd0.encode(make_arrays(6))
    size = len(complete) // 6
    at = place % (len(complete) - len(patch))
    hurt = complete[:at] + patch + complete[at + len(patch) :]
    hit = range(at // size, (at + len(patch) - 1) // size + 1)
    try:
        found = pd0.decode(before + hurt)
    except RecordingError:
        assert False, "four ensembles at least are whole"  # noqa: B011, PT015
    numbers = [int(n) for part in found.blocks for n in part.arrays["ensemble_number"]]
    assert {65_535 + i for i in range(6) if i not in hit} <= set(numbers)
    assert sum(size for _, size in found.skipped) + sum(
        len(pd0.encode(part.arrays, part.types)) for part in found.blocks
    ) == len(before + hurt)


def test_too_long_ensemble_is_an_error() -> None:
    with pytest.raises(RecordingError, match="must be at most 65535; record fewer cells"):
        pd0.encode({"ensemble_number": np.arange(2), "velocity": np.zeros((2, 8200, 4))})


def test_ensembles_without_a_variable_leader_round_trip() -> None:
    """Other loggers may omit it. The bytes are kept, but the time is unknown."""
    encoded = pd0.encode(make_arrays(4), ("0000", "0100", "0600"))
    (part,) = pd0.decode(encoded).blocks
    assert (len(part), "ensemble_number" in part.arrays) == (4, False)
    assert pd0.encode(part.arrays, part.types) == encoded
    with pytest.raises(RecordingError, match=r"no clock; must include rtc or rtc_y2k.*variable leader"):
        pd0.decode_stamps(part.arrays)


@pytest.mark.parametrize("arrays", [{}, {"cells": np.array(3)}, {"ensemble_number": np.array(3)}])
def test_ensembles_without_size_are_errors(arrays: dict[str, Any]) -> None:
    with pytest.raises(RecordingError, match=r"arrays of ensembles.*must include ensemble_number or reserved"):
        pd0.encode(arrays)


@settings(max_examples=50)
@given(st.integers(-(10**18), 4 * 10**18))
def test_clock_fields_follow_the_calendar(stamp: int) -> None:
    fields = pd0.encode_rtc(np.array([stamp]))
    nearest = (stamp + 5_000_000) // 10_000_000 * 10_000_000
    assert pd0.decode_stamps(fields).tolist() == [nearest]
    text = str(np.datetime64(nearest, "ns").astype("datetime64[ms]"))
    year, rest = divmod(int(text[:4]), 100)[0], text[2:4]
    spelled = [year, int(rest), *(int(text[i : i + 2]) for i in (5, 8, 11, 14, 17, 20))]
    assert fields["rtc_y2k"][0].tolist() == spelled


@pytest.mark.requirement("REC-1:devices")
def test_summary_adds_up_a_type_that_is_in_an_ensemble_several_times(tmp_path: Path) -> None:
    """WinRiver writes the NMEA sentences of an ensemble as types 2022."""
    ensembles = b""
    for types in (1, 3, 2):
        body = struct.pack("<HH", 0x2022, 7) * types
        offsets = struct.pack(f"<{types}H", *(6 + 2 * types + 4 * i for i in range(types)))
        content = offsets + body + b"\0\0"
        raw = b"\x7f\x7f" + struct.pack("<HBB", 6 + len(content), 0, types) + content
        ensembles += raw + struct.pack("<H", sum(raw) % 65536)
    (tmp_path / "log.pd0").write_bytes(ensembles)
    summary = read_summary(tmp_path / "log.pd0")
    assert [(entry.name, entry.type, entry.count) for entry in summary.entries] == [("data type", "PD0 0x2022", 6)]
    (tmp_path / "log.000").write_bytes(ensembles)
    with pytest.raises(RecordingError, match=r"no recording has this suffix: \.000; .*copy it to log\.pd0"):
        read_summary(tmp_path / "log.000")
