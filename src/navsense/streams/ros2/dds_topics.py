"""Topics of ROS 2 of other programs on DDS, on the library Cyclone DDS.

The library finds the publishers, and gives the messages as bytes: the type of a topic describes them to other programs,
but the library converts no message.

A reader is reliable if all publishers of its topic are. A reliable reader gets nothing from a best-effort publisher, so
one such publisher makes the reader best-effort. No publisher waits for the reader, which keeps `HISTORY` messages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cyclonedds.core import DDSException, InstanceState, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from navsense.core.errors import Where
from navsense.messages.schemas import DEFINITIONS
from navsense.recordings.base import make_no_thread_error
from navsense.streams.ros2.dds import BATCH, Bytes, DdsParticipant, DdsPublisherList, MessageTypes, open_topic
from navsense.streams.ros2.naming import format_dds_topic
from navsense.streams.ros2.remote import Receive, RemotePublisher, Warn
from navsense.streams.stream import StreamUrl

HISTORY = 1000
"""Messages of a topic that wait for this program: 1 s at 1 kHz."""

WAIT_TIME = 0.05
"""Longest time (s) of one wait for messages."""

RECEIVE_PERIOD = 0.0025
"""Least time (s) from one read of a topic to the next."""


class DdsTopicReader:
    """The reader of one topic. It exists as soon as the topic has a publisher of the type."""

    def __init__(
        self,
        participant: DdsParticipant,
        waitset: WaitSet,
        topic: str,
        types: Sequence[str],
        receive: Receive,
        warn: Warn,
    ) -> None:
        """Start without a reader of the library."""
        self.receive = receive
        self._name, self._types = topic, types
        self._participant, self._waitset, self._warn = participant, waitset, warn
        self._topic: Topic[Any] | None = None
        self._reader: DataReader[Any] | None = None
        self._condition: ReadCondition | None = None
        self._is_reliable = True

    def match(self, publishers: list[RemotePublisher]) -> None:
        """Open the reader, or open it again, with a reliability that all publishers offer.

        Its type is that of the first publisher: a topic has one type.
        """
        candidates = [one for one in publishers if one.topic == self._name and one.type in self._types]
        if not candidates:
            return
        if self._topic is None:
            self._types = [candidates[0].type]
            description = MessageTypes(DEFINITIONS).describe(candidates[0].type)
            self._topic = open_topic(self._participant, format_dds_topic(self._name), description)
        offers = [one.is_reliable for one in candidates if one.type in self._types]
        if not offers or (self._reader is not None and self._is_reliable == all(offers)):
            return
        self._is_reliable = all(offers)
        self.close()
        reliability = Policy.Reliability.Reliable(0) if self._is_reliable else Policy.Reliability.BestEffort
        qos = Qos(reliability, Policy.Durability.Volatile, Policy.History.KeepLast(HISTORY))
        self._reader = DataReader(self._participant.entity, self._topic, qos)
        any_state = ViewState.Any | InstanceState.Any | SampleState.NotRead
        self._condition = ReadCondition(self._reader, any_state)
        self._waitset.attach(self._condition)

    def take(self) -> list[Bytes]:
        """Return the messages since the last call."""
        if self._reader is None:
            return []
        samples = self._reader.take(BATCH)
        status = self._reader.get_sample_lost_status()
        if status.total_count_change:
            self._warn("lost", "", "messages are lost on the network")
        return [one for one in samples if isinstance(one, Bytes)]

    def close(self) -> None:
        """Close the reader of the library."""
        if self._reader is not None and self._condition is not None:
            self._waitset.detach(self._condition)
            self._condition.__del__()
            self._reader.__del__()
            self._reader = self._condition = None


class DdsTopics:
    """A participant with the readers of a subscriber, and a thread that receives their messages."""

    errors: tuple[type[Exception], ...] = (DDSException,)

    def __init__(self, url: StreamUrl, domain: int, fail: Callable[[str], None]) -> None:
        """Join a domain. Raises `RecordingError`."""
        self._fail = fail
        self._participant = DdsParticipant(url, domain)
        self._lock, self._ending = threading.Lock(), threading.Event()
        self._readers: list[DdsTopicReader] = []
        self._thread = threading.Thread(target=self._run, name="navsense-ros2-subscriber", daemon=True)
        try:
            self._list = DdsPublisherList(self._participant)
            self._waitset = WaitSet(self._participant.entity)
            self._thread.start()
        except RuntimeError as error:
            self._participant.close()
            raise make_no_thread_error(Where(url.text)) from error
        except BaseException:
            self._participant.close()
            raise

    def list_publishers(self) -> list[RemotePublisher]:
        """Return the publishers that are known now, without those of this process."""
        with self._lock:
            return self._list.list_publishers()

    def subscribe(self, topic: str, types: Sequence[str], receive: Receive, warn: Warn) -> None:
        """Receive the messages of a topic, of all publishers with the type of the first one. Raises `DDSException`."""
        with self._lock:
            self._readers.append(DdsTopicReader(self._participant, self._waitset, topic, types, receive, warn))
            self._readers[-1].match(self._list.list_publishers())

    def _run(self) -> None:
        """Receive messages until the end."""
        try:
            while not self._ending.wait(RECEIVE_PERIOD):
                self._waitset.wait(duration(seconds=WAIT_TIME))
                for receive, publisher, data in self._take():
                    receive(publisher, data)
        except Exception as error:  # noqa: BLE001  # the run learns of it
            self._fail(f"{type(error).__name__}: {error}")

    def _take(self) -> list[tuple[Receive, RemotePublisher, bytes]]:
        """Return the messages since the last call, in the order in which they were published. Raises `DDSException`."""
        with self._lock:
            samples = [(sample, reader.receive) for reader in self._readers for sample in reader.take()]
            self._list.update()  # after the messages, so that their publishers are known
            for reader in self._readers:
                reader.match(self._list.list_publishers())
            samples.sort(key=_get_source_time)
            messages = [
                (receive, self._list.get_publisher(one.sample_info.publication_handle), one.data)
                for one, receive in samples
            ]
        return [(receive, publisher, data) for receive, publisher, data in messages if publisher is not None]

    def close(self) -> None:
        """Leave the domain."""
        self._ending.set()
        self._thread.join()
        for reader in self._readers:
            with suppress(DDSException):
                reader.close()
        self._participant.close()


def _get_source_time(message: tuple[Bytes, Receive]) -> int:
    """Return the time (ns) at which a message was published."""
    time: int = message[0].sample_info.source_timestamp
    return time
