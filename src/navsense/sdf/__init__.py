"""SDF files: from XML with line numbers to a validated world."""

from __future__ import annotations

from navsense.sdf.document import load

__all__ = ["load"]
