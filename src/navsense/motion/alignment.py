"""Alignment of logs of one recording: all begin at t = 0 with the log that starts last.

A recording can have the poses of a robot on one topic and the positions of its joints on another one. Each log starts
with its own first message. They are shifted, so that the time of a message in the recording is one time in the run. The
stamps count; the log times if one of the logs has no stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from navsense.core.errors import MotionError, Where
from navsense.motion.base import LogStart, Motion
from navsense.motion.joints import JointTrack, JointTracks
from navsense.motion.replay import Replay
from navsense.motion.trajectory import Trajectory
from navsense.motion.velocity_commands import VelocityCommands

NANOSECONDS = 1e9

Log = TypeVar("Log", Replay, VelocityCommands, JointTrack)


def align_logs(motions: Mapping[str, Motion], tracks: JointTracks) -> tuple[dict[str, Motion], dict[str, JointTrack]]:
    """Return motions and tracks of joints in which logs of one recording have the same t = 0.

    A motion or track that is shifted has a note. Others are returned unchanged.

    Raises `MotionError` if a log ends before another one of its recording begins.
    """
    logs = [log for log in motions.values() if isinstance(log, Replay | VelocityCommands)]
    sources = [log.source for log in (*logs, *tracks.values())]
    starts = {source.start for source in sources if source is not None and source.start is not None}
    last = {path: _find_last([start for start in starts if start.path == path]) for path in {s.path for s in starts}}
    aligned = {
        name: _align(log, last, _cut_replay)
        if isinstance(log, Replay)
        else _align(log, last, _cut_commands)
        if isinstance(log, VelocityCommands)
        else log
        for name, log in motions.items()
    }
    return aligned, {name: _align(track, last, _shift_track) for name, track in tracks.items()}


def _find_last(starts: list[LogStart]) -> LogStart:
    """Return the start of the log that starts last."""
    has_stamps = all(start.stamp is not None for start in starts)
    last = max(starts, key=lambda start: start.get_time(has_stamps=has_stamps))
    return last if has_stamps else replace(last, stamp=None)


def _align(log: Log, last: Mapping[str, LogStart], shift: Callable[[Log, float], Log]) -> Log:
    """Return the log without its part before the last start in its recording."""
    source = log.source
    if source is None or source.start is None:
        return log
    start, end = source.start, last[source.start.path]
    has_stamps = end.stamp is not None
    delay = end.get_time(has_stamps=has_stamps) - start.get_time(has_stamps=has_stamps)
    if delay == 0:
        return log
    seconds = delay / NANOSECONDS
    if seconds >= log.end:
        what = f"{source.series} of {source.file}"
        allowed = f"ends before another log of the recording begins, {seconds:g} s after it; must overlap"
        raise MotionError(what, allowed=allowed, where=Where(start.path), remedy="use recordings of one drive")
    stamp = None if start.stamp is None else start.stamp + delay
    moved = LogStart(start.path, stamp, start.log_time + delay)
    note = f"{source.series}: the first {seconds:g} s are before t = 0, where the last log of {source.file} begins"
    shifted = shift(log, seconds)
    return replace(shifted, source=replace(source, start=moved), notes=(*log.notes, note))


def _cut_replay(replay: Replay, delay: float) -> Replay:
    """Return a replay from `delay` (s) on, by the same polynomials."""
    knots, coefficients = replay.trajectory.knots, replay.trajectory.coefficients
    first = int(np.searchsorted(knots, delay, side="right")) - 1
    coefficients = coefficients[first:].copy()
    row, offset = coefficients[0], delay - knots[first]
    for count in range(row.shape[0] - 1, 0, -1):  # the polynomial of t + offset, by synthetic division
        for power in range(1, count + 1):
            row[power] += offset * row[power - 1]
    times = np.concatenate(([0.0], knots[first + 1 :] - delay))
    return replace(replay, trajectory=Trajectory(times, coefficients))


def _cut_commands(commands: VelocityCommands, delay: float) -> VelocityCommands:
    """Return velocity commands from `delay` (s) on; the row before it holds at t = 0."""
    first = int(np.searchsorted(commands.time, delay, side="right")) - 1
    times = np.concatenate(([0.0], commands.time[first + 1 :] - delay))
    return replace(commands, time=times, commands=commands.commands[first:])


def _shift_track(track: JointTrack, delay: float) -> JointTrack:
    """Return a track whose rows are `delay` (s) earlier."""
    return replace(track, time=track.time - delay)
