"""Compare navsense with libsdformat on the public files that are below folders.

Usage: python tools/compare_libsdformat.py FOLDER ... [--program PROGRAM [--record]] [--verbose]

The table `tests/oracles/libsdformat-files` lists public files by the hash of their content, with the verdict of
libsdformat and the poses of its sensors. Each listed file below a FOLDER is loaded with navsense, and each difference
is printed. Models are searched in the folders above the file, up to FOLDER, and in a folder `models` of each. A model
that is missing is skipped.

With --program, PROGRAM (`sensors.cc` there, compiled) runs libsdformat on the same files, and each difference from the
table is printed. --record writes the results of libsdformat to the rows of the table instead.

The exit code is 1 for a difference.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from navsense import sdf
from navsense.core.errors import NavsenseError
from navsense.core.pose import Pose
from navsense.world import World

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "oracles" / "libsdformat-files"

SUFFIXES = (".sdf", ".world", ".urdf", ".xacro")

EXACT = 1e-12
"""Largest difference of a position (m) or a part of a quaternion; relative if the pose has a number above 1."""

ROUNDED = 1e-5
"""The same for URDF, where libsdformat writes the poses of lumped links and of their sensors with six digits."""

ERROR_CODES = (
    "NONE",
    "FILE_READ",
    "DUPLICATE_NAME",
    "RESERVED_NAME",
    "ATTRIBUTE_MISSING",
    "ATTRIBUTE_INVALID",
    "ATTRIBUTE_DEPRECATED",
    "ATTRIBUTE_INCORRECT_TYPE",
    "ELEMENT_MISSING",
    "ELEMENT_INVALID",
    "ELEMENT_DEPRECATED",
    "ELEMENT_INCORRECT_TYPE",
    "URI_INVALID",
    "URI_LOOKUP",
    "DIRECTORY_NONEXISTANT",
    "MODEL_CANONICAL_LINK_INVALID",
    "MODEL_WITHOUT_LINK",
    "NESTED_MODELS_UNSUPPORTED",
    "LINK_INERTIA_INVALID",
    "JOINT_CHILD_LINK_INVALID",
    "JOINT_PARENT_LINK_INVALID",
    "JOINT_PARENT_SAME_AS_CHILD",
    "FRAME_ATTACHED_TO_INVALID",
    "FRAME_ATTACHED_TO_CYCLE",
    "FRAME_ATTACHED_TO_GRAPH_ERROR",
    "POSE_RELATIVE_TO_INVALID",
    "POSE_RELATIVE_TO_CYCLE",
    "POSE_RELATIVE_TO_GRAPH_ERROR",
    "STRING_READ",
    "MODEL_PLACEMENT_FRAME_INVALID",
    "VERSION_DEPRECATED",
    "MERGE_INCLUDE_UNSUPPORTED",
)
"""Names of the codes of libsdformat 12.3 (`sdf/Error.hh`)."""

EVIDENCE = {
    "release": "the release names its commit",
    "length": "a public index has the file at this commit, with the same number of characters",
    "only": "a public index has one version of the file, at this commit",
}
"""Reasons for a commit."""

REFUSALS = {
    "must be 1.4 to 1.12": "Older versions of SDF have other elements.",
    "must be well-formed XML": "The file has text after its outermost element. libsdformat ignores it.",
}
"""A part of navsense's error -> why navsense refuses the file. `tools/reference.py` documents them."""

LENIENCES = {
    "ATTRIBUTE_INVALID": "a sensor type that came later, or of another program",
    "DUPLICATE_NAME": "equal names: of a link and a joint of URDF, of visuals, or of models that are missing",
    "ELEMENT_INVALID": "an invalid value of an element that is not read",
    "ELEMENT_MISSING": "parameters for the content of a model that is missing",
    "FILE_READ": "URDF with incomplete limits, materials or inertia",
    "JOINT_CHILD_LINK_INVALID": "a joint to a link of a model that is missing",
    "JOINT_PARENT_LINK_INVALID": "the same, or `__model__`, which libsdformat accepts since version 13",
    "LINK_INERTIA_INVALID": "inertia that no body can have: there are no dynamics",
    "MODEL_WITHOUT_LINK": "links without mass, which libsdformat drops",
    "POSE_RELATIVE_TO_INVALID": "a pose relative to a part of a model that is missing",
}
"""The first error of a file that navsense accepts and libsdformat refuses -> what it means in such files."""

CRASH = "CRASH"
"""The verdict if libsdformat crashes."""

BATCH = 50
"""Files in one run of the program with libsdformat."""

XACRO = "XACRO"
"""The verdict if xacro refuses the file."""


@dataclass(frozen=True)
class Sensor:
    """A sensor of libsdformat: name, type, and pose (x y z qw qx qy qz), None if it has none.

    The pose is in the world. A file without a world has its model in an empty world.
    """

    name: str
    type: str
    pose: tuple[float, ...] | None


@dataclass(frozen=True)
class File:
    """A public file and the result of libsdformat.

    repository, path: where the file is public.
    commit: a commit of the repository that has this content, "" if only the release of `source` is known.
    evidence: the reason for the commit, a key of `EVIDENCE`; "" without a commit.
    source: the package and its version from which the content was read.
    blob: Git's hash of its content.
    arguments: the arguments of xacro, as `NAME:=VALUE ...`.
    errors: the names of libsdformat's error codes, each once; none if it accepts the file.
    missing: the URIs of included models that were missing.
    refusal: if libsdformat accepts the file and navsense refuses it, a part of navsense's error, a key of `REFUSALS`.
    sensors: the sensors of libsdformat.
    """

    repository: str
    path: str
    commit: str
    evidence: str
    source: str
    blob: str
    arguments: str = ""
    errors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    refusal: str = ""
    sensors: tuple[Sensor, ...] = ()

    @property
    def is_urdf(self) -> bool:
        """True if libsdformat converts the file to SDF first."""
        return self.path.endswith((".urdf", ".xacro"))


@dataclass(frozen=True)
class LocalFile:
    """A listed file on this machine, and the folders that are searched for its models."""

    file: File
    path: Path
    folders: tuple[Path, ...]


@dataclass(frozen=True)
class Comparison:
    """The result for one file.

    kind: `same`, `refused` (for the listed reason), `lenient` (libsdformat refuses the file for a reason of
        `LENIENCES`), `other models` (models are missing here that the table has) or `different`.
    difference: what differs, "" if nothing does.
    poses: the number of poses that were compared.
    """

    kind: str
    difference: str = ""
    poses: int = 0


FIELDS = ("repository", "path", "commit", "evidence", "source", "blob", "arguments", "errors", "missing", "refusal")
SENSOR_FIELDS = ("blob", "name", "type", "x", "y", "z", "qw", "qx", "qy", "qz")


def read_rows(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table."""
    with (TABLE / name).open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def read_table() -> dict[str, File]:
    """Return the listed files by hash."""
    sensors: dict[str, list[Sensor]] = {}
    for row in read_rows("sensors.tsv"):
        numbers = [row[field] for field in SENSOR_FIELDS[3:]]
        pose = tuple(map(float, numbers)) if all(numbers) else None
        sensors.setdefault(row["blob"], []).append(Sensor(row["name"], row["type"], pose))
    return {
        row["blob"]: File(
            row["repository"],
            row["path"],
            row["commit"],
            row["evidence"],
            row["source"],
            row["blob"],
            row["arguments"],
            tuple(row["errors"].split()),
            tuple(uri for uri in row["missing"].split("|") if uri),
            row["refusal"],
            tuple(sensors.get(row["blob"], ())),
        )
        for row in read_rows("files.tsv")
    }


def write_table(table: Mapping[str, File]) -> None:
    """Write the table, sorted by repository and path."""
    files = sorted(table.values(), key=lambda file: (file.repository, file.path))
    lines = ["\t".join(FIELDS)]
    lines += [
        "\t".join(
            [
                *(file.repository, file.path, file.commit, file.evidence, file.source, file.blob, file.arguments),
                *(" ".join(file.errors), "|".join(file.missing), file.refusal),
            ]
        )
        for file in files
    ]
    (TABLE / "files.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = ["\t".join(SENSOR_FIELDS)]
    lines += [
        "\t".join(
            [file.blob, sensor.name, sensor.type, *(map(format_number, sensor.pose) if sensor.pose else [""] * 7)]
        )
        for file in files
        for sensor in file.sensors
    ]
    (TABLE / "sensors.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def format_number(number: float) -> str:
    """Return the shortest text that reads back as the number."""
    return repr(number).removesuffix(".0")


def compute_blob(content: bytes) -> str:
    """Return Git's hash of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def list_model_folders(path: Path, top: Path) -> tuple[Path, ...]:
    """Return the folders above a file up to `top`, the innermost first, and a folder `models` of each."""
    above = [folder for folder in path.parents if folder == top or top in folder.parents]
    candidates = [candidate for folder in above for candidate in (folder, folder / "models")]
    return tuple(candidate for candidate in candidates if candidate.is_dir())


def find_local_files(table: Mapping[str, File], folders: Iterable[Path]) -> list[LocalFile]:
    """Return the listed files below folders, each once. Lines may end as in DOS, as in a checkout on Windows."""
    local_files: dict[str, LocalFile] = {}
    for top in map(Path.resolve, folders):
        for path in sorted(top.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                content = path.read_bytes()
                file = table.get(compute_blob(content)) or table.get(compute_blob(content.replace(b"\r\n", b"\n")))
                if file is not None:
                    local_files.setdefault(file.blob, LocalFile(file, path, list_model_folders(path, top)))
    return sorted(local_files.values(), key=lambda local_file: (local_file.file.repository, local_file.file.path))


def parse_arguments(arguments: str) -> dict[str, str]:
    """Return the arguments of xacro by name."""
    return {name: value for name, _, value in (argument.partition(":=") for argument in arguments.split())}


def load(local_file: LocalFile) -> World:
    """Load a file with navsense, without missing models. Raises `NavsenseError`."""
    xacro = parse_arguments(local_file.file.arguments) or None
    return sdf.load(local_file.path, path=local_file.folders, xacro=xacro, missing="skip")


def list_missing_models(world: World) -> set[str]:
    """Return the URIs of the models that navsense skipped."""
    return {note.what.removeprefix("<include><uri>: ") for note in world.notes if note.subject == "include"}


def list_poses(world: World) -> dict[str, Pose]:
    """Return the pose of each sensor in the world by its top-level model and its own name."""
    links = {link.name: model.pose @ link.pose for model in world.models for link in model.links}
    return {shorten(sensor.name): links[sensor.link] @ sensor.pose for sensor in world.sensors}


def shorten(name: str) -> str:
    """Return the top-level model and the own name of a sensor: lumping moves it to another link."""
    return f"{name.partition('::')[0]}::{name.rpartition('::')[2]}"


def measure_difference(ours: Pose, theirs: Sequence[float]) -> float:
    """Return the largest difference between two poses; the quaternions q and -q are equal."""
    sign = math.copysign(1.0, sum(a * b for a, b in zip(ours.rotation, theirs[3:], strict=True)))
    numbers = [*ours.position, *(sign * part for part in ours.rotation)]
    scale = max(1.0, *map(abs, theirs))
    return max(abs(a - b) for a, b in zip(numbers, theirs, strict=True)) / scale


def compare(local_file: LocalFile) -> Comparison:
    """Compare navsense with the table on one file."""
    file = local_file.file
    try:
        world = load(local_file)
    except NavsenseError as error:
        return compare_refusal(file, error)
    if file.refusal:
        return Comparison("different", "navsense accepts it now: delete its refusal from the table")
    missing = list_missing_models(world) - set(file.missing)
    if missing:
        return Comparison("other models", f"not here: {', '.join(sorted(missing))}")
    if file.errors:
        is_lenient = file.errors[0] in LENIENCES
        return (
            Comparison("lenient")
            if is_lenient
            else Comparison("different", f"navsense accepts {' '.join(file.errors)}")
        )
    return compare_sensors(file, world)


def compare_refusal(file: File, error: NavsenseError) -> Comparison:
    """Compare a file that navsense refuses."""
    if file.errors:
        return Comparison("same")
    text = str(error).splitlines()[0]
    if file.refusal and file.refusal in text:
        return Comparison("refused")
    return Comparison("different", f"navsense refuses it: {text}")


def compare_sensors(file: File, world: World) -> Comparison:
    """Compare the sensors of a file that both accept: each of libsdformat's is simulated, or listed in the notes."""
    ours = list_poses(world)
    notes = "\n".join(note.what for note in world.notes)
    bound = ROUNDED if file.is_urdf else EXACT
    poses = 0
    for sensor in file.sensors:
        pose = ours.get(shorten(sensor.name))
        name = sensor.name.rpartition("::")[2]
        if sensor.type == "multicamera" and any(f"::{name}::" in mounted.name for mounted in world.sensors):
            continue  # navsense has a sensor for each of its cameras
        if pose is None:
            if name not in notes and f'type="{sensor.type}"' not in notes:
                return Comparison("different", f"sensor {sensor.name} ({sensor.type}) is neither simulated nor noted")
            continue
        if sensor.pose is None:
            return Comparison("different", f"libsdformat has no pose of sensor {sensor.name}")
        poses += 1
        difference = measure_difference(pose, sensor.pose)
        if difference > bound:
            return Comparison("different", f"pose of {sensor.name} differs by {difference:.3g}")
    return Comparison("same", poses=poses)


EXPAND = """
import json, sys
from pathlib import Path
import xacro
from xacro import substitution_args
file, folders, arguments = json.load(sys.stdin)
def find(package):
    return next(str(Path(folder) / package) for folder in folders if (Path(folder) / package).is_dir())
substitution_args._eval_find = find
print(xacro.process_file(file, mappings=arguments).toxml())
"""
"""A program that expands xacro. Only the search for packages is not xacro's own: it would need ROS."""


def expand(local_file: LocalFile, folder: Path) -> Path:
    """Return the file for libsdformat: the file itself, or its expansion in `folder`. Raises `CalledProcessError`."""
    if local_file.path.suffix != ".xacro":
        return local_file.path
    job = json.dumps(
        [str(local_file.path), list(map(str, local_file.folders)), parse_arguments(local_file.file.arguments)]
    )
    done = subprocess.run([sys.executable, "-c", EXPAND], input=job, capture_output=True, text=True, check=True)
    path = folder / f"{local_file.file.blob}.urdf"
    path.write_text(done.stdout, encoding="utf-8")
    return path


def run_libsdformat(program: Path, local_files: Sequence[LocalFile]) -> list[File]:
    """Return the results of libsdformat for files. After a crash, the program runs again on the files that follow."""
    results: list[File] = []
    with tempfile.TemporaryDirectory() as temporary:
        stubs = Path(temporary, "stubs")
        stubs.mkdir()
        while len(results) < len(local_files):
            batch = local_files[len(results) :][:BATCH]
            arguments, files = [], []
            for local_file in batch:
                try:
                    path = expand(local_file, Path(temporary))
                except subprocess.CalledProcessError:
                    path = Path(temporary, XACRO)
                arguments += [f"SDF_PATH={os.pathsep.join(map(str, local_file.folders))}", str(path)]
                files.append(local_file.file)
            command = [str(program.resolve()), str(stubs), *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()
            results += [read_result(file, line) for file, line in zip(files, lines, strict=False)]
            if len(lines) < len(batch):
                results.append(replace(files[len(lines)], errors=(CRASH,), missing=(), sensors=()))
    return results


def read_result(file: File, line: str) -> File:
    """Return the result of libsdformat in a line of the program."""
    result = json.loads(line, strict=False)
    errors = dict.fromkeys(ERROR_CODES[code] for code in result["errors"])
    if Path(result["file"]).name == XACRO:
        errors = {XACRO: None}
    sensors = () if errors else tuple(map(make_sensor, result["sensors"]))
    return replace(file, errors=tuple(errors), missing=tuple(sorted(result["missing"])), sensors=sensors)


def make_sensor(fields: Sequence[Any]) -> Sensor:
    """Return a sensor of libsdformat's result: name, type, pose."""
    name, kind, pose = fields
    return Sensor(name, kind, tuple(pose) if pose else None)


def report(local_files: Sequence[LocalFile], *, verbose: bool) -> bool:
    """Print the differences and a summary. Return whether there are none."""
    kinds: Counter[str] = Counter()
    poses = 0
    for local_file in local_files:
        result = compare(local_file)
        kinds[result.kind] += 1
        poses += result.poses
        if result.difference or verbose:
            text = f": {result.difference}" if result.difference else ""
            print(f"{local_file.path}: {result.kind}{text}")
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    print(f"{len(local_files)} files: {counts}; {poses} poses")
    return not kinds["different"]


def list_changed_results(program: Path, local_files: Sequence[LocalFile]) -> dict[str, File]:
    """Return the results of libsdformat that differ from the table, by hash; print each."""
    changed = {}
    for local_file, result in zip(local_files, run_libsdformat(program, local_files), strict=True):
        if result != local_file.file:
            print(f"{local_file.path}: libsdformat: {' '.join(result.errors) or 'accepted'}, not as in the table")
            changed[local_file.file.blob] = result
    print(f"libsdformat read {len(local_files)} files; {len(changed)} results differ from the table")
    return changed


def main() -> None:
    """Compare the files below folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--program", type=Path, metavar="PROGRAM", help="the compiled sensors.cc")
    parser.add_argument("--record", action="store_true", help="write the results of PROGRAM to the table")
    parser.add_argument("--verbose", action="store_true", help="print a line for each file")
    options = parser.parse_args()
    table = read_table()
    local_files = find_local_files(table, options.folders)
    changed = list_changed_results(options.program, local_files) if options.program else {}
    if options.record:
        write_table({**table, **changed})
        local_files = [
            replace(local_file, file=changed.get(local_file.file.blob, local_file.file)) for local_file in local_files
        ]
    same = report(local_files, verbose=options.verbose)
    sys.exit(0 if same and (options.record or not changed) else 1)


if __name__ == "__main__":
    main()
