#!/bin/bash
# The motion of topics of the programs of ROS 1: rosbag (roscpp), and rostopic (rospy). Run it in a network namespace of
# its own: the master listens on all addresses.
#
#   unshare --map-root-user --net bash ros1_motion_session.sh PYTHON LISTEN FOLDER
#
# FOLDER has motion.bag, and gets the output of each program.

set -u
python=$1 listen=$2
cd "$3" || exit 1
ip link set lo up
export ROS_MASTER_URI=http://127.0.0.1:11311 ROS_IP=127.0.0.1 HOME=$PWD ROS_LOG_DIR=$PWD/log
master=ros1://127.0.0.1:11311

ros() { env -u PYTHONPATH PATH=/usr/bin:/bin timeout 40 "$@"; }
wait_for() { for _ in $(seq 300); do ros "$1" list 2>&1 | grep -q "$2" && return; sleep 0.1; done; }

env -u PYTHONPATH PATH=/usr/bin:/bin roscore > roscore.txt 2>&1 &
roscore=$!
wait_for rostopic /rosout_agg

"$python" "$listen" states.json 50 "$master?topic=/odom&node=odom" "$master?topic=/tf&frame=base_link&node=tf" \
    "$master?topic=/gazebo/model_states&node=models" "$master?topic=/typed&node=typed" > listen.txt 2>&1 &
listening=$!
wait_for rosnode /typed
ros rosnode info /odom > node.txt 2>&1
ros rosnode ping -c 1 /odom > ping.txt 2>&1
env -u PYTHONPATH PATH=/usr/bin:/bin rostopic pub -s -r 50 /typed geometry_msgs/PoseStamped \
    '{header: auto, pose: {position: {x: 1.5, y: -0.1}, orientation: {z: 0.6, w: 0.8}}}' > typed.txt 2>&1 &
typed=$!
ros rosbag play --clock --hz 100 -d 1 motion.bag > play.txt 2>&1
wait $listening
kill -INT $typed
ros rosnode list > after.txt 2>&1
kill $roscore $typed
wait $roscore
