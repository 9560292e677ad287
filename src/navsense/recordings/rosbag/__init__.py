"""ROS 1 and ROS 2 bags: reader, writer, recovery, and limits on the package `rosbags`."""
