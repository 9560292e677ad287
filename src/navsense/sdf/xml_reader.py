"""XML with line numbers, by expat, with limits on size, depth and number of elements.

Namespaces are not processed: files of Gazebo use prefixes that they do not declare. A document type is refused before
it can declare an entity.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from navsense.core import inputs
from navsense.core.errors import SdfError, Where

NAMESPACE_URI = "https://navsense.org/sdf"
"""The namespace of navsense's elements."""

PREFIX = "navsense:"
"""Their prefix, which `parse_xml` writes for any prefix that a file binds to the namespace."""

MAX_DEPTH = 200
"""Largest nesting depth of elements."""

MAX_SIZE = 64 * 1024 * 1024
"""Largest size (bytes) of a file."""

MAX_ELEMENTS = 1_000_000

_CLOSING_MARKS = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_OPENING_PATTERN = re.compile(b"|".join(map(re.escape, _CLOSING_MARKS)))
_LATE_DECLARATION_PATTERN = re.compile(rb"(\s+)<\?xml\s[^?>]*\?>")

_SDF_FILE = inputs.FileKind("file", SdfError, "must be a readable file of SDF")


@dataclass(slots=True, eq=False)
class Element:
    """An element: tag and attributes, its own text, children in order, and its line in the file `path`.

    Names of navsense's namespace have the prefix `PREFIX`, other names are as written.

    `include` is the include of an element in another file. `strict` is False if unknown parts of the element are
    warnings; `Context.check` of the parent sets it.
    """

    tag: str
    attributes: Mapping[str, str]
    line: int
    path: str
    text: str = ""
    children: list[Element] = field(default_factory=list)
    include: Element | None = None
    strict: bool = True

    @property
    def where(self) -> Where:
        """The file and line."""
        return Where(self.path, self.line)

    def find_all(self, *tags: str) -> Iterator[Element]:
        """Yield the children with one of the tags, in order."""
        return (child for child in self.children if child.tag in tags)

    def find(self, *tags: str) -> Element | None:
        """Return the first child with one of the tags; None without one."""
        return next(self.find_all(*tags), None)

    def walk(self) -> Iterator[Element]:
        """Yield the element and all elements in it, in the order of the file."""
        queue = [self]
        while queue:
            element = queue.pop()
            yield element
            if element.children:
                queue.extend(reversed(element.children))

    def get_attribute(self, name: str) -> str | None:
        """Return an attribute without surrounding blanks; None if it is absent or empty."""
        return self.attributes.get(name, "").strip() or None

    def get_text(self, tag: str, default: str = "") -> str:
        """Return the text of the first child with a tag; the default if the child is absent or empty."""
        child = self.find(tag)
        return child.text if child is not None and child.text else default

    def make_element(
        self, tag: str, text: str = "", children: Iterable[Element] = (), attributes: Mapping[str, str] | None = None
    ) -> Element:
        """Return a new element with the file and the line of this one."""
        return Element(tag, attributes or {}, self.line, self.path, text, list(children))


def read_xml(path: str | os.PathLike[str]) -> Element:
    """Return the root element of a file.

    Raises `SdfError` for a file that cannot be read, is not XML, declares a document type or exceeds a limit.
    """
    name = os.fspath(path)
    return parse_xml(read_content(name), name)


def parse_xml(content: bytes, path: str) -> Element:
    """Return the root element of the content of a file; `path` is its name in errors.

    Raises `SdfError` as `read_xml` does.
    """
    if not content.strip():
        raise SdfError("file", "empty", where=Where(path), allowed=_SDF_FILE.allowed)
    builder = _TreeBuilder(path)
    try:
        builder.parser.Parse(_repair_comments(_remove_late_declaration(content)), True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code) or "not well-formed"
        where = Where(path, error.lineno)
        raise SdfError(
            "XML", what, where=where, allowed="must be well-formed XML", remedy="correct the XML at this line"
        ) from error
    except (ValueError, LookupError) as error:
        allowed = "must be UTF-8 or named rightly"
        raise SdfError("XML encoding", str(error), where=Where(path), allowed=allowed) from error
    return builder.root()


def read_content(name: str, max_size: int | None = None) -> bytes:
    """Return the bytes of a file, at most `max_size`, by default `MAX_SIZE`.

    Raises `SdfError` for a file that is missing, a folder, special (`inputs`), unreadable or larger.
    """
    limit = f"must be at most {MAX_SIZE // 2**20} MiB with all that it includes"
    return inputs.read_bytes(name, _SDF_FILE, MAX_SIZE if max_size is None else max_size, limit)


def _remove_late_declaration(content: bytes) -> bytes:
    """Return the content of a file without an XML declaration that follows blank lines.

    XML allows it at the start only. The readers of Gazebo and of URDF ignore it elsewhere.
    """
    match = _LATE_DECLARATION_PATTERN.match(content)
    return content if match is None else match[1] + content[match.end() :]


def _repair_comments(content: bytes) -> bytes:
    """Return the content of a file in which blanks replace the invalid dashes of comments.

    Two dashes inside a comment are not allowed in XML. Many files have them, and the readers of Gazebo and of URDF
    ignore them.
    """
    parts: list[bytes] = []
    done = 0
    opened = _OPENING_PATTERN.search(content)
    while opened is not None:
        start, end = opened.end(), content.find(_CLOSING_MARKS[opened[0]], opened.end())
        if end < 0:
            break
        if opened[0] == b"<!--" and (b"--" in content[start:end] or content[end - 1 : end] == b"-"):
            parts += [content[done:start], content[start:end].replace(b"-", b" ")]
            done = end
        opened = _OPENING_PATTERN.search(content, end)
    return b"".join([*parts, content[done:]]) if parts else content


class _TreeBuilder:
    """Handlers of expat that build the tree without recursion and stop at a limit."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._count = 0
        self._root: Element | None = None
        self._prefixes: set[str] = set()
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._handle_start
        self.parser.EndElementHandler = self._handle_end
        self.parser.CharacterDataHandler = self._handle_text
        self.parser.StartDoctypeDeclHandler = self._handle_doctype

    def root(self) -> Element:
        """Return the root element."""
        if self._root is None:
            raise SdfError("XML", "no element", where=Where(self._path), allowed="must contain one <sdf> element")
        return self._root

    def _raise_error(self, what: str, value: object, allowed: str, remedy: str = "") -> NoReturn:
        where = Where(self._path, self.parser.CurrentLineNumber)
        raise SdfError(what, value, where=where, allowed=allowed, remedy=remedy)

    def _handle_doctype(self, name: str, *_declaration: object) -> None:
        self._raise_error("<!DOCTYPE>", name, "must not declare a document type or entities", "remove the declaration")

    def _handle_start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS:
            self._raise_error("number of elements", self._count, f"must be at most {MAX_ELEMENTS}")
        if len(self._open) >= MAX_DEPTH:
            self._raise_error(f"<{tag[:80]}>", f"{MAX_DEPTH + 1} deep", f"elements may be nested {MAX_DEPTH} deep")
        if attributes:
            self._bind_prefixes(attributes)
            if self._prefixes:
                attributes = {self._normalize_prefix(name): value for name, value in attributes.items()}
        element = Element(self._normalize_prefix(tag), attributes, self.parser.CurrentLineNumber, self._path)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)
        self._texts.append([])

    def _bind_prefixes(self, attributes: Mapping[str, str]) -> None:
        """Store the prefixes of navsense's namespace; raise for its own prefix with another namespace."""
        for name, value in attributes.items():
            if name.startswith("xmlns:"):
                prefix = name.removeprefix("xmlns:") + ":"
                if value == NAMESPACE_URI and prefix != PREFIX:
                    self._prefixes.add(prefix)
                elif value != NAMESPACE_URI and prefix == PREFIX:
                    self._raise_error(name, value, f"must be {NAMESPACE_URI}")

    def _normalize_prefix(self, name: str) -> str:
        if not self._prefixes:
            return name
        prefix, colon, local = name.partition(":")
        return PREFIX + local if colon and prefix + colon in self._prefixes else name

    def _handle_end(self, _tag: str) -> None:
        self._open.pop().text = "".join(self._texts.pop()).strip()

    def _handle_text(self, text: str) -> None:
        if self._texts:
            self._texts[-1].append(text)
