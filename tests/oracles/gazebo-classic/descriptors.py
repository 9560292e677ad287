"""Write `gazebo_msgs.desc`: descriptors of `gazebo.msgs` as they are in libgazebo_msgs.so of Gazebo 11.

python descriptors.py /usr/lib/x86_64-linux-gnu/libgazebo_msgs.so.11
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.internal.decoder import _DecodeVarint as read_varint

NAMES = """time vector3d quaternion pose poses_stamped link_data imu magnetometer altimeter packet publish publishers
subscribe gz_string gz_string_v request response""".split()


def find_file(library: bytes, name: str) -> FileDescriptorProto:
    """Return the descriptor of a file. It begins with its name and ends where no further field of its type follows."""
    head = b"\n" + bytes([len(name)]) + name.encode()
    start = library.find(head + b"\x12\x0bgazebo.msgs")
    end = start + len(head)
    while (tag := library[end]) & 7 == 2 and tag >> 3 in (2, 3, 4, 5, 6, 7, 8, 12):
        size, position = read_varint(library, end + 1)
        end = position + size
    return FileDescriptorProto.FromString(library[start:end])


def main() -> None:
    library = Path(sys.argv[1]).read_bytes()
    files = FileDescriptorSet(file=[find_file(library, f"{name}.proto") for name in NAMES])
    Path("gazebo_msgs.desc").write_bytes(files.SerializeToString())


main()
