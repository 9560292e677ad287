"""`<navsense:part>`: noise of a commercial part for fields that the file does not set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import navsense as ns
from navsense.core.errors import SdfError
from navsense.noise.specification import Noise
from navsense.sensors import AirPressure, Depth, Dvl, Imu, Magnetometer

WORLD = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="w">
<navsense:signal name="temperature">300</navsense:signal><model name="m"><link name="l"><sensor
name="s" type="{kind}"><update_rate>10</update_rate>
{inside}
</sensor></link></model></world></sdf>"""


def load_spec(folder: Path, kind: str, content: str) -> object:
    path = folder / "w.sdf"
    path.write_text(WORLD.format(kind=kind, inside=content))
    (sensor,) = ns.load(path).sensors
    return sensor.spec


@pytest.mark.requirement("IMU-3", "DOO-1")
def test_part_supplies_noise_missing_in_the_file(tmp_path: Path) -> None:
    own = "<magnetometer><y><noise type='gaussian'><stddev>1e-6</stddev></noise></y></magnetometer>"
    rm3100 = Magnetometer.from_part("rm3100")
    found = load_spec(tmp_path, "magnetometer", f"<navsense:part>rm3100</navsense:part>{own}")
    assert isinstance(found, Magnetometer)
    assert (found.x, found.z) == (rm3100.x, rm3100.z)
    assert found.y.stddev == 1e-6
    assert load_spec(tmp_path, "imu", "<navsense:part>BMI088</navsense:part>") == Imu.from_part("bmi088")
    warm = load_spec(tmp_path, "air_pressure", '<navsense:part temperature="true">bmp388</navsense:part>')
    assert warm == AirPressure.from_part("bmp388", temperature=True)
    assert warm != AirPressure.from_part("bmp388")


@pytest.mark.requirement("IMU-3", "PRS-1")
def test_part_of_a_water_pressure_sensor(tmp_path: Path) -> None:
    """The part has 20 Pa noise, 5000 / 3 Pa turn-on bias, and 0 to 30 bar gauge pressure."""
    found = load_spec(tmp_path, "depth", "<navsense:part>Bar30</navsense:part>")
    assert found == Depth.from_part("bar30")
    assert isinstance(found, Depth)
    noise = found.pressure
    assert (noise.stddev, noise.minimum, noise.maximum) == (20.0, 0.0, 3e6)
    assert noise.bias_stddev == pytest.approx(5000.0 / 3.0, rel=1e-12, abs=0.0)
    block = "<depth><gauge>true</gauge><surface_pressure>100000</surface_pressure></depth>"
    gauge = load_spec(tmp_path, "depth", f"{block}<navsense:part>bar30</navsense:part>")
    assert isinstance(gauge, Depth)
    assert (gauge.pressure.minimum, gauge.pressure.maximum, gauge.pressure.stddev) == (-1e5, 2.9e6, 20.0)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("imu", "<navsense:part>bmi089</navsense:part>", r"w.sdf:4: <sensor><navsense:part>: bmi089.*bmi088"),
        (
            "imu",
            "<navsense:part>bmp388</navsense:part>",
            r"bmp388; is not a part of type imu: it is of type air_pressure and has pressure",
        ),
        ("altimeter", "<navsense:part>bmp388</navsense:part>", r"w.sdf:4: .*no part of type altimeter"),
        ("imu", '<navsense:part warm="yes">bmi088</navsense:part>', r"w.sdf:4: .*warm"),
        ("imu", '<navsense:part temperature="hot">bmi088</navsense:part>', r"w.sdf:4: .*hot"),
    ],
)
def test_unknown_part_error_has_its_line(tmp_path: Path, kind: str, content: str, message: str) -> None:
    with pytest.raises(SdfError, match=message):
        load_spec(tmp_path, kind, content)


@pytest.mark.requirement("GAP-2")
def test_part_values_remain_without_file_values(tmp_path: Path) -> None:
    """The deviation of a ping is that of the part, long-term errors are those of the file."""
    own = "<dvl><bottom_track><long_term_scale>0.002</long_term_scale></bottom_track></dvl>"
    found = load_spec(tmp_path, "dvl", f"<navsense:part>dvl1000</navsense:part>{own}")
    assert isinstance(found, Dvl)
    assert found.bottom == replace(Dvl.from_part("dvl1000").bottom, long_term_scale=0.002)


@pytest.mark.requirement("GAP-2")
def test_part_without_ping_stddev_is_reported(tmp_path: Path) -> None:
    """No source gives one for the water track of the A50 and of the Pathfinder: their covariances would be 0."""
    path, layer = tmp_path / "w.sdf", '<layer near="1" far="5"/>'
    noise = '<noise type="gaussian"><stddev>0.004</stddev></noise>'
    for name, block, tracks in (
        ("a50", f"<dvl><bottom_track>{noise}</bottom_track><water_track>{layer}</water_track></dvl>", ["water_track"]),
        ("a50", f"<dvl><bottom_track>{noise}</bottom_track></dvl>", []),
        ("pathfinder", f"<dvl><water_track>{layer}</water_track></dvl>", ["water_track"]),
        ("pathfinder", "", []),
        ("whn600", f"<dvl><water_track>{layer}</water_track></dvl>", []),
    ):
        path.write_text(WORLD.format(kind="dvl", inside=f"<navsense:part>{name}</navsense:part>{block}"))
        world = ns.load(path)
        notes = [note for note in world.notes if note.kind == "warning"]
        said = [f"sensor {world.sensors[0].name}: {tag.replace('_', ' ')}" for tag in tracks]
        assert [note.what for note in notes] == said
        assert all("a covariance of 0 is reported: give one" in note.reason for note in notes)
        assert all(note.where == world.sensors[0].where for note in notes)


@pytest.mark.requirement("IMU-3", "DOO-1")
@pytest.mark.parametrize("fidelity", ["physical", "classic"])
def test_part_keeps_channels_with_an_explicit_noise(tmp_path: Path, fidelity: str) -> None:
    """`<noise type="none">` and a gaussian noise of size 0 keep a channel without noise."""
    own = "<magnetometer><x><noise type='none'/></x><y><noise type='gaussian'><stddev>0</stddev></noise></y>"
    classic = f"<navsense:fidelity>{fidelity}</navsense:fidelity>"
    found = load_spec(tmp_path, "magnetometer", f"{classic}<navsense:part>bmm350</navsense:part>{own}</magnetometer>")
    assert isinstance(found, Magnetometer)
    assert replace(found.x, classic=False) == replace(found.y, classic=False) == Noise()
    assert found.z == replace(Magnetometer.from_part("bmm350").z, classic=fidelity == "classic")


@pytest.mark.requirement("GAP-2", "IMU-3")
def test_part_keeps_explicit_noise_of_other_sensors(tmp_path: Path) -> None:
    none = "<noise type='none'/>"
    own = f"<imu><angular_velocity><z>{none}</z></angular_velocity></imu>"
    imu = load_spec(tmp_path, "imu", f"<navsense:part>bmi088</navsense:part>{own}")
    assert imu == replace(Imu.from_part("bmi088"), angular_velocity_z=Noise())
    depth = load_spec(
        tmp_path, "depth", f"<navsense:part>bar30</navsense:part><depth><pressure>{none}</pressure></depth>"
    )
    assert depth == replace(Depth.from_part("bar30"), pressure=Noise())
    for name in ("a50", "dvl1000"):
        own = f"<dvl><bottom_track>{none}</bottom_track></dvl>"
        dvl = load_spec(tmp_path, "dvl", f"<navsense:part>{name}</navsense:part>{own}")
        assert isinstance(dvl, Dvl)
        part = Dvl.from_part(name, stddev=0.0)
        assert dvl == replace(part, bottom=replace(part.bottom, noise=Noise()))
