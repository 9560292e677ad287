"""Device formats: pings per second, encoded and decoded, compared to a writer of one ensemble at a time.

    make bench            or            python benchmarks/bench_devices.py

Times are processor times of one core, the best of several. The first table measures the complete path: readings of the
DVL and the ADCP of examples/auv_survey.sdf are converted to instrument axes and encoded. One large block is the case of
a converted recording, blocks of 30 s that of a run. The second table measures encoders and decoders alone, on prepared
arrays. The peer of PD0 packs each field of each ensemble with `struct` and sums its bytes.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import navsense as ns
from navsense.core.readings import Reading, Truth
from navsense.devices import nmea, pd0, pd6, waterlinked
from navsense.devices.format_encoders import FORMATS
from navsense.devices.instrument_data import DopplerInstrument
from navsense.simulation.session import LONGEST_TIME_SLICE
from navsense.world import MountedSensor, World

WORLD = Path(__file__).resolve().parents[1] / "examples" / "auv_survey.sdf"
GOAL = 50_000
"""Goal: ensembles per second on one core."""

COUNT, TURNS = 10_000, 5
CELLS = 30


def measure(work: Callable[..., object], *given: object) -> float:
    """Return the smallest processor time (s) of several calls."""
    found = []
    for _ in range(TURNS):
        start = time.process_time()
        work(*given)
        found.append(time.process_time() - start)
    return min(found)


def repeat_reading(reading: Reading, count: int) -> Reading:
    """Return the published samples, repeated to this count."""
    rows = np.resize(np.flatnonzero(reading.emitted), count)
    arrays = {name: array[rows] for name, array in reading.arrays.items()}
    return replace(
        reading,
        time=reading.time[rows],
        clock_error=reading.clock_error[rows],
        arrival_after_latency=reading.arrival[rows],
        arrays=arrays,
        ideal={},
        bias={},
        turn_on_bias={},
        fault={},
        valid=reading.valid[rows],
        emitted=reading.emitted[rows],
    )


def measure_encoding(
    world: World, sensor: MountedSensor, truth: Mapping[str, Truth], reading: Reading, suffix: str
) -> float:
    """Return the number of samples that are converted and encoded per second."""
    instrument = DopplerInstrument(world, sensor)
    instrument.add_truth(truth, 0.0)
    encode = FORMATS[suffix].make_encoder(instrument, "")
    assert encode(instrument.convert_reading(reading))
    return reading.time.size / measure(lambda: encode(instrument.convert_reading(reading)))


def simulate_readings() -> Iterator[tuple[World, MountedSensor, Mapping[str, Truth], Reading]]:
    """Yield each Doppler instrument of the survey in a separate world, with its readings in one time slice."""
    world = ns.load(WORLD)
    for name in ("dvl", "adcp"):
        one = next(sensor for sensor in world.sensors if sensor.name.endswith(f"::{name}"))
        alone = replace(world, sensors=(one,))
        run = ns.simulate(alone, LONGEST_TIME_SLICE, seed=7)
        yield alone, one, run.truth, run[one.name]


def print_encoding_of_readings() -> None:
    """Print the table from readings to bytes."""
    print(f"{'readings to bytes, a second, one core':44s} {'many at once':>12s} {'30 s a block':>12s} {'goal':>14s}")
    for world, sensor, truth, reading in simulate_readings():
        block = repeat_reading(reading, int(reading.emitted.sum()))
        for suffix, kind in FORMATS.items():
            if isinstance(sensor.spec, kind.spec_types):
                rates = [
                    measure_encoding(world, sensor, truth, part, suffix)
                    for part in (repeat_reading(reading, COUNT), block)
                ]
                what = f"{kind.name} of the {sensor.spec.type}, {block.time.size} in 30 s"
                goal = f"{GOAL:14,d}" if suffix == ".pd0" else ""
                print(f"{what:44s} {rates[0]:12,.0f} {rates[1]:12,.0f} {goal}".rstrip())
    print()


def make_ensembles(cells: int) -> dict[str, Any]:
    """Return arrays of ensembles with a bottom track, and with a profile if there are cells."""
    rng = np.random.default_rng(1)
    stamp = 1_767_225_600_000_000_000 + np.arange(COUNT) * 125_000_000
    arrays: dict[str, Any] = {
        "firmware_version": 51,
        "system": 0x414B,
        "beams": 4,
        "cells": max(cells, 1),
        "coordinates": 0x1F,
        "beam_angle": math.radians(20.0),
        "ensemble_number": np.arange(1, COUNT + 1),
        "sound_speed": np.full(COUNT, 1500.0),
        "heading": rng.uniform(0.0, 6.28, COUNT),
        "pitch": rng.uniform(-0.4, 0.4, COUNT),
        "roll": rng.uniform(-0.4, 0.4, COUNT),
        "temperature": np.full(COUNT, 283.0),
        **pd0.encode_rtc(stamp),
        "depth": rng.uniform(0.0, 90.0, COUNT),
        "bottom_velocity": rng.normal(size=(COUNT, 4)),
        "bottom_range": rng.uniform(5.0, 90.0, (COUNT, 4)),
        "rest_0600": np.zeros((COUNT, 4)),
    }
    if cells:
        shape = (COUNT, cells, 4)
        arrays |= {"velocity": rng.normal(size=shape), "correlation": rng.uniform(size=shape)}
        arrays |= {"echo": rng.uniform(0.0, 100.0, shape), "percent_good": rng.uniform(size=shape)}
    return arrays


def encode_one_at_a_time(arrays: Mapping[str, Any], cells: int) -> bytes:
    """Return the same ensembles, each packed separately."""
    number = arrays["ensemble_number"].tolist()
    angles = [np.degrees(arrays[name]).tolist() for name in ("heading", "pitch", "roll")]
    depth, clock = arrays["depth"].tolist(), arrays["rtc_y2k"].tolist()
    track, slant = arrays["bottom_velocity"].tolist(), arrays["bottom_range"].tolist()
    profiles = [
        arrays[name].reshape(COUNT, -1).tolist()
        for name in ("velocity", "correlation", "echo", "percent_good")
        if cells
    ]
    fixed = struct.pack("<HBBH", 0, 51, 0, 0x414B) + bytes((0, 0, 4, max(cells, 1)))
    fixed = (fixed.ljust(25, b"\0") + b"\x1f").ljust(58, b"\0") + bytes((20,))
    out = []
    for i, row in enumerate(number):
        heading, pitch, roll = (round(100.0 * column[i]) for column in angles)
        leader = struct.pack("<HH7BB", 0x80, row & 0xFFFF, *clock[i][1:], row >> 16)
        leader += struct.pack("<HHHHhhHh", 0, 1500, round(10.0 * depth[i]), heading, pitch, roll, 0, 985)
        types = [fixed, leader.ljust(57, b"\0") + bytes(clock[i])]
        if cells:
            counts = [max(-32767, min(32767, round(1e3 * v))) for v in profiles[0][i]]
            types.append(struct.pack(f"<H{4 * cells}h", 0x100, *counts))
            for k, scale in ((1, 255.0), (2, 1.0 / 0.45), (3, 100.0)):
                types.append(struct.pack("<H", 0x100 * (k + 1)) + bytes([round(scale * v) for v in profiles[k][i]]))
        centimetres = [round(100.0 * r) for r in slant[i]]
        bottom = struct.pack(
            "<H14x4H4h", 0x600, *(r & 0xFFFF for r in centimetres), *(round(1e3 * v) for v in track[i])
        )
        types.append(bottom.ljust(77, b"\0") + bytes(r >> 16 for r in centimetres) + bytes(4))
        offsets, at = [], 6 + 2 * len(types)
        for part in types:
            offsets.append(at)
            at += len(part)
        ensemble = (
            struct.pack(f"<HHBB{len(types)}H", 0x7F7F, at + 2, 0, len(types), *offsets) + b"".join(types) + bytes(2)
        )
        out.append(ensemble + struct.pack("<H", sum(ensemble) & 0xFFFF))
    return b"".join(out)


def list_text_formats() -> dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]]:
    """Return the encoder and decoder of each text format."""
    rng = np.random.default_rng(2)
    one: dict[str, Any] = {
        name: rng.uniform(1.0, 6.0, COUNT) for name in ("heading", "pitch", "roll", "salinity", "depth", "altitude")
    }
    one |= {
        "sound_speed": np.full(COUNT, 1500.0),
        "temperature": np.full(COUNT, 283.0),
        "max_range": np.full(COUNT, 90.0),
    }
    one |= {
        "stamp": np.arange(COUNT) * 125_000_000,
        "transmission_stamp": np.arange(COUNT) * 125_000_000,
        "elapsed": np.full(COUNT, 0.125),
    }
    for track in pd6.TRACKS:
        one |= {f"{track}_{name}": rng.normal(size=(COUNT, n)) for name, n in pd6.VELOCITY_LINES.values()}
        one |= {
            f"{track}_distance": rng.normal(size=(COUNT, 3)),
            f"{track}_range": one["altitude"],
            f"{track}_age": one["pitch"],
        }
    one |= {"velocity": rng.normal(size=(COUNT, 3)), "covariance": np.tile(np.eye(3), (COUNT, 1, 1))}
    one |= {
        "transducer_velocity": rng.normal(size=(COUNT, 4)),
        "transducer_distance": rng.uniform(1.0, 9.0, (COUNT, 4)),
    }
    one |= {"is_water": np.zeros(COUNT, dtype=np.bool_)}
    one |= {"water": rng.normal(size=(COUNT, 2)), "ground": rng.normal(size=(COUNT, 2))}
    return {
        "PD6, ten lines": (lambda: pd6.encode(one), pd6.decode),
        "Water Linked, one report": (lambda: waterlinked.encode(one), waterlinked.decode),
        "NMEA, three sentences": (lambda: nmea.encode(one), nmea.decode),
    }


def main() -> None:
    """Print the tables."""
    print_encoding_of_readings()
    what = "encoders alone, a second, one core"
    print(f"{what:44s} {'encoded':>12s} {'decoded':>12s} {'one at a time':>14s} {'ratio':>7s}")
    for cells, what in ((0, "PD0, bottom track"), (CELLS, f"PD0, bottom track and {CELLS} cells")):
        arrays = make_ensembles(cells)
        encoded = pd0.encode(arrays)
        assert encoded == encode_one_at_a_time(arrays, cells)
        ours, back = measure(pd0.encode, arrays), measure(pd0.decode, encoded)
        theirs = measure(encode_one_at_a_time, arrays, cells)
        rates = [COUNT / spent for spent in (ours, back, theirs)]
        print(f"{what:44s} {rates[0]:12,.0f} {rates[1]:12,.0f} {rates[2]:14,.0f} {theirs / ours:6.1f}x")
    for what, (encode, decode) in list_text_formats().items():
        encoded = encode()
        ours, back = measure(encode), measure(decode, encoded)
        print(f"{what:44s} {COUNT / ours:12,.0f} {COUNT / back:12,.0f}")


if __name__ == "__main__":
    main()
