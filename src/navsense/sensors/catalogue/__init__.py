"""Real parts by name: the values of their datasheets in SI units, with the source of each value.

    load_part("STIM300").entries["angular_velocity"]["noise_density"].values   -> (4.3633e-05,) * 3  rad/s/sqrt(Hz)

A part is a TOML file of this folder, in the units of its datasheet; `units` converts them. A value that the datasheet
does not print, or whose document is not available, is absent. No value is derived or assumed.

| entry | meaning |
|---|---|
| noise_density | white noise: level per root hertz, or random walk of the integral, as printed |
| noise_rms | standard deviation of a sample under the `condition` |
| bias_instability | level of the flat part of the Allan deviation, as printed: not divided by 0.664 |
| random_walk | driving density of the bias, K of the Allan variance |
| turn_on_bias | `meaning`: 1 sigma, a typical value or a limit |
| scale_factor_error, scale_temperature_coefficient | share of the input, per K |
| misalignment | angle between an axis and its nominal direction |
| cross_axis_sensitivity | share of the input on the other axes |
| g_sensitivity | angular velocity per specific force |
| bias_temperature_coefficient | per K |
| nonlinearity | share of the full scale |
| bandwidth, output_rate | Hz; the highest setting of the part |
| range | see below |
| resolution | one count |
| angle, width | of a beam: from the instrument's axis, full width at half power |
| altitude | minimum and maximum for bottom track |
| long_term_scale, long_term_offset | error of the mean of many pings: share of the velocity, and constant |
| error_velocity_limit | limit above which a solution is rejected |
| layer, least_layer | water-mass layer: near and far boundary, minimum size |
| maximum_velocity | of the vehicle |

`range` is the range of `resolution`, +-, and the widest setting of the part, unless `condition` differs. Of a pressure
it is the lowest and the highest value, of a beam the nearest and the farthest echo along it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from navsense.core import inputs
from navsense.core.errors import SensorError, UnknownNameError, Where
from navsense.core.names import suggest_name
from navsense.sensors.catalogue.units import (
    ENTRY_NAMES,
    RANGE_ENTRIES,
    REQUIRED_VALUES,
    SECTION_UNITS,
    UNITS,
    UNLISTED_PROPERTIES,
    count_axes,
    get_si_unit,
)

SENSOR_TYPES = ("imu", "magnetometer", "air_pressure", "depth", "dvl")
_PART_FILE = inputs.FileKind("part", SensorError, "must be a file of TOML")

GRADES = ("consumer", "industrial", "tactical", "navigation")
MEANINGS = ("", "typical", "1 sigma", "minimum", "maximum")
SOURCE_READINGS = ("sheet", "quoted")
TRANSDUCERS = ("", "piston", "phased_array")


@dataclass(frozen=True)
class DatasheetSource:
    """The source of a value: a citation, its address and the day when it was read.

    `reading` is "sheet" if the document itself was read, "quoted" if a work that quotes it was read.

    >>> from navsense.sensors import catalogue
    >>> source = catalogue.load_part("STIM300").entries["angular_velocity"]["noise_density"].source
    >>> source.citation.partition(",")[0], source.reading
    ('Sensonor: STIM300 Datasheet', 'quoted')
    """

    citation: str
    address: str
    accessed: date
    reading: str


@dataclass(frozen=True)
class DatasheetEntry:
    """A value: `values` in the SI unit `unit`, and as `printed` in `printed_unit`.

    `values` has one number per axis, x y z. The sections `units.SCALAR_SECTIONS` and `output_rate` have one number, and
    `units.RANGE_ENTRIES` have two: the lower and the upper end. `two_sided` is true for a two-sided density per root
    hertz, as in Kalibr's files; datasheets print one-sided ones.

    >>> from navsense.sensors import catalogue
    >>> entry = catalogue.load_part("STIM300").entries["angular_velocity"]["noise_density"]
    >>> entry.printed[0], entry.printed_unit, f"{entry.values[0]:.3g}", entry.unit
    (0.15, 'deg/sqrt(h)', '4.36e-05', 'rad/s/sqrt(Hz)')
    """

    values: tuple[float, ...]
    unit: str
    printed: tuple[float, ...]
    printed_unit: str
    source: DatasheetSource
    meaning: str
    condition: str
    two_sided: bool = False


@dataclass(frozen=True)
class Part:
    """A part: `entries[section][entry]`, for sections and entries of `units`.

    sensor: the type of the part; it may have more sections than this type.
    transducer: how the beams of a DVL are formed; "" if it is not printed.
    notes: missing and doubtful values.

    >>> from navsense.sensors import catalogue
    >>> part = catalogue.load_part("STIM300")
    >>> part.sensor, sorted(part.entries)
    ('imu', ['angular_velocity', 'linear_acceleration'])
    """

    name: str
    part: str
    manufacturer: str
    sensor: str
    grade: str
    entries: Mapping[str, Mapping[str, DatasheetEntry]]
    sources: Mapping[str, DatasheetSource]
    transducer: str = ""
    notes: str = ""

    @property
    def missing_values(self) -> tuple[str, ...]:
        """Required values of the part without a source, as `section.entry`; empty for sensors other than DVLs."""
        if self.sensor != "dvl":
            return ()
        named = [
            f"{section}.{names[0]}"
            for section, figures in REQUIRED_VALUES.items()
            for names in figures
            if not self.entries.get(section, {}).keys() & set(names)
        ]
        return (*named, *(() if self.transducer else ("transducer",)), *UNLISTED_PROPERTIES)


def _read_choice(table: Mapping[str, Any], key: str, allowed: tuple[str, ...], where: Where) -> str:
    value = table.get(key, "")
    if value not in allowed:
        raise SensorError(key, value, allowed=f"must be one of {', '.join(filter(None, allowed))}", where=where)
    return str(value)


def _read_text(table: Mapping[str, Any], key: str, where: Where) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SensorError(key, value, allowed="must be a text", where=where)
    return value


def _check_tables(name: str, value: Any, where: Where) -> Mapping[str, Mapping[str, Any]]:
    """Return a table of tables. Raises `SensorError` for another value."""
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise SensorError(name, value, allowed="must be a table of tables", where=where)
    return value


def _is_number(value: Any, *, or_zero: bool) -> bool:
    """Return True if a TOML value is a finite number that is positive, or zero if `or_zero`."""
    if type(value) not in (int, float):
        return False
    number = value if abs(value) < sys.float_info.max else math.inf  # an integer may exceed the range of a float
    return math.isfinite(number) and (number > 0 or (or_zero and number == 0))


def _read_source(name: str, table: Mapping[str, Any], where: Where) -> DatasheetSource:
    accessed = table.get("accessed")
    if not isinstance(accessed, date):
        raise SensorError(f"{name}.accessed", accessed, allowed="must be a date", where=where)
    reading = _read_choice(table, "reading", SOURCE_READINGS, where)
    return DatasheetSource(_read_text(table, "citation", where), _read_text(table, "address", where), accessed, reading)


def _read_printed(section: str, figure: str, value: Any, where: Where) -> tuple[float, ...]:
    """Return the numbers of a value, one per axis."""
    count = 1 if figure == "output_rate" else count_axes(section)
    ends = (section, figure) in RANGE_ENTRIES
    length = 2 if ends else count
    numbers = value if isinstance(value, list) else [value] * count
    good = all(_is_number(x, or_zero=ends) for x in numbers)
    if len(numbers) != length or not good or (ends and not numbers[0] < numbers[1]):
        allowed = f"must be {length} numbers > 0" if length > 1 else "must be a number > 0"
        allowed = "must be two numbers >= 0, the lower one first" if ends else allowed
        raise SensorError(f"{section}.{figure}", value, allowed=allowed, where=where)
    return tuple(float(x) for x in numbers)


def _read_entry(
    section: str, name: str, entry: Mapping[str, Any], sources: Mapping[str, DatasheetSource], where: Where
) -> DatasheetEntry:
    what = f"{section}.{name}"
    odd = set(entry) - {"value", "unit", "source", "meaning", "condition", "two_sided"}
    if name not in ENTRY_NAMES or odd:
        raise SensorError(
            f"{what} {' '.join(sorted(odd))}".strip(), allowed="is not an entry of the catalogue", where=where
        )
    unit = UNITS.get(str(entry.get("unit")))
    if unit is None or unit.si != get_si_unit(section, name):
        allowed = f"must be a unit of {get_si_unit(section, name)}"
        raise SensorError(f"{what}.unit", entry.get("unit"), allowed=allowed, where=where)
    source = sources.get(str(entry.get("source")))
    if source is None:
        raise SensorError(f"{what}.source", entry.get("source"), allowed="must be a key of [sources]", where=where)
    meaning = _read_choice(entry, "meaning", MEANINGS, where)
    if name == "turn_on_bias" and not meaning:
        raise SensorError(f"{what}.meaning", allowed="must be given", where=where)
    printed = _read_printed(section, name, entry.get("value"), where)
    values = tuple(unit.to_si(x) for x in printed)
    two_sided = entry.get("two_sided", False)
    if not isinstance(two_sided, bool):
        raise SensorError(f"{what}.two_sided", two_sided, allowed="must be true or false", where=where)
    condition = str(entry.get("condition", ""))
    return DatasheetEntry(values, unit.si, printed, str(entry["unit"]), source, meaning, condition, two_sided=two_sided)


def read_part(path: Traversable, name: str = "") -> Part:
    """Return the part in a TOML file with the layout of the catalogue, also of a user. Raises `SensorError`.

    >>> from navsense.sensors import catalogue
    >>> path = Path(catalogue.__file__).parent / "stim300.toml"  # or your own file
    >>> catalogue.read_part(path).sensor
    'imu'
    """
    where, table = Where(str(path)), inputs.read_toml(str(path), _PART_FILE)
    source_tables = _check_tables("sources", table.get("sources", {}), where)
    sources = {key: _read_source(key, entry, where) for key, entry in source_tables.items()}
    sections = {key: entry for key, entry in table.items() if isinstance(entry, dict) and key != "sources"}
    odd = sorted((set(sections) - set(SECTION_UNITS)) | (set(table) - set(sections) - set(_PART_KEYS)))
    if odd or not sections:
        allowed = f"must be {', '.join(_PART_KEYS)} or one of {', '.join(SECTION_UNITS)}"
        raise SensorError("table", " ".join(odd) or None, allowed=allowed, where=where)
    figures = {
        section: {
            key: _read_entry(section, key, entry, sources, where)
            for key, entry in _check_tables(section, entries, where).items()
        }
        for section, entries in sections.items()
    }
    return Part(
        name,
        _read_text(table, "part", where),
        _read_text(table, "manufacturer", where),
        _read_choice(table, "sensor", SENSOR_TYPES, where),
        _read_choice(table, "grade", GRADES, where),
        figures,
        sources,
        _read_choice(table, "transducer", TRANSDUCERS, where),
        _read_text(table, "notes", where) if "notes" in table else "",
    )


_PART_KEYS = ("part", "manufacturer", "sensor", "grade", "sources", "transducer", "notes")


@cache
def list_parts() -> tuple[str, ...]:
    """Return the names of all parts, sorted.

    >>> from navsense.sensors import catalogue
    >>> "bmi088" in catalogue.list_parts()
    True
    """
    files = resources.files(__name__).iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_part(name: str) -> Part:
    """Return a part by its name in any case. Raises `UnknownNameError`.

    >>> from navsense.sensors import catalogue
    >>> entry = catalogue.load_part("STIM300").entries["angular_velocity"]["noise_density"]
    >>> entry.printed[0], entry.printed_unit
    (0.15, 'deg/sqrt(h)')
    """
    if not isinstance(name, str):
        raise UnknownNameError("part", repr(name), allowed="must be the name of a part, a text")
    key = name.lower()
    if key not in list_parts():
        remedy = suggest_name(key, list_parts(), 3)
        raise UnknownNameError("part", name, allowed=f"must be one of {', '.join(list_parts())}", remedy=remedy)
    return _load_packaged_part(key)


@cache
def _load_packaged_part(key: str) -> Part:
    return read_part(resources.files(__name__) / f"{key}.toml", key)
