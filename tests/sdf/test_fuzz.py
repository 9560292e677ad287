"""Any content of a file gives a world, or a navsense error with its location."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from navsense import sdf
from navsense.core.errors import NavsenseError

ROOT = Path(__file__).resolve().parents[3]
REAL = sorted((ROOT / "shared" / "data").glob("*/*.sdf"))

OWN = """<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
<world name="ocean"><physics><max_step_size>0.01</max_step_size></physics>
<magnetic_field>1e-5 0 -4e-5</magnetic_field><navsense:fidelity>classic</navsense:fidelity>
<frame name="start"><pose degrees="true">1 2 3 0 0 90</pose></frame>
<model name="auv" canonical_link="base"><pose relative_to="start">0 0 0 0 0 1</pose>
<navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0</navsense:waypoint>
<navsense:waypoint time="5">1 0 0 0 0 1</navsense:waypoint></navsense:motion>
<link name="base"><clock name="mcu"><noise type="gaussian"><mean>1e-3</mean><stddev>1e-4</stddev></noise></clock>
<sensor name="imu" type="imu"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 1</pose><update_rate>200</update_rate>
<clock>mcu</clock><topic>imu</topic><imu><orientation_reference_frame><localization>CUSTOM</localization>
<custom_rpy parent_frame="world">0 0 1</custom_rpy></orientation_reference_frame><angular_velocity><x>
<noise type="gaussian_quantized"><stddev>1e-3</stddev><precision>1e-4</precision><navsense:minimum>-5</navsense:minimum>
</noise></x></angular_velocity></imu></sensor>
<sensor name="mag" type="magnetometer"><frame_id>m</frame_id><magnetometer><x/></magnetometer></sensor></link>
<joint name="j" type="fixed"><parent>base</parent><child>arm</child></joint>
<link name="arm"><pose relative_to="base">0 0 1 0 0 0</pose></link></model></world></sdf>
"""

SURROUNDED = """<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf">
<world name="ocean"><spherical_coordinates><latitude_deg>36.8</latitude_deg><longitude_deg>-121.8</longitude_deg>
<elevation>-30</elevation><heading_deg>20</heading_deg></spherical_coordinates>
<navsense:magnetic_field model="WMM2025" date="2027.0"/><navsense:gravity model="WGS84"/>
<atmosphere type="adiabatic"><temperature>290</temperature><pressure>101000</pressure></atmosphere>
<navsense:dipole radius="0.3"><pose relative_to="wreck">0 0 1 0 0 0</pose><moment>0 0 1500</moment></navsense:dipole>
<navsense:signal name="load"><point time="0">1</point><point time="5">2</point></navsense:signal>
<navsense:signal name="sea">281.5</navsense:signal>
<frame name="wreck"><pose>3 4 -20 0 0 0</pose></frame></world></sdf>
"""

FLOWING = """<sdf version="1.12" xmlns:navsense="https://navsense.org/sdf">
<world name="ocean"><navsense:current topic="/flow" rate="5" position="0 0 -1" start="2021-03-04T15:00Z">
<uniform>0.1 0 0</uniform><gauss_markov name="w"><speed mean="0.3" stddev="0.1" correlation_time="60" minimum="0"/>
<horizontal_angle degrees="true" mean="40" density="0.1"/></gauss_markov><boundary_layer bed="-50" thickness="10">
<stratified outside="error"><layer depth="0">0.5 0 0</layer><layer depth="9">0.1 0 0</layer></stratified>
<tidal flood_direction_deg="255" ebb_direction_deg="69"><constituent name="M2" amplitude="0.5" phase_deg="7"/></tidal>
<tidal_ellipses mean="0.1 0 0"><ellipse name="S2" major="0.2" minor="0.1" direction_deg="3" phase_deg="7"/>
</tidal_ellipses></boundary_layer>
<profile><factor depth="1">2</factor><uniform>0 0.1 0</uniform></profile></navsense:current>
<plugin name="c" filename="libdave_ocean_current_plugin.so"><namespace>h</namespace><constant_current><topic>v</topic>
<velocity><mean>0.2</mean><max>2</max><mu>0.1</mu><noiseAmp>0.1</noiseAmp></velocity></constant_current>
<tidal_oscillation><harmonic_constituents><M2><amp>0.5</amp><phase>7</phase><speed>28.984104</speed></M2>
</harmonic_constituents><mean_direction><ebb>69</ebb><flood>255</flood></mean_direction><world_start_time_GMT><day>4</day>
<month>3</month><year>2021</year><hour>15</hour></world_start_time_GMT></tidal_oscillation></plugin>
<plugin name="p" filename="gz-sim-environment-preload-system"><data>no.csv</data><dimensions><time>t</time></dimensions>
</plugin></world></sdf>
"""

SONARS = "".join(
    f"""<link name="s{i}"><pose>0 0 0 0 1.1 {1.57 * i}</pose><sensor name="e" type="ray"><topic>a/t{i}</topic>
<ray><scan><horizontal><samples>3</samples><min_angle>-0.03</min_angle><max_angle>0.03</max_angle></horizontal></scan>
<range><min>0.7</min><max>90</max></range></ray></sensor></link>"""
    for i in range(4)
)

PINGING = f"""<sdf version="1.9" xmlns:navsense="https://navsense.org/sdf">
<world name="ocean"><model name="auv"><plugin name="d" filename="libuuv_gazebo_ros_dvl_plugin.so">
<robot_namespace>a</robot_namespace><sensor_topic>dvl</sensor_topic><link_name>base</link_name><is_on>true</is_on>
<update_rate>7</update_rate><noise_sigma>0.005</noise_sigma><noise_amplitude>0.004</noise_amplitude>
<beam_link_name_0>s0</beam_link_name_0><beam_topic_0>t0</beam_topic_0><beam_link_name_1>s1</beam_link_name_1>
<beam_topic_1>t1</beam_topic_1><beam_link_name_2>s2</beam_link_name_2><beam_topic_2>t2</beam_topic_2>
<beam_link_name_3>s3</beam_link_name_3><beam_topic_3>t3</beam_topic_3></plugin>
<link name="base"><sensor name="w" type="dsros_dvl"><update_rate>7</update_rate>
<plugin name="w" filename="libdsros_ros_dvl.so"><robotNamespace>b</robotNamespace><topicName>dvl</topicName>
<rangesTopicName>ranges</rangesTopicName><frameName>base</frameName><pointcloudFrame>s0</pointcloudFrame>
<updateRateHZ>7.0</updateRateHZ><gaussianNoiseBeamVel>0.005</gaussianNoiseBeamVel><minRange>0.7</minRange>
<gaussianNoiseBeamRange>0.1</gaussianNoiseBeamRange><maxRange>90</maxRange><maxRangeDiff>10</maxRangeDiff>
<beamAngleDeg>30</beamAngleDeg><beamWidthDeg>4</beamWidthDeg><beamAzimuthDeg1>-135</beamAzimuthDeg1>
<beamAzimuthDeg2>135</beamAzimuthDeg2><beamAzimuthDeg3>45</beamAzimuthDeg3><beamAzimuthDeg4>-45</beamAzimuthDeg4>
<pos_z_down>true</pos_z_down><enableWaterTrack>1</enableWaterTrack><navsense:cloud_points>2</navsense:cloud_points>
<navsense:layer near="1" far="24" minimum_size="8" samples="5" share="0.8"/></plugin></sensor></link>{SONARS}
</model></world></sdf>
"""

CONVERTED = """<sdf version="1.6"><world name="field"><model name="fly"><link name="base">
<sensor name="g" type="gps"><plugin name="g" filename="libgazebo_gps_plugin.so"><gpsNoise>1</gpsNoise>
<gpsXYRandomWalk>2</gpsXYRandomWalk><homeLatitude>47</homeLatitude></plugin></sensor>
<sensor name="r" type="gps"><plugin name="r" filename="librotors_gazebo_gps_plugin.so"><horPosStdDev>3</horPosStdDev>
</plugin></sensor><sensor name="i" type="imu"><imu><angular_velocity><x><noise type="gaussian"><stddev>0.1</stddev>
</noise></x></angular_velocity></imu><plugin name="i" filename="libgazebo_ros_imu_sensor.so"><topicName>i</topicName>
<updateRateHZ>10</updateRateHZ><gaussianNoise>0.1</gaussianNoise></plugin></sensor>
<sensor name="s" type="ray"><ray><scan><horizontal><samples>3</samples><min_angle>-1</min_angle><max_angle>1</max_angle>
</horizontal></scan><range><min>0.1</min><max>9</max></range><noise><type>gaussian</type><stddev>0.1</stddev></noise></ray>
<plugin name="s" filename="libhector_gazebo_ros_sonar.so"><drift>1</drift><updateRate>5</updateRate></plugin></sensor>
</link><plugin name="a" filename="libhector_gazebo_ros_imu.so"><accelDrift>1 2 3</accelDrift><rateOffset>1</rateOffset>
<accelDriftFrequency>0.1</accelDriftFrequency><rpyOffset>1 2 3</rpyOffset><updateRate>9</updateRate></plugin>
<plugin name="b" filename="libhector_gazebo_ros_magnetic.so"><magnitude>0.5</magnitude><inclination>60</inclination>
<gaussianNoise>0.1</gaussianNoise></plugin><plugin name="c" filename="libhector_gazebo_ros_gps.so"><drift>1 2 3</drift>
<referenceLatitude>49</referenceLatitude><referenceHeading>30</referenceHeading><topicName>/x/fix</topicName></plugin>
<plugin name="d" filename="librotors_gazebo_pressure_plugin.so"><linkName>base</linkName>
<pressureVariance>9</pressureVariance></plugin><plugin name="e" filename="libgazebo_magnetometer_plugin.so">
<noiseDensity>4e-4</noiseDensity><pubRate>50</pubRate></plugin><plugin name="f" filename="libgazebo_ros_imu.so">
<bodyName>base</bodyName><xyzOffset>0 0 1</xyzOffset><rpyOffset>0 1 0</rpyOffset></plugin></model></world></sdf>
"""

OLDER = """<sdf version="1.5">
<world name="ocean"><physics type="ode"><gravity>0 0 -9</gravity><magnetic_field>1e-5 0 0</magnetic_field></physics>
<model name="auv"><link name="arm::hand"><pose>1 0 0 0 0 0</pose></link>
<link name="base"><pose frame="arm::hand">0 1 0 0 0 0</pose><sensor name="imu" type="imu"><imu><topic>old</topic>
<noise><type>gaussian</type><rate><mean>0</mean><stddev>2e-4</stddev></rate><accel><bias_mean>0.1</bias_mean></accel>
</noise></imu></sensor></link><link name="arm::grip"/>
<joint name="arm::bend" type="revolute"><parent>arm::hand</parent><child>arm::grip</child>
<axis><xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame></axis></joint></model></world></sdf>
"""

ROBOT = """<robot name="auv" xmlns:navsense="https://navsense.org/sdf"><origin xyz="0 0 -5" rpy="0 0 1.5"/>
<link name="base"><inertial><mass value="1"/></inertial></link><link name="mast"/><link name="fin"/><link name="fin2"/>
<joint name="a" type="fixed"><parent link="base"/><child link="mast"/><origin xyz="1 0 0" rpy="0 0.5 0"/></joint>
<joint name="b" type="revolute"><parent link="base"/><child link="fin"/><axis xyz="0 1 0"/><limit lower="-1"/></joint>
<joint name="c" type="floating"><parent link="fin"/><child link="fin2"/><origin rpy="3 2 1"/></joint>
<transmission name="t"/><gazebo reference="a"><preserveFixedJoint>1</preserveFixedJoint></gazebo>
<gazebo><static>0</static><plugin name="p" filename="lib.so"/><navsense:motion><navsense:waypoint time="0">0 0 0 0 0 0
</navsense:waypoint><navsense:waypoint time="5">1 0 0 0 0 1</navsense:waypoint></navsense:motion></gazebo>
<gazebo reference="mast"><material>Red</material>
<clock name="mcu"><noise type="gaussian"><mean>1e-3</mean></noise></clock>
<sensor name="imu" type="imu"><pose frame="">0 0 0 0 0 1</pose><clock>mcu</clock><imu><topic>old</topic><noise>
<type>gaussian</type><rate><stddev>2e-4</stddev></rate></noise></imu></sensor></gazebo></robot>
"""

INCLUDING = """<sdf version="1.10"><world name="ocean"><frame name="dock"><pose>1 0 0 0 0 0</pose></frame>
<include><uri>part.sdf</uri><name>one</name><pose relative_to="dock">0 0 0 0 0 1</pose></include>
<include><uri>model://part</uri><name>two</name><pose degrees="true">0 0 0 0 0 90</pose>
<placement_frame>seat</placement_frame><plugin name="p" filename="lib.so"/></include>
<model name="ship"><include merge="true"><uri>part.sdf</uri><static>false</static></include>
<include><uri>deep.sdf</uri></include><include><uri>robot.urdf</uri></include>
<link name="deck"><pose relative_to="seat"/></link></model>
<frame name="f" attached_to="two::seat"/></world></sdf>
"""

PART = """<sdf version="1.7"><model name="part" canonical_link="core"><pose>0 0 1 0 0 0</pose>
<link name="core"><sensor name="mag" type="magnetometer"><pose relative_to="seat"/></sensor></link>
<frame name="seat" attached_to="core"><pose relative_to="__model__">0 1 0 0 0 0</pose></frame>
<joint name="j" type="fixed"><parent>world</parent><child>core</child></joint></model></sdf>
"""

DEEP = (
    '<sdf version="1.4"><model name="deep"><link name="l"/><include><uri>part/part.sdf</uri></include></model></sdf>\n'
)

CONFIG = '<model><name>part</name><sdf version="1.4">none.sdf</sdf><sdf version="1.7">part.sdf</sdf></model>\n'

HANGING = """<robot name="robot"><link name="a"/><link name="world"/>
<joint name="j" type="fixed"><parent link="world"/><child link="a"/></joint></robot>
"""

TREE = {"dive.sdf": INCLUDING, "part.sdf": PART, "deep.sdf": DEEP, "part/part.sdf": PART, "part/model.config": CONFIG}
TREE["robot.urdf"] = HANGING

TEXTS = [
    OWN,
    SURROUNDED,
    FLOWING,
    PINGING,
    CONVERTED,
    OLDER,
    ROBOT,
    *(path.read_text(encoding="utf-8") for path in REAL),
]
WORDS = sorted(
    set(
        re.findall(
            r"[\w:.-]+", OWN + SURROUNDED + FLOWING + PINGING + CONVERTED + OLDER + ROBOT + INCLUDING + PART + CONFIG
        )
    )
)
ODD = [
    "",
    "nan",
    "-1",
    "0",
    "1e999",
    "1e308",
    "-inf",
    "::",
    "__model__",
    "world",
    "\x00",
    "𝔘",
    "<",
    ">",
    "&",
    '"',
    "'",
    "]]>",
]


def read_error(path: Path, missing: str = "error") -> NavsenseError | None:
    try:
        sdf.load(path, missing=missing)
    except NavsenseError as error:
        return error
    return None


@pytest.fixture(scope="module")
def check_content(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], bool]:
    path = tmp_path_factory.mktemp("fuzz") / "any.sdf"

    def check(content: bytes) -> bool:
        path.write_bytes(content)
        error = read_error(path)
        if error is None:
            return True
        assert error.where is not None
        assert error.where.path == str(path)
        assert str(error).count("\n") == 0
        return False

    return check


def test_unmodified_texts_are_valid(check_content: Callable[[bytes], bool]) -> None:
    assert all(check_content(text.encode()) for text in (OWN, SURROUNDED, FLOWING, CONVERTED, OLDER, ROBOT))


@given(st.binary(max_size=300))
def test_any_bytes_give_a_world_or_an_error(check_content: Callable[[bytes], bool], content: bytes) -> None:
    check_content(content)


@given(st.text(max_size=300))
@example("<sdf version='1.9'><world name='a&#13;b'/></sdf>")
def test_any_text_gives_a_world_or_an_error(check_content: Callable[[bytes], bool], content: str) -> None:
    check_content(content.encode("utf-8", "replace"))


def damage_text(text: str, data: st.DataObject) -> str:
    """Return a text with other bytes in some positions."""
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(st.sampled_from(ODD + WORDS)) + text[end:]
    return text


def replace_values(text: str, data: st.DataObject) -> str:
    """Return a well-formed text with other values in texts and attributes."""
    places = [match.span(1) for match in re.finditer(r'(?:="|>)([^<>"&]+)(?="|<)', text)]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True))
    for start, end in sorted(chosen, reverse=True):
        word = data.draw(st.sampled_from([odd for odd in ODD if odd not in '<>&"\x00]]>'] + WORDS))
        text = text[:start] + word + text[end:]
    return text


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_damaged_files_give_a_world_or_an_error(
    check_content: Callable[[bytes], bool], text: str, data: st.DataObject
) -> None:
    check_content(damage_text(text, data).encode("utf-8", "replace"))


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_changed_words_give_a_world_or_an_error(
    check_content: Callable[[bytes], bool], text: str, data: st.DataObject
) -> None:
    check_content(replace_values(text, data).encode("utf-8", "replace"))


@pytest.fixture(scope="module")
def check_files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, str]], NavsenseError | None]:
    """Return a function that loads a world of several files. Its folder also has a pipe, a folder and a loop."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "part").mkdir()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "up").symlink_to(folder)
    (folder / "large").write_bytes(b"<sdf>" + b" " * 3_000_000)

    def check(files: dict[str, str]) -> NavsenseError | None:
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", "replace"))
        error = read_error(folder / "dive.sdf")
        without_missing = read_error(folder / "dive.sdf", "skip")
        assert error is not None or without_missing is None
        problems = (*getattr(error, "problems", ()), *getattr(without_missing, "problems", ()))
        assert all(problem.where is not None and problem.where.path.startswith(str(folder)) for problem in problems)
        assert all(str(problem).count("\n") == 0 for problem in problems)
        return error

    return check


def test_unmodified_tree_is_valid(check_files: Callable[[dict[str, str]], NavsenseError | None]) -> None:
    assert check_files(TREE) is None


URIS = [
    "dive.sdf",
    "./dive.sdf",
    "up/dive.sdf",
    "up/up/up/part.sdf",
    "pipe",
    "folder",
    "loop",
    "large",
    "none",
    ".",
    "..",
    "/",
]
URIS += [
    "/dev/zero",
    "/dev/stdin",
    "file:///dev/zero",
    "model://..",
    "model:///",
    "package://part",
    "https://x/y",
    "a://b",
]
URIS += ["part/", "part/../part.sdf", "deep.sdf", "x" * 300, "%00", "~", "$HOME", "://", "model://part/part.sdf"]


@given(st.sampled_from(sorted(TREE)), st.sampled_from(URIS))
@settings(max_examples=120)
@example("deep.sdf", "deep.sdf")
@example("part.sdf", "deep.sdf")
def test_any_uri_gives_a_world_or_an_error(
    check_files: Callable[[dict[str, str]], NavsenseError | None], file: str, uri: str
) -> None:
    """Includes point to cycles, pipes, devices, folders, links, large files, and nothing."""
    text = re.sub(
        r"(<uri>)[^<]*|(<sdf version=\"1.7\">)part.sdf", lambda match: (match[1] or match[2]) + uri, TREE[file]
    )
    check_files({**TREE, file: text})


@given(st.sampled_from(sorted(TREE)), st.booleans(), st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_damaged_trees_give_a_world_or_an_error(
    check_files: Callable[[dict[str, str]], NavsenseError | None], file: str, is_complete: bool, data: st.DataObject
) -> None:
    change = replace_values if is_complete else damage_text
    check_files({**TREE, file: change(TREE[file], data)})
