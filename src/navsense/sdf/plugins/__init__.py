"""Sensors in plug-ins of other programs, a file for each plug-in."""
