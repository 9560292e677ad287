"""Misspelt names in files have a suggestion: frames, types, parts, parents, clocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.requirement("SDF-1")

ListProblems = Callable[..., list[str]]


def make_world(*, link: str = "", model: str = "") -> str:
    body = f'<link name="base_link">{link}</link>{model}'
    return f'<sdf version="1.12"><world name="w"><model name="auv">{body}</model></world></sdf>'


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        (
            {"model": '<link name="arm"><pose relative_to="bas_link">0 0 0 0 0 0</pose></link>'},
            (
                "<pose relative_to>: bas_link; must name a link, joint, frame or model in model 'auv'; "
                "did you mean base_link?"
            ),
        ),
        (
            {"model": '<joint name="j" type="fixed"><parent>Base_Link</parent><child>base_link</child></joint>'},
            "<parent>: Base_Link; must name a link, joint, frame or model in model 'auv'; did you mean base_link?",
        ),
        (
            {"model": '<model name="arm"><link name="wrist"/></model><frame name="f" attached_to="arm::wrst"/>'},
            (
                "<frame attached_to>: arm::wrst; must name a link, joint, frame or model in model 'auv'; "
                "did you mean arm::wrist?"
            ),
        ),
        (
            {"model": '<joint name="j" type="revolut"><parent>world</parent><child>base_link</child></joint>'},
            "did you mean revolute?",
        ),
        ({"link": '<sensor name="s" type="magnetometr"/>'}, "or another type of SDF; did you mean magnetometer?"),
        ({"link": '<sensor name="s" type="caemra"/>'}, "or another type of SDF; did you mean camera?"),
        (
            {"link": '<sensor name="s" type="imu"><navsense:part>stim30</navsense:part></sensor>'},
            "did you mean stim300",
        ),
        (
            {
                "link": '<clock name="autopilot"/><sensor name="s" type="imu"><clock>autopilt</clock></sensor>',
            },
            "did you mean autopilot? its model has autopilot",
        ),
        (
            {
                "link": '<sensor name="s" type="altimeter"><altimeter><vertical_position>'
                '<noise type="gausian"/></vertical_position></altimeter></sensor>'
            },
            "did you mean gaussian",
        ),
    ],
)
def test_misspelt_names_have_a_suggestion(list_problems: ListProblems, parts: dict[str, str], error: str) -> None:
    text = make_world(**parts).replace("<sdf ", '<sdf xmlns:navsense="https://navsense.org/sdf" ')
    assert any(error in line for line in list_problems(text)), list_problems(text)


def test_names_without_a_similar_one_have_no_suggestion(list_problems: ListProblems) -> None:
    text = make_world(model='<link name="arm"><pose relative_to="camera">0 0 0 0 0 0</pose></link>')
    (line,) = list_problems(text)
    assert line.endswith("must name a link, joint, frame or model in model 'auv'")
