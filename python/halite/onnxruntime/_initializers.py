"""Weights that a caller gives: initializers that are inputs too, and those that session options replace.

Halite compiles weights into its modules, so a model with other weights is another model: its file is written anew in memory, without
the initializers that become inputs and with those that are given. Numbers of the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import os

import numpy as np

from ._errors import Fail, InvalidArgument, NotImplemented
from ._labels import element_type
from ._metadata import encoded, fields, message, opened, pieces, text, varint
from ._values import NUMBER_OF_TYPE

_GRAPH, _IR_VERSION, _INITIALIZER, _INPUT = 7, 1, 5, 11
_FIRST_VERSION = 4
"""Before, each initializer had to be an input, and all of them are constants."""


def _graph(data) -> tuple[int, int] | None:
    found = next((value for number, value in fields(data, 0, len(data)) if number == _GRAPH), None)
    return found if isinstance(found, tuple) else None


def _name(data, place, number: int) -> str:
    return next((text(data, value) for own, value in fields(data, *place) if own == number), "")


def overridable(model) -> list[str]:
    """The inputs of a path or bytes that have a value in the file, in the order of the inputs."""
    try:
        with opened(model) as data:
            version = next((value for number, value in fields(data, 0, len(data)) if number == _IR_VERSION), 0)
            graph = _graph(data)
            if graph is None or version < _FIRST_VERSION:
                return []
            inputs, constants = [], set()
            for number, value in fields(data, *graph):
                if number == _INPUT:
                    inputs.append(_name(data, value, 1))
                elif number == _INITIALIZER:
                    constants.add(_name(data, value, 8))
            return [name for name in inputs if name in constants]
    except (OSError, ValueError, TypeError):
        return []


def sizes(model, names) -> dict[str, list]:
    """The sizes of inputs as the file declares them: numbers, names of open sizes, `None`."""
    found = {}
    with opened(model) as data:
        for number, value in fields(data, *(_graph(data) or (0, 0))):
            if number == _INPUT and _name(data, value, 1) in names:
                found[_name(data, value, 1)] = declared_sizes(data, value)
    return found


def declared_sizes(data, place) -> list:
    """The sizes of a ValueInfoProto: numbers, names of open ones, `None`. The path there: ValueInfoProto.type (2) . tensor_type (1) . shape (2) . dim (1), which is a number (1) or a name (2)."""
    for path in (2, 1, 2):
        place = next((value for number, value in fields(data, *place) if number == path), (0, 0))
    dims = []
    for number, value in fields(data, *place):
        if number == 1:
            inner = dict(fields(data, *value))
            dims.append(inner[1] if 1 in inner else text(data, inner[2]) if 2 in inner else None)
    return dims


def _tensor(name: str, array: np.ndarray) -> bytes:
    """A TensorProto of an array."""
    kind = NUMBER_OF_TYPE.get(str(array.dtype))
    if kind is None:
        raise NotImplemented(f"the value of '{name}' has elements of the type {array.dtype}, which initializers cannot have here")
    array = np.ascontiguousarray(array)
    dims = b"".join(encoded(1 << 3) + encoded(size) for size in array.shape)
    return dims + encoded(2 << 3) + encoded(kind) + message(8, name.encode()) + message(9, array.tobytes())


def _inline(data, place, folder: str | None) -> bytes:
    """A tensor whose elements are in the file: those of one that lie beside it are read."""
    found = list(fields(data, *place))
    if (14, 1) not in found:
        return bytes(data[place[0] : place[1]])
    entries = {}
    for number, value in found:
        if number == 13:
            entries[_name(data, value, 1)] = _name(data, value, 2)
    name = _name(data, place, 8)
    if folder is None:
        raise Fail(f"the value of '{name}' is in a file beside the model, and the model was given as bytes")
    location = entries.get("location", "")
    path = os.path.realpath(os.path.join(folder, location))
    if os.path.commonpath([path, os.path.realpath(folder)]) != os.path.realpath(folder):
        raise Fail(f"the value of '{name}' is in '{location}', which is not in the model's folder")
    offset = int(entries.get("offset", "0"))
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            content = file.read(int(entries["length"])) if "length" in entries else file.read()
    except OSError as error:
        raise Fail(f"the value of '{name}' cannot be read: {error}") from error
    kept = [bytes(data[start:end]) for number, _, start, end in pieces(data, *place) if number not in (9, 13, 14)]
    return b"".join(kept) + message(9, content)


def _checked(data, place, name: str, array: np.ndarray) -> None:
    """Refuses a value of another type or of other sizes than the one that it replaces."""
    kind, dims = 0, []
    for number, value in fields(data, *place):
        if number == 1 and isinstance(value, int):
            dims.append(value)
        elif number == 1:
            dims.extend(size for size in _packed(data, *value))
        elif number == 2:
            kind = value
    if kind != NUMBER_OF_TYPE.get(str(array.dtype)) or tuple(dims) != array.shape:
        wanted = f"{element_type(kind)}{tuple(dims)}"
        raise InvalidArgument(f"the initializer '{name}' is {wanted}; a value {array.dtype}{array.shape} cannot replace it")


def _packed(data, at: int, end: int):
    while at < end:
        value, at = varint(data, at, end)
        yield value


def rewritten(model, without=frozenset(), values: dict[str, np.ndarray] | None = None, must_be_there: bool = False) -> bytes:
    """The file of a path or bytes, `without` some initializers, and with other `values` for some. Nothing lies beside it."""
    values = values or {}
    folder = os.path.dirname(os.path.abspath(model)) if isinstance(model, str) else None
    with opened(model) as data:
        graph = _graph(data)
        if graph is None:
            raise NotImplemented("initializers are replaced in ONNX files only")
        parts, found = [], set()
        for number, place, start, end in pieces(data, *graph):
            if number != _INITIALIZER:
                parts.append(bytes(data[start:end]))
                continue
            name = _name(data, place, 8)
            found.add(name)
            if name in values:
                _checked(data, place, name, values[name])
                parts.append(message(_INITIALIZER, _tensor(name, values[name])))
            elif name not in without:
                parts.append(message(_INITIALIZER, _inline(data, place, folder)))
        missing = values.keys() - found if must_be_there else ()
        if missing:
            raise Fail(f"there are no initializers {', '.join(sorted(missing))}")
        content = b"".join(parts)
        outer = [
            message(_GRAPH, content) if number == _GRAPH else bytes(data[start:end])
            for number, _, start, end in pieces(data, 0, len(data))
        ]
    return b"".join(outer)
