"""Definitions that every other package uses: errors, units, arrays, time, rotations, random streams, files."""
