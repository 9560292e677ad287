"""Write constraints.txt: the versions of navsense's and its tests' dependencies in this environment.

Usage: python tools/constraints.py    (in an environment in which the complete suite has passed)
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
HEAD = (
    "# The versions that the suite passed with. Written by tools/constraints.py; the bounds stand in pyproject.toml.\n"
)


def normalise_name(name: str) -> str:
    """Return the normalised name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def list_requirements(roots: list[str]) -> dict[str, str]:
    """Return name and version of each requirement in `roots` and of all their requirements, as installed here."""
    versions: dict[str, str] = {}
    queue = [Requirement(root) for root in roots]
    while queue:
        requirement = queue.pop()
        extras = ["", *requirement.extras]
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = normalise_name(requirement.name)
        if name in versions:
            continue
        distribution = metadata.distribution(requirement.name)
        versions[name] = distribution.version
        for line in distribution.requires or ():
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                queue.append(inner)
    return versions


def main() -> None:
    """Write the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    roots = project["dependencies"] + extras["test"] + extras["lint"] + extras["docs"]
    lines = [f"{name}=={version}\n" for name, version in sorted(list_requirements(roots).items())]
    (ROOT / "constraints.txt").write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()
