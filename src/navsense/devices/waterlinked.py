"""Reports of velocity as Water Linked's DVLs send them: one JSON object a line.

    time ms, vx vy vz m/s, fom m/s, covariance (m/s)^2, altitude m, transducers [{id, velocity m/s, distance m, rssi,
    nsd, beam_valid}], velocity_valid, status, tracking_mode, format, type, time_of_validity us, time_of_transmission us

x is forward, y right, z down; a transducer's velocity is positive when the DVL moves along its beam, its distance
slant. `fom` is the root of the largest eigenvalue of the covariance. `time` is from one report to the next. Under
`velocity_water` there is no altitude. What is not known is as in a report of no bottom: velocities 0, altitude and
distance -1, all marked not valid; of a covariance that is not known `UNKNOWN_FOM` stands. Signal and noise (rssi, nsd)
are not simulated, and 0.

Arrays (n, ...): `stamp`, `sent` ns; `velocity` (n, 3), `covariance` (n, 3, 3), `altitude` (n,), `transducer_velocity`,
`transducer_distance` (n, k), `is_water` (n,), `elapsed` s. There is no dead-reckoned report (`position_local`): it is
made of the device's own gyroscopes, which are not simulated.

Source: Water Linked, DVL A50/A125 TCP JSON API (json_v3.2), and its example of no bottom; that transducers 0 to 3 look
aft right, aft left, forward left and forward right, and the sign of their velocities, follow from the figures of its
example.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from navsense import inputs
from navsense.errors import RecordingError
from navsense.typing import AnyArray, BoolArray, FloatArray

FORMAT = "json_v3.2"

UNKNOWN_FOM = 1e3
"""m/s: figure of merit of a velocity that is not known, or of a covariance that is not."""

AZIMUTHS = (0.75 * math.pi, -0.75 * math.pi, -0.25 * math.pi, 0.25 * math.pi)
"""rad, from forward to the right, of transducers 0 to 3."""

MICROSECOND = 1000
"""ns."""

ROUNDING_SHARE = 1e-12
"""Of the largest part of a covariance: what is no more is left over from turning it, and none."""


def _to_json_lists(values: AnyArray) -> list[Any]:
    """Return rows as lists of numbers that JSON has: 0 for what is not known."""
    found: list[Any] = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0).tolist()
    return found


def compute_fom(covariance: FloatArray) -> FloatArray:
    """Return the figures of merit (n,) m/s of covariances (n, 3, 3)."""
    largest = np.asarray(np.linalg.eigvalsh(covariance), dtype=np.float64)[:, -1]
    return np.sqrt(np.maximum(largest, 0.0))


def encode(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return one line a row."""
    velocity = np.asarray(arrays["velocity"], dtype=np.float64)
    valid: BoolArray = np.asarray(np.isfinite(velocity).all(axis=1))
    square = np.asarray(arrays["covariance"], dtype=np.float64)
    sure: BoolArray = valid & np.isfinite(square).all(axis=(1, 2))
    square = np.where(sure[:, None, None], square, UNKNOWN_FOM**2 * np.eye(3))
    square = np.where(
        np.abs(square) > ROUNDING_SHARE * np.abs(square).max(axis=(1, 2), keepdims=True, initial=0.0), square, 0.0
    )
    distance = np.asarray(arrays["transducer_distance"], dtype=np.float64)
    along = np.asarray(arrays["transducer_velocity"], dtype=np.float64)
    columns: tuple[list[Any], ...] = (
        _to_json_lists(1e3 * np.asarray(arrays["elapsed"])),
        _to_json_lists(np.where(valid[:, None], velocity, math.nan)),
        compute_fom(square).tolist(),
        square.tolist(),
        np.where(np.isfinite(arrays["altitude"]), arrays["altitude"], -1.0).tolist(),
        _to_json_lists(along),
        np.where(np.isfinite(distance), distance, -1.0).tolist(),
        np.isfinite(along).tolist(),
        valid.tolist(),
        np.asarray(arrays["is_water"]).tolist(),
        (np.asarray(arrays["stamp"]) // MICROSECOND).tolist(),
        (np.asarray(arrays["sent"]) // MICROSECOND).tolist(),
    )
    return "".join([_format_report(*row) for row in zip(*columns, strict=True)]).encode("ascii")


def _format_report(
    elapsed: float,
    velocity: list[float],
    fom: float,
    covariance: list[list[float]],
    altitude: float,
    along: list[float],
    distance: list[float],
    valid_beams: list[bool],
    valid: bool,
    is_water: bool,
    validity: int,
    sent: int,
) -> str:
    """Return one report."""
    transducers = [
        {"id": i, "velocity": v, "distance": d, "rssi": 0.0, "nsd": 0.0, "beam_valid": is_heard}
        for i, (v, d, is_heard) in enumerate(zip(along, distance, valid_beams, strict=True))
    ]
    report: dict[str, Any] = {"time": elapsed, "vx": velocity[0], "vy": velocity[1], "vz": velocity[2]}
    report |= {"fom": fom, "covariance": covariance}
    if not is_water:
        report["altitude"] = altitude
    report |= {"transducers": transducers, "velocity_valid": valid, "status": 0}
    report |= {"tracking_mode": "water" if is_water else "bottom", "format": FORMAT}
    report |= {"type": "velocity_water" if is_water else "velocity"}
    report |= {"time_of_validity": validity, "time_of_transmission": sent}
    return json.dumps(report, separators=(",", ":")) + "\n"


KEYS = ("velocity", "covariance", "altitude", "transducer_velocity", "transducer_distance")


def _parse_report(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the numbers of one report, in the order of the arrays. Raises KeyError, TypeError, ValueError."""
    is_water = report["type"] == "velocity_water"
    if not is_water and report["type"] != "velocity":
        raise ValueError(report["type"])
    valid = bool(report["velocity_valid"])
    velocity = [float(report[f"v{axis}"]) if valid else math.nan for axis in "xyz"]
    beams = sorted(report["transducers"], key=lambda one: int(one["id"]))
    along = [float(one["velocity"]) if one["beam_valid"] else math.nan for one in beams]
    slant = [float(one["distance"]) if one["distance"] >= 0.0 else math.nan for one in beams]
    altitude = float(report.get("altitude", -1.0))
    square = np.array(report["covariance"], dtype=np.float64).reshape(3, 3)
    square = square if valid else np.full((3, 3), math.nan)
    stamp, sent = (int(report[f"time_of_{name}"]) * MICROSECOND for name in ("validity", "transmission"))
    seconds = float(report["time"]) * 1e-3
    return velocity, square, altitude if altitude >= 0.0 else math.nan, along, slant, is_water, stamp, sent, seconds


def decode(data: bytes) -> tuple[dict[str, AnyArray], int]:
    """Return the arrays of the reports of velocity, and how many lines are damaged, of another kind or of other beams.

    Raises `RecordingError` where bytes hold none.
    """
    rows: list[tuple[Any, ...]] = []
    skipped = 0
    for line in data.splitlines():
        try:
            row = _parse_report(inputs.parse_json(line))
            is_like = not rows or len(row[3]) == len(rows[0][3])
            rows += [row] if is_like else []
            skipped += not is_like
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            skipped += bool(line.strip())
    if not rows:
        raise RecordingError("no report of a velocity in bytes", len(data), allowed="must hold one JSON object a line")
    names = (*KEYS, "is_water", "stamp", "sent", "elapsed")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}, skipped
