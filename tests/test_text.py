"""Counts and sizes in the output of commands."""

from __future__ import annotations

import pytest

from navsense.core.text import format_count, format_size


def test_noun_agrees_with_its_count() -> None:
    assert [format_count(count, "model") for count in (0, 1, 2)] == ["0 models", "1 model", "2 models"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (20_440_000, "20.4 MB"),
        (999_950_000, "1.0 GB"),
        (2_500_000_000_000, "2500.0 GB"),
    ],
)
def test_size_has_the_largest_unit_below_it(size: int, text: str) -> None:
    assert format_size(size) == text
