"""Whatever a file holds: a world, or one of our errors with a place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from navsense import sdf
from navsense.errors import NavsenseError

ROOT = Path(__file__).resolve().parents[3]
REAL = sorted((ROOT / "shared" / "data").glob("*/*.sdf"))

OWN = """<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
<world name="ocean"><physics><max_step_size>0.01</max_step_size></physics>
<magnetic_field>1e-5 0 -4e-5</magnetic_field><navsense:fidelity>classic</navsense:fidelity>
<frame name="start"><pose degrees="true">1 2 3 0 0 90</pose></frame>
<model name="auv" canonical_link="base"><pose relative_to="start">0 0 0 0 0 1</pose>
<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
<navsense:waypoint time="5">1 0 0 0 0 1</navsense:waypoint></navsense:motion>
<link name="base"><clock name="mcu"><noise type="gaussian"><mean>1e-3</mean><stddev>1e-4</stddev></noise></clock>
<sensor name="imu" type="imu"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 1</pose><update_rate>200</update_rate>
<clock>mcu</clock><topic>imu</topic><imu><orientation_reference_frame><localization>CUSTOM</localization>
<custom_rpy parent_frame="world">0 0 1</custom_rpy></orientation_reference_frame><angular_velocity><x>
<noise type="gaussian_quantized"><stddev>1e-3</stddev><precision>1e-4</precision><navsense:minimum>-5</navsense:minimum>
</noise></x></angular_velocity></imu></sensor>
<sensor name="mag" type="magnetometer"><frame_id>m</frame_id><magnetometer><x/></magnetometer></sensor></link>
<joint name="j" type="fixed"><parent>base</parent><child>arm</child></joint>
<link name="arm"><pose relative_to="base">0 0 1 0 0 0</pose></link></model></world></sdf>
"""

TEXTS = [OWN, *(path.read_text(encoding="utf-8") for path in REAL)]
WORDS = re.findall(r"[\w:.-]+", OWN)
ODD = [
    "",
    "nan",
    "-1",
    "0",
    "1e999",
    "1e308",
    "-inf",
    "::",
    "__model__",
    "world",
    "\x00",
    "𝔘",
    "<",
    ">",
    "&",
    '"',
    "'",
    "]]>",
]


def refusal(path: Path) -> NavsenseError | None:
    try:
        sdf.load(path)
    except NavsenseError as error:
        return error
    return None


@pytest.fixture(scope="module")
def survives(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], bool]:
    path = tmp_path_factory.mktemp("fuzz") / "any.sdf"

    def tried(content: bytes) -> bool:
        path.write_bytes(content)
        error = refusal(path)
        if error is None:
            return True
        assert error.where is not None
        assert error.where.path == str(path)
        assert str(error).count("\n") == 0
        return False

    return tried


def test_the_texts_are_worth_it(survives: Callable[[bytes], bool]) -> None:
    assert survives(OWN.encode())


@given(st.binary(max_size=300))
def test_any_bytes(survives: Callable[[bytes], bool], content: bytes) -> None:
    survives(content)


@given(st.text(max_size=300))
@example("<sdf version='1.9'><world name='a&#13;b'/></sdf>")
def test_any_text(survives: Callable[[bytes], bool], content: str) -> None:
    survives(content.encode("utf-8", "replace"))


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_damaged_files(survives: Callable[[bytes], bool], text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(st.sampled_from(ODD + WORDS)) + text[end:]
    survives(text.encode("utf-8", "replace"))


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_changed_words(survives: Callable[[bytes], bool], text: str, data: st.DataObject) -> None:
    """Texts and attributes get other values, so that the file stays well-formed and the reader sees it all."""
    places = [match.span(1) for match in re.finditer(r'(?:="|>)([^<>"&]+)(?="|<)', text)]
    for start, end in sorted(
        data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True)), reverse=True
    ):
        word = data.draw(st.sampled_from([odd for odd in ODD if odd not in '<>&"\x00]]>'] + WORDS))
        text = text[:start] + word + text[end:]
    survives(text.encode("utf-8", "replace"))
