"""What the backend is told."""

from __future__ import annotations

import dataclasses

from .. import Device, Session
from .._errors import Error


class Unsupported(Exception):
    """A graph, or a part of it, that cannot run on the device; the text says why."""


class Draws(Unsupported):
    """A graph that draws random numbers: other ones in each call, and the same behind the same seed."""


@dataclasses.dataclass
class Options:
    """Options of the backend: `torch.compile(model, backend="halite", options={"device": "vulkan://0"})`."""

    device: str | Device | None = None
    """The device; `None` for the best one."""

    precision: str | None = None
    """The floats that are computed with: `model` or `f16`."""

    cache: object = None
    """As for `halite.Session`."""

    fallback: bool = True
    """Whether what cannot run on the device runs in PyTorch. Without it, that is an error."""

    least_operators: int = 2
    """Parts of a graph with fewer operators than this stay in PyTorch when it has to be split."""

    def session(self, model) -> Session:
        """A session of a model."""
        return Session(model, device=self.device, precision=self.precision, cache=self.cache)

    def refuse(self, why: str) -> None:
        """Ends the work where nothing may run in PyTorch."""
        if not self.fallback:
            raise Error(why, "unsupported", "UNIMPLEMENTED")
