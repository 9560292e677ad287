"""A separate program that expands one file of xacro, and marks each element with its file and line.

`navsense.sdf.urdf.xacro` starts it. It is never imported: a file of xacro is a program, which may not end or may
exhaust the memory. Input (standard input, JSON): file, arguments, folders of packages, largest number of bytes, memory
(bytes), mark. Output (standard output, JSON): the XML and the files read, or the error and its place; warnings; the
arguments that the files declare.

Each element of a file gets the attribute `mark`, "FILE:LINE" with the number of the file. xacro copies it to the
expanded elements. Elements for which an attribute would be an argument of xacro lose the mark in time; it is then the
place of errors.
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
TOO_LARGE = ["xacro", "too large", "exceeds the limit after expansion", ""]
ENDLESS = ["xacro", "endless recursion", "a file or macro must not include itself", ""]


class ExpansionError(Exception):
    """An error of a file: problem, value, allowed values, remedy."""


class XacroJob:
    """An expansion: the job, and the current place in the files."""

    def __init__(self, request: dict[str, Any]) -> None:
        """Start with the first file."""
        self.mark: str = request["mark"]
        self.folders = [Path(folder) for folder in request["folders"]]
        self.bytes_left: int = request["max_size"]
        self.files: list[str] = [request["file"]]
        self.position = "0:0"
        self.library: Any = None
        self.warnings: list[tuple[str, str]] = []
        self.declared_arguments: set[str] = set()

    def parse(self, _given: object, filename: str) -> Any:
        """Return the document of a file with marked elements; replaces xacro's own reader."""
        from xml.dom import minidom

        if filename not in self.files:
            self.files.append(filename)
        number, content = self.files.index(filename), self.read_file(filename)
        self.position = f"{number}:0"
        try:
            return minidom.parseString(self.add_marks(content, number))  # noqa: S318 - no entities are left
        except expat.ExpatError as error:
            self.position = f"{number}:{error.lineno}"
            raise_error("XML", expat.ErrorString(error.code), "must be well-formed XML", "correct the XML at this line")

    def read_file(self, filename: str) -> bytes:
        """Return the bytes of a file. Raises `ExpansionError` if it cannot be read or is too large."""
        try:
            if not stat.S_ISREG(Path(filename).stat().st_mode):
                raise_error(INCLUDE, filename, "must be a file")
            with Path(filename).open("rb") as file:
                data = file.read(self.bytes_left + 1)
        except ValueError as error:  # a null character in the name
            raise_error(INCLUDE, filename, str(error))
        except OSError as error:  # xacro skips an optional file after these exceptions
            self.library.filestack.pop()
            raise self.library.XacroException(exc=error) from error
        if len(data) > self.bytes_left:
            raise_error("file", "too large", "exceeds the limit together with its includes")
        self.bytes_left -= len(data)
        return data

    def add_marks(self, content: bytes, number: int) -> bytes:
        """Return the content of a file with a mark in each start tag. Raises `ExpatError` for invalid XML."""
        places: list[tuple[int, int]] = []
        parser = expat.ParserCreate()

        def start(tag: str, _attributes: dict[str, str]) -> None:
            begin = parser.CurrentByteIndex + 1
            name = tag.encode()
            if content[begin : begin + len(name)] == name:
                places.append((begin + len(name), parser.CurrentLineNumber))

        def doctype(name: str, *_declaration: object) -> None:
            self.position = f"{number}:{parser.CurrentLineNumber}"
            raise_error("<!DOCTYPE>", name, "must not declare a document type or entities", "remove it")

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
        """Store the place of an element; `remove` removes its mark."""
        if node.hasAttribute(self.mark):
            self.position = node.getAttribute(self.mark)
            if remove:
                node.removeAttribute(self.mark)

    def find_package(self, package: str) -> str:
        """Return the folder of a package."""
        path = next((folder / package for folder in self.folders if (folder / package).is_dir()), None)
        if path is None:
            searched = ", ".join(map(str, self.folders[:8])) or "no folder"
            remedy = "name the folder that holds it by --path (path= in Python) or in ROS_PACKAGE_PATH"
            raise_error("$(find)", package, f"no such package; searched {searched}", remedy)
        return str(path)

    def add_warning(self, *words: object) -> None:
        """Add a warning of xacro."""
        self.warnings.append((" ".join(map(str, words)), self.position))


def raise_error(what: str, value: object, allowed: str, remedy: str = "") -> NoReturn:
    """Raise the error of a file."""
    raise ExpansionError(what, value, allowed, remedy)


def install_hooks(job: XacroJob) -> Any:
    """Return the library of xacro, with functions of the job for reading files and for the current place."""
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
    """Return the answer: XML, or an error."""
    try:
        library = job.library = install_hooks(job)
    except ImportError as error:
        return {"missing": str(error)}
    try:
        library.init_stacks(job.files[0])
        document = job.parse(None, job.files[0])
        library.process_doc(document, mappings=dict(request["arguments"]))
        xml = document.documentElement.toxml()
        return {"xml": xml} if len(xml) <= request["max_size"] else {"error": TOO_LARGE}
    except RecursionError:
        return {"error": ENDLESS}
    except MemoryError:
        return {"error": TOO_LARGE}
    except Exception as error:  # noqa: BLE001 - whatever an expression does
        return {"error": describe_error(error, library.XacroException)}


def describe_error(error: BaseException, wrapper: type[Exception]) -> list[str]:
    """Return problem, value, allowed values and remedy of an exception."""
    text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
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
    return ["xacro", text, "", ""]


def main() -> None:
    """Answer one request."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # an expression may print
    request = json.load(sys.stdin)
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = request["memory"] if hard == resource.RLIM_INFINITY else min(hard, request["memory"])
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    except (ImportError, ValueError, OSError):
        pass  # this system has no such limits; the time is limited anyway
    job = XacroJob(request)
    answer = expand(job, request)
    answer |= {
        "files": job.files,
        "position": job.position,
        "warnings": job.warnings,
        "declared": sorted(job.declared_arguments),
    }
    json.dump(answer, out)
    out.close()


if __name__ == "__main__":
    main()
