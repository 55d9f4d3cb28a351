"""A line of text that shows how far a piece of work is, on a terminal and in a notebook."""

from __future__ import annotations

import shutil
import sys
import threading
import time

_WIDTH = 24
_INTERVAL = 0.1


def _is_notebook() -> bool:
    """Whether a notebook shows what is written; it understands `\\r` as a terminal does."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and running.__class__.__name__ == "ZMQInteractiveShell"


class Bar:
    """A function for `progress=`: draws a bar after `delay` seconds, and removes it at the end.

    Where the stream is neither a terminal nor a notebook, nothing is drawn. `progress=True` is `progress=Bar()`.
    """

    def __init__(self, stream=None, *, delay: float = 0.5, enabled: bool | None = None):
        self._stream = sys.stderr if stream is None else stream
        if enabled is None:
            is_terminal = getattr(self._stream, "isatty", lambda: False)()
            enabled = is_terminal or _is_notebook()
        self._enabled = enabled
        self._begin = time.monotonic()
        self._delay = delay
        self._next = self._begin + delay
        self._drawn = 0
        self._lock = threading.Lock()

    def __call__(self, progress) -> None:
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        with self._lock:
            self._next = now + _INTERVAL
            self._draw(self._line(progress, now - self._begin))

    def _line(self, progress, seconds: float) -> str:
        total = max(progress.total, 1)
        done = min(progress.done, total)
        full = done * _WIDTH // total
        return f"[{'#' * full}{'.' * (_WIDTH - full)}] {100 * done // total:3d}% {progress.detail} ({seconds:.0f} s)"

    def _draw(self, line: str) -> None:
        line = line[: max(shutil.get_terminal_size().columns - 1, 20)]
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)

    def close(self) -> None:
        """Removes the line. The bar can be used again."""
        with self._lock:
            if self._drawn:
                self._stream.write("\r" + " " * self._drawn + "\r")
                self._stream.flush()
                self._drawn = 0
            self._begin = time.monotonic()
            self._next = self._begin + self._delay
