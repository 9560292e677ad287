"""`<navsense:faults>`: of a sensor those by chance and on purpose; of a clock steps; of a world anomalies of its field.

<sensor> <navsense:faults>
<dropout_rate>0.01</dropout_rate> <dropout_duration>0.5</dropout_duration>        begins a second; seconds on average
<stuck_rate>0.001</stuck_rate> <stuck_duration>2</stuck_duration>
<fault kind="dropout" start="60" end="75"/>                                        s, true time; without an end it stays
<fault kind="stuck" start="80" end="85"/> <fault kind="lost_lock" start="100" end="130"/>
<fault kind="bias" start="200" array="angular_velocity">0 0 0.01</fault>           SI, one number or one an axis
<fault kind="spike" start="210" end="220" period="2" array="field">1e-5 0 0</fault>
</navsense:faults> </sensor>
<clock> <navsense:faults> <fault kind="step" start="300">0.5</fault> </navsense:faults> </clock>        s
<world> <navsense:faults>
<fault kind="magnetic_anomaly" start="60" end="90">2e-6 0 1e-6</fault>             T along the world's axes
</navsense:faults> </world>
"""

from __future__ import annotations

import math
from typing import Any

from navsense.clock.base import Step
from navsense.environment.anomaly import Anomaly
from navsense.errors import NavsenseError, SensorError
from navsense.inputs import decimal
from navsense.noise.faults import BY_CHANCE, Faults
from navsense.noise.planned import LARGEST, Planned, check_planned
from navsense.sdf.context import Context
from navsense.sdf.fill.fields import number_of
from navsense.sdf.places import FAULT, FAULTS, FAULTS_PLANNED
from navsense.sdf.read import Element
from navsense.sdf.values import attribute_number, refusal
from navsense.sensors.base import Sensor
from navsense.typing import Vector

TAG = "navsense:faults"

NONE = Faults()


def faults_of(context: Context, sensor: Element, spec: Sensor) -> Faults:
    """Return the faults of a sensor, none where the file gives none."""
    element = sensor.first(TAG)
    if element is None:
        return NONE
    context.check(element, FAULTS)
    before = context.found
    figures: dict[str, Any] = {name: number_of(context, element, name, 0.0, least=0.0) for name in BY_CHANCE}
    outputs = {output.name: output.shape for output in spec.outputs}
    planned: list[Planned] = []
    for child in element.all("fault"):
        with context.collecting():
            planned.append(_planned(context, child, spec, outputs))
    with context.collecting():
        try:
            return Faults(**figures, planned=tuple(planned)) if context.found == before else NONE
        except SensorError as error:
            allowed = f"{error.what}: {error.allowed}" if error.allowed else f"must be at most {LARGEST:g}"
            raise refusal(element, str(error.value), allowed, remedy=error.remedy) from error
    return NONE


def _planned(context: Context, element: Element, spec: Sensor, outputs: dict[str, tuple[int, ...]]) -> Planned:
    """Return one fault of a sensor on purpose."""
    context.check(element, FAULT)
    kind, start, end, value = _fault(element)
    array, period = element.attribute("array") or "", attribute_number(element, "period")
    try:
        made = Planned(kind, start, end, array, value, period or 0.0)
        check_planned(spec, outputs, made)
    except SensorError as error:
        raise _refused(element, error) from error
    return made


def steps_of(context: Context, clock: Element) -> tuple[Step, ...]:
    """Return the steps of a clock on purpose."""
    found: list[Step] = []
    for element in _of(context, clock):
        with context.collecting():
            given = _one(element, "step", 1)
            try:
                found.append(Step(*given))
            except NavsenseError as error:
                raise _refused(element, error) from error
    return tuple(found)


def anomalies_of(context: Context, world: Element) -> tuple[Anomaly, ...]:
    """Return the anomalies of a world's magnetic field."""
    found: list[Anomaly] = []
    for element in _of(context, world):
        with context.collecting():
            start, end, *field = _one(element, "magnetic_anomaly", 3)
            towards: Vector = (field[0], field[1], field[2])
            try:
                found.append(Anomaly(towards, start, end))
            except NavsenseError as error:
                raise _refused(element, error) from error
    return tuple(found)


def _of(context: Context, owner: Element) -> list[Element]:
    """Return the faults on purpose of a clock or a world."""
    element = owner.first(TAG)
    if element is None:
        return []
    context.check(element, FAULTS_PLANNED)
    found = list(element.all("fault"))
    for one in found:
        context.check(one, FAULT)
    return found


def _one(element: Element, kind: str, count: int) -> tuple[float, ...]:
    """Return start, end (s) and the numbers of a fault that must be of a kind."""
    given, start, end, value = _fault(element)
    if given != kind:
        raise refusal(element, given or "missing", f"must be {kind} here", attribute="kind")
    for name in ("array", "period"):
        if name in element.attributes:
            raise refusal(element, element.attributes[name], "belongs to a sensor's fault", attribute=name)
    if not end > start:
        raise refusal(element, f"{start:g} to {end:g}", "must end after its start", attribute="end")
    if len(value) != count:
        allowed = "must be a finite number" if count == 1 else f"must be {count} finite numbers"
        raise refusal(element, element.text or "missing", allowed)
    return (start, end, *value)


def _fault(element: Element) -> tuple[str, float, float, tuple[float, ...]]:
    """Return kind, start and end (s) and the numbers of a fault."""
    start, end = attribute_number(element, "start"), attribute_number(element, "end")
    if start is None:
        raise refusal(element, "missing", "must be given: s, true time", attribute="start")
    value = [decimal(word) for word in element.text.split()]
    if None in value:
        raise refusal(element, element.text, "must be finite numbers")
    return element.attribute("kind") or "", start, math.inf if end is None else end, tuple(v or 0.0 for v in value)


def _refused(element: Element, error: NavsenseError) -> NavsenseError:
    """Return the error of a fault with its line."""
    return refusal(element, str(error.value), f"{error.what}: {error.allowed}", remedy=error.remedy)
