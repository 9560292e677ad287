"""Units of magnetic fields: in which readings are read, and in which results are given and printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.calibration.load import Samples, read
from navsense.core.errors import CalibrationError
from navsense.sensors import Magnetometer
from navsense.testing import example_world

pytestmark = pytest.mark.requirement("MAG-1")

IRON = (1e-6, -2e-6, 3e-6)
NOISE = ns.Noise(stddev=1e-8)


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drive") / "drive.npz"
    compass = Magnetometer(x=NOISE, y=NOISE, z=NOISE, hard_iron=IRON)
    world = replace(example_world(("compass", compass)), environment=ns.testing.example_world().environment)
    ns.simulate(world, 3.0, seed=1).save(path)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("mx,my,mz\n" + "20.5,1,-40\n" * 5)
    return path


def test_readings_are_converted_to_the_unit(drive: Path) -> None:
    tesla, nano = read(drive, attitude="truth"), read(drive, attitude="truth", unit="nT")
    assert (tesla.unit, nano.unit) == ("T", "nT")
    assert np.array_equal(nano.field, 1e9 * tesla.field)
    assert nano.noise == 1e9 * tesla.noise > 0.0
    assert np.array_equal(read(drive, unit="G").field, 1e4 * read(drive).field)
    plain = read(drive, unit="none")
    assert plain.unit is None
    assert np.array_equal(plain.field, read(drive).field)


def test_a_file_without_a_unit_has_the_unit_of_the_caller(table: Path) -> None:
    assert (read(table, unit="uT").unit, read(table, unit="uT").field[0, 0]) == ("uT", 20.5)
    assert (read(table).unit, read(table, file_unit="none").unit) == ("T", None)
    converted = read(table, file_unit="uT", unit="nT")
    assert (converted.unit, converted.field[0, 0]) == ("nT", 20500.0)


def test_the_unit_of_a_file_can_be_replaced(drive: Path) -> None:
    samples = read(drive, file_unit="uT")
    assert np.array_equal(samples.field, read(drive).field)
    assert samples.unit == "uT"
    assert "the given unit uT replaces the unit of the file, T" in samples.notes


@pytest.mark.parametrize("option", ["unit", "file_unit"])
def test_unknown_units_are_errors(drive: Path, option: str) -> None:
    with pytest.raises(CalibrationError, match=rf"{option}: nt; must be one of T, .*; did you mean nT\?"):
        read(drive, **{option: "nt"})


def test_samples_are_calibrated_in_their_unit(drive: Path) -> None:
    samples = read(drive, attitude="truth", unit="nT")
    result = samples.calibrate()
    direct = ns.calibration.known_attitude(samples.field, samples.rotation_ws, unit="nT", attitude_stddev=0.0)
    assert result.unit == "nT"
    assert np.array_equal(result.bias, direct.bias)
    assert np.array_equal(result.covariance, direct.covariance)
    assert np.abs(result.bias - 1e9 * np.array(IRON)).max() < 5.0 * max(result.stddev[f"bias.{axis}"] for axis in "xyz")
    without = read(drive, unit="nT").calibrate(soft_iron=False)
    assert without.method == "sphere"


def test_results_are_converted_with_their_deviations(drive: Path, tmp_path: Path) -> None:
    samples = read(drive, attitude="truth", unit="nT")
    result = samples.calibrate(strength=48_000.0)
    result.save(tmp_path / "compass.json")
    for tesla in (result.to_unit("T"), ns.calibration.Calibration.load(tmp_path / "compass.json", unit="T")):
        assert tesla.unit == "T"
        assert tesla.strength == pytest.approx(48e-6, rel=1e-15, abs=0.0)
        assert np.allclose(tesla.apply(samples.field / 1e9), result.apply(samples.field) / 1e9, rtol=1e-12, atol=0.0)
        assert tesla.stddev["bias.x"] == pytest.approx(result.stddev["bias.x"] / 1e9, rel=1e-12, abs=0.0)
        assert tesla.stddev["soft_iron.xy"] == result.stddev["soft_iron.xy"]
    with pytest.raises(CalibrationError, match="unit: nt; must be one of"):
        result.to_unit("nt")
    with pytest.raises(CalibrationError, match="requires a calibration with a unit"):
        replace(result, unit=None).to_unit("T")


def test_results_are_printed_in_microtesla_with_one_sigma(drive: Path) -> None:
    texts = [str(read(drive, attitude="truth", unit=unit).calibrate()) for unit in ("nT", "T", "G", "uT")]
    heads = [text.partition("\ncalibrated")[0] for text in texts]
    assert heads[0].splitlines()[0].endswith("readings; ± is 1 sigma")
    assert heads[0].splitlines()[1].endswith(" µT")
    assert heads[0].splitlines()[-1].endswith(" µT per axis (1 sigma)")
    assert all(head == heads[0] for head in heads)
    assert "bias = (" in texts[1]
    assert " T in the earth's field" in texts[1]
    assert " nT in the earth's field" in texts[0]


def test_reprs_are_short(drive: Path) -> None:
    samples = read(drive, attitude="truth", unit="uT")
    assert len(repr(samples)) <= 100
    assert repr(samples).startswith("<Samples from 599 readings, robot::arm::compass (magnetometer); attitude: truth")
    result = samples.calibrate()
    assert repr(result).startswith("<Calibration by known attitude: 599 readings, strength ")
    assert repr(result).endswith(" µT, verdict ok>")
    assert "<td" in samples._repr_html_()
    for name in ("scale", "bias.x", "soft_iron.zz", "µT"):
        assert f">{name}</td>" in result._repr_html_()
    assert isinstance(samples, Samples)


def test_misspelt_sensors_have_a_suggestion(drive: Path) -> None:
    with pytest.raises(CalibrationError, match=r"--sensor: compas; .*did you mean robot::arm::compass\?"):
        read(drive, sensor="compas")
    with pytest.raises(CalibrationError, match=r"--attitude: trut; .*did you mean truth\?"):
        read(drive, attitude="trut")
    assert read(drive, sensor="arm::compass").row.size == 600
