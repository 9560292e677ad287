"""Sensors of a world over time. Random numbers are drawn here and nowhere else; no file is read or written."""
