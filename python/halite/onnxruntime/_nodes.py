"""Nodes of an ONNX file with their attributes and constants, as far as the host computes with them.

Numbers of the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import struct

import numpy as np

from ._errors import NotImplemented
from ._labels import type_of
from ._metadata import fields, pieces, text, varint

STRING = 8
_DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}


def dtype(number: int) -> np.dtype:
    """NumPy's type of a type of elements; objects for texts."""
    if number == STRING:
        return np.dtype(object)
    if number not in _DTYPES:
        raise NotImplemented(f"the host does not compute with elements of the type {number}")
    return np.dtype(_DTYPES[number])


def texts(words, shape=None) -> np.ndarray:
    """An array of texts."""
    words = list(words)
    array = np.empty(len(words), object)
    array[:] = words
    return array if shape is None else array.reshape(shape)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _numbers(data, place, number: int, fixed: str | None = None) -> list:
    """A repeated number, packed or not; `fixed` is the format of numbers of fixed length."""
    found = []
    for own, value, _, end in pieces(data, *place):
        if own != number:
            continue
        if isinstance(value, int):
            found.append(_signed(value))
        elif value is None and fixed is None:
            raise ValueError("a number of fixed length where none is expected")
        elif value is None:
            size = struct.calcsize(f"<{fixed}")
            found.append(struct.unpack(f"<{fixed}", bytes(data[end - size : end]))[0])
        elif fixed:
            content = bytes(data[value[0] : value[1]])
            found.extend(struct.unpack(f"<{len(content) // struct.calcsize(fixed)}{fixed}", content))
        else:
            at = value[0]
            while at < value[1]:
                one, at = varint(data, at, value[1])
                found.append(_signed(one))
    return found


def _external(data, place) -> bool:
    return (14, 1) in fields(data, *place)


def tensor(data, place) -> np.ndarray:
    """A TensorProto."""
    if _external(data, place):
        raise NotImplemented("a constant that the host computes with lies in a file beside the model")
    shape = _numbers(data, place, 1)
    kind = next((value for number, value in fields(data, *place) if number == 2), 0)
    if kind == STRING:
        return texts((text(data, v) for n, v in fields(data, *place) if n == 6 and isinstance(v, tuple)), shape)
    own = dtype(kind)
    raw = next((value for number, value in fields(data, *place) if number == 9 and isinstance(value, tuple)), None)
    if raw is not None:
        return np.frombuffer(bytes(data[raw[0] : raw[1]]), own).reshape(shape)
    for number, fixed in ((4, "f"), (5, None), (7, None), (10, "d"), (11, None)):
        found = _numbers(data, place, number, fixed)
        if found and own == np.float16:
            return np.array(found, np.uint16).view(np.float16).reshape(shape)
        if found:
            return np.array(found).astype(own).reshape(shape)
    return np.zeros(shape, own)


class Node:
    """A node: operator, inputs, outputs, attributes, and where it is in the file."""

    def __init__(self, data, place, span):
        self._data, self.span = data, span
        self.inputs, self.outputs, self.operator, self.domain = [], [], "", ""
        self.name = ""
        self.kept: dict = {}
        """What an operator keeps from call to call."""
        self._attributes: dict[str, tuple[int, int]] = {}
        for number, value in fields(data, *place):
            if not isinstance(value, tuple):
                continue
            if number == 1:
                self.inputs.append(text(data, value))
            elif number == 2:
                self.outputs.append(text(data, value))
            elif number == 3:
                self.name = text(data, value)
            elif number == 4:
                self.operator = text(data, value)
            elif number == 5:
                self._attributes[next((text(data, v) for n, v in fields(data, *value) if n == 1), "")] = value
            elif number == 7:
                self.domain = text(data, value)

    def has(self, name: str) -> bool:
        """Whether an attribute is written."""
        return name in self._attributes

    def number(self, name: str, default: int | None = None) -> int | None:
        """A whole number."""
        found = _numbers(self._data, self._attributes.get(name, (0, 0)), 3)
        return found[0] if found else default

    def float(self, name: str, default: float) -> float:
        """A float."""
        found = _numbers(self._data, self._attributes.get(name, (0, 0)), 2, "f")
        return found[0] if found else default

    def numbers(self, name: str) -> list[int]:
        """Whole numbers."""
        return _numbers(self._data, self._attributes.get(name, (0, 0)), 8)

    def floats(self, name: str) -> list[float]:
        """Floats."""
        return _numbers(self._data, self._attributes.get(name, (0, 0)), 7, "f")

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        place = self._attributes.get(name, (0, 0))
        return next((text(self._data, v) for n, v in fields(self._data, *place) if n == 4 and isinstance(v, tuple)), default)

    def bytes(self, name: str) -> bytes:
        """A text that is none, as its bytes."""
        place = self._attributes.get(name, (0, 0))
        found = next((v for n, v in fields(self._data, *place) if n == 4 and isinstance(v, tuple)), (0, 0))
        return bytes(self._data[found[0] : found[1]])

    def texts(self, name: str) -> list[str]:
        """Texts."""
        place = self._attributes.get(name, (0, 0))
        return [text(self._data, v) for n, v in fields(self._data, *place) if n == 9 and isinstance(v, tuple)]

    def tensor(self, name: str) -> np.ndarray | None:
        """A tensor."""
        place = self._attributes.get(name, (0, 0))
        found = next((v for n, v in fields(self._data, *place) if n == 5 and isinstance(v, tuple)), None)
        return None if found is None else tensor(self._data, found)

    def tensor_type(self, name: str) -> int:
        """The type of a tensor's elements; 0 where there is none."""
        place = self._attributes.get(name, (0, 0))
        found = next((v for n, v in fields(self._data, *place) if n == 5 and isinstance(v, tuple)), (0, 0))
        return next((v for n, v in fields(self._data, *found) if n == 2), 0)

    def graphs(self) -> list[tuple[int, int]]:
        """Places of the graphs in its attributes."""
        places = self._attributes.values()
        return [v for place in places for n, v in fields(self._data, *place) if n in (6, 11) and isinstance(v, tuple)]


class Graph:
    """A graph: its nodes, names and types of inputs and outputs, and places of its constants."""

    def __init__(self, data, place):
        self.data = data
        self.nodes: list[Node] = []
        self.inputs: dict[str, tuple[int, int]] = {}
        self.outputs: dict[str, tuple[int, int]] = {}
        self.types: dict[str, str] = {}
        self.constants: dict[str, tuple[int, int]] = {}
        for number, value, start, end in pieces(data, *place):
            if not isinstance(value, tuple):
                continue
            if number == 1:
                self.nodes.append(Node(data, value, (start, end)))
            elif number == 5:
                self.constants[next((text(data, v) for n, v in fields(data, *value) if n == 8), "")] = (start, end)
            elif number in (11, 12, 13):
                name = next((text(data, v) for n, v in fields(data, *value) if n == 1), "")
                own = next((v for n, v in fields(data, *value) if n == 2 and isinstance(v, tuple)), None)
                self.types[name] = type_of(data, own) if own else ""
                if number != 13:
                    (self.inputs if number == 11 else self.outputs)[name] = (start, end)

    def content(self, span) -> tuple[int, int]:
        """The place of what a field holds."""
        return next(value for _, value, _, _ in pieces(self.data, *span))

    def constant_type(self, name: str) -> int:
        """The type of a constant's elements."""
        return next((v for n, v in fields(self.data, *self.content(self.constants[name])) if n == 2), 0)

    def constant(self, name: str) -> np.ndarray:
        """A constant."""
        return tensor(self.data, self.content(self.constants[name]))
