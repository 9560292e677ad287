"""Doppler instruments: `<sensor type="dvl">` and `<sensor type="adcp">`.

`<sensor type="dvl">` has navsense's own `<dvl>`, with an element for each field of the spec, and Gazebo's `<gz:dvl>`.

    <dvl>
      <beams angle_deg="30" width_deg="4" rings="1"                             Janus angle; full width of a beam
             weighting="plane"                                                  or nearest, or pattern
             absorption="0">                                                    dB/m one way, weights rays of a pattern
        <azimuths_deg>-135 135 45 -45</azimuths_deg>    counter-clockwise from x, seen along `down`; here +45 is to port
        <down>0 0 -1</down>                                                     from which the Janus angle counts
      </beams>
      <beams> <beam width_deg="4" rings="1" id="1"> <pose>...</pose> </beam>    or each beam: along x of its pose,
              <beam rotation_deg="45" tilt_deg="30"/> ... </beams>              or with Gazebo's angles
      <min>0.5</min> <max>100</max>                                             m along a beam
      <bottom_track when="always">                                              never, always, best
        <noise type="gaussian"> <stddev>0.002</stddev> </noise>                 m/s, of each beam
        <per_speed>0.001</per_speed>                                            stddev per m/s of speed
        <reference_rate>8</reference_rate>                                      Hz at which the stddevs hold
        <reported_stddev>0.004</reported_stddev>                                m/s, of a beam in the covariance
        <long_term_scale>0.001</long_term_scale>                                stddevs between instruments
        <long_term_offset>0.001</long_term_offset>                              m/s
        <maximum_velocity>9</maximum_velocity>                                  m/s; no usable echo above it
      </bottom_track>
      <water_track when="fallback">                                             or as above
        ... <layer near="5" far="30"                                            m along the instrument axis
                   minimum_size="2" samples="5"                                 m; samples of the current per beam
                   share="0.8"/>              at most 0.8 of the distance to the bottom, because of side lobes
      </water_track>
      <range> <noise .../> </range>                                             m, of each beam
      <strength level="90" absorption="0.04"                  echo above the noise from 1 m, dB; dB/m one way
                correlation="0.9" threshold="6" slope="1"/>   of a strong echo; dB at lock probability 1/2;
                                                              dB, width of the transition (`lock_width`)
      <sound speed="1500"/> <transducer>piston</transducer>                     or phased_array
      <misalignment_deg>0 0 0.5</misalignment_deg> <misalignment_stddev_deg>0.2</misalignment_stddev_deg>
      <min_incidence_cosine>0.2</min_incidence_cosine> <error_velocity_limit>0.3</error_velocity_limit>
      <dropout_probability>0.01</dropout_probability> <reacquisition_time>2</reacquisition_time>
      <propagation>true</propagation> <processing_time>0.01</processing_time>
      <long_term acceleration_density="0.05" stddev="0.002" scale="0.001"/>     filter; m/s, 1: assumed errors
      <reference link="base_link" degrees="true">180 0 0</reference>            roll pitch yaw of the output frame
      <own_hull>false</own_hull>
    </dvl>

All elements are optional. The defaults are those of the classes in `navsense.sensors.dvl`. A water track without
`when` is a fallback. The angles of `<reference>` are the pose of the output frame in the link, or in the sensor without
a link, as in a `<pose>`. `Dvl.reference` is the rotation from the sensor to the output frame.

`<sensor type="adcp">` has navsense's own `<adcp>`, with an element for each field of the specification.

    <adcp>
      <beams angle_deg="20" width_deg="4"> <azimuths_deg>-135 135 45 -45</azimuths_deg> ... </beams>   as in `<dvl>`
      <cells count="30" size="2" blanking="0.88" transmit_length="2" lag="0" samples="5"/>     m, instrument axis
      <pings>10</pings> <bottom_pings>10</bottom_pings>                    of an ensemble; the sensor's rate is its own
      <ping_interval>0.1</ping_interval> <processing_time>0.01</processing_time>   s; 0: the travel time
      <propagation>true</propagation>                                      false: all pings are at the tick
      <min>0.5</min> <max>100</max>                                        m along a beam, of the bottom's echo
      <profile stddev="0.03" long_term_scale="0.003" long_term_offset="0.003"/>    m/s of one ping and beam; and
      <bottom stddev="0.005" long_term_scale="0.002" long_term_offset="0.001"/>    stddevs between instruments
      <reference_cell_size>2</reference_cell_size>                         m, cell size of the profile's stddev
      <range_stddev>0.1</range_stddev>                                     m
      <backscatter level="60" absorption="0.15" correlation="0.8" threshold="6" slope="1"/>
      <sound speed="1500"/> <transducer>piston</transducer>                or phased_array
      <coordinates>earth</coordinates>                                     beam, instrument, ship, earth
      <bin_mapping>linear</bin_mapping>                                    none, nearest, linear
      <motion_compensated>false</motion_compensated>                       by the bottom track
      <min_beams>3</min_beams> <error_velocity_limit>1</error_velocity_limit> <min_good_share>0.25</min_good_share>
      <side_lobes>true</side_lobes> <own_hull>false</own_hull>
      <reference link="base_link" degrees="true">180 0 0</reference>       output frame of `instrument`
    </adcp>

All elements are optional. The defaults are those of the classes in `navsense.sensors.adcp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from navsense.core.field_metadata import get_file_fields
from navsense.core.pose import conjugate, from_rpy, multiply, normalize
from navsense.core.typing import Quaternion
from navsense.sdf.binder import ChildParser, ElementBinding
from navsense.sdf.context import Context, ElementSchema, make_schema
from navsense.sdf.parse.children import parse_child_vector
from navsense.sdf.parse.dvl_gazebo import parse_beam_ids, parse_gz_dvl
from navsense.sdf.parse.noise import parse_channel_noise, parse_noise
from navsense.sdf.parse.range import SOUND_BINDING
from navsense.sdf.parse.sensor_context import SensorContext
from navsense.sdf.values import (
    invalid_value,
    map_spec_errors,
    parse_attribute_choice,
    parse_attribute_flag,
    parse_attribute_integer,
    parse_attribute_number,
    parse_numbers,
    parse_pose,
)
from navsense.sdf.xml_reader import Element
from navsense.sensors.adcp import DEFAULT_JANUS_ANGLE as ADCP_JANUS_ANGLE
from navsense.sensors.adcp import Adcp
from navsense.sensors.doppler import (
    IDENTITY_ROTATION,
    X_AZIMUTHS_DEG,
    Beam,
    Beams,
    BeamVelocityErrors,
    BeamWeighting,
    DepthCells,
    DvlMessageOptions,
    EchoStrength,
    LongTermFilter,
    TrackErrors,
    WaterMassLayer,
    make_gazebo_rotation,
    make_janus_beams,
)
from navsense.sensors.dvl import DEFAULT_JANUS_ANGLE, Dvl, TrackMode
from navsense.sensors.range import Cone

GAZEBO_ANGLE_ATTRIBUTES = ("rotation_deg", "tilt_deg")
"""Attributes of a beam with Gazebo's angles."""

MIN_ANGLE_DEG = 5.0
"""Janus angle (degrees) below which the value is probably in radians; a warning reports it."""

_WIDTH_ATTRIBUTES = frozenset(("width_deg", "rings"))
BEAMS_SCHEMA = ElementSchema(
    children=frozenset(("azimuths_deg", "down")),
    repeatable=frozenset(("beam",)),
    attributes=_WIDTH_ATTRIBUTES | {"angle_deg", "weighting", "absorption"},
)
BEAM_SCHEMA = ElementSchema(
    children=frozenset(("pose",)), attributes=_WIDTH_ATTRIBUTES.union(GAZEBO_ANGLE_ATTRIBUTES, ("id",))
)
BEAM_POSE_SCHEMA = make_schema(attributes="rotation_format degrees")
TRACK_BINDING = ElementBinding(TrackErrors, other_attributes=("when",))
WATER_TRACK_BINDING = ElementBinding(TrackErrors, other_children=("layer",), other_attributes=("when",))
LAYER_BINDING = ElementBinding(WaterMassLayer, attributes=True)
ECHO_STRENGTH_BINDING = ElementBinding(EchoStrength, attributes=True)
LONG_TERM_BINDING = ElementBinding(LongTermFilter, attributes=True)

STRENGTH_TAG, LONG_TERM_TAG = "navsense:strength", "navsense:long_term"
"""Elements of navsense in the DVL plug-ins of other programs. They are those of `<dvl>`, with the prefix."""

DVL_BINDING = ElementBinding(
    Dvl,
    parsers={
        "echo_strength": ECHO_STRENGTH_BINDING.read,
        "sound": SOUND_BINDING.read,
        "long_term": LONG_TERM_BINDING.read,
    },
)
CELLS_BINDING = ElementBinding(DepthCells, attributes=True)
BEAM_VELOCITY_ERRORS_BINDING = ElementBinding(BeamVelocityErrors, attributes=True)
ADCP_BINDING = ElementBinding(
    Adcp,
    parsers={
        "cells": CELLS_BINDING.read,
        "profile": BEAM_VELOCITY_ERRORS_BINDING.read,
        "bottom": BEAM_VELOCITY_ERRORS_BINDING.read,
        "backscatter": ECHO_STRENGTH_BINDING.read,
        "sound": SOUND_BINDING.read,
    },
)
REFERENCE_SCHEMA = make_schema(attributes="link degrees")


def parse_dvl(context: Context, element: Element | None, sensor_context: SensorContext) -> Dvl:
    """Return the specification of a type element; without one the default. Raises `SdfError`.

    `sdf.parse.part` then replaces the fields that the file left at their defaults by those of `<navsense:part>`.
    """
    if element is None:
        return Dvl(classic=sensor_context.classic)
    return DVL_PARSERS[element.tag](context, element, sensor_context)


def _parse_navsense_dvl(context: Context, element: Element, sensor_context: SensorContext) -> Dvl:
    """Return the specification of a `<dvl>`. Raises `SdfError`."""
    bottom, water, beams = element.find("bottom_track"), element.find("water_track"), element.find("beams")
    fields: dict[str, Any] = {"classic": sensor_context.classic}
    if beams is not None:
        fields["beams"], fields["message_options"] = _parse_beams(context, beams)
    bottom_modes = (TrackMode.NEVER, TrackMode.ALWAYS, TrackMode.BEST)
    fields["bottom_mode"] = _parse_mode(bottom, TrackMode.ALWAYS, bottom_modes)
    fields["water_mode"] = (
        TrackMode.NEVER if water is None else _parse_mode(water, TrackMode.FALLBACK, tuple(TrackMode))
    )
    if water is not None and (layer := water.find("layer")) is not None:
        fields["layer"] = LAYER_BINDING.read(context, layer)
    track_parsers: dict[str, ChildParser] = {"noise": partial(parse_noise, classic=sensor_context.classic)}
    # Parsers by field.
    parsers: dict[str, ChildParser] = {
        "bottom": partial(TRACK_BINDING.read, parsers=track_parsers),
        "water": partial(WATER_TRACK_BINDING.read, parsers=track_parsers),
        "range_noise": partial(parse_channel_noise, classic=sensor_context.classic),
        "reference": partial(_parse_reference, sensor_context=sensor_context),
    }
    return DVL_BINDING.read(context, element, parsers, **fields)


def make_plugin_track_binding(**plugin_tags: str) -> ElementBinding[TrackErrors]:
    """Return the binding of a track in the plug-in of another program, without the fields that its elements set.

    plugin_tags: element of the plug-in by field.
    """
    names = {get_file_fields(TrackErrors)[field].name or field: tag for field, tag in plugin_tags.items()}
    forbidden = {name: f"is given by <{tag}> of the plug-in" for name, tag in names.items()}
    return ElementBinding(TrackErrors, omitted=plugin_tags, forbidden=forbidden)


def parse_plugin_track(
    context: Context, plugin: Element, tag: str, binding: ElementBinding[TrackErrors], track: TrackErrors
) -> TrackErrors:
    """Return the errors of a track in the plug-in of another program: `track`, with those of a child of navsense."""
    child = plugin.find(tag)
    if child is None:
        return track
    return binding.read(context, child, noise=track.noise, reported_stddev=track.reported_stddev)


def parse_plugin_extras(context: Context, plugin: Element) -> dict[str, Any]:
    """Return the echo strength and the long-term filter in the plug-in of another program, by field."""
    strength, long_term = plugin.find(STRENGTH_TAG), plugin.find(LONG_TERM_TAG)
    fields: dict[str, Any] = {}
    if strength is not None:
        fields["echo_strength"] = ECHO_STRENGTH_BINDING.read(context, strength)
    if long_term is not None:
        fields["long_term"] = LONG_TERM_BINDING.read(context, long_term)
    return fields


def _parse_mode(element: Element | None, default: TrackMode, allowed: tuple[TrackMode, ...]) -> TrackMode:
    """Return when a track supplies the velocity: attribute `when`, which `TRACK_BINDING` allows but does not read."""
    return default if element is None else TrackMode(parse_attribute_choice(element, "when", default, allowed))


def _parse_beams(
    context: Context, element: Element, angle: float = DEFAULT_JANUS_ANGLE
) -> tuple[Beams, DvlMessageOptions]:
    """Return the beams, by default at the Janus angle `angle` (rad), and their numbers."""
    context.check(element, BEAMS_SCHEMA)
    plane, choices = BeamWeighting.PLANE, tuple(BeamWeighting)
    weighting = BeamWeighting(parse_attribute_choice(element, "weighting", plane, choices))
    absorption = parse_attribute_number(element, "absorption") or 0.0
    beam_elements = list(element.find_all("beam"))
    with map_spec_errors(element):
        if not beam_elements:
            beams = _parse_janus_beams(context, element, angle)
            return replace(beams, weighting=weighting, absorption=absorption), DvlMessageOptions()
        _check_beam_layout(element)
        options = DvlMessageOptions(beam_ids=parse_beam_ids(beam_elements))
        beams = Beams(tuple(_parse_beam(context, beam, element) for beam in beam_elements), weighting, absorption)
        return beams, options


def _check_beam_layout(element: Element) -> None:
    """Raise `SdfError` if attributes of all beams are combined with single beams."""
    child = element.find("azimuths_deg", "down")
    allowed = "must not be combined with <beam>, which defines its own direction"
    if child is not None:
        raise invalid_value(child, child.text, allowed, parent=element.tag)
    if element.get_attribute("angle_deg"):
        raise invalid_value(element, element.get_attribute("angle_deg"), allowed, attribute="angle_deg")


def _parse_janus_beams(context: Context, element: Element, default_angle: float) -> Beams:
    """Return beams at one angle (rad) from `down`."""
    angle_deg = parse_attribute_number(element, "angle_deg")
    if angle_deg is not None and 0.0 < angle_deg < MIN_ANGLE_DEG:
        reason = f"is read as degrees; if it is in radians, write {math.degrees(angle_deg):.4g}"
        context.add_note("warning", f"<beams angle_deg>: {angle_deg:g}", reason, element.where)
    angle = default_angle if angle_deg is None else math.radians(angle_deg)
    cone, child = _parse_cone(element, element), context.find_child(element, "azimuths_deg")
    azimuths_deg: tuple[float, ...] = X_AZIMUTHS_DEG
    if child is not None:
        azimuths_deg = parse_numbers(child, max(1, len(child.text.split())), "must be finite numbers", parent="beams")
    azimuths = [math.radians(azimuth) for azimuth in azimuths_deg]
    down = parse_child_vector(context, element, "down", (0.0, 0.0, -1.0))
    return make_janus_beams(angle, azimuths, width=cone.width, rings=cone.rings, down=down)


def _parse_cone(element: Element, parent: Element) -> Cone:
    """Return the shape of a beam: its own attributes, else those of the parent element."""
    widths = (parse_attribute_number(candidate, "width_deg") for candidate in (element, parent))
    rings = (parse_attribute_integer(candidate, "rings") for candidate in (element, parent))
    width = next((width for width in widths if width is not None), 0.0)
    return Cone(math.radians(width), next((count for count in rings if count is not None), 1) if width else 0)


def _parse_beam(context: Context, element: Element, parent: Element) -> Beam:
    """Return one beam, by its pose in the sensor or by rotation and tilt. Raises `SdfError`."""
    context.check(element, BEAM_SCHEMA)
    angles = {name: parse_attribute_number(element, name) for name in GAZEBO_ANGLE_ATTRIBUTES}
    child = element.find("pose")
    with map_spec_errors(element):
        shape = _parse_cone(element, parent)
        if child is None:
            if angles["tilt_deg"] is None:
                raise invalid_value(element, "missing", "must be given, or a <pose>", attribute="tilt_deg")
            rotation, tilt = (math.radians(angle or 0.0) for angle in angles.values())
            return Beam(shape, make_gazebo_rotation(rotation, tilt))
        for name, angle in angles.items():
            if angle is not None:
                raise invalid_value(element, angle, "must not be combined with <pose>", attribute=name)
        context.check(child, BEAM_POSE_SCHEMA)
        pose = parse_pose(child, parent=element.tag)
        return Beam(shape, pose.rotation, pose.position)


def _parse_reference(context: Context, element: Element, sensor_context: SensorContext) -> Quaternion:
    """Return the rotation from the sensor's frame to the output frame. Raises `SdfError`."""
    context.check(element, REFERENCE_SCHEMA)
    name = element.get_attribute("link")
    link_rotation = sensor_context.rotation_ws if name is None else sensor_context.find_rotation(name)
    if link_rotation is None:
        raise invalid_value(element, name, "must name a link of the model", attribute="link")
    rotation = IDENTITY_ROTATION
    if element.text:
        angles = parse_numbers(element, 3, "must be 3 finite numbers: roll pitch yaw", parent="dvl")
        if parse_attribute_flag(element, "degrees"):
            angles = tuple(math.radians(angle) for angle in angles)
        rotation = from_rpy(*angles)
    return normalize(multiply(conjugate(multiply(link_rotation, rotation)), sensor_context.rotation_ws))


def parse_adcp(context: Context, element: Element | None, sensor_context: SensorContext) -> Adcp:
    """Return the specification of a type element; without one the default. Raises `SdfError`."""
    if element is None:
        return Adcp(classic=sensor_context.classic)
    parsers: dict[str, ChildParser] = {
        "beams": lambda context, element: _parse_beams(context, element, ADCP_JANUS_ANGLE)[0],
        "reference": partial(_parse_reference, sensor_context=sensor_context),
    }
    return ADCP_BINDING.read(context, element, parsers, classic=sensor_context.classic)


DVL_PARSERS: Mapping[str, Callable[[Context, Element, SensorContext], Dvl]] = {
    "dvl": _parse_navsense_dvl,
    "gz:dvl": parse_gz_dvl,
}
"""Tag of the type element -> parser."""
