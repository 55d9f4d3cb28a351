"""Inputs of texts, which devices do not hold: each text is given as its place in a list.

Models of columns with categories look their texts up in lists that are in the file (`OneHotEncoder`, `LabelEncoder`,
`CategoryMapper`). The file is written anew in memory with places in all of these lists, and the host looks up the texts of a call.
Numbers of the fields: onnx/onnx.proto.
"""

from __future__ import annotations

import numpy as np

from ._errors import InvalidArgument, NotImplemented
from ._labels import MOVES, Node, type_of
from ._metadata import encoded, fields, message, opened, pieces, text

_GRAPH, _NODE, _INPUT, _OUTPUT, _VALUE_INFO = 7, 1, 11, 12, 13
_INT64 = 7
_LISTS = {"OneHotEncoder": ("cats_strings", "cats_int64s"), "LabelEncoder": ("keys_strings", "keys_int64s")}
"""Operators that look texts up: the attribute with the texts, and the one for whole numbers."""


class Texts:
    """The texts that a model knows, and the inputs that take texts."""

    def __init__(self, names: frozenset[str], known: list[str]):
        self.names = names
        self._places = {word: place for place, word in enumerate(known)}

    def places(self, name: str, value) -> np.ndarray:
        """The places of the texts of an array; -1 of those that the model does not know."""
        array = np.asarray(value)
        if array.dtype.kind not in "OUS":
            raise InvalidArgument(f"the input '{name}' takes texts, not elements of the type {array.dtype}")
        words = (word.decode() if isinstance(word, bytes) else str(word) for word in array.ravel().tolist())
        return np.array([self._places.get(word, -1) for word in words], np.int64).reshape(array.shape)


def _name(data, place) -> str:
    return next((text(data, value) for number, value in fields(data, *place) if number == 1), "")


def _attribute(name: str, numbers: list[int]) -> bytes:
    """A node's attribute of whole numbers."""
    held = b"".join(encoded(8 << 3) + encoded(number & (1 << 64) - 1) for number in numbers)
    return message(5, message(1, name.encode()) + held + encoded(20 << 3) + encoded(_INT64))


def _as_numbers(data, place) -> bytes:
    """A ValueInfoProto whose elements are whole numbers in place of texts."""
    out = []
    for number, value, start, end in pieces(data, *place):
        if number != 2:
            out.append(bytes(data[start:end]))
            continue
        tensor = next(inner for kind, inner in fields(data, *value) if kind == 1)
        kept = [bytes(data[s:e]) for kind, _, s, e in pieces(data, *tensor) if kind != 1]
        out.append(message(2, message(1, encoded(1 << 3) + encoded(_INT64) + b"".join(kept))))
    return b"".join(out)


class _Rewriter:
    """Follows texts from the inputs through the nodes, and collects the lists that they are looked up in."""

    def __init__(self, data, graph):
        self.data = data
        self.parts = list(pieces(data, *graph))
        self.names = {
            _name(data, place) for number, place, _, _ in self.parts if number == _INPUT and self._is_text(place)
        }
        self.carried = set(self.names)
        self.known: dict[str, int] = {}
        self.nodes: dict[int, bytes] = {}

    def _is_text(self, place) -> bool:
        type_place = next((value for number, value in fields(self.data, *place) if number == 2), None)
        return type_place is not None and type_of(self.data, type_place) == "tensor(string)"

    def follow(self) -> None:
        """Nodes stand in the order in which they are computed."""
        for number, place, start, _ in self.parts:
            if number != _NODE:
                continue
            node = Node(self.data, place)
            if node.has_graph(self.data):
                raise NotImplemented("inputs of texts in models with branches and loops are not supported")
            if self.carried.isdisjoint(node.inputs):
                continue
            if node.operator in _LISTS:
                self.nodes[start] = self._looked_up(node, place)
            elif node.operator == "CategoryMapper":
                self.nodes[start] = self._mapped(node)
            elif node.operator == "Concat" and self.carried.issuperset(node.inputs):
                self.carried.update(node.outputs)
            elif node.operator in MOVES - {"Cast", "CastLike"} and node.inputs[0] in self.carried:
                self.carried.update(node.outputs)
            else:
                raise NotImplemented(f"texts that the operator '{node.operator}' computes with: devices hold no texts")
        outputs = {_name(self.data, place) for number, place, _, _ in self.parts if number == _OUTPUT}
        given_back = outputs & self.carried
        if given_back:
            raise NotImplemented(f"the output '{min(given_back)}' is the texts of an input, which devices do not hold")

    def _numbers(self, words: list[str]) -> list[int]:
        return [self.known.setdefault(word, len(self.known)) for word in words]

    def _looked_up(self, node: Node, place) -> bytes:
        texts, numbers = _LISTS[node.operator]
        words = node.all(self.data, texts, 9)
        if not words:
            raise NotImplemented(f"the operator '{node.operator}' has no list of texts '{texts}'")
        kept = [
            bytes(self.data[start:end])
            for number, value, start, end in pieces(self.data, *place)
            if number != 5 or _name(self.data, value) != texts
        ]
        return message(_NODE, b"".join(kept) + _attribute(numbers, self._numbers(words)))

    def _mapped(self, node: Node) -> bytes:
        """A `CategoryMapper` from texts to numbers, as the `LabelEncoder` that does the same."""
        words, values = node.all(self.data, "cats_strings", 9), node.all(self.data, "cats_int64s", 8)
        default = (node.all(self.data, "default_int64", 3) or [-1])[0]
        number = message(1, b"default_int64") + encoded(3 << 3) + encoded(default & (1 << 64) - 1) + encoded(20 << 3) + encoded(2)
        names = message(1, node.inputs[0].encode()) + message(2, node.outputs[0].encode())
        lists = _attribute("keys_int64s", self._numbers(words)) + _attribute("values_int64s", values) + message(5, number)
        return message(_NODE, names + message(4, b"LabelEncoder") + message(7, b"ai.onnx.ml") + lists)

    def written(self) -> bytes:
        """The graph with whole numbers in place of texts."""
        out = []
        for number, place, start, end in self.parts:
            if number == _NODE and start in self.nodes:
                out.append(self.nodes[start])
            elif number == _INPUT and _name(self.data, place) in self.names:
                out.append(message(_INPUT, _as_numbers(self.data, place)))
            elif number != _VALUE_INFO or _name(self.data, place) not in self.carried:
                out.append(bytes(self.data[start:end]))
        return b"".join(out)


def numbered(model):
    """A path or bytes without inputs of texts, and what finds the places of texts; the model itself and nothing where it has none."""
    try:
        with opened(model) as data:
            graph = next((value for number, value in fields(data, 0, len(data)) if number == _GRAPH), None)
            rewriter = _Rewriter(data, graph) if isinstance(graph, tuple) else None
            if rewriter is None or not rewriter.names:
                return model, None
            rewriter.follow()
            outer = [
                message(_GRAPH, rewriter.written()) if number == _GRAPH else bytes(data[start:end])
                for number, _, start, end in pieces(data, 0, len(data))
            ]
            return b"".join(outer), Texts(frozenset(rewriter.names), list(rewriter.known))
    except (OSError, ValueError, TypeError, KeyError, IndexError, StopIteration):
        return model, None
