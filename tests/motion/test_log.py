"""Motion logs in both file formats; errors have their line."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from navsense.core.errors import MotionError
from navsense.motion import Replay, from_arrays, load
from navsense.motion._spline import BLOCK

HEADER = "time,x,y,z,qw,qx,qy,qz\n"
TIME = np.array([0.0, 0.1, 0.25, 0.3])
POSITION = np.array([[0.0, 1.0, 2.0], [0.5, 1.1, 2.0], [0.7, 1.5, 1.9], [0.1, 1.25, 2.5]])
ROTATION = np.array([[1.0, 0.0, 0.1, 0.2], [1.0, 0.1, 0.1, 0.3], [0.9, 0.1, 0.2, 0.3], [0.8, 0.0, 0.2, 0.3]])


def format_csv(time: np.ndarray = TIME, end: str = "\n") -> str:
    """Return the rows as CSV."""
    rows = np.column_stack((time, POSITION, ROTATION)).tolist()
    return HEADER.strip() + end + "".join(",".join(map(repr, row)) + end for row in rows)


def format_tum(time: np.ndarray = TIME) -> str:
    """Return the rows as TUM."""
    rows = np.column_stack((time, POSITION, ROTATION[:, 1:], ROTATION[:, :1])).tolist()
    return "# a comment, with a comma\n\n" + "".join("  ".join(map(repr, row)) + "\n  # between\n" for row in rows)


def assert_equal(found: Replay, expected: Replay) -> None:
    """Assert that two replays agree to the last bit."""
    np.testing.assert_array_equal(found.trajectory.knots, expected.trajectory.knots)
    np.testing.assert_array_equal(found.trajectory.coefficients, expected.trajectory.coefficients)
    np.testing.assert_array_equal(found.acceleration_noise, expected.acceleration_noise)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", format_csv()),
        ("a.CSV", format_csv()),
        ("a.log", format_csv()),
        ("crlf.csv", format_csv(end="\r\n")),
        ("mark.csv", "\ufeff" + format_csv()),
        ("blank.csv", "\n" + format_csv().replace("\n", "\n  \n") + "\n\n"),
        ("open.csv", format_csv().rstrip("\n")),
        ("spaces.csv", format_csv().replace(",", " , ")),
        ("a.tum", format_tum()),
        ("a.txt", format_tum()),
        ("a.poses", format_tum()),
        ("tabs.tum", format_tum().replace("  ", "\t")),
    ],
)
def test_both_formats_in_all_variants(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert_equal(load(path), from_arrays(TIME, POSITION, ROTATION))
    assert_equal(load(str(path)), load(path))


@pytest.mark.parametrize(("name", "write"), [("a.csv", format_csv), ("a.tum", format_tum)])
def test_first_row_is_time_zero(tmp_path: Path, name: str, write: object) -> None:
    assert callable(write)
    stamps = TIME + 1.6e9
    path = tmp_path / name
    path.write_text(write(stamps), encoding="utf-8")
    replay = load(path)
    assert_equal(replay, from_arrays(stamps, POSITION, ROTATION))
    assert replay.end == stamps[-1] - stamps[0]


def test_bandwidth_smooths_the_log(tmp_path: Path) -> None:
    time = np.arange(50) * 0.1
    values = np.random.default_rng(1).normal(0.0, 0.1, (50, 3))
    path = tmp_path / "log.csv"
    path.write_text(
        HEADER
        + "".join(
            f"{t!r},{x!r},{y!r},{z!r},1,0,0,0\n" for t, (x, y, z) in zip(time.tolist(), values.tolist(), strict=True)
        ),
        encoding="utf-8",
    )
    replay = load(path, bandwidth=0.5)
    assert_equal(replay, from_arrays(time, values, np.tile([1.0, 0.0, 0.0, 0.0], (50, 1)), bandwidth=0.5))
    assert replay.bandwidth == 0.5
    with pytest.raises(MotionError, match=r"log.csv: bandwidth \(Hz\): 99.0"):
        load(path, bandwidth=99.0)


GOOD = "0,0,0,0,1,0,0,0\n1,0,0,0,1,0,0,0\n"
GOOD_TUM = "0 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n"


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("a.csv", "", 1, "header of the log; must have the columns time,x,y,z,qw,qx,qy,qz or time,x,y,z,roll"),
        ("a.csv", GOOD, 1, "header of the log: 0,0,0,0,1,0,0,0; must have the columns .*; a TUM log is a .tum or .txt"),
        ("a.csv", "\ntime,x,y,z,qw,qx,qy,q\n" + GOOD, 2, "header of the log without qz: .* must have time,x,y,z,qw,qx"),
        ("a.csv", HEADER.strip() + ",speed\n" + GOOD, 2, "number of columns: 8; must be 9, as in the header"),
        ("a.csv", HEADER, 0, "log without rows; must hold rows of time,x,y,z,qw,qx,qy,qz"),
        ("a.tum", "# nothing\n", 0, "log without rows; must hold rows of t x y z qx qy qz qw"),
        ("a.dat", "", 0, "log without rows"),
        ("a.csv", HEADER + GOOD + "2,0,0,0,1,0,0,0,7\n", 4, "number of columns: 9; must be 8: time,x"),
        ("a.csv", HEADER + "0,0,0,0,1,0,0\n1,0,0,0,1,0,0\n", 2, "number of columns: 7; must be 8"),
        ("a.csv", HEADER + GOOD + "\n# comment\n", 5, "number of columns: 1; must be 8"),
        ("a.csv", HEADER + GOOD + "2,0,0,,1,0,0,0\n", 4, "z: ; must be a finite number"),
        ("a.csv", HEADER + GOOD + "2,0,0,zero,1,0,0,0\n", 4, "z: zero; must be a finite number"),
        ("a.csv", HEADER + GOOD + "2_0,0,0,0,1,0,0,0\n", 4, "time: 2_0; must be a finite number"),
        ("a.csv", HEADER + GOOD + "2,0,0,0x1p3,1,0,0,0\n", 4, "z: 0x1p3; must be a finite number"),
        ("a.csv", HEADER + GOOD + "２,0,0,0,1,0,0,0\n", 4, "time: ２; must be a finite number"),
        ("a.csv", HEADER + GOOD + "2,0,nan,0,1,0,0,0\n", 4, "y of row 2: nan; must be finite"),
        ("a.csv", HEADER + GOOD + "2,1e999,0,0,1,0,0,0\n", 4, "x of row 2: inf; must be finite"),
        ("a.csv", HEADER + GOOD + "\n\n2,0,0,0,1,0,-inf,0\n", 6, "qy of row 2: -inf; must be finite"),
        (
            "a.csv",
            HEADER + GOOD + "1,0,0,0,1,0,0,0\n",
            4,
            r"time of row 2 \(s\): 1.0; must be after .* 1.0; sort the rows",
        ),
        ("a.csv", HEADER + GOOD + "0.5,0,0,0,1,0,0,0\n", 4, r"time of row 2 \(s\): 0.5"),
        ("a.csv", HEADER + GOOD + "2,0,0,0,0,0,-0,0\n", 4, "quaternion of row 2: 0 0 0 0; must not be zero"),
        ("a.csv", HEADER + GOOD + "2,0,0,0,0,1,0,0\n", 4, r"turn from row 1 to 2 \(degrees\): 180.0"),
        ("a.csv", HEADER + GOOD[:16], 0, "number of rows: 1; must be >= 2"),
        (
            "a.csv",
            HEADER + GOOD + "1e300,0,0,0,1,0,0,0\n",
            4,
            r"time of row 2 \(s\): 1e\+300; must be less than 6e\+09 s .*_ns",
        ),
        (
            "a.csv",
            HEADER.replace("time", "time_ns") + GOOD + "1e300,0,0,0,1,0,0,0\n",
            4,
            r"time_ns of row 2 \(s\): 1e\+291; must be less than 6e\+09 s after the first row; correct the row",
        ),
        (
            "a.csv",
            HEADER.replace("time", "time_ns") + GOOD + "1e999999999,0,0,0,1,0,0,0\n",
            4,
            "time_ns: 1e999999999; must be a finite number",
        ),
        (
            "a.tum",
            GOOD_TUM + "1e10 0 0 0 0 0 0 1\n",
            3,
            r"time of row 2 \(s\): 10000000000.0; must be less than 6e\+09 s",
        ),
        ("a.tum", GOOD_TUM + "# c\n2 0 0 0 0 0 0\n", 4, "number of columns: 7; must be 8: t x y z qx qy qz qw"),
        ("a.tum", GOOD_TUM + "2 0 0 0 0 0 x 1\n", 3, "qz: x; must be a finite number"),
        ("a.tum", GOOD_TUM + "# c\n\n2 0 0 0 0 0 nan 1\n", 5, "qz of row 2: nan"),
        ("a.tum", GOOD_TUM + "2 0 0 0 0 0 0 1 # c\n", 3, "number of columns: 10"),
        ("a.txt", GOOD_TUM + "2 0 0 0 0 0 0 0\n", 3, "quaternion of row 2"),
        (
            "a.csv",
            HEADER + "".join(f"{k}e-200,{k % 2},0,0,1,0,0,0\n" for k in range(6)),
            0,
            "no finite spline|coefficients of segment 0",
        ),
    ],
)
def test_invalid_log_error_has_its_line(tmp_path: Path, name: str, text: str, line: int, message: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MotionError, match=message) as caught:
        load(path)
    assert caught.value.where is not None
    assert (caught.value.where.path, caught.value.where.line) == (str(path), line)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


@pytest.mark.parametrize("content", [b"time,x\x00\x00", b"\xff\xfe\x00a", b"\x89HDF\r\n\x1a\n", b"\x80abc"])
def test_binary_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(MotionError, match="log: is not text; must be a CSV or TUM file in UTF-8"):
        load(path)


def test_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MotionError, match=r"none.csv: log: does not exist"):
        load(tmp_path / "none.csv")
    with pytest.raises(MotionError, match=r"log: is a folder"):
        load(tmp_path)

    def deny_access(*_args: object, **_kwargs: object) -> NoReturn:
        raise PermissionError(13, os.strerror(13))

    (tmp_path / "a.csv").touch()
    monkeypatch.setattr(os, "open", deny_access)
    with pytest.raises(MotionError, match=r"log: Permission denied"):
        load(tmp_path / "a.csv")


@pytest.mark.compiled
def test_long_log_needs_little_memory(tmp_path: Path) -> None:
    """A stored row has 15 numbers of 8 bytes: its time, and value and slope of 7 columns.

    The peak is 24 numbers and 2 flags a row, where the signs of the quaternions are made continuous: 8 of the file,
    14 values and slopes, the cosine of each turn and its size. One block takes 4 numbers a row more. The file is read
    in blocks. The numbers of the file are freed before the slopes are solved, where one column takes 8 numbers:
    spacing, slope, three diagonals, right side, and two temporary ones.
    """
    count = 200_000
    time = np.arange(count) * 0.01
    rows = np.column_stack((time, np.sin(time), np.cos(time), time, np.ones(count), np.zeros((count, 3))))
    path = tmp_path / "long.csv"
    np.savetxt(path, rows, delimiter=",", header=HEADER.strip(), comments="", fmt="%.17g")
    load(path)  # imports
    tracemalloc.start()
    found = load(path)
    allocated, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert allocated < 15 * 8 * count + 100_000
    assert peak < (24 * 8 + 2) * count + 4 * 8 * BLOCK
    expected = CubicSpline(time, rows[:, 1:], bc_type="not-a-knot").c.transpose(1, 0, 2)
    np.testing.assert_array_equal(found.trajectory.coefficients, expected)
