"""Calibration of magnetometers: scale, direction, bias and soft iron from readings, with attitude or without.

    found = ns.calibration.known_attitude(field, rotation_ws)      # (n, 3) T, (n, 4) w x y z, sensor to world
    found = ns.calibration.ellipsoid(field)                        # where no attitude is known
    print(found)                                                   # numbers with their deviations, formula, verdict
    earth_field_s = found.apply(field)

    samples = ns.calibration.read("drive.mcap", attitude="/odom")  # .field, .rotation_ws of any file
    found.save("calibration.json")
    found = ns.calibration.Calibration.load("calibration.json")

`KnownAttitudeCalibrator` and `EllipsoidCalibrator` are the same part by part, on a vehicle that moves. What cannot be trusted raises
`CalibrationError`; `draw` makes a picture before and after.
"""

from navsense.calibration.ellipsoid import EllipsoidCalibrator, ellipsoid
from navsense.calibration.known_attitude import KnownAttitudeCalibrator, known_attitude
from navsense.calibration.load import Samples, read
from navsense.calibration.picture import draw
from navsense.calibration.result import Calibration
from navsense.calibration.verdict import Verdict
from navsense.errors import CalibrationError

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
