"""PD0, the binary format of Teledyne RD Instruments' ADCPs and DVLs: ensembles of little-endian data types.

    7F 7F | bytes without checksum | spare | n types | n offsets | types ... | 2 reserved | sum of all before, mod 65536

An ensemble is one row. `decode` gives SI arrays by the names of the tables below (rad, m, m/s, s, K, Pa, shares of 1),
`encode` takes them back; every byte of a known or unknown type is in some array, so that the bytes come back the same.

| array | sign, limits |
|---|---|
| `velocity` (n, cells, 4), `bottom_velocity`, `layer_velocity` (n, 4) | m/s of water or bottom past the instrument |
| `bottom_range` (n, 4) | m along the instrument's axis, 24 bits of centimetres, NaN (0) where there is none |
| `number` (n,) | 24 bits |

In beam coordinates velocities are positive towards the transducer; in others the fourth is the error velocity. One
beyond 32.767 m/s, or NaN, is -32768: never wrapped. Other numbers end at what their bytes hold. Types are as
long as the last of their fields that is given, and a field that is not given is 0; what is longer than the tables is in
`rest_0080` and so on, and a type that is not in the tables is bytes, `type_3001`.

Sources: Teledyne RD Instruments, Pathfinder DVL Guide (April 2018), tables 32 to 40; Workhorse Commands and Output Data
Format; lengths and signs held against real files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from navsense.errors import RecordingError
from navsense.typing import AnyArray, BoolArray, ByteArray, FloatArray, IntArray

START_MARK = b"\x7f\x7f"
"""Of an ensemble."""

BAD_VELOCITY = -32768
"""A velocity that is not known."""

MAX_ENSEMBLE_BYTES = 65535
"""Of an ensemble without its checksum."""

CENTIDEGREE = math.radians(0.01)
CENTI, MILLI, DECI = 0.01, 0.001, 0.1
ECHO_COUNT_DB = 0.45
"""dB of a count of echo intensity (Workhorse)."""


class Pd0Field(NamedTuple):
    """Numbers in one data type: name, offset, element, SI of a count, shape, count that means unknown, SI of 0."""

    name: str
    offset: int
    dtype: str = "u1"
    scale: float = 1.0
    shape: tuple[int, ...] = ()
    unknown: int | None = None
    zero: float = 0.0

    @property
    def end(self) -> int:
        """Return the offset of the first byte behind it."""
        return self.offset + np.dtype(self.dtype).itemsize * math.prod(self.shape)


FOUR_BEAMS = (4,)

FIELD_TABLES: Mapping[str, tuple[Pd0Field, ...]] = {
    "0000": (
        Pd0Field("firmware_version", 2),
        Pd0Field("firmware_revision", 3),
        Pd0Field("system", 4, "<u2"),
        Pd0Field("simulated", 6),
        Pd0Field("lag_length", 7),
        Pd0Field("beams", 8),
        Pd0Field("cells", 9),
        Pd0Field("pings", 10, "<u2"),
        Pd0Field("cell_size", 12, "<u2", CENTI),
        Pd0Field("blank", 14, "<u2", CENTI),
        Pd0Field("profiling_mode", 16),
        Pd0Field("least_correlation", 17, "u1", 1.0 / 255.0),
        Pd0Field("code_repetitions", 18),
        Pd0Field("least_percent_good", 19, "u1", CENTI),
        Pd0Field("error_velocity_limit", 20, "<u2", MILLI),
        Pd0Field("ping_spacing", 22, "u1", shape=(3,)),
        Pd0Field("coordinates", 25),
        Pd0Field("heading_alignment", 26, "<i2", CENTIDEGREE),
        Pd0Field("heading_bias", 28, "<i2", CENTIDEGREE),
        Pd0Field("sensor_source", 30),
        Pd0Field("sensors_available", 31),
        Pd0Field("first_cell", 32, "<u2", CENTI),
        Pd0Field("transmit_length", 34, "<u2", CENTI),
        Pd0Field("reference_cells", 36, "u1", shape=(2,)),
        Pd0Field("false_target", 38),
        Pd0Field("transmit_spare", 39),
        Pd0Field("lag_distance", 40, "<u2", CENTI),
        Pd0Field("cpu_serial", 42, "u1", shape=(8,)),
        Pd0Field("bandwidth", 50, "<u2"),
        Pd0Field("power", 52),
        Pd0Field("power_spare", 53),
        Pd0Field("serial", 54, "<u4"),
        Pd0Field("beam_angle", 58, "u1", math.radians(1.0)),
    ),
    "0080": (
        Pd0Field("number_low", 2, "<u2"),
        Pd0Field("rtc", 4, "u1", shape=(7,)),
        Pd0Field("number_high", 11),
        Pd0Field("self_test", 12, "<u2"),
        Pd0Field("sound_speed", 14, "<u2", zero=0.0),
        Pd0Field("depth", 16, "<u2", DECI),
        Pd0Field("heading", 18, "<u2", CENTIDEGREE),
        Pd0Field("pitch", 20, "<i2", CENTIDEGREE),
        Pd0Field("roll", 22, "<i2", CENTIDEGREE),
        Pd0Field("salinity", 24, "<u2"),
        Pd0Field("temperature", 26, "<i2", CENTI, zero=273.15),
        Pd0Field("ping_wait", 28, "u1", shape=(3,)),
        Pd0Field("heading_stddev", 31, "u1", math.radians(1.0)),
        Pd0Field("pitch_stddev", 32, "u1", math.radians(0.1)),
        Pd0Field("roll_stddev", 33, "u1", math.radians(0.1)),
        Pd0Field("converters", 34, "u1", shape=(8,)),
        Pd0Field("errors", 42, "<u4"),
        Pd0Field("variable_spare", 46, "<u2"),
        Pd0Field("pressure", 48, "<i4", 10.0),
        Pd0Field("pressure_variance", 52, "<u4", 10.0),
        Pd0Field("pressure_spare", 56),
        Pd0Field("rtc_y2k", 57, "u1", shape=(8,)),
    ),
    "0600": (
        Pd0Field("bottom_pings", 2, "<u2"),
        Pd0Field("bottom_delay", 4, "<u2"),
        Pd0Field("bottom_least_correlation", 6, "u1", 1.0 / 255.0),
        Pd0Field("bottom_least_amplitude", 7),
        Pd0Field("bottom_least_percent_good", 8, "u1", CENTI),
        Pd0Field("bottom_mode", 9),
        Pd0Field("bottom_error_velocity_limit", 10, "<u2", MILLI),
        Pd0Field("bottom_spare", 12, "u1", shape=FOUR_BEAMS),
        Pd0Field("bottom_range_low", 16, "<u2", shape=FOUR_BEAMS),
        Pd0Field("bottom_velocity", 24, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
        Pd0Field("bottom_correlation", 32, "u1", 1.0 / 255.0, FOUR_BEAMS),
        Pd0Field("bottom_amplitude", 36, "u1", 1.0, FOUR_BEAMS),
        Pd0Field("bottom_percent_good", 40, "u1", CENTI, FOUR_BEAMS),
        Pd0Field("layer_least_size", 44, "<u2", DECI),
        Pd0Field("layer_near", 46, "<u2", DECI),
        Pd0Field("layer_far", 48, "<u2", DECI),
        Pd0Field("layer_velocity", 50, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
        Pd0Field("layer_correlation", 58, "u1", 1.0 / 255.0, FOUR_BEAMS),
        Pd0Field("layer_echo", 62, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
        Pd0Field("layer_percent_good", 66, "u1", CENTI, FOUR_BEAMS),
        Pd0Field("bottom_maximum_range", 70, "<u2", DECI),
        Pd0Field("bottom_echo", 72, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
        Pd0Field("bottom_gain", 76),
        Pd0Field("bottom_range_high", 77, "u1", shape=FOUR_BEAMS),
    ),
}
"""Data types of fixed fields by their numbers: fixed leader, variable leader, bottom track."""

PROFILE_FIELDS: Mapping[str, Pd0Field] = {
    "0100": Pd0Field("velocity", 2, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
    "0200": Pd0Field("correlation", 2, "u1", 1.0 / 255.0, FOUR_BEAMS),
    "0300": Pd0Field("echo", 2, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
    "0400": Pd0Field("percent_good", 2, "u1", CENTI, FOUR_BEAMS),
    "0500": Pd0Field("status", 2, "u1", 1.0, FOUR_BEAMS),
}
"""Data types of four numbers a cell."""

KNOWN_TYPES = ("0000", "0080", *PROFILE_FIELDS, "0600")
"""The types of the tables, in the order in which instruments write them."""

SPLIT_ARRAYS: Mapping[str, tuple[str, str, int, float]] = {
    "number": ("number_low", "number_high", 16, 1.0),
    "bottom_range": ("bottom_range_low", "bottom_range_high", 16, CENTI),
}
"""Arrays whose bits lie in two places: fields of the low and the high ones, how many are low, SI of a count."""

COUNT_ARRAYS = ("number", "reserved")
"""Arrays of which there is one row an ensemble."""

SPLIT_FIELDS = frozenset(field for low, high, *_ in SPLIT_ARRAYS.values() for field in (low, high))
"""Fields that are parts of such arrays."""


class Pd0DataType(NamedTuple):
    """One data type of a layout: key (its number, `_2` behind it where it is there twice), offset, fields, bytes."""

    key: str
    offset: int
    fields: tuple[Pd0Field, ...]
    rest: int

    @property
    def size(self) -> int:
        """Return its bytes."""
        return max((field.end for field in self.fields), default=2) + self.rest


@dataclass(frozen=True, eq=False)
class EnsembleBlock:
    """Ensembles that follow one another and have the same data types: SI arrays (n, ...) by name, keys in order."""

    arrays: Mapping[str, AnyArray]
    types: tuple[str, ...]

    def __len__(self) -> int:
        """Return how many there are."""
        return int(self.arrays["reserved"].shape[0])


@dataclass(frozen=True, eq=False)
class DecodedPd0:
    """What bytes hold: ensembles, a part for each change of their types; (offset, bytes) of what is none."""

    blocks: tuple[EnsembleBlock, ...]
    skipped: tuple[tuple[int, int], ...]


def _make_profile_field(field: Pd0Field, size: int) -> tuple[Pd0Field, ...]:
    """Return the field of a type of four numbers a cell, of this many bytes."""
    cells = (size - field.offset) // (field.end - field.offset)
    return (field._replace(shape=(cells, *field.shape)),) if cells > 0 else ()


def _make_type(key: str, offset: int, size: int) -> Pd0DataType:
    """Return a data type of this many bytes."""
    if key in PROFILE_FIELDS:
        fields = _make_profile_field(PROFILE_FIELDS[key], size)
    else:
        fields = tuple(field for field in FIELD_TABLES.get(key, ()) if field.end <= size)
    return Pd0DataType(key, offset, fields, size - max((field.end for field in fields), default=2))


def _format_rest_name(kind: Pd0DataType) -> str:
    """Return the name of the bytes of a type that are in no field."""
    return f"rest_{kind.key}" if kind.key in KNOWN_TYPES else f"type_{kind.key}"


@lru_cache(maxsize=64)
def _make_dtype(layout: tuple[Pd0DataType, ...]) -> np.dtype[np.void]:
    """Return one ensemble of a layout as a row."""
    places: list[tuple[str, str, tuple[int, ...], int]] = [
        ("start", "S2", (), 0),
        ("bytes", "<u2", (), 2),
        ("spare", "u1", (), 4),
        ("count", "u1", (), 5),
        ("offsets", "<u2", (len(layout),), 6),
    ]
    end = 6 + 2 * len(layout)
    for kind in layout:
        places.append((f"id_{kind.key}", "<u2", (), kind.offset))
        places += [(field.name, field.dtype, field.shape, kind.offset + field.offset) for field in kind.fields]
        end = kind.offset + kind.size
        if kind.rest:
            places.append((_format_rest_name(kind), "u1", (kind.rest,), end - kind.rest))
    places += [("reserved", "u1", (2,), end), ("checksum", "<u2", (), end + 2)]
    names, forms, shapes, offsets = zip(*places, strict=True)
    formats = [(form, shape) if shape else form for form, shape in zip(forms, shapes, strict=True)]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": end + 4})


def _compute_checksums(rows: ByteArray) -> AnyArray:
    """Return the checksums of ensembles, one a row of bytes without its own."""
    found: AnyArray = rows.sum(axis=1, dtype=np.uint32) & 0xFFFF
    return found


def _to_counts(field: Pd0Field, values: AnyArray) -> AnyArray:
    """Return SI values as counts of a field: what does not fit is unknown where the field has that, else the end."""
    limits = np.iinfo(field.dtype)
    if values.dtype.kind in "iub" and field.scale == 1.0 and not field.zero:
        return np.clip(values, limits.min, limits.max)
    counts: FloatArray = np.rint((values - field.zero) / field.scale)
    if field.unknown is None:
        return np.nan_to_num(np.clip(counts, limits.min, limits.max), nan=0.0)
    return np.where(np.abs(counts) <= limits.max, counts, field.unknown)


def _from_counts(field: Pd0Field, counts: AnyArray) -> AnyArray:
    """Return the counts of a field in SI units, whole numbers as they are."""
    if field.scale == 1.0 and not field.zero:
        return counts.copy()
    values: FloatArray = counts * field.scale + field.zero
    if field.unknown is not None:
        values[counts == field.unknown] = math.nan
    return values


def _split_arrays(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays, those whose bits lie in two places as two; 0 stands for NaN, the end for what is beyond."""
    parts = {name: array for name, array in arrays.items() if name not in SPLIT_ARRAYS}
    for name in SPLIT_ARRAYS.keys() & arrays.keys():
        low, high, bits, scale = SPLIT_ARRAYS[name]
        counts = np.nan_to_num(np.rint(np.asarray(arrays[name], dtype=np.float64) / scale), nan=0.0)
        whole = np.clip(counts, 0, (1 << (bits + 8)) - 1) if name != "number" else counts % (1 << (bits + 8))
        as_int = whole.astype(np.int64)
        parts[low], parts[high] = as_int & ((1 << bits) - 1), as_int >> bits
    return parts


def _join_arrays(rows: AnyArray) -> dict[str, AnyArray]:
    """Return the arrays whose bits lie in two places; a range of 0 is none."""
    found: dict[str, AnyArray] = {}
    for name, (low, high, bits, scale) in SPLIT_ARRAYS.items():
        if rows.dtype.names is None or low not in rows.dtype.names:
            continue
        counts = rows[low].astype(np.int64)
        if high in rows.dtype.names:
            counts += rows[high].astype(np.int64) << bits
        found[name] = counts if scale == 1.0 else np.where(counts == 0, math.nan, counts * scale)
    return found


def _make_written_type(key: str, parts: Mapping[str, AnyArray], offset: int) -> Pd0DataType:
    """Return the data type that holds what is given: up to the last of its fields, with the bytes behind it."""
    if key in PROFILE_FIELDS:
        name = PROFILE_FIELDS[key].name
        cells = np.asarray(parts[name]).shape[-2] if name in parts else 0
        fields: tuple[Pd0Field, ...] = (PROFILE_FIELDS[key]._replace(shape=(cells, 4)),) if cells else ()
    else:
        table = FIELD_TABLES.get(key, ())
        last = max((number for number, field in enumerate(table, 1) if field.name in parts), default=0)
        fields = table[:last]
    kind = Pd0DataType(key, offset, fields, 0)
    rest = parts.get(_format_rest_name(kind))
    return kind._replace(rest=0 if rest is None else int(np.asarray(rest).shape[-1]))


def _list_given_types(parts: Mapping[str, AnyArray]) -> tuple[str, ...]:
    """Return the keys of the types that something is given of, in the order in which instruments write them."""
    known = {
        key: {field.name for field in FIELD_TABLES.get(key, (PROFILE_FIELDS.get(key),)) if field} for key in KNOWN_TYPES
    }
    keys = [key for key, names in known.items() if names & parts.keys() or f"rest_{key}" in parts]
    return (*keys, *sorted(name.removeprefix("type_") for name in parts if name.startswith("type_")))


def _count_ensembles(arrays: Mapping[str, AnyArray]) -> int:
    """Return how many ensembles there are. Raises `RecordingError` where nothing tells it."""
    for name in COUNT_ARRAYS:
        if name in arrays and np.ndim(arrays[name]):
            return int(np.shape(arrays[name])[0])
    allowed = f"must be told by {' or '.join(COUNT_ARRAYS)}, one row each"
    remedy = "give number, np.arange(1, n + 1) for n ensembles"
    raise RecordingError("how many ensembles there are", ", ".join(arrays) or "nothing", allowed=allowed, remedy=remedy)


def encode(arrays: Mapping[str, AnyArray], types: Sequence[str] | None = None) -> bytes:
    """Return ensembles of SI arrays (n, ...) by the names of the tables; one without an axis is the same in each row.

    `types` are the keys of the data types in order; without it those that something is given of. `number` (n,) or what
    `decode` gives of any ensemble, `reserved` (n, 2), must be given: they tell how many there are.
    Raises `RecordingError`
    where they do not, and for an ensemble that is longer than its head can say.
    """
    parts = _split_arrays({name: np.asarray(array) for name, array in arrays.items()})
    count = _count_ensembles(arrays)
    keys = _list_given_types(parts) if types is None else tuple(types)
    layout, offset = [], 6 + 2 * len(keys)
    for key in keys:
        layout.append(_make_written_type(key, parts, offset))
        offset += layout[-1].size
    if offset + 2 > MAX_ENSEMBLE_BYTES:
        raise RecordingError(
            "bytes of an ensemble", offset + 2, allowed=f"PD0 holds {MAX_ENSEMBLE_BYTES}: record fewer cells"
        )
    dtype = _make_dtype(tuple(layout))
    raw = np.zeros((count, dtype.itemsize), dtype=np.uint8)
    rows = raw.view(dtype)[:, 0]
    rows["start"], rows["bytes"], rows["count"] = START_MARK, offset + 2, len(layout)
    rows["offsets"] = [kind.offset for kind in layout]
    for kind in layout:
        rows[f"id_{kind.key}"] = int(kind.key[:4], 16)
        for field in kind.fields:
            if field.name in parts:
                rows[field.name] = _to_counts(field, parts[field.name])
        if kind.rest:
            rows[_format_rest_name(kind)] = parts[_format_rest_name(kind)]
    for name in ("spare", "reserved"):
        if name in parts:
            rows[name] = parts[name]
    rows["checksum"] = _compute_checksums(raw[:, :-2])
    return raw.tobytes()


def _parse_header(data: ByteArray, offset: int) -> tuple[int, tuple[int, ...]] | None:
    """Return the bytes of the ensemble that begins here and the offsets of its types; None where none can."""
    head = data[offset : offset + 6]
    if head.size < 6 or head[0] != 0x7F or head[1] != 0x7F:
        return None
    size, count = int(head[2]) + 256 * int(head[3]), int(head[5])
    if not count or offset + size + 2 > data.size or 6 + 2 * count > size - 2:
        return None
    offsets = tuple(data[offset + 6 : offset + 6 + 2 * count].view("<u2").tolist())
    rises = all(one + 2 <= following for one, following in zip(offsets, (*offsets[1:], size - 2), strict=True))
    return (size + 2, offsets) if rises and offsets[0] >= 6 + 2 * count else None


def _count_run(data: ByteArray, offset: int, size: int, offsets: tuple[int, ...]) -> int:
    """Return how many good ensembles of the same types begin here, one behind the other."""
    head = np.arange(6 + 2 * len(offsets))
    marks = np.concatenate([head, *([offset, offset + 1] for offset in offsets)])
    first, found, step = data[offset + marks], 0, 8
    while True:
        start = offset + found * size
        some = min((data.size - start) // size, step)
        rows = data[start : start + some * size].reshape(some, size)
        good: BoolArray = (rows[:, marks] == first).all(axis=1)
        good &= _compute_checksums(rows[:, :-2]) == np.ascontiguousarray(rows[:, -2:]).view("<u2")[:, 0]
        run = some if good.all() else int(np.argmin(good))
        found += run
        if run < step:
            return found
        step = min(2 * step, 1 << 14)


def _parse_layout(row: ByteArray, offsets: tuple[int, ...]) -> tuple[Pd0DataType, ...]:
    """Return the types of an ensemble's bytes."""
    seen: dict[str, int] = {}
    layout = []
    for offset, end in zip(offsets, (*offsets[1:], row.size - 4), strict=True):
        number = f"{int(row[offset]) + 256 * int(row[offset + 1]):04x}"
        seen[number] = seen.get(number, 0) + 1
        key = number if seen[number] == 1 else f"{number}_{seen[number]}"
        layout.append(_make_type(key, offset, end - offset))
    return tuple(layout)


def _extract_arrays(rows: AnyArray, layout: tuple[Pd0DataType, ...]) -> dict[str, AnyArray]:
    """Return the SI arrays of rows of one layout."""
    arrays: dict[str, AnyArray] = {"spare": rows["spare"].copy(), "reserved": rows["reserved"].copy()}
    for kind in layout:
        fields = (field for field in kind.fields if field.name not in SPLIT_FIELDS)
        arrays |= {field.name: _from_counts(field, rows[field.name]) for field in fields}
        if kind.rest:
            arrays[_format_rest_name(kind)] = rows[_format_rest_name(kind)].copy()
    return arrays | _join_arrays(rows)


def _find_runs(data: ByteArray) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield (offset, ensembles, bytes of one, offsets of its types) of good ensembles of the same types."""
    raw, at = data.tobytes(), 0
    while (at := raw.find(START_MARK, at)) >= 0:
        head = _parse_header(data, at)
        count = _count_run(data, at, *head) if head else 0
        if head and count:
            yield at, count, *head
            at += count * head[0]
        else:
            at += 1


def decode(data: bytes) -> DecodedPd0:
    """Return the ensembles of bytes: what does not begin, add up or end as one is skipped, up to the next that does.

    Raises `RecordingError` where bytes hold none.
    """
    buffer = np.frombuffer(data, dtype=np.uint8)
    parts, skipped, at = [], [], 0
    for start, count, size, offsets in _find_runs(buffer):
        if start > at:
            skipped.append((at, start - at))
        at = start + count * size
        block = buffer[start:at].reshape(count, size)
        layout = _parse_layout(block[0], offsets)
        parts.append(
            EnsembleBlock(
                _extract_arrays(block.view(_make_dtype(layout))[:, 0], layout), tuple(kind.key for kind in layout)
            )
        )
    if at < buffer.size:
        skipped.append((at, buffer.size - at))
    if not parts and data:
        allowed = "must hold an ensemble that begins with 7F 7F and ends with the sum of its bytes"
        raise RecordingError("no PD0 ensemble in bytes", len(data), allowed=allowed)
    return DecodedPd0(tuple(parts), tuple(skipped))


def encode_rtc(stamp: IntArray) -> dict[str, AnyArray]:
    """Return the clock of the variable leader at stamps (n,) ns: `encode_rtc` (n, 7) and `rtc_y2k` (n, 8), to 10 ms."""
    centi = np.floor_divide(stamp + 5_000_000, 10_000_000)
    day, rest = np.divmod(centi, 8_640_000)
    date = day.astype("datetime64[D]")
    year = date.astype("datetime64[Y]").astype(np.int64) + 1970
    month = date.astype("datetime64[M]").astype(np.int64) % 12 + 1
    first = date.astype("datetime64[M]").astype("datetime64[D]")
    hour, rest = np.divmod(rest, 360_000)
    minute, rest = np.divmod(rest, 6000)
    parts = (month, (date - first).astype(np.int64) + 1, hour, minute, *np.divmod(rest, 100))
    short = np.stack((year % 100, *parts), axis=-1)
    return {"rtc": short, "rtc_y2k": np.concatenate((year[:, None] // 100, short), axis=1)}


def decode_stamps(arrays: Mapping[str, AnyArray]) -> IntArray:
    """Return what the clock showed (n,) ns. A clock of two digits is of the years 1970 to 2069.

    Raises `RecordingError` for ensembles without one: it is in the variable leader, which a log may leave out.
    """
    if "rtc" not in arrays and "rtc_y2k" not in arrays:
        allowed = "must hold rtc or rtc_y2k, which the variable leader (type 0080) has"
        remedy = "log the variable leader, or take the time from elsewhere"
        raise RecordingError("clock of ensembles", "none", allowed=allowed, remedy=remedy)
    if "rtc" not in arrays or ("rtc_y2k" in arrays and arrays["rtc_y2k"].any()):
        fields = arrays["rtc_y2k"].astype(np.int64)
        year, fields = 100 * fields[:, 0] + fields[:, 1], fields[:, 2:]
    else:
        fields = arrays["rtc"].astype(np.int64)
        year, fields = np.where(fields[:, 0] < 70, 2000, 1900) + fields[:, 0], fields[:, 1:]
    months = ((year - 1970) * 12 + fields[:, 0] - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + fields[:, 1] - 1
    seconds = ((days * 24 + fields[:, 2]) * 60 + fields[:, 3]) * 60 + fields[:, 4]
    found: IntArray = (seconds * 100 + fields[:, 5]) * 10_000_000
    return found
