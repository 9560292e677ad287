"""Runs that load motions and write recordings: `simulate`, `record`, `live`."""
