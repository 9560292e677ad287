"""`<sensor type="adcp">`: navsense's own `<adcp>`, with an element for each field of the specification.

    <adcp>
      <beams angle_deg="20" width_deg="4"> <azimuths_deg>-135 135 45 -45</azimuths_deg> ... </beams>   as in `<dvl>`
      <cells count="30" size="2" blanking="0.88" transmit_length="2" lag="0" samples="5"/>     m along the axis
      <pings>10</pings> <bottom_pings>10</bottom_pings>                    of an ensemble; the sensor's rate is its own
      <ping_interval>0.1</ping_interval> <processing_time>0.01</processing_time>   s; 0: the travel time
      <propagation>true</propagation>                                      false: all pings are at the tick
      <min>0.5</min> <max>100</max>                                        m along a beam, of the bottom's echo
      <profile stddev="0.03" long_term_scale="0.003" long_term_offset="0.003"/>    m/s of one ping and beam; and
      <bottom stddev="0.005" long_term_scale="0.002" long_term_offset="0.001"/>    deviations among serials
      <reference_cell_size>2</reference_cell_size>                         m, cell size of the profile's stddev
      <range_stddev>0.1</range_stddev>                                     m
      <backscatter level="60" absorption="0.15" correlation="0.8" threshold="6" slope="1"/>
      <sound speed="1500"/> <transducer>piston</transducer>                or phased_array
      <coordinates>earth</coordinates>                                     beam, instrument, ship, earth
      <bin_mapping>linear</bin_mapping>                                    none, nearest, linear
      <motion_compensated>false</motion_compensated>                       by the bottom track
      <min_beams>3</min_beams> <error_velocity_limit>1</error_velocity_limit> <min_good_share>0.25</min_good_share>
      <side_lobes>true</side_lobes> <own_hull>false</own_hull>
      <reference link="base_link" degrees="true">180 0 0</reference>       axes of `instrument`, as in `<dvl>`
    </adcp>

All elements are optional. The defaults are those of the classes in `navsense.sensors.adcp`.
"""

from __future__ import annotations

from functools import partial

from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context
from navsense.sdf.parse.dvl import ECHO_STRENGTH, parse_beams, parse_reference
from navsense.sdf.parse.mount import Mount
from navsense.sdf.parse.range import SOUND
from navsense.sdf.xml_reader import Element
from navsense.sensors.adcp import BEAM_ANGLE, Adcp
from navsense.sensors.doppler import Accuracy, DepthCells

CELLS = ElementBinding(DepthCells, attributes=True)
ACCURACY = ElementBinding(Accuracy, attributes=True)
ADCP = ElementBinding(
    Adcp,
    parsers={
        "cells": CELLS.read,
        "profile": ACCURACY.read,
        "bottom": ACCURACY.read,
        "backscatter": ECHO_STRENGTH.read,
        "sound": SOUND.read,
    },
)


def parse(context: Context, block: Element | None, mount: Mount) -> Adcp:
    """Return the specification that a block gives, the default without a block. Raises `SdfError`."""
    if block is None:
        return Adcp(classic=mount.classic)
    parsers: dict[str, ChildParser] = {
        "beams": lambda context, element: parse_beams(context, element, BEAM_ANGLE)[0],
        "reference": partial(parse_reference, mount=mount),
    }
    return ADCP.read(context, block, parsers, classic=mount.classic)
