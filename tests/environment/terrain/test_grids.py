"""Heights in text: Esri's header, rows without a header, their position in the world, invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from navsense.core.errors import FieldError
from navsense.environment.terrain.grids import read_grid
from navsense.environment.terrain.heightmap import Heightmap

pytestmark = pytest.mark.requirement("DVU-2")

HEADER = "NCOLS 3\nnrows 2\nxllcorner 100\nyllcorner -50.5\ncellsize 10\nNODATA_value -9999\n"


def save(folder: Path, text: str, name: str = "bed.asc") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_esri_grid_is_read(tmp_path: Path) -> None:
    heights, spacing = read_grid(save(tmp_path, HEADER + "-1 -2 -3.5\n-4e0 -5 -6\n"))
    assert heights.tolist() == [[-4.0, -5.0, -6.0], [-1.0, -2.0, -3.5]]
    assert spacing == 10.0
    centred = HEADER.replace("xllcorner", "xllcenter").replace("yllcorner", "YLLCENTER").replace("\n", "\r\n")
    heights, spacing = read_grid(save(tmp_path, centred + "-1 -2\r\n-3.5 -4 -5 -6"))  # a row may be split over lines
    assert heights.tolist() == [[-4.0, -5.0, -6.0], [-1.0, -2.0, -3.5]]
    assert spacing == 10.0


def test_grid_is_centred_and_keeps_its_heights(tmp_path: Path) -> None:
    path = save(tmp_path, HEADER + "-1 -2 -3.5\n-4 -5 -6\n")
    bed = Heightmap.from_file(path, pos=(1.0, 2.0, 3.0))
    assert bed.corner == (-9.0, -3.0)
    assert bed.heights.tolist() == [[-1.0, -2.0, -3.0], [2.0, 1.0, -0.5]]
    stretched = Heightmap.from_file(path, (40.0, 20.0, 10.0))
    assert stretched.spacing == (20.0, 20.0)
    assert stretched.heights.tolist() == [[-8.0, -10.0, -12.0], [-2.0, -4.0, -7.0]]


def test_rows_of_numbers(tmp_path: Path) -> None:
    path = save(tmp_path, "\ufeff1 2 3\n\n 4, 5,6\n", "bed.txt")
    heights, spacing = read_grid(path)
    assert heights.tolist() == [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]]
    assert spacing is None
    assert Heightmap.from_file(path, (4.0, 1.0, 10.0)).spacing == (2.0, 1.0)
    with pytest.raises(FieldError, match="must be given for a grid without a header"):
        Heightmap.from_file(path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no rows"),
        ("1 2 3\n4 5\n", r"lengths of the grid's rows: \[2, 3\]"),
        ("1 2\n3 x4\n", "bed.asc:2: height: x4; must be a number"),
        ("1 2\n3 nan\n", "height in row 2, column 2: nan; must be finite; 1 of 4 are not"),
        ("1 2\n3 inf\n", "row 2, column 2"),
        (
            "1 2\n3 -3.4e38\n",
            r"column 2: -3.4e\+38; must be of absolute value up to 1e\+09 m; 1 of 4 are not; fill the gaps",
        ),
        (HEADER + "1 2 3\n4 -9999 6\n", "row 2, column 2: no data; .*; fill the gaps"),
        (HEADER + "1 2 3\n4 5\n", "grid's heights: 5; must be nrows x ncols, 2 x 3"),
        (HEADER + "1 2 3\n4 5 6 7\n", "grid's heights: 7"),
        (HEADER + "1 2 3\n4 5 6m\n", "bed.asc:8: height: 6m"),
        (HEADER.replace("cellsize 10", "cellsize 0") + "1 2 3 4 5 6", "cellsize: 0.0; must be above 0"),
        (HEADER.replace("cellsize 10\n", "") + "1 2 3 4 5 6", "cellsize: missing"),
        (HEADER.replace("NCOLS 3", "ncols 2.5") + "1 2 3 4 5 6", "ncols: 2.5; must be a whole number"),
        (
            HEADER.replace("NCOLS 3", "ncols three") + "1 2 3 4 5 6",
            "bed.asc:1: ncols: three; must be one finite number",
        ),
        ("ncols 3\nnrow 2\n1 2 3", "bed.asc:2: grid's header: nrow"),
        ("ncols 3\nncols 2\n1 2 3", "bed.asc:2: grid's header: ncols"),
        ("a\0b", "is not text"),
    ],
)
def test_invalid_grid_is_an_error(text: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(FieldError, match=what):
        read_grid(save(tmp_path, text))
