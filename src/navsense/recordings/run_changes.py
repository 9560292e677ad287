"""Changes of a run in a recording: what services have switched and set while it went on.

Recordings of messages have them on the topic `CHANGES_TOPIC`, `std_msgs/msg/String` with JSON. Recordings of arrays
have a list of the same objects under the key `CHANGES_KEY` of their metadata::

    {"time": 12.5, "name": "robot::base_link::dvl", "property": "on", "value": false}
"""

from __future__ import annotations

import json
from typing import Any

from navsense.core import inputs
from navsense.core.errors import DamagedError, SimulationError
from navsense.core.readings import RunChange
from navsense.recordings.channels import MessageReader

CHANGES_TOPIC = "/navsense/changes"
"""Topic of the changes of a run. Their log time is the time from which they act."""

CHANGES_KEY = "changes"
"""Key of the changes in the metadata of recordings of arrays."""


def change_to_json(change: RunChange) -> dict[str, Any]:
    """Return a change as JSON."""
    value = list(change.value) if isinstance(change.value, tuple) else change.value
    return {"time": change.time, "name": change.name, "property": change.property, "value": value}


def format_change(change: RunChange) -> str:
    """Return a change as the text of a message."""
    return json.dumps(change_to_json(change))


def change_from_json(data: Any) -> RunChange:
    """Return the change that `change_to_json` wrote. Raises `DamagedError`."""
    try:
        return RunChange(data["time"], data["name"], data["property"], data["value"])
    except (KeyError, TypeError, SimulationError) as error:
        raise DamagedError(f"damaged: a change of its run cannot be read: {error}") from error


def read_changes(reader: MessageReader) -> list[dict[str, Any]]:
    """Return the changes in a recording of messages of navsense, as JSON. Raises `DamagedError`."""
    if not reader.is_navsense or not any(channel.topic == CHANGES_TOPIC for channel in reader.channels):
        return []
    texts: list[bytes] = []
    for batches in reader.read_batches([CHANGES_TOPIC]):
        for batch in batches:
            rows = {
                index: row.tobytes()
                for indices, group in batch.size_groups
                for index, row in zip(indices.tolist(), group, strict=True)
            }
            texts += [rows[index] for index in sorted(rows)]
    changes = []
    for text in texts:
        start, end = text.find(b'{"time"'), text.rfind(b"}")  # without lengths and padding of the message
        try:
            changes.append(change_to_json(change_from_json(inputs.parse_json(text[start : end + 1]))))
        except ValueError as error:
            raise DamagedError(f"damaged: a change of its run cannot be read: {error}") from error
    return changes
