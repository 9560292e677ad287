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
from navsense.core.errors import SensorError
from navsense.environment.magnetic import Anomaly
from navsense.faults.injection import Faults
from navsense.faults.schedule import ScheduledFault, check_fault
from navsense.sdf.binder import ElementBinding
from navsense.sdf.context import Context, make_schema
from navsense.sdf.values import error_at, invalid_value, map_spec_errors, parse_attribute_number, split_numbers
from navsense.sdf.xml_reader import Element
from navsense.sensors.base import Sensor

FAULTS_TAG = "navsense:faults"

FAULTS = ElementBinding(Faults, repeatable=("fault",))
FAULT = ElementBinding(ScheduledFault, attributes=True)
SCHEDULED_FAULTS = make_schema(repeatable="fault")

NO_FAULTS = Faults()


def parse_faults(context: Context, sensor: Element, spec: Sensor) -> Faults:
    """Return the faults of a sensor; none without the element."""
    element = context.find_child(sensor, FAULTS_TAG, FAULTS.schema)
    if element is None:
        return NO_FAULTS
    problems_before = context.problem_count
    values = FAULTS.read_fields(context, element)
    shapes = {output.name: output.shape for output in spec.outputs}
    scheduled: list[ScheduledFault] = []
    for child in element.find_all("fault"):
        with context.collect_errors():
            scheduled.append(_parse_scheduled_fault(context, child, spec, shapes))
    if context.problem_count > problems_before:
        return NO_FAULTS
    try:
        return Faults(**values, scheduled=tuple(scheduled))
    except SensorError as error:
        context.add_problem(error_at(element, error))
    return NO_FAULTS


def _parse_scheduled_fault(
    context: Context, element: Element, spec: Sensor, shapes: dict[str, tuple[int, ...]]
) -> ScheduledFault:
    """Return one scheduled fault of a sensor. Raises `SdfError`."""
    context.check(element, FAULT.schema)
    kind, start, end, value = _parse_fault(element)
    array, period = element.get_attribute("array") or "", parse_attribute_number(element, "period")
    with map_spec_errors(element):
        fault = ScheduledFault(kind, start, end, array, value, period or 0.0)
        check_fault(spec, shapes, fault)
    return fault


def parse_clock_steps(context: Context, clock: Element) -> tuple[ClockStep, ...]:
    """Return the scheduled steps of a clock."""
    steps: list[ClockStep] = []
    for element in _list_faults(context, clock):
        with context.collect_errors(), map_spec_errors(element):
            steps.append(ClockStep(*_parse_fault_of_kind(element, "step", 1)))
    return tuple(steps)


def parse_anomalies(context: Context, world: Element) -> tuple[Anomaly, ...]:
    """Return the anomalies of a world's magnetic field."""
    anomalies: list[Anomaly] = []
    for element in _list_faults(context, world):
        with context.collect_errors(), map_spec_errors(element):
            start, end, x, y, z = _parse_fault_of_kind(element, "magnetic_anomaly", 3)
            anomalies.append(Anomaly((x, y, z), start, end))
    return tuple(anomalies)


def _list_faults(context: Context, owner: Element) -> list[Element]:
    """Return the scheduled faults of a clock or a world."""
    element = context.find_child(owner, FAULTS_TAG, SCHEDULED_FAULTS)
    faults = [] if element is None else list(element.find_all("fault"))
    for fault in faults:
        context.check(fault, FAULT.schema)
    return faults


def _parse_fault_of_kind(element: Element, kind: str, count: int) -> tuple[float, ...]:
    """Return start, end (s) and numbers of a fault, which must have this kind."""
    fault_kind, start, end, value = _parse_fault(element)
    if fault_kind != kind:
        raise invalid_value(element, fault_kind or "missing", f"must be {kind} here", attribute="kind")
    for name in ("array", "period"):
        if name in element.attributes:
            allowed = "is allowed in a sensor's fault only"
            raise invalid_value(element, element.attributes[name], allowed, attribute=name)
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
    value = split_numbers(element.text, len(element.text.split()))
    if value is None:
        raise invalid_value(element, element.text, "must be finite numbers")
    return element.get_attribute("kind") or "", start, math.inf if end is None else end, value
