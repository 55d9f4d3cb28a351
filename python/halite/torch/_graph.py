"""Graphs of PyTorch as things that can be exported: weights inside, open sizes read from tensors, numbers written in."""

from __future__ import annotations

import dataclasses

import torch
from torch import fx

_NUMBERS = (bool, int, float)


def operators(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that do something."""
    return [node for node in graph.nodes if node.op in ("call_function", "call_method", "call_module")]


def example(node: fx.Node):
    """What PyTorch knows of a node's value."""
    return node.meta.get("example_value", node.meta.get("val"))


def _symbol(size) -> str | None:
    """The name of an open size."""
    return str(size.node.expr) if isinstance(size, torch.SymInt) and not size.node.is_constant() else None


def open_sizes(node: fx.Node) -> dict[int, str]:
    """The dimensions of a tensor that PyTorch holds open, and their names."""
    value = example(node)
    if not isinstance(value, torch.Tensor):
        return {}
    return {place: name for place, size in enumerate(value.shape) if (name := _symbol(size)) is not None}


def is_weight(value) -> bool:
    """Whether an argument is a parameter or buffer: the same tensor in each call."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def _is_number(node: fx.Node, value) -> bool:
    """Whether an argument is a number; PyTorch gives floats as tensors which the graph reads at once."""
    if isinstance(value, _NUMBERS):
        return True
    is_scalar = isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu"
    return is_scalar and bool(node.users) and all(u.op == "call_method" and u.target == "item" for u in node.users)


@dataclasses.dataclass
class Roles:
    """What the arguments of a graph are, by place."""

    weights: list[int]
    sizes: dict[int, tuple[int, int]]
    """Open sizes, with the tensor and dimension that has each."""

    numbers: list[int]
    tensors: list[int]


def roles(graph: fx.Graph, arguments, weights: list[int]) -> Roles:
    """Tells the arguments of a call apart."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    found = Roles(weights, {}, [], [])
    owners: dict[str, tuple[int, int]] = {}
    for place, node in enumerate(inputs):
        if isinstance(arguments[place], torch.Tensor) and place not in weights:
            for dimension, name in open_sizes(node).items():
                owners.setdefault(name, (place, dimension))
    for place, (node, value) in enumerate(zip(inputs, arguments)):
        if place in weights:
            continue
        name = _symbol(example(node))
        if isinstance(value, int) and name in owners:
            found.sizes[place] = owners[name]
        elif value is None or _is_number(node, value):
            found.numbers.append(place)
        elif isinstance(value, torch.Tensor):
            found.tensors.append(place)
        else:
            raise TypeError(f"an argument is a {type(value).__name__}")
    return found


def number(value):
    """A number out of an argument."""
    return value.item() if isinstance(value, torch.Tensor) else value


def closed(module: fx.GraphModule, arguments, given: Roles) -> fx.GraphModule:
    """The graph as a function of its tensors only."""
    attributes = dict(module.named_children())
    for node in module.graph.nodes:
        if node.op == "get_attr" and "." not in node.target:
            attributes[node.target] = getattr(module, node.target)
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for place in given.tensors:
        values[inputs[place]] = graph.placeholder(f"x{place}")
    for place in given.weights:
        attributes[f"weight{place}"] = arguments[place].detach()
        values[inputs[place]] = graph.get_attr(f"weight{place}")
    for place, (tensor, dimension) in given.sizes.items():
        values[inputs[place]] = graph.call_function(
            torch.ops.aten.sym_size.int, (values[inputs[tensor]], dimension)
        )
    constants = {inputs[place]: number(arguments[place]) for place in given.numbers}
    _copy(module.graph, graph, values, constants)
    return fx.GraphModule(attributes, graph)


def _copy(source: fx.Graph, target: fx.Graph, values: dict, constants: dict) -> None:
    """Copies what computes, with constants in the place of some values."""

    def mapped(argument):
        return fx.node.map_arg(argument, lambda node: constants[node] if node in constants else values[node])

    for node in source.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            target.output(mapped(node.args[0]))
        elif node.op == "call_method" and node.target == "item" and node.args[0] in constants:
            constants[node] = constants[node.args[0]]
        else:
            values[node] = target.create_node(
                node.op, node.target, mapped(node.args), mapped(node.kwargs), node.name
            )
