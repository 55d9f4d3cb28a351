"""A backend of `torch.compile` for inference: what PyTorch captured runs on any Vulkan device.

    fast = torch.compile(model.eval(), backend="halite")
    with torch.no_grad():
        y = fast(x)

Each graph that PyTorch captures becomes an ONNX model by `torch.onnx` (the package `onnxscript` is needed), and that a session. Where
a graph cannot go as a whole, the operators that cannot are found, and the graph is split around them: those run in PyTorch, the others
on the device. `explain()` says which ran where, and why. Sizes that PyTorch holds open stay open.

Options are given as `torch.compile(model, backend="halite", options={"device": "vulkan://0"})`; see `Options`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch._dynamo

from ._graph import operators
from ._options import Options
from ._piece import Piece
from ._report import Record, explain, report, reset

NAME = "halite"
"""The name of the backend."""


def backend(graph_module, example_inputs: Sequence, *, mode: str | None = None, options: Mapping | None = None):
    """What `torch.compile` calls for each graph; gives the function that runs it."""
    del mode  # It is about PyTorch's own compiler.
    chosen = Options(**(options or {}))
    wants_gradients = torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs
    )
    if wants_gradients:
        why = "gradients are wanted, and only inference is supported: call it under torch.no_grad() or torch.inference_mode()"
        chosen.refuse(why)
        Record.of_eager(len(operators(graph_module.graph)), why)
        return graph_module.forward
    return Piece.of_dynamo(graph_module, example_inputs, chosen)


def _register() -> None:
    # The installed package names it as an entry point; a source tree has none.
    if NAME not in torch._dynamo.list_backends(exclude_tags=()):
        torch._dynamo.register_backend(compiler_fn=backend, name=NAME)


_register()

__all__ = ["Options", "Record", "backend", "explain", "report", "reset"]
