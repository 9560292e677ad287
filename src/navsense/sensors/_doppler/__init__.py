"""The physics that every Doppler instrument of several slanted beams shares."""
