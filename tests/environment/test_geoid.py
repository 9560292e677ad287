"""Undulations equal GeographicLib's, of which files damaged in any way are errors."""

from __future__ import annotations

import copy
import csv
import hashlib
import math
import os
import pickle
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import FieldError
from navsense.core.geodesy import Origin
from navsense.core.pose import Pose
from navsense.core.ticks import Ticks
from navsense.core.typing import FloatArray
from navsense.environment import Environment, Geoid, Water
from navsense.environment.geoid import compute_cubic_matrix, find_grid, list_folders
from navsense.motion.stationary import Stationary
from navsense.sensors import AirPressure, Depth, NavSat

ORACLES = Path(__file__).resolve().parent.parent / "oracles" / "geoid"

ONE = Ticks(np.zeros(1, dtype=np.int64), 1.0)

COLUMNS, ROWS = 120, 61

CHECKSUM = "ce75f178dfc8252214bbb6bfb6eb9957b6419ae824c6e9cef7ad263ecc69f6fc"
"""SHA-256 of the grid that the programs of the oracles read."""

HALF_DIGIT = 5.000001e-5
"""m: half of the last digit that GeoidEval prints, and the representation of the number."""

EGM96_POINTS = {
    (38.6281550, 269.7791550): -31.629,
    (-14.6212170, 305.0211140): -2.966,
    (46.8743190, 102.4487290): -43.572,
    (-23.6174460, 133.8747120): 15.868,
    (38.6254730, 359.9995000): 50.065,
    (-0.4667440, 0.0023000): 17.330,
}
"""Degrees -> m: places of NGA's test of EGM96, by its program F477, which sums the harmonics."""

EGM96_ERRORS = {"egm96-5.pgm": 0.0032, "egm96-15.pgm": 0.169}
"""Grid -> m: largest error of the cubic by the manual of GeoidEval."""


def write_grid(path: Path, pixels: FloatArray, comments: str = "# Offset -108\n# Scale 0.003\n") -> Path:
    """Write a grid as GeographicLib does."""
    rows, columns = pixels.shape
    header = f"P5\n# Description waves\n# Origin 90N 0E\n{comments}{columns} {rows}\n65535\n"
    path.write_bytes(header.encode() + pixels.astype(">u2").tobytes())
    return path


def write_waves(path: Path, columns: int = COLUMNS, rows: int = ROWS) -> Path:
    """Write a sum of spherical harmonics of degrees 1 to 8, m, as a grid."""
    latitude = np.radians(np.linspace(90.0, -90.0, rows))[:, None]
    longitude = np.radians(np.arange(columns) * (360.0 / columns))[None, :]
    s, c = np.sin(latitude), np.cos(latitude)
    height = 20.0 * s + 40.0 * c**2 * np.sin(2.0 * longitude + 0.3) + 15.0 * c**3 * s * np.cos(3.0 * longitude)
    height = height + 9.0 * c**7 * s * np.sin(7.0 * longitude - 0.8)
    return write_grid(path, np.rint((height + 108.0) / 0.003))


@pytest.fixture
def waves(tmp_path: Path) -> Path:
    """Return a grid with 3 degrees."""
    return write_waves(tmp_path / "waves.pgm")


def evaluate(geoid: Geoid, latitude_deg: FloatArray, longitude_deg: FloatArray) -> FloatArray:
    return geoid.undulation_at(np.radians(latitude_deg), np.radians(longitude_deg))


def read_places() -> dict[str, FloatArray]:
    """Return the columns of the oracles."""
    with (ORACLES / "places.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def list_places() -> tuple[FloatArray, FloatArray]:
    """Return degrees: a sequence that fills the globe evenly, then poles, the date line and borders of cells."""
    steps = np.arange(1, 301)
    latitude = np.degrees(np.arcsin(2.0 * ((steps * 0.6180339887498949) % 1.0) - 1.0))
    longitude = 360.0 * ((steps * 0.7548776662466927) % 1.0) - 180.0
    near = np.arange(40) * 0.15 + 0.05
    corners = [(a, o) for a in (90.0, -90.0) for o in (0.0, 1.5, 123.0, -160.0)]
    corners += [(a, o) for a in (0.0, 3.0, -3.0, 87.0, -87.0, 40.5) for o in (0.0, 180.0, -180.0, 360.0, 359.9999, 3.0)]
    rows = np.array(corners)
    return (
        np.concatenate((latitude, 90.0 - near, near - 90.0, rows[:, 0])).round(9),
        np.concatenate((longitude, 9.0 * np.arange(40), -4.3 * np.arange(40), rows[:, 1])).round(9),
    )


@pytest.mark.parametrize("interpolation", ["cubic", "bilinear"])
def test_undulations_equal_recorded_ones_of_geographiclib(waves: Path, interpolation: str) -> None:
    assert hashlib.sha256(waves.read_bytes()).hexdigest() == CHECKSUM
    places, geoid = read_places(), Geoid.from_file(waves, interpolation)
    ours = evaluate(geoid, places["latitude_deg"], places["longitude_deg"])
    assert ours == pytest.approx(places[f"geoideval_{interpolation}"], rel=0.0, abs=HALF_DIGIT)


@pytest.mark.parametrize("interpolation", ["cubic", "bilinear"])
def test_undulations_equal_recorded_ones_of_pygeodesy(waves: Path, interpolation: str) -> None:
    """All digits, except at the south pole."""
    places, geoid = read_places(), Geoid.from_file(waves, interpolation)
    ours = evaluate(geoid, places["latitude_deg"], places["longitude_deg"])
    chosen = places["latitude_deg"] > -90.0
    assert chosen.sum() > 400
    assert ours[chosen] == pytest.approx(places[f"pygeodesy_{interpolation}"][chosen], rel=0.0, abs=1e-12)


@pytest.mark.xfail(
    strict=True, reason="pygeodesy evaluates the cubic of a cell beyond the south pole, GeoidEval does not"
)
def test_south_pole_of_pygeodesy(waves: Path) -> None:
    places, geoid = read_places(), Geoid.from_file(waves)
    ours = evaluate(geoid, places["latitude_deg"], places["longitude_deg"])
    chosen = places["latitude_deg"] == -90.0
    assert ours[chosen] == pytest.approx(places["pygeodesy_cubic"][chosen], rel=0.0, abs=1e-12)


def run_geoid_eval(path: Path, latitude: FloatArray, longitude: FloatArray, interpolation: str) -> FloatArray:
    """Return the undulations of GeographicLib's program; skip the test if it is not installed."""
    program = shutil.which("GeoidEval")
    if program is None:
        pytest.skip("needs GeoidEval of Debian's geographiclib-tools")
    flags = ["-l"] if interpolation == "bilinear" else []
    text = "\n".join(f"{a!r} {o!r}" for a, o in zip(latitude.tolist(), longitude.tolist(), strict=True))
    command = [program, "-n", path.stem, "-d", str(path.parent), *flags]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return np.array([float(line.split()[0]) for line in result.stdout.splitlines()])


@pytest.mark.parametrize("interpolation", ["cubic", "bilinear"])
@pytest.mark.parametrize("size", [(120, 61), (8, 5), (2, 3)])
def test_undulations_equal_the_installed_geographiclib(
    tmp_path: Path, interpolation: str, size: tuple[int, int]
) -> None:
    """Of a fine grid, and of the coarsest ones, whose cells are all at a pole or at the date line."""
    path, (latitude, longitude) = write_waves(tmp_path / "waves.pgm", *size), list_places()
    theirs = run_geoid_eval(path, latitude, longitude, interpolation)
    ours = evaluate(Geoid.from_file(path, interpolation), latitude, longitude)
    assert ours == pytest.approx(theirs, rel=0.0, abs=HALF_DIGIT)


@pytest.mark.parametrize("at_pole", [False, True])
def test_cubic_returns_any_polynomial_of_its_terms(at_pole: bool) -> None:
    """A fit by least squares returns a polynomial that is in its span, and the pixel of a pole at the pole."""
    stencil = [(i, j) for j in range(-1, 3) for i in range(-1, 3) if 0 <= i <= 1 or 0 <= j <= 1]
    terms = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]
    matrix, divisor = compute_cubic_matrix(at_pole=at_pole)
    for index, (a, b) in enumerate(terms):
        if at_pole and a > 0 and b == 0:
            assert not any(matrix[index])
            continue
        pixels = [x**a * y**b for x, y in stencil]
        found = [sum(f * v for f, v in zip(row, pixels, strict=True)) for row in matrix]
        assert found == [divisor * (k == index) for k in range(len(terms))]


def test_a_grid_is_the_same_for_all_longitudes_at_a_pole(waves: Path) -> None:
    longitude = np.linspace(-math.pi, math.pi, 37)
    for latitude in (0.5 * math.pi, -0.5 * math.pi):
        found = Geoid.from_file(waves).undulation_at(np.full(37, latitude), longitude)
        assert found == pytest.approx(np.full(37, found[0]), rel=0.0, abs=1e-12)


def test_longitudes_that_differ_by_a_turn_are_the_same_place(waves: Path) -> None:
    geoid, latitude, east = Geoid.from_file(waves), np.array([40.5, -3.0, 0.0]), np.array([0.0, 359.25, 180.0])
    for turns in (-360.0, 360.0):
        expected = evaluate(geoid, latitude, east)
        assert evaluate(geoid, latitude, east + turns) == pytest.approx(expected, rel=0.0, abs=1e-10)


def test_values_do_not_depend_on_other_positions(waves: Path) -> None:
    """The cells that are kept in memory do not change a bit."""
    latitude, longitude = list_places()
    all_at_once = evaluate(Geoid.from_file(waves), latitude, longitude)
    geoid = Geoid.from_file(waves)
    for index in range(len(latitude))[::-7]:
        place = slice(index, index + 1)
        assert evaluate(geoid, latitude[place], longitude[place])[0] == all_at_once[index]


def find_installed(name: str) -> Path:
    """Return an installed grid; skip the test without it."""
    found = [folder / name for folder in list_folders() if (folder / name).is_file()]
    if not found:
        pytest.skip(f"needs {name} in {list_folders()[0]}, see geographiclib-get-geoids")
    return found[0]


@pytest.mark.parametrize("name", EGM96_ERRORS)
def test_undulations_equal_the_published_ones_of_egm96(name: str) -> None:
    """Within the error of the grid and half a digit of F477; and the example of GeoidEval's manual in egm96-5."""
    geoid, tolerance = Geoid.from_file(find_installed(name)), EGM96_ERRORS[name] + 0.0005
    latitude, longitude = np.array(list(EGM96_POINTS)).T
    assert evaluate(geoid, latitude, longitude) == pytest.approx(list(EGM96_POINTS.values()), rel=0.0, abs=tolerance)
    if name == "egm96-5.pgm":
        timbuktu = evaluate(geoid, np.array([16.0 + 46.0 / 60 + 33.0 / 3600]), np.array([-3.0 - 34.0 / 3600]))
        assert timbuktu == pytest.approx([28.7068], rel=0.0, abs=HALF_DIGIT)


def read_altitude(environment: Environment, position: tuple[float, float, float]) -> float:
    """Return the altitude of the standard atmosphere at which a barometer is, m."""
    pressure = AirPressure().ideal(Stationary(Pose(position)), environment, ONE)["pressure"]
    return float(environment.atmosphere.altitude_at_pressure(pressure)[0])


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("position", [(0.0, 0.0, 0.0), (3000.0, -8000.0, 250.0), (-4e5, 2e5, 12000.0)])
def test_barometer_reads_the_altitude_of_a_navsat_less_the_undulation(
    waves: Path, position: tuple[float, float, float]
) -> None:
    """The undulation is that of GeoidEval at the latitude and longitude of the NavSat."""
    environment = Environment(origin=Origin(0.7, -2.5, 120.0, 0.4), geoid=Geoid.from_file(waves))
    place = NavSat().ideal(Stationary(Pose(position)), environment, ONE)
    undulation = run_geoid_eval(waves, np.degrees(place["latitude"]), np.degrees(place["longitude"]), "cubic")
    expected = float((place["altitude"] - undulation)[0])
    assert read_altitude(environment, position) == pytest.approx(expected, rel=0.0, abs=HALF_DIGIT)


@pytest.mark.requirement("PRS-1")
def test_a_geoid_does_not_change_a_navsat(waves: Path) -> None:
    """Its altitude is above the ellipsoid (sensor_msgs/NavSatFix)."""
    origin, motion = Origin(0.7, -2.5, 120.0, 0.4), Stationary(Pose((30.0, 20.0, 10.0)))
    without, given = (
        NavSat().ideal(motion, Environment(origin=origin, geoid=geoid), ONE) for geoid in (None, Geoid.from_file(waves))
    )
    assert all(np.array_equal(without[name], given[name]) for name in without)


@pytest.mark.requirement("PRS-1")
@pytest.mark.parametrize("z", [-40.0, 0.0, 2.0])
def test_depth_sensor_has_the_air_pressure_above_sea_level(waves: Path, z: float) -> None:
    """Above and below the surface: the air of the standard atmosphere at the altitude of the surface or sensor."""
    geoid, origin = Geoid.from_file(waves), Origin(0.7, -2.5, 120.0)
    environment = Environment(origin=origin, geoid=geoid, water=Water())
    undulation = float(geoid.undulation_at(np.array([0.7]), np.array([-2.5]))[0])
    level = Environment(origin=Origin(0.7, -2.5, 120.0 - undulation), water=Water())
    found, expected = (
        Depth().ideal(Stationary(Pose((0.0, 0.0, z))), world, ONE)["pressure"][0] for world in (environment, level)
    )
    assert abs(undulation) > 10.0
    assert found == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_altitude_does_not_depend_on_the_heading(waves: Path) -> None:
    environment = Environment(origin=Origin(0.7, -2.5, 120.0, 0.4), geoid=Geoid.from_file(waves))
    turned = environment.rotate((math.cos(0.35), 0.0, 0.0, math.sin(0.35)))
    position = np.array([[5000.0, 0.0, 10.0]])
    rotated = np.array([[5000.0 * math.cos(0.7), 5000.0 * math.sin(0.7), 10.0]])
    assert turned.altitude_at(rotated) == pytest.approx(environment.altitude_at(position), rel=0.0, abs=1e-8)


def test_geoid_of_another_process_is_the_same(waves: Path) -> None:
    """A pickled geoid has the name of its file, and no pixels."""
    geoid = Geoid.from_file(waves)
    expected = evaluate(geoid, np.array([40.5]), np.array([12.25]))
    data = pickle.dumps(geoid)
    assert len(data) < 1000
    copied: Geoid = pickle.loads(data)  # noqa: S301 - our own
    assert copied == geoid
    assert evaluate(copied, np.array([40.5]), np.array([12.25])) == expected


HEADER = "P5\n# Offset -108\n# Scale 0.003\n4 3\n65535\n"

WRONG_HEADERS = {
    "P6\n4 3\n65535\n": r":1: format of the geoid grid: .*P6.*; must start with a line P5, as a PGM file",
    "": r": format of the geoid grid: .*; must start with a line P5, as a PGM file",
    HEADER.replace(
        "# Offset -108\n", ""
    ): r": header of the geoid grid: has no Offset; must have a line such as # Offset",
    HEADER.replace(
        "# Scale 0.003\n", ""
    ): r": header of the geoid grid: has no Scale; must have a line such as # Scale",
    HEADER.replace("-108", "low"): r":2: Offset of the geoid grid: low; must be a finite number of metres",
    HEADER.replace("-108", "1e999"): r":2: Offset of the geoid grid: 1e999; must be a finite number of metres",
    HEADER.replace("0.003", "0"): r": Scale of a geoid: 0.0; must be positive",
    HEADER.replace("0.003", "nan"): r":3: Scale of the geoid grid: nan; must be a finite number of metres",
    HEADER.replace("4 3", "4"): r":4: columns and rows of the geoid grid: 4; must be two whole numbers",
    HEADER.replace("4 3", "-4 3"): r":4: columns and rows of the geoid grid: -4 3; must be two whole numbers",
    HEADER.replace(
        "4 3", "4 " + 5000 * "3"
    ): r":4: columns and rows of the geoid grid: 4 3+; must be two whole numbers",
    HEADER.replace("4 3", "5 3"): r": size of a geoid grid: 5 by 3; must have an even number of columns",
    HEADER.replace("4 3", "4 4"): r": size of a geoid grid: 4 by 4; must have an even number of columns and an odd",
    HEADER.replace("65535", "255"): r":5: largest pixel of the geoid grid: 255; must be 65535",
    HEADER.replace("65535", "255 1"): r":5: largest pixel of the geoid grid: 255 1; must be 65535",
    HEADER.replace("65535\n", ""): r":4: header of the geoid grid: has no end; must have columns, rows and 65535",
}


@pytest.mark.parametrize("header", WRONG_HEADERS)
def test_wrong_headers_are_errors_with_their_line(tmp_path: Path, header: str) -> None:
    path = tmp_path / "g.pgm"
    path.write_bytes(header.encode() + (b"" if "65535" not in header else bytes(24)))
    with pytest.raises(FieldError, match=r"g\.pgm" + WRONG_HEADERS[header]):
        Geoid.from_file(path)


@pytest.mark.parametrize("change", [-2, 1])
def test_wrong_sizes_are_errors(tmp_path: Path, change: int) -> None:
    path = tmp_path / "g.pgm"
    path.write_bytes(HEADER.encode() + bytes(24 + change))
    size = len(HEADER) + 24
    with pytest.raises(
        FieldError, match=rf"size of the geoid grid: {size + change} bytes; must be {size}: 4 by 3 pixels"
    ):
        Geoid.from_file(path)


def test_missing_files_are_errors_with_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEOGRAPHICLIB_GEOID_PATH", str(tmp_path / "grids"))
    with pytest.raises(FieldError, match=r"g\.pgm: geoid grid: does not exist; must be in one of \., .*grids; install"):
        Geoid.from_file("g.pgm")
    with pytest.raises(
        FieldError, match=r"geoid grid: does not exist; must be a PGM file of GeographicLib.*; check the"
    ):
        Geoid.from_file(tmp_path / "other" / "g.pgm")
    with pytest.raises(FieldError, match=r"geoid grid: is a folder"):
        Geoid.from_file(tmp_path)
    os.mkfifo(tmp_path / "pipe.pgm")
    with pytest.raises(FieldError, match=r"geoid grid: is a device, a pipe or a system file"):
        Geoid.from_file(tmp_path / "pipe.pgm")


def test_folders_are_those_of_geographiclib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEOGRAPHICLIB_GEOID_PATH", raising=False)
    monkeypatch.delenv("GEOGRAPHICLIB_DATA", raising=False)
    assert Path("/usr/share/GeographicLib/geoids") in list_folders()
    monkeypatch.setenv("GEOGRAPHICLIB_DATA", str(tmp_path))
    assert list_folders() == (tmp_path / "geoids",)
    (tmp_path / "geoids").mkdir()
    waves = write_waves(tmp_path / "geoids" / "waves.pgm")
    assert find_grid("waves.pgm", tmp_path) == waves
    monkeypatch.setenv("GEOGRAPHICLIB_GEOID_PATH", str(tmp_path / "other"))
    assert list_folders() == (tmp_path / "other",)
    here = write_waves(tmp_path / "waves.pgm")
    assert find_grid("waves.pgm", tmp_path) == here


def test_invalid_places_are_errors(waves: Path) -> None:
    geoid = Geoid.from_file(waves)
    for latitude, longitude in ((math.nan, 0.0), (1.6, 0.0), (0.0, math.nan), (0.0, -math.inf)):
        with pytest.raises(
            FieldError, match=r"place of row 1 \(latitude, longitude in rad\): .*; must be finite, the lat"
        ):
            geoid.undulation_at(np.array([0.0, latitude]), np.array([0.0, longitude]))
    assert geoid.undulation_at(np.empty(0), np.empty(0)).shape == (0,)


def test_a_file_that_changes_is_an_error(waves: Path) -> None:
    geoid = Geoid.from_file(waves)
    evaluate(geoid, np.array([40.5]), np.array([12.25]))
    waves.write_bytes(waves.read_bytes()[:-4000])
    with pytest.raises(FieldError, match=r"waves\.pgm: geoid grid: ends before its last row; must not be changed"):
        evaluate(geoid, np.array([-88.0]), np.array([12.25]))
    write_waves(waves, 60, 31)
    with pytest.raises(FieldError, match=r"waves\.pgm: geoid grid: is another grid; must be the grid 'waves'"):
        evaluate(copy.deepcopy(geoid), np.array([40.5]), np.array([12.25]))


def test_geoid_requires_an_origin_and_a_known_interpolation(waves: Path) -> None:
    with pytest.raises(FieldError, match=r"geoid: .*; requires a place on earth; give Environment\(origin="):
        Environment(geoid=Geoid.from_file(waves))
    with pytest.raises(FieldError, match=r"interpolation of a geoid: spline; must be cubic or bilinear"):
        Geoid.from_file(waves, "spline")


def test_only_the_pixels_of_a_position_are_read(waves: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    geoid, read = Geoid.from_file(waves), []

    def count(name: str, kind: object, ranges: list[tuple[int, int]]) -> tuple[list[bytes], int]:
        data = waves.read_bytes()
        read.extend(ranges)
        return [data[start : start + size] for start, size in ranges], len(data)

    evaluate(geoid, np.array([0.0]), np.array([0.0]))
    monkeypatch.setattr("navsense.core.inputs.read_ranges", count)
    evaluate(geoid, np.full(1000, 40.5), np.linspace(12.1, 14.9, 1000))
    assert sum(size for _, size in read) == 24


def test_world_of_a_recording_has_the_name_of_the_grid(waves: Path, tmp_path: Path) -> None:
    (tmp_path / "w.sdf").write_text(
        '<sdf version="1.9"><world name="w"><spherical_coordinates><latitude_deg>40</latitude_deg>'
        '<longitude_deg>10</longitude_deg><navsense:geoid file="waves.pgm" interpolation="bilinear"/>'
        '</spherical_coordinates><model name="m"><link name="l"><sensor name="b" type="air_pressure">'
        "<update_rate>10</update_rate></sensor></link></model></world></sdf>",
        encoding="utf-8",
    )
    world = ns.load(tmp_path / "w.sdf")
    run = ns.simulate(world, duration=1.0, seed=1)
    run.save(tmp_path / "a.npz")
    waves.rename(tmp_path / "moved.pgm")
    found = ns.open(tmp_path / "a.npz").world.environment.geoid
    assert found is not None
    assert (found.file, found.interpolation, found.description) == ("waves.pgm", "bilinear", "waves")
