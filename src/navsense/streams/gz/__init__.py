"""The stream of Gazebo transport: the messages of the `.gz.mcap` recording, published on ZeroMQ.

    discovery.py   datagrams that tell the other programs which topics there are
    settings.py    the options of the URL, and the environment variables of Gazebo transport
    node.py        the ZeroMQ socket of all topics
    publisher.py   the stream
"""

from __future__ import annotations

from navsense.streams.gz.publisher import STREAMS

__all__ = ["STREAMS"]
