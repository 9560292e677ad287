"""The code blocks, links and sentences of the documentation pages.

Code blocks of one page run in order in one process, as a user pastes them into one session. The current folder is an
empty folder that contains the folder `examples`.

- A block `python` runs in the interpreter.
- A block `shell` has one command per line: `navsense ...` or `python FILE`. A `navsense run` without `--duration` ends
  after 5 s.
- A block with a caption, such as `:caption: robot.sdf`, is a file with this name.
- `<!-- not run: REASON -->` on the line before a block excludes it.
- `<!-- hidden ... -->` contains Python that runs, but is not shown.

Blocks `xml` without a caption are elements of a world: `make_world` completes them to a file that navsense loads.
Blocks `toml` and `json` are parsed. `NOT_RUN` lists the other languages.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

GENERATED = ("api", "requirements", "parts", "declared-against-measured", "command-line", "sdf-elements", "messages")
"""Stems of the pages and names of the folders that tools write."""

BLOCK = re.compile(
    r"^<!-- hidden\n(?P<hidden>.*?)^-->$"
    r"|(?:^<!-- not run: (?P<reason>.+?) -->\n)?"
    r"^(?P<fence>`{3,})(?:\{code-block\} )?(?P<language>[\w{}-]*)[^\n]*\n(?::caption: (?P<file>[^\n]+)\n+)?"
    r"(?P<code>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)

NOT_RUN = {
    "": "a message definition or a formula",
    "console": "commands of other programs, or an installation, with a prompt",
    "sh": "an installation",
    "dockerfile": "needs Docker and a network",
    "text": "output of the block above, which a hidden block compares",
    "yaml": "needs the service that runs it",
}
"""Languages of blocks that are neither run nor loaded -> the reason. The directives of MyST are in braces."""

PREAMBLE = """\
import shlex, subprocess, sys
names = {"__name__": "__main__"}
def run_python(page, line, code):
    exec(compile("\\n" * line + code, page, "exec"), names)
def run_shell(command):
    subprocess.run([sys.executable, *command], check=True)
"""


@dataclass(frozen=True)
class Block:
    """A code block: its first line in the page from 0, language, code, file name, and the reason if it is not run."""

    line: int
    language: str
    code: str
    file: str = ""
    reason: str = ""


def list_pages() -> list[Path]:
    """Return the README, the pages of the site and the files that they include, generated ones too.

    Files that the build writes are left out: they contain the changelog fragments.
    """
    included = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "changelog.d").glob("+*.md"))]
    return [ROOT / "README.md", *included, *sorted(page for page in DOCS.rglob("*.md") if "built" not in page.parts)]


def is_written_by_hand(page: Path) -> bool:
    """Return True for pages that no tool writes, without design notes."""
    parts = page.relative_to(ROOT).with_suffix("").parts
    return "design-notes" not in parts and not set(parts) & set(GENERATED)


def read_blocks(text: str) -> list[Block]:
    """Return the code blocks of a page in order."""
    blocks = []
    for match in BLOCK.finditer(text):
        kind = "hidden" if match["hidden"] is not None else "code"
        line = text.count("\n", 0, match.start(kind))
        language = "python" if kind == "hidden" else match["language"]
        blocks.append(Block(line, language, match[kind], match["file"] or "", match["reason"] or ""))
    return blocks


def parse_command(line: str) -> list[str]:
    """Return the arguments of Python for one command of a page. Raises ValueError for another program."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "python":
        return arguments
    if program != "navsense":
        raise ValueError(f"{line}: a `shell` block contains navsense and python only; use `console`")
    if arguments[:1] == ["run"] and "--duration" not in arguments:
        arguments += ["--duration", "5"]
    return ["-m", "navsense", *arguments]


NAMESPACES = {"navsense": "https://navsense.org/sdf", "gz": "http://gazebosim.org/schema"}
"""Prefixes of the elements and attributes in XML blocks."""

WORLD = """\
  <world name="page">
    <gravity>0 0 -9.8</gravity>
    <magnetic_field>0 2e-5 -4e-5</magnetic_field>
    <spherical_coordinates><latitude_deg>36.8</latitude_deg><longitude_deg>-121.8</longitude_deg></spherical_coordinates>
    <navsense:signal name="cabin">298</navsense:signal>
    <navsense:signal name="motor_current">3</navsense:signal>
    <navsense:signal name="temperature">298</navsense:signal>
    <frame name="dock"/>
  </world>
"""
"""The world in which `make_world` places the elements of a block, with a model of the links `base` and `base_link`."""

PARENTS = {
    **dict.fromkeys(("include", "model", "water", "current"), "world"),
    **dict.fromkeys(("link", "plugin", "motion"), "model"),
    **dict.fromkeys(("sensor", "clock"), "link"),
}
"""Elements at the top of a block -> the element of the world that contains them."""

WRAPPERS = {
    "dvl": '<sensor name="page" type="dvl">{}</sensor>',
    "faults": '<sensor name="page" type="imu">{}</sensor>',
    "grid": "<navsense:current>{}</navsense:current>",
    "noise": '<sensor name="page" type="imu"><imu><angular_velocity><x>{}</x></angular_velocity></imu></sensor>',
}
"""Elements that are not in `PARENTS` -> the element around them."""


def parse_elements(text: str) -> list[ET.Element]:
    """Return the elements of an XML block, in which `...` stands for left-out content."""
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return list(ET.fromstring(f"<sdf {declared}>{text.replace('...', '')}</sdf>"))  # noqa: S314 - a page of navsense


def get_local_name(element: ET.Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def make_world(code: str) -> tuple[str, str]:
    """Return the suffix and the text of the file that an XML block describes: a robot, or a world with its elements.

    Raises KeyError for an element that has no place in a world.
    """
    for prefix, uri in NAMESPACES.items():
        ET.register_namespace(prefix, uri)
    elements = parse_elements(code)
    if [element.tag for element in elements] == ["robot"]:
        return ".urdf", ET.tostring(elements[0], encoding="unicode")
    root = ET.Element("sdf", version="1.12")
    (world,) = parse_elements(WORLD)
    root.append(world)
    model = ET.SubElement(world, "model", name="page")
    places = {"world": world, "model": model, "link": ET.SubElement(model, "link", name="base")}
    if all(element.get("name") != "base_link" for element in elements):
        ET.SubElement(model, "link", name="base_link")
    for element in elements:
        name = get_local_name(element)
        if name == "world":
            world.extend(element)
        elif name in PARENTS:
            places[PARENTS[name]].append(element)
        else:
            (wrapper,) = parse_elements(WRAPPERS[name].format(ET.tostring(element, encoding="unicode")))
            places[PARENTS[get_local_name(wrapper)]].append(wrapper)
    return ".sdf", ET.tostring(root, encoding="unicode")


def make_script(page: str, blocks: list[Block], before: str = "", after: str = "") -> str:
    """Return the program that runs the blocks of a page; `before` and `after` are further Python code."""
    lines = [PREAMBLE, f"run_python('before', 0, {before!r})"]
    for block in blocks:
        if block.reason:
            continue
        if block.file:
            lines.append(f"open({block.file!r}, 'w', encoding='utf-8').write({block.code!r})")
        elif block.language == "python":
            lines.append(f"run_python({page!r}, {block.line}, {block.code!r})")
        elif block.language == "shell":
            commands = block.code.replace("\\\n", " ").splitlines()
            lines += [f"run_shell({parse_command(command)!r})" for command in commands if shlex.split(command, True)]
    return "\n".join([*lines, f"run_python('after', 0, {after!r})"]) + "\n"


def run_page(page: Path, folder: Path, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """Run the blocks of a page in a folder, in which it makes a link to `examples`."""
    examples = folder / "examples"
    if not examples.exists():
        examples.symlink_to(ROOT / "examples")
    name = page.relative_to(ROOT).as_posix()
    script = make_script(name, read_blocks(page.read_text(encoding="utf-8")), before, after)
    path = folder / ".page.py"
    path.write_text(script, encoding="utf-8")
    return subprocess.run([sys.executable, path.name], capture_output=True, text=True, cwd=folder, check=False)


def strip_code(text: str) -> str:
    """Return a page without comments and fenced blocks."""
    return re.sub(r"<!--.*?-->", "", BLOCK.sub("", text), flags=re.DOTALL)


def list_links(text: str) -> Iterator[str]:
    """Yield the targets of the links and pictures of a page, without those to other sites."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", strip_code(text))):
        if not re.match(r"[a-z]+:", target):
            yield target


def list_anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    anchors: set[str] = set()
    for title in re.findall(r"^#{1,4} (.+)$", BLOCK.sub("", text), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = 1
        while anchor in anchors:
            anchor, count = f"{anchor.removesuffix(f'-{count - 1}')}-{count}", count + 1
        anchors.add(anchor)
    return anchors


ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|cf|vs|Fig|No|Proc|Conf|[A-Z])\.$")


def list_paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a page: without headings, tables, code blocks and pictures; list items are paragraphs."""
    lines: list[str] = []
    in_list = False
    for line in [*strip_code(text).splitlines(), ""]:
        starts_item = re.match(r"\s*(?:[-*]|\d+\.) ", line) is not None
        is_indented_code = line.startswith("    ") and not in_list and not lines
        ends = not line.strip() or line.startswith(("|", "#", "![")) or is_indented_code
        if (ends or starts_item) and lines:
            yield " ".join(lines)
            lines = []
        in_list = starts_item or (in_list and (not line.strip() or line.startswith(" ")))
        if not ends:
            lines.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).strip())


def list_sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence of a page.

    A sentence ends with a full stop, a question mark or an exclamation mark before a space, or with its paragraph or
    list item. Inline code and a link are the words that the reader sees; code is one word. A word contains a letter or
    a digit; a hyphenated word is one.
    """
    for paragraph in list_paragraphs(text):
        plain = re.sub(r"`+[^`]+`+", "code", paragraph)
        plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", plain).replace("*", "")
        sentence: list[str] = []
        for word in plain.split():
            sentence.append(word)
            if re.search(r"[.!?][)\"']?$", word) and not ABBREVIATION.search(word):
                yield [part for part in sentence if re.search(r"\w", part)]
                sentence = []
        if sentence:
            yield [part for part in sentence if re.search(r"\w", part)]
