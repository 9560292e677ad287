"""Plots of readings by matplotlib, and data frames of pandas."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import navsense as ns
from navsense.core.errors import NavsenseError, RecordingError, SimulationError, UnknownNameError
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault
from navsense.figures import find_time_spans
from navsense.sensors import Adcp, Imu, Magnetometer
from navsense.testing import example_world

pytestmark = pytest.mark.compiled

NOISE = ns.Noise(stddev=1e-7, bias_stddev=1e-6)


@pytest.fixture(scope="module")
def run() -> Any:
    compass = Magnetometer(x=NOISE, y=NOISE, z=NOISE)
    world = example_world(("imu", Imu()), ("compass", compass), ("adcp", Adcp.example_spec()))
    stuck = Faults(scheduled=(ScheduledFault("stuck", 0.5, 0.7),))
    sensors = [replace(one, faults=stuck) if one.name.endswith("compass") else one for one in world.sensors]
    return ns.simulate(replace(world, sensors=tuple(sensors)), 1.0, seed=1)


@pytest.fixture(scope="module")
def runs() -> Any:
    return ns.simulate(example_world(("compass", Magnetometer(x=NOISE))), 0.1, seed=1, runs=[0, 4, 7])


def list_lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.get_lines()}


def list_shaded_spans(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """Return start and end (s) of each shaded span, by label."""
    return {
        shading.get_label(): [
            (round(float(path.vertices[:, 0].min()), 3), round(float(path.vertices[:, 0].max()), 3))
            for path in shading.get_paths()
        ]
        for shading in axes.collections
    }


def test_a_reading_has_an_axis_for_each_array_with_its_unit(run: Any) -> None:
    figure = run["imu"].plot()
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["orientation", "angular velocity\n(rad/s)", "linear acceleration\n(m/s^2)"]
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert figure.get_suptitle() == "robot::arm::imu"
    lines = list_lines(figure.axes[1])
    for index, axis in enumerate("xyz"):
        assert np.array_equal(lines[axis].get_xydata()[:, 1], run["imu"]["angular_velocity"][:, index])
        assert np.array_equal(lines[axis].get_xydata()[:, 0], run["imu"].time)
    assert lines["ideal"].get_linestyle() == "--"
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["w", "x", "y", "z", "ideal"]


def test_fields_are_in_microtesla_and_faults_are_shaded(run: Any) -> None:
    compass = run["compass"]
    (axes,) = compass.plot("field").axes
    assert axes.get_ylabel() == "field\n(µT)"
    assert np.allclose(list_lines(axes)["x"].get_ydata(), 1e6 * compass["field"][:, 0], rtol=1e-15, atol=0.0)
    assert list_shaded_spans(axes) == {"fault: stuck": [(0.5, 0.7)]}
    assert axes.get_ylim()[1] < 100.0  # the shading has the height of the axes and does not widen them
    dashed = [line.get_ydata() for line in axes.get_lines() if line.get_linestyle() == "--" and line.get_ydata().size]
    assert np.allclose(np.stack(dashed, axis=-1), 1e6 * compass.ideal["field"], rtol=1e-15, atol=0.0)


def test_invalid_values_and_missing_samples_are_gaps(run: Any) -> None:
    compass = run["compass"]
    valid, emitted = compass.valid.copy(), compass.emitted.copy()
    valid[10:20], emitted[50:60] = False, False
    (axes,) = replace(compass, valid=valid, emitted=emitted).plot().axes
    time, field = list_lines(axes)["x"].get_xydata().T
    assert np.array_equal(np.flatnonzero(np.isnan(field))[:10], np.arange(10, 20))
    assert np.count_nonzero(np.isnan(field)) == 10 + 1  # one for the gap of the samples that were not published
    assert np.isfinite(time).all()
    assert time.size == compass.time.size - 10 + 1


def test_samples_that_are_regularly_missing_are_no_gaps(run: Any) -> None:
    emitted = np.zeros_like(run["compass"].emitted)
    emitted[::3] = True
    (axes,) = replace(run["compass"], emitted=emitted).plot().axes
    assert not np.isnan(list_lines(axes)["x"].get_xydata()).any()


def test_every_span_of_many_faults_is_shaded(run: Any) -> None:
    """A report and a plot use the same spans and gaps."""
    compass = run["compass"]
    stuck = np.arange(compass.time.size) % 4 == 1
    many = replace(compass, fault={"stuck": stuck}, time=10.0 * compass.time)
    (axes,) = many.plot().axes
    spans = list_shaded_spans(axes)["fault: stuck"]
    starts, ends = find_time_spans(many.time, stuck)
    assert len(spans) == np.count_nonzero(stuck) > 40
    assert spans == [
        (round(start, 3), round(end, 3)) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def test_profiles_are_images(run: Any) -> None:
    velocity = run["adcp"]["velocity"]
    axes, bar = run["adcp"].plot("velocity").axes
    assert (axes.get_ylabel(), bar.get_ylabel()) == ("component", "velocity\n(m/s)")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    (image,) = axes.collections
    shown = image.get_array().reshape(3, velocity.shape[1], -1)
    emitted = run["adcp"].emitted & run["adcp"].valid
    expected = velocity[emitted].transpose(2, 1, 0)
    columns = np.flatnonzero(emitted[run["adcp"].emitted])
    assert np.array_equal(np.ma.filled(shown[..., columns], np.nan), expected, equal_nan=True)


def test_a_run_shows_its_sensors(run: Any, tmp_path: Path) -> None:
    figure = run.plot("imu", "compass")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["imu", "imu", "imu", "compass"]
    assert figure.get_suptitle() == "laws, run 0"
    assert len(run.plot().axes) >= 7
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes()[:8] == figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(UnknownNameError, match=r"did you mean robot::arm::imu"):
        run.plot("imo")
    with pytest.raises(UnknownNameError, match=r"did you mean orientation"):
        run["imu"].plot("orientaton")


def test_one_of_several_runs_is_drawn(runs: Any, tmp_path: Path) -> None:
    runs.save(tmp_path / "runs.npz")
    recording = ns.open(tmp_path / "runs.npz")
    expected = 1e6 * runs["compass"]["field"][1, :, 0]
    for figure in (runs.plot(run=4), recording.plot(run=4), runs["compass"].plot(run_index=1)):
        assert np.allclose(list_lines(figure.axes[0])["x"].get_ydata(), expected, rtol=1e-15, atol=0.0)
    assert runs.plot().get_suptitle() == "laws, run 0"
    assert recording.plot(run=4).get_suptitle() == runs.plot(run=4).get_suptitle() == "laws, run 4"
    with pytest.raises(SimulationError, match="run: 1; must be one of"):
        runs.plot(run=1)
    with pytest.raises(RecordingError, match="run: 1; must be one of 0, 4, 7"):
        recording.plot(run=1)
    with pytest.raises(NavsenseError, match="run_index: 3; must be from 0 to 2"):
        runs["compass"].plot(run_index=3)


def test_a_reading_without_samples_has_no_plot(run: Any) -> None:
    with pytest.raises(NavsenseError, match="has no array with a sample"):
        run["imu"].select_rows(0, 0).plot()


def test_missing_libraries_are_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NavsenseError, match=r"a picture needs matplotlib; pip install 'navsense\[picture\]'"):
        run["imu"].plot()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NavsenseError, match=r"a data frame needs pandas; pip install 'navsense\[pandas\]'"):
        run["imu"].to_pandas()


def test_data_frame_has_a_column_for_each_component(run: Any) -> None:
    frame = run["imu"].to_pandas()
    vectors = [f"{name}.{axis}" for name in ("angular_velocity", "linear_acceleration") for axis in "xyz"]
    assert list(frame.columns) == [*(f"orientation.{axis}" for axis in "wxyz"), *vectors, "valid", "emitted"]
    assert frame.index.name == "time"
    assert np.array_equal(frame.index, run["imu"].time)
    assert np.array_equal(frame[vectors[:3]], run["imu"]["angular_velocity"])
    assert frame.attrs["units"]["angular_velocity.x"] == "rad/s"
    assert (frame.attrs["sensor"], frame.attrs["frame"]) == ("robot::arm::imu", "imu")
    assert frame["valid"].dtype == bool


def test_data_frame_contains_other_groups_and_stamps(run: Any) -> None:
    compass = run["compass"]
    frame = compass.to_pandas("stamp", groups=("arrays", "ideal", "bias", "fault"))
    assert np.array_equal(frame["ideal.field.y"], compass.ideal["field"][:, 1])
    assert np.array_equal(frame["bias.field.z"], compass.bias["field"][:, 2])
    assert np.array_equal(frame["fault.stuck"], compass.fault["stuck"])
    assert np.array_equal(frame.index.as_unit("ns").asi8, compass.stamp)
    assert str(frame.index.tz) == "UTC"
    profile = run["adcp"].to_pandas()
    assert np.array_equal(profile["velocity.2.1"], run["adcp"]["velocity"][:, 2, 1], equal_nan=True)


def test_data_frame_of_several_runs_has_two_levels(runs: Any) -> None:
    compass = runs["compass"]
    frame = compass.to_pandas(groups=("arrays", "ideal"))
    assert frame.index.names == ["run_index", "time"]
    assert np.array_equal(frame.loc[2]["field.x"], compass["field"][2, :, 0])
    assert np.array_equal(frame.loc[1]["ideal.field.x"], compass.ideal["field"][:, 0])
    assert np.array_equal(frame.loc[1].index, compass.time)


def test_unknown_index_or_group_is_an_error(run: Any) -> None:
    with pytest.raises(NavsenseError, match=r"index of a data frame: stmp; must be one of time, stamp; did you mean"):
        run["imu"].to_pandas("stmp")
    with pytest.raises(NavsenseError, match=r"group of arrays: idael; .*did you mean ideal\?"):
        run["imu"].to_pandas(groups=("idael",))
