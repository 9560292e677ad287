#!/bin/bash
# A run of navsense with the programs of ROS 1. Run it in a network namespace of its own: the master listens on all
# addresses.
#
#   unshare --map-root-user --net bash ros1_session.sh PYTHON WORLD FOLDER
#
# FOLDER gets the output of each program, and what navsense and rosbag have recorded.

set -u
python=$1 world=$2
cd "$3" || exit 1
ip link set lo up
export ROS_MASTER_URI=http://127.0.0.1:11311 ROS_IP=127.0.0.1 HOME=$PWD ROS_LOG_DIR=$PWD/log
sensors=/world/field/model/quadrotor
imu=$sensors/link/base_link/sensor/imu/imu

ros() { env -u PYTHONPATH PATH=/usr/bin:/bin timeout 40 "$@"; }
wait_for() { for _ in $(seq 300); do ros rostopic list 2>&1 | grep -q "$1" && return; sleep 0.1; done; }

# The type of a service of the UUV Simulator, made by Debian's genpy.
types=types/uuv_gazebo_ros_plugins_msgs
mkdir -p $types/srv
printf 'float64 data\n---\nbool success\nstring message\n' > SetFloat.srv
env -u PYTHONPATH /usr/bin/python3 /usr/lib/genpy/gensrv_py.py -p uuv_gazebo_ros_plugins_msgs -o $types/srv SetFloat.srv
touch $types/__init__.py
echo 'from ._SetFloat import *' > $types/srv/__init__.py

env -u PYTHONPATH PATH=/usr/bin:/bin roscore > roscore.txt 2>&1 &
roscore=$!
wait_for /rosout_agg

# The run is as long as the programs need: SIGTERM ends it, and completes its recording.
"$python" -m navsense run "$world" --duration 600 --epoch 1700000000 -o "ros1://?wait=60&node=quad" -o run.bag \
    > run.txt 2>&1 &
run=$!
wait_for /tf_static
ros rostopic list > list.txt 2>&1
ros rostopic info $imu > info.txt 2>&1
env -u PYTHONPATH PATH=/usr/bin:/bin rosbag record -O live.bag $imu $sensors/model/mast/link/board/sensor/gps/navsat \
    $sensors/link/base_link/sensor/altimeter/altimeter /clock /tf /tf_static > record.txt 2>&1 &
record=$!
ros rostopic echo -n 1 $imu > echo.txt 2>&1
ros rosnode info /quad > node.txt 2>&1
ros rosnode ping -c 1 /quad > ping.txt 2>&1
env -u PYTHONPATH PATH=/usr/bin:/bin timeout -s INT 4 rostopic hz --wall-time $imu > hz.txt 2>&1
ros rosservice type /quad/pause > service.txt 2>&1
ros rosservice call /quad/pause true >> service.txt 2>&1
sleep 0.3
env -u PYTHONPATH PATH=/usr/bin:/bin timeout -s INT 2 rostopic echo -n 1 $imu > paused.txt 2>&1
# While the run is paused, slow programs take no simulated time.
altimeter=$sensors/link/base_link/sensor/altimeter/altimeter
set_reference() { env PYTHONPATH=$PWD/types PATH=/usr/bin:/bin timeout 40 rosservice call $altimeter/set_reference_altitude "$1"; }
ros rosservice type $altimeter/change_state > changes.txt 2>&1
ros rosservice call $altimeter/change_state false >> changes.txt 2>&1
set_reference 2.5 >> changes.txt 2>&1
set_reference .nan >> changes.txt 2>&1
ros rosservice call /quad/pause false >> service.txt 2>&1
ros rosservice call /quad/pause true >> service.txt 2>&1
ros rosservice call $altimeter/change_state true >> changes.txt 2>&1
ros rosservice call /quad/pause false >> service.txt 2>&1
ros rosparam set use_sim_time true
ros /usr/bin/python3 -c "
import rospy
rospy.init_node('time')
rospy.sleep(0.5)
print(rospy.get_time())" > time.txt 2>&1
ros rostopic echo -n 1 /tf_static > static.txt 2>&1
kill -INT $record
wait $record
kill -TERM $run
wait $run
ros rostopic list > after.txt 2>&1
kill $roscore
wait $roscore
