"""Measuring: what was simulated, and how long it took."""
