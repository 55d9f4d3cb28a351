"""The exceptions of ONNX Runtime, and which one stands for which failure."""

from __future__ import annotations

import contextlib

from .._errors import Error


class Fail(Exception):
    """Anything that has no exception of its own."""


class InvalidArgument(Exception):
    """An input does not fit, or a name is not known."""


class NoSuchFile(Exception):
    """The model's file does not exist."""


class NoModel(Exception):
    """There is no model."""


class EngineError(Exception):
    """A fault of the engine."""


class RuntimeException(Exception):
    """A failure while the model ran."""


class InvalidProtobuf(Exception):
    """The file is no model, or damaged."""


class ModelLoaded(Exception):
    """A model is loaded already."""


class NotImplemented(Exception):
    """What was asked for cannot be done here."""


class InvalidGraph(Exception):
    """The model contradicts its format."""


class EPFail(Exception):
    """The device failed."""


class ModelRequiresCompilation(Exception):
    """The model would have to be compiled, which was forbidden."""


class NotFound(Exception):
    """A part of a package of models is not there."""


class ModelLoadCanceled(Exception):
    """The making of a session was stopped."""


class Unavailable(NotImplemented, RuntimeError):
    """What ONNX Runtime says by a `RuntimeError` where a part of it is not there."""


class Missing(Fail, RuntimeError):
    """What ONNX Runtime says by a `RuntimeError` where there is no such entry."""


class BadBinding(InvalidArgument, RuntimeError):
    """What ONNX Runtime says by a `RuntimeError` where bound names or values do not fit."""


_BY_KIND = {
    "not_found": NoSuchFile,
    "invalid_input": InvalidArgument,
    "invalid_model": InvalidProtobuf,
    "unsupported": NotImplemented,
    "no_device": EPFail,
    "out_of_memory": RuntimeException,
    "deadline_exceeded": Fail,
    "cancelled": Fail,
    "device_lost": EPFail,
    "permission_denied": Fail,
    "io": Fail,
    "other": RuntimeException,
}


@contextlib.contextmanager
def translated(special: dict[str, type[Exception]] | None = None):
    """Failures of Halite leave the block as those of ONNX Runtime; some kinds as what is `special` to the block."""
    try:
        yield
    except Error as error:
        raise {**_BY_KIND, **(special or {})}.get(error.kind, Fail)(f"[Halite] {error.kind}: {error}") from error
