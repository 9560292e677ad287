"""Tables of published and third-party values, by column."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from navsense.core.typing import AnyArray

ORACLES = Path(__file__).resolve().parent.parent / "oracles"
Oracle = Callable[[str], dict[str, AnyArray]]


@pytest.fixture(scope="session")
def read_oracle() -> Oracle:
    """Return a function that reads a table below `tests/oracles`. Columns that are not all numbers are text."""

    def table(name: str) -> dict[str, AnyArray]:
        with (ORACLES / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {key: column([row[key] for row in rows]) for key in rows[0]}

    def column(texts: list[str]) -> AnyArray:
        try:
            return np.array([float(text) for text in texts])
        except ValueError:
            return np.array(texts)

    return table
