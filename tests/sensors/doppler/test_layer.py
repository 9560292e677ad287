"""Velocity through a layer of water, held against closed forms and SciPy's quadrature: boundaries, shear, surface."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from navsense.core.errors import SensorError
from navsense.core.pose import IDENTITY, Pose, from_rpy, rotate
from navsense.core.typing import AnyArray, Quaternion, Vector
from navsense.environment.base import Environment, UniformField
from navsense.environment.terrain.primitives import Plane
from navsense.environment.terrain.scene import Body, Scene
from navsense.environment.water import Water
from navsense.motion.base import MotionBlock
from navsense.motion.derived import AttachedMotion
from navsense.motion.stationary import Stationary
from navsense.motion.trajectory import waypoints
from navsense.sensors.doppler import Beam, Beams, WaterMassLayer, make_janus_beams
from navsense.sensors.doppler.echoes import find_echoes
from navsense.sensors.doppler.water import find_bottom_distance, find_layer_velocities

THIRTY = math.radians(30.0)
PLUS = tuple(math.radians(90.0 * k) for k in range(4))
BEAMS = make_janus_beams(THIRTY, PLUS)
LAYER = WaterMassLayer(5.0, 15.0)
AT_0 = np.zeros(1)
NO_BOTTOM = np.full(1, math.inf)
SEA = Environment(water=Water())


@dataclass(frozen=True)
class Sheared:
    """A current in the world: `flow` (m/s) times a function of the height z (m) and the instant (s)."""

    flow: Vector
    profile: Callable[[AnyArray, AnyArray], AnyArray]

    def at(self, position_w: AnyArray, time: AnyArray) -> AnyArray:
        found: AnyArray = self.profile(position_w[:, 2], time)[:, None] * np.array(self.flow)
        return found

    def rotate(self, rotation: Quaternion) -> Sheared:
        return replace(self, flow=rotate(rotation, self.flow))


@dataclass(frozen=True)
class Moving:
    """A level frame at one place that goes and turns at given rates (m/s in the world, rad/s in its own)."""

    pose: Pose
    velocity: Vector
    omega: Vector = (0.0, 0.0, 0.0)

    @property
    def end(self) -> float:
        return math.inf

    def at(self, time: AnyArray) -> MotionBlock:
        rows = np.ones((time.shape[0], 1))
        still = (rows * self.pose.position, rows * np.array(self.pose.rotation), rows * self.velocity)
        return MotionBlock(*still, rows * self.omega, rows * np.zeros(3), rows * np.zeros(3))


def find_layer(
    layer: WaterMassLayer, motion: Any, surroundings: Environment, *, bottom: float = math.inf
) -> tuple[Any, float, float]:
    """Return the velocity along each beam, and the layer's boundaries; NaN without a layer."""
    layer_velocity = find_layer_velocities(BEAMS, layer, motion, surroundings, AT_0, np.full(1, bottom))
    far = float(layer_velocity.far_boundary[0])
    return layer_velocity.velocity[0], math.nan if math.isnan(far) else layer.near, far


@pytest.mark.requirement("GAP-1", "WTR-2")
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.0), (0.1, -0.2, 2.0)])
def test_velocity_through_still_and_flowing_water(attitude: Vector) -> None:
    pose = Pose((3.0, -2.0, -40.0), from_rpy(*attitude))
    motion, flow = Moving(pose, (1.5, -0.7, 0.2)), (0.3, 0.4, -0.05)
    axes = np.array([rotate(pose.rotation, beam.axis) for beam in BEAMS.beams])
    found, near, far = find_layer(LAYER, motion, SEA)
    assert found == pytest.approx(axes @ motion.velocity, rel=1e-13, abs=0.0)
    assert (near, far) == (5.0, 15.0)
    found, _, _ = find_layer(LAYER, motion, replace(SEA, current=UniformField(flow)))
    assert found == pytest.approx(axes @ (np.array(motion.velocity) - flow), rel=1e-13, abs=0.0)
    found, _, _ = find_layer(
        LAYER, motion, Environment(current=UniformField(flow))
    )  # a world whose water nobody describes
    assert found == pytest.approx(axes @ (np.array(motion.velocity) - flow), rel=1e-13, abs=0.0)


@pytest.mark.requirement("GAP-1", "GAP-9")
def test_transducer_lever_arm() -> None:
    """At (x, y) off an axis that turns at w a transducer goes at w (-y, x), and a sensor off the vehicle's as well."""
    apart = replace(BEAMS, beams=tuple(replace(beam, position=(0.5, -0.2, 0.0)) for beam in BEAMS.beams))
    yawing = Moving(Pose((0.0, 0.0, -20.0)), (0.0, 0.0, 0.0), (0.0, 0.0, 0.8))
    found = find_layer_velocities(
        apart, LAYER, AttachedMotion(yawing, Pose((1.0, 0.6, 0.0))), SEA, AT_0, NO_BOTTOM
    ).velocity[0]
    assert found == pytest.approx(0.8 * math.sin(THIRTY) * np.array([-0.4, 1.5, 0.4, -1.5]), abs=1e-14)


@pytest.mark.requirement("GAP-1", "WTR-2")
@pytest.mark.parametrize("attitude", [(0.0, 0.0, 0.7), (0.15, -0.1, 0.0)])
@pytest.mark.parametrize("bottom", [math.inf, 15.0])
def test_layer_velocity_of_a_sheared_current(attitude: Vector, bottom: float) -> None:
    """A linear profile gives the velocity at the middle of the part of the layer that each beam crosses."""
    motion = Moving(Pose((0.0, 0.0, -10.0), from_rpy(*attitude)), (0.5, 0.0, 0.0))
    shear = replace(SEA, current=Sheared((0.6, -0.8, 0.0), lambda z, _: 0.2 + 0.03 * (z + 10.0)))
    found, near, far = find_layer(LAYER, motion, shear, bottom=bottom)
    assert far == pytest.approx(min(15.0, 0.8 * bottom), rel=1e-12, abs=0.0)
    for k, beam in enumerate(BEAMS.beams):
        u = rotate(motion.pose.rotation, beam.axis)
        slant = 0.5 * (near + far) / math.cos(THIRTY)
        flow = np.array([0.6, -0.8, 0.0]) * (0.2 + 0.03 * slant * u[2])
        assert found[k] == pytest.approx(float(np.dot(u, motion.velocity - flow)), rel=1e-12, abs=0.0)


@pytest.mark.requirement("GAP-1")
def test_layer_weights_are_triangular() -> None:
    """A wave in the profile: places come as close to the integral as the midpoint rule does, in 1 / samples^2."""
    bend = replace(SEA, current=Sheared((1.0, 0.0, 0.0), lambda z, t: np.sin(0.4 * z) + t))
    motion = Stationary(Pose((0.0, 0.0, -10.0)))
    over = [
        quad(lambda x: (1.0 - abs(x)) * math.sin(0.4 * (-20.0 - 5.0 * x)), low, low + 1.0)[0] for low in (-1.0, 0.0)
    ]
    true, errors = -math.sin(THIRTY) * (sum(over) + 3.0), []
    for samples in (4, 8, 16, 1000):
        layer_velocity = find_layer_velocities(
            BEAMS, replace(LAYER, samples=samples), motion, bend, np.array([3.0]), NO_BOTTOM
        )
        errors.append(abs(float(layer_velocity.velocity[0, 0]) / true - 1.0))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2, abs=0.0)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2, abs=0.0)
    assert errors[3] < 1e-6
    one = find_layer_velocities(BEAMS, replace(LAYER, samples=1), motion, bend, np.array([3.0]), NO_BOTTOM).velocity[
        0, 0
    ]
    assert one == pytest.approx(-math.sin(THIRTY) * (math.sin(-8.0) + 3.0), rel=1e-13, abs=0.0)


@pytest.mark.requirement("GAP-1")
def test_layer_ends_at_80_percent_of_the_range() -> None:
    """The layer keeps to four fifths of the way to the bottom, and is none where less than its least size is left."""
    layer, motion = WaterMassLayer(5.0, 15.0, 2.0), Moving(Pose((0.0, 0.0, -60.0)), (1.0, 0.0, 0.0))
    ends = {18.75: 15.0, 18.7: 14.96, 10.0: 8.0, 8.75: 7.0, 8.74: math.nan, 4.0: math.nan, 0.0: math.nan}
    for bottom, end in ends.items():
        found, near, far = find_layer(layer, motion, SEA, bottom=bottom)
        if math.isnan(end):
            assert math.isnan(near)
            assert math.isnan(far)
            assert np.isnan(found).all()
        else:
            assert [near, far] == pytest.approx([5.0, end], rel=1e-15, abs=0.0)
            assert found == pytest.approx([0.5, 0.0, -0.5, 0.0], abs=1e-14)
    assert find_layer(WaterMassLayer(5.0, 15.0), motion, SEA, bottom=6.26)[2] == pytest.approx(
        5.008, rel=1e-12, abs=0.0
    )
    assert math.isnan(find_layer(WaterMassLayer(5.0, 15.0), motion, SEA, bottom=6.25)[2])
    assert find_layer(WaterMassLayer(5.0, 15.0, share=0.5), motion, SEA, bottom=20.0)[2] == 10.0
    layer_velocity = find_layer_velocities(
        BEAMS,
        layer,
        motion,
        replace(SEA, current=UniformField((0.4, 0.0, 0.0))),
        np.zeros(3),
        np.array([9.0, 1.0, 9.0]),
    )
    assert layer_velocity.velocity[[0, 2], 0] == pytest.approx(
        [0.3, 0.3], rel=1e-12, abs=0.0
    )  # beside a ping without layer
    assert np.isnan(layer_velocity.velocity[1]).all()


@pytest.mark.requirement("GAP-1")
def test_shallowest_beam_limits_the_layer() -> None:
    """On a slope the uphill beam limits the layer; distances are along the mean of the beams, for any angles."""
    bed = Environment(
        scene=Scene((Body("bed", Plane(), Pose((0.0, 0.0, -20.0), from_rpy(0.0, -math.atan(0.5), 0.0))),))
    )
    ranges = find_echoes(BEAMS, Stationary(IDENTITY), bed, AT_0, 100.0, False).beam_range
    uphill = 20.0 / (1.0 + 0.5 * math.tan(THIRTY))  # where 20 - x / 2 is x cot 30
    assert find_bottom_distance(BEAMS.positive_janus_cosines, ranges) == pytest.approx([uphill], rel=1e-13, abs=0.0)
    assert find_bottom_distance(
        BEAMS.positive_janus_cosines, np.array([[math.nan, 8.0, 9.0, math.nan], [math.nan] * 4])
    ).tolist() == [
        pytest.approx(8.0 * math.cos(THIRTY), rel=1e-12, abs=0.0),
        math.inf,
    ]
    tilted = tuple(Beam(rotation=from_rpy(0.0, math.radians(d), a)) for d, a in ((70.0, 0.0), (50.0, 2.0), (60.0, 4.0)))
    uneven = Beams(tilted)
    mean = np.sum([beam.axis for beam in tilted], axis=0)
    mean /= math.sqrt(float(mean @ mean))
    assert uneven.positive_janus_cosines == pytest.approx(
        [float(np.dot(beam.axis, mean)) for beam in tilted], rel=1e-14, abs=0.0
    )
    slant = np.array([[30.0, 20.0, 25.0]])
    assert find_bottom_distance(uneven.positive_janus_cosines, slant) == pytest.approx(
        [(slant[0] * uneven.positive_janus_cosines).min()], rel=1e-14, abs=0.0
    )


@pytest.mark.requirement("GAP-1")
def test_layer_above_the_surface_has_no_echo() -> None:
    """Beams with all samples under water have an echo; other beams and a sensor in the air have none."""
    up = make_janus_beams(THIRTY, PLUS, down=(0.0, 0.0, 1.0))
    ask = partial(find_layer_velocities, up, LAYER, surroundings := Moving(Pose((0.0, 0.0, -16.0)), (0.0, 0.0, 1.0)))
    assert ask(SEA, AT_0, NO_BOTTOM).velocity[0] == pytest.approx([math.cos(THIRTY)] * 4, rel=1e-12, abs=0.0)
    assert np.isnan(ask(replace(SEA, water=Water(surface=-2.0)), AT_0, NO_BOTTOM).velocity).all()
    leaning = replace(surroundings, pose=Pose((0.0, 0.0, -16.0), from_rpy(0.0, 0.2, 0.0)))
    found = find_layer_velocities(up, LAYER, leaning, SEA, AT_0, NO_BOTTOM).velocity[0]
    tops = -16.0 + 15.0 / math.cos(THIRTY) * np.array([rotate(leaning.pose.rotation, b.axis)[2] for b in up.beams])
    assert np.isnan(found).tolist() == (tops > 0.0).tolist()
    assert 0 < np.isnan(found).sum() < 4
    asked: list[float] = []

    def flowing(z: AnyArray, _: AnyArray) -> AnyArray:
        asked.extend(z.tolist())
        return np.zeros_like(z)

    find_layer_velocities(up, LAYER, leaning, replace(SEA, current=Sheared((1.0, 0.0, 0.0), flowing)), AT_0, NO_BOTTOM)
    assert asked
    assert max(asked) <= 0.0  # no current is asked for in the air
    air = Moving(Pose((0.0, 0.0, 1.0)), (1.0, 0.0, 0.0))
    assert np.isnan(find_layer(LAYER, air, SEA)[0]).all()
    assert not np.isnan(find_layer(LAYER, air, Environment())[0]).any()


@pytest.mark.requirement("GAP-1")
def test_pings_do_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    path = [Pose((0.0, 0.0, -20.0)), Pose((3.0, 1.0, -22.0), from_rpy(0.1, 0.2, 0.5)), Pose((9.0, 0.0, -20.0))]
    motion = waypoints((0.0, 2.0, 4.0), path)
    stirred = replace(SEA, current=Sheared((1.0, 0.3, 0.1), lambda z, t: 0.01 * z * t))
    time, bottom = np.linspace(0.0, 4.0, 13), np.linspace(5.0, 30.0, 13)
    complete = find_layer_velocities(BEAMS, LAYER, motion, stirred, time, bottom)
    monkeypatch.setattr("navsense.sensors.doppler.water._BATCH_SIZE", 60)
    parts = find_layer_velocities(BEAMS, LAYER, motion, stirred, time, bottom)
    alone = [
        find_layer_velocities(BEAMS, LAYER, motion, stirred, time[k : k + 1], bottom[k : k + 1]) for k in range(13)
    ]
    assert np.isnan(complete.velocity[0]).all()
    assert np.isfinite(complete.velocity[-1]).all()
    for column, expected in enumerate(complete):
        assert np.array_equal(parts[column], expected, equal_nan=True)
        assert np.array_equal(np.concatenate([part[column] for part in alone]), expected, equal_nan=True)


@pytest.mark.requirement("GAP-1")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WaterMassLayer(-1.0, 5.0), "near boundary of the water layer (m): -1.0; must be at least 0"),
        (lambda: WaterMassLayer(math.nan, 5.0), "near boundary of the water layer (m): nan"),
        (
            lambda: WaterMassLayer(5.0, 5.0),
            "far boundary of the water layer (m): 5.0; must be beyond the near one, 5 m",
        ),
        (lambda: WaterMassLayer(5.0, math.inf), "far boundary of the water layer (m): inf"),
        (
            lambda: WaterMassLayer(5.0, 8.0, 3.5),
            "minimum size of the water layer (m): 3.5; must be from 0 to the size of the layer, 3 m",
        ),
        (lambda: WaterMassLayer(5.0, 8.0, math.nan), "minimum size of the water layer (m): nan"),
        (
            lambda: WaterMassLayer(5.0, 8.0, samples=0),
            "samples of the water layer: 0; must be a whole number from 1 to 1000",
        ),
        (lambda: WaterMassLayer(5.0, 8.0, samples=2.5), "samples of the water layer: 2.5"),  # type: ignore[arg-type]
        (lambda: WaterMassLayer(5.0, 8.0, samples=1001), "samples of the water layer: 1001"),
        (
            lambda: WaterMassLayer(5.0, 8.0, share=0.0),
            "share of the way to the bottom: 0.0; must be above 0 and at most 1",
        ),
        (lambda: WaterMassLayer(5.0, 8.0, share=1.1), "share of the way to the bottom: 1.1"),
    ],
)
def test_invalid_layer_is_an_error(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(SensorError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.requirement("GAP-1")
def test_beams_without_a_common_layer_are_an_error() -> None:
    """A beam that goes back against the mean of them all, and beams all round that have no mean."""
    ahead = [Beam(rotation=from_rpy(0.0, 0.0, a)) for a in (-0.2, 0.2)]
    up, back = Beam(rotation=from_rpy(0.0, -1.4, 0.0)), Beam(rotation=from_rpy(0.0, 0.0, 3.0))
    with pytest.raises(SensorError, match=r"^angle of beam 3 to the instrument axis: cosine -0\.\d+; must be below 90"):
        _ = Beams((*ahead, up, back)).positive_janus_cosines
    six = [Beam(rotation=from_rpy(0.0, 0.0, math.pi * k)) for k in range(2)]
    six += [Beam(rotation=from_rpy(0.0, 0.0, math.pi * (k + 0.5))) for k in range(2)]
    six += [Beam(rotation=from_rpy(0.0, math.pi * (k + 0.5), 0.0)) for k in range(2)]
    with pytest.raises(SensorError, match=r"^angle of beam \d to the instrument axis"):
        _ = Beams(tuple(six)).positive_janus_cosines
