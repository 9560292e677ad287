"""Recordings read back as the objects that they were made from."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from navsense.errors import SinkError, Where
from navsense.series import TRUTH_ARRAYS, Reading, Truth
from navsense.sinks.base import os_error
from navsense.typing import AnyArray


@dataclass(frozen=True, eq=False)
class Loaded(Mapping[str, Reading]):
    """A recording in memory: full sensor name -> Reading, `truth` link name -> Truth, `meta` of the run."""

    readings: Mapping[str, Reading]
    truth: Mapping[str, Truth]
    meta: Mapping[str, Any]

    def __getitem__(self, name: str) -> Reading:
        """Return the readings of one sensor."""
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the sensors' names."""
        return iter(self.readings)

    def __len__(self) -> int:
        """Return how many sensors there are."""
        return len(self.readings)


def load(path: str | os.PathLike[str]) -> Loaded:
    """Return the readings and truth of a `.npz` recording, bit for bit. Raise `SinkError` where it is none."""
    path = Path(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return _loaded(archive)
    except OSError as error:
        raise os_error(path, error, "read") from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise SinkError(f"is no recording of navsense: {error}", where=Where(str(path))) from error


def meta_of(archive: Mapping[str, AnyArray]) -> dict[str, Any]:
    """Return what an archive says of itself."""
    meta = json.loads(str(archive["meta"]))
    if not isinstance(meta, dict) or meta.get("program") != "navsense":
        raise ValueError("its meta is of another program")
    return meta


def _loaded(archive: Mapping[str, AnyArray]) -> Loaded:
    """Return an archive's contents."""
    meta = meta_of(archive)
    readings = {}
    for name, head in meta["sensors"].items():
        readings[name] = Reading(
            name=name,
            type=head["type"],
            frame=head["frame"],
            unit=head["unit"],
            time=archive[f"{name}/time"],
            clock_error=archive[f"{name}/clock_error"],
            arrays={key: archive[f"{name}/{key}"] for key in head["arrays"]},
            truth={key: archive[f"{name}/truth/{key}"] for key in head["truth"]},
            errors={key: archive[f"{name}/errors/{key}"] for key in head["errors"]},
            valid=archive[f"{name}/valid"],
            emitted=archive[f"{name}/emitted"],
            epoch=head["epoch"],
        )
    truth = {}
    for name in meta["links"]:
        arrays = {key: archive[f"truth/{name}/{key}"] for key in ("time", *TRUTH_ARRAYS)}
        truth[name] = Truth(name=name, epoch=meta["epoch"], **arrays)
    return Loaded(readings, truth, meta)
