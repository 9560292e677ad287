"""Write docs/reference/declared-against-measured.md: declared parameters of sensors, mounting and clocks, estimated.

The specs are the example spec of each sensor type and those of `faults_latency` and `clocks` in `tests/verification`.

The page is deterministic: it states its seed, rates and counts. A row beyond five standard errors is an error.

Usage: python tools/declared.py [--check]      --check writes nothing; the exit code is 1 if a row is wrong or the page
is out of date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from navsense.sensors import SENSORS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from tests.verification import clocks, faults_latency  # noqa: E402
from tests.verification.declared import LIMIT, SHELL_RADIUS, Row, table  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "declared-against-measured.md"

SEED = 20250101
RATES = (10.0, 100.0)

EXACT = 1e-9
"""Relative error below which an estimate is shown as exact."""

HEAD = """\
# Declared against measured

<!-- Written by `python tools/declared.py`; do not edit. -->

This page compares every declared parameter of each sensor type with an estimate from simulated readings. The
specifications are the example specifications of the types. Each parameter is isolated if possible. The sensors are
stationary at {rates}, seed {seed}. They move for misalignment, g-sensitivity,
iron and increments. After the sensors there are the faults and the latency of a mounted sensor, and the clocks of
sensors at these rates.

The estimators and their numbers of samples are in `tests/verification`: `estimates` and `imu_mag`, `faults_latency`,
`clocks` with `clock_oscillator` and `clock_discipline`. A range sensor is {shell:g} m from a surface and has no limits,
because a reading beyond them is not a number. The same applies to each beam of a DVL (`doppler_beams`).

A cell is *measured ± standard error (deviation)*, with the values of axes with equal specifications side by side. The
standard error follows from the declared values and the number of samples. Deviations are in standard errors. An
estimate fails above {limit:g} of them; the probability of a false alarm is one in 1.7 million. Of the {count}
estimates here the largest deviation is {largest:.1f}.

- *exact*: limits, rounding, temperature, matrices and lines are not random, and agree to the last digits.
- The flicker floor (`bias_instability`, `flicker_frequency`) is declared with a tolerance of 2 percent. Its deviation
  is the excess above this.
- Allan deviations are of all processes together: white noise, rounding, drift, flicker and random walk.
- Densities of sensors are two-sided, the spectral coefficients of oscillators one-sided (see conventions.md).
- A bandwidth above half the rate is estimated from the lag of the readings, and from lines of vibration, whose aliases
  have its gain.
"""

Key = tuple[str, str, str, str]


def group_rows(rows: Sequence[Row]) -> dict[Key, list[Row]]:
    """Return the rows by output, parameter, unit and declared value, with the axes of one output together."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        key = (row.channel.partition(".")[0], row.estimate.parameter, row.unit, f"{row.estimate.declared:.6g}")
        groups.setdefault(key, []).append(row)
    return groups


def format_cell(rows: Sequence[Row]) -> str:
    """Return the estimates of the axes at one rate."""
    if not rows:
        return "—"
    error = max(row.estimate.error for row in rows)
    if all(row.estimate.error <= EXACT * abs(row.estimate.declared) and row.holds for row in rows):
        return "exact"
    measured = ", ".join(f"{row.estimate.measured:.5g}" for row in rows)
    signs = ", ".join(f"{row.estimate.deviation:+.1f}" for row in rows)
    text = f"{measured} ± {error:.1g} ({signs})"
    return text if all(row.holds for row in rows) else f"**{text}**"


def format_axes(rows: Sequence[Row]) -> str:
    """Return the name of an output with the axes of the rows."""
    output = rows[0].channel.partition(".")[0]
    parts = dict.fromkeys(row.channel.partition(".")[2] for row in rows)
    return f"{output} {' '.join(parts)}".strip()


def format_section(kind: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of one sensor type."""
    rates = " | ".join(f"at {rate:g} Hz" for rate in RATES)
    yield from (
        "",
        f"## {kind}",
        "",
        f"| channel | parameter | unit | declared | {rates} |",
        "|---" * (4 + len(RATES)) + "|",
    )
    for (_, parameter, unit, declared), group in group_rows(rows).items():
        cells = " | ".join(format_cell([row for row in group if row.rate == rate]) for rate in RATES)
        yield f"| {format_axes(group)} | {parameter} | {unit} | {declared} | {cells} |"


def page(rows: Sequence[Row]) -> str:
    """Return the page."""
    head = HEAD.format(
        rates=" and ".join(f"{rate:g} Hz" for rate in RATES),
        seed=SEED,
        limit=LIMIT,
        shell=SHELL_RADIUS,
        count=len(rows),
        largest=max(abs(row.estimate.deviation) for row in rows),
    )
    lines = [head.rstrip("\n")]
    for kind in dict.fromkeys(row.sensor for row in rows):
        lines += format_section(kind, [row for row in rows if row.sensor == kind])
    return "\n".join(lines) + "\n"


def compute_rows() -> list[Row]:
    """Return all rows of the page."""
    rows = [row for kind in SENSORS for row in table(kind.example_spec(), RATES, SEED)]
    rows += faults_latency.table(faults_latency.EXAMPLE, RATES, SEED)
    return rows + clocks.table(clocks.EXAMPLE, RATES, SEED)


def main() -> int:
    """Write or check the page; print the wrong rows."""
    parser = argparse.ArgumentParser(description="Write docs/reference/declared-against-measured.md from simulations.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    check = parser.parse_args().check
    rows = compute_rows()
    wrong = [row for row in rows if not row.holds]
    for row in wrong:
        estimate = row.estimate
        print(
            f"{row.sensor} {row.channel} at {row.rate:g} Hz: {estimate.parameter} declared {estimate.declared:.6g}, "
            f"measured {estimate.measured:.6g} +- {estimate.error:.2g} ({estimate.deviation:+.1f} standard errors)",
            file=sys.stderr,
        )
    text = page(rows)
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"docs/reference/{PAGE.name} is out of date: run `python tools/declared.py`", file=sys.stderr)
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
