"""Analysis of records: Allan deviations, spectra, noise terms, and how long a sample takes to simulate.

`allan.oadev(values, rate)` returns the Allan deviation of a record with confidence intervals. `fit.fit` fits
noise terms to that curve, `theory` has the variance of declared terms, and `densities.welch` returns a spectrum.
`monte_carlo` has the statistics of many runs, with intervals.
SciPy is imported when a function needs it.
"""

from navsense.analysis import allan, densities, fit, monte_carlo, theory

__all__ = [
    "allan",
    "densities",
    "fit",
    "monte_carlo",
    "theory",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
