"""Models whose texts are computed with: which nodes the host computes, and what is left for devices.

Devices hold no texts. So nodes that take or give texts, or dictionaries, are computed by the host, level by level; the nodes between
them are models of their own, in steps: step 0 needs what was given and what the host computes first, the host's level 1 needs what
step 0 gives, and so on.
"""

from __future__ import annotations

import graphlib
from dataclasses import dataclass, field

from . import _operators
from ._errors import NotImplemented
from ._initializers import declared_sizes
from ._labels import MOVES
from ._metadata import fields, message, pieces
from ._nodes import STRING, Graph, Node
from ._operators_contrib import GIVE_TEXTS

TEXT, MAP = "text", "map"
_CARRY = MOVES | set(
    "Compress Concat ConcatFromSequence Pad ScatterElements ScatterND SequenceAt SequenceConstruct SequenceErase SequenceInsert "
    "SplitToSequence Unique Where".split()
)
"""Operators whose first output is of texts where an input is."""

ALWAYS = frozenset({"TfIdfVectorizer", "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "Tokenizer"})
"""Operators that no device has."""


def _has_texts(data, place, texts) -> bool:
    """Whether a graph in an attribute has to do with texts."""
    inner = Graph(data, place)
    if any(inner.constant_type(name) == STRING for name in inner.constants):
        return True
    given = set(texts)
    for node in inner.nodes:
        if not given.isdisjoint(node.inputs) or _kinds(node, given, set()):
            return True
        if any(_has_texts(data, own, given) for own in node.graphs()):
            return True
    return not given.isdisjoint(inner.outputs)


def _kinds(node: Node, texts, maps) -> dict[str, str]:
    """The outputs of a node that are texts or dictionaries."""
    operator, outputs = node.operator, [name for name in node.outputs[:1] if name]
    if _operators.is_of_extensions(node):
        return {name: TEXT for at, name in enumerate(node.outputs) if name and at in GIVE_TEXTS.get(operator, ())}
    takes_texts = any(name in texts for name in node.inputs)
    if operator == "ZipMap":
        return dict.fromkeys(outputs, MAP)
    if operator == "CastMap":
        is_text = node.text("cast_to", "TO_FLOAT") == "TO_STRING"
    elif operator in ("DictVectorizer", "OneHotEncoder", "TfIdfVectorizer", "RegexFullMatch", "CastLike"):
        is_text = operator == "CastLike" and any(name in texts for name in node.inputs[1:2])
    elif operator in ALWAYS:
        is_text = True
    elif operator == "LabelEncoder":
        listed = bool(node.texts("values_strings")) or node.tensor_type("values_tensor") == STRING
        is_text = listed or (bool(node.texts("classes_strings")) and not takes_texts)
    elif operator == "CategoryMapper":
        is_text = not takes_texts
    elif operator.endswith("Classifier"):
        is_text = bool(node.texts("classlabels_strings"))
    elif operator == "Cast":
        is_text = node.number("to") == STRING
    elif operator == "Constant":
        is_text = node.has("value_string") or node.has("value_strings") or node.tensor_type("value") == STRING
    else:
        is_text = takes_texts and operator in _CARRY
        outputs = outputs if operator == "Unique" else [name for name in node.outputs if name]
        if not is_text and operator == "Identity" and any(name in maps for name in node.inputs):
            return dict.fromkeys(outputs, MAP)
    return dict.fromkeys(outputs, TEXT) if is_text else {}


@dataclass
class Step:
    """Nodes for a device: what they take from elsewhere, and what others take from them."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """What the host and devices compute, in turns: `host[0]`, `steps[0]`, `host[1]`, …"""

    graph: Graph
    outer: list[tuple[int, tuple[int, int]]]
    host: list[list[Node]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)
    """Outputs of devices that are places of texts in lists: the labels of classifiers."""
    constants: dict[str, Node] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    shapes: dict[str, list] = field(default_factory=dict)
    """Sizes of inputs and outputs, as they are declared."""


class _Planner:
    def __init__(self, data, graph: Graph):
        self.data, self.graph = data, graph
        self.texts = {name for name in graph.inputs if _is_of_texts(graph.types[name])}
        self.maps = {name for name in graph.inputs if "map(" in graph.types[name]}
        self.texts |= {name for name in graph.constants if graph.constant_type(name) == STRING}
        self.given = self.texts | self.maps
        self.host: set[int] = set()
        self.labels: dict[str, list[str]] = {}

    def sort(self) -> None:
        """Finds out which nodes have to do with texts."""
        self.graph.nodes = _ordered(self.data, self.graph.nodes)
        for index, node in enumerate(self.graph.nodes):
            kinds = _kinds(node, self.texts, self.maps)
            touched = not (self.texts | self.maps).isdisjoint(node.inputs)
            for place in node.graphs():
                if touched or _has_texts(self.data, place, self.texts):
                    raise NotImplemented(f"the operator '{node.operator}' has texts in its branch or body: hosts compute no control flow")
            if node.operator.endswith("Classifier") and kinds and not touched:
                self.labels[node.outputs[0]] = node.texts("classlabels_strings")
            elif _operators.is_of_extensions(node) or ((touched or kinds or node.operator in ALWAYS) and node.operator != "Constant"):
                self.host.add(index)
            self.texts.update(name for name, kind in kinds.items() if kind == TEXT)
            self.maps.update(name for name, kind in kinds.items() if kind == MAP)

    def needed(self) -> list[int]:
        """The nodes that outputs need, in order."""
        wanted, kept = set(self.graph.outputs), []
        for index in reversed(range(len(self.graph.nodes))):
            node = self.graph.nodes[index]
            if wanted.isdisjoint(node.outputs):
                continue
            kept.append(index)
            wanted.update(node.inputs)
            for place in node.graphs():
                wanted.update(_captured(self.data, place))
        return kept[::-1]

    def is_simple(self, kept: list[int]) -> bool:
        """Whether devices compute it as it is, with places for labels, which the host looks up behind them."""
        undeclared = (name for name in self.graph.outputs if not self.graph.types[name])
        if self.given & set(self.graph.inputs) or not (self.texts | self.maps).isdisjoint(undeclared):
            return False
        for index in kept:
            node = self.graph.nodes[index]
            if index not in self.host:
                continue
            takes_texts = not self.texts.isdisjoint(node.inputs)
            is_move = node.operator in MOVES - {"Cast", "CastLike"} and node.inputs[0] in self.texts
            is_lookup = node.operator == "LabelEncoder" and not takes_texts and node.has("keys_int64s") and node.has("values_strings")
            if node.operator != "ZipMap" and not is_move and not is_lookup:
                return False
        return True

    def plan(self, kept: list[int], outer) -> Plan:
        plan = Plan(self.graph, outer, texts=frozenset(self.texts), labels=self.labels)
        for infos in (self.graph.inputs, self.graph.outputs):
            plan.shapes.update((name, declared_sizes(self.data, self.graph.content(span))) for name, span in infos.items())
        ready: dict[str, tuple[int, bool]] = {}
        for index in kept:
            node = self.graph.nodes[index]
            if node.operator == "Constant":
                plan.constants[node.outputs[0]] = node
                continue
            sources = list(node.inputs) + [name for place in node.graphs() for name in _captured(self.data, place)]
            known = [ready[name] for name in sources if name in ready]
            is_host = index in self.host
            if is_host:
                _operators.check(node)
                level = max((at + (not by_host) for at, by_host in known), default=0)
            else:
                level = max((at for at, _ in known), default=0)
            ready.update((name, (level, is_host)) for name in node.outputs if name)
            while len(plan.steps) <= level:
                plan.steps.append(Step())
                plan.host.append([])
            (plan.host[level] if is_host else plan.steps[level].nodes).append(node)
        self._connect(plan)
        return plan

    def _connect(self, plan: Plan) -> None:
        """What steps take and give."""
        made = {name: at for at, step in enumerate(plan.steps) for node in step.nodes for name in node.outputs if name}
        taken = set(self.graph.outputs)
        for level in plan.host:
            taken.update(name for node in level for name in node.inputs)
        for at, step in enumerate(plan.steps):
            for node in step.nodes:
                for name in _sources(self.data, node):
                    inside = made.get(name) == at or name in plan.constants
                    if name and not inside and name not in self.graph.constants and name not in step.inputs:
                        step.inputs.append(name)
                        taken.add(name)
        known = set(made) | set(self.graph.inputs) | set(self.graph.constants) | set(plan.constants)
        known.update(name for level in plan.host for node in level for name in node.outputs)
        missing = taken - known - {""}
        if missing:
            raise ValueError(f"'{min(missing)}' is read, and nothing makes it")
        for at, step in enumerate(plan.steps):
            step.outputs = [name for name in taken if made.get(name) == at]
            step.outputs.sort()


def _ordered(data, nodes: list[Node]) -> list[Node]:
    """Nodes so that each stands behind those that it needs: not all writers do that."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    needs = {index: [makers[name] for name in _sources(data, node) if name in makers] for index, node in enumerate(nodes)}
    if all(own < index for index, before in needs.items() for own in before):
        return nodes
    return [nodes[index] for index in graphlib.TopologicalSorter(needs).static_order()]


def _sources(data, node: Node) -> list[str]:
    return [*node.inputs, *(name for place in node.graphs() for name in _captured(data, place))]


def _captured(data, place) -> set[str]:
    """Names that a graph in an attribute takes from around it."""
    inner = Graph(data, place)
    own = set(inner.inputs) | set(inner.constants)
    taken = set(inner.outputs)
    for node in inner.nodes:
        taken.update(node.inputs)
        own.update(node.outputs)
        for deeper in node.graphs():
            taken |= _captured(data, deeper)
    return taken - own


def _is_of_texts(kind: str) -> bool:
    return "string" in kind and "map(" not in kind


def planned(data) -> Plan | None:
    """The plan for the bytes of a file; nothing where devices compute all of it."""
    place = next((value for number, value in fields(data, 0, len(data)) if number == 7), None)
    if not isinstance(place, tuple):
        return None
    planner = _Planner(data, Graph(data, place))
    planner.sort()
    if not planner.host and not planner.given:
        return None
    kept = planner.needed()
    if planner.is_simple(kept):
        return None
    outer = [(number, (start, end)) for number, _, start, end in pieces(data, 0, len(data))]
    return planner.plan(kept, outer)


def written(plan: Plan, step: Step, inputs: list[bytes]) -> bytes:
    """The file of a step, with the ValueInfoProtos of its inputs."""
    data, graph = plan.graph.data, plan.graph
    needed = {name for node in step.nodes for name in _sources(data, node)}
    parts = [message(2, b"a part of a graph")]
    parts += [bytes(data[node.span[0] : node.span[1]]) for name, node in plan.constants.items() if name in needed]
    parts += [bytes(data[node.span[0] : node.span[1]]) for node in step.nodes]
    for name, span in graph.constants.items():
        if name in needed:
            parts.append(bytes(data[span[0] : span[1]]))
    parts += [message(11, own) for own in inputs]
    parts += [message(12, message(1, name.encode())) for name in step.outputs]
    own = message(7, b"".join(parts))
    return b"".join(own if number == 7 else bytes(data[start:end]) for number, (start, end) in plan.outer)
