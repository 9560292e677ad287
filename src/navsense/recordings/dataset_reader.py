"""Recordings read back as the objects that they were made from."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from navsense import inputs
from navsense.errors import SinkError, Where
from navsense.recordings import csv_tables, euroc, message_reader, metadata, parquet_reader
from navsense.recordings.base import open_for_reading, os_error, recovery_command, to_path
from navsense.recordings.dataset import Dataset, collect
from navsense.recordings.device_writers import device_suffix
from navsense.recordings.mcap_recovery import NOT_RECOVERABLE
from navsense.recordings.reading_assembler import ReadingAssembler
from navsense.recordings.records import DamagedError
from navsense.series import ARRAY_GROUPS, TRUTH_ARRAYS, Current, Reading, Truth
from navsense.typing import AnyArray, FloatArray


def open_recording(path: str | os.PathLike[str]) -> Dataset:
    """Return the readings and truth of a recording of any format.

    Those of `.npz`, `.parquet` and a folder of CSV are bit for bit what they were; messages hold what `docs` say of
    them, one run, and no row that was dropped. Raise `SinkError` for what is no recording, is damaged or was cut off.
    """
    path = to_path(path)
    if message_reader.is_message_recording(path):
        return _read_messages(path)
    if device_suffix(path):
        remedy = "read it with navsense.devices, or see what it holds with: navsense info"
        raise SinkError("is what an instrument sends, and no recording", where=Where(str(path)), remedy=remedy)
    if path.suffix.lower() in (".csv", ".euroc") or path.is_dir():
        return _read_folder(path)
    if path.suffix.lower() == ".parquet":
        return Dataset(*parquet_reader.read(path))
    with open_archive(path) as archive:
        return _read_archive(archive)


def _read_messages(path: Path) -> Dataset:
    """Return what the messages of a recording say."""
    with message_reader.open_messages(path) as source:
        reader = ReadingAssembler(source)
        readings, truth, current = collect(reader.iter_slices())
        heads = {name: metadata.sensor_header(reader.header, name, reading) for name, reading in readings.items()}
        flow = None if current is None else metadata.current_header(current)
        return Dataset(
            readings,
            truth,
            metadata.parse_metadata(metadata.format_metadata(reader.header, heads, truth, flow)),
            current,
        )


def _read_folder(path: Path) -> Dataset:
    """Return what a folder of CSV tables holds, ours or those of EuRoC."""
    folder = path if path.is_dir() else csv_tables.folder_path(path)
    if not folder.is_dir() and recovery_command(path):
        raise os_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), "read")
    if not folder.is_dir():
        raise SinkError(
            "is no recording",
            path.suffix,
            allowed="of CSV a recording is a folder: that of our own tables, or that of EuRoC",
            where=Where(str(path)),
            remedy="name the folder; a single table is read by what asks for it, as --motion or calibrate",
        )
    return euroc.read(folder) if euroc.find_root(folder) else csv_tables.read(folder)


@contextmanager
def open_archive(path: Path) -> Iterator[Mapping[str, AnyArray]]:
    """Yield the arrays of an archive; whatever a damaged one makes NumPy raise becomes a `SinkError`."""
    with open_for_reading(path) as file:
        try:
            _check_archive(file)
            metadata.check_expansion(path, inputs.archive_expansion_problem(file))
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except SinkError:
            raise
        except zipfile.BadZipFile as error:
            remedy = NOT_RECOVERABLE if path.suffix.lower() == ".npz" else ""
            raise metadata.not_recording_error(
                path, "it is no NumPy archive, or was cut off or damaged", remedy
            ) from error
        except Exception as error:
            raise metadata.damaged_error(path, error) from error


def _check_archive(file: BinaryIO) -> None:
    """Raise where a file does not begin as an archive does: NumPy would take it for something else."""
    if file.read(4) != b"PK\x03\x04":
        raise zipfile.BadZipFile
    file.seek(0)


def read_metadata(archive: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return what an archive says of itself."""
    return metadata.parse_metadata(str(archive["meta"]))


def read_times(archive: Mapping[str, AnyArray], name: str) -> FloatArray:
    """Return the times of a sensor or of a link's truth."""
    time = archive[f"{name}/time"]
    _check_array(f"{name}/time", time, (time.size,), "f")
    if time.ndim != 1:
        raise DamagedError(f"damaged: array {name}/time has {time.ndim} axes")
    return time


def _check_array(key: str, array: AnyArray, shape: tuple[int, ...], kinds: str = "fiub") -> None:
    """Raise where an array's first axes are not those of `shape`, or its numbers of another kind."""
    if array.shape[: len(shape)] != shape or array.dtype.kind not in kinds:
        raise DamagedError(f"damaged: array {key} is {array.dtype} {array.shape}, which does not fit its times")


def _read_arrays(
    archive: Mapping[str, AnyArray], prefix: str, keys: Any, shape: tuple[int, ...]
) -> dict[str, AnyArray]:
    """Return arrays by their keys behind `prefix`; their first axes must be `shape`."""
    out = {}
    for key in keys:
        out[key] = archive[prefix + key]
        _check_array(prefix + key, out[key], shape)
    return out


def _read_reading(archive: Mapping[str, AnyArray], name: str, header: Mapping[str, Any]) -> Reading:
    """Return what an archive holds of one sensor."""
    time = read_times(archive, name)
    clock_error = archive[f"{name}/clock_error"]
    shape = (*clock_error.shape[:-1], time.size)
    _check_array(f"{name}/clock_error", clock_error, shape, "f")
    flags = {key: archive[f"{name}/{key}"] for key in ("valid", "emitted")}
    for key, flag in flags.items():
        _check_array(f"{name}/{key}", flag, shape, "b")
        if flag.ndim != len(shape):
            raise DamagedError(f"damaged: array {name}/{key} has too many axes")
    arrivals = archive[f"{name}/arrival"] if header.get("latency") else None
    if arrivals is not None:
        _check_array(f"{name}/arrival", arrivals, shape, "f")
    varied = bool(header["ideal_in_runs"])
    groups = {
        group: _read_arrays(
            archive,
            f"{name}/" if group == "arrays" else f"{name}/{group}/",
            header[group],
            time.shape if group == "ideal" and not varied else shape,
        )
        for group in ARRAY_GROUPS
    }
    return Reading(
        name=name,
        type=header["type"],
        frame=header["frame"],
        unit=header["unit"],
        time=time,
        clock_error=clock_error,
        epoch=header["epoch"],
        arrivals=arrivals,
        arrays=groups["arrays"],
        ideal=groups["ideal"],
        bias=groups["bias"],
        turn_on_bias=groups["turn_on_bias"],
        fault=groups["fault"],
        ideal_in_runs=varied,
        **flags,
    )


def _read_truth(archive: Mapping[str, AnyArray], name: str, epoch: int) -> Truth:
    """Return what an archive holds of one link."""
    time = read_times(archive, f"truth/{name}")
    arrays = _read_arrays(archive, f"truth/{name}/", TRUTH_ARRAYS, time.shape)
    for key, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != (4 if key == "orientation" else 3):
            raise DamagedError(f"damaged: array truth/{name}/{key} is {array.shape}")
    return Truth(name=name, time=time, epoch=epoch, **arrays)


def _read_current(archive: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Current | None:
    """Return the water's velocity, None where the archive has none."""
    if "current" not in about:
        return None
    time, velocity, head = read_times(archive, "current"), archive["current/velocity"], about["current"]
    if velocity.ndim not in (2, 3) or velocity.shape[-2:] != (time.size, 3) or velocity.dtype.kind != "f":
        raise DamagedError(f"damaged: array current/velocity is {velocity.dtype} {velocity.shape}")
    layers = metadata.make_layers(head)
    if layers is not None:
        layers = replace(layers, velocity=archive["current/layers"])
        if layers.velocity.shape != (*velocity.shape[:-1], len(layers.depths), 3) or layers.velocity.dtype.kind != "f":
            raise DamagedError(f"damaged: array current/layers is {layers.velocity.dtype} {layers.velocity.shape}")
    return Current(head["topic"], tuple(head["position"]), time, velocity, head["epoch"], layers)


def _read_archive(archive: Mapping[str, AnyArray]) -> Dataset:
    """Return an archive's contents."""
    about = read_metadata(archive)
    readings = {name: _read_reading(archive, name, head) for name, head in about["sensors"].items()}
    truth = {name: _read_truth(archive, name, about["epoch"]) for name in about["links"]}
    return Dataset(readings, truth, about, _read_current(archive, about))
