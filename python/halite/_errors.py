"""The exception of all failures."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, where, and what to do about it.

    Programs decide by `kind`; the text is for people.
    """

    kind: str
    """One of `not_found`, `invalid_input`, `invalid_model`, `unsupported`, `no_device`, `out_of_memory`, `deadline_exceeded`,
    `cancelled`, `device_lost`, `permission_denied`, `io`, `other`."""

    code: str
    """The status code that modules and IREE's tools know it by, such as `INVALID_ARGUMENT`."""

    context: list[str]
    """What was being done, from the innermost step outwards."""

    def __init__(self, message: str, kind: str = "other", code: str = "UNKNOWN", context: list[str] | None = None):
        super().__init__(message, kind, code, context or [])
        self.message = message
        self.kind = kind
        self.code = code
        self.context = context or []

    def __str__(self) -> str:
        return "; ".join([self.message, *self.context])

    def __repr__(self) -> str:
        return f"halite.Error({self.kind}: {self})"
