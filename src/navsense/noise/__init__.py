"""Noise of sensor channels: the model and its terms."""
