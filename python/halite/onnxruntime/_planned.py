"""Sessions of models whose texts are computed with: the host's operators, and devices for what is between them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .. import Tensor
from . import _initializers, _operators
from ._errors import Fail, InvalidArgument, NotImplemented
from ._metadata import encoded, fields, has_external_data, message, opened
from ._nodes import texts
from ._split import Plan, Step, planned, written
from ._values import NUMBER_OF_TYPE

_MOST_KEPT = 8
"""Most kinds of inputs that a step is kept compiled for."""

_FIXED = frozenset({"OneHotEncoder", "TfIdfVectorizer"})
"""Operators whose last dimension is the file's."""


class Results:
    """The outputs of a call, as those of a session."""

    def __init__(self, values: dict):
        self._values = values

    def __getitem__(self, name: str):
        value = self._values[name]
        return value.numpy() if isinstance(value, Tensor) else value

    def tensor(self, name: str) -> Tensor:
        """A tensor, which lies where it was computed."""
        value = self._values[name]
        return value if isinstance(value, Tensor) else Tensor(np.ascontiguousarray(value))


class Compilation:
    """A step as it is compiled, for each kind of inputs."""

    def __init__(self, plan: Plan, step: Step, make: Callable[[bytes], object]):
        self._plan, self._step, self._make = plan, step, make
        self._sessions: dict[tuple, object] = {}
        self._making = threading.Lock()
        makers = {name: node for level in plan.host for node in level for name in node.outputs}
        self._fixed = {name for name in step.inputs if name in makers and makers[name].operator in _FIXED}
        self.is_declared = all(name in plan.graph.inputs for name in step.inputs)

    def _kind(self, name: str, value) -> tuple:
        shape = tuple(value.shape)
        last = shape[-1] if name in self._fixed and shape else -1
        return (name, str(value.dtype), len(shape), last)

    def _declared(self, kind: tuple) -> bytes:
        """The ValueInfoProto of an input."""
        name, dtype, rank, last = kind
        graph = self._plan.graph
        if name in graph.inputs:
            start, end = graph.content(graph.inputs[name])
            return bytes(graph.data[start:end])
        number = NUMBER_OF_TYPE.get(dtype)
        if number is None:
            raise NotImplemented(f"'{name}' has elements of the type {dtype}, which devices do not take from the host")
        sizes = [message(2, f"{name}.{at}".encode()) for at in range(rank)]
        if last >= 0:
            sizes[-1] = encoded(1 << 3) + encoded(last)
        shape = message(2, b"".join(message(1, size) for size in sizes))
        return message(1, name.encode()) + message(2, message(1, encoded(1 << 3) + encoded(number) + shape))

    def session(self, feed: dict):
        """The session for these inputs; of declared ones it needs none."""
        kinds = tuple((name,) if name in self._plan.graph.inputs else self._kind(name, feed[name]) for name in self._step.inputs)
        with self._making:
            made = self._sessions.get(kinds)
            if made is None:
                if len(self._sessions) >= _MOST_KEPT:
                    self._sessions.pop(next(iter(self._sessions)))
                infos = [self._declared(kind + ("", 0, -1) if len(kind) == 1 else kind) for kind in kinds]
                made = self._sessions[kinds] = self._make(written(self._plan, self._step, infos))
            return made

    def run(self, values: dict, call) -> dict:
        """The outputs of the step."""
        feed = {name: values[name] for name in self._step.inputs}
        outputs = call(self.session(feed), feed)
        return {name: outputs.tensor(name) for name in self._step.outputs}


class Planned:
    """A model in steps of the host and of a device."""

    def __init__(self, plan: Plan, make: Callable[[bytes], object]):
        self._plan = plan
        graph = plan.graph
        self._steps = [Compilation(plan, step, make) if step.nodes else None for step in plan.steps]
        self.device = None
        for step in self._steps:
            if step is not None and step.is_declared:
                self.device = step.session({}).device
        self.inputs = [name for name in graph.inputs if name not in graph.constants]
        self.outputs = list(graph.outputs)
        self.types = {name: graph.types[name] or ("tensor(string)" if name in plan.texts else "") for name in [*self.inputs, *self.outputs]}
        self.shapes = plan.shapes
        self._constants: dict[str, object] = {}

    def _constant(self, name: str):
        if name not in self._constants:
            node = self._plan.constants.get(name)
            if node is not None:
                self._constants[name] = _value_of(node)
            elif name in self._plan.graph.constants:
                self._constants[name] = _read(self._plan.graph, name)
            else:
                raise Fail(f"'{name}' is read, and nothing makes it")
        return self._constants[name]

    def _input(self, name: str, value):
        """An input as it is given: texts as an array of objects."""
        kind = self.types[name]
        if "map(" in kind:
            if not isinstance(value, dict):
                raise InvalidArgument(f"the input '{name}' takes a dictionary, not {type(value).__name__}")
            return value
        if kind.startswith("seq("):
            return [_texts_of(name, one) if "string" in kind else one for one in value]
        if kind != "tensor(string)":
            return value
        array = _texts_of(name, value)
        wanted = self.shapes.get(name) or []
        if wanted and len(wanted) != array.ndim:
            raise InvalidArgument(f"the input '{name}' has {array.ndim} dimensions, and the model takes {len(wanted)}")
        for at, size in enumerate(wanted):
            if isinstance(size, int) and size > 0 and array.shape[at] != size:
                raise InvalidArgument(f"the input '{name}' has the sizes {array.shape}, and the model takes {wanted}")
        return array

    def run(self, feed: dict, call) -> Results:
        """The outputs of a call. `call` runs a session."""
        values = {name: self._input(name, value) for name, value in feed.items() if name in self.types}
        unknown = feed.keys() - values.keys()
        if unknown:
            raise InvalidArgument(f"there is no input '{min(unknown)}' that can be given; there are: {', '.join(self.inputs)}")
        for level, step in zip(self._plan.host, self._steps):
            for node in level:
                self._compute(node, values)
            if step is not None:
                made = step.run(values, call)
                values.update((name, self._looked_up(name, value)) for name, value in made.items())
        return Results({name: values[name] if name in values else self._constant(name) for name in self.outputs})

    def _looked_up(self, name: str, value):
        words = self._plan.labels.get(name)
        return value if words is None else texts(words)[value.numpy()]

    def _compute(self, node, values: dict) -> None:
        taken = []
        for name in node.inputs:
            value = None if not name else values[name] if name in values else self._constant(name)
            # What a device gave is read once.
            if isinstance(value, Tensor):
                value = values[name] = value.numpy()
            taken.append(value)
        try:
            made = _operators.compute(node, taken)
        except (ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError, MemoryError) as error:
            raise InvalidArgument(f"the operator '{node.operator}' ('{node.name}') cannot take its inputs: {error}") from error
        values.update((name, value) for name, value in zip(node.outputs, made) if name)


def _read(graph, name: str) -> np.ndarray:
    """A constant of the file."""
    try:
        return graph.constant(name)
    except (ValueError, TypeError, IndexError, StopIteration) as error:
        raise Fail(f"the constant '{name}' is damaged: {error}") from error


def _value_of(node) -> np.ndarray:
    """The value of a node `Constant`."""
    if node.has("value"):
        return node.tensor("value")
    if node.has("value_string"):
        return texts([node.text("value_string")], ())
    if node.has("value_strings"):
        return texts(node.texts("value_strings"))
    if node.has("value_ints"):
        return np.array(node.numbers("value_ints"), np.int64)
    if node.has("value_floats"):
        return np.array(node.floats("value_floats"), np.float32)
    if node.has("value_int"):
        return np.array(node.number("value_int"), np.int64)
    return np.array(node.float("value_float", 0.0), np.float32)


def _texts_of(name: str, value) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "OUS":
        raise InvalidArgument(f"the input '{name}' takes texts, not elements of the type {array.dtype}")
    words = (word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in array.ravel().tolist())
    return texts(words, array.shape)


def of(model, make: Callable[[bytes], object]) -> Planned | None:
    """A path or bytes as what hosts and devices compute in turns; nothing where devices compute all of it, or it is no ONNX file."""
    try:
        with opened(model) as data:
            if next((True for number, _ in fields(data, 0, len(data)) if number == 7), None) is None or planned(data) is None:
                return None
        whole = _initializers.rewritten(model) if isinstance(model, str) and has_external_data(model) else model
        if isinstance(whole, str):
            with open(whole, "rb") as file:
                whole = file.read()
        plan = planned(memoryview(whole).cast("B"))
    except (OSError, ValueError, TypeError, KeyError, IndexError, StopIteration, RecursionError):
        return None
    return None if plan is None else Planned(plan, make)
