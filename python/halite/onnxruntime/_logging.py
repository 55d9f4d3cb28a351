"""ONNX Runtime's levels of messages as Halite's."""

from __future__ import annotations

from .. import set_log_level
from ._errors import InvalidArgument

_LEVELS = {0: "debug", 1: "info", 2: "warn", 3: "error", 4: "error"}


def set_default_logger_severity(severity: int) -> None:
    """Which messages reach Python's logger `halite`: 0 all, 1 info, 2 warnings, 3 errors, 4 fatal errors."""
    if severity not in _LEVELS:
        raise InvalidArgument(f"a severity is a number from 0 to 4, not {severity!r}")
    set_log_level(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """More details in messages of the lowest severity."""
    if not isinstance(verbosity, int):
        raise InvalidArgument(f"a verbosity is a number, not {verbosity!r}")
    if verbosity > 0:
        set_log_level("trace")
