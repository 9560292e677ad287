"""Device formats of Doppler instruments: codecs between arrays and bytes, and encoders of readings.

The way of a reading to PD0:

1. `recordings.device_logs` or a stream calls `instrument_encoder.InstrumentEncoder.encode` with a time slice.
2. `instrument_data.DopplerInstrument.convert_reading` returns the data of the instrument, `InstrumentData`.
3. `format_encoders.Pd0Encoder` makes the arrays of PD0 from them and calls `pd0.encode`, which returns the bytes.

The registry of the encoders is `format_encoders.FORMATS`. `pd6`, `waterlinked` and `nmea` are the codecs of the other
formats.
"""

from navsense.devices import nmea, pd0, pd6, waterlinked

__all__ = [
    "nmea",
    "pd0",
    "pd6",
    "waterlinked",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
