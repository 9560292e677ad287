"""What the messages of one topic say, batch by batch: times, stamps and arrays that wait until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from navsense.errors import SinkError
from navsense.messages import generic
from navsense.messages.cdr import layout, stamps_in
from navsense.messages.repack import MOST, Definitions, Shape, Shapes
from navsense.messages.schemas import DEFINITIONS
from navsense.sinks.definitions import find_definitions
from navsense.sinks.sources import OLD, Line, Lot
from navsense.sinks.walked import Sized, by_size
from navsense.typing import AnyArray, ByteArray, IntArray

Arrays = dict[str, AnyArray]

STAMPS = ("header.stamp", "clock")
"""Where a message may have its stamp."""

OURS = generic.PACKAGE
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
        parsed = line.defined().definitions
        known = find_definitions(line.type, parsed)
        self._definitions: Mapping[str, str] = known or DEFINITIONS
        self.is_known = line.is_ros and (known is not None or line.type.startswith(OURS))
        if line.type.startswith(OURS):
            self._definitions = {kind: _text(kind, parsed) for kind in parsed}
        self._shapes = Shapes(line.type, parsed, old=line.encoding == OLD)
        self._layouts: dict[Shape, tuple[int, np.dtype[np.void]]] = {}

    def blocks(self, messages: Sequence[bytes]) -> list[tuple[Shape, IntArray, AnyArray]]:
        """Return messages by shape: which they are, and their rows. Raises `SinkError` for one not of its type."""
        return self.rows(by_size(messages))

    def rows(self, sized: Sequence[Sized]) -> list[tuple[Shape, IntArray, AnyArray]]:
        """Return messages that come by size as `blocks` does."""
        try:
            found = [block for places, raw in sized for block in self._shapes.parted(places, raw)]
            return [(shape, places, self._rows(shape, raw)) for shape, places, raw in found]
        except ValueError as error:
            raise SinkError(f"topic {self._line.topic} of {self._line.type}: {error}") from error

    def _rows(self, shape: Shape, raw: ByteArray) -> AnyArray:
        """Return messages (n, size) of one shape as rows of numbers."""
        if self._line.encoding == OLD:
            raw = shape.packed(raw)
        size, kind = self._layout(shape)
        own = raw[:, :size]
        if own.shape[1] != size:
            raise ValueError("a message is of another size than its definition")
        rows: AnyArray = own.view(kind)[:, 0]
        return rows

    def _layout(self, shape: Shape) -> tuple[int, np.dtype[np.void]]:
        """Return the bytes of a message of a shape, and the type of such rows."""
        found = self._layouts.get(shape)
        if found is None:
            made = layout(self._line.type, shape.texts, shape.lengths, self._definitions)
            found = len(made.template), made.dtype()
            if len(self._layouts) == MOST:
                self._layouts.clear()
            self._layouts[shape] = found
        return found


def reads(line: Line) -> bool:
    """Tell whether the messages of a topic can be read: their type is defined, and as it is known."""
    try:
        return Decoder(line).is_known
    except SinkError:
        return False


def is_alike(one: Line, other: Line) -> bool:
    """Tell whether the messages of two topics are read alike."""
    if one is other or one.kind == other.kind:
        return True
    if (one.type, one.encoding) != (other.type, other.encoding):
        return False
    try:
        return one.defined().definitions == other.defined().definitions
    except SinkError:
        return False


def _filled(lot: Lot) -> Lot:
    """Return the messages that have any bytes."""
    if all(rows.shape[1] for _, rows in lot.sized):
        return lot
    has = np.zeros(lot.log.size, dtype=np.bool_)
    sized = [(places, rows) for places, rows in lot.sized if rows.shape[1]]
    for places, _ in sized:
        has[places] = True
    to = np.cumsum(has) - 1
    return Lot(lot.line, lot.log[has], lot.time[has], [(to[places], rows) for places, rows in sized])


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
    empty: int = 0
    _axes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the decoder."""
        self._decoder = Decoder(self.line)

    @property
    def is_known(self) -> bool:
        """Tell whether the type is defined as it is known."""
        return self._decoder.is_known

    def take(self, lot: Lot) -> None:
        """Take messages; where they say nothing that is read, it is silent from then on. Empty ones are left out.

        Raises `SinkError` for one that is not of its type, or has arrays of another shape.
        """
        if self.is_silent:
            return
        given = lot.log.size
        lot = _filled(lot)
        count = lot.log.size
        self.empty += given - count
        if not count:
            return
        stamp, found = np.zeros(count, dtype=np.int64), Arrays()
        for _, places, rows in self._decoder.rows(lot.sized):
            path = next((path for path in STAMPS if f"{path}.sec" in (rows.dtype.names or ())), None)
            stamp[places] = stamps_in(rows, path) if path else 0
            for name, array in self.arrays(rows).items():
                if self._axes.setdefault(name, array.shape[1:]) != array.shape[1:]:
                    raise SinkError(f"topic {self.line.topic}: {name} changes its shape within the recording")
                if places.size == count:
                    # Not the rows themselves, which hold all the bytes of all messages.
                    found[name] = array if array.flags.owndata else array.copy()
                else:
                    found.setdefault(name, blank(array, count))[places] = array
        self.is_silent = not found
        self.parts.append(Batch(lot.log, lot.time, stamp, found))
        self.count += count

    def pop(self, count: int) -> Batch:
        """Return the first `count` rows that wait; there must be as many."""
        whole = joined(self.parts)
        first, rest = whole.cut(count)
        self.count -= count
        self.parts = [rest]
        return first

    def waiting(self) -> Batch:
        """Return all rows that wait; there must have been any."""
        self.parts = [joined(self.parts)]
        return self.parts[0]


def blank(array: AnyArray, count: int) -> AnyArray:
    """Return rows like those of an array: NaN, of whole numbers 0."""
    return np.full((count, *array.shape[1:]), np.nan if array.dtype.kind == "f" else 0, dtype=array.dtype)
