"""`navsense calibrate`: calibrate a magnetometer from a recording."""

from __future__ import annotations

import math
import sys

import click

from navsense.cli.options import INTEGER, NUMBER, CheckedCommand, verbose_option
from navsense.cli.progress import show_progress
from navsense.cli.tables import get_width, shorten_words, wrap_line
from navsense.core.errors import CalibrationError, Where
from navsense.core.units import MAGNETIC_FIELD_UNITS

UNITS = (*MAGNETIC_FIELD_UNITS, "none")
"""Names of units of a magnetic field."""


def parse_unit(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return a unit with u for both signs of micro. Raises `CalibrationError` for another text."""
    from navsense.calibration.units import normalize_unit

    unit = normalize_unit(value)
    if unit is not None and unit not in UNITS:
        raise CalibrationError("--unit", value, allowed=f"must be one of {', '.join(UNITS)}")
    return unit


@click.command(cls=CheckedCommand)
@click.argument("file")
@click.option(
    "--sensor",
    "--topic",
    "sensor",
    metavar="NAME",
    help="Magnetometer: a sensor, a topic, an unambiguous ending of one, or three columns mx,my,mz (in CSV). Required "
    "if FILE has several.",
)
@click.option(
    "--attitude",
    metavar="none|truth|NAME",
    default="none",
    show_default=True,
    help="Source of the attitude, sensor to world: the recorded truth, an IMU, a topic (Imu, Odometry, PoseStamped, "
    "/tf), or four columns qw,qx,qy,qz.",
)
@click.option(
    "--attitude-stddev",
    type=NUMBER,
    metavar="DEGREES",
    help="Standard deviation of the attitude. Default: 0.5, or 0 for the recorded truth.",
)
@click.option(
    "--mounting",
    type=(NUMBER, NUMBER, NUMBER),
    metavar="ROLL PITCH YAW",
    help="Orientation of the magnetometer in the frame of the attitude, in degrees. Default: that in FILE.",
)
@click.option(
    "--unit",
    callback=parse_unit,
    metavar="|".join(UNITS),
    help="Unit of the readings. With none, the unit is not checked. Default: that in FILE.",
)
@click.option("--strength", metavar="NUMBER[UNIT]", help="Strength of the local magnetic field, such as 48.3uT.")
@click.option("--no-soft-iron", is_flag=True, help="Estimate scale and bias only.")
@click.option(
    "--run", "number", type=INTEGER, metavar="N", default=0, show_default=True, help="Number of the run in FILE."
)
@click.option("-o", "--output", metavar="OUT", help="File for the calibration (.json).")
@click.option(
    "--picture", metavar="OUT", help="Picture of the readings before and after calibration (.png, .svg or .pdf)."
)
@verbose_option
def calibrate(
    file: str,
    sensor: str | None,
    attitude: str,
    attitude_stddev: float | None,
    mounting: tuple[float, float, float] | None,
    unit: str | None,
    strength: str | None,
    no_soft_iron: bool,
    number: int,
    output: str | None,
    picture: str | None,
    verbose: bool,
) -> None:
    """Calibrate the magnetometer in FILE.

    FILE is a recording of navsense, any ROS bag, or a CSV file with a header. Without --attitude, the calibration fits
    an ellipsoid to the readings. With --attitude, it compares each reading with the field at that attitude.

    Exit code 0: the verdict is ok; 1: the verdict is poor; 2: calibration is impossible.
    """
    from navsense.calibration.load import calibrate_samples, check_calibration_path, read, use_option_names
    from navsense.calibration.picture import draw, draw_readings
    from navsense.figures import SUFFIXES, require_matplotlib

    def echo(text: str) -> None:
        for line in text.splitlines():
            click.echo(wrap_line(line, verbose=verbose))

    for target, suffixes in ((output, (".json",)), (picture, SUFFIXES)):
        if target is not None:
            check_calibration_path(target, suffixes)
    if picture is not None:
        require_matplotlib(CalibrationError)
    if mounting is not None and not all(map(math.isfinite, mounting)):
        angles_text = " ".join(f"{angle:g}" for angle in mounting)
        raise CalibrationError("--mounting", angles_text, allowed="must be three finite numbers, in degrees")
    angles = None if mounting is None else [math.radians(angle) for angle in mounting]
    with show_progress():
        samples = read(file, sensor=sensor, attitude=attitude, file_unit=unit, mounting=angles, run=number)
    source, origin = (shorten_words(text, get_width(verbose=verbose)) for text in (samples.source, samples.attitude))
    echo(f"{file}: {source}; attitude: {origin}")
    for note in samples.notes:
        echo(f"note: {note}")
    try:
        with show_progress():
            result, notes = calibrate_samples(
                samples, strength=strength, soft_iron=not no_soft_iron, attitude_stddev=attitude_stddev
            )
    except CalibrationError as error:
        error.where = error.where or Where(file)
        if picture and len(samples.field):
            draw_readings(picture, samples.field, str(error), unit=samples.unit)
            click.echo(f"wrote {picture}: the readings without calibration")
        raise
    echo("\n".join(f"note: {note}" for note in notes))
    echo(use_option_names(str(result)))
    if output:
        result.save(output)
        click.echo(f"wrote {output}")
    if picture:
        draw(picture, samples.field, result, rotation_ws=samples.rotation_ws, noise=samples.noise)
        click.echo(f"wrote {picture}")
    if not result.verdict.ok:
        sys.exit(1)
