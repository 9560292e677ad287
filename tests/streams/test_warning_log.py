"""Warnings about other programs are logged once for each cause, in a limited number."""

from __future__ import annotations

import logging
import threading

import pytest

from navsense.streams.warning_log import MAX_WARNINGS, WarningLog

LOG = logging.getLogger("navsense.streams")


@pytest.mark.requirement("LIV-4")
def test_warning_is_logged_once_for_each_cause_and_source(caplog: pytest.LogCaptureFixture) -> None:
    warnings = WarningLog(LOG, "gz://")
    for _ in range(3):
        for cause, source in (("stamp", "node a"), ("stamp", "node b"), ("type", "node a")):
            warnings.add(cause, source, f"{source}: {cause}")
    assert caplog.messages == ["gz://: node a: stamp", "gz://: node b: stamp", "gz://: node a: type"]


@pytest.mark.requirement("LIV-4")
def test_last_line_announces_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Also if several threads warn of the same peers at once."""
    warnings, count = WarningLog(LOG, "gz://"), 3 * MAX_WARNINGS
    barrier = threading.Barrier(4)

    def warn() -> None:
        barrier.wait()
        for number in range(count):
            warnings.add("type", number, f"peer {number}")

    threads = [threading.Thread(target=warn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caplog.messages) == len(set(caplog.messages)) == MAX_WARNINGS + 1
    assert caplog.messages.count("gz://: further warnings are not logged") == 1
