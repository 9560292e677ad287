"""List names of src/navsense that a reader cannot guess the meaning of. Most used names come first.

Usage: python tools/name_findings.py [--counts] [--package src/navsense]

Three lists, each with the place of every definition:

- duplicate classes: the package has several classes of this name
- bare participles and prepositions: a function or method whose name is one such word, as `turned` or `beside`
- vague words: a class, module or public function with a word of VAGUE in its name, a function `of`, or `at_...`

Leading underscores do not count. Methods of Python's protocols, as `__enter__`, are not listed. A word is a past
participle if it ends in -ed or -en, or if it is in IRREGULAR, with a prefix or without. ALLOWED lists the exceptions.
A use is an attribute, a part of an import, or a name that is no local variable, anywhere in the package with this
identifier. The count of a name with several definitions is therefore the sum of their uses.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/navsense"

DUPLICATE, BARE, VAGUE_NAME = "duplicate classes", "bare participles and prepositions", "vague words"
SECTIONS = (DUPLICATE, BARE, VAGUE_NAME)

VAGUE = frozenset(
    """
    beside foreseen gathered guessed heard loose lot lots meant recalled said spoilt told walked whole
    """.split()
)
"""Words that name neither a thing nor an action of the field."""

PREPOSITIONS = frozenset(
    """
    about above across after against along among around at before behind below beneath beside besides between beyond by
    down during for from in inside into near of off on onto out outside over past since through till to toward towards
    under until up upon with within without
    """.split()
)

IRREGULAR = frozenset(
    """
    begun bent bound bought brought built burnt caught dealt done drawn dug drunk felt flown fought found gone grown
    heard held hung kept known laid learnt led left lent lit lost made meant met paid said sent shot shown shut slept
    sold sought spelt spent spoilt spun stood struck stuck sung sunk swept sworn swum swung taught thought thrown told
    torn understood won worn wound
    """.split()
)
"""Participles that do not end in -ed or -en. Those that equal the infinitive, as `cut`, are verbs in a name."""

PREFIX = re.compile(r"^(?:fore|mis|out|over|re|un|under)")

ALLOWED: dict[str, str] = {
    "at": "`motion.at(t)`, `field.at(position, t)`: the value at a time and place",
    "listen": "a verb",
    "open": "a verb",
    "shorten": "a verb",
    "speed": "a noun",
    "whiten": "a verb: multiply by the inverse square root of the covariance",
}
"""Names of functions that are verbs or nouns, or read well as they are -> reason."""

FUNCTIONS = frozenset(("function", "method", "property"))
"""Kinds of definitions that are functions."""


@dataclass(frozen=True)
class Definition:
    """One definition of a class, function, method, property or module: its kind is this word."""

    name: str
    kind: str
    path: str
    line: int
    is_public: bool = True
    """False if the name, or the name of an enclosing class or function, starts with an underscore."""


@dataclass(frozen=True)
class Finding:
    """A name in one of the lists, with its definitions and the number of its uses."""

    section: str
    name: str
    definitions: tuple[Definition, ...]
    uses: int


def is_participle(word: str) -> bool:
    """Return True if a lower-case word is a past participle by the rule of this script."""
    if word in ALLOWED:
        return False
    if re.fullmatch(r"[a-z]{2,}(?:ed|en)", word):
        return True
    return word in IRREGULAR or PREFIX.sub("", word) in IRREGULAR


def split_words(name: str) -> list[str]:
    """Return the lower-case words of a name in snake case or camel case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_bare(name: str) -> bool:
    """Return True if the name of a function is one participle or preposition."""
    word = name.strip("_")
    return word not in ALLOWED and (word in PREPOSITIONS or is_participle(word))


def is_vague(definition: Definition) -> bool:
    """Return True if a name belongs in the list of vague words."""
    name = definition.name.strip("_")
    if definition.kind in FUNCTIONS:
        vague = name == "of" or name.startswith("at_") or bool(VAGUE & set(split_words(name)))
        return definition.is_public and vague
    return bool(VAGUE & set(split_words(name)))


def find_definitions(path: str, body: Iterable[ast.AST], *, in_class: bool, is_public: bool) -> Iterator[Definition]:
    """Yield the classes and functions below some nodes."""
    for node in body:
        public, inside = is_public, in_class
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            public = is_public and not node.name.startswith("_")
            is_class = isinstance(node, ast.ClassDef)
            kind = "class" if is_class else "function" if not in_class else "method"
            if in_class and any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list):
                kind = "property"
            if not (node.name.startswith("__") and node.name.endswith("__")):
                yield Definition(node.name, kind, path, node.lineno, public)
            inside = is_class
            public = public and is_class  # a function inside a function is not public
        yield from find_definitions(path, ast.iter_child_nodes(node), in_class=inside, is_public=public)


def local_names(function: ast.AST) -> set[str]:
    """Return the parameters and variables of a function, and of the functions inside it."""
    parameters = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    stored = (node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return parameters.union(stored)


def find_uses(node: ast.AST, variables: frozenset[str]) -> Iterator[str]:
    """Yield the identifiers that are used in a node, without those of local variables."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        variables |= local_names(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in variables:
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    for child in ast.iter_child_nodes(node):
        yield from find_uses(child, variables)


def find_names(sources: Mapping[str, str]) -> list[Finding]:
    """Return the findings in a package, given as sources by path: by section, then the most used first."""
    trees = {path: ast.parse(source) for path, source in sources.items()}
    uses = Counter(name for tree in trees.values() for name in find_uses(tree, frozenset()))
    groups: dict[tuple[str, str], list[Definition]] = defaultdict(list)
    classes: dict[str, list[Definition]] = defaultdict(list)
    for path, tree in trees.items():
        parts = PurePosixPath(path).with_suffix("").parts
        module = parts[-1] if parts[-1] != "__init__" else parts[-2] if len(parts) > 1 else ""
        definitions = [Definition(module, "module", path, 1)]
        definitions += find_definitions(path, tree.body, in_class=False, is_public=True)
        for definition in definitions:
            if definition.kind == "class":
                classes[definition.name].append(definition)
            if definition.kind in FUNCTIONS and is_bare(definition.name):
                groups[BARE, definition.name].append(definition)
            if is_vague(definition):
                groups[VAGUE_NAME, definition.name].append(definition)
    for name, several in classes.items():
        if len(several) > 1:
            groups[DUPLICATE, name] = several
    findings = [Finding(section, name, tuple(places), uses[name]) for (section, name), places in groups.items()]
    return sorted(findings, key=lambda finding: (SECTIONS.index(finding.section), -finding.uses, finding.name))


def read_sources(package: str) -> dict[str, str]:
    """Return the sources of a package in the working tree, by path inside it."""
    folder = ROOT / package
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.py"))}


def main() -> None:
    """Print the lists."""
    parser = argparse.ArgumentParser(description="List names that a reader cannot guess the meaning of.")
    parser.add_argument("--counts", action="store_true", help="print the number of names in each list only")
    parser.add_argument("--package", default=PACKAGE, help=f"folder of the package (default: {PACKAGE})")
    options = parser.parse_args()
    findings = find_names(read_sources(options.package))
    for section in SECTIONS:
        rows = [finding for finding in findings if finding.section == section]
        count = sum(len(finding.definitions) for finding in rows)
        print(f"{section}: {len(rows)} names, {count} definitions")
        for finding in () if options.counts else rows:
            print(f"  {finding.name}: {finding.uses} uses")
            for definition in finding.definitions:
                print(f"    {options.package}/{definition.path}:{definition.line}: {definition.kind}")


if __name__ == "__main__":
    main()
