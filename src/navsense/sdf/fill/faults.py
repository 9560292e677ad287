"""`<navsense:faults>` in a sensor: how often it drops out or gets stuck by chance, and for how long.

<navsense:faults>
<dropout_rate>0.01</dropout_rate> <dropout_duration>0.5</dropout_duration>        begins a second; seconds on average
<stuck_rate>0.001</stuck_rate> <stuck_duration>2</stuck_duration>
</navsense:faults>
"""

from __future__ import annotations

from dataclasses import fields

from navsense.errors import SensorError
from navsense.noise.faults import LARGEST, Faults
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import number_of
from navsense.sdf.places import FAULTS
from navsense.sdf.read import Element
from navsense.sdf.values import refusal

TAG = "navsense:faults"

NONE = Faults()


def faults_of(context: Context, sensor: Element) -> Faults:
    """Return the faults of a sensor, none where the file gives none."""
    element = sensor.first(TAG)
    if element is None:
        return NONE
    context.check(element, FAULTS)
    before = context.found
    figures = {field.name: number_of(context, element, field.name, 0.0, least=0.0) for field in fields(Faults)}
    with context.collecting():
        try:
            return Faults(**figures) if context.found == before else NONE
        except SensorError as error:
            allowed = f"{error.what}: {error.allowed}" if error.allowed else f"must be at most {LARGEST:g}"
            raise refusal(element, str(error.value), allowed, remedy=error.remedy) from error
    return NONE
