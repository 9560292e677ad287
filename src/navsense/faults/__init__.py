"""Fault injection: which faults a sensor has, when they act, and what they do to a sample."""
