"""Handles of memory on their way to other processes."""

from __future__ import annotations

import os


def _opened(duplicate, size: int, kind: str, memory_type: int | None, dedicated: bool):
    from ._halite import ExternalMemory

    descriptor = duplicate.detach()
    try:
        return ExternalMemory(descriptor, size, kind=kind, memory_type=memory_type, dedicated=dedicated)
    finally:
        os.close(descriptor)


def _sent(memory):
    from multiprocessing import reduction

    duplicate = reduction.DupFd(memory.fileno())
    return _opened, (duplicate, memory.size, memory.kind, memory.memory_type, memory.dedicated)


def register() -> None:
    """Lets `multiprocessing` send descriptors to other processes, which get duplicates. Windows has no descriptors."""
    if os.name == "nt":
        return
    from multiprocessing import reduction

    from ._halite import ExternalMemory

    reduction.register(ExternalMemory, _sent)
