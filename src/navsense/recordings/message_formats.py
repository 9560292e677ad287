"""The formats that hold messages: MCAP of ROS 2, Gazebo and Gazebo Classic, and the bags of ROS 1 and ROS 2."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from navsense import messages
from navsense.core.readings import Reading
from navsense.messages import generic
from navsense.messages.base import AGE, IS_ON
from navsense.messages.cdr import encode
from navsense.recordings import gazebo, metadata
from navsense.recordings.channels import ROS1, MessageReader
from navsense.recordings.dataset import Dataset, LinkSelection, collect
from navsense.recordings.format import Capability, Format, Recovery, list_missing_groups
from navsense.recordings.gazebo import GazeboWriter
from navsense.recordings.info import RecordedRun
from navsense.recordings.mcap import records
from navsense.recordings.mcap.reader import McapReader, open_mcap
from navsense.recordings.mcap.recovery import recover_mcap
from navsense.recordings.mcap.writer import McapCopy, McapWriter
from navsense.recordings.reading_assembler import open_readings
from navsense.recordings.rosbag.reader import open_bag
from navsense.recordings.rosbag.recovery import BAG_MAGIC, recover_bag, recover_database
from navsense.recordings.rosbag.writer import (
    BAG_METADATA_FILE,
    BagCopy,
    McapBagCopy,
    check_database_path,
    check_mcap_bag,
    get_database_path,
    open_ros1_writer,
    open_ros2_writer,
)
from navsense.recordings.run_changes import CHANGES_KEY, read_changes
from navsense.recordings.summary import summarize_messages
from navsense.world import MountedSensor


def read(path: Path, select: LinkSelection | None = None) -> Dataset:
    """Return the readings and the truth in the messages of a recording; with `select` the truth of these links alone.

    Raises `RecordingError`.
    """
    with open_readings(path, select) as assembler:
        readings, truth, current = collect(assembler.iter_slices())
        recorded_run = assembler.recorded_run
        sensors = {
            name: metadata.make_sensor_metadata(recorded_run, name, reading) for name, reading in readings.items()
        }
        current_metadata = None if current is None else metadata.make_current_metadata(current)
        dataset_metadata = metadata.make_metadata(recorded_run, sensors, truth, current_metadata)
        changes = read_changes(assembler.reader)
        dataset_metadata |= {CHANGES_KEY: changes} if changes else {}
        return Dataset(readings, truth, dataset_metadata, current)


def list_lost(_recorded_run: RecordedRun, sensor: MountedSensor, reading: Reading) -> list[str]:
    """Return the arrays of a reading that have no field in its messages, and its turn-on bias."""
    encoded = list_encoded_arrays(sensor, reading)
    return [*(name for name in reading.arrays if name not in encoded), *list_missing_groups(ROS_MESSAGES, reading)]


def list_encoded_arrays(sensor: MountedSensor, reading: Reading) -> Sequence[str]:
    """Return the arrays of a reading that have a field in its messages."""
    validity = messages.time_of_validity(reading)
    rows = {name: array[:1] for name, array in reading.arrays.items()}
    rows[IS_ON] = sensor.compute_on(reading.time[:1])
    if validity is not None:
        rows[AGE] = reading.time[:1] - validity[:1]
    names: list[str] = ["time_of_validity"] if validity is not None else []
    for companion in messages.list_message_suffixes(sensor):
        encoder = messages.make_encoder(sensor, "measured", companion)
        message_rows = encode(encoder, reading.true_stamp[:1], rows).view(encoder.layout.dtype)[:, 0]
        is_generic = encoder.type.startswith(generic.PACKAGE)
        names += messages.extract_arrays(sensor, message_rows, "measured", companion, is_generic=is_generic)
    return names


def copy_mcap(reader: MessageReader, path: Path) -> int | None:
    """Copy an MCAP file that is not of ROS 1, and return the number of its messages; None for other messages."""
    if not isinstance(reader, McapReader) or reader.profile == ROS1:
        return None
    count = reader.count_messages(from_data=True).total  # reads all messages, so a damaged file is not copied
    shutil.copyfile(reader.path, path)
    return count


ROS_MESSAGES = frozenset(Capability) - {Capability.TURN_ON_BIAS, Capability.UNPUBLISHED, Capability.RUNS}
"""Capabilities of recordings of ROS messages."""

MESSAGES = Format(
    name="messages",
    suffixes=(),
    capabilities=ROS_MESSAGES,
    read=read,
    read_truth=read,
    summarize=summarize_messages,
    unit="message",
    list_lost=list_lost,
)
"""What the formats below share."""

MCAP = replace(
    MESSAGES,
    name="mcap",
    suffixes=(".mcap",),
    open_writer=McapWriter,
    open_messages=open_mcap,
    open_copy=McapCopy,
    copy_file=copy_mcap,
    recovery=Recovery(
        ("*.mcap",),
        recover_mcap,
        magic=records.MAGIC,
        recovers_files=True,
        is_truncated=records.is_truncated,
        recover_unless_intact=partial(recover_mcap, keep_intact=False),
    ),
)

GAZEBO = replace(
    MESSAGES,
    name="Gazebo mcap",
    suffixes=(".gz.mcap",),
    capabilities=frozenset((Capability.FAULTS, Capability.INVALID, Capability.RECOVERY)),
    open_writer=GazeboWriter,
    open_messages=open_mcap,
    recovery=MCAP.recovery,
    list_sensors=lambda recorded_run, _: [sensor.name for sensor in gazebo.GZ.list_sensors(recorded_run)],
    list_lost=None,
    unread_content="messages of Gazebo",
)

GAZEBO_CLASSIC = replace(
    GAZEBO,
    name="Gazebo Classic mcap",
    suffixes=(".gazebo.mcap",),
    open_writer=partial(GazeboWriter, package=gazebo.GAZEBO_CLASSIC),
    list_sensors=lambda recorded_run, _: [sensor.name for sensor in gazebo.GAZEBO_CLASSIC.list_sensors(recorded_run)],
    unread_content="messages of Gazebo Classic",
)

ROS1_BAG = replace(
    MESSAGES,
    name="ROS 1 bag",
    suffixes=(".bag",),
    open_writer=open_ros1_writer,
    open_messages=open_bag,
    open_copy=partial(BagCopy, is_ros1=True),
    recovery=Recovery(
        ("*.bag",),
        recover_bag,
        magic=BAG_MAGIC,
        recovers_files=True,
        recover_unless_intact=partial(recover_bag, keep_intact=False),
    ),
)

ROS2_BAG = replace(
    MESSAGES,
    name="ROS 2 bag",
    suffixes=(".db3",),
    open_writer=open_ros2_writer,
    open_messages=open_bag,
    open_copy=partial(BagCopy, is_ros1=False),
    recovery=Recovery(("*/*.db3",), recover_database),
    is_folder=True,
    folder_files=(BAG_METADATA_FILE,),
    check_path=lambda path, _: check_database_path(path),
    data_path=get_database_path,
)

ROS2_MCAP_BAG = replace(
    MESSAGES,
    name="ROS 2 bag",
    suffixes=("",),
    capabilities=ROS_MESSAGES - {Capability.RECOVERY},
    open_messages=open_bag,
    open_copy=McapBagCopy,
    copied_from=".mcap",
    is_folder=True,
    check_path=lambda path, _: check_mcap_bag(path),
)
"""The folder of a ROS 2 bag with one MCAP file. Only `convert` writes it."""
