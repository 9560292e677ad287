"""Grades of oscillators: typical specifications by name, with a source for each value.

A tolerance of +- a in a datasheet is three standard deviations here, a typical value is one. A value without a source
is zero, and `missing` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from navsense.clock.oscillator import Oscillator, per_month, per_year
from navsense.core.errors import ClockError
from navsense.core.summaries import format_spec, format_spec_html

_BROWN_HWANG = "h_0, h_-1, h_-2: Brown and Hwang, Random Signals and Applied Kalman Filtering, 4th ed. 2012, p. 327"
_LOGGERS = "doi 10.1186/s40462-024-00512-7, table 1"
_LUNAR = "the lunar clock models of M. Hartigan, 2023"
_NO_AGEING = "ageing, temperature"


@dataclass(frozen=True)
class OscillatorGrade:
    """One grade: its oscillator, the sources of its values, and the values without a source.

    >>> grade = ns.clock.GRADES["TCXO"]
    >>> grade.oscillator.white_frequency, grade.missing
    (2e-19, 'ageing, temperature')
    """

    oscillator: Oscillator
    sources: tuple[str, ...]
    missing: str = ""

    __repr__, _repr_html_ = format_spec, format_spec_html


GRADES: Mapping[str, OscillatorGrade] = {
    "RTC crystal": OscillatorGrade(
        Oscillator(
            frequency_stddev=20e-6 / 3.0,
            temperature_quadratic=-0.03e-6,
            turnover_temperature=298.15,
            ageing_stddev=per_year(3e-6) / 3.0,
        ),
        (
            "frequency +-20 ppm, parabola -0.03 ppm/K^2, ageing +-3 ppm a year: data sheet of Yangxing YST310S",
            "the same three, and the turnover at 25 C: data sheet 008-0353-0 of CTS TF20",
        ),
        missing="noise",
    ),
    "TCXO": OscillatorGrade(
        Oscillator(
            frequency_stddev=1.5e-6 / 3.0,
            white_frequency=2e-19,
            flicker_frequency=7e-21,
            random_walk_frequency=2e-20,
        ),
        (
            f"{_BROWN_HWANG}, low-quality TCXO",
            f"frequency +-1.5 ppm from 0 to 50 C: Micro Crystal RV-8803-C7, in {_LOGGERS}",
        ),
        missing=_NO_AGEING,
    ),
    "precision TCXO": OscillatorGrade(
        Oscillator(
            frequency_stddev=50e-9 / 3.0,
            white_frequency=2e-21,
            flicker_frequency=1e-22,
        ),
        (
            f"{_BROWN_HWANG}, high-quality TCXO, but for h_-2",
            "frequency +-50 ppb from -40 to 105 C: SiTime SiT5358, in docs.sparkfun.com/SparkFun_GNSSDO/oscillator",
        ),
        missing=f"h_-2 (copies of the book's table differ: 2e-20, the low-quality TCXO's, and 3e-24), {_NO_AGEING}",
    ),
    "OCXO": OscillatorGrade(
        Oscillator(
            frequency_stddev=5e-9 / 3.0,
            white_frequency=2e-25,
            flicker_frequency=7e-25,
            random_walk_frequency=6e-25,
        ),
        (
            f"{_BROWN_HWANG}, OCXO",
            f"frequency +-5 ppb from 0 to 50 C: Abracon AOCJY, in {_LOGGERS}",
        ),
        missing=_NO_AGEING,
    ),
    "rubidium": OscillatorGrade(
        Oscillator(white_frequency=2e-22, flicker_frequency=4.5e-26, random_walk_frequency=1e-30),
        (f"{_BROWN_HWANG}, rubidium",),
        missing=f"frequency, {_NO_AGEING}",
    ),
    "CSAC": OscillatorGrade(
        Oscillator(white_frequency=2.0 * 3e-10**2, ageing_stddev=per_month(9e-10)),
        (
            f"Allan deviation 3e-10, 1e-10, 3e-11, 1e-11 at 1, 10, 100, 1000 s: Microchip SA.45s, in {_LUNAR}",
            "ageing 9e-10 a month, typical: the same sheet, in febo.com/pipermail/time-nuts/2018-January/108597.html",
        ),
        missing="frequency, temperature (0.4 ppb over its range, not as a coefficient)",
    ),
}
"""Grade by name."""


def get_oscillator(name: str) -> Oscillator:
    """Return the oscillator of a grade. Raises `ClockError` for an unknown name.

    `dataclasses.replace` changes single values.

    >>> from dataclasses import replace
    >>> replace(ns.clock.get_oscillator("TCXO"), frequency=0.5e-6)
    Oscillator(
        frequency=5e-07,
        frequency_stddev=5e-07,
        white_frequency=2e-19,
        flicker_frequency=7e-21,
        random_walk_frequency=2e-20,
    )
    """
    if name not in GRADES:
        raise ClockError("grade of oscillator", name, allowed=f"must be one of {', '.join(GRADES)}")
    return GRADES[name].oscillator
