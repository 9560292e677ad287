"""Measuring: what was simulated, and how long it took.

`allan.overlapping(values, rate)` gives the Allan deviation of a record with its confidence, `fit.fit` the noise terms
in it, `theory` what declared ones must give, `densities.welch` a spectrum. `declared.table` gives every figure of a
sensor's sheet beside what it simulates, `mounting.table` those of faults and latency, `clocks.table` those of a clock.
Nothing heavy is imported before it is used.
"""
