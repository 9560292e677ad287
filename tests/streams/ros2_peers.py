"""Readers and writers of ROS 2 topics on Cyclone DDS, and a program on Fast DDS."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.builtin_types import DcpsEndpoint
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from navsense.messages.schemas import DEFINITIONS
from navsense.streams.ros2.dds import DdsTopicWriter, MessageTypes
from navsense.streams.ros2.naming import format_dds_topic

FOLDER = Path(__file__).parent

NUMBERS = itertools.count(5000)
"""Numbers of domains inside the library."""

LOOPBACK = """\
<CycloneDDS><Domain>
  <General><Interfaces><NetworkInterface address="127.0.0.1"/></Interfaces></General>
  <Discovery><ExternalDomainId>{}</ExternalDomainId><Peers><Peer address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>
"""


def compute_discovery_port(domain: int) -> int:
    """Return the UDP port for discovery of the first participant of a domain (DDSI-RTPS 2.3, section 9.6.1)."""
    return 7400 + 250 * domain + 10


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


class Ros2Peer:
    """A participant with readers and writers; it has its own sockets, as in another program."""

    def __init__(self, domain: int) -> None:
        number = next(NUMBERS)
        self._domain = Domain(number, LOOPBACK.format(domain))
        self.participant = DomainParticipant(number)
        self.is_open = True
        self._readers: dict[str, DataReader[Any]] = {}
        self._writers: list[DdsTopicWriter] = []

    def read_topic(self, topic: str, message_type: str, *policies: Any) -> None:
        """Create a reader, which is reliable and keeps everything unless policies say otherwise."""
        kind = MessageTypes(DEFINITIONS).describe(message_type)
        kind.deserialize = _Raw
        # A writer that leaves sends a sample without data. The library would make a message of its key, which fails.
        kind.deserialize_key = bytes
        dds_topic = Topic(self.participant, format_dds_topic(topic), kind)
        qos = Qos(*(policies or (Policy.Reliability.Reliable(0), Policy.History.KeepAll)))
        self._readers[topic] = DataReader(self.participant, dds_topic, qos)

    def write_topic(self, topic: str, message_type: str, *policies: Any) -> DdsTopicWriter:
        """Return a writer of bytes, which is reliable unless policies say otherwise."""
        description = MessageTypes(DEFINITIONS).describe(message_type)
        dds_topic = Topic(self.participant, format_dds_topic(topic), description)
        qos = Qos(*(policies or (Policy.Reliability.Reliable(0),)), Policy.History.KeepLast(5000))
        self._writers.append(
            DdsTopicWriter(DataWriter(self.participant, dds_topic, qos))
        )  # deleted without a reference
        return self._writers[-1]

    def find_topic(self, ending: str) -> tuple[str, str]:
        """Return the name and type of the topic of ROS with this ending, when a writer of it is known."""
        reader = BuiltinDataReader(self.participant, BuiltinTopicDcpsPublication)
        names: dict[str, str] = {}
        until = time.monotonic() + 20.0
        while not (found := [name for name in names if name.endswith(ending)]):
            assert time.monotonic() < until
            names |= {one.topic_name: one.type_name for one in reader.take(100) if isinstance(one, DcpsEndpoint)}
            time.sleep(0.005)
        package, marker, kind = names[found[0]].partition("::msg::dds_::")
        assert marker
        assert kind.endswith("_")
        return found[0].removeprefix("rt"), f"{package}/msg/{kind[:-1]}"

    def has_writer(self, topic: str) -> bool:
        """True if a writer of a topic is known."""
        return bool(self._readers[topic].get_matched_publications())

    def take(self, topic: str) -> list[bytes]:
        """Return the messages since the last call."""
        return [sample.data for sample in self._readers[topic].take(100_000) if isinstance(sample, _Raw)]

    def close(self) -> None:
        """Leave the domain."""
        self.is_open = False
        self.participant.__del__()
        self._domain.__del__()


class _Raw:
    """A message as bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.sample_info: Any = None


def build_fastdds_peer(config: pytest.Config) -> Path:
    """Return the program of `ros2_peer.cpp`, or skip the test without Fast DDS and its generator.

    The cache of pytest keeps it until one of its sources changes.
    """
    compiler, generator = shutil.which("g++"), shutil.which("fastddsgen")
    header = Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp")
    if compiler is None or generator is None or not header.exists():
        pytest.skip("needs g++, and libfastrtps-dev and fastddsgen of Debian")
    sources = [FOLDER / "ros2_types.idl", FOLDER / "ros2_peer.cpp"]
    number = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    assert config.cache is not None
    program = config.cache.mkdir("ros2_peer") / f"ros2_peer-{number}"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=program.parent) as name:
            folder = Path(name)
            shutil.copy(sources[0], folder)
            arguments = [generator, "-cs", "-typeros2", "-replace", "-d", folder, folder / sources[0].name]
            subprocess.run(arguments, check=True, capture_output=True, cwd=folder)
            built = folder / program.name
            options = ["-std=c++14", "-O0", "-w", "-I", str(folder), "-o", str(built)]
            subprocess.run([compiler, *options, sources[1], "-lfastrtps", "-lfastcdr"], check=True)
            built.rename(program)  # another worker may have built it, too
    return program


class FastDdsPeer:
    """The program of subscribers or publishers on Fast DDS. Its lines of output are grouped by their first word."""

    def __init__(self, program: Path, domain: int, topics: Sequence[str]) -> None:
        command = [program, str(domain), *topics]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: dict[str, list[list[str]]] = defaultdict(list)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def send(self, *values: object) -> None:
        """Publish a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{' '.join(map(str, values))}\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._thread.join(10.0)
        self._process.__exit__(None, None, None)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, *values = line.split()
            self.lines[word].append(values)

    def finish(self) -> None:
        """End the program, and read the rest of its output."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._thread.join(60.0)
        assert self._process.wait(10.0) == 0
