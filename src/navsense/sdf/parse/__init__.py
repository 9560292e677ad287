"""Filling the world from elements: one file a kind of sensor, and one for each thing that sensors share."""
