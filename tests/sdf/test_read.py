from __future__ import annotations

import os
from pathlib import Path

import pytest

from navsense import sdf
from navsense.core.errors import SdfError
from navsense.sdf.xml_reader import MAX_DEPTH, MAX_ELEMENTS, NAMESPACE_URI, parse_xml, read_xml


def read_error(content: bytes) -> str:
    with pytest.raises(SdfError) as caught:
        parse_xml(content, "dive.sdf")
    return str(caught.value)


def test_elements_have_line_numbers() -> None:
    root = parse_xml(
        b'<sdf version="1.9">\n <world name="w">\n  <gravity> 0 0\n -1 </gravity><a/></world></sdf>', "w.sdf"
    )
    world = root.children[0]
    assert (root.tag, root.line, root.attributes) == ("sdf", 1, {"version": "1.9"})
    assert (world.tag, world.line, world.get_attribute("name")) == ("world", 2, "w")
    assert [(child.tag, child.line) for child in world.children] == [("gravity", 3), ("a", 4)]
    assert world.children[0].text.split() == ["0", "0", "-1"]
    assert str(world.children[0].where) == "w.sdf:3"


def test_text_is_joined_around_comments_and_sections() -> None:
    assert parse_xml(b"<a>1<!-- x -->2<![CDATA[3]]></a>", "w.sdf").text == "123"


def test_undeclared_prefixes_are_allowed() -> None:
    assert parse_xml(b'<gz:a gz:b="1"/>', "w.sdf").tag == "gz:a"


def test_other_prefix_for_the_navsense_namespace() -> None:
    root = parse_xml(f'<a xmlns:n="{NAMESPACE_URI}"><n:motion n:file="x"/><m:motion/></a>'.encode(), "w.sdf")
    assert [child.tag for child in root.children] == ["navsense:motion", "m:motion"]
    assert root.children[0].attributes == {"navsense:file": "x"}


def test_navsense_prefix_for_another_namespace() -> None:
    assert "xmlns:navsense" in read_error(b'<a xmlns:navsense="https://example.org"/>')


@pytest.mark.parametrize(
    "content",
    [
        b"<sdf>",
        b"<sdf></world></sdf>",
        b"not XML",
        b"\x00\x01\x02\xff\xfe",
        b"\x7fELF\x02\x01\x01" + bytes(64),
        b"<sdf/><sdf/>",
        b'<sdf a="1" a="2"/>',
        b"<!-- only a comment -->",
        b"<sdf>&unknown;</sdf>",
        b"<sdf>\xff</sdf>",
        b'<?xml version="1.0" encoding="no-such-thing"?><sdf/>',
        b'<?xml version="1.0" encoding="utf-16"?><sdf/>',
        b'<?xml version="1.0" encoding="rot13"?><sdf/>',
        b'<?xml version="1.0" encoding="utf-7"?><sdf/>',
    ],
)
def test_invalid_xml_is_an_error(content: bytes) -> None:
    assert read_error(content).startswith("dive.sdf")


@pytest.mark.parametrize("content", [b"", b" \n\t "])
def test_empty_file_is_an_error(content: bytes) -> None:
    assert "empty" in read_error(content)


def test_entity_expansion_is_an_error() -> None:
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE sdf [<!ENTITY e0 "boom">{levels}]>\n<sdf>&e11;</sdf>'
    assert read_error(bomb.encode()).startswith("dive.sdf:2: <!DOCTYPE>: sdf; must not declare a document type or")


def test_external_entity_is_an_error() -> None:
    assert "<!DOCTYPE>" in read_error(b'<!DOCTYPE a SYSTEM "file:///etc/hostname"><a/>')


def test_deep_nesting_is_an_error() -> None:
    assert "nested 200 deep" in read_error(b"<a>" * 100_000)
    assert "nested 200 deep" in read_error(b"<a>\n" * 100_000 + b"</a>" * 100_000)
    deepest = parse_xml(b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH, "w.sdf")
    assert deepest.children[0].tag == "a"


def test_too_many_elements_are_an_error() -> None:
    assert str(MAX_ELEMENTS) in read_error(b"<a>" + b"<b/>" * (MAX_ELEMENTS + 1) + b"</a>")


def test_too_large_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navsense.sdf.xml_reader.MAX_SIZE", 1024)
    path = tmp_path / "large.sdf"
    path.write_text("<sdf>" + " " * 1024 + "</sdf>", encoding="utf-8")
    with pytest.raises(SdfError, match="too large"):
        read_xml(path)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SdfError, match="does not exist") as caught:
        sdf.load(tmp_path / "none.sdf")
    assert str(caught.value).startswith(f"{tmp_path}/none.sdf: file: does not exist")
    assert list(caught.value.problems) == [caught.value]


def test_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SdfError, match="file") as caught:
        sdf.load(tmp_path)
    assert "is a folder" in str(caught.value)


def test_impossible_file_name_is_an_error() -> None:
    with pytest.raises(SdfError):
        sdf.load("a\0b.sdf")


def test_pipe_is_an_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.sdf"
    os.mkfifo(pipe)
    with pytest.raises(SdfError) as caught:
        sdf.load(pipe)
    assert "a device, a pipe or a system file" in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "closed.sdf"
    path.write_text("<sdf/>", encoding="utf-8")
    path.chmod(0)
    with pytest.raises(SdfError, match="file") as caught:
        sdf.load(path)
    assert "ermission" in str(caught.value)
