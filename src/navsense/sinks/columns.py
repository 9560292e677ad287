"""What the messages of one topic say, batch by batch: times, stamps and arrays that wait until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from navsense.errors import SinkError
from navsense.messages.cdr import layout, stamps_in
from navsense.messages.repack import Definitions, Shape, Shapes
from navsense.messages.schemas import DEFINITIONS
from navsense.sinks.definitions import is_known
from navsense.sinks.sources import OLD, Item, Line
from navsense.typing import AnyArray, ByteArray, IntArray

Arrays = dict[str, AnyArray]

STAMPS = ("header.stamp", "clock")
"""Where a message may have its stamp."""

OURS = "navsense_msgs/msg/"
"""What the types begin with that are made of a sensor's outputs."""


@dataclass(eq=False)
class Batch:
    """Messages of one topic: when they arrived, the instants that they are about, their stamps (ns), what they say."""

    log: IntArray
    time: IntArray
    stamp: IntArray
    arrays: Arrays

    def cut(self, count: int) -> tuple[Batch, Batch]:
        """Return the first `count` rows, and the rest."""
        first = {name: array[:count] for name, array in self.arrays.items()}
        rest = {name: array[count:] for name, array in self.arrays.items()}
        return (
            Batch(self.log[:count], self.time[:count], self.stamp[:count], first),
            Batch(self.log[count:], self.time[count:], self.stamp[count:], rest),
        )


def joined(parts: Sequence[Batch]) -> Batch:
    """Return batches that follow one another as one."""
    if len(parts) == 1:
        return parts[0]
    named = {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays}
    log, time, stamp = (np.concatenate([getattr(part, name) for part in parts]) for name in ("log", "time", "stamp"))
    return Batch(log, time, stamp, named)


class Decoder:
    """Messages of one topic as rows of numbers by path."""

    def __init__(self, line: Line) -> None:
        """Take the type's definition. Raises `SinkError` where it is missing."""
        self._line = line
        self._definitions: Mapping[str, str] = DEFINITIONS
        parsed = line.defined().definitions
        self.is_known = line.is_ros and (is_known(line.type, parsed) or line.type.startswith(OURS))
        if line.type.startswith(OURS):
            self._definitions = {kind: _text(kind, parsed) for kind in parsed}
        self._shapes = Shapes(line.type, parsed, old=line.encoding == OLD)

    def blocks(self, messages: Sequence[bytes]) -> list[tuple[Shape, IntArray, AnyArray]]:
        """Return messages by shape: which they are, and their rows. Raises `SinkError` for one not of its type."""
        try:
            return [(shape, places, self._rows(shape, raw)) for shape, places, raw in self._shapes.blocks(messages)]
        except ValueError as error:
            raise SinkError(f"topic {self._line.topic} of {self._line.type}: {error}") from error

    def _rows(self, shape: Shape, raw: ByteArray) -> AnyArray:
        """Return messages (n, size) of one shape as rows of numbers."""
        if self._line.encoding == OLD:
            raw = shape.packed(raw)
        made = layout(self._line.type, shape.texts, shape.lengths, self._definitions)
        own = np.ascontiguousarray(raw[:, : len(made.template)])
        if own.shape[1] != len(made.template):
            raise ValueError("a message is of another size than its definition")
        rows: AnyArray = own.view(made.dtype())[:, 0]
        return rows


def _text(kind: str, parsed: Definitions) -> str:
    """Return the lines of a parsed definition."""
    if kind in DEFINITIONS:
        return DEFINITIONS[kind]
    lines = []
    for one in parsed[kind]:
        count = "" if one.length is None else "[]" if one.length < 0 else f"[{one.length}]"
        lines.append(f"{one.type.replace('/msg/', '/')}{count} {one.name}")
    return "\n".join(lines)


@dataclass(eq=False)
class Column:
    """One topic that is read: what makes arrays of its rows, and the batches that wait."""

    line: Line
    arrays: Callable[[AnyArray], Arrays]
    parts: list[Batch] = field(default_factory=list)
    count: int = 0
    is_silent: bool = False

    def __post_init__(self) -> None:
        """Make the decoder."""
        self._decoder = Decoder(self.line)

    @property
    def is_known(self) -> bool:
        """Tell whether the type is defined as it is known."""
        return self._decoder.is_known

    def take(self, items: Sequence[Item]) -> None:
        """Take messages; where they say nothing that is read, it is silent from then on.

        Raises `SinkError` for one that is not of its type, or has arrays of another shape.
        """
        if self.is_silent:
            return
        blocks = self._decoder.blocks([item.data for item in items])
        stamp, found = np.zeros(len(items), dtype=np.int64), Arrays()
        for _, places, rows in blocks:
            path = next((path for path in STAMPS if f"{path}.sec" in (rows.dtype.names or ())), None)
            stamp[places] = stamps_in(rows, path) if path else 0
            for name, array in self.arrays(rows).items():
                whole = found.setdefault(name, _blank(array, len(items)))
                if whole.shape[1:] != array.shape[1:]:
                    raise SinkError(f"topic {self.line.topic}: {name} changes its shape within the recording")
                whole[places] = array
        self.is_silent = not found
        log, time = (np.array([getattr(item, name) for item in items], dtype=np.int64) for name in ("log", "time"))
        self.parts.append(Batch(log, time, stamp, found))
        self.count += len(items)

    def pop(self, count: int) -> Batch:
        """Return the first `count` rows that wait; there must be as many."""
        whole = joined(self.parts)
        first, rest = whole.cut(count)
        self.count -= count
        self.parts = [rest]
        return first

    def padded(self, count: int) -> Batch:
        """Return the first `count` rows; NaN for those that never came."""
        have = min(count, self.count)
        batch = self.pop(have)
        if have == count:
            return batch
        more = {name: _longer(array, count) for name, array in batch.arrays.items()}
        log, time, stamp = (_longer(part, count) for part in (batch.log, batch.time, batch.stamp))
        return Batch(log, time, stamp, more)


def _blank(array: AnyArray, count: int) -> AnyArray:
    """Return rows like those of an array: NaN, of whole numbers 0."""
    return np.full((count, *array.shape[1:]), np.nan if array.dtype.kind == "f" else 0, dtype=array.dtype)


def _longer(array: AnyArray, count: int) -> AnyArray:
    """Return an array with blank rows behind its own."""
    out = _blank(array, count)
    out[: array.shape[0]] = array
    return out
