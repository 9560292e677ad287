"""The links of a model of Gazebo Classic, with their poses and centres of mass, as gzserver answers a request.

    ~/request     Request     id = 1, request = 2, data = 3: "entity_info" of a name, or "entity_list"
    ~/response    Response    id = 1, request = 2, response = 3, type = 4, serialized_data = 5
    Model         name = 1, pose = 4, link = 6, model = 12
    Model_V       models = 2
    Link          name = 2, inertial = 8, pose = 9
    Inertial      pose = 2

Sources: these `.proto` files of Gazebo 11, and `World.cc`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from navsense.core.pose import Pose
from navsense.core.typing import Vector
from navsense.messages.gz import LENGTH_DELIMITED, VARINT, encode_int, encode_nested
from navsense.recordings.gazebo_poses import iterate_fields
from navsense.streams.gazebo_classic.node import ClassicNode, ClassicSubscription, ClassicTopic
from navsense.streams.gazebo_classic.packet import PACKAGE, decode_nested_list, decode_pose, format_frame

ANSWER_TIMEOUT = 3.0
"""Longest time (s) to wait for the answer to a request."""

REPEAT_PERIOD = 1.0
"""Time (s) after which a request is repeated."""


@dataclass(frozen=True)
class LinkInfo:
    """A link: its pose in the world when Gazebo answered, and its centre of mass (m)."""

    name: str
    pose: Pose
    center: Vector


class EntityRequests:
    """Asks the server of one world."""

    def __init__(self, node: ClassicNode, world: str) -> None:
        """Advertise the topic of requests and subscribe to that of the answers."""
        self._node, self._number = node, os.getpid() << 8 & 0x7FFFFF00
        self._answers: dict[int, tuple[str, bytes]] = {}
        self._has_answer = threading.Event()
        self._topic = ClassicTopic(f"/gazebo/{world}/request", f"{PACKAGE}.Request")
        self._subscription = ClassicSubscription(
            f"/gazebo/{world}/response", f"{PACKAGE}.Response", self._receive, lambda _: None
        )
        node.subscribe(self._subscription)
        node.advertise([self._topic])

    def _receive(self, data: bytes) -> None:
        """Store an answer. Others may ask too. Raises `ValueError`."""
        fields = dict(iterate_fields(data))
        number, kind, body = (fields.get(tag) for tag in (1 << 3 | VARINT, _make_tag(4), _make_tag(5)))
        if number == self._number and isinstance(kind, bytes):
            self._answers[self._number] = (kind.decode(errors="replace"), body if isinstance(body, bytes) else b"")
            self._has_answer.set()

    def ask(self, request: str, name: str = "") -> tuple[str, bytes] | None:
        """Return the message type and the content of the answer, None without one."""
        self._number += 1
        self._has_answer.clear()
        body = encode_int(1, self._number, required=True) + encode_nested(2, request.encode())
        frame = format_frame(body + encode_nested(3, name.encode()))
        end, repeat = time.monotonic() + ANSWER_TIMEOUT, 0.0
        while (now := time.monotonic()) < end and not self._node.lost:
            is_connected = self._topic.subscribers and self._subscription.is_connected
            if is_connected and now > repeat:
                self._node.publish(self._topic, [frame])
                repeat = now + REPEAT_PERIOD
            if self._has_answer.wait(0.02):
                return self._answers.pop(self._number)
        return None

    def find_links(self, model: str) -> dict[str, LinkInfo] | None:
        """Return the links of a model and of its nested models by name; None if Gazebo does not answer.

        There are none if Gazebo does not have the model. Raises `ValueError` for an invalid answer.
        """
        answer = self.ask("entity_info", model)
        if answer is None:
            return None
        kind, body = answer
        return {link.name: link for link in _list_links(body, Pose())} if kind == f"{PACKAGE}.Model" else {}

    def list_models(self) -> list[str]:
        """Return the names of all models. Raises `ValueError` for an invalid answer."""
        answer = self.ask("entity_list")
        if answer is None or answer[0] != f"{PACKAGE}.Model_V":
            return []
        return [_get_text(dict(iterate_fields(model)).get(_make_tag(1))) for model in decode_nested_list(answer[1], 2)]


def _make_tag(number: int) -> int:
    """Return the tag of a field with a message or a text."""
    return number << 3 | LENGTH_DELIMITED


def _get_text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _list_links(model: bytes, parent: Pose) -> Iterator[LinkInfo]:
    """Yield the links of a model. Raises `ValueError`."""
    fields = list(iterate_fields(model))
    poses = [value for tag, value in fields if tag == _make_tag(4) and isinstance(value, bytes)]
    pose = parent @ decode_pose(poses[0]) if poses else parent
    for tag, value in fields:
        if tag == _make_tag(12) and isinstance(value, bytes):
            yield from _list_links(value, pose)
        elif tag == _make_tag(6) and isinstance(value, bytes):
            link = dict(iterate_fields(value))
            inertial, own_pose = link.get(_make_tag(8)), link.get(_make_tag(9))
            center = dict(iterate_fields(inertial)).get(_make_tag(2)) if isinstance(inertial, bytes) else None
            yield LinkInfo(
                _get_text(link.get(_make_tag(2))),
                pose @ decode_pose(own_pose) if isinstance(own_pose, bytes) else pose,
                decode_pose(center).position if isinstance(center, bytes) else Pose().position,
            )
