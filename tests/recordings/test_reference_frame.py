"""Frames of the UUV Simulator's DVL: messages have that of the link, `/tf_static` that which the plug-in names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rosbags.highlevel import AnyReader

import navsense as ns
from navsense.core.pose import rotate

ROBOT = Path(__file__).resolve().parents[1] / "worlds" / "robots" / "uuv.urdf"


def record_dive(folder: Path, frame: str, ned: str) -> tuple[Path, list[str]]:
    """Record the documented robot with a reference frame; return the recording and the warnings about the frame."""
    text = ROBOT.read_text(encoding="utf-8")
    for tag, value in (("static_reference_frame", frame), ("enable_local_ned_frame", ned)):
        head, _, rest = text.partition(f"<{tag}>")
        assert rest
        text = f"{head}<{tag}>{value}{rest[rest.index('</') :]}"
    (folder / "auv.urdf").write_text(text, encoding="utf-8")
    (folder / "sea.sdf").write_text(
        "<sdf version='1.9'><world name='sea'><include><uri>auv.urdf</uri><pose>0 0 5 0 0 0</pose></include>"
        "<model name='bed'><static>1</static><link name='l'><collision name='c'><geometry><plane/></geometry>"
        "</collision></link></model></world></sdf>",
        encoding="utf-8",
    )
    world = ns.load(folder / "sea.sdf")
    ns.record(world, folder / "dive.mcap", 1.0)
    return folder / "dive.mcap", [note.reason for note in world.notes if "static_reference_frame" in note.what]


def read(path: Path, topic: str) -> list[Any]:
    """Return the messages on a topic, decoded by rosbags."""
    with AnyReader([path]) as reader:
        lines = [line for line in reader.connections if line.topic == topic]
        return [reader.deserialize(raw, line.msgtype) for line, _, raw in reader.messages(lines)]


@pytest.mark.requirement("DVU-7", "DVU-6")
@pytest.mark.parametrize("ned", ["true", "false"])
@pytest.mark.parametrize("frame", ["world", "world_ned", "robot_link", "elsewhere"])
def test_frame_of_the_messages_is_that_of_the_link(tmp_path: Path, frame: str, ned: str) -> None:
    """Only an unknown frame gives a warning. The axes of `world_ned` are north, east and down: y, x and -z."""
    path, warnings = record_dive(tmp_path, frame, ned)
    for topic in ("/dvl/dvl", "/dvl/dvl_twist"):
        frames = {message.header.frame_id for message in read(path, topic)}
        assert frames == {"robot_link_ned" if ned == "true" else "robot_link"}
    assert (len(warnings) == 1) == (frame == "elsewhere")
    (static,) = read(path, "/tf_static")
    found = [one for one in static.transforms if one.child_frame_id == "world_ned"]
    assert len(found) == (frame == "world_ned")
    for one in found:
        turn = one.transform.rotation
        assert one.header.frame_id == "world"
        assert rotate((turn.w, turn.x, turn.y, turn.z), (1.0, 2.0, 3.0)) == pytest.approx(
            (2.0, 1.0, -3.0), rel=1e-12, abs=0.0
        )
