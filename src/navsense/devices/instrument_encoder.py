"""Selects the Doppler instrument of a device format in a world, and encodes its readings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from navsense.core.errors import RecordingError, UnknownNameError, Where
from navsense.core.names import resolve_name
from navsense.core.readings import Reading, TimeSlice
from navsense.devices.format_encoders import DeviceFormat
from navsense.devices.instrument_data import DopplerInstrument
from navsense.sensors.doppler import CoordinateSystem
from navsense.world import MountedSensor, World


def select_sensor(world: World, device_format: DeviceFormat, name: str, where: Where, hint: str) -> MountedSensor:
    """Return the sensor that a device format encodes, by its name or the end of it; for "" the only one that fits.

    hint: how the user writes the name, for the remedy.

    Raises `RecordingError`, which lists the candidates.
    """
    candidates = [sensor for sensor in world.sensors if isinstance(sensor.spec, device_format.spec_types)]
    types = " or ".join(spec_type.__name__.upper() for spec_type in device_format.spec_types)
    if not candidates:
        what, remedy = f"{device_format.name} requires a {types}", f"add a {types}, or choose another format"
        raise RecordingError(what, where=where, allowed="the world has none", remedy=remedy)
    sensors = {sensor.name: sensor for sensor in candidates}
    if name:
        try:
            return sensors[resolve_name(name, sensors, "sensor")]
        except UnknownNameError as error:
            remedy = error.remedy if error.remedy.startswith("did") else f"write {hint}"
            raise RecordingError("sensor", name, where=where, allowed=error.allowed, remedy=remedy) from error
    if len(candidates) == 1:
        return candidates[0]
    what = f"{device_format.name} encodes one instrument; the world has {len(candidates)}"
    raise RecordingError(what, where=where, allowed=f"must be one of {', '.join(sensors)}", remedy=f"write {hint}")


def check_coordinates(device_format: DeviceFormat, name: str, where: Where, remedy: str = "") -> None:
    """Raise `RecordingError` if a device format does not support coordinates, by name; "" is its default."""
    if name and not (device_format.has_coordinates and name in list(CoordinateSystem)):
        allowed = f"must be one of {', '.join(CoordinateSystem)}"
        allowed = allowed if device_format.has_coordinates else f"{device_format.name} has one frame"
        raise RecordingError("coordinate frame", name, where=where, allowed=allowed, remedy=remedy)


class InstrumentEncoder:
    """Encodes the readings of one instrument in a device format."""

    def __init__(self, world: World, device_format: DeviceFormat, sensor: MountedSensor, coordinates: str) -> None:
        """Create the encoder. Raises `RecordingError` if the format does not support the instrument."""
        self._instrument, self._format_name = DopplerInstrument(world, sensor), device_format.name
        self._encode_data = device_format.make_encoder(self._instrument, coordinates)
        self._has_pose, self._end_time = False, -math.inf

    def encode(self, time_slice: TimeSlice) -> bytes:
        """Return the bytes of a time slice. Raises `RecordingError`."""
        sensor = self._instrument.sensor
        # In a recording, slices are by log time: the truth of a reading can be in an earlier slice than the reading.
        self._instrument.add_truth(time_slice.truth, min(time_slice.start, self._end_time))
        self._has_pose = self._has_pose or sensor.link in time_slice.truth
        reading = time_slice.readings.get(sensor.name)
        if reading is None:
            return b""
        self._end_time = float(reading.time[-1]) if reading.time.size else self._end_time
        if not self._has_pose and reading.emitted.any():
            what = f"{self._format_name} of {sensor.name!r} requires the true pose of link {sensor.link!r}"
            raise RecordingError(what, remedy="use a recording with the truth of links")
        return self._encode_data(self._instrument.convert_reading(_fill_missing_arrays(reading, sensor)))


def _fill_missing_arrays(reading: Reading, sensor: MountedSensor) -> Reading:
    """Return a reading with all outputs of a sensor. Outputs that a recording of messages lacks are NaN."""
    count = reading.time.size
    missing = {
        output.name: np.full((count, *output.shape), np.nan)
        for output in sensor.spec.outputs
        if output.name not in reading
    }
    return replace(reading, arrays={**missing, **reading.arrays}) if missing else reading
