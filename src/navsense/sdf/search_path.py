"""Search for included files: in the folder of the including file, and in folders of models.

| URI | searched |
|---|---|
| `model://NAME/...`, `package://NAME/...` | each folder of the search path, then of ROS's, then the file's own folder |
| `NAME/...`, `file://NAME/...` | the file's own folder, then each folder of the search path |
| `/PLACE`, `file:///PLACE` | that place |
| `https://fuel.gazebosim.org/...`, `fuel://...` | the local cache of Fuel (`fuel_cache`) |

The cache of Fuel is also the last place for `model://NAME/...`.

The search path is the argument of the caller, then `GZ_SIM_RESOURCE_PATH`, `IGN_GAZEBO_RESOURCE_PATH`, `SDF_PATH` and
`GAZEBO_MODEL_PATH`, as in Gazebo and libsdformat. ROS's folders are those of `ROS_PACKAGE_PATH` (the parent of an entry
that is a package), and `share` in those of `AMENT_PREFIX_PATH`. A folder has a `model.config`, which lists its files by
SDF version; the newest supported version is used. Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote

from navsense.core.errors import SdfError
from navsense.core.inputs import path_exists
from navsense.sdf import fuel_cache
from navsense.sdf.names import NEWEST_VERSION, parse_minor_version
from navsense.sdf.values import invalid_value, parse_text
from navsense.sdf.xml_reader import Element, read_xml

MODEL_PATH_VARIABLES = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
"""Environment variables with folders of models, separated as in PATH, by priority."""

ROS1_PATH_VARIABLE, ROS2_PREFIX_VARIABLE = "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"
"""Environment variables with folders of packages: ROS 1, and the installation prefixes of ROS 2."""

CONFIG_FILES = ("model.config", "manifest.xml")
"""Files that name the model of a folder; the second is the older name."""

SearchFolders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_MAX_SHOWN = 8
_PACKAGE_FILE = "package.xml"
_FOLDER_SCHEMES = ("model", "package")
_ONLINE_SCHEMES = ("http", "https", "fuel")
_SKIP_REMEDY = 'or skip it by --skip-missing (missing="skip" in Python)'


class MissingFileError(SdfError):
    """A file of a world that is missing on this machine.

    `reason` and `search_remedy` are texts of the note if it is skipped: its problem, and how to provide it.
    """

    reason: str = ""
    search_remedy: str = ""


@dataclass(frozen=True)
class SearchPath:
    """Folders of models, of ROS packages and of caches of Fuel, by priority."""

    folders: tuple[Path, ...] = ()
    packages: tuple[Path, ...] = ()

    @cached_property
    def caches(self) -> tuple[Path, ...]:
        """The folders that may be caches of Fuel."""
        return fuel_cache.list_caches()

    def list_package_folders(self) -> list[Path]:
        """Return the folders that are searched for a package or model by its name."""
        return _drop_duplicates([*self.folders, *self.packages])

    def find_model_file(self, element: Element) -> Path:
        """Return the file of an include's `<uri>`. Raises `SdfError` with the searched places."""
        path = self._find(element, parse_text(element, parent="include"), "include")
        return _select_model_file(element, path) if path.is_dir() else path

    def find_asset(self, element: Element, parent: str) -> Path:
        """Return the image or mesh of a `<uri>`. Raises `SdfError` with the searched places."""
        return self._find_file(element, parent, can_skip=True)

    def find_table(self, element: Element, parent: str) -> Path:
        """Return the table in the text of an element, which is never skipped. Raises `SdfError`."""
        return self._find_file(element, parent, can_skip=False)

    def _find_file(self, element: Element, parent: str, *, can_skip: bool) -> Path:
        path = self._find(element, parse_text(element, parent=parent), parent, can_skip=can_skip)
        if path.is_dir():
            raise invalid_value(element, element.text, f"is a folder: {path}", parent=parent, remedy="name a file")
        return path

    def find_data_file(self, element: Element, attribute: str) -> Path:
        """Return the data file or folder of an attribute, also the storage path of a recording.

        Raises `SdfError` with the searched places.
        """
        uri = element.get_attribute(attribute)
        if uri is None:
            raise invalid_value(element, "missing", "must name a file", attribute=attribute)
        return self._find(element, uri, "", attribute, can_skip=False)

    def _find(self, element: Element, uri: str, parent: str, attribute: str = "", *, can_skip: bool = True) -> Path:
        """Return the file or folder of a name, from an attribute or the text of the element."""
        candidates = self._list_candidates(element, uri, parent, attribute, can_skip=can_skip)
        for candidate in candidates:
            path = _find_folder(candidate) if attribute else candidate
            if path_exists(path):
                return path
        cached = self._find_cached(uri)
        if cached is not None:
            return cached
        searched = ", ".join(map(str, candidates[:_MAX_SHOWN]))
        if len(candidates) > _MAX_SHOWN:
            searched += f" and {len(candidates) - _MAX_SHOWN} places more"
        variables = MODEL_PATH_VARIABLES[0]
        if uri.startswith("package:"):
            variables += f" or {ROS1_PATH_VARIABLE}"
        allowed = f"is not found; searched {searched}"
        remedy = f"name its folder by --path (path= in Python) or in {variables}"
        error = invalid_value(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
        raise _make_missing_file_error(error, allowed, can_skip=can_skip)

    def _find_cached(self, uri: str) -> Path | None:
        """Return the file of `model://NAME/...` in the cache of Fuel; None if it is not there."""
        scheme, _, path = uri.partition("://")
        name, _, file = path.strip("/").partition("/")
        if scheme != "model" or not name:
            return None
        places = (folder / file.lstrip("/") for folder in fuel_cache.list_models(self.caches, name))
        return next(filter(path_exists, places), None)

    def _list_candidates(
        self, element: Element, uri: str, parent: str, attribute: str, *, can_skip: bool
    ) -> list[Path]:
        """Return the places where the file may be, each once."""
        scheme, separator, path = uri.partition("://")
        file_folder = Path(element.path).parent
        if not separator or (scheme == "file" and path):
            name = path if separator else uri
            return _drop_duplicates([file_folder / name, *(folder / name for folder in self.folders)])
        name = path.strip("/")
        if scheme in _FOLDER_SCHEMES and name:
            return _drop_duplicates([*(folder / name for folder in self.list_package_folders()), file_folder / name])
        allowed = "must be a file, model://NAME, package://NAME, file://PLACE or a model of Fuel"
        fuel_uri = fuel_cache.parse_fuel_uri(uri)
        if scheme not in _ONLINE_SCHEMES or (scheme == "fuel" and fuel_uri is None):
            raise invalid_value(element, uri, allowed, parent=parent, attribute=attribute)
        remedy = "nothing is downloaded: get the model yourself and write model://NAME"
        reason = "is not on this machine"
        if fuel_uri is not None:
            folders = fuel_cache.list_model_folders(self.caches, fuel_uri)
            places = [place for folder in folders for place in fuel_cache.list_places(folder, fuel_uri)]
            if any(map(path_exists, places)):
                return places
            remedy = f"nothing is downloaded: get the model by `gz fuel download -u {quote(fuel_uri.url)}`"
            allowed = reason = "is not in the cache of Fuel"
            caches = [str(folder) for folder in folders if fuel_uri.server in folder.parts]
            allowed += f"; searched {', '.join(caches[:_MAX_SHOWN])}" if caches else ""
        error = invalid_value(element, uri, allowed, parent=parent, attribute=attribute, remedy=remedy)
        raise _make_missing_file_error(error, reason, can_skip=can_skip)


def _make_missing_file_error(cause: SdfError, reason: str, *, can_skip: bool) -> MissingFileError:
    """Return an error as the error of a missing file; `can_skip` is True if `missing="skip"` would skip it."""
    remedy = f"{cause.remedy}, {_SKIP_REMEDY}" if can_skip else cause.remedy
    error = MissingFileError(cause.what, cause.value, where=cause.where, allowed=cause.allowed, remedy=remedy)
    error.reason, error.search_remedy = reason, cause.remedy
    return error


def build_search_path(path: SearchFolders = ()) -> SearchPath:
    """Return the search path: the caller's folders, then those of the environment.

    Raises `SdfError` if an argument of the caller is not a folder.
    """
    arguments = (path,) if isinstance(path, str | os.PathLike) else tuple(path)
    folders = [Path(folder) for folder in arguments]
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
    """Return the folders of an environment variable."""
    return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _find_folder(place: Path) -> Path:
    """Return the folder of a recording whose name is not a file; else the place itself."""
    if not place.suffix or path_exists(place) or not path_exists(place.with_suffix("")):
        return place
    from navsense.recordings.format import resolve_folder

    return resolve_folder(place)


def _drop_duplicates(places: list[Path]) -> list[Path]:
    return list(dict.fromkeys(places))


def _select_model_file(element: Element, folder: Path) -> Path:
    """Return the file of a model's folder with the newest supported version."""
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
