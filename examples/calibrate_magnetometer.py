"""Calibration of a magnetometer from a recording, compared to the simulated iron.

The compass of a robot is next to a magnet and a steel plate. The robot is rotated by hand for two minutes and recorded.
The file is calibrated twice: from the ellipsoid of the readings (no attitude needed), and with the attitude of the
body.
With a folder, the recording is kept, and the command line does the same:

    python examples/calibrate_magnetometer.py .
    navsense calibrate tumbled.npz --picture before-after.png
    navsense calibrate tumbled.npz --attitude truth -o calibration.json

python examples/calibrate_magnetometer.py [FOLDER]
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import outputs
from numpy.typing import NDArray

import navsense as ns
from navsense.calibration import Calibration

NOISE = 2e-7
"""White noise of one sample (T)."""

HARD_IRON = np.array([14e-6, -9e-6, 22e-6])
SOFT_IRON = np.array([[1.12, 0.05, -0.03], [0.01, 0.94, 0.04], [-0.02, 0.03, 0.97]])
"""Hard iron (T) and soft iron (3 x 3) of the simulated compass."""

WAYPOINTS = "".join(
    f'<navsense:waypoint time="{8 * i}">0 0 1 {1.2 * i} {0.7 * math.sin(1.9 * i)} {0.4 * i}</navsense:waypoint>'
    for i in range(16)
)
"""Rolls 3.5 times while the nose goes up and down."""

WORLD = f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf"><world name="yard">
  <spherical_coordinates>
    <surface_model>EARTH_WGS84</surface_model>
    <latitude_deg>47.4</latitude_deg><longitude_deg>8.5</longitude_deg><elevation>488</elevation>
  </spherical_coordinates>
  <navsense:magnetic_field model="WMM2025" date="2026.9"/>
  <model name="robot">
    <navsense:motion>{WAYPOINTS}</navsense:motion>
    <link name="base">
      <sensor name="compass" type="magnetometer">
        <pose>0 0 0.1 0 0 0.7</pose>
        <update_rate>50</update_rate>
        <magnetometer>
          {"".join(f'<{axis}><noise type="gaussian"><stddev>{NOISE}</stddev></noise></{axis}>' for axis in "xyz")}
          <navsense:hard_iron>{" ".join(map(repr, HARD_IRON.tolist()))}</navsense:hard_iron>
          <navsense:soft_iron>{" ".join(map(repr, SOFT_IRON.ravel().tolist()))}</navsense:soft_iron>
        </magnetometer>
      </sensor>
    </link>
  </model>
</world></sdf>"""


def record(folder: Path) -> Path:
    """Return a recording of two minutes of rotation."""
    (folder / "yard.sdf").write_text(WORLD, encoding="utf-8")
    run = ns.simulate(ns.load(folder / "yard.sdf"), 120.0, seed=7)
    run.save(folder / "tumbled.npz")
    return folder / "tumbled.npz"


def compare(name: str, result: Calibration, gain: NDArray[np.float64]) -> None:
    """Compare a calibration to the iron: scale times soft iron, and bias."""
    gain_error = np.abs(result.scale * result.soft_iron - gain).max()
    bias = np.abs(result.bias - HARD_IRON).max()
    print(f"{name}: scale soft_iron within {gain_error * 1e9:.0f} nT, bias within {bias * 1e9:.0f} nT\n")
    stddev = [result.stddev[f"bias.{axis}"] for axis in "xyz"]
    assert result.verdict.ok
    assert np.all(np.abs(result.bias - HARD_IRON) < 5.5 * np.array(stddev))  # exceeded once in ten million runs
    assert bias < 0.1 * NOISE
    assert gain_error < 0.2 * NOISE


def write_iron(known: Calibration, fitted: Calibration) -> None:
    """Write the estimated and the true hard iron as a table."""
    columns = {"true": HARD_IRON, "known attitude": known.bias, "ellipsoid": fitted.bias}
    table = {f"{name} (nT)": np.round(1e9 * bias, 1) for name, bias in columns.items()}
    outputs.write("calibrate_magnetometer", {"bias": list("xyz"), **table})


def main() -> None:
    """Record, calibrate with and without attitude, compare, and draw."""
    field = ns.factors.local_field(math.radians(47.4), math.radians(8.5), 488.0, 2026.9, frame="ENU")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        samples = ns.calibration.read(record(folder), attitude="truth")
        assert samples.rotation_ws is not None

        known = ns.calibration.known_attitude(samples.field, samples.rotation_ws, strength=field.strength)
        print(known)
        compare("known attitude", known, field.strength * SOFT_IRON)
        assert known.direction is not None
        assert np.degrees(np.arccos(known.direction @ field.direction)) < 0.05

        # Without attitude, a rotation of the iron is unobservable: the estimate is the symmetric matrix of the same
        # ellipsoid.
        fitted = ns.calibration.ellipsoid(samples.field, strength=field.strength)
        print(fitted)
        left, stretch, _ = np.linalg.svd(SOFT_IRON)
        compare("ellipsoid", fitted, field.strength * (left * stretch) @ left.T)

        length = np.linalg.norm(known.apply(samples.field), axis=1)
        raw = np.linalg.norm(samples.field, axis=1)
        print(f"length of the readings {raw.mean() * 1e6:.1f} ± {raw.std() * 1e6:.1f} µT before,", end=" ")
        print(
            f"{length.mean() * 1e6:.2f} ± {length.std() * 1e6:.2f} µT after; the field is {field.strength * 1e6:.2f} µT"
        )
        assert abs(length.mean() - field.strength) < 0.1 * NOISE
        assert length.std() < 1.2 * NOISE
        write_iron(known, fitted)
        if outputs.has_matplotlib():
            picture = outputs.FOLDER / "calibrate_magnetometer.png"
            ns.calibration.draw(picture, samples.field, known, rotation_ws=samples.rotation_ws, noise=NOISE)
            print(f"wrote {picture}")
        else:
            print(outputs.NO_PICTURE)


if __name__ == "__main__":
    main()
