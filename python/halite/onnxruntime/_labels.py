"""Texts and dictionaries of results, which devices do not hold: reads in an ONNX file what stands for them.

Classifiers give labels, and `ZipMap` the share of each label in a dictionary. Halite computes places of labels and lines of shares;
the labels are in the file. Numbers of the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import numpy as np

from ._errors import NotImplemented
from ._metadata import fields, opened, text

STRING = 8
_ELEMENTS = (
    "undefined float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 complex64 complex128 bfloat16"
).split()
MOVES = frozenset(
    "ArrayFeatureExtractor Cast CastLike DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Reshape Slice "
    "SpaceToDepth Split Squeeze Tile Transpose Unsqueeze".split()
)
"""Operators that give elements of their first input as they are."""

_MOST_STEPS = 1000
"""Most nodes between a list of texts and an output."""


def type_of(data, place) -> str:
    """The text that ONNX Runtime has for a type."""
    for number, value in fields(data, *place):
        if number == 1 and isinstance(value, tuple):
            return f"tensor({element_type(dict(fields(data, *value)).get(1, 0))})"
        if number in (4, 9) and isinstance(value, tuple):
            inner = dict(fields(data, *value)).get(1)
            return f"{'seq' if number == 4 else 'optional'}({type_of(data, inner) if inner else ''})"
        if number == 5 and isinstance(value, tuple):
            parts = dict(fields(data, *value))
            return f"map({element_type(parts.get(1, 0))},{type_of(data, parts[2]) if 2 in parts else ''})"
    return ""


def element_type(number) -> str:
    """ONNX Runtime's name of a type of elements, by its number in ONNX."""
    return _ELEMENTS[number] if isinstance(number, int) and number < len(_ELEMENTS) else str(number)


class Node:
    """A node: its operator, its inputs, the place of an output among its outputs, its attributes."""

    def __init__(self, data, place):
        self.inputs, self.outputs, self.attributes, self.operator = [], [], {}, ""
        for number, value in fields(data, *place):
            if number == 1:
                self.inputs.append(text(data, value))
            elif number == 2:
                self.outputs.append(text(data, value))
            elif number == 4:
                self.operator = text(data, value)
            elif number == 5:
                name = next((text(data, own) for inner, own in fields(data, *value) if inner == 1), "")
                self.attributes[name] = value

    def has_graph(self, data) -> bool:
        """Whether an attribute is a graph, or several."""
        return any(number in (6, 11) for place in self.attributes.values() for number, _ in fields(data, *place))

    def all(self, data, name: str, wanted: int) -> list:
        """The values of an attribute in one of its fields: texts (9), whole numbers (8), one whole number (3)."""
        found = []
        for number, value in fields(data, *self.attributes.get(name, (0, 0))):
            if number != wanted:
                continue
            if wanted == 9:
                found.append(text(data, value))
            elif isinstance(value, tuple):
                found.extend(number for _, number in _packed(data, *value))
            else:
                found.append(value)
        return [value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value for value in found]


def _packed(data, at: int, end: int):
    from ._metadata import varint

    while at < end:
        value, at = varint(data, at, end)
        yield None, value


def _texts_of_tensor(data, place) -> list[str] | None:
    """The elements of a tensor of texts; nothing of others."""
    found = list(fields(data, *place))
    if (2, STRING) not in found:
        return None
    return [text(data, value) for number, value in found if number == 6 and isinstance(value, tuple)]


class _Graph:
    """The nodes of a model by what they give, and its lists of texts."""

    def __init__(self, data, place):
        self._data, self._makers, self._lists = data, {}, {}
        for number, value in fields(data, *place):
            if number == 1:
                node = Node(data, value)
                self._makers.update({name: (node, index) for index, name in enumerate(node.outputs)})
            elif number == 5:
                found = _texts_of_tensor(data, value)
                if found is not None:
                    name = next((text(data, own) for inner, own in fields(data, *value) if inner == 8), "")
                    self._lists[name] = found

    def texts(self, name: str) -> list[str] | None:
        """The list that the places in a value are of."""
        for _ in range(_MOST_STEPS):
            if name in self._lists:
                return self._lists[name]
            node, index = self._makers.get(name, (None, 0))
            if node is None:
                return None
            if node.operator == "Constant":
                tensors = [v for n, v in fields(self._data, *node.attributes.get("value", (0, 0))) if n == 5]
                return _texts_of_tensor(self._data, tensors[0]) if tensors else None
            if node.operator == "LabelEncoder":
                other = [text(self._data, v) for n, v in fields(self._data, *node.attributes.get("default_string", (0, 0))) if n == 4]
                return [*node.all(self._data, "values_strings", 9), *(other or ["_Unused"])]
            if node.operator.endswith("Classifier"):
                return node.all(self._data, "classlabels_strings", 9) if index == 0 else None
            if node.operator not in MOVES or not node.inputs:
                return None
            name = node.inputs[0]
        return None

    def keys(self, name: str) -> list | None:
        """The keys of the dictionaries that an output is."""
        for _ in range(_MOST_STEPS):
            node, _index = self._makers.get(name, (None, 0))
            if node is None or node.operator not in ("ZipMap", "Identity"):
                return None
            if node.operator == "ZipMap":
                return node.all(self._data, "classlabels_strings", 9) or node.all(self._data, "classlabels_int64s", 8)
            name = node.inputs[0]
        return None


def _looked_up(name: str, texts: list[str] | None):
    def look(places):
        if not texts:
            raise NotImplemented(f"the output '{name}' is text that is not in the file as a list")
        return np.array([*texts, None], dtype=object)[:-1][places]

    return look


def _zipped(name: str, keys: list | None):
    def zipped(shares):
        if not keys or shares.shape[-1:] != (len(keys),):
            raise NotImplemented(f"the output '{name}' is a dictionary whose keys are not in the file")
        return [dict(zip(keys, line)) for line in shares.reshape(-1, len(keys)).tolist()]

    return zipped


def read(model) -> tuple[dict[str, str], dict]:
    """Of a path or bytes: the types of inputs and outputs, and for outputs of texts and dictionaries what makes them of arrays."""
    types, makers = {}, {}
    try:
        with opened(model) as data:
            graph = next((value for number, value in fields(data, 0, len(data)) if number == 7), None)
            if not isinstance(graph, tuple):
                return {}, {}
            wanted = []
            for number, value in fields(data, *graph):
                if number in (11, 12):
                    parts = dict(fields(data, *value))
                    name = text(data, parts[1])
                    types[name] = type_of(data, parts[2]) if 2 in parts else ""
                    if number == 12 and ("string" in types[name] or "map(" in types[name]):
                        wanted.append(name)
            if wanted:
                nodes = _Graph(data, graph)
                for name in wanted:
                    if "map(" in types[name]:
                        makers[name] = _zipped(name, nodes.keys(name))
                    else:
                        makers[name] = _looked_up(name, nodes.texts(name))
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return {}, {}
    return {name: found for name, found in types.items() if found}, makers
