"""The stream of Gazebo transport: messages as in a `.gz.mcap` recording, and the motion and the current of a run.

versions                               messages of each version of the library
settings                               options of the URL, and environment variables
discovery, directory                   datagrams that announce topics and services; those of other programs
node, publisher                        topics of a run
services, run_services                 services of a run, and requests to other programs
topic_receiver, subscriber, currents   topics of a simulator: the motion and the current
poses                                  states in the messages
"""

from __future__ import annotations

from navsense.streams.gz.publisher import STREAMS

__all__ = ["STREAMS"]
