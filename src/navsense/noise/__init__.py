"""Noise of sensor channels: the model and its terms, and faults of a sensor."""
