"""`<sensor type="adcp">`: navsense's own `<adcp>`, with an element for every field of the sheet.

    <adcp>
      <beams angle_deg="20" width_deg="4"> <azimuths_deg>-135 135 45 -45</azimuths_deg> ... </beams>   as in `<dvl>`
      <cells count="30" size="2" blanking="0.88" transmit_length="2" lag="0" samples="5"/>     m along the axis
      <pings>10</pings> <bottom_pings>10</bottom_pings>                    of an ensemble; the sensor's rate is its own
      <ping_interval>0.1</ping_interval> <processing_time>0.01</processing_time>   s; 0: as fast as sound allows
      <propagation>true</propagation>                                      false: all pings are at the tick
      <min>0.5</min> <max>100</max>                                        m along a beam, of the bottom's echo
      <profile stddev="0.03" long_term_scale="0.003" long_term_offset="0.003"/>    m/s of one ping and beam; and
      <bottom stddev="0.005" long_term_scale="0.002" long_term_offset="0.001"/>    deviations among serials
      <reference_cell_size>2</reference_cell_size>                         m, that the profile's deviation holds at
      <range_stddev>0.1</range_stddev>                                     m
      <backscatter level="60" absorption="0.15" correlation="0.8" threshold="6" slope="1"/>
      <sound speed="1500"/> <transducer>piston</transducer>                or phased_array
      <coordinates>earth</coordinates>                                     beam, instrument, ship, earth
      <bin_mapping>linear</bin_mapping>                                    none, nearest, linear
      <motion_compensated>false</motion_compensated>                               by the bottom's track
      <min_beams>3</min_beams> <error_velocity_limit>1</error_velocity_limit> <min_good_share>0.25</min_good_share>
      <side_lobes>true</side_lobes> <own_hull>false</own_hull>
      <reference link="base_link" degrees="true">180 0 0</reference>       axes of `instrument`, as in `<dvl>`
    </adcp>

All in it may be left out: defaults are those of the classes in `navsense.sensors.adcp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from navsense.errors import SensorError
from navsense.sdf import values
from navsense.sdf.context import Context, ElementSchema
from navsense.sdf.parse._mount import Mount
from navsense.sdf.parse.children import (
    error_at,
    map_spec_errors,
    parse_child_choice,
    parse_child_flag,
    parse_child_number,
)
from navsense.sdf.parse.dvl import (
    parse_attribute_numbers,
    parse_beams,
    parse_echo_strength,
    parse_reference,
    parse_sound,
)
from navsense.sdf.xml_reader import Element
from navsense.sensors.adcp import BEAM_ANGLE, Adcp
from navsense.sensors.doppler import Accuracy, BinMapping, CoordinateSystem, DepthCells, Transducer

NUMBER_TAGS: Mapping[str, str] = {
    "min": "minimum_range",
    "max": "maximum_range",
    **{
        name: name
        for name in """ping_interval processing_time reference_cell_size range_stddev error_velocity_limit
        min_good_share""".split()
    },
}
"""Element with one number: field of the sheet."""

COUNT_TAGS = ("pings", "bottom_pings", "min_beams")
"""Elements with one whole number, named as the fields."""

FLAG_TAGS = ("propagation", "motion_compensated", "side_lobes", "own_hull")
"""Elements that are true or false, named as the fields."""

ERROR_TAGS: Mapping[str, str] = {
    **{field: tag for tag, field in NUMBER_TAGS.items()},
    **{name: name for name in COUNT_TAGS},
    "maximum_range (m)": "max",
    "angle of beam": "beams",
}
"""How what a sheet refuses begins: the element that gave it."""

_CELL_FIELDS, _ACCURACY_FIELDS = (tuple(field.name for field in fields(kind)) for kind in (DepthCells, Accuracy))

ADCP = ElementSchema(
    children=frozenset(
        """beams cells profile bottom backscatter sound transducer coordinates bin_mapping reference""".split()
    ).union(NUMBER_TAGS, COUNT_TAGS, FLAG_TAGS)
)
CELLS = ElementSchema(attributes=frozenset(_CELL_FIELDS))
ACCURACY = ElementSchema(attributes=frozenset(_ACCURACY_FIELDS))


def parse(context: Context, block: Element | None, mount: Mount) -> Adcp:
    """Return the data sheet that a block describes, without one the default. Raise `SdfError` for what cannot be."""
    if block is None:
        return Adcp(classic=mount.classic)
    context.check(block, ADCP)
    sheet = Adcp()
    given: dict[str, Any] = {
        name: parse_child_number(context, block, tag, getattr(sheet, name)) for tag, name in NUMBER_TAGS.items()
    }
    given |= {name: _to_integer(parse_child_number(context, block, name, getattr(sheet, name))) for name in COUNT_TAGS}
    given |= {name: parse_child_flag(context, block, name, default=getattr(sheet, name)) for name in FLAG_TAGS}
    wanted = Transducer(parse_child_choice(context, block, "transducer", sheet.transducer, tuple(Transducer)))
    axes = CoordinateSystem(
        parse_child_choice(context, block, "coordinates", sheet.coordinates, tuple(CoordinateSystem))
    )
    mapping = BinMapping(parse_child_choice(context, block, "bin_mapping", sheet.bin_mapping, tuple(BinMapping)))
    beams, _ = parse_beams(context, block.find("beams"), sheet.beams, BEAM_ANGLE)
    try:
        made = Adcp(
            beams=beams,
            cells=_parse_cells(context, block.find("cells")),
            profile=_parse_accuracy(context, block.find("profile")),
            bottom=_parse_accuracy(context, block.find("bottom")),
            backscatter=parse_echo_strength(context, block.find("backscatter")),
            sound=parse_sound(context, block.find("sound")),
            transducer=wanted,
            coordinates=axes,
            bin_mapping=mapping,
            reference=parse_reference(context, block.find("reference"), mount),
            classic=mount.classic,
            **given,
        )
    except SensorError as error:
        raise error_at(_find_cause(block, error), error) from error
    return made


def _to_integer(number: float) -> float:
    """Return a number as an integer where it is one; the sheet refuses it where it is none."""
    return int(number) if number == int(number) else number


def _find_cause(block: Element, error: SensorError) -> Element:
    """Return the element that gave what a sheet refuses, the block where none did."""
    tags = (tag for start, tag in ERROR_TAGS.items() if error.what.startswith(start))
    return next((child for tag in tags if (child := block.find(tag)) is not None), block)


def _parse_cells(context: Context, element: Element | None) -> DepthCells:
    """Return the cells of the profile."""
    if element is None:
        return DepthCells()
    context.check(element, CELLS)
    found: dict[str, Any] = parse_attribute_numbers(element, _CELL_FIELDS, "")
    for name in ("count", "samples"):
        whole = values.parse_attribute_integer(element, name)
        found |= {} if whole is None else {name: whole}
    with map_spec_errors(element):
        return DepthCells(**found)


def _parse_accuracy(context: Context, element: Element | None) -> Accuracy:
    """Return the errors of velocities along the beams."""
    if element is None:
        return Accuracy()
    context.check(element, ACCURACY)
    with map_spec_errors(element):
        return Accuracy(**parse_attribute_numbers(element, _ACCURACY_FIELDS, ""))
