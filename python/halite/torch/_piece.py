"""A graph, or a part of one, that runs on the device where it can."""

from __future__ import annotations

import dataclasses
import threading

import torch
from torch import fx

from . import _autocast, _convert
from ._graph import Roles, closed, example, is_weight, number, open_sizes, operators, roles
from ._options import Options, Unsupported
from ._report import Record
from ._split import split
from ._views import Views

_MOST_VARIANTS = 16
"""A graph that has to be compiled more often than this, for other weights, sizes or numbers, runs in PyTorch from then on."""


@dataclasses.dataclass
class _Variant:
    """The graph compiled for some numbers, and for some sizes where it had to be."""

    session: object
    given: Roles
    numbers: tuple
    fixed: list[tuple[int, int, int]]

    def serves(self, arguments) -> bool:
        """Whether a call with these arguments can use it."""
        tensors = self.given.tensors
        return self.numbers == _numbers(arguments, self.given) and all(
            arguments[tensors[place]].shape[dimension] == size for place, dimension, size in self.fixed
        )


def _numbers(arguments, given: Roles) -> tuple:
    # 1, 1.0 and True are not the same number here.
    return tuple((type(value), value) for value in (number(arguments[place]) for place in given.numbers))


def _version(weight: torch.Tensor) -> tuple:
    # Tensors of inference mode count no changes.
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


def _is_number(node: fx.Node) -> bool:
    return isinstance(example(node), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float))


class Piece:
    """Runs a graph: on the device, or split, or in PyTorch."""

    def __init__(self, module: fx.GraphModule, weights: list[int], options: Options):
        self._module, self._weights, self._options = module, weights, options
        self._operators = len(operators(module.graph))
        self._variants: list[_Variant] = []
        self._versions: tuple = ()
        self._made = 0
        self._record: Record | None = None
        self._instead = None
        self._lock = threading.Lock()
        output = next(node for node in module.graph.nodes if node.op == "output").args[0]
        self._is_single = not isinstance(output, (tuple, list))
        self._outputs = [output] if self._is_single else list(output)
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._inputs = {node: place for place, node in enumerate(inputs)}
        self._views = Views(module, self._outputs, self._inputs)
        given = self._inputs.keys() | self._views.bases.keys()
        results = [node for node in self._outputs if isinstance(node, fx.Node) and node not in given]
        self._computed = list(dict.fromkeys(results + self._views.computed))

    @staticmethod
    def of_dynamo(module: fx.GraphModule, example_inputs, options: Options):
        """What runs a graph that `torch.compile` captured."""
        _autocast.enclose(module)
        weights = [place for place, value in enumerate(example_inputs) if is_weight(value)]
        piece = Piece(module, weights, options)
        return piece if piece.computes else module.forward

    @property
    def computes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._computed) and self._operators > 0

    def __call__(self, *arguments):
        if self._instead is None:
            variant = self._find(arguments)
            if variant is not None:
                self._record.calls += 1
                return self._run(variant, arguments)
        return self._instead(*arguments)

    def _find(self, arguments) -> _Variant | None:
        """The variant for a call; made if need be. `None` where it has to be done otherwise."""
        with self._lock:
            versions = tuple(_version(arguments[place]) for place in self._weights)
            if versions != self._versions:
                self._versions = versions
                self._variants.clear()
            for variant in self._variants:
                if variant.serves(arguments):
                    return variant
            if self._instead is not None:
                return None
            try:
                self._variants.append(self._make(arguments))
            except Unsupported as why:
                self._give_up(arguments, str(why))
                return None
            return self._variants[-1]

    def _make(self, arguments) -> _Variant:
        if self._made == _MOST_VARIANTS:
            raise Unsupported(f"it was compiled {_MOST_VARIANTS} times, for other weights, sizes or numbers each time")
        self._made += 1
        self._views.check()
        try:
            given = roles(self._module.graph, arguments, self._weights)
        except TypeError as error:
            raise Unsupported(str(error)) from error
        graph = closed(self._computing(), arguments, given)
        nodes = list(self._inputs)
        open_dimensions = [set(open_sizes(nodes[place])) for place in given.tensors]
        program = _convert.exported(graph, [arguments[place] for place in given.tensors], open_dimensions)
        session = _convert.session(program, self._options)
        if len(session.inputs) != len(given.tensors) or len(session.outputs) != len(self._computed):
            raise Unsupported("torch.onnx left out an input or output")
        if self._record is None:
            self._record = Record.of_device(self._operators)
        self._record.sessions += 1
        fixed = _convert.fixed_sizes(program, open_dimensions)
        return _Variant(session, given, _numbers(arguments, given), fixed)

    def _computing(self) -> fx.GraphModule:
        """The graph, giving only what it computes."""
        graph = fx.Graph()
        values: dict[fx.Node, fx.Node] = {}
        for node in self._module.graph.nodes:
            if node.op != "output":
                values[node] = graph.node_copy(node, values.__getitem__)
        graph.output(tuple(values[node] for node in self._computed))
        return fx.GraphModule(self._module, graph)

    def _run(self, variant: _Variant, arguments):
        tensors = [arguments[place] for place in variant.given.tensors]
        outputs = variant.session.run([_convert.array(tensor) for tensor in tensors])
        device = tensors[0].device if tensors else torch.device("cpu")
        computed = {}
        for place, node in enumerate(self._computed):
            values = outputs[place]
            computed[node] = values.item() if _is_number(node) else _convert.tensor(values, device)
        results = [self._result(node, arguments, computed) for node in self._outputs]
        return results[0] if self._is_single else tuple(results)

    def _result(self, node, arguments, computed: dict):
        if not isinstance(node, fx.Node):
            return node
        if node in self._inputs:
            return arguments[self._inputs[node]]
        return self._views.make(node, arguments, computed) if node in self._views.bases else computed[node]

    def _give_up(self, arguments, why: str) -> None:
        """Decides what is done where the graph cannot go as a whole."""
        self._options.refuse(why)
        # One that ran before is not taken apart: it is its sizes or weights that change.
        if self._record is None:
            self._instead = split(self._module, self._weights, arguments, why, self._options, Piece)
        if self._instead is None:
            Record.of_eager(self._operators, why)
            self._instead = self._module.forward
