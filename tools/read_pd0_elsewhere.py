"""Compare PD0 from navsense with two other readers: mhkit's DOLfYN and adcpreader.

The readers have a separate environment, which the script creates on its first run (about 700 MB) under `.cache`. If
this fails, the script says so and compares nothing. Both read a log in earth coordinates with profile and bottom track,
and one in beam coordinates, which mhkit transforms to earth by the attitude in the leader. Velocities, ranges, times,
attitude, depth and temperature must equal the written values. Known differences are excluded: mhkit drops the last
ensemble; adcpreader reads 16 bits of a range, divides the depth twice, and its time is off by fractions of a second.

Usage: python tools/read_pd0_elsewhere.py        exit code 1 if a reader disagrees
"""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "pd0-readers"
READERS = ("mhkit==1.1.2", "adcpreader==0.2.1")

COUNT, CELLS = 60, 8
ANGLE = 20


class AbsentError(Exception):
    """The readers are not available."""


def find_python() -> Path:
    """Return the interpreter of the readers' environment; create the environment if needed."""
    python, mark = PLACE / "bin" / "python", PLACE / "readers.txt"
    requirements = "\n".join(READERS)
    if mark.is_file() and mark.read_text(encoding="utf-8") == requirements:
        return python
    print(f"making an environment for {', '.join(READERS)}: a few minutes", flush=True)
    venv.create(PLACE, clear=True, with_pip=True)
    command = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *READERS)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise AbsentError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip failed")
    mark.write_text(requirements, encoding="utf-8")
    return python


def read_with_mhkit(path: str) -> dict[str, Any]:
    """Return the content as read by mhkit, in earth coordinates. Runs in the other environment."""
    dolfyn = importlib.import_module("mhkit.dolfyn")
    data = dolfyn.read(path)
    if data.attrs["coord_sys"] == "beam":
        data = dolfyn.rotate2(data, "earth", inplace=False)
    named = {name: data[name] for name in ("heading", "pitch", "roll", "depth", "number")}
    named |= {"temperature": data["temp"], "range": data["dist_bt"].T, "bottom": data["vel_bt"].T}
    named["velocity"] = data["vel"].transpose("time", "range", "dir")
    arrays = {name: array.values.astype(float).tolist() for name, array in named.items()}
    return arrays | {"time": (data["time"].values.astype("int64") / 1e9).tolist()}


def seconds(century: int, year: int, month: int, day: int, hour: int, minute: int, second: int, part: int) -> float:
    """Return the time since 1970 (s) of a clock's fields."""
    date = datetime(100 * century + year, month, day, hour, minute, second, tzinfo=UTC)
    return date.timestamp() + 0.01 * part


def read_with_adcpreader(path: str) -> dict[str, Any]:
    """Return the content as read by adcpreader. Runs in the other environment."""
    ensembles = list(importlib.import_module("adcpreader.rdi_reader").PD0().ensemble_generator([path]))
    leaders = [ensemble["variable_leader"] for ensemble in ensembles]
    bottoms = [ensemble["bottom_track"] for ensemble in ensembles]
    profiles = [ensemble["velocity"] for ensemble in ensembles]
    names = {"heading": "Heading", "pitch": "Pitch", "roll": "Roll", "number": "Ensnum", "temperature": "Temp"}
    arrays: dict[str, Any] = {name: [float(row[key]) for row in leaders] for name, key in names.items()}
    arrays["time"] = [seconds(*row["RTCY2K"]) for row in leaders]
    arrays["bottom"] = [[float(row[f"BTVel{k}"]) for k in range(1, 5)] for row in bottoms]
    arrays["range"] = [[float(row[f"Range{k}"]) for k in range(1, 5)] for row in bottoms]
    columns = [[[float(v) for v in row[f"Velocity{k}"]] for k in range(1, 5)] for row in profiles]
    arrays["velocity"] = [[list(cell) for cell in zip(*column, strict=True)] for column in columns]
    return arrays


def write_logs(folder: Path) -> dict[str, Any]:
    """Write the logs; return their content with the names of the readers."""
    import numpy as np

    from navsense.devices import pd0, rdi_frames

    rng = np.random.default_rng(7)
    heading, pitch, roll = rng.uniform(0.0, 6.28, COUNT), *rng.uniform(-0.4, 0.4, (2, COUNT))
    turn = rdi_frames.make_rotation(heading, pitch, roll)
    earth, bottom = rng.uniform(-2.0, 2.0, (COUNT, CELLS, 3)), rng.uniform(-2.0, 2.0, (COUNT, 3))
    angle = math.radians(ANGLE)
    s, c = math.sin(angle), math.cos(angle)
    towards = np.array(((s, 0.0, c), (-s, 0.0, c), (0.0, -s, c), (0.0, s, c)))
    stamp = 1_767_225_600_000_000_000 + np.arange(COUNT) * 250_000_000
    deep, warm = rng.uniform(1.0, 90.0, COUNT), rng.uniform(275.0, 300.0, COUNT)
    near, far = rng.uniform(5.0, 80.0, (COUNT, 4)), rng.uniform(700.0, 900.0, (COUNT, 4))
    common: dict[str, Any] = {
        "firmware_version": 51,
        "firmware_revision": 40,
        "system": 0x414B,
        "beams": 4,
        "cells": CELLS,
        "pings": 1,
        "cell_size": 2.0,
        "blank": 0.88,
        "first_cell": 3.88,
        "transmit_length": 4.0,
        "serial": 7,
        "beam_angle": angle,
        "ensemble_number": np.arange(1, COUNT + 1),
        "sound_speed": 1500.0,
        "salinity": 35,
        "heading": heading,
        "pitch": pitch,
        "roll": roll,
        "depth": deep,
        "temperature": warm,
        **pd0.encode_rtc(stamp),
        "percent_good": np.ones((COUNT, CELLS, 4)),
        "correlation": np.ones((COUNT, CELLS, 4)),
        "echo": np.full((COUNT, CELLS, 4), 60.0),
        "bottom_pings": 1,
        "bottom_correlation": np.ones(4),
        "bottom_percent_good": np.ones(4),
        "bottom_range_high": 0,
        "rest_0600": np.zeros(4),
    }
    fourth = np.zeros((COUNT, CELLS, 1))
    values: dict[str, Any] = {
        "velocity": np.concatenate((earth, fourth), axis=2),
        "bottom_range": near,
        "coordinates": 0x1F,
    }
    values |= {"bottom_velocity": np.concatenate((bottom, fourth[:, 0]), axis=1)}
    (folder / "earth.pd0").write_bytes(pd0.encode(common | values))
    inverse = turn.transpose(0, 2, 1)
    beams: dict[str, Any] = {"velocity": (inverse[:, None] @ earth[..., None])[..., 0] @ towards.T, "coordinates": 0x07}
    beams |= {"bottom_velocity": (inverse @ bottom[..., None])[..., 0] @ towards.T, "bottom_range": far}
    (folder / "beam.pd0").write_bytes(pd0.encode(common | beams))
    degrees = {name: np.degrees(value) for name, value in (("heading", heading), ("pitch", pitch), ("roll", roll))}
    return {
        **{name: value.tolist() for name, value in degrees.items()},
        "number": list(range(1, COUNT + 1)),
        "time": (stamp / 1e9).tolist(),
        "depth": deep.tolist(),
        "temperature": (warm - 273.15).tolist(),
        "range": near.tolist(),
        "far": far.tolist(),
        "velocity": values["velocity"].tolist(),
        "bottom": values["bottom_velocity"].tolist(),
    }


STEPS = {"heading": 0.01, "pitch": 0.01, "roll": 0.01, "number": 0.0, "time": 0.01, "depth": 0.1, "temperature": 0.01}
"""Resolution of a value in PD0, in its unit."""

SINGLE = 1e-6
"""Relative error of a reader in single precision."""


def find_disagreements(
    name: str, arrays: Mapping[str, Any], truth: Mapping[str, Any], *, turned: bool
) -> Iterator[str]:
    """Yield the differences of a reader. `turned` velocities also have the rounding of beams and attitude."""
    import numpy as np

    count = len(arrays["number"])
    for key, value in arrays.items():
        expected = truth["far"] if key == "range" and turned else truth[key]
        read, expected = np.array(value), np.array(expected)[:count]
        if key in ("bottom", "velocity"):
            read, expected = (read[..., :3], expected[..., :3]) if turned else (read, expected)
            # Half a step of each of four beams by a = 1.46, and 0.005 degrees of each angle of 3.5 m/s.
            bound = 0.5e-3 * (2.0 * 1.4619 + 0.5) + 3.0 * math.radians(0.005) * 3.5 if turned else 0.5e-3
        else:
            bound = 0.5 * STEPS.get(key, 0.01)
        bound += SINGLE * max(float(np.abs(expected).max()), 1.0) if key != "time" else 1e-6
        off = float(np.abs(read - expected).max())
        if read.shape != expected.shape or not off <= bound:
            yield f"{name}: {key} is off by {off:g}, more than {bound:g}"


def compare() -> list[str]:
    """Write logs, read them, and return the differences."""
    disagreements: list[str] = []
    inside = find_python()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_logs(folder)
        for reader, log, least in (
            ("mhkit", "earth", COUNT - 1),
            ("mhkit", "beam", COUNT - 1),
            ("adcpreader", "earth", COUNT),
        ):
            out = folder / "read.json"
            command = (str(inside), "-W", "ignore", __file__, "--inside", reader, str(folder / f"{log}.pd0"), str(out))
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                disagreements.append(f"{reader} fails on {log} coordinates: {done.stderr.strip().splitlines()[-1]}")
                continue
            read = json.loads(out.read_text(encoding="utf-8"))
            if len(read["number"]) != least:
                disagreements.append(f"{reader}: {len(read['number'])} ensembles, not {least}")
            wrong = list(find_disagreements(f"{reader}, {log}", read, truth, turned=log == "beam"))
            print(
                f"{reader}, {log} coordinates: {len(read['number'])} ensembles, {'otherwise' if wrong else 'the same'}"
            )
            disagreements += wrong
    return disagreements


def main() -> None:
    """Compare, or read as a child process in the environment of the readers."""
    if sys.argv[1:2] == ["--inside"]:
        reader, path, out = sys.argv[2:]
        read = {"mhkit": read_with_mhkit, "adcpreader": read_with_adcpreader}[reader](path)
        Path(out).write_text(json.dumps(read), encoding="utf-8")
        return
    try:
        wrong = compare()
    except AbsentError as missing:
        print(f"PD0 is not read elsewhere: {missing}")
        return
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
