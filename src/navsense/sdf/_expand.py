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

PREFIX = "xacro:"
INCLUDE = "<xacro:include filename>"
TOO_LARGE = ["xacro", "too large", "is more than may be read when expanded", ""]
WITHOUT_END = ["xacro", "without end", "a file or macro must not bring itself in again", ""]


class Refused(Exception):  # noqa: N818 - what the file is, not what went wrong here
    """What is wrong with a file: what, its value, what is allowed, and how to repair it."""


class Job:
    """One expansion: what was asked for, and where in the files it has got to."""

    def __init__(self, asked: dict[str, Any]) -> None:
        """Begin with the first file."""
        self.mark: str = asked["mark"]
        self.folders = [Path(folder) for folder in asked["folders"]]
        self.left: int = asked["most"]
        self.files: list[str] = [asked["file"]]
        self.at = "0:0"
        self.library: Any = None
        self.warnings: list[tuple[str, str]] = []
        self.declared: set[str] = set()

    def parse(self, _given: object, filename: str) -> Any:
        """Return the document of a file, every element marked; stands in for xacro's own reader."""
        from xml.dom import minidom

        if filename not in self.files:
            self.files.append(filename)
        number, content = self.files.index(filename), self.content(filename)
        self.at = f"{number}:0"
        try:
            return minidom.parseString(self.marked(content, number))  # noqa: S318 - no entities are left
        except expat.ExpatError as error:
            self.at = f"{number}:{error.lineno}"
            refuse("XML", expat.ErrorString(error.code), "must be well-formed XML", "repair it here")

    def content(self, filename: str) -> bytes:
        """Return the bytes of a file that can be read and is not too large."""
        try:
            if not stat.S_ISREG(Path(filename).stat().st_mode):
                refuse(INCLUDE, filename, "must be a file")
            with Path(filename).open("rb") as file:
                data = file.read(self.left + 1)
        except ValueError as error:  # a null character in the name
            refuse(INCLUDE, filename, str(error))
        except OSError as error:  # xacro passes over it where the file is optional, which it knows by these
            self.library.filestack.pop()
            raise self.library.XacroException(exc=error) from error
        if len(data) > self.left:
            refuse("file", "too large", "is more than may be read with all that is included")
        self.left -= len(data)
        return data

    def marked(self, content: bytes, number: int) -> bytes:
        """Return a file's content with a mark in every start tag. Raises `ExpatError` for what is no XML."""
        places: list[tuple[int, int]] = []
        parser = expat.ParserCreate()

        def start(tag: str, _attributes: dict[str, str]) -> None:
            begin = parser.CurrentByteIndex + 1
            name = tag.encode()
            if content[begin : begin + len(name)] == name:
                places.append((begin + len(name), parser.CurrentLineNumber))

        def doctype(name: str, *_declaration: object) -> None:
            self.at = f"{number}:{parser.CurrentLineNumber}"
            refuse("<!DOCTYPE>", name, "a robot's file declares no document type and no entities", "remove it")

        parser.StartElementHandler = start
        parser.StartDoctypeDeclHandler = doctype
        parser.Parse(content, True)
        parts: list[bytes] = []
        done = 0
        for index, line in places:
            parts += [content[done:index], f' {self.mark}="{number}:{line}"'.encode()]
            done = index
        return b"".join([*parts, content[done:]])

    def touch(self, node: Any, *, take: bool) -> None:
        """Note where an element stands; `take` its mark off."""
        if node.hasAttribute(self.mark):
            self.at = node.getAttribute(self.mark)
            if take:
                node.removeAttribute(self.mark)

    def find(self, package: str) -> str:
        """Return the folder of a package."""
        found = next((folder / package for folder in self.folders if (folder / package).is_dir()), None)
        if found is None:
            shown = ", ".join(map(str, self.folders[:8])) or "no folder"
            remedy = "name the folder that holds it by --path (path= in Python) or in ROS_PACKAGE_PATH"
            refuse("$(find)", package, f"no such package; looked in {shown}", remedy)
        return str(found)

    def warn(self, *words: object) -> None:
        """Keep a warning of xacro's."""
        self.warnings.append((" ".join(map(str, words)), self.at))


def refuse(what: str, value: object, allowed: str, remedy: str = "") -> NoReturn:
    """Raise what is wrong with a file."""
    raise Refused(what, value, allowed, remedy)


def hooked(job: Job) -> Any:
    """Return the library of xacro, told to read files and to say where it is by the job."""
    import xacro
    from xacro import substitution_args

    evaluate: Callable[..., Any] = xacro.eval_all
    called: Callable[..., Any] = xacro.handle_macro_call
    checked: Callable[..., Any] = xacro.check_attrs

    def eval_all(node: Any, *rest: Any) -> None:
        before = job.at
        job.touch(node, take=False)
        evaluate(node, *rest)
        job.at = before

    def handle_macro_call(node: Any, *rest: Any) -> Any:
        if node.tagName.startswith(PREFIX):
            job.touch(node, take=True)
        return called(node, *rest)

    def check_attrs(tag: Any, *rest: Any) -> Any:
        job.touch(tag, take=True)
        if tag.tagName == "xacro:arg":
            job.declared.add(tag.getAttribute("name"))
        return checked(tag, *rest)

    xacro.eval_all, xacro.handle_macro_call, xacro.check_attrs = eval_all, handle_macro_call, check_attrs
    xacro.parse, xacro.warning = job.parse, job.warn
    xacro.verbosity = 0
    substitution_args._eval_find = job.find  # noqa: SLF001 - it finds what ROS has installed
    return xacro


def expanded(job: Job, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the answer: XML, or what is wrong."""
    try:
        library = job.library = hooked(job)
    except ImportError as error:
        return {"missing": str(error)}
    try:
        library.init_stacks(job.files[0])
        document = job.parse(None, job.files[0])
        library.process_doc(document, mappings=dict(asked["arguments"]))
        xml = document.documentElement.toxml()
        return {"xml": xml} if len(xml) <= asked["most"] else {"refused": TOO_LARGE}
    except RecursionError:
        return {"refused": WITHOUT_END}
    except MemoryError:
        return {"refused": TOO_LARGE}
    except Exception as error:  # noqa: BLE001 - whatever an expression does
        return {"refused": wrong(error, library.XacroException)}


def wrong(error: BaseException, wrapper: type[Exception]) -> list[str]:
    """Return what an exception says of the file: what, value, what is allowed, remedy."""
    words = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    while isinstance(error, wrapper) and isinstance(error.__dict__["exc"], Exception):
        error = error.__dict__["exc"]
    if isinstance(error, Refused):
        return [str(part) for part in error.args]
    if isinstance(error, RecursionError):
        return WITHOUT_END
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
    job = Job(asked)
    answer = expanded(job, asked)
    answer |= {"files": job.files, "at": job.at, "warnings": job.warnings, "declared": sorted(job.declared)}
    json.dump(answer, out)
    out.close()


if __name__ == "__main__":
    main()
