"""Operators that the host computes: those that take or give texts or dictionaries.

Their results are those of ONNX Runtime's kernels. Each function takes a node and its inputs, arrays or lists (`None` where one is not
given), and gives the list of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from ._errors import NotImplemented
from ._nodes import Node
from ._operators_classic import CLASSIC
from ._operators_contrib import CONTRIB, DOMAINS
from ._operators_moves import MOVED
from ._operators_texts import TEXTS

OPERATORS: dict[str, Callable] = {**MOVED, **CLASSIC, **TEXTS}


def is_of_extensions(node: Node) -> bool:
    """Whether a node is of the operators of onnxruntime-extensions."""
    return node.domain in DOMAINS


def check(node: Node) -> None:
    """Refuses a node that nothing computes."""
    name = f"{node.domain}.{node.operator}" if node.domain else node.operator
    if is_of_extensions(node):
        if node.operator not in CONTRIB:
            there = ", ".join(sorted(CONTRIB))
            raise NotImplemented(f"the operator '{name}' of onnxruntime-extensions is not supported; there are: {there}")
    elif node.operator not in OPERATORS or node.domain not in ("", "ai.onnx", "ai.onnx.ml", "com.microsoft"):
        raise NotImplemented(f"the operator '{name}' with texts is not supported: devices hold no texts, and the host has no such operator")


def compute(node: Node, inputs: list) -> list:
    """The outputs of a node."""
    return (CONTRIB if is_of_extensions(node) else OPERATORS)[node.operator](node, *inputs)
