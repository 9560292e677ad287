"""Velocity commands that arrive during a run, as states at a fixed step of the clock.

A frame stands still at its start pose until the first command. Each command holds until the next one, by the law of
`motion.velocity_commands`, with the drive of the model. A command takes effect at the next step, so its latency is at
most `STEP`. Stamps of commands are not read. A jump of the velocity becomes a ramp of one step.

The clock is /clock if a node publishes it, else the time of the system.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from navsense.core.errors import MotionError
from navsense.core.pose import Pose, rotate
from navsense.core.typing import Vector
from navsense.motion.driven import LIMITS, State
from navsense.motion.velocity_commands import COMMAND_COLUMNS, USED_COMMANDS, CommandFollower
from navsense.streams.ros_messages import Twist
from navsense.streams.subscriber import DrivenFrame

STEP = 20_000_000
"""ns between two states."""

POLL = 0.002
"""Time (s) between two looks at the clock."""

LARGEST_JUMP = 10 * 10**9
"""ns by which the clock can be ahead of the last step."""


class CommandStates:
    """Sends the states of a frame that follows velocity commands, in a thread of its own.

    get_time: returns the time of the clock (ns), None before the first one.
    """

    def __init__(
        self,
        frame: DrivenFrame,
        *,
        get_time: Callable[[], int | None],
        put: Callable[[int, State], None],
        fail: Callable[[str], None],
    ) -> None:
        """Start at the time of the clock."""
        root = frame.context.root
        driven = root if frame.drive is None else frame.drive.pose
        self._follower = CommandFollower(frame.drive, frame.start @ driven)
        self._link = driven.inverse() @ root
        self._drive = frame.drive
        self._get_time, self._put, self._fail = get_time, put, fail
        self._command: tuple[float, ...] = (0.0,) * 6
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="navsense-ros1-commands", daemon=True)
        self._thread.start()

    def follow(self, twist: Twist) -> str:
        """Follow a command from the next step on. Returns what the drive ignores, "" for nothing.

        Raises `ValueError` for invalid numbers.
        """
        command = (*twist.linear, *twist.angular)
        largest = LIMITS["velocity"][0]
        if not all(abs(value) <= largest for value in command):
            raise ValueError(f"must be finite, and at most {largest:g} in magnitude")
        self._command = command
        used = USED_COMMANDS[self._drive.kind] if self._drive else COMMAND_COLUMNS[1:]
        pairs = zip(COMMAND_COLUMNS[1:], command, strict=True)
        ignored = [name for name, value in pairs if value and name not in used]
        if not ignored or self._drive is None:
            return ""
        return f"{', '.join(ignored)} of the commands: {self._drive.name} follows {', '.join(used)}"

    def close(self) -> None:
        """End the thread."""
        self._ending.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        last: int | None = None
        try:
            while not self._ending.wait(POLL):
                now = self._get_time()
                if now is None:
                    continue
                if last is None:
                    last = now
                    self._put(now, self._make_state())
                if not last - STEP <= now <= last + LARGEST_JUMP:
                    self._fail(f"the clock jumped from {last * 1e-9:.9g} to {now * 1e-9:.9g} s")
                    return
                while now >= last + STEP:
                    self._follower.advance(STEP * 1e-9, self._command)
                    last += STEP
                    self._put(last, self._make_state())
        except MotionError as error:
            self._fail(str(error))

    def _make_state(self) -> State:
        """Return the state of the link, which is fixed in the frame that follows the commands."""
        x, y, z, *rotation = self._follower.pose.tolist()
        w, i, j, k = rotation
        pose = Pose((x, y, z), (w, i, j, k)) @ self._link
        vx, vy, vz, wx, wy, wz = self._follower.twist.tolist()
        arm = np.cross((wx, wy, wz), self._link.position)
        moved: Vector = (vx + float(arm[0]), vy + float(arm[1]), vz + float(arm[2]))
        to_link = self._link.inverse().rotation
        return State(pose, rotate(to_link, moved), angular_velocity=rotate(to_link, (wx, wy, wz)), frame="body")
