"""Options that several commands share, and their checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from navsense.core.errors import SdfError, SimulationError, Where
from navsense.core.text import parse_decimal

if TYPE_CHECKING:
    from navsense.parameters import ParameterValue
    from navsense.world import World


class NumberType(click.types.FloatParamType):
    """A number of an option. Another text is a `SimulationError` on one line, not click's message with the usage."""

    def __init__(self, parse: Callable[[Any], float], noun: str) -> None:
        """`parse` raises ValueError for a text that is not a `noun`."""
        self._parse, self.name = parse, noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of a text."""
        try:
            return self._parse(value)
        except ValueError:
            raise SimulationError(get_option_name(param), value, allowed=f"must be {self.name}") from None


NUMBER = NumberType(float, "a number, such as 0.5 or 2e-3")
"""Type of options with a real number."""

INTEGER = NumberType(int, "an integer, such as 7")
"""Type of options with an integer."""


def get_option_name(parameter: click.Parameter | None) -> str:
    """Return the long name of an option, such as `--run`."""
    names = parameter.opts if parameter else []
    return next((name for name in names if name.startswith("--")), parameter.human_readable_name if parameter else "")


class CheckedCommand(click.Command):
    """A command that rejects empty names and `-`.

    An empty path would mean the current folder. `-` would be a file of this name, not the standard input or output.
    """

    def invoke(self, ctx: click.Context) -> None:
        """Check the arguments and run the command."""
        for parameter in self.params:
            value = ctx.params.get(str(parameter.name))
            texts = value if isinstance(value, tuple) else (value,)
            name = get_option_name(parameter)
            if "" in texts:
                raise SimulationError(name, '""', allowed="must not be empty", remedy="name a file or a value")
            if "-" in texts:
                allowed = "must be a name; no command reads the standard input or writes a file to the standard output"
                raise SimulationError(name, "-", allowed=allowed, remedy="name a file")
        super().invoke(ctx)


class OutputCommand(CheckedCommand):
    """A command whose help lists the formats of OUT. Those of other packages are listed without importing them."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the suffixes of recordings after the options, and the URLs of streams of `run`."""
        from navsense.recordings import format as formats
        from navsense.streams import stream as streams

        rows = [
            (
                ", ".join(suffix or "no suffix" for suffix in entry.suffixes),
                f"{entry.name}: {entry.unit}s{', in a folder' if entry.is_folder else ''}",
            )
            for entry in formats.list_formats()
            if entry.open_writer or (entry.open_copy and self.name == "convert")
        ]
        rows += list_plugins(formats.ENTRY_POINTS, ".{}", "format", formats.list_suffixes())
        if self.name == "run":
            rows += [(entry.url_format, entry.name) for entry in streams.list_streams()]
            schemes = [f"{entry.scheme}://..." for entry in streams.list_streams()]
            rows += list_plugins(streams.ENTRY_POINTS, "{}://...", "stream", schemes)
        with formatter.section("Output formats"):
            formatter.write_dl(rows)


def list_plugins(group: str, pattern: str, noun: str, known: Sequence[str]) -> list[tuple[str, str]]:
    """Return names and descriptions of the entry points of a group, without `known` names."""
    from importlib.metadata import entry_points

    names = {pattern.format(entry.name): entry.dist.name if entry.dist else "" for entry in entry_points(group=group)}
    return [
        (name, f"{noun} of the package {package}" if package else f"{noun} of another package")
        for name, package in names.items()
        if name not in known
    ]


fidelity_option = click.option(
    "--fidelity",
    metavar="physical|classic",
    help="Fidelity of all sensors, clocks and currents. Default: what WORLD sets, else physical.",
)

ros_option = click.option(
    "--ros", metavar="humble|jazzy", help="ROS 2 distribution of the message definitions. Default: jazzy (and later)."
)

verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Print full names and topics. Lines can be longer than 80 columns."
)

motion_option = click.option(
    "--motion",
    multiple=True,
    metavar="FILE|URL|MODEL=...",
    help="Motion of a model: a motion log or a recording, as bag.mcap?topic=/odom. In `run` also the URL of a live "
    "system, as ros1://127.0.0.1:11311?topic=/odom. MODEL is required if several models can move. Repeatable.",
)


bandwidth_option = click.option(
    "--bandwidth",
    multiple=True,
    metavar="HZ|MODEL=HZ",
    help="Smooth the motion logs of --motion, or that of MODEL: the amplitude is halved at HZ. Default: not smoothed. "
    "Repeatable.",
)


joints_option = click.option(
    "--joints",
    multiple=True,
    metavar="FILE",
    help="Log of joint positions: CSV with the columns time,JOINT,..., or a recorded JointState topic. Repeatable.",
)


@dataclass(frozen=True)
class WorldOptions:
    """WORLD and the options for reading it."""

    world_file: str
    path: tuple[str, ...]
    xacro: tuple[str, ...]
    expand_xacro: bool
    skip_missing: bool
    namespace: str | None
    faults: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    switch_on: tuple[str, ...] = ()
    switch_off: tuple[str, ...] = ()

    def load(self, fidelity: str | None = None) -> World:
        """Return the world with the faults of the fault file and the switches. Raises `SdfError` for another file."""
        from navsense.sdf import load

        try:
            world = load(
                self.world_file,
                fidelity=fidelity,
                path=self.path,
                xacro=parse_xacro_options(self.xacro),
                expand_xacro=self.expand_xacro,
                missing="skip" if self.skip_missing else "error",
                namespace=self.namespace,
            )
        except SdfError:
            check_not_recording(self.world_file)
            raise
        if self.faults:
            from navsense.fault_file import with_faults

            for path in self.faults:
                world = with_faults(world, path)
        if self.parameters:
            from navsense.parameters import with_parameters

            world = with_parameters(world, parse_parameter_options(self.parameters))
        return self._apply_switches(world)

    def _apply_switches(self, world: World) -> World:
        """Return the world with the switches of `--switch-on` and `--switch-off`. Raises `SimulationError`."""
        from navsense.world import with_switch

        starts: dict[str, str] = {}
        for option, texts, on in (("--switch-on", self.switch_on, True), ("--switch-off", self.switch_off, False)):
            for text in texts:
                name, time = parse_switch(option, text)
                sensor = world.sensor(name).name
                if not time and starts.setdefault(sensor, option) != option:
                    allowed = f"contradicts {starts[sensor]} for the start of {sensor}"
                    remedy = f"omit one of them, or give a time: {option} {name}@10"
                    raise SimulationError(option, text, allowed=allowed, remedy=remedy)
                world = with_switch(world, name, on=on, time=time)
        return world


def check_not_recording(world_file: str) -> None:
    """Raise `SdfError` if a world file is a recording."""
    from navsense.core.inputs import path_exists
    from navsense.recordings.format import find_format_of_recording, get_storage_path

    path = Path(world_file)
    recording_format = (
        find_format_of_recording(path) if path_exists(path) or path_exists(get_storage_path(path)) else None
    )
    if recording_format is not None:
        raise SdfError(
            f"is a recording ({recording_format.name})",
            where=Where(world_file),
            allowed="WORLD must be an SDF, URDF or xacro file",
            remedy=f"to read a recording: navsense info {world_file}",
        )


READING_OPTIONS = (
    click.option("--path", multiple=True, metavar="FOLDER", help="Search FOLDER for included models. Repeatable."),
    click.option("--xacro", multiple=True, metavar="NAME=VALUE", help="Argument of a xacro file. Repeatable."),
    click.option("--expand-xacro", is_flag=True, help="Allow xacro in files whose name does not end in .xacro."),
    click.option(
        "--skip-missing", is_flag=True, help="Skip models, meshes and heightmaps that do not exist, with a warning."
    ),
    click.option(
        "--namespace", metavar="NAME", help="ROS namespace of plug-ins without one, as the spawner of Gazebo gives it."
    ),
)
"""Options for reading a world file and its includes."""

WORLD_OPTIONS = (
    click.argument("world_file", metavar="WORLD"),
    *READING_OPTIONS,
    click.option(
        "--faults",
        multiple=True,
        metavar="FILE",
        help="Inject the faults in FILE (TOML) in addition to those in WORLD. Repeatable.",
    ),
    click.option(
        "--set",
        "parameters",
        multiple=True,
        metavar="PATH=VALUE",
        help="Set a parameter of the world, as imu.rate=100. Repeatable. describe --parameters lists the paths.",
    ),
    *(
        click.option(
            f"--switch-{state}",
            multiple=True,
            metavar="SENSOR[@TIME]",
            help=f"Switch a sensor {state} at TIME (s), in addition to its switches in WORLD. Without TIME: {state} at "
            "the start. Repeatable.",
        )
        for state in ("on", "off")
    ),
)


def add_world_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add WORLD and the options for reading it. The command gets them as one `WorldOptions`."""

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:
        options = {field.name: arguments.pop(field.name) for field in fields(WorldOptions)}
        command(WorldOptions(**options), **arguments)

    for option in reversed(WORLD_OPTIONS):
        wrapper = option(wrapper)
    return wrapper


def add_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading the world of `--world`. The command gets them as one `WorldOptions`, or None."""

    @functools.wraps(command)
    def wrapper(world: str | None, **arguments: Any) -> None:
        names = [field.name for field in fields(WorldOptions) if field.name in arguments]
        options = {name: arguments.pop(name) for name in names}
        unused = next((name for name, value in options.items() if value), None)
        if world is None and unused is not None:
            option = f"--{unused.replace('_', '-')}"
            raise SimulationError(
                option, allowed="is an option of --world", remedy=f"add --world WORLD, or omit {option}"
            )
        command(world=None if world is None else WorldOptions(world, **options), **arguments)

    for option in reversed(READING_OPTIONS):
        wrapper = option(wrapper)
    return wrapper


def parse_switch(option: str, text: str) -> tuple[str, float | None]:
    """Return the sensor and the time (s) of `SENSOR[@TIME]`; None without a time. Raises `SimulationError`."""
    name, separator, time_text = text.partition("@")
    time = parse_decimal(time_text)
    if not name or (separator and (time is None or time < 0.0)):
        remedy = f"write {option} {name or 'imu'}@10"
        raise SimulationError(option, text, allowed="must be SENSOR or SENSOR@TIME with a time (s) >= 0", remedy=remedy)
    return name, time


def parse_xacro_options(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the values of `--xacro` by name."""
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise SdfError("--xacro", text, allowed="must be NAME=VALUE")
        if name in values:
            raise SdfError("--xacro", text, allowed=f"must set {name} once")
        values[name] = value
    return values


def parse_parameter_options(texts: tuple[str, ...]) -> dict[str, ParameterValue]:
    """Return the values of `--set` by path: numbers, lists, true and false as in JSON; other values are texts."""
    from navsense.core.inputs import parse_json

    values: dict[str, ParameterValue] = {}
    for text in texts:
        path, separator, value = text.partition("=")
        if not separator or not path:
            raise SimulationError("--set", text, allowed="must be PATH=VALUE", remedy="write --set imu.rate=100")
        if path in values:
            raise SimulationError("--set", text, allowed=f"must set {path} once")
        try:
            values[path] = parse_json(value)
        except ValueError:
            values[path] = value
    return values


def parse_motion_options(texts: tuple[str, ...], world: World) -> str | dict[str, str] | None:
    """Return the value of `--motion`: one file or URL, or one for each model (MODEL=FILE).

    `a=b.csv` is the file of this name if it exists and the world has no model `a`.
    """
    from navsense.core.inputs import path_exists
    from navsense.recordings.base import is_url

    if not texts:
        return None
    if len(texts) == 1:
        file, _, _ = texts[0].partition("?")
        if (
            is_url(texts[0])
            or "=" not in file
            or (path_exists(Path(file)) and not _has_model(world, file.partition("=")[0]))
        ):
            return texts[0]
    paths: dict[str, str] = {}
    for text in texts:
        model, separator, path = text.partition("=")
        if not separator or not model or not path:
            raise SimulationError("--motion", text, allowed="must be FILE for a world of one model, or MODEL=FILE")
        if model in paths:
            raise SimulationError("--motion", text, allowed=f"must set the motion of {model} once")
        paths[model] = path
    return paths


def _has_model(world: World, name: str) -> bool:
    """Return True if a name, or its ending, is that of one or several models."""
    return any(f"::{model.name}".endswith(f"::{name}") for model in world.models)


def parse_bandwidth_options(texts: tuple[str, ...]) -> float | dict[str, float] | None:
    """Return the value of `--bandwidth`: one number (Hz), or one for each model (MODEL=HZ)."""
    bandwidths: dict[str, float] = {}
    for text in texts:
        model, separator, number = text.rpartition("=")
        value = parse_decimal(number)
        if value is None or not value > 0.0 or (separator and not model):
            allowed = "must be a frequency above 0, or MODEL=FREQUENCY for each model"
            raise SimulationError("--bandwidth (Hz)", text, allowed=allowed)
        if not separator and len(texts) > 1:
            allowed = "must be given once: it applies to all models"
            remedy = "omit the others, or write MODEL=FREQUENCY for each model"
            raise SimulationError("--bandwidth (Hz)", ", ".join(texts), allowed=allowed, remedy=remedy)
        if model in bandwidths:
            raise SimulationError("--bandwidth", text, allowed=f"must set the bandwidth of {model} once")
        bandwidths[model] = value
    return bandwidths.get("") if "" in bandwidths else bandwidths or None


def print_warnings(world: World, *, err: bool, followed: Collection[str] = ()) -> None:
    """Print the warnings of a world, the sensors in it that are not simulated, and that it has none.

    followed: models that a live system moves. They have no motion yet, so no warning says that they stand still.
    """
    subjects = {f"model {name}" for name in followed}
    for note in world.notes:
        if note.what in subjects:
            continue
        if note.kind == "warning" or note.subject == "sensor":
            click.echo(f"warning: {note}", err=err)
    from navsense.world import make_sensor_warning

    without_sensor = make_sensor_warning(world)
    if without_sensor is not None:
        click.echo(f"warning: {without_sensor}", err=err)


def print_notes(notes: Sequence[str]) -> None:
    """Print the notes about a recording."""
    for note in notes:
        click.echo(f"note: {note}")
