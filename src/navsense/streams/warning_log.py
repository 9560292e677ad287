"""Warnings about other programs, which may repeat a problem with each message."""

from __future__ import annotations

import logging
import threading

MAX_WARNINGS = 20
"""Number of warnings of one `WarningLog`."""


class WarningLog:
    """Logs the warnings of one stream: each cause once for each source, and `MAX_WARNINGS` in all.

    All methods can be called in any thread.

    >>> warnings = WarningLog(logging.getLogger("navsense.streams"), "ros1://127.0.0.1:11311: topic /odom")
    >>> warnings.add("stamp", "node /sim", "node /sim sends the stamp 0")
    >>> warnings.add("stamp", "node /sim", "node /sim sends the stamp 0")  # is not logged again
    """

    def __init__(self, logger: logging.Logger, name: object) -> None:
        """Log with the logger of a module. Each line begins with the name of the stream."""
        self._logger, self._name = logger, name
        self._keys: set[tuple[str, str]] = set()
        self._is_full = False
        self._lock = threading.Lock()

    def add(self, cause: str, source: object, text: str) -> None:
        """Log a warning, unless the same cause was logged for the same source.

        cause: a short name of the problem.
        source: the peer that has the problem; "" if there is only one.
        text: the line after the name.
        """
        key = (cause, str(source))
        with self._lock:
            if key in self._keys or self._is_full:
                return
            if len(self._keys) < MAX_WARNINGS:
                self._keys.add(key)
            else:
                self._is_full, text = True, "further warnings are not logged"
        self._logger.warning("%s: %s", self._name, text)
