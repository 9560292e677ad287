"""Simulation of the sensors of a world. Only this package draws random numbers; it reads and writes no file."""
