"""Calibration of magnetometers: scale, direction, bias and soft iron from readings, with or without attitude.

>>> samples = ns.calibration.read("drive.npz", attitude="truth", unit="nT")  # .field, .rotation_ws of a file
>>> result = samples.calibrate()
>>> result = ns.calibration.known_attitude(field, rotation_ws)  # (n, 3) T, (n, 4) w x y z, sensor to world
>>> result = ns.calibration.ellipsoid(field)  # if the attitude is unknown
>>> earth_field_s = result.apply(field)
>>> result.save("calibration.json")
>>> result = ns.calibration.Calibration.load("calibration.json")

`print(result)` shows all numbers with standard deviations, the formula and the verdict.
`KnownAttitudeCalibrator` and `EllipsoidCalibrator` take the readings in batches. A calibration that cannot be trusted
raises `CalibrationError`. `draw` makes a picture of readings before and after.
"""

from navsense.calibration.ellipsoid import EllipsoidCalibrator, ellipsoid
from navsense.calibration.known_attitude import KnownAttitudeCalibrator, known_attitude
from navsense.calibration.load import Samples, read
from navsense.calibration.picture import draw
from navsense.calibration.result import Calibration
from navsense.calibration.verdict import Verdict
from navsense.core.errors import CalibrationError

__all__ = [
    "Calibration",
    "CalibrationError",
    "EllipsoidCalibrator",
    "KnownAttitudeCalibrator",
    "Samples",
    "Verdict",
    "draw",
    "ellipsoid",
    "known_attitude",
    "read",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
