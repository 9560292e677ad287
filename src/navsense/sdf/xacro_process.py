"""A program of its own: expands one file of xacro, and marks every element with the file and line that it comes from.

Started by `navsense.sdf.urdf_xacro`, never imported: a file of xacro is a program, which may run for ever or out of
memory. In (standard input, JSON): file, arguments, folders of packages, most bytes, memory (bytes), mark. Out (standard
output, JSON): the XML and the files read, or what is wrong and where; warnings; the arguments that the files declare.

Every element of a file that is read gets the attribute `mark`, "FILE:LINE" by the number of the file. xacro copies it
into what it makes of the element; where an attribute would be an argument of xacro's own, it is taken off in time and
says where an error belongs.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

XACRO_PREFIX = "xacro:"
INCLUDE = "<xacro:include filename>"
TOO_LARGE = ["xacro", "too large", "is more than may be read when expanded", ""]
ENDLESS = ["xacro", "without end", "a file or macro must not bring itself in again", ""]


class ExpansionError(Exception):
    """What is wrong with a file: what, its value, what is allowed, and how to repair it."""


class XacroJob:
    """One expansion: what was asked for, and where in the files it has got to."""

    def __init__(self, request: dict[str, Any]) -> None:
        """Begin with the first file."""
        self.mark: str = request["mark"]
        self.folders = [Path(folder) for folder in request["folders"]]
        self.bytes_left: int = request["most"]
        self.files: list[str] = [request["file"]]
        self.position = "0:0"
        self.library: Any = None
        self.warnings: list[tuple[str, str]] = []
        self.declared_arguments: set[str] = set()

    def parse(self, _given: object, filename: str) -> Any:
        """Return the document of a file, every element marked; stands in for xacro's own reader."""
        from xml.dom import minidom

        if filename not in self.files:
            self.files.append(filename)
        number, content = self.files.index(filename), self.read_file(filename)
        self.position = f"{number}:0"
        try:
            return minidom.parseString(self.add_marks(content, number))  # noqa: S318 - no entities are left
        except expat.ExpatError as error:
            self.position = f"{number}:{error.lineno}"
            raise_error("XML", expat.ErrorString(error.code), "must be well-formed XML", "repair it here")

    def read_file(self, filename: str) -> bytes:
        """Return the bytes of a file that can be read and is not too large."""
        try:
            if not stat.S_ISREG(Path(filename).stat().st_mode):
                raise_error(INCLUDE, filename, "must be a file")
            with Path(filename).open("rb") as file:
                data = file.read(self.bytes_left + 1)
        except ValueError as error:  # a null character in the name
            raise_error(INCLUDE, filename, str(error))
        except OSError as error:  # xacro passes over it where the file is optional, which it knows by these
            self.library.filestack.pop()
            raise self.library.XacroException(exc=error) from error
        if len(data) > self.bytes_left:
            raise_error("file", "too large", "is more than may be read with all that is included")
        self.bytes_left -= len(data)
        return data

    def add_marks(self, content: bytes, number: int) -> bytes:
        """Return a file's content with a mark in every start tag. Raises `ExpatError` for what is no XML."""
        places: list[tuple[int, int]] = []
        parser = expat.ParserCreate()

        def start(tag: str, _attributes: dict[str, str]) -> None:
            begin = parser.CurrentByteIndex + 1
            name = tag.encode()
            if content[begin : begin + len(name)] == name:
                places.append((begin + len(name), parser.CurrentLineNumber))

        def doctype(name: str, *_declaration: object) -> None:
            self.position = f"{number}:{parser.CurrentLineNumber}"
            raise_error("<!DOCTYPE>", name, "a robot's file declares no document type and no entities", "remove it")

        parser.StartElementHandler = start
        parser.StartDoctypeDeclHandler = doctype
        parser.Parse(content, True)
        parts: list[bytes] = []
        done = 0
        for index, line in places:
            parts += [content[done:index], f' {self.mark}="{number}:{line}"'.encode()]
            done = index
        return b"".join([*parts, content[done:]])

    def track(self, node: Any, *, remove: bool) -> None:
        """Note where an element stands; `take` its mark off."""
        if node.hasAttribute(self.mark):
            self.position = node.getAttribute(self.mark)
            if remove:
                node.removeAttribute(self.mark)

    def find_package(self, package: str) -> str:
        """Return the folder of a package."""
        found = next((folder / package for folder in self.folders if (folder / package).is_dir()), None)
        if found is None:
            shown = ", ".join(map(str, self.folders[:8])) or "no folder"
            remedy = "name the folder that holds it by --path (path= in Python) or in ROS_PACKAGE_PATH"
            raise_error("$(find)", package, f"no such package; looked in {shown}", remedy)
        return str(found)

    def add_warning(self, *words: object) -> None:
        """Keep a warning of xacro's."""
        self.warnings.append((" ".join(map(str, words)), self.position))


def raise_error(what: str, value: object, allowed: str, remedy: str = "") -> NoReturn:
    """Raise what is wrong with a file."""
    raise ExpansionError(what, value, allowed, remedy)


def install_hooks(job: XacroJob) -> Any:
    """Return the library of xacro, told to read files and to say where it is by the job."""
    import xacro
    from xacro import substitution_args

    evaluate: Callable[..., Any] = xacro.eval_all
    called: Callable[..., Any] = xacro.handle_macro_call
    checked: Callable[..., Any] = xacro.check_attrs

    def eval_all(node: Any, *rest: Any) -> None:
        before = job.position
        job.track(node, remove=False)
        evaluate(node, *rest)
        job.position = before

    def handle_macro_call(node: Any, *rest: Any) -> Any:
        if node.tagName.startswith(XACRO_PREFIX):
            job.track(node, remove=True)
        return called(node, *rest)

    def check_attrs(tag: Any, *rest: Any) -> Any:
        job.track(tag, remove=True)
        if tag.tagName == "xacro:arg":
            job.declared_arguments.add(tag.getAttribute("name"))
        return checked(tag, *rest)

    xacro.eval_all, xacro.handle_macro_call, xacro.check_attrs = eval_all, handle_macro_call, check_attrs
    xacro.parse, xacro.warning = job.parse, job.add_warning
    xacro.verbosity = 0
    substitution_args._eval_find = job.find_package  # noqa: SLF001 - it finds what ROS has installed
    return xacro


def expand(job: XacroJob, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer: XML, or what is wrong."""
    try:
        library = job.library = install_hooks(job)
    except ImportError as error:
        return {"missing": str(error)}
    try:
        library.init_stacks(job.files[0])
        document = job.parse(None, job.files[0])
        library.process_doc(document, mappings=dict(request["arguments"]))
        xml = document.documentElement.toxml()
        return {"xml": xml} if len(xml) <= request["most"] else {"refused": TOO_LARGE}
    except RecursionError:
        return {"refused": ENDLESS}
    except MemoryError:
        return {"refused": TOO_LARGE}
    except Exception as error:  # noqa: BLE001 - whatever an expression does
        return {"refused": describe_error(error, library.XacroException)}


def describe_error(error: BaseException, wrapper: type[Exception]) -> list[str]:
    """Return what an exception says of the file: what, value, what is allowed, remedy."""
    words = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    while isinstance(error, wrapper) and isinstance(error.__dict__["exc"], Exception):
        error = error.__dict__["exc"]
    if isinstance(error, ExpansionError):
        return [str(part) for part in error.args]
    if isinstance(error, RecursionError):
        return ENDLESS
    if isinstance(error, MemoryError):
        return TOO_LARGE
    if isinstance(error, OSError) and error.filename is not None:
        return [INCLUDE, str(error.filename), error.strerror or "cannot be read", "check the path"]
    return ["xacro", words, "", ""]


def main() -> None:
    """Answer one question."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # an expression may print
    asked = json.load(sys.stdin)
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = asked["memory"] if hard == resource.RLIM_INFINITY else min(hard, asked["memory"])
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, ValueError, OSError):
        pass  # no such limits here: the time is limited anyway
    job = XacroJob(asked)
    answer = expand(job, asked)
    answer |= {
        "files": job.files,
        "at": job.position,
        "warnings": job.warnings,
        "declared": sorted(job.declared_arguments),
    }
    json.dump(answer, out)
    out.close()


if __name__ == "__main__":
    main()
