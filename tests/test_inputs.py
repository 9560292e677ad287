"""Files that a user names: what is no regular file, or too large, is refused without waiting and without memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from navsense import inputs
from navsense.environment.signal import Signal
from navsense.errors import FieldError, MotionError, NavsenseError, SdfError
from navsense.motion import load as load_log
from navsense.sdf import load

DOORS: list[tuple[Callable[[Any], object], type[NavsenseError], str]] = [
    (Signal.from_file, FieldError, "signal"),
    (load_log, MotionError, "log"),
    (load, SdfError, "file"),
]


@pytest.mark.parametrize(("door", "kind", "what"), DOORS)
def test_a_pipe_and_a_device_are_refused(
    door: Callable[[Any], object], kind: type[NavsenseError], what: str, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(kind) as caught:
            door(path)
        assert str(caught.value).startswith(f"{path} {what}: is a device or a pipe; must be ")


@pytest.mark.parametrize(("door", "kind", "what"), DOORS)
def test_a_file_that_is_too_large_is_not_read(
    door: Callable[[Any], object], kind: type[NavsenseError], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large.csv"
    large.touch()
    os.truncate(large, inputs.LARGEST + 1)
    monkeypatch.setattr(Path, "open", None)
    with pytest.raises(kind, match=rf"large.csv {what}: too large; must be at most \d+ MiB"):
        door(large)


@pytest.mark.parametrize("tag", ["signal name='a'", "motion"])
def test_in_a_world_the_element_is_named(tag: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    inside = f"<navsense:{tag} file='pipe.csv'/>"
    body = inside if "signal" in tag else f"<model name='m'><link name='l'/>{inside}</model>"
    world = tmp_path / "w.sdf"
    world.write_text(f"<sdf version='1.12'>\n<world name='w'>\n{body}</world></sdf>", encoding="utf-8")
    with pytest.raises(SdfError, match=r"w.sdf:3 <navsense:(signal|motion)> .*pipe.csv (signal|log): is a device"):
        load(world)


def test_any_line_end_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert inputs.lines(str(path), inputs.Kind("file", FieldError, "text")) == ["a", "b", "c", ""]
