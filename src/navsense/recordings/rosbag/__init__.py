"""ROS bags: reader and writer of the bags of ROS 1 and of ROS 2, and what rosbags is needed for."""
