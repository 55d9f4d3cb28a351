"""Regions of `torch.autocast`: what is in one is computed with other types, so that a region stays in one part of a graph.

A call that is made under autocast has a graph without a region; it gets one of its own here.
"""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

_ENTER, _EXIT = torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast
_DEVICES = ("cpu", "cuda")

Regions = dict[fx.Node, tuple[fx.Node, ...]]
"""The nodes that open the regions which a node is in, the outer region first. What opens a region and ends it is in it."""


def regions(graph: fx.Graph) -> Regions:
    """The regions of a graph's nodes."""
    found, within = {}, ()
    for node in graph.nodes:
        if node.target is _ENTER:
            within = (*within, node)
        found[node] = within
        if node.target is _EXIT:
            within = tuple(opens for opens in within if opens is not node.args[0])
    return found


def opens(node: fx.Node) -> bool:
    """Whether a node opens a region."""
    return node.target is _ENTER


def around(graph: fx.Graph, within: tuple[fx.Node, ...], make):
    """A node that `make` adds to a graph, in regions such as these."""
    entered = [graph.create_node(node.op, node.target, node.args, node.kwargs) for node in within]
    made = make()
    for node in reversed(entered):
        graph.call_function(_EXIT, (node,))
    return made


def enclose(module: fx.GraphModule) -> None:
    """Makes the autocast that is on now a region of a graph."""
    settings = [(kind, torch.get_autocast_dtype(kind)) for kind in _DEVICES if torch.is_autocast_enabled(kind)]
    if not settings:
        return
    first = next(node for node in module.graph.nodes if node.op != "placeholder")
    last = next(node for node in module.graph.nodes if node.op == "output")
    with module.graph.inserting_before(first):
        entered = [module.graph.call_function(_ENTER, (kind, dtype, True, None)) for kind, dtype in settings]
    with module.graph.inserting_before(last):
        for node in reversed(entered):
            module.graph.call_function(_EXIT, (node,))
    module.recompile()


class Off:
    """While this is entered, no autocast is on: what is traced has its regions in it."""

    def __init__(self):
        self._modes = [torch.amp.autocast(kind, enabled=False) for kind in _DEVICES if torch.is_autocast_enabled(kind)]

    def __enter__(self):
        for mode in self._modes:
            mode.__enter__()

    def __exit__(self, *error):
        for mode in reversed(self._modes):
            mode.__exit__(*error)


def lowered(module: fx.GraphModule, arguments: list[torch.Tensor]) -> fx.GraphModule | None:
    """A graph with the casts that its regions make as operators, for tensors of these sizes; nothing where it has no regions.

    `torch.export` keeps regions and gives their tensors the types that they would have without: then `x.float()` is nothing to it.
    """
    if not any(map(opens, module.graph.nodes)):
        return None
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def call(*tensors):
        return torch.func.functional_call(module, dict(zip(weights, tensors)), tensors[len(weights) :])

    # Weights are arguments here: what a graph changes in place would be changed while it is traced.
    traced = make_fx(call, tracing_mode="fake")(*weights.values(), *arguments)
    inputs = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for place, (node, weight) in enumerate(zip(inputs, weights.values())):
        traced.register_buffer(f"weight{place}", weight)
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(traced.graph.get_attr(f"weight{place}"))
        traced.graph.erase_node(node)
    traced.recompile()
    return traced
