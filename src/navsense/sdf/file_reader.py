"""Reading of the files of a world: XML, xacro, conversion of URDF, and upgrade to the newest SDF version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from navsense.core.errors import SdfError, Where
from navsense.sdf.context import Context
from navsense.sdf.names import NEWEST_VERSION, parse_version
from navsense.sdf.search_path import SearchPath
from navsense.sdf.values import invalid_value
from navsense.sdf.versions import upgrade
from navsense.sdf.xml_reader import MAX_SIZE, Element, parse_xml, read_content

XACRO_SUFFIX = ".xacro"
"""Suffix of a xacro file."""

XACRO_PREFIX = "xacro:"
"""Prefix of the elements of xacro."""

_XACRO_NOT_ALLOWED = "can execute code; only a file that you name as *.xacro may use xacro"
_XACRO_REMEDY = "if you trust it, give --expand-xacro (in Python expand_xacro=True)"


@dataclass
class FileReader:
    """Reads the files of one world, with a limit on their total size.

    arguments: the arguments of xacro.
    expand_xacro: True if xacro may run.
    bytes_left: bytes that may still be read.
    """

    context: Context
    search: SearchPath
    arguments: Mapping[str, str] = field(default_factory=dict)
    expand_xacro: bool = False
    bytes_left: int = MAX_SIZE
    _declared_arguments: set[str] = field(default_factory=set)

    def read_root(self, name: str) -> Element:
        """Return the root element of the file that the caller names; a name `*.xacro` permits xacro for all files."""
        is_requested = self.expand_xacro
        self.expand_xacro = self.expand_xacro or name.endswith(XACRO_SUFFIX)
        return self.read(name, is_xacro=is_requested)

    def read(self, name: str, *, is_xacro: bool = False) -> Element:
        """Return the root element of a file in the newest SDF version, expanded if it uses xacro.

        is_xacro: True if expressions are those of xacro also without its namespace.

        Raises `SdfError` if the file uses xacro and xacro may not run.
        """
        if name.endswith(XACRO_SUFFIX):
            root = self._expand_xacro(name)
        else:
            data = read_content(name, self.bytes_left)
            root = parse_xml(data, name)
            macro = _find_xacro(root, is_declared=is_xacro or "xmlns:xacro" in root.attributes)
            if macro is None:
                self.bytes_left -= len(data)
            elif self.expand_xacro:
                root = self._expand_xacro(name)
            else:
                raise invalid_value(macro, None, _XACRO_NOT_ALLOWED, remedy=_XACRO_REMEDY)
        self.context.versions.setdefault(name, NEWEST_VERSION)
        if root.tag == "robot":
            from navsense.sdf.urdf.robot import convert_urdf

            return convert_urdf(self.context, root)
        _check_root(root)
        minor = parse_version(root)
        self.context.versions[name] = minor
        upgrade(self.context, root, minor)
        return root

    def _expand_xacro(self, name: str) -> Element:
        """Return the root element of a file after expansion by xacro. Raises `SdfError` if xacro may not run."""
        if not self.expand_xacro:
            raise SdfError("file of xacro", where=Where(name), allowed=_XACRO_NOT_ALLOWED, remedy=_XACRO_REMEDY)
        from navsense.sdf.urdf.xacro import expand_xacro

        expanded = expand_xacro(self.context, self.search, name, self.arguments, self.bytes_left)
        self._declared_arguments |= expanded.declared_arguments
        self.bytes_left -= expanded.size
        for file in expanded.files:
            self.context.versions.setdefault(file, NEWEST_VERSION)
        return expanded.root

    def check_arguments(self, name: str) -> None:
        """Add a problem for each argument of xacro that no file declares; `name` is the file in errors."""
        # The arguments of an unread file are unknown.
        for argument in () if self.context.incomplete else self.arguments:
            if argument not in self._declared_arguments:
                declared = ", ".join(sorted(self._declared_arguments)) or "there is none"
                allowed = f"must be an <xacro:arg> of the files: {declared}"
                self.context.add_problem(SdfError("xacro argument", argument, where=Where(name), allowed=allowed))


def _find_xacro(root: Element, *, is_declared: bool) -> Element | None:
    """Return the first element of a file that xacro expands.

    A file that declares the namespace of xacro may use xacro only in expressions: `${...}` or `$(...)`.
    """
    for element in root.walk():
        texts = (element.text, *element.attributes.values()) if is_declared else ()
        if element.tag.startswith(XACRO_PREFIX) or any("${" in text or "$(" in text for text in texts):
            return element
    return None


def _check_root(root: Element) -> None:
    """Raise `SdfError` for another root than `<sdf>`, and for a model that refers to a frame outside it."""
    if root.tag != "sdf":
        raise SdfError(f"<{root.tag[:80]}>", where=root.where, allowed="the outermost element must be <sdf> or <robot>")
    for pose in (pose for model in root.find_all("model") for pose in model.find_all("pose")):
        frame = pose.get_attribute("relative_to")
        if frame:
            allowed = "a model outside a world has no parent frame"
            remedy = "give the frame where the model is included"
            raise invalid_value(pose, frame, allowed, attribute="relative_to", remedy=remedy)
