"""Simulation of the sensors of a world. It writes no file."""
