"""PD0, the binary format of Teledyne RD Instruments' ADCPs and DVLs: ensembles of little-endian data types.

    7F 7F | bytes without checksum | spare | n types | n offsets | types ... | 2 reserved | checksum: sum mod 65536

An ensemble is one row: the pings that an ADCP averages, or one ping of a DVL. `decode` returns SI arrays by the names
of the tables below (rad, m, m/s, s, K, Pa, shares of 1); `encode` is its inverse. Each byte of a known or unknown type
is in an array, so `encode` returns the same bytes.

| array | sign, limits |
|---|---|
| `velocity` (n, cells, 4), `bottom_velocity`, `layer_velocity` (n, 4) | m/s, water or bottom relative to instrument |
| `bottom_range` (n, 4) | m along the instrument's axis, 24 bits of centimetres, 0 in the file for NaN |
| `ensemble_number` (n,) | 24 bits |

In beam coordinates, velocities are positive towards the transducer; else the fourth is the error velocity. A velocity
beyond 32.767 m/s, or NaN, is -32768 in the file. Other numbers are clipped to the range of their bytes. `encode` writes
each type up to the last field with an array; fields without an array are 0. Bytes after the fields of the tables are in
arrays such as `rest_0080`. The bytes of an unknown type are in an array such as `type_3001`.

Sources: Teledyne RD Instruments, Pathfinder DVL Guide (April 2018), tables 32 to 40; Workhorse Commands and Output Data
Format; lengths and signs were compared with real files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from navsense.core.errors import RecordingError
from navsense.core.typing import AnyArray, BoolArray, ByteArray, FloatArray, IntArray

START_MARK = b"\x7f\x7f"
"""First bytes of an ensemble."""

BAD_VELOCITY = -32768
"""Count of an unknown velocity."""

MAX_ENSEMBLE_BYTES = 65535
"""Largest ensemble without its checksum."""

CENTIDEGREE = math.radians(0.01)
CENTI, MILLI, DECI = 0.01, 0.001, 0.1
ECHO_COUNT_DB = 0.45
"""dB per count of echo intensity (Workhorse)."""


class Pd0Field(NamedTuple):
    """A field of a data type: name, offset, dtype, SI per count, shape, count of an unknown value, SI of count 0."""

    name: str
    offset: int
    dtype: str = "u1"
    scale: float = 1.0
    shape: tuple[int, ...] = ()
    unknown: int | None = None
    zero: float = 0.0

    @property
    def end(self) -> int:
        """Offset of the first byte after the field."""
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
        Pd0Field("min_correlation", 17, "u1", 1.0 / 255.0),
        Pd0Field("code_repetitions", 18),
        Pd0Field("min_percent_good", 19, "u1", CENTI),
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
        Pd0Field("ensemble_number_low", 2, "<u2"),
        Pd0Field("rtc", 4, "u1", shape=(7,)),
        Pd0Field("ensemble_number_high", 11),
        Pd0Field("bit_result", 12, "<u2"),
        Pd0Field("sound_speed", 14, "<u2"),
        Pd0Field("depth", 16, "<u2", DECI),
        Pd0Field("heading", 18, "<u2", CENTIDEGREE),
        Pd0Field("pitch", 20, "<i2", CENTIDEGREE),
        Pd0Field("roll", 22, "<i2", CENTIDEGREE),
        Pd0Field("salinity", 24, "<u2"),
        Pd0Field("temperature", 26, "<i2", CENTI, zero=273.15),
        Pd0Field("pre_ping_wait", 28, "u1", shape=(3,)),
        Pd0Field("heading_stddev", 31, "u1", math.radians(1.0)),
        Pd0Field("pitch_stddev", 32, "u1", math.radians(0.1)),
        Pd0Field("roll_stddev", 33, "u1", math.radians(0.1)),
        Pd0Field("adc_channels", 34, "u1", shape=(8,)),
        Pd0Field("error_status", 42, "<u4"),
        Pd0Field("variable_spare", 46, "<u2"),
        Pd0Field("pressure", 48, "<i4", 10.0),
        Pd0Field("pressure_variance", 52, "<u4", 10.0),
        Pd0Field("pressure_spare", 56),
        Pd0Field("rtc_y2k", 57, "u1", shape=(8,)),
    ),
    "0600": (
        Pd0Field("bottom_pings", 2, "<u2"),
        Pd0Field("bottom_delay", 4, "<u2"),
        Pd0Field("bottom_min_correlation", 6, "u1", 1.0 / 255.0),
        Pd0Field("bottom_min_amplitude", 7),
        Pd0Field("bottom_min_percent_good", 8, "u1", CENTI),
        Pd0Field("bottom_mode", 9),
        Pd0Field("bottom_error_velocity_limit", 10, "<u2", MILLI),
        Pd0Field("bottom_spare", 12, "u1", shape=FOUR_BEAMS),
        Pd0Field("bottom_range_low", 16, "<u2", shape=FOUR_BEAMS),
        Pd0Field("bottom_velocity", 24, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
        Pd0Field("bottom_correlation", 32, "u1", 1.0 / 255.0, FOUR_BEAMS),
        Pd0Field("bottom_evaluation_amplitude", 36, "u1", 1.0, FOUR_BEAMS),
        Pd0Field("bottom_percent_good", 40, "u1", CENTI, FOUR_BEAMS),
        Pd0Field("layer_min_size", 44, "<u2", DECI),
        Pd0Field("layer_near", 46, "<u2", DECI),
        Pd0Field("layer_far", 48, "<u2", DECI),
        Pd0Field("layer_velocity", 50, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
        Pd0Field("layer_correlation", 58, "u1", 1.0 / 255.0, FOUR_BEAMS),
        Pd0Field("layer_rssi", 62, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
        Pd0Field("layer_percent_good", 66, "u1", CENTI, FOUR_BEAMS),
        Pd0Field("bottom_maximum_range", 70, "<u2", DECI),
        Pd0Field("bottom_rssi", 72, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
        Pd0Field("bottom_gain", 76),
        Pd0Field("bottom_range_high", 77, "u1", shape=FOUR_BEAMS),
    ),
}
"""Number of a data type with fixed fields -> its fields: fixed leader, variable leader, bottom track."""

PROFILE_FIELDS: Mapping[str, Pd0Field] = {
    "0100": Pd0Field("velocity", 2, "<i2", MILLI, FOUR_BEAMS, BAD_VELOCITY),
    "0200": Pd0Field("correlation", 2, "u1", 1.0 / 255.0, FOUR_BEAMS),
    "0300": Pd0Field("echo", 2, "u1", ECHO_COUNT_DB, FOUR_BEAMS),
    "0400": Pd0Field("percent_good", 2, "u1", CENTI, FOUR_BEAMS),
    "0500": Pd0Field("status", 2, "u1", 1.0, FOUR_BEAMS),
}
"""Number of a data type with four numbers per cell -> its field."""

KNOWN_TYPES = ("0000", "0080", *PROFILE_FIELDS, "0600")
"""Numbers of the types in the tables, in the order of instruments."""

SPLIT_ARRAYS: Mapping[str, tuple[str, str, int, float]] = {
    "ensemble_number": ("ensemble_number_low", "ensemble_number_high", 16, 1.0),
    "bottom_range": ("bottom_range_low", "bottom_range_high", 16, CENTI),
}
"""Array with bits in two fields -> low field, high field, number of low bits, SI per count."""

COUNT_ARRAYS = ("ensemble_number", "reserved")
"""Arrays that determine the number of ensembles."""

SPLIT_FIELDS = frozenset(field for low, high, *_ in SPLIT_ARRAYS.values() for field in (low, high))
"""Fields that are parts of these arrays."""


class Pd0DataType(NamedTuple):
    """A data type of a layout: key (number, with `_2` for a second one), offset, fields, number of other bytes."""

    key: str
    offset: int
    fields: tuple[Pd0Field, ...]
    rest: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return max((field.end for field in self.fields), default=2) + self.rest


@dataclass(frozen=True, eq=False)
class EnsembleBlock:
    """Consecutive ensembles with the same data types: SI arrays (n, ...) by name, keys of the types in order.

    >>> log = ns.devices.pd0.encode({"ensemble_number": [1, 2], "bottom_velocity": np.zeros((2, 4))})
    >>> block = ns.devices.pd0.decode(log).blocks[0]
    >>> len(block), "bottom_velocity" in block.arrays
    (2, True)
    """

    arrays: Mapping[str, AnyArray]
    types: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of ensembles."""
        return int(self.arrays["reserved"].shape[0])


@dataclass(frozen=True, eq=False)
class DecodedPd0:
    """The ensembles in a log: a block for each change of their types; (offset, size) of skipped bytes.

    >>> log = ns.devices.pd0.encode({"ensemble_number": [1], "bottom_velocity": np.zeros((1, 4))})
    >>> ns.devices.pd0.decode(b"noise" + log).skipped
    ((0, 5),)
    """

    blocks: tuple[EnsembleBlock, ...]
    skipped: tuple[tuple[int, int], ...]


def _list_fields(key: str, cells: int) -> tuple[Pd0Field, ...]:
    """Return the fields in the tables of a data type; a profile has one field of `cells` cells."""
    if key not in PROFILE_FIELDS:
        return FIELD_TABLES.get(key, ())
    field = PROFILE_FIELDS[key]
    return (field._replace(shape=(cells, *field.shape)),) if cells > 0 else ()


def _parse_type(key: str, offset: int, size: int) -> Pd0DataType:
    """Return a data type with this number of bytes."""
    profile = PROFILE_FIELDS.get(key)
    cells = (size - profile.offset) // (profile.end - profile.offset) if profile else 0
    fields = tuple(field for field in _list_fields(key, cells) if field.end <= size)
    return Pd0DataType(key, offset, fields, size - max((field.end for field in fields), default=2))


def _format_rest_name(data_type: Pd0DataType) -> str:
    """Return the name of the array for bytes of a type that are in no field."""
    return f"rest_{data_type.key}" if data_type.key in KNOWN_TYPES else f"type_{data_type.key}"


@lru_cache(maxsize=64)
def _make_dtype(layout: tuple[Pd0DataType, ...]) -> np.dtype[np.void]:
    """Return the dtype of an ensemble."""
    columns: list[tuple[str, str, tuple[int, ...], int]] = [
        ("start", "S2", (), 0),
        ("bytes", "<u2", (), 2),
        ("spare", "u1", (), 4),
        ("count", "u1", (), 5),
        ("offsets", "<u2", (len(layout),), 6),
    ]
    end = 6 + 2 * len(layout)
    for data_type in layout:
        columns.append((f"id_{data_type.key}", "<u2", (), data_type.offset))
        columns += [
            (field.name, field.dtype, field.shape, data_type.offset + field.offset) for field in data_type.fields
        ]
        end = data_type.offset + data_type.size
        if data_type.rest:
            columns.append((_format_rest_name(data_type), "u1", (data_type.rest,), end - data_type.rest))
    columns += [("reserved", "u1", (2,), end), ("checksum", "<u2", (), end + 2)]
    names, dtypes, shapes, offsets = zip(*columns, strict=True)
    formats = [(dtype, shape) if shape else dtype for dtype, shape in zip(dtypes, shapes, strict=True)]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": end + 4})


def _compute_checksums(rows: ByteArray) -> AnyArray:
    """Return the checksums of ensembles (rows of bytes that end before the checksum)."""
    checksums: AnyArray = rows.sum(axis=1, dtype=np.uint32) & 0xFFFF
    return checksums


def _to_counts(field: Pd0Field, values: AnyArray) -> AnyArray:
    """Return SI values as counts of a field.

    A value that does not fit becomes the count of an unknown value. In a field without such a count it is clipped.
    """
    limits = np.iinfo(field.dtype)
    if values.dtype.kind in "iub" and field.scale == 1.0 and not field.zero:
        return np.clip(values, limits.min, limits.max)
    counts: FloatArray = np.rint((values - field.zero) / field.scale)
    if field.unknown is None:
        return np.nan_to_num(np.clip(counts, limits.min, limits.max), nan=0.0)
    return np.where(np.abs(counts) <= limits.max, counts, field.unknown)


def _from_counts(field: Pd0Field, counts: AnyArray) -> AnyArray:
    """Return the counts of a field in SI units, as integers without a scale."""
    if field.scale == 1.0 and not field.zero:
        return counts.copy()
    values: FloatArray = counts * field.scale + field.zero
    if field.unknown is not None:
        values[counts == field.unknown] = math.nan
    return values


def _split_arrays(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays, with two fields for those of `SPLIT_ARRAYS`: 0 for NaN, clipped."""
    split = {name: array for name, array in arrays.items() if name not in SPLIT_ARRAYS}
    for name in SPLIT_ARRAYS.keys() & arrays.keys():
        low, high, bits, scale = SPLIT_ARRAYS[name]
        counts = np.nan_to_num(np.rint(np.asarray(arrays[name], dtype=np.float64) / scale), nan=0.0)
        limit = 1 << (bits + 8)
        integers = (counts % limit if name == "ensemble_number" else np.clip(counts, 0, limit - 1)).astype(np.int64)
        split[low], split[high] = integers & ((1 << bits) - 1), integers >> bits
    return split


def _join_arrays(rows: AnyArray) -> dict[str, AnyArray]:
    """Return the arrays of `SPLIT_ARRAYS`; a range of 0 is NaN."""
    arrays: dict[str, AnyArray] = {}
    for name, (low, high, bits, scale) in SPLIT_ARRAYS.items():
        if rows.dtype.names is None or low not in rows.dtype.names:
            continue
        counts = rows[low].astype(np.int64)
        if high in rows.dtype.names:
            counts += rows[high].astype(np.int64) << bits
        arrays[name] = counts if scale == 1.0 else np.where(counts == 0, math.nan, counts * scale)
    return arrays


def _make_type(key: str, arrays: Mapping[str, AnyArray], offset: int) -> Pd0DataType:
    """Return the data type for the given arrays: up to the last field with an array, and the bytes after it."""
    profile = PROFILE_FIELDS.get(key)
    table = _list_fields(key, arrays[profile.name].shape[-2] if profile and profile.name in arrays else 0)
    last = max((number for number, field in enumerate(table, 1) if field.name in arrays), default=0)
    data_type = Pd0DataType(key, offset, table[:last], 0)
    rest = arrays.get(_format_rest_name(data_type))
    return data_type if rest is None else data_type._replace(rest=int(rest.shape[-1]))


def _list_types(arrays: Mapping[str, AnyArray]) -> tuple[str, ...]:
    """Return the keys of the types with a given array, in the order of instruments."""
    names = {key: {f"rest_{key}", *(field.name for field in _list_fields(key, 1))} for key in KNOWN_TYPES}
    keys = [key for key in KNOWN_TYPES if names[key] & arrays.keys()]
    return (*keys, *sorted(name.removeprefix("type_") for name in arrays if name.startswith("type_")))


def _count_ensembles(arrays: Mapping[str, ArrayLike]) -> int:
    """Return the number of ensembles. Raises `RecordingError` without an array that determines it."""
    for name in COUNT_ARRAYS:
        if name in arrays and np.ndim(arrays[name]):
            return int(np.shape(arrays[name])[0])
    allowed = f"must include {' or '.join(COUNT_ARRAYS)} with one row per ensemble"
    remedy = "add ensemble_number=np.arange(1, n + 1) for n ensembles"
    raise RecordingError("arrays of ensembles", ", ".join(arrays) or "none", allowed=allowed, remedy=remedy)


def encode(arrays: Mapping[str, ArrayLike], types: Sequence[str] | None = None) -> bytes:
    """Return the ensembles of SI arrays (n, ...) by the names of the tables. A scalar applies to all rows.

    `types` are the keys of the data types in order; the default is all types with an array. `ensemble_number` (n,) or
    `reserved` (n, 2), which `decode` returns, is required. Raises `RecordingError` without them, and for an ensemble
    with too many bytes for its header.

    >>> log = ns.devices.pd0.encode({"ensemble_number": [1, 2], "bottom_velocity": [[0.5, -0.1, 0.0, 0.0]] * 2})
    >>> log[:2].hex()
    '7f7f'
    """
    fields = _split_arrays({name: np.asarray(array) for name, array in arrays.items()})
    count = _count_ensembles(arrays)
    keys = _list_types(fields) if types is None else tuple(types)
    layout, offset = [], 6 + 2 * len(keys)
    for key in keys:
        layout.append(_make_type(key, fields, offset))
        offset += layout[-1].size
    if offset + 2 > MAX_ENSEMBLE_BYTES:
        allowed = f"must be at most {MAX_ENSEMBLE_BYTES}"
        raise RecordingError("bytes of an ensemble", offset + 2, allowed=allowed, remedy="record fewer cells")
    dtype = _make_dtype(tuple(layout))
    raw = np.zeros((count, dtype.itemsize), dtype=np.uint8)
    rows = raw.view(dtype)[:, 0]
    rows["start"], rows["bytes"], rows["count"] = START_MARK, offset + 2, len(layout)
    rows["offsets"] = [data_type.offset for data_type in layout]
    for data_type in layout:
        rows[f"id_{data_type.key}"] = int(data_type.key[:4], 16)
        for field in data_type.fields:
            if field.name in fields:
                rows[field.name] = _to_counts(field, fields[field.name])
        if data_type.rest:
            rows[_format_rest_name(data_type)] = fields[_format_rest_name(data_type)]
    for name in ("spare", "reserved"):
        if name in fields:
            rows[name] = fields[name]
    rows["checksum"] = _compute_checksums(raw[:, :-2])
    return raw.tobytes()


def _parse_header(data: ByteArray, offset: int) -> tuple[int, tuple[int, ...]] | None:
    """Return the size of the ensemble at an offset and the offsets of its types; None without a valid header."""
    header = data[offset : offset + 6]
    if header.size < 6 or header[0] != 0x7F or header[1] != 0x7F:
        return None
    size, count = int(header[2]) + 256 * int(header[3]), int(header[5])
    if not count or offset + size + 2 > data.size or 6 + 2 * count > size - 2:
        return None
    offsets = tuple(data[offset + 6 : offset + 6 + 2 * count].view("<u2").tolist())
    increases = all(first + 2 <= second for first, second in zip(offsets, (*offsets[1:], size - 2), strict=True))
    return (size + 2, offsets) if increases and offsets[0] >= 6 + 2 * count else None


def _count_run(data: ByteArray, offset: int, size: int, offsets: tuple[int, ...]) -> int:
    """Return the number of consecutive valid ensembles with the same types from an offset."""
    header = np.arange(6 + 2 * len(offsets))
    constant = np.concatenate([header, *([type_offset, type_offset + 1] for type_offset in offsets)])
    first, total, step = data[offset + constant], 0, 8
    while True:
        start = offset + total * size
        count = min((data.size - start) // size, step)
        rows = data[start : start + count * size].reshape(count, size)
        is_valid: BoolArray = (rows[:, constant] == first).all(axis=1)
        is_valid &= _compute_checksums(rows[:, :-2]) == np.ascontiguousarray(rows[:, -2:]).view("<u2")[:, 0]
        run = count if is_valid.all() else int(np.argmin(is_valid))
        total += run
        if run < step:
            return total
        step = min(2 * step, 1 << 14)


def _parse_layout(row: ByteArray, offsets: tuple[int, ...]) -> tuple[Pd0DataType, ...]:
    """Return the data types of an ensemble."""
    counts: dict[str, int] = {}
    layout = []
    for offset, end in zip(offsets, (*offsets[1:], row.size - 4), strict=True):
        number = f"{int(row[offset]) + 256 * int(row[offset + 1]):04x}"
        counts[number] = counts.get(number, 0) + 1
        key = number if counts[number] == 1 else f"{number}_{counts[number]}"
        layout.append(_parse_type(key, offset, end - offset))
    return tuple(layout)


def _extract_arrays(rows: AnyArray, layout: tuple[Pd0DataType, ...]) -> dict[str, AnyArray]:
    """Return the SI arrays of ensembles with one layout."""
    arrays: dict[str, AnyArray] = {"spare": rows["spare"].copy(), "reserved": rows["reserved"].copy()}
    for data_type in layout:
        fields = (field for field in data_type.fields if field.name not in SPLIT_FIELDS)
        arrays |= {field.name: _from_counts(field, rows[field.name]) for field in fields}
        if data_type.rest:
            arrays[_format_rest_name(data_type)] = rows[_format_rest_name(data_type)].copy()
    return arrays | _join_arrays(rows)


def _find_runs(data: ByteArray) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield (offset, count, size, offsets of the types) of consecutive valid ensembles with the same types."""
    raw, offset = data.tobytes(), 0
    while (offset := raw.find(START_MARK, offset)) >= 0:
        header = _parse_header(data, offset)
        count = _count_run(data, offset, *header) if header else 0
        if header and count:
            yield offset, count, *header
            offset += count * header[0]
        else:
            offset += 1


def decode(data: bytes) -> DecodedPd0:
    """Return the ensembles in bytes. Bytes outside valid ensembles are skipped.

    Raises `RecordingError` for bytes without an ensemble.

    >>> log = ns.devices.pd0.encode({"ensemble_number": [1, 2], "bottom_velocity": np.zeros((2, 4))})
    >>> (block,) = ns.devices.pd0.decode(log).blocks
    >>> block.arrays["ensemble_number"], block.arrays["bottom_velocity"].shape
    (array([1, 2]), (2, 4))
    """
    buffer = np.frombuffer(data, dtype=np.uint8)
    blocks, skipped, end = [], [], 0
    for start, count, size, offsets in _find_runs(buffer):
        if start > end:
            skipped.append((end, start - end))
        end = start + count * size
        rows = buffer[start:end].reshape(count, size)
        layout = _parse_layout(rows[0], offsets)
        arrays = _extract_arrays(rows.view(_make_dtype(layout))[:, 0], layout)
        blocks.append(EnsembleBlock(arrays, tuple(data_type.key for data_type in layout)))
    if end < buffer.size:
        skipped.append((end, buffer.size - end))
    if not blocks and data:
        allowed = "must contain an ensemble that begins with 7F 7F and ends with its checksum"
        raise RecordingError("bytes without a PD0 ensemble", len(data), allowed=allowed)
    return DecodedPd0(tuple(blocks), tuple(skipped))


def encode_rtc(stamp: IntArray) -> dict[str, AnyArray]:
    """Return the clock (RTC) of the variable leader for stamps (n,) ns: `rtc` (n, 7) and `rtc_y2k` (n, 8), to 10 ms.

    >>> arrays = ns.devices.pd0.encode_rtc(np.array([1767225600_000000000]))
    >>> arrays["rtc"]
    array([[26,  1,  1,  0,  0,  0,  0]])
    """
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
    """Return the stamps (n,) ns of the clock. Years of two digits are 1970 to 2069.

    Raises `RecordingError` for ensembles without a clock: it is in the variable leader, which a log may lack.

    >>> arrays = ns.devices.pd0.encode_rtc(np.array([1767225600_000000000]))
    >>> ns.devices.pd0.decode_stamps(arrays)
    array([1767225600000000000])
    """
    if "rtc" not in arrays and "rtc_y2k" not in arrays:
        allowed = "must include rtc or rtc_y2k of the variable leader (type 0080)"
        remedy = "log the variable leader, or use another source of time"
        raise RecordingError("arrays of ensembles", "no clock", allowed=allowed, remedy=remedy)
    if "rtc" not in arrays or ("rtc_y2k" in arrays and arrays["rtc_y2k"].any()):
        fields = arrays["rtc_y2k"].astype(np.int64)
        year, fields = 100 * fields[:, 0] + fields[:, 1], fields[:, 2:]
    else:
        fields = arrays["rtc"].astype(np.int64)
        year, fields = np.where(fields[:, 0] < 70, 2000, 1900) + fields[:, 0], fields[:, 1:]
    months = ((year - 1970) * 12 + fields[:, 0] - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + fields[:, 1] - 1
    seconds = ((days * 24 + fields[:, 2]) * 60 + fields[:, 3]) * 60 + fields[:, 4]
    stamp: IntArray = (seconds * 100 + fields[:, 5]) * 10_000_000
    return stamp
