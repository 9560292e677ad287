"""Device formats of Doppler instruments: codecs between arrays and bytes, and encoders of readings."""
