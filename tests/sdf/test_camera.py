"""Cameras in files: types, intrinsics, topics, frames, plug-ins of gazebo_ros_pkgs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import navsense as ns
from navsense.core.pose import Pose
from navsense.recordings.static_transforms import list_static_transforms
from navsense.sdf.schema import CAMERA_TYPES, WIDE_ANGLE_TYPES
from navsense.sensors import Camera, CameraIntrinsics, CameraProjection, Depth, LensDistortion
from navsense.world import OPTICAL, OpticalFrame, World

Text = Callable[..., str]
Load = Callable[..., World]
ListProblems = Callable[..., list[str]]

IMAGE = "<image><width>1000</width><height>1000</height></image>"


def make_sensor(body: str = "", kind: str = "camera", name: str = "eye", around: str = "") -> str:
    return f'<sensor name="{name}" type="{kind}">{around}<camera>{body}</camera></sensor>'


def get_camera(world: World, name: str = "eye") -> Camera:
    spec = world.sensor(name).spec
    assert isinstance(spec, Camera)
    return spec


@pytest.mark.requirement("CLK-11", "SDF-1")
@pytest.mark.parametrize("kind", ["camera", "depth", *CAMERA_TYPES])
def test_every_camera_type_is_simulated(load: Load, wrap_in_link: Text, kind: str) -> None:
    body = f"<horizontal_fov>1.05</horizontal_fov>{IMAGE}<clip><near>0.1</near><far>10</far></clip>"
    text = make_sensor(body, kind).replace("<camera>", '<camera name="one">')
    world = load(wrap_in_link(text))
    (sensor,) = world.sensors
    camera = get_camera(world, sensor.name)
    assert camera.type == "camera"
    known = CameraIntrinsics.from_field_of_view(1.05, 1000, 1000)
    assert camera.effective_intrinsics == (CameraIntrinsics(0.0, 0.0, 0.0, 0.0) if kind in WIDE_ANGLE_TYPES else known)
    warnings = [note.reason for note in world.notes if note.kind == "warning"]
    assert len(warnings) == (kind in WIDE_ANGLE_TYPES)


@pytest.mark.requirement("CLK-11")
def test_depth_sensor_of_navsense_keeps_its_type(load: Load, wrap_in_link: Text) -> None:
    world = load(wrap_in_link('<sensor name="p" type="depth"><depth/></sensor>' + make_sensor(IMAGE, "depth")))
    assert isinstance(world.sensor("p").spec, Depth)
    assert world.sensor("p").topic.endswith("/sensor/p/depth")
    assert get_camera(world).width == 1000


@pytest.mark.requirement("CLK-11")
def test_projection_file_of_gz_sensors_has_the_matrices_of_its_test(load: Load, wrap_in_link: Text) -> None:
    """gz-sensors, `test/sdf/camera_projection.sdf` and the numbers in `test/integration/camera.cc`."""
    lens = "<p_fx>866.23</p_fx><p_fy>966.23</p_fy><p_cx>500</p_cx><p_cy>400</p_cy><tx>300</tx><ty>200</ty>"
    body = f"<horizontal_fov>1.05</horizontal_fov>{IMAGE}"
    first = make_sensor(body, name="a", around="<topic>/camera1/image</topic>")
    second = make_sensor(
        f"{body}<lens><projection>{lens}</projection></lens>", name="b", around="<topic>/camera2/image</topic>"
    )
    world = load(wrap_in_link(first + second))
    assert [sensor.topic for sensor in world.sensors] == ["/camera1/camera_info", "/camera2/camera_info"]
    run = ns.simulate(world, 0.01, seed=1)
    p = run["a"]["projection_matrix"][0]
    assert p[0, 0] == p[1, 1] == pytest.approx(863.22975158691406, abs=1e-4)
    assert p.tolist()[2] == [0.0, 0.0, 1.0, 0.0]
    assert p[:2, 2:].tolist() == [[500.0, 0.0], [500.0, 0.0]]
    assert run["b"]["projection_matrix"][0].tolist() == [
        [866.23, 0.0, 500.0, 300.0],
        [0.0, 966.23, 400.0, 200.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
    assert np.array_equal(run["a"]["intrinsic_matrix"], run["b"]["intrinsic_matrix"])


@pytest.mark.requirement("CLK-11")
def test_lens_of_the_file_is_in_the_reading(load: Load, wrap_in_link: Text) -> None:
    intrinsics = "<intrinsics><fx>900</fx><fy>901</fy><cx>501</cx><cy>502</cy><s>0.5</s></intrinsics>"
    lens = "<distortion><k1>-0.25</k1><k2>0.12</k2><k3>-0.02</k3><p1>1e-4</p1><p2>-2e-4</p2></distortion>"
    world = load(wrap_in_link(make_sensor(f"{IMAGE}<lens>{intrinsics}</lens>{lens}")))
    reading = ns.simulate(world, 0.01, seed=1)["eye"]
    assert reading["intrinsic_matrix"][0].tolist() == [[900.0, 0.0, 501.0], [0.0, 901.0, 502.0], [0.0, 0.0, 1.0]]
    assert reading["projection_matrix"][0, :, :3].tolist() == reading["intrinsic_matrix"][0].tolist()
    assert reading["distortion"][0].tolist() == [-0.25, 0.12, 1e-4, -2e-4, -0.02]
    assert [note.what for note in world.notes] == ["<intrinsics><s>"]


@pytest.mark.requirement("CLK-11")
def test_missing_numbers_have_the_defaults_of_sdf(load: Load, wrap_in_link: Text) -> None:
    body = "<lens><intrinsics><fx>300</fx></intrinsics><projection><tx>-9</tx></projection></lens>"
    camera = get_camera(load(wrap_in_link(make_sensor(body))))
    assert (camera.width, camera.height) == (320, 240)
    assert camera.intrinsics == CameraIntrinsics(300.0, 277.0, 160.0, 120.0)
    assert camera.projection == CameraProjection(277.0, 277.0, 160.0, 120.0, -9.0)
    assert get_camera(load(wrap_in_link('<sensor name="eye" type="camera"/>'))) == Camera()


TOPIC = "<topic>front/image</topic>"
OWN = "/world/ocean/model/auv/link/base/sensor/eye"


@pytest.mark.requirement("CLK-11")
@pytest.mark.parametrize(
    ("kind", "around", "body", "topic"),
    [
        ("camera", "", "", f"{OWN}/camera_info"),
        ("depth_camera", "", "", f"{OWN}/camera_info"),
        ("rgbd_camera", "", "", f"{OWN}/camera_info"),
        ("segmentation", "", "", f"{OWN}/segmentation/camera_info"),
        ("camera", TOPIC, "", "/front/camera_info"),
        ("thermal", TOPIC, "", "/front/camera_info"),
        ("boundingbox", "<topic>boxes</topic>", "", "/camera_info"),
        ("rgbd_camera", TOPIC, "", "/front/image/camera_info"),
        ("segmentation_camera", TOPIC, "", "/front/image/camera_info"),
        ("camera", TOPIC, "<camera_info_topic>/own</camera_info_topic>", "/own"),
        ("rgbd", TOPIC, "<camera_info_topic>own info</camera_info_topic>", "/own_info"),
        ("camera", TOPIC, "<camera_info_topic>__default__</camera_info_topic>", "/front/camera_info"),
    ],
)
def test_topic_is_that_of_gz_sensors(
    load: Load, wrap_in_link: Text, kind: str, around: str, body: str, topic: str
) -> None:
    """gz-sensors, `AdvertiseInfo`; gz-sim, `RenderUtil` (the endings of the topics of images)."""
    assert load(wrap_in_link(make_sensor(body, kind, around=around))).sensor("eye").topic == topic


@pytest.mark.requirement("CLK-11")
def test_second_camera_with_a_taken_topic_has_the_default(load: Load, wrap_in_link: Text) -> None:
    """In Gazebo both publish on one topic; here the second one gets its own, with a warning."""
    both = make_sensor(around="<topic>left</topic>") + make_sensor(name="other", around="<topic>right</topic>")
    world = load(wrap_in_link(both))
    assert [sensor.topic for sensor in world.sensors] == ["/camera_info", f"{OWN[:-3]}other/camera_info"]
    assert [note.what for note in world.notes] == ["<topic>: /camera_info"]


@pytest.mark.requirement("CLK-11")
def test_optical_frame_has_a_static_transform(load: Load, wrap_in_link: Text) -> None:
    """x to the right, y down, z along the axis of the camera, which is x of the sensor (REP 103)."""
    body = "<optical_frame_id>eye_optical</optical_frame_id>"
    world = load(wrap_in_link(make_sensor(body, around="<pose>1 2 3 0 0 0</pose>")))
    (frame,) = (one for one in list_static_transforms(world) if one.child == "eye_optical")
    assert frame.parent == "auv::base"
    axes = {"z": (0.0, 0.0, 1.0), "x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0)}
    turned = {name: (frame.pose @ Pose(axis)).position for name, axis in axes.items()}
    for name, expected in (("z", (2.0, 2.0, 3.0)), ("x", (1.0, 1.0, 3.0)), ("y", (1.0, 2.0, 2.0))):
        assert turned[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.requirement("CLK-11")
def test_optical_frame_of_a_link_has_the_pose_of_the_link(load: Load, wrap_in_world: Text) -> None:
    links = '<link name="base">{}</link><link name="optical"><pose>0 0 1 0 0 0.5</pose></link>'
    sensor = make_sensor("<optical_frame_id>optical</optical_frame_id>")
    world = load(wrap_in_world(f'<model name="auv">{links.format(sensor)}</model>'))
    (frame,) = (sensor.optical_frame for sensor in world.sensors)
    assert frame is not None
    assert frame.pose.position == (0.0, 0.0, 1.0)
    assert frame.pose != OPTICAL


TOO_SMALL = "must give a focal length below 1e+100 px for a width of 320 px"


@pytest.mark.requirement("CLK-11", "SDF-2")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<image><width>0</width></image>", "<image><width>: 0; must be >= 1"),
        ("<image><width>3.5</width></image>", "<image><width>: 3.5; must be a whole number"),
        (
            "<image><width>9e9</width></image>",
            "<camera> width of a camera (px): 9000000000; must be from 1 to 4294967295",
        ),
        ("<horizontal_fov>0</horizontal_fov>", "<camera><horizontal_fov>: 0; must be > 0"),
        (
            "<horizontal_fov>60</horizontal_fov>",
            "<camera><horizontal_fov>: 60; must be at most 6.283185 rad; write radians",
        ),
        ("<horizontal_fov>1e-300</horizontal_fov>", f"<horizontal_fov> horizontal_fov (rad): 1e-300; {TOO_SMALL}"),
        ("<horizontal_fov>5e-324</horizontal_fov>", f"<horizontal_fov> horizontal_fov (rad): 5e-324; {TOO_SMALL}"),
        (
            "<horizontal_fow>1</horizontal_fow>",
            "<camera><horizontal_fow>; is not allowed here; did you mean horizontal_fov?",
        ),
        ("<lens><intrinsics><fx>a</fx></intrinsics></lens>", "<intrinsics><fx>: a; must be a finite number"),
    ],
)
def test_invalid_cameras_are_errors(list_problems: ListProblems, wrap_in_link: Text, body: str, problem: str) -> None:
    assert list_problems(wrap_in_link(make_sensor(body))) == [f"dive.sdf:5: {problem}"]


@pytest.mark.requirement("CLK-11", "SDF-2")
def test_too_small_view_of_a_camera_with_a_plugin_is_an_error(list_problems: ListProblems, wrap_in_link: Text) -> None:
    (line,) = list_problems(wrap_in_link(make_sensor("<horizontal_fov>1e-300</horizontal_fov>", around=ROS1)))
    assert "<horizontal_fov> horizontal_fov (rad): 1e-300; must give a focal length" in line


ROS1 = """<plugin name="p" filename="libgazebo_ros_camera.so"><robotNamespace>/bot</robotNamespace>
<cameraName>front</cameraName><cameraInfoTopicName>info</cameraInfoTopicName><frameName>front_optical</frameName>
<updateRate>10</updateRate><hackBaseline>0.07</hackBaseline><distortionK1>0.1</distortionK1></plugin>"""


@pytest.mark.requirement("CLK-11")
def test_ros1_camera_plugin_is_read(load: Load, wrap_in_link: Text) -> None:
    """gazebo_plugins, `gazebo_ros_camera_utils.cpp`: c = (size + 1) / 2, P[3] = -f baseline."""
    around = f"<update_rate>30</update_rate>{ROS1}"
    world = load(wrap_in_link(make_sensor(f"<horizontal_fov>1.05</horizontal_fov>{IMAGE}", around=around)))
    sensor, camera = world.sensor("eye"), get_camera(world)
    assert (sensor.topic, sensor.rate, sensor.optical_frame) == ("/bot/front/info", 10.0, OpticalFrame("front_optical"))
    k, p = camera.effective_intrinsics, camera.effective_projection
    assert k.fx == pytest.approx(863.22975158691406, abs=1e-4)
    assert (k.cx, k.cy, p.tx) == (500.5, 500.5, -k.fx * 0.07)
    assert camera.distortion == LensDistortion(k1=0.1)
    (note,) = world.notes
    skips = "the plug-in skips samples of the sensor's <update_rate> of 30 Hz"
    assert (note.kind, note.what, note.reason) == ("warning", "<plugin><updateRate>: 10 Hz", skips)
    equal = around.replace("<updateRate>10<", "<updateRate>30<")
    inside = f"<horizontal_fov>1.05</horizontal_fov>{IMAGE}<distortion><k1>{{}}</k1></distortion>"
    assert not load(wrap_in_link(make_sensor(inside.format("0.10"), around=equal))).notes
    (note,) = load(wrap_in_link(make_sensor(inside.format("-0.1"), around=equal))).notes
    assert (note.kind, note.what) == ("warning", "<camera><distortion>")
    assert note.reason.startswith("the coefficients of the plug-in are used")


@pytest.mark.requirement("CLK-11")
def test_unknown_element_of_a_camera_plugin_is_a_warning(load: Load, wrap_in_link: Text) -> None:
    """Public robots have elements that no version of the plug-in reads, such as `<baseline>`."""
    plugin = ROS1.replace("hackBaseline>", "hackBaselin>").replace("</plugin>", "<x:y/><rangeMax>9</rangeMax></plugin>")
    world = load(wrap_in_link(make_sensor(IMAGE, around=plugin)).replace("<sdf ", '<sdf xmlns:x="x" '))
    notes = [(note.kind, note.what, note.reason) for note in world.notes]
    reason = "is ignored: it is unknown here; did you mean hackBaseline?"
    assert ("warning", "<plugin><hackBaselin>", reason) in notes
    assert [kind for kind, *_ in notes].count("warning") == 1
    assert get_camera(world).projection is None


@pytest.mark.requirement("CLK-11")
def test_ros2_camera_plugin_is_read(load: Load, wrap_in_link: Text) -> None:
    """gazebo_plugins, `gazebo_ros_camera.cpp`: the distortion is that of the camera."""
    body = f"{IMAGE}<distortion><k1>0.3</k1></distortion>"
    plugin = """<plugin name="p" filename="libgazebo_ros_camera.so"><ros><namespace>/bot</namespace>
    <remapping>eye/camera_info:=eye/info</remapping></ros><cx>480</cx><hack_baseline>0.1</hack_baseline></plugin>"""
    world = load(wrap_in_link(make_sensor(body, around=plugin)))
    camera = get_camera(world)
    assert world.sensor("eye").topic == "/bot/eye/info"
    assert (camera.effective_intrinsics.cx, camera.effective_intrinsics.cy) == (480.0, 500.5)
    assert camera.effective_projection.tx == -0.1 * camera.effective_intrinsics.fx
    assert camera.distortion == LensDistortion(k1=0.3)


@pytest.mark.requirement("CLK-11")
def test_optical_frame_of_a_multicamera_is_that_of_the_link(load: Load, wrap_in_world: Text) -> None:
    """A link is in one place, whichever camera of the sensor names it."""
    cameras = "".join(
        f'<camera name="{name}"><pose>0 {y} 0 0 0 0.3</pose><optical_frame_id>optical</optical_frame_id></camera>'
        for name, y in (("left", 0.5), ("right", -0.5))
    )
    links = f'<link name="base"><sensor name="rig" type="multicamera">{cameras}</sensor></link>'
    links += '<link name="optical"><pose>0 0 1 0 0 0</pose></link>'
    world = load(wrap_in_world(f'<model name="auv">{links}</model>'))
    assert [sensor.pose.position for sensor in world.sensors] == [(0.0, 0.5, 0.0), (0.0, -0.5, 0.0)]
    for sensor in world.sensors:
        assert sensor.optical_frame is not None
        optical = sensor.pose @ sensor.optical_frame.pose
        np.testing.assert_allclose(optical.position, (0.0, 0.0, 1.0), rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(optical.rotation, (1.0, 0.0, 0.0, 0.0), rtol=0.0, atol=1e-15)


@pytest.mark.requirement("CLK-11")
def test_multicamera_is_a_stereo_pair_on_one_clock(load: Load, wrap_in_link: Text) -> None:
    """gazebo_plugins, `gazebo_ros_multicamera.cpp`: only the right camera has the baseline."""
    cameras = f'<camera name="left">{IMAGE}</camera><camera name="right"><pose>0 -0.07 0 0 0 0</pose>{IMAGE}</camera>'
    plugin = '<plugin name="p" filename="libgazebo_ros_multicamera.so"><cameraName>rig</cameraName>'
    plugin += "<hackBaseline>0.07</hackBaseline></plugin>"
    clock = '<navsense:clock name="c"><noise type="gaussian"><bias_stddev>0.01</bias_stddev></noise></navsense:clock>'
    head = "<clock>c</clock><update_rate>20</update_rate><pose>1 0 0 0 0 0</pose>"
    body = f'{clock}<sensor name="rig" type="multicamera">{head}{cameras}{plugin}</sensor>'
    world = load(wrap_in_link(body).replace("<sdf ", '<sdf xmlns:navsense="https://navsense.org/sdf" '))
    left, right = world.sensors
    assert (left.name, right.name) == ("auv::base::rig::left", "auv::base::rig::right")
    assert (left.topic, right.topic) == ("/rig/left/camera_info", "/rig/right/camera_info")
    assert (left.pose.position, right.pose.position) == ((1.0, 0.0, 0.0), (1.0, -0.07, 0.0))
    p = get_camera(world, right.name).effective_projection
    assert (get_camera(world, left.name).effective_projection.tx, p.tx) == (0.0, -p.fx * 0.07)
    run = ns.simulate(world, 1.0, seed=2)
    assert np.array_equal(run[left.name].stamp, run[right.name].stamp)
    assert abs(run[left.name].clock_error).min() > 0.0


@pytest.mark.requirement("CLK-11", "SDF-1")
def test_gz_sim_world_with_a_camera_is_recorded(tmp_path: Path) -> None:
    path = Path(__file__).resolve().parents[1] / "worlds" / "gz-sim" / "reset_sensors.sdf"
    world = ns.load(path)
    cameras = [sensor for sensor in world.sensors if isinstance(sensor.spec, Camera)]
    assert [sensor.topic for sensor in cameras] == ["/camera_info"]
    ns.record(world, tmp_path / "reset.mcap", 0.5, seed=1)
    reading = ns.open(tmp_path / "reset.mcap")[cameras[0].name]
    assert np.array_equal(
        reading["intrinsic_matrix"], ns.simulate(world, 0.5, seed=1)[cameras[0].name]["intrinsic_matrix"]
    )


def list_frame_warnings(world: World) -> list[tuple[str, str]]:
    return [(note.sensor, note.reason) for note in world.notes if ": frame " in note.what and note.kind == "warning"]


@pytest.mark.requirement("CLK-11")
@pytest.mark.parametrize(
    ("optical_frame", "own_frame"),
    [("eye_optical", ""), ("eye_optical", "imu_frame"), ("world", ""), ("auv::base", "")],
)
def test_a_frame_at_two_places_is_a_warning(
    load: Load, wrap_in_world: Text, optical_frame: str, own_frame: str
) -> None:
    sensors = make_sensor(f"<optical_frame_id>{optical_frame}</optical_frame_id>")
    if own_frame:
        sensors += f'<sensor name="imu" type="imu"><pose>1 0 0 0 0 0</pose><frame_id>{own_frame}</frame_id></sensor>'
    models = (
        f'<model name="{name}"><pose>{x} 0 0 0 0 0</pose><link name="base">{sensors}</link></model>'
        for name, x in (("auv", 0), ("rover", 5))
    )
    warnings = list_frame_warnings(load(wrap_in_world("".join(models))))
    owners = {"eye_optical": "sensor auv::base::eye", "world": "the world", "auv::base": "link auv::base"}
    named = [name for name, reason in warnings if f"is that of {owners[optical_frame]} too, at another place" in reason]
    # The camera on the link auv::base is in the frame of that link.
    assert named == (["auv::base::eye", "rover::base::eye"] if optical_frame == "world" else ["rover::base::eye"])
    assert ("rover::base::imu" in dict(warnings)) == bool(own_frame)


@pytest.mark.requirement("CLK-11")
def test_a_frame_at_one_place_can_have_several_sensors(load: Load, wrap_in_world: Text) -> None:
    """Both cameras of a depth camera have one frame; the second camera of a stereo pair has that of the first."""
    body = "<optical_frame_id>optical</optical_frame_id>"
    lens = "<lens><projection><p_fx>300</p_fx><p_fy>300</p_fy><tx>-36</tx></projection></lens>"
    pair = make_sensor(body, name="left") + make_sensor(body, name="depth") + make_sensor(body + lens, name="right")
    pair = pair.replace('name="right" type="camera">', 'name="right" type="camera"><pose>0 -0.12 0 0 0 0</pose>')
    other = '<link name="mast"><pose relative_to="base">0 0 0.5 0 0 0</pose>' + make_sensor(body).replace(
        '"camera">', '"camera"><pose relative_to="base"/>'
    )
    world = load(wrap_in_world(f'<model name="auv"><link name="base">{pair}</link>{other}</link></model>'))
    assert world.sensor("eye").pose.position == (0.0, 0.0, -0.5)
    assert list_frame_warnings(world) == []
