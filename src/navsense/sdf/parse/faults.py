"""`<navsense:faults>`: random and scheduled faults of a sensor, steps of a clock, anomalies of the magnetic field.

<sensor> <navsense:faults>
  <dropout_rate>0.01</dropout_rate> <dropout_duration>0.5</dropout_duration>      starts per second; mean (s)
  <stuck_rate>0.001</stuck_rate> <stuck_duration>2</stuck_duration>
  <fault kind="dropout" start="60" end="75"/>                                     s, true time; default: no end
  <fault kind="stuck" start="80" end="85"/> <fault kind="lost_lock" start="100" end="130"/>
  <fault kind="bias" start="200" array="angular_velocity">0 0 0.01</fault>        SI, one number or one per axis
  <fault kind="spike" start="210" end="220" period="2" array="field">1e-5 0 0</fault>
</navsense:faults> </sensor>
<clock> <navsense:faults> <fault kind="step" start="300">0.5</fault> </navsense:faults> </clock>      s
<world> <navsense:faults>
  <fault kind="magnetic_anomaly" start="60" end="90">2e-6 0 1e-6</fault>          T along the world's axes
</navsense:faults> </world>
"""

from __future__ import annotations

import math

from navsense.clock.base import ClockStep
from navsense.core.errors import NavsenseError, SensorError
from navsense.core.inputs import parse_decimal
from navsense.core.typing import Vector
from navsense.environment.magnetic import Anomaly
from navsense.faults.injection import Faults
from navsense.faults.schedule import MAX_VALUE, ScheduledFault, check_fault
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.values import invalid_value, parse_attribute_number
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor

FAULTS_TAG = "navsense:faults"

FAULTS = ElementBinding(Faults, other_children=("fault",), repeatable=("fault",))
FAULT = ElementBinding(ScheduledFault, attributes=True)
SCHEDULED_FAULTS = ElementSchema(children=frozenset(("fault",)), repeatable=frozenset(("fault",)))

NO_FAULTS = Faults()


def parse_faults(context: Context, sensor: Element, spec: Sensor) -> Faults:
    """Return the faults of a sensor; none without the element."""
    element = sensor.find(FAULTS_TAG)
    if element is None:
        return NO_FAULTS
    context.check(element, FAULTS.schema)
    before = context.problem_count
    values = FAULTS.read_values(context, element)
    outputs = {output.name: output.shape for output in spec.outputs}
    planned: list[ScheduledFault] = []
    for child in element.find_all("fault"):
        with context.collect_errors():
            planned.append(_parse_scheduled_fault(context, child, spec, outputs))
    with context.collect_errors():
        try:
            return Faults(**values, scheduled=tuple(planned)) if context.problem_count == before else NO_FAULTS
        except SensorError as error:
            allowed = f"{error.what}: {error.allowed}" if error.allowed else f"must be at most {MAX_VALUE:g}"
            raise invalid_value(element, str(error.value), allowed, remedy=error.remedy) from error
    return NO_FAULTS


def _parse_scheduled_fault(
    context: Context, element: Element, spec: Sensor, outputs: dict[str, tuple[int, ...]]
) -> ScheduledFault:
    """Return one scheduled fault of a sensor."""
    context.check(element, FAULT.schema)
    kind, start, end, value = _parse_fault(element)
    array, period = element.get_attribute("array") or "", parse_attribute_number(element, "period")
    try:
        made = ScheduledFault(kind, start, end, array, value, period or 0.0)
        check_fault(spec, outputs, made)
    except SensorError as error:
        raise _fault_error(element, error) from error
    return made


def parse_clock_steps(context: Context, clock: Element) -> tuple[ClockStep, ...]:
    """Return the scheduled steps of a clock."""
    found: list[ClockStep] = []
    for element in _list_faults(context, clock):
        with context.collect_errors():
            given = _parse_fault_of_kind(element, "step", 1)
            try:
                found.append(ClockStep(*given))
            except NavsenseError as error:
                raise _fault_error(element, error) from error
    return tuple(found)


def parse_anomalies(context: Context, world: Element) -> tuple[Anomaly, ...]:
    """Return the anomalies of a world's magnetic field."""
    found: list[Anomaly] = []
    for element in _list_faults(context, world):
        with context.collect_errors():
            start, end, *field = _parse_fault_of_kind(element, "magnetic_anomaly", 3)
            towards: Vector = (field[0], field[1], field[2])
            try:
                found.append(Anomaly(towards, start, end))
            except NavsenseError as error:
                raise _fault_error(element, error) from error
    return tuple(found)


def _list_faults(context: Context, owner: Element) -> list[Element]:
    """Return the scheduled faults of a clock or a world."""
    element = owner.find(FAULTS_TAG)
    if element is None:
        return []
    context.check(element, SCHEDULED_FAULTS)
    found = list(element.find_all("fault"))
    for one in found:
        context.check(one, FAULT.schema)
    return found


def _parse_fault_of_kind(element: Element, kind: str, count: int) -> tuple[float, ...]:
    """Return start, end (s) and numbers of a fault, which must have this kind."""
    given, start, end, value = _parse_fault(element)
    if given != kind:
        raise invalid_value(element, given or "missing", f"must be {kind} here", attribute="kind")
    for name in ("array", "period"):
        if name in element.attributes:
            raise invalid_value(
                element, element.attributes[name], "is allowed in a sensor's fault only", attribute=name
            )
    if not end > start:
        raise invalid_value(element, f"{start:g} to {end:g}", "must end after its start", attribute="end")
    if len(value) != count:
        allowed = "must be a finite number" if count == 1 else f"must be {count} finite numbers"
        raise invalid_value(element, element.text or "missing", allowed)
    return (start, end, *value)


def _parse_fault(element: Element) -> tuple[str, float, float, tuple[float, ...]]:
    """Return kind, start and end (s) and numbers of a fault."""
    start, end = parse_attribute_number(element, "start"), parse_attribute_number(element, "end")
    if start is None:
        raise invalid_value(element, "missing", "must be given: s, true time", attribute="start")
    value = [parse_decimal(word) for word in element.text.split()]
    if None in value:
        raise invalid_value(element, element.text, "must be finite numbers")
    return element.get_attribute("kind") or "", start, math.inf if end is None else end, tuple(v or 0.0 for v in value)


def _fault_error(element: Element, error: NavsenseError) -> NavsenseError:
    """Return the error of a fault with its line."""
    return invalid_value(element, str(error.value), f"{error.what}: {error.allowed}", remedy=error.remedy)
