"""Type, default and meaning of the elements and attributes of SDF that are not fields of a dataclass.

One line per child or attribute (`@`): name | type | default | meaning with unit. `tools/reference.py` prints them, and
fails if a name is missing here or is not in the schema.
"""

from __future__ import annotations

POSE = "pose | `x y z roll pitch yaw` | 0 | m, rad; see [pose](#pose)"
NAME = "@name | text | required | unique among its siblings"
FILE_NAME = "@filename | text | required | selects this plug-in"
PLUGIN = f"@name | text | | not used\n{FILE_NAME}"
SENSOR_PLUGIN = f"@name | text | required | name of the sensor\n{FILE_NAME}"

CURRENTS = """uniform | three numbers | | m/s to the east, north and up
profile | element | | currents that change with depth
tidal | element | | constituents of a tide
tidal_ellipses | element | | constituents as ellipses
stratified | element | | velocity by depth, interpolated
boundary_layer | element | | slows the water near the bed
gauss_markov | element | | random current
grid | element | | table of velocities by position and time
replay | element | | recorded current"""

SENSOR_ELEMENTS = """clock | text | true time | clock of the sensor
navsense:clock | text | true time | another name of `clock`
navsense:latency | element | none | see [latency](#navsenselatency)
navsense:faults | element | none | of this sensor
navsense:part | text | none | part of the catalogue
navsense:fidelity | `physical` or `classic` | of the world | of this sensor"""

COMMON = {
    "always_on": ("flag", "true", "false: off until it is switched on"),
    "alwaysOn": ("flag", "true", "another name of `always_on`"),
    "is_on": ("flag", "true", "another name of `always_on`"),
    "navsense:switch": ("`on` or `off`", "none", "see [switch](#navsenseswitch)"),
}
"""Rows of elements that every plug-in of a sensor has: type, default, meaning."""

UUV_SENSOR = f"""{SENSOR_PLUGIN}
robot_namespace | text | `--namespace` | first part of the topic
robotNamespace | text | | another name of `robot_namespace`
sensor_topic | text | default of a sensor | rest of the topic
link_name | text | required | link of the sensor
update_rate | number ≥ 0 | 30 | Hz"""

UUV_NOISE = """noise_amplitude | number ≥ 0 | 1; 0 under classic | factor of all deviations and densities
enable_local_ned_frame | flag | true | axes of the link, rotated by 180 degrees about x"""

UUV_CURRENT = f"""
{PLUGIN}
namespace | text | | first part of the topic
constant_current | element | required | see [constant_current](#constant_current)
"""

EXTENSIONS = """clock | text | | name of a clock
navsense:clock | text | | the same
navsense:fidelity | `physical` or `classic` | of the world | of the sensor
navsense:latency | element | none | time to arrival
navsense:faults | element | none | fault injection
navsense:part | text | none | part of the catalogue"""


def write_topic(
    tag: str, topic: str, rate: str = "", default_rate: str = "", namespace: str = "robotNamespace", link: str = ""
) -> str:
    """Return the rows of a plug-in for its link, namespace, topic and rate."""
    rows = [f"{namespace} | text | | first part of the topic", f"{tag} | text | `{topic}` | rest of the topic"]
    if rate:
        rows.append(f"{rate} | number ≥ 0 | {default_rate} | Hz; 0: each step of the physics")
    if link:
        rows.insert(0, link)
    return "\n".join(rows)


def write_error_model(unit: str, prefix: str = "", *, has_scale: bool = True) -> str:
    """Return the rows of hector's error model; without `has_scale` those of a GPS."""
    tags = ("Offset", "Drift", "DriftFrequency", "GaussianNoise", "ScaleError")
    offset, drift, frequency, noise, scale = (prefix + tag if prefix else tag[0].lower() + tag[1:] for tag in tags)
    factor = f"\n        {scale} | one or three numbers | 1 | factor; `scale_factor` is 1 less" if has_scale else ""
    return f"""{offset} | one or three numbers | 0 | {unit}; `mean`
        {drift} | one or three numbers ≥ 0 | 0 | {unit}, stationary deviation of the dynamic bias
        {frequency} | one or three numbers ≥ 0 | 1/3600 | Hz, reciprocal of the correlation time; 0: constant
        {noise} | one or three numbers ≥ 0 | 0 | {unit}; `stddev`{factor}"""


HECTOR = f"""{SENSOR_PLUGIN}
        bodyName | text | canonical link | link of the sensor
        frameId | text | the link | frame of the messages
        {EXTENSIONS}"""

ROTORS_LINK = "linkName | text | required | link of the sensor"

ROTORS_IMU = """gyroscopeNoiseDensity | number ≥ 0 | 3.3936e-4 | rad/s/√Hz, two-sided
        gyroscopeRandomWalk | number ≥ 0 | 3.8785e-5 | rad/s/√s, driving density of the bias
        gyroscopeBiasRandomWalk | number ≥ 0 | | another name of `gyroscopeRandomWalk`
        gyroscopeBiasCorrelationTime | number ≥ 0 | 1000 | s
        gyroscopeTurnOnBiasSigma | number ≥ 0 | 0.0087266 | rad/s, deviation of the turn-on bias
        accelerometerNoiseDensity | number ≥ 0 | 0.004 | m/s²/√Hz, two-sided
        accelerometerRandomWalk | number ≥ 0 | 0.006 | m/s²/√s, driving density of the bias
        accelerometerBiasCorrelationTime | number ≥ 0 | 300 | s
        accelerometerTurnOnBiasSigma | number ≥ 0 | 0.196 | m/s², deviation of the turn-on bias"""

ROS2 = """ros | element | | namespace and remapping of `~/out`: the topic
        frame_name | text | frame of the sensor | frame of the messages"""

TEXTS: dict[str, str] = {
    "sdf": """
        @version | text | required | 1.4 to 1.12
        world | element | | see [world](#world); or one `<model>`
        model | element | | see [model](#model)
        include | element | | see [include](#include); instead of `<model>`
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
        elevation | number | 0 | m above the ellipsoid
        heading_deg | number | 0 | degrees counter-clockwise from east to x
        navsense:geoid | element | elevation is above sea level | mean sea level, for the barometer
    """,
    "navsense:geoid": """
        @file | path | required | grid in GeographicLib's PGM format, such as `egm96-5.pgm`
        @interpolation | `cubic` or `bilinear` | `cubic` | between the points of the grid
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
    "navsense:current": f"""
        {CURRENTS}
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
        experimental:params | element | | changes to the included model
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
        plugin | element | | any number; see [plug-ins of sensors](#plug-ins-of-sensors)
        navsense:motion | element | none | motion of the canonical link
    """,
    "navsense:motion": """
        @file | path | | motion log, velocity commands or recording
        @bandwidth | number > 0 | none | Hz; smooths a log
        @max_acceleration | number > 0 | of the drive | m/s^2; limits velocity commands
        @max_angular_acceleration | number > 0 | of the drive | rad/s^2; limits velocity commands
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
        @type | joint type of SDF | required | position 0, or a log of positions
        parent | text | required | link, frame or `world`
        child | text | required | link or frame
        {POSE}
        axis | element | | axis of a joint that a log moves
        axis2 | element | | checked, without effect
    """,
    "axis, axis2": """
        xyz | three numbers | 0 0 1 | unit vector
        limit | element | | see [limit](#limit)
        mimic | element | | see [mimic](#mimic)
    """,
    "mimic": """
        @joint | text | required | joint that this axis follows
        @axis | `axis` | `axis` | axis of that joint
        multiplier | number | 1 | position per position of that joint
        offset | number | 0 | rad or m, added to the position
        reference | number | 0 | rad or m, subtracted from that joint's position
    """,
    "limit": """
        lower | number or inf | none | rad or m; a log below it gives a warning
        upper | number or inf | none | rad or m; a log above it gives a warning
    """,
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
        visualize | flag | false | beams of range sensors, DVLs and ADCPs as markers
        frame_id | text | full name of the sensor | frame of the messages
        gz_frame_id | text | | older form of `<frame_id>`
        ignition_frame_id | text | | older form of `<frame_id>`
        clock | text | true time | clock of the stamps; `none`: true time
        navsense:clock | text | | the same
        navsense:fidelity | `physical` or `classic` | of the world | of this sensor
        always_on | flag | true | false: off until it is switched on
        navsense:switch | `on` or `off` | none | any number, each at a time
        navsense:part | text | none | part of the catalogue
        navsense:latency | element | none | time to arrival
        navsense:faults | element | none | fault injection
        TYPE | element | no errors | the type element, below
    """,
    "navsense:switch": "@time | number ≥ 0 | required | s, true time; acts from the next sample on",
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
    "custom_rpy": "@parent_frame | text | the sensor | `world` or a link; empty: the sensor",
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
    "camera": """
        @name | text | | of a camera of a `multicamera`
        horizontal_fov | number > 0 | 1.047 | rad, of a pinhole with square pixels
        image | element | 320 x 240 | size of the image
        lens | element | of the view | intrinsics and projection
        distortion | element | none | coefficients of the lens
        camera_info_topic | text | beside the image | topic of the messages
        optical_frame_id | text | frame of the sensor | frame of the messages: z along the axis
    """,
    "image of camera": """
        width | whole number ≥ 1 | 320 | px
        height | whole number ≥ 1 | 240 | px
    """,
    "lens": """
        intrinsics | element | of the view | focal lengths and principal point
        projection | element | the intrinsics | projection matrix of a stereo camera
    """,
    "intrinsics": """
        fx | = | = | px
        fy | = | = | px
        cx | = | = | px
        cy | = | = | px
    """,
    "projection": """
        p_fx | = | = | px
        p_fy | = | = | px
        p_cx | = | = | px
        p_cy | = | = | px
        tx | = | = | px; -fx times the baseline for the second camera
        ty | = | = | px
    """,
    "distortion": """
        k1 | = | = | radial
        k2 | = | = | radial
        k3 | = | = | radial
        p1 | = | = | tangential
        p2 | = | = | tangential
    """,
    "libgazebo_ros_camera.so": f"""
        {PLUGIN}
        robotNamespace | text | | first part of the topic
        cameraName | text | | middle of the topic
        cameraInfoTopicName | text | `camera_info` | last part of the topic
        frameName | text | frame of the sensor | frame of the messages
        updateRate | number ≥ 0 | 0 | Hz; 0: the rate of the sensor; the smaller rate applies
        focalLength | number | of the view | px; 0: the default
        Cx | number | (width + 1) / 2 | px; 0: the default
        Cy | number | (height + 1) / 2 | px; 0: the default
        hackBaseline | number | 0 | m; the last column of P is -fx times it
        distortionK1 | number | 0 | radial
        distortionK2 | number | 0 | radial
        distortionK3 | number | 0 | radial
        distortionT1 | number | 0 | tangential
        distortionT2 | number | 0 | tangential
        autoDistortion | flag | false | true: the distortion of the camera
        ros | element | | ROS 2: namespace and remapping
        camera_name | text | name of the sensor | ROS 2: middle of the topic
        frame_name | text | frame of the sensor | ROS 2: frame of the messages
        focal_length | number | of the view | ROS 2: px
        cx | number | (width + 1) / 2 | ROS 2: px
        cy | number | (height + 1) / 2 | ROS 2: px
        hack_baseline | number | 0 | ROS 2: m
    """,
    "ros of a plug-in of ROS 2": """
        namespace | text | | first part of the topic
        remapping | text | | `OLD:=NEW`; any number
        argument | text | | `--ros-args --remap OLD:=NEW`; any number
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
        visualize | flag | false | true: as in `<sensor>`
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
        visualize | flag | false | true: as in `<sensor>`
    """,
    "water_mass_mode": """
        when | `never`, `always` or `best` | `always` | when the track is used
        noise | element | none | m/s
        water_velocity | element | required | columns of the current
        boundaries | element | | of the layer
        bins | whole number | 5 | samples in the layer
        visualize | flag | false | true: as in `<sensor>`
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
    "gauss_markov": """
        @name | text | `current` | selects the random stream; unique
        speed | element | required | m/s, see [speed](#speed)
        horizontal_angle | element | 0 | from east to north
        vertical_angle | element | 0 | upwards
    """,
    "speed": """
        @stddev | number | 0 | stationary standard deviation; with `correlation_time`, without `density`
    """,
    "horizontal_angle, vertical_angle, direction": """
        @stddev | number | 0 | stationary standard deviation; with `correlation_time`, without `density`
        @degrees | flag | false | unit of the angles
    """,
    "stratified": """
        @file | path | | CSV with the columns `depth,east,north`, with `up` or `down`
        @outside | `hold` or `error` | `hold` | above the first layer and below the last
        @name | text | `layers` | selects the random stream; unique
        layer | three numbers | | m/s to the east, north and up; or `file`
        speed | element | | random speed of each layer; with `direction`
        direction | element | | random direction of each layer, from north to east
    """,
    "layer of stratified, factor": "@depth | number | required | m below the surface",
    "tidal": """
        @file | path | | NOAA's annual table of a current station; or constituents
        @mean | number | 0 | m/s; not with `file`
        @flood_direction_deg | number | required | degrees from north to east
        @ebb_direction_deg | number | opposite to the flood | degrees from north to east
        constituent | element | | one or more
    """,
    "constituent": """
        @name | text | required | such as `M2`
        @amplitude | number | required | m/s
        @phase_deg | number | required | lag at Greenwich, degrees
        @speed_deg_per_hour | number | of the named constituent | degrees per hour
        @greenwich | flag | true | false: the phase is that at the start
    """,
    "tidal_ellipses": """
        @mean | three numbers | 0 0 0 | m/s to the east, north and up
        ellipse | element | | one or more
    """,
    "ellipse": """
        @name | text | required | such as `M2`
        @major | number | required | m/s
        @minor | number | required | m/s; negative: clockwise
        @direction_deg | number | required | of the major axis, degrees from north to east
        @phase_deg | number | required | lag at Greenwich, degrees
        @speed_deg_per_hour | number | of the named constituent | degrees per hour
        @greenwich | flag | true | false: the phase is that at the start
    """,
    "grid": """
        @file | path | required | CSV with a row for each point
        @space | `world`, `geodetic` or `ecef` | required | of the positions
        @units | `radians` or `degrees` | `radians` | of `geodetic` positions
        @x | text | required | column: x, or latitude
        @y | text | required | column: y, or longitude
        @z | text | required | column: z, or altitude
        @east | text | | column, m/s
        @north | text | | column, m/s
        @up | text | | column, m/s
        @time | text | steady | column, s
        @ignore_time | flag | false | true: the time has no effect
        @start | number | 0 | s; time in the table at the start of the run
        @outside | `error` or `hold` | `error` | beyond the horizontal points
        @outside_vertical | `error` or `hold` | `hold` | beyond the vertical points
        @outside_time | `error` or `hold` | `error` | beyond the times
    """,
    "replay": """
        @file | path | required | table or recording of a current
        @topic | text | | required if the recording has several
        @frame | `world`, `enu` or `ned` | of the header, else `world` | axes of the velocities
        @start | number | of the first row | s; time in the record at the start of the run
        @outside | `error` or `hold` | `error` | beyond the times
    """,
    "boundary_layer": f"""
        @bed | number | required | m, height in the world
        @thickness | number | required | m
        @exponent | number | 1/7 | of the power law
        {CURRENTS}
    """,
    "profile": f"""
        @outside | `hold` or `error` | `hold` | above the first factor and below the last
        factor | number | | factor at a depth
        {CURRENTS}
    """,
    "libgazebo_ros_range.so": f"""
        {PLUGIN}
        robotNamespace | text | `--namespace`, else that of its DVL | first part of the topic
        topicName | text | topic of the sensor | rest of the topic
        frameName | text | frame of the sensor | frame of the messages
        updateRate | number ≥ 0 | 0 | Hz; 0: the rate of the sensor; the smaller rate applies
        gaussianNoise | number ≥ 0 | 0 | m, standard deviation
        radiation | text | `ultrasound` | other values are infrared
        fov | number | of the rays | rad; has no effect
    """,
    "libgazebo_ros_imu.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("topicName", "/default_imu", "updateRate", "0")}
        bodyName | text | required | link of the sensor
        frameName | text | the link | frame of the messages
        xyzOffset | three numbers | 0 0 0 | m, position of the sensor in the link
        rpyOffset | three numbers | 0 0 0 | rad, rotation of the sensor in the link
        gaussianNoise | number ≥ 0 | 0 | rad/s and m/s²; `stddev` of all axes
        {EXTENSIONS}
    """,
    "libgazebo_ros_imu_sensor.so": f"""
        {PLUGIN}
        robotNamespace | text | name of the model | first part of the topic
        topicName | text | `imu_data` | rest of the topic
        updateRateHZ | number ≥ 0 | 1 | Hz; 0: the rate of the sensor; the smaller rate applies
        frameName | text | frame of the sensor | frame of the messages; Gazebo requires it in ROS 1
        gaussianNoise | number ≥ 0 | 0 | rad/s and m/s²; added to `stddev` of all axes
        initialOrientationAsReference | flag | false | true: `<orientation_reference_frame>` of the sensor applies
        initial_orientation_as_reference | flag | false | the same, of ROS 2
        {ROS2}
    """,
    "libgazebo_ros_gps_sensor.so": f"""
        {PLUGIN}
        {ROS2}
    """,
    "libgazebo_ros_ray_sensor.so": f"""
        {PLUGIN}
        {ROS2}
        output_type | text | | `sensor_msgs/Range`: all rays make one range
        radiation_type | text | infrared | `ultrasound`: the sensor is a sonar
        outputType | text | | another name of `output_type`, of ROS 1
        radiationType | text | infrared | another name of `radiation_type`, of ROS 1
        robotNamespace | text | | ROS 1: first part of the topic
        topicName | text | topic of the sensor | ROS 1: rest of the topic
        frameName | text | frame of the sensor | ROS 1: frame of the messages
    """,
    "libhector_gazebo_ros_imu.so": f"""
        {HECTOR}
        {write_topic("topicName", "imu", "updateRate", "0")}
        {write_error_model("m/s²", "accel")}
        {write_error_model("rad/s", "rate")}
        gaussianNoise | number ≥ 0 | 0 | deprecated; unless 0, `stddev` of all axes
        xyzOffset | three numbers | 0 0 0 | m, position of the sensor in the link
        rpyOffset | three numbers | 0 0 0 | rad, rotation of the sensor in the link
    """,
    "libhector_gazebo_ros_magnetic.so": f"""
        {HECTOR}
        {write_topic("topicName", "magnetic", "updateRate", "0")}
        {write_error_model("unit of `magnitude`")}
        magnitude | number > 0 | 1 | of the field, in the unit of the errors
        referenceHeading | number | 0, or that of the origin | degrees from north to x, clockwise
        useWorldSphericalCoordinates | flag | false | true: without an origin, y is north
        declination | number | 0 | degrees
        inclination | number | 60 | degrees
    """,
    "libhector_gazebo_ros_baro.so": f"""
        {HECTOR}
        {write_topic("topicName", "pressure_height", "updateRate", "0")}
        {write_error_model("m")}
        elevation | number | 0 | m; not added, with a warning
    """,
    "libhector_gazebo_ros_gps.so": f"""
        {HECTOR}
        {write_topic("topicName", "fix", "updateRate", "4")}
        {write_error_model("m", has_scale=False)}
        {write_error_model("m/s", "velocity", has_scale=False)}
        referenceLatitude | number | 49.9 | degrees; of a world without an origin
        referenceLongitude | number | 8.9 | degrees
        referenceAltitude | number | 0 | m
        referenceHeading | number | 0 | degrees from north to x, clockwise
        useWorldSphericalCoordinates | flag | false | true: the defaults are those of the world
    """,
    "libhector_gazebo_ros_sonar.so": f"""
        {PLUGIN}
        {write_topic("topicName", "sonar", "updateRate", "10")}
        {write_error_model("m")}
        frameId | text | `sonar_link` | frame of the messages
    """,
    "librotors_gazebo_imu_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("imuTopic", "imu", link=ROTORS_LINK)}
        {ROTORS_IMU}
        {EXTENSIONS}
    """,
    "librotors_gazebo_magnetometer_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("magnetometerTopic", "magnetic_field", link=ROTORS_LINK)}
        noiseNormal | one or three numbers ≥ 0 | 0 | T; `stddev`
        noiseUniformInitialBias | one or three numbers ≥ 0 | 0 | T, bound; `bias_stddev` is bound / √3
        refMagNorth | number | 2.1493e-5 | T; of a world without a field
        refMagEast | number | 8.15e-7 | T
        refMagDown | number | 4.2795e-5 | T
        {EXTENSIONS}
    """,
    "librotors_gazebo_pressure_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("pressureTopic", "air_pressure", link=ROTORS_LINK)}
        pressureVariance | number ≥ 0 | 0 | Pa², a variance
        referenceAltitude | number | 500 | m; `reference_altitude`
        {EXTENSIONS}
    """,
    "librotors_gazebo_gps_plugin.so": f"""
        {PLUGIN}
        {write_topic("gpsTopic", "gps")}
        linkName | text | frame of the sensor | frame of the messages
        horPosStdDev | number ≥ 0 | 3 | m; of a sensor without noise
        verPosStdDev | number ≥ 0 | 6 | m; of a sensor without noise
        horVelStdDev | number ≥ 0 | 0.1 | m/s; `stddev`
        verVelStdDev | number ≥ 0 | 0.1 | m/s; `stddev`
    """,
    "libgazebo_imu_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("imuTopic", "imu", link=ROTORS_LINK)}
        {ROTORS_IMU}
        {EXTENSIONS}
    """,
    "libgazebo_magnetometer_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("magTopic", "mag", "pubRate", "100")}
        linkName | text | canonical link | link of the sensor
        noiseDensity | number ≥ 0 | 4e-4 | gauss/√Hz, two-sided
        randomWalk | number ≥ 0 | 6.4e-6 | gauss/√s, driving density of the bias
        biasCorrelationTime | number ≥ 0 | 600 | s
        {EXTENSIONS}
    """,
    "libgazebo_barometer_plugin.so": f"""
        {SENSOR_PLUGIN}
        {write_topic("baroTopic", "baro", "pubRate", "50")}
        linkName | text | canonical link | link of the sensor
        baroDriftPaPerSec | number | 0 | Pa/s; has no effect, with a warning
        {EXTENSIONS}
    """,
    "libgazebo_gps_plugin.so": f"""
        {PLUGIN}
        {write_topic("topic", "topic of the sensor")}
        gpsNoise | flag | false | false: the other elements of the noise have no effect
        gpsXYNoiseDensity | number ≥ 0 | 2e-4 | m/√Hz
        gpsZNoiseDensity | number ≥ 0 | 4e-4 | m/√Hz
        gpsVXYNoiseDensity | number ≥ 0 | 0.2 | m/s/√Hz
        gpsVZNoiseDensity | number ≥ 0 | 0.4 | m/s/√Hz
        gpsXYRandomWalk | number ≥ 0 | 2 | m/√s, driving density of the bias, 60 s
        gpsZRandomWalk | number ≥ 0 | 4 | m/√s, driving density of the bias, 60 s
        homeLatitude | number | 47.397742 | degrees; of a world without an origin
        homeLongitude | number | 8.545594 | degrees
        homeAltitude | number | 488 | m
    """,
    "libuuv_gazebo_ros_subsea_pressure_plugin.so": f"""
        {UUV_SENSOR}
        standard_pressure | number ≥ 0 | 101.325 | kPa, assumed pressure of the air
        kPa_per_meter | number > 0 | 9.80638 | kPa/m, assumed weight of the water
        noise_sigma | number ≥ 0 | 0 | kPa; times `noise_amplitude`
        noise_amplitude | number ≥ 0 | 0 | factor of `noise_sigma`
        noise_stddev | number ≥ 0 | 0 | kPa, of earlier versions
        saturation | number > 0 | none | kPa; no effect under classic
    """,
    "libuuv_gazebo_ros_imu_plugin.so": f"""
        {UUV_SENSOR}
        {UUV_NOISE}
        gyroscope_noise_density | number ≥ 0 | 3.394e-4 | rad/s/√Hz, two-sided
        gyroscope_random_walk | number ≥ 0 | 3.879e-5 | rad/s²/√Hz
        gyroscope_bias_random_walk | number ≥ 0 | | the name in the code; has priority
        gyroscope_bias_correlation_time | number > 0 | 1000 | s
        gyroscope_turn_on_bias_sigma | number ≥ 0 | 8.727e-3 | rad/s, standard deviation
        accelerometer_noise_density | number ≥ 0 | 4e-3 | m/s²/√Hz, two-sided
        accelerometer_random_walk | number ≥ 0 | 6e-3 | m/s³/√Hz
        accelerometer_bias_correlation_time | number > 0 | 300 | s
        accelerometer_turn_on_bias_sigma | number ≥ 0 | 0.196 | m/s², standard deviation
        static_reference_frame | `world` or `world_ned` | `world` | frame of the orientation
        {SENSOR_ELEMENTS}
    """,
    "libuuv_gazebo_ros_magnetometer_plugin.so": f"""
        {UUV_SENSOR}
        {UUV_NOISE}
        intensity | number ≥ 0 | 1 | µT, of a world without a field
        reference_heading | number | π | rad, horizontal direction from x of the world
        declination | number | 0 | rad, subtracted from the heading
        inclination | number | π/3 | rad, below the horizon
        noise_xy | number ≥ 0 | 1 | µT, standard deviation of x and y
        noise_z | number ≥ 0 | 1.4 | µT, standard deviation of z
        turn_on_bias | number ≥ 0 | 2 | µT, standard deviation of each axis
        {SENSOR_ELEMENTS}
    """,
    "libuuv_gazebo_ros_gps_plugin.so": f"""
        {PLUGIN}
        robot_namespace | text | `--namespace` | first part of the topic and the frame
        robotNamespace | text | | another name of `robot_namespace`
        sensor_topic | text | topic of the sensor | rest of the topic
        horizontal_pos_std_dev | number ≥ 0 | of the sensor | m; a warning if the noise differs
        vertical_pos_std_dev | number ≥ 0 | of the sensor | m; a warning if the noise differs
    """,
    "libuuv_gazebo_ros_dvl_plugin.so": f"""
        {SENSOR_PLUGIN}
        robot_namespace | text | `--namespace`, else required | first part of the topics
        robotNamespace | text | | another name of `robot_namespace`
        sensor_topic | text | required | rest of the topic
        link_name | text | required | link of the DVL
        update_rate | number ≥ 0 | 30 | Hz
        noise_amplitude | number ≥ 0 | 0 | m/s, standard deviation of the noise
        noise_sigma | number ≥ 0 | 0 | m/s, standard deviation in the covariance
        enable_local_ned_frame | flag | true | axes of the link, rotated by 180 degrees about x
        static_reference_frame | text | `world` | `world_ned` is added to `/tf_static`; messages do not change
        navsense:fidelity | `physical` or `classic` | of the world | of this sensor
        navsense:bottom_track | element | no errors | as [bottom_track](#bottom_track); noise from the plug-in's element
        navsense:strength | element | none | as [strength](#strength-backscatter)
        navsense:long_term | element | none | as [long_term](#long_term)
        beam_link_name_0 | text | required | link with the range sensor of a beam
        beam_link_name_1 | text | required | link with the range sensor of a beam
        beam_link_name_2 | text | required | link with the range sensor of a beam
        beam_link_name_3 | text | required | link with the range sensor of a beam
        beam_topic_0 | text | required | topic of this range sensor
        beam_topic_1 | text | required | topic of this range sensor
        beam_topic_2 | text | required | topic of this range sensor
        beam_topic_3 | text | required | topic of this range sensor
    """,
    "libdsros_ros_dvl.so": f"""
        {PLUGIN}
        robotNamespace | text | name of the model | first part of the topics
        topicName | text | `/dvl` | topic; a leading slash excludes the namespace
        rangesTopicName | text | `/dvl_ranges` | topic of the ranges
        frameName | text | required | link whose axes the velocities have
        pointcloudFrame | text | required | link of the point cloud
        updateRateHZ | number ≥ 0 | 1 | Hz; the smaller of it and `<update_rate>`
        gaussianNoiseBeamVel | number ≥ 0 | 0 | m/s along a beam
        gaussianNoiseBeamWtrVel | number ≥ 0 | twice the above | m/s along a beam, through the water
        gaussianNoiseBeamRange | number ≥ 0 | 0 | m along a beam
        minRange | number ≥ 0 | required | m along a beam
        maxRange | number | required | m along a beam
        maxRangeDiff | number | required | m; has no effect
        beamAngleDeg | number | required | degrees from the axis
        beamWidthDeg | number | required | degrees, full width; no effect under classic
        beamAzimuthDeg1 | number | required | degrees, azimuth of a beam
        beamAzimuthDeg2 | number | required | degrees, azimuth of a beam
        beamAzimuthDeg3 | number | required | degrees, azimuth of a beam
        beamAzimuthDeg4 | number | required | degrees, azimuth of a beam
        pos_z_down | flag | required | true: beams along z of the sensor; false: along -z
        enableWaterTrack | flag | false | water track where the bottom track fails
        ocean_current_topic | text | `hydrodynamics/current_velocity` | the current is that of the world
        waterTrackBins | whole number | 1 | cells of the current profile
        currentProfileCoordMode | 0, 1, 2 or 3 | 0 | beam, instrument, ship or earth axes of the profile
        navsense:layer | element | the range of the beams | see [layer](#layer)
        navsense:cloud_points | whole number | 2 | points of each beam in the cloud
        navsense:bottom_track | element | no errors | as [bottom_track](#bottom_track); noise from the plug-in's element
        navsense:water_track | element | no errors | as [water_track](#water_track); noise from the plug-in's element
        navsense:strength | element | none | as [strength](#strength-backscatter)
        navsense:long_term | element | none | as [long_term](#long_term)
    """,
    "libuuv_underwater_current_ros_plugin.so": UUV_CURRENT,
    "libuuv_underwater_current_plugin.so": UUV_CURRENT,
    "libdave_ocean_current_plugin.so": f"""
        {PLUGIN}
        namespace | text | | first part of the topics
        constant_current | element | required | see [constant_current](#constant_current)
        transient_current | element | none | layers
        tidal_oscillation | element | none | tide
    """,
    "constant_current": """
        topic | text | `current_velocity` | topic of the recorded current
        velocity | element | 0 | m/s
        horizontal_angle | element | 0 | rad
        vertical_angle | element | 0 | rad
    """,
    "transient_current": """
        topic_stratified | text | `stratified_current_velocity` | topic of the current at the depths of the table
        databasefilePath | path | required | CSV table of layers
    """,
    "tidal_oscillation": """
        databasefilePath | path | | NOAA's annual table; or `harmonic_constituents`
        harmonic_constituents | element | | M2, S2 and N2
        mean_direction | element | required | of the flow
        world_start_time_GMT | element | required | date and time of the start of the run
    """,
    "harmonic_constituents": """
        M2 | element | | see [M2, S2, N2](#m2-s2-n2)
        S2 | element | | see [M2, S2, N2](#m2-s2-n2)
        N2 | element | | see [M2, S2, N2](#m2-s2-n2)
    """,
    "M2, S2, N2": """
        amp | number | required | m/s
        phase | number | required | lag at Greenwich, degrees
        speed | number | required | degrees per hour
    """,
    "mean_direction": """
        ebb | number | required | degrees from north to east
        flood | number | required | degrees from north to east
    """,
    "world_start_time_GMT": """
        year | whole number | required | of the date, UTC
        month | whole number | required | of the date, UTC
        day | whole number | required | of the date, UTC
        hour | whole number | 0 | of the time, UTC
        minute | whole number | 0 | of the time, UTC
    """,
    "gz-sim-environment-preload-system": f"""
        {PLUGIN}
        data | path | required | CSV with a row for each point
        dimensions | element | | see [dimensions](#dimensions)
    """,
    "dimensions": """
        ignore_time | flag | false | true: the time has no effect
        time | text | `t` | column, s
        space | element | | see [space](#space)
    """,
    "space": """
        @reference | `global`, `spherical` or `ecef` | `global` | of the positions
        @units | `radians` or `degrees` | `radians` | of `spherical` positions
        x | text | `x` | column: x, or latitude
        y | text | `y` | column: y, or longitude
        z | text | `z` | column: z, or altitude
    """,
    "drive": """
        @filename | text | required | selects the [commands](../how-to/velocity-commands.md#the-drive)
        @name | text | | the same, of a system of Gazebo
        topic | text | `cmd_vel` | topic of the velocity commands; Gazebo: `/model/NAME/cmd_vel`
        commandTopic | text | | the same, in gazebo_ros_pkgs
        robotNamespace | text | | first part of a relative topic
        ros | element | | ROS 2: `<namespace>`, and `<remapping>` of `cmd_vel`
        left_joint | text | | wheels; also `right_joint`, `leftFrontJoint`, `rear_left_joint` ...
        right_joint | text | | the model turns about the mean position of its wheels
        left_steering_joint | text | | the axle that steers is not that of the wheels
        right_steering_joint | text | | the same
        wheel_separation | number | | m, for the acceleration of the rims
        wheelSeparation | number | | the same
        wheel_base | number | 1 | m, of a vehicle that steers
        steering_limit | number | 0.5 | rad
        min_velocity | number | none | m/s and rad/s; also `min_linear_velocity`, `min_angular_velocity`
        max_velocity | number | none | the same with `max`
        min_acceleration | number | none | m/s^2 and rad/s^2; also `linear`, `angular`
        max_acceleration | number | none | the same with `max`
        max_wheel_acceleration | number | 0: none | m/s^2, of the rim of each wheel
        wheelAcceleration | number | 0: none | the same
    """,
    "gz-sim-hydrodynamics-system": """
        default_current | three numbers | 0 0 0 | m/s, in the world; without a table
        lookup_current_x | text | | column of the table
        lookup_current_y | text | | column of the table
        lookup_current_z | text | | column of the table
    """,
}
