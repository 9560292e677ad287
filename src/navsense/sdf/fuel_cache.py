"""The local cache of Gazebo Fuel, in which `gz fuel download` stores models. Nothing is downloaded here.

    https://fuel.gazebosim.org/1.0/OWNER/models/NAME[/VERSION]                      a model
    https://fuel.gazebosim.org/1.0/OWNER/models/NAME/VERSION/files/meshes/hull.stl   a file of a model
    CACHE/fuel.gazebosim.org/owner/models/name/2/                                   folder of version 2 in the cache

The cache has owners and names in lower case. Without a version, or with `tip`, the highest version is used.
`fuel.ignitionrobotics.org` is the older name of the server. The caches are `GZ_FUEL_CACHE_PATH`, `IGN_FUEL_CACHE_PATH`,
`~/.gz/fuel` and `~/.ignition/fuel`. Source: gz-fuel-tools, `FuelClient.cc`, `LocalCache.cc`, `ClientConfig.cc`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

CACHE_VARIABLES = ("GZ_FUEL_CACHE_PATH", "IGN_FUEL_CACHE_PATH")
"""Environment variables with the folder of a cache."""

DEFAULT_CACHES = (".gz/fuel", ".ignition/fuel")
"""Folders of the cache in the home folder: of Gazebo, and of its versions before Garden."""

SERVERS = ("fuel.gazebosim.org", "fuel.ignitionrobotics.org")
"""Names of the server of Fuel, which are folders of the cache."""

_URI = re.compile(
    r"(?P<model>(?:https?|fuel)://(?P<server>[^/\s]+)/+(?:[0-9]+\.[0-9]+/+)?(?P<owner>[^/\s]+)/+models/+(?P<name>[^/]+)"
    r"(?:/+(?P<version>[0-9]+|tip))?)(?:/+files/+(?P<file>.+))?/*"
)


@dataclass(frozen=True)
class FuelUri:
    """A model of Fuel, or a file of it.

    version: "" for the highest one.
    url: of the model, as the URI has it, to download it.
    """

    server: str
    owner: str
    name: str
    version: str = ""
    file: str = ""
    url: str = field(default="", compare=False)


def parse_fuel_uri(uri: str) -> FuelUri | None:
    """Return the parts of the URI of a model of Fuel, or of a file of it; None for another text.

    A URI with a part that is no name in a folder, such as `..` or `%2Fetc`, is another text.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        return None
    server, owner, name = (unquote(match[key]).lower() for key in ("server", "owner", "name"))
    files = [unquote(part) for part in (match["file"] or "").split("/") if part]
    if not all(map(_is_entry_name, (server, owner, name, *files))):
        return None
    version = "" if match["version"] in (None, "tip") else match["version"]
    url = match["model"]
    if url.startswith("fuel:"):
        url = f"https:{url.removeprefix('fuel:')}"
    return FuelUri(server, owner, name, version, "/".join(files), url)


def list_caches() -> tuple[Path, ...]:
    """Return the folders that may be caches: those of the environment, then those in the home folder."""
    folders = [Path(folder) for variable in CACHE_VARIABLES if (folder := os.environ.get(variable))]
    home = os.environ.get("HOME")
    folders += [Path(home) / folder for folder in DEFAULT_CACHES] if home else []
    return tuple(dict.fromkeys(folders))


def list_model_folders(caches: Sequence[Path], uri: FuelUri) -> list[Path]:
    """Return the places of a model, without the version, in all caches."""
    servers = SERVERS if uri.server in SERVERS else (uri.server,)
    return [cache / server / uri.owner / "models" / uri.name for cache in caches for server in servers]


def list_places(folder: Path, uri: FuelUri) -> Iterator[Path]:
    """Yield the place of a URI in a model's folder of the cache, if this version is there."""
    version = uri.version or find_highest_version(folder)
    if version:
        yield folder / version / uri.file


def list_models(caches: Sequence[Path], name: str) -> Iterator[Path]:
    """Yield the folder of the highest version of each model with a name, of all owners."""
    if not _is_entry_name(name):
        return
    for cache in caches:
        for server in SERVERS:
            for owner in _list_folders(cache / server):
                folder = cache / server / owner / "models" / name.lower()
                version = find_highest_version(folder)
                if version:
                    yield folder / version


def find_highest_version(folder: Path) -> str:
    """Return the highest version in a model's folder; "" without one."""
    return max(filter(str.isdecimal, _list_folders(folder)), key=int, default="")


def _is_entry_name(text: str) -> bool:
    """Return True for the name of an entry of a folder: a path with such names alone does not leave the cache."""
    return text not in ("", ".", "..") and not any(character in text for character in "/\\\0")


def _list_folders(place: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted; none if it is not a folder."""
    try:
        with os.scandir(place) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []
