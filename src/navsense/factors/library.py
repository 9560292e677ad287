"""GTSAM, where it is installed: never imported before a factor is put into one of its graphs.

An object of GTSAM's can only be met once its module is imported, so telling one from an array needs no import either.
"""

from __future__ import annotations

import sys
from typing import Any

from navsense.errors import FactorError


def is_gtsam(value: object, name: str) -> bool:
    """Tell whether a value is an object of GTSAM's class `name`."""
    library = sys.modules.get("gtsam")
    return library is not None and isinstance(value, vars(library)[name])


def is_noise(value: object) -> bool:
    """Tell whether a value is a noise model of GTSAM's."""
    library = sys.modules.get("gtsam")
    return library is not None and isinstance(value, library.noiseModel.Base)


def gtsam_for(what: str) -> Any:
    """Return the module gtsam; raise FactorError where it is not installed."""
    try:
        import gtsam
    except ImportError as cause:
        remedy = "pip install 'navsense[gtsam]'; evaluateError, unwhitenedError and error need arrays alone"
        raise FactorError(what, "needs gtsam, which is not installed", remedy=remedy) from cause
    return gtsam
