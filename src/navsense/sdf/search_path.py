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

from navsense.core.errors import SdfError
from navsense.core.inputs import path_exists, resolve_folder
from navsense.sdf.names import NEWEST_VERSION, parse_minor_version
from navsense.sdf.values import invalid_value, parse_text
from navsense.sdf.xml_reader import Element, read_xml

MODEL_PATH_VARIABLES = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment that hold folders of models, separated as in PATH; the first counts first."""

ROS1_PATH_VARIABLE, ROS2_PREFIX_VARIABLE = "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"
"""The same of packages: of ROS 1, and of what ROS 2 has installed."""

CONFIG_FILES = ("model.config", "manifest.xml")
"""What says which file of a model's folder is the model; the second is the older name."""

SearchFolders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_MAX_SHOWN = 8
_PACKAGE_FILE = "package.xml"
_FOLDER_SCHEMES = ("model", "package")
_ONLINE_SCHEMES = ("http", "https")


class MissingFileError(SdfError):
    """A file that a world names and that is not on this machine; `reason` says so in a note."""

    reason: str = ""


@dataclass(frozen=True)
class SearchPath:
    """Folders of models, and those of ROS's packages, the first to be looked into first."""

    folders: tuple[Path, ...] = ()
    packages: tuple[Path, ...] = ()

    def list_package_folders(self) -> list[Path]:
        """Return the folders in which a package or model is looked for by its name."""
        return _drop_duplicates([*self.folders, *self.packages])

    def find_model_file(self, element: Element) -> Path:
        """Return the file that the `<uri>` of an include names. Raises `SdfError` with the places searched."""
        found = self._find_uri(element, "include")
        return _select_model_file(element, found) if found.is_dir() else found

    def find_asset(self, element: Element, parent: str) -> Path:
        """Return the image or mesh that a `<uri>` names. Raises `SdfError` with the places searched."""
        found = self._find_uri(element, parent)
        if found.is_dir():
            raise invalid_value(element, element.text, f"is a folder: {found}", parent=parent, remedy="name a file")
        return found

    def find_data_file(self, element: Element, attribute: str) -> Path:
        """Return the file or folder of data that an attribute names, that of a recording also as it was written.

        Raises `SdfError` with the places searched.
        """
        uri = element.get_attribute(attribute)
        if uri is None:
            raise invalid_value(element, "missing", "must name a file", attribute=attribute)
        return self._find(element, uri, "", attribute)

    def _find_uri(self, element: Element, parent: str) -> Path:
        """Return the file or folder that a `<uri>` names."""
        return self._find(element, parse_text(element, parent=parent), parent)

    def _find(self, element: Element, uri: str, parent: str, attribute: str = "") -> Path:
        """Return the file or folder of a name, that of an attribute or the element's text."""
        places = self._list_candidates(element, uri, parent, attribute)
        found = next((place for one in places if path_exists(place := resolve_folder(one) if attribute else one)), None)
        if found is None:
            shown = ", ".join(map(str, places[:_MAX_SHOWN]))
            more = f" and {len(places) - _MAX_SHOWN} places more" if len(places) > _MAX_SHOWN else ""
            variables = " or ".join(
                (MODEL_PATH_VARIABLES[0], ROS1_PATH_VARIABLE)
                if uri.startswith("package:")
                else MODEL_PATH_VARIABLES[:1]
            )
            remedy = f"name its folder by --path (path= in Python) or in {variables}"
            allowed = f"is not found; looked for {shown}{more}"
            refused = invalid_value(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
            raise _missing_file_error(refused, allowed)
        return found

    def _list_candidates(self, element: Element, uri: str, parent: str, attribute: str) -> list[Path]:
        """Return where the file may be, each place once."""
        scheme, separator, rest = uri.partition("://")
        folder_of_file = Path(element.path).parent
        if not separator or (scheme == "file" and rest):
            name = rest if separator else uri
            return _drop_duplicates([folder_of_file / name, *(folder / name for folder in self.folders)])
        if scheme in _FOLDER_SCHEMES and rest.strip("/"):
            rest = rest.strip("/")
            return _drop_duplicates([*(folder / rest for folder in self.list_package_folders()), folder_of_file / rest])
        allowed = "must be a file, model://NAME, package://NAME or file://PLACE"
        if scheme not in _ONLINE_SCHEMES:
            raise invalid_value(element, uri, allowed, parent=parent, attribute=attribute)
        remedy = "nothing is downloaded: get the model by `gz fuel download -u`, and write model://NAME"
        refused = invalid_value(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
        raise _missing_file_error(refused, "is not on this machine")


def _missing_file_error(cause: SdfError, reason: str) -> MissingFileError:
    """Return a refusal as that of a file which is not there."""
    given = {"allowed": cause.allowed, "remedy": cause.remedy}
    error = MissingFileError(cause.what, cause.value, where=cause.where, **given)
    error.reason = reason
    return error


def build_search_path(path: SearchFolders = ()) -> SearchPath:
    """Return the search path: the caller's folders, then those of the environment.

    Raises `SdfError` for a folder of the caller's that is none.
    """
    given = (path,) if isinstance(path, str | os.PathLike) else tuple(path)
    folders = [Path(folder) for folder in given]
    for folder in folders:
        if not path_exists(folder) or not folder.is_dir():
            remedy = "check --path (path= in Python)"
            raise SdfError("search path", str(folder), allowed="must be a folder", remedy=remedy)
    for variable in MODEL_PATH_VARIABLES:
        folders += _read_variable(variable)
    packages = [
        folder.parent if path_exists(folder / _PACKAGE_FILE) else folder
        for folder in _read_variable(ROS1_PATH_VARIABLE)
    ]
    packages += [folder / "share" for folder in _read_variable(ROS2_PREFIX_VARIABLE)]
    return SearchPath(tuple(_drop_duplicates(folders)), tuple(_drop_duplicates(packages)))


def _read_variable(variable: str) -> list[Path]:
    """Return the folders that a variable of the environment holds."""
    return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _drop_duplicates(places: list[Path]) -> list[Path]:
    return list(dict.fromkeys(places))


def _select_model_file(element: Element, folder: Path) -> Path:
    """Return the file of a model's folder that has the newest version of those that are read."""
    config = next((folder / name for name in CONFIG_FILES if path_exists(folder / name)), None)
    if config is None:
        allowed = f"is a folder without {CONFIG_FILES[0]}"
        raise invalid_value(element, element.text, allowed, parent="include", remedy=f"name the file in {folder}")
    root = read_xml(config)
    files = [
        (parse_minor_version(child.attributes.get("version", "")) or 0, child)
        for child in root.find_all("sdf")
        if child.text
    ]
    known = [(minor, child) for minor, child in files if minor <= NEWEST_VERSION]
    if root.tag != "model" or not known:
        value = f"<{root.tag[:80]}> with {len(files)} <sdf>"
        allowed = f"must be a <model> with an <sdf> of version 1.{NEWEST_VERSION} or older"
        raise SdfError("model.config", value, where=root.where, allowed=allowed)
    newest = max(minor for minor, _ in known)
    return folder / next(child.text for minor, child in known if minor == newest)
