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
from navsense.series import TRUTH_ARRAYS, Current, Reading, Truth
from navsense.sinks import euroc, meta, parquet_read, sources, tables
from navsense.sinks.base import opened, os_error, recovery_command, to_path
from navsense.sinks.device import suffix_of
from navsense.sinks.read import MessageReader
from navsense.sinks.records import DamagedError
from navsense.sinks.recover import NO_RESCUE
from navsense.sinks.stored import Loaded, gathered
from navsense.typing import AnyArray, FloatArray


def load(path: str | os.PathLike[str]) -> Loaded:
    """Return the readings and truth of a recording of any format.

    Those of `.npz`, `.parquet` and a folder of CSV are bit for bit what they were; messages hold what `docs` say of
    them, one run, and no row that was dropped. Raise `SinkError` for what is no recording, is damaged or was cut off.
    """
    path = to_path(path)
    if sources.is_container(path):
        return _of_messages(path)
    if suffix_of(path):
        remedy = "read it with navsense.devices, or see what it holds with: navsense info"
        raise SinkError("is what an instrument sends, and no recording", where=Where(str(path)), remedy=remedy)
    if path.suffix.lower() in (".csv", ".euroc") or path.is_dir():
        return _of_folder(path)
    if path.suffix.lower() == ".parquet":
        return Loaded(*parquet_read.read(path))
    with archive_of(path) as archive:
        return _loaded(archive)


def _of_messages(path: Path) -> Loaded:
    """Return what the messages of a recording say."""
    with sources.opened(path) as source:
        reader = MessageReader(source)
        readings, truth, current = gathered(reader.slabs())
        heads = {name: meta.head_of(reader.recording, name, reading) for name, reading in readings.items()}
        flow = None if current is None else meta.current_head(current)
        return Loaded(readings, truth, meta.parsed(meta.text_of(reader.recording, heads, truth, flow)), current)


def _of_folder(path: Path) -> Loaded:
    """Return what a folder of CSV tables holds, ours or those of EuRoC."""
    folder = path if path.is_dir() else tables.folder_of(path)
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
    return euroc.read(folder) if euroc.root_of(folder) else tables.read(folder)


@contextmanager
def archive_of(path: Path) -> Iterator[Mapping[str, AnyArray]]:
    """Yield the arrays of an archive; whatever a damaged one makes NumPy raise becomes a `SinkError`."""
    with opened(path) as file:
        try:
            _check_archive(file)
            meta.check_expansion(path, inputs.archive_expansion_problem(file))
            with np.load(file, allow_pickle=False) as archive:
                yield archive
        except SinkError:
            raise
        except zipfile.BadZipFile as error:
            remedy = NO_RESCUE if path.suffix.lower() == ".npz" else ""
            raise meta.no_recording(path, "it is no NumPy archive, or was cut off or damaged", remedy) from error
        except Exception as error:
            raise meta.damage(path, error) from error


def _check_archive(file: BinaryIO) -> None:
    """Raise where a file does not begin as an archive does: NumPy would take it for something else."""
    if file.read(4) != b"PK\x03\x04":
        raise zipfile.BadZipFile
    file.seek(0)


def meta_of(archive: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return what an archive says of itself."""
    return meta.parsed(str(archive["meta"]))


def time_of(archive: Mapping[str, AnyArray], name: str) -> FloatArray:
    """Return the times of a sensor or of a link's truth."""
    time = archive[f"{name}/time"]
    _check(f"{name}/time", time, (time.size,), "f")
    if time.ndim != 1:
        raise DamagedError(f"damaged: array {name}/time has {time.ndim} axes")
    return time


def _check(key: str, array: AnyArray, shape: tuple[int, ...], kinds: str = "fiub") -> None:
    """Raise where an array's first axes are not those of `shape`, or its numbers of another kind."""
    if array.shape[: len(shape)] != shape or array.dtype.kind not in kinds:
        raise DamagedError(f"damaged: array {key} is {array.dtype} {array.shape}, which does not fit its times")


def _arrays(archive: Mapping[str, AnyArray], prefix: str, keys: Any, shape: tuple[int, ...]) -> dict[str, AnyArray]:
    """Return arrays by their keys behind `prefix`; their first axes must be `shape`."""
    out = {}
    for key in keys:
        out[key] = archive[prefix + key]
        _check(prefix + key, out[key], shape)
    return out


def _reading(archive: Mapping[str, AnyArray], name: str, head: Mapping[str, Any]) -> Reading:
    """Return what an archive holds of one sensor."""
    time = time_of(archive, name)
    clock_error = archive[f"{name}/clock_error"]
    shape = (*clock_error.shape[:-1], time.size)
    _check(f"{name}/clock_error", clock_error, shape, "f")
    flags = {key: archive[f"{name}/{key}"] for key in ("valid", "emitted")}
    for key, flag in flags.items():
        _check(f"{name}/{key}", flag, shape, "b")
        if flag.ndim != len(shape):
            raise DamagedError(f"damaged: array {name}/{key} has too many axes")
    arrivals = archive[f"{name}/arrival"] if head.get("latency") else None
    if arrivals is not None:
        _check(f"{name}/arrival", arrivals, shape, "f")
    varied = bool(head.get("truth_in_runs"))
    return Reading(
        name=name,
        type=head["type"],
        frame=head["frame"],
        unit=head["unit"],
        time=time,
        clock_error=clock_error,
        arrays=_arrays(archive, f"{name}/", head["arrays"], shape),
        truth=_arrays(archive, f"{name}/truth/", head["truth"], shape if varied else time.shape),
        errors=_arrays(archive, f"{name}/errors/", head["errors"], shape),
        epoch=head["epoch"],
        arrivals=arrivals,
        truth_in_runs=varied,
        **flags,
    )


def _truth(archive: Mapping[str, AnyArray], name: str, epoch: int) -> Truth:
    """Return what an archive holds of one link."""
    time = time_of(archive, f"truth/{name}")
    arrays = _arrays(archive, f"truth/{name}/", TRUTH_ARRAYS, time.shape)
    for key, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != (4 if key == "orientation" else 3):
            raise DamagedError(f"damaged: array truth/{name}/{key} is {array.shape}")
    return Truth(name=name, time=time, epoch=epoch, **arrays)


def _current(archive: Mapping[str, AnyArray], about: Mapping[str, Any]) -> Current | None:
    """Return the water's velocity, None where the archive has none."""
    if "current" not in about:
        return None
    time, velocity, head = time_of(archive, "current"), archive["current/velocity"], about["current"]
    if velocity.ndim not in (2, 3) or velocity.shape[-2:] != (time.size, 3) or velocity.dtype.kind != "f":
        raise DamagedError(f"damaged: array current/velocity is {velocity.dtype} {velocity.shape}")
    layers = meta.layers_of(head)
    if layers is not None:
        layers = replace(layers, velocity=archive["current/layers"])
        if layers.velocity.shape != (*velocity.shape[:-1], len(layers.depths), 3) or layers.velocity.dtype.kind != "f":
            raise DamagedError(f"damaged: array current/layers is {layers.velocity.dtype} {layers.velocity.shape}")
    return Current(head["topic"], tuple(head["position"]), time, velocity, head["epoch"], layers)


def _loaded(archive: Mapping[str, AnyArray]) -> Loaded:
    """Return an archive's contents."""
    about = meta_of(archive)
    readings = {name: _reading(archive, name, head) for name, head in about["sensors"].items()}
    truth = {name: _truth(archive, name, about["epoch"]) for name in about["links"]}
    return Loaded(readings, truth, about, _current(archive, about))
