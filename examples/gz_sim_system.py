"""navsense inside the server of Gazebo, gz-sim 8 or later: a system in Python that drives a live run.

Attach it to the model in the world of Gazebo, and start the server with the path of this folder:

    <plugin filename="gz-sim-python-system-loader-system" name="gz::sim::systems::PythonSystemLoader">
      <module_name>gz_sim_system</module_name>
    </plugin>

    PYTHONPATH=examples NAVSENSE_WORLD=robot.sdf NAVSENSE_OUTPUT=readings.jsonl gz sim -s -r world.sdf

NAVSENSE_WORLD is a world of navsense with a model of the same name and its sensors. Each reading is a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from pathlib import Path
from typing import IO, Any

import navsense as ns
from navsense.core.pose import normalize

LOG = logging.getLogger(__name__)

GZ_SIM_MODULES = ("gz.sim", "gz.sim10", "gz.sim9", "gz.sim8")
"""Names of the Python module of gz-sim. The version is part of the name up to gz-sim 9."""


def import_gz_sim() -> Any:
    """Return the Python module of gz-sim, which only its server can be expected to have."""
    for name in GZ_SIM_MODULES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"needs one of {', '.join(GZ_SIM_MODULES)}: run it in the server of gz-sim")


class NavsenseSystem:
    """Drives a live run with the canonical link of a model, and writes its readings.

    The server calls `configure` once, `pre_update` before each step, `reset` and `shutdown`.
    """

    def __init__(self, world: str, output: str) -> None:
        """Load the world of navsense."""
        self._world = ns.load(world)
        self._path = Path(output)

    def configure(self, entity: Any, _sdf: Any, ecm: Any, _event_manager: Any) -> None:
        """Find the link and enable its velocities and accelerations."""
        gz_sim = import_gz_sim()
        model = gz_sim.Model(entity)
        self._name = model.name(ecm)
        self._link = gz_sim.Link(model.canonical_link(ecm))
        self._link.enable_velocity_checks(ecm, True)
        self._link.enable_acceleration_checks(ecm, True)
        self._file = self._path.open("w", encoding="utf-8")
        self._start()

    def _start(self) -> None:
        self._run = ns.live(self._world, seed=1, driven=[self._name])
        self._steps = 0

    def pre_update(self, info: Any, ecm: Any) -> None:
        """Pass on the state at the end of the step before. Some versions of the loader never call `post_update`."""
        if info.paused:
            return
        step = info.dt.total_seconds()
        if abs(step - self._world.max_step_size) > 0.5e-6:  # Python's time has microseconds
            raise ValueError(f"the step of Gazebo is {step} s; write it as <max_step_size> into the world of navsense")
        for name, reading in self._run.step({self._name: read_state(self._link, ecm)}).readings.items():
            write_reading(self._file, name, reading)
        self._steps += 1

    def reset(self, _info: Any, _ecm: Any) -> None:
        """Start again at t = 0."""
        LOG.warning("the simulation was reset after %d steps", self._steps)
        self._start()

    def shutdown(self) -> None:
        """Close the file."""
        self._file.close()


def read_state(link: Any, ecm: Any) -> ns.State:
    """Return the state of a link in the world. Gazebo has no velocity and acceleration before its first step."""
    pose = link.world_pose(ecm)
    position, rotation = pose.pos(), pose.rot()
    quaternion = (rotation.w(), rotation.x(), rotation.y(), rotation.z())
    return ns.State(
        ns.Pose(to_vector(position), normalize(quaternion)),
        to_optional_vector(link.world_linear_velocity(ecm)),
        angular_velocity=to_optional_vector(link.world_angular_velocity(ecm)),
        acceleration=to_optional_vector(link.world_linear_acceleration(ecm)),
        angular_acceleration=to_optional_vector(link.world_angular_acceleration(ecm)),
    )


def to_vector(vector: Any) -> tuple[float, float, float]:
    """Return the coordinates of a `Vector3d`."""
    return vector.x(), vector.y(), vector.z()


def to_optional_vector(vector: Any) -> tuple[float, float, float] | None:
    """Return the coordinates of a `Vector3d`; None without one."""
    return None if vector is None else to_vector(vector)


def write_reading(file: IO[str], name: str, reading: ns.Reading) -> None:
    """Write a line for each row of a reading."""
    for row in range(reading.time.size):
        values = {array: values[row].tolist() for array, values in reading.arrays.items()}
        file.write(json.dumps({"time": float(reading.time[row]), "sensor": name, **values}) + "\n")


def get_system() -> NavsenseSystem:
    """Return the system; the loader calls this function."""
    return NavsenseSystem(os.environ["NAVSENSE_WORLD"], os.environ.get("NAVSENSE_OUTPUT", "readings.jsonl"))
