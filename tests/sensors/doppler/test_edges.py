"""Doppler instruments at their limits: wide patterns, beams that cancel, overconfident filters."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import SensorError
from navsense.core.pose import from_rpy
from navsense.noise.specification import Noise
from navsense.sensors import Cone
from navsense.sensors.doppler import (
    Beam,
    Beams,
    BeamWeighting,
    EchoStrength,
    LongTermFilter,
    MessageDialect,
    TrackErrors,
    WaterMassLayer,
    make_janus_beams,
)
from navsense.sensors.doppler.long_term_filter import MIN_DENSITY, filter_pings, make_state
from navsense.sensors.dvl import Dvl, TrackMode

AZIMUTHS = [0.0, 1.5, 3.0, 4.5]


@pytest.mark.requirement("DVU-2")
@pytest.mark.parametrize(
    ("width", "rings", "is_wide"), [(1.0, 1, False), (1.2, 3, False), (1.4, 3, True), (2.0, 2, True)]
)
def test_too_wide_pattern_is_an_error_at_construction(width: float, rings: int, is_wide: bool) -> None:
    """The limit is exactly a quarter turn from the axis. The error is not delayed to the first ping."""
    beams = make_janus_beams(0.5, AZIMUTHS, width=width, rings=rings)
    if is_wide:
        allowed = r"width of a beam \(rad\): .*; must be smaller: a ring of rays is .*; or use fewer rings"
        with pytest.raises(SensorError, match=allowed):
            replace(beams, weighting=BeamWeighting.PATTERN)
    else:
        rays = replace(beams, weighting=BeamWeighting.PATTERN).rays
        off = np.arccos(np.minimum((rays * beams.axes[:, None, :]).sum(axis=2), 1.0))
        assert 0.5 < off.max() < 0.5 * math.pi


@pytest.mark.requirement("DVU-2")
def test_pattern_construction_is_linear_in_the_number_of_rays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ray is computed once per beam and once in the check of the pattern."""
    counts: list[int] = []
    laid = Cone.make_ring

    def count_calls(self: Cone, off: float, count: int) -> list[Any]:
        counts.append(count)
        return laid(self, off, count)

    monkeypatch.setattr(Cone, "make_ring", count_calls)
    for rings in (1, 20, 40):
        counts.clear()
        beams = replace(make_janus_beams(0.5, AZIMUTHS[:3], width=0.07, rings=rings), weighting=BeamWeighting.PATTERN)
        assert beams.rays.shape[1] == 1 + 3 * rings * (rings + 1)
        assert sum(counts) <= 4 * beams.rays.shape[1]
    monkeypatch.undo()
    shape = Cone(0.07, 4, (0.3, -0.2, 0.9))
    circle = np.array(shape.make_ring(0.035, 24))
    assert circle == pytest.approx(shape.make_rays()[-24:], abs=1e-15)
    assert circle @ np.array(shape.axis) / math.hypot(*shape.axis) == pytest.approx(math.cos(0.035), abs=1e-15)


@pytest.mark.requirement("DVW-2")
def test_beams_that_cancel_have_no_mean_direction() -> None:
    """Four beams to the corners of a tetrahedron sum to rounding errors, which have no direction."""
    down, third = math.asin(1.0 / 3.0), math.tau / 3.0
    around = [Beam(rotation=from_rpy(0.0, down, a)) for a in (0.0, third, 2.0 * third)]
    beams = Beams((Beam(rotation=from_rpy(0.0, -0.5 * math.pi, 0.0)), *around))
    assert np.abs(beams.axes.sum(axis=0)).max() < 1e-12
    up = beams.axes[:, 2].tolist()
    assert beams.janus_cosines == pytest.approx(up, abs=1e-12)
    with pytest.raises(SensorError, match=r"angle of beam 1 to the instrument axis: cosine -0\.333333"):
        Dvl(beams=beams, water_mode=TrackMode.ALWAYS, layer=WaterMassLayer(1.0, 2.0))


@pytest.mark.requirement("GAP-3")
def test_long_term_velocity_of_error_free_pings_at_minimum_density() -> None:
    with pytest.raises(SensorError, match=r"acceleration_density of the long-term filter .*: 1e-200; must be at least"):
        LongTermFilter(1e-200)
    velocity = np.tile([1.0, -2.0, 0.5], (4, 1))
    out = np.full((4, 3), math.nan)
    spread = filter_pings(
        LongTermFilter(MIN_DENSITY),
        make_state(),
        np.arange(4.0) * 0.001,
        np.ones(4),
        velocity,
        np.zeros((4, 3, 3)),
        out,
    )
    assert out.tolist() == velocity.tolist()
    assert np.isfinite(spread).all()


@pytest.mark.requirement("GAP-2")
def test_error_velocity_limit_has_a_correct_error_text() -> None:
    with pytest.raises(SensorError) as found:
        Dvl(error_velocity_limit=-1.0)
    assert str(found.value) == "error_velocity_limit: -1.0; must be from 0 to 100000, or infinite for no limit"


@pytest.mark.requirement("DVU-1")
@pytest.mark.parametrize("name", ["bottom_mode", "water_mode", "transducer", "dialect"])
def test_text_is_not_accepted_as_enumeration(name: str) -> None:
    """A text equals no member of an enumeration and would silently select the default."""
    choice = getattr(Dvl(), name)
    kind, text = f"ns.sensors.{type(choice).__name__}", str(choice)
    arguments: dict[str, Any] = {name: text}
    with pytest.raises(SensorError) as found:
        Dvl(**arguments)
    assert str(found.value) == f"{name}: {text}; must be of {kind}, which str is not; write {kind}.{choice.name}"
    assert getattr(ns.sensors, type(choice).__name__) is type(choice)
    with pytest.raises(SensorError, match=f"write {re.escape(kind)}.[A-Z_]+, {re.escape(kind)}.[A-Z_]+"):
        Dvl(**{name: "sometimes"})


@pytest.mark.requirement("DVU-2")
def test_weighting_and_position_types_are_checked() -> None:
    text: Any = "pattern"
    with pytest.raises(SensorError, match=r"weighting: pattern; .*; write ns\.sensors\.BeamWeighting\.PATTERN"):
        replace(Dvl().beams, weighting=text)
    for place in ((0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (0.0, math.nan, 0.0), (1e200, math.inf, 0.0)):
        wrong: Any = place
        with pytest.raises(SensorError, match=r"position of a beam \(m\): .*; must be 3 finite numbers"):
            Beam(position=wrong)


@pytest.mark.requirement("GAP-2")
def test_description_lists_losses_and_errors() -> None:
    bare = "\n".join(Dvl().describe(5.0))
    assert "beams: 4, each 30 deg from the instrument axis; one ray per beam\n" in bare
    assert "dropouts" not in bare
    assert "noise of a ping" not in bare
    track = TrackErrors(Noise(stddev=0.02), 0.001, 8.0, 0.003)
    sheet = Dvl(
        beams=replace(make_janus_beams(0.5, AZIMUTHS, width=0.07), weighting=BeamWeighting.PATTERN),
        bottom=track,
        water=track,
        water_mode=TrackMode.FALLBACK,
        layer=WaterMassLayer(1.0, 20.0),
        echo_strength=EchoStrength(90.0, 0.04),
        dropout_probability=0.1,
        reacquisition_time=2.0,
    )
    lines, added = sheet.describe(5.0), "plus 0.001 m/s per m/s of speed, at 8 Hz, reported as 0.003 m/s"
    assert f"bottom track, noise of a ping: {added}" in lines
    assert f"water track, noise of a ping: stddev 0.02 m/s, {added}" in lines
    assert "echo: 90 dB minus 30 log10(r) and 0.08 dB/m; lock at 6 dB, within 1 dB" in lines
    assert "dropouts: 0.1 of a beam's pings; 2 s without lock after a loss" in lines
    assert lines[0].endswith("; mean velocity of 7 rays over the beam pattern")
    one = replace(sheet, classic=True, dialect=MessageDialect.DSROS).describe(5.0)
    assert one[0].endswith("one ray per beam")
