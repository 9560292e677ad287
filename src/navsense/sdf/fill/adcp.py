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
      <removes_motion>false</removes_motion>                               by the bottom's track
      <least_beams>3</least_beams> <error_velocity_limit>1</error_velocity_limit> <least_good>0.25</least_good>
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
from navsense.sdf.context import Context, Place
from navsense.sdf.fill._mount import Mount
from navsense.sdf.fill.dvl import beams_of, given_of, reference_of, sound_of, strength_of
from navsense.sdf.fill.fields import flag_of, located, number_of, refused_at, word_of
from navsense.sdf.read import Element
from navsense.sensors.adcp import ANGLE, Adcp
from navsense.sensors.doppler import Accuracy, BinMapping, Cells, Coordinates
from navsense.sensors.dvl import Transducer

NUMBERS: Mapping[str, str] = {
    "min": "minimum_range",
    "max": "maximum_range",
    **{
        name: name
        for name in """ping_interval processing_time reference_cell_size range_stddev error_velocity_limit
        least_good""".split()
    },
}
"""Element with one number: field of the sheet."""

COUNTS = ("pings", "bottom_pings", "least_beams")
"""Elements with one whole number, named as the fields."""

FLAGS = ("propagation", "removes_motion", "side_lobes", "own_hull")
"""Elements that are true or false, named as the fields."""

BLAMED: Mapping[str, str] = {
    **{field: tag for tag, field in NUMBERS.items()},
    **{name: name for name in COUNTS},
    "maximum_range (m)": "max",
    "angle of beam": "beams",
}
"""How what a sheet refuses begins: the element that gave it."""

_OF_CELLS, _OF_ACCURACY = (tuple(field.name for field in fields(kind)) for kind in (Cells, Accuracy))

ADCP = Place(
    read=frozenset(
        """beams cells profile bottom backscatter sound transducer coordinates bin_mapping reference""".split()
    ).union(NUMBERS, COUNTS, FLAGS)
)
CELLS = Place(attributes=frozenset(_OF_CELLS))
ACCURACY = Place(attributes=frozenset(_OF_ACCURACY))


def fill(context: Context, block: Element | None, mount: Mount) -> Adcp:
    """Return the data sheet that a block describes, without one the default. Raise `SdfError` for what cannot be."""
    if block is None:
        return Adcp(classic=mount.classic)
    context.check(block, ADCP)
    sheet = Adcp()
    given: dict[str, Any] = {
        name: number_of(context, block, tag, getattr(sheet, name)) for tag, name in NUMBERS.items()
    }
    given |= {name: _whole(number_of(context, block, name, getattr(sheet, name))) for name in COUNTS}
    given |= {name: flag_of(context, block, name, default=getattr(sheet, name)) for name in FLAGS}
    wanted = Transducer(word_of(context, block, "transducer", sheet.transducer, tuple(Transducer)))
    axes = Coordinates(word_of(context, block, "coordinates", sheet.coordinates, tuple(Coordinates)))
    mapping = BinMapping(word_of(context, block, "bin_mapping", sheet.bin_mapping, tuple(BinMapping)))
    beams, _ = beams_of(context, block.first("beams"), sheet.beams, ANGLE)
    try:
        made = Adcp(
            beams=beams,
            cells=_cells(context, block.first("cells")),
            profile=_accuracy(context, block.first("profile")),
            bottom=_accuracy(context, block.first("bottom")),
            backscatter=strength_of(context, block.first("backscatter")),
            sound=sound_of(context, block.first("sound")),
            transducer=wanted,
            coordinates=axes,
            bin_mapping=mapping,
            reference=reference_of(context, block.first("reference"), mount),
            classic=mount.classic,
            **given,
        )
    except SensorError as error:
        raise refused_at(_blamed(block, error), error) from error
    return made


def _whole(number: float) -> float:
    """Return a number as an integer where it is one; the sheet refuses it where it is none."""
    return int(number) if number == int(number) else number


def _blamed(block: Element, error: SensorError) -> Element:
    """Return the element that gave what a sheet refuses, the block where none did."""
    tags = (tag for start, tag in BLAMED.items() if error.what.startswith(start))
    return next((child for tag in tags if (child := block.first(tag)) is not None), block)


def _cells(context: Context, element: Element | None) -> Cells:
    """Return the cells of the profile."""
    if element is None:
        return Cells()
    context.check(element, CELLS)
    found: dict[str, Any] = given_of(element, _OF_CELLS, "")
    for name in ("count", "samples"):
        whole = values.attribute_whole(element, name)
        found |= {} if whole is None else {name: whole}
    with located(element):
        return Cells(**found)


def _accuracy(context: Context, element: Element | None) -> Accuracy:
    """Return the errors of velocities along the beams."""
    if element is None:
        return Accuracy()
    context.check(element, ACCURACY)
    with located(element):
        return Accuracy(**given_of(element, _OF_ACCURACY, ""))
