"""Build hook of hatchling: adds compiled kernels to a wheel, which then suits one platform.

`tools/platform_wheel.py` names their folder in the environment variable NAVSENSE_COMPILED_KERNELS.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernelsHook(BuildHookInterface[Any]):
    """Adds the folder of compiled kernels."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder and the tag of the platform, unless the wheel is an editable one."""
        folder = os.environ.get("NAVSENSE_COMPILED_KERNELS")
        if folder and version == "standard":
            build_data["force_include"][folder] = "navsense/compiled"
            build_data["pure_python"], build_data["infer_tag"] = False, True
