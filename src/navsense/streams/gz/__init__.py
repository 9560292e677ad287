"""The stream of Gazebo transport: the messages of the `.gz.mcap` recording, published on ZeroMQ.

`versions` has the messages of each version, `settings` the options and environment variables, `discovery` the datagrams
that announce the topics to other programs, `node` the ZeroMQ socket of all topics, and `publisher` the stream.
"""

from __future__ import annotations

from navsense.streams.gz.publisher import STREAMS

__all__ = ["STREAMS"]
