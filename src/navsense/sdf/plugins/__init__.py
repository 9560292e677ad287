"""Sensors that other programs' plug-ins are, one file a plug-in."""
