"""The MD5 sums of the message types that a subscriber of ROS 1 reads: publishers compare them.

Sources: the definitions of ROS Noetic, and of gazebo_msgs.
"""

from __future__ import annotations

from collections.abc import Mapping

MOTION_MD5: Mapping[str, str] = {
    "nav_msgs/Odometry": "cd5e73d190d741a2f92e81eda573aca7",
    "geometry_msgs/PoseStamped": "d3812c3cbc69362b77dc0b19b345f8f5",
    "geometry_msgs/PoseWithCovarianceStamped": "953b798c0f514ff060a53a3498ce6246",
    "geometry_msgs/Pose": "e45d45a5a1ce597b249e23fb30fc871f",
    "geometry_msgs/TransformStamped": "b5764a33bfeb3588febc2682852579b0",
    "tf2_msgs/TFMessage": "94810edda583a504dfda3829e70d7eec",
    "tf/tfMessage": "94810edda583a504dfda3829e70d7eec",
    "gazebo_msgs/ModelStates": "48c080191eb15c41858319b4d8a609c2",
    "gazebo_msgs/LinkStates": "48c080191eb15c41858319b4d8a609c2",
    "geometry_msgs/Twist": "9f195f881246fdfa2798d1d3eebca84a",
    "geometry_msgs/TwistStamped": "98d34b0043a2093cf9d9345ab6eef12e",
}
"""Message type of a motion -> sum."""

CURRENT_MD5: Mapping[str, str] = {
    "geometry_msgs/TwistStamped": "98d34b0043a2093cf9d9345ab6eef12e",
    "geometry_msgs/Twist": "9f195f881246fdfa2798d1d3eebca84a",
    "geometry_msgs/TwistWithCovarianceStamped": "8927a1a12fb2607ceea095b2dc440a96",
    "geometry_msgs/Vector3Stamped": "7b324c7325e683bf02a9b14b01090ec7",
    "geometry_msgs/Vector3": "4a842b65f413084dc2b10fb484ea7f17",
}
"""Message type of a current -> sum."""

CLOCK_MD5 = "a9c97c1d230cfc112e270351a944ee47"
"""Sum of rosgraph_msgs/Clock."""
