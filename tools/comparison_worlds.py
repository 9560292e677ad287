"""Worlds in SDF that together use every sensor and every random process. Other tools run them; this one has no output.

`write_worlds(FOLDER)` writes one file per world and returns the paths by name. The texts use only elements that a user
writes, so they stay valid when Python names change.
"""

from __future__ import annotations

from pathlib import Path

SEABED = """
    <model name="seabed"><static>true</static><link name="ground"><collision name="plane">
      <pose>0 0 -20 0.05 -0.03 0</pose><geometry><plane><normal>0 0 1</normal></plane></geometry>
    </collision></link></model>"""

SURROUNDINGS = """
    <spherical_coordinates>
      <surface_model>EARTH_WGS84</surface_model><world_frame_orientation>ENU</world_frame_orientation>
      <latitude_deg>47.4</latitude_deg><longitude_deg>8.5</longitude_deg><elevation>12</elevation>
      <heading_deg>30</heading_deg>
    </spherical_coordinates>
    <navsense:gravity model="WGS84"/>
    <navsense:magnetic_field model="WMM2025" date="2027.34"/>
    <physics name="step" type="ignored"><max_step_size>0.005</max_step_size></physics>
    <navsense:water surface="0">
      <point depth="0" temperature="290" salinity="33.5"/><point depth="50" temperature="280" salinity="35"/>
    </navsense:water>
    <navsense:signal name="temperature"><point time="0">285</point><point time="9">305</point></navsense:signal>
    <navsense:signal name="motor_current"><point time="0">1</point><point time="9">9</point></navsense:signal>"""

CURRENT = """
    <navsense:current><stratified outside="hold">
      <layer depth="0">0.3 -0.2 0</layer><layer depth="15">0.1 0.4 0.02</layer>
    </stratified></navsense:current>"""

MOTION = """
      <navsense:motion loop="true">
        <navsense:waypoint time="0">0 0 -5 0.1 -0.2 0</navsense:waypoint>
        <navsense:waypoint time="0.9">1.5 0.6 -5.5 -0.2 0.1 0.6</navsense:waypoint>
        <navsense:waypoint time="1.7">2.2 -0.8 -4.6 0.2 0.2 1.1</navsense:waypoint>
        <navsense:waypoint time="2.6">0.6 -1.4 -5.2 0.1 -0.2 0.5</navsense:waypoint>
        <navsense:waypoint time="3.5">0 0 -5 0.1 -0.2 0</navsense:waypoint>
      </navsense:motion>"""


def noise(size: float, kind: str = "gaussian") -> str:
    """Return a noise of the given size (in the channel's unit) in which every term acts."""
    return f"""<noise type="{kind}"><mean>{0.3 * size}</mean><stddev>{size}</stddev>
      <bias_mean>{0.2 * size}</bias_mean><bias_stddev>{2 * size}</bias_stddev>
      <dynamic_bias_stddev>{size}</dynamic_bias_stddev>
      <dynamic_bias_correlation_time>20</dynamic_bias_correlation_time><precision>{0.1 * size}</precision>
      <navsense:noise><noise_density>{0.1 * size}</noise_density><bias_instability>{0.2 * size}</bias_instability>
        <random_walk>{0.1 * size}</random_walk><scale_factor>1e-3</scale_factor>
        <scale_factor_stddev>5e-4</scale_factor_stddev>
        <temperature_coefficient>{0.01 * size}</temperature_coefficient>
        <scale_temperature_coefficient>1e-5</scale_temperature_coefficient>
        <outlier_probability>0.02</outlier_probability><outlier_stddev>{10 * size}</outlier_stddev>
      </navsense:noise></noise>"""


def triad(name: str, size: float, kind: str = "gaussian") -> str:
    """Return an element with a noise for each of three axes."""
    return f"<{name}>" + "".join(f"<{axis}>{noise(size, kind)}</{axis}>" for axis in "xyz") + f"</{name}>"


def axes(size: float, kind: str = "gaussian") -> str:
    """Return the three axes of a magnetometer."""
    return "".join(f"<{axis}>{noise(size, kind)}</{axis}>" for axis in "xyz")


def plain(stddev: float) -> str:
    """Return white noise with a constant bias."""
    return f'<noise type="gaussian"><stddev>{stddev}</stddev><bias_stddev>{2 * stddev}</bias_stddev></noise>'


DVL = f"""<dvl><beams angle_deg="30" width_deg="4" rings="1"/><min>0.5</min><max>80</max>
  <bottom_track when="always">{plain(0.002)}<per_speed>0.001</per_speed><long_term_scale>0.001</long_term_scale>
    <long_term_offset>0.001</long_term_offset></bottom_track>
  <water_track when="always">{plain(0.004)}<layer near="2" far="9" minimum_size="2"/></water_track>
  <range>{plain(0.02)}</range><sound speed="1500"/><misalignment_deg>0 0 0.3</misalignment_deg>
  <misalignment_stddev_deg>0.1</misalignment_stddev_deg><error_velocity_limit>0.3</error_velocity_limit>
  <dropout_probability>0.05</dropout_probability><reacquisition_time>0.2</reacquisition_time>
  <strength level="90" absorption="0.04" correlation="0.9" threshold="6" slope="1"/>
  <processing_time>0.01</processing_time><long_term acceleration_density="0.02" stddev="0.002" scale="0.001"/></dvl>"""

ADCP = """<adcp><beams angle_deg="30" width_deg="2"/><cells count="8" size="1" blanking="0.88" samples="3"/>
  <pings>4</pings><bottom_pings>4</bottom_pings><max>40</max>
  <profile stddev="0.015" long_term_scale="0.003" long_term_offset="0.003"/>
  <bottom stddev="0.005" long_term_scale="0.002" long_term_offset="0.001"/><range_stddev>0.1</range_stddev>
  <sound speed="1500"/><coordinates>instrument</coordinates><error_velocity_limit>2</error_velocity_limit></adcp>"""

GAZEBO_DVL = """<gz:dvl><type>phased_array</type>
  <arrangement degrees="true">
    <beam id="1"><aperture>2.1</aperture><rotation>45</rotation><tilt>30</tilt></beam>
    <beam id="2"><aperture>2.1</aperture><rotation>135</rotation><tilt>30</tilt></beam>
    <beam id="3"><aperture>2.1</aperture><rotation>-45</rotation><tilt>30</tilt></beam>
    <beam id="4"><aperture>2.1</aperture><rotation>-135</rotation><tilt>30</tilt></beam>
  </arrangement>
  <tracking><bottom_mode><when>best</when><noise type="gaussian"><stddev>0.005</stddev></noise></bottom_mode></tracking>
  <maximum_range>80</maximum_range><minimum_range>0.1</minimum_range></gz:dvl>"""

SENSORS = {
    "imu": (
        "imu",
        200.0,
        (
            f"<imu>{triad('angular_velocity', 1e-3)}{triad('linear_acceleration', 1e-2)}"
            "<navsense:bandwidth>47</navsense:bandwidth><navsense:earth_rotation>true</navsense:earth_rotation>"
            "<navsense:vibration><frequency>130</frequency><phase>0</phase>"
            "<linear_acceleration>1 2 3</linear_acceleration>"
            "<angular_velocity>0.01 0 0</angular_velocity></navsense:vibration>"
            "<navsense:angular_velocity_misalignment>1e-3 0 0 0 0 2e-3</navsense:angular_velocity_misalignment>"
            "<navsense:g_sensitivity>1e-4 0 0 0 1e-4 0 0 0 1e-4</navsense:g_sensitivity></imu>"
        ),
    ),
    "imu_averaged": (
        "imu",
        100.0,
        (
            f"<imu>{triad('angular_velocity', 1e-3, 'gaussian_quantized')}"
            f"{triad('linear_acceleration', 1e-2)}<navsense:averaged>true</navsense:averaged></imu>"
        ),
    ),
    "magnetometer": (
        "magnetometer",
        50.0,
        (
            f"<magnetometer>{axes(2e-7, 'gaussian_quantized')}<navsense:hard_iron>3e-6 -2e-6 4e-6</navsense:hard_iron>"
            "<navsense:soft_iron>1.1 0 0 0 0.95 0 0 0 0.9</navsense:soft_iron>"
            "<navsense:motor_current>2e-7 0 -1e-7</navsense:motor_current></magnetometer>"
        ),
    ),
    "altimeter": (
        "altimeter",
        20.0,
        (
            '<altimeter><navsense:reference period="0.7">initial</navsense:reference>'
            f"<vertical_position>{noise(0.3)}</vertical_position>"
            f"<vertical_velocity>{noise(0.05)}</vertical_velocity></altimeter>"
        ),
    ),
    "air_pressure": ("air_pressure", 25.0, f"<air_pressure><pressure>{noise(3.0)}</pressure></air_pressure>"),
    "navsat": (
        "navsat",
        10.0,
        (
            f"<navsat><position_sensing><horizontal>{noise(1.5)}</horizontal><vertical>{noise(3.0)}</vertical>"
            f"</position_sensing><velocity_sensing><horizontal>{noise(0.05)}</horizontal>"
            f"<vertical>{noise(0.1)}</vertical></velocity_sensing></navsat>"
        ),
    ),
    "depth": (
        "depth",
        20.0,
        (
            f"<depth><pressure>{noise(30.0, 'gaussian_quantized')}</pressure><formula>unesco</formula>"
            "<surface_pressure>101325</surface_pressure></depth>"
        ),
    ),
    "range": (
        "range",
        20.0,
        (
            "<range><min>0.5</min><max>100</max><resolution>0.01</resolution>"
            f'{noise(0.05)}<beam width_deg="10" rings="3"><axis>0 0 -1</axis></beam><sound speed="1500"/></range>'
        ),
    ),
    "dvl": ("dvl", 8.0, DVL),
    "adcp": ("adcp", 4.0, ADCP),
    "dvl_gazebo": ("custom", 8.0, GAZEBO_DVL),
    "camera": (
        "camera",
        30.0,
        "<camera><horizontal_fov>1.2</horizontal_fov><image><width>640</width><height>480</height></image></camera>",
    ),
}
"""Name of a world -> type of its sensor, rate (Hz), element."""

GRADES = ("RTC crystal", "TCXO", "precision TCXO", "OCXO", "rubidium", "CSAC")

CLOCKS = {
    "white": '<noise type="gaussian"><mean>1e-6</mean><stddev>2e-6</stddev></noise>',
    "drift": '<noise type="gaussian"><stddev>2e-6</stddev><bias_stddev>1e-3</bias_stddev>'
    "<dynamic_bias_stddev>1e-5</dynamic_bias_stddev>"
    "<dynamic_bias_correlation_time>50</dynamic_bias_correlation_time></noise>",
    "quantized": '<noise type="gaussian_quantized"><stddev>2e-6</stddev><precision>1e-6</precision></noise>',
    **{
        grade.replace(" ", "_"): f'<noise type="gaussian"><stddev>2e-7</stddev></noise><navsense:oscillator '
        f'grade="{grade}"/>'
        for grade in GRADES
    },
    "oscillator": '<navsense:oscillator grade="TCXO"><frequency>2e-6</frequency><ageing per="year">1e-6</ageing>'
    '<temperature signal="temperature"/></navsense:oscillator>',
    "disciplined": '<noise type="gaussian"><stddev>2e-6</stddev></noise><navsense:oscillator grade="TCXO"/>'
    "<navsense:discipline><interval>1</interval><stddev>3e-8</stddev></navsense:discipline>",
    "monotonic": '<noise type="gaussian"><stddev>5e-3</stddev></noise><navsense:monotonic>true</navsense:monotonic>',
    "step": '<noise type="gaussian"><stddev>2e-6</stddev></noise>'
    '<navsense:faults><fault kind="step" start="0.4" end="1.3">0.5</fault></navsense:faults>',
}

_WANDER = """<speed mean="0.3" stddev="0.1" correlation_time="6" minimum="0" maximum="0.5"/>
      <horizontal_angle degrees="true" mean="40" stddev="10" correlation_time="36"/>
      <vertical_angle mean="0.05" density="0.02"/>"""

CURRENTS = {
    "uniform": "<uniform>0.1 0.2 0</uniform>",
    "gauss_markov": f'<gauss_markov name="wander">{_WANDER}</gauss_markov>',
    "stratified": '<stratified name="layers" outside="hold"><layer depth="0">0.5 0 0</layer>'
    '<layer depth="8">0.1 0.1 0</layer><layer depth="20">0 0.3 0</layer>'
    '<speed stddev="0.05" correlation_time="6"/><direction stddev="0.1" correlation_time="30"/></stratified>',
    "tidal": '<tidal flood_direction_deg="255" ebb_direction_deg="69">'
    '<constituent name="M2" amplitude="0.55" phase_deg="7.2"/></tidal>',
    "ellipses": '<boundary_layer bed="-20" thickness="18"><tidal_ellipses mean="0.02 0.01 0">'
    '<ellipse name="M2" major="0.34" minor="0.07" direction_deg="25" phase_deg="110"/></tidal_ellipses>'
    "</boundary_layer>",
    "profile": '<profile outside="hold"><factor depth="0">1</factor><factor depth="10">0.5</factor>'
    "<uniform>0.4 0.1 0</uniform></profile>",
    "sum": f'<uniform>0.1 0 0</uniform><gauss_markov name="one">{_WANDER}</gauss_markov>'
    f'<gauss_markov name="two">{_WANDER}</gauss_markov>',
}

UUV_CURRENT = """
    <plugin name="underwater_current_plugin" filename="libuuv_underwater_current_ros_plugin.so">
      <namespace>hydrodynamics</namespace>
      <constant_current><topic>current_velocity</topic>
        <velocity><mean>0.4</mean><min>0</min><max>2</max><mu>0.01</mu><noiseAmp>0.1</noiseAmp></velocity>
        <horizontal_angle><mean>0.3</mean><min>-3</min><max>3</max><mu>0.01</mu><noiseAmp>0.2</noiseAmp>
        </horizontal_angle>
        <vertical_angle><mean>0.1</mean><min>-1</min><max>1</max><mu>0.02</mu><noiseAmp>0.1</noiseAmp></vertical_angle>
      </constant_current>
    </plugin>"""

FAULTS = {
    "dropout_by_chance": ("imu", "<dropout_rate>2</dropout_rate><dropout_duration>0.2</dropout_duration>"),
    "stuck_by_chance": ("imu", "<stuck_rate>2</stuck_rate><stuck_duration>0.2</stuck_duration>"),
    "both_by_chance": (
        "dvl",
        (
            "<dropout_rate>1</dropout_rate><dropout_duration>0.3</dropout_duration>"
            "<stuck_rate>1</stuck_rate><stuck_duration>0.3</stuck_duration>"
        ),
    ),
    "dropout": ("imu", '<fault kind="dropout" start="0.5" end="0.9"/>'),
    "stuck": ("magnetometer", '<fault kind="stuck" start="0.5" end="0.9"/>'),
    "bias": ("imu", '<fault kind="bias" start="0.5" end="1.2" array="angular_velocity">0 0 0.01</fault>'),
    "spike": (
        "imu",
        '<fault kind="spike" start="0.3" end="1.5" period="0.2" array="linear_acceleration">5</fault>',
    ),
    "beam_bias": ("dvl", '<fault kind="bias" start="0.4" end="1.4" array="beam_velocity">0.1 0 0 0</fault>'),
    "lost_lock": ("dvl", '<fault kind="lost_lock" start="0.5" end="1.1"/>'),
    "adcp_lost_lock": ("adcp", '<fault kind="lost_lock" start="0.5" end="1.1"/>'),
    "pressure_bias": ("depth", '<fault kind="bias" start="0.4" end="1.4" array="pressure">900</fault>'),
}
"""Name -> the sensor of `SENSORS` that has these faults, and the content of `<navsense:faults>`."""

LATENCIES = {
    "fixed": "<fixed>0.06</fixed>",
    "random": "<fixed>0.05</fixed><mean>0.02</mean><stddev>0.01</stddev>",
}

PARTS = {
    "imu": (
        "adis16460",
        "bmi088",
        "bmi270",
        "euroc",
        "hg1700",
        "hg9900",
        "icm-42688-p",
        "mpu-6000",
        "mti-1",
        "mti-300",
        "stim300",
    ),
    "magnetometer": ("bmm350", "lis3mdl", "mmc5983ma", "rm3100"),
    "air_pressure": ("bme280", "bmp388", "lps22hb", "ms5611"),
    "depth": ("bar30",),
    "dvl": ("a50", "dvl1000", "dvl500", "explorer-1000", "explorer-4000", "pathfinder", "syrinx", "whn600"),
}
"""Type of sensor -> parts of the catalogue."""

PART_ELEMENTS = {
    "depth": "<depth><formula>unesco</formula></depth>",
    "dvl": f'<dvl><bottom_track when="always">{plain(0.002)}</bottom_track></dvl>',
}
"""Type -> what a sensor needs besides its part."""

VERSIONS = ("1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11", "1.12")


def sensor(name: str, extra: str = "", clock: str = "") -> str:
    """Return the `<sensor>` of `SENSORS` with this name."""
    kind, rate, element = SENSORS[name]
    custom = ' gz:type="dvl"' if kind == "custom" else ""
    named = f"<clock>{clock}</clock>" if clock else ""
    return f"""
        <sensor name="{name}" type="{kind}"{custom}><pose>0.3 -0.2 0.1 0.05 0.1 -0.7</pose>
          <update_rate>{rate}</update_rate>{named}{extra}{element}</sensor>"""


def part_sensor(kind: str, part: str) -> str:
    """Return a `<sensor>` with the noise of a part of the catalogue."""
    return f"""
        <sensor name="{kind}" type="{kind}"><update_rate>8</update_rate>
          <navsense:part>{part}</navsense:part>{PART_ELEMENTS.get(kind, "")}</sensor>"""


def world(sensors: str, *, clocks: str = "", extra: str = CURRENT, version: str = "1.9", motion: str = MOTION) -> str:
    """Return a world with one robot that carries the given sensors and clocks."""
    return f"""<?xml version="1.0"?>
<sdf version="{version}" xmlns:navsense="https://navsense.org/sdf" xmlns:gz="http://gazebosim.org/schema">
  <world name="sea">{SURROUNDINGS}{extra}{SEABED}
    <model name="robot"><pose>0 0 -5 0.1 -0.2 0</pose>{motion}
      <link name="base"><pose>0.1 0 0 0 0 0</pose>{clocks}{sensors}</link>
    </model>
  </world>
</sdf>
"""


def clock(name: str, content: str) -> str:
    """Return a `<clock>`."""
    return f'<clock name="{name}">{content}</clock>'


def list_worlds() -> dict[str, str]:
    """Return the text of each world by name."""
    drift = clock("computer", CLOCKS["drift"])
    texts = {f"sensor/{name}": world(sensor(name, clock="computer"), clocks=drift) for name in SENSORS}
    # Older versions have no camera. Without it, a recording of all sensors has the same topics in every version.
    everything = "".join(sensor(name, clock="computer") for name in SENSORS if name != "camera")
    texts["sensor/all"] = world(everything, clocks=drift)
    two = sensor("imu", clock="one") + sensor("magnetometer", clock="one")
    texts |= {f"clock/{name}": world(two, clocks=clock("one", content)) for name, content in CLOCKS.items()}
    flow = sensor("dvl") + sensor("adcp")
    texts |= {
        f"current/{name}": world(
            flow,
            extra='<navsense:current topic="/current" rate="20" position="0 0 -10" start="2021-03-04T15:00Z">'
            f"{content}</navsense:current>",
        )
        for name, content in CURRENTS.items()
    }
    texts["current/uuv"] = world(flow, extra=UUV_CURRENT)
    texts |= {
        f"fault/{name}": world(sensor(kind, f"<navsense:faults>{content}</navsense:faults>"))
        for name, (kind, content) in FAULTS.items()
    }
    anomaly = '<fault kind="magnetic_anomaly" start="0.5" end="1.5">2e-6 0 1e-6</fault>'
    texts["fault/anomaly"] = world(
        sensor("magnetometer"), extra=f"{CURRENT}<navsense:faults>{anomaly}</navsense:faults>"
    )
    texts |= {
        f"latency/{name}": world(
            "".join(sensor(kind, f"<navsense:latency>{content}</navsense:latency>") for kind in ("imu", "dvl"))
        )
        for name, content in LATENCIES.items()
    }
    texts |= {f"part/{part}": world(part_sensor(kind, part)) for kind, parts in PARTS.items() for part in parts}
    texts |= {
        f"version/{version}": world(sensor("imu") + sensor("magnetometer"), version=version) for version in VERSIONS
    }
    return texts


def write_worlds(folder: Path) -> dict[str, Path]:
    """Write each world below a folder. Return the paths by name."""
    paths = {}
    for name, text in list_worlds().items():
        path = folder / f"{name}.sdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths[name] = path
    return paths
