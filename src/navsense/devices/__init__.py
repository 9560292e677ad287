"""Device formats of Doppler instruments: codecs between arrays and bytes, and encoders of readings.

The way of a reading to PD0:

1. `recordings.device_logs` or a stream calls `instrument_encoder.InstrumentEncoder.encode` with a time slice.
2. `instrument.DopplerInstrument.convert_reading` returns the data of the instrument, `InstrumentData`.
3. `encoders.Pd0Encoder` returns the arrays of PD0 from them. The registry is `encoders.FORMATS`.
4. `pd0.encode` returns the bytes. `pd6`, `waterlinked` and `nmea` are the codecs of the other formats.
"""
