"""The services of a run with live outputs, for all transports: names, kinds of requests, and what they do.

    TOPIC/change_state             switch        a sensor on or off
    TOPIC/set_rate                 number        highest rate (Hz) at which a sensor publishes
    TOPIC/set_reference_altitude   number        reference (m) of an altimeter; TOPIC/set_ARRAY of other sensors
    NS/set_current_velocity        velocity      mean speed (m/s) and angles (rad) of the current
    NS/set_current_horz_angle      angle         mean of one angle (rad), also vert_angle
    NS/set_current_velocity_model  model         mean, minimum, maximum, noise and mu of a process, also of the angles
    NS/get_current_velocity_model  get           the same five, which the set service accepts

TOPIC is that of a sensor, NS the namespace of the topic of the current. A change acts from the next time slice on, and
the recording has it.

Sources: `ROSBasePlugin` and `UnderwaterCurrentROSPlugin` of the UUV Simulator; `SetReferenceAltitude` of the altimeter
of Gazebo Classic; `set_rate` of the sensors of Gazebo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from navsense.core.names import get_short_name
from navsense.environment.current.adjustment import PROCESSES
from navsense.recordings.topic_names import TopicNames
from navsense.sensors.altimeter import REFERENCE
from navsense.sensors.base import list_adjustable_arrays
from navsense.streams.stream import SupportsRunChanges
from navsense.world import World


class RequestKind(Enum):
    """What a request has: `switch` a boolean, the others this number of values."""

    SWITCH = "switch"
    NUMBER = "number"
    VELOCITY = "velocity"
    ANGLE = "angle"
    MODEL = "model"
    GET_MODEL = "get"


@dataclass(frozen=True)
class RunService:
    """A service.

    name: with the slash at its start.
    call: gets the values of a request and makes the change. It returns a text about the change, or the values that
        were asked for. It raises `NavsenseError` for a request that is not possible, and does not wait.
    """

    name: str
    kind: RequestKind
    call: Callable[[Sequence[float]], str | tuple[float, ...]]


PROCESS_NAMES = dict(zip(PROCESSES, ("velocity", "horz_angle", "vert_angle"), strict=True))
"""Process of the current -> its name in the services of the UUV Simulator."""

SET_NAMES = {REFERENCE: "set_reference_altitude"}
"""Adjustable array -> name of its service; the default is `set_ARRAY`."""


def list_services(controls: SupportsRunChanges, world: World, topics: TopicNames) -> Iterator[RunService]:
    """Yield the services of a run.

    world, topics: those of its outputs.

    >>> session = ns.simulate(world, 1.0).session
    >>> controls = ns.simulation.run_controls.RunControls(session)
    >>> topics = ns.recordings.make_recorded_run(session).topics
    >>> services = list(ns.streams.services.list_services(controls, world, topics))
    >>> [service.name.rpartition("/")[2] for service in services[:2]]
    ['change_state', 'set_rate']
    >>> services[0].call([False])
    'off'
    """
    for sensor in world.sensors:
        topic = topics.get_sensor_topic(sensor.name, "measured")
        yield RunService(f"{topic}/change_state", RequestKind.SWITCH, partial(_switch, controls, sensor.name))
        yield RunService(f"{topic}/set_rate", RequestKind.NUMBER, partial(_set_rate, controls, sensor.name))
        for array in list_adjustable_arrays(sensor.spec):
            name = f"{topic}/{SET_NAMES.get(array, f'set_{array}')}"
            yield RunService(name, RequestKind.NUMBER, partial(_set, controls, sensor.name, array))
    if controls.has_adjustable_current:
        namespace = topics.current.rpartition("/")[0]
        yield RunService(
            f"{namespace}/set_current_velocity", RequestKind.VELOCITY, partial(_set_means, controls, PROCESSES)
        )
        for process, short in PROCESS_NAMES.items():
            prefix = f"{namespace}/set_current_{short}"
            if process != PROCESSES[0]:
                yield RunService(prefix, RequestKind.ANGLE, partial(_set_means, controls, (process,)))
            yield RunService(f"{prefix}_model", RequestKind.MODEL, partial(_set_model, controls, process))
            name = f"{namespace}/get_current_{short}_model"
            yield RunService(name, RequestKind.GET_MODEL, partial(_get_model, controls, process))


def _switch(controls: SupportsRunChanges, name: str, values: Sequence[float]) -> str:
    is_on = bool(values[0])
    controls.switch(name, on=is_on)
    return "on" if is_on else "off"


def _set_rate(controls: SupportsRunChanges, name: str, values: Sequence[float]) -> str:
    controls.set_rate(name, values[0])
    return f"{get_short_name(name)} publishes at {values[0]:g} Hz"


def _set(controls: SupportsRunChanges, name: str, array: str, values: Sequence[float]) -> str:
    controls.set(name, array, values[0])
    return f"{array} of {get_short_name(name)} is {values[0]:g}"


def _set_means(controls: SupportsRunChanges, processes: Sequence[str], values: Sequence[float]) -> str:
    controls.set_current({f"{process}.mean": value for process, value in zip(processes, values, strict=True)})
    return f"mean of {', '.join(processes)} set"


def _set_model(controls: SupportsRunChanges, process: str, values: Sequence[float]) -> str:
    """Set mean, minimum, maximum, noise and mu. A speed and its limits below 0 become 0, as in the UUV Simulator."""
    mean, minimum, maximum, noise, mu = values
    if process == PROCESSES[0]:
        mean, minimum, maximum = max(mean, 0.0), max(minimum, 0.0), max(maximum, 0.0)
    controls.set_current({f"{process}.model": (mean, minimum, maximum, noise, mu)})
    return f"{process} set"


def _get_model(controls: SupportsRunChanges, process: str, _values: Sequence[float]) -> tuple[float, ...]:
    return controls.get_current_model(process)
