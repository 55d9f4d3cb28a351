"""Graphs as ONNX models, tensors as arrays."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Iterable

import numpy as np
import torch
from torch._C import _functorch as functorch
from torch.export.graph_signature import OutputKind

from .._errors import Error
from . import _autocast
from ._decompose import TABLE
from ._options import Draws, Options, Unsupported

_MOST_IN_MEMORY = 1 << 30
"""Weights of more bytes go through a file: a message of protocol buffers holds 2 GiB."""

_LOGGERS = ("torch.onnx", "torch.export", "torch._subclasses", "onnxscript", "onnx_ir")


@contextlib.contextmanager
def _quiet():
    """Warnings and messages of PyTorch's exporters, which are about files that people keep, are not shown."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)  # Errors are raised, too.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def exported(module, arguments: list[torch.Tensor], open_dimensions: list[set[int]]) -> torch.export.ExportedProgram:
    """A graph as a program of PyTorch, where these dimensions of the arguments may stay open; with regions of autocast none do."""
    depth = functorch.get_dynamic_layer_stack_depth()
    dimensions = tuple({place: torch.export.Dim.AUTO for place in places} or None for places in open_dimensions)
    try:
        with torch.no_grad(), _autocast.Off(), _quiet():
            lowered = _autocast.lowered(module, arguments)
            if lowered is not None:
                module, dimensions = lowered, None
            program = torch.export.export(module, tuple(arguments), dynamic_shapes=dimensions, strict=False)
            # Only then it says what it changes in place.
            program = program.run_decompositions(dict(TABLE))
    except Exception as error:
        _leave(depth)
        raise Unsupported(f"torch.export refuses it: {_first_line(error)}") from error
    if any(_draws(node) for part in program.graph_module.modules() for node in _nodes(part)):
        raise Draws("it draws random numbers, which PyTorch does by its seed")
    changed = {OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION}
    if any(spec.kind in changed for spec in program.graph_signature.output_specs):
        raise Unsupported("it changes a tensor in place that others can see")
    return program


def _leave(depth: int) -> None:
    """Leaves what `torch.vmap` maps where an error ended its tracing: PyTorch itself does not."""
    # PyTorch 2.6 complains behind the last one that there are none.
    with contextlib.suppress(RuntimeError):
        functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


def _nodes(module) -> Iterable[torch.fx.Node]:
    return module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ()


def _draws(node: torch.fx.Node) -> bool:
    """Whether an operator draws random numbers: other ones in each call, the same behind the same seed."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args)) | node.kwargs
    # Those that only drop out draw nothing where that is off, as in all models for inference.
    is_off = given.get("train", given.get("training")) is False or given.get("dropout_p", given.get("dropout")) == 0
    may_be_off = "dropout_p" in names and "dropout_p" not in given
    return not (is_off or may_be_off)


def fixed_sizes(program: torch.export.ExportedProgram, open_dimensions: list[set[int]]) -> list[tuple[int, int, int]]:
    """The dimensions that were to stay open and did not: argument, dimension, size."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = []
    for place, name in enumerate(program.graph_signature.user_inputs):
        shape = nodes[name].meta["val"].shape
        sizes = [(place, d, shape[d]) for d in sorted(open_dimensions[place])]
        found += [(place, d, int(size)) for place, d, size in sizes if not isinstance(size, torch.SymInt)]
    return found


def session(program: torch.export.ExportedProgram, options: Options):
    """A session of a program."""
    try:
        with _autocast.Off(), _quiet():
            onnx = torch.onnx.export(program, (), dynamo=True, verbose=False, optimize=True)
    except ImportError as error:
        raise Unsupported(f"a package is missing: {error}; pip install 'halite[torch]'") from error
    except Exception as error:
        raise Unsupported(f"torch.onnx refuses it: {_first_line(error)}") from error
    try:
        size = sum(tensor.nbytes for tensor in program.state_dict.values())
        size += sum(value.nbytes for value in program.constants.values() if isinstance(value, torch.Tensor))
        if size <= _MOST_IN_MEMORY:
            return options.session(onnx.model_proto)
        with tempfile.TemporaryDirectory(prefix="halite-torch-") as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(path, external_data=True)
            return options.session(path)
    except Error as error:
        if error.kind in ("unsupported", "invalid_model", "invalid_input"):
            raise Unsupported(f"Halite refuses it: {error}") from error
        raise


def _first_line(error: BaseException) -> str:
    """What an error of PyTorch's exporters says, without the pages around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def array(tensor: torch.Tensor) -> np.ndarray:
    """The elements of a tensor as an array; without a copy where they are on the host."""
    tensor = tensor.detach()
    tensor = (tensor if tensor.device.type == "cpu" else tensor.cpu()).resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def tensor(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array as a tensor; without a copy on the host."""
    if values.dtype.name == "bfloat16":
        made = torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(values)
    return made if device.type == "cpu" else made.to(device)
