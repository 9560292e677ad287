"""The pages of the documentation: code blocks run, links exist, sentences are short, generated pages are up to date."""

from __future__ import annotations

import ast
import code
import datetime as dt
import importlib
import itertools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import navsense as ns
from navsense.sdf import schema
from navsense.sdf.parse.current import CURRENT_PARSERS
from navsense.sdf.parse.current_gazebo import HYDRODYNAMICS_FILES
from navsense.sdf.plugins.registry import MODEL_PLUGINS, SENSOR_PLUGINS
from navsense.sensors import SENSORS

ROOT = Path(__file__).resolve().parent.parent

LONGEST_SENTENCE, LARGEST_MEAN = 25, 18.0
"""Words. `tools/pages.py` states the rule by which they are counted."""


def import_tool(name: str) -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tools"))


pages = import_tool("pages")

ALL = {page.relative_to(ROOT).as_posix(): page for page in pages.list_pages()}
WRITTEN = {name: page for name, page in ALL.items() if pages.is_written_by_hand(page)}
BLOCKS = {name: pages.read_blocks(page.read_text(encoding="utf-8")) for name, page in ALL.items()}

SEPARATE = frozenset(("docs/reference/magnetometer.md",))
"""Pages whose code `test_examples.py` runs, with variables that the page does not define."""

WITH_CODE = [
    name
    for name, blocks in BLOCKS.items()
    if any(block.language in ("python", "shell") and not block.reason for block in blocks) and name not in SEPARATE
]

NEEDS = {"docs/tutorials/calibrate-a-magnetometer.md": "gtsam"}
"""Extras that the code of a page requires."""


@pytest.mark.requirement("DOC-1:blocks")
@pytest.mark.timeout(900)  # pages run alone in a new process and may compile kernels
@pytest.mark.parametrize("name", WITH_CODE)
def test_code_of_the_page_runs(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    ended = pages.run_page(ALL[name], tmp_path)
    assert ended.returncode == 0, ended.stderr
    text = ALL[name].read_text(encoding="utf-8")
    built = [target for target in pages.list_links(text) if target.startswith("built/")]
    assert all((tmp_path / Path(target).name).stat().st_size for target in built)


@pytest.mark.requirement("DOC-1:blocks")
@pytest.mark.parametrize("name", sorted({*WITH_CODE, *SEPARATE}))
def test_blocks_of_the_page_can_be_pasted(name: str) -> None:
    """Into an interactive session, where an empty line ends a function, and a block needs one after it."""
    for block in BLOCKS[name]:
        lines: list[str] = []
        for line in [*block.code.splitlines(), ""] if block.language == "python" and not block.file else []:
            lines.append(line)
            if code.compile_command("\n".join(lines), name) is not None:
                lines = []
        assert not any(lines), f"line {block.line + 1}"


@pytest.mark.requirement("DOC-1:site")
@pytest.mark.parametrize("name", ALL)
def test_links_of_the_page_exist(name: str) -> None:
    """Pages and anchors. Sphinx checks the links to the Python API, and makes the pictures in `built`."""
    page, missing = ALL[name], []
    for target in pages.list_links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if path.startswith(("built/", "api/")) or path.endswith("/requirements.md"):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in pages.list_anchors(file.read_text(encoding="utf-8"))):
            missing.append(target)
    assert missing == []


@pytest.mark.parametrize("name", WRITTEN)
def test_sentences_of_the_page_are_short(name: str) -> None:
    sentences = [words for words in pages.list_sentences(ALL[name].read_text(encoding="utf-8")) if words]
    long = [f"{len(words)} words: {' '.join(words)}" for words in sentences if len(words) > LONGEST_SENTENCE]
    assert long == []
    assert not sentences or sum(map(len, sentences)) / len(sentences) <= LARGEST_MEAN


@pytest.mark.parametrize("name", WRITTEN)
def test_commands_of_the_page_are_in_blocks_that_run(name: str) -> None:
    text = pages.strip_code(ALL[name].read_text(encoding="utf-8"))
    assert re.findall(r"^ {4}navsense .*$", text, re.MULTILINE) == []


@pytest.mark.requirement("DOC-1:blocks")
@pytest.mark.parametrize("name", WRITTEN)
def test_every_block_of_the_page_runs_or_has_a_reason(name: str) -> None:
    run = {"json", "python", "shell", "toml", "xml"}
    for block in BLOCKS[name]:
        language = block.language
        assert language in run or language.startswith("{") or block.file or block.reason or pages.NOT_RUN[language]


XML_BLOCKS = {
    f"{name}:{block.line}": block.code
    for name in WRITTEN
    for block in BLOCKS[name]
    if block.language == "xml" and not block.file and not block.reason
}


@pytest.fixture(scope="module")
def files_of_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that XML blocks name: two models, motion logs, and a grid of currents."""
    folder = tmp_path_factory.mktemp("blocks")
    auv, reef = folder / "models" / "auv", folder / "models" / "reef"
    auv.mkdir(parents=True)
    reef.mkdir()
    (auv / "model.config").write_text("<model><name>auv</name><sdf version='1.9'>model.sdf</sdf></model>")
    model = "<model name='auv'><link name='hull'/><frame name='keel'/></model>"
    (auv / "model.sdf").write_text(f"<sdf version='1.9'>{model}</sdf>")
    shutil.copy(ROOT / "examples" / "seabed.png", reef / "bed.png")
    poses = "\n".join(["time,x,y,z,qw,qx,qy,qz", *(f"{0.1 * k},{0.1 * k},0,0,1,0,0,0" for k in range(101))])
    for log in ("dive.csv", "log.csv"):
        (folder / log).write_text(poses)
    axes = itertools.product((36, 37), (-122, -121), (-9, 0), (0, 3600))
    points = [f"{latitude},{longitude},{altitude},0.1,0.2,{time}" for latitude, longitude, altitude, time in axes]
    (folder / "basin.csv").write_text("\n".join(["lat,lon,altitude,u,v,seconds", *points]))
    return folder


@pytest.mark.requirement("DOC-1:blocks")
@pytest.mark.parametrize("block", XML_BLOCKS)
def test_xml_of_the_page_loads(block: str, files_of_blocks: Path) -> None:
    suffix, text = pages.make_world(XML_BLOCKS[block])
    file = files_of_blocks / f"page{suffix}"
    file.write_text(text, encoding="utf-8")
    world = ns.load(file, path=[files_of_blocks / "models"])
    unsupported = [str(note) for note in world.notes if note.kind == "unsupported"]
    assert all("<maxRangeDiff>" in text for text in unsupported), unsupported  # the plug-in of WHOI requires it


@pytest.mark.parametrize("name", WRITTEN)
def test_data_of_the_page_can_be_parsed(name: str) -> None:
    parsers: dict[str, Any] = {"json": json.loads, "toml": tomllib.loads}
    for block in BLOCKS[name]:
        if block.language in parsers:
            assert parsers[block.language](block.code)


@pytest.mark.requirement("DOC-1:blocks")
def test_faults_of_the_page_on_worlds_act(tmp_path: Path) -> None:
    (block,) = (block for block in BLOCKS["docs/reference/worlds.md"] if block.language == "toml")
    (tmp_path / "faults.toml").write_text(block.code, encoding="utf-8")
    world = ns.with_faults(ns.load(ROOT / "examples" / "auv_survey.sdf"), tmp_path / "faults.toml")
    assert [fault.kind for sensor in ("dvl", "imu") for fault in world.sensor(sensor).faults.scheduled] == [
        "lost_lock",
        "bias",
    ]


def test_element_without_a_place_in_a_world_is_an_error() -> None:
    assert pages.make_world("<robot name='r'><link name='l'/></robot>")[0] == ".urdf"
    with pytest.raises(KeyError, match="wheel"):
        pages.make_world("<wheel/>")


@pytest.fixture
def copied_docs(tmp_path: Path) -> Path:
    """A copy of the sources of the site, with empty pictures of the tutorials."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("built", "api"))
    for name in ("src", "tools", "changelog.d", "CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    built = tmp_path / "docs" / "tutorials" / "built"
    built.mkdir()
    for name, page in ALL.items():
        for target in pages.list_links(page.read_text(encoding="utf-8")) if "tutorials" in name else ():
            if target.startswith("built/"):
                (built / Path(target).name).touch()
    return tmp_path / "docs"


@pytest.mark.requirement("DOC-1:site")
@pytest.mark.compiled
@pytest.mark.timeout(900)
def test_site_is_built_without_warnings(copied_docs: Path, tmp_path: Path) -> None:
    """The command of `make docs`, without the extension that runs the tutorials: another test runs them."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module)
    listed = re.search(
        r"^extensions = (\[.*?\])", (copied_docs / "conf.py").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert listed is not None
    extensions = [name for name in ast.literal_eval(listed[1]) if name != "tutorial_pictures"]
    command = ["-b", "html", "-W", "--keep-going", "-q", "-D", f"extensions={','.join(extensions)}"]
    ended = subprocess.run(
        [sys.executable, "-m", "sphinx", *command, str(copied_docs), str(tmp_path / "site")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    site = tmp_path / "site"
    for kind in ("tutorials", "how-to", "reference", "explanation"):
        assert f'href="{kind}/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    for name in ALL:
        page = Path(name).relative_to("docs") if name.startswith("docs/") else None
        if page is not None and page.name != "README.md":
            assert (site / page.with_suffix(".html")).exists(), name


@pytest.mark.requirement("DOC-1:elements", "DOC-1:messages", "DOC-1:commands")
def test_generated_reference_is_up_to_date() -> None:
    tool = import_tool("reference")
    for name, page in tool.PAGES.items():
        assert (tool.FOLDER / f"{name}.md").read_text(encoding="utf-8") == page(), "run `python tools/reference.py`"


@pytest.mark.requirement("DOC-1:messages")
def test_page_of_messages_defines_every_type_that_it_names() -> None:
    tables, *definitions = re.split(r"^## (?=.*/)", import_tool("reference").format_messages(), flags=re.MULTILINE)
    defined = {definition.partition("\n")[0] for definition in definitions}
    named = {f"{package}/msg/{name}" for package, name in re.findall(r"`(\w+)/(\w+)`", tables)}
    assert {"navsense_msgs/msg/Dvl", "navsense_msgs/msg/Adcp"} <= named <= defined
    assert all(f"| `{sensor.type}`" in tables for sensor in SENSORS)


@pytest.mark.requirement("DOC-1:elements")
def test_every_element_of_the_sdf_specification_is_in_the_reference() -> None:
    """The schemas of `tests/sdf/test_spec.py` are those of the page."""
    listed = [place.schema if hasattr(place, "schema") else place for _, _, place in import_tool("reference").SECTIONS]
    spec = import_test("sdf/test_spec.py")
    per_type = ("sensor", "noise")  # one schema for each type: the page has the one of any type
    absent = [
        (file, path)
        for file, path, place in spec.KNOWN
        if file not in per_type and not path.endswith("noise") and place not in listed
    ]
    axes = {("imu", "angular_velocity"), ("imu", "linear_acceleration")}  # channels, by name in the page
    sensing = {(file, f"{kind}_sensing") for file in ("navsat", "gps") for kind in ("position", "velocity")}
    assert set(absent) <= axes | sensing


@pytest.mark.requirement("DOC-1:elements")
def test_every_plug_in_and_current_is_in_the_reference() -> None:
    listed = {name for _, name, _ in import_tool("reference").SECTIONS}
    plugins = {schema.DSROS_DVL_FILE, *MODEL_PLUGINS, *SENSOR_PLUGINS, *schema.CURRENT_PLUGINS}
    assert plugins - {*schema.CAMERA_PLUGIN_FILES} <= listed
    assert len(listed.intersection(schema.CAMERA_PLUGIN_FILES)) == 1  # one section for all names
    assert len(listed & schema.PRELOAD_FILES) == len(listed & HYDRODYNAMICS_FILES) == 1  # one section for all names
    assert CURRENT_PARSERS.keys() - {"uniform"} <= listed  # three numbers, without children and attributes


def import_test(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("module_of_tests", ROOT / "tests" / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_blocks_are_read() -> None:
    text = (
        "```python\nx = 1\n```\n<!-- hidden\ny = 2\n-->\n<!-- not run: no client -->\n```shell\nnavsense run\n```\n"
        "```{code-block} xml\n:caption: a.sdf\n\n<sdf/>\n```\n"
    )
    first, hidden, shell, file = pages.read_blocks(text)
    assert (first.line, first.language, first.code) == (1, "python", "x = 1\n")
    assert (hidden.line, hidden.language, hidden.code) == (4, "python", "y = 2\n")
    assert (shell.language, shell.reason) == ("shell", "no client")
    assert (file.language, file.file, file.code) == ("xml", "a.sdf", "<sdf/>\n")


def test_failing_block_names_its_page_and_line(tmp_path: Path) -> None:
    page = ROOT / "docs" / "x.md"
    script = pages.make_script("docs/x.md", pages.read_blocks("\n\n```python\nx = 1\nassert x == 2\n```\n"))
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    assert not page.exists()
    with pytest.raises(AssertionError) as caught:
        exec(compile(script, "script", "exec"), {})  # noqa: S102 - the script that the tool makes
    assert caught.traceback[-1].lineno == 4
    assert str(caught.traceback[-1].path).endswith("docs/x.md")


def test_other_programs_in_shell_blocks_are_errors() -> None:
    assert pages.parse_command("navsense run a.sdf  # why") == ["-m", "navsense", "run", "a.sdf", "--duration", "5"]
    with pytest.raises(ValueError, match="use `console`"):
        pages.parse_command("rosbag info a.bag")


def test_words_are_counted() -> None:
    text = "# Title of it\n\nA `code with spaces` is one. See [a link](b.md), e.g. this: x = 2!\n\n| a | b |\n\n- One\n"
    lengths = [len(words) for words in pages.list_sentences(text)]
    assert lengths == [4, 7, 1]


def test_changelog_is_assembled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog = import_tool("changelog")
    folder, target, citation = tmp_path / "changelog.d", tmp_path / "CHANGELOG.md", tmp_path / "CITATION.cff"
    folder.mkdir()
    (folder / "+a-b.fixed.md").write_text("First line\nsecond line.\n", encoding="utf-8")
    (folder / "+c.added.md").write_text("`x` is new.\n", encoding="utf-8")
    target.write_text(f"# Changelog\n\n{changelog.UNRELEASED}", encoding="utf-8")
    citation.write_text("cff-version: 1.2.0\nversion: 0.9.0\ndate-released: 2025-01-02\nlicense: x\n", encoding="utf-8")
    for name, path in (("FRAGMENTS", folder), ("CHANGELOG", target), ("CITATION", citation)):
        monkeypatch.setattr(changelog, name, path)
    changelog.release("1.0.0", dt.date(2026, 1, 2))
    assert citation.read_text(encoding="utf-8").splitlines() == [
        "cff-version: 1.2.0",
        "version: 1.0.0",
        "date-released: 2026-01-02",
        "license: x",
    ]
    section = "## 1.0.0 (2026-01-02)\n\n### Added\n\n- `x` is new.\n\n### Fixed\n\n- First line\n  second line.\n"
    assert target.read_text(encoding="utf-8") == f"# Changelog\n\n{changelog.UNRELEASED}\n{section}"
    assert list(folder.iterdir()) == []
    with pytest.raises(ValueError, match=r"1\.0\.0 is in"):
        changelog.release("1.0.0", dt.date(2026, 1, 2))


def test_changelog_of_the_site_has_new_changes_and_released_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog = import_tool("changelog")
    folder, target = tmp_path / "changelog.d", tmp_path / "CHANGELOG.md"
    folder.mkdir()
    released = "## 1.0.0 (2026-01-02)\n\n### Fixed\n\n- An old fault.\n"
    target.write_text(f"# Changelog\n\n{changelog.UNRELEASED}\n{released}", encoding="utf-8")
    monkeypatch.setattr(changelog, "FRAGMENTS", folder)
    monkeypatch.setattr(changelog, "CHANGELOG", target)
    assert changelog.format_changelog() == f"# Changelog\n\n## Unreleased\n\nNo changes.\n\n{released}"
    (folder / "+c.added.md").write_text("`x` is new.\n", encoding="utf-8")
    added = "### Added\n\n- `x` is new.\n"
    assert changelog.format_changelog() == f"# Changelog\n\n## Unreleased\n\n{added}\n{released}"
    target.write_text("# Changelog\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no section"):
        changelog.format_changelog()


def test_every_fragment_has_a_kind() -> None:
    fragments = import_tool("changelog").list_fragments()
    assert sum(map(len, fragments.values())) == len(list((ROOT / "changelog.d").glob("+*.md")))
