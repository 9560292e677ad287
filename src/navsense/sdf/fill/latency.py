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
from navsense.sdf.fill.fields import number_of
from navsense.sdf.fill.oscillator import at
from navsense.sdf.places import LATENCY
from navsense.sdf.read import Element

TAG = "navsense:latency"


def latency_of(context: Context, sensor: Element) -> Latency | None:
    """Return the latency of a sensor; None where it has none."""
    element = sensor.first(TAG)
    if element is None:
        return None
    context.check(element, LATENCY)
    before = context.found
    fixed, mean, stddev = (number_of(context, element, tag, 0.0, least=0.0) for tag in ("fixed", "mean", "stddev"))
    with context.collecting():
        try:
            return Latency(fixed, mean, stddev) if context.found == before else None
        except ClockError as error:
            raise at(element, error) from error
    return None
