"""Velocity reports of Water Linked's DVLs: one JSON object per line.

    time ms, vx vy vz m/s, fom m/s, covariance (m/s)^2, altitude m, transducers [{id, velocity m/s, distance m, rssi,
    nsd, beam_valid}], velocity_valid, status, tracking_mode, format, type, time_of_validity us, time_of_transmission us

x is forward, y right, z down. A transducer's velocity is positive when the DVL moves along its beam; its distance is
slant. `fom` is the root of the largest eigenvalue of the covariance. `time` is the time since the last report. A
`velocity_water` report has no altitude. Unknown values are those of a report without a bottom: velocities 0, altitude
and distances -1, flags false, and `UNKNOWN_FOM` for an unknown covariance. Signal and noise (rssi, nsd) are not
simulated and 0.

Arrays (n, ...): `stamp`, `transmission_stamp` ns; `velocity` (n, 3), `covariance` (n, 3, 3), `altitude` (n,),
`transducer_velocity`, `transducer_distance` (n, k), `is_water` (n,), `elapsed` s. There is no dead-reckoning report
(`position_local`), because the gyroscopes of the device are not simulated.

Source: Water Linked, DVL A50/A125 TCP JSON API (json_v3.2), and its example without a bottom. The directions of
transducers 0 to 3 (aft right, aft left, forward left, forward right) and the sign of their velocities follow from the
numbers in the example.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from navsense.core import inputs
from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, FloatArray

FORMAT = "json_v3.2"

UNKNOWN_FOM = 1e3
"""m/s: figure of merit of an unknown velocity or covariance."""

NANOSECONDS_PER_MICROSECOND = 1000

ROUNDING_SHARE = 1e-12
"""Elements of a covariance below this share of the largest are rounding errors of its rotation and become 0."""


def _to_json_lists(values: AnyArray) -> list[Any]:
    """Return rows as lists of JSON numbers, 0 for unknown values."""
    lists: list[Any] = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0).tolist()
    return lists


def compute_fom(covariance: FloatArray) -> FloatArray:
    """Return the figures of merit (n,) m/s of covariances (n, 3, 3)."""
    largest = np.asarray(np.linalg.eigvalsh(covariance), dtype=np.float64)[:, -1]
    return np.sqrt(np.maximum(largest, 0.0))


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return one line for each row."""
    velocity = np.asarray(arrays["velocity"], dtype=np.float64)
    valid: BoolArray = np.asarray(np.isfinite(velocity).all(axis=1))
    covariance = np.asarray(arrays["covariance"], dtype=np.float64)
    is_known: BoolArray = valid & np.isfinite(covariance).all(axis=(1, 2))
    covariance = np.where(is_known[:, None, None], covariance, UNKNOWN_FOM**2 * np.eye(3))
    largest = np.abs(covariance).max(axis=(1, 2), keepdims=True, initial=0.0)
    covariance = np.where(np.abs(covariance) > ROUNDING_SHARE * largest, covariance, 0.0)
    distance = np.asarray(arrays["transducer_distance"], dtype=np.float64)
    beam_velocity = np.asarray(arrays["transducer_velocity"], dtype=np.float64)
    columns: tuple[list[Any], ...] = (
        _to_json_lists(1e3 * np.asarray(arrays["elapsed"])),
        _to_json_lists(np.where(valid[:, None], velocity, math.nan)),
        compute_fom(covariance).tolist(),
        covariance.tolist(),
        np.where(np.isfinite(arrays["altitude"]), arrays["altitude"], -1.0).tolist(),
        _to_json_lists(beam_velocity),
        np.where(np.isfinite(distance), distance, -1.0).tolist(),
        np.isfinite(beam_velocity).tolist(),
        valid.tolist(),
        np.asarray(arrays["is_water"]).tolist(),
        (np.asarray(arrays["stamp"]) // NANOSECONDS_PER_MICROSECOND).tolist(),
        (np.asarray(arrays["transmission_stamp"]) // NANOSECONDS_PER_MICROSECOND).tolist(),
    )
    return "".join([_format_report(row) for row in zip(*columns, strict=True)]).encode("ascii")


def _format_report(row: tuple[Any, ...]) -> str:
    """Return one report from a row of the columns of `encode`."""
    elapsed, (vx, vy, vz), fom, covariance, altitude, *beams, valid, is_water, validity, transmission = row
    report: dict[str, Any] = {"time": elapsed, "vx": vx, "vy": vy, "vz": vz, "fom": fom, "covariance": covariance}
    if not is_water:
        report["altitude"] = altitude
    report["transducers"] = [
        {"id": i, "velocity": velocity, "distance": distance, "rssi": 0.0, "nsd": 0.0, "beam_valid": is_valid}
        for i, (velocity, distance, is_valid) in enumerate(zip(*beams, strict=True))
    ]
    report |= {"velocity_valid": valid, "status": 0}
    report |= {"tracking_mode": "water" if is_water else "bottom", "format": FORMAT}
    report |= {"type": "velocity_water" if is_water else "velocity"}
    report |= {"time_of_validity": validity, "time_of_transmission": transmission}
    return json.dumps(report, separators=(",", ":")) + "\n"


ARRAYS = (
    "velocity",
    "covariance",
    "altitude",
    "transducer_velocity",
    "transducer_distance",
    "is_water",
    "stamp",
    "transmission_stamp",
    "elapsed",
)
"""Names of the arrays in the order of `_parse_report`."""


def _parse_report(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of one report in the order of the arrays. Raises KeyError, TypeError, ValueError."""
    is_water = report["type"] == "velocity_water"
    if not is_water and report["type"] != "velocity":
        raise ValueError(report["type"])
    valid = bool(report["velocity_valid"])
    velocity = [float(report[f"v{axis}"]) if valid else math.nan for axis in "xyz"]
    beams = sorted(report["transducers"], key=lambda beam: int(beam["id"]))
    beam_velocity = [float(beam["velocity"]) if beam["beam_valid"] else math.nan for beam in beams]
    distance = [float(beam["distance"]) if beam["distance"] >= 0.0 else math.nan for beam in beams]
    altitude = float(report.get("altitude", -1.0))
    altitude = altitude if altitude >= 0.0 else math.nan
    covariance = np.array(report["covariance"], dtype=np.float64).reshape(3, 3)
    covariance = covariance if valid else np.full((3, 3), math.nan)
    stamps = (int(report[f"time_of_{name}"]) * NANOSECONDS_PER_MICROSECOND for name in ("validity", "transmission"))
    elapsed = float(report["time"]) * 1e-3
    return velocity, covariance, altitude, beam_velocity, distance, is_water, *stamps, elapsed


def decode(data: bytes) -> tuple[dict[str, AnyArray], int]:
    """Return the arrays of velocity reports, and the number of skipped lines.

    Damaged lines, other reports, and reports with another number of beams are skipped. Raises `RecordingError` for
    bytes without a velocity report.
    """
    rows: list[tuple[Any, ...]] = []
    skipped = 0
    for line in data.splitlines():
        try:
            row = _parse_report(inputs.parse_json(line))
            has_same_beams = not rows or len(row[3]) == len(rows[0][3])
            rows += [row] if has_same_beams else []
            skipped += not has_same_beams
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            skipped += bool(line.strip())
    if not rows:
        allowed = "must contain one JSON object per line"
        raise RecordingError("bytes without a velocity report", len(data), allowed=allowed)
    return {name: np.array(column) for name, column in zip(ARRAYS, zip(*rows, strict=True), strict=True)}, skipped
