"""Noise: one process a file, and the noise of a channel put together from them."""
