"""Pictures of worlds: the values behind the plots equal independent computations, and files are written."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import navsense as ns
from navsense import sdf
from navsense.core.errors import FieldError, MotionError, RecordingError, SdfError, SimulationError
from navsense.core.pose import Pose
from navsense.core.typing import FloatArray
from navsense.environment.terrain.heightmap import Heightmap
from navsense.environment.terrain.mesh import Mesh
from navsense.environment.terrain.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from navsense.environment.terrain.scene import Body, Scene
from navsense.figures import SUFFIXES, choose_length_scale, choose_time_scale
from navsense.motion.base import Motion
from navsense.motion.driven import DrivenMotion, State
from navsense.picture import draw, ground
from navsense.picture.chart import WorldChart, make_chart
from navsense.picture.draw import (
    find_height_limits,
    format_clearance,
    round_down,
    shade_relief,
    truncate_name,
)
from navsense.picture.ground import (
    MAX_RATIO,
    Relief,
    compute_bounding_box,
    find_ground_below,
    find_ground_top,
    find_view,
)
from navsense.picture.tracks import Track
from navsense.world import World

pytestmark = pytest.mark.requirement("SDF-1")

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
IMU = '<sensor name="imu" type="imu"><update_rate>10</update_rate></sensor>'
LoadWorld = Callable[..., World]


@pytest.fixture(autouse=True)
def coarse_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the number of ground cells: interpreted, each ray takes a millisecond."""
    monkeypatch.setattr(ground, "CELLS", 32)


@pytest.fixture
def load_world(tmp_path: Path) -> LoadWorld:
    """Return a function that loads a world from its content."""

    def load(body: str, **options: Any) -> World:
        path = tmp_path / "world.sdf"
        head = '<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf"><world name="sea">'
        path.write_text(f"{head}{body}</world></sdf>", encoding="utf-8")
        return sdf.load(path, **options)

    return load


def make_surface(geometry: str, pose: str = "0 0 0 0 0 0", name: str = "bed") -> str:
    return (
        f'<model name="{name}"><static>true</static><pose>{pose}</pose><link name="l">'
        f'<collision name="c"><geometry>{geometry}</geometry></collision></link></model>'
    )


def make_robot(*points: tuple[float, str], name: str = "auv", link: str = IMU, loop: bool = False) -> str:
    rows = "".join(f'<navsense:waypoint time="{t}">{pose}</navsense:waypoint>' for t, pose in points)
    motion = f'<navsense:motion loop="{str(loop).lower()}">{rows}</navsense:motion>' if points else ""
    return f'<model name="{name}"><link name="base">{link}</link>{motion}</model>'


def chart(world: World, duration: float | None = None, motions: dict[str, Motion] | None = None) -> WorldChart:
    return make_chart(world, motions or {}, duration, 0, 0)


def encode_png(values: FloatArray) -> bytes:
    """Return a 16-bit image whose first row is the northernmost."""
    data = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)

    def make_chunk(kind: bytes, text: bytes) -> bytes:
        return struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))

    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + make_chunk(b"IHDR", head)
        + make_chunk(b"IDAT", zlib.compress(data, 1))
        + make_chunk(b"IEND", b"")
    )


# Tracks


def test_track_equals_motion_and_has_its_length(load_world: LoadWorld) -> None:
    """A spline through 60 waypoints of a circle deviates from it by less than 1e-4."""
    turn = np.linspace(0.0, 2.0 * math.pi, 61)
    points = [(k, f"{50 * math.cos(a)} {50 * math.sin(a)} -3 0 0 {a}") for k, a in enumerate(turn)]
    found = chart(load_world(make_robot(*points, loop=True)))
    (track,) = found.tracks
    assert (track.time[0], track.time[-1], found.end) == (0.0, 60.0, 60.0)
    assert track.distance[-1] == pytest.approx(2.0 * math.pi * 50.0, rel=1e-4, abs=0.0)
    radius = np.sqrt((track.position[:, :2] ** 2).sum(axis=1))
    assert np.allclose(radius, 50.0, rtol=1e-4, atol=0.0)
    assert chart(load_world(make_robot(*points, loop=True)), 1e9).end == 60.0, "later rounds lie on the first"
    assert chart(load_world(make_robot(*points, loop=True)), 15.0).end == 15.0


def test_climb_counts_as_distance(load_world: LoadWorld) -> None:
    found = chart(load_world(make_robot((0, "3 4 0 0 0 0"), (10, "3 4 8 0 0 0"))))
    assert found.tracks[0].distance[-1] == pytest.approx(8.0, rel=1e-12, abs=0.0)
    assert (found.view.width, found.view.height) == pytest.approx((0.8 + 0.0, 0.8), rel=1e-12, abs=0.0), (
        "a tenth of the climb"
    )


def test_vehicles_move_or_carry_a_sensor(load_world: LoadWorld) -> None:
    """Stationary models without sensors are vehicles only if there is no other model."""
    still = make_robot(name="mooring")
    bare = make_robot(name="dock", link="")
    moving = make_robot((0, "0 0 0 0 0 0"), (9, "5 0 0 0 0 0"), name="boat", link="")
    everything = chart(load_world(still + bare + moving + make_surface("<sphere><radius>1</radius></sphere>")))
    assert [(t.name, t.is_moving) for t in everything.tracks] == [("mooring", False), ("boat", True)]
    assert [t.name for t in chart(load_world(bare + make_surface("<sphere><radius>1</radius></sphere>"))).tracks] == [
        "dock"
    ]
    assert chart(load_world("")).tracks == ()


def test_rotating_model_is_stationary(load_world: LoadWorld) -> None:
    found = chart(load_world(make_robot((0, "1 2 3 0 0 0"), (9, "1 2 3 0 0 1"))))
    assert found.tracks[0].position.tolist() == [[1.0, 2.0, 3.0]]
    assert not found.moving_tracks


def test_endless_motion_needs_a_duration(load_world: LoadWorld) -> None:
    world = load_world(make_robot())
    endless = DrivenMotion(State())
    with pytest.raises(
        SimulationError, match=r"duration: missing; required because the motion of auv never ends; give --duration"
    ):
        chart(world, None, {"auv": endless})
    with pytest.raises(SimulationError, match=r"duration: -1; must be a finite number of seconds > 0"):
        chart(world, -1)
    with pytest.raises(
        MotionError, match=r"duration of the run against the motion of 'auv': 11\.0; must be at most 10\.0"
    ):
        chart(load_world(make_robot((0, "0 0 0 0 0 0"), (10, "1 0 0 0 0 0"))), 11.0)


# Ground


def test_relief_has_the_heights_of_the_surfaces(load_world: LoadWorld) -> None:
    """The relief of a slope z = -20 - x/4 + y/8 with a box and a sphere is the highest surface."""
    body = make_surface("<plane><normal>2 -1 8</normal></plane>", "0 0 -20 0 0 0", "slope")
    body += make_surface("<box><size>4 4 2</size></box>", "5 0 -10 0 0 0", "box")
    body += make_surface("<sphere><radius>3</radius></sphere>", "-5 5 -12 0 0 0", "ball")
    found = chart(load_world(body + make_robot((0, "-10 -10 0 0 0 0"), (9, "10 10 0 0 0 0")))).relief
    x, y = np.meshgrid(found.x, found.y)
    expected = -20.0 - x / 4.0 + y / 8.0
    expected = np.where((abs(x - 5.0) < 2.0) & (abs(y) < 2.0), -9.0, expected)
    inside = 9.0 - (x + 5.0) ** 2 - (y - 5.0) ** 2
    expected = np.where(inside > 0.0, -12.0 + np.sqrt(np.maximum(inside, 0.0)), expected)
    assert np.allclose(found.height, expected, rtol=0.0, atol=1e-8)
    assert np.unique(expected).size > 100
    assert max(found.height.shape) == ground.CELLS


def test_heightmap_has_the_pose_of_its_file(load_world: LoadWorld, tmp_path: Path) -> None:
    """The image rises to the east, to size_z at the eastern edge, with linear interpolation."""
    (tmp_path / "ramp.png").write_bytes(encode_png(np.tile(np.arange(129) * 500.0, (129, 1))))
    geometry = "<heightmap><uri>ramp.png</uri><size>200 100 16</size><pos>0 0 -40</pos></heightmap>"
    found = chart(load_world(make_surface(geometry, "10 20 0 0 0 0"))).relief
    x, y = np.meshgrid(found.x, found.y)
    on = (abs(x - 10.0) < 100.0) & (abs(y - 20.0) < 50.0)
    assert np.array_equal(np.isfinite(found.height), on)
    assert np.allclose(found.height[on], -40.0 + 16.0 * (x[on] - 10.0 + 100.0) / 200.0, rtol=0.0, atol=1e-9)


SHAPES: list[tuple[Any, list[list[float]]]] = [
    (Box((2.0, 4.0, 6.0)), [[a, b, c] for a in (-1.0, 1.0) for b in (-2.0, 2.0) for c in (-3.0, 3.0)]),
    (Mesh(np.array([[[0.0, 0.0, 0.0], [5.0, 0.0, 1.0], [0.0, 2.0, -3.0]]])), [[0, 0, 0], [5, 0, 1], [0, 2, -3]]),
    (
        Heightmap(np.array([[0.0, 1.0, 0.0], [4.0, 0.0, 2.0]]), (2.0, 3.0), (1.0, 1.0)),
        [[1, 1, 0], [5, 4, 4], [3, 1, 1]],
    ),
]


@pytest.mark.parametrize(("shape", "points"), SHAPES)
def test_bounding_box_contains_its_surface(shape: Any, points: list[list[float]]) -> None:
    """The box contains all corners that SciPy rotates and moves. Without rotation it equals the box of the corners."""
    spin = Rotation.from_euler("xyz", (0.4, -0.7, 2.1))
    x, y, z, w = spin.as_quat().tolist()
    box = compute_bounding_box(Body("b", shape, Pose((10.0, -20.0, 30.0), (w, x, y, z))))
    placed = spin.apply(np.array(points, dtype=float)) + (10.0, -20.0, 30.0)
    assert box is not None
    assert (placed >= box[0] - 1e-9).all()
    assert (placed <= box[1] + 1e-9).all()
    still = compute_bounding_box(Body("b", shape))
    assert still is not None
    assert np.allclose(still, (np.min(points, axis=0), np.max(points, axis=0)), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(
    ("shape", "half"),
    [
        (Sphere(2.0), (2.0, 2.0, 2.0)),
        (Ellipsoid((1.0, 2.0, 3.0)), (1.0, 2.0, 3.0)),
        (Cylinder(2.0, 6.0), (2.0, 2.0, 3.0)),
        (Capsule(2.0, 6.0), (2.0, 2.0, 5.0)),
    ],
)
def test_boxes_of_round_shapes(shape: Any, half: tuple[float, ...]) -> None:
    box = compute_bounding_box(Body("b", shape, Pose((1.0, 1.0, 1.0))))
    assert box is not None
    assert np.allclose(box - 1.0, (np.negative(half), half), rtol=1e-12, atol=0.0)
    assert compute_bounding_box(Body("b", Plane())) is None


def test_ground_excludes_the_vehicle(load_world: LoadWorld) -> None:
    hull = IMU + '<collision name="hull"><geometry><box><size>2 2 2</size></box></geometry></collision>'
    body = make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -30 0 0 0") + make_surface(
        "<box><size>4 4 1</size></box>", "0 0 5 0 0 0", "bridge"
    )
    found = chart(load_world(body + make_robot((0, "-8 0 -10 0 0 0"), (10, "8 0 -33 0 0 0"), link=hull)))
    (track,) = found.tracks
    bottom = track.ground
    above = track.position[:, 2] > -30.0
    assert np.allclose(bottom[above], -30.0, rtol=1e-12, atol=0.0)
    assert np.allclose(bottom[~above & (abs(track.position[:, 0]) > 2.0)], -30.0, rtol=1e-12, atol=0.0), (
        "of the ground above it"
    )
    assert format_clearance(found) == "minimum clearance: 3 m UNDER the ground, at 10 s"
    assert np.allclose(found.relief.height[:, abs(found.relief.x) > 2.0], -30.0, rtol=1e-12, atol=0.0), (
        "no hull on the chart"
    )


def test_vehicles_are_not_ground(load_world: LoadWorld) -> None:
    """The hull of a stationary vehicle and moving bodies are not ground. A static model with a sensor is ground."""
    ball = '<collision name="c"><geometry><sphere><radius>1</radius></sphere></geometry></collision>'
    body = make_robot(name="mooring", link=IMU + ball) + make_robot((0, "9 0 0 0 0 0"), (9, "9 5 0 0 0 0"))
    world = load_world(body)
    passing = Body("passing", Sphere(4.0), motion=chart(world).world.model("auv").motion)
    moved = replace(world, environment=replace(world.environment, scene=Scene((passing,))))
    assert not chart(moved).relief.has_ground
    tower = body.replace('<model name="mooring">', '<model name="mooring"><static>true</static>')
    assert float(np.nanmax(chart(load_world(tower)).relief.height)) == pytest.approx(1.0, abs=0.1)


def test_clearance_needs_ground(load_world: LoadWorld) -> None:
    found = chart(load_world(make_robot((0, "0 0 5 0 0 0"), (10, "8 0 2 0 0 0"))))
    assert np.isnan(found.tracks[0].ground).all()
    assert format_clearance(found) == ""
    assert not found.relief.has_ground
    assert find_height_limits(found) == pytest.approx((1.7, 5.3), abs=0.05)


def test_clearance_names_the_nearest_vehicle(load_world: LoadWorld) -> None:
    body = make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -30 0 0 0")
    high = make_robot((0, "0 0 0 0 0 0"), (10, "8 0 0 0 0 0"), name="high")
    low = make_robot((0, "0 0 -20 0 0 0"), (400, "8 0 -28 0 0 0"), name="low")
    middle = make_robot((0, "0 0 -20 0 0 0"), (10, "8 0 -15 0 0 0"), name="middle")
    found = chart(load_world(body + high + low + middle))
    assert format_clearance(found) == "minimum clearance: 2 m, low at 6 min 40 s"


def make_tracks(*ends: tuple[tuple[float, float], tuple[float, float]]) -> list[Track]:
    return [Track("a", np.array([0.0, 1.0]), np.array([(*a, 0.0), (*b, 0.0)])) for a, b in ends]


places = st.tuples(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5))


@given(places, places, places, places)
@settings(max_examples=60)
def test_view_contains_all_tracks_and_is_not_narrow(a: Any, b: Any, c: Any, d: Any) -> None:
    given_tracks = make_tracks((a, b), (c, d))
    view = find_view(given_tracks, Scene())
    for track in given_tracks:
        assert (view.left <= track.position[:, 0]).all()
        assert (track.position[:, 0] <= view.right).all()
        assert (view.bottom <= track.position[:, 1]).all()
        assert (track.position[:, 1] <= view.top).all()
    assert max(view.width, view.height) > 0.999e-3
    assert 1.0 / MAX_RATIO - 1e-6 <= view.width / view.height <= MAX_RATIO + 1e-6


def test_ground_widens_a_view_by_half_a_track_at_most() -> None:
    track = make_tracks(((0.0, 0.0), (100.0, 60.0)))

    def sides(size: float) -> tuple[float, ...]:
        found = find_view(track, Scene((Body("b", Box((size, size, 1.0)), Pose((50.0, 30.0, 0.0))),)))
        return (found.left, found.right, found.bottom, found.top)

    assert sides(10.0) == pytest.approx((-12.0, 112.0, -12.0, 72.0), rel=1e-12, abs=0.0), (
        "smaller than the tracks: their margin alone"
    )
    assert sides(150.0) == pytest.approx((-25.0, 125.0, -45.0, 105.0), rel=1e-12, abs=0.0), "all of it"
    assert sides(1e5) == pytest.approx((-50.0, 150.0, -50.0, 110.0), rel=1e-12, abs=0.0), "what is around the tracks"
    view = find_view([], Scene((Body("b", Box((1000.0, 500.0, 1.0))),)))
    assert (view.width, view.height) == pytest.approx((1240.0, 740.0), rel=1e-12, abs=0.0)
    nothing = find_view([], Scene())
    assert (nothing.width, nothing.height) == pytest.approx((10.0, 10.0), rel=1e-12, abs=0.0)


def test_ground_top_is_exact_at_any_height() -> None:
    """Surfaces are a mountain of 9 km, a trench of 11 km, and a plane that rises 200 km over a view of 100 km."""
    places = np.array([(0.0, 0.0), (5e4, 0.0), (-5e4, 0.0)])
    for height in (9e3, -11e3):
        assert np.allclose(
            find_ground_top(Scene((Body("b", Plane(), Pose((0.0, 0.0, height))),)), places), height, atol=1e-6, rtol=0.0
        )
    steep = find_ground_top(Scene((Body("b", Plane((-4.0, 0.0, 1.0))),)), places)
    assert np.allclose(steep, (0.0, 2e5, -2e5), rtol=1e-9, atol=1e-6)
    mixed = Scene((Body("b", Box((2.0, 2.0, 2.0)), Pose((0.0, 0.0, 2e6))),))
    assert np.allclose(
        find_ground_below(mixed, np.array([(0.0, 0.0, 3e6), (9.0, 0.0, 0.0)])),
        (2e6 + 1.0, math.nan),
        equal_nan=True,
        rtol=1e-12,
        atol=0.0,
    )


def test_slopes_that_face_the_light_are_bright() -> None:
    """The light comes from the north-west: a cone is bright there, dark on the other side, and transparent outside."""
    pytest.importorskip("matplotlib")
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    axis = np.linspace(-1.0, 1.0, 81)
    x, y = np.meshgrid(axis, axis)
    height = -np.sqrt((x - 0.25) ** 2 + (y + 0.5) ** 2)  # the top is in column 50 and row 20
    height[:4] = math.nan
    grey = shade_relief(Relief(axis, axis, height), lambda values: colormaps["gray"](0.0 * values + 0.5), Normalize())
    bright = grey[:, :, 0]
    assert bright[32, 38] > bright[32, 62] > bright[8, 62], "north-west, north-east, south-east"
    assert bright[32, 62] == pytest.approx(bright[8, 38], abs=0.02), "north-east and south-west, across the light"
    assert (grey[:4, :, 3] == 0.0).all()
    assert (grey[4:, :, 3] == 1.0).all()


# Current


@pytest.mark.requirement("CUR-2")
def test_columns_and_arrows_equal_the_current(load_world: LoadWorld) -> None:
    """A 1/7 power-law boundary layer over a bed at -40 m gives the column; the arrows have the depth of the start."""
    current = (
        '<navsense:water surface="0"/><navsense:current><boundary_layer bed="-40" thickness="20">'
        "<uniform>0.3 0.4 0</uniform></boundary_layer></navsense:current>"
    )
    body = current + make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -40 0 0 0")
    found = chart(load_world(body + make_robot((0, "0 0 -30 0 0 0"), (99, "60 0 -25 0 0 0"))))
    (column,) = found.profiles
    assert (column.height[0], column.height[-1], column.time) == (-40.0, 0.0, 0.0)
    law = 0.5 * np.minimum((column.height + 40.0) / 20.0, 1.0) ** (1.0 / 7.0)
    assert np.allclose(column.speed, law, rtol=1e-12, atol=0.0)
    assert found.arrows is not None
    assert found.arrows.height == -30.0
    assert np.allclose(found.arrows.velocity, np.array((0.3, 0.4, 0.0)) * 0.5 ** (1.0 / 7.0), rtol=1e-12, atol=1e-15)
    assert (found.arrows.place[:, 0] > found.view.left).all()
    assert (found.arrows.place[:, 1] < found.view.top).all()
    flown = chart(load_world(body + make_robot((0, "0 0 30 0 0 0"), (99, "60 0 25 0 0 0")))).arrows
    assert flown is not None
    assert flown.height == 0.0, "of the water, not of the air above it"


@pytest.mark.requirement("CUR-2")
def test_random_current_equals_that_of_the_run(load_world: LoadWorld) -> None:
    current = (
        '<navsense:water surface="5"/><navsense:current rate="1" position="0 0 -10"><gauss_markov name="w">'
        '<speed mean="0.4" stddev="0.2" correlation_time="30"/></gauss_markov></navsense:current>'
    )
    world = load_world(current + make_robot((0, "0 0 -10 0 0 0"), (60, "60 0 -10 0 0 0")))
    found = make_chart(world, {}, None, 7, 3)
    run = ns.simulate(world, seed=7, runs=[3]).current
    assert run is not None
    recorded = np.sqrt((run.velocity[0] ** 2).sum(axis=1))
    assert [column.time for column in found.profiles] == [0.0, 15.0, 30.0, 45.0, 60.0]
    for column in found.profiles[:4]:
        assert np.allclose(column.speed, recorded[round(column.time)], rtol=1e-12, atol=0.0)
    assert np.unique([column.speed[0] for column in found.profiles]).size == 5


@pytest.mark.requirement("CUR-2")
def test_undefined_current_is_omitted_with_its_reason(load_world: LoadWorld) -> None:
    current = (
        '<navsense:water surface="0"/><navsense:current><stratified outside="error">'
        '<layer depth="0">0.5 0 0</layer><layer depth="20">0.1 0 0</layer></stratified></navsense:current>'
    )
    body = current + make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -80 0 0 0")
    found = chart(load_world(body + make_robot((0, "0 0 -30 0 0 0"), (99, "60 0 -25 0 0 0"))))
    column = found.profiles[0]
    given_there = column.height >= -20.0
    assert np.allclose(column.speed[given_there], 0.5 + 0.02 * column.height[given_there], rtol=1e-12, atol=0.0)
    assert np.isnan(column.speed[~given_there]).all()
    assert found.arrows is not None
    assert np.isnan(found.arrows.velocity).all()
    assert found.undefined_reason == "depth (m): 80.0; must be from 0 to 20, the depths of the layers"


# Figures


def capture_figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of the figures that are saved."""
    figure = pytest.importorskip("matplotlib.figure")
    found: list[Any] = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: found.append(self))
    return found


SEA = (
    '<navsense:water surface="0"/><navsense:current><uniform>0.3 0.4 0</uniform></navsense:current>'
    + make_surface("<plane><normal>1 -2 10</normal></plane>", "0 0 -40 0 0 0", "slope")
    + make_surface("<sphere><radius>30</radius></sphere>", "60 20 -50 0 0 0", "hill")
)
DIVE = ((0, "0 0 -10 0 0 0"), (200, "100 0 -14 0 0 0"), (400, "100 50 -10 0 0 1.5"), (600, "0 50 -5 0 0 3"))


def test_figure_shows_the_expected_elements(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elements are ground, track, time, arrows, profile and column."""
    figures, world = capture_figures(monkeypatch), load_world(SEA + make_robot(*DIVE))
    found = chart(world)
    draw(tmp_path / "x.png", world)
    plan, heights, time, profile, column = figures[0].axes
    assert plan.get_aspect() == 1.0
    view = found.view
    assert plan.get_xlim() == pytest.approx((view.left, view.right), rel=1e-12, abs=0.0)
    assert plan.get_ylim() == pytest.approx((view.bottom, view.top), rel=1e-12, abs=0.0)
    assert plan.images[0].get_extent() == pytest.approx(
        [view.left, view.right, view.bottom, view.top], rel=1e-12, abs=0.0
    )
    high, low = (plan.transData.transform(place) for place in ((-5.0, 55.0), (10.0, -5.0)))
    bright = [plan.images[0].get_cursor_data(SimpleNamespace(x=x, y=y))[:3].sum() for x, y in (high, low)]
    assert bright[0] > 1.2 * bright[1], "ground rises to the north, and what is high is bright"
    assert heights.get_ylabel() == "height of the ground (m)"
    assert heights.get_ylim() == pytest.approx(
        (np.nanmin(found.relief.height), np.nanmax(found.relief.height)), rel=1e-12, abs=0.0
    )
    (track,) = found.tracks
    bottom = track.ground
    assert time.get_xlim() == pytest.approx((0.0, 10.0), rel=1e-12, abs=0.0)
    assert time.get_xlabel() == "time (min); ○ start, ■ end"
    lines = next(one for one in plan.collections if type(one).__name__ == "LineCollection")
    assert np.allclose([segment[0] for segment in lines.get_segments()], track.position[:-1, :2], rtol=1e-12, atol=0.0)
    assert np.allclose(lines.get_array(), 0.5 * (track.time[:-1] + track.time[1:]) / 60.0, rtol=1e-12, atol=0.0)
    quiver = next(one for one in plan.collections if type(one).__name__ == "Quiver")
    assert np.allclose(quiver.U, 0.3, rtol=1e-12, atol=0.0)
    assert np.allclose(quiver.V, 0.4, rtol=1e-12, atol=0.0)
    longest = 0.5 / quiver.scale
    assert 0.5 * (view.width / 12.0) < longest < view.width / 12.0, "arrows meet none of their neighbours"
    seabed = next(line for line in profile.lines if len(line.get_xdata()) == track.distance.size)
    assert np.allclose(seabed.get_xydata(), np.column_stack((track.distance, bottom)), rtol=1e-12, atol=0.0)
    assert profile.get_xlim() == pytest.approx((0.0, track.distance[-1]), rel=1e-12, abs=0.0)
    assert profile.get_ylim()[0] < bottom.min() < track.position[:, 2].max() < 0.0 < profile.get_ylim()[1]
    clearance = (track.position[:, 2] - bottom).min()
    assert profile.get_title(loc="left").startswith(f"minimum clearance: {clearance:.3g} m, at ")
    assert np.allclose(column.lines[0].get_xdata(), 0.5, rtol=1e-12, atol=0.0)
    assert column.lines[0].get_ydata()[[0, -1]] == pytest.approx([-40.0, 0.0], rel=1e-12, abs=1e-12)
    assert figures[0]._suptitle.get_text() == "sea\n1 track of 10 min"


def test_arrows_below_the_ground_are_omitted(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wall across the view is higher than the track: no arrow is centred in it."""
    figures = capture_figures(monkeypatch)
    wall = make_surface("<box><size>30 400 100</size></box>", "60 0 -50 0 0 0", "wall")
    current = "<navsense:current><uniform>0.3 0.4 0</uniform></navsense:current>"
    draw(tmp_path / "x.png", load_world(current + wall + make_robot(*DIVE)))
    quiver = next(one for one in figures[0].axes[0].collections if type(one).__name__ == "Quiver")
    assert quiver.X.size > 40
    assert (abs(quiver.X - 60.0) > 15.0).all()
    assert (quiver.X > 75.0).any()


def test_steps_on_a_floor_have_no_contours(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contours along a vertical wall would overlap. A slope keeps its contours."""
    figures = capture_figures(monkeypatch)
    floor = make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -40 0 0 0", "floor")
    draw(
        tmp_path / "x.png",
        load_world(floor + make_surface("<box><size>30 30 20</size></box>", "60 20 -30 0 0 0") + make_robot(*DIVE)),
    )
    draw(tmp_path / "x.png", load_world(SEA + make_robot(*DIVE)))
    contours = [[type(one).__name__ for one in sheet.axes[0].collections] for sheet in figures]
    assert [kinds.count("QuadContourSet") for kinds in contours] == [0, 1]
    assert figures[0].axes[1].get_ylim() == pytest.approx((-40.0, -20.0), rel=1e-12, abs=0.0)


def test_north_arrow_follows_the_heading(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the x axis 30 degrees from east to north, north is 60 degrees from x, a bearing of 30 on the figure."""
    figures = capture_figures(monkeypatch)
    place = (
        "<spherical_coordinates><surface_model>EARTH_WGS84</surface_model><latitude_deg>-33.5</latitude_deg>"
        "<longitude_deg>-70.25</longitude_deg><heading_deg>30</heading_deg></spherical_coordinates>"
    )
    draw(tmp_path / "x.png", load_world(place + make_robot(*DIVE)))
    plan = figures[0].axes[0]
    (north,) = [text for text in plan.texts if text.get_text() == "N"]
    (x, y), (tail_x, tail_y) = north.xy, north.get_position()
    assert math.degrees(math.atan2(y - tail_y, x - tail_x)) == pytest.approx(60.0, rel=1e-12, abs=0.0)
    assert plan.get_xlabel() == "x (m)"
    assert figures[0]._suptitle.get_text() == "sea\nat 33.5° S, 70.25° W; 1 track of 10 min"
    draw(tmp_path / "x.png", load_world(place.replace("30</heading", "0</heading") + make_robot(*DIVE)))
    assert (figures[1].axes[0].get_xlabel(), figures[1].axes[0].get_ylabel()) == ("x, east (m)", "y, north (m)")


def test_names_do_not_overlap(load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six vehicles start within a few metres: no label covers another label or a start."""
    figures, transforms = capture_figures(monkeypatch), pytest.importorskip("matplotlib.transforms")
    names = ["a", "glider_of_a_longer_name", "c$d$", "boat", "e", "名前"]
    body = "".join(
        make_robot((0, f"{3 * k} {k % 2} 0 0 0 0"), (60, f"{40 + 30 * k} {50 - 20 * k} 0 0 0 0"), name=name)
        for k, name in enumerate(names)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a character that the font lacks does not warn
        draw(tmp_path / "x.png", load_world(body))
    plan = figures[0].axes[0]
    written = [text for text in plan.texts if text.get_text() in {truncate_name(name) for name in names}]
    assert len(written) == len(names)
    boxes = [text.get_window_extent() for text in written]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    for k in range(len(names)):
        x, y = plan.transData.transform((3 * k, k % 2))
        mark = transforms.Bbox.from_extents(x - 5.0, y - 5.0, x + 5.0, y + 5.0)  # 8 points at 100 an inch are 11 pixels
        assert not any(box.overlaps(mark) for box in boxes)


def test_stationary_models_are_labelled_with_heights(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = capture_figures(monkeypatch)
    draw(
        tmp_path / "x.png",
        load_world(make_robot().replace('<link name="base">', '<pose>4 5 -6 0 0 0</pose><link name="base">')),
    )
    (plan,) = figures[0].axes
    assert [line.get_xydata().tolist() for line in plan.lines] == [[[4.0, 5.0]]]
    assert [text.get_text() for text in plan.texts] == ["auv (-6 m)"]
    assert figures[0]._suptitle.get_text() == "sea\nnothing moves"
    draw(tmp_path / "x.png", load_world(""))
    assert figures[1].axes[0].get_xlim() == pytest.approx((-5.0, 5.0), rel=1e-12, abs=0.0)


def test_large_view_is_drawn_in_kilometres(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = capture_figures(monkeypatch)
    draw(tmp_path / "x.png", load_world(SEA + make_robot((0, "0 0 -10 0 0 0"), (86400 * 5, "100000 30000 -10 0 0 0"))))
    plan, _, time, profile, _ = figures[0].axes
    assert plan.get_xlabel() == "x (km)"
    assert plan.get_xlim() == pytest.approx((-12.0, 112.0), abs=1e-6)
    assert time.get_xlabel().startswith("time (d)")
    assert profile.get_xlabel() == "distance (km)"


def test_distant_surface_does_not_flatten_a_profile(load_world: LoadWorld) -> None:
    body = '<navsense:water surface="0"/>' + make_surface("<plane><normal>0 0 1</normal></plane>", "0 0 -4000 0 0 0")
    deep = chart(load_world(body + make_robot((0, "0 0 -3980 0 0 0"), (60, "60 0 -3970 0 0 0"))))
    assert find_height_limits(deep) == pytest.approx((-4003.0, -3967.0), rel=1e-12, abs=0.0)
    shoal = body.replace("-4000", "-60")
    low, high = find_height_limits(chart(load_world(shoal + make_robot((0, "0 0 -40 0 0 0"), (60, "60 0 -30 0 0 0")))))
    assert (low, high) == pytest.approx((-66.0, 6.0), rel=1e-12, abs=0.0)


def test_units_and_round_numbers() -> None:
    assert [choose_time_scale(last).unit for last in (0.0, 300.0, 301.0, 1e4, 1.1e4, 3e5, 4e5)] == [
        "s",
        "s",
        "min",
        "min",
        "h",
        "h",
        "d",
    ]
    assert [choose_length_scale(size).unit for size in (1.0, 19e3, 20e3)] == ["m", "m", "km"]
    assert [round_down(value) for value in (0.5, 0.19, 1.0, 9.99, 0.0205)] == pytest.approx(
        [0.5, 0.1, 1.0, 5.0, 0.02], rel=1e-12, abs=0.0
    )
    assert truncate_name("x" * 40) == "x" * 31 + "…"


# Files


@pytest.mark.parametrize("suffix", [".PNG", *SUFFIXES[1:]])
def test_pictures_are_written_and_replaced(load_world: LoadWorld, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target, world = tmp_path / f"sea{suffix}", load_world(SEA + make_robot(*DIVE))
    target.write_text("what was there before")
    draw(target, world)
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    assert target.read_bytes().startswith(head)
    assert 10_000 < target.stat().st_size < 4_000_000


@pytest.mark.parametrize("name", ["fleet.sdf", "auv_survey.sdf"])
def test_examples_are_drawn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(tmp_path / "x.png", sdf.load(EXAMPLES / name, path=[EXAMPLES / "models"]))
    assert (tmp_path / "x.png").stat().st_size > 10_000


@pytest.mark.compiled
def test_large_heightmap_is_drawn_completely(
    load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heightmap is a bowl of 2048 x 2048 heights; the picture equals its equation."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(ground, "CELLS", 640)
    axis = np.linspace(-1.0, 1.0, 2048)
    bowl = axis[:, None] ** 2 + axis[None, :] ** 2
    (tmp_path / "bowl.png").write_bytes(encode_png(np.round(bowl * 32767.5)))
    world = load_world(make_surface("<heightmap><uri>bowl.png</uri><size>1000 1000 40</size></heightmap>"))
    found = chart(world).relief
    x, y = np.meshgrid(found.x / 500.0, found.y / 500.0)
    on = np.isfinite(found.height)
    assert np.count_nonzero(on) > 250_000
    # A step of the image is 40 m / 65535. Linear interpolation over a cell of 1/1023.5 is off by (1/2047)^2 of 20 m.
    assert np.allclose(found.height[on], 20.0 * (x[on] ** 2 + y[on] ** 2), rtol=0.0, atol=40.0 / 65535 + 40.0 / 2047**2)
    draw(tmp_path / "x.png", world)
    assert (tmp_path / "x.png").stat().st_size > 50_000


def test_real_worlds_are_drawn(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("dave/dave_ocean_waves_transient_current.world", "gz-sim/flat_seabed.sdf"):
        draw(tmp_path / "x.png", sdf.load(shared_data / name, missing="skip"))
        assert (tmp_path / "x.png").stat().st_size > 5_000


def test_unwritable_pictures_are_errors(load_world: LoadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world(make_robot(*DIVE))
    with pytest.raises(RecordingError, match=r"picture: .*\.gif; must end in \.png, \.svg, \.pdf"):
        draw(tmp_path / "x.gif", world)
    pytest.importorskip("matplotlib")
    with pytest.raises(RecordingError, match=r"x\.png: the directory does not exist: .*/no; create it first"):
        draw(tmp_path / "no" / "x.png", world)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(RecordingError, match=r"folder\.png: is a directory; name a file in it"):
        draw(tmp_path / "folder.png", world)
    full = Path("/dev/full")
    if full.exists():
        (tmp_path / "full.png").symlink_to(full)
        with pytest.raises(RecordingError, match=r"full\.png: picture: No space left on device; choose a folder"):
            draw(tmp_path / "full.png", world)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RecordingError, match=r"a picture needs matplotlib; pip install 'navsense\[picture\]'"):
        draw(tmp_path / "x.png", world)
    assert not (tmp_path / "x.png").exists()


def test_ground_that_cannot_be_read_is_named(load_world: LoadWorld, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = make_surface("<heightmap><uri>bed.png</uri><size>10 10 1</size></heightmap>") + make_robot(*DIVE)
    (tmp_path / "bed.png").write_bytes(b"no image")
    with pytest.raises(
        FieldError, match=r"world\.sdf:1: surface bed::l::c: .*bed\.png: image: begins with .*must be a PNG"
    ):
        draw(tmp_path / "x.png", load_world(text))
    (tmp_path / "bed.png").unlink()
    with pytest.raises((FieldError, SdfError), match=r"world\.sdf:1: .*bed\.png; is not found; searched"):
        draw(tmp_path / "x.png", load_world(text))
    assert not (tmp_path / "x.png").exists()


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "navsense", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)


def test_command_draws_and_prints_the_path(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    log, target = tmp_path / "log.csv", tmp_path / "x.png"
    rows = "".join(f"{0.1 * k},{k},0,1,1,0,0,0\n" for k in range(100))
    log.write_text(f"time,x,y,z,qw,qx,qy,qz\n{rows}")
    drawn = run_command("describe", EXAMPLES / "quadrotor.sdf", "--motion", log, "--duration", 5, "--picture", target)
    assert drawn.returncode == 0, drawn.stderr
    assert "quadrotor: follows --motion (log not smoothed" in drawn.stdout
    assert drawn.stdout.endswith(f"wrote {target}\n")
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--picture", "x.gif"], "error: picture: x.gif; must end in .png, .svg, .pdf"),
        (["--picture", ""], 'error: --picture: ""; must not be empty; name a file or a value'),
        (["--duration", "5"], "error: --duration: 5.0; requires --picture"),
    ],
)
def test_argument_errors_come_before_the_world_is_loaded(arguments: list[str], message: str) -> None:
    ended = run_command("describe", EXAMPLES / "quadrotor.sdf", *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (2, "", message)
