"""Type, default and meaning of the elements and attributes of SDF that are not fields of a dataclass.

One line per child or attribute (`@`): name | type | default | meaning with unit. `tools/reference.py` prints them, and
fails if a name is missing here or is not in the schema.
"""

from __future__ import annotations

POSE = "pose | `x y z roll pitch yaw` | 0 | m, rad; see [pose](#pose)"
NAME = "@name | text | required | unique among its siblings"
PLUGIN = "@name | text | | not used\n@filename | text | required | selects this plug-in"

TEXTS: dict[str, str] = {
    "sdf": """
        @version | text | required | 1.4 to 1.12
        world | element | | see [world](#world); or one `<model>`
        model | element | | see [model](#model)
    """,
    "world": """
        @name | text | required | name of the world
        gravity | three numbers | 0 0 -9.8 | m/s², in the world
        magnetic_field | three numbers | 5.5645e-6 22.8758e-6 -42.3884e-6 | T, in the world
        spherical_coordinates | element | none | position of the origin on earth
        atmosphere | element | standard atmosphere | see [atmosphere](#atmosphere)
        physics | element | | see [physics](#physics)
        model | element | | any number
        frame | element | | any number
        joint | element | | any number
        include | element | | any number
        navsense:current | element | still water | velocity of the water
        navsense:dipole | element | | any number of magnetic dipoles
        navsense:faults | element | none | magnetic anomalies
        navsense:fidelity | `physical` or `classic` | `physical` | of all sensors, clocks and currents
        navsense:gravity | element | | normal gravity of the earth
        navsense:magnetic_field | element | | World Magnetic Model
        navsense:signal | element | | any number of signals
        navsense:water | element | no water | water column
    """,
    "physics": """
        @default | flag | false | selects one of several `<physics>`
        max_step_size | number > 0 | 0.001 | s; step of a live run
    """,
    "spherical_coordinates": """
        surface_model | `EARTH_WGS84` | `EARTH_WGS84` | other surfaces are an error
        world_frame_orientation | `ENU` | `ENU` | other orientations are an error
        latitude_deg | number | 0 | degrees
        longitude_deg | number | 0 | degrees
        elevation | number | 0 | m
        heading_deg | number | 0 | degrees counter-clockwise from east to x
    """,
    "atmosphere": """
        @type | `adiabatic` | required | other types are an error
        pressure | = | = | Pa at sea level
    """,
    "navsense:gravity": "@model | `WGS84` | required | normal gravity at each position",
    "navsense:magnetic_field": """
        @model | `WMM2025` or `WMM2020` | required | World Magnetic Model
        @date | number | required | decimal year
    """,
    "navsense:dipole": f"""
        @radius | number > 0 | that of `Dipole` | m; inside, the field is constant along each direction
        {POSE}
        moment | three numbers | required | A m², along the axes of the pose
    """,
    "navsense:signal": """
        @name | text | required | such as `temperature` (K) or `motor_current` (A)
        @file | path | | CSV with the columns `time,value`
        point | number | | value; or one number as the text of the signal
    """,
    "navsense:signal point": "@time | number | required | s",
    "navsense:water": """
        sound_speed | name or number | `chen-millero` | or `del-grosso`, `mackenzie`, `medwin`; a number is m/s
        @file | path | | CSV with the columns `depth,temperature,salinity`
        point | element | | one for each depth
    """,
    "navsense:water point": """
        @depth | number | required | m below the surface
        @temperature | number | required | K
        @salinity | number | required | practical salinity (PSS-78)
    """,
    "navsense:current": """
        uniform | three numbers | | m/s, in the world
        profile | element | | velocity by depth
        tidal | element | | constituents of a tide
        tidal_ellipses | element | | constituents as ellipses
        stratified | element | | velocity by depth, interpolated
        boundary_layer | element | | slows the water near the bed
        gauss_markov | element | | random current
        grid | element | | table of velocities by position and time
        replay | element | | recorded current
        @topic | text | `/hydrodynamics/current_velocity` | topic of the recorded current
        @position | three numbers | 0 0 0 | m; where the current is recorded
        @rate | number | 20 | Hz of the recorded current; 0: not recorded
        @start | date | | start of a tide, UTC
    """,
    "include": f"""
        uri | URI | required | file or model to include
        name | text | of the model | name of the model here
        {POSE}
        static | flag | of the model | true: the model never moves
        placement_frame | text | | frame of the model at the pose
        plugin | element | | added to the model
        @merge | flag | false | true: joins the model with the including one
    """,
    "model": f"""
        {NAME}
        @canonical_link | text | the first link | link of the model frame
        @placement_frame | text | | frame at the pose of the model
        static | flag | false | true: never moves
        {POSE}
        link | element | | any number
        joint | element | | any number
        frame | element | | any number
        model | element | | any number of nested models
        include | element | | any number
        navsense:motion | element | none | motion of the canonical link
    """,
    "navsense:motion": """
        @file | path | | motion log or recording
        @bandwidth | number > 0 | none | Hz; smooths a log
        @loop | flag | false | the last waypoint equals the first
        @degrees | flag | false | unit of the angles of all waypoints
        navsense:waypoint | `x y z roll pitch yaw` | | two or more; m, rad
    """,
    "navsense:waypoint": """
        @time | number | required | s
        @degrees | flag | of the motion | unit of the angles
        @rotation_format | `euler_rpy` or `quat_xyzw` | `euler_rpy` | format of the rotation
    """,
    "link": f"""
        {NAME}
        {POSE}
        collision | element | | surfaces for rays
        sensor | element | | any number
        clock | element | | clock for the sensors of the model
        navsense:clock | element | | the same
    """,
    "joint": f"""
        {NAME}
        @type | joint type of SDF | required | joints keep their poses
        parent | text | required | link, frame or `world`
        child | text | required | link or frame
        {POSE}
        axis | element | | checked, without effect
        axis2 | element | | checked, without effect
    """,
    "axis, axis2": "xyz | three numbers | 0 0 1 | unit vector",
    "xyz": "@expressed_in | text | | frame of the vector",
    "frame": f"""
        {NAME}
        @attached_to | text | | frame with which it moves
        {POSE}
    """,
    "pose": """
        @relative_to | text | the parent | frame of the pose
        @degrees | flag | false | unit of the angles
        @rotation_format | `euler_rpy` or `quat_xyzw` | `euler_rpy` | format of the rotation
    """,
    "collision": f"""
        {NAME}
        {POSE}
        geometry | element | required | one shape
    """,
    "geometry": """
        empty | element | | no surface
        box | element | | see [box](#box)
        capsule | element | | see [capsule](#capsule)
        cylinder | element | | see [cylinder](#cylinder)
        ellipsoid | element | | see [ellipsoid](#ellipsoid)
        heightmap | element | | see [heightmap](#heightmap)
        mesh | element | | see [mesh](#mesh)
        plane | element | | see [plane](#plane)
        sphere | element | | see [sphere](#sphere)
    """,
    "mesh": """
        uri | URI | required | STL or OBJ
        scale | three numbers | 1 1 1 | factors
        submesh | element | the whole mesh | one object of the file
        @optimization | text | | without effect
    """,
    "submesh": """
        name | text | required | name of the object
        center | flag | false | true: moves the middle to the origin
    """,
    "heightmap": """
        uri | URI | required | PNG or text grid
        size | three numbers | 1 1 1 | m
        pos | three numbers | 0 0 0 | m
        sampling | whole number | 1 | points between two pixels
    """,
    "sensor": f"""
        {NAME}
        @type | sensor type | required | see [Worlds](worlds.md#what-is-read)
        @gz:type | text | | type of a `custom` sensor
        @ignition:type | text | | the same, older
        {POSE}
        update_rate | number | 0 | Hz; 0: once per `max_step_size`
        topic | text | topic of Gazebo | topic of the messages
        frame_id | text | full name of the sensor | frame of the messages
        gz_frame_id | text | | older form of `<frame_id>`
        ignition_frame_id | text | | older form of `<frame_id>`
        clock | text | true time | clock of the stamps; `none`: true time
        navsense:clock | text | | the same
        navsense:fidelity | `physical` or `classic` | of the world | of this sensor
        navsense:part | text | none | part of the catalogue
        navsense:latency | element | none | time to arrival
        navsense:faults | element | none | fault injection
        TYPE | element | no errors | the type element, below
    """,
    "navsense:part": "@temperature | flag | true | false: without temperature coefficients",
    "clock": """
        @name | text | required | referenced by sensors
        noise | element | none | offset, drift and jitter of the stamps
        navsense:oscillator | element | none | frequency errors
        navsense:discipline | element | none | synchronisation
        navsense:monotonic | flag | false | true: stamps never decrease
        navsense:faults | element | none | steps of the clock
    """,
    "navsense:oscillator": "@grade | text | none | values of a grade, such as `TCXO` or `CSAC`",
    "ageing": "@per | `second`, `day`, `month` or `year` | `second` | unit of time",
    "oscillator temperature": "@signal | text | | signal of the temperature (K)",
    "navsense:faults": "fault | element | | any number of scheduled faults",
    "navsense:faults of clock and world": "fault | element | | any number of scheduled faults",
    "noise": """
        @type | `none`, `gaussian` or `gaussian_quantized` | required | `precision` acts with the last one only
        mean | = | = | unit of the channel, constant
        bias_mean | = | = | unit of the channel, mean of the turn-on bias
        bias_stddev | = | = | unit of the channel, of the turn-on bias
        precision | = | = | unit of the channel; 0: no rounding
        navsense:minimum | = | = | unit of the channel
        navsense:maximum | = | = | unit of the channel
        navsense:noise | element | | noise terms of datasheets
    """,
    "channel": "noise | element | none | see [noise](#noise)",
    "imu": """
        angular_velocity | element | none | noise of `<x>`, `<y>`, `<z>`
        linear_acceleration | element | none | noise of `<x>`, `<y>`, `<z>`
        orientation_reference_frame | element | the start | reference of the orientation
        navsense:vibration | element | none | any number of lines
    """,
    "orientation_reference_frame": """
        localization | `CUSTOM`, `ENU`, `NED` or `NWU` | `CUSTOM` | `GRAV_UP` and `GRAV_DOWN` are errors
        custom_rpy | three numbers | 0 0 0 | rad, with `CUSTOM`
    """,
    "custom_rpy": "@parent_frame | text | the sensor | `world` or a link",
    "navsense:reference": "@period | number > 0 | none | s between two resets",
    "navsat": """
        position_sensing | element | none | noise of `<horizontal>` and `<vertical>`
        velocity_sensing | element | none | noise of `<horizontal>` and `<vertical>`
    """,
    "range": """
        noise | = | = | m
        resolution | number | none | m; rounds the range
        beam | element | one ray along x | see [beam of range](#beam-of-range)
        sound | element | none | an acoustic sensor
    """,
    "beam of range": """
        @width_deg | number > 0 | one ray | full width, degrees
        @rings | whole number | 3 | rings of rays
        axis | three numbers | 1 0 0 | axis of the beam in the sensor
    """,
    "ray, lidar": """
        scan | element | required | rays of the beam
        range | element | required | limits
        noise | element | none | m
        navsense:sound | element | none | speed of sound
        navsense:own_hull | flag | false | true: rays hit the own model
    """,
    "scan": """
        horizontal | element | one sample | see [horizontal, vertical](#horizontal-vertical)
        vertical | element | one sample | the same
    """,
    "horizontal, vertical": """
        samples | whole number | 640 horizontal, 1 vertical | rays
        resolution | number > 0 | 1 | without effect
        min_angle | number | 0 | rad
        max_angle | number | 0 | rad
    """,
    "range of ray": """
        min | number ≥ 0 | 0 | m
        max | number ≥ 0 | 0 | m
        resolution | number ≥ 0 | 0 | m; rounds the range
    """,
    "sonar": """
        min | number | 0 | m
        max | number | 1 | m
        radius | number | 0.5 | m, of the cone at `max`
        geometry | `cone` or `sphere` | `cone` | shape of the beam
        noise | element | none | m
        navsense:sound | element | none | speed of sound
        navsense:own_hull | flag | false | true: rays hit the own model
    """,
    "beams": """
        @angle_deg | number | 30; ADCP: 20 | degrees from `<down>`
        @width_deg | number | 0 | full width, degrees
        @rings | whole number | 1 | rings of rays
        @weighting | `plane`, `pattern` or `nearest` | `plane` | how rays form one echo
        @absorption | number | 0 | dB/m, with `pattern`
        azimuths_deg | numbers | -135 135 45 -45 | degrees from x
        down | three numbers | 0 0 -1 | axis of the instrument
        beam | element | | beams that differ
    """,
    "beam": """
        @id | whole number | from 0 | number in Gazebo's messages
        @width_deg | number | of `<beams>` | full width, degrees
        @rings | whole number | of `<beams>` | rings of rays
        @rotation_deg | number | | azimuth, degrees, as in Gazebo
        @tilt_deg | number | | from down, degrees, as in Gazebo
        pose | `x y z roll pitch yaw` | 0 | the beam is along x
    """,
    "pose of beam": """
        @degrees | flag | false | unit of the angles
        @rotation_format | `euler_rpy` or `quat_xyzw` | `euler_rpy` | format of the rotation
    """,
    "bottom_track": "@when | `never`, `always` or `best` | `always` | when the track is used",
    "water_track": """
        @when | `never`, `fallback`, `always` or `best` | `fallback` | when the track is used
        layer | element | the range of the beams | water-mass layer
    """,
    "reference": """
        @link | text | the sensor | link whose axes the velocities have
        @degrees | flag | false | unit of the angles
    """,
    "box": "size | = | = | m",
    "capsule": "radius | = | = | m\nlength | = | = | m, of the cylinder",
    "cylinder": "radius | = | = | m\nlength | = | = | m",
    "ellipsoid": "radii | = | = | m",
    "plane": "normal | = | = | of the plane, which is infinite",
    "sphere": "radius | = | = | m",
    "navsense:latency": """
        fixed | = | = | s, constant part
        mean | = | = | s, mean of the random part
        stddev | = | = | s, of the random part
    """,
    "fault": """
        @kind | text | required | `dropout`, `stuck`, `bias`, `spike`, `lost_lock`, `step`, `magnetic_anomaly`
        @start | number | required | s
        @array | text | | the array that a bias or spike changes
    """,
    "navsense:noise": """
        bias_instability | = | = | unit of the channel, B of flicker noise
        scale_temperature_coefficient | = | = | 1/K
        reference_temperature | = | = | K
        outlier_probability | = | = | probability of each sample, at most 1
        outlier_stddev | = | = | unit of the channel
    """,
    "depth": "formula | name | `unesco` | also `saunders`, `constant`, `known`",
    "air_pressure": "reference_altitude | = | = | m\npressure | = | = | Pa",
    "sound": "@speed | = | = | m/s, assumed by the instrument",
    "navsense:vibration": "frequency | = | = | Hz",
    "gz:dvl": """
        type | `piston` or `phased_array` | `piston` | transducer
        arrangement | element | required | beams
        tracking | element | required | modes
        resolution | number > 0 | 0.01 | rad between rays
        minimum_range | number ≥ 0 | 0.1 | m
        maximum_range | number > 0 | 100 | m
        reference_frame | `x y z roll pitch yaw` | 0 | axes of the velocities
        navsense:own_hull | flag | false | true: rays hit the own model
        navsense:propagation | flag | true | travel time of sound
    """,
    "arrangement": """
        @degrees | flag | false | unit of the angles
        beam | element | required | three or more
    """,
    "beam of gz:dvl": """
        @id | whole number | from 0 | number of the beam
        aperture | number | 90 degrees | full width
        rotation | number | 0 | azimuth
        tilt | number | 0 | from down
    """,
    "tracking": """
        bottom_mode | element | never | bottom track
        water_mass_mode | element | never | water track
    """,
    "bottom_mode": """
        when | `never`, `always` or `best` | `always` | when the track is used
        noise | element | none | m/s
    """,
    "water_mass_mode": """
        when | `never`, `always` or `best` | `always` | when the track is used
        noise | element | none | m/s
        water_velocity | element | required | columns of the current
        boundaries | element | | of the layer
        bins | whole number | 5 | samples in the layer
    """,
    "water_velocity": """
        x | text | | column of the table of the world
        y | text | | column of the table of the world
        z | text | | column of the table of the world
    """,
    "boundaries": """
        near | number ≥ 0 | 0.2 of the maximum range | m
        far | number > 0 | 0.8 of the maximum range | m
    """,
}
