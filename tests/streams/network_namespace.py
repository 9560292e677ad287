"""A network namespace of its own for the thread of a test: nothing is sent to or received from other programs."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator

import pytest

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
UP_LOOPBACK_RUNNING_MULTICAST = 0x1 | 0x8 | 0x40 | 0x1000


@contextlib.contextmanager
def network_namespace() -> Iterator[None]:
    """Enter a namespace with only the loopback interface. Threads and programs that start in it stay in it.

    Skips the test where the system does not permit it: run as root, or with `unshare -rn python -m pytest`.
    """
    if sys.platform != "linux":
        pytest.skip("needs network namespaces, which only Linux has")
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(CLONE_NEWNET):
            reason = os.strerror(ctypes.get_errno())
            pytest.skip(f"needs a network namespace (root, or unshare -rn): unshare: {reason}")
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as request:
                flags = struct.pack("16sh14x", b"lo", UP_LOOPBACK_RUNNING_MULTICAST)
                fcntl.ioctl(request, SIOCSIFFLAGS, flags)
            yield
        finally:
            assert libc.setns(own, CLONE_NEWNET) == 0
    finally:
        os.close(own)
