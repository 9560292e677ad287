"""A participant of DDS that is a node of ROS 2, on the library Cyclone DDS.

The library gets the messages as bytes: the type of a topic describes them, but no message is converted. Each
participant has a domain of the library of its own with its own settings, and all of them have the same domain on the
network. `CYCLONEDDS_URI` is not read: the URL alone decides where messages are sent.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import time
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import DDSException
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct, types
from cyclonedds.pub import DataWriter
from cyclonedds.pub import Publisher as DdsPublisher
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from navsense.core.errors import RecordingError, Where
from navsense.messages.cdr import MessageEncoder
from navsense.messages.ros1 import split_definitions
from navsense.messages.schemas import parse_fields
from navsense.streams.ros2.naming import (
    DISCOVERY_TOPIC,
    GID_SIZE,
    HUMBLE_GID_SIZE,
    PARTICIPANT_USER_DATA,
    decode_discovery_info,
    encode_discovery_info,
    format_dds_topic,
    format_dds_type,
    parse_dds_topic,
    parse_dds_type,
)
from navsense.streams.ros2.remote import RemotePublisher
from navsense.streams.stream import LOOPBACK, StreamUrl

PRIMITIVES: Mapping[str, Any] = {
    "bool": bool,
    "byte": types.uint8,
    "char": types.uint8,
    "float32": types.float32,
    "float64": types.float64,
    "int8": types.int8,
    "uint8": types.uint8,
    "int16": types.int16,
    "uint16": types.uint16,
    "int32": types.int32,
    "uint32": types.uint32,
    "int64": types.int64,
    "uint64": types.uint64,
    "string": str,
}
"""ROS type -> type in a description. A byte is an unsigned number, as `rmw_cyclonedds` describes it."""

DOMAIN_NUMBERS = itertools.count(1000)
"""Numbers of the domains inside the library: each can be used once in a process."""

MAX_HISTORY, MIN_HISTORY, HISTORY_BYTES = 1000, 10, 1 << 20
"""Messages of a topic that are kept for readers that have not confirmed them: at most the bytes, but the minimum."""

BATCH = 1000
"""Largest number of messages of one read."""

CONFIRM_TIMEOUT = 2.0
"""Longest time (s) at the end of a run for readers to confirm the last messages."""

SETTINGS = """\
<CycloneDDS><Domain>
  <General><Interfaces><NetworkInterface {interface}/></Interfaces></General>
  <Discovery>
    <ExternalDomainId>{domain}</ExternalDomainId>
    <Peers><Peer address="{peer}"/></Peers>
    <ParticipantIndex>auto</ParticipantIndex>
    <SPDPInterval>1s</SPDPInterval>
    <InitialLocatorPruneDelay>inf</InitialLocatorPruneDelay>
  </Discovery>
  <Internal><Watermarks>
    <WhcHigh>16MiB</WhcHigh><WhcHighInit>16MiB</WhcHighInit><WhcAdaptive>false</WhcAdaptive>
  </Watermarks></Internal>
</Domain></CycloneDDS>
"""
"""Settings of a domain.

Peers of this machine are asked each second, for as long as the participant exists: a loopback interface may have no
multicast. A writer blocks at the high watermark, which the history of one topic does not reach.
"""


class MessageTypes:
    """Descriptions of message types with the definitions of one distribution.

    A description equals that of `rmw_cyclonedds`: final structures with the names of ROS, so that programs that compare
    descriptions accept it.
    """

    def __init__(self, definitions: Mapping[str, str]) -> None:
        """Store the definitions by full type name."""
        self._definitions = definitions
        self._structs: dict[str, Any] = {}

    def describe(self, message_type: str) -> Any:
        """Return the description of a primitive or of a message type."""
        if message_type in PRIMITIVES:
            return PRIMITIVES[message_type]
        if message_type not in self._structs:
            fields = {}
            for field in parse_fields(self._definitions[message_type]):
                kind = self.describe(field.type)
                if field.length is not None:
                    kind = types.sequence[kind] if field.length < 0 else types.array[kind, field.length]
                fields[field.name] = kind
            self._structs[message_type] = _make_struct(message_type, fields)
        return self._structs[message_type]


def _make_struct(message_type: str, fields: Mapping[str, Any]) -> Any:
    """Return the description of a structure."""
    name = format_dds_type(message_type, ".")
    return make_idl_struct(name.rpartition(".")[2], name, dict(fields), dataclassify=False)


def describe_discovery_info(gid_size: int) -> Any:
    """Return the description of `rmw_dds_common/msg/ParticipantEntitiesInfo`."""
    package, name = "rmw_dds_common/msg/", types.bounded_str[256]
    gid = _make_struct(f"{package}Gid", {"data": types.array[types.uint8, gid_size]})
    gids = types.sequence[gid]
    fields = {"node_namespace": name, "node_name": name, "reader_gid_seq": gids, "writer_gid_seq": gids}
    node = _make_struct(f"{package}NodeEntitiesInfo", fields)
    fields = {"gid": gid, "node_entities_info_seq": types.sequence[node]}
    return _make_struct(f"{package}ParticipantEntitiesInfo", fields)


class EncodedMessage:
    """A message as bytes, in the place of a message that the library would serialise."""

    def __init__(self, data: bytes) -> None:
        """Store the CDR with its encapsulation."""
        self.data = data

    def serialize(self, **_options: object) -> bytes:
        """Return the bytes."""
        return self.data


class DdsTopicWriter:
    """The writer of one topic.

    guid: its GUID, 16 bytes.
    dropped: the number of messages that the library did not accept.
    """

    def __init__(self, writer: DataWriter[Any]) -> None:
        """Let the writer accept bytes."""
        self._writer = writer
        self._writer.data_type = EncodedMessage
        self.guid: bytes = writer.guid.bytes
        self.dropped = 0

    @property
    def has_readers(self) -> bool:
        """True if a program reads the topic."""
        return bool(self._writer.get_publication_matched_status().current_count)

    @property
    def reader_count(self) -> int:
        """The number of readers since the start."""
        return int(self._writer.get_publication_matched_status().total_count)

    def write(self, data: bytes) -> None:
        """Send a message, without waiting for readers. Raises `DDSException`."""
        try:
            self._writer.write(EncodedMessage(data))
        except DDSException as error:
            if error.code != DDSException.DDS_RETCODE_TIMEOUT:
                raise
            self.dropped += 1

    def flush(self, timeout: float) -> None:
        """Wait until the readers have confirmed all messages, for at most `timeout` (s)."""
        with contextlib.suppress(AttributeError):  # a defect of Cyclone DDS 11.0: raised instead of False for a timeout
            self._writer.wait_for_acks(duration(seconds=timeout))


OWN_PARTICIPANTS: set[bytes] = set()
"""GUIDs of the participants of this process, whose publishers are not followed."""


class DdsParticipant:
    """A participant in a domain of the network, with a domain of the library of its own."""

    def __init__(self, url: StreamUrl, domain: int) -> None:
        """Join the domain. Raises `RecordingError`."""
        number = next(DOMAIN_NUMBERS)
        try:
            self._domain = Domain(number, format_settings(domain, url.host))
            self.entity = DomainParticipant(number, Qos(Policy.Userdata(PARTICIPANT_USER_DATA)))
        except DDSException as error:
            raise RecordingError(
                "address of this machine",
                url.host,
                where=Where(url.text),
                allowed=f"must be that of a network interface; Cyclone DDS: {error.msg}",
            ) from error
        self.guid: bytes = self.entity.guid.bytes
        OWN_PARTICIPANTS.add(self.guid)

    def close(self) -> None:
        """Leave the domain."""
        OWN_PARTICIPANTS.discard(self.guid)
        self.entity.__del__()
        self._domain.__del__()


class Bytes:
    """What the library makes of a message: its bytes.

    data: the CDR with its encapsulation.
    """

    def __init__(self, data: bytes) -> None:
        """Copy the bytes."""
        self.data = bytes(data)
        self.sample_info: Any = None

    @staticmethod
    def deserialize(data: bytes) -> Bytes:
        """Return a message."""
        return Bytes(data)

    @staticmethod
    def deserialize_key(_data: bytes) -> None:
        """Return the key of a message without data, which a publisher that disconnects sends."""


def open_topic(participant: DdsParticipant, name: str, description: Any) -> Topic[Any]:
    """Return a topic whose readers give bytes."""
    topic: Topic[Any] = Topic(participant.entity, name, description)
    topic.data_type = Bytes
    return topic


class DdsPublisherList:
    """The publishers of ROS topics that a participant has found, without those of this process."""

    def __init__(self, participant: DdsParticipant) -> None:
        """Read what the library finds, and the names of nodes."""
        self._endpoints = BuiltinDataReader(participant.entity, BuiltinTopicDcpsPublication)
        info = open_topic(participant, DISCOVERY_TOPIC, describe_discovery_info(GID_SIZE))
        qos = Qos(Policy.Reliability.Reliable(0), Policy.Durability.TransientLocal, Policy.History.KeepAll)
        self._info: DataReader[Any] = DataReader(participant.entity, info, qos)
        self._publishers: dict[int, RemotePublisher] = {}
        self._nodes: dict[str, str] = {}

    def update(self) -> None:
        """Read what has changed. Raises `DDSException`."""
        for sample in self._info.take(BATCH):
            with contextlib.suppress(ValueError):
                if isinstance(sample, Bytes):
                    self._nodes |= {guid.hex(): node for guid, node in decode_discovery_info(sample.data).items()}
        for endpoint in self._endpoints.take(BATCH):
            handle, is_alive = endpoint.sample_info.instance_handle, endpoint.sample_info.valid_data
            if not is_alive:
                if handle in self._publishers:
                    self._publishers[handle].is_active = False
            elif endpoint.participant_key.bytes not in OWN_PARTICIPANTS and handle not in self._publishers:
                topic, kind = parse_dds_topic(endpoint.topic_name), parse_dds_type(endpoint.type_name)
                if topic and kind:
                    is_reliable = isinstance(endpoint.qos[Policy.Reliability], Policy.Reliability.Reliable)
                    self._publishers[handle] = RemotePublisher(
                        topic, kind, endpoint.key.bytes.hex(), is_reliable=is_reliable
                    )
        for publisher in self._publishers.values():
            publisher.node = publisher.node or self._nodes.get(publisher.identity, "")

    def get_publisher(self, handle: int) -> RemotePublisher | None:
        """Return the publisher with an instance handle, also after it has disconnected."""
        return self._publishers.get(handle)

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers that are connected."""
        return [one for one in self._publishers.values() if one.is_active]


class DdsNode:
    """A participant with the writers of one node of ROS 2."""

    alignment = 4  # bytes: the size of a word
    errors: tuple[type[Exception], ...] = (DDSException,)

    def __init__(self, url: StreamUrl, domain: int, name: str, is_humble: bool) -> None:
        """Join a domain. Raises `RecordingError`."""
        self.name = name
        self._gid_size, self._has_type_hashes = (HUMBLE_GID_SIZE, False) if is_humble else (GID_SIZE, True)
        self._participant = DdsParticipant(url, domain)
        self._publisher = DdsPublisher(self._participant.entity)
        self.writers: list[DdsTopicWriter] = []
        self._others = DdsPublisherList(self._participant)
        info = Topic(self._participant.entity, DISCOVERY_TOPIC, describe_discovery_info(self._gid_size))
        self._info = DdsTopicWriter(DataWriter(self._publisher, info, _make_qos(1, is_latched=True)))

    def add_writer(self, topic: str, encoder: MessageEncoder, type_hash: str, *, is_latched: bool) -> DdsTopicWriter:
        """Return the writer of a topic of ROS."""
        size = len(encoder.layout.template)
        depth = 1 if is_latched else max(MIN_HISTORY, min(MAX_HISTORY, HISTORY_BYTES // size))
        user_data = f"typehash={type_hash};".encode() if self._has_type_hashes else b""
        qos = _make_qos(depth, is_latched=is_latched, user_data=user_data)
        description = MessageTypes(split_definitions(encoder)).describe(encoder.type)
        dds_topic = Topic(self._participant.entity, format_dds_topic(topic), description)
        writer = DdsTopicWriter(DataWriter(self._publisher, dds_topic, qos))
        self.writers.append(writer)
        return writer

    def announce(self) -> None:
        """Tell the other nodes the name of this one, and its writers."""
        guids = [writer.guid for writer in self.writers]
        self._info.write(encode_discovery_info(self._participant.guid, self.name, guids, self._gid_size))

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers of other programs that are known now."""
        self._others.update()
        return self._others.list_publishers()

    def flush(self) -> None:
        """Wait until all readers that answer have confirmed all messages."""
        until = time.monotonic() + CONFIRM_TIMEOUT
        for writer in self.writers:
            writer.flush(max(until - time.monotonic(), 0.0))

    def close(self) -> None:
        """Leave the domain."""
        self._participant.close()


def _make_qos(depth: int, *, is_latched: bool, user_data: bytes = b"") -> Qos:
    """Return the policies of a writer: those of ROS, but a longer history for readers that are behind.

    A writer that would have to wait for a reader does not accept the message (`max_blocking_time` is 0).
    """
    return Qos(
        Policy.Reliability.Reliable(0),
        Policy.Durability.TransientLocal if is_latched else Policy.Durability.Volatile,
        Policy.History.KeepLast(depth),
        *([Policy.Userdata(user_data)] if user_data else []),
    )


def format_settings(domain: int, address: str) -> str:
    """Return the settings of a participant on the network interface with an IPv4 address or a name."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return SETTINGS.format(interface=f"name={quoteattr(address)}", domain=domain, peer=LOOPBACK)
    return SETTINGS.format(interface=f"address={quoteattr(address)}", domain=domain, peer=address)
