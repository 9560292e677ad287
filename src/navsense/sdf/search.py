"""Where included files are looked for: beside the file that includes them, and in folders of models.

| URI | looked for |
|---|---|
| `model://NAME/...`, `package://NAME/...` | in each folder of the search path, then of ROS's, then beside the file |
| `NAME/...`, `file://NAME/...` | beside the file, then in each folder of the search path |
| `/PLACE`, `file:///PLACE` | there |

The search path is what the caller gives, then `GZ_SIM_RESOURCE_PATH`, `IGN_GAZEBO_RESOURCE_PATH`, `SDF_PATH` and
`GAZEBO_MODEL_PATH`, as Gazebo and libsdformat know them. ROS's folders are those of `ROS_PACKAGE_PATH` (around an entry
that is a package itself), and `share` in those of `AMENT_PREFIX_PATH`. A folder holds a `model.config`, which names its
files by the version of SDF; the newest that is read counts. Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from navsense.errors import SdfError
from navsense.inputs import place_of, there
from navsense.sdf.names import NEWEST, minor_of
from navsense.sdf.read import Element, read
from navsense.sdf.values import refusal, text

VARIABLES = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment that hold folders of models, separated as in PATH; the first counts first."""

PACKAGES, PREFIXES = "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"
"""The same of packages: of ROS 1, and of what ROS 2 has installed."""

CONFIGS = ("model.config", "manifest.xml")
"""What says which file of a model's folder is the model; the second is the older name."""

PathsGiven = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SHOWN = 8
_PACKAGE = "package.xml"
_FROM_FOLDERS = ("model", "package")
_ONLINE = ("http", "https")


class MissingError(SdfError):
    """A file that a world names and that is not on this machine; `reason` says so in a note."""

    reason: str = ""


@dataclass(frozen=True)
class Search:
    """Folders of models, and those of ROS's packages, the first to be looked into first."""

    folders: tuple[Path, ...] = ()
    packages: tuple[Path, ...] = ()

    def of_packages(self) -> list[Path]:
        """Return the folders in which a package or model is looked for by its name."""
        return _unique([*self.folders, *self.packages])

    def file(self, element: Element) -> Path:
        """Return the file that the `<uri>` of an include names. Raises `SdfError` with the places searched."""
        found = self._found(element, "include")
        return _model_file(element, found) if found.is_dir() else found

    def asset(self, element: Element, parent: str) -> Path:
        """Return the image or mesh that a `<uri>` names. Raises `SdfError` with the places searched."""
        found = self._found(element, parent)
        if found.is_dir():
            raise refusal(element, element.text, f"is a folder: {found}", parent=parent, remedy="name a file")
        return found

    def named(self, element: Element, attribute: str) -> Path:
        """Return the file or folder of data that an attribute names, that of a recording also as it was written.

        Raises `SdfError` with the places searched.
        """
        uri = element.attribute(attribute)
        if uri is None:
            raise refusal(element, "missing", "must name a file", attribute=attribute)
        return self._at(element, uri, "", attribute)

    def _found(self, element: Element, parent: str) -> Path:
        """Return the file or folder that a `<uri>` names."""
        return self._at(element, text(element, parent=parent), parent)

    def _at(self, element: Element, uri: str, parent: str, attribute: str = "") -> Path:
        """Return the file or folder of a name, that of an attribute or the element's text."""
        places = self._places(element, uri, parent, attribute)
        found = next((place for one in places if there(place := place_of(one) if attribute else one)), None)
        if found is None:
            shown = ", ".join(map(str, places[:_SHOWN]))
            more = f" and {len(places) - _SHOWN} places more" if len(places) > _SHOWN else ""
            variables = " or ".join((VARIABLES[0], PACKAGES) if uri.startswith("package:") else VARIABLES[:1])
            remedy = f"name its folder by --path (path= in Python) or in {variables}"
            allowed = f"is not found; looked for {shown}{more}"
            refused = refusal(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
            raise _missing(refused, allowed)
        return found

    def _places(self, element: Element, uri: str, parent: str, attribute: str) -> list[Path]:
        """Return where the file may be, each place once."""
        scheme, separator, rest = uri.partition("://")
        beside = Path(element.path).parent
        if not separator or (scheme == "file" and rest):
            name = rest if separator else uri
            return _unique([beside / name, *(folder / name for folder in self.folders)])
        if scheme in _FROM_FOLDERS and rest.strip("/"):
            rest = rest.strip("/")
            return _unique([*(folder / rest for folder in self.of_packages()), beside / rest])
        allowed = "must be a file, model://NAME, package://NAME or file://PLACE"
        if scheme not in _ONLINE:
            raise refusal(element, uri, allowed, parent=parent, attribute=attribute)
        remedy = "nothing is downloaded: get the model by `gz fuel download -u`, and write model://NAME"
        refused = refusal(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
        raise _missing(refused, "is not on this machine")


def _missing(refused: SdfError, reason: str) -> MissingError:
    """Return a refusal as that of a file which is not there."""
    given = {"allowed": refused.allowed, "remedy": refused.remedy}
    error = MissingError(refused.what, refused.value, where=refused.where, **given)
    error.reason = reason
    return error


def search_of(path: PathsGiven = ()) -> Search:
    """Return the search path: the caller's folders, then those of the environment.

    Raises `SdfError` for a folder of the caller's that is none.
    """
    given = (path,) if isinstance(path, str | os.PathLike) else tuple(path)
    folders = [Path(folder) for folder in given]
    for folder in folders:
        if not there(folder) or not folder.is_dir():
            remedy = "check --path (path= in Python)"
            raise SdfError("search path", str(folder), allowed="must be a folder", remedy=remedy)
    for variable in VARIABLES:
        folders += _listed(variable)
    packages = [folder.parent if there(folder / _PACKAGE) else folder for folder in _listed(PACKAGES)]
    packages += [folder / "share" for folder in _listed(PREFIXES)]
    return Search(tuple(_unique(folders)), tuple(_unique(packages)))


def _listed(variable: str) -> list[Path]:
    """Return the folders that a variable of the environment holds."""
    return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _unique(places: list[Path]) -> list[Path]:
    return list(dict.fromkeys(places))


def _model_file(element: Element, folder: Path) -> Path:
    """Return the file of a model's folder that has the newest version of those that are read."""
    config = next((folder / name for name in CONFIGS if there(folder / name)), None)
    if config is None:
        allowed = f"is a folder without {CONFIGS[0]}"
        raise refusal(element, element.text, allowed, parent="include", remedy=f"name the file in {folder}")
    root = read(config)
    files = [(minor_of(child.attributes.get("version", "")) or 0, child) for child in root.all("sdf") if child.text]
    known = [(minor, child) for minor, child in files if minor <= NEWEST]
    if root.tag != "model" or not known:
        value = f"<{root.tag[:80]}> with {len(files)} <sdf>"
        allowed = f"must be a <model> with an <sdf> of version 1.{NEWEST} or older"
        raise SdfError("model.config", value, where=root.where, allowed=allowed)
    newest = max(minor for minor, _ in known)
    return folder / next(child.text for minor, child in known if minor == newest)
