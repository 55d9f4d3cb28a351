"""Splits a graph around the operators that cannot run on the device."""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.passes.split_module import split_module

from . import _autocast, _convert
from ._graph import operators
from ._options import Draws, Options, Unsupported
from ._report import Record


class _Values(fx.Interpreter):
    """Runs a graph in PyTorch on copies of its arguments, and keeps what each node gave."""

    def __init__(self, module, arguments):
        super().__init__(module, garbage_collect_values=False)
        self.seen: dict[fx.Node, object] = {}
        """Values of nodes. Operators that work in place change what others gave; types and sizes stay."""
        self.changing: set[fx.Node] = set()
        """The nodes that change an argument in place."""
        # What it draws at random is not what the program gets.
        seeds = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
        with torch.inference_mode(False), torch.no_grad(), torch.random.fork_rng(seeds):
            self._arguments = [value.clone() if isinstance(value, torch.Tensor) else value for value in arguments]
            self.run(*self._arguments)

    def _versions(self) -> list[int]:
        return [value._version for value in self._arguments if isinstance(value, torch.Tensor)]

    def run_node(self, node):
        before = self._versions()
        self.seen[node] = value = super().run_node(node)
        if self._versions() != before:
            self.changing.add(node)
        return value


def _gives_tensors(value) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(_gives_tensors(inner) for inner in value)
    return isinstance(value, torch.Tensor)


def _kind(node: fx.Node, values: dict, within: tuple[fx.Node, ...]) -> str:
    """What makes nodes alike: the operator, types and ranks of tensors, regions of autocast, and all else as it is."""

    def told(argument):
        value = values[argument] if isinstance(argument, fx.Node) else argument
        return f"{value.dtype}:{value.dim()}" if isinstance(value, torch.Tensor) else repr(value)

    arguments = fx.node.map_aggregate(node.args, told), fx.node.map_aggregate(node.kwargs, told)
    return f"{node.op} {node.target} {arguments} {[opens.args for opens in within]}"


def _alone(module: fx.GraphModule, node: fx.Node, values: dict, within) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """A graph of one node in its regions of autocast, and its tensors."""
    graph, inputs, made = fx.Graph(), [], {}
    for source in node.all_input_nodes:
        if isinstance(values[source], torch.Tensor):
            # Some operators change it in place, which is of no harm inside of a graph.
            made[source] = graph.call_method("clone", (graph.placeholder(f"x{len(inputs)}"),))
            inputs.append(values[source].detach())

    def mapped(of):
        return fx.node.map_arg(of, lambda source: made.get(source, values[source]))

    def copied():
        return graph.create_node(node.op, node.target, mapped(node.args), mapped(node.kwargs))

    copy = _autocast.around(graph, within, copied)
    graph.output((copy,))
    return fx.GraphModule(module, graph), inputs


def _complaint(module: fx.GraphModule, node: fx.Node, values: dict, within, options: Options) -> str | None:
    """Why a node cannot run on the device."""
    if any(not isinstance(values[n], torch.Tensor) and _gives_tensors(values[n]) for n in node.all_input_nodes):
        return None  # It takes a tensor out of several: it goes with what gives them.
    graph, inputs = _alone(module, node, values, within)
    try:
        program = _convert.exported(graph, inputs, [set() for _ in inputs])
        if inputs:  # A constant goes with what uses it.
            _convert.session(program, options)
    except Draws as why:
        return str(why)
    except Unsupported as why:
        return str(why) if inputs else None
    return None


def _is_of_maps(node: fx.Node) -> bool:
    """Whether a node begins or ends what `torch.vmap` maps, which only makes sense as a whole."""
    return "_functorch" in str(getattr(node.target, "__module__", None))


def name(node: fx.Node) -> str:
    """An operator's name for people."""
    target = node.target
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def split(module: fx.GraphModule, weights: list[int], arguments, why: str, options: Options, piece):
    """The graph as parts in their order, or `None` where there is nothing to gain; `piece` makes the parts for the device."""
    if any(map(_is_of_maps, module.graph.nodes)):
        return None
    recorder = _Values(module, arguments)
    values, known, refused = recorder.seen, {}, {}
    regions = _autocast.regions(module.graph)
    for node in operators(module.graph):
        if node in recorder.changing:
            refused[node] = "it changes an argument in place"
        elif _gives_tensors(values[node]):
            kind = _kind(node, values, regions[node])
            if kind not in known:
                known[kind] = _complaint(module, node, values, regions[node], options)
            if known[kind] is not None:
                refused[node] = known[kind]
    if not refused:
        return None  # Each alone can, together they cannot: no part of it is to blame.
    # A region of autocast is not cut: what is in it would not know of it.
    cut = {regions[node][0] for node in refused if regions[node]}
    whole = {node for node in operators(module.graph) if cut.intersection(regions[node])}
    places = _places(module, values, refused.keys() | whole, options)
    on_device = {part for part, is_device in places.values() if is_device}
    if not on_device:
        return None
    inputs = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    parts = split_module(module, module, lambda node: places[node][0], keep_original_order=True)
    reasons = {name(node): reason for node, reason in refused.items()}
    for node in parts.graph.nodes:
        if node.op == "call_module" and node.target.startswith("submod_"):
            part = parts.get_submodule(node.target)
            if int(node.target.removeprefix("submod_")) in on_device:
                own = [place for place, source in enumerate(node.args) if source.name in {inputs[w] for w in weights}]
                setattr(parts, node.target, _Module(piece(part, own, options)))
            else:
                _tell(part, reasons, why)
    return parts.forward


def _places(module: fx.GraphModule, values: dict, refused: set, options: Options) -> dict[fx.Node, tuple[int, bool]]:
    """Which part each operator goes to, and whether that is one for the device."""
    runs: list[tuple[bool, list[fx.Node]]] = []
    for node in operators(module.graph):
        takes_apart = any(
            not isinstance(values[n], torch.Tensor) and _gives_tensors(values[n]) for n in node.all_input_nodes
        )
        # What gives no tensor, or one of several, goes with what is before it; but what opens a region goes with what is in it.
        follows = takes_apart or not (_gives_tensors(values[node]) or _autocast.opens(node))
        is_device = node not in refused and (not follows or (bool(runs) and runs[-1][0]))
        if not runs or runs[-1][0] != is_device:
            runs.append((is_device, []))
        runs[-1][1].append(node)
    places, part, before = {}, -1, None
    for is_device, nodes in runs:
        is_device = is_device and len(nodes) >= options.least_operators
        part += is_device != before
        before = is_device
        places.update({node: (part, is_device) for node in nodes})
    for node in module.graph.nodes:
        if node.op == "get_attr":
            places[node] = min((places[user] for user in node.users if user in places), default=(0, False))
    return places


def _tell(part: fx.GraphModule, reasons: dict[str, str], why: str) -> None:
    """Notes a part that stays in PyTorch."""
    here = tuple(sorted({name(node) for node in operators(part.graph)} & reasons.keys()))
    told = "; ".join(f"{operator}: {reasons[operator]}" for operator in here)
    Record.of_eager(len(operators(part.graph)), told or f"too few operators for the device ({why})", here)


class _Module(torch.nn.Module):
    """A piece as a part of a graph."""

    def __init__(self, piece):
        super().__init__()
        self.piece = piece

    def forward(self, *arguments):
        return self.piece(*arguments)
