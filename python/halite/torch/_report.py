"""What ran where."""

from __future__ import annotations

import collections
import dataclasses
import logging

_MOST = 1000
_LOG = logging.getLogger("halite")


@dataclasses.dataclass
class Record:
    """A graph that PyTorch captured, or a part of one."""

    operators: int
    """How many operators it has."""

    on: str
    """`halite`, or `pytorch`."""

    reason: str | None = None
    """Why it does not run on the device."""

    names: tuple[str, ...] = ()
    """The operators that cannot."""

    sessions: int = 0
    """How often it was compiled, for other sizes or values."""

    calls: int = 0
    """How often it ran on the device."""

    @staticmethod
    def of_eager(operators: int, reason: str, names: tuple[str, ...] = ()) -> Record:
        """Something that runs in PyTorch; logged once."""
        record = Record(operators, "pytorch", reason, names)
        _LOG.warning("%d operators run in PyTorch: %s", operators, reason)
        _all.append(record)
        return record

    @staticmethod
    def of_device(operators: int) -> Record:
        """Something that runs on the device."""
        record = Record(operators, "halite")
        _all.append(record)
        return record


_all: collections.deque[Record] = collections.deque(maxlen=_MOST)


def report() -> list[Record]:
    """The graphs and parts of graphs so far, the last 1000."""
    return list(_all)


def reset() -> None:
    """Forgets the report."""
    _all.clear()


def explain() -> str:
    """The report as text."""
    if not _all:
        return "no graph was compiled so far"
    lines = []
    for record in _all:
        calls = f" {record.calls:>6} calls" if record.on == "halite" else ""
        line = f"{record.on:<8} {record.operators:>5} operators{calls}"
        lines.append(line if record.reason is None else f"{line}  {record.reason}")
    return "\n".join(lines)
