"""The fields around the robot: functions of position and time."""
