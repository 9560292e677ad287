"""The example of GTSAM's page on the MagFactor family prints the same with GTSAM's factor and with this one."""

from __future__ import annotations

import contextlib
import html
import io
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navsense.factors import MagFactor1

gtsam = pytest.importorskip("gtsam")
FIGURES: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent.parent / "oracles" / "gtsam" / "figures.toml").read_text(encoding="utf-8")
)["document"]


def run_code(code: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "the page's example", "exec"), {"__name__": "example"})  # noqa: S102
    return out.getvalue()


@pytest.fixture
def page(shared_data: Path) -> str:
    pages = sorted((shared_data.parent / "seeds").glob("003*"))
    if not pages:
        pytest.skip("needs the page of the MagFactor family beside the repository")
    return html.unescape(pages[0].read_text(encoding="utf-8"))


@pytest.mark.requirement("FAC-3")
def test_page_runs_and_prints_its_numbers(page: str) -> None:
    match = re.search(r"^import gtsam\n.*?(?=^Created MagFactor1:)", page, re.MULTILINE | re.DOTALL)
    assert match is not None
    example = match.group()
    output = page[match.end() :].partition("\n\nImportant Notes")[0].rstrip() + "\n"
    assert example.count("gtsam.MagFactor1(") == 1
    reference = run_code(example)
    ours = run_code("from navsense.factors import MagFactor1\n" + example.replace("gtsam.MagFactor1(", "MagFactor1("))
    assert ours == reference
    assert reference.replace("Factor\n  keys", "  keys") == output  # the version of the page lacks that line


@pytest.mark.requirement("FAC-3")
@pytest.mark.parametrize("factor", [gtsam.MagFactor1, MagFactor1], ids=["gtsam", "navsense"])
def test_documented_steps_give_the_documented_values(factor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    declination, inclination, strength = math.radians(-4.94), math.radians(62.78), 48343.4
    level = math.cos(inclination)
    direction = gtsam.Unit3(
        np.array([level * math.cos(declination), level * math.sin(declination), math.sin(inclination)])
    )
    bias = gtsam.Point3(10.0, -5.0, 2.0)
    truth = gtsam.Rot3.Yaw(math.radians(30.0))
    measured = truth.inverse().rotate(strength * direction.point3()) + bias
    key = gtsam.symbol("r", 0)
    created = factor(key, measured, strength, direction, bias, gtsam.noiseModel.Isotropic.Sigma(3, 50.0))
    created.print()
    assert capsys.readouterr().out == "Factor\n  keys = { r0 }\nisotropic dim=3 sigma=50\n"
    assert str(created.evaluateError(truth)) == "[0. 0. 0.]"
    away = gtsam.Rot3.Yaw(math.radians(25.0))
    assert str(created.evaluateError(away)) == "[1034.79105955 1628.05638524    0.        ]"
    assert created.evaluateError(away) == pytest.approx(FIGURES["error"], abs=5.1e-9)
    values = gtsam.Values()
    values.insert(key, away)
    assert created.error(values) == pytest.approx(FIGURES["cost"], rel=1e-12, abs=0.0)
