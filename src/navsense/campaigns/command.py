"""Commands that repeat one run of a campaign: `navsense run WORLD ...`, or `ns.simulate(...)` of Python.

A campaign from Python has a command of the shell if its world, motions and joints come from files. The world has to be
the same as the world file without options. Other worlds and motions exist in the program of the user only, so the
command is a call in this program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from navsense.campaigns.digest import hash_world
from navsense.campaigns.sweep import Point
from navsense.core.errors import NavsenseError
from navsense.parameters import ParameterValue, format_value, order_parameters
from navsense.runner.motion_sources import JointSource, MotionSource
from navsense.simulation.fidelity import apply_fidelity
from navsense.simulation.session import TRUTH_RATE
from navsense.world import World

FAULTS = "faults"
"""Name of the parameter that selects a file of faults; "" for none."""

MOTION = "motion"
"""Name of the parameter that selects a motion log: `motion`, or `MODEL.motion`."""


def make_absolute(path: str | os.PathLike[str]) -> str:
    """Return an absolute path, so that a command works in each folder. `?topic=...` of a recording is unchanged."""
    name, separator, topic = os.fspath(path).partition("?")
    return f"{os.path.abspath(name)}{separator}{topic}"  # noqa: PTH100  # resolve() would follow links


def is_motion_path(path: str) -> bool:
    """Return True for the path of a parameter that selects a motion log."""
    return path == MOTION or path.endswith(f".{MOTION}")


def get_model_name(path: str) -> str:
    """Return the model in the path of a parameter that selects a motion log."""
    return path.rpartition(".")[0]


@dataclass(frozen=True)
class ShellCommand:
    """Commands of the shell.

    world: `navsense run WORLD` with the options that load the world and the joints.
    motions: paths of motion logs by model; "" is the only model.
    parameters: values of parameters at all points.
    """

    world: str
    motions: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    def format(self, duration: float, seed: int, point: Point, run: int) -> str:
        """Return the command that repeats a run at a point of the sweep."""
        logs = {get_model_name(path): str(value) for path, value in point.items() if is_motion_path(path)}
        parts = ["--duration", repr(duration), "--seed", str(seed), "--run", str(run)]
        for model, log in _replace_motions(self.motions, logs).items():
            parts += ["--motion", f"{model}={make_absolute(log)}" if model else make_absolute(log)]
        parts += ["--faults", make_absolute(str(point[FAULTS]))] if point.get(FAULTS) else []
        values = {path: value for path, value in point.items() if path != FAULTS and not is_motion_path(path)}
        for path, value in order_parameters(self.parameters, values).items():
            parts += ["--set", f"{path}={format_value(value)}"]
        return f"{self.world} {shlex.join(parts)}"


@dataclass(frozen=True)
class PythonCommand:
    """Calls of `ns.simulate` in the program that has the world.

    arguments: expressions of other arguments by name.
    motions: expressions of the motions by model; "" is the only model.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    motions: Mapping[str, str] = field(default_factory=dict)

    def format(self, duration: float, seed: int, point: Point, run: int) -> str:
        """Return the call that repeats a run at a point of the sweep."""
        values = {path: value for path, value in point.items() if path != FAULTS and not is_motion_path(path)}
        faults = make_absolute(str(point.get(FAULTS, "")))
        world = f"ns.with_faults(world, {faults!r})" if point.get(FAULTS) else "world"
        world = f"ns.with_parameters({world}, {values!r})" if values else world
        logs = {
            get_model_name(path): repr(make_absolute(str(value)))
            for path, value in point.items()
            if is_motion_path(path)
        }
        motions = _replace_motions(self.motions, logs)
        arguments = [f"{name}={text}" for name, text in self.arguments.items()]
        if "" in motions:
            arguments.append(f"motion={motions['']}")
        elif motions:
            arguments.append(f"motion={{{', '.join(f'{model!r}: {text}' for model, text in motions.items())}}}")
        texts = [world, repr(duration), f"seed={seed}", f"runs=[{run}]", *arguments]
        return f"ns.simulate({', '.join(texts)}).select_run({run})"


def make_shell_command(
    world: str,
    *,
    options: Sequence[str] = (),
    fidelity: str | None = None,
    faults: str | None = None,
    joints: Sequence[str | os.PathLike[str]] = (),
    motions: Mapping[str, str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    epoch: int = 0,
    truth_rate: float = TRUTH_RATE,
) -> ShellCommand:
    """Return the commands of a world from a file.

    options: options that load the world.
    motions: paths of motion logs by model; "" is the only model.

    Other arguments as for `simulate`.
    """
    parts = ["navsense", "run", make_absolute(world), *options]
    parts += ["--fidelity", fidelity] if fidelity is not None else []
    parts += ["--faults", make_absolute(faults)] if faults is not None else []
    for log in joints:
        parts += ["--joints", make_absolute(log)]
    parts += ["--epoch", str(epoch)] if epoch else []
    parts += ["--truth-rate", str(truth_rate)] if truth_rate != TRUTH_RATE else []
    return ShellCommand(shlex.join(parts), motions or {}, parameters or {})


def make_command(
    world: World,
    *,
    motion: MotionSource | Mapping[str, MotionSource] | None,
    joints: JointSource | None,
    fidelity: str | None,
    epoch: int,
    truth_rate: float,
) -> ShellCommand | PythonCommand:
    """Return the commands of a campaign from Python: of the shell, if files have the world and the motions."""
    motions = motion if isinstance(motion, Mapping) else {} if motion is None else {"": motion}
    logs = [] if joints is None else [joints] if isinstance(joints, str | os.PathLike) else joints
    paths = {model: os.fspath(log) for model, log in motions.items() if isinstance(log, str | os.PathLike)}
    are_files = len(paths) == len(motions) and not isinstance(logs, Mapping)
    fidelities = (None, "classic") if fidelity is None else (fidelity,)
    file = _find_world_file(apply_fidelity(world, fidelity), fidelities) if are_files else None
    if file is None:
        arguments = {"joints": "joints"} if joints is not None else {}
        arguments |= {"fidelity": repr(fidelity)} if fidelity is not None else {}
        arguments |= {"epoch": repr(epoch)} if epoch else {}
        arguments |= {"truth_rate": repr(truth_rate)} if truth_rate != TRUTH_RATE else {}
        return PythonCommand(arguments, {model: _describe_motion(model, log) for model, log in motions.items()})
    return make_shell_command(
        file[0], fidelity=file[1], joints=list(logs), motions=paths, epoch=epoch, truth_rate=truth_rate
    )


def _replace_motions(motions: Mapping[str, str], logs: Mapping[str, str]) -> Mapping[str, str]:
    """Return the motions by model, with the logs of a point in place of those of the same model."""
    return {**({} if "" in motions and logs else motions), **logs}


def _describe_motion(model: str, source: MotionSource) -> str:
    """Return an expression of a motion: the path of a log, or the argument `motion` of the user."""
    if isinstance(source, str | os.PathLike):
        return repr(make_absolute(source))
    return f"motion[{model!r}]" if model else "motion"


def _find_world_file(world: World, fidelities: Iterable[str | None]) -> tuple[str, str | None] | None:
    """Return path and fidelity with which `load` returns the same world; None if it does not."""
    from navsense.sdf import load  # workers need no reader

    for fidelity in fidelities if world.path else ():
        try:
            loaded = load(world.path, fidelity=fidelity)
        except NavsenseError:
            return None
        if hash_world(loaded) == hash_world(world):
            return world.path, fidelity
    return None
