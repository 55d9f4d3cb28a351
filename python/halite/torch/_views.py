"""Results that lie in the memory of arguments or of other results: PyTorch makes them anew of these, as programs may write to either."""

from __future__ import annotations

import inspect
import operator

import torch
from torch import fx

from ._graph import example
from ._options import Unsupported

_NAMES = "iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor"
_IN_PLACE = {getattr(operator, name) for name in _NAMES.split()}


def _storage(node: fx.Node) -> int | None:
    """The memory that a node's value lies in."""
    value = example(node)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    try:
        return value.untyped_storage()._cdata
    except NotImplementedError:
        return None  # Tensors inside of `torch.vmap` have none.


def _writes(node: fx.Node) -> bool:
    """Whether an operator writes to its first argument, which is what it gives then."""
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if target in _IN_PLACE or (name.endswith("_") and not name.endswith("__")):
        return True
    if node.op == "call_function" and target.__module__ == "torch.nn.functional":
        return bool(inspect.signature(target).bind(*node.args, **node.kwargs).arguments.get("inplace"))
    return bool(node.kwargs.get("inplace"))


class Views:
    """Which results are made anew, of what, and how."""

    def __init__(self, module: fx.GraphModule, outputs: list, inputs: dict[fx.Node, int]):
        self._module, self._inputs = module, inputs
        self._order = {node: place for place, node in enumerate(module.graph.nodes)}
        self._known: dict[fx.Node, list[fx.Node]] = {}
        first: dict[int, fx.Node] = {}
        for node in module.graph.nodes:
            storage = _storage(node)
            if storage is not None:
                first.setdefault(storage, node)
        results = [node for node in dict.fromkeys(outputs) if isinstance(node, fx.Node)]
        together: dict[int, list[fx.Node]] = {}
        for node in results:
            if _storage(node) is not None:
                together.setdefault(_storage(node), []).append(node)
        self.bases: dict[fx.Node, fx.Node] = {}
        """Results that are views, and what each is a view of: an argument, a constant of the graph, or something computed."""
        for storage, nodes in together.items():
            base = first[storage]
            if base.op in ("placeholder", "get_attr") or len(nodes) > 1:
                self.bases.update({node: base for node in nodes if node is not base and node not in inputs})

    @property
    def computed(self) -> list[fx.Node]:
        """What views are views of and is computed."""
        return [base for base in dict.fromkeys(self.bases.values()) if base.op not in ("placeholder", "get_attr")]

    def check(self) -> None:
        """An error where a view takes other tensors that are computed."""
        self._known = {node: self._steps(node) for node in self.bases}

    def _steps(self, node: fx.Node) -> list[fx.Node]:
        """What makes a view of its base, in order."""
        base = self.bases[node]
        found, left = set(), [node]
        while left:
            at = left.pop()
            if at is base or at in found or at.op == "placeholder":
                continue
            value = example(at)
            if isinstance(value, torch.Tensor) and _storage(at) != _storage(base) and at.op != "get_attr":
                raise Unsupported(f"a result shares memory with '{base.name}' in a way that is not known")
            found.add(at)
            left.extend(at.all_input_nodes)
        return sorted(found, key=self._order.__getitem__)

    def make(self, node: fx.Node, arguments, computed: dict[fx.Node, torch.Tensor]):
        """A view of arguments or of what was computed."""
        values = {source: arguments[place] for source, place in self._inputs.items()} | computed
        for step in self._known[node]:
            args = fx.node.map_arg(step.args, values.__getitem__)
            kwargs = fx.node.map_arg(step.kwargs, values.__getitem__)
            if step.op == "get_attr":
                values[step] = operator.attrgetter(step.target)(self._module)
            elif _writes(step):
                values[step] = args[0]
            elif step.op == "call_method":
                values[step] = getattr(args[0], step.target)(*args[1:], **kwargs)
            else:
                of = self._module.get_submodule(step.target) if step.op == "call_module" else step.target
                values[step] = of(*args, **kwargs)
        return values[node]
