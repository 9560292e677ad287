"""`<navsense:latency>` in a sensor: how long its samples are on their way, in seconds.

<navsense:latency>
<fixed>0.002</fixed>
<mean>0.004</mean> <stddev>0.002</stddev>        of the random part
</navsense:latency>
"""

from __future__ import annotations

from navsense.clock import Latency
from navsense.errors import ClockError
from navsense.sdf.context import Context
from navsense.sdf.parse.children import parse_child_number
from navsense.sdf.parse.oscillator import clock_error_at
from navsense.sdf.schema import LATENCY
from navsense.sdf.xml_reader import Element

LATENCY_TAG = "navsense:latency"


def parse_latency(context: Context, sensor: Element) -> Latency | None:
    """Return the latency of a sensor; None where it has none."""
    element = sensor.find(LATENCY_TAG)
    if element is None:
        return None
    context.check(element, LATENCY)
    before = context.problem_count
    fixed, mean, stddev = (
        parse_child_number(context, element, tag, 0.0, minimum=0.0) for tag in ("fixed", "mean", "stddev")
    )
    with context.collect_errors():
        try:
            return Latency(fixed, mean, stddev) if context.problem_count == before else None
        except ClockError as error:
            raise clock_error_at(element, error) from error
    return None
